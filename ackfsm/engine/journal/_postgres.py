"""A journal in a PostgreSQL database; it needs the extra ``[postgres]``."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Self

from ackfsm.engine.journal._entry import JournalDamaged, JournalFailure
from ackfsm.engine.journal._protocol import REMEMBERED
from ackfsm.engine.journal._sql import Head, Row, SqlJournal, check_format, check_head
from ackfsm.terms import InputError

if TYPE_CHECKING:
    import psycopg

_TABLES = """
CREATE TABLE IF NOT EXISTS ackfsm_journal (name text PRIMARY KEY, format int NOT NULL, epoch bigint NOT NULL,
    next_key bigint NOT NULL, first bigint NOT NULL, promised bigint NOT NULL DEFAULT 0,
    closed bigint NOT NULL DEFAULT 0, checksum bigint NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS ackfsm_journal_entry (name text, position bigint, epoch bigint NOT NULL,
    kind int NOT NULL, key bigint NOT NULL, txn bigint NOT NULL, data bytea NOT NULL, checksum bigint NOT NULL,
    PRIMARY KEY (name, position))
"""
_LOCK = "SELECT pg_try_advisory_lock(hashtextextended('ackfsm journal ' || %s, 0))"
_UNLOCK = "SELECT pg_advisory_unlock(hashtextextended('ackfsm journal ' || %s, 0))"
# Asked first, because ALTER TABLE locks out all others even where it changes nothing.
_OLDER = """SELECT NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'ackfsm_journal'::regclass
    AND attname = 'checksum')"""
_FROM_OLDER = """ALTER TABLE ackfsm_journal ADD COLUMN IF NOT EXISTS promised bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS closed bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS checksum bigint NOT NULL DEFAULT 0"""
_HEADS = "epoch, next_key, first, promised, closed, format, checksum"
_NEW = f"INSERT INTO ackfsm_journal (name, {_HEADS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"  # noqa: S608
_HEAD = f"SELECT {_HEADS} FROM ackfsm_journal WHERE name = %s"  # noqa: S608
_ROWS = """SELECT position, epoch, kind, key, txn, data, checksum FROM ackfsm_journal_entry
    WHERE name = %s ORDER BY position"""
_COPY = "COPY ackfsm_journal_entry FROM STDIN"
_UPDATE = f"UPDATE ackfsm_journal SET ({_HEADS}) = (%s, %s, %s, %s, %s, %s, %s) WHERE name = %s"  # noqa: S608
_DELETE = "DELETE FROM ackfsm_journal_entry WHERE name = %s"
_AT_A_TIME = 10_000
_DISK_FULL = "53100"


class PostgresJournal(SqlJournal):
    """Rows of a PostgreSQL database; a sync commits with ``synchronous_commit`` on, a write with it off.

    Args:
        dsn: how to connect, as libpq has it (``host=... dbname=...``).
        name: which journal; a database holds many, each open once at a time (an advisory lock).
        remembered: how many duplicate-ids are kept, the newest.

    Raises :class:`JournalDamaged`, :class:`ackfsm.terms.InputError` if there is no connection or it is in use,
    :class:`JournalFailure`; ``ModuleNotFoundError`` without the extra.
    """

    def __init__(self, dsn: str, name: str = "journal", *, remembered: int = REMEMBERED) -> None:
        import psycopg

        super().__init__(f"journal {name} of PostgreSQL", remembered)
        self._dsn, self._key, self.failures = dsn, name, (psycopg.Error,)
        try:
            self._database = psycopg.connect(dsn, autocommit=True)
        except psycopg.Error as error:
            reason = " ".join(str(error).split())
            raise InputError(
                f"there is no connection to PostgreSQL ({reason}); check the dsn, and the server"
            ) from None
        try:
            self._begin()
        except psycopg.Error as error:
            self._close_resources()
            raise self._poison("opening", error) from error
        except BaseException:
            self._close_resources()
            raise

    def _begin(self) -> None:
        locked = self._database.execute(_LOCK, [self._key]).fetchone()
        if locked is None or not locked[0]:
            raise InputError(f"{self._name} is in use; close the journal that has it open")
        with self._database.transaction():
            self._database.execute("SELECT pg_advisory_xact_lock(hashtextextended('ackfsm journals', 0))")
            self._database.execute("SET LOCAL client_min_messages = warning")
            for statement in _TABLES.split(";"):
                self._database.execute(statement)
            older = self._database.execute(_OLDER).fetchone()
            if older is not None and older[0]:
                self._database.execute(_FROM_OLDER)
        self._database.execute(_NEW, [self._key, *Head(0, 1, 0).columns])
        self._open()

    def _load(self) -> tuple[Head, Generator[Row]]:
        found = self._database.execute(_HEAD, [self._key]).fetchone()
        if found is None:
            raise JournalDamaged(f"{self._name}: its row of ackfsm_journal is missing; restore it from a copy")
        check_format(self._name, found[-2])
        return check_head(self._name, found), self._rows()

    def _rows(self) -> Generator[Row]:
        with self._database.transaction(), self._database.cursor(name="entries") as cursor:
            cursor.itersize = _AT_A_TIME
            cursor.execute(_ROWS, [self._key])
            yield from cursor

    def _store(self, rows: Sequence[Row], *, durable: bool) -> None:
        with self._database.transaction(), self._database.cursor() as cursor:
            cursor.execute(f"SET LOCAL synchronous_commit = {'on' if durable else 'off'}")
            if rows:
                self._copy(cursor, rows)
            else:
                cursor.execute(_UPDATE, [*self._head().columns, self._key])

    def _replace(self, head: Head, rows: Sequence[Row] | None) -> None:
        with self._database.transaction(), self._database.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit = on")
            if rows is not None:
                cursor.execute(_DELETE, [self._key])
                self._copy(cursor, rows)
            cursor.execute(_UPDATE, [*head.columns, self._key])

    def _copy(self, cursor: psycopg.Cursor, rows: Sequence[Row]) -> None:
        with cursor.copy(_COPY) as copy:
            for row in rows:
                copy.write_row((self._key, *row))

    def _size(self) -> int:
        found = self._database.execute(
            "SELECT coalesce(sum(length(data) + 50), 0) FROM ackfsm_journal_entry WHERE name = %s", [self._key]
        ).fetchone()
        return int(found[0]) if found else 0

    def _reopen(self) -> Self:
        try:
            return type(self)(self._dsn, self._key, remembered=self._remembered)
        except JournalDamaged:
            raise
        except InputError as error:  # it was right before, so that the server is what is not there yet
            raise JournalFailure(str(error)) from error

    def _full(self, error: BaseException) -> bool:
        return getattr(error, "sqlstate", None) == _DISK_FULL

    def _release(self) -> None:
        with contextlib.suppress(*self.failures):  # a connection that is lost has given the lock back
            self._database.rollback()  # an exception may have left a transaction open, in which nothing is unlocked
            self._database.execute(_UNLOCK, [self._key])
        self._database.close()
