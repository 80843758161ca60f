"""Which marks a system at rest can show: the words that letters of each state of the system make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ackfsm.checking.unbounded._causes import Causes
from ackfsm.checking.unbounded._kernel import BITS
from ackfsm.checking.unbounded._letters import Letters
from ackfsm.checking.unbounded._spaces import Ints
from ackfsm.checking.unbounded._steps import Level
from ackfsm.checking.unbounded._views import Views
from ackfsm.checking.unbounded._words import Letter, best_letters, find_word, letters_at_rest, word_exists
from ackfsm.terms import DefectError

__all__ = ["Found", "Rest"]


class Question(NamedTuple):
    """Whether a marked message, with ``before`` and ``behind`` it what stands there in words, can be at rest.

    ``message`` is the state of the message where views are pairs; else it is one of all with the letter.
    """

    machines: int
    message: int | None
    marked: Letter
    before: frozenset[Letter]
    behind: frozenset[Letter]


class Found(NamedTuple):
    """A word at rest, with what watches in ``state``.

    ``views`` are, for each slot, those that show its marked letter; ``beside`` is a view for each of its other letters.
    """

    state: int
    views: list[Ints]
    beside: list[int]


class Rest(Letters):
    """Whether marked letters of some views can be at rest (lemma 3 of spec/any.md)."""

    def __init__(self, views: Views) -> None:
        super().__init__(views)
        self._words: dict[tuple[frozenset[Letter], Letter, frozenset[Letter], int, int], frozenset[Letter] | None] = {}

    def first_word(
        self,
        reached: Sequence[npt.NDArray[np.bool_]],
        marked: frozenset[int],
        *,
        of_system: bool,
        causes: Causes | None = None,
    ) -> Found | None:
        """A marked letter that some word at rest has, with a ``marked`` state; ``None`` if there is none.

        ``reached`` are for each slot the states of what watches the message in it, with each view; of what watches the
        system there is one, the same for all slots.  With ``causes`` (of what watches a message; of :data:`NOTHING`
        where the system is watched) a word has the causes of its letters.
        """
        for state in sorted(marked):
            among = [self.hopeful(np.flatnonzero(of_slot[:, state])) for of_slot in reached]
            pairs = len(self.views.slots) > 1
            found = self._in_pairs(among) if pairs else self._alone(among[0], of_system=of_system)
            for question in found:
                watching = 0 if of_system else state
                word = self._word(question)
                if word is not None and (causes is None or self._word_with_causes(question, among, watching, causes)):
                    views = self._views_of(question, among)
                    return Found(state, views, self._beside(question, views, word))
        return None

    def _views_of(self, question: Question, among: Sequence[Ints]) -> list[Ints]:
        """The marked views of each slot whose message the question is about."""
        found = []
        for slot, views in enumerate(among):
            here = views[self.views.machines[views] == question.machines]
            messages = self.views.slots[slot][here]
            if question.message is None:
                kinds = [self.letter(question.machines, message) == question.marked for message in messages.tolist()]
                found.append(here[np.array(kinds, np.bool_)] if kinds else here)
            else:
                found.append(here[messages == question.message])
        return found

    def _beside(self, question: Question, marked: Sequence[Ints], word: Collection[Letter]) -> list[int]:
        """For each other letter of a word a view that shows it, and with pairs the marked message too."""
        found: dict[Letter, int] = {}
        pairs = len(self.views.slots) > 1
        for slot, views in enumerate(marked):
            among = views if pairs else np.flatnonzero(self.views.machines == question.machines)
            others = self.views.slots[1 - slot if pairs else 0][among]
            for view, message in zip(among.tolist(), others.tolist(), strict=True):
                letter = self.letter(question.machines, message)
                if letter in word:
                    found.setdefault(letter, view)
        return list(found.values())

    def _alone(self, marked: Ints, *, of_system: bool) -> Iterator[Question]:
        """One question for each letter of a marked view; the others are in any state that views have beside it."""
        for machines, letters in self.letters_of(self.of_slot(self.views.slots[0][marked], marked)).items():
            others = (
                frozenset(best_letters(letters_at_rest(letters, letters))) if of_system else self.by_state[machines]
            )
            beside = frozenset[Letter]() if self.views.level is Level.ALONE else others
            for letter in best_letters(letters_at_rest(letters, beside)):
                yield Question(machines, None, letter, beside, beside)

    def _in_pairs(self, among: Sequence[Ints]) -> Iterator[Question]:
        """One question for each marked message; the others form a pair with it, on their side of it."""
        beside: dict[tuple[int, int], tuple[set[Letter], set[Letter]]] = defaultdict(lambda: (set(), set()))
        for slot, marked in enumerate(among):
            messages, others = self.views.slots[slot][marked], self.views.slots[1 - slot][marked]
            packed = (self.of_slot(others, marked) << BITS) | messages
            for each in np.unique(packed).tolist():
                message, kind, machines = each & _MASK, each >> BITS & _MASK, each >> 2 * BITS
                beside[machines, message][1 - slot].add(self.letter_of(machines, kind))
        for (machines, message), (left, right) in beside.items():
            yield Question(
                machines,
                message,
                self.letter(machines, message),
                frozenset(best_letters(left)),
                frozenset(best_letters(right)),
            )

    def _word(self, question: Question) -> frozenset[Letter] | None:
        system, counted = self.owed(question.machines)
        key = question.before, question.marked, question.behind, system, counted
        if key not in self._words:
            self._words[key] = find_word(
                question.before, question.marked, question.behind, system=system, counted=counted
            )
        return self._words[key]

    def _word_with_causes(self, question: Question, among: Sequence[Ints], state: int, causes: Causes) -> bool:
        """Whether a word still exists if it has to have a cause for each machine that waits for one."""
        machines, message = question.machines, question.message
        if message is None:
            raise DefectError("causes are asked for where views are not pairs")
        sides = [
            [(other, self.letter(machines, other)) for other in self._others(machines, message, among, slot)]
            for slot in (1, 0)
        ]
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

    def _others(self, machines: int, message: int, among: Sequence[Ints], slot: int) -> list[int]:
        """The states of messages that form a marked pair with this one, which is in ``slot``."""
        marked = among[slot]
        same = (self.views.machines[marked] == machines) & (self.views.slots[slot][marked] == message)
        return cast("list[int]", np.unique(self.views.slots[1 - slot][marked[same]]).tolist())


_MASK = (1 << BITS) - 1
