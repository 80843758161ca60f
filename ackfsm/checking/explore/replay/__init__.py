"""Replay of witnesses by machines of the transitions library."""
