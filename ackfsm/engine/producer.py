"""Send: blocking or asynchronous, with a window, inside or outside a transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from ackfsm.engine.arguments import (
    NO_HEADERS,
    body_of,
    duplicate_id_of,
    headers_of,
    id_of,
    instance_of,
    reply_of,
)
from ackfsm.engine.context import BrokerContext
from ackfsm.engine.core.automaton import REFUSED
from ackfsm.engine.core.errors import IllegalStateException, JMSException, MessageRejected, OutcomeUnknown
from ackfsm.engine.core.instances import Body, Copy, HeaderValue, Outcome, Queue, SenderLink, Sent
from ackfsm.engine.core.model import BoundEvent
from ackfsm.support.closing import Closing
from ackfsm.tables.names import Event
from ackfsm.terms import Configuration, DeliveryMode

_CONFIRMED = Outcome.CONFIRMED


class _Session(Protocol):
    """The session of a producer."""

    name: str
    process: str
    transaction: int
    closed: bool
    senders: dict[Configuration, SenderLink]

    @property
    def transacted(self) -> bool: ...

    def ensure_open(self) -> None: ...
    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...
    def sender_link(self, delivery_mode: str | None = None) -> SenderLink: ...


class Producer(Closing):
    """Sends to one queue.  ``Session.producer`` makes it; it is closed when it is left as a context.

    Attributes:
        closed: whether :meth:`close` was called.
    """

    def __init__(
        self,
        session: _Session,
        broker: BrokerContext,
        queue: Queue,
        on_outcome: Callable[[Sent], None] | None,
        delivery_mode: str | None = None,
    ) -> None:
        self.session = session
        self.queue = queue
        self._on_outcome = on_outcome
        self._broker = broker
        self._queues, self._dispatcher = broker.engine.queues, broker.engine.dispatcher
        self._sender = session.sender_link(delivery_mode)
        events = broker.stepper.events
        self._sending = (events[Event.SEND], events[Event.SEND_IN_TRANSACTION])
        self._resending = (events[Event.RESEND],)
        self.closed = False

    @property
    def delivery_mode(self) -> DeliveryMode:
        """The delivery mode of the messages that have none of their own (``setDeliveryMode``; JMS 3.1, 7.7).

        It can be set, to a member or its name, for what is sent from then on.  Raises
        :class:`ackfsm.terms.InputError` for one that the system does not have, and :class:`IllegalStateException` if
        the producer or its session is closed.
        """
        return self._sender.configuration.delivery_mode

    @delivery_mode.setter
    def delivery_mode(self, delivery_mode: str) -> None:
        if self.closed:
            self._raise_closed()
        self.session.ensure_open()
        self._sender = self.session.sender_link(delivery_mode)

    def send(  # noqa: PLR0913 - each has a default, and most are given by name
        self,
        body: Body = b"",
        headers: Mapping[str, HeaderValue] | None = None,
        *,
        message_id: str | None = None,
        delivery_mode: str | None = None,
        duplicate_id: bytes | None = None,
        reply_to: str | Queue | None = None,
        correlation_id: str | None = None,
    ) -> Sent:
        """Send a message.

        Args:
            body: the payload: bytes, text, or a mapping of names to text, bytes, numbers of at most 64 bits, truth
                values and ``None``; what it is now is delivered, whatever becomes of a ``bytearray`` or a mapping.
            headers: names and values: text, numbers of at most 64 bits, truth values and ``None``; copied too.
            message_id: its own id; by default one that is unique in the engine.
            delivery_mode: ``PERSISTENT`` …; by default that of the producer.  Settings that nobody chose follow it (an
                EMS client waits for a ``PERSISTENT`` send of a ``NON_PERSISTENT`` session).
            duplicate_id: by which a broker with ``duplicate_detection`` knows it again.
            reply_to: the queue where an answer is wanted (``JMSReplyTo``); nothing is done about it.
            correlation_id: what links it to another message (``JMSCorrelationID``).

        Returns what the producer knows of it: the ``outcome`` of a blocking send is there, that of an asynchronous one
        comes later (``on_outcome``, :meth:`wait`).

        Raises :class:`OutcomeUnknown` and :class:`MessageRejected` from a blocking send, :class:`JMSException` if there
        is no connection, :class:`IllegalStateException` if the producer or its session is closed, and
        :class:`ackfsm.terms.InputError` for arguments that cannot be sent, of which nothing is then sent.
        """
        session, broker = self.session, self._broker
        if self.closed:
            self._raise_closed()
        session.ensure_open()
        data = body if type(body) is bytes else body_of(body)
        named = NO_HEADERS if headers is None else headers_of(headers)
        known = None if duplicate_id is None else duplicate_id_of(duplicate_id)
        answered = None if reply_to is None else reply_of(reply_to)
        linked = None if correlation_id is None else id_of("correlation_id", correlation_id)
        ident = self._queues.new_id(session.name) if message_id is None else id_of("message_id", message_id)
        now = broker.loop.scheduler.now if broker.clock is None else broker.time()
        sender = self._sender if delivery_mode is None else session.sender_link(delivery_mode)
        mode, hear = sender.configuration.delivery_mode, self._on_outcome
        message = Sent(ident, data, named, mode, self.queue, known, now, answered, linked, hear)
        copy = self._queues.first_copy(sender, message)
        copy.reject = self.queue.is_full()
        if session.transacted:
            session.begin()
        self._send(sender, copy, self._sending, "send")
        return message if message.outcome is _CONFIRMED else self._result(message)

    def resend(self, message: Sent) -> Sent:
        """Send a message whose outcome is unknown again, as a second copy.

        Raises :class:`IllegalStateException` if it is not in doubt, if another session has sent it, or if the
        configuration does not send again.
        """
        if self.closed:
            self._raise_closed()
        self.session.ensure_open()
        first = instance_of("message", Sent, message).copy
        if first is None or first.other_copy is not None:
            raise IllegalStateException(f"{message.id} is {message.outcome}; only what is in doubt is sent again, once")
        sender = first.binding.sender
        if sender is None or sender not in self.session.senders.values():
            raise IllegalStateException(
                f"{message.id} was sent by another session, which alone can send it again; send it anew, with a "
                "duplicate_id if the broker is to know it again"
            )
        self._send_event(first, self._resending)
        self._queues.second_copy(first)
        message.outcome = Outcome.OPEN
        self.session.begin()
        self._send(sender, first, self._resending, "resend")
        return self._result(message)

    def close(self) -> None:
        """Close it, when the outcomes of the session's sends to this queue are known, if they ever will be.

        Closing loses nothing: asynchronous sends complete, and a transaction stays open (JMS 3.1, 7.3 and the
        documentation of ``MessageProducer.close``).  Closing it twice is harmless.

        Raises :class:`IllegalStateException` from another thread than the broker's.
        """
        self.mark_closed()
        self._broker.loop.wait(lambda: not self.has_open_sends)

    def mark_closed(self) -> None:
        """Send nothing more, and wait for nothing."""
        self._broker.check_use()
        self.closed = True

    @property
    def has_open_sends(self) -> bool:
        """Whether the outcome of a message that the session has sent to this queue is open."""
        sides = () if self.session.closed else self.session.senders.values()
        return any(message.queue is self.queue for sender in sides for message in sender.open)

    def _raise_closed(self) -> None:
        self._broker.check_use()
        raise IllegalStateException("the producer is closed; make another with session.producer()")

    def wait(self, message: Sent | None = None) -> None:
        """Wait for the outcome of ``message``, or of all that this session has sent."""
        if message is not None:
            sent = instance_of("message", Sent, message)
            self._broker.wait(lambda: sent.outcome is not Outcome.OPEN, f"the outcome of {sent.id}")
        else:
            senders = self.session.senders.values()
            self._broker.wait(
                lambda: not any(sender.open for sender in senders), f"the outcomes of {self.session.name}"
            )

    def _send_event(self, copy: Copy, events: tuple[BoundEvent, ...]) -> BoundEvent:
        """The event by which the tables let this copy be sent."""
        for event in events:
            if copy.successor(event.signal) != REFUSED:
                return event
        row = copy.automaton.refusal(events[0].signal, copy.state)
        raise IllegalStateException(f"{events[0].name} of {copy.message.id}: {row.because if row else 'refused'}")

    def _send(self, sender: SenderLink, copy: Copy, events: tuple[BoundEvent, ...], call: str) -> None:
        """Send as soon as the tables allow it, and wait for the answer if they say that the call waits."""
        broker, loop = self._broker, self._broker.loop
        event = self._send_event(copy, events)
        message = copy.message
        sender.open[message] = None
        message.blocking = False
        while not self._try_send(event, copy, call):
            row = broker.stepper.refusal()
            if (row.error is not None and not broker.repairs) or not loop.step():
                del sender.open[message]
                raise JMSException(f"{call} of {message.id}: {row.because} ({row.place})")
        if copy.facts.send_pending:
            message.blocking = True
            broker.wait(lambda: not copy.facts.send_pending, f"{call} of {message.id}", "send", self.session, message)
        else:
            loop.run_to_quiescence(store=message.blocking)

    def _try_send(self, event: BoundEvent, copy: Copy, call: str) -> bool:
        broker, session = self._broker, self.session
        if broker.history is None:
            return self._dispatcher.send(event, copy)
        if not broker.stepper.is_enabled(event, copy):
            return False
        message = copy.message
        broker.log(
            session.process,
            call,
            session=session.name,
            queue=self.queue.name,
            message=message.id,
            delivery_mode=message.delivery_mode.value,
            transaction=session.transaction if session.transacted else None,
        )
        return self._dispatcher.send(event, copy)

    def _result(self, message: Sent) -> Sent:
        """Return ``message``, or raise the error of a call that waited; others get it by ``on_outcome``."""
        if not message.blocking:
            return message
        if message.outcome is Outcome.REJECTED:
            raise MessageRejected(f"the broker refused {message.id}: queue {self.queue.name!r} takes no more")
        if message.outcome is Outcome.IN_DOUBT:
            raise OutcomeUnknown(f"the connection broke before the broker answered {message.id}; it may have it")
        return message
