"""Spark finds what one process finds, to the letter: recorded, synthetic and damaged histories."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession  # noqa: TC002 - pytest fixtures are looked at while it runs

from ackfsm import history, spark, tables
from ackfsm.history import Findings
from ackfsm.terms import Configuration, InputError

pytestmark = pytest.mark.spark

DATA = Path(__file__).parent / "data"
SPEC = tables.load()
CLEAN = (DATA / "synthetic" / "legal_redelivered_on_first_sight.jsonl").read_text().splitlines()


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    found = spark.session("local[2]")
    yield found
    found.stop()


def _configured(path: Path) -> Configuration | None:
    header = history.read_header(path)
    return SPEC.configure(None, header.config) if header and header.config else None


def _same(path: Path, session: SparkSession) -> Findings:
    configuration = _configured(path)
    local = history.examine(history.read(path), SPEC, configuration)
    found = spark.examine(path, SPEC, configuration, session)
    assert found == dataclasses.replace(local, engine="spark")
    return found


@pytest.mark.parametrize("file", sorted((DATA / "synthetic").glob("*.jsonl")), ids=lambda file: file.stem)
def test_synthetic(file: Path, session: SparkSession) -> None:
    _same(file, session)


@pytest.mark.parametrize("name", ["rabbitmq-b-confirm-manual-broker-kill", "activemq-e-transacted-broker-kill"])
def test_recorded(name: str, session: SparkSession) -> None:
    found = _same(DATA / f"{name}.jsonl.gz", session)
    labels = json.loads((DATA / "labels.json").read_text())[f"{name}.jsonl.gz"]
    assert found.events == labels["events"]
    assert {a: f.count for a, f in found.anomalies.items() if a in labels} == {
        a: labels[a] for a in found.anomalies if a in labels
    }


def test_parquet_and_jsonl_are_the_same_history(tmp_path: Path, session: SparkSession) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    events = [json.loads(line) for line in CLEAN[1:]]
    names = sorted({name for event in events for name in event})
    columns = {name: [event.get(name) for event in events] for name in names}
    file = tmp_path / "h.parquet"
    pq.write_table(pa.table(columns), file)
    assert _same(file, session).messages == 2


def test_arrow_batches_may_split_a_message(tmp_path: Path, session: SparkSession) -> None:
    events = [json.loads(line) for line in CLEAN[1:]]
    again = [event | {"t": event["t"] + 100, "redelivered": True} for event in events if event["event"] == "delivered"]
    file = tmp_path / "h.jsonl"
    file.write_text("\n".join([CLEAN[0], *(json.dumps(event) for event in (events + again))]))
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 2)
    try:
        _same(file, session)
    finally:
        session.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def test_a_recovered_session_explains_a_second_delivery(tmp_path: Path, session: SparkSession) -> None:
    events = [json.loads(line) for line in CLEAN[1:]]
    delivered = next(event for event in events if event["event"] == "delivered")
    last = max(event["t"] for event in events)
    recover = {"t": last + 1, "process": "c", "event": "recover", "session": delivered["session"]}
    again = delivered | {"t": last + 2, "redelivered": True, "session": "another"}
    file = tmp_path / "h.jsonl"
    file.write_text("\n".join([CLEAN[0], *(json.dumps(event) for event in (*events, recover, again))]))
    assert _same(file, session).actions == ("recover",)


DAMAGE = {
    "not JSON": "{",
    "a negative time": CLEAN[2].replace('"t":', '"t":-'),
    "an unknown event": CLEAN[2].replace('"confirmed"', '"konfirmed"'),
    "no process": '{"t": 1, "event": "drained"}',
}


@pytest.mark.parametrize("line", DAMAGE.values(), ids=DAMAGE)
def test_an_unreadable_line_is_counted_and_placed(line: str, tmp_path: Path, session: SparkSession) -> None:
    file = tmp_path / "h.jsonl"
    file.write_text("\n".join([*CLEAN[:3], line, *CLEAN[3:]]))
    assert _same(file, session).parse_errors == 1


def _truncated(tmp_path: Path) -> Path:
    file = tmp_path / "h.jsonl.gz"
    whole = (DATA / "rabbitmq-b-confirm-manual-broker-kill.jsonl.gz").read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    return file


def _empty(tmp_path: Path) -> Path:
    file = tmp_path / "h.jsonl"
    file.touch()
    return file


def _missing(tmp_path: Path) -> Path:
    return tmp_path / "missing.jsonl"


@pytest.mark.parametrize("make", [_truncated, _empty, _missing])
def test_a_damaged_file_is_refused_in_the_same_words(
    make: Callable[[Path], Path], tmp_path: Path, session: SparkSession
) -> None:
    file = make(tmp_path)
    with pytest.raises(InputError) as local:
        history.read(file)
    with pytest.raises(InputError) as found:
        spark.examine(file, SPEC, SPEC.configure(), session)
    assert str(found.value) == str(local.value)


@pytest.mark.parametrize("url", ["nonsense", "http://host"])
def test_a_master_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="is not a Spark master"):
        spark.session(url)
