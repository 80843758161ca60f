"""Read and validate Parquet in Spark; only invalid rows reach Python, to be described."""

from __future__ import annotations

import functools
import itertools
import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from ackfsm.spark._lines import EVENT_COLUMNS, PARSE_ERRORS_DDL, Lines, ddl, parse_error_row, reader, spark_names, uri
from ackfsm.terms import AckScope
from ackfsm.verify._format import (
    ACKNOWLEDGE_TIMEOUT,
    ALWAYS,
    FIELDS,
    NAMED_MESSAGE_SCOPES,
    NEEDS,
    NOT_NEGATIVE,
    TELLERS,
    VOCABULARY,
    Call,
    Event,
    Kind,
)
from ackfsm.verify._lines import drop_invalid
from ackfsm.verify._open import input_errors
from ackfsm.verify._parquet import columns_of
from ackfsm.verify._source import Source

__all__ = ["read_parquet"]

Batches = Iterator[pa.RecordBatch]

_UNSIGNED: Final = "decimal(20, 0)"
"""How Spark reads unsigned numbers of 64 bits."""

_ONLY_PART: Final = ("cast(null as string) part", "row line")
"""What :func:`_in_order` adds, where there is one file."""


def read_parquet(session: SparkSession, source: Source) -> Lines:
    """Read the rows of the files of ``source``.

    Raises :class:`InputError` for a part that lacks a column or has one of the wrong type.
    """
    rows = _rows(session, source)
    files = spark_names(rows, source)
    if source.is_folder:
        rows = _in_order(session, rows, source, files)
    else:
        rows = rows.selectExpr(*EVENT_COLUMNS, "row", *_ONLY_PART)
    checked = rows.withColumn("readable", ~_any([*_broken(), *_damaged()]))
    bad = checked.where("not readable").select(*EVENT_COLUMNS, "part", "row")
    return Lines(rows=checked, parse_errors=bad.mapInArrow(_describe, PARSE_ERRORS_DDL), costly=False)


def _rows(session: SparkSession, source: Source) -> DataFrame:
    """The rows of all parts, each with the file that it is in and its number there; alike parts are read as one."""
    alike = defaultdict[tuple[tuple[str, str], ...], list[str]](list)
    for part in source.files:
        alike[tuple(_stored(part, source.name_of(part)).items())].append(uri(part))
    frames = (_read_alike(session, dict(columns), uris) for columns, uris in alike.items())
    return functools.reduce(DataFrame.unionByName, frames)


def _stored(part: Path, name: str) -> Mapping[str, str]:
    """The columns that Spark can read from ``part``; one that is null throughout may have no type, and is left out."""
    with input_errors(name):
        schema = pq.read_schema(part)
    kinds = {column: schema.field(column).type for column in columns_of(schema, name)}
    return {
        column: _UNSIGNED if pt.is_uint64(kind) else EVENT_COLUMNS[column]
        for column, kind in kinds.items()
        if not pt.is_null(kind)
    }


def _read_alike(session: SparkSession, stored: Mapping[str, str], uris: list[str]) -> DataFrame:
    columns = [
        (sf.col(name) if name in stored else sf.lit(None)).cast(kind).alias(name)
        for name, kind in EVENT_COLUMNS.items()
    ]
    place = (sf.col("_metadata.file_name").alias("file"), sf.col("_metadata.row_index").alias("row"))
    return reader(session).schema(ddl(stored)).parquet(*uris).select(*columns, *place)


def _in_order(session: SparkSession, rows: DataFrame, source: Source, files: Mapping[str, str]) -> DataFrame:
    """``rows`` with the name of their part, and ``line``: their number in all parts together."""
    lengths = [pq.read_metadata(part).num_rows for part in source.files]
    starts = itertools.accumulate(lengths, initial=0)
    known = session.createDataFrame(
        [(files[part.name], part.name, start) for part, start in zip(source.files, starts, strict=False)],
        "file string, part string, start bigint",
    )
    numbered = rows.join(sf.broadcast(known), "file", "left").withColumn("line", sf.col("start") + sf.col("row"))
    return numbered.select(*EVENT_COLUMNS, "row", "part", "line")


def _broken() -> Iterator[Column]:
    """The rules of the format, each true for the rows that break it."""
    for field in ALWAYS:
        yield sf.col(field).isNull()
    for field, legal in VOCABULARY.items():
        yield ~sf.col(field).isin(*legal)
    for field in NOT_NEGATIVE:
        yield sf.col(field) < 0
    for field, events in NEEDS.items():
        yield sf.col("event").isin(*events) & sf.col(field).isNull()
    yield sf.col("scope").isin(*NAMED_MESSAGE_SCOPES) & sf.col("message").isNull()
    yield (sf.col("event") == Event.CONFIRMED) & (sf.col("scope") == AckScope.SESSION)
    yield (sf.col("event") == Event.WAITING) & ~sf.col("error").isin(*Call)
    yield (sf.col("event") == Event.DEPTH) & (sf.col("position") < 0)
    timeout = (sf.col("fault") == ACKNOWLEDGE_TIMEOUT) & sf.col("process").isin(*TELLERS)
    yield timeout & sf.col("session").isNull()


def _damaged() -> Iterator[Column]:
    """Text that is not UTF-8, which Parquet does not allow and Spark does not look at."""
    return (~sf.is_valid_utf8(name) for name, kind in FIELDS.items() if kind is Kind.TEXT)


def _any(rules: Iterable[Column]) -> Column:
    """Whether a rule is certainly true."""
    return functools.reduce(operator.or_, (sf.coalesce(rule, sf.lit(col=False)) for rule in rules))


def _describe(batches: Batches) -> Batches:
    """Say what is wrong with bad rows."""
    for batch in batches:
        for part, rows in _by_part(batch):
            yield _described(rows, part)


def _described(rows: pa.RecordBatch, part: str | None) -> pa.RecordBatch:
    try:
        rows.validate(full=True)
    except pa.ArrowInvalid:
        return parse_error_row((), len(rows), lines=0, place=(part, 0), damaged=True)
    found = drop_invalid(rows.select(EVENT_COLUMNS), np.asarray(rows["row"]) + 1, part=part)
    return parse_error_row(found.unreadable, found.unreadable_count, lines=0, place=(part, 0))


def _by_part(batch: pa.RecordBatch) -> Iterator[tuple[str | None, pa.RecordBatch]]:
    for part in pc.unique(batch["part"]):
        mine = pc.equal(batch["part"], part) if part.is_valid else batch["part"].is_null()
        yield part.as_py(), batch.filter(mine)
