"""Record the calls of a connection of aio-pika.

    connection = recorded(await aio_pika.connect(url), Recorder("night.jsonl", "worker-1"))

Everything else stays as it is.  A robust connection is recorded as well: each time it is there again its channels are
sessions with new names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self

from ackfsm.recorder.channels import ChannelBook, Delivery, QueueOf, by_name, new_message_id
from ackfsm.recorder.clients import Wrapped, client, expect
from ackfsm.recorder.recorder import Recorder
from ackfsm.support.closing import AsyncClosing

__all__ = ["RecordedChannel", "RecordedConnection", "RecordedMessage", "RecordedQueue", "recorded"]

_PERSISTENT: Final = 2


def recorded(connection: Any, recorder: Recorder, *, queue_of: QueueOf = by_name) -> RecordedConnection:
    """``connection``, whose channels are recorded by ``recorder``, each as a session.

    Args:
        connection: what ``aio_pika.connect`` or ``connect_robust`` gave.
        recorder: one for the program.  Of one session sends are taken to reach the broker in the order of their lines:
            tasks that publish at the same time have a channel each.
        queue_of: which queue a message goes to, by exchange and routing key, where it is not the default exchange.

    Raises:
        RecordingError: ``connection`` is something else.
    """
    expect(connection, client("aio_pika.abc", "aio-pika").AbstractConnection, "a connection of aio-pika")
    return RecordedConnection(connection, recorder, queue_of)


class RecordedConnection(Wrapped, AsyncClosing):
    """A connection whose channels are recorded."""

    def __init__(self, connection: Any, recorder: Recorder, queue_of: QueueOf) -> None:
        super().__init__(connection)
        self._recorder, self._queue_of = recorder, queue_of
        self._channels: list[RecordedChannel] = []

    def channel(
        self, channel_number: int | None = None, publisher_confirms: bool = True, **named: Any
    ) -> RecordedChannel:
        """A channel, to be awaited or entered."""
        made = self._wrapped.channel(channel_number, publisher_confirms=publisher_confirms, **named)

        def new_book() -> ChannelBook:
            return ChannelBook(self._recorder, None, self._queue_of)

        channel = RecordedChannel(made, new_book, confirms=publisher_confirms)
        self._channels.append(channel)
        return channel

    async def close(self, *args: Any, **named: Any) -> None:
        """Close the connection and its channels."""
        for channel in self._channels:
            channel.book.closing()
        await self._wrapped.close(*args, **named)


class RecordedChannel(Wrapped, AsyncClosing):
    """A channel that writes what its exchanges, queues and transactions do."""

    def __init__(self, channel: Any, new_book: Callable[[], ChannelBook], *, confirms: bool) -> None:
        super().__init__(channel)
        self._new_book = new_book
        self.book = new_book()
        self.confirms = confirms
        self._closed = self._on_close
        """Kept: the channel has a weak reference of it."""

    async def _opened(self) -> Self:
        await self._wrapped
        self._wrapped.close_callbacks.add(self._closed)
        return self

    def _on_close(self, _: Any, error: BaseException | None = None) -> None:
        """Begin a session of its own for the later calls of a robust connection."""
        self.book.closing(error)
        self.book = self._new_book()

    @contextmanager
    def watched(self, book: ChannelBook) -> Iterator[None]:
        """Write a ``close`` if an error has broken the channel, before the outcomes that the error leaves in doubt."""
        try:
            yield
        except BaseException as error:
            if self._wrapped.is_closed:
                book.closing(error)
            raise

    def __await__(self) -> Generator[Any, Any, Self]:
        return self._opened().__await__()

    async def __aenter__(self) -> Self:
        return await self._opened()

    @property
    def default_exchange(self) -> RecordedExchange:
        """The exchange whose routing keys are names of queues."""
        return RecordedExchange(self, self._wrapped.default_exchange)

    async def declare_exchange(self, *args: Any, **named: Any) -> RecordedExchange:
        """Declare an exchange."""
        return RecordedExchange(self, await self._wrapped.declare_exchange(*args, **named))

    async def get_exchange(self, *args: Any, **named: Any) -> RecordedExchange:
        """An exchange by its name."""
        return RecordedExchange(self, await self._wrapped.get_exchange(*args, **named))

    async def declare_queue(self, *args: Any, **named: Any) -> RecordedQueue:
        """Declare a queue."""
        return RecordedQueue(self, await self._wrapped.declare_queue(*args, **named))

    async def get_queue(self, *args: Any, **named: Any) -> RecordedQueue:
        """A queue by its name."""
        return RecordedQueue(self, await self._wrapped.get_queue(*args, **named))

    def transaction(self) -> RecordedTransaction:
        """A transaction; the channel has to be one without publisher confirms."""
        return RecordedTransaction(self, self._wrapped.transaction())

    async def close(self, *args: Any, **named: Any) -> None:
        """Close the channel, which gives back unacknowledged messages."""
        self.book.closing()
        await self._wrapped.close(*args, **named)


class RecordedExchange(Wrapped):
    """An exchange whose publishes are recorded; a message without a ``message_id`` gets one."""

    def __init__(self, channel: RecordedChannel, exchange: Any) -> None:
        super().__init__(exchange)
        self._channel = channel

    async def publish(self, message: Any, routing_key: str, **named: Any) -> Any:
        """Publish; a message that is refused is ``rejected``, one that is returned is ``returned`` and confirmed."""
        library = client("aio_pika", "aio-pika")
        message.message_id = message.message_id or new_message_id()
        book = self._channel.book
        sent = book.sending(
            message.message_id,
            self._wrapped.name,
            routing_key,
            persistent=message.delivery_mode == _PERSISTENT,
            answered=self._channel.confirms,
            rejects=library.exceptions.DeliveryError,
        )
        with sent as sending, self._channel.watched(book):
            result = await self._wrapped.publish(message, routing_key, **named)
            if isinstance(result, client("aiormq.abc", "aio-pika").DeliveredMessage):
                sending.returned()
        return result


class RecordedQueue(Wrapped):
    """A queue whose deliveries are recorded."""

    def __init__(self, channel: RecordedChannel, queue: Any) -> None:
        super().__init__(queue)
        self._channel = channel

    async def get(self, *, no_ack: bool = False, **named: Any) -> RecordedMessage | None:
        """Fetch a message; its work is done when it is acknowledged, or when its ``done()`` is called."""
        message = await self._wrapped.get(no_ack=no_ack, **named)
        return None if message is None else self.received(message, no_ack=no_ack)

    async def consume(
        self, callback: Callable[[RecordedMessage], Awaitable[Any]], no_ack: bool = False, **named: Any
    ) -> Any:
        """Have a callback called with each message."""

        async def called(message: Any) -> None:
            handed = self.received(message, no_ack=no_ack, called=True)
            try:
                await callback(handed)
            except BaseException as error:
                handed.ended(error)
                raise
            handed.done()

        return await self._wrapped.consume(called, no_ack, **named)

    def iterator(self, **named: Any) -> RecordedIterator:
        """Messages one after the other; the work on one is done when it is acknowledged, or the next is asked for."""
        return RecordedIterator(self, self._wrapped.iterator(**named), no_ack=bool(named.get("no_ack")))

    def __aiter__(self) -> RecordedIterator:
        return self.iterator()

    def received(self, message: Any, *, no_ack: bool, called: bool = False) -> RecordedMessage:
        """Write that the application is handed ``message``."""
        book = self._channel.book
        delivery = book.delivered(
            message.delivery_tag,
            message.message_id,
            self._wrapped.name,
            redelivered=bool(message.redelivered),
            headers=message.headers,
            acknowledged=no_ack,
            called=called,
        )
        return RecordedMessage(message, self._channel, book, delivery)


class RecordedIterator(Wrapped):
    """The messages of a queue, one after the other."""

    def __init__(self, queue: RecordedQueue, iterator: Any, *, no_ack: bool) -> None:
        super().__init__(iterator)
        self._queue, self._no_ack = queue, no_ack
        self._latest: RecordedMessage | None = None

    def __aiter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        await self._wrapped.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._latest is not None and error is not None:
            self._latest.ended(error)
        await self._wrapped.__aexit__(kind, error, trace)

    async def __anext__(self) -> RecordedMessage:
        if self._latest is not None:
            self._latest.done()
            self._latest = None
        message = await self._wrapped.__anext__()
        self._latest = self._queue.received(message, no_ack=self._no_ack)
        return self._latest


class RecordedMessage(Wrapped):
    """A message that the application has."""

    def __init__(self, message: Any, channel: RecordedChannel, book: ChannelBook, delivery: Delivery) -> None:
        super().__init__(message)
        self._channel, self._book, self._delivery = channel, book, delivery

    def done(self) -> None:
        """The work on it is done, long before it is acknowledged or where it never is."""
        self._book.ended(self._delivery)

    def ended(self, error: BaseException) -> None:
        """The work on it raised ``error``."""
        self._book.ended(self._delivery, error)

    async def ack(self, multiple: bool = False) -> None:
        """Acknowledge; the broker does not answer."""
        with self._book.acknowledging(self._wrapped.delivery_tag, multiple=multiple), self._channel.watched(self._book):
            await self._wrapped.ack(multiple)

    async def nack(self, multiple: bool = False, requeue: bool = True) -> None:
        """Give back, or have thrown away."""
        with (
            self._book.giving_back(self._wrapped.delivery_tag, multiple=multiple, requeue=requeue),
            self._channel.watched(self._book),
        ):
            await self._wrapped.nack(multiple, requeue)

    async def reject(self, requeue: bool = False) -> None:
        """Give back, or have thrown away."""
        with (
            self._book.giving_back(self._wrapped.delivery_tag, multiple=False, requeue=requeue),
            self._channel.watched(self._book),
        ):
            await self._wrapped.reject(requeue)

    def process(
        self, requeue: bool = False, reject_on_redelivered: bool = False, ignore_processed: bool = False
    ) -> Any:
        """Acknowledges at its end, or rejects if its body raises."""
        context = client("aio_pika.message", "aio-pika").ProcessContext
        return context(
            self, requeue=requeue, reject_on_redelivered=reject_on_redelivered, ignore_processed=ignore_processed
        )


class RecordedTransaction(Wrapped):
    """A transaction of a channel."""

    def __init__(self, channel: RecordedChannel, transaction: Any) -> None:
        super().__init__(transaction)
        self._channel = channel

    async def select(self, *args: Any, **named: Any) -> Any:
        """From now on publishes and acknowledgements take effect by a commit."""
        selected = await self._wrapped.select(*args, **named)
        self._channel.book.transacted()
        return selected

    async def commit(self, *args: Any, **named: Any) -> Any:
        """Commit."""
        with self._channel.book.committing(), self._channel.watched(self._channel.book):
            return await self._wrapped.commit(*args, **named)

    async def rollback(self, *args: Any, **named: Any) -> Any:
        """Roll back; the deliveries stay with the channel."""
        with self._channel.book.rolling_back(), self._channel.watched(self._channel.book):
            return await self._wrapped.rollback(*args, **named)

    async def __aenter__(self) -> Self:
        await self.select()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await (self.commit() if error is None else self.rollback())
