"""Read, check and hold the tables of ``spec/``."""

from ackfsm.tables._conditions import COUNTED, Condition
from ackfsm.tables._machine import Counter, EventRef, Fsm, Machine, Move, Per, Relation, Row
from ackfsm.tables._profiles import Constant, Default, Deviation, OwnName, ProfileTable, Refusal, written
from ackfsm.tables._specification import (
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
    "COUNTED",
    "Condition",
    "Constant",
    "Counter",
    "Default",
    "Deviation",
    "Event",
    "EventRef",
    "Fsm",
    "Gap",
    "Machine",
    "Monitor",
    "Move",
    "OwnName",
    "Per",
    "ProfileTable",
    "Promise",
    "Property",
    "Refusal",
    "Relation",
    "Row",
    "Specification",
    "Undecided",
    "load",
    "written",
]
