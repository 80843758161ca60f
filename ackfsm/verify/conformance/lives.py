"""What a history tells of each message, as the observer hears it; equal lives are told apart once.

All columns are handled at once: tokens (a message, a row of the events, a sign) are collected by kind of line, what
happened around a message while it lived is added (faults, connections that broke, sessions that were closed), and the
tokens of each message, in the order of the ends of their intervals, become a number that equal lives share.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Collection, Iterator, Sequence
from enum import IntFlag
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from ackfsm.history_format import VOCABULARY, Event
from ackfsm.terms import Fault
from ackfsm.verify.conformance.life import Heard, Life
from ackfsm.verify.context.circumstances import (
    EFFECT,
    GIVING_BACK,
    OF_CONSUMERS,
    OF_PRODUCERS,
    Circumstance,
    circumstances,
)
from ackfsm.verify.context.expand import NEVER, calls_of, covering, first_covering_ack
from ackfsm.verify.context.quiescence import Quiescence
from ackfsm.verify.context.signs import (
    BROKEN,
    CALLS,
    CONSUMER_BROKEN,
    DELIVERED_FLAGGED,
    DELIVERED_SOMEHOW,
    SIGNS,
    Certainty,
    Sign,
    of_consumer,
)
from ackfsm.verify.events.arrays import Codes, Ints, Mask
from ackfsm.verify.events.columns import ABSENT, Events
from ackfsm.verify.events.joins import NONE, distinct_pairs
from ackfsm.verify.events.observables import event_code

__all__ = ["NOBODY", "OTHERS", "Lived", "Lives", "Telling", "Told", "modes_of", "placed", "signs_around"]

OTHERS: Final = -2
"""Stands for all consumers that the message was never handed to: it may have been on its way to one of them."""

NOBODY: Final = -1


class Told(IntFlag):
    """What the lines of a message tell beside its signs."""

    AT_REST = 1
    """Its queue was seen drained after its last send."""
    NOT_PROCESSED = 2
    """It was handed to somebody who never says what is processed, or of whom another one says it."""
    ACKNOWLEDGED_FIRST = 4
    """The application acknowledged it before it said that it was processed."""
    SENT = 8
    SENT_IN_TRANSACTION = 16
    HANDED_OVER = 32
    CONSUMED_IN_TRANSACTION = 64
    SHARED = 128
    """Several consumers were handed messages of its queue."""
    OF_SEVERAL_SENDERS = 256
    """Of a pair: several sessions sent its messages, so that these have no order (JMS 6.2.9)."""
    SENT_TOGETHER = 512
    """Of a pair: each was sent once, and in the same transaction."""
    COMMIT_UNDONE = 1024
    """It was sent in a transaction whose commit was called, and answered with ``rolled_back``."""
    SETTLED_IN_LINES = 2048
    """All processes that it was handed to, all in transactions or all without, write down what they settle."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Tokens:
    """One sign of one message each.

    ``row`` is the row of the events that tells it, ``process`` the consumer, :data:`NOBODY` or :data:`OTHERS`.
    """

    message: Ints
    row: Ints
    sign: Ints
    process: Ints
    certainty: Ints

    def where(self, chosen: Ints | Mask) -> _Tokens:
        """Those tokens alone, or in that order."""
        return _Tokens(*(getattr(self, field.name)[chosen] for field in dataclasses.fields(self)))

    def distinct(self) -> _Tokens:
        """Without those that are the same as the one before: a call that covers two deliveries is one call."""
        if not len(self.message):
            return self
        columns = (self.message, self.row, self.sign, self.process)
        return self.where(np.append(True, np.any([each[1:] != each[:-1] for each in columns], axis=0)))

    @staticmethod
    def joined(parts: Sequence[_Tokens]) -> _Tokens:
        fields = [field.name for field in dataclasses.fields(_Tokens)]
        return _Tokens(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """For each row of the events when it happened: not before ``low``, not after ``high``."""

    low: Ints
    high: Ints


_DIRECT: Final = (
    Event.SEND,
    Event.RESEND,
    Event.CONFIRMED,
    Event.REJECTED,
    Event.IN_DOUBT,
    Event.EXPIRED,
    Event.DEAD_LETTERED,
    Event.JOURNAL_WRITTEN,
    Event.JOURNAL_SYNCED,
)
_AT_CONSUMERS: Final = (Event.DELIVERED, Event.PROCESSED, Event.FAILED)
_OF_TRANSACTIONS: Final = (Event.COMMIT, Event.COMMITTED, Event.COMMIT_IN_DOUBT, Event.ROLLBACK, Event.ROLLED_BACK)
_OF_SESSIONS: Final = (Event.RECOVER, Event.CLOSE)
_ANSWERS: Final = (Event.ACKNOWLEDGED, Event.ACK_IN_DOUBT)


class _Visits:
    """When each consumer was handed a message of each queue, so that it was there."""

    def __init__(self, events: Events, deliveries: Ints, queues: Ints) -> None:
        """``queues`` are those of the messages."""
        process, queue = events.process[deliveries].astype(np.int64), queues[events.message[deliveries]]
        width = np.int64(events.count_of("queue") + 1)
        pairs, pair = np.unique(process * width + queue + 1, return_inverse=True)
        self.process, self.queue = pairs // width, pairs % width - 1
        self._times, rank = np.unique(events.t[deliveries], return_inverse=True)
        self._width = np.int64(len(self._times) + 1)
        self._moments = np.unique(pair * self._width + rank)

    def next_after(self, t: int) -> Ints:
        """For each consumer and queue when the consumer was handed the next message after ``t``; else never."""
        least = np.arange(len(self.process)) * self._width + np.searchsorted(self._times, t, side="right")
        found = np.append(self._moments, NEVER)[np.searchsorted(self._moments, least)]
        same = found // self._width == np.arange(len(self.process))
        return np.where(same, np.append(self._times, NEVER)[np.where(same, found % self._width, -1)], NEVER)


class _Lines:
    """What the rows of a history tell of its messages, and when."""

    def __init__(self, events: Events, skew: int) -> None:
        self.events = events
        self.circumstances, self.moments = placed(events, skew)
        self.lanes = _lanes(events)
        self.broken = events.errs == 1
        self.producers = _producers(events)
        self.queues = _queues(events)
        self.modes = modes_of(events)
        self.deliveries = events.places(Event.DELIVERED)
        self._visits = _Visits(events, self.deliveries, self.queues)
        message, process, _ = distinct_pairs(events.message[self.deliveries], events.process[self.deliveries])
        self._width = np.int64(events.count_of("process") + 1)
        self.handed = message * self._width + process
        self.processed_too_often = self._processed_too_often()
        self.by_workers = self._by_workers()
        process, queue, _ = distinct_pairs(events.process[self.deliveries], events.queue[self.deliveries] + 1)
        self._queues_of: dict[int, list[int]] = {}
        for each, its in zip(process.tolist(), (queue - 1).tolist(), strict=True):
            self._queues_of.setdefault(each, []).append(its)
        ended = events.places(*GIVING_BACK)
        busy = np.concatenate(
            [events.process[self.deliveries], events.process[events.places(Event.SEND, Event.RESEND)]]
        )
        hit = frozenset[int]().union(*(each.hit for each in self.circumstances))
        self._idle = frozenset({*events.process[ended].tolist(), *hit}.difference(busy.tolist()))

    def _by_workers(self) -> Ints:
        """The rows where a process says of a message that it is processed that was handed to others alone."""
        rows = self.events.places(Event.PROCESSED)
        message, process = self.events.message[rows].astype(np.int64), self.events.process[rows]
        found: Ints = rows[~self.processed_too_often[message] & ~np.isin(message * self._width + process, self.handed)]
        return found

    def _processed_too_often(self) -> Mask:
        """Which messages were processed more often than they were handed over, whoever did it, and when."""
        events, count = self.events, self.events.count_of("message")
        rows = (events.places(Event.PROCESSED), self.deliveries)
        processed, handed = (np.bincount(events.message[its], minlength=count) for its in rows)
        return np.asarray(processed > handed)

    def was_handed_to(self, messages: Ints, process: int) -> Mask:
        """For each of ``messages`` whether it was ever handed to ``process``."""
        return np.isin(messages * self._width + process, self.handed)

    def may_consume(self, process: int, queues: Ints) -> Mask:
        """For each of ``queues`` whether ``process`` may have consumed there; who did nothing else, anywhere."""
        if process in self._idle:
            return np.ones(len(queues), bool)
        return np.isin(queues, self._queues_of.get(process, []))

    def of_pairs(self, first: Ints, second: Ints) -> _Lines:
        """The same with pairs of messages for messages; both are of one queue and one mode.

        What befell one of two producers is left out: such a pair has no send that was still open then.
        """
        this = copy.copy(self)
        this.producers = np.where(self.producers[first] == self.producers[second], self.producers[first], NOBODY)
        this.queues, this.modes = self.queues[first], self.modes[first]
        message, process = np.divmod(self.handed, self._width)
        handed = [_members(message, its) for its in (first, second)]
        this.handed = np.concatenate([pair * self._width + process[place] for pair, place in handed])
        this.circumstances, this.moments = _with_failures(self.events, self.circumstances, self.moments)
        return this

    def away_until(self, each: Circumstance) -> Ints:
        """For each queue, and for none, until when a consumer may have been away that ``each`` hit.

        It is back when it is handed a message of the queue; who never is, may be away to the end.
        """
        events = self.events
        found = np.full(events.count_of("queue") + 1, -NEVER, np.int64)
        if each.kind not in _TAKING_AWAY:
            return found
        of_the_broker = each.kind in _OF_THE_BROKER
        hit = each.hit | each.suspected
        if of_the_broker or each.unheard or hit & self._idle:
            found[:] = NEVER
        chosen = slice(None) if of_the_broker else np.isin(self._visits.process, list(hit))
        queue, back = self._visits.queue[chosen], self._visits.next_after(each.high)[chosen]
        if of_the_broker:
            found[queue] = -NEVER
        np.maximum.at(found, queue, back)
        return found

    def consumers_beside(self, message: int, known: Collection[int]) -> tuple[int, ...]:
        """The processes that consumed from the queue of ``message``, but those that are ``known``."""
        queue = int(self.queues[message])
        return tuple(
            process for process, its in sorted(self._queues_of.items()) if queue in its and process not in known
        )

    def shared(self) -> Mask:
        """Which queues, and whether none, have several consumers."""
        consumers = np.bincount(self._visits.queue + 1, minlength=self.events.count_of("queue") + 1)
        return np.roll(consumers > 1, -1)

    def compete(self) -> bool:
        """Whether some queue has several consumers."""
        return bool(self.shared().any())

    def of_messages(self) -> _Tokens:
        """The tokens of the lines that name a message, or cover it."""
        parts = (*self._direct(), *self._at_consumers(), *self._of_sends(), *self._of_deliveries())
        return self._since_the_last_send(_in_doubt(_Tokens.joined(parts)))

    def _since_the_last_send(self, tokens: _Tokens) -> _Tokens:
        """Without the sends that were rolled back before the message was sent once more, and what became of them.

        A message that was delivered meanwhile has nothing taken from it.
        """
        events, count = self.events, self.events.count_of("message")
        sends = events.places(Event.SEND, Event.RESEND)
        undone = np.zeros(events.count_of("transaction") + 1, bool)
        undone[events.transaction[events.places(Event.ROLLED_BACK)]] = True
        undone[ABSENT] = False
        last, first_delivery = np.full(count, NONE, np.int64), np.full(count, NEVER, np.int64)
        last[events.message[sends]] = sends
        np.minimum.at(first_delivery, events.message[self.deliveries], self.deliveries)
        kept = np.zeros(count, bool)
        earlier = sends[sends < last[events.message[sends]]]
        kept[events.message[earlier[~undone[events.transaction[earlier]]]]] = True
        several = np.zeros(count, bool)
        several[events.message[earlier]] = True
        fresh = several & ~kept & (first_delivery > last)
        started = tokens.where(~fresh[tokens.message] | (tokens.row >= last[tokens.message]))
        sign = started.sign.copy()
        sign[fresh[started.message] & (sign == SIGNS.index(Event.RESEND))] = SIGNS.index(Event.SEND)
        return dataclasses.replace(started, sign=sign)

    def tokens(
        self,
        message: Codes,
        row: Ints | int,
        sign: str,
        process: Codes | int = NOBODY,
        certainty: Certainty = Certainty.CERTAIN,
    ) -> _Tokens:
        """One token of ``sign`` for each of ``message``."""
        count = len(message)
        return _Tokens(
            message.astype(np.int64),
            np.broadcast_to(np.asarray(row, np.int64), (count,)),
            np.full(count, SIGNS.index(sign)),
            np.broadcast_to(np.asarray(process, np.int64), (count,)),
            np.full(count, int(certainty)),
        )

    def _direct(self) -> Iterator[_Tokens]:
        for event in _DIRECT:
            rows = self.events.places(event)
            rows = rows[self.events.message[rows] != ABSENT]
            yield self.tokens(self.events.message[rows], rows, event.value)
        rejected = self.events.places(Event.REJECTED)
        yield self.tokens(
            self.events.message[rejected], rejected, Fault.REJECTION.value, certainty=Certainty.IF_POSSIBLE
        )
        yield self._refused_untold()

    def _refused_untold(self) -> _Tokens:
        """What the broker may have refused of those who are told no outcomes: the first refusal after each send.

        Who is told outcomes is told those of one delivery mode: of another one it may be told none.
        """
        events = self.events
        faults = events.places(Event.FAULT)
        faults = faults[events.fault[faults] == VOCABULARY["fault"].index(Fault.REJECTION)]
        told = self._of_sender(events.places(Event.CONFIRMED, Event.REJECTED, Event.IN_DOUBT))
        sends = events.places(Event.SEND, Event.RESEND)
        sends = sends[(events.transaction[sends] == ABSENT) & ~np.isin(self._of_sender(sends), told)]
        following = np.searchsorted(self.moments.high[faults], self.moments.low[sends])
        sends, following = sends[following < len(faults)], following[following < len(faults)]
        return self.tokens(events.message[sends], faults[following], Fault.REJECTION.value, certainty=Certainty.PERHAPS)

    def _of_sender(self, rows: Ints) -> Ints:
        """For each of ``rows``, which name messages, a number of its process and the message's delivery mode."""
        modes = np.int64(len(VOCABULARY["delivery_mode"]) + 1)
        found: Ints = self.events.process[rows] * modes + self.modes[self.events.message[rows]] - ABSENT
        return found

    def _at_consumers(self) -> Iterator[_Tokens]:
        for event in _AT_CONSUMERS:
            rows = self.events.places(event)
            if event is Event.PROCESSED:
                rows = np.setdiff1d(rows, self.by_workers)
            flagged = self.events.redelivered[rows] == 1
            kinds = (
                ((event.value, rows[~flagged]), (DELIVERED_FLAGGED, rows[flagged]))
                if event is Event.DELIVERED
                else ((event.value, rows),)
            )
            certainty = Certainty.IF_POSSIBLE if event is Event.FAILED else Certainty.CERTAIN
            for sign, its in kinds:
                yield self.tokens(self.events.message[its], its, sign, self.events.process[its], certainty)

    def _of_sends(self) -> Iterator[_Tokens]:
        sends = self.events.places(Event.SEND, Event.RESEND)
        for event, acts in self._acts():
            rows = first_covering_ack(self.events.transaction, sends, acts, acts)
            certainty = Certainty.IF_POSSIBLE if event is Event.ROLLBACK else Certainty.CERTAIN
            yield self._covered(sends, rows, event.value, certainty, of_consumers=False)

    def _acts(self) -> Iterator[tuple[Event, Ints]]:
        """What is done to transactions, by event; a commit that is answered with ``rolled_back`` was a rollback."""
        undone = self._undone_commits()
        for event in _OF_TRANSACTIONS:
            acts = self.events.places(event)
            if event is Event.COMMIT:
                acts = np.setdiff1d(acts, undone)
            yield event, np.union1d(acts, undone) if event is Event.ROLLBACK else acts

    def _undone_commits(self) -> Ints:
        commits, transaction = self.events.places(Event.COMMIT), self.events.transaction
        found: Ints = commits[np.isin(transaction[commits], transaction[self.events.places(Event.ROLLED_BACK)])]
        return found

    def settled_in_lines(self) -> Ints:
        """The messages that were handed only to processes which write down what they acknowledge, commit or roll back.

        Of one that was handed over in a transaction and without one no line says in which way it was settled.
        """
        events = self.events
        tell = np.unique(events.process[events.places(Event.ACKNOWLEDGE, Event.COMMIT, Event.ROLLBACK)])
        message, by_one_that_tells = events.message[self.deliveries], np.isin(events.process[self.deliveries], tell)
        inside = events.transaction[self.deliveries] != ABSENT
        mixed = np.intersect1d(message[inside], message[~inside])
        found: Ints = np.setdiff1d(message[by_one_that_tells], np.union1d(message[~by_one_that_tells], mixed))
        return found.astype(np.int64)

    def of_undone_commits(self) -> Ints:
        """The messages that were sent in transactions whose commit was answered with ``rolled_back``."""
        events, sends = self.events, self.events.places(Event.SEND, Event.RESEND)
        sends = sends[events.transaction[sends] != ABSENT]
        undone = events.transaction[self._undone_commits()]
        found: Ints = events.message[sends[np.isin(events.transaction[sends], undone)]].astype(np.int64)
        return found

    def _of_deliveries(self) -> Iterator[_Tokens]:
        yield from self._acknowledgements()
        for event, acts in self._acts():
            rows = first_covering_ack(self.events.transaction, self.deliveries, acts, acts)
            yield self._covered(self.deliveries, rows, of_consumer(event.value), _certainty(event))
        for event in _OF_SESSIONS:
            acts = self.events.places(event)
            acts = acts[~self.broken[acts]]
            rows = first_covering_ack(self.events.session, self.deliveries, acts, acts)
            sign = of_consumer(event.value) if event is Event.CLOSE else event.value
            yield self._covered(self.deliveries, rows, sign, _certainty(event))

    def _acknowledgements(self) -> Iterator[_Tokens]:
        """The calls, each for the deliveries of its session that no call covers yet, and the answers to them.

        An answer that belongs to no call covers as a call would.
        """
        calls = covering(self.events, self.events.places(Event.ACKNOWLEDGE))
        elsewhere = self._went_elsewhere()
        yield self._called(calls, Event.ACKNOWLEDGE, elsewhere)
        answers = self.events.places(*_ANSWERS)
        answered = calls_of(self.events, answers)
        first = np.full(len(self.events) + 1, NEVER)
        first[answered[::-1]] = answers[::-1]  # the last assignment wins
        of_calls = np.where(calls == NEVER, NEVER, first[np.minimum(calls, len(self.events))])
        rows = np.minimum(of_calls, covering(self.events, answers[answered == answers]))
        for event in _ANSWERS:
            its = rows != NEVER
            its[its] = self.events.event[rows[its]] == event_code(event)
            yield self._called(np.where(its, rows, NEVER), event, elsewhere)

    def _called(self, rows: Ints, event: Event, elsewhere: Ints) -> _Tokens:
        """What the calls at ``rows``, or their answers, cover.

        That is uncertain of a message which the call does not name and which went ``elsewhere`` before: the session
        that had it may have broken, and another one have its name.
        """
        found = self._covered(self.deliveries, rows, event.value)
        covered = rows != NEVER
        stale = (elsewhere[covered] < rows[covered]) & (self.events.message[found.row] != found.message)
        certainty = np.where(stale, int(Certainty.IF_POSSIBLE), found.certainty)
        return dataclasses.replace(found, certainty=certainty.astype(np.int64))

    def _went_elsewhere(self) -> Ints:
        """For each delivery the next one of its message, if that is to another process; else never."""
        message, process = self.events.message[self.deliveries], self.events.process[self.deliveries]
        order = np.argsort(message, kind="stable")
        this, following = order[:-1], order[1:]
        moved = (message[this] == message[following]) & (process[this] != process[following])
        found = np.full(len(self.deliveries), NEVER)
        found[this[moved]] = self.deliveries[following[moved]]
        return found

    def _covered(
        self,
        members: Ints,
        rows: Ints,
        sign: str,
        certainty: Certainty = Certainty.CERTAIN,
        *,
        of_consumers: bool = True,
    ) -> _Tokens:
        covered = rows != NEVER
        members, rows = members[covered], rows[covered]
        process = self.events.process[members].astype(np.int64) if of_consumers else NOBODY
        return self.tokens(self.events.message[members], rows, sign, process, certainty)


def _with_failures(
    events: Events, found: tuple[Circumstance, ...], moments: Moments
) -> tuple[tuple[Circumstance, ...], Moments]:
    """What happened around pairs: a listener that fails may have its whole session started over."""
    rows = events.places(Event.FAILED)
    high = moments.high.copy()
    high[rows] = _neighbours(events)[1][rows]
    failures = (
        Circumstance(
            row=row,
            kind=Event.RECOVER.value,
            low=int(moments.low[row]),
            high=int(high[row]),
            suspected=frozenset({int(events.process[row])}),
        )
        for row in rows.tolist()
    )
    return tuple(sorted((*found, *failures), key=lambda each: each.row)), Moments(moments.low, high)


def _members(message: Ints, its: Ints) -> tuple[Ints, Ints]:
    """All places where ``message``, which is ascending, has one of ``its``: the number of that one, and the places."""
    begin, end = (np.searchsorted(message, its, side=side) for side in ("left", "right"))
    length = end - begin
    start = np.cumsum(length) - length
    return np.repeat(np.arange(len(its)), length), np.arange(length.sum()) + np.repeat(begin - start, length)


def _of_pairs(tokens: _Tokens, first: Ints, second: Ints) -> _Tokens:
    """The tokens of both messages of each pair, with the pair for their message, and whose they are with their sign."""
    tokens = tokens.where(np.argsort(tokens.message, kind="stable"))
    parts = []
    for whose, its in enumerate((first, second), start=1):
        pair, place = _members(tokens.message, its)
        part = tokens.where(place)
        parts.append(dataclasses.replace(part, message=pair, sign=part.sign + whose * len(SIGNS)))
    joined = _Tokens.joined(parts)
    of, sign = np.divmod(joined.sign, len(SIGNS))
    sign = np.where(np.isin(sign, _DELIVERED), SIGNS.index(DELIVERED_SOMEHOW), sign)
    return dataclasses.replace(joined, sign=sign + of * len(SIGNS))


def _until_the_last(tokens: _Tokens, count: int) -> _Tokens:
    """Without the ends of sessions after which nothing is told of either message."""
    ends = np.isin(tokens.sign % len(SIGNS), _ENDS)
    last = np.full(count, NONE, np.int64)
    np.maximum.at(last, tokens.message[~ends], tokens.row[~ends])
    return tokens.where(~ends | (tokens.row < last[tokens.message]))


_DELIVERED: Final = tuple(SIGNS.index(sign) for sign in (Event.DELIVERED.value, DELIVERED_FLAGGED))
_ENDS: Final = tuple(SIGNS.index(sign) for sign in (Event.RECOVER.value, of_consumer(Event.CLOSE)))


def _merged(tokens: _Tokens) -> _Tokens:
    """``tokens`` in order, with one for what a line tells of both messages of a pair, or of one and what is around.

    A call that covers both is as uncertain as it is of one of them; what ends a session or befalls it, as certain.
    """
    of, sign = np.divmod(tokens.sign, len(SIGNS))
    shared = np.isin(sign, _SHARED)
    if not of.any() or not len(sign):
        return tokens
    columns = (tokens.message, tokens.row, sign, tokens.process)
    new = np.append(True, np.any([each[1:] != each[:-1] for each in columns], axis=0))
    starts = np.flatnonzero(new | ~(shared | np.isin(sign, _COVERING)))
    least, most = (each.reduceat(tokens.certainty, starts) for each in (np.minimum, np.maximum))
    whose = np.bitwise_or.reduceat(of, starts)
    merged = tokens.where(starts)
    return dataclasses.replace(
        merged,
        sign=sign[starts] + whose * len(SIGNS),
        certainty=np.where(shared[starts], least, most),
    )


_COVERING: Final = tuple(SIGNS.index(event.value) for event in (Event.ACKNOWLEDGE, Event.ACKNOWLEDGED))
_OF_SESSIONS_ALONE: Final = (*_OF_TRANSACTIONS, Event.RECOVER)
_SHARED: Final = tuple(
    SIGNS.index(name)
    for name in (
        *(event.value for event in _OF_SESSIONS_ALONE),
        *(of_consumer(event) for event in (*_OF_TRANSACTIONS, Event.CLOSE)),
        *(fault.value for fault in Fault if fault is not Fault.REJECTION),
        BROKEN,
        CONSUMER_BROKEN,
    )
)
"""Signs of a session, of a transaction or of all, which are heard once for both messages of a pair."""


def _in_doubt(tokens: _Tokens) -> _Tokens:
    """A call that failed may have had no effect, and what failed it may have been seen by the library alone."""
    calls, doubts = (tokens.sign == SIGNS.index(event) for event in (Event.ACKNOWLEDGE, Event.ACK_IN_DOUBT))
    certainty = tokens.certainty.copy()
    certainty[calls & np.isin(tokens.message, tokens.message[doubts])] = Certainty.PERHAPS
    certainty[doubts] = Certainty.IF_POSSIBLE
    return dataclasses.replace(tokens, certainty=certainty)


def _certainty(event: Event) -> Certainty:
    return Certainty.IF_POSSIBLE if event in GIVING_BACK else Certainty.CERTAIN


def _moments(events: Events, skew: int) -> Moments:
    """When each row happened: as long before as ``skew`` may hide, so that no order between clocks is too certain."""
    before, after = _neighbours(events)
    calls = np.isin(events.event, [event_code(event) for event in CALLS])
    closes, broken = events.event == event_code(Event.CLOSE), events.errs == 1
    low = np.where(closes, np.maximum(before, events.t - EFFECT), events.t)
    return Moments(low - skew, np.where(calls | closes & ~broken, after, events.t))


def placed(events: Events, skew: int) -> tuple[tuple[Circumstance, ...], Moments]:
    """What happened around the messages, and when each row happened: a fault, between its line and its repair."""
    moments = _moments(events, skew)
    found = circumstances(events, moments.low, moments.high)
    rows = [each.row for each in found]
    moments.low[rows] = [each.low - skew for each in found]
    moments.high[rows] = [each.high for each in found]
    return found, moments


def _lanes(events: Events) -> Ints:
    """Who wrote each row; faults are in no order but that of their times, so that each has a lane of its own."""
    lanes = events.process.astype(np.int64)
    faults = events.places(Event.FAULT)
    lanes[faults] = events.count_of("process") + np.arange(len(faults))
    return lanes


def _neighbours(events: Events) -> tuple[Ints, Ints]:
    """For each row the time of the row before and after it of the same process."""
    order = np.argsort(events.process, kind="stable")
    process, t = events.process[order], events.t[order]
    same = process[1:] == process[:-1]
    before, after = np.empty_like(t), np.empty_like(t)
    before[order] = np.concatenate([[-NEVER], np.where(same, t[:-1], -NEVER)])[: len(t)]
    after[order] = np.concatenate([np.where(same, t[1:], NEVER), [NEVER]])[-len(t) :] if len(t) else after
    return before, after


def _last_of(events: Events, column: Codes, rows: Ints) -> Ints:
    """What the last of ``rows`` says in ``column`` for each message; -1 where none of them is of it."""
    found = np.full(events.count_of("message"), ABSENT, np.int64)
    found[events.message[rows]] = column[rows]
    return found


def _queues(events: Events) -> Ints:
    """The queue of each message, as its last line with a queue has it."""
    return _last_of(events, events.queue, np.flatnonzero((events.queue != ABSENT) & (events.message != ABSENT)))


def modes_of(events: Events) -> Ints:
    """The delivery mode that the last send of each message names, as its place in the vocabulary."""
    sends = events.places(Event.SEND, Event.RESEND)
    return _last_of(events, events.delivery_mode, sends[events.delivery_mode[sends] != ABSENT])


def _producers(events: Events) -> Ints:
    """The process that sent each message last, -1 if nobody did."""
    return _last_of(events, events.process, events.places(Event.SEND, Event.RESEND))


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
    _tokens: _Tokens
    _consumer: Ints
    _lane: Ints
    _reach: Ints
    _start: Ints
    _told: Ints
    _mode: Ints

    def rows(self, places: Ints, sign: Ints) -> Ints:
        """For the messages at ``places`` the row that tells the sign of that number; -1 where there are not so many."""
        row = np.append(self._tokens.row, NONE)
        end = np.append(self._start[1:], len(self._lane))[places]
        found = self._start[places] + sign
        return np.asarray(np.where(found < end, row[np.minimum(found, len(row) - 1)], NONE), np.int64)

    def lived(self, place: int) -> Lived:
        """The life of the message at ``place``."""
        end = self._start[place + 1] if place + 1 < len(self._start) else len(self._lane)
        span, tokens = slice(int(self._start[place]), int(end)), self._tokens
        consumers = self._consumer[span].tolist()
        columns = (tokens.sign, tokens.certainty, self._lane, self._reach)
        heard = tuple(
            Heard(_sign(sign, consumer, certainty), lane, reach)
            for consumer, sign, certainty, lane, reach in zip(
                consumers, *(column[span].tolist() for column in columns), strict=True
            )
        )
        told = Told(int(self._told[place]))
        process = dict(zip(consumers, tokens.process[span].tolist(), strict=True))
        return Lived(
            message=int(self.message[place]),
            life=Life(heard, Told.AT_REST in told),
            told=told,
            mode=int(self._mode[place]),
            rows=tuple(tokens.row[span].tolist()),
            consumers=tuple(process[number] for number in sorted(process) if number),
        )


def _sign(code: int, consumer: int, certainty: int) -> Sign:
    of, sign = divmod(code, len(SIGNS))
    return Sign(SIGNS[sign], consumer, Certainty(certainty), of)


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Lived:
    """The life of one message.

    Attributes:
        message: that message, by its code.
        life: what was heard.
        told: what its lines tell beside their order.
        mode: the place of its delivery mode in the vocabulary, :data:`ABSENT` if no line says it.
        rows: for each sign the row of the events that tells it.
        consumers: the processes that the numbers of its consumers stand for; the last may be :data:`OTHERS`.
    """

    message: int
    life: Life
    told: Told
    mode: int
    rows: tuple[int, ...]
    consumers: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Telling:
    """A history as it is told to observers of single messages, or of pairs of them.

    For each message there is what was told beside its signs (:class:`Told`), and when it began to live and ceased.
    """

    _lines: _Lines
    _tokens: _Tokens
    told: Ints
    _begin: Ints
    _end: Ints

    @classmethod
    def of_messages(cls, events: Events, quiescence: Quiescence, silent: Collection[int], skew: int) -> Telling:
        """``silent`` are the processes that never say what is processed; ``skew`` is how far two clocks may differ."""
        lines = _Lines(events, skew)
        tokens = lines.of_messages()
        told = _told(events, tokens, quiescence, silent)
        told[_acknowledged_first(tokens, len(told)) & ~lines.processed_too_often] |= int(Told.ACKNOWLEDGED_FIRST)
        told[lines.shared()[lines.queues]] |= int(Told.SHARED)
        told[events.message[lines.by_workers]] |= int(Told.NOT_PROCESSED)
        told[lines.of_undone_commits()] |= int(Told.COMMIT_UNDONE)
        told[lines.settled_in_lines()] |= int(Told.SETTLED_IN_LINES)
        return cls(lines, tokens, told, *_spans(events.count_of("message"), events, tokens, lines.moments))

    def only(self, messages: Mask) -> Telling:
        """The same history as it is told to observers of some of its messages."""
        return dataclasses.replace(self, _tokens=self._tokens.where(messages[self._tokens.message]))

    def of_pairs(self, first: Ints, second: Ints) -> Telling:
        """The same history as it is told to observers of pairs of messages, which have numbers from 0 on."""
        lines = self._lines.of_pairs(first, second)
        tokens = _until_the_last(_of_pairs(self._tokens, first, second), len(first))
        both, either = self.told[first] & self.told[second], self.told[first] | self.told[second]
        told = np.where(both & int(Told.AT_REST), either, either & ~int(Told.AT_REST))
        told |= _sent_how(lines.events, first, second)
        return Telling(lines, tokens, told, *_spans(len(first), lines.events, tokens, lines.moments))

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
        tokens = _Tokens.joined([self._tokens, *self._around(np.unique(self._tokens.message), self._end)])
        moment = tokens.message * np.int64(len(self._lines.events) + 1) + tokens.row
        sign = tokens.sign % len(SIGNS)
        kind = (sign + len(SIGNS) * (sign != _REJECTION)) * np.int64(1 << 32) + tokens.process
        return _grouped(_merged(tokens.where(np.lexsort((kind, moment)))), self._lines, self.told)

    def lives(self, messages: Ints, *, to_the_end: bool = False) -> Lives:
        """The lives of ``messages`` (ascending) in every order that they allow, with what happened around them.

        That is what happened while they lived; or to the end of the history, and before them while a consumer that it
        hit may have been away still.
        """
        tokens = self._tokens.where(np.isin(self._tokens.message, messages))
        end = np.full_like(self._end, NEVER) if to_the_end else self._end
        tokens = _Tokens.joined([tokens, *self._around(np.unique(tokens.message), end, with_absences=to_the_end)])
        high = self._lines.moments.high[tokens.row]
        sign = tokens.sign % len(SIGNS)
        keys = (tokens.process, sign, sign != _REJECTION, tokens.row, high, tokens.message)
        return _grouped(_merged(tokens.where(np.lexsort(keys))), self._lines, self.told, loosely=True)

    def _around(self, messages: Ints, end: Ints, *, with_absences: bool = False) -> Iterator[_Tokens]:
        """The circumstances of ``messages``, each of which ends as ``end`` says.

        With ``with_absences`` also those of before, after which some consumer of their queue was not seen back.
        """
        messages = messages[np.argsort(self._begin[messages], kind="stable")]
        begin = self._begin[messages]
        latest = np.maximum.accumulate(end[messages]) if len(messages) else end[messages]
        for each in self._lines.circumstances:
            lasting = slice(np.searchsorted(latest, each.low), np.searchsorted(begin, each.high, side="right"))
            alive = messages[lasting][end[messages[lasting]] >= each.low]
            if with_absences:
                sent_later = messages[lasting.stop :]
                away = self._lines.away_until(each)[self._lines.queues[sent_later]]
                alive = np.concatenate([alive, sent_later[self._begin[sent_later] <= away]])
            if each.queue != ABSENT:
                alive = alive[self._lines.queues[alive] == each.queue]
            if len(alive):
                yield from self._befell(each, alive)

    def _befell(self, each: Circumstance, alive: Ints) -> Iterator[_Tokens]:
        lines = self._lines
        if each.kind in _OF_THE_BROKER:
            yield lines.tokens(alive, each.row, each.kind)
            return
        if each.kind in _OF_PRODUCERS:
            for process in each.hit | each.suspected:
                mine = alive[lines.producers[alive] == process]
                certainty = Certainty.CERTAIN if process in each.hit else Certainty.PERHAPS
                yield lines.tokens(mine, each.row, each.kind, certainty=certainty)
        if each.kind in _AT_CONSUMERS_TOO:
            elsewhere = np.zeros(len(alive), bool)
            for process in sorted(each.hit | each.suspected):
                handed = lines.was_handed_to(alive, process)
                certainty = _how_sure(each, process)
                yield lines.tokens(alive[handed], each.row, _AT_CONSUMERS_TOO[each.kind], process, certainty)
                elsewhere |= ~handed & lines.may_consume(process, lines.queues[alive])
            elsewhere |= each.unheard
            sign = _AT_CONSUMERS_TOO[each.kind]
            yield lines.tokens(alive[elsewhere], each.row, sign, OTHERS, Certainty.PERHAPS)


def _how_sure(each: Circumstance, process: int) -> Certainty:
    if process not in each.hit:
        return Certainty.PERHAPS
    return Certainty.PERHAPS if each.kind in GIVING_BACK else Certainty.CERTAIN


_OF_THE_BROKER: Final = frozenset({Fault.BROKER_CRASH, Fault.BROKER_KILL, Fault.JOURNAL_FAILURE})
_OF_PRODUCERS: Final = frozenset({*OF_PRODUCERS, BROKEN})
_TAKING_AWAY: Final = frozenset({*_OF_THE_BROKER, *OF_CONSUMERS, BROKEN, Event.CLOSE.value})
"""What a consumer has to come back after."""

_AT_CONSUMERS_TOO: Final = MappingProxyType(
    {fault.value: fault.value for fault in OF_CONSUMERS}
    | {BROKEN: CONSUMER_BROKEN, Event.RECOVER.value: Event.RECOVER.value}
    | {event.value: of_consumer(event) for event in GIVING_BACK if event is not Event.RECOVER}
)
"""What befalls consumers, and the sign of it."""


def signs_around(kinds: Collection[str]) -> tuple[Sign, ...]:
    """The signs that circumstances of these ``kinds`` may be to a message that was handed to one consumer.

    Those that only perhaps befell it are left out: they take nothing away from what is believed of it.
    """
    alone = [Sign(kind) for kind in kinds if kind in _OF_THE_BROKER | _OF_PRODUCERS]
    its = {_AT_CONSUMERS_TOO[kind]: kind in GIVING_BACK for kind in kinds if kind in _AT_CONSUMERS_TOO}
    certainty = {True: Certainty.IF_POSSIBLE, False: Certainty.CERTAIN}
    return (*alone, *(Sign(name, 1, certainty[given_back]) for name, given_back in its.items()))


def _told(events: Events, tokens: _Tokens, quiescence: Quiescence, silent: Collection[int]) -> Ints:
    """For each message what its lines tell, as the bits of :class:`Told`."""
    told = np.zeros(events.count_of("message"), np.int64)
    sent, handed = (np.isin(tokens.sign, [SIGNS.index(sign) for sign in signs]) for signs in (_SENT, _HANDED_OVER))
    inside = events.transaction[tokens.row] != ABSENT
    found = {
        Told.SENT: sent,
        Told.SENT_IN_TRANSACTION: sent & inside,
        Told.HANDED_OVER: handed,
        Told.CONSUMED_IN_TRANSACTION: handed & inside,
        Told.NOT_PROCESSED: handed & np.isin(tokens.process, list(silent)),
    }
    for bit, its in found.items():
        told[tokens.message[its]] |= int(bit)
    told[quiescence.judged] |= int(Told.AT_REST)
    return told


def _sent_how(events: Events, first: Ints, second: Ints) -> Ints:
    """For each pair what its sends tell, as the bits of :class:`Told`."""
    sends = events.places(Event.SEND, Event.RESEND)
    times = np.bincount(events.message[sends], minlength=events.count_of("message"))
    row = np.full(len(times), NONE, np.int64)
    row[events.message[sends]] = sends
    one, other = row[first], row[second]
    alike = (events.session[one] == events.session[other]) & (events.process[one] == events.process[other])
    transaction = events.transaction[one]
    together = (times[first] == 1) & (times[second] == 1)
    together &= (transaction != ABSENT) & (transaction == events.transaction[other])
    return np.asarray(~alike * int(Told.OF_SEVERAL_SENDERS) + together * int(Told.SENT_TOGETHER), np.int64)


_SENT: Final = (Event.SEND.value, Event.RESEND.value)
_HANDED_OVER: Final = (Event.DELIVERED.value, DELIVERED_FLAGGED)


def _acknowledged_first(tokens: _Tokens, messages: int) -> Mask:
    """Which messages were acknowledged before the first line that says that they were processed, which there is."""
    first = []
    for event in (Event.ACKNOWLEDGE, Event.PROCESSED):
        its = tokens.sign == SIGNS.index(event)
        row = np.full(messages, NEVER, np.int64)
        np.minimum.at(row, tokens.message[its], tokens.row[its])
        first.append(row)
    acknowledged, processed = first
    return np.asarray((acknowledged < processed) & (processed != NEVER))


def _spans(count: int, events: Events, tokens: _Tokens, moments: Moments) -> tuple[Ints, Ints]:
    """When each of ``count`` messages began to live, and when the last line tells of it."""
    begin, end = np.full(count, NEVER, np.int64), np.full(count, -NEVER, np.int64)
    np.minimum.at(begin, tokens.message, moments.low[tokens.row])
    high = moments.high[tokens.row]
    np.maximum.at(end, tokens.message, np.where(high == NEVER, events.t[tokens.row], high))
    return begin, end


_REJECTION: Final = SIGNS.index(Fault.REJECTION.value)
"""What a ``rejected`` tells of comes before it."""


def _grouped(tokens: _Tokens, lines: _Lines, told: Ints, *, loosely: bool = False) -> Lives:
    """The different lives of ``tokens``, which are in order: fixed, or ``loosely`` as their moments allow."""
    tokens = tokens.distinct()
    starts = np.flatnonzero(np.diff(tokens.message, prepend=NONE))
    message = tokens.message[starts]
    consumer = _consumers(tokens, starts)
    lane = reach = np.zeros(len(tokens.message), np.int64)
    if loosely:
        lane = _numbered(tokens, lines.lanes[tokens.row])
        reach = _reach(tokens, lines.moments, starts)
    mode = lines.modes[message]
    key = _hashed(_packed(tokens, lane, consumer, reach), starts)
    key = _mixed(key ^ _mixed((told[message] * 64 + mode + 1).astype(np.uint64)))
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return Lives(message, number, first, tokens, consumer, lane, reach, starts, told[message], mode)


def _consumers(tokens: _Tokens, starts: Ints) -> Ints:
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


def _numbered(tokens: _Tokens, names: Ints, *, absent: int | None = None, last: int | None = None) -> Ints:
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


def _reach(tokens: _Tokens, moments: Moments, starts: Ints) -> Ints:
    """For each token how many just before it may have come after it."""
    lengths = np.diff(starts, append=len(tokens.message))
    low, high = moments.low[tokens.row], moments.high[tokens.row]
    times = np.unique(np.concatenate([low, high]))
    width = np.int64(len(times) + 1)
    low, high = (np.searchsorted(times, each) for each in (low, high))
    certain = np.searchsorted(tokens.message * width + high, tokens.message * width + low, side="left")
    place = np.arange(len(low))
    return np.asarray(np.maximum(0, place - np.maximum(certain, np.repeat(starts, lengths))), np.int64)


def _packed(tokens: _Tokens, lane: Ints, consumer: Ints, reach: Ints) -> npt.NDArray[np.uint64]:
    """One number for each token."""
    number = tokens.sign
    for part, width in ((tokens.certainty, 4), (lane, 1 << 12), (consumer, 1 << 12), (reach, 1 << 20)):
        number = number * width + part
    return number.astype(np.uint64)


def _hashed(packed: npt.NDArray[np.uint64], starts: Ints) -> npt.NDArray[np.uint64]:
    """A number of 64 bits for each run of tokens."""
    lengths = np.diff(starts, append=len(packed))
    position = np.arange(len(packed), dtype=np.uint64) - np.repeat(starts, lengths).astype(np.uint64)
    mixed = _mixed(packed ^ _mixed(position + np.uint64(1)))
    return np.add.reduceat(mixed, starts) if len(starts) else mixed


def _mixed(number: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of splitmix64: each bit of the result depends on all bits of ``number``."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        number = (number ^ (number >> np.uint64(shift))) * np.uint64(factor)
    mixed: npt.NDArray[np.uint64] = number ^ (number >> np.uint64(31))
    return mixed
