"""Compiled code is kept where it can be, believed only if it is whole, and done without where nothing can be kept."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from ackfsm.support.numba_cache import CacheWarning, cache_of, compiled, compiled_functions
from model_tests.support.commands import AS_PROMISED, ended, environment
from model_tests.support.places import SPEC
from model_tests.support.tables import to_be_changed
from model_tests.support.whole import WHOLE, before_a_release, few, in_turn

TOY = """
def add(a, b):
    return a + b
"""


class _Toy:
    """A small function in a file of its own, compiled as the kernel is."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "toy.py"
        self.file.write_text(TOY, encoding="utf-8")
        self.kept = folder / "kept"

    def compiled(self) -> Any:
        spec = importlib.util.spec_from_file_location("toy", self.file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["toy"] = module  # Numba imports it again for what is kept, once what was compiled is collected
        spec.loader.exec_module(module)
        return compiled(module.add)

    def run(self) -> bool:
        """Whether the function was there already; its result is right either way."""
        made = self.compiled()
        assert made(2, 3) == 5
        return bool(made.stats.cache_hits)

    def only(self, ending: str) -> Path:
        (file,) = self.kept.rglob(f"*{ending}")
        return file


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Toy:
    made = _Toy(tmp_path)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(made.kept))
    monkeypatch.setitem(sys.modules, "toy", sys)  # which is taken back at the end
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python 3.11.2 believes its own file that a full disk cut
    return made


def test_what_is_compiled_is_kept(toy: _Toy) -> None:
    assert not toy.run()
    assert toy.run()
    assert toy.only(".nbi").is_file()
    assert toy.only(".nbc").is_file()


def test_what_calls_a_function_of_another_file_is_compiled_again_when_that_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numba compiles the called function into the caller, and kept that where the file of the caller was as before."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "caller.py").write_text("from callee import number\n\ndef twice():\n    return 2 * number()\n")

    def twice(number: int | None) -> tuple[int, bool]:
        if number is not None:
            (tmp_path / "callee.py").write_text(f"def number():\n    return {number}\n")
        for name in ("callee", "caller"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        made = compiled_functions(importlib.import_module("callee"), importlib.import_module("caller")).twice
        return made(), bool(made.stats.cache_hits)

    assert twice(3) == (6, False)
    assert twice(3000) == (6000, False)
    assert twice(None) == (6000, True)


@pytest.mark.parametrize("kernel", ["search", "symbolic"])
def test_the_kernel_is_kept_so(kernel: str) -> None:
    """What ``ackfsm.support.numba_cache`` relies on is there in this Numba."""
    made = importlib.import_module(f"ackfsm.checking.explore.{kernel}.compiled")
    function = made.rehash_visited if kernel == "search" else made.rehash_nodes
    assert type(function._cache).__module__ == cache_of.__module__  # noqa: SLF001 - this very thing
    plain: Any = numba.njit(_Toy.compiled)
    assert type(plain._cache).__name__ == "NullCache"  # noqa: SLF001 - this is what is replaced


def test_a_call_counts_references_to_its_arrays_only_where_arrays_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting takes twice as long as a search itself, and a process without memory for the counters dies."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.syspath_prepend(str(tmp_path))
    makes = "def double(numbers):\n    more = numbers.copy()\n    more += numbers\n    return more\n"
    calls = "def last(numbers):\n    return double(numbers)[-1]\n"
    fills = "def fill(numbers):\n    numbers[0] = 7\n    return numbers[0]\n"
    (tmp_path / "filling.py").write_text(makes + calls + fills)
    functions = compiled_functions(importlib.import_module("filling"))

    def counts(function: Any, returned: object) -> bool:
        assert np.all(function(np.array([1, 2])) == returned)
        return "NRT_adapt_ndarray_from_python" in "".join(function.inspect_llvm().values())

    assert not counts(functions.fill, 7)
    assert counts(functions.double, [2, 4])
    assert counts(functions.last, 4)


@pytest.mark.parametrize(
    ("ending", "left"),
    in_turn([".nbi", ".nbc"], [b"", b"\x80\x04", b"no pickle", b"\x80\x04K\x01.\x80\x04K\x02."], 1),
)
def test_a_damaged_file_is_replaced(toy: _Toy, ending: str, left: bytes) -> None:
    toy.run()
    toy.only(ending).write_bytes(left)
    assert not toy.run()
    assert toy.run()


@pytest.mark.parametrize("place", few([0.1, 0.3, 0.5, 0.7, 0.9], 2))
def test_a_single_bit_of_machine_code_that_is_wrong_is_noticed(toy: _Toy, place: float) -> None:
    toy.run()
    file = toy.only(".nbc")
    data = bytearray(file.read_bytes())
    data[int(len(data) * place)] ^= 4
    file.write_bytes(data)
    assert not toy.run()
    assert toy.run()


def test_a_file_that_cannot_be_read_is_done_without(toy: _Toy) -> None:
    """A folder in its place, which no user can read as a file."""
    toy.run()
    index = toy.only(".nbi")
    index.unlink()
    index.mkdir()
    with pytest.warns(CacheWarning, match="compiled code cannot be kept .*Is a directory.*set NUMBA_CACHE_DIR"):
        assert not toy.run()


@contextlib.contextmanager
def _full() -> Iterator[None]:
    """No file may have more than 100 bytes: a disk that is full, for every user and on every file system."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_full_disk_costs_nothing_but_time(toy: _Toy) -> None:
    with pytest.warns(CacheWarning, match="compiled code cannot be kept .*File too large"), _full():
        assert not toy.run()
    assert not toy.run()
    assert toy.run()


def _without_a_place(package: Path, home: Path) -> None:
    """Files where folders for compiled code would have to be made: not even root can."""
    (package / "__pycache__").write_text("", encoding="utf-8")
    home.write_text("", encoding="utf-8")


def test_without_a_folder_nothing_is_kept(toy: _Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _without_a_place(tmp_path, tmp_path / "home")
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "caches"))
    with pytest.warns(CacheWarning, match=r"cannot be kept \(neither the folder .*\), so it takes longer; set NUMBA_C"):
        assert not toy.run()


@pytest.fixture
def elsewhere(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A copy of the package beside which nothing can be kept, for a user who has no place either."""
    copy = tmp_path / "copy"
    to_be_changed(SPEC.parent / "ackfsm", copy / "ackfsm")
    (copy / "spec").symlink_to(SPEC)
    _without_a_place(copy / "ackfsm" / "checking" / "explore" / "search", tmp_path / "home")
    caches = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home" / "caches")}
    return copy, {**environment(PYTHONPATH=str(copy), **caches), "NUMBA_CACHE_DIR": ""}


EXPLORED = ["check", "--fault", "rejection"]
SAID = (
    "note: compiled code cannot be kept (neither the folder of this package nor that of the user's caches can be "
    "written), so it takes longer; set NUMBA_CACHE_DIR to a folder that can be written\n"
)
LOADING = """
import sys
from ackfsm import tables
from ackfsm.cli import main
load = tables.load
def compiled(*given):
    from ackfsm.support import numba_cache
    from ackfsm.checking.explore.search import kernel
    numba_cache.cache_of(kernel.rehash_local_states)
    numba_cache.cache_of(kernel.expand)
    return load(*given)
tables.load = compiled
sys.exit(main())
"""
"""Looks for a place for what would be compiled, and compiles nothing, which would take a while."""


def test_a_command_says_it_once_and_goes_on(elsewhere: tuple[Path, dict[str, str]]) -> None:
    copy, env = elsewhere
    done = ended(*EXPLORED, program=[sys.executable, "-c", LOADING], env=env, cwd=copy)
    assert (done.code, done.err) == (AS_PROMISED, f"ackfsm check: {SAID}")


WORKING = """
import sys
from ackfsm.surveys.claims import _run
from ackfsm.cli import main

def answer(*given, **named):
    from ackfsm.support import numba_cache
    from ackfsm.checking.explore.search import kernel
    numba_cache.cache_of(kernel.rehash_local_states)
    from ackfsm.surveys.claims._questions import answer
    return answer(*given, **named)

if __name__ == "__main__":
    _run.answer = answer
    sys.exit(main())
"""


@before_a_release
def test_workers_do_not_say_it_again(elsewhere: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    copy, env = elsewhere
    program = tmp_path / "program.py"
    program.write_text(WORKING, encoding="utf-8")
    line = ["claims", "--id", "C31", "--jobs", "2"]
    done = ended(*line, program=[sys.executable, str(program)], env=env, cwd=copy)
    assert (done.code, done.err) == (AS_PROMISED, f"ackfsm claims: {SAID}")


def _other_user() -> list[str]:
    """What runs a command as a user who may read everything and write nothing; nothing if that is this one."""
    if os.getuid() != 0:
        return []
    line = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    line += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    program = shutil.which("setpriv")
    if program is None or subprocess.run([program, *line[1:], "true"], check=False, capture_output=True).returncode:
        pytest.skip("root needs setpriv to be somebody else")
    return [program, *line[1:]]


@pytest.mark.slow
def test_a_read_only_installation_and_no_home_are_enough(tmp_path: Path) -> None:
    """Before a release all of the kernel is compiled, in vain: some twenty seconds."""
    copy = tmp_path / "copy"
    to_be_changed(SPEC.parent / "ackfsm", copy / "ackfsm")
    (copy / "spec").symlink_to(SPEC)
    for folder in (copy, *(path for path in copy.rglob("*") if path.is_dir() and not path.is_symlink())):
        folder.chmod(0o555)
    env = {key: value for key, value in environment().items() if key not in {"NUMBA_CACHE_DIR", "XDG_CACHE_HOME"}}
    env |= {"HOME": "/nonexistent", "PYTHONPATH": str(copy)}
    line, program = (["check", "--max-faults", "2"], ["-m", "ackfsm.cli"]) if WHOLE else (EXPLORED, ["-c", LOADING])
    done = ended(*line, program=[*_other_user(), sys.executable, *program], env=env, cwd="/")
    assert (done.code, done.err) == (AS_PROMISED, f"ackfsm check: {SAID}")
    for folder in copy.rglob("*"):  # so that they can be removed
        if folder.is_dir() and not folder.is_symlink():
            folder.chmod(0o755)
