"""Results and tables as people see them: screens, pages and JSON (``views``), diagrams (``draw``); no decisions."""
