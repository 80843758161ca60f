"""The engine for asyncio: many tasks of one thread send, receive and wait at once.

    async with AsyncBroker(broker).connect() as connection:
        session = connection.session()
        sent = await session.producer("orders").send(b"...")
        async for message in session.consumer("orders"):
            await message.acknowledge()

A thin face of :class:`Connection`, :class:`Session`, :class:`Producer` and :class:`Consumer`.  While a task waits, the
event loop drives the engine, one step at a time, so that the messages of many tasks share a window and a sync of the
journal.  Nothing sleeps: virtual time passes as fast as the tasks wait.  Where nothing more can happen, a task that
waits for an outcome gets :class:`Stuck`, and one that waits for a message goes on waiting until a call of another task
brings something about.  A blocking call of the engine (a commit, an acknowledgement, a send that meets a full window)
drives it itself.
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
from ackfsm.engine.connection import Connection
from ackfsm.engine.consumer import Consumer, DeferredListener, Message
from ackfsm.engine.core.errors import IllegalStateException, MessageRejected, OutcomeUnknown, Stuck
from ackfsm.engine.core.instances import Body, HeaderValue, Outcome, Queue, Sent
from ackfsm.engine.message import Received
from ackfsm.engine.metrics import Metrics
from ackfsm.engine.producer import Producer
from ackfsm.engine.session import Session
from ackfsm.support.closing import AsyncClosing

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


class EngineDriver:
    """Drives the engine of a broker while tasks wait."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._next_step: asyncio.Future[bool] | None = None
        self._changed: asyncio.Event = asyncio.Event()
        self.number = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    async def next(self) -> bool:
        """Wait for the next thing to happen; ``False`` if nothing can."""
        if self._next_step is None:
            loop = asyncio.get_running_loop()
            self._next_step = loop.create_future()
            loop.call_soon(self._step)
        return await asyncio.shield(self._next_step)

    def _step(self) -> None:
        turn, self._next_step = self._next_step, None
        if turn is None:
            return
        try:
            went = self._broker.loop.step()
        except Exception as error:  # noqa: BLE001 - the tasks that wait get it
            turn.set_exception(error)
            return
        turn.set_result(went)
        if went:
            self.notify()

    async def until(self, done: Callable[[], bool], doing: str) -> None:
        """Wait until ``done()``; raises :class:`Stuck` if nothing that could happen would bring it about."""
        while not done():
            if not await self.next() and not await self.next() and not done():
                raise Stuck(f"{doing} would wait for ever: nothing is left that could happen")

    async def wait_for_change(self, since: int) -> None:
        """Wait until something was called, or happened, after :attr:`number` was ``since``."""
        while self.number == since:
            self._changed.clear()
            await self._changed.wait()

    def notify(self) -> None:
        """Something was called, or has happened, that may let others go on."""
        self.number += 1
        self._changed.set()

    async def wait_while(self, goes_on: Callable[[], bool]) -> None:
        """Wait as long as ``goes_on()``, unless the caller is what goes on: a listener, or another callback."""
        while goes_on() and asyncio.current_task() not in self._tasks:
            await self.wait_for_change(self.number)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` beside all else."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class AsyncBroker:
    """A broker as the tasks of one event loop use it; faults and repairs are methods of ``broker`` itself."""

    def __init__(self, broker: Broker) -> None:
        """Raises :class:`ackfsm.terms.InputError` if ``broker`` is no :class:`Broker`."""
        self.broker = instance_of("broker", Broker, broker)
        self._driver = EngineDriver(broker)

    def connect(self, client_id: str | None = None, *, api: str | None = None, **settings: object) -> AsyncConnection:
        """A connection of a client, see :meth:`Broker.connect`.

        Sends are ``asynchronous`` unless the settings say otherwise, so that each task waits for its own.
        """
        chosen = {"send_mode": "asynchronous", **settings}
        return AsyncConnection(self.broker.connect(client_id, api=api, **chosen), self._driver)

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
            self._driver.notify()

    def metrics(self) -> Metrics:
        """See :meth:`Broker.metrics`."""
        return self.broker.metrics()


class AsyncConnection(AsyncClosing):
    """A client's connection.  :meth:`AsyncBroker.connect` makes it; it is closed when it is left as a context."""

    def __init__(self, connection: Connection, driver: EngineDriver) -> None:
        self.connection = connection
        self._driver = driver

    @property
    def driver(self) -> EngineDriver:
        """Drives the engine while tasks of this connection wait."""
        return self._driver

    def session(self, ack_mode: str | None = None, **settings: object) -> AsyncSession:
        """A session, see :meth:`Connection.session`."""
        return AsyncSession(self.connection.session(ack_mode, **settings), self._driver)

    async def start(self) -> None:
        """See :meth:`Connection.start`."""
        try:
            self.connection.start()
        finally:
            self._driver.notify()

    async def stop(self) -> None:
        """See :meth:`Connection.stop`; waits until no listener of the connection is called any more (JMS 3.1, 6.1.5).

        From within a listener or another callback it waits for nothing: it would wait for itself.
        """
        self.connection.stop()
        await self._driver.wait_while(lambda: any(session.listener_busy() for session in self.connection.sessions))

    @property
    def is_stopped(self) -> bool:
        """See :attr:`Connection.is_stopped`."""
        return self.connection.is_stopped

    async def close(self) -> None:
        """See :meth:`Connection.close`; iterations over its consumers end."""
        self.connection.close()
        self._driver.notify()


class AsyncSession(AsyncClosing):
    """A session.  :meth:`AsyncConnection.session` makes it; it is closed when it is left as a context."""

    def __init__(self, session: Session, driver: EngineDriver) -> None:
        self.session = session
        self._driver = driver

    def producer(
        self, queue: str | Queue, *, on_outcome: Handler | None = None, delivery_mode: str | None = None
    ) -> AsyncProducer:
        """See :meth:`Session.producer`; ``on_outcome`` hears what becomes of each message."""
        return AsyncProducer(self.session, queue, on_outcome, delivery_mode, self._driver)

    def consumer(self, queue: str | Queue, *, listener: AsyncListener | None = None) -> AsyncConsumer:
        """Something that consumes from ``queue``; of a ``listener`` one call at a time goes on in a session."""
        return AsyncConsumer(self.session, queue, listener, self._driver)

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
            self._driver.notify()


class AsyncProducer(AsyncClosing):
    """Sends to one queue.  :meth:`AsyncSession.producer` makes it.

    Attributes:
        unheard: messages whose ``send`` was cancelled before their outcome was known; ask :meth:`outcome` for it.
    """

    def __init__(
        self,
        session: Session,
        queue: str | Queue,
        on_outcome: Handler | None,
        delivery_mode: str | None,
        driver: EngineDriver,
    ) -> None:
        self.unheard: list[Sent] = []
        self._driver = driver
        self._handler = callback_of("on_outcome", on_outcome)
        hear = None if on_outcome is None else self._on_outcome
        self.producer: Producer = session.producer(queue, on_outcome=hear, delivery_mode=delivery_mode)

    async def close(self) -> None:
        """See :meth:`Producer.close`: it waits for the outcomes of its sends, as long as they may come."""
        self.producer.mark_closed()
        with contextlib.suppress(Stuck):  # outcome() raises it
            await self._driver.until(lambda: not self.producer.has_open_sends, "the close of a producer")

    async def send(self, body: Body = b"", headers: Mapping[str, HeaderValue] | None = None, **settings: Any) -> Sent:
        """Send a message and wait for its outcome; ``settings`` are as for :meth:`Producer.send`.

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
        self._driver.notify()
        return self.producer.send(body, headers, **settings)

    async def resend(self, message: Sent) -> Sent:
        """See :meth:`Producer.resend`; waits for the outcome of the second copy."""
        self._driver.notify()
        return await self.outcome(self.producer.resend(message))

    async def outcome(self, message: Sent) -> Sent:
        """Wait for the outcome of ``message``.

        Raises :class:`OutcomeUnknown` if it is in doubt, :class:`MessageRejected` if it was refused, :class:`Stuck` if
        it will never be known.
        """
        instance_of("message", Sent, message)
        await self._driver.until(lambda: message.outcome is not Outcome.OPEN, f"the outcome of {message.id}")
        if message in self.unheard:
            self.unheard.remove(message)
        if message.outcome is Outcome.REJECTED:
            raise MessageRejected(f"the broker refused {message.id}")
        if message.outcome is Outcome.IN_DOUBT:
            raise OutcomeUnknown(f"the connection broke before the broker answered {message.id}; it may have it")
        return message

    def _on_outcome(self, message: Sent) -> None:
        if self._handler is not None:
            work = self._handler(message)
            if inspect.iscoroutine(work):
                self._driver.spawn(work)


class AsyncMessage(Received):
    """A message that was delivered; its attribute ``message`` is that of the session itself."""

    __slots__ = ("_driver", "message")

    def __init__(self, message: Message, driver: EngineDriver) -> None:
        super().__init__(message.sent, redelivered=message.redelivered, delivery_count=message.delivery_count)
        self.message = message
        self._driver = driver

    async def acknowledge(self) -> None:
        """See :meth:`Message.acknowledge`."""
        try:
            self.message.acknowledge()
        finally:
            self._driver.notify()


class AsyncConsumer(AsyncClosing):
    """Consumes from one queue.  :meth:`AsyncSession.consumer` makes it.

    It is closed when it is left as a context; iterating over it ends when it is closed, or the session.
    """

    def __init__(
        self, session: Session, queue: str | Queue, listener: AsyncListener | None, driver: EngineDriver
    ) -> None:
        self._driver = driver
        self._listener = callback_of("listener", listener)
        self.consumer: Consumer = session.consumer(
            queue, listener=None if listener is None else DeferredListener(self._begin)
        )
        driver.notify()

    async def close(self) -> None:
        """See :meth:`Consumer.close`; a task that waits in :meth:`receive` gets ``None``.

        It waits until the listener has come to its end, unless the listener itself calls.
        """
        try:
            self.consumer.close()
        finally:
            self._driver.notify()
        await self._driver.wait_while(lambda: self._listener is not None and self.consumer.is_busy)

    async def receive(self, timeout: float | None = 0.0) -> AsyncMessage | None:  # noqa: ASYNC109 - virtual seconds
        """The next message.

        Args:
            timeout: seconds of virtual time to wait for one; ``None`` waits for any time, for another task may send
                one; 0, as in :meth:`Consumer.receive`, as long as what is under way may bring one.

        Returns ``None`` if the time is over, or the consumer is closed meanwhile; a message that was handed over is
        never lost to a cancellation.  Raises :class:`IllegalStateException` for a consumer with a listener, and once it
        or the session is closed.
        """
        loop = self.consumer.broker.loop
        wait = None if timeout is None else nanoseconds_of(timeout)
        end = loop.scheduler.now + wait if wait else None
        with loop.deadline(end):
            while (message := self.consumer.poll()) is None:
                number = self._driver.number
                if end is not None and loop.scheduler.now >= end:
                    return None
                if not await self._driver.next():
                    if wait is not None:
                        return None
                    await self._driver.wait_for_change(number)
                if self.consumer.closed:
                    return None
        self._driver.notify()
        return AsyncMessage(message, self._driver)

    def __aiter__(self) -> AsyncIterator[AsyncMessage]:
        """All messages, until it or the session is closed."""
        return self

    async def __anext__(self) -> AsyncMessage:
        """The next message; raises :class:`IllegalStateException` for a consumer with a listener."""
        while not self._is_over:
            try:
                message = await self.receive(None)
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
        self._driver.spawn(self._listen(message))

    async def _listen(self, message: Message) -> None:
        failed: Exception | None = None
        try:
            if self._listener is not None:
                work = self._listener(AsyncMessage(message, self._driver))
                if inspect.isawaitable(work):
                    await work
        except Exception as error:  # noqa: BLE001 - whatever a listener throws is a listener exception (JMS 3.1, 8.7)
            failed = error
        self.consumer.done(message, failed)
        self._driver.notify()
