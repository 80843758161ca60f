"""An exception of somebody else at any step of a run: nothing confirmed is lost, opening is not refused."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ackfsm.engine.journal import FileJournal, Journal, MemoryJournal, PostgresJournal, SqliteJournal
from ackfsm.terms import AckfsmError
from model_tests.support.journal.interrupts import Opened, alarmed, interrupted_at, steps_of
from model_tests.support.journal.postgres import server
from model_tests.support.journal.system_bugs import INTERRUPT_BUGS

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
"""What is interrupted between being opened and being known is closed when it is forgotten, and Python says so."""


@pytest.fixture
def folder() -> Iterator[Path]:
    memory = Path("/dev/shm")  # noqa: S108 - where there is one, syncs take no time
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with server() as name:
        yield name


def opening(kind: str, path: Path) -> Opened:
    """Opens a journal of this kind there."""

    def opened(journal: Journal | None) -> Journal:
        if kind == "file":
            return FileJournal(path, segment_bytes=400)
        if kind == "sqlite":
            return SqliteJournal(path)
        assert journal is None or isinstance(journal, MemoryJournal)
        return MemoryJournal() if journal is None else journal.kill()

    return opened


@pytest.mark.parametrize(("kind", "bytecodes", "every"), [
    ("file", False, 2), ("file", True, 23), ("sqlite", False, 5), ("sqlite", True, 61), ("memory", False, 1),
])  # fmt: skip
def test_an_interrupt_at_any_step_loses_nothing_confirmed(
    kind: str, every: int, folder: Path, *, bytecodes: bool
) -> None:
    opening(kind, folder / "first")(None).close()  # what happens once in a process is no part of a run
    steps = steps_of(opening(kind, folder / "counted"), bytecodes=bytecodes)
    assert steps > {"file": 500, "sqlite": 300, "memory": 200}[kind]
    ended = 0
    for number in range(1, steps + 1, every):
        interrupted, went_on = interrupted_at(number, opening(kind, folder / f"{number}"), bytecodes=bytecodes)
        assert interrupted
        ended += not went_on
    assert ended > steps / every / 2, "what is interrupted inside a call is dead"


def test_an_interrupt_at_steps_of_a_journal_in_postgres_loses_nothing_confirmed(dsn: str) -> None:
    def opening(number: int) -> Opened:
        return lambda _: PostgresJournal(dsn, f"interrupted {number}")

    steps = steps_of(opening(0))
    for number in range(1, steps + 1, 7):
        assert interrupted_at(number, opening(number))[0]


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_alarms_lose_nothing_confirmed(kind: str, folder: Path) -> None:
    for seed in range(6):
        confirmed, struck = alarmed(opening(kind, folder / f"{seed}"), seed, 10)
        assert struck >= 5
        assert len(confirmed.stored) > 10


@pytest.mark.parametrize("name", INTERRUPT_BUGS)
def test_a_journal_that_does_not_mind_interrupts_is_noticed(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, plant = INTERRUPT_BUGS[name]
    plant(monkeypatch)
    steps = steps_of(opening(kind, folder / "counted"))
    assert any(_noticed(number, opening(kind, folder / f"{number}")) for number in range(1, steps + 1))


def _noticed(number: int, opened: Opened) -> bool:
    try:
        interrupted_at(number, opened)
    except (AssertionError, AckfsmError):
        return True
    return False
