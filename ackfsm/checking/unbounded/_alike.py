"""Which configurations are one system, however many messages there are: what can never matter in them is left out.

Each machine alone gives a bound on its states, with any number of messages: those that are reached if an event happens
as soon as every machine that must not refuse it has, in some state reached so far, a way to go on.  States and events
beyond the bound occur in no system of the configuration.  A machine that refuses nothing within it, and does not watch,
changes nothing that can be seen.  What is left decides, and so configurations of which the same is left share all that
is decided.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence

from ackfsm.checking.explore import bits
from ackfsm.checking.network import Bounds, observers_of
from ackfsm.checking.unbounded._columns import Alphabet, Event, Scope, System, Watcher, system_of, watchers_of
from ackfsm.checking.unbounded._families import Family, families
from ackfsm.checking.unbounded._reasons import NotProvedError
from ackfsm.checking.unbounded._tables import Column, Role, Table
from ackfsm.tables import BOUND_SETTINGS, Specification
from ackfsm.terms import Configuration


def network_keys(specification: Specification, configurations: Sequence[Configuration], bounds: Bounds) -> list[str]:
    """For each configuration a digest of all that decides what can happen, with any number of messages and of faults.

    Configurations with the same one have the same anomalies, by the same ways.  It has the bounds of counters as they
    are configured.  It knows nothing of promises, reasons and sources.
    """
    return list(map(_Keys(specification, bounds).key, configurations))


class _Keys:
    """The digests of configurations; what is made of the same rows is made once."""

    def __init__(self, specification: Specification, bounds: Bounds) -> None:
        self._specification, self._bounds = specification, bounds
        self._observers = observers_of(specification, None)
        self._machines = [*specification.machines.values(), *(monitor.machine for _, monitor in self._observers)]
        self._alphabets: dict[tuple[Event, ...], Alphabet] = {}
        self._parts: dict[tuple[int, ...], list[object]] = {}

    def key(self, configuration: Configuration) -> str:
        bounds = self._bounds
        scope = Scope(
            self._specification, configuration, bounds.faults, bounds.actions, bounds.without, self._alphabets
        )
        numbers = [getattr(configuration, setting) for setting in sorted(BOUND_SETTINGS.values())]
        try:
            parts: list[object] = [*self._of_each_family(scope)]
        except NotProvedError as reason:
            parts = [str(reason), configuration]
        return hashlib.sha256(repr((scope.copies, numbers, parts)).encode()).hexdigest()

    def _of_each_family(self, scope: Scope) -> Iterator[object]:
        """What decides in the systems of one message and of more, as often as it changes with their number."""
        parts: list[object] = []
        for family in self._families:
            known, parts = parts, self._of_family(scope, family)
            if parts != known:
                yield family.least, parts

    @functools.cached_property
    def _families(self) -> Sequence[Family]:
        return families(self._specification, self._machines)

    def _of_family(self, scope: Scope, family: Family) -> list[object]:
        environments = [scope.environment(family, copy) for copy in range(1, scope.copies + 1)]
        rows = tuple([id(machine.fsm(one)) for machine in self._machines for one in environments])
        if rows not in self._parts:
            system = system_of(scope, family)
            self._parts[rows] = Bounded(system, watchers_of(scope, system, self._observers)).parts()
        return self._parts[rows]


class _Images(dict[int, int]):
    """The states after an event, as bits, for those before it, also bits."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns

    def __missing__(self, states: int) -> int:
        after = {column[state] for column in self._columns for state in bits(states)} - {-1}
        self[states] = sum(1 << state for state in after)
        return self[states]


_images = functools.lru_cache(maxsize=10_000)(_Images)
"""Machines share most columns."""


class Bounded:
    """The states that each machine may reach, by its number, and the events that may happen."""

    def __init__(self, system: System, watchers: Sequence[Watcher]) -> None:
        self._events = system.events
        self._watchers = {len(system.machines) + len(system.message) + n: one for n, one in enumerate(watchers)}
        self._of_message = [*[False for _ in system.machines], *[True for _ in system.message]]
        self._of_message += [one.of_message for one in watchers]
        self._tables = [*system.machines, *system.message, *(one.table for one in watchers)]
        self._reached = [1 << table.initial for table in self._tables]
        self._alive: set[int] = set()
        self._heard: list[list[tuple[int, _Images]]] = [[] for _ in system.events]
        self._needed: list[list[tuple[int, _Images]]] = [[] for _ in system.events]
        self._hears: list[int] = [0 for _ in self._tables]
        for number, table in enumerate(self._tables):
            for (role, event), columns in table.columns.items():
                heard = number, _images(columns)
                self._heard[event].append(heard)
                self._hears[number] |= 1 << event
                if role is (Role.OWN if self._events[event].of_message else Role.SYSTEM):
                    self._needed[event].append(heard)
        self._find()

    @property
    def reached(self) -> list[list[int]]:
        return [list(bits(states)) for states in self._reached]

    def _find(self) -> None:
        """A least fixed point: an event that may not happen yet may when a machine that hears it reaches more."""
        news = (1 << len(self._events)) - 1
        while news:
            to_try, news = news, 0
            for event in bits(to_try):
                news |= self._happens(event)

    def _happens(self, event: int) -> int:
        """Have the event happen if it may, and return the events, as bits, that machines hear which then reach more."""
        reached = self._reached
        if not all(images[reached[number]] for number, images in self._needed[event]):
            return 0
        self._alive.add(event)
        news = 0
        for number, images in self._heard[event]:
            after = images[reached[number]]
            if after & ~reached[number]:
                reached[number] |= after
                news |= self._hears[number]
        return news

    def parts(self) -> list[object]:
        """The events, and each machine that can refuse or watch, without what is beyond the bound."""
        alive = sorted(map(_name, (self._events[event] for event in self._alive)))
        machines = (self._machine(number, table) for number, table in enumerate(self._tables))
        return [alive, *(one for one in machines if one is not None)]

    def _machine(self, number: int, table: Table) -> object:
        """A machine within its bound; ``None`` if it can neither refuse nor show an anomaly."""
        states = list(bits(self._reached[number]))
        columns = dict(self._columns(table, states))
        watcher = self._watchers.get(number)
        refuses = any(-1 in column for each in columns.values() for column in each)
        marked = () if watcher is None else (watcher.marked, watcher.at_rest)
        marks = [[state in each for state in states] for each in marked]
        if not refuses and not any(map(any, marks)):
            return None
        what = table.name if watcher is None else (watcher.anomaly, table.name)
        return what, self._of_message[number], states.index(table.initial), sorted(columns.items()), marks

    def _columns(self, table: Table, states: Sequence[int]) -> Iterator[tuple[tuple[object, ...], tuple[Column, ...]]]:
        """How the machine moves by the events that may happen, by their names; without those that change nothing."""
        number = {state: n for n, state in enumerate(states)} | {-1: -1}
        for (role, event), columns in table.columns.items():
            if event in self._alive:
                kept = tuple(dict.fromkeys(tuple(number[column[state]] for state in states) for column in columns))
                if kept != (tuple(range(len(states))),):
                    yield (*_name(self._events[event]), int(role)), kept


def _name(event: Event) -> tuple[str, bool, int, bool]:
    return event.name, event.of_message, event.copy, event.may_never_happen
