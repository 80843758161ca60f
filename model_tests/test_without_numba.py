"""An installation without Numba and NumPy, as ``pip install ackfsm`` makes it: the same answers, in plain Python.

The rest of the suite has Numba, and mostly compiles from the first state.  Here nothing is patched: another interpreter
sees a folder of packages in which the extras are not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ackfsm.explore import _search

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("numba", "llvmlite", "numpy", "pandas", "pyarrow", "pyspark")
MAIN = "import sys; from ackfsm.cli import main; sys.exit(main())"

LARGE = ("--messages", "2", "--fault", "consumer_crash", "--set", "ack_mode=CLIENT_ACKNOWLEDGE")
"""More states than plain Python searches where there is compiled code."""

QUESTIONS = {
    "one message": ("--profile", "artemis"),
    "two messages": LARGE,
    "reduced": (*LARGE, "--reduce", "partial-order"),
    "every step": ("--reduce", "none", "--fault", "consumer_crash"),
    "what goes on for ever": (
        "--progress",
        "--forever",
        "listener_exception",
        "--fault",
        "listener_exception",
        "--max-faults",
        "any",
    ),
    "a limit": (*LARGE, "--max-states", "500"),
    "a limit of memory": (*LARGE, "--max-memory", "200000"),
}


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all packages but the extras."""
    folder = tmp_path_factory.mktemp("light")
    installed = Path(np.__file__).resolve().parent.parent
    for entry in installed.iterdir():
        if not entry.name.lower().startswith((*EXTRAS, "ackfsm")) and entry.suffix not in {".pth", ".dist-info"}:
            (folder / entry.name).symlink_to(entry)
    (folder / "ackfsm").symlink_to(ROOT / "ackfsm")
    (folder / "spec").symlink_to(ROOT / "spec")
    return folder


def _run(packages: Path | None, *words: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: with these packages alone, or with those of this one."""
    here = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(packages)!r}); {MAIN}"]
    command = [sys.executable, "-c", MAIN] if packages is None else here
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([*command, *words], capture_output=True, text=True, check=False, env=environment)


def _answer(packages: Path | None, words: tuple[str, ...]) -> tuple[int, dict[str, Any]]:
    done = _run(packages, "check", *words, "--json")
    assert not done.stderr
    return done.returncode, {key: value for key, value in json.loads(done.stdout).items() if key != "seconds"}


def test_the_extras_are_not_there(light: Path) -> None:
    script = f"import sys; sys.path.insert(0, {str(light)!r}); import ackfsm.explore; import numba"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
    assert "No module named 'numba'" in done.stderr


@pytest.mark.parametrize("words", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_answers_are_the_same_without_numba(words: tuple[str, ...], light: Path) -> None:
    plain, compiled = _answer(light, words), _answer(None, words)
    if "--max-memory" not in words:  # a number takes more memory in plain Python
        assert plain == compiled
    assert plain[0] == compiled[0]
    assert plain[1]["complete"] == compiled[1]["complete"] == (not {"--max-states", "--max-memory"} & {*words})


def test_the_large_question_is_compiled_where_it_can_be(light: Path) -> None:
    assert _answer(light, LARGE)[1]["states"] > _search.Pace().plain_states
    assert "compiled" in _run(None, "check", *LARGE).stdout
    assert "plain Python" in _run(light, "check", *LARGE).stdout


def test_what_needs_an_extra_says_which(light: Path) -> None:
    done = _run(light, "verify", "history.jsonl")
    assert done.returncode == 2
    assert "this needs the Python package " in done.stderr
    assert "; install it with pip install 'ackfsm[all]'\n" in done.stderr
