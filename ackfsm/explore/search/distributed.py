"""One step of an exploration that many processes share: states in, spelled out, and what they lead to out.

The states are those of :mod:`ackfsm.explore.search.kernel_serialize`: arrays of 64-bit integers, a row for each state.
Needs NumPy and Numba.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ackfsm.explore.search import compiled
from ackfsm.explore.search.kernel import ALWAYS, HEAD
from ackfsm.explore.search.layout import machines_in
from ackfsm.explore.search.search import Search
from ackfsm.network import Packed

__all__ = ["Expander", "StateSet", "States", "event_between", "least", "signatures"]

States: TypeAlias = npt.NDArray[np.int64]

_QUOTA = 1 << 13
"""States that are expanded at once: after one that needs a row that is missing, all are looked at in vain."""

_SLOT_SEED = 3


def signatures(states: States, seed: int) -> States:
    """A key of 31 bits for each state, the same in every process."""
    keys = np.empty(len(states), dtype=np.int64)
    compiled.signed(np.ascontiguousarray(states).ravel(), states.shape[1], seed, keys)
    return keys


def least(states: States) -> States:
    """The first of some states in the order of their words."""
    first: States = states[np.lexsort(states.T[::-1])[0]]
    return first


class StateSet:
    """Different states in the order in which they came; ``words`` is the length of one."""

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
        """Add those that are not there."""
        self._make_room(self._count + len(states))
        self._count = self._add(states, self._count)

    def places(self, states: States) -> States:
        """The place of each state, -1 for those that are not there."""
        into = np.empty(len(states), dtype=np.int64)
        flat, keys = np.ascontiguousarray(states).ravel(), signatures(states, _SLOT_SEED)
        compiled.sought(flat, keys, self._words, self._known, self._slots, into)
        return into

    def _add(self, states: States, count: int) -> int:
        flat, keys = np.ascontiguousarray(states).ravel(), signatures(states, _SLOT_SEED)
        return int(compiled.added(flat, keys, self._words, self._known, self._slots, count))

    def _make_room(self, wanted: int) -> None:
        if wanted * self._words > len(self._known):
            known = np.empty(2 * wanted * self._words, dtype=np.int64)
            known[: self._count * self._words] = self.states.ravel()
            self._known = known
        if 2 * wanted > len(self._slots):
            self._slots = np.full(1 << (4 * wanted).bit_length(), -1, dtype=np.int64)
            self._add(self.states.copy(), 0)


class Expander(Search):
    """Expands any states of a network, batch after batch; what it learns of local states it keeps."""

    def __init__(self, packed: Packed) -> None:
        super().__init__(packed, workers=1, compiled=True, every_step=True)
        self.words = self.system.components * self.system.local_words
        self._rows_of: Any = self._recognised(self.first())

    def first(self) -> States:
        """The first state of the network."""
        count, words = self.system.components, self.system.local_words
        return np.array(self.rows.local[: count * words], dtype=np.int64).reshape(1, -1)

    def load(self, states: States) -> None:
        """Take these states, which are to be expanded."""
        shard = self.shards[0]
        shard.tally[:] = 0
        self._rows_of = found = self._recognised(states)
        placed = self.rows.placed[found]
        packed = np.zeros((len(states), self.layout.words), dtype=np.int64)
        for c, word in enumerate(self.layout.word):
            packed[:, word] += placed[:, c]
        shard.states, shard.parent = packed.ravel(), np.zeros(len(states), dtype=np.uint32)
        shard.by = np.full(len(states), self.system.events, dtype=np.uint16)
        shard.tally[:] = (0, len(states), 0)

    def successors(self) -> Iterator[tuple[States, States]]:
        """What the loaded states lead to, some of it repeatedly, with the place of the state that it comes from.

        Afterwards :attr:`transitions` is the number of transitions from them.
        """
        shard = self.shards[0]
        while shard.expanded < shard.count:
            self._expand((0, min(shard.count, shard.head + _QUOTA)))
            count = int(self.boxes.fill[0])
            into = np.empty(count * self.words, dtype=np.int64)
            compiled.spelled(self.system, self.layout, self.rows, self.boxes.states, count, into)
            yield into.reshape(count, self.words), self.boxes.parents[:count].astype(np.int64)
            self.boxes.fill[0] = 0
            self._resolve()

    def marked(self, among: int) -> Iterator[tuple[int, States]]:
        """The anomalies, of those whose bits are in ``among``, that loaded states are; the first such state of each."""
        found = self._rows_of
        bits = np.bitwise_or.reduce(self.rows.head[found * self.system.head + ALWAYS], axis=1)
        resting = np.bitwise_or.reduce(self.rows.at_rest[found], axis=1) & among
        some = np.flatnonzero(resting)
        bits[some] |= np.where(self._at_rest(found[some]), resting[some], 0)
        for anomaly in range(len(self.packed.anomalies)):
            if among >> anomaly & 1:
                places = np.flatnonzero(bits >> anomaly & 1)
                if len(places):
                    yield anomaly, least(self._spelled_rows(found[places]))

    def _at_rest(self, found: Any) -> Any:
        quiet = np.ones(len(found), dtype=bool)
        for mask, must in enumerate(self.system.must):
            able = np.bitwise_and.reduce(self.rows.head[found * self.system.head + HEAD + mask], axis=1)
            quiet &= able & must == 0
        return quiet

    def _spelled_rows(self, found: Any) -> States:
        local = self.rows.local.reshape(-1, self.system.local_words)
        spelled: States = local[found].reshape(len(found), self.words)
        return spelled

    def _recognised(self, states: States) -> Any:
        """The rows of the components of each state."""
        into = np.empty(len(states) * self.system.components, dtype=np.int64)
        flat, done = np.ascontiguousarray(states).ravel(), 0
        while True:
            done = int(compiled.recognised(self.system, self.layout, self.rows, flat, done, into, self._local))
            if done == len(states):
                return into.reshape(done, self.system.components)
            self._grow_rows()


def event_between(packed: Packed, before: Sequence[int], after: Sequence[int]) -> int:
    """The first event that leads from one state to the other; there is one."""
    here, there = machines_in(packed, before), machines_in(packed, after)
    for event in range(len(packed.free)):
        moved = list(here)
        for p in range(packed.first[event], packed.first[event + 1]):
            moved[packed.who[p]] = packed.table[packed.where[p] + here[packed.who[p]]]
        if moved == there:
            return event
    raise AssertionError((here, there))
