"""The client stomp.py: STOMP 1.2."""

from __future__ import annotations

import contextlib
import queue
import threading
import uuid
from collections.abc import Callable
from typing import Any, ClassVar

import stomp
from stomp.exception import ConnectFailedException, StompException

from ackfsm.driving.live.clients.library import Called, Consumer, Failed, Kind, Outgoing, Received, Session, ThrownError
from ackfsm.history.format import Event, Outcome
from ackfsm.recorder.stomp import recorded
from ackfsm.terms import AckMode

__all__ = ["StompSession"]

_ID, _IN_DOUBT = "ackfsm-message", "in_doubt"


class StompSession(Session):
    """A connection; each of its sends asks for a receipt."""

    library = "stomp.py"
    DEFAULTS: ClassVar = {
        "username": "guest",
        "passcode": "guest",
        "vhost": "/",
        "heartbeats": (0, 0),
        "ack_receipts": False,
        "timeout": 60,  # of a receipt
        "queue": "/queue/{}",  # the destination of one
        "to": None,  # the destination to which is sent, unless it is the queue
        "send": {},  # more headers
        "subscribe": {},
        "nack": {Outcome.RELEASED: {}, Outcome.REJECTED: {"requeue": "false"}},  # by what it does: of RabbitMQ
    }
    KINDS = ((StompException, Kind.CLOSED), (OSError, Kind.CLOSED))

    def connect(self) -> None:
        """See :class:`Session`."""
        self._names: dict[str, str] = {}
        self._heard = _Heard()
        self._working: Any = None
        self._transaction: str | None = None
        named = {"heartbeats": tuple(self.settings["heartbeats"]), "vhost": self.settings["vhost"]}
        connection = stomp.Connection12([(self.host, self.port)], reconnect_attempts_max=1, **named)
        self._connection = recorded(connection, self.recorder, queue_of=lambda at: self._names.get(at, at))
        # Frames come on a thread of the library; the application is handed them as it asks, and recorded then.
        connection.set_listener("heard", self._heard)
        try:
            self._connection.connect(self.settings["username"], self.settings["passcode"], wait=True)
        except ConnectFailedException:
            if not self._heard.error:
                raise
            raise Failed(Kind.REFUSED, self._heard.error) from None

    @property
    def usable(self) -> bool:
        """See :class:`Session`."""
        return bool(self._connection.is_connected())

    def _destination(self, name: str, setting: str = "queue") -> str:
        destination = str(self.settings[setting] or self.settings["queue"]).format(name)
        self._names[destination] = name
        return destination

    def consume(self, consumer: Consumer) -> None:
        """Subscribe, and wait for the receipt; the broker sends from now on."""
        destination = self._destination(consumer.destination)
        manual = "client" if self.ack_mode is AckMode.CLIENT_ACKNOWLEDGE else "client-individual"
        self._heard.frames[consumer.name] = queue.SimpleQueue()
        receipt, answers = self._heard.expected("subscribed")
        headers = {**self.settings["subscribe"], "receipt": receipt}
        self._connection.subscribe(destination, consumer.name, "auto" if self.automatic else manual, headers)
        if self._outcome(answers) != "subscribed":
            raise Failed(Kind.REFUSED, self._heard.error or "no receipt came")

    def send(self, outgoing: Outgoing) -> str | None:
        """Send, and wait for the receipt, or have it told later."""
        headers = {_ID: outgoing.message, **self.settings["send"]}
        headers |= {"persistent": "true"} if outgoing.persistent else {}
        destination = self._destination(outgoing.destination, "to")
        if self.transacted:
            self._connection.send(destination, outgoing.body, headers={**headers, "transaction": self._begun()})
            return "sent"
        receipt, answers = self._heard.expected("confirmed", outgoing.later)
        self._connection.send(destination, outgoing.body, headers={**headers, "receipt": receipt})
        return None if outgoing.later is not None else self._outcome(answers)

    def _outcome(self, answers: queue.SimpleQueue[str]) -> str:
        with contextlib.suppress(queue.Empty):
            return answers.get(timeout=self.settings["timeout"])
        return _IN_DOUBT

    def _begun(self) -> str:
        if self._transaction is None:
            self._transaction = uuid.uuid4().hex
            self._connection.begin(self._transaction)
        return self._transaction

    def receive(self, consumer: Consumer, timeout: float) -> Received:
        """See :class:`Session`."""
        self._worked()
        self._working, received = self._next(consumer, timeout)
        return received

    def listen(self, consumer: Consumer, timeout: float, called: Called) -> None:
        """Call the listener with the next message; what it throws changes nothing but the record."""
        delivery, received = self._next(consumer, timeout)
        if delivery is None:
            return
        try:
            called(received)
        except ThrownError:
            self._connection.tell(delivery, Event.FAILED)
        self._connection.tell(delivery, Event.PROCESSED)

    def _next(self, consumer: Consumer, timeout: float) -> tuple[Any, Received]:
        """The next message of a consumer as the recorder knows it, and as the application does."""
        try:
            frame = self._heard.frames[consumer.name].get(timeout=timeout)
        except queue.Empty:
            return None, Received(None)
        if frame is None:
            raise Failed(Kind.CLOSED, self._heard.error or "the connection was lost")
        delivery = self._connection.received(frame, self._begun() if self.transacted else None)
        received = Received(frame.headers[_ID], frame.headers.get("redelivered") == "true")
        return delivery, self.hold(received, (frame.headers.get("ack"), delivery))

    def _worked(self) -> None:
        """The work on what was received last is done."""
        if self._working is not None:
            self._connection.tell(self._working, Event.PROCESSED)
        self._working = None

    def acknowledge(self, message: str) -> str:
        """See :class:`Session`; with a receipt, if ``ack_receipts``."""
        ack, delivery = self.held(message)
        self._connection.tell(delivery, Event.PROCESSED)
        transaction = self._begun() if self.transacted else None
        receipt, answers = None, None
        if self.settings["ack_receipts"] and not self.transacted:
            receipt, answers = self._heard.expected("acknowledged")
        self._connection.ack(ack, transaction=transaction, receipt=receipt)
        self.settled(message, alone=self.ack_mode is not AckMode.CLIENT_ACKNOWLEDGE)
        return "sent" if answers is None else self._outcome(answers)

    def settle(self, message: str, outcome: str) -> None:
        """NACK, by which each broker does something else."""
        ack, delivery = self.held(message)
        if outcome not in self.settings["nack"]:
            raise self.lacks(f"the outcome {outcome}")
        transaction = self._begun() if self.transacted else None
        self._connection.nack(ack, transaction=transaction, **self.settings["nack"][outcome])
        if outcome == Outcome.REJECTED:
            self.recorder.dead_lettered(message, queue=delivery.queue)
        self.settled(message)

    def commit(self) -> str:
        """See :class:`Session`."""
        self._worked()
        self.acknowledge_all()
        outcome = self._ended(self._connection.commit, "committed")
        self._enlisted.clear()
        return outcome

    def rollback(self) -> None:
        """Abort; whether messages come again is the broker's own."""
        self._worked()
        if self._ended(self._connection.abort, "rolled_back") == _IN_DOUBT:
            raise Failed(Kind.CLOSED, "the connection was lost before the receipt")
        self.rolled_back()

    def _ended(self, end: Callable[..., None], answered: str) -> str:
        """End the transaction, if there is one, and wait for the receipt."""
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            return answered
        receipt, answers = self._heard.expected(answered)
        end(transaction, receipt=receipt)
        return self._outcome(answers)

    def close_consumer(self, consumer: Consumer) -> None:
        """Unsubscribe."""
        self._connection.unsubscribe(consumer.name)

    def close(self) -> None:
        """See :class:`Session`."""
        self._worked()
        self._connection.disconnect(receipt=uuid.uuid4().hex)


class _Heard(stomp.ConnectionListener):  # type: ignore[misc]
    """What the broker says, after the recorder heard it: listeners are called in the order of their names."""

    def __init__(self) -> None:
        self.frames: dict[str, queue.SimpleQueue[Any]] = {}
        """By subscription; ``None`` at the end of the connection."""
        self.error = ""
        self._lock = threading.Lock()
        self._expected: dict[str, tuple[str, Callable[[str], None]]] = {}

    def expected(self, answered: str, tell: Callable[[str], None] | None = None) -> tuple[str, queue.SimpleQueue[str]]:
        """A new receipt, and where its outcome will be, if nobody else is to be told: ``answered``, or another one."""
        receipt, answers = uuid.uuid4().hex, queue.SimpleQueue[str]()
        with self._lock:
            self._expected[receipt] = answered, tell or answers.put
        return receipt, answers

    def _came(self, receipt: str, outcome: str | None) -> None:
        with self._lock:
            answered, tell = self._expected.pop(receipt, ("", None))
        if tell is not None:
            tell(outcome or answered)

    def on_message(self, frame: Any) -> None:
        self.frames[frame.headers["subscription"]].put(frame)

    def on_receipt(self, frame: Any) -> None:
        self._came(frame.headers["receipt-id"], None)

    def on_error(self, frame: Any) -> None:
        self.error = str(frame.headers.get("message", frame.body))
        self._came(frame.headers.get("receipt-id", ""), "rejected")

    def on_disconnected(self) -> None:
        for receipt in list(self._expected):
            self._came(receipt, _IN_DOUBT)
        for frames in self.frames.values():
            frames.put(None)
