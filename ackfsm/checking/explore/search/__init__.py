"""The search of a state space: breadth first, in plain Python or compiled, in one process or many."""
