"""The results of a verification as tables: each message, each anomaly of each, the faults, and a summary.

The schemas are :data:`TABLES`.  Messages that a fold has left out have rows of their own (:class:`PlainRows`), which
are made from their chunk again.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT, Events, assemble
from ackfsm.history.format import Event
from ackfsm.history.index import Index
from ackfsm.history.joins import NONE, distinct_pairs
from ackfsm.history.queues import Configurations
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Fault, InputError, Verdict
from ackfsm.text import shown
from ackfsm.verify.findings.examine import Outcome
from ackfsm.verify.findings.judgements import CONTRADICTION, Accusation, codes_of, flags_of, with_allowed
from ackfsm.verify.findings.rest import stuck_of
from ackfsm.verify.findings.verdict import Result
from ackfsm.verify.folding.summary import Chunk, Hashes, hashes_of

__all__ = ["MESSAGES", "TABLES", "FirstMessage", "PlainRows", "ResultTables"]

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
"""The columns of each result table, by its name; docs/verifying.md says what they mean."""

_VALID, _UNKNOWN, _INVALID = range(3)
_VERDICTS: Final = pa.array([Verdict.VALID.value, Verdict.UNKNOWN.value, Verdict.INVALID.value])


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _MessageColumns:
    """The columns of each message: rows of events, or :data:`NONE`, and times in nanoseconds."""

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
    """The maker of rows of ``messages`` that a fold left out: they conform, and have no anomaly.

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


@dataclasses.dataclass(frozen=True, eq=False)
class ResultTables:
    """The decisions on each message in memory, under the verdict ``result``, as tables."""

    outcome: Outcome
    result: Result
    specification: Specification

    @property
    def _events(self) -> Index:
        """Every line spelled out."""
        return self.outcome.examined.events

    @functools.cached_property
    def _columns(self) -> _MessageColumns:
        return _MessageColumns.of(self.outcome.events)

    @functools.cached_property
    def judged(self) -> pa.Table:
        """All cases (:data:`ackfsm.verify.findings.judgements.JUDGED`), and whether each is ``allowed``."""
        parts = zip(self.outcome.examined.judgements, self.result.allowed_kinds, strict=True)
        return pa.concat_tables([with_allowed(each.judged, kinds) for each, kinds in parts]).combine_chunks()

    @functools.cached_property
    def causes(self) -> pa.Table:
        """What explains them, each by its place in :attr:`judged`; what explains a case is searched for."""
        found, before = list[pa.Table](), 0
        for each in self.outcome.examined.judgements:
            causes = each.causes()
            found.append(causes.set_column(0, "place", pc.add(causes["place"], before)))
            before += len(each.judged)
        return pa.concat_tables(found).combine_chunks()

    @functools.cached_property
    def rows(self) -> pa.Table:
        """Return one row for each anomaly of each message, in the order of the cases, then the stuck ones.

        Beside the columns of :attr:`judged` it has the ``place`` of the case there (of what is stuck the one after the
        last), the codes of ``message`` and ``transaction``, or :data:`ABSENT`, and the ``name`` of the message.
        """
        events = self._events
        torn = np.asarray(pc.equal(self.judged["anomaly"], Anomaly.TORN_TRANSACTION.value), bool)
        place, message, transaction = _with_members(events, codes_of(self.judged), torn)
        rows = self.judged.take(pa.array(place))
        own = {"place": place, "message": message, "transaction": transaction}
        for name, column in {**own, "name": _names(events, "message", message)}.items():
            rows = rows.append_column(name, pa.array(column))
        return pa.concat_tables([rows, pa.Table.from_pylist([*self._stuck()], rows.schema)]).combine_chunks()

    def _stuck(self) -> Iterator[dict[str, Any]]:
        """Yield the stuck messages, which are decided by kind; one may be known by its id alone."""
        found = stuck_of(self.result.findings, self.outcome.history, self.specification)
        code = {name: number for number, name in enumerate(self._events.names["message"].to_pylist())} if found else {}
        own = {"anomaly": Anomaly.STUCK.value, "undecided": False, "by_kind": True, "doubted": False}
        own |= {"place": len(self.judged), "transaction": ABSENT}
        for each, kinds in zip(found, self.result.allowed_kinds, strict=False):
            for name in sorted(each.messages):
                yield {**own, "name": name, "message": code.get(name, ABSENT), "allowed": kinds.get(Anomaly.STUCK)}

    @functools.cached_property
    def _message(self) -> Ints:
        """The message of each row, by code."""
        return codes_of(self.rows, "message")

    def _having(self, anomaly: str | None) -> Ints:
        """Return the rows of an ``anomaly`` (``None``: of any) whose messages have a line."""
        known = self._message != ABSENT
        its = known if anomaly is None else known & np.asarray(pc.equal(self.rows["anomaly"], str(anomaly)), bool)
        return np.flatnonzero(its)

    @functools.cached_property
    def _told(self) -> tuple[Accusation, ...]:
        return tuple(each for its in self.outcome.examined.judgements for each in its.accusations())

    @functools.cached_property
    def accusations(self) -> Mapping[int, Accusation]:
        """Return by code the accusation of each message that is no run, alone or else in a pair."""
        found: dict[int, Accusation] = {}
        for each in self._told:
            before = found.get(each.message)
            if before is None or (before.why.beside is not None and _time(each) < _time(before)):
                found[each.message] = each
        return found

    @functools.cached_property
    def severity(self) -> Ints:
        """The verdict on each message, by code, as a place in ``_VERDICTS``: valid only if nothing is open of it."""
        severity = np.zeros(self.outcome.events.count_of("message"), np.int64)
        rows, unread = self._having(None), self.result.findings.parse_errors > 0
        whole = self.result.findings.anomalies
        refutable = [name.value for name, each in whole.items() if unread and each.needs_every_line]
        missing = pc.is_in(self.rows["anomaly"], pa.array(refutable, _TEXT))
        fine = flags_of(self.rows, "allowed")
        bad = np.asarray(pc.invert(pc.or_(missing, self.rows["allowed"].fill_null(True))), bool)  # noqa: FBT003 - the value
        np.maximum.at(severity, self._message[rows], np.select([fine, bad], [_VALID, _INVALID], _UNKNOWN)[rows])
        unnamed = np.array([each.message for each in self._told if each.unnamed], np.int64)
        np.maximum.at(severity, unnamed, _UNKNOWN if unread else _INVALID)
        for messages in self._open():
            np.maximum.at(severity, messages, _UNKNOWN)
        return severity

    def _open(self) -> Iterator[Ints]:
        """Yield the messages that are open."""
        for its, kinds in zip(self.outcome.examined.judgements, self.result.allowed_kinds, strict=True):
            yield its.undecided()
            for anomaly, codes in its.unrested().items():
                torn = anomaly is Anomaly.TORN_TRANSACTION
                yield members_of(self._events, codes)[1] if torn and len(codes) else codes
            yield from (codes for anomaly, codes in its.unrecorded.items() if not kinds.get(anomaly))
            if self.result.findings.parse_errors or not its.configured:
                yield np.flatnonzero(its.messages)

    def tables(self) -> Mapping[str, pa.Table]:
        """Return all tables; ``messages`` has the rows of kept messages only."""
        return {
            MESSAGES: self._messages(),
            ANOMALIES: self.anomalies(),
            SUMMARY: _summary(self.result),
            TIMELINE: self.timeline(),
        }

    def verdict(self, message: int) -> Verdict:
        """The verdict on the ``message`` of that code."""
        return Verdict(_VERDICTS[int(self.severity[message])].as_py())

    def of(self, message: int) -> list[dict[str, Any]]:
        """The :attr:`rows` of the ``message`` of that code; each with its ``causes``: names, and the rows that tell."""
        found = self.rows.take(pa.array(np.flatnonzero(self._message == message))).to_pylist()
        return [{**row, "causes": self._causes_of(row["place"])} for row in found]

    def _causes_of(self, place: int) -> list[tuple[str, int]]:
        its = self.causes.filter(pc.equal(self.causes["place"], place))
        return list(dict.fromkeys(zip(its["cause"].to_pylist(), its["row"].to_pylist(), strict=True)))

    def worst(self, anomaly: Anomaly | None = None) -> Ints:
        """The messages, by code, that have ``anomaly``, or any, or are no run of the model.

        What nothing explains comes first, then what is not allowed or open; those alike are in the order of the lines
        that tell of them first.
        """
        accused = [] if anomaly else [*self.accusations]
        return self._in_order(self._having(anomaly), accused)

    def in_question(self) -> Mapping[str, Ints]:
        """For each anomaly that was found the messages that have it, by code, in the order of :meth:`worst`.

        Those that are no run of the model, though no anomaly says so, have :data:`CONTRADICTION`.
        """
        found = self._by_anomaly()
        unnamed = [code for code, each in self.accusations.items() if each.unnamed]
        found[CONTRADICTION] = self._in_order(self._message[:0], unnamed)
        return {name: codes for name, codes in found.items() if len(codes)}

    def _by_anomaly(self) -> dict[str, Ints]:
        return {name: self._in_order(self._having(name)) for name in self.rows["anomaly"].unique().to_pylist()}

    def _in_order(self, rows: Ints, accused: Sequence[int] = ()) -> Ints:
        """Return the messages of these rows, and the ``accused`` ones, the worst first, each once."""
        rank = np.select([flags_of(self.rows, "unexplained"), flags_of(self.rows, "allowed")], [0, 2], 1)
        messages = np.concatenate([np.array(accused, np.int64), self._message[rows]])
        ranks = np.concatenate([np.zeros(len(accused), np.int64), rank[rows]])
        first, events = self._columns.first[messages], self._columns.events
        order = np.lexsort((events.line[first], events.t[first], ranks))
        _, each = np.unique(messages[order], return_index=True)
        return np.asarray(messages[order][np.sort(each)], np.int64)

    def first(self) -> Mapping[Anomaly, FirstMessage]:
        """Of every anomaly that was found the first message that has it; no cause is sought."""
        found, names = self._by_anomaly(), self._columns.events.names["message"]
        first = {
            Anomaly(name): self._first(str(names[int(codes[0])]), int(codes[0]))
            for name, codes in found.items()
            if len(codes)
        }
        for each in sorted(self._stuck(), key=lambda each: bool(each["allowed"]))[:1]:
            first[Anomaly.STUCK] = self._first(each["name"], each["message"])
        return first

    def _first(self, name: str, code: int) -> FirstMessage:
        events, row = self._columns.events, NONE if code == ABSENT else int(self._columns.first[code])
        line, t = (None, None) if row == NONE else (int(events.line[row]), int(events.t[row]))
        return FirstMessage(message=name, line=line, t=t)

    def first_told(self, messages: Ints) -> Ints:
        """The row of the first line that tells of each of ``messages``."""
        return self._columns.first[messages]

    def queues_of(self, messages: Ints) -> Ints:
        """The queue of each of ``messages``, by code."""
        return np.asarray(self._columns.queue[messages], np.int64)

    @property
    def _history(self) -> str:
        return self.result.findings.history

    @functools.cached_property
    def _needed(self) -> tuple[Ints, Ints]:
        """The places in :attr:`causes`, each with the messages that need it: of a torn transaction several."""
        place, places = codes_of(self.rows, "place"), codes_of(self.causes, "place")
        begin, end = np.searchsorted(place, places, "left"), np.searchsorted(place, places, "right")
        cause = np.repeat(np.arange(len(places)), end - begin)
        nth = np.arange(len(cause)) - np.repeat(np.cumsum(end - begin) - (end - begin), end - begin)
        return cause, self._message[begin[cause] + nth]

    def _messages(self) -> pa.Table:
        facts, had = self._columns, self._having(None)
        messages = facts.messages
        place = np.full(len(self.severity), NONE, np.int64)
        place[messages] = np.arange(len(messages))
        cause, needing = self._needed
        accused = [None if each is None else each.why for each in map(self.accusations.get, messages.tolist())]
        columns = facts.columns(messages) | {
            "verdict": _VERDICTS.take(pa.array(self.severity[messages])),
            "anomalies": _lists(
                len(messages), place[self._message[had]], self.rows["anomaly"].take(pa.array(had)).to_pylist()
            ),
            "causes": _lists(len(messages), place[needing], self.causes["cause"].take(pa.array(cause)).to_pylist()),
            "explanation": [None if each is None else str(each) for each in accused],
            "line": [None if each is None else each.line for each in accused],
            "t": [None if each is None else each.t for each in accused],
        }
        return _table(MESSAGES, self._history, columns, len(messages))

    def anomalies(self) -> pa.Table:
        """Return one row for each anomaly of each message, stuck ones first, none for messages left out."""
        facts, events = self._columns, self._columns.events
        stuck = pc.equal(self.rows["anomaly"], Anomaly.STUCK.value)
        rows = pa.concat_tables([self.rows.filter(stuck), self.rows.filter(pc.invert(stuck))])
        message, transaction = codes_of(rows, "message"), codes_of(rows, "transaction")
        first = np.where(message == ABSENT, NONE, facts.first[message])
        causes = _lists(len(self.judged) + 1, codes_of(self.causes, "place"), self.causes["cause"].to_pylist())
        columns = {name: _one(rows[name]) for name in rows.column_names} | {
            "queue": _names(events, "queue", np.where(message == ABSENT, ABSENT, facts.queue[message])),
            "message": _one(rows["name"]),
            "transaction": _names(events, "transaction", transaction),
            "process": _names(events, "process", _processes_of_transactions(events)[transaction]),
            "causes": causes.take(pa.array(codes_of(rows, "place"))),
            "first_line": pa.array(events.line[first], mask=first == NONE),
            "first_t": pa.array(events.t[first], mask=first == NONE),
        }
        return _table(ANOMALIES, self._history, columns, len(rows))

    def timeline(self) -> pa.Table:
        """Return the recorded faults, the broken connections, and the unrecorded faults."""
        cause, messages = self._needed
        rows, names = (
            codes_of(self.causes, "row")[cause].tolist(),
            self.causes["cause"].take(pa.array(cause)).to_pylist(),
        )
        needing: dict[tuple[int, str], set[int]] = defaultdict(set)
        for message, row, name in zip(messages.tolist(), rows, names, strict=True):
            needing[row, name].add(message)
            needing[row, ""].add(message)
        found = [*_recorded(self._events, needing), *_broken(self._events, needing), *self._unrecorded()]
        found.sort(key=lambda each: (each["since"], each["fault"], each["victim"] or "", each["queue"] or ""))
        return pa.Table.from_pylist([{"history": self._history, **each} for each in found], TABLES[TIMELINE])

    def _unrecorded(self) -> Iterator[_Interval]:
        """The faults that explain messages although no line tells of them."""
        found = self.result.findings.unrecorded
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


def _with_members(events: Events, case: Ints, torn: Mask) -> tuple[Ints, Ints, Ints]:
    """The place of each case with its message, and for a torn transaction once with each of its members."""
    transaction, message = members_of(events, case[torn])
    others, its = np.flatnonzero(~torn), np.flatnonzero(torn)
    by_code = np.argsort(case[torn], kind="stable")
    where = its[by_code[np.searchsorted(case[torn][by_code], transaction)]]
    place = np.concatenate([others, where])
    order = np.argsort(place, kind="stable")
    messages = np.concatenate([case[others], message])[order]
    return place[order], messages, np.concatenate([np.full(len(others), ABSENT), transaction])[order]


def members_of(events: Events, transactions: Ints) -> tuple[Ints, Ints]:
    """Each of ``transactions`` with each message that was sent or consumed in it."""
    rows = events.places(Event.SEND, Event.RESEND, Event.DELIVERED)
    rows = rows[np.isin(events.transaction[rows], transactions)]
    transaction, message, _ = distinct_pairs(events.transaction[rows], events.message[rows])
    return transaction.astype(np.int64), message.astype(np.int64)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _time(accusation: Accusation) -> tuple[bool, int]:
    why = accusation.why
    return (why.t is None, why.t or 0)


def _interval(events: Index, fault: str, victim: str | None, begin: int, end: int | None, **more: Any) -> _Interval:
    """A fault that lines tell; ``begin`` and ``end`` are their rows."""
    until = None if end is None else int(events.t[end])
    whole = {"fault": fault, "victim": victim, "queue": None, "since": int(events.t[begin]), "until": until, "times": 1}
    return whole | more


def _recorded(events: Index, needing: Mapping[tuple[int, str], set[int]]) -> Iterator[_Interval]:
    """The faults that lines tell, each until its repair."""
    processes, queues = events.names["process"], events.names["queue"]
    for fault, repair in events.outages:
        row, victims = fault.moment[0], sorted(str(processes[each]) for each in fault.victims)
        queue = None if fault.queue == ABSENT else str(queues[fault.queue])
        told = {"queue": queue, "recorded": True, "messages": len(needing.get((row, ""), ()))}
        end = None if repair is None else repair.moment[0]
        yield _interval(events, fault.fault, ", ".join(victims) or None, row, end, **told)


def _broken(events: Index, needing: Mapping[tuple[int, str], set[int]]) -> Iterator[_Interval]:
    """The connections that a ``close`` with an ``error`` shows to have broken, of producers and of consumers."""
    causes = {Fault.PRODUCER_LINK_LOSS: "broken connection", Fault.CONSUMER_LINK_LOSS: "consumer's broken connection"}
    for fault, rows in events.lost_links.items():
        for row in rows.tolist():
            victim = str(events.names["process"][events.process[row]])
            messages = len(needing.get((row, causes[fault]), ()))
            yield _interval(events, fault.value, victim, row, row, recorded=False, messages=messages)


def _summary(result: Result) -> pa.Table:
    """Return a row for each anomaly, end, counter and guarantee, beside the columns of the whole history."""
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
