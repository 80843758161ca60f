"""What happened around a message while it lived: faults, connections that broke, sessions that were closed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import Final

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT
from ackfsm.history.index import Index
from ackfsm.history.joins import NONE, distinct_pairs
from ackfsm.history_format import ACKNOWLEDGE_TIMEOUT, EVENTS, Event
from ackfsm.terms import Fault
from ackfsm.verify.context.signs import BROKEN, CONSUMER_CLOSED

__all__ = ["EFFECT", "Circumstance", "Interruptions", "circumstances"]

EFFECT: Final = 10**9
"""Nanoseconds.  So long after its line a fault may have its effect on what clients read, and longer until it is
repaired: what had arrived is read although the peer is dead.  So long before its line a connection was closed or broke.
"""

OF_MESSAGES: Final = frozenset({Fault.REJECTION, Fault.LISTENER_EXCEPTION})
"""Faults of one message, whose own lines tell of them."""

OF_CONSUMERS: Final = frozenset({Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS})
OF_PRODUCERS: Final = frozenset({Fault.PRODUCER_CRASH, Fault.PRODUCER_LINK_LOSS})

_DIES_WITH: Final = MappingProxyType(
    {Fault.CONSUMER_CRASH: Fault.PRODUCER_CRASH, Fault.PRODUCER_CRASH: Fault.CONSUMER_CRASH}
)
"""A process that consumes and sends dies whole."""

GIVING_BACK: Final = (Event.CLOSE, Event.RECOVER, Event.ROLLBACK, Event.ROLLED_BACK)
KINDS_GIVING_BACK: Final = frozenset({*GIVING_BACK, CONSUMER_CLOSED})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Circumstance:
    """Something that befell a process, or the broker.

    Attributes:
        row: the row of the events that tells it.
        kind: a fault, :data:`BROKEN`, or one of :data:`KINDS_GIVING_BACK`.
        low, high: it happened in this time.
        hit: the processes that it certainly hit; none if it is the broker's.
        suspected: the processes that it may have hit.
        queue: the only queue that it concerns, :data:`ABSENT` if it is any.
        unheard: whether it may have hit a consumer of whom no line tells.
    """

    row: int
    kind: str
    low: int
    high: int
    hit: frozenset[int] = frozenset()
    suspected: frozenset[int] = frozenset()
    queue: int = ABSENT
    unheard: bool = False


def circumstances(events: Index, low: Ints, high: Ints) -> tuple[Circumstance, ...]:
    """All that ``events`` tell, in the order of their rows; ``low`` and ``high`` say when a row happened."""
    return tuple(sorted((*_faults(events), *_ends(events, low, high)), key=lambda each: each.row))


def _ends(events: Index, low: Ints, high: Ints) -> Iterator[Circumstance]:
    """What gives back the messages of a session that its application has not seen."""
    sessions = frozenset(events.closes_of_sessions().tolist())
    for row in events.places(*GIVING_BACK).tolist():
        event = EVENTS[events.event[row]]
        broken, of_session = event is Event.CLOSE and events.errs[row] == 1, event is not Event.CLOSE or row in sessions
        yield Circumstance(
            row=row,
            kind=BROKEN if broken else event.value if of_session else CONSUMER_CLOSED,
            low=int(low[row]),
            high=int(high[row]),
            hit=frozenset({int(events.process[row])}),
            queue=ABSENT if of_session else int(events.queue[row]),
        )


def _faults(events: Index) -> Iterator[Circumstance]:
    """What faults befell; an answer that did not come may have gone with its connection."""
    clients = _Clients(events) if events.outages else None
    failed = frozenset(events.timeouts[0].tolist())
    for each, repair in events.outages:
        of_a_call = each.fault == ACKNOWLEDGE_TIMEOUT
        fault = Fault.CONSUMER_LINK_LOSS if of_a_call else Fault(each.fault)
        row = each.moment[0]
        if fault in OF_MESSAGES or clients is None or (of_a_call and row not in failed):
            continue
        low = int(events.t[row])
        repaired = int(events.t[repair.moment[0]]) if repair else low + EFFECT
        of_clients = fault in OF_CONSUMERS | OF_PRODUCERS
        other_side = None if of_a_call else _DIES_WITH.get(fault)
        certain = each.victims if of_clients and not of_a_call else frozenset()
        suspected = (
            each.victims or clients.suspected(fault, low, repaired) if of_clients and not certain else frozenset()
        )
        found = Circumstance(
            row=row,
            kind=fault.value,
            low=low,
            high=max(repaired, low + EFFECT),
            hit=certain,
            suspected=suspected,
            queue=each.queue,
            unheard=fault in OF_CONSUMERS and not each.victims and not clients.lost(fault, low, repaired),
        )
        yield found
        if other_side is not None:
            yield from clients.on_the_side_of(other_side, found)


class _Clients:
    """Who may have been hit by a fault of clients that does not say whom it hit."""

    def __init__(self, events: Index) -> None:
        self._events = events
        self._producers, self._consumers = (
            frozenset(np.unique(events.process[rows]).tolist()) for rows in (events.sends, events.deliveries)
        )
        closes = events.places(Event.CLOSE)
        self._changed = tuple(self._changes(closes[events.errs[closes] == 1]))
        last = events.last_of(np.arange(len(events)), "process")
        left = np.setdiff1d(last[last != NONE], closes[events.errs[closes] != 1])
        self._silent = dict(zip(events.process[left].tolist(), events.t[left].tolist(), strict=True))
        """The time of the last row of each process that did not end with closing its session in good order."""

    def suspected(self, fault: Fault, low: int, high: int) -> frozenset[int]:
        """The clients that a fault may have hit.

        If some of them lost a session meanwhile, it hit those, or such as were never heard of again.
        """
        everybody, lost = self._everybody(fault), self.lost(fault, low, high)
        gone = {process for process, t in self._silent.items() if t <= high} & everybody
        return frozenset(lost | gone) if lost else everybody

    def lost(self, fault: Fault, low: int, high: int) -> frozenset[int]:
        """Those of the clients whom such a fault hits that lost a session meanwhile."""
        lost = {process for process, begin, end in self._changed if begin <= high and end >= low}
        return self._everybody(fault) & lost

    def on_the_side_of(self, fault: Fault, found: Circumstance) -> Iterator[Circumstance]:
        """What dies there of the processes that consume and send."""
        there = self._everybody(fault)
        hit, suspected = found.hit & there, found.suspected & there
        if hit or suspected:
            yield dataclasses.replace(
                found, kind=fault.value, hit=hit, suspected=suspected, queue=ABSENT, unheard=False
            )

    def _everybody(self, fault: Fault) -> frozenset[int]:
        return self._consumers if fault in OF_CONSUMERS else self._producers

    def _changes(self, broken: Ints) -> Iterator[tuple[int, int, int]]:
        """Processes that lost a session, each with the time between which it did: it broke, or was another one after.

        A session that was closed in good order was not lost.
        """
        events = self._events
        for row in broken.tolist():
            yield int(events.process[row]), int(events.t[row]) - EFFECT, int(events.t[row])
        order = np.argsort(events.process, kind="stable")
        following = np.full(len(events), NONE)
        following[order[:-1]] = np.where(np.diff(events.process[order]) == 0, order[1:], NONE)
        _, _, last = distinct_pairs(events.process, events.session)
        for row in np.setdiff1d(last[following[last] != NONE], events.places(Event.CLOSE)).tolist():
            yield int(events.process[row]), int(events.t[row]), int(events.t[following[row]])


_EVERYBODY = NONE


class Interruptions:
    """The times in which a fault, a broken connection or an act of the application may have hit each process."""

    def __init__(self, found: Iterable[Circumstance]) -> None:
        """``found`` is what happened; faults of producers take nothing away from consumers."""
        spans: dict[int, list[tuple[int, int]]] = {}
        for each in found:
            if each.kind not in OF_PRODUCERS:
                for process in each.hit | each.suspected or {_EVERYBODY}:
                    spans.setdefault(process, []).append((each.low, each.high))
        self._spans = {process: _by_begin(its) for process, its in spans.items()}

    def between(self, process: Ints, begin: Ints, end: Ints) -> Mask:
        """For each ``process`` whether something may have hit it after ``begin`` and before ``end`` (nanoseconds)."""
        found = np.zeros(len(process), bool)
        for whose, (low, latest) in self._spans.items():
            its = np.flatnonzero((process == whose) | (whose == _EVERYBODY))
            before = np.searchsorted(low, end[its], side="left")
            found[its] |= (before > 0) & (latest[before - 1] > begin[its])
        return found


def _by_begin(spans: list[tuple[int, int]]) -> tuple[Ints, Ints]:
    """The begins of ``spans``, ascending, and for each the latest end of those that begin no later."""
    low, high = np.array(sorted(spans), np.int64).T
    return low, np.maximum.accumulate(high)
