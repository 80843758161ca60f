"""Memory of a search: lists for plain Python, arrays for compiled code, and the visited states."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ackfsm.checking.explore.search import kernel
from ackfsm.checking.explore.search.kernel import EMPTY, LINE, EncodedSystem, Layout, Scratch, SuccessorBuffers

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
    "fresh": "uint8",
    "lowlink": "int32",
}
"""Types of those arrays that are not of 64-bit integers."""

_LIST_BYTES = 36
"""What a number in a list takes: a pointer and, for most, an object."""


_MOST_PAIRS = 1 << 16
"""Pairs of a state and an event in a scratch at most."""

_LARGE = 1 << 21
"""Bytes of a large page."""

_FEW_SLOTS = 1 << 17
"""A hash table of fewer slots grows by four: its states are moved more rarely, and it is small yet."""


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


class Visited:
    """The visited states in their queue, and the shards of their hash table."""

    def __init__(self) -> None:
        self.states: Any = []
        self.parent: Any = []
        self.parent_event: Any = []
        self.tables: list[Any] = [[]]
        self.in_table = [0]
        self.count = 0
        """How many states there are; ``in_table`` has how many of them stand in each shard."""

    def convert(self, words: int, arrays: Arrays) -> None:
        """Bring everything into the present form of ``arrays``."""
        for name in ("states", "parent", "parent_event"):
            setattr(self, name, arrays.of(getattr(self, name), name))
        self.rehash(words, arrays)

    def states_for(self, more: int) -> int:
        """The states that there must be memory for before ``more`` come."""
        states = len(self.parent)
        while states < self.count + more:
            states = max(64, states + states // 2)
        return states

    def slots_for(self, shard: int, more: int, words: int) -> int:
        """The slots that a shard must have before ``more`` states come into it."""
        return _slots(len(self.tables[shard]) // words, self.in_table[shard] + more)

    def growth(self, more: int, of_shard: Sequence[int], words: int, arrays: Arrays) -> int:
        """How many bytes are added before ``more`` states come, so many of each shard."""
        states = self.states_for(more) - len(self.parent)
        slots = sum(self.slots_for(shard, some, words) for shard, some in enumerate(of_shard))
        slots -= sum(map(len, self.tables)) // words
        wide = (8 * words + 6, 8 * words) if arrays.is_compiled else (_LIST_BYTES * (words + 2), _LIST_BYTES * words)
        return states * wide[0] + slots * wide[1]

    def grow(self, more: int, words: int, arrays: Arrays) -> None:
        """Get memory for ``more`` states."""
        states = self.states_for(more)
        if states > len(self.parent):
            self.states = arrays.grown(self.states, states * words, 0)
            self.parent = arrays.grown(self.parent, states, 0, "parent")
            self.parent_event = arrays.grown(self.parent_event, states, 0, "parent_event")

    def larger_table(self, shard: int, more: int, words: int, arrays: Arrays) -> Any:
        """An empty hash table for a shard into which ``more`` states come; ``None`` if the present one will do."""
        slots = self.slots_for(shard, more, words)
        return arrays.grown([], slots * words, EMPTY) if slots * words > len(self.tables[shard]) else None

    def replace_table(self, shard: int, table: Any, words: int, arrays: Arrays) -> None:
        """Move the states of a shard into ``table``, which is empty.

        States of neighbouring slots go to neighbouring slots, so that memory is read and written in sequence.
        """
        old = self.tables[shard]
        arrays.kernel.rehash_visited(words, old, len(old) // words, len(self.tables), shard, table)
        self.tables[shard] = table

    def rehash(self, words: int, arrays: Arrays) -> None:
        """Make the hash table anew, of the states as they are now."""
        self.tables, self.in_table = self.tables_of(len(self.tables), words, arrays)

    def tables_of(self, shards: int, words: int, arrays: Arrays) -> tuple[list[Any], list[int]]:
        """The hash table of the states in so many shards, a power of two, and how many states stand in each."""
        kernel, counts = arrays.kernel, arrays.of([0] * shards)
        kernel.count_in_shards(words, self.states, self.count, shards, counts)
        tables = [arrays.grown([], _slots(0, int(count)) * words, EMPTY) for count in counts]
        for shard, table in enumerate(tables):
            kernel.rehash_visited(words, self.states, self.count, shards, shard, table)
        return tables, [int(count) for count in counts]

    def bytes(self, arrays: Arrays) -> int:
        """The bytes of the states, their parent pointers and their hash table."""
        return sum(arrays.bytes_of(numbers) for numbers in (self.states, self.parent, self.parent_event, *self.tables))


def _slots(slots: int, count: int) -> int:
    """The slots of a hash table that has ``slots`` and gets so many states."""
    while 4 * count > 3 * slots:
        slots = max(128, (4 if slots < _FEW_SLOTS else 2) * slots)
    return slots


def make_buffers(  # noqa: PLR0913, PLR0917 - the sizes of all
    arrays: Arrays, lanes: int, shards: int, chunk: int, capacity: int, words: int
) -> SuccessorBuffers:
    """Empty buffers of so many lanes, each for a ``chunk`` of states with so many successors together."""
    pieces = 2 * chunk + 2
    sizes = {"states": lanes * capacity * words} | dict.fromkeys(("fill", "count", "late", "of_shard"), lanes * LINE)
    sizes |= dict.fromkeys(("first", "end", "degree", "waiting"), lanes * pieces)
    sizes["new"] = lanes * shards
    names = SuccessorBuffers._fields[3:]
    return SuccessorBuffers(
        shards,
        capacity,
        pieces,
        **{name: arrays.grown([], sizes.get(name, lanes * capacity), 0, name) for name in names},
    )


def make_scratch(arrays: Arrays, system: EncodedSystem, layout: Layout, block: int) -> Scratch:
    """The scratch of one lane, for a ``block`` of states, or fewer if they may have very many events."""
    block = min(block, max(1, _MOST_PAIRS // max(1, system.events)))
    pairs = block * system.events
    of_components = dict.fromkeys(("head", "base", "nth"), block * system.components)
    of_pairs = {"pair": pairs, "child": pairs * layout.words, "order": pairs}
    others = {"enabled": block * system.masks}
    others |= {"fill": system.components + 1 + LINE, "machines": system.local_words + LINE}  # of one processor alone
    sizes = of_components | of_pairs | others
    return Scratch(**{name: arrays.grown([], sizes.get(name, block), 0) for name in Scratch._fields})
