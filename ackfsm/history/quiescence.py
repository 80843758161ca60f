"""Whether a message's queue was seen drained after it was sent: only then does absent mean lost."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa

from ackfsm.history.arrays import Codes, Ints, Mask
from ackfsm.history.columns import ABSENT, Events
from ackfsm.history.joins import NONE
from ackfsm.history_format import Event

__all__ = ["Quiescence", "quiescence_of"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Quiescence:
    """For each message, when its queue was last seen drained.

    A message belongs to the queue of its last send (if it has none, of the last event that names it);
    a ``drained`` without a queue is one of every queue.

    Attributes:
        drained: the row of the last ``drained`` of its queue, :data:`NONE` if there is none.
        judged: whether that is later than its last send.
    """

    drained: Ints
    judged: Mask
    _queue: Codes
    _names: pa.Array

    def at_rest(self) -> Quiescence:
        """As if every queue had been seen drained after all else."""
        return dataclasses.replace(
            self, drained=np.full_like(self.drained, np.iinfo(np.int64).max), judged=np.ones_like(self.judged)
        )

    def undrained(self, messages: Mask) -> tuple[str, ...]:
        """The queues of those of ``messages`` that are not judged, in the order of their names; "" is no queue."""
        left = np.unique(self._queue[messages & ~self.judged])
        names = self._names.take(pa.array(left[left != ABSENT])).to_pylist()
        return tuple(sorted([*names, *([""] if ABSENT in left else [])]))


def quiescence_of(events: Events) -> Quiescence:
    """Find what was seen drained in ``events``."""
    anchor = _anchors(events)
    queue = events.queue[anchor]
    last = _last_drained(events)
    drained = np.maximum(last[queue], last[ABSENT])
    return Quiescence(drained, drained > anchor, queue, events.names["queue"])


def _anchors(events: Events) -> Ints:
    """The row of the last send of each message, or of the last event that names it; later assignments win."""
    anchor = np.full(events.count_of("message"), NONE, np.int64)
    for places in (np.flatnonzero(events.message != ABSENT), events.places(Event.SEND, Event.RESEND)):
        anchor[events.message[places]] = places
    return anchor


def _last_drained(events: Events) -> Ints:
    """The last ``drained`` of each queue, and in the entry that :data:`ABSENT` indexes, that of all queues."""
    last = np.full(events.count_of("queue") + 1, NONE, np.int64)
    places = events.places(Event.DRAINED)
    last[events.queue[places]] = places
    return last
