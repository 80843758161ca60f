"""The process in which the application under test runs, as far as it is in the engine: it can die at any event.

The engine runs everything in one thread, the broker too.  So a crash of the application does not
unwind the engine, which has the broker's work to finish: it kills the connections at once, and the
application ends where its call comes back.  For that the application has not the engine's own
objects but a :class:`Guarded` face of each; so it is with an asynchronous application and the faces for tasks.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, cast

from ackfsm.engine import Broker, Connection, Consumer, Message, Producer, Session
from ackfsm.engine.aio import (
    AsyncBroker,
    AsyncConnection,
    AsyncConsumer,
    AsyncMessage,
    AsyncProducer,
    AsyncSession,
)
from ackfsm.pytest_plugin._crash import ListenerFault, ProcessCrashed
from ackfsm.pytest_plugin._watchdog import Watch
from ackfsm.terms import Configuration, InputError
from ackfsm.text import shown

__all__ = ["Guarded", "Process", "give_up"]

_FACES = (
    Broker,
    Connection,
    Session,
    Producer,
    Consumer,
    Message,
    AsyncBroker,
    AsyncConnection,
    AsyncSession,
    AsyncProducer,
    AsyncConsumer,
    AsyncMessage,
)
_SENDING = frozenset({"send", "post"})
_ARGUMENT = 40
"""Characters of an argument that are shown."""


class Process:
    """One life of the application's process.

    Attributes:
        name: of the client in the history.
        dead: whether it has crashed.
        stopped: whether it was stopped, as nothing was left that it could have waited for.
        throws: whether its listener throws as soon as it can.
        listening: how many calls of its listeners have not returned.
        last_word: the time of the last line of the history before its death, ``None`` while it lives.
        turns: of the event loop of an asynchronous application, by which its tasks turn the engine.
        unwinds: called at its death, to tell what waits of it.
    """

    def __init__(self, broker: Broker, name: str, before_send: Callable[[Producer], None], watch: Watch) -> None:
        """``before_send`` is called before each send of the application, ``watch`` counts its calls."""
        self.name = name
        self.dead = self.stopped = self.throws = False
        self.listening = 0
        self.last_word: int | None = None
        self.turns: Any = None
        self.unwinds: Callable[[], None] | None = None
        self._broker = broker
        self._before_send = before_send
        self._watch = watch
        self._connections: list[Connection] = []
        self._is_used = False

    def connect(self) -> Connection:
        """A connection for the application."""
        return cast("Connection", self.guard(self._broker.connect(self.name)))

    def connect_tasks(self) -> AsyncConnection:
        """A connection for the tasks of an asynchronous application."""
        made = AsyncBroker(self._broker).connect(self.name)
        self.turns = made.driver
        return cast("AsyncConnection", self.guard(made))

    def turn(self, connection: Connection, work: Awaitable[object]) -> None:
        """What :meth:`connect` has given is one for tasks from now on: the application has returned ``work``.

        Raises :class:`InputError` if it has used it before; ``work`` is given up then.
        """
        if self._is_used:
            give_up(work)
            raise InputError(
                "the application has used its connection before it returned what is to be awaited, so that it could "
                "not be one for tasks; make it `async def`, or pass the connection on as it is"
            )
        face = cast("Guarded", connection)
        cast("Connection", face.guarded).close()
        self._connections.remove(cast("Connection", face.guarded))
        face.guarded = cast("Guarded", self.connect_tasks()).guarded

    def close(self) -> None:
        """The application has returned: what it left open is closed."""
        for connection in self._connections:
            connection.close()

    def stop(self) -> None:
        """Nothing is left that it could wait for: its connections are closed, and those who wait hear of it."""
        self.stopped = True
        self.close()
        if self.turns is not None:
            self.turns.notify()

    def go_on(self) -> bool:
        """Have the engine do the next thing; whether there was one."""
        return self._broker.loop.step()

    # What a fault needs to know, and does

    @property
    def is_alive(self) -> bool:
        """Whether its code may run on."""
        return not self.dead and self._watch.ended is None

    @property
    def consumes(self) -> bool:
        """Whether an open session of it consumes."""
        return any(session.consumers for session in self._sessions())

    @property
    def produces(self) -> bool:
        """Whether an open session of it sends."""
        return any(session.senders for session in self._sessions())

    def _sessions(self) -> Iterator[Session]:
        return (s for connection in self._connections for s in connection.sessions if not s.closed)

    def crash(self) -> None:
        """It dies, with all of its connections."""
        self.dead = True
        if self._broker.history is not None and self._broker.history.lines:
            self.last_word = self._broker.history.lines[-1]["t"]
        for connection in self._connections:
            connection.crash()
        if self.unwinds is not None:
            self.unwinds()

    def lose(self) -> None:
        """Its connections break."""
        for connection in self._connections:
            connection.lose()

    def clients(self) -> set[str]:
        """As what its connections are in the history."""
        return {connection.client_id for connection in self._connections}

    def configurations(self) -> set[Configuration]:
        """Under which it has consumed so far."""
        return {configuration for connection in self._connections for configuration, _ in connection.consumed}

    def queues(self) -> set[str]:
        """From which it has consumed so far."""
        return {queue for connection in self._connections for _, queue in connection.consumed}

    # What the application sees

    def end(self) -> BaseException | type[BaseException] | None:
        """What ends its code, if it is to end: to be raised, and not to be kept (:class:`Again`)."""
        if self._watch.ended is not None:
            return self._watch.end()
        if not self.dead:
            return None
        return self._watch.caught(self.name) or ProcessCrashed(f"the process {self.name} has crashed")

    def check(self) -> None:
        """Raise :class:`ProcessCrashed` if it is dead, :class:`Endless` if it does not come to an end."""
        if not self.is_alive:
            raise self.end() or AssertionError

    def guard(self, value: object) -> object:
        """``value`` as the application sees it."""
        connection = value.connection if isinstance(value, AsyncConnection) else value
        if isinstance(connection, Connection) and connection not in self._connections:
            self._connections.append(connection)
        if isinstance(value, list):
            return [self.guard(each) for each in value]
        return Guarded(self, value) if isinstance(value, _FACES) else value

    def used(self) -> None:
        """The application has done something with a face."""
        self._is_used = True

    def call(self, function: Callable[..., object], *arguments: object, **named: object) -> object:
        """A call of the application: it does not come back to a process that died meanwhile."""
        self.check()
        if inspect.iscoroutinefunction(function):
            call: Any = self._awaited(function, arguments, named)
            call.__qualname__ = _name(function)
            return call
        self._announce(function)
        try:
            result = function(*map(self._given, arguments), **{name: self._given(each) for name, each in named.items()})
        finally:
            self.check()
        self._count(function, arguments, named)
        return self.guard(result)

    async def _awaited(
        self, function: Callable[..., Awaitable[object]], arguments: tuple[object, ...], named: Mapping[str, object]
    ) -> object:
        self.check()
        self._announce(function)
        try:
            result = await function(
                *map(self._given, arguments), **{name: self._given(each) for name, each in named.items()}
            )
        finally:
            self.check()
        self._count(function, arguments, named)
        return self.guard(result)

    def _announce(self, function: Callable[..., object]) -> None:
        owner = getattr(function, "__self__", None)
        if isinstance(owner, Producer | AsyncProducer) and function.__name__ in _SENDING:
            self._before_send(owner.producer if isinstance(owner, AsyncProducer) else owner)

    def _count(
        self, function: Callable[..., object], arguments: tuple[object, ...], named: Mapping[str, object]
    ) -> None:
        if self._watch.is_fruitless():
            given = [_shown(each) for each in arguments] + [f"{name}={_shown(each)}" for name, each in named.items()]
            raise self._watch.waits(f"{_name(function)}({', '.join(given)})")

    def _given(self, value: object) -> object:
        """What the application has given, as the engine takes it."""
        if type(value) is Guarded:
            return value.guarded
        if not callable(value) or isinstance(value, type):
            return value  # nothing is called back on a class: body_as(bytes)
        return self._called_back(value)

    def _called_back(self, function: Callable[..., object]) -> Callable[..., Coroutine[Any, Any, None] | None]:
        """A listener or another callback: the dead run none, and a faulty listener throws before its work or after."""

        @functools.wraps(function)
        def called(*arguments: object) -> Coroutine[Any, Any, None] | None:
            self.check()
            listening = isinstance(next(iter(arguments), None), Message | AsyncMessage)
            self._throw(listening=listening)
            self.listening += listening
            try:
                told = function(*map(self.guard, arguments))
            finally:
                self.listening -= listening
                self.check()
            if inspect.isawaitable(told):
                return self._goes_on(told, listening=listening)
            self._throw(listening=listening)
            return None

        return called

    async def _goes_on(self, told: Awaitable[object], *, listening: bool) -> None:
        self.listening += listening
        try:
            await told
        finally:
            self.listening -= listening
            self.check()
        self._throw(listening=listening)

    def _throw(self, *, listening: bool) -> None:
        if listening and self.throws:
            self.throws = False
            raise ListenerFault("the fault listener_exception")


def give_up(work: object) -> None:
    """Nobody will await ``work``: a coroutine is told so, or it would warn of that whenever it is collected."""
    if inspect.iscoroutine(work):
        work.close()


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
        self._process.used()
        value = getattr(self.guarded, name)
        return functools.partial(self._process.call, value) if callable(value) else self._process.guard(value)

    def __enter__(self) -> Self:
        self._process.used()
        self._process.check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it, unless there is no process any more that could."""
        if not self._process.dead:
            self._process.call(cast("Connection | Session", self.guarded).close)

    async def __aenter__(self) -> Self:
        self._process.check()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As :meth:`__exit__`."""
        if not self._process.dead:
            await cast("Awaitable[object]", self._process.call(cast("AsyncConnection", self.guarded).close))

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Any:
        """The next message of an :class:`AsyncConsumer`."""
        return self._process.call(cast("AsyncConsumer", self.guarded).__anext__)

    def __eq__(self, other: object) -> bool:
        return self.guarded is (other.guarded if type(other) is Guarded else other)

    def __hash__(self) -> int:
        return hash(self.guarded)

    def __repr__(self) -> str:
        return repr(self.guarded)


def _name(function: Callable[..., object]) -> str:
    return str(getattr(function, "__qualname__", function))


def _shown(argument: object) -> str:
    return shown(repr(argument), _ARGUMENT)
