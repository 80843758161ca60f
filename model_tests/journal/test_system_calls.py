"""The system calls of journals, as they are made: nothing is confirmed before it, and its name, is synced."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ackfsm.driving.live.faults.power import Call, Kind, Recording
from ackfsm.engine.journal import SqliteJournal
from model_tests.support.journal.program import PROGRAMS
from model_tests.support.journal.system_bugs import REAL_BUGS
from model_tests.support.journal.system_calls import confirmed, recorded, violations
from model_tests.support.places import PROJECT
from model_tests.support.tools import missing


@pytest.fixture
def found(tmp_path: Path) -> Callable[[str, str | None], list[str]]:
    """Runs a program with a bug or without, and tells what its calls violate."""
    if not any(map(shutil.which, ("cc", "gcc"))):
        missing("there is no compiler of C; install one with: apt-get install gcc")

    def run(program: str, bug: str | None = None) -> list[str]:
        folder = tmp_path / "folder"
        folder.mkdir()
        recording = Recording(folder, tmp_path / "notes")
        command: list[str | Path] = [sys.executable, "-m", "model_tests.support.journal.program", program, folder]
        environment = {**os.environ, **recording.environment}
        done = subprocess.run(
            [*command, *([bug] if bug else [])],
            check=True,
            cwd=PROJECT,
            capture_output=True,
            text=True,
            env=environment,
        )
        assert not recording.unseen() + recording.differences()
        return violations(confirmed(done.stdout, recording.calls()), folder)

    return run


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_real_calls_sync_before_they_confirm(program: str, found: Callable[[str], list[str]]) -> None:
    assert not found(program)


@pytest.mark.parametrize(
    "name", ["sync does nothing", *(name for name, bug in REAL_BUGS.items() if not bug.in_process)]
)
def test_a_bug_below_the_journal_is_seen_in_its_real_calls(name: str, found: Callable[[str, str], list[str]]) -> None:
    assert found(REAL_BUGS[name].program, name)


def observed(program: str, folder: Path, patch: pytest.MonkeyPatch) -> list[str]:
    """The same in this process: through a wrapped ``os``, whose calls are made."""
    calls = recorded(patch)
    PROGRAMS[program](folder, calls.append)
    patch.undo()
    return violations(calls, folder)


@pytest.mark.parametrize("program", ["file", "engine"])
def test_the_calls_through_the_module_os_sync_before_they_confirm(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not observed(program, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", [name for name, bug in REAL_BUGS.items() if bug.in_process])
def test_a_bug_below_the_journal_is_seen_in_its_calls_through_the_module_os(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    REAL_BUGS[name].plant(monkeypatch)
    assert observed(REAL_BUGS[name].program, tmp_path, monkeypatch)


# what SQLite is told, where no compiler is


def _told(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[str]:
    """How SQLite was told to sync when it committed what was confirmed, each time."""
    statements: list[str] = []
    connect = sqlite3.connect

    def traced(*arguments: object, **settings: object) -> sqlite3.Connection:
        database = connect(*arguments, **settings)  # type: ignore[call-overload]
        database.set_trace_callback(statements.append)
        return database  # type: ignore[no-any-return]

    patch.setattr(sqlite3, "connect", traced)
    journal = SqliteJournal(folder / "journal")
    journal.close()
    statements.clear()
    PROGRAMS["sqlite"](folder, lambda said: statements.append(f"confirmed {said}"))
    patch.undo()
    synchronous = committed = ""
    for statement in statements:
        if statement.startswith("PRAGMA synchronous"):
            synchronous = statement.partition("=")[2]
        elif statement == "COMMIT":
            committed = synchronous
        elif statement.startswith("confirmed up to"):
            yield committed


def test_sqlite_is_told_to_sync_each_commit_that_is_confirmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(_told(tmp_path, monkeypatch)) == {"FULL"}


def test_sqlite_that_is_told_less_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    REAL_BUGS["SQLite syncs with NORMAL"].plant(monkeypatch)
    assert set(_told(tmp_path, monkeypatch)) == {"NORMAL"}


# the checker itself


def calls(*steps: str) -> list[Call | str]:
    """Calls in words; ``folder`` is the sync of the directory, ``say`` a mark in the watermark."""
    known: dict[str, Call | str] = {
        "open": Call(Kind.OPEN, inode=3, path="/none/folder/1.journal"),
        "write": Call(Kind.WRITE, inode=3, data=b"\xf5AJF", size=99),
        "mark": Call(Kind.WRITE, inode=3, data=b"\xf5AJS", size=36),
        "end": Call(Kind.WRITE, inode=3, data=b"\xf5AJC", size=36),
        "cut": Call(Kind.TRUNCATE, inode=3),
        "sync": Call(Kind.SYNC, inode=3),
        "other": Call(Kind.OPEN, inode=4, path="/none/folder/watermark"),
        "say": Call(Kind.WRITE, inode=4, data=b"\xf5AJS", size=36),
        "rename": Call(Kind.RENAME, path="/none/folder/1.journal", to="/none/folder/2.journal"),
        "unlink": Call(Kind.UNLINK, path="/none/folder/2.journal"),
        "folder": Call(Kind.SYNC, path="/none/folder", inode=5),
        "confirm": "it",
    }
    return [known[step] for step in steps]


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("open write sync folder confirm", None),
        ("open write sync mark folder confirm", None),
        ("open write folder confirm", "99 bytes of 1.journal wait for a sync"),
        ("open sync write folder confirm", "99 bytes of 1.journal wait for a sync"),
        ("open write sync mark end folder confirm", "36 bytes of 1.journal wait for a sync"),
        ("open write sync cut folder confirm", "1 bytes of 1.journal wait for a sync"),
        ("open write sync confirm", "the folder has not been synced since 1.journal got its name"),
        ("open write sync folder rename confirm", "not been synced since 2.journal got its name"),
        ("open write rename sync folder confirm", "1.journal gets a name while 99 bytes of it wait"),
        ("open other write say sync folder confirm", "watermark is written, and 99 bytes of 1.journal wait"),
        ("open other write sync say folder confirm", None),
        ("open sync rename unlink folder confirm", "2.journal is removed, and the folder has not been synced"),
    ],
)
def test_the_checker_tells_the_order(run: str, said: str | None) -> None:
    found = violations(calls(*run.split()), Path("/none/folder"))
    assert (said is None) == (not found)
    assert said is None or said in " ".join(found)


def test_a_run_in_which_nothing_is_confirmed_shows_nothing() -> None:
    with pytest.raises(AssertionError, match="nothing was confirmed"):
        violations(calls("open", "write"), Path("/none/folder"))
