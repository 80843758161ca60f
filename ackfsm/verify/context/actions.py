"""Optional events of ``spec/events.yaml`` that explain redeliveries or another order in a history."""

from __future__ import annotations

import dataclasses

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.format import VOCABULARY, Event
from ackfsm.history.index import Index
from ackfsm.history.joins import NEVER, NONE, distinct_pairs
from ackfsm.history.victims import fault_lines
from ackfsm.tables import names
from ackfsm.terms import Fault

RECOVER = names.Event.RECOVER
"""The application recovers its session, rolls back (or its commit is rolled back), or closes it of its own will."""

_RECOVERING_SESSIONS = (Event.RECOVER, Event.ROLLBACK, Event.ROLLED_BACK)
_RECOVERING = (*_RECOVERING_SESSIONS, Event.CLOSE)

_SENDS = (Event.SEND, Event.RESEND)

_DONE = (Event.REJECTED, Event.EXPIRED, Event.DEAD_LETTERED)

TAKEN_ELSEWHERE = names.Event.TAKEN_ELSEWHERE
"""Another consumer of the queue was sent messages, and its session broke before its application had seen them."""


CONSUMER_FAULTS = (Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS)
"""The faults that break the session of some consumer: of any, unless their lines name it."""


def inferred_actions(events: Index) -> tuple[str, ...]:
    """The optional events that ``events`` show, in the order of their names."""
    shown = {RECOVER: _recovered(events) or _closed_early(events), TAKEN_ELSEWHERE: _taken_elsewhere(events)}
    return tuple(name for name, seen in shown.items() if seen)


def _recovered(events: Index) -> bool:
    """Whether a session of a delivery was recovered, rolled back or closed before the message's next delivery.

    A ``close`` with an ``error`` is a connection that broke, which is no will of the application.
    """
    ends = np.union1d(
        events.places(*_RECOVERING_SESSIONS), np.setdiff1d(events.closes_of_sessions(), events.found_broken())
    )
    following = events.next_delivery
    recovered = events.until(events.deliveries, session=ends) < following
    return bool((recovered & (following != NEVER)).any())


def _closed_early(events: Index) -> bool:
    """Whether a consumer's session was closed while a message waited that another one overtook, or that never came.

    The consumer may have prefetched it, or have had it without a line.  Of a session that neither sent nor was
    delivered anything the queue is not known: it may be any.
    """
    closes = np.setdiff1d(events.places(Event.CLOSE), events.found_broken())
    waits, consumed = _waits(events), _consumed(events)
    silent = _silent(events, closes)
    own, by = _pairs_of(consumed.session, events.session[closes])
    anywhere = dataclasses.replace(waits, queue=np.zeros_like(waits.queue))
    return anywhere.had_by(events, np.zeros_like(silent), silent) or waits.had_by(
        events, consumed.queue[own], closes[by]
    )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Waits:
    """The time that messages wait for their first delivery, which came late or never.

    Attributes:
        queue: the queue of each, from 1 on; 0 for none.
        process: the process that was handed it first, from 1 on; 0 if nobody was.
        first, last: the rows from which and to which it waits.
    """

    queue: Ints
    process: Ints
    first: Ints
    last: Ints

    def had_by(self, events: Index, queue: Ints, rows: Ints) -> bool:
        """Return whether at one of ``rows`` a message of its ``queue`` waits for its process, or for none."""
        width = np.int64(events.count_of("process") + 1)
        of = queue * width
        found = _going_on(
            self.queue * width + self.process,
            self.first,
            self.last,
            np.concatenate([of, of + events.process[rows] + 1]),
            np.concatenate([rows, rows]),
        )
        return bool((found > 0).any())


def _waits(events: Index) -> _Waits:
    """Return the waits of overtaken messages and of messages that were never delivered.

    Of the latter not those that were refused, that came to their end, or that were sent in a transaction, which may
    have been rolled back.
    """
    never = len(events)
    first, last = (np.where(rows == NONE, never, rows) for rows in (events.first_send, events.first_delivery))
    done = (events.first(*_DONE) != NONE) | (events.first_of(events.inside(*_SENDS)) != NONE)
    queue = events.queue_of + 1
    waits = np.flatnonzero((first < last) & np.where(last < never, _overtaken(queue, first, last), ~done))
    process = np.append(events.process, NONE)[last] + 1
    return _Waits(queue[waits], process[waits], first[waits], last[waits])


def _overtaken(queue: Ints, first: Ints, last: Ints) -> Mask:
    """For each message, sent at ``first`` and delivered at ``last``, whether one sent later was delivered before it."""
    order = np.lexsort((last, queue))
    width = np.int64(first.max(initial=0) + 1)
    sent = (queue * width + first)[order]
    found = np.empty(len(order), bool)
    found[order] = np.maximum.accumulate(sent) > sent
    return found


def given_back_beside(events: Index, *, thrown: bool) -> bool:
    """Return whether a session gave back messages between two deliveries of another one from its queue.

    That is where it was recovered, rolled back or closed, or, if ``thrown``, where its listener threw.  What it had
    prefetched and never seen then goes to the other one.  A session that neither sent nor was delivered anything may
    have consumed from any queue.
    """
    ends = np.setdiff1d(events.places(*_RECOVERING, *([Event.FAILED] if thrown else [])), events.found_broken())
    consumed, of_silent = _consumed(events), _silent(events, ends)
    queue, first, last = consumed.queue, consumed.first, consumed.last
    if (_going_on(np.zeros_like(queue), first, last, np.zeros_like(of_silent), of_silent) > 0).any():
        return True
    own, by = _pairs_of(consumed.session, events.session[ends])
    at = ends[by]
    others = _going_on(queue, first, last, queue[own], at) - ((first[own] < at) & (at < last[own]))
    return bool((others > 0).any())


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Consumed:
    """For each queue (from 1 on; 0: none) and session that was delivered something from it the first and last row."""

    queue: Ints
    session: Ints
    first: Ints
    last: Ints


def _consumed(events: Index) -> _Consumed:
    rows = events.deliveries
    queue, session, last = distinct_pairs(events.queue[rows] + 1, events.session[rows])
    *_, first = distinct_pairs(events.queue[rows[::-1]] + 1, events.session[rows[::-1]])
    return _Consumed(queue, session, rows[::-1][first], rows[last])


def _silent(events: Index, rows: Ints) -> Ints:
    """Return the ``rows`` whose session neither sent nor was delivered anything."""
    busy = events.session[np.append(events.sends, events.deliveries)]
    return np.asarray(rows[~np.isin(events.session[rows], busy)])


def _pairs_of(values: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Where ``values`` has each of the ``wanted``: places in both, one pair for each."""
    order = np.argsort(values, kind="stable")
    begin, end = (np.searchsorted(values[order], wanted, side) for side in ("left", "right"))
    number = end - begin
    nth = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
    return order[np.repeat(begin, number) + nth], np.repeat(np.arange(len(wanted)), number)


def _going_on(queue: Ints, first: Ints, last: Ints, of: Ints, at: Ints) -> Ints:
    """How many spans of the queue ``of`` have ``at`` inside; one is from ``first`` to ``last`` in each ``queue``."""
    width = np.int64(max(last.max(initial=0), at.max(initial=0)) + 1)
    begun = np.searchsorted(np.sort(queue * width + first), of * width + at, "left")
    ended = np.searchsorted(np.sort(queue * width + last), of * width + at, "right")
    return np.asarray(begun - ended)


def _taken_elsewhere(events: Index) -> bool:
    """Whether a process was delivered from a queue after the session of another process that consumed from it broke."""
    deliveries = events.deliveries
    queue, process, last = distinct_pairs(events.queue[deliveries] + 1, events.process[deliveries])
    end = _breaks(events)[process]
    return bool((end < _last_of_others(queue, deliveries[last])).any())


def _last_of_others(queue: Ints, last: Ints) -> Ints:
    """For each process of a queue (one entry each) the last delivery from it to another; :data:`NONE` without one."""
    order = np.lexsort((last, queue))
    queue, last = queue[order], last[order]
    final = np.append(queue[1:] != queue[:-1], np.ones(min(1, len(queue)), bool))
    latest = last[final][np.cumsum(final) - final]
    same = np.append(np.zeros(min(1, len(queue)), bool), queue[1:] == queue[:-1])
    second = np.where(same, np.roll(last, 1), NONE)
    others = np.empty_like(last)
    others[order] = np.where(final, second, latest)
    return others


def _breaks(events: Index) -> Ints:
    """When a session of each process first broke: its own ``close`` with an ``error``, or a fault that may be its."""
    broken = events.first_of(events.found_broken(), "process")
    first = np.where(broken == NONE, len(events), broken)
    for fault in fault_lines(events, _faults(events), events.deliveries):
        whose = sorted(fault.victims) or slice(None)
        first[whose] = np.minimum(first[whose], fault.moment[0])
    return first


def _faults(events: Index) -> Ints:
    faults = events.places(Event.FAULT)
    kinds = [VOCABULARY["fault"].index(fault) for fault in CONSUMER_FAULTS]
    return np.asarray(faults[np.isin(events.fault[faults], kinds)])


def broken_connections(events: Index) -> tuple[Fault, ...]:
    """The faults that a connection tells of that was found broken, or an answer that is missing."""
    unanswered = {Fault.CONSUMER_LINK_LOSS} if len(events.timeouts[0]) else set()
    return tuple(fault for fault, rows in events.lost_links.items() if len(rows) or fault in unanswered)
