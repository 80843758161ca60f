"""The guarantee matrix: every configuration of a profile under every fault and pair of faults."""

from ackfsm.surveys.matrix._given_back import Action, Fate, GivenBack, given_back
from ackfsm.surveys.matrix._modes import (
    FACTORS,
    KEPT_IN,
    DecidedMode,
    ModeResult,
    Undecided,
    kept_decisions,
    keys_of_modes,
    mode_sweep,
    modes,
    plan_of,
    read_decided_modes,
)
from ackfsm.surveys.matrix._plan import ANY_FAULTS, LeftOut, Plan, Scenario, make_plan
from ackfsm.surveys.matrix._result import AnyNumber, Broken, Cell, Matrix, Open, Outcome, Repeated, repeated
from ackfsm.surveys.matrix._run import run
from ackfsm.surveys.matrix._summary import Entry, Line, Reachability, Summary, summarise

__all__ = [
    "ANY_FAULTS",
    "FACTORS",
    "KEPT_IN",
    "Action",
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
    "given_back",
    "kept_decisions",
    "keys_of_modes",
    "make_plan",
    "mode_sweep",
    "modes",
    "plan_of",
    "read_decided_modes",
    "repeated",
    "run",
    "summarise",
]
