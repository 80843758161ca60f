"""Files that are imported, as streams: plain or gzipped, with errors as one sentence."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from ackfsm.terms import InputError
from ackfsm.text import shown
from ackfsm.verify.reading.open import endless, input_errors

__all__ = ["LONGEST_LINE", "STANDARD_INPUT", "Progress", "lines", "opened", "suffix_of"]

STANDARD_INPUT: Final = Path("-")
"""Standard input; a file of that name is ``./-``."""

LONGEST_LINE: Final = 64 << 20
"""Bytes after which a line without end is given up."""

_GZIP: Final = b"\x1f\x8b"
_BUFFER: Final = 1 << 20

Progress = Callable[[int], None]
"""Is told how many bytes or rows were read."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader[Any]]:
    """The bytes at ``path``, unpacked if they are gzipped, whatever its name.

    What is done with them inside is covered too: raises :class:`InputError`, one sentence with the file and the remedy,
    if it is missing, cannot be read, or is truncated, and :class:`ackfsm.terms.HostError` where the machine fails.
    """
    name = "standard input" if path == STANDARD_INPUT else shown(str(path))
    with contextlib.ExitStack() as stack, input_errors(name):
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
        for number, line in enumerate(iter(lambda: stream.readline(LONGEST_LINE), b""), 1):
            if len(line) == LONGEST_LINE:
                raise endless(shown(str(path)))
            text = line.rstrip(b"\r\n")
            if text.strip():
                yield number, text


def suffix_of(path: Path) -> str:
    """The ending of a name without ``.gz``, in small letters: ``.csv`` of ``Night.CSV.gz``."""
    return Path(path.name.lower().removesuffix(".gz")).suffix
