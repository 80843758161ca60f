"""The guarantee matrix: every configuration of a profile under every fault and pair of faults."""

from ackfsm.surveys.matrix._alike import ALIKE_STATES, MODE_KEYS, AlikeModes, alike_modes, rows_digest
from ackfsm.surveys.matrix._given_back import Action, Fate, GivenBack, given_back
from ackfsm.surveys.matrix._modes import ModeResult, mode_sweep, modes
from ackfsm.surveys.matrix._plan import ANY_FAULTS, LeftOut, Plan, Scenario, make_plan
from ackfsm.surveys.matrix._proved import (
    KEPT_IN,
    DecidedMode,
    Undecided,
    decide_modes,
    decided_modes_text,
    kept_decisions,
    keys_of_modes,
    read_decided_modes,
)
from ackfsm.surveys.matrix._result import AnyNumber, Broken, Cell, Matrix, Open, Outcome, Repeated, repeated
from ackfsm.surveys.matrix._run import run
from ackfsm.surveys.matrix._summary import Entry, Line, Reachability, Summary, summarise

__all__ = [
    "ALIKE_STATES",
    "ANY_FAULTS",
    "KEPT_IN",
    "MODE_KEYS",
    "Action",
    "AlikeModes",
    "AnyNumber",
    "Broken",
    "Cell",
    "DecidedMode",
    "Entry",
    "Fate",
    "GivenBack",
    "LeftOut",
    "Line",
    "Matrix",
    "ModeResult",
    "Open",
    "Outcome",
    "Plan",
    "Reachability",
    "Repeated",
    "Scenario",
    "Summary",
    "Undecided",
    "alike_modes",
    "decide_modes",
    "decided_modes_text",
    "given_back",
    "kept_decisions",
    "keys_of_modes",
    "make_plan",
    "mode_sweep",
    "modes",
    "read_decided_modes",
    "repeated",
    "rows_digest",
    "run",
    "summarise",
]
