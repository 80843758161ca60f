"""The base of journals in a database: entries are rows with checksums; a write or a sync is one SQL transaction."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import struct
import zlib
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Self, TypeAlias

from ackfsm.engine.journal._entry import NUMBERS, Entry, JournalDamaged, check, newer
from ackfsm.engine.journal._fail_stop import BufferedJournal
from ackfsm.engine.journal._protocol import Compaction
from ackfsm.engine.journal._recovery import Recovery, Replay
from ackfsm.engine.journal._watermark import Watermark, shortfall
from ackfsm.terms import InputError

Row: TypeAlias = tuple[int, int, int, int, int, bytes, int]
"""Position, epoch, kind, key, transaction, data, checksum."""

_FEW = 10_000
"""Journals with fewer entries than this are not compacted automatically."""
_COLUMNS = struct.Struct("<QIBQQ")

_HEAD = struct.Struct("<6Q")

FORMAT = 3
"""The format that is written; older ones are read: 1 had no promised end, 2 no checksum of the head."""
_CHECKED_HEAD = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Head:
    """The one row of metadata of a journal.

    Attributes:
        epoch: how often it was opened.
        next_key: the first free key.
        first: the first position.
        promised: everything below this position has been on stable storage.
        closed: the last epoch that was closed.
        format: the format that was read.
    """

    epoch: int
    next_key: int
    first: int
    promised: int = 0
    closed: int = 0
    format: int = FORMAT

    @property
    def checksum(self) -> int:
        """Over all of it."""
        return zlib.crc32(_HEAD.pack(*dataclasses.astuple(self)))

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns of the table: its fields in order, and the checksum."""
        return (*dataclasses.astuple(self), self.checksum)

    @property
    def clean(self) -> bool:
        """Whether it was closed, or is new."""
        return self.closed == self.epoch

    @property
    def watermark(self) -> Watermark:
        """The promised end."""
        return Watermark(self.epoch, self.promised, self.clean)


def check_format(name: str, found: object) -> int:
    """The format, if this version reads it.

    Raises :class:`JournalDamaged` if it is no format, :class:`ackfsm.terms.InputError` if it is a newer one.
    """
    if not isinstance(found, int) or found < 1:
        raise JournalDamaged(
            f"{name}: it says nothing of its format, which should be 1 to {FORMAT}; restore it from a copy"
        )
    if found > FORMAT:
        raise newer(name, found, FORMAT)
    return found


def check_head(name: str, columns: Sequence[object]) -> Head:
    """Return the head in these columns; the last one is its checksum.

    Raises :class:`JournalDamaged` unless they are what was written.
    """
    *fields, checksum = columns
    if all(isinstance(field, int) and 0 <= field < NUMBERS for field in fields):
        head = Head(*fields)  # type: ignore[arg-type]
        if head.format < _CHECKED_HEAD or checksum == head.checksum:
            return head
    raise JournalDamaged(
        f"{name}: the checksum of its head does not fit; nothing has been changed, restore it from a copy"
    )


def row(position: int, epoch: int, entry: Entry) -> Row:
    """The row of an entry; the checksum covers its position and its content."""
    kind, key, data, transaction = entry
    checksum = zlib.crc32(data, zlib.crc32(_COLUMNS.pack(position, epoch, kind, key, transaction)))
    return position, epoch, int(kind), key, transaction, data, checksum


def read_rows(name: str, head: Head, rows: Iterable[Row], remembered: int) -> tuple[Replay, int, int]:
    """The state that ``rows`` leave, the next position, and the bytes of data that were read.

    Raises :class:`JournalDamaged` for a row that is missing or is not what was written.
    """
    replay, position, epoch, size = Replay(remembered), head.first, 0, 0
    replay.next_key = head.next_key
    for found in rows:
        at, in_epoch, kind, key, transaction, data, _ = found
        wrong = _error_in(found, position, epoch)
        if wrong:
            raise JournalDamaged(
                f"{name}, position {position:,}: {wrong}; nothing has been changed, restore it from a copy, or use"
                " another to begin an empty journal"
            )
        if in_epoch != epoch:
            replay.new_epoch()
            epoch = in_epoch
        replay.apply(at, [(kind, key, data, transaction)])
        position, size = position + 1, size + len(data)
    return replay, position, size


def recovered(replay: Replay, head: Head, position: int, *, epoch: int, size: int) -> Recovery:
    """The recovery from rows that end at ``position``, in opening number ``epoch``."""
    return replay.recovery(epoch, position, position - head.first, size=size, segments=1, clean=head.clean)


def check_watermark(name: str, promised: Watermark, head: Head, position: int, where: str = "") -> None:
    """Raise :class:`JournalDamaged` if rows that end at ``position`` lack something that is ``promised``.

    ``where`` is added to the error: where the promise was read.
    """
    why = shortfall(promised, head.epoch, position)
    if why:
        raise JournalDamaged(
            f"{name}, position {position:,}: {why}{where}; nothing has been changed, restore it from a copy"
        )


def _error_in(found: Row, position: int, epoch: int) -> str:
    """Return the defect of a row at this position, not before this epoch, in words; empty if there is none."""
    at, in_epoch, kind, key, transaction, data, _ = found
    if found != _recomputed(found):
        return "the checksum does not fit"
    if at != position:
        return f"position {position:,} is missing, {at:,} comes next"
    if in_epoch < epoch:
        return f"it is of epoch {in_epoch:,}, after one of {epoch:,}"
    try:
        check(kind, key, data, transaction)
    except InputError as error:
        return str(error)
    return ""


def _recomputed(found: Row) -> Row | None:
    try:
        return row(found[0], found[1], (found[2], found[3], found[5], found[4]))
    except (struct.error, TypeError):
        return None


class SqlJournal(BufferedJournal):
    """A journal whose entries are rows; a subclass stores the rows."""

    recovery: Recovery

    def __init__(self, name: str, remembered: int) -> None:
        if remembered < 0:
            raise InputError(f"remembered is {remembered}; it is how many duplicate-ids are kept, from 0")
        self._name, self._remembered = name, remembered
        self._released = self._ended = False
        self._waiting = []
        self._watch_forks()

    @abc.abstractmethod
    def _load(self) -> tuple[Head, Generator[Row]]:
        """The head and the rows; for a new journal no rows."""

    @abc.abstractmethod
    def _store(self, rows: Sequence[Row], *, durable: bool) -> None:
        """Add rows at once; ``durable`` waits until they, and all before them, are on stable storage."""

    @abc.abstractmethod
    def _replace(self, head: Head, rows: Sequence[Row] | None) -> None:
        """Replace the head, and all rows if ``rows`` are given, in one durable transaction."""

    @abc.abstractmethod
    def _release(self) -> None:
        """Close the database; idempotent."""

    def _close_resources(self) -> None:
        if not self._released:
            self._release()
            self._released = True

    def _forked(self) -> None:
        self._released = True

    def _begin_epoch(self, head: Head, position: int) -> None:
        """Check the recovery against the watermark outside of the database, before anything is changed."""

    def _promised(self) -> None:
        """Record outside of the database that all below ``self._synced`` is on stable storage now."""

    def _open(self) -> None:
        """Read the journal, and begin an epoch."""
        head, found = self._load()
        with contextlib.closing(found) as rows:
            self._replay, position, size = read_rows(self._name, head, rows, self._remembered)
        check_watermark(self._name, head.watermark, head, position)
        self._replay.new_epoch()
        self._first, self._epoch, self._closed = head.first, head.epoch + 1, head.closed
        self._written = self._synced = position
        self._begin_epoch(head, position)
        self._replace(self._head(), None)
        self.recovery = recovered(self._replay, head, position, epoch=self._epoch, size=size)

    def _head(self) -> Head:
        return Head(self._epoch, self._replay.next_key, self._first, self._next, self._closed)

    def _write(self) -> None:
        self._hand_over(durable=False)

    def _write_and_sync(self) -> None:
        if self._waiting or self._synced < self._written:
            self._hand_over(durable=True)

    def compact(self) -> Compaction:
        """See :meth:`ackfsm.engine.journal.Journal.compact`: one transaction of the database."""
        with self._during("compacting"):
            entries = self._next - self._first
            self._absorb()
            size = self._compact()
            after = self._next - self._first
        return Compaction(entries, after, size, self._replay.size)

    def _end(self) -> None:
        self._closed = self._epoch
        self._replace(self._head(), None)
        self._ended = True

    def kill(self) -> Self:
        """See :meth:`ackfsm.engine.journal.Crashable.kill`."""
        self._failed = "its process is dead"
        self._close_resources()
        return self._reopen()

    def crash(self, survivors: Callable[[int], bool]) -> Self:  # noqa: ARG002 - the machine of a database stays up
        """See :meth:`ackfsm.engine.journal.Crashable.crash`: a database of this machine keeps written entries."""
        return self.kill()

    @abc.abstractmethod
    def _reopen(self) -> Self:
        """The same journal, opened again."""

    def _absorb(self) -> list[Row]:
        """Apply the waiting entries to the state; returns their rows."""
        entries = self._waiting
        rows = [row(position, self._epoch, entry) for position, entry in enumerate(entries, self._written)]
        self._replay.apply(self._written, entries)
        return rows

    def _hand_over(self, *, durable: bool) -> None:
        rows = self._absorb()
        if self._next - self._first > _FEW + 2 * len(self._replay):
            self._compact()
            return
        self._store(rows, durable=durable)
        self._written, self._waiting = self._next, []
        if durable:
            self._synced = self._written
            self._promised()

    def _compact(self) -> int:
        entries = list(self._replay.snapshot())
        first = self._next - len(entries)
        rows = [row(position, self._epoch, entry) for position, entry in enumerate(entries, first)]
        size = self._size()
        self._first = first
        self._replace(self._head(), rows)
        self._written, self._waiting = self._next, []
        self._synced = self._written
        self._promised()
        return size

    @abc.abstractmethod
    def _size(self) -> int:
        """The approximate size of the journal in bytes."""
