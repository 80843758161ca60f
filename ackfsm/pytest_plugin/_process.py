"""The process in which the application under test runs, as far as it is in the engine: it can die at any event.

The engine runs everything in one thread, the broker too.  So a crash of the application does not
unwind the engine, which has the broker's work to finish: it kills the connections at once, and the
application ends where its call comes back.  For that the application has not the engine's own
objects but a :class:`Guarded` face of each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self, cast

from ackfsm.engine import Broker, Connection, Consumer, Message, Producer, Session
from ackfsm.pytest_plugin._crash import ListenerFault, ProcessCrashed
from ackfsm.terms import Configuration

__all__ = ["Process"]

_FACES = (Broker, Connection, Session, Producer, Consumer, Message)


class Process:
    """One life of the application's process.

    Attributes:
        name: of the client in the history.
        dead: whether it has crashed.
        throws: whether its listener throws as soon as it can.
        listening: how many calls of its listener have not returned.
        last_word: the time of the last line of the history before its death, ``None`` while it lives.
    """

    def __init__(self, broker: Broker, name: str, before_send: Callable[[Producer], None]) -> None:
        """``before_send`` is called before each send of the application."""
        self.name = name
        self.dead = self.throws = False
        self.listening = 0
        self.last_word: int | None = None
        self._broker = broker
        self._before_send = before_send
        self._connections: list[Connection] = []

    def connect(self) -> Connection:
        """A connection for the application."""
        return cast("Connection", self.guard(self._broker.connect(self.name)))

    def close(self) -> None:
        """The application has returned: what it left open is closed."""
        for connection in self._connections:
            connection.close()

    # What a fault needs to know, and does

    @property
    def consumes(self) -> bool:
        """Whether an open session of it consumes."""
        return any(session.consumers for session in self._sessions())

    @property
    def listens(self) -> bool:
        """Whether an open session of it has a listener."""
        return any(consumer.listener is not None for session in self._sessions() for consumer in session.consumers)

    @property
    def produces(self) -> bool:
        """Whether an open session of it sends."""
        return any(session.outgoing for session in self._sessions())

    def _sessions(self) -> Iterator[Session]:
        return (s for connection in self._connections for s in connection.sessions if not s.closed)

    def crash(self) -> None:
        """It dies, with all of its connections."""
        self.dead = True
        if self._broker.history is not None and self._broker.history.lines:
            self.last_word = self._broker.history.lines[-1]["t"]
        for connection in self._connections:
            connection.crash()

    def lose(self) -> None:
        """Its connections break."""
        for connection in self._connections:
            connection.lose()

    def configurations(self) -> set[Configuration]:
        """Under which it has consumed so far."""
        sessions = (session for connection in self._connections for session in connection.sessions)
        return {consumer.incoming.configuration for session in sessions for consumer in session.consumers}

    def queues(self) -> set[str]:
        """From which it has consumed so far."""
        sessions = (session for connection in self._connections for session in connection.sessions)
        return {consumer.queue.name for session in sessions for consumer in session.consumers}

    # What the application sees

    def check(self) -> None:
        """Raise :class:`ProcessCrashed` if it is dead."""
        if self.dead:
            raise ProcessCrashed(f"the process {self.name} has crashed")

    def guard(self, value: object) -> object:
        """``value`` as the application sees it."""
        if isinstance(value, Connection) and value not in self._connections:
            self._connections.append(value)
        if isinstance(value, list):
            return [self.guard(each) for each in value]
        return Guarded(self, value) if isinstance(value, _FACES) else value

    def call(self, function: Callable[..., object], *arguments: object, **named: object) -> object:
        """A call of the application: it does not come back to a process that died meanwhile."""
        self.check()
        owner = getattr(function, "__self__", None)
        if isinstance(owner, Producer) and function.__name__ == "send":
            self._before_send(owner)
        try:
            result = function(*map(self._given, arguments), **{name: self._given(each) for name, each in named.items()})
        finally:
            self.check()
        return self.guard(result)

    def _given(self, value: object) -> object:
        """What the application has given, as the engine takes it."""
        if type(value) is Guarded:
            return value.guarded
        return self._called_back(value) if callable(value) else value

    def _called_back(self, function: Callable[..., object]) -> Callable[..., None]:
        """A listener or another callback: the dead run none, and a faulty listener throws before its work or after."""

        @functools.wraps(function)
        def called(*arguments: object) -> None:
            self.check()
            listening = isinstance(arguments[0], Message)
            self._throw(listening=listening)
            self.listening += listening
            try:
                function(*map(self.guard, arguments))
            finally:
                self.listening -= listening
                self.check()
            self._throw(listening=listening)

        return called

    def _throw(self, *, listening: bool) -> None:
        if listening and self.throws:
            self.throws = False
            raise ListenerFault("the fault listener_exception")


class Guarded:
    """A face of an object of the engine, whose calls end where the process of the application ends."""

    __slots__ = ("_process", "guarded")

    def __init__(self, process: Process, guarded: object) -> None:
        self._process = process
        self.guarded = guarded

    @property  # type: ignore[misc] # isinstance() shall see what it stands for
    def __class__(self) -> type:
        return type(self.guarded)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.guarded, name)
        return functools.partial(self._process.call, value) if callable(value) else self._process.guard(value)

    def __enter__(self) -> Self:
        self._process.check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it, unless there is no process any more that could."""
        if not self._process.dead:
            self._process.call(cast("Connection | Session", self.guarded).close)

    def __eq__(self, other: object) -> bool:
        return self.guarded is (other.guarded if type(other) is Guarded else other)

    def __hash__(self) -> int:
        return hash(self.guarded)

    def __repr__(self) -> str:
        return repr(self.guarded)
