"""An installation without Numba, and one without NumPy too: plain Python all the way gives the same answers.

The environment is a real one: an interpreter that sees every installed package but those that are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ackfsm import cli
from model_tests.support.places import PROJECT
from model_tests.support.whole import few

NUMBA = ("numba", "llvmlite")
HEAVY = (*NUMBA, "numpy", "pandas", "pyarrow", "pyspark")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module", params=[NUMBA, HEAVY], ids=["without Numba", "the core alone"])
def without(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs Python where these packages are not installed."""
    packages = tmp_path_factory.mktemp("packages")
    for package in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not package.name.startswith(request.param) and package.suffix != ".pth":
            (packages / package.name).symlink_to(package)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(PROJECT), str(packages)])}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-S", *arguments], capture_output=True, text=True, check=False, env=environment
        )

    return run


def test_numba_is_really_missing(without: Run) -> None:
    done = without("-c", "import ackfsm.checking.explore, yaml, numba")
    assert "ModuleNotFoundError: No module named 'numba'" in done.stderr


@pytest.mark.parametrize(
    "line",
    few(
        [
            "check --json --fault consumer_crash",
            "check --json --messages 2",
            "check --json --reduce none --progress --fault consumer_crash",
            "check --json --messages 2 --reduce partial-order",
            "check --json --messages 15 --fault producer_link_loss --max-faults 16 --without accept",
            "check --json --messages 2 --max-states 5000",
        ],
        2,
    ),
)
def test_plain_python_gives_the_same_answers(without: Run, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = without("-m", "ackfsm.cli", *line.split())
    assert done.stderr == ""
    code = cli.main(line.split())
    assert code == done.returncode
    assert _answer(done.stdout) == _answer(capsys.readouterr().out)


def _answer(text: str) -> dict[str, Any]:
    told = json.loads(text)
    if not told["complete"]:  # where a limit is met depends on how much is done at a time
        told = {key: told[key] for key in ("config", "complete", "stopped_by")}
    return {key: value for key, value in told.items() if key != "seconds"}


def test_plain_python_says_that_it_is_slow_where_that_matters(without: Run) -> None:
    many = without("-m", "ackfsm.cli", "check", "--messages", "2").stdout
    assert "plain Python, slowly, for want of Numba: pip install 'ackfsm[explore]'" in " ".join(many.split())
    few = without("-m", "ackfsm.cli", "check", "--fault", "consumer_crash").stdout
    assert "plain Python)" in few


def test_a_rate_rests_on_arithmetic_alone_where_nothing_can_be_simulated(without: Run) -> None:
    told = json.loads(without("-m", "ackfsm.cli", "claims", "--json", "--jobs", "1", "--id", "C48").stdout)
    assert told[0]["status"] == "proved"
    blocking = told[0]["evidence"]["checks"][0]
    if without("-c", "import numpy").returncode == 0:
        assert blocking["sentence"].endswith("simulated 4,000.0 (artemis)")
    else:
        assert blocking["sentence"].endswith("by arithmetic alone: to simulate it too, pip install 'ackfsm[explore]'")
        assert blocking["simulated"] is None


def test_a_plan_needs_no_numpy_and_a_simulation_names_what_it_needs(without: Run) -> None:
    assert without("-m", "ackfsm.cli", "plan").returncode == 0
    done = without("-m", "ackfsm.cli", "plan", "--simulate", "50")
    if without("-c", "import numpy").returncode == 0:
        assert done.returncode == 0
    else:
        assert done.returncode == 2
        assert "this needs the Python package numpy; install it with pip install 'ackfsm[explore]'" in done.stderr
