"""The simulated process of the application under test, which can crash at any event.

The engine runs everything in one thread, the broker too.  So a crash of the application does not
unwind the engine, which has to finish the work of the broker: it crashes the connections at once, and an
exception ends the application when its call returns.  For that the application is given a :class:`Proxy`
of each object of the engine, synchronous or asynchronous.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, cast

from ackfsm.driving.pytest_plugin._crash import ListenerFault, ProcessCrashed
from ackfsm.driving.pytest_plugin._watchdog import Watchdog
from ackfsm.engine import Broker, Connection, Consumer, Message, Producer, Session
from ackfsm.engine.aio import (
    AsyncBroker,
    AsyncConnection,
    AsyncConsumer,
    AsyncMessage,
    AsyncProducer,
    AsyncSession,
)
from ackfsm.terms import Configuration, InputError
from ackfsm.text import shown

_PROXIED = (
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
"""How many characters of an argument a message shows."""


class Process:
    """One process of the application, from its start to its end.

    Attributes:
        name: of the client in the history.
        dead: whether it has crashed.
        stopped: whether it was stopped, since nothing was left that it could wait for.
        throws: whether its listener throws at the next opportunity.
        listening: how many calls of its listeners are running.
        last_time: the time of the last line of the history before its death, ``None`` while it lives.
        driver: of the event loop of an asynchronous application, by which its tasks turn the engine.
        on_death: called when it crashes, to wake what waits.
    """

    def __init__(self, broker: Broker, name: str, before_send: Callable[[Producer], None], watchdog: Watchdog) -> None:
        """``before_send`` is called before each send of the application, ``watchdog`` counts its calls."""
        self.name = name
        self.dead = self.stopped = self.throws = False
        self.listening = 0
        self.last_time: int | None = None
        self.driver: Any = None
        self.on_death: Callable[[], None] | None = None
        self._broker = broker
        self._before_send = before_send
        self._watchdog = watchdog
        self._connections: list[Connection] = []
        self._is_used = False

    def connect(self) -> Connection:
        """A connection for the application."""
        return cast("Connection", self.proxy(self._broker.connect(self.name)))

    def connect_tasks(self) -> AsyncConnection:
        """A connection for the tasks of an asynchronous application."""
        made = AsyncBroker(self._broker).connect(self.name)
        self.driver = made.driver
        return cast("AsyncConnection", self.proxy(made))

    def make_asynchronous(self, connection: Connection, work: Awaitable[object]) -> None:
        """Make the connection asynchronous, since the application has returned the awaitable ``work``.

        Raises :class:`InputError` if the connection has been used before; ``work`` is closed then.
        """
        if self._is_used:
            close_coroutine(work)
            raise InputError(
                "the application has used its connection before it returned what is to be awaited, so that it could "
                "not be one for tasks; make it `async def`, or pass the connection on as it is"
            )
        proxy = cast("Proxy", connection)
        cast("Connection", proxy.target).close()
        self._connections.remove(cast("Connection", proxy.target))
        proxy.target = cast("Proxy", self.connect_tasks()).target

    def close(self) -> None:
        """Close the connections that the application left open when it returned."""
        for connection in self._connections:
            connection.close()

    def stop(self) -> None:
        """Close its connections and wake its tasks, since nothing is left that it could wait for."""
        self.stopped = True
        self.close()
        if self.driver is not None:
            self.driver.notify()

    def step(self) -> bool:
        """Let the engine perform its next step; ``False`` if there is none."""
        return self._broker.loop.step()

    # Faults

    @property
    def is_alive(self) -> bool:
        """Whether its code may continue."""
        return not self.dead and self._watchdog.ended is None

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
        """Crash the process and all of its connections."""
        self.dead = True
        if self._broker.history is not None and self._broker.history.lines:
            self.last_time = self._broker.history.lines[-1]["t"]
        for connection in self._connections:
            connection.crash()
        if self.on_death is not None:
            self.on_death()

    def lose(self) -> None:
        """Break its connections."""
        for connection in self._connections:
            connection.lose()

    def clients(self) -> set[str]:
        """The names of its connections in the history."""
        return {connection.client_id for connection in self._connections}

    def configurations(self) -> set[Configuration]:
        """The configurations under which it has consumed so far."""
        return {configuration for connection in self._connections for configuration, _ in connection.consumed}

    def queues(self) -> set[str]:
        """The queues from which it has consumed so far."""
        return {queue for connection in self._connections for _, queue in connection.consumed}

    # What the application sees

    def end(self) -> BaseException | type[BaseException] | None:
        """The exception that ends its code, if it is to end; keep no reference to it (:class:`Reraised`)."""
        if self._watchdog.ended is not None:
            return self._watchdog.end()
        if not self.dead:
            return None
        return self._watchdog.caught(self.name) or ProcessCrashed(f"the process {self.name} has crashed")

    def check(self) -> None:
        """Raise :class:`ProcessCrashed` if it is dead, :class:`Endless` if it does not come to an end."""
        if not self.is_alive:
            raise self.end() or AssertionError

    def proxy(self, value: object) -> object:
        """``value`` as the application is given it: a proxy of an object of the engine, else itself."""
        connection = value.connection if isinstance(value, AsyncConnection) else value
        if isinstance(connection, Connection) and connection not in self._connections:
            self._connections.append(connection)
        if isinstance(value, list):
            return [self.proxy(each) for each in value]
        return Proxy(self, value) if isinstance(value, _PROXIED) else value

    def used(self) -> None:
        """The application has used a proxy."""
        self._is_used = True

    def call(self, function: Callable[..., object], *arguments: object, **named: object) -> object:
        """A call of the application; raises instead of returning if its process has died meanwhile."""
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
        return self.proxy(result)

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
        return self.proxy(result)

    def _announce(self, function: Callable[..., object]) -> None:
        owner = getattr(function, "__self__", None)
        if isinstance(owner, Producer | AsyncProducer) and function.__name__ in _SENDING:
            self._before_send(owner.producer if isinstance(owner, AsyncProducer) else owner)

    def _count(
        self, function: Callable[..., object], arguments: tuple[object, ...], named: Mapping[str, object]
    ) -> None:
        if self._watchdog.is_fruitless():
            given = [_shown(each) for each in arguments] + [f"{name}={_shown(each)}" for name, each in named.items()]
            raise self._watchdog.waits(f"{_name(function)}({', '.join(given)})")

    def _given(self, value: object) -> object:
        """An argument of the application, as the engine takes it: no proxy, and callbacks wrapped."""
        if type(value) is Proxy:
            return value.target
        if not callable(value) or isinstance(value, type):
            return value  # nothing is called back on a class: body_as(bytes)
        return self._called_back(value)

    def _called_back(self, function: Callable[..., object]) -> Callable[..., Coroutine[Any, Any, None] | None]:
        """Wrap a callback: a dead process runs none, and a faulty listener throws before its work or after it."""

        @functools.wraps(function)
        def called(*arguments: object) -> Coroutine[Any, Any, None] | None:
            self.check()
            listening = isinstance(next(iter(arguments), None), Message | AsyncMessage)
            self._throw(listening=listening)
            self.listening += listening
            try:
                pending = function(*map(self.proxy, arguments))
            finally:
                self.listening -= listening
                self.check()
            if inspect.isawaitable(pending):
                return self._goes_on(pending, listening=listening)
            self._throw(listening=listening)
            return None

        return called

    async def _goes_on(self, pending: Awaitable[object], *, listening: bool) -> None:
        self.listening += listening
        try:
            await pending
        finally:
            self.listening -= listening
            self.check()
        self._throw(listening=listening)

    def _throw(self, *, listening: bool) -> None:
        if listening and self.throws:
            self.throws = False
            raise ListenerFault("the fault listener_exception")


def close_coroutine(work: object) -> None:
    """Close ``work`` if it is a coroutine, which would otherwise warn that it was never awaited."""
    if inspect.iscoroutine(work):
        work.close()


class Proxy:
    """A proxy of an object of the engine, whose calls raise when the process of the application has ended."""

    __slots__ = ("_process", "target")

    def __init__(self, process: Process, target: object) -> None:
        self._process = process
        self.target = target

    @property  # type: ignore[misc] # isinstance() has to see the target
    def __class__(self) -> type:
        return type(self.target)

    def __getattr__(self, name: str) -> Any:
        self._process.used()
        value = getattr(self.target, name)
        return functools.partial(self._process.call, value) if callable(value) else self._process.proxy(value)

    def __enter__(self) -> Self:
        self._process.used()
        self._process.check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it, unless the process is dead."""
        if not self._process.dead:
            self._process.call(cast("Connection | Session", self.target).close)

    async def __aenter__(self) -> Self:
        self._process.check()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As :meth:`__exit__`."""
        if not self._process.dead:
            await cast("Awaitable[object]", self._process.call(cast("AsyncConnection", self.target).close))

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Any:
        """The next message of an :class:`AsyncConsumer`."""
        return self._process.call(cast("AsyncConsumer", self.target).__anext__)

    def __eq__(self, other: object) -> bool:
        return self.target is (other.target if type(other) is Proxy else other)

    def __hash__(self) -> int:
        return hash(self.target)

    def __repr__(self) -> str:
        return repr(self.target)


def _name(function: Callable[..., object]) -> str:
    return str(getattr(function, "__qualname__", function))


def _shown(argument: object) -> str:
    return shown(repr(argument), _ARGUMENT)
