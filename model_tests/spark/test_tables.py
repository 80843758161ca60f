"""Any table of events is held to the model; the data source reads a history as one, lines that are no events too."""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from ackfsm import spark, verify
from ackfsm.history.lines import SCHEMA
from ackfsm.terms import Anomaly, InputError, Verdict
from ackfsm.verify.folding import chunks
from model_tests import documents
from model_tests.support.places import DATA, PROJECT
from model_tests.support.tables import shipped
from model_tests.support.verify.comparable import comparable
from model_tests.support.verify.large_history import CONFIG, Planted, write_parquet
from model_tests.support.whole import before_a_release, few
from model_tests.verify.test_fold_chunks import ordinary

pytestmark = pytest.mark.spark

SPEC = shipped()
RECORDED = ("rabbitmq-b-confirm-manual-broker-kill", "activemq-e-transacted-broker-kill")


@pytest.fixture
def session(spark_session: SparkSession) -> SparkSession:
    spark.register(spark_session)
    return spark_session


def _header_of(path: Path) -> verify.Header:
    header = verify.read_header(path)
    assert header is not None
    return header


@before_a_release
@pytest.mark.parametrize("name", few(RECORDED, 1))
def test_a_table_in_any_order_has_the_findings_of_the_history(name: str, session: SparkSession) -> None:
    path = DATA / f"{name}.jsonl.gz"
    config = _header_of(path).config
    local = verify.examine(verify.read(path), SPEC, SPEC.configure(None, config), skew=None)
    table = session.read.format("ackfsm").load(str(path)).orderBy(sf.rand(seed=7))
    found = spark.verify(table, config, rows=400)
    mine, theirs = comparable(found.findings), comparable(local)
    assert {**mine, "history": None} == {**theirs, "history": None}
    assert found.verdict is verify.verdict(local, SPEC).verdict


def test_columns_of_events_alone_are_enough(session: SparkSession, tmp_path: Path) -> None:
    planted = Planted.of(3_000, 2, seed=3)
    events = write_parquet(tmp_path / "h.parquet", 3_000, planted, rows=2_000)
    table = session.read.parquet(f"file:{tmp_path}/h.parquet")
    found = spark.verify(table, CONFIG, rows=1_500)
    assert found.findings.events == events
    assert found.verdict is Verdict.INVALID
    expected = {name: {f"order-{n}-7f3a" for n in numbers} for name, numbers in planted.as_mapping().items()}
    shown = {name.value: set(each.examples) for name, each in found.findings.anomalies.items() if each.found}
    assert shown == expected


def test_a_row_that_is_no_event_leaves_the_verdict_open(session: SparkSession, tmp_path: Path) -> None:
    path = DATA / "synthetic" / "legal_redelivered_on_first_sight.jsonl"
    bad = tmp_path / "h.jsonl"
    bad.write_text(path.read_text() + "[]\n" * 12)
    config = _header_of(path).config
    assert spark.verify(session.read.format("ackfsm").load(str(path)), config).verdict is Verdict.VALID
    found = spark.verify(session.read.format("ackfsm").load(str(bad)), config)
    assert found.verdict is Verdict.UNKNOWN
    assert found.findings.parse_errors == 12
    assert found.findings.unreadable == verify.read(bad).unreadable


@pytest.mark.parametrize("length", [40, 300, 4_000])
def test_the_source_gives_every_line_its_number(
    length: int, session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain and packed parts, with headers and without, cut into blocks that end anywhere."""
    monkeypatch.setattr(chunks, "LINES_AT_ONCE", length)
    whole = (DATA / "synthetic" / "loss.jsonl").read_text().splitlines(keepends=True)
    parts = {
        "a.jsonl": [*whole[:4], "\n", "oops\n", *whole[4:]],
        "b.jsonl.gz": [*whole[1:], "{}\n"],
        "c.jsonl": [*whole[1:-1], whole[-1].rstrip()],
    }
    for name, lines in parts.items():
        data = "".join(lines).encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    read = session.read.format("ackfsm").load(str(tmp_path)).collect()
    found = {(row.part, row.line): {name: row[name] for name in SCHEMA.names if row[name] is not None} for row in read}
    expected = {
        (name, number): json.loads(line) if line.startswith('{"t"') else {}
        for name, lines in parts.items()
        for number, line in enumerate(lines, 1)
        if line.strip() and "ackfsm_history" not in line
    }
    assert len(read) == len(found)
    assert found == expected


def test_what_is_no_table_of_events_is_refused(session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the table has no column 'process'"):
        spark.verify(session.createDataFrame([(1, "send")], "t bigint, event string"))
    with pytest.raises(InputError, match="the column 't' is string"):
        spark.verify(
            session.createDataFrame([("1", "p", "send", "m")], "t string, process string, event string, message string")
        )
    whole = session.createDataFrame([], spark.EVENT_SCHEMA)
    with pytest.raises(InputError, match=r"the column 't' is timestamp.*write it as int64"):
        spark.verify(whole.withColumn("t", sf.current_timestamp()))
    with pytest.raises(InputError, match="the column 'line' is string; write it as int64"):
        spark.verify(whole.withColumn("line", sf.lit("7")))
    with pytest.raises(InputError, match="the column 'unreadable' is bool; write it as string"):
        spark.verify(whole.withColumn("unreadable", sf.lit("t").isNull()))
    with pytest.raises(InputError, match="the table has no event"):
        spark.verify(session.createDataFrame([], spark.EVENT_SCHEMA))
    config: Any = "jms"
    with pytest.raises(InputError, match="`config` is str; give the keys of a header as a mapping"):
        spark.verify(whole, config)
    with pytest.raises(InputError, match="a chunk has at least one row, and not 0"):
        spark.verify(session.createDataFrame([], spark.EVENT_SCHEMA), rows=0)
    with pytest.raises(AnalysisException, match=r"there is no file .*none\.jsonl; name a history"):
        session.read.format("ackfsm").load(str(tmp_path / "none.jsonl")).collect()


def test_the_order_at_one_moment_is_that_of_the_lines(session: SparkSession) -> None:
    """All at one time and shuffled; told in another order, the message would come again after it was acknowledged."""
    kinds = {"send": "p", "confirmed": "p", "delivered": "c", "processed": "c", "acknowledge": "c", "acknowledged": "c"}
    rows = [
        (5, process, kind, "q", f"m{number}", False, "message", 10 * number + place)
        for number in range(20)
        for place, (kind, process) in enumerate(kinds.items())
    ]
    random.Random(1).shuffle(rows)
    columns = "t bigint, process string, event string, queue string, message string, redelivered boolean, scope string"
    table = session.createDataFrame(rows, f"{columns}, line bigint")
    found = spark.verify(table, {"profile": "jms", "ack_mode": "CLIENT_ACKNOWLEDGE"}, skew=0)
    assert {name: each.found for name, each in found.findings.anomalies.items() if each.found} == {}
    assert found.findings.anomalies[Anomaly.LOSS].found == 0


@pytest.mark.usefixtures("session")
def test_the_python_of_the_page_of_histories_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a folder where last night's history is; Spark's own working directory is another."""
    (tmp_path / "histories").mkdir()
    lines = [json.dumps({**each, "queue": "orders"}) for each in ordinary(100)]
    (tmp_path / "histories" / "last-night.jsonl").write_text("\n".join(lines))
    names: dict[str, object] = {}
    for _, code in documents.blocks(PROJECT / "docs" / "verifying.md"):
        here = re.sub(r'"(histories|state|alerts)\b', rf'"{tmp_path}/\1', code)
        exec(compile(here, "verifying.md", "exec"), names)  # noqa: S102 - only text of the project
    shown = capsys.readouterr().out
    assert "unknown" in shown  # nobody said that the queue was drained
    assert "messages were counted or forgotten" in shown
    assert "|orders|  valid|     100|" in shown, "of each message nothing is open"
    names["query"].stop()  # type: ignore[attr-defined] # the monitor of the last lines
