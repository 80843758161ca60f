"""What an engine holds: messages and their copies, links, queues, and the machine groups that run each of them."""

from __future__ import annotations

import dataclasses
import enum
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from ackfsm.engine.core.automaton import REFUSED, UNKNOWN, Column
from ackfsm.engine.core.host import ConsumerHost, SessionHost
from ackfsm.engine.core.index import PLACE_BITS, CopyIndex, IndexScope
from ackfsm.engine.core.model import Automaton, Broadcast, Role, StateFacts
from ackfsm.tables.names import CLIENT_SIDE
from ackfsm.terms import Configuration, DeliveryMode

__all__ = [
    "Binding",
    "Body",
    "Copy",
    "Delivery",
    "HeaderValue",
    "Link",
    "MachineGroup",
    "MapValue",
    "NullGroup",
    "Outcome",
    "Queue",
    "ReceiverLink",
    "Scope",
    "SenderLink",
    "Sent",
    "SessionEnd",
    "SessionLink",
]

HeaderValue: TypeAlias = str | int | float | bool | None
"""What a header may hold."""

MapValue: TypeAlias = HeaderValue | bytes
"""What a name in a body that is a mapping may stand for."""

Body: TypeAlias = bytes | str | Mapping[str, MapValue]
"""A payload: that of a ``BytesMessage``, a ``TextMessage`` or a ``MapMessage`` (JMS 3.1, 3.11)."""


class Outcome(enum.StrEnum):
    """The outcome of a send as the producer knows it; one in a transaction counts if ``commit()`` returns."""

    OPEN = "open"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    IN_DOUBT = "in_doubt"
    UNCONFIRMED = "unconfirmed"
    IN_TRANSACTION = "in_transaction"


class MachineGroup:
    """Machines of a link, of the broker or of a copy that run as one automaton, in their present state."""

    __slots__ = ("automaton", "columns", "state")

    def __init__(self, automaton: Automaton) -> None:
        """Every machine in its initial state."""
        self.automaton = automaton
        self.columns: list[Column | None] = automaton.columns
        self.state = automaton.initial

    def successor(self, signal: int) -> int:
        """The state after ``signal``, or :data:`ackfsm.engine.core.automaton.REFUSED`."""
        column = self.columns[signal]
        if column is None:
            return self.state
        target = column[self.state]
        return self.automaton.fill(signal, self.state) if target == UNKNOWN else target

    def state_of(self, machine: str) -> str:
        """The state of one machine."""
        return self.automaton.state_of(self.state, machine)

    @property
    def facts(self) -> StateFacts:
        """Return the facts of the tables about the present state."""
        return self.automaton.facts[self.state]


class NullGroup(MachineGroup):
    """Stands for an absent role: it takes part in no event."""

    __slots__ = ()

    def __init__(self, signals: int) -> None:
        """``signals`` is how many there are."""
        self.columns = [None] * signals
        self.state = -1

    @property
    def facts(self) -> StateFacts:
        """No facts."""
        return _NO_FACTS


_NO_FACTS = StateFacts(
    indexed_under=(),
    enabled=(),
    agents=frozenset(),
    send_pending=False,
    ack_pending=False,
    delivery_event=None,
    delivered_first=False,
    dispatch_event=None,
    acknowledgeable=False,
    unsynced=frozenset(),
)


class Scope(IndexScope["Copy"]):
    """Where copies are indexed: a link, a queue, the broker."""

    __slots__ = ()


class Link(Scope):
    """A sender link, a receiver link or the broker: its machine groups, and the copies that its events concern."""

    __slots__ = ("groups", "kind", "name", "owner", "transaction")

    def __init__(self, kind: str, name: str, groups: dict[Role, MachineGroup], broadcasts: int) -> None:
        """``kind`` is one of :data:`SCOPES`; ``transaction`` is the number of the one that is open or ends."""
        super().__init__(broadcasts)
        self.kind = kind
        self.name = name
        self.groups = groups
        self.transaction = 0
        self.owner: SessionHost | None = None

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, so that its end is no fault."""
        return self.owner is not None and self.owner.closed

    @property
    def siblings(self) -> tuple[Link, ...]:
        """The links that share its connection, itself included: the senders of the session, then its receivers."""
        return (self,)


class SessionLinks:
    """The links of one session."""

    __slots__ = ("receivers", "senders")

    def __init__(self) -> None:
        self.senders: dict[Configuration, SenderLink] = {}
        self.receivers: list[ReceiverLink] = []

    def all(self) -> tuple[Link, ...]:
        """Senders first."""
        return (*self.senders.values(), *self.receivers)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SessionEnd:
    """The session of a link, with the configuration of its machines' rows.

    Attributes:
        links: all links of the session.
        owner: the session.
        process: the client's name in the history.
        name: the session's.
        configuration: that of the link.
    """

    links: SessionLinks
    owner: SessionHost
    process: str
    name: str
    configuration: Configuration


class SessionLink(Link):
    """A link of a session; the attributes are the same as of its :class:`SessionEnd`."""

    __slots__ = ("configuration", "process", "session")

    def __init__(self, kind: str, end: SessionEnd, groups: dict[Role, MachineGroup], broadcasts: int) -> None:
        super().__init__(kind, end.name, groups, broadcasts)
        self.owner = end.owner
        self.session, self.process, self.configuration = end.links, end.process, end.configuration

    @property
    def siblings(self) -> tuple[Link, ...]:
        """See :class:`Link`."""
        return self.session.all()


class SenderLink(SessionLink):
    """The sending end of a session under one configuration: its connection, its publish window, its transaction.

    Attributes:
        open: the messages whose outcome is open.
        bindings: that of each queue.
    """

    __slots__ = ("bindings", "open")

    def __init__(self, end: SessionEnd, groups: dict[Role, MachineGroup], broadcasts: int) -> None:
        super().__init__("producer", end, groups, broadcasts)
        self.open: dict[Sent, None] = {}
        self.bindings: dict[Queue, Binding] = {}


class ReceiverLink(SessionLink):
    """The receiving end of a session, for one consumer: its connection, its transaction, its prefetch.

    Attributes:
        queue: from which it receives.
        consumer: to which it delivers.
        bindings: by the one that a copy had before it came here.
        out_of_order: the copies that it has handed over behind later ones, until they are settled.
    """

    __slots__ = (
        "_came_again",
        "_client",
        "_dispatch_signal",
        "_last_key",
        "_prefetch",
        "bindings",
        "consumer",
        "out_of_order",
        "queue",
    )

    def __init__(
        self, end: SessionEnd, groups: dict[Role, MachineGroup], broadcasts: int, queue: Queue, dispatch_signal: int
    ) -> None:
        super().__init__("consumer", end, groups, broadcasts)
        self._client, self._prefetch = groups[Role.CONSUMER], groups[Role.PREFETCH]
        self._dispatch_signal = dispatch_signal
        self.queue = queue
        self.consumer: ConsumerHost | None = None
        self.bindings: dict[Binding, Binding] = {}
        self.out_of_order: set[Copy] = set()
        self._last_key = self._came_again = 0

    def hand_over(self, copy: Copy) -> None:
        """Put ``copy`` behind all deliveries before it, also behind messages that were sent later."""
        if copy.key > self._last_key:
            self._last_key, copy.place = copy.key, 0
            return
        self._came_again += 1
        copy.place = (self._last_key << PLACE_BITS) + self._came_again
        self.out_of_order.add(copy)

    def begin_anew(self) -> None:
        """Nothing that was handed over before is to be acknowledged any more."""
        self.out_of_order.clear()
        self._last_key = 0

    @property
    def is_closed(self) -> bool:
        """Whether its session or its consumer was closed, and nothing of it is left."""
        return super().is_closed or (self.consumer is not None and self.consumer.detached)

    def has_credit(self) -> bool:
        """Whether one more copy may be dispatched to it; a quick look, the tables decide."""
        signal = self._dispatch_signal
        return self._client.successor(signal) != REFUSED and self._prefetch.successor(signal) != REFUSED

    def credit(self) -> int | None:
        """How many more copies may be dispatched to it; ``None``: any number."""
        bound = self.configuration.prefetch
        return bound - int(self._prefetch.state_of("prefetch")) if bound else None


@dataclasses.dataclass(slots=True, eq=False, kw_only=True)
class Binding:
    """What copies share that go from one producer through one queue to one consumer.

    Attributes:
        automaton: of a copy that goes so.
        groups: the machine groups that take part in its events, by :class:`Role`; a null group for the copy itself.
        scopes: where it is indexed, by :data:`SCOPES`, ``None`` where it has none.
        send_config: the configuration under which it was sent.
        receive_config: that under which everything but the sending is done.
        number: which copy of its message it is, from 1.
        sender: the sender link, ``None`` if the copy is of an earlier run of the broker.
        receiver: the receiver link, ``None`` as long as it was dispatched to none.
        before: the binding before it was dispatched to a consumer, ``None`` if it was dispatched to none.
        recorded_steps: the macro-steps recorded by all bindings of its kind.
        macro_steps: those of this binding.
        initial_states: where a copy that comes to this consumer begins, by the automaton and the state that it had.
    """

    automaton: Automaton
    groups: tuple[MachineGroup, ...]
    scopes: tuple[Scope | None, ...]
    send_config: Configuration | None
    receive_config: Configuration | None
    number: int = 1
    sender: SenderLink | None = None
    receiver: ReceiverLink | None = None
    before: Binding | None = None
    recorded_steps: dict[Any, Any] = dataclasses.field(default_factory=dict)
    macro_steps: dict[Any, Any] = dataclasses.field(default_factory=dict)
    initial_states: dict[tuple[Automaton, int], int] = dataclasses.field(default_factory=dict)

    @property
    def base(self) -> Binding:
        """The binding of the copy as long as it is dispatched to no consumer."""
        return self.before or self

    def is_out_of_order(self) -> bool:
        """Whether its consumer has handed over a copy behind a later one."""
        return self.receiver is not None and bool(self.receiver.out_of_order)


_NUMBER_BITS = 2
"""Bits of a key that tell the copies of a message apart."""
_NUMBER_MASK = (1 << _NUMBER_BITS) - 1


class Delivery(Protocol):
    """One delivery of a copy to an application."""

    copy: Copy
    in_doubt: bool


class Copy(MachineGroup):
    """One copy of a message: its machines, and what belongs to it.

    Attributes:
        binding: which groups take part in its events, and where it is indexed.
        key: orders all copies of an engine, see :meth:`key_of`.
        place: where it is in the order of delivery, if it has come again behind a later one; else 0.
        indexed_under: the broadcasts under which it is indexed now.
        other_copy: the other copy of the message, if it was sent again.
        delivery: the latest delivery that its application may still settle.
        dispatch_count: how often it was dispatched, as an application sees it: more than once if it is flagged; what
            was given back unseen may not count.
        stored: the journal has it.
        in_queue: it counts in the length of its queue.
        mark_stored: the redelivered mark of its next dispatch is on stable storage.
        reject: the broker is about to reject it.
        redelivered: the flag of its latest delivery.
    """

    __slots__ = (
        "binding",
        "delivery",
        "dispatch_count",
        "in_queue",
        "indexed_under",
        "key",
        "mark_stored",
        "message",
        "other_copy",
        "place",
        "redelivered",
        "reject",
        "stored",
    )

    def __init__(self, binding: Binding, message: Sent, key: int) -> None:
        """A copy in its initial state, not indexed yet."""
        self.automaton = automaton = binding.automaton
        self.columns = automaton.columns
        self.state = automaton.initial
        self.binding = binding
        self.message = message
        self.key = key
        self.indexed_under: tuple[Broadcast, ...] = ()
        self.other_copy: Copy | None = None
        self.delivery: Delivery | None = None
        self.stored = self.in_queue = self.mark_stored = self.reject = self.redelivered = False
        self.dispatch_count = self.place = 0

    @staticmethod
    def key_of(serial: int, number: int) -> int:
        """The key of copy ``number`` (from 1) of message number ``serial``: it orders messages, then copies."""
        return serial << _NUMBER_BITS | number

    @staticmethod
    def serial_of(key: int) -> int:
        """The number of the message that has a copy with ``key``."""
        return key >> _NUMBER_BITS

    @staticmethod
    def number_of(key: int) -> int:
        """Which copy of its message has ``key``, from 1."""
        return key & _NUMBER_MASK

    @property
    def number(self) -> int:
        """Which copy of its message it is, from 1; a delivery that was detached from its copy has none of these."""
        return self.key & _NUMBER_MASK

    def is_with_consumer(self) -> bool:
        """Whether a session has to do with it: its library holds it, its application is busy, or it acknowledges."""
        initial = {fsm.name: fsm.initial for fsm in self.automaton.fsms}
        return any(self.state_of(name) != initial[name] for name in CLIENT_SIDE)

    @property
    def scopes(self) -> tuple[Scope | None, ...]:
        """Where it is indexed, by :data:`SCOPES`."""
        return self.binding.scopes

    def group(self, role: int) -> MachineGroup:
        """The group that has that role in its events."""
        return self.binding.groups[role] if role else self

    @property
    def is_finished(self) -> bool:
        """Whether no event that an application could notice can happen to it any more."""
        return self.automaton.is_finished(self.state)

    def update_indexes(self) -> None:
        """Index it under the broadcasts to which the present state reacts."""
        now = self.facts.indexed_under
        if now is not self.indexed_under:
            self._index_under(now)

    def leave_indexes(self) -> None:
        """Take it out of all indexes."""
        self._index_under(())

    def _index_under(self, now: tuple[Broadcast, ...]) -> None:
        for broadcast in self.indexed_under:
            scope = self.scopes[broadcast.scope]
            if scope is not None and broadcast not in now:
                scope.index(broadcast).remove(self)
        for broadcast in now:
            scope = self.scopes[broadcast.scope]
            if scope is not None and broadcast not in self.indexed_under:
                scope.index(broadcast).add(self)
        self.indexed_under = now

    def rebind(self, binding: Binding, state: int) -> None:
        """Give it another binding, and its state there."""
        self.leave_indexes()
        self.binding, self.automaton, self.columns = binding, binding.automaton, binding.automaton.columns
        self.state = state
        self.update_indexes()


@dataclasses.dataclass(slots=True, eq=False, repr=False)
class Sent:
    """A message that was sent.

    Attributes:
        id: its own id, unique in the engine.
        body: the payload: bytes, text, or a mapping that cannot be changed.
        headers: its headers.
        delivery_mode: how it was sent.
        queue: where to.
        duplicate_id: by which the broker knows it again, ``None`` if it has none.
        timestamp: when it was sent (``JMSTimestamp``; JMS 3.1, 3.4.4), in nanoseconds of the broker's clock; ``None``
            if an earlier version of the engine has stored it, which did not keep that.
        reply_to: the name of the queue where an answer is wanted (``JMSReplyTo``; JMS 3.1, 3.4.6), ``None`` if none is.
        correlation_id: what links it to another message (``JMSCorrelationID``; JMS 3.1, 3.4.5), ``None`` if nothing
            does.
        outcome: what the producer knows of it by now.
    """

    id: str
    body: Body
    headers: Mapping[str, HeaderValue]
    delivery_mode: DeliveryMode
    queue: Queue
    duplicate_id: bytes | None
    timestamp: int | None
    reply_to: str | None = None
    correlation_id: str | None = None
    on_outcome: Callable[[Sent], None] | None = None
    outcome: Outcome = dataclasses.field(default=Outcome.OPEN, init=False)
    blocking: bool = dataclasses.field(default=False, init=False)
    copy: Copy | None = dataclasses.field(default=None, init=False)

    def moved_to(self, queue: Queue, headers: Mapping[str, HeaderValue]) -> Sent:
        """The same message in another queue, with other headers and without the id by which the first one knew it."""
        about = self.timestamp, self.reply_to, self.correlation_id
        return Sent(self.id, self.body, headers, self.delivery_mode, queue, None, *about)

    def __repr__(self) -> str:
        return f"<{self.id} to {self.queue.name}, {self.outcome}>"


@dataclasses.dataclass(slots=True, eq=False)
class Queue:
    """A queue: copies in order, the links of its consumers, and how many messages it may hold.

    Attributes:
        name: as producers and consumers call it.
        durable: whether its durable messages are journalled.
        max_length: how many messages it holds before it rejects more, ``None`` for any number.
        scope: where its copies are filed.
        ready: those that may be sent to a consumer.
        length: how many messages are in it, those with consumers included.
        consumers: the sessions that are sent messages, in turn.
        refuse_next: how many of the messages that come next are rejected.
        delivered, redelivered, removed, lost, dead_lettered, rejected, restored: counted for :mod:`._metrics`.
        encoded: the name in UTF-8.
    """

    name: str
    durable: bool
    max_length: int | None
    scope: Scope
    ready: CopyIndex[Copy]
    length: int = 0
    consumers: deque[ReceiverLink] = dataclasses.field(default_factory=deque)

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
        if not copy.in_queue:
            copy.in_queue = True
            copy.message.queue.length += 1

    @staticmethod
    def leave(copy: Copy) -> None:
        """Do not count it any more."""
        if copy.in_queue:
            copy.in_queue = False
            copy.message.queue.length -= 1

    @staticmethod
    def remove(copy: Copy) -> None:
        """It leaves its queue because it was settled, or became a dead letter."""
        if copy.in_queue:
            copy.in_queue = False
            queue = copy.message.queue
            queue.length -= 1
            queue.removed += 1

    @staticmethod
    def lose(copy: Copy) -> None:
        """The broker has died and nothing of it is left."""
        if copy.in_queue:
            copy.message.queue.lost += 1
        Queue.leave(copy)

    def is_full(self) -> bool:
        """Whether the broker rejects one more message."""
        if self.refuse_next:
            self.refuse_next -= 1
            return True
        return self.max_length is not None and self.length >= self.max_length
