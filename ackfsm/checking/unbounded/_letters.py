"""The letters that views have: what the state of a message means for rest, in each state of the system."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from ackfsm.checking.unbounded._kernel import BITS
from ackfsm.checking.unbounded._spaces import Ints, distinct_rows
from ackfsm.checking.unbounded._tables import Role
from ackfsm.checking.unbounded._views import Views, Words
from ackfsm.checking.unbounded._words import Letter, best_letters, letters_at_rest


class Letters:
    """The letters of some views; ``by_state`` are, for each state of the system, the best of those that may be at rest.

    States of a message that mean the same for rest, whatever the state of the system, are of one *kind*.
    """

    def __init__(self, views: Views) -> None:
        self.views = views
        system = views.spaces.system
        self._awaited = _bits(i for i, event in enumerate(system.events) if not event.may_never_happen)
        self._of_system = _bits(i for i, event in enumerate(system.events) if not event.of_message)
        self._by_machines = _ints(views.enabled_by_system())
        words = [views.enabled_by_message(Role.OWN), *(~views.enabled_by_message(role) for role in _OTHERS)]
        counted = views.spaces.message.states[:, [ghost.ghost for ghost in system.ghosts]] != 0
        kinds, self.kinds = distinct_rows(np.concatenate([*words, counted], axis=1))
        parts = np.split(kinds, np.cumsum([each.shape[1] for each in words]), axis=1)
        self._owns, *refused = (_ints(part) for part in parts[:-1])
        self._refused = dict(zip(_OTHERS, refused, strict=True))
        self._counted = [_bits(np.flatnonzero(row).tolist()) for row in parts[-1]]
        self._letters: dict[tuple[int, int], Letter] = {}
        self._hope: dict[int, bool] = {}
        self.by_state = {
            machines: frozenset(best_letters(letters_at_rest(letters, letters)))
            for machines, letters in self.letters_of(self.of_slot(views.slots[0])).items()
        }

    def letter(self, machines: int, message: int) -> Letter:
        """What a message in this state means for rest, while the system's machines are in that one."""
        return self.letter_of(machines, int(self.kinds[message]))

    def letter_of(self, machines: int, kind: int) -> Letter:
        """What a message of this kind means for rest, while the system is in this state."""
        known = self._letters.get((machines, kind))
        if known is None:
            possible = self._by_machines[machines] & self._awaited
            of_others = possible & ~self._of_system
            known = self._letters[machines, kind] = Letter(
                self._owns[kind] & of_others,
                self._refused[Role.LATER][kind] & of_others,
                self._refused[Role.EARLIER][kind] & of_others,
                self._refused[Role.SYSTEM][kind] & possible & self._of_system,
                self._counted[kind],
            )
        return known

    def of_slot(self, messages: Ints, views: Ints | slice = slice(None)) -> Ints:
        """The state of the system and the kind of a message, packed, for its state in each of ``views``."""
        return (self.views.machines[views] << BITS) | self.kinds[messages]

    def letters_of(self, packed: Ints) -> Mapping[int, set[Letter]]:
        """For each state of the system the letters of messages, of states and kinds that are packed."""
        found: dict[int, set[Letter]] = defaultdict(set)
        for each in np.unique(packed).tolist():
            machines, kind = each >> BITS, each & (1 << BITS) - 1
            found[machines].add(self.letter_of(machines, kind))
        return found

    def hopeful(self, views: Ints) -> Ints:
        """Those of ``views`` in whose state of the system some message refuses each event of the system."""
        machines = self.views.machines[views]
        states, of_view = np.unique(machines, return_inverse=True)
        hope = np.array([self._has_hope(machines) for machines in states.tolist()], np.bool_)
        return views[hope[of_view]]

    def _has_hope(self, machines: int) -> bool:
        known = self._hope.get(machines)
        if known is None:
            system, _ = self.owed(machines)
            for letter in self.by_state[machines]:
                system &= ~letter.system
            known = self._hope[machines] = not system
        return known

    def owed(self, machines: int) -> tuple[int, int]:
        """The events of the system that messages have to refuse, and the counters that they have to hold a part of."""
        counted = 0
        for number, ghost in enumerate(self.views.spaces.system.ghosts):
            state = self.views.spaces.machines.states[machines, ghost.counter]
            if self.views.spaces.system.machines[ghost.counter].limits[state] != 0:
                counted |= 1 << number
        return self._by_machines[machines] & self._awaited & self._of_system, counted


_OTHERS = (Role.LATER, Role.EARLIER, Role.SYSTEM)


def _bits(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in numbers)


def _ints(words: Words) -> list[int]:
    """Rows of words as whole numbers, the first word lowest."""
    return [int.from_bytes(row.astype("<i8").tobytes(), "little") for row in words]
