"""Drive the kernel: level by level, plain Python first, compiled code and several shards once they pay."""

from __future__ import annotations

import dataclasses
import importlib.util
import mmap
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Self

from ackfsm.explore.reduction.ample import Reduction, check_reductions, foresight_of
from ackfsm.explore.reduction.slice import reduced
from ackfsm.explore.search.kernel import EMPTY, EVENT_OF_PAIR, FOUND, MASK_BITS, TRANSITIONS, UNKNOWN, Layout, Rows
from ackfsm.explore.search.kernel_ample import BLIND, Foresight
from ackfsm.explore.search.layout import Locals, first_rows, layout_for, machine_states, system_of
from ackfsm.explore.search.self_check import Origin, look_again
from ackfsm.explore.search.shards import Room, Shard, boxes_for, desk_for, pages
from ackfsm.network import Network, NetworkEvent, Packed, pack
from ackfsm.terms import DefectError, HostError, InputError, check_number

__all__ = ["USUAL", "Exploration", "Limits", "Pace", "Search", "explore", "explore_packed"]

_AHEAD = 64
"""States that are looked up together; more than about 16 make no difference."""


_NUMBERS = 1 << 32
"""A state is noted as the parent of another by a number of 32 bits."""

_RESERVE = 64 << 20
"""Bytes that are kept from the states, never touched: where memory ends, the last look at them still needs some to
compile what it calls first, and LLVM aborts the process where it gets none."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """When a search changes how it works, and how much it does at a time; what it finds does not depend on it.

    Attributes:
        plain_states: up to so many states plain Python is done before compiled code would be loaded
            (docs/decisions/kernel.md); ``None``: compiled code is never used.
        one_shard_states: so many states are searched in one queue; more are worth dividing, whatever the number of
            processors.
        shards: into how many parts they are divided, a power of two: the processors that a search can use; the same
            everywhere, so that the same is found everywhere.
        plain_chunk: states of a shard that are expanded, in plain Python, before what they lead to is entered.
        chunk: the same in compiled code.
        plain_block: states that are expanded together, in plain Python.
        block: the same in compiled code.
        waiting: how many steps a shard can ask for at a time, and how many states can wait for them; it asks again
            for what did not fit.
        first_bits: bits for the number of a local state, until more are needed.
    """

    plain_states: int | None = 4_000
    one_shard_states: int = 1 << 18
    shards: int = 8
    plain_chunk: int = 1 << 8
    chunk: int = 1 << 15
    plain_block: int = 1 << 4
    block: int = 1 << 7
    waiting: int = 1 << 12
    first_bits: int = 4


USUAL = Pace()
"""The default."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where a search stops with what it knows: more than ``max_states`` found, or ``max_memory`` bytes for them.

    Both are whole numbers from 1; with ``None`` there is no such limit.  Raises :class:`ackfsm.terms.InputError` for
    anything else.
    """

    max_states: int | None = None
    max_memory: int | None = None

    def __post_init__(self) -> None:
        check_number("max_states", self.max_states)
        check_number("max_memory", self.max_memory)


@dataclasses.dataclass(frozen=True, slots=True)
class Exploration:
    """What a search has found.

    ``complete`` is false if it stopped at a limit, ``stopped_by`` (``max_states``, ``max_memory``, or ``memory`` where
    the machine had no more to give); what was not reached is then not known to be unreachable.  ``witnesses`` has a
    shortest sequence of events for each anomaly (or other thing that was watched for) that was reached.  ``depth`` is
    the length of the longest of all shortest ways.  ``compiled`` tells whether compiled code took part, ``bytes`` what
    the states took.  With ``reductions`` states are left out, and a way is one that can be gone, but perhaps not a
    shortest one.
    """

    states: int
    transitions: int
    complete: bool
    witnesses: dict[str, tuple[NetworkEvent, ...]]
    depth: int
    stopped_by: str | None
    compiled: bool
    bytes: int = dataclasses.field(compare=False)
    reductions: tuple[Reduction, ...] = ()


def explore(  # noqa: PLR0913 - what a search can be told
    network: Network,
    *,
    max_states: int | None = None,
    max_memory: int | None = None,
    only_witnesses: bool = False,
    progress: Callable[[int], None] | None = None,
    workers: int | None = None,
    look: Callable[[Search], None] | None = None,
    reductions: Sequence[Reduction] = (),
    every_step: bool = False,
) -> Exploration:
    """Search the whole state space of ``network`` breadth first.

    With ``only_witnesses`` the search may end (not complete) once everything that is watched for was reached.
    ``progress`` is called now and then with the number of states found so far.  ``workers`` are the processors to use,
    with ``None`` all; what is found does not depend on it.  ``look`` is shown the search once it is over: then with
    all machines and events of ``network``, by their numbers, else without those that can never move.

    With ``reductions`` fewer states are found, in which the same anomalies are reached, not always on a shortest way.
    With ``every_step`` nothing is spared that could lead to nothing new (``spec/reductions.md``); what is found is the
    same.

    Before a search says that it has found everything, some of its states are held against the tables once more
    (docs/decisions/self-check.md).

    Raises :class:`ackfsm.terms.InputError` for limits and workers that are no whole numbers from 1, for unknown
    reductions, and for reductions with a ``look``: of what is left out nothing can be seen; and
    :class:`ackfsm.terms.DefectError` if the tables say otherwise than the search; and :class:`ackfsm.terms.HostError`
    where memory ends and not even what was found can be told.
    """
    check_reductions(reductions)
    if look is not None and reductions:
        raise InputError(
            f"a search with --reduce {reductions[0]} leaves out what may go on for ever; "
            "leave --reduce out, or --progress and --forever"
        )
    if look is None and not every_step:
        least = reduced(network)(lambda _: True)
        packed, origin = least.packed, least.origin
    else:
        packed, origin = pack(network), Origin.whole(network)
    return explore_packed(
        packed,
        origin.events,
        max_states=max_states,
        max_memory=max_memory,
        only_witnesses=only_witnesses,
        progress=progress,
        workers=workers,
        look=look,
        reductions=reductions,
        every_step=every_step,
        origin=origin,
    )


def explore_packed(  # noqa: PLR0913 - as explore, and what is known of the network
    packed: Packed,
    events: Sequence[NetworkEvent],
    *,
    max_states: int | None = None,
    max_memory: int | None = None,
    only_witnesses: bool = False,
    progress: Callable[[int], None] | None = None,
    workers: int | None = None,
    compiled: bool = False,
    look: Callable[[Search], None] | None = None,
    reductions: Sequence[Reduction] = (),
    every_step: bool = False,
    pace: Pace | None = None,
    origin: Origin | None = None,
) -> Exploration:
    """As :func:`explore`, over a network that is packed already; ``events`` are those of the packed network.

    With ``compiled`` the compiled code is used from the first state, if Numba is there, as it is once it is loaded:
    who searches many times loads it once.  ``pace`` tells when a search changes how it works.
    With the ``origin`` of the packed network what is found is held against that before it is said.
    """
    limits = Limits(max_states=max_states, max_memory=max_memory)
    check_reductions(reductions)
    foresight = foresight_of(packed) if Reduction.PARTIAL_ORDER in reductions else BLIND
    every_step = every_step or look is not None
    with Search(
        packed, limits, workers=workers, compiled=compiled, foresight=foresight, every_step=every_step, pace=pace
    ) as search:
        while search.unfinished() and not (only_witnesses and search.has_all_witnesses):
            _go_on(search)
            if progress is not None:
                progress(search.found_states)
        if origin is not None and search.complete:
            look_again(search, origin)
        if look is not None:
            look(search)
        return Exploration(
            states=search.found_states,
            transitions=search.transitions,
            complete=search.complete,
            witnesses={
                anomaly: tuple(events[event] for event in search.path(place))
                for anomaly, place in zip(packed.anomalies, search.nearest, strict=True)
                if place is not None
            },
            depth=search.depth,
            stopped_by=search.stopped_by,
            compiled=search.room.is_compiled,
            bytes=search.bytes,
            reductions=tuple(dict.fromkeys(reductions)),
        )


def _go_on(search: Search) -> None:
    try:
        search.go_on()
    except MemoryError:
        raise HostError(
            f"there is not enough memory to go on after {search.found_states:,} states in {search.depth} steps; "
            "to see what was found, stop before with --max-memory or --max-states, or ask about less"
        ) from None


_Place = tuple[int, int, int]
"""A state: its distance from the first one, its number in its shard, its shard."""


class Search:
    """One search in progress; what it has found can be looked at between two calls of :meth:`go_on`."""

    def __init__(  # noqa: PLR0913 - what a search can be told
        self,
        packed: Packed,
        limits: Limits | None = None,
        *,
        workers: int | None = None,
        compiled: bool = False,
        foresight: Foresight = BLIND,
        every_step: bool = False,
        pace: Pace | None = None,
    ) -> None:
        """The first state alone, to expand; where ``foresight`` knows a single event that is enough, by that alone.

        With ``every_step`` also the steps are taken that can lead to nothing new: who looks at the rows finds them all.
        """
        if len(packed.free) >= EVENT_OF_PAIR:
            raise InputError(
                f"{len(packed.free):,} events are more than a search can number ({EVENT_OF_PAIR - 1:,}); "
                "ask about fewer messages"
            )
        if len(packed.anomalies) > MASK_BITS:
            raise InputError(f"a search watches for {MASK_BITS} anomalies at most, not for {len(packed.anomalies)}")
        check_number("workers", workers)
        self.packed = packed
        self.limits = limits or Limits()
        self.pace = pace or USUAL
        self.room = Room()
        self.system = system_of(packed, foresight, every_step=every_step)
        self.layout = layout_for([self.pace.first_bits] * self.system.components)
        self.rows = first_rows(packed, self.system, self.layout)
        self.nearest: list[_Place | None] = [None] * len(packed.anomalies)
        self.level = 0
        self.stopped_by: str | None = None
        self._workers = min(workers or os.cpu_count() or 1, self.pace.shards)
        self._pool: ThreadPoolExecutor | None = None
        self._reserve: mmap.mmap | None = None
        self._local: Any = [0] * self.system.local_words
        self.shards = [self._shard()]
        self._first_state()
        if (compiled or _is_loaded()) and self._may_compile():
            self._compile()
        self._boxes(1)

    def __enter__(self) -> Self:
        """The search itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()

    @property
    def expanded(self) -> int:
        return sum(shard.expanded for shard in self.shards)

    @property
    def found_states(self) -> int:
        return sum(shard.count for shard in self.shards)

    @property
    def transitions(self) -> int:
        return sum(int(shard.tally[TRANSITIONS]) for shard in self.shards)

    @property
    def complete(self) -> bool:
        return self.stopped_by is None and self.expanded == self.found_states

    @property
    def depth(self) -> int:
        """The distance of the farthest state that was found."""
        return self.level + (any(shard.count > end for shard, end in zip(self.shards, self._ends, strict=True)))

    @property
    def bytes(self) -> int:
        """What the states take: themselves, their parents, and the table in which they are looked up."""
        return sum(shard.bytes(self.room) for shard in self.shards)

    @property
    def has_all_witnesses(self) -> bool:
        """Whether everything is found and no shorter way to any of it can come: nothing nearer is left to expand."""
        return all(place is not None and self._is_expanded(place) for place in self.nearest)

    def _is_expanded(self, place: _Place) -> bool:
        _, number, shard = place
        return number < self.shards[shard].expanded and not self.shards[shard].late[0]

    def unfinished(self) -> bool:
        """Whether there is more to expand, within the limits."""
        if self.stopped_by is None and self.expanded < self.found_states:
            most = self.limits.max_states
            if most is not None and self.found_states > most:
                self._stop("max_states")
        return self.stopped_by is None and self.expanded < self.found_states

    def go_on(self) -> None:
        """Expand some states of one level, and enter what they lead to."""
        if self.expanded == sum(self._ends):
            self._next_level()
        self._each(self._expand, self._quotas())
        if self._make_room():
            self._each(self._insert, range(len(self.shards)))
            self._note(self.level)
            self._resolve()
        if not self.room.is_compiled and self.found_states >= (self.pace.plain_states or 0) and self._may_compile():
            self._compile()
            self._boxes(len(self.shards))

    # the search itself

    def _first_state(self) -> None:
        shard = self.shards[0]
        shard.grow(1, self.system, self.layout, self.rows, self.room)
        shard.states[: self.layout.words] = [0] * self.layout.words  # every component in its local state number 0
        shard.by[0] = self.system.events
        shard.tally[FOUND] = 1
        shard.enter(shard.places(self.layout.words), self.system, self.layout, self.rows, self.room)
        self._ends = [1]

    def _next_level(self) -> None:
        self.level += 1
        if self.room.is_compiled and len(self.shards) == 1 and self.found_states >= self.pace.one_shard_states:
            with suppress(MemoryError):  # it stays one, and ends when that one can grow no more
                self._divide()
        self._ends = [shard.count for shard in self.shards]

    def _quotas(self) -> Iterator[tuple[int, int]]:
        """The shards that have something to expand, and up to which state to go."""
        chunk = self._chunk()
        left = chunk * len(self.shards)
        if self.limits.max_states is not None:
            left = max(1, (self.limits.max_states - self.found_states) // max(1, self.system.events))
        for number, (shard, end) in enumerate(zip(self.shards, self._ends, strict=True)):
            quota = min(chunk, left, end - shard.head)
            if quota > 0 or shard.late[0]:
                left -= quota
                yield number, shard.head + quota

    def _each(self, step: Callable[[Any], None], work: Any) -> None:
        """``step`` for each piece of ``work``: at the same time where there are threads and enough to do."""
        pieces = list(work)
        if self._pool is None or len(pieces) == 1:
            for piece in pieces:
                step(piece)
        else:
            doing = [self._pool.submit(step, piece) for piece in pieces]
            wait(doing)  # all of them, also where one fails: what follows must find nobody at work
            for done in doing:
                done.result()

    def _expand(self, quota: tuple[int, int]) -> None:
        number, stop = quota
        shard = self.shards[number]
        known = (self.system, self.layout, self.rows, self.boxes)
        self.room.kernel.expand(
            *known,
            self._desks[number],
            number,
            shard.states,
            shard.by,
            shard.tally,
            stop,
            shard.found,
            shard.wanted,
            shard.late,
        )

    def _insert(self, number: int) -> None:
        shard = self.shards[number]
        ahead = _AHEAD if self.room.is_compiled else 0
        known = (self.layout, self.boxes, number)
        self.room.kernel.insert(*known, shard.states, shard.parent, shard.by, shard.table, shard.tally, ahead)

    def _make_room(self) -> bool:
        """Make room for what is in the boxes; false, and the end of the search, if that is more than allowed."""
        count = len(self.shards)
        more = [sum(int(fill) for fill in self.boxes.fill[number::count]) for number in range(count)]
        if any(s.count + m > _NUMBERS // count for s, m in zip(self.shards, more, strict=True)):
            raise InputError(f"more than {_NUMBERS:,} states are more than a search can number; ask about less")
        most = self.limits.max_memory
        if most is not None:
            growth = (s.growth(m, self.layout.words, self.room) for s, m in zip(self.shards, more, strict=True))
            if self.bytes + sum(growth) > most:
                self._stop("max_memory")
                return False
        try:
            self._each(self._grow, enumerate(more))
        except MemoryError:  # what was there is as it was
            self._stop("memory")
            return False
        return True

    def _grow(self, more: tuple[int, int]) -> None:
        number, entries = more
        self.shards[number].grow(entries, self.system, self.layout, self.rows, self.room)

    def _note(self, depth: int) -> None:
        """Remember the nearest state of each anomaly; what was found since the last time is so far away."""
        for number, shard in enumerate(self.shards):
            for anomaly, state in enumerate(shard.found):
                place = (depth, int(state), number)
                nearest = self.nearest[anomaly]
                if state >= 0 and (nearest is None or place < nearest):
                    self.nearest[anomaly] = place

    def _stop(self, limit: str) -> None:
        """End with what is known: what was found and will not be expanded is looked at."""
        self.stopped_by = limit
        if self._reserve is not None:
            self._reserve.close()
        self._note(self.level)
        for depth, ends in ((self.level, self._ends), (self.level + 1, [shard.count for shard in self.shards])):
            for shard, end in zip(self.shards, ends, strict=True):
                known = (self.system, self.layout, self.rows, shard.states)
                self.room.kernel.noted(*known, shard.head, end, shard.found)
            self._note(depth)

    # rows

    def _resolve(self) -> None:
        """Find out what is wanted."""
        for wanted in (shard.wanted for shard in self.shards if shard.wanted[0]):
            while not self.room.kernel.resolve(self.system, self.layout, self.rows, wanted, self._local):
                self._grow_rows()

    def _grow_rows(self) -> None:
        """Make room for more rows, and for their numbers in a state."""
        rows, system, room = self.rows, self.system, self.room
        if int(rows.count[-2]) == len(rows.component):
            length = 2 * len(rows.component)
            per_row = {"local": system.local_words, "head": system.head, "nth": system.widest}
            names = ("component", "number", "local", "placed", "head", "nth", "at_rest")
            self.rows = rows = rows._replace(
                **{name: room.grown(getattr(rows, name), length * per_row.get(name, 1), 0, name) for name in names},
                slots=room.grown([], 1 << (2 * length).bit_length(), EMPTY, "slots"),
            )
            room.kernel.enter(system, rows)
        if int(rows.count[-1]) + system.widest > len(rows.after):
            places = 2 * (len(rows.after) + system.widest)
            self.rows = rows = rows._replace(
                after=room.grown(rows.after, places, UNKNOWN, "after"),
                step=room.grown(rows.step, places * (self.layout.words + 1), UNKNOWN),
            )
        if max(rows.count[:-2]) == rows.most:
            self.rows = self._with_numbers(2 * rows.most)
        self._widen()

    def _with_numbers(self, most: int) -> Rows:
        """The rows with room for ``most`` numbers in each component."""
        row_of = self.room.grown([], self.system.components * most, 0, "row_of")
        for row in range(int(self.rows.count[-2])):
            row_of[self.rows.component[row] * most + self.rows.number[row]] = row
        return self.rows._replace(most=most, row_of=row_of)

    def _widen(self) -> None:
        """Lay the states out anew if a component may have more local states than its bits can number."""
        needed = [int(count).bit_length() for count in self.rows.count[:-2]]
        have = [int(mask).bit_length() for mask in self.layout.mask]
        if all(need <= bits for need, bits in zip(needed, have, strict=True)):
            return
        layouts = (layout_for([need + spare for need in needed]) for spare in (2, 1, 0))
        layout = min(layouts, key=lambda layout: layout.words)
        self._lay_out(self.room.all_of(layout))

    def _lay_out(self, layout: Layout) -> None:
        """Lay the states out as ``layout`` says, and all that goes by how they are."""
        before, self.layout = self.layout, layout
        if layout.words != before.words:  # steps stand elsewhere: what is in the old places means nothing
            step = self.room.grown([], len(self.rows.after) * (layout.words + 1), UNKNOWN)
            self.rows = self.rows._replace(step=step)
        self.room.kernel.laid(self.system, layout, self.rows)
        for shard in self.shards:
            states = self.room.grown([], len(shard.parent) * layout.words, 0)
            self.room.kernel.widened(self.system.components, before, shard.states, shard.count, layout, states)
            shard.states = states
            places = shard.needs(0, before.words)[1]  # more than there are where states were given to it, not found
            shard.enter(places, self.system, layout, self.rows, self.room)
        if layout.words != before.words and hasattr(self, "boxes"):
            self._boxes(len(self.shards))

    # forms

    def _may_compile(self) -> bool:
        return self.pace.plain_states is not None and _numba_is_there()

    def _compile(self) -> None:
        """Go on with compiled code."""
        self.room.load()
        self._reserve = pages(_RESERVE)
        self.system, self.rows, self.layout = map(self.room.all_of, (self.system, self.rows, self.layout))
        self._local = self.room.of(self._local)
        for shard in self.shards:
            shard.convert(self.room)

    def _boxes(self, count: int) -> None:
        """Empty boxes and desks for so many shards."""
        chunk = self._chunk()
        capacity = 4 * chunk // count + 2 * self.system.events
        block = self.pace.block if self.room.is_compiled else self.pace.plain_block
        boxes = boxes_for(self.room, count, capacity, self.layout.words)
        self._desks = [desk_for(self.room, self.system, self.layout, block) for _ in range(count)]
        self.boxes = boxes

    def _chunk(self) -> int:
        return self.pace.chunk if self.room.is_compiled else self.pace.plain_chunk

    def _shard(self) -> Shard:
        return Shard(len(self.packed.anomalies), self.pace.waiting)

    def _divide(self) -> None:
        """Divide the only shard into several, each with its states in their order."""
        import numpy as np

        whole, words, count = self.shards[0], self.layout.words, self.found_states
        owner = np.zeros(count, dtype=np.int64)
        self.room.kernel.moved(self.system, self.layout, self.rows, whole.states, count, self.pace.shards, owner)
        number = np.zeros(count, dtype=np.int64)
        places = [np.flatnonzero(owner == shard) for shard in range(self.pace.shards)]
        for place in places:
            number[place] = np.arange(len(place))
        parents = (number * self.pace.shards + owner)[whole.parent[:count]]
        states = whole.states[: count * words].reshape(count, words)
        shards = []
        for place in places:
            shard = self._shard()
            shard.convert(self.room)
            shard.grow(len(place), self.system, self.layout, self.rows, self.room)
            shard.states[: len(place) * words] = states[place].ravel()
            shard.parent[: len(place)] = parents[place]
            shard.by[: len(place)] = whole.by[:count][place]
            shard.tally[:] = (np.count_nonzero(place < whole.expanded), len(place), 0)
            shard.enter(shard.places(words), self.system, self.layout, self.rows, self.room)
            shards.append(shard)
        shards[0].tally[TRANSITIONS] = whole.tally[TRANSITIONS]
        self._boxes(len(shards))
        self.shards = shards
        self.nearest = [
            None if place is None else (place[0], int(number[place[1]]), int(owner[place[1]])) for place in self.nearest
        ]
        if self._workers > 1:
            self._pool = ThreadPoolExecutor(self._workers)

    # looking at what was found

    def path(self, place: _Place) -> list[int]:
        """The events that lead to the state at ``place``, from the first state."""
        here, events = place[1:], list[int]()
        while (before := self.before(here)) is not None:
            if len(events) > self.level:
                raise DefectError("a state was found on no way from the first one")
            event, here = before
            events.append(event)
        return events[::-1]

    def before(self, place: tuple[int, int]) -> tuple[int, tuple[int, int]] | None:
        """The event by which a state was found, and the state before; a state is its number in its shard, and that."""
        number, owner = place
        event, parent = int(self.shards[owner].by[number]), int(self.shards[owner].parent[number])
        if event == self.system.events:
            return None
        return event, (parent // len(self.shards), parent % len(self.shards))

    def local_states(self, shard: int, state: int) -> tuple[int, ...]:
        """The row of each component in the state."""
        layout, states = self.layout, self.shards[shard].states
        at = state * layout.words
        numbers = (
            int(states[at + word] >> shift & mask)
            for word, shift, mask in zip(layout.word, layout.shift, layout.mask, strict=True)
        )
        return tuple(int(self.rows.row_of[c * self.rows.most + number]) for c, number in enumerate(numbers))

    def all_states(self) -> Iterator[tuple[int, ...]]:
        """Every state that was found, as the number of the state of each machine."""
        local, known = Locals(self.packed), dict[int, tuple[tuple[int, int], ...]]()
        for number, shard in enumerate(self.shards):
            for state in range(shard.count):
                machines = [0] * len(self.packed.size)
                for row in self.local_states(number, state):
                    if row not in known:
                        known[row] = tuple(machine_states(local, self.system, self.rows, row))
                    for machine, value in known[row]:
                        machines[machine] = value
                yield tuple(machines)


def _numba_is_there() -> bool:
    return importlib.util.find_spec("numba") is not None


def _is_loaded() -> bool:
    """Whether somebody has paid for compiled code already."""
    return "ackfsm.explore.search.compiled" in sys.modules
