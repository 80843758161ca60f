"""The fixpoint of views: all that the system and one or two of any number of messages can be in (lemma 1).

A set of views that has the first one and is closed under every step.  What a message that the view does not hold may do
is what the level says: anything, what some view of the same state of the system owns, or what some view of the same
state of the system *and of each message of the view* owns, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from ackfsm.checking.unbounded import _compiled
from ackfsm.checking.unbounded._columns import Ghost
from ackfsm.checking.unbounded._ghosts import LOST
from ackfsm.checking.unbounded._kernel import (
    BITS,
    STEPS_OF_A_WORD,
    Edges,
    PartArrays,
    PossibleSteps,
    StepArrays,
    ViewArrays,
)
from ackfsm.checking.unbounded._reasons import NotProvedError
from ackfsm.checking.unbounded._spaces import Ints, Space, empty_lookup, enlarged
from ackfsm.checking.unbounded._steps import Level, Spaces, Step, steps_of
from ackfsm.checking.unbounded._tables import Role
from ackfsm.terms import DefectError

Words = npt.NDArray[np.int64]
"""Events as bits, in words of 64."""

_WORD = 64
_ROOM = 1 << 10
_BATCH = 1 << 16
_NO_LIMIT = 1 << 40
_EDGES_OF_A_VIEW = 8
"""Room is made for so many steps of each view at first."""
_FULL_WORD = (1 << STEPS_OF_A_WORD) - 1
_PRIME = 67
"""It leaves another remainder for each single bit of a word."""
_NO_HALVES = np.zeros((0, 0), np.bool_)
_POSITIONS = {
    1: ((Role.EARLIER,), (Role.LATER,)),
    2: ((Role.EARLIER,) * 2, (Role.LATER, Role.EARLIER), (Role.LATER,) * 2),
}
"""Where a message that the view does not hold can be: what its events are to each message of the view."""


class Views:
    """The views of a level, as arrays: the state of the system's machines, and of the messages in each of the slots.

    Where a ghost is ``broken`` they are not finished: some view shows that the sum of the ghosts is perhaps not the
    number of their counter, and the views have to be made again with ghosts that need not be exact.  If ``halves`` are
    given, for each state of the system those of a message that it is known to be met with, others are left out.  Where
    states of a message were made one, views have the one that is kept.
    """

    def __init__(  # noqa: PLR0913 - a level of a system, and how much is looked at
        self,
        spaces: Spaces,
        level: Level,
        *,
        third: bool,
        max_states: int,
        progress: Callable[[int], None] | None = None,
        halves: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        self.spaces = spaces
        self.level = level
        self.steps = steps_of(spaces, level, third=third and level is not Level.ALONE)
        self._max_states = max_states
        self._progress = progress
        self._words = (len(spaces.system.events) + _WORD - 1) // _WORD
        self.halves = _NO_HALVES if halves is None else halves
        self._step_arrays = _step_arrays(spaces, level, self.steps, _of_representatives(self.halves, spaces.message))
        self._possible = _no_steps(level.slots, self._step_arrays.by_others.shape[1])
        self.arrays = _first_view(level.slots, len(_POSITIONS[level.slots]), self._words)
        self.broken: list[Ghost] = []
        self._find()

    def __len__(self) -> int:
        return int(self.arrays.used[0])

    @property
    def packed(self) -> Ints:
        """The views, each as one number."""
        return cast("Ints", self.arrays.packed[: len(self)])

    @property
    def machines(self) -> Ints:
        """The state of the system's machines in each view."""
        return self.packed >> (BITS * self.level.slots)

    @property
    def slots(self) -> list[Ints]:
        """The state of each message of each view, the earlier one first."""
        return _slots(self.packed, self.level.slots)

    def of_all_states(self, *parts: Ints) -> Sequence[Ints]:
        """States of the system and of messages, with every one that was made one with that of a message.

        Of those in ``parts``, the system's first; or of all ``machines`` and ``slots``.
        """
        parts = parts or (self.machines, *self.slots)
        if self.spaces.message.representatives is None:
            return parts
        machines, messages = np.nonzero(self.halves)
        kept = (machines << BITS) | self.spaces.message.representatives[messages]
        order = np.argsort(kept, kind="stable")
        kept, messages = kept[order], messages[order]
        for slot in range(1, len(parts)):
            asked = (parts[0] << BITS) | parts[slot]
            first = np.searchsorted(kept, asked)
            number = np.searchsorted(kept, asked, side="right") - first
            repeated = [np.repeat(part, number) for part in parts]
            within = np.arange(len(repeated[0])) - np.repeat(np.cumsum(number) - number, number)
            repeated[slot] = messages[np.repeat(first, number) + within]
            parts = tuple(repeated)
        return parts

    @property
    def first(self) -> int:
        """Where the first view is: every machine in its first state."""
        return 0

    def edges(self) -> Edges:
        """The steps between the views.

        Raises :class:`ackfsm.terms.DefectError` if one of them leads out of the views, which should be closed.
        """
        room = _EDGES_OF_A_VIEW * len(self) + len(self.steps)
        edges = Edges(
            np.zeros(len(self) + 1, np.int64),
            np.zeros(room, np.int16),
            np.zeros(room, np.int32),
            np.zeros((len(self), self._step_arrays.by_others.shape[1]), np.int64),
        )
        position = 0
        while (position := _compiled.find_edges(*self._all_arrays(), edges, position)) < len(self):
            if position < 0:
                raise DefectError(
                    "a step leads out of the views for any number of messages, which should be closed under it"
                )
            edges = enlarged(edges, len(edges.step), "step", "target")
        return edges

    def _all_arrays(self) -> tuple[PartArrays, PartArrays, StepArrays, PossibleSteps, ViewArrays, Ints]:
        machines, message = self.spaces.machines.arrays, self.spaces.message.arrays
        self._possible = _with_room_for(self._possible, len(machines.hashes), len(message.hashes))
        targets = np.empty((2, len(self.steps)), np.int64)
        return machines, message, self._step_arrays, self._possible, self.arrays, targets

    def broken_ghosts(self, first: int) -> list[Ghost]:
        """The ghosts that some view, from ``first`` on, shows to be broken."""
        packed = self.packed[first:]
        machines = packed >> (BITS * self.level.slots)
        owned = self.enabled_by_system(), self.enabled_by_message(Role.OWN)
        messages = _slots(packed, self.level.slots)
        exact = [ghost for ghost in self.spaces.system.ghosts if ghost.exact]
        return [ghost for ghost in exact if self._is_broken(ghost, machines, messages, owned)]

    def owned(self, machines: Ints, message: Ints) -> Words:
        """The events of a message that happen in these states, as bits, as far as it and the system are concerned."""
        by_system, by_message = self.enabled_by_system(), self.enabled_by_message(Role.OWN)
        return cast("Words", by_system[machines] & by_message[message])

    def _is_broken(self, ghost: Ghost, machines: Ints, messages: Sequence[Ints], enabled: tuple[Words, Words]) -> bool:
        by_system, by_message = enabled
        downs = np.zeros(self._words, np.int64)
        for event in ghost.moves.down:
            downs[event // _WORD] |= np.left_shift(np.int64(1), event % _WORD)
        values = self.spaces.message.states[:, ghost.ghost]
        down = np.where((self._limits(ghost) != 0)[:, None], by_system & downs, 0)
        for of_slot in messages:
            counted = values[of_slot]
            if (counted == LOST).any():
                return True
            empty = counted == 0
            if (down[machines[empty]] & by_message[of_slot[empty]]).any():
                return True
        return False

    def _find(self) -> None:
        closed = gathered = 0
        while True:
            checked, closed = closed, self._close(closed)
            self.broken = self.broken_ghosts(checked)
            if self.broken or not any(step.third for step in self.steps):
                return
            gathered = self._gather(gathered)
            self._spread()
            if closed == len(self):
                return

    def _close(self, position: int) -> int:
        while position < len(self):
            position = _compiled.close(
                *self._all_arrays(),
                *(position, position + _BATCH),
            )
            self._make_room()
        return position

    def _gather(self, position: int) -> int:
        """Find what messages own that views do not hold; where to go on when there are more views."""
        owned = self.enabled_by_system(), self.enabled_by_message(Role.OWN)
        while position < len(self):
            position = _compiled.gather(*owned, self.level.slots, self.arrays, position)
            self._make_room()
        return position

    def _spread(self) -> None:
        position, last, chaos = 0, len(self), int(self.level is Level.CHAOS)
        fresh = np.empty_like(self.arrays.done[0])
        while position < last:
            position = _compiled.spread(
                *self._all_arrays(),
                *(fresh, position, min(last, position + _BATCH), chaos),
            )
            self._make_room()

    def _make_room(self) -> None:
        """See to it that each of what grows has room for one more view and its steps; end where there are too many."""
        if self._progress is not None:
            self._progress(len(self))
        if len(self) > self._max_states:
            raise NotProvedError(f"there are more than {self._max_states:,} views at the level {self.level}")
        for space in (self.spaces.machines, self.spaces.message):
            space.make_room()
            if len(space) >= 1 << BITS:
                raise NotProvedError(f"there are more than {1 << BITS:,} states of one part of the system")
        room, needed = len(self.arrays.packed), len(self) + len(self.steps)
        if needed > room:
            arrays = enlarged(self.arrays, max(room, needed - room), "packed", "done", "half")
            self.arrays = arrays._replace(table=empty_lookup(len(arrays.packed)))
            _compiled.look_up(arrays.packed, len(self), self.arrays.table)
        halves, used = len(self.arrays.halves), int(self.arrays.used[1])
        if used + self.level.slots > halves:
            self._make_room_for_halves(halves)
            _compiled.look_up(self.arrays.halves, used, self.arrays.half_table)

    def _make_room_for_halves(self, more: int) -> None:
        """Have room for so many more halves of views; none of them is found by its number any more."""
        arrays = enlarged(self.arrays, more, "owned", "halves")
        self.arrays = arrays._replace(half_table=empty_lookup(len(arrays.halves)))

    def enabled_by_system(self) -> Words:
        """For each state of the system's machines the events, as bits, that they let happen."""
        return _as_bits(
            self.spaces.machines, [(e, n) for n, (e, _) in enumerate(self.spaces.system_steps)], self._words
        )

    def enabled_by_message(self, role: Role) -> Words:
        """For each state of a message the events, as bits, that it lets happen in this role."""
        steps = [(event, number) for (its, event), number in self.spaces.message_steps.items() if its is role]
        return _as_bits(self.spaces.message, steps, self._words)

    def _limits(self, ghost: Ghost) -> Ints:
        limits = self.spaces.system.machines[ghost.counter].limits
        highest = np.array([_NO_LIMIT if limit is None else limit for limit in limits], np.int64)
        return highest[self.spaces.machines.states[:, ghost.counter]]


def _slots(packed: Ints, slots: int) -> list[Ints]:
    mask = (1 << BITS) - 1
    return [(packed >> (BITS * (slots - 1 - slot))) & mask for slot in range(slots)]


def _of_representatives(halves: npt.NDArray[np.bool_], message: Space) -> npt.NDArray[np.bool_]:
    """The halves of the states of a message that are kept: those of all that are one with it."""
    if message.representatives is None:
        return halves
    found = np.zeros_like(halves)
    machines, messages = np.nonzero(halves)
    found[machines, message.representatives[messages]] = True
    return found


def _as_bits(space: Space, steps: Sequence[tuple[int, int]], words: int) -> Words:
    found = np.zeros((len(space), words), np.int64)
    _compiled.allowed_as_bits(space.arrays, np.array(steps, np.int64).reshape(len(steps), 2), found)
    return found


def _step_arrays(spaces: Spaces, level: Level, steps: Sequence[Step], halves: npt.NDArray[np.bool_]) -> StepArrays:
    places = _POSITIONS[level.slots]
    rows = [
        (step.event, step.system, *(step.slots * 2)[:2], places.index(step.roles) if step.third else -1)
        for step in steps
    ]
    ghosts = [ghost for ghost in spaces.system.ghosts if ghost.exact]
    limits = [spaces.system.machines[ghost.counter].limits for ghost in ghosts]
    table = np.full((len(ghosts), max(map(len, limits), default=0)), _NO_LIMIT, np.int64)
    for number, of_ghost in enumerate(limits):
        table[number, : len(of_ghost)] = [_NO_LIMIT if limit is None else limit for limit in of_ghost]
    by_others = [
        sum(1 << number for number, step in enumerate(steps) if step.third is third) for third in (False, True)
    ]
    words = -(-len(steps) // STEPS_OF_A_WORD)
    bit_of = np.zeros(_PRIME, np.int64)
    bit_of[[(1 << bit) % _PRIME for bit in range(STEPS_OF_A_WORD)]] = np.arange(STEPS_OF_A_WORD)
    return StepArrays(
        slots=level.slots,
        steps=np.array(rows, np.int64).reshape(len(rows), 5),
        by_others=np.array(
            [[(bits >> STEPS_OF_A_WORD * word) & _FULL_WORD for word in range(words)] for bits in by_others]
        ),
        bit_of=bit_of,
        counters=np.array([ghost.counter for ghost in ghosts], np.int64),
        ghosts=np.array([ghost.ghost for ghost in ghosts], np.int64),
        limits=table,
        lost=LOST,
        halves=halves,
    )


def _no_steps(slots: int, words: int) -> PossibleSteps:
    """Nothing is known of any state."""
    return PossibleSteps(
        system=np.zeros((0, words), np.int64),
        message=np.zeros((slots, 0, words), np.int64),
        system_stays=np.zeros((0, words), np.int64),
        message_stays=np.zeros((slots, 0, words), np.int64),
        known_system=np.zeros(0, np.bool_),
        known_message=np.zeros(0, np.bool_),
    )


def _with_room_for(possible: PossibleSteps, system: int, message: int) -> PossibleSteps:
    """The same for so many states of the system, and of a message."""
    more = system - len(possible.known_system)
    if more > 0:
        possible = enlarged(possible, more, "system", "system_stays", "known_system")
    more = message - len(possible.known_message)
    if more > 0:
        possible = enlarged(enlarged(possible, more, "message", "message_stays", axis=1), more, "known_message")
    return possible


def _first_view(slots: int, places: int, words: int) -> ViewArrays:
    table = empty_lookup(_ROOM)
    arrays = ViewArrays(
        packed=np.zeros(_ROOM, np.int64),
        done=np.zeros((_ROOM, places, words), np.int64),
        table=table,
        used=np.array([1, 0], np.int64),
        half=np.zeros((_ROOM, slots), np.int32),
        owned=np.zeros((_ROOM, 2, words), np.int64),
        halves=np.zeros(_ROOM, np.int64),
        half_table=empty_lookup(_ROOM),
    )
    _compiled.look_up(arrays.packed, 1, table)
    return arrays
