"""A history on disk as chunks that can be loaded in any order, and again: row groups of Parquet, or blocks of lines."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ackfsm.terms import Fault, InputError
from ackfsm.verify import _kernel as kernel
from ackfsm.verify._arrays import Ints, Mask
from ackfsm.verify._columns import ABSENT, Encoded, concatenated, encode
from ackfsm.verify._format import EVENTS, NAMED_MESSAGE_SCOPES, NEEDS, VOCABULARY, Event, event_code
from ackfsm.verify._header import Header
from ackfsm.verify._lines import REPORTED, Parsed, ParseError, parse_block
from ackfsm.verify._open import input_errors, opened
from ackfsm.verify._parquet import columns_of, whole_rows
from ackfsm.verify._read import headers_beside
from ackfsm.verify._source import Form, Source, source_of
from ackfsm.verify._summary import Chunk

__all__ = ["BeyondFoldError", "Chunks", "chunks_of"]

LINES_AT_ONCE: Final = 48 << 20
"""Bytes of text in a chunk."""

ROWS_AT_ONCE: Final = 1 << 19
"""Rows of Parquet in a chunk, at least, and as many more as its last row group has."""

LINES_PARSED_AT_ONCE: Final = 4 << 20
"""Bytes of text that are parsed at a time: with more the parser is slower."""

_CODED: Final = ("process", "event", "queue", "message", "session", "delivery_mode", "scope", "fault", "transaction")
_NAMED: Final = ("process", "queue", "message", "session", "transaction")
_FEW: Final = ("process", "queue", "session")
_READ: Final = (*_CODED, "t", "redelivered", "delivery_count", "error")


_FOLDED: Final = tuple(
    event_code(event)
    for event in (
        *(Event.SEND, Event.RESEND, Event.CONFIRMED, Event.REJECTED, Event.IN_DOUBT),
        *(Event.DELIVERED, Event.PROCESSED, Event.FAILED, Event.ACKNOWLEDGE, Event.ACKNOWLEDGED, Event.ACK_IN_DOUBT),
        *(Event.BEGIN, Event.COMMIT, Event.COMMITTED, Event.COMMIT_IN_DOUBT, Event.ROLLBACK, Event.ROLLED_BACK),
        *(Event.RECOVER, Event.CLOSE, Event.FAULT, Event.RECOVERED, Event.EXPIRED, Event.DEAD_LETTERED),
        *(Event.DRAINED, Event.JOURNAL_WRITTEN, Event.JOURNAL_SYNCED),
    )
)
_SCOPED: Final = (Event.ACKNOWLEDGE, Event.ACKNOWLEDGED, Event.ACK_IN_DOUBT)
_FATE: Final = ("nemesis", "broker")


class BeyondFoldError(Exception):
    """A history tells what the fold does not know yet; it is examined at once."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Piece:
    """Where a chunk is: a file, and of it row groups or bytes, and the number of the first row or line."""

    file: Path
    begin: int
    end: int
    first: int


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Chunks:
    """The chunks of a history.

    Attributes:
        path: where the history is.
        header: its header.
        size: about how many events it has.
    """

    path: Path
    header: Header | None
    size: int
    source: Source
    _pieces: Sequence[_Piece]
    _load: Callable[[Source, _Piece], Iterator[Parsed | Encoded]]

    def __len__(self) -> int:
        return len(self._pieces)

    def load(self, place: int) -> Chunk:
        """The chunk of a number from 0; raises :class:`InputError` as :func:`ackfsm.verify.read` does."""
        columns, unreadable, count = list[Encoded](), list[ParseError](), 0
        piece = self._pieces[place]
        with input_errors(self.source.name_of(piece.file)):
            for each in self._load(self.source, piece):
                if isinstance(each, Encoded):
                    columns.append(each)
                    continue
                columns.append(encode(each.events, each.lines))
                unreadable += each.unreadable[: REPORTED - len(unreadable)]
                count += each.unreadable_count
        events = concatenated(columns) if columns else None
        if events is not None and _goes_beyond(events):
            raise BeyondFoldError
        return Chunk(place=place, events=events, unreadable=tuple(unreadable), unreadable_count=count)


def _goes_beyond(events: Encoded) -> bool:
    """Whether lines are of other kinds than the fold knows: other events, ranges of outcomes, faults with a victim."""
    event, fault = events.numbers["event"], events.numbers["fault"]
    scoped = (events.numbers["scope"] >= 0) & ~np.isin(event, [event_code(each) for each in _SCOPED])
    if scoped.any() or (fault >= len(Fault)).any() or not np.isin(event, _FOLDED).all():
        return True
    rows = pa.array(np.flatnonzero(np.isin(event, [event_code(Event.FAULT), event_code(Event.RECOVERED)])))
    process, session, queue = (events.named[name].take(rows).to_pylist() for name in ("process", "session", "queue"))
    return any(each not in _FATE for each in process) or session != process or any(each is not None for each in queue)


def chunks_of(path: str | Path) -> Chunks | None:
    """The chunks of the history at ``path``; ``None`` if it cannot be read in pieces: a pipe, or gzipped.

    Raises :class:`InputError` as :func:`ackfsm.verify.read` does where a file as a whole is at fault.
    """
    source = source_of(path)
    if not source.regular:
        return None
    headers, pieces, size, forms = headers_beside(source), list[_Piece](), 0, set[Form]()
    for file in source.files:
        with opened(source, file) as part:
            if part.gzipped:
                return None
            headers.add(part.header, source.name_of(file))
            forms.add(part.form)
            if part.form is Form.PARQUET:
                found, rows = _row_groups(file, source.name_of(file))
            else:
                found, rows = _blocks(file, from_line=1 if part.header is None else 2)
            pieces += found
            size += rows
    if len(forms) != 1:
        return None
    load = _rows if forms == {Form.PARQUET} else _lines
    return Chunks(source.path, headers.merged(), size, source, tuple(pieces), load)


def _row_groups(file: Path, name: str) -> tuple[list[_Piece], int]:
    with input_errors(name), pq.ParquetFile(file) as parquet:
        columns_of(parquet.schema_arrow, name)
        found, row, begin, first = list[_Piece](), 1, 0, 1
        for group in range(parquet.num_row_groups):
            row += parquet.metadata.row_group(group).num_rows
            if row - first >= ROWS_AT_ONCE or group + 1 == parquet.num_row_groups:
                found.append(_Piece(file, begin, group + 1, first))
                begin, first = group + 1, row
    return found, row - 1


def _blocks(file: Path, from_line: int) -> tuple[list[_Piece], int]:
    """Blocks of whole lines; the number of lines is a guess from above."""
    found, line = [], 1
    with file.open("rb") as stream:
        if from_line == 2:  # noqa: PLR2004 - after the header
            stream.readline()
            line = 2
        begin = stream.tell()
        while data := stream.read(LINES_AT_ONCE):
            more = b"" if data.endswith(b"\n") else stream.readline()
            end = begin + len(data) + len(more)
            found.append(_Piece(file, begin, end, line))
            line += data.count(b"\n") + more.count(b"\n")
            begin = end
    return found, line


def _lines(source: Source, piece: _Piece) -> Iterator[Parsed]:
    with piece.file.open("rb") as stream:
        stream.seek(piece.begin)
        data = stream.read(piece.end - piece.begin)
    if len(data) < piece.end - piece.begin:
        raise InputError(f"{source.name_of(piece.file)} was cut while it was read; verify it when nothing writes to it")
    begin, line = 0, piece.first
    while begin < len(data):
        end = data.find(b"\n", min(begin + LINES_PARSED_AT_ONCE, len(data) - 1)) + 1 or len(data)
        yield parse_block(data[begin:end], line, source.part_of(piece.file))
        line += data.count(b"\n", begin, end)
        begin = end


def _rows(source: Source, piece: _Piece) -> Iterator[Parsed | Encoded]:
    name = source.name_of(piece.file)
    with pq.ParquetFile(piece.file) as plain:
        present = columns_of(plain.schema_arrow, name)
        texts = [each for each in _CODED if each in present and _is_plain_text(plain.schema_arrow.field(each).type)]
    with pq.ParquetFile(piece.file, read_dictionary=texts) as file:
        columns = [each for each in _READ if each in present]
        groups = list(range(piece.begin, piece.end))
        table = file.read_row_groups(groups, columns=columns, use_threads=False)
        if not len(table):
            return
        encoded = _encoded(table, piece.first)
        if encoded is not None:
            yield encoded
            return
        table = file.read_row_groups(groups, columns=present, use_threads=False)
        row = piece.first
        for batch in table.to_batches():
            yield whole_rows(batch, row, source.part_of(piece.file))
            row += len(batch)


def _is_plain_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _encoded(table: pa.Table, first: int) -> Encoded | None:
    """The rows as they are encoded, or ``None`` if some of them may be no events: then they are looked at carefully."""
    table.validate(full=True)  # text that is not UTF-8
    coded = {name: _coded(table, name) for name in _CODED}
    numbers = {name: _places(*coded[name], VOCABULARY[name]) for name in VOCABULARY}
    numbers |= {
        "t": _whole(table, "t"),
        "redelivered": _flags(table),
        "delivery_count": _whole(table, "delivery_count"),
        "errs": _present(table, "error").astype(np.int8),
        "line": np.arange(first, first + len(table)),
    }
    if not _all_events(table, coded, numbers):
        return None
    named = {name: coded[name] for name in _NAMED}
    absent = named["session"][0] < 0
    if absent.any():
        named["session"] = _session_or_process(named["session"], named["process"])
    return Encoded(
        numbers, {name: pa.DictionaryArray.from_arrays(*_by_appearance(name, *its)) for name, its in named.items()}
    )


def _coded(table: pa.Table, name: str) -> tuple[Any, pa.Array]:
    """The places of the values of a column among its distinct values, -1 for null, and these."""
    if name not in table.column_names or pa.types.is_null(table[name].type):
        return np.full(len(table), ABSENT, np.int32), pa.array([], pa.string())
    column = table[name]
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    column = column.unify_dictionaries().combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0)
    indices = column.indices
    if indices.null_count:
        indices = indices.fill_null(ABSENT)
    return np.asarray(indices).astype(np.int32, copy=False), column.dictionary.cast(pa.string())


def _places(codes: Any, values: pa.Array, legal: Sequence[str]) -> Any:
    """The places of the values in their vocabulary, -1 for null and -2 for what is not in it."""
    known = np.asarray(pc.index_in(values, value_set=pa.array(legal, pa.string())).fill_null(-2).cast(pa.int8()))
    return np.append(known, np.int8(ABSENT))[codes]


def _whole(table: pa.Table, name: str) -> Ints:
    if name not in table.column_names:
        return np.full(len(table), ABSENT, np.int64)
    column = table[name].cast(pa.int64()).combine_chunks()
    return np.asarray(column.fill_null(ABSENT) if column.null_count else column)


def _flags(table: pa.Table) -> Any:
    if "redelivered" not in table.column_names:
        return np.full(len(table), ABSENT, np.int8)
    return np.asarray(table["redelivered"].cast(pa.int8()).fill_null(ABSENT).combine_chunks())


def _present(table: pa.Table, name: str) -> Mask:
    if name not in table.column_names:
        return np.zeros(len(table), bool)
    return np.asarray(table[name].is_valid().combine_chunks().to_numpy(zero_copy_only=False))


def _all_events(table: pa.Table, coded: dict[str, tuple[Any, pa.Array]], numbers: dict[str, Any]) -> bool:
    """Whether all rows obey the rules of the format; these are the rules of :func:`ackfsm.verify._check.check`."""
    counted = "delivery_count" in table.column_names
    bad = [
        (numbers["t"] < 0).any(),
        (coded["process"][0] < 0).any(),
        (numbers["event"] < 0).any(),
        *((numbers[name] < ABSENT).any() for name in VOCABULARY),
        counted and (np.asarray(table["delivery_count"].fill_null(0).combine_chunks()) < 0).any(),
    ]
    if any(bad):
        return False
    absent = {
        "message": coded["message"][0] < 0,
        "redelivered": numbers["redelivered"] < 0,
        "scope": numbers["scope"] < 0,
        "transaction": coded["transaction"][0] < 0,
        "fault": numbers["fault"] < 0,
    }
    for field, needing in NEEDS.items():
        needed = np.array([event in needing for event in EVENTS])[numbers["event"]]
        if (needed & absent[field] if field in absent else needed).any():
            return False
    named = np.array([*(scope in NAMED_MESSAGE_SCOPES for scope in VOCABULARY["scope"]), False])
    return not (named[numbers["scope"]] & absent["message"]).any()


def _session_or_process(session: tuple[Any, pa.Array], process: tuple[Any, pa.Array]) -> tuple[Any, pa.Array]:
    both = pa.concat_arrays([session[1], process[1]]).dictionary_encode()
    places = np.asarray(both.indices)
    codes = np.where(session[0] < 0, len(session[1]) + process[0], session[0])
    return places[codes].astype(np.int32), both.dictionary


def _by_appearance(name: str, codes: Any, values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The codes and values with those values first that come first; of a few values, of others as they are."""
    if name in _FEW:
        order = np.full(len(values), ABSENT, np.int32)
        count = kernel.number_by_appearance(codes, order, codes := np.empty_like(codes)) if len(codes) else 0
        values = values.take(pa.array(order[:count]))
    return pa.array(codes, mask=codes < 0 if (codes < 0).any() else None), values
