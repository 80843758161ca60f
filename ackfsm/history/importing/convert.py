"""Columns of somebody's table as events of history format 1, a batch at a time, as a mapping says."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from ackfsm.history.format import EVENTS, NEEDS, Event
from ackfsm.history.importing.mapping import Chosen, Flag, Mapped, Number, Row, Told, When, Words
from ackfsm.history.importing.rows import batch_of
from ackfsm.history.importing.times import nanoseconds, tolerant
from ackfsm.terms import InputError
from ackfsm.text import quoted

Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

_MOST_VALUES: Final = 20
"""So many values that the mapping lacks are named, each as a reason of its own."""

_ONLY_OF: Mapping[str, tuple[Event, ...]] = {
    "redelivered": NEEDS["redelivered"],
    "delivery_count": (Event.DELIVERED, Event.DEPTH),
    "position": NEEDS["position"],
    "scope": NEEDS["scope"],
    "fault": NEEDS["fault"],
    "outcome": (Event.FAILED,),
    "priority": (Event.SEND, Event.RESEND),
    "consumer": (Event.DELIVERED, Event.CLOSE),
    "error": (
        *(Event.REJECTED, Event.IN_DOUBT, Event.FAILED, Event.ACK_IN_DOUBT, Event.COMMIT_IN_DOUBT, Event.CLOSE),
        Event.WAITING,
    ),
}
"""The fields that other events do not have: of those, what stands in a column that all rows have is left out."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Converted:
    """The events of a batch of rows.

    Attributes:
        events: a batch of the columns of format 1, in the order of the rows.
        unread: why rows tell nothing although they should, and the places of these rows in the batch.
        left_out: how many rows were left out, as the mapping says, by what they are.
    """

    events: pa.RecordBatch
    unread: tuple[tuple[str, Ints], ...]
    left_out: Mapping[str, int]


class _Unread:
    """Which rows could not be read, each for the first reason that was found."""

    def __init__(self, rows: int) -> None:
        self.bad: Mask = np.zeros(rows, bool)
        self.found: list[tuple[str, Ints]] = []

    def add(self, reason: str, rows: Mask) -> None:
        new = rows & ~self.bad
        if new.any():
            self.found.append((reason, np.flatnonzero(new)))
            self.bad |= new

    def add_values(self, column: str, lacking: str, texts: pa.Array, rows: Mask) -> None:
        """``rows`` have a value in ``column`` that is ``lacking`` something: one reason for each value."""
        rows = rows & ~self.bad
        if not rows.any():
            return
        values = pc.value_counts(texts.filter(pa.array(rows))).to_pylist()
        for each in sorted(values, key=lambda each: -int(each["counts"]))[:_MOST_VALUES]:
            value = each["values"]
            if value is None:
                self.add(f"`{column}` is empty", rows & _mask(texts.is_null()))
            else:
                self.add(f"`{column}` is {quoted(value, 60)}, {lacking}", rows & _mask(pc.equal(texts, value)))
        self.add(f"`{column}` has a value, {lacking}", rows)


class _Table:
    """The columns of a batch of the input."""

    def __init__(self, batch: pa.RecordBatch, mapped: Mapped) -> None:
        self.rows = batch.num_rows
        self._batch, self._mapped = batch, mapped
        self._texts: dict[str, pa.Array] = {}

    def column(self, name: str) -> pa.Array:
        """The column of this ``name``, or a field inside one: ``payload.id``."""
        names = self._batch.schema.names
        if name in names:
            return self._batch[name]
        first, *inside = name.split(".")
        if first not in names:
            raise InputError(
                f"{self._mapped.name}: the input has no column {quoted(name)}; it has {', '.join(map(quoted, names))};"
                " correct the mapping"
            )
        found = self._batch[first]
        for step in inside:
            if not pt.is_struct(found.type) or found.type.get_field_index(step) < 0:
                raise InputError(
                    f"{self._mapped.name}: the column {quoted(first)} has no field {quoted(name)}; correct the mapping"
                )
            found = pc.struct_field(found, step)
        return found

    def text(self, name: str) -> pa.Array:
        """Return the column as text; empty cells are null."""
        if name not in self._texts:
            self._texts[name] = text_of(self.column(name))
        return self._texts[name]

    def chosen(self, which: Chosen) -> Mask:
        """The rows of these values."""
        return _mask(pc.is_in(self.text(which.column), value_set=pa.array(which.values, pa.string())))


def convert(batch: pa.RecordBatch, mapped: Mapped) -> Converted:
    """Return the events of the rows of ``batch``, a piece of the input, as ``mapped`` says.

    Raises :class:`InputError` for a column that is not there.
    """
    table = _Table(batch, mapped)
    unread, left_out = _Unread(table.rows), Counter[str]()
    told: Mask = np.zeros(table.rows, bool)
    for which in mapped.ignored:
        its = table.chosen(which) & ~told
        told |= its
        left_out[f"rows by `{which.column}`, as the mapping says"] += int(its.sum())
    wanted = ~told
    parts = [_part(table, row, wanted, told, unread, left_out) for row in mapped.rows]
    unread.add("the mapping finds no event in it", ~told)
    return Converted(_in_order(parts), tuple(unread.found), {what: count for what, count in left_out.items() if count})


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """What one :class:`Row` of a mapping finds: events, and the row of the input of each."""

    events: pa.RecordBatch
    rows: Ints


def _part(  # noqa: PLR0913, PLR0917 - the rows, what becomes of them, and where that is written down
    table: _Table, row: Row, wanted: Mask, told: Mask, all_unread: _Unread, left_out: Counter[str]
) -> _Part:
    mine = wanted.copy()
    for which in row.where:
        mine &= table.chosen(which)
    unread = _Unread(table.rows)
    column = table.column(row.time.column)
    if row.optional:
        mine &= _mask(pc.invert(_empty(column)))
    told |= mine
    kinds, counts = _kinds(table, row.event, mine, unread)
    ignored = mine & ~unread.bad & (counts[kinds] == 0)
    if row.event.column is not None:
        left_out[f"rows that are to be ignored by `{row.event.column}`, as the mapping says"] += int(ignored.sum())
    mine &= ~ignored & ~unread.bad
    fields = {"t": _times(table, row.time, mine, unread)}
    for name, words in row.texts.items():
        fields[name] = _words(table, words, mine, unread)
    for name, number in row.numbers.items():
        fields[name] = _number(table, number, mine, unread)
    if row.redelivered is not None:
        fields["redelivered"] = _flag(table, row.redelivered)
    elif Event.DELIVERED in row.event.events():
        fields["redelivered"] = pa.array(np.zeros(table.rows, bool))
    all_unread.found += unread.found
    return _spread(table.rows, fields, row.event, kinds, np.where(mine & ~unread.bad, counts[kinds], 0))


def _kinds(table: _Table, event: Told, mine: Mask, unread: _Unread) -> tuple[Ints, Ints]:
    """For each row the number of its kind, and for each kind how many events it is."""
    if event.column is None:
        return np.zeros(table.rows, np.int64), np.array([len(event.constant)])
    texts = table.text(event.column)
    known = list(EVENTS) if event.values is None else list(event.values)
    codes = np.asarray(pc.index_in(texts, value_set=pa.array(known, pa.string())).fill_null(-1)).astype(np.int64)
    lacking = "which is no event" if event.values is None else "which `values` of the mapping does not have"
    unread.add_values(event.column, lacking, texts, mine & (codes < 0))
    counts = [1] * len(known) if event.values is None else list(map(len, event.values.values()))
    return np.maximum(codes, 0), np.array(counts)


def _spread(rows: int, fields: Mapping[str, pa.Array], event: Told, kinds: Ints, counts: Ints) -> _Part:
    """The events of rows that tell so many (``counts``) each."""
    lists = _lists(event)
    flat = np.array([EVENTS.index(Event(each)) for events in lists for each in events] or [0])
    begins = np.concatenate([[0], np.cumsum([len(events) for events in lists])])[:-1]
    once = bool((counts == 1).all())
    source = np.arange(rows) if once else np.repeat(np.arange(rows), counts)
    within = 0 if once else np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
    codes = flat[begins[kinds[source]] + within]
    whole = {"event": pa.array(EVENTS, pa.string()).take(pa.array(codes))}
    places = None if once else pa.array(source)
    for name, column in fields.items():
        its = column if places is None else column.take(places)
        only = _ONLY_OF.get(name)
        if only is not None:
            has = np.isin(codes, [EVENTS.index(each) for each in only])
            its = its if has.all() else pc.if_else(pa.array(has), its, pa.scalar(None, its.type))
        whole[name] = its
    return _Part(batch_of(whole, len(source)), source)


def _lists(event: Told) -> list[tuple[str, ...]]:
    if event.column is None:
        return [event.constant]
    return [(each,) for each in EVENTS] if event.values is None else list(event.values.values())


def _in_order(parts: list[_Part]) -> pa.RecordBatch:
    """All events in the order of the rows of the input, and of one row in that of the mapping."""
    if len(parts) == 1:
        return parts[0].events
    table = pa.Table.from_batches([part.events for part in parts]).combine_chunks()
    order = np.argsort(np.concatenate([part.rows for part in parts]), kind="stable")
    batches = table.take(pa.array(order)).combine_chunks().to_batches()
    return batches[0] if batches else parts[0].events


def _times(table: _Table, when: When, mine: Mask, unread: _Unread) -> pa.Array:
    column = table.column(when.column)
    unread.add(f"`{when.column}` is empty, and there is no other time", mine & _mask(_empty(column)))
    times = nanoseconds(column if not _is_text(column.type) else table.text(when.column), when)
    unread.add(f"`{when.column}` is no time of the form that the mapping says", mine & _mask(times.is_null()))
    return times


def _words(table: _Table, words: Words, mine: Mask, unread: _Unread) -> pa.Array:
    if words.constant is not None:
        return pa.repeat(pa.scalar(words.constant, pa.string()), table.rows)
    if words.parts:
        pieces: list[Any] = []
        for text, column in words.parts:
            pieces += [text] if text else []
            pieces += [table.text(column)] if column is not None else []
        return pc.binary_join_element_wise(*pieces, "", null_handling="emit_null")
    column = str(words.column)
    texts = table.text(column)
    if words.values is None:
        return texts
    found = pc.index_in(texts, value_set=pa.array(list(words.values), pa.string()))
    lacking = mine & _mask(pc.and_(found.is_null(), texts.is_valid()))
    unread.add_values(column, "which `values` of the mapping does not have", texts, lacking)
    return pa.array(list(words.values.values()), pa.string()).take(found)


def _whole(column: pa.Array) -> pa.Array:
    """Return whole numbers of 64 bits; null for other values."""
    return tolerant(lambda part: part.cast(pa.int64()), column, pa.int64())


def _number(table: _Table, number: Number, mine: Mask, unread: _Unread) -> pa.Array:
    column = table.column(number.column)
    column = table.text(number.column) if _is_text(column.type) else column
    whole = _whole(column)
    unread.add(f"`{number.column}` is no whole number", mine & _mask(pc.and_(whole.is_null(), column.is_valid())))
    return pc.add(whole, number.add) if number.add else whole


def _flag(table: _Table, flag: Flag) -> pa.Array:
    """Return truth values; null for other values, so that an event which needs one lacks it."""
    if flag.column is None:
        return pa.repeat(pa.scalar(flag.constant), table.rows)
    column = table.column(flag.column)
    if flag.above is not None:
        return pc.greater(_whole(table.text(flag.column) if _is_text(column.type) else column), flag.above)
    if pt.is_boolean(column.type):
        return column
    texts = pc.ascii_lower(table.text(flag.column))
    yes, no = (pc.is_in(texts, value_set=pa.array(words, pa.string())) for words in (flag.true, flag.false))
    return pc.if_else(pc.or_(yes, no), yes, pa.scalar(None, pa.bool_()))


def text_of(column: pa.Array) -> pa.Array:
    """Return a column as text; empty cells are null.

    Raises :class:`InputError` for what has no text: lists, structs, bytes.
    """
    try:
        texts = column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(f"a column of {column.type} is no text; name another column, or one inside it") from None
    empty = pc.equal(texts, "")
    return pc.if_else(empty, pa.scalar(None, pa.string()), texts) if pc.any(empty).as_py() else texts


def _empty(column: pa.Array) -> pa.Array:
    if _is_text(column.type):
        return pc.or_kleene(column.is_null(), pc.equal(column, "")).fill_null(True)  # noqa: FBT003 - Arrow has it so
    return column.is_null()


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pt.is_dictionary(kind) else kind
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def _mask(array: pa.Array) -> Mask:
    found: npt.NDArray[np.bool_] = np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False))  # noqa: FBT003
    return found
