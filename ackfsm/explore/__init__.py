"""Exhaustive exploration of a system's states."""

from ackfsm.explore.questions.allowed import allowed, why_undecided
from ackfsm.explore.questions.check import Answer, Finding, SearchFunction, check
from ackfsm.explore.questions.equivalence import Comparison, compare, compare_after
from ackfsm.explore.questions.liveness import Broken, ProgressFinding
from ackfsm.explore.reduction.ample import Reduction
from ackfsm.explore.reduction.slice import Reduced, reduced
from ackfsm.explore.replay.interpreter import Hook, Refused, System
from ackfsm.explore.replay.witness import Change, NotReplayedError, Step, Way, Witness, perform, replay, replay_all
from ackfsm.explore.search.search import Exploration, explore, explore_packed

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
