"""What another broker finds on a journal: everything of a message, and everything that was promised about it."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from ackfsm.engine import Broker, HeaderValue, Outcome, TransactionRolledBackException
from ackfsm.engine.journal import FileJournal, Journal, Kind, MemoryJournal, SqliteJournal
from model_tests.support.engine.brokers import broker_of, received
from model_tests.support.tables import shipped

KINDS = {"file": FileJournal, "sqlite": SqliteJournal}


def broker_on(journal: Journal, **settings: Any) -> Broker:
    return Broker("artemis", specification=shipped(), consumption="receive", journal=journal, **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_comes_back_as_it_was_sent(kind: str, tmp_path: Path) -> None:
    headers: dict[str, HeaderValue] = {"text": "ü", "number": 7, "part": 0.5, "yes": True, "none": None}
    with broker_on(KINDS[kind](tmp_path / "journal")) as broker:
        broker.connect().session().producer("q").send(b"\0body", headers, message_id="m")
        broker.connect().session().producer("q").send(message_id="empty")
    with broker_on(KINDS[kind](tmp_path / "journal")) as broker:
        found = broker.connect().session("CLIENT_ACKNOWLEDGE").consumer("q")
        first, second = found.receive(None), found.receive(None)
        assert first is not None
        assert second is not None
        assert (first.id, first.body, dict(first.headers)) == ("m", b"\0body", headers)
        assert (second.id, second.body, dict(second.headers)) == ("empty", b"", {})
        assert [(m.redelivered, m.delivery_count) for m in (first, second)] == [(False, 1), (False, 1)]


@pytest.mark.parametrize("deliveries", [1, 2, 3])
def test_flag_and_count_of_a_delivery_come_back(deliveries: int, tmp_path: Path) -> None:
    settings = {"redelivery_mark_persisted": True}
    with broker_on(FileJournal(tmp_path / "journal"), **settings) as broker:
        broker.connect().session().producer("q").send(message_id="m")
        for _ in range(deliveries):
            client = broker.connect()
            assert client.session("CLIENT_ACKNOWLEDGE").consumer("q").receive(None)
            client.crash()
    with broker_on(FileJournal(tmp_path / "journal"), **settings) as broker:
        message = received(broker.connect().session("CLIENT_ACKNOWLEDGE").consumer("q"))
        assert (message.redelivered, message.delivery_count) == (True, deliveries + 1)


def until_it_is_a_dead_letter(broker: Broker) -> int:
    """How often the message is given to an application that has it delivered again."""
    session, times = broker.connect().session("CLIENT_ACKNOWLEDGE"), 0
    consumer = session.consumer("q")
    while consumer.receive(None) is not None:
        times += 1
        session.recover()
    return times


@pytest.mark.parametrize(("profile", "times"), [("ems", 4), ("artemis", 4), ("qpid", 4), ("solace", 3)])
def test_an_attempt_counts_in_another_broker_as_in_one_that_starts_again(
    profile: str,
    times: int,
    tmp_path: Path,
) -> None:
    settings: dict[str, Any] = {"specification": shipped(), "consumption": "receive", "max_delivery_attempts": 4}
    settings["send_mode"] = "blocking"  # what no call waits for, a broker that dies may not have written
    broker = Broker(profile, journal=FileJournal(tmp_path / "journal"), **settings)
    broker.connect().session().producer("q").send(message_id="m")
    session = broker.connect().session("CLIENT_ACKNOWLEDGE")
    assert session.consumer("q").receive(None)
    session.close()
    broker.kill()
    shutil.copytree(tmp_path / "journal", tmp_path / "copy")
    broker.restart()
    other = Broker(profile, journal=FileJournal(tmp_path / "copy"), **settings)
    assert until_it_is_a_dead_letter(other) == until_it_is_a_dead_letter(broker) == times


def test_what_is_sent_after_opening_overwrites_nothing_in_any_life(tmp_path: Path) -> None:
    for life in range(4):
        with broker_on(FileJournal(tmp_path / "journal")) as broker:
            assert broker.queue("q").length == 2 * life
            for number in range(2):
                broker.connect().session().producer("q").send(message_id=f"{life}.{number}")
    with broker_on(FileJournal(tmp_path / "journal")) as broker:
        consumer, found = broker.connect().session().consumer("q"), []
        while (message := consumer.receive(None)) is not None:
            found.append(message.id)
        assert found == [f"{life}.{number}" for life in range(4) for number in range(2)]


@pytest.mark.parametrize("mode", ["AUTO_ACKNOWLEDGE", "SESSION_TRANSACTED"])
def test_what_is_sent_again_under_an_id_of_an_earlier_life_is_taken_once(mode: str, tmp_path: Path) -> None:
    for again in (False, True, True):
        with broker_on(FileJournal(tmp_path / "journal"), duplicate_detection=True) as broker:
            session = broker.connect().session(mode)
            dropped = pytest.raises(TransactionRolledBackException) if again else contextlib.nullcontext()
            session.producer("q").send(b"tea", duplicate_id=b"once")
            if session.transacted:
                with dropped:
                    session.commit()
            assert broker.queue("q").length == 1


def test_an_id_of_a_transaction_that_never_committed_is_not_known(tmp_path: Path) -> None:
    settings = {"duplicate_detection": True}
    with broker_on(FileJournal(tmp_path / "journal"), **settings) as broker:
        session = broker.connect().session("SESSION_TRANSACTED")
        session.producer("q").send(b"tea", duplicate_id=b"once")
        broker.loop.flush_all()
        broker.kill()
        broker.restart()
    with broker_on(FileJournal(tmp_path / "journal"), **settings) as broker:
        broker.connect().session().producer("q").send(b"tea", duplicate_id=b"once")
        assert broker.queue("q").length == 1


def test_of_many_ids_the_newest_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ackfsm.engine.core.queues.REMEMBERED", 3)
    broker = broker_on(MemoryJournal(), duplicate_detection=True)
    producer = broker.connect().session().producer("q")
    for number in range(5):
        producer.send(duplicate_id=bytes([number]))
    producer.send(duplicate_id=b"\4")
    assert broker.queue("q").length == 5
    producer.send(duplicate_id=b"\0")
    assert broker.queue("q").length == 6


def test_what_close_has_stored_is_confirmed() -> None:
    broker = Broker("jms", specification=shipped(), send_mode="asynchronous")
    sent = broker.connect().session().producer("q").send()
    outcomes = [sent.outcome]
    broker.close()
    assert [*outcomes, sent.outcome] == [Outcome.OPEN, Outcome.CONFIRMED]


@pytest.mark.parametrize("mode", ["AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "DUPS_OK_ACKNOWLEDGE"])
@pytest.mark.parametrize("end", ["session", "broker"])
def test_what_was_acknowledged_before_an_orderly_end_does_not_come_again(mode: str, end: str, tmp_path: Path) -> None:
    with broker_on(FileJournal(tmp_path / "journal")) as broker:
        for number in range(3):
            broker.connect().session().producer("q").send(message_id=f"m{number}")
        session = broker.connect().session(mode)
        consumer = session.consumer("q")
        for _ in range(2):
            message = received(consumer)
            message.acknowledge()
        if end == "session" or mode != "CLIENT_ACKNOWLEDGE":
            session.close()  # here an application says that it is done with the last one
    with broker_on(FileJournal(tmp_path / "journal")) as broker:
        last = received(broker.connect().session("CLIENT_ACKNOWLEDGE").consumer("q"))
        assert last.id == "m2"
        assert broker.queue("q").length == 1


class _Recording(MemoryJournal):
    """Keeps what was appended."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[tuple[Kind, int, int]] = []

    def append(self, kind: Kind, key: int, data: bytes = b"", transaction: int = 0) -> int:
        self.entries.append((kind, key, transaction))
        return super().append(kind, key, data, transaction)


def test_no_message_is_marked_for_which_there_is_no_room() -> None:
    journal = _Recording()
    broker = broker_on(journal, redelivery_mark_persisted=True, prefetch=3)
    for _ in range(9):
        broker.connect().session().producer("q").send()
    consumer = broker.connect().session("CLIENT_ACKNOWLEDGE").consumer("q")
    for marked in (3, 4, 5):
        message = received(consumer)
        assert [kind for kind, *_ in journal.entries].count(Kind.MARK) == marked
        message.acknowledge()


def test_each_transaction_has_a_number_of_its_own_in_every_life(tmp_path: Path) -> None:
    numbers = list[int]()
    for _ in range(3):
        with broker_on(FileJournal(tmp_path / "journal")) as broker:
            session = broker.connect().session("SESSION_TRANSACTED")
            for _ in range(3):
                session.producer("q").send()
                numbers.append(session.transaction)
                session.commit()
    assert len(set(numbers)) == 9


@pytest.mark.parametrize("kind", KINDS)
def test_a_transaction_that_never_committed_leaves_nothing(kind: str, tmp_path: Path) -> None:
    """What it sent and what it consumed is in the journal, and does not count (JMS 3.1, 6.2.7)."""
    with broker_on(KINDS[kind](tmp_path / "journal")) as broker:
        broker.connect().session().producer("in").send(message_id="m")
        session = broker.connect().session("SESSION_TRANSACTED")
        consumer = session.consumer("in")
        assert consumer.receive(None) is not None
        session.producer("out").send()
        assert consumer.receive(None) is None  # the application is done with the first
        broker.loop.flush_all()
    with broker_on(KINDS[kind](tmp_path / "journal")) as broker:
        assert (broker.queue("in").length, broker.queue("out").length) == (1, 0)


def test_a_transaction_that_never_committed_does_not_count_with_the_next(tmp_path: Path) -> None:
    with broker_on(FileJournal(tmp_path / "journal")) as broker:
        session = broker.connect().session("SESSION_TRANSACTED")
        producer = session.producer("q")
        producer.send(message_id="undone")
        broker.loop.flush_all()
        session.rollback()
        producer.send(message_id="done")
        session.commit()
    with broker_on(FileJournal(tmp_path / "journal")) as broker:
        assert broker.queue("q").length == 1
        found = received(broker.connect().session().consumer("q"))
        assert found.id == "done"


@pytest.mark.parametrize("sent", [True, False])
def test_a_commit_that_did_not_wait_for_the_disk_holds_after_an_orderly_close(sent: bool, tmp_path: Path) -> None:  # noqa: FBT001
    settings = {"journal_sync_transactional": False, "journal_sync_non_transactional": False}
    with broker_on(FileJournal(tmp_path / "journal"), **settings) as broker:
        broker.connect().session().producer("in").send()
        session = broker.connect().session("SESSION_TRANSACTED")
        if sent:
            session.producer("out").send()
        else:
            assert session.consumer("in").receive(None) is not None
        session.commit()
    with broker_on(FileJournal(tmp_path / "journal")) as broker:
        assert (broker.queue("in").length, broker.queue("out").length) == ((1, 1) if sent else (0, 0))


def test_all_that_a_transaction_does_names_it_in_the_journal_and_its_commit_comes_last() -> None:
    """Whatever of an unfinished sync a power loss leaves: without the ``COMMIT`` none of it counts (JMS 3.1, 6.2.7)."""
    journal = _Recording()
    broker = broker_on(journal, duplicate_detection=True)
    broker.connect().session().producer("in").send()
    journal.entries.clear()
    session = broker.connect().session("SESSION_TRANSACTED")
    assert session.consumer("in").receive(None) is not None
    session.producer("out").send(duplicate_id=b"once")
    number = session.transaction
    session.commit()
    work = [Kind.STORE, Kind.REMEMBER, Kind.REMOVE]
    *entries, last = [entry for entry in journal.entries if entry[0] is not Kind.MARK]
    assert sorted(kind for kind, *_ in entries) == sorted(work)
    assert {transaction for *_, transaction in entries} == {number}
    assert last == (Kind.COMMIT, number, 0)


def test_a_dead_letter_is_moved_by_one_transaction_of_the_journal() -> None:
    journal = _Recording()
    broker = broker_on(journal, max_delivery_attempts=1)
    broker.connect().session().producer("in").send()
    journal.entries.clear()
    client = broker.connect()
    assert client.session("CLIENT_ACKNOWLEDGE").consumer("in").receive(None) is not None
    client.crash()
    broker.loop.flush_all()
    *entries, last = [entry for entry in journal.entries if entry[0] is not Kind.MARK]
    assert sorted(kind for kind, *_ in entries) == [Kind.STORE, Kind.REMOVE]
    assert last[0] is Kind.COMMIT
    assert {transaction for *_, transaction in entries} == {last[1]}


def test_a_message_id_is_given_once_whatever_the_number_of_restarts(tmp_path: Path) -> None:
    """Not even where the journal has nothing of the message (JMS 3.1, 3.4.3)."""
    given = list[str]()
    for _ in range(4):
        with broker_of(journal=FileJournal(tmp_path / "journal")) as broker:
            producer = broker.connect().session().producer("q")
            for mode in ("NON_PERSISTENT", "PERSISTENT", "NON_PERSISTENT"):
                given.append(producer.send(delivery_mode=mode).id)
    assert len(set(given)) == len(given) == 12


def test_a_consumer_that_remembers_ids_takes_no_new_message_for_a_known_one(tmp_path: Path) -> None:
    seen, new = set[str](), list[str]()
    for _ in range(3):
        with broker_of(journal=FileJournal(tmp_path / "journal")) as broker:
            session = broker.connect().session()
            session.producer("q").send(delivery_mode="NON_PERSISTENT")
            message = received(session.consumer("q"), 0.0)
            new += [] if message.id in seen else [message.id]
            seen.add(message.id)
    assert len(new) == 3
