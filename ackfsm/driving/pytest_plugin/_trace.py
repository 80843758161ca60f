"""The trace of a run, and the part of one message as a sequence diagram: as text and as Mermaid."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from ackfsm.showing.draw import Arrow, SequenceDiagram, sequence_mermaid
from ackfsm.tables.names import Agent
from ackfsm.text import quoted

_NAMED = 60
"""Characters of an id that are shown."""

_PLAIN = re.compile(rf"[\w.@/+-]{{1,{_NAMED}}}", re.ASCII)

_LANES = ("producer", "broker", "journal", "consumer")
_FIRST, _WIDTH = 9, 26
_AT = {lane: _FIRST + i * _WIDTH for i, lane in enumerate(_LANES)}

_ARROWS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        Agent.PRODUCER_TO_BROKER: ("producer", "broker"),
        Agent.BROKER_TO_PRODUCER: ("broker", "producer"),
        Agent.CONSUMER_TO_BROKER: ("consumer", "broker"),
        Agent.BROKER_TO_CONSUMER: ("broker", "consumer"),
        Agent.DISK: ("broker", "journal"),
        Agent.RECOVERY: ("journal", "broker"),
    }
)
_ALONE = frozenset({Agent.BROKER, Agent.QUEUE, Agent.TIMER})
_FAULTS = frozenset({Agent.NEMESIS, Agent.LISTENER})

_T = TypeVar("_T")

_MOST = 80
"""The most lines of a diagram; a longer one is cut in the middle."""


@dataclasses.dataclass(frozen=True, slots=True)
class TraceEvent:
    """One event.

    Attributes:
        number: of the event in the run; ``None`` outside and after the fault.
        event: its name.
        agent: who brings it about (``spec/execution.yaml``).
        side: ``producer``, ``broker`` or ``consumer``: where it happens.
        message: the id of the message, ``""`` if it is no message's event.
        by_application: whether the application has reported it itself, not the engine.
    """

    number: int | None
    event: str
    agent: str
    side: str
    message: str
    by_application: bool = False

    def __str__(self) -> str:
        """The event, and of what."""
        return f"{self.event} of {name(self.message)}" if self.message else f"{self.event} of the {self.side}"


def name(ident: str) -> str:
    """The id of a message in a sentence, quoted unless it is plain."""
    return ident if _PLAIN.fullmatch(ident) else quoted(ident, _NAMED)


class Trace:
    """The events on one broker, in order."""

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []

    def of(self, message: str, *, by_application: bool) -> list[TraceEvent]:
        """The events of ``message``, of the broker and of connections.

        ``by_application``: only the application reports what is processed.
        """
        found = [
            one
            for one in self.events
            if one.message in {message, ""}
            and not (by_application and one.event == "processed" and not one.by_application)
        ]
        ends = max((i for i, one in enumerate(found, 1) if one.message or one.agent in _FAULTS), default=0)
        return found[:ends]


def text(events: Sequence[TraceEvent], point: int | None) -> str:
    """A diagram in lanes, a line for each event; ``point`` is the number of the event that the fault followed."""
    head = "".join(f"{lane:<{_WIDTH}}" for lane in _LANES)
    lines = [" " * _FIRST + head]
    lines += _shortened(events, lambda one: _line(one, point), " " * _FIRST + "...")
    return "\n".join(line.rstrip() for line in lines)


def mermaid(events: Sequence[TraceEvent]) -> str:
    """The diagram as a Mermaid ``sequenceDiagram``."""
    arrows = tuple(_shortened(events, _drawn, Arrow(None, "broker", "broker", "...")))
    return sequence_mermaid(SequenceDiagram("", _LANES, arrows)).rstrip()


def _shortened(events: Sequence[TraceEvent], line: Callable[[TraceEvent], _T], gap: _T) -> Iterator[_T]:
    half = _MOST // 2
    if len(events) <= _MOST:
        yield from map(line, events)
        return
    yield from map(line, events[:half])
    yield gap
    yield from map(line, events[-half:])


def _line(one: TraceEvent, point: int | None) -> str:
    row = list(" " * (_FIRST + _WIDTH * len(_LANES)))
    for at in _AT.values():
        row[at] = "|"
    if one.agent in _ARROWS:
        source, target = _ARROWS[one.agent]
        _arrow(row, _AT[source], _AT[target], one.event)
    else:
        label = f"{'X' if one.agent in _FAULTS else '*'} {one.event}"
        row[_AT[_lane(one)] : _AT[_lane(one)] + len(label)] = label
    number = "" if one.number is None else f"{one.number:>5}{'>' if one.number == point else ' '}"
    row[: len(number)] = number
    return "".join(row)


def _arrow(row: list[str], source: int, target: int, label: str) -> None:
    left, right = min(source, target) + 1, max(source, target)
    drawn = list(f" {label} ".center(right - left, "-"))
    if target > source:
        drawn[-1] = ">"
    else:
        drawn[0] = "<"
    row[left:right] = drawn


def _drawn(one: TraceEvent) -> Arrow:
    source, target = _ARROWS.get(one.agent, (_lane(one), _lane(one)))
    return Arrow(one.number, source, target, one.event, fault=one.agent in _FAULTS)


def _lane(one: TraceEvent) -> str:
    return "broker" if one.agent in _ALONE else one.side
