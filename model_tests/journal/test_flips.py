"""A journal of SQLite with a byte flipped: it is refused in one sentence, or all that was confirmed is there."""

from __future__ import annotations

import dataclasses
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ackfsm.engine.journal import Kind, Recovery, SqliteJournal, inspect_sqlite
from ackfsm.terms import AckfsmError, InputError
from model_tests.journal.test_file import fill
from model_tests.support.journal.system_bugs import ROW_BUGS

_ZEROS = re.compile(rb"\0{24,}")
FILES = ("", "-wal", "-watermark")


@pytest.fixture
def folder() -> Iterator[Path]:
    memory = Path("/dev/shm")  # noqa: S108 - where there is one, syncs take no time
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


def made(folder: Path, *, closed: bool) -> dict[str, bytes]:
    """What is on the disk of a small journal that was closed or killed: each of its files."""
    path = folder / "made"
    first = SqliteJournal(path)
    first.append(Kind.STORE, 5, b"copy 5")
    first.close()
    journal = SqliteJournal(path)
    fill(journal)
    if closed:
        journal.close()
    files = {ending: Path(f"{path}{ending}").read_bytes() for ending in FILES if Path(f"{path}{ending}").exists()}
    journal.close()
    path.unlink()
    assert (len(files) == 1) == closed
    return files


def laid(folder: Path, files: dict[str, bytes]) -> Path:
    shutil.rmtree(folder / "laid", ignore_errors=True)
    (folder / "laid").mkdir()
    for ending, data in files.items():
        (folder / "laid" / f"journal{ending}").write_bytes(data)
    return folder / "laid" / "journal"


def opened(path: Path) -> SqliteJournal | str:
    try:
        return SqliteJournal(path)
    except InputError as refused:
        return str(refused)


def looked(path: Path) -> Recovery | str:
    try:
        return inspect_sqlite(path)[0]
    except InputError as refused:
        return str(refused)


def found(path: Path) -> Recovery | str:
    """What is found by looking, and by opening, which agree; or why it is refused, then nothing was changed."""
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    journal = opened(path)
    if isinstance(journal, str):
        assert "\n" not in journal
        assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before
        return journal
    journal.append(Kind.STORE, journal.recovery.next_key, b"more")
    journal.close()
    again = SqliteJournal(path)
    assert list(again.recovery.live) == [*journal.recovery.live, journal.recovery.next_key]
    again.close()
    return journal.recovery


def said(recovery: Recovery) -> Recovery:
    return dataclasses.replace(recovery, size=0)


def places(data: bytes) -> Iterator[int]:
    """Every byte, but of long runs of zeros only some: nothing lies there."""
    empty = {at for zeros in _ZEROS.finditer(data) for at in range(zeros.start() + 8, zeros.end() - 8)}
    yield from (at for at in range(len(data)) if at not in empty or at % 211 == 0)


def flipped(files: dict[str, bytes], ending: str, at: int, mask: int) -> dict[str, bytes]:
    data = bytearray(files[ending])
    data[at] ^= mask
    return {**files, ending: bytes(data)}


@pytest.mark.parametrize("closed", [True, False])
def test_every_flip_is_refused_in_one_sentence_or_everything_is_there(folder: Path, *, closed: bool) -> None:
    files = made(folder, closed=closed)
    whole = found(laid(folder, files))
    assert isinstance(whole, Recovery)
    assert list(whole.live) == [5, 1, 3]
    refused = 0
    for ending, data in files.items():
        for number, at in enumerate(places(data)):
            if closed or ending != "-wal" or number % 17 == 0 or at < 32:
                came = found(laid(folder, flipped(files, ending, at, 1 << at % 8)))
                refused += isinstance(came, str)
                assert isinstance(came, str) or said(came) == said(whole), f"byte {at:,} of {ending or 'the database'}"
    assert refused > 100


def test_a_flip_is_told_by_looking_too(folder: Path) -> None:
    files = made(folder, closed=True)
    whole, _ = inspect_sqlite(laid(folder, files))
    for at in list(places(files[""]))[::9]:
        path = laid(folder, flipped(files, "", at, 255))
        came = looked(path)
        assert came == whole or (isinstance(came, str) and "\n" not in came)


@pytest.mark.parametrize("name", ROW_BUGS)
def test_a_journal_that_looks_away_is_noticed(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = "closing" not in name
    files = made(folder, closed=closed)
    whole = found(laid(folder, files))
    assert isinstance(whole, Recovery)
    ROW_BUGS[name](monkeypatch)
    assert any(_noticed(laid(folder, flipped(files, "", at, 1 << at % 8)), whole) for at in places(files[""]))


def _noticed(path: Path, whole: Recovery) -> bool:
    try:
        came = found(path)
    except (AssertionError, AckfsmError, sqlite3.Error, UnicodeDecodeError, TypeError):
        return True
    return isinstance(came, Recovery) and said(came) != said(whole)
