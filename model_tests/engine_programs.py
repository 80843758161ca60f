"""Short client programs, each of which goes where a broker or a library once went wrong.

A program is written as its users would: it catches what a sound engine raises there, and at the end a fresh
client takes what is left, so that what is absent is lost.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

from ackfsm.engine import (
    Broker,
    History,
    IllegalStateException,
    Message,
    OutcomeUnknown,
    Sent,
    Timed,
    TransactionRolledBackException,
)
from ackfsm.engine._parts import Copy
from model_tests._tables import shipped
from model_tests.engine_bugs import Bug

__all__ = [
    "Laboratory",
    "acknowledged_by_the_second_consumer",
    "acknowledgement_from_before",
    "acknowledgement_that_fails",
    "bridge_that_reconnects",
    "close_without_acknowledging",
    "commit_across_a_failover",
    "commit_after_a_lost_connection",
    "confirmations_out_of_order",
    "consumer_that_dies_of_the_first",
    "crash_between_two_confirmations",
    "failover_inside_a_listener",
    "failover_with_a_full_prefetch",
    "power_loss_after_a_confirmation",
    "put_again",
    "recover_twice",
    "recovery_after_compaction",
    "recovery_of_the_journal",
    "replay_on_the_next_connection",
    "restart_of_a_paged_queue",
    "send_with_a_handler",
    "slow_consumption",
    "subscribe_again",
    "transaction_into_a_full_queue",
    "transaction_that_is_refused_in_part",
    "wait_for_a_confirmation",
]

_TRANSACTED = "SESSION_TRANSACTED"
_MICROSECOND = 1_000
_MILLISECOND = 1_000_000


@dataclasses.dataclass
class Laboratory:
    """Makes the brokers of one run, all with the same bug (or none) and one history."""

    bug: Bug | None
    history: History | None = None

    def broker(self, profile: str, *, pace: Timed | None = None, **settings: object) -> Broker:
        """A broker; the history says under which configuration, and when records are synced."""
        self._made: dict[str, Any] = {"profile": profile, "pace": pace, **settings}
        journal = None if self.bug is None else self.bug.journal()
        return self._start(journal=journal)

    def again(self, broker: Broker) -> Broker:
        """Another broker process on what the journal of ``broker`` has: nothing else is known to it."""
        made = self._start(journal=broker.storage.journal)
        made.log("nemesis", "recovered", fault="broker_kill")
        return made

    def _start(self, **further: Any) -> Broker:
        tables = shipped() if self.bug is None else self.bug.tables(shipped())
        kind = Broker if self.bug is None else self.bug.broker
        settings = {"consumption": "receive", **self._made, **further}
        made = kind(specification=tables, history=self.history or True, **settings)
        self.history = made.history if isinstance(made.history, History) else None

        def synced(copy: Copy) -> None:
            made.log("broker", "journal_synced", queue=copy.message.queue.name, message=copy.message.id)

        made.core.arrivals.setdefault(("record", "durable"), []).append(synced)
        return made


def _network() -> Timed:
    """A frame travels 0.1 ms, a sync takes 1 ms."""
    return Timed(latency=(100 * _MICROSECOND, 100 * _MICROSECOND), disk=_MILLISECOND)


def _send(broker: Broker, *names: str, queue: str = "q", **settings: Any) -> None:
    """A producer sends these, one after the other, and hears that they are safe."""
    with broker.connect("producer") as client:
        session = client.session(**settings)
        producer = session.producer(queue)
        for name in names:
            producer.send(message_id=name)
        producer.wait()


def _drain(broker: Broker, *queues: str, **settings: Any) -> None:
    """A fresh client takes what is left, and says so."""
    with broker.connect("drain") as client:
        for queue in queues or ("q",):
            consumer = client.session(**settings).consumer(queue)
            while (message := consumer.receive(None)) is not None:
                message.acknowledge()
    broker.drained()


def commit_across_a_failover(laboratory: Laboratory) -> None:
    """Move a message in a transaction; the broker dies after the commit has returned."""
    broker = laboratory.broker("artemis", ack_mode=_TRANSACTED)
    _send(broker, "input", queue="in", ack_mode="AUTO_ACKNOWLEDGE")
    with broker.connect("mover") as client:
        session = client.session()
        session.consumer("in").receive()
        session.producer("out").send(message_id="output")
        session.commit()
        broker.kill()
    broker.restart()
    _drain(broker, "in", "out", ack_mode="AUTO_ACKNOWLEDGE")


def send_with_a_handler(laboratory: Laboratory) -> None:
    """Send asynchronously with a confirmation window."""
    broker = laboratory.broker("artemis", send_mode="asynchronous", publish_window=10)
    with broker.connect("producer") as client:
        heard: list[Sent] = []
        producer = client.session().producer("q", on_outcome=heard.append)
        producer.send(message_id="m")
        producer.wait()
    _drain(broker)


def restart_of_a_paged_queue(laboratory: Laboratory) -> None:
    """Fill a queue, kill the broker, start it again, consume."""
    broker = laboratory.broker("artemis")
    _send(broker, "m1", "m2", "m3", "m4")
    broker.kill()
    broker.restart()
    _drain(broker)


def slow_consumption(laboratory: Laboratory) -> None:
    """Consume a queue message by message."""
    broker = laboratory.broker("jms", ack_mode="CLIENT_ACKNOWLEDGE", prefetch=1)
    _send(broker, "m1", "m2", "m3")
    _drain(broker)


def close_without_acknowledging(laboratory: Laboratory) -> None:
    """Receive a message, close without an acknowledgement, receive it again."""
    broker = laboratory.broker("artemis", ack_mode="CLIENT_ACKNOWLEDGE")
    _send(broker, "m")
    with broker.connect("consumer") as client:
        client.session().consumer("q").receive()
    _drain(broker)


def transaction_that_is_refused_in_part(laboratory: Laboratory) -> None:
    """Send two messages in a transaction, the first of which the broker refuses."""
    broker = laboratory.broker("artemis", ack_mode=_TRANSACTED)
    with broker.connect("producer") as client:
        session = client.session()
        producer = session.producer("q")
        broker.queue("q").refuse_next = 1
        producer.send(message_id="m1")
        producer.send(message_id="m2")
        with contextlib.suppress(TransactionRolledBackException):
            session.commit()
    _drain(broker, ack_mode="AUTO_ACKNOWLEDGE")


def bridge_that_reconnects(laboratory: Laboratory) -> None:
    """The answer to a commit is lost, and the bridge repeats the transaction with the same duplicate-id."""
    settings: dict[str, Any] = {"resend_in_doubt": True, "duplicate_detection": True}
    broker = laboratory.broker("artemis", pace=_network(), ack_mode=_TRANSACTED, **settings)
    with broker.connect("bridge") as client:
        session = client.session()
        producer = session.producer("q")
        message = producer.send(message_id="m", duplicate_id=b"m")
        broker.engine.at(broker.now + 150 * _MICROSECOND, client.lose)
        with contextlib.suppress(OutcomeUnknown):
            session.commit()
        producer.resend(message)
        session.commit()
    _drain(broker, ack_mode="AUTO_ACKNOWLEDGE")


def failover_inside_a_listener(laboratory: Laboratory) -> None:
    """The connection breaks under a listener, which gives up; on the next connection the message comes again."""
    broker = laboratory.broker("activemq", consumption="listener")
    _send(broker, "m")
    with broker.connect("consumer") as client:
        seen: list[str] = []

        def work(message: Message) -> None:
            seen.append(message.id)
            if len(seen) == 1:
                client.lose()
                raise ConnectionError("the connection broke")

        client.session().consumer("q", listener=work)
        broker.drained()


def recovery_after_compaction(laboratory: Laboratory) -> None:
    """Move a message in a transaction; the journal is compacted; the broker dies and its journal is read in full."""
    broker = laboratory.broker("activemq", ack_mode=_TRANSACTED)
    _send(broker, "input", queue="in", ack_mode="AUTO_ACKNOWLEDGE")
    client = broker.connect("mover")
    session = client.session()
    session.consumer("in").receive()
    session.producer("out").send(message_id="output")
    session.commit()
    broker.storage.journal.compact()
    broker.kill()
    _drain(laboratory.again(broker), "in", "out", ack_mode="AUTO_ACKNOWLEDGE")


def transaction_into_a_full_queue(laboratory: Laboratory) -> None:
    """Send a message in a transaction to a queue that takes no more, and commit."""
    broker = laboratory.broker("activemq", ack_mode=_TRANSACTED)
    broker.queue("q", max_length=1)
    _send(broker, "m1", ack_mode="AUTO_ACKNOWLEDGE")
    with broker.connect("second") as client:
        session = client.session()
        session.producer("q").send(message_id="m2")
        with contextlib.suppress(TransactionRolledBackException):
            session.commit()
    _drain(broker, ack_mode="AUTO_ACKNOWLEDGE")


def failover_with_a_full_prefetch(laboratory: Laboratory) -> None:
    """The connection breaks while the library holds a message that the application has not seen."""
    broker = laboratory.broker("activemq", ack_mode="INDIVIDUAL_ACKNOWLEDGE")
    _send(broker, "m1", "m2")
    with broker.connect("consumer") as client:
        consumer = client.session().consumer("q")
        first = consumer.receive()
        if first is not None:
            first.acknowledge()
        client.lose()
        broker.engine.wait(lambda: False)
        while (message := consumer.receive(None)) is not None:
            message.acknowledge()
    _drain(broker)


def commit_after_a_lost_connection(laboratory: Laboratory) -> None:
    """The connection breaks under an open transaction, which is then committed."""
    broker = laboratory.broker("qpid-jms", ack_mode=_TRANSACTED)
    with broker.connect("producer") as client:
        session = client.session()
        session.producer("q").send(message_id="m")
        client.lose()
        with contextlib.suppress(TransactionRolledBackException):
            session.commit()
    _drain(broker, ack_mode="AUTO_ACKNOWLEDGE")


def recover_twice(laboratory: Laboratory) -> None:
    """Receive a message and recover the session, twice."""
    broker = laboratory.broker("qpid-jms", ack_mode="CLIENT_ACKNOWLEDGE", resend_in_doubt=False)
    _send(broker, "m")
    with broker.connect("consumer") as client:
        session = client.session()
        consumer = session.consumer("q")
        for _ in range(2):
            consumer.receive()
            session.recover()
    _drain(broker)


def replay_on_the_next_connection(laboratory: Laboratory) -> None:
    """The connection breaks before a message was acknowledged; it is sent again on the next."""
    broker = laboratory.broker("qpid", ack_mode="CLIENT_ACKNOWLEDGE")
    _send(broker, "m")
    with broker.connect("consumer") as client:
        consumer = client.session().consumer("q")
        consumer.receive()
        client.lose()
        again = consumer.receive(None)
        if again is not None:
            again.acknowledge()
    _drain(broker)


def crash_between_two_confirmations(laboratory: Laboratory) -> None:
    """The first message is confirmed; the broker dies before it has stored the second."""
    broker = laboratory.broker("rabbitmq")
    client = broker.connect("producer")
    producer = client.session().producer("q")
    producer.wait(producer.send(message_id="m1"))
    producer.send(message_id="m2")
    broker.kill()
    broker.restart()
    client.close()
    _drain(broker)


def wait_for_a_confirmation(laboratory: Laboratory) -> None:
    """Send, let it be consumed, wait for the confirmation."""
    broker = laboratory.broker("rabbitmq")
    client = broker.connect("producer")
    producer = client.session().producer("q")
    producer.send(message_id="m")
    _drain(broker)
    producer.wait()


def recovery_of_the_journal(laboratory: Laboratory) -> None:
    """The broker dies, and another process reads the journal."""
    broker = laboratory.broker("rabbitmq")
    _send(broker, "m1", "m2")
    broker.kill()
    _drain(laboratory.again(broker))


def put_again(laboratory: Laboratory) -> None:
    """The answer to a put is lost; the library tries to put the message again, which it must not."""
    broker = laboratory.broker("jms", pace=_network(), delivery_mode="NON_PERSISTENT")
    with broker.connect("producer") as client:
        heard: list[Sent] = []
        producer = client.session().producer("q", on_outcome=heard.append)
        broker.engine.at(broker.now + 150 * _MICROSECOND, client.lose)
        with contextlib.suppress(OutcomeUnknown):
            producer.send(message_id="m")
        with contextlib.suppress(IllegalStateException):
            producer.resend(heard[0])
    _drain(broker)


def subscribe_again(laboratory: Laboratory) -> None:
    """A consumer goes while its library holds a message; the next one subscribes."""
    broker = laboratory.broker("rabbitmq")
    _send(broker, "m1", "m2")
    with broker.connect("consumer") as client:
        message = client.session().consumer("q").receive()
        if message is not None:
            message.acknowledge()
    _drain(broker)


def acknowledgement_from_before(laboratory: Laboratory) -> None:
    """What was received before the connection broke is acknowledged on the next one, where the process then dies."""
    broker = laboratory.broker("rabbitmq", ack_mode="CLIENT_ACKNOWLEDGE")
    _send(broker, "m1", "m2", "m3")
    client = broker.connect("consumer")
    consumer = client.session().consumer("q")
    old = consumer.receive()
    client.lose()
    broker.engine.wait(lambda: False)
    if old is not None:
        with contextlib.suppress(IllegalStateException):
            old.acknowledge()
    client.crash()
    _drain(broker)


def confirmations_out_of_order(laboratory: Laboratory) -> None:
    """A message to a slow queue, one to a fast queue: the second is confirmed first, and then the broker dies."""
    broker = laboratory.broker("rabbitmq")
    broker.queue("fast", durable=False)
    client = broker.connect("producer")
    session = client.session()
    session.producer("slow").send(message_id="m1")
    session.producer("fast").send(message_id="m2")
    with broker.connect("consumer") as other:
        message = other.session().consumer("fast").receive()
        if message is not None:
            message.acknowledge()
    broker.kill()
    broker.restart()
    client.close()
    _drain(broker, "slow", "fast")


def power_loss_after_a_confirmation(laboratory: Laboratory) -> None:
    """The power fails as soon as the second message is confirmed."""
    broker = laboratory.broker("jms", pace=_network())
    with broker.connect("producer") as client:
        producer = client.session().producer("q")
        producer.send(message_id="m1")
        with broker.connect("consumer") as other:
            consumer = other.session().consumer("q")
            consumer.receive(0.01)
            consumer.receive(0.01)
        producer.send(message_id="m2")
        broker.crash()
    broker.restart()
    _drain(broker)


def acknowledgement_that_fails(laboratory: Laboratory) -> None:
    """A cumulative acknowledgement goes down with its connection; all that it covers comes again."""
    broker = laboratory.broker("jms", pace=_network(), ack_mode="CLIENT_ACKNOWLEDGE")
    _send(broker, "m1", "m2", "m3")
    with broker.connect("consumer") as client:
        consumer = client.session().consumer("q")
        for _ in range(3):
            message = consumer.receive(None)
        broker.engine.at(broker.now + 50 * _MICROSECOND, client.lose)
        if message is not None:
            with contextlib.suppress(OutcomeUnknown):
                message.acknowledge()
        while (message := consumer.receive(None)) is not None:
            message.acknowledge()
        broker.drained()


def acknowledged_by_the_second_consumer(laboratory: Laboratory) -> None:
    """One consumer dies with a message, another acknowledges it, the broker is started again."""
    broker = laboratory.broker("jms", ack_mode="CLIENT_ACKNOWLEDGE")
    _send(broker, "m")
    first = broker.connect("first")
    first.session().consumer("q").receive()
    first.crash()
    with broker.connect("second") as client:
        message = client.session().consumer("q").receive()
        if message is not None:
            message.acknowledge()
    broker.kill()
    broker.restart()
    _drain(broker)


def consumer_that_dies_of_the_first(laboratory: Laboratory) -> None:
    """A consumer dies of the first message four times, with four others in its library."""
    broker = laboratory.broker("ems", ack_mode="CLIENT_ACKNOWLEDGE", prefetch=5, max_delivery_attempts=4)
    _send(broker, "m1", "m2", "m3", "m4", "m5")
    for _ in range(4):
        client = broker.connect("consumer")
        client.session().consumer("q").receive()
        client.crash()
    _drain(broker)
