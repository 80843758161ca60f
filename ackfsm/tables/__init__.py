"""Read, check and hold the tables of ``spec/``."""

from ackfsm.tables._conditions import ALWAYS, Condition
from ackfsm.tables._machine import Counter, EventRef, Fsm, Machine, Move, Per, Relation, Row
from ackfsm.tables._source import Document
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
    read_form,
)

__all__ = [
    "ALWAYS",
    "Condition",
    "Counter",
    "Default",
    "Document",
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
    "read_form",
]
