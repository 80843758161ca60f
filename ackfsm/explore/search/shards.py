"""Room for the kernel's numbers: lists for plain Python, arrays for compiled code; it grows with what is found."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

from ackfsm.explore.search import kernel
from ackfsm.explore.search.kernel import EMPTY, Boxes, Desk, Layout, Rows, System

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Room", "Shard", "boxes_for", "desk_for", "pages"]

_KINDS = {
    "moves": "uint32",
    "mover": "uint32",
    "position": "uint32",
    "base": "uint32",
    "row": "uint32",
    "pair": "uint32",
    "word": "uint32",
    "shift": "uint32",
    "mask": "uint32",
    "place": "uint32",
    "nth": "uint16",
    "component": "int32",
    "number": "int32",
    "row_of": "uint32",
    "after": "int32",
    "slots": "int32",
    "parent": "uint32",
    "parents": "uint32",
    "by": "uint16",
    "rank": "int32",
}
"""Types of those arrays that are not of 64-bit integers."""

_LIST_BYTES = 36
"""What a number in a list takes: its place and, for most, an object."""


_MOST_PAIRS = 1 << 16
"""States and events of them that a desk has room for."""

_LARGE = 1 << 21
"""Bytes of a large page."""


class Room:
    """Makes and fills what the kernel works on; :meth:`compiled` turns lists to arrays."""

    def __init__(self) -> None:
        self.kernel: Any = kernel
        self.is_compiled = False

    def load(self) -> None:
        """Take the compiled kernel from now on."""
        from ackfsm.explore.search import compiled

        self.kernel, self.is_compiled = compiled, True

    def of(self, numbers: Any, name: str = "") -> Any:
        """``numbers`` in the present form, in that of the field ``name``."""
        return self.kernel.array(numbers, _KINDS.get(name, "int64")) if self.is_compiled else numbers

    def all_of(self, fields: Any) -> Any:
        """A named tuple of the kernel, every list in it in the present form."""
        return type(fields)(*(self._of_one(value, name) for name, value in fields._asdict().items()))

    def _of_one(self, value: Any, name: str) -> Any:
        if hasattr(value, "_fields"):
            return self.all_of(value)
        return value if isinstance(value, int) else self.of(value, name)

    def grown(self, numbers: Any, length: int, fill: int, name: str = "") -> Any:
        """``numbers``, and ``fill`` up to ``length``."""
        if not self.is_compiled:
            return [*numbers, *[fill] * (length - len(numbers))]
        import numpy as np

        grown = _fresh(length, np.dtype(_KINDS.get(name, "int64")))
        grown[: len(numbers)] = numbers
        if fill:
            grown[len(numbers) :] = fill
        return grown

    def joined(self, parts: list[Any]) -> Any:
        """``parts`` one after the other; a single array is not copied."""
        if not self.is_compiled:
            return [number for part in parts for number in part]
        import numpy as np

        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def bytes_of(self, numbers: Any) -> int:
        """What ``numbers`` take."""
        return int(numbers.nbytes) if self.is_compiled else _LIST_BYTES * len(numbers)


def _fresh(length: int, kind: np.dtype[Any]) -> Any:
    """Zeros; large ones on large pages where the system has them, since they are looked up at random.

    Raises :class:`MemoryError` where there is no room for them.
    """
    import numpy as np

    size = length * kind.itemsize
    if size < _LARGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros(length, dtype=kind)
    large = pages(-(-size // _LARGE) * _LARGE)
    large.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(large, dtype=kind, count=length)


def pages(size: int) -> mmap.mmap:
    """Memory of this process alone that takes none before it is touched.

    Raises :class:`MemoryError` where there is no room for it.
    """
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{size:,} bytes ({error.strerror})") from error


class Shard:
    """The states of one shard, as they were found; those before ``head`` are expanded, but for some that are late."""

    def __init__(self, anomalies: int, waiting: int) -> None:
        """No state; room for so many steps that are ``wanted``, for so many states that wait for them."""
        self.states: Any = []
        self.parent: Any = []
        self.by: Any = []
        self.table: Any = []
        self.tally: Any = [0, 0, 0]
        self.wanted: Any = [0] * (2 * waiting + 1)
        self.late: Any = [0] * (waiting + 1)
        self.found: Any = [EMPTY] * anomalies

    @property
    def expanded(self) -> int:
        return self.head - int(self.late[0])

    @property
    def head(self) -> int:
        """The first state that was not looked at."""
        return int(self.tally[kernel.EXPANDED])

    @property
    def count(self) -> int:
        return int(self.tally[kernel.FOUND])

    def convert(self, room: Room) -> None:
        """Bring everything into the form that ``room`` has now."""
        for name in ("states", "parent", "by", "table", "tally", "found", "wanted", "late"):
            setattr(self, name, room.of(getattr(self, name), name))

    def places(self, words: int) -> int:
        """The places of the table."""
        return len(self.table) // words

    def needs(self, more: int, words: int) -> tuple[int, int]:
        """States and places of the table that there must be room for before ``more`` states come."""
        wanted = self.count + more
        states, places = len(self.parent), self.places(words)
        while states < wanted:
            states = max(64, states + states // 2)
        while 4 * wanted > 3 * places:
            places = max(128, 2 * places)
        return states, places

    def growth(self, more: int, words: int, room: Room) -> int:
        """How many bytes :meth:`grow` would add."""
        states, places = self.needs(more, words)
        wide = (8 * words + 6, 8 * words) if room.is_compiled else (_LIST_BYTES * (words + 2), _LIST_BYTES * words)
        return (states - len(self.parent)) * wide[0] + (places - self.places(words)) * wide[1]

    def grow(self, more: int, system: System, layout: Layout, rows: Rows, room: Room) -> None:
        """Make room for ``more`` states."""
        words = layout.words
        states, places = self.needs(more, words)
        if states > len(self.parent):
            self.states = room.grown(self.states, states * words, 0)
            self.parent = room.grown(self.parent, states, 0, "parent")
            self.by = room.grown(self.by, states, 0, "by")
        if places > self.places(words):
            self.enter(places, system, layout, rows, room)

    def enter(self, places: int, system: System, layout: Layout, rows: Rows, room: Room) -> None:
        """Make a table of so many places, and enter all states."""
        self.table = room.grown([], places * layout.words, EMPTY)
        room.kernel.rehash(system, layout, rows, self.states, self.count, self.table)

    def bytes(self, room: Room) -> int:
        """What the states take."""
        return sum(room.bytes_of(numbers) for numbers in (self.states, self.parent, self.by, self.table))


def boxes_for(room: Room, shards: int, capacity: int, words: int) -> Boxes:
    """Empty boxes."""
    places = shards * shards * capacity
    sizes = {"states": places * words, "keys": places, "parents": places, "by": places, "fill": shards * shards}
    return Boxes(shards, capacity, **{name: room.grown([], size, 0, name) for name, size in sizes.items()})


def desk_for(room: Room, system: System, layout: Layout, block: int) -> Desk:
    """A desk for one shard: room for a ``block`` of states, or fewer where each may have very many steps."""
    block = min(block, max(1, _MOST_PAIRS // max(1, system.events)))
    pairs = block * system.events
    of_components = dict.fromkeys(("row", "base", "nth"), block * system.components)
    of_pairs = {"pair": pairs, "after": pairs, "child": pairs * layout.words, "order": pairs}
    others = {"able": block * system.masks, "fill": system.components + 1, "local": system.local_words}
    sizes = of_components | of_pairs | others
    return Desk(**{name: room.grown([], sizes.get(name, block), 0) for name in Desk._fields})
