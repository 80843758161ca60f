"""The memory of symbolic search: all decision diagrams together, the unique table and the cache, which grow."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from ackfsm.checking.explore.symbolic import kernel, kernel_count
from ackfsm.checking.explore.symbolic.kernel import (
    CACHE_ENTRY,
    DEPTH,
    DONE,
    FIRST_NODE,
    FRAME,
    MOST_NODES,
    NO_RESULT,
    NODE,
    NODES,
    PREIMAGE,
    PRUNE,
    REGISTERS,
    RESULT,
    SATURATE,
    TRUE,
    UNION,
    USED,
    EventSystem,
)
from ackfsm.checking.explore.symbolic.kernel_count import Diagram
from ackfsm.terms import DefectError

_STEPS = 1 << 22
"""Steps of the kernel between two looks at the progress, and at signals."""

_MOST_WORDS = (1 << 31) - 1
"""The number of a node has 31 bits."""

_FIRST_SLOTS = 1 << 10
_CACHE_OF_SLOTS = 4
"""Entries of the cache for each slot of the unique table."""


class LimitReached(Exception):  # noqa: N818 - it is no error: the search ends with what it knows
    """A limit does not allow one more node; its text names the limit."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ForestLimits:
    """How many nodes and bytes there may be; ``None``: no limit."""

    max_nodes: int | None = None
    max_memory: int | None = None


class Forest:
    """Sets of states of one system, each the number of a node; operations on them keep what they found."""

    def __init__(
        self,
        events: EventSystem,
        limits: ForestLimits,
        *,
        compiled: bool,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Nothing but the empty set and the set of the empty state."""
        self.compiled = compiled
        self.limits = limits
        self._progress = progress
        self._closed = True
        self._kernel: Any = _compiled_kernel() if compiled else kernel
        self.counting: Any = self._kernel if compiled else kernel_count
        self.events = events
        self.system = self._array(kernel.flat(events), "int64")
        self._pool = self._array([0] * (FIRST_NODE + 16 * (NODE + events.widest)), "int32")
        self._slots = self._array([0] * _FIRST_SLOTS, "int32")
        self._cache = self._array([0] * (_CACHE_OF_SLOTS * CACHE_ENTRY * _FIRST_SLOTS), "int32")
        self._stack = self._array([0] * ((events.levels + 2) * (FRAME + 2 * events.widest)), "int64")
        registers = [0] * REGISTERS
        registers[DEPTH], registers[RESULT], registers[USED] = DONE, NO_RESULT, FIRST_NODE
        self._registers = self._array(registers, "int64")
        self._set_most_nodes()

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return int(self._registers[NODES])

    @property
    def bytes(self) -> int:
        """The bytes of the pool, the unique table and the cache."""
        return _bytes_of(len(self._pool), len(self._slots))

    def saturated(self, state: Sequence[int]) -> int:
        """All states that are reached from one; ``state`` has the local state of each level from 1.

        A node that is known counts as saturated, so this comes before every operation but unions.
        """
        if not self._closed:
            raise DefectError("a set can be saturated only before there are sets that are not closed")
        below = TRUE
        for level, local in enumerate(state, start=1):
            kernel.begin(self.system, self._stack, 0, SATURATE, level, 0, 0, 0)
            kernel.seed(self.system, self._stack, 0, local, below)
            below = self._result()
        return below

    def union(self, a: int, b: int) -> int:
        """The states of either."""
        return (a or b) if a == b or not a or not b else self._operate(UNION, 0, min(a, b), max(a, b))

    def prune(self, event: int, a: int) -> int:
        """The states in which the event is refused."""
        return self._operate(PRUNE, event, a, 0) if a and self.events.levels >= self.events.bottom[event] else 0

    def preimage(self, event: int, a: int, within: int) -> int:
        """The states of ``within`` from which the event, which looks at something, leads into ``a``."""
        return self._operate(PREIMAGE, event, a, within) if a and within else 0

    def contains(self, a: int, state: Sequence[int]) -> bool:
        """Whether the set has the state, given as to :meth:`saturated`."""
        for local in reversed(state):
            if not a:
                return False
            a = int(self._pool[a + NODE + local])
        return bool(a)

    def diagram(self, a: int) -> Diagram:
        """The nodes of one set, which is not empty, by levels."""
        events, system, used = self.events, self.system, int(self._registers[USED])
        nodes = self._array([0], "int32", self.nodes)
        number = self._array([0], "int32", used)
        first = self._array([0] * (events.levels + 2), "int64")
        self.counting.list_nodes(system, self._pool, used, nodes)
        self.counting.number_nodes(system, self._pool, a, nodes, number, first)
        at = [0, 0]
        for level in range(1, events.levels + 1):
            at.append(at[-1] + int(first[level + 1] - first[level]) * events.size[level])
        diagram = Diagram(events.levels, first, self._array(at, "int64"), self._array([0], "int32", at[-1]))
        self.counting.copy_children(system, self._pool, nodes, number, diagram)
        return diagram

    def numbers(self, diagram: Diagram, limbs: int) -> Any:
        """A zero for each node."""
        return self._array([0], "int64", int(diagram.first[diagram.levels + 1]) * limbs)

    # the machine

    def _operate(self, operation: int, event: int, a: int, b: int) -> int:
        self._closed = self._closed and operation == UNION
        level = int(self._pool[a])
        kernel.begin(self.system, self._stack, 0, operation, level, event, a, b)
        return self._result()

    def _result(self) -> int:
        """Run the machine until the only frame is done."""
        self._registers[DEPTH], self._registers[RESULT] = 0, NO_RESULT
        while True:
            self._kernel.run(self.system, self._pool, self._slots, self._cache, self._stack, self._registers, _STEPS)
            if self._progress is not None:
                self._progress(self.nodes)
            if self._registers[DEPTH] == DONE:
                return int(self._registers[RESULT])
            self._grow()

    def _grow(self) -> None:
        """Get memory where it may not suffice for one more node.

        Raises :class:`LimitReached`.
        """
        registers, limits = self._registers, self.limits
        if limits.max_nodes is not None and self.nodes >= limits.max_nodes:
            raise LimitReached("max_nodes")
        full = registers[USED] + NODE + self.events.widest > len(self._pool)
        words = len(self._pool) * (2 if full else 1)
        slots = len(self._slots) * (2 if self.nodes >= len(self._slots) else 1)
        if (words, slots) != (len(self._pool), len(self._slots)):
            # while one of them is copied there are two of it
            needed = _bytes_of(words, slots) + max(_WORD * len(self._pool), _WORD * len(self._cache))
            if limits.max_memory is not None and needed > limits.max_memory:
                raise LimitReached("max_memory")
            if words > _MOST_WORDS:
                raise LimitReached("memory")
            try:
                self._enlarge(words, slots)
            except MemoryError:
                raise LimitReached("memory") from None
        self._set_most_nodes()

    def _set_most_nodes(self) -> None:
        self._registers[MOST_NODES] = min(len(self._slots), self.limits.max_nodes or len(self._slots))

    def _enlarge(self, words: int, slots: int) -> None:
        if words > len(self._pool):
            self._pool = self._array(self._pool, "int32", words)
        if slots > len(self._slots):
            self._slots = self._array([0], "int32", slots)
            self._kernel.rehash_nodes(self.system, self._pool, self._slots, int(self._registers[USED]))
            cache = self._array([0], "int32", slots * _CACHE_OF_SLOTS * CACHE_ENTRY)
            self._kernel.rehash_cache(self._cache, cache)
            self._cache = cache

    def _array(self, numbers: Any, kind: str, length: int = 0) -> Any:
        """``numbers`` as the kernel wants them, followed by zeros up to ``length``."""
        if not self.compiled:
            return [*numbers, *[0] * (length - len(numbers))]
        import numpy as np

        array = np.zeros(max(length, len(numbers)), dtype=kind)
        array[: len(numbers)] = numbers
        return array


_WORD = 4


def _bytes_of(words: int, slots: int) -> int:
    return _WORD * (words + slots + slots * _CACHE_OF_SLOTS * CACHE_ENTRY)


def _compiled_kernel() -> Any:
    from ackfsm.checking.explore.symbolic import compiled

    return compiled
