"""Queues, and the sessions that send to them and consume from them, as the core sees them."""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import Any

from ackfsm.engine._automaton import REFUSED, Automaton
from ackfsm.engine._core import Core
from ackfsm.engine._parts import Copy, Part, Scope
from ackfsm.engine._wiring import Role
from ackfsm.terms import Configuration

__all__ = ["Incoming", "Outgoing", "Queue"]

_CONSUMER = 2


class Outgoing:
    """The sending side of a session under one configuration: its connection, its window, its transaction."""

    __slots__ = ("configuration", "configurations", "open", "owner", "parts", "process", "session")

    def __init__(self, core: Core, process: str, name: str, configuration: Configuration) -> None:
        """``process`` is the client's name in the history, ``name`` the session's."""
        roles = (Role.PRODUCER, Role.WINDOW, Role.UNANSWERED)
        self.configuration = configuration
        self.process = process
        self.parts = {role: Part(core.wiring.part(role, configuration)) for role in roles}
        self.session = core.session("producer", name, self.parts)
        self.session.face = self
        self.owner: Any = None
        self.open: dict[Any, None] = {}
        self.configurations: dict[bool, tuple[Configuration, Automaton]] = {}

    def automaton(self, core: Core, *, durable: bool) -> tuple[Configuration, Automaton]:
        """The machines of a message that is sent from here to a queue that is durable or not."""
        if durable not in self.configurations:
            sent = dataclasses.replace(self.configuration, queue_durable=durable)
            self.configurations[durable] = (sent, core.wiring.copy(sent, sent, 1))
        return self.configurations[durable]


class Incoming:
    """The consuming side of a session: its connection, its transaction, its prefetch."""

    __slots__ = (
        "_automata",
        "_consumer",
        "_prefetch",
        "_starts",
        "configuration",
        "consumer",
        "dispatching",
        "owner",
        "parts",
        "process",
        "session",
    )

    def __init__(self, core: Core, process: str, name: str, configuration: Configuration) -> None:
        """``process`` is the client's name in the history, ``name`` the session's."""
        self.configuration = configuration
        self.process = process
        self.parts = {role: Part(core.wiring.part(role, configuration)) for role in (Role.CONSUMER, Role.PREFETCH)}
        self._consumer, self._prefetch = self.parts[Role.CONSUMER], self.parts[Role.PREFETCH]
        self.session = core.session("consumer", name, self.parts)
        self.session.face = self
        self.owner: Any = None
        self.consumer: Any = None
        self.dispatching = core.events["dispatch_first"].own
        self._automata: dict[Automaton, tuple[Configuration, Automaton]] = {}
        self._starts: dict[tuple[Automaton, int], int] = {}

    def has_room(self) -> bool:
        """Whether the session would take one more; a quick look, the tables decide."""
        signal = self.dispatching
        return self._consumer.goes_to(signal) != REFUSED and self._prefetch.goes_to(signal) != REFUSED

    def room(self) -> int | None:
        """How many more messages it may be sent; ``None``: any number."""
        bound = self.configuration.prefetch
        return bound - int(self.parts[Role.PREFETCH].of("prefetch")) if bound else None

    def bind(self, core: Core, copy: Copy) -> None:
        """From now on the session takes part in what becomes of ``copy``."""
        if copy.scopes[_CONSUMER] is self.session:
            return
        if copy.scopes[_CONSUMER] is not None:
            self._leave_behind(core, copy)
        found = self._automata.get(copy.automaton)
        if found is None:
            sent = copy.sent or self.configuration
            kept = dataclasses.replace(
                self.configuration, delivery_mode=sent.delivery_mode, queue_durable=sent.queue_durable
            )
            found = self._automata[copy.automaton] = (kept, core.wiring.copy(sent, kept, copy.number))
        copy.kept = found[0]
        copy.move(found[1])
        copy.state = self._begins(core, copy)
        copy.roles[4:6] = self._consumer, self._prefetch
        copy.enter(_CONSUMER, self.session)
        copy.file()

    def _begins(self, core: Core, copy: Copy) -> int:
        """The state of ``copy`` for a session that has had nothing of it: what others went through is not its past."""
        key = (copy.automaton, copy.state)
        if key not in self._starts:
            machines = core.wiring.specification.machines
            fresh = {name: machines[name].initial for name in core.wiring.table.handed}
            self._starts[key] = copy.automaton.put(copy.state, **fresh)
        return self._starts[key]

    @staticmethod
    def _leave_behind(core: Core, copy: Copy) -> None:
        """What the session before still has of the copy stays with it: its application may be busy with it."""
        handed = core.wiring.table.handed
        names = {name: copy.of(name) for name in handed}
        fresh = {name: core.wiring.specification.machines[name].initial for name in handed}
        if copy.kept is not None and names["delivery"] != fresh["delivery"]:
            left = Copy(core.wiring.handed(copy.kept, copy.number), copy.message, _Apart(copy.key | 3), core.nobody)
            left.state = left.automaton.put(left.state, **names)
            left.kept, left.received = copy.kept, copy.received
            left.roles[Role.CONSUMER], left.roles[Role.PREFETCH] = copy.roles[Role.CONSUMER], copy.roles[Role.PREFETCH]
            left.scopes[_CONSUMER], left.scopes[3] = copy.scopes[_CONSUMER], copy.scopes[3]
            if left.received is not None:
                left.received.copy = left
            copy.enter(_CONSUMER, None)
            left.file()
        else:
            copy.enter(_CONSUMER, None)
        copy.received = None

    @staticmethod
    def nobody_has(core: Core, copy: Copy) -> None:
        """The broker is back, and no session had ``copy``: none will reconnect for it, so nothing is disconnected."""
        if copy.scopes[_CONSUMER] is None:
            machines = core.wiring.specification.machines
            copy.state = copy.automaton.put(copy.state, **{m: machines[m].initial for m in core.wiring.table.handed})
            copy.file()


class _Apart(int):
    """A key that stands where its number does, and is the same as itself alone."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


@dataclasses.dataclass(slots=True, eq=False)
class Queue:
    """A queue: copies in order, the sessions that consume from it, and how many messages it may hold.

    Attributes:
        name: as producers and consumers call it.
        durable: whether its durable messages are journalled.
        max_length: how many messages it holds before it refuses more, ``None`` for any number.
        length: how many messages are in it, those with consumers included.
    """

    name: str
    durable: bool
    max_length: int | None
    scope: Scope
    length: int = 0
    consumers: deque[Incoming] = dataclasses.field(default_factory=deque)

    refuse_next: int = 0

    def enter(self, copy: Copy) -> None:
        """Count ``copy``, once."""
        if not copy.counted:
            copy.counted = True
            self.length += 1

    def leave(self, copy: Copy) -> None:
        """Do not count it any more."""
        if copy.counted:
            copy.counted = False
            self.length -= 1

    def is_full(self) -> bool:
        """Whether the broker refuses one more message."""
        if self.refuse_next:
            self.refuse_next -= 1
            return True
        return self.max_length is not None and self.length >= self.max_length
