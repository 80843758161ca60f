"""Optional events of ``spec/events.yaml`` that explain redeliveries or another order in a history."""

from __future__ import annotations

import dataclasses

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import Events
from ackfsm.history.joins import NONE, distinct_pairs, last_before
from ackfsm.history.victims import fault_lines
from ackfsm.history_format import VOCABULARY, Event
from ackfsm.tables import names
from ackfsm.terms import Fault

__all__ = [
    "CONSUMER_FAULTS",
    "RECOVER",
    "TAKEN_ELSEWHERE",
    "given_back_beside",
    "inferred_actions",
]

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


def inferred_actions(events: Events) -> tuple[str, ...]:
    """The optional events that ``events`` show, in the order of their names."""
    shown = {RECOVER: _recovered(events) or _closed_early(events), TAKEN_ELSEWHERE: _taken_elsewhere(events)}
    return tuple(name for name, seen in shown.items() if seen)


def _recovered(events: Events) -> bool:
    """Whether a session of a delivery was recovered, rolled back or closed before the message's next delivery.

    A ``close`` with an ``error`` is a connection that broke, which is no will of the application.
    """
    deliveries = events.places(Event.DELIVERED)
    order = np.argsort(events.message[deliveries], kind="stable")
    ordered = deliveries[order]
    again = events.message[ordered[1:]] == events.message[ordered[:-1]]
    before, after = ordered[:-1][again], ordered[1:][again]
    ends = np.union1d(events.places(*_RECOVERING_SESSIONS), np.setdiff1d(events.closes_of_sessions(), _broken(events)))
    found = last_before(events.session[before], after, events.session[ends], ends)
    explained = (found != NONE) & (ends[found] > before) if len(ends) else np.zeros(0, bool)
    return bool(explained.any())


def _closed_early(events: Events) -> bool:
    """Whether a consumer's session was closed while a message waited that another one overtook, or that never came.

    The consumer may have prefetched it, or have had it without a line.  Of a session that neither sent nor was
    delivered anything the queue is not known: it may be any.
    """
    closes = np.setdiff1d(events.places(Event.CLOSE), _broken(events))
    deliveries, sends = events.places(Event.DELIVERED), events.places(*_SENDS)
    waits = _waits(events)
    silent = closes[~np.isin(events.session[closes], events.session[np.append(deliveries, sends)])]
    queue, session, _ = distinct_pairs(events.queue[deliveries] + 1, events.session[deliveries] + 1)
    own, by = _pairs_of(session, events.session[closes] + 1)
    anywhere = dataclasses.replace(waits, queue=np.zeros_like(waits.queue))
    return anywhere.had_by(events, np.zeros_like(silent), silent) or waits.had_by(events, queue[own], closes[by])


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

    def had_by(self, events: Events, queue: Ints, rows: Ints) -> bool:
        """Whether at one of ``rows`` a message of its ``queue`` waits for the process of that row, or for nobody."""
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


def _waits(events: Events) -> _Waits:
    """Those of messages that others overtook, and of those that were never delivered.

    Of the latter not those that were refused, that came to their end, or that were sent in a transaction, which may
    have been rolled back.
    """
    count = events.count_of("message")
    sends, deliveries = events.places(*_SENDS), events.places(Event.DELIVERED)
    first, last = (np.full(count, len(events), np.int64) for _ in range(2))
    np.minimum.at(first, events.message[sends], sends)
    np.minimum.at(last, events.message[deliveries], deliveries)
    done = np.zeros(count, bool)
    done[events.message[events.places(*_DONE)]] = True
    done[events.message[sends[events.transaction[sends] != NONE]]] = True
    queue = np.zeros(count, np.int64)
    queue[events.message[sends]] = events.queue[sends] + 1  # that of the last one
    waits = np.flatnonzero((first < last) & np.where(last < len(events), _overtaken(queue, first, last), ~done))
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


def given_back_beside(events: Events, *, thrown: bool) -> bool:
    """Whether a session gave back what it had, or may have had, between two deliveries of another one from its queue.

    That is where it was recovered, rolled back or closed, or, if ``thrown``, where its listener threw.  What it had
    prefetched and never seen then goes to the other one.  A session that neither sent nor was delivered anything may
    have consumed from any queue.
    """
    ends = np.setdiff1d(events.places(*_RECOVERING, *([Event.FAILED] if thrown else [])), _broken(events))
    deliveries = events.places(Event.DELIVERED)
    queue, session, last = distinct_pairs(events.queue[deliveries] + 1, events.session[deliveries] + 1)
    *_, from_end = distinct_pairs(events.queue[deliveries[::-1]] + 1, events.session[deliveries[::-1]] + 1)
    first, last = deliveries[::-1][from_end], deliveries[last]
    busy = np.union1d(session, events.session[events.places(*_SENDS)] + 1)
    of_silent = ends[~np.isin(events.session[ends] + 1, busy)]
    if (_going_on(np.zeros_like(queue), first, last, np.zeros_like(of_silent), of_silent) > 0).any():
        return True
    own, by = _pairs_of(session, events.session[ends] + 1)
    at = ends[by]
    others = _going_on(queue, first, last, queue[own], at) - ((first[own] < at) & (at < last[own]))
    return bool((others > 0).any())


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


def _taken_elsewhere(events: Events) -> bool:
    """Whether a process was delivered from a queue after the session of another process that consumed from it broke."""
    deliveries = events.places(Event.DELIVERED)
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


def _breaks(events: Events) -> Ints:
    """When a session of each process first broke: its own ``close`` with an ``error``, or a fault that may be its."""
    broken = _broken(events)[::-1]
    first = np.full(events.count_of("process"), len(events), np.int64)
    first[events.process[broken]] = broken  # the last assignment wins
    for fault in fault_lines(events, _faults(events), events.places(Event.DELIVERED)):
        whose = sorted(fault.victims) or slice(None)
        first[whose] = np.minimum(first[whose], fault.moment[0])
    return first


def _broken(events: Events) -> Ints:
    closes = events.places(Event.CLOSE)
    return np.asarray(closes[events.errs[closes] == 1])


def _faults(events: Events) -> Ints:
    faults = events.places(Event.FAULT)
    kinds = [VOCABULARY["fault"].index(fault) for fault in CONSUMER_FAULTS]
    return np.asarray(faults[np.isin(events.fault[faults], kinds)])
