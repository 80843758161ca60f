"""Which messages of a chunk lived when something happened around them, and which of these went through the same."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np

from ackfsm.history.arrays import Ints, Mask, mixed
from ackfsm.history.columns import ABSENT, Events
from ackfsm.history.format import Event
from ackfsm.history.index import Index
from ackfsm.history.joins import NONE
from ackfsm.verify.conformance.lines import last_answers, neighbours
from ackfsm.verify.context.circumstances import EFFECT
from ackfsm.verify.folding.neighbours import Followed, Hashes

ENDING: Final = (Event.CLOSE, Event.RECOVER, Event.ROLLBACK, Event.ROLLED_BACK)
"""What ends a session or a transaction, or starts it over."""

_AROUND: Final = (*ENDING, Event.FAULT, Event.RECOVERED, Event.FAILED, Event.DRAINED)
_CALLED: Final = 4
"""The first column of the rows of a message that are acts of its session."""


def went_through(followed: Followed, messages: Mask, calls: Collection[Event], skew: int) -> Hashes:
    """For each of ``messages`` a number that those share which went through the same; 0 for the others.

    They have the same processes, sessions and queues, and their rows lie in the same way among each other and among
    all rows and moments that what happened around them may depend on; so whatever compares those finds the same.
    """
    events, found = followed.events, np.zeros(len(messages), np.uint64)
    if not messages.any():
        return found
    message, row = _rows(followed, messages)
    beside, called = neighbours(events), np.zeros(len(events), np.bool_)
    called[events.places(*calls)] = True
    t, until = events.t[row], np.where(called, beside[1], events.t)[row]
    key = np.zeros(len(row), np.uint64)
    for column in (
        *(getattr(events, name)[row] for name in ("process", "session", "queue")),
        np.searchsorted(events.places(*_AROUND), row),
        *_ranks(_moments(events, beside, skew), t, until),
        *_among_each_other(message, t, until, skew),
    ):
        key = mixed(key ^ mixed(column.astype(np.int64).astype(np.uint64) + np.uint64(1)))
    starts = np.flatnonzero(np.diff(message, prepend=NONE))
    place = np.arange(len(row)) - np.repeat(starts, np.diff(starts, append=len(row)))
    found[message[starts]] = np.add.reduceat(mixed(key ^ place.astype(np.uint64)), starts) | np.uint64(1)
    return found


def _rows(followed: Followed, messages: Mask) -> tuple[Ints, Ints]:
    """The rows that tell of ``messages``, with their messages: their own, and acts of sessions and transactions."""
    events = followed.events
    own = np.flatnonzero((events.message != ABSENT) & messages[events.message])
    found = [(events.message[own].astype(np.int64), own)]
    chosen = np.flatnonzero(messages)
    found += [(chosen[acts >= 0], acts[acts >= 0].astype(np.int64)) for acts in followed.where[chosen, _CALLED:].T]
    for kind in (Event.COMMIT, Event.COMMITTED):
        last = np.full(events.count_of("transaction") + 1, NONE, np.int64)
        last[events.transaction[events.places(kind)]] = events.places(kind)
        last[NONE] = NONE
        found += [(chosen[its >= 0], its[its >= 0]) for its in last[followed.inside[chosen].T]]
    message, row = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((row, message))
    return message[order], row[order]


def _moments(events: Events, beside: tuple[Ints, Ints], skew: int) -> Ints:
    """The moments from which and until which something may have happened around messages, ascending.

    ``beside`` are the times of the rows before and after each row in its process.
    """
    rows = events.places(*ENDING, Event.FAILED)
    found = [events.t[rows], *(each[rows] for each in beside), last_answers(events)[rows]]
    for fault, repair in Index.of(events).outages:
        found.append(events.t[[each.moment[0] for each in (fault, repair) if each]])
    moments = np.concatenate(found)
    moments = moments[np.abs(moments) < np.iinfo(np.int64).max]
    return np.unique([moments + effect + by for effect in (-EFFECT, 0, EFFECT) for by in (-skew, 0, skew)])


def _ranks(moments: Ints, *times: Ints) -> list[Ints]:
    """For each of ``times`` its place among the ``moments``: between two of them, or at one."""
    return [
        np.searchsorted(moments, each, side="left") + np.searchsorted(moments, each, side="right") for each in times
    ]


def _among_each_other(message: Ints, t: Ints, until: Ints, skew: int) -> list[Ints]:
    """For each row how many of its message were written by the time of its own, and by when it took effect."""
    times = np.sort(t)
    width = np.int64(len(times) + 1)
    written = np.sort(message * width + np.searchsorted(times, t))
    begin = np.searchsorted(message, message)
    bounds = {0: (t, until), skew: (t - skew, np.minimum(until, np.iinfo(np.int64).max - skew) + skew)}
    return [
        np.searchsorted(written, message * width + np.searchsorted(times, moment, side="right")) - begin
        for moments in bounds.values()
        for moment in moments
    ]
