"""The index of the stories of a history, computed once: rows by message, faults with their victims."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np

from ackfsm.history.arrays import Codes, Ints
from ackfsm.history.columns import ABSENT
from ackfsm.history.format import Event
from ackfsm.history.index import Index
from ackfsm.text import shown
from ackfsm.verify import Stream, expand

_ENDS = (Event.BEGIN, Event.COMMIT, Event.COMMITTED, Event.COMMIT_IN_DOUBT, Event.ROLLBACK, Event.ROLLED_BACK)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Rows in groups, by a code: one group is found without looking at the others.

    Attributes:
        rows: all of them, by group, and in a group ascending.
        groups: the group of each, ascending.
    """

    rows: Ints
    groups: Codes

    @classmethod
    def of(cls, rows: Ints, groups: Codes) -> Groups:
        """Of ``rows``, ascending, and the group of each."""
        order = np.argsort(groups, kind="stable")
        return cls(rows[order], groups[order])

    def __getitem__(self, group: int) -> Ints:
        begin, end = np.searchsorted(
            self.groups, np.array([group, group + 1], self.groups.dtype)
        )  # of another type it would be copied
        return self.rows[begin:end]


@dataclasses.dataclass(frozen=True, eq=False)
class Lookup:
    """The index of ``events``, every line spelled out; each part is made when it is first asked for.

    Attributes:
        events: the history.
        elsewhere: the names of processes that took messages of a queue of which the events tell nothing, by queue.
        tells_flags: whether the flags of deliveries were recorded, and not made up by who wrote the history.
    """

    events: Index
    elsewhere: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    tells_flags: bool = True

    @functools.cached_property
    def _stream(self) -> Stream:
        return expand(self.events)

    @functools.cached_property
    def _named(self) -> Groups:
        return Groups.of(np.arange(len(self.events)), self.events.message)

    @functools.cached_property
    def _ends(self) -> Groups:
        rows = self.events.places(*_ENDS)
        return Groups.of(rows, self.events.transaction[rows])

    @functools.cached_property
    def sent_by(self) -> Groups:
        """The rows of sends by the process that sent."""
        return self._by("process", Event.SEND)

    @functools.cached_property
    def delivered_in(self) -> Groups:
        """The rows of deliveries by the session in which they were."""
        return self._by("session", Event.DELIVERED)

    @functools.cached_property
    def of_transactions(self) -> Groups:
        """The rows that make a message one of a transaction, by transaction."""
        return self._by("transaction", Event.SEND, Event.RESEND, Event.DELIVERED)

    def _by(self, column: str, *kinds: Event) -> Groups:
        rows = self.events.places(*kinds)
        return Groups.of(rows, getattr(self.events, column)[rows])

    @functools.cached_property
    def codes(self) -> Mapping[str, int]:
        """Return the code of each message id that a line names."""
        told = np.unique(self.events.message[self.events.message != ABSENT])
        names = self.events.names["message"].take(told).to_pylist()
        return dict(zip(names, told.tolist(), strict=True))

    @functools.cached_property
    def shown_codes(self) -> Mapping[str, int]:
        """Return the codes by the ids as they are shown; of ids that look alike the first."""
        return {shown(name): code for name, code in reversed(tuple(self.codes.items()))}

    @functools.cached_property
    def repairs(self) -> Mapping[int, int]:
        """For the row of each fault that of its repair, if it has one."""
        return {fault.moment[0]: repair.moment[0] for fault, repair in self.events.outages if repair is not None}

    @functools.cached_property
    def _victims(self) -> Mapping[int, tuple[str, ...]]:
        names, lines = self.events.names["process"], self.events.fault_lines
        return {line.moment[0]: tuple(sorted(str(names[each]) for each in line.victims)) for line in lines}

    def victims(self, row: int) -> tuple[str, ...]:
        """The processes that the fault or repair of that ``row`` names."""
        return self._victims.get(row, ())

    def named(self, message: int) -> Ints:
        """The rows that name ``message``."""
        return self._named[message]

    def covering(self, message: int) -> Ints:
        """The rows that are an observable of ``message``."""
        begin, end = np.searchsorted(self._stream.message, np.array([message, message + 1], self._stream.message.dtype))
        return self._stream.place[begin:end]

    def ends(self, transactions: Ints) -> Ints:
        """The rows that begin or end one of these transactions."""
        return np.concatenate([np.empty(0, np.int64), *(self._ends[each] for each in transactions.tolist())])

    @functools.cached_property
    def _consumers(self) -> Mapping[int, frozenset[str]]:
        return self.events.consumers(self.events.deliveries)

    def consumers(self, queue: int) -> frozenset[str]:
        """The names of the processes that were handed messages of the ``queue`` of that code."""
        name = "" if queue == ABSENT else str(self.events.names["queue"][queue])
        return self._consumers.get(queue, frozenset()) | self.elsewhere.get(name, frozenset())
