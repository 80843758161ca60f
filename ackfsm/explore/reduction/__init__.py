"""What need not be searched: a slice of the system, ample sets and sleep sets."""
