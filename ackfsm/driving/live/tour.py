"""A small set of programs that together perform every row that application, library and broker can perform.

The model of a configuration is searched, breadth first, with at most so many *deviations* in a run: faults, and what
an application may do but need not.  For each row there is the shortest run to it.  What the application does in a run,
what it is told, and what befalls it, is a program; runs that differ only in what nobody outside the broker decides are
one program.  Of the programs so many are kept that every row is in one of them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ackfsm.checking.explore import pack
from ackfsm.checking.explore.search.reached import Reached
from ackfsm.checking.explore.search.successors import Successors
from ackfsm.checking.network import Bounds, Instance, Network, NetworkEvent, Participant, compose
from ackfsm.engine.core.table import read_execution
from ackfsm.tables import ALWAYS, EventRef, Fsm, Lane, Only, Row, RowKind, Specification, base_state
from ackfsm.tables.names import Agent
from ackfsm.terms import Configuration, DefectError, Fault
from ackfsm.verify.findings.performed import StepRows, TableRow

__all__ = ["STAGES", "Program", "Run", "Stage", "Step", "StepKind", "Tour", "Unreached", "tour"]


_Key = TypeVar("_Key", bound=Hashable)


class StepKind(StrEnum):
    """Who takes a step of a program."""

    ACT = "act"
    """The application calls something, returns from its listener, or throws."""
    HEARD = "heard"
    """The application waits until it is told, or until the broker has done it."""
    FAULT = "fault"
    """The nemesis strikes."""
    REPAIR = "repair"
    """What is down comes back: a process is started, a connection made again."""


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One step of a program.

    Attributes:
        kind: who takes it.
        event: of the tables.
        line: the event of format 1 that tells of it, empty if none does; of an act, the call.
        message, copy: what it is about, from 1; 0 for none.
        consumer: at which consumer, or of which session, from 1; 0 if there is one, or for none.
        means: the event in words.
    """

    kind: StepKind
    event: str
    line: str
    message: int
    copy: int
    consumer: int
    means: str = dataclasses.field(compare=False)

    def __str__(self) -> str:
        copy = f"#{self.copy}" if self.copy > 1 else ""
        message = f" m{self.message}{copy}" if self.message else ""
        at = f" at consumer {self.consumer}" if self.consumer else ""
        return f"{'wait: ' if self.kind is StepKind.HEARD else ''}{self.event}{message}{at} ({self.means})"


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """A run of the model: the ``bounds`` of its network, and the labels of its events."""

    bounds: Bounds
    labels: tuple[str, ...]


_Look: TypeAlias = tuple[int, bool, tuple[Step, ...]]
"""How runs look alike: the consumers, whether they share a session, and the steps."""


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """What application and nemesis do, and wait for, one step after the other.

    Attributes:
        consumers, one_session: how many consumers there are, and whether they share a session.
        steps: in their order.
        runs: those of the model that look like it; they differ in what library, broker and disk do between.
        rows: of the machines, that these runs take.
    """

    consumers: int
    one_session: bool
    steps: tuple[Step, ...]
    runs: tuple[Run, ...]
    rows: frozenset[TableRow]

    def __str__(self) -> str:
        return "\n".join(f"{number}. {step}" for number, step in enumerate(self.steps, start=1))


@dataclasses.dataclass(frozen=True, slots=True)
class Unreached:
    """A row that no run took.

    Attributes:
        row: the row.
        why: why no run can take it; empty if that is not known.
        looked: the stages in vain, of which all runs were looked at.
        cut_short: those that met their bound.
    """

    row: TableRow
    why: str = ""
    looked: tuple[Stage, ...] = ()
    cut_short: tuple[Stage, ...] = ()

    def __str__(self) -> str:
        if self.why:
            return f"{self.row}: {self.why}"
        every = f"no run of {'; '.join(map(str, self.looked))}" if self.looked else ""
        first = f"none to the nearest states of {'; '.join(map(str, self.cut_short))}" if self.cut_short else ""
        return f"{self.row}: {' and '.join(filter(None, (every, first)))} takes it"


@dataclasses.dataclass(frozen=True, slots=True)
class Tour:
    """The programs of a configuration, the rows that they perform, and those that no run that was looked at takes."""

    programs: tuple[Program, ...]
    rows: frozenset[TableRow]
    unreached: tuple[Unreached, ...]
    states: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One search: of how many messages and consumers, with how many deviations, and the states that it may take."""

    messages: int = 1
    consumers: int = 1
    one_session: bool = False
    deviations: int = 1
    most: int = 60_000

    def __str__(self) -> str:
        sessions = " in one session" if self.one_session else ""
        numbers = {"message": self.messages, "consumer": self.consumers, "deviation": self.deviations}
        message, consumer, deviation = (f"{number} {name}{'s' * (number > 1)}" for name, number in numbers.items())
        return f"{message} and {consumer}{sessions} with {deviation}"


STAGES: Final = (
    Stage(deviations=2),
    Stage(consumers=2),
    Stage(messages=2),
    Stage(messages=2, consumers=2, one_session=True),
    Stage(messages=2, consumers=2, most=20_000),
    Stage(deviations=3, most=100_000),
)
"""Few of everything first: what comes later is searched only for what is not found before."""


def tour(  # noqa: PLR0913 - by name
    specification: Specification,
    configuration: Configuration,
    faults: Collection[Fault] = frozenset(Fault),
    *,
    without: Collection[str] = (),
    passing: bool = False,
    stages: Sequence[Stage] = STAGES,
) -> Tour:
    """Return programs that perform every row of ``configuration`` that some run within ``stages`` takes.

    ``faults`` are those that can be struck; ``without`` are optional events that nobody can bring about.  A row that
    lets an event pass without a transition counts only if ``passing``.
    """
    actions = frozenset(event.name for event in specification.events.values() if event.optional) - {*without}
    shown, states = _Shown(specification, configuration), 0
    groups = defaultdict[_Look, dict[Run, frozenset[TableRow]]](dict)
    found, impossible = set[TableRow](), dict[TableRow, str]()
    looked = defaultdict[TableRow, dict[bool, tuple[Stage, ...]]](lambda: {True: (), False: ()})
    for stage in stages:
        search = _Search(specification, configuration, stage, frozenset(faults), actions, passing=passing)
        impossible |= search.why_not()
        wanted = search.possible - found
        if not wanted:
            continue
        for run, events, rows in search.look(wanted):
            groups[stage.consumers, stage.one_session, tuple(shown.steps(events))][run] = rows
            found |= rows
        states += len(search.reached.states)
        for row in wanted - found:
            looked[row][search.reached.complete] += (stage,)
    rows_of = {look: frozenset[TableRow]().union(*runs.values()) for look, runs in groups.items()}
    programs = (
        Program(*look, tuple(_cover(groups[look], lambda run: len(run.labels))), rows_of[look])
        for look in _cover(rows_of, lambda look: len(look[-1]))
    )
    left = [Unreached(row, looked=stages[True], cut_short=stages[False]) for row, stages in looked.items()]
    left += [Unreached(row, why) for row, why in impossible.items() if row not in looked]
    unreached = sorted((each for each in left if each.row not in found), key=lambda each: each.row)
    return Tour(tuple(programs), frozenset(found), tuple(unreached), states)


class _Shown:
    """How the events of a configuration look to application and nemesis."""

    def __init__(self, specification: Specification, configuration: Configuration) -> None:
        self._events = specification.events
        self._agents = read_execution(specification).agents
        self._by_application = specification.by_application(configuration)
        self._lines: dict[str, str] = {}
        for row in specification.recording.signs.values():
            for event in row.tells if row.only is not Only.DRAWN else ():
                self._lines.setdefault(event, row.line)

    def steps(self, events: Iterable[NetworkEvent]) -> Iterator[Step]:
        """Yield the steps that ``events`` are, without those that are hidden."""
        for event in events:
            kind = self._kind(event.name)
            if kind is not None:
                message, copy = (*event.index, 0, 0)[:2]
                line, means = self._lines.get(event.name, ""), self._events[event.name].means
                yield Step(kind, event.name, line, message, copy, event.consumer, means)

    def _kind(self, event: str) -> StepKind | None:
        declared, agent = self._events[event], self._agents[event]
        at_client = declared.lane in {Lane.PRODUCER, Lane.CONSUMER}
        if agent == Agent.NEMESIS:
            return StepKind.FAULT
        if agent == Agent.OPERATOR:
            return StepKind.REPAIR
        if agent == Agent.LISTENER or event in self._by_application or (declared.optional and at_client):
            return StepKind.ACT
        return StepKind.HEARD if declared.optional or (at_client and event in self._lines) else None


_At: TypeAlias = tuple[int, int, int]
"""An event, a machine and the state that this is in, by their numbers."""


class _Search:
    """The search of one stage.

    Attributes:
        possible: the rows that some run might take, as far as each machine is looked at by itself.
    """

    def __init__(  # noqa: PLR0913 - what is searched
        self,
        specification: Specification,
        configuration: Configuration,
        stage: Stage,
        faults: frozenset[Fault],
        actions: frozenset[str],
        *,
        passing: bool,
    ) -> None:
        self._stage = stage
        self._bounds = Bounds(
            messages=stage.messages,
            consumers=stage.consumers,
            one_session=stage.one_session,
            faults=faults,
            max_faults=None,
            actions=actions,
        )
        self._network = _limited(compose(specification, configuration, self._bounds, observers=()), stage.deviations)
        self._rows = StepRows(specification, self._network, passing=passing)
        self._comes_to, self._happens = _possible(self._network)
        self._taken = defaultdict[TableRow, list[_At]](list)
        for at in self._cells():
            row = self._row(*at)
            if row is not None:
                self._taken[row].append(at)
        self.possible = {row for row, taken in self._taken.items() if any(map(self._may, taken))}

    def _cells(self) -> Iterator[_At]:
        for number, event in enumerate(self._network.events):
            for part in event.participants:
                for state in range(len(self._network.instances[part.instance].fsm.states)):
                    yield number, part.instance, state

    def _row(self, event: int, instance: int, state: int) -> TableRow | None:
        fsm = self._network.instances[instance].fsm
        named = next(part.event for part in self._network.events[event].participants if part.instance == instance)
        return self._rows.of_machine(fsm, fsm.rows[fsm.states[state], named])

    def _may(self, at: _At) -> bool:
        event, instance, state = at
        return event in self._happens and state in self._comes_to[instance]

    def why_not(self) -> dict[TableRow, str]:
        """Return the rows that no run can take, each with the reason."""
        return {row: self._reason(taken) for row, taken in self._taken.items() if row not in self.possible}

    def _reason(self, taken: Sequence[_At]) -> str:
        comes = [event for event, instance, state in taken if state in self._comes_to[instance]]
        if not comes:
            _, instance, state = taken[0]
            fsm = self._network.instances[instance].fsm
            return f"{fsm.name} never comes to {base_state(fsm.states[state])} here"
        event = self._network.events[comes[0]]
        for part in event.participants:
            fsm = self._network.instances[part.instance].fsm
            rows = [fsm.rows[fsm.states[state], part.event] for state in self._comes_to[part.instance]]
            if all(row.kind is RowKind.REFUSE for row in rows):
                return f"{event.name} never happens here: {fsm.name} refuses it ({rows[0].because}, {rows[0].place})"
        raise DefectError(f"nothing refuses {event.label}, which never happens")

    def look(self, wanted: Collection[TableRow]) -> Iterator[tuple[Run, list[NetworkEvent], frozenset[TableRow]]]:
        """Yield the shortest run to each of ``wanted`` that has one, its events, and the rows that it takes."""
        self.reached = Reached(self._network, self._stage.most)
        taken = _Taken(self.reached, self._rows)
        for state, event in sorted(set(self._first_steps(wanted).values())):
            events = [self._network.events[number] for number in (*self.reached.run(state), event)]
            rows = frozenset(row for row in self._rows.named(taken.by(state, event)) if row in self.possible)
            yield Run(self._bounds, tuple(each.label for each in events)), events, rows

    def _first_steps(self, wanted: Collection[TableRow]) -> dict[TableRow, tuple[int, int]]:
        """For each of the ``wanted`` rows that are taken the first state in which it is, and the event."""
        states, found = self.reached.states, dict[TableRow, tuple[int, int]]()
        asked = defaultdict[int, list[tuple[int, int, TableRow]]](list)
        for row in wanted:
            for event, instance, state in self._taken[row]:
                asked[event].append((instance, state, row))
        events = sorted(asked)
        successors = Successors(pack(self._network))
        enabled = np.concatenate(
            [successors.enabled(states[begin : begin + _AT_ONCE], events) for begin in range(0, len(states), _AT_ONCE)]
        )
        for event, its in zip(events, enabled.T, strict=True):
            places = np.flatnonzero(its)[::-1]  # of the same state the first comes last, and is kept
            first: dict[int, npt.NDArray[np.int64]] = {}
            for instance, state, row in asked[event]:
                if instance not in first:
                    frame = self._rows.frame(event, instance)
                    own = places if frame is None else places[states[places, frame.machine] != frame.unsent]
                    first[instance] = np.full(len(self._network.instances[instance].fsm.states), len(states))
                    first[instance][states[own, instance]] = own
                step = int(first[instance][state]), event
                if step[0] < len(states):
                    found[row] = min(step, found.get(row, step))
        return found


_AT_ONCE: Final = 1024


class _Taken:
    """The rows that the shortest runs to states take."""

    def __init__(self, reached: Reached, rows: StepRows) -> None:
        self._reached, self._rows = reached, rows
        self._known = {0: 0}

    def by(self, state: int, event: int) -> int:
        """Those of the shortest run to ``state``, and of ``event`` there."""
        way = [(state, event)]
        while way[-1][0] not in self._known:
            before = self._reached.parent(way[-1][0])
            if before is None:
                raise DefectError("a state was found on no way from the first one")
            way.append(before[::-1])
        rows = 0
        for at, happens in reversed(way):
            rows |= self._known.setdefault(at, rows)
            rows |= self._rows.of(self._reached.states[at].tolist(), happens)
        return rows


def _limited(network: Network, deviations: int) -> Network:
    """``network`` in which at most so many of the events happen that may never happen."""
    names = dict.fromkeys(event.name for event in network.events if event.may_never_happen)
    alphabet, states = tuple(map(EventRef, names)), tuple(map(str, range(deviations + 1)))
    rows = {}
    for number, event in itertools.product(range(deviations + 1), alphabet):
        kind, after = (RowKind.TO, number + 1) if number < deviations else (RowKind.REFUSE, number)
        because = f"at most {deviations} deviations"
        rows[str(number), event] = Row(str(number), event, kind, str(after), because, None, None, ALWAYS, "", 0)
    limit, own = Instance(Fsm("deviations", states, "0", alphabet, rows), ()), len(network.instances)
    events = (
        dataclasses.replace(each, participants=(*each.participants, Participant(own, EventRef(each.name))))
        if each.may_never_happen
        else each
        for each in network.events
    )
    return dataclasses.replace(network, instances=(*network.instances, limit), events=tuple(events))


def _possible(network: Network) -> tuple[list[set[int]], set[int]]:
    """The states that each machine may come to, and the events that may happen, each machine by itself."""
    comes_to = [{instance.fsm.states.index(instance.fsm.initial)} for instance in network.instances]
    columns = [
        [(part.instance, network.instances[part.instance].fsm.column(part.event)) for part in event.participants]
        for event in network.events
    ]
    happens, before = set[int](), -1
    while before != (before := len(happens) + sum(map(len, comes_to))):
        for event, parts in enumerate(columns):
            if event in happens or all(any(column[state] >= 0 for state in comes_to[at]) for at, column in parts):
                happens.add(event)
                for at, column in parts:
                    comes_to[at] |= {column[state] for state in comes_to[at] if column[state] >= 0}
    return comes_to, happens


def _cover(sets: Mapping[_Key, frozenset[TableRow]], cost: Callable[[_Key], int]) -> list[_Key]:
    """Return few of the keys whose ``sets`` have together what all have: the one with most that is new, and so on."""
    left, chosen = frozenset[TableRow]().union(*sets.values()), list[_Key]()
    while left:
        best = max(sets, key=lambda key: (len(sets[key] & left), -cost(key)))
        chosen.append(best)
        left -= sets[best]
    for key in reversed(chosen[:]):
        others = frozenset[TableRow]().union(*(sets[other] for other in chosen if other != key))
        if sets[key] <= others:
            chosen.remove(key)
    return chosen
