"""Related messages: a *relation* tells which two messages can be in the same system, as far as one hinders the other.

Views of one message know nothing of what another one has done to it, and views of all that two messages can be are too
many.  But few machines refuse events of *other* messages, and only by these does one message depend on another.  So the
relation is that of views of pairs which know of a message these machines alone, and nothing of the system; and views of
one message, with all machines, ask it which others may be beside that message (lemma 7 of spec/any.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ackfsm.checking.unbounded._causes import Causes, caused_states
from ackfsm.checking.unbounded._columns import System
from ackfsm.checking.unbounded._kernel import BITS
from ackfsm.checking.unbounded._letters import Letters
from ackfsm.checking.unbounded._localize import Kept, everything
from ackfsm.checking.unbounded._reasons import NotProvedError
from ackfsm.checking.unbounded._spaces import Ints, Space, distinct_rows
from ackfsm.checking.unbounded._steps import Level, Spaces
from ackfsm.checking.unbounded._tables import Role, Table
from ackfsm.checking.unbounded._views import Views, Words
from ackfsm.checking.unbounded._words import Letter, best_letters, letters_at_rest, supported, word_exists

__all__ = ["RelatedRest", "RelatedViews", "Relation", "halves_of", "relating"]

Flags = npt.NDArray[np.bool_]
_BYTE = 8
_HIGHEST = 1 << (_BYTE - 1)

_MOST_PAIRS = 4_000_000_000
"""A relation of more states of the system and of two messages than this is not tabled; it takes a bit for each."""


def relating(system: System) -> Kept:
    """What a relation knows: the machines of a message that refuse an event to other messages, nothing of the system.

    It could know any other machines too: with those of the system it has ten times the pairs, and proved no more.
    """
    return Kept(
        frozenset(),
        frozenset(
            number
            for number in everything(system).message
            for (role, _), columns in system.message[number].columns.items()
            if role in {Role.EARLIER, Role.LATER} and any(-1 in column for column in columns)
        ),
    )


def halves_of(
    local: Views, spaces: Spaces, relation: Relation | None = None, *, merged: bool = True, of_relation: bool = False
) -> Flags:
    """For each state of the system in ``spaces`` the states of a message that ``local`` views have it met with.

    The states of ``spaces`` are parts of those of the views; they get their numbers here, and those of a message that
    no step tells apart are made one if they are to be ``merged``.  A ``relation`` has to tell as much of them.  Where
    the views are to be those ``of_relation``, nobody asks whether a step is refused that only its message hears.
    """
    system = _added(spaces.machines, local.spaces.machines, local.machines)
    message = _added(spaces.message, local.spaces.message, local.slots[0])
    found = np.zeros((len(spaces.machines), len(spaces.message)), np.bool_)
    found[system, message] = True
    if merged:
        spaces.message.merge(_told_apart(spaces, relation), _unheard(spaces) if of_relation else ())
    return found


def _unheard(spaces: Spaces) -> list[int]:
    """The own steps of a message by events that nothing of the system and of no other message has a row for."""
    heard = {event for table in spaces.system.machines for _, event in table.columns}
    heard |= {event for table in spaces.system.message for role, event in table.columns if role is not Role.OWN}
    return [step for (role, event), step in spaces.message_steps.items() if role is Role.OWN and event not in heard]


def _added(part: Space, whole: Space, met: Ints) -> Ints:
    """The numbers that states ``met`` of ``whole`` have in ``part``, which has some of its machines."""
    is_met = np.zeros(len(whole), np.bool_)
    is_met[met] = True
    states, of_met = distinct_rows(_columns(whole, part)[is_met])
    numbers = np.zeros(len(whole), np.int64)
    numbers[is_met] = part.add(states)[of_met]
    return numbers[met]


def _told_apart(spaces: Spaces, relation: Relation | None) -> Ints:
    """For each state of a message what words ask of it, beside the steps: ghosts, and where others have brought it."""
    if relation is None:
        states = [
            np.array(_causes_in(table))[spaces.message.states[:, number]]
            for number, table in enumerate(spaces.message.tables)
        ]
    else:
        states = [_numbers(spaces.message, relation.pairs.spaces.message)]
    ghosts = [spaces.message.states[:, ghost.ghost] for ghost in spaces.system.ghosts]
    return np.stack([*states, *ghosts, np.zeros(len(spaces.message), np.int64)], axis=1)


def _causes_in(table: Table) -> list[int]:
    """For each state of a machine a number for the states that others have brought it into with that one."""
    found = [caused_states(table, state) for state in range(len(table.states))]
    return [found.index(each) for each in found]


def _columns(whole: Space, part: Space) -> npt.NDArray[np.int16]:
    """The states of ``whole``, of the machines alone that ``part`` has."""
    names = [table.name for table in whole.tables]
    return whole.states[:, [names.index(table.name) for table in part.tables]]


class Relation:
    """Finished views of pairs, which tell what two messages can be in together; as a table too.

    The states of a message that are in some pair have places in it; the last place is of those that are in none.
    """

    def __init__(self, pairs: Views) -> None:
        self.pairs = pairs
        earlier, later = pairs.slots
        met: Ints = np.unique(np.concatenate([earlier, later]))
        self._places = np.full(len(pairs.spaces.message) + 1, len(met), np.int64)
        self._places[met] = np.arange(len(met))
        system, message = len(pairs.spaces.machines) + 1, len(met) + 1
        if system * message * message > _MOST_PAIRS:
            raise NotProvedError(f"there are more than {_MOST_PAIRS:,} pairs of states in a relation of messages")
        self._found = np.zeros((system, message, -(-message // _BYTE)), np.uint8)
        later = self._places[later]
        bits = (_HIGHEST >> later % _BYTE).astype(np.uint8)
        np.bitwise_or.at(self._found, (pairs.machines, self._places[earlier], later // _BYTE), bits)

    def known(self, spaces: Spaces) -> Known:
        """What it knows of the states in ``spaces``."""
        return Known(self, spaces)

    def among(self, machines: int, messages: Ints) -> Flags:
        """Whether two of these states of a message are met in a state of the system, the one of the row earlier."""
        places = self._places[messages]
        return np.unpackbits(self._found[machines, places], axis=1)[:, places].view(np.bool_)


class Known:
    """What a relation knows of the states of a system and of a message.

    The *class* of a message is the state that it has there, -1 if it has none; so it is with the system.
    """

    def __init__(self, relation: Relation, spaces: Spaces) -> None:
        self._relation = relation
        self.machines = _numbers(spaces.machines, relation.pairs.spaces.machines)
        """For each state of the system the one that it has in the relation."""
        self.classes = _numbers(spaces.message, relation.pairs.spaces.message)
        """For each state of a message its class."""

    def together(self, machines: int, classes: Ints) -> Flags:
        """Whether messages of two classes may be in a system in this state, the one of the row earlier."""
        return self._relation.among(int(self.machines[machines]), classes)


def _numbers(whole: Space, part: Space) -> Ints:
    """For each state of ``whole`` the number that what ``part`` knows of it has there; -1 if it has none."""
    return part.numbers_of(_columns(whole, part))


class RelatedViews(Views):
    """Views of one message, in which another one takes part only if it may be beside that message by a relation."""

    def __init__(  # noqa: PLR0913 - as for views, and a relation
        self,
        spaces: Spaces,
        relation: Relation,
        *,
        third: bool,
        max_states: int,
        progress: Callable[[int], None] | None = None,
        halves: Flags | None = None,
    ) -> None:
        self.relation = relation
        super().__init__(spaces, Level.RELATED, third=third, max_states=max_states, progress=progress, halves=halves)

    def having(self, machines: Space, message: Space, of_system: Ints, of_message: Ints) -> Ints:
        """The views of a state of the system, of those in ``machines``, and one of a message met with it.

        Raises :class:`NotProvedError` if these spaces do not have all machines of the views.
        """
        lacking = {table.name for each in (self.spaces.machines, self.spaces.message) for table in each.tables}
        lacking -= {table.name for each in (machines, message) for table in each.tables}
        if lacking:
            raise NotProvedError(f"{min(lacking)} is not exact in both of two systems")
        met = _numbers(machines, self.spaces.machines)[of_system], _numbers(message, self.spaces.message)[of_message]
        packed = (met[0] << BITS) | met[1]
        return np.flatnonzero(np.isin(self.packed, packed[(met[0] >= 0) & (met[1] >= 0)]))

    def _gather(self, position: int) -> int:
        """Find what messages own that may be beside each one; all anew, since there may be more of each class."""
        del position
        machines, messages = self.machines, self.slots[0]
        known = self.relation.known(self.spaces)
        keys = np.stack([machines, known.classes[messages]], axis=1)
        distinct, which = distinct_rows(keys)
        owned = np.zeros((len(distinct), self._words), np.int64)
        np.bitwise_or.at(owned, which, self.owned(machines, messages))
        if len(distinct) > len(self.arrays.halves):
            self._make_room_for_halves(len(distinct) - len(self.arrays.halves))
        for first, last in _runs(distinct[:, 0]):
            together = known.together(int(distinct[first, 0]), distinct[first:last, 1])
            for place, beside in enumerate((together.T, together)):
                self.arrays.owned[first:last, place] = _joined(beside, owned[first:last])
        self.arrays.half[: len(which), 0] = which
        return len(self)


def _runs(numbers: Ints) -> Iterator[tuple[int, int]]:
    """Where each run of equal numbers begins, and where it ends."""
    ends = [*(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]
    return zip([0, *ends[:-1]], ends, strict=True)


def _joined(beside: Flags, owned: Words) -> Words:
    """For each row the events of all that are beside it."""
    return np.stack(
        [np.bitwise_or.reduce(np.where(beside, owned[:, word], 0), axis=1) for word in range(owned.shape[1])], axis=1
    )


class _Message(NamedTuple):
    """A message at rest, as far as words ask: its class, and its letter."""

    of_class: int
    letter: Letter


class _Resting(NamedTuple):
    """The messages that may be at rest in one state of the system, each with its letter; and the best letters."""

    letters: Mapping[_Message, Letter]
    best: Sequence[Letter]


class RelatedRest(Letters):
    """The letters of related views, and words in which each two letters are related."""

    def __init__(self, views: RelatedViews) -> None:
        super().__init__(views)
        self._known = views.relation.known(views.spaces)
        self._met: Mapping[int, Sequence[_Message]] = self._all_messages()
        self._known_resting: dict[int, _Resting] = {}

    def shows(self, reached: npt.NDArray[np.bool_], marked: frozenset[int], causes: Causes, *, of_system: bool) -> bool:
        """Whether a system at rest may have a message in a view with a ``marked`` state of what watches.

        ``reached`` are the states of what watches, with each view.  ``causes`` are those of the pairs of the relation,
        for what watches a message, or for :data:`NOTHING`.  Raises :class:`NotProvedError` where that takes too long.
        """
        return any(
            self._can_rest(machines, message, 0 if of_system else state, causes)
            for state in sorted(marked)
            for machines, message in self._messages(self.hopeful(np.flatnonzero(reached[:, state])))
        )

    def _all_messages(self) -> Mapping[int, Sequence[_Message]]:
        found: dict[int, list[_Message]] = defaultdict(list)
        for machines, message in self._messages(np.arange(len(self.views))):
            found[machines].append(message)
        return found

    def _messages(self, views: Ints) -> Iterator[tuple[int, _Message]]:
        """The messages of ``views``, each with the state of the system; those that mean the same once."""
        messages = self.views.slots[0][views]
        rows = np.stack([self.views.machines[views], self._known.classes[messages], self.kinds[messages]], axis=1)
        for machines, of_class, kind in distinct_rows(rows)[0].tolist():
            yield machines, _Message(of_class, self.letter_of(machines, kind))

    def _can_rest(self, machines: int, marked: _Message, state: int, causes: Causes) -> bool:
        """Whether a word has this message, and the causes of all that the message waits for.

        It is asked without these causes first, since there is often no word even then and to track them takes long.
        """
        resting = self._resting(machines, causes.of_messages)
        if marked not in resting.letters:
            return False
        system, counted = self.owed(machines)
        letter, best = resting.letters[marked], resting.best
        if not word_exists(best, letter, best, system=system, counted=counted):
            return False
        held, causal = self._held(machines, marked, state, causes, resting.letters)
        before, behind = ([*best, *_holding(resting.letters, holding)] for holding in held)
        return word_exists(before, letter, behind, system=system, counted=counted | causal)

    def _held(
        self, machines: int, marked: _Message, state: int, causes: Causes, letters: Collection[_Message]
    ) -> tuple[tuple[dict[_Message, int], dict[_Message, int]], int]:
        """Which causes of ``marked`` each message before it may be, and each one behind it: bits, and all of them."""
        held: tuple[dict[_Message, int], dict[_Message, int]] = {}, {}
        bit, all_bits = 1 << len(self.views.spaces.system.ghosts), 0
        system_there = int(self._known.machines[machines])
        for waiting in causes.waiting(marked.of_class, state):
            beside = causes.beside(waiting, system_there, marked.of_class, state)
            for holding, found in zip(held, beside, strict=True):
                for each in letters:
                    if each.of_class in found:
                        holding[each] = holding.get(each, 0) | bit
            all_bits |= bit
            bit <<= 1
        return held, all_bits

    def _resting(self, machines: int, causes: Causes) -> _Resting:
        """The messages that may be at rest in a state of the system, with what ``causes`` tell of them."""
        if machines not in self._known_resting:
            self._known_resting[machines] = self._found_resting(machines, causes)
        return self._known_resting[machines]

    def _found_resting(self, machines: int, causes: Causes) -> _Resting:
        every = {message.letter for message in self._met[machines]}
        bare = {*letters_at_rest(every, every)}
        met = [message for message in self._met[machines] if message.letter in bare]
        letters = self.barred(machines, self._chained(machines, met, causes))
        kept = set(supported({*letters.values()}))
        return _Resting({each: letter for each, letter in letters.items() if letter in kept}, best_letters(kept))

    def _chained(self, machines: int, met: Sequence[_Message], causes: Causes) -> Mapping[_Message, Letter]:
        """The letters with one more event for each way to wait: who waits needs it refused, which a cause does."""
        letters = {message: message.letter for message in met}
        bit = 1 << len(self.views.spaces.system.events)
        waits = {message.of_class: causes.waiting(message.of_class, 0) for message in met}
        for waiting in dict.fromkeys(each for every in waits.values() for each in every):
            before, behind = causes.among(waiting, int(self._known.machines[machines]))
            letters = {
                message: letter._replace(
                    needs=letter.needs | bit * (waiting in waits[message.of_class]),
                    later=letter.later | bit * (message.of_class in before),
                    earlier=letter.earlier | bit * (message.of_class in behind),
                )
                for message, letter in letters.items()
            }
            bit <<= 1
        return letters

    def barred(self, machines: int, letters: Mapping[_Message, Letter]) -> Mapping[_Message, Letter]:
        """The letters, each of which bars those of messages that its own one is not related to."""
        classes = list(dict.fromkeys(message.of_class for message in letters))
        apart = ~self._known.together(machines, np.array(classes, np.int64))
        bars = {
            of_class: (1 << at, _bits(np.flatnonzero(apart[at])), _bits(np.flatnonzero(apart[:, at])))
            for at, of_class in enumerate(classes)
        }
        return {
            message: letter._replace(**dict(zip(_BARS, bars[message.of_class], strict=True)))
            for message, letter in letters.items()
        }


_BARS = ("kind", "bars_later", "bars_earlier")


def _holding(letters: Mapping[_Message, Letter], held: Mapping[_Message, int]) -> Iterator[Letter]:
    """The letters of messages that hold something more."""
    for message, bits in held.items():
        letter = letters[message]
        yield letter._replace(counted=letter.counted | bits)


def _bits(numbers: Ints) -> int:
    """The numbers as bits."""
    found = 0
    for number in numbers.tolist():
        found |= 1 << number
    return found
