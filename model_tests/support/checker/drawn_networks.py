"""Networks of every shape, drawn from a few numbers: few states, whatever the number of components and of their states.

What an explorer does depends on the shape of a network: how many components there are and how many local states each
has decide how a state is laid out in words, the number of events decides how many masks they need.  The shapes that
tables of ``spec/`` have are a few of those.  A :class:`Shape` says what a network is to be like; :func:`network` makes
one.  Most components move together, or seldom, so that there are few states of the whole.
"""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Iterator, Mapping, Sequence

from ackfsm.checking.network import Bounds, Index, Instance, Network, NetworkEvent, Participant
from ackfsm.tables import EventRef, Fsm
from ackfsm.terms import Anomaly
from model_tests.support.tables import row, shipped

_TICK = "tick"
"""The event that moves everything that goes round."""

_NAMES = (*Anomaly, "a wish", "another")
"""What machines watch for."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a network is like.

    Attributes:
        components: how many, the system among them.
        small: machines of a few states, and how many events each hears, at random.
        rounds: the lengths of machines that go round together, one for each entry.
        heaps: the same for machines that are all in one component.
        shuffled: the sizes of machines that an event leads anywhere.
        events: how many beside the tick.
        fuel: how many of these can happen in all; ``None``: any number.
        ticks: how often the tick can happen; ``None``: always.
        watchers: how many machines watch for something.
        free: how many of ten events may never happen.
        copies: whether some components are copies of a message.
        seed: decides the rest.
    """

    components: int = 1
    small: int = 1
    rounds: tuple[int, ...] = ()
    heaps: tuple[int, ...] = ()
    shuffled: tuple[int, ...] = ()
    events: int = 1
    fuel: int | None = None
    ticks: int | None = None
    watchers: int = 0
    free: int = 3
    copies: bool = False
    seed: int = 0


def drawn(seed: int) -> Shape:
    """A shape at random; each of the kinds that matter is frequent."""
    draw = random.Random(seed)
    components = draw.choice([1, 2, 3, draw.randint(4, 15), draw.randint(16, 31), draw.randint(32, 60)])
    long = draw.choice([0, 0, 17, 40, 120, 300])
    together = draw.choice([0, 0, 1, 3, components, 2 * components])
    lengths = [max(2, draw.choice([long, long, 2, 3, 5])) for _ in range(together)]
    if draw.random() < 0.5:
        lengths = [max(lengths, default=2) if length > 5 else length for length in lengths]
    events = draw.choice([1, 3, 6, 12, draw.randint(20, 61), draw.randint(62, 70), draw.randint(120, 140)])
    return Shape(
        components=components,
        small=draw.choice([1, 2, 4, draw.randint(1, max(1, components))]),
        rounds=tuple(lengths),
        heaps=tuple(draw.choice([2, 5, 17, 64]) for _ in range(draw.choice([0, 0, 0, 12, 30]))),
        shuffled=tuple(draw.choice([4, 20, 70, 250]) for _ in range(draw.choice([0, 0, 1, 1, 2, 4]))),
        events=events,
        fuel=draw.choice([None, None, 9, 4, 2]),
        ticks=draw.choice([None, 3, 20, 400]),
        watchers=draw.choice([0, 1, 2, 4, 9]),
        free=draw.choice([0, 3, 3, 10]),
        copies=draw.random() < 0.15,
        seed=seed,
    )


def network(shape: Shape) -> Network:
    """The network of that shape."""
    return _Making(shape).network()


class _Making:
    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.draw = random.Random(shape.seed)
        self.names = [f"event_{n}" for n in range(shape.events)]
        self.indices: list[Index] = [()]
        for n in range(1, shape.components):
            self.indices.append((n // 2 + 1, n % 2 + 1) if shape.copies else (n,))

    def network(self) -> Network:
        machines = [*self._machines()]
        self.draw.shuffle(machines)
        events = [*self.names]
        if any(_TICK in (event.name for event in machine.fsm.alphabet) for machine in machines):
            events.insert(self.draw.randint(0, len(events)), _TICK)
        return Network(
            shipped().configure(), Bounds(), tuple(machines), tuple(self._event(name, machines) for name in events)
        )

    def _event(self, name: str, machines: Sequence[Instance]) -> NetworkEvent:
        ref = EventRef(name)
        parts = tuple(Participant(n, ref) for n, machine in enumerate(machines) if ref in machine.fsm.alphabet)
        return NetworkEvent(name, (), self.draw.randint(1, 10) <= self.shape.free, parts)

    def _machines(self) -> Iterator[Instance]:
        shape, draw = self.shape, self.draw
        for index in self.indices:  # every component has one
            yield self._small(index)
        for _ in range(shape.small):
            yield self._small(draw.choice(self.indices))
        for n, length in enumerate(shape.rounds):
            yield self._round(length, self.indices[n % len(self.indices)])
        heap = draw.choice(self.indices)
        for length in shape.heaps:
            yield self._round(length, heap)
        for size in shape.shuffled:
            yield self._shuffled(size)
        for _ in range(shape.watchers):
            yield self._watcher()
        if shape.fuel is not None:
            yield self._tank(shape.fuel, self.names)
        if shape.ticks is not None and (shape.rounds or shape.heaps):
            yield self._tank(shape.ticks, [_TICK])

    def _some(self, most: int) -> list[str]:
        return self.draw.sample(self.names, self.draw.randint(1, min(most, len(self.names))))

    def _small(self, index: Index) -> Instance:
        states = range(self.draw.choice([1, 2, 2, 2, 3, 4]))
        steps = {(s, e): self.draw.choice([*states, None]) for e in self._some(3) for s in states}
        return _machine(len(states), steps, index, initial=self.draw.choice(states))

    def _round(self, length: int, index: Index) -> Instance:
        if self.draw.random() < 0.8:
            return Instance(_ring(length), index)
        refused = self.draw.randrange(length)
        steps: dict[tuple[int, str], int | None] = {(s, _TICK): (s + 1) % length for s in range(length)}
        steps |= {(s, self.draw.choice(self.names)): None if s == refused else 0 for s in range(length)}
        return _machine(length, _total(length, steps), index)

    def _shuffled(self, size: int) -> Instance:
        steps = {
            (s, e): self.draw.choice([self.draw.randrange(size), None, s + 1 if s + 1 < size else 0])
            for e in [*self._some(2), *([_TICK] if self.draw.random() < 0.3 else [])]
            for s in range(size)
        }
        return _machine(size, steps, self.draw.choice(self.indices), initial=self.draw.randrange(size))

    def _tank(self, full: int, names: Sequence[str]) -> Instance:
        steps = {(s, e): s - 1 if s else None for s in range(full + 1) for e in names}
        return _machine(full + 1, steps, (), initial=full)

    def _watcher(self) -> Instance:
        states = range(self.draw.randint(2, 5))
        steps: dict[tuple[int, str], int | None] = {
            (s, e): self.draw.choice(states) for e in self._some(4) for s in states
        }
        plain = _machine(len(states), steps, self.draw.choice(self.indices))
        return dataclasses.replace(
            plain,
            anomaly=self.draw.choice(_NAMES),
            marked=self._marked(plain.fsm.states),
            marked_at_rest=self._marked(plain.fsm.states),
        )

    def _marked(self, states: Sequence[str]) -> frozenset[str]:
        return frozenset(state for state in states if self.draw.random() < 0.25)


def _total(length: int, steps: Mapping[tuple[int, str], int | None]) -> dict[tuple[int, str], int | None]:
    """With each event somewhere, with it everywhere: where it was not named it changes nothing."""
    events = dict.fromkeys(event for _, event in steps)
    return {(s, e): steps.get((s, e), s) for s in range(length) for e in events}


@functools.cache
def _ring(length: int) -> Fsm:
    return _machine(length, {(s, _TICK): (s + 1) % length for s in range(length)}, ()).fsm


def _machine(size: int, steps: Mapping[tuple[int, str], int | None], index: Index, *, initial: int = 0) -> Instance:
    states = tuple(f"s{n}" for n in range(size))
    events = tuple(EventRef(name) for name in dict.fromkeys(event for _, event in steps))
    rows = {}
    for event in events:
        for s in range(size):
            target = steps[s, event.name]
            rows[states[s], event] = row(states[s], event, None if target is None else states[target])
    return Instance(Fsm("machine", states, states[initial], events, rows), index)
