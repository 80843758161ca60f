"""Read lines: the plain ones in one pass over their bytes, the others by :mod:`ackfsm.history.lines`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ackfsm.history import scan as kernel
from ackfsm.history.arrays import Ints
from ackfsm.history.coded import Coded, encoded, uncertain
from ackfsm.history.gathered import ReadLines
from ackfsm.history.lines import Parsed, parse_lines
from ackfsm.history.scan import CODED, Text

LINES_PARSED_AT_ONCE: Final = 4 << 20
"""Bytes of text that are parsed at a time: with more the parser is slower."""


def read_lines(text: Text, first: int = 1, part: str | None = None) -> ReadLines:
    """What stands in whole lines, separated by line feeds; ``first`` is the number of the first of them (in ``part``).

    It is what :func:`ackfsm.history.lines.parse_block` finds in them.
    """
    lines = text.lines()
    most = lines + 1
    numbers, flags = np.empty((6, most), np.int64), np.empty((3, most), np.int8)
    codes = np.empty((most, len(CODED)), np.int32)
    count, names, counts = kernel.scan(text.words, text.raw, text.size, numbers, flags, codes)
    t, delivery_count, line, begins, ends, priority = (column[:count] for column in numbers)
    redelivered, errs, wide = (column[:count] for column in flags)
    bad = t == kernel.NOT_PLAIN
    if wide.any() and not _is_utf8(text):
        bad = bad | (wide == 1)
    texts = {
        name: (column.copy(), _values(text, names, place, counts[place]))
        for place, (name, column) in enumerate(zip(CODED, codes[:count].T, strict=True))
    }
    columns: dict[str, Any] = {
        "t": t,
        "redelivered": redelivered,
        "delivery_count": delivery_count,
        "priority": priority,
        "errs": errs,
        "line": line + first,
    }
    rows = Coded.of(texts, columns, bad)
    others = uncertain(rows)
    if not others.any():
        return ReadLines(encoded(rows) if count else None, (), lines)
    plain = None if others.all() else encoded(rows.take(~others), every=True)
    return ReadLines(plain, tuple(_parsed(text, begins[others], ends[others], columns["line"][others], part)), lines)


def _parsed(text: Text, begins: Ints, ends: Ints, numbers: Ints, part: str | None) -> Iterator[Parsed]:
    size = np.cumsum(ends - begins + 1)
    bounds = np.flatnonzero(np.diff(size // LINES_PARSED_AT_ONCE)) + 1
    for some in np.split(np.arange(len(begins)), bounds):
        lines = [text[begin:end] for begin, end in zip(begins[some].tolist(), ends[some].tolist(), strict=True)]
        yield parse_lines(b"\n".join(lines), numbers[some], part)


def _is_utf8(text: Text) -> bool:
    try:
        text[:].decode()
    except UnicodeDecodeError:
        return False
    return True


def _values(text: Text, names: Ints, column: int, count: int) -> pa.Array:
    """The distinct texts of a column."""
    offsets = np.zeros(count + 1, np.int32)
    data = np.empty(int(names[names[:, 2] == column, 1].sum()), np.uint8)
    kernel.copy_names(text.raw, names, column, offsets, data)
    return pa.StringArray.from_buffers(int(count), pa.py_buffer(offsets), pa.py_buffer(data))
