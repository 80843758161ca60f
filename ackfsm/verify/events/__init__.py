"""The events of a history as columns: what a field may say, how columns are joined, and their compiled loops."""
