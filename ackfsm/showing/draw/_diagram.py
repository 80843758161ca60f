"""The content of a diagram, independent of its format: states, transitions, and the rows behind each.

A diagram is made from the table itself, in one of two ways.  Without a configuration it is the
general machine: every row, with its condition.  With one it shows the rows that hold, as the
instances of the composed system have them, and which events can happen in that system at all.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from ackfsm.checking.network import Bounds, Network, compose, environments
from ackfsm.showing.draw._plan import Line, Plan, configured, general
from ackfsm.tables import BOUND_SETTINGS, Event, EventRef, Fsm, Machine, Monitor, RowKind, Specification
from ackfsm.terms import Anomaly, Configuration, Fault, InputError
from ackfsm.text import meant, quoted


class Kind(StrEnum):
    """What sort of event it is: a fault; seen in a history; neither."""

    FAULT = "fault"
    OBSERVABLE = "observable"
    INTERNAL = "internal"


class Mark(StrEnum):
    """The mark of a state in a property."""

    NONE = ""
    ANOMALY = "anomaly"
    AT_REST = "anomaly at rest"


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """One state of a machine.  ``reachable``: by moves of this machine alone that are possible."""

    name: str
    initial: bool
    mark: Mark
    reachable: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Label:
    """An event on an edge.  ``owned``: this machine decides it; ``possible``: it can happen in the configuration."""

    event: EventRef
    kind: Kind
    owned: bool
    possible: bool
    guard: str
    because: str


@dataclasses.dataclass(frozen=True, slots=True)
class Edge:
    """All moves from one state to another (perhaps the same)."""

    source: str
    target: str
    labels: tuple[Label, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Panel:
    """One machine of a diagram.  ``lines`` has every alternative of every state and event, state by state."""

    name: str
    means: str
    states: tuple[State, ...]
    edges: tuple[Edge, ...]
    lines: tuple[Line, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Watched:
    """An event in the alphabet: who decides it (``""``: no machine, only histories show it), and whether it exists."""

    event: Event
    kind: Kind
    owner: str
    possible: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Diagram:
    """A machine, or a property with its machines.

    ``settings`` are those that the tables read, as ``key=value``: of the configuration and of the bounds;
    ``None`` for the general machine.  ``conditions`` are the named ones that the rows shown use, with what
    they stand for.
    """

    name: str
    means: str
    file: str
    settings: tuple[str, ...] | None
    conditions: Mapping[str, str]
    events: tuple[Watched, ...]
    panels: tuple[Panel, ...]

    def labels(self) -> Iterator[Label]:
        """Every label of every edge."""
        return (label for panel in self.panels for edge in panel.edges for label in edge.labels)

    def marks(self) -> frozenset[Mark]:
        """The marks that some state has."""
        return frozenset(state.mark for panel in self.panels for state in panel.states) - {Mark.NONE}


def kind_of(specification: Specification, event: str) -> Kind:
    """Which sort of event ``event`` is."""
    if event in set(Fault):
        return Kind.FAULT
    return Kind.OBSERVABLE if specification.events[event].recorded else Kind.INTERNAL


def everything(specification: Specification) -> Bounds:
    """The bounds of a drawing unless others are asked for: every optional action, and any one fault."""
    actions = frozenset(event.name for event in specification.events.values() if event.optional)
    return Bounds(faults=frozenset(Fault), actions=actions)


def settings_shown(configuration: Configuration, keys: Collection[str]) -> Iterator[str]:
    """The settings of ``keys`` as they are written on a command line."""
    for key, value in configuration.as_dict().items():
        if key in keys:
            yield f"{key}={value if isinstance(value, str) else str(value).lower()}"


def make_diagram(
    specification: Specification,
    name: str,
    configuration: Configuration | None = None,
    bounds: Bounds | None = None,
) -> Diagram:
    """Return the diagram of the machine or property ``name``; ``bounds`` default to :func:`everything`.

    Raises :class:`InputError` if there is none of that name, or the tables have no rows for a setting.
    """
    chosen = bounds or everything(specification)
    network = compose(specification, configuration, chosen) if configuration else None
    return _DiagramBuilder(specification, network).diagram(name)


class _DiagramBuilder:
    def __init__(self, specification: Specification, network: Network | None) -> None:
        self.specification = specification
        self.network = network
        self.possible = {event.name for event in network.events} if network else set(specification.events)

    def diagram(self, name: str) -> Diagram:
        if name in self.specification.machines:
            machine = self.specification.machines[name]
            return self._diagram(name, machine.means, [Monitor(machine, frozenset(), frozenset())], None)
        if name in set(self.specification.properties):
            prop = self.specification.properties[Anomaly(name)]
            return self._diagram(name, prop.means, prop.monitors, prop.anomaly)
        known = [*self.specification.machines, *self.specification.properties]
        raise InputError(
            f"there is no machine or property {quoted(name)}{meant(name, known)}; there are {', '.join(known)}"
        )

    def _diagram(self, name: str, means: str, monitors: Sequence[Monitor], anomaly: Anomaly | None) -> Diagram:
        machines = [monitor.machine for monitor in monitors]
        alphabet = dict.fromkeys(event.name for machine in machines for event in machine.alphabet)
        return Diagram(
            name=name,
            means=means,
            file="/".join(Path(machines[0].file).parts[-2:]),
            settings=self._settings(machines),
            conditions=self._conditions(machines),
            events=tuple(self._watched(event) for event in alphabet),
            panels=tuple(
                self._panel(title, monitor, plan)
                for monitor in monitors
                for title, plan in self._plans(monitor, anomaly)
            ),
        )

    def _settings(self, machines: Sequence[Machine]) -> tuple[str, ...] | None:
        if self.network is None:
            return None
        read = {setting for machine in machines for row in machine.rows() for setting in row.when.settings()}
        read |= {
            BOUND_SETTINGS.get(machine.counter.bound, machine.counter.bound) for machine in machines if machine.counter
        }
        return tuple(settings_shown(self.network.configuration, read)) + tuple(_bounds_shown(self.network.bounds, read))

    def _conditions(self, machines: Sequence[Machine]) -> Mapping[str, str]:
        if self.network is not None:
            return {}
        named = self.specification.conditions
        new = {name for machine in machines for row in machine.rows() for name in row.when.names() & named.keys()}
        used = set[str]()
        while new:
            used |= new
            new = {name for condition in new for name in named[condition].names() & named.keys()} - used
        return {name: condition.text for name, condition in named.items() if name in used}

    def _watched(self, name: str) -> Watched:
        owner = self.specification.owner(name)
        kind = kind_of(self.specification, name)
        return Watched(self.specification.events[name], kind, owner.name if owner else "", name in self.possible)

    def _plans(self, monitor: Monitor, anomaly: Anomaly | None) -> Iterator[tuple[str, Plan]]:
        machine = monitor.machine
        if self.network is None:
            yield machine.name, general(machine)
            return
        fsms = _distinct(self.network, machine.name, anomaly)
        for number, fsm in enumerate(fsms, 1):
            title = machine.name if len(fsms) == 1 else f"{machine.name}, copy {number}"
            by_copy = environments(self.specification, self.network.configuration, self.network.bounds)
            yield title, configured(machine, fsm, by_copy[number - 1])

    def _panel(self, title: str, monitor: Monitor, plan: Plan) -> Panel:
        order = {state: number for number, state in enumerate(plan.states)}
        lines = tuple(sorted(plan.lines, key=lambda line: order[line.row.state]))
        reached = self._reached(plan)
        states = tuple(State(name, name == plan.initial, _mark(monitor, name), name in reached) for name in plan.states)
        edges = tuple(self._edges(monitor.machine, lines, order, reached))
        return Panel(title, monitor.machine.means, states, edges, lines)

    def _reached(self, plan: Plan) -> set[str]:
        moves = [
            line.row for line in plan.lines if line.row.kind is RowKind.TO and line.row.event.name in self.possible
        ]
        reached, new = set[str](), {plan.initial}
        while new:
            reached |= new
            new = {row.target for row in moves if row.state in new} - reached
        return reached

    def _edges(
        self, machine: Machine, lines: Sequence[Line], order: Mapping[str, int], reached: Collection[str]
    ) -> Iterator[Edge]:
        moves = [line for line in lines if line.row.kind is RowKind.TO]
        moves.sort(key=lambda line: (order[line.row.state], order[line.row.target]))
        for (source, target), group in itertools.groupby(moves, key=lambda line: (line.row.state, line.row.target)):
            yield Edge(source, target, tuple(self._label(machine, line, reached) for line in group))

    def _label(self, machine: Machine, line: Line, reached: Collection[str]) -> Label:
        event = line.row.event
        kind = kind_of(self.specification, event.name)
        owned = event.name in machine.owns
        possible = line.row.state in reached and event.name in self.possible
        return Label(event, kind, owned, possible, line.guard, line.row.because)


def _bounds_shown(bounds: Bounds, keys: Collection[str]) -> Iterator[str]:
    if "faults" in keys and bounds.faults != set(Fault):
        yield f"faults={'+'.join(sorted(bounds.faults)) or 'none'}"
    if "max_faults" in keys:
        yield f"max_faults={str(bounds.max_faults).lower()}"


def _mark(monitor: Monitor, state: str) -> Mark:
    if state in monitor.marked:
        return Mark.ANOMALY
    return Mark.AT_REST if state in monitor.marked_at_rest else Mark.NONE


def _distinct(network: Network, name: str, anomaly: Anomaly | None) -> list[Fsm]:
    """The machine of the instances called ``name``: one, or one for each copy where copies differ."""
    found: list[Fsm] = []
    for instance in network.instances:
        if instance.fsm.name == name and instance.anomaly == anomaly and instance.fsm not in found:
            found.append(instance.fsm)
    return found
