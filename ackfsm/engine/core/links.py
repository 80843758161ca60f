"""Queues, and the sessions that send to them and consume from them, as the core sees them."""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import Any

from ackfsm.engine.core.automaton import REFUSED
from ackfsm.engine.core.instances import Copy, Filed, Part, Route, Scope
from ackfsm.engine.core.model import Role
from ackfsm.engine.core.stepper import Core
from ackfsm.terms import Configuration, DeliveryMode

__all__ = ["Incoming", "Outgoing", "Queue"]

_CONSUMER = 2
_MANY = 256


class Outgoing:
    """The sending side of a session under one configuration: its connection, its window, its transaction."""

    __slots__ = ("_routes", "configuration", "open", "owner", "parts", "process", "session")

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
        self._routes: dict[Queue, Route] = {}

    def share_window(self, other: Outgoing) -> None:
        """What is sent from here counts against the window of ``other`` too: a session has one, whatever it sends."""
        window = other.parts[Role.WINDOW]
        if window.automaton.fsms == self.parts[Role.WINDOW].automaton.fsms:
            self.parts[Role.WINDOW] = window

    @property
    def is_closed(self) -> bool:
        """Whether its session has been closed."""
        return bool(self.owner.closed)

    def route(self, core: Core, queue: Queue) -> Route:
        """The way of what is sent from here to ``queue``, up to a consumer."""
        found = self._routes.get(queue)
        if found is None:
            sent = dataclasses.replace(self.configuration, queue_durable=queue.durable)
            found = self._routes[queue] = core.route(
                automaton=core.wiring.copy(sent, sent, 1),
                roles={**self.parts, **core.broker.parts},
                scopes=(self.session, queue.scope, None, core.broker),
                sent=sent,
                kept=sent,
                outgoing=self,
            )
        return found


class Incoming:
    """The consuming side of a session: its connection, its transaction, its prefetch."""

    __slots__ = (
        "_consumer",
        "_prefetch",
        "_routes",
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
        self._routes: dict[Route, Route] = {}

    @property
    def is_closed(self) -> bool:
        """Whether its session or its consumer has been closed, and nothing of it is left."""
        return bool(self.owner.closed or self.consumer.left)

    def has_room(self) -> bool:
        """Whether the session would take one more; a quick look, the tables decide."""
        signal = self.dispatching
        return self._consumer.goes_to(signal) != REFUSED and self._prefetch.goes_to(signal) != REFUSED

    def room(self) -> int | None:
        """How many more messages it may be sent; ``None``: any number."""
        bound = self.configuration.prefetch
        return bound - int(self.parts[Role.PREFETCH].of("prefetch")) if bound else None

    def route(self, core: Core, before: Route) -> Route:
        """The way of what goes to this session, having come by ``before``."""
        found = self._routes.get(before)
        if found is None:
            if len(self._routes) >= _MANY:
                self._routes.clear()  # of sessions that have come and gone
            base = before.base
            found = self._routes[before] = self._made(core, base) if base is before else self.route(core, base)
        return found

    def _made(self, core: Core, base: Route) -> Route:
        sent = base.sent or self.configuration
        kept = dataclasses.replace(
            self.configuration, delivery_mode=sent.delivery_mode, queue_durable=sent.queue_durable
        )
        if core.wiring.is_direct(kept) and not core.wiring.is_direct(sent):  # kept in memory until it is acknowledged
            kept = dataclasses.replace(kept, delivery_mode=DeliveryMode.PERSISTENT, queue_durable=False)
        return core.route(
            automaton=core.wiring.copy(sent, kept, base.number),
            roles={**dict(zip(Role, base.roles, strict=True)), **self.parts},
            scopes=(*base.scopes[:_CONSUMER], self.session, *base.scopes[_CONSUMER + 1 :]),
            sent=base.sent,
            kept=kept,
            number=base.number,
            outgoing=base.outgoing,
            incoming=self,
            base=base,
        )

    def bind(self, core: Core, copy: Copy) -> None:
        """From now on the session takes part in what becomes of ``copy``."""
        if copy.route.incoming is self:
            return
        if copy.route.incoming is not None:
            self._leave_behind(core, copy)
        route = self.route(core, copy.route)
        copy.go(route, self._begins(core, copy, route))

    @staticmethod
    def _begins(core: Core, copy: Copy, route: Route) -> int:
        """The state of ``copy`` for a session that has had nothing of it: what others went through is not its past."""
        key = (copy.automaton, copy.state)
        if key not in route.starts:
            state = route.automaton.number(copy.automaton.names[copy.state])
            route.starts[key] = route.automaton.put(state, **_fresh(core))
        return route.starts[key]

    @staticmethod
    def _leave_behind(core: Core, copy: Copy) -> None:
        """What the session before still has of the copy stays with it: its application may be busy with it."""
        names, fresh = {name: copy.of(name) for name in core.wiring.table.handed}, _fresh(core)
        came = copy.route
        if came.kept is not None and names["delivery"] != fresh["delivery"]:
            route = core.route(
                automaton=core.wiring.handed(came.kept, copy.number),
                roles=came.incoming.parts,
                scopes=(None, None, *came.scopes[_CONSUMER:]),
                sent=None,
                kept=came.kept,
                number=copy.number,
                incoming=came.incoming,
            )
            left = Copy(route, copy.message, _Apart(copy.key | 3))
            left.state = left.automaton.put(left.state, **names)
            left.received, left.mark, left.unseen = copy.received, copy.mark, copy.unseen
            if left.received is not None:
                left.received.copy = left
            left.file()
            core.moved[left] = None  # a call of its application may be waiting
        copy.received = None

    @staticmethod
    def nobody_has(core: Core, copy: Copy) -> None:
        """The broker is back, and no session had ``copy``: none will reconnect for it, so nothing is disconnected."""
        if copy.route.incoming is None:
            copy.state = copy.automaton.put(copy.state, **_fresh(core))
            copy.file()


def _fresh(core: Core) -> dict[str, str]:
    """The machines that stay with a session, for one that has had nothing of a copy."""
    machines = core.wiring.specification.machines
    return {name: machines[name].initial for name in core.wiring.table.handed}


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
        scope: where its copies are filed.
        ready: those that may be sent to a consumer.
        length: how many messages are in it, those with consumers included.
        consumers: the sessions that are sent messages, in turn.
        refuse_next: so many messages that come next are refused.
        delivered, redelivered, removed, lost, dead_lettered, rejected, restored: counted for :mod:`._metrics`.
        encoded: the name in UTF-8.
    """

    name: str
    durable: bool
    max_length: int | None
    scope: Scope
    ready: Filed
    length: int = 0
    consumers: deque[Incoming] = dataclasses.field(default_factory=deque)

    refuse_next: int = 0
    delivered: int = 0
    redelivered: int = 0
    removed: int = 0
    lost: int = 0
    dead_lettered: int = 0
    rejected: int = 0
    restored: int = 0
    encoded: bytes = b""

    def __post_init__(self) -> None:
        """Encode the name, which each message in the journal begins with."""
        self.encoded = self.name.encode()

    @staticmethod
    def enter(copy: Copy) -> None:
        """Count ``copy`` in its queue, once."""
        if not copy.counted:
            copy.counted = True
            copy.message.queue.length += 1

    @staticmethod
    def leave(copy: Copy) -> None:
        """Do not count it any more."""
        if copy.counted:
            copy.counted = False
            copy.message.queue.length -= 1

    @staticmethod
    def remove(copy: Copy) -> None:
        """It leaves its queue because somebody was done with it, or it is dead."""
        if copy.counted:
            copy.counted = False
            queue = copy.message.queue
            queue.length -= 1
            queue.removed += 1

    @staticmethod
    def lose(copy: Copy) -> None:
        """There is no trace of it after its broker has died."""
        if copy.counted:
            copy.message.queue.lost += 1
        Queue.leave(copy)

    def is_full(self) -> bool:
        """Whether the broker refuses one more message."""
        if self.refuse_next:
            self.refuse_next -= 1
            return True
        return self.max_length is not None and self.length >= self.max_length
