"""Send: blocking or asynchronous, with a window, inside or outside a transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ackfsm.engine.arguments import (
    NO_HEADERS,
    body_of,
    correlation_of,
    duplicate_id_of,
    headers_of,
    id_of,
    instance_of,
    reply_of,
)
from ackfsm.engine.closing import Closing
from ackfsm.engine.core.automaton import REFUSED
from ackfsm.engine.core.errors import IllegalStateException, JMSException, MessageRejected, OutcomeUnknown
from ackfsm.engine.core.instances import Copy
from ackfsm.engine.core.message import Body, HeaderValue, Outcome, Sent
from ackfsm.engine.core.model import Event

if TYPE_CHECKING:
    from ackfsm.engine.core.links import Outgoing, Queue
    from ackfsm.engine.session import Session

__all__ = ["Producer"]

_CONFIRMED = Outcome.CONFIRMED


class Producer(Closing):
    """Sends to one queue.  ``Session.producer`` makes it; it is closed when it is left as a context.

    Attributes:
        closed: whether :meth:`close` was called.
    """

    def __init__(self, session: Session, queue: Queue, on_outcome: Callable[[Sent], None] | None) -> None:
        self.session = session
        self.queue = queue
        self._on_outcome = on_outcome
        self._broker = session.broker
        self._out = session.sender({})
        events = session.broker.core.events
        self._sending = (events["send"], events["send_in_transaction"])
        self._resending = (events["resend"],)
        self.closed = False

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
            delivery_mode: ``PERSISTENT`` …; by default that of the session.
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
            self._refuse()
        session.alive()
        data = body if type(body) is bytes else body_of(body)
        named = NO_HEADERS if headers is None else headers_of(headers)
        known = None if duplicate_id is None else duplicate_id_of(duplicate_id)
        answered = None if reply_to is None else reply_of(reply_to)
        linked = None if correlation_id is None else correlation_of(correlation_id)
        ident = broker.new_id(session.name) if message_id is None else id_of(message_id)
        now = broker.engine.pace.now if broker.clock is None else broker.time()
        out = self._out if delivery_mode is None else session.sends_as(delivery_mode)
        mode, hear = out.configuration.delivery_mode, self._on_outcome
        message = Sent(ident, data, named, mode, self.queue, known, now, answered, linked, hear)
        copy = broker.new_message(out, self.queue, message)
        copy.refuse = self.queue.is_full()
        if session.transacted:
            session.begin()
        self._put(copy, self._sending, "send")
        return message if message.outcome is _CONFIRMED else self._result(message)

    def resend(self, message: Sent) -> Sent:
        """Send a message whose outcome is unknown again, as a second copy.

        Raises :class:`IllegalStateException` if it is not in doubt, if another session has sent it, or if the
        configuration does not send again.
        """
        if self.closed:
            self._refuse()
        self.session.alive()
        first = instance_of("message", Sent, message).copy
        if first is None or first.twin is not None:
            raise IllegalStateException(f"{message.id} is {message.outcome}; only what is in doubt is sent again, once")
        if first.route.outgoing is None or first.route.outgoing.owner is not self.session:
            raise IllegalStateException(
                f"{message.id} was sent by another session, which alone can send it again; send it anew, with a "
                "duplicate_id if the broker is to know it again"
            )
        self._choose(first, self._resending)
        self._broker.second_copy(first)
        message.outcome = Outcome.OPEN
        self.session.begin()
        self._put(first, self._resending, "resend")
        return self._result(message)

    def close(self) -> None:
        """Close it, when the outcomes of what the session has sent to this queue are known, if they ever will be.

        Closing loses nothing: asynchronous sends complete, and a transaction stays open (JMS 3.1, 7.3 and the
        documentation of ``MessageProducer.close``).  Closing it twice is harmless.

        Raises :class:`IllegalStateException` from another thread than the broker's.
        """
        self.shut()
        self._broker.engine.wait(lambda: not self.waits)

    def shut(self) -> None:
        """Send nothing more, and wait for nothing."""
        self._broker.check_use()
        self.closed = True

    @property
    def waits(self) -> bool:
        """Whether the outcome of a message that the session has sent to this queue is open."""
        sides = () if self.session.closed else self.session.outgoing.values()
        return any(message.queue is self.queue for out in sides for message in out.open)

    def _refuse(self) -> None:
        self._broker.check_use()
        raise IllegalStateException("the producer is closed; make another with session.producer()")

    def wait(self, message: Sent | None = None) -> None:
        """Wait for the outcome of ``message``, or of all that this session has sent."""
        if message is not None:
            sent = instance_of("message", Sent, message)
            self._broker.wait(lambda: sent.outcome is not Outcome.OPEN, f"the outcome of {sent.id}")
        else:
            self._broker.wait(lambda: not self._out.open, f"the outcomes of {self.session.name}")

    def _choose(self, copy: Copy, events: tuple[Event, ...]) -> Event:
        """The event by which the tables let this copy be sent."""
        for event in events:
            if copy.goes_to(event.own) != REFUSED:
                return event
        row = copy.automaton.refusal(events[0].own, copy.state)
        raise IllegalStateException(f"{events[0].name} of {copy.message.id}: {row.because if row else 'refused'}")

    def _put(self, copy: Copy, events: tuple[Event, ...], said: str) -> None:
        """Send, as soon as the tables let it, and wait for the answer if they say that the call waits."""
        broker, engine = self._broker, self._broker.engine
        event = self._choose(copy, events)
        message = copy.message
        out: Outgoing = copy.route.outgoing
        out.open[message] = None
        message.waited = False
        while not self._sent(event, copy, said):
            row = broker.core.refusal()
            if (row.error is not None and not broker.repairs) or not engine.go_on():
                del out.open[message]
                raise JMSException(f"{said} of {message.id}: {row.because} ({row.place})")
        if copy.told.sending:
            message.waited = True
            broker.wait(lambda: not copy.told.sending, f"{said} of {message.id}")
        else:
            engine.settle(store=message.waited)

    def _sent(self, event: Event, copy: Copy, said: str) -> bool:
        broker, session = self._broker, self.session
        if broker.history is None:
            return broker.dispatching.put(event, copy)
        if not broker.core.can(event, copy):
            return False
        message = copy.message
        broker.log(
            session.process,
            said,
            session=session.name,
            queue=self.queue.name,
            message=message.id,
            delivery_mode=message.delivery_mode.value,
            transaction=session.transaction if session.transacted else None,
        )
        return broker.dispatching.put(event, copy)

    def _result(self, message: Sent) -> Sent:
        """Raise what a call that waited has to raise; whoever did not wait hears by ``on_outcome``."""
        if not message.waited:
            return message
        if message.outcome is Outcome.REJECTED:
            raise MessageRejected(f"the broker refused {message.id}: queue {self.queue.name!r} takes no more")
        if message.outcome is Outcome.IN_DOUBT:
            raise OutcomeUnknown(f"the connection broke before the broker answered {message.id}; it may have it")
        return message
