"""Live brokers: programs from the tables that perform every row."""
