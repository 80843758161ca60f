"""The meaning of lines beside each other: victims of faults, covers of calls, clocks, queues at rest."""
