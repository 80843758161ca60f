"""The graph of the states that a search has found, by the events that are live: where it rests, where it goes round."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

from ackfsm.explore.search import kernel_scc
from ackfsm.explore.search.kernel import EMPTY, HEAD, MASK_BITS
from ackfsm.explore.search.kernel_scc import APART, COMPONENT, FRAME, NEW, Desk, Space, Walk
from ackfsm.explore.search.layout import masks_of, place_of
from ackfsm.explore.search.search import Search
from ackfsm.explore.search.shards import Shard
from ackfsm.network import Instance, Network, NetworkEvent

__all__ = ["Graph", "Machine", "Run"]

_FIRST_ROOM = 1 << 10
"""Numbers that each stack of a walk has room for at first."""

Machine: TypeAlias = tuple[int, frozenset[str]]
"""The number of an instance, and the states in which it waits."""


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """A run in which an instance waits for ever: ``steps`` to a state at rest, or to the first state of a ``cycle``."""

    waiting: Instance
    steps: tuple[NetworkEvent, ...]
    cycle: tuple[NetworkEvent, ...] = ()


class Graph:
    """The states of a search; events are live if they must happen, or have a name in ``forever``.

    The search must not go on meanwhile.
    """

    def __init__(self, search: Search, network: Network, forever: Collection[str]) -> None:
        self.search = search
        self.network = network
        self.kernel: Any = _kernel(compiled=search.room.is_compiled)
        live = [e for e, event in enumerate(network.events) if not event.may_never_happen or event.name in forever]
        system = search.system
        self.space = self._space(masks_of(live, system.masks))
        sizes = (system.components, search.layout.words, system.events, system.events, system.masks, system.masks)
        self.desk = Desk(*(self.numbers(size) for size in sizes))
        self.known = (system, search.layout, search.rows, self.space, self.desk)
        self._cyclic: Any = None
        self._has_cycles = False

    def _space(self, live: list[int]) -> Space:
        shards, words, room = self.search.shards, self.search.layout.words, self.search.room
        offset = [0, *accumulate(shard.count for shard in shards)]
        indexes = [self._index(shard) for shard in shards]
        table = [0, *accumulate(len(index) for index in indexes)]
        return Space(
            len(shards),
            room.of(offset),
            room.of([shard.head for shard in shards]),
            room.joined([shard.states[: shard.count * words] for shard in shards]),
            room.of(table),
            room.joined(indexes),
            room.of(live),
        )

    def _index(self, shard: Shard) -> Any:
        """A hash table of the numbers of the states of ``shard``."""
        slots = self.numbers(1 << (3 * shard.count // 2).bit_length(), EMPTY, "slots")
        known = (self.search.system, self.search.layout, self.search.rows)
        self.kernel.index(*known, shard.states, shard.count, slots)
        return slots

    def numbers(self, count: int, fill: int = 0, name: str = "") -> Any:
        """So many numbers in the form of the search."""
        return self.search.room.grown([], count, fill, name)

    # at rest

    def halts(self, questions: Sequence[Sequence[Machine]]) -> list[Run | None]:
        """For each question a shortest run that comes to rest while one of its machines waits."""
        marks = self.numbers(len(self.search.rows.component))
        for number, machines in enumerate(questions):
            for machine in machines:
                self._mark(machine, 1 << number, marks)
        nearest: list[list[int]] = []
        for shard in range(self.space.shards):
            found = self.numbers(len(questions), EMPTY)
            self.kernel.resting(*self.known, shard, marks, found)
            nearest.append([int(number) for number in found])
        return [self._halt(machines, [found[number] for found in nearest]) for number, machines in enumerate(questions)]

    def _halt(self, machines: Sequence[Machine], nearest: Sequence[int]) -> Run | None:
        found = self._nearest(nearest)
        if found is None:
            return None
        steps, state = found
        waiting = next(machine for machine in machines if self._waits(machine, state))
        return Run(self.network.instances[waiting[0]], steps)

    def _waits(self, machine: Machine, state: int) -> bool:
        marks = self.numbers(len(self.search.rows.component))
        self._mark(machine, 1, marks)
        self.kernel.rows_of(*self.known, state)
        return any(marks[row] for row in self.desk.here)

    def _mark(self, machine: Machine, bit: int, marks: Any) -> None:
        number, pending = machine
        flags = self.search.room.of([int(state in pending) for state in self.network.instances[number].fsm.states])
        place = place_of(self.search.packed, number)
        self.kernel.mark(self.search.system, self.search.rows, *place, flags, bit, marks)

    def _nearest(self, numbers: Sequence[int]) -> tuple[tuple[NetworkEvent, ...], int] | None:
        """Of the states with these numbers in their shards (-1: none there) a nearest one, and the steps to it."""
        ways = [
            (self.search.path((0, number, shard)), int(self.space.offset[shard]) + number)
            for shard, number in enumerate(numbers)
            if number >= 0
        ]
        if not ways:
            return None
        steps, state = min(ways, key=lambda way: len(way[0]))
        return tuple(self.network.events[event] for event in steps), state

    # cycles

    def lasso(self, machines: Sequence[Machine]) -> Run | None:
        """A run to a fair cycle in which one of ``machines`` waits all the time.

        There is no shorter way to such a cycle; the cycle itself is short, but there may be a shorter one.
        """
        if self._cyclic is None:
            self._cyclic = self._every_state()
            self._has_cycles = self._nearest(self._fair_sets(self._cyclic)) is not None
        if not self._has_cycles:
            return None
        runs = [run for machine in machines if (run := self._lasso_of(machine)) is not None]
        return min(runs, key=lambda run: (len(run.steps), len(run.cycle)), default=None)

    def _lasso_of(self, machine: Machine) -> Run | None:
        rank, marks = self._cyclic.copy(), self.numbers(len(self.search.rows.component))
        self._mark(machine, 1, marks)
        self.kernel.chosen(*self.known, marks, rank)
        found = self._nearest(self._fair_sets(rank))
        if found is None:
            return None
        steps, state = found
        cycle = tuple(self.network.events[event] for event in _Round(self, rank, state).events())
        return Run(self.network.instances[machine[0]], steps, cycle)

    def _every_state(self) -> Any:
        """Ranks with which every state is visited that has successors."""
        rank = self.numbers(int(self.space.offset[-1]), NEW, "rank")
        for shard in range(self.space.shards):
            first, end = int(self.space.offset[shard]), int(self.space.offset[shard + 1])
            for state in range(first + int(self.space.expanded[shard]), end):
                rank[state] = APART
        return rank

    def _fair_sets(self, rank: Any) -> list[int]:
        """Find the fair sets of ``rank``; for each shard the lowest number of a state in one, or -1."""
        tally, nearest = self.numbers(6), self.numbers(self.space.shards, EMPTY)
        tally[COMPONENT] = len(rank)
        walk = Walk(self.numbers(FRAME * _FIRST_ROOM), self.numbers(_FIRST_ROOM), self.numbers(_FIRST_ROOM), tally)
        while not self.kernel.fair_sets(*self.known, rank, walk, nearest):
            walk = walk._replace(
                frames=self._more(walk.frames), edges=self._more(walk.edges), held=self._more(walk.held)
            )
        return [int(number) for number in nearest]

    def _more(self, stack: Any) -> Any:
        return self.search.room.grown(stack, 2 * len(stack) + FRAME * self.search.system.events, 0)

    def successors(self, state: int) -> list[tuple[int, int]]:
        """The live events of ``state``, and where each leads."""
        count = self.kernel.successors(*self.known, state)
        return [(int(self.desk.events[i]), int(self.desk.after[i])) for i in range(count)]

    def still_enabled(self, state: int, events: Any) -> Any:
        """The mask of those of ``events`` that are enabled in ``state``."""
        self.kernel.rows_of(*self.known, state)
        enabled = [int(mask) for mask in events]
        for row in self.desk.here:
            for m in range(len(enabled)):
                enabled[m] &= int(self.search.rows.head[int(row) * self.search.system.head + HEAD + m])
        return self.search.room.of(enabled)


class _Round:
    """One way round in a fair set: until no event stays that was enabled all the way and not taken, then back."""

    def __init__(self, graph: Graph, rank: Any, origin: int) -> None:
        self.graph = graph
        self.rank = rank
        self.origin = self.state = origin
        self.owed = graph.still_enabled(origin, graph.search.system.must)
        self.back = graph.numbers(len(rank), EMPTY, "rank")
        self.queue = graph.numbers(len(rank), 0, "rank")

    def events(self) -> list[int]:
        """The events of the way round, by their numbers."""
        taken: list[int] = []
        while any(self.owed):
            taken += self._go(EMPTY)
        if self.state != self.origin or not taken:
            taken += self._go(self.origin)
        return taken

    def _go(self, target: int) -> Iterator[int]:
        """Go on to ``target``, or to where an event that is owed is taken or disabled."""
        graph, end = self.graph, self.graph.numbers(4)
        graph.kernel.way(*graph.known, self.rank, self.state, target, self.owed, self.back, self.queue, end)
        last, event, after, met = (int(number) for number in end)
        if last < 0:
            raise AssertionError(self.state, target, "a fair set has a way to what is owed, and back")
        states = [last]
        while states[-1] != self.state:
            states.append(int(self.back[states[-1]]))
        for i in range(met):
            self.back[self.queue[i]] = EMPTY
        for before, then in pairwise(reversed(states)):
            yield self._take(next(e for e, where in graph.successors(before) if where == then), then)
        if event >= 0:
            yield self._take(event, after)

    def _take(self, event: int, after: int) -> int:
        self.owed[event // MASK_BITS] &= ~(1 << event % MASK_BITS)
        self.owed = self.graph.still_enabled(after, self.owed)
        self.state = after
        return event


def _kernel(*, compiled: bool) -> Any:
    if not compiled:
        return kernel_scc
    from ackfsm.explore.search import compiled_scc

    return compiled_scc
