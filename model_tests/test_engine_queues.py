"""Queues as an administrator sees them: what there is, what is in them, and how to empty one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ackfsm.engine import Broker, BrokerStopped, IllegalStateException, Shuffled, Timed
from ackfsm.journal import FileJournal, Journal, SqliteJournal
from model_tests._tables import shipped
from model_tests.engine_calls import assert_kept, shared_wiring

__all__ = ["shared_wiring"]

JOURNALS: Mapping[str, Callable[[Path], Journal]] = {
    "file": lambda folder: FileJournal(folder / "journal"),
    "sqlite": lambda folder: SqliteJournal(folder / "journal.db"),
}
PACES: dict[str, Callable[[], Any]] = {
    "at once": lambda: None,
    "timed": lambda: Timed(seed=1),
    "shuffled": lambda: Shuffled(1),
}


def broker_of(profile: str = "jms", **settings: Any) -> Broker:
    settings = {"ack_mode": "CLIENT_ACKNOWLEDGE", "consumption": "receive", "max_delivery_attempts": 0, **settings}
    return Broker(profile, specification=shipped(), **{"history": True, **settings})


def fill(broker: Broker, *names: str, queue: str = "q", **settings: Any) -> None:
    with broker.connect().session("CLIENT_ACKNOWLEDGE", **settings) as session, session.producer(queue) as producer:
        for name in names:
            producer.send(name, {"n": 1}, message_id=name)


def ids(broker: Broker, queue: str = "q") -> list[str]:
    """What a browser finds."""
    return [message.id for message in broker.connect().session().browser(queue)]


# Browsers


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("pace", PACES)
def test_a_browser_sees_all_and_takes_nothing(durable: bool, pace: str) -> None:  # noqa: FBT001 - a parameter
    broker = broker_of(pace=PACES[pace](), prefetch=2)
    broker.queue("q", durable=durable)
    fill(broker, "m1", "m2", "m3")
    fill(broker, "x", queue="other")
    consumer = broker.connect().session().consumer("q")
    received = consumer.receive(None)
    assert received is not None
    before = len(broker.history.lines) if broker.history else 0
    found = broker.connect().session().browser("q").snapshot()
    assert [(each.id, each.body, dict(each.headers)) for each in found] == [
        (n, n, {"n": 1}) for n in ("m1", "m2", "m3")
    ]
    assert [each.redelivered for each in found] == [False] * 3
    assert found[0].with_consumer
    assert not found[2].with_consumer
    assert (found[0].delivery_count, found[2].delivery_count) == (1, 0)
    assert broker.history is not None
    assert len(broker.history.lines) == before
    assert broker.queue("q").length == 3
    received.acknowledge()
    while (message := consumer.receive(None)) is not None:
        message.acknowledge()
    assert ids(broker) == []
    assert_kept(broker)


def test_a_browser_goes_through_what_there_was_when_it_began() -> None:
    broker = broker_of()
    fill(broker, "m1", "m2")
    browser = broker.connect().session().browser(broker.queue("q"))
    going = iter(browser)
    assert next(going).id == "m1"
    fill(broker, "m3")
    assert [message.id for message in going] == ["m2"]
    assert [message.id for message in browser] == ["m1", "m2", "m3"]


def test_a_browser_says_what_the_next_delivery_will_say() -> None:
    broker = broker_of(prefetch=1)
    fill(broker, "m1", "m2")
    session = broker.connect().session()
    assert session.consumer("q").receive() is not None
    session.close()
    one, two = broker.connect().session().browser("q")
    assert (one.redelivered, one.delivery_count, one.with_consumer) == (True, 1, False)
    assert (two.redelivered, two.delivery_count) == (False, 0)
    again = broker.connect().session().consumer("q").receive()
    assert again is not None
    assert (again.redelivered, again.delivery_count) == (True, 2)
    one, two = broker.connect().session().browser("q")
    assert (one.redelivered, one.delivery_count, one.with_consumer) == (True, 2, True)


def test_a_browser_does_not_see_what_is_not_committed() -> None:
    broker = broker_of("artemis")
    session = broker.connect().session("SESSION_TRANSACTED")
    session.producer("q").send(message_id="m1")
    assert broker.queue("q").length == 1
    assert ids(broker) == []
    session.commit()
    consumer = broker.connect().session("SESSION_TRANSACTED").consumer("q")
    assert consumer.receive() is not None
    assert ids(broker) == ["m1"]  # received, and not committed
    consumer.session.commit()
    assert ids(broker) == []


def test_a_browser_of_two_copies_sees_both() -> None:
    broker = broker_of(send_mode="asynchronous", resend_in_doubt=True, pace=Timed(latency=(10, 10)))
    connection = broker.connect()
    producer = connection.session().producer("q")
    sent = producer.send(message_id="m1")
    broker.engine.go_on()
    connection.lose()
    producer.wait()
    assert sent.outcome == "in_doubt"
    producer.resend(sent)
    producer.wait()
    assert ids(broker) == ["m1", "m1"]


@pytest.mark.parametrize("kind", JOURNALS)
def test_a_browser_sees_what_the_journal_has(kind: str, tmp_path: Path) -> None:
    with broker_of("artemis", journal=JOURNALS[kind](tmp_path)) as broker:
        fill(broker, "m1", "m2")
        broker.kill()
        assert ids(broker) == ["m1", "m2"]
    with broker_of("artemis", journal=JOURNALS[kind](tmp_path)) as broker:
        assert ids(broker) == ["m1", "m2"]


def test_a_browser_of_a_dead_broker_says_so() -> None:
    broker = broker_of(repairs=False)
    session = broker.connect().session()
    browser = session.browser("q")
    broker.kill()
    with pytest.raises(BrokerStopped, match="a browser of queue 'q': the broker is down"):
        list(browser)
    broker.restart()
    session.close()
    with pytest.raises(IllegalStateException):
        list(browser)
    with pytest.raises(IllegalStateException):
        session.browser("q")


# Which there are


def test_a_broker_lists_its_queues() -> None:
    broker = broker_of()
    seen = broker.queues
    assert dict(seen) == {}
    fill(broker, "m1")
    broker.queue("spool", durable=False, max_length=3)
    assert {name: (queue.name, queue.length, queue.durable, queue.max_length) for name, queue in seen.items()} == {
        "q": ("q", 1, True, None),
        "spool": ("spool", 0, False, 3),
    }
    with pytest.raises(TypeError):
        seen["x"] = broker.queue("x")  # type: ignore[index] # it is to be looked at
