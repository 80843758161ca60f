"""Journals in databases: what was written survives, damage is refused, a failure is for good."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from ackfsm.engine.journal import JournalDamaged, JournalFailure, Kind, PostgresJournal, SqliteJournal, inspect_sqlite
from ackfsm.engine.journal._sql import row
from ackfsm.terms import InputError
from model_tests.support.journal.postgres import server


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with server() as name:
        yield name


HEAD = ("epoch", "next_key", "first", "promised", "closed", "checksum")


def stored(path: Path) -> Path:
    journal = SqliteJournal(path)
    for key in range(1, 6):
        journal.append(Kind.STORE, key, b"copy %d" % key)
    journal.sync()
    journal.close()
    return path


def change(path: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)


def test_what_is_written_survives_the_process(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "journal")
    journal.append(Kind.STORE, 1, b"synced")
    journal.sync()
    journal.append(Kind.STORE, 2, b"written")
    journal.write()
    journal.append(Kind.STORE, 3, b"neither")
    (tmp_path / "dead").mkdir()
    for file in tmp_path.glob("journal*"):
        shutil.copy(file, tmp_path / "dead" / file.name)
    assert list(SqliteJournal(tmp_path / "dead" / "journal").recovery.live) == [1, 2]
    journal.close()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM entry WHERE position = 2", "position 2 is missing, 3 comes next"),
        ("UPDATE entry SET data = x'00' WHERE position = 2", "position 2: the checksum does not fit"),
        ("UPDATE entry SET key = 7 WHERE position = 2", "position 2: the checksum does not fit"),
        ("UPDATE entry SET kind = 9 WHERE position = 2", "position 2: the checksum does not fit"),
        ("UPDATE entry SET data = 'text' WHERE position = 2", "position 2: the checksum does not fit"),
        ("UPDATE entry SET epoch = -1 WHERE position = 2", "position 2: the checksum does not fit"),
        ("UPDATE journal SET format = NULL", "its format, which should be 1 to 3"),
        ("UPDATE journal SET format = 'x'", "its format, which should be 1 to 3"),
        ("UPDATE journal SET format = 2", "its columns are not those of its format, 2"),
        *((f"UPDATE journal SET {column} = {column} + 1", "the checksum of its head") for column in HEAD),  # noqa: S608
        ("UPDATE journal SET first = x'00'", "the checksum of its head"),
        ("DELETE FROM journal", "its format, which should be 1 to 3"),
    ],
)
def test_rows_that_are_not_what_was_written_are_refused(tmp_path: Path, statement: str, said: str) -> None:
    path = stored(tmp_path / "journal")
    change(path, statement)
    with pytest.raises(JournalDamaged, match=said):
        SqliteJournal(path)


def test_rows_that_this_version_does_not_know_are_refused(tmp_path: Path) -> None:
    path = stored(tmp_path / "journal")
    for entry, said in (((9, 3, b"", 0), "no kind of entry 9"), ((Kind.MARK, 3, b"x", 0), "the number of attempts")):
        *columns, checksum = row(2, 1, entry)
        data = entry[2].hex()
        change(path, f"UPDATE entry SET kind = {columns[2]}, data = x'{data}' WHERE position = 2")  # noqa: S608
        change(path, f"UPDATE entry SET checksum = {checksum} WHERE position = 2")  # noqa: S608
        with pytest.raises(JournalDamaged, match=f"position 2: .*{said}"):
            SqliteJournal(path)


def test_a_newer_format_is_told_so(tmp_path: Path) -> None:
    path = stored(tmp_path / "journal")
    change(path, "UPDATE journal SET format = 4")
    for opening in (lambda: SqliteJournal(path), lambda: inspect_sqlite(path)):
        with pytest.raises(
            InputError, match=r"is of format 4, .* reads 1 to 3; use the version that wrote it"
        ) as newer:
            opening()
        assert not isinstance(newer.value, JournalDamaged)


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("these are notes, and not a database of any kind" * 40)
    with pytest.raises(JournalDamaged, match="SQLite cannot read it"):
        SqliteJournal(path)
    assert path.read_text().startswith("these are notes")
    with pytest.raises(InputError, match="cannot be opened"):
        SqliteJournal(tmp_path / "no" / "such" / "folder")


def test_a_full_database_poisons_the_journal(tmp_path: Path) -> None:
    journal = SqliteJournal(stored(tmp_path / "journal"))
    journal._database.execute("PRAGMA max_page_count = 1")  # noqa: SLF001 - as if the disk were full
    journal.append(Kind.STORE, 9, b"x" * 100_000)
    with pytest.raises(JournalFailure, match="full"):
        journal.sync()
    for call in (journal.sync, journal.write, lambda: journal.append(Kind.STORE, 10)):
        with pytest.raises(JournalFailure, match="open the journal again"):
            call()
    journal.close()
    assert list(SqliteJournal(tmp_path / "journal").recovery.live) == [1, 2, 3, 4, 5]


def test_a_lost_connection_poisons_the_journal(dsn: str) -> None:
    import psycopg

    journal = PostgresJournal(dsn, "lost")
    journal.append(Kind.STORE, 1, b"safe")
    journal.sync()
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    journal.append(Kind.STORE, 2, b"lost")
    for _ in range(2):
        with pytest.raises(JournalFailure, match="open"):
            journal.sync()
    journal.close()
    again = PostgresJournal(dsn, "lost")
    assert (list(again.recovery.live), again.recovery.epoch) == ([1], 2)
    again.close()


def test_rows_of_postgres_that_are_not_what_was_written_are_refused(dsn: str) -> None:
    import psycopg

    journal = PostgresJournal(dsn, "damaged")
    for key in (1, 2, 3):
        journal.append(Kind.STORE, key, b"copy")
    journal.close()
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute("UPDATE ackfsm_journal_entry SET key = 9 WHERE name = 'damaged' AND position = 1")
    with pytest.raises(JournalDamaged, match="journal damaged of PostgreSQL, position 1: the checksum does not fit"):
        PostgresJournal(dsn, "damaged")


def test_a_server_that_is_not_there_is_told_in_a_sentence(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(InputError, match="there is no connection to PostgreSQL"):
        PostgresJournal(f"host={tmp_path} dbname=none connect_timeout=2")
