"""The common result of reading JSONL and Parquet: events in the order of their lines, and parse errors."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import (  # noqa: TC002 - Spark is there wherever this module is
    DataFrame,
    DataFrameReader,
    SparkSession,
)

from ackfsm.terms import InputError
from ackfsm.text import shown
from ackfsm.verify import ParseError
from ackfsm.verify._format import FIELDS, Kind
from ackfsm.verify._source import Source

__all__ = [
    "EVENT_COLUMNS",
    "PARSE_ERRORS",
    "PARSE_ERRORS_DDL",
    "Lines",
    "ddl",
    "parse_error_row",
    "reader",
    "spark_names",
    "uri",
]

_TYPES: Final[Mapping[Kind, str]] = MappingProxyType({Kind.TEXT: "string", Kind.WHOLE: "bigint", Kind.FLAG: "boolean"})

EVENT_COLUMNS: Final[Mapping[str, str]] = MappingProxyType({name: _TYPES[kind] for name, kind in FIELDS.items()})
"""The columns of an event and their types in Spark."""

PARSE_ERRORS: Final = pa.schema(
    [
        ("part", pa.string()),
        ("block", pa.int64()),
        ("lines", pa.int64()),
        ("unreadable", pa.int64()),
        ("damaged", pa.bool_()),
        ("described", pa.list_(pa.struct([("line", pa.int64()), ("why", pa.string())]))),
    ]
)
"""What one batch of lines was, in Arrow: where it stands, how many lines it has and how many of them are no events."""

PARSE_ERRORS_DDL: Final = (
    "part string, block bigint, lines bigint, unreadable bigint, damaged boolean,"
    " described array<struct<line: bigint, why: string>>"
)
"""The same columns in Spark."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """A history as Spark reads it, lazily.

    Attributes:
        rows: :data:`EVENT_COLUMNS`, ``line bigint`` for the order of the lines, and ``readable``: whether the row is an
            event.  The others tell of lines that are none.
        parse_errors: rows of :data:`PARSE_ERRORS_DDL`, made from the unreadable ``rows``, which together cover every
            line that is no event.  Line numbers count from 1 in a block, and the blocks of a part follow each other.
        costly: whether ``rows`` should be kept if they are used more than once.
    """

    rows: DataFrame
    parse_errors: DataFrame
    costly: bool


def ddl(columns: Mapping[str, str]) -> str:
    """``columns`` (names and types) as a schema."""
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def parse_error_row(
    unreadable: Sequence[ParseError],
    count: int,
    *,
    lines: int,
    place: tuple[str | None, int],
    damaged: bool = False,
) -> pa.RecordBatch:
    """One row of :data:`PARSE_ERRORS`: of ``lines`` lines at ``place`` (part, block) ``count`` are no events."""
    row = {
        "part": place[0],
        "block": place[1],
        "lines": lines,
        "unreadable": count,
        "damaged": damaged,
        "described": [{"line": each.line, "why": each.why} for each in unreadable],
    }
    return pa.RecordBatch.from_pylist([row], PARSE_ERRORS)


def uri(file: Path) -> str:
    """``file`` as Spark takes it: on the local file system, and with nothing in it read as a pattern."""
    return "file:" + re.sub(r"([\\*?\[\]{}])", r"\\\1", str(file.absolute()))


def reader(session: SparkSession) -> DataFrameReader:
    """A reader that fails where a file is missing or damaged, whatever ``session`` is set to pass over."""
    return session.read.options(ignoreMissingFiles=False, ignoreCorruptFiles=False)


def spark_names(rows: DataFrame, source: Source) -> Mapping[str, str]:
    """What Spark calls each file of ``source`` by name (in the column ``_metadata.file_name``).

    Raises :class:`InputError` unless ``rows`` are read from all of these files and from no other.
    """
    names = {unquote(name): name for name in (file.rsplit("/", 1)[-1] for file in rows.inputFiles())}
    for name in sorted({file.name for file in source.files}.symmetric_difference(names)):
        raise InputError(f"Spark does not read {shown(name)} as it is; use --engine local")
    return MappingProxyType(names)
