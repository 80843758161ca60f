"""Any table of Spark as a history, by a mapping: what ``ackfsm import table`` makes of the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame  # noqa: TC002 - Spark is there wherever this module is

from ackfsm.history.importing.convert import convert
from ackfsm.history.importing.mapping import Mapped, read_mapping
from ackfsm.spark._tables import HISTORY_COLUMNS, HISTORY_SCHEMA, placed
from ackfsm.terms import InputError
from ackfsm.text import quoted

_LINES_OF_A_TASK: Final = 40
"""Bits for the number of a row among those of one task."""


def mapped(rows: DataFrame, mapping: Mapped | Path | str) -> DataFrame:
    """The events that ``rows`` tell of, with the columns of :data:`ackfsm.spark.HISTORY_SCHEMA`.

    Args:
        rows: any table; the columns that the mapping names may be of any type that it can read.
        mapping: a mapping (docs/importing.md), or its file.  How files are written (``input``, ``csv``, ``lines``) is
            not looked at.

    What cannot be read becomes a row with ``unreadable``, which leaves the verdict ``unknown``; rows that the mapping
    says to ignore are left out.  Give :func:`ackfsm.spark.verify` what the source cannot show, too:
    ``cannot_show=mapping.cannot_show``.  Raises :class:`ackfsm.terms.InputError` for a column that is missing.
    """
    known = mapping if isinstance(mapping, Mapped) else read_mapping(Path(mapping))
    needed = []
    for column in known.columns():
        top = column if column in rows.columns else column.split(".")[0]
        if top not in rows.columns:
            there = ", ".join(map(quoted, rows.columns))
            raise InputError(f"the table has no column {quoted(column)}, which {known.name} names; it has {there}")
        needed.append(top)
    chosen = rows.select(*(f"`{name}`" for name in dict.fromkeys(needed)))
    return chosen.mapInArrow(_converting(known), HISTORY_SCHEMA)


def _converting(mapping: Mapped) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def converted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        line = (context.partitionId() if context else 0) << _LINES_OF_A_TASK
        for batch in batches:
            found = convert(batch, mapping)
            reasons = [reason for reason, places in found.unread for _ in places]
            yield placed(found.events, None, np.arange(line, line + found.events.num_rows))
            line += found.events.num_rows
            if reasons:
                rows = [{"line": number, "unreadable": why} for number, why in enumerate(reasons, start=line)]
                yield pa.RecordBatch.from_pylist(rows, HISTORY_COLUMNS)
                line += len(reasons)

    return converted
