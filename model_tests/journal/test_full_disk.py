"""Disks without room and disks that are broken: told from damage, and over as soon as there is room again."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ackfsm.engine.journal import DiskFaults, FileJournal, Journal, JournalFailure, Kind, SimulatedDisk, SqliteJournal

OPENED: dict[str, Callable[[Path], FileJournal | SqliteJournal]] = {"file": FileJournal, "sqlite": SqliteJournal}
CALLS = ("pwrite", "fdatasync", "fsync", "open", "mkdir")


def kept(journal: Journal, *keys: int) -> None:
    for key in keys:
        journal.append(Kind.STORE, key, b"copy")
    journal.sync()


def failing(patch: pytest.MonkeyPatch, name: str, code: int, below: Path) -> None:
    """A call of the operating system fails from now on, as far as it is about files ``below``."""
    real = getattr(os, name)

    def fails(what: Any, *arguments: Any, **settings: Any) -> Any:
        if isinstance(what, int) or str(what).startswith(str(below)):
            raise OSError(code, os.strerror(code))
        return real(what, *arguments, **settings)

    patch.setattr(os, name, fails)


def until_full(journal: Journal) -> tuple[int, JournalFailure | None]:
    """Store copies until one is not confirmed: the last that was, and the failure."""
    for key in range(1, 1_000):
        try:
            kept(journal, key)
        except JournalFailure as failure:
            return key - 1, failure
    return 1_000, None


def tried(journal: FileJournal) -> tuple[FileJournal, JournalFailure | None]:
    """Another try of opening."""
    try:
        return journal.kill(), None
    except JournalFailure as failure:
        return journal, failure


@pytest.mark.parametrize("capacity", range(100, 700, 37))
def test_a_full_disk_is_a_failure_and_opening_works_when_there_is_room(capacity: int) -> None:
    disk = SimulatedDisk()
    journal = FileJournal("/journal", segment_bytes=300, disk=disk)
    disk.faults = DiskFaults(capacity=capacity)
    confirmed, failure = until_full(journal)
    assert "make room and open the journal again" in str(failure)
    tries = 0
    while failure is not None:  # as long as there is none, each try says so, and changes nothing for the worse
        assert failure.full
        assert len([name for name in disk.image if name.endswith(".new")]) <= 1
        tries += 1
        disk.faults = DiskFaults(capacity=capacity if tries < 3 else None)
        journal, failure = tried(journal)
    assert list(journal.recovery.live)[:confirmed] == list(range(1, confirmed + 1))
    disk.faults = DiskFaults()
    kept(journal, confirmed + 5)
    journal.close()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("code", "full"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EIO, False)])
@pytest.mark.parametrize("kind", OPENED)
def test_what_the_machine_cannot_do_at_opening_is_no_fault_of_the_user_nor_damage(  # noqa: PLR0913
    kind: str, code: int, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, full: bool
) -> None:
    path = tmp_path / "journal"
    if call != "mkdir":
        journal = OPENED[kind](path)
        kept(journal, 1)
        journal.close()
    elif kind == "sqlite":
        pytest.skip("it makes no folder")
    with monkeypatch.context() as patch:
        failing(patch, call, code, tmp_path)
        with pytest.raises(JournalFailure, match=os.strerror(code)) as failure:
            OPENED[kind](path)
    assert failure.value.full == full
    journal = OPENED[kind](path)
    assert list(journal.recovery.live) == ([1] if call != "mkdir" else [])
    journal.close()


@pytest.mark.parametrize("kind", OPENED)
@pytest.mark.parametrize("ended", ["kill", "crash"])
def test_a_failure_says_whether_there_is_no_room_and_another_try_of_opening_is_the_way_on(
    kind: str, ended: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = OPENED[kind](tmp_path / "journal")
    kept(journal, 1)
    again: Callable[[], Journal] = {"kill": journal.kill, "crash": lambda: journal.crash(lambda _: True)}[ended]
    with monkeypatch.context() as patch:
        failing(patch, "pwrite", errno.ENOSPC, tmp_path)
        journal.append(Kind.STORE, 2, b"copy")
        with pytest.raises(JournalFailure) as failure:
            journal.sync()
        assert failure.value.full
        for _ in range(2):
            with pytest.raises(JournalFailure) as failure:
                again()
            assert failure.value.full
            with pytest.raises(JournalFailure, match="open the journal again"):
                journal.sync()
    after = again()
    assert next(iter(after.recovery.live)) == 1
    kept(after, 3)
    after.close()


@pytest.mark.parametrize("kind", OPENED)
@pytest.mark.parametrize("ended", ["close", "kill", "crash"])
def test_a_journal_that_has_ended_closes_no_file_of_another(kind: str, ended: str, tmp_path: Path) -> None:
    journal = OPENED[kind](tmp_path / "journal")
    kept(journal, 1)
    journal.close()
    innocent = [os.open(tmp_path, os.O_RDONLY) for _ in range(8)]  # the numbers that it had are given to these
    if ended == "close":
        journal.close()
    else:
        (journal.kill() if ended == "kill" else journal.crash(lambda _: True)).close()
    for file in innocent:
        os.fstat(file)
        os.close(file)
