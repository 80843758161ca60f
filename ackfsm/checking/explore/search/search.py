"""A breadth-first search in progress: plain Python first, compiled code and several shards once they pay."""

from __future__ import annotations

import importlib.util
import mmap
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, suppress
from typing import Any, Self, TypeVar

from ackfsm.checking.explore.reduction.ample import compute_ample_sets
from ackfsm.checking.explore.search.encode import PackedNetwork
from ackfsm.checking.explore.search.kernel import (
    EMPTY,
    EVENT_OF_PAIR,
    FOUND,
    MASK_BITS,
    TRANSITIONS,
    UNKNOWN,
    Layout,
    LocalStates,
)
from ackfsm.checking.explore.search.kernel_ample import NO_POR, AmpleSets
from ackfsm.checking.explore.search.layout import (
    LocalLayout,
    encode_system,
    initial_local_states,
    machine_states,
    state_layout,
)
from ackfsm.checking.explore.search.options import DEFAULT_TUNING, Reduction, SearchOptions
from ackfsm.checking.explore.search.shards import Arrays, VisitedShard, make_buffers, make_scratch, map_pages
from ackfsm.terms import DefectError, InputError

_AHEAD = 64
"""States that are looked up together; more than about 16 make no difference."""


_NUMBERS = 1 << 32
"""The parent pointer of a state has 32 bits."""

_RESERVE = 64 << 20
"""Bytes that are reserved, never touched: where memory ends, the last look at the states still needs some to compile
what it calls first, and LLVM aborts the process where it gets none."""


_SPARE = 4 << 20
"""Bytes that are left where memory ends as states get theirs: a call of compiled code needs some for its arguments, and
the process dies where it gets none."""

T = TypeVar("T")
_Found = tuple[int, int, int]
"""A state: its distance from the first one, its number in its shard, its shard."""

_DEFAULT = SearchOptions()


class Search:
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
        self.first_violations: list[_Found | None] = [None] * len(packed.anomalies)
        self.level = 0
        self.stopped_by: str | None = None
        self._workers = min(options.workers or os.cpu_count() or 1, self.tuning.shards)
        self._pool: ThreadPoolExecutor | None = None
        self._reserve: mmap.mmap | None = None
        self._machines: Any = [0] * self.system.local_words
        self.shards = [self._new_shard()]
        self._first_state()
        if (options.compiled or _is_loaded()) and self._may_compile():
            self._compile()
        self._allocate_buffers(1)

    def __enter__(self) -> Self:
        """The search itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    @property
    def expanded(self) -> int:
        """How many states are expanded."""
        return sum(shard.expanded for shard in self.shards)

    @property
    def found_states(self) -> int:
        """How many states are found."""
        return sum(shard.count for shard in self.shards)

    @property
    def transitions(self) -> int:
        """How many transitions leave the expanded states."""
        return sum(int(shard.tally[TRANSITIONS]) for shard in self.shards)

    @property
    def complete(self) -> bool:
        """Whether every state is found and expanded."""
        return self.stopped_by is None and self.expanded == self.found_states

    @property
    def depth(self) -> int:
        """The greatest distance of a state that was found."""
        return self.level + (any(shard.count > end for shard, end in zip(self.shards, self._ends, strict=True)))

    @property
    def bytes(self) -> int:
        """The bytes of the states, their parent pointers and their hash tables."""
        return sum(shard.bytes(self.arrays) for shard in self.shards)

    @property
    def has_all_witnesses(self) -> bool:
        """Whether everything observed is found and no shorter run to it can be: no nearer state is left to expand."""
        return all(found is not None and self._is_expanded(found) for found in self.first_violations)

    def _is_expanded(self, found: _Found) -> bool:
        _, number, shard = found
        return number < self.shards[shard].expanded and not self.shards[shard].deferred[0]

    def has_work(self) -> bool:
        """Whether there is more to expand, within the limits."""
        if self.stopped_by is None and self.expanded < self.found_states:
            most = self.options.max_states
            if most is not None and self.found_states > most:
                self._stop("max_states")
        return self.stopped_by is None and self.expanded < self.found_states

    def expand_batch(self) -> None:
        """Expand some states of one level, and insert their successors."""
        if self.expanded == sum(self._ends):
            self._next_level()
        self._for_each(self._expand, self._quotas())
        if self._grow_shards():
            self._for_each(self._insert, range(len(self.shards)))
            self._record_violations(self.level)
            self._fill_missing_successors()
        if not self.arrays.is_compiled and self.found_states >= (self.tuning.plain_states or 0) and self._may_compile():
            self._compile()
            self._allocate_buffers(len(self.shards))

    # the search itself

    def _first_state(self) -> None:
        shard = self.shards[0]
        table = shard.grow(1, self.layout.words, self.arrays)
        shard.states[: self.layout.words] = [0] * self.layout.words  # every component in its local state 0
        shard.parent_event[0] = self.system.events
        shard.tally[FOUND] = 1
        shard.insert_all(table, self.system, self.layout, self.interned, self.arrays)
        self._ends = [1]

    def _next_level(self) -> None:
        self.level += 1
        if self.arrays.is_compiled and len(self.shards) == 1 and self.found_states >= self.tuning.one_shard_states:
            with suppress(MemoryError):  # it stays one, and ends when that one can grow no more
                self._split_into_shards()
        self._ends = [shard.count for shard in self.shards]

    def _quotas(self) -> Iterator[tuple[int, int]]:
        """The shards that have something to expand, and up to which state."""
        chunk = self._chunk()
        left = chunk * len(self.shards)
        if self.options.max_states is not None:
            left = max(1, (self.options.max_states - self.found_states) // max(1, self.system.events))
        for number, (shard, end) in enumerate(zip(self.shards, self._ends, strict=True)):
            quota = min(chunk, left, end - shard.head)
            if quota > 0 or shard.deferred[0]:
                left -= quota
                yield number, shard.head + quota

    def _for_each(self, step: Callable[[Any], T], work: Any) -> list[T]:
        """What ``step`` returns for each piece of ``work``: in parallel if there are threads and several pieces."""
        pieces = list(work)
        if self._pool is None or len(pieces) == 1:
            return [step(piece) for piece in pieces]
        doing = [self._pool.submit(step, piece) for piece in pieces]
        wait(doing)  # all of them, also if one fails: no thread may be at work afterwards
        return [done.result() for done in doing]

    def _expand(self, quota: tuple[int, int]) -> None:
        number, stop = quota
        shard = self.shards[number]
        known = (self.system, self.layout, self.interned, self.buffers)
        self.arrays.kernel.expand(
            *known,
            self._scratches[number],
            number,
            shard.states,
            shard.parent_event,
            shard.tally,
            stop,
            shard.violations,
            shard.requested,
            shard.deferred,
        )

    def _insert(self, number: int) -> None:
        shard = self.shards[number]
        ahead = _AHEAD if self.arrays.is_compiled else 0
        known = (self.layout, self.buffers, number)
        self.arrays.kernel.insert_visited(
            *known, shard.states, shard.parent, shard.parent_event, shard.table, shard.tally, ahead
        )

    def _grow_shards(self) -> bool:
        """Get memory for the buffers; return false, and end the search, if that is more than allowed."""
        count = len(self.shards)
        more = [sum(int(fill) for fill in self.buffers.fill[number::count]) for number in range(count)]
        if any(s.count + m > _NUMBERS // count for s, m in zip(self.shards, more, strict=True)):
            raise InputError(f"more than {_NUMBERS:,} states are more than a search can number; ask about less")
        most = self.options.max_memory
        if most is not None:
            growth = (s.growth(m, self.layout.words, self.arrays) for s, m in zip(self.shards, more, strict=True))
            if self.bytes + sum(growth) > most:
                self._stop("max_memory")
                return False
        try:
            with closing(map_pages(_SPARE)):
                tables = self._for_each(self._grow_shard, enumerate(more))
        except MemoryError:  # what was there is as it was
            self._stop("memory")
            return False
        self._for_each(self._insert_all, ((number, table) for number, table in enumerate(tables) if table is not None))
        return True

    def _grow_shard(self, more: tuple[int, int]) -> Any:
        number, entries = more
        return self.shards[number].grow(entries, self.layout.words, self.arrays)

    def _insert_all(self, larger: tuple[int, Any]) -> None:
        number, table = larger
        self.shards[number].insert_all(table, self.system, self.layout, self.interned, self.arrays)

    def _record_violations(self, depth: int) -> None:
        """Record the nearest state of each anomaly; those found since the last call are at distance ``depth``."""
        for number, shard in enumerate(self.shards):
            for anomaly, state in enumerate(shard.violations):
                found = (depth, int(state), number)
                nearest = self.first_violations[anomaly]
                if state >= 0 and (nearest is None or found < nearest):
                    self.first_violations[anomaly] = found

    def _stop(self, limit: str) -> None:
        """End the search at ``limit``: the states that will not be expanded are scanned for anomalies."""
        self.stopped_by = limit
        if self._reserve is not None:
            self._reserve.close()
        self._record_violations(self.level)
        for depth, ends in ((self.level, self._ends), (self.level + 1, [shard.count for shard in self.shards])):
            for shard, end in zip(self.shards, ends, strict=True):
                known = (self.system, self.layout, self.interned, shard.states)
                self.arrays.kernel.scan_unexpanded(*known, shard.head, end, shard.violations)
            self._record_violations(depth)

    # local states

    def _fill_missing_successors(self) -> None:
        """Compute the requested successors."""
        for requested in (shard.requested for shard in self.shards if shard.requested[0]):
            while not self.arrays.kernel.fill_missing_successors(
                self.system, self.layout, self.interned, requested, self._machines
            ):
                self._grow_local_states()

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
        for shard in self.shards:
            states = self.arrays.grown([], len(shard.parent) * layout.words, 0)
            self.arrays.kernel.repack(self.system.components, before, shard.states, shard.count, layout, states)
            shard.states = states
            slots = shard.needs(0, before.words)[1]  # more than there are if states were loaded, not found
            shard.rehash(slots, self.system, layout, self.interned, self.arrays)
        if layout.words != before.words and hasattr(self, "buffers"):
            self._allocate_buffers(len(self.shards))

    # plain or compiled

    def _may_compile(self) -> bool:
        return self.tuning.plain_states is not None and _numba_is_there()

    def _compile(self) -> None:
        """Go on with compiled code."""
        self.arrays.load()
        self._reserve = map_pages(_RESERVE)
        self.system, self.interned, self.layout = map(self.arrays.all_of, (self.system, self.interned, self.layout))
        self._machines = self.arrays.of(self._machines)
        for shard in self.shards:
            shard.convert(self.arrays)

    def _allocate_buffers(self, count: int) -> None:
        """Empty buffers and scratches for so many shards."""
        chunk = self._chunk()
        capacity = 4 * chunk // count + 2 * self.system.events
        block = self.tuning.block if self.arrays.is_compiled else self.tuning.plain_block
        buffers = make_buffers(self.arrays, count, capacity, self.layout.words)
        self._scratches = [make_scratch(self.arrays, self.system, self.layout, block) for _ in range(count)]
        self.buffers = buffers

    def _chunk(self) -> int:
        return self.tuning.chunk if self.arrays.is_compiled else self.tuning.plain_chunk

    def _new_shard(self) -> VisitedShard:
        return VisitedShard(len(self.packed.anomalies), self.tuning.deferrable)

    def _split_into_shards(self) -> None:
        """Split the only shard into several, each with its states in their order."""
        import numpy as np

        whole, words, count = self.shards[0], self.layout.words, self.found_states
        owner = np.zeros(count, dtype=np.int64)
        self.arrays.kernel.shard_of_states(
            self.system, self.layout, self.interned, whole.states, count, self.tuning.shards, owner
        )
        number = np.zeros(count, dtype=np.int64)
        members = [np.flatnonzero(owner == shard) for shard in range(self.tuning.shards)]
        for mine in members:
            number[mine] = np.arange(len(mine))
        parents = (number * self.tuning.shards + owner)[whole.parent[:count]]
        states = whole.states[: count * words].reshape(count, words)
        shards = []
        for mine in members:
            shard = self._new_shard()
            shard.convert(self.arrays)
            table = shard.grow(len(mine), words, self.arrays)
            shard.states[: len(mine) * words] = states[mine].ravel()
            shard.parent[: len(mine)] = parents[mine]
            shard.parent_event[: len(mine)] = whole.parent_event[:count][mine]
            shard.tally[:] = (np.count_nonzero(mine < whole.expanded), len(mine), 0)
            if table is not None:
                shard.insert_all(table, self.system, self.layout, self.interned, self.arrays)
            shards.append(shard)
        shards[0].tally[TRANSITIONS] = whole.tally[TRANSITIONS]
        self._allocate_buffers(len(shards))
        self.shards = shards
        self.first_violations = [
            None if found is None else (found[0], int(number[found[1]]), int(owner[found[1]]))
            for found in self.first_violations
        ]
        if self._workers > 1:
            self._pool = ThreadPoolExecutor(self._workers)

    # what was found

    def path(self, found: _Found) -> list[int]:
        """The events of the run to the state ``found``, from the first state, by the parent pointers."""
        here, events = found[1:], list[int]()
        while (before := self.parent_of(here)) is not None:
            if len(events) > self.level:
                raise DefectError("a state was found on no way from the first one")
            event, here = before
            events.append(event)
        return events[::-1]

    def parent_of(self, state: tuple[int, int]) -> tuple[int, tuple[int, int]] | None:
        """The event by which a state was found, and its parent; a state is its number in its shard, and the shard."""
        number, owner = state
        event, parent = int(self.shards[owner].parent_event[number]), int(self.shards[owner].parent[number])
        if event == self.system.events:
            return None
        return event, (parent // len(self.shards), parent % len(self.shards))

    def local_ids(self, shard: int, state: int) -> tuple[int, ...]:
        """The local state of each component in the state."""
        layout, states = self.layout, self.shards[shard].states
        at = state * layout.words
        numbers = (
            int(states[at + word] >> shift & mask)
            for word, shift, mask in zip(layout.word, layout.shift, layout.mask, strict=True)
        )
        return tuple(int(self.interned.id_of[c * self.interned.most + number]) for c, number in enumerate(numbers))

    def all_states(self) -> Iterator[tuple[int, ...]]:
        """Every state that was found, as the number of the state of each machine."""
        local, known = LocalLayout(self.packed), dict[int, tuple[tuple[int, int], ...]]()
        for number, shard in enumerate(self.shards):
            for state in range(shard.count):
                machines = [0] * len(self.packed.size)
                for local_id in self.local_ids(number, state):
                    if local_id not in known:
                        known[local_id] = tuple(machine_states(local, self.system, self.interned, local_id))
                    for machine, value in known[local_id]:
                        machines[machine] = value
                yield tuple(machines)


def _numba_is_there() -> bool:
    return importlib.util.find_spec("numba") is not None


def _is_loaded() -> bool:
    """Whether compiled code is loaded already."""
    return "ackfsm.checking.explore.search.compiled" in sys.modules
