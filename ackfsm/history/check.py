"""Validate rows against history format 1, and describe the mistakes of the others.

The rules are vectorised: each gives a mask over the rows of a batch, and a sentence for one row.
They hold for every source of rows alike: JSON lines, Parquet, text that Spark hands over.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.format import (
    ACKNOWLEDGE_TIMEOUT,
    ALWAYS,
    NAMED_MESSAGE_SCOPES,
    NEEDS,
    NOT_NEGATIVE,
    RANGED,
    TELLERS,
    VOCABULARY,
    Call,
    Event,
)
from ackfsm.terms import AckScope
from ackfsm.text import quoted


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A mistake of some rows, and its sentence, with the row's fields to be filled in."""

    broken: Mask
    sentence: str


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The rows that break a rule, ascending, and the rules."""

    events: pa.RecordBatch
    bad: Ints
    rules: tuple[Rule, ...]

    def describe(self, limit: int) -> Iterator[tuple[int, str]]:
        """The first ``limit`` bad rows, each with the first rule that it breaks, in words."""
        for row in self.bad[:limit].tolist():
            sentence = next(rule.sentence for rule in self.rules if rule.broken[row])
            fields = self.events.slice(row, 1).to_pylist()[0]
            yield row, sentence.format(**{k: _Quoted(v) if isinstance(v, str) else v for k, v in fields.items()})


class _Quoted(str):
    """Text of a row, which ``!r`` shows in quotation marks, escaped and short."""

    __slots__ = ()

    def __repr__(self) -> str:
        return quoted(self)


def check(events: pa.RecordBatch) -> Found:
    """Find the rows of ``events`` (columns of the format, well typed) that are no events of format 1."""
    rules = tuple(rule for rule in _rules(events) if rule.broken.any())
    broken = np.zeros(events.num_rows, bool)
    for rule in rules:
        broken |= rule.broken
    return Found(events, np.flatnonzero(broken), rules)


def codes(events: pa.RecordBatch, field: str) -> npt.NDArray[np.int8]:
    """Return the values of a field, per row, as places in its vocabulary; -1 for null and for unknown values."""
    if events[field].null_count == events.num_rows:
        return np.full(events.num_rows, -1, np.int8)
    found = pc.index_in(events[field], value_set=pa.array(VOCABULARY[field], pa.string()))
    return np.asarray(found.fill_null(-1).cast(pa.int8()))


def _rules(events: pa.RecordBatch) -> Iterator[Rule]:
    nothing = functools.reduce(np.logical_and, [_absent(events, field) for field in ALWAYS])
    yield Rule(nothing & ~_absent(events, "error"), "an importer could not read it: {error!r}")
    for field in ALWAYS:
        yield Rule(_absent(events, field), f"`{field}` is missing")
    coded = {field: codes(events, field) for field in VOCABULARY}
    for field, legal in VOCABULARY.items():
        unknown = (coded[field] < 0) & ~_absent(events, field)
        yield Rule(unknown, f"there is no {field} {{{field}!r}}; it is one of {', '.join(legal)}")
    for field in NOT_NEGATIVE:
        yield Rule(_is_negative(events, field), f"`{field}` is negative ({{{field}}})")
    event, scope, fault = coded["event"], coded["scope"], coded["fault"]
    for field, needing in NEEDS.items():
        needed = _is_one_of(event, "event", needing)
        yield Rule(needed & _absent(events, field), f"{{event}} needs `{field}`")
    named = _is_one_of(scope, "scope", NAMED_MESSAGE_SCOPES)
    yield Rule(named & _absent(events, "message"), "the scope {scope} needs `message`")
    whole = _is_one_of(scope, "scope", (AckScope.SESSION,)) & _is_one_of(event, "event", RANGED)
    yield Rule(whole, "{event} has the scope message or up_to")
    waiting, depth = (_is_one_of(event, "event", (each,)) for each in (Event.WAITING, Event.DEPTH))
    if waiting.any():
        called = np.asarray(pc.is_in(events["error"], value_set=pa.array([*Call], pa.string())))
        yield Rule(waiting & ~called, f"there is no call {{error!r}}; it is one of {', '.join(Call)}")
    yield Rule(depth & _is_negative(events, "position"), "`position` is negative ({position})")
    timeout = _is_one_of(fault, "fault", (ACKNOWLEDGE_TIMEOUT,))
    if timeout.any():
        told = np.asarray(pc.is_in(events["process"], value_set=pa.array(TELLERS, pa.string())))
        yield Rule(timeout & told & _absent(events, "session"), "acknowledge_timeout needs the `session` that called")


def _is_one_of(coded: npt.NDArray[np.int8], field: str, values: Iterable[str]) -> Mask:
    """Return a mask of the :func:`codes` of a field that stand for one of these values."""
    those = np.zeros(len(VOCABULARY[field]) + 1, bool)  # the last is that of -1
    those[[VOCABULARY[field].index(value) for value in values]] = True
    return those[coded]


def _is_negative(events: pa.RecordBatch, field: str) -> Mask:
    if events[field].null_count == events.num_rows:
        return np.zeros(events.num_rows, bool)
    return np.asarray(events[field].fill_null(0)) < 0


def _absent(events: pa.RecordBatch, field: str) -> Mask:
    if events[field].null_count in {0, events.num_rows}:
        return np.full(events.num_rows, bool(events[field].null_count))
    return np.asarray(events[field].is_null().to_numpy(zero_copy_only=False))
