"""A history that goes on: each batch of lines is folded with what is kept of those before, and what is new is told.

What is kept is bounded: messages whose life was plain and is over are counted, the others are kept until nothing was
told of them for a *horizon* (docs/decisions/monitor.md says what can no longer be seen then).
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from ackfsm.history_format import EVENTS, Event
from ackfsm.terms import Anomaly
from ackfsm.verify.conformance.explain import Explainer
from ackfsm.verify.events import kernel
from ackfsm.verify.events.arrays import Ints, Mask, among
from ackfsm.verify.events.columns import ABSENT, Encoded, concatenated
from ackfsm.verify.events.observables import event_code
from ackfsm.verify.findings.verdict import Result, verdict
from ackfsm.verify.folding.passes import Fold, Folded, Folder
from ackfsm.verify.folding.summary import Chunk, Folding, Hashes, Summary, hashes_of

__all__ = ["Alert", "State", "advanced"]

_NAME: Final = Path("the stream")
_NO_HASHES: Final = np.empty(0, np.uint64)
_NO_TIMES: Final = np.empty(0, np.int64)

OVERDUE: Final = "overdue"
"""Of a message that had not come to rest when it was forgotten."""

LATE: Final = "late"
"""Of a message of which something was told after it was forgotten, or after its life was over and counted."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Something that was noticed of a message.

    Attributes:
        t: when the last line of the message was written, in nanoseconds.
        message: its id; of what is late a part of the ids is not known, then it is ``None``.
        kind: an anomaly; :data:`OVERDUE`; :data:`LATE`; or ``contradiction``, if it is no run of the model and has no
            anomaly that says so.
        verdict: ``allowed``, ``invalid``, or ``unknown``.
        why: what is impossible in it, or what leaves it open; empty if it is allowed.
    """

    t: int
    message: str | None
    kind: str
    verdict: str
    why: str = ""


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class State:
    """What a monitor remembers between batches.

    Attributes:
        latest: the greatest time that was read.
        rows: the lines that are kept, in their order.
        over: hashes of the ids of the messages that were counted or forgotten, ascending, and when.
        told: what was told already, of messages that are kept.
        events, messages: how many were read, and how many of these were counted or forgotten.
        parse_errors: how many lines were no events.
        late, overdue: how many such messages there were.
    """

    latest: int = -1
    rows: Encoded | None = None
    over: Hashes = dataclasses.field(default_factory=lambda: _NO_HASHES)
    over_since: Ints = dataclasses.field(default_factory=lambda: _NO_TIMES)
    told: frozenset[tuple[str, str]] = frozenset()
    events: int = 0
    messages: int = 0
    parse_errors: int = 0
    late: int = 0
    overdue: int = 0

    def saved(self) -> Mapping[str, pa.Table]:
        """The state as tables, of which :meth:`loaded` makes it again."""
        over = pa.table({"hash": self.over, "since": self.over_since})
        numbers = {name: getattr(self, name) for name in _COUNTED}
        text = json.dumps({**numbers, "told": sorted(self.told)})
        tables = {"over": over.replace_schema_metadata({"state": text})}
        if self.rows is not None:
            tables["rows"] = pa.table({**self.rows.numbers, **self.rows.named})
        return tables

    @staticmethod
    def loaded(tables: Mapping[str, pa.Table]) -> State:
        """The state that was saved."""
        over, rows = tables["over"], tables.get("rows")
        values = json.loads(over.schema.metadata[b"state"])
        return State(
            rows=None if rows is None else _encoded(rows.combine_chunks()),
            over=over["hash"].to_numpy(),
            over_since=over["since"].to_numpy(),
            told=frozenset((name, kind) for name, kind in values.pop("told")),
            **values,
        )


_COUNTED: Final = ("latest", "events", "messages", "parse_errors", "late", "overdue")
_NAMED: Final = ("process", "queue", "message", "session", "transaction")


def _encoded(rows: pa.Table) -> Encoded:
    numbers = {name: rows[name].to_numpy() for name in rows.column_names if name not in _NAMED}
    named = {name: rows[name].cast(pa.string()).combine_chunks().dictionary_encode() for name in _NAMED}
    return Encoded(numbers, {name: _one_chunk(column) for name, column in named.items()})


def _one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.DictionaryArray:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.unify_dictionaries().chunk(0) if column.num_chunks else pa.array([], pa.string()).dictionary_encode()


def advanced(  # noqa: PLR0913 - a batch, how it is folded, and how long a line may take
    state: State,
    chunks: int,
    folder: Folder,
    each: Callable[[Folder, Sequence[Folding]], Iterable[Summary]],
    *,
    delay: int,
    horizon: int,
) -> tuple[State, tuple[Alert, ...]]:
    """The state after a batch, and what is new.

    Args:
        state: the state before it.
        chunks: how many chunks the batch has; they have the numbers from 1, and 0 is what was kept.
        folder: what folds them.
        each: has it fold the chunks of the batch, as :class:`ackfsm.verify.folding.passes.Fold` wants it.
        delay: nanoseconds by which a line may come later than others that were written at its time.
        horizon: nanoseconds after which a message is forgotten of which nothing more was told.

    Raises:
        InputError: there is no event yet, or a fault names what it cannot have hit.
    """
    batch = _Batch(state, folder, each)
    outcome = Fold(_NAME, chunks + 1, folder, batch).outcome()
    return _After(state, outcome, folder, delay, horizon).told(batch.late)


class _Batch:
    """Folds what was kept here, and the batch elsewhere, without what is told of messages that are over."""

    def __init__(
        self, state: State, folder: Folder, each: Callable[[Folder, Sequence[Folding]], Iterable[Summary]]
    ) -> None:
        self._state, self._each = state, each
        self._own = folder.with_chunks(lambda _: Chunk(place=0, events=state.rows))
        self.late: dict[int, tuple[str | None, str]] = {}
        """Messages that were over, by their hashes: the id, and what was told of it; of a second plain life neither."""

    def __call__(self, folder: Folder, foldings: Sequence[Folding]) -> Iterator[Summary]:
        yield from (self._own(each) for each in foldings if each.place == 0)
        elsewhere = [each for each in foldings if each.place > 0]
        if elsewhere:
            yield from map(self._without_late, self._each(folder, elsewhere))

    def _without_late(self, summary: Summary) -> Summary:
        over = self._state.over
        for each in summary.messages[among(summary.messages, over)].tolist():
            self.late.setdefault(each, (None, "a whole life"))
        residue = summary.residue
        if residue is None or not len(over):
            return summary
        message = residue.rows.named["message"]
        hashes = hashes_of(message.dictionary)
        late = among(hashes, over)
        if not late.any():
            return summary
        codes = _codes(message)
        kept = ~(np.append(late, False)[codes])
        for row in np.flatnonzero(~kept).tolist():
            code = codes[row]
            self.late[int(hashes[code])] = (message.dictionary[int(code)].as_py(), _told_by(residue.rows, row))
        rows = dataclasses.replace(residue, rows=_taken(residue.rows, kept), marks=residue.marks[kept])
        return dataclasses.replace(summary, residue=rows)


def _told_by(rows: Encoded, row: int) -> str:
    """What a line tells, in words."""
    event = EVENTS[rows.numbers["event"][row]]
    flag = {0: ", unflagged", 1: ", flagged"}.get(int(rows.numbers["redelivered"][row]), "")
    return f"{event}{flag if event is Event.DELIVERED else ''}"


def _codes(column: pa.DictionaryArray) -> Ints:
    return np.asarray(column.indices.cast(pa.int64()).fill_null(ABSENT))


def _taken(rows: Encoded, chosen: Mask) -> Encoded:
    """Some rows; names that none of them has are dropped."""
    keep = pa.array(chosen)
    named = {name: column.filter(keep) for name, column in rows.named.items()}
    named["message"] = named["message"].cast(pa.string()).dictionary_encode()
    return Encoded({name: column[chosen] for name, column in rows.numbers.items()}, named)


def _beside(rows: Encoded) -> Encoded:
    """Without the rows of which only the time was kept and that are no longer beside others of their process."""
    order = np.argsort(rows.numbers["t"], kind="stable")
    marks = np.where(rows.numbers["event"] == ABSENT, kernel.LEFT, kernel.KEPT).astype(np.uint8)[order]
    process, session = (rows.named[name] for name in ("process", "session"))
    counts = len(process.dictionary), len(session.dictionary)
    kernel.mark_neighbours(_codes(process)[order], _codes(session)[order], *counts, marks)
    chosen = np.empty(len(marks), bool)
    chosen[order] = marks != kernel.LEFT
    return _taken(rows, chosen)


class _After:
    """What follows from the outcome of a batch."""

    def __init__(self, state: State, outcome: Folded, folder: Folder, delay: int, horizon: int) -> None:
        self._state, self._outcome, self._specification = state, outcome, folder.asked.specification
        residues = [each.residue.rows for each in outcome.summaries if each.residue is not None]
        self._rows = concatenated(residues)
        self._events = outcome.events
        self._latest = max(state.latest, int(self._rows.numbers["t"].max()))
        self._since, self._until = self._latest - horizon, self._latest - delay
        rows = np.flatnonzero((self._events.message != ABSENT) & (self._events.event != ABSENT))
        self._last = np.full(self._events.count_of("message"), -1, np.int64)
        np.maximum.at(self._last, self._events.message[rows], self._events.t[rows])

    def told(self, late: Mapping[int, tuple[str | None, str]]) -> tuple[State, tuple[Alert, ...]]:
        """The state after it, and what is new; ``late`` as :class:`_Batch` has it."""
        state, summaries = self._state, self._outcome.summaries
        forgotten = np.flatnonzero((self._last >= 0) & (self._last < self._since))
        news = [*self._new(), *self._torn()]
        overdue = self._open(forgotten, {*self._state.told, *((each.message, each.kind) for each in news)})
        alerts = [
            *news,
            *(
                Alert(t=int(self._last[m]), message=self._name(m), kind=OVERDUE, verdict="unknown", why=_OVERDUE)
                for m in overdue.tolist()
            ),
            *(
                Alert(t=self._latest, message=name, kind=LATE, verdict="unknown", why=f"{told} {_LATE}")
                for name, told in late.values()
            ),
        ]
        over, over_since = self._over(forgotten)
        left = sum(len(each.messages) for each in summaries)
        return (
            State(
                latest=self._latest,
                rows=self._kept(forgotten),
                over=over,
                over_since=over_since,
                told=self._remembered(alerts, forgotten),
                events=state.events + sum(each.events for each in summaries if each.place > 0),
                messages=state.messages + left + len(forgotten),
                parse_errors=state.parse_errors + sum(each.chunk.unreadable_count for each in summaries),
                late=state.late + len(late),
                overdue=state.overdue + len(overdue),
            ),
            tuple(alerts),
        )

    def _name(self, message: int) -> str:
        return str(self._events.names["message"][message].as_py())

    def _open(self, messages: Ints, told: Collection[tuple[str | None, str]]) -> Ints:
        """Those of ``messages`` of which nothing was told and whose life was not over: nothing ended them."""
        rows = self._events.places(*_ENDS)
        named = {name for name, _ in told}
        its = np.setdiff1d(messages, self._events.message[rows])
        return np.array([message for message in its.tolist() if self._name(message) not in named], np.int64)

    def _new(self) -> Iterator[Alert]:
        """The anomalies and contradictions that were not told yet, of messages that had time for all their lines.

        What is concluded from the end alone is told where the model excludes it.
        """
        examined, definitions = self._outcome.examined, self._specification.properties
        ripe = self._last <= self._until
        excluded = np.zeros(len(self._last), bool)
        contradicted = np.concatenate([np.empty(0, np.int64), *(each.contradicted() for each in examined.held)])
        undecided = {
            message: why for each in examined.held for why, its in each.undecided().items() for message in its.tolist()
        }
        accused, named = set(contradicted.tolist()), set[int]()
        excluded[contradicted] = ripe[contradicted]
        for anomaly, messages in examined.anomalies.items():
            at_end = anomaly in definitions and definitions[anomaly].rest == "end"
            for message in messages[(excluded if at_end else ripe)[messages]].tolist():
                named.add(message)
                if (self._name(message), anomaly.value) not in self._state.told:
                    yield self._alert(message, anomaly.value, accused, undecided)
        for message in contradicted[ripe[contradicted]].tolist():
            if message not in named and (self._name(message), CONTRADICTION) not in self._state.told:
                yield self._alert(message, CONTRADICTION, accused, undecided)

    def _torn(self) -> Iterator[Alert]:
        """The transactions that took effect in part, under their own names."""
        for name in self._outcome.findings.anomalies[Anomaly.TORN_TRANSACTION].examples:
            if (name, Anomaly.TORN_TRANSACTION) not in self._state.told:
                verdict_, why = self._by_kind(Anomaly.TORN_TRANSACTION, name)
                yield Alert(t=self._latest, message=name, kind=Anomaly.TORN_TRANSACTION, verdict=verdict_, why=why)

    def _alert(self, message: int, kind: str, accused: set[int], undecided: dict[int, str]) -> Alert:
        name, explainer = self._name(message), self._explainer(message)
        if explainer is None:
            told = "unknown", "no configuration is known"
        elif message in accused:
            told = "invalid", str(explainer.told(message))
        elif message in undecided:
            told = "unknown", undecided[message]
        else:
            told = self._by_kind(Anomaly(kind), name)
        return Alert(t=int(self._last[message]), message=name, kind=kind, verdict=told[0], why=told[1])

    def _explainer(self, message: int) -> Explainer | None:
        examined = self._outcome.examined
        its = (
            explainer for held, explainer in zip(examined.held, examined.explainers, strict=True) if held.held[message]
        )
        return next(its, None)

    def _by_kind(self, anomaly: Anomaly, name: str) -> tuple[str, str]:
        """What is decided of one whose own life accuses it of nothing, and why."""
        finding = self._outcome.findings.anomalies[anomaly]
        if name in finding.unexplained_examples:
            return "invalid", "together with another message it does not conform to the model"
        if finding.unexplained is not None and not finding.by_kind:
            return "allowed", ""
        allowed = self._result.allowed.get(anomaly)
        if allowed is None:
            return "unknown", "the tables cannot decide it"
        return ("allowed", "") if allowed else ("invalid", "no fault that is known allows it")

    @functools.cached_property
    def _result(self) -> Result:
        return verdict(self._outcome.findings, self._specification)

    def _over(self, forgotten: Ints) -> tuple[Hashes, Ints]:
        """The hashes of what is over, without those of twice the horizon ago."""
        state = self._state
        names = self._events.names["message"].take(pa.array(forgotten))
        new = np.concatenate([hashes_of(names), *(each.messages for each in self._outcome.summaries)])
        hashes = np.concatenate([state.over, new])
        since = np.concatenate([state.over_since, np.full(len(new), self._latest)])
        hashes, first = np.unique(hashes, return_index=True)
        since = since[first]
        kept = since >= self._since
        return hashes[kept], since[kept]

    def _kept(self, forgotten: Ints) -> Encoded:
        """The rows of what is not forgotten, and of faults that last."""
        rows = self._rows
        codes = _codes(rows.named["message"])
        names = rows.named["message"].dictionary
        gone = np.isin(hashes_of(names), hashes_of(self._events.names["message"].take(pa.array(forgotten))))
        t, event = rows.numbers["t"], rows.numbers["event"]
        kept = np.where(codes == ABSENT, t >= self._since, ~np.append(gone, True)[codes])
        faults = np.flatnonzero(event == event_code(Event.FAULT))
        repairs = event == event_code(Event.RECOVERED)
        for row in faults.tolist():
            same = repairs & (rows.numbers["fault"] == rows.numbers["fault"][row]) & (t >= t[row])
            kept[row] |= not same.any()
        return _beside(_taken(rows, kept))

    def _remembered(self, alerts: Sequence[Alert], forgotten: Ints) -> frozenset[tuple[str, str]]:
        gone = {self._name(message) for message in forgotten.tolist()}
        told = {(alert.message, alert.kind) for alert in alerts if alert.message is not None}
        return frozenset((name, kind) for name, kind in self._state.told | told if name not in gone)


CONTRADICTION: Final = "contradiction"

_ENDS: Final = (Event.PROCESSED, Event.REJECTED, Event.EXPIRED, Event.DEAD_LETTERED, Event.ROLLED_BACK)
_LATE: Final = "after its life was over and it had been forgotten"
_OVERDUE: Final = "it had not come to rest when nothing had been told of it for so long that it was forgotten"
