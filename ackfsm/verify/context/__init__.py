"""What lines mean beside each other: whom a fault hit, which call covers what, how clocks differ, what was at rest."""
