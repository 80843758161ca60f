"""Localization: a proof knows only some of the machines, and learns of more where it fails for want of them (lemma 6).

A machine that is left out refuses nothing.  So views of the rest have a run for each run of the whole, and a mark that
they do not show is not shown by the whole.  Where they show it, the way there is tried on each machine that was left
out: one that refuses a step of it is taken in, and all begins anew.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from ackfsm.checking.unbounded import _compiled
from ackfsm.checking.unbounded._columns import OF_COPY, System, Watcher
from ackfsm.checking.unbounded._kernel import BITS
from ackfsm.checking.unbounded._spaces import Ints
from ackfsm.checking.unbounded._steps import Level, Step
from ackfsm.checking.unbounded._tables import Role, Table
from ackfsm.checking.unbounded._watching import Graph, moving, watching_columns

_MOST_WAYS = 40
"""So many ways are tried before a proof is given up at a level."""


@dataclasses.dataclass(frozen=True, slots=True)
class Kept:
    """Which machines a proof knows: those of the system, and those of a message, by their numbers in the whole."""

    machines: frozenset[int]
    message: frozenset[int]

    def __or__(self, other: Kept) -> Kept:
        return Kept(self.machines | other.machines, self.message | other.message)

    def __len__(self) -> int:
        return len(self.machines) + len(self.message)


def everything(system: System) -> Kept:
    """All machines; ghosts go with their counters."""
    ghosts = {ghost.ghost for ghost in system.ghosts}
    return Kept(frozenset(range(len(system.machines))), frozenset(range(len(system.message))) - ghosts)


def first_kept(system: System, watcher: Watcher) -> Kept:
    """What a proof begins with: what watches, if that is in the system, and counters that may keep it in its bound."""
    watching = {number for number, table in enumerate(system.machines) if table is watcher.table}
    guards = {ghost.counter for ghost in system.ghosts if ghost.refuses and ghost.bound == watcher.bound}
    return Kept(frozenset(watching | (guards if watcher.ghost is not None else set())), frozenset())


def with_what_chooses(system: System, kept: Kept, watcher: Watcher) -> Kept:
    """What is kept, with the machines of a message that choose between events which lead ``watcher`` apart.

    And with those that choose between events which lead these apart.
    """
    led = [watcher.table]
    for _ in range(2):
        pairs = set(itertools.chain.from_iterable(map(_leading_apart, led)))
        others = everything(system).message - kept.message
        more = frozenset(n for n in others if any(_chooses(system.message[n], *pair) for pair in pairs))
        led = [system.message[number] for number in sorted(more)]
        kept |= Kept(frozenset(), more)
    return with_all_copies(system, kept)


def _leading_apart(table: Table) -> Iterator[tuple[int, int]]:
    """Each two events of a message of which from some state one leads to another state than the other."""
    own = [(event, columns) for (role, event), columns in table.columns.items() if role is Role.OWN]
    for (event, columns), (other, of_other) in itertools.combinations(own, 2):
        if any(after != after_other for after, after_other in zip(columns[0], of_other[0], strict=True)):
            yield event, other


def _chooses(table: Table, *events: int) -> bool:
    """Whether a machine refuses the first of two events alone in one state, and the second one alone in another."""
    refused = [
        [column[state] < 0 for state in range(len(table.states))]
        for e in events
        for column in table.columns.get((Role.OWN, e), ())[:1]
    ]
    return {(True, False), (False, True)} <= set(zip(*refused, strict=True))


def with_all_copies(system: System, kept: Kept) -> Kept:
    """What is kept, with the machines of every other copy of a message that are the same as one that is kept."""
    names = [table.name.partition(OF_COPY)[0] for table in system.message]
    of_kept = {names[number] for number in kept.message}
    return kept | Kept(frozenset(), frozenset(n for n in everything(system).message if names[n] in of_kept))


def projected(system: System, kept: Kept) -> System:
    """The system of the machines that are kept; events that a machine left out may refuse are not awaited at rest."""
    machines, message = sorted(kept.machines), sorted(kept.message)
    ghosts = [ghost for ghost in system.ghosts if ghost.counter in kept.machines]
    message += [ghost.ghost for ghost in ghosts]
    refusable = {
        event
        for table in _left_out(system, kept)
        for (_, event), columns in table.columns.items()
        if any(-1 in column for column in columns)
    }
    return System(
        family=system.family,
        events=tuple(
            dataclasses.replace(event, may_never_happen=True) if number in refusable else event
            for number, event in enumerate(system.events)
        ),
        machines=tuple(system.machines[number] for number in machines),
        message=tuple(system.message[number] for number in message),
        ghosts=tuple(
            dataclasses.replace(ghost, counter=machines.index(ghost.counter), ghost=message.index(ghost.ghost))
            for ghost in ghosts
        ),
    )


def _left_out(system: System, kept: Kept) -> Iterator[Table]:
    """The machines that are not kept."""
    every = everything(system)
    yield from (system.machines[number] for number in sorted(every.machines - kept.machines))
    yield from (system.message[number] for number in sorted(every.message - kept.message))


@dataclasses.dataclass(frozen=True, slots=True)
class Shown:
    """What stands against a proof: ``views`` in which ``watcher`` is in a marked ``state``, for each of its ``slots``.

    If that is so ``at_rest``, ``beside`` are views of the other messages.
    """

    reason: str
    watcher: Watcher
    slots: Sequence[int | None]
    state: int
    views: Sequence[Ints]
    beside: Sequence[int]
    at_rest: bool = False


def needed(whole: System, kept: Kept, graph: Graph, shown: Shown) -> Kept | None:
    """Machines without which a proof fails; ``None`` where none is seen to be missing.

    First one that refuses a step of a way to what is shown, or of a way to a view for whose sake a step of another
    message was possible there; then those that an event has to know to be awaited at rest.
    """
    if len(kept) == len(everything(whole)):
        return None
    size = len(shown.watcher.table.states)
    ways = _Ways(graph)
    found = [
        ways.to_marked(shown.watcher.table, slot, views * size + shown.state)
        for slot, views in zip(shown.slots, shown.views, strict=False)
        if views.size
    ]
    found += [ways.to_view(view) for view in shown.beside]
    outside = []
    for number, way in enumerate(ways.with_reasons(found)):
        moved = _Outside(whole, kept, way.steps, len(graph.views.slots))
        more = moved.refusing()
        if more is not None:
            return more
        if number < len(found):
            outside.append((moved, way.last))
    if shown.at_rest:
        more = min((m for each, view in outside if (m := each.awaited(graph, view)) is not None), key=len, default=None)
        if more is not None:
            return more
    return next((more for each, _ in outside if (more := each.of_others()) is not None), None)


@dataclasses.dataclass(frozen=True, slots=True)
class _Way:
    """The steps of a way, the views before each of them, and the last one."""

    steps: Sequence[Step]
    before: Sequence[int]
    last: int


class _Ways:
    """Shortest ways from the first view."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        views = graph.views
        self._by_system, self._by_message = views.enabled_by_system(), views.enabled_by_message(Role.OWN)

    def to_view(self, view: int) -> _Way:
        """The way to a view."""
        return self._followed(view, *self._tree)

    def to_marked(self, watcher: Table, slot: int | None, goal: Ints) -> _Way:
        """The way to the nearest of ``goal``, states by number of the product with what watches."""
        size = len(watcher.states)
        found, before, by = self._traced(watching_columns(self._graph.views, watcher, slot), watcher.initial, goal)
        return self._followed(found, before, by, size)

    def with_reasons(self, ways: Sequence[_Way]) -> Iterator[_Way]:
        """The ways, and those to the views that let others take part in them, and so on, up to so many."""
        waiting, met = collections.deque(ways), {way.last for way in ways}
        for _ in range(_MOST_WAYS):
            if not waiting:
                return
            way = waiting.popleft()
            yield way
            for view in self._reasons(way):
                if view not in met:
                    met.add(view)
                    waiting.append(self.to_view(view))

    @functools.cached_property
    def _tree(self) -> tuple[Ints, Ints, int]:
        steps = len(self._graph.views.steps)
        _, before, by = self._traced(np.zeros((1, steps, 1), np.int64), 0, np.zeros(0, np.int64))
        return before, by, 1

    @functools.cached_property
    def _sorted(self) -> list[tuple[Ints, Ints]]:
        """For each slot the views in the order of the state of the system and of the message in it."""
        views = self._graph.views
        packed = [(views.machines << BITS) | slot for slot in views.slots]
        orders = [np.argsort(each, kind="stable") for each in packed]
        return [(each[order], order) for each, order in zip(packed, orders, strict=True)]

    def _traced(self, columns: Ints, initial: int, goal: Ints) -> tuple[int, Ints, Ints]:
        graph = self._graph
        size = len(graph.views) * columns.shape[2]
        is_goal = np.zeros(size, np.bool_)
        is_goal[goal] = True
        before, by, queue = np.full(size, -1, np.int64), np.zeros(size, np.int64), np.empty(size, np.int64)
        start = graph.views.first * columns.shape[2] + initial
        found = int(_compiled.trace(graph.edges, columns, moving(columns), is_goal, before, by, queue, start))
        return found, before, by

    def _followed(self, last: int, before: Ints, by: Ints, size: int) -> _Way:
        """The way back from the state ``last`` of a product whose watching part has ``size`` states."""
        steps, views, found = [], [], last
        while before[found] != found:
            steps.append(self._graph.views.steps[by[found]])
            found = int(before[found])
            views.append(found // size)
        return _Way(steps[::-1], views[::-1], last // size)

    def _reasons(self, way: _Way) -> Iterator[int]:
        """For each step of a message that the views of ``way`` do not hold, a view with a message that owns it."""
        views = self._graph.views
        if views.level is not Level.PAIRS:
            return
        for step, at in zip(way.steps, way.before, strict=True):
            if not step.third:
                continue
            word, bit = divmod(step.event, 64)
            for slot, role in enumerate(step.roles):
                mine = 0 if role is Role.LATER else 1
                packed, order = self._sorted[mine]
                half = (int(views.machines[at]) << BITS) | int(views.slots[slot][at])
                same = order[np.searchsorted(packed, half) : np.searchsorted(packed, half + 1)]
                owns = self._by_message[views.slots[1 - mine][same], word] & self._by_system[views.machines[at], word]
                same = same[(owns >> bit) & 1 == 1]
                if same.size:
                    yield int(same[0])


class _Outside:
    """The machines that are left out, moved along a way of what is kept, each by itself."""

    def __init__(self, whole: System, kept: Kept, way: Sequence[Step], slots: int) -> None:
        self._whole, self._kept, self._way = whole, kept, way
        every = everything(whole)
        own = [(Role.SYSTEM if step.roles[0] is Role.SYSTEM else Role.OWN, step.event) for step in way]
        self._machines = {n: _moved(whole.machines[n], own) for n in sorted(every.machines - kept.machines)}
        self._message = {
            n: [_moved(whole.message[n], [(step.roles[slot], step.event) for step in way]) for slot in range(slots)]
            for n in sorted(every.message - kept.message)
        }

    def refusing(self) -> Kept | None:
        """The smallest machine that refuses a step of the way."""
        machines = [n for n, states in self._machines.items() if not states]
        if machines:
            return self._smallest(machines, [])
        return self._smallest([], [n for n, states in self._message.items() if not all(states)])

    def of_others(self) -> Kept | None:
        """The smallest machine that may refuse a message's own event, which the way has as that of a third one."""
        events = {step.event for step in self._way if step.third}
        return self._smallest(
            [], [n for n in self._message if any(_may_refuse(self._whole.message[n], e, (Role.OWN,)) for e in events)]
        )

    def awaited(self, graph: Graph, view: int) -> Kept | None:
        """The machines that an event is not awaited for, though it is possible after the way: fewest of all.

        At rest a view holds one message.
        """
        views, system = graph.views, graph.views.spaces.system
        machines, message = int(views.machines[view]), int(views.slots[0][view])
        found: list[Kept] = []
        enabled = {
            event
            for n, (event, _) in enumerate(views.spaces.system_steps)
            if views.spaces.machines.after[machines, n] >= 0
        }
        for event in sorted(enabled):
            declared = self._whole.events[event]
            if declared.may_never_happen or not system.events[event].may_never_happen:
                continue
            if self._is_possible(graph, event, message, Role.OWN if declared.of_message else Role.SYSTEM):
                found.append(self._may_refuse(event))
        return min(found, key=len, default=None)

    def _is_possible(self, graph: Graph, event: int, message: int, role: Role) -> bool:
        """Whether an event of a message, or of the system, is possible after the way, as far as each machine knows."""
        space, heard = graph.views.spaces, (role, event)
        return (
            bool(space.message.after[message, space.message_steps[heard]] >= 0)
            and all(_next(self._whole.message[n], states[0], heard) for n, states in self._message.items())
            and all(_next(self._whole.machines[n], states, heard) for n, states in self._machines.items())
        )

    def _may_refuse(self, event: int) -> Kept:
        return Kept(
            frozenset(n for n in self._machines if _may_refuse(self._whole.machines[n], event, tuple(Role))),
            frozenset(n for n in self._message if _may_refuse(self._whole.message[n], event, tuple(Role))),
        )

    def _smallest(self, machines: Sequence[int], message: Sequence[int]) -> Kept | None:
        if machines:
            return Kept(frozenset({min(machines, key=lambda n: len(self._whole.machines[n].states))}), frozenset())
        if message:
            return Kept(frozenset(), frozenset({min(message, key=lambda n: len(self._whole.message[n].states))}))
        return None


def _moved(table: Table, heard: Sequence[tuple[Role, int]]) -> frozenset[int]:
    """The states that a machine may be in after these; none if it refuses one."""
    states = frozenset({table.initial})
    for each in heard:
        states = _next(table, states, each)
    return states


def _next(table: Table, states: frozenset[int], heard: tuple[Role, int]) -> frozenset[int]:
    columns = table.columns.get(heard)
    return states if columns is None else frozenset(column[state] for column in columns for state in states) - {-1}


def _may_refuse(table: Table, event: int, roles: tuple[Role, ...]) -> bool:
    return any(-1 in column for role in roles for column in table.columns.get((role, event), ()))
