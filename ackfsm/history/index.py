"""A history with an index: each column is computed once, when it is first asked for.

What is found is a column: one entry for each message, delivery or send.  None of it may be written to.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np
import pyarrow as pa  # noqa: TC002 - it is there wherever this module is

from ackfsm.history.arrays import Codes, Ints, Mask
from ackfsm.history.columns import ABSENT, Events
from ackfsm.history.format import ACKNOWLEDGE_TIMEOUT, TELLERS, VOCABULARY, Event
from ackfsm.history.joins import NEVER, NONE, at, distinct_pairs, first_covering, last_before, number_pairs
from ackfsm.history.victims import FAULT_EVENTS, FaultLine, Outages, fault_lines, hits, outages_of
from ackfsm.terms import AckScope, Fault

_SENDS = (Event.SEND, Event.RESEND)
_ANSWERS = (Event.ACKNOWLEDGED, Event.ACK_IN_DOUBT)
OUTCOMES = (Event.CONFIRMED, Event.REJECTED, Event.IN_DOUBT)
"""What the sender of a message is told of it."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Sends:
    """The sends and resends outside transactions, in the order of time, one entry each.

    Attributes:
        place: the row of each.
        outcome: the row of the first outcome of its message after it, :data:`NEVER` if there is none.
        crash: the moment from which a crash leaves it without outcome, :data:`NEVER` if none does: the row of
            the fault, or the send's own row if it was made between fault and recovery.
        end: the row from which it is open no more: of its outcome, of the crash, or of a close of its session.
    """

    place: Ints
    outcome: Ints
    crash: Ints
    end: Ints


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Quiescence:
    """For each message, when its queue was last seen drained; a ``drained`` without a queue is one of every queue.

    Attributes:
        drained: the row of the last ``drained`` of its queue, :data:`NONE` if there is none.
        judged: whether that is later than its last send, or if it has none, than its last line.
    """

    drained: Ints
    judged: Mask
    _queue: Ints
    _names: pa.Array

    def at_rest(self) -> Quiescence:
        """As if every queue had been seen drained after all else."""
        return dataclasses.replace(self, drained=np.full_like(self.drained, NEVER), judged=np.ones_like(self.judged))

    def undrained(self, messages: Mask) -> tuple[str, ...]:
        """Return the queues of unjudged ``messages``, a mask, in the order of their names; "" is no queue."""
        left = np.unique(self._queue[messages & ~self.judged])
        return tuple(sorted("" if code == ABSENT else str(self._names[code]) for code in left.tolist()))


class Index(Events):
    """The events of a history as :class:`Events`, and columns computed from them."""

    @classmethod
    def of(cls, events: Events) -> Index:
        """``events`` themselves if they are an index already."""
        if isinstance(events, Index):
            return events
        return cls(**{field.name: getattr(events, field.name) for field in dataclasses.fields(events)})

    @functools.cached_property
    def _found(self) -> dict[object, Ints]:
        return {}

    def places(self, *events: Event) -> Ints:
        """The rows of these events, ascending."""
        if events not in self._found:
            self._found[events] = super().places(*events)
        return self._found[events]

    def inside(self, *events: Event) -> Ints:
        """Return the rows in a transaction."""
        rows = self.places(*events)
        return np.asarray(rows[self.transaction[rows] != ABSENT])

    @property
    def members(self) -> Ints:
        """The rows that make a message one of a transaction."""
        return self.inside(*_SENDS, Event.DELIVERED)

    def first_of(self, rows: Ints, column: str = "message") -> Ints:
        """The first of ``rows``, ascending, of each message or other name of a ``column``; :data:`NONE` without one."""
        return self.last_of(rows[::-1], column)

    def last_of(self, rows: Ints, column: str = "message") -> Ints:
        """The last of them."""
        found = np.full(self.count_of(column) + 1, NONE, np.int64)
        found[getattr(self, column)[rows]] = rows  # the last assignment wins, and what is ABSENT assigns the last entry
        return found[:-1]

    def first(self, *events: Event) -> Ints:
        """The first row of these events of each message, :data:`NONE` without one."""
        key = ("first", events)
        if key not in self._found:
            self._found[key] = self.first_of(self.places(*events))
        return self._found[key]

    def last(self, *events: Event) -> Ints:
        """The last row of them."""
        key = ("last", events)
        if key not in self._found:
            self._found[key] = self.last_of(self.places(*events))
        return self._found[key]

    @property
    def sends(self) -> Ints:
        """The rows of all sends, in transactions too."""
        return self.places(*_SENDS)

    @property
    def deliveries(self) -> Ints:
        """The rows of all deliveries."""
        return self.places(Event.DELIVERED)

    @property
    def first_send(self) -> Ints:
        """For each message the row of its first send or resend, :data:`NONE` without one."""
        return self.first(*_SENDS)

    @property
    def last_send(self) -> Ints:
        """The last of them."""
        return self.last(*_SENDS)

    @property
    def first_delivery(self) -> Ints:
        """For each message the row of its first delivery, :data:`NONE` without one."""
        return self.first(Event.DELIVERED)

    @functools.cached_property
    def named(self) -> Ints:
        """The rows that name a message."""
        return np.flatnonzero(self.message != ABSENT)

    @functools.cached_property
    def queue_of(self) -> Ints:
        """For each message the code of the queue of its last send that names one, else of its last line that does."""
        sent, told = (self.last_of(rows[self.queue[rows] != ABSENT]) for rows in (self.sends, self.named))
        return at(self.queue, np.where(sent == NONE, told, sent), ABSENT)

    @functools.cached_property
    def mode_of(self) -> Ints:
        """Return for each message the delivery mode of its last send that names one."""
        return at(self.delivery_mode, self.last_of(self.sends[self.delivery_mode[self.sends] != ABSENT]), ABSENT)

    def consumers(self, rows: Ints) -> Mapping[int, frozenset[str]]:
        """For the code of each queue, :data:`ABSENT` for none, the names of the processes of these deliveries."""
        queue, process, _ = distinct_pairs(self.queue[rows] + 1, self.process[rows])
        names, found = self.names["process"], dict[int, frozenset[str]]()
        for code, each in zip((queue - 1).tolist(), process.tolist(), strict=True):
            found[code] = found.get(code, frozenset()) | {str(names[each])}
        return found

    @functools.cached_property
    def sender_of(self) -> Ints:
        """Return for each message the process that sent it last, :data:`ABSENT` without a send."""
        return at(self.process, self.last_send, ABSENT)

    @functools.cached_property
    def kind_of(self) -> Ints:
        """For each message a number of its queue, delivery mode and priority: order is owed within one kind alone."""
        priority = at(self.priority, self.last_send, ABSENT)
        return number_pairs(number_pairs(self.queue_of, self.mode_of), priority)

    @functools.cached_property
    def quiescence(self) -> Quiescence:
        """When queues were seen drained after their messages were sent: only then does absent mean lost."""
        last = np.full(self.count_of("queue") + 1, NONE, np.int64)
        rows = self.places(Event.DRAINED)
        last[self.queue[rows]] = rows  # the entry that ABSENT indexes is of all queues
        drained = np.maximum(last[self.queue_of], last[ABSENT])
        told = np.where(self.last_send == NONE, self.last_of(self.named), self.last_send)
        return Quiescence(drained, drained > told, self.queue_of, self.names["queue"])

    def until(self, members: Ints, **ends: Ints) -> Ints:
        """For each of ``members``, which are rows, the first row after which it is over; :data:`NEVER` without one.

        ``ends`` are rows, ascending, by the column in which one is alike a member that it ends.
        """
        return functools.reduce(
            np.minimum, [self._reached(members, getattr(self, name), rows, rows) for name, rows in ends.items()]
        )

    @staticmethod
    def _reached(members: Ints, group: Codes, acts: Ints, cuts: Ints) -> Ints:
        return at(acts, first_covering(group[members], members, group[acts], cuts), NEVER)

    @functools.cached_property
    def next_delivery(self) -> Ints:
        """For each delivery the row of the next one of its message, :data:`NEVER` without one."""
        return self.until(self.deliveries, message=self.deliveries)

    @functools.cached_property
    def gives_back(self) -> Ints:
        """The rows with which a session gives back all that it had been delivered."""
        return np.union1d(self.places(Event.RECOVER), self.closes_of_sessions())

    @functools.cached_property
    def own_message(self) -> Ints:
        """For each row a number of its session and message."""
        return number_pairs(self.session, self.message)

    def covered(self, acts: Ints, scope: Codes | None = None, *, to_the_letter: bool = False) -> Ints:
        """For each delivery the first of ``acts`` (acknowledgements or answers) that covers it; :data:`NEVER` if none.

        An answer covers what its call covers.  Each covers deliveries of its own session alone, and none that the
        session gave back before, by recover() or its end.  To the letter of its scope, by which anomalies are counted,
        one of a message covers that in any session, and one of a session what it gave back before too.
        """
        deliveries, scope = self.deliveries, self.scope if scope is None else scope
        cuts = self._cuts(acts, scope)
        one = scope[acts] == VOCABULARY["scope"].index(AckScope.MESSAGE)
        of_session = self._reached(deliveries, self.session, acts[~one], cuts[~one])
        if not to_the_letter:
            given_back = self.until(deliveries, session=self.gives_back) < of_session
            of_session = np.where(given_back, NEVER, of_session)
        message = self.message if to_the_letter else self.own_message
        return np.minimum(self._reached(deliveries, message, acts[one], cuts[one]), of_session)

    def _cuts(self, acts: Ints, scope: Codes) -> Ints:
        """Before which row a delivery is covered by each act: its call, or just after the delivery that it names."""
        cuts = self.call_of[acts]
        up_to = np.flatnonzero(scope[acts] == VOCABULARY["scope"].index(AckScope.UP_TO))
        if len(up_to):
            own = self.own_message
            found = last_before(own[acts[up_to]], cuts[up_to], own[self.deliveries], self.deliveries)
            cuts[up_to] = at(self.deliveries, found, NONE) + 1
        return cuts

    @functools.cached_property
    def call_of(self) -> Ints:
        """For the answer to an acknowledgement the row of its call, the last one of that session, message and scope.

        For all other rows, and where there is no call, the row itself.
        """
        calls, answers = self.places(Event.ACKNOWLEDGE), self.places(*_ANSWERS)
        both = np.concatenate([calls, answers])
        what = number_pairs(number_pairs(self.session[both], self.message[both]), self.scope[both])
        found = np.arange(len(self))
        last = last_before(what[len(calls) :], answers, what[: len(calls)], calls)
        found[answers] = at(calls, last, answers)
        return found

    def answered(self, *answers: Event) -> Ints:
        """Return for each row, a call, the first of these answers to it, :data:`NEVER` without one."""
        rows = self.places(*answers)[::-1]
        found = np.full(len(self), NEVER)
        found[self.call_of[rows]] = rows  # the last assignment wins
        return found

    @functools.cached_property
    def timeouts(self) -> tuple[Ints, Ints]:
        """The rows of time-outs, and for each the latest call of its session, or of its process, before it.

        One before which nobody called, or after whose answer, tells of nothing.
        """
        faults, calls = self.places(Event.FAULT), self.places(Event.ACKNOWLEDGE)
        rows = faults[self.fault[faults] == VOCABULARY["fault"].index(ACKNOWLEDGE_TIMEOUT)]
        tellers = [number for number, name in enumerate(self.names["process"].to_pylist()) if name in TELLERS]
        mine = np.where(np.isin(self.process[rows], tellers), NONE, self.process[rows])
        in_session = last_before(self.session[rows], rows, self.session[calls], calls)
        found = np.where(in_session == NONE, last_before(mine, rows, self.process[calls], calls), in_session)
        rows, its = rows[found != NONE], calls[found[found != NONE]]
        open_ = self.answered(Event.ACKNOWLEDGED)[its] > rows
        return rows[open_], its[open_]

    @functools.cached_property
    def fault_lines(self) -> tuple[FaultLine, ...]:
        """The lines that tell of faults and of repairs."""
        return fault_lines(self, self.places(*FAULT_EVENTS))

    @functools.cached_property
    def outages(self) -> Outages:
        """Each fault with its repair."""
        return outages_of(self.fault_lines)

    @functools.cached_property
    def lost_links(self) -> Mapping[Fault, Ints]:
        """The connections that were found broken, of producers and of consumers: the rows that tell so."""
        rows = self.found_broken()
        acts = {Fault.PRODUCER_LINK_LOSS: self.sends, Fault.CONSUMER_LINK_LOSS: self.deliveries}
        return {fault: rows[np.isin(self.process[rows], self.process[its])] for fault, its in acts.items()}

    @functools.cached_property
    def plain_sends(self) -> Sends:
        """The sends outside transactions; an outcome closes every open send of its message."""
        place = self.sends[self.transaction[self.sends] == ABSENT]
        outcome = self.until(place, message=self.places(*OUTCOMES, Event.RETURNED))
        crash = np.where(outcome == NEVER, self._crashes(place), NEVER)
        closed = self.until(place, session=self.places(Event.CLOSE))
        return Sends(place, outcome, crash, np.minimum.reduce([outcome, crash, closed]))

    def _crashes(self, place: Ints) -> Ints:
        kinds = [VOCABULARY["fault"].index(crash) for crash in (Fault.PRODUCER_CRASH, Fault.CONSUMER_CRASH)]
        rows = self.places(*FAULT_EVENTS)
        lines = fault_lines(self, rows[np.isin(self.fault[rows], kinds)], place)
        outages = [each for each in outages_of(lines) if each[0].victims or each[0].fault == Fault.PRODUCER_CRASH]
        if not any(crash.victims or crash.queue != ABSENT for crash, _ in outages):
            return _left(outages, place, len(self))
        found = np.full(len(place), NEVER)
        whose = number_pairs(self.process[place], self.queue[place])
        _, first, group = np.unique(whose, return_index=True, return_inverse=True)
        for number, sample in enumerate(place[first].tolist()):
            its = np.flatnonzero(group == number)
            mine = [each for each in outages if hits(each[0], int(self.process[sample]), int(self.queue[sample]))]
            found[its] = _left(mine, place[its], len(self))
        return found


def _left(outages: Outages, place: Ints, end: int) -> Ints:
    """For each send the moment from which one of the ``outages`` leaves it, :data:`NEVER` if none does."""
    starts = np.array([crash.moment[0] for crash, _ in outages], np.int64)
    until = np.array([end if repair is None else repair.moment[0] for _, repair in outages], np.int64)
    following = np.searchsorted(starts, place)
    during = np.append(np.maximum.accumulate(until), NONE)[following - 1] > place  # before the first crash it is NONE
    return np.where(during, place, np.append(starts, NEVER)[following])
