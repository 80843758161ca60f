"""Record the calls of a connection of stomp.py.

    connection = recorded(stomp.Connection12([(host, port)]), Recorder("night.jsonl", "worker-1"))

Everything else stays as it is; wrap the connection before it connects and before listeners are set.  Each time it
connects its session has a new name.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final, TypeAlias

from ackfsm.history.format import Event
from ackfsm.recorder.channels import new_message_id
from ackfsm.recorder.clients import Wrapped, client, expect
from ackfsm.recorder.lines import RecordingError, error_text
from ackfsm.recorder.recorder import Recorder
from ackfsm.terms import AckScope, DeliveryMode
from ackfsm.text import quoted

__all__ = ["RecordedConnection", "queue_at", "recorded"]

_NAME: Final = "ackfsm"
_INDIVIDUAL: Final = "client-individual"
_LONGEST: Final = 500
_Answer: TypeAlias = tuple[Event, dict[str, Any]]
"""The line that a receipt will bring."""

_DOUBTS: Final = {
    Event.CONFIRMED: Event.IN_DOUBT,
    Event.COMMITTED: Event.COMMIT_IN_DOUBT,
    Event.ACKNOWLEDGED: Event.ACK_IN_DOUBT,
}


def queue_at(destination: str) -> str:
    """The name of the queue at a destination: ``/queue/orders`` is ``orders``."""
    return destination.removeprefix("/queue/")


def recorded(
    connection: Any,
    recorder: Recorder,
    *,
    id_header: str = "ackfsm-message",
    queue_of: Callable[[str], str] = queue_at,
) -> RecordedConnection:
    """``connection``, which is recorded by ``recorder``.

    Args:
        connection: a ``stomp.Connection`` of version 1.0, 1.1 or 1.2.
        recorder: one for the program.
        id_header: the header that has the message's own id; a message without it gets it.
        queue_of: the name of the queue at a destination.

    Raises:
        RecordingError: ``connection`` is something else.
    """
    kind = client("stomp.connect", "stomp.py").BaseConnection
    expect(connection, kind, "a stomp.Connection")
    return RecordedConnection(connection, recorder, id_header, queue_of)


@dataclasses.dataclass(frozen=True, slots=True)
class _Delivery:
    """A message that the application has, by the id that acknowledges it."""

    message: str
    queue: str
    subscription: str
    told: list[Event]
    """What became of the work on it: nothing yet, or one event."""
    transaction: str | None = None


class RecordedConnection(Wrapped):
    """A connection that writes its calls.

    Each send and each commit asks for a receipt, if the application does not: the receipt is its outcome.
    """

    def __init__(self, connection: Any, recorder: Recorder, id_header: str, queue_of: Callable[[str], str]) -> None:
        super().__init__(connection)
        self._recorder, self._id_header, self._queue_of = recorder, id_header, queue_of
        self._lock = threading.Lock()
        self._session, self._closed = "", True
        self._awaited: dict[str, list[_Answer]] = {}
        self._given_back = False
        self._latest: Any = None
        self._subscriptions: dict[str, tuple[str, str]] = {}
        self._delivered: dict[str, _Delivery] = {}
        connection.set_listener(_NAME, self._listener())

    def _listener(self) -> Any:
        told = self

        class Listener(client("stomp", "stomp.py").ConnectionListener):  # type: ignore[misc]
            """The answers of the broker."""

            def on_receipt(self, frame: Any) -> None:
                told.answered(frame.headers.get("receipt-id"))

            def on_error(self, frame: Any) -> None:
                told.refused(frame.headers.get("receipt-id"), str(frame.headers.get("message", frame.body)))

            def on_disconnected(self) -> None:
                told.broken("the connection was lost")

        return Listener()

    def connect(self, *args: Any, **named: Any) -> None:
        """Connect; this begins a session."""
        self._session, self._closed, self._given_back = self._recorder.new_session(), False, False
        self._delivered.clear()
        self._subscriptions.clear()
        self._wrapped.connect(*args, **named)

    def disconnect(self, *args: Any, **named: Any) -> None:
        """Disconnect, which gives back unacknowledged messages."""
        if not self._closed:
            self._closed = True
            self._recorder.closing(self._session)
        self._wrapped.disconnect(*args, **named)

    def set_listener(self, name: str, listener: Any) -> None:
        """Have a listener called; its ``on_message`` is recorded, of several listeners that of the first by name."""
        nothing = client("stomp", "stomp.py").ConnectionListener.on_message
        handles = getattr(type(listener), "on_message", nothing) is not nothing
        self._wrapped.set_listener(name, _RecordedListener(listener, self) if handles else listener)

    def send(
        self, destination: str, body: Any, content_type: str | None = None, headers: Any = None, **more: Any
    ) -> None:
        """Send; ``confirmed`` is written when the receipt comes."""
        headers = {**(headers or {}), **more}
        message = headers.setdefault(self._id_header, new_message_id())
        transaction = headers.get("transaction")
        fields = {"message": message, "queue": self._queue_of(destination), "session": self._session}
        receipt = None
        if transaction is None:
            receipt = headers.setdefault("receipt", new_message_id())
            self._await(receipt, Event.CONFIRMED, fields)
        sent = self._recorder.send(
            message,
            queue=fields["queue"],
            session=self._session,
            delivery_mode=DeliveryMode.PERSISTENT
            if headers.get("persistent") == "true"
            else DeliveryMode.NON_PERSISTENT,
            transaction=transaction,
            answered=False,
        )
        with sent:
            self._call(receipt, self._wrapped.send, destination, body, content_type, headers)

    def subscribe(self, destination: str, id: str, ack: str = "auto", headers: Any = None, **more: Any) -> None:  # noqa: A002 - as in stomp.py
        """Subscribe: ``client`` acknowledges up to a message, ``client-individual`` one message."""
        self._subscriptions[str(id)] = (self._queue_of(destination), ack)
        self._wrapped.subscribe(destination, id, ack, headers, **more)

    def ack(self, id: str, *args: Any, **named: Any) -> None:  # noqa: A002 - as in stomp.py
        """Acknowledge; ``acknowledged`` is written when the receipt comes, if one is asked for."""
        covered = self._covered(str(id))
        told = self._scopes(covered)
        receipt = named.get("receipt")
        with ExitStack() as stack:
            for scope, delivery in told:
                about: dict[str, Any] = {"message": delivery.message, "queue": delivery.queue, "session": self._session}
                about["transaction"] = named.get("transaction")
                if receipt is not None:
                    self._await(receipt, Event.ACKNOWLEDGED, {"scope": scope, **about})
                stack.enter_context(self._recorder.acknowledge(scope, answered=False, **about))
            self._call(receipt, self._wrapped.ack, id, *args, **named)

    def nack(self, id: str, *args: Any, **named: Any) -> None:  # noqa: A002 - as in stomp.py
        """Refuse a message: what becomes of it is the broker's own."""
        with self._lock:
            delivery = self._delivered.pop(str(id), None)
        if delivery is not None:
            self._given_back = True
            if Event.FAILED not in delivery.told:
                delivery.told.clear()  # that its work is done may be told, but not that it is given back all the same
                self.tell(delivery, Event.FAILED)
        self._call(None, self._wrapped.nack, id, *args, **named)

    def begin(self, transaction: str | None = None, *args: Any, **named: Any) -> Any:
        """Begin a transaction."""
        transaction = transaction or new_message_id()
        self._recorder.begin(transaction, session=self._session)
        return self._wrapped.begin(transaction, *args, **named)

    def commit(self, transaction: str, headers: Any = None, **more: Any) -> None:
        """Commit; ``committed`` is written when the receipt comes."""
        self._end(Event.COMMIT, Event.COMMITTED, transaction, {**(headers or {}), **more})

    def abort(self, transaction: str, headers: Any = None, **more: Any) -> None:
        """Roll back; ``rolled_back`` is written when the receipt comes."""
        self._end(Event.ROLLBACK, Event.ROLLED_BACK, transaction, {**(headers or {}), **more})

    def _end(self, call: Event, answer: Event, transaction: str, headers: dict[str, Any]) -> None:
        fields = {"transaction": transaction, "session": self._session}
        receipt = headers.setdefault("receipt", new_message_id())
        self._recorder.write(call, **fields)
        self._await(receipt, answer, fields)
        end = self._wrapped.commit if call is Event.COMMIT else self._wrapped.abort
        try:
            end(transaction, headers)
        except BaseException as error:
            self.broken(error_text(error))
            raise

    # What the broker says

    def answered(self, receipt: str | None) -> None:
        """A receipt came."""
        for event, fields in self._forget(receipt):
            self._recorder.write(event, **fields)

    def refused(self, receipt: str | None, error: str) -> None:
        """An ERROR frame came."""
        for event, fields in self._forget(receipt):
            if event is Event.CONFIRMED:
                self._recorder.rejected(**fields, error=error[:_LONGEST])
            else:
                self._doubt((event, fields), error[:_LONGEST])

    def broken(self, error: str) -> None:
        """The connection is gone: unanswered calls are in doubt."""
        with self._lock:
            awaited, self._awaited = [each for all_of in self._awaited.values() for each in all_of], {}
            closed, self._closed = self._closed, True
        if not closed:
            self._recorder.closing(self._session, error=error)
        for each in awaited:
            self._doubt(each, error)

    def _doubt(self, awaited: _Answer, error: str) -> None:
        event, fields = awaited
        if event is Event.CONFIRMED:
            self._recorder.in_doubt(**fields, error=error)
        elif event in _DOUBTS:
            self._recorder.write(_DOUBTS[event], **fields, error=error)

    def _call(self, receipt: str | None, call: Callable[..., Any], /, *args: Any, **named: Any) -> None:
        """Call the client; if that fails, the receipt is not waited for."""
        try:
            call(*args, **named)
        except BaseException as error:
            self._forget(receipt)
            if not self._wrapped.is_connected():
                self.broken(error_text(error))
            raise

    def _await(self, receipt: str, event: Event, fields: dict[str, Any]) -> None:
        with self._lock:
            self._awaited.setdefault(receipt, []).append((event, fields))

    def _forget(self, receipt: str | None) -> list[_Answer]:
        with self._lock:
            return [] if receipt is None else self._awaited.pop(receipt, [])

    # Messages

    def received(self, frame: Any, transaction: str | None = None) -> _Delivery | None:
        """Write that the application is handed a message; ``None`` for one that another listener was handed.

        ``transaction`` is the open one in which it is going to be acknowledged, where that is known.
        """
        if frame is self._latest:
            return None
        self._latest = frame
        headers = frame.headers
        subscription = str(headers.get("subscription"))
        queue, mode = self._subscriptions.get(subscription, (self._queue_of(headers.get("destination", "")), "auto"))
        message = headers.get(self._id_header)
        if message is None:
            raise RecordingError(
                f"a message of the queue {quoted(queue)} has no header {self._id_header}, so that nobody can say which "
                "one it is; let its producer set one (wrapped producers do), or name another header (id_header)"
            )
        self._recorder.write(
            Event.DELIVERED,
            message=message,
            queue=queue,
            session=self._session,
            redelivered=headers.get("redelivered") == "true",
            transaction=transaction,
        )
        delivery = _Delivery(message, queue, subscription, [], transaction)
        if mode != "auto":
            with self._lock:
                self._delivered[str(headers.get("ack", headers.get("message-id")))] = delivery
        return delivery

    def tell(self, delivery: _Delivery, event: Event, error: str | None = None) -> None:
        """Write what became of the work on a message, once."""
        if not delivery.told:
            delivery.told.append(event)
            self._recorder.write(
                event,
                message=delivery.message,
                queue=delivery.queue,
                session=self._session,
                transaction=delivery.transaction,
                error=error,
            )

    def _covered(self, last: str) -> list[_Delivery]:
        """What an acknowledgement covers, which is forgotten: one message, or all of its subscription up to it."""
        with self._lock:
            delivery = self._delivered.get(last)
            if delivery is None:
                return []
            keys = [last]
            if self._subscriptions[delivery.subscription][1] != _INDIVIDUAL:
                before = list(self._delivered)
                up_to = before[: before.index(last) + 1]
                keys = [key for key in up_to if self._delivered[key].subscription == delivery.subscription]
            return [self._delivered.pop(key) for key in keys]

    def _scopes(self, covered: list[_Delivery]) -> list[tuple[AckScope, _Delivery]]:
        """Return the scope of each delivery: a range covers the whole session, without gaps."""
        cumulative = covered and self._subscriptions[covered[-1].subscription][1] != _INDIVIDUAL
        if cumulative and not self._given_back and len(self._subscriptions) == 1:
            return [(AckScope.UP_TO, covered[-1])]
        return [(AckScope.MESSAGE, each) for each in covered]


class _RecordedListener(Wrapped):
    """A listener of the application; the work on a message is done when ``on_message`` returns."""

    def __init__(self, listener: Any, connection: RecordedConnection) -> None:
        super().__init__(listener)
        self._connection = connection

    def on_message(self, frame: Any) -> Any:
        """Write ``delivered``, and ``processed`` or ``failed``."""
        delivery = self._connection.received(frame)
        if delivery is None:
            return self._wrapped.on_message(frame)
        try:
            result = self._wrapped.on_message(frame)
        except BaseException as error:
            self._connection.tell(delivery, Event.FAILED, error_text(error))
            raise
        self._connection.tell(delivery, Event.PROCESSED)
        return result
