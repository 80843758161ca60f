"""Which marks a system at rest can show: the words that letters of each state of the system make."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ackfsm.checking.unbounded._letters import Letters
from ackfsm.checking.unbounded._spaces import Ints
from ackfsm.checking.unbounded._steps import Level
from ackfsm.checking.unbounded._views import Views
from ackfsm.checking.unbounded._words import Letter, best_letters, find_word, letters_at_rest

__all__ = ["Found", "Rest"]


class Question(NamedTuple):
    """Whether messages with a marked letter can be at rest, with those ``beside`` them that stand there in words."""

    machines: int
    marked: Letter
    beside: frozenset[Letter]


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
            for question in self._questions(among, of_system=of_system):
                word = self._word(question)
                if word is not None:
                    return Found(state, self._views_of(question, among), self._beside(question, word))
        return None

    def _views_of(self, question: Question, among: Ints) -> Ints:
        """The marked views with the letter that the question is about."""
        here = among[self.views.machines[among] == question.machines]
        letters = [self.letter(question.machines, message) for message in self._messages[here].tolist()]
        return cast("Ints", here[np.array([letter == question.marked for letter in letters], np.bool_)])

    def _beside(self, question: Question, word: Collection[Letter]) -> list[int]:
        """For each other letter of a word a view that shows it."""
        found: dict[Letter, int] = {}
        for view in np.flatnonzero(self.views.machines == question.machines).tolist():
            letter = self.letter(question.machines, int(self._messages[view]))
            if letter in word:
                found.setdefault(letter, view)
        return list(found.values())

    def _questions(self, marked: Ints, *, of_system: bool) -> Iterator[Question]:
        """One question for each letter of a marked view; the others are in any state that views have beside it."""
        for machines, letters in self.letters_of(self.of_slot(self._messages[marked], marked)).items():
            others = (
                frozenset(best_letters(letters_at_rest(letters, letters))) if of_system else self.by_state[machines]
            )
            beside = frozenset[Letter]() if self.views.level is Level.ALONE else others
            for letter in best_letters(letters_at_rest(letters, beside)):
                yield Question(machines, letter, beside)

    def _word(self, question: Question) -> frozenset[Letter] | None:
        system, counted = self.owed(question.machines)
        key = question.beside, question.marked, system, counted
        if key not in self._words:
            self._words[key] = find_word(
                question.beside, question.marked, question.beside, system=system, counted=counted
            )
        return self._words[key]
