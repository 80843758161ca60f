"""What events are to the property machines, and the integers that stand for both in arrays."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from ackfsm.history_format import Event

__all__ = ["OBSERVABLES", "OBSERVED_AS", "Observable", "observable_code"]


class Observable(StrEnum):
    """What the property machines see of one message.

    Rows of one moment stand in this order, so that a ``resend`` comes before the
    ``send_in_transaction`` that it also is, and a ``producer_crash`` after the send that it leaves open.
    """

    SEND = "send"
    RESEND = "resend"
    SEND_IN_TRANSACTION = "send_in_transaction"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    IN_DOUBT = "in_doubt"
    COMMIT_CALLED = "commit_called"
    COMMITTED = "committed"
    COMMIT_IN_DOUBT = "commit_in_doubt"
    ROLLED_BACK = "rolled_back"
    DELIVERED_CLEAR = "delivered_clear"
    DELIVERED_FLAGGED = "delivered_flagged"
    PROCESSED = "processed"
    FAILED = "failed"
    ACKNOWLEDGE = "acknowledge"
    ACKNOWLEDGED = "acknowledged"
    ACK_IN_DOUBT = "ack_in_doubt"
    EXPIRED = "expired"
    DEAD_LETTERED = "dead_lettered"
    PRODUCER_CRASH = "producer_crash"
    SYNC_RECORD = "sync_record"
    RETURNED = "returned"


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


def observable_code(observable: Observable) -> int:
    """The integer that stands for ``observable`` in a :class:`ackfsm.verify.Stream`."""
    return OBSERVABLES.index(observable)
