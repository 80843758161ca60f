"""Brokers that run here: started, driven through real clients, broken, and held to the tables."""
