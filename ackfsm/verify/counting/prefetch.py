"""Deliveries beyond the prefetch bound: handed over while as many as the bound had not been acknowledged.

The bound is one of the broker's, of which a history sees only the far end, so whatever may have freed a
place there is taken to have done so as early as it can: a call that acknowledges, commits, rolls back, recovers or
closes; an answer without a call; a failure of the message, its end, or another delivery of it.  What two queues send to
one session is counted apart, as a session may have a consumer on each.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.index import Index
from ackfsm.history.joins import number_pairs
from ackfsm.history_format import VOCABULARY, Event
from ackfsm.terms import Fault
from ackfsm.verify.counting.count import opened
from ackfsm.verify.counting.expand import covering_acks

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


def prefetch_overruns(events: Index, prefetch: Prefetch, messages: Mask) -> Ints:
    """Those of ``messages`` that came while ``prefetch.bound`` deliveries of them in that session and queue were open.

    Only deliveries that came by one connection for certain are counted together: those of messages that were sent and
    delivered between the same two interruptions, or repairs of one.
    """
    delivered = events.deliveries
    era = _eras(events, delivered, prefetch)
    sent = np.maximum(events.first(Event.SEND), 0)  # the first row of all where that is not told
    counted = era == _eras(events, sent[events.message[delivered]], prefetch)
    counted &= messages[events.message[delivered]]
    place = delivered[counted]
    lane = number_pairs(number_pairs(events.session[place], events.queue[place]), events.consumer[place])
    lane = number_pairs(lane, era[counted])
    return np.unique(events.message[place[opened(lane, place, ends_of(events)[counted]) >= prefetch.bound]])


def ends_of(events: Index) -> Ints:
    """The row from which each delivery is no longer open."""
    ends = events.until(
        events.deliveries,
        message=events.places(*_OF_ITS_MESSAGE),
        transaction=events.places(*_OF_ITS_TRANSACTION),
        session=events.places(*_OF_ITS_SESSION),
    )
    return functools.reduce(np.minimum, (acts for _, acts in covering_acks(events)), ends)


def _eras(events: Index, places: Ints, prefetch: Prefetch) -> Ints:
    """How many interruptions, and repairs of one, there were before each row."""
    kinds = [VOCABULARY["fault"].index(fault) for fault in prefetch.interruptions]
    moments = events.places(Event.FAULT, Event.RECOVERED)
    eras: Ints = np.searchsorted(moments[np.isin(events.fault[moments], kinds)], places)
    return eras
