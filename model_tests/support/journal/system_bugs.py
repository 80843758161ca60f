"""Bugs below the journals, where no simulated disk is: of the calls to the operating system, SQLite and PostgreSQL.

Each is planted into the real classes; ``test_system_calls.py`` and ``test_postgres.py`` have to notice it.
"""

from __future__ import annotations

import dataclasses
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ackfsm.engine.journal import FileJournal, JournalFailure, OsDisk, PostgresJournal, SqliteJournal
from ackfsm.engine.journal import _fail_stop as fail_stop
from ackfsm.engine.journal import _frame as frames
from ackfsm.engine.journal import _postgres as postgres_
from ackfsm.engine.journal import _sql as sql_
from ackfsm.engine.journal import _sqlite as sqlite_
from ackfsm.engine.journal._disk import _Lock
from ackfsm.engine.journal._entry import Entry
from ackfsm.engine.journal._sql import Head, Row, SqlJournal
from ackfsm.engine.journal._watermark import Watermark, WatermarkFile


@dataclasses.dataclass(frozen=True)
class RealBug:
    """A bug: the program that shows it, how it is planted, and whether a wrapped ``os`` can see it."""

    program: str
    plant: Callable[[pytest.MonkeyPatch], None]
    in_process: bool = True


def _nothing(*_: object, **__: object) -> None:
    """Not done."""


def _sync_of_another(patch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    create, sync = OsDisk.create, OsDisk.sync

    def remembering(self: OsDisk, path: Path) -> int:
        opened.append(create(self, path))
        return opened[-1]

    def of_the_first(self: OsDisk, file: int) -> None:
        sync(self, opened[0] if opened and file == opened[-1] else file)

    patch.setattr(OsDisk, "create", remembering)
    patch.setattr(OsDisk, "sync", of_the_first)
    patch.setattr(OsDisk, "close", lambda _, file: None if file == opened[0] else os.close(file))


def _sync_before_write(patch: pytest.MonkeyPatch) -> None:
    def sync(self: FileJournal) -> int:
        self._sync()
        below = self.write()
        self._synced = below
        return below

    patch.setattr(FileJournal, "sync", sync)


def _rotation_without_directory_sync(patch: pytest.MonkeyPatch) -> None:
    begin, disk_sync = FileJournal._begin, OsDisk.sync_directory  # noqa: SLF001

    def begins(self: FileJournal, *, base: bool) -> None:
        rotates = bool(self._offset) and not base
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(OsDisk, "sync_directory", _nothing if rotates else disk_sync)
            begin(self, base=base)

    patch.setattr(FileJournal, "_begin", begins)


def _rename_before_sync(patch: pytest.MonkeyPatch) -> None:
    def publish(self: FileJournal, half: Path, whole: Path) -> None:
        self._disk.rename(half, whole)
        self._disk.sync(self._live_file())
        self._disk.sync_directory(self.path)

    patch.setattr(FileJournal, "_publish", publish)


def _watermark_before_sync(patch: pytest.MonkeyPatch) -> None:
    sync = FileJournal._sync  # noqa: SLF001

    def says_first(self: FileJournal) -> None:
        self._watermark.synced(Watermark(self._epoch, self._written))
        sync(self)

    patch.setattr(FileJournal, "_sync", says_first)


def _sqlite_normal(patch: pytest.MonkeyPatch) -> None:
    transaction = SqliteJournal._transaction  # noqa: SLF001
    patch.setattr(SqliteJournal, "_transaction", lambda self, **_: transaction(self, durable=False))


def _sqlite_checkpoint(patch: pytest.MonkeyPatch) -> None:
    store = SqliteJournal._store  # noqa: SLF001

    def checkpoints(self: SqliteJournal, rows: Sequence[Row], *, durable: bool) -> None:
        store(self, rows, durable=durable)
        for statement in ("synchronous=OFF", "wal_checkpoint", "synchronous=FULL"):
            self._database.execute(f"PRAGMA {statement}")

    patch.setattr(SqliteJournal, "_store", checkpoints)


def _sqlite_changes_nothing(patch: pytest.MonkeyPatch) -> None:
    def store(self: SqliteJournal, rows: Sequence[Row], *, durable: bool) -> None:
        with self._transaction(durable=durable) as cursor:
            cursor.executemany("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            if not rows:
                cursor.execute("UPDATE journal SET epoch = epoch")

    patch.setattr(SqliteJournal, "_store", store)


REAL_BUGS: Mapping[str, RealBug] = {
    "sync does nothing": RealBug("file", lambda patch: patch.setattr(OsDisk, "sync", _nothing)),
    "sync of a directory does nothing": RealBug(
        "file", lambda patch: patch.setattr(OsDisk, "sync_directory", _nothing)
    ),
    "sync does nothing, below the engine": RealBug("engine", lambda patch: patch.setattr(OsDisk, "sync", _nothing)),
    "sync before write": RealBug("file", _sync_before_write),
    "sync of another file": RealBug("file", _sync_of_another),
    "rotation without a sync of the directory": RealBug("file", _rotation_without_directory_sync),
    "rename before sync": RealBug("file", _rename_before_sync),
    "folders are made without a sync of those above": RealBug(
        "file", lambda patch: patch.setattr(OsDisk, "make", lambda _, folder: folder.mkdir(parents=True, exist_ok=True))
    ),
    "watermark before the sync": RealBug("file", _watermark_before_sync),
    "the watermark of an opening is not synced": RealBug(
        "file", lambda patch: patch.setattr(WatermarkFile, "_sync", _nothing)
    ),
    "SQLite syncs with NORMAL": RealBug("sqlite", _sqlite_normal, in_process=False),
    "SQLite moves its log without a sync": RealBug("sqlite", _sqlite_checkpoint, in_process=False),
    "SQLite is told to change nothing": RealBug("sqlite", _sqlite_changes_nothing, in_process=False),
}
"""Of the calls to the operating system, each by name."""


# checksums


def _leaving_out(begin: int | None, end: int | None) -> Callable[[pytest.MonkeyPatch], None]:
    """A checksum of frames, and of rows, that leaves out these bytes of what is longer than 4 kB."""

    def kept(data: bytes | memoryview) -> bytes:
        whole = bytes(data)
        if len(whole) <= 4_096:
            return whole
        middle = len(whole) // 2
        first, last = (middle, middle + 8) if begin is None else (begin % len(whole), end or len(whole))
        return whole[:first] + whole[last:]

    def plant(patch: pytest.MonkeyPatch) -> None:
        checksum, crc32 = frames._checksum, zlib.crc32  # noqa: SLF001
        patch.setattr(frames, "_checksum", lambda head, body, salt: checksum(head, kept(body), salt))

        class Zlib:
            @staticmethod
            def crc32(data: bytes, value: int = 0) -> int:
                return crc32(kept(data), value)

        patch.setattr(sql_, "zlib", Zlib)

    return plant


CHECKSUM_BUGS: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    "the last bytes are left out": _leaving_out(-8, None),
    "the first bytes are left out": _leaving_out(0, 8),
    "bytes in the middle are left out": _leaving_out(None, None),
}
"""Of checksums of what is long."""


# interrupts


def _only_failures_poison(patch: pytest.MonkeyPatch) -> None:
    leave = fail_stop._Call.__exit__  # noqa: SLF001

    def leaves(self: fail_stop._Call, kind: Any, error: BaseException | None, trace: Any) -> None:
        leave(self, kind, error, trace)
        if error is not None and not isinstance(error, (*self._journal.failures, JournalFailure)):
            self._journal._failed = None  # noqa: SLF001

    patch.setattr(fail_stop._Call, "__exit__", leaves)  # noqa: SLF001


def _empties_first(patch: pytest.MonkeyPatch) -> None:
    """What waits is taken before it is written, and an interrupt is forgiven."""
    _only_failures_poison(patch)
    absorb = FileJournal._absorb  # noqa: SLF001

    def absorbs(self: FileJournal) -> list[Entry]:
        entries = absorb(self)
        self._written, self._waiting = self._next, []
        return entries

    patch.setattr(FileJournal, "_absorb", absorbs)


def _leaves_the_lock(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FileJournal, "_close_resources", lambda self: self._close_files())
    patch.setattr(_Lock, "__del__", _nothing)


INTERRUPT_BUGS: Mapping[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "only failures of the disk poison": ("file", _only_failures_poison),
    "what waits is emptied first": ("file", _empties_first),
    "the lock is left behind": ("file", _leaves_the_lock),
}
"""What an exception of somebody else shows: the journal, and how the bug is planted."""


# forks

FORK_BUGS: Mapping[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "a fork closes the connection": (
        "sqlite",
        lambda patch: patch.setattr(SqliteJournal, "_forked", SqlJournal._forked),  # noqa: SLF001
    ),
    "a fork gives the lock back": (
        "file",
        lambda patch: patch.setattr(FileJournal, "_forked", FileJournal._close_resources),  # noqa: SLF001
    ),
}
"""What a fork shows."""


# rows


ROW_BUGS: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    "the head has no checksum": lambda patch: patch.setattr(
        sqlite_, "check_head", lambda _, columns: Head(*columns[:-1])
    ),
    "pages are not checked": lambda patch: patch.setattr(sqlite_, "_check_pages", _nothing),
    "closing moves damage before it is looked at": lambda patch: patch.setattr(sqlite_, "_refuse_unusable", _nothing),
}
"""What a flipped byte of an SQLite file shows."""


# PostgreSQL


def _postgres_off(patch: pytest.MonkeyPatch) -> None:
    store = PostgresJournal._store  # noqa: SLF001

    def stores(self: PostgresJournal, rows: Sequence[Row], **_: bool) -> None:
        store(self, rows, durable=False)

    patch.setattr(PostgresJournal, "_store", stores)


def _postgres_default(patch: pytest.MonkeyPatch) -> None:
    """What the server has by default is taken, whatever it is."""

    def stores(self: PostgresJournal, rows: Sequence[Row], **_: bool) -> None:
        with self._database.transaction(), self._database.cursor() as cursor:
            if rows:
                self._copy(cursor, rows)
            else:
                cursor.execute(postgres_._UPDATE, [*self._head().columns, self._key])  # noqa: SLF001

    patch.setattr(PostgresJournal, "_store", stores)


POSTGRES_BUGS: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    "synchronous_commit is off": _postgres_off,
    "synchronous_commit is never set": _postgres_default,
}
"""Of what PostgreSQL is asked."""
