"""The faults of a history beside one message: what each explains of it, or why it does not."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from ackfsm.history.columns import ABSENT, Events
from ackfsm.history.index import Index
from ackfsm.history.victims import OF_THE_BROKER
from ackfsm.showing.views.history.lookup import Lookup
from ackfsm.showing.views.history.plain import fields_as_json
from ackfsm.terms import Fault
from ackfsm.verify import Unrecorded


class WhyNot(StrEnum):
    """Why a fault does not explain what befell a message."""

    OVER_BEFORE = "over before"
    BEGAN_AFTER = "began after"
    OF_ANOTHER = "of another victim"
    OF_ANOTHER_QUEUE = "of another queue"
    NOT_ENOUGH = "not enough"
    NOT_NEEDED = "not needed"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FaultSpan:
    """A fault with its time and its part in the life of a message.

    Attributes:
        fault: its kind.
        victims: the processes that it names; none if it names nobody.
        queue: the only queue that it concerns; ``None`` if it is any.
        since, until: nanoseconds; ``until`` is ``None`` if no repair is recorded.
        line, until_line: the lines that tell so; ``None`` if none does.
        recorded: whether a line calls it a fault; otherwise a connection was found broken, or nobody recorded it.
        explains: the anomalies of the message that it explains.
        why_not: why it explains none; ``None`` if it explains some.
        row, until_row: the rows that tell it and its end; ``None`` if none does.
    """

    fault: str
    victims: tuple[str, ...]
    queue: str | None
    since: int
    until: int | None
    line: int | None
    until_line: int | None
    recorded: bool
    explains: tuple[str, ...] = ()
    why_not: WhyNot | None = None
    row: int | None = None
    until_row: int | None = None

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        other = {"since": "from", "until": "to", "until_line": "to_line", "row": None, "until_row": None}
        return fields_as_json(self, **other)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The part of a message's life that a fault is compared with.

    Attributes:
        first, last: the rows of the message's life between which a fault can matter.
        processes: those that had to do with it.
        queue: its queue, by code.
        wronged: whether something of it is unexplained.
    """

    first: int
    last: int
    processes: frozenset[str]
    queue: int
    wronged: bool


def told_spans(lookup: Lookup) -> tuple[FaultSpan, ...]:
    """Return every recorded fault, and every connection that a line shows to have broken."""
    return (*_recorded(lookup), *_broken(lookup.events))


def fault_spans(  # noqa: PLR0913, PLR0917 - the message, and all that may explain it
    events: Events,
    told: Sequence[FaultSpan],
    beside: Beside,
    explains: Mapping[int, Sequence[str]],
    unrecorded: Unrecorded | None,
    assumed: Mapping[str, Sequence[str]],
) -> tuple[FaultSpan, ...]:
    """Every fault of a history, in the order of their beginnings.

    Args:
        events: the history, every line spelled out.
        told: those of which a line tells.
        beside: the message.
        explains: the anomalies of the message that a row explains.
        unrecorded: the faults that nobody recorded and that are assumed.
        assumed: the anomalies of the message that each kind of these explains.
    """
    found = [
        dataclasses.replace(
            each,
            explains=tuple(explains.get(-1 if each.row is None else each.row, ())),
            why_not=_why_not(events, each, beside, explains),
        )
        for each in told
    ]
    found += _assumed(unrecorded, assumed, beside.processes)
    return tuple(sorted(found, key=lambda each: (each.since, each.fault, each.victims)))


def _told(events: Events, fault: str, victims: tuple[str, ...], begin: int, end: int | None, **more: Any) -> FaultSpan:
    """A fault that lines tell; ``begin`` and ``end`` are their rows."""
    return FaultSpan(
        fault=fault,
        victims=victims,
        since=int(events.t[begin]),
        until=None if end is None else int(events.t[end]),
        line=int(events.line[begin]),
        until_line=None if end is None else int(events.line[end]),
        row=begin,
        until_row=end,
        **more,
    )


def _recorded(lookup: Lookup) -> Iterator[FaultSpan]:
    events, queues = lookup.events, lookup.events.names["queue"]
    for fault, repair in events.outages:
        row, end = fault.moment[0], None if repair is None else repair.moment[0]
        queue = None if fault.queue == ABSENT else str(queues[fault.queue])
        yield _told(events, fault.fault, lookup.victims(row), row, end, queue=queue, recorded=True)


def _broken(events: Index) -> Iterator[FaultSpan]:
    """The connections that were found broken."""
    lost = {row: fault for fault, rows in events.lost_links.items() for row in rows.tolist()}
    for row in events.found_broken().tolist():
        fault, victim = lost.get(row, Fault.PRODUCER_LINK_LOSS), str(events.names["process"][events.process[row]])
        yield _told(events, fault.value, (victim,), row, row, queue=None, recorded=False)


def _assumed(
    unrecorded: Unrecorded | None, explains: Mapping[str, Sequence[str]], processes: frozenset[str]
) -> Iterator[FaultSpan]:
    for each in () if unrecorded is None or not unrecorded.assumed else unrecorded.timeline:
        if each.fault in explains and (each.victim is None or each.victim in processes):
            yield FaultSpan(
                fault=each.fault.value,
                victims=() if each.victim is None else (each.victim,),
                queue=None,
                since=each.begin,
                until=each.end,
                line=None,
                until_line=None,
                recorded=False,
                explains=tuple(explains[each.fault]),
            )


def _why_not(events: Events, span: FaultSpan, beside: Beside, explains: Mapping[int, Sequence[str]]) -> WhyNot | None:
    if span.row is not None and span.row in explains:
        return None
    if span.row is not None and span.row > beside.last:
        return WhyNot.BEGAN_AFTER
    if span.until_row is not None and span.until_row < beside.first:
        return WhyNot.OVER_BEFORE
    if span.queue is not None and span.queue != _queue_name(events, beside.queue):
        return WhyNot.OF_ANOTHER_QUEUE
    of_broker = span.fault in set(map(str, OF_THE_BROKER))
    if span.victims and not of_broker and not beside.processes & set(span.victims):
        return WhyNot.OF_ANOTHER
    return WhyNot.NOT_ENOUGH if beside.wronged else WhyNot.NOT_NEEDED


def _queue_name(events: Events, queue: int) -> str | None:
    return None if queue == ABSENT else str(events.names["queue"][queue])
