"""Live brokers, led through the rows of the tables under faults, and judged by what was recorded."""
