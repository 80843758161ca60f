"""What an engine holds: parts with a state, copies of messages among them, and the scopes in which copies are found."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterator
from typing import Any

from ackfsm.engine.core.automaton import UNKNOWN, Automaton, Column
from ackfsm.engine.core.model import Call, State, View
from ackfsm.terms import Configuration

__all__ = ["Copy", "Filed", "Nobody", "Part", "Route", "Scope"]

_SLACK = 64
"""So many keys of copies that have left may be in a file before it is put in order anew."""


class Part:
    """Some machines of one session, of the broker or of a copy, in their present state."""

    __slots__ = ("automaton", "columns", "state")

    def __init__(self, automaton: Automaton) -> None:
        """Every machine in its first state."""
        self.automaton = automaton
        self.columns: list[Column | None] = automaton.columns
        self.state = automaton.initial

    def goes_to(self, signal: int) -> int:
        """Where ``signal`` would take it, :data:`ackfsm.engine.core.automaton.REFUSED` if nowhere."""
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
    """The copies that react to one call.

    The order of their keys is kept from the first time that somebody asks for it; until then ``tail`` is ``None``, and
    ``members`` may be changed as they are.  Most come in that order; the few that come back (a redelivery) wait in
    a heap.  Whoever has left is dropped when he comes to the front.
    """

    __slots__ = ("_early", "members", "tail")

    def __init__(self) -> None:
        self.members: dict[int, Copy] = {}
        self.tail: deque[int] | None = None
        self._early: list[int] = []

    def add(self, copy: Copy) -> None:
        """File ``copy``."""
        key, tail = copy.key, self.tail
        if tail is not None:
            if tail and tail[-1] >= key:
                heapq.heappush(self._early, key)
            else:
                tail.append(key)
        self.members[key] = copy

    def remove(self, copy: Copy) -> None:
        """Take ``copy`` out."""
        members = self.members
        del members[copy.key]
        tail = self.tail
        if tail is None:
            return
        if not members:
            tail.clear()
            self._early.clear()
        elif len(tail) + len(self._early) > _SLACK + 2 * len(members):
            self.tail = None  # few of them are still here

    @property
    def kept(self) -> int:
        """How many keys are kept, those of copies that have left included."""
        return len(self.members) + len(self.tail or ()) + len(self._early)

    def _ordered(self) -> deque[int]:
        """The keys, the first of which is there."""
        members, tail = self.members, self.tail
        if tail is None:
            tail = self.tail = deque(sorted(members))
            self._early.clear()
        while tail and tail[0] not in members:
            tail.popleft()
        return tail

    def first(self) -> Copy | None:
        """The copy with the smallest key."""
        members, tail = self.members, self.tail
        if len(members) <= 1:
            return next(iter(members.values()), None)
        if tail and not self._early and (found := members.get(tail[0])) is not None:
            return found
        tail, early = self._ordered(), self._early
        while early and early[0] not in members:
            heapq.heappop(early)
        if not tail:
            return members[early[0]]
        return members[min(tail[0], early[0]) if early else tail[0]]

    def _last(self) -> int:
        """The largest key; somebody must be here."""
        members, tail = self.members, self._ordered()
        while tail and tail[-1] not in members:
            tail.pop()
        early = max((key for key in self._early if key in members), default=0)
        return max(tail[-1], early) if tail else early

    def smallest(self, count: int | None) -> list[Copy]:
        """The first ``count`` copies, all if it is ``None``."""
        members, tail = self.members, self._ordered()
        if self._early or count is None:
            keys = sorted(members) if count is None else heapq.nsmallest(count, members)
        else:
            keys = list(itertools.islice((key for key in tail if key in members), count))
        return [members[key] for key in keys]

    def towards(self, copy: Copy, call: Call) -> Iterator[Copy]:
        """The copies that hear ``call`` when ``copy`` acts: for ``LATER`` those before it."""
        if self.hears(copy.key, later=call.view is View.LATER, shift=call.shift):
            mine = copy.key >> call.shift
            for key in sorted(self.members):
                if (key >> call.shift) < mine if call.view is View.LATER else (key >> call.shift) > mine:
                    yield self.members[key]

    def hears(self, key: int, *, later: bool, shift: int) -> bool:
        """Whether anybody is here before ``key`` (``later``), or behind it, as far as the bits above ``shift`` tell."""
        members = self.members
        if not members or (len(members) == 1 and key in members):
            return False
        if later:
            first = self.first()
            return first is not None and first.key >> shift < key >> shift
        return self._last() >> shift > key >> shift


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


class Route:
    """What copies have in common that go from one producer through one queue to one consumer.

    Attributes:
        automaton: of a copy that goes so.
        roles: the parts that take part in its events, by :class:`Role`; in the place of the copy itself nobody.
        scopes: where it is filed, by :data:`SCOPES`, ``None`` where it has none.
        sent: the configuration under which it was sent.
        kept: that under which all but the sending is done.
        number: which copy of its message it is, from 1.
        outgoing: the sending side, ``None`` if it is of an earlier life of the broker.
        incoming: the consuming side, ``None`` as long as it has gone to nobody.
        base: the way as it was before it went to a consumer.
        recorded: what has been recorded of copies that went so, by any route of the kind.
        courses: the same for this route.
        starts: where a copy that comes to this consumer begins, by the automaton and the state that it had.
    """

    __slots__ = (
        "automaton",
        "base",
        "courses",
        "incoming",
        "kept",
        "number",
        "outgoing",
        "recorded",
        "roles",
        "scopes",
        "sent",
        "starts",
    )

    def __init__(  # noqa: PLR0913 - all that it is, by name
        self,
        *,
        automaton: Automaton,
        roles: tuple[Part, ...],
        scopes: tuple[Scope | None, ...],
        sent: Configuration | None,
        kept: Configuration | None,
        recorded: dict[Any, Any],
        number: int = 1,
        outgoing: Any = None,
        incoming: Any = None,
        base: Route | None = None,
    ) -> None:
        self.automaton = automaton
        self.roles = roles
        self.scopes = scopes
        self.sent = sent
        self.kept = kept
        self.number = number
        self.outgoing = outgoing
        self.incoming = incoming
        self.base = base or self
        self.recorded = recorded
        self.courses: dict[Any, Any] = {}
        self.starts: dict[tuple[Automaton, int], int] = {}


class Copy(Part):
    """One copy of a message: its machines, and what belongs to it.

    ``key`` orders all copies of an engine: four times the number of the message, and the number of the copy.
    ``route`` says who takes part in its events and where it is filed.
    ``mark`` is how often it has been sent to a consumer, as an application is told: more than once if it is flagged.
    ``unseen`` says that the first of these, which marked it, was no attempt.
    """

    __slots__ = (
        "counted",
        "filed",
        "flagged",
        "key",
        "mark",
        "message",
        "premarked",
        "received",
        "refuse",
        "route",
        "stored",
        "twin",
        "unseen",
    )

    def __init__(self, route: Route, message: Any, key: int) -> None:
        """A copy in its first state, filed nowhere; see :meth:`key_of`."""
        self.automaton = automaton = route.automaton
        self.columns = automaton.columns
        self.state = automaton.initial
        self.route = route
        self.message = message
        self.key = key
        self.filed: tuple[Call, ...] = ()
        self.twin: Copy | None = None
        self.received: Any = None
        self.stored = self.counted = self.premarked = self.refuse = self.flagged = self.unseen = False
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

    @property
    def attempts(self) -> int:
        """How many of the times that it has been sent count: what was given back unseen may not."""
        return self.mark - self.unseen

    def give_back_unseen(self) -> None:
        """The last time that it was sent does not count; that it was marked then stays."""
        if self.mark == 1:
            self.unseen = True
        else:
            self.mark -= 1

    @property
    def scopes(self) -> tuple[Scope | None, ...]:
        """Where it is filed, by :data:`SCOPES`."""
        return self.route.scopes

    def part(self, role: int) -> Part:
        """Who has that role in its events."""
        return self.route.roles[role] if role else self

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

    def unfile(self) -> None:
        """Be found nowhere any more."""
        for call in self.filed:
            scope = self.scopes[call.scope]
            if scope is not None:
                scope.under(call).remove(self)
        self.filed = ()

    def go(self, route: Route, state: int) -> None:
        """Go on by another route, to another consumer, in the state there that stands for the present one."""
        self.unfile()
        self.route, self.automaton, self.columns = route, route.automaton, route.automaton.columns
        self.state = state
        self.file()
