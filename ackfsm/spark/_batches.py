"""Take a batch of a stream to this process, which holds the kept rows anyway: in one pass, without a shuffle."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame  # noqa: TC002 - Spark is there wherever this module is
from pyspark.sql.pandas.types import to_arrow_schema

from ackfsm.spark._errors import rows_of
from ackfsm.spark._tables import OfTable, chunk_of_table, chunked, columns_read
from ackfsm.verify.folding.passes import Folder
from ackfsm.verify.folding.summary import Folding, Summary

__all__ = ["batched"]

ROWS_HERE: Final = 1 << 23
"""Rows of a batch, at about 100 bytes each, that this process takes; a larger one stays where Spark has it."""

_FEW: Final = ("process", "event", "queue", "session", "delivery_mode", "scope", "fault")
"""Fields that have few values, which are sent once."""

_PACKED: Final = "rows bigint, packed binary"
_PACKED_SCHEMA: Final = pa.schema([("rows", pa.int64()), ("packed", pa.binary())])

Each: TypeAlias = "Callable[[Folder, Sequence[Folding]], Iterable[Summary]]"


@contextlib.contextmanager
def batched(events: DataFrame, rows: int) -> Iterator[tuple[int, Each]]:
    """How many chunks of about ``rows`` rows, in the order of time, a batch has, and what folds them.

    The chunks count from 1; an empty batch has none.
    """
    table = _taken(events)
    if table is not None:
        with ThreadPoolExecutor(os.cpu_count()) as executor:

            def each(folder: Folder, foldings: Sequence[Folding]) -> Iterator[Summary]:
                its = folder.with_chunks(lambda place: chunk_of_table(place, table.slice((place - 1) * size, size)))
                return executor.map(its, foldings)

            count = -(-len(table) // rows)
            size = -(-len(table) // max(1, count))
            yield count, each
        return
    with chunked(events, rows, first=1) as (count, kept):
        yield count, OfTable(kept)


def _taken(events: DataFrame) -> pa.Table | None:
    """The rows of a batch in the order of time; ``None`` if they are too many."""
    columns = columns_read(events)
    chosen = events.select(*columns)
    most = ROWS_HERE // max(1, chosen.rdd.getNumPartitions())
    parts = rows_of(chosen.mapInArrow(_packing(most), _PACKED))
    if any(part["packed"] is None for part in parts):
        return None
    if not parts:
        return to_arrow_schema(chosen.schema).empty_table()
    tables = [pa.ipc.open_stream(part["packed"]).read_all() for part in parts]
    return _in_order_of_time(pa.concat_tables(tables).unify_dictionaries().combine_chunks())


def _packing(most: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows, kept = 0, list[pa.RecordBatch]()
        for batch in batches:
            rows += len(batch)
            if rows <= most:
                kept.append(batch)
        if rows:
            data = _packed(pa.Table.from_batches(kept)) if rows <= most else None
            yield pa.RecordBatch.from_pylist([{"rows": rows, "packed": data}], _PACKED_SCHEMA)

    return packed


def _packed(table: pa.Table) -> bytes:
    for place, name in enumerate(table.column_names):
        if name in _FEW:
            table = table.set_column(place, name, table[name].dictionary_encode())
    table, sink = table.combine_chunks(), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _in_order_of_time(table: pa.Table) -> pa.Table:
    names = [name for name in ("t", "part", "line") if name in table.column_names]
    if names == ["t"] and not table["t"].null_count:
        t = table["t"].to_numpy()
        return table if (np.diff(t) >= 0).all() else table.take(pa.array(np.argsort(t, kind="stable")))
    return table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names]))
