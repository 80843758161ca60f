"""What an engine holds: parts with a state, copies of messages among them, and the scopes in which copies are found."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterator
from typing import Any

from ackfsm.engine._automaton import UNKNOWN, Automaton, Column
from ackfsm.engine._wiring import Call, State, View
from ackfsm.terms import Configuration

__all__ = ["Copy", "Filed", "Nobody", "Part", "Scope"]


class Part:
    """Some machines of one session, of the broker or of a copy, in their present state."""

    __slots__ = ("automaton", "columns", "state")

    def __init__(self, automaton: Automaton) -> None:
        """Every machine in its first state."""
        self.automaton = automaton
        self.columns: list[Column | None] = automaton.columns
        self.state = automaton.initial

    def goes_to(self, signal: int) -> int:
        """Where ``signal`` would take it, :data:`ackfsm.engine._automaton.REFUSED` if nowhere."""
        column = self.columns[signal]
        if column is None:
            return self.state
        target = column[self.state]
        return self.automaton.fill(signal, self.state) if target == UNKNOWN else target

    def of(self, machine: str) -> str:
        """The state of one machine."""
        return self.automaton.of(self.state, machine)

    @property
    def told(self) -> State:
        """What the tables say of the present state."""
        told: State = self.automaton.told[self.state]
        return told


class Nobody(Part):
    """Stands for a role that nobody has: it takes part in nothing and is nowhere."""

    __slots__ = ()

    def __init__(self, signals: int) -> None:
        """``signals`` is how many there are."""
        self.columns = [None] * signals
        self.state = -1

    @property
    def told(self) -> State:
        """Nothing."""
        return _NOTHING


_NOTHING = State(
    filed=(), todo=(), by=frozenset(), sending=False, acknowledging=False, hands=None, goes=None, claimable=False
)


class Filed:
    """The copies that react to one call, in the order of their keys.

    Most come in that order; the few that come back (a redelivery) wait in a heap.  Whoever has left
    is dropped when he comes to the front.
    """

    __slots__ = ("_early", "_tail", "members")

    def __init__(self) -> None:
        self.members: dict[int, Copy] = {}
        self._tail: deque[int] = deque()
        self._early: list[int] = []

    def add(self, copy: Copy) -> None:
        """File ``copy``."""
        key = copy.key
        if self._tail and self._tail[-1] >= key:
            heapq.heappush(self._early, key)
        else:
            self._tail.append(key)
        self.members[key] = copy

    def remove(self, copy: Copy) -> None:
        """Take ``copy`` out."""
        del self.members[copy.key]
        if not self.members:
            self._tail.clear()
            self._early.clear()

    def first(self) -> Copy | None:
        """The copy with the smallest key."""
        members, tail, early = self.members, self._tail, self._early
        while tail and tail[0] not in members:
            tail.popleft()
        while early and early[0] not in members:
            heapq.heappop(early)
        if not tail:
            return members[early[0]] if early else None
        return members[min(tail[0], early[0]) if early else tail[0]]

    def smallest(self, count: int | None) -> list[Copy]:
        """The first ``count`` copies, all if it is ``None``."""
        members = self.members
        if self._early or count is None:
            keys = sorted(members) if count is None else heapq.nsmallest(count, members)
        else:
            keys = list(itertools.islice((key for key in self._tail if key in members), count))
        return [members[key] for key in keys]

    def towards(self, copy: Copy, call: Call) -> Iterator[Copy]:
        """The copies that hear ``call`` when ``copy`` acts: for ``LATER`` those before it."""
        if call.view is View.LATER:
            first = self.first()
            if first is None or first.key >= copy.key:
                return
        shift = 2 if call.by_message else 0
        mine = copy.key >> shift
        for key in sorted(self.members):
            if (key >> shift) < mine if call.view is View.LATER else (key >> shift) > mine:
                yield self.members[key]


class Scope:
    """A connection, a queue, a session or the broker, as a place where copies are filed under calls."""

    __slots__ = ("filed",)

    def __init__(self, calls: int) -> None:
        self.filed: list[Filed | None] = [None] * calls

    def under(self, call: Call) -> Filed:
        """The copies that react to ``call`` here."""
        found = self.filed[call.number]
        if found is None:
            found = self.filed[call.number] = Filed()
        return found


class Copy(Part):
    """One copy of a message: its machines, and what belongs to it.

    ``key`` orders all copies of an engine: four times the number of the message, and the number of the copy.
    ``roles`` are the parts that take part in its events (:class:`Nobody` where it has none), ``scopes`` where it is
    filed, ``None`` where it has none.
    """

    __slots__ = (
        "counted",
        "filed",
        "kept",
        "key",
        "mark",
        "message",
        "premarked",
        "received",
        "refuse",
        "roles",
        "scopes",
        "sent",
        "stored",
        "twin",
    )

    def __init__(self, automaton: Automaton, message: Any, key: int, nobody: Nobody) -> None:
        """A copy in its first state, filed nowhere; see :meth:`key_of`."""
        self.automaton = automaton
        self.columns = automaton.columns
        self.state = automaton.initial
        self.message = message
        self.key = key
        self.roles: list[Part] = [self, nobody, nobody, nobody, nobody, nobody, nobody]
        self.scopes: list[Scope | None] = [None, None, None, None]
        self.filed: tuple[Call, ...] = ()
        self.twin: Copy | None = None
        self.sent: Configuration | None = None
        self.kept: Configuration | None = None
        self.received: Any = None
        self.stored = self.counted = self.premarked = self.refuse = False
        self.mark = 0

    @staticmethod
    def key_of(serial: int, number: int) -> int:
        """The key of copy ``number`` (from 1) of message number ``serial``."""
        return 4 * serial + number

    @property
    def serial(self) -> int:
        """The number of the message, from 1."""
        return self.key >> 2

    @property
    def number(self) -> int:
        """The number of the copy, from 1."""
        return self.key & 3

    def move(self, automaton: Automaton) -> None:
        """Go on under another configuration: the same states, other rows."""
        if automaton is not self.automaton:
            self.state = automaton.number(self.automaton.names[self.state])
            self.automaton = automaton
            self.columns = automaton.columns

    @property
    def spent(self) -> bool:
        """Whether nothing that an application could see can happen to it any more."""
        return self.automaton.spent(self.state)

    def file(self) -> None:
        """Be found under the calls to which the present state reacts."""
        now = self.told.filed
        if now is self.filed:
            return
        for call in self.filed:
            scope = self.scopes[call.scope]
            if scope is not None and call not in now:
                scope.under(call).remove(self)
        for call in now:
            scope = self.scopes[call.scope]
            if scope is not None and call not in self.filed:
                scope.under(call).add(self)
        self.filed = now

    def unfile(self, scope: int | None = None) -> None:
        """Be found nowhere any more, or not in that scope."""
        for call in self.filed:
            where = self.scopes[call.scope]
            if where is not None and scope in (None, call.scope):
                where.under(call).remove(self)
        if scope is None:
            self.filed = ()

    def enter(self, number: int, scope: Scope | None) -> None:
        """Belong to another session, and be found there."""
        self.unfile(number)
        self.scopes[number] = scope
        if scope is not None:
            for call in self.filed:
                if call.scope == number:
                    scope.under(call).add(self)
