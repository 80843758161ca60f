"""Files to a :class:`History`: JSONL, gzipped JSONL, a Parquet file, a directory of Parquet parts."""

from __future__ import annotations

import dataclasses
import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from types import MappingProxyType

from ackfsm.history._columns import Events, assemble, encode
from ackfsm.history._header import Header, header_of_line
from ackfsm.history._lines import REPORTED, Parsed, Unreadable, parse_block
from ackfsm.history._parquet import parquet_header, parse_parquet
from ackfsm.terms import InputError

__all__ = ["History", "is_parquet", "read", "read_header"]

BLOCK = 8 << 20
"""Bytes that are read and parsed at a time."""

LONGEST_LINE = 64 << 20
"""Bytes after which a line without end is given up."""

_NOT_JSONL: Mapping[bytes, str] = MappingProxyType(
    {
        b"\x1f\x8b": "is gzipped; name it .jsonl.gz",
        b"PAR1": "is Parquet; name it .parquet",
        b"\xef\xbb\xbf": "begins with a byte order mark; save it as UTF-8 without one",
    }
)


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class History:
    """A recorded history.

    Attributes:
        path: where it was read from.
        header: what it says of itself, ``None`` if it says nothing.
        events: its events as columns.
        unreadable: the first few lines that are no events.
        unreadable_count: how many such lines there are.
    """

    path: Path
    header: Header | None
    events: Events
    unreadable: tuple[Unreadable, ...]
    unreadable_count: int


def read(path: str | Path) -> History:
    """Read the history at ``path``.

    A line that is no event is counted and described, and the others are read.  Raises
    :class:`InputError`, one sentence with file, line and remedy, where the file as a whole is at
    fault: it is missing, empty, truncated, not what its name says, without any event, or its header is not known.
    """
    path = Path(path)
    header = read_header(path)
    columns, unreadable, count = [], list[Unreadable](), 0
    for parsed in parse_parquet(path) if is_parquet(path) else _parse_jsonl(path):
        columns.append(encode(parsed.events))
        unreadable += parsed.unreadable[: REPORTED - len(unreadable)]
        count += parsed.unreadable_count
    if not columns or not any(len(each) for each in columns):
        raise InputError(f"{path} has no event{_first_of(unreadable)}; a history has one a line (history format 1)")
    return History(
        path=path, header=header, events=assemble(columns), unreadable=tuple(unreadable), unreadable_count=count
    )


def read_header(path: str | Path) -> Header | None:
    """The header of the history at ``path``, ``None`` if it has none.

    Raises :class:`InputError` as :func:`read` does.
    """
    path = Path(path)
    if is_parquet(path):
        return parquet_header(path)
    with _opened(path) as stream:
        return header_of_line(_first_line(stream, path), f"{path}, line 1")


def is_parquet(path: Path) -> bool:
    """Whether the history at ``path`` is Parquet (by its name, or because it is a directory of parts)."""
    return path.is_dir() or path.suffix == ".parquet"


def _parse_jsonl(path: Path) -> Iterator[Parsed]:
    with _opened(path) as stream:
        first = _first_line(stream, path)
        line = 1
        if header_of_line(first, f"{path}, line 1") is None:
            yield parse_block(first, line)
        line += 1
        for block in _blocks(stream, path):
            yield parse_block(block, line)
            line += block.count(b"\n")


def _first_line(stream: BufferedIOBase, path: Path) -> bytes:
    first = stream.readline(LONGEST_LINE)
    if not first:
        raise InputError(f"{path} is empty; record the history again")
    for magic, what in _NOT_JSONL.items():
        if first.startswith(magic):
            raise InputError(f"{path} {what}")
    if len(first) == LONGEST_LINE:
        raise _endless(path)
    return first


def _blocks(stream: BufferedIOBase, path: Path) -> Iterator[bytes]:
    """The rest of ``stream`` in blocks of whole lines."""
    rest = b""
    while data := stream.read(BLOCK):
        rest += data
        whole = rest.rfind(b"\n") + 1
        if whole:
            yield rest[:whole]
            rest = rest[whole:]
        elif len(rest) > LONGEST_LINE:
            raise _endless(path)
    if rest:
        yield rest


def _endless(path: Path) -> InputError:
    return InputError(f"{path} has a line of more than {LONGEST_LINE} bytes; a history has one event a line")


@contextmanager
def _opened(path: Path) -> Iterator[BufferedIOBase]:
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            yield stream
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; name a history") from None
    except EOFError:
        raise InputError(f"{path} is a truncated gzip file; copy it again, or unpack what is left of it") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path} is not a whole gzip file ({error}); copy it again") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); make it readable") from None


def _first_of(unreadable: Sequence[Unreadable]) -> str:
    return f" that can be read ({unreadable[0]})" if unreadable else ""
