"""Faults that strike inside a call, between two events: whatever was under way, the engine comes to rest again."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable

import pytest

from ackfsm.engine import Broker, Connection, Consumer, JMSException, MessageRejected, Producer, Session
from ackfsm.engine.core.instances import Copy, Link
from ackfsm.engine.core.model import BoundEvent
from model_tests.support.engine.calls import assert_kept
from model_tests.support.tables import shipped
from model_tests.support.whole import WHOLE, in_turn


@dataclasses.dataclass
class Strike:
    """Does something once, after event ``number``, or after the first one of that name."""

    action: Callable[[], None]
    after: int | str
    seen: int = 0
    done: bool = False

    def __call__(self, event: BoundEvent, _: Copy | Link) -> None:
        """Hear of an event."""
        self.seen += 1
        if not self.done and self.after in {self.seen, event.name}:
            self.done = True
            self.action()


def _consume(broker: Broker) -> None:
    with broker.connect("consumer") as client:
        consumer = client.session("CLIENT_ACKNOWLEDGE", consumption="receive").consumer("q")
        while (message := consumer.receive(None)) is not None:
            with contextlib.suppress(JMSException):
                message.acknowledge()


def _with_two_messages() -> Broker:
    broker = Broker("artemis", specification=shipped(), history=True)
    with broker.connect("producer") as client:
        producer = client.session().producer("q")
        producer.send(b"1")
        producer.send(b"2")
    return broker


def test_a_broker_that_dies_as_it_writes_is_started_again() -> None:
    broker = _with_two_messages()
    strike = Strike(broker.kill, "write_ack_record")
    broker.observe(strike)
    _consume(broker)
    broker.drained()
    assert strike.done
    assert_kept(broker)


_FAULTS: dict[str, Callable[[Broker, Connection], None]] = {
    "broker_kill": lambda broker, _: broker.kill(),
    "broker_crash": lambda broker, _: broker.crash(),
    "link_loss": lambda _, connection: connection.lose(),
    "crash": lambda _, connection: connection.crash(),
}


def _by_client_acknowledge(connection: Connection) -> None:
    consumer = connection.session("CLIENT_ACKNOWLEDGE", consumption="receive").consumer("q")
    while (message := consumer.receive(None)) is not None:
        message.acknowledge()


def _by_listener(connection: Connection) -> None:
    connection.session("AUTO_ACKNOWLEDGE").consumer("q", listener=lambda _: None)
    connection.broker.loop.wait(lambda: not connection.broker.queue("q").length)


def _by_transaction(connection: Connection) -> None:
    session = connection.session("SESSION_TRANSACTED", consumption="receive")
    consumer, producer = session.consumer("q"), session.producer("out")
    _move(session, consumer, producer)


def _by_transaction_that_sends_first(connection: Connection) -> None:
    session = connection.session("SESSION_TRANSACTED", consumption="receive")
    producer, consumer = session.producer("out"), session.consumer("q")
    _move(session, consumer, producer)


def _move(session: Session, consumer: Consumer, producer: Producer) -> None:
    while (message := consumer.receive(None)) is not None:
        producer.send(message.body)
        session.commit()


def _by_sending(connection: Connection) -> None:
    producer = connection.session(send_mode="asynchronous", publish_window=1).producer("q")
    for _ in range(2):
        producer.send(b"more")
    producer.wait()


_PROGRAMS = (_by_client_acknowledge, _by_listener, _by_transaction, _by_transaction_that_sends_first, _by_sending)


@pytest.mark.parametrize(
    ("fault", "program"),
    in_turn([*_FAULTS], _PROGRAMS, 2),
    ids=lambda each: each if isinstance(each, str) else each.__name__.removeprefix("_by_"),
)
def test_after_any_fault_at_any_event_the_queues_are_emptied(program: Callable[[Connection], None], fault: str) -> None:
    number = 1
    while _run(program, fault, number):
        number += 1
    assert number > 10, "the program does something"


def _run(program: Callable[[Connection], None], fault: str, number: int) -> bool:
    """One run with the fault after that event; whether there was such an event.

    A judgement costs ten times as much as the run: the history of each third is judged, of each fault another third.
    """
    broker = _with_two_messages()
    connection = broker.connect("program")
    strike = Strike(lambda: _FAULTS[fault](broker, connection), number)
    broker.observe(strike)
    with contextlib.suppress(JMSException):
        program(connection)
        connection.close()
    broker.observe(None)
    connection.crash()
    for queue in ("q", "out"):
        _drain(broker, queue)
    broker.drained()
    if WHOLE or (number + [*_FAULTS].index(fault)) % 3 == 0:
        assert_kept(broker)
    return strike.done


def _drain(broker: Broker, queue: str) -> None:
    with broker.connect("drain") as client:
        consumer = client.session("AUTO_ACKNOWLEDGE", consumption="receive").consumer(queue)
        while consumer.receive(None) is not None:
            pass


@pytest.mark.parametrize("profile", ["artemis", "jms"])
def test_a_blocking_send_that_is_rejected_at_once_raises(profile: str) -> None:
    broker = Broker(profile, specification=shipped())
    broker.queue("q", max_length=0)
    with pytest.raises(MessageRejected):
        broker.connect().session().producer("q").send(b"x")
