"""A session: producers, consumers, and the transaction or the acknowledgements that they share."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from threading import get_ident

from ackfsm.engine.arguments import callback_of
from ackfsm.engine.browser import Browser
from ackfsm.engine.consumer import Consumer, DeferredListener, Listener
from ackfsm.engine.context import BrokerContext
from ackfsm.engine.core.automaton import REFUSED
from ackfsm.engine.core.errors import IllegalStateException, OutcomeUnknown, Stuck, TransactionRolledBackException
from ackfsm.engine.core.instances import Link, Queue, ReceiverLink, SenderLink, Sent, SessionEnd, SessionLinks
from ackfsm.engine.core.model import Role
from ackfsm.engine.producer import Producer
from ackfsm.support.closing import Closing
from ackfsm.tables.names import (
    LINK_FAULTS,
    AckCall,
    Agent,
    CommitFrame,
    Completion,
    Condition,
    ConsumerTransaction,
    Event,
    Machine,
    Process,
    Transaction,
)
from ackfsm.terms import Configuration, DeliveryMode, SendMode, parse_value

_OUTCOMES = ("committed", "rolled_back", "commit_in_doubt")
"""How a transaction ends; where its links disagree the last one of these counts."""


class Session(Closing):
    """A session.  ``Connection.session`` makes it; it is closed when it is left as a context."""

    def __init__(  # noqa: PLR0913 - what a connection gives its sessions
        self,
        broker: BrokerContext,
        process: str,
        name: str,
        settings: Mapping[str, object],
        consumed: dict[tuple[Configuration, str], None],
        *,
        api: str | None,
    ) -> None:
        """A session of the client ``process``, which uses ``api`` and records its consumption in ``consumed``."""
        self.broker = broker
        self.process = process
        self.name = name
        self.api = api
        self._settings = dict(settings)
        self._configuration = broker.configure(settings, api)
        self._by_delivery_mode = {self._configuration.delivery_mode: self._configuration}
        self._transacted = self._holds(Condition.TRANSACTED, self._configuration)
        self._completes_sends = False
        self.transaction = broker.engine.queues.new_transaction()
        self._consumed = consumed
        self._links = SessionLinks()
        self.senders = self._links.senders
        self.consumers: list[Consumer] = []
        self._deferred_listeners: list[Consumer] = []
        self._closed_consumers: list[Consumer] = []
        self.closed = False
        self.stopped = False
        self.is_busy = self.listener_skipped = False
        self._began = False
        self._outcome = "committed"

    def _holds(self, condition: Condition, configuration: Configuration) -> bool:
        specification = self.broker.specification
        return specification.conditions[condition].holds(specification.environment(configuration))

    @property
    def configuration(self) -> Configuration:
        """Return the session's settings, with its acknowledgement mode; they never change (JMS 3.1, 6.2.10)."""
        return self._configuration

    @property
    def transacted(self) -> bool:
        """Whether the session sends and acknowledges in transactions, as long as it lives."""
        return self._transacted

    def ensure_open(self) -> None:
        """Raise :class:`IllegalStateException` if the session is closed, or another thread uses it."""
        if get_ident() != self.broker.thread:
            self.broker.check_use()
        if self.closed:
            raise IllegalStateException(f"session {self.name} is closed; make another with connection.session()")

    # Producers and consumers

    def producer(
        self,
        queue: str | Queue,
        *,
        on_outcome: Callable[[Sent], None] | None = None,
        delivery_mode: str | None = None,
    ) -> Producer:
        """Something that sends to ``queue``; ``on_outcome`` hears what becomes of each message.

        ``delivery_mode`` is that of the messages that have none of their own (JMS 3.1, 7.7), by default the session's.
        Raises :class:`ackfsm.terms.InputError` for one that the system does not have.
        """
        self.ensure_open()
        hear = callback_of("on_outcome", on_outcome)
        return Producer(self, self.broker, self._queue(queue), hear, delivery_mode)

    def consumer(self, queue: str | Queue, *, listener: Listener | None = None) -> Consumer:
        """Something that consumes from ``queue``: by ``receive()``, or with a ``listener`` that is called.

        Raises :class:`IllegalStateException` if the session consumes in the other way already (JMS 3.1, 4.4.6).
        """
        self.ensure_open()
        callback_of("listener", listener)
        consumption = "receive" if listener is None else "listener"
        for other in self.consumers:
            if not other.closed and other.receiver.configuration.consumption != consumption:
                raise IllegalStateException(
                    f"session {self.name} consumes in the other way; use another session for this"
                )
        source = self._queue(queue)
        self._wait_until_connected(f"a consumer of {self.name}")
        settings = {key: value for key, value in self.configuration.as_dict().items() if key != "profile"}
        configuration = self.broker.configure({**settings, "consumption": consumption}, self.api)
        self.broker.loop.finish_subscription(source)
        receiver = self.broker.engine.links.receiver(self._end(configuration), source)
        receiver.transaction = self.transaction
        made = receiver.consumer = Consumer(self, self.broker, source, receiver, listener)
        self.consumers.append(made)
        self._consumed[configuration, source.name] = None
        if isinstance(listener, DeferredListener):
            self._deferred_listeners.append(made)
        source.consumers.append(receiver)
        self.broker.engine.dispatcher.notify(source)
        self.broker.loop.run_to_quiescence()
        return made

    def browser(self, queue: str | Queue) -> Browser:
        """Something to look into ``queue`` with: iterating over it consumes nothing.

        Raises :class:`IllegalStateException` if the session is closed.
        """
        self.ensure_open()
        return Browser(self, self.broker, self._queue(queue))

    def _queue(self, queue: str | Queue) -> Queue:
        return self.broker.own_queue(queue) if isinstance(queue, Queue) else self.broker.queue(queue)

    def sender_link(self, delivery_mode: str | None = None) -> SenderLink:
        """The sender link for messages of this delivery mode, by default the session's.

        Raises :class:`ackfsm.terms.InputError` for a delivery mode that does not exist, or that the system or the
        programming interface does not have.
        """
        configuration = self._configuration if delivery_mode is None else self._configuration_for(delivery_mode)
        if configuration not in self.senders:
            self._wait_until_connected(f"a producer of {self.name}")
            made = self.broker.engine.links.sender(self._end(configuration))
            made.transaction = self.transaction
            self._completes_sends |= self._holds(Condition.COMPLETES_TRANSACTED_SENDS, configuration)
        return self.senders[configuration]

    def _configuration_for(self, delivery_mode: str) -> Configuration:
        """Return the settings of messages of this mode: its defaults hold where none is chosen.

        But where a send of the session waits, one of these does too: a history is judged by the settings of its header.
        """
        mode = DeliveryMode(str(parse_value("delivery_mode", delivery_mode)))
        if mode not in self._by_delivery_mode:
            found = self.broker.configure({**self._settings, "delivery_mode": mode}, self.api)
            if found.send_mode is SendMode.UNCONFIRMED:
                found = dataclasses.replace(found, send_mode=self._configuration.send_mode)
            self._by_delivery_mode[mode] = found
        return self._by_delivery_mode[mode]

    def _end(self, configuration: Configuration) -> SessionEnd:
        return SessionEnd(self._links, self, self.process, self.name, configuration)

    def _wait_until_connected(self, doing: str) -> None:
        """A new link waits for the broker, and for the connection that it shares with the others."""
        self.broker.wait_until_running(doing)
        if not all(map(_is_connected, self.links())):
            self.broker.wait(lambda: all(map(_is_connected, self.links())), doing)

    def finish_processing(self) -> None:
        """The application is done with its messages."""
        for consumer in self.consumers:
            if consumer.is_busy:
                consumer.complete()

    def listener_busy(self) -> bool:
        """Whether a listener is still busy after its call: a session calls one at a time (JMS 3.1, 6.2.5)."""
        return bool(self._deferred_listeners) and any(consumer.is_busy for consumer in self._deferred_listeners)

    def acknowledge_others(self, of: Consumer) -> bool:
        """Acknowledge for the whole session; return whether the other consumers had anything."""
        asked = [consumer.acknowledge_last() for consumer in self.consumers if consumer is not of]
        return any(asked)

    @contextlib.contextmanager
    def without_listeners(self) -> Iterator[None]:
        """Call no listener meanwhile: a session has one thread of control (JMS 3.1, 6.2.5)."""
        before, self.is_busy = self.is_busy, True
        try:
            yield
        finally:
            if not before:
                self.resume_listeners()

    def resume_listeners(self) -> None:
        """The call is over: call the listeners for the messages that have come meanwhile."""
        self.release_closed_consumers()
        self.is_busy = False
        if self.listener_skipped:
            self.listener_skipped = False
            self.schedule_listeners()

    def set_stopped(self, *, stopped: bool) -> None:
        """Deliver messages, or deliver none."""
        self.stopped = stopped
        for consumer in self.consumers:
            consumer.update_source()

    def schedule_listeners(self) -> None:
        """Call the listeners for the messages that have had to wait."""
        for consumer in self.consumers:
            consumer.schedule_pump()

    def close_consumer(self, consumer: Consumer) -> None:
        """See :meth:`Consumer.close`."""
        with self.without_listeners():
            consumer.closed = True
            consumer.update_source()
            consumer.queue.consumers.remove(consumer.receiver)
            self._closed_consumers.append(consumer)
            self.broker.log(self.process, "close", session=self.name, queue=consumer.queue.name)
            if consumer.listener is None or not consumer.is_busy:
                consumer.complete()
            self.broker.loop.run_to_quiescence()
            self.release_closed_consumers()

    def release_closed_consumers(self) -> None:
        """Closed consumers requeue what only the library has had, once nothing else of theirs is open."""
        if not self._closed_consumers:
            return
        for consumer in self._closed_consumers:
            consumer.flush_lazy_acks()
        for consumer in tuple(self._closed_consumers):
            if not self.closed and consumer in self._closed_consumers and not self._has_unsettled(consumer):
                self._closed_consumers.remove(consumer)
                self._close_receiver(consumer)
                self._detach(consumer)

    def _has_unsettled(self, consumer: Consumer) -> bool:
        """Whether the application is busy with something, or has something to settle, of what that consumer gave it."""
        if consumer.is_busy or _has_acknowledged(consumer.receiver):
            return True
        if self._holds(Condition.CLOSE_GIVES_BACK, consumer.receiver.configuration):
            return False
        copies = self.broker.stepper.copies_of(consumer.receiver)
        return any(copy.state_of(Machine.ACK_CALL) != AckCall.NONE for copy in copies)

    def _detach(self, consumer: Consumer) -> None:
        if self.closed:
            return  # its process has died meanwhile
        consumer.detached = True
        self.broker.engine.detach(consumer.receiver)
        self._links.receivers.remove(consumer.receiver)
        self.consumers = [other for other in self.consumers if other is not consumer]  # a loop may be going through it
        self._deferred_listeners = [other for other in self._deferred_listeners if other is not consumer]
        self.broker.loop.run_to_quiescence()

    # Transactions and recovery

    def begin(self) -> None:
        """Record in the history that a transaction is open, when the first work is done in it."""
        if self.transacted and not self._began:
            self._began = True
            self._outcome = "committed"
            self.broker.log(self.process, "begin", session=self.name, transaction=self.transaction)

    def commit(self) -> None:
        """Make the sends and deliveries since the last commit hold together.

        Raises :class:`TransactionRolledBackException` if the broker could not, :class:`OutcomeUnknown` if nobody
        knows, :class:`IllegalStateException` if the session is not transacted.
        """
        self._in_transaction()
        if self._began:
            with self.without_listeners():
                self._commit()

    def _commit(self) -> None:
        self.finish_processing()
        self.broker.loop.run_to_quiescence()
        self._await_completions("commit")
        self.ensure_open()  # its process may have died in between
        calls: list[tuple[Link, Event]] = [(s, Event.COMMIT_CALLED) for s in self.senders.values() if _has_sent(s)]
        receivers = [consumer.receiver for consumer in self.consumers]
        calls += [(each, Event.CONSUMER_COMMIT_CALLED) for each in receivers if _has_acknowledged(each)]
        self.broker.log(self.process, "commit", session=self.name, transaction=self.transaction)
        if len(calls) > 1 and self._is_rejected():
            self.record_outcome("rolled_back")
        stepper = self.broker.stepper
        if self._outcome != "committed" or not all(
            stepper.is_link_enabled(stepper.events[event], link) for link, event in calls
        ):
            self._roll_back("commit")  # a part of the work is lost, so that all of it is
            self._finish_transaction(asked="committed")
        for link, event in calls:
            if not self.broker.loop.perform_link_event(event, link):
                self.record_outcome("rolled_back")
        self.broker.wait(lambda: not self._outcome_pending(), f"commit() of {self.name}", "commit", self)
        self._finish_transaction(asked="committed")

    def rollback(self) -> None:
        """Undo the sends and deliveries since the last commit; the messages are delivered again."""
        self._in_transaction()
        if not self._began:
            return
        with self.without_listeners():
            self._await_completions("rollback")
            self.ensure_open()
            self.broker.log(self.process, "rollback", session=self.name, transaction=self.transaction)
            self._roll_back("rollback")
            self._finish_transaction(asked="rolled_back")

    def _await_completions(self, call: str) -> None:
        """Wait until the callbacks of the transaction's sends have returned (JMS 3.1, 7.3.4)."""
        if self._completes_sends:
            self.broker.wait(self._all_complete, f"{call}() of {self.name}, which waits for its sends,", call, self)

    def _all_complete(self) -> bool:
        copies = (copy for sender in self.senders.values() for copy in self.broker.stepper.copies_of(sender))
        return all(copy.state_of(Machine.COMPLETION) == Completion.NONE for copy in copies)

    def _is_rejected(self) -> bool:
        """Whether the broker, when it has read all that was sent, has rejected a part of it.

        One link would learn it from its commit; another, of whose work nothing is rejected, has to know it before.
        """
        stepper, senders = self.broker.stepper, self.senders.values()
        execute = stepper.events[Event.EXECUTE_COMMIT].signal
        self.broker.loop.wait(
            lambda: all(copy.successor(execute) != REFUSED for each in senders for copy in stepper.copies_of(each))
        )
        frames = (sender.groups[Role.PRODUCER].state_of(Machine.COMMIT_FRAME) for sender in senders)
        return CommitFrame.DOOMED in frames

    def _roll_back(self, call: str) -> None:
        self.record_outcome("rolled_back")
        for sender in self.senders.values():
            self.broker.loop.perform_link_event(Event.ROLLBACK, sender)
        if self.consumers and not self.configuration.rollback_requeues:
            self.broker.log(self.process, "recover", session=self.name)  # as a client of such a broker has to
        for consumer in self.consumers:
            self._recover_receiver(consumer.receiver, call)
            consumer.abandon()
        self.broker.wait(
            lambda: not any(map(_has_sent, self.senders.values())), f"rollback() of {self.name}", call, self
        )

    def _recover_receiver(self, receiver: ReceiverLink, call: str) -> None:
        """Ask for all unacknowledged messages again; without a connection the broker has them back.

        A transaction that failed is rolled back before; not every broker gives back by that what was delivered.
        """
        self.broker.loop.run_to_quiescence()
        self.broker.loop.perform_link_event(Event.CONSUMER_ROLLBACK, receiver)
        self._perform_when_read(Event.RECOVER, receiver, call)

    def _close_receiver(self, consumer: Consumer) -> None:
        """Give back its messages; without a connection, drop the ones on their way to it."""
        self.broker.loop.run_to_quiescence()
        if not self._perform_when_read(Event.CONSUMER_CLOSE, consumer.receiver, "close"):
            consumer.detached = True  # to close is no fault
            self.broker.loop.perform_link_event(Event.CONSUMER_CRASH, consumer.receiver)

    def _perform_when_read(self, event: Event, receiver: ReceiverLink, call: str) -> bool:
        """Perform ``event`` as soon as the frames before have been read; ``False`` if there is no connection."""
        loop = self.broker.loop
        while not loop.perform_link_event(event, receiver):
            if not _is_connected(receiver):
                return False
            if not loop.step():
                row = self.broker.stepper.refusal()
                self.broker.log_waiting(call, self)
                raise Stuck(f"session {self.name} cannot give back what it has: {row.because} ({row.place})")
        return True

    def recover(self) -> None:
        """Have everything that is not acknowledged delivered again, flagged (JMS 3.1, 6.2.10).

        Raises :class:`IllegalStateException` in a transacted session.
        """
        self.ensure_open()
        if self.transacted:
            raise IllegalStateException("recover() is not for transacted sessions; use rollback() (JMS 3.1, 6.2.10)")
        with self.without_listeners():
            self.finish_processing()
            self.broker.log(self.process, "recover", session=self.name)
            self.give_back()
        self.broker.loop.run_to_quiescence()

    def give_back(self) -> None:
        """Have everything that is not acknowledged delivered again: the application's recovery, or the library's."""
        for consumer in self.consumers:
            self._recover_receiver(consumer.receiver, "recover")
        self.release_closed_consumers()

    def record_outcome(self, outcome: str) -> None:
        """One link's part of the transaction has ended so: the worst counts."""
        self._outcome = max(self._outcome, outcome, key=_OUTCOMES.index)

    def _in_transaction(self) -> None:
        self.ensure_open()
        if not self.transacted:
            raise IllegalStateException(f"session {self.name} is not transacted; make it with SESSION_TRANSACTED")

    def _outcome_pending(self) -> bool:
        return any(map(_has_sent, self.senders.values())) or any(_has_acknowledged(c.receiver) for c in self.consumers)

    def _finish_transaction(self, *, asked: str) -> None:
        self.ensure_open()
        outcome = self._outcome
        self.broker.log(self.process, outcome, session=self.name, transaction=self.transaction)
        self._next_transaction()
        self.release_closed_consumers()
        self.schedule_listeners()
        if outcome == "commit_in_doubt":
            raise OutcomeUnknown(f"commit() of {self.name} failed, and nobody knows whether it was executed")
        if outcome != asked:
            raise TransactionRolledBackException(f"the transaction of {self.name} is rolled back")

    def _next_transaction(self) -> None:
        self._began = False
        self.transaction = self.broker.engine.queues.new_transaction()
        for link in self.links():
            link.transaction = self.transaction

    @property
    def has_open_transaction(self) -> bool:
        """Whether work has been done in a transaction that is not over."""
        return self._began

    # The end, and what goes wrong

    def close(self) -> None:
        """Close it: unacknowledged messages are delivered again, and an open transaction is rolled back."""
        if self.closed:
            return
        self.ensure_open()
        with self.without_listeners():
            self._close()

    def _close(self) -> None:
        self.finish_processing()
        self.broker.loop.run_to_quiescence()
        for consumer in self.consumers:
            consumer.flush_lazy_acks()
        open_ = self.transaction if self._began else None
        for consumer in self.consumers:
            if not consumer.closed:
                consumer.queue.consumers.remove(consumer.receiver)
        self.broker.loop.wait(
            lambda: not any(sender.open or self._has_unread_frames(sender) for sender in self.senders.values())
        )
        for sender in self.senders.values():
            self.broker.loop.perform_link_event(Event.ROLLBACK, sender)
        for consumer in self.consumers:
            self._close_receiver(consumer)
        self.broker.loop.wait(lambda: not any(map(_has_sent, self.senders.values())))
        self.broker.log(self.process, "close", session=self.name, transaction=open_)
        self._detach_all()
        self.broker.loop.run_to_quiescence()

    def _has_unread_frames(self, sender: SenderLink) -> bool:
        """Return whether the broker has still to read frames from there, before the closing one."""
        members = sender.index(self.broker.stepper.model.all_copies("producer")).members
        return any(Agent.PRODUCER_TO_BROKER in copy.facts.agents for copy in members.values())

    def lose_connection(self) -> None:
        """The connection breaks."""
        self.fault("link_loss")

    def fault(self, what: str) -> None:
        """``link_loss`` or ``crash``: of the connection or of the process that holds the session."""
        self.broker.loop.finish_executing()
        for link in self.links():
            self.broker.loop.perform_link_event(LINK_FAULTS[link.kind, what], link)
        if what == "crash":
            for consumer in self.consumers:
                consumer.abandon()
                if consumer.receiver in consumer.queue.consumers:  # it may die as it closes
                    consumer.queue.consumers.remove(consumer.receiver)
            self._detach_all()
        self.broker.loop.run_to_quiescence()

    def _detach_all(self) -> None:
        self.closed = True
        for link in self.links():
            self.broker.engine.detach(link)

    def links(self) -> tuple[Link, ...]:
        """The links of the session: senders, then receivers."""
        return self._links.all()


def _is_connected(link: Link) -> bool:
    if link.kind == "producer":
        return link.groups[Role.PRODUCER].state_of(Machine.PRODUCER_LINK) == Process.UP
    return link.groups[Role.CONSUMER].state_of(Machine.CONSUMER_LINK) == Process.UP


def _has_sent(sender: SenderLink) -> bool:
    return sender.groups[Role.PRODUCER].state_of(Machine.TRANSACTION) != Transaction.IDLE


def _has_acknowledged(receiver: ReceiverLink) -> bool:
    return receiver.groups[Role.CONSUMER].state_of(Machine.CONSUMER_TRANSACTION) != ConsumerTransaction.IDLE
