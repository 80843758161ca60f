"""Anybody's CSV, JSON lines, Parquet or lines of text, by a mapping."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from ackfsm.history.importing.convert import convert
from ackfsm.history.importing.interface import Options, Problems
from ackfsm.history.importing.mapping import Mapped, read_mapping
from ackfsm.history.importing.rows import BATCH
from ackfsm.history.importing.streams import STANDARD_INPUT, lines, opened, suffix_of
from ackfsm.history.open import input_errors
from ackfsm.terms import InputError
from ackfsm.text import quoted, shown

_BLOCK: Final = 4 << 20
"""Bytes of CSV that are parsed at a time."""

_PEEKED: Final = 1 << 16
"""Bytes in which a CSV file has its line of names."""

_BY_SUFFIX: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys((".csv", ".tsv"), "csv"),
        **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
        ".parquet": "parquet",
        **dict.fromkeys((".log", ".txt"), "lines"),
    }
)


def importer(options: Options) -> TableImporter:
    """What reads tables by the mapping of ``options``; raises :class:`InputError` for one that is wrong."""
    if options.mapping is None:
        raise InputError("a table needs a mapping; name its file with --mapping")
    return TableImporter(read_mapping(options.mapping))


class TableImporter:
    """Reads tables by a mapping."""

    def __init__(self, mapped: Mapped) -> None:
        self.mapped = mapped

    @property
    def cannot_show(self) -> Mapping[str, str]:
        """Return the events that the mapping does not give."""
        return self.mapped.cannot_show

    @property
    def header(self) -> Mapping[str, Any]:
        """Return the mapping's part of the header of the history: ``config``, ``api`` and ``note``."""
        return self.mapped.header

    def batches(self, paths: Sequence[Path], problems: Problems) -> Iterator[pa.RecordBatch]:
        """The events of the rows; see :class:`ackfsm.history.importing.Importer`."""
        for path in paths:
            row = 1
            for piece in pieces(path, self.mapped, problems):
                found = convert(piece, self.mapped)
                for reason, places in found.unread:
                    problems.unread(reason, path, row=row + int(places[0]), count=len(places))
                for what, count in found.left_out.items():
                    problems.left_out(what, count)
                row += piece.num_rows
                for begin in range(0, found.events.num_rows, BATCH):
                    yield found.events.slice(begin, BATCH)


def pieces(path: Path, mapped: Mapped, problems: Problems) -> Iterator[pa.RecordBatch]:
    """The columns that the mapping needs, in pieces.

    Raises :class:`InputError` where the file is at fault, or lacks a column.
    """
    kind = mapped.input or _BY_SUFFIX.get(suffix_of(path))
    if path.is_dir():
        raise InputError(f"{shown(str(path))} is a folder; name its files")
    if kind is None:
        raise InputError(
            f"{shown(str(path))}: its name does not tell what it is; say `input: csv`, jsonl, parquet or lines in"
            f" {mapped.name}"
        )
    yield from _READERS[kind](path, mapped, problems)


def _of_csv(path: Path, mapped: Mapped, problems: Problems) -> Iterator[pa.RecordBatch]:
    name, wanted = shown(str(path)), list(mapped.columns())
    with opened(path) as stream:
        names = _names_of(stream, name, mapped)
        for column in wanted:
            if column not in names:
                raise _no_column(name, column, names, mapped)

        def skip(row: pyarrow.csv.InvalidRow) -> str:
            problems.unread(f"it has {row.actual_columns} columns, and not {row.expected_columns}", path)
            return "skip"

        how = mapped.csv
        try:
            reader = pyarrow.csv.open_csv(
                stream,
                pyarrow.csv.ReadOptions(
                    block_size=_BLOCK, column_names=list(how.columns) or None, encoding=how.encoding
                ),
                pyarrow.csv.ParseOptions(
                    delimiter=_delimiter(path, mapped),
                    quote_char=how.quote,
                    newlines_in_values=True,
                    invalid_row_handler=skip,
                ),
                pyarrow.csv.ConvertOptions(
                    include_columns=wanted,
                    column_types=dict.fromkeys(wanted, pa.string()),
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                    null_values=list(how.null),
                ),
            )
            yield from reader
        except (pa.ArrowInvalid, LookupError, UnicodeError) as error:
            raise InputError(
                f"{name} cannot be read as CSV ({_one_line(error)}); correct it, or `csv` in {mapped.name}"
            ) from None


def _names_of(stream: io.BufferedReader, name: str, mapped: Mapped) -> Sequence[str]:
    """Return the names of the columns: the mapping's, or the ones in the first line."""
    if mapped.csv.columns:
        return mapped.csv.columns
    text = stream.peek(_PEEKED).decode(mapped.csv.encoding, errors="replace").removeprefix("\ufeff")
    if not text.strip():
        raise InputError(f"{name} is empty; name a file with rows")
    return next(
        csv.reader(
            text.lstrip("\r\n").splitlines(), delimiter=_delimiter(Path(name), mapped), quotechar=mapped.csv.quote
        )
    )


def _delimiter(path: Path, mapped: Mapped) -> str:
    return "\t" if suffix_of(path) == ".tsv" and mapped.csv.delimiter == "," else mapped.csv.delimiter


def _no_column(name: str, column: str, names: Sequence[str], mapped: Mapped) -> InputError:
    there = ", ".join(map(quoted, names[:50]))
    return InputError(
        f"{name} has no column {quoted(column)}, which {mapped.name} names; it has {there}: correct the mapping"
    )


def _of_jsonl(path: Path, mapped: Mapped, problems: Problems) -> Iterator[pa.RecordBatch]:
    name, wanted = shown(str(path)), mapped.columns()
    seen = dict.fromkeys(wanted, False)
    rows: list[Any] = []
    decode = json.JSONDecoder(parse_int=str, parse_float=str).decode  # ids of digits stay as they stand there
    for number, line in lines(path):
        if number == 1 and line.lstrip()[:1] == b"[":
            raise InputError(f"{name} is one JSON array; write one object a line: jq -c '.[]' {name}")
        try:
            value = decode(line.decode())
        except (ValueError, RecursionError):
            problems.unread("it is not JSON", path, line=number)
            continue
        if not isinstance(value, dict):
            problems.unread("it is JSON but not an object", path, line=number)
            continue
        rows.append(value)
        if len(rows) >= BATCH:
            yield _columns(rows, wanted, seen)
            rows = []
    if rows:
        yield _columns(rows, wanted, seen)
    for column, there in seen.items():
        if not there:
            raise InputError(f"{name} has no key {quoted(column)} in any line, which {mapped.name} names; correct it")


def _columns(rows: Sequence[Mapping[str, Any]], wanted: Sequence[str], seen: dict[str, bool]) -> pa.RecordBatch:
    """The values of these keys as text; of a key inside an object as ``outer.inner``."""
    columns = []
    for column in wanted:
        values = [_inside(row, column) for row in rows]
        seen[column] |= any(value is not None for value in values)
        columns.append(pa.array(values, pa.string()))
    return pa.RecordBatch.from_arrays(columns, names=list(wanted))


def _inside(row: Mapping[str, Any], column: str) -> str | None:
    value: Any = row.get(column)
    if value is None and "." in column:
        value = row
        for step in column.split("."):
            value = value.get(step) if isinstance(value, dict) else None
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else json.dumps(value)


def _of_parquet(path: Path, mapped: Mapped, problems: Problems) -> Iterator[pa.RecordBatch]:
    del problems
    name = shown(str(path))
    if path == STANDARD_INPUT:
        raise InputError("Parquet cannot be read as a stream; write it to a file, and name that")
    with input_errors(name), pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        tops = [column if column in names else column.split(".")[0] for column in mapped.columns()]
        for column, top in zip(mapped.columns(), tops, strict=True):
            if top not in names:
                raise _no_column(name, column, names, mapped)
        yield from file.iter_batches(batch_size=BATCH, columns=list(dict.fromkeys(tops)))


def _of_lines(path: Path, mapped: Mapped, problems: Problems) -> Iterator[pa.RecordBatch]:
    texts: list[str] = []
    numbers: list[int] = []
    for number, line in lines(path):
        texts.append(line.decode(mapped.csv.encoding, errors="replace"))
        numbers.append(number)
        if len(texts) >= BATCH:
            yield _matched(path, texts, numbers, mapped, problems)
            texts, numbers = [], []
    if texts:
        yield _matched(path, texts, numbers, mapped, problems)


def _matched(
    path: Path, texts: Sequence[str], numbers: Sequence[int], mapped: Mapped, problems: Problems
) -> pa.RecordBatch:
    """The groups of the first pattern that matches, as columns; ``pattern`` is its number from 1 on."""
    left = pa.array(texts, pa.string())
    columns: dict[str, pa.Array] = {"pattern": pa.nulls(len(texts), pa.string())}
    nothing = pa.scalar(None, pa.string())
    for number, pattern in enumerate(mapped.patterns, 1):
        found = pc.extract_regex(left, pattern)
        matches = found.is_valid()
        columns["pattern"] = pc.if_else(matches, str(number), columns["pattern"])
        for field in found.type:
            its = pc.if_else(matches, pc.struct_field(found, field.name), nothing)
            columns[field.name] = pc.coalesce(columns[field.name], its) if field.name in columns else its
        left = pc.if_else(matches, nothing, left)
    others = left.is_valid()
    count = pc.sum(others).as_py() or 0
    if count and mapped.others_ignored:
        problems.left_out("lines that no pattern of the mapping matches", count)
    elif count:
        first = numbers[pc.index(others, True).as_py()]
        problems.unread("no pattern of the mapping matches it", path, line=first, count=count)
    return pa.RecordBatch.from_pydict(columns).filter(pc.invert(others))


_READERS: Mapping[str, Callable[[Path, Mapped, Problems], Iterator[pa.RecordBatch]]] = MappingProxyType(
    {"csv": _of_csv, "jsonl": _of_jsonl, "parquet": _of_parquet, "lines": _of_lines}
)


def _one_line(error: Exception) -> str:
    return shown(" ".join(str(error).split()))
