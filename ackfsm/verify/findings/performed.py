"""Which rows of the machines a recorded history performed.

The verifier looks for a run of the model that explains what was recorded of a message.  Here all such runs are looked
at: a row is performed *for certain* if each of them takes it, *possibly* if some does.  Equal lives are asked once.
What one message cannot show, since its rows are about another message, is asked of pairs.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np

from ackfsm.checking.network import Network
from ackfsm.history.queues import Configurations
from ackfsm.history.read import History
from ackfsm.tables import Certainty, EventRef, Fsm, Machine, Relation, Row, RowKind, Specification, base_state
from ackfsm.tables.names import Machine as MachineName
from ackfsm.terms import Configuration
from ackfsm.verify.conformance.life import Cut, Life, Walk
from ackfsm.verify.conformance.lives import Lived
from ackfsm.verify.conformance.messages import Conformance
from ackfsm.verify.conformance.observer import Move, Observer, States, TooManyStatesError
from ackfsm.verify.findings.examine import Asked, KeptOfBoth, outcome_of


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
    def of_others(self) -> bool:
        """Whether its event is one of another message, or of another consumer or subscription."""
        return self.row.event.relation is not Relation.OWN

    def __str__(self) -> str:
        return f"{self.machine}: {self.state}, {self.event} ({self.place})"


_Counted = TypeVar("_Counted")


class Frame(NamedTuple):
    """The ``machine`` of the frame that a copy is sent in, and the number of its state while it is ``unsent``."""

    machine: int
    unsent: int


class StepRows:
    """The rows of the tables that the steps of a network take, as bits.

    What happens while a copy was never sent is nothing that its machines perform.
    """

    def __init__(self, specification: Specification, network: Network, *, passing: bool = False) -> None:
        """Transitions alone, unless rows that let an event pass are asked for too."""
        self._machines, self._network = specification.machines, network
        self._kinds = {RowKind.TO, RowKind.IGNORE} if passing else {RowKind.TO}
        self._bit: dict[TableRow, int] = {}
        self._known: dict[tuple[int, str, EventRef], TableRow | None] = {}
        self._parts: dict[int, list[tuple[int, list[int], Frame | None]]] = {}
        self._frames = {
            each.index: Frame(number, each.fsm.states.index(each.fsm.initial))
            for number, each in enumerate(network.instances)
            if each.fsm.name == MachineName.PUBLISH_FRAME
        }

    def of_machine(self, fsm: Fsm, row: Row) -> TableRow | None:
        """The row of the table that ``row`` of ``fsm`` stands for; ``None`` if it does not count."""
        key = id(fsm), row.state, row.event
        if key not in self._known:
            told = row.kind in self._kinds and fsm.name in self._machines
            self._known[key] = _of_table(self._machines[fsm.name], row) if told else None
        return self._known[key]

    def bit(self, row: TableRow) -> int:
        """The bit of ``row``."""
        return self._bit.setdefault(row, 1 << len(self._bit))

    def named(self, rows: int) -> list[TableRow]:
        """The rows of these bits."""
        return [row for row, bit in self._bit.items() if rows & bit]

    def of(self, machines: Sequence[int], event: int) -> int:
        """The rows that the event of this number takes where ``machines`` are in the states of these numbers."""
        if event not in self._parts:
            self._parts[event] = [*self._of_event(event)]
        rows = 0
        for at, bits, frame in self._parts[event]:
            if frame is None or machines[frame.machine] != frame.unsent:
                rows |= bits[machines[at]]
        return rows

    def frame(self, event: int, machine: int) -> Frame | None:
        """The frame of the copy that ``machine`` is of, without which nothing that ``event`` does to it counts."""
        index = self._network.instances[machine].index
        frame = self._frames.get(index)
        if frame is None:
            return None
        fsm = self._network.instances[frame.machine].fsm
        own = (part.event for part in self._network.events[event].participants if part.instance == frame.machine)
        return None if any(fsm.column(its)[frame.unsent] not in {-1, frame.unsent} for its in own) else frame

    def _of_event(self, event: int) -> Iterator[tuple[int, list[int], Frame | None]]:
        """Yield the machines that take part in an event, each with the row that each of its states takes."""
        for part in self._network.events[event].participants:
            fsm = self._network.instances[part.instance].fsm
            rows = (self.of_machine(fsm, fsm.rows[state, part.event]) for state in fsm.states)
            yield part.instance, [0 if row is None else self.bit(row) for row in rows], self.frame(event, part.instance)


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
        return Performed(
            _summed(self.certain, other.certain),
            _summed(self.possible, other.possible),
            self.messages + other.messages,
            _summed(self.left_out, other.left_out),
        )


def _summed(one: Mapping[_Counted, int], other: Mapping[_Counted, int]) -> Mapping[_Counted, int]:
    return MappingProxyType(Counter(one) + Counter(other))


_IMPOSSIBLE: Final = "no run of the model explains what was recorded"


def rows_performed(
    history: History,
    specification: Specification,
    configuration: Configurations | Configuration,
    *,
    skew: int = 0,
    kept: KeptOfBoth = (None, None),
) -> Performed:
    """Return the rows that the messages of ``history`` performed; clocks of processes differ by ``skew`` ns at most."""
    asked = Asked(specification=specification, configuration=configuration, skew=skew, kept=kept)
    total = Performed()
    for its in outcome_of(history, asked).examined.judgements:
        if its.conformance is not None:
            total += _of_lives(its.conformance, specification)
        if its.pairs is not None:
            total += dataclasses.replace(
                _of_lives(its.pairs.held, specification, of_others=True), messages=0, left_out={}
            )
    return total


def _of_lives(held: Conformance, specification: Specification, *, of_others: bool = False) -> Performed:
    """Return what the messages, or the pairs, that were ``held`` to the model performed."""
    lives, asker = held.recorded.lives(np.flatnonzero(held.held), to_the_end=True), _Asker(held, specification)
    total = Performed()
    for count, place in zip(np.bincount(lives.number).tolist(), lives.first.tolist(), strict=True):
        found = asker.asked(lives.lived(place))
        if isinstance(found, str):
            total += Performed(left_out={found: count})
            continue
        certain, possible = ({row: count for row in rows if row.of_others or not of_others} for rows in found)
        total += Performed(certain, possible, count)
    return total


class _Asker:
    """Asks which rows the messages with one life performed."""

    def __init__(self, held: Conformance, specification: Specification) -> None:
        self._held, self._specification = held, specification

    def asked(self, lived: Lived) -> tuple[list[TableRow], list[TableRow]] | str:
        """Those that all runs take, and those that some takes; or why nothing is certain, a clause."""
        why = self._held.judge.why_not(lived)
        if why is not None:
            return why
        try:  # with all that happened later it may be no run although it is one without
            return self._found(lived) or self._found(self._held.of(lived.message)[1]) or _IMPOSSIBLE
        except TooManyStatesError as error:
            return str(error)

    def _found(self, lived: Lived) -> tuple[list[TableRow], list[TableRow]] | None:
        life, observer = self._held.judge.hearing(lived)
        steps = observer.states.kept(_RowSteps, lambda states: _RowSteps(states, self._specification))
        found = _Runs(life, observer, steps).found()
        return found and (steps.rows.named(found[0]), steps.rows.named(found[1]))


class _RowSteps:
    """The steps of the states of a network, each with the rows that it takes, as bits: found once for all lives."""

    def __init__(self, states: States, specification: Specification) -> None:
        self._states, self.rows = states, StepRows(specification, states.network)
        self._known: dict[frozenset[int], dict[int, list[tuple[int, int]]]] = {}

    def of(self, states: Iterable[int], events: frozenset[int]) -> Mapping[int, Sequence[tuple[int, int]]]:
        """For each of ``states`` the rows and the target of each step by one of ``events``; for others perhaps too."""
        known = self._known.setdefault(events, {})
        new = [state for state in states if state not in known]
        for state, machines, steps in zip(
            new, self._states.machines(new), self._states.steps(new, events), strict=True
        ):
            known[state] = [(self.rows.of(machines, event), target) for event, target in steps]
        return known


# Points of a life: after the signs of a cut, and between the moves that one of the next signs stands for.
_Point: TypeAlias = tuple[int, ...]


class _Edge(NamedTuple):
    """It leads from a state to ``target`` at another point, by ``rows``, as bits; by none if nothing happens."""

    rows: int
    point: _Point
    target: int


_MOST_NODES: Final = 300_000
"""States at points of one life that are looked at: some seconds."""


class _Runs:
    """All runs of the model that explain a life, as a graph of states at points of it.

    Points are in an order; hidden events lead from state to state at one point, and signs to later points.
    """

    def __init__(self, life: Life, observer: Observer, steps: _RowSteps) -> None:
        self._life, self._observer, self._steps = life, observer, steps
        self._walk, self._hidden = Walk(life, observer), steps.of((), observer.hidden)
        self._ways = [observer.ways(heard.sign) for heard in life.heard]
        self._always: dict[_Point, dict[int, int]] = {}
        self._edges: dict[_Point, dict[int, list[_Edge]]] = {}
        self._nodes = 0

    def found(self) -> tuple[int, int] | None:
        """The rows that all runs take, and those that some takes, as bits; ``None`` if there is no run."""
        end: _Point = ((1 << len(self._life.heard)) - 1,)
        self._forward()
        last = self._always.get(end, {})
        ends = self._walk.rested(frozenset(last))
        if not ends:
            return None
        return functools.reduce(operator.and_, map(last.__getitem__, ends)), self._backward(end, ends)

    def _forward(self) -> None:
        """Find what may be reached, and for each of that the rows that every way to it takes."""
        by_size: list[dict[Cut, dict[int, int]]] = [{} for _ in range(len(self._life.heard) + 1)]
        by_size[0][0] = {0: 0}
        for size, cuts in enumerate(by_size):
            for cut, entered in cuts.items():
                always = self._settled((cut,), entered)
                for place in self._walk.following(cut) if size < len(by_size) - 1 else ():
                    into = by_size[size + 1].setdefault(cut | 1 << place, {})
                    self._hear(cut, place, always, into)

    def _hear(self, cut: Cut, place: int, always: Mapping[int, int], into: dict[int, int]) -> None:
        """Go from ``cut`` over the sign at ``place``."""
        for number, way in enumerate(self._ways[place]):
            point: _Point = (cut,)
            here = always
            moves = way or (Move(frozenset(), Certainty.PERHAPS),)
            for nth, move in enumerate(moves, start=1):
                last = nth == len(moves)
                after: _Point = (cut | 1 << place,) if last else (cut, place, number, nth)
                entered: dict[int, int] = into if last else {}
                self._move(point, here, after, entered, move)
                if not last:
                    point, here = after, self._settled(after, entered)

    def _move(self, point: _Point, here: Mapping[int, int], after: _Point, entered: dict[int, int], move: Move) -> None:
        edges = self._edges[point]
        found = self._steps.of(here, move.events)
        for state, rows in here.items():
            steps = found[state]
            its = [_Edge(taken, after, target) for taken, target in steps]
            if move.certainty is Certainty.PERHAPS or (move.certainty is Certainty.IF_POSSIBLE and not steps):
                its.append(_Edge(0, after, state))
            for edge in its:
                _meet(entered, edge.target, rows | edge.rows)
            edges.setdefault(state, []).extend(its)

    def _settled(self, point: _Point, entered: Mapping[int, int]) -> Mapping[int, int]:
        """``entered`` at ``point``, with all that hidden events lead to."""
        always, front = dict(entered), dict.fromkeys(entered)
        while front:
            self._steps.of(front, self._observer.hidden)
            after: dict[int, None] = {}
            for state in front:
                for rows, target in self._hidden[state]:
                    if _meet(always, target, always[state] | rows):
                        after[target] = None
            front = after
        self._always[point], self._edges[point] = always, {}
        self._nodes += len(always)
        if self._nodes > _MOST_NODES:
            raise TooManyStatesError(f"a message may be in too many states at all times (more than {_MOST_NODES:,})")
        return always

    def _backward(self, end: _Point, ends: frozenset[int]) -> int:
        """The rows of all steps that lead to one of ``ends``, as bits."""
        leading = {point: set[int]() for point in self._always}
        leading[end] = {*ends}
        found = 0
        for point in sorted(self._always, key=lambda point: (point[0].bit_count(), point[1:]), reverse=True):
            its = leading[point]
            for state, out in self._edges[point].items():
                on = [edge.rows for edge in out if edge.target in leading[edge.point]]
                if on:
                    its.add(state)
                    found |= functools.reduce(operator.or_, on)
            found |= self._back_at(point, its)
        return found

    def _back_at(self, point: _Point, its: set[int]) -> int:
        """Add to ``its`` the states that hidden events lead from to one of them; the rows of all these steps."""
        before: dict[int, list[tuple[int, int]]] = {}
        for state in self._always[point]:
            for rows, target in self._hidden[state]:
                before.setdefault(target, []).append((state, rows))
        waiting, found = [*its], 0
        while waiting:
            for state, rows in before.get(waiting.pop(), ()):
                found |= rows
                if state not in its:
                    its.add(state)
                    waiting.append(state)
        return found


def _meet(always: dict[int, int], state: int, rows: int) -> bool:
    """Take one more way to ``state``, by these ``rows``; return whether fewer rows are on every way then."""
    known = always.get(state)
    always[state] = rows if known is None else known & rows
    return known != always[state]
