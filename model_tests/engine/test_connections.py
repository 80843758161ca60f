"""Links that break, clients that crash or reconnect, and messages of sessions that are gone."""

from __future__ import annotations

import pytest

from ackfsm.engine import Broker, BrokerStopped, IllegalStateException, Message, OutcomeUnknown, Shuffled, Timed
from ackfsm.tables.names import FRAMES
from model_tests.support.engine.brokers import broker_of, fill, received
from model_tests.support.engine.calls import assert_kept
from model_tests.support.engine.refinement import Refinement
from model_tests.support.tables import shipped

# connecting


def test_a_client_that_connects_while_the_broker_is_down_waits_for_its_restart() -> None:
    broker = Broker("jms", specification=shipped())
    refinement = Refinement(broker)
    broker.crash()
    refinement.take(broker.connect().session().producer("q"))
    assert broker.running
    refinement.check()


def test_a_client_cannot_connect_to_a_broker_that_is_not_restarted() -> None:
    broker = Broker("jms", specification=shipped(), repairs=False)
    session = broker.connect().session()
    broker.crash()
    with pytest.raises(BrokerStopped):
        session.consumer("q")


def test_a_consumer_that_reconnects_is_sent_the_waiting_messages() -> None:
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


def test_a_consumer_that_reconnects_in_a_transaction_is_sent_the_waiting_messages() -> None:
    broker = broker_of()
    session = broker.connect().session("SESSION_TRANSACTED")
    consumer = session.consumer("q")
    session.producer("out").send()
    session.fault("link_loss")
    broker.connect().session().producer("q").send(message_id="m")
    assert received(consumer).id == "m"


# the network


def test_a_lost_frame_breaks_the_link_of_both_sides_of_its_session() -> None:
    pace = Timed(loss=1)
    broker = Broker("jms", pace=pace, specification=shipped(), history=True)
    session = broker.connect().session()
    session.consumer("q")
    producer = session.producer("q")
    with pytest.raises(OutcomeUnknown):
        producer.send(b"x")
    pace.heal()
    assert broker.history
    faults = [line["fault"] for line in broker.history.lines if line["event"] == "fault"]
    assert faults[:2] == ["producer_link_loss", "consumer_link_loss"]
    producer.send(b"y")
    assert_kept(broker)


def test_a_healed_network_loses_no_frames() -> None:
    pace = Timed(loss=1.0)
    assert all(map(pace.loses, FRAMES))
    pace.heal()
    assert not any(map(pace.loses, sorted(FRAMES) * 10))


def test_a_confirm_timer_of_a_session_without_sends_causes_no_second_link_loss() -> None:
    broker = Broker("solace", specification=shipped(), publish_window=2, confirm_timer=True)
    session = broker.connect().session()
    session.producer("q")
    session.fault("link_loss")
    assert not broker.loop.perform_link_event("producer_link_loss", next(iter(session.senders.values())))
    while broker.loop.step():
        pass


def test_no_frames_of_closed_connections_are_kept() -> None:
    broker = Broker("jms", specification=shipped(), pace=Timed(latency=(0, 300_000)))
    for _ in range(3):
        with broker.connect() as connection:
            connection.session().producer("q").send()
            message = connection.session("CLIENT_ACKNOWLEDGE").consumer("q").receive(1)
            assert message
            message.acknowledge()
    while broker.loop.step():
        pass
    assert not broker.loop._last_arrival  # noqa: SLF001 - it shows nowhere else
    assert broker.stepper.links == {broker.stepper.broker: None}


# messages of sessions that are gone


def test_a_message_in_flight_to_a_client_that_crashes_is_dispatched_again() -> None:
    """It reaches the other consumer with the full latency after the crash."""
    broker = broker_of(pace=Timed(latency=(100_000, 100_000)))
    broker.connect().session().producer("q").send()
    start, client = broker.now, broker.connect()
    client.session().consumer("q")
    other = broker.connect().session().consumer("q")
    broker.loop.schedule(start + 50_000, client.crash)
    received(other)
    assert broker.now >= start + 150_000


def test_a_frame_to_a_crashed_client_is_not_taken_for_the_one_to_the_next_client() -> None:
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
def test_a_message_of_a_lost_session_goes_to_the_next_at_any_pace(seed: int) -> None:
    broker = Broker("jms", specification=shipped(), pace=Shuffled(seed))
    broker.connect().session().producer("q").send()
    connection = broker.connect()
    connection.session().consumer("q")
    while broker.loop.step():
        pass
    connection.lose()
    connection.close()
    assert broker.connect().session().consumer("q").receive() is not None


def test_messages_of_a_consumer_that_left_while_the_broker_was_down_go_to_another() -> None:
    """What was dispatched to the session that is gone is dispatched to the next one."""
    broker = broker_of("jms", pace=Shuffled(0), ack_mode="SESSION_TRANSACTED", prefetch=0)
    leaving = broker.connect()
    leaving.session().consumer("q")
    with broker.connect().session() as session:
        for name in ("m1", "m2"):
            session.producer("q").send(message_id=name)
        session.commit()
    broker.crash()
    leaving.close()
    session = broker.connect().session()
    consumer = session.consumer("q")
    had = [message.id for message in iter(lambda: consumer.receive(None), None)]
    assert had == ["m1", "m2"]


@pytest.mark.parametrize("fault", ["crash", "kill"])
def test_a_message_may_still_be_held_by_any_number_of_disconnected_sessions(fault: str) -> None:
    broker = Broker("jms", specification=shipped(), ack_mode="CLIENT_ACKNOWLEDGE", history=True, repairs=False)
    broker.connect().session().producer("q").send(b"x")
    held: list[Message] = []
    for _ in range(6):
        connection = broker.connect()
        message = connection.session().consumer("q").receive(1)
        assert message
        held.append(message)
        connection.lose()
    assert held[-1].delivery_count == 6
    broker.repairs = True
    while broker.loop.step():
        pass
    getattr(broker, fault)()
    assert {message.copy.state_of("ack_frame") for message in held} == {"disconnected"}, (
        "the fault reaches every session"
    )
    broker.restart()
    for message in held:
        message.consumer.session.close()
    last = broker.connect().session().consumer("q").receive(1)
    assert last
    last.acknowledge()
    assert broker.queue("q").length == 0
    assert_kept(broker)


@pytest.mark.parametrize("fault", ["crash", "kill"])
def test_a_message_held_by_sessions_at_a_broker_crash_is_delivered_again_when_they_are_closed(fault: str) -> None:
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
    again = received(broker.connect().session().consumer("q"), 0.0)
    assert again.id == "m"


def test_drained_refuses_while_a_session_that_lost_its_link_holds_a_message() -> None:
    """The message that the lost session had counts as held by the queue until it is settled."""
    broker = broker_of("jms")
    fill(broker, "m1", "m2")
    session = broker.connect().session("CLIENT_ACKNOWLEDGE")
    consumer = session.consumer("in")
    assert consumer.receive(None) is not None
    session.fault("link_loss")
    other = broker.connect().session("CLIENT_ACKNOWLEDGE")
    received(other.consumer("in"))
    with pytest.raises(IllegalStateException, match="holds"):
        broker.drained()
