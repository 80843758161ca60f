"""Live brokers: programs from the tables, and which rows of the tables a recorded history performed."""
