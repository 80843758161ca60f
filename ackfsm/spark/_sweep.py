"""A sweep of plans on Spark: the same function from cells to rows as in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa  # noqa: TC002 - as Spark is
from pyspark.sql import DataFrame, SparkSession  # noqa: TC002 - Spark is there wherever this module is
from pyspark.sql.pandas.types import from_arrow_schema

from ackfsm.rates.timing import Grid, Row, plan_cells
from ackfsm.rates.timing.table import SCHEMA, batch_of, rows_of
from ackfsm.spark._errors import spark_errors_translated
from ackfsm.tables import Specification
from ackfsm.tables.batch import loader
from ackfsm.terms import InputError

_CELLS_A_TASK: Final = 1_000
_MOST_TASKS: Final = 200

SWEEP_SCHEMA: Final = from_arrow_schema(SCHEMA)
"""The columns of a sweep, those of :class:`ackfsm.rates.timing.Row`."""


def swept(cells: DataFrame, grid: Grid, specification: Specification) -> DataFrame:
    """The plans of the cells of a grid whose numbers (from 0) are in the column ``cell``, or ``id``, of ``cells``.

    ``session.range(len(grid))`` has all of them; the rows come in no order.  The tables of ``specification`` are those
    that ship with the package, and profiles beside them whose files the workers see.  Raises
    :class:`ackfsm.terms.InputError` if there is no such column.
    """
    name = next((each for each in ("cell", "id") if each in cells.columns), None)
    if name is None:
        raise InputError("the table has no column cell or id; give the numbers of the cells: session.range(len(grid))")
    numbers = cells.selectExpr(f"cast({name} as bigint) as cell")
    return numbers.mapInArrow(_planning(grid, loader(specification)), SWEEP_SCHEMA)


def _planning(
    grid: Grid, load: Callable[[], Specification]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def planning(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch_of(plan_cells(grid, load(), batch.column(0).to_pylist()))

    return planning


def sweep(session: SparkSession, grid: Grid, specification: Specification) -> list[Row]:
    """The rows of all cells of a grid, in their order, planned on ``session``; its workers need this package.

    Raises :class:`ackfsm.terms.AckfsmError` if Spark gives up.
    """
    tasks = max(1, min(len(grid) // _CELLS_A_TASK, _MOST_TASKS))
    with spark_errors_translated("the sweep"):
        found = swept(session.range(0, len(grid), 1, tasks), grid, specification).toArrow()
    return [*rows_of(found.sort_by("cell"))]
