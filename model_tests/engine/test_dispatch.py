"""Which consumer is sent a message, and when: order, turns, prefetch; how long a receive waits for one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from ackfsm.engine import AtOnce, Timed
from ackfsm.engine.core.scheduler import Scheduler
from model_tests.support.engine.brokers import accepted, broker_of, fill, received, rest
from model_tests.support.whole import in_turn

# order


@pytest.mark.parametrize("seed", range(5))
def test_messages_of_one_connection_arrive_in_the_order_sent(seed: int) -> None:
    broker = broker_of(pace=Timed(latency=(1, 1_000_000), seed=seed), send_mode="asynchronous")
    producer = broker.connect().session().producer("q")
    for number in range(10):
        producer.send(message_id=str(number))
    consumer = broker.connect().session().consumer("q")
    assert [received(consumer).id for _ in range(10)] == [str(number) for number in range(10)]


AUTOMATIC = ("jms", "artemis", "activemq", "ems", "qpid", "qpid-jms", "solace-jms")


@pytest.mark.parametrize(("pace", "case"), in_turn([AtOnce, Timed], [*itertools.product([1, 2, 0], AUTOMATIC)], 1))
def test_no_message_is_lost_when_an_earlier_one_is_committed_late(
    pace: Callable[[], Scheduler], case: tuple[int, str], tmp_path: Path
) -> None:
    """A message acknowledged before its delivery is delivered first; a closing session requeues the rest."""
    prefetch, profile = case
    broker = broker_of(profile, prefetch=prefetch, pace=pace())
    late = broker.connect().session("SESSION_TRANSACTED")
    late.producer("in").send(b"", message_id="m1")
    fill(broker, "m2", "m3")
    session = broker.connect().session("AUTO_ACKNOWLEDGE")
    consumer = session.consumer("in")
    if pace is Timed:
        broker.loop.wait(lambda: False)
    late.commit()
    message = received(consumer)
    session.close()
    assert broker.queue("in").length == 2
    assert sorted([message.id, *rest(broker, "in")]) == ["m1", "m2", "m3"]
    accepted(broker, tmp_path)


# several consumers of a queue


@pytest.mark.parametrize("marked", [True, False])
def test_consumers_take_turns(marked: bool) -> None:  # noqa: FBT001 - a parameter of the test
    broker = broker_of("artemis", redelivery_mark_persisted=marked, send_mode="asynchronous")
    consumers = [broker.connect().session("CLIENT_ACKNOWLEDGE").consumer("q") for _ in range(2)]
    producer = broker.connect().session().producer("q")
    for number in range(4):
        producer.send(message_id=str(number))
    assert [[received(consumer).id for _ in range(2)] for consumer in consumers] == [["0", "2"], ["1", "3"]]


def test_a_message_goes_to_a_consumer_that_has_room() -> None:
    broker = broker_of(prefetch=1)
    first, second = (broker.connect().session("CLIENT_ACKNOWLEDGE").consumer("q") for _ in range(2))
    producer = broker.connect().session().producer("q")
    for number in range(3):
        producer.send(message_id=str(number))
    assert [received(first).id, received(second).id] == ["0", "1"]
    assert second.receive(None) is None
    received_again = broker.connect().session("CLIENT_ACKNOWLEDGE").consumer("q")
    assert received(received_again).id == "2"


def test_an_acknowledgement_makes_room_for_the_next_message() -> None:
    broker = broker_of(ack_mode="CLIENT_ACKNOWLEDGE", prefetch=1)
    fill(broker, "m1", "m2", "m3")
    assert rest(broker) == ["m1", "m2", "m3"]


@pytest.mark.parametrize("profile", AUTOMATIC)
@pytest.mark.parametrize("prefetch", [1, 2, 3])
def test_no_message_is_lost_when_one_of_two_consumers_closes(profile: str, prefetch: int, tmp_path: Path) -> None:
    broker = broker_of(profile, prefetch=prefetch)
    sessions = [broker.connect().session("AUTO_ACKNOWLEDGE") for _ in range(2)]
    consumers = [session.consumer("in") for session in sessions]
    fill(broker, "m1", "m2", "m3", "m4")
    had = [consumer.receive(None) for consumer in consumers]
    sessions[0].close()
    while (message := consumers[1].receive(None)) is not None:
        had.append(message)
    sessions[1].close()
    assert sorted(message.id for message in had if message is not None) == ["m1", "m2", "m3", "m4"]
    accepted(broker, tmp_path)


# receive timeouts


@pytest.mark.parametrize("pace", [Timed, AtOnce])
def test_a_receive_without_a_message_takes_its_whole_timeout(pace: Callable[[], Scheduler]) -> None:
    broker = broker_of(pace=pace())
    consumer = broker.connect().session().consumer("q")
    before = broker.now
    assert consumer.receive(2.0) is None
    assert broker.now == before + 2_000_000_000


def test_a_timeout_that_is_not_needed_leaves_the_loop_idle() -> None:
    broker = broker_of(history=None, max_delivery_attempts=0, prefetch=2)
    session = broker.connect().session()
    producer, consumer = session.producer("q"), session.consumer("q")
    for _ in range(5):
        producer.send()
        assert consumer.receive(1.0)
        assert broker.loop.is_idle()
    assert consumer.receive(0.5) is None
    assert broker.now == 500_000_000


def test_the_timeout_of_a_receive_that_got_a_message_is_removed() -> None:
    broker = broker_of(history=None, max_delivery_attempts=0, prefetch=2, send_mode="asynchronous", pace=Timed(seed=1))
    session = broker.connect().session()
    producer, consumer = session.producer("q"), session.consumer("q")
    for _ in range(3):
        producer.send()
        assert consumer.poll() is None
        assert consumer.receive(100.0)
    assert all(at < broker.now + 10**9 for at, *_ in broker.loop._timed)  # noqa: SLF001 - what is still to come
