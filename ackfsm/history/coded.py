"""Rows whose texts are numbered already: looked at a column at a time, so that no text is looked at twice."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT, NAMED, Encoded, event_code
from ackfsm.history.format import ACKNOWLEDGE_TIMEOUT, EVENTS, NAMED_MESSAGE_SCOPES, NEEDS, TELLERS, VOCABULARY
from ackfsm.history.gathered import ReadLines, beyond, dictionary, numbered_again
from ackfsm.history.parquet import whole_rows
from ackfsm.history.scan import CODED
from ackfsm.history.victims import FAULT_EVENTS

_FEW: Final = ("process", "queue", "session")


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """Some rows that may be no events.

    Attributes:
        texts: for each of :data:`CODED` the places of the values among the distinct ones, -1 for null, and these.
        numbers: as :class:`Encoded` has them; -1 for null.
        bad: which rows are known to be no events, or not to be understood here.
    """

    texts: Mapping[str, tuple[Any, pa.Array]]
    numbers: Mapping[str, Any]
    bad: Mask

    @staticmethod
    def of(texts: Mapping[str, tuple[Any, pa.Array]], numbers: Mapping[str, Any], bad: Mask) -> Coded:
        """Return the columns with texts as places in their vocabularies, -2 for unknown ones."""
        return Coded(texts, {**{name: _places(*texts[name], VOCABULARY[name]) for name in VOCABULARY}, **numbers}, bad)

    def take(self, chosen: Mask) -> Coded:
        """Some of the rows, with all distinct values."""
        texts = {name: (codes[chosen], values) for name, (codes, values) in self.texts.items()}
        return Coded(texts, {name: column[chosen] for name, column in self.numbers.items()}, self.bad[chosen])


def uncertain(rows: Coded) -> Mask:
    """Return a mask of the rows to be looked at one by one: they break a rule, or have to be read as a whole."""
    found: Mask = rows.bad | ~_are_events(rows) | beyond(rows.numbers, rows.texts["consumer"][0])
    victims = np.isin(rows.numbers["event"], [event_code(each) for each in FAULT_EVENTS]) & ~found
    found[victims] = _names_victims(rows.take(victims))
    return found


def encoded(rows: Coded, *, every: bool = False) -> Encoded:
    """Return the rows, none :func:`uncertain`; names count as they appear, of ``every`` column if asked for."""
    named = {name: rows.texts[name] for name in NAMED}
    if (named["session"][0] < 0).any():
        named["session"] = _session_or_process(named["session"], named["process"])
    columns = {
        name: numbered_again(codes, values) if every or name in _FEW else dictionary(codes, values)
        for name, (codes, values) in named.items()
    }
    return Encoded(rows.numbers, columns)


def read_rows(table: pa.Table, lines: Ints, part: str | None, whole: Callable[[], pa.Table]) -> Iterator[ReadLines]:
    """What stands in the rows of a ``table``, which have the numbers ``lines``; ``whole`` gives it with all columns."""
    if not len(table):
        return
    rows = _of_table(table, lines)
    if not uncertain(rows).any():
        yield ReadLines(encoded(rows), (), len(table))
        return
    begin = 0
    for batch in whole().to_batches():
        yield ReadLines(None, (whole_rows(batch, lines[begin : begin + len(batch)], part),), len(batch))
        begin += len(batch)


def _of_table(table: pa.Table, lines: Ints) -> Coded:
    table.validate(full=True)  # text that is not UTF-8
    numbers = {
        "t": _whole(table, "t"),
        "redelivered": _flags(table),
        "delivery_count": _whole(table, "delivery_count"),
        "priority": _whole(table, "priority"),
        "errs": _present(table, "error").astype(np.int8),
        "line": lines,
    }
    negative = np.zeros(len(table), bool)
    for name in ("delivery_count", "priority"):
        negative |= (numbers[name] < 0) & _present(table, name)
    return Coded.of({name: _coded(table, name) for name in CODED}, numbers, negative)


def _coded(table: pa.Table, name: str) -> tuple[Any, pa.Array]:
    if name not in table.column_names or pa.types.is_null(table[name].type):
        return np.full(len(table), ABSENT, np.int32), pa.array([], pa.string())
    column = table[name]
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    column = column.unify_dictionaries().combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0)
    indices = column.indices
    if indices.null_count:
        indices = indices.fill_null(ABSENT)
    return np.asarray(indices).astype(np.int32, copy=False), column.dictionary.cast(pa.string())


def _places(codes: Any, values: pa.Array, legal: Sequence[str]) -> Any:
    """Return the places of the values in their vocabulary, -1 for null and -2 for unknown ones."""
    known = np.asarray(pc.index_in(values, value_set=pa.array(legal, pa.string())).fill_null(-2).cast(pa.int8()))
    return np.append(known, np.int8(ABSENT))[codes]


def _whole(table: pa.Table, name: str) -> Ints:
    if name not in table.column_names:
        return np.full(len(table), ABSENT, np.int64)
    column = table[name].cast(pa.int64()).combine_chunks()
    return np.asarray(column.fill_null(ABSENT) if column.null_count else column)


def _flags(table: pa.Table) -> Any:
    if "redelivered" not in table.column_names:
        return np.full(len(table), ABSENT, np.int8)
    return np.asarray(table["redelivered"].cast(pa.int8()).fill_null(ABSENT).combine_chunks())


def _present(table: pa.Table, name: str) -> Mask:
    if name not in table.column_names:
        return np.zeros(len(table), bool)
    return np.asarray(table[name].is_valid().combine_chunks().to_numpy(zero_copy_only=False))


def _are_events(rows: Coded) -> Mask:
    """Which rows obey the rules of the format; these are the rules of :func:`ackfsm.history.check.check`."""
    numbers, texts = rows.numbers, rows.texts
    good: Mask = (numbers["t"] >= 0) & (texts["process"][0] >= 0) & (numbers["event"] >= 0)
    for name in VOCABULARY:
        good &= numbers[name] >= ABSENT
    absent = {
        "message": texts["message"][0] < 0,
        "redelivered": numbers["redelivered"] < 0,
        "scope": numbers["scope"] < 0,
        "transaction": texts["transaction"][0] < 0,
        "fault": numbers["fault"] < 0,
    }
    for field, needing in NEEDS.items():
        needed = np.array([event in needing for event in EVENTS])[numbers["event"]]
        good &= ~(needed & absent[field] if field in absent else needed)
    named = np.array([*(scope in NAMED_MESSAGE_SCOPES for scope in VOCABULARY["scope"]), False])
    good &= ~(named[np.maximum(numbers["scope"], ABSENT)] & absent["message"])
    timeouts = np.flatnonzero(numbers["fault"] == VOCABULARY["fault"].index(ACKNOWLEDGE_TIMEOUT))
    tellers = np.asarray(pc.is_in(texts["process"][1], value_set=pa.array(TELLERS, pa.string())))
    if len(timeouts) and tellers.any():
        good[timeouts] &= ~(tellers[texts["process"][0][timeouts]] & (texts["session"][0][timeouts] < 0))
    return good


def _names_victims(rows: Coded) -> Mask:
    """Which faults or repairs name a session or a queue, which has to be one that another line has."""
    codes, values = _session_or_process(rows.texts["session"], rows.texts["process"])
    process = np.asarray(pc.index_in(rows.texts["process"][1], value_set=values))[rows.texts["process"][0]]
    return np.asarray((rows.texts["queue"][0] >= 0) | (codes != process))


def _session_or_process(session: tuple[Any, pa.Array], process: tuple[Any, pa.Array]) -> tuple[Any, pa.Array]:
    both = pa.concat_arrays([session[1], process[1]]).dictionary_encode()
    places = np.asarray(both.indices)
    codes = np.where(session[0] < 0, len(session[1]) + process[0], session[0])
    return places[codes].astype(np.int32), both.dictionary
