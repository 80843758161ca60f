"""Clients of pika under a broker that is killed: each call is recorded by hand and by the wrapper."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pika
from pika.exceptions import AMQPError

from ackfsm.driving.live.brokers import RabbitMq
from ackfsm.driving.live.processes import until
from ackfsm.recorder import Recorder
from ackfsm.recorder.pika import recorded
from model_tests.support.recorder.reference import Reference

CONFIG: Final[dict[str, Any]] = {
    "profile": "rabbitmq",
    "delivery_mode": "PERSISTENT",
    "ack_mode": "INDIVIDUAL_ACKNOWLEDGE",
    "consumption": "listener",
    "send_mode": "blocking",
    "prefetch": 20,
    "client_ack_scope": "message",
}
_QUEUE: Final = "side-by-side"


class SideBySide:
    """One producer and two consumers, whose history is written twice."""

    def __init__(self, broker: RabbitMq, folder: Path, messages: int) -> None:
        self.by_hand, self.by_wrapper = folder / "by-hand.jsonl", folder / "by-wrapper.jsonl"
        self._broker, self._messages = broker, messages
        self._hand = Reference(self.by_hand, CONFIG)
        self._recorder = Recorder(self.by_wrapper, "nemesis", config=CONFIG)
        self._sent = 0
        self._over, self._up = threading.Event(), threading.Event()
        self._failures: list[BaseException] = []

    def run(self, *, kill_after: int) -> None:
        """Run until all is consumed; the broker is killed when so many messages were sent."""
        self._up.set()
        with self._connection(self._recorder) as connection:
            connection.channel().queue_declare(_QUEUE, durable=True)
        threads = [threading.Thread(target=self._guarded, args=(part,)) for part in (self._produce, *self._consumers())]
        for thread in threads:
            thread.start()
        try:
            until(lambda: self._sent >= kill_after, "messages are sent")
            self._hand("nemesis", "fault", fault="broker_kill")
            self._recorder.fault("broker_kill")
            self._up.clear()
            self._broker.kill()
            self._broker.start()
            self._up.set()
            self._hand("nemesis", "recovered", fault="broker_kill")
            self._recorder.recovered("broker_kill")
            threads[0].join(60)
            until(lambda: self._depth() == 0, "the queue is empty")
            time.sleep(0.5)
        finally:
            self._over.set()
            for thread in threads:
                thread.join(60)
        assert self._failures == []
        assert self._depth() == 0
        self._hand("nemesis", "drained", queue=_QUEUE)
        self._recorder.drained(_QUEUE)
        self._recorder.close()

    def _guarded(self, part: Any) -> None:
        try:
            part()
        except BaseException as error:
            self._failures.append(error)
            raise

    def _connection(self, recorder: Recorder) -> Any:
        parameters = pika.ConnectionParameters("127.0.0.1", self._broker.ports["amqp"], heartbeat=0)
        while True:
            self._up.wait(60)
            with contextlib.suppress(AMQPError, OSError):
                return recorded(pika.BlockingConnection(parameters), recorder)
            time.sleep(0.1)

    def _depth(self) -> int:
        with self._connection(self._recorder) as connection:
            found: int = connection.channel().queue_declare(_QUEUE, passive=True).method.message_count
        return found

    @contextlib.contextmanager
    def _told(self, process: str, session: str) -> Iterator[None]:
        """By hand: the end of a session, and by what."""
        try:
            yield
        except (AMQPError, OSError) as error:
            self._hand(process, "close", session=session, error=type(error).__name__)
        else:
            self._hand(process, "close", session=session)

    def _produce(self) -> None:
        life = 0
        while self._sent < self._messages:
            life += 1
            session = f"producer.{life}"
            with self._told("producer", session), self._connection(self._recorder.as_process("producer")) as connection:
                channel = connection.channel()
                channel.confirm_delivery()
                while self._sent < self._messages:
                    self._publish(channel, session)

    def _publish(self, channel: Any, session: str) -> None:
        message = f"m{self._sent}"
        self._sent += 1
        about = {"queue": _QUEUE, "message": message, "session": session}
        self._hand("producer", "send", **about, delivery_mode="PERSISTENT")
        try:
            channel.basic_publish(
                "", _QUEUE, b"", pika.BasicProperties(message_id=message, delivery_mode=2), mandatory=True
            )
        except BaseException as error:
            self._hand("producer", "in_doubt", **about, error=type(error).__name__)
            raise
        self._hand("producer", "confirmed", **about)

    def _consumers(self) -> Iterator[Any]:
        """One acknowledges each message, the other five at once."""
        for name, batch in (("consumer-1", 1), ("consumer-2", 5)):
            yield lambda name=name, batch=batch: self._consume(name, batch)

    def _consume(self, process: str, batch: int) -> None:
        life = 0
        while not self._over.is_set():
            life += 1
            session = f"{process}.{life}"
            with self._told(process, session), self._connection(self._recorder.as_process(process)) as connection:
                channel = connection.channel()
                channel.basic_qos(prefetch_count=20)
                work = _Work(self._hand, process, session, batch)
                channel.basic_consume(_QUEUE, work)
                while not self._over.is_set():
                    connection.process_data_events(0.1)
                    work.rest(channel)


class _Work:
    """What a consumer does with each message: if it acknowledges them one by one, it gives some back on first sight."""

    def __init__(self, hand: Reference, process: str, session: str, batch: int) -> None:
        self._hand, self._process, self._session, self._batch = hand, process, session, batch
        self._unacknowledged: list[tuple[int, str]] = []

    def __call__(self, channel: Any, method: Any, properties: Any, _: bytes) -> None:
        message = properties.message_id
        about = {"queue": _QUEUE, "message": message, "session": self._session}
        self._hand(self._process, "delivered", **about, redelivered=method.redelivered)
        if self._batch == 1 and not int(message[1:]) % 5 and not method.redelivered:
            self._hand(self._process, "failed", **about)
            channel.basic_nack(method.delivery_tag)
            return
        self._hand(self._process, "processed", **about)
        self._unacknowledged.append((method.delivery_tag, message))
        if len(self._unacknowledged) == self._batch:
            self.rest(channel)

    def rest(self, channel: Any) -> None:
        """Acknowledge what is not acknowledged yet."""
        if not self._unacknowledged:
            return
        tag, message = self._unacknowledged[-1]
        self._unacknowledged.clear()
        multiple = self._batch > 1
        about = {"queue": _QUEUE, "message": message, "session": self._session}
        scope = "up_to" if multiple else "message"
        self._hand(self._process, "acknowledge", **about, scope=scope)
        try:
            channel.basic_ack(tag, multiple)
        except BaseException as error:
            self._hand(self._process, "ack_in_doubt", **about, scope=scope, error=type(error).__name__)
            raise
