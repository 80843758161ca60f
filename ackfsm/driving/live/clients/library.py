"""What a worker asks of the library of a client: sessions, each used by one thread."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Final

from ackfsm.recorder import Recorder
from ackfsm.terms import AckMode

__all__ = [
    "IN_DOUBT",
    "SENT",
    "Called",
    "Consumer",
    "Failed",
    "Kind",
    "ListenerFailedError",
    "Outgoing",
    "Place",
    "Received",
    "Session",
]

SENT: Final = "sent"
IN_DOUBT: Final = "in_doubt"


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


class ListenerFailedError(Exception):
    """What a listener throws that is told to."""


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where the broker is, and the client's own settings."""

    host: str
    port: int
    settings: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer as ``consumer`` asks for it."""

    name: str
    destination: str
    topic: bool
    listener: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Outgoing:
    """A message as ``send`` asks for it."""

    message: str
    destination: str
    topic: bool
    persistent: bool
    body: bytes
    priority: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Received:
    """A message as the application is handed it."""

    message: str
    redelivered: bool
    delivery_count: int | None = None


Called = Callable[[Received], None]
"""The application's listener; it returns when it is told to, or throws :class:`ListenerFailedError`."""


class Session(abc.ABC):
    """A session of a library, with a connection of its own: none of these libraries shares one between threads.

    The calls raise :class:`Failed`, or an error of the library, which :meth:`kind_of` tells.
    """

    library: ClassVar[str]
    """The name of its package."""
    DEFAULTS: ClassVar[Mapping[str, Any]]
    """The client's own settings, and their values where ``open`` says nothing."""

    def __init__(self, place: Place, recorder: Recorder, ack_mode: AckMode) -> None:
        for name in place.settings:
            if name not in self.DEFAULTS:
                raise Failed(Kind.REFUSED, f"there is no setting {name}; there are {', '.join(self.DEFAULTS)}")
        self.settings = {**self.DEFAULTS, **place.settings}
        self.recorder, self.ack_mode = recorder, ack_mode
        self.consumers: dict[str, Consumer] = {}
        self._held: dict[str, Any] = {}
        self._enlisted: dict[str, Any] = {}

    @property
    def transacted(self) -> bool:
        """Whether sends and acknowledgements take effect by a commit."""
        return self.ack_mode is AckMode.SESSION_TRANSACTED

    @property
    def automatic(self) -> bool:
        """Whether the broker asks for no acknowledgements."""
        return self.ack_mode in {AckMode.NO_ACKNOWLEDGE, AckMode.PRE_ACKNOWLEDGE}

    # Messages that the session holds, each with what the library names it by

    def hold(self, received: Received, handle: Any) -> Received:
        """Remember a message that is to be acknowledged."""
        if not self.automatic:
            self._held[received.message] = handle
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

    def acknowledge_all(self) -> None:
        """Acknowledge what the session holds: part of a commit."""
        for message in list(self._held):
            self.acknowledge(message)

    def rolled_back(self) -> None:
        """What was acknowledged in the transaction is held as before."""
        self._held, self._enlisted = {**self._enlisted, **self._held}, {}

    def committed(self) -> None:
        """What was acknowledged in the transaction is settled."""
        self._enlisted = {}

    def given_back(self) -> None:
        """The session holds nothing any more."""
        self._held, self._enlisted = {}, {}

    # What is asked of the library

    @abc.abstractmethod
    def kind_of(self, error: Exception) -> Kind | None:
        """Return the kind of an error of the library, ``None`` for one that is not."""

    @property
    @abc.abstractmethod
    def usable(self) -> bool:
        """Whether the connection and all else of the session are open."""

    @abc.abstractmethod
    def consume(self, consumer: Consumer) -> None:
        """Open a consumer."""

    @abc.abstractmethod
    def send(self, outgoing: Outgoing, later: Callable[[str], None] | None) -> str | None:
        """Send, and return the outcome; or call ``later`` with it, if that is given, and return ``None``."""

    @abc.abstractmethod
    def receive(self, consumer: Consumer, timeout: float) -> Received | None:
        """The next message, if one comes in time."""

    @abc.abstractmethod
    def acknowledge(self, message: str) -> str:
        """Acknowledge a message that is held, and return the outcome."""

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
        """Acknowledge what is held, and commit; return the outcome."""
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
