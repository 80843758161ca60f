"""Runs by hand, and what a search has reached, as tests of the tables ask for them."""

from __future__ import annotations

from ackfsm.explore import Answer, Interpreter, Refused
from ackfsm.terms import Anomaly

__all__ = ["can", "reached"]


def can(system: Interpreter, *steps: str) -> bool:
    """Whether ``system`` performs these steps; it stays where the first that is refused leaves it."""
    try:
        for step in steps:
            system.fire(step)
    except Refused:
        return False
    return True


def reached(answer: Answer) -> set[Anomaly]:
    """The anomalies that a search has reached."""
    return {anomaly for anomaly, finding in answer.findings.items() if finding.reachable}
