"""What every mode of a system promises, and what each single fault can cause in it: all of it explored."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from ackfsm import explore, tables
from ackfsm.network import Bounds, environments
from ackfsm.tables import Promise, Specification
from ackfsm.terms import Anomaly, Configuration, Fault
from ackfsm.workers import workers

__all__ = ["Searched", "Surveyed", "survey"]

_Question: TypeAlias = tuple[Configuration, Fault | None]
_Key: TypeAlias = tuple[object, ...]

_CHUNK = 8
"""Searches that a process is handed at a time: one takes some hundredths of a second."""


@dataclasses.dataclass(frozen=True, slots=True)
class Searched:
    """One complete search: the anomalies that it reached, and how many states there are."""

    anomalies: tuple[Anomaly, ...]
    states: int


@dataclasses.dataclass(frozen=True, slots=True)
class Surveyed:
    """One mode of a system: the configuration, what it promises, and what can happen in it.

    ``causes`` has a search for no fault (``None``) and for each kind of fault, which may happen once.
    """

    configuration: Configuration
    promised: Mapping[Anomaly, Promise]
    causes: Mapping[Fault | None, Searched]

    @property
    def broken(self) -> frozenset[Anomaly]:
        """What is promised never to happen and happens."""
        return frozenset(anomaly for found in self.causes.values() for anomaly in found.anomalies) & set(self.promised)


def survey(
    specification: Specification,
    profiles: Collection[str],
    *,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> dict[str, tuple[Surveyed, ...]]:
    """Every acknowledgement mode x delivery mode x way to consume that each profile has, all else at its defaults.

    One message is sent.  Configurations that are the same machines are explored once.  With more than one of
    ``jobs`` the searches are spread over processes, which read the tables that ship with the package; the result is
    the same.  ``progress`` is told how many searches are done.
    """
    modes = {profile: tuple(_configurations(specification, profile)) for profile in profiles}
    same = _Sameness(specification)
    questions: dict[_Key, _Question] = {}
    for configuration in (mode for several in modes.values() for mode in several):
        for fault in (None, *Fault):
            questions.setdefault(same.key(configuration, fault), (configuration, fault))
    found = dict(zip(questions, _answers(specification, list(questions.values()), jobs, progress), strict=True))

    def surveyed(configuration: Configuration) -> Surveyed:
        causes = {fault: found[same.key(configuration, fault)] for fault in (None, *Fault)}
        return Surveyed(configuration, specification.promised_absent(configuration), MappingProxyType(causes))

    return {profile: tuple(map(surveyed, several)) for profile, several in modes.items()}


def _configurations(specification: Specification, profile: str) -> Iterator[Configuration]:
    """Every mode that the profile has, delivery mode by delivery mode."""
    for delivery_mode in specification.offered(profile, "delivery_mode"):
        for ack_mode in specification.offered(profile, "ack_mode", {"delivery_mode": delivery_mode}):
            chosen = {"delivery_mode": delivery_mode, "ack_mode": ack_mode}
            for consumption in specification.offered(profile, "consumption", chosen):
                yield specification.configure(profile, {**chosen, "consumption": consumption})


class _Sameness:
    """Tells questions apart only where the machines could answer them differently."""

    def __init__(self, specification: Specification) -> None:
        self.specification = specification
        self.conditions = specification.conditions_of_machines()
        self.counted = sorted(specification.bounds_of_machines())

    def key(self, configuration: Configuration, fault: Fault | None) -> _Key:
        """Equal for two questions only if the same conditions hold and the counters have the same bounds."""
        known = environments(self.specification, configuration, _bounds(fault))
        return (fault, *map(self._rows, known))

    def _rows(self, environment: Mapping[str, object]) -> _Key:
        met = sum(condition.holds(environment) << number for number, condition in enumerate(self.conditions))
        return (met, *(environment[name] for name in self.counted))


def _bounds(fault: Fault | None) -> Bounds:
    """One message; one fault of this kind, or none at all."""
    faults = frozenset({fault} if fault is not None else ())
    return Bounds(faults=faults, max_faults=len(faults))


def _answers(
    specification: Specification,
    questions: Sequence[_Question],
    jobs: int,
    progress: Callable[[int], None] | None,
) -> list[Searched]:
    tell = progress or _silent
    found: dict[int, list[Searched]] = {}
    with contextlib.ExitStack() as stack:
        size = 1 if jobs == 1 else _CHUNK
        chunks = [questions[start : start + size] for start in range(0, len(questions), size)]
        searched: Iterator[tuple[int, list[Searched]]]
        if jobs == 1:
            searched = ((place, _search_all(specification, chunk)) for place, chunk in enumerate(chunks))
        else:
            searched = stack.enter_context(workers(jobs)).map(
                functools.partial(_search_elsewhere, tuple(specification.own.values())), chunks
            )
        for place, answers in searched:
            found[place] = answers
            tell(sum(map(len, found.values())))
    return [answer for place in range(len(chunks)) for answer in found[place]]


def _silent(_: int) -> None:
    """Tell nobody."""


@functools.cache
def _shipped(own: tuple[Path, ...]) -> Specification:
    """The tables, read once in each process."""
    return tables.load(own=own)


def _search_elsewhere(own: tuple[Path, ...], questions: Sequence[_Question]) -> list[Searched]:
    return _search_all(_shipped(own), questions)


def _search_all(specification: Specification, questions: Sequence[_Question]) -> list[Searched]:
    return [_search(specification, question) for question in questions]


def _search(specification: Specification, question: _Question) -> Searched:
    configuration, fault = question
    answer = explore.check(specification, configuration, _bounds(fault))
    reached = (finding.anomaly for finding in answer.findings.values() if finding.reachable)
    return Searched(tuple(reached), answer.exploration.states)
