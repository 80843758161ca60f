"""Closing consumers, producers, sessions and brokers; stopping and starting connections."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ackfsm.engine import (
    Broker,
    Connection,
    Consumer,
    IllegalStateException,
    JMSException,
    Message,
    Outcome,
    Sent,
    Session,
    Shuffled,
    Timed,
    TransactionRolledBackException,
)
from ackfsm.engine.journal import FileJournal, Journal, SqliteJournal
from ackfsm.terms import AckMode, Profile
from model_tests.support.engine.brokers import received
from model_tests.support.engine.calls import Application, assert_kept
from model_tests.support.engine.refinement import Refinement
from model_tests.support.tables import shipped
from model_tests.support.whole import few

PACES: dict[str, Callable[[], Any]] = {
    "at once": lambda: None,
    "timed": lambda: Timed(seed=1),
    "shuffled": lambda: Shuffled(1),
}


def modes(consumption: str) -> Iterator[tuple[str, str, str]]:
    """Every system with its acknowledgement modes, each at a pace, in turn."""
    number = 0
    for profile in Profile:
        for mode in AckMode:
            if mode in shipped().supported_values(profile, "ack_mode", {"consumption": consumption}):
                yield profile.value, mode.value, list(PACES)[number % len(PACES)]
                number += 1


def forgets(broker: Broker) -> bool:
    """Whether what is dispatched is gone."""
    environment = broker.specification.environment(broker.configuration)
    return broker.specification.conditions["settled_on_dispatch"].holds(environment)


def broker_of(profile: str = "jms", **settings: Any) -> Broker:
    return Broker(
        profile,
        specification=shipped(),
        **{"history": True, "consumption": "receive", "max_delivery_attempts": 0, "prefetch": 2, **settings},
    )


def fill(broker: Broker, *names: str, mode: str | None = "CLIENT_ACKNOWLEDGE") -> None:
    session = broker.connect().session(mode)
    with session.producer("q") as producer:
        for name in names:
            producer.send(message_id=name)
    if session.transacted:
        session.commit()
    session.close()


def settle(message: Message) -> None:
    """The application is done with ``message`` in the way of its session."""
    session = message.consumer.session
    if session.transacted:
        session.commit()
    elif session.configuration.ack_mode is not AckMode.NO_ACKNOWLEDGE:
        message.acknowledge()


def drained(broker: Broker, connection: Connection) -> list[str]:
    """What another session finds in the queue."""
    with connection.session(consumption="receive") as session:
        consumer, found = session.consumer("q"), []
        while (message := consumer.receive(None)) is not None:
            found.append(message.id)
            settle(message)
    broker.drained()
    return found


# Consumers


@pytest.mark.parametrize(("profile", "mode", "pace"), few([*modes("receive")], 10))
def test_a_closed_consumer_gives_back_what_only_its_library_had(profile: str, mode: str, pace: str) -> None:
    broker = broker_of(profile, ack_mode=mode, pace=PACES[pace]())
    fill(broker, "m1", "m2", "m3", "m4")
    session = broker.connect().session()
    consumer = session.consumer("q")
    message = received(consumer)
    assert message.id == "m1"
    consumer.close()
    consumer.close()
    with pytest.raises(IllegalStateException, match=r"the consumer is closed; make another with session.consumer\(\)"):
        consumer.receive(0)
    settle(message)
    assert consumer.detached
    assert session.consumers == []
    there = drained(broker, broker.connect())
    assert there[-1:] == ["m4"] or forgets(broker)
    assert set(there) <= {"m2", "m3", "m4"}
    assert len(there) == 3 or forgets(broker)
    assert_kept(broker)
    session.close()


@pytest.mark.parametrize("mode", ["CLIENT_ACKNOWLEDGE", "INDIVIDUAL_ACKNOWLEDGE", "SESSION_TRANSACTED"])
@pytest.mark.parametrize("end", ["settled", "given back", "closed", "lost", "crashed"])
@pytest.mark.parametrize("pace", PACES)
def test_what_the_application_had_stays_with_the_session(mode: str, end: str, pace: str) -> None:
    broker = broker_of(ack_mode=mode, pace=PACES[pace]())
    fill(broker, "m1", "m2")
    connection = broker.connect()
    session = connection.session()
    consumer = session.consumer("q")
    message = received(consumer)
    with consumer:
        pass
    assert consumer.closed
    assert not consumer.detached
    assert broker.history is not None
    told = next(line for line in reversed(broker.history.lines) if line["event"] == "close")
    assert (told["session"], told["queue"]) == (session.name, "q")  # a close of one consumer, not of the session
    expected = ["m1", "m2"]
    if end == "settled":
        settle(message)
        expected = ["m2"]
    elif end == "given back":
        (session.rollback if session.transacted else session.recover)()
    elif end == "closed":
        session.close()
    else:
        (connection.lose if end == "lost" else connection.crash)()
    assert drained(broker, broker.connect()) == expected
    assert not session.transacted or session.closed or end != "lost" or _refused(session)
    assert_kept(broker)


def _refused(session: Session) -> bool:
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    return session.consumers == []


@pytest.mark.parametrize("fault", ["crash", "kill", "fail_journal"])
@pytest.mark.parametrize("mode", ["AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "SESSION_TRANSACTED"])
def test_a_broker_that_dies_as_a_consumer_closes_loses_nothing(fault: str, mode: str) -> None:
    calls = _events(mode)
    for at in range(calls):
        broker, consumer = _received(mode)
        _strike(broker, fault, at)
        consumer.close()
        broker.observe(None)
        message = consumer._last  # noqa: SLF001 - what it had
        assert message is not None
        with contextlib.suppress(JMSException):
            settle(message)
        consumer.session.close()
        assert "m2" in drained(broker, broker.connect())
        assert_kept(broker)


@pytest.mark.parametrize("sessions", [1, 2])
@pytest.mark.parametrize(
    ("profile", "mode", "again"),
    [
        ("artemis", "INDIVIDUAL_ACKNOWLEDGE", ["m1", "m2"]),
        ("artemis", "CLIENT_ACKNOWLEDGE", []),
        ("activemq", "INDIVIDUAL_ACKNOWLEDGE", ["m1", "m2"]),
        ("activemq", "CLIENT_ACKNOWLEDGE", ["m1", "m2"]),
        ("rabbitmq", "INDIVIDUAL_ACKNOWLEDGE", []),
    ],
)
def test_a_closed_consumer_gives_back_what_its_application_has_where_brokers_do(
    profile: str, mode: str, again: list[str], sessions: int
) -> None:
    broker = broker_of(profile, ack_mode=mode)
    fill(broker, "m1", "m2")
    connection = broker.connect()
    session = connection.session()
    consumer = session.consumer("q")
    held = consumer.receive()
    assert held is not None
    consumer.close()
    other = session if sessions == 1 else connection.session()
    assert [message.id for message in iter(other.consumer("q").receive, None)] == again
    connection.close()
    assert_kept(broker)


def _received(mode: str) -> tuple[Broker, Consumer]:
    broker = broker_of(ack_mode=mode)
    fill(broker, "m1", "m2")
    consumer = broker.connect().session().consumer("q")
    assert consumer.receive() is not None
    return broker, consumer


def _events(mode: str) -> int:
    broker, consumer = _received(mode)
    seen: list[str] = []
    broker.observe(lambda event, _: seen.append(event.name))
    consumer.close()
    return len(seen)


def _strike(broker: Broker, fault: str, at: int) -> None:
    """The broker dies after the event number ``at``."""
    left = [at]

    def strike(*_: object) -> None:
        left[0] -= 1
        if left[0] == -1 and broker.running:
            getattr(broker, fault)()

    broker.observe(strike)


def test_other_consumers_of_the_session_go_on() -> None:
    broker = broker_of(ack_mode="CLIENT_ACKNOWLEDGE")
    session = broker.connect().session()
    first, second = session.consumer("q"), session.consumer("q")
    fill(broker, "m1", "m2", "m3")
    one, two = first.receive(), second.receive()
    assert one is not None
    assert two is not None
    first.close()
    two.acknowledge()  # covers what the closed one has had
    assert session.consumers == [second]
    with pytest.raises(IllegalStateException):
        one.acknowledge()
    third = received(second, 0.0)
    assert third.id == "m3"
    third.acknowledge()
    assert broker.queue("q").length == 0
    assert_kept(broker)


def test_a_closed_consumer_is_not_in_the_way_of_another_kind() -> None:
    broker = broker_of(ack_mode="AUTO_ACKNOWLEDGE")
    session = broker.connect().session()
    session.consumer("q").close()
    heard = Application()
    session.consumer("q", listener=heard)
    fill(broker, "m1")
    assert [message.id for message in heard.received] == ["m1"]


@pytest.mark.parametrize(("profile", "mode", "pace"), few([*modes("listener")], 10))
def test_a_listener_closes_its_own_consumer_and_goes_on(profile: str, mode: str, pace: str) -> None:
    broker = broker_of(profile, ack_mode=mode, consumption="listener", pace=PACES[pace]())
    session = broker.connect().session()
    heard: list[str] = []

    def hear(message: Message) -> None:
        message.consumer.close()
        heard.append(message.id)
        if not session.transacted:
            settle(message)

    session.consumer("q", listener=hear)
    fill(broker, "m1", "m2", "m3")
    while broker.loop.step():
        pass
    assert heard == ["m1"]
    if session.transacted:
        session.commit()
    assert session.consumers == []
    assert drained(broker, broker.connect()) == ["m2", "m3"] or forgets(broker)
    session.close()
    assert_kept(broker)


def test_a_listener_that_throws_in_a_closed_consumer_has_its_message_again_elsewhere() -> None:
    broker = broker_of(ack_mode="AUTO_ACKNOWLEDGE", consumption="listener")
    session = broker.connect().session()

    def hear(message: Message) -> None:
        message.consumer.close()
        raise RuntimeError("the database is locked")

    session.consumer("q", listener=hear)
    fill(broker, "m1", "m2")
    assert session.consumers == []
    heard: list[str] = []
    broker.connect().session().consumer("q", listener=lambda message: heard.append(message.id))
    broker.drained()
    assert heard == ["m1", "m2"]
    assert_kept(broker)


@pytest.mark.parametrize("mode", ["AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "SESSION_TRANSACTED"])
@pytest.mark.parametrize("pace", PACES)
def test_the_model_closes_a_consumer_as_the_engine_does(mode: str, pace: str) -> None:
    broker = broker_of(ack_mode=mode, pace=PACES[pace]())
    refinement = Refinement(broker)
    fill(broker, "m1", "m2", "m3", mode=None)
    session = broker.connect().session()
    consumer = session.consumer("q")
    refinement.take(consumer)
    message = received(consumer)
    consumer.close()
    settle(message)
    refinement.check()
    again = session.consumer("q")
    refinement.take(again)
    for name in ("m2", "m3"):
        message = received(again)
        assert message.id == name
        settle(message)
    while broker.loop.step():
        pass
    refinement.check()
    assert broker.queue("q").length == 0


def test_a_consumer_that_closes_without_a_connection_is_no_fault() -> None:
    broker = broker_of(ack_mode="CLIENT_ACKNOWLEDGE", repairs=False)
    fill(broker, "m1", "m2")
    connection = broker.connect()
    consumer = connection.session().consumer("q")
    connection.lose()
    consumer.close()
    assert consumer.detached
    assert broker.history is not None
    told = [(line["event"], line["fault"]) for line in broker.history.lines if "fault" in line]
    assert told == [("fault", "consumer_link_loss"), ("recovered", "consumer_link_loss")], "nobody comes back to it"
    assert drained(broker, broker.connect()) == ["m1", "m2"]
    assert_kept(broker)


# Producers


@pytest.mark.parametrize("pace", PACES)
def test_a_producer_closes_when_its_outcomes_are_known(pace: str) -> None:
    broker = broker_of(send_mode="asynchronous", publish_window=10, pace=PACES[pace]())
    session = broker.connect().session("CLIENT_ACKNOWLEDGE")
    heard: list[Sent] = []
    with session.producer("q", on_outcome=heard.append) as producer:
        sent = [producer.send(message_id=name) for name in ("m1", "m2")]
    producer.close()
    assert [message.outcome for message in sent] == ["confirmed", "confirmed"]
    told = sorted(heard, key=sent.index) if pace == "shuffled" else heard  # a broker may confirm in any order
    assert told == sent
    with pytest.raises(IllegalStateException, match=r"the producer is closed; make another with session.producer\(\)"):
        producer.send()
    with pytest.raises(IllegalStateException, match="the producer is closed"):
        producer.resend(sent[0])
    with session.producer("q") as another:
        another.send(message_id="m3")
        another.wait()
    assert drained(broker, broker.connect()) == ["m1", "m2", "m3"]
    assert_kept(broker)


def test_a_producer_that_closes_waits_for_nobody_who_never_answers() -> None:
    broker = broker_of(send_mode="asynchronous", publish_window=10, pace=Timed(), repairs=False)
    with broker.connect().session("CLIENT_ACKNOWLEDGE").producer("q") as producer:
        sent = producer.send()
        broker.kill()
    assert sent.outcome == "in_doubt"


def test_a_transaction_outlives_the_producer_that_sent_in_it() -> None:
    broker = broker_of(ack_mode="SESSION_TRANSACTED")
    session = broker.connect().session()
    with session.producer("q") as producer:
        producer.send(message_id="m1")
    session.commit()
    assert drained(broker, broker.connect()) == ["m1"]


# Sessions and the broker


def test_a_session_closes_when_its_acknowledgements_are_read() -> None:
    broker = Broker("jms", specification=shipped(), pace=Timed(), ack_mode="INDIVIDUAL_ACKNOWLEDGE")
    producer = broker.connect().session().producer("q")
    for _ in range(2):
        producer.send()
    session = broker.connect().session()
    consumer = session.consumer("q")
    first = received(consumer)
    first.acknowledge()
    session.close()
    last = received(broker.connect().session().consumer("q"))
    assert last.id != first.id


def test_a_session_closes_when_its_sends_have_an_outcome() -> None:
    broker = Broker("jms", specification=shipped(), pace=Shuffled(1), send_mode="asynchronous")
    session = broker.connect().session()
    sent = session.producer("q").send()
    session.close()
    assert sent.outcome is Outcome.CONFIRMED


@pytest.mark.parametrize("seed", range(8))
def test_a_closed_session_leaves_nothing_of_its_transaction(seed: int) -> None:
    broker = Broker("jms", specification=shipped(), pace=Shuffled(seed), ack_mode="SESSION_TRANSACTED")
    session = broker.connect().session()
    session.producer("q").send()
    session.close()
    assert broker.loop.wait(lambda: not broker.queue("q").length)
    broker.drained()


@pytest.mark.parametrize("received", [0, 1])
def test_undelivered_messages_of_a_session_without_acknowledgements_are_gone_when_it_closes(received: int) -> None:
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


def test_a_closed_broker_refuses_calls_and_may_be_closed_again() -> None:
    broker = broker_of(ack_mode="CLIENT_ACKNOWLEDGE")
    session = broker.connect().session()
    consumer, producer = session.consumer("q"), session.producer("q")
    open_producer = broker.connect().session().producer("q")
    session.close()
    consumer.close()
    producer.close()
    broker.close()
    broker.close()
    assert not broker.running
    with pytest.raises(IllegalStateException, match="the broker is closed"):
        consumer.close()
    for each in (producer, open_producer):
        with pytest.raises(IllegalStateException, match="the broker is closed; open another on its journal"):
            each.send()
    with pytest.raises(IllegalStateException, match="the broker is closed"):
        broker.connect()


# Connections


@pytest.mark.parametrize(("profile", "mode", "pace"), list(modes("receive")))
def test_a_stopped_connection_hands_nothing_over(profile: str, mode: str, pace: str) -> None:
    broker = broker_of(profile, ack_mode=mode, pace=PACES[pace]())
    connection = broker.connect()
    session = connection.session()
    consumer = session.consumer("q")
    connection.stop()
    connection.stop()
    assert connection.is_stopped
    producer = session.producer("q")
    late = connection.session().consumer("q")  # made while it is stopped
    for name in ("m1", "m2"):
        producer.send(message_id=name)
    if session.transacted:
        session.commit()
    began = broker.now
    assert consumer.receive(0.5) is None
    assert broker.now - began == 500_000_000 or pace == "shuffled"
    assert consumer.receive(None) is None
    assert late.receive(None) is None
    connection.start()
    got = []
    for each in (consumer, late):
        while (message := each.receive(None)) is not None:
            got.append(message.id)
            settle(message)
    assert sorted(got) == ["m1", "m2"]
    connection.close()
    assert broker.queue("q").length == 0
    assert_kept(broker)


@pytest.mark.parametrize("pace", PACES)
def test_a_stopped_connection_calls_no_listener(pace: str) -> None:
    broker = broker_of(ack_mode="AUTO_ACKNOWLEDGE", consumption="listener", pace=PACES[pace]())
    connection, heard = broker.connect(), Application()
    connection.session().consumer("q", listener=heard)
    connection.stop()
    fill(broker, "m1", "m2")
    while broker.loop.step():
        pass
    assert heard.received == []
    connection.start()
    while broker.loop.step():
        pass
    assert [message.id for message in heard.received] == ["m1", "m2"]
    assert_kept(broker)


def test_a_listener_stops_its_own_connection_and_goes_on() -> None:
    broker = broker_of(ack_mode="AUTO_ACKNOWLEDGE", consumption="listener")
    connection, heard = broker.connect(), list[str]()

    def hear(message: Message) -> None:
        connection.stop()
        heard.append(message.id)

    connection.session().consumer("q", listener=hear)
    fill(broker, "m1", "m2")
    assert heard == ["m1"]
    assert broker.queue("q").length == 1  # the first is acknowledged
    connection.start()
    assert heard == ["m1", "m2"]
    assert_kept(broker)


def test_what_was_received_is_acknowledged_while_stopped() -> None:
    broker = broker_of(ack_mode="CLIENT_ACKNOWLEDGE")
    fill(broker, "m1")
    connection = broker.connect()
    message = received(connection.session().consumer("q"), 0.0)
    connection.stop()
    message.acknowledge()
    assert broker.queue("q").length == 0


def test_a_connection_that_is_closed_is_neither_started_nor_stopped() -> None:
    connection = broker_of().connect()
    connection.close()
    for call in (connection.start, connection.stop):
        with pytest.raises(IllegalStateException, match="the connection is closed"):
            call()


# Another broker on the journal


@pytest.mark.parametrize("journal", [FileJournal, lambda folder: SqliteJournal(folder / "journal.db")])
def test_what_a_closed_consumer_left_is_there_after_a_restart(
    journal: Callable[[Path], Journal], tmp_path: Path
) -> None:
    with broker_of("artemis", ack_mode="CLIENT_ACKNOWLEDGE", journal=journal(tmp_path)) as broker:
        fill(broker, "m1", "m2", "m3")
        message = (consumer := broker.connect().session().consumer("q")).receive()
        assert message is not None
        consumer.close()
        message.acknowledge()
    with broker_of("artemis", journal=journal(tmp_path), history=broker.history) as broker:
        assert drained(broker, broker.connect("later")) == ["m2", "m3"]
        assert_kept(broker)


def test_a_connection_knows_from_which_queues_its_sessions_have_consumed_when_they_are_closed_too() -> None:
    connection = broker_of(ack_mode="CLIENT_ACKNOWLEDGE").connect()
    with connection.session() as session:
        session.consumer("q").close()
    connection.session()
    assert [name for _, name in connection.consumed] == ["q"]
    assert dataclasses.is_dataclass(next(iter(connection.consumed))[0])


def test_nothing_grows_with_the_sessions_that_come_and_go() -> None:
    broker = broker_of(ack_mode="CLIENT_ACKNOWLEDGE", history=None)
    connection, sizes = broker.connect(), []
    for number in range(3):
        with connection.session() as session:
            session.producer("q").send(message_id=f"m{number}")
            message = received(session.consumer("q"))
            message.acknowledge()
        steps = sum(map(len, broker.stepper._recorded_steps.values()))  # noqa: SLF001 - memory
        sizes.append((len(connection.sessions), len(broker.stepper.links), steps))
    assert sizes == [sizes[0]] * 3
    assert sizes[0][-1] > 0


@pytest.mark.parametrize("history", ["kept", None])
def test_a_connection_closes_after_its_broker_has_come_back(history: str | None) -> None:
    """Drawn by ``test_stateful.py``: the message was received, and not yet acknowledged, when the broker died."""
    kept = {} if history else {"history": None}
    broker = broker_of("solace-jms", ack_mode="AUTO_ACKNOWLEDGE", consumption="receive", **kept)
    fill(broker, "m1")
    consuming = broker.connect()
    assert consuming.session().consumer("q").receive(None) is not None
    broker.crash()
    while broker.loop.step():
        pass
    consuming.close()
    assert drained(broker, broker.connect()) == ["m1"]
    if history:
        assert_kept(broker)
