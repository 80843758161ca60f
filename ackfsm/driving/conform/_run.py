"""Perform one program on an adapter: every call and its answer is recorded, and the effects of the faults."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Final, TypeVar

from ackfsm.driving.conform._adapter import (
    AckOutcome,
    Adapter,
    BrokerDownError,
    ClientClosedError,
    CommitOutcome,
    Delivery,
    ListenerHoldsError,
    SendOutcome,
    Strike,
    UndecidedError,
)
from ackfsm.driving.conform._claims import (
    BROKER_FAULTS,
    Claimed,
    Mode,
    Operation,
    acknowledged_by_application,
    closing_gives_back,
    scope_of,
)
from ackfsm.driving.conform._program import Cancel, Close, Inject, Program, Receive, Recover, Send, Step
from ackfsm.driving.conform._recorder import Recorder
from ackfsm.history.format import Event, Outcome
from ackfsm.terms import AckfsmError, AckMode, AckScope, Consumption, Fault, ListenerException

__all__ = ["Performed", "Run"]

_T = TypeVar("_T")

QUEUE: Final = "orders"
_NEMESIS, _BROKER = "nemesis", "broker"
_PATIENCE: Final = 3
"""So often a queue that is not empty is asked again before it counts as one that does not drain."""


@dataclasses.dataclass(frozen=True, slots=True)
class Performed:
    """What came of a program.

    Attributes:
        recorder: the history.
        struck: how many of its faults took effect while something was at stake.
        delivered: how many messages were handed over.
        open: why this run proves nothing, ``None`` if it may.
        without_effect: why a fault counts as one that did not strike, ``None`` if all did.
    """

    recorder: Recorder
    struck: int
    delivered: int
    open: str | None
    without_effect: str | None


class _OpenError(Exception):
    """The run cannot go on, and proves nothing."""


_GONE = (ClientClosedError, BrokerDownError)


class _Client:
    """The state of a client that lives."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.held: list[str] = []
        self.given_back: set[str] = set()
        """What it had on a connection that it has lost, unacknowledged.

        A line with the scope of a session would cover that too, so each message is acknowledged by itself then.
        """
        self.transaction: str | None = None
        self.may_be_gone = False
        self.link_lost = False
        self.must_roll_back = False
        """Its listener threw in the transaction, so that the message comes again only if that is rolled back."""

    def give_back(self) -> None:
        """Its unacknowledged messages come again."""
        self.given_back.update(self.held)
        self.held.clear()


class Run:
    def __init__(self, adapter: Adapter, claimed: Claimed, mode: Mode, wait: float) -> None:
        self.adapter, self.mode, self.wait = adapter, mode, wait
        self.has = claimed.claims.operations
        self.configuration = claimed.configurations[mode]
        self.scope = scope_of(claimed.specification, self.configuration)
        self.closing_gives_back = closing_gives_back(claimed.specification, self.configuration)
        self.transacted = mode.ack_mode is AckMode.SESSION_TRANSACTED
        self.by_application = acknowledged_by_application(mode.ack_mode)
        self.listens = mode.consumption is Consumption.LISTENER
        self.recorder = Recorder(QUEUE)
        self.producer: _Client | None = None
        self.consumers: dict[int, _Client] = {}
        self.made: dict[str, int] = {}
        self.sent = self.delivered = self.struck = self.transactions = 0
        self.unsettled: set[str] = set()
        self.without_effect: str | None = None

    # The run

    def go(self, program: Program) -> Performed:
        self.adapter.begin(self.mode, QUEUE)
        why = None
        try:
            for step in program.steps:
                self.step(step)
            self.drain()
        except (_OpenError, UndecidedError) as open_:
            why = str(open_)
        return Performed(self.recorder, self.struck, self.delivered, why, self.without_effect)

    def step(self, step: Step) -> None:
        match step:
            case Send():
                for _ in range(step.number):
                    self.send()
                if step.end and self.producer is not None:
                    end = self.commit if step.end == "commit" else self.rollback
                    end(self.producer)
            case Receive():
                self.receive_some(step)
            case Recover():
                self.recover(step.who)
            case Close():
                self.close(self.producer if step.who < 0 else self.consumers.get(step.who))
            case Cancel():
                self.cancel(self.consumer(step.who))
            case Inject():
                self.inject(step)

    # Clients

    def new(self, kind: str) -> _Client:
        self.made[kind] = self.made.get(kind, 0) + 1
        return _Client(f"{kind}-{self.made[kind]}")

    def sender(self) -> _Client:
        if self.producer is None:
            self.producer = self.new("producer")
        return self.producer

    def consumer(self, who: int) -> _Client:
        if who not in self.consumers:
            self.consumers[who] = self.new("consumer")
        return self.consumers[who]

    def forget(self, client: _Client) -> None:
        if self.producer is client:
            self.producer = None
        self.consumers = {who: each for who, each in self.consumers.items() if each is not client}

    def clients(self) -> list[_Client]:
        return [*self.consumers.values(), *([] if self.producer is None else [self.producer])]

    def gone(self, client: _Client, error: AckfsmError) -> None:
        """``client`` was answered that it is gone: its connection has broken."""
        if isinstance(error, BrokerDownError):
            raise _OpenError(f"{client.name} was told that the broker is down, and no fault had stopped it")
        if not client.may_be_gone:
            told = "it is closed" + (f" ({error})" if str(error) else "")
            raise _OpenError(f"{client.name} was told that {told}, and no fault had struck it")
        if client.link_lost:
            self.effective(client)
        self.recorder.add(client.name, Event.CLOSE, error="closed", transaction=client.transaction)
        self.forget(client)

    def done(self, client: _Client, call: Callable[[], None]) -> bool:
        """Make a call that has no outcome; return whether it was made, and ``client`` is not gone."""
        try:
            call()
        except _GONE as error:
            self.gone(client, error)
            return False
        return True

    def effective(self, client: _Client) -> None:
        """The lost connection of ``client`` has shown."""
        if client.link_lost:
            client.link_lost = False
            self.struck += 1

    # Sending

    def send(self, strike: Strike | None = None, again: str = "") -> None:
        """Send the next message, or ``again`` one that was sent."""
        client, message = self.sender(), again or f"m{self.sent + 1}"
        self.sent += not again
        self.begin(client)
        self.recorder.of_message(
            client.name,
            Event.RESEND if again else Event.SEND,
            message,
            delivery_mode=self.mode.delivery_mode.value,
            transaction=client.transaction,
        )
        self.unsettled.add(message)
        outcome = self.call(client, strike, lambda: self.adapter.send(client.name, QUEUE, message, strike))
        events = {SendOutcome.CONFIRMED: Event.CONFIRMED, SendOutcome.REJECTED: Event.REJECTED}
        event = Event.IN_DOUBT if outcome is None else events.get(outcome, Event.IN_DOUBT)
        definite = event is not Event.IN_DOUBT or outcome is SendOutcome.SENT
        says = outcome is not SendOutcome.SENT and not (self.transacted and event is not Event.REJECTED)
        tell = (lambda: self.recorder.of_message(client.name, event, message)) if says else None
        if outcome is SendOutcome.REJECTED:
            self.unsettled.discard(message)
        self.answered(client, strike, tell, definite=definite)

    def sent_ids(self) -> list[str]:
        """The messages that were sent so far."""
        return [f"m{number}" for number in range(1, self.sent + 1)]

    def begin(self, client: _Client) -> None:
        if self.transacted and client.transaction is None:
            self.transactions += 1
            client.transaction = f"t{self.transactions}"
            self.recorder.add(client.name, Event.BEGIN, transaction=client.transaction)

    def call(self, client: _Client, strike: Strike | None, make: Callable[[], _T]) -> _T | None:
        """The answer of a call; ``None`` if it failed because a fault, now or before, took client or broker away."""
        try:
            return make()
        except _GONE as error:
            if strike is None:
                self.failed = error
                if isinstance(error, BrokerDownError) or not client.may_be_gone:
                    self.gone(client, error)
            self.lost = client
            return None

    def answered(
        self, client: _Client, strike: Strike | None, tell: Callable[[], None] | None, *, definite: bool
    ) -> None:
        """Write down how a call ended, and the fault that struck it: after a definite answer, else before it."""
        closed, self.lost = self.lost is client, None
        if strike is None:
            if tell is not None:
                tell()
            if closed:
                self.gone(client, ClientClosedError())
            elif not definite:
                self.effective(client)
            return
        if definite and tell is not None:
            tell()
        dies = strike.fault in {Fault.PRODUCER_CRASH, Fault.CONSUMER_CRASH}
        self.tell(Event.FAULT, strike.fault, client)
        if not definite and tell is not None and not dies:
            tell()
        self.aftermath(strike.fault, client, at_stake=True, doubted=not definite)
        if closed and client in self.clients():
            self.gone(client, ClientClosedError())

    lost: _Client | None = None
    failed: AckfsmError | None = None

    # Consuming

    def receive(self, who: int, wait: float | None = None) -> tuple[_Client, Delivery] | None:
        client, wait = self.consumer(who), self.wait if wait is None else wait
        try:
            delivery = self.adapter.receive(client.name, QUEUE, wait)
        except _GONE as error:
            self.gone(client, error)
            client = self.consumer(who)
            try:
                delivery = self.adapter.receive(client.name, QUEUE, wait)
            except _GONE as again:
                raise _OpenError(f"{client.name}, which is new, was told: {_why(again)}") from None
        if delivery is None:
            return None
        self.begin(client)
        self.recorder.of_message(
            client.name,
            Event.DELIVERED,
            delivery.message,
            redelivered=delivery.redelivered,
            delivery_count=delivery.delivery_count,
            transaction=client.transaction,
        )
        self.delivered += 1
        client.given_back.discard(delivery.message)
        if delivery.redelivered:
            for each in self.consumers.values():
                self.effective(each)
        if not (self.transacted or self.by_application):
            self.unsettled.discard(delivery.message)
        return client, delivery

    def processed(self, client: _Client, message: str) -> None:
        self.recorder.of_message(client.name, Event.PROCESSED, message, transaction=client.transaction)
        client.held.append(message)

    def returned(self, client: _Client, message: str) -> None:
        """The listener returns."""
        if self.listens and client in self.clients():
            self.done(client, lambda: self.adapter.done(client.name, message, failed=False))

    def take(self, who: int, wait: float | None = None) -> tuple[_Client, str] | None:
        """Receive one and be done with it."""
        got = self.receive(who, wait)
        if got is None:
            return None
        client, delivery = got
        self.processed(client, delivery.message)
        return client, delivery.message

    def receive_some(self, step: Receive) -> None:
        for number in range(step.number):
            got = self.take(step.who)
            if got is None:
                return
            client, message = got
            alone = self.by_application and bool(client.given_back)
            if alone or step.end == "each" or (step.end == "last" and number == step.number - 1):
                self.settle(client, message)
            self.returned(client, message)

    def settle(self, client: _Client, message: str) -> None:
        """Acknowledge or commit, where the mode leaves that to the application."""
        if self.transacted:
            self.commit(client)
        elif self.by_application and message in client.held:
            self.acknowledge(client, message)

    def covered(self, client: _Client, message: str) -> list[str]:
        if self.scope is AckScope.SESSION:
            return list(client.held)
        at = client.held.index(message)
        return client.held[: at + 1] if self.scope is AckScope.UP_TO else [message]

    def acknowledge(self, client: _Client, message: str, strike: Strike | None = None) -> None:
        covered = self.covered(client, message)
        scope = AckScope.MESSAGE if client.given_back else self.scope
        self.recorder.of_message(client.name, Event.ACKNOWLEDGE, message, scope=scope.value)
        outcome = self.call(client, strike, lambda: self.adapter.acknowledge(client.name, message, strike))
        client.held = [each for each in client.held if each not in covered]
        definite = outcome is not None and outcome is not AckOutcome.IN_DOUBT
        event = Event.ACKNOWLEDGED if definite else Event.ACK_IN_DOUBT
        if definite:
            self.unsettled.difference_update(covered)
            client.given_back.difference_update(covered)
        else:
            client.given_back.update(covered)
        tell = functools.partial(self.recorder.of_message, client.name, event, message, scope=scope.value)
        self.answered(client, strike, None if outcome is AckOutcome.SENT else tell, definite=definite)

    def give_up(self, client: _Client, message: str, outcome: Outcome) -> None:
        """The application gives a message back or up."""
        self.recorder.of_message(
            client.name, Event.FAILED, message, outcome=outcome.value, transaction=client.transaction
        )
        client.held = [each for each in client.held if each != message]
        if outcome is Outcome.REJECTED:
            self.unsettled.discard(message)
        self.done(client, lambda: self.adapter.settle(client.name, message, outcome))

    # Transactions, recovery, the end of a client

    def commit(self, client: _Client, strike: Strike | None = None) -> None:
        if client.must_roll_back:
            self.rollback(client)
        if client.transaction is None:
            return
        name = client.transaction
        self.recorder.add(client.name, Event.COMMIT, transaction=name)
        outcome = self.call(client, strike, lambda: self.adapter.commit(client.name, strike))
        client.transaction = None
        if outcome is CommitOutcome.COMMITTED:
            self.unsettled.difference_update(client.held)
        client.held.clear()
        events = {CommitOutcome.COMMITTED: Event.COMMITTED, CommitOutcome.ROLLED_BACK: Event.ROLLED_BACK}
        event = Event.COMMIT_IN_DOUBT if outcome is None else events.get(outcome, Event.COMMIT_IN_DOUBT)
        self.answered(
            client,
            strike,
            lambda: self.recorder.add(client.name, event, transaction=name),
            definite=event is Event.COMMITTED,
        )

    def rollback(self, client: _Client) -> None:
        if client.transaction is None:
            return
        name, client.transaction = client.transaction, None
        client.must_roll_back = False
        self.recorder.add(client.name, Event.ROLLBACK, transaction=name)
        client.held.clear()
        if self.done(client, lambda: self.adapter.rollback(client.name)):
            self.recorder.add(client.name, Event.ROLLED_BACK, transaction=name)

    def recover(self, who: int) -> None:
        """Recover or roll back; a listener that was called meanwhile does, for the session is its own in a call."""
        called = self.take(who, 0.0) if self.listens and who in self.consumers else None
        client = self.consumers.get(who)
        if client is None:
            return
        if self.transacted:
            self.rollback(client)
        else:
            self.recorder.add(client.name, Event.RECOVER)
            client.held.clear()
            self.done(client, lambda: self.adapter.recover(client.name))
        if called is not None:
            self.returned(client, called[1])

    def cancel(self, client: _Client) -> None:
        """Close the consumer of a session that goes on, with what that was handed where the tables say so."""
        if self.closing_gives_back:
            client.held.clear()
        if self.done(client, lambda: self.adapter.cancel(client.name)):
            self.recorder.add(client.name, Event.CLOSE, queue=QUEUE)

    def finished(self, client: _Client) -> bool:
        """The listener of ``client`` is done with all that it was called with; whether ``client`` is there still."""
        for who in [who for who, each in self.consumers.items() if self.listens and each is client]:
            while client in self.clients() and (got := self.take(who, 0.0)) is not None:
                self.settle(*got)
                self.returned(*got)
        return client in self.clients()

    def close(self, client: _Client | None) -> None:
        seen = -1
        while client is not None and self.finished(client):
            try:
                if self.done(client, functools.partial(self.adapter.close, client.name)):
                    self.recorder.add(client.name, Event.CLOSE, transaction=client.transaction)
                    self.forget(client)
            except ListenerHoldsError:
                if seen == self.delivered:
                    raise _OpenError(f"the listener of {client.name} holds a message that was not asked for") from None
                seen = self.delivered
                continue
            return

    # Faults

    def inject(self, step: Inject) -> None:
        match step.fault:
            case Fault.REJECTION:
                self.reject()
            case Fault.LISTENER_EXCEPTION:
                self.throw(step.who)
            case _:
                self.strike(step)

    def reject(self) -> None:
        self.adapter.fault(Fault.REJECTION, None)
        at = len(self.recorder.lines)
        self.send()
        refused = any(line["event"] == Event.REJECTED for line in self.recorder.lines[at:])
        if self.transacted and self.producer is not None:
            self.commit(self.producer)
            refused |= self.recorder.lines[-1]["event"] == Event.ROLLED_BACK
        if not refused:
            self.without_effect = "rejection: the broker was to refuse a message, and did not"
            return
        self.struck += 1
        # the broker refuses between the call and its answer
        sent = next(n for n, line in enumerate(self.recorder.lines[at:], at) if line["event"] == Event.SEND)
        self.recorder.insert(sent + 1, _NEMESIS, Event.FAULT, fault=Fault.REJECTION.value, queue=QUEUE)

    def throw(self, who: int) -> None:
        if self.by_application and self.consumer(who).given_back:
            return  # what failed and is kept would have to be acknowledged with others
        got = self.receive_or_send(who)
        if got is not None:
            self.fail(*got)

    def fail(self, client: _Client, delivery: Delivery) -> None:
        """The listener throws, with this message in hand."""
        self.recorder.of_message(
            client.name, Event.FAILED, delivery.message, error="the listener threw", transaction=client.transaction
        )
        self.recorder.add(client.name, Event.FAULT, fault=Fault.LISTENER_EXCEPTION.value)
        client.must_roll_back = self.transacted
        if self.configuration.listener_exception is ListenerException.NEXT_MESSAGE:
            client.held.append(delivery.message)
        elif self.configuration.listener_exception is ListenerException.REDELIVER:
            client.given_back.add(delivery.message)
        elif self.configuration.listener_exception is ListenerException.RECOVER:
            client.held.append(delivery.message)
            client.give_back()
        self.struck += self.done(client, lambda: self.adapter.done(client.name, delivery.message, failed=True))

    def strike(self, step: Inject) -> None:
        strike = Strike(step.fault, step.after)
        match step.at:
            case "send":
                self.send(strike)
            case "commit_sent":
                if self.producer is None or self.producer.transaction is None:
                    self.send()
                if self.producer is not None:
                    self.commit(self.producer, strike)
            case "acknowledge" | "commit_received":
                self.strike_settling(step, strike)
            case _:
                self.strike_between(step)

    def receive_or_send(self, who: int) -> tuple[_Client, Delivery] | None:
        """Receive a message; if there is none, of one that is sent for it."""
        got = self.receive(who)
        if got is None:
            self.send_visibly()
            got = self.receive(who)
        return got

    def send_visibly(self) -> None:
        self.send()
        if self.transacted and self.producer is not None:
            self.commit(self.producer)

    def strike_settling(self, step: Inject, strike: Strike) -> None:
        got = self.receive_or_send(step.who)
        if got is None:
            return
        client, message = got[0], got[1].message
        self.processed(client, message)
        if step.at == "acknowledge":
            self.acknowledge(client, message, strike)
        else:
            self.commit(client, strike)
        self.returned(client, message)

    def strike_between(self, step: Inject) -> None:
        """No call is under way; the consumer may have a message that it is not done with."""
        of_consumer = step.fault in {Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS}
        if of_consumer and self.consumer(step.who).name not in self.known and (had := self.take(step.who)):
            self.returned(*had)
        if not self.unsettled:
            self.send_visibly()
        got = self.receive_or_send(step.who) if step.at == "delivered" else None
        victim = self.befall(step.fault, step.who, at_stake=got is not None)
        if victim is not None and got is not None and victim in self.clients():
            victim.given_back.add(got[1].message)
            self.recorder.of_message(victim.name, Event.PROCESSED, got[1].message, transaction=victim.transaction)
            self.returned(victim, got[1].message)

    def befall(self, fault: Fault, who: int, *, at_stake: bool) -> _Client | None:
        """Let a fault strike now; the client that it struck, ``None`` if that has done nothing so far."""
        of_producer = fault in {Fault.PRODUCER_CRASH, Fault.PRODUCER_LINK_LOSS}
        of_broker = fault in BROKER_FAULTS
        victim = self.sender() if of_producer else self.consumer(who)
        if not of_broker and victim.name not in self.known:
            return None
        at_stake = bool(self.unsettled) or at_stake or victim.transaction is not None
        self.tell(Event.FAULT, fault, victim)
        self.adapter.fault(fault, None if of_broker else victim.name)
        self.aftermath(fault, victim, at_stake=at_stake, doubted=False)
        return victim

    @property
    def known(self) -> set[str]:
        """The clients that have done something."""
        return {str(line["process"]) for line in self.recorder.lines}

    def tell(self, event: Event, fault: Fault, client: _Client) -> None:
        """Write down that a fault strikes, or is repaired."""
        process = _NEMESIS if fault in BROKER_FAULTS else client.name
        self.recorder.add(process, event, fault=fault.value)

    def aftermath(self, fault: Fault, client: _Client, *, at_stake: bool, doubted: bool) -> None:
        """See that the fault has struck, and repair it."""
        if fault in BROKER_FAULTS:
            self.see_down(fault)
            self.adapter.restart()
            for each in self.clients():
                each.may_be_gone = True
                each.give_back()
        elif fault in {Fault.PRODUCER_CRASH, Fault.CONSUMER_CRASH}:
            self.see_dead(fault, client)
            self.forget(client)
        else:
            client.may_be_gone = True
            client.give_back()
            client.link_lost = not doubted
            self.struck += doubted
            at_stake = False
        self.tell(Event.RECOVERED, fault, client)
        self.struck += at_stake

    def see_down(self, fault: Fault) -> None:
        try:
            self.adapter.depth(QUEUE)
        except BrokerDownError:
            return
        self.spared(f"{fault}: the broker answered while it was to be down")

    def see_dead(self, fault: Fault, client: _Client) -> None:
        """Check that a dead client or broker answers nothing."""
        try:
            if fault is Fault.CONSUMER_CRASH:
                self.adapter.receive(client.name, QUEUE, 0.0)
            else:
                self.adapter.send(client.name, QUEUE, "after its death")
        except _GONE:
            return
        self.spared(f"{fault}: {client.name} answered after it was to be dead")

    def spared(self, why: str) -> None:
        self.without_effect = why
        raise _OpenError(why)

    # The end

    def drain(self) -> None:
        """End all clients, and let a new consumer take the rest, until the queue says that it is empty."""
        for client in self.clients():
            if Operation.CLOSE in self.has:
                self.close(client)
            elif client is self.producer:
                self.commit(client)
            elif client.held or client.transaction is not None:
                self.settle(client, client.held[-1] if client.held else "")
        most, patience = 4 * self.sent + 10, _PATIENCE
        while most and patience:
            got = self.take(0)
            if got is not None:
                most -= 1
                self.settle(*got)
                self.returned(*got)
                continue
            patience -= 1
            if self.is_empty():
                return
        self.not_drained(endless=not most)

    def is_empty(self) -> bool:
        if Operation.CLOSE in self.has:
            for client in self.clients():
                self.close(client)
        try:
            depth = self.adapter.depth(QUEUE)
        except BrokerDownError:
            raise _OpenError("the broker is down at the end, and no fault had stopped it") from None
        if depth.empty:
            self.recorder.found_dead(depth.dead_letters)
            self.recorder.add(_BROKER, Event.DRAINED, queue=QUEUE)
        self.depth = depth
        return depth.empty

    def not_drained(self, *, endless: bool) -> None:
        if endless:
            raise _OpenError(f"the queue did not drain: it gave {4 * self.sent + 10} messages, and was not empty then")
        self.recorder.add(
            _BROKER,
            Event.DEPTH,
            queue=QUEUE,
            position=self.depth.ready,
            delivery_count=self.depth.unacknowledged,
        )
        raise _OpenError(
            f"the queue did not drain: it holds {self.depth.ready} ready and {self.depth.unacknowledged} unacknowledged"
            " messages, and gives them to nobody"
        )


def _why(error: AckfsmError) -> str:
    return "down" if isinstance(error, BrokerDownError) else "closed"
