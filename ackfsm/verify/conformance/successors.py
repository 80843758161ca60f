"""What events of a network lead to from many states at once.

A state is a row of numbers, one for each machine.  Each state of each machine has the set of the events that it does
not refuse, as bits; an event is enabled in a row if it is in the sets of all machines.  Only for what is enabled the
next states are looked up: of some hundred events a few are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import numpy.typing as npt

from ackfsm.explore import PackedNetwork
from ackfsm.history.arrays import Ints, Mask

__all__ = ["Successors", "Vectors"]

Vectors = npt.NDArray[np.unsignedinteger]
"""States: a row each, a column for each machine, the numbers of the machines' states."""

_WORD = 64
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
        self._width = -len(self._count) % _WORD + len(self._count)
        self._allowed = self._not_refused(size)
        self.initial: Vectors = np.asarray([packed.initial], np.min_scalar_type(size.max()))
        """The state in which the network begins, as one row."""

    def _not_refused(self, size: Ints) -> npt.NDArray[np.uint64]:
        """For each state of each machine (the row) the events that it does not refuse, 64 of them to a word."""
        allowed = np.ones((size.sum(), self._width), np.bool_)
        sizes = size[self._instance]
        refused = self._table[_ranges(self._offset, sizes)] < 0
        event = np.repeat(np.repeat(np.arange(len(self._count)), self._count), sizes)
        allowed[_ranges(self._base[self._instance], sizes)[refused], event[refused]] = False
        return _words(allowed)

    def enabled(self, rows: Vectors, events: Collection[int]) -> Mask:
        """Which events (columns) are enabled in which of the ``rows``: of those in ``events``."""
        chosen = np.zeros((1, self._width), np.bool_)
        chosen[0, list(events)] = True
        sets = self._allowed.take((self._base + rows).T, axis=0)  # by machine, so that whole rows are put together
        words = np.bitwise_and.reduce(sets, axis=0) & _words(chosen)
        return np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").view(np.bool_)

    def of(self, rows: Vectors, events: Collection[int]) -> Iterator[tuple[Ints, Vectors]]:
        """In parts, what ``events`` lead to from ``rows``: how many states from each row, and those, row by row."""
        for start in range(0, len(rows), _AT_ONCE):
            share = rows[start : start + _AT_ONCE]
            row, event = np.divmod(np.flatnonzero(self.enabled(share, events)), self._width)
            yield np.bincount(row, minlength=len(share)), self._moved(share[row], event)

    def _moved(self, rows: Vectors, event: Ints) -> Vectors:
        """``rows`` after the enabled event of each, in their place."""
        count = self._count[event]
        which, part = np.repeat(np.arange(len(rows)), count), _ranges(self._first[event], count)
        instance = self._instance[part]
        rows[which, instance] = self._table[self._offset[part] + rows[which, instance]]
        return rows


def _words(bits: Mask) -> npt.NDArray[np.uint64]:
    """Each row of ``bits`` as words."""
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)


def _ranges(begin: Ints, count: Ints) -> Ints:
    """The numbers of all ranges, each from its ``begin`` and so long, one range after the other."""
    before = np.cumsum(count) - count
    return np.repeat(begin - before, count) + np.arange(count.sum())
