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
    """The participants of each event."""
    known: dict[tuple[int, int], tuple[tuple[int, ...], int]] = {}  # few columns, of many participants

    def part(p: int) -> Part:
        who, start = packed.who[p], packed.where[p]
        place = start, packed.size[who]
        if place not in known:
            column = tuple(packed.table[start : start + packed.size[who]])
            known[place] = column, _enabled(column)
        return Part(who, *known[place])

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
    reached so far, a row for it.  Events are looked at again only if a machine that hears them was led further, and
    then only for the states that are new.
    """
    reached, alive = list(start), set[int]()
    waiting: Iterable[int] = list(candidates)
    hearing: dict[int, list[int]] = defaultdict(list)
    for event in waiting:
        for part in parts[event]:
            hearing[part.who].append(event)
    done = {event: [0] * len(parts[event]) for event in waiting}
    while waiting:
        grown = set[int]()
        for event in waiting:
            if event in alive or all(reached[part.who] & part.enabled for part in parts[event]):
                alive.add(event)
                grown.update(_led_on(parts[event], reached, done[event]))
        waiting = sorted({event for machine in grown for event in hearing[machine]})
    return reached, sum(1 << event for event in alive)


def _led_on(parts: Sequence[Part], reached: list[int], done: list[int]) -> Iterator[int]:
    """Lead the machines of one event on from the states that it was not ``done`` for; those that come to new ones."""
    for k, part in enumerate(parts):
        new = reached[part.who] & ~done[k]
        if new:
            done[k] |= new
            after = part.image(new) & ~reached[part.who]
            if after:
                reached[part.who] |= after
                yield part.who
