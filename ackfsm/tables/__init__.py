"""Read, check and hold the tables of ``spec/``."""

from ackfsm.tables._conditions import Condition
from ackfsm.tables._guarantees import Exclusion, Guarantee, Guarantees, Implication, Level
from ackfsm.tables._machine import Counter, EventRef, Fsm, Machine, Move, Per, Relation, Row
from ackfsm.tables._matrix import Switch, Value
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
    "Condition",
    "Constant",
    "Counter",
    "Default",
    "Deviation",
    "Event",
    "EventRef",
    "Exclusion",
    "Fsm",
    "Gap",
    "Guarantee",
    "Guarantees",
    "Implication",
    "Level",
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
    "Switch",
    "Undecided",
    "Value",
    "load",
    "written",
]
