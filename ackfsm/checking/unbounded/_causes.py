"""Causes: which other message brought a machine into the states that only events of others lead to (lemma 4).

A view holds one other message, and forgets what the rest have done.  So a machine that waits for another message would
wait, in the abstraction, for nobody.  Where only events of others lead into some states, there is one that led there
last: the *cause*, and one of the pairs is that of the message and its cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ackfsm.checking.unbounded import _compiled
from ackfsm.checking.unbounded._tables import Role, Table
from ackfsm.checking.unbounded._watching import Graph, Reached, moving, watching_columns

__all__ = ["NOTHING", "Causes", "Waiting", "caused_states"]

Bits = npt.NDArray[np.int64]

_MOST_AT_ONCE = 62
"""So many causes are looked for in one pass, a bit for each."""


class Waiting(NamedTuple):
    """States of a machine into which only events of other messages lead; ``None`` is the machine that watches."""

    machine: int | None
    states: frozenset[int]


def caused_states(table: Table, state: int) -> frozenset[int] | None:
    """The least set with ``state`` into which only events of other messages lead; ``None`` if there is none."""
    found = {state}
    while table.initial not in found:
        entering = {
            before
            for (role, _), columns in table.columns.items()
            if role in {Role.OWN, Role.SYSTEM}
            for column in columns
            for before, after in enumerate(column)
            if after in found and before not in found
        }
        if not entering:
            return frozenset(found)
        found |= entering
    return None


NOTHING = Table("nothing", ("",), 0, {})
"""What watches where only the messages are asked about."""


class Causes:
    """For one machine that watches a message, the pairs in which the other message is a cause."""

    def __init__(self, graph: Graph, table: Table, of_messages: Causes | None = None) -> None:
        self.of_messages = self if of_messages is None else of_messages
        """The causes of what messages wait for, whatever watches them."""
        self._graph = graph
        self._table = table
        self._of_machines = [
            {state: states for state in range(len(each.states)) if (states := caused_states(each, state)) is not None}
            for each in graph.views.spaces.system.message
        ]
        every = [
            *(Waiting(n, states) for n, of_machine in enumerate(self._of_machines) for states in of_machine.values()),
            *(waiting for state in range(len(table.states)) if (waiting := self.of_mark(state)) is not None),
        ]
        self.asked = tuple(dict.fromkeys(every))
        """All that some message waits for, and what watches it."""
        self._number = {waiting: number for number, waiting in enumerate(self.asked)}
        self._among: dict[tuple[Waiting, int], tuple[set[int], set[int]]] = {}
        self._found: dict[tuple[int, int], Bits] = {}

    def waiting(self, message: int, state: int) -> list[Waiting]:
        """All of which a message in this state, with what watches it in ``state``, has a cause."""
        states = self._graph.views.spaces.message.states[message].tolist()
        found = [
            Waiting(machine, of_machine[state])
            for machine, (of_machine, state) in enumerate(zip(self._of_machines, states, strict=True))
            if state in of_machine
        ]
        mine = self.of_mark(state)
        return found if mine is None else [*found, mine]

    def of_mark(self, state: int) -> Waiting | None:
        """The states that what watches is brought into by others, if ``state`` is one of them."""
        states = caused_states(self._table, state)
        return None if states is None else Waiting(None, states)

    def has(self, waiting: Waiting, state: int) -> bool:
        """Whether the other message is the cause in some view with what watches in a state."""
        return any(bool(self.in_slot(waiting, slot)[:, state].any()) for slot in (0, 1))

    def in_slot(self, waiting: Waiting, slot: int) -> Reached:
        """For each view and state of what watches the message in a slot, whether the other message is the cause."""
        found, bit = self._tracked(waiting, slot)
        return cast("Reached", found & bit != 0)

    def _tracked(self, waiting: Waiting, slot: int) -> tuple[Bits, int]:
        """For each view and state of what watches the message in a slot, where it has causes.

        They are bits; with the one that is asked for.
        """
        part, bit = divmod(self._number[waiting], _MOST_AT_ONCE)
        if (part, slot) not in self._found:
            self._found[part, slot] = self._find(part, slot)
        return self._found[part, slot], 1 << bit

    def beside(self, waiting: Waiting, machines: int, message: int, state: int) -> tuple[set[int], set[int]]:
        """The states of causes before a message in this state, and of those behind it."""
        views = self._graph.views
        found: list[set[int]] = []
        for slot in (0, 1):
            tracked, bit = self._tracked(waiting, slot)
            same = np.flatnonzero((views.machines == machines) & (views.slots[slot] == message))
            of_views = tracked[same, state] & bit != 0
            found.append(set(views.slots[1 - slot][same[of_views]].tolist()))
        return found[1], found[0]

    def among(self, waiting: Waiting, machines: int) -> tuple[set[int], set[int]]:
        """The states of causes before, and of those behind, any message that waits so in this state of the system."""
        if (waiting, machines) not in self._among:
            views = self._graph.views
            here = np.flatnonzero(views.machines == machines)
            found: list[set[int]] = []
            for slot in (0, 1):
                tracked, bit = self._tracked(waiting, slot)
                of_views = (tracked[here] & bit).any(axis=1)
                found.append(set(views.slots[1 - slot][here[of_views]].tolist()))
            self._among[waiting, machines] = found[1], found[0]
        return self._among[waiting, machines]

    def _find(self, part: int, slot: int) -> Bits:
        """For each view and state of what watches, where it has its cause in the view: a bit for each of a part."""
        graph, size = self._graph, len(self._table.states)
        asked = {
            waiting: 1 << number % _MOST_AT_ONCE
            for waiting, number in self._number.items()
            if number // _MOST_AT_ONCE == part
        }
        columns = watching_columns(graph.views, self._table, slot)
        by_other = np.array([-(step.roles[1 - slot] is Role.OWN) for step in graph.views.steps], np.int64)
        of_states = np.array(
            [sum(bit for each, bit in asked.items() if each.machine is None and q in each.states) for q in range(size)],
            np.int64,
        )
        room, first = len(graph.views) * size, graph.views.first * size + self._table.initial
        found = np.zeros((room, 2), np.int64)
        found[first, 0] = sum(asked.values())
        circle, is_waiting = np.empty(room, np.int64), np.zeros(room, np.bool_)
        circle[0], is_waiting[first] = first, True
        _compiled.track(
            *(graph.edges, columns, moving(columns), by_other, self._inside(asked, slot), of_states),
            *(found, (circle, is_waiting)),
        )
        return np.ascontiguousarray(found[:, 1]).reshape(len(graph.views), size)

    def _inside(self, asked: Mapping[Waiting, int], slot: int) -> Bits:
        """For each view the machines of the message that are in states that others bring them into, as bits."""
        views = self._graph.views
        states = views.spaces.message.states
        of_messages = np.zeros(len(states), np.int64)
        for waiting, bit in asked.items():
            if waiting.machine is not None:
                of_messages |= np.where(np.isin(states[:, waiting.machine], list(waiting.states)), bit, 0)
        return of_messages[views.slots[slot]]
