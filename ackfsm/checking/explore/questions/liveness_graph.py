"""The graph of the states found, under the live events, with its deadlocks and fair cycles."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from ackfsm.checking.explore.search import kernel_scc
from ackfsm.checking.explore.search.kernel import EMPTY, MASK_BITS
from ackfsm.checking.explore.search.kernel_scc import (
    COMPONENT,
    EXCLUDED,
    FRAME,
    NEW,
    SccStacks,
    StateSpace,
)
from ackfsm.checking.explore.search.layout import event_masks, machine_bits
from ackfsm.checking.explore.search.search import Search
from ackfsm.checking.network import Instance, Network, NetworkEvent

_FIRST_CAPACITY = 1 << 10
"""Numbers that each of the SCC stacks has room for at first."""

WaitingMachine: TypeAlias = tuple[int, frozenset[str]]
"""The number of an instance, and the states in which it waits."""


@dataclasses.dataclass(frozen=True, slots=True)
class LivenessViolation:
    """A run in which an instance waits for ever: ``steps`` to a quiescent state, or to the first one of a ``cycle``."""

    waiting: Instance
    steps: tuple[NetworkEvent, ...]
    cycle: tuple[NetworkEvent, ...] = ()


class LivenessGraph:
    """The states of a search; events are live if they must happen, or have a name in ``forever``.

    The search must not go on meanwhile.
    """

    def __init__(self, search: Search, network: Network, forever: Collection[str]) -> None:
        self.search = search
        self.network = network
        self.kernel: Any = search.arrays.kernel if search.arrays.is_compiled else kernel_scc
        live = [e for e, event in enumerate(network.events) if not event.may_never_happen or event.name in forever]
        self.space = self._space(event_masks(live, search.system.masks))
        self._cyclic: Any = None
        self._has_cycles = False

    def _space(self, live: list[int]) -> StateSpace:
        search, system, words = self.search, self.search.system, self.search.layout.words
        visited, arrays = search.visited, search.arrays
        slots = self.numbers(1 << (3 * visited.count // 2).bit_length(), EMPTY, "slots")
        self.kernel.index_states(words, visited.states, visited.count, slots)
        found = (search.expanded, visited.states[: visited.count * words], slots, arrays.of(live))
        sizes = (system.components, words, system.events, system.events, system.masks, system.masks)
        return StateSpace(system, search.layout, search.interned, *found, *map(self.numbers, sizes))

    def numbers(self, count: int, fill: int = 0, name: str = "") -> Any:
        """So many numbers in the form of the search."""
        return self.search.arrays.grown([], count, fill, name)

    # deadlocks

    def find_deadlocks(self, questions: Sequence[Sequence[WaitingMachine]]) -> list[LivenessViolation | None]:
        """For each question a shortest run to a quiescent state in which one of its machines waits."""
        marks = self.numbers(len(self.search.interned.component))
        for number, machines in enumerate(questions):
            for machine in machines:
                self._mark(machine, 1 << number, marks)
        found = self.numbers(len(questions), EMPTY)
        self.kernel.find_quiescent(self.space, marks, found)
        return [self._deadlock(machines, int(found[number])) for number, machines in enumerate(questions)]

    def _deadlock(self, machines: Sequence[WaitingMachine], state: int) -> LivenessViolation | None:
        if state < 0:
            return None
        waiting = next(machine for machine in machines if self._waits(machine, state))
        return LivenessViolation(self.network.instances[waiting[0]], self._steps_to(state))

    def _waits(self, machine: WaitingMachine, state: int) -> bool:
        marks = self.numbers(len(self.search.interned.component))
        self._mark(machine, 1, marks)
        self.kernel.look_up_state(self.space, state)
        return any(marks[local_id] for local_id in self.space.here)

    def _mark(self, machine: WaitingMachine, bit: int, marks: Any) -> None:
        number, pending = machine
        flags = self.search.arrays.of([int(state in pending) for state in self.network.instances[number].fsm.states])
        bits = machine_bits(self.search.packed, number)
        self.kernel.mark_waiting(self.space, *bits, flags, bit, marks)

    def _steps_to(self, state: int) -> tuple[NetworkEvent, ...]:
        return tuple(self.network.events[event] for event in self.search.path(state))

    # cycles

    def find_lasso(self, machines: Sequence[WaitingMachine]) -> LivenessViolation | None:
        """A run to a fair cycle in which one of ``machines`` waits all the time.

        No run to such a cycle is shorter; the cycle itself is short, but there may be a shorter one.
        """
        if self._cyclic is None:
            self._cyclic = self._every_state()
            self._has_cycles = self._nearest_fair(self._cyclic) >= 0
        if not self._has_cycles:
            return None
        runs = [run for machine in machines if (run := self._lasso_of(machine)) is not None]
        return min(runs, key=lambda run: (len(run.steps), len(run.cycle)), default=None)

    def _lasso_of(self, machine: WaitingMachine) -> LivenessViolation | None:
        lowlink, marks = self._cyclic.copy(), self.numbers(len(self.search.interned.component))
        self._mark(machine, 1, marks)
        self.kernel.restrict(self.space, marks, lowlink)
        state = self._nearest_fair(lowlink)
        if state < 0:
            return None
        cycle = tuple(self.network.events[event] for event in _FairCycle(self, lowlink, state).events())
        return LivenessViolation(self.network.instances[machine[0]], self._steps_to(state), cycle)

    def _every_state(self) -> Any:
        """Lowlinks with which every state is visited that has successors."""
        lowlink = self.numbers(self.search.found_states, NEW, "lowlink")
        for state in range(self.space.expanded, len(lowlink)):
            lowlink[state] = EXCLUDED
        return lowlink

    def _nearest_fair(self, lowlink: Any) -> int:
        """Find the fair components by ``lowlink``; the first state in one, or -1."""
        tally, nearest = self.numbers(6), self.numbers(1, EMPTY)
        tally[COMPONENT] = len(lowlink)
        stacks = SccStacks(
            self.numbers(FRAME * _FIRST_CAPACITY), self.numbers(_FIRST_CAPACITY), self.numbers(_FIRST_CAPACITY), tally
        )
        while not self.kernel.find_fair_components(self.space, lowlink, stacks, nearest):
            stacks = stacks._replace(
                frames=self._more(stacks.frames),
                edges=self._more(stacks.edges),
                component_stack=self._more(stacks.component_stack),
            )
        return int(nearest[0])

    def _more(self, stack: Any) -> Any:
        return self.search.arrays.grown(stack, 2 * len(stack) + FRAME * self.search.system.events, 0)

    def successors(self, state: int) -> list[tuple[int, int]]:
        """The live events of ``state``, and where each leads."""
        count = self.kernel.live_successors(self.space, state)
        return [(int(self.space.events[i]), int(self.space.after[i])) for i in range(count)]

    def still_enabled(self, state: int, events: Any) -> Any:
        """Return the mask of the ``events`` that are enabled in ``state``."""
        self.kernel.look_up_state(self.space, state)
        enabled = (self.kernel.enabled_here(self.space, m, int(mask)) for m, mask in enumerate(events))
        return self.search.arrays.of([int(mask) for mask in enabled])


class _FairCycle:
    """A cycle in a fair component: until each event that was enabled all the time was taken, then back."""

    def __init__(self, graph: LivenessGraph, lowlink: Any, origin: int) -> None:
        self.graph = graph
        self.lowlink = lowlink
        self.origin = self.state = origin
        self.owed = graph.still_enabled(origin, graph.search.system.must)
        self.parents = graph.numbers(len(lowlink), EMPTY, "lowlink")
        self.queue = graph.numbers(len(lowlink), 0, "lowlink")

    def events(self) -> list[int]:
        """The events of the cycle, by their numbers."""
        taken: list[int] = []
        while any(self.owed):
            taken += self._go(EMPTY)
        if self.state != self.origin or not taken:
            taken += self._go(self.origin)
        return taken

    def _go(self, target: int) -> Iterator[int]:
        """Go on to ``target``, or to where an event that is owed is taken or disabled."""
        graph, end = self.graph, self.graph.numbers(4)
        graph.kernel.path_in_scc(
            graph.space, self.lowlink, self.state, target, self.owed, self.parents, self.queue, end
        )
        last, event, after, met = (int(number) for number in end)
        if last < 0:
            raise AssertionError(self.state, target, "a fair component has a path to what is owed, and back")
        states = [last]
        while states[-1] != self.state:
            states.append(int(self.parents[states[-1]]))
        for i in range(met):
            self.parents[self.queue[i]] = EMPTY
        for before, then in pairwise(reversed(states)):
            yield self._take(next(e for e, where in graph.successors(before) if where == then), then)
        if event >= 0:
            yield self._take(event, after)

    def _take(self, event: int, after: int) -> int:
        self.owed[event // MASK_BITS] &= ~(1 << event % MASK_BITS)
        self.owed = self.graph.still_enabled(after, self.owed)
        self.state = after
        return event
