"""The client pika: AMQP 0-9-1 by ``BlockingConnection``."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import pika
from pika import exceptions

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
from ackfsm.recorder.pika import recorded
from ackfsm.terms import AckMode

__all__ = ["PikaSession"]


class PikaSession(Session):
    """A channel."""

    library = "pika"
    DEFAULTS: ClassVar = {
        "username": "guest",
        "password": "guest",
        "virtual_host": "/",
        "heartbeat": 0,
        "confirms": True,
        "prefetch_count": 0,  # no bound
        "exchange": "",  # to which is published
    }
    KINDS = (
        (exceptions.ProbableAuthenticationError, Kind.REFUSED),
        (exceptions.ChannelClosedByBroker, Kind.REFUSED),  # it names what was refused
        (exceptions.AMQPError, Kind.CLOSED),
        (OSError, Kind.CLOSED),
    )

    def connect(self) -> None:
        """See :class:`Session`."""
        self._confirms = bool(self.settings["confirms"]) and not self.transacted
        credentials = pika.PlainCredentials(self.settings["username"], self.settings["password"])
        named = {name: self.settings[name] for name in ("virtual_host", "heartbeat")}
        parameters = pika.ConnectionParameters(self.host, self.port, credentials=credentials, **named)
        self._connection = recorded(pika.BlockingConnection(parameters), self.recorder, queue_of=by_key)
        self._channel = self._connection.channel()
        self._channel.basic_qos(prefetch_count=self.settings["prefetch_count"])
        if self.transacted:
            self._channel.tx_select()
        elif self._confirms:
            self._channel.confirm_delivery()
        self._tags: dict[str, str] = {}
        self._called: Called
        self._calls: list[Received] = []

    @property
    def usable(self) -> bool:
        """See :class:`Session`."""
        return bool(self._connection.is_open and self._channel.is_open)

    def consume(self, consumer: Consumer) -> None:
        """Open a consumer, but one without a listener only as it first receives: one for each channel."""
        if consumer.listener:
            self._tags[consumer.name] = self._channel.basic_consume(
                consumer.destination, self._listener, self.automatic
            )
        elif any(not each.listener for each in self.consumers.values()):
            raise self.lacks("a second consumer that receives in one channel")

    def send(self, outgoing: Outgoing) -> str | None:
        """Publish to the queue, or the topic; with confirms as mandatory."""
        if outgoing.later is not None:
            raise self.lacks("asynchronous sends")
        exchange = self.settings["exchange"]
        properties = pika.BasicProperties(message_id=outgoing.message, delivery_mode=1 + outgoing.persistent)
        try:
            self._channel.basic_publish(
                exchange, outgoing.destination, outgoing.body, properties, mandatory=self._confirms
            )
        except exceptions.NackError:
            return "rejected"
        except exceptions.UnroutableError as error:
            raise Failed(Kind.REFUSED, error) from None
        return "confirmed" if self._confirms else "sent"

    def receive(self, consumer: Consumer, timeout: float) -> Received:
        """See :class:`Session`."""
        coming = self._channel.consume(consumer.destination, auto_ack=self.automatic, inactivity_timeout=timeout)
        method, properties, _ = next(coming)
        return Received(None) if method is None else self._received(method, properties)

    def _received(self, method: Any, properties: Any) -> Received:
        count = (properties.headers or {}).get("x-delivery-count")  # of a quorum queue
        received = Received(properties.message_id, bool(method.redelivered), None if count is None else count + 1)
        return self.hold(received, method.delivery_tag)

    def listen(self, consumer: Consumer, timeout: float, called: Called) -> None:
        """See :class:`Session`; what a listener failed with is given back, since pika leaves it with the channel."""
        del consumer
        self._called, self._calls, end = called, [], time.monotonic() + timeout
        while not self._calls and (left := end - time.monotonic()) > 0:
            try:
                self._connection.process_data_events(left)
            except ThrownError:
                self.failed(str(self._calls[-1].message))

    def _listener(self, _: Any, method: Any, properties: Any, __: bytes) -> None:
        self._calls.append(self._received(method, properties))
        self._called(self._calls[-1])

    def acknowledge(self, message: str) -> str:
        """See :class:`Session`; ``multiple`` in the mode of that kind."""
        multiple = self.ack_mode is AckMode.CLIENT_ACKNOWLEDGE
        self._channel.basic_ack(self.held(message), multiple)
        self.settled(message, alone=not multiple)
        return "sent"

    def settle(self, message: str, outcome: str) -> None:
        """Give back by ``basic.nack``, and by ``basic.reject`` what failed, or give up by that."""
        tag = self.held(message)
        if outcome == Outcome.RELEASED:
            self._channel.basic_nack(tag, requeue=True)
        elif outcome in {Outcome.MODIFIED, Outcome.REJECTED}:
            self._channel.basic_reject(tag, requeue=outcome == Outcome.MODIFIED)
        else:
            raise self.lacks(f"the outcome {outcome}")
        self.settled(message)

    def commit(self) -> str:
        """See :class:`Session`."""
        self.acknowledge_all()
        self._channel.tx_commit()
        self._enlisted.clear()
        return "committed"

    def rollback(self) -> None:
        """Roll back; the channel keeps what it was delivered."""
        self._channel.tx_rollback()
        self.rolled_back()

    def recover(self) -> None:
        """See :class:`Session`."""
        self._channel.basic_recover(requeue=True)
        self._held.clear()

    def close_consumer(self, consumer: Consumer) -> None:
        """Cancel it; what it was handed stays with the channel."""
        if consumer.listener:
            self._channel.basic_cancel(self._tags.pop(consumer.name))
        else:
            self._channel.cancel()

    def close(self) -> None:
        """See :class:`Session`."""
        self._connection.close()
