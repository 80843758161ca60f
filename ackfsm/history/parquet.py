"""Read a history, or a part of one, from Parquet."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from ackfsm.history.arrays import Ints
from ackfsm.history.format import ALWAYS, FIELDS, Kind
from ackfsm.history.header import Header, header_of_metadata
from ackfsm.history.lines import ARROW, SCHEMA, Parsed, drop_invalid
from ackfsm.terms import InputError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

ROWS = 1 << 17
"""How many rows are read at a time."""

_REQUIRED = (*ALWAYS, "message")


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pt.is_dictionary(kind) else kind
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


_IS: Mapping[Kind, Callable[[pa.DataType], bool]] = MappingProxyType(
    {Kind.TEXT: _is_text, Kind.WHOLE: pt.is_integer, Kind.FLAG: pt.is_boolean}
)


def parquet_header(file: pq.ParquetFile, place: str) -> Header | None:
    """The header in the schema metadata of ``file``; raises :class:`InputError`, which begins with ``place``."""
    schema = file.schema_arrow
    header = header_of_metadata(schema.metadata, f"{place}, schema metadata")
    # Of an entry that is there twice, ``metadata`` shows the first alone.
    if header is not None and not schema.equals(schema.with_metadata(schema.metadata), check_metadata=True):
        raise InputError(f"{place}, schema metadata: an entry stands in it twice; write the file again")
    return header


def parse_parquet(file: pq.ParquetFile, name: str, part: str | None) -> Iterator[Parsed]:
    """The events of ``file``, :data:`ROWS` rows at a time; ``part`` is its name where a history has several files.

    Raises :class:`InputError`, which begins with ``name``, if a column is missing or of the wrong type.
    """
    present = columns_of(file.schema_arrow, name)
    row = 1
    for batch in file.iter_batches(batch_size=ROWS, columns=present):
        rows = whole_rows(batch, np.arange(row, row + len(batch)), part)
        yield dataclasses.replace(rows, ignored=not_of_the_format(file.schema_arrow))
        row += len(batch)


def not_of_the_format(schema: pa.Schema) -> frozenset[str]:
    """The columns that the format does not have."""
    return frozenset(schema.names).difference(FIELDS)


def whole_rows(batch: pa.RecordBatch, lines: Ints, part: str | None) -> Parsed:
    """The events of ``batch``, whose rows have the numbers ``lines``."""
    return drop_invalid(_whole_batch(batch), lines, part=part)


def columns_of(
    schema: pa.Schema, part: str, *, fields: Mapping[str, Kind] = FIELDS, required: Sequence[str] = _REQUIRED
) -> Sequence[str]:
    """The columns of the format that the file, which messages call ``part``, has, each once and of the right type.

    Raises :class:`InputError` if one is ``required`` and missing, or is not what ``fields`` say.
    """
    for name in required:
        if name not in schema.names:
            raise InputError(f"{part} has no column {name!r}; every history has {', '.join(required)}")
    present = [name for name in fields if name in schema.names]
    for name in present:
        if len(schema.get_all_field_indices(name)) > 1:
            raise InputError(f"{part} has two columns {name!r}; keep one of them")
        kind, right = schema.field(name).type, fields[name]
        if not (pt.is_null(kind) or _IS[right](kind)):
            raise InputError(f"{part}: the column {name!r} is {kind}; write it as {ARROW[right]} ({right})")
    return present


def _whole_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with every column of the format, absent ones null."""
    columns = [
        batch[field.name].cast(field.type) if field.name in batch.schema.names else pa.nulls(len(batch), field.type)
        for field in SCHEMA
    ]
    whole = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    whole.validate(full=True)  # text that is not UTF-8
    return whole
