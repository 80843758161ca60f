"""A subscription that is not durable: consumers get what is sent while it exists, and it ends with the last of them.

What a consumer may get is told here with a number: that of the subscription, which is another one after its end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackfsm.engine import AtOnce, Broker, Connection, Consumer, Message, Producer, Shuffled, Timed
from ackfsm.engine.core.scheduler import Scheduler
from model_tests.support.engine.settings import effort
from model_tests.support.tables import shipped

PACES: list[Callable[[], Scheduler]] = [AtOnce, Timed, Shuffled]
ENDS = ["close", "crash", "lose"]


def topic(pace: Scheduler, destination: str = "non_durable_subscription", **settings: Any) -> Broker:
    chosen: dict[str, Any] = {"ack_mode": "AUTO_ACKNOWLEDGE", "consumption": "receive", "send_mode": "blocking"}
    chosen |= settings
    return Broker("jms", specification=shipped(), pace=pace, destination=destination, history=True, **chosen)


def received(consumer: Consumer) -> list[Message]:
    found = []
    while (message := consumer.receive(None)) is not None:
        found.append(message)
    return found


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("crashes", [False, True])
def test_a_later_subscriber_gets_nothing_that_was_sent_before_or_that_another_had(
    pace: Callable[[], Scheduler], ends: str, *, crashes: bool
) -> None:
    broker = topic(pace(), prefetch=0)
    producer = broker.connect().session().producer("q")
    first = broker.connect()
    first.session().consumer("q")
    if crashes:
        broker.crash()
    producer.send(b"", message_id="m1")
    getattr(first, ends)()
    producer.send(b"", message_id="m2")
    first.close()
    later = broker.connect().session().consumer("q")
    producer.send(b"", message_id="m3")
    assert [message.id for message in received(later)] == ["m3"]
    broker.drained()


@pytest.mark.parametrize("destination", ["queue", "durable_subscription"])
def test_a_queue_and_a_durable_subscription_keep_what_is_sent_while_nobody_is_there(destination: str) -> None:
    broker = topic(AtOnce(), destination)
    producer = broker.connect().session().producer("q")
    first = broker.connect()
    first.session().consumer("q")
    producer.send(b"", message_id="m1")
    first.close()
    producer.send(b"", message_id="m2")
    found = received(broker.connect().session().consumer("q"))
    assert [message.id for message in found] == ["m1", "m2"]


def test_a_shared_subscription_goes_on_with_the_consumers_that_are_left() -> None:
    broker = topic(AtOnce(), ack_mode="CLIENT_ACKNOWLEDGE", prefetch=1)
    producer = broker.connect().session().producer("q")
    first, second = broker.connect(), broker.connect()
    left, other = (connection.session().consumer("q") for connection in (first, second))
    for _ in range(3):
        producer.send(b"")
    assert left.receive() is not None
    first.close()
    had = []
    while (message := other.receive(None)) is not None:
        message.acknowledge()
        had.append(message)
    assert len(had) == 3


class _Subscription:
    """A producer, and so many consumers of one subscription as there are at the time."""

    def __init__(self, broker: Broker) -> None:
        self.producer: Producer = broker.connect().session().producer("q")
        self.broker = broker
        self.consumers: list[tuple[Connection, Consumer]] = []
        self.number = 0
        self.sent: dict[str, int | None] = {}

    def open(self) -> None:
        connection = self.broker.connect()
        self.consumers.append((connection, connection.session().consumer("q")))

    def end(self, which: int, how: str) -> None:
        if self.consumers:
            connection, _ = self.consumers.pop(which % len(self.consumers))
            getattr(connection, how)()
            self.number += not self.consumers
            connection.close()

    def send(self) -> None:
        sent = self.producer.send(b"")
        self.sent[sent.id] = self.number if self.consumers else None

    def receive(self, which: int) -> None:
        if self.consumers:
            _, consumer = self.consumers[which % len(self.consumers)]
            message = consumer.receive()
            if message is not None:
                assert self.sent[message.id] == self.number, (message.id, self.sent, self.number)
                del self.sent[message.id]

    def drain(self) -> None:
        """All that the subscription has is received; the next one begins empty."""
        owed = {name for name, number in self.sent.items() if self.consumers and number == self.number}
        found = {message.id for _, consumer in self.consumers for message in received(consumer)}
        assert found == owed


CALLS = st.one_of(
    st.tuples(st.just("open")),
    st.tuples(st.just("send")),
    st.tuples(st.just("receive"), st.integers(0, 2)),
    st.tuples(st.just("end"), st.integers(0, 2), st.sampled_from(ENDS)),
)


@effort(150, 25)
@given(calls=st.lists(CALLS, max_size=25), pace=st.sampled_from(PACES), prefetch=st.sampled_from([0, 1, 5]))
def test_consumers_get_all_that_is_sent_while_their_subscription_exists_and_nothing_else(
    calls: list[tuple[str, *tuple[object, ...]]], pace: Callable[[], Scheduler], prefetch: int
) -> None:
    subscription = _Subscription(topic(pace(), prefetch=prefetch, block_on_acknowledge=True))
    for name, *arguments in calls:
        getattr(subscription, name)(*arguments)
    subscription.drain()
