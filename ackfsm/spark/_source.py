"""The data source ``ackfsm``: ``spark.read.format("ackfsm").load(path)`` gives a history as a table of events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession  # noqa: TC002 - Spark is there wherever this module is
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType  # noqa: TC002 - as above

from ackfsm.history.lines import Parsed
from ackfsm.spark._tables import HISTORY_COLUMNS, HISTORY_SCHEMA, placed
from ackfsm.terms import InputError
from ackfsm.text import shown
from ackfsm.verify.folding.chunks import chunks_of


def register(session: SparkSession) -> None:
    """Let ``session`` read histories: ``session.read.format("ackfsm").load(path)``; its workers need this package.

    ``path`` is a file or a folder of parts, as for :func:`ackfsm.verify.read`, on a file system that the workers see.
    The columns are those of :data:`ackfsm.spark.HISTORY_SCHEMA`.
    """
    session.dataSource.register(_Histories)


class _Histories(DataSource):
    """Histories of format 1."""

    @classmethod
    def name(cls) -> str:
        return "ackfsm"

    def schema(self) -> str:
        return HISTORY_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - there is one
        if "path" not in self.options:
            raise InputError('name the history: spark.read.format("ackfsm").load(PATH)')
        return _Reader(self.options["path"])


class _Reader(DataSourceReader):
    """Reads one history, a chunk in each task."""

    def __init__(self, path: str) -> None:
        chunks = chunks_of(path)
        if chunks is None:
            raise InputError(f"{shown(path)} is a pipe, and Spark reads files; write it to a file")
        self._chunks = chunks.numbered()

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(place) for place in range(len(self._chunks))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for part, parsed in self._chunks.parsed(partition.value):
            yield placed(parsed.events, part, parsed.lines)
            if parsed.unreadable_count:
                yield _no_events(part, parsed)


def _no_events(part: str | None, parsed: Parsed) -> pa.RecordBatch:
    """A row for each line that is no event; only of some of many it is known where they are."""
    rows = [{"part": part, "line": each.line, "unreadable": each.why} for each in parsed.unreadable]
    more = parsed.unreadable_count - len(rows)
    rows += [{"part": part, "line": None, "unreadable": "it is one of many that are no events"}] * more
    return pa.RecordBatch.from_pylist(rows, HISTORY_COLUMNS)
