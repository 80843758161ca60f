"""What a recorder saw at rest, as its lines say it: calls that wait, and how many messages a queue holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ackfsm.history_format import Event

__all__ = ["SEEN_AT_REST", "Remark", "remarks_in"]

SEEN_AT_REST: Final = (Event.WAITING, Event.DEPTH)
"""The events that a recorder sees when nothing happens any more."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A line of what was seen at rest: the fields of a ``waiting`` or a ``depth``."""

    t: int
    event: str
    process: str
    session: str | None
    queue: str | None
    message: str | None
    error: str | None
    position: int | None
    delivery_count: int | None


def remarks_in(batch: pa.RecordBatch) -> Iterator[Remark]:
    """Those in a batch of events, in the order of its rows."""
    names = [field.name for field in dataclasses.fields(Remark)]
    rows = pc.is_in(batch["event"], value_set=pa.array(SEEN_AT_REST, pa.string()))
    yield from (Remark(**row) for row in batch.select(names).filter(rows).to_pylist())
