"""The result of a matrix: an outcome for every configuration in every scenario."""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ackfsm.surveys.matrix._plan import Plan, Scenario
from ackfsm.tables import Promise, Specification
from ackfsm.terms import Anomaly, Configuration

if TYPE_CHECKING:
    from ackfsm.checking.unbounded import Level


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What one search found.

    ``witnesses`` has the labels of a shortest way to each anomaly that was reached, and to each end of a message.
    """

    states: int
    transitions: int
    complete: bool
    witnesses: Mapping[str, tuple[str, ...]]

    @property
    def anomalies(self) -> tuple[Anomaly, ...]:
        """The anomalies that were reached, in the order in which they are defined."""
        return tuple(anomaly for anomaly in Anomaly if anomaly in self.witnesses)

    def reachable(self, name: str) -> bool | None:
        """Whether the anomaly or end of a message can happen; ``None`` if the search stopped before it could tell."""
        if name in self.witnesses:
            return True
        return False if self.complete else None


@dataclasses.dataclass(frozen=True, slots=True)
class Repeated:
    """How a way of few messages, with ``tried`` smaller bounds, becomes one with the bounds as they are set.

    The steps of ``message`` are taken by so many messages one after the other.
    """

    message: int
    times: int
    tried: Mapping[str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class AnyNumber(Outcome):
    """The decision for any number of messages and of faults.

    Attributes:
        views: how many views the proofs took.
        messages: how many messages each witness takes.
        repeated: of which witnesses a message stands for many.
        proved: what is impossible for any number, and how much of other messages the proof had to know.
        undecided: what is neither proved nor shown, with the reason.
        searched: for each of these the most messages of which all was searched, with any number of faults; 0: none.
    """

    views: int
    messages: Mapping[str, int]
    repeated: Mapping[str, Repeated]
    proved: Mapping[str, Level]
    undecided: Mapping[str, str]
    searched: Mapping[str, int]

    def reachable(self, name: str) -> bool | None:
        """Whether the anomaly or end of a message can happen; ``None`` if that is undecided."""
        if name in self.witnesses:
            return True
        return None if name in self.undecided else False


def repeated(outcome: Outcome, name: str) -> Repeated | None:
    """Of which message of a witness there have to be many, where few do not fill a bound."""
    return outcome.repeated.get(name) if isinstance(outcome, AnyNumber) else None


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    """One configuration in one scenario; ``promised`` are the anomalies that it promises never to happen."""

    configuration: Configuration
    scenario: Scenario
    outcome: Outcome
    promised: Mapping[Anomaly, Promise]
    strongest: tuple[str, ...]

    @property
    def broken(self) -> Iterator[Anomaly]:
        """The anomalies that are promised absent and can happen."""
        return (anomaly for anomaly in self.outcome.anomalies if anomaly in self.promised)


@dataclasses.dataclass(frozen=True, slots=True)
class Broken:
    """A promise that some configurations do not keep.

    ``settings`` are the values, of settings that vary in the matrix, that all of them share and not
    every configuration has; ``cell`` is one with a shortest witness.
    """

    promise: Promise
    configurations: int
    settings: Mapping[str, object]
    cell: Cell


@dataclasses.dataclass(frozen=True, slots=True)
class Open:
    """The undecided anomalies for one reason: each anomaly or end with the number of configurations.

    ``settings`` are as in :class:`Broken`; ``cell`` is one of them.
    """

    because: str
    names: Mapping[str, int]
    configurations: int
    settings: Mapping[str, object]
    cell: Cell


@dataclasses.dataclass(frozen=True)
class Matrix:
    """The outcomes of a plan.

    ``keys[c][s]`` is the key of the network of configuration ``c`` in scenario ``s``; networks with the same
    key are equal but for the names in them, and were explored once.
    """

    plan: Plan
    specification: Specification
    keys: Sequence[Sequence[str]]
    outcomes: Mapping[str, Outcome]
    seconds: float

    @property
    def cells(self) -> int:
        """How many cells there are, merged or not."""
        return len(self.plan.configurations) * len(self.plan.scenarios)

    @property
    def states(self) -> int:
        """How many states were searched in all."""
        return sum(outcome.states for outcome in self.outcomes.values())

    @property
    def transitions(self) -> int:
        """How many transitions were followed in all."""
        return sum(outcome.transitions for outcome in self.outcomes.values())

    @property
    def complete(self) -> bool:
        """Whether every search came to its end."""
        return all(outcome.complete for outcome in self.outcomes.values())

    @property
    def anomalies(self) -> tuple[Anomaly, ...]:
        """The anomalies that the tables define."""
        return tuple(self.specification.properties)

    def outcome(self, configuration: int, scenario: int) -> Outcome:
        """The outcome of the configuration and the scenario with these numbers in the plan."""
        return self.outcomes[self.keys[configuration][scenario]]

    def row(self, number: int) -> tuple[Cell, ...]:
        """The cells of one configuration, in the order of the scenarios."""
        configuration = self.plan.configurations[number]
        promised = self.specification.promised_absent(configuration)
        return tuple(
            Cell(configuration, scenario, self.outcomes[key], promised, self._strongest[key])
            for scenario, key in zip(self.plan.scenarios, self.keys[number], strict=True)
        )

    def rows(self) -> Iterator[tuple[Cell, ...]]:
        """The cells of every configuration."""
        return (self.row(number) for number in range(len(self.plan.configurations)))

    @functools.cached_property
    def _strongest(self) -> Mapping[str, tuple[str, ...]]:
        lattice = self.specification.guarantees
        names = (*self.anomalies, *lattice.monitors)
        return {
            key: lattice.strongest(lattice.evaluate({name: outcome.reachable(name) for name in names}))
            for key, outcome in self.outcomes.items()
        }

    @functools.cached_property
    def broken(self) -> tuple[Broken, ...]:
        """Return the promises that are not kept, each with the common settings of the configurations that break it."""
        cells: dict[tuple[Anomaly, str], list[Cell]] = {}
        for row in self.rows():
            for cell in row:
                for anomaly in cell.broken:
                    cells.setdefault((anomaly, cell.promised[anomaly].source), []).append(cell)
        return tuple(self._one_broken(anomaly, found) for (anomaly, _), found in cells.items())

    def _one_broken(self, anomaly: Anomaly, cells: list[Cell]) -> Broken:
        shortest = min(cells, key=lambda cell: len(cell.outcome.witnesses[anomaly]))
        configurations, settings = self._in_common(cells)
        return Broken(shortest.promised[anomaly], configurations, settings, shortest)

    def _in_common(self, cells: Sequence[Cell]) -> tuple[int, dict[str, object]]:
        """Of how many configurations the cells are, and which settings that vary all of these share."""
        configurations = list(dict.fromkeys(cell.configuration for cell in cells))
        common = {key: {getattr(config, key) for config in configurations} for key in self.plan.varied}
        return len(configurations), {key: next(iter(values)) for key, values in common.items() if len(values) == 1}

    @functools.cached_property
    def pairs(self) -> Mapping[bool | None, int]:
        """Of how many pairs of a configuration and an anomaly it can happen, cannot, and is undecided."""
        found = collections.Counter(
            cell.outcome.reachable(name) for row in self.rows() for cell in row for name in self.anomalies
        )
        return {reachable: found[reachable] for reachable in (False, True, None)}

    @functools.cached_property
    def open(self) -> tuple[Open, ...]:
        """Return the undecided anomalies for any number of messages, by reason, the most configurations first."""
        cells: dict[str, dict[str, list[Cell]]] = {}
        for cell in (cell for row in self.rows() for cell in row):
            undecided = cell.outcome.undecided if isinstance(cell.outcome, AnyNumber) else {}
            for name, because in undecided.items():
                cells.setdefault(because, {}).setdefault(name, []).append(cell)
        found = (self._one_open(because, by_name) for because, by_name in cells.items())
        return tuple(sorted(found, key=lambda one: -one.configurations))

    def _one_open(self, because: str, by_name: Mapping[str, list[Cell]]) -> Open:
        every = [cell for its in by_name.values() for cell in its]
        configurations, settings = self._in_common(every)
        return Open(because, {name: len(its) for name, its in by_name.items()}, configurations, settings, every[0])
