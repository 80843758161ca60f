"""Spark reads the same files of a folder as one process does, passes over none, and says what it cannot read."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession  # noqa: TC002 - pytest fixtures are looked at while it runs

from ackfsm import spark, verify
from ackfsm.spark._lines import reader, spark_names, uri
from ackfsm.terms import Anomaly, InputError
from ackfsm.verify import _source
from model_tests.support.places import DATA
from model_tests.support.tables import shipped

pytestmark = pytest.mark.spark

SPEC = shipped()
VALID = DATA / "synthetic" / "legal_redelivered_on_first_sight.jsonl"


@pytest.fixture
def session(spark_session: SparkSession) -> SparkSession:
    return spark_session


def test_lines_of_several_parts_are_those_of_one_history(tmp_path: Path, session: SparkSession) -> None:
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
    session.conf.set("spark.sql.files.maxPartitionBytes", 300)
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 3)
    try:
        found = spark.examine(tmp_path, SPEC, configuration, session)
    finally:
        session.conf.unset("spark.sql.files.maxPartitionBytes")
        session.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert found == dataclasses.replace(local, engine="spark")
    assert [(each.part, each.line) for each in found.unreadable] == [
        ("c=1é,[x].jsonl.gz", 1),
        ("c=1é,[x].jsonl.gz", 7),
        ("d\te\n.jsonl", 8),
    ]


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
    assert spark.examine(tmp_path, SPEC, None, session, skew=10) == dataclasses.replace(local, engine="spark")


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
    found = spark.examine(folder, SPEC, configuration, session)
    assert found == dataclasses.replace(local, engine="spark")
    assert [str(each) for each in found.unreadable] == ["c\\n=1é.parquet, row 1: `t` is negative (-1)"]


def test_damaged_files_are_refused_also_where_spark_is_set_to_pass_over_them(
    tmp_path: Path, session: SparkSession
) -> None:
    (tmp_path / "a.jsonl").write_bytes(PLAIN)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(random.Random(1).randbytes(50_000).hex().encode())[:-20_000])
    session.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        with pytest.raises(InputError, match=r"b\.jsonl\.gz is a truncated gzip file; copy it again"):
            spark.examine(tmp_path, SPEC, None, session)
    finally:
        session.conf.unset("spark.sql.files.ignoreCorruptFiles")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    names=st.sets(st.text(st.characters(codec="utf-8", exclude_characters="/\0:"), max_size=8), min_size=1, max_size=9)
)
def test_spark_passes_over_no_part_that_is_selected(names: set[str], spark_session: SparkSession) -> None:
    """Asked of Spark itself, which lists the files but reads none; also below folders whose names it would hide."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "_hidden" / ".too" / "x=1"
        folder.mkdir(parents=True)
        for name in names:
            (folder / f"{name}.jsonl").touch()
        try:
            source = _source.source_of(folder)
        except InputError:
            assert any(f"{name}.jsonl".startswith(("_", ".")) for name in names)
            return
        rows = reader(spark_session).text([uri(file) for file in source.files])
        assert set(spark_names(rows, source)) == {f"{name}.jsonl" for name in names}


def _folder_with(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "a.jsonl").write_bytes(VALID.read_bytes())
        (folder / name).write_bytes(VALID.read_bytes())
        return folder

    return make


@pytest.mark.parametrize("name", ["_b.jsonl", ".b.jsonl", "b.parquet", "b.csv", "b.JSONL"])
def test_a_folder_that_holds_more_than_parts_is_refused_in_the_same_words(
    name: str, tmp_path: Path, session: SparkSession
) -> None:
    _folder_with(name)(tmp_path)
    with pytest.raises(InputError) as local:
        verify.read(tmp_path)
    with pytest.raises(InputError) as found:
        spark.examine(tmp_path, SPEC, None, session)
    assert str(found.value) == str(local.value)


def _single(name: str, data: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return make


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


PLAIN, PACKED = VALID.read_bytes(), gzip.compress(VALID.read_bytes())
NOT_FOR_SPARK: dict[str, tuple[Callable[[Path], Path | str], str]] = {
    "hidden by an underscore": (
        _single("_h.jsonl", PLAIN),
        "Spark passes over {}, because its name begins with . or _",
    ),
    "hidden by a dot": (_single(".h.jsonl", PLAIN), "Spark passes over {}, because its name begins with . or _"),
    "being copied": (_single("h.jsonl._COPYING_", PLAIN), "Spark passes over {}, because its name begins with . or _"),
    "gzip by another name": (
        _single("h.JSONL.GZ", PACKED),
        "{} is gzipped, which Spark sees by the name alone; rename",
    ),
    "lines by the name of bzip2": (_single("h.bz2", PLAIN), "Spark would unpack {} because of its name; rename it to"),
    "a name that is no UTF-8": (
        _single(os.fsdecode(b"\xff.jsonl"), PLAIN),
        "Spark cannot read {}, whose name is not UTF-8; rename it, or use --engine local",
    ),
    "a colon in the name": (
        _single("a:b.jsonl", PLAIN),
        "Spark cannot read {}, whose name has a colon; rename it, or use --engine local",
    ),
    "a pipe": (_pipe, "{} is a pipe, and Spark reads files; write it to a file, or use --engine local"),
    "standard input": (lambda _: "-", "standard input is a pipe, and Spark reads files; write it to a file"),
}


@pytest.mark.parametrize(("make", "sentence"), NOT_FOR_SPARK.values(), ids=NOT_FOR_SPARK)
def test_what_spark_cannot_read_is_refused(
    make: Callable[[Path], Path | str], sentence: str, tmp_path: Path, session: SparkSession
) -> None:
    path = make(tmp_path)
    with pytest.raises(InputError) as caught:
        spark.examine(path, SPEC, None, session)
    expected = sentence.replace("{}", str(path).replace("\udcff", "\\udcff"))
    assert str(caught.value).startswith(expected)


def test_a_file_that_spark_does_not_read_is_not_passed_over(tmp_path: Path, session: SparkSession) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_bytes(PLAIN)
    rows = session.read.text(str(tmp_path / "a.jsonl"))
    source = _source.source_of(tmp_path)
    with pytest.raises(InputError, match=r"Spark does not read b\.jsonl as it is; use --engine local"):
        spark_names(rows, source)
