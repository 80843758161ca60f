"""Exhaustive exploration of a system's states."""

from ackfsm.explore._allowed import allowed
from ackfsm.explore._check import Answer, Finding, check
from ackfsm.explore._reduce import Reduced, reduced
from ackfsm.explore._search import Exploration, explore, explore_packed
from ackfsm.explore._system import Hook, Refused, System

__all__ = [
    "Answer",
    "Exploration",
    "Finding",
    "Hook",
    "Reduced",
    "Refused",
    "System",
    "allowed",
    "check",
    "explore",
    "explore_packed",
    "reduced",
]
