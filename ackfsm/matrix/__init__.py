"""The guarantee matrix: every configuration of a profile under every fault and pair of faults."""

from ackfsm.matrix._alike import ALIKE_STATES, MODE_KEYS, AlikeModes, alike_modes, rows_digest
from ackfsm.matrix._modes import ModeResult, mode_sweep
from ackfsm.matrix._plan import LeftOut, Plan, Scenario, make_plan
from ackfsm.matrix._result import Broken, Cell, Matrix, Outcome
from ackfsm.matrix._run import run
from ackfsm.matrix._summary import Entry, Line, Reachability, Summary, summarise

__all__ = [
    "ALIKE_STATES",
    "MODE_KEYS",
    "AlikeModes",
    "Broken",
    "Cell",
    "Entry",
    "LeftOut",
    "Line",
    "Matrix",
    "ModeResult",
    "Outcome",
    "Plan",
    "Reachability",
    "Scenario",
    "Summary",
    "alike_modes",
    "make_plan",
    "mode_sweep",
    "rows_digest",
    "run",
    "summarise",
]
