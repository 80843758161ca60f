"""Questions about many configurations: ``claims`` of vendors, modes under faults (``matrix``), ``advice``."""
