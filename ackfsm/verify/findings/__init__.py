"""The findings in events that are in memory, and the verdict on them."""
