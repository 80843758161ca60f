"""The guarantee matrix: every configuration of a profile under every fault and pair of faults."""

from ackfsm.matrix._plan import LeftOut, Plan, Scenario, make_plan
from ackfsm.matrix._result import Broken, Cell, Matrix, Outcome
from ackfsm.matrix._run import Progress, Spread, run
from ackfsm.matrix._summary import Entry, Happens, Line, Summary, summarise
from ackfsm.matrix._table import matrix_json, matrix_screen
from ackfsm.matrix._write import make_folder, write

__all__ = [
    "Broken",
    "Cell",
    "Entry",
    "Happens",
    "LeftOut",
    "Line",
    "Matrix",
    "Outcome",
    "Plan",
    "Progress",
    "Scenario",
    "Spread",
    "Summary",
    "make_folder",
    "make_plan",
    "matrix_json",
    "matrix_screen",
    "run",
    "summarise",
    "write",
]
