"""Symbolic search: sets of states as decision diagrams (MDD), found by saturation (Ciardo, Lüttgen, Siminiceanu)."""
