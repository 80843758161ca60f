"""The story of one message, or of two side by side: its events, the impossible line, its excuses.

A story has nothing that :mod:`ackfsm.verify.results.tables` has not decided; it gathers what is known of one message.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ackfsm.history.arrays import Ints
from ackfsm.history.columns import ABSENT, Events, event_code
from ackfsm.history.format import Event
from ackfsm.history.index import Index
from ackfsm.history.joins import NONE
from ackfsm.showing.views.history.excuses import Beside, FaultSpan, WhyNot, fault_spans, told_spans
from ackfsm.showing.views.history.lookup import Lookup
from ackfsm.showing.views.history.moments import message_rows, moments_of
from ackfsm.showing.views.history.told import Around, Cause, Chapter, Found, Open, Pending, Story
from ackfsm.terms import Anomaly, Configuration, InputError, Verdict
from ackfsm.text import nearest, quoted, shown
from ackfsm.verify import Examination, Result
from ackfsm.verify.findings.judgements import Accusation, Judgements
from ackfsm.verify.results.tables import ResultTables

_UNRECORDED: Final = "unrecorded "
"""What the name of a cause begins with that no line tells."""

_BOTH: Final = 2


_SHOWN: Final = 3
"""Of what is open at a time so many are named."""

_CANDIDATES: Final = 5_000
"""Ids among which a near one is looked for."""


def stories_of(examination: Examination, result: Result) -> Stories:
    """What tells the story of each message; ``result`` is the verdict on the findings of ``examination``.

    Raises :class:`ValueError` if the history was folded, so that most of its messages are not in memory.
    """
    if examination.folded:
        raise ValueError("a folded history has no stories; examine it with folded_from=None")
    return Stories(examination.result_tables(result))


@dataclasses.dataclass(frozen=True, eq=False)
class Stories:
    """Tells the stories of the messages of a history that are in memory."""

    tables: ResultTables
    elsewhere: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    """Of a history of which not all is in memory, by queue the processes that took messages that were left out."""
    started: int | None = None
    """The time of the first line, nanoseconds, where that is not in memory."""

    @property
    def result(self) -> Result:
        """The verdict on the history."""
        return self.tables.result

    @property
    def _events(self) -> Index:
        return self.tables.outcome.examined.events

    @functools.cached_property
    def _lookup(self) -> Lookup:
        return Lookup(self._events, self.elsewhere, tells_flags="redelivered" not in self.result.findings.unshown)

    @functools.cached_property
    def _spans(self) -> tuple[FaultSpan, ...]:
        return told_spans(self._lookup)

    @functools.cached_property
    def begun(self) -> int:
        """The time of the first line, nanoseconds."""
        return int(self._events.t.min()) if self.started is None else self.started

    @property
    def ended(self) -> int:
        """The time of the last line, nanoseconds."""
        return int(self._events.t.max())

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all messages with a line."""
        return tuple(self._lookup.codes)

    def of(self, name: str) -> Story:
        """The story of the message with that id, which may be written as it is shown, with escapes.

        Raises :class:`InputError` if there is none; it names the one that is meant perhaps.
        """
        return self.told(self._code(name))

    def first(self, anomaly: Anomaly | None = None) -> Story | None:
        """The story of the first message with ``anomaly``, or any, unexplained ones first; ``None`` without one."""
        worst = self.tables.worst(anomaly)
        return self.told(int(worst[0])) if len(worst) else None

    def _code(self, name: str) -> int:
        code = self._lookup.codes.get(name)
        if code is None and "\\" in name:
            code = self._lookup.shown_codes.get(name)
        if code is not None:
            return code
        near = _near(name, self.ids())
        hint = f" (did you mean {quoted(near, 64)}?)" if near else ""
        remedy = "ackfsm verify lists the messages of which it found something"
        history = shown(self.result.findings.history)
        raise InputError(f"{history} has no message {quoted(name, 64)}{hint}; {remedy}")

    def told(self, message: int) -> Story:
        """The story of the message of that code."""
        events = self._events
        other, why = self._beside(message)
        messages = [message] if other is None else [message, other]
        names = {each: str(events.names["message"][each]) for each in messages}
        stop = self._stop(message)
        first = self._chapter(message, names, stop)
        faults = self._faults(message, first)
        there = {each.row for each in faults if each.row is not None and each.why_not in _THERE}
        chapters = [self._chapter(message, names, stop, there)]
        chapters += [self._chapter(each, names, stop) for each in messages[1:]]
        moments = {moment.row: moment for chapter in reversed(chapters) for moment in chapter.moments}
        return Story(
            history=self.result.findings.history,
            begun=self.begun,
            chapters=tuple(chapters),
            moments=tuple(moments[row] for row in sorted(moments)),
            faults=faults,
            configuration=self._judgements(message)[1],
            would_explain=self._would_explain(first),
            why_together=why,
            imported=self.result.findings.imported,
        )

    def _accusation(self, message: int) -> Accusation | None:
        """Return the impossible line of ``message``, or beside it, which may be of another one."""
        return self.tables.accusations.get(message) or self._beside_accused.get(message)

    def _drained(self, message: int) -> int | None:
        """The row that saw its queue empty after its last send."""
        rest = self._events.quiescence
        return int(rest.drained[message]) if rest.judged[message] else None

    @functools.cached_property
    def _beside_accused(self) -> Mapping[int, Accusation]:
        """Return for each message of a pair that is no run of the model its accusation."""
        accusations = self.tables.accusations
        pairs = [each for each in accusations.values() if each.why.beside is not None]
        if not pairs:
            return {}
        codes = self._lookup.codes
        found: dict[int, Accusation] = {}
        for each in pairs:
            for name in (each.why.message, str(each.why.beside)):
                found.setdefault(codes[name], each)
        return found

    def _judgements(self, message: int) -> tuple[Judgements | None, Configuration | None]:
        """Return the judgements of the part of ``message``, and its configuration."""
        for its, findings in zip(self.tables.outcome.examined.judgements, self.result.findings.each, strict=True):
            if its.messages[message]:
                return its, findings.configuration
        return None, self.result.findings.configuration

    def _chapter(
        self, message: int, names: Mapping[int, str], stop: int | None, faults: Collection[int] = ()
    ) -> Chapter:
        """Of one ``message``, with the rows of these ``faults`` and that with which no run goes on."""
        events, found = self._events, tuple(map(self._found, self.tables.of(message)))
        its, _ = self._judgements(message)
        life, drained = None if its is None else its.life(message), self._drained(message)
        rows = set(message_rows(self._lookup, message, () if life is None else life[0]).tolist())
        explains = _rows_of_causes(found)
        rows |= {*explains, *faults}
        rows |= {until for since, until in self._lookup.repairs.items() if since in rows}
        rows |= set() if drained is None else {drained}
        moments = moments_of(self._lookup, sorted(rows), names=names, impossible=stop, explains=explains)
        queue = int(self._events.queue_of[message])
        accusation = self._accusation(message)
        return Chapter(
            message=names[message],
            queue=None if queue == ABSENT else str(events.names["queue"][queue]),
            verdict=self.tables.verdict(message),
            anomalies=found,
            impossible=None if accusation is None else accusation.why,
            held_against=None
            if accusation is None or accusation.message == message
            else self._name_of(accusation.message),
            undecided=None if life is None else life[1],
            configured=its is not None and its.configured,
            moments=moments,
            drained=next((each for each in moments if each.row == drained), None),
            unread=self.result.findings.parse_errors > 0,
        )

    def _stop(self, message: int) -> int | None:
        """The row that no run goes on with; the last ``drained`` if it is impossible that nothing followed."""
        accusation = self._accusation(message)
        if accusation is None:
            return None
        why = accusation.why
        if why.line is None:
            return self._drained(message)
        events = self._events
        rows = np.flatnonzero((events.line == why.line) & (events.t == why.t))
        exact = [row for row in rows.tolist() if self._name_of(int(events.message[row])) == why.message]
        return next(iter([*exact, *rows.tolist()]), None)

    def _name_of(self, message: int) -> str | None:
        return None if message == ABSENT else str(self._events.names["message"][message])

    def _found(self, row: Mapping[str, Any]) -> Found:
        """One row of the result tables."""
        anomaly, transaction = Anomaly(row["anomaly"]), row["transaction"]
        return Found(
            anomaly=anomaly,
            allowed=row["allowed"],
            unexplained=row["unexplained"],
            by_kind=row["by_kind"],
            doubted=self.result.findings.anomalies[anomaly].doubt if row["doubted"] else None,
            transaction=None if transaction == ABSENT else str(self._events.names["transaction"][transaction]),
            causes=tuple(self._cause(*each) for each in row["causes"]),
        )

    def _cause(self, name: str, row: int) -> Cause:
        if row == NONE:
            return Cause(name=name)
        events = self._events
        process = str(events.names["process"][int(events.process[row])])
        return Cause(name=name, t=int(events.t[row]), line=int(events.line[row]), process=process, row=row)

    def _faults(self, message: int, chapter: Chapter) -> tuple[FaultSpan, ...]:
        assumed: dict[str, list[str]] = defaultdict(list)
        for each in chapter.anomalies:
            for cause in each.causes:
                if cause.row is None and cause.name.startswith(_UNRECORDED):
                    assumed[cause.name.removeprefix(_UNRECORDED)].append(each.anomaly)
        own = [each.row for each in chapter.own] or [each.row for each in chapter.moments] or [0]
        queue = int(self._events.queue_of[message])
        processes = {each.process for each in chapter.own}
        if not chapter.of(Event.DELIVERED):  # whoever consumes from its queue may have had it
            processes |= self._lookup.consumers(queue)
        last = next((each.row for each in chapter.moments if each.impossible), None)
        beside = Beside(
            first=min(own),
            last=max(own) if last is None else max(last, min(own)),
            processes=frozenset(processes),
            queue=queue,
            wronged=chapter.verdict is Verdict.INVALID,
        )
        if chapter.drained is not None and any(each.anomaly in _AT_REST for each in chapter.anomalies):
            beside = dataclasses.replace(beside, last=max(beside.last, chapter.drained.row))
        explains = _rows_of_causes(chapter.anomalies)
        return fault_spans(self._events, self._spans, beside, explains, self.result.findings.unrecorded, assumed)

    def _would_explain(self, chapter: Chapter) -> tuple[str, ...]:
        """Return the unrecorded faults that explain messages and can have hit this one."""
        found = self.result.findings.unrecorded
        if found is None or found.assumed or chapter.verdict is not Verdict.INVALID:
            return ()
        processes = {each.process for each in chapter.own}
        hit = (each for each in found.timeline if each.victim is None or each.victim in processes)
        return tuple(dict.fromkeys(each.fault.value for each in hit))

    def _beside(self, message: int) -> tuple[int | None, str]:
        """The message that this one has to be seen beside, and why."""
        accusation = self._accusation(message)
        why = None if accusation is None else accusation.why
        if why is not None and why.beside is not None:
            names = {why.message, why.beside}
            codes = (self._lookup.codes[each] for each in names if each in self._lookup.codes)
            others = sorted(code for code in codes if code != message)
            return (others[0] if others else None), "no run of the model has both as they were"
        its = self.tables.of(message)
        for transaction in (each["transaction"] for each in its if each["transaction"] != ABSENT):
            other = self._member_beside(message, transaction)
            if other is not None:
                return other, "both belong to one transaction"
        if any(each["anomaly"] == Anomaly.REORDER for each in its):
            other = self._overtaker(message)
            if other is not None:
                return other, "it was sent later and delivered first"
        return None, ""

    def _member_beside(self, message: int, transaction: int) -> int | None:
        """A member of the transaction whose fate is another one than that of ``message``, else any other."""
        delivered = self._events.first_delivery != NONE
        rows = self._lookup.of_transactions[transaction]
        members = [each for each in dict.fromkeys(self._events.message[rows].tolist()) if each != message]
        differing = [each for each in members if delivered[each] != delivered[message]]
        return next(iter([*differing, *members]), None)

    def _overtaker(self, message: int) -> int | None:
        """The first-delivered message of the same producer, queue and session that was sent after it."""
        events = self._events
        its = self._lookup.named(message)
        sends, deliveries = (its[events.event[its] == event_code(kind)] for kind in (Event.SEND, Event.DELIVERED))
        if not len(sends) or not len(deliveries):
            return None
        send, delivery = int(sends[0]), int(deliveries[0])
        alike = self._lookup.sent_by[int(events.process[send])]
        alike = alike[(alike > send) & (events.queue_of[events.message[alike]] == events.queue_of[message])]
        sent_later = np.zeros(events.count_of("message"), bool)
        sent_later[events.message[alike]] = True
        before = self._lookup.delivered_in[int(events.session[delivery])]
        messages = events.message[before[before < delivery]]
        found = np.flatnonzero(sent_later[messages])
        return int(messages[found[0]]) if len(found) else None

    def at(self, t: int, lines: int = 10) -> Around:
        """Return the moments around the time ``t`` (ns): ``lines`` before and after, and the open things."""
        events = self._events
        happened = events.t <= t
        rows = np.arange(len(events))
        before, after = rows[happened], rows[~happened]
        whole = Beside(first=0, last=len(events), processes=frozenset(), queue=ABSENT, wronged=False)
        there = (
            each
            for each in fault_spans(events, self._spans, whole, {}, None, {})
            if each.since <= t and (each.until is None or each.until > t)
        )
        names = _Names(events)
        return Around(
            history=self.result.findings.history,
            begun=self.begun,
            at=t,
            verdict=self.result.verdict,
            before=moments_of(self._lookup, before[-lines:].tolist(), names=names),
            after=moments_of(self._lookup, after[:lines].tolist(), names=names),
            open=tuple(each for each in self._open(happened) if each.count),
            faults=tuple(dataclasses.replace(each, why_not=None) for each in there),
        )

    def _open(self, happened: np.ndarray[Any, np.dtype[np.bool_]]) -> Iterator[Open]:
        """Yield the things that were not over when the rows in ``happened``, a mask, had happened."""
        events = self._events

        def told(*kinds: Event) -> Ints:
            rows = events.places(*kinds)
            return np.asarray(rows[happened[rows]])

        sends = events.plain_sends
        answered = np.append(happened, False)[np.minimum(sends.outcome, len(events))]
        yield self._those(Pending.SEND, sends.place[happened[sends.place] & ~answered])
        sent, delivered = events.first_of(told(Event.SEND, Event.RESEND)), events.last_of(told(Event.DELIVERED))
        over = events.first_of(told(Event.REJECTED, Event.EXPIRED, Event.DEAD_LETTERED)) != NONE
        yield self._those(Pending.MESSAGE, sent[(sent != NONE) & (delivered == NONE) & ~over])
        finished = events.last_of(told(Event.PROCESSED, Event.FAILED))
        yield self._those(Pending.DELIVERY, delivered[(delivered != NONE) & (finished < delivered) & ~over])
        begun = events.first_of(np.flatnonzero((events.transaction != ABSENT) & happened), "transaction")
        ended = events.first_of(told(Event.COMMITTED, Event.ROLLED_BACK, Event.COMMIT_IN_DOUBT), "transaction")
        yield self._those(Pending.TRANSACTION, begun[(begun != NONE) & (ended == NONE)], "transaction")

    def _those(self, what: Pending, rows: Iterable[int], column: str = "message") -> Open:
        events, every = self._events, sorted(map(int, rows))
        names, codes = events.names[column], getattr(events, column)
        first = tuple(
            (str(names[int(codes[row])]), int(events.t[row]), int(events.line[row])) for row in every[:_SHOWN]
        )
        return Open(what=what, count=len(every), first=first)


def _rows_of_causes(found: Sequence[Found]) -> Mapping[int, Sequence[str]]:
    """For each row that tells a cause the anomalies that it explains."""
    explains: dict[int, list[str]] = defaultdict(list)
    for each in found:
        for row in dict.fromkeys(cause.row for cause in each.causes if cause.row is not None):
            explains[row].append(each.anomaly)
    return explains


_THERE: Final = (None, WhyNot.NOT_ENOUGH)
"""Faults that explain something of a message, or were there when it went wrong."""

_AT_REST: Final = frozenset({Anomaly.LOSS, Anomaly.UNPROCESSED, Anomaly.MISSING_OUTCOME, Anomaly.STUCK})
"""What is so because nothing came until the end: a fault may have come that long."""


class _Names(dict[int, str]):
    """The id of any message, looked up when it is asked for."""

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events

    def __contains__(self, code: object) -> bool:
        return code != ABSENT

    def __getitem__(self, code: int) -> str:
        return str(self._events.names["message"][code])


def _near(name: str, ids: Sequence[str]) -> str | None:
    """Return the id that is perhaps meant, of the ones that begin or end alike if there are many."""
    likely = [each for each in ids if abs(len(each) - len(name)) <= _BOTH]
    if len(likely) > _CANDIDATES:
        likely = [each for each in likely if each[:3] == name[:3] and each[-1:] == name[-1:]] or likely
    folded = next((each for each in likely if each.casefold() == name.casefold()), None)
    return folded or nearest(name, likely[:_CANDIDATES], cutoff=0.5)
