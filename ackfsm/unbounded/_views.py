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

from ackfsm.unbounded._columns import Ghost
from ackfsm.unbounded._ghosts import LOST
from ackfsm.unbounded._reasons import NotProvedError
from ackfsm.unbounded._spaces import Ints, Space
from ackfsm.unbounded._steps import Level, Spaces, Step, steps_of
from ackfsm.unbounded._tables import Role

__all__ = ["Views", "pack_views"]

Words = npt.NDArray[np.uint64]

_BITS = 21
_WORD = 64
_NO_LIMIT = 1 << 40
_POSITIONS = {
    1: ((Role.EARLIER,), (Role.LATER,)),
    2: ((Role.EARLIER,) * 2, (Role.LATER, Role.EARLIER), (Role.LATER,) * 2),
}
"""Where a message that the view does not hold can be: what its events are to each message of the view."""


def pack_views(machines: Ints, slots: Sequence[Ints]) -> Ints:
    """The views as one number each, in whose order they are kept.

    Raises :class:`NotProvedError` where there are more states than can be packed.
    """
    packed = machines
    for slot in slots:
        packed = (packed << _BITS) | slot
    return packed


class Views:
    """The views of a level, as arrays: the state of the system's machines, and of the messages in each of the slots."""

    def __init__(
        self,
        spaces: Spaces,
        level: Level,
        *,
        third: bool,
        max_states: int,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.spaces = spaces
        self.level = level
        self.steps = steps_of(spaces, level, third=third and level is not Level.ALONE)
        self._within = [step for step in self.steps if not step.third]
        self._thirds = [step for step in self.steps if step.third]
        self._max_states = max_states
        self._progress = progress
        self._words = (len(spaces.system.events) + _WORD - 1) // _WORD
        self.packed: Ints = np.zeros(1, np.int64)
        self._done: Words = np.zeros((1, len(_POSITIONS[level.slots]), self._words), np.uint64)
        self._find()

    def __len__(self) -> int:
        return len(self.packed)

    @property
    def machines(self) -> Ints:
        """The state of the system's machines in each view."""
        return self.packed >> (_BITS * self.level.slots)

    @property
    def slots(self) -> list[Ints]:
        """The state of each message of each view, the earlier one first."""
        return _slots(self.packed, self.level.slots)

    @property
    def first(self) -> int:
        """Where the first view is: every machine in its first state."""
        return int(self.index(np.zeros(1, np.int64))[0])

    def index(self, packed: Ints) -> Ints:
        """Where these views are among the views; -1 for those that are not."""
        at = np.minimum(np.searchsorted(self.packed, packed), len(self.packed) - 1)
        return np.where(self.packed[at] == packed, at, -1)

    def after(self, step: Step, views: Ints) -> tuple[Ints, Ints]:
        """Which of ``views`` (packed) the step leads on from, and where to, packed; what is unreal is left out."""
        slots = self.level.slots
        target = self.spaces.machines.after[step.system, views >> (_BITS * slots)]
        at = np.flatnonzero(target >= 0)
        parts = [target[at]]
        for number, of_slot in zip(step.slots, _slots(views[at], slots), strict=True):
            parts.append(self.spaces.message.after[number, of_slot])
        enabled = np.ones(len(at), np.bool_)
        for part in parts[1:]:
            enabled &= part >= 0
        machines, *messages = (part[enabled] for part in parts)
        real = self._real(machines, messages)
        return at[enabled][real], pack_views(machines[real], [message[real] for message in messages])

    def may_happen(self, step: Step, views: Ints) -> Ints:
        """Those of ``views`` (by their index) in which the step is possible, as far as others are concerned."""
        if not step.third:
            return views
        position = _POSITIONS[self.level.slots].index(step.roles)
        word, bit = divmod(step.event, _WORD)
        possible: npt.NDArray[np.bool_] = (self._done[views, position, word] >> np.uint64(bit)) & np.uint64(1) == 1
        return views[possible]

    def broken_ghosts(self) -> list[Ghost]:
        """The ghosts of which some view shows that the sum of them is perhaps not the number of the counter."""
        return [ghost for ghost in self.spaces.system.ghosts if self._is_broken(ghost)]

    def owned(self, machines: Ints, message: Ints) -> Words:
        """The events of a message that happen in these states, as bits, as far as it and the system are concerned."""
        by_system, by_message = self.enabled_by_system(), self.enabled_by_message(Role.OWN)
        return cast("Words", by_system[machines] & by_message[message])

    def _is_broken(self, ghost: Ghost) -> bool:
        machines = self.machines
        counts = self._limits(ghost)[machines] != 0
        for slot in self.slots:
            values = self.spaces.message.states[slot, ghost.ghost]
            if (values == LOST).any():
                return True
            downs = np.zeros(self._words, np.uint64)
            for event in ghost.moves.down:
                downs[event // _WORD] |= np.uint64(1 << event % _WORD)
            owned = self.owned(machines, slot) & downs
            if (owned.any(axis=1) & counts & (values == 0)).any():
                return True
        return False

    def _find(self) -> None:
        new = self.packed
        while True:
            while new.size:
                new = self._insert(self._closer(new))
            new = self._insert(self._by_others())
            if not new.size:
                return

    def _closer(self, views: Ints) -> list[Ints]:
        self._expand(views)
        return [self.after(step, views)[1] for step in self._within]

    def _expand(self, views: Ints) -> None:
        self.spaces.machines.expand(views >> (_BITS * self.level.slots))
        for slot in _slots(views, self.level.slots):
            self.spaces.message.expand(slot)
        if max(len(self.spaces.machines), len(self.spaces.message)) >= 1 << _BITS:
            raise NotProvedError(f"there are more than {1 << _BITS:,} states of one part of the system")

    def _insert(self, found: list[Ints]) -> Ints:
        every = np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
        new = every[self.index(every) < 0]
        if new.size:
            at = np.searchsorted(self.packed, new)
            self.packed = np.insert(self.packed, at, new)
            self._done = np.insert(self._done, at, np.uint64(0), axis=0)
            if self._progress is not None:
                self._progress(len(self))
        if len(self) > self._max_states:
            raise NotProvedError(f"there are more than {self._max_states:,} views at the level {self.level}")
        return new

    def _by_others(self) -> list[Ints]:
        """The views after what messages do that the view does not hold, where that was not possible before."""
        if not self._thirds:
            return []
        allowed = self._allowed()
        fresh = allowed & ~self._done
        self._done = allowed
        found = []
        touched = np.flatnonzero(fresh.any(axis=(1, 2)))
        fresh, views = fresh[touched], self.packed[touched]
        for step in self._thirds:
            position = _POSITIONS[self.level.slots].index(step.roles)
            word, bit = divmod(step.event, _WORD)
            possible = (fresh[:, position, word] >> np.uint64(bit)) & np.uint64(1) == 1
            found.append(self.after(step, views[possible])[1])
        return found

    def _allowed(self) -> Words:
        """For each view and each place of another message the events, as bits, that are possible there."""
        machines, slots = self.machines, self.slots
        places = _POSITIONS[self.level.slots]
        if self.level is Level.CHAOS:
            return np.full((len(self), len(places), self._words), ~np.uint64(0))
        if self.level is Level.LOCAL:
            owned = _any_of(machines, self.owned(machines, slots[0]), machines)
            return np.repeat(owned[:, None, :], len(places), axis=1)
        halves = [pack_views(machines, [slot]) for slot in slots]
        owns = [self.owned(machines, slot) for slot in slots]
        before = [_any_of(halves[1], owns[0], half) for half in halves]
        behind = [_any_of(halves[0], owns[1], half) for half in halves]
        return np.stack([before[0] & before[1], behind[0] & before[1], behind[0] & behind[1]], axis=1)

    def enabled_by_system(self) -> Words:
        """For each state of the system's machines the events, as bits, that they let happen."""
        return _as_bits(
            self.spaces.machines, [(e, n) for n, (e, _) in enumerate(self.spaces.system_steps)], self._words
        )

    def enabled_by_message(self, role: Role) -> Words:
        """For each state of a message the events, as bits, that it lets happen in this role."""
        steps = [(event, number) for (its, event), number in self.spaces.message_steps.items() if its is role]
        return _as_bits(self.spaces.message, steps, self._words)

    def _real(self, machines: Ints, messages: Sequence[Ints]) -> npt.NDArray[np.bool_]:
        """Whether no counter is below what the messages of the view have counted."""
        real = np.ones(len(machines), np.bool_)
        for ghost in self.spaces.system.ghosts:
            counted = np.zeros(len(machines), np.int64)
            for message in messages:
                values = self.spaces.message.states[message, ghost.ghost]
                counted += np.where(values == LOST, 0, values)
            real &= counted <= self._limits(ghost)[machines]
        return real

    def _limits(self, ghost: Ghost) -> Ints:
        limits = self.spaces.system.machines[ghost.counter].limits
        highest = np.array([_NO_LIMIT if limit is None else limit for limit in limits], np.int64)
        return highest[self.spaces.machines.states[:, ghost.counter]]


def _slots(packed: Ints, slots: int) -> list[Ints]:
    mask = (1 << _BITS) - 1
    return [(packed >> (_BITS * (slots - 1 - slot))) & mask for slot in range(slots)]


def _as_bits(space: Space, steps: Sequence[tuple[int, int]], words: int) -> Words:
    found = np.zeros((len(space), words), np.uint64)
    for event, number in steps:
        found[:, event // _WORD] |= (space.after[number] >= 0).astype(np.uint64) << np.uint64(event % _WORD)
    return found


def _any_of(groups: Ints, words: Words, asked: Ints) -> Words:
    """For each of ``asked`` the bits of all ``words`` of its group; none where there is no such group."""
    order = np.argsort(groups, kind="stable")
    names, first = np.unique(groups[order], return_index=True)
    joined = np.bitwise_or.reduceat(words[order], first, axis=0)
    at = np.minimum(np.searchsorted(names, asked), len(names) - 1)
    return np.where((names[at] == asked)[:, None], joined[at], np.uint64(0))
