"""Small runs of clients, recorded by hand and by the wrapper: thirty messages, of which some are given back once."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import aio_pika
import proton
import stomp
from proton.handlers import MessagingHandler
from proton.reactor import Container
from proton.utils import BlockingConnection

from ackfsm.driving.live.brokers import RabbitMq
from ackfsm.driving.live.processes import until
from ackfsm.recorder import Recorder
from ackfsm.recorder import aio_pika as recorded_aio_pika
from ackfsm.recorder import proton as recorded_proton
from ackfsm.recorder import stomp as recorded_stomp

Hand: TypeAlias = Callable[..., None]
MESSAGES: Final = 30
_PATIENCE: Final = 20


def given_back(message: str) -> bool:
    """Whether the consumer gives it back on first sight."""
    return int(message[1:]) % 5 == 0


async def aio_pika_run(broker: RabbitMq, name: str, hand: Hand, recorder: Recorder) -> None:
    """Publish with confirms; consume by an iterator, and the rest by a callback."""
    connection = recorded_aio_pika.recorded(
        await aio_pika.connect(f"amqp://127.0.0.1:{broker.ports['amqp']}"), recorder
    )
    async with connection, connection.channel() as channel:
        declared = await channel.declare_queue(name, durable=True)
        for number in range(MESSAGES):
            about = {"queue": name, "message": f"m{number}"}
            hand("client", "send", **about, delivery_mode="PERSISTENT")
            sent = aio_pika.Message(b"", message_id=f"m{number}", delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
            await channel.default_exchange.publish(sent, name)
            hand("client", "confirmed", **about)
        left = MESSAGES
        async with declared.iterator() as messages:
            async for message in messages:
                left -= await _handled(message, name, hand)
                if not left:
                    break


async def _handled(message: Any, name: str, hand: Hand) -> int:
    about = {"queue": name, "message": message.message_id}
    hand("client", "delivered", **about, redelivered=message.redelivered)
    if given_back(message.message_id) and not message.redelivered:
        hand("client", "failed", **about)
        await message.reject(requeue=True)
        return 0
    hand("client", "processed", **about)
    hand("client", "acknowledge", **about, scope="message")
    await message.ack()
    return 1


def proton_run(broker: RabbitMq, name: str, hand: Hand, recorder: Recorder) -> None:
    """Send and receive over AMQP 1.0, each call blocking."""
    connection = recorded_proton.recorded(
        BlockingConnection(
            f"amqp://guest:guest@127.0.0.1:{broker.ports['amqp']}", timeout=_PATIENCE, allowed_mechs="PLAIN"
        ),
        recorder,
        queue_of=lambda address: address.removeprefix("/amq/queue/"),
        redelivered=lambda message: not message.first_acquirer,
    )
    sender = connection.create_sender(f"/amq/queue/{name}")
    for number in range(MESSAGES):
        about = {"queue": name, "message": f"m{number}"}
        hand("client", "send", **about, delivery_mode="PERSISTENT")
        sender.send(proton.Message(id=f"m{number}", body="", durable=True))
        hand("client", "confirmed", **about)
    receiver = connection.create_receiver(f"/amq/queue/{name}", credit=1)
    left = MESSAGES
    while left:
        message = receiver.receive()
        about = {"queue": name, "message": message.id}
        hand("client", "delivered", **about, redelivered=not message.first_acquirer)
        if given_back(message.id) and message.first_acquirer:
            hand("client", "failed", **about)
            receiver.release(delivered=False)
            continue
        left -= 1
        hand("client", "processed", **about)
        hand("client", "acknowledge", **about, scope="message")
        receiver.accept()
    connection.close()


class _Worker(MessagingHandler):
    """Sends by events, and then works on what it has sent."""

    def __init__(self, broker: RabbitMq, name: str, hand: Hand) -> None:
        super().__init__(prefetch=0, auto_accept=False)
        self._url, self._name, self._hand = f"amqp://guest:guest@127.0.0.1:{broker.ports['amqp']}", name, hand
        self._sent = self._confirmed = 0
        self._left = MESSAGES

    def on_start(self, event: Any) -> None:
        self._connection = event.container.connect(self._url, allowed_mechs="PLAIN", reconnect=False)
        event.container.create_sender(self._connection, f"/amq/queue/{self._name}")

    def on_sendable(self, event: Any) -> None:
        while event.sender.credit and self._sent < MESSAGES:
            message = f"m{self._sent}"
            self._hand("client", "send", queue=self._name, message=message, delivery_mode="PERSISTENT")
            event.sender.send(proton.Message(id=message, body="", durable=True), tag=message)
            self._sent += 1

    def on_accepted(self, event: Any) -> None:
        self._hand("client", "confirmed", queue=self._name, message=event.delivery.tag)
        self._confirmed += 1
        if self._confirmed == MESSAGES:
            event.container.create_receiver(self._connection, f"/amq/queue/{self._name}").flow(1)

    def on_message(self, event: Any) -> None:
        event.receiver.flow(1)
        message, first = event.message.id, event.message.first_acquirer
        about = {"queue": self._name, "message": message}
        self._hand("client", "delivered", **about, redelivered=not first)
        if given_back(message) and first:
            self._hand("client", "failed", **about)
            self.release(event.delivery, delivered=False)
            return
        self._left -= 1
        self._hand("client", "acknowledge", **about, scope="message")
        self.accept(event.delivery)
        self._hand("client", "processed", **about)
        if not self._left:
            event.connection.close()


def proton_handler_run(broker: RabbitMq, name: str, hand: Hand, recorder: Recorder) -> None:
    """Send and receive over AMQP 1.0 by events."""
    run_recorded(_Worker(broker, name, hand), recorder)


def run_recorded(handler: MessagingHandler, recorder: Recorder) -> None:
    """Run a handler whose broker is RabbitMQ, to its end."""
    recorded = recorded_proton.recorded_handler(
        handler,
        recorder,
        queue_of=lambda address: address.removeprefix("/amq/queue/"),
        redelivered=lambda message: not message.first_acquirer,
    )
    Container(recorded).run()


class _Listener(stomp.ConnectionListener):  # type: ignore[misc]
    """What the application does with each message."""

    def __init__(self, connection: Any, name: str, hand: Hand) -> None:
        self._connection, self._name, self._hand = connection, name, hand
        self.left = MESSAGES

    def on_message(self, frame: Any) -> None:
        message, again = frame.headers["order"], frame.headers.get("redelivered") == "true"
        about = {"queue": self._name, "message": message}
        self._hand("client", "delivered", **about, redelivered=again)
        if given_back(message) and not again:
            self._hand("client", "failed", **about)
            self._connection.nack(frame.headers["ack"])
            return
        self._hand("client", "processed", **about)
        self._hand("client", "acknowledge", **about, scope="message")
        self._connection.ack(frame.headers["ack"])
        self.left -= 1


class _Receipts(stomp.ConnectionListener):  # type: ignore[misc]
    """By hand: the receipts as they come."""

    def __init__(self, name: str, hand: Hand) -> None:
        self._name, self._hand = name, hand
        self.came: queue.Queue[str] = queue.Queue()

    def on_receipt(self, frame: Any) -> None:
        receipt = frame.headers["receipt-id"]
        if receipt.startswith("m"):
            self._hand("client", "confirmed", queue=self._name, message=receipt)
            self.came.put(receipt)


def stomp_run(broker: RabbitMq, name: str, hand: Hand, recorder: Recorder) -> None:
    """Send with receipts; a listener acknowledges one by one."""
    connection = recorded_stomp.recorded(
        stomp.Connection12([("127.0.0.1", broker.ports["stomp"])], vhost="/"), recorder, id_header="order"
    )
    receipts, listener = _Receipts(name, hand), _Listener(connection, name, hand)
    connection.set_listener("receipts", receipts)
    connection.set_listener("work", listener)
    connection.connect("guest", "guest", wait=True)
    for number in range(MESSAGES):
        hand("client", "send", queue=name, message=f"m{number}", delivery_mode="PERSISTENT")
        connection.send(f"/queue/{name}", "", persistent="true", order=f"m{number}", receipt=f"m{number}")
        receipts.came.get(timeout=_PATIENCE)
    connection.subscribe(f"/queue/{name}", "1", ack="client-individual", headers={"prefetch-count": "1"})
    until(lambda: not listener.left, "all is acknowledged", _PATIENCE)
    connection.disconnect(receipt="bye")
