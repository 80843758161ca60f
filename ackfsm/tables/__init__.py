"""The tables of ``spec/``, read, validated and cross-checked."""

from ackfsm.tables._conditions import ALWAYS, BOUND_SETTINGS, Condition, condition_of, parse_condition
from ackfsm.tables._events import Event, Lane
from ackfsm.tables._forms import shipped_tables
from ackfsm.tables._guarantees import Exclusion, Guarantee, Guarantees, Implication, Level
from ackfsm.tables._liveness import LivenessProperty, Waiting
from ackfsm.tables._load import load, read_form
from ackfsm.tables._machine import Counter, EventRef, Fsm, IndexKind, Machine, Relation, Row, RowKind, base_state, hold
from ackfsm.tables._names import ConditionalValue, Option, VendorAlias, VendorEvent, format_value
from ackfsm.tables._profiles import Constant, Default, Deviation, LeftOpen, NumberRange, ProfileTable, Refusal
from ackfsm.tables._recording import Certainty, Fact, Of, Only, Recording, Side, SignRow, When
from ackfsm.tables._seeds import Seed, Sentence, read_seeds
from ackfsm.tables._source import Document, read_document
from ackfsm.tables._sources import check_sources
from ackfsm.tables._specification import Monitor, Promise, Property, Specification, is_profile_file
from ackfsm.tables._sweep import Factor, Omission, Value
from ackfsm.tables._timing import ByteCount, Rule, Timing

__all__ = [
    "ALWAYS",
    "BOUND_SETTINGS",
    "ByteCount",
    "Certainty",
    "Condition",
    "ConditionalValue",
    "Constant",
    "Counter",
    "Default",
    "Deviation",
    "Document",
    "Event",
    "EventRef",
    "Exclusion",
    "Fact",
    "Factor",
    "Fsm",
    "Guarantee",
    "Guarantees",
    "Implication",
    "IndexKind",
    "Lane",
    "LeftOpen",
    "Level",
    "LivenessProperty",
    "Machine",
    "Monitor",
    "NumberRange",
    "Of",
    "Omission",
    "Only",
    "Option",
    "ProfileTable",
    "Promise",
    "Property",
    "Recording",
    "Refusal",
    "Relation",
    "Row",
    "RowKind",
    "Rule",
    "Seed",
    "Sentence",
    "Side",
    "SignRow",
    "Specification",
    "Timing",
    "Value",
    "VendorAlias",
    "VendorEvent",
    "Waiting",
    "When",
    "base_state",
    "check_sources",
    "condition_of",
    "format_value",
    "hold",
    "is_profile_file",
    "load",
    "parse_condition",
    "read_document",
    "read_form",
    "read_seeds",
    "shipped_tables",
]
