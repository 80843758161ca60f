"""Exhaustive exploration of a system's states."""

from ackfsm.explore._allowed import allowed, why_undecided
from ackfsm.explore._check import Answer, Finding, check
from ackfsm.explore._search import Exploration, explore
from ackfsm.explore._system import Hook, Refused, System

__all__ = [
    "Answer",
    "Exploration",
    "Finding",
    "Hook",
    "Refused",
    "System",
    "allowed",
    "check",
    "explore",
    "why_undecided",
]
