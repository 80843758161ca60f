"""Deliveries beyond the prefetch bound: handed over while as many as the bound had not been acknowledged.

The bound is one of the broker's, of which a history sees only the far end, so whatever may have freed a
place there is taken to have done so as early as it can: a call that acknowledges, commits, rolls back, recovers or
closes; an answer without a call; a failure of the message, its end, or another delivery of it.  What two queues send to
one session is counted apart, as a session may have a consumer on each.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ackfsm.history._arrays import Ints, Mask
from ackfsm.history._columns import Events
from ackfsm.history._expand import covering_acts, first_act
from ackfsm.history._format import VOCABULARY, Event
from ackfsm.history._joins import number_pairs
from ackfsm.terms import Fault

__all__ = ["OF_ITS_MESSAGE", "OF_ITS_SESSION", "OF_ITS_TRANSACTION", "Prefetch", "prefetch_overruns"]

OF_ITS_MESSAGE = (Event.DELIVERED, Event.FAILED, Event.EXPIRED, Event.DEAD_LETTERED)
OF_ITS_TRANSACTION = (Event.COMMIT, Event.ROLLBACK)
OF_ITS_SESSION = (Event.COMMIT, Event.ROLLBACK, Event.RECOVER, Event.CLOSE)
"""The events after which a delivery is no longer open, beside the acknowledgements that cover it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Prefetch:
    """What bounds the deliveries that are open.

    Attributes:
        bound: how many a consumer may have.
        interruptions: the faults after which nobody can say which connection a delivery of a session came by: some were
            prefetched before, and the broker has begun to count anew.
    """

    bound: int
    interruptions: frozenset[Fault]


def prefetch_overruns(events: Events, prefetch: Prefetch) -> Ints:
    """The messages that were delivered while ``prefetch.bound`` deliveries of their session and queue were open.

    A session is watched until the first interruption, or repair of one, after its first delivery.
    """
    delivered = events.places(Event.DELIVERED)
    watched = _watched(events, delivered, prefetch)
    place, end = delivered[watched], np.minimum(_ends(events, delivered)[watched], len(events))
    lane = number_pairs(events.session[place], events.queue[place])
    width = np.int64(len(events) + 1)
    now = lane * width + place
    opened = np.searchsorted(np.sort(now), now)
    gone = np.searchsorted(np.sort(lane * width + end), now, side="right")
    return np.unique(events.message[place[opened - gone >= prefetch.bound]])


def _ends(events: Events, delivered: Ints) -> Ints:
    """The row from which each delivery is no longer open."""
    message, transaction, session = (
        events.places(*kinds) for kinds in (OF_ITS_MESSAGE, OF_ITS_TRANSACTION, OF_ITS_SESSION)
    )
    ends: Ints = np.minimum.reduce(
        [
            *(acts for _, acts in covering_acts(events)),
            first_act(events.message, delivered, message, message),
            first_act(events.transaction, delivered, transaction, transaction),
            first_act(events.session, delivered, session, session),
        ]
    )
    return ends


def _watched(events: Events, delivered: Ints, prefetch: Prefetch) -> Mask:
    first = np.zeros(events.count_of("session"), np.int64)
    first[events.session[delivered[::-1]]] = delivered[::-1]  # the last assignment wins
    kinds = [VOCABULARY["fault"].index(fault) for fault in prefetch.interruptions]
    moments = events.places(Event.FAULT, Event.RECOVERED)
    moments = moments[np.isin(events.fault[moments], kinds)]
    until = np.append(moments, len(events))[np.searchsorted(moments, first)]
    return np.asarray(delivered < until[events.session[delivered]])
