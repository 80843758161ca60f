"""The recorder as a table: what each line of a history tells, and which line each event leaves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from ackfsm.tables._conditions import ALWAYS, Condition
from ackfsm.tables._events import Event
from ackfsm.tables._source import Document
from ackfsm.terms import parse_value

_Path: TypeAlias = tuple[str | int, ...]


class Side(StrEnum):
    """Whose line a sign is, or on whose side the fault is."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    BROKER = "broker"


class Of(StrEnum):
    """The subject of a line."""

    NAMED = "named"
    HOLDER = "holder"
    """The message of the line, by whoever was handed it last."""
    UNTOLD = "untold"
    """Each send before it whose sender is told no outcomes."""
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
    LATE = "late"
    """Any time before its line, whatever its process has written meanwhile."""
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
    """The only use of a sign, where it is not for both."""

    WRITTEN = "written"
    DRAWN = "drawn"


class Fact(StrEnum):
    """The facts of a message beside its signs."""

    SENT_PLAINLY = "sent_plainly"
    """It was sent outside transactions, and consumed in one."""
    CONSUMED_PLAINLY = "consumed_plainly"
    """It was handed over outside transactions, and sent in one."""
    IN_TRANSACTION = "in_transaction"
    """Its session is transacted, or it was sent or handed over in a transaction."""
    SILENT = "silent"
    """It was handed to a process that never says what is processed, or of which another one says so."""
    IN_HAND = "in_hand"
    """Its session was handed another message before it was done with this one."""
    ACKNOWLEDGED_FIRST = "acknowledged_first"
    """Its application acknowledged it without being done with it, or failed with it, too."""
    BY_LIBRARY = "by_library"
    """No call of the application acknowledges, in the configuration of the history."""
    NEVER_TOLD = "never_told"
    """The history has no line of this sign."""
    PAIRED = "paired"
    """It is held to the model together with another message."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reason:
    """A reason why something is so of a life: it holds if all holds that it says.

    Attributes:
        where: a condition on the settings of the message.
        unless, having: signs of which the life has none, and one (any if there are none).
        facts: facts of the life, each with whether it holds.
        tells: the events that the reason is for, if it is for some.
    """

    where: Condition
    unless: frozenset[str]
    having: frozenset[str]
    facts: Mapping[Fact, bool]
    tells: tuple[str, ...] = ()

    def holds(self, environment: Mapping[str, Any], signs: Collection[str], facts: Collection[Fact]) -> bool:
        """Whether it holds for a life with these ``signs`` and ``facts``, and the settings in ``environment``."""
        return (
            self.unless.isdisjoint(signs)
            and not (self.having and self.having.isdisjoint(signs))
            and all((fact in facts) is holds for fact, holds in self.facts.items())
            and self.where.holds(environment)
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SignRow:
    """One row of the recording table: the events of a message that a line tells.

    Attributes:
        name: of the sign, for people.
        line: the event of the line.
        fields: those that it says, each with its values.
        has, lacks: the fields of which it has one (any if there are none), and those that it has not.
        undone: whether it is a call that was answered with ``rolled_back``; ``None`` if that says nothing.
        writes: what whoever writes it adds.
        of, side, when, sure: see the enumerations; what is late is so where the condition ``late_where`` holds.
        tells: the events, one of which it tells; the first so many as ``leaving`` leave this line.
        leaving: how many.
        alone: what it tells instead where the other side of the message is in a transaction, and its own is not.
        choices: what it may tell as well, each for a reason.
        doubts: signs of which it is not sure any more that they tell of a message that has this one.
        unwritten: what may have happened just before without a line; with ``last_words`` all that the side is told.
        then, then_where: what the client may do next without a line, and the condition of that.
        stays_away: by machine the states in none of which it is.
        free: reasons why its events need no line, and its lines tell nothing.
        sets: settings of a message that has it, each with the condition of that.
        wants, undecided: the condition without which nothing is decided of the message, and why, a clause.
        only: what it is for; ``None`` for all.
        said: the word of the header for its line that it takes, if it takes one.
        because, source: the reason, and who says so.
    """

    name: str
    line: str
    fields: Mapping[str, tuple[str | bool, ...]]
    has: frozenset[str]
    lacks: frozenset[str]
    undone: bool | None
    writes: Mapping[str, str]
    of: Of
    side: Side
    when: When
    late_where: Condition
    sure: Certainty
    tells: tuple[str, ...]
    leaving: int
    alone: tuple[str, ...]
    choices: tuple[Reason, ...]
    doubts: frozenset[str]
    unwritten: frozenset[str]
    last_words: bool
    then: frozenset[str]
    then_where: Condition
    stays_away: Mapping[str, frozenset[str]]
    free: tuple[Reason, ...]
    sets: tuple[tuple[Condition, Mapping[str, Any]], ...]
    wants: Condition
    undecided: str
    only: Only | None
    said: str
    because: str
    source: str

    @property
    def gives_back(self) -> bool:
        """Whether a consumer gives back with it what its session, or it, was handed and has not settled."""
        of = self.of in {Of.SESSION, Of.TRANSACTION, Of.CONSUMER}
        return of and self.side is Side.CONSUMER and self.sure is Certainty.IF_POSSIBLE

    @property
    def is_around(self) -> bool:
        """Whether it happens around a message and may explain what became of it: a fault, or a session that ends."""
        return self.gives_back or self.line == "fault" or (self.of is Of.PROCESS and self.only is None)

    @property
    def is_call(self) -> bool:
        """Whether it is a call that an application decides to make, which its line stands before."""
        return self.when is When.BEFORE and self.sure is Certainty.CERTAIN


@dataclasses.dataclass(frozen=True, slots=True)
class Recording:
    """The recording table: the lines of a recorder, and the events that a line tells.

    Attributes:
        signs: the rows by name, in the order of the table, which is that of their codes.
        said: those that count only where a header says their word of their line, and there instead of the others.
        by_library: the condition under which no call of the application acknowledges.
        in_transaction: the settings of a message that was sent or handed over in a transaction.
        untold: optional events that happen without a line; those that need a second message with ``True``.
        not_awaited: events that a message at rest does not wait for.
    """

    signs: Mapping[str, SignRow]
    said: Mapping[str, SignRow]
    by_library: Condition
    in_transaction: Mapping[str, Any]
    untold: Mapping[str, bool]
    not_awaited: frozenset[str]

    @property
    def rows(self) -> tuple[SignRow, ...]:
        """All rows, whatever headers say."""
        return *self.signs.values(), *self.said.values()

    @property
    def around(self) -> frozenset[str]:
        """The signs of what happens around a message and may explain what became of it."""
        return frozenset(row.name for row in self.signs.values() if row.is_around)

    def as_told(self, words: Mapping[str, str]) -> Recording:
        """The table of a history whose header says these ``words`` of lines."""
        rows = {name: row for name, row in self.said.items() if words.get(row.line) == row.said}
        lines = {row.line for row in rows.values()}
        others = {name: row for name, row in self.signs.items() if row.line not in lines}
        return dataclasses.replace(self, signs=MappingProxyType({**others, **rows})) if rows else self

    def late(self, environment: Mapping[str, Any]) -> frozenset[str]:
        """The signs of lines that clients write late where these settings are."""
        rows = (row for row in self.signs.values() if row.when is When.LATE and row.side is not Side.BROKER)
        return frozenset(row.name for row in rows if row.late_where.holds(environment))

    @property
    def calls(self) -> frozenset[str]:
        """The events that applications decide."""
        return frozenset(event for row in self.signs.values() if row.is_call for event in row.tells)

    def row_of(self, event: str) -> SignRow | None:
        """The row of the line that ``event`` leaves by itself; ``None`` if it leaves none, or that of a fault."""
        rows = (row for row in self.signs.values() if row.line not in _OF_FAULTS and event in row.tells[: row.leaving])
        return next(rows, None)

    def line_of(self, event: str) -> Mapping[str, str | bool] | None:
        """The fields of the line that :meth:`row_of` an event has."""
        row = self.row_of(event)
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


NOTHING_RECORDED: Final = Recording(
    MappingProxyType({}), MappingProxyType({}), ALWAYS, MappingProxyType({}), MappingProxyType({}), frozenset()
)
"""That of tables of which no history is written."""

_REPAIR: Final = "recovered"
_OF_FAULTS: Final = frozenset({"fault", _REPAIR})


def read_recording(
    document: Document,
    events: Mapping[str, Event],
    condition: Callable[[_Path, str], Condition],
) -> Recording:
    """Read ``recording.yaml``; ``condition`` parses one that stands at a path.

    Raises :class:`ackfsm.terms.SpecError` with the line of an event, sign or fact that does not exist, of an event that
    leaves two lines, of one under ``untold`` that a line tells, and of a row that tells nothing.
    """
    return _Reader(document, events, condition).recording()


class _Reader:
    def __init__(
        self, document: Document, events: Mapping[str, Event], condition: Callable[[_Path, str], Condition]
    ) -> None:
        self._document = document
        self._events = events
        self._condition = condition

    def recording(self) -> Recording:
        data = self._document.data
        rows = {name: self._row(("signs", name), row) for name, row in data["signs"].items()}
        signs, said = ({name: row for name, row in rows.items() if bool(row.said) is its} for its in (False, True))
        self._one_line_each(signs)
        told = {event for row in rows.values() for event in row.tells}
        for name in data["untold"]:
            path = ("untold", name)
            self._known(path, [name])
            if not self._events[name].optional:
                raise self._document.error(path, f"{name} is not optional, so that it is hidden anyway; delete it")
            if name in told:
                raise self._document.error(path, f"a line tells {name}; delete it here")
        for name in data["not_awaited"]:
            self._known(("not_awaited", name), [name])
        return Recording(
            signs=MappingProxyType(signs),
            said=MappingProxyType(said),
            by_library=self._where(("by_library",), data["by_library"]),
            in_transaction=self._settings(("in_transaction",), data["in_transaction"]),
            untold=MappingProxyType({name: row["between_messages"] for name, row in data["untold"].items()}),
            not_awaited=frozenset(data["not_awaited"]),
        )

    def _one_line_each(self, signs: Mapping[str, SignRow]) -> None:
        leaving: dict[str, str] = {}
        for row in signs.values():
            for event in () if row.line in _OF_FAULTS else row.tells[: row.leaving]:
                if leaving.setdefault(event, row.name) != row.name:
                    sentence = f"{event} leaves the line of {leaving[event]!r} already; let this row say it under also"
                    raise self._document.error(("signs", row.name, "tells"), sentence)

    def _known(self, path: _Path, names: Collection[str]) -> tuple[str, ...]:
        for name in names:
            if name not in self._events:
                raise self._document.error(path, f"there is no event {name!r}; name one of events.yaml")
        return tuple(names)

    def _row(self, path: _Path, data: Mapping[str, Any]) -> SignRow:
        def named(column: str) -> tuple[str, ...]:
            return self._known((*path, column), data.get(column, ()))

        last_words = data.get("unwritten") == "side"
        tells, also = named("tells"), named("also")
        if not (tells or also or "stays_away" in data):
            raise self._document.error(path, "this row tells nothing; name its events, or a state that it excludes")
        fields = {
            name: tuple(value) if isinstance(value, list) else (value,) for name, value in data.get("if", {}).items()
        }
        wants = data.get("wants", {"condition": "True", "because": ""})
        return SignRow(
            name=str(path[-1]),
            line=data["line"],
            fields=MappingProxyType(fields),
            has=frozenset(data.get("has", ())),
            lacks=frozenset(data.get("lacks", ())),
            undone=data.get("undone"),
            writes=MappingProxyType(dict(data.get("writes", {}))),
            of=Of(data["of"]),
            side=Side(data["side"]),
            when=When(data["when"]),
            late_where=self._where((*path, "late_where"), data.get("late_where")),
            sure=Certainty[data.get("sure", "certain").upper()],
            tells=(*tells, *also),
            leaving=len(tells),
            alone=named("alone"),
            choices=self._reasons((*path, "or"), data.get("or", ())),
            doubts=self._signs((*path, "doubts"), data.get("doubts", ())),
            unwritten=frozenset() if last_words else frozenset(named("unwritten")),
            last_words=last_words,
            then=frozenset(named("then")),
            then_where=self._where((*path, "then_where"), data.get("then_where")),
            stays_away=MappingProxyType({name: frozenset(its) for name, its in data.get("stays_away", {}).items()}),
            free=self._reasons((*path, "free"), data.get("free", ())),
            sets=self._sets((*path, "sets"), data.get("sets", ())),
            wants=self._where((*path, "wants", "condition"), wants["condition"]),
            undecided=wants["because"],
            only=Only(data["only"]) if "only" in data else None,
            said=data.get("said", ""),
            because=data["because"],
            source=data["source"],
        )

    def _where(self, path: _Path, text: str | None) -> Condition:
        return ALWAYS if text is None else self._condition(path, text)

    def _sets(
        self, path: _Path, data: Collection[Mapping[str, Any]]
    ) -> tuple[tuple[Condition, Mapping[str, Any]], ...]:
        return tuple(
            (
                self._where((*path, number, "where"), each.get("where")),
                self._settings((*path, number, "to"), each["to"]),
            )
            for number, each in enumerate(data)
        )

    def _settings(self, path: _Path, data: Mapping[str, object]) -> Mapping[str, Any]:
        found = {}
        for name, value in data.items():
            with self._document.at((*path, name)):
                found[name] = parse_value(name, value)
        return MappingProxyType(found)

    def _reasons(self, path: _Path, data: Collection[Mapping[str, Any]]) -> tuple[Reason, ...]:
        return tuple(self._reason((*path, number), each) for number, each in enumerate(data))

    def _reason(self, path: _Path, data: Mapping[str, Any]) -> Reason:
        life = data.get("life", ())
        return Reason(
            where=self._where((*path, "where"), data.get("where")),
            unless=self._signs((*path, "unless"), data.get("unless", ())),
            having=self._signs((*path, "with"), data.get("with", ())),
            facts=MappingProxyType(
                dict(self._fact((*path, "life"), one) for one in ([life] if isinstance(life, str) else life))
            ),
            tells=self._known((*path, "tells"), data.get("tells", ())),
        )

    def _signs(self, path: _Path, names: Collection[str]) -> frozenset[str]:
        for sign in names:
            if sign not in self._document.data["signs"]:
                raise self._document.error(path, f"there is no sign {sign!r}; name a row of this table")
        return frozenset(names)

    def _fact(self, path: _Path, text: str) -> tuple[Fact, bool]:
        name = text.removeprefix("not ")
        if name not in set(Fact):
            raise self._document.error(path, f"there is no fact {name!r}; name one of {', '.join(Fact)}")
        return Fact(name), name == text
