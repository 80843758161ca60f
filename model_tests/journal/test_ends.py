"""Logs that end before what was promised: told from whole ones, by opening, ``inspect``, ``verify`` and ``compact``."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from ackfsm import cli
from ackfsm.engine.journal import FileJournal, Journal, JournalDamaged, Kind, PostgresJournal, SqliteJournal
from ackfsm.engine.journal._sql import row
from ackfsm.engine.journal._watermark import Watermark, newest
from model_tests.support.journal.postgres import server

UNCLEAN = "not closed cleanly: what was written last may not have been synced"
ENTRIES = 12

Opened: TypeAlias = Callable[[Path], Journal]


def run(capsys: pytest.CaptureFixture[str], action: str, path: Path) -> tuple[int, dict[str, Any]]:
    code = cli.main(["journal", action, str(path), "--json"])
    said = capsys.readouterr()
    return code, json.loads(said.out) if said.out else {"error": said.err}


def stored(journal: Journal, count: int = ENTRIES) -> None:
    """``count`` entries, each synced."""
    first = journal.recovery.next_key
    for key in range(first, first + count):
        journal.append(Kind.STORE, key, b"copy %d" % key + b"." * 80)
        journal.sync()


def copied(path: Path, to: Path) -> Path:
    """What is on the disk now: what the death of the process leaves, which has not closed it."""
    to.mkdir(exist_ok=True)
    for file in path.parent.glob(f"{path.name}*"):
        if file.is_dir():
            shutil.copytree(file, to / file.name, dirs_exist_ok=True)
        else:
            shutil.copyfile(file, to / file.name)
    return to / path.name


def contents(path: Path) -> dict[str, bytes]:
    files = [*path.parent.glob(f"{path.name}*"), *path.glob("*")]
    return {str(file): file.read_bytes() for file in sorted(files) if file.is_file()}


def restore(path: Path, files: dict[str, bytes]) -> None:
    for name in contents(path).keys() - files.keys():
        Path(name).unlink()
    for name, data in files.items():
        Path(name).write_bytes(data)


def refused(opened: Opened, path: Path) -> str:
    """Why it is refused; nothing has been changed then."""
    before = contents(path)
    with pytest.raises(JournalDamaged) as damaged:
        opened(path).close()
    assert contents(path) == before
    return str(damaged.value)


OPENED: dict[str, Opened] = {
    "file": FileJournal,
    "file, small segments": lambda path: FileJournal(path, segment_bytes=500),
    "sqlite": SqliteJournal,
}


@pytest.fixture(params=OPENED)
def opened(request: pytest.FixtureRequest) -> Opened:
    return OPENED[request.param]


@pytest.fixture(params=["file", "file, small segments"])
def opened_file(request: pytest.FixtureRequest) -> Opened:
    return OPENED[request.param]


def made(opened: Opened, folder: Path, how: str) -> Path:
    """A journal of as many entries, all synced, ``closed`` or ``killed``."""
    journal = opened(folder / "journal")
    stored(journal)
    killed = copied(folder / "journal", folder / "killed")
    journal.close()
    return killed if how == "killed" else folder / "journal"


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_whether_a_journal_was_closed_is_told(
    opened: Opened, how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = opened(tmp_path / "new")
    assert journal.recovery.clean, "a new journal has no end that could be missing"
    journal.close()
    path = made(opened, tmp_path, how)
    for action in ("inspect", "verify"):
        code, found = run(capsys, action, path)
        assert (code, found["verdict"], found["clean"]) == (0, "whole", how == "closed")
        assert len(found["live"]) == ENTRIES
        assert cli.main(["journal", action, str(path)]) == 0
        screen = " ".join(capsys.readouterr().out.split())
        assert (UNCLEAN in screen, "closed cleanly;" in screen) == (how == "killed", how == "closed")
    again = opened(path)
    assert again.recovery.clean == (how == "closed")
    assert (UNCLEAN in str(again.recovery)) == (how == "killed")
    again.close()
    assert opened(path).recovery.clean


def test_a_closed_journal_of_2492_bytes_that_is_cut_to_1200_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "journal"
    journal = FileJournal(path)
    for key in range(1, 61):
        journal.append(Kind.STORE, key, b"")
        if key % 2 == 0:
            journal.sync()
    journal.close()
    (file,) = path.glob("*.journal")
    file.write_bytes(file.read_bytes()[:1_200])
    code, found = run(capsys, "verify", path)
    assert (code, found["verdict"]) == (1, "damaged")
    assert "24 entries are missing at the end, for all below position 60 had been synced" in found["damage"]
    for action in ("inspect", "compact"):
        code, found = run(capsys, action, path)
        assert (code, "24 entries are missing" in found["error"]) == (2, True)
    assert file.stat().st_size == 1_200


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_every_cut_of_the_last_segment_is_refused_or_only_of_the_seal(
    opened_file: Opened, how: str, tmp_path: Path
) -> None:
    path = made(opened_file, tmp_path, how)
    whole = contents(path)
    name = max(name for name in whole if name.endswith(".journal"))
    unseen = 0
    size = len(whole[name])
    for length in (*range(0, size - 150, 5), *range(size - 150, size)):
        restore(path, {**whole, name: whole[name][:length]})
        with contextlib.suppress(JournalDamaged):
            found = opened_file(path)
            assert len(found.recovery.live) == ENTRIES
            found.close()
            unseen += 1
    assert unseen == (0 if how == "closed" else 36), "of a journal that was not closed the seal may be missing"


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_a_file_that_is_missing_is_refused(opened: Opened, how: str, tmp_path: Path) -> None:
    path = made(opened, tmp_path, how)
    whole = contents(path)
    if not path.is_dir():
        assert len(whole) == (1 if how == "closed" else 3)
    for name in whole if path.is_dir() or how == "killed" else ():
        restore(path, {other: data for other, data in whole.items() if other != name})
        why = refused(opened, path)
        assert "missing" in why
    if path.is_dir():
        restore(path, {name: data for name, data in whole.items() if name.endswith("watermark")})
        assert f"{ENTRIES} entries are missing" in refused(opened, path)
    elif how == "killed":
        restore(path, {str(path): whole[str(path)]})
        assert "the journal was not closed, so nothing says how far it should go" in refused(opened, path)


def test_damage_of_one_mark_of_a_watermark_is_outweighed_by_the_others_and_of_all_refused(
    opened_file: Opened, tmp_path: Path
) -> None:
    path = made(opened_file, tmp_path, "killed")
    whole = contents(path)
    name = next(name for name in whole if name.endswith("watermark"))
    assert newest(whole[name]) == Watermark(1, ENTRIES)
    for at in range(len(whole[name])):
        data = bytearray(whole[name])
        data[at] ^= 1 << at % 8
        restore(path, {**whole, name: bytes(data)})
        journal = opened_file(path)
        assert len(journal.recovery.live) == ENTRIES
        journal.close()
    for data_ in (b"", bytes(len(whole[name])), b"x" * 200):
        restore(path, {**whole, name: data_})
        assert "no mark in it can be read" in refused(opened_file, path)
    restore(path, {**whole, name: whole[name][:36] + bytes(36) + whole[name][72:]})
    assert newest(Path(name).read_bytes()) == Watermark(1, 0), "that of the opening, where that of the sync is torn"


def test_what_another_process_has_lost_is_told_while_nothing_is_lost(tmp_path: Path) -> None:
    path = made(FileJournal, tmp_path, "closed")
    journal = FileJournal(path)
    stored(journal, 3)
    segments = sorted(path.glob("*.journal"))
    killed = copied(path, tmp_path / "second")
    journal.close()
    (killed / segments[-1].name).unlink()
    assert "3 entries are missing" in refused(FileJournal, killed)


def test_a_segment_without_entries_that_is_missing_is_refused(tmp_path: Path) -> None:
    path = made(FileJournal, tmp_path, "closed")
    FileJournal(path).close()
    max(path.glob("*.journal")).unlink()
    assert "it had been opened 2 times, and what is there says 1" in refused(FileJournal, path)


# SQLite


def test_every_cut_of_what_sqlite_has_waiting_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    path = made(SqliteJournal, tmp_path, "killed")
    whole = contents(path)
    wal = f"{path}-wal"
    journal = SqliteJournal(path)
    assert len(journal.recovery.live) == ENTRIES
    journal.close()
    for length in range(0, len(whole[wal]), 1_999):
        restore(path, {**whole, wal: whole[wal][:length]})
        assert "missing" in refused(SqliteJournal, path)
    damaged = bytearray(whole[wal])
    damaged[len(damaged) // 2] ^= 1
    restore(path, {**whole, wal: bytes(damaged)})
    assert "missing at the end" in refused(SqliteJournal, path)


def test_a_journal_whose_log_sqlite_was_moving_when_it_was_killed_is_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = SqliteJournal(tmp_path / "journal")
    for key in range(1, 40):
        journal.append(Kind.STORE, key, b"x" * 1_000)
    journal.sync()
    killed = copied(tmp_path / "journal", tmp_path / "killed")
    journal.close()
    after = copied(killed, tmp_path / "after")
    change(after, "PRAGMA wal_checkpoint(TRUNCATE)")
    moved = after.read_bytes()
    for pages in range(killed.stat().st_size // 4_096, len(moved) // 4_096, 2):
        path = copied(killed, tmp_path / f"{pages} pages")
        path.write_bytes(moved[: pages * 4_096])
        assert run(capsys, "verify", path)[0] == 0
        again = SqliteJournal(path)
        assert list(again.recovery.live) == list(range(1, 40))
        again.close()


def change(path: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)


def test_rows_that_are_missing_at_the_end_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made(SqliteJournal, tmp_path, "closed")
    assert not Path(f"{path}-watermark").exists(), "a journal that is closed is one file"
    change(path, "DELETE FROM entry WHERE position >= 9")
    assert f"position 9: {ENTRIES - 9} entries are missing at the end" in refused(SqliteJournal, path)
    code, found = run(capsys, "verify", path)
    assert (code, f"{ENTRIES - 9} entries are missing" in found["damage"]) == (1, True)


def test_a_database_that_is_cut_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = SqliteJournal(tmp_path / "journal")
    for key in range(1, 40):
        journal.append(Kind.STORE, key, b"x" * 1_000)
    journal.close()
    path = tmp_path / "journal"
    whole = path.read_bytes()
    for length in range(0, len(whole), 4_096):
        path.write_bytes(whole[:length])
        assert refused(SqliteJournal, path)
        assert run(capsys, "verify", path)[0] == (1 if length else 2)
        assert run(capsys, "compact", path)[0] == 2
        assert path.read_bytes() == whole[:length]


# formats

FIRST = (
    "61636b66736d4a31a3c8eaa40100000001000000010000000000000000000000000000000100000000000000f5414a46ceecca7b13000000"
    "01000000010000000000000000000000000000000000000001060000000100000000000000636f70792031f5414a462694b03f1300000001"
    "000000010000000100000000000000010000000000000001060000000200000000000000636f70792032f5414a461c56ffed130000000100"
    "0000010000000200000000000000020000000000000001060000000300000000000000636f70792033f5414a467091645a0d000000010000"
    "00010000000300000000000000030000000000000002000000000200000000000000f5414a43b54ecdda0000000000000000010000000400"
    "0000000000000400000000000000"
)
"""A segment as format 1 wrote it: copies 1, 2 and 3, 2 removed, closed."""


def test_a_journal_of_format_1_is_read_and_held_to_its_end_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.mkdir()
    (path / "000000000001.journal").write_bytes(bytes.fromhex(FIRST))
    journal = FileJournal(path)
    assert (list(journal.recovery.live), journal.recovery.clean, journal.recovery.epoch) == ([1, 3], True, 2)
    stored(journal, 2)
    killed = copied(path, tmp_path / "killed")
    journal.close()
    assert list(FileJournal(path).recovery.live) == [1, 3, 4, 5]
    max(killed.glob("*.journal")).unlink()
    assert "6 entries are missing" in refused(FileJournal, killed)


def test_a_journal_of_format_1_in_sqlite_is_read_and_held_to_its_end_from_then_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "journal"
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.executescript("""PRAGMA journal_mode=WAL;
            CREATE TABLE journal (only INTEGER PRIMARY KEY CHECK (only = 1), format INTEGER, epoch INTEGER,
                next_key INTEGER, first INTEGER);
            CREATE TABLE entry (position INTEGER PRIMARY KEY, epoch INTEGER, kind INTEGER, key INTEGER,
                txn INTEGER, data BLOB, checksum INTEGER);
            INSERT INTO journal VALUES (1, 1, 1, 1, 0);""")
        rows = [row(key - 1, 1, (Kind.STORE, key, b"copy", 0)) for key in (1, 2)]
        database.executemany("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        database.commit()
        unmoved = copied(path, tmp_path / "unmoved")
    for journal_path in (path, unmoved):
        assert run(capsys, "verify", journal_path)[0] == 0
        journal = SqliteJournal(journal_path)
        assert (list(journal.recovery.live), journal.recovery.epoch) == ([1, 2], 2)
        journal.close()
        again = SqliteJournal(journal_path)
        assert (list(again.recovery.live), again.recovery.clean) == ([1, 2], True)
        again.close()
        change(journal_path, "DELETE FROM entry WHERE position = 1")
        assert "one entry is missing" in refused(SqliteJournal, journal_path)


# PostgreSQL


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with server() as name:
        yield name


def test_rows_of_postgres_that_are_missing_at_the_end_are_refused(dsn: str) -> None:
    import psycopg

    journal = PostgresJournal(dsn, "cut")
    stored(journal)
    journal.close()
    again = PostgresJournal(dsn, "cut")
    assert again.recovery.clean
    killed = again.kill()
    assert not killed.recovery.clean
    killed._release()  # noqa: SLF001 - the death of the process
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute("DELETE FROM ackfsm_journal_entry WHERE name = 'cut' AND position > 8")
    with pytest.raises(JournalDamaged, match=f"{ENTRIES - 9} entries are missing at the end"):
        PostgresJournal(dsn, "cut")


def test_a_journal_of_format_1_in_postgres_is_read(dsn: str) -> None:
    import psycopg

    PostgresJournal(dsn, "any").close()
    journal = PostgresJournal(dsn, "first")
    stored(journal)
    journal.close()
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute("ALTER TABLE ackfsm_journal DROP COLUMN promised, DROP COLUMN closed, DROP COLUMN checksum")
        other.execute("UPDATE ackfsm_journal SET format = 1")
    again = PostgresJournal(dsn, "first")
    assert (len(again.recovery.live), again.recovery.clean) == (ENTRIES, False)
    again.close()
    third = PostgresJournal(dsn, "first")
    assert third.recovery.clean
    third.close()
