"""A history on disk as chunks that can be loaded in any order, and again: row groups of Parquet, or blocks of lines."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from ackfsm.history.arrays import Codes
from ackfsm.history.coded import read_rows
from ackfsm.history.columns import ABSENT, Encoded, concatenated
from ackfsm.history.gathered import Gathered, ReadLines, beyond
from ackfsm.history.header import Header
from ackfsm.history.lines import Parsed, parse_block
from ackfsm.history.open import BLOCK, LONGEST_LINE, endless, input_errors, opened
from ackfsm.history.parquet import columns_of, not_of_the_format, whole_rows
from ackfsm.history.plain_lines import LINES_PARSED_AT_ONCE, read_lines
from ackfsm.history.read import headers_beside
from ackfsm.history.scan import CODED, Text
from ackfsm.history.source import Form, Source, source_of
from ackfsm.terms import InputError
from ackfsm.verify.folding.summary import Chunk

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = ["Chunks", "chunk_of", "chunks_of"]

LINES_AT_ONCE: Final = 48 << 20
"""Bytes of text in a chunk."""

ROWS_AT_ONCE: Final = 1 << 19
"""Rows of Parquet in a chunk, at least, and as many more as its last row group has."""

_BYTES_A_LINE: Final = 100
"""About as long as a line is."""

PACKED_BYTES_A_LINE: Final = 10
"""About as long as a gzipped line is."""

_READ: Final = (*CODED, "t", "redelivered", "delivery_count", "priority", "error")


class _Kind(Enum):
    """The unit of a piece of a file."""

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


def chunk_of(place: int, first_line: int | None, parts: Iterable[ReadLines], file: str) -> Chunk:
    """The chunk of these lines of ``file``, as messages call it; the others as :class:`Chunk` has them."""
    gathered = Gathered()
    for each in parts:
        gathered.add(each, file)
    events = concatenated(gathered.columns) if gathered.columns else None
    return Chunk(
        place=place,
        events=events,
        unreadable=tuple(gathered.unreadable),
        unreadable_count=gathered.unreadable_count,
        first_line=first_line,
        lines=gathered.lines,
        remarks=tuple(gathered.remarks),
        ignored=frozenset(gathered.ignored),
        victims=tuple(gathered.victims),
        beyond=bool(gathered.remarks or (events is not None and beyond(events.numbers, _consumers(events)).any())),
    )


def _consumers(events: Encoded) -> Codes:
    return np.asarray(events.named["consumer"].indices.fill_null(ABSENT))


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


def _parquet_file(file: Path, texts: Sequence[str] = ()) -> pq.ParquetFile:
    """``file`` with the columns ``texts`` as dictionaries; a history of lines does without this part of PyArrow."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(file, read_dictionary=list(texts))


def _row_groups(file: Path, name: str) -> tuple[list[_Piece], int]:
    with input_errors(name), _parquet_file(file) as parquet:
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


def _read_lines(source: Source, piece: _Piece) -> Iterator[ReadLines]:
    yield read_lines(_text(source, piece), piece.first or 1, source.part_of(piece.file))


def _lines(source: Source, piece: _Piece) -> Iterator[Parsed]:
    data, begin, line = _text(source, piece)[:], 0, piece.first or 1
    while begin < len(data):
        end = data.find(b"\n", min(begin + LINES_PARSED_AT_ONCE, len(data) - 1)) + 1 or len(data)
        yield parse_block(data[begin:end], line, source.part_of(piece.file))
        line += data.count(b"\n", begin, end)
        begin = end


def _text(source: Source, piece: _Piece) -> Text:
    """The lines that begin in the piece."""
    name = source.name_of(piece.file)
    with piece.file.open("rb") as stream:
        stream.seek(piece.begin - piece.cut)
        if piece.cut:
            _rest_of_line(stream, name)
        begin = stream.tell()
        if begin >= piece.end:
            return Text(0)
        stream.seek(piece.end - 1)
        text = Text(piece.end - 1 + len(_rest_of_line(stream, name)) - begin)
        stream.seek(begin)
        if stream.readinto(text.raw[: text.size].data) < piece.end - begin:
            raise InputError(f"{name} was cut while it was read; verify it when nothing writes to it")
    return text


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


def _read_unpacked(source: Source, piece: _Piece) -> Iterator[ReadLines]:
    with opened(source, piece.file) as part:
        yield from part.lines()


def _parsed_rows(source: Source, piece: _Piece) -> Iterator[Parsed]:
    with _parquet_file(piece.file) as file:
        present, row = columns_of(file.schema_arrow, source.name_of(piece.file)), piece.first or 1
        for batch in file.iter_batches(row_groups=list(range(piece.begin, piece.end)), columns=present):
            yield whole_rows(batch, np.arange(row, row + len(batch)), source.part_of(piece.file))
            row += len(batch)


def _rows(source: Source, piece: _Piece) -> Iterator[ReadLines]:
    name = source.name_of(piece.file)
    with _parquet_file(piece.file) as plain:
        present = columns_of(plain.schema_arrow, name)
        texts = [each for each in CODED if each in present and _is_plain_text(plain.schema_arrow.field(each).type)]
    groups = list(range(piece.begin, piece.end))
    with _parquet_file(piece.file, texts) as file:
        columns = [each for each in _READ if each in present]
        table = file.read_row_groups(groups, columns=columns, use_threads=False)
        lines = np.arange(len(table)) + (piece.first or 1)
        whole = functools.partial(file.read_row_groups, groups, columns=present)
        yield ReadLines(None, (), 0, not_of_the_format(plain.schema_arrow))
        yield from read_rows(table, lines, source.part_of(piece.file), whole)


_READERS: Final[Mapping[_Kind, Callable[[Source, _Piece], Iterator[ReadLines]]]] = MappingProxyType(
    {_Kind.ROWS: _rows, _Kind.LINES: _read_lines, _Kind.PACKED: _read_unpacked}
)

_PARSERS: Final[Mapping[_Kind, Callable[[Source, _Piece], Iterator[Parsed]]]] = MappingProxyType(
    {_Kind.ROWS: _parsed_rows, _Kind.LINES: _lines, _Kind.PACKED: _unpacked}
)


def _is_plain_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
