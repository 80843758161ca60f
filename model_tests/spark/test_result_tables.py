"""The result tables have the same rows from one process, folded, and on Spark, of files and of a table of events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ackfsm import spark, verify
from ackfsm.spark import _examine
from ackfsm.terms import Configuration
from ackfsm.verify.folding import chunks
from model_tests.support.places import DATA
from model_tests.support.tables import shipped
from model_tests.support.verify.large_history import CONFIG, Planted, write_parquet
from model_tests.support.verify.result_rows import read_tables, rows_of
from model_tests.support.whole import few

pytestmark = pytest.mark.spark

SPEC = shipped()


def _configuration(header: verify.Header | None) -> Configuration | None:
    return SPEC.configure(None, header.config) if header is not None and header.config else SPEC.configure("jms")


def _here(path: Path, **how: Any) -> Mapping[str, list[Any]]:
    found = verify.examination(path, SPEC, _configuration, skew=None, **how)
    return rows_of(found.tables(verify.verdict(found.findings, SPEC)))


def _on_spark(path: Path, session: SparkSession, folder: Path) -> Mapping[str, list[Any]]:
    found = spark.examination(path, SPEC, _configuration, session, skew=None)
    verify.write_tables(verify.verdict(found.findings, SPEC), found, folder)
    return rows_of(read_tables(folder))


def _of_table(events: DataFrame, configuration: Any, rows: int) -> Mapping[str, list[Any]]:
    found = spark.verified(events, configuration, rows=rows)
    frames = {name: getattr(found, name) for name in verify.TABLES}
    tables = {name: frame.toArrow().cast(verify.TABLES[name]) for name, frame in frames.items()}
    found.close()
    return rows_of(tables)


@pytest.fixture
def session(spark_session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    monkeypatch.setattr(chunks, "LINES_AT_ONCE", 1_000)
    monkeypatch.setattr(chunks, "ROWS_AT_ONCE", 2_000)
    monkeypatch.setattr(_examine, "CHUNKS_A_TASK", 3)
    spark.register(spark_session)
    return spark_session


@pytest.mark.parametrize("name", few(["loss", "unreadable_line", "window_overrun", "legal_not_drained"], 2))
def test_rows_are_the_same_from_all_drivers(name: str, session: SparkSession, tmp_path: Path) -> None:
    path = DATA / "synthetic" / f"{name}.jsonl"
    whole = _here(path)
    assert whole["messages"]
    assert _here(path, folded_from=0) == whole
    assert _on_spark(path, session, tmp_path / "found") == whole
    events = session.read.format("ackfsm").load(str(path)).orderBy(sf.rand(seed=3))
    assert _of_table(events, _configuration(verify.read_header(path)), 7) == whole


def test_messages_that_tasks_left_out_have_their_rows(session: SparkSession, tmp_path: Path) -> None:
    planted = Planted.of(3_000, 2, seed=3)
    path = tmp_path / "h.parquet"
    write_parquet(path, 3_000, planted, rows=2_000)
    whole = _here(path)
    assert len(whole["messages"]) > 3_000 - 100
    found = verify.examination(path, SPEC, _configuration, skew=None, folded_from=0)
    assert sum(len(hashes) for _, hashes in found.left()) > 1_000, "or the second pass is not tried"
    assert rows_of(found.tables(verify.verdict(found.findings, SPEC))) == whole
    assert _on_spark(path, session, tmp_path / "found") == whole
    parts = {each.name for each in (tmp_path / "found" / "messages").rglob("*.parquet")}
    assert len(parts) > 3, "tasks write their own part"
    events = session.read.parquet(f"file:{path}")
    assert _without_lines(_of_table(events, SPEC.configure(None, CONFIG), 2_500)) == _without_lines(whole)


def _without_lines(rows: Mapping[str, list[Any]]) -> Mapping[str, list[Any]]:
    """A table without a column ``line`` has them in the order of time, and the file has another one."""
    return {
        name: sorted(({**row, "first_line": None, "line": None, "explanation": None} for row in its), key=repr)
        for name, its in rows.items()
    }


def test_spark_reads_what_was_written(spark_session: SparkSession, tmp_path: Path) -> None:
    """Names of queues too, whatever is in them."""
    names = ["a/b=c", "ünï ço%de", "7", "__HIVE_DEFAULT_PARTITION__", "x y+z#'\"", None]
    lines = []
    for number, queue in enumerate(names):
        of = {"message": f"m{number}", **({} if queue is None else {"queue": queue})}
        lines += [
            {"t": 10 * number, "process": "p", "event": "send", **of},
            {"t": 10 * number + 1, "process": "c", "event": "delivered", "redelivered": False, **of},
        ]
    path, folder = tmp_path / "h.jsonl", tmp_path / "found"
    path.write_text("\n".join(map(json.dumps, lines)))
    found = verify.examination(path, SPEC, _configuration)
    verify.write_tables(verify.verdict(found.findings, SPEC), found, folder)
    schema = spark.RESULT_SCHEMAS["messages"]
    read = spark_session.read.schema(schema).parquet(f"file:{folder}/messages").select("message", "queue").collect()
    assert {row.message: row.queue for row in read} == {f"m{n}": name for n, name in enumerate(names)}
    here = read_tables(folder)["messages"]
    assert dict(zip(here["message"].to_pylist(), here["queue"].to_pylist(), strict=True)) == {
        f"m{n}": None if name == "__HIVE_DEFAULT_PARTITION__" else name for n, name in enumerate(names)
    }, "Arrow cannot tell a queue of this name from none"
