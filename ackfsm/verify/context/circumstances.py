"""What happened around a message while it lived: faults, connections that broke, sessions that were closed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT
from ackfsm.history.index import Index
from ackfsm.history.joins import NONE, distinct_pairs
from ackfsm.history_format import ACKNOWLEDGE_TIMEOUT, Event
from ackfsm.tables import Of, Side, SignRow
from ackfsm.terms import Fault
from ackfsm.verify.context.signs import Signs, lines_of

__all__ = ["EFFECT", "Circumstance", "Interruptions", "circumstances"]

EFFECT: Final = 10**9
"""Nanoseconds.  So long after its line a fault may have its effect on what clients read, and longer until it is
repaired: what had arrived is read although the peer is dead.  So long before its line a connection was closed or broke.
"""

OF_MESSAGES: Final = frozenset({Fault.REJECTION, Fault.LISTENER_EXCEPTION})
"""Faults of one message, whose own lines tell of them."""

OF_CONSUMERS: Final = frozenset({Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS})
OF_PRODUCERS: Final = frozenset({Fault.PRODUCER_CRASH, Fault.PRODUCER_LINK_LOSS})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Circumstance:
    """Something that befell a process, or the broker.

    Attributes:
        row: the row of the events that tells it.
        sign: what it is to a message.
        low, high: it happened in this time.
        hit: the processes that it certainly hit; none if it is the broker's.
        suspected: the processes that it may have hit.
        queue: the only queue that it concerns, :data:`ABSENT` if it is any.
        unheard: whether it may have hit a consumer of whom no line tells.
    """

    row: int
    sign: SignRow
    low: int
    high: int
    hit: frozenset[int] = frozenset()
    suspected: frozenset[int] = frozenset()
    queue: int = ABSENT
    unheard: bool = False

    @property
    def takes_away(self) -> bool:
        """Whether a consumer has to come back after it: a fault, or the end of its session."""
        return not self.sign.gives_back or (self.sign.line == Event.CLOSE and self.sign.of is Of.SESSION)


def circumstances(events: Index, signs: Signs, low: Ints, high: Ints) -> tuple[Circumstance, ...]:
    """All that ``events`` tell, in the order of their rows; ``low`` and ``high`` say when a row happened."""
    rows = [row for row in signs.rows if row.only is None and row.of is not Of.UNTOLD and row.is_around]
    ends = (each for row in rows if row.line != Event.FAULT for each in _ends(events, row, low, high))
    faults = _faults(events, [row for row in rows if row.line == Event.FAULT])
    return tuple(sorted((*faults, *ends), key=lambda each: each.row))


def _ends(events: Index, sign: SignRow, low: Ints, high: Ints) -> Iterator[Circumstance]:
    """What ends a session, or gives back what its application has not seen."""
    for row in lines_of(events, sign).tolist():
        yield Circumstance(
            row=row,
            sign=sign,
            low=int(low[row]),
            high=int(high[row]),
            hit=frozenset({int(events.process[row])}),
            queue=int(events.queue[row]) if sign.of is Of.CONSUMER else ABSENT,
        )


def _faults(events: Index, signs: Sequence[SignRow]) -> Iterator[Circumstance]:
    """What faults befell; an answer that did not come may have gone with its connection."""
    clients = _Clients(events) if events.outages else None
    failed = frozenset(events.timeouts[0].tolist())
    for each, repair in events.outages:
        row, of_a_call = each.moment[0], each.fault == ACKNOWLEDGE_TIMEOUT
        its = [sign for sign in signs if each.fault in sign.fields["fault"]]
        if not its or clients is None or (of_a_call and row not in failed):
            continue
        low = int(events.t[row])
        repaired = int(events.t[repair.moment[0]]) if repair else low + EFFECT
        whose = next(sign.side for sign in its if sign.name == each.fault)
        certain = frozenset[int]() if of_a_call or whose is Side.BROKER else each.victims
        suspected = frozenset[int]()
        if whose is not Side.BROKER and not certain:
            suspected = each.victims or clients.suspected(whose, low, repaired)
        unheard = whose is Side.CONSUMER and not each.victims and not clients.lost(whose, low, repaired)
        for sign in its:
            there = clients.everybody(sign.side)
            own = sign.side is whose
            hit = certain if own else certain & there
            perhaps = suspected if own else suspected & there
            if own or hit or perhaps:
                yield Circumstance(
                    row=row,
                    sign=sign,
                    low=low,
                    high=max(repaired, low + EFFECT),
                    hit=hit,
                    suspected=perhaps,
                    queue=each.queue if own else ABSENT,
                    unheard=unheard and own,
                )


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

    def suspected(self, side: Side, low: int, high: int) -> frozenset[int]:
        """The clients that a fault of that side may have hit.

        If some of them lost a session meanwhile, it hit those, or such as were never heard of again.
        """
        everybody, lost = self.everybody(side), self.lost(side, low, high)
        gone = {process for process, t in self._silent.items() if t <= high} & everybody
        return frozenset(lost | gone) if lost else everybody

    def lost(self, side: Side, low: int, high: int) -> frozenset[int]:
        """Those of the clients of that side that lost a session meanwhile."""
        lost = {process for process, begin, end in self._changed if begin <= high and end >= low}
        return self.everybody(side) & lost

    def everybody(self, side: Side) -> frozenset[int]:
        """The clients of that side."""
        return self._consumers if side is Side.CONSUMER else self._producers

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
            if each.sign.side is not Side.PRODUCER:
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
