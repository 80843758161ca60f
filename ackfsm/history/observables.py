"""What events are to the property machines, and the integers that stand for both in arrays."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from ackfsm.history_format import EVENTS, Event
from ackfsm.tables import names

__all__ = ["OBSERVABLES", "OBSERVED_AS", "Observable", "event_code", "observable_code"]


class Observable(StrEnum):
    """What the property machines see of one message.

    Rows of one moment stand in this order, so that a ``resend`` comes before the
    ``send_in_transaction`` that it also is, and a ``producer_crash`` after the send that it leaves open.
    """

    SEND = names.Event.SEND
    RESEND = names.Event.RESEND
    SEND_IN_TRANSACTION = names.Event.SEND_IN_TRANSACTION
    CONFIRMED = names.Event.CONFIRMED
    REJECTED = names.Event.REJECTED
    IN_DOUBT = names.Event.IN_DOUBT
    COMMIT_CALLED = names.Event.COMMIT_CALLED
    COMMITTED = names.Event.COMMITTED
    COMMIT_IN_DOUBT = "commit_in_doubt"
    ROLLED_BACK = "rolled_back"
    DELIVERED_CLEAR = names.Event.DELIVERED_CLEAR
    DELIVERED_FLAGGED = names.Event.DELIVERED_FLAGGED
    PROCESSED = names.Event.PROCESSED
    FAILED = "failed"
    ACKNOWLEDGE = names.Event.ACKNOWLEDGE
    ACKNOWLEDGED = names.Event.ACKNOWLEDGED
    ACK_IN_DOUBT = names.Event.ACK_IN_DOUBT
    EXPIRED = names.Event.EXPIRED
    DEAD_LETTERED = names.Event.DEAD_LETTERED
    PRODUCER_CRASH = names.Event.PRODUCER_CRASH
    SYNC_RECORD = names.Event.SYNC_RECORD
    RETURNED = names.Event.RETURNED


OBSERVABLES = tuple(Observable)

OBSERVED_AS: Mapping[Event, Observable] = MappingProxyType(
    {
        Event.SEND: Observable.SEND,
        Event.RESEND: Observable.RESEND,
        Event.CONFIRMED: Observable.CONFIRMED,
        Event.REJECTED: Observable.REJECTED,
        Event.IN_DOUBT: Observable.IN_DOUBT,
        Event.DELIVERED: Observable.DELIVERED_CLEAR,
        Event.PROCESSED: Observable.PROCESSED,
        Event.FAILED: Observable.FAILED,
        Event.EXPIRED: Observable.EXPIRED,
        Event.DEAD_LETTERED: Observable.DEAD_LETTERED,
        Event.JOURNAL_SYNCED: Observable.SYNC_RECORD,
        Event.RETURNED: Observable.RETURNED,
    }
)
"""The events that are one observable of the message that they name; the expansion gives the others."""


def event_code(event: Event) -> int:
    """The integer that stands for ``event`` in :class:`ackfsm.verify.Events`."""
    return EVENTS.index(event)


def observable_code(observable: Observable) -> int:
    """The integer that stands for ``observable`` in a :class:`ackfsm.verify.Stream`."""
    return OBSERVABLES.index(observable)
