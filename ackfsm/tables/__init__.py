"""The tables of ``spec/``, read, validated and cross-checked."""

from ackfsm.tables._conditions import ALWAYS, BOUND_SETTINGS, Condition, parse_condition
from ackfsm.tables._events import Event, Lane
from ackfsm.tables._guarantees import Exclusion, Guarantee, Guarantees, Implication, Level
from ackfsm.tables._liveness import LivenessProperty, Waiting
from ackfsm.tables._load import load, read_form
from ackfsm.tables._machine import Counter, EventRef, Fsm, IndexKind, Machine, Relation, Row, RowKind
from ackfsm.tables._profiles import Constant, Default, Deviation, ProfileTable, Refusal, VendorAlias, format_value
from ackfsm.tables._source import Document
from ackfsm.tables._sources import check_sources
from ackfsm.tables._specification import Monitor, Promise, Property, Specification, is_profile_file
from ackfsm.tables._sweep import Factor, Omission, Value

__all__ = [
    "ALWAYS",
    "BOUND_SETTINGS",
    "Condition",
    "Constant",
    "Counter",
    "Default",
    "Deviation",
    "Document",
    "Event",
    "EventRef",
    "Exclusion",
    "Factor",
    "Fsm",
    "Guarantee",
    "Guarantees",
    "Implication",
    "IndexKind",
    "Lane",
    "Level",
    "LivenessProperty",
    "Machine",
    "Monitor",
    "Omission",
    "ProfileTable",
    "Promise",
    "Property",
    "Refusal",
    "Relation",
    "Row",
    "RowKind",
    "Specification",
    "Value",
    "VendorAlias",
    "Waiting",
    "check_sources",
    "format_value",
    "is_profile_file",
    "load",
    "parse_condition",
    "read_form",
]
