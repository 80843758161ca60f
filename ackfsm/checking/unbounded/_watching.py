"""What watches for anomalies, beside finished views: the product of the views with one watching machine (lemma 2)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ackfsm.checking.unbounded import _compiled
from ackfsm.checking.unbounded._kernel import Edges
from ackfsm.checking.unbounded._reasons import NotProvedError
from ackfsm.checking.unbounded._spaces import Ints
from ackfsm.checking.unbounded._tables import Column, Role, Table
from ackfsm.checking.unbounded._views import Views

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


def watched(graph: Graph, table: Table, slot: int | None, begun: Ints | None = None) -> Reached:
    """What ``table`` reaches as it watches the runs of views: the message in ``slot``, or (``None``) the system.

    It watches from the first view on, or from each of those that are ``begun`` with.
    """
    columns = watching_columns(graph.views, table, slot)
    size = len(table.states)
    reached = np.zeros(len(graph.views) * size, np.bool_)
    moves, stack = moving(columns), np.empty(len(reached), np.int64)
    for view in [graph.views.first] if begun is None else begun.tolist():
        start = view * size + table.initial
        if not reached[start]:
            _compiled.watch(graph.edges, columns, moves, reached, stack, start)
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


def _role(views: Views, event: int, roles: tuple[Role, ...], slot: int | None) -> Role:
    if slot is not None:
        return roles[slot]
    return Role.OWN if views.spaces.system.events[event].of_message else Role.SYSTEM


def _heard(columns: Mapping[tuple[Role, int], tuple[Column, ...]], event: int, role: Role) -> tuple[Column, ...]:
    return columns.get((role, event), ())
