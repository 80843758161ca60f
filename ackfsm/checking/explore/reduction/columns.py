"""The columns of a packed network, with sets of states and of events as bits: for static analysis."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ackfsm.checking.explore.search.encode import PackedNetwork


class ParticipantColumn:
    """One participant: its instance, its column, and as bits the states in which it has a row."""

    __slots__ = ("column", "enabled", "images", "instance")

    def __init__(self, instance: int, column: tuple[int, ...], enabled: int | None = None) -> None:
        self.instance = instance
        self.column = column
        self.enabled = _enabled(column) if enabled is None else enabled
        self.images: dict[int, int] = {}

    def image(self, states: int) -> int:
        """Return the states after the event, as bits, from ``states``, also bits."""
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


@functools.lru_cache(maxsize=10_000)
def _enabled(column: tuple[int, ...]) -> int:
    return sum(1 << state for state, after in enumerate(column) if after >= 0)


def participant_columns(packed: PackedNetwork) -> list[list[ParticipantColumn]]:
    """Return the columns of the participants of each event; equal columns are one object."""
    columns: dict[tuple[int, int], tuple[tuple[int, ...], int]] = {}  # few columns, of many participants
    known: dict[tuple[int, int], ParticipantColumn] = {}

    def part(p: int) -> ParticipantColumn:
        instance, start = packed.instance[p], packed.offset[p]
        if (instance, start) not in known:
            key = start, packed.size[instance]
            if key not in columns:
                column = tuple(packed.table[start : start + packed.size[instance]])
                columns[key] = column, _enabled(column)
            known[instance, start] = ParticipantColumn(instance, *columns[key])
        return known[instance, start]

    return [[part(p) for p in range(packed.first[e], packed.first[e + 1])] for e in range(len(packed.free))]


def columns_by_machine(parts: Sequence[Sequence[ParticipantColumn]], machines: int) -> list[dict[tuple[int, ...], int]]:
    """The columns of each machine, with the events that have them there, as bits."""
    columns: list[dict[tuple[int, ...], int]] = [{} for _ in range(machines)]
    for event, participants in enumerate(parts):
        for part in participants:
            columns[part.instance][part.column] = columns[part.instance].get(part.column, 0) | 1 << event
    return columns


def over_approximate(
    parts: Sequence[Sequence[ParticipantColumn]], start: Iterable[int], candidates: Iterable[int]
) -> tuple[list[int], int]:
    """Return the states that each machine may reach from ``start``, and the possible events, all as bits.

    A least fixed point: an event of the ``candidates`` happens as soon as every participant has, in *some* state
    reached so far, a row for it.
    """
    fixed_point = _FixedPoint(parts, list(start))
    fixed_point.find(candidates)
    return fixed_point.reached, sum(1 << event for event in fixed_point.alive)


class _FixedPoint:
    """The states that machines reach; the successors of the ``_new`` ones are still to be found."""

    def __init__(self, parts: Sequence[Sequence[ParticipantColumn]], reached: list[int]) -> None:
        self.reached = reached
        self.alive: set[int] = set()
        self._parts = parts
        self._possible = [0] * len(parts)  # so many of the participants have a row in some state
        self._new: dict[int, int] = {}

    def find(self, candidates: Iterable[int]) -> None:
        listeners: dict[int, list[tuple[int, ParticipantColumn]]] = defaultdict(list)
        for event in candidates:
            for part in self._parts[event]:
                listeners[part.instance].append((event, part))
            self._try(event)
        while self._new:
            machine, new = self._new.popitem()
            for event, part in listeners[machine]:
                if event in self.alive:
                    self._propagate(part, new)
                else:
                    self._try(event)

    def _try(self, event: int) -> None:
        """See whether the event may happen by now, and if so reach the states after it."""
        parts = self._parts[event]
        first = self._possible[event]
        while first < len(parts) and self.reached[parts[first].instance] & parts[first].enabled:
            first += 1
        self._possible[event] = first
        if first == len(parts):
            self.alive.add(event)
            for part in parts:
                self._propagate(part, self.reached[part.instance])

    def _propagate(self, part: ParticipantColumn, states: int) -> None:
        after = part.image(states) & ~self.reached[part.instance]
        if after:
            self.reached[part.instance] |= after
            self._new[part.instance] = self._new.get(part.instance, 0) | after
