"""Views of one message that ask a relation which others may be beside it (Lemma 7 of spec/any.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ackfsm.certificates._format import Invariant, View
from ackfsm.certificates._rest import Rest
from ackfsm.certificates._system import Part, Role, System, Watcher
from ackfsm.certificates._views import ChecksError, Named, Roles, Views
from ackfsm.certificates._watching import NOTHING, Products, Waiting, brought_about_by_others
from ackfsm.certificates._words import Letter, can_rest

__all__ = ["RelatedRest", "RelatedViews"]


class RelatedViews(Views):
    """The views of one message, and the pairs of their relation.

    A *class* is the state of a message in these pairs, and -1 is that of a message that they do not have.
    """

    def __init__(self, invariant: Invariant, system: System) -> None:
        super().__init__(invariant, system)
        if invariant.relation is None:
            raise ChecksError("it has no relation, which views of its level ask")
        self.pairs = Views(invariant.relation, system, self._is_met_here)
        self._check_names()
        self._in_pairs = {view[0]: self._system_of(view[0]) for view in self.views}
        self.classes = {view[1]: self._class_of(view[1]) for view in self.views}
        self._together: dict[int, set[tuple[int, int]]] = defaultdict(set)
        for machines, earlier, later in self.pairs.views:
            self._together[machines].add((earlier, later))
        self._halves = {(self._in_pairs[machines], self.classes[message]) for machines, message in self.views}

    def system_in_pairs(self, machines: int) -> int:
        """The state of the system in the pairs; -1 for one that they do not have."""
        return self._in_pairs[machines]

    def are_related(self, machines: int, earlier: int, later: int) -> bool:
        """Whether messages of two classes may be in the system in this state, in this order."""
        return (earlier, later) in self._together.get(self._in_pairs[machines], ())

    def allowed(self) -> Callable[[View, Roles], int]:
        """What a message may do that is related to the one of a view."""
        owned: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for machines, message in self.views:
            owned[machines][self.classes[message]] |= self.owned(machines, message)
        known: dict[tuple[int, int, Role], int] = {}

        def allowed(view: View, roles: Roles) -> int:
            machines, of_class, role = view[0], self.classes[view[1]], roles[0]
            if (machines, of_class, role) not in known:
                found = 0
                for other, events in owned[machines].items():
                    order = (other, of_class) if role is Role.EARLIER else (of_class, other)
                    if self.are_related(machines, *order):
                        found |= events
                known[machines, of_class, role] = found
            return known[machines, of_class, role]

        return allowed

    def _is_met_here(self, system: Named, message: Named) -> bool:
        """Whether some view has the half of a pair as a part of it."""
        machines = self.pairs.machines.space.find(system)
        return (machines, self.pairs.messages.space.find(message)) in self._halves

    def _check_names(self) -> None:
        """See that the pairs know no machine that the views do not know."""
        mine, theirs = (
            {part.name for part in (*views.machines.space.parts, *views.messages.space.parts)}
            for views in (self, self.pairs)
        )
        if not theirs <= mine:
            raise ChecksError(f"its relation keeps {min(theirs - mine)}, which its views do not keep")

    def _system_of(self, machines: int) -> int:
        return self.pairs.machines.space.find(self.machines.space.named(machines))

    def _class_of(self, message: int) -> int:
        return self.pairs.messages.space.find(self.messages.space.named(message))


class _Message(NamedTuple):
    of_class: int
    letter: Letter


class RelatedRest(Rest):
    """Whether a system at rest shows a mark, with messages of which each two are related."""

    def __init__(self, views: RelatedViews, products: Products) -> None:
        """``products`` are those of the pairs."""
        super().__init__(views, products)
        self._related = views
        self._of_pairs = Rest(views.pairs, products)
        self._by_half: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        self._known_places: dict[int, dict[int, tuple[int, int, int]]] = {}
        self._met: dict[int, list[_Message]] = defaultdict(list)
        for machines, messages in self.beside.items():
            self._met[machines] = list(dict.fromkeys(self._message(machines, each) for each in sorted(messages)))

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
        return _Message(self._related.classes[message], self.letter(machines, message))

    def _can_rest(self, machines: int, marked: _Message, watcher: Watcher, state: int) -> bool:
        related, of_class = self._related.are_related, marked.of_class
        before = [each for each in self._met[machines] if related(machines, each.of_class, of_class)]
        behind = [each for each in self._met[machines] if related(machines, of_class, each.of_class)]
        owed = self.owed(machines)
        if not self.stands({each.letter for each in before}, marked.letter, {each.letter for each in behind}, owed):
            return False
        part, state = (watcher.part, state) if watcher.of_message else (NOTHING, 0)
        gives = self.events + len(self._related.ghosts)
        mine = brought_about_by_others(part, state)
        waiting = [*self._waits_of(of_class), *([] if mine is None else [Waiting(None, mine)])]
        for number, each in enumerate(waiting):
            owed |= 1 << gives + number
            for side, slot in ((before, 1), (behind, 0)):
                causes = self._causes_beside(machines, of_class, part, each, slot, state)
                side[:] = [_giving(other, 1 << gives + number) if other.of_class in causes else other for other in side]
        ways = self._ways(machines)
        left, right = ({self._letter_of(machines, ways, each) for each in side} for side in (before, behind))
        return can_rest(left, self._letter_of(machines, ways, marked), right, owed)

    def _waits_of(self, of_class: int) -> list[Waiting]:
        return [] if of_class < 0 else self._of_pairs.waiting(of_class)

    def _causes_beside(  # noqa: PLR0913, PLR0917 - a message in a state, what watches it, what it waits for, and where
        self, machines: int, of_class: int, part: Part, waiting: Waiting, slot: int, state: int
    ) -> set[int]:
        """The classes of causes on one side of a message (before it, if its own ``slot`` is 1)."""
        system, found = self._related.system_in_pairs(machines), set()
        caused = self.products.caused(part, waiting, slot)
        for view in self._views_with(system, of_class, slot):
            if caused[view] >> state & 1:
                found.add(self._related.pairs.views[view][2 - slot])
        return found

    def _views_with(self, system: int, of_class: int, slot: int) -> Sequence[int]:
        if not self._by_half:
            for number, view in enumerate(self._related.pairs.views):
                for each in (0, 1):
                    self._by_half[view[0], view[1 + each], each].append(number)
        return self._by_half.get((system, of_class, slot), ())

    def _ways(self, machines: int) -> Sequence[tuple[Waiting, set[int], set[int]]]:
        classes = dict.fromkeys(each.of_class for each in self._met[machines])
        ways = dict.fromkeys(waiting for each in classes for waiting in self._waits_of(each))
        system = self._related.system_in_pairs(machines)
        return [(each, *self._of_pairs.causes_of(each, system)) for each in ways]

    def _letter_of(
        self, machines: int, ways: Sequence[tuple[Waiting, set[int], set[int]]], message: _Message
    ) -> Letter:
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
            related = self._related.are_related
            self._known_places[machines] = {
                mine: (
                    1 << at,
                    sum(1 << n for n, other in enumerate(classes) if not related(machines, mine, other)),
                    sum(1 << n for n, other in enumerate(classes) if not related(machines, other, mine)),
                )
                for at, mine in enumerate(classes)
            }
        return self._known_places[machines]


def _giving(message: _Message, bit: int) -> _Message:
    return message._replace(letter=message.letter._replace(gives=message.letter.gives | bit))
