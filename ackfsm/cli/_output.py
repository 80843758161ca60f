"""What goes to standard output and standard error: a result that is lost is an error, a note may be lost."""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

from ackfsm.terms import HostError
from ackfsm.text import printable

__all__ = ["flush", "hand_out", "is_standard_output", "make_fit", "note", "put", "put_json", "settle", "writing"]

_PLAIN: Final = {
    "→": "->",
    "←": "<-",
    "…": "...",
    "×": "x",  # noqa: RUF001 - it is this one
    "·": "*",
    "•": "*",
    "–": "-",  # noqa: RUF001 - it is this one
    "—": "-",
    "✓": "+",
    "≥": ">=",
}
"""What replaces our own signs where the encoding lacks them; other characters are escaped."""

_CHOSEN: Final = frozenset({"ignore", "namereplace", "replace", "xmlcharrefreplace"})
"""Error handlers that Python never chooses itself: somebody has asked for them with ``PYTHONIOENCODING``."""

_NAMES: Final = frozenset({"-", "/dev/fd/1", "/dev/stdout", "/proc/self/fd/1"})


def is_standard_output(path: Path) -> bool:
    """Whether ``path`` is a name of standard output, which is written to as it is open, after what it has."""
    return str(path) in _NAMES


def put(text: str) -> None:
    """Print ``text`` for a person or a program.  Raises :class:`HostError` if it cannot be written."""
    with writing() as out:
        out.write(text)


def put_json(value: object) -> None:
    """Print ``value`` as JSON.  Raises as :func:`put`."""
    put(f"{json.dumps(value, indent=2)}\n")


def hand_out(file: str | bytes) -> None:
    """Print what could stand in a file: as UTF-8, whatever the terminal has.  Raises as :func:`put`."""
    with writing() as out:
        if isinstance(out, io.StringIO) and isinstance(file, str):  # a program has us print into its own text
            out.write(file)
            return
        out.flush()
        out.buffer.write(file.encode() if isinstance(file, str) else file)


def flush() -> None:
    """Have everything written by now, while there is still somebody to tell.  Raises as :func:`put`."""
    with writing() as out:
        out.flush()


@contextlib.contextmanager
def writing() -> Iterator[TextIO]:
    """Standard output.  Raises :class:`HostError` if it cannot be written."""
    if sys.stdout is None:
        raise HostError("standard output is closed; what was to be written is lost")
    try:
        yield sys.stdout
    except BrokenPipeError:
        raise HostError("nobody read standard output to its end; what was not read is lost") from None
    except OSError as error:
        raise HostError(f"standard output cannot be written ({error.strerror}); what it lacks is lost") from None


def note(sentence: str) -> None:
    """Say one line on standard error; if nobody can hear it that changes nothing."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(printable(sentence), file=sys.stderr, flush=True)


def make_fit() -> None:
    """Make the streams of this process such that writing to them ends in nothing but an :class:`OSError`.

    Where the encoding lacks a character another one replaces it.  A stream that is closed becomes one that refuses what
    is written (standard output) or drops it (standard error), so that no file that is opened later gets its number.
    Standard output is buffered whatever ``PYTHONUNBUFFERED`` says.
    """
    codecs.register_error(__name__, _instead)
    if sys.stdin is None:
        sys.stdin = open(os.open(os.devnull, os.O_RDONLY), encoding="utf-8")  # noqa: PTH123, SIM115 - for the whole process
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as above
    if sys.stderr is None:
        sys.stderr = open(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as above
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and isinstance(out.buffer, io.RawIOBase):
        # PYTHONUNBUFFERED: what one write does not take would be lost without an error
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(out.buffer), encoding=out.encoding, errors=out.errors, line_buffering=True
        )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors not in _CHOSEN:
            stream.reconfigure(errors=__name__)


def _instead(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    plain = (_PLAIN.get(character) or character.encode("unicode_escape").decode() for character in lacking)
    return "".join(plain), error.end


def settle() -> None:
    """Let nothing be left that Python would try to write, in vain and aloud, when the process ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
            stream.flush()
