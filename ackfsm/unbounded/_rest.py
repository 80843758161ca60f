"""Which marks a system at rest can show: the letters of each state of the system, and the words that they make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ackfsm.unbounded._causes import Causes
from ackfsm.unbounded._spaces import Ints
from ackfsm.unbounded._steps import Level
from ackfsm.unbounded._tables import Role
from ackfsm.unbounded._views import Views, Words
from ackfsm.unbounded._words import Letter, word_exists

__all__ = ["Rest"]

_Question = tuple[int, int, Sequence[int], Sequence[int]]
"""A state of the system, that of a marked message, and those that messages before and behind it may be in."""


class Rest:
    """The letters of some views, and whether marked ones of them can be at rest (lemma 3 of spec/any.md)."""

    def __init__(self, views: Views) -> None:
        self.views = views
        system = views.spaces.system
        self._awaited = _bits(i for i, event in enumerate(system.events) if not event.may_never_happen)
        self._of_system = _bits(i for i, event in enumerate(system.events) if not event.of_message)
        self._by_machines = _ints(views.enabled_by_system())
        self._refused = {role: _ints(~views.enabled_by_message(role)) for role in Role}
        self._owns = _ints(views.enabled_by_message(Role.OWN))
        self._by_state = _letters_by_system(views)
        self._hope: dict[int, bool] = {}
        self._letters: dict[tuple[int, int], Letter] = {}
        self._words: dict[tuple[frozenset[Letter], Letter, frozenset[Letter], int, int], bool] = {}

    def letter(self, machines: int, message: int) -> Letter:
        """What a message in this state means for rest, while the system's machines are in that one."""
        known = self._letters.get((machines, message))
        if known is None:
            possible = self._by_machines[machines] & self._awaited
            of_others = possible & ~self._of_system
            known = self._letters[machines, message] = Letter(
                self._owns[message] & of_others,
                self._refused[Role.LATER][message] & of_others,
                self._refused[Role.EARLIER][message] & of_others,
                self._refused[Role.SYSTEM][message] & possible & self._of_system,
                self._counted(message),
            )
        return known

    def is_possible(
        self,
        reached: Sequence[npt.NDArray[np.bool_]],
        marked: frozenset[int],
        *,
        of_system: bool,
        causes: Causes | None = None,
    ) -> bool:
        """Whether a word at rest shows a ``marked`` state.

        ``reached`` are for each slot the states of what watches the message in it, with each view; of what watches the
        system there is one, the same for all slots.  With ``causes`` (of what watches a message; of :data:`NOTHING`
        where the system is watched) a word has the causes of its letters.
        """
        beside = self.views.slots if len(self.views.slots) > 1 else None
        for state in sorted(marked):
            among = [self._hopeful(np.flatnonzero(of_slot[:, state])) for of_slot in reached]
            found = self._in_pairs(among, beside) if beside is not None else self._alone(among[0], of_system=of_system)
            for each in found:
                watching = 0 if of_system else state
                if self._word(*each) and (causes is None or self._word_with_causes(*each, watching, causes)):
                    return True
        return False

    def _hopeful(self, views: Ints) -> Ints:
        """Those of ``views`` in whose state of the system some message refuses each event of the system."""
        machines = self.views.machines[views]
        states, of_view = np.unique(machines, return_inverse=True)
        hope = np.array([self._has_hope(machines) for machines in states.tolist()], np.bool_)
        return views[hope[of_view]]

    def _has_hope(self, machines: int) -> bool:
        known = self._hope.get(machines)
        if known is None:
            system, _ = self.owed(machines)
            for message in self._by_state[machines]:
                system &= ~self.letter(machines, message).system
            known = self._hope[machines] = not system
        return known

    def _alone(self, marked: Ints, *, of_system: bool) -> Iterator[_Question]:
        """One question for each marked view; the other messages are in any state that the views have beside it."""
        of_state: dict[int, list[int]] = defaultdict(list)
        pairs = np.stack([self.views.machines[marked], self.views.slots[0][marked]], axis=1)
        for machines, message in pairs.tolist():
            of_state[machines].append(message)
        for machines, messages in of_state.items():
            others = messages if of_system else self._by_state[machines]
            for message in messages:
                beside = () if self.views.level is Level.ALONE else tuple(others)
                yield machines, message, beside, beside

    def _in_pairs(self, among: Sequence[Ints], slots: Sequence[Ints]) -> Iterator[_Question]:
        """One question for each marked message; the others form a pair with it, on their side of it."""
        beside: dict[tuple[int, int], tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
        for slot, marked in enumerate(among):
            other = 1 - slot
            rows = np.stack([self.views.machines[marked], slots[slot][marked], slots[other][marked]], axis=1)
            for machines, message, another in rows.tolist():
                beside[machines, message][other].add(another)
        for (machines, message), (left, right) in beside.items():
            yield machines, message, tuple(left), tuple(right)

    def _word(self, machines: int, message: int, left: Sequence[int], right: Sequence[int]) -> bool:
        before = frozenset(self.letter(machines, other) for other in left)
        behind = frozenset(self.letter(machines, other) for other in right)
        system, counted = self.owed(machines)
        key = before, self.letter(machines, message), behind, system, counted
        if key not in self._words:
            self._words[key] = word_exists(before, key[1], behind, system=system, counted=counted)
        return self._words[key]

    def _word_with_causes(  # noqa: PLR0913, PLR0917 - a question, and what else the word has to have
        self, machines: int, message: int, left: Sequence[int], right: Sequence[int], state: int, causes: Causes
    ) -> bool:
        """Whether a word still exists if it has to have a cause for each machine that waits for one."""
        sides = [[(other, self.letter(machines, other)) for other in side] for side in (left, right)]
        system, counted = self.owed(machines)
        ghosts = len(self.views.spaces.system.ghosts)
        for number, waiting in enumerate(causes.waiting(message, state)):
            bit = 1 << (ghosts + number)
            counted |= bit
            for side, found in zip(sides, causes.beside(waiting, machines, message, state), strict=True):
                side[:] = [
                    (other, letter._replace(counted=letter.counted | bit) if other in found else letter)
                    for other, letter in side
                ]
        marked = self.letter(machines, message)
        before, behind = ({letter for _, letter in side} for side in sides)
        if not word_exists(before, marked, behind, system=system, counted=counted):
            return False
        chained = self._chained(machines, [*sides[0], (message, marked), *sides[1]], causes)
        before, behind = set(chained[: len(sides[0])]), set(chained[len(sides[0]) + 1 :])
        return word_exists(before, chained[len(sides[0])], behind, system=system, counted=counted)

    def _chained(self, machines: int, letters: Sequence[tuple[int, Letter]], causes: Causes) -> list[Letter]:
        """The letters with one more event for each way to wait: whoever waits needs it refused, which a cause does."""
        waits = {message: causes.of_messages.waiting(message, 0) for message, _ in letters}
        found = [letter for _, letter in letters]
        events = len(self.views.spaces.system.events)
        for number, waiting in enumerate(dict.fromkeys(each for every in waits.values() for each in every)):
            bit = 1 << (events + number)
            before, behind = causes.of_messages.among(waiting, machines)
            for at, (message, _) in enumerate(letters):
                letter = found[at]
                found[at] = letter._replace(
                    needs=letter.needs | bit * (waiting in waits[message]),
                    later=letter.later | bit * (message in before),
                    earlier=letter.earlier | bit * (message in behind),
                )
        return found

    def owed(self, machines: int) -> tuple[int, int]:
        """The events of the system that messages have to refuse, and the counters that they have to hold a part of."""
        counted = 0
        for number, ghost in enumerate(self.views.spaces.system.ghosts):
            state = self.views.spaces.machines.states[machines, ghost.counter]
            if self.views.spaces.system.machines[ghost.counter].limits[state] != 0:
                counted |= 1 << number
        return self._by_machines[machines] & self._awaited & self._of_system, counted

    def _counted(self, message: int) -> int:
        ghosts = self.views.spaces.system.ghosts
        states = self.views.spaces.message.states[message]
        return _bits(number for number, ghost in enumerate(ghosts) if states[ghost.ghost])


def _letters_by_system(views: Views) -> dict[int, list[int]]:
    """For each state of the system's machines the states that a message can be in."""
    found: dict[int, list[int]] = defaultdict(list)
    for slot in views.slots:
        pairs = np.unique(np.stack([views.machines, slot], axis=1), axis=0)
        for machines, message in pairs.tolist():
            found[machines].append(message)
    return found


def _bits(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in numbers)


def _ints(words: Words) -> list[int]:
    """Rows of words as whole numbers, the first word lowest."""
    return [int.from_bytes(row.astype("<u8").tobytes(), "little") for row in words]
