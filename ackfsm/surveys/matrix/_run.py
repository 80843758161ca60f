"""Explore a plan in several processes, each distinct network once.

First every configuration is composed, and what is left of it in each scenario gets a key (see
:class:`ackfsm.checking.explore.Slicer`).  Then one network of each key is searched.  Both are exact:
every cell has the states, transitions and witnesses that it has when checked on its own.
For any number of messages the key is of what decides then, and one configuration of each key is decided.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from ackfsm.checking.explore import SearchOptions, SlicedNetwork, Slicer, explore_packed
from ackfsm.checking.network import NetworkEvent, compose
from ackfsm.surveys.matrix._any_number import decided, keys_for_any_number
from ackfsm.surveys.matrix._plan import Plan, Scenario
from ackfsm.surveys.matrix._result import Matrix, Outcome
from ackfsm.tables import Row, Specification
from ackfsm.tables.batch import Batch, ParallelMap, ProgressBar, batch, chunks
from ackfsm.terms import Configuration, Fault

_COMPILED_FROM = 200
"""With so many searches it pays to load compiled code in every process (half a second each)."""

_CONFIGURATIONS_A_TASK = 8
_SEARCHES_A_TASK = 8

_Cell: TypeAlias = tuple[Configuration, Scenario]


def run(  # noqa: PLR0913 - where and how to do it
    plan: Plan,
    specification: Specification,
    *,
    jobs: int = 1,
    directory: Path | None = None,
    parallel_map: ParallelMap | None = None,
    progress_bar: ProgressBar | None = None,
) -> Matrix:
    """Explore every cell of ``plan`` in ``jobs`` processes (1: in this one), or wherever ``parallel_map`` does it.

    ``directory`` is where the tables were loaded from, so that other processes load the same.  Raises
    :class:`ackfsm.terms.HostError` if a process is killed, and :class:`ackfsm.terms.SpecError` if the tables there
    are not ``specification``.
    """
    begun = time.perf_counter()
    with batch(specification, jobs, directory=directory, parallel_map=parallel_map, progress_bar=progress_bar) as work:
        keys_of = keys_for_any_number if plan.messages is None else _canonical_keys
        task = functools.partial(keys_of, dataclasses.replace(plan, configurations=()))
        keys = work.run("composing configurations", task, chunks(plan.configurations, _CONFIGURATIONS_A_TASK))
        outcomes = _search(work, plan, keys)
    return Matrix(plan, specification, keys, outcomes, time.perf_counter() - begun)


def _canonical_keys(
    plan: Plan, specification: Specification, configurations: Sequence[Configuration]
) -> list[tuple[str, ...]]:
    """For each configuration the key of its network in every scenario."""
    return [
        tuple(network.key for network in _networks(specification, plan, configuration, plan.scenarios))
        for configuration in configurations
    ]


def _search(work: Batch, plan: Plan, keys: Sequence[Sequence[str]]) -> dict[str, Outcome]:
    """The outcome of every network, by its key."""
    first: dict[str, tuple[int, int]] = {}
    for c, row in enumerate(keys):
        for s, key in enumerate(row):
            first.setdefault(key, (c, s))
    groups = _groups(plan, first)
    cells = [[(plan.configurations[c], plan.scenarios[s]) for _, (c, s) in group] for group in groups]
    without = dataclasses.replace(plan, configurations=())
    if plan.messages is None:
        found = work.run("deciding", functools.partial(decided, without), cells)
    else:
        task = functools.partial(_outcomes, without, compiled=len(first) >= _COMPILED_FROM)
        found = work.run("searching", task, cells)
    return dict(zip((key for group in groups for key, _ in group), found, strict=True))


_Keyed: TypeAlias = tuple[str, tuple[int, int]]


def _groups(plan: Plan, first: dict[str, tuple[int, int]]) -> list[Sequence[_Keyed]]:
    """Return one cell for each key, cells of one configuration together, and the large searches first."""
    size = _SEARCHES_A_TASK if plan.messages == 1 else 1
    of_one = (list(cells) for _, cells in itertools.groupby(first.items(), key=lambda item: item[1][0]))
    groups = [group for cells in of_one for group in chunks(cells, size)]
    return sorted(groups, key=lambda group: not plan.configurations[group[0][1][0]].resend_in_doubt)


def _outcomes(plan: Plan, specification: Specification, cells: Sequence[_Cell], *, compiled: bool) -> list[Outcome]:
    """The outcomes of cells that share a configuration."""
    scenarios = [scenario for _, scenario in cells]
    networks = _networks(specification, plan, cells[0][0], scenarios)
    return [_outcome(network, plan.max_states, compiled=compiled) for network in networks]


def _outcome(network: SlicedNetwork, max_states: int | None, *, compiled: bool) -> Outcome:
    options = SearchOptions(max_states=max_states, compiled=compiled)
    found = explore_packed(network.packed, network.events, options)
    witnesses = {name: tuple(event.label for event in steps) for name, steps in found.witnesses.items()}
    return Outcome(found.states, found.transitions, found.complete, witnesses)


def _networks(
    specification: Specification, plan: Plan, configuration: Configuration, scenarios: Iterable[Scenario]
) -> Iterator[SlicedNetwork]:
    """What each scenario leaves of the configuration.

    Only the machine that counts faults reads which may happen: it is composed with all of them, and
    the faults of the others are taken away.  Where other tables read it each scenario is composed.
    """
    shared = only_the_budget_reads_faults(specification)
    composed: dict[object, Slicer] = {}
    for scenario in scenarios:
        composing = dataclasses.replace(scenario, faults=tuple(Fault)) if shared else scenario
        if composing not in composed:
            composed[composing] = Slicer(compose(specification, configuration, plan.bounds(composing)))
        yield composed[composing].slice(functools.partial(_admits, scenario))


def _admits(scenario: Scenario, event: NetworkEvent) -> bool:
    return event.name not in set(Fault) or event.name in scenario.faults


def only_the_budget_reads_faults(specification: Specification) -> bool:
    """Whether faults are read only by the rows that count them, each for its own: ``'broker_kill' in faults``."""
    if any("faults" in condition.settings() for condition in specification.conditions.values()):
        return False
    monitors = (monitor.machine for prop in specification.properties.values() for monitor in prop.monitors)
    machines = (*specification.machines.values(), *monitors)
    reading = [machine for machine in machines if any("faults" in when.names() for when in machine.conditions)]
    rows = ((machine, row) for machine in reading for row in machine.rows() if "faults" in row.when.names())
    return all(row.event.name in machine.owns and _reads_its_own(row) for machine, row in rows)


def _reads_its_own(row: Row) -> bool:
    return {fault for fault in Fault if repr(fault.value) in row.when.text} == {row.event.name}
