"""What happened around messages while they lived, as tokens: faults, broken connections, closed sessions."""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT
from ackfsm.history.joins import NEVER, Pairs, spans_of
from ackfsm.tables import Certainty, Of, Side
from ackfsm.verify.conformance.lines import Lines
from ackfsm.verify.conformance.tokens import OTHERS, Tokens
from ackfsm.verify.context.circumstances import takes_away

_FEW_CONSUMERS: Final = 3
"""So many consumers of a queue are told apart in the life of a message that they were never handed."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Lifetimes:
    """When messages lived: their codes, and for each the moments of its begin and its end (nanoseconds)."""

    message: Ints
    begin: Ints
    end: Ints


def around(lines: Lines, lived: Lifetimes, *, names_all: bool, with_absences: bool) -> Tokens:
    """What befell the messages that ``lived``, or somebody who had to do with them, meanwhile.

    With ``names_all`` a consumer of a message's queue is told apart although it was never handed the message, if the
    consumers of the queue are few; without, these are all one.  With ``with_absences`` also what befell before a
    message lived, after which some consumer of its queue was not seen back.
    """
    which, place = _meanwhile(lines, lived)
    if with_absences:
        earlier = _absences(lines, lived)
        which, place = np.concatenate([which, earlier[0]]), np.concatenate([place, earlier[1]])
    message, queue = lived.message[place], lines.circumstances.queue[which]
    kept = (queue == ABSENT) | (lines.queues[message] == queue)
    kept &= ~_untouched(lines, message, lines.circumstances.row[which])
    return _Befallen(lines, which[kept], message[kept]).tokens(names_all=names_all)


def _meanwhile(lines: Lines, lived: Lifetimes) -> tuple[Ints, Ints]:
    """The circumstances that happened while messages lived: their numbers, and the places of the messages.

    Of two spans that overlap the later one begins within the earlier.
    """
    found = lines.circumstances
    by_low, by_begin = np.argsort(found.low, kind="stable"), np.argsort(lived.begin, kind="stable")
    low, begin = found.low[by_low], lived.begin[by_begin]
    within = (np.searchsorted(low, lived.begin, side="left"), np.searchsorted(low, lived.end, side="right"))
    place, began = spans_of(*within)
    later = (np.searchsorted(begin, found.low, side="right"), np.searchsorted(begin, found.high, side="right"))
    which, sent = spans_of(*later)
    return np.concatenate([by_low[began], which]), np.concatenate([place, by_begin[sent]])


def _absences(lines: Lines, lived: Lifetimes) -> tuple[Ints, Ints]:
    """The circumstances that were over before messages lived, from which a consumer may not have come back by then."""
    found, parts = lines.circumstances, []
    taking = np.flatnonzero(np.isin(found.sign, lines.signs.those(takes_away)))
    for each in taking.tolist():
        away = _away_until(lines, each)[lines.queues[lived.message]]
        place = np.flatnonzero((found.high[each] < lived.begin) & (lived.begin <= away))
        parts.append((np.full(len(place), each), place))
    which, places = zip(*parts, strict=True) if parts else ([], [])
    return tuple(np.concatenate([np.empty(0, np.int64), *its]) for its in (which, places))  # type: ignore[return-value]


def _away_until(lines: Lines, each: int) -> Ints:
    """For each queue, and for none, until when a consumer may have been away that a circumstance hit.

    It is back when it is handed a message of the queue; who never is, may be away to the end.
    """
    befell, visits = lines.circumstances, lines.visits
    of_the_broker = lines.signs.rows[befell.sign[each]].of is Of.ALL
    hit = befell.process[befell.whose == each]
    found = np.full(lines.events.count_of("queue") + 1, -NEVER, np.int64)
    if of_the_broker or befell.unheard[each] or np.isin(hit, lines.idle).any():
        found[:] = NEVER
    chosen = slice(None) if of_the_broker else np.isin(visits.process, hit)
    queue, back = visits.queue[chosen], visits.next_after(int(befell.high[each]))[chosen]
    if of_the_broker:
        found[queue] = -NEVER
    np.maximum.at(found, queue, back)
    return found


def _untouched(lines: Lines, message: Ints, row: Ints) -> Mask:
    """Which messages are then in a prepared transaction, which outlives whatever befalls its session."""
    spans = lines.prepared[message]
    return np.asarray(((spans[..., 0] < row[:, None]) & (row[:, None] < spans[..., 1])).any(axis=1))


class _Befallen:
    """Pairs of a circumstance and a message that lived then."""

    def __init__(self, lines: Lines, which: Ints, message: Ints) -> None:
        self._lines, self._which, self._message = lines, which, message
        found, signs = lines.circumstances, lines.signs
        self._sign = found.sign[which]
        self._hit = Pairs(found.whose, found.process)
        giving_back = np.isin(found.sign[found.whose], signs.those(lambda row: row.gives_back))
        sure = found.sure & ~(giving_back & self._of(Side.CONSUMER, found.sign[found.whose]))
        self._surely = Pairs(found.whose[sure], found.process[sure])

    def _of(self, side: Side, sign: Ints) -> Mask:
        return np.isin(sign, self._lines.signs.those(lambda row: row.side is side))

    def tokens(self, *, names_all: bool) -> Tokens:
        """What they are to the messages."""
        of_broker, of_producers, of_consumers = (
            np.flatnonzero(self._of(side, self._sign)) for side in (Side.BROKER, Side.PRODUCER, Side.CONSUMER)
        )
        return Tokens.joined(
            [self._tokens(of_broker), self._of_senders(of_producers), *self._of_consumers(of_consumers, names_all)]
        )

    def _tokens(self, pair: Ints, *more: Ints | int) -> Tokens:
        """One token for each ``pair``; ``more`` are the processes and the certainties."""
        row = self._lines.circumstances.row[self._which[pair]]
        return self._lines.tokens(self._message[pair], row, self._sign[pair], *more)

    def _of_senders(self, pair: Ints) -> Tokens:
        """What befell the one who sent a message; if several did, it may have been another."""
        at, process = self._that_were_hit(pair, *self._lines.senders.of(self._message[pair]))
        pair = pair[at]
        sure = self._surely.hold(self._which[pair], process) & (self._lines.senders.count(self._message[pair]) == 1)
        return dataclasses.replace(self._tokens(pair), certainty=_certain(sure))

    def _of_consumers(self, pair: Ints, names_all: bool) -> list[Tokens]:  # noqa: FBT001 - of this class
        """Those who were handed a message, then others of its queue, by name where that is asked and they are few."""
        lines, queue = self._lines, self._lines.queues[self._message[pair]]
        at, process = self._that_were_hit(pair, *lines.handed.of(self._message[pair]))
        sure = self._surely.hold(self._which[pair[at]], process)
        parts = [self._tokens(pair[at], process, _certain(sure))]
        known = at[lines.consumers_of.hold(queue[at], process)]
        if names_all:
            few = np.flatnonzero(lines.consumers[queue] <= _FEW_CONSUMERS)
            at, process = lines.consumers_of.of(queue[few])
            at, process = self._that_were_hit(pair, few[at], process)
            others = ~lines.handed.hold(self._message[pair[at]], process)
            at, process = at[others], process[others]
            parts.append(self._tokens(pair[at], process, int(Certainty.PERHAPS)))
            known = np.concatenate([known, at])
        beside = self._suspects_of_queues(pair) > np.bincount(known, minlength=len(pair))
        elsewhere = pair[lines.circumstances.unheard[self._which[pair]] | beside]
        return [*parts, self._tokens(elsewhere, OTHERS, int(Certainty.PERHAPS))]

    def _that_were_hit(self, pair: Ints, at: Ints, process: Ints) -> tuple[Ints, Ints]:
        """Return the processes, by place of ``pair``, that its circumstance may have hit."""
        hit = self._hit.hold(self._which[pair[at]], process)
        return at[hit], process[hit]

    def _suspects_of_queues(self, pair: Ints) -> Ints:
        """How many of those whom the circumstance of each ``pair`` may have hit may consume from the message's queue.

        Who did nothing else may have consumed anywhere.
        """
        lines, width = self._lines, np.int64(self._lines.events.count_of("queue") + 1)
        at, queue = lines.queues_of.of(self._hit.other)
        consumed = np.sort(self._hit.one[at] * width + queue + 1)
        asked = self._which[pair] * width + lines.queues[self._message[pair]] + 1
        consuming = np.searchsorted(consumed, asked, side="right") - np.searchsorted(consumed, asked)
        idle = np.bincount(self._hit.one[np.isin(self._hit.other, lines.idle)], minlength=len(lines.circumstances))
        return np.asarray(consuming + idle[self._which[pair]], np.int64)


def _certain(sure: Mask) -> Ints:
    return np.where(sure, int(Certainty.CERTAIN), int(Certainty.PERHAPS))
