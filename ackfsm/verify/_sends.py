"""Sends outside transactions, with what ended each: an outcome, or the crash of its producer."""

from __future__ import annotations

import dataclasses

import numpy as np

from ackfsm.terms import Fault
from ackfsm.verify._arrays import Ints
from ackfsm.verify._columns import ABSENT, Events
from ackfsm.verify._format import VOCABULARY, Event
from ackfsm.verify._joins import NONE, at, first_covering

__all__ = ["Sends", "sends_of"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Sends:
    """The sends and resends outside transactions, in the order of time.

    Attributes:
        place: the row of each.
        outcome: the row of the first outcome of its message after it, :data:`NONE` if there is none.
        crash: the moment from which a crash leaves it without outcome, :data:`NONE` if none does: the row of
            the fault, or the send's own row if it was made between fault and recovery.
    """

    place: Ints
    outcome: Ints
    crash: Ints


def sends_of(events: Events) -> Sends:
    """Find the sends outside transactions of ``events``.

    An outcome closes every open send of its message.
    """
    place = events.places(Event.SEND, Event.RESEND)
    place = place[events.transaction[place] == ABSENT]
    outcomes = events.places(Event.CONFIRMED, Event.REJECTED, Event.IN_DOUBT)
    outcome = at(outcomes, first_covering(events.message[place], place, events.message[outcomes], outcomes), NONE)
    return Sends(place, outcome, np.where(outcome == NONE, _crashes(events, place), NONE))


def _crashes(events: Events, place: Ints) -> Ints:
    kind = VOCABULARY["fault"].index(Fault.PRODUCER_CRASH)
    starts, ends = (rows[events.fault[rows] == kind] for rows in map(events.places, (Event.FAULT, Event.RECOVERED)))
    if not len(starts):
        return np.full(len(place), NONE, np.int64)
    until = np.append(ends, len(events))[np.searchsorted(ends, starts)]
    following = np.searchsorted(starts, place)
    during = np.append(until, NONE)[following - 1] > place  # before the first crash that is the last entry, NONE
    return np.where(during, place, np.append(starts, NONE)[following])
