"""The states of a packed network one by one, in plain Python: for few states, of which every edge is asked for."""

from __future__ import annotations

from collections.abc import Sequence

from ackfsm.checking.explore.reduction.columns import bits
from ackfsm.checking.explore.search.encode import PackedNetwork


class StateGraph:
    """The states of a packed network, numbered as they are met from the first one, 0, and where its events lead.

    ``states`` has for each of them the state of every machine.
    """

    def __init__(self, packed: PackedNetwork) -> None:
        self.states = [tuple(packed.initial)]
        self._known = {self.states[0]: 0}
        self._successors: dict[int, Sequence[tuple[int, int]]] = {}
        self._every = (1 << len(packed.free)) - 1
        self._moves: list[list[tuple[int, Sequence[int]]]] = [[] for _ in packed.free]
        allowed = [[self._every] * size for size in packed.size]
        for event, moves in enumerate(self._moves):
            for p in range(packed.first[event], packed.first[event + 1]):
                machine, start = packed.instance[p], packed.offset[p]
                column = packed.table[start : start + packed.size[machine]]
                for state, after in enumerate(column):
                    if after < 0:
                        allowed[machine][state] &= ~(1 << event)
                if any(after not in {-1, state} for state, after in enumerate(column)):
                    moves.append((machine, column))
        self._allowed = [(i, masks) for i, masks in enumerate(allowed) if any(mask != self._every for mask in masks)]

    def successors(self, state: int) -> Sequence[tuple[int, int]]:
        """Every event that can happen in ``state``, in their order, with the state after it."""
        if state not in self._successors:
            self._successors[state] = self._expanded(self.states[state])
        return self._successors[state]

    def _expanded(self, here: tuple[int, ...]) -> list[tuple[int, int]]:
        possible = self._every
        for machine, masks in self._allowed:
            possible &= masks[here[machine]]
        found = []
        for event in bits(possible):
            after = list(here)
            for machine, column in self._moves[event]:
                after[machine] = column[here[machine]]
            state = tuple(after)
            number = self._known.setdefault(state, len(self.states))
            if number == len(self.states):
                self.states.append(state)
            found.append((event, number))
        return found
