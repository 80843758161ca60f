"""What watches for anomalies, beside finished views: their product with one watching machine (lemmas 2 and 2a)."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from ackfsm.unbounded import _compiled
from ackfsm.unbounded._kernel import Edges
from ackfsm.unbounded._reasons import NotProvedError
from ackfsm.unbounded._spaces import Ints
from ackfsm.unbounded._tables import Column, Role, Table
from ackfsm.unbounded._views import Views

__all__ = [
    "Graph",
    "Reached",
    "columns_by_two",
    "graph_of",
    "is_reached_by_two",
    "moving",
    "product",
    "watched",
    "watching_columns",
]

Moves = Collection[tuple[int, int, bool]]
"""A state, another one that it leads to, and whether by an event of a message."""

Reached = npt.NDArray[np.bool_]
"""A row for each view, with the states of what watches that are reached together with it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Graph:
    """Finished views and the steps between them."""

    views: Views
    edges: Edges


def graph_of(views: Views) -> Graph:
    """The steps between ``views``, which are seen to be closed under all of them."""
    return Graph(views, views.edges())


def watched(graph: Graph, table: Table, slot: int | None) -> Reached:
    """What ``table`` reaches as it watches the runs of views: the message in ``slot``, or (``None``) the system."""
    return product(graph, watching_columns(graph.views, table, slot), table.initial)


def product(graph: Graph, columns: Ints, initial: int) -> Reached:
    """What is reached by ``columns``, which have for each alternative and step the next state of what watches."""
    size = columns.shape[2]
    reached = np.zeros(len(graph.views) * size, np.bool_)
    start = graph.views.first * size + initial
    _compiled.watch(graph.edges, columns, moving(columns), reached, np.empty(len(reached), np.int64), start)
    return reached.reshape(len(graph.views), size)


def moving(columns: Ints) -> Ints:
    """The steps by which what watches by these ``columns`` moves in some state."""
    return np.flatnonzero((columns != np.arange(columns.shape[2])).any(axis=(0, 2)))


def watching_columns(views: Views, table: Table, slot: int | None) -> Ints:
    """For each alternative, and each step of the views, the next state of ``table`` in each of its states."""
    stays = tuple(range(len(table.states)))
    heard = [_heard(table.columns, step.event, _role(views, step.event, step.roles, slot)) for step in views.steps]
    if any(-1 in column for columns in heard for column in columns):
        raise NotProvedError(f"{table.name} refuses an event that it should only watch")
    most = max(map(len, heard), default=0)
    chosen = [
        [columns[min(n, len(columns) - 1)] if columns else stays for columns in heard] for n in range(max(1, most))
    ]
    return np.array(chosen, np.int64).reshape(len(chosen), len(heard), len(stays))


def is_reached_by_two(table: Table, state: int) -> bool:
    """Whether ``table``, from its first state on, comes to ``state`` by two events of messages at most that move it."""
    moves = {
        (before, after, role is not Role.SYSTEM)
        for (role, _), columns in table.columns.items()
        for column in columns
        for before, after in enumerate(column)
        if before != after != table.initial
    }
    reached = _closed({table.initial}, moves, of_messages=False)
    for _ in range(2):
        reached = _closed(_after(reached, moves, of_messages=True), moves, of_messages=False)
    beyond = _after(reached, moves, of_messages=True)
    return state not in _closed(_closed(beyond, moves, of_messages=True), moves, of_messages=None)


def _after(states: set[int], moves: Moves, *, of_messages: bool | None) -> set[int]:
    return {after for before, after, by in moves if before in states and of_messages in {None, by}}


def _closed(states: set[int], moves: Moves, *, of_messages: bool | None) -> set[int]:
    while (more := states | _after(states, moves, of_messages=of_messages)) != states:
        states = more
    return states


def columns_by_two(views: Views, table: Table) -> Ints:
    """As :func:`watching_columns`, for the system; behind the states those again, and one more that leads nowhere.

    The second time they are reached from the first state on by the system and the messages of the view alone.
    """
    heard = watching_columns(views, table, None)
    alternatives, steps, size = heard.shape
    moved = heard != np.arange(size)
    third = np.array([step.third for step in views.steps], np.bool_)
    nowhere = 2 * size
    by_two = np.where(moved & third[:, None], nowhere, heard + size)
    behind = np.full((alternatives, steps, 1), nowhere)
    again = heard.copy()
    leaves = moved[:, :, table.initial] & ~third
    again[leaves, table.initial] += size
    return np.concatenate([np.concatenate([first, by_two, behind], axis=2) for first in (heard, again)])


def _role(views: Views, event: int, roles: tuple[Role, ...], slot: int | None) -> Role:
    if slot is not None:
        return roles[slot]
    return Role.OWN if views.spaces.system.events[event].of_message else Role.SYSTEM


def _heard(columns: Mapping[tuple[Role, int], tuple[Column, ...]], event: int, role: Role) -> tuple[Column, ...]:
    return columns.get((role, event), ())
