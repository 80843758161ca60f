"""The events of ``spec/events.yaml``: the index, the lanes and the meaning of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType

from ackfsm.tables._conditions import Condition
from ackfsm.tables._machine import IndexKind
from ackfsm.tables._source import Document


class Lane(StrEnum):
    """Where an event happens: the columns of a sequence diagram, from left to right; a link holds frames in flight."""

    PRODUCER = "producer"
    PRODUCER_LINK = "producer link"
    BROKER = "broker"
    JOURNAL = "journal"
    CONSUMER_LINK = "consumer link"
    CONSUMER = "consumer"
    FAULT = "fault"


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """One event: its index, its lane, its meaning.

    In a diagram it is an arrow from ``start`` to ``end``; one of them is its lane, or both are.
    ``recorded`` is how a history shows it, ``None`` if no history can; ``recording.yaml`` says by which lines.  An
    ``optional`` event is one that an application may choose; it happens only in checks that ask for it.  Where
    ``by_application`` holds it is the application that brings it about, and nobody else answers for it if it does not
    happen.
    """

    name: str
    per: IndexKind
    lane: Lane
    start: Lane
    end: Lane
    means: str
    recorded: str | None
    optional: bool
    by_application: Condition | None = None


def read_events(document: Document, condition: Callable[[tuple[str, ...], str], Condition]) -> Mapping[str, Event]:
    """The events by name; ``condition`` parses one that stands at a path of the document.

    Raises :class:`ackfsm.terms.SpecError` for one that goes from a lane and to a lane.
    """
    return MappingProxyType({name: _event(document, name, condition) for name in document.data})


def read_groups(document: Document) -> Mapping[str, tuple[str, ...]]:
    """The events that have a name together.

    Raises :class:`ackfsm.terms.SpecError` for a group that is called as an event, is of one event, or of events that
    exist for different things.
    """
    groups: dict[str, tuple[str, ...]] = {}
    for name, data in document.data.items():
        if "group" in data:
            groups[data["group"]] = (*groups.get(data["group"], ()), name)
    for group, names in groups.items():
        at = (names[0], "group")
        if group in document.data:
            raise document.error(at, f"{group} is an event; rename the group")
        if len(names) == 1:
            raise document.error(at, f"{names[0]} is alone in the group {group}; delete it here")
        if len({document.data[name]["per"] for name in names}) > 1:
            raise document.error(at, f"the events of the group {group} exist for different things; take one out")
    return MappingProxyType(groups)


def _event(document: Document, name: str, condition: Callable[[tuple[str, ...], str], Condition]) -> Event:
    data = document.data[name]
    if "from" in data and "to" in data:
        sentence = f"{name} goes from another lane to its own, or from its own to another; keep from or to"
        raise document.error((name, "to"), sentence)
    lane = Lane(data["lane"])
    by_application = data.get("by_application")
    return Event(
        name=name,
        per=IndexKind(data["per"]),
        lane=lane,
        start=Lane(data.get("from", lane)),
        end=Lane(data.get("to", lane)),
        means=data["means"],
        recorded=data.get("recorded"),
        optional=data.get("optional", False),
        by_application=by_application and condition((name, "by_application"), by_application),
    )
