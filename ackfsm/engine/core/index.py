"""Find the copies that a broadcast concerns: indexed by connection, queue and session, ordered by key."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from ackfsm.engine.core.model import Broadcast, IndexRelation

_SLACK = 64
"""An index may keep this many keys of copies that have left before it is sorted again."""


class _Keyed(Protocol):
    @property
    def key(self) -> int: ...

    @property
    def place(self) -> int: ...


_Member = TypeVar("_Member", bound=_Keyed)


class CopyIndex(Generic[_Member]):
    """The copies that react to one broadcast.

    Their keys are sorted when the order is first needed; until then ``ordered`` is ``None`` and ``members`` may be
    changed directly.  Most copies come in order; the few that come back (a redelivery) go into a heap.  The key of a
    copy that has left is dropped when it comes to the front.
    """

    __slots__ = ("_out_of_order", "members", "ordered")

    def __init__(self) -> None:
        self.members: dict[int, _Member] = {}
        self.ordered: deque[int] | None = None
        self._out_of_order: list[int] = []

    def add(self, copy: _Member) -> None:
        """Index ``copy``."""
        key, ordered = copy.key, self.ordered
        if ordered is not None:
            if ordered and ordered[-1] >= key:
                heapq.heappush(self._out_of_order, key)
            else:
                ordered.append(key)
        self.members[key] = copy

    def remove(self, copy: _Member) -> None:
        """Take ``copy`` out."""
        members = self.members
        del members[copy.key]
        ordered = self.ordered
        if ordered is None:
            return
        if not members:
            ordered.clear()
            self._out_of_order.clear()
        elif len(ordered) + len(self._out_of_order) > _SLACK + 2 * len(members):
            self.ordered = None  # few of them are still here

    def _sorted(self) -> deque[int]:
        """Return the keys, ascending; the first one is present."""
        members, ordered = self.members, self.ordered
        if ordered is None:
            ordered = self.ordered = deque(sorted(members))
            self._out_of_order.clear()
        while ordered and ordered[0] not in members:
            ordered.popleft()
        return ordered

    def first(self) -> _Member | None:
        """The copy with the smallest key."""
        members, ordered = self.members, self.ordered
        if len(members) <= 1:
            return next(iter(members.values()), None)
        if ordered and not self._out_of_order and (found := members.get(ordered[0])) is not None:
            return found
        ordered, late = self._sorted(), self._out_of_order
        while late and late[0] not in members:
            heapq.heappop(late)
        if not ordered:
            return members[late[0]]
        return members[min(ordered[0], late[0]) if late else ordered[0]]

    def _last(self) -> int:
        """The largest key; the index must not be empty."""
        members, ordered = self.members, self._sorted()
        while ordered and ordered[-1] not in members:
            ordered.pop()
        late = max((key for key in self._out_of_order if key in members), default=0)
        return max(ordered[-1], late) if ordered else late

    def smallest(self, count: int | None) -> list[_Member]:
        """The first ``count`` copies, all if it is ``None``."""
        members, ordered = self.members, self._sorted()
        if self._out_of_order or count is None:
            keys = sorted(members) if count is None else heapq.nsmallest(count, members)
        else:
            keys = list(itertools.islice((key for key in ordered if key in members), count))
        return [members[key] for key in keys]

    def receivers(self, copy: _Member, broadcast: Broadcast) -> Iterator[_Member]:
        """The copies that react when ``copy`` sends ``broadcast``: for ``LATER`` those before it."""
        if broadcast.by_delivery:
            later = broadcast.relation is IndexRelation.LATER
            others = (self.members[key] for key in sorted(self.members) if key != copy.key)
            yield from (other for other in others if _is_before(other, copy) is later)
            return
        if self.has_receiver(copy.key, later=broadcast.relation is IndexRelation.LATER, shift=broadcast.key_shift):
            shift, later = broadcast.key_shift, broadcast.relation is IndexRelation.LATER
            mine = copy.key >> shift
            for key in sorted(self.members):
                if (key >> shift) < mine if later else (key >> shift) > mine:
                    yield self.members[key]

    def has_receiver(self, key: int, *, later: bool, shift: int) -> bool:
        """Whether a copy is before ``key`` (``later``) or behind it, by the bits above ``shift``."""
        members = self.members
        if not members or (len(members) == 1 and key in members):
            return False
        if later:
            first = self.first()
            return first is not None and first.key >> shift < key >> shift
        return self._last() >> shift > key >> shift


def _is_before(one: _Keyed, other: _Keyed) -> bool:
    """Return whether ``one`` comes first in the order of delivery: the order of sending, but for redeliveries."""
    return (one.place or one.key << PLACE_BITS) < (other.place or other.key << PLACE_BITS)


PLACE_BITS = 40
"""Bits of a place that count what came again behind the copy with the same key."""


class IndexScope(Generic[_Member]):
    """A connection, a queue, a session or the broker: an index of copies for each broadcast."""

    __slots__ = ("indexes",)

    def __init__(self, broadcasts: int) -> None:
        self.indexes: list[CopyIndex[_Member] | None] = [None] * broadcasts

    def index(self, broadcast: Broadcast) -> CopyIndex[_Member]:
        """The copies that react to ``broadcast`` here."""
        found = self.indexes[broadcast.number]
        if found is None:
            found = self.indexes[broadcast.number] = CopyIndex()
        return found
