"""Runs of drawn systems, many in one history, and damage to them: ``make histories`` tries a million."""

from __future__ import annotations

import random

import pytest

from ackfsm.export import run_lines
from ackfsm.network import Bounds, Network, compose
from ackfsm.verify.conformance import messages as messages_
from model_tests.histories.campaign import tried
from model_tests.histories.damage import DAMAGES, damaged
from model_tests.histories.oracle import Line, Oracle
from model_tests.histories.walker import Walker
from model_tests.support.tables import shipped

SEED = 1
SYSTEMS = range(8)
RUNS = 40
WHATEVER_IS_HEARD = "missed: "


@pytest.mark.parametrize("number", SYSTEMS)
def test_legal_histories_pass_and_damaged_ones_do_not(number: int) -> None:
    found = tried(SEED, number, RUNS, damage=0.5)
    assert found.tally["runs"]
    assert not found.failures, found.failures[0]


def test_who_hears_nothing_misses_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages_, "contradiction", lambda *_: None)
    failures = tried(SEED, 4, RUNS, damage=1.0).failures
    assert any(WHATEVER_IS_HEARD in each for each in failures)


def network() -> Network:
    return compose(shipped(), shipped().configure("jms"), Bounds(messages=2))


def some_runs(count: int) -> list[list[Line]]:
    walker, draw = Walker(network()), random.Random("oracle")
    configuration = walker.network.configuration
    return [[*run_lines(shipped(), configuration, walker.run(draw), at_rest=True)] for _ in range(count)]


def test_the_oracle_knows_the_runs() -> None:
    oracle = Oracle(network())
    assert all(oracle.is_run(lines) for lines in some_runs(30))


@pytest.mark.parametrize("kind", [kind for kind in DAMAGES if kind != "move"])
def test_the_oracle_knows_damage(kind: str) -> None:
    oracle, draw = Oracle(network()), random.Random(kind)
    spoiled = [damaged(lines, kind, draw) for lines in some_runs(20)]
    assert not all(oracle.is_run(lines) for lines in spoiled)


def test_a_flag_that_is_not_heard_is_no_damage() -> None:
    oracle, draw = Oracle(network()), random.Random("flip")
    spoiled = [damaged(lines, "flip", draw) for lines in some_runs(10)]
    assert not any(oracle.is_run(lines) for lines in spoiled)
    assert all(oracle.is_run(lines, flags=False) for lines in spoiled)
