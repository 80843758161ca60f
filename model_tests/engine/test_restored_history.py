"""The history of a broker on a journal that was open before begins with what that has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ackfsm import verify
from ackfsm.engine import Broker
from ackfsm.engine.journal import SqliteJournal
from ackfsm.terms import Verdict
from model_tests.support.engine.brokers import received
from model_tests.support.tables import shipped

SYSTEMS = [
    ("jms", "CLIENT_ACKNOWLEDGE"),
    ("artemis", "CLIENT_ACKNOWLEDGE"),
    ("jms", "SESSION_TRANSACTED"),
    ("rabbitmq", "CLIENT_ACKNOWLEDGE"),
]


def opened(folder: Path, profile: str, mode: str) -> Broker:
    journal = SqliteJournal(folder / "journal.db")
    return Broker(profile, specification=shipped(), journal=journal, history=True, ack_mode=mode, consumption="receive")


def sends(broker: Broker, names: Sequence[str]) -> None:
    with broker.connect() as connection:
        session = connection.session()
        producer = session.producer("q")
        for name in names:
            producer.send(b"", message_id=name)
        if session.transacted:
            session.commit()


def consumes(broker: Broker, count: int) -> None:
    with broker.connect() as connection:
        session = connection.session()
        consumer = session.consumer("q")
        for _ in range(count):
            message = received(consumer, 0.0)
            message.acknowledge()
        if session.transacted:
            session.commit()


def written(broker: Broker, file: Path) -> None:
    broker.close()
    assert broker.history is not None
    broker.history.write(file)


def verdict_of(path: Path) -> Verdict:
    history = verify.read(path)
    assert history.header is not None
    configuration = shipped().configure(None, history.header.config)
    return verify.verdict(verify.examine(history, shipped(), configuration), shipped()).verdict


@pytest.mark.parametrize(("profile", "mode"), SYSTEMS)
@pytest.mark.parametrize("dropped", [False, True])
def test_runs_on_one_journal_are_valid_alone_and_together(
    tmp_path: Path, profile: str, mode: str, *, dropped: bool
) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    first = opened(tmp_path, profile, mode)
    sends(first, ["m1", "m2", "m3", "m4"])
    consumes(first, 1)
    if dropped:  # it comes again, flagged
        with first.connect() as connection:
            connection.session("CLIENT_ACKNOWLEDGE").consumer("q").receive()
    written(first, runs / "1.jsonl")
    second = opened(tmp_path, profile, mode)
    consumes(second, 1)
    sends(second, ["m5"])
    written(second, runs / "2.jsonl")
    third = opened(tmp_path, profile, mode)
    consumes(third, 3)
    third.drained()
    written(third, runs / "3.jsonl")
    assert verdict_of(runs / "3.jsonl") is Verdict.VALID
    assert verdict_of(runs) is Verdict.VALID


def test_what_the_broker_had_and_nobody_got_is_lost(tmp_path: Path) -> None:
    first = opened(tmp_path, "jms", "CLIENT_ACKNOWLEDGE")
    sends(first, ["m1", "m2"])
    first.close()
    second = opened(tmp_path, "jms", "CLIENT_ACKNOWLEDGE")
    consumes(second, 2)
    second.drained()
    assert second.history is not None
    lines = [line for line in second.history.lines if line.get("message") != "m1" or line["process"] == "broker"]
    second.history.lines[:] = lines
    written(second, tmp_path / "2.jsonl")
    assert verdict_of(tmp_path / "2.jsonl") is Verdict.INVALID
