"""Read JSONL, plain or gzipped, with the line parser of the local backend.

Spark cuts a large file into blocks, reads each in order and tells at which byte it begins.  As an
event takes more than one byte, that byte plus the number of the line in its block orders all events
of the file, exactly; the bytes of a file count from the end of the file before it.  Line *numbers* need the lengths
of the blocks before, which every batch reports.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ackfsm.spark._lines import (
    EVENT_COLUMNS,
    PARSE_ERRORS,
    PARSE_ERRORS_DDL,
    Lines,
    ddl,
    parse_error_row,
    reader,
    spark_names,
    uri,
)
from ackfsm.verify._lines import SCHEMA, parse_lines
from ackfsm.verify._source import Source

__all__ = ["read_text"]

Batches = Iterator[pa.RecordBatch]

_MOST_UNPACKED: Final = 1_032
"""A byte of a gzipped file stands for so many at most."""

_PARSED: Final = pa.schema([*SCHEMA, ("line", pa.int64()), *PARSE_ERRORS])
_PARSED_DDL: Final = f"{ddl(EVENT_COLUMNS)}, line bigint, {PARSE_ERRORS_DDL}"


def read_text(session: SparkSession, source: Source, headed: Mapping[str, bool]) -> Lines:
    """Read the lines of the files of ``source``; ``headed`` says of each, by its name, that its first is a header."""
    text = reader(session).option("lineSep", "\n").text([uri(file) for file in source.files])
    blocks = text.select(
        "value", sf.col("_metadata.file_block_start").alias("block"), sf.col("_metadata.file_name").alias("file")
    )
    placed = _placed(session, blocks, spark_names(text, source), source)
    starts = itertools.accumulate(map(_most_bytes, source.files), initial=0)
    parts = [
        _Place(source.part_of(file), start, headed=headed[file.name])
        for file, start in zip(source.files, starts, strict=False)
    ]
    parsed = placed.mapInArrow(_parser(parts), _PARSED_DDL).withColumn("readable", sf.col("lines").isNull())
    return Lines(rows=parsed, parse_errors=parsed.where("not readable").select(*PARSE_ERRORS.names), costly=True)


@dataclasses.dataclass(frozen=True, slots=True)
class _Place:
    """One file: the name of the part, the bytes of the files before it, and whether its first line is a header."""

    part: str | None
    start: int
    headed: bool


def _most_bytes(file: Path) -> int:
    """What ``file`` holds, unpacked, at most."""
    return file.stat().st_size * (_MOST_UNPACKED if file.suffix == ".gz" else 1)


def _placed(session: SparkSession, blocks: DataFrame, files: Mapping[str, str], source: Source) -> DataFrame:
    """``blocks`` with the ``place`` of their file among those of ``source``."""
    if len(source.files) == 1:
        return blocks.select("value", "block", sf.lit(0).alias("place"))
    places = [(files[file.name], place) for place, file in enumerate(source.files)]
    known = session.createDataFrame(places, "file string, place int")
    return blocks.join(sf.broadcast(known), "file", "left").select("value", "block", "place")


def _parser(places: Sequence[_Place]) -> Callable[[Batches], Batches]:
    """Lines to events, and one row of parse errors for each batch: a row without an event."""

    def parse(batches: Batches) -> Batches:
        seen = Counter[tuple[int, int]]()
        for batch in batches:
            for (place, block), lines in _by_block(batch):
                part, before = places[place].part, seen[place, block]
                header = int(places[place].headed and block == 0 and before == 0)
                parsed = parse_lines(lines[header:], before + header + 1, part)
                seen[place, block] += len(lines)
                order = pa.array(parsed.lines + block + places[place].start)
                yield _filled(parsed.events.append_column("line", order))
                error_row = parse_error_row(
                    parsed.unreadable, parsed.unreadable_count, lines=len(lines), place=(part, block)
                )
                yield _filled(error_row)

    return parse


def _by_block(batch: pa.RecordBatch) -> Iterator[tuple[tuple[int, int], pa.Array]]:
    """The lines of each block of each file in ``batch``; the lines of one follow each other."""
    place, block = (np.asarray(batch[name]) for name in ("place", "block"))
    changes = np.flatnonzero((np.diff(place) != 0) | (np.diff(block) != 0)) + 1
    for start, end in itertools.pairwise([0, *changes.tolist(), len(block)]):
        if start < end:
            yield (int(place[start]), int(block[start])), batch["value"][start:end]


def _filled(rows: pa.RecordBatch) -> pa.RecordBatch:
    """``rows`` with the columns of both kinds of rows, those of the other kind null."""
    present = frozenset(rows.schema.names)
    columns = [rows[field.name] if field.name in present else pa.nulls(len(rows), field.type) for field in _PARSED]
    return pa.RecordBatch.from_arrays(columns, schema=_PARSED)
