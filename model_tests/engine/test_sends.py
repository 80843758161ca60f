"""The outcome of a send: rejections, confirmations of ranges, resends, duplicate ids."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pytest

from ackfsm.engine import Broker, MessageRejected, Outcome, OutcomeUnknown, Sent, Timed
from model_tests.support.engine.brokers import broker_of
from model_tests.support.engine.calls import assert_kept, shared_wiring
from model_tests.support.tables import shipped

__all__ = ["shared_wiring"]


# outcomes


def test_a_rejection_reaches_the_producer_over_a_slow_network() -> None:
    broker = Broker("jms", pace=Timed(), specification=shipped())
    producer = broker.connect().session().producer("q")
    broker.queue("q").refuse_next = 1
    with pytest.raises(MessageRejected):
        producer.send(b"x")


def test_a_queue_rejects_messages_beyond_its_max_length() -> None:
    broker = broker_of()
    producer = broker.connect().session().producer(broker.queue("q", max_length=2))
    for _ in range(2):
        producer.send()
    with pytest.raises(MessageRejected, match="takes no more"):
        producer.send()
    assert broker.queue("q").length == 2


@pytest.mark.parametrize(("mode", "heard"), [("PER_MESSAGE", [0, 1, 2, 3, 4, 5]), ("WINDOWED", [1, 3, 5])])
def test_a_handler_is_called_once_for_a_range_where_ack_events_are_windowed(mode: str, heard: Sequence[int]) -> None:
    """Two messages are a third of the window: the broker confirms them together."""
    broker = Broker(
        "solace", pace=Timed(), specification=shipped(), history=True, publish_window=6, ack_event_mode=mode
    )
    events: list[tuple[Sent, list[Outcome]]] = []
    sent: list[Sent] = []

    def hear(message: Sent) -> None:
        events.append((message, [each.outcome for each in sent]))

    producer = broker.connect().session().producer("q", on_outcome=hear)
    for _ in range(3):
        sent += [producer.send(b"x") for _ in range(2)]
        producer.wait()
    assert [sent.index(message) for message, _ in events] == heard
    for message, outcomes in events:
        assert set(outcomes[: sent.index(message) + 1]) == {Outcome.CONFIRMED}, "the message and all before it"
    assert_kept(broker)


@pytest.mark.parametrize("transacted", [False, True])
def test_a_message_sent_before_earlier_ones_are_resent_is_confirmed_with_them(transacted: bool) -> None:  # noqa: FBT001 - a case
    settings = {"send_mode": "asynchronous", "resend_in_doubt": True, "redelivery_mark_persisted": False}
    mode = "SESSION_TRANSACTED" if transacted else "AUTO_ACKNOWLEDGE"
    broker = broker_of("jms", pace=Timed(latency=(100_000, 100_000)), ack_mode=mode, **settings)
    client = broker.connect()
    session = client.session()
    producer = session.producer("q")
    sent = [producer.send(message_id=name) for name in ("m1", "m2")]
    if transacted:
        broker.loop.schedule(50_000, client.lose)
        with pytest.raises(OutcomeUnknown):
            session.commit()
    else:
        client.lose()
    sent.append(producer.send(message_id="m3"))
    for message in sent[:2]:
        producer.resend(message)
    if transacted:
        session.commit()
    else:
        producer.wait()
        assert {message.outcome for message in sent} == {Outcome.CONFIRMED}
    assert broker.queue("q").length == 3


# duplicate ids


@pytest.mark.parametrize("mode", ["AUTO_ACKNOWLEDGE", "SESSION_TRANSACTED"])
@pytest.mark.parametrize("detects", [True, False])
def test_a_message_under_a_known_duplicate_id_is_dropped_where_the_broker_detects_duplicates(
    mode: str,
    *,
    detects: bool,
) -> None:
    """It is sent, and in doubt; it is resent, with an outcome; and another message is sent under its duplicate id."""
    settings = {"ack_mode": mode, "resend_in_doubt": True, "duplicate_detection": detects}
    network = Timed(latency=(100_000, 100_000), disk=1_000_000)
    broker = broker_of("artemis", pace=network, **settings)
    heard: list[Sent] = []
    with broker.connect() as client:
        session = client.session()
        producer = session.producer("q", on_outcome=heard.append)
        broker.loop.schedule(250_000 if mode == "AUTO_ACKNOWLEDGE" else 150_000, client.lose)
        with contextlib.suppress(OutcomeUnknown):
            heard.append(producer.send(b"first", message_id="m", duplicate_id=b"m"))
            session.commit()
        producer.resend(heard[0])
        if session.transacted:
            session.commit()
        assert broker.queue("q").length == (1 if detects else 2)
        producer.send(b"second", duplicate_id=b"m")
        if session.transacted:
            session.commit()
    assert broker.queue("q").length == (1 if detects else 3)


def test_a_duplicate_id_is_known_once_its_message_is_stored() -> None:
    """The confirmation of the second copy promises the first, which was not synced until then."""
    broker = broker_of("artemis", duplicate_detection=True, delivery_mode="PERSISTENT")
    first = broker.connect().session(send_mode="unconfirmed").producer("q").send(duplicate_id=b"once")
    second = broker.connect().session().producer("q").send(duplicate_id=b"once")
    assert (first.outcome, second.outcome) == (Outcome.UNCONFIRMED, Outcome.CONFIRMED)
    broker.crash()
    broker.restart()
    assert broker.queue("q").length == 1


@pytest.mark.parametrize("mode", ["PERSISTENT", "NON_PERSISTENT"])
def test_the_duplicate_id_of_a_lost_message_is_not_known(mode: str) -> None:
    broker = broker_of("artemis", duplicate_detection=True, delivery_mode=mode)
    broker.connect().session(send_mode="unconfirmed").producer("q").send(duplicate_id=b"once")
    broker.crash()
    broker.restart()
    assert broker.queue("q").length == 0
    broker.connect().session().producer("q").send(duplicate_id=b"once")
    assert broker.queue("q").length == 1
