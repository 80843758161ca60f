"""What was found in events that are in memory, and the verdict on it."""
