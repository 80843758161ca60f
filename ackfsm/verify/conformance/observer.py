"""The observer of one message: its network, with all hidden that no line tells, made deterministic step by step.

A *belief* is the set of the states in which the message may be after what was heard of it.  The observer begins with
the first state; each sign leads to the belief of those states that an event of the sign leads to, and of all that
hidden events lead to from there.  An empty belief says that no run of the model looks like what was heard.

Beliefs and the successors of states are found when they are first asked for, and kept: a history shows few different
lives, and each of them meets few states of a network that may have millions.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np

from ackfsm.checking.explore import pack
from ackfsm.checking.explore.search.successors import Successors, Vectors
from ackfsm.checking.network import Bounds, Network, NetworkEvent, compose
from ackfsm.history.arrays import Ints
from ackfsm.tables import Certainty, Lane, Of, Only, Side, SignRow, Specification
from ackfsm.terms import Configuration, Fault
from ackfsm.verify.context.signs import BOTH, Sign

Belief: TypeAlias = frozenset[int]

_Kind = TypeVar("_Kind")


class Move(NamedTuple):
    """One of ``events`` happens; how sure that is, says ``certainty``: if possible, or perhaps not at all."""

    events: frozenset[int]
    certainty: Certainty


Way: TypeAlias = tuple[Move, ...]
"""What a sign may stand for: moves, one after the other, and hidden events after each."""

_MOST_STATES: Final = 30_000
_MOST_BELIEVED: Final = 2_000_000
"""States of one network that are kept with their successors, and in all beliefs: about 200 megabytes each."""


_MOST_NETWORKS: Final = 64
"""Networks that are kept for the next history, or the next part of one: of some hundred kilobytes each."""


class TooManyStatesError(Exception):
    """A search met its bound, which the text names: a clause about a message."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Tables:
    """The tables, which are the same if they are the same object."""

    specification: Specification

    def __hash__(self) -> int:
        return id(self.specification)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Tables) and other.specification is self.specification


@functools.lru_cache(maxsize=_MOST_NETWORKS)
def _network(
    tables: _Tables, configuration: Configuration, consumers: int, messages: int
) -> tuple[Network, Successors]:
    """The network of so many messages and consumers, with any fault any number of times, and where its events lead."""
    bounds = Bounds(
        messages=messages,
        faults=frozenset(Fault),
        max_faults=None,
        consumers=consumers,
        actions=_optional(tables.specification, messages),
    )
    network = compose(tables.specification, configuration, bounds, observers=())
    return network, Successors(pack(network))


def _optional(specification: Specification, messages: int) -> frozenset[str]:
    """Return the optional events that a life of so many messages may have, with a line or without one."""
    recording = specification.recording
    rows = (row for row in recording.signs.values() if row.only is not Only.WRITTEN)
    told = {event for row in rows for event in (*row.tells, *row.unwritten)}
    untold = {event for event, between in recording.untold.items() if messages > 1 or not between}
    return frozenset(event for event in told | untold if specification.events[event].optional)


class States:
    """The states of the network of one message, or two, that were met, with their successors; observers share them."""

    def __init__(
        self, specification: Specification, configuration: Configuration, consumers: int, messages: int = 1
    ) -> None:
        """The network of so many messages and consumers, in which any fault may happen any number of times."""
        self.network, self._successors = _network(_Tables(specification), configuration, consumers, messages)
        self._vectors = [self._successors.initial.tobytes()]
        self._numbers = {self._vectors[0]: 0}
        self._after: dict[frozenset[int], dict[int, tuple[int, ...]]] = {}
        self._kept: dict[type, Any] = {}
        self.believed = 0
        """How many states are kept in the beliefs of all observers."""

    def __len__(self) -> int:
        return len(self._vectors)

    def after(self, states: Iterable[int], events: frozenset[int]) -> Mapping[int, tuple[int, ...]]:
        """For each of ``states`` the states that ``events`` lead to: none if none of them is enabled.

        What other events lead to is not looked at, and mostly never met.  The answer may have other states too.
        Raises :class:`TooManyStatesError` when there are too many states by now.
        """
        after = self._after.setdefault(events, {})
        new = [state for state in states if state not in after]
        if new:
            if len(self._vectors) > _MOST_STATES:
                raise TooManyStatesError(f"a message may be in more than {_MOST_STATES:,} states")
            begin = 0
            for counts, moved in self._successors.of(self._rows(new), events):
                self._keep(after, new[begin : begin + len(counts)], counts, self._numbered(moved))
                begin += len(counts)
        return after

    def steps(self, states: Sequence[int], events: frozenset[int]) -> list[list[tuple[int, int]]]:
        """For each of ``states`` those of ``events`` that are enabled, in order, with the states that they lead to."""
        if not events or not states:
            return [[] for _ in states]
        after, numbers = self.after(states, events), sorted(events)
        enabled = self._successors.enabled(self._rows(states), events)
        return [
            [*zip(itertools.compress(numbers, its), after[state], strict=True)]
            for state, its in zip(states, enabled.tolist(), strict=True)
        ]

    def kept(self, kind: type[_Kind], make: Callable[[States], _Kind]) -> _Kind:
        """Return what is kept of this ``kind`` with the states, as long as they are; made now if there is none."""
        if kind not in self._kept:
            self._kept[kind] = make(self)
        found: _Kind = self._kept[kind]
        return found

    def machines(self, states: Iterable[int]) -> list[list[int]]:
        """The numbers of the states of the machines of the network in each of ``states``."""
        found: list[list[int]] = self._rows(states).tolist()
        return found

    def enabled(self, states: Collection[int]) -> frozenset[int]:
        """Return the events that are enabled in at least one of ``states``, which are not empty."""
        enabled = self._successors.enabled(self._rows(states), range(len(self.network.events)))
        return frozenset(np.flatnonzero(enabled.any(axis=0)).tolist())

    def is_in(self, state: int, names: Mapping[str, frozenset[str]]) -> bool:
        """Whether some machine is in one of the states that stand under its name."""
        (row,) = self.machines([state])
        return any(
            instance.fsm.states[number] in names.get(instance.fsm.name, ())
            for instance, number in zip(self.network.instances, row, strict=True)
        )

    def _rows(self, states: Iterable[int]) -> Vectors:
        data = b"".join(self._vectors[state] for state in states)
        initial = self._successors.initial
        return np.frombuffer(data, initial.dtype).reshape(-1, initial.shape[1])

    def _numbered(self, vectors: Vectors) -> list[int]:
        """The number of each row; of a new one, the next."""
        keys = vectors.view(f"V{vectors.strides[0]}").ravel().tolist()
        new = [key for key in dict.fromkeys(keys) if key not in self._numbers]
        self._numbers.update(zip(new, itertools.count(len(self._vectors))))
        self._vectors += new
        return list(map(self._numbers.__getitem__, keys))

    @staticmethod
    def _keep(after: dict[int, tuple[int, ...]], states: list[int], counts: Ints, targets: list[int]) -> None:
        """Of each of ``states`` its part of the ``targets``, which are so many."""
        ends = np.cumsum(counts).tolist()
        for state, begin, end in zip(states, [0, *ends], ends, strict=False):
            after[state] = tuple(targets[begin:end])


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hearing:
    """How the signs of a life are heard.

    Attributes:
        unheard: signs that tell nothing, and whose events need none: of the one message; or of what is of no message,
            and then of the first and second.
        alone: the sides of the message that are outside transactions while its other side is in one.
        also: signs with an event each that they may tell as well.
        together: whether two messages were sent in one transaction.
        settles: whether applications tell of what they acknowledge, so that what they hold is not at rest.
        unseen: signs that the history cannot show: what they tell of may have happened where it need not too.
    """

    unheard: tuple[frozenset[str], ...] = (frozenset(),)
    alone: frozenset[Side] = frozenset()
    also: frozenset[tuple[str, str]] = frozenset()
    together: bool = False
    settles: bool = False
    unseen: frozenset[str] = frozenset()


class Observer:
    """The observer of the signs of one message or two; events without a sign may happen unseen."""

    def __init__(self, states: States, specification: Specification, hearing: Hearing) -> None:
        self.states = states
        self._hearing = hearing
        self._recording = specification.recording
        self._environment = specification.environment(states.network.configuration)
        self.around = self._recording.around
        """The signs of what happens around messages."""
        self._lanes = {name: event.lane for name, event in specification.events.items()}
        rows = [row for row in self._recording.signs.values() if row.only is not Only.WRITTEN]
        told = {row.name: self._told(row) for row in rows}
        heard = [{event for row in rows if row.name not in its for event in told[row.name]} for its in hearing.unheard]
        events = states.network.events
        happens = {event for name in hearing.unseen for event in told.get(name, ())}
        untold = frozenset() if hearing.together else self._recording.untold.keys()
        self.hidden = frozenset(
            number
            for number, event in enumerate(events)
            if event.name in untold
            or event.name in happens
            or (event.name not in heard[self._whose(event)] and not event.may_never_happen)
        )
        own = (Side.PRODUCER,) if hearing.settles else (Side.PRODUCER, Side.CONSUMER)
        calls = {event for row in rows if row.is_call and row.side in own for event in told[row.name]}
        self._due = frozenset(
            number
            for number, event in enumerate(events)
            if not event.may_never_happen  # what applications have no line of a library does
            and event.name not in calls & heard[self._whose(event)] | self._recording.not_awaited
        )
        self._steps: dict[tuple[Belief, Sign], Belief] = {}
        self._ways: dict[Sign, tuple[Way, ...]] = {}
        self._closures: dict[Belief, Belief] = {}

    def _told(self, row: SignRow) -> tuple[str, ...]:
        """The events that a sign tells of a message, one of whose sides may be alone."""
        return row.alone if row.alone and row.side in self._hearing.alone else row.tells

    def _whose(self, event: NetworkEvent) -> int:
        """Of which message of a pair ``event`` is: 1 or 2, and 0 where it is of no message, or there is one."""
        return event.index[0] if event.index and len(self._hearing.unheard) > 1 else 0

    def _is_of(self, event: NetworkEvent, of: int) -> bool:
        return of in {0, BOTH} or self._whose(event) in {0, of}

    def first(self) -> Belief:
        """Return the belief before the first sign."""
        return self._closure(frozenset({0}))

    def hear(self, belief: Belief, sign: Sign) -> Belief:
        """Return the belief after ``sign``; empty if the sign is impossible."""
        key = belief, sign
        if key not in self._steps:
            self._steps[key] = self._heard(belief, sign)
        return self._steps[key]

    def possible(self, belief: Belief) -> tuple[str, ...]:
        """What might have been heard instead, as labels of events, without faults and what applications choose."""
        events = self.states.network.events
        numbers = self.states.enabled(belief) - self.hidden
        return tuple(sorted(events[number].label for number in numbers if not events[number].may_never_happen))

    def ways(self, sign: Sign) -> tuple[Way, ...]:
        """Return what ``sign``, which is not that the message is at rest, may stand for: one of these ways."""
        row = self._recording.signs[sign.name]
        if sign.of == BOTH and row.of is Of.COVERED:
            return self._in_either_order(sign, row)
        if sign.name in self._hearing.unheard[0 if sign.of == BOTH else sign.of]:
            return ((),)
        certainty = max(sign.certainty, row.sure)
        told = Move(self._events(row, sign), Certainty.CERTAIN if certainty is Certainty.PERHAPS else certainty)
        before, after = self._unwritten(row, sign.consumer), self._then(row, sign.consumer)
        then = (Move(after, Certainty.PERHAPS),) if after else ()
        way = (*((Move(before, Certainty.PERHAPS),) if before else ()), told, *then)
        return (way, then) if certainty is Certainty.PERHAPS else (way,)

    def _heard(self, belief: Belief, sign: Sign) -> Belief:
        row = self._recording.signs[sign.name]
        if row.stays_away:
            unheard = sign.name in self._hearing.unheard[0 if sign.of == BOTH else sign.of]
            return belief if unheard else self._at_rest(belief, row)
        if sign not in self._ways:
            self._ways[sign] = self.ways(sign)
        after = (functools.reduce(self._moved, way, belief) for way in self._ways[sign])
        return frozenset[int]().union(*after)

    def _moved(self, belief: Belief, move: Move) -> Belief:
        """The belief after ``move``, and hidden events."""
        after = self._fired(belief, move.events)
        if move.certainty is Certainty.PERHAPS:
            after |= belief
        elif move.certainty is Certainty.IF_POSSIBLE:
            possible = self.states.after(belief, move.events)
            after |= {state for state in belief if not possible[state]}
        return self._closure(frozenset(after))

    def _then(self, row: SignRow, consumer: int) -> frozenset[int]:
        """What its client may do next without a line."""
        return self._named(row.then if row.then and row.then_where.holds(self._environment) else (), consumer)

    def _unwritten(self, row: SignRow, consumer: int) -> frozenset[int]:
        """What may have happened just before without a line: a call has its line before."""
        if not row.last_words:
            return self._named(row.unwritten, consumer)
        side = Lane(row.side.value)
        return frozenset(
            number
            for number, event in enumerate(self.states.network.events)
            if self._lanes[event.name] is side
            and not event.may_never_happen
            and event.name not in self._recording.calls
            and _concerns(event, consumer)
        )

    def _in_either_order(self, sign: Sign, row: SignRow) -> tuple[Way, ...]:
        """One call, or its answer, is an event of each of two messages, unless that of one covers the other."""
        covers = row.is_call and sign.certainty is Certainty.CERTAIN
        found = list[Way]()
        for one in (1, BOTH - 1):
            other = dataclasses.replace(sign.if_possible() if covers else sign, of=BOTH - one)
            both = itertools.product(self.ways(dataclasses.replace(sign, of=one)), self.ways(other))
            found += (first + second for first, second in both)
        return tuple(found)

    def _at_rest(self, belief: Belief, row: SignRow) -> Belief:
        due = self.states.after(belief, self._due)
        return frozenset(state for state in belief if not due[state] and not self.states.is_in(state, row.stays_away))

    def _events(self, row: SignRow, sign: Sign) -> frozenset[int]:
        names = {*self._told(row), *(event for name, event in self._hearing.also if name == row.name)}
        return frozenset(
            number
            for number in self._named(names, sign.consumer)
            if self._is_of(self.states.network.events[number], sign.of)
        )

    def _named(self, names: Collection[str], consumer: int) -> frozenset[int]:
        events = enumerate(self.states.network.events)
        return frozenset(number for number, event in events if event.name in names and _concerns(event, consumer))

    def _fired(self, belief: Collection[int], events: frozenset[int]) -> set[int]:
        after = self.states.after(belief, events)
        return set(itertools.chain.from_iterable(map(after.__getitem__, belief)))

    def _closure(self, belief: Belief) -> Belief:
        """``belief`` and all that hidden events lead to."""
        if belief not in self._closures:
            found, front = set(belief), set(belief)
            while front:
                front = self._fired(front, self.hidden) - found
                found |= front
            self.states.believed += len(belief) + len(found)
            if self.states.believed > _MOST_BELIEVED:
                raise TooManyStatesError(f"a message may be in too many states at once (more than {_MOST_BELIEVED:,})")
            self._closures[belief] = frozenset(found)
        return self._closures[belief]


def _concerns(event: NetworkEvent, consumer: int) -> bool:
    return not event.consumer or not consumer or event.consumer == consumer
