"""Files that are imported, as streams: plain or gzipped, with errors as one sentence."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final

from ackfsm.history.open import endless, input_errors
from ackfsm.terms import InputError
from ackfsm.text import shown

STANDARD_INPUT: Final = Path("-")
"""Standard input; a file of that name is ``./-``."""

LONGEST_LINE: Final = 64 << 20
"""Bytes after which a line without end is given up."""

_GZIP: Final = b"\x1f\x8b"
_BUFFER: Final = 1 << 20
_SMALL_BUFFER: Final = 1 << 16

Progress = Callable[[int], None]
"""Is told how many bytes or rows were read."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader[Any]]:
    """The bytes at ``path``, unpacked if they are gzipped, whatever its name.

    What is done with them inside is covered too: raises :class:`InputError`, one sentence with the file and the remedy,
    if it is missing, cannot be read, or is truncated, and :class:`ackfsm.terms.HostError` where the machine fails.
    """
    name = "standard input" if path == STANDARD_INPUT else shown(str(path))
    with contextlib.ExitStack() as stack, input_errors(name, "another file"):
        if path == STANDARD_INPUT:
            raw = stack.enter_context(io.BufferedReader(os.fdopen(os.dup(0), "rb", 0), _BUFFER))
        elif path.is_dir():
            raise InputError(f"{name} is a folder; name its files")
        else:
            raw = stack.enter_context(io.BufferedReader(path.open("rb", 0), _BUFFER))
        if raw.peek(2)[:2] == _GZIP:
            packed = stack.enter_context(gzip.GzipFile(fileobj=raw))
            yield stack.enter_context(io.BufferedReader(packed, _BUFFER))
        else:
            yield raw


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of text at ``path``, without line ends, numbered from 1; blank ones are passed over.

    Raises as :func:`opened`.
    """
    with opened(path) as stream:
        for number, line in enumerate(iter(lambda: _line_of(stream, path), b""), 1):
            text = line.rstrip(b"\r\n")
            if text.strip():
                yield number, text


@dataclasses.dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a file.

    Attributes:
        path: the file.
        begin: where they begin in it; ``size`` is how many bytes they have.
        text: the lines, ``None`` for those of a file that can be cut: they are read where they are needed.
    """

    path: Path
    begin: int
    size: int
    text: bytes | None = None

    def lines(self) -> Iterator[bytes]:
        """The lines, without their ends.  Raises as :func:`opened`, and if the file has become shorter."""
        with self._opened() as stream:
            left = self.size
            while left > 0:
                line = _line_of(stream, self.path)
                if not line:
                    raise InputError(f"{shown(str(self.path))} was cut off while it was read; import it again")
                left -= len(line)
                yield line.rstrip(b"\r\n")

    @contextlib.contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        if self.text is not None:
            yield io.BytesIO(self.text)
            return
        with input_errors(shown(str(self.path))), self.path.open("rb", _BUFFER) as stream:
            stream.seek(self.begin)
            yield stream


def _line_of(stream: IO[bytes], path: Path) -> bytes:
    line = stream.readline(LONGEST_LINE)
    if len(line) == LONGEST_LINE:
        raise endless(shown(str(path)))
    return line


def can_be_cut(path: Path) -> bool:
    """Whether parts of ``path`` can be read by themselves: it is a file, and not gzipped."""
    if path == STANDARD_INPUT or not path.is_file():
        return False
    with input_errors(shown(str(path))), path.open("rb") as stream:
        return stream.read(len(_GZIP)) != _GZIP


def blocks(path: Path, size: int) -> Iterator[Block]:
    """The text at ``path`` in blocks of about ``size`` bytes, in their order.  Raises as :func:`opened`."""
    return _cut(path, size) if can_be_cut(path) else _read_through(path, size)


def _cut(path: Path, size: int) -> Iterator[Block]:
    with input_errors(shown(str(path))), path.open("rb", _SMALL_BUFFER) as stream:
        begin, whole = 0, os.fstat(stream.fileno()).st_size
        while begin < whole:
            stream.seek(min(begin + size, whole) - 1)
            _line_of(stream, path)  # what is left of the line
            yield Block(path, begin, stream.tell() - begin)
            begin = stream.tell()


def _read_through(path: Path, size: int) -> Iterator[Block]:
    gathered, begin, end = list[bytes](), 0, 0
    with opened(path) as stream:
        for line in iter(lambda: _line_of(stream, path), b""):
            gathered.append(line)
            end += len(line)
            if end - begin >= size:
                yield Block(path, begin, end - begin, b"".join(gathered))
                gathered, begin = [], end
    if gathered:
        yield Block(path, begin, end - begin, b"".join(gathered))


def suffix_of(path: Path) -> str:
    """The ending of a name without ``.gz``, in small letters: ``.csv`` of ``Night.CSV.gz``."""
    return Path(path.name.lower().removesuffix(".gz")).suffix
