"""Machines as the tables declare them, with conditions, and as finite-state machines of one configuration.

A :class:`Machine` is an immutable value: the table, with its conditions.  :meth:`Machine.fsm`
keeps the rows that one configuration has and gives an :class:`Fsm`, total and
deterministic by construction: in every cell the first row whose condition holds decides, and
the last row of a cell has no condition.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, overload

from ackfsm.tables._conditions import ALWAYS, STATIC_NAMES, Condition, condition_of
from ackfsm.tables._source import Document
from ackfsm.terms import Configuration, key_type


class IndexKind(StrEnum):
    """The kind of index of a machine or an event (``per`` in the tables).

    For the system, each message, each copy of a message; for each subscription, or each message or copy that is routed
    to one; for each session that consumes, each consumer, or each message or copy at a consumer.
    """

    SYSTEM = "system"
    MESSAGE = "message"
    COPY = "copy"
    SUBSCRIPTION = "subscription"
    ROUTED_MESSAGE = "routed_message"
    ROUTED_COPY = "routed_copy"
    SESSION = "session"
    CONSUMER = "consumer"
    RECEPTION = "reception"
    DELIVERY = "delivery"

    @property
    def of_consumer(self) -> bool:
        """Whether there is one for each consumer, or for each session."""
        return self in _OF_CONSUMER

    @property
    def of_subscription(self) -> bool:
        """Whether there is one for each subscription: a consumer belongs to one."""
        return self in _OF_SUBSCRIPTION or self.of_consumer

    @property
    def whole(self) -> IndexKind:
        """Return the kind for one consumer of one subscription: the system, each message, each copy."""
        return _OF_CONSUMER.get(self, _OF_SUBSCRIPTION.get(self, self))

    def contains(self, other: IndexKind) -> bool:
        """Whether each of ``other`` belongs to one of this kind, as the copies of a message do to the message."""
        order = (IndexKind.SYSTEM, IndexKind.MESSAGE, IndexKind.COPY)
        if (self, other) == (IndexKind.CONSUMER, IndexKind.SESSION):
            return False
        finer = self.of_consumer <= other.of_consumer and self.of_subscription <= other.of_subscription
        return finer and order.index(self.whole) <= order.index(other.whole)

    def is_part_of(self, other: IndexKind) -> bool:
        """Whether one of ``other`` has several of this kind, one for each subscription."""
        whole = _OF_SUBSCRIPTION.get(self)
        return whole is not None and not other.of_subscription and whole.contains(other)


_OF_SUBSCRIPTION: Mapping[IndexKind, IndexKind] = MappingProxyType(
    {
        IndexKind.SUBSCRIPTION: IndexKind.SYSTEM,
        IndexKind.ROUTED_MESSAGE: IndexKind.MESSAGE,
        IndexKind.ROUTED_COPY: IndexKind.COPY,
    }
)

_OF_CONSUMER: Mapping[IndexKind, IndexKind] = MappingProxyType(
    {
        IndexKind.SESSION: IndexKind.SYSTEM,
        IndexKind.CONSUMER: IndexKind.SYSTEM,
        IndexKind.RECEPTION: IndexKind.MESSAGE,
        IndexKind.DELIVERY: IndexKind.COPY,
    }
)


class Relation(StrEnum):
    """How the index of an event is related to the index of the machine that reacts to it.

    ``elsewhere`` is the event of the same message or copy at another consumer, ``other_elsewhere`` that of another one
    there; the rest are of the same session, where machine and event have one.  ``later_here`` and ``later_beside``
    tell apart what a session does: at the same consumer, or at another one of its consumers.  All these are of the same
    subscription; ``other_subscription`` is the event of the same message or copy in another one.
    """

    OWN = "own"
    OTHER = "other"
    EARLIER = "earlier"
    LATER = "later"
    LATER_HERE = "later_here"
    LATER_BESIDE = "later_beside"
    ELSEWHERE = "elsewhere"
    OTHER_ELSEWHERE = "other_elsewhere"
    OTHER_SUBSCRIPTION = "other_subscription"

    @property
    def of_the_same(self) -> bool:
        """Whether the event is one of the same message or copy."""
        return self in {Relation.OWN, Relation.ELSEWHERE, Relation.OTHER_SUBSCRIPTION}


class RowKind(StrEnum):
    """The kind of a row: a transition (perhaps to the same state), no change, or an impossible event."""

    TO = "to"
    IGNORE = "ignore"
    REFUSE = "refuse"


class EventRef(NamedTuple):
    """An event as a machine names it: ``dispatch`` (of its own index) or ``dispatch(later)``.

    ``consumer`` is set where a machine that exists once for all consumers tells them apart, see :func:`hold`.
    """

    name: str
    relation: Relation = Relation.OWN
    consumer: int = 0

    def is_of(self, name: str, consumer: int) -> bool:
        """Whether it is the machine's own event of this name, as ``consumer`` (0: no certain one) has it."""
        return self.name == name and self.relation is Relation.OWN and self.consumer in {0, consumer}

    def __str__(self) -> str:
        name = self.name if self.relation is Relation.OWN else f"{self.name}({self.relation})"
        return f"{name}@{self.consumer}" if self.consumer else name


class Row(NamedTuple):
    """One row of a table: its state, event and condition, its kind, and the reason."""

    state: str
    event: EventRef
    kind: RowKind
    target: str
    because: str
    source: str | None
    error: str | None
    when: Condition
    file: str
    line: int

    @property
    def place(self) -> str:
        """File and line, for messages."""
        return f"{self.file}:{self.line}"


@dataclasses.dataclass(frozen=True, slots=True)
class Fsm:
    """An ordinary finite-state machine: one row for every state and every event of the alphabet.

    ``reactive_events`` has, by name, the events that some state does not ignore; ``possible`` has those that
    some state does not refuse, ``moving`` those on which some state has a transition (a ``to`` row).
    """

    name: str
    states: Sequence[str]
    initial: str
    alphabet: tuple[EventRef, ...]
    rows: Mapping[tuple[str, EventRef], Row]
    reactive_events: Mapping[str, tuple[EventRef, ...]] = dataclasses.field(init=False, compare=False, repr=False)
    possible: frozenset[EventRef] = dataclasses.field(init=False, compare=False, repr=False)
    moving: frozenset[EventRef] = dataclasses.field(init=False, compare=False, repr=False)
    _columns: dict[EventRef, tuple[int, ...]] = dataclasses.field(
        init=False, compare=False, repr=False, default_factory=dict
    )
    _held: dict[tuple[object, ...], Fsm] = dataclasses.field(
        init=False, compare=False, repr=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        reactive: dict[str, tuple[EventRef, ...]] = {}
        kinds = {event: {self.rows[state, event].kind for state in _telling(self.states)} for event in self.alphabet}
        for event, its in kinds.items():
            if its != {RowKind.IGNORE}:
                reactive[event.name] = (*reactive.get(event.name, ()), event)
        object.__setattr__(self, "reactive_events", reactive)
        object.__setattr__(self, "possible", frozenset(e for e, its in kinds.items() if its != {RowKind.REFUSE}))
        object.__setattr__(self, "moving", frozenset(e for e, its in kinds.items() if RowKind.TO in its))

    @property
    def events(self) -> tuple[str, ...]:
        """The alphabet as text, in the order of the table."""
        return tuple(str(event) for event in self.alphabet)

    def row(self, state: str, event: str | EventRef) -> Row | None:
        """The row that decides, or ``None`` if the event is not in the alphabet."""
        return self.rows.get((state, event if isinstance(event, EventRef) else _event_ref(event)))

    def step(self, state: str, event: str | EventRef) -> str | None:
        """The next state; ``None`` if the event is refused.  An event outside the alphabet changes nothing."""
        row = self.row(state, event)
        if row is None:
            return state
        return None if row.kind is RowKind.REFUSE else row.target

    def column(self, event: EventRef) -> tuple[int, ...]:
        """The number of the next state on ``event``, for each state in their order; -1 where it is refused."""
        found = self._columns.get(event)
        if found is None:
            number = {state: i for i, state in enumerate(self.states)}
            rows = (self.rows[state, event] for state in self.states)
            found = tuple(-1 if row.kind is RowKind.REFUSE else number[row.target] for row in rows)
            self._columns[event] = found
        return found


@dataclasses.dataclass(frozen=True, slots=True)
class Counter:
    """A machine that is generated from its bound: the states are the numbers from 0 to the bound.

    ``bound`` names a setting or a bound of the check; where it is ``None`` (no limit) the
    counter has one state and counts nothing.  At 0 ``down`` is ignored or refused; at the
    bound ``up`` is refused, stays there, or leads to the state ``overrun`` (which counts no further).
    ``reset`` returns to the initial state.  ``full`` and ``some`` count nothing: events under ``full`` are
    possible only at the bound, those under ``some`` only above 0.  ``undo`` takes the last ``up`` back, unless an
    event under ``keep`` has happened since; in a configuration without ``undo`` both are ignored and have no states.
    """

    bound: str
    starts: str
    at_zero: RowKind
    at_bound: str

    UNLIMITED = "unlimited"
    OVERRUN = "overrun"
    STAYS = "stays"
    OPEN = "_open"
    HEADINGS = ("up", "down", "reset", "full", "some", "undo", "keep")

    @staticmethod
    def is_undone(before: str, after: str) -> bool:
        """Whether the transition between these states of a counter takes its last ``up`` back."""
        number = before.removesuffix(Counter.OPEN)
        return number != before and after == str(int(number) - 1)


@dataclasses.dataclass(frozen=True, slots=True)
class Machine:
    """A machine of ``spec/``: states, one initial state, an alphabet, and rows with conditions.

    ``held`` are the states in which it is with one consumer: with several there is one such state for each
    (:func:`hold`).  ``conditions`` are those of its rows, which read the ``settings``; configurations under which all
    conditions have the same values share one :class:`Fsm`.
    """

    name: str
    per: IndexKind
    means: str
    owns: tuple[str, ...]
    states: tuple[str, ...]
    alphabet: tuple[EventRef, ...]
    cells: Mapping[tuple[str, EventRef], tuple[Row, ...]]
    counter: Counter | None
    held: tuple[str, ...]
    file: str
    line: int
    conditions: tuple[Condition, ...] = dataclasses.field(init=False, compare=False, repr=False)
    settings: tuple[str, ...] = dataclasses.field(init=False, compare=False, repr=False)
    _with_settings: dict[tuple[object, ...], Fsm] = dataclasses.field(
        init=False, compare=False, repr=False, default_factory=dict
    )
    _of_rows: dict[tuple[object, ...], Fsm] = dataclasses.field(
        init=False, compare=False, repr=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        conditions = dict.fromkeys(row.when for cell in self.cells.values() for row in cell)
        bound = {self.counter.bound} if self.counter is not None else set()
        object.__setattr__(self, "conditions", tuple(conditions))
        object.__setattr__(self, "settings", tuple(sorted(bound.union(*(each.settings() for each in conditions)))))

    def __getstate__(self) -> tuple[object, ...]:
        """All but the machines that it was made to be, which whoever reads it makes anew if they are asked for."""
        return tuple(getattr(self, field.name) for field in dataclasses.fields(self)[:-2])

    def __setstate__(self, state: tuple[object, ...]) -> None:
        for field, value in zip(dataclasses.fields(self), (*state, {}, {}), strict=True):
            object.__setattr__(self, field.name, value)

    @property
    def initial(self) -> str:
        """The first state of the table."""
        return self.states[0]

    def rows(self) -> Iterator[Row]:
        """Every row of the table, each once, in the order of the file."""
        yield from dict.fromkeys(row for cell in self.cells.values() for row in cell)

    def fsm(self, environment: Mapping[str, Any]) -> Fsm:
        """The finite-state machine of the rows whose conditions hold in ``environment``."""
        key = tuple([environment[name] for name in self.settings])
        found = self._with_settings.get(key)
        if found is None:
            found = self._with_settings[key] = self._fsm(environment)
        return found

    def _fsm(self, environment: Mapping[str, Any]) -> Fsm:
        values = [condition.holds(environment) for condition in self.conditions]
        key = (*values, environment[self.counter.bound] if self.counter is not None else None)
        found = self._of_rows.get(key)
        if found is None:
            holds = dict(zip(self.conditions, values, strict=True))
            chosen = {place: _deciding(cell, holds) for place, cell in self.cells.items()}
            found = self._of_rows[key] = self._choose(chosen, environment)
        return found

    def _choose(self, chosen: Mapping[tuple[str, EventRef], Row], environment: Mapping[str, Any]) -> Fsm:
        if self.counter is not None:
            return _counting(self, self.counter, chosen, environment[self.counter.bound])
        return Fsm(self.name, self.states, self.initial, self.alphabet, chosen)


def _deciding(cell: Sequence[Row], holds: Mapping[Condition, bool]) -> Row:
    """The first row of a cell whose condition holds; the last one has none."""
    return cell[0] if len(cell) == 1 else next(row for row in cell if holds[row.when])


_AT = "_c"
"""Between a state and the number of the consumer that it is with."""

_HELD = re.compile(rf"(?P<state>.+){_AT}\d+")


def base_state(state: str) -> str:
    """The state of the table that ``state`` is, without the consumer that it is with."""
    match = _HELD.fullmatch(state)
    return state if match is None else match["state"]


def hold(  # noqa: PLR0913 - what tells consumers apart
    machine: Machine,
    fsm: Fsm,
    consumers: int,
    kinds: Mapping[str, IndexKind],
    *,
    local: Collection[str] = (),
    one_session: bool = False,
) -> Fsm:
    """``fsm`` of ``machine`` with one state for each consumer in the place of each held one.

    A held state is entered with the consumer of the event.  There, what another consumer does to itself changes
    nothing, and what it would do to the message is refused: it does not have it.  ``kinds`` tells which events are
    per consumer; those of a session are of no certain one if there is one session.  The ``local`` ones happen at a
    consumer alone, to what it has of a delivery that the broker took back: they change nothing either.  The states of a
    counter in which its last ``up`` can be undone are held too.
    """
    undone = Counter.OPEN if machine.counter else ""
    held = {state for state in fsm.states if state in machine.held or (undone and state.endswith(undone))}
    if consumers == 1 or not held:
        return fsm
    told = tuple((kinds[event.name], event.name in local) for event in fsm.alphabet)
    key = (frozenset(held), consumers, one_session, told)
    if key not in fsm._held:  # noqa: SLF001 - of this module
        fsm._held[key] = _with_holders(fsm, held, consumers, kinds, local, one_session=one_session)  # noqa: SLF001
    return fsm._held[key]  # noqa: SLF001


def _with_holders(  # noqa: PLR0913 - what tells consumers apart
    fsm: Fsm,
    held: set[str],
    consumers: int,
    kinds: Mapping[str, IndexKind],
    local: Collection[str],
    *,
    one_session: bool,
) -> Fsm:
    """``fsm`` with a state for each consumer in the place of each of the ``held`` ones (:func:`hold`)."""
    numbers = range(1, consumers + 1)

    def told_apart(kind: IndexKind) -> bool:
        return kind.of_consumer and not (one_session and kind is IndexKind.SESSION)

    states = tuple(
        name for state in fsm.states for name in ([f"{state}{_AT}{n}" for n in numbers] if state in held else [state])
    )
    alphabet = tuple(
        event._replace(consumer=n)
        for event in fsm.alphabet
        for n in (numbers if told_apart(kinds[event.name]) else (0,))
    )
    rows: dict[tuple[str, EventRef], Row] = {}
    for state in states:
        base = base_state(state)
        holder = 0 if base == state else int(state.rpartition(_AT)[2])
        for event in alphabet:
            row = fsm.rows[base, event._replace(consumer=0)]
            target = _held_target(row, state, held, holder or event.consumer)
            row = row._replace(state=state, event=event, target=target)
            to_itself = event.name in local or kinds[event.name].whole is IndexKind.SYSTEM
            rows[state, event] = _with_another(row, holder, to_itself=to_itself)
    return Fsm(fsm.name, states, fsm.initial, alphabet, rows)


def _held_target(row: Row, state: str, held: set[str], consumer: int) -> str:
    """Where ``row`` leads to from ``state``: a held state is with ``consumer``."""
    if row.kind is not RowKind.TO:
        return state
    return f"{row.target}{_AT}{consumer}" if row.target in held else row.target


def _with_another(row: Row, holder: int, *, to_itself: bool) -> Row:
    """``row`` as it is if the event is of another consumer than the ``holder`` of its state."""
    if not holder or row.event.consumer in {0, holder} or row.event.relation is not Relation.OWN:
        return row
    if row.kind is RowKind.REFUSE:
        return row
    stopped = RowKind.IGNORE if to_itself else RowKind.REFUSE
    return row._replace(target=row.state, kind=stopped, because="it is with another consumer")


_BOUNDS = (
    *(field.name for field in dataclasses.fields(Configuration) if key_type(field.name) is int),
    *(name for name, (kind, _) in STATIC_NAMES.items() if kind is int and name != "copy"),
)
"""What can bound a counter."""

_RELATIONS = "|".join(relation for relation in Relation if relation is not Relation.OWN)
_EVENT = re.compile(rf"(?P<name>[a-z_]+)(\((?P<relation>{_RELATIONS})\))?")


@functools.cache
def _event_ref(text: str) -> EventRef:
    match = _EVENT.fullmatch(text.strip())
    if match is None:
        relations = ", ".join(f"name({relation})" for relation in Relation if relation is not Relation.OWN)
        raise ValueError(f"{text!r} is not an event; write name, or one of {relations}")
    return EventRef(match["name"], Relation(match["relation"] or "own"))


@dataclasses.dataclass(frozen=True, slots=True)
class _Reading:
    """A machine that is being read: its document and path, its states, the named conditions and groups of events."""

    document: Document
    name: str
    path: tuple[str | int, ...]
    named: Mapping[str, Condition]
    states: tuple[str, ...]
    groups: Mapping[str, tuple[str, ...]]
    said: dict[tuple[str | int, ...], tuple[Row, ...]] = dataclasses.field(default_factory=dict)

    def events(self, key: str, path: tuple[str | int, ...]) -> list[EventRef]:
        with self.document.at(path, f"{self.name}: "):
            named = [_event_ref(part) for part in key.split(",")]
        return [EventRef(name, ref.relation) for ref in named for name in self.groups.get(ref.name, (ref.name,))]


def read_machine(  # noqa: PLR0913, PLR0917 - what a loader knows, by position
    document: Document,
    name: str,
    path: tuple[str | int, ...],
    data: dict[str, Any],
    named: Mapping[str, Condition],
    groups: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> Machine:
    """Read the machine ``name`` at ``path`` of ``document``, where ``groups`` of events have names.

    Raises :class:`ackfsm.terms.SpecError` naming file, line and remedy: a hole in the table, a row that can
    never decide, a target that is no state, a condition that cannot be parsed.
    """
    counter = _counter(document, name, path, data["counter"]) if "counter" in data else None
    states = Counter.HEADINGS if counter else tuple(data["states"])
    reading = _Reading(document, name, path, named, states, groups)
    cells = _counter_cells(reading, data) if counter else _cells(reading, data)
    owns = tuple(data.get("owns", ()))
    alphabet = tuple(dict.fromkeys(event for _, event in cells))
    _no_mixed_relations(reading, alphabet)
    place = (document.name, document.line(path))
    held = tuple(data.get("held", ()))
    if stray := [state for state in held if state not in states]:
        raise document.error((*path, "held"), f"{name} has no state {stray[0]!r}")
    return Machine(name, IndexKind(data["per"]), data["means"], owns, states, alphabet, cells, counter, held, *place)


def _cells(reading: _Reading, data: dict[str, Any]) -> dict[tuple[str, EventRef], tuple[Row, ...]]:
    stated = {
        place: rows
        for state, cells in data["states"].items()
        for place, rows in _state_cells(reading, state, cells or {}, ("states", state)).items()
    }
    otherwise: dict[EventRef, tuple[str, Any]] = {}
    for key, cell in data.get("otherwise", {}).items():
        otherwise |= dict.fromkeys(reading.events(key, (*reading.path, "otherwise", key)), (key, cell))
    alphabet = dict.fromkeys([event for _, event in stated] + list(otherwise))
    _otherwise_is_used(reading, otherwise, stated)
    return {
        (state, event): stated.get((state, event)) or _otherwise(reading, state, event, otherwise)
        for event in alphabet
        for state in reading.states
    }


def _state_cells(
    reading: _Reading, state: str, cells: dict[str, Any], path: tuple[str | int, ...]
) -> dict[tuple[str, EventRef], tuple[Row, ...]]:
    found: dict[tuple[str, EventRef], tuple[Row, ...]] = {}
    for key, cell in cells.items():
        place = (*reading.path, *path, key)
        for event in reading.events(key, place):
            if (state, event) in found:
                raise reading.document.error(place, f"{reading.name}.{state}: {event} is decided twice; keep one")
            found[state, event] = _rows(reading, state, event, cell, place)
    return found


def _otherwise(
    reading: _Reading,
    state: str,
    event: EventRef,
    otherwise: dict[EventRef, tuple[str, Any]],
) -> tuple[Row, ...]:
    if event not in otherwise:
        raise reading.document.error(
            (*reading.path, "states", state),
            f"{reading.name}.{state} does not decide {event}; give it a row, ignore or refuse",
        )
    key, cell = otherwise[event]
    return _rows(reading, state, event, cell, (*reading.path, "otherwise", key))


def _otherwise_is_used(
    reading: _Reading,
    otherwise: dict[EventRef, tuple[str, Any]],
    stated: dict[tuple[str, EventRef], tuple[Row, ...]],
) -> None:
    for event, (key, _) in otherwise.items():
        if all((state, event) in stated for state in reading.states):
            place = (*reading.path, "otherwise", key)
            raise reading.document.error(place, f"{reading.name}: every state decides {event}; delete it here")


def _rows(
    reading: _Reading,
    state: str,
    event: EventRef,
    cell: Any,
    path: tuple[str | int, ...],
) -> tuple[Row, ...]:
    said = _said(reading, cell, path)
    listed = isinstance(cell, list)
    rows = tuple(_row(reading, state, event, one, (*path, i) if listed else path) for i, one in enumerate(said))
    if rows[-1].when is not ALWAYS:
        place = (*path, len(rows) - 1) if listed else path
        raise reading.document.error(place, f"{reading.name}.{state}: the last row for {event} must have no condition")
    for i, row in enumerate(rows[:-1]):
        if row.when is ALWAYS:
            place = (*path, i + 1)
            raise reading.document.error(place, f"{reading.name}.{state}: this row for {event} can never decide")
    return rows


def _row(reading: _Reading, state: str, event: EventRef, said: Row, path: tuple[str | int, ...]) -> Row:
    target = said.target or state
    if target not in reading.states:
        raise reading.document.error(path, f"{reading.name}.{state}: {event} leads to {target!r}, which is no state")
    return said._replace(state=state, event=event, target=target)


def _said(reading: _Reading, cell: Any, path: tuple[str | int, ...]) -> tuple[Row, ...]:
    """The rows at ``path`` without state and event, read once: several of these often share a cell."""
    if path not in reading.said:
        listed = isinstance(cell, list)
        places = [(item, (*path, i)) for i, item in enumerate(cell)] if listed else [(cell, path)]
        reading.said[path] = tuple(_said_once(reading, item, place) for item, place in places)
    return reading.said[path]


def _said_once(reading: _Reading, item: dict[str, Any], path: tuple[str | int, ...]) -> Row:
    kind = RowKind.TO
    if "to" not in item:
        kind = RowKind.IGNORE if "ignore" in item else RowKind.REFUSE if "refuse" in item else RowKind.TO
    return Row(
        state="",
        event=EventRef(""),
        kind=kind,
        target=item.get("to", ""),
        because=item["because"] if kind is RowKind.TO else item[kind.value],
        source=item.get("source"),
        error=item.get("error"),
        when=condition_of(reading.document, path, item, reading.named, f"{reading.name}: "),
        file=reading.document.name,
        line=reading.document.line(path),
    )


def _no_mixed_relations(reading: _Reading, alphabet: tuple[EventRef, ...]) -> None:
    by_name: dict[str, set[Relation]] = {}
    for event in alphabet:
        by_name.setdefault(event.name, set()).add(event.relation)
    for name, relations in by_name.items():
        apart = {Relation.LATER_HERE, Relation.LATER_BESIDE}
        if Relation.OTHER in relations and relations & {Relation.EARLIER, Relation.LATER, *apart}:
            sentence = f"{reading.name} has both {name}(other) and {name}(earlier or later); keep one kind"
            raise reading.document.error(reading.path, sentence)
        if Relation.LATER in relations and relations & apart:
            sentence = f"{reading.name} has both {name}(later) and {name}(later_here or later_beside); keep one kind"
            raise reading.document.error(reading.path, sentence)
        if Relation.OTHER_ELSEWHERE in relations and relations - {
            Relation.OWN,
            Relation.ELSEWHERE,
            Relation.OTHER_ELSEWHERE,
        }:
            sentence = f"{reading.name} has {name}(other_elsewhere), and another name for the same; keep one kind"
            raise reading.document.error(reading.path, sentence)


def _counter(document: Document, name: str, path: tuple[str | int, ...], data: dict[str, Any]) -> Counter:
    bound = data["bound"]
    if bound not in _BOUNDS:
        sentence = f"{name} is bounded by {bound!r}, which is no number; the numbers are {', '.join(_BOUNDS)}"
        raise document.error((*path, "counter", "bound"), sentence)
    return Counter(data["bound"], data["starts"], RowKind(data["at_zero"]), data["at_bound"])


def _counter_cells(reading: _Reading, data: dict[str, Any]) -> dict[tuple[str, EventRef], tuple[Row, ...]]:
    """The rows of a counter, whose headings take the place of states."""
    cells: dict[tuple[str, EventRef], tuple[Row, ...]] = {}
    stated: dict[EventRef, str] = {}
    for heading in Counter.HEADINGS:
        for (_, event), rows in _state_cells(reading, heading, data.get(heading, {}), (heading,)).items():
            if event in stated:
                sentence = f"{reading.name}: {event} stands under {stated[event]} and under {heading}; keep one"
                raise reading.document.error((*reading.path, heading), sentence)
            stated[event] = heading
            cells[heading, event] = rows
    return cells


def _counting(machine: Machine, counter: Counter, chosen: Mapping[tuple[str, EventRef], Row], bound: int | None) -> Fsm:
    undoes = any(row.state == "undo" and row.kind is RowKind.TO for row in chosen.values())
    states = _counter_states(counter, bound, undoes=undoes)
    stated = {event: row for (_, event), row in chosen.items()}
    rows = _CountedRows(counter, bound, states, stated, undoes=undoes)
    return Fsm(machine.name, states, _start(counter, bound), machine.alphabet, rows)


class _Numbers(Sequence[str]):
    """The states of a counter, perhaps millions by its bound: a name is made when it is asked for."""

    __slots__ = ("_bound", "_last", "_undoes")

    def __init__(self, bound: int, last: tuple[str, ...], *, undoes: bool) -> None:
        self._bound, self._last, self._undoes = bound, last, undoes

    def __len__(self) -> int:
        return self._bound + 1 + len(self._last) + self._bound * self._undoes

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[str, ...]: ...

    def __getitem__(self, at: int | slice) -> str | tuple[str, ...]:
        if isinstance(at, slice):
            return tuple(self[i] for i in range(*at.indices(len(self))))
        i = range(len(self))[at]
        if i <= self._bound:
            return str(i)
        i -= self._bound + 1
        return self._last[i] if i < len(self._last) else f"{i - len(self._last) + 1}{Counter.OPEN}"

    def __contains__(self, name: object) -> bool:
        if name in self._last:
            return True
        number = str(name).removesuffix(Counter.OPEN)
        opened = number != name
        return number.isdecimal() and opened <= int(number) <= self._bound and opened <= self._undoes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (_Numbers, tuple)) and len(self) == len(other) and all(map(operator.eq, self, other))

    def __hash__(self) -> int:
        return hash((self._bound, self._last, self._undoes))

    @property
    def telling(self) -> tuple[str, ...]:
        """States among which there is one of each kind: at 0, at the bound, and between."""
        there = sorted({n for n in (0, 1, self._bound - 1, self._bound) if 0 <= n <= self._bound})
        return (*map(str, there), *self._last, *(f"{n}{Counter.OPEN}" for n in there if n and self._undoes))


class _CountedRows(Mapping[tuple[str, EventRef], Row]):
    """The rows of a counter, made when they are asked for."""

    __slots__ = ("_bound", "_counter", "_made", "_stated", "_states", "_undoes")

    def __init__(
        self,
        counter: Counter,
        bound: int | None,
        states: Sequence[str],
        stated: Mapping[EventRef, Row],
        *,
        undoes: bool,
    ) -> None:
        self._counter, self._bound, self._undoes = counter, bound, undoes
        self._states, self._stated = states, stated
        self._made: dict[tuple[str, EventRef], Row] = {}

    def __getitem__(self, cell: tuple[str, EventRef]) -> Row:
        row = self._made.get(cell)
        if row is None:
            state, event = cell
            if event not in self._stated or state not in self._states:
                raise KeyError(cell)
            stated = self._stated[event]
            row = self._made[cell] = _counted(self._counter, self._bound, state, stated, undoes=self._undoes)
        return row

    def __len__(self) -> int:
        return len(self._states) * len(self._stated)

    def __iter__(self) -> Iterator[tuple[str, EventRef]]:
        return ((state, event) for event in self._stated for state in self._states)


def _telling(states: Sequence[str]) -> Sequence[str]:
    """States among which there is one for each answer that one of them gives."""
    return states.telling if isinstance(states, _Numbers) else states


def _start(counter: Counter, bound: int | None) -> str:
    if bound is None:
        return Counter.UNLIMITED
    return "0" if counter.starts == "empty" else str(bound)


def _counter_states(counter: Counter, bound: int | None, *, undoes: bool) -> Sequence[str]:
    if bound is None:
        return (Counter.UNLIMITED,)
    last = (Counter.OVERRUN,) if counter.at_bound == Counter.OVERRUN else ()
    return _Numbers(bound, last, undoes=undoes)


def _counted(counter: Counter, bound: int | None, state: str, row: Row, *, undoes: bool) -> Row:
    """The row of one number, made from the row under its heading."""
    heading, number = row.state, state.removesuffix(Counter.OPEN)
    if row.kind is not RowKind.TO or state == Counter.OVERRUN:
        return row._replace(state=state, target=state)
    if heading in {"undo", "keep"}:
        if number == state:
            return _stopped(row, state, RowKind.IGNORE)
        return row._replace(state=state, target=str(int(number) - 1) if heading == "undo" else number)
    if heading in {"full", "some"}:
        happens = number == str(bound) if heading == "full" else number not in {"0", Counter.UNLIMITED}
        return row._replace(state=state, target=state) if happens else _stopped(row, state, RowKind.REFUSE)
    if bound is None or heading == "reset":
        return row._replace(state=state, target=_start(counter, bound))
    moved = _moved(counter, bound, number, row)
    opens = undoes and heading == "up" and moved.kind is RowKind.TO and moved.target != Counter.OVERRUN
    target = f"{moved.target}{Counter.OPEN}" if opens else moved.target if moved.kind is RowKind.TO else state
    return moved._replace(state=state, target=target)


def _moved(counter: Counter, bound: int, state: str, row: Row) -> Row:
    """Count one up or down; at 0 and at the bound as the counter says."""
    number = int(state) + (1 if row.state == "up" else -1)
    if number < 0:
        return _stopped(row, state, counter.at_zero)
    if number <= bound:
        return row._replace(state=state, target=str(number))
    if counter.at_bound == Counter.OVERRUN:
        return row._replace(state=state, target=Counter.OVERRUN)
    return _stopped(row, state, RowKind.IGNORE if counter.at_bound == Counter.STAYS else RowKind.REFUSE)


def _stopped(row: Row, state: str, kind: RowKind) -> Row:
    """``row`` as one that does not change the count: at 0, at the bound, or before it."""
    because = "nothing is counted" if state == Counter.UNLIMITED else f"the count is {state.removesuffix(Counter.OPEN)}"
    return row._replace(state=state, target=state, kind=kind, because=because)
