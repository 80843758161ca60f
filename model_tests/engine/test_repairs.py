"""What the engine once did wrong, each as the shortest program that shows it."""

from __future__ import annotations

import contextlib

import pytest

from ackfsm.engine import Broker, Message, Outcome, OutcomeUnknown, Sent, Timed
from model_tests.support.tables import shipped


def _broker(profile: str = "jms", **settings: object) -> Broker:
    return Broker(profile, specification=shipped(), history=True, **settings)  # type: ignore[arg-type] # settings


def _sent(broker: Broker, *names: str) -> None:
    with broker.connect() as client:
        for name in names:
            client.session().producer("q").send(message_id=name)


def _taken(broker: Broker) -> list[str]:
    with broker.connect() as client:
        consumer = client.session().consumer("q")
        taken: list[Message] = []
        while (message := consumer.receive(None)) is not None:
            message.acknowledge()
            taken.append(message)
    return [message.id for message in taken]


@pytest.mark.parametrize("mode", ["AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE"])
def test_what_nobody_had_when_the_broker_died_is_acknowledged_like_all_else(mode: str) -> None:
    broker = _broker(ack_mode=mode)
    _sent(broker, "m")
    broker.kill()
    broker.restart()
    assert _taken(broker) == ["m"]
    assert broker.queue("q").length == 0


def test_an_acknowledgement_makes_room_for_the_next_message() -> None:
    broker = _broker(ack_mode="CLIENT_ACKNOWLEDGE", prefetch=1)
    _sent(broker, "m1", "m2", "m3")
    assert _taken(broker) == ["m1", "m2", "m3"]


@pytest.mark.parametrize(("what", "fault"), [("lose", "link_loss"), ("crash", "crash")])
@pytest.mark.parametrize("side", ["producer", "consumer"])
def test_the_history_says_which_side_a_fault_was_of(side: str, what: str, fault: str) -> None:
    broker = _broker()
    client = broker.connect()
    getattr(client.session(), side)("q")
    getattr(client, what)()
    assert broker.history
    assert [line["fault"] for line in broker.history.lines if line["event"] == "fault"] == [f"{side}_{fault}"]


def test_the_history_names_transactions_by_text() -> None:
    broker = _broker(ack_mode="SESSION_TRANSACTED")
    with broker.connect() as client:
        session = client.session()
        session.producer("q").send(message_id="m")
        session.commit()
    assert broker.history
    assert {type(line["transaction"]) for line in broker.history.lines if "transaction" in line} == {str}


@pytest.mark.parametrize("mode", ["AUTO_ACKNOWLEDGE", "SESSION_TRANSACTED"])
def test_what_is_sent_again_under_a_known_id_is_taken_once(mode: str) -> None:
    settings = {"ack_mode": mode, "resend_in_doubt": True, "duplicate_detection": True}
    network = Timed(latency=(100_000, 100_000), disk=1_000_000)
    broker = _broker("artemis", pace=network, **settings)
    heard: list[Sent] = []
    with broker.connect() as client:
        session = client.session()
        producer = session.producer("q", on_outcome=heard.append)
        broker.loop.schedule(250_000 if mode == "AUTO_ACKNOWLEDGE" else 150_000, client.lose)
        with contextlib.suppress(OutcomeUnknown):
            heard.append(producer.send(message_id="m", duplicate_id=b"m"))
            session.commit()
        producer.resend(heard[0])
        if session.transacted:
            session.commit()
    assert broker.queue("q").length == 1


def test_a_transaction_that_is_sent_again_is_committed() -> None:
    broker = _broker("jms", pace=Timed(latency=(100_000, 100_000)), ack_mode="SESSION_TRANSACTED", resend_in_doubt=True)
    with broker.connect() as client:
        session = client.session()
        producer = session.producer("q")
        message = producer.send(message_id="m")
        broker.loop.schedule(50_000, client.lose)
        with pytest.raises(OutcomeUnknown):
            session.commit()
        producer.resend(message)
        session.commit()
    assert broker.history
    assert [line["event"] for line in broker.history.lines if line["event"].startswith("commit")] == [
        "commit",
        "commit_in_doubt",
        "commit",
        "committed",
    ]
    assert broker.queue("q").length == 1


def test_what_is_lost_with_the_memory_of_the_broker_is_not_in_its_queue() -> None:
    broker = _broker(send_mode="unconfirmed")
    with broker.connect() as client:
        client.session().producer("q").send(message_id="m")
        broker.crash()
    broker.restart()
    assert _taken(broker) == []
    assert broker.queue("q").length == 0


def test_a_record_that_was_synced_with_another_is_found_or_removed() -> None:
    broker = _broker(send_mode="unconfirmed", ack_mode="CLIENT_ACKNOWLEDGE", prefetch=1)
    _sent(broker, "m1", "m2")
    broker.connect().session().consumer("q").receive()
    broker.crash()
    broker.restart()
    assert set(_taken(broker)) <= {"m1", "m2"}
    broker.crash()
    broker.restart()
    assert _taken(broker) == []
    broker.drained()


@pytest.mark.parametrize("transacted", [False, True])
def test_what_is_sent_before_others_are_sent_again_is_read_after_them(transacted: bool) -> None:  # noqa: FBT001 - a case
    settings = {"send_mode": "asynchronous", "resend_in_doubt": True, "redelivery_mark_persisted": False}
    mode = "SESSION_TRANSACTED" if transacted else "AUTO_ACKNOWLEDGE"
    broker = _broker("jms", pace=Timed(latency=(100_000, 100_000)), ack_mode=mode, **settings)
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
