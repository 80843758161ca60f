"""The embedded broker as one that is driven: ``ackfsm conform -- python -m ackfsm.driving.conform.engine``."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from ackfsm import tables
from ackfsm.driving.conform._adapter import (
    AckOutcome,
    Adapter,
    BrokerDownError,
    ClientClosedError,
    CommitOutcome,
    Delivery,
    Depth,
    SendOutcome,
    Strike,
)
from ackfsm.driving.conform._claims import BROKER_FAULTS, Claims, Mode, Operation
from ackfsm.driving.conform._serve import serve
from ackfsm.engine import (
    Broker,
    Connection,
    Consumer,
    IllegalStateException,
    JMSException,
    Message,
    MessageRejected,
    Outcome,
    OutcomeUnknown,
    Producer,
    Session,
    Shuffled,
    Stuck,
    TransactionRolledBackException,
)
from ackfsm.engine.consumer import DeferredListener
from ackfsm.engine.core import BoundEvent, Copy, Link
from ackfsm.terms import AckMode, Consumption, DeliveryMode, Fault

__all__ = ["EngineAdapter"]

_STOPS: Final = {Fault.BROKER_CRASH: "crash", Fault.BROKER_KILL: "kill", Fault.JOURNAL_FAILURE: "fail_journal"}


class _Client:
    """A connection with its session, and its producer or consumer."""

    def __init__(self, connection: Connection, session: Session) -> None:
        self.connection, self.session = connection, session
        self.producer: Producer | None = None
        self.consumer: Consumer | None = None
        self.heard: list[Message] = []
        """What the listener was called with and has not told yet."""
        self.had: dict[str, Message] = {}


class EngineAdapter(Adapter):
    """Drives an :class:`ackfsm.engine.Broker` with its journal in memory.

    ``make`` is a class of brokers, or a function that makes one with the arguments of :class:`ackfsm.engine.Broker`:
    that is how a broken one is driven.  ``shuffled`` delivers frames in a random order, by ``seed``.
    """

    def __init__(  # noqa: PLR0913 - each has a default, and is given by name
        self,
        profile: str = "jms",
        *,
        ack_modes: Sequence[AckMode] = (),
        delivery_modes: Sequence[DeliveryMode] = (DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT),
        consumptions: Sequence[Consumption] = tuple(Consumption),
        settings: Mapping[str, object] | None = None,
        make: Callable[..., Broker] = Broker,
        shuffled: bool = True,
        seed: int = 0,
    ) -> None:
        """By default all four modes of JMS."""
        self.profile, self.settings = profile, dict(settings or {})
        self.ack_modes = tuple(ack_modes) or _OF_JMS
        self.delivery_modes, self.consumptions = tuple(delivery_modes), tuple(consumptions)
        self.make, self.shuffled, self.seed = make, shuffled, seed
        self._mold = Broker(specification=tables.load())
        self._runs = 0
        self._clients: dict[str, _Client] = {}
        self._gone: set[str] = set()
        self._counting, self._strike = 0, Strike(Fault.BROKER_KILL)
        self._victim: str | None = None
        self.broker = self._mold

    def claims(self) -> Claims:
        """Every mode it was made with, and every fault."""
        faults = frozenset(Fault)
        if Consumption.LISTENER not in self.consumptions:
            faults -= {Fault.LISTENER_EXCEPTION}
        return Claims(
            name="ackfsm.engine",
            profile=self.profile,
            settings=self.settings,
            ack_modes=self.ack_modes,
            delivery_modes=self.delivery_modes,
            consumptions=self.consumptions,
            faults=faults,
            operations=frozenset(Operation) - {Operation.CANCEL},
        )

    def begin(self, mode: Mode, queue: str) -> None:
        """See :class:`Adapter`."""
        self._runs += 1
        number = self.seed * 1_000_003 + self._runs
        self.broker = self.make(
            self.profile,
            like=self._mold,
            seed=number,
            **({"pace": Shuffled(number)} if self.shuffled else {}),
            **self.settings,
            ack_mode=mode.ack_mode.value,
            delivery_mode=mode.delivery_mode.value,
            consumption=mode.consumption.value,
        )
        self.broker.queue(queue)
        self._mode = mode
        self._clients, self._gone = {}, set()

    # Clients

    def _client(self, name: str) -> _Client:
        if not self.broker.running:
            raise BrokerDownError(f"{name}: the broker is down")
        if name in self._gone:
            raise ClientClosedError(f"{name} is closed")
        if name not in self._clients:
            connection = self.broker.connect(name)
            self._clients[name] = _Client(connection, connection.session(self._mode.ack_mode.value))
        return self._clients[name]

    @contextlib.contextmanager
    def _call(self, name: str, during: Strike | None) -> Iterator[_Client]:
        """A call of the client, which a fault may strike."""
        client = self._client(name)
        self._counting = 0
        if during is not None:
            self._counting, self._strike, self._victim = during.after, during, name
            self.broker.observe(self._observed)
        try:
            yield client
        except (IllegalStateException, Stuck) as error:
            if name in self._gone or client.session.closed:
                raise ClientClosedError(f"{name}: {error}") from None
            self._down(error, during)
            raise
        except (MessageRejected, OutcomeUnknown, TransactionRolledBackException):
            raise
        except JMSException as error:
            self._down(error, during)
            raise
        finally:
            self.broker.observe(None)
            if self._counting > 0:
                self._counting = 0
                self._do(self._strike.fault, name)
        if name in self._gone:
            raise ClientClosedError(f"{name} has died")

    def _down(self, error: Exception, during: Strike | None) -> None:
        """Raise what an error means while the broker is down: of a call that was struck the outcome is unknown."""
        if not self.broker.running:
            raise (BrokerDownError if during is None else OutcomeUnknown)(str(error)) from None

    def _observed(self, event: BoundEvent, subject: Copy | Link) -> None:
        del event, subject
        if self._counting > 0:
            self._counting -= 1
            if not self._counting:
                self._do(self._strike.fault, self._victim)

    def _do(self, fault: Fault, name: str | None) -> None:
        if fault in BROKER_FAULTS:
            if self.broker.running:
                self.broker.repairs = False
                getattr(self.broker, _STOPS[fault])()
        elif name is not None and name in self._clients and name not in self._gone:
            if fault in {Fault.PRODUCER_CRASH, Fault.CONSUMER_CRASH}:
                self._gone.add(name)
                self._clients[name].connection.crash()
            else:
                self._clients[name].connection.lose()

    # The operations

    def send(self, client: str, queue: str, message: str, during: Strike | None = None) -> SendOutcome:
        """See :class:`Adapter`."""
        try:
            with self._call(client, during) as its:
                if its.producer is None:
                    its.producer = its.session.producer(queue)
                sent = its.producer.send(message_id=message)
                if sent.outcome is Outcome.OPEN and not its.session.transacted:
                    its.producer.wait(sent)
        except MessageRejected:
            return SendOutcome.REJECTED
        except OutcomeUnknown:
            return SendOutcome.IN_DOUBT
        return _SENT.get(sent.outcome, SendOutcome.SENT)

    def receive(self, client: str, queue: str, timeout: float) -> Delivery | None:
        """See :class:`Adapter`; time is virtual, so that all that can come has come."""
        del timeout
        with self._call(client, None) as its:
            message = self._heard(its, queue) if self._mode.consumption is Consumption.LISTENER else None
            if self._mode.consumption is Consumption.RECEIVE:
                its.consumer = its.consumer or its.session.consumer(queue)
                message = its.consumer.receive(None)
        if message is None:
            return None
        its.had[message.id] = message
        return Delivery(message.id, redelivered=message.redelivered, delivery_count=message.delivery_count)

    def _heard(self, its: _Client, queue: str) -> Message | None:
        if its.consumer is None:
            its.connection.stop()
            its.consumer = its.session.consumer(queue, listener=DeferredListener(its.heard.append))
        its.connection.start()
        self.broker.loop.wait(lambda: bool(its.heard))
        its.connection.stop()
        return its.heard.pop(0) if its.heard else None

    def done(self, client: str, message: str, *, failed: bool) -> None:
        """See :class:`Adapter`."""
        with self._call(client, None) as its:
            if its.consumer is not None:
                its.consumer.done(its.had[message], RuntimeError("the listener threw") if failed else None)

    def acknowledge(self, client: str, message: str, during: Strike | None = None) -> AckOutcome:
        """See :class:`Adapter`."""
        try:
            with self._call(client, during) as its:
                its.had[message].acknowledge()
        except OutcomeUnknown:
            return AckOutcome.IN_DOUBT
        answered = its.session.configuration.block_on_acknowledge
        return AckOutcome.ACKNOWLEDGED if answered else AckOutcome.SENT

    def commit(self, client: str, during: Strike | None = None) -> CommitOutcome:
        """See :class:`Adapter`."""
        try:
            with self._call(client, during) as its:
                its.session.commit()
        except TransactionRolledBackException:
            return CommitOutcome.ROLLED_BACK
        except OutcomeUnknown:
            return CommitOutcome.IN_DOUBT
        return CommitOutcome.COMMITTED

    def rollback(self, client: str) -> None:
        """See :class:`Adapter`."""
        with self._call(client, None) as its, contextlib.suppress(TransactionRolledBackException):
            its.session.rollback()

    def recover(self, client: str) -> None:
        """See :class:`Adapter`."""
        with self._call(client, None) as its:
            its.session.recover()

    def close(self, client: str) -> None:
        """See :class:`Adapter`."""
        with self._call(client, None) as its:
            its.connection.close()
        self._gone.add(client)

    # Faults

    def fault(self, fault: Fault, client: str | None) -> None:
        """See :class:`Adapter`."""
        if fault is Fault.REJECTION:
            for queue in self.broker.queues.values():
                queue.refuse_next = 1
        else:
            self._do(fault, client)

    def restart(self) -> None:
        """See :class:`Adapter`."""
        self.broker.repairs = True
        if not self.broker.running:
            self.broker.restart()

    def depth(self, queue: str) -> Depth:
        """See :class:`Adapter`."""
        if not self.broker.running:
            raise BrokerDownError("the broker is down")
        self.broker.loop.wait(lambda: False)
        its = self.broker.queue(queue)
        ready = len(its.ready.members)
        return Depth(ready, its.length - ready)


_OF_JMS: Final = (
    AckMode.AUTO_ACKNOWLEDGE,
    AckMode.CLIENT_ACKNOWLEDGE,
    AckMode.DUPS_OK_ACKNOWLEDGE,
    AckMode.SESSION_TRANSACTED,
)
_SENT: Final = {
    Outcome.CONFIRMED: SendOutcome.CONFIRMED,
    Outcome.REJECTED: SendOutcome.REJECTED,
    Outcome.IN_DOUBT: SendOutcome.IN_DOUBT,
}


def main(arguments: Sequence[str]) -> int:
    """Serve an engine over standard input and output, with the options of ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m ackfsm.driving.conform.engine", description=__doc__)
    parser.add_argument("--profile", default="jms", help="the system that the engine runs as (default: jms)")
    parser.add_argument("--seed", type=int, default=0, help="of the order in which frames arrive (default: 0)")
    parser.add_argument("--ack-mode", action="append", type=AckMode, help="claim this mode; may be repeated")
    asked = parser.parse_args(arguments)
    serve(EngineAdapter(asked.profile, ack_modes=asked.ack_mode or (), seed=asked.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
