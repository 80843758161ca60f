"""Journals and forks: a fork is refused at once and harms nothing; a lock ends with the journal that has it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ackfsm.engine.journal import FileJournal, Journal, JournalFailure, Kind, PostgresJournal, SqliteJournal
from ackfsm.terms import InputError
from model_tests.journal.test_full_disk import kept
from model_tests.support.journal.postgres import server
from model_tests.support.journal.system_bugs import FORK_BUGS
from model_tests.support.places import PROJECT

PROGRAM = [sys.executable, "-m", "model_tests.support.journal.fork"]


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with server() as name:
        yield name


@pytest.fixture(params=["file", "sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Journal]:
    """Opens one and the same journal."""
    if request.param == "postgres":
        dsn, name = request.getfixturevalue("dsn"), tmp_path.name
        return lambda: PostgresJournal(dsn, name)
    return lambda: (FileJournal if request.param == "file" else SqliteJournal)(tmp_path / "journal")


def in_a_fork(doing: Callable[[], str]) -> str:
    """What a fork of this process says."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = doing()
        except BaseException as error:  # noqa: BLE001 - it is told
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        said = told.read()
    os.waitpid(child, 0)
    return said


CALLS: dict[str, Callable[[Journal], object]] = {
    "append": lambda journal: journal.append(Kind.STORE, 9),
    "write": lambda journal: journal.write(),
    "sync": lambda journal: journal.sync(),
    "compact": lambda journal: journal.compact(),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_fork_is_refused_at_once_and_the_parent_goes_on(opened: Callable[[], Journal], call: str) -> None:
    journal = opened()
    kept(journal, 1)
    journal.append(Kind.STORE, 2, b"copy")

    def refused() -> str:
        with pytest.raises(JournalFailure) as failure:
            CALLS[call](journal)
        journal.close()
        return str(failure.value)

    said = in_a_fork(refused)
    assert f"process {os.getpid()} has it open, and this process is a fork of that" in said
    assert "\n" not in said
    kept(journal, 3)
    journal.close()
    again = opened()
    assert list(again.recovery.live) == [1, 2, 3]
    again.close()


def test_a_fork_that_forgets_the_journal_or_opens_another_leaves_it_to_the_parent(
    opened: Callable[[], Journal], tmp_path: Path
) -> None:
    journals = [opened()]
    kept(journals[0], 1)

    def forgets() -> str:
        journals.clear()
        other = FileJournal(tmp_path / "other")
        kept(other, 7)
        other.close()
        try:
            opened().close()
        except Exception as error:  # noqa: BLE001 - it is told
            return str(error)
        return "opened"

    assert "in use" in in_a_fork(forgets)
    kept(journals[0], 2)
    journals[0].close()
    again = opened()
    assert list(again.recovery.live) == [1, 2]
    again.close()


def test_a_journal_that_is_closed_is_free_while_a_fork_lives(opened: Callable[[], Journal]) -> None:
    journal = opened()
    kept(journal, 1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)  # until the parent lets it end
        os._exit(0)
    os.close(read)
    try:
        journal.close()
        again = opened()
        assert list(again.recovery.live) == [1]
        again.close()
    finally:
        os.close(write)
        os.waitpid(child, 0)


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_a_journal_whose_process_was_killed_is_free_while_a_fork_of_it_lives(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with subprocess.Popen([*PROGRAM, kind, path, "stay"], cwd=PROJECT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            parent.kill()
            parent.wait()
            os.kill(child, 0)
            journal = (FileJournal if kind == "file" else SqliteJournal)(path)
            assert list(journal.recovery.live) == [1]
            journal.close()
        finally:
            os.kill(child, signal.SIGKILL)
            assert select.select([parent.stdout], [], [], 10)[0]


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_the_end_of_a_fork_takes_nothing_from_its_parent(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    subprocess.run([*PROGRAM, kind, path, "end"], cwd=PROJECT, check=True, capture_output=True)
    journal = (FileJournal if kind == "file" else SqliteJournal)(path)
    assert list(journal.recovery.live) == [1, 2], "both were confirmed, one while the fork was there, one after it"
    journal.close()


@pytest.mark.parametrize("name", FORK_BUGS)
def test_a_journal_that_does_not_mind_forks_is_noticed(name: str, tmp_path: Path) -> None:
    kind, _ = FORK_BUGS[name]
    path = tmp_path / "journal"
    subprocess.run([*PROGRAM, kind, path, "end", name], cwd=PROJECT, check=False, capture_output=True)
    assert path.exists(), "the program has not begun"
    try:
        journal = (FileJournal if kind == "file" else SqliteJournal)(path)
    except InputError:
        return
    found = list(journal.recovery.live)
    journal.close()
    assert found != [1, 2]
