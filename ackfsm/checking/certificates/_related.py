"""Views of one message that ask a relation which others may be beside it (Lemma 7 of spec/any.md)."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ackfsm.checking.certificates._format import Invariant, View
from ackfsm.checking.certificates._rest import Rest
from ackfsm.checking.certificates._system import Part, Role, System, Watcher
from ackfsm.checking.certificates._views import ChecksError, Named, Roles, Views, numbers_in
from ackfsm.checking.certificates._watching import NOTHING, Products, Waiting, brought_about_by_others
from ackfsm.checking.certificates._words import Letter, can_rest


class _Relation:
    """The pairs of a relation, and what they know of the views that ask it.

    The *class* of a message is the state that it has there, -1 if it has none.
    """

    def __init__(self, invariant: Invariant, of: Views) -> None:
        self._of = of
        self.pairs = Views(invariant, of.system, self._is_met)
        self._check_names()
        machines, messages = ({view[at] for view in of.views} for at in (0, 1))
        self.system = {each: self.pairs.machines.space.find(of.machines.space.named(each)) for each in machines}
        self.classes = {each: self.pairs.messages.space.find(of.messages.space.named(each)) for each in messages}
        self._halves = {(self.system[machines], self.classes[message]) for machines, message in of.views}
        self._beside: dict[tuple[int, int, int], int] = defaultdict(int)
        for system, earlier, later in self.pairs.views:
            self._beside[system, earlier, 0] |= 1 << later
            self._beside[system, later, 1] |= 1 << earlier

    def beside(self, machines: int, of_class: int, slot: int) -> int:
        """The classes (bits) of what may be beside a message of this class, which is in this slot of a pair."""
        return self._beside.get((self.system[machines], of_class, slot), 0)

    def views_with(self, machines: int, of_class: int, slot: int) -> Sequence[int]:
        """The pairs of the system in this state that have a message of this class in a slot."""
        return self._by_half.get((self.system[machines], of_class, slot), ())

    @functools.cached_property
    def _by_half(self) -> Mapping[tuple[int, int, int], Sequence[int]]:
        found: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for number, view in enumerate(self.pairs.views):
            for slot in (0, 1):
                found[view[0], view[1 + slot], slot].append(number)
        return found

    def _is_met(self, system: Named, message: Named) -> bool:
        """Whether some view has the half of a pair as a part of it."""
        return (self.pairs.machines.space.find(system), self.pairs.messages.space.find(message)) in self._halves

    def _check_names(self) -> None:
        """See that the pairs know no machine that the views do not know."""
        mine, theirs = (
            {part.name for part in (*views.machines.space.parts, *views.messages.space.parts)}
            for views in (self._of, self.pairs)
        )
        if not theirs <= mine:
            raise ChecksError(f"its relation keeps {min(theirs - mine)}, which its views do not keep")


class RelatedViews(Views):
    """The views of one message, and the relation that they ask."""

    def __init__(self, invariant: Invariant, system: System) -> None:
        super().__init__(invariant, system)
        if invariant.relation is None:
            raise ChecksError("it has no relation")
        self.relation = _Relation(invariant.relation, self)

    def allowed(self) -> Callable[[View, Roles], int]:
        """What a message may do that is related to the one of a view."""
        classes = self.relation.classes
        owners: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for machines, message in self.views:
            if classes[message] >= 0:
                for event in numbers_in(self.owned(machines, message)):
                    owners[machines][event] |= 1 << classes[message]
        known: dict[tuple[int, int, Role], int] = {}

        def allowed(view: View, roles: Roles) -> int:
            machines, of_class, role = view[0], classes[view[1]], roles[0]
            if (machines, of_class, role) not in known:
                beside = self.relation.beside(machines, of_class, 1 if role is Role.EARLIER else 0)
                owning = owners[machines].items()
                known[machines, of_class, role] = sum(1 << event for event, owner in owning if owner & beside)
            return known[machines, of_class, role]

        return allowed


class _Message(NamedTuple):
    of_class: int
    letter: Letter


_Way = tuple[Waiting, set[int], set[int]]
"""A way to wait, and the classes of causes before a message and of those behind it."""


class RelatedRest(Rest):
    """Whether a system at rest shows a mark, with messages of which each two are related."""

    def __init__(self, views: RelatedViews, products: Products, of_pairs: Products) -> None:
        """``of_pairs`` are the products of the pairs of the relation."""
        super().__init__(views, products)
        self._related, self._relation = views, views.relation
        self._pairs = Rest(views.relation.pairs, of_pairs)
        self._known_places: dict[int, dict[int, tuple[int, int, int]]] = {}
        self._met: dict[int, list[_Message]] = defaultdict(list)
        for machines, messages in self.beside.items():
            self._met[machines] = list(dict.fromkeys(self._message(machines, each) for each in sorted(messages)))

    @property
    def every(self) -> tuple[Products, ...]:
        """Those of the views, and those of the pairs that they ask."""
        return self.products, self._pairs.products

    def marked(self, watcher: Watcher, reached: Sequence[Sequence[int]]) -> list[int]:
        """As :meth:`Rest.marked`, of states that the pairs reach too."""
        found = super().marked(watcher, reached)
        if not found:
            return found
        in_pairs = self._pairs.marked(watcher, self._pairs.products.reached_in_slots(watcher))
        return [state for state in found if state in in_pairs]

    def forget(self, part: Part) -> None:
        """As :meth:`Rest.forget`."""
        self._pairs.forget(part)

    def shows(self, watcher: Watcher, reached: Sequence[Sequence[int]]) -> bool:
        """As :meth:`Rest.shows`."""
        return any(
            self._can_rest(machines, message, watcher, state)
            for state in sorted(watcher.at_rest)
            for machines, message in self._marked(reached[0], state)
        )

    def _marked(self, reached: Sequence[int], state: int) -> Iterator[tuple[int, _Message]]:
        found = {
            (machines, self._message(machines, message)): None
            for (machines, message), states in zip(self._related.views, reached, strict=True)
            if states >> state & 1 and self.has_hope(machines)
        }
        return iter(found)

    def _message(self, machines: int, message: int) -> _Message:
        return _Message(self._relation.classes[message], self.letter(machines, message))

    def _can_rest(self, machines: int, marked: _Message, watcher: Watcher, state: int) -> bool:
        of_class = marked.of_class
        before, behind = (
            [each for each in self._met[machines] if _has(beside, each.of_class)]
            for beside in (self._relation.beside(machines, of_class, slot) for slot in (1, 0))
        )
        owed = self.owed(machines)
        if not self.stands({each.letter for each in before}, marked.letter, {each.letter for each in behind}, owed):
            return False
        gives = self.events + len(self._related.ghosts)
        part, state = (watcher.part, state) if watcher.of_message else (NOTHING, 0)
        mine = brought_about_by_others(part, state)
        waits = [*self._waits_of(of_class), *([] if mine is None else [Waiting(None, mine)])]
        for number, waiting in enumerate(waits):
            owed |= 1 << gives + number
            for side, slot in ((before, 1), (behind, 0)):
                caused = self._pairs.products.caused(part, waiting, slot)
                causes = {
                    self._relation.pairs.views[view][2 - slot]
                    for view in self._relation.views_with(machines, of_class, slot)
                    if caused[view] >> state & 1
                }
                side[:] = [_giving(other, 1 << gives + number) if other.of_class in causes else other for other in side]
        ways = list(self._ways(machines))
        left, right = ({self._letter_of(machines, ways, each) for each in side} for side in (before, behind))
        return can_rest(left, self._letter_of(machines, ways, marked), right, owed)

    def _waits_of(self, of_class: int) -> Sequence[Waiting]:
        """What a message of a class waits for."""
        return self._pairs.waiting(of_class) if of_class >= 0 else ()

    def _ways(self, machines: int) -> Iterator[_Way]:
        classes = dict.fromkeys(each.of_class for each in self._met[machines])
        for waiting in dict.fromkeys(waiting for each in classes for waiting in self._waits_of(each)):
            yield waiting, *self._pairs.causes_of(waiting, self._relation.system[machines])

    def _letter_of(self, machines: int, ways: Sequence[_Way], message: _Message) -> Letter:
        """The letter with one more event for each way to wait, and with the kinds that it does not stand beside."""
        letter, waits = message.letter, self._waits_of(message.of_class)
        needs, for_later, for_earlier = letter.needs, letter.for_later, letter.for_earlier
        for number, (waiting, before, behind) in enumerate(ways):
            bit = 1 << self.events + number
            needs |= bit * (waiting in waits)
            for_later |= bit * (message.of_class in before)
            for_earlier |= bit * (message.of_class in behind)
        kind, not_before, not_behind = self.places(machines)[message.of_class]
        return Letter(needs, for_later, for_earlier, letter.gives, kind, not_before, not_behind)

    def places(self, machines: int) -> Mapping[int, tuple[int, int, int]]:
        """For each class its bit, and the bits of those that it does not stand before, and not behind."""
        if machines not in self._known_places:
            classes = list(dict.fromkeys(each.of_class for each in self._met[machines]))
            self._known_places[machines] = {
                mine: (1 << at, self._apart(machines, mine, 0, classes), self._apart(machines, mine, 1, classes))
                for at, mine in enumerate(classes)
            }
        return self._known_places[machines]

    def _apart(self, machines: int, mine: int, slot: int, classes: Sequence[int]) -> int:
        """The bits of those of ``classes`` that are not beside a message of one of them in this slot of a pair."""
        beside = self._relation.beside(machines, mine, slot)
        return sum(1 << at for at, other in enumerate(classes) if not _has(beside, other))


def _has(classes: int, of_class: int) -> bool:
    """Whether a class is among these (bits); none that has no number."""
    return of_class >= 0 and bool(classes >> of_class & 1)


def _giving(message: _Message, bit: int) -> _Message:
    return message._replace(letter=message.letter._replace(gives=message.letter.gives | bit))
