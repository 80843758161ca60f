"""The life of each message, and of each pair, as a history records it; equal lives have the same number.

To the tokens of the lines (:mod:`ackfsm.verify.conformance.lines`) is added what happened around a message while it
lived: faults, connections that broke, sessions that were closed.  The tokens of each message, in the order of the ends
of their intervals, become a number that equal lives share.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from enum import IntFlag
from typing import Final

import numpy as np
import numpy.typing as npt

from ackfsm.history.arrays import Ints, Mask, mixed
from ackfsm.history.columns import ABSENT
from ackfsm.history.format import Event
from ackfsm.history.index import Index
from ackfsm.history.joins import NEVER, NONE, distinct_pairs
from ackfsm.tables import Certainty, Side
from ackfsm.verify.conformance.around import Lifetimes, around
from ackfsm.verify.conformance.life import Heard, Life
from ackfsm.verify.conformance.lines import ANY_TIME, Lines, Moments
from ackfsm.verify.conformance.tokens import NOBODY, OTHERS, Tokens, merged, of_pairs, until_the_last
from ackfsm.verify.context.circumstances import Circumstances
from ackfsm.verify.context.signs import Sign, Signs


class Facts(IntFlag):
    """The records of a message beside its signs and their order."""

    AT_REST = 1
    """Its queue was seen drained after its last send."""
    NOT_PROCESSED = 2
    """It was handed to somebody who never says what is processed, or of whom another one says it."""
    OF_SEVERAL_QUEUES = 4
    """It was handed over from several queues, each of which has a copy of its own."""
    SENT = 8
    SENT_IN_TRANSACTION = 16
    HANDED_OVER = 32
    CONSUMED_IN_TRANSACTION = 64
    BESIDE = 128
    """All consumers that something befell are in its life, and its queue has more of them than its life."""
    OF_SEVERAL_SENDERS = 256
    """Of a pair: several sessions sent its messages, so that these have no order (JMS 6.2.9)."""
    SENT_TOGETHER = 512
    """Of a pair: each was sent once, and in the same transaction."""
    SETTLED_IN_LINES = 2048
    """All processes that it was handed to, all in transactions or all without, write down what they settle."""
    MAY_BE_SHARED = 4096
    """Several consumers may have been handed messages of its queue, some of whom no line tells."""
    HANDED_TOGETHER = 8192
    """Of a pair: a session was handed one while its consumer was not done with the other."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Lives:
    """The lives of messages, and which are the same.

    Attributes:
        message: the messages, ascending.
        number: for each message the number of its life; those of equal lives are equal.
        first: for each number the place in ``message`` of the first that has it.
    """

    message: Ints
    number: Ints
    first: Ints
    _tokens: Tokens
    _consumer: Ints
    _lane: Ints
    _reach: Ints
    _start: Ints
    _facts: Ints
    _mode: Ints
    _signs: Signs

    def rows(self, places: Ints, sign: Ints) -> Ints:
        """For the messages at ``places`` the row that tells the sign of that number; -1 where there are not so many."""
        row = np.append(self._tokens.row, NONE)
        end = np.append(self._start[1:], len(self._lane))[places]
        found = self._start[places] + sign
        return np.asarray(np.where(found < end, row[np.minimum(found, len(row) - 1)], NONE), np.int64)

    def _sign(self, code: int, consumer: int, certainty: int) -> Sign:
        of, sign = divmod(code, len(self._signs))
        return Sign(self._signs.names[sign], consumer, Certainty(certainty), of)

    def lived(self, place: int) -> Lived:
        """The life of the message at ``place``."""
        end = self._start[place + 1] if place + 1 < len(self._start) else len(self._lane)
        span, tokens = slice(int(self._start[place]), int(end)), self._tokens
        consumers = self._consumer[span].tolist()
        columns = (tokens.sign, tokens.certainty, self._lane, self._reach)
        heard = tuple(
            Heard(self._sign(sign, consumer, certainty), lane, reach)
            for consumer, sign, certainty, lane, reach in zip(
                consumers, *(column[span].tolist() for column in columns), strict=True
            )
        )
        facts = Facts(int(self._facts[place]))
        process = dict(zip(consumers, tokens.process[span].tolist(), strict=True))
        return Lived(
            message=int(self.message[place]),
            life=Life(heard, Facts.AT_REST in facts),
            facts=facts,
            mode=int(self._mode[place]),
            rows=tuple(tokens.row[span].tolist()),
            consumers=tuple(process[number] for number in sorted(process) if number),
        )


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Lived:
    """The life of one message.

    Attributes:
        message: that message, by its code.
        life: what was heard.
        facts: what its lines tell beside their order.
        mode: the place of its delivery mode in the vocabulary, :data:`ABSENT` if no line says it.
        rows: for each sign the row of the events that tells it.
        consumers: the processes that the numbers of its consumers stand for; the last may be :data:`OTHERS`.
    """

    message: int
    life: Life
    facts: Facts
    mode: int
    rows: tuple[int, ...]
    consumers: tuple[int, ...]

    def with_others(self) -> Lived:
        """The same with one more consumer, which stands for all of its queue that had nothing to do with it."""
        return dataclasses.replace(self, consumers=(*self.consumers, OTHERS), facts=self.facts & ~Facts.BESIDE)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """The records of single messages, or of pairs of them.

    For each message there are its :class:`Facts`, and when it began to live and ceased.
    """

    _lines: Lines
    _tokens: Tokens
    facts: Ints
    _begin: Ints
    _end: Ints
    _names_all: bool

    @classmethod
    def of_messages(  # noqa: PLR0913 - by name
        cls,
        events: Index,
        silent: Collection[int],
        skew: int,
        signs: Signs,
        *,
        names_all: bool = False,
        recovers: bool = False,
        keeps: bool = False,
    ) -> Recorded:
        """Return the records of all messages; ``silent`` processes never write ``processed``, ``skew`` is in ns.

        ``recovers`` says that the library recovers a session whose listener has thrown, ``keeps`` that a session keeps
        what its transaction is rolled back with.

        With ``names_all`` each consumer of a message's queue is one of its own in the message's life, if it befell
        something, although it was never handed the message; without, these are all one (:data:`OTHERS`).
        """
        lines = Lines(events, skew, signs, recovers=recovers, keeps=keeps)
        tokens = lines.of_messages()
        facts = _facts(events, tokens, silent, signs)
        facts[lines.may_be_shared()[lines.queues]] |= int(Facts.MAY_BE_SHARED)
        facts[events.message[lines.by_workers]] |= int(Facts.NOT_PROCESSED)
        facts[lines.settled_in_lines()] |= int(Facts.SETTLED_IN_LINES)
        spans = _spans(events.count_of("message"), events, tokens, lines.moments)
        return cls(lines, tokens, facts, *spans, names_all)

    def only(self, messages: Mask) -> Recorded:
        """Return the records of the chosen ``messages``, a mask."""
        return dataclasses.replace(self, _tokens=self._tokens.where(messages[self._tokens.message]))

    def of_pairs(self, first: Ints, second: Ints) -> Recorded:
        """Return the records of pairs of messages, which have numbers from 0 on."""
        lines = self._lines.of_pairs(first, second)
        signs = self._lines.signs
        tokens = until_the_last(of_pairs(self._tokens, first, second, signs), len(first), signs)
        both, either = self.facts[first] & self.facts[second], self.facts[first] | self.facts[second]
        facts = np.where(both & int(Facts.AT_REST), either, either & ~int(Facts.AT_REST))
        facts |= _sent_how(lines.events, first, second)
        facts |= self._lines.handed_together(first, second) * int(Facts.HANDED_TOGETHER)
        spans = _spans(len(first), lines.events, tokens, lines.moments)
        return Recorded(lines, tokens, facts, *spans, self._names_all)

    def when(self, rows: Sequence[int]) -> tuple[Ints, Ints]:
        """From when to when each of ``rows`` happened."""
        its, moments = np.asarray(rows, np.int64), self._lines.moments
        return moments.low[its], moments.high[its]

    def producer(self, message: int) -> int:
        """The process that sent ``message`` last; :data:`NOBODY` if none did."""
        return int(self._lines.producers[message])

    def others(self, lived: Lived) -> tuple[int, ...]:
        """The consumers of its queue that a message was never handed to."""
        return self._lines.consumers_beside(lived.message, lived.consumers)

    def compete(self) -> bool:
        """Whether some queue has several consumers."""
        return self._lines.compete()

    def in_order(self) -> Lives:
        """The lives of all messages, their signs in the order of the lines, with what happened around them meanwhile.

        That is one of the orders in which they may have happened.
        """
        tokens = Tokens.joined([self._tokens, self._around(self._tokens, self._end)])
        moment = tokens.message * np.int64(len(self._lines.events) + 1) + tokens.row
        sign = tokens.sign % len(self._lines.signs)
        kind = sign * np.int64(1 << 32) + tokens.process
        return self._grouped(tokens.where(np.lexsort((kind, moment))))

    def lives(self, messages: Ints, *, to_the_end: bool = False) -> Lives:
        """The lives of ``messages`` (ascending) in every order that they allow, with what happened around them.

        That is what happened while they lived; or to the end of the history, and before them while a consumer that it
        hit may have been away still.
        """
        tokens = self._tokens.where(np.isin(self._tokens.message, messages))
        end = np.full_like(self._end, NEVER) if to_the_end else self._end
        tokens = Tokens.joined([tokens, self._around(tokens, end, with_absences=to_the_end)])
        high = self._lines.moments.high[tokens.row]
        sign = tokens.sign % len(self._lines.signs)
        keys = (tokens.process, sign, tokens.row, high, tokens.message)
        return self._grouped(tokens.where(np.lexsort(keys)), loosely=True)

    def _around(self, tokens: Tokens, end: Ints, *, with_absences: bool = False) -> Tokens:
        """Return the tokens of the circumstances of the messages of ``tokens``; their lives end at ``end``."""
        told = np.zeros(len(end), np.bool_)
        told[tokens.message] = True
        lived = Lifetimes(np.flatnonzero(told), self._begin[told], end[told])
        return around(self._lines, lived, names_all=self._names_all, with_absences=with_absences)

    def _grouped(self, tokens: Tokens, *, loosely: bool = False) -> Lives:
        facts = self.facts
        if self._names_all:
            facts = facts | self._lines.has_consumers_beside(tokens) * int(Facts.BESIDE)
        return _grouped(merged(tokens, self._lines.signs), self._lines, facts, loosely=loosely)


def signs_around(found: Circumstances, signs: Signs) -> tuple[Sign, ...]:
    """The signs that these circumstances may be to a message that was handed to one consumer.

    Those that only perhaps befell it are left out: they take nothing away from what is believed of it.
    """
    rows = sorted((signs.rows[code] for code in np.unique(found.sign).tolist()), key=lambda row: row.name)
    return tuple(Sign(row.name, int(row.side is Side.CONSUMER)) for row in rows)


def _facts(events: Index, tokens: Tokens, silent: Collection[int], signs: Signs) -> Ints:
    """For each message what its lines tell, as the bits of :class:`Facts`."""
    facts = np.zeros(events.count_of("message"), np.int64)
    sent, handed = (np.isin(tokens.sign, signs.of_lines(*lines)) for lines in (_SENT, _HANDED_OVER))
    inside = events.transaction[tokens.row] != ABSENT
    found = {
        Facts.SENT: sent,
        Facts.SENT_IN_TRANSACTION: sent & inside,
        Facts.HANDED_OVER: handed,
        Facts.CONSUMED_IN_TRANSACTION: handed & inside,
        Facts.NOT_PROCESSED: handed & np.isin(tokens.process, list(silent)),
    }
    for bit, its in found.items():
        facts[tokens.message[its]] |= int(bit)
    facts[events.quiescence.judged] |= int(Facts.AT_REST)
    facts[_of_several_queues(events)] |= int(Facts.OF_SEVERAL_QUEUES)
    return facts


def _of_several_queues(events: Index) -> Ints:
    """The messages that lines hand over from more than one queue: a fan-out, or a dead letter that is consumed too."""
    rows = events.deliveries[events.queue[events.deliveries] != ABSENT]
    message, _, _ = distinct_pairs(events.message[rows], events.queue[rows])
    found: Ints = np.flatnonzero(np.bincount(message, minlength=events.count_of("message")) > 1)
    return found


def _sent_how(events: Index, first: Ints, second: Ints) -> Ints:
    """For each pair what its sends tell, as the bits of :class:`Facts`."""
    times = np.bincount(events.message[events.sends], minlength=events.count_of("message"))
    one, other = events.last_send[first], events.last_send[second]
    alike = (events.session[one] == events.session[other]) & (events.process[one] == events.process[other])
    transaction = events.transaction[one]
    together = (times[first] == 1) & (times[second] == 1)
    together &= (transaction != ABSENT) & (transaction == events.transaction[other])
    return np.asarray(~alike * int(Facts.OF_SEVERAL_SENDERS) + together * int(Facts.SENT_TOGETHER), np.int64)


_SENT: Final = (Event.SEND.value, Event.RESEND.value)
_HANDED_OVER: Final = (Event.DELIVERED.value,)


def _spans(count: int, events: Index, tokens: Tokens, moments: Moments) -> tuple[Ints, Ints]:
    """When each of ``count`` messages began to live, and when the last line tells of it."""
    begin, end = np.full(count, NEVER, np.int64), np.full(count, -NEVER, np.int64)
    low = moments.low[tokens.row]
    np.minimum.at(begin, tokens.message, np.where(low == ANY_TIME, events.t[tokens.row], low))
    high = moments.high[tokens.row]
    np.maximum.at(end, tokens.message, np.where(high == NEVER, events.t[tokens.row], high))
    return begin, end


def _grouped(tokens: Tokens, lines: Lines, facts: Ints, *, loosely: bool = False) -> Lives:
    """The different lives of ``tokens``, which are in order: fixed, or ``loosely`` as their moments allow."""
    tokens = tokens.distinct(lines.signs)
    starts = np.flatnonzero(np.diff(tokens.message, prepend=NONE))
    message = tokens.message[starts]
    consumer = _consumers(tokens, starts)
    lane = reach = np.zeros(len(tokens.message), np.int64)
    if loosely:
        lane = _numbered(tokens, lines.lanes[tokens.row])
        reach = _reach(tokens, lines.moments, starts)
    mode = lines.modes[message]
    key = _hashed(_packed(tokens, lane, consumer, reach), starts)
    key = mixed(key ^ mixed((facts[message] * 64 + mode + 1).astype(np.uint64)))
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return Lives(message, number, first, tokens, consumer, lane, reach, starts, facts[message], mode, lines.signs)


def _consumers(tokens: Tokens, starts: Ints) -> Ints:
    """The consumers of each message numbered from 1; 0 where a token is of none."""
    found: Ints = (tokens.process != NOBODY).astype(np.int64)
    if not len(starts):
        return found
    lengths = np.diff(starts, append=len(found))
    least = np.minimum.reduceat(np.where(tokens.process == NOBODY, NEVER, tokens.process), starts)
    several = np.repeat(np.maximum.reduceat(tokens.process, starts) > least, lengths)
    some = tokens.where(several)
    found[several] = _numbered(some, some.process, absent=NOBODY, last=OTHERS)
    return found


def _numbered(tokens: Tokens, names: Ints, *, absent: int | None = None, last: int | None = None) -> Ints:
    """``names`` numbered within each message in the order of their first tokens: from 0, or if some are ``absent``, 1.

    The name ``last`` has the highest number of its message.
    """
    width = np.int64(names.max(initial=0) - OTHERS + 1)
    _, first, inverse = np.unique(tokens.message * width + (names - OTHERS), return_index=True, return_inverse=True)
    message, name = tokens.message[first], names[first]
    counted = np.ones(len(first), bool) if absent is None else name != absent
    order = np.lexsort((np.where(name == last, NEVER, first), ~counted, message))
    begins = np.flatnonzero(np.diff(message[order], prepend=NONE))
    rank = np.empty(len(first), np.int64)
    rank[order] = np.arange(len(first)) - np.repeat(begins, np.diff(begins, append=len(first)))
    return np.asarray(np.where(counted, rank + (absent is not None), 0)[inverse], np.int64)


def _reach(tokens: Tokens, moments: Moments, starts: Ints) -> Ints:
    """For each token how many just before it may have come after it."""
    lengths = np.diff(starts, append=len(tokens.message))
    low, high = moments.low[tokens.row], moments.high[tokens.row]
    times = np.unique(np.concatenate([low, high]))
    width = np.int64(len(times) + 1)
    low, high = (np.searchsorted(times, each) for each in (low, high))
    certain = np.searchsorted(tokens.message * width + high, tokens.message * width + low, side="left")
    place = np.arange(len(low))
    return np.asarray(np.maximum(0, place - np.maximum(certain, np.repeat(starts, lengths))), np.int64)


def _packed(tokens: Tokens, lane: Ints, consumer: Ints, reach: Ints) -> npt.NDArray[np.uint64]:
    """One number for each token."""
    number = tokens.sign
    for part, width in ((tokens.certainty, 4), (lane, 1 << 12), (consumer, 1 << 12), (reach, 1 << 20)):
        number = number * width + part
    return number.astype(np.uint64)


def _hashed(packed: npt.NDArray[np.uint64], starts: Ints) -> npt.NDArray[np.uint64]:
    """A number of 64 bits for each run of tokens."""
    lengths = np.diff(starts, append=len(packed))
    position = np.arange(len(packed), dtype=np.uint64) - np.repeat(starts, lengths).astype(np.uint64)
    numbers = mixed(packed ^ mixed(position + np.uint64(1)))
    return np.add.reduceat(numbers, starts) if len(starts) else numbers
