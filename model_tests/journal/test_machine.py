"""Journals on the real machine: its files, its full disk, its locks, and processes that are killed in earnest."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ackfsm import cli
from ackfsm.engine.journal import Disk, FileJournal, Journal, OsDisk, SimulatedDisk, SqliteJournal
from ackfsm.terms import AckfsmError, InputError
from model_tests.support.places import PROJECT

# one disk is as the other


@pytest.fixture(params=["simulated", "real"])
def disk(request: pytest.FixtureRequest) -> Disk:
    return SimulatedDisk() if request.param == "simulated" else OsDisk()


@pytest.fixture
def here(tmp_path: Path, disk: Disk) -> Path:
    disk.make(tmp_path / "here")
    disk.make(tmp_path / "here")
    return tmp_path / "here"


def test_what_is_written_is_read_also_beyond_the_end_and_after_a_cut(disk: Disk, here: Path) -> None:
    file = disk.create(here / "a")
    assert disk.read(here / "a") == b""
    assert disk.write(file, 0, b"abcdef") == 6
    assert disk.write(file, 2, b"CD") == 2
    assert disk.write(file, 8, b"ij") == 2
    assert disk.read(here / "a") == b"abCDef\0\0ij"
    disk.truncate(file, 3)
    assert disk.read(here / "a") == b"abC"
    disk.truncate(file, 5)
    assert disk.read(here / "a") == b"abC\0\0"
    disk.sync(file)
    disk.close(file)
    again = disk.open(here / "a")
    disk.write(again, 0, b"X")
    assert disk.read(here / "a") == b"XbC\0\0"
    disk.close(again)


def test_names_are_sorted_and_a_rename_takes_the_place_of_what_was_there(disk: Disk, here: Path) -> None:
    for name in ("b", "a", "c"):
        file = disk.create(here / name)
        disk.write(file, 0, name.encode())
        disk.close(file)
    assert disk.names(here) == ["a", "b", "c"]
    disk.rename(here / "a", here / "c")
    disk.unlink(here / "b")
    disk.sync_directory(here)
    assert (disk.names(here), disk.read(here / "c")) == (["c"], b"a")


def test_a_file_that_is_open_is_written_to_under_its_new_name_and_without_one(disk: Disk, here: Path) -> None:
    file = disk.create(here / "a")
    disk.rename(here / "a", here / "b")
    disk.write(file, 0, b"x")
    assert disk.read(here / "b") == b"x"
    disk.unlink(here / "b")
    assert disk.write(file, 1, b"y") == 1
    disk.sync(file)
    disk.close(file)
    assert not disk.names(here)


def test_what_is_not_there_or_there_already_is_an_error_of_the_same_kind(disk: Disk, here: Path) -> None:
    disk.close(disk.create(here / "a"))
    with pytest.raises(FileExistsError):
        disk.create(here / "a")
    calls: tuple[Callable[[], object], ...] = (
        lambda: disk.open(here / "none"),
        lambda: disk.read(here / "none"),
        lambda: disk.unlink(here / "none"),
        lambda: disk.rename(here / "none", here / "b"),
    )
    for call in calls:
        with pytest.raises(FileNotFoundError):
            call()


def test_a_directory_is_locked_once(disk: Disk, here: Path) -> None:
    lock = disk.lock(here)
    with pytest.raises(BlockingIOError):
        disk.lock(here)
    disk.unlock(lock)
    disk.unlock(disk.lock(here))


# no more room


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 256 kB; where there is no right to make one the test is skipped."""
    folder.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if not sys.platform.startswith("linux") or os.geteuid() != 0 or mount is None or umount is None:
        pytest.skip("a small file system is made by root alone, on Linux; files are limited in the test beside this")
    command = [mount, "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here ({done.stderr.strip()})")
    try:
        yield folder
    finally:
        subprocess.run([umount, str(folder)], check=True)


def filled(kind: str, path: Path, limit: int = 0) -> int:
    """Fill the disk with a journal; gives how many entries were confirmed, after looking at what was said."""
    command = [sys.executable, "-m", "model_tests.support.journal.full_disk", kind, str(path), str(limit)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=PROJECT)
    confirmed, failure, after = done.stdout.splitlines()
    assert "nothing more is confirmed" in failure
    assert "open" in after
    return int(confirmed)


OPENED: dict[str, Callable[[Path], Journal]] = {"file": FileJournal, "sqlite": SqliteJournal}


@pytest.mark.parametrize("kind", OPENED)
def test_on_a_full_disk_what_was_confirmed_is_there_and_nothing_else_is(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_disk(tmp_path / "small") as folder:
        confirmed = filled(kind, folder / "journal")
        assert confirmed > 20
        shutil.copytree(folder, tmp_path / "roomy")
    assert cli.main(["journal", "verify", str(tmp_path / "roomy" / "journal")]) == 0
    capsys.readouterr()
    journal = OPENED[kind](tmp_path / "roomy" / "journal")
    assert set(range(1, confirmed + 1)) <= set(journal.recovery.live) <= set(range(1, confirmed + 2))
    journal.close()


@pytest.mark.parametrize("kind", OPENED)
def test_with_a_file_that_may_not_grow_what_was_confirmed_is_there(kind: str, tmp_path: Path) -> None:
    confirmed = filled(kind, tmp_path / "journal", limit=150_000)
    assert confirmed > 20
    journal = OPENED[kind](tmp_path / "journal")
    assert set(range(1, confirmed + 1)) <= set(journal.recovery.live) <= set(range(1, confirmed + 2))
    journal.close()


# other processes

_HOLDS = """
import os, sys
from ackfsm.engine.journal import FileJournal, SqliteJournal, Kind
journal = {"file": FileJournal, "sqlite": SqliteJournal}[sys.argv[1]](sys.argv[2])
journal.append(Kind.STORE, 1, b"copy")
journal.sync()
os.write(1, b"open\\n")
sys.stdin.read()
"""


@pytest.mark.parametrize("kind", OPENED)
def test_a_journal_of_another_process_is_in_use_until_that_is_killed(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "journal"
    command = [sys.executable, "-c", _HOLDS, kind, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROJECT) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(InputError, match="in use"):
            OPENED[kind](path)
        assert cli.main(["journal", "compact", str(path)]) == 2
        assert "in use" in capsys.readouterr().err
        assert cli.main(["journal", "verify", str(path)]) == 0
        assert "another process has it open" in capsys.readouterr().out
        other.send_signal(signal.SIGKILL)
        other.wait()
    journal = OPENED[kind](path)
    assert (list(journal.recovery.live), journal.recovery.clean) == ([1], False)
    journal.close()


def test_a_child_that_ends_without_touching_the_journal_of_its_parent_does_no_harm(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    with pytest.raises(InputError, match="in use"):
        FileJournal(tmp_path / "journal")
    journal.close()
    FileJournal(tmp_path / "journal").close()


def test_a_directory_that_may_not_be_written_is_refused_in_a_sentence(tmp_path: Path) -> None:
    FileJournal(tmp_path / "journal").close()
    (tmp_path / "journal").chmod(0o555)
    try:
        if os.geteuid() == 0:
            pytest.skip("root may write everywhere")
        with pytest.raises(AckfsmError, match=os.strerror(errno.EACCES)):
            FileJournal(tmp_path / "journal")
    finally:
        (tmp_path / "journal").chmod(0o755)
