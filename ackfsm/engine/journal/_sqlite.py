"""A journal in an SQLite database."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from ackfsm.engine.journal._disk import OsDisk, machine_failed, no_room
from ackfsm.engine.journal._entry import JournalDamaged, JournalFailure
from ackfsm.engine.journal._protocol import REMEMBERED
from ackfsm.engine.journal._recovery import Recovery, Replay
from ackfsm.engine.journal._sql import (
    FORMAT,
    Head,
    Row,
    SqlJournal,
    check_format,
    check_head,
    check_watermark,
    read_rows,
    recovered,
)
from ackfsm.engine.journal._watermark import Watermark, WatermarkFile, newest
from ackfsm.terms import InputError
from ackfsm.text import shown

_TABLES = """
CREATE TABLE journal (only INTEGER PRIMARY KEY, format INTEGER, epoch INTEGER,
    next_key INTEGER, first INTEGER, promised INTEGER, closed INTEGER, checksum INTEGER);
CREATE TABLE entry (position INTEGER PRIMARY KEY, epoch INTEGER, kind INTEGER, key INTEGER,
    txn INTEGER, data BLOB, checksum INTEGER);
"""
# No CHECK: SQLite leaves it out where it only reads, and would find a damaged one when it has begun to write.
_HEADS = "epoch, next_key, first, promised, closed, format, checksum"
_NEW = f"INSERT INTO journal (only, {_HEADS}) VALUES (1, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_UPDATE = f"UPDATE journal SET ({_HEADS}) = (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_FORMAT = "SELECT format FROM journal"
_LATER = {2: ("promised", "closed"), 3: ("checksum",)}
"""The columns that came with each format."""
_NAMES = "SELECT t.name, c.name FROM sqlite_master AS t, pragma_table_info(t.name) AS c WHERE t.type = 'table'"
_COLUMNS = {
    "journal": {"only", "format", "epoch", "next_key", "first"},
    "entry": {"position", "epoch", "kind", "key", "txn", "data", "checksum"},
}
"""The tables of a journal of any format, which no other database is expected to have."""
_FEW = 3
_ERRORS = (OSError, sqlite3.Error, UnicodeDecodeError)
"""The last one is raised for a damaged name."""
_MACHINE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM}
_NOT_ALLOWED = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_AUTH}
MAGIC = b"SQLite format 3\0"
"""The first bytes of every SQLite file that is not empty."""
_HEADER_SIZE, _VERSIONS = 100, slice(18, 20)
_ROWS = "SELECT position, epoch, kind, key, txn, data, checksum FROM entry ORDER BY position"
_INSERT = "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?)"


class SqliteJournal(SqlJournal):
    """A file of SQLite in WAL mode; a sync commits with ``synchronous=FULL``, a write with ``NORMAL``.

    Besides SQLite's own two there is a file ``...-watermark`` beside it as long as it is open, and after a crash.

    Args:
        path: the file; it is made if it is missing, its folder is not.
        remembered: how many duplicate-ids are kept, the newest.

    Raises :class:`JournalDamaged`, :class:`ackfsm.terms.InputError` if it is in use, cannot be opened or is a file of
    something else (nothing is changed then), :class:`JournalFailure` if the machine fails, or has no room.
    """

    failures = (sqlite3.Error, OSError)

    def __init__(self, path: Path | str, *, remembered: int = REMEMBERED) -> None:
        super().__init__(shown(str(path)), remembered)
        self._path = Path(path)
        self._disk = OsDisk()
        self._watermark = WatermarkFile(self._disk, _watermark_of(self._path))
        try:
            _make(self._path)
            _refuse_unusable(self._path, remembered)
            self._database = _connected(f"{_uri(self._path)}?mode=rw")
            self._begin()
        except _ERRORS as error:
            self._close_resources()
            failed = self._poison("opening", error) if _of_the_machine(error) else _input_error(self._path, error)
            raise failed from error
        except BaseException:
            self._close_resources()
            raise

    def _begin(self) -> None:
        self._database.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._database.executescript("BEGIN IMMEDIATE; COMMIT;")
        _check_pages(self._path, self._database)
        self._open()
        self._watermark.opened(Watermark(self._epoch, self._synced))
        self._database.execute("PRAGMA wal_checkpoint")

    def _begin_epoch(self, head: Head, position: int) -> None:
        """Write the watermark before the database is marked open; an open database is not read without it."""
        _check_watermark(self._path, _watermark_bytes(self._path), head, position)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._repair(head)
        self._watermark.open(None if _relies_on_watermark(head) else Watermark(head.epoch, position))
        self._disk.sync_directory(self._path.parent)

    def _repair(self, head: Head) -> None:
        """Upgrade a journal of an older format, with the same head."""
        if head.format < FORMAT:
            with self._transaction(durable=True) as cursor:
                for later in range(head.format + 1, FORMAT + 1):
                    for column in _LATER[later]:
                        cursor.execute(f"ALTER TABLE journal ADD COLUMN {column} INTEGER")
                cursor.execute(_UPDATE, dataclasses.replace(head, format=FORMAT).columns)

    def _promised(self) -> None:
        self._watermark.synced(Watermark(self._epoch, self._synced))

    def _load(self) -> tuple[Head, Generator[Row]]:
        return _head(self._path, self._database), _rows(self._database)

    def _store(self, rows: Sequence[Row], *, durable: bool) -> None:
        with self._transaction(durable=durable) as cursor:
            cursor.executemany(_INSERT, rows)
            if not rows:
                cursor.execute(_UPDATE, self._head().columns)  # SQLite drops what changes nothing

    def _replace(self, head: Head, rows: Sequence[Row] | None) -> None:
        with self._transaction(durable=True) as cursor:
            if rows is not None:
                cursor.execute("DELETE FROM entry")
                cursor.executemany(_INSERT, rows)
            cursor.execute(_UPDATE, head.columns)

    @contextlib.contextmanager
    def _transaction(self, *, durable: bool) -> Iterator[sqlite3.Cursor]:
        self._database.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
        cursor = self._database.execute("BEGIN IMMEDIATE")
        yield cursor  # after an error the journal is poisoned: closing it rolls back
        cursor.execute("COMMIT")

    def _size(self) -> int:
        pages, size = (self._database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        return int(pages) * int(size)

    def _reopen(self) -> Self:
        return type(self)(self._path, remembered=self._remembered)

    def _full(self, error: BaseException) -> bool:
        return no_room(error) or _code(error) == sqlite3.SQLITE_FULL

    def _forked(self) -> None:
        """Keep this copy of the connection open: closing it would move the log into the file, and remove the log."""
        super()._forked()
        self._watermark.close()
        if hasattr(self, "_database"):
            ctypes.pythonapi.Py_IncRef(
                ctypes.py_object(self._database)
            )  # so that not even the end of the process closes it

    def __del__(self) -> None:
        if hasattr(self, "_watermark"):  # a connection is part of a cycle, and would keep its lock for a while
            self._close_resources()

    def _release(self) -> None:
        self._watermark.close()
        if hasattr(self, "_database"):
            self._database.close()
        if self._ended:
            with contextlib.suppress(OSError):  # one that is left over does no harm
                _watermark_of(self._path).unlink()


def _code(error: BaseException) -> int | None:
    """The primary code of an error of SQLite; ``None`` if it is one of Python's module, or another."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _connected(uri: str) -> sqlite3.Connection:
    """A connection that reads text as bytes, since in a damaged file it may be no text."""
    database = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)
    database.text_factory = bytes
    return database


def _make(path: Path) -> None:
    """Create the journal if it is missing: atomically, so that a crash leaves no partial file."""
    if path.exists() or _watermark_of(path).exists():
        return
    half = path.with_name(f"{path.name}-new-{secrets.token_hex(8)}")
    try:
        with contextlib.closing(_connected(_uri(half))) as database:
            database.executescript(f"PRAGMA synchronous=EXTRA; BEGIN; {_TABLES}")
            database.execute(_NEW, Head(0, 1, 0).columns)
            database.execute("COMMIT")
        with contextlib.suppress(FileExistsError):  # another process was faster
            path.hardlink_to(half)
    finally:
        half.unlink(missing_ok=True)
    OsDisk().sync_directory(path.parent)


def _refuse_unusable(path: Path, remembered: int) -> None:
    """Refuse a file that is no journal, or is damaged, before anything is changed.

    Raises also :class:`OSError` and :class:`sqlite3.Error`.
    """
    waiting = Path(f"{path}-wal").exists()
    _refuse_others(path, waiting=waiting)
    if waiting:  # closing a database moves that log into the file, damage included
        with _reading(path) as database:
            _check_pages(path, database)
            _rows_of(path, _watermark_bytes(path), database, remembered)


def _refuse_others(path: Path, *, waiting: bool) -> None:
    watermark = _watermark_of(path)
    if not path.exists() and watermark.exists():
        raise JournalDamaged(
            f"{shown(str(path))} is missing, and {shown(watermark.name)} is that of a journal which was not closed;"
            " restore it from a copy, or remove that file to begin an empty journal"
        )
    with path.open("rb") as file:
        beginning = file.read(_HEADER_SIZE)
    if not beginning:
        raise JournalDamaged(
            f"{shown(str(path))} is empty, and no journal is, not even a new one; restore it from a copy,"
            " or remove it to begin an empty journal"
        )
    if not beginning.startswith(MAGIC):
        raise _damaged(path, "file is not a database")
    if beginning[_VERSIONS] not in {b"\1\1", b"\2\2"}:  # SQLite would treat it as read-only
        raise _damaged(path, "its header names a file format that does not exist")
    if waiting and newest(_watermark_bytes(path) or b"") is not None:
        return  # it is a journal; after a crash the file without its log may be inconsistent
    _check_tables(path, _tables(path, waiting=waiting))


def _check_tables(path: Path, tables: Mapping[str, set[str]]) -> None:
    if not all(columns <= tables.get(name, set()) for name, columns in _COLUMNS.items()):
        names = ", ".join(shown(name, 40) for name in list(tables)[:_FEW]) or "none"
        raise InputError(
            f"{shown(str(path))} is a database of something else (its tables: {names}); name a journal, or a new file"
        )


def _tables(path: Path, *, waiting: bool) -> dict[str, set[str]]:
    """The columns of each table, read without touching any file."""
    if waiting:
        with _copy_of(path) as copy, contextlib.closing(_connected(_uri(copy))) as database:
            return _columns(database)
    with contextlib.closing(_connected(f"{_uri(path)}?mode=ro&immutable=1")) as database:
        return _columns(database)


def _columns(database: sqlite3.Connection) -> dict[str, set[str]]:
    tables: dict[str, set[str]] = {}
    for table, column in database.execute(_NAMES):
        tables.setdefault(_text(table), set()).add(_text(column))
    return tables


def _text(name: object) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def _of_the_machine(error: BaseException) -> bool:
    """Whether the machine has failed or is out of room, so that a later attempt may succeed."""
    return machine_failed(error) or _code(error) in _MACHINE


def _input_error(path: Path, error: Exception) -> InputError:
    """The error for a file that cannot be opened: it is in use, not accessible, or damaged."""
    name, code = shown(str(path)), _code(error)
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return InputError(f"{name} is in use; close the journal that has it open")
    if not isinstance(error, OSError) and code not in _NOT_ALLOWED:
        return _damaged(path, error)
    why = error.strerror if isinstance(error, OSError) else str(error)
    return InputError(f"{name} cannot be opened ({why}); name a file of SQLite in a folder that exists")


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """The database, read-only; no file is left behind."""
    shared = Path(f"{path}-shm")
    was_there = shared.exists()
    try:
        with contextlib.closing(_connected(f"{_uri(path)}?mode=ro")) as database:
            yield database
    finally:
        if not was_there:
            shared.unlink(missing_ok=True)


def _uri(path: Path) -> str:
    return path.absolute().as_uri()


def _watermark_of(path: Path) -> Path:
    return Path(f"{path}-watermark")


def _relies_on_watermark(head: Head) -> bool:
    """A journal that is closed records its end in the database, and is one file; others need the watermark."""
    return head.format > 1 and not head.clean


def _watermark_bytes(path: Path) -> bytes | None:
    """The bytes of a journal's watermark file; ``None`` if there is none."""
    try:
        return _watermark_of(path).read_bytes()
    except FileNotFoundError:
        return None


def _check_watermark(path: Path, watermark: bytes | None, head: Head, position: int) -> None:
    """Refuse a journal that lacks something its watermark promises, or lacks the watermark."""
    name, promised = _watermark_of(path), newest(watermark or b"")
    if promised is not None:
        check_watermark(shown(str(path)), promised, head, position, f" (so says {shown(name.name)})")
    elif _relies_on_watermark(head):
        why = "the file is missing" if watermark is None else "no mark in it can be read"
        raise JournalDamaged(
            f"{shown(str(name))}: {why}, and the journal was not closed, so nothing says how far it should go;"
            " nothing has been changed, restore it from a copy"
        )


def _head(path: Path, database: sqlite3.Connection) -> Head:
    name = shown(str(path))
    found = database.execute(_FORMAT).fetchone()
    format_ = check_format(name, found and found[0])
    there = _columns(database)["journal"]
    missing = [column for later, columns in _LATER.items() for column in columns if later > format_]
    if there & set(missing) or not there >= {c for columns in _LATER.values() for c in columns} - set(missing):
        raise JournalDamaged(f"{name}: its columns are not those of its format, {format_}; restore it from a copy")
    selected = ", ".join("0" if column in missing else column for column in _HEADS.split(", "))
    return check_head(name, database.execute(f"SELECT {selected} FROM journal").fetchone())  # noqa: S608


def _rows(database: sqlite3.Connection) -> Generator[Row]:
    """The rows in order; close the generator, or the file stays open."""
    with contextlib.closing(database.execute(_ROWS)) as cursor:
        yield from cursor


def _check_pages(path: Path, database: sqlite3.Connection) -> None:
    """Refuse a file with inconsistent pages, where SQLite might overwrite good ones."""
    wrong = _text(database.execute("PRAGMA quick_check(1)").fetchone()[0])
    if wrong != "ok":
        raise JournalDamaged(f"{shown(str(path))}: SQLite finds it damaged ({shown(wrong)}); restore it from a copy")


def _damaged(path: Path, why: object) -> JournalDamaged:
    reason = shown(" ".join(str(why).split()), 120)
    return JournalDamaged(
        f"{shown(str(path))}: SQLite cannot read it ({reason}); nothing has been changed, restore it from a copy"
    )


def read_sqlite(path: Path, remembered: int = REMEMBERED) -> Recovery:
    """The recovery of a journal, read from a copy so that nothing is changed.

    Not for the process that has it open: reading the file releases the locks that SQLite has on it.

    Raises :class:`JournalDamaged`, :class:`ackfsm.terms.InputError` for a database of something else.
    """
    watermark = _watermark_bytes(path)  # first: a journal that is in use grows while it is read
    try:
        _refuse_others(path, waiting=Path(f"{path}-wal").exists())
        with _copy_of(path) as copy, contextlib.closing(_connected(_uri(copy))) as database:
            return _read(path, watermark, database, remembered)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if _of_the_machine(error):
            raise JournalFailure(f"{shown(str(path))}: reading failed ({error}); try again") from error
        raise _input_error(path, error) from None


@contextlib.contextmanager
def _copy_of(path: Path) -> Iterator[Path]:
    """A temporary copy of the database with its write-ahead log."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "journal")
        for ending in ("", "-wal"):
            if Path(f"{path}{ending}").exists():
                shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
        yield copy


def sqlite_in_use(path: Path) -> bool:
    """Whether another process has the journal open; asking leaves no file behind."""
    if not Path(f"{path}-wal").exists():  # a journal that is open has one
        return False
    try:
        with _reading(path) as database:
            database.execute(_FORMAT)
    except sqlite3.OperationalError as error:
        return _code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
    return False


def _read(path: Path, watermark: bytes | None, database: sqlite3.Connection, remembered: int) -> Recovery:
    _check_pages(path, database)
    head, replay, position = _rows_of(path, watermark, database, remembered)
    replay.new_epoch()
    return recovered(replay, head, position, epoch=head.epoch, size=path.stat().st_size)


def _rows_of(
    path: Path, watermark: bytes | None, database: sqlite3.Connection, remembered: int
) -> tuple[Head, Replay, int]:
    """The head, the state that the rows leave, checked against the watermark, and the next position."""
    _check_tables(path, _columns(database))
    head = _head(path, database)
    with contextlib.closing(_rows(database)) as rows:
        replay, position, _ = read_rows(shown(str(path)), head, rows, remembered)
    check_watermark(shown(str(path)), head.watermark, head, position)
    _check_watermark(path, watermark, head, position)
    return head, replay, position
