"""The replay that all journals share, and the recovery that it gives."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from ackfsm.engine.journal._entry import ATTEMPTS, Entry, Kind

_STORE, _REMOVE, _COMMIT, _MARK, _REMEMBER = map(int, Kind)
_OVERHEAD = 13
"""Bytes of an entry in a file besides its data."""
_UNCLEAN = "not closed cleanly: what was written last may not have been synced"


@dataclasses.dataclass(frozen=True, slots=True)
class Live:
    """A copy that is stored and not removed: its data, and whether and how often it has been sent to a consumer."""

    data: bytes
    attempts: int = 0
    marked: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Torn:
    """The end of a log that was cut off: a write that had never been confirmed.

    Attributes:
        file: its name.
        offset: where the first bad byte may be, in bytes from the start of the file.
        size: how many bytes were cut.
        position: of the first entry that was cut.
        why: what is wrong with the bytes.
    """

    file: str
    offset: int
    size: int
    position: int
    why: str

    def __str__(self) -> str:
        return (
            f"{self.size:,} bytes from byte {self.offset:,} of {self.file} ({self.why}) are a write that was never"
            f" known to be synced, and are cut; they would have been position {self.position:,} and after"
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """The state of a journal as opening it has found it.

    Attributes:
        live: the copies that are stored and not removed, in the order in which they were stored.
        removed: how many removals of a stored copy were read.
        remembered: the known duplicate-ids, oldest first, each with the key that it came with.
        next_position: of the next entry.
        next_key: no key or transaction number from here on is in the journal, nor was when it was last compacted.
        epoch: how often the journal has been opened, this time included.
        entries: how many entries were read.
        dropped: how many of them were dropped because their transaction had never committed.
        size: bytes read.
        segments: files read.
        torn: the end that was cut off, if any.
        stale: names of left-over files that were removed.
        clean: it had been closed, or is new; otherwise what was written last may not have been synced.
    """

    live: dict[int, Live]
    removed: int
    remembered: dict[bytes, int]
    next_position: int
    next_key: int
    epoch: int
    entries: int = 0
    dropped: int = 0
    size: int = 0
    segments: int = 0
    torn: Torn | None = None
    stale: tuple[str, ...] = ()
    clean: bool = True

    def __str__(self) -> str:
        parts = [f"{self.entries:,} entries in {self.size:,} bytes of {self.segments:,} files"]
        parts += [f"{len(self.live):,} copies live"]
        parts += [f"{self.removed:,} removed"] * bool(self.removed)
        parts += [f"{len(self.remembered):,} duplicate-ids known"] * bool(self.remembered)
        parts += [f"{self.dropped:,} entries dropped with transactions that never committed"] * bool(self.dropped)
        parts += [f"{len(self.stale)} left-over files removed"] * bool(self.stale)
        parts += [str(self.torn)] * (self.torn is not None)
        parts += [_UNCLEAN] * (not self.clean)
        return ", ".join(parts)


def beyond(key: int, entries: Sequence[Entry]) -> int:
    """The first number from ``key`` on that is above all keys and transactions of ``entries``."""
    for _, number, _, transaction in entries:
        if number >= key:
            key = number + 1
        if transaction >= key:
            key = transaction + 1
    return key


class Replay:
    """The state that a sequence of entries leaves."""

    __slots__ = ("_disordered", "_live", "_marks", "_pending", "_remembered", "_room", "dropped", "next_key", "removed")

    def __init__(self, remembered: int) -> None:
        self._live: dict[int, tuple[int, bytes]] = {}
        self._marks: dict[int, int] = {}
        self._pending: dict[int, list[tuple[int, Entry]]] = {}
        self._remembered: dict[bytes, int] = {}
        self._room = remembered
        self._disordered = False
        self.next_key = 1
        self.removed = 0
        self.dropped = 0

    def apply(self, position: int, entries: Iterable[Entry]) -> None:  # noqa: C901 - the hot path, in one piece
        """Apply ``entries``; the first one is at ``position``."""
        live, marks, beyond_all = self._live, self._marks, self.next_key
        for entry in entries:
            kind, key, data, transaction = entry
            if key >= beyond_all:
                beyond_all = key + 1
            if transaction:
                if transaction >= beyond_all:
                    beyond_all = transaction + 1
                self._pending.setdefault(transaction, []).append((position, entry))
            elif kind == _STORE:
                live[key] = (position, data)
            elif kind == _REMOVE:
                self.removed += live.pop(key, None) is not None or self._removed_before_commit(key)
                marks.pop(key, None)
            elif kind == _MARK:
                if key in live:
                    marks[key] = ATTEMPTS.unpack(data)[0]
            elif kind == _REMEMBER:
                self._remember(key, data)
            elif kind == _COMMIT:
                self._commit(key)
            position += 1
        self.next_key = beyond_all

    def _commit(self, transaction: int) -> None:
        for position, (kind, key, data, _) in self._pending.get(transaction, ()):
            self._disordered |= kind == _STORE
            self.apply(position, [(kind, key, data, 0)])
        self._pending.pop(transaction, None)  # last, so that an interrupted commit can be repeated

    def _removed_before_commit(self, key: int) -> bool:
        """Drop the store of a removed copy from a transaction that is open, whose commit would restore it."""
        for transaction, pairs in self._pending.items():
            kept = [pair for pair in pairs if pair[1][:2] != (_STORE, key)]
            if len(kept) < len(pairs):
                self._pending[transaction] = kept
                return True
        return False

    def _remember(self, key: int, name: bytes) -> None:
        self._remembered.pop(name, None)
        self._remembered[name] = key
        while len(self._remembered) > self._room:
            del self._remembered[next(iter(self._remembered))]

    def new_epoch(self) -> None:
        """The journal was opened again: transactions that are still open never commit."""
        self.dropped += sum(map(len, self._pending.values()))
        self._pending.clear()

    def __len__(self) -> int:
        """How many entries a snapshot has."""
        pending = sum(map(len, self._pending.values()))
        return len(self._live) + len(self._marks) + len(self._remembered) + pending

    @property
    def size(self) -> int:
        """About how many bytes a snapshot takes."""
        stored = sum(len(data) for _, data in self._live.values()) + sum(map(len, self._remembered))
        pending = sum(len(entry[2]) + 8 for entries in self._pending.values() for _, entry in entries)
        return stored + pending + len(self._marks) * ATTEMPTS.size + len(self) * _OVERHEAD

    def snapshot(self) -> Iterator[Entry]:
        """The fewest entries that leave this state; never more than were applied."""
        waiting = [pair for pairs in self._pending.values() for pair in pairs]
        if waiting:
            stored = ((position, (_STORE, key, data, 0)) for key, (position, data) in self._in_order())
            yield from (entry for _, entry in sorted([*stored, *waiting], key=itemgetter(0)))
        else:
            yield from ((_STORE, key, data, 0) for key, (_, data) in self._in_order())
        yield from ((_MARK, key, ATTEMPTS.pack(attempts), 0) for key, attempts in self._marks.items())
        yield from ((_REMEMBER, key, name, 0) for name, key in self._remembered.items())

    def _in_order(self) -> Iterable[tuple[int, tuple[int, bytes]]]:
        """Return the live copies in the order of their storing, also copies of a later commit."""
        return sorted(self._live.items(), key=itemgetter(1)) if self._disordered else self._live.items()

    def live(self) -> dict[int, Live]:
        """The live copies, in the order in which they were stored."""
        marks = self._marks
        return {key: Live(data, marks.get(key, 0), key in marks) for key, (_, data) in self._in_order()}

    def recovery(self, epoch: int, position: int, entries: int, **about: Any) -> Recovery:
        """What opening number ``epoch`` has found: ``entries`` that end at ``position``, and more ``about`` them."""
        return Recovery(
            live=self.live(),
            removed=self.removed,
            remembered=dict(self._remembered),
            next_position=position,
            next_key=self.next_key,
            epoch=epoch,
            entries=entries,
            dropped=self.dropped,
            **about,
        )
