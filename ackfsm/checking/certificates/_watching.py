"""What machines that watch can reach beside the views (Lemma 2), and which message brought something about (Lemma 4).

States of what watches are bits of an integer: one for each view.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ackfsm.checking.certificates._system import Moves, Part, Role, Watcher
from ackfsm.checking.certificates._views import Kind, Steps, Views, numbers_in

NOTHING = Part("nothing", ("",), 0, {})
"""Watches for nothing, where only what messages do is asked about."""


_BITS_OF_A_BYTE = 8


class Waiting(NamedTuple):
    """States into which only events of other messages lead: of a machine of a message, or (None) of what watches it."""

    machine: int | None
    states: frozenset[int]


def brought_about_by_others(part: Part, state: int) -> frozenset[int] | None:
    """The least set with ``state``, without the first state, that only events of other messages lead into, if any."""
    found, new = {state}, [state]
    while new:
        wanted = new.pop()
        if wanted == part.initial:
            return None
        for (role, _), moves in part.moves.items():
            if role in {Role.OWN, Role.SYSTEM}:
                entering = {before for before, after in enumerate(moves) if wanted in after} - found
                found |= entering
                new += entering
    return frozenset(found)


class _Image(dict[int, int]):
    """The states after an event, for each set of states before it."""

    def __init__(self, moves: Moves | None) -> None:
        super().__init__()
        self._moves = None if moves is None else [sum(1 << to for to in after) for after in moves]

    def __missing__(self, states: int) -> int:
        found = states
        if self._moves is not None:
            found = 0
            for state in numbers_in(states):
                found |= self._moves[state]
        self[states] = found
        return found


class _CauseImage(dict[int, int]):
    """As :class:`_Image`, with each state twice: the higher bits are those where the other message is the cause.

    ``before`` and ``after`` are the states in which the machine that waits is in what others have brought it into.
    """

    def __init__(self, image: _Image, size: int, before: int, after: int, *, by_other: bool) -> None:
        super().__init__()
        self._image, self._size, self._before, self._after = image, size, before, after
        self._by_other = by_other

    def __missing__(self, states: int) -> int:
        without, caused = states & ((1 << self._size) - 1), states >> self._size
        stays, stays_caused = self._image[without & self._before], self._image[caused & self._before]
        enters = self._image[(without | caused) & ~self._before]
        still = (stays_caused | (enters if self._by_other else 0)) & self._after
        no_more = (stays | (0 if self._by_other else enters)) & self._after
        no_more |= (stays | stays_caused | enters) & ~self._after
        found = self[states] = no_more | still << self._size
        return found


class Products:
    """The views of an invariant beside what watches, found anew for each machine and each place that it watches."""

    def __init__(self, views: Views, steps: Steps) -> None:
        self.views, self._steps = views, steps
        self._caused: dict[tuple[int, Waiting, int], Sequence[int]] = {}

    def reached(self, part: Part, slot: int | None, begun: Iterable[int] | None = None) -> list[int]:
        """For each view the states that ``part`` reaches as it watches the message in ``slot``, or the system.

        It begins in the first view, or in each of those ``begun``.
        """
        images = [_Image(_moves(part, kind, slot)) for kind in self._steps.kinds]
        masks = [0] * len(self.views.views)
        first, target, kinds = self._steps.first, self._steps.target, self._steps.kind
        fresh = self._begin(masks, part, begun)
        while fresh:
            later: dict[int, int] = {}
            for view, states in fresh.items():
                for at in range(first[view], first[view + 1]):
                    to = target[at]
                    new = images[kinds[at]][states] & ~masks[to]
                    if new:
                        masks[to] |= new
                        later[to] = later.get(to, 0) | new
            fresh = later
        return masks

    def reached_in_slots(self, watcher: Watcher) -> list[list[int]]:
        """As :meth:`reached`, for each slot of a message that is watched, or for the system."""
        slots: Sequence[int | None] = range(self.views.level.messages) if watcher.of_message else (None,)
        return [self.reached(watcher.part, slot) for slot in slots]

    def is_marked(self, watcher: Watcher, reached: Sequence[Sequence[int]], state: int) -> bool:
        """Whether a state is ``reached``; one that others bring about, in a pair with the message that did."""
        if not any(states >> state & 1 for of_slot in reached for states in of_slot):
            return False
        brought = brought_about_by_others(watcher.part, state) if len(reached) > 1 else None
        return brought is None or self._is_caused(watcher.part, brought, state)

    def caused(self, part: Part, waiting: Waiting, slot: int) -> Sequence[int]:
        """For each view the states of ``part`` in which the other message is the cause for the one in ``slot``."""
        key = id(part), waiting, slot
        if key not in self._caused:
            size = len(part.states)
            found = [states >> size for states in self._with_causes(part, waiting, slot)]
            self._caused[key] = bytes(found) if size <= _BITS_OF_A_BYTE else found
        return self._caused[key]

    def forget(self, part: Part) -> None:
        """Give back the memory that the causes for ``part`` take."""
        self._caused = {key: found for key, found in self._caused.items() if key[0] != id(part)}

    def _is_caused(self, part: Part, states: frozenset[int], state: int) -> bool:
        """Whether in some pair the other message has brought what watches into ``states``, and it is in ``state``."""
        waiting = Waiting(None, states)
        return any(caused >> state & 1 for slot in (0, 1) for caused in self.caused(part, waiting, slot))

    def _with_causes(self, part: Part, waiting: Waiting, slot: int) -> list[int]:
        inside = self._inside(waiting, slot)
        images = [self._cause_images(part, kind, waiting, slot) for kind in self._steps.kinds]
        masks = [0] * len(self.views.views)
        first, target, kinds = self._steps.first, self._steps.target, self._steps.kind
        fresh = self._begin(masks, part)
        while fresh:
            later: dict[int, int] = {}
            for view, states in fresh.items():
                before = inside[view] << 1
                for at in range(first[view], first[view + 1]):
                    to = target[at]
                    new = images[kinds[at]][before | inside[to]][states] & ~masks[to]
                    if new:
                        masks[to] |= new
                        later[to] = later.get(to, 0) | new
            fresh = later
        return masks

    def _begin(self, masks: list[int], part: Part, begun: Iterable[int] | None = None) -> dict[int, int]:
        if begun is None:
            begun = () if self.views.initial is None else (self.views.initial,)
        fresh = dict.fromkeys(begun, 1 << part.initial)
        for view, states in fresh.items():
            masks[view] = states
        return fresh

    def _inside(self, waiting: Waiting, slot: int) -> bytes:
        """For each view whether the machine of the message in ``slot`` waits; nothing is known here of what watches."""
        if waiting.machine is None:
            return bytes(len(self.views.views))
        states = self.views.messages.space.states
        waits = [state[waiting.machine] in waiting.states for state in states]
        return bytes(waits[view[1 + slot]] for view in self.views.views)

    def _cause_images(self, part: Part, kind: Kind, waiting: Waiting, slot: int) -> Sequence[_CauseImage]:
        """For whether the machine waits before the event, and after it (two bits), the states that it leads to."""
        image, size = _Image(_moves(part, kind, slot)), len(part.states)
        by_other = kind.roles[1 - slot] is Role.OWN
        if waiting.machine is None:
            states = sum(1 << state for state in waiting.states)
            return [_CauseImage(image, size, states, states, by_other=by_other)] * 4
        every = (1 << size) - 1
        return [
            _CauseImage(image, size, every * before, every * after, by_other=by_other)
            for before in (0, 1)
            for after in (0, 1)
        ]


def _moves(part: Part, kind: Kind, slot: int | None) -> Moves | None:
    if slot is not None:
        return part.moves.get((kind.roles[slot], kind.event))
    return part.moves.get((Role.SYSTEM if kind.of_system else Role.OWN, kind.event))
