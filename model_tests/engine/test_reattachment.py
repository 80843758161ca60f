"""A sender whose session is re-attached: nothing fails, is lost or comes twice, wherever its connection breaks."""

from __future__ import annotations

from typing import Any

import pytest

from ackfsm.engine import Broker, Outcome, OutcomeUnknown, Shuffled, Timed
from model_tests.support.engine.brokers import rest
from model_tests.support.engine.calls import assert_kept
from model_tests.support.tables import shipped

MODES = ["blocking", "asynchronous"]
SENT = [f"m{number}" for number in range(4)]


def a_broker(seed: int, **settings: Any) -> Broker:
    """Frames that take from 100 to 300 µs, and a window that keeps them."""
    chosen: dict[str, Any] = {"session_reattachment": True, "publish_window": 10} | settings
    pace = Timed(latency=(100_000, 300_000), seed=seed)
    return Broker("artemis", pace=pace, specification=shipped(), history=True, **chosen)


def broken_at(broker: Broker, times: range) -> None:
    """Break every connection at these microseconds."""
    for microseconds in times:
        for connection in broker.connections:
            broker.loop.schedule(broker.now + 1_000 * microseconds, connection.lose)


@pytest.mark.parametrize("mode", MODES)
def test_no_send_is_in_doubt_wherever_its_connection_breaks(mode: str) -> None:
    for start in range(0, 600, 30):
        broker = a_broker(start, send_mode=mode)
        producer = broker.connect().session().producer("q")
        broken_at(broker, range(start, 3_000, 700))
        sent = [producer.send(message_id=ident) for ident in SENT]
        producer.wait()
        assert {each.outcome for each in sent} == {Outcome.CONFIRMED}, start
        assert rest(broker, "q") == SENT, start
        assert_kept(broker)


def test_without_re_attachment_one_of_them_is() -> None:
    unknown = 0
    for start in range(0, 600, 30):
        broker = a_broker(start, session_reattachment=False)
        producer = broker.connect().session().producer("q")
        broken_at(broker, range(start, 3_000, 700))
        for ident in SENT:
            try:
                producer.send(message_id=ident)
            except OutcomeUnknown:
                unknown += 1
    assert unknown


def test_no_commit_fails_wherever_its_connection_breaks() -> None:
    for start in range(0, 900, 30):
        broker = a_broker(start)
        session = broker.connect().session("SESSION_TRANSACTED")
        producer = session.producer("q")
        broken_at(broker, range(start, 3_000, 700))
        for ident in SENT:
            producer.send(message_id=ident)
        session.commit()
        assert rest(broker, "q") == SENT, start
        assert_kept(broker)


@pytest.mark.parametrize("mode", MODES)
def test_a_broker_that_was_restarted_knows_no_session(mode: str) -> None:
    broker = a_broker(1, send_mode=mode)
    connection = broker.connect()
    producer = connection.session().producer("q")
    broker.loop.schedule(broker.now + 50_000, connection.lose)
    broker.loop.schedule(broker.now + 60_000, broker.kill)
    if mode == "blocking":
        with pytest.raises(OutcomeUnknown):
            producer.send(message_id="m")
    else:
        sent = producer.send(message_id="m")
        producer.wait()
        assert sent.outcome is Outcome.IN_DOUBT
    assert producer.send(message_id="next") is not None
    producer.wait()
    assert rest(broker, "q") == ["next"]
    assert_kept(broker)


def test_in_any_order_of_steps_everything_arrives_once() -> None:
    for seed in range(40):
        settings: dict[str, Any] = {"session_reattachment": True, "publish_window": 10, "send_mode": "asynchronous"}
        broker = Broker("artemis", pace=Shuffled(seed), specification=shipped(), history=True, **settings)
        connection = broker.connect()
        producer = connection.session().producer("q")
        for ident in SENT:
            producer.send(message_id=ident)
            for _ in range(seed % 5):
                broker.loop.step()
            connection.lose()
        producer.wait()
        assert rest(broker, "q") == SENT, seed
        assert_kept(broker)
