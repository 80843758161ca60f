"""Spin, on the exported Promela, finds the states, transitions and anomalies that ``ackfsm check`` finds."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ackfsm.checking.export import promela
from ackfsm.terms import AckMode, Consumption, DeliveryMode, Fault, Profile, SendMode
from model_tests.support.checker.exported import (
    ALL,
    COVERING,
    FEW,
    NAMES,
    Found,
    found,
    searched_by,
    shapes,
    system,
)
from model_tests.support.tables import composed
from model_tests.support.tools import missing
from model_tests.support.whole import before_a_release

SYSTEMS = searched_by("Spin")

spins = pytest.mark.usefixtures("spin")


@pytest.fixture(scope="module")
def spin() -> None:
    """Spin and the compiler for what it writes."""
    if lacking := [program for program in ("spin", "gcc") if shutil.which(program) is None]:
        missing(f"{' and '.join(lacking)} not installed (.ci/servers installs spin)")


def _run(*command: str, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _count(pattern: str, said: str) -> int:
    (count,) = re.findall(rf"^ *(\d+) {pattern}", said, re.MULTILINE)
    return int(count)


def _spin(model: str, folder: Path) -> Found:
    """What Spin finds in ``model``, by the commands of its head (but not optimised: these spaces are small)."""
    folder.mkdir()
    (folder / "model.pml").write_text(model, encoding="utf-8")
    _run("spin", "-o2", "-a", "model.pml", folder=folder)
    for name, *options in (("count", "-DNOCLAIM"), ("pan",)):
        _run("gcc", "-w", "-O0", "-DSAFETY", "-DNOREDUCE", *options, "-o", name, "pan.c", folder=folder)
    counted = _run("./count", "-m100000", "-w16", folder=folder)
    assert "errors: 0" in counted
    assert "max search depth too small" not in counted
    names = re.findall(r"^never p_(\w+)", model, re.MULTILINE)
    return Found(
        _count("states, stored", counted),
        _count("transitions", counted) - 1,
        frozenset(name for name in names if _happens(name, folder)),
    )


def _happens(name: str, folder: Path) -> bool:
    said = _run("./pan", "-m100000", "-w16", "-N", f"p_{name}", folder=folder)
    assert "max search depth too small" not in said
    return "errors: 0" not in said


@pytest.fixture(scope="module")
def by_spin(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Found]:
    """What Spin finds in each of its systems; two compilers at a time."""
    folder = tmp_path_factory.mktemp("spin")
    with ThreadPoolExecutor(2) as workers:
        searches = workers.map(lambda n: _spin(promela(system(n).network), folder / NAMES[n]), SYSTEMS)
        return dict(zip(SYSTEMS, searches, strict=True))


@spins
@pytest.mark.parametrize("number", SYSTEMS, ids=[NAMES[number] for number in SYSTEMS])
def test_spin_finds_the_same_states_transitions_and_anomalies(number: int, by_spin: dict[int, Found]) -> None:
    assert by_spin[number] == system(number).found


def test_the_systems_cover_every_mode_profile_and_fault() -> None:
    configurations = [system(number).network.configuration for number in FEW]
    bounds = [system(number).network.bounds for number in FEW]
    assert {one.ack_mode for one in configurations} == set(AckMode)
    assert {one.delivery_mode for one in configurations} == set(DeliveryMode)
    assert {one.profile for one in configurations} == set(Profile)
    assert {one.send_mode for one in configurations} == set(SendMode)
    assert {one.consumption for one in configurations} == set(Consumption)
    assert frozenset[Fault]().union(*(one.faults for one in bounds if one.max_faults != 0)) == set(Fault)
    assert {one.messages for one in bounds} == {1, 2}
    assert {one.max_faults for one in bounds} >= {0, 1, 2, None}


@before_a_release
def test_the_few_that_the_suite_takes_have_what_all_have() -> None:
    few, every = (frozenset[tuple[str, ...]]().union(*map(shapes, numbers)) for numbers in (COVERING, ALL))
    assert few == every


def test_most_anomalies_happen_in_some_system_and_none_in_all() -> None:
    """Otherwise agreement on verdicts would say little."""
    reached = [system(number).found.reachable for number in FEW]
    assert len(frozenset[str]().union(*reached)) >= 7
    assert not frozenset.intersection(*reached)


def _changes(model: str) -> Iterator[str]:
    """The model with one row changed: a step that leads elsewhere, a participant that does not refuse."""
    for old, new in (
        ("entry_m1 = ENTRY_READY; record_m1", "entry_m1 = ENTRY_REMOVED; record_m1"),
        ("may_confirmed_m1 (publisher_confirm_m1 == PUBLISHER_CONFIRM_IN_FLIGHT && ", "may_confirmed_m1 ("),
    ):
        assert model.count(old) == 1, old
        yield model.replace(old, new)


@spins
def test_a_changed_row_is_noticed(tmp_path: Path) -> None:
    network = composed()
    for number, changed in enumerate(_changes(promela(network))):
        assert _spin(changed, tmp_path / str(number)) != found(network)


def test_the_head_names_configuration_bounds_and_commands() -> None:
    head = promela(system(2).network).partition("*/")[0]
    for line in ("ack_mode = PRE_ACKNOWLEDGE", "max_faults = 2", "spin -o2 -a FILE", "ackfsm check"):
        assert line in head


def test_the_model_is_the_same_every_time() -> None:
    network = system(ALL[-1]).network
    assert promela(network) == promela(network)
