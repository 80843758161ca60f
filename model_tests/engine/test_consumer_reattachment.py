"""A consumer whose session is re-attached: it keeps what it has had, and nothing is redelivered to it."""

from __future__ import annotations

from typing import Any

import pytest

from ackfsm.engine import Broker, Timed
from model_tests.support.engine.brokers import rest
from model_tests.support.engine.calls import assert_kept
from model_tests.support.tables import shipped

SENT = [f"m{number}" for number in range(4)]
MODES = ["CLIENT_ACKNOWLEDGE", "INDIVIDUAL_ACKNOWLEDGE", "AUTO_ACKNOWLEDGE", "SESSION_TRANSACTED"]


def a_broker(seed: int, profile: str = "artemis", **settings: Any) -> Broker:
    """Frames that take from 100 to 300 µs, and a window that keeps them."""
    chosen: dict[str, Any] = {"consumer_reattachment": True, "publish_window": 10} | settings
    pace = Timed(latency=(100_000, 300_000), seed=seed)
    return Broker(profile, pace=pace, specification=shipped(), history=True, **chosen)


def received(broker: Broker, mode: str, times: range) -> list[tuple[str, bool]]:
    """What a consumer is delivered whose connection breaks at these microseconds, each with its flag."""
    producer = broker.connect().session().producer("q")
    for ident in SENT:
        producer.send(message_id=ident)
    connection = broker.connect()
    session = connection.session(mode)
    consumer = session.consumer("q")
    for microseconds in times:
        broker.loop.schedule(broker.now + 1_000 * microseconds, connection.lose)
    found = []
    while (message := consumer.receive(timeout=None)) is not None:
        found.append((message.id, message.redelivered))
        if mode == "SESSION_TRANSACTED":
            session.commit()
        elif mode != "AUTO_ACKNOWLEDGE":
            message.acknowledge()
    return found


@pytest.mark.parametrize("mode", MODES)
def test_each_message_comes_once_wherever_its_connection_breaks(mode: str) -> None:
    for start in range(0, 600, 120):
        broker = a_broker(start)
        assert received(broker, mode, range(start, 3_000, 700)) == [(ident, False) for ident in SENT], start
        assert rest(broker, "q") == [], start
        assert_kept(broker)


def test_without_re_attachment_some_come_again() -> None:
    again = 0
    for start in range(0, 600, 120):
        broker = a_broker(start, consumer_reattachment=False)
        again += len(received(broker, "CLIENT_ACKNOWLEDGE", range(start, 3_000, 700))) > len(SENT)
    assert again


@pytest.mark.parametrize("profile", ["artemis", "jms"])
def test_a_queue_goes_on_to_dispatch_to_a_session_that_is_re_attached(profile: str) -> None:
    broker = a_broker(0, profile)
    broker.connect().session().producer("q").send(message_id="m0")
    connection = broker.connect()
    consumer = connection.session("INDIVIDUAL_ACKNOWLEDGE").consumer("q")
    connection.lose()
    message = consumer.receive(timeout=None)
    assert message is not None
    assert not message.redelivered


def test_a_link_in_the_second_settling_mode_that_is_resumed_delivers_each_message_once() -> None:
    settings = {"receiver_settles": "second", "block_on_acknowledge": False}
    for start in range(0, 600, 120):
        broker = a_broker(start, "jms", **settings)
        found = received(broker, "INDIVIDUAL_ACKNOWLEDGE", range(start, 3_000, 700))
        assert found == [(ident, False) for ident in SENT], start
        assert rest(broker, "q") == [], start
        assert_kept(broker)


def test_what_the_receiver_has_heard_settled_is_gone_from_the_queue() -> None:
    broker = a_broker(0, "jms", receiver_settles="second", block_on_acknowledge=False, consumer_reattachment=False)
    assert received(broker, "INDIVIDUAL_ACKNOWLEDGE", range(0)) == [(ident, False) for ident in SENT]
    assert broker.queue("q").length == 0
