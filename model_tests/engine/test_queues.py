"""Queues as an administrator sees them: what there is, what is in them, and how to empty one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ackfsm.engine import Broker, BrokerStopped, IllegalStateException, JMSException, Shuffled, Timed
from ackfsm.engine.journal import FileJournal, Journal, SqliteJournal
from ackfsm.terms import InputError, Profile
from model_tests.support.engine.brokers import received
from model_tests.support.engine.calls import assert_kept
from model_tests.support.tables import shipped

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
    first = received(consumer)
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
    first.acknowledge()
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
    again = received(broker.connect().session().consumer("q"), 0.0)
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
    broker.loop.step()
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


# Purges


@pytest.mark.parametrize(("profile", "pace"), [(p.value, list(PACES)[n % len(PACES)]) for n, p in enumerate(Profile)])
def test_a_purge_removes_what_is_ready_and_nothing_else(profile: str, pace: str) -> None:
    broker = broker_of(profile, pace=PACES[pace]())
    fill(broker, "m1", "m2", "m3", "m4")
    session = broker.connect().session(prefetch=1)
    first = received(session.consumer("q"))
    while broker.loop.step():
        pass  # where taking a message makes room, the next one comes
    ready = broker.metrics().queues["q"].ready
    assert ready >= 2
    assert broker.purge("q") == ready
    assert ids(broker)[0] == "m1"
    assert len(ids(broker)) == 4 - ready
    first.acknowledge()
    while (message := first.consumer.receive(None)) is not None:
        message.acknowledge()
    assert broker.purge(broker.queue("q")) == 0
    broker.drained()
    assert_kept(broker)
    assert broker.history is not None
    told = [line for line in broker.history.lines if str(line["process"]).startswith("purge-")]
    assert [line["message"] for line in told if line["event"] == "delivered"] == ["m1", "m2", "m3", "m4"][-ready:]


@pytest.mark.parametrize("kind", JOURNALS)
@pytest.mark.parametrize("fault", ["none", "crash", "kill"])
def test_what_was_purged_does_not_come_back(kind: str, fault: str, tmp_path: Path) -> None:
    with broker_of("artemis", journal=JOURNALS[kind](tmp_path), block_on_acknowledge=False) as broker:
        fill(broker, "m1", "m2")
        assert broker.purge("q") == 2
        if fault != "none":
            getattr(broker, fault)()
            broker.restart()
        assert ids(broker) == []
        fill(broker, "m3")
        assert_kept(broker)
    with broker_of("artemis", journal=JOURNALS[kind](tmp_path)) as broker:
        assert ids(broker) == ["m3"]


def test_a_purge_keeps_to_what_a_consumer_may_have() -> None:
    broker = broker_of(prefetch=3)
    fill(broker, *(f"m{number}" for number in range(10)))
    assert broker.purge("q") == 10
    assert_kept(broker)


def test_dead_letters_can_be_purged() -> None:
    broker = broker_of("artemis", max_delivery_attempts=1)
    fill(broker, "m1")
    session = broker.connect().session()
    assert session.consumer("q").receive() is not None
    session.close()
    broker.loop.wait(lambda: bool(broker.dead_letters))
    broker.loop.flush_all()
    assert broker.purge("DLQ") == 1
    assert broker.dead_letters == []
    assert_kept(broker)


@pytest.mark.parametrize("fault", ["crash", "kill", "fail_journal"])
def test_a_broker_that_dies_during_a_purge_loses_no_other(fault: str) -> None:
    seen: list[str] = []
    broker = _filled()
    broker.observe(lambda event, _: seen.append(event.name))
    broker.purge("q")
    for at in range(len(seen)):
        broker = _filled()
        left = [at]

        def strike(*_: object) -> None:
            left[0] -= 1  # noqa: B023 - called in this round alone
            if left[0] == -1 and broker.running:  # noqa: B023
                getattr(broker, fault)()  # noqa: B023

        broker.observe(strike)
        with contextlib.suppress(JMSException):
            broker.purge("q")
        broker.observe(None)
        assert "x" in ids(broker, "other")
        broker.purge("q")
        assert ids(broker) == []
        assert_kept(broker)


def _filled() -> Broker:
    broker = broker_of("artemis")
    fill(broker, "m1", "m2")
    fill(broker, "x", queue="other")
    return broker


def test_a_purge_that_cannot_be_says_so() -> None:
    broker = broker_of(repairs=False)
    with pytest.raises(InputError, match=r"there is no queue 'q' to purge; broker.queues are those that there are"):
        broker.purge("q")
    fill(broker, "m1")
    another = _filled().queue("q")
    with pytest.raises(InputError, match="queue 'q' belongs to another broker"):
        broker.purge(another)
    broker.kill()
    with pytest.raises(BrokerStopped, match="a purge of queue 'q'"):
        broker.purge("q")
