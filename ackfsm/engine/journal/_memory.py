"""A journal in memory that can be crashed; it is lost with its object."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ackfsm.engine.journal._entry import ATTEMPTS, LARGEST, NUMBERS, Entry, JournalFailure, Kind, check
from ackfsm.engine.journal._fail_stop import CLOSED_ALREADY
from ackfsm.engine.journal._protocol import REMEMBERED, Compaction
from ackfsm.engine.journal._recovery import Replay, beyond
from ackfsm.terms import InputError

_PLAIN, _MARK = (int(Kind.STORE), int(Kind.REMOVE)), int(Kind.MARK)
_BITS = NUMBERS.bit_length() - 1
"""Kinds from the first on have rules of their own; that of a mark is the length of its data."""
_UNSYNCED = 65_536
"""Beyond this number written entries count as synced, as if the operating system had written them out."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Start:
    """The entries that a crash has left for the next journal."""

    entries: list[Entry]
    position: int
    epoch: int
    next_key: int


class MemoryJournal:
    """A journal in memory that distinguishes written from synced, so that it can be crashed.

    Synced entries are kept only as the state that they leave: the size is that of what is live and of what is not
    yet synced.  When more than 65,536 entries are not synced, those that were written are at the next write, as an
    operating system writes out what it has by itself.

    Args:
        remembered: how many duplicate-ids are kept, the newest.
        start: what a crash has left; :meth:`crash` and :meth:`kill` give it.
    """

    def __init__(self, *, remembered: int = REMEMBERED, start: _Start | None = None) -> None:
        if remembered < 0:
            raise InputError(f"remembered is {remembered}; it is how many duplicate-ids are kept, from 0")
        start = start or _Start([], 0, 1, 1)
        self._remembered, self._epoch = remembered, start.epoch
        self._base = Replay(remembered)
        self._base.apply(start.position - len(start.entries), start.entries)
        self._base.new_epoch()
        self._base.next_key = start.next_key
        self._entries: list[Entry] = []
        self._synced = self._written = start.position
        self._failed: str | None = None
        self.recovery = self._base.recovery(start.epoch, start.position, len(start.entries))

    def append(self, kind: Kind, key: int, data: bytes = b"", transaction: int = 0) -> int:
        """See :meth:`ackfsm.engine.journal.Journal.append`."""
        plain = kind in _PLAIN or (kind == _MARK and len(data) == ATTEMPTS.size)
        if not plain or transaction or self._failed or type(data) is not bytes or key >> _BITS or len(data) > LARGEST:
            self._ensure_open()
            check(kind, key, data, transaction)
        entries = self._entries
        entries.append((kind, key, data, transaction))
        return self._synced + len(entries) - 1

    @property
    def _next(self) -> int:
        """The position of the next entry: derived from the entries, so that no exception can make the two differ."""
        return self._synced + len(self._entries)

    def write(self) -> int:
        """See :meth:`ackfsm.engine.journal.Journal.write`; only a crash tells written entries from others."""
        self._ensure_open()
        if len(self._entries) > _UNSYNCED:
            self._flush()
        self._written = self._next
        return self._written

    def sync(self) -> int:
        """See :meth:`ackfsm.engine.journal.Journal.sync`."""
        if self._failed is not None:
            self._ensure_open()
        self._flush()
        return self._synced

    def compact(self) -> Compaction:
        """See :meth:`ackfsm.engine.journal.Journal.compact`."""
        self._ensure_open()
        entries, size = len(self._base) + len(self._entries), self._base.size + sum(len(e[2]) for e in self._entries)
        self._flush()
        return Compaction(entries, len(self._base), size, self._base.size)

    def close(self) -> None:
        """See :meth:`ackfsm.engine.journal.Journal.close`."""
        if self._failed is None:
            self._flush()
            self._failed = CLOSED_ALREADY

    def crash(self, survivors: Callable[[int], bool]) -> MemoryJournal:
        """Return the journal after a power loss; this one stays as it is.

        ``survivors`` is asked for each entry that is written and not synced whether it had reached the disk.  The
        entries of a transaction are one record with its ``COMMIT``: they survive with it and not without it.  After an
        exception in the middle of a sync all survive, for some of them are in the state already.
        """
        kept = [
            entry
            for position, entry in enumerate(self._entries[: self._written - self._synced], self._synced)
            if entry[3] or self._failed or survivors(position)
        ]
        return self._found(kept)

    def kill(self) -> MemoryJournal:
        """Return the journal after the death of the process, with all written entries; this one stays as it is."""
        return self._found(self._entries[: self._written - self._synced])

    def _found(self, kept: list[Entry]) -> MemoryJournal:
        found = [*self._base.snapshot(), *kept]
        start = _Start(found, self._written, self._epoch + 1, beyond(self._base.next_key, found))
        return MemoryJournal(remembered=self._remembered, start=start)

    def _flush(self) -> None:
        """Apply all entries to the state; after an exception meanwhile the journal has failed, and keeps them."""
        self._written, self._failed = self._next, "a sync has begun and has not ended"
        self._base.apply(self._synced, self._entries)
        self._synced, self._entries = self._written, []
        self._failed = None

    def _ensure_open(self) -> None:
        if self._failed is not None:
            raise JournalFailure(f"the journal: {self._failed}; open the journal again to find out what it holds")
