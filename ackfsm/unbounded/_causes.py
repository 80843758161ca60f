"""Causes: which other message brought a machine into the states that only events of others lead to (lemma 4).

A view holds one other message, and forgets what the rest have done.  So a machine that waits for another message would
wait, in the abstraction, for nobody.  Where only events of others lead into some states, there is one that led there
last: the *cause*, and one of the pairs is that of the message and its cause.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ackfsm.unbounded import _compiled
from ackfsm.unbounded._tables import Role, Table
from ackfsm.unbounded._watching import Graph, moving, watching_columns

__all__ = ["NOTHING", "Causes", "Waiting", "caused_states"]

Tracked = npt.NDArray[np.bool_]
"""For each view, state of what watches, and 0 or 1: whether the other message of the view is the cause."""


Flags = npt.NDArray[np.bool_]


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
        self._among: dict[tuple[Waiting, int], tuple[set[int], set[int]]] = {}
        self._known: dict[tuple[int, int], frozenset[int] | None] = {}
        self._tracked: dict[Waiting, tuple[Tracked, Tracked]] = {}

    def waiting(self, message: int, state: int) -> list[Waiting]:
        """All of which a message in this state, with what watches it in ``state``, has a cause."""
        spaces = self._graph.views.spaces
        found = [
            Waiting(machine, states)
            for machine in range(len(spaces.system.message))
            if (states := self._caused(machine, int(spaces.message.states[message, machine]))) is not None
        ]
        mine = self.of_mark(state)
        return found if mine is None else [*found, mine]

    def _caused(self, machine: int, state: int) -> frozenset[int] | None:
        if (machine, state) not in self._known:
            table = self._graph.views.spaces.system.message[machine]
            self._known[machine, state] = caused_states(table, state)
        return self._known[machine, state]

    def of_mark(self, state: int) -> Waiting | None:
        """The states that what watches is brought into by others, if ``state`` is one of them."""
        states = caused_states(self._table, state)
        return None if states is None else Waiting(None, states)

    def tracked(self, waiting: Waiting) -> tuple[Tracked, Tracked]:
        """For the message in each of the two slots, where the other one is the cause."""
        if waiting not in self._tracked:
            first, second = (self._find(waiting, slot) for slot in (0, 1))
            self._tracked[waiting] = first, second
        return self._tracked[waiting]

    def beside(self, waiting: Waiting, machines: int, message: int, state: int) -> tuple[set[int], set[int]]:
        """The states of causes before a message in this state, and of those behind it."""
        views = self._graph.views
        found: list[set[int]] = []
        for slot in (1, 0):
            of_views = self.tracked(waiting)[slot][:, state, 1]
            same = of_views & (views.machines == machines) & (views.slots[slot] == message)
            found.append(set(views.slots[1 - slot][same].tolist()))
        return found[0], found[1]

    def among(self, waiting: Waiting, machines: int) -> tuple[set[int], set[int]]:
        """The states of causes before, and of those behind, any message that waits so in this state of the system."""
        if (waiting, machines) not in self._among:
            views = self._graph.views
            found: list[set[int]] = []
            for slot in (1, 0):
                here = self.tracked(waiting)[slot][:, :, 1].any(axis=1) & (views.machines == machines)
                found.append(set(views.slots[1 - slot][here].tolist()))
            self._among[waiting, machines] = found[0], found[1]
        return self._among[waiting, machines]

    def _find(self, waiting: Waiting, slot: int) -> Tracked:
        graph, size = self._graph, len(self._table.states)
        columns = watching_columns(graph.views, self._table, slot)
        by_other = np.array([step.roles[1 - slot] is Role.OWN for step in graph.views.steps])
        inside = self._inside(waiting, slot)
        reached = np.zeros(len(graph.views) * size * 2, np.bool_)
        _compiled.track(
            *(graph.edges, columns, moving(columns), by_other, inside, reached),
            *(np.empty(len(reached), np.int64), (graph.views.first * size + self._table.initial) * 2),
        )
        return reached.reshape(len(graph.views), size, 2)

    def _inside(self, waiting: Waiting, slot: int) -> npt.NDArray[np.bool_]:
        """For each view and state of what watches, whether the machine is in the states that others bring it into."""
        size, views = len(self._table.states), self._graph.views
        if waiting.machine is None:
            return np.tile(np.isin(np.arange(size), list(waiting.states)), len(views))
        of_messages = views.spaces.message.states[views.slots[slot], waiting.machine]
        return np.repeat(np.isin(of_messages, list(waiting.states)), size)
