"""The search for cycles compiled by Numba; importing this module costs what loading Numba costs."""

from __future__ import annotations

from ackfsm.explore.search import kernel_scc
from ackfsm.explore.search.compiled import compiled

__all__ = ["chosen", "fair_sets", "index", "mark", "resting", "rows_of", "successors", "way"]

index = compiled(kernel_scc.index)
rows_of = compiled(kernel_scc.rows_of)
successors = compiled(kernel_scc.successors)
mark = compiled(kernel_scc.mark)
resting = compiled(kernel_scc.resting)
chosen = compiled(kernel_scc.chosen)
compiled(kernel_scc.begin)
compiled(kernel_scc.fair)
compiled(kernel_scc.finish)
fair_sets = compiled(kernel_scc.fair_sets)
way = compiled(kernel_scc.way)
