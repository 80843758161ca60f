"""Spark reads the same files of a folder as one process does, passes over none, and says what it cannot read."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession  # noqa: TC002 - pytest fixtures are looked at while it runs

from ackfsm import spark, verify
from ackfsm.terms import Anomaly, InputError
from ackfsm.verify.folding import chunks
from model_tests.support.places import DATA
from model_tests.support.tables import shipped
from model_tests.support.verify.comparable import comparable
from model_tests.support.whole import before_a_release

pytestmark = pytest.mark.spark

SPEC = shipped()
VALID = DATA / "synthetic" / "legal_redelivered_on_first_sight.jsonl"


@pytest.fixture
def session(spark_session: SparkSession) -> SparkSession:
    return spark_session


def test_lines_of_several_parts_are_those_of_one_history(
    tmp_path: Path, session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of odd names, of several blocks, packed or not, with and without headers, with lines that are no events."""
    header, *lines = VALID.read_text().splitlines(keepends=True)
    same_time = [json.dumps(json.loads(line) | {"t": 5}) + "\n" for line in lines]
    third = len(lines) // 3
    parts = {
        "a b%20+.jsonl": [header, *same_time[:third]],
        "c=1é,[x].jsonl.gz": ["oops\n", *same_time[third : 2 * third], "{}\n"],
        "d\te\n.jsonl": [header, *same_time[2 * third :], "\n", "[]\n"],
    }
    for name, text in parts.items():
        data = "".join(text).encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    for harmless in ("_SUCCESS", "._SUCCESS.crc"):
        (tmp_path / harmless).touch()
    recorded = verify.read(tmp_path)
    assert recorded.header is not None
    configuration = SPEC.configure(None, recorded.header.config)
    local = verify.examine(recorded, SPEC, configuration)
    monkeypatch.setattr(chunks, "LINES_AT_ONCE", 300)
    found = spark.examine(tmp_path, SPEC, lambda _: configuration, session)
    assert comparable(found) == comparable(local)
    assert [(each.part, each.line) for each in found.unreadable] == [
        ("c=1é,[x].jsonl.gz", 1),
        ("c=1é,[x].jsonl.gz", 7),
        ("d\te\n.jsonl", 8),
    ]


@before_a_release
def test_clocks_are_put_right_across_many_parts(tmp_path: Path, session: SparkSession) -> None:
    """What was sent at the same moment as it was delivered stands in the last of many parts, the delivery in the first.

    The places of the parts must not be taken for what tells processes apart at the same moment.
    """
    delivered = {"t": 5, "process": "c", "event": "delivered", "queue": "q", "message": "m", "redelivered": False}
    sent = {"t": 5, "process": "p", "event": "send", "queue": "q", "message": "m", "delivery_mode": "PERSISTENT"}
    other = {"t": 1, "process": "p", "event": "rollback", "session": "s"}
    for place, event in enumerate([delivered, *[other] * 68, sent]):
        (tmp_path / f"{place:02}.jsonl").write_text(json.dumps(event) + "\n")
    local = verify.examine(verify.read(tmp_path), SPEC, None, skew=10)
    assert local.offsets
    assert local.anomalies[Anomaly.PHANTOM].count == 0
    assert comparable(spark.examine(tmp_path, SPEC, lambda _: None, session, skew=10)) == comparable(local)


def test_rows_of_several_parts_are_those_of_one_history(tmp_path: Path, session: SparkSession) -> None:
    """Parts of odd names and of different columns, with rows that are no events, below folders named as partitions."""
    folder = tmp_path / "t=7" / "queue=z"
    folder.mkdir(parents=True)
    header, *events = (json.loads(line) for line in VALID.read_text().splitlines())
    third = len(events) // 3
    parts = {
        "a b%20.parquet": [event | {"t": 5} for event in events[:third]],
        "c\n=1é.parquet": [events[third] | {"t": -1}, *events[third : 2 * third]],
        "d.parquet": [event | {"t": 5, "error": "why"} for event in events[2 * third :]],
    }
    for name, rows in parts.items():
        columns = {field for row in rows for field in row}
        pq.write_table(pa.table({field: [row.get(field) for row in rows] for field in columns}), folder / name)
    (folder / "_SUCCESS").touch()
    configuration = SPEC.configure(None, header["config"])
    local = verify.examine(verify.read(folder), SPEC, configuration)
    found = spark.examine(folder, SPEC, lambda _: configuration, session)
    assert comparable(found) == comparable(local)
    assert [str(each) for each in found.unreadable] == ["c\\n=1é.parquet, row 1: `t` is negative (-1)"]


def test_damaged_files_are_refused_also_where_spark_is_set_to_pass_over_them(
    tmp_path: Path, session: SparkSession
) -> None:
    (tmp_path / "a.jsonl").write_bytes(VALID.read_bytes())
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(random.Random(1).randbytes(50_000).hex().encode())[:-20_000])
    session.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        with pytest.raises(InputError, match=r"b\.jsonl\.gz is a truncated gzip file; copy it again"):
            spark.examine(tmp_path, SPEC, lambda _: None, session)
    finally:
        session.conf.unset("spark.sql.files.ignoreCorruptFiles")


def test_a_folder_that_holds_more_than_parts_is_refused_in_the_same_words(
    tmp_path: Path, session: SparkSession
) -> None:
    for name in ("a.jsonl", "_b.jsonl"):
        (tmp_path / name).write_bytes(VALID.read_bytes())
    with pytest.raises(InputError) as local:
        verify.read(tmp_path)
    with pytest.raises(InputError) as found:
        spark.examine(tmp_path, SPEC, lambda _: None, session)
    assert str(found.value) == str(local.value)


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


NOT_FOR_SPARK: dict[str, tuple[Callable[[Path], Path | str], str]] = {
    "a pipe": (_pipe, "{} is a pipe, and Spark reads files; write it to a file, or use --engine local"),
    "standard input": (lambda _: "-", "standard input is a pipe, and Spark reads files; write it to a file"),
}


@pytest.mark.parametrize(("make", "sentence"), NOT_FOR_SPARK.values(), ids=NOT_FOR_SPARK)
def test_what_spark_cannot_read_is_refused(
    make: Callable[[Path], Path | str], sentence: str, tmp_path: Path, session: SparkSession
) -> None:
    path = make(tmp_path)
    with pytest.raises(InputError) as caught:
        spark.examine(path, SPEC, lambda _: None, session)
    assert str(caught.value).startswith(sentence.replace("{}", str(path)))
