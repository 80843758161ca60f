"""Very many programs: ``python -m model_tests.applications --programs 100000 --seed 1 --jobs 2``.

Program ``number`` of a seed is always the same: ``--seed 1 --only 4711`` runs it again alone, shrinks it and prints it
as Python.  Ends with 1 if a program fails of what is not known, or performs what is taken for impossible.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import time
from collections.abc import Iterator

from model_tests.applications.known import known
from model_tests.applications.programs import Chance, Program, houses, program
from model_tests.applications.reports import Failure
from model_tests.applications.runs import perform
from model_tests.applications.shrinking import shrunk
from model_tests.applications.statistics import Statistics
from model_tests.applications.testbed import Molds

__all__ = ["drawn", "main", "run_many", "shrink"]

CHUNK = 2_500
"""So many programs share their systems: what an engine has learnt of one is of use to the next."""

HOUSES = 45


def drawn(seed: int, number: int, systems: int = HOUSES) -> Program:
    """Program ``number`` of a seed, on one of so many systems."""
    return program(Chance(f"{seed} {number}"), houses(seed * 1_000_003 + number // CHUNK, systems))


def kind_of(failure: Failure) -> str:
    """Failures of one kind differ in names and numbers alone."""
    return failure.judge + re.sub(r"\b[a-z]{0,2}\d+\S*", "#", failure.text.partition("\n")[0])[:60]


def shrink(failing: Program, failure: Failure, molds: Molds) -> Program:
    """A smaller program that fails in the same way."""

    def fails(candidate: Program) -> bool:
        try:
            found = perform(candidate, molds).failure
        except AssertionError:
            return False  # it is none: its system has no such mode
        if found is None or kind_of(found) != kind_of(failure):
            return False
        return known(candidate, found) is known(failing, failure)

    return shrunk(failing, fails)


def run_many(
    seed: int, numbers: range, *, thorough: bool = False, systems: int = HOUSES
) -> tuple[Statistics, list[tuple[int, str, str]]]:
    """Run these; the statistics, and of each failure its number, the known defect that it is, and what it says."""
    statistics, failures, molds = Statistics(), list[tuple[int, str, str]](), Molds(thorough=thorough)
    for number in numbers:
        made = drawn(seed, number, systems)
        report = perform(made, molds)
        statistics.add(report)
        if report.failure is not None:
            its = known(made, report.failure)
            failures.append((number, its.name if its else "", str(report.failure)))
    return statistics, failures


def _chunk(asked: tuple[int, range, bool]) -> tuple[Statistics, list[tuple[int, str, str]]]:
    seed, numbers, thorough = asked
    return run_many(seed, numbers, thorough=thorough)


def _all(asked: argparse.Namespace) -> Iterator[tuple[Statistics, list[tuple[int, str, str]]]]:
    starts = range(0, asked.programs, CHUNK)
    chunks = [(asked.seed, range(at, min(at + CHUNK, asked.programs)), asked.thorough) for at in starts]
    if asked.jobs == 1:
        yield from map(_chunk, chunks)
        return
    with multiprocessing.get_context("spawn").Pool(asked.jobs, maxtasksperchild=5) as pool:
        yield from pool.imap_unordered(_chunk, chunks)


def _again(seed: int, number: int, *, thorough: bool) -> int:
    made, molds = drawn(seed, number), Molds(thorough=thorough)
    failure = perform(made, molds).failure
    if failure is None:
        print(f"{made}\npasses")  # noqa: T201 - this is its work
        return 0
    small = shrink(made, failure, molds)
    its = known(made, failure)
    print(f"{small}\n{perform(small, molds).failure}\nknown as {its}" if its else f"{small}\n{failure}")  # noqa: T201 - as above
    return 0 if its else 1


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m model_tests.applications", description=__doc__)
    parser.add_argument("--programs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", type=int, help="run this program alone, shrink it and print it")
    parser.add_argument(
        "--thorough", action="store_true", help="search the tables for what nobody promises absent, too"
    )
    asked = parser.parse_args(arguments)
    if asked.only is not None:
        return _again(asked.seed, asked.only, thorough=asked.thorough)
    began, statistics, first = time.monotonic(), Statistics(), dict[str, tuple[int, float, str]]()
    counted: dict[str, int] = {}
    for more, failures in _all(asked):
        statistics.merge(more)
        for number, name, said in failures:
            kind = name or said.partition("\n")[0][:100]
            counted[kind] = counted.get(kind, 0) + 1
            first.setdefault(kind, (number, time.monotonic() - began, "" if name else said))
    print(statistics)  # noqa: T201 - as above
    seconds = time.monotonic() - began
    print(f"{statistics.runs:,} programs in {seconds:,.0f} s ({statistics.runs / seconds:.1f}/s)")  # noqa: T201 - as above
    for kind, (number, after, said) in sorted(first.items(), key=lambda pair: bool(pair[1][2])):
        label = f"NEW {said}" if said else f"known {kind}"
        print(f"{counted[kind]:6,} x, first --seed {asked.seed} --only {number} (after {after:.0f} s): {label}")  # noqa: T201 - as above
    stale = statistics.stale()
    if stale:
        print(f"performed, and no exceptions any more: {', '.join(stale)}")  # noqa: T201 - as above
    return int(bool(stale) or any(said for _, _, said in first.values()))
