"""Reductions of the search: slices of the system, ample sets and sleep sets."""
