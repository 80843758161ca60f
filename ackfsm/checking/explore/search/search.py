"""A breadth-first search in progress: plain Python first, compiled code and several processors once they pay."""

from __future__ import annotations

import importlib.util
import mmap
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import accumulate
from typing import Any, TypeVar

from ackfsm.checking.explore.reduction.ample import compute_ample_sets
from ackfsm.checking.explore.search.encode import PackedNetwork
from ackfsm.checking.explore.search.kernel import EMPTY, EVENT_OF_PAIR, LINE, MASK_BITS, UNKNOWN, Layout, LocalStates
from ackfsm.checking.explore.search.kernel_ample import NO_POR, AmpleSets
from ackfsm.checking.explore.search.layout import (
    encode_system,
    initial_local_states,
    state_layout,
)
from ackfsm.checking.explore.search.options import DEFAULT_TUNING, Reduction, SearchOptions
from ackfsm.checking.explore.search.visited import Arrays, Visited, make_buffers, make_scratch, map_pages
from ackfsm.support.closing import Closing
from ackfsm.terms import DefectError, InputError

_AHEAD = 64
"""States that are looked up together; more than about 16 make no difference."""


_NUMBERS = 1 << 32
"""The parent pointer of a state has 32 bits."""

_RESERVE = 64 << 20
"""Bytes that are reserved, never touched: where memory ends, the last look at the states still needs some to compile
what it calls first, and LLVM aborts the process where it gets none."""

_SUCCESSORS_EACH = 4
"""Successors of a state that a lane has room for, on an average, until that proves too few."""

_LANES_EACH = 4
"""Lanes for each processor: none of them waits long for the others."""

T = TypeVar("T")

_DEFAULT = SearchOptions()


class Search(Closing):
    """One search in progress; its states can be looked at between two calls of :meth:`expand_batch`."""

    def __init__(
        self, packed: PackedNetwork, options: SearchOptions = _DEFAULT, ample: AmpleSets | None = None
    ) -> None:
        """The first state alone, to expand; ``options`` ask for ``ample`` sets, unless given.

        With ``options.every_step`` every successor is computed, so that all edges can be looked at afterwards.
        """
        if len(packed.free) >= EVENT_OF_PAIR:
            raise InputError(
                f"{len(packed.free):,} events are more than a search can number ({EVENT_OF_PAIR - 1:,}); "
                "ask about fewer messages"
            )
        if len(packed.anomalies) > MASK_BITS:
            raise InputError(f"a search watches for {MASK_BITS} anomalies at most, not for {len(packed.anomalies)}")
        if ample is None:
            ample = compute_ample_sets(packed) if Reduction.PARTIAL_ORDER in options.reductions else NO_POR
        self.packed = packed
        self.options = options
        self.tuning = options.tuning or DEFAULT_TUNING
        self.arrays = Arrays()
        self.system = encode_system(packed, ample, every_step=options.every_step)
        self.layout = state_layout([self.tuning.first_bits] * self.system.components)
        self.interned = initial_local_states(packed, self.system, self.layout)
        self.first_violations: list[int | None] = [None] * len(packed.anomalies)
        """The first state, by its number, that shows each anomaly."""
        self.expanded = self.transitions = self.level = self._end = 0
        """How many states are expanded, the transitions that leave them, and the distance of the next one."""
        self.stopped_by: str | None = None
        self._workers = min(options.workers or os.cpu_count() or 1, self.tuning.most_workers)
        self._pool: ThreadPoolExecutor | None = None
        self._reserve: mmap.mmap | None = None
        self._machines: Any = [0] * self.system.local_words
        self._successors_each = _SUCCESSORS_EACH
        self.divided = self.lanes_lost = False
        """Whether the last batch was divided among lanes, and the work of some was lost as one before had no room."""
        self.visited = Visited()
        self._first_state()
        if (options.compiled or _is_loaded()) and self._may_compile():
            self._compile()
        self._allocate_buffers(1, 1)

    def close(self) -> None:
        """Stop the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    @property
    def found_states(self) -> int:
        """How many states are found."""
        return self.visited.count

    @property
    def complete(self) -> bool:
        """Whether every state is found and expanded."""
        return self.stopped_by is None and self.expanded == self.found_states

    @property
    def depth(self) -> int:
        """The greatest distance of a state that was found."""
        return self.level + (self.found_states > self._end)

    @property
    def bytes(self) -> int:
        """The bytes of the states, their parent pointers and their hash table."""
        return self.visited.bytes(self.arrays)

    @property
    def has_all_witnesses(self) -> bool:
        """Whether everything observed is found and no shorter run to it can be: no nearer state is left to expand."""
        return all(found is not None and found < self.expanded for found in self.first_violations)

    def has_work(self) -> bool:
        """Whether there is more to expand, within the limits."""
        if self.stopped_by is None and self.expanded < self.found_states:
            most = self.options.max_states
            if most is not None and self.found_states > most:
                self._stop("max_states")
        return self.stopped_by is None and self.expanded < self.found_states

    def expand_batch(self) -> None:
        """Expand some states of one level, and append the new ones among their successors."""
        if self.expanded == self._end:
            self._next_level()
        lanes, expanded = self._expand_lanes()
        self._record_violations(lanes)
        if not self._make_room(lanes):
            return
        self._insert(lanes)
        self.expanded = expanded
        if self._is_short:
            self._grow_local_states()
        elif self.lanes_lost:
            with suppress(MemoryError):  # with the buffers that there are it goes on more slowly
                self._allocate_buffers(len(self._scratches), len(self._mine), 2 * self._successors_each)
        if not self.arrays.is_compiled and self.found_states >= (self.tuning.plain_states or 0) and self._may_compile():
            self._compile()
            self._allocate_buffers(1, 1)

    # the search itself

    def _first_state(self) -> None:
        self.visited.grow(1, self.layout.words, self.arrays)
        self.visited.states[: self.layout.words] = [0] * self.layout.words  # every component in its local state 0
        self.visited.parent_event[0] = self.system.events
        self.visited.count = self._end = 1
        self.visited.rehash(self.layout.words, self.arrays)

    def _next_level(self) -> None:
        self.level, self._end = self.level + 1, self.found_states
        may_divide = self.arrays.is_compiled and self._workers > 1 and self._pool is None
        if may_divide and self._end - self.expanded >= self.tuning.parallel_states:
            with suppress(MemoryError):  # one processor goes on alone, until its own memory can grow no more
                self._divide()

    def _divide(self) -> None:
        """Get lanes, shards and threads."""
        parted = self.visited.tables_of(1 << (self._workers - 1).bit_length(), self.layout.words, self.arrays)
        self._allocate_buffers(_LANES_EACH * self._workers, len(parted[0]))
        self.visited.tables, self.visited.in_table = parted
        self._pool = ThreadPoolExecutor(self._workers)

    def _shares(self) -> list[tuple[int, int]]:
        """What each lane is to expand: from which state to which."""
        begin, most, chunk = self.expanded, self._end - self.expanded, self._lane_chunk
        if self.options.max_states is not None:
            most = min(most, max(1, (self.options.max_states - self.found_states) // max(1, self.system.events)))
        if self._pool is None or most < self.tuning.parallel_states:
            return [(begin, begin + min(most, chunk))]
        most = min(most, chunk * len(self._scratches))
        each = -(-most // len(self._scratches))
        return [(first, min(first + each, begin + most)) for first in range(begin, begin + most, each)]

    def _expand_lanes(self) -> tuple[int, int]:
        """Expand the next states; how many lanes are right, and which state is the first after theirs.

        Where a lane has no room the lanes after it are left, so that states come in the order of one lane.
        """
        shares, kernel, buffers = self._shares(), self.arrays.kernel, self.buffers
        known = (self.system, self.layout, self.interned, buffers)
        unseen = [EMPTY if found is None else found for found in self.first_violations]
        for violations in self._violations[: len(shares)]:
            violations[:] = self.arrays.of(unseen)
        queue = (self.visited.states, self.visited.parent_event)

        def expand(lane: int) -> int:
            share, scratch, violations = shares[lane], self._scratches[lane], self._violations[lane]
            return int(kernel.expand(*known, scratch, lane, *queue, *share, not self.divided, violations))

        self.divided = len(shares) > 1
        reached = self._for_each(expand, range(len(shares)))
        self._is_short, self.lanes_lost = reached[0] < shares[0][1], False
        if not self.divided:
            return 1, reached[0]
        expanded = lanes = 0
        self._is_short = False
        for lanes, (_, stop) in enumerate(shares, start=1):
            late = self._expand_waiting(lanes - 1)
            self._is_short |= late >= 0
            expanded = late if late >= 0 else reached[lanes - 1]
            if expanded < stop:
                break
        self.lanes_lost = lanes < len(shares)
        return lanes, expanded

    def _expand_waiting(self, lane: int) -> int:
        """Expand the states that wait in a lane; the first of which memory may not suffice, or ``EMPTY``."""
        known = (self.system, self.layout, self.interned, self.buffers, self._scratches[lane])
        queue = (self.visited.states, self.visited.parent_event)
        return int(self.arrays.kernel.expand_waiting(*known, lane, *queue, self._violations[lane]))

    def _for_each(self, step: Callable[[int], T], pieces: Sequence[int]) -> list[T]:
        """What ``step`` returns for each of the ``pieces``: in parallel if several lanes are at work."""
        if self._pool is None or not self.divided:
            return [step(piece) for piece in pieces]
        doing = [self._pool.submit(step, piece) for piece in pieces]
        wait(doing)  # all of them, also if one fails: no thread may be at work afterwards
        return [done.result() for done in doing]

    def _make_room(self, lanes: int) -> bool:
        """Get memory for what is in the buffers; return false, and end the search, if that is more than allowed."""
        visited, words, arrays = self.visited, self.layout.words, self.arrays
        shards = len(visited.tables)
        of_shard = [sum(map(int, self.buffers.of_shard[shard : lanes * LINE : LINE])) for shard in range(shards)]
        more = sum(of_shard)
        if visited.count + more > _NUMBERS:
            raise InputError(f"more than {_NUMBERS:,} states are more than a search can number; ask about less")
        growth, most = visited.growth(more, of_shard, words, arrays), self.options.max_memory
        if not growth:
            return True
        if most is not None and self.bytes + growth > most:
            self._stop("max_memory")
            return False
        try:
            visited.grow(more, words, arrays)
            larger = [visited.larger_table(shard, some, words, arrays) for shard, some in enumerate(of_shard)]
        except MemoryError:  # what was there is as it was
            self._stop("memory")
            return False
        moving = [shard for shard, table in enumerate(larger) if table is not None]
        self._for_each(lambda shard: visited.replace_table(shard, larger[shard], words, arrays), moving)
        return True

    def _insert(self, lanes: int) -> None:
        """Append the new ones among the successors to the states."""
        visited, words, kernel, buffers = self.visited, self.layout.words, self.arrays.kernel, self.buffers
        shards = len(visited.tables)
        self._for_each(
            lambda shard: kernel.insert_visited(words, buffers, lanes, shard, visited.tables[shard], self._mine[shard]),
            range(shards),
        )
        new = [[int(number) for number in buffers.new[lane * shards : (lane + 1) * shards]] for lane in range(lanes)]
        ends = [visited.count, *accumulate(map(sum, new), initial=visited.count)][1:]
        queue = (visited.states, visited.parent, visited.parent_event)
        transitions = self._for_each(
            lambda lane: int(kernel.append_new(words, buffers, lane, ends[lane], *queue)), range(lanes)
        )
        self.transitions += sum(transitions)
        visited.count = ends[-1]
        visited.in_table = [
            before + sum(some) for before, some in zip(visited.in_table, zip(*new, strict=True), strict=True)
        ]

    def _record_violations(self, lanes: int) -> None:
        """Record the first state of each anomaly."""
        for violations in self._violations[:lanes]:
            for anomaly, state in enumerate(violations):
                if state >= 0 and self.first_violations[anomaly] is None:
                    self.first_violations[anomaly] = int(state)

    def _stop(self, limit: str) -> None:
        """End the search at ``limit``: the states that will not be expanded are scanned for anomalies."""
        self.stopped_by = limit
        if self._reserve is not None:
            self._reserve.close()
        unseen = [EMPTY if found is None else found for found in self.first_violations]
        self._violations[0][:] = self.arrays.of(unseen)
        known = (self.system, self.layout, self.interned, self.visited.states)
        self.arrays.kernel.scan_unexpanded(*known, self.expanded, self.found_states, self._violations[0])
        self._record_violations(1)

    # local states

    def _grow_local_states(self) -> None:
        """Get memory for more local states, and bits for their numbers in a state."""
        interned, system, arrays = self.interned, self.system, self.arrays
        if int(interned.count[-2]) == len(interned.component):
            length = 2 * len(interned.component)
            per_state = {"machines": system.local_words, "head": system.head, "nth": system.widest}
            names = ("component", "number", "machines", "shifted", "head", "nth", "at_rest")
            self.interned = interned = interned._replace(
                **{
                    name: arrays.grown(getattr(interned, name), length * per_state.get(name, 1), 0, name)
                    for name in names
                },
                slots=arrays.grown([], 1 << (2 * length).bit_length(), EMPTY, "slots"),
            )
            arrays.kernel.rehash_local_states(system, interned)
        if int(interned.count[-1]) + system.widest > len(interned.after):
            length = 2 * (len(interned.after) + system.widest)
            self.interned = interned = interned._replace(
                after=arrays.grown(interned.after, length, UNKNOWN, "after"),
                delta=arrays.grown(interned.delta, length * (self.layout.words + 1), UNKNOWN),
            )
        if max(interned.count[:-2]) == interned.most:
            self.interned = self._with_numbers(2 * interned.most)
        self._widen_layout()

    def _with_numbers(self, most: int) -> LocalStates:
        """The local states with ``most`` numbers for each component."""
        id_of = self.arrays.grown([], self.system.components * most, 0, "id_of")
        for local_id in range(int(self.interned.count[-2])):
            id_of[self.interned.component[local_id] * most + self.interned.number[local_id]] = local_id
        return self.interned._replace(most=most, id_of=id_of)

    def _widen_layout(self) -> None:
        """Change the layout if a component may have more local states than its bits can number."""
        needed = [int(count).bit_length() for count in self.interned.count[:-2]]
        have = [int(mask).bit_length() for mask in self.layout.mask]
        if all(need <= bits for need, bits in zip(needed, have, strict=True)):
            return
        layouts = (state_layout([need + spare for need in needed]) for spare in (2, 1, 0))
        layout = min(layouts, key=lambda layout: layout.words)
        self._change_layout(self.arrays.all_of(layout))

    def _change_layout(self, layout: Layout) -> None:
        """Repack the states to ``layout``, and everything that depends on it."""
        before, self.layout = self.layout, layout
        if layout.words != before.words:  # the deltas have other offsets: the old ones mean nothing
            delta = self.arrays.grown([], len(self.interned.after) * (layout.words + 1), UNKNOWN)
            self.interned = self.interned._replace(delta=delta)
        self.arrays.kernel.relayout_deltas(self.system, layout, self.interned)
        visited = self.visited
        states = self.arrays.grown([], len(visited.parent) * layout.words, 0)
        self.arrays.kernel.repack(self.system.components, before, visited.states, visited.count, layout, states)
        visited.states = states
        visited.rehash(layout.words, self.arrays)
        if layout.words != before.words and hasattr(self, "buffers"):
            self._allocate_buffers(len(self._scratches), len(self._mine))

    # plain or compiled

    def _may_compile(self) -> bool:
        return self.tuning.plain_states is not None and _numba_is_there()

    def _compile(self) -> None:
        """Go on with compiled code."""
        self.arrays.load()
        self._reserve = map_pages(_RESERVE)
        self.system, self.interned, self.layout = map(self.arrays.all_of, (self.system, self.interned, self.layout))
        self._machines = self.arrays.of(self._machines)
        self.visited.convert(self.layout.words, self.arrays)

    def _allocate_buffers(self, lanes: int, shards: int, each: int | None = None) -> None:
        """Empty buffers and scratches for so many lanes and shards; where memory does not suffice all is as it was.

        A lane has room for ``each`` successors of a state, on an average; as before if that is not given.
        """
        each = each or self._successors_each
        compiled, tuning = self.arrays.is_compiled, self.tuning
        chunk = tuning.plain_chunk if not compiled else max(1, tuning.chunk // (1 if lanes == 1 else _LANES_EACH))
        block = tuning.block if compiled else tuning.plain_block
        capacity = each * chunk + 2 * self.system.events
        buffers = make_buffers(self.arrays, lanes, shards, chunk, capacity, self.layout.words)
        scratches = [make_scratch(self.arrays, self.system, self.layout, block) for _ in range(lanes)]
        mine = [self.arrays.grown([], _AHEAD, 0) for _ in range(shards)]
        self.buffers, self._scratches, self._mine, self._lane_chunk = buffers, scratches, mine, chunk
        self._successors_each = each
        self._violations = [self.arrays.of([EMPTY for _ in self.packed.anomalies]) for _ in range(lanes)]
        self._expand_waiting(0)  # of none: what is called when memory is short has to be compiled before

    # what was found

    def path(self, state: int) -> list[int]:
        """The events of the run to ``state`` from the first one, by the parent pointers."""
        events = list[int]()
        while (before := self.parent_of(state)) is not None:
            if len(events) > self.level:
                raise DefectError("a state was found on no way from the first one")
            event, state = before
            events.append(event)
        return events[::-1]

    def parent_of(self, state: int) -> tuple[int, int] | None:
        """The event by which a state was found, and the state before; ``None`` of the first one."""
        event, parent = int(self.visited.parent_event[state]), int(self.visited.parent[state])
        return None if event == self.system.events else (event, parent)

    def local_ids(self, state: int) -> tuple[int, ...]:
        """The local state of each component in the state."""
        layout, states = self.layout, self.visited.states
        at = state * layout.words
        numbers = (
            int(states[at + word] >> shift & mask)
            for word, shift, mask in zip(layout.word, layout.shift, layout.mask, strict=True)
        )
        return tuple(int(self.interned.id_of[c * self.interned.most + number]) for c, number in enumerate(numbers))


def _numba_is_there() -> bool:
    return importlib.util.find_spec("numba") is not None


def _is_loaded() -> bool:
    """Whether compiled code is loaded already."""
    return "ackfsm.checking.explore.search.compiled" in sys.modules
