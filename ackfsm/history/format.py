"""History format 1 as data: fields, events, and the fields that each event needs.

Nothing here acts.  Readers check lines by these tables, and whoever writes a history takes its names from here.  The
order of events and values is that of their integer codes in :mod:`ackfsm.verify`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from ackfsm.terms import AckScope, DeliveryMode, Fault

VERSION = 1
HEADER_KEY = "ackfsm_history"


class Kind(StrEnum):
    """The kind of a field; the value is its name in a message to a person."""

    TEXT = "text"
    WHOLE = "a whole number of 64 bits"
    FLAG = "true or false"


FIELDS: Mapping[str, Kind] = MappingProxyType(
    {
        "t": Kind.WHOLE,
        "process": Kind.TEXT,
        "event": Kind.TEXT,
        "queue": Kind.TEXT,
        "message": Kind.TEXT,
        "session": Kind.TEXT,
        "delivery_mode": Kind.TEXT,
        "redelivered": Kind.FLAG,
        "delivery_count": Kind.WHOLE,
        "scope": Kind.TEXT,
        "fault": Kind.TEXT,
        "transaction": Kind.TEXT,
        "position": Kind.WHOLE,
        "error": Kind.TEXT,
        "outcome": Kind.TEXT,
        "priority": Kind.WHOLE,
        "consumer": Kind.TEXT,
    }
)
ALWAYS = ("t", "process", "event")
NOT_NEGATIVE = ("t", "delivery_count", "priority")


class Event(StrEnum):
    """The events that a line may report."""

    SEND = "send"
    RESEND = "resend"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    IN_DOUBT = "in_doubt"
    DELIVERED = "delivered"
    PROCESSED = "processed"
    FAILED = "failed"
    ACKNOWLEDGE = "acknowledge"
    ACKNOWLEDGED = "acknowledged"
    ACK_IN_DOUBT = "ack_in_doubt"
    BEGIN = "begin"
    COMMIT = "commit"
    COMMITTED = "committed"
    COMMIT_IN_DOUBT = "commit_in_doubt"
    ROLLBACK = "rollback"
    ROLLED_BACK = "rolled_back"
    RECOVER = "recover"
    CLOSE = "close"
    FAULT = "fault"
    RECOVERED = "recovered"
    EXPIRED = "expired"
    DEAD_LETTERED = "dead_lettered"
    DRAINED = "drained"
    JOURNAL_WRITTEN = "journal_written"
    JOURNAL_SYNCED = "journal_synced"
    WAITING = "waiting"
    DEPTH = "depth"
    RETURNED = "returned"
    LEASE_EXPIRED = "lease_expired"
    PREPARE = "prepare"
    PREPARED = "prepared"


class Outcome(StrEnum):
    """What an application says of a delivery that it gives back or up; the ``outcome`` of a ``failed``."""

    RELEASED = "released"
    MODIFIED = "modified"
    UNDELIVERABLE = "undeliverable"
    REJECTED = "rejected"


class Call(StrEnum):
    """A call that may be waiting; the ``error`` of a ``waiting`` says which."""

    SEND = "send"
    ACKNOWLEDGE = "acknowledge"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    RECOVER = "recover"
    CLOSE = "close"
    RECEIVE = "receive"


EVENTS = tuple(Event)

_OF_A_MESSAGE = (
    Event.SEND,
    Event.RESEND,
    Event.CONFIRMED,
    Event.REJECTED,
    Event.IN_DOUBT,
    Event.DELIVERED,
    Event.PROCESSED,
    Event.FAILED,
    Event.EXPIRED,
    Event.DEAD_LETTERED,
    Event.RETURNED,
    Event.LEASE_EXPIRED,
)
_OF_A_TRANSACTION = (
    Event.BEGIN,
    Event.COMMIT,
    Event.COMMITTED,
    Event.COMMIT_IN_DOUBT,
    Event.ROLLBACK,
    Event.ROLLED_BACK,
    Event.PREPARE,
    Event.PREPARED,
)

NEEDS: Mapping[str, tuple[Event, ...]] = MappingProxyType(
    {
        "message": _OF_A_MESSAGE,
        "redelivered": (Event.DELIVERED,),
        "scope": (Event.ACKNOWLEDGE, Event.ACKNOWLEDGED, Event.ACK_IN_DOUBT),
        "transaction": _OF_A_TRANSACTION,
        "fault": (Event.FAULT, Event.RECOVERED),
        "error": (Event.WAITING,),
        "position": (Event.DEPTH,),
        "delivery_count": (Event.DEPTH,),
    }
)
"""Which events need a field, beside those that every event needs (:data:`ALWAYS`)."""

RANGED = (Event.CONFIRMED, Event.REJECTED)
"""The outcomes that one line may tell of several sends."""

BROKER = "broker"
"""The process of the broker; what it sends it had when the history began."""

TELLERS = ("nemesis", BROKER)
"""The processes that tell of others."""

ACKNOWLEDGE_TIMEOUT = "acknowledge_timeout"
"""A fault of one call: the answer to an acknowledgement did not come in time.  To the tables it is ``ack_in_doubt``."""

NAMED_MESSAGE_SCOPES = (AckScope.UP_TO, AckScope.MESSAGE)
"""The scopes of an acknowledgement that say nothing without a ``message``."""

VOCABULARY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "event": EVENTS,
        "scope": tuple(AckScope),
        "fault": (*Fault, ACKNOWLEDGE_TIMEOUT),
        "delivery_mode": tuple(DeliveryMode),
        "outcome": tuple(Outcome),
    }
)
"""The fields with a fixed set of values; the place of a value is its code."""

WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType({Event.DEAD_LETTERED.value: ("moved",)})
"""What a header may say of a line, by the line, which is the key: what the line tells then."""

SHOWABLE: frozenset[str] = frozenset({*map(str, EVENTS), *FIELDS} - {*ALWAYS, "message"})
"""What a source may be unable to show: events, and fields (``cannot_show`` of a header)."""
