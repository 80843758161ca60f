"""A transaction is committed as a whole or rolled back as a whole, whatever fault comes in between."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ackfsm.engine import (
    AtOnce,
    Broker,
    JMSException,
    Message,
    OutcomeUnknown,
    Session,
    Shuffled,
    Timed,
    TransactionRolledBackException,
)
from ackfsm.engine.core.model import BoundEvent
from ackfsm.engine.core.scheduler import Scheduler
from model_tests.support.engine.brokers import accepted, broker_of, fill, received, rest
from model_tests.support.engine.calls import assert_kept
from model_tests.support.tables import shipped
from model_tests.support.whole import few

PROFILES = ("jms", "artemis", "activemq", "ems", "qpid", "qpid-jms", "solace", "solace-jms")
Fault = Callable[[Broker, Session], None]
FAULTS: dict[str, Fault] = {
    "broker_crash": lambda broker, _: broker.crash(),
    "broker_kill": lambda broker, _: broker.kill(),
    "journal_failure": lambda broker, _: broker.fail_journal(),
    "link_loss": lambda _, session: session.fault("link_loss"),
}


# faults before the commit


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_commit_is_rolled_back_if_a_fault_took_part_of_its_work(profile: str, fault: str, tmp_path: Path) -> None:
    """JMS 3.1, 6.2.7: all of a transaction or nothing, and what the library had prefetched belongs to it."""
    ways = few([*itertools.product([True, False], [True, False], [1, 2, 3, 9])], 2, f"{profile} {fault}")
    brokers = [transacted_run(profile, FAULTS[fault], sends=a, rollback=b, most=most) for a, b, most in ways]
    for broker in few(brokers, 1, f"{profile} {fault}"):
        accepted(broker, tmp_path)


def transacted_run(profile: str, fault: Fault, *, sends: bool, rollback: bool, most: int) -> Broker:
    """Transactions of up to ``most`` messages, each with its output; the fault comes when all is in the library."""
    broker = broker_of(profile, ack_mode="SESSION_TRANSACTED")
    with broker.connect().session() as session:  # what no call waits for, a broker that dies may not have written
        for name in ("i1", "i2", "i3"):
            session.producer("in").send(message_id=name)
        session.commit()
    session = broker.connect().session()
    consumer, producer = session.consumer("in"), session.producer("out")
    fault(broker, session)
    if rollback:
        session.rollback()
    committed, outputs = list[str](), list[str]()
    for number in range(12):
        work = [message.id for _, message in zip(range(most), iter(lambda: consumer.receive(None), None), strict=False)]
        if not work:
            break
        made = [producer.send(b"", message_id=f"{name} in {number}").id for name in work] if sends else []
        try:
            session.commit()
        except (OutcomeUnknown, TransactionRolledBackException):
            continue
        committed += work
        outputs += made
    assert sorted(committed) == ["i1", "i2", "i3"], (committed, sends, rollback, most)
    session.close()
    assert rest(broker, "in") == []
    assert rest(broker, "out") == outputs
    return broker


def test_a_message_received_before_a_fault_is_rolled_back_with_what_came_after_it(tmp_path: Path) -> None:
    """Its acknowledgement is lost, so that what was received after the crash must not commit without it."""
    broker = broker_of("jms")
    fill(broker, "i1", "i2")
    session = broker.connect().session("SESSION_TRANSACTED")
    consumer = session.consumer("in")
    received(consumer)
    broker.crash()
    while consumer.receive(None) is not None:
        pass
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    assert [message.id for message in iter(lambda: consumer.receive(None), None)] == ["i1", "i2"]
    session.commit()
    session.close()
    accepted(broker, tmp_path)


def test_a_message_sent_after_a_link_loss_is_rolled_back_with_its_transaction() -> None:
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


@pytest.mark.parametrize("fault", ["link_loss", "broker"])
def test_a_transaction_contains_nothing_of_the_lost_one_before_it(fault: str) -> None:
    broker = broker_of()
    broker.connect().session().producer("q").send(message_id="m")
    session = broker.connect().session("SESSION_TRANSACTED")
    consumer = session.consumer("q")
    received(consumer)
    if fault == "broker":
        broker.kill()
    else:
        session.fault("link_loss")
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    assert received(consumer).id == "m"
    session.commit()
    session.close()
    broker.drained()


@pytest.mark.parametrize("pace", [AtOnce, Timed, lambda: Shuffled(3)], ids=["at once", "timed", "shuffled"])
@pytest.mark.parametrize("modes", [("PERSISTENT",), ("PERSISTENT", "NON_PERSISTENT")], ids=["one side", "two sides"])
def test_a_transaction_with_a_rejected_message_requeues_what_it_consumed(
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


# faults during the commit and after it


_PROGRAMS = ("consume and send", "two delivery modes")


@pytest.mark.parametrize("program", _PROGRAMS)
@pytest.mark.parametrize("profile", ["jms", "artemis", "qpid-jms"])
def test_a_commit_of_two_parts_is_atomic_wherever_its_connection_breaks(
    profile: str, program: str, tmp_path: Path
) -> None:
    """One frame commits a session (AMQP 1.0 4.3, Discharge; OpenWire TransactionInfo): never half of it."""
    for microseconds in few(range(0, 2_400, 40), 20, f"{profile} {program}"):
        broker = broker_of(profile, pace=Timed(latency=(100_000, 300_000), seed=microseconds))
        fill(broker, "i1")
        session = broker.connect().session("SESSION_TRANSACTED")
        consumer = session.consumer("in")
        if program == "consume and send":
            assert consumer.receive(None) is not None
        else:
            session.producer("out").send(b"", message_id="o0", delivery_mode="NON_PERSISTENT")
        session.producer("out").send(b"", message_id="o1")
        broker.loop.schedule(broker.now + 1_000 * microseconds, lambda s=session: s.fault("link_loss"))  # type: ignore[misc]
        committed = True
        try:
            session.commit()
        except JMSException:
            committed = False
        broker.loop.wait(lambda: False)
        broker.crash()
        broker.restart()
        session.close()
        outputs, inputs = rest(broker, "out"), rest(broker, "in")
        if program == "consume and send":
            assert ("o1" in outputs) != ("i1" in inputs), (microseconds, outputs, inputs)
        if committed:
            assert "o1" in outputs, microseconds
    if program == "consume and send":
        accepted(broker, tmp_path)


@pytest.mark.parametrize("struck", ["execute_commit", "execute_consumer_commit"])
def test_a_link_loss_while_a_commit_is_executed_leaves_all_of_it_or_nothing(struck: str) -> None:
    broker = broker_of()
    broker.connect().session().producer("in").send()
    session = broker.connect().session("SESSION_TRANSACTED")
    received(session.consumer("in"))
    session.producer("out").send()
    strikes: list[BoundEvent] = []

    def strike(event: BoundEvent, _: object) -> None:
        if event.name == struck and not strikes:
            strikes.append(event)
            session.fault("link_loss")

    broker.observe(strike)
    with contextlib.suppress(OutcomeUnknown):
        session.commit()
    broker.observe(None)
    session.close()
    assert strikes
    assert (broker.queue("in").length, broker.queue("out").length) in {(0, 1), (1, 0)}


def test_a_resent_transaction_is_committed() -> None:
    broker = broker_of(
        "jms", pace=Timed(latency=(100_000, 100_000)), ack_mode="SESSION_TRANSACTED", resend_in_doubt=True
    )
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


@pytest.mark.parametrize("fault", ["crash", "kill"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_whose_session_is_gone_is_resolved_at_a_restart(fault: str, when: str) -> None:
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


@pytest.mark.parametrize("mode", ["PERSISTENT", "NON_PERSISTENT"])
@pytest.mark.parametrize("pace", [AtOnce, Timed, Shuffled])
def test_a_commit_gives_a_consumer_with_a_bound_its_next_message(pace: Callable[[], Scheduler], mode: str) -> None:
    heard: list[Message] = []
    broker = broker_of("rabbitmq", pace=pace(), delivery_mode=mode, prefetch=1, consumption="listener")
    session = broker.connect().session("SESSION_TRANSACTED")
    session.consumer("q", listener=heard.append)
    with broker.connect().session("SESSION_TRANSACTED") as sender:
        for _ in range(3):
            sender.producer("q").send(b"")
        sender.commit()
    for _ in range(3):
        while broker.loop.step():
            pass
        session.commit()
    assert len(heard) == 3
