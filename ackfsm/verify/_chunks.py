"""A history on disk as chunks that can be loaded in any order, and again: row groups of Parquet, or blocks of lines."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ackfsm.terms import AckScope, InputError
from ackfsm.verify import _kernel as kernel
from ackfsm.verify._arrays import Ints, Mask
from ackfsm.verify._columns import ABSENT, Encoded, concatenated, encode
from ackfsm.verify._format import EVENTS, NAMED_MESSAGE_SCOPES, NEEDS, VOCABULARY, Event, event_code
from ackfsm.verify._header import Header
from ackfsm.verify._lines import REPORTED, Parsed, ParseError, parse_block
from ackfsm.verify._open import BLOCK, LONGEST_LINE, endless, input_errors, opened
from ackfsm.verify._parquet import columns_of, whole_rows
from ackfsm.verify._read import headers_beside
from ackfsm.verify._rest import Remark, remarks_in
from ackfsm.verify._source import Form, Source, source_of
from ackfsm.verify._summary import Chunk
from ackfsm.verify._victims import TOLD, NamedVictim, named_victims

__all__ = ["Chunks", "Told", "chunk_of", "chunks_of", "told_by"]

LINES_AT_ONCE: Final = 48 << 20
"""Bytes of text in a chunk."""

ROWS_AT_ONCE: Final = 1 << 19
"""Rows of Parquet in a chunk, at least, and as many more as its last row group has."""

_BYTES_A_LINE: Final = 100
"""About as long as a line is."""

PACKED_BYTES_A_LINE: Final = 10
"""About as long as a gzipped line is."""

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


class _Kind(Enum):
    """What a piece of a file is counted in."""

    ROWS = "row groups of Parquet"
    LINES = "bytes in which lines begin"
    PACKED = "a whole gzipped file"


@dataclasses.dataclass(frozen=True, slots=True)
class _Piece:
    """Where a chunk is.

    Attributes:
        kind: what the file is counted in.
        file: the file.
        begin, end: what of it.
        first: the number of the first row or line if it is known.
        cut: whether the end of a line of the piece before stands first.
    """

    kind: _Kind
    file: Path
    begin: int
    end: int
    first: int | None
    cut: bool = False


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Chunks:
    """The chunks of a history; they may be loaded by other processes that see the same files.

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

    def __len__(self) -> int:
        return len(self._pieces)

    def numbered(self) -> Chunks:
        """The same with the numbers of all lines, for which the files of lines are read to their ends."""
        pieces, line = list[_Piece](), 1
        for piece in self._pieces:
            line = line if piece.first is None else piece.first
            pieces.append(dataclasses.replace(piece, first=line))
            if piece.kind is _Kind.LINES:
                line += _lines_begun(piece)
        return dataclasses.replace(self, _pieces=tuple(pieces))

    def parsed(self, place: int) -> Iterator[tuple[str | None, Parsed]]:
        """What stands in the chunk of a number, with the name of its file where the history has several."""
        piece = self._pieces[place]
        with input_errors(self.source.name_of(piece.file)):
            for parsed in _PARSERS[piece.kind](self.source, piece):
                yield self.source.part_of(piece.file), parsed

    def load(self, place: int) -> Chunk:
        """The chunk of a number from 0; raises :class:`InputError` as :func:`ackfsm.verify.read` does."""
        piece = self._pieces[place]
        name = self.source.name_of(piece.file)
        with input_errors(name):
            return chunk_of(place, piece.first, _READERS[piece.kind](self.source, piece), name)


@dataclasses.dataclass(frozen=True, slots=True)
class Told:
    """What stands in some lines or rows, and how many they are."""

    told: Parsed | Encoded
    lines: int


def chunk_of(place: int, first_line: int | None, told: Iterable[Told], file: str) -> Chunk:
    """The chunk of these lines of ``file``, as messages call it; the others as :class:`Chunk` has them."""
    columns, lines = list[Encoded](), 0
    unreadable, count = list[ParseError](), 0
    remarks, victims = list[Remark](), list[NamedVictim]()
    for each in told:
        lines += each.lines
        if isinstance(each.told, Encoded):
            columns.append(each.told)
            continue
        parsed = each.told
        columns.append(encode(parsed.events, parsed.lines))
        remarks += remarks_in(parsed.events)
        victims += named_victims(parsed.events, parsed.lines, file)
        unreadable += parsed.unreadable[: REPORTED - len(unreadable)]
        count += parsed.unreadable_count
    events = concatenated(columns) if columns else None
    return Chunk(
        place=place,
        events=events,
        unreadable=tuple(unreadable),
        unreadable_count=count,
        first_line=first_line,
        lines=lines,
        remarks=tuple(remarks),
        victims=tuple(victims),
        beyond=bool(remarks or (events is not None and _goes_beyond(events))),
    )


def _goes_beyond(events: Encoded) -> bool:
    """Whether lines are of other kinds than the fold knows: other events, or a scope where there is none."""
    event, scope = events.numbers["event"], events.numbers["scope"]
    scoped = (scope >= 0) & ~np.isin(event, [event_code(each) for each in _SCOPED])
    scoped &= (event != event_code(Event.CONFIRMED)) | (scope == VOCABULARY["scope"].index(AckScope.SESSION))
    return bool(scoped.any() or not np.isin(event, _FOLDED).all())


def _names_victims(events: Encoded) -> bool:
    """Whether faults or repairs name a session or a queue, which has to be one that another line has."""
    rows = pa.array(np.flatnonzero(np.isin(events.numbers["event"], [event_code(each) for each in TOLD])))
    process, session, queue = (events.named[name].take(rows).to_pylist() for name in ("process", "session", "queue"))
    return session != process or any(each is not None for each in queue)


def chunks_of(path: str | Path) -> Chunks | None:
    """The chunks of the history at ``path``; ``None`` for a pipe, which cannot be read in pieces.

    Raises :class:`InputError` as :func:`ackfsm.verify.read` does where a file as a whole is at fault.
    """
    source = source_of(path)
    if not source.regular:
        return None
    headers, pieces, size = headers_beside(source), list[_Piece](), 0
    for file in source.files:
        with opened(source, file) as part:
            headers.add(part.header, source.name_of(file))
            if part.form is Form.PARQUET:
                found, rows = _row_groups(file, source.name_of(file))
            elif part.gzipped:
                found, rows = _packed(file)
            else:
                found, rows = _blocks(file, headed=part.header is not None)
            pieces += found
            size += rows
    return Chunks(source.path, headers.merged(), size, source, tuple(pieces))


def _row_groups(file: Path, name: str) -> tuple[list[_Piece], int]:
    with input_errors(name), pq.ParquetFile(file) as parquet:
        columns_of(parquet.schema_arrow, name)
        found, row, begin, first = list[_Piece](), 1, 0, 1
        for group in range(parquet.num_row_groups):
            row += parquet.metadata.row_group(group).num_rows
            if row - first >= ROWS_AT_ONCE or group + 1 == parquet.num_row_groups:
                found.append(_Piece(_Kind.ROWS, file, begin, group + 1, first))
                begin, first = group + 1, row
    return found, row - 1


def _packed(file: Path) -> tuple[list[_Piece], int]:
    """One that cannot be begun in its middle; the number of its lines is a guess from above."""
    size = file.stat().st_size
    return [_Piece(_Kind.PACKED, file, 0, size, 1)], size // PACKED_BYTES_A_LINE


def _blocks(file: Path, *, headed: bool) -> tuple[list[_Piece], int]:
    """Blocks of lines without the header; the number of the lines is a guess."""
    with file.open("rb") as stream:
        begin = len(stream.readline()) if headed else 0
    size = file.stat().st_size
    bounds = [*range(begin, max(size, begin + 1), LINES_AT_ONCE), size]
    found = [_Piece(_Kind.LINES, file, *its, None, cut=True) for its in itertools.pairwise(bounds)]
    found[0] = dataclasses.replace(found[0], first=2 if headed else 1, cut=False)
    return found, (size - begin) // _BYTES_A_LINE


def _told_lines(source: Source, piece: _Piece) -> Iterator[Told]:
    return (Told(parsed, lines) for parsed, lines in _blocks_of_lines(source, piece))


def _lines(source: Source, piece: _Piece) -> Iterator[Parsed]:
    return (parsed for parsed, _ in _blocks_of_lines(source, piece))


def _blocks_of_lines(source: Source, piece: _Piece) -> Iterator[tuple[Parsed, int]]:
    """The lines that begin in the piece, and how many there are."""
    name = source.name_of(piece.file)
    with piece.file.open("rb") as stream:
        stream.seek(piece.begin - piece.cut)
        if piece.cut:
            _rest_of_line(stream, name)
        begin = stream.tell()
        if begin >= piece.end:
            return
        data = stream.read(piece.end - begin)
        if not data.endswith(b"\n"):
            data += _rest_of_line(stream, name)
        if stream.tell() < piece.end:
            raise InputError(f"{name} was cut while it was read; verify it when nothing writes to it")
    begin, line = 0, piece.first or 1
    while begin < len(data):
        end = data.find(b"\n", min(begin + LINES_PARSED_AT_ONCE, len(data) - 1)) + 1 or len(data)
        lines = data.count(b"\n", begin, end)
        yield parse_block(data[begin:end], line, source.part_of(piece.file)), lines
        line += lines
        begin = end


def _rest_of_line(stream: IO[bytes], name: str) -> bytes:
    rest = stream.readline(LONGEST_LINE)
    if len(rest) == LONGEST_LINE:
        raise endless(name)
    return rest


def _lines_begun(piece: _Piece) -> int:
    """How many lines begin in the piece."""
    begin, end = piece.begin - piece.cut, piece.end - 1
    found = 0 if piece.cut else 1
    with piece.file.open("rb") as stream:
        stream.seek(begin)
        while data := stream.read(min(BLOCK, end - begin)):
            found += data.count(b"\n")
            begin += len(data)
    return found


def _unpacked(source: Source, piece: _Piece) -> Iterator[Parsed]:
    with opened(source, piece.file) as part:
        yield from part.parsed()


def _told_unpacked(source: Source, piece: _Piece) -> Iterator[Told]:
    return (Told(parsed, 0) for parsed in _unpacked(source, piece))  # nothing goes on where the file ends


def _parsed_rows(source: Source, piece: _Piece) -> Iterator[Parsed]:
    with pq.ParquetFile(piece.file) as file:
        present, row = columns_of(file.schema_arrow, source.name_of(piece.file)), piece.first or 1
        for batch in file.iter_batches(row_groups=list(range(piece.begin, piece.end)), columns=present):
            yield whole_rows(batch, np.arange(row, row + len(batch)), source.part_of(piece.file))
            row += len(batch)


def _rows(source: Source, piece: _Piece) -> Iterator[Told]:
    name = source.name_of(piece.file)
    with pq.ParquetFile(piece.file) as plain:
        present = columns_of(plain.schema_arrow, name)
        texts = [each for each in _CODED if each in present and _is_plain_text(plain.schema_arrow.field(each).type)]
    groups = list(range(piece.begin, piece.end))
    with pq.ParquetFile(piece.file, read_dictionary=texts) as file:
        columns = [each for each in _READ if each in present]
        table = file.read_row_groups(groups, columns=columns, use_threads=False)
        lines = np.arange(len(table)) + (piece.first or 1)
        whole = functools.partial(file.read_row_groups, groups, columns=present)
        yield from told_by(table, lines, source.part_of(piece.file), whole)


def told_by(table: pa.Table, lines: Ints, part: str | None, whole: Callable[[], pa.Table]) -> Iterator[Told]:
    """What stands in the rows of a ``table``, which have the numbers ``lines``; ``whole`` gives it with all columns."""
    if not len(table):
        return
    encoded = _encoded(table, lines)
    if encoded is not None and not _goes_beyond(encoded) and not _names_victims(encoded):
        yield Told(encoded, len(table))
        return
    begin = 0
    for batch in whole().to_batches():
        yield Told(whole_rows(batch, lines[begin : begin + len(batch)], part), len(batch))
        begin += len(batch)


_READERS: Final[Mapping[_Kind, Callable[[Source, _Piece], Iterator[Told]]]] = MappingProxyType(
    {_Kind.ROWS: _rows, _Kind.LINES: _told_lines, _Kind.PACKED: _told_unpacked}
)

_PARSERS: Final[Mapping[_Kind, Callable[[Source, _Piece], Iterator[Parsed]]]] = MappingProxyType(
    {_Kind.ROWS: _parsed_rows, _Kind.LINES: _lines, _Kind.PACKED: _unpacked}
)


def _is_plain_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _encoded(table: pa.Table, lines: Ints) -> Encoded | None:
    """The rows as they are encoded, or ``None`` if some of them may be no events: then they are looked at carefully."""
    table.validate(full=True)  # text that is not UTF-8
    coded = {name: _coded(table, name) for name in _CODED}
    numbers = {name: _places(*coded[name], VOCABULARY[name]) for name in VOCABULARY}
    numbers |= {
        "t": _whole(table, "t"),
        "redelivered": _flags(table),
        "delivery_count": _whole(table, "delivery_count"),
        "errs": _present(table, "error").astype(np.int8),
        "line": lines,
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
