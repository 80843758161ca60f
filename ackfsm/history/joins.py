"""Time-ordered joins of rows: the last one before, the first one that covers, pairs as numbers.

A *place* is a row of :class:`ackfsm.verify.Events`, so it is also a moment; a *group* is a small
integer (a session, a message, a transaction).  Everything sorts once and then bisects.
"""

from __future__ import annotations

import numpy as np

from ackfsm.history.arrays import Codes, Ints, Mask

NONE = -1

NEVER = np.iinfo(np.int64).max
"""The row, or the time, of what does not happen."""


def first_covering(group: Codes, place: Ints, cover_group: Codes, cover_cut: Ints) -> Ints:
    """For each member the first cover of its group that reaches it, :data:`NONE` where there is none.

    A cover reaches the members of its group whose place is below its cut.  The covers of a group
    are tried in the order in which they are given; the answer is an index into them.  A member of
    group -1 has none.
    """
    width = _width(place, cover_cut)
    order = np.argsort(cover_group, kind="stable")
    groups = cover_group[order].astype(np.int64)
    reached = np.maximum.accumulate(groups * width + cover_cut[order])
    found = np.searchsorted(reached, group * width + place, side="right")
    return _if_same(group, groups, found, order)


def last_before(group: Codes, place: Ints, member_group: Codes, member_place: Ints) -> Ints:
    """For each ``(group, place)`` the last member of that group before that place, else :data:`NONE`.

    The members are given in the order of their places; the answer is an index into them.
    """
    width = _width(place, member_place)
    order = np.argsort(member_group, kind="stable")
    groups = member_group[order].astype(np.int64)
    found = np.searchsorted(groups * width + member_place[order], group * width + place, side="left") - 1
    return _if_same(group, groups, found, order)


def at(values: Ints, index: Ints, otherwise: Ints | int) -> Ints:
    """``values[index]``, and ``otherwise`` where the index is :data:`NONE`."""
    found = index != NONE
    result = np.broadcast_to(np.asarray(otherwise, np.int64), index.shape).copy()
    result[found] = values[index[found]]
    return result


def number_pairs(left: Codes, right: Codes) -> Ints:
    """One number for each distinct pair (entries from -1 on), from 0 without gaps."""
    width = np.int64(right.max(initial=NONE)) + 2
    numbers: Ints = np.unique((left + np.int64(1)) * width + (right + 1), return_inverse=True)[1]
    return numbers


def distinct_pairs(left: Codes, right: Codes) -> tuple[Ints, Ints, Ints]:
    """The distinct pairs, ascending, and the index of the last occurrence of each."""
    width = np.int64(right.max(initial=0)) + 1
    keys, index = np.unique((left * width + right)[::-1], return_index=True)
    return keys // width, keys % width, len(left) - 1 - index


def members_of(message: Ints, its: Ints) -> tuple[Ints, Ints]:
    """All places where ``message``, which is ascending, has one of ``its``: the number of that one, and the places."""
    return spans_of(*(np.searchsorted(message, its, side=side) for side in ("left", "right")))


def spans_of(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """All places of the spans from each ``begin`` to before each ``end``: the number of the span, and the place."""
    length = np.maximum(end - begin, 0)
    start = np.cumsum(length) - length
    return np.repeat(np.arange(len(begin)), length), np.arange(length.sum()) + np.repeat(begin - start, length)


class Pairs:
    """Distinct pairs of one number and another; either may be -1."""

    def __init__(self, one: Codes, other: Codes) -> None:
        self._width = np.int64(other.max(initial=0)) + 2
        pairs = np.sort(self._as_one(one, other))
        self._pairs: Ints = pairs[np.diff(pairs, prepend=-NEVER) != 0]
        self.one: Ints = self._pairs // self._width
        """The first number of each pair, ascending."""
        self.other: Ints = self._pairs % self._width - 1
        """The other number of each."""

    def _as_one(self, one: Codes, other: Codes) -> Ints:
        return np.asarray(one * self._width + (other + 1))

    def of(self, ones: Ints) -> tuple[Ints, Ints]:
        """The pairs of ``ones``: the place there, and the other."""
        which, place = members_of(self.one, ones)
        return which, self.other[place]

    def count(self, ones: Ints) -> Ints:
        """How many pairs each of ``ones`` makes."""
        begin, end = (np.searchsorted(self.one, ones, side=side) for side in ("left", "right"))
        return np.asarray(end - begin, np.int64)

    def hold(self, ones: Ints, others: Ints) -> Mask:
        """For each of ``ones`` whether it makes a pair with its neighbour in ``others``."""
        asked = self._as_one(ones, others)
        found = np.append(self._pairs, -NEVER)[np.searchsorted(self._pairs, asked)]
        return np.asarray((found == asked) & (others + 1 < self._width))


def _width(*places: Ints) -> np.int64:
    return np.int64(max(each.max(initial=0) for each in places)) + 2


def _if_same(group: Codes, groups: Ints, found: Ints, order: Ints) -> Ints:
    """``order[found]`` where that is a row of the wanted group."""
    result = np.full(len(group), NONE, np.int64)
    inside = np.flatnonzero((found >= 0) & (found < len(groups)))
    same = inside[groups[found[inside]] == group[inside]]
    result[same] = order[found[same]]
    return result
