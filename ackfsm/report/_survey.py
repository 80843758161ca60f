"""What every mode of a system promises, and what each single fault can cause in it: all of it explored."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import multiprocessing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from ackfsm import explore, tables
from ackfsm.network import Bounds
from ackfsm.tables import Gap, Promise, Specification
from ackfsm.terms import Anomaly, Configuration, Fault, Profile

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

    ``causes`` has a search for no fault (``None``) and for each kind of fault, which may happen once; it is empty
    where the tables have ``gaps``.
    """

    configuration: Configuration
    promised: Mapping[Anomaly, Promise]
    gaps: tuple[Gap, ...]
    causes: Mapping[Fault | None, Searched]

    @property
    def broken(self) -> frozenset[Anomaly]:
        """What is promised never to happen and happens."""
        return frozenset(anomaly for found in self.causes.values() for anomaly in found.anomalies) & set(self.promised)


def survey(
    specification: Specification,
    profiles: Collection[Profile],
    *,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> dict[Profile, tuple[Surveyed, ...]]:
    """Every acknowledgement mode x delivery mode x way to consume that each profile has, all else at its defaults.

    One message is sent.  Configurations that are the same machines are explored once.  With more than one of
    ``jobs`` the searches are spread over processes, which read the tables that ship with the package; the result is
    the same.  ``progress`` is told how many searches are done.
    """
    modes = {profile: tuple(_configurations(specification, profile)) for profile in profiles}
    read = specification.settings_of_machines()
    questions: dict[_Key, _Question] = {}
    for configuration in (mode for several in modes.values() for mode in several):
        if not specification.gaps_of(configuration):
            for fault in (None, *Fault):
                questions.setdefault(_key(read, configuration, fault), (configuration, fault))
    found = dict(zip(questions, _answers(specification, list(questions.values()), jobs, progress), strict=True))

    def surveyed(configuration: Configuration) -> Surveyed:
        gaps = specification.gaps_of(configuration)
        faults = () if gaps else (None, *Fault)
        causes = {fault: found[_key(read, configuration, fault)] for fault in faults}
        return Surveyed(configuration, specification.promised_absent(configuration), gaps, MappingProxyType(causes))

    return {profile: tuple(map(surveyed, several)) for profile, several in modes.items()}


def _configurations(specification: Specification, profile: Profile) -> Iterator[Configuration]:
    """Every mode that the profile has, delivery mode by delivery mode."""
    for delivery_mode in specification.offered(profile, "delivery_mode"):
        for ack_mode in specification.offered(profile, "ack_mode", {"delivery_mode": delivery_mode}):
            chosen = {"delivery_mode": delivery_mode, "ack_mode": ack_mode}
            for consumption in specification.offered(profile, "consumption", chosen):
                yield specification.configure(profile, {**chosen, "consumption": consumption})


def _key(read: Collection[str], configuration: Configuration, fault: Fault | None) -> _Key:
    """What decides the answer: the fault, and the settings that rows of machines ``read``."""
    return (fault, *(value for key, value in configuration.as_dict().items() if key in read))


def _answers(
    specification: Specification,
    questions: Sequence[_Question],
    jobs: int,
    progress: Callable[[int], None] | None,
) -> Iterable[Searched]:
    if jobs == 1:
        return _counted((_search(specification, question) for question in questions), progress)
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=spawn) as pool:
        return list(_counted(pool.map(_search_shipped, questions, chunksize=_CHUNK), progress))


def _counted(answers: Iterable[Searched], progress: Callable[[int], None] | None) -> Iterator[Searched]:
    for done, answer in enumerate(answers, start=1):
        if progress is not None:
            progress(done)
        yield answer


@functools.cache
def _shipped() -> Specification:
    """The tables, read once in each process."""
    return tables.load()


def _search_shipped(question: _Question) -> Searched:
    return _search(_shipped(), question)


def _search(specification: Specification, question: _Question) -> Searched:
    configuration, fault = question
    faults = frozenset({fault} if fault is not None else ())
    answer = explore.check(specification, configuration, Bounds(faults=faults, max_faults=len(faults)))
    reached = (finding.anomaly for finding in answer.findings.values() if finding.reachable)
    return Searched(tuple(reached), answer.exploration.states)
