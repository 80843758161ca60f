"""A history that goes on: each batch of lines is folded with the kept rows before it, and new findings are told.

What is kept is bounded: messages whose life was plain and is over are counted, the others are kept until nothing was
told of them for a *horizon* (docs/decisions/monitor.md says what can no longer be seen then).
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ackfsm.history.arrays import Ints, Mask, among
from ackfsm.history.columns import ABSENT, NAMED, Encoded, concatenated, event_code
from ackfsm.history.format import EVENTS, Event
from ackfsm.history.queues import configurations_of
from ackfsm.history.read import NoEventError
from ackfsm.terms import Anomaly
from ackfsm.verify.context.allowed import allowed
from ackfsm.verify.findings.findings import Findings
from ackfsm.verify.findings.judgements import CONTRADICTION, Judgements, codes_of, with_allowed
from ackfsm.verify.findings.verdict import Result, verdict
from ackfsm.verify.folding import kernel
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
    """The memory of a monitor between batches.

    Attributes:
        latest: the greatest time that was read.
        rows: the lines that are kept, in their order.
        over, over_since, over_delivered: hashes of the ids of the messages that were counted or forgotten, ascending,
            when that was, and whether an application had been delivered the message.
        told: what was told already, of messages that are kept.
        events, messages: how many were read, and how many of these were counted or forgotten.
        parse_errors: how many lines were no events.
        late, overdue: how many such messages there were.
    """

    latest: int = -1
    rows: Encoded | None = None
    over: Hashes = dataclasses.field(default_factory=lambda: _NO_HASHES)
    over_since: Ints = dataclasses.field(default_factory=lambda: _NO_TIMES)
    over_delivered: Mask = dataclasses.field(default_factory=lambda: np.empty(0, bool))
    told: frozenset[tuple[str, str]] = frozenset()
    events: int = 0
    messages: int = 0
    parse_errors: int = 0
    late: int = 0
    overdue: int = 0

    def saved(self) -> Mapping[str, pa.Table]:
        """Return the state as tables, from which :meth:`loaded` makes it again."""
        over = pa.table({"hash": self.over, "since": self.over_since, "delivered": self.over_delivered})
        numbers = {name: getattr(self, name) for name in _COUNTED}
        kept = None if self.rows is None else len(self.rows)
        text = json.dumps({**numbers, "told": sorted(self.told), "rows": kept})
        tables = {"over": over.replace_schema_metadata({"state": text})}
        if self.rows is not None:
            tables["rows"] = pa.table({**self.rows.numbers, **self.rows.named})
        return tables

    @staticmethod
    def loaded(tables: Mapping[str, pa.Table]) -> State:
        """The state that was saved.  Raises :class:`ValueError` if lines that were kept are not there."""
        over, rows = tables["over"], tables.get("rows")
        values = json.loads(over.schema.metadata[b"state"])
        if values.pop("rows") != (None if rows is None else len(rows)):
            raise ValueError("lines that were kept are missing")
        return State(
            rows=None if rows is None else _encoded(rows.combine_chunks()),
            over=over["hash"].to_numpy(),
            over_since=over["since"].to_numpy(),
            over_delivered=over["delivered"].to_numpy(zero_copy_only=False),
            told=frozenset((name, kind) for name, kind in values.pop("told")),
            **values,
        )


_COUNTED: Final = ("latest", "events", "messages", "parse_errors", "late", "overdue")


def _encoded(rows: pa.Table) -> Encoded:
    numbers = {name: rows[name].to_numpy() for name in rows.column_names if name not in NAMED}
    named = {name: rows[name].cast(pa.string()).combine_chunks().dictionary_encode() for name in NAMED}
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
    """Return the state after a batch, and the new alerts.

    Args:
        state: the state before it.
        chunks: how many chunks the batch has; they have the numbers from 1, and 0 is what was kept.
        folder: what folds them.
        each: has it fold the chunks of the batch, as :class:`ackfsm.verify.folding.passes.Fold` wants it.
        delay: nanoseconds by which a line may come later than others that were written at its time.
        horizon: nanoseconds after which a message is forgotten of which nothing more was told.

    Lines that are no events are counted.  A fault may name a session or a queue of which no line tells, since the lines
    may come later or have been forgotten: it explains nothing until they come.
    """
    batch = _Batch(state, folder, each)
    try:
        outcome = Fold(_NAME, chunks + 1, folder, batch).outcome()
    except NoEventError:
        return dataclasses.replace(state, parse_errors=state.parse_errors + sum(batch.unreadable.values())), ()
    return _After(state, outcome, folder, delay, horizon).told(batch.late)


class _Batch:
    """A batch: kept rows are folded here and new ones elsewhere, without late lines."""

    def __init__(
        self, state: State, folder: Folder, each: Callable[[Folder, Sequence[Folding]], Iterable[Summary]]
    ) -> None:
        self._state, self._each = state, each
        self._own = folder.with_chunks(lambda _: Chunk(place=0, events=state.rows))
        self.late: dict[int, _Late] = {}
        """What was told of messages that were over, by their hashes: a delivery if there is one, else the last line."""
        self.unreadable: dict[int, int] = {}
        """How many lines are no events, by the number of their chunk."""

    def __call__(self, folder: Folder, foldings: Sequence[Folding]) -> Iterator[Summary]:
        yield from (self._own(each) for each in foldings if each.place == 0)
        elsewhere = [each for each in foldings if each.place > 0]
        if elsewhere:
            yield from map(self._without_late, self._each(folder, elsewhere))

    def _without_late(self, summary: Summary) -> Summary:
        over = self._state.over
        self.unreadable[summary.place] = summary.chunk.unreadable_count
        summary = dataclasses.replace(summary, chunk=dataclasses.replace(summary.chunk, victims=()))
        for each in summary.messages[among(summary.messages, over)].tolist():
            self.late.setdefault(each, _Late(told="a whole life"))
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
            code = int(codes[row])
            before = self.late.get(int(hashes[code]))
            if before is None or before.again is None:
                self.late[int(hashes[code])] = self._late(
                    residue.rows, row, int(hashes[code]), message.dictionary[code]
                )
        rows = dataclasses.replace(residue, rows=_taken(residue.rows, kept), marks=residue.marks[kept])
        return dataclasses.replace(summary, residue=rows)

    def _late(self, rows: Encoded, row: int, hashed: int, name: pa.Scalar) -> _Late:
        event, flag = EVENTS[rows.numbers["event"][row]], int(rows.numbers["redelivered"][row])
        place = np.searchsorted(self._state.over, np.uint64(hashed))
        again = event is Event.DELIVERED and bool(self._state.over_delivered[place])
        queue = rows.named["queue"][row].as_py()
        told = f"{event}{_FLAGS.get(flag, '') if event is Event.DELIVERED else ''}"
        return _Late(message=name.as_py(), told=told, again=_AGAIN[flag == 1] if again else None, queue=queue)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Late:
    """A late line: it is about a message that was over.

    Attributes:
        message: its id; ``None`` of a second plain life.
        told: what the line tells, in words.
        again: the anomaly that it is, if the line is a delivery and there was one before.
        queue: that of the line, if it names one.
    """

    told: str
    message: str | None = None
    again: Anomaly | None = None
    queue: str | None = None


_FLAGS: Final = {0: ", unflagged", 1: ", flagged"}
_AGAIN: Final = {False: Anomaly.UNFLAGGED_DUPLICATE, True: Anomaly.DUPLICATE}


def _codes(column: pa.DictionaryArray) -> Ints:
    return np.asarray(column.indices.cast(pa.int64()).fill_null(ABSENT))


def _taken(rows: Encoded, chosen: Mask) -> Encoded:
    """Some rows; names that none of them has are dropped."""
    keep = pa.array(chosen)
    named = {name: column.filter(keep) for name, column in rows.named.items()}
    named["message"] = named["message"].cast(pa.string()).dictionary_encode()
    return Encoded({name: column[chosen] for name, column in rows.numbers.items()}, named)


def _beside(rows: Encoded) -> Encoded:
    """Return ``rows`` without bare times that are no longer beside other rows of their process."""
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
        self._configurations = configurations_of(folder.asked.configuration)
        residues = [each.residue.rows for each in outcome.summaries if each.residue is not None]
        self._rows = concatenated(residues)
        self._events = outcome.events
        self._latest = max(state.latest, int(self._rows.numbers["t"].max()))
        self._since, self._until = self._latest - horizon, self._latest - delay
        rows = np.flatnonzero((self._events.message != ABSENT) & (self._events.event != ABSENT))
        self._last = np.full(self._events.count_of("message"), -1, np.int64)
        np.maximum.at(self._last, self._events.message[rows], self._events.t[rows])

    def told(self, late: Mapping[int, _Late]) -> tuple[State, tuple[Alert, ...]]:
        """Return the state after the batch, and the new alerts; ``late`` as :class:`_Batch` has it."""
        state, summaries = self._state, self._outcome.summaries
        forgotten = np.flatnonzero((self._last >= 0) & (self._last < self._since))
        news = [*self._new()]
        overdue = self._open(forgotten, {*self._state.told, *((each.message, each.kind) for each in news)})
        alerts = [
            *news,
            *(
                Alert(t=int(self._last[m]), message=self._name(m), kind=OVERDUE, verdict="unknown", why=_OVERDUE)
                for m in overdue.tolist()
            ),
            *map(self._late, late.values()),
        ]
        over, over_since, over_delivered = self._over(forgotten)
        left = sum(len(each.messages) for each in summaries)
        return (
            State(
                latest=self._latest,
                rows=self._kept(forgotten),
                over=over,
                over_since=over_since,
                over_delivered=over_delivered,
                told=self._remembered(alerts, forgotten),
                events=state.events + sum(each.events for each in summaries if each.place > 0),
                messages=state.messages + left + len(forgotten),
                parse_errors=state.parse_errors + sum(each.chunk.unreadable_count for each in summaries),
                late=state.late + len(late),
                overdue=state.overdue + len(overdue),
            ),
            tuple(alerts),
        )

    def _late(self, late: _Late) -> Alert:
        """Return the alert for a late line; a second delivery is judged by kind."""
        alert = functools.partial(Alert, t=self._latest, message=late.message)
        if late.again is None:
            return alert(kind=LATE, verdict="unknown", why=f"{late.told} {_LATE}")
        configuration = self._configurations.of_queues.get(late.queue or "", self._configurations.general)
        if configuration is None:
            return alert(kind=str(late.again), verdict="unknown", why="no configuration is known")
        findings = self._outcome.findings
        faults = {*findings.faults, *findings.broken}
        asked = (self._specification, configuration, faults)
        answers = allowed(*asked, actions=findings.actions, found=[late.again])
        if answers[late.again].answer is False:
            return alert(kind=str(late.again), verdict="invalid", why=_AGAIN_FOR_NOTHING)
        return alert(kind=str(late.again), verdict="unknown", why=_AGAIN_PERHAPS)

    def _name(self, code: int, kind: str = "") -> str:
        """Return the id of a message, or the name of a transaction, as cases of this ``kind`` have it."""
        column = "transaction" if kind == Anomaly.TORN_TRANSACTION else "message"
        return str(self._events.names[column][code].as_py())

    def _open(self, messages: Ints, told: Collection[tuple[str | None, str]]) -> Ints:
        """Return the ``messages`` that were forgotten in mid-life, without an alert."""
        rows = self._events.places(*_ENDS)
        named = {name for name, _ in told}
        its = np.setdiff1d(messages, self._events.message[rows])
        return np.array([message for message in its.tolist() if self._name(message) not in named], np.int64)

    def _new(self) -> Iterator[Alert]:
        """Yield the new alerts about messages and transactions that had time for all their lines."""
        outcome = self._outcome
        for place, (its, findings) in enumerate(zip(outcome.examined.judgements, outcome.findings.each, strict=True)):
            for anomaly in its.counted:
                yield from self._alerts(place, its, findings, anomaly)
            for message in self._not_told(its.unnamed(), CONTRADICTION):
                yield self._alert(message, CONTRADICTION, ("invalid", str(its.impossible(message))))

    def _not_told(self, codes: Ints, kind: str) -> Sequence[int]:
        """Return the ``codes`` that had time for all their lines, without an alert of ``kind``."""
        ripe = codes[self._last_of(kind)[codes] <= self._until].tolist()
        return [code for code in ripe if (self._name(code, kind), str(kind)) not in self._state.told]

    def _is_of_the_end(self, anomaly: Anomaly) -> bool:
        """Whether it is concluded from the end of a history alone: then it is told where the model excludes it."""
        definition = self._specification.properties.get(anomaly)
        if definition is None or definition.rest != "end":
            return False
        return any(monitor.marked_at_rest for monitor in definition.monitors)

    def _alerts(self, place: int, its: Judgements, findings: Findings, anomaly: Anomaly) -> Iterator[Alert]:
        rows = its.of(anomaly)
        codes = codes_of(rows)
        new = self._not_told(codes, anomaly)
        if self._is_of_the_end(anomaly):
            for message in np.intersect1d(new, its.accused()).tolist():
                yield self._alert(message, anomaly, ("invalid", str(its.impossible(message))))
            return
        rows = rows.take(np.searchsorted(codes, new))
        asked = its.configured and any(each["by_kind"] or each["doubted"] for each in rows.to_pylist())
        for each in with_allowed(rows, self._result.allowed_kinds[place] if asked else {}).to_pylist():
            yield self._alert(each["case"], anomaly, _verdict(its, findings, each))

    def _alert(self, code: int, kind: str, told: tuple[str, str]) -> Alert:
        t, (verdict_, why) = int(self._last_of(kind)[code]), told
        return Alert(t=t, message=self._name(code, kind), kind=str(kind), verdict=verdict_, why=why)

    def _last_of(self, kind: str) -> Ints:
        """When the last line was written of each message, or transaction, that may have it."""
        return self._last_of_transactions if kind == Anomaly.TORN_TRANSACTION else self._last

    @functools.cached_property
    def _last_of_transactions(self) -> Ints:
        """When something was told last of each transaction, or of a message in it."""
        events = self._events
        found = np.full(events.count_of("transaction"), -1, np.int64)
        rows = np.flatnonzero(events.transaction != ABSENT)
        np.maximum.at(found, events.transaction[rows], events.t[rows])
        rows = rows[events.message[rows] != ABSENT]
        np.maximum.at(found, events.transaction[rows], self._last[events.message[rows]])
        return found

    @functools.cached_property
    def _result(self) -> Result:
        return verdict(self._outcome.findings, self._specification)

    def _over(self, forgotten: Ints) -> tuple[Hashes, Ints, Mask]:
        """Return hashes of finished messages, times in ns, and delivered ones, younger than two horizons."""
        state, summaries = self._state, self._outcome.summaries
        names = self._events.names["message"].take(pa.array(forgotten))
        plain = [each.messages for each in summaries]  # an application was delivered each of them
        had = np.isin(forgotten, self._events.message[self._events.places(Event.DELIVERED)])
        new = np.concatenate([hashes_of(names), *plain])
        hashes, first = np.unique(np.concatenate([state.over, new]), return_index=True)
        since = np.concatenate([state.over_since, np.full(len(new), self._latest)])[first]
        delivered = np.concatenate([state.over_delivered, had, np.ones(len(new) - len(had), bool)])[first]
        kept = since >= self._since
        return hashes[kept], since[kept], delivered[kept]

    def _kept(self, forgotten: Ints) -> Encoded:
        """Return the rows that are not forgotten, and the rows of faults that last."""
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


def _verdict(its: Judgements, findings: Findings, row: Mapping[str, Any]) -> tuple[str, str]:
    """The verdict on the case in a ``row``, and why."""
    anomaly, code = row["anomaly"], row["case"]
    if not its.configured:
        return "unknown", "no configuration is known"
    if row["allowed"]:
        return "allowed", ""
    if row["allowed"] is False:
        by_itself = anomaly != Anomaly.TORN_TRANSACTION and code in its.accused()
        if by_itself:
            return "invalid", str(its.impossible(code))
        return "invalid", "no fault that is known allows it" if row["by_kind"] else _WITH_ANOTHER
    doubt = findings.anomalies[Anomaly(anomaly)].doubt if row["doubted"] else None
    return "unknown", doubt or its.why_undecided(code) or "the tables cannot decide it"


_ENDS: Final = (Event.PROCESSED, Event.REJECTED, Event.EXPIRED, Event.DEAD_LETTERED, Event.ROLLED_BACK)
_WITH_ANOTHER: Final = "together with another message it does not conform to the model"
_LATE: Final = "after its life was over and it had been forgotten"
_AGAIN_FOR_NOTHING: Final = "its life was over, and no fault that is known allows another delivery"
_AGAIN_PERHAPS: Final = "its life was over and is forgotten, so that nobody can tell whether a fault explains it"
_OVERDUE: Final = "it had not come to rest when nothing had been told of it for so long that it was forgotten"
