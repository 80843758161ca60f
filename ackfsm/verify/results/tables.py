"""The results of a verification as tables: each message, each anomaly of each, the faults, and a summary.

The schemas are :data:`TABLES`.  Messages that a fold has left out have rows of their own (:class:`PlainRows`), which
are made from their chunk again.
"""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT, Events, assemble
from ackfsm.history.index import Index
from ackfsm.history.joins import NONE, distinct_pairs
from ackfsm.history.queues import Configurations
from ackfsm.history_format import Event
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Fault, InputError, Verdict
from ackfsm.text import shown
from ackfsm.verify.findings.decided import NO, OPEN, YES, Accusation, Having, Judged
from ackfsm.verify.findings.examine import Outcome, stuck_messages
from ackfsm.verify.findings.findings import Findings
from ackfsm.verify.findings.verdict import Result
from ackfsm.verify.folding.summary import Chunk, Hashes, hashes_of

__all__ = [
    "ANOMALIES",
    "CONTRADICTION",
    "MESSAGES",
    "SUMMARY",
    "TABLES",
    "TIMELINE",
    "FirstMessage",
    "HeldAgainst",
    "Judgement",
    "PlainRows",
    "ResultTables",
    "first_messages",
    "result_tables",
]

CONTRADICTION: Final = "contradiction"
"""What it is called that a message is no run of the model though no anomaly says so."""

MESSAGES: Final = "messages"
ANOMALIES: Final = "anomalies"
SUMMARY: Final = "summary"
TIMELINE: Final = "timeline"

_TEXT, _WHOLE, _FLAG = pa.string(), pa.int64(), pa.bool_()
_TEXTS: Final = pa.list_(pa.field("element", _TEXT, nullable=False))


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(list(columns.items()))


TABLES: Final[Mapping[str, pa.Schema]] = MappingProxyType(
    {
        MESSAGES: _schema(
            history=_TEXT,
            queue=_TEXT,
            message=_TEXT,
            producer=_TEXT,
            first_sent=_WHOLE,
            last_told=_WHOLE,
            verdict=_TEXT,
            anomalies=_TEXTS,
            causes=_TEXTS,
            explanation=_TEXT,
            line=_WHOLE,
            t=_WHOLE,
        ),
        ANOMALIES: _schema(
            history=_TEXT,
            queue=_TEXT,
            message=_TEXT,
            anomaly=_TEXT,
            transaction=_TEXT,
            process=_TEXT,
            allowed=_FLAG,
            unexplained=_FLAG,
            undecided=_FLAG,
            by_kind=_FLAG,
            doubted=_FLAG,
            causes=_TEXTS,
            first_line=_WHOLE,
            first_t=_WHOLE,
        ),
        SUMMARY: _schema(
            history=_TEXT,
            configuration=_TEXT,
            queues=_TEXT,
            verdict=_TEXT,
            reasons=_TEXTS,
            kind=_TEXT,
            name=_TEXT,
            count=_WHOLE,
            found=_WHOLE,
            unexplained=_WHOLE,
            undecided=_WHOLE,
            allowed=_FLAG,
            stood=_FLAG,
        ),
        TIMELINE: _schema(
            history=_TEXT,
            fault=_TEXT,
            victim=_TEXT,
            queue=_TEXT,
            since=_WHOLE,
            until=_WHOLE,
            recorded=_FLAG,
            assumed=_FLAG,
            messages=_WHOLE,
            times=_WHOLE,
        ),
    }
)
"""The columns of each result table, by its name; docs/history.md says what they mean."""

_VALID, _UNKNOWN, _INVALID = range(3)
_VERDICTS: Final = pa.array([Verdict.VALID.value, Verdict.UNKNOWN.value, Verdict.INVALID.value])


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _MessageColumns:
    """What the lines of each message tell: rows of events, or :data:`NONE`, and times in nanoseconds."""

    events: Events
    messages: Ints
    sent: Ints
    first_sent: Ints
    first: Ints
    last: Ints
    queue: Ints

    @classmethod
    def of(cls, events: Events) -> _MessageColumns:
        count = events.count_of("message")
        rows = np.flatnonzero(events.message != ABSENT)
        message, t = events.message[rows], events.t[rows]
        index = Index.of(events)
        sends, sent, first = index.sends, index.first_send, np.full(count, NONE, np.int64)
        in_lines = rows[np.lexsort((events.line[rows], t))][::-1]
        first[events.message[in_lines]] = in_lines
        first_sent, last = np.full(count, _LATEST), np.full(count, -_LATEST)
        np.minimum.at(first_sent, events.message[sends], events.t[sends])
        np.maximum.at(last, message, t)
        return cls(events, np.flatnonzero(first != NONE), sent, first_sent, first, last, index.queue_of)

    def queues(self, messages: Ints) -> pa.Array:
        return _names(self.events, "queue", self.queue[messages])

    def columns(self, messages: Ints) -> dict[str, pa.Array]:
        """The columns that any message has."""
        events, sent = self.events, self.sent[messages]
        process = np.where(sent == NONE, ABSENT, events.process[sent])
        return {
            "queue": self.queues(messages),
            "message": _names(events, "message", messages),
            "producer": _names(events, "process", process),
            "first_sent": pa.array(self.first_sent[messages], mask=sent == NONE),
            "last_told": pa.array(self.last[messages]),
        }


_LATEST: Final = np.iinfo(np.int64).max


def _names(events: Events, column: str, codes: Ints) -> pa.Array:
    taken = events.names[column].take(pa.array(codes, mask=codes == ABSENT))
    return taken.cast(_TEXT)


def _processes_of_transactions(events: Events) -> Ints:
    """The process of each transaction; last, for :data:`ABSENT`, none."""
    found = np.full(events.count_of("transaction") + 1, ABSENT, np.int64)
    rows = np.flatnonzero(events.transaction != ABSENT)
    found[events.transaction[rows]] = events.process[rows]
    return found


def _lists(count: int, owner: Sequence[int] | Ints, values: Sequence[str]) -> pa.Array:
    """For each of so many rows the different ``values`` that it is the ``owner`` of, sorted."""
    pairs = sorted({*zip(np.asarray(owner, np.int64).tolist(), values, strict=True)})
    offsets = np.searchsorted([row for row, _ in pairs], np.arange(count + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array([value for _, value in pairs], _TEXT)).cast(_TEXTS)


def _table(name: str, history: str, columns: Mapping[str, Any], count: int) -> pa.Table:
    schema = TABLES[name]
    whole = {"history": pa.repeat(pa.scalar(history), count), **columns}
    arrays = [_column(whole.get(field.name), field.type, count) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _column(values: Any, kind: pa.DataType, count: int) -> pa.Array:
    if values is None:
        return pa.nulls(count, kind)
    return values if isinstance(values, pa.Array) and values.type == kind else pa.array(values, kind)


@dataclasses.dataclass(frozen=True, slots=True)
class PlainRows:
    """Makes the rows of ``messages`` of those that a fold left out: they conform, and have no anomaly.

    Attributes:
        history: its name.
        configurations: what its messages are judged by.
        open: whether nothing is known of any of them for certain, since lines could not be read.
    """

    history: str
    configurations: Configurations
    open: bool

    def __call__(self, chunk: Chunk, left: Hashes) -> pa.Table:
        """The rows of the messages of ``chunk`` whose ids have the hashes ``left``, ascending, at least one.

        Raises :class:`InputError` if the chunk is no longer what was folded.
        """
        facts = None if chunk.events is None else _MessageColumns.of(assemble([chunk.events]))
        messages = np.empty(0, np.int64)
        if facts is not None:
            hashes = hashes_of(facts.events.names["message"].take(pa.array(facts.messages)))
            place = np.minimum(np.searchsorted(left, hashes), len(left) - 1)  # np.isin would not know that it is sorted
            messages = facts.messages[left[place] == hashes]
        if facts is None or len(messages) != len(left):
            raise InputError(
                f"{shown(self.history)} was changed while it was read; verify it when nothing writes to it"
            )
        verdicts = np.where(self._configured(facts)[facts.queue[messages]] & (not self.open), _VALID, _UNKNOWN)
        empty = _lists(len(messages), (), ())
        columns = facts.columns(messages) | {
            "verdict": _VERDICTS.take(pa.array(verdicts)),
            "anomalies": empty,
            "causes": empty,
        }
        return _table(MESSAGES, self.history, columns, len(messages))

    def _configured(self, facts: _MessageColumns) -> Mask:
        """For each queue whether its configuration is known; last, for no queue."""
        known = [each is not None for each in self.configurations.distinct()]
        return np.array(known)[self.configurations.numbers(facts.events.names["queue"])]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """Those messages that have one anomaly, as columns; ``transaction`` is :data:`ABSENT` where there is none."""

    anomaly: Anomaly
    message: Ints
    transaction: Ints
    place: Ints
    having: Having


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HeldAgainst:
    """One anomaly of one message.

    Attributes:
        anomaly: which.
        allowed: whether it is allowed; ``None`` where that is open.
        unexplained: whether nothing explains it; ``None`` where no model decides it.
        undecided: whether the model decided nothing.
        by_kind: whether what the kind of the anomaly is allowed decides.
        doubted: whether it may be of the recording.
        transaction: the torn transaction, by code; ``None`` for other anomalies.
        needs: what explains it: each cause by its name, with the row that tells it (:data:`NONE`: no line does).
    """

    anomaly: Anomaly
    allowed: bool | None
    unexplained: bool | None
    undecided: bool = False
    by_kind: bool = False
    doubted: bool = False
    transaction: int | None = None
    needs: tuple[tuple[str, int], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one message, its anomalies, and what is impossible of it; ``None`` if it is a run of the model."""

    verdict: Verdict
    anomalies: tuple[HeldAgainst, ...]
    accusation: Accusation | None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ResultTables:
    """What was decided of each message that was kept, under a verdict."""

    _outcome: Outcome
    _result: Result
    _specification: Specification
    _columns: _MessageColumns
    _rows: tuple[_Row, ...]
    _stuck: tuple[tuple[str, bool | None], ...]
    _severity: Ints
    _accusations: Mapping[int, Accusation]

    def tables(self) -> Mapping[str, pa.Table]:
        """All tables; of ``messages`` the rows of those that were kept."""
        return {
            MESSAGES: self._messages(),
            ANOMALIES: self.anomalies(),
            SUMMARY: _summary(self._result),
            TIMELINE: self._timeline(),
        }

    def judgement(self, message: int) -> Judgement:
        """What was decided of the ``message`` of that code."""
        held = [each for row in self._rows for each in _held(row, message)]
        name = str(self._columns.events.names["message"][message])
        held += [
            HeldAgainst(anomaly=Anomaly.STUCK, allowed=allowed, unexplained=None, by_kind=True)
            for stuck, allowed in self._stuck
            if stuck == name
        ]
        verdict = Verdict(_VERDICTS[int(self._severity[message])].as_py())
        return Judgement(verdict, tuple(held), self._accusations.get(message))

    @property
    def accusations(self) -> Mapping[int, Accusation]:
        """What is impossible of messages, by the code of the one against which it is held."""
        return self._accusations

    def worst(self, anomaly: Anomaly | None = None) -> tuple[int, ...]:
        """The messages, by code, that have ``anomaly``, or any, or are no run of the model.

        What nothing explains comes first, then what is not allowed or open; those alike are in the order of the lines
        that tell of them first.
        """
        ranks = {} if anomaly else dict.fromkeys(self._accusations, 0)
        for row in self._rows:
            if anomaly in {None, row.anomaly}:
                for message, place in zip(row.message.tolist(), row.place.tolist(), strict=True):
                    ranks[message] = min(_rank(row.having, place), ranks.get(message, _LEAST))
        if anomaly in {None, Anomaly.STUCK}:
            for name, allowed in self._stuck:
                for message in _codes_of(self._columns.events, [name]).tolist():
                    ranks[message] = min(_LEAST if allowed else 1, ranks.get(message, _LEAST))
        first, events = self._columns.first, self._columns.events
        return tuple(
            sorted(
                ranks,
                key=lambda message: (ranks[message], int(events.t[first[message]]), int(events.line[first[message]])),
            )
        )

    def in_question(self) -> Mapping[str, Ints]:
        """For each anomaly that was found the messages that have it, by code, in the order of :meth:`worst`.

        Those that are no run of the model, though no anomaly says so, have :data:`CONTRADICTION`.
        """
        ranked: dict[str, list[tuple[Ints, Ints]]] = defaultdict(list)
        for row in self._rows:
            unexplained, allowed = (each[row.place] == YES for each in (row.having.unexplained, row.having.allowed))
            ranked[row.anomaly.value].append((row.message, np.select([unexplained, allowed], [0, _LEAST], 1)))
        for name, allows in self._stuck:
            codes = _codes_of(self._columns.events, [name])
            ranked[Anomaly.STUCK.value].append((codes, np.full(len(codes), _LEAST if allows else 1)))
        unnamed = np.array([code for code, each in self._accusations.items() if each.unnamed], np.int64)
        ranked[CONTRADICTION].append((unnamed, np.zeros(len(unnamed), np.int64)))
        found = {name: self._in_order(its) for name, its in ranked.items()}
        return {name: codes for name, codes in found.items() if len(codes)}

    def _in_order(self, ranked: Sequence[tuple[Ints, Ints]]) -> Ints:
        messages, ranks = (np.concatenate(column) for column in zip(*ranked, strict=True))
        first, events = self._columns.first[messages], self._columns.events
        order = np.lexsort((events.line[first], events.t[first], ranks))
        _, each = np.unique(messages[order], return_index=True)
        return np.asarray(messages[order][np.sort(each)], np.int64)

    def first_told(self, messages: Ints) -> Ints:
        """The row of the first line that tells of each of ``messages``."""
        return self._columns.first[messages]

    def queues_of(self, messages: Ints) -> Ints:
        """The queue of each of ``messages``, by code."""
        return np.asarray(self._columns.queue[messages], np.int64)

    def timeline(self) -> pa.Table:
        """The table ``timeline`` alone."""
        return self._timeline()

    @property
    def _history(self) -> str:
        return self._result.findings.history

    def _messages(self) -> pa.Table:
        facts = self._columns
        messages = facts.messages
        place = np.full(len(self._severity), NONE, np.int64)
        place[messages] = np.arange(len(messages))
        of_stuck = _codes_of(facts.events, [name for name, _ in self._stuck])
        has = np.concatenate([of_stuck, *(row.message for row in self._rows)])
        named = [str(Anomaly.STUCK)] * len(of_stuck)
        named += [row.anomaly.value for row in self._rows for _ in range(len(row.message))]
        needs = [pair for row in self._rows for pair in _needed(row)]
        whys = {message: self._accusations[message].why for message in self._accusations}
        accused = [whys.get(message) for message in messages.tolist()]
        columns = facts.columns(messages) | {
            "verdict": _VERDICTS.take(pa.array(self._severity[messages])),
            "anomalies": _lists(len(messages), place[has], named),
            "causes": _lists(
                len(messages), place[[message for message, _, _ in needs]], [cause for _, cause, _ in needs]
            ),
            "explanation": [None if each is None else str(each) for each in accused],
            "line": [None if each is None else each.line for each in accused],
            "t": [None if each is None else each.t for each in accused],
        }
        return _table(MESSAGES, self._history, columns, len(messages))

    def anomalies(self) -> pa.Table:
        """A row for each anomaly of each message; who was left out has none."""
        parts = [self._of_anomaly(row) for row in self._rows]
        return pa.concat_tables([self._of_stuck(), *parts])

    def _of_anomaly(self, row: _Row) -> pa.Table:
        facts, having, place = self._columns, row.having, row.place
        count, events = len(row.message), self._columns.events
        first = facts.first[row.message]
        by_code = _places(having.codes)
        owners = [by_code[code] for code in having.needs.of.tolist()]
        causes = _lists(len(having.codes), owners, having.needs.cause)
        columns = {
            "queue": facts.queues(row.message),
            "message": _names(events, "message", row.message),
            "anomaly": pa.repeat(pa.scalar(row.anomaly.value), count),
            "transaction": _names(events, "transaction", row.transaction),
            "process": _names(events, "process", _processes_of_transactions(events)[row.transaction]),
            "allowed": _flags(having.allowed[place]),
            "unexplained": _flags(having.unexplained[place]),
            "undecided": having.undecided[place],
            "by_kind": having.by_kind[place],
            "doubted": having.doubted[place],
            "causes": causes.take(pa.array(place)),
            "first_line": events.line[first],
            "first_t": events.t[first],
        }
        return _table(ANOMALIES, self._history, columns, count)

    def _of_stuck(self) -> pa.Table:
        """Of what was seen at rest the kind decides; a message may be known by its id alone."""
        facts, names, count = self._columns, [name for name, _ in self._stuck], len(self._stuck)
        codes = [_places(facts.events.names["message"].to_pylist()).get(name, ABSENT) for name in names]
        known = np.array(codes, np.int64)
        first = np.where(known == ABSENT, NONE, facts.first[known]) if count else known
        absent = first == NONE
        columns = {
            "queue": _names(facts.events, "queue", np.where(known == ABSENT, ABSENT, facts.queue[known]))
            if count
            else None,
            "message": names,
            "anomaly": [str(Anomaly.STUCK)] * count,
            "allowed": [allowed for _, allowed in self._stuck],
            "undecided": [False] * count,
            "by_kind": [True] * count,
            "doubted": [False] * count,
            "causes": [[] for _ in range(count)],
            "first_line": pa.array(facts.events.line[first], mask=absent),
            "first_t": pa.array(facts.events.t[first], mask=absent),
        }
        return _table(ANOMALIES, self._history, columns, count)

    def _timeline(self) -> pa.Table:
        explained: dict[tuple[int, str], set[int]] = defaultdict(set)
        for row in self._rows:
            for message, cause, told_at in _needed(row):
                explained[told_at, cause].add(message)
        rows = [*self._recorded(explained), *self._broken(explained), *self._unrecorded()]
        rows.sort(key=lambda each: (each["since"], each["fault"], each["victim"] or "", each["queue"] or ""))
        return pa.Table.from_pylist([{"history": self._history, **each} for each in rows], TABLES[TIMELINE])

    def _recorded(self, explained: Mapping[tuple[int, str], set[int]]) -> Iterator[_Interval]:
        """The faults that lines tell, each until its repair."""
        events = self._outcome.examined.events
        of_row: dict[int, set[int]] = defaultdict(set)
        for (row, _), messages in explained.items():
            of_row[row] |= messages
        for fault, repair in events.outages:
            row = fault.moment[0]
            victims = [str(events.names["process"][each]) for each in fault.victims]
            yield {
                "fault": fault.fault,
                "victim": ", ".join(sorted(victims)) or None,
                "queue": None if fault.queue == ABSENT else str(events.names["queue"][fault.queue]),
                "since": int(events.t[row]),
                "until": None if repair is None else int(events.t[repair.moment[0]]),
                "recorded": True,
                "messages": len(of_row[row]),
                "times": 1,
            }

    def _broken(self, explained: Mapping[tuple[int, str], set[int]]) -> Iterator[_Interval]:
        """The connections that a ``close`` with an ``error`` shows to have broken, of producers and of consumers."""
        events = self._outcome.examined.events
        closes = events.places(Event.CLOSE)
        sides = (
            (Fault.PRODUCER_LINK_LOSS, "broken connection", events.places(Event.SEND, Event.RESEND)),
            (Fault.CONSUMER_LINK_LOSS, "consumer's broken connection", events.places(Event.DELIVERED)),
        )
        for fault, cause, acts in sides:
            for row in closes[
                (events.errs[closes] == 1) & np.isin(events.process[closes], events.process[acts])
            ].tolist():
                yield {
                    "fault": fault.value,
                    "victim": str(events.names["process"][events.process[row]]),
                    "queue": None,
                    "since": int(events.t[row]),
                    "until": int(events.t[row]),
                    "recorded": False,
                    "messages": len(explained.get((row, cause), ())),
                    "times": 1,
                }

    def _unrecorded(self) -> Iterator[_Interval]:
        """The faults that explain messages although no line tells of them."""
        found = self._result.findings.unrecorded
        for each in () if found is None else found.timeline:
            yield {
                "fault": each.fault.value,
                "victim": each.victim,
                "queue": None,
                "since": each.begin,
                "until": each.end,
                "recorded": False,
                "assumed": found is not None and found.assumed,
                "messages": each.messages,
                "times": each.times,
            }


_Interval: TypeAlias = dict[str, Any]

_LEAST: Final = 2
"""The rank of what is allowed."""


def _rank(judged: Judged, place: int) -> int:
    if judged.unexplained[place] == YES:
        return 0
    return _LEAST if judged.allowed[place] == YES else 1


def _held(row: _Row, message: int) -> Iterator[HeldAgainst]:
    for nth in np.flatnonzero(row.message == message).tolist():
        place, having = int(row.place[nth]), row.having
        told, needs = np.flatnonzero(having.needs.of == having.codes[place]).tolist(), having.needs
        yield HeldAgainst(
            anomaly=row.anomaly,
            allowed=_told(having.allowed[place]),
            unexplained=_told(having.unexplained[place]),
            undecided=bool(having.undecided[place]),
            by_kind=bool(having.by_kind[place]),
            doubted=bool(having.doubted[place]),
            transaction=int(row.transaction[nth]) if row.transaction[nth] != ABSENT else None,
            needs=tuple((needs.cause[each], int(needs.row[each])) for each in told),
        )


def _told(answer: int) -> bool | None:
    return None if answer == OPEN else bool(answer == YES)


def _places(values: Iterable[Any] | Ints) -> dict[Any, int]:
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    return {value: place for place, value in enumerate(listed)}


def _flags(answers: Any) -> pa.Array:
    return pa.array(answers == YES, mask=answers == OPEN)


def _codes_of(events: Events, names: Sequence[str]) -> Ints:
    """The codes of those of these ids of which a line tells."""
    if not names:
        return np.empty(0, np.int64)
    known = _places(events.names["message"].to_pylist())
    return np.array([known[name] for name in names if name in known], np.int64)


def _needed(row: _Row) -> Iterator[tuple[int, str, int]]:
    """What the messages of a row need: each with one cause, and the row of the events that tells it."""
    needs = row.having.needs
    members: dict[int, list[int]] = defaultdict(list)
    for code, message in zip(row.having.codes[row.place].tolist(), row.message.tolist(), strict=True):
        members[code].append(message)
    for code, cause, told_at in zip(needs.of.tolist(), needs.cause, needs.row.tolist(), strict=True):
        yield from ((message, cause, told_at) for message in members[code])


def result_tables(outcome: Outcome, result: Result, specification: Specification) -> ResultTables:
    """What was decided of each message, under the verdict ``result`` on what ``outcome`` came to."""
    columns = _MessageColumns.of(outcome.events)
    parts = [part.findings for part in result.findings.parts] or [result.findings]
    judging = _Judging(outcome, result, specification, np.zeros(outcome.events.count_of("message"), np.int64))
    rows = judging.rows(parts)
    stuck = judging.stuck(parts)
    accusations = judging.accused()
    judging.open(parts)
    return ResultTables(outcome, result, specification, columns, rows, stuck, judging.severity, accusations)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FirstMessage:
    """The first message with some anomaly: that nothing explains, else that is not allowed, else any.

    Attributes:
        message: its id.
        line, t: the first line that tells of it, nanoseconds; ``None`` if none does.
    """

    message: str
    line: int | None
    t: int | None


def first_messages(outcome: Outcome, result: Result, specification: Specification) -> Mapping[Anomaly, FirstMessage]:
    """Of every anomaly that was found the first message that has it; no cause is sought."""
    columns = _MessageColumns.of(outcome.events)
    events, first = columns.events, columns.first
    parts = [part.findings for part in result.findings.parts] or [result.findings]
    judging = _Judging(outcome, result, specification, np.zeros(events.count_of("message"), np.int64))
    ranked: dict[Anomaly, list[tuple[int, int, int, int]]] = defaultdict(list)
    for anomaly, judged, message, place in judging.judged(parts):
        ranks = np.select([judged.unexplained == YES, judged.allowed == YES], [0, _LEAST], 1)[place]
        rows = first[message]
        order = np.lexsort((events.line[rows], events.t[rows], ranks))[:1]
        ranked[anomaly] += [
            (int(ranks[each]), int(events.t[rows[each]]), int(events.line[rows[each]]), int(message[each]))
            for each in order
        ]
    found = {
        anomaly: FirstMessage(message=str(events.names["message"][code]), line=line, t=t)
        for anomaly, its in ranked.items()
        for _, t, line, code in [min(its)]
    }
    return {**found, **_first_stuck(judging.stuck(parts), columns)}


def _first_stuck(stuck: Sequence[tuple[str, bool | None]], columns: _MessageColumns) -> Mapping[Anomaly, FirstMessage]:
    names = [name for name, allowed in stuck if not allowed] or [name for name, _ in stuck]
    if not names:
        return {}
    codes = _codes_of(columns.events, names[:1])
    row = int(columns.first[codes[0]]) if len(codes) else NONE
    line, t = (None, None) if row == NONE else (int(columns.events.line[row]), int(columns.events.t[row]))
    return {Anomaly.STUCK: FirstMessage(message=names[0], line=line, t=t)}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Judging:
    """Judges each message: ``invalid`` for what makes its history so, ``valid`` only if nothing is open of it."""

    outcome: Outcome
    result: Result
    specification: Specification
    severity: Ints

    def _at_least(self, messages: Ints, severity: Any) -> None:
        np.maximum.at(self.severity, messages, severity)

    @property
    def _unread(self) -> bool:
        return self.result.findings.parse_errors > 0

    def rows(self, parts: Sequence[Findings]) -> tuple[_Row, ...]:
        """The messages that have each anomaly; what is held against them is taken into account."""
        found = []
        for findings, decided, kinds in zip(
            parts, self.outcome.examined.decided, self.result.allowed_kinds, strict=True
        ):
            for anomaly in findings.anomalies:
                if anomaly is Anomaly.STUCK or not len(decided.found[anomaly]):
                    continue
                having = decided.having(anomaly, kinds.get(anomaly))
                row = self._row(anomaly, having)
                missing = self._unread and findings.anomalies[anomaly].needs_every_line
                severity = np.select(
                    [having.allowed == YES, (having.allowed == NO) & (not missing)], [_VALID, _INVALID], _UNKNOWN
                )
                self._at_least(row.message, severity[row.place])
                found.append(row)
        return tuple(found)

    def judged(self, parts: Sequence[Findings]) -> Iterator[tuple[Anomaly, Judged, Ints, Ints]]:
        """Of each anomaly what was decided, the messages that have it, and for each its place in that."""
        for findings, decided, kinds in zip(
            parts, self.outcome.examined.decided, self.result.allowed_kinds, strict=True
        ):
            for anomaly in findings.anomalies:
                if anomaly is Anomaly.STUCK or not len(decided.found[anomaly]):
                    continue
                its = decided.judged(anomaly, kinds.get(anomaly))
                if anomaly is Anomaly.TORN_TRANSACTION:
                    transaction, message = self._members(its.codes)
                    yield anomaly, its, message, np.searchsorted(its.codes, transaction)
                else:
                    yield anomaly, its, its.codes, np.arange(len(its.codes))

    def _row(self, anomaly: Anomaly, having: Having) -> _Row:
        codes = having.codes
        if anomaly is not Anomaly.TORN_TRANSACTION:
            return _Row(anomaly, codes, np.full(len(codes), ABSENT), np.arange(len(codes)), having)
        transaction, message = self._members(codes)
        return _Row(anomaly, message, transaction, np.searchsorted(codes, transaction), having)

    def _members(self, transactions: Ints) -> tuple[Ints, Ints]:
        """The messages that were sent or consumed in each of ``transactions``."""
        events = self.outcome.examined.events
        rows = events.places(Event.SEND, Event.RESEND, Event.DELIVERED)
        rows = rows[np.isin(events.transaction[rows], transactions)]
        transaction, message, _ = distinct_pairs(events.transaction[rows], events.message[rows])
        return transaction.astype(np.int64), message.astype(np.int64)

    def stuck(self, parts: Sequence[Findings]) -> tuple[tuple[str, bool | None], ...]:
        """The ids of the messages that are stuck, and whether that is allowed."""
        found = []
        ids = stuck_messages(self.result.findings, self.outcome.history, self.specification)
        for findings, names, kinds in zip(parts, ids, self.result.allowed_kinds, strict=True):
            if not names:
                continue
            allowed = kinds.get(Anomaly.STUCK)
            held = allowed is False and not (self._unread and findings.anomalies[Anomaly.STUCK].needs_every_line)
            codes = _codes_of(self.outcome.examined.events, sorted(names))
            self._at_least(codes, _VALID if allowed else _INVALID if held else _UNKNOWN)
            found += [(name, allowed) for name in sorted(names)]
        return tuple(found)

    def accused(self) -> Mapping[int, Accusation]:
        """Of each message that is no run of the model what is impossible first: by itself, else with another one."""
        found: dict[int, Accusation] = {}
        for decided in self.outcome.examined.decided:
            for each in decided.accusations():
                if each.unnamed:
                    self._at_least(np.array([each.message]), _UNKNOWN if self._unread else _INVALID)
                before = found.get(each.message)
                if before is None or (before.why.beside is not None and _line(each) < _line(before)):
                    found[each.message] = each
        return found

    def open(self, parts: Sequence[Findings]) -> None:
        """What is left open of messages."""
        for findings, decided, kinds in zip(
            parts, self.outcome.examined.decided, self.result.allowed_kinds, strict=True
        ):
            self._at_least(decided.undecided(), _UNKNOWN)
            for anomaly, codes in decided.unrested().items():
                torn = anomaly is Anomaly.TORN_TRANSACTION
                self._at_least(self._members(codes)[1] if torn and len(codes) else codes, _UNKNOWN)
            for anomaly, codes in decided.unrecorded.items():
                if not kinds.get(anomaly):
                    self._at_least(codes, _UNKNOWN)
            if self._unread or findings.configuration is None:
                self._at_least(np.flatnonzero(decided.messages), _UNKNOWN)


def _line(accusation: Accusation) -> tuple[bool, int]:
    why = accusation.why
    return (why.t is None, why.t or 0)


def _summary(result: Result) -> pa.Table:
    """A row for each anomaly, end, counter and guarantee, beside what is of the whole history."""
    found = result.findings
    whole = {
        "history": found.history,
        "configuration": _json(None if found.configuration is None else found.configuration.as_dict()),
        "queues": _json({name: each.as_dict() for name, each in found.queues.items()} or None),
        "verdict": result.verdict.value,
        "reasons": list(result.reasons),
    }
    rows = [{**whole, **each} for each in _measures(result)]
    return pa.Table.from_pylist(rows, TABLES[SUMMARY])


def _measures(result: Result) -> Iterator[dict[str, Any]]:
    found = result.findings
    for anomaly, finding in found.anomalies.items():
        yield {
            "kind": "anomaly",
            "name": anomaly.value,
            "count": finding.count,
            "found": finding.found,
            "unexplained": finding.unexplained,
            "undecided": finding.undecided,
            "allowed": result.allowed[anomaly],
        }
    counters = {"events": found.events, "messages": found.messages, "parse_errors": found.parse_errors}
    for kind, counts in (("counter", {**counters, **found.counters}), ("end", found.ends)):
        for name, count in counts.items():
            yield {"kind": kind, "name": name, "count": count, "found": count}
    for name, stood in result.guarantees.items():
        yield {"kind": "guarantee", "name": name, "stood": stood}


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, sort_keys=True)
