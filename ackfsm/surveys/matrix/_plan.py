"""The plan of a matrix: the configurations that ``spec/sweep.yaml`` spans, and the faults of each."""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from ackfsm.checking.network import Bounds
from ackfsm.tables import Condition, ConditionalValue, Factor, Refusal, Specification, format_value
from ackfsm.terms import Configuration, Fault, InputError


@dataclasses.dataclass(frozen=True, slots=True)
class Scenario:
    """Which kinds of faults may happen, and how many in all (``None``: any number)."""

    faults: tuple[Fault, ...]
    max_faults: int | None

    def __str__(self) -> str:
        if self.max_faults is None:
            return "any faults"
        if not self.faults:
            return "no fault"
        if len(self.faults) < self.max_faults:
            return f"{self.faults[0]} twice"
        return " and ".join(self.faults)


ANY_FAULTS: Final = Scenario(tuple(Fault), None)
"""Every kind of fault, any number of times: the one scenario of a matrix for any number of messages."""


@dataclasses.dataclass(frozen=True, slots=True)
class LeftOut:
    """Configurations that are not explored: how many, and why.

    The system refuses them, the tables do not cover them yet, or they take too long with so many messages.
    """

    count: int
    because: str


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """Every configuration under every scenario.

    ``varied`` are the settings that take more than one value; ``left_out`` is what was not planned; ``messages`` is
    ``None`` for any number of them; ``api`` is the programming interface through which applications ask for the
    configurations, if one was named.
    """

    configurations: tuple[Configuration, ...]
    varied: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    scenarios: tuple[Scenario, ...]
    messages: int | None
    max_states: int | None
    api: str | None = None

    def bounds(self, scenario: Scenario) -> Bounds:
        """The bounds of a check in ``scenario``."""
        return Bounds(messages=self.messages or 1, faults=frozenset(scenario.faults), max_faults=scenario.max_faults)


def make_plan(  # noqa: PLR0913 - what the command lets a person choose
    specification: Specification,
    profile: str | None = None,
    settings: Mapping[str, object] | None = None,
    *,
    api: str | None = None,
    messages: int | None = 1,
    pairs: bool = True,
    max_states: int | None = None,
) -> Plan:
    """The matrix of ``profile``; ``settings`` are fixed, the other switches vary where they matter.

    ``messages`` is ``None`` for any number of them, with any number of all faults.

    With ``api``, what applications cannot ask for through that interface (:meth:`ProfileTable.api`) is left out too.
    Raises :class:`InputError` for settings or an interface that do not exist, or if nothing is left to be explored.
    """
    fixed = specification.given(profile, settings)
    table = specification.profiles[fixed["profile"]]
    interface = None if api is None else table.api(api)
    whole = {key for key, value in fixed.items() if not isinstance(value, ConditionalValue)}
    unfixed = [factor for factor in specification.factors if factor.key not in whole]
    covered: list[Configuration] = []
    refused: collections.Counter[str] = collections.Counter()
    factors = {factor.key: factor.values for factor in unfixed}
    matters = {factor.key: factor.when for factor in unfixed}
    for configuration in span(specification, fixed, factors, matters):
        if not table.agrees(fixed, configuration.as_dict()):
            continue
        reason = _reason(specification, configuration, interface)
        reason = reason or _too_long(specification, configuration, unfixed, messages or 1)
        if reason is None:
            covered.append(configuration)
        else:
            refused[reason] += 1
    left_out = tuple(LeftOut(count, because) for because, count in refused.items())
    if not covered:
        raise InputError(f"no configuration is left to be explored: {left_out[0].because}; choose another value")
    varied = tuple(key for key in factors if len({getattr(config, key) for config in covered}) > 1)
    faults = (ANY_FAULTS,) if messages is None else scenarios(pairs=pairs)
    return Plan(tuple(covered), varied, left_out, faults, messages, max_states, interface)


def span(
    specification: Specification,
    fixed: Mapping[str, Any],
    factors: Mapping[str, Sequence[Any]],
    matters: Mapping[str, Condition] = MappingProxyType({}),
) -> Iterator[Configuration]:
    """Yield every configuration with the settings ``fixed`` and a value of each of ``factors``, refused ones too.

    A factor takes its default alone where what ``matters`` says of it does not hold of those before it.
    """
    configuration = Configuration(**specification.profiles[fixed["profile"]].settings(fixed))
    if not factors:
        yield configuration
        return
    (key, values), *others = factors.items()
    if key in matters and not matters[key].holds(specification.environment(configuration)):
        values = (getattr(configuration, key),)
    for value in values:
        yield from span(specification, {**fixed, key: value}, dict(others), matters)


def refusal(specification: Specification, configuration: Configuration, api: str | None = None) -> Refusal | None:
    """The first row of the profile, or of its interface ``api``, that refuses the configuration."""
    values = {field.name: getattr(configuration, field.name) for field in dataclasses.fields(configuration)}
    return next(iter(specification.profiles[configuration.profile].refused(values, api)), None)


def _reason(specification: Specification, configuration: Configuration, api: str | None) -> str | None:
    """Why a configuration is not explored, ``None`` if it is."""
    if (refused := refusal(specification, configuration, api)) is not None:
        return f"{' and '.join(sorted(refused.settings()))}: {refused.because}"
    return None


def _too_long(
    specification: Specification, configuration: Configuration, factors: Sequence[Factor], messages: int
) -> str | None:
    """Why a configuration is not explored with so many messages, ``None`` if it is."""
    environment = specification.environment(configuration, messages=messages)
    for factor in factors:
        omitted = factor.left_out
        if omitted is None or environment[factor.key] != omitted.value:
            continue
        if factor.when.holds(environment) and omitted.when.holds(environment):
            return f"{factor.key}={format_value(omitted.value)}: {omitted.because}"
    return None


def scenarios(*, pairs: bool) -> tuple[Scenario, ...]:
    """No fault, each kind once, and (with ``pairs``) each kind twice and every two kinds."""
    single = [Scenario((fault,), 1) for fault in Fault]
    double = [Scenario((fault,), 2) for fault in Fault]
    mixed = [Scenario(kinds, 2) for kinds in itertools.combinations(Fault, 2)]
    return (Scenario((), 0), *single, *(double + mixed if pairs else []))
