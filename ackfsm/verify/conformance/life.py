"""The life of one message as the observer hears it: signs in an order that is known in part.

What one process wrote is in order.  Between processes the moment of an event is an interval: a call takes effect after
its line and before the next one of its process, a fault between its line and its repair.  Of two events one certainly
came first only if its interval ends before that of the other begins.  With the signs in the order of the ends of their
intervals, those that certainly came before one of them are the first so many; so a life is a sequence of signs, each
with a lane and a *reach*: how many of the signs just before it may have come after it.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from ackfsm.verify.conformance.observer import Belief, Observer, TooManyStatesError
from ackfsm.verify.context.signs import AT_REST, Sign

__all__ = ["MOST_CUTS", "TOO_MANY_ORDERS", "Contradiction", "Cut", "Heard", "Life", "Walk", "contradiction"]


@dataclasses.dataclass(frozen=True, slots=True)
class Heard:
    """One sign of a life.

    Attributes:
        sign: what was heard.
        lane: a number for whoever wrote it; signs of one lane are in order.
        reach: how many of the signs before it, in other lanes, may have come after it.
    """

    sign: Sign
    lane: int
    reach: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Life:
    """All that was heard of one message, and whether it is certain that nothing followed."""

    heard: tuple[Heard, ...]
    at_rest: bool = False

    @property
    def names(self) -> frozenset[str]:
        """The names of its signs."""
        return frozenset(each.sign.name for each in self.heard)

    def with_signs(self, signs: Iterable[Sign]) -> Life:
        """The same with these ``signs`` in the places of its own."""
        heard = (dataclasses.replace(each, sign=sign) for each, sign in zip(self.heard, signs, strict=True))
        return Life(tuple(heard), self.at_rest)

    def without(self, *places: int) -> Life:
        """The same but for the signs at ``places``."""
        left_out = {*places}
        gone = [*itertools.accumulate((place in left_out for place in range(len(self.heard))), initial=0)]
        kept = (
            _closer(each, gone[nth] - gone[max(0, nth - each.reach)])
            for nth, each in enumerate(self.heard)
            if gone[nth] == gone[nth + 1]
        )
        return Life(tuple(kept), self.at_rest)


def _closer(heard: Heard, signs: int) -> Heard:
    """The same where so many of the signs that may have come after it are not there."""
    return dataclasses.replace(heard, reach=heard.reach - signs) if signs else heard


@dataclasses.dataclass(frozen=True, slots=True)
class Contradiction:
    """Where a life stops to be a run of the model.

    Attributes:
        place: of the first sign that is impossible, however the signs before it are ordered; the length of the life if
            it is impossible that nothing followed.
        possible: what might have been heard instead, as labels of events.
    """

    place: int
    possible: tuple[str, ...]


Cut: TypeAlias = int
"""Which signs were heard, as bits."""

MOST_CUTS: Final = 20_000
"""So many sets of signs that may have been heard, of one life, are looked at: some seconds."""

TOO_MANY_ORDERS: Final = (
    f"the lines of a message may have happened in too many orders (more than {MOST_CUTS:,} sets of them)"
)


def contradiction(life: Life, observer: Observer) -> Contradiction | None:
    """Why no run of the model looks like ``life``; ``None`` if one does.

    The place is that of the first sign with which nothing that was heard until then can go together.
    """
    walk, seen = Walk(life, observer), dict[Cut, Belief]()
    belief = walk.end(walk.spread(walk.first(), seen))
    if belief:
        return None if walk.rested(belief) else Contradiction(len(life.heard), observer.possible(belief))
    told = [place for place, each in enumerate(life.heard) if each.sign.name not in observer.around]
    leading = {cut: _leading(told, cut) for cut in seen}
    most = max(leading.values())
    place = told[most] if most < len(told) else len(life.heard)
    ready = (cut for cut, count in leading.items() if count == most and walk.may_be_next(place, cut))
    return Contradiction(place, observer.possible(frozenset[int]().union(*map(seen.__getitem__, ready))))


def _leading(told: Sequence[int], cut: Cut) -> int:
    """How many of those ``told`` are in ``cut`` before the first that is not."""
    return next((count for count, place in enumerate(told) if not cut >> place & 1), len(told))


_NONE: Final[Belief] = frozenset()


class Walk:
    """The beliefs of an observer at the cuts of one life: at the sets of signs that may have been heard first."""

    def __init__(self, life: Life, observer: Observer) -> None:
        self._life = life
        self._observer = observer
        self._order = _Order(life.heard)
        self._all = (1 << len(life.heard)) - 1

    def first(self) -> Mapping[Cut, Belief]:
        """Return the belief at the gap before all signs."""
        return {0: self._observer.first()}

    def may_be_next(self, place: int, cut: Cut) -> bool:
        """Whether all that came before the sign at ``place`` is in ``cut``; for the end, always."""
        return place == len(self._life.heard) or not self._order.before[place] & ~cut

    def following(self, cut: Cut) -> Iterator[int]:
        """Yield the places of the signs that may be the next after those of ``cut``."""
        return self._order.next(cut)

    def end(self, level: Mapping[Cut, Belief]) -> Belief:
        """Return the belief at the cut of all signs."""
        return level.get(self._all, _NONE)

    def rested(self, belief: Belief) -> Belief:
        """Return the states at rest of a ``belief`` at the end, or all if something may have followed."""
        return self._observer.hear(belief, Sign(AT_REST)) if self._life.at_rest else belief

    def spread(self, start: Mapping[Cut, Belief], seen: dict[Cut, Belief]) -> dict[Cut, Belief]:
        """Return the beliefs that ``start`` and the signs lead to, except those ``seen``, and add them there.

        Raises :class:`TooManyStatesError` if there are too many orders.
        """
        found: dict[Cut, Belief] = {}
        by_size: list[dict[Cut, Belief]] = [{} for _ in range(len(self._life.heard) + 1)]
        for cut, belief in start.items():
            by_size[cut.bit_count()][cut] = belief
        for size, cuts in enumerate(by_size):
            for cut, belief in cuts.items():
                known = seen.get(cut, _NONE)
                new = belief - known if known else belief
                if new:
                    found[cut], seen[cut] = new, known | new
                    if len(seen) > MOST_CUTS:
                        raise TooManyStatesError(TOO_MANY_ORDERS)
                    self._hear_on(cut, new, by_size[size + 1] if size < len(by_size) - 1 else {})
        return found

    def _hear_on(self, cut: Cut, belief: Belief, following: dict[Cut, Belief]) -> None:
        for place in self._order.next(cut):
            after = self._observer.hear(belief, self._life.heard[place].sign)
            if after:
                more = cut | 1 << place
                following[more] = following[more] | after if more in following else after


def predecessors(heard: Sequence[Heard]) -> list[Cut]:
    """Return for each sign the cut of the signs that came before it, certainly or by convention between equal ones.

    Of two equal signs the second comes after the first if what the first waits for the second waits for too, and what
    waits for the second waits for the first: in any other order they can change places.  So forty crashes of a process
    in one and the same time have one order and not 2**40 sets of those that have happened.
    """
    found = []
    for place, this in enumerate(heard):
        certain = max(0, place - this.reach)
        same = sum(1 << other for other in range(certain, place) if heard[other].lane == this.lane)
        found.append((1 << certain) - 1 | same)
    equal = [
        (first, second)
        for second in range(len(heard))
        for first in range(max(0, second - heard[second].reach), second)
        if heard[first].sign == heard[second].sign and not found[first] & ~found[second]
    ]
    after = {place: _after(found, place) for place in set(itertools.chain.from_iterable(equal))}
    for first, second in equal:
        if not after[second] & ~after[first]:
            found[second] |= 1 << first
    return found


def _after(before: Sequence[Cut], place: int) -> Cut:
    """Return the cut of the signs that the sign at ``place`` came before; ``before`` has each one's predecessors."""
    return sum(1 << other for other, its in enumerate(before) if its >> place & 1)


_KEPT: Final = 64


class _Order:
    """The order of the signs of a life: ``before`` has for each sign its predecessors."""

    def __init__(self, heard: Sequence[Heard]) -> None:
        self.before = predecessors(heard)
        self._certain = [max(0, place - each.reach) for place, each in enumerate(heard)]
        self._least = [*itertools.accumulate(reversed(self._certain), min)][::-1]
        self._near: dict[int, list[int]] = {}

    def next(self, cut: Cut) -> Iterator[int]:
        """Yield the places of the signs that may come after the signs of ``cut``."""
        first = (~cut & (cut + 1)).bit_length() - 1
        if first not in self._near:
            if len(self._near) == _KEPT:
                self._near.clear()
            self._near[first] = self._that_may_precede(first)
        return (place for place in self._near[first] if not (cut >> place & 1 or self.before[place] & ~cut))

    def _that_may_precede(self, first: int) -> list[int]:
        """The places from ``first`` on that may come before it; the life may have thousands that cannot."""
        end = bisect.bisect_right(self._least, first, lo=first)
        return [place for place in range(first, end) if self._certain[place] <= first]
