"""The rate of a configuration, its cost in time, and the bound that binds it (``ackfsm plan``).

The closed form is exact arithmetic (fractions) on what ``spec/timing.yaml`` says to wait for what.  Where it knows only
bounds it gives both, and says so.  The question, the choices and what is left out: ``docs/decisions/timing.md``.
"""

from ackfsm.rates.timing._bytes import InMessages, in_messages
from ackfsm.rates.timing._dimension import SWEPT_OPTIONS, Dimension, read_dimension
from ackfsm.rates.timing._grid import Grid, Row, plan_cells
from ackfsm.rates.timing._interval import Interval
from ackfsm.rates.timing._plan import Plan, Side, plan, window_that_fills
from ackfsm.rates.timing._planner import Planner
from ackfsm.rates.timing._waits import Waits, waits_of
from ackfsm.rates.timing._ways import Way, ways_of_sending
from ackfsm.rates.timing._workload import RESOURCES, SPREAD_TIMES, Spread, Workload

__all__ = [
    "RESOURCES",
    "SPREAD_TIMES",
    "SWEPT_OPTIONS",
    "Dimension",
    "Grid",
    "InMessages",
    "Interval",
    "Plan",
    "Planner",
    "Row",
    "Side",
    "Spread",
    "Waits",
    "Way",
    "Workload",
    "in_messages",
    "plan",
    "plan_cells",
    "read_dimension",
    "waits_of",
    "ways_of_sending",
    "window_that_fills",
]
