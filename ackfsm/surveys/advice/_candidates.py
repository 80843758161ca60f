"""The candidates of an advice: every legal configuration of a system, with the sizes that its load asks for."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from ackfsm.engine.core.model import EngineModel
from ackfsm.rates import timing
from ackfsm.rates.simulation import simulate
from ackfsm.rates.timing import Interval, Plan, Waits, Workload
from ackfsm.surveys.advice._request import Request
from ackfsm.surveys.advice._table import SIZES_OF_WORKLOADS, AdviceTable, Choice, read_table
from ackfsm.tables import ProfileTable, Specification
from ackfsm.terms import Configuration, InputError

_SIMULATED: Final = 20
"""Batches that are simulated, or so many times two hundred messages where batches are smaller."""


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """One configuration under one load.

    Attributes:
        configuration: all settings.
        work: the load, with the sizes of transactions and acknowledgements.
        plan: how fast it goes, by the closed form.
        changes: the settings and sizes that are not as the system has them by default.
        simulated: messages a second that a simulation gave where the closed form knows bounds only.
    """

    configuration: Configuration
    work: Workload
    plan: Plan
    changes: Mapping[str, Any] = dataclasses.field(hash=False)
    simulated: Fraction | None = None

    @property
    def rate(self) -> Interval:
        """Messages a second from end to end."""
        return self.plan.rate if self.simulated is None else Interval.exactly(self.simulated)

    @property
    def seconds(self) -> Fraction:
        """Until its application has a message and its producer knows the outcome, at least.

        A message waits for the rest of its transaction, and for those that are acknowledged with it.
        """
        told = self.plan.confirmation[0] if self.plan.confirmation else Fraction(0)
        together = max(self.work.messages_per_commit, self.work.messages_per_acknowledge) - 1
        rate = self.work.rate or self.rate.low
        return max(self.plan.delivery, told) + (together / rate if rate else 0)

    def gives(self, rate: Fraction | None) -> bool:
        """Whether it carries so many messages a second."""
        return rate is None or self.rate.low is None or self.rate.low >= rate


def all_candidates(specification: Specification, request: Request, directory: Path | None = None) -> list[Candidate]:
    """The legal configurations, each once, with the sizes that the load of ``request`` asks for.

    Raises :class:`InputError` for settings that do not exist, and where no configuration is legal; and
    :class:`ackfsm.terms.SpecError` for what is wrong in ``advice.yaml`` of ``spec/`` (or of ``directory``).
    """
    table = read_table(specification, directory)
    found = [
        candidate
        for profile in request.profiles
        for candidate in _Candidates(specification, table, request, profile).found()
    ]
    if not found:
        raise InputError("no configuration is legal with these settings; `ackfsm systems` tells what each has")
    return found


class _Candidates:
    def __init__(self, specification: Specification, table: AdviceTable, request: Request, profile: str) -> None:
        self._specification = specification
        self._given = specification.given(profile, request.settings[profile])
        self._profile: ProfileTable = specification.profiles[self._given["profile"]]
        self._api = None if request.api is None else self._profile.api(request.api)
        self._sizes = [choice for choice in table.sizes if choice.key not in self._given]
        switches = [Choice(each.key, each.values, each.when) for each in specification.factors]
        self._choices = [choice for choice in (*switches, *table.varied) if choice.key not in self._given]
        self._work = request.work
        self._rates: dict[tuple[Waits, Workload], Fraction] = {}
        self._plan = functools.lru_cache(maxsize=None)(timing.plan)  # a few dozens of ways to wait, under few loads

    def found(self) -> Iterator[Candidate]:
        met = set[Configuration]()
        for given in self._spread(self._given, self._choices):
            configuration = self._configured(given)
            if configuration is not None and configuration not in met:
                met.add(configuration)
                yield self._sized(given, configuration)

    def _spread(self, given: Mapping[str, Any], choices: Sequence[Choice]) -> Iterator[Mapping[str, Any]]:
        """``given`` with a value of each of ``choices`` that matters."""
        if not choices:
            yield given
            return
        choice, *others = choices
        configuration = Configuration(**self._profile.settings(given))
        if not choice.when.holds(self._specification.environment(configuration)):
            yield from self._spread(given, others)
            return
        for value in dict.fromkeys((getattr(configuration, choice.key), *choice.values)):
            yield from self._spread({**given, choice.key: value}, others)

    def _configured(self, given: Mapping[str, Any]) -> Configuration | None:
        """The configuration, ``None`` if the system does not have it."""
        values = self._profile.settings(given)
        if not self._profile.agrees(given, values) or next(iter(self._profile.refused(values, self._api)), None):
            return None
        return Configuration(**values)

    def _simulated(self, configuration: Configuration, work: Workload, plan: Plan) -> Fraction | None:
        """The rate by a simulation where the closed form leaves it open: the same for all that wait alike."""
        asked, known = self._work.rate, plan.rate
        low, high = known.low or Fraction(0), known.high
        if known.is_exact or (asked is not None and (low >= asked or (high is not None and high < asked))):
            return None
        key = timing.waits_of(self._specification, configuration), work
        if key not in self._rates:
            messages = _SIMULATED * max(work.messages_per_commit, work.messages_per_acknowledge, 200)
            found = simulate(self._specification, configuration, work, messages, model=self._model)
            self._rates[key] = Fraction(found.deliver)
        return self._rates[key]

    @functools.cached_property
    def _model(self) -> EngineModel:
        return EngineModel(self._specification)

    def _sized(self, given: Mapping[str, Any], configuration: Configuration) -> Candidate:
        """With the smallest sizes that give the rate that is asked for, or the highest rate."""
        best = self._candidate(configuration, self._work)
        environment = self._specification.environment(configuration)
        for choice in self._sizes:
            if choice.when.holds(environment):
                own = self._of(best, choice.key)
                tried = [
                    candidate
                    for value in choice.values
                    if value > own and (candidate := self._with(given, best, choice.key, value)) is not None
                ]
                best = max([best, *tried], key=lambda each: self._worth(each))  # noqa: PLW0108 - the first of equals
                if choice.key not in SIZES_OF_WORKLOADS:
                    given = {**given, choice.key: self._of(best, choice.key)}
        return best

    @staticmethod
    def _of(candidate: Candidate, key: str) -> int:
        return int(getattr(candidate.work if key in SIZES_OF_WORKLOADS else candidate.configuration, key))

    def _with(self, given: Mapping[str, Any], best: Candidate, key: str, value: int) -> Candidate | None:
        if key in SIZES_OF_WORKLOADS:
            size: dict[str, Any] = {key: value}
            return self._candidate(best.configuration, dataclasses.replace(best.work, **size))
        configuration = self._configured({**given, key: value})
        return None if configuration is None else self._candidate(configuration, best.work)

    def _worth(self, candidate: Candidate) -> tuple[bool, Fraction, Fraction]:
        """Return whether the rate is enough, else the rate, and the rates of both sides; one side may wait."""
        rate, asked = candidate.rate.low, self._work.rate
        if rate is None or (asked is not None and rate >= asked):
            return True, Fraction(0), Fraction(0)
        sides = (candidate.plan.publish.rate.low, candidate.plan.deliver.rate.low)
        return False, rate, sum((side for side in sides if side is not None), Fraction(0))

    def _candidate(self, configuration: Configuration, work: Workload) -> Candidate:
        freely = dataclasses.replace(work, rate=None)
        plan = self._plan(freely, timing.waits_of(self._specification, configuration))
        values = {field.name: getattr(configuration, field.name) for field in dataclasses.fields(configuration)}
        sizes = {key: getattr(work, key) for key in sorted(SIZES_OF_WORKLOADS) if getattr(work, key) > 1}
        changes = {**self._profile.chosen(values), **sizes}
        return Candidate(configuration, work, plan, changes, self._simulated(configuration, freely, plan))
