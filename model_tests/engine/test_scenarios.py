"""What went wrong once in an engine, each the shortest run that showed it; the name says what must hold."""

from __future__ import annotations

from typing import Any

import pytest

from ackfsm.engine import (
    Broker,
    BrokerStopped,
    MessageRejected,
    Outcome,
    Shuffled,
    Timed,
    TransactionRolledBackException,
)
from model_tests.support.engine.calls import assert_kept, shared_wiring
from model_tests.support.engine.refinement import Refinement
from model_tests.support.tables import shipped

__all__ = ["shared_wiring"]


def test_a_rejection_reaches_the_producer_over_a_slow_network() -> None:
    broker = Broker("jms", pace=Timed(), specification=shipped())
    producer = broker.connect().session().producer("q")
    broker.queue("q").refuse_next = 1
    with pytest.raises(MessageRejected):
        producer.send(b"x")


def test_who_connects_while_the_broker_is_down_waits_until_it_is_started() -> None:
    broker = Broker("jms", specification=shipped())
    refinement = Refinement(broker)
    broker.crash()
    refinement.take(broker.connect().session().producer("q"))
    assert broker.running
    refinement.check()


def test_nobody_connects_to_a_broker_that_nobody_starts() -> None:
    broker = Broker("jms", specification=shipped(), repairs=False)
    session = broker.connect().session()
    broker.crash()
    with pytest.raises(BrokerStopped):
        session.consumer("q")


@pytest.mark.parametrize("side", ["producer", "consumer"])
def test_a_fault_of_a_connection_is_told_by_the_sides_that_it_has(side: str) -> None:
    broker = Broker("jms", specification=shipped(), history=True)
    with broker.connect() as connection:
        session = connection.session()
        getattr(session, side)("q")
        connection.lose()
    assert broker.history
    assert [line["fault"] for line in broker.history.lines if line["event"] == "fault"] == [f"{side}_link_loss"]


def test_a_session_that_has_nothing_to_do_for_its_timer_is_left_alone() -> None:
    broker = Broker("solace", specification=shipped(), publish_window=2, confirm_timer=True)
    session = broker.connect().session()
    session.producer("q")
    session.fault("link_loss")
    assert not broker.loop.perform_link_event("producer_link_loss", next(iter(session.senders.values())))
    while broker.loop.step():
        pass


def test_a_listener_that_throws_is_a_fault_in_the_history() -> None:
    def throws(_: object) -> None:
        raise RuntimeError("the application fails")

    broker = Broker("jms", specification=shipped(), history=True, max_delivery_attempts=1)
    broker.connect().session().consumer("q", listener=throws)
    broker.connect().session().producer("q").send()
    assert broker.history
    assert {line["fault"] for line in broker.history.lines if line["event"] == "fault"} == {"listener_exception"}


@pytest.mark.parametrize("fault", ["crash", "kill"])
def test_what_waited_in_the_queue_when_the_broker_fell_is_acknowledged_for_good(fault: str) -> None:
    broker = Broker("jms", specification=shipped(), history=True, ack_mode="CLIENT_ACKNOWLEDGE")
    broker.connect().session().producer("q").send()
    getattr(broker, fault)()
    consumer = broker.connect().session().consumer("q")
    message = consumer.receive()
    assert message is not None
    message.acknowledge()
    assert broker.queue("q").length == 0


def test_a_transaction_is_named_by_a_text_in_the_history() -> None:
    broker = Broker("jms", specification=shipped(), history=True, ack_mode="SESSION_TRANSACTED")
    session = broker.connect().session()
    session.producer("q").send()
    session.commit()
    assert_kept(broker)


def test_what_was_sent_after_a_transaction_was_lost_goes_with_it() -> None:
    broker = Broker("jms", specification=shipped(), history=True, ack_mode="SESSION_TRANSACTED")
    connection = broker.connect()
    session = connection.session()
    producer = session.producer("q")
    producer.send(message_id="before")
    connection.lose()
    broker.loop.step()
    producer.send(message_id="after")
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    assert broker.queue("q").length == 0
    assert_kept(broker)


@pytest.mark.parametrize("seed", range(20))
def test_what_the_journal_brings_back_is_sent_at_any_pace(seed: int) -> None:
    broker = Broker("jms", specification=shipped(), pace=Shuffled(seed))
    broker.connect().session().producer("q").send()
    broker.kill()
    consumer = broker.connect().session().consumer("q")
    assert consumer.receive() is not None


def test_a_message_tried_as_often_as_it_may_be_is_dead_lettered_when_it_is_rolled_back() -> None:
    broker = Broker("jms", specification=shipped(), ack_mode="SESSION_TRANSACTED", max_delivery_attempts=1)
    sender = broker.connect().session()
    sender.producer("q").send(message_id="m", delivery_mode="NON_PERSISTENT")
    sender.commit()
    receiver = broker.connect().session()
    assert receiver.consumer("q").receive() is not None
    receiver.rollback()
    assert [message.id for message in broker.dead_letters] == ["m"]


def test_a_session_is_closed_when_its_acknowledgements_are_read() -> None:
    broker = Broker("jms", specification=shipped(), pace=Timed(), ack_mode="INDIVIDUAL_ACKNOWLEDGE")
    producer = broker.connect().session().producer("q")
    for _ in range(2):
        producer.send()
    session = broker.connect().session()
    consumer = session.consumer("q")
    first = consumer.receive(None)
    assert first is not None
    first.acknowledge()
    session.close()
    last = broker.connect().session().consumer("q").receive(None)
    assert last is not None
    assert last.id != first.id


@pytest.mark.parametrize("seed", range(8))
def test_what_a_sync_for_another_took_along_does_not_come_back(seed: int) -> None:
    settings: dict[str, Any] = {
        "ack_mode": "NO_ACKNOWLEDGE",
        "send_mode": "unconfirmed",
        "redelivery_mark_persisted": True,
    }
    broker = Broker("jms", specification=shipped(), seed=seed, max_delivery_attempts=1, **settings)
    broker.connect().session().consumer("q", listener=repr)
    producer = broker.connect().session().producer("q")
    for _ in range(3):
        producer.send()
        broker.crash()
        broker.restart()
        broker.loop.step()
    broker.connect().session().consumer("q", listener=repr)
    assert broker.loop.wait(lambda: not broker.queue("q").length)


@pytest.mark.parametrize("seed", range(8))
def test_a_session_that_is_closed_leaves_nothing_of_its_transaction(seed: int) -> None:
    broker = Broker("jms", specification=shipped(), pace=Shuffled(seed), ack_mode="SESSION_TRANSACTED")
    session = broker.connect().session()
    session.producer("q").send()
    session.close()
    assert broker.loop.wait(lambda: not broker.queue("q").length)
    broker.drained()


def test_a_consumer_that_reconnects_is_sent_what_waits() -> None:
    broker = Broker("jms", specification=shipped(), pace=Timed(), prefetch=1, send_mode="asynchronous")
    session = broker.connect().session()
    consumer = session.consumer("q")
    producer = broker.connect().session().producer("q")
    for _ in range(3):
        producer.send()
    producer.wait()
    for _ in range(3):
        session.fault("link_loss")
        assert consumer.receive(None) is not None


def test_a_session_is_closed_when_its_sends_have_an_outcome() -> None:
    broker = Broker("jms", specification=shipped(), pace=Shuffled(1), send_mode="asynchronous")
    session = broker.connect().session()
    sent = session.producer("q").send()
    session.close()
    assert sent.outcome is Outcome.CONFIRMED


def test_a_frame_to_a_session_that_is_gone_does_not_stand_for_that_to_the_next() -> None:
    slow = Timed(latency=(10**9, 10**9))
    broker = Broker("jms", specification=shipped(), pace=slow, delivery_mode="NON_PERSISTENT")
    broker.connect().session().producer("q").send()
    connection = broker.connect()
    connection.session().consumer("q")
    connection.crash()
    consumer = broker.connect().session().consumer("q")
    started = broker.now
    assert consumer.receive(None) is not None
    assert broker.now >= started + 10**9


@pytest.mark.parametrize("seed", range(8))
def test_what_arrives_while_a_session_commits_is_handed_over_afterwards(seed: int) -> None:
    broker = Broker("ems", specification=shipped(), pace=Shuffled(seed), ack_mode="SESSION_TRANSACTED", prefetch=2)
    received: list[str] = []
    session = broker.connect().session()
    session.consumer("q", listener=lambda message: received.append(message.id))
    sender = broker.connect().session()
    producer = sender.producer("q")
    for _ in range(4):
        producer.send()
        sender.commit()
        session.commit()
    while broker.loop.step():
        session.commit()
    assert len(received) == 4


@pytest.mark.parametrize("fault", ["crash", "kill"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_what_became_of_a_commit_is_found_out_when_its_session_is_gone(fault: str, when: str) -> None:
    broker = Broker(
        "jms", specification=shipped(), ack_mode="SESSION_TRANSACTED", journal_sync_transactional=False, history=True
    )
    connection = broker.connect()
    session = connection.session()
    session.producer("q").send()
    session.commit()
    if when == "before":
        connection.close()
    getattr(broker, fault)()
    if when == "after":
        connection.close()
    broker.restart()
    receiver = broker.connect().session()
    consumer = receiver.consumer("q")
    while consumer.receive() is not None:
        receiver.commit()
    broker.drained()


def test_a_mark_that_is_synced_takes_an_acknowledgement_along() -> None:
    broker = Broker("jms", specification=shipped(), redelivery_mark_persisted=True, ack_mode="CLIENT_ACKNOWLEDGE")
    broker.connect().session().consumer("q", listener=lambda message: message.acknowledge())
    producer = broker.connect().session().producer("q")
    for _ in range(3):
        producer.send()
        producer.send(delivery_mode="NON_PERSISTENT")
    broker.kill()
    broker.restart()
    broker.loop.wait(lambda: not broker.queue("q").length)
    broker.drained()


@pytest.mark.parametrize("fault", ["crash", "kill"])
def test_what_another_session_still_has_of_a_message_does_not_stand_for_it_in_the_queue(fault: str) -> None:
    broker = Broker("jms", specification=shipped(), ack_mode="CLIENT_ACKNOWLEDGE")
    broker.connect().session().producer("q").send(message_id="m")
    connections = [broker.connect() for _ in range(3)]
    for connection in connections:
        assert connection.session().consumer("q").receive() is not None
        if connection is not connections[-1]:
            connection.lose()
    while broker.loop.step():
        pass
    getattr(broker, fault)()
    broker.restart()
    for connection in connections:
        connection.close()
    again = broker.connect().session().consumer("q").receive()
    assert again is not None
    assert again.id == "m"


@pytest.mark.parametrize("seed", range(8))
def test_what_a_session_had_that_is_gone_goes_to_the_next_at_any_pace(seed: int) -> None:
    broker = Broker("jms", specification=shipped(), pace=Shuffled(seed))
    broker.connect().session().producer("q").send()
    connection = broker.connect()
    connection.session().consumer("q")
    while broker.loop.step():
        pass
    connection.lose()
    connection.close()
    assert broker.connect().session().consumer("q").receive() is not None


@pytest.mark.parametrize("detects", [True, False])
def test_a_message_with_a_known_id_is_dropped_where_the_broker_looks_at_ids(*, detects: bool) -> None:
    broker = Broker("artemis", specification=shipped(), duplicate_detection=detects)
    producer = broker.connect().session(send_mode="blocking").producer("q")
    for body in (b"first", b"second"):
        producer.send(body, duplicate_id=b"id")
    assert broker.queue("q").length == (1 if detects else 2)
