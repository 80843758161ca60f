"""Exhaustive exploration of a system's states."""

from ackfsm.explore._allowed import allowed, why_undecided
from ackfsm.explore._check import Answer, Finding, SearchFunction, check
from ackfsm.explore._preferred import Reduction
from ackfsm.explore._progress import Broken, ProgressFinding
from ackfsm.explore._reduce import Reduced, reduced
from ackfsm.explore._search import Exploration, explore, explore_packed
from ackfsm.explore._system import Hook, Refused, System
from ackfsm.explore._traces import Comparison, compare, compare_after
from ackfsm.explore._witness import Change, NotReplayedError, Step, Way, Witness, perform, replay, replay_all

__all__ = [
    "Answer",
    "Broken",
    "Change",
    "Comparison",
    "Exploration",
    "Finding",
    "Hook",
    "NotReplayedError",
    "ProgressFinding",
    "Reduced",
    "Reduction",
    "Refused",
    "SearchFunction",
    "Step",
    "System",
    "Way",
    "Witness",
    "allowed",
    "check",
    "compare",
    "compare_after",
    "explore",
    "explore_packed",
    "perform",
    "reduced",
    "replay",
    "replay_all",
    "why_undecided",
]
