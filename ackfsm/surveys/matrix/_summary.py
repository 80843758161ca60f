"""The summary of a matrix: a line for each acknowledgement mode, delivery mode and way of consuming."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from ackfsm.surveys.matrix._plan import Scenario
from ackfsm.surveys.matrix._result import AnyNumber, Matrix, Repeated, repeated
from ackfsm.terms import AckMode, Anomaly, Configuration, Consumption, DeliveryMode

_LINE = ("ack_mode", "delivery_mode", "consumption")
"""The settings of a line; the other switches are summarised in it."""


class Reachability(StrEnum):
    """In how many of the configurations of a line an anomaly can happen."""

    NEVER = "never"
    DEPENDS = "depends"
    ALWAYS = "always"
    UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """The entry of a line for one anomaly.

    Each setting in ``decided_by`` decides, with the others unchanged, whether the anomaly can happen.
    ``configuration``, ``scenario`` and ``steps`` are those of a shortest witness with the fewest faults (``None`` and
    empty without one), for any number of messages of one with the fewest ``messages``, of which one may be
    ``repeated``; ``broken`` tells whether a configuration that promises it absent can reach it; ``searched`` is how
    many states the searches had that did not reach it, each counted once.
    """

    happens: Reachability
    decided_by: tuple[str, ...]
    configuration: Configuration | None
    scenario: Scenario | None
    steps: tuple[str, ...]
    messages: int | None
    repeated: Repeated | None
    broken: bool
    searched: int


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """The configurations of one line.

    ``overall`` summarises the scenarios too; ``scenarios`` keeps them apart.  ``guarantees`` are, for
    each scenario, those that stand in every configuration: the strongest of them.
    """

    ack_mode: AckMode
    delivery_mode: DeliveryMode
    consumption: Consumption
    configurations: int
    overall: Mapping[Anomaly, Entry]
    scenarios: tuple[Mapping[Anomaly, Entry], ...]
    guarantees: tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """All lines, in the order of the plan, and the anomalies that happen nowhere."""

    lines: tuple[Line, ...]
    anomalies: tuple[Anomaly, ...]
    nowhere: tuple[Anomaly, ...]


def summarise(matrix: Matrix) -> Summary:
    """Summarise ``matrix`` line by line."""
    numbers: dict[tuple[object, ...], list[int]] = {}
    for number, configuration in enumerate(matrix.plan.configurations):
        numbers.setdefault(tuple(getattr(configuration, key) for key in _LINE), []).append(number)
    lines = tuple(_SummaryBuilder(matrix, group).line() for group in numbers.values())
    nowhere = tuple(a for a in matrix.anomalies if all(line.overall[a].happens is Reachability.NEVER for line in lines))
    return Summary(lines, matrix.anomalies, nowhere)


class _SummaryBuilder:
    """Makes the line of the configurations with these numbers."""

    def __init__(self, matrix: Matrix, numbers: Sequence[int]) -> None:
        self.matrix = matrix
        self.numbers = numbers
        self.configurations = [matrix.plan.configurations[number] for number in numbers]
        self.promised = [matrix.specification.promised_absent(c).keys() for c in self.configurations]
        self.variants = {key: self._differing_in(key) for key in matrix.plan.varied if key not in _LINE}

    def _differing_in(self, key: str) -> list[list[int]]:
        """The indices of configurations that differ in ``key`` alone."""
        groups: dict[Configuration, list[int]] = {}
        some = getattr(self.configurations[0], key)
        for index, configuration in enumerate(self.configurations):
            groups.setdefault(dataclasses.replace(configuration, **{key: some}), []).append(index)
        return [group for group in groups.values() if len(group) > 1]

    def line(self) -> Line:
        scenarios, first = range(len(self.matrix.plan.scenarios)), self.configurations[0]
        return Line(
            first.ack_mode,
            first.delivery_mode,
            first.consumption,
            len(self.configurations),
            self._entries(scenarios),
            tuple(self._entries((scenario,)) for scenario in scenarios),
            tuple(self._guarantees(scenario) for scenario in scenarios),
        )

    def _entries(self, scenarios: Sequence[int]) -> dict[Anomaly, Entry]:
        return {anomaly: self._entry(anomaly, scenarios) for anomaly in self.matrix.anomalies}

    def _entry(self, anomaly: Anomaly, scenarios: Sequence[int]) -> Entry:
        reachable = [self._reachable(number, anomaly, scenarios) for number in self.numbers]
        reached = [(c, s) for c, s in self._cells(scenarios) if self._steps(c, s, anomaly) is not None]
        plan = self.matrix.plan
        best = min(reached, key=lambda cell: self._rank(cell, anomaly), default=None)
        happens = _reachability(set(reachable))
        return Entry(
            happens,
            tuple(self._decided_by(reachable)) if happens is Reachability.DEPENDS else (),
            plan.configurations[best[0]] if best else None,
            plan.scenarios[best[1]] if best else None,
            (self._steps(*best, anomaly) or ()) if best else (),
            self._messages(*best, anomaly) if best else None,
            repeated(self.matrix.outcome(*best), anomaly) if best else None,
            any(anomaly in promised and r for promised, r in zip(self.promised, reachable, strict=True)),
            self._searched(anomaly, scenarios),
        )

    def _cells(self, scenarios: Sequence[int]) -> Iterator[tuple[int, int]]:
        return ((number, scenario) for number in self.numbers for scenario in scenarios)

    def _steps(self, number: int, scenario: int, anomaly: Anomaly) -> tuple[str, ...] | None:
        return self.matrix.outcome(number, scenario).witnesses.get(anomaly)

    def _messages(self, number: int, scenario: int, anomaly: Anomaly) -> int | None:
        outcome = self.matrix.outcome(number, scenario)
        return outcome.messages[anomaly] if isinstance(outcome, AnyNumber) else self.matrix.plan.messages

    def _rank(self, cell: tuple[int, int], anomaly: Anomaly) -> tuple[int, int, int]:
        faults = self.matrix.plan.scenarios[cell[1]].max_faults
        return faults or 0, self._messages(*cell, anomaly) or 0, len(self._steps(*cell, anomaly) or ())

    def _reachable(self, number: int, anomaly: Anomaly, scenarios: Sequence[int]) -> bool | None:
        found = {self.matrix.outcome(number, scenario).reachable(anomaly) for scenario in scenarios}
        return True if True in found else None if None in found else False

    def _decided_by(self, reachable: Sequence[bool | None]) -> Iterator[str]:
        for key, groups in self.variants.items():
            if any({True, False} <= {reachable[index] for index in group} for group in groups):
                yield key

    def _searched(self, anomaly: Anomaly, scenarios: Sequence[int]) -> int:
        keys = {self.matrix.keys[c][s] for c, s in self._cells(scenarios)}
        outcomes = (self.matrix.outcomes[key] for key in keys)
        return sum(outcome.states for outcome in outcomes if anomaly not in outcome.witnesses)

    def _guarantees(self, scenario: int) -> tuple[str, ...]:
        """The strongest guarantees that stand in every configuration of the line."""
        lattice = self.matrix.specification.guarantees
        names = (*self.matrix.anomalies, *lattice.monitors)
        happens = {name: self._anywhere(name, scenario) for name in names}
        return lattice.strongest(lattice.evaluate(happens))

    def _anywhere(self, name: str, scenario: int) -> bool | None:
        found = {self.matrix.outcome(number, scenario).reachable(name) for number in self.numbers}
        return True if True in found else None if None in found else False


def _reachability(reachable: set[bool | None]) -> Reachability:
    if {True, False} <= reachable:
        return Reachability.DEPENDS
    if None in reachable:
        return Reachability.UNKNOWN
    return Reachability.ALWAYS if True in reachable else Reachability.NEVER
