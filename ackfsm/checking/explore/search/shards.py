"""Memory of a search: lists for plain Python, arrays for compiled code, and the visited states of each shard."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

from ackfsm.checking.explore.search import kernel
from ackfsm.checking.explore.search.kernel import EMPTY, EncodedSystem, Layout, LocalStates, Scratch, SuccessorBuffers

if TYPE_CHECKING:
    import numpy as np

_KINDS = {
    "moves": "uint32",
    "mover": "uint32",
    "lowest_bit": "uint32",
    "word": "uint32",
    "shift": "uint32",
    "mask": "uint32",
    "ordinal": "uint32",
    "nth": "uint16",
    "component": "int32",
    "number": "int32",
    "id_of": "uint32",
    "after": "int32",
    "slots": "int32",
    "parent": "uint32",
    "parents": "uint32",
    "parent_event": "uint16",
    "lowlink": "int32",
}
"""Types of those arrays that are not of 64-bit integers."""

_LIST_BYTES = 36
"""What a number in a list takes: a pointer and, for most, an object."""


_MOST_PAIRS = 1 << 16
"""Pairs of a state and an event in a scratch at most."""

_LARGE = 1 << 21
"""Bytes of a large page."""


class Arrays:
    """The maker of the kernel's arrays: lists, and arrays once :meth:`load` has loaded compiled code."""

    def __init__(self) -> None:
        self.kernel: Any = kernel
        self.is_compiled = False

    def load(self) -> None:
        """Use the compiled kernel from now on."""
        from ackfsm.checking.explore.search import compiled

        self.kernel, self.is_compiled = compiled, True

    def of(self, numbers: Any, name: str = "") -> Any:
        """``numbers`` in the present form, with the type of the field ``name``."""
        return self.kernel.array(numbers, _KINDS.get(name, "int64")) if self.is_compiled else numbers

    def all_of(self, fields: Any) -> Any:
        """A named tuple of the kernel, every list in it in the present form."""
        return type(fields)(*(self._of_one(value, name) for name, value in fields._asdict().items()))

    def _of_one(self, value: Any, name: str) -> Any:
        if hasattr(value, "_fields"):
            return self.all_of(value)
        return value if isinstance(value, int) else self.of(value, name)

    def grown(self, numbers: Any, length: int, fill: int, name: str = "") -> Any:
        """``numbers``, followed by ``fill`` up to ``length``."""
        if not self.is_compiled:
            return [*numbers, *[fill] * (length - len(numbers))]
        import numpy as np

        grown = _fresh(length, np.dtype(_KINDS.get(name, "int64")))
        grown[: len(numbers)] = numbers
        if fill:
            grown[len(numbers) :] = fill
        return grown

    def joined(self, parts: list[Any]) -> Any:
        """The concatenated ``parts``; a single array is not copied."""
        if not self.is_compiled:
            return [number for part in parts for number in part]
        import numpy as np

        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def bytes_of(self, numbers: Any) -> int:
        """The bytes of ``numbers``."""
        return int(numbers.nbytes) if self.is_compiled else _LIST_BYTES * len(numbers)


def _fresh(length: int, kind: np.dtype[Any]) -> Any:
    """Zeros; large ones on large pages where the system has them, since they are looked up at random.

    Raises :class:`MemoryError` where there is no room for them.
    """
    import numpy as np

    size = length * kind.itemsize
    if size < _LARGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros(length, dtype=kind)
    large = map_pages(-(-size // _LARGE) * _LARGE)
    large.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(large, dtype=kind, count=length)


def map_pages(size: int) -> mmap.mmap:
    """Memory of this process alone that takes none before it is touched.

    Raises :class:`MemoryError` where there is no room for it.
    """
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{size:,} bytes ({error.strerror})") from error


class VisitedShard:
    """The visited states of one shard, as they were found; those before ``head`` are expanded, except deferred ones."""

    def __init__(self, anomalies: int, deferrable: int) -> None:
        """No state; so many successors can be requested, and so many states be deferred, at a time."""
        self.states: Any = []
        self.parent: Any = []
        self.parent_event: Any = []
        self.table: Any = []
        self.tally: Any = [0, 0, 0]
        self.requested: Any = [0] * (2 * deferrable + 1)
        self.deferred: Any = [0] * (deferrable + 1)
        self.violations: Any = [EMPTY] * anomalies

    @property
    def expanded(self) -> int:
        """How many states are expanded."""
        return self.head - int(self.deferred[0])

    @property
    def head(self) -> int:
        """The first state that was neither expanded nor deferred."""
        return int(self.tally[kernel.EXPANDED])

    @property
    def count(self) -> int:
        """How many states are visited."""
        return int(self.tally[kernel.FOUND])

    def convert(self, arrays: Arrays) -> None:
        """Bring everything into the present form of ``arrays``."""
        for name in ("states", "parent", "parent_event", "table", "tally", "violations", "requested", "deferred"):
            setattr(self, name, arrays.of(getattr(self, name), name))

    def slots(self, words: int) -> int:
        """The slots of the hash table."""
        return len(self.table) // words

    def needs(self, more: int, words: int) -> tuple[int, int]:
        """The states and slots that there must be memory for before ``more`` states come."""
        count = self.count + more
        states, slots = len(self.parent), self.slots(words)
        while states < count:
            states = max(64, states + states // 2)
        while 4 * count > 3 * slots:
            slots = max(128, 2 * slots)
        return states, slots

    def growth(self, more: int, words: int, arrays: Arrays) -> int:
        """How many bytes :meth:`grow` would add."""
        states, slots = self.needs(more, words)
        wide = (8 * words + 6, 8 * words) if arrays.is_compiled else (_LIST_BYTES * (words + 2), _LIST_BYTES * words)
        return (states - len(self.parent)) * wide[0] + (slots - self.slots(words)) * wide[1]

    def grow(self, more: int, words: int, arrays: Arrays) -> Any:
        """Get memory for ``more`` states; return an empty hash table for all if the present one is too small."""
        states, slots = self.needs(more, words)
        if states > len(self.parent):
            self.states = arrays.grown(self.states, states * words, 0)
            self.parent = arrays.grown(self.parent, states, 0, "parent")
            self.parent_event = arrays.grown(self.parent_event, states, 0, "parent_event")
        return arrays.grown([], slots * words, EMPTY) if slots > self.slots(words) else None

    def rehash(self, slots: int, system: EncodedSystem, layout: Layout, interned: LocalStates, arrays: Arrays) -> None:
        """Make a hash table of so many slots, and insert all states."""
        self.insert_all(arrays.grown([], slots * layout.words, EMPTY), system, layout, interned, arrays)

    def insert_all(
        self, table: Any, system: EncodedSystem, layout: Layout, interned: LocalStates, arrays: Arrays
    ) -> None:
        """Insert all states into ``table``, which is empty, and is the hash table from now on."""
        self.table = table
        arrays.kernel.rehash_visited(system, layout, interned, self.states, self.count, self.table)

    def bytes(self, arrays: Arrays) -> int:
        """The bytes of the states, their parent pointers and their hash table."""
        return sum(arrays.bytes_of(numbers) for numbers in (self.states, self.parent, self.parent_event, self.table))


def make_buffers(arrays: Arrays, shards: int, capacity: int, words: int) -> SuccessorBuffers:
    """Empty buffers."""
    total = shards * shards * capacity
    sizes = {"states": total * words, "fill": shards * shards}
    names = SuccessorBuffers._fields[2:]
    return SuccessorBuffers(
        shards, capacity, **{name: arrays.grown([], sizes.get(name, total), 0, name) for name in names}
    )


def make_scratch(arrays: Arrays, system: EncodedSystem, layout: Layout, block: int) -> Scratch:
    """The scratch of one shard, for a ``block`` of states, or fewer if they may have very many events."""
    block = min(block, max(1, _MOST_PAIRS // max(1, system.events)))
    pairs = block * system.events
    of_components = dict.fromkeys(("head", "base", "nth"), block * system.components)
    of_pairs = {"pair": pairs, "after": pairs, "child": pairs * layout.words, "order": pairs}
    others = {"enabled": block * system.masks, "fill": system.components + 1, "machines": system.local_words}
    sizes = of_components | of_pairs | others
    return Scratch(**{name: arrays.grown([], sizes.get(name, block), 0) for name in Scratch._fields})
