"""Verify events that stand in a table of Spark: of Parquet, Delta, Iceberg, a query, or :mod:`ackfsm.spark._source`."""

from __future__ import annotations

import contextlib
import dataclasses
import pickle
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from ackfsm import tables
from ackfsm.history.arrays import Ints
from ackfsm.history.coded import read_rows
from ackfsm.history.format import FIELDS, SHOWABLE, Kind
from ackfsm.history.gathered import ReadLines
from ackfsm.history.lines import REPORTED, SCHEMA, Parsed
from ackfsm.history.parquet import columns_of
from ackfsm.spark._errors import rows_of, spark_errors_translated
from ackfsm.spark._examine import Folded, fold_some
from ackfsm.tables import Specification
from ackfsm.terms import Configuration, Fault, InputError
from ackfsm.text import quoted
from ackfsm.verify import TABLES, Configurations, Examination, ParseError, Result, verdict
from ackfsm.verify.folding.chunks import ROWS_AT_ONCE, chunk_of
from ackfsm.verify.folding.passes import Asked, Fold, Folder
from ackfsm.verify.folding.summary import Chunk, Folding, Hashes, Summary
from ackfsm.verify.results.tables import MESSAGES, PlainRows

_TYPES: Final = {Kind.TEXT: "string", Kind.WHOLE: "bigint", Kind.FLAG: "boolean"}

EVENT_SCHEMA: Final = ", ".join(f"{name} {_TYPES[kind]}" for name, kind in FIELDS.items())
"""The columns of an event of format 1 and their types in Spark, as it takes a schema."""

HISTORY_SCHEMA: Final = f"{EVENT_SCHEMA}, part string, line bigint, unreadable string"
"""Those of ``spark.read.format("ackfsm")``: also the file where a history has several, the number of the line in it,
and why the line is no event, where that is so: then nothing else stands in the row."""

HISTORY_COLUMNS: Final = pa.schema([*SCHEMA, ("part", pa.string()), ("line", pa.int64()), ("unreadable", pa.string())])
"""The same, as Arrow has them."""

_OF_FILES: Final = MappingProxyType({"part": Kind.TEXT, "line": Kind.WHOLE, "unreadable": Kind.TEXT})
"""The columns beside those of events, and what they hold."""

_NAME: Final = "the table"
_RESULT: Final = pa.schema([("result", pa.binary())])
_MESSAGES: Final = from_arrow_schema(TABLES[MESSAGES])

RESULT_SCHEMAS: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in from_arrow_schema(schema))
        for name, schema in TABLES.items()
    }
)
"""The columns of each result table (:data:`ackfsm.verify.TABLES`), as Spark takes a schema."""


def verify(  # noqa: PLR0913 - as :func:`ackfsm.verify.examine_path`
    events: DataFrame,
    config: Configurations | Configuration | Mapping[str, Any] | None = None,
    *,
    specification: Specification | None = None,
    skew: int | None = None,
    assumed: Collection[Fault] = (),
    cannot_show: Collection[str] = (),
    rows: int = ROWS_AT_ONCE,
) -> Result:
    """Hold the messages of ``events`` to the model, and judge the findings.

    Rows of the same time are taken in the order of the column ``line``, or, where there is none, in any: times that
    tell the events of a process apart make that of no account.

    Args:
        events: one row for each event, with columns as :data:`EVENT_SCHEMA` has them (``t`` in nanoseconds); those of
            :data:`HISTORY_SCHEMA` may be there beside them, others are not looked at.
        config: what was recorded: a configuration, those of queues, or the keys that the header of a history has.
        specification: the tables; ``None`` for those that come with the package.
        skew: by how many nanoseconds the clocks of two processes may differ; ``None`` estimates it.
        assumed: the faults that may have happened although nobody recorded them.
        cannot_show: the events and fields that the source never shows, as a header has them.
        rows: about how many a chunk has.

    Raises:
        InputError: a column is missing or has another type, there is no event, or ``config`` is not one.
        AckfsmError: Spark gave up.
    """
    asked = _asked(config, specification, cannot_show, skew, assumed)
    with spark_errors_translated(_NAME), chunked(events, rows) as (count, table):
        return _judged(asked, count, table)[1]


def _asked(
    config: Configurations | Configuration | Mapping[str, Any] | None,
    specification: Specification | None,
    cannot_show: Collection[str],
    skew: int | None,
    assumed: Collection[Fault],
) -> Asked:
    known, unshown = specification or tables.load(), _showable(cannot_show)
    judged_by = configured(config, known)
    return Asked(specification=known, configuration=judged_by, skew=skew, assumed=assumed, unshown=unshown)


def _judged(asked: Asked, count: int, table: DataFrame) -> tuple[Examination, Result]:
    begun = time.process_time()
    outcome = Fold(Path(_NAME), count, Folder(not_here, asked), OfTable(table)).outcome()
    found = Examination.of(outcome, asked, begun=begun).on("spark")
    return found, verdict(found.findings, asked.specification)


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Verified:
    """The verdict on a table of events, and the result tables (:data:`ackfsm.verify.TABLES`) as tables of Spark.

    ``messages`` is kept by Spark until :meth:`close`; the others are small but where much is wrong.
    """

    result: Result
    messages: DataFrame
    anomalies: DataFrame
    summary: DataFrame
    timeline: DataFrame

    def close(self) -> None:
        """Let Spark forget its cached tables."""
        self.messages.unpersist()


def verified(  # noqa: PLR0913 - as :func:`verify`
    events: DataFrame,
    config: Configurations | Configuration | Mapping[str, Any] | None = None,
    *,
    name: str = _NAME,
    specification: Specification | None = None,
    skew: int | None = None,
    assumed: Collection[Fault] = (),
    cannot_show: Collection[str] = (),
    rows: int = ROWS_AT_ONCE,
) -> Verified:
    """Return the result of :func:`verify`, with the result tables; ``name`` is for the column ``history``."""
    asked = _asked(config, specification, cannot_show, skew, assumed)
    session = events.sparkSession
    with spark_errors_translated(_NAME), chunked(events, rows) as (count, table):
        found, result = _judged(asked, count, table)
        result = dataclasses.replace(result, findings=dataclasses.replace(result.findings, history=name))
        kept = {
            name: session.createDataFrame(rows, from_arrow_schema(rows.schema))
            for name, rows in found.result_tables(result).tables().items()
        }
        left = dict(found.left())
        plain = table.where(sf.col("chunk").isin([*left])).mapInArrow(_plain(found.plain(result), left), _MESSAGES)
        messages = kept.pop(MESSAGES).unionByName(plain).persist()
        messages.count()  # while the events are kept in the order in which they were folded
    return Verified(result=result, messages=messages, **kept)


def _plain(
    rows: PlainRows, left: Mapping[int, Hashes]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function to the rows of the ``messages`` that were ``left`` out of a chunk."""

    def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        some = [batch for batch in batches if len(batch)]
        if some:
            table = pa.Table.from_batches(some)
            place = table["chunk"][0].as_py()
            yield from rows(chunk_of_table(place, table), left[place]).to_batches()

    return told


def _showable(names: Collection[str]) -> Collection[str]:
    """The ``names`` of what cannot be shown; raises :class:`InputError` for one that there is not."""
    for name in names:
        if name not in SHOWABLE:
            legal = ", ".join(sorted(SHOWABLE))
            raise InputError(f"`cannot_show` names {quoted(name)}, which is no event or field; it is one of {legal}")
    return tuple(map(str, names))


def configured(
    config: Configurations | Configuration | Mapping[str, Any] | None, specification: Specification
) -> Configurations | Configuration | None:
    """The configuration that ``config`` says; raises :class:`InputError` for one that there is not."""
    if isinstance(config, Mapping):
        return specification.configure(None, config)
    if config is None or isinstance(config, Configuration | Configurations):
        return config
    raise InputError(f"`config` is {type(config).__name__}; give the keys of a header as a mapping, or a Configuration")


@contextlib.contextmanager
def chunked(events: DataFrame, rows: int, first: int = 0) -> Iterator[tuple[int, DataFrame]]:
    """The rows in the order of time, kept, with their chunk in ``chunk``; the chunks count from ``first``.

    Also gives how many chunks there are.
    """
    present = columns_read(events)
    if rows < 1:
        raise InputError(f"a chunk has at least one row, and not {rows}")
    chunks = max(1, -(-events.count() // rows))
    order = [sf.asc_nulls_last(name) for name in ("t", "part", "line") if name in present]
    ordered = events.select(*present).repartitionByRange(chunks, *order).sortWithinPartitions(*order)
    kept = ordered.withColumn("chunk", sf.spark_partition_id() + first).persist()
    try:
        yield chunks, kept
    finally:
        kept.unpersist()


def columns_read(events: DataFrame) -> Sequence[str]:
    """The columns that tell of events; raises :class:`InputError` if one is missing or of another type."""
    schema = to_arrow_schema(events.schema, timezone="UTC")
    return (*columns_of(schema, _NAME), *columns_of(schema, _NAME, fields=_OF_FILES, required=()))


def placed(events: pa.RecordBatch, part: str | None, lines: Ints) -> pa.RecordBatch:
    """The ``events`` with the columns of :data:`HISTORY_COLUMNS`."""
    own = [pa.array([part] * len(events), pa.string()), pa.array(lines), pa.nulls(len(events), pa.string())]
    return pa.RecordBatch.from_arrays([*events.columns, *own], schema=HISTORY_COLUMNS)


def not_here(place: int) -> Chunk:
    raise NotImplementedError(f"chunk {place} of a table is where Spark has it")


@dataclasses.dataclass(frozen=True, slots=True)
class OfTable:
    """Has the chunks of a table folded where they are; first one of them, for the plain observations."""

    table: DataFrame

    def __call__(self, folder: Folder, foldings: Sequence[Folding]) -> Iterator[Summary]:
        first = 0 if folder.observations.known else 1
        for some in (foldings[:first], foldings[first:]):
            if not some:
                continue
            rows = self.table.where(sf.col("chunk").isin([each.place for each in some]))
            for row in rows_of(rows.mapInArrow(_folding(folder, some), "result binary")):
                summaries, known = pickle.loads(row["result"])  # noqa: S301 - this process sent what made it
                folder.observations.learn(known)
                yield from summaries


def _folding(
    folder: Folder, foldings: Sequence[Folding]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    by_place = {each.place: each for each in foldings}

    def folded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [batch for batch in batches if len(batch)]
        if rows:
            table = pa.Table.from_batches(rows)
            place = table["chunk"][0].as_py()
            result: Folded = fold_some(folder.with_chunks(lambda _: chunk_of_table(place, table)), [by_place[place]])
            yield pa.RecordBatch.from_pylist([{"result": pickle.dumps(result)}], _RESULT)

    return folded


def chunk_of_table(place: int, table: pa.Table) -> Chunk:
    """The chunk in the rows of ``table``; without a column ``line`` they are numbered in the order of time."""
    numbered = "line" in table.column_names
    first = 1 if numbered else None
    return chunk_of(place, first, _read(table, numbered=numbered), _NAME)


def _read(table: pa.Table, *, numbered: bool) -> Iterator[ReadLines]:
    lines = np.asarray(table["line"].fill_null(0)) if numbered else np.arange(1, len(table) + 1)
    if "unreadable" in table.column_names:
        bad = np.asarray(table["unreadable"].is_valid())
        if bad.any():
            yield ReadLines(None, (_unreadable(table.filter(pa.array(bad)), lines[bad]),), int(bad.sum()))
            table, lines = table.filter(pa.array(~bad)), lines[~bad]
    events = table.select([name for name in FIELDS if name in table.column_names])
    yield from read_rows(events, lines, None, lambda: events)


def _unreadable(table: pa.Table, lines: Any) -> Parsed:
    parts = table["part"].to_pylist() if "part" in table.column_names else [None] * len(table)
    described = zip(lines.tolist(), table["unreadable"].to_pylist(), parts, strict=True)
    first = tuple(ParseError(line, why, part) for _, (line, why, part) in zip(range(REPORTED), described, strict=False))
    return Parsed(pa.RecordBatch.from_pylist([], SCHEMA), np.empty(0, np.int64), first, len(table))
