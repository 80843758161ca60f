"""Can a system at rest show a mark?  The words of messages that could stand beside each other (Lemmas 3 and 4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from ackfsm.checking.certificates._format import Level
from ackfsm.checking.certificates._system import Part, Role, Watcher
from ackfsm.checking.certificates._views import Views
from ackfsm.checking.certificates._watching import NOTHING, Products, Waiting, brought_about_by_others
from ackfsm.checking.certificates._words import Letter, can_rest


class Rest:
    """The letters of the views of an invariant, and the words that they make; of pairs the causes alone."""

    def __init__(self, views: Views, products: Products) -> None:
        self._views, self.products = views, products
        events = views.system.events
        self.events = len(events)
        self._of_system = sum(1 << number for number, event in enumerate(events) if not event.of_message)
        self.beside: dict[int, set[int]] = defaultdict(set)
        for view in views.views:
            self.beside[view[0]].update(view[1:])
        self._letters: dict[tuple[int, int], Letter] = {}
        self._hope: dict[int, bool] = {}
        self._words: dict[tuple[object, ...], bool] = {}
        self._waits: dict[tuple[int, int], frozenset[int] | None] = {}
        self._others: dict[Waiting, dict[int, tuple[set[int], set[int]]]] = {}

    @property
    def every(self) -> tuple[Products, ...]:
        """The products of all views that know which messages there may be."""
        return (self.products,)

    def marked(self, watcher: Watcher, reached: Sequence[Sequence[int]]) -> list[int]:
        """The marked states of ``watcher`` that are ``reached``, as :meth:`Products.is_marked` has them."""
        return [state for state in sorted(watcher.marked) if self.products.is_marked(watcher, reached, state)]

    def shows(self, watcher: Watcher, reached: Sequence[Sequence[int]]) -> bool:
        """Whether a state of ``watcher`` that is marked at rest may be one of a system at rest.

        ``reached`` are its states in each view: for each slot, or once for one that watches the system.  Raises
        :class:`ackfsm.checking.certificates._words.TooManyWordsError`.
        """
        for state in sorted(watcher.at_rest):
            for machines, messages in self._marked_messages(reached[0], state).items():
                others = self.beside[machines] if watcher.of_message else messages
                letters = {self.letter(machines, each) for each in others}
                if self._views.level is Level.ALONE:
                    letters = set()
                owed = self.owed(machines)
                if any(self.stands(letters, self.letter(machines, each), letters, owed) for each in messages):
                    return True
        return False

    def _marked_messages(self, reached: Sequence[int], state: int) -> Mapping[int, set[int]]:
        """The messages of marked views, for each state of the system in which the system itself may be at rest."""
        marked: dict[int, set[int]] = defaultdict(set)
        for (machines, message), states in zip(self._views.views, reached, strict=True):
            if states >> state & 1 and self.has_hope(machines):
                marked[machines].add(message)
        return marked

    def has_hope(self, machines: int) -> bool:
        """Whether some message refuses each event that the system would let happen by itself."""
        known = self._hope.get(machines)
        if known is None:
            lacking = self._views.enabled(machines) & self._views.awaited & self._of_system
            for message in self.beside[machines]:
                lacking &= self._views.messages.of(message, Role.SYSTEM)[0]
            known = self._hope[machines] = not lacking
        return known

    def letter(self, machines: int, message: int) -> Letter:
        """What a message in this state means for rest, while the system is in that one."""
        known = self._letters.get((machines, message))
        if known is None:
            may = self._views.enabled(machines) & self._views.awaited
            accepted = {role: self._views.messages.of(message, role)[0] for role in Role}
            of_messages = may & ~self._of_system
            held = sum(1 << at for at, count in enumerate(self._views.ghosts_of(message)) if count)
            known = self._letters[machines, message] = Letter(
                needs=of_messages & accepted[Role.OWN],
                for_later=of_messages & ~accepted[Role.LATER],
                for_earlier=of_messages & ~accepted[Role.EARLIER],
                gives=(may & self._of_system & ~accepted[Role.SYSTEM]) | held << self.events,
            )
        return known

    def owed(self, machines: int) -> int:
        """What letters have to give: refuse the events of the system, hold a part of each counter that is above 0."""
        held = sum(
            1 << at for at, counter in enumerate(self._views.ghosts) if self._views.highest(counter, machines) != 0
        )
        return (self._views.enabled(machines) & self._views.awaited & self._of_system) | held << self.events

    def stands(self, left: AbstractSet[Letter], marked: Letter, right: AbstractSet[Letter], owed: int) -> bool:
        """As :func:`can_rest`, whose answers are kept."""
        key = frozenset(left), marked, frozenset(right), owed
        known = self._words.get(key)
        if known is None:
            known = self._words[key] = can_rest(left, marked, right, owed)
        return known

    def forget(self, part: Part) -> None:
        """Give back the memory that the causes for ``part`` take."""
        self.products.forget(part)

    # causes

    def causes_of(self, waiting: Waiting, machines: int) -> tuple[set[int], set[int]]:
        """In this state of the system the causes before some message that waits so, and those behind it."""
        if waiting not in self._others:
            found: dict[int, tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
            for slot in (1, 0):
                for view, caused in zip(self._views.views, self.products.caused(NOTHING, waiting, slot), strict=True):
                    if caused:
                        found[view[0]][1 - slot].add(view[2 - slot])
            self._others[waiting] = found
        return self._others[waiting][machines]

    def waiting(self, message: int) -> list[Waiting]:
        """What a message in this state waits for."""
        found = []
        for machine, state in enumerate(self._views.messages.space.states[message]):
            if (machine, state) not in self._waits:
                part = self._views.messages.space.parts[machine]
                self._waits[machine, state] = brought_about_by_others(part, state)
            states = self._waits[machine, state]
            if states is not None:
                found.append(Waiting(machine, states))
        return found
