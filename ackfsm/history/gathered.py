"""The lines that were read, encoded where they are plain and parsed elsewhere, and their sum."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ackfsm.history import kernel
from ackfsm.history.arrays import Codes, Mask
from ackfsm.history.columns import ABSENT, Encoded, concatenated, encode, event_code
from ackfsm.history.format import VOCABULARY, Event
from ackfsm.history.lines import REPORTED, Parsed, ParseError
from ackfsm.history.victims import NamedVictim, named_victims
from ackfsm.terms import AckScope

_FOLDED: Final = tuple(
    event_code(event)
    for event in (
        *(Event.SEND, Event.RESEND, Event.CONFIRMED, Event.REJECTED, Event.IN_DOUBT),
        *(Event.DELIVERED, Event.PROCESSED, Event.FAILED, Event.ACKNOWLEDGE, Event.ACKNOWLEDGED, Event.ACK_IN_DOUBT),
        *(Event.BEGIN, Event.COMMIT, Event.COMMITTED, Event.COMMIT_IN_DOUBT, Event.ROLLBACK, Event.ROLLED_BACK),
        *(Event.RECOVER, Event.CLOSE, Event.FAULT, Event.RECOVERED, Event.EXPIRED, Event.DEAD_LETTERED),
        *(Event.DRAINED, Event.JOURNAL_WRITTEN, Event.JOURNAL_SYNCED),
    )
)
_SCOPED: Final = (Event.ACKNOWLEDGE, Event.ACKNOWLEDGED, Event.ACK_IN_DOUBT)


SEEN_AT_REST: Final = (Event.WAITING, Event.DEPTH)
"""The events that a recorder sees when nothing happens any more."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A line about rest: the fields of a ``waiting`` or a ``depth``."""

    t: int
    event: str
    process: str
    session: str | None
    queue: str | None
    message: str | None
    error: str | None
    position: int | None
    delivery_count: int | None


def _remarks_in(batch: pa.RecordBatch) -> Iterator[Remark]:
    """Those in a batch of events, in the order of its rows."""
    names = [field.name for field in dataclasses.fields(Remark)]
    rows = pc.is_in(batch["event"], value_set=pa.array(SEEN_AT_REST, pa.string()))
    yield from (Remark(**row) for row in batch.select(names).filter(rows).to_pylist())


@dataclasses.dataclass(frozen=True, slots=True)
class ReadLines:
    """What stands in some lines or rows.

    Attributes:
        plain: those that are encoded at once; ``None`` if there is none.
        parsed: the others, in their order.
        lines: how many they all are.
        ignored: the names of fields that the format does not have, beside those of ``parsed``.
    """

    plain: Encoded | None
    parsed: tuple[Parsed, ...]
    lines: int
    ignored: frozenset[str] = frozenset()


class Gathered:
    """All that was read so far."""

    def __init__(self) -> None:
        self.columns: list[Encoded] = []
        self.unreadable: list[ParseError] = []
        self.unreadable_count = 0
        self.remarks: list[Remark] = []
        self.victims: list[NamedVictim] = []
        self.lines = 0
        self.ignored: set[str] = set()
        """The names of fields that the format does not have."""

    def add(self, read: ReadLines, file: str) -> None:
        """Add what stands in the next lines of ``file``, as messages call it."""
        columns = [] if read.plain is None else [read.plain]
        for parsed in read.parsed:
            columns.append(encode(parsed.events, parsed.lines))
            self.remarks += _remarks_in(parsed.events)
            self.victims += named_victims(parsed.events, parsed.lines, file)
            self.unreadable += parsed.unreadable[: REPORTED - len(self.unreadable)]
            self.unreadable_count += parsed.unreadable_count
            self.ignored |= parsed.ignored
        self.ignored |= read.ignored
        self.lines += read.lines
        self.columns += columns if read.plain is None else [_in_order_of_lines(columns)]


def beyond(numbers: Mapping[str, Any], consumer: Codes) -> Mask:
    """Which rows are of other kinds than the fold knows: other events, a scope where there is none, rare fields."""
    event, scope = numbers["event"], numbers["scope"]
    rare = (numbers["outcome"] >= 0) | (numbers["priority"] >= 0) | (consumer >= 0)
    scoped = (scope >= 0) & ~np.isin(event, [event_code(each) for each in _SCOPED])
    scoped &= (event != event_code(Event.CONFIRMED)) | (scope == VOCABULARY["scope"].index(AckScope.SESSION))
    return np.asarray(rare | scoped | ~np.isin(event, _FOLDED))


def numbered_again(codes: Any, values: pa.Array) -> pa.DictionaryArray:
    """Return the names (-1: none) numbered as they first appear; absent names are dropped."""
    order = np.full(len(values), ABSENT, np.int32)
    count = kernel.number_by_appearance(codes, order, codes := np.empty_like(codes)) if len(codes) else 0
    return dictionary(codes, values.take(pa.array(order[:count])))


def dictionary(codes: Any, values: pa.Array) -> pa.DictionaryArray:
    """Names (-1: none) numbered as they are."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0 if (codes < 0).any() else None), values)


def _in_order_of_lines(parts: Sequence[Encoded]) -> Encoded:
    whole = concatenated(parts)
    if len(parts) == 1:
        return whole
    order = np.argsort(whole.numbers["line"], kind="stable")
    named = {
        name: numbered_again(np.asarray(column.indices.fill_null(ABSENT))[order], column.dictionary)
        for name, column in whole.named.items()
    }
    return Encoded({name: column[order] for name, column in whole.numbers.items()}, named)
