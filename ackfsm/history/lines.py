"""Parse lines of JSON to Arrow columns: whole blocks on a fast path, otherwise line by line.

The fast path gives a block to ``pyarrow.json``.  It takes only blocks about which both paths
agree: every line begins with ``{`` and ends with ``}``, none nests deeply, the block is UTF-8, and
there are as many rows as lines (so no line held two objects, and no object two lines).  Any other
block is read line by line, which finds the unreadable lines and says what is wrong with each.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from ackfsm.history.arrays import Ints
from ackfsm.history.check import check
from ackfsm.history.format import FIELDS, HEADER_KEY, Kind
from ackfsm.text import shown

REPORTED = 10
"""How many unreadable lines are described; the others are only counted."""

ARROW = {Kind.TEXT: pa.string(), Kind.WHOLE: pa.int64(), Kind.FLAG: pa.bool_()}
"""The type in Arrow of what a field holds."""

SCHEMA = pa.schema([(name, ARROW[kind]) for name, kind in FIELDS.items()])
"""The columns of a history, in Arrow."""
_WITH_HEADERS = SCHEMA.append(pa.field(HEADER_KEY, pa.int64()))

_BRACKETS = 100
"""How many opening brackets a line may have on the fast path; an event has one, and nesting is not bounded there."""

_NAME = re.compile(rb'[{,]\s*"([^"\\]*)"\s*:')
"""The name of a field, where it has no escapes."""

_INT64 = range(-(2**63), 2**63)
_BLANK = b" \t\r"


@dataclasses.dataclass(frozen=True, slots=True)
class ParseError:
    """One line (of a Parquet file: row) that is no event: its number from 1 in its file, and why.

    ``part`` names the file where a history has several.  What ``why`` quotes of the line is escaped and cut.
    """

    line: int
    why: str
    part: str | None = None

    def __str__(self) -> str:
        if self.part is None:
            return f"line {self.line}: {self.why}"
        unit = "row" if self.part.endswith(".parquet") else "line"
        return f"{shown(self.part)}, {unit} {self.line}: {self.why}"


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """The events of some lines.

    Attributes:
        events: a record batch of :data:`SCHEMA`, one row for every readable line, in their order.
        lines: the number of the line of each row.
        unreadable: the first few lines that are no events.
        unreadable_count: how many there are.
        ignored: the names of fields that the format does not have.
    """

    events: pa.RecordBatch
    lines: Ints
    unreadable: tuple[ParseError, ...]
    unreadable_count: int
    ignored: frozenset[str] = frozenset()


def parse_block(data: bytes, first: int = 1, part: str | None = None) -> Parsed:
    """Parse whole lines, separated by line feeds; ``first`` is the number of the first of them (in ``part``)."""
    starts, ends = _bounds(data)
    return _parsed(data, starts, ends, np.arange(first, first + len(starts)), part)


def parse_lines(data: bytes, numbers: Ints, part: str | None = None) -> Parsed:
    """The same of lines that need not be neighbours and have these ``numbers``."""
    return _parsed(data, *_bounds(data), numbers, part)


def _parsed(data: bytes, starts: Ints, ends: Ints, numbers: Ints, part: str | None) -> Parsed:
    filled = ends > starts
    starts, ends, numbers = starts[filled], ends[filled], numbers[filled]
    events = _at_once(data, starts, ends)
    if events is not None:
        parsed = drop_invalid(events, numbers, part=part)
    else:
        lines = zip(starts.tolist(), ends.tolist(), numbers.tolist(), strict=True)
        parsed = _one_by_one(((number, data[start:end]) for start, end, number in lines), part)
    return dataclasses.replace(parsed, ignored=_not_of_the_format(data))


def _not_of_the_format(data: bytes) -> frozenset[str]:
    """The names in ``data`` of fields that the format does not have, also of those inside the value of such a field."""
    names = {name.decode(errors="replace") for name in set(_NAME.findall(data))}
    return frozenset(names.difference(FIELDS, [HEADER_KEY]))


def drop_invalid(
    events: pa.RecordBatch,
    lines: Ints,
    earlier: Sequence[ParseError] = (),
    part: str | None = None,
) -> Parsed:
    """Take out the rows of ``events`` that are no events of format 1, and add them to those found ``earlier``."""
    found = check(events)
    described = [ParseError(int(lines[row]), why, part) for row, why in found.describe(REPORTED)]
    first = sorted([*described, *earlier], key=lambda each: each.line)[:REPORTED]
    count = len(found.bad) + len(earlier)
    if len(found.bad):
        good = np.ones(len(lines), bool)
        good[found.bad] = False
        events, lines = events.filter(pa.array(good)), lines[good]
    return Parsed(events, lines, tuple(first), count)


def _bounds(data: bytes) -> tuple[Ints, Ints]:
    """Where each line begins and ends, without its line feed and the carriage return before it."""
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw == ord("\n"))
    if len(raw) and raw[-1] != ord("\n"):
        ends = np.append(ends, len(raw))
    starts = np.concatenate([np.zeros(min(1, len(ends)), np.int64), ends[:-1] + 1])
    returns = (ends > starts) & (raw[ends - 1] == ord("\r")) if len(ends) else np.zeros(0, bool)
    return starts, ends - returns


def _at_once(data: bytes, starts: Ints, ends: Ints) -> pa.RecordBatch | None:
    """The rows of a block by ``pyarrow.json``, or ``None`` where it would not tell good lines from bad ones.

    ``pyarrow.json`` checks neither line ends nor UTF-8, and crashes on a bare ``null`` at the start of a block.
    """
    raw = np.frombuffer(data, np.uint8)
    if not len(starts) or (raw[starts] != ord("{")).any() or (raw[ends - 1] != ord("}")).any():
        return None
    if _nests_deeply(data, starts):
        return None
    try:
        data.decode()
        table = pyarrow.json.read_json(
            pa.BufferReader(data),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pyarrow.json.ParseOptions(explicit_schema=_WITH_HEADERS, unexpected_field_behavior="ignore"),
        )
    except (UnicodeDecodeError, pa.ArrowException):
        return None
    if table.num_rows != len(starts) or table[HEADER_KEY].null_count != len(starts):
        return None
    return table.select(SCHEMA.names).combine_chunks().to_batches()[0]


def _nests_deeply(data: bytes, starts: Ints) -> bool:
    """Whether a line may nest too deeply for the fast path; lines are looked at only if the block has many brackets."""
    if data.count(b"{") + data.count(b"[") <= len(starts) + _BRACKETS:
        return False
    raw = np.frombuffer(data, np.uint8)
    opening = (raw == ord("{")) | (raw == ord("["))
    return bool(np.add.reduceat(opening, starts, dtype=np.int32).max() > _BRACKETS)


class _NotAnEventError(ValueError):
    """A line that is no event; the message says why."""


def _one_by_one(lines: Iterable[tuple[int, bytes]], part: str | None) -> Parsed:
    rows, numbers, unreadable = [], [], []
    for number, line in lines:
        if not line.strip(_BLANK):
            continue
        try:
            rows.append(_parse_line(line))
            numbers.append(number)
        except _NotAnEventError as error:
            unreadable.append(ParseError(number, str(error), part))
    return drop_invalid(pa.RecordBatch.from_pylist(rows, SCHEMA), np.array(numbers, np.int64), unreadable, part)


def _parse_line(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line.decode(), object_pairs_hook=_Object)
    except UnicodeDecodeError as error:
        raise _NotAnEventError(f"it is not UTF-8 (byte {error.start + 1})") from None
    except RecursionError:
        raise _NotAnEventError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise _NotAnEventError(f"it is not JSON ({error.msg}, column {error.colno})") from None
    except ValueError as error:
        raise _NotAnEventError(f"it is not JSON that can be read ({error})") from None
    if not isinstance(value, _Object):
        raise _NotAnEventError("it is JSON but not an object")
    return dict(_fields(value))


class _Object(list[tuple[str, Any]]):
    """A JSON object with its members as they stand in the text, so that none hides another."""


def _fields(members: _Object) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for name, value in members:
        if name == HEADER_KEY and value is not None:
            raise _NotAnEventError("it is a header, which may only be the first line")
        if name not in FIELDS:
            continue
        if name in seen:
            raise _NotAnEventError(f"`{name}` stands in it twice")
        seen.add(name)
        if value is not None and not _IS[FIELDS[name]](value):
            raise _NotAnEventError(f"`{name}` is not {FIELDS[name].value}")
        yield name, value


def _is_text(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in _INT64


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


_IS = {Kind.TEXT: _is_text, Kind.WHOLE: _is_whole, Kind.FLAG: _is_flag}
