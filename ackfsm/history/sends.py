"""Sends outside transactions, with what ended each: an outcome, or the crash of its producer."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT, Events
from ackfsm.history.joins import NONE, at, first_covering, number_pairs
from ackfsm.history.victims import FaultLine, fault_lines, hits, outages_of
from ackfsm.history_format import VOCABULARY, Event
from ackfsm.terms import Fault

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

    def of(self, chosen: Mask) -> Sends:
        """Those that are chosen."""
        return Sends(self.place[chosen], self.outcome[chosen], self.crash[chosen])


def sends_of(events: Events) -> Sends:
    """Find the sends outside transactions of ``events``.

    An outcome closes every open send of its message.
    """
    place = events.places(Event.SEND, Event.RESEND)
    place = place[events.transaction[place] == ABSENT]
    outcomes = events.places(Event.CONFIRMED, Event.REJECTED, Event.IN_DOUBT, Event.RETURNED)
    outcome = at(outcomes, first_covering(events.message[place], place, events.message[outcomes], outcomes), NONE)
    return Sends(place, outcome, np.where(outcome == NONE, _crashes(events, place), NONE))


def _crashes(events: Events, place: Ints) -> Ints:
    kinds = [VOCABULARY["fault"].index(crash) for crash in (Fault.PRODUCER_CRASH, Fault.CONSUMER_CRASH)]
    rows = events.places(Event.FAULT, Event.RECOVERED)
    lines = fault_lines(events, rows[np.isin(events.fault[rows], kinds)], place)
    found = np.full(len(place), NONE, np.int64)
    outages = [(crash, end) for crash, end in outages_of(lines) if crash.victims or crash.fault == Fault.PRODUCER_CRASH]
    if not outages:
        return found
    if not any(crash.victims or crash.queue != ABSENT for crash, _ in outages):
        return _left(outages, place, len(events))
    whose = number_pairs(events.process[place], events.queue[place])
    _, first, group = np.unique(whose, return_index=True, return_inverse=True)
    for number, sample in enumerate(place[first].tolist()):
        its = np.flatnonzero(group == number)
        process, queue = int(events.process[sample]), int(events.queue[sample])
        mine = [outage for outage in outages if hits(outage[0], process, queue)]
        found[its] = _left(mine, place[its], len(events))
    return found


def _left(outages: Sequence[tuple[FaultLine, FaultLine | None]], place: Ints, end: int) -> Ints:
    """For each send the moment from which one of the ``outages`` leaves it, :data:`NONE` if none does."""
    starts = np.array([crash.moment[0] for crash, _ in outages], np.int64)
    until = np.array([end if repair is None else repair.moment[0] for _, repair in outages], np.int64)
    following = np.searchsorted(starts, place)
    during = np.append(np.maximum.accumulate(until), NONE)[following - 1] > place  # before the first crash it is NONE
    return np.where(during, place, np.append(starts, NONE)[following])
