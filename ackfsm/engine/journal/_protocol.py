"""The protocol of a journal, as the engine uses it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from ackfsm.engine.journal._entry import Kind
from ackfsm.engine.journal._recovery import Recovery

REMEMBERED = 20_000
"""How many duplicate-ids a journal keeps by default, the newest."""


@dataclasses.dataclass(frozen=True, slots=True)
class Compaction:
    """What compaction did: entries and bytes (of memory where there is no disk) before and after it."""

    entries_before: int
    entries_after: int
    bytes_before: int
    bytes_after: int

    def __str__(self) -> str:
        entries = f"{self.entries_before:,} entries became {self.entries_after:,}"
        return f"{entries}, {self.bytes_before:,} bytes became {self.bytes_after:,}"


@runtime_checkable
class Journal(Protocol):
    """A log of entries.  An appended entry is in memory until it is written, and not safe until it is synced.

    What opening has found is on stable storage.  A key is stored once; its removal holds, even before the commit of the
    transaction in which it was stored.  Positions start at 0 and never repeat, also across compaction and opening
    again; the position of an entry that a recovery did not find is free.  One thread uses a journal.
    """

    recovery: Recovery
    """What was found when it was opened."""

    def append(self, kind: Kind, key: int, data: bytes = b"", transaction: int = 0) -> int:
        """Append an entry, in memory only, and return its position.

        Raises :class:`ackfsm.terms.InputError` if it is no entry, :class:`JournalFailure` if the journal is closed
        or has failed.  What is appended stays in memory until :meth:`write`, so write now and then.
        """

    def write(self) -> int:
        """Hand all appended entries to the operating system: they survive the end of this process.

        Returns the position below which everything is written.  Raises :class:`JournalFailure`.
        """

    def sync(self) -> int:
        """Write, and wait until all that is written is on stable storage: it survives a power loss.

        Returns the position below which everything is there.  Raises :class:`JournalFailure`; from then on every
        call does, since the content of a disk is unknown after a sync that failed.
        """

    def compact(self) -> Compaction:
        """Drop what no recovery needs; everything appended before is then on stable storage.

        Journals do this by themselves.  Raises :class:`JournalFailure`.
        """

    def close(self) -> None:
        """Sync, then release files and locks; after a failure release them only.  Idempotent."""


@runtime_checkable
class Crashable(Protocol):
    """A journal that can be crashed inside this process, to test the code that relies on it.

    Both methods may be called after a failure and after closing, and again after :class:`JournalFailure` (for example
    while there is no room), until the journal opens.
    """

    def kill(self) -> Journal:
        """The process dies: this journal cannot be used any more; the returned one has the written entries."""

    def crash(self, survivors: Callable[[int], bool]) -> Journal:
        """Power is lost: the returned journal has the synced entries, and the ``survivors`` of the rest.

        ``survivors`` is called with a number for each thing that was written and not synced.  Where no power loss can
        be simulated (a real disk), everything that was written survives, which is one of the legal outcomes.
        """
