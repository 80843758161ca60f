"""What a worker asks of the library of a client: sessions, each used by one thread."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar

from ackfsm.history.format import Outcome
from ackfsm.recorder import Recorder
from ackfsm.terms import AckMode

__all__ = ["Called", "Consumer", "Failed", "Kind", "Outgoing", "Received", "Session", "ThrownError", "by_key"]


def by_key(_: str, routing_key: str) -> str:
    """The queue to which an exchange of AMQP 0-9-1 routes: that of the name of the key, by which it is bound."""
    return routing_key


class Kind(StrEnum):
    """Kinds of errors in the answer to a command."""

    CLOSED = "closed"
    DOWN = "down"
    REFUSED = "refused"
    TIMEOUT = "timeout"


class Failed(Exception):  # noqa: N818 - the answer to a command, not an error of the worker
    """A command is answered by an error."""

    def __init__(self, kind: Kind, why: object) -> None:
        super().__init__(str(why))
        self.kind = kind


class ThrownError(Exception):
    """What a listener throws that is told to."""


@dataclasses.dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer as ``consumer`` asks for it."""

    name: str
    destination: str
    listener: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Outgoing:
    """A message as ``send`` asks for it; ``later`` is called with the outcome of one that is asynchronous."""

    message: str
    destination: str
    persistent: bool
    body: bytes
    later: Callable[[str], None] | None


@dataclasses.dataclass(frozen=True, slots=True)
class Received:
    """A message as the application is handed it, or none."""

    message: str | None
    redelivered: bool = False
    delivery_count: int | None = None


Called = Callable[[Received], None]
"""The application's listener; it returns when it is told to, or throws :class:`ThrownError`."""


class Session(abc.ABC):
    """A session of a library, with a connection of its own: none of these libraries shares one between threads.

    Calls raise :class:`Failed`, or an error of the library, which ``KINDS`` tells; those with an outcome return it.
    """

    library: ClassVar[str]
    """The name of its package."""
    DEFAULTS: ClassVar[Mapping[str, Any]]
    """The client's own settings, and their values where ``open`` says nothing."""
    KINDS: ClassVar[Sequence[tuple[type[Exception], Kind]]]
    """The errors of the library, the first that fits; as a session is opened, closed means down."""

    def __init__(
        self, host: str, port: int, settings: Mapping[str, Any], recorder: Recorder, ack_mode: AckMode
    ) -> None:
        for name in settings:
            if name not in self.DEFAULTS:
                raise Failed(Kind.REFUSED, f"there is no setting {name}; there are {', '.join(self.DEFAULTS)}")
        self.host, self.port, self.settings = host, port, {**self.DEFAULTS, **settings}
        self.recorder, self.ack_mode = recorder, ack_mode
        self.transacted = ack_mode is AckMode.SESSION_TRANSACTED
        self.automatic = ack_mode in {AckMode.NO_ACKNOWLEDGE, AckMode.PRE_ACKNOWLEDGE}
        self.consumers: dict[str, Consumer] = {}
        self._held: dict[str, Any] = {}
        self._enlisted: dict[str, Any] = {}
        self._failed: set[str] = set()
        self.connect()

    # Messages that the session holds, each with what the library names it by

    def hold(self, received: Received, handle: Any) -> Received:
        """Remember a message that is to be acknowledged."""
        if not self.automatic:
            self._held[str(received.message)] = handle
            self._failed.discard(str(received.message))
        return received

    def held(self, message: str) -> Any:
        """The handle of a message; of one that the session does not hold, :class:`Failed`."""
        if message not in self._held:
            raise Failed(Kind.REFUSED, f"the session does not hold the message {message!r}")
        return self._held[message]

    def settled(self, message: str, *, alone: bool = True) -> None:
        """A message is settled, or all up to it; in a transaction until its rollback."""
        before = list(self._held)
        for each in [message] if alone else before[: before.index(message) + 1]:
            handle = self._held.pop(each)
            if self.transacted:
                self._enlisted[each] = handle

    def failed(self, message: str) -> None:
        """Give back what its listener failed with, if it is held still; a commit does so again after a rollback."""
        if message in self._held:
            self._failed.add(message)
            self.settle(message, Outcome.RELEASED)

    def acknowledge_all(self) -> None:
        """Acknowledge what the session holds, and nobody failed with: part of a commit."""
        for message in list(self._held):
            if message in self._failed:
                self.settle(message, Outcome.RELEASED)
            else:
                self.acknowledge(message)

    def rolled_back(self) -> None:
        """What was settled in the transaction is held as before."""
        self._held, self._enlisted = {**self._enlisted, **self._held}, {}

    # What is asked of the library

    @classmethod
    def kind_of(cls, error: Exception) -> Kind | None:
        """Return the kind of an error of the library, ``None`` for one that is not."""
        return next((kind for its, kind in cls.KINDS if isinstance(error, its)), None)

    @abc.abstractmethod
    def connect(self) -> None:
        """Open the connection and what else the session needs."""

    @property
    @abc.abstractmethod
    def usable(self) -> bool:
        """Whether the connection and all else of the session are open."""

    @abc.abstractmethod
    def consume(self, consumer: Consumer) -> None:
        """Open a consumer."""

    @abc.abstractmethod
    def send(self, outgoing: Outgoing) -> str | None:
        """Send; ``None`` if the outcome is told later."""

    @abc.abstractmethod
    def receive(self, consumer: Consumer, timeout: float) -> Received:
        """The next message, if one comes in time."""

    @abc.abstractmethod
    def acknowledge(self, message: str) -> str:
        """Acknowledge a message that is held."""

    @abc.abstractmethod
    def settle(self, message: str, outcome: str) -> None:
        """Give a message back, or up."""

    @abc.abstractmethod
    def close(self) -> None:
        """Close the session with its connection."""

    def listen(self, consumer: Consumer, timeout: float, called: Called) -> None:
        """Let the library call the listener of the consumer, until it was called or the time is over."""
        del consumer, timeout, called
        raise self.lacks("listeners")

    def commit(self) -> str:
        """Acknowledge what is held, and commit."""
        raise self.lacks("transactions")

    def rollback(self) -> None:
        """Roll back."""
        raise self.lacks("transactions")

    def recover(self) -> None:
        """Have everything that is held delivered again."""
        raise self.lacks("recover")

    def close_consumer(self, consumer: Consumer) -> None:
        """Close one consumer; the session goes on."""
        del consumer
        raise self.lacks("the close of a single consumer")

    def lacks(self, what: str) -> Failed:
        """The answer to what the library does not have, or does not have in this way."""
        return Failed(Kind.REFUSED, f"{self.library} has no such thing here: {what}")
