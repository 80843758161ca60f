"""What an application is told: outcomes, flags, times, the log; and what it may rely on when it is told so."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from ackfsm.engine import (
    AtOnce,
    Broker,
    Consumer,
    History,
    Message,
    MessageRejected,
    Outcome,
    OutcomeUnknown,
    Timed,
    TransactionRolledBackException,
)
from ackfsm.engine.core.model import BoundEvent
from ackfsm.engine.core.names import FRAMES
from ackfsm.engine.core.scheduler import Scheduler
from model_tests.support.engine.calls import shared_wiring
from model_tests.support.tables import shipped

__all__ = ["shared_wiring"]


def broker_of(profile: str = "jms", **settings: Any) -> Broker:
    return Broker(profile, specification=shipped(), consumption="receive", history=True, **settings)


def said(broker: Broker, event: str) -> list[Any]:
    """The messages of which the log says so."""
    assert isinstance(broker.history, History)
    return [line.get("message") for line in broker.history.lines if line["event"] == event]


def received(consumer: Consumer) -> Message:
    message = consumer.receive(None)
    assert message is not None
    return message


# sends


def test_a_queue_takes_as_many_messages_as_it_holds() -> None:
    broker = broker_of()
    producer = broker.connect().session().producer(broker.queue("q", max_length=2))
    for _ in range(2):
        producer.send()
    with pytest.raises(MessageRejected, match="takes no more"):
        producer.send()
    assert broker.queue("q").length == 2


def test_a_message_is_not_known_before_it_is_stored() -> None:
    """The answer to a second copy is a promise for the first one, which was not synced yet."""
    broker = broker_of("artemis", duplicate_detection=True, delivery_mode="PERSISTENT")
    first = broker.connect().session(send_mode="unconfirmed").producer("q").send(duplicate_id=b"once")
    second = broker.connect().session().producer("q").send(duplicate_id=b"once")
    assert (first.outcome, second.outcome) == (Outcome.UNCONFIRMED, Outcome.CONFIRMED)
    broker.crash()
    broker.restart()
    assert broker.queue("q").length == 1


@pytest.mark.parametrize("mode", ["PERSISTENT", "NON_PERSISTENT"])
def test_an_id_whose_message_is_lost_is_not_known(mode: str) -> None:
    broker = broker_of("artemis", duplicate_detection=True, delivery_mode=mode)
    broker.connect().session(send_mode="unconfirmed").producer("q").send(duplicate_id=b"once")
    broker.crash()
    broker.restart()
    assert broker.queue("q").length == 0
    broker.connect().session().producer("q").send(duplicate_id=b"once")
    assert broker.queue("q").length == 1


# deliveries


@pytest.mark.parametrize("seed", range(5))
def test_what_one_connection_sends_arrives_in_that_order(seed: int) -> None:
    broker = broker_of(pace=Timed(latency=(1, 1_000_000), seed=seed), send_mode="asynchronous")
    producer = broker.connect().session().producer("q")
    for number in range(10):
        producer.send(message_id=str(number))
    consumer = broker.connect().session().consumer("q")
    assert [received(consumer).id for _ in range(10)] == [str(number) for number in range(10)]


def test_a_message_goes_to_whoever_has_room() -> None:
    broker = broker_of(prefetch=1)
    first, second = (broker.connect().session("CLIENT_ACKNOWLEDGE").consumer("q") for _ in range(2))
    producer = broker.connect().session().producer("q")
    for number in range(3):
        producer.send(message_id=str(number))
    assert [received(first).id, received(second).id] == ["0", "1"]
    assert second.receive(None) is None
    received_again = broker.connect().session("CLIENT_ACKNOWLEDGE").consumer("q")
    assert received(received_again).id == "2"


@pytest.mark.parametrize("marked", [True, False])
def test_consumers_take_turns(marked: bool) -> None:  # noqa: FBT001 - a parameter of the test
    broker = broker_of("artemis", redelivery_mark_persisted=marked, send_mode="asynchronous")
    consumers = [broker.connect().session("CLIENT_ACKNOWLEDGE").consumer("q") for _ in range(2)]
    producer = broker.connect().session().producer("q")
    for number in range(4):
        producer.send(message_id=str(number))
    assert [[received(consumer).id for _ in range(2)] for consumer in consumers] == [["0", "2"], ["1", "3"]]


@pytest.mark.parametrize("profile", ["jms", "artemis", "activemq", "qpid", "ems"])
def test_every_delivery_but_the_first_is_flagged_and_counted(profile: str) -> None:
    broker = broker_of(profile)
    broker.connect().session().producer("q").send()
    deliveries = []
    for _ in range(3):
        with broker.connect() as client:
            message = received(client.session("CLIENT_ACKNOWLEDGE").consumer("q"))
            deliveries.append((message.redelivered, message.delivery_count))
    assert deliveries == [(False, 1), (True, 2), (True, 3)]


def test_a_message_on_its_way_to_a_client_that_dies_arrives_nowhere_else() -> None:
    """It is sent again, and takes its time again."""
    broker = broker_of(pace=Timed(latency=(100_000, 100_000)))
    broker.connect().session().producer("q").send()
    start, client = broker.now, broker.connect()
    client.session().consumer("q")
    other = broker.connect().session().consumer("q")
    broker.loop.schedule(start + 50_000, client.crash)
    received(other)
    assert broker.now >= start + 150_000


def test_dead_letters_are_no_reason_not_to_be_drained() -> None:
    broker = broker_of("artemis", max_delivery_attempts=1)
    broker.connect().session().producer("q").send(message_id="m")
    client = broker.connect()
    received(client.session("CLIENT_ACKNOWLEDGE").consumer("q"))
    client.crash()
    broker.loop.flush_all()
    assert (broker.queue("q").length, broker.queue("DLQ").length) == (0, 1)
    broker.drained()


# transactions


@pytest.mark.parametrize("fault", ["link_loss", "broker"])
def test_the_transaction_after_one_that_was_lost_has_nothing_of_it(fault: str) -> None:
    broker = broker_of()
    broker.connect().session().producer("q").send(message_id="m")
    session = broker.connect().session("SESSION_TRANSACTED")
    consumer = session.consumer("q")
    received(consumer)
    if fault == "broker":
        broker.kill()
    else:
        session.fault("link_loss")
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    assert received(consumer).id == "m"
    session.commit()
    session.close()
    broker.drained()


def test_a_consumer_that_reconnects_in_a_transaction_is_sent_what_waits() -> None:
    broker = broker_of()
    session = broker.connect().session("SESSION_TRANSACTED")
    consumer = session.consumer("q")
    session.producer("out").send()
    session.fault("link_loss")
    broker.connect().session().producer("q").send(message_id="m")
    assert received(consumer).id == "m"


@pytest.mark.parametrize("struck", ["execute_commit", "execute_consumer_commit"])
def test_a_connection_that_breaks_as_a_commit_is_executed_leaves_all_of_it_or_nothing(struck: str) -> None:
    broker = broker_of()
    broker.connect().session().producer("in").send()
    session = broker.connect().session("SESSION_TRANSACTED")
    received(session.consumer("in"))
    session.producer("out").send()
    strikes: list[BoundEvent] = []

    def strike(event: BoundEvent, _: object) -> None:
        if event.name == struck and not strikes:
            strikes.append(event)
            session.fault("link_loss")

    broker.observe(strike)
    with contextlib.suppress(OutcomeUnknown):
        session.commit()
    broker.observe(None)
    session.close()
    assert strikes
    assert (broker.queue("in").length, broker.queue("out").length) in {(0, 1), (1, 0)}


# acknowledgements


def test_an_acknowledgement_in_doubt_is_raised_and_in_the_log() -> None:
    broker = broker_of(pace=Timed(latency=(100_000, 100_000)))
    broker.connect().session().producer("q").send(message_id="m")
    client = broker.connect()
    message = received(client.session("CLIENT_ACKNOWLEDGE").consumer("q"))
    broker.loop.schedule(broker.now + 50_000, client.lose)
    with pytest.raises(OutcomeUnknown, match="m may come again"):
        message.acknowledge()
    assert (said(broker, "ack_in_doubt"), said(broker, "acknowledged")) == (["m"], [])


def test_an_acknowledgement_that_the_broker_has_is_in_the_log() -> None:
    broker = broker_of()
    broker.connect().session().producer("q").send(message_id="m")
    received(broker.connect().session("CLIENT_ACKNOWLEDGE").consumer("q")).acknowledge()
    assert (said(broker, "ack_in_doubt"), said(broker, "acknowledged")) == ([], ["m"])


def test_a_lazy_session_acknowledges_when_there_is_nothing_else_to_do() -> None:
    broker = broker_of()
    broker.connect().session().producer("q").send()
    consumer = broker.connect().session("DUPS_OK_ACKNOWLEDGE").consumer("q")
    received(consumer)
    assert consumer.receive(None) is None
    broker.drained()


# time


@pytest.mark.parametrize("pace", [Timed, AtOnce])
def test_a_receive_that_gets_nothing_takes_its_time(pace: Callable[[], Scheduler]) -> None:
    broker = broker_of(pace=pace())
    consumer = broker.connect().session().consumer("q")
    before = broker.now
    assert consumer.receive(2.0) is None
    assert broker.now == before + 2_000_000_000


def test_a_network_that_has_healed_loses_nothing() -> None:
    pace = Timed(loss=1.0)
    assert all(map(pace.loses, FRAMES))
    pace.heal()
    assert not any(map(pace.loses, sorted(FRAMES) * 10))


def test_the_log_has_no_two_events_at_one_time() -> None:
    broker = broker_of()
    with broker.connect().session("SESSION_TRANSACTED") as session:
        for _ in range(3):
            session.producer("q").send()
        session.commit()
    assert isinstance(broker.history, History)
    times = [line["t"] for line in broker.history.lines]
    assert len(times) > 5
    assert all(a < b for a, b in itertools.pairwise(times))
