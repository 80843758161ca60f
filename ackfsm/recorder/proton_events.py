"""The events of a ``MessagingHandler`` of Qpid Proton as lines of a history: one session for each connection."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from ackfsm.history.format import Outcome
from ackfsm.recorder.channels import ChannelBook, new_message_id
from ackfsm.recorder.clients import Wrapped, client, expect
from ackfsm.recorder.lines import RecordingError
from ackfsm.recorder.recorder import Recorder


def recorded_handler(
    handler: Any,
    recorder: Recorder,
    *,
    queue_of: Callable[[str], str] = str,
    redelivered: Callable[[Any], bool] | None = None,
) -> RecordedHandler:
    """``handler``, for a container: ``Container(recorded_handler(Worker(), recorder)).run()``.

    What its callbacks do by their events is recorded (``event.sender.send(...)``, ``event.container.create_sender()``,
    ``self.accept(event.delivery)``), and what the handler accepts by itself.

    Args:
        handler: a ``proton.handlers.MessagingHandler``.
        recorder: one for the thread that runs the container.
        queue_of: the name of the queue at an address.
        redelivered: whether the broker flags a message, as for :func:`ackfsm.recorder.proton.recorded`.

    Raises:
        RecordingError: ``handler`` is something else.
    """
    kind = client("proton.handlers", "python-qpid-proton").MessagingHandler
    expect(handler, kind, "a proton.handlers.MessagingHandler")
    return RecordedHandler(handler, recorder, queue_of, redelivered)


def outcome_of(state: Any, local: Any = None) -> Outcome | None:
    """Return the outcome of a ``state`` that is not accepted, with the ``local`` state beside it, if known.

    One that is modified is so only if it says in which way.
    """
    states = client("proton", "python-qpid-proton").Delivery
    if state in {states.RELEASED, states.REJECTED}:
        return Outcome.RELEASED if state == states.RELEASED else Outcome.REJECTED
    if local is None or state != states.MODIFIED:
        return None
    return Outcome.UNDELIVERABLE if local.undeliverable else Outcome.MODIFIED if local.failed else None


class _Sent(NamedTuple):
    """A message whose outcome is not known yet."""

    book: ChannelBook
    message: str
    queue: str


class RecordedHandler(Wrapped):
    """A handler whose callbacks get events that are recorded."""

    def __init__(
        self,
        handler: Any,
        recorder: Recorder,
        queue_of: Callable[[str], str],
        redelivered: Callable[[Any], bool] | None,
    ) -> None:
        super().__init__(handler)
        self._recorder, self._queue_of, self._redelivered = recorder, queue_of, redelivered
        self._accepts = any(getattr(each, "auto_accept", False) for each in handler.handlers)
        self._books: dict[Any, ChannelBook] = {}
        self._sent: dict[Any, _Sent] = {}
        self._numbers = itertools.count(1)
        self.handlers = [self._calling_this(each) for each in handler.handlers]

    def _calling_this(self, child: Any) -> Any:
        """A handler of Proton's own that turns what happens into calls: of this one, not of the one that is wrapped."""
        own = copy.copy(child)
        if getattr(child, "delegate", None) == self._wrapped:
            own.delegate = self
        return own

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if not name.startswith("on_"):
            return found
        return lambda *arguments: found(*arguments[:-1], _Event(arguments[-1], self))

    def _pass_on(self, name: str, event: Any) -> None:
        """Call the callback of the application, if it has it."""
        callback = getattr(self._wrapped, name, None)
        if callback is not None:
            callback(_Event(event, self))

    # Consumers

    def on_message(self, event: Any) -> None:
        """The application works on a message, until its callback returns or raises."""
        library = client("proton.handlers", "python-qpid-proton")
        book, tag, message = self._book(event.connection), next(self._numbers), event.message
        delivery = book.delivered(
            tag,
            None if message.id is None else str(message.id),
            self._queue_of(event.link.remote_source.address or event.link.source.address),
            redelivered=message.delivery_count > 0 if self._redelivered is None else self._redelivered(message),
            headers={"x-delivery-count": message.delivery_count} if self._redelivered is None else None,
            acknowledged=event.delivery.settled,
            called=True,
        )
        try:
            self._wrapped.on_message(_Event(event, self, _Delivery(event.delivery, book, tag)))
        except (library.Reject, library.Release) as asked:
            requeue = isinstance(asked, library.Release)
            outcome = None if requeue else Outcome.REJECTED  # that of a Release is the handler's own affair
            with book.giving_back(tag, multiple=False, requeue=requeue, outcome=outcome):
                pass  # Proton gives it back when this is raised
            raise
        except BaseException as error:
            book.ended(delivery, error)
            raise
        book.ended(delivery)
        if self._accepts:
            with book.acknowledging(tag, multiple=False):
                pass  # Proton accepts it when this has returned

    # Producers

    def sender(self, link: Any) -> _Sender:
        """A sender that is recorded."""
        return _Sender(link, self)

    def send(self, link: Any, message: Any, tag: Any) -> Any:
        """Send by ``link``; a message without an ``id`` gets one."""
        library = client("proton", "python-qpid-proton")
        if not isinstance(message, library.Message):
            raise RecordingError(
                "bytes have no id, so that nobody can say which message they are; send a proton.Message"
            )
        message.id = message.id or new_message_id()
        book, queue = self._book(link.connection), self._queue_of(link.remote_target.address or link.target.address)
        with book.sending(str(message.id), "", queue, persistent=bool(message.durable), answered=False, rejects=()):
            delivery = link.send(message, tag)
        if link.snd_settle_mode != library.Link.SND_SETTLED:
            self._sent[delivery] = _Sent(book, str(message.id), queue)
        return delivery

    def on_accepted(self, event: Any) -> None:
        """The broker has the message."""
        self._answered(event.delivery, self._recorder.confirmed)
        self._pass_on("on_accepted", event)

    def on_rejected(self, event: Any) -> None:
        """The broker refused the message."""
        self._answered(event.delivery, self._recorder.rejected, error=str(event.delivery.remote_state))
        self._pass_on("on_rejected", event)

    def on_released(self, event: Any) -> None:
        """The broker gave the message back, which is no better."""
        self._answered(event.delivery, self._recorder.rejected, error=str(event.delivery.remote_state))
        self._pass_on("on_released", event)

    def on_settled(self, event: Any) -> None:
        """The broker forgets the message; without an outcome before, the outcome is unknown."""
        self._answered(event.delivery, self._recorder.in_doubt, error="settled without an outcome")
        self._pass_on("on_settled", event)

    def _answered(self, delivery: Any, write: Callable[..., None], **fields: str) -> None:
        sent = self._sent.pop(delivery, None)
        if sent is not None:
            write(sent.message, queue=sent.queue, session=sent.book.session, **fields)

    # Connections

    def on_connection_local_close(self, event: Any) -> None:
        """The application closes a connection; answers may still come."""
        if event.connection in self._books:
            self._books[event.connection].closing()
        self._pass_on("on_connection_local_close", event)

    def on_connection_error(self, event: Any) -> None:
        """The broker closed a connection with an error."""
        self._lost(event.connection, event.connection.remote_condition)
        self._pass_on("on_connection_error", event)

    def on_session_error(self, event: Any) -> None:
        """The broker ended a session with an error."""
        self._lost(event.connection, event.session.remote_condition)
        self._pass_on("on_session_error", event)

    def on_connection_closed(self, event: Any) -> None:
        """Both have closed a connection: no answer comes any more."""
        self._lost(event.connection, None)
        self._pass_on("on_connection_closed", event)

    def on_transport_tail_closed(self, event: Any) -> None:
        """Nothing comes from the broker any more."""
        self._lost(event.connection, event.transport.condition)
        self._pass_on("on_transport_tail_closed", event)

    def _book(self, connection: Any) -> ChannelBook:
        """That of the connection, which is another session when it was made again."""
        if connection not in self._books:
            self._books[connection] = ChannelBook(self._recorder, None, lambda _, queue: queue)
        return self._books[connection]

    def _lost(self, connection: Any, condition: object) -> None:
        book = self._books.pop(connection, None)
        if book is None:
            return
        told = book.closing(ConnectionError(str(condition or "the connection broke")))
        lost = [delivery for delivery, sent in self._sent.items() if sent.book is book]
        if lost and not told:  # the application closed it; that alone explains no doubt
            self._recorder.closing(book.session, error="closed before the broker had answered each send")
        for delivery in lost:
            self._answered(delivery, self._recorder.in_doubt, error="the connection ended")


class _Event(Wrapped):
    """An event whose parts are recorded."""

    def __init__(self, event: Any, handler: RecordedHandler, delivery: _Delivery | None = None) -> None:
        super().__init__(event)
        self._handler, self._delivery = handler, delivery

    @property
    def container(self) -> _Container:
        return _Container(self._wrapped.container, self._handler)

    @property
    def link(self) -> Any:
        link = self._wrapped.link
        return self._handler.sender(link) if link is not None and link.is_sender else link

    @property
    def sender(self) -> Any:
        link = self._wrapped.sender
        return None if link is None else self._handler.sender(link)

    @property
    def delivery(self) -> Any:
        return self._delivery or self._wrapped.delivery


class _Container(Wrapped):
    """A container whose senders are recorded."""

    def __init__(self, container: Any, handler: RecordedHandler) -> None:
        super().__init__(container)
        self._handler = handler

    def connect(self, *args: Any, **named: Any) -> Any:
        _refuse_handler(named)
        return self._wrapped.connect(*args, **named)

    def create_sender(self, *args: Any, **named: Any) -> _Sender:
        _refuse_handler(named)
        return self._handler.sender(self._wrapped.create_sender(*args, **named))

    def create_receiver(self, *args: Any, **named: Any) -> Any:
        _refuse_handler(named)
        return self._wrapped.create_receiver(*args, **named)

    def declare_transaction(self, *_: Any, **__: Any) -> Any:
        raise RecordingError("transactions of Proton cannot be recorded; leave the wrapper out, or write lines by hand")


def _refuse_handler(named: dict[str, Any]) -> None:
    if named.get("handler") is not None:
        raise RecordingError(
            "a handler of one link or connection cannot be recorded; let the container's handler do it"
        )


class _Same(Wrapped):
    """Equal to another one of the same object, as Proton makes objects anew for each event."""

    def __eq__(self, other: object) -> bool:
        return bool(self._wrapped == (other._wrapped if isinstance(other, Wrapped) else other))

    def __hash__(self) -> int:
        return hash(self._wrapped)


class _Sender(_Same):
    """A sender whose messages are recorded."""

    def __init__(self, link: Any, handler: RecordedHandler) -> None:
        super().__init__(link)
        self._handler = handler

    def send(self, obj: Any, tag: Any = None) -> Any:
        return self._handler.send(self._wrapped, obj, tag)


class _Delivery(_Same):
    """A message that the application has; settling it is recorded."""

    def __init__(self, delivery: Any, book: ChannelBook, number: int) -> None:
        super().__init__(delivery)
        self._book, self._number = book, number

    def update(self, state: Any) -> None:
        """Record the outcome of the message; any ``state`` but accepted is ``failed``."""
        states = client("proton", "python-qpid-proton").Delivery
        if state == states.ACCEPTED:
            call = self._book.acknowledging(self._number, multiple=False)
        else:
            outcome = outcome_of(state, self._wrapped.local)
            requeue = state != states.REJECTED
            call = self._book.giving_back(self._number, multiple=False, requeue=requeue, outcome=outcome)
        with call:
            self._wrapped.update(state)

    def settle(self) -> None:
        """Settle the message; one whose state was not said is ``failed``."""
        with self._book.giving_back(self._number, multiple=False, requeue=True):
            self._wrapped.settle()
