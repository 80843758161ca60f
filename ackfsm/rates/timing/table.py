"""Rows of a sweep as an Arrow table: for Spark, and for Parquet files."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet as pq

from ackfsm.rates.timing._dimension import Dimension
from ackfsm.rates.timing._grid import Grid, Row

_TYPES: Final[Mapping[Any, pa.DataType]] = {
    int: pa.int64(),
    Mapping[str, str]: pa.map_(pa.string(), pa.string()),
    float | None: pa.float64(),
    bool | None: pa.bool_(),
    str | None: pa.string(),
    int | None: pa.int64(),
}

SCHEMA: Final = pa.schema([(name, _TYPES[kind]) for name, kind in typing.get_type_hints(Row).items()])
"""The columns of :class:`ackfsm.rates.timing.Row`."""


def batch_of(rows: Sequence[Row]) -> pa.RecordBatch:
    """Some rows."""
    columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in SCHEMA]
    columns[1] = [list(swept.items()) for swept in columns[1]]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def rows_of(table: pa.Table) -> Iterator[Row]:
    """The rows of a table with the columns of :data:`SCHEMA`."""
    for values in zip(*(column.to_pylist() for column in table.select(SCHEMA.names).columns), strict=True):
        cell, swept, *others = values
        yield Row(cell, dict(swept), *others)


def parquet(grid: Grid, rows: Iterable[Row]) -> bytes:
    """A Parquet file of a sweep, in which each dimension is a column.

    An option is a number (seconds, bits a second, bytes), a setting is text.
    """
    made, batch = pa.BufferOutputStream(), batch_of(list(rows))
    swept = [_column(grid, dimension, batch.column(0).to_pylist()) for dimension in grid.dimensions]
    names = [SCHEMA.names[0], *(dimension.name for dimension in grid.dimensions), *SCHEMA.names[2:]]
    table = pa.Table.from_arrays([batch.column(0), *swept, *batch.columns[2:]], names=names)
    pq.write_table(table, made, compression="zstd")
    return bytes(made.getvalue())


def _column(grid: Grid, dimension: Dimension, cells: Sequence[int]) -> pa.Array:
    place = grid.dimensions.index(dimension)
    values: Sequence[object] = dimension.values
    if dimension.fields:
        values = [float(number) if isinstance(number, Fraction) else number for number in dimension.numbers]
    return pa.array(values).take(pa.array([grid.places(cell)[place] for cell in cells], pa.int64()))
