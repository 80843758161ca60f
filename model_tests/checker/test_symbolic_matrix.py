"""Symbolic searches against searches state by state, on a sample of what ``model_tests.symbolic_matrix`` compares."""

from __future__ import annotations

import random

import pytest

from ackfsm.checking.explore import SearchOptions, explore
from ackfsm.checking.network import compose
from model_tests.support.tables import shipped
from model_tests.support.whole import WHOLE, few
from model_tests.symbolic_matrix import Cell, benchmark_systems, cells, difference, distinct

OF_EACH_PROFILE = 3 if WHOLE else 1
SMALL = ("1 message", "2 messages", "a second copy, any faults")
"""Of the benchmark's systems those whose witnesses are found in seconds."""


@pytest.mark.parametrize("profile", sorted(shipped().profiles))
def test_one_message(profile: str) -> None:
    matrix = list(cells(1, [profile]))
    for row in random.Random(profile).sample(matrix, OF_EACH_PROFILE):
        cell = random.Random(profile).choice(row)
        assert difference(compose(shipped(), *cell)) is None, str(cell)


@pytest.mark.parametrize("profile", ["artemis", "jms", "rabbitmq"])
def test_two_messages(profile: str) -> None:
    drawing = random.Random(profile)
    matrix = list(cells(2, [profile]))
    while True:
        cell = drawing.choice(drawing.choice(matrix))
        network = compose(shipped(), *cell)
        if explore(network, SearchOptions(max_states=20_000, compiled=True)).complete:
            break
    assert difference(network) is None, str(cell)


@pytest.mark.parametrize("name", few(SMALL, 1))
def test_systems_of_the_benchmark(name: str) -> None:
    assert difference(benchmark_systems()[name]) is None


def test_cells_that_leave_the_same_of_the_machines_are_compared_once() -> None:
    rows = list(cells(1, ["rabbitmq"]))[:8]
    every = [cell for row in rows for cell in row]
    kept = list(distinct(rows))
    assert len(every) == 88
    assert 1 < len(kept) < len(every)
    counts = {explored(cell) for cell in every}
    assert {explored(cell) for cell in kept} == counts, "none is left out that finds something else"


def explored(cell: Cell) -> tuple[int, int, tuple[str, ...]]:
    found = explore(compose(shipped(), *cell), SearchOptions(compiled=True))
    return found.states, found.transitions, tuple(sorted(found.witnesses))
