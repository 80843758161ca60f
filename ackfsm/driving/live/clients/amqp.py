"""The client py-amqp, by which Celery and Kombu speak AMQP 0-9-1."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, ClassVar

import amqp
from amqp import exceptions

from ackfsm.driving.live.clients.library import (
    Called,
    Consumer,
    Failed,
    Kind,
    Outgoing,
    Received,
    Session,
    ThrownError,
    by_key,
)
from ackfsm.history.format import Outcome
from ackfsm.recorder.channels import ChannelBook
from ackfsm.terms import AckMode

__all__ = ["AmqpSession"]


class AmqpSession(Session):
    """A channel; the application is handed what the library's callback was called with as it asks for that."""

    library = "amqp"
    DEFAULTS: ClassVar = {
        "userid": "guest",
        "password": "guest",
        "virtual_host": "/",
        "confirm_publish": True,
        "prefetch_count": 0,  # no bound
        "exchange": "",  # to which is published
    }
    KINDS = (
        (exceptions.AccessRefused, Kind.REFUSED),
        (exceptions.NotFound, Kind.REFUSED),
        (exceptions.AMQPError, Kind.CLOSED),
        (OSError, Kind.CLOSED),
    )

    def connect(self) -> None:
        """See :class:`Session`."""
        self._confirms = bool(self.settings["confirm_publish"]) and not self.transacted
        named = {name: self.settings[name] for name in ("userid", "password", "virtual_host")}
        self._connection = amqp.Connection(f"{self.host}:{self.port}", confirm_publish=self._confirms, **named)
        self._connection.connect()
        self._channel = self._connection.channel()
        self._channel.basic_qos(0, self.settings["prefetch_count"], a_global=False)
        self._book = ChannelBook(self.recorder, None, by_key)
        self._returned: list[Any] = []
        self._channel.events["basic_return"].add(lambda *told: self._returned.append(told))
        if self.transacted:
            self._channel.tx_select()
            self._book.transacted()
        self._coming: dict[str, deque[Any]] = {}
        self._tags: dict[str, str] = {}

    @property
    def usable(self) -> bool:
        """See :class:`Session`."""
        return bool(self._connection.connected and self._channel.is_open)

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Write a ``close`` if an error has broken the channel, before the outcomes that the error leaves in doubt."""
        try:
            yield
        except BaseException as error:
            if not self.usable:
                self._book.closing(error)
            raise

    def consume(self, consumer: Consumer) -> None:
        """Open a consumer."""
        coming = self._coming[consumer.name] = deque()
        with self._watched():
            self._tags[consumer.name] = self._channel.basic_consume(
                consumer.destination, no_ack=self.automatic, callback=coming.append
            )

    def send(self, outgoing: Outgoing) -> str | None:
        """Publish to the queue, or the topic; with confirms as mandatory."""
        if outgoing.later is not None:
            raise self.lacks("asynchronous sends")
        exchange = self.settings["exchange"]
        message = amqp.Message(outgoing.body, message_id=outgoing.message, delivery_mode=1 + outgoing.persistent)
        sending = self._book.sending(
            outgoing.message,
            exchange,
            outgoing.destination,
            persistent=outgoing.persistent,
            answered=self._confirms,
            rejects=exceptions.MessageNacked,
            returns=Failed,
        )
        try:
            with sending, self._watched():
                self._channel.basic_publish(message, exchange, outgoing.destination, mandatory=self._confirms)
                if self._returned:
                    self._returned.clear()
                    raise Failed(Kind.REFUSED, f"there is no queue {outgoing.destination}")
        except exceptions.MessageNacked:
            return "rejected"
        return "confirmed" if self._confirms else "sent"

    def receive(self, consumer: Consumer, timeout: float) -> Received:
        """See :class:`Session`."""
        _, received = self._next(consumer, timeout, called=False)
        return received

    def listen(self, consumer: Consumer, timeout: float, called: Called) -> None:
        """Call the listener with the next message; give back what it failed with, which the library leaves open."""
        delivery, received = self._next(consumer, timeout, called=True)
        if delivery is None:
            return
        try:
            called(received)
        except ThrownError as error:
            self._book.ended(delivery, error)
            self.failed(str(received.message))
        else:
            self._book.ended(delivery)

    def _next(self, consumer: Consumer, timeout: float, *, called: bool) -> tuple[Any, Received]:
        """The next message of a consumer as the recorder knows it, and as the application does."""
        coming, end = self._coming[consumer.name], time.monotonic() + timeout
        with self._watched():
            while not coming and (left := end - time.monotonic()) > 0:
                with contextlib.suppress(TimeoutError):
                    self._connection.drain_events(left)
        if not coming:
            return None, Received(None)
        message = coming.popleft()
        info, headers = message.delivery_info, message.properties.get("application_headers") or {}
        delivery = self._book.delivered(
            info["delivery_tag"],
            message.properties["message_id"],
            consumer.destination,
            redelivered=info["redelivered"],
            headers=headers,
            consumer=info["consumer_tag"],
            acknowledged=self.automatic,
            called=called,
        )
        count = headers.get("x-delivery-count")  # of a quorum queue
        received = Received(delivery.message, bool(info["redelivered"]), None if count is None else count + 1)
        return delivery, self.hold(received, info["delivery_tag"])

    def acknowledge(self, message: str) -> str:
        """See :class:`Session`; ``multiple`` in the mode of that kind."""
        tag, multiple = self.held(message), self.ack_mode is AckMode.CLIENT_ACKNOWLEDGE
        with self._book.acknowledging(tag, multiple=multiple), self._watched():
            self._channel.basic_ack(tag, multiple)
        self.settled(message, alone=not multiple)
        return "sent"

    def settle(self, message: str, outcome: str) -> None:
        """Give back by ``basic.reject``, or give up by that."""
        tag, requeue = self.held(message), outcome != Outcome.REJECTED
        if outcome not in {Outcome.MODIFIED, Outcome.REJECTED, Outcome.RELEASED}:
            raise self.lacks(f"the outcome {outcome}")
        with self._book.giving_back(tag, multiple=False, requeue=requeue), self._watched():
            self._channel.basic_reject(tag, requeue)
        self.settled(message)

    def commit(self) -> str:
        """See :class:`Session`."""
        self.acknowledge_all()
        with self._book.committing(), self._watched():
            self._channel.tx_commit()
        self._enlisted.clear()
        return "committed"

    def rollback(self) -> None:
        """Roll back; the channel keeps what it was delivered."""
        with self._book.rolling_back(), self._watched():
            self._channel.tx_rollback()
        self.rolled_back()

    def recover(self) -> None:
        """See :class:`Session`."""
        self._book.recovering()
        with self._watched():
            self._channel.basic_recover(requeue=True)
        self._held.clear()

    def close_consumer(self, consumer: Consumer) -> None:
        """Cancel it, and give back what came for it and was not taken; what it was handed stays with the channel."""
        tag = self._tags.pop(consumer.name)
        with self._watched():
            self._channel.basic_cancel(tag)
            for message in () if self.automatic else self._coming[consumer.name]:
                self._channel.basic_reject(message.delivery_info["delivery_tag"], requeue=True)
        del self._coming[consumer.name]
        self._book.cancelled(tag)

    def close(self) -> None:
        """See :class:`Session`."""
        self._book.closing()
        self._connection.close()
