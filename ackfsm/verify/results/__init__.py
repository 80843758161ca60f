"""The examination of a file, and its results as tables."""
