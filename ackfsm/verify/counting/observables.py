"""Expand events to the observables of each message, with cumulative acknowledgements and commits resolved.

An acknowledgement covers deliveries and a commit covers sends and deliveries.  A delivery or
send gets each observable from the *first* act that covers it; a later one says nothing new of it,
and without this a long session would have as many rows as the square of its length.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ackfsm.history.arrays import Ints
from ackfsm.history.columns import ABSENT, event_code
from ackfsm.history.format import EVENTS, Event
from ackfsm.history.index import Index
from ackfsm.history.joins import NEVER, NONE
from ackfsm.tables import names


class Observable(StrEnum):
    """The observations of one message, as the property machines read them.

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

_OBSERVED_AS: Mapping[Event, Observable] = MappingProxyType(
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

_ENDS_FOR_SENDS: Mapping[Observable, tuple[Event, ...]] = MappingProxyType(
    {
        Observable.COMMIT_CALLED: (Event.COMMIT,),
        Observable.COMMITTED: (Event.COMMITTED,),
        Observable.COMMIT_IN_DOUBT: (Event.COMMIT_IN_DOUBT,),
        Observable.ROLLED_BACK: (Event.ROLLBACK, Event.ROLLED_BACK),
    }
)
"""What the end of a transaction is to the messages that were sent in it."""

_ACTS_FOR_DELIVERIES: Mapping[Observable, tuple[Event, tuple[Event, ...]]] = MappingProxyType(
    {
        Observable.ACKNOWLEDGE: (Event.ACKNOWLEDGE, ()),
        Observable.ACKNOWLEDGED: (Event.ACKNOWLEDGED, (Event.COMMITTED,)),
        Observable.ACK_IN_DOUBT: (Event.ACK_IN_DOUBT, (Event.COMMIT_IN_DOUBT,)),
    }
)
"""What acknowledgements (by their scope) and ends of a transaction are to the messages that were delivered before."""


_KINDS = (
    *((observable, (event,)) for event, observable in _OBSERVED_AS.items()),
    *_ENDS_FOR_SENDS.items(),
    *((observable, (act, *ends)) for observable, (act, ends) in _ACTS_FOR_DELIVERIES.items()),
    (Observable.SEND_IN_TRANSACTION, (Event.SEND, Event.RESEND)),
    (Observable.DELIVERED_FLAGGED, (Event.DELIVERED,)),
    (Observable.PRODUCER_CRASH, (Event.FAULT,)),
    (Observable.ACK_IN_DOUBT, (Event.FAULT,)),
)

SHOWN_AS: Mapping[str, tuple[Observable, ...]] = MappingProxyType(
    {
        event: tuple(observable for observable, kinds in _KINDS if event in kinds)
        for event in Event
        if any(event in kinds for _, kinds in _KINDS)
    }
)
"""All that an event may be to the machines of a message."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """The observables of all messages: ordered by message, then by place, then as :class:`Observable` is.

    Attributes:
        message: the message's place in the names of the events.
        observable: the observable's place in :data:`OBSERVABLES`.
        place: the event's row in the events (for a crash that leaves a send open: the fault's, or the send's).
    """

    message: Ints
    observable: npt.NDArray[np.uint8]
    place: Ints


def expand(events: Index) -> Stream:
    """Spell out what each message went through."""
    rows = np.concatenate([_keys(events, *each) for each in _observed(events)])
    keys = np.sort(rows)
    distinct = keys[np.diff(keys, prepend=NONE) > 0]  # a call that covers two deliveries of a message is one call
    moments, observable = np.divmod(distinct, len(OBSERVABLES))
    message, place = np.divmod(moments, len(events))
    return Stream(message, observable.astype(np.uint8), place)


def _keys(events: Index, observable: Ints | Observable, members: Ints, place: Ints) -> Ints:
    """One number for each message of ``members``, in the order of the stream; where ``place`` is never, none."""
    code = observable_code(observable) if isinstance(observable, Observable) else observable
    happens = place != NEVER
    message = events.message[members[happens]].astype(np.int64)
    keys: Ints = (message * len(events) + place[happens]) * len(OBSERVABLES) + code
    return keys


def _observed(events: Index) -> Iterator[tuple[Ints | Observable, Ints, Ints]]:
    """Yield each observation, the rows of its messages, and the rows at which it was made."""
    rows, observable = _direct(events)
    yield observable, rows, rows
    inside = events.inside(Event.SEND, Event.RESEND)
    yield Observable.SEND_IN_TRANSACTION, inside, inside
    plain = events.plain_sends
    yield Observable.PRODUCER_CRASH, plain.place, plain.crash
    for end, kinds in _ENDS_FOR_SENDS.items():
        yield end, events.sends, events.until(events.sends, transaction=events.places(*kinds))
    for act, covered in covering_acks(events):
        yield act, events.deliveries, covered


def _direct(events: Index) -> tuple[Ints, Ints]:
    """The rows that are one observable of the message that they name, and which."""
    codes = np.array([observable_code(_OBSERVED_AS[e]) if e in _OBSERVED_AS else NONE for e in EVENTS], np.int64)
    observable = codes[events.event]
    flagged = (events.event == event_code(Event.DELIVERED)) & (events.redelivered == 1)
    observable[flagged] = observable_code(Observable.DELIVERED_FLAGGED)
    observable[events.inside(Event.SEND)] = NONE
    observable[events.message == ABSENT] = NONE  # a journal may tell of a sync without saying of what
    rows = np.flatnonzero(observable != NONE)
    return rows, observable[rows]


def covering_acks(events: Index) -> Iterator[tuple[Observable, Ints]]:
    """For each observable that reaches deliveries, the row of the first act that covers each; :data:`NEVER` if none."""
    for observable, (acknowledgement, ends) in _ACTS_FOR_DELIVERIES.items():
        in_transaction = events.until(events.deliveries, transaction=events.places(*ends))
        by_scope = events.covered(events.places(acknowledgement), to_the_letter=True)
        yield observable, np.minimum(by_scope, in_transaction)


def observable_code(observable: Observable) -> int:
    """The integer that stands for ``observable`` in a :class:`ackfsm.verify.Stream`."""
    return OBSERVABLES.index(observable)
