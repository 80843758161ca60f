"""Anomalies and counters of single messages by machines of the tables, and of sessions by joins."""
