"""Which configurations are one system, however many messages there are: what can never matter in them is left out.

Each machine alone gives a bound on its states, with any number of messages: those that are reached if an event happens
as soon as every machine that must not refuse it has, in some state reached so far, a way to go on.  States and events
beyond the bound occur in no system of the configuration.  A machine that refuses nothing within it, and does not watch,
changes nothing that can be seen.  What is left decides, and so configurations of which the same is left share all that
is decided.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from ackfsm.checking.network import Bounds, Observer, observers_of
from ackfsm.checking.unbounded._columns import Event, Scope, System, Watcher, system_of, watchers_of
from ackfsm.checking.unbounded._families import families
from ackfsm.checking.unbounded._reasons import NotProvedError
from ackfsm.checking.unbounded._tables import Column, Role, Table
from ackfsm.tables import BOUND_SETTINGS, Fsm, Specification
from ackfsm.terms import Configuration

_Heard: TypeAlias = "list[tuple[int, Role, tuple[Column, ...]]]"
"""Of an event: the number of each machine that hears it, as what, and its columns."""


def network_key(specification: Specification, configuration: Configuration, bounds: Bounds) -> str:
    """A digest of all that decides what can happen in ``configuration`` with any number of messages and of faults.

    Configurations with the same one have the same anomalies, by the same ways.  It has the bounds of counters as they
    are configured.  It knows nothing of promises, reasons and sources.
    """
    scope = Scope(specification, configuration, bounds.faults, bounds.actions, bounds.without)
    numbers = [getattr(configuration, setting) for setting in sorted(BOUND_SETTINGS.values())]
    try:
        parts: list[object] = [*_of_each_family(scope, observers_of(specification, None))]
    except NotProvedError as reason:
        parts = [str(reason), configuration]
    return hashlib.sha256(repr((scope.copies, numbers, parts)).encode()).hexdigest()


def _of_each_family(scope: Scope, observers: Sequence[Observer]) -> Iterator[object]:
    """What decides in the systems of one message and of more, as often as it changes with their number."""
    machines = [*scope.specification.machines.values(), *(monitor.machine for _, monitor in observers)]
    rows: list[Fsm] = []
    parts: list[object] = []
    for family in families(scope.specification, machines):
        environments = [scope.environment(family, copy) for copy in range(1, scope.copies + 1)]
        before, rows = rows, [machine.fsm(one) for machine in machines for one in environments]
        if not before or not all(map(operator.is_, rows, before)):
            system = system_of(scope, family)
            known, parts = parts, Bounded(system, watchers_of(scope, system, observers)).parts()
            if parts != known:
                yield family.least, parts


class Bounded:
    """The states that each machine may reach, by its number, and the events that may happen."""

    def __init__(self, system: System, watchers: Sequence[Watcher]) -> None:
        self._events = system.events
        self._watchers = {len(system.machines) + len(system.message) + n: one for n, one in enumerate(watchers)}
        self._of_message = [*[False for _ in system.machines], *[True for _ in system.message]]
        self._of_message += [one.of_message for one in watchers]
        self._tables = [*system.machines, *system.message, *(one.table for one in watchers)]
        self.reached = [{table.initial} for table in self._tables]
        self._alive: set[int] = set()
        self._heard: dict[int, _Heard] = {number: [] for number in range(len(system.events))}
        for number, table in enumerate(self._tables):
            for (role, event), columns in table.columns.items():
                self._heard[event].append((number, role, columns))
        while sum(map(self._happens, self._heard)):
            pass

    def _happens(self, event: int) -> bool:
        """Whether the event may happen and shows something new."""
        own = Role.OWN if self._events[event].of_message else Role.SYSTEM
        if any(role is own and not self._after(number, columns) for number, role, columns in self._heard[event]):
            return False
        news = event not in self._alive
        self._alive.add(event)
        for number, _, columns in self._heard[event]:
            after = self._after(number, columns)
            news |= not after <= self.reached[number]
            self.reached[number] |= after
        return news

    def _after(self, number: int, columns: Sequence[Column]) -> set[int]:
        return {column[state] for column in columns for state in self.reached[number]} - {-1}

    def parts(self) -> list[object]:
        """The events, and each machine that can refuse or watch, without what is beyond the bound."""
        alive = sorted(map(_name, (self._events[event] for event in self._alive)))
        machines = (self._machine(number, table) for number, table in enumerate(self._tables))
        return [alive, *(one for one in machines if one is not None)]

    def _machine(self, number: int, table: Table) -> object:
        """A machine within its bound; ``None`` if it can neither refuse nor show an anomaly."""
        states = sorted(self.reached[number])
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
