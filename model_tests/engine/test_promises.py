"""What the application was told holds: confirmed sends, confirmed commits, whatever goes wrong in between.

Each test is a program that once broke the engine; nothing here reads the tables, but for the verdict on the log.
"""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable, Mapping, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ackfsm.engine import (
    DEAD_LETTER_HEADERS,
    Broker,
    BrokerStopped,
    History,
    IllegalStateException,
    JMSException,
    Message,
    OutcomeUnknown,
    Session,
    Shuffled,
    Timed,
    TransactionRolledBackException,
)
from ackfsm.journal import FileJournal, Journal, MemoryJournal, OsDisk
from ackfsm.terms import Verdict
from model_tests.support.engine.calls import shared_wiring
from model_tests.support.engine.laboratory import judged
from model_tests.support.tables import shipped

__all__ = ["shared_wiring"]

PROFILES = ("jms", "artemis", "activemq", "ems", "qpid", "qpid-jms", "solace", "solace-jms", "rabbitmq")
AUTOMATIC = ("jms", "artemis", "activemq", "ems", "qpid", "qpid-jms", "solace-jms")
Fault = Callable[[Broker, Session], None]
FAULTS: dict[str, Fault] = {
    "broker_crash": lambda broker, _: broker.crash(),
    "broker_kill": lambda broker, _: broker.kill(),
    "journal_failure": lambda broker, _: broker.fail_journal(),
    "link_loss": lambda _, session: session.fault("link_loss"),
}


def broker_of(profile: str, **settings: Any) -> Broker:
    return Broker(profile, specification=shipped(), consumption="receive", history=True, **settings)


def fill(broker: Broker, *names: str, queue: str = "in") -> None:
    with broker.connect().session("AUTO_ACKNOWLEDGE") as session:
        producer = session.producer(queue)
        for name in names:
            producer.send(name.encode(), message_id=name)


def rest(broker: Broker, queue: str) -> list[str]:
    """What a new client finds."""
    with broker.connect().session("CLIENT_ACKNOWLEDGE") as session:
        consumer, found = session.consumer(queue), list[str]()
        while (message := consumer.receive(None)) is not None:
            found.append(message.id)
            message.acknowledge()
        return found


def lines(broker: Broker) -> Sequence[Mapping[str, Any]]:
    """The log."""
    assert isinstance(broker.history, History)
    return broker.history.lines


def accepted(broker: Broker, folder: Path) -> None:
    """The engine's log is a history that `verify` accepts."""
    broker.drained()
    assert isinstance(broker.history, History)
    result = judged(broker.history, folder)
    assert (result.verdict, result.reasons) == (Verdict.VALID, ())


# transactions over a fault


@pytest.mark.parametrize("profile", [name for name in PROFILES if name != "rabbitmq"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_commit_over_work_that_was_lost_is_rolled_back(profile: str, fault: str, tmp_path: Path) -> None:
    """JMS 3.1, 6.2.7: all of a transaction or nothing; what the library still held was in the transaction too."""
    for sends, rollback, most in itertools.product([True, False], [True, False], [1, 2, 3, 9]):
        broker = transacted_run(profile, FAULTS[fault], sends=sends, rollback=rollback, most=most)
        accepted(broker, tmp_path)


def transacted_run(profile: str, fault: Fault, *, sends: bool, rollback: bool, most: int) -> Broker:
    """Transactions of up to ``most`` messages, each with its output; the fault comes when all is in the library."""
    broker = broker_of(profile, ack_mode="SESSION_TRANSACTED")
    fill(broker, "i1", "i2", "i3")
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


def test_a_message_from_before_the_fault_is_in_the_transaction_that_is_lost(tmp_path: Path) -> None:
    """Its acknowledgement goes nowhere, so that the commit of what came after it cannot stand."""
    broker = broker_of("jms")
    fill(broker, "i1", "i2")
    session = broker.connect().session("SESSION_TRANSACTED")
    consumer = session.consumer("in")
    first = consumer.receive(None)
    assert first is not None
    broker.crash()
    while consumer.receive(None) is not None:
        pass
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    assert [message.id for message in iter(lambda: consumer.receive(None), None)] == ["i1", "i2"]
    session.commit()
    session.close()
    accepted(broker, tmp_path)


# handing over in order


@pytest.mark.parametrize("profile", AUTOMATIC)
@pytest.mark.parametrize("prefetch", [1, 2, 0])
@pytest.mark.parametrize("timed", [False, True])
def test_an_earlier_message_that_comes_late_loses_none(
    profile: str,
    prefetch: int,
    timed: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    """What is acknowledged before it is handed over is handed over first; a session that closes gives the rest back."""
    broker = broker_of(profile, prefetch=prefetch, **pace(timed))
    late = broker.connect().session("SESSION_TRANSACTED")
    late.producer("in").send(b"", message_id="m1")
    fill(broker, "m2", "m3")
    session = broker.connect().session("AUTO_ACKNOWLEDGE")
    consumer = session.consumer("in")
    if timed:
        broker.loop.wait(lambda: False)
    late.commit()
    message = consumer.receive(None)
    assert message is not None
    session.close()
    assert broker.queue("in").length == 2
    assert sorted([message.id, *rest(broker, "in")]) == ["m1", "m2", "m3"]
    accepted(broker, tmp_path)


def pace(timed: bool) -> dict[str, Any]:  # noqa: FBT001
    return {"pace": Timed()} if timed else {}


@pytest.mark.parametrize("profile", AUTOMATIC)
@pytest.mark.parametrize("prefetch", [1, 2, 3])
def test_of_competing_consumers_one_closes_and_nothing_is_missing(profile: str, prefetch: int, tmp_path: Path) -> None:
    broker = broker_of(profile, prefetch=prefetch)
    sessions = [broker.connect().session("AUTO_ACKNOWLEDGE") for _ in range(2)]
    consumers = [session.consumer("in") for session in sessions]
    fill(broker, "m1", "m2", "m3", "m4")
    had = [consumer.receive(None) for consumer in consumers]
    sessions[0].close()
    while (message := consumers[1].receive(None)) is not None:
        had.append(message)
    sessions[1].close()
    assert sorted(message.id for message in had if message is not None) == ["m1", "m2", "m3", "m4"]
    accepted(broker, tmp_path)


# a session with two sides

_PROGRAMS = ("consume and send", "two delivery modes")


@pytest.mark.parametrize("program", _PROGRAMS)
@pytest.mark.parametrize("profile", ["jms", "artemis", "qpid-jms"])
def test_a_commit_of_two_parts_holds_or_not_wherever_its_connection_breaks(
    profile: str, program: str, tmp_path: Path
) -> None:
    """One frame commits a session (AMQP 1.0 4.3, Discharge; OpenWire TransactionInfo): never half of it."""
    for microseconds in range(0, 2_400, 40):
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


# a full disk


class FullDisk(OsDisk):
    """A disk that has no room while ``full``."""

    full = False

    def write(self, file: int, offset: int, data: bytes) -> int:
        """Nothing, on a full disk."""
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(file, offset, data)


@pytest.mark.parametrize("transacted", [False, True])
def test_a_broker_whose_disk_is_full_serves_again_when_there_is_room(tmp_path: Path, transacted: bool) -> None:  # noqa: FBT001
    disk = FullDisk()
    broker = broker_of("jms", journal=FileJournal(tmp_path / "journal", disk=disk))
    session = broker.connect().session("SESSION_TRANSACTED" if transacted else "AUTO_ACKNOWLEDGE")
    producer, confirmed = session.producer("q"), list[str]()

    def send(name: str) -> None:
        producer.send(message_id=name)
        if transacted:
            session.commit()
        confirmed.append(name)

    send("m1")
    disk.full = True
    for _ in range(3):
        with pytest.raises(JMSException):
            send("lost")
    assert not broker.running
    with pytest.raises(BrokerStopped, match=r"cannot be opened .*No space left"):
        broker.restart()
    disk.full = False
    send("m2")
    assert broker.running
    session.close()
    left = rest(broker, "q")
    assert [name for name in left if name in confirmed] == confirmed == ["m1", "m2"]
    broker.close()
    assert not FileJournal(tmp_path / "journal").recovery.live


# dead letters


@pytest.mark.parametrize("deliveries", [2, 3, 5])
def test_the_count_of_deliveries_holds_over_a_restart(tmp_path: Path, deliveries: int) -> None:
    """Who is at the limit, or beyond a lower one, is not tried again, and the queue goes on."""
    journal = tmp_path / "journal"
    with broker_of("artemis", journal=FileJournal(journal), redelivery_mark_persisted=True) as broker:
        fill(broker, "poison", "m1", "m2")
        for _ in range(deliveries):
            connection = broker.connect()
            assert connection.session("CLIENT_ACKNOWLEDGE", prefetch=1).consumer("in").receive(None)
            connection.crash()
    settings = {"max_delivery_attempts": 2, "redelivery_mark_persisted": True}
    with broker_of("artemis", journal=FileJournal(journal), **settings) as broker:
        assert rest(broker, "in") == ["m1", "m2"]
        assert [message.id for message in broker.dead_letters] == ["poison"]
        assert broker.queue("in").length == 0


def poisoned(broker: Broker, **settings: Any) -> None:
    """One message is delivered as often as it may be."""
    broker.connect().session().producer("in").send(b"tea", {"shop": 7}, message_id="poison", **settings)
    connection = broker.connect()
    assert connection.session("CLIENT_ACKNOWLEDGE").consumer("in").receive(None)
    connection.crash()


def test_a_dead_letter_is_in_a_queue_of_its_own_with_the_reason_and_survives(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"max_delivery_attempts": 1}
    with broker_of("artemis", journal=FileJournal(tmp_path / "journal"), **settings) as broker:
        poisoned(broker)
        assert [message.id for message in broker.dead_letters] == ["poison"]
        broker.drained()
    with broker_of("artemis", journal=FileJournal(tmp_path / "journal")) as broker:
        assert rest(broker, "in") == []
        letter = broker.connect().session("AUTO_ACKNOWLEDGE").consumer("DLQ").receive(None)
        assert letter is not None
        assert (letter.id, letter.body, letter.delivery_count) == ("poison", b"tea", 1)
        reasons = dict(zip(DEAD_LETTER_HEADERS, ["in", 1, "max_delivery_attempts"], strict=True))
        assert letter.headers == {"shop": 7, **reasons}
    with broker_of("artemis", journal=FileJournal(tmp_path / "journal")) as broker:
        assert broker.dead_letters == []


def test_a_dead_letter_that_was_never_stored_is_kept_as_long_as_the_broker_runs() -> None:
    broker = broker_of("artemis", max_delivery_attempts=1)
    poisoned(broker, delivery_mode="NON_PERSISTENT")
    assert rest(broker, "DLQ") == ["poison"]
    assert broker.dead_letters == []


def test_a_dead_letter_that_is_tried_again_in_vain_still_says_where_it_was() -> None:
    broker = broker_of("artemis", max_delivery_attempts=1)
    poisoned(broker)
    connection = broker.connect()
    assert connection.session("CLIENT_ACKNOWLEDGE").consumer("DLQ").receive(None)
    connection.crash()
    assert [(letter.id, letter.headers[DEAD_LETTER_HEADERS[0]]) for letter in broker.dead_letters] == [("poison", "in")]


def test_what_an_application_sends_to_that_queue_itself_is_in_the_history() -> None:
    broker = broker_of("artemis", max_delivery_attempts=1)
    poisoned(broker)
    fill(broker, "own", queue="DLQ")
    assert sorted(rest(broker, "DLQ")) == ["own", "poison"]
    told = [
        (line["event"], line["message"]) for line in lines(broker) if line.get("queue") == "DLQ" and "message" in line
    ]
    assert ("send", "own") in told
    assert ("delivered", "own") in told
    assert all(message == "own" for _, message in told)


@pytest.mark.parametrize("is_there", [True, False])
def test_what_an_application_sends_there_under_the_id_of_a_dead_letter_is_in_the_history(is_there: bool) -> None:  # noqa: FBT001 - a case
    broker = broker_of("artemis", max_delivery_attempts=1)
    poisoned(broker)
    if not is_there:
        assert rest(broker, "DLQ") == ["poison"]
    fill(broker, "poison", queue="DLQ")
    assert set(rest(broker, "DLQ")) == {"poison"}
    told = [line["event"] for line in lines(broker) if line.get("queue") == "DLQ"]
    assert told == ["send", "confirmed", "delivered", "processed", "acknowledge"]


def test_dead_letters_that_were_taken_leave_nothing_behind() -> None:
    broker = broker_of("artemis", max_delivery_attempts=1)

    def held() -> int:
        return sum(len(each) for each in vars(broker.engine.dead_letters).values() if isinstance(each, Sized))

    before = held()
    for _ in range(5):
        poisoned(broker)
        fill(broker, "m")
        assert rest(broker, "in") == ["m"]
        assert rest(broker, "DLQ") == ["poison"]
    assert held() == before


def test_without_a_dead_letter_queue_they_are_destroyed() -> None:
    broker = broker_of("ems", max_delivery_attempts=1, dead_letter_queue=None)
    poisoned(broker)
    broker.loop.flush_all()
    assert (rest(broker, "in"), broker.dead_letters) == ([], [])
    broker.kill()
    assert broker.journal.journal.recovery.live == {}
    broker.restart()
    assert (rest(broker, "in"), broker.dead_letters) == ([], [])


@pytest.mark.parametrize("fault", ["crash", "kill", "fail_journal"])
@pytest.mark.parametrize("seed", range(12))
def test_a_broker_that_stops_in_the_midst_of_it_has_the_message_once(fault: str, seed: int) -> None:
    """In its queue or among the dead letters, whatever of the journal is on the disk (here: any subset of it)."""
    broker = broker_of("artemis", max_delivery_attempts=1, seed=seed, pace=Timed(seed=seed))
    poisoned(broker)
    broker.loop.wait(lambda: bool(broker.engine.dead_letters._pending))  # noqa: SLF001 - the midst of it
    assert broker.engine.dead_letters._pending  # noqa: SLF001
    getattr(broker, fault)()
    broker.restart()
    broker.loop.wait(lambda: False)
    letters = [letter.id for letter in broker.dead_letters]
    assert sorted([*rest(broker, "in"), *letters]) == ["poison"]
    broker.crash()
    broker.restart()
    assert [letter.id for letter in broker.dead_letters] == letters


# threads


def test_another_thread_is_refused_at_once() -> None:
    broker = broker_of("jms")
    connection = broker.connect()
    session = connection.session()
    producer, consumer = session.producer("q"), session.consumer("q")
    producer.send()
    calls: list[Callable[[], object]] = [
        *(producer.send, consumer.receive, consumer.poll, session.close, session.recover, connection.session),
        *(broker.connect, broker.crash, broker.restart, broker.drained, broker.close, lambda: broker.queue("r")),
    ]
    with ThreadPoolExecutor(1) as other:
        for call in calls:
            with pytest.raises(IllegalStateException, match="used by one thread"):
                other.submit(call).result()
        other.submit(broker.use_in_this_thread).result()
        assert other.submit(consumer.receive).result() is not None
        other.submit(broker.close).result()
    with pytest.raises(IllegalStateException, match="the broker is closed"):
        producer.send()


# ids


def test_an_id_is_given_once_whatever_the_number_of_restarts(tmp_path: Path) -> None:
    """What is not stored leaves nothing behind, and its id must not be given again all the same (JMS 3.1, 3.4.3)."""
    given = list[str]()
    for _ in range(4):
        with broker_of("jms", journal=FileJournal(tmp_path / "journal")) as broker:
            producer = broker.connect().session().producer("q")
            for mode in ("NON_PERSISTENT", "PERSISTENT", "NON_PERSISTENT"):
                given.append(producer.send(delivery_mode=mode).id)
    assert len(set(given)) == len(given) == 12


def test_a_memory_of_ids_takes_a_new_message_for_a_new_one(tmp_path: Path) -> None:
    seen, new = set[str](), list[str]()
    for _ in range(3):
        with broker_of("jms", journal=FileJournal(tmp_path / "journal")) as broker:
            session = broker.connect().session()
            session.producer("q").send(delivery_mode="NON_PERSISTENT")
            message = session.consumer("q").receive()
            assert message is not None
            new += [] if message.id in seen else [message.id]
            seen.add(message.id)
    assert len(new) == 3


# the end


def test_a_broker_that_is_closed_says_so() -> None:
    broker = broker_of("jms")
    producer = broker.connect().session().producer("q")
    broker.close()
    broker.close()
    assert not broker.running
    with pytest.raises(IllegalStateException, match="the broker is closed; open another on its journal"):
        producer.send()
    with pytest.raises(IllegalStateException, match="the broker is closed"):
        broker.connect()


def test_drained_tells_of_a_message_that_a_closed_session_still_works_on() -> None:
    """What a session leaves behind has no entry in a queue, and is none of what a queue holds."""
    broker = broker_of("jms")
    fill(broker, "m1", "m2")
    session = broker.connect().session("CLIENT_ACKNOWLEDGE")
    consumer = session.consumer("in")
    assert consumer.receive(None) is not None
    session.fault("link_loss")
    other = broker.connect().session("CLIENT_ACKNOWLEDGE")
    taken = other.consumer("in").receive(None)
    assert taken is not None
    with pytest.raises(IllegalStateException, match="holds"):
        broker.drained()


# order, and one thread of control


def test_in_any_order_a_queue_goes_on_whose_consumer_left_while_the_broker_was_down() -> None:
    """What the session that is gone had been sent is sent to another."""
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


def test_what_a_broker_finds_at_its_limit_is_told_in_order_whoever_observes() -> None:
    told = list[list[str]]()
    for observed in (False, True):
        broker = broker_of("jms", max_delivery_attempts=1, send_mode="asynchronous")
        if observed:
            broker.observe(lambda *_: None)
        consuming = broker.connect()
        consuming.session().consumer("q")
        producer = broker.connect().session().producer("q")
        for name in ("m1", "m2", "m3"):
            producer.send(message_id=name)
        consuming.close()
        broker.crash()
        broker.restart()
        broker.loop.wait(lambda: False)
        told.append([str(line["message"]) for line in lines(broker) if line["event"] == "dead_lettered"])
    assert told[0] == told[1] != []


@pytest.mark.parametrize("call", ["commit", "rollback"])
@pytest.mark.parametrize("profile", ["jms", "artemis", "qpid"])
def test_no_listener_is_called_inside_a_call_of_its_session(profile: str, call: str) -> None:
    """A session has one thread of control (JMS 3.1, 6.2.5): what is redelivered is of the next transaction."""
    broker = broker_of(profile)
    session = broker.connect().session("SESSION_TRANSACTED")
    producer, calling, had = session.producer("out"), False, list[str]()

    def hear(message: Message) -> None:
        assert not calling, "a listener is called inside a call of its session"
        had.append(message.id)
        producer.send(message_id=f"{message.id} heard {len(had)}")

    session.consumer("in", listener=hear)
    session.consumer("other", listener=hear)
    fill(broker, "m1", "m2")
    fill(broker, "m3", queue="other")
    broker.loop.wait(lambda: False)
    for _ in range(2):
        calling = True
        getattr(session, call)()
        calling = False
        broker.loop.wait(lambda: False)
    session.commit()
    assert had[:3] in (["m1", "m2", "m3"], ["m1", "m3", "m2"], ["m3", "m1", "m2"])
    assert len(had) == (3 if call == "commit" else 9)
    session.close()
    assert (rest(broker, "in"), rest(broker, "other")) == ([], [])
    assert len(rest(broker, "out")) == 3


# messages that were prefetched and never seen

COUNTING_WHAT_IS_SEEN = ("artemis", "activemq", "qpid-jms")
KEPT: dict[str, Any] = {"redelivery_mark_persisted": True, "max_delivery_attempts": 2}


def given_back(session: Session) -> None:
    """All that the session has had, and what it was sent besides."""
    if session.transacted:
        session.rollback()
    else:
        session.recover()


def recovered_in_vain(profile: str, mode: str = "CLIENT_ACKNOWLEDGE", **settings: Any) -> Broker:
    """The first of four messages is delivered as often as it may be; the others are prefetched with it."""
    broker = broker_of(profile, ack_mode=mode, **{"max_delivery_attempts": 2, **settings})
    fill(broker, "m1", "m2", "m3", "m4")
    with broker.connect().session(mode) as session:
        consumer = session.consumer("in")
        for count in (1, 2):
            message = consumer.receive(None)
            assert message is not None
            assert (message.id, message.redelivered, message.delivery_count) == ("m1", count > 1, count)
            given_back(session)
    return broker


def seen(broker: Broker, *, queue: str = "in") -> list[tuple[str, bool, int]]:
    """What a client has of a queue, and gives back as it closes."""
    with broker.connect().session("CLIENT_ACKNOWLEDGE") as session:
        found = iter(session.consumer(queue).poll, None)
        return [(message.id, message.redelivered, message.delivery_count) for message in found]


@pytest.mark.parametrize("profile", COUNTING_WHAT_IS_SEEN)
@pytest.mark.parametrize("mode", ["CLIENT_ACKNOWLEDGE", "SESSION_TRANSACTED"])
@pytest.mark.parametrize("kept", [False, True])
def test_what_is_given_back_unseen_was_no_attempt(tmp_path: Path, profile: str, mode: str, kept: bool) -> None:  # noqa: FBT001 - a case
    broker = recovered_in_vain(profile, mode, redelivery_mark_persisted=kept)
    assert [message.id for message in broker.dead_letters] == ["m1"]
    assert [message.headers[DEAD_LETTER_HEADERS[1]] for message in broker.dead_letters] == [2]
    assert seen(broker) == [(name, True, 2) for name in ("m2", "m3", "m4")]
    assert seen(broker) == [(name, True, 3) for name in ("m2", "m3", "m4")]
    assert [message.id for message in broker.dead_letters] == ["m1", "m2", "m3", "m4"]
    assert [message.headers[DEAD_LETTER_HEADERS[1]] for message in broker.dead_letters] == [2] * 4
    accepted(broker, tmp_path)
    broker.close()


@pytest.mark.parametrize("profile", ["jms", "ems", "solace-jms"])
@pytest.mark.parametrize("mode", ["CLIENT_ACKNOWLEDGE", "SESSION_TRANSACTED"])
def test_where_each_sending_counts_what_nobody_saw_is_dead_lettered_too(profile: str, mode: str) -> None:
    broker = recovered_in_vain(profile, mode, prefetch=10)
    assert [message.id for message in broker.dead_letters] == ["m1", "m2", "m3", "m4"]


def test_where_each_sending_counts_it_does_for_the_interface_of_solace_too() -> None:
    broker = broker_of("solace", ack_mode="CLIENT_ACKNOWLEDGE", max_delivery_attempts=2)
    fill(broker, "m1", "m2")
    for _ in range(2):
        with broker.connect().session("CLIENT_ACKNOWLEDGE") as session:
            assert session.consumer("in").receive(None) is not None
    assert [message.id for message in broker.dead_letters] == ["m1", "m2"]


@pytest.mark.parametrize("profile", COUNTING_WHAT_IS_SEEN)
@pytest.mark.parametrize("closed", ["consumer", "session", "connection"])
def test_who_closes_gives_back_what_was_not_seen_as_if_it_had_not_been_sent(profile: str, closed: str) -> None:
    broker = broker_of(profile, max_delivery_attempts=1)
    fill(broker, "m1", "m2")
    for _ in range(3):
        connection = broker.connect()
        session = connection.session("CLIENT_ACKNOWLEDGE")
        consumer = session.consumer("in")
        closing: dict[str, Any] = {"consumer": consumer, "session": session, "connection": connection}
        closing[closed].close()
        connection.close()
    assert broker.dead_letters == []
    assert seen(broker) == [("m1", True, 2), ("m2", True, 2)]
    assert [message.id for message in broker.dead_letters] == ["m1", "m2"]


def test_what_a_client_had_prefetched_when_it_failed_counts_although_nobody_saw_it() -> None:
    broker = broker_of("artemis", max_delivery_attempts=2)
    fill(broker, "m1", "m2")
    for _ in range(2):
        connection = broker.connect()
        assert connection.session("CLIENT_ACKNOWLEDGE").consumer("in").receive(None)
        connection.crash()
    assert [message.id for message in broker.dead_letters] == ["m1", "m2"]


def test_a_broker_that_forgets_its_marks_forgets_what_was_given_back_too() -> None:
    broker = broker_of("artemis", max_delivery_attempts=1, redelivery_mark_persisted=False)
    fill(broker, "m1")
    with broker.connect().session("CLIENT_ACKNOWLEDGE") as session:
        session.consumer("in")
    broker.kill()
    assert seen(broker) == [("m1", False, 1)]
    assert [message.headers[DEAD_LETTER_HEADERS[1]] for message in broker.dead_letters] == [1]


def closed_and_opened(broker: Broker) -> Journal:
    """What a journal in a folder has after its broker."""
    journal = broker.journal.journal
    assert isinstance(journal, FileJournal)
    broker.close()
    return FileJournal(journal.path)


def killed(broker: Broker) -> Journal:
    """What is left when the process has died, whatever was synced."""
    journal = broker.journal.journal
    assert isinstance(journal, MemoryJournal)
    while broker.loop.step():  # the disk is in time
        pass
    return journal.kill()


@pytest.mark.parametrize("profile", COUNTING_WHAT_IS_SEEN)
@pytest.mark.parametrize("left", [closed_and_opened, killed])
def test_another_broker_counts_on_from_what_was_seen(
    tmp_path: Path, profile: str, left: Callable[[Broker], Journal]
) -> None:
    journal = MemoryJournal() if left is killed else FileJournal(tmp_path / "journal")
    broker = broker_of(profile, journal=left(recovered_in_vain(profile, **KEPT, journal=journal)), **KEPT)
    for _ in range(3):
        with broker.connect().session("CLIENT_ACKNOWLEDGE") as session:
            session.consumer("in")
        broker = broker_of(profile, journal=left(broker), **KEPT)
    assert seen(broker) == [(name, True, 2) for name in ("m2", "m3", "m4")]
    broker = broker_of(profile, journal=left(broker), **KEPT)
    assert [message.id for message in broker.dead_letters] == ["m1"]
    assert seen(broker) == [(name, True, 2) for name in ("m2", "m3", "m4")]  # a journal has the attempts alone
    assert [message.id for message in broker.dead_letters] == ["m1", "m2", "m3", "m4"]
    broker.close()


def test_the_count_that_a_journal_keeps_falls_and_the_mark_stays() -> None:
    broker = broker_of("artemis", **KEPT)
    fill(broker, "m1")
    kept = []
    for reads in (False, False, True, False, False):
        with broker.connect().session("CLIENT_ACKNOWLEDGE") as session:
            consumer = session.consumer("in")
            assert not reads or consumer.receive(None)
        (live,) = killed(broker).recovery.live.values()
        (browsed,) = broker.connect().session("CLIENT_ACKNOWLEDGE").browser("in")
        kept.append((live.marked, live.attempts, browsed.redelivered, browsed.delivery_count))
    assert kept == [(True, 0, True, 1)] * 2 + [(True, 1, True, 2)] * 3
