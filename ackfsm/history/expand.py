"""Expand events to the observables of each message, with cumulative acknowledgements and commits resolved.

An acknowledgement covers deliveries and a commit covers sends and deliveries.  A delivery or
send gets each observable from the *first* act that covers it; a later one says nothing new of it,
and without this a long session would have as many rows as the square of its length.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ackfsm.history.arrays import Codes, Ints
from ackfsm.history.columns import ABSENT, Events
from ackfsm.history.joins import NONE, at, first_covering, last_before, number_pairs
from ackfsm.history.observables import OBSERVABLES, OBSERVED_AS, Observable, event_code, observable_code
from ackfsm.history.sends import Sends
from ackfsm.history_format import EVENTS, VOCABULARY, Event
from ackfsm.terms import AckScope

__all__ = [
    "NEVER",
    "Stream",
    "calls_of",
    "covering",
    "covering_acks",
    "expand",
    "first_covering_ack",
]

NEVER = np.iinfo(np.int64).max
"""The row of what does not happen."""

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


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Some rows of the stream, all of one observable or one each."""

    message: Codes
    observable: Codes
    place: Ints


def expand(events: Events, sends: Sends) -> Stream:
    """Spell out what each message went through; ``sends`` are those of ``events`` (:func:`sends_of`)."""
    rows = [_direct(events), _transacted_sends(events), _crashed(events, sends)]
    rows += [*_of_sends(events), *_of_deliveries(events)]
    return _sorted(rows, len(events))


def _sorted(rows: Sequence[_Rows], width: int) -> Stream:
    message, place, observable = (
        np.concatenate([getattr(each, name) for each in rows]) for name in ("message", "place", "observable")
    )
    keys = np.sort((message * np.int64(width) + place) * len(OBSERVABLES) + observable)
    distinct = keys[np.diff(keys, prepend=NONE) > 0]  # a call that covers two deliveries of a message is one call
    moments, observable = np.divmod(distinct, len(OBSERVABLES))
    message, place = np.divmod(moments, width)
    return Stream(message, observable.astype(np.uint8), place)


def _direct(events: Events) -> _Rows:
    """The events that are one observable of the message that they name."""
    codes = np.array([observable_code(OBSERVED_AS[e]) if e in OBSERVED_AS else NONE for e in EVENTS], np.int64)
    observable = codes[events.event]
    observable[(events.event == event_code(Event.DELIVERED)) & (events.redelivered == 1)] = observable_code(
        Observable.DELIVERED_FLAGGED
    )
    observable[(events.event == event_code(Event.SEND)) & (events.transaction != ABSENT)] = NONE
    observable[events.message == ABSENT] = NONE  # a journal may tell of a sync without saying of what
    place = np.flatnonzero(observable != NONE)
    return _Rows(events.message[place], observable[place], place)


def _transacted_sends(events: Events) -> _Rows:
    places = events.places(Event.SEND, Event.RESEND)
    places = places[events.transaction[places] != ABSENT]
    return _all(Observable.SEND_IN_TRANSACTION, events.message[places], places)


def _of_sends(events: Events) -> Iterator[_Rows]:
    sends = events.places(Event.SEND, Event.RESEND)
    for observable, ends in _ENDS_FOR_SENDS.items():
        places = events.places(*ends)
        yield _at(events, observable, sends, first_covering_ack(events.transaction, sends, places, places))


def _of_deliveries(events: Events) -> Iterator[_Rows]:
    deliveries = events.places(Event.DELIVERED)
    for observable, acts in covering_acks(events):
        yield _at(events, observable, deliveries, acts)


def covering_acks(events: Events) -> Iterator[tuple[Observable, Ints]]:
    """For each observable that reaches deliveries, the row of the first act that covers each; :data:`NEVER` if none."""
    deliveries = events.places(Event.DELIVERED)
    for observable, (acknowledgement, ends) in _ACTS_FOR_DELIVERIES.items():
        places = events.places(*ends)
        in_transaction = first_covering_ack(events.transaction, deliveries, places, places)
        yield observable, np.minimum(_covered_by(events, acknowledgement), in_transaction)


def _covered_by(events: Events, acknowledgement: Event) -> Ints:
    """For each delivery the row of the first such act that covers it by its scope; :data:`NEVER` if none does."""
    deliveries, acts = events.places(Event.DELIVERED), events.places(acknowledgement)
    cuts = _cuts(events, acts if acknowledgement is Event.ACKNOWLEDGE else calls_of(events, acts))
    one = events.scope[acts] == VOCABULARY["scope"].index(AckScope.MESSAGE)
    return np.minimum(
        first_covering_ack(events.message, deliveries, acts[one], cuts[one]),
        first_covering_ack(events.session, deliveries, acts[~one], cuts[~one]),
    )


def covering(events: Events, acts: Ints) -> Ints:
    """For each delivery the first of ``acts`` (acknowledgements) of its own session that covers it.

    One of a whole session does not cover what that gave back before, by recover() or its end, although its scope says
    so, by which anomalies are counted.
    """
    deliveries, cuts = events.places(Event.DELIVERED), _cuts(events, acts)
    one = events.scope[acts] == VOCABULARY["scope"].index(AckScope.MESSAGE)
    own = number_pairs(events.session, events.message)
    of_session = first_covering_ack(events.session, deliveries, acts[~one], cuts[~one])
    ends = np.union1d(events.places(Event.RECOVER), events.closes_of_sessions())
    given_back = first_covering_ack(events.session, deliveries, ends, ends) < of_session
    return np.minimum(
        first_covering_ack(own, deliveries, acts[one], cuts[one]), np.where(given_back, NEVER, of_session)
    )


def calls_of(events: Events, answers: Ints) -> Ints:
    """The call that each answer belongs to: the latest of the same session, message and scope, else itself."""
    calls = events.places(Event.ACKNOWLEDGE)
    both = np.concatenate([calls, answers])
    what = number_pairs(number_pairs(events.session[both], events.message[both]), events.scope[both])
    found = last_before(what[len(calls) :], answers, what[: len(calls)], calls)
    return at(calls, found, answers)


def _cuts(events: Events, calls: Ints) -> Ints:
    """Before which place a delivery is covered by each call: its own, or just after the delivery that it names."""
    up_to = np.flatnonzero(events.scope[calls] == VOCABULARY["scope"].index(AckScope.UP_TO))
    deliveries = events.places(Event.DELIVERED)
    both = np.concatenate([deliveries, calls[up_to]])
    what = number_pairs(events.session[both], events.message[both])
    found = last_before(what[len(deliveries) :], calls[up_to], what[: len(deliveries)], deliveries)
    cuts = calls.copy()
    cuts[up_to] = at(deliveries, found, NONE) + 1
    return cuts


def first_covering_ack(group: Codes, members: Ints, acts: Ints, cuts: Ints) -> Ints:
    """The row of the first act of its group that covers each member; :data:`NEVER` if none does."""
    return at(acts, first_covering(group[members], members, group[acts], cuts), NEVER)


def _at(events: Events, observable: Observable, members: Ints, acts: Ints) -> _Rows:
    """``observable`` for the message of each member that is covered, at the act that covers it."""
    covered = acts != NEVER
    return _all(observable, events.message[members[covered]], acts[covered])


def _crashed(events: Events, sends: Sends) -> _Rows:
    left = np.flatnonzero(sends.crash != NONE)
    return _all(Observable.PRODUCER_CRASH, events.message[sends.place[left]], sends.crash[left])


def _all(observable: Observable, message: Codes, place: Ints) -> _Rows:
    return _Rows(message, np.full(len(place), observable_code(observable)), place)
