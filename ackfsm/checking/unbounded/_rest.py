"""Which marks a system at rest can show: the words that letters of each state of the system make."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ackfsm.checking.unbounded._letters import Letters
from ackfsm.checking.unbounded._spaces import Ints
from ackfsm.checking.unbounded._steps import Level
from ackfsm.checking.unbounded._views import Views
from ackfsm.checking.unbounded._words import Letter, best_letters, find_word, letters_at_rest

__all__ = ["Found", "Rest"]


class Found(NamedTuple):
    """A word at rest, with what watches in ``state``.

    ``views`` are those that show its marked letter; ``beside`` is a view for each of its other letters.
    """

    state: int
    views: Ints
    beside: list[int]


class Rest(Letters):
    """Whether marked letters of views of one message can be at rest (lemma 3 of spec/any.md)."""

    def __init__(self, views: Views) -> None:
        super().__init__(views)
        (self._messages,) = views.slots
        self._words: dict[tuple[frozenset[Letter], Letter, int, int], frozenset[Letter] | None] = {}

    def first_word(self, reached: npt.NDArray[np.bool_], marked: frozenset[int], *, of_system: bool) -> Found | None:
        """A marked letter that some word at rest has, with a ``marked`` state; ``None`` if there is none.

        ``reached`` are the states of what watches the message, or the system, with each view.
        """
        for state in sorted(marked):
            among = self.hopeful(np.flatnonzero(reached[:, state]))
            for machines, letters in self.letters_of(self.of_slot(self._messages[among], among)).items():
                beside = self._best_beside(machines, letters, of_system=of_system)
                for letter in best_letters(letters_at_rest(letters, beside)):
                    word = self._word(machines, letter, beside)
                    if word is not None:
                        return Found(state, self._views_of(machines, letter, among), self._beside(machines, word))
        return None

    def _best_beside(self, machines: int, letters: set[Letter], *, of_system: bool) -> frozenset[Letter]:
        """The letters that may stand beside a marked one in a state of the system, where all the ``letters`` are so.

        They are in any state that views have beside it; of a mark of the system they are marked themselves.
        """
        if self.views.level is Level.ALONE:
            return frozenset()
        return frozenset(best_letters(letters_at_rest(letters, letters))) if of_system else self.by_state[machines]

    def _views_of(self, machines: int, marked: Letter, among: Ints) -> Ints:
        """Those ``among`` some views that have the marked letter in this state of the system."""
        here = among[self.views.machines[among] == machines]
        letters = [self.letter(machines, message) for message in self._messages[here].tolist()]
        return cast("Ints", here[np.array([letter == marked for letter in letters], np.bool_)])

    def _beside(self, machines: int, word: Collection[Letter]) -> list[int]:
        """For each other letter of a word a view that shows it."""
        found: dict[Letter, int] = {}
        for view in np.flatnonzero(self.views.machines == machines).tolist():
            letter = self.letter(machines, int(self._messages[view]))
            if letter in word:
                found.setdefault(letter, view)
        return list(found.values())

    def _word(self, machines: int, marked: Letter, beside: frozenset[Letter]) -> frozenset[Letter] | None:
        system, counted = self.owed(machines)
        key = beside, marked, system, counted
        if key not in self._words:
            self._words[key] = find_word(beside, marked, beside, system=system, counted=counted)
        return self._words[key]
