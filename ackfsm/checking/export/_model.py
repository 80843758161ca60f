"""The model behind every format: a slice of a network with an identifier for each machine, event and property."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Sequence

from ackfsm.checking.explore import slice_network
from ackfsm.checking.network import Instance, Network, NetworkEvent
from ackfsm.tables import Row, RowKind


@dataclasses.dataclass(frozen=True, slots=True)
class Variable:
    """The state of one machine; ``states`` are its reachable ones, in the order of its table.

    ``kind`` is what machines of the same table share: ``entry`` of ``entry_m1`` and ``entry_m2``.
    """

    name: str
    kind: str
    states: tuple[str, ...]
    initial: str
    instance: Instance

    @property
    def words(self) -> str:
        """``entry(m1)``; of a machine that watches for an anomaly ``stuck: in_flight(m1)``."""
        watching = f"{self.instance.anomaly}: " if self.instance.anomaly is not None else ""
        return watching + self.instance.label


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """What one participant does at an event: one row for each state that lets it happen, none for the others."""

    variable: Variable
    rows: tuple[Row, ...]

    @property
    def after(self) -> dict[str, str]:
        """The next state from each state in which the event can happen."""
        return {row.state: row.target for row in self.rows}

    @property
    def refusing(self) -> tuple[str, ...]:
        """The states in which the event cannot happen."""
        return tuple(state for state in self.variable.states if state not in self.after)

    @property
    def moving(self) -> dict[str, str]:
        """The next state from each state that the event changes."""
        return {state: target for state, target in self.after.items() if state != target}

    def reasons(self) -> Iterator[str]:
        """Yield a line for every reason of the rows, with its states; none for ignored events."""
        lines: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            if row.target != row.state or (row.kind is RowKind.TO and self.refusing):
                after = f" -> {row.target}" if row.target != row.state else ""
                lines.setdefault((after, row.because), []).append(row.state)
        for (after, because), states in lines.items():
            yield f"{self.variable.words} {', '.join(states)}{after}: {because}"


@dataclasses.dataclass(frozen=True, slots=True)
class Action:
    """One event with its participants; it happens in all of them at once, or not at all."""

    name: str
    event: NetworkEvent
    parts: tuple[Part, ...]


Marks = tuple[tuple[Variable, tuple[str, ...]], ...]
"""Machines, each with those of its states that are meant."""


@dataclasses.dataclass(frozen=True, slots=True)
class Property:
    """One anomaly: the states that are marked always, and the states that are marked at rest."""

    name: str
    always: Marks
    at_rest: Marks


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """A system ready to be written down; ``network`` is the slice that is exported."""

    network: Network
    variables: tuple[Variable, ...]
    actions: tuple[Action, ...]
    properties: tuple[Property, ...]


class Names:
    """Identifiers, each given once, none of them ``reserved``."""

    def __init__(self, reserved: Collection[str] = ()) -> None:
        self._given = set(reserved)

    def new(self, words: str) -> str:
        """``entry(m1#2)`` becomes ``entry_m1_copy2``."""
        name = re.sub(r"\W+", "_", words.replace("#", " copy")).strip("_")
        while name in self._given:
            name += "_"
        self._given.add(name)
        return name


def model(network: Network, reserved: Collection[str] = ()) -> Model:
    """Trim ``network`` and name the rest; no name is one of ``reserved``."""
    sliced, names = slice_network(network), Names(reserved)
    variables = tuple(
        Variable(names.new(_words(i, i.label)), _words(i, i.fsm.name), tuple(i.fsm.states), i.fsm.initial, i)
        for i in sliced.instances
    )
    actions = tuple(Action(names.new(event.label), event, tuple(_parts(event, variables))) for event in sliced.events)
    anomalies = dict.fromkeys(i.anomaly for i in network.instances if i.anomaly is not None)
    properties = tuple(_property(names, anomaly, variables) for anomaly in anomalies)
    return Model(sliced, variables, actions, properties)


def _words(instance: Instance, name: str) -> str:
    """Two anomalies may each have a machine of the same name."""
    return name if instance.anomaly is None else f"{instance.anomaly} {name}"


def _parts(event: NetworkEvent, variables: Sequence[Variable]) -> Iterator[Part]:
    for participant in event.participants:
        variable = variables[participant.instance]
        rows = (variable.instance.fsm.rows[state, participant.event] for state in variable.states)
        yield Part(variable, tuple(row for row in rows if row.kind is not RowKind.REFUSE))


def _property(names: Names, anomaly: str, variables: Sequence[Variable]) -> Property:
    watching = [variable for variable in variables if variable.instance.anomaly == anomaly]
    always = tuple((v, states) for v in watching if (states := _in_order(v, v.instance.marked)))
    at_rest = tuple((v, states) for v in watching if (states := _in_order(v, v.instance.marked_at_rest)))
    return Property(names.new(anomaly), always, at_rest)


def _in_order(variable: Variable, states: Collection[str]) -> tuple[str, ...]:
    return tuple(state for state in variable.states if state in states)
