"""Short client programs, each of which goes where a broker or a library once went wrong.

A program is written as its users would: it catches what a sound engine raises there, and at the end a fresh
client takes what is left, so that what is absent is lost.
"""

from __future__ import annotations

import contextlib
from typing import Any

from ackfsm.engine import (
    IllegalStateException,
    Message,
    OutcomeUnknown,
    Sent,
    TransactionRolledBackException,
)
from model_tests.support.engine.laboratory import Laboratory, drain, network, send

_TRANSACTED = "SESSION_TRANSACTED"
_MICROSECOND = 1_000


def commit_across_a_failover(laboratory: Laboratory) -> None:
    """Move a message in a transaction; the broker dies after the commit has returned."""
    broker = laboratory.broker("artemis", ack_mode=_TRANSACTED)
    send(broker, "input", queue="in", ack_mode="AUTO_ACKNOWLEDGE")
    with broker.connect("mover") as client:
        session = client.session()
        session.consumer("in").receive()
        session.producer("out").send(message_id="output")
        session.commit()
        broker.kill()
    broker.restart()
    drain(broker, "in", "out", ack_mode="AUTO_ACKNOWLEDGE")


def send_with_a_handler(laboratory: Laboratory) -> None:
    """Send asynchronously with a confirmation window."""
    broker = laboratory.broker("artemis", send_mode="asynchronous", publish_window=10)
    with broker.connect("producer") as client:
        heard: list[Sent] = []
        producer = client.session().producer("q", on_outcome=heard.append)
        producer.send(message_id="m")
        producer.wait()
    drain(broker)


def restart_of_a_paged_queue(laboratory: Laboratory) -> None:
    """Fill a queue, kill the broker, start it again, consume."""
    broker = laboratory.broker("artemis")
    send(broker, "m1", "m2", "m3", "m4")
    broker.kill()
    broker.restart()
    drain(broker)


def slow_consumption(laboratory: Laboratory) -> None:
    """Consume a queue message by message."""
    broker = laboratory.broker("jms", ack_mode="CLIENT_ACKNOWLEDGE", prefetch=1)
    send(broker, "m1", "m2", "m3")
    drain(broker)


def close_without_acknowledging(laboratory: Laboratory) -> None:
    """Receive a message, close without an acknowledgement, receive it again."""
    broker = laboratory.broker("artemis", ack_mode="CLIENT_ACKNOWLEDGE")
    send(broker, "m")
    with broker.connect("consumer") as client:
        client.session().consumer("q").receive()
    drain(broker)


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
    drain(broker, ack_mode="AUTO_ACKNOWLEDGE")


def bridge_that_reconnects(laboratory: Laboratory) -> None:
    """The answer to a commit is lost, and the bridge repeats the transaction with the same duplicate-id."""
    settings: dict[str, Any] = {"resend_in_doubt": True, "duplicate_detection": True}
    broker = laboratory.broker("artemis", pace=network(), ack_mode=_TRANSACTED, **settings)
    with broker.connect("bridge") as client:
        session = client.session()
        producer = session.producer("q")
        message = producer.send(message_id="m", duplicate_id=b"m")
        broker.loop.schedule(broker.now + 150 * _MICROSECOND, client.lose)
        with contextlib.suppress(OutcomeUnknown):
            session.commit()
        producer.resend(message)
        with contextlib.suppress(TransactionRolledBackException):  # what was stored before dooms the repetition
            session.commit()
    drain(broker, ack_mode="AUTO_ACKNOWLEDGE")


def failover_inside_a_listener(laboratory: Laboratory) -> None:
    """The connection breaks under a listener, which gives up; on the next connection the message comes again."""
    broker = laboratory.broker("activemq", consumption="listener")
    send(broker, "m")
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
    send(broker, "input", queue="in", ack_mode="AUTO_ACKNOWLEDGE")
    client = broker.connect("mover")
    session = client.session()
    session.consumer("in").receive()
    session.producer("out").send(message_id="output")
    session.commit()
    broker.journal.journal.compact()
    broker.kill()
    drain(laboratory.again(broker), "in", "out", ack_mode="AUTO_ACKNOWLEDGE")


def transaction_into_a_full_queue(laboratory: Laboratory) -> None:
    """Send a message in a transaction to a queue that takes no more, and commit."""
    broker = laboratory.broker("activemq", ack_mode=_TRANSACTED)
    broker.queue("q", max_length=1)
    send(broker, "m1", ack_mode="AUTO_ACKNOWLEDGE")
    with broker.connect("second") as client:
        session = client.session()
        session.producer("q").send(message_id="m2")
        with contextlib.suppress(TransactionRolledBackException):
            session.commit()
    drain(broker, ack_mode="AUTO_ACKNOWLEDGE")


def failover_with_a_full_prefetch(laboratory: Laboratory) -> None:
    """The connection breaks while the library holds a message that the application has not seen."""
    broker = laboratory.broker("activemq", ack_mode="INDIVIDUAL_ACKNOWLEDGE")
    send(broker, "m1", "m2")
    with broker.connect("consumer") as client:
        consumer = client.session().consumer("q")
        first = consumer.receive()
        if first is not None:
            first.acknowledge()
        client.lose()
        broker.loop.wait(lambda: False)
        while (message := consumer.receive(None)) is not None:
            message.acknowledge()
    drain(broker)


def commit_after_a_lost_connection(laboratory: Laboratory) -> None:
    """The connection breaks under an open transaction, which is then committed."""
    broker = laboratory.broker("qpid-jms", ack_mode=_TRANSACTED)
    with broker.connect("producer") as client:
        session = client.session()
        session.producer("q").send(message_id="m")
        client.lose()
        with contextlib.suppress(TransactionRolledBackException):
            session.commit()
    drain(broker, ack_mode="AUTO_ACKNOWLEDGE")


def recover_twice(laboratory: Laboratory) -> None:
    """Receive a message and recover the session, twice."""
    broker = laboratory.broker("qpid-jms", ack_mode="CLIENT_ACKNOWLEDGE", resend_in_doubt=False)
    send(broker, "m")
    with broker.connect("consumer") as client:
        session = client.session()
        consumer = session.consumer("q")
        for _ in range(2):
            consumer.receive()
            session.recover()
    drain(broker)


def replay_on_the_next_connection(laboratory: Laboratory) -> None:
    """The connection breaks before a message was acknowledged; it is sent again on the next."""
    broker = laboratory.broker("qpid", ack_mode="CLIENT_ACKNOWLEDGE")
    send(broker, "m")
    with broker.connect("consumer") as client:
        consumer = client.session().consumer("q")
        consumer.receive()
        client.lose()
        again = consumer.receive(None)
        if again is not None:
            again.acknowledge()
    drain(broker)


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
    drain(broker)


def wait_for_a_confirmation(laboratory: Laboratory) -> None:
    """Send, let it be consumed, wait for the confirmation."""
    broker = laboratory.broker("rabbitmq")
    client = broker.connect("producer")
    producer = client.session().producer("q")
    producer.send(message_id="m")
    drain(broker)
    producer.wait()


def recovery_of_the_journal(laboratory: Laboratory) -> None:
    """The broker dies, and another process reads the journal."""
    broker = laboratory.broker("rabbitmq")
    send(broker, "m1", "m2")
    broker.kill()
    drain(laboratory.again(broker))


def put_again(laboratory: Laboratory) -> None:
    """The answer to a put is lost; the library tries to put the message again, which it must not."""
    broker = laboratory.broker("jms", pace=network(), delivery_mode="NON_PERSISTENT")
    with broker.connect("producer") as client:
        heard: list[Sent] = []
        producer = client.session().producer("q", on_outcome=heard.append)
        broker.loop.schedule(broker.now + 150 * _MICROSECOND, client.lose)
        with contextlib.suppress(OutcomeUnknown):
            producer.send(message_id="m")
        with contextlib.suppress(IllegalStateException):
            producer.resend(heard[0])
    drain(broker)


def subscribe_again(laboratory: Laboratory) -> None:
    """A consumer goes while its library holds a message; the next one subscribes."""
    broker = laboratory.broker("rabbitmq")
    send(broker, "m1", "m2")
    with broker.connect("consumer") as client:
        message = client.session().consumer("q").receive()
        if message is not None:
            message.acknowledge()
    drain(broker)


def acknowledgement_from_before(laboratory: Laboratory) -> None:
    """What was received before the connection broke is acknowledged on the next one, where the process then dies."""
    broker = laboratory.broker("rabbitmq", ack_mode="CLIENT_ACKNOWLEDGE")
    send(broker, "m1", "m2", "m3")
    client = broker.connect("consumer")
    consumer = client.session().consumer("q")
    old = consumer.receive()
    client.lose()
    broker.loop.wait(lambda: False)
    if old is not None:
        with contextlib.suppress(IllegalStateException):
            old.acknowledge()
    client.crash()
    drain(broker)


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
    drain(broker, "slow", "fast")


def power_loss_after_a_confirmation(laboratory: Laboratory) -> None:
    """The power fails as soon as the second message is confirmed."""
    broker = laboratory.broker("jms", pace=network())
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
    drain(broker)


def acknowledgement_that_fails(laboratory: Laboratory) -> None:
    """A cumulative acknowledgement goes down with its connection; all that it covers comes again."""
    broker = laboratory.broker("jms", pace=network(), ack_mode="CLIENT_ACKNOWLEDGE")
    send(broker, "m1", "m2", "m3")
    with broker.connect("consumer") as client:
        consumer = client.session().consumer("q")
        for _ in range(3):
            message = consumer.receive(None)
        broker.loop.schedule(broker.now + 50 * _MICROSECOND, client.lose)
        if message is not None:
            with contextlib.suppress(OutcomeUnknown):
                message.acknowledge()
        while (message := consumer.receive(None)) is not None:
            message.acknowledge()
        broker.drained()


def acknowledged_by_the_second_consumer(laboratory: Laboratory) -> None:
    """One consumer dies with a message, another acknowledges it, the broker is started again."""
    broker = laboratory.broker("jms", ack_mode="CLIENT_ACKNOWLEDGE")
    send(broker, "m")
    first = broker.connect("first")
    first.session().consumer("q").receive()
    first.crash()
    with broker.connect("second") as client:
        message = client.session().consumer("q").receive()
        if message is not None:
            message.acknowledge()
    broker.kill()
    broker.restart()
    drain(broker)


def consumer_that_dies_of_the_first(laboratory: Laboratory) -> None:
    """A consumer dies of the first message four times, with four others in its library."""
    broker = laboratory.broker("ems", ack_mode="CLIENT_ACKNOWLEDGE", prefetch=5, max_delivery_attempts=4)
    send(broker, "m1", "m2", "m3", "m4", "m5")
    for _ in range(4):
        client = broker.connect("consumer")
        client.session().consumer("q").receive()
        client.crash()
    drain(broker)
