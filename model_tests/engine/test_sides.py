"""What went wrong once in an engine between two sides of a session, among many sessions, and with ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from ackfsm.engine import (
    AtOnce,
    Broker,
    Message,
    Outcome,
    OutcomeUnknown,
    Sent,
    Shuffled,
    Timed,
    TransactionRolledBackException,
)
from ackfsm.engine.core.scheduler import Scheduler
from model_tests.support.engine.calls import assert_kept, shared_wiring
from model_tests.support.tables import shipped

__all__ = ["shared_wiring"]


@pytest.mark.parametrize("pace", [AtOnce, Timed, lambda: Shuffled(3)], ids=["at once", "timed", "shuffled"])
@pytest.mark.parametrize("modes", [("PERSISTENT",), ("PERSISTENT", "NON_PERSISTENT")], ids=["one side", "two sides"])
def test_a_transaction_of_which_a_message_is_refused_gives_back_what_it_consumed(
    pace: Callable[[], Scheduler], modes: Sequence[str]
) -> None:
    broker = Broker("jms", pace=pace(), specification=shipped(), history=True)
    broker.connect().session().producer("in").send(b"x")
    session = broker.connect().session("SESSION_TRANSACTED")
    consumer, producer = session.consumer("in"), session.producer("out")
    assert consumer.receive(1)
    broker.queue("out").refuse_next = 1
    for mode in modes:
        producer.send(b"y", delivery_mode=mode)
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    again = consumer.receive(1)
    assert again
    assert again.redelivered
    assert broker.queue("out").length == 0
    producer.send(b"z")
    session.commit()
    assert (broker.queue("in").length, broker.queue("out").length) == (0, 1)
    assert_kept(broker, anyone=True)


def test_a_frame_that_is_lost_takes_the_connection_of_both_sides_with_it() -> None:
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


@pytest.mark.parametrize("fault", ["crash", "kill"])
def test_any_number_of_sessions_may_still_be_busy_with_a_message_that_has_gone_on(fault: str) -> None:
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
    assert {message.copy.state_of("ack_frame") for message in held} == {"disconnected"}, "every one of them hears of it"
    broker.restart()
    for message in held:
        message.consumer.session.close()
    last = broker.connect().session().consumer("q").receive(1)
    assert last
    last.acknowledge()
    assert broker.queue("q").length == 0
    assert_kept(broker)


def test_nothing_is_kept_of_the_frames_of_connections_that_are_gone() -> None:
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


@pytest.mark.parametrize("received", [0, 1])
def test_what_a_session_without_acknowledgements_has_not_handed_over_is_gone_as_it_closes(received: int) -> None:
    broker = Broker("ems", specification=shipped(), ack_mode="NO_ACKNOWLEDGE", consumption="receive", history=True)
    producer = broker.connect().session().producer("q")
    producer.send(b"x")
    producer.send(b"y")
    session = broker.connect().session()
    consumer = session.consumer("q")
    for _ in range(received):
        assert consumer.receive()
    session.close()
    assert broker.connect().session().consumer("q").receive(1) is None
    broker.drained()
    assert_kept(broker)


@pytest.mark.parametrize(("mode", "heard"), [("PER_MESSAGE", [0, 1, 2, 3, 4, 5]), ("WINDOWED", [1, 3, 5])])
def test_a_handler_hears_of_a_range_once_where_events_are_windowed(mode: str, heard: Sequence[int]) -> None:
    """Two messages are a third of the window, and the broker answers them together."""
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
        assert set(outcomes[: sent.index(message) + 1]) == {Outcome.CONFIRMED}, "it, and all before it"
    assert_kept(broker)
