"""What events of a network lead to from many states at once.

A state is a row of numbers, one for each machine.  Each state of each machine has the set of the events that it does
not refuse; an event is enabled in a row if it is in the sets of all machines.  Of the events that are asked for only
those machines are looked at that take part in one of them, and only for what is enabled the next states are looked up:
of some hundred events a few are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import numpy.typing as npt

from ackfsm.checking.explore.search.encode import PackedNetwork
from ackfsm.history.arrays import Ints, Mask

Vectors = npt.NDArray[np.unsignedinteger]
"""States: a row each, a column for each machine, the numbers of the machines' states."""

_AT_ONCE = 1024
"""Rows that are looked at together, so that what is between takes some megabytes."""


class Successors:
    """Where the events of a network lead to."""

    def __init__(self, packed: PackedNetwork) -> None:
        self._first = np.asarray(packed.first)
        self._count = np.diff(self._first)
        self._instance = np.asarray(packed.instance)
        self._offset = np.asarray(packed.offset)
        self._table = np.asarray(packed.table)
        size = np.asarray(packed.size)
        self._base = np.cumsum(size) - size
        self._allowed = self._not_refused(size)
        self._asked: dict[frozenset[int], tuple[Ints, Ints, npt.NDArray[np.uint8]]] = {}
        self.initial: Vectors = np.asarray([packed.initial], np.min_scalar_type(size.max()))
        """The state in which the network begins, as one row."""

    def _not_refused(self, size: Ints) -> Mask:
        """For each state of each machine (the row) whether it does not refuse each event (the column)."""
        allowed = np.ones((size.sum(), len(self._count)), np.bool_)
        sizes = size[self._instance]
        refused = self._table[_ranges(self._offset, sizes)] < 0
        event = np.repeat(np.repeat(np.arange(len(self._count)), self._count), sizes)
        allowed[_ranges(self._base[self._instance], sizes)[refused], event[refused]] = False
        return allowed

    def _of_events(self, events: Collection[int]) -> tuple[Ints, Ints, npt.NDArray[np.uint8]]:
        """``events`` in order, the machines that take part in one, and which each state (the row) allows, as bits."""
        key = frozenset(events)
        if key not in self._asked:
            numbers = np.array(sorted(key), np.int64)
            parts = _ranges(self._first[numbers], self._count[numbers])
            bits = np.packbits(self._allowed[:, numbers], axis=1, bitorder="little")
            self._asked[key] = numbers, np.unique(self._instance[parts]), bits
        return self._asked[key]

    def enabled(self, rows: Vectors, events: Collection[int]) -> Mask:
        """Which of the ``events`` (columns, in the order of their numbers) are enabled in which of the ``rows``."""
        numbers, machines, bits = self._of_events(events)
        sets = bits.take((self._base[machines] + rows[:, machines]).T, axis=0)  # so that whole rows are put together
        both = np.bitwise_and.reduce(sets, axis=0)
        return np.unpackbits(both, axis=1, count=len(numbers), bitorder="little").view(np.bool_)

    def of(self, rows: Vectors, events: Collection[int]) -> Iterator[tuple[Ints, Vectors]]:
        """In parts, what ``events`` lead to from ``rows``: how many states from each row, and those, row by row."""
        numbers, *_ = self._of_events(events)
        for start in range(0, len(rows), _AT_ONCE):
            share = rows[start : start + _AT_ONCE]
            row, event = np.nonzero(self.enabled(share, events))
            yield np.bincount(row, minlength=len(share)), self._moved(share[row], numbers[event])

    def _moved(self, rows: Vectors, event: Ints) -> Vectors:
        """``rows`` after the enabled event of each, in their place."""
        count = self._count[event]
        which, part = np.repeat(np.arange(len(rows)), count), _ranges(self._first[event], count)
        instance = self._instance[part]
        rows[which, instance] = self._table[self._offset[part] + rows[which, instance]]
        return rows


def _ranges(begin: Ints, count: Ints) -> Ints:
    """The numbers of all ranges, each from its ``begin`` and so long, one range after the other."""
    before = np.cumsum(count) - count
    return np.repeat(begin - before, count) + np.arange(count.sum())
