"""Spark finds what one process finds, to the letter: recorded and synthetic histories."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession  # noqa: TC002 - pytest fixtures are looked at while it runs

from ackfsm import spark, verify
from ackfsm.spark import _examine
from ackfsm.terms import Anomaly, Configuration, Fault, Verdict
from ackfsm.verify import Findings
from ackfsm.verify.folding import chunks
from model_tests.support.places import DATA
from model_tests.support.tables import shipped
from model_tests.support.verify.comparable import comparable
from model_tests.support.verify.named_histories import named_histories
from model_tests.support.verify.notation import events_of
from model_tests.support.whole import few
from model_tests.verify import test_clocks as test_history_clocks
from model_tests.verify import test_recording as test_history_recording
from model_tests.verify import test_rest as test_history_rest

pytestmark = pytest.mark.spark

SPEC = shipped()
NAMES = ("message", "session", "queue", "transaction")
CLEAN = (DATA / "synthetic" / "legal_redelivered_on_first_sight.jsonl").read_text().splitlines()


@pytest.fixture
def session(spark_session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """With several chunks in each history."""
    monkeypatch.setattr(chunks, "LINES_AT_ONCE", 1_000)
    monkeypatch.setattr(chunks, "ROWS_AT_ONCE", 3)
    monkeypatch.setattr(_examine, "CHUNKS_A_TASK", 3)
    spark.register(spark_session)
    return spark_session


def _configured(path: Path) -> Configuration | None:
    header = verify.read_header(path)
    return SPEC.configure(None, header.config) if header and header.config else None


def _same(path: Path, session: SparkSession, skew: int = 0) -> Findings:
    configuration = _configured(path)
    local = verify.examine(verify.read(path), SPEC, configuration, skew=skew)
    found = spark.examine(path, SPEC, lambda _: configuration, session, skew=skew)
    assert comparable(found) == comparable(local)
    assert found.engine == "spark"
    return found


@pytest.mark.parametrize("file", few(sorted((DATA / "synthetic").glob("*.jsonl")), 5), ids=lambda file: file.stem)
def test_synthetic(file: Path, session: SparkSession) -> None:
    _same(file, session)


def test_what_nobody_recorded_is_found_by_the_model_alike(session: SparkSession) -> None:
    file, assumed = DATA / "synthetic" / "missing_outcome.jsonl", frozenset({Fault.PRODUCER_CRASH})
    local = verify.examine(verify.read(file), SPEC, _configured(file), assumed=assumed)
    assert local.unrecorded is not None
    assert local.unrecorded.explained
    found = spark.examine(file, SPEC, lambda _: _configured(file), session, assumed=assumed)
    assert comparable(found) == comparable(local)


@pytest.mark.parametrize("name", few(["rabbitmq-b-confirm-manual-broker-kill", "activemq-e-transacted-broker-kill"], 1))
def test_recorded(name: str, session: SparkSession) -> None:
    found = _same(DATA / f"{name}.jsonl.gz", session)
    labels = json.loads((DATA / "labels.json").read_text())[f"{name}.jsonl.gz"]
    assert found.events == labels["events"]
    assert {a: f.count for a, f in found.anomalies.items() if a in labels} == {
        a: labels[a] for a in found.anomalies if a in labels
    }


def test_parquet_and_jsonl_are_the_same_history(tmp_path: Path, spark_session: SparkSession) -> None:
    """In one chunk, which this process folds."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    events = [json.loads(line) for line in CLEAN[1:]]
    names = sorted({name for event in events for name in event})
    columns = {name: [event.get(name) for event in events] for name in names}
    file = tmp_path / "h.parquet"
    pq.write_table(pa.table(columns), file)
    assert _same(file, spark_session).messages == 2


def _together(texts: Iterable[str], file: Path) -> Path:
    """All cases in one history, each with its own names."""
    header = {"ackfsm_history": 1, "config": {"profile": "jms"}}
    events = [
        event | {name: f"{i} {value}" for name, value in event.items() if name in {*NAMES, "process"}}
        for i, text in enumerate(texts)
        for event in test_history_clocks.timed(text)
    ]
    file.write_text("\n".join(map(json.dumps, [header, *events, {"t": 10**10, "process": "n", "event": "drained"}])))
    return file


def test_clocks_are_put_right_alike(tmp_path: Path, session: SparkSession) -> None:
    texts = [test_history_clocks.BEHIND, *(text for text, _, _ in test_history_clocks.SHIFTED.values())]
    file = _together(texts, tmp_path / "h.jsonl")
    assert len(_same(file, session, skew=5_000).offsets) > 5
    assert _same(file, session).anomalies[Anomaly.PHANTOM].doubted


def test_who_does_not_tell_what_was_processed_is_found_alike(tmp_path: Path, session: SparkSession) -> None:
    cases = test_history_recording.CASES
    told = _together((text for text in cases.values() if "processed" in text), tmp_path / "told.jsonl")
    assert _same(told, session).anomalies[Anomaly.REPROCESSED].doubt
    untold = _together((text for text in cases.values() if "processed" not in text), tmp_path / "untold.jsonl")
    assert _same(untold, session).anomalies[Anomaly.UNPROCESSED].unrecorded


def test_what_was_seen_at_rest_is_told_alike(tmp_path: Path, session: SparkSession) -> None:
    """In Parquet, with rows that are none: the rules for them are written twice."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    at_rest = test_history_rest
    text = f"{at_rest.DONE}; c waiting m9 error=acknowledge; {at_rest.FLYING}; {at_rest.EMPTY}"
    bad: list[dict[str, object]] = [
        {"event": "waiting", "error": "publish"},
        {"event": "depth", "position": -1, "delivery_count": 0},
        {"event": "fault", "fault": "acknowledge_timeout", "process": "nemesis"},
        {"event": "confirmed", "message": "m1", "scope": "session"},
    ]
    rows = [*events_of(text), *({"t": 50 + t, "process": "b", **each} for t, each in enumerate(bad))]
    file = tmp_path / "h.parquet"
    columns = {name: [row.get(name) for row in rows] for name in {field for row in rows for field in row}}
    metadata = {"ackfsm_history": "1", "config": '{"ack_mode": "CLIENT_ACKNOWLEDGE"}'}
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), file)
    found = _same(file, session)
    assert found.parse_errors == len(bad)
    assert found.anomalies[Anomaly.STUCK].examples == ("m9",)


VICTIMS = """
    p send m1 queue=q1 session=p.1; p send m2 queue=q2 session=p.1; r send m3 queue=q1; p2 send m4 queue=q3
    c delivered m1 clear queue=q1 session=c.1; d delivered m3 clear queue=q1; d delivered m1 flagged queue=q1
    nemesis fault fault=producer_crash queue=q2; r fault fault=producer_crash
    nemesis fault fault=producer_crash session=p.1 queue=q1
    r recovered fault=producer_crash; r send m5 queue=q1; p send m6 queue=q2 session=p.1; p send m7 queue=q1 session=p.1
    nemesis recovered fault=producer_crash; r send m8 queue=q2; p send m9 queue=q2 session=p.1
    nemesis fault fault=consumer_crash session=c.1; d delivered m5 clear queue=q1
    """


def test_whom_faults_hit_is_found_alike(tmp_path: Path, session: SparkSession) -> None:
    header = {"ackfsm_history": 1, "config": {"send_mode": "asynchronous", "publish_window": 1}}
    file = tmp_path / "h.jsonl"
    file.write_text("\n".join(map(json.dumps, [header, *events_of(f"{VICTIMS}; n drained")])))
    found = _same(file, session)
    assert found.anomalies[Anomaly.WINDOW_OVERRUN].examples == ("m2", "m8")
    assert found.anomalies[Anomaly.MISSING_OUTCOME].examples == ("m4", "m5", "m8", "m9")


def test_queues_are_judged_by_their_own_configurations(tmp_path: Path, session: SparkSession) -> None:
    path = named_histories()["a loss in a crash of which one queue is allowed"].write(tmp_path)
    its = {"fast": SPEC.configure("artemis", {"journal_sync_non_transactional": False})}
    configurations = verify.Configurations(SPEC.configure("artemis"), its)
    found = spark.examine(path, SPEC, lambda _: configurations, session)
    assert comparable(found) == comparable(verify.examine(verify.read(path), SPEC, configurations))
    assert verify.verdict(found, SPEC).reasons[0].startswith("queue 'q': loss of 1 message ('m2')")
    table = session.read.format("ackfsm").load(str(path))
    assert spark.verify(table, configurations).verdict is Verdict.INVALID
