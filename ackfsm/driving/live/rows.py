"""Which rows of the machines a recorded history performed.

The verifier looks for a run of the model that explains what was recorded of a message.  Here all such runs are looked
at: a row is performed *for certain* if each of them takes it, *possibly* if some does.  Equal lives are asked once.
What one message cannot show, since its rows are about another message, is asked of pairs.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Self, TypeAlias

import numpy as np

from ackfsm.checking.network import Network, NetworkEvent
from ackfsm.history.queues import Configurations
from ackfsm.history.read import History
from ackfsm.tables import Certainty, Fsm, Machine, Relation, Row, RowKind, Specification, base_state
from ackfsm.terms import Configuration
from ackfsm.verify.conformance.life import Cut, Life, Walk
from ackfsm.verify.conformance.messages import Conformance
from ackfsm.verify.conformance.observer import Observer, TooManyStatesError
from ackfsm.verify.findings.examine import Asked, outcome_of

__all__ = ["Performed", "RowTaker", "TableRow", "rows_of", "rows_performed"]


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class TableRow:
    """A row of a machine that lets an event happen.

    Attributes:
        machine: its name.
        state: the state of the table; of a counter, the heading.
        event: with its relation.
        place: file and line.
        row: the row itself.
    """

    machine: str
    state: str
    event: str
    place: str
    row: Row = dataclasses.field(compare=False, repr=False)

    @property
    def moves(self) -> bool:
        """Whether it is a transition: a row that lets the event pass is none."""
        return self.row.kind is RowKind.TO

    @property
    def of_others(self) -> bool:
        """Whether its event is one of another message, or of another consumer or subscription."""
        return self.row.event.relation is not Relation.OWN

    def __str__(self) -> str:
        return f"{self.machine}: {self.state}, {self.event} ({self.place})"


class RowTaker:
    """Tells which rows of the tables a step of a network takes."""

    def __init__(self, specification: Specification, network: Network) -> None:
        self._machines = specification.machines
        self._network = network
        self._known: dict[tuple[int, str, object], TableRow | None] = {}

    def of_machine(self, fsm: Fsm, row: Row) -> TableRow | None:
        """The row of the table that ``row`` of ``fsm`` stands for; ``None`` for what no table says."""
        key = id(fsm), row.state, row.event
        if key not in self._known:
            self._known[key] = _of_table(self._machines[fsm.name], row) if fsm.name in self._machines else None
        return self._known[key]

    def of_step(self, state: Sequence[str], event: NetworkEvent) -> Iterator[TableRow]:
        """Yield the rows that let ``event`` happen in ``state``."""
        for instance, row in self._network.rows(state, event):
            found = self.of_machine(instance.fsm, row)
            if found is not None:
                yield found


def rows_of(machine: Machine) -> Iterator[TableRow]:
    """Yield the rows of ``machine`` that let events happen."""
    for row in machine.rows():
        if row.kind is not RowKind.REFUSE:
            yield TableRow(machine.name, row.state, str(row.event), row.place, row)


def _of_table(machine: Machine, row: Row) -> TableRow | None:
    event = row.event._replace(consumer=0)
    places = ((state, event) for state in (machine.states if machine.counter else (base_state(row.state),)))
    rows = itertools.chain.from_iterable(machine.cells.get(place, ()) for place in places)
    found = (one for one in rows if (one.line, one.when, one.kind) == (row.line, row.when, row.kind))
    return next((TableRow(machine.name, one.state, str(event), one.place, one) for one in found), None)


@dataclasses.dataclass(frozen=True, slots=True)
class Performed:
    """The rows that messages performed, each with the number of messages that did.

    Attributes:
        certain: on every run of the model that explains what was recorded of them.
        possible: on some, or on every one.
        messages: how many were looked at, and had runs.
        left_out: the others, by the reason; nothing is certain of them.
    """

    certain: Mapping[TableRow, int] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    possible: Mapping[TableRow, int] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    messages: int = 0
    left_out: Mapping[str, int] = dataclasses.field(default_factory=lambda: MappingProxyType({}))

    def __add__(self, other: Self) -> Performed:
        """Return what both have performed."""
        certain, possible, left_out = (
            MappingProxyType(dict(sorted((Counter(mine) + Counter(its)).items())))
            for mine, its in (
                (self.certain, other.certain),
                (self.possible, other.possible),
                (self.left_out, other.left_out),
            )
        )
        return Performed(certain, possible, self.messages + other.messages, left_out)


_IMPOSSIBLE: Final = "no run of the model explains what was recorded"


def rows_performed(
    history: History, specification: Specification, configuration: Configurations | Configuration, *, skew: int = 0
) -> Performed:
    """Return the rows that the messages of ``history`` performed; clocks of processes differ by ``skew`` ns at most."""
    asked = Asked(specification=specification, configuration=configuration, skew=skew)
    total = Performed()
    for its in outcome_of(history, asked).examined.judgements:
        if its.conformance is not None:
            total += _of_lives(its.conformance, specification)
        if its.pairs is not None:
            total += dataclasses.replace(_of_lives(its.pairs.held, specification, of_others=True), messages=0, left_out={})
    return total


def _of_lives(held: Conformance, specification: Specification, *, of_others: bool = False) -> Performed:
    """Return what the messages, or the pairs, that were ``held`` to the model performed."""
    certain, possible, left_out = Counter[TableRow](), Counter[TableRow](), Counter[str]()
    lives = held.recorded.lives(np.flatnonzero(held.held), to_the_end=True)
    counts, messages = np.bincount(lives.number), 0
    for number, place in enumerate(lives.first.tolist()):
        lived, count = lives.lived(place), int(counts[number])
        why = held.judge.why_not(lived)
        try:
            found = None if why else _of_life(*held.judge.hearing(lived), specification)
            if found is None and why is None:  # with all that happened later it is no run, but it may be one without
                found = _of_life(*held.judge.hearing(held.of(lived.message)[1]), specification)
        except TooManyStatesError as error:
            found, why = None, str(error)
        if found is None:
            left_out[why or _IMPOSSIBLE] += count
            continue
        messages += count
        for into, rows in zip((certain, possible), found, strict=True):
            into.update({row: count for row in rows if row.of_others or not of_others})
    return Performed() + Performed(certain, possible, messages, left_out)


# Points of a life: after the signs of a cut, and between the moves that one of the next signs stands for.
_Point: TypeAlias = tuple[int, ...]


class _Edge(NamedTuple):
    """``event`` leads from a state to ``target`` at another point; nothing happens if there is none."""

    event: int | None
    point: _Point
    target: int


_MOST_NODES: Final = 300_000
"""States at points of one life that are looked at: some seconds."""


def _of_life(
    life: Life, observer: Observer, specification: Specification
) -> tuple[list[TableRow], list[TableRow]] | None:
    """The rows that all runs that explain ``life`` take, and those that some takes; ``None`` if no run explains it."""
    return _Runs(life, observer, specification).rows()


class _Runs:
    """All runs of the model that explain a life, as a graph of states at points of it.

    Points are in an order; hidden events lead from state to state at one point, and signs to later points.
    """

    def __init__(self, life: Life, observer: Observer, specification: Specification) -> None:
        self._walk, self._life = Walk(life, observer), life
        self._observer, self._states = observer, observer.states
        self._rows = RowTaker(specification, self._states.network)
        self._bit: dict[TableRow, int] = {}
        self._taken: dict[tuple[int, int], int] = {}
        self._hidden: dict[int, list[tuple[int, int]]] = {}
        self._always: dict[_Point, dict[int, int]] = {}
        self._edges: dict[_Point, dict[int, list[_Edge]]] = {}

    def rows(self) -> tuple[list[TableRow], list[TableRow]] | None:
        self._forward()
        last = self._always.get(((1 << len(self._life.heard)) - 1,), {})
        ends = self._walk.rested(frozenset(last))
        if not ends:
            return None
        every = ~0
        for state in ends:
            every &= last[state]
        some = self._backward(ends)
        return self._named(every & some), self._named(some)

    def _named(self, rows: int) -> list[TableRow]:
        return [row for row, bit in self._bit.items() if rows & bit]

    def _forward(self) -> None:
        """Find what may be reached, and for each of that the rows that every way to it takes."""
        by_size: list[dict[Cut, dict[int, int]]] = [{} for _ in range(len(self._life.heard) + 1)]
        by_size[0][0] = {0: 0}
        nodes = 0
        for size, cuts in enumerate(by_size):
            for cut, entered in cuts.items():
                always = self._settled((cut,), entered)
                nodes += len(always)
                for place in self._walk.following(cut) if size < len(by_size) - 1 else ():
                    into = by_size[size + 1].setdefault(cut | 1 << place, {})
                    nodes += self._hear(cut, place, always, into)
                if nodes > _MOST_NODES:
                    raise TooManyStatesError(f"more than {_MOST_NODES:,} moments of one message would have to be looked at")

    def _hear(self, cut: Cut, place: int, always: Mapping[int, int], into: dict[int, int]) -> int:
        """Go from ``cut`` over the sign at ``place``; return how many states were met between."""
        met = 0
        for number, way in enumerate(self._observer.ways(self._life.heard[place].sign)):
            point, here = (cut,), always
            for nth, move in enumerate(way):
                last = nth == len(way) - 1
                after: _Point = (cut | 1 << place,) if last else (cut, place, number, nth)
                entered: dict[int, int] = into if last else {}
                self._move(point, here, after, entered, move.events, move.certainty)
                if not last:
                    point, here = after, self._settled(after, entered)
                    met += len(here)
            if not way:
                self._move(point, here, (cut | 1 << place,), into, frozenset(), Certainty.PERHAPS)
        return met

    def _move(  # noqa: PLR0913, PLR0917 - from where, to where, by what
        self,
        point: _Point,
        here: Mapping[int, int],
        after: _Point,
        entered: dict[int, int],
        events: frozenset[int],
        certainty: Certainty,
    ) -> None:
        if events:
            self._states.after(here, events)  # all at once
        edges = self._edges[point]
        for state, rows in here.items():
            steps = self._states.steps(state, events) if events else []
            its = edges.setdefault(state, [])
            for event, target in steps:
                its.append(_Edge(event, after, target))
                _meet(entered, target, rows | self._rows_of(state, event))
            if certainty is Certainty.PERHAPS or (certainty is Certainty.IF_POSSIBLE and not steps):
                its.append(_Edge(None, after, state))
                _meet(entered, state, rows)

    def _settled(self, point: _Point, entered: Mapping[int, int]) -> Mapping[int, int]:
        """``entered`` at ``point``, with all that hidden events lead to."""
        always, waiting = dict(entered), dict.fromkeys(entered)
        while waiting:
            state, _ = waiting.popitem()
            for event, target in self._unheard(state):
                if _meet(always, target, always[state] | self._rows_of(state, event)):
                    waiting[target] = None
        self._always[point], self._edges[point] = always, {}
        return always

    def _unheard(self, state: int) -> list[tuple[int, int]]:
        if state not in self._hidden:
            self._hidden[state] = self._states.steps(state, self._observer.hidden)
        return self._hidden[state]

    def _rows_of(self, state: int, event: int) -> int:
        """The rows that ``event`` takes in ``state``, as bits."""
        if (state, event) not in self._taken:
            happens = self._states.network.events[event]
            taken = {*self._rows.of_step(self._states.names(state), happens)}
            self._taken[state, event] = sum(self._bit.setdefault(row, 1 << len(self._bit)) for row in taken)
        return self._taken[state, event]

    def _backward(self, ends: frozenset[int]) -> int:
        """The rows of all steps that lead to one of ``ends``, as bits."""
        leading = {point: set[int]() for point in self._always}
        leading[(1 << len(self._life.heard)) - 1,] = {*ends}
        found = 0
        for point in sorted(self._always, key=lambda point: (point[0].bit_count(), point[1:]), reverse=True):
            its, edges = leading[point], self._edges[point]
            for state, out in edges.items():
                on = [edge for edge in out if edge.target in leading[edge.point]]
                if on:
                    its.add(state)
                for edge in on:
                    found |= 0 if edge.event is None else self._rows_of(state, edge.event)
            found |= self._back_at(point, its)
        return found

    def _back_at(self, point: _Point, its: set[int]) -> int:
        """Add to ``its`` the states that hidden events lead from to one of them; the rows of all these steps."""
        before: dict[int, list[tuple[int, int]]] = {}
        for state in self._always[point]:
            for event, target in self._unheard(state):
                before.setdefault(target, []).append((state, event))
        waiting, found = [*its], 0
        while waiting:
            for state, event in before.get(waiting.pop(), ()):
                found |= self._rows_of(state, event)
                if state not in its:
                    its.add(state)
                    waiting.append(state)
        return found


def _meet(always: dict[int, int], state: int, rows: int) -> bool:
    """Take one more way to ``state``, by these ``rows``; return whether fewer rows are on every way then."""
    known = always.get(state)
    always[state] = rows if known is None else known & rows
    return known != always[state]
