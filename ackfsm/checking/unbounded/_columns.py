"""The machines of the system and those of *one* message, which together describe the system of any number of messages.

A machine of a message hears the events of its own message, and of others only whether they are earlier or later.  So
the columns that message 2 has for the events of messages 1, 2 and 3 are those of every message for an earlier one's,
its own and a later one's.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ackfsm.checking.network import Observer, Place, concerns
from ackfsm.checking.unbounded._families import Family
from ackfsm.checking.unbounded._ghosts import Moves, ghost_of, moves_of
from ackfsm.checking.unbounded._reasons import NotProvedError
from ackfsm.checking.unbounded._tables import Column, Role, Table, columns_of, count_limits, counted, numbered_states
from ackfsm.tables import EventRef, Fsm, IndexKind, Machine, Monitor, RowKind, Specification, base_state
from ackfsm.terms import Configuration, Fault

OF_COPY = "#"
"""Between the name of a machine and the number of the copy, from the second one on."""

_WATCHED = 2
_MESSAGE = {Role.OWN: _WATCHED, Role.EARLIER: _WATCHED - 1, Role.LATER: _WATCHED + 1}


@dataclasses.dataclass(frozen=True, slots=True)
class Scope:
    """Of which systems something is to be proved.

    A configuration, the faults that may happen any number of times, the optional ``actions`` of the application that
    are considered, and the events that it goes ``without``.  ``alphabets`` are known by their events, and may be shared
    with other scopes of the same specification.
    """

    specification: Specification
    configuration: Configuration
    faults: frozenset[Fault]
    actions: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    alphabets: dict[tuple[Event, ...], Alphabet] = dataclasses.field(compare=False, repr=False, default_factory=dict)
    _environments: dict[tuple[int, int], Mapping[str, Any]] = dataclasses.field(
        init=False, compare=False, repr=False, default_factory=dict
    )

    @property
    def copies(self) -> int:
        """How many copies of a message there can be at the broker."""
        return self.specification.copies(self.configuration, self.actions)

    def environment(self, family: Family, copy: int = 1) -> Mapping[str, Any]:
        """What conditions of rows read: the bounds of counters as they are configured, for any number of messages."""
        if (family.least, copy) not in self._environments:
            self._environments[family.least, copy] = self.specification.environment(
                self.configuration, faults=self.faults, max_faults=None, messages=family.least, copy=copy, copies=None
            )
        return self._environments[family.least, copy]

    def alphabet(self, events: tuple[Event, ...]) -> Alphabet:
        """The ``events`` with what is known of them."""
        if events not in self.alphabets:
            self.alphabets[events] = Alphabet(events)
        return self.alphabets[events]


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """An event of the system, of any one message, or of its ``copy``; one that ``may_never_happen`` is not awaited."""

    name: str
    of_message: bool
    copy: int
    may_never_happen: bool

    def place(self, role: Role) -> Place:
        """Where it happens, if message 2 is the one whose columns are asked for."""
        if role is Role.SYSTEM:
            return Place(())
        return Place((_MESSAGE[role], self.copy) if self.copy else (_MESSAGE[role],))

    @property
    def roles(self) -> tuple[Role, ...]:
        """What it can be to a message."""
        return (Role.OWN, Role.EARLIER, Role.LATER) if self.of_message else (Role.SYSTEM,)


class Alphabet:
    """The events of a system, their ``numbers`` by their names, and the tables of machines over them.

    Configurations share most machines, and so the tables of them.
    """

    def __init__(self, events: tuple[Event, ...]) -> None:
        self.events = events
        self.numbers: dict[str, list[int]] = {}
        for i, event in enumerate(events):
            self.numbers.setdefault(event.name, []).append(i)
        self._tables: dict[tuple[int, Place, bool], tuple[Fsm, Table]] = {}

    def table(self, machine: Machine, fsm: Fsm, bound: int | None, place: Place, *, exact: bool) -> Table:
        """``fsm`` of ``machine`` in numbers; unless it is to be ``exact``, a counter may be abstracted."""
        key = id(fsm), place, exact
        if key not in self._tables:
            self._tables[key] = fsm, self._table(machine, fsm, bound, place, exact=exact)
        return self._tables[key][1]

    def _table(self, machine: Machine, fsm: Fsm, bound: int | None, place: Place, *, exact: bool) -> Table:
        abstract = not exact and counted(machine, fsm, bound)
        states = numbered_states(fsm, bound, abstract=abstract)
        columns: dict[tuple[Role, int], tuple[Column, ...]] = {}
        idle = (tuple(range(len(states))),)
        for number in sorted(number for name in fsm.reactive_events for number in self.numbers.get(name, ())):
            event = self.events[number]
            for role in event.roles if place.of else event.roles[:1]:
                heard = fsm.reactive_events[event.name]
                refs = [ref for ref in heard if concerns(ref.relation, place, event.place(role))]
                if len(refs) > 1:
                    raise NotProvedError(f"{fsm.name} hears {event.name} in several ways at once, which is not covered")
                for ref in refs:
                    if (found := columns_of(fsm, ref, bound, abstract=abstract)) != idle:
                        columns[role, number] = found
        start = 0 if abstract else states.index(fsm.initial)
        if abstract and fsm.initial != "0":
            raise NotProvedError(f"{machine.name} starts full, which is not covered")
        return Table(_label(machine.name, place), states, start, columns, count_limits(machine, states, bound))


@dataclasses.dataclass(frozen=True, slots=True)
class Ghost:
    """Which machine of the system counts, and which machine of a message is its ghost, by their numbers.

    The counter goes to ``bound``, and ``refuses`` to go on, or stays there.  The sum of the ghosts of all messages is
    what it has counted (*exact*), or that at least.
    """

    counter: int
    ghost: int
    moves: Moves
    bound: int
    refuses: bool
    exact: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class System:
    """The machines of the system, those of one message, and the events; the ghosts are among the machines of it."""

    family: Family
    events: tuple[Event, ...]
    machines: tuple[Table, ...]
    message: tuple[Table, ...]
    ghosts: tuple[Ghost, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Watcher:
    """A machine that watches for an anomaly: one of the system, or one of each message; it never refuses.

    One that counts to a ``bound`` may have a ``ghost``, as the counters of the system have, which ``moves`` move.
    """

    anomaly: str
    table: Table
    of_message: bool
    marked: frozenset[int]
    at_rest: frozenset[int]
    ghost: Table | None = None
    bound: int | None = None
    moves: Moves | None = None


def system_of(scope: Scope, family: Family, *, exact: bool = False) -> System:
    """The machines of the configuration and their columns, with a ghost for each counter that may have one.

    In an ``exact`` one every counter has all its numbers, and nothing has a ghost.

    Raises :class:`NotProvedError` where a machine counts in a way that is not covered.
    """
    events = tuple(_events(scope, family))
    alphabet = scope.alphabet(events)
    system_events = frozenset(i for i, event in enumerate(events) if not event.of_message)
    machines: list[Table] = []
    message: list[Table] = []
    counters: list[tuple[int, Machine, int]] = []
    for machine in scope.specification.machines.values():
        for place in _places(machine.per, scope.copies):
            table = _table(scope, family, machine, place, alphabet, exact=exact)
            (message if place.of else machines).append(table)
            bound = _bound(scope, family, machine)
            if not place.of and bound is not None and not exact:
                counters.append((len(machines) - 1, machine, bound))
    ghosts: list[Ghost] = []
    for number, machine, bound in counters:
        moves = moves_of(machine, scope.environment(family), alphabet.numbers)
        ghost = ghost_of(machine, moves, system_events)
        if ghost is not None:
            message.append(ghost)
            refuses = machine.counter is not None and machine.counter.at_bound == RowKind.REFUSE
            ghosts.append(Ghost(number, len(message) - 1, moves, bound, refuses))
    return System(family, events, tuple(machines), tuple(message), tuple(ghosts))


def watchers_of(
    scope: Scope, system: System, observers: Sequence[Observer], *, exact: bool = False
) -> tuple[Watcher, ...]:
    """The machines that watch for anomalies, over the events of ``system``; those of two copies are two machines."""
    return tuple(
        _watcher(scope, system, anomaly, monitor, place, exact=exact)
        for anomaly, monitor in observers
        for place in _places(monitor.machine.per, scope.copies)
    )


def with_watcher(system: System, watcher: Watcher) -> System:
    """The system with what watches it as one of its machines, so that views tell what it has heard of others."""
    return dataclasses.replace(system, machines=(*system.machines, watcher.table))


def _watcher(  # noqa: PLR0913 - what watches, where it is, and what it hears
    scope: Scope, system: System, anomaly: str, monitor: Monitor, place: Place, *, exact: bool
) -> Watcher:
    machine, family, alphabet = monitor.machine, system.family, scope.alphabet(system.events)
    table = _table(scope, family, machine, place, alphabet, exact=exact)
    if any(-1 in column for columns in table.columns.values() for column in columns):
        raise NotProvedError(f"{machine.name}, which watches for {anomaly}, refuses an event")
    marked, at_rest = (
        frozenset(i for i, state in enumerate(table.states) if base_state(state) in states)
        for states in (monitor.marked, monitor.marked_at_rest)
    )
    bound = None if place.of else _bound(scope, family, machine)
    ghost = moves = None
    if bound is not None:
        of_system = frozenset(i for i, event in enumerate(alphabet.events) if not event.of_message)
        moves = moves_of(machine, scope.environment(family), alphabet.numbers)
        ghost = ghost_of(machine, moves, of_system)
    return Watcher(anomaly, table, bool(place.of), marked, at_rest, ghost, bound, moves)


def _bound(scope: Scope, family: Family, machine: Machine) -> int | None:
    return None if machine.counter is None else scope.environment(family)[machine.counter.bound]


@functools.cache
def _places(per: IndexKind, copies: int) -> Sequence[Place]:
    """Where the machines of message 2 are, or the one of the system."""
    if per.whole is IndexKind.SYSTEM:
        return (Place(()),)
    if per.whole is IndexKind.MESSAGE:
        return (Place((_WATCHED,)),)
    return tuple(Place((_WATCHED, copy)) for copy in range(1, copies + 1))


def _fsm(scope: Scope, family: Family, machine: Machine, place: Place) -> Fsm:
    return machine.fsm(scope.environment(family, place.of[1] if len(place.of) > 1 else 1))


def _events(scope: Scope, family: Family) -> Iterator[Event]:
    """The events that their owners have a row for, as :func:`ackfsm.checking.network.compose` has them."""
    for machine in scope.specification.machines.values():
        fsms = {place.of: _fsm(scope, family, machine, place) for place in _places(machine.per, scope.copies)}
        depth = len(next(iter(fsms)))
        for name in machine.owns:
            declared = scope.specification.events[name]
            if (declared.optional and name not in scope.actions) or name in scope.without:
                continue
            for place in _places(declared.per, scope.copies):
                if EventRef(name) in fsms[place.of[:depth]].moving:
                    may_never_happen = name in set(Fault) or declared.optional
                    yield Event(name, bool(place.of), place.of[1] if len(place.of) > 1 else 0, may_never_happen)


def _table(  # noqa: PLR0913 - a machine, where it is, and how it counts
    scope: Scope, family: Family, machine: Machine, place: Place, alphabet: Alphabet, *, exact: bool
) -> Table:
    fsm = _fsm(scope, family, machine, place)
    return alphabet.table(machine, fsm, _bound(scope, family, machine), place, exact=exact)


def _label(name: str, place: Place) -> str:
    return f"{name}{OF_COPY}{place.of[1]}" if len(place.of) > 1 and place.of[1] > 1 else name
