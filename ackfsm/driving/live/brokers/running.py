"""A broker that somebody else has started: its clients make the queues and ask for them, and it is never stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Final, Self
from urllib.parse import unquote, urlsplit

from ackfsm.driving.conform import Depth
from ackfsm.driving.live.brokers.artemis import OfArtemis
from ackfsm.driving.live.brokers.broker import ANSWERS, SUBSCRIPTIONS, Broker
from ackfsm.driving.live.brokers.rabbitmq import DEAD_LETTERS, TOPIC, OfRabbitMq
from ackfsm.terms import HostError, InputError
from ackfsm.text import quoted

_PORTS: Final = {"amqp": 5672, "tcp": 61616}
_QUEUE_TYPE: Final = "x-queue-type"


@dataclasses.dataclass(frozen=True, slots=True)
class Address:
    """Where a broker serves clients, and as whom these connect."""

    host: str
    port: int
    user: str
    password: str
    virtual_host: str

    @classmethod
    def of(cls, url: str) -> Self:
        """Of ``amqp://USER:PASSWORD@HOST:PORT/VIRTUAL_HOST``, or ``tcp://``; raises :class:`InputError` for others."""
        try:
            parts = urlsplit(url)
            port = parts.port or _PORTS.get(parts.scheme)
        except ValueError as error:
            raise InputError(f"--url {quoted(url)}: {error}; say amqp://USER:PASSWORD@HOST:PORT") from None
        if parts.scheme not in _PORTS or not parts.hostname or port is None:
            raise InputError(f"--url {quoted(url)}: say amqp://USER:PASSWORD@HOST:PORT, or tcp:// (TLS is not relayed)")
        return cls(
            parts.hostname,
            port,
            unquote(parts.username or "guest"),
            unquote(parts.password or "guest"),
            unquote(parts.path[1:]) or "/",
        )

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class RunningBroker(Broker):
    """A broker at an address, with queues of a name of our own, which are removed as their runs are over."""

    def __init__(self, address: Address, settings: Mapping[str, str]) -> None:
        super().__init__(settings)
        self.address, self.host = address, address.host
        self.ports = dict.fromkeys(self.PORTS[0].split(), address.port)
        self._token = secrets.token_hex(4)  # another campaign may be under way at the same broker

    def own(self, queue: str) -> str:
        """The name of a queue that is of this campaign alone."""
        return f"ackfsm-{self._token}-{queue}"

    def over(self, queue: str) -> None:
        """Hear that a run is over: its queue is removed."""
        self.remove(queue)

    def _failed(self, error: Exception) -> HostError:
        return HostError(
            f"{self.name} at {self.address} does not do what it is asked: {str(error) or type(error).__name__}"
        )


class RunningRabbitMq(OfRabbitMq, RunningBroker):
    """Asked by AMQP 0-9-1, with pika.

    The server tells a client how many messages wait in a queue and how many consumers it has, and not how many messages
    these hold: each is taken to hold one.  Queues end by themselves when nobody has used them for an hour.
    """

    @property
    def version(self) -> str:
        """The vendor's."""
        with self._channel() as channel:
            return str(channel.connection._impl.server_properties.get("version", b""))  # noqa: SLF001 - pika hides it

    def remove(self, queue: str) -> None:
        """Remove a queue with its messages, and with its dead letters if it has any."""
        with self._channel() as channel:
            channel.queue_delete(queue)
            channel.queue_delete(_dead_letters(queue))

    def dead_letters_of(self, queue: str) -> str | None:
        """One for each queue that was declared with an exchange; the server's policies may send others anywhere."""
        return _dead_letters(queue) if DEAD_LETTERS in self.vendor_settings else None

    def depth(self, queue: str) -> Depth:
        """What waits in a queue, and a message for each consumer."""
        with self._channel() as channel:
            found = channel.queue_declare(queue, passive=True).method
            return Depth(found.message_count, found.consumer_count)

    def _declare(self, queue: str, kind: str) -> None:
        dead_letters = _dead_letters(queue)
        arguments = {
            name: int(word) if word.isdigit() else word for name, word in self.arguments(kind, dead_letters).items()
        }
        with self._channel() as channel:
            if "x-dead-letter-routing-key" in arguments:
                channel.queue_declare(dead_letters, durable=True, arguments={"x-expires": _HOUR})
            # The server may have been told to make other queues of those that say nothing.
            channel.queue_declare(
                queue, durable=True, arguments={_QUEUE_TYPE: "classic", "x-expires": _HOUR, **arguments}
            )
            if kind in SUBSCRIPTIONS:
                channel.queue_bind(queue, TOPIC, queue)

    @contextlib.contextmanager
    def _channel(self) -> Iterator[Any]:
        import pika
        from pika.exceptions import AMQPError

        at = self.address
        parameters = pika.ConnectionParameters(
            at.host,
            at.port,
            at.virtual_host,
            pika.PlainCredentials(at.user, at.password),
            blocked_connection_timeout=ANSWERS,
            socket_timeout=ANSWERS,
        )
        try:
            with contextlib.closing(pika.BlockingConnection(parameters)) as connection:
                yield connection.channel()
        except (AMQPError, OSError) as error:
            raise self._failed(error) from error


_HOUR: Final = 3_600_000
"""Milliseconds."""


def _dead_letters(queue: str) -> str:
    return f"{queue}-dead"


class RunningArtemis(OfArtemis, RunningBroker):
    """Asked by AMQP 1.0, with proton, at the address of its management; the user needs the permission ``manage``."""

    @property
    def version(self) -> str:
        """The vendor's."""
        return str(self._asked("broker", attribute="version"))

    def remove(self, queue: str) -> None:
        """Remove a queue with its messages and its address."""
        self._asked("broker", "destroyQueue", queue, True, True)  # noqa: FBT003 - its consumers and address too

    def depth(self, queue: str) -> Depth:
        """What a queue has now, by the broker's own count."""
        all_, held = (
            int(self._asked(f"queue.{queue}", attribute=f"{each}Count")) for each in ("message", "delivering")
        )
        return Depth(all_ - held, held)

    def _declare(self, queue: str, kind: str) -> None:
        del kind
        told = {"name": queue, "address": queue, "routing-type": "ANYCAST", "durable": True, "auto-delete": False}
        self._asked("broker", "createQueue", json.dumps(told))

    def _asked(self, resource: str, operation: str = "", *arguments: object, attribute: str = "") -> Any:
        """The answer to an operation, or the value of an attribute."""
        from proton import Message, ProtonException
        from proton.utils import BlockingConnection

        at = self.address
        asked = {"_AMQ_OperationName": operation} if operation else {"_AMQ_Attribute": attribute}
        try:
            with contextlib.closing(
                BlockingConnection(
                    f"amqp://{at}", ANSWERS, user=at.user, password=at.password, allowed_mechs="PLAIN ANONYMOUS"
                )
            ) as connection:
                receiver = connection.create_receiver(None, dynamic=True)
                answer_to = receiver.link.remote_source.address
                properties = {"_AMQ_ResourceName": resource, **asked}
                connection.create_sender("activemq.management").send(
                    Message(json.dumps(arguments), reply_to=answer_to, properties=properties)
                )
                answer = receiver.receive(ANSWERS)
                receiver.accept()
        except (ProtonException, OSError) as error:
            raise self._failed(error) from error
        said: Any = answer.properties
        if not said or not said.get("_AMQ_OperationSucceeded"):
            raise HostError(f"{self.name} at {at} does not do {operation or attribute} of {resource}: {answer.body!s}")
        found = json.loads(str(answer.body)) if answer.body else None
        return found[0] if found else None
