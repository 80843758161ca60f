"""Fail-stop journals: after a failure, an interrupted call, closing or a fork, every call raises."""

from __future__ import annotations

import abc
import functools
import os
import weakref
from types import TracebackType

from ackfsm.engine.journal._disk import no_room
from ackfsm.engine.journal._entry import LARGEST, NUMBERS, Entry, JournalFailure, Kind, check

CLOSED_ALREADY = "it is closed"

_CHECKED = 3
"""Kinds from this one on are checked further."""


class FailStop(abc.ABC):
    """The base of journals that stop for good at the first failure.

    A call that changes something marks the journal as failed before it begins, and clears the mark when it has
    succeeded.  So the journal has failed after any exception (also of a signal handler), and for a call inside another.

    ``failures`` are the exceptions that the layer below raises for its failures.
    """

    failures: tuple[type[Exception], ...] = (OSError,)
    _name: str
    _failed: str | None = None

    @abc.abstractmethod
    def _close_resources(self) -> None:
        """Close files and connections, release locks; idempotent."""

    @abc.abstractmethod
    def _forked(self) -> None:
        """In a fork: close its copies of files, connections and locks without any effect on the parent's."""

    def _ensure_open(self) -> None:
        if self._failed is not None:
            raise JournalFailure(f"{self._name}: {self._failed}; open the journal again to find out what it holds")

    def _during(self, doing: str) -> _Call:
        """A context around a call: the journal has failed unless the call succeeds."""
        return _Call(self, doing)

    def _poison(self, doing: str, error: Exception) -> JournalFailure:
        """Stop for good: after a failure the content of the disk is unknown, so nothing more is confirmed."""
        self._failed = f"{doing} failed ({_reason(error)})"
        full = self._full(error)
        return JournalFailure(
            f"{self._name}: {self._failed}; nothing more is confirmed,"
            f" {'make room and ' if full else ''}open the journal again",
            full=full,
        )

    def _full(self, error: BaseException) -> bool:
        """Whether the error means that no room is left."""
        return no_room(error)

    def _watch_forks(self) -> None:
        """Make every later fork of this process give up this journal."""
        _open_here().add(self)


class BufferedJournal(FailStop):
    """A journal that keeps appended entries in memory until the next write.

    ``_waiting`` are these entries, ``_written`` and ``_synced`` are the positions behind the last that was written, and
    synced.
    """

    _waiting: list[Entry]
    _written: int
    _synced: int

    def append(self, kind: Kind, key: int, data: bytes = b"", transaction: int = 0) -> int:
        """See :meth:`ackfsm.engine.journal.Journal.append`."""
        plain = 0 < kind < _CHECKED and 0 <= key < NUMBERS and type(data) is bytes and len(data) <= LARGEST
        if transaction or self._failed or not plain:
            self._ensure_open()
            check(kind, key, data, transaction)
        waiting = self._waiting
        position = self._written + len(waiting)
        waiting.append((kind, key, data, transaction))
        return position

    @property
    def _next(self) -> int:
        """The position of the next entry: derived from the entries, so that no exception can make the two differ."""
        return self._written + len(self._waiting)

    @abc.abstractmethod
    def _write(self) -> None:
        """Write the entries that wait, of which there are some."""

    @abc.abstractmethod
    def _write_and_sync(self) -> None:
        """Write and sync what is not."""

    @abc.abstractmethod
    def _end(self) -> None:
        """Record durably that the journal was closed; everything is synced."""

    def write(self) -> int:
        """See :meth:`ackfsm.engine.journal.Journal.write`."""
        with self._during("writing"):
            if self._waiting:
                self._write()
        return self._written

    def sync(self) -> int:
        """See :meth:`ackfsm.engine.journal.Journal.sync`."""
        with self._during("syncing"):
            self._write_and_sync()
        return self._synced

    def close(self) -> None:
        """See :meth:`ackfsm.engine.journal.Journal.close`."""
        try:
            if self._failed is None:
                with self._during("closing"):
                    self._write_and_sync()
                    self._end()
                self._failed = CLOSED_ALREADY
        finally:
            self._close_resources()


class _Call:
    """The context of a running call; a class, since a generator would be slower."""

    __slots__ = ("_doing", "_journal")

    def __init__(self, journal: FailStop, doing: str) -> None:
        self._journal, self._doing = journal, doing

    def __enter__(self) -> None:
        self._journal._ensure_open()  # noqa: SLF001 - a part of it
        self._journal._failed = f"{self._doing} has begun and has not ended"  # noqa: SLF001

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        journal = self._journal
        if error is None:
            journal._failed = None  # noqa: SLF001
        elif isinstance(error, journal.failures):
            raise journal._poison(self._doing, error) from error  # noqa: SLF001
        elif not isinstance(error, JournalFailure):
            journal._failed = f"{self._doing} was interrupted ({type(error).__name__})"  # noqa: SLF001


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split())


@functools.cache
def _open_here() -> weakref.WeakSet[FailStop]:
    """The open journals of this process; the first call registers the handler of forks."""
    journals: weakref.WeakSet[FailStop] = weakref.WeakSet()
    parent = [os.getpid()]

    def forked() -> None:
        for journal in list(journals):
            journal._failed = (  # noqa: SLF001
                f"process {parent[0]} has it open, and this process is a fork of that; close it there"
            )
            journal._forked()  # noqa: SLF001
        journals.clear()
        parent[0] = os.getpid()

    os.register_at_fork(after_in_child=forked)
    return journals
