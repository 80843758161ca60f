"""Exhaustive exploration of a system's states."""

from ackfsm.explore._allowed import allowed, why_undecided
from ackfsm.explore._check import Answer, Finding, SearchFunction, check
from ackfsm.explore._reduce import Reduced, reduced
from ackfsm.explore._search import Exploration, explore, explore_packed
from ackfsm.explore._system import Hook, Refused, System
from ackfsm.explore._traces import Comparison, compare, compare_after

__all__ = [
    "Answer",
    "Comparison",
    "Exploration",
    "Finding",
    "Hook",
    "Reduced",
    "Refused",
    "SearchFunction",
    "System",
    "allowed",
    "check",
    "compare",
    "compare_after",
    "explore",
    "explore_packed",
    "reduced",
    "why_undecided",
]
