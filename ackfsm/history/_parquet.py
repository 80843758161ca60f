"""A history in Parquet: one file, or a directory of parts that are one history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from ackfsm.history._format import ALWAYS, FIELDS, Kind
from ackfsm.history._header import Header, header_beside, header_of_metadata
from ackfsm.history._lines import SCHEMA, Parsed, keep_readable
from ackfsm.terms import InputError

__all__ = ["columns_of", "parquet_header", "parquet_parts", "parse_parquet"]

ROWS = 1 << 17
"""How many rows are read at a time."""

_REQUIRED = (*ALWAYS, "message")


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pt.is_dictionary(kind) else kind
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


_IS: Mapping[Kind, Callable[[pa.DataType], bool]] = MappingProxyType(
    {Kind.TEXT: _is_text, Kind.WHOLE: pt.is_integer, Kind.FLAG: pt.is_boolean}
)


def parquet_parts(path: Path) -> list[Path]:
    """The Parquet files that are the history at ``path``, in the order of their names."""
    if not path.is_dir():
        return [path]
    parts = sorted(part for part in path.glob("*.parquet") if part.is_file())
    if not parts:
        raise InputError(f"{path} is a directory without Parquet parts; name a history, or write parts *.parquet to it")
    return parts


def parquet_header(path: Path) -> Header | None:
    """The header of the history at ``path``: of its schema metadata, or of ``PATH.header.json`` beside it."""
    headers = {part: header for part in parquet_parts(path) if (header := _header_of_part(part)) is not None}
    for part, header in headers.items():
        first = next(iter(headers))
        if header.config != headers[first].config:
            raise InputError(f"{part} has another configuration than {first.name}; keep one history in a directory")
    beside = path.with_name(f"{path.name}.header.json")
    if not headers and beside.is_file():
        return header_beside(beside)
    return next(iter(headers.values()), None)


def parse_parquet(path: Path) -> Iterator[Parsed]:
    """The events of the history at ``path``, :data:`ROWS` rows at a time; the number of a row counts in its part."""
    for part in parquet_parts(path):
        with _opened(part) as file:
            yield from _parse_part(file, part, several=path.is_dir())


def _parse_part(file: pq.ParquetFile, part: Path, *, several: bool) -> Iterator[Parsed]:
    present = columns_of(file.schema_arrow, part)
    row = 1
    for batch in file.iter_batches(batch_size=ROWS, columns=present):
        events = _whole_batch(batch)
        yield keep_readable(events, np.arange(row, row + len(events)), part=part.name if several else None)
        row += len(events)


def _header_of_part(part: Path) -> Header | None:
    with _opened(part) as file:
        return header_of_metadata(file.schema_arrow.metadata, f"{part}, schema metadata")


@contextmanager
def _opened(part: Path) -> Iterator[pq.ParquetFile]:
    try:
        if part.stat().st_size == 0:
            raise InputError(f"{part} is empty; record the history again")
        with pq.ParquetFile(part) as file:
            yield file
    except FileNotFoundError:
        raise InputError(f"there is no file {part}; name a history") from None
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{part} cannot be read as Parquet ({reason}); write or copy it again") from None


def columns_of(schema: pa.Schema, part: Path) -> Sequence[str]:
    """The columns of the format that the file has, each once and of the right type."""
    for name in _REQUIRED:
        if name not in schema.names:
            raise InputError(f"{part} has no column {name!r}; every history has {', '.join(_REQUIRED)}")
    present = [name for name in FIELDS if name in schema.names]
    for name in present:
        if len(schema.get_all_field_indices(name)) > 1:
            raise InputError(f"{part} has two columns {name!r}; keep one of them")
        kind, right = schema.field(name).type, FIELDS[name]
        if not (pt.is_null(kind) or _IS[right](kind)):
            raise InputError(f"{part}: the column {name!r} is {kind}; write it as {SCHEMA.field(name).type} ({right})")
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
