"""The recorder as a table: what each line of a history tells, and which line each event leaves."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any, Final

from ackfsm.tables._events import Event
from ackfsm.tables._source import Document

__all__ = ["Certainty", "Of", "Only", "Recording", "Side", "SignRow", "When", "read_recording"]


class Side(StrEnum):
    """Whose line a sign is, or on whose side a fault is."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    BROKER = "broker"


class Of(StrEnum):
    """What a line tells of."""

    NAMED = "named"
    COVERED = "covered"
    TRANSACTION = "transaction"
    SESSION = "session"
    PROCESS = "process"
    CONSUMER = "consumer"
    ALL = "all"


class When(StrEnum):
    """When an event happens that a line tells."""

    BEFORE = "before"
    """After its line, and before the next line of its process."""
    AFTER = "after"
    """Before its line."""
    MEANWHILE = "meanwhile"
    """Between a fault and its repair."""
    SINCE_ANSWER = "since_answer"
    """After the last answer that the process had from its broker."""


class Certainty(IntEnum):
    """How sure it is that the event of a sign happened to the message."""

    CERTAIN = 0
    """It happened."""
    IF_POSSIBLE = 1
    """It happened if it was possible: the line is written whether there was anything to do or not."""
    PERHAPS = 2
    """It may have happened to this message, or to others only."""


class Only(StrEnum):
    """What a sign is for, where it is not for both."""

    WRITTEN = "written"
    DRAWN = "drawn"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SignRow:
    """One row: what a line tells of a message.

    Attributes:
        name: of the sign, for people.
        line: the event of the line.
        fields: those that it says, each with its values.
        has, lacks: the fields that it has, and has not, whatever they say.
        writes: what whoever writes it adds.
        of, side, when, sure: see the enumerations.
        tells: the events, one of which it tells; the first so many as ``leaving`` leave this line.
        leaving: how many.
        unwritten: what may have happened just before without a line; with ``last_words`` all that the side is told.
        then: what the client may do next without a line.
        stays_away: a state in which no machine of the message is; empty if any may be.
        only: what it is for; ``None`` for all.
        because: the reason.
    """

    name: str
    line: str
    fields: Mapping[str, tuple[str | bool, ...]]
    has: frozenset[str]
    lacks: frozenset[str]
    writes: Mapping[str, str]
    of: Of
    side: Side
    when: When
    sure: Certainty
    tells: tuple[str, ...]
    leaving: int
    unwritten: frozenset[str]
    last_words: bool
    then: frozenset[str]
    stays_away: str
    only: Only | None
    because: str

    @property
    def is_call(self) -> bool:
        """Whether it is a call that an application decides to make, which its line stands before."""
        return self.when is When.BEFORE and self.sure is Certainty.CERTAIN


@dataclasses.dataclass(frozen=True, slots=True)
class Recording:
    """What a recorder writes, and what a line tells.

    Attributes:
        signs: the rows by name, in the order of the table, which is that of their codes.
        untold: optional events that happen without a line; those alone that need a second message, with ``True``.
        reports: events that only report, and that a process may end without writing down.
    """

    signs: Mapping[str, SignRow]
    untold: Mapping[str, bool]
    reports: frozenset[str]

    @property
    def calls(self) -> frozenset[str]:
        """The events that applications decide."""
        return frozenset(event for row in self.signs.values() if row.is_call for event in row.tells)

    def line_of(self, event: str) -> Mapping[str, str | bool] | None:
        """The fields of the line that ``event`` leaves by itself; ``None`` if it leaves none, or that of a fault."""
        rows = (row for row in self.signs.values() if row.line not in _OF_FAULTS and event in row.tells[: row.leaving])
        row = next(rows, None)
        if row is None:
            return None
        return {"event": row.line, **{name: values[0] for name, values in row.fields.items()}, **row.writes}

    def repaired_by(self, event: str) -> tuple[str, ...]:
        """The faults that ``event`` ends."""
        return tuple(
            str(fault)
            for row in self.signs.values()
            if event in row.tells and row.line == _REPAIR
            for fault in row.fields["fault"]
        )


_REPAIR: Final = "recovered"
_OF_FAULTS: Final = frozenset({"fault", _REPAIR})


def read_recording(document: Document, events: Mapping[str, Event]) -> Recording:
    """Read ``recording.yaml``.

    Raises :class:`ackfsm.terms.SpecError` with the line of an event that does not exist, of an optional one under
    ``untold`` that a line tells, and of a row that tells nothing and excludes nothing.
    """
    data = document.data
    signs = {name: _row(document, name, row, events) for name, row in data["signs"].items()}
    told = {event for row in signs.values() for event in row.tells}
    leaving: dict[str, str] = {}
    for row in signs.values():
        for event in () if row.line in _OF_FAULTS else row.tells[: row.leaving]:
            if leaving.setdefault(event, row.name) != row.name:
                sentence = f"{event} leaves the line of {leaving[event]!r} already; let this row say it under also"
                raise document.error(("signs", row.name, "tells"), sentence)
    for name in data["untold"]:
        if not _event(document, ("untold", name), name, events).optional:
            raise document.error(("untold", name), f"{name} is not optional, so that it is hidden anyway; delete it")
        if name in told:
            raise document.error(("untold", name), f"a line tells {name}; delete it here")
    for name in data["reports"]:
        _event(document, ("reports", name), name, events)
    return Recording(
        signs=MappingProxyType(signs),
        untold=MappingProxyType({name: row["between_messages"] for name, row in data["untold"].items()}),
        reports=frozenset(data["reports"]),
    )


def _event(document: Document, path: tuple[str | int, ...], name: str, events: Mapping[str, Event]) -> Event:
    if name not in events:
        raise document.error(path, f"there is no event {name!r}; name one of events.yaml")
    return events[name]


def _row(document: Document, name: str, data: Mapping[str, Any], events: Mapping[str, Event]) -> SignRow:
    unwritten = data.get("unwritten", ())
    last_words = unwritten == "side"
    named = {name: data.get(name, ()) for name in ("tells", "also", "then")}
    named["unwritten"] = () if last_words else unwritten
    for column, names in named.items():
        for event in names:
            _event(document, ("signs", name, column), event, events)
    if not (named["tells"] or named["also"] or "stays_away" in data):
        raise document.error(("signs", name), f"{name} tells nothing; name its events, or a state that it excludes")
    fields = {key: tuple(value) if isinstance(value, list) else (value,) for key, value in data.get("if", {}).items()}
    return SignRow(
        name=name,
        line=data["line"],
        fields=MappingProxyType(fields),
        has=frozenset(data.get("has", ())),
        lacks=frozenset(data.get("lacks", ())),
        writes=MappingProxyType(dict(data.get("writes", {}))),
        of=Of(data["of"]),
        side=Side(data["side"]),
        when=When(data["when"]),
        sure=Certainty[data.get("sure", "certain").upper()],
        tells=(*named["tells"], *named["also"]),
        leaving=len(named["tells"]),
        unwritten=frozenset(named["unwritten"]),
        last_words=last_words,
        then=frozenset(named["then"]),
        stays_away=data.get("stays_away", ""),
        only=Only(data["only"]) if "only" in data else None,
        because=data["because"],
    )
