"""A journal in an SQLite database."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

from ackfsm.journal._entry import JournalDamaged, JournalFailure
from ackfsm.journal._protocol import REMEMBERED
from ackfsm.journal._recovery import Recovery
from ackfsm.journal._rows import Head, Row, RowJournal, read_rows
from ackfsm.terms import InputError

__all__ = ["SqliteJournal", "read_sqlite", "sqlite_in_use"]

_TABLES = """
CREATE TABLE IF NOT EXISTS journal (only INTEGER PRIMARY KEY CHECK (only = 1), format INTEGER, epoch INTEGER,
    next_key INTEGER, first INTEGER);
CREATE TABLE IF NOT EXISTS entry (position INTEGER PRIMARY KEY, epoch INTEGER, kind INTEGER, key INTEGER,
    txn INTEGER, data BLOB, checksum INTEGER);
INSERT OR IGNORE INTO journal VALUES (1, 1, 0, 1, 0);
"""
_HEAD = "SELECT format, epoch, next_key, first FROM journal"
_ROWS = "SELECT position, epoch, kind, key, txn, data, checksum FROM entry ORDER BY position"
_INSERT = "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?)"


class SqliteJournal(RowJournal):
    """A file of SQLite in WAL mode; a sync commits with ``synchronous=FULL``, a write with ``NORMAL``.

    Args:
        path: the file; it is made if it is missing.
        remembered: how many duplicate-ids are kept, the newest.

    Raises :class:`JournalDamaged`, :class:`ackfsm.terms.InputError` if it is in use or cannot be opened,
    :class:`JournalFailure`.
    """

    failures = (sqlite3.Error,)

    def __init__(self, path: Path | str, *, remembered: int = REMEMBERED) -> None:
        super().__init__(str(path), remembered)
        self._path = Path(path)
        try:
            self._database = sqlite3.connect(path, timeout=0, isolation_level=None)
        except sqlite3.Error as error:
            raise InputError(f"{path} cannot be opened ({error}); name a file of SQLite") from None
        try:
            self._begin()
        except BaseException:
            self._database.close()
            raise

    def _begin(self) -> None:
        try:
            self._database.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
            self._open()
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise InputError(f"{self._path} is in use; close the journal that has it open") from None
            raise JournalFailure(f"{self._path}: the database has failed ({error}); open it again") from error
        except sqlite3.DatabaseError as error:
            raise _damaged(self._path, error) from None

    def _load(self) -> tuple[Head, Iterable[Row]]:
        return _head(self._path, self._database), self._database.execute(_ROWS)

    def _store(self, rows: Sequence[Row], *, durable: bool) -> None:
        with self._transaction(durable=durable) as cursor:
            cursor.executemany(_INSERT, rows)
            if not rows:
                cursor.execute("UPDATE journal SET epoch = epoch")

    def _replace(self, head: Head, rows: Sequence[Row] | None) -> None:
        with self._transaction(durable=True) as cursor:
            if rows is not None:
                cursor.execute("DELETE FROM entry")
                cursor.executemany(_INSERT, rows)
            cursor.execute(
                "UPDATE journal SET epoch = ?, next_key = ?, first = ?", (head.epoch, head.next_key, head.first)
            )

    @contextlib.contextmanager
    def _transaction(self, *, durable: bool) -> Iterator[sqlite3.Cursor]:
        self._database.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
        cursor = self._database.execute("BEGIN IMMEDIATE")
        yield cursor  # after an error the journal is poisoned: closing it rolls back
        cursor.execute("COMMIT")

    def _size(self) -> int:
        pages, size = (self._database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        return int(pages) * int(size)

    def _again(self) -> Self:
        return type(self)(self._path, remembered=self._remembered)

    def _release(self) -> None:
        self._database.close()


def _head(path: Path, database: sqlite3.Connection) -> Head:
    found = database.execute(_HEAD).fetchone()
    if found is None or found[0] != 1:
        raise JournalDamaged(f"{path}: it says nothing of its format, which should be 1; restore it from a copy")
    return Head(*found[1:])


def _damaged(path: Path, error: sqlite3.Error) -> JournalDamaged:
    return JournalDamaged(f"{path}: SQLite cannot read it ({error}); nothing has been changed, restore it from a copy")


def read_sqlite(path: Path, remembered: int = REMEMBERED) -> Recovery:
    """What a journal holds, read from a copy so that nothing is changed.

    Not for the process that has it open: reading the file gives up the locks that SQLite has on it.

    Raises :class:`JournalDamaged`.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "journal")
        for ending in ("", "-wal"):
            if Path(f"{path}{ending}").exists():
                shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
        try:
            with contextlib.closing(sqlite3.connect(copy)) as database:
                return _read(path, database, remembered)
        except sqlite3.DatabaseError as error:
            raise _damaged(path, error) from None


def sqlite_in_use(path: Path) -> bool:
    """Whether another process has the journal open; asking leaves no file behind."""
    if not Path(f"{path}-wal").exists():  # a journal that is open has one
        return False
    shared = Path(f"{path}-shm")
    was_there = shared.exists()
    try:
        with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=0)) as database:
            database.execute(_HEAD)
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    finally:
        if not was_there:
            shared.unlink(missing_ok=True)
    return False


def _read(path: Path, database: sqlite3.Connection, remembered: int) -> Recovery:
    wrong = database.execute("PRAGMA integrity_check").fetchone()[0]
    if wrong != "ok":
        raise JournalDamaged(f"{path}: SQLite finds it damaged ({wrong}); restore it from a copy")
    head = _head(path, database)
    replay, position, _ = read_rows(str(path), head, database.execute(_ROWS), remembered)
    replay.new_epoch()
    return Recovery(
        live=replay.live(),
        removed=replay.removed,
        remembered=replay.remembered(),
        next_position=position,
        next_key=replay.next_key,
        epoch=head.epoch,
        entries=position - head.first,
        dropped=replay.dropped,
        size=path.stat().st_size,
        segments=1,
    )
