"""Read, check and hold the tables of ``spec/``."""

from ackfsm.tables._conditions import Condition
from ackfsm.tables._machine import Counter, EventRef, Fsm, Machine, Move, Per, Relation, Row
from ackfsm.tables._specification import (
    Default,
    Event,
    Gap,
    Monitor,
    Promise,
    Property,
    Specification,
    Undecided,
    load,
)

__all__ = [
    "Condition",
    "Counter",
    "Default",
    "Event",
    "EventRef",
    "Fsm",
    "Gap",
    "Machine",
    "Monitor",
    "Move",
    "Per",
    "Promise",
    "Property",
    "Relation",
    "Row",
    "Specification",
    "Undecided",
    "load",
]
