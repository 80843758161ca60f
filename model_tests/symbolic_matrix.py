"""Symbolic searches against searches state by state, over the matrix: ``python -m model_tests.symbolic_matrix``.

Every network of the matrix of every profile (one message and two; no fault, every single fault, and any single fault)
and the systems of the benchmark are searched in both ways.  States, transitions, verdicts and the lengths of witnesses
have to be the same, and the witnesses have to be ways there.  No search helps the other: the witnesses are found
backward, in decision diagrams.
Prints what was compared, and every difference; exit code 1 if there is one.  Two messages take hours.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ackfsm.checking.explore import SearchOptions, Slicer, SymbolicOptions, explore, explore_symbolically
from ackfsm.checking.network import Bounds, Network, NetworkEvent, compose
from ackfsm.surveys.matrix import make_plan
from ackfsm.terms import Configuration, Fault
from model_tests.benchmarks.explore import SYSTEMS
from model_tests.support.checker.plain_search import shows
from model_tests.support.tables import composed, shipped

__all__ = ["Cell", "benchmark_systems", "cells", "difference", "distinct"]


class Cell(NamedTuple):
    """One configuration with what may fail."""

    configuration: Configuration
    bounds: Bounds

    def __str__(self) -> str:
        return f"{self.configuration} {self.bounds}"


def cells(messages: int, profiles: Iterable[str] = ()) -> Iterator[Sequence[Cell]]:
    """Every configuration of the matrices of ``profiles`` (all), each with what may fail: nothing, one kind, any."""
    for profile in tuple(profiles) or sorted(shipped().profiles):
        plan = make_plan(shipped(), profile, messages=messages, pairs=False)
        failing = [plan.bounds(scenario) for scenario in plan.scenarios]
        failing.append(Bounds(messages=messages, faults=frozenset(Fault)))
        for configuration in plan.configurations:
            yield [Cell(configuration, bounds) for bounds in failing]


def distinct(matrix: Iterable[Sequence[Cell]], known: set[str] | None = None) -> Iterator[Cell]:
    """The first cell of each network that is not ``known`` yet: most leave the same of the machines as another."""
    known = set() if known is None else known
    for row in matrix:
        slicer = Slicer(compose(shipped(), row[-1].configuration, row[-1].bounds))
        for cell in row:
            key = slicer.slice(functools.partial(_admits, cell.bounds)).key
            if key not in known:
                known.add(key)
                yield cell


def _admits(bounds: Bounds, event: NetworkEvent) -> bool:
    return event.name not in set(Fault) or event.name in bounds.faults


def difference(network: Network) -> str | None:
    """How the two searches differ, ``None`` if they do not."""
    single = explore(network, SearchOptions(compiled=True))
    found = explore_symbolically(network, SymbolicOptions(witnesses=True))
    if not (single.complete and found.complete):
        return "a search stopped"
    expected, counted = (single.states, single.transitions), (found.states, found.transitions)
    if expected != counted:
        return f"states and transitions {expected} against {counted}"
    reached = {anomaly for anomaly, known in found.reachable.items() if known}
    if reached != set(single.witnesses):
        return f"anomalies {sorted(single.witnesses)} against {sorted(reached)}"
    near, backward = (
        {anomaly: len(steps) for anomaly, steps in witnesses.items()}
        for witnesses in (single.witnesses, found.witnesses)
    )
    if near != backward:
        return f"lengths {near} against {backward}"
    false = [anomaly for anomaly, steps in found.witnesses.items() if not shows(network, steps, anomaly)]
    return f"no way to {false}" if false else None


def benchmark_systems() -> dict[str, Network]:
    """The systems of ``model_tests.benchmarks.explore``, by name."""
    return {name: composed("jms", settings, **bounds) for name, (settings, bounds) in SYSTEMS.items()}


def _report(title: str, networks: Iterable[tuple[str, Network]]) -> int:
    """Print what comparing gives; the number of differences."""
    begun, compared, wrong = time.process_time(), 0, 0
    for name, network in networks:
        compared += 1
        if (told := difference(network)) is not None:
            wrong += 1
            sys.stdout.write(f"{name}: {told}\n")
    seconds = time.process_time() - begun
    sys.stdout.write(f"{title}: {compared:,} networks, {wrong} differences ({seconds:.0f} s)\n")
    sys.stdout.flush()
    return wrong


def main() -> int:
    """Compare everything, or the matrices of some profiles."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", action="append", default=[], help="the matrix of this profile alone")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth network alone (default: all)")
    parser.add_argument("--messages", type=int, action="append", choices=(1, 2), help="so many alone (default: both)")
    chosen = parser.parse_args()
    wrong = 0
    which = "" if chosen.every == 1 else f", of every {chosen.every} networks one"
    for messages in chosen.messages or (1, 2):
        known: set[str] = set()
        for profile in chosen.profile or sorted(shipped().profiles):
            matrix = list(cells(messages, [profile]))
            some = itertools.islice(distinct(matrix, known), 0, None, chosen.every)
            made = ((str(cell), compose(shipped(), *cell)) for cell in some)
            wrong += _report(f"{profile}, {sum(map(len, matrix)):,} cells, messages: {messages}{which}", made)
    if not chosen.profile:
        wrong += _report("benchmark", benchmark_systems().items())
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
