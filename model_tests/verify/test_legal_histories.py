"""Runs of drawn systems, many in one history, and damage to them: ``make histories`` tries a million."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ackfsm import verify
from ackfsm.checking.export import run_lines
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.tables import Specification
from ackfsm.terms import AckMode, Configuration, Fault, InputError, Profile
from ackfsm.verify.conformance import messages as messages_
from model_tests.histories.campaign import is_drained, tried
from model_tests.histories.composite import laid_out, write
from model_tests.histories.damage import DAMAGES, damaged
from model_tests.histories.oracle import Line, Oracle
from model_tests.histories.walker import Walker
from model_tests.support.tables import shipped, values
from model_tests.support.whole import few

SEED = 1
SYSTEMS = range(8)
RUNS = 40
WHATEVER_IS_HEARD = "missed: "


@pytest.mark.parametrize("number", few(SYSTEMS, 4))
def test_legal_histories_pass_and_damaged_ones_do_not(number: int) -> None:
    found = tried(SEED, number, RUNS, damage=0.5)
    assert found.tally["runs"]
    assert not found.failures, found.failures[0]


def test_who_hears_nothing_misses_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages_, "contradiction", lambda *_: None)
    failures = tried(SEED, 4, RUNS, damage=1.0).failures
    assert any(WHATEVER_IS_HEARD in each for each in failures)


FREE = ("delivery_mode", "send_mode", "consumption")
ACTIONS = ("recover", "rollback", "consumer_close")


def every_mode(profile: Profile) -> Iterator[Configuration]:
    """Of each acknowledgement mode that the profile has one configuration: what else it says is drawn."""
    draw = random.Random(f"modes of {profile}")
    for mode in AckMode:
        legal = [*_legal(profile, mode)]
        if legal:
            yield draw.choice(legal)


def _legal(profile: Profile, mode: AckMode) -> Iterator[Configuration]:
    for chosen in itertools.product(*map(values, FREE)):
        with contextlib.suppress(InputError):
            yield shipped().configure(profile, {"ack_mode": mode, **dict(zip(FREE, chosen, strict=True))})


def round_trip(configuration: Configuration, folder: Path, writer: Specification) -> verify.Explanation:
    """What comes of holding to the model what the recording table of ``writer`` writes of runs of one message."""
    bounds = Bounds(faults=frozenset(Fault), max_faults=2, actions=frozenset(ACTIONS))
    walker, draw = Walker(compose(shipped(), configuration, bounds, observers=())), random.Random("round trip")
    runs = (walker.run(draw) for _ in range(RUNS // 2))
    lines = [run_lines(writer, configuration, run, at_rest=is_drained(walker.network, run)) for run in runs]
    file = folder / "history.jsonl"
    write(file, configuration, laid_out(lines, draw))
    said = verify.examine(verify.read(file), shipped(), configuration, tells_processed=True).explanation
    assert said is not None
    return said


@pytest.mark.parametrize("profile", list(Profile))
def test_what_the_table_writes_of_a_run_is_one(profile: Profile, tmp_path: Path) -> None:
    for configuration in few([*every_mode(profile)], 3, profile):
        said = round_trip(configuration, tmp_path, shipped())
        assert said.messages == RUNS // 2
        assert not said.contradicted, (configuration, said.examples)
        assert not said.undecided, configuration


@pytest.mark.parametrize(
    ("sign", "changed"),
    [
        ("rejected", {"line": "confirmed"}),
        ("in_doubt", {"line": "confirmed"}),
        ("commit", {"line": "rollback"}),
        ("delivered", {"fields": {"redelivered": (True,)}}),
        ("delivered, flagged", {"fields": {"redelivered": (False,)}}),
        ("processed", {"leaving": 0}),
        ("acknowledge", {"leaving": 0}),
        ("consumer's commit", {"line": "rollback"}),
    ],
)
def test_a_row_that_writes_something_else_makes_no_run(sign: str, changed: Mapping[str, Any], tmp_path: Path) -> None:
    recording = shipped().recording
    signs = {**recording.signs, sign: dataclasses.replace(recording.signs[sign], **changed)}
    writer = dataclasses.replace(shipped(), recording=dataclasses.replace(recording, signs=signs))
    assert any(round_trip(each, tmp_path, writer).contradicted for each in every_mode(Profile.ARTEMIS))


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
