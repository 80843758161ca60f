"""Brokers of others and ours, started as children, driven by real clients, broken, and held to the tables."""
