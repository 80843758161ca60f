"""Open a file of a history once: header and events come from the same stream, which may be a pipe."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, Final, TypeVar

import pyarrow as pa

from ackfsm.history.gathered import ReadLines
from ackfsm.history.header import Header, header_of_line
from ackfsm.history.lines import Parsed, parse_block
from ackfsm.history.parquet import parquet_header, parse_parquet
from ackfsm.history.plain_lines import read_lines
from ackfsm.history.scan import Text
from ackfsm.history.source import Form, Source
from ackfsm.support.files import cannot_read
from ackfsm.terms import AckfsmError, InputError

BLOCK = 8 << 20
"""Bytes that are read and parsed at a time."""

LONGEST_LINE = 64 << 20
"""Bytes after which a line without end is given up."""

_SCANNED_FROM: Final = 6 << 20
"""Bytes from which on it is worth loading compiled code."""

_GZIP: Final = b"\x1f\x8b"
_PARQUET: Final = b"PAR1"
_UNPACK: Final = "unpack it, or pack it with gzip"
_CONVERT: Final = "write it as JSONL or Parquet"
_FOREIGN: Mapping[bytes, str] = MappingProxyType(
    {
        _GZIP: "is gzipped twice; unpack it once",
        _PARQUET: "is Parquet inside gzip; unpack it",
        b"\x28\xb5\x2f\xfd": f"is packed with zstd; {_UNPACK}",
        b"BZh": f"is packed with bzip2; {_UNPACK}",
        b"\xfd7zXZ\x00": f"is packed with xz; {_UNPACK}",
        b"\x04\x22\x4d\x18": f"is packed with lz4; {_UNPACK}",
        b"\xff\x06\x00\x00sNaPpY": f"is packed with snappy; {_UNPACK}",
        b"\x1f\x9d": f"is packed with compress; {_UNPACK}",
        b"PK\x03\x04": f"is a zip archive; {_UNPACK}",
        b"7z\xbc\xaf\x27\x1c": f"is a 7z archive; {_UNPACK}",
        b"Obj\x01": f"is Avro; {_CONVERT}",
        b"ORC": f"is ORC; {_CONVERT}",
        b"SQLite format 3\x00": f"is an SQLite database; {_CONVERT}",
        b"\xef\xbb\xbf": "begins with a byte order mark; save it as UTF-8 without one",
        b"\xff\xfe": "is UTF-16; save it as UTF-8",
        b"\xfe\xff": "is UTF-16; save it as UTF-8",
    }
)
"""What a stream that is no JSONL begins with."""

_Read = TypeVar("_Read")

_HEAD: Final = max(map(len, _FOREIGN))


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """One open file of a history.

    Attributes:
        form: how its events are stored.
        gzipped: whether it is packed.
        header: its own header, ``None`` if it has none.
        parsed: gives its events, once; raises :class:`InputError` where the file turns out to be at fault.
        lines: the same, encoded where they are plain.
    """

    form: Form
    gzipped: bool
    header: Header | None
    parsed: Callable[[], Iterator[Parsed]]
    lines: Callable[[], Iterator[ReadLines]]


@contextlib.contextmanager
def opened(source: Source, file: Path) -> Iterator[Part]:
    """Open ``file`` of ``source``, and look at its beginning.

    Raises :class:`InputError`, one sentence with the file and the remedy, if it is no history, and
    :class:`ackfsm.terms.HostError` where the machine fails.
    """
    name = source.name_of(file)
    with contextlib.ExitStack() as stack:
        with input_errors(name):
            stream = stack.enter_context(_stream(source, file))
            head = stream.read(_HEAD)
            if not head:
                raise InputError(f"{name} is empty; record the history again")
            this = _Opened(stack, stream, head, name, source.part_of(file))
            if _form(source, file, head) is Form.PARQUET:
                part = _parquet(this)
            else:
                part = _lines(this, packed=file.suffix == ".gz")
        yield part


@dataclasses.dataclass(frozen=True, slots=True)
class _Opened:
    """A stream, its first bytes, the name of its file, and the file as a part; ``stack`` closes it."""

    stack: contextlib.ExitStack
    stream: IO[bytes]
    head: bytes
    name: str
    part: str | None


def _stream(source: Source, file: Path) -> IO[bytes]:
    return os.fdopen(os.dup(0), "rb") if source.standard_input else file.open("rb")


def _form(source: Source, file: Path, head: bytes) -> Form:
    """Return the form of ``file``: its first bytes tell Parquet, by any name; in a folder the name must not lie."""
    named = Form.PARQUET if file.suffix == ".parquet" and source.regular else Form.LINES
    found = Form.PARQUET if head.startswith(_PARQUET) else named
    name = source.name_of(file)
    if found is Form.PARQUET and not source.regular:
        raise InputError(f"{name} is Parquet, which cannot be read as a stream; write it to a file, and name that")
    if found is not named and source.is_folder:
        raise InputError(f"{name} is Parquet; name it .parquet")
    return found


def _parquet(this: _Opened) -> Part:
    import pyarrow.parquet as pq  # reading lines needs none of it

    this.stream.seek(0)
    file = this.stack.enter_context(pq.ParquetFile(this.stream))

    def parsed() -> Iterator[Parsed]:
        return _with_errors_of(this.name, parse_parquet(file, this.name, this.part))

    return Part(
        form=Form.PARQUET,
        gzipped=False,
        header=parquet_header(file, this.name),
        parsed=parsed,
        lines=lambda: map(_as_parsed, parsed()),
    )


def _read_block(block: bytes, first: int, part: str | None) -> ReadLines:
    if len(block) < _SCANNED_FROM:
        return _as_parsed(parse_block(block, first, part))
    return read_lines(Text.of(block), first, part)


def _as_parsed(parsed: Parsed) -> ReadLines:
    return ReadLines(None, (parsed,), len(parsed.lines) + parsed.unreadable_count)


def _lines(this: _Opened, *, packed: bool) -> Part:
    """The lines of a stream that is gzipped or not; ``packed`` is what its name says of that."""
    text, gzipped = _from_the_beginning(this), this.head.startswith(_GZIP)
    if gzipped:
        text = this.stack.enter_context(gzip.GzipFile(fileobj=text))  # type: ignore[arg-type] # any IO[bytes] will do
    else:
        _refuse_foreign(this.head, this.name)
        if packed:
            raise InputError(f"{this.name} is not a whole gzip file (it does not begin as one); copy it again")
    first = _first_line(text, this.name)
    header = header_of_line(first, f"{this.name}, line 1")
    size = os.fstat(this.stream.fileno()).st_size

    def blocks() -> Iterator[tuple[bytes, int]]:
        if header is None:
            yield first, 1
        line = 2
        for block in _blocks(text, this.name):
            yield block, line
            line += block.count(b"\n")
        if os.fstat(this.stream.fileno()).st_size < size:
            raise InputError(f"{this.name} was cut while it was read; verify it when nothing writes to it")

    return Part(
        form=Form.LINES,
        gzipped=gzipped,
        header=header,
        parsed=lambda: _with_errors_of(this.name, (parse_block(block, line, this.part) for block, line in blocks())),
        lines=lambda: _with_errors_of(this.name, (_read_block(block, line, this.part) for block, line in blocks())),
    )


def _from_the_beginning(this: _Opened) -> IO[bytes]:
    if this.stream.seekable():
        this.stream.seek(-len(this.head), os.SEEK_CUR)
        return this.stream
    return io.BufferedReader(_Again(this.head, this.stream), BLOCK)


class _Again(io.RawIOBase):
    """A stream whose beginning was read already."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # of a writable buffer
        data = self._head or self._rest.read1(len(buffer))  # type: ignore[attr-defined] # it is buffered
        data, self._head = data[: len(buffer)], self._head[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


def _first_line(stream: IO[bytes], name: str) -> bytes:
    first = stream.readline(LONGEST_LINE)
    if not first:
        raise InputError(f"{name} is empty; record the history again")
    _refuse_foreign(first, name)
    if len(first) == LONGEST_LINE:
        raise endless(name)
    return first


def _refuse_foreign(head: bytes, name: str) -> None:
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise InputError(f"{name} {what}")


def _blocks(stream: IO[bytes], name: str) -> Iterator[bytes]:
    """The rest of ``stream`` in blocks of whole lines."""
    rest = b""
    while data := stream.read(BLOCK):
        rest += data
        whole = rest.rfind(b"\n") + 1
        if whole:
            yield rest[:whole]
            rest = rest[whole:]
        elif len(rest) > LONGEST_LINE:
            raise endless(name)
    if rest:
        yield rest


def endless(name: str) -> InputError:
    """Return the error for a file with a line that has no end."""
    return InputError(f"{name} has a line of more than {LONGEST_LINE} bytes; a history has one event a line")


def _with_errors_of(name: str, parts: Iterator[_Read]) -> Iterator[_Read]:
    with input_errors(name):
        yield from parts


@contextlib.contextmanager
def input_errors(name: str, wanted: str = "a history") -> Iterator[None]:
    """Raise errors of reading as one sentence about ``name``, already shown, and the ``wanted`` form."""
    try:
        yield
    except (AckfsmError, MemoryError):
        raise
    except EOFError:
        raise InputError(f"{name} is a truncated gzip file; copy it again, or unpack what is left of it") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{name} is not a whole gzip file ({error}); copy it again") from None
    except OSError as error:
        if error.errno is None:
            raise _not_parquet(name, error) from None
        raise cannot_read(name, error, wanted) from None
    except pa.ArrowException as error:
        raise _not_parquet(name, error) from None


def _not_parquet(name: str, error: Exception) -> InputError:
    reason = " ".join(str(error).split())
    return InputError(f"{name} cannot be read as Parquet ({reason}); write or copy it again")
