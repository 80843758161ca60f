"""The engine for asyncio: many tasks of one thread send, receive and wait at once.

    async with AsyncBroker(broker).connect() as connection:
        session = connection.session()
        sent = await session.producer("orders").send(b"...")
        async for message in session.consumer("orders"):
            await message.acknowledge()

A thin face of :class:`Connection`, :class:`Session`, :class:`Producer` and :class:`Consumer`.  While a task waits, the
event loop turns the engine, one thing at a time, so that the messages of many tasks share a window and a sync of the
journal.  Nothing sleeps: virtual time passes as fast as the tasks wait.  Where nothing more can happen, whoever waits
for an outcome is told so, and whoever waits for a message goes on waiting until a call of this face brings something
about.  A blocking call of the engine (a commit, an acknowledgement, a send that meets a full window) turns it itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeAlias

from ackfsm.engine.arguments import callback_of, instance_of, nanoseconds_of
from ackfsm.engine.broker import Broker
from ackfsm.engine.browser import Browser
from ackfsm.engine.closing import AsyncClosing
from ackfsm.engine.connection import Connection
from ackfsm.engine.consumer import Consumer, Deferred, Message
from ackfsm.engine.core.errors import IllegalStateException, MessageRejected, OutcomeUnknown, Stuck
from ackfsm.engine.core.links import Queue
from ackfsm.engine.core.message import Body, HeaderValue, Outcome, Received, Sent
from ackfsm.engine.metrics import Metrics
from ackfsm.engine.producer import Producer
from ackfsm.engine.session import Session

__all__ = [
    "AsyncBroker",
    "AsyncConnection",
    "AsyncConsumer",
    "AsyncListener",
    "AsyncMessage",
    "AsyncProducer",
    "AsyncSession",
]

AsyncListener: TypeAlias = "Callable[[AsyncMessage], Awaitable[object]]"
"""What is called with each message; an exception is a listener exception."""

Handler: TypeAlias = Callable[[Sent], object]
"""What is called with each message that has an outcome: a function, or a coroutine function."""


class _Turns:
    """Turns the engine of a broker while somebody waits."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._turn: asyncio.Future[bool] | None = None
        self._news: asyncio.Event = asyncio.Event()
        self.number = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    async def next(self) -> bool:
        """Wait for the next thing to happen; ``False`` if nothing can."""
        if self._turn is None:
            loop = asyncio.get_running_loop()
            self._turn = loop.create_future()
            loop.call_soon(self._go_on)
        return await asyncio.shield(self._turn)

    def _go_on(self) -> None:
        turn, self._turn = self._turn, None
        if turn is None:
            return
        try:
            went = self._broker.engine.go_on()
        except Exception as error:  # noqa: BLE001 - it is for those who wait
            turn.set_exception(error)
            return
        turn.set_result(went)
        if went:
            self.called()

    async def until(self, done: Callable[[], bool], doing: str) -> None:
        """Wait until ``done()``; raises :class:`Stuck` if nothing that could happen would bring it about."""
        while not done():
            if not await self.next() and not await self.next() and not done():
                raise Stuck(f"{doing} would wait for ever: nothing is left that could happen")

    async def news(self, since: int) -> None:
        """Wait until something was called, or happened, after :attr:`number` was ``since``."""
        while self.number == since:
            self._news.clear()
            await self._news.wait()

    def called(self) -> None:
        """Something was called, or has happened, that may let others go on."""
        self.number += 1
        self._news.set()

    async def while_(self, goes_on: Callable[[], bool]) -> None:
        """Wait as long as ``goes_on()``, unless the caller is what goes on: a listener, or another callback."""
        while goes_on() and asyncio.current_task() not in self._tasks:
            await self.news(self.number)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` beside all else."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class AsyncBroker:
    """A broker as the tasks of one event loop use it; faults and repairs are those of ``broker`` itself."""

    def __init__(self, broker: Broker) -> None:
        """Raises :class:`ackfsm.terms.InputError` for what is no :class:`Broker`."""
        self.broker = instance_of("broker", Broker, broker)
        self._turns = _Turns(broker)

    def connect(self, client_id: str | None = None, **settings: object) -> AsyncConnection:
        """A connection of a client, see :meth:`Broker.connect`.

        Sends are ``asynchronous`` unless the settings say otherwise, so that each task waits for its own.
        """
        chosen = {"send_mode": "asynchronous", **settings}
        return AsyncConnection(self.broker.connect(client_id, **chosen), self._turns)

    @property
    def queues(self) -> Mapping[str, Queue]:
        """See :attr:`Broker.queues`."""
        return self.broker.queues

    def queue(self, name: str, *, durable: bool | None = None, max_length: int | None = None) -> Queue:
        """See :meth:`Broker.queue`."""
        return self.broker.queue(name, durable=durable, max_length=max_length)

    async def purge(self, queue: str | Queue) -> int:
        """See :meth:`Broker.purge`."""
        try:
            return self.broker.purge(queue)
        finally:
            self._turns.called()

    def metrics(self) -> Metrics:
        """See :meth:`Broker.metrics`."""
        return self.broker.metrics()


class AsyncConnection(AsyncClosing):
    """A client's connection.  :meth:`AsyncBroker.connect` makes it; it is closed when it is left as a context."""

    def __init__(self, connection: Connection, turns: _Turns) -> None:
        self.connection = connection
        self._turns = turns

    def session(self, ack_mode: str | None = None, **settings: object) -> AsyncSession:
        """A session, see :meth:`Connection.session`."""
        return AsyncSession(self.connection.session(ack_mode, **settings), self._turns)

    async def start(self) -> None:
        """See :meth:`Connection.start`."""
        try:
            self.connection.start()
        finally:
            self._turns.called()

    async def stop(self) -> None:
        """See :meth:`Connection.stop`; waits until no listener of the connection is called any more (JMS 3.1, 6.1.5).

        From within a listener or another callback it waits for nothing: it would wait for itself.
        """
        self.connection.stop()
        await self._turns.while_(lambda: any(session.is_called() for session in self.connection.sessions))

    @property
    def is_stopped(self) -> bool:
        """See :attr:`Connection.is_stopped`."""
        return self.connection.is_stopped

    async def close(self) -> None:
        """See :meth:`Connection.close`; whoever iterates over a consumer comes to the end."""
        self.connection.close()
        self._turns.called()


class AsyncSession(AsyncClosing):
    """A session.  :meth:`AsyncConnection.session` makes it; it is closed when it is left as a context."""

    def __init__(self, session: Session, turns: _Turns) -> None:
        self.session = session
        self._turns = turns

    def producer(self, queue: str | Queue, *, on_outcome: Handler | None = None) -> AsyncProducer:
        """Something that sends to ``queue``; ``on_outcome`` hears what becomes of each message."""
        return AsyncProducer(self.session, queue, on_outcome, self._turns)

    def consumer(self, queue: str | Queue, *, listener: AsyncListener | None = None) -> AsyncConsumer:
        """Something that consumes from ``queue``; of a ``listener`` one call at a time goes on in a session."""
        return AsyncConsumer(self.session, queue, listener, self._turns)

    def browser(self, queue: str | Queue) -> Browser:
        """See :meth:`Session.browser`."""
        return self.session.browser(queue)

    async def commit(self) -> None:
        """See :meth:`Session.commit`."""
        await self._call(self.session.commit)

    async def rollback(self) -> None:
        """See :meth:`Session.rollback`."""
        await self._call(self.session.rollback)

    async def recover(self) -> None:
        """See :meth:`Session.recover`."""
        await self._call(self.session.recover)

    async def close(self) -> None:
        """See :meth:`Session.close`."""
        await self._call(self.session.close)

    async def _call(self, call: Callable[[], None]) -> None:
        try:
            call()
        finally:
            self._turns.called()


class AsyncProducer(AsyncClosing):
    """Sends to one queue.  :meth:`AsyncSession.producer` makes it.

    Attributes:
        unheard: messages whose ``send`` was cancelled before their outcome was known; ask :meth:`outcome` for it.
    """

    def __init__(self, session: Session, queue: str | Queue, on_outcome: Handler | None, turns: _Turns) -> None:
        self.unheard: list[Sent] = []
        self._turns = turns
        self._handler = callback_of("on_outcome", on_outcome)
        self.producer: Producer = session.producer(queue, on_outcome=None if on_outcome is None else self._hear)

    async def close(self) -> None:
        """See :meth:`Producer.close`: it waits for the outcomes of what was sent, as long as they may come."""
        self.producer.shut()
        with contextlib.suppress(Stuck):  # who asks for such an outcome is told
            await self._turns.until(lambda: not self.producer.waits, "the close of a producer")

    async def send(self, body: Body = b"", headers: Mapping[str, HeaderValue] | None = None, **settings: Any) -> Sent:
        """Send a message and wait for its outcome; ``settings`` are those of :meth:`Producer.send`.

        Raises :class:`OutcomeUnknown`, :class:`MessageRejected`, and what :meth:`Producer.send` raises.  Where it is
        cancelled the message is on its way all the same, and in :attr:`unheard`.
        """
        sent = self.post(body, headers, **settings)
        try:
            return await self.outcome(sent)
        except asyncio.CancelledError:
            self.unheard.append(sent)
            raise

    def post(self, body: Body = b"", headers: Mapping[str, HeaderValue] | None = None, **settings: Any) -> Sent:
        """Send a message and wait for nothing that the tables do not make a send wait for."""
        self._turns.called()
        return self.producer.send(body, headers, **settings)

    async def resend(self, message: Sent) -> Sent:
        """See :meth:`Producer.resend`; waits for the outcome of the second copy."""
        self._turns.called()
        return await self.outcome(self.producer.resend(message))

    async def outcome(self, message: Sent) -> Sent:
        """Wait for the outcome of ``message``.

        Raises :class:`OutcomeUnknown` if it is in doubt, :class:`MessageRejected` if it was refused, :class:`Stuck` if
        it will never be known.
        """
        instance_of("message", Sent, message)
        await self._turns.until(lambda: message.outcome is not Outcome.OPEN, f"the outcome of {message.id}")
        if message in self.unheard:
            self.unheard.remove(message)
        if message.outcome is Outcome.REJECTED:
            raise MessageRejected(f"the broker refused {message.id}")
        if message.outcome is Outcome.IN_DOUBT:
            raise OutcomeUnknown(f"the connection broke before the broker answered {message.id}; it may have it")
        return message

    def _hear(self, message: Sent) -> None:
        if self._handler is not None:
            told = self._handler(message)
            if inspect.iscoroutine(told):
                self._turns.spawn(told)


class AsyncMessage(Received):
    """A message that was delivered; its attribute ``message`` is that of the session itself."""

    __slots__ = ("_turns", "message")

    def __init__(self, message: Message, turns: _Turns) -> None:
        super().__init__(message.sent, redelivered=message.redelivered, delivery_count=message.delivery_count)
        self.message = message
        self._turns = turns

    async def acknowledge(self) -> None:
        """See :meth:`Message.acknowledge`."""
        try:
            self.message.acknowledge()
        finally:
            self._turns.called()


class AsyncConsumer(AsyncClosing):
    """Consumes from one queue.  :meth:`AsyncSession.consumer` makes it.

    It is closed when it is left as a context; iterating over it ends when it is closed, or the session.
    """

    def __init__(self, session: Session, queue: str | Queue, listener: AsyncListener | None, turns: _Turns) -> None:
        self._turns = turns
        self._listener = callback_of("listener", listener)
        self.consumer: Consumer = session.consumer(queue, listener=None if listener is None else Deferred(self._begin))
        turns.called()

    async def close(self) -> None:
        """See :meth:`Consumer.close`; whoever waits in :meth:`receive` gets ``None``.

        It waits until the listener has come to its end, unless that is who calls.
        """
        try:
            self.consumer.close()
        finally:
            self._turns.called()
        await self._turns.while_(lambda: self._listener is not None and self.consumer.is_busy)

    async def receive(self, timeout: float | None = None) -> AsyncMessage | None:  # noqa: ASYNC109 - virtual seconds
        """The next message.

        Args:
            timeout: seconds of virtual time to wait for one, ``None`` for any time; 0 as long as what is under way may
                bring one.

        Returns ``None`` if the time is over, or the consumer is closed meanwhile; a message that was handed over is
        never lost to a cancellation.  Raises :class:`IllegalStateException` for a consumer with a listener, and once it
        or the session is closed.
        """
        engine = self.consumer.session.broker.engine
        wait = None if timeout is None else nanoseconds_of(timeout)
        end = engine.pace.now + wait if wait else None
        with engine.deadline(end):
            while (message := self.consumer.poll()) is None:
                number = self._turns.number
                if end is not None and engine.pace.now >= end:
                    return None
                if not await self._turns.next():
                    if wait is not None:
                        return None
                    await self._turns.news(number)
                if self.consumer.closed:
                    return None
        self._turns.called()
        return AsyncMessage(message, self._turns)

    def __aiter__(self) -> AsyncIterator[AsyncMessage]:
        """All messages, until it or the session is closed."""
        return self

    async def __anext__(self) -> AsyncMessage:
        """The next message; raises :class:`IllegalStateException` for a consumer with a listener."""
        while not self._is_over:
            try:
                message = await self.receive()
            except IllegalStateException:
                if not self._is_over:
                    raise
                break
            if message is not None:
                return message
        raise StopAsyncIteration

    @property
    def _is_over(self) -> bool:
        return self.consumer.closed or self.consumer.session.closed

    def _begin(self, message: Message) -> None:
        self._turns.spawn(self._listen(message))

    async def _listen(self, message: Message) -> None:
        failed: Exception | None = None
        try:
            if self._listener is not None:
                told = self._listener(AsyncMessage(message, self._turns))
                if inspect.isawaitable(told):
                    await told
        except Exception as error:  # noqa: BLE001 - whatever a listener throws is a listener exception (JMS 3.1, 8.7)
            failed = error
        self.consumer.done(message, failed)
        self._turns.called()
