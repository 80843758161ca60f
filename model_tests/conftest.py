"""What all tests share: how Hypothesis runs, and what is not done twice."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
import pytest
from hypothesis import is_hypothesis_test, settings
from hypothesis.internal.conjecture import engine

from ackfsm.checking import explore
from model_tests.support.compiled_once import compiling_in_turn
from model_tests.support.tables import read_once
from model_tests.support.whole import WHOLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

    from model_tests.support.brokers import Lent

_TOGETHER = {
    "model_tests/html/test_command.py": "Spark",
    "model_tests/spark/": "Spark",
    "model_tests/docs/": "documentation",
    "model_tests/live/": "brokers",
    "model_tests/package/": "package",
    "model_tests/recorder/": "brokers",
}
"""Which files one worker takes: one Spark is started, and one broker of a kind, not one for each worker.  Scopes with
most tests are given out first, so that the few long tests of a folder do not begin when nothing else is left to do."""

_ALLOCATIONS = 20_000
"""After so many new objects the youngest are looked at: with Python's 700 it costs more where networks are kept."""

# No deadline: a first call may compile a kernel.  On CI (which sets CI) the examples are the same in every run.
_EXAMPLES = 100 if WHOLE else 30
settings.register_profile(
    "ackfsm", max_examples=_EXAMPLES, deadline=None, derandomize="CI" in os.environ, print_blob=True
)
settings.load_profile("ackfsm")
engine.MAX_SHRINKING_SECONDS = 60  # of a failing program; Hypothesis has five minutes for it


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many examples a campaign has of each test that draws them."""
    parser.addoption("--drawn", type=int, metavar="N", help="run the tests that draw, alone, with N examples each")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``--drawn`` the tests that draw, stateful ones among them, are those that run."""
    many = config.getoption("drawn")
    if many is None:
        return
    drawing = [item for item in items if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)]
    for item in drawing:
        owner, name = item.obj, "_hypothesis_internal_use_settings"
        if item.cls is not None and hasattr(item.cls, "settings"):
            owner, name = item.cls, "settings"
        setattr(
            getattr(owner, "__func__", owner),
            name,
            settings(getattr(owner, name), max_examples=many, derandomize=False),
        )
    config.hook.pytest_deselected(items=[item for item in items if item not in drawing])
    items[:] = drawing


def pytest_configure(config: pytest.Config) -> None:
    """Where neither the package nor the home can keep compiled code, it is kept as long as the tests run."""
    kept = (Path(explore.__file__).parent / "search" / "__pycache__", Path(platformdirs.user_cache_dir()))
    if "NUMBA_CACHE_DIR" not in os.environ and not any(map(_keeps, kept)):
        folder = tempfile.mkdtemp(prefix="ackfsm-tests-")
        os.environ["NUMBA_CACHE_DIR"] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Files are given to workers as ``--dist loadfile`` says, but some of them together."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return next((scope for begins, scope in _TOGETHER.items() if file.startswith(begins)), file)

    return Together(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Thousands of tests stay until the end: Python's collector of cycles does not look at them again and again."""
    gc.disable()
    try:
        yield
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(_ALLOCATIONS, *gc.get_threshold()[1:])
        gc.enable()


def _keeps(folder: Path) -> bool:
    """Whether a file of some size can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(1 << 20))
    except OSError:
        return False
    return True


@pytest.fixture(scope="session", autouse=True)
def no_waste() -> Iterator[None]:
    """Tables are read once; what is printed is as wide as it is without a terminal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        read_once(patch)
        yield


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The workers of one run compile each function once."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    with compiling_in_turn(tmp_path_factory.getbasetemp().parent / "compiling"):
        yield


@pytest.fixture(scope="session")
def lent() -> Iterator[Lent[Any]]:
    """The brokers that tests share; see :data:`model_tests.support.brokers.Lent`."""
    from model_tests.support.brokers import lending

    with lending() as lends:
        yield lends


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    """One for all tests; what they do is small, and a compiler that thinks longer costs more than it saves."""
    from ackfsm import spark

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1", prepend=" ")
        found = spark.session("local[2]")
    yield found
    found.stop()
