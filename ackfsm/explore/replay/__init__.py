"""What a search has found, performed by machines of the transitions library."""
