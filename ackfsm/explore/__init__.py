"""Exhaustive exploration of a system's states."""

from ackfsm.explore._allowed import allowed
from ackfsm.explore._check import Answer, Finding, check
from ackfsm.explore._search import Exploration, explore

__all__ = ["Answer", "Exploration", "Finding", "allowed", "check", "explore"]
