"""Record batches of events that come one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from ackfsm.history.lines import SCHEMA

BATCH: Final = 1 << 16
"""Rows of a batch."""

_NAMES: Final = tuple(SCHEMA.names)


class Rows:
    """Gathers events, and gives them away in batches.

    An importer adds events and yields what is full; at the end, what is left::

        rows = Rows()
        for ... in ...:
            rows.add(t=1_000, process="producer-1", event="send", message="m1", queue="orders")
            yield from rows.full()
        yield from rows.rest()
    """

    def __init__(self) -> None:
        self._columns: dict[str, list[Any]] = {name: [] for name in _NAMES}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, **fields: Any) -> None:
        """Add one event; fields that it has not are left out, or ``None``.

        Raises :class:`KeyError` for what is no field of format 1.
        """
        for name, value in fields.items():
            column = self._columns[name]
            missing = self._count - len(column)
            if missing:
                column.extend([None] * missing)
            column.append(value)
        self._count += 1

    def full(self) -> Iterator[pa.RecordBatch]:
        """A batch, if there are enough events for one."""
        if self._count >= BATCH:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """A batch of what there is, if there is anything.

        Raises :class:`pyarrow.ArrowException` for a value of the wrong type: that is a defect of the importer.
        """
        if self._count:
            columns, count = self._columns, self._count
            self._columns, self._count = {name: [] for name in _NAMES}, 0
            for column in columns.values():
                column.extend([None] * (count - len(column)))
            arrays = [pa.array(columns[field.name], field.type) for field in SCHEMA]
            yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def batch_of(columns: Mapping[str, pa.Array], count: int) -> pa.RecordBatch:
    """Return a batch of ``count`` rows of whole columns, each of its right type; absent columns are null."""
    arrays = [columns.get(field.name, None) for field in SCHEMA]
    whole = [
        pa.nulls(count, field.type) if array is None else array for field, array in zip(SCHEMA, arrays, strict=True)
    ]
    return pa.RecordBatch.from_arrays(whole, schema=SCHEMA)
