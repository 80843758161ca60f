"""Events as NumPy columns: names become small integers, and the rows stand in the order of time."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ackfsm.history.arrays import Codes, Ints
from ackfsm.history.check import codes
from ackfsm.history.format import EVENTS, VOCABULARY, Event
from ackfsm.history.joins import number_pairs
from ackfsm.terms import Fault

ABSENT = -1

NAMED = ("process", "queue", "message", "session", "transaction", "consumer")
"""The columns of names."""


def event_code(event: Event) -> int:
    """The integer that stands for ``event`` in :class:`Events`."""
    return EVENTS.index(event)


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Events:
    """All events of a history, one row each, ordered by time and then by line; :data:`ABSENT` stands for no value.

    Attributes:
        t: nanoseconds.
        event: the event's place in :data:`EVENTS`; :data:`ABSENT` where only time, process and session are known.
        process, queue, message, consumer: places in :attr:`names`.
        session: the session, or where there is none, the process; a place in :attr:`names`.
        transaction: a transaction of one process; a place in :attr:`names` (where two processes may share a name).
        delivery_mode, scope, fault, outcome: places in :data:`VOCABULARY`.
        redelivered: 0 or 1.
        delivery_count, priority: as recorded.
        errs: 1 if the event has an ``error``, else 0.
        line: the number of its line, in its file.
        names: for each named column, an Arrow array of the names.
    """

    t: Ints
    event: Codes
    process: Codes
    queue: Codes
    message: Codes
    session: Codes
    transaction: Codes
    consumer: Codes
    delivery_mode: Codes
    scope: Codes
    fault: Codes
    outcome: Codes
    redelivered: Codes
    delivery_count: Ints
    priority: Ints
    errs: Codes
    line: Ints
    names: Mapping[str, pa.Array]

    def __len__(self) -> int:
        return len(self.t)

    def take(self, rows: Ints | slice) -> Self:
        """These rows, in that order."""
        columns = (field.name for field in dataclasses.fields(self) if field.name != "names")
        return dataclasses.replace(self, **{name: getattr(self, name)[rows] for name in columns})

    def count_of(self, column: str) -> int:
        """How many different names a named column has."""
        return len(self.names[column])

    def places(self, *events: Event) -> Ints:
        """The rows of these events, ascending."""
        wanted = np.array([*(event in events for event in EVENTS), False])  # the last is what ABSENT finds
        return np.flatnonzero(wanted[self.event])

    def receivers(self, rows: Ints) -> Ints:
        """For each of ``rows`` a number of its session and consumer: an order is owed to each consumer alone."""
        session, consumer = self.session[rows].astype(np.int64), self.consumer[rows]
        if (consumer == ABSENT).all():
            return session
        return number_pairs(session, consumer)

    def closes_of_sessions(self) -> Ints:
        """The rows of ``close`` that close a session, and not one of its consumers, which names it, or its queue."""
        closes = self.places(Event.CLOSE)
        of_consumer = (self.queue[closes] != ABSENT) | (self.consumer[closes] != ABSENT)
        return np.asarray(closes[~of_consumer | (self.errs[closes] == 1)])

    def found_broken(self) -> Ints:
        """The rows of ``close`` with an ``error``: the connection was found broken, by whatever broke it."""
        closes = self.places(Event.CLOSE)
        return np.asarray(closes[self.errs[closes] == 1])

    def faults(self) -> tuple[Fault, ...]:
        """Return the kinds of recorded faults, in the order of :class:`Fault`, without faults of one call."""
        return tuple(fault for fault in Fault if fault in self.told_faults())

    def told_faults(self) -> tuple[str, ...]:
        """All kinds of faults that were recorded, in the order of the vocabulary."""
        seen = np.unique(self.fault[self.places(Event.FAULT)])
        return tuple(VOCABULARY["fault"][code] for code in seen.tolist())


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """The columns of some events: numbers, and names that are still numbered on their own."""

    numbers: Mapping[str, npt.NDArray[Any]]
    named: Mapping[str, pa.DictionaryArray]

    def __len__(self) -> int:
        return len(self.numbers["t"])


def encode(batch: pa.RecordBatch, lines: Ints) -> Encoded:
    """Encode one record batch of :data:`SCHEMA` whose rows are all events, with the number of the line of each.

    A ``depth`` of nothing is a ``drained``.
    """
    sessions = pc.coalesce(batch["session"], batch["process"])
    text = {name: sessions if name == "session" else batch[name] for name in NAMED}
    waiting = pc.equal(batch["event"], Event.WAITING.value)
    text["message"] = pc.if_else(waiting, None, batch["message"])  # that a call waits for it is nothing that befell it
    numbers = {
        "t": np.asarray(batch["t"]),
        **{name: codes(batch, name) for name in VOCABULARY},
        "redelivered": np.asarray(batch["redelivered"].cast(pa.int8()).fill_null(ABSENT)),
        "delivery_count": np.asarray(batch["delivery_count"].fill_null(ABSENT)),
        "priority": np.asarray(batch["priority"].fill_null(ABSENT)),
        "errs": np.asarray(batch["error"].is_valid().cast(pa.int8())),
        "line": lines,
    }
    empty = (numbers["event"] == EVENTS.index(Event.DEPTH)) & (numbers["delivery_count"] == 0)
    empty &= np.asarray(batch["position"].fill_null(ABSENT)) == 0
    numbers["event"] = np.where(empty, np.int8(EVENTS.index(Event.DRAINED)), numbers["event"])
    return Encoded(numbers, {name: column.dictionary_encode() for name, column in text.items()})


def concatenated(parts: Sequence[Encoded]) -> Encoded:
    """The rows of all ``parts``, at least one, in their order."""
    if len(parts) == 1:
        return parts[0]
    numbers = {name: np.concatenate([part.numbers[name] for part in parts]) for name in parts[0].numbers}
    named = {
        name: pa.chunked_array([part.named[name] for part in parts]).unify_dictionaries().combine_chunks()
        for name in parts[0].named
    }
    return Encoded(numbers, named)


def assemble(parts: Sequence[Encoded]) -> Events:
    """One :class:`Events` of the encoded batches of a history, at least one, in the order of its lines."""
    coded = {name: _numbered([part.named[name] for part in parts]) for name in NAMED}
    coded["transaction"] = _per_process(coded["process"], coded["transaction"])
    columns = {name: np.concatenate([part.numbers[name] for part in parts]) for name in parts[0].numbers}
    columns |= {name: numbers for name, (numbers, _) in coded.items()}
    names = MappingProxyType({name: labels for name, (_, labels) in coded.items()})
    return Events(**columns, names=names).take(by_time(columns["t"]))


def _numbered(parts: Sequence[pa.DictionaryArray]) -> tuple[Codes, pa.Array]:
    """The numbers of all rows in one common array of names."""
    whole = pa.chunked_array(parts).unify_dictionaries().combine_chunks()
    return np.asarray(whole.indices.fill_null(ABSENT)), whole.dictionary


def _per_process(process: tuple[Codes, pa.Array], transaction: tuple[Codes, pa.Array]) -> tuple[Codes, pa.Array]:
    """Number the transactions by process and name: two processes may both have a ``t1``."""
    (processes, _), (transactions, labels) = process, transaction
    numbered = np.full(len(transactions), ABSENT, np.int32)
    inside = np.flatnonzero(transactions != ABSENT)
    pairs = transactions[inside].astype(np.int64) + processes[inside] * np.int64(len(labels))
    distinct, numbered[inside] = np.unique(pairs, return_inverse=True)
    return numbered, labels.take(pa.array(distinct % max(1, len(labels))))


def by_time(t: Ints) -> Ints | slice:
    """How rows in the order of lines are taken in that of time."""
    return slice(None) if (t[1:] >= t[:-1]).all() else np.argsort(t, kind="stable")
