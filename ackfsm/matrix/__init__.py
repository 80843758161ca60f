"""The guarantee matrix: every configuration of a profile under every fault and pair of faults."""

from ackfsm.matrix._modes import ModeResult, mode_sweep
from ackfsm.matrix._plan import LeftOut, Plan, Scenario, make_plan
from ackfsm.matrix._result import Broken, Cell, Matrix, Outcome
from ackfsm.matrix._run import run
from ackfsm.matrix._summary import Entry, Line, Reachability, Summary, summarise

__all__ = [
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
    "make_plan",
    "mode_sweep",
    "run",
    "summarise",
]
