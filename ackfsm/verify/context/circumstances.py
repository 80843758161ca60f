"""What happened around a message while it lived: faults, connections that broke, sessions that were closed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT
from ackfsm.history.format import ACKNOWLEDGE_TIMEOUT, Event
from ackfsm.history.index import Index
from ackfsm.history.joins import NONE, distinct_pairs
from ackfsm.tables import Of, Side, SignRow
from ackfsm.terms import Fault
from ackfsm.verify.context.signs import Signs, lines_of

__all__ = ["EFFECT", "Circumstances", "Interruptions", "circumstances", "takes_away"]

EFFECT: Final = 10**9
"""Nanoseconds.  So long after its line a fault may have its effect on what clients read, and longer until it is
repaired: what had arrived is read although the peer is dead.  So long before its line a connection was closed or broke.
"""

OF_MESSAGES: Final = frozenset({Fault.REJECTION, Fault.LISTENER_EXCEPTION})
"""Faults of one message, whose own lines tell of them."""

OF_CONSUMERS: Final = frozenset({Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS})
OF_PRODUCERS: Final = frozenset({Fault.PRODUCER_CRASH, Fault.PRODUCER_LINK_LOSS})


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Circumstances:
    """What befell processes, or the broker, in the order of the rows that tell it: one entry each.

    Attributes:
        row: the row of the events that tells it.
        sign: the code of what it is to a message.
        low, high: it happened in this time (nanoseconds).
        queue: the only queue that it concerns, :data:`ABSENT` if it is any.
        unheard: whether it may have hit a consumer of whom no line tells.
        whose, process: the circumstances that may have hit a process, and that process: one entry for each pair.
        sure: whether it certainly did.
    """

    row: Ints
    sign: Ints
    low: Ints
    high: Ints
    queue: Ints
    unheard: Mask
    whose: Ints
    process: Ints
    sure: Mask

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def joined(cls, parts: Sequence[Circumstances]) -> Circumstances:
        """All of ``parts``, which are one or more, in order."""
        begin = np.cumsum([0, *map(len, parts)])
        moved = [dataclasses.replace(part, whose=part.whose + first) for part, first in zip(parts, begin, strict=False)]
        columns = {
            field.name: np.concatenate([getattr(part, field.name) for part in moved])
            for field in dataclasses.fields(cls)
        }
        order = np.argsort(columns["row"], kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        found = cls(**columns)
        return cls(
            **{name: column[order] for name, column in columns.items() if name not in _OF_PROCESSES},
            whose=rank[found.whose],
            process=found.process,
            sure=found.sure,
        )

    @classmethod
    def of_rows(cls, row: Ints, sign: int, moments: tuple[Ints, Ints], process: Ints, **more: Ints) -> Circumstances:
        """Return one circumstance for each ``row``, at its ``moments`` (ns), of one ``process``.

        ``more`` is the queue that it concerns, and whether it is ``sure`` that it hit the process.
        """
        count = len(row)
        return cls(
            row=row,
            sign=np.full(count, sign),
            low=moments[0],
            high=moments[1],
            queue=more.get("queue", np.full(count, ABSENT, np.int64)),
            unheard=np.zeros(count, np.bool_),
            whose=np.arange(count),
            process=process.astype(np.int64),
            sure=np.asarray(more.get("sure", np.ones(count)), np.bool_),
        )


_OF_PROCESSES: Final = ("whose", "process", "sure")


def takes_away(sign: SignRow) -> bool:
    """Whether a consumer has to come back after a circumstance: a fault, or the end of its session."""
    return not sign.gives_back or (sign.line == Event.CLOSE and sign.of is Of.SESSION)


def circumstances(events: Index, signs: Signs, low: Ints, high: Ints) -> Circumstances:
    """All that ``events`` tell; ``low`` and ``high`` say when a row happened."""
    codes = signs.those(lambda row: row.only is None and row.of is not Of.UNTOLD and row.is_around)
    ends = [_ends(events, signs, code, low, high) for code in codes if signs.rows[code].line != Event.FAULT]
    return Circumstances.joined([_faults(events, signs, codes), *ends])


def _ends(events: Index, signs: Signs, code: int, low: Ints, high: Ints) -> Circumstances:
    """What ends a session, or gives back what its application has not seen."""
    rows = lines_of(events, signs.rows[code])
    queue = {"queue": events.queue[rows].astype(np.int64)} if signs.rows[code].of is Of.CONSUMER else {}
    return Circumstances.of_rows(rows, code, (low[rows], high[rows]), events.process[rows], **queue)


def _faults(events: Index, signs: Signs, codes: Sequence[int]) -> Circumstances:
    """What faults befell; an answer that did not come may have gone with its connection."""
    found, hit = list[tuple[int, int, int, int, int, bool]](), list[tuple[int, int, bool]]()
    for entry, certain, perhaps in _hits(events, signs, codes) if events.outages else ():
        hit += [(len(found), each, True) for each in certain]
        hit += [(len(found), each, False) for each in perhaps - certain]
        found.append(entry)
    row, sign, low, high, queue, unheard = np.array(found, np.int64).reshape(-1, 6).T
    whose, process, sure = np.array(hit, np.int64).reshape(-1, 3).T
    return Circumstances(
        row=row,
        sign=sign,
        low=low,
        high=high,
        queue=queue,
        unheard=unheard.astype(np.bool_),
        whose=whose,
        process=process,
        sure=sure.astype(np.bool_),
    )


def _hits(
    events: Index, signs: Signs, codes: Sequence[int]
) -> Iterator[tuple[tuple[int, int, int, int, int, bool], frozenset[int], frozenset[int]]]:
    """The entries of faults, as :class:`Circumstances` has them, and the processes that each did or may have hit."""
    clients, failed = _Clients(events), frozenset(events.timeouts[0].tolist())
    for each, repair in events.outages:
        row, of_a_call = each.moment[0], each.fault == ACKNOWLEDGE_TIMEOUT
        its = [code for code in codes if each.fault in signs.rows[code].fields.get("fault", ())]
        if not its or (of_a_call and row not in failed):
            continue
        low = int(events.t[row])
        repaired = int(events.t[repair.moment[0]]) if repair else low + EFFECT
        whose = next(signs.rows[code].side for code in its if signs.names[code] == each.fault)
        certain = frozenset[int]() if of_a_call or whose is Side.BROKER else each.victims
        suspected = frozenset[int]()
        if whose is not Side.BROKER and not certain:
            suspected = each.victims or clients.suspected(whose, low, repaired)
        unheard = whose is Side.CONSUMER and not each.victims and not clients.lost(whose, low, repaired)
        for code in its:
            own, there = signs.rows[code].side is whose, clients.everybody(signs.rows[code].side)
            hit, perhaps = (certain, suspected) if own else (certain & there, suspected & there)
            if own or hit or perhaps:
                queue = each.queue if own else ABSENT
                yield (row, code, low, max(repaired, low + EFFECT), queue, unheard and own), hit, perhaps


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
        """Return the clients of that side that lost a session from ``low`` to ``high``."""
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


class Interruptions:
    """The times in which a fault, a broken connection or an act of the application may have hit each process."""

    def __init__(self, found: Circumstances, signs: Signs) -> None:
        """``found`` is what happened; faults of producers take nothing away from consumers."""
        ours = ~np.isin(found.sign, signs.those(lambda row: row.side is Side.PRODUCER))
        of_all = np.flatnonzero(ours & (np.bincount(found.whose, minlength=len(found)) == 0))
        hits = ours[found.whose]
        whose = np.concatenate([of_all, found.whose[hits]])
        process = np.concatenate([np.full(len(of_all), _EVERYBODY), found.process[hits]])
        order = np.lexsort((found.high[whose], found.low[whose], process))
        starts = np.flatnonzero(np.diff(process[order], prepend=_EVERYBODY - 1))
        spans = np.split(whose[order], starts[1:]) if len(order) else []
        self._spans = {
            who: (found.low[its], np.maximum.accumulate(found.high[its]))
            for who, its in zip(process[order][starts].tolist(), spans, strict=True)
        }
        """By process the begins of the spans, ascending, and for each the latest end of those that begin no later."""

    def between(self, process: Ints, begin: Ints, end: Ints) -> Mask:
        """For each ``process`` whether something may have hit it after ``begin`` and before ``end`` (nanoseconds)."""
        found = np.zeros(len(process), bool)
        for whose, (low, latest) in self._spans.items():
            its = np.flatnonzero((process == whose) | (whose == _EVERYBODY))
            before = np.searchsorted(low, end[its], side="left")
            found[its] |= (before > 0) & (latest[before - 1] > begin[its])
        return found


_EVERYBODY: Final = NONE
