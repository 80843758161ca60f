"""Receive: by call or by listener, with the acknowledgements of the session."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from ackfsm.engine.arguments import instance_of, nanoseconds_of
from ackfsm.engine.context import BrokerContext
from ackfsm.engine.core.errors import IllegalStateException, OutcomeUnknown
from ackfsm.engine.core.index import CopyIndex
from ackfsm.engine.core.instances import Copy, Queue, ReceiverLink
from ackfsm.engine.core.macrosteps import StepRequest
from ackfsm.engine.core.model import BoundEvent, StateFacts
from ackfsm.engine.message import Received
from ackfsm.support.closing import Closing
from ackfsm.tables.names import AckFrom, Event
from ackfsm.terms import Configuration

__all__ = ["Consumer", "DeferredListener", "Message"]

_BOTH = 2
"""Steps: processed and acknowledged, acknowledged and delivered."""


class Message(Received):
    """A message that was delivered, which its application has to acknowledge where the mode leaves that to it."""

    __slots__ = ("consumer", "copy", "in_doubt")

    def __init__(self, consumer: Consumer, copy: Copy, delivery_count: int) -> None:
        self.sent = copy.message
        self.redelivered = copy.redelivered
        self.delivery_count = delivery_count
        self.consumer = consumer
        self.copy = copy
        self.in_doubt = False

    def acknowledge(self) -> None:
        """Acknowledge it, and whatever else the mode covers; ignored where the session acknowledges by itself.

        Raises :class:`OutcomeUnknown` if it is in doubt whether the broker has it, :class:`IllegalStateException` if
        there is nothing to acknowledge or the session is closed.
        """
        self.consumer.acknowledge(self)


class _Session(Protocol):
    """The session of a consumer."""

    process: str
    name: str
    transaction: int
    closed: bool
    stopped: bool
    is_busy: bool
    listener_skipped: bool
    consumers: list[Consumer]

    @property
    def configuration(self) -> Configuration: ...

    @property
    def transacted(self) -> bool: ...

    def ensure_open(self) -> None: ...
    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def recover(self) -> None: ...
    def give_back(self) -> None: ...
    def close(self) -> None: ...
    def finish_processing(self) -> None: ...
    def listener_busy(self) -> bool: ...
    def resume_listeners(self) -> None: ...
    def schedule_listeners(self) -> None: ...
    def without_listeners(self) -> AbstractContextManager[None]: ...
    def acknowledge_others(self, of: Consumer) -> bool: ...
    def release_closed_consumers(self) -> None: ...
    def close_consumer(self, consumer: Consumer) -> None: ...


class Consumer(Closing):
    """Consumes from one queue.  ``Session.consumer`` makes it; it is closed when it is left as a context.

    An application is taken to be done with a message when it acknowledges it, when it asks for the next, when it closes
    the consumer, and when it commits, recovers or closes the session.

    Attributes:
        closed: whether :meth:`close` was called.
        left: whether all that it was sent is settled or in the queue again after that.
    """

    def __init__(
        self, session: _Session, broker: BrokerContext, queue: Queue, receiver: ReceiverLink, listener: Listener | None
    ) -> None:
        self.session = session
        self.queue = queue
        self.receiver = receiver
        self.listener = listener
        self.broker = self._broker = broker
        table = broker.engine.model.table
        self._ack_by = table.decided_by(Event.ACKNOWLEDGE, receiver.configuration)
        self._session_acks = self._ack_by is AckFrom.LIBRARY
        self._requeues_failed = table.decided_by(Event.REQUEUE, receiver.configuration) is AckFrom.LIBRARY
        self._recovers_failed = table.decided_by(Event.RECOVER, receiver.configuration) is AckFrom.LIBRARY
        self._scope = broker.ack_scope(receiver.configuration)
        self._delivery_order = broker.engine.model.overtaken_by(Event.DELIVERED_CLEAR, "consumer")
        self._lazy: list[Message] = []
        self._lazy_batch = table.lazy_batch
        self.closed = self.detached = False
        self._deliverable: CopyIndex[Copy] = CopyIndex()
        self.update_source()
        self._run = self._broker.loop.macro_steps.run
        self._requests = self._broker.loop.requests
        self._complete_request = self._completion()
        self._ack_and_deliver = self._broker.loop.request(
            self._broker.stepper.events[Event.ACKNOWLEDGE], _delivery_event
        )
        self._current: Message | None = None
        self._last: Message | None = None
        self._is_deferred = isinstance(listener, DeferredListener)

    def update_source(self) -> None:
        """From now on deliver what arrives; or nothing, if it is closed or its connection is stopped."""
        shut = self.closed or self.session.stopped
        self._deliverable = CopyIndex() if shut else self.receiver.index(self._delivery_order)

    def _completion(self) -> StepRequest:
        """Return the steps that follow when the application is done with a message."""
        events = self._broker.stepper.events
        by_session = (events[Event.ACKNOWLEDGE],) if self._session_acks else ()
        return self._broker.loop.request(events[Event.PROCESSED], *by_session)

    @property
    def is_busy(self) -> bool:
        """Whether the application has a message that it is not known to be done with."""
        return self._current is not None

    def poll(self) -> Message | None:
        """The next message if it has arrived, ``None`` if none has; nothing is waited for.

        Raises :class:`IllegalStateException` for a consumer with a listener, and once the session is closed.
        """
        self._check_receive()
        return self._poll()

    def _poll(self) -> Message | None:
        while True:
            self._broker.loop.run_to_quiescence()
            copy = self._next()
            message = None if copy is None else self._deliver(copy)
            if message is not None or copy is None or self._next() is copy:
                return message  # what is first and is not handed over may be later

    def _check_receive(self) -> None:
        self.session.ensure_open()
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
        loop = self._broker.loop
        until = loop.scheduler.now + wait if wait else None
        message = self.poll()
        if message is not None:
            return message
        with loop.deadline(until):
            while (until is None or loop.scheduler.now < until) and loop.step():
                message = self._poll()
                if message is not None:
                    return message
        return None

    def _next(self) -> Copy | None:
        """The copy that would be handed over next."""
        first = self._deliverable.first()
        if first is None:
            return None
        facts: StateFacts = first.automaton.facts[first.state]
        if not facts.delivered_first:  # the last one that was handed over: it is told of the next
            first = next((copy for copy in self._deliverable.smallest(None) if copy.facts.delivered_first), None)
            if first is None:
                return None
            facts = first.facts
        return first if facts.delivery_event is not None or facts.acknowledgeable else None

    def _deliver(self, copy: Copy) -> Message | None:
        """Give ``copy`` to the application; ``None`` if the acknowledgement that has to come first is in doubt."""
        count = copy.dispatch_count
        if self._session_acks and copy.facts.delivery_event is None and self._acknowledge_first(copy):
            return self._delivered(copy, count)
        event = copy.facts.delivery_event
        if event is None:
            return None
        if self.session.transacted:
            self.session.begin()
        return self._delivered(copy, count) if self._run(self._requests[event.name], copy) else None

    def _acknowledge_first(self, copy: Copy) -> bool:
        """Acknowledge a message that is then delivered; whether it has been, in one macro-step with that."""
        if self._broker.history is not None or self.session.transacted:
            self._acknowledge(copy)
            return False
        done = self._run(self._ack_and_deliver, copy)
        if done:
            self._wait_acknowledged(copy)
        return done == _BOTH

    def _delivered(self, copy: Copy, delivery_count: int) -> Message:
        """The application has the message now."""
        message = Message(self, copy, delivery_count)
        if self._broker.history is not None:
            self._log(message, "delivered", redelivered=message.redelivered, delivery_count=message.delivery_count)
        copy.delivery = message
        self._current = self._last = message
        return message

    @property
    def has_listener(self) -> bool:
        """Whether messages are pushed to a listener."""
        return self.listener is not None

    def pump(self) -> None:
        """Call the listener for the messages that have arrived."""
        session = self.session
        if self.listener is None or session.closed:
            return
        if session.is_busy:
            session.listener_skipped = True
            return
        session.is_busy = True
        try:
            while not session.listener_busy() and (copy := self._next()) is not None:
                session.finish_processing()
                message = self._deliver(copy)
                if message is not None:
                    self._call(message)
                elif self._next() is copy:
                    break  # a call of the session is waiting; it looks again when it returns
        finally:
            session.resume_listeners()

    def schedule_pump(self) -> None:
        """Call the listener, if there is one, for the messages that have had to wait."""
        if self.listener is not None and not self.closed:
            self._broker.loop.callbacks.append(self.pump)

    def _call(self, message: Message) -> None:
        if self.listener is None:
            return
        try:
            self.listener(message)
        except Exception as error:  # noqa: BLE001 - whatever a listener throws is a listener exception (JMS 3.1, 8.7)
            self._failed(message, error)
        else:
            if not self._is_deferred:
                self.complete()

    def done(self, message: Message, error: Exception | None = None) -> None:
        """A :class:`DeferredListener` listener is done with ``message``, or has failed with ``error``."""
        if self._current is message:
            if error is None:
                self.complete()
            else:
                self._failed(message, error)
        self.session.release_closed_consumers()
        for consumer in self.session.consumers:
            consumer.pump()

    def _failed(self, message: Message, error: Exception) -> None:
        if self._current is not message:
            return
        self._current = None
        self._log(message, "failed", error=repr(error))
        self._broker.loop.perform(Event.LISTENER_EXCEPTION, message.copy)
        if self._requeues_failed:
            self._broker.loop.perform(Event.REQUEUE, message.copy)
        if self._recovers_failed:
            self.session.give_back()
        self._acknowledge_by_session(message)
        self._broker.loop.run_to_quiescence()

    def complete(self) -> None:
        """The application is done with the message that it had last."""
        message = self._current
        if message is None:
            return
        self._current = None
        if self._broker.history is not None:
            self._log(message, "processed")
            steps = 0
        else:
            steps = self._run(self._complete_request, message.copy)
        if steps == _BOTH:
            self._wait_acknowledged(message.copy)
        elif steps or self._is_done_with(message):
            self._acknowledge_by_session(message)

    def _is_done_with(self, message: Message) -> bool:
        """Tell the machines so; whether they wait for an acknowledgement of it."""
        loop = self._broker.loop
        waited_for = loop.perform(Event.PROCESSED, message.copy)
        if not waited_for:
            loop.perform(Event.PROCESSED_IN_VAIN, message.copy)
        return waited_for

    def abandon(self) -> None:
        """The application does not go on with the message that it had last, which will come again."""
        message, self._current = self._current, None
        if message is not None:
            self._is_done_with(message)

    def _acknowledge_by_session(self, message: Message) -> None:
        if self._session_acks:
            if message.copy.delivery is message and message.copy.facts.acknowledgeable:
                self._acknowledge(message.copy)
        elif self._ack_by is AckFrom.LIBRARY_LAZILY:
            self._acknowledge_lazily(message)

    def acknowledge(self, message: Message) -> None:
        """See :meth:`Message.acknowledge`."""
        self.session.ensure_open()
        instance_of("message", Message, message)
        if self._ack_by is not AckFrom.APPLICATION:
            return
        self.session.finish_processing()
        with self.session.without_listeners():  # what comes during the call is not covered by it
            whole = self._scope == "session"
            covered = self._acknowledge_covered(message, rest=whole)
            if whole or (covered and self._scope != "message"):
                covered = self.session.acknowledge_others(self) or covered
            if not covered:
                raise IllegalStateException(f"acknowledge() of {message.id}: {self._refusal_of(message)}")
        self.session.schedule_listeners()
        self.session.release_closed_consumers()
        if message.in_doubt:
            raise OutcomeUnknown(f"the connection broke before the broker answered; {message.id} may come again")

    def close(self) -> None:
        """Close it: it is sent nothing more, and its listener is not called any more (JMS 3.1, 8.8).

        What the application has had of it stays with the session, which acknowledges it, commits it or has it delivered
        again, unless ``closed_consumer_gives_back``.  What the library has had alone goes back to the queue: at once,
        or where the session has something of this consumer to settle, with that (as ActiveMQ's does in a transaction).
        A listener may close its own consumer, and goes on to its end.  Closing it twice is harmless.

        Raises :class:`IllegalStateException` from another thread than the broker's.
        """
        self._broker.check_use()
        if not self.closed and not self.session.closed:
            self.session.close_consumer(self)

    def acknowledge_last(self) -> bool:
        """Another consumer of the session is acknowledged, and that covers what this one has had, if anything."""
        last, self._last = self._last, None
        return last is not None and self._acknowledge_covered(last, rest=True)

    def _acknowledge_lazily(self, message: Message) -> None:
        """Acknowledge it with a batch, or when there is nothing else to do."""
        self._lazy.append(message)
        self._broker.lazy_consumers[self] = None
        if len(self._lazy) >= self._lazy_batch:
            self.flush_lazy_acks()

    def flush_lazy_acks(self) -> bool:
        """Send the lazy acknowledgements now; return whether one was not requeued meanwhile."""
        self._broker.lazy_consumers.pop(self, None)
        waiting, self._lazy = self._lazy, []
        return bool(sum(self._acknowledge_covered(message, rest=False) for message in reversed(waiting)))

    def _acknowledge_covered(self, message: Message, *, rest: bool) -> bool:
        """Acknowledge ``message``; if it was given back, the last of the rest that this consumer has had, or nothing.

        What was given back is another delivery when it comes again, to another session perhaps, which acknowledges it.
        """
        if message.copy.delivery is message and self._acknowledge(message.copy, scope=self._scope):
            return True
        held = self._broker.stepper.copies_of(self.receiver) if rest else []
        return any(copy.delivery is not None and self._acknowledge(copy, scope=self._scope) for copy in reversed(held))

    def _refusal_of(self, message: Message) -> str:
        if message.copy.delivery is not message:
            return "it is acknowledged already, or it was given back and delivered again since"
        row = self._broker.stepper.refusal()
        return f"{row.because} ({row.place})"

    def _acknowledge(self, copy: Copy, *, scope: str = "message") -> bool:
        """Send the acknowledgement and wait if the tables say that the call does; ``False`` if they refuse it."""
        broker = self._broker
        if broker.history is not None:
            if not broker.stepper.is_enabled(broker.stepper.events[Event.ACKNOWLEDGE], copy):
                return False
            name = self.receiver.name
            broker.engine.effects.log_copy(copy, self.session.process, "acknowledge", session=name, scope=scope)
        if not broker.loop.perform(Event.ACKNOWLEDGE, copy):
            return False
        self._wait_acknowledged(copy)
        return True

    def _wait_acknowledged(self, copy: Copy) -> None:
        """Wait if the tables say that the call does."""
        facts = copy.facts
        if facts.ack_pending and facts.delivery_event is None:
            self._broker.wait(
                lambda: not (_ack_pending(copy) or self._covered_pending()),
                "an acknowledgement",
                "acknowledge",
                self.session,
                copy.message,
            )
        else:
            self._broker.loop.run_to_quiescence()

    def _covered_pending(self) -> bool:
        """Whether something that the acknowledgement covers has no answer yet."""
        return self._scope != "message" and any(map(_ack_pending, self._broker.stepper.copies_of(self.receiver)))

    def _log(self, message: Message, event: str, **fields: object) -> None:
        session = self.session
        if self._broker.history is not None:
            self._broker.engine.effects.log_copy(
                message.copy,
                session.process,
                event,
                session=self.receiver.name,
                transaction=session.transaction if session.transacted else None,
                **fields,
            )


def _delivery_event(facts: StateFacts) -> BoundEvent | None:
    """The event by which a copy in this state is handed over."""
    return facts.delivery_event


def _ack_pending(copy: Copy) -> bool:
    """Return whether the acknowledging call has not returned: the messages that it released may be handed over."""
    facts = copy.facts
    return facts.ack_pending and facts.delivery_event is None


Listener = Callable[[Message], object]
"""What is called with each message; an exception is a listener exception."""


class DeferredListener:
    """A listener that goes on after the call has returned; :meth:`Consumer.done` says when it is done."""

    def __init__(self, call: Callable[[Message], object]) -> None:
        """``call`` begins the work, and must not raise."""
        self._call = call

    def __call__(self, message: Message) -> object:
        """Begin."""
        return self._call(message)
