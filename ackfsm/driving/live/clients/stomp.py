"""The client stomp.py: STOMP 1.2."""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import stomp
from stomp.exception import ConnectFailedException, StompException

from ackfsm.driving.live.clients.library import (
    IN_DOUBT,
    SENT,
    Called,
    Consumer,
    Failed,
    Kind,
    ListenerFailedError,
    Outgoing,
    Place,
    Received,
    Session,
)
from ackfsm.history.format import Event, Outcome
from ackfsm.recorder import Recorder
from ackfsm.recorder.stomp import recorded
from ackfsm.terms import AckMode

__all__ = ["StompSession"]

_ID = "ackfsm-message"
_KINDS = {AckMode.CLIENT_ACKNOWLEDGE: "client", AckMode.NO_ACKNOWLEDGE: "auto", AckMode.PRE_ACKNOWLEDGE: "auto"}
_POLL = 0.05


class StompSession(Session):
    """A connection; each of its sends asks for a receipt."""

    library = "stomp.py"
    DEFAULTS = MappingProxyType(
        {
            "username": "guest",
            "passcode": "guest",
            "vhost": "/",
            "heartbeats": (0, 0),
            "ack_receipts": False,
            "timeout": 60,  # of a receipt
            "queue": "/queue/{}",  # the destination of one
            "topic": "/topic/{}",
            "send": {},  # more headers
            "subscribe": {},
            "nack": {Outcome.RELEASED: {}, Outcome.REJECTED: {"requeue": "false"}},  # by what it does: of RabbitMQ
        }
    )

    def __init__(self, place: Place, recorder: Recorder, ack_mode: AckMode) -> None:
        super().__init__(place, recorder, ack_mode)
        self._names: dict[str, str] = {}
        self._answers = _Answers()
        self._frames: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._waiting: dict[str, list[Any]] = {}
        self._working: Any = None
        self._transaction: str | None = None
        connection = stomp.Connection12(
            [(place.host, place.port)],
            heartbeats=tuple(self.settings["heartbeats"]),
            reconnect_attempts_max=1,
            vhost=self.settings["vhost"],
        )
        self._connection = recorded(connection, recorder, queue_of=self._called_here)
        # Frames come on a thread of the library; the application is handed them as it asks, and recorded then.
        connection.set_listener("frames", _Frames(self._frames, self._answers))
        self._connect()

    def _connect(self) -> None:
        try:
            self._connection.connect(self.settings["username"], self.settings["passcode"], wait=True)
        except ConnectFailedException as error:
            refused = self._answers.error
            raise Failed(Kind.REFUSED if refused else Kind.DOWN, refused or type(error).__name__) from None

    def kind_of(self, error: Exception) -> Kind | None:
        """See :class:`Session`."""
        return Kind.CLOSED if isinstance(error, StompException | OSError) else None

    @property
    def usable(self) -> bool:
        """See :class:`Session`."""
        return bool(self._connection.is_connected())

    def _called_here(self, address: str) -> str:
        return self._names.get(address, address)

    def _destination(self, name: str, *, topic: bool) -> str:
        kind = "topic" if topic else "queue"
        destination = str(self.settings[kind]).format(name)
        self._names[destination] = name
        return destination

    def consume(self, consumer: Consumer) -> None:
        """Subscribe; the broker sends from now on."""
        destination = self._destination(consumer.destination, topic=consumer.topic)
        ack = _KINDS.get(self.ack_mode, "client-individual")
        self._waiting[consumer.name] = []
        headers = dict(self.settings["subscribe"])
        self._connection.subscribe(destination, consumer.name, ack, headers)
        self.consumers[consumer.name] = consumer

    def send(self, outgoing: Outgoing, later: Callable[[str], None] | None) -> str | None:
        """Send, and wait for the receipt, or have it told ``later``."""
        destination = self._destination(outgoing.destination, topic=outgoing.topic)
        headers = {_ID: outgoing.message, **self.settings["send"]}
        if outgoing.persistent:
            headers["persistent"] = "true"
        if outgoing.priority is not None:
            headers["priority"] = str(outgoing.priority)
        if self.transacted:
            self._connection.send(destination, outgoing.body, headers=headers | {"transaction": self._begun()})
            return SENT
        receipt = headers["receipt"] = uuid.uuid4().hex
        if later is not None:
            self._answers.tell(receipt, later)
        self._connection.send(destination, outgoing.body, headers=headers)
        if later is not None:
            return None
        return self._outcome(receipt, "confirmed")

    def _outcome(self, receipt: str, answered: str) -> str:
        told = self._answers.wait(receipt, self.settings["timeout"])
        return answered if told == _ANSWERED else told

    def _begun(self) -> str:
        if self._transaction is None:
            self._transaction = uuid.uuid4().hex
            self._connection.begin(self._transaction)
        return self._transaction

    # Consuming

    def receive(self, consumer: Consumer, timeout: float) -> Received | None:
        """See :class:`Session`."""
        self._worked()
        delivery = self._next(consumer, timeout)
        if delivery is None:
            return None
        self._working, received = delivery
        return received

    def listen(self, consumer: Consumer, timeout: float, called: Called) -> None:
        """Call the listener with the next message; what it throws changes nothing but the record."""
        delivery = self._next(consumer, timeout)
        if delivery is None:
            return
        try:
            called(delivery[1])
        except ListenerFailedError:
            self._connection.tell(delivery[0], Event.FAILED)
        self._connection.tell(delivery[0], Event.PROCESSED)

    def _next(self, consumer: Consumer, timeout: float) -> tuple[Any, Received] | None:
        """The next message of a consumer as the recorder knows it, and as the application does."""
        frame = self._frame(consumer.name, time.monotonic() + timeout)
        if frame is None:
            if not self.usable:
                raise Failed(Kind.CLOSED, self._answers.error or "the connection was lost")
            return None
        transaction = self._begun() if self.transacted else None
        delivery, headers = self._connection.received(frame, transaction), frame.headers
        received = Received(headers[_ID], headers.get("redelivered") == "true")
        return delivery, self.hold(received, (headers.get("ack"), delivery))

    def _frame(self, consumer: str, end: float) -> Any:
        waiting = self._waiting[consumer]
        while not waiting:
            left = end - time.monotonic()
            try:
                frame = self._frames.get(timeout=min(_POLL, left)) if left > 0 else self._frames.get_nowait()
            except queue.Empty:
                if left <= 0 or not self.usable:
                    return None
                continue
            self._waiting[frame.headers["subscription"]].append(frame)
        return waiting.pop(0)

    def _worked(self) -> None:
        """The work on what was received last is done."""
        if self._working is not None:
            self._connection.tell(self._working, Event.PROCESSED)
        self._working = None

    def acknowledge(self, message: str) -> str:
        """See :class:`Session`; with a receipt, if ``ack_receipts``."""
        ack, delivery = self.held(message)
        self._connection.tell(delivery, Event.PROCESSED)
        named: dict[str, str] = {"transaction": self._begun()} if self.transacted else {}
        if self.settings["ack_receipts"] and not self.transacted:
            named["receipt"] = uuid.uuid4().hex
        self._connection.ack(ack, **named)
        self.settled(message, alone=self.ack_mode is not AckMode.CLIENT_ACKNOWLEDGE)
        return self._outcome(named["receipt"], "acknowledged") if "receipt" in named else SENT

    def settle(self, message: str, outcome: str) -> None:
        """NACK, by which each broker does something else."""
        ack, delivery = self.held(message)
        does = self.settings["nack"]
        if outcome not in does:
            raise self.lacks(f"the outcome {outcome}")
        self._connection.nack(ack, **does[outcome])
        if outcome == Outcome.REJECTED:
            self.recorder.dead_lettered(message, queue=delivery.queue)
        self.settled(message)

    def commit(self) -> str:
        """See :class:`Session`."""
        self._worked()
        self.acknowledge_all()
        outcome = "committed"
        if self._transaction is not None:
            transaction, self._transaction, receipt = self._transaction, None, uuid.uuid4().hex
            self._connection.commit(transaction, receipt=receipt)
            outcome = self._outcome(receipt, outcome)
        self.committed()
        return outcome

    def rollback(self) -> None:
        """Abort; whether messages come again is the broker's own."""
        self._worked()
        if self._transaction is not None:
            transaction, self._transaction, receipt = self._transaction, None, uuid.uuid4().hex
            self._connection.abort(transaction, receipt=receipt)
            if self._outcome(receipt, SENT) != SENT:
                raise Failed(Kind.CLOSED, "the connection was lost before the receipt")
        self.rolled_back()

    def close_consumer(self, consumer: Consumer) -> None:
        """Unsubscribe."""
        self._connection.unsubscribe(consumer.name)

    def close(self) -> None:
        """See :class:`Session`."""
        self._worked()
        self._connection.disconnect(receipt=uuid.uuid4().hex)


_ANSWERED = "answered"


class _Answers:
    """Receipts that came, and who waits for them; after the connection broke there are none."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._told: dict[str, str] = {}
        self._later: dict[str, Callable[[str], None]] = {}
        self._over = False
        self.error = ""

    def came(self, receipt: str, answer: str) -> None:
        """A RECEIPT or an ERROR names this receipt."""
        with self._changed:
            later = self._later.pop(receipt, None)
            if later is None:
                self._told[receipt] = answer
            self._changed.notify_all()
        if later is not None:
            later("confirmed" if answer == _ANSWERED else answer)

    def broke(self) -> None:
        """No receipt comes any more."""
        with self._changed:
            self._over, later, self._later = True, self._later, {}
            self._changed.notify_all()
        for each in later.values():
            each(IN_DOUBT)

    def tell(self, receipt: str, later: Callable[[str], None]) -> None:
        """Have ``later`` called with the outcome of a send."""
        with self._changed:
            self._later[receipt] = later

    def wait(self, receipt: str, timeout: float) -> str:
        """The answer, in doubt if there is none."""
        with self._changed:
            self._changed.wait_for(lambda: receipt in self._told or self._over, timeout)
            return self._told.pop(receipt, IN_DOUBT)


class _Frames(stomp.ConnectionListener):  # type: ignore[misc]
    """What the broker sends, after the recorder heard of it: listeners are called in the order of their names."""

    def __init__(self, frames: queue.SimpleQueue[Any], answers: _Answers) -> None:
        self._frames, self._answers = frames, answers

    def on_message(self, frame: Any) -> None:
        self._frames.put(frame)

    def on_receipt(self, frame: Any) -> None:
        self._answers.came(frame.headers["receipt-id"], _ANSWERED)

    def on_error(self, frame: Any) -> None:
        self._answers.error = str(frame.headers.get("message", frame.body))
        if "receipt-id" in frame.headers:
            self._answers.came(frame.headers["receipt-id"], "rejected")

    def on_disconnected(self) -> None:
        self._answers.broke()
