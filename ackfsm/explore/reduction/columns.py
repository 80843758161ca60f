"""The columns of a packed network, with sets of states and of events as bits: what static analysis works on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ackfsm.network import Packed

__all__ = ["Part", "bits", "columns_of", "parts_of", "reach"]


class Part:
    """One participant: its instance, its column, and as bits the states in which it has a row."""

    __slots__ = ("column", "enabled", "images", "who")

    def __init__(self, who: int, column: tuple[int, ...], enabled: int | None = None) -> None:
        self.who = who
        self.column = column
        self.enabled = _enabled(column) if enabled is None else enabled
        self.images: dict[int, int] = {}

    def image(self, states: int) -> int:
        """The states after the event, as bits, from those of ``states``."""
        if states not in self.images:
            after = 0
            for state in bits(states & self.enabled):
                after |= 1 << self.column[state]
            self.images[states] = after
        return self.images[states]


def bits(numbers: int) -> Iterator[int]:
    """The numbers of a set that is given as bits, in their order."""
    while numbers:
        lowest = numbers & -numbers
        yield lowest.bit_length() - 1
        numbers ^= lowest


def _enabled(column: tuple[int, ...]) -> int:
    return sum(1 << state for state, after in enumerate(column) if after >= 0)


def parts_of(packed: Packed) -> list[list[Part]]:
    """The participants of each event; those that have one column in several events are one object."""
    columns: dict[tuple[int, int], tuple[tuple[int, ...], int]] = {}  # few columns, of many participants
    known: dict[tuple[int, int], Part] = {}

    def part(p: int) -> Part:
        who, start = packed.who[p], packed.where[p]
        if (who, start) not in known:
            place = start, packed.size[who]
            if place not in columns:
                column = tuple(packed.table[start : start + packed.size[who]])
                columns[place] = column, _enabled(column)
            known[who, start] = Part(who, *columns[place])
        return known[who, start]

    return [[part(p) for p in range(packed.first[e], packed.first[e + 1])] for e in range(len(packed.free))]


def columns_of(parts: Sequence[Sequence[Part]], machines: int) -> list[dict[tuple[int, ...], int]]:
    """The columns of each machine, with the events that have them there, as bits."""
    columns: list[dict[tuple[int, ...], int]] = [{} for _ in range(machines)]
    for event, participants in enumerate(parts):
        for part in participants:
            columns[part.who][part.column] = columns[part.who].get(part.column, 0) | 1 << event
    return columns


def reach(parts: Sequence[Sequence[Part]], start: Iterable[int], candidates: Iterable[int]) -> tuple[list[int], int]:
    """The states that each machine may reach from those of ``start``, and the events that may happen, all as bits.

    A least fixed point: an event of the ``candidates`` happens as soon as every participant has, in *some* state
    reached so far, a row for it.
    """
    fixed_point = _Reaching(parts, list(start))
    fixed_point.find(candidates)
    return fixed_point.reached, sum(1 << event for event in fixed_point.alive)


class _Reaching:
    """The states that machines have reached; of those that they came to lately, what follows is still to be found."""

    def __init__(self, parts: Sequence[Sequence[Part]], reached: list[int]) -> None:
        self.reached = reached
        self.alive: set[int] = set()
        self._parts = parts
        self._possible = [0] * len(parts)  # so many of the participants have a row in some state
        self._new: dict[int, int] = {}

    def find(self, candidates: Iterable[int]) -> None:
        hearing: dict[int, list[tuple[int, Part]]] = defaultdict(list)
        for event in candidates:
            for part in self._parts[event]:
                hearing[part.who].append((event, part))
            self._try(event)
        while self._new:
            machine, new = self._new.popitem()
            for event, part in hearing[machine]:
                if event in self.alive:
                    self._lead_on(part, new)
                else:
                    self._try(event)

    def _try(self, event: int) -> None:
        """See whether the event may happen by now, and if so what comes of it."""
        parts = self._parts[event]
        first = self._possible[event]
        while first < len(parts) and self.reached[parts[first].who] & parts[first].enabled:
            first += 1
        self._possible[event] = first
        if first == len(parts):
            self.alive.add(event)
            for part in parts:
                self._lead_on(part, self.reached[part.who])

    def _lead_on(self, part: Part, states: int) -> None:
        after = part.image(states) & ~self.reached[part.who]
        if after:
            self.reached[part.who] |= after
            self._new[part.who] = self._new.get(part.who, 0) | after
