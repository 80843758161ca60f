"""A system of hundreds of messages, one run at a time: each machine by its table, each counter with its numbers.

A composed network has a participant for each pair of messages, and ends at some four hundred of them.  Here all
messages share the columns of one, and the states of a machine of each of them are a row of an array.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ackfsm.checking.network import Observer
from ackfsm.checking.unbounded._columns import Scope, Watcher, system_of, watchers_of
from ackfsm.checking.unbounded._families import Family, families
from ackfsm.checking.unbounded._tables import Role, Table

_Column = npt.NDArray[np.int32]
_LABEL = re.compile(r"(?P<name>\w+)(\(m(?P<message>\d+)(#(?P<copy>\d+))?\))?")


class Many:
    """The states of all machines of a system of so many ``messages``, which are numbered from 1."""

    def __init__(self, scope: Scope, messages: int, observers: Sequence[Observer]) -> None:
        """Every machine in its first state, with those that watch for the anomalies of ``observers``.

        Raises :class:`ackfsm.checking.unbounded._reasons.NotProvedError` for machines that one message does not
        describe.
        """
        system = system_of(scope, _family(scope, messages, observers), exact=True)
        watchers = watchers_of(scope, system, observers, exact=True)
        self.messages = messages
        self._events = system.events
        self._numbers = {(event.name, max(event.copy, 1)): number for number, event in enumerate(system.events)}
        self._rows = {False: [*system.machines], True: [*system.message]}
        self._watchers: list[tuple[int, Watcher]] = []
        for one in watchers:
            self._watchers.append((len(self._rows[one.of_message]), one))
            self._rows[one.of_message].append(one.table)
        self._system = np.array([[table.initial] for table in self._rows[False]], np.int32)
        self._each = np.array([[table.initial] * messages for table in self._rows[True]], np.int32)
        numbers = range(len(system.events))
        self._of_system = [_columns(self._rows[False], event.roles[0], n) for n, event in enumerate(system.events)]
        self._of_each = {(role, n): _columns(self._rows[True], role, n) for n in numbers for role in Role}

    def fire(self, label: str) -> bool:
        """Let the event with this label (``arrive(m7)``, ``broker_crash``) happen; whether all machines allow it."""
        found = _LABEL.fullmatch(label)
        number = None if found is None else self._numbers.get((found["name"], int(found["copy"] or 1)))
        message = 0 if found is None else int(found["message"] or 0)
        if number is None or self._events[number].of_message != bool(message) or message > self.messages:
            return False
        after = self._after(number, message)
        for states, row, among, new in after or ():
            states[row, among] = new
        return after is not None

    def shown(self) -> frozenset[str]:
        """The anomalies that the present state is."""
        marked = {one.anomaly for row, one in self._watchers if self._is_in(one, row, one.marked)}
        resting = {one.anomaly for row, one in self._watchers if self._is_in(one, row, one.at_rest)}
        return frozenset(marked | resting if resting and self.is_at_rest else marked)

    def _is_in(self, watcher: Watcher, row: int, states: frozenset[int]) -> bool:
        """Whether a machine that watches is in one of these states."""
        found = (self._each if watcher.of_message else self._system)[row]
        return bool(np.isin(found, [*states]).any())

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing can happen but what may never happen."""
        return not any(
            self._after(number, message) is not None
            for number, event in enumerate(self._events)
            if not event.may_never_happen
            for message in (range(1, self.messages + 1) if event.of_message else (0,))
        )

    def _after(self, number: int, message: int) -> list[tuple[_Column, int, slice, _Column]] | None:
        """What an event changes: in which states, of which machine, of which messages; ``None`` if one refuses it."""
        own = slice(message - 1, message)
        parts = [(Role.OWN, own), (Role.LATER, slice(own.start)), (Role.EARLIER, slice(message, None))]
        changed: list[tuple[_Column, int, slice, _Column]] = []
        asked = [(self._system, self._of_system[number], slice(None))]
        for role, among in parts if message else [(Role.SYSTEM, slice(None))]:
            asked.append((self._each, self._of_each[role, number], among))
        for states, columns, among in asked:
            for row, column in columns:
                new = column[states[row, among]]
                if (new < 0).any():
                    return None
                changed.append((states, row, among, new))
        return changed


def _family(scope: Scope, messages: int, observers: Sequence[Observer]) -> Family:
    machines = [*scope.specification.machines.values(), *(monitor.machine for _, monitor in observers)]
    every = families(scope.specification, machines)
    return next(family for family in every if family.most is None or family.most >= messages)


def _columns(tables: Sequence[Table], role: Role, number: int) -> list[tuple[int, _Column]]:
    """The machines that an event changes or that may refuse it, and how."""
    heard = [(row, table.columns.get((role, number))) for row, table in enumerate(tables)]
    return [(row, np.array(columns[0], np.int32)) for row, columns in heard if columns is not None]
