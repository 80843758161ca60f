"""The figures of a broker, and what Prometheus reads of them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ackfsm.engine import (
    PROMETHEUS_CONTENT_TYPE,
    Broker,
    IllegalStateException,
    MessageRejected,
    QueueMetrics,
    Timed,
    prometheus,
)
from ackfsm.engine.journal import FileJournal
from model_tests.support.engine.brokers import received
from model_tests.support.engine.counts import assert_counted
from model_tests.support.tables import shipped


def broker_of(profile: str = "artemis", **settings: Any) -> Broker:
    settings = {"ack_mode": "CLIENT_ACKNOWLEDGE", "consumption": "receive", "max_delivery_attempts": 0, **settings}
    return Broker(profile, specification=shipped(), history=True, **settings)


def counted(broker: Broker, queue: str = "q") -> dict[str, object]:
    """The figures that are not zero."""
    figures = dataclasses.asdict(broker.metrics().queues[queue])
    return {name: value for name, value in figures.items() if value not in {0, None} and name != "name"}


def test_a_message_is_counted_on_its_way() -> None:
    broker = broker_of(pace=Timed(latency=(10, 10), disk=100), prefetch=1, prefetch_freed="on_acknowledge")
    session = broker.connect().session()
    producer = session.producer("q")
    producer.send(b"1")
    producer.send(b"2")
    assert counted(broker) == {"depth": 2, "ready": 2, "enqueued": 2, "oldest": broker.now}
    consumer = session.consumer("q")
    first = received(consumer)
    assert first.timestamp == 0
    now = {"depth": 2, "ready": 1, "in_flight": 1, "enqueued": 2, "delivered": 1, "consumers": 1, "oldest": broker.now}
    assert counted(broker) == now
    session.recover()
    while (again := consumer.receive(None)) is not None:
        again.acknowledge()
    figures = {"enqueued": 2, "delivered": 3, "redelivered": 1, "acknowledged": 2, "consumers": 1}
    assert counted(broker) == figures
    assert_counted(broker)
    consumer.close()
    assert counted(broker) == {name: value for name, value in figures.items() if name != "consumers"}


def test_what_is_refused_or_rolled_back_is_not_in_the_queue() -> None:
    broker = broker_of()
    broker.queue("q", max_length=1)
    session = broker.connect().session("SESSION_TRANSACTED")
    session.producer("q").send(b"1")
    assert counted(broker) == {"depth": 1, "enqueued": 1}  # in a transaction that is open: neither ready nor in flight
    session.rollback()
    assert counted(broker) == {}
    producer = broker.connect().session().producer("q")
    producer.send(b"2")
    with pytest.raises(MessageRejected):
        producer.send(b"3")
    assert counted(broker) == {"depth": 1, "ready": 1, "enqueued": 1, "rejected": 1}
    assert_counted(broker)


def test_a_transaction_is_in_flight_until_its_commit() -> None:
    broker = broker_of(ack_mode="SESSION_TRANSACTED")
    session = broker.connect().session()
    session.producer("q").send(b"1")
    session.commit()
    assert session.consumer("q").receive() is not None
    assert session.consumers[0].receive() is None  # it acknowledges the first
    assert counted(broker)["in_flight"] == 1
    session.commit()
    assert counted(broker) == {"consumers": 1, "enqueued": 1, "delivered": 1, "acknowledged": 1}


def test_dead_letters_are_counted_here_and_there() -> None:
    broker = broker_of(max_delivery_attempts=1)
    session = broker.connect().session()
    session.producer("q").send(b"1")
    assert session.consumer("q").receive() is not None
    session.recover()
    broker.loop.wait(lambda: bool(broker.dead_letters))
    assert counted(broker) == {"consumers": 1, "enqueued": 1, "delivered": 1, "dead_lettered": 1}
    broker.loop.flush_all()
    assert counted(broker, "DLQ") == {"depth": 1, "ready": 1, "enqueued": 1}


def test_what_dies_with_the_broker_is_lost_and_what_it_reads_again_restored() -> None:
    broker = broker_of()
    session = broker.connect().session()
    session.producer("q").send(b"1")
    session.producer("q").send(b"2", delivery_mode="NON_PERSISTENT")
    broker.kill()
    broker.restart()
    assert counted(broker) == {"depth": 1, "ready": 1, "enqueued": 2, "lost": 1}
    assert_counted(broker)


def test_an_acknowledgement_that_was_not_stored_counts_again() -> None:
    broker = broker_of(block_on_acknowledge=False)
    session = broker.connect().session()
    session.producer("q").send(b"1")
    consumer = session.consumer("q")
    for died in (True, False):
        message = received(consumer)
        message.acknowledge()
        assert counted(broker)["acknowledged"] == (1 if died else 2)
        if died:
            broker.kill()
            broker.restart()
    assert counted(broker) == {
        "consumers": 1,
        "enqueued": 1,
        "delivered": 2,
        "acknowledged": 2,
        "restored": 1,
    }


def test_a_broker_counts_what_uses_it_and_its_syncs(tmp_path: Path) -> None:
    with broker_of(journal=FileJournal(tmp_path)) as broker:
        assert (broker.metrics().connections, broker.metrics().sessions, broker.metrics().consumers) == (0, 0, 0)
        one, two = broker.connect(), broker.connect()
        session = one.session()
        session.consumer("q")
        two.session().producer("q").send(b"1")
        figures = broker.metrics()
        assert (figures.connections, figures.sessions, figures.consumers) == (2, 2, 1)
        assert (figures.running, figures.journal_syncs) == (True, 1)
        session.close()
        two.crash()
        assert (broker.metrics().connections, broker.metrics().sessions, broker.metrics().consumers) == (1, 0, 0)
        broker.kill()
        assert not broker.metrics().running
        broker.restart()
    with pytest.raises(IllegalStateException, match="the broker is closed"):
        broker.metrics()
    with broker_of(journal=FileJournal(tmp_path)) as broker:
        assert counted(broker) == {"depth": 1, "ready": 1, "restored": 1}


def test_figures_do_not_change_any_more() -> None:
    broker = broker_of()
    broker.connect().session().producer("q").send(b"1")
    figures = broker.metrics()
    with pytest.raises(dataclasses.FrozenInstanceError):
        figures.sessions = 7  # type: ignore[misc] # that is wrong
    with pytest.raises(TypeError):
        figures.queues["x"] = figures.queues["q"]  # type: ignore[index] # that is wrong
    broker.connect().session().producer("q").send(b"2")
    assert figures.queues["q"].enqueued == 1


# Prometheus, text format 0.0.4

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
_SAMPLE = re.compile(rf"({_NAME})(?:\{{({_LABEL}(?:,{_LABEL})*)\}})? (-?[0-9]+(?:\.[0-9]+)?|NaN|[+-]Inf)")
_HELP = re.compile(rf"# HELP ({_NAME}) ((?:[^\\\n]|\\[\\n])*)")
_TYPE = re.compile(rf"# TYPE ({_NAME}) (counter|gauge|histogram|summary|untyped)")


def samples(text: str) -> Iterator[tuple[str, str, dict[str, str], float]]:
    """Name, type, labels and value; every line has to be right, and every sample to stand below its HELP and TYPE."""
    assert text.endswith("\n")
    kinds, helped = dict[str, str](), set[str]()
    for line in text.removesuffix("\n").split("\n"):
        if found := _HELP.fullmatch(line):
            assert found[1] not in helped
            helped.add(found[1])
        elif found := _TYPE.fullmatch(line):
            assert found[1] not in kinds
            kinds[found[1]] = found[2]
        else:
            found = _SAMPLE.fullmatch(line)
            assert found, line
            assert found[1] == next(reversed(kinds)), "the samples of one metric stand together"
            assert found[1] in helped
            labels = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[2] or "")
            yield found[1], kinds[found[1]], {name: _read(value) for name, value in labels}, float(found[3])


def _read(value: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), value)


NAMES = ["orders", 'a "b"', "back\\slash", "two\nlines", "\\n", "grün", "{}=,"]


def test_prometheus_reads_what_was_counted() -> None:
    broker = broker_of(pace=Timed(latency=(10, 10), disk=1_500_000_000))
    for name in NAMES:
        broker.connect().session().producer(name).send(b"1")
    figures = broker.metrics()
    found = {(name, labels.get("queue")): value for name, _, labels, value in samples(prometheus(figures))}
    assert found["ackfsm_running", None] == 1
    assert found["ackfsm_journal_syncs_total", None] == figures.journal_syncs
    for name in NAMES:
        assert found["ackfsm_queue_enqueued_total", name] == 1
        assert found["ackfsm_queue_depth", name] == 1
        assert found["ackfsm_queue_oldest_age_seconds", name] == pytest.approx((figures.queues[name].oldest or 0) / 1e9)
    assert found["ackfsm_queue_oldest_age_seconds", "orders"] > 10
    assert len(found) == 5 + len(NAMES) * len([f for f in dataclasses.fields(QueueMetrics) if f.type != "str"])


def test_counters_are_called_so() -> None:
    broker = broker_of()
    broker.connect().session().producer("q").send(b"1")
    for name, kind, _, _ in samples(prometheus(broker.metrics())):
        assert kind == ("counter" if name.endswith("_total") else "gauge")


def test_a_broker_without_queues_has_figures_too() -> None:
    text = prometheus(broker_of().metrics())
    assert [name for name, *_ in samples(text)] == [
        "ackfsm_running",
        "ackfsm_connections",
        "ackfsm_sessions",
        "ackfsm_consumers",
        "ackfsm_journal_syncs_total",
    ]
    assert PROMETHEUS_CONTENT_TYPE == "text/plain; version=0.0.4; charset=utf-8"
