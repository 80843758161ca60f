"""The lines of a history as tokens of its messages, with their moments, a column at a time."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Collection
from typing import Final

import numpy as np

from ackfsm.history.arrays import Codes, Ints, Mask
from ackfsm.history.columns import ABSENT, Events, event_code
from ackfsm.history.format import VOCABULARY, Event
from ackfsm.history.index import Index
from ackfsm.history.joins import NEVER, NONE, Pairs, distinct_pairs, last_before, members_of, number_pairs
from ackfsm.tables import Certainty, Of, Side, SignRow, When
from ackfsm.verify.conformance.tokens import ANSWERS, NOBODY, Tokens, doubted
from ackfsm.verify.context.circumstances import EFFECT, Circumstances, Interruptions, circumstances
from ackfsm.verify.context.signs import Signs, lines_of

__all__ = ["ANY_TIME", "Lines", "Moments", "last_answers", "neighbours", "placed"]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """For each row of the events when it happened: not before ``low``, not after ``high``."""

    low: Ints
    high: Ints


_FROM_THE_BROKER: Final = (Event.CONFIRMED, Event.REJECTED, Event.ACKNOWLEDGED, Event.COMMITTED, Event.ROLLED_BACK)
"""Answers to a call that has reached the broker."""
_ENDED: Final = (Event.COMMITTED, Event.COMMIT_IN_DOUBT, Event.ROLLED_BACK)
_GIVING_BACK: Final = (Event.CLOSE, Event.RECOVER, Event.ROLLBACK, Event.ROLLED_BACK)

ANY_TIME: Final = -NEVER
"""When what is late may have begun."""


class Visits:
    """When each consumer was handed a message of each queue, so that it was there."""

    def __init__(self, events: Index, deliveries: Ints, queues: Ints) -> None:
        """``queues`` has the queue of each message."""
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


class Lines:
    """The tokens and moments that the rows of a history tell of its messages."""

    def __init__(self, events: Index, skew: int, signs: Signs, *, recovers: bool = False, keeps: bool = False) -> None:
        """``recovers`` says that the library recovers a session whose listener has thrown.

        ``keeps`` says that a session keeps what its transaction is rolled back with.
        """
        self.events, self.signs, self._keeps = events, signs, keeps
        placed_ones = placed(events, skew, signs)
        self._of_failures = _with_failures(events, signs, *placed_ones)
        self.circumstances, self.moments = self._of_failures if recovers else placed_ones
        self._interruptions = Interruptions(self.circumstances, signs)
        self.lanes = _lanes(events, signs)
        self.producers = events.sender_of
        sends = events.sends
        self.senders = Pairs(events.message[sends], events.process[sends])
        self.queues, self.modes, self.deliveries = events.queue_of, events.mode_of, events.deliveries
        self.visits = Visits(events, self.deliveries, self.queues)
        self.handed = Pairs(events.message[self.deliveries], events.process[self.deliveries])
        self.processed_too_often = self._processed_too_often()
        self.by_workers = self._by_workers()
        self._failed = self._next_of(self.deliveries, events.places(Event.FAILED))
        process, queue, _ = distinct_pairs(events.process[self.deliveries], events.queue[self.deliveries] + 1)
        self.consumers = np.roll(np.bincount(self.visits.queue + 1, minlength=events.count_of("queue") + 1), -1)
        """For each queue, and for none, how many processes consumed from it."""
        self.consumers_of, self.queues_of = Pairs(queue - 1, process), Pairs(process, queue - 1)
        ended = events.places(*_GIVING_BACK)
        busy = events.process[np.concatenate([self.deliveries, sends])]
        self.prepared = _prepared(events)
        hit = self.circumstances.process[self.circumstances.sure]
        self.idle: Ints = np.setdiff1d(np.concatenate([events.process[ended], hit]), busy)
        """The processes that did nothing, and may have consumed from any queue."""

    def _by_workers(self) -> Ints:
        """The rows where a process says of a message that it is processed that was handed to others alone."""
        rows = self.events.places(Event.PROCESSED)
        message, process = self.events.message[rows].astype(np.int64), self.events.process[rows]
        found: Ints = rows[~self.processed_too_often[message] & ~self.handed.hold(message, process)]
        return found

    def _processed_too_often(self) -> Mask:
        """Which messages were processed more often than they were handed over, whoever did it, and when."""
        events, count = self.events, self.events.count_of("message")
        rows = (events.places(Event.PROCESSED), self.deliveries)
        processed, handed = (np.bincount(events.message[its], minlength=count) for its in rows)
        return np.asarray(processed > handed)

    def handed_together(self, first: Ints, second: Ints) -> Mask:
        """For each pair of messages whether a session was handed one while its consumer was not done with the other."""
        found = np.zeros(len(first), bool)
        found[self._in_hand(first, second)] = True
        found[self._in_hand(second, first)] = True
        return found

    def _in_hand(self, ones: Ints, others: Ints) -> Ints:
        """The places where the session was handed the other one before its consumer was done with the one."""
        events, process = self.events, self.events.process
        rows = self.deliveries[np.argsort(events.message[self.deliveries], kind="stable")]
        pair, place = members_of(events.message[rows], ones)
        this = rows[place]
        both = np.concatenate([this, rows])
        session = number_pairs(process[both], events.session[both])
        whose = number_pairs(session, np.concatenate([others[pair], events.message[rows]]))
        following = _next_with(whose[len(this) :], rows, whose[: len(this)], this)
        until = self._next_of(this, np.concatenate([events.places(Event.PROCESSED, Event.FAILED), self.deliveries]))
        return np.asarray(pair[until > following], np.int64)

    def _next_of(self, deliveries: Ints, rows: Ints) -> Ints:
        """For each of ``deliveries`` the next of ``rows`` of its message and consumer; else never."""
        its = np.concatenate([deliveries, rows])
        which = number_pairs(self.events.message[its], self.events.process[its])
        own, other = which[: len(deliveries)], which[len(deliveries) :]
        return _next_with(other, rows, own, deliveries)

    def of_pairs(self, first: Ints, second: Ints) -> Lines:
        """The same with pairs of messages for messages; both are of one queue and one mode.

        What befell one of two producers is left out: such a pair has no send that was still open then.
        """
        this = copy.copy(self)
        this.producers = np.where(self.producers[first] == self.producers[second], self.producers[first], NOBODY)
        this.senders = Pairs(np.arange(len(first)), this.producers)
        this.queues, this.modes = self.queues[first], self.modes[first]
        pairs, processes = zip(*(self.handed.of(its) for its in (first, second)), strict=True)
        this.handed = Pairs(np.concatenate(pairs), np.concatenate(processes))
        this.prepared = np.concatenate([self.prepared[first], self.prepared[second]], axis=1)
        this.circumstances, this.moments = self._of_failures
        return this

    def consumers_beside(self, message: int, known: Collection[int]) -> tuple[int, ...]:
        """Return the processes that consumed from the queue of ``message``, except the ``known`` ones."""
        _, consumers = self.consumers_of.of(self.queues[[message]])
        return tuple(process for process in consumers.tolist() if process not in known)

    def has_consumers_beside(self, tokens: Tokens) -> Mask:
        """For each message whether its queue has a consumer that none of its ``tokens`` is of.

        Where they are of none, that is another one than the first, which is in any life.
        """
        of_one = tokens.where(tokens.process >= 0)
        message, _, _ = distinct_pairs(of_one.message, of_one.process)
        told = np.bincount(message, minlength=len(self.queues))
        return np.asarray(np.maximum(told, 1) < self.consumers[self.queues])

    def may_be_shared(self) -> Mask:
        """Return a mask of queues (the last: none) that may have several consumers, idle ones included."""
        unheard = self.circumstances.unheard.any()
        return np.asarray(self.consumers + len(self.idle) + unheard > 1)

    def compete(self) -> bool:
        """Whether some queue has several consumers."""
        return bool((self.consumers > 1).any())

    def of_messages(self) -> Tokens:
        """The tokens of the lines that name a message, or cover it."""
        told = {
            Of.NAMED: self._named,
            Of.HOLDER: self._by_holders,
            Of.UNTOLD: self._of_untold_sends,
            Of.COVERED: self._covered_by_calls,
            Of.TRANSACTION: self._in_transactions,
            Of.SESSION: self._in_sessions,
        }
        rows = ((code, row) for code, row in enumerate(self.signs.rows) if row.only is None and row.of in told)
        parts = [told[row.of](code, row, lines_of(self.events, row)) for code, row in rows]
        return self._since_the_last_send(doubted(Tokens.joined(parts), self.signs))

    def _since_the_last_send(self, tokens: Tokens) -> Tokens:
        """Without the sends that were rolled back before the message was sent once more, and what became of them.

        A message that was delivered meanwhile has nothing taken from it.
        """
        events, count = self.events, self.events.count_of("message")
        sends, last = events.sends, events.last_send
        undone = np.zeros(events.count_of("transaction") + 1, bool)
        undone[events.transaction[events.places(Event.ROLLED_BACK)]] = True
        undone[ABSENT] = False
        kept = np.zeros(count, bool)
        earlier = sends[sends < last[events.message[sends]]]
        kept[events.message[earlier[~undone[events.transaction[earlier]]]]] = True
        several = np.zeros(count, bool)
        several[events.message[earlier]] = True
        fresh = several & ~kept & ((events.first_delivery == NONE) | (events.first_delivery > last))
        started = tokens.where(~fresh[tokens.message] | (tokens.row >= last[tokens.message]))
        sign = started.sign.copy()
        again, first = (self.signs.code(event.value) for event in (Event.RESEND, Event.SEND))
        sign[fresh[started.message] & (sign == again)] = first
        return dataclasses.replace(started, sign=sign)

    @staticmethod
    def tokens(
        message: Codes,
        row: Ints | int,
        sign: Ints | int,
        process: Codes | int = NOBODY,
        certainty: Ints | int = Certainty.CERTAIN,
    ) -> Tokens:
        """One token for each of ``message``, of the ``sign`` of that code."""
        columns = (np.asarray(each, np.int64) for each in (message, row, sign, process, certainty))
        return Tokens(*(np.broadcast_to(each, (len(message),)) for each in columns))

    def _named(self, code: int, row: SignRow, rows: Ints) -> Tokens:
        """Return the tokens of named messages; a late line is of the holder of its message."""
        rows = rows[self.events.message[rows] != ABSENT]
        if row.when is When.LATE:
            rows = np.setdiff1d(rows, self.by_workers)
        process = self.events.process[rows] if row.side is Side.CONSUMER else NOBODY
        return self.tokens(self.events.message[rows], rows, code, process)

    def _by_holders(self, code: int, _: SignRow, rows: Ints) -> Tokens:
        events = self.events
        held = last_before(events.message[rows], rows, events.message[self.deliveries], self.deliveries)
        rows, held = rows[held != NONE], self.deliveries[held[held != NONE]]
        return self.tokens(events.message[rows], rows, code, events.process[held])

    def _of_untold_sends(self, code: int, _: SignRow, rows: Ints) -> Tokens:
        """The first of ``rows`` after each send.

        Who is told the outcomes of one delivery mode may be told no others.
        """
        events = self.events
        told = self._of_sender(events.places(Event.CONFIRMED, Event.REJECTED, Event.IN_DOUBT))
        sends = events.plain_sends.place
        sends = sends[~np.isin(self._of_sender(sends), told)]
        following = np.searchsorted(self.moments.high[rows], self.moments.low[sends])
        sends, following = sends[following < len(rows)], following[following < len(rows)]
        return self.tokens(events.message[sends], rows[following], code, certainty=Certainty.PERHAPS)

    def _of_sender(self, rows: Ints) -> Ints:
        """For each of ``rows``, which name messages, a number of its process and the message's delivery mode."""
        modes = np.int64(len(VOCABULARY["delivery_mode"]) + 1)
        found: Ints = self.events.process[rows] * modes + self.modes[self.events.message[rows]] - ABSENT
        return found

    def _in_transactions(self, code: int, row: SignRow, rows: Ints) -> Tokens:
        of_consumers = row.side is Side.CONSUMER
        members = self.deliveries if of_consumers else self.events.sends
        own = self._covered(code, members, self.events.until(members, transaction=rows), of_consumers=of_consumers)
        if not of_consumers or not self._keeps:
            return own
        return Tokens.joined([own, self._in_later_transactions(code, rows)])

    def _in_later_transactions(self, code: int, rows: Ints) -> Tokens:
        """The next transaction of a session may have what it kept of one that was rolled back (RMQ-XML)."""
        events = self.events
        undone = events.transaction[events.places(Event.ROLLBACK, Event.ROLLED_BACK)]
        later = events.until(self.deliveries, session=rows)
        its = events.transaction[self.deliveries]
        held = (later < events.next_delivery) & np.isin(its, undone) & (its != ABSENT)
        held[held] &= events.transaction[later[held]] != its[held]
        found = self._covered(code, self.deliveries, np.where(held, later, NEVER))
        return dataclasses.replace(found, certainty=np.full_like(found.certainty, Certainty.PERHAPS))

    def _in_sessions(self, code: int, _: SignRow, rows: Ints) -> Tokens:
        return self._covered(code, self.deliveries, self.events.until(self.deliveries, session=rows))

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

    def _covered_by_calls(self, code: int, row: SignRow, rows: Ints) -> Tokens:
        """The calls, each for the deliveries of its session that no call covers yet, and the answers to them.

        An answer that belongs to no call covers as a call would.
        """
        if row.is_call:
            return self._called(code, self._calls)
        covering = np.where(np.isin(self._answers, rows), self._answers, NEVER)
        return self._called(code, covering)

    @functools.cached_property
    def _calls(self) -> Ints:
        """For each delivery the call that covers it first; else never."""
        return self.events.covered(self.events.places(Event.ACKNOWLEDGE))

    @functools.cached_property
    def _answers(self) -> Ints:
        """For each delivery the first answer to that call, or to none; else never."""
        answers = self.events.places(*ANSWERS)
        first = np.append(self.events.answered(*ANSWERS), NEVER)
        uncalled = answers[self.events.call_of[answers] == answers]
        of_calls: Ints = first[np.minimum(self._calls, len(self.events))]
        return np.minimum(of_calls, self.events.covered(uncalled))

    def _called(self, code: int, rows: Ints) -> Tokens:
        """Return the tokens of the messages that the calls at ``rows``, or their answers, cover.

        That is uncertain of a message which the call does not name and which the session may not have any more: it went
        elsewhere before, its application failed with it or refused it, or its connection may have broken.  A call of a
        session that was closed, or found broken, is in vain, whatever it names.
        """
        found, events = self._covered(code, self.deliveries, rows), self.events
        covered = rows != NEVER
        deliveries, calls = self.deliveries[covered], rows[covered]
        stale = (self._elsewhere[covered] < calls) | (self._failed[covered] < calls)
        stale |= self._interruptions.between(found.process, events.t[deliveries], events.t[calls])
        stale &= events.message[found.row] != found.message
        certainty = np.where(stale, int(Certainty.IF_POSSIBLE), found.certainty)
        gone = events.until(deliveries, session=events.closes_of_sessions()) < calls
        certainty[gone] = int(Certainty.PERHAPS)
        return dataclasses.replace(found, certainty=certainty.astype(np.int64))

    @functools.cached_property
    def _elsewhere(self) -> Ints:
        """For each delivery the next one of its message, if that is to another process; else never."""
        process, following = np.append(self.events.process, NOBODY), self.events.next_delivery
        moved = process[np.minimum(following, len(self.events))] != process[self.deliveries]
        return np.where(moved, following, NEVER)

    def _covered(self, code: int, members: Ints, rows: Ints, *, of_consumers: bool = True) -> Tokens:
        covered = rows != NEVER
        members, rows = members[covered], rows[covered]
        process = self.events.process[members].astype(np.int64) if of_consumers else NOBODY
        return self.tokens(self.events.message[members], rows, code, process)


def _with_failures(
    events: Index, signs: Signs, found: Circumstances, moments: Moments
) -> tuple[Circumstances, Moments]:
    """What happened around messages where a listener that fails may have its whole session started over."""
    rows = events.places(Event.FAILED)
    rows = rows[events.outcome[rows] == ABSENT]  # an outcome is said by an application, and no exception of a listener
    high = moments.high.copy()
    high[rows] = neighbours(events)[1][rows]
    when, code = (moments.low[rows], high[rows]), signs.code(Event.RECOVER.value)
    failures = Circumstances.of_rows(rows, code, when, events.process[rows], sure=np.zeros(len(rows), np.int64))
    return Circumstances.joined([found, failures]), Moments(moments.low, high)


def _prepared(events: Index) -> Ints:
    """For each message from and to which rows it was in a prepared transaction: sent in one, and consumed in one."""
    begins, ends = events.places(Event.PREPARE, Event.PREPARED), events.places(*_ENDED)
    found = np.zeros((events.count_of("message"), 2 if len(begins) else 0, 2), np.int64)
    if not len(begins):
        return found
    for side, kinds in enumerate(((Event.SEND, Event.RESEND), (Event.DELIVERED,))):
        rows = events.inside(*kinds)
        begin, end = (events.until(rows, transaction=acts) for acts in (begins, ends))
        its = begin != NEVER
        found[events.message[rows[its]], side] = np.stack([begin[its], end[its]], axis=1)
    return found


def _next_with(keys: Ints, rows: Ints, wanted: Ints, after: Ints) -> Ints:
    """For each of the ``wanted`` keys the next of ``rows`` that has it, ``after`` that row; else never."""
    width = np.int64(max(rows.max(initial=0), after.max(initial=0)) + 1)
    held = np.append(np.sort(keys * width + rows), NEVER)
    found = held[np.searchsorted(held, wanted * width + after, side="right")]
    return np.where((found // width == wanted) & (found != NEVER), found % width, NEVER)


def _moments(events: Index, signs: Signs, skew: int) -> Moments:
    """When each row happened: as long before as ``skew`` may hide, so that no order between clocks is too certain."""
    before, after = neighbours(events)
    calls, late = (_written(events, signs, when) for when in (When.BEFORE, When.LATE))
    closes, broken = events.event == event_code(Event.CLOSE), _broken(events)
    before = np.where(broken, last_answers(events), before)
    low = np.where(closes, np.maximum(before, events.t - EFFECT), events.t)
    low = np.where(late, ANY_TIME, low - skew)
    return Moments(low, np.where(calls | closes & ~broken, after, events.t))


def placed(events: Index, skew: int, signs: Signs) -> tuple[Circumstances, Moments]:
    """What happened around the messages, and when each row happened: a fault, between its line and its repair.

    What a client reads when the broker is dead already had arrived before: others may have noticed by then.
    """
    moments = _moments(events, signs, skew)
    found = circumstances(events, signs, moments.low, moments.high)
    moments.low[found.row], moments.high[found.row] = found.low - skew, found.high
    read = events.places(Event.DELIVERED, *_FROM_THE_BROKER)
    for low in found.low[np.isin(found.sign, signs.those(lambda row: row.of is Of.ALL))].tolist():
        since = np.searchsorted(events.t[read], [low, low + EFFECT], side="right")
        late = read[slice(*since)]
        moments.low[late] = np.minimum(moments.low[late], low - skew)
    return found, moments


def _written(events: Index, signs: Signs, when: When) -> Mask:
    """The rows that are lines of calls, or that are late."""
    found = np.zeros(len(events), np.bool_)
    for row in signs.rows:
        if row.when is when:
            found[events.places(Event(row.line))] = True
    return found


def _lanes(events: Index, signs: Signs) -> Ints:
    """Who wrote each row; faults are in no order but that of their times, so that each has a lane of its own.

    So has a connection that broke before the last lines of its process.
    """
    lanes = events.process.astype(np.int64)
    told_late = np.flatnonzero(_broken(events) & (last_answers(events) < neighbours(events)[0]))
    late = np.flatnonzero(_written(events, signs, When.LATE))
    alone = np.concatenate([events.places(Event.FAULT), late, told_late])
    lanes[alone] = events.count_of("process") + np.arange(len(alone))
    return lanes


def neighbours(events: Events) -> tuple[Ints, Ints]:
    """For each row the time of the row before and after it of the same process."""
    order = np.argsort(events.process, kind="stable")
    process, t = events.process[order], events.t[order]
    same = process[1:] == process[:-1]
    before, after = np.empty_like(t), np.empty_like(t)
    before[order] = np.concatenate([[-NEVER], np.where(same, t[:-1], -NEVER)])[: len(t)]
    after[order] = np.concatenate([np.where(same, t[1:], NEVER), [NEVER]])[-len(t) :] if len(t) else after
    return before, after


def _broken(events: Index) -> Mask:
    """The rows that tell of a connection that broke."""
    return np.asarray((events.event == event_code(Event.CLOSE)) & (events.errs == 1))


def last_answers(events: Events) -> Ints:
    """For each row the time of the last row before it of the same process that shows that the broker was there.

    What is handed over may have waited in the library.
    """
    order = np.argsort(events.process, kind="stable")
    process, t = events.process[order].astype(np.int64), events.t[order]
    answers = np.isin(events.event[order], [event_code(each) for each in _FROM_THE_BROKER])
    last = np.maximum.accumulate(np.where(answers, np.arange(len(order)), NONE))
    earlier = np.concatenate([[NONE], last[:-1]])[: len(order)]
    found = np.empty_like(t)
    found[order] = np.where((earlier != NONE) & (process[earlier] == process), t[earlier], -NEVER)
    return found
