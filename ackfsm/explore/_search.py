"""Drive the kernel: room that grows with the space, plain Python first, compiled code once it pays."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

from ackfsm.explore import _kernel
from ackfsm.network import Network, NetworkEvent, Packed, pack

__all__ = ["Exploration", "explore", "explore_packed"]

_PLAIN_STATES = 4_000
"""Up to so many states plain Python is done before compiled code would be loaded (docs/decisions/kernel.md)."""

_FIRST_ROOM = 1 << 13


@dataclasses.dataclass(frozen=True, slots=True)
class Exploration:
    """What a search has found.

    ``complete`` is false if it stopped at ``max_states``; what was not reached is then not
    known to be unreachable.  ``witnesses`` has a shortest sequence of events for each anomaly
    (or other thing that was watched for) that was reached.  ``compiled`` tells whether compiled code took part.
    """

    states: int
    transitions: int
    complete: bool
    witnesses: dict[str, tuple[NetworkEvent, ...]]
    compiled: bool


def explore(
    network: Network,
    *,
    max_states: int | None = None,
    only_witnesses: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Exploration:
    """Search the whole state space of ``network`` breadth first.

    With ``only_witnesses`` the search may end (not complete) once everything that is watched for was reached.
    ``progress`` is called now and then with the number of states found so far.
    """
    return explore_packed(
        pack(network), network.events, max_states=max_states, only_witnesses=only_witnesses, progress=progress
    )


def explore_packed(  # noqa: PLR0913 - as explore, and what is known of the network
    packed: Packed,
    events: Sequence[NetworkEvent],
    *,
    max_states: int | None = None,
    only_witnesses: bool = False,
    progress: Callable[[int], None] | None = None,
    compiled: bool = False,
) -> Exploration:
    """As :func:`explore`, over a network that is packed already; ``events`` are those of the packed network.

    With ``compiled`` the compiled code is used from the first state, if Numba is there: who
    searches many times loads it once.
    """
    search = _Search(packed, max_states, compiled=compiled)
    while search.unfinished() and not (only_witnesses and search.has_all_witnesses):
        search.go_on()
        if progress is not None:
            progress(search.found_states)
    return Exploration(
        states=search.found_states,
        transitions=int(search.progress[_kernel.TRANSITIONS]),
        complete=search.expanded == search.found_states,
        witnesses={
            anomaly: tuple(events[event] for event in search.path(int(state)))
            for anomaly, state in zip(search.packed.anomalies, search.found, strict=True)
            if state >= 0
        },
        compiled=search.arrays is not None,
    )


class _Search:
    """One search in progress: the buffers of the kernel, as lists or (once compiled) as arrays."""

    def __init__(self, packed: Packed, max_states: int | None, *, compiled: bool = False) -> None:
        self.packed = packed
        self.max_states = max_states
        self.arrays: Callable[[list[int]], Any] | None = None
        self.kernel: Any = _kernel
        self.fixed: list[Any] = [
            packed.words,
            *(getattr(packed, name) for name in ("word", "shift", "mask", "first", "free", "who", "where", "table")),
            *(getattr(packed, name) for name in ("watchers", "mark", "always", "at_rest")),
        ]
        self.found: Any = [
            0 if _marks_of_the_first(packed) >> place & 1 else -1 for place in range(len(packed.anomalies))
        ]
        self.progress: Any = [0, 1, 0]
        self.scratch: list[Any] = [[0] * len(packed.word), [0] * packed.words]
        self.states: Any = list(packed.initial)
        self.parent: Any = [-1]
        self.via: Any = [-1]
        self.slots: Any = []
        if compiled:
            self._compile()
        self._room_for(max(_FIRST_ROOM, 4 * len(packed.free)))

    @property
    def expanded(self) -> int:
        return int(self.progress[_kernel.HEAD])

    @property
    def found_states(self) -> int:
        return int(self.progress[_kernel.TAIL])

    @property
    def has_all_witnesses(self) -> bool:
        """Whether everything is found and no shorter way to any of it can come: nothing nearer is left to expand."""
        return all(0 <= state < self.expanded for state in self.found)

    def unfinished(self) -> bool:
        within = self.max_states is None or self.found_states < self.max_states
        return self.expanded < self.found_states and within

    def go_on(self) -> None:
        """Expand until the room is used up, the compiled code pays, or the limit is near."""
        target = self._target()
        if self.found_states + len(self.packed.free) > min(len(self.parent), len(self.slots) // 2):
            self._room_for(2 * len(self.parent))
        before = self.expanded
        self.kernel.search(
            *self.fixed,
            self.states,
            self.parent,
            self.via,
            self.slots,
            self.progress,
            self.found,
            target,
            *self.scratch,
        )
        if self.arrays is None and (self.found_states >= _PLAIN_STATES or self.expanded == before):
            self._compile()

    def _target(self) -> int:
        bounds = [len(self.parent)]
        if self.max_states is not None:
            bounds.append(self.max_states)
        if self.arrays is None and _numba_is_there():
            bounds.append(_PLAIN_STATES)
        return max(min(bounds), self.found_states)

    def path(self, state: int) -> list[int]:
        """The events that lead to ``state``, from the first."""
        events = []
        while self.parent[state] >= 0:
            events.append(int(self.via[state]))
            state = int(self.parent[state])
        return events[::-1]

    def _room_for(self, room: int) -> None:
        self.states = self._grown(self.states, room * self.packed.words, 0)
        self.parent = self._grown(self.parent, room, -1)
        self.via = self._grown(self.via, room, -1)
        self.slots = self._grown([], 1 << (2 * room - 1).bit_length(), _kernel.EMPTY)
        self.kernel.rehash(self.packed.words, self.states, self.found_states, self.slots)

    def _grown(self, buffer: Any, length: int, fill: int) -> Any:
        if self.arrays is None:
            return buffer + [fill] * (length - len(buffer))
        import numpy as np

        grown = np.full(length, fill, dtype=np.int64)
        grown[: len(buffer)] = buffer
        return grown

    def _compile(self) -> None:
        if not _numba_is_there():
            return
        from ackfsm.explore import _compiled

        self.kernel, self.arrays = _compiled, _compiled.array
        self.fixed[1:] = [self.arrays(buffer) for buffer in self.fixed[1:]]
        self.scratch = [self.arrays(buffer) for buffer in self.scratch]
        for name in ("states", "parent", "via", "slots", "progress", "found"):
            setattr(self, name, self.arrays(getattr(self, name)))


def _marks_of_the_first(packed: Packed) -> int:
    """The anomalies, as bits, that the initial state is."""
    bits = 0
    for i, mark in zip(packed.watchers, packed.mark, strict=True):
        bits |= packed.always[mark + ((packed.initial[packed.word[i]] >> packed.shift[i]) & packed.mask[i])]
    return bits


def _numba_is_there() -> bool:
    return importlib.util.find_spec("numba") is not None
