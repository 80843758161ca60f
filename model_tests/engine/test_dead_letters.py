"""What becomes of a message at its last attempt: the dead-letter queue, its reasons, crashes in between."""

from __future__ import annotations

from collections.abc import Sized
from pathlib import Path
from typing import Any

import pytest

from ackfsm.engine import DEAD_LETTER_HEADERS, Broker, Timed
from ackfsm.engine.journal import FileJournal
from model_tests.support.engine.brokers import broker_of, fill, lines, received, rest
from model_tests.support.tables import shipped


def poisoned(broker: Broker, **settings: Any) -> None:
    """Send a message, and deliver it to a client that crashes."""
    broker.connect().session().producer("in").send(b"tea", {"shop": 7}, message_id="poison", **settings)
    connection = broker.connect()
    assert connection.session("CLIENT_ACKNOWLEDGE").consumer("in").receive(None)
    connection.crash()


def test_a_dead_letter_has_the_reason_and_survives_a_restart(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"max_delivery_attempts": 1}
    with broker_of("artemis", journal=FileJournal(tmp_path / "journal"), **settings) as broker:
        poisoned(broker)
        assert [message.id for message in broker.dead_letters] == ["poison"]
        broker.drained()
    with broker_of("artemis", journal=FileJournal(tmp_path / "journal")) as broker:
        assert rest(broker, "in") == []
        letter = received(broker.connect().session("AUTO_ACKNOWLEDGE").consumer("DLQ"))
        assert (letter.id, letter.body, letter.delivery_count) == ("poison", b"tea", 1)
        reasons = dict(zip(DEAD_LETTER_HEADERS, ["in", 1, "max_delivery_attempts"], strict=True))
        assert letter.headers == {"shop": 7, **reasons}
    with broker_of("artemis", journal=FileJournal(tmp_path / "journal")) as broker:
        assert broker.dead_letters == []


def test_a_dead_letter_that_was_never_stored_is_kept_while_the_broker_runs() -> None:
    broker = broker_of("artemis", max_delivery_attempts=1)
    poisoned(broker, delivery_mode="NON_PERSISTENT")
    assert rest(broker, "DLQ") == ["poison"]
    assert broker.dead_letters == []


def test_a_dead_letter_that_fails_again_still_names_its_first_queue() -> None:
    broker = broker_of("artemis", max_delivery_attempts=1)
    poisoned(broker)
    connection = broker.connect()
    assert connection.session("CLIENT_ACKNOWLEDGE").consumer("DLQ").receive(None)
    connection.crash()
    assert [(letter.id, letter.headers[DEAD_LETTER_HEADERS[0]]) for letter in broker.dead_letters] == [("poison", "in")]


def test_a_message_at_its_last_attempt_is_dead_lettered_by_a_rollback() -> None:
    broker = Broker("jms", specification=shipped(), ack_mode="SESSION_TRANSACTED", max_delivery_attempts=1)
    sender = broker.connect().session()
    sender.producer("q").send(message_id="m", delivery_mode="NON_PERSISTENT")
    sender.commit()
    receiver = broker.connect().session()
    assert receiver.consumer("q").receive() is not None
    receiver.rollback()
    assert [message.id for message in broker.dead_letters] == ["m"]


def test_a_dead_letter_is_destroyed_where_there_is_no_queue_for_it() -> None:
    broker = broker_of("artemis", max_delivery_attempts=1, dead_letter_queue=None)
    poisoned(broker)
    broker.loop.flush_all()
    assert (rest(broker, "in"), broker.dead_letters) == ([], [])
    broker.kill()
    assert broker.journal.journal.recovery.live == {}
    broker.restart()
    assert (rest(broker, "in"), broker.dead_letters) == ([], [])


def test_a_broker_with_dead_letters_counts_as_drained() -> None:
    broker = broker_of("artemis", max_delivery_attempts=1)
    broker.connect().session().producer("q").send(message_id="m")
    client = broker.connect()
    received(client.session("CLIENT_ACKNOWLEDGE").consumer("q"))
    client.crash()
    broker.loop.flush_all()
    assert (broker.queue("q").length, broker.queue("DLQ").length) == (0, 1)
    broker.drained()


def test_a_consumed_dead_letter_leaves_nothing_in_memory() -> None:
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


@pytest.mark.parametrize("fault", ["crash", "kill", "fail_journal"])
@pytest.mark.parametrize("seed", range(12))
def test_a_broker_crash_while_a_message_is_dead_lettered_leaves_it_once(fault: str, seed: int) -> None:
    """It is in its queue or among the dead letters, whatever part of the journal is on the disk."""
    broker = broker_of("artemis", max_delivery_attempts=1, seed=seed, pace=Timed(seed=seed))
    poisoned(broker)
    broker.loop.wait(lambda: bool(broker.engine.dead_letters._pending))  # noqa: SLF001 - the crash has to come here
    assert broker.engine.dead_letters._pending  # noqa: SLF001
    getattr(broker, fault)()
    broker.restart()
    broker.loop.wait(lambda: False)
    letters = [letter.id for letter in broker.dead_letters]
    assert sorted([*rest(broker, "in"), *letters]) == ["poison"]
    broker.crash()
    broker.restart()
    assert [letter.id for letter in broker.dead_letters] == letters


# the history


def test_a_message_sent_to_the_dead_letter_queue_is_in_the_history() -> None:
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
def test_a_message_sent_under_the_id_of_a_dead_letter_is_in_the_history(is_there: bool) -> None:  # noqa: FBT001 - a case
    broker = broker_of("artemis", max_delivery_attempts=1)
    poisoned(broker)
    if not is_there:
        assert rest(broker, "DLQ") == ["poison"]
    fill(broker, "poison", queue="DLQ")
    assert set(rest(broker, "DLQ")) == {"poison"}
    told = [line["event"] for line in lines(broker) if line.get("queue") == "DLQ"]
    assert told == ["send", "confirmed", "delivered", "processed", "acknowledge"]


def test_dead_letters_found_at_a_restart_are_recorded_in_order_with_and_without_an_observer() -> None:
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
