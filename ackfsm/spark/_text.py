"""JSONL, plain or gzipped, through the line parser of the local engine.

Spark cuts a large file into blocks, reads each in order and tells at which byte it begins.  As an
event takes more than one byte, that byte plus the number of the line in its block orders all events
of the file, exactly.  Line *numbers* need the lengths of the blocks before, which every batch reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from ackfsm.history._lines import SCHEMA, parse_lines
from ackfsm.spark._lines import EVENT_COLUMNS, TALLY, TALLY_DDL, Lines, ddl, tally, uri

__all__ = ["read_text"]

Batches = Iterator[pa.RecordBatch]

_PARSED: Final = pa.schema([*SCHEMA, ("line", pa.int64()), *TALLY])
_PARSED_DDL: Final = f"{ddl(EVENT_COLUMNS)}, line bigint, {TALLY_DDL}"


def read_text(session: SparkSession, path: Path, *, headed: bool) -> Lines:
    """Read the lines of ``path``; ``headed`` says that the first of them is a header."""
    text = session.read.option("lineSep", "\n").text(uri(path))
    blocks = text.select("value", sf.col("_metadata.file_block_start").alias("block"))
    parsed = blocks.mapInArrow(_parser(headed=headed), _PARSED_DDL).withColumn("readable", sf.col("lines").isNull())
    return Lines(rows=parsed, tallies=parsed.where("not readable").select(*TALLY.names), costly=True)


def _parser(*, headed: bool) -> Callable[[Batches], Batches]:
    """Lines to events, and one tally for each batch: a row without an event."""

    def parse(batches: Batches) -> Batches:
        seen = Counter[int]()
        for batch in batches:
            for block, lines in _by_block(batch):
                header = int(headed and block == 0 and seen[block] == 0)
                parsed = parse_lines(lines[header:], seen[block] + header + 1)
                seen[block] += len(lines)
                yield _filled(parsed.events.append_column("line", pa.array(parsed.lines + block)))
                yield _filled(tally(parsed.unreadable, parsed.unreadable_count, lines=len(lines), block=block))

    return parse


def _by_block(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.Array]]:
    """The lines of each block in ``batch``; the lines of one follow each other."""
    runs = pc.run_end_encode(batch["block"])
    start = 0
    for block, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield block, batch["value"][start:end]
        start = end


def _filled(rows: pa.RecordBatch) -> pa.RecordBatch:
    """``rows`` with the columns of both kinds of rows, those of the other kind null."""
    present = frozenset(rows.schema.names)
    columns = [rows[field.name] if field.name in present else pa.nulls(len(rows), field.type) for field in _PARSED]
    return pa.RecordBatch.from_arrays(columns, schema=_PARSED)
