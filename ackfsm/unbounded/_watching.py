"""What watches for anomalies, beside finished views: the product of the views with one watching machine (lemma 2)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ackfsm.terms import DefectError
from ackfsm.unbounded._reasons import NotProvedError
from ackfsm.unbounded._spaces import Ints
from ackfsm.unbounded._tables import Column, Role, Table
from ackfsm.unbounded._views import Views

__all__ = ["Graph", "Reached", "distinct", "edges_of", "graph_of", "watched", "watching_columns"]

Reached = npt.NDArray[np.bool_]
"""A row for each view, with the states of what watches that are reached together with it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Graph:
    """The steps between views: those from view ``v`` are ``first[v]`` to ``first[v + 1]``, by number and target."""

    views: Views
    first: Ints
    step: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]


def graph_of(views: Views) -> Graph:
    """The steps between ``views``, which are seen to be closed under all of them."""
    sources, steps, targets = [], [], []
    every = np.arange(len(views))
    for number, step in enumerate(views.steps):
        among = views.may_happen(step, every)
        at, after = views.after(step, views.packed[among])
        target = views.index(after)
        if (target < 0).any():
            raise DefectError(
                "a step leads out of the views for any number of messages, which should be closed under it"
            )
        sources.append(among[at].astype(np.int32))
        targets.append(target.astype(np.int32))
        steps.append(np.full(len(at), number, np.int32))
    source = np.concatenate(sources)
    order = np.argsort(source, kind="stable")
    first = np.searchsorted(source[order], np.arange(len(views) + 1))
    return Graph(views, first, np.concatenate(steps)[order], np.concatenate(targets)[order])


def watched(graph: Graph, table: Table, slot: int | None) -> Reached:
    """What ``table`` reaches as it watches the runs of views: the message in ``slot``, or (``None``) the system."""
    columns = watching_columns(graph.views, table, slot)
    size = len(table.states)
    reached = np.zeros(len(graph.views) * size, np.bool_)
    last = np.empty(len(reached), np.int64)
    new = np.array([graph.views.first * size + table.initial])
    reached[new] = True
    while new.size:
        edges, owner = edges_of(graph, new // size)
        state = (new % size)[owner]
        targets = [graph.target[edges] * np.int64(size) + column[graph.step[edges], state] for column in columns]
        after = np.concatenate(targets)
        new = distinct(after[~reached[after]], last)
        reached[new] = True
    return reached.reshape(len(graph.views), size)


def distinct(numbers: Ints, last: Ints) -> Ints:
    """Each of ``numbers`` once; ``last`` has room for each of them.  Faster than sorting them."""
    places = np.arange(len(numbers))
    last[numbers] = places
    once: npt.NDArray[np.bool_] = last[numbers] == places
    return numbers[once]


def edges_of(graph: Graph, views: Ints) -> tuple[Ints, Ints]:
    """All steps from ``views``, and to which of them each belongs."""
    first, counts = graph.first[views], graph.first[views + 1] - graph.first[views]
    owner = np.repeat(np.arange(len(views)), counts)
    before = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return np.arange(int(counts.sum())) - np.repeat(before - first, counts), owner


def watching_columns(views: Views, table: Table, slot: int | None) -> list[Ints]:
    """For each alternative, and each step of the views, the next state of ``table`` in each of its states."""
    stays = tuple(range(len(table.states)))
    heard = [_heard(table.columns, step.event, _role(views, step.event, step.roles, slot)) for step in views.steps]
    if any(-1 in column for columns in heard for column in columns):
        raise NotProvedError(f"{table.name} refuses an event that it should only watch")
    most = max(map(len, heard), default=0)
    chosen = [
        [columns[min(n, len(columns) - 1)] if columns else stays for columns in heard] for n in range(max(1, most))
    ]
    return [np.array(column, np.int64).reshape(len(heard), len(stays)) for column in chosen]


def _role(views: Views, event: int, roles: tuple[Role, ...], slot: int | None) -> Role:
    if slot is not None:
        return roles[slot]
    return Role.OWN if views.spaces.system.events[event].of_message else Role.SYSTEM


def _heard(columns: Mapping[tuple[Role, int], tuple[Column, ...]], event: int, role: Role) -> tuple[Column, ...]:
    return columns.get((role, event), ())
