"""Live brokers, led by the tables through every mode and every fault that they can take."""
