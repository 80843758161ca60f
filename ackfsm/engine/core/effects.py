"""The side effects of events: the outcome of a send, a line of the history, a call of a listener."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from ackfsm.engine.core.dead_letters import DeadLetters
from ackfsm.engine.core.host import BROKER, Host
from ackfsm.engine.core.instances import Copy, Link, Outcome, Queue, ReceiverLink, SenderLink
from ackfsm.engine.core.loop import RunLoop
from ackfsm.engine.core.model import Role
from ackfsm.engine.core.outages import Outages
from ackfsm.engine.core.queues import Queues
from ackfsm.engine.core.stepper import Effect
from ackfsm.engine.core.table import SendOutcome
from ackfsm.tables import Of, SignRow
from ackfsm.tables.names import (
    Agent,
    Condition,
    ConsumerSession,
    ConsumerTransaction,
    DuplicateId,
    Entry,
    Event,
    Machine,
    Record,
)
from ackfsm.terms import Configuration

_BROKER_FAULTS = (Event.BROKER_CRASH, Event.BROKER_KILL, Event.JOURNAL_FAILURE)
_LINK_FAULTS = (Event.PRODUCER_LINK_LOSS, Event.PRODUCER_CRASH, Event.CONSUMER_LINK_LOSS, Event.CONSUMER_CRASH)
_LOST_WITH_LINK = frozenset({ConsumerTransaction.OPEN, ConsumerTransaction.FAILED})
"""A transaction in these states has acknowledgements that are gone when the connection is."""


class EventEffects:
    """Registers the effects of events, and of machines that come to a state."""

    def __init__(self, loop: RunLoop, queues: Queues, dead_letters: DeadLetters, outages: Outages, host: Host) -> None:
        self._loop = loop
        self._outages = outages
        self._stepper = loop.stepper
        self._dispatcher = loop.dispatcher
        self._dead_letters = dead_letters
        self._host = host
        model = self._stepper.model
        rows = ((event, model.specification.recording.row_of(event)) for event in model.table.agents)
        self._written = {
            event: row
            for event, row in rows
            if row is not None and model.table.agents[event] != Agent.APPLICATION  # whose calls write their lines
        }
        self._stepper.event_effects |= dict(self._event_effects())
        for machine, state, effect in self._state_effects(queues):
            self._stepper.state_effects.setdefault((machine, state), []).append(effect)

    def _state_effects(self, queues: Queues) -> Iterator[tuple[str, str, Effect]]:
        for state in (Entry.READY, Entry.STAGED, Entry.COMMITTING):
            yield Machine.ENTRY, state, Queue.enter
        yield Machine.ENTRY, Entry.REMOVED, Queue.remove
        yield Machine.ENTRY, Entry.NOT_RECOVERED, Queue.lose
        yield Machine.ENTRY, Entry.DISCARDED, Queue.leave
        yield Machine.ACK_RECORD, Record.DURABLE, self._dead_letters.complete_move
        for known in (DuplicateId.UNWRITTEN, DuplicateId.UNSYNCED, DuplicateId.KNOWN):
            yield Machine.DUPLICATE_ID, known, queues.remember_id
        yield Machine.DUPLICATE_ID, DuplicateId.UNKNOWN, queues.forget_id

    def _event_effects(self) -> Iterator[tuple[str, Effect]]:
        table = self._stepper.model.table
        for event, row in table.send_outcomes.items():
            effect = self._outcome_effect(row, self._written.get(event))
            yield event, self._unless_it_completes_later(effect) if event == Event.SEND_IN_TRANSACTION else effect
        for event, sign in self._written.items():
            if sign.of is Of.TRANSACTION:
                yield event, self._transaction_effect(sign.line)
        for fault in _LINK_FAULTS:
            yield fault, self._link_fault(fault)
        for fault in _BROKER_FAULTS:
            yield fault, self._work_lost
        yield Event.LISTENER_EXCEPTION, self._listener_exception
        yield Event.REJECTION, self._rejected
        yield Event.DISPATCH_FIRST, _dispatched_first
        yield Event.DISPATCH_AGAIN, _dispatched_again
        yield Event.ARRIVE, self._arrived
        yield Event.DELIVERED_CLEAR, self._delivery_effect(redelivered=False)
        yield Event.DELIVERED_FLAGGED, self._delivery_effect(redelivered=True)
        yield Event.SETTLE, self._settled
        yield Event.REQUEUE, self._settled
        yield Event.CREDIT_RETURNED, self._credit_freed
        yield Event.RECOVER, self._deliveries_requeued
        yield Event.CONSUMER_CLOSE, self._deliveries_requeued
        yield Event.CONSUMER_ROLLBACK, self._deliveries_requeued
        yield Event.PRODUCER_LINK_UP, self._outages.over
        yield Event.PRODUCER_REATTACHED, self._outages.over
        yield Event.CONSUMER_LINK_UP, self._reconnected
        yield Event.CONSUMER_REATTACHED, self._reattached
        yield Event.ACKNOWLEDGED, self._acknowledged
        yield Event.ACK_IN_DOUBT, self._ack_in_doubt
        yield Event.DEAD_LETTERED, self._dead_lettered
        yield Event.DESTROYED, self._destroyed

    def log_copy(self, copy: Copy, process: str, event: str, session: str | None = None, **fields: object) -> None:
        """A line of the history about ``copy``, unless it is a dead letter."""
        if not self._dead_letters.is_letter(copy):
            message = copy.message
            self._host.log(process, event, session=session, queue=message.queue.name, message=message.id, **fields)

    # Sends

    def _outcome_effect(self, row: SendOutcome, sign: SignRow | None) -> Callable[[Copy], None]:
        outcome, host, callbacks = Outcome(row.outcome), self._host, self._loop.callbacks
        line = None if sign is None else sign.line
        reported = not row.implied

        def resolved(copy: Copy) -> None:
            message = copy.message
            message.outcome = outcome
            sender = _sender_of(copy)
            sender.open.pop(message, None)
            if line is not None and host.history is not None:
                host.log(sender.process, line, session=sender.name, queue=message.queue.name, message=message.id)
            callback = message.on_outcome
            if callback is not None and reported:
                callbacks.append(lambda: callback(message))

        return resolved

    def _unless_it_completes_later(self, effect: Callable[[Copy], None]) -> Callable[[Copy], None]:
        """Return an effect that gives a send in a transaction its outcome, but for late callbacks.

        That is asked of its configuration and not of its state, which may be a later one by now.
        """
        specification = self._stepper.model.specification
        condition = specification.conditions[Condition.COMPLETES_TRANSACTED_SENDS]

        @functools.cache
        def completes_later(sent_under: Configuration) -> bool:
            return condition.holds(specification.environment(sent_under))

        def sent(copy: Copy) -> None:
            sent_under = copy.binding.send_config
            if sent_under is None or not completes_later(sent_under):
                effect(copy)

        return sent

    def _rejected(self, copy: Copy) -> None:
        copy.message.queue.rejected += 1
        self._host.log(_sender_of(copy).process, "fault", fault=Event.REJECTION.value, queue=copy.message.queue.name)

    # Deliveries

    def _arrived(self, copy: Copy) -> None:
        consumer = _receiver_of(copy).consumer
        if consumer is not None and consumer.has_listener:
            self._loop.callbacks.append(consumer.pump)

    def _delivery_effect(self, *, redelivered: bool) -> Callable[[Copy], None]:
        resume_reading, credit_freed = self._loop.resume_reading, self._credit_freed

        def delivered(copy: Copy) -> None:
            copy.redelivered = redelivered
            queue = copy.message.queue
            queue.delivered += 1
            if redelivered:
                queue.redelivered += 1
            _receiver_of(copy).hand_over(copy)
            credit_freed(copy)
            resume_reading()

        return delivered

    def _settled(self, copy: Copy) -> None:
        """The session has nothing of it any more."""
        if copy.place:
            copy.place = 0
            _receiver_of(copy).out_of_order.discard(copy)
        self._credit_freed(copy)

    def _credit_freed(self, copy: Copy) -> None:
        """A consumer may have credit for another message of the queue."""
        queue = copy.message.queue
        if queue.ready.members:
            self._dispatcher.notify(queue)

    def _listener_exception(self, copy: Copy) -> None:
        queue = None if self._dead_letters.is_letter(copy) else copy.message.queue.name  # of which no line may tell
        self._host.log(_receiver_of(copy).process, "fault", fault=Event.LISTENER_EXCEPTION.value, queue=queue)

    def _acknowledged(self, copy: Copy) -> None:
        if self._host.history is not None:
            self._log_receiver(copy, Event.ACKNOWLEDGED)

    def _ack_in_doubt(self, copy: Copy) -> None:
        if copy.delivery is not None:
            copy.delivery.in_doubt = True
        self._log_receiver(copy, Event.ACK_IN_DOUBT)

    def _log_receiver(self, copy: Copy, event: Event) -> None:
        receiver = _receiver_of(copy)
        sign = self._written[event]
        self.log_copy(copy, receiver.process, sign.line, session=receiver.name, **sign.writes)

    def _dead_lettered(self, copy: Copy) -> None:
        self._dead_letters.add(copy)
        self._destroyed(copy)

    def _destroyed(self, copy: Copy) -> None:
        """The history has no event of its own for it: a message that is dead-lettered may be kept or not."""
        queue = copy.message.queue
        queue.dead_lettered += 1
        self._dispatcher.notify(queue)
        self.log_copy(copy, BROKER, self._written[Event.DESTROYED].line)

    # Links

    def _transaction_effect(self, outcome: str) -> Callable[[Link], None]:
        def ended(link: Link) -> None:
            if link.owner is not None:
                link.owner.record_outcome(outcome)

        return ended

    def _deliveries_requeued(self, link: Link) -> None:
        """A consumer may have credit again, and begins to count its deliveries."""
        if isinstance(link, ReceiverLink):
            link.begin_anew()
            self._dispatcher.notify(link.queue)

    def _reconnected(self, link: Link) -> None:
        """A receiver is connected again: its messages of a finished transaction are not of the next."""
        self._outages.over(link)
        self._deliveries_requeued(link)
        self._loop.callbacks.append(lambda: self._roll_back_unless_open(link))

    def _reattached(self, link: Link) -> None:
        """A receiver has its session again: the queue may go on to dispatch to it."""
        self._outages.over(link)
        if isinstance(link, ReceiverLink):
            self._dispatcher.notify(link.queue)

    def _roll_back_unless_open(self, link: Link) -> None:
        if link.owner is not None and not link.owner.has_open_transaction:
            self._loop.perform_link_event(Event.CONSUMER_ROLLBACK, link)

    def _link_fault(self, fault: Event) -> Callable[[Link], None]:
        def gone(link: Link) -> None:
            if not link.is_closed:  # to close is no fault, connected or not
                self._outages.began(fault, link)
            self._work_lost(link)

        return gone

    def _work_lost(self, link: Link) -> None:
        """A connection is gone, and with it the acknowledgements of a transaction there."""
        for each in self._stepper.links if link is self._stepper.broker else (link,):
            if isinstance(each, ReceiverLink):
                group = each.groups[Role.CONSUMER]
                lost = group.state_of(Machine.CONSUMER_SESSION) != ConsumerSession.DETACHED
                state = group.state_of(Machine.CONSUMER_TRANSACTION)
                if each.owner is not None and lost and state in _LOST_WITH_LINK:
                    each.owner.record_outcome("rolled_back")


def _sender_of(copy: Copy) -> SenderLink:
    sender = copy.binding.sender
    if sender is None:
        raise AssertionError("an outcome without a sender")
    return sender


def _receiver_of(copy: Copy) -> ReceiverLink:
    receiver = copy.binding.receiver
    if receiver is None:
        raise AssertionError("a delivery without a receiver")
    return receiver


def _dispatched_first(copy: Copy) -> None:
    copy.dispatch_count, copy.mark_stored = 1, False


def _dispatched_again(copy: Copy) -> None:
    copy.dispatch_count, copy.mark_stored = max(copy.dispatch_count, 1) + 1, False
