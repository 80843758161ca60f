"""Deliveries beyond the prefetch bound: handed over while as many as the bound had not been acknowledged.

The bound is one of the broker's, of which a history sees only the far end, so whatever may have freed a
place there is taken to have done so as early as it can: a call that acknowledges, commits, rolls back, recovers or
closes; an answer without a call; a failure of the message, its end, or another delivery of it.  What two queues send to
one session is counted apart, as a session may have a consumer on each.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import Events
from ackfsm.history.expand import covering_acks, first_covering_ack
from ackfsm.history.joins import number_pairs
from ackfsm.history_format import VOCABULARY, Event
from ackfsm.terms import Fault

__all__ = ["Prefetch", "ends_of", "prefetch_overruns"]

_OF_ITS_MESSAGE = (Event.DELIVERED, Event.FAILED, Event.LEASE_EXPIRED, Event.EXPIRED, Event.DEAD_LETTERED)
_OF_ITS_TRANSACTION = (Event.COMMIT, Event.ROLLBACK)
_OF_ITS_SESSION = (Event.COMMIT, Event.ROLLBACK, Event.RECOVER, Event.CLOSE)
"""The events after which a delivery is no longer open, beside the acknowledgements that cover it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Prefetch:
    """What bounds the deliveries that are open.

    Attributes:
        bound: how many a consumer may have.
        interruptions: the faults after which nobody can say by which connection a delivery came: some messages were
            prefetched before, and the broker has begun to count anew.
    """

    bound: int
    interruptions: frozenset[Fault]


def prefetch_overruns(events: Events, prefetch: Prefetch, messages: Mask) -> Ints:
    """Those of ``messages`` that came while ``prefetch.bound`` deliveries of them in that session and queue were open.

    Only deliveries that came by one connection for certain are counted together: those of messages that were sent and
    delivered between the same two interruptions, or repairs of one.
    """
    delivered = events.places(Event.DELIVERED)
    era = _eras(events, delivered, prefetch)
    counted = era == _eras(events, _sent(events)[events.message[delivered]], prefetch)
    counted &= messages[events.message[delivered]]
    place, end = delivered[counted], np.minimum(ends_of(events, delivered)[counted], len(events))
    lane = number_pairs(number_pairs(events.session[place], events.queue[place]), events.consumer[place])
    lane = number_pairs(lane, era[counted])
    width = np.int64(len(events) + 1)
    now = lane * width + place
    opened = np.searchsorted(np.sort(now), now)
    gone = np.searchsorted(np.sort(lane * width + end), now, side="right")
    return np.unique(events.message[place[opened - gone >= prefetch.bound]])


def ends_of(events: Events, delivered: Ints) -> Ints:
    """The row from which each delivery is no longer open."""
    message, transaction, session = (
        events.places(*kinds) for kinds in (_OF_ITS_MESSAGE, _OF_ITS_TRANSACTION, _OF_ITS_SESSION)
    )
    ends: Ints = np.minimum.reduce(
        [
            *(acts for _, acts in covering_acks(events)),
            first_covering_ack(events.message, delivered, message, message),
            first_covering_ack(events.transaction, delivered, transaction, transaction),
            first_covering_ack(events.session, delivered, session, session),
        ]
    )
    return ends


def _sent(events: Events) -> Ints:
    """The row in which each message was first sent; the first of all where that is not told."""
    sent = np.zeros(events.count_of("message"), np.int64)
    sends = events.places(Event.SEND)[::-1]
    sent[events.message[sends]] = sends  # the last assignment wins
    return sent


def _eras(events: Events, places: Ints, prefetch: Prefetch) -> Ints:
    """How many interruptions, and repairs of one, there were before each row."""
    kinds = [VOCABULARY["fault"].index(fault) for fault in prefetch.interruptions]
    moments = events.places(Event.FAULT, Event.RECOVERED)
    eras: Ints = np.searchsorted(moments[np.isin(events.fault[moments], kinds)], places)
    return eras
