"""Receive: by call or by listener, and what the session does about acknowledging."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ackfsm.engine.arguments import instance_of, nanoseconds_of
from ackfsm.engine.closing import Closing
from ackfsm.engine.core.errors import IllegalStateException, OutcomeUnknown
from ackfsm.engine.core.instances import Copy, Filed
from ackfsm.engine.core.links import Incoming
from ackfsm.engine.core.macrosteps import Script
from ackfsm.engine.core.message import Received
from ackfsm.engine.core.model import Event, State

if TYPE_CHECKING:
    from ackfsm.engine.core.links import Queue
    from ackfsm.engine.session import Session

__all__ = ["Consumer", "Deferred", "Message"]


_BOTH = 2
"""Steps: processed and acknowledged, acknowledged and handed over."""


class Message(Received):
    """A message that was delivered, which its application has to acknowledge where the mode leaves that to it."""

    __slots__ = ("consumer", "copy", "in_doubt")

    def __init__(self, consumer: Consumer, copy: Copy, delivery_count: int) -> None:
        self.sent = copy.message
        self.redelivered = copy.flagged
        self.delivery_count = delivery_count
        self.consumer = consumer
        self.copy = copy
        self.in_doubt = False

    def acknowledge(self) -> None:
        """Acknowledge it, and whatever else the mode covers; ignored where the session acknowledges by itself.

        Raises :class:`OutcomeUnknown` if nobody knows whether the broker has it, :class:`IllegalStateException` if
        there is nothing to acknowledge or the session is closed.
        """
        self.consumer.acknowledge(self)


class Consumer(Closing):
    """Consumes from one queue.  ``Session.consumer`` makes it; it is closed when it is left as a context.

    An application is taken to be done with a message when it acknowledges it, when it asks for the next, when it closes
    the consumer, and when it commits, recovers or closes the session.

    Attributes:
        closed: whether :meth:`close` was called.
        left: whether all that it was sent is settled or in the queue again after that.
    """

    def __init__(self, session: Session, queue: Queue, incoming: Incoming, listener: Listener | None) -> None:
        self.session = session
        self.queue = queue
        self.incoming = incoming
        self.listener = listener
        self._broker = session.broker
        self._whose = self._broker.whose("acknowledge", incoming.configuration)
        self._gives_back = self._broker.whose("requeue", incoming.configuration) == "library"
        self._scope = self._broker.scope_of_acknowledgement(incoming.configuration)
        self.closed = self.left = False
        self._arrived = Filed()
        self.heed()
        self._drive = self._broker.engine.courses.drive
        self._scripts = self._broker.engine.scripts
        self._finishing = self._script()
        self._claiming = self._broker.engine.script(self._broker.core.events["acknowledge"], _hands)
        self._current: Message | None = None
        self._last: Message | None = None
        self._goes_on = isinstance(listener, Deferred)

    def heed(self) -> None:
        """Hand over what has arrived from now on, or nothing: if it is closed, or its connection is stopped."""
        shut = self.closed or self.session.stopped
        self._arrived = Filed() if shut else self.incoming.session.under(self._broker.hand_over)

    def _script(self) -> Script:
        """What is done when the application is done with a message."""
        events = self._broker.core.events
        by_session = (events["acknowledge"],) if self._whose == "library" else ()
        return self._broker.engine.script(events["processed"], *by_session)

    @property
    def is_busy(self) -> bool:
        """Whether the application has a message that it is not known to be done with."""
        return self._current is not None

    def poll(self) -> Message | None:
        """The next message if it has arrived, ``None`` if none has; nothing is waited for.

        Raises :class:`IllegalStateException` for a consumer with a listener, and once the session is closed.
        """
        self._receives()
        return self._poll()

    def _poll(self) -> Message | None:
        while True:
            self._broker.engine.settle()
            copy = self._next()
            message = None if copy is None else self._hand_over(copy)
            if message is not None or copy is None or self._next() is copy:
                return message  # what is first and is not handed over may be later

    def _receives(self) -> None:
        self.session.alive()
        if self.closed:
            raise IllegalStateException("the consumer is closed; make another with session.consumer()")
        if self.listener is not None:
            raise IllegalStateException("this consumer has a listener; receive() is for one without (JMS 3.1, 4.4.6)")
        self.session.finish_processing()

    def receive(self, timeout: float | None = 0.0) -> Message | None:
        """The next message.

        Args:
            timeout: seconds of virtual time to wait for one; ``None`` waits as long as something can still happen, 0 as
                long as what is under way may bring one without waiting for a repair.

        Returns ``None`` if there is none.  Raises :class:`IllegalStateException` for a consumer with a listener, and
        once it is closed.
        """
        wait = None if timeout is None else nanoseconds_of(timeout)
        engine = self._broker.engine
        until = engine.pace.now + wait if wait else None
        message = self.poll()
        if message is not None:
            return message
        with engine.deadline(until):
            while (until is None or engine.pace.now < until) and engine.go_on():
                message = self._poll()
                if message is not None:
                    return message
        return None

    def _next(self) -> Copy | None:
        """The copy that would be handed over next."""
        first = self._arrived.first()
        if first is None:
            return None
        told: State = first.automaton.told[first.state]
        return first if told.hands is not None or told.claimable else None

    def _hand_over(self, copy: Copy) -> Message | None:
        """Give ``copy`` to the application; ``None`` if the acknowledgement that has to come first is in doubt."""
        count = copy.mark
        if self._whose == "library" and copy.told.hands is None and self._claims(copy):
            return self._received(copy, count)
        event = copy.told.hands
        if event is None:
            return None
        if self.session.transacted:
            self.session.begin()
        return self._received(copy, count) if self._drive(self._scripts[event.name], copy) else None

    def _claims(self, copy: Copy) -> bool:
        """Acknowledge a message that is then handed over; whether it has been, in one course with that."""
        if self._broker.history is not None or self.session.transacted:
            self._acknowledge(copy)
            return False
        done = self._drive(self._claiming, copy)
        if done:
            self._until_acknowledged(copy)
        return done == _BOTH

    def _received(self, copy: Copy, delivery_count: int) -> Message:
        """The application has the message now."""
        message = Message(self, copy, delivery_count)
        if self._broker.history is not None:
            self._log(message, "delivered", redelivered=message.redelivered, delivery_count=message.delivery_count)
        copy.received = message
        self._current = self._last = message
        return message

    def pump(self) -> None:
        """Call the listener for what has arrived."""
        session = self.session
        if self.listener is None or session.closed:
            return
        if session.is_busy:
            session.passed_over = True
            return
        session.is_busy = True
        try:
            while not session.is_called() and (copy := self._next()) is not None:
                session.finish_processing()
                message = self._hand_over(copy)
                if message is not None:
                    self._call(message)
                elif self._next() is copy:
                    break  # a call of the session is waiting; it looks again when it returns
        finally:
            session.free()

    def look(self) -> None:
        """Call the listener, if there is one, for what has had to wait."""
        if self.listener is not None and not self.closed:
            self._broker.engine.callbacks.append(self.pump)

    def _call(self, message: Message) -> None:
        if self.listener is None:
            return
        try:
            self.listener(message)
        except Exception as error:  # noqa: BLE001 - whatever a listener throws is a listener exception (JMS 3.1, 8.7)
            self._failed(message, error)
        else:
            if not self._goes_on:
                self.finish()

    def done(self, message: Message, error: Exception | None = None) -> None:
        """A :class:`Deferred` listener is done with ``message``, or has failed with ``error``."""
        if self._current is message:
            if error is None:
                self.finish()
            else:
                self._failed(message, error)
        self.session.let_leave()
        for consumer in self.session.consumers:
            consumer.pump()

    def _failed(self, message: Message, error: Exception) -> None:
        if self._current is not message:
            return
        self._current = None
        self._log(message, "failed", error=repr(error))
        self._broker.engine.perform("listener_exception", message.copy)
        if self._gives_back:
            self._broker.engine.perform("requeue", message.copy)
        self._acknowledge_by_session(message)
        self._broker.engine.settle()

    def finish(self) -> None:
        """The application is done with the message that it had last."""
        message = self._current
        if message is None:
            return
        self._current = None
        if self._broker.history is not None:
            self._log(message, "processed")
            self._broker.engine.perform("processed", message.copy)
        elif self._drive(self._finishing, message.copy) == _BOTH:
            self._until_acknowledged(message.copy)
            return
        self._acknowledge_by_session(message)

    def let_go(self) -> None:
        """The application does not go on with the message that it had last, which will come again."""
        message, self._current = self._current, None
        if message is not None:
            self._broker.engine.perform("processed", message.copy)

    def _acknowledge_by_session(self, message: Message) -> None:
        if self._whose == "library":
            if message.copy.received is message and message.copy.told.claimable:
                self._acknowledge(message.copy)
        elif self._whose == "lazy":
            self._broker.lazily(self, message)

    def acknowledge(self, message: Message) -> None:
        """See :meth:`Message.acknowledge`."""
        self.session.alive()
        instance_of("message", Message, message)
        if self._whose != "application":
            return
        self.session.finish_processing()
        with self.session.undisturbed():  # what comes during the call is not covered by it
            whole = self._scope == "session"
            covered = self._covers(message, rest=whole)
            if whole or (covered and self._scope != "message"):
                covered = self.session.acknowledge_others(self) or covered
            if not covered:
                raise IllegalStateException(f"acknowledge() of {message.id}: {self._why_not(message)}")
        self.session.look()
        self.session.let_leave()
        if message.in_doubt:
            raise OutcomeUnknown(f"the connection broke before the broker answered; {message.id} may come again")

    def close(self) -> None:
        """Close it: it is sent nothing more, and its listener is not called any more (JMS 3.1, 8.8).

        What the application has had of it stays with the session, which acknowledges it, commits it or has it delivered
        again.  What the library has had alone goes back to the queue: at once, or where the session has something of
        this consumer to settle, with that (as ActiveMQ's does in a transaction).
        A listener may close its own consumer, and goes on to its end.  Closing it twice is harmless.

        Raises :class:`IllegalStateException` from another thread than the broker's.
        """
        self._broker.check_use()
        if not self.closed and not self.session.closed:
            self.session.close_consumer(self)

    def acknowledge_last(self) -> bool:
        """Another consumer of the session is acknowledged, and that covers what this one has had, if anything."""
        last, self._last = self._last, None
        return last is not None and self._covers(last, rest=True)

    def acknowledge_lazily(self, message: Message) -> bool:
        """Lazily, unless it was given back meanwhile."""
        return self._covers(message, rest=False)

    def _covers(self, message: Message, *, rest: bool) -> bool:
        """Acknowledge ``message``; if it was given back, the last of the rest that this consumer has had, or nothing.

        What was given back is another delivery when it comes again, to another session perhaps, which acknowledges it.
        """
        if message.copy.received is message and self._acknowledge(message.copy, scope=self._scope):
            return True
        held = self._broker.core.copies_of(self.incoming.session) if rest else []
        return any(copy.received is not None and self._acknowledge(copy, scope=self._scope) for copy in reversed(held))

    def _why_not(self, message: Message) -> str:
        if message.copy.received is not message:
            return "it is acknowledged already, or it was given back and delivered again since"
        row = self._broker.core.refusal()
        return f"{row.because} ({row.place})"

    def _acknowledge(self, copy: Copy, *, scope: str = "message") -> bool:
        """Send the acknowledgement and wait if the tables say that the call does; ``False`` if they refuse it."""
        broker = self._broker
        if broker.history is not None:
            if not broker.core.can(broker.core.events["acknowledge"], copy):
                return False
            name = self.incoming.session.name
            broker.log_of(copy, self.session.process, "acknowledge", session=name, scope=scope)
        if not broker.engine.perform("acknowledge", copy):
            return False
        self._until_acknowledged(copy)
        return True

    def _until_acknowledged(self, copy: Copy) -> None:
        """Wait if the tables say that the call does."""
        told = copy.told
        if told.acknowledging and told.hands is None:
            self._broker.wait(lambda: not (_waiting(copy) or self._awaits()), "an acknowledgement")
        else:
            self._broker.engine.settle()

    def _awaits(self) -> bool:
        """Whether something that the acknowledgement covers has no answer yet."""
        return self._scope != "message" and any(map(_waiting, self._broker.core.copies_of(self.incoming.session)))

    def _log(self, message: Message, event: str, **fields: object) -> None:
        session = self.session
        if self._broker.history is not None:
            self._broker.log_of(
                message.copy,
                session.process,
                event,
                session=self.incoming.session.name,
                transaction=session.transaction if session.transacted else None,
                **fields,
            )


def _hands(told: State) -> Event | None:
    """The event by which a copy in this state is handed over."""
    return told.hands


def _waiting(copy: Copy) -> bool:
    """Whether the call that acknowledges has not returned: what it has released may be handed over."""
    told = copy.told
    return told.acknowledging and told.hands is None


Listener = Callable[[Message], object]
"""What is called with each message; an exception is a listener exception."""


class Deferred:
    """A listener that goes on after the call has returned; :meth:`Consumer.done` says when it is done."""

    def __init__(self, call: Callable[[Message], object]) -> None:
        """``call`` begins the work, and must not raise."""
        self._call = call

    def __call__(self, message: Message) -> object:
        """Begin."""
        return self._call(message)
