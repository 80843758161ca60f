"""Explore a plan: networks that are alike once, spread over processes.

First every configuration is composed, and what is left of it in each scenario gets a name (see
:func:`ackfsm.explore.reduced`).  Then one network of each name is searched.  Both are exact:
every cell has the states, transitions and witnesses that it has when checked on its own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from ackfsm import tables
from ackfsm.explore import Reduced, explore_packed, reduced
from ackfsm.matrix._plan import Plan, Scenario
from ackfsm.matrix._result import Matrix, Outcome
from ackfsm.network import NetworkEvent, compose
from ackfsm.tables import Row, Specification
from ackfsm.terms import Anomaly, Configuration, Fault, SpecError
from ackfsm.workers import workers

__all__ = ["Progress", "Spread", "run"]

_COMPILED_FROM = 200
"""With so many searches it pays to load compiled code in every process (half a second each)."""

_CONFIGURATIONS_A_TASK = 8
_SEARCHES_A_TASK = 8


class Progress(Protocol):
    """Called whenever part of the work is done."""

    def __call__(self, what: str, done: int, of: int, /) -> None:
        """``what`` goes on, ``done`` of its ``of`` parts are finished."""


class Spread(Protocol):
    """Calls a function for many arguments, in other processes that have this package."""

    def __call__(self, function: Callable[[Any], Any], arguments: Sequence[Any], /) -> Iterator[tuple[int, Any]]:
        """The results in any order, each with the place of its argument; all of it can be pickled."""


def run(  # noqa: PLR0913 - where and how to do it
    plan: Plan,
    specification: Specification,
    *,
    jobs: int = 1,
    directory: Path | None = None,
    spread: Spread | None = None,
    progress: Progress | None = None,
) -> Matrix:
    """Explore every cell of ``plan`` in ``jobs`` processes (1: in this one), or wherever ``spread`` does it.

    ``directory`` is where the tables were loaded from, so that other processes load the same.
    """
    begun = time.perf_counter()
    tell = progress or _silent
    with _mapping(specification, jobs, directory, spread) as mapped:
        keys = _name(mapped, plan, tell)
        outcomes = _search(mapped, plan, keys, tell)
    return Matrix(plan, specification, keys, outcomes, time.perf_counter() - begun)


def _silent(what: str, done: int, of: int, /) -> None:
    """Tell nobody."""


_Which: TypeAlias = "tuple[Path | None, tuple[Path, ...], str]"
"""Which tables: their folder, the profiles beside them, their digest."""

_Task: TypeAlias = "Callable[[Specification, Any], Any]"

_Map: TypeAlias = "Callable[[_Task, Sequence[Any]], Iterator[tuple[int, Any]]]"
"""The results of a task for all arguments, with their places, as they come."""


@contextlib.contextmanager
def _mapping(specification: Specification, jobs: int, directory: Path | None, spread: Spread | None) -> Iterator[_Map]:
    """What does the tasks; processes other than this one read the tables once each."""
    with contextlib.ExitStack() as stack:
        if spread is None and jobs > 1:
            spread = stack.enter_context(workers(jobs)).map
        if spread is None:
            yield lambda task, arguments: enumerate(map(functools.partial(task, specification), arguments))
        else:
            yield functools.partial(
                _spread_out, spread, (directory, tuple(specification.own.values()), specification.digest)
            )


def _spread_out(spread: Spread, which: _Which, task: _Task, arguments: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    return spread(functools.partial(_elsewhere, which, task), arguments)


def _elsewhere(which: _Which, task: _Task, argument: Any) -> Any:
    return task(_loaded(*which), argument)


@functools.cache
def _loaded(directory: Path | None, own: tuple[Path, ...], digest: str) -> Specification:
    specification = tables.load(directory, own)
    if specification.digest != digest:
        raise SpecError("the tables were changed while they were being explored; start again")
    return specification


@dataclasses.dataclass(frozen=True, slots=True)
class _Naming:
    plan: Plan
    configurations: tuple[Configuration, ...]


def _name(mapped: _Map, plan: Plan, tell: Progress) -> list[tuple[str, ...]]:
    """The name of every cell's network."""
    without = dataclasses.replace(plan, configurations=())
    chunks = [_Naming(without, chunk) for chunk in _chunks(plan.configurations, _CONFIGURATIONS_A_TASK)]
    named: dict[int, list[tuple[str, ...]]] = {}
    for place, keys in mapped(_names, chunks):
        named[place] = keys
        tell("composing configurations", sum(map(len, named.values())), len(plan.configurations))
    return [keys for place in range(len(chunks)) for keys in named[place]]


def _names(specification: Specification, asked: _Naming) -> list[tuple[str, ...]]:
    return [
        tuple(network.key for network in _networks(specification, asked.plan, configuration, asked.plan.scenarios))
        for configuration in asked.configurations
    ]


@dataclasses.dataclass(frozen=True, slots=True)
class _Searching:
    plan: Plan
    configuration: Configuration
    scenarios: tuple[Scenario, ...]
    compiled: bool


def _search(mapped: _Map, plan: Plan, keys: Sequence[Sequence[str]], tell: Progress) -> dict[str, Outcome]:
    """The outcome of every network, by its name."""
    tasks, names = _tasks(plan, keys)
    outcomes: dict[str, Outcome] = {}
    total = sum(map(len, names))
    for place, found in mapped(_explore, tasks):
        outcomes.update(zip(names[place], found, strict=True))
        tell("searching", len(outcomes), total)
    return outcomes


def _tasks(plan: Plan, keys: Sequence[Sequence[str]]) -> tuple[list[_Searching], list[tuple[str, ...]]]:
    """One cell for each name, those of one configuration together; the large ones first, so that none is left over."""
    first: dict[str, tuple[int, int]] = {}
    for c, row in enumerate(keys):
        for s, key in enumerate(row):
            first.setdefault(key, (c, s))
    compiled, size = len(first) >= _COMPILED_FROM, _SEARCHES_A_TASK if plan.messages == 1 else 1
    without = dataclasses.replace(plan, configurations=())
    tasks, names = [], []
    for c, cells in itertools.groupby(first.items(), key=lambda item: item[1][0]):
        for chunk in _chunks([*cells], size):
            scenarios = tuple(plan.scenarios[s] for _, (_, s) in chunk)
            tasks.append(_Searching(without, plan.configurations[c], scenarios, compiled))
            names.append(tuple(key for key, _ in chunk))
    order = sorted(range(len(tasks)), key=lambda i: not tasks[i].configuration.resend_in_doubt)
    return [tasks[i] for i in order], [names[i] for i in order]


def _explore(specification: Specification, asked: _Searching) -> list[Outcome]:
    networks = _networks(specification, asked.plan, asked.configuration, asked.scenarios)
    return [_outcome(network, asked) for network in networks]


def _outcome(network: Reduced, asked: _Searching) -> Outcome:
    found = explore_packed(network.packed, network.events, max_states=asked.plan.max_states, compiled=asked.compiled)
    witnesses = {Anomaly(anomaly): tuple(event.label for event in steps) for anomaly, steps in found.witnesses.items()}
    return Outcome(found.states, found.transitions, found.complete, witnesses)


def _networks(
    specification: Specification, plan: Plan, configuration: Configuration, scenarios: Iterable[Scenario]
) -> Iterator[Reduced]:
    """What each scenario leaves of the configuration.

    Only the machine that pays for faults reads which may happen: it is composed with all of them, and
    the faults of the others are taken away.  Where tables read it elsewhere each scenario is composed.
    """
    shared = _only_the_budget_reads_faults(specification)
    composed: dict[object, Callable[[Callable[[NetworkEvent], bool]], Reduced]] = {}
    for scenario in scenarios:
        asked = dataclasses.replace(scenario, faults=tuple(Fault)) if shared else scenario
        if asked not in composed:
            composed[asked] = reduced(compose(specification, configuration, plan.bounds(asked)))
        yield composed[asked](functools.partial(_admits, scenario))


def _admits(scenario: Scenario, event: NetworkEvent) -> bool:
    return event.name not in set(Fault) or event.name in scenario.faults


def _only_the_budget_reads_faults(specification: Specification) -> bool:
    """Whether faults are read only by the rows that pay for them, each for its own: ``'broker_kill' in faults``."""
    if any("faults" in condition.settings() for condition in specification.conditions.values()):
        return False
    monitors = (monitor.machine for prop in specification.properties.values() for monitor in prop.monitors)
    machines = (*specification.machines.values(), *monitors)
    reading = ((m, row) for m in machines for row in m.rows() if "faults" in row.when.names())
    return all(row.event.name in machine.owns and _reads_its_own(row) for machine, row in reading)


def _reads_its_own(row: Row) -> bool:
    return {fault for fault in Fault if repr(fault.value) in row.when.text} == {row.event.name}


def _chunks(items: Sequence[Any], size: int) -> Iterator[tuple[Any, ...]]:
    return (tuple(items[start : start + size]) for start in range(0, len(items), size))
