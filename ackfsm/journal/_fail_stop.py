"""What ends a journal: a failure, an exception in the middle of a call, closing, a fork; then every call says so."""

from __future__ import annotations

import abc
import functools
import os
import weakref
from types import TracebackType

from ackfsm.journal._disk import no_room
from ackfsm.journal._entry import JournalFailure

__all__ = ["CLOSED_ALREADY", "FailStop"]

CLOSED_ALREADY = "it is closed"


class FailStop(abc.ABC):
    """A journal until it ends.

    A call that changes something marks the journal as failed before it begins, and clears the mark when it has ended
    well.  So after any exception (also one or more of a signal handler), and for a call in the middle of another, the
    journal says that it has failed.

    ``failures`` are the exceptions by which the layer below says that it has failed.
    """

    failures: tuple[type[Exception], ...] = (OSError,)
    _name: str
    _failed: str | None = None

    @abc.abstractmethod
    def _let_go(self) -> None:
        """Release files, connections and locks; doing so twice is harmless."""

    @abc.abstractmethod
    def _forked(self) -> None:
        """In a fork: give up its copies of files, connections and locks without any effect on those of the parent."""

    def _alive(self) -> None:
        if self._failed is not None:
            raise JournalFailure(f"{self._name}: {self._failed}; open the journal again to find out what it holds")

    def _during(self, doing: str) -> _Call:
        """Around a call: from now on the journal has failed, unless the call ends well."""
        return _Call(self, doing)

    def _poison(self, doing: str, error: Exception) -> JournalFailure:
        """After a failure nobody knows what the disk holds: nothing more is written, nothing more is confirmed."""
        self._failed = f"{doing} failed ({_reason(error)})"
        full = self._full(error)
        return JournalFailure(
            f"{self._name}: {self._failed}; nothing more is confirmed,"
            f" {'make room and ' if full else ''}open the journal again",
            full=full,
        )

    def _full(self, error: BaseException) -> bool:
        """Whether it failed because there is no room left."""
        return no_room(error)

    def _watch_forks(self) -> None:
        """From now on a fork of this process does not have this journal."""
        _open_here().add(self)


class _Call:
    """A call that is running; a class because a generator would take longer."""

    __slots__ = ("_doing", "_journal")

    def __init__(self, journal: FailStop, doing: str) -> None:
        self._journal, self._doing = journal, doing

    def __enter__(self) -> None:
        self._journal._alive()  # noqa: SLF001 - a part of it
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
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(said.split())


@functools.cache
def _open_here() -> weakref.WeakSet[FailStop]:
    """The open journals of this process; the first call asks to be told of forks."""
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
