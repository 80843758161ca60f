"""The search for cycles compiled by Numba; importing this module costs what loading Numba costs."""

from __future__ import annotations

from ackfsm.explore import _cycles
from ackfsm.explore._compiled import compiled

__all__ = ["chosen", "fair_sets", "index", "mark", "resting", "rows_of", "successors", "way"]

index = compiled(_cycles.index)
rows_of = compiled(_cycles.rows_of)
successors = compiled(_cycles.successors)
mark = compiled(_cycles.mark)
resting = compiled(_cycles.resting)
chosen = compiled(_cycles.chosen)
compiled(_cycles.begin)
compiled(_cycles.fair)
compiled(_cycles.finish)
fair_sets = compiled(_cycles.fair_sets)
way = compiled(_cycles.way)
