"""How deliveries are counted: over restarts, and where a message was prefetched and never delivered."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ackfsm.engine import DEAD_LETTER_HEADERS, Broker, Session
from ackfsm.engine.journal import FileJournal, Journal, MemoryJournal
from model_tests.support.engine.brokers import accepted, broker_of, fill, received, rest
from model_tests.support.whole import in_turn


@pytest.mark.parametrize("profile", ["jms", "artemis", "activemq", "qpid", "ems"])
def test_every_delivery_but_the_first_is_flagged_and_counted(profile: str) -> None:
    broker = broker_of(profile)
    broker.connect().session().producer("q").send()
    deliveries = []
    for _ in range(3):
        with broker.connect() as client:
            message = received(client.session("CLIENT_ACKNOWLEDGE").consumer("q"))
            deliveries.append((message.redelivered, message.delivery_count))
    assert deliveries == [(False, 1), (True, 2), (True, 3)]


@pytest.mark.parametrize("deliveries", [2, 3, 5])
def test_the_delivery_count_holds_over_a_restart(tmp_path: Path, deliveries: int) -> None:
    """A message at the limit, or beyond a lowered one, is not delivered again; the others of its queue are."""
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


# prefetched and never delivered


COUNTING_WHAT_IS_SEEN = ("artemis", "activemq", "qpid-jms")
DEAD_LETTERS = {"attempts_exhausted": "dead_letter"}
KEPT: dict[str, Any] = {"redelivery_mark_persisted": True, "max_delivery_attempts": 2, **DEAD_LETTERS}


def requeue(session: Session) -> None:
    """Give back all that the session was sent, delivered or prefetched."""
    if session.transacted:
        session.rollback()
    else:
        session.recover()


def with_a_dead_letter(profile: str, mode: str = "CLIENT_ACKNOWLEDGE", **settings: Any) -> Broker:
    """A broker whose first of four messages had all its attempts, while the others were prefetched with it."""
    broker = broker_of(profile, ack_mode=mode, **{"max_delivery_attempts": 2, **DEAD_LETTERS, **settings})
    fill(broker, "m1", "m2", "m3", "m4")
    with broker.connect().session(mode) as session:
        consumer = session.consumer("in")
        for count in (1, 2):
            message = received(consumer)
            assert (message.id, message.redelivered, message.delivery_count) == ("m1", count > 1, count)
            requeue(session)
    return broker


def seen(broker: Broker, *, queue: str = "in") -> list[tuple[str, bool, int]]:
    """Id, flag and count of all that a client is delivered of a queue, and gives back as it closes."""
    with broker.connect().session("CLIENT_ACKNOWLEDGE") as session:
        found = iter(session.consumer(queue).poll, None)
        return [(message.id, message.redelivered, message.delivery_count) for message in found]


MODES = ("CLIENT_ACKNOWLEDGE", "SESSION_TRANSACTED")


@pytest.mark.parametrize(
    ("kept", "case"), in_turn([False, True], [*itertools.product(MODES, COUNTING_WHAT_IS_SEEN)], 1)
)
def test_a_prefetched_message_that_is_requeued_unseen_counts_no_attempt(
    tmp_path: Path,
    kept: bool,  # noqa: FBT001 - a case
    case: tuple[str, str],
) -> None:
    mode, profile = case
    broker = with_a_dead_letter(profile, mode, redelivery_mark_persisted=kept)
    assert [message.id for message in broker.dead_letters] == ["m1"]
    assert [message.headers[DEAD_LETTER_HEADERS[1]] for message in broker.dead_letters] == [2]
    assert seen(broker) == [(name, False, 1) for name in ("m2", "m3", "m4")]
    assert seen(broker) == [(name, True, 2) for name in ("m2", "m3", "m4")]
    assert [message.id for message in broker.dead_letters] == ["m1", "m2", "m3", "m4"]
    assert [message.headers[DEAD_LETTER_HEADERS[1]] for message in broker.dead_letters] == [2] * 4
    accepted(broker, tmp_path)
    broker.close()


@pytest.mark.parametrize("profile", ["jms", "ems", "solace-jms"])
@pytest.mark.parametrize("mode", MODES)
def test_a_prefetched_message_is_dead_lettered_unseen_where_each_dispatch_counts(profile: str, mode: str) -> None:
    broker = with_a_dead_letter(profile, mode, prefetch=10, attempts_exhausted="dead_letter")
    assert [message.id for message in broker.dead_letters] == ["m1", "m2", "m3", "m4"]


def test_each_dispatch_counts_for_the_native_interface_of_solace_too() -> None:
    broker = broker_of("solace", ack_mode="CLIENT_ACKNOWLEDGE", max_delivery_attempts=2, **DEAD_LETTERS)
    fill(broker, "m1", "m2")
    for _ in range(2):
        with broker.connect().session("CLIENT_ACKNOWLEDGE") as session:
            assert session.consumer("in").receive(None) is not None
    assert [message.id for message in broker.dead_letters] == ["m1", "m2"]


@pytest.mark.parametrize("profile", COUNTING_WHAT_IS_SEEN)
@pytest.mark.parametrize("closed", ["consumer", "session", "connection"])
def test_an_orderly_close_requeues_unseen_messages_without_an_attempt(profile: str, closed: str) -> None:
    broker = broker_of(profile, max_delivery_attempts=1, **DEAD_LETTERS)
    fill(broker, "m1", "m2")
    for _ in range(3):
        connection = broker.connect()
        session = connection.session("CLIENT_ACKNOWLEDGE")
        consumer = session.consumer("in")
        closing: dict[str, Any] = {"consumer": consumer, "session": session, "connection": connection}
        closing[closed].close()
        connection.close()
    assert broker.dead_letters == []
    assert seen(broker) == [("m1", False, 1), ("m2", False, 1)]
    assert [message.id for message in broker.dead_letters] == ["m1", "m2"]


def test_a_client_crash_counts_an_attempt_for_prefetched_messages() -> None:
    broker = broker_of("artemis", max_delivery_attempts=2)
    fill(broker, "m1", "m2")
    for _ in range(2):
        connection = broker.connect()
        assert connection.session("CLIENT_ACKNOWLEDGE").consumer("in").receive(None)
        connection.crash()
    assert [message.id for message in broker.dead_letters] == ["m1", "m2"]


def test_a_broker_that_forgets_redelivered_marks_forgets_requeues_too() -> None:
    broker = broker_of("artemis", max_delivery_attempts=1, redelivery_mark_persisted=False)
    fill(broker, "m1")
    with broker.connect().session("CLIENT_ACKNOWLEDGE") as session:
        session.consumer("in")
    broker.kill()
    assert seen(broker) == [("m1", False, 1)]
    assert [message.headers[DEAD_LETTER_HEADERS[1]] for message in broker.dead_letters] == [1]


# what the journal has of the count


def closed_and_opened(broker: Broker) -> Journal:
    """The journal of a broker that is closed, opened again."""
    journal = broker.journal.journal
    assert isinstance(journal, FileJournal)
    broker.close()
    return FileJournal(journal.path)


def killed(broker: Broker) -> Journal:
    """The journal of a broker whose process was killed after the last sync."""
    journal = broker.journal.journal
    assert isinstance(journal, MemoryJournal)
    while broker.loop.step():  # the disk is in time
        pass
    return journal.kill()


@pytest.mark.parametrize("profile", COUNTING_WHAT_IS_SEEN)
@pytest.mark.parametrize("left", [closed_and_opened, killed])
def test_another_broker_on_the_journal_goes_on_counting_from_what_was_seen(
    tmp_path: Path, profile: str, left: Callable[[Broker], Journal]
) -> None:
    journal = MemoryJournal() if left is killed else FileJournal(tmp_path / "journal")
    broker = broker_of(profile, journal=left(with_a_dead_letter(profile, **KEPT, journal=journal)), **KEPT)
    for _ in range(3):
        with broker.connect().session("CLIENT_ACKNOWLEDGE") as session:
            session.consumer("in")
        broker = broker_of(profile, journal=left(broker), **KEPT)
    assert seen(broker) == [(name, False, 1) for name in ("m2", "m3", "m4")]
    broker = broker_of(profile, journal=left(broker), **KEPT)
    assert [message.id for message in broker.dead_letters] == ["m1"]
    assert seen(broker) == [(name, True, 2) for name in ("m2", "m3", "m4")]
    assert [message.id for message in broker.dead_letters] == ["m1", "m2", "m3", "m4"]
    broker.close()


def test_the_count_that_a_journal_keeps_falls_at_a_requeue_and_the_flag_with_it() -> None:
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
    assert kept == [(True, 0, False, 0)] * 2 + [(True, 1, True, 1)] * 3


@pytest.mark.parametrize("limit", [0, 10])
@pytest.mark.parametrize("profile", COUNTING_WHAT_IS_SEEN)
def test_what_is_handed_over_of_a_broken_connection_comes_again_flagged(profile: str, limit: int) -> None:
    """The broker took it back before the application had it, and cannot tell that it has it since."""
    broker = broker_of(profile, max_delivery_attempts=limit)
    fill(broker, "m1")
    connection = broker.connect()
    consumer = connection.session("SESSION_TRANSACTED").consumer("in")
    connection.lose()
    message = consumer.poll()
    assert message is not None
    assert (message.redelivered, message.delivery_count) == (False, 1)
    connection.close()
    assert seen(broker) == [("m1", True, 2)]


@pytest.mark.parametrize("limit", [0, 10])
def test_a_mark_that_could_not_be_taken_back_in_time_is_still_in_the_journal(limit: int) -> None:
    """Nobody waits for that; what a crash takes of it flags once too often."""
    settings = {**KEPT, "max_delivery_attempts": limit}
    broker = broker_of("artemis", **settings)
    fill(broker, "m1")
    with broker.connect().session("CLIENT_ACKNOWLEDGE") as session:
        session.consumer("in")
    journal = broker.journal.journal
    assert isinstance(journal, MemoryJournal)
    too_early, in_time = journal.kill(), killed(broker)
    assert seen(broker_of("artemis", journal=too_early, **settings)) == [("m1", True, 2)]
    assert seen(broker_of("artemis", journal=in_time, **settings)) == [("m1", False, 1)]
