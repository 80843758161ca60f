"""Which marks a system at rest can show: the letters of each state of the system, and the words that they make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ackfsm.terms import DefectError
from ackfsm.unbounded._causes import Causes
from ackfsm.unbounded._kernel import BITS
from ackfsm.unbounded._spaces import Ints
from ackfsm.unbounded._steps import Level
from ackfsm.unbounded._tables import Role
from ackfsm.unbounded._views import Views, Words
from ackfsm.unbounded._words import Letter, best_letters, find_word, letters_at_rest, word_exists

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


class Rest:
    """The letters of some views, and whether marked ones of them can be at rest (lemma 3 of spec/any.md).

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
        kinds, self.kinds = np.unique(np.concatenate([*words, counted], axis=1), axis=0, return_inverse=True)
        parts = np.split(kinds, np.cumsum([each.shape[1] for each in words]), axis=1)
        self._owns, *refused = (_ints(part) for part in parts[:-1])
        self._refused = dict(zip(_OTHERS, refused, strict=True))
        self._counted = [_bits(np.flatnonzero(row).tolist()) for row in parts[-1]]
        self._letters: dict[tuple[int, int], Letter] = {}
        self._hope: dict[int, bool] = {}
        self._words: dict[tuple[frozenset[Letter], Letter, frozenset[Letter], int, int], frozenset[Letter] | None] = {}
        self._by_state = {
            machines: frozenset(best_letters(letters_at_rest(letters, letters)))
            for machines, letters in self._letters_of(
                np.concatenate([self._of_slot(slot) for slot in views.slots])
            ).items()
        }

    def letter(self, machines: int, message: int) -> Letter:
        """What a message in this state means for rest, while the system's machines are in that one."""
        return self.letter_of(machines, int(self.kinds[message]))

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

    def _of_slot(self, messages: Ints, views: Ints | slice = slice(None)) -> Ints:
        """The state of the system and the kind of a message, packed, for its state in each of ``views``."""
        return (self.views.machines[views] << BITS) | self.kinds[messages]

    def _letters_of(self, packed: Ints) -> Mapping[int, set[Letter]]:
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
            for letter in self._by_state[machines]:
                system &= ~letter.system
            known = self._hope[machines] = not system
        return known

    def _alone(self, marked: Ints, *, of_system: bool) -> Iterator[Question]:
        """One question for each letter of a marked view; the others are in any state that views have beside it."""
        for machines, letters in self._letters_of(self._of_slot(self.views.slots[0][marked], marked)).items():
            others = (
                frozenset(best_letters(letters_at_rest(letters, letters))) if of_system else self._by_state[machines]
            )
            beside = frozenset[Letter]() if self.views.level is Level.ALONE else others
            for letter in best_letters(letters_at_rest(letters, beside)):
                yield Question(machines, None, letter, beside, beside)

    def _in_pairs(self, among: Sequence[Ints]) -> Iterator[Question]:
        """One question for each marked message; the others form a pair with it, on their side of it."""
        beside: dict[tuple[int, int], tuple[set[Letter], set[Letter]]] = defaultdict(lambda: (set(), set()))
        for slot, marked in enumerate(among):
            messages, others = self.views.slots[slot][marked], self.views.slots[1 - slot][marked]
            packed = (self._of_slot(others, marked) << BITS) | messages
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

    def has_word(self, machines: int, marked: Letter, before: frozenset[Letter], behind: frozenset[Letter]) -> bool:
        """Whether there is a word with these letters before the marked one, and behind it."""
        return self._word(Question(machines, None, marked, before, behind)) is not None

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

    def owed(self, machines: int) -> tuple[int, int]:
        """The events of the system that messages have to refuse, and the counters that they have to hold a part of."""
        counted = 0
        for number, ghost in enumerate(self.views.spaces.system.ghosts):
            state = self.views.spaces.machines.states[machines, ghost.counter]
            if self.views.spaces.system.machines[ghost.counter].limits[state] != 0:
                counted |= 1 << number
        return self._by_machines[machines] & self._awaited & self._of_system, counted


_OTHERS = (Role.LATER, Role.EARLIER, Role.SYSTEM)
_MASK = (1 << BITS) - 1


def _bits(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in numbers)


def _ints(words: Words) -> list[int]:
    """Rows of words as whole numbers, the first word lowest."""
    return [int.from_bytes(row.astype("<i8").tobytes(), "little") for row in words]
