"""A stream of events is watched: what is planted is told once, also by a monitor that is killed and started again."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession  # noqa: TC002 - pytest fixtures are looked at while it runs

from ackfsm import spark
from ackfsm.spark import _batches, _monitor, _tables
from ackfsm.terms import InputError
from model_tests.support.tables import shipped
from model_tests.support.verify.notation import write
from model_tests.verify.test_fold_chunks import ordinary

pytestmark = pytest.mark.spark

LOST = {7, 150, 299}
EVENTS = [
    *(each for each in ordinary(300) if not (each["process"] == "c" and int(each["message"][1:]) in LOST)),
    {"t": 5_000, "process": "nemesis", "event": "drained", "queue": "q"},
    {"t": 10**12, "process": "nemesis", "event": "drained", "queue": "q"},
]
EXPECTED = [(f"m{number}", "loss", "invalid") for number in sorted(LOST)]


class Watched:
    """A folder to which lines are added, and a monitor of it."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self.lines, self.state, self.told = (folder / name for name in ("lines", "state", "told"))
        self.lines.mkdir()
        self._session = session

    def add(self, events: Sequence[Mapping[str, Any]], name: str) -> None:
        """Another file of events, later than those before, for Spark takes the oldest first."""
        file = self.lines / f"{name}.jsonl"
        write(events, file)
        os.utime(file, (1_000_000 + int(name),) * 2)

    def run(self, **more: Any) -> None:
        """Have all that is there watched, a file in each batch."""
        reader = self._session.readStream.schema(spark.EVENT_SCHEMA).option("maxFilesPerTrigger", 1)
        stream: DataFrame = reader.json(f"file:{self.lines}")
        how = {"delay": "1us", "horizon": "60s", "rows": 300, "specification": shipped(), **more}
        query = spark.monitor(stream, {"profile": "jms"}, state=self.state, alerts=self.told, availableNow=True, **how)
        query.awaitTermination()

    def alerts(self) -> list[tuple[str | None, str, str]]:
        """What was told, in the order of the batches."""
        rows = [row for file in sorted(self.told.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
        return [(row["message"], row["kind"], row["verdict"]) for row in rows]


@pytest.fixture
def watched(spark_session: SparkSession, tmp_path: Path) -> Watched:
    return Watched(spark_session, tmp_path)


def _in_files(watched: Watched, size: int) -> list[str]:
    names = []
    for place, begin in enumerate(range(0, len(EVENTS), size)):
        names.append(f"{place:03}")
        watched.add(EVENTS[begin : begin + size], names[-1])
    return names


def test_what_is_planted_is_told_once_and_the_rest_is_forgotten(watched: Watched) -> None:
    _in_files(watched, 500)
    watched.run()
    assert watched.alerts() == EXPECTED
    known = spark.monitored(watched.state)
    assert (known["events"], known["messages"], known["late"]) == (len(EVENTS), 300, 0)
    assert isinstance(known["kept_lines"], int)
    assert known["kept_lines"] < 20
    assert str(known["unseen"]).startswith("300 messages were counted or forgotten")


def test_a_batch_too_large_for_this_process_is_folded_where_it_is(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_batches, "ROWS_HERE", 100)
    taken = list[bool]()

    def chunked(*arguments: Any, **more: Any) -> Any:
        taken.append(True)
        return _tables.chunked(*arguments, **more)

    monkeypatch.setattr(_batches, "chunked", chunked)
    _in_files(watched, 500)
    watched.run()
    assert taken
    assert watched.alerts() == EXPECTED
    assert spark.monitored(watched.state)["events"] == len(EVENTS)


def test_the_lines_of_a_batch_may_have_any_order(watched: Watched) -> None:
    watched.add(EVENTS[::-1], "000")
    watched.run()
    assert watched.alerts() == EXPECTED
    assert spark.monitored(watched.state)["messages"] == 300


def test_a_monitor_that_dies_anywhere_tells_the_same(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """It dies before a batch, before its alerts, and between its alerts and its state, and is started again."""
    _in_files(watched, 100)
    for step in ("batched", "_parquet"):
        for call in (1, 2):
            _dying(watched, step, call, monkeypatch)
    watched.run()
    assert watched.alerts() == EXPECTED
    assert spark.monitored(watched.state)["events"] == len(EVENTS)


def _dying(watched: Watched, step: str, call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    right, calls = getattr(_monitor, step), iter(range(1, 100))

    def failing(*arguments: Any, **more: Any) -> Any:
        if next(calls) > call:
            raise KeyError("killed")
        return right(*arguments, **more)

    with monkeypatch.context() as patched:
        patched.setattr(_monitor, step, failing)
        with pytest.raises(StreamingQueryException, match="killed"):
            watched.run()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"delay": "soon"}, "delay: 'soon' is no quantity here"),
        ({"delay": 5}, "delay: 5 has no unit; say it as text, such as '10s'"),
        ({"delay": "120s"}, r"horizon \(60s\) is shorter than delay \(120s\)"),
    ],
)
def test_a_duration_that_cannot_be_is_refused(more: dict[str, Any], sentence: str, watched: Watched) -> None:
    with pytest.raises(InputError, match=sentence):
        watched.run(**more)


def test_a_table_that_cannot_be_watched_is_refused_at_once(watched: Watched, spark_session: SparkSession) -> None:
    how: dict[str, Any] = {"state": watched.state, "alerts": watched.told, "specification": shipped()}
    with pytest.raises(InputError, match="the table is no stream"):
        spark.monitor(spark_session.createDataFrame([], spark.EVENT_SCHEMA), None, **how)
    stream = spark_session.readStream.schema("t bigint, process string, event string").json(f"file:{watched.lines}")
    with pytest.raises(InputError, match="the table has no column 'message'"):
        spark.monitor(stream, None, **how)


def test_a_state_that_is_damaged_or_incomplete_is_refused(watched: Watched) -> None:
    """Nothing is told of what comes then: it would be told of lines that are not there any more."""
    names = _in_files(watched, 500)
    watched.run()
    last = f"{len(names) - 1:09}.parquet"
    kept = {name: (watched.state / f"{name}-{last}").read_bytes() for name in ("rows", "over")}
    more = [{**each, "t": each["t"] + 10**13, "message": f"later-{each['message']}"} for each in ordinary(3)]
    watched.add(more, "900")
    (watched.state / f"rows-{last}").unlink()
    _refused(watched, "is damaged (lines that were kept are missing)")
    (watched.state / f"rows-{last}").write_bytes(kept["rows"])
    (watched.state / f"over-{last}").write_bytes(kept["over"][:-9])
    _refused(watched, "is damaged (")
    for file in watched.state.glob("*.parquet"):
        file.unlink()
    with pytest.raises(StreamingQueryException, match=f"Spark goes on with batch {len(names)}, and the state is gone"):
        watched.run()
    for name, data in kept.items():
        (watched.state / f"{name}-{last}").write_bytes(data)
    watched.run()
    assert watched.alerts() == EXPECTED
    shutil.rmtree(watched.state / "checkpoint")
    with pytest.raises(StreamingQueryException, match="Spark goes on with batch 0, and the state is that after batch"):
        watched.run()
    assert watched.alerts() == EXPECTED


def _refused(watched: Watched, sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        spark.monitored(watched.state)
    with pytest.raises(StreamingQueryException, match=re.escape(sentence)):
        watched.run()


def test_a_folder_that_no_monitor_wrote_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no state of a monitor"):
        spark.monitored(tmp_path)
