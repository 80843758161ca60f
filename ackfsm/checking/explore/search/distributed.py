"""The part of a distributed search that a worker process does: serialised states in, their successors out.

The states are those of :mod:`ackfsm.checking.explore.search.kernel_serialize`: arrays of 64-bit integers, a row for
each state. Needs NumPy and Numba.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ackfsm.checking.explore.search import compiled
from ackfsm.checking.explore.search.encode import PackedNetwork
from ackfsm.checking.explore.search.kernel import ALWAYS, HEAD
from ackfsm.checking.explore.search.layout import machine_states_of
from ackfsm.checking.explore.search.options import SearchOptions
from ackfsm.checking.explore.search.search import Search

States: TypeAlias = npt.NDArray[np.int64]


def state_hashes(states: States, seed: int) -> States:
    """A hash of 31 bits for each state, the same in every process."""
    keys = np.empty(len(states), dtype=np.int64)
    compiled.hash_states(np.ascontiguousarray(states).ravel(), states.shape[1], seed, keys)
    return keys


def lexicographic_min(states: States) -> States:
    """The first of some states in the order of their words."""
    first: States = states[np.lexsort(states.T[::-1])[0]]
    return first


class StateSet:
    """Different states in the order in which they were added; ``words`` is the length of one."""

    def __init__(self, words: int) -> None:
        self._words = words
        self._known: States = np.empty(0, dtype=np.int64)
        self._slots: States = np.full(1, -1, dtype=np.int64)
        self._count = 0

    def __len__(self) -> int:
        """How many there are."""
        return self._count

    @property
    def states(self) -> States:
        """All of them."""
        return self._known[: self._count * self._words].reshape(-1, self._words)

    def add(self, states: States) -> None:
        """Add the new ones among ``states``, one a row."""
        self._grow(self._count + len(states))
        self._count = self._add(states, self._count)

    def index(self, states: States) -> States:
        """Return the index of each state, -1 for absent ones."""
        into = np.empty(len(states), dtype=np.int64)
        compiled.set_find(np.ascontiguousarray(states).ravel(), self._words, self._known, self._slots, into)
        return into

    def _add(self, states: States, count: int) -> int:
        flat = np.ascontiguousarray(states).ravel()
        return int(compiled.set_insert(flat, len(states), self._words, self._known, self._slots, count))

    def _grow(self, count: int) -> None:
        if count * self._words > len(self._known):
            known = np.empty(2 * count * self._words, dtype=np.int64)
            known[: self._count * self._words] = self.states.ravel()
            self._known = known
        if 2 * count > len(self._slots):
            self._slots = np.full(1 << (4 * count).bit_length(), -1, dtype=np.int64)
            self._add(self.states.copy(), 0)


class SuccessorWorker(Search):
    """A worker that computes successors of a network's states by batches, and keeps interned states."""

    def __init__(self, packed: PackedNetwork) -> None:
        super().__init__(packed, SearchOptions(workers=1, compiled=True, every_step=True))
        self.words = self.system.components * self.system.local_words
        self._local_ids: Any = self._deserialized(self.first())

    def first(self) -> States:
        """The first state of the network."""
        count, words = self.system.components, self.system.local_words
        return np.array(self.interned.machines[: count * words], dtype=np.int64).reshape(1, -1)

    def load(self, states: States) -> None:
        """Take the states that are to be expanded."""
        self.visited.count = 0
        self._local_ids = found = self._deserialized(states)
        shifted = self.interned.shifted[found]
        packed = np.zeros((len(states), self.layout.words), dtype=np.int64)
        for c, word in enumerate(self.layout.word):
            packed[:, word] += shifted[:, c]
        visited = self.visited
        visited.states, visited.parent = packed.ravel(), np.zeros(len(states), dtype=np.uint32)
        visited.parent_event = np.full(len(states), self.system.events, dtype=np.uint16)
        visited.count = self._end = len(states)
        self.expanded = self.transitions = 0

    def successors(self) -> Iterator[tuple[States, States]]:
        """The successors of the loaded states, some of them repeatedly, each with the index of its parent.

        Afterwards :attr:`transitions` is the number of transitions from them.
        """
        while self.expanded < self.found_states:
            _, self.expanded = self._expand_lanes()
            self.transitions += int(self.buffers.degree[: self.buffers.count[0]].sum())
            count = int(self.buffers.fill[0])
            into = np.empty(count * self.words, dtype=np.int64)
            compiled.serialize(self.system, self.layout, self.interned, self.buffers.states, count, into)
            yield into.reshape(count, self.words), self.buffers.parents[:count].astype(np.int64)
            if self._is_short:
                self._grow_local_states()

    def anomalies_among(self, among: int) -> Iterator[tuple[int, States]]:
        """The anomalies, of those whose bits are in ``among``, that loaded states show, with the first such state."""
        found = self._local_ids
        bits = np.bitwise_or.reduce(self.interned.head[found * self.system.head + ALWAYS], axis=1)
        resting = np.bitwise_or.reduce(self.interned.at_rest[found], axis=1) & among
        some = np.flatnonzero(resting)
        bits[some] |= np.where(self._quiescent(found[some]), resting[some], 0)
        for anomaly in range(len(self.packed.anomalies)):
            if among >> anomaly & 1:
                showing = np.flatnonzero(bits >> anomaly & 1)
                if len(showing):
                    yield anomaly, lexicographic_min(self._serialized(found[showing]))

    def _quiescent(self, found: Any) -> Any:
        quiet = np.ones(len(found), dtype=bool)
        for mask, must in enumerate(self.system.must):
            enabled = np.bitwise_and.reduce(self.interned.head[found * self.system.head + HEAD + mask], axis=1)
            quiet &= enabled & must == 0
        return quiet

    def _serialized(self, found: Any) -> States:
        local = self.interned.machines.reshape(-1, self.system.local_words)
        states: States = local[found].reshape(len(found), self.words)
        return states

    def _deserialized(self, states: States) -> Any:
        """The local states of the components of each state."""
        into = np.empty(len(states) * self.system.components, dtype=np.int64)
        flat, done = np.ascontiguousarray(states).ravel(), 0
        while True:
            done = int(compiled.deserialize(self.system, self.layout, self.interned, flat, done, into, self._machines))
            if done == len(states):
                return into.reshape(done, self.system.components)
            self._grow_local_states()


def event_between(packed: PackedNetwork, before: Sequence[int], after: Sequence[int]) -> int:
    """The first event that leads from one state to the other; there is one."""
    here, there = machine_states_of(packed, before), machine_states_of(packed, after)
    for event in range(len(packed.free)):
        moved = list(here)
        for p in range(packed.first[event], packed.first[event + 1]):
            moved[packed.instance[p]] = packed.table[packed.offset[p] + here[packed.instance[p]]]
        if moved == there:
            return event
    raise AssertionError((here, there))
