"""Record the calls of a ``BlockingConnection`` or a ``MessagingHandler`` of Qpid Proton (AMQP 1.0).

    connection = recorded(BlockingConnection(url), Recorder("night.jsonl", "worker-1"))
    Container(recorded_handler(Worker(), Recorder("night.jsonl", "worker-1"))).run()

Senders, receivers and handlers stay as they are.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ackfsm.history.format import Event
from ackfsm.recorder.channels import new_message_id
from ackfsm.recorder.clients import Wrapped, client, expect
from ackfsm.recorder.lines import RecordingError, error_text
from ackfsm.recorder.proton_events import RecordedHandler, outcome_of, recorded_handler
from ackfsm.recorder.recorder import Recorder
from ackfsm.terms import AckScope, DeliveryMode
from ackfsm.text import quoted

__all__ = [
    "RecordedConnection",
    "RecordedHandler",
    "RecordedReceiver",
    "RecordedSender",
    "recorded",
    "recorded_handler",
]


def recorded(
    connection: Any,
    recorder: Recorder,
    *,
    queue_of: Callable[[str], str] = str,
    redelivered: Callable[[Any], bool] | None = None,
) -> RecordedConnection:
    """``connection``, which is recorded by ``recorder`` as one session.

    Args:
        connection: a ``proton.utils.BlockingConnection``.
        recorder: one for the logical thread that uses the connection.
        queue_of: the name of the queue at an address.
        redelivered: whether the broker flags a message, where it does not count deliveries.  By default a message whose
            ``delivery_count`` is above 0 is flagged, as in JMS.  RabbitMQ does not count, but says who acquires a
            message first: ``lambda message: not message.first_acquirer``.

    Raises:
        RecordingError: ``connection`` is something else.
    """
    kind = client("proton.utils", "python-qpid-proton").BlockingConnection
    expect(connection, kind, "a proton.utils.BlockingConnection")
    return RecordedConnection(connection, recorder, queue_of, redelivered)


class RecordedConnection(Wrapped):
    """A connection whose senders and receivers are recorded, as one session."""

    def __init__(
        self,
        connection: Any,
        recorder: Recorder,
        queue_of: Callable[[str], str],
        redelivered: Callable[[Any], bool] | None,
    ) -> None:
        super().__init__(connection)
        self.recorder, self.queue_of, self.redelivered = recorder, queue_of, redelivered
        self.session = recorder.new_session()
        self._closed = False

    def create_sender(self, address: str, *args: Any, **named: Any) -> RecordedSender:
        """A sender to ``address``."""
        with self.watched():
            made = self._wrapped.create_sender(address, *args, **named)
        return RecordedSender(made, self, self.queue_of(address))

    def create_receiver(self, address: str, *args: Any, **named: Any) -> RecordedReceiver:
        """A receiver from ``address``; without a handler of one's own."""
        with self.watched():
            made = self._wrapped.create_receiver(address, *args, **named)
        return RecordedReceiver(made, self, self.queue_of(address))

    @property
    def closed(self) -> bool:
        """Whether a line says that the session was closed, or broke."""
        return self._closed

    def close(self) -> None:
        """Close the connection, which gives back unsettled messages."""
        self._closing(None)
        self._wrapped.close()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Write a ``close`` if an error has broken connection or link, before the outcomes that it leaves in doubt."""
        library = client("proton", "python-qpid-proton")
        try:
            yield
        except library.Timeout:
            raise
        except (library.ConnectionException, library.LinkException, library.SessionException, OSError) as error:
            self._closing(error)
            raise

    def _closing(self, error: BaseException | None) -> None:
        if not self._closed:
            self._closed = True
            self.recorder.closing(self.session, error=None if error is None else error_text(error))


class RecordedSender(Wrapped):
    """A sender whose messages are recorded; one without an ``id`` gets one."""

    def __init__(self, sender: Any, connection: RecordedConnection, queue: str) -> None:
        super().__init__(sender)
        self._connection, self._queue = connection, queue

    def send(self, msg: Any, *args: Any, **named: Any) -> Any:
        """Send; any outcome but accepted is ``rejected``, also released or modified."""
        library = client("proton", "python-qpid-proton")
        refused = client("proton.utils", "python-qpid-proton").SendException
        msg.id = msg.id or new_message_id()
        link = self._wrapped.link
        sent = self._connection.recorder.send(
            str(msg.id),
            queue=self._queue,
            session=self._connection.session,
            delivery_mode=DeliveryMode.PERSISTENT if msg.durable else DeliveryMode.NON_PERSISTENT,
            answered=link.snd_settle_mode != library.Link.SND_SETTLED,
            rejects=refused,
        )
        with sent as sending, self._connection.watched():
            delivery = self._wrapped.send(msg, *args, **named)
            if not delivery.settled and delivery.remote_state not in (None, library.Delivery.ACCEPTED):
                sending.rejected(str(delivery.remote_state))
        return delivery


@dataclasses.dataclass(slots=True)
class _Received:
    """A message that the application has."""

    message: str
    told: bool = False
    """Whether a line says what became of the work on it."""


class RecordedReceiver(Wrapped):
    """A receiver whose messages are recorded.

    ``processed`` is written when a message is accepted, or when the next one is asked for.
    """

    def __init__(self, receiver: Any, connection: RecordedConnection, queue: str) -> None:
        super().__init__(receiver)
        self._connection, self._queue = connection, queue
        self._unsettled: deque[_Received] = deque()
        self._latest: _Received | None = None

    def receive(self, *args: Any, **named: Any) -> Any:
        """Receive a message."""
        self.processed()
        held = self._wrapped.fetcher.unsettled
        before = len(held)
        with self._connection.watched():
            message = self._wrapped.receive(*args, **named)
        if message.id is None:
            raise RecordingError(
                f"a message of the queue {quoted(self._queue)} has no id, so that nobody can say which one it is; "
                "let its producer set one (wrapped producers do)"
            )
        self._latest = _Received(str(message.id))
        if len(held) > before:
            self._unsettled.append(self._latest)
        flagged = self._connection.redelivered
        self._write(
            Event.DELIVERED,
            self._latest.message,
            redelivered=message.delivery_count > 0 if flagged is None else flagged(message),
            delivery_count=message.delivery_count + 1 if flagged is None else None,
        )
        return message

    def processed(self) -> None:
        """The work on the message received last is done, long before it is accepted or where it is settled already."""
        if self._latest is not None:
            self._tell(self._latest)

    def accept(self) -> None:
        """Accept the oldest message that is not settled; the broker does not answer."""
        self.settle(client("proton", "python-qpid-proton").Delivery.ACCEPTED)

    def reject(self) -> None:
        """Reject it: it goes to the dead letters, or is thrown away."""
        self.settle(client("proton", "python-qpid-proton").Delivery.REJECTED)

    def release(self, delivered: bool = True) -> None:
        """Give it back."""
        states = client("proton", "python-qpid-proton").Delivery
        self.settle(states.MODIFIED if delivered else states.RELEASED)

    def next_is(self, message: str) -> Any:
        """The delivery of the unsettled message with this id, which is from now on the oldest.

        So that can be settled next which was not received first; in its ``local`` stands how it is ``modified``.

        Raises:
            KeyError: no such message is unsettled.
        """
        places = [at for at, each in enumerate(self._unsettled) if each.message == message]
        if not places:
            raise KeyError(message)
        deliveries = self._wrapped.fetcher.unsettled
        for held in (self._unsettled, deliveries):
            held.appendleft(found := held[places[0]])
            del held[places[0] + 1]
        return found

    def settle(self, state: Any = None) -> None:
        """Settle the oldest unsettled message; any outcome but accepted is ``failed``."""
        if not self._unsettled:
            self._wrapped.settle(state)
            return
        states = client("proton", "python-qpid-proton").Delivery
        received, local = self._unsettled.popleft(), self._wrapped.fetcher.unsettled[0].local
        if state != states.ACCEPTED:
            received.told = True
            self._write(Event.FAILED, received.message, outcome=outcome_of(state, local))
            with self._connection.watched():
                self._wrapped.settle(state)
            if state == states.REJECTED:
                self._write(Event.DEAD_LETTERED, received.message)
            return
        self._tell(received)
        acknowledged = self._connection.recorder.acknowledge(
            AckScope.MESSAGE,
            answered=False,
            message=received.message,
            queue=self._queue,
            session=self._connection.session,
        )
        with acknowledged, self._connection.watched():
            self._wrapped.settle(state)

    def _tell(self, received: _Received) -> None:
        if not received.told:
            received.told = True
            self._write(Event.PROCESSED, received.message)

    def _write(self, event: Event, message: str, **fields: object) -> None:
        self._connection.recorder.write(
            event, message=message, queue=self._queue, session=self._connection.session, **fields
        )
