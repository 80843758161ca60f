"""The client aio-pika: AMQP 0-9-1 by asyncio."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any, ClassVar

import aio_pika
import aiormq
from aio_pika import exceptions

from ackfsm.driving.live.clients.library import Consumer, Failed, Kind, Outgoing, Received, Session, by_key
from ackfsm.history.format import Outcome
from ackfsm.recorder.aio_pika import RecordedQueue, recorded
from ackfsm.terms import AckMode

__all__ = ["AioPikaSession"]


@dataclasses.dataclass(frozen=True, slots=True)
class _Subscribed:
    """A queue, the tag of its consumer, and what has come and waits for its application."""

    queue: RecordedQueue
    tag: str
    coming: asyncio.Queue[Any]


class AioPikaSession(Session):
    """A channel, whose event loop runs while a command does: in between nothing is read, as with a busy application."""

    library = "aio-pika"
    DEFAULTS: ClassVar = {
        "login": "guest",
        "password": "guest",
        "virtualhost": "/",
        "publisher_confirms": True,
        "prefetch_count": 0,  # no bound
        "exchange": "",  # to which is published
    }
    KINDS = (
        (exceptions.ProbableAuthenticationError, Kind.REFUSED),
        (exceptions.ChannelNotFoundEntity, Kind.REFUSED),
        (exceptions.AMQPException, Kind.CLOSED),
        (OSError, Kind.CLOSED),
    )

    def connect(self) -> None:
        """See :class:`Session`."""
        self._run = asyncio.new_event_loop().run_until_complete
        self._run(self._connect())

    async def _connect(self) -> None:
        named = {name: self.settings[name] for name in ("login", "password", "virtualhost")}
        opened = await aio_pika.connect(host=self.host, port=self.port, heartbeat=0, **named)
        self._connection = recorded(opened, self.recorder, queue_of=by_key)
        self._channel = await self._connection.channel(publisher_confirms=bool(self.settings["publisher_confirms"]))
        await self._channel.set_qos(prefetch_count=self.settings["prefetch_count"])
        name = self.settings["exchange"]
        self._exchange = (
            await self._channel.get_exchange(name, ensure=False) if name else self._channel.default_exchange
        )
        self._subscribed: dict[str, _Subscribed] = {}

    @property
    def usable(self) -> bool:
        """See :class:`Session`."""
        return not (self._connection.is_closed or self._channel.is_closed)

    def consume(self, consumer: Consumer) -> None:
        """Open a consumer."""
        if consumer.listener:
            raise self.lacks("one listener at a time")
        self._run(self._consume(consumer))

    async def _consume(self, consumer: Consumer) -> None:
        queue = await self._channel.get_queue(consumer.destination)
        coming = asyncio.Queue[Any]()
        # A recorded callback would write that the application was handed what waits for it here.
        tag = await queue._wrapped.consume(coming.put, self.automatic)  # noqa: SLF001
        self._subscribed[consumer.name] = _Subscribed(queue, tag, coming)

    def send(self, outgoing: Outgoing) -> str | None:
        """Publish to the queue, or the topic, and wait for the confirm."""
        if outgoing.later is not None:
            raise self.lacks("asynchronous sends in the order of their lines")
        message = aio_pika.Message(
            outgoing.body,
            message_id=outgoing.message,
            delivery_mode=1 + outgoing.persistent,
        )
        try:
            answer = self._run(self._exchange.publish(message, outgoing.destination))
        except exceptions.DeliveryError:
            return "rejected"
        if self._channel.confirms and isinstance(answer, aiormq.abc.DeliveredMessage):
            raise Failed(Kind.REFUSED, f"there is no queue {outgoing.destination}")
        return "confirmed" if self._channel.confirms else "sent"

    def receive(self, consumer: Consumer, timeout: float) -> Received:
        """See :class:`Session`."""
        its = self._subscribed[consumer.name]
        message = self._run(self._next(its, timeout))
        if message is None:
            return Received(None)
        handed = its.queue.received(message, no_ack=self.automatic)
        count = message.headers.get("x-delivery-count")  # of a quorum queue
        received = Received(message.message_id, bool(message.redelivered), None if count is None else count + 1)
        return self.hold(received, handed)

    async def _next(self, its: _Subscribed, seconds: float) -> Any:
        """The next message of a consumer, ``None`` if none comes in time; raises what has closed the channel."""
        waiting = asyncio.ensure_future(its.coming.get())
        closed = asyncio.ensure_future(self._channel.closed())
        await asyncio.wait({waiting, closed}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if waiting.done() and not waiting.cancelled():
            return waiting.result()
        if closed.done():
            raise Failed(Kind.CLOSED, "the channel was closed")
        return None

    def acknowledge(self, message: str) -> str:
        """See :class:`Session`; ``multiple`` in the mode of that kind."""
        multiple = self.ack_mode is AckMode.CLIENT_ACKNOWLEDGE
        self._run(self.held(message).ack(multiple))
        self.settled(message, alone=not multiple)
        return "sent"

    def settle(self, message: str, outcome: str) -> None:
        """Give back by ``nack``, and by ``reject`` what failed, or give up by that."""
        handed = self.held(message)
        if outcome == Outcome.RELEASED:
            self._run(handed.nack(requeue=True))
        elif outcome in {Outcome.MODIFIED, Outcome.REJECTED}:
            self._run(handed.reject(requeue=outcome == Outcome.MODIFIED))
        else:
            raise self.lacks(f"the outcome {outcome}")
        self.settled(message)

    def close(self) -> None:
        """See :class:`Session`."""
        self._run(self._connection.close())
