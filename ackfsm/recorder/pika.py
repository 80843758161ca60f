"""Record the calls of a ``BlockingConnection`` of pika.

    connection = recorded(pika.BlockingConnection(parameters), Recorder("night.jsonl", "worker-1"))

Everything else stays as it is: the connection and its channels have the methods that they had.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final

from ackfsm.recorder.channels import ChannelBook, Delivery, QueueOf, by_name, new_message_id
from ackfsm.recorder.clients import Wrapped, client, expect
from ackfsm.recorder.recorder import Recorder
from ackfsm.support.closing import Closing

__all__ = ["RecordedChannel", "RecordedConnection", "recorded"]

_PERSISTENT: Final = 2


def recorded(connection: Any, recorder: Recorder, *, queue_of: QueueOf = by_name) -> RecordedConnection:
    """``connection``, whose channels are recorded by ``recorder``, each as a session.

    Args:
        connection: a ``pika.BlockingConnection``.
        recorder: one for the logical thread that uses the connection.
        queue_of: which queue a message goes to, by exchange and routing key, where it is not the default exchange.

    Raises:
        RecordingError: ``connection`` is something else.
    """
    expect(connection, client("pika", "pika").BlockingConnection, "a pika.BlockingConnection")
    return RecordedConnection(connection, recorder, queue_of)


class _Closing(Wrapped, Closing):
    """Closed when it is left as a context, unless it is closed by then."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_open:
            self.close()


class RecordedConnection(_Closing):
    """A connection whose channels are recorded."""

    def __init__(self, connection: Any, recorder: Recorder, queue_of: QueueOf) -> None:
        super().__init__(connection)
        self._recorder, self._queue_of = recorder, queue_of
        self._channels: list[RecordedChannel] = []

    def channel(self, channel_number: int | None = None) -> RecordedChannel:
        """Open a channel; its session has a new name."""
        book = ChannelBook(self._recorder, None, self._queue_of)
        opened = RecordedChannel(self, self._wrapped.channel(channel_number), book)
        self._channels.append(opened)
        return opened

    def close(self, *args: Any, **named: Any) -> None:
        """Close the connection and its channels."""
        for channel in self._channels:
            channel.book.closing()
        self._wrapped.close(*args, **named)

    def process_data_events(self, time_limit: float | None = 0) -> None:
        """Call the callbacks of the frames that have come."""
        with self.watched():
            self._wrapped.process_data_events(time_limit)

    def sleep(self, duration: float) -> None:
        """Call the callbacks of what comes meanwhile."""
        with self.watched():
            self._wrapped.sleep(duration)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Write a ``close`` for each channel that an error has broken.

        That is before the outcomes that the error leaves in doubt: it is what explains them.
        """
        try:
            yield
        except BaseException as error:
            self.broken(error)
            raise

    def broken(self, error: BaseException) -> None:
        """Write a ``close`` for each channel that is not open any more."""
        for channel in self._channels:
            if not channel.is_open:
                channel.book.closing(error)
        self._channels = [channel for channel in self._channels if channel.is_open]


class RecordedChannel(_Closing):
    """A channel that writes its calls; a message that is published without a ``message_id`` gets one.

    ``processed`` is written when a callback returns, or when a message that was fetched is acknowledged; ``failed``
    when a callback raises, and when a message is rejected.
    """

    def __init__(self, connection: RecordedConnection, channel: Any, book: ChannelBook) -> None:
        super().__init__(channel)
        self.connection, self.book = connection, book
        self._confirms = False
        self._pika = client("pika", "pika")

    def confirm_delivery(self) -> None:
        """From now on a publish waits for the broker's answer, and ``confirmed`` is written."""
        self._wrapped.confirm_delivery()
        self._confirms = True

    def basic_publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes | str,
        properties: Any = None,
        mandatory: bool = False,
    ) -> None:
        """Publish.  With confirms, publish as mandatory: the broker confirms what goes to no queue as well."""
        properties = copy.copy(properties) if properties is not None else self._pika.BasicProperties()
        properties.message_id = properties.message_id or new_message_id()
        errors = self._pika.exceptions
        with (
            self.book.sending(
                properties.message_id,
                exchange,
                routing_key,
                persistent=properties.delivery_mode == _PERSISTENT,
                answered=self._confirms,
                rejects=errors.NackError,
                returns=errors.UnroutableError,
            ),
            self.connection.watched(),
        ):
            self._wrapped.basic_publish(exchange, routing_key, body, properties, mandatory)

    def basic_get(self, queue: str, auto_ack: bool = False) -> tuple[Any, Any, Any]:
        """Fetch a message; its work is done when it is acknowledged, or when :meth:`processed` is called."""
        with self.connection.watched():
            method, properties, body = self._wrapped.basic_get(queue, auto_ack)
        if method is not None:
            self._delivered(queue, method, properties, acknowledged=auto_ack)
        return method, properties, body

    def processed(self, delivery_tag: int) -> None:
        """The work on a message that was fetched is done, long before it is acknowledged or where it never is."""
        self.book.done(delivery_tag)

    def basic_consume(
        self,
        queue: str,
        on_message_callback: Callable[..., None],
        auto_ack: bool = False,
        **named: Any,
    ) -> str:
        """Have a callback called with each message; it is given the recorded channel."""

        def called(_: Any, method: Any, properties: Any, body: Any) -> None:
            delivery = self._delivered(queue, method, properties, acknowledged=auto_ack, called=True)
            try:
                on_message_callback(self, method, properties, body)
            except BaseException as error:
                self.book.ended(delivery, error)
                raise
            self.book.ended(delivery)

        with self.connection.watched():
            return str(self._wrapped.basic_consume(queue, called, auto_ack, **named))

    def consume(self, queue: str, auto_ack: bool = False, **named: Any) -> Iterator[tuple[Any, Any, Any]]:
        """Messages one after the other; the work on one is done when it is acknowledged, or the next is asked for."""
        with self.connection.watched():
            for method, properties, body in self._wrapped.consume(queue, auto_ack, **named):
                if method is None:
                    yield method, properties, body
                    continue
                delivery = self._delivered(queue, method, properties, acknowledged=auto_ack)
                yield method, properties, body
                self.book.ended(delivery)

    def basic_cancel(self, consumer_tag: str) -> Any:
        """End a consumer; the channel keeps what that was handed."""
        with self._ending():
            return self._wrapped.basic_cancel(consumer_tag)

    def cancel(self) -> int:
        """End the consumer of :meth:`consume`, and give back what came for it and was not taken."""
        with self._ending():
            return int(self._wrapped.cancel())

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Write a ``close`` for each consumer that a call ends."""
        before = set(self._wrapped.consumer_tags)
        with self.connection.watched():
            yield
        for tag in before.difference(self._wrapped.consumer_tags):
            self.book.cancelled(tag)

    def start_consuming(self) -> None:
        """Call the callbacks until all consumers are cancelled."""
        with self.connection.watched():
            self._wrapped.start_consuming()

    def basic_ack(self, delivery_tag: int = 0, multiple: bool = False) -> None:
        """Acknowledge; the broker does not answer."""
        with self.book.acknowledging(delivery_tag, multiple=multiple), self.connection.watched():
            self._wrapped.basic_ack(delivery_tag, multiple)

    def basic_nack(self, delivery_tag: int = 0, multiple: bool = False, requeue: bool = True) -> None:
        """Give back, or have thrown away."""
        with self.book.giving_back(delivery_tag, multiple=multiple, requeue=requeue), self.connection.watched():
            self._wrapped.basic_nack(delivery_tag, multiple, requeue)

    def basic_reject(self, delivery_tag: int = 0, requeue: bool = True) -> None:
        """Give back, or have thrown away."""
        with self.book.giving_back(delivery_tag, multiple=False, requeue=requeue), self.connection.watched():
            self._wrapped.basic_reject(delivery_tag, requeue)

    def basic_recover(self, requeue: bool = False) -> None:
        """Give back all that is not acknowledged."""
        self.book.recovering()
        with self.connection.watched():
            self._wrapped.basic_recover(requeue)

    def tx_select(self) -> Any:
        """From now on publishes and acknowledgements take effect by :meth:`tx_commit`."""
        with self.connection.watched():
            selected = self._wrapped.tx_select()
        self.book.transacted()
        return selected

    def tx_commit(self) -> Any:
        """Commit."""
        with self.book.committing(), self.connection.watched():
            return self._wrapped.tx_commit()

    def tx_rollback(self) -> Any:
        """Roll back; the deliveries stay with the channel."""
        with self.book.rolling_back(), self.connection.watched():
            return self._wrapped.tx_rollback()

    def close(self, *args: Any, **named: Any) -> None:
        """Close the channel, which gives back unacknowledged messages."""
        self.book.closing()
        self._wrapped.close(*args, **named)

    def _delivered(
        self, queue: str, method: Any, properties: Any, *, acknowledged: bool, called: bool = False
    ) -> Delivery:
        return self.book.delivered(
            method.delivery_tag,
            properties.message_id,
            queue,
            redelivered=method.redelivered,
            headers=properties.headers,
            consumer=getattr(method, "consumer_tag", None),
            acknowledged=acknowledged,
            called=called,
        )
