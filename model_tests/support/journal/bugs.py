"""Journals with one bug each, as journals have had them; the enumeration has to find every one."""

# ruff: noqa: D101, D102 - each class is named after its bug

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ackfsm.engine.journal import FileJournal, JournalFailure, Kind, SimulatedDisk
from ackfsm.engine.journal._entry import Entry
from ackfsm.engine.journal._frame import SEGMENT, Frame, SegmentHeader, encode
from ackfsm.engine.journal._recovery import Replay
from ackfsm.engine.journal._scan import WATERMARK, Scan, _Reader
from ackfsm.engine.journal._watermark import Watermark, WatermarkFile

JOURNAL = Path("/journal")
SEGMENT_BYTES = 200
"""Small, so that short runs fill segments."""


@dataclasses.dataclass(frozen=True)
class Bug:
    """A seeded bug: the journal that has it, and a run that can show it."""

    opened: Callable[[SimulatedDisk], FileJournal]
    run: str


def opened(disk: SimulatedDisk) -> FileJournal:
    """The journal without a bug."""
    return FileJournal(JOURNAL, segment_bytes=SEGMENT_BYTES, disk=disk)


def having(journal: type[FileJournal]) -> Callable[[SimulatedDisk], FileJournal]:
    """Opens a journal of this class."""
    return lambda disk: journal(JOURNAL, segment_bytes=SEGMENT_BYTES, disk=disk)


class Around:
    """A disk that passes everything on."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)


class ConfirmsBeforeSync(FileJournal):
    def _sync(self) -> None:
        self._synced = self._written


class WithoutDirectorySync(Around):
    def sync_directory(self, directory: Path) -> None:
        """Not done."""


class PositionUnchecked(_Reader):
    def _expected(self, header: SegmentHeader, frame: Frame | str) -> Frame | str:
        return f"epoch {frame.epoch}" if isinstance(frame, Frame) and frame.epoch != header.epoch else frame


class EpochUnchecked(_Reader):
    def _expected(self, header: SegmentHeader, frame: Frame | str) -> Frame | str:  # noqa: ARG002
        return "position" if isinstance(frame, Frame) and frame.position != self.position else frame


class NothingVouches(_Reader):
    def _proves_synced(self, frame: Frame) -> bool:  # noqa: ARG002
        return False

    def _check_watermark(self, said: Watermark | None, *, there: bool) -> None:
        """Not done."""


def reading(reader: type[_Reader]) -> Callable[[SimulatedDisk], FileJournal]:
    """Opens a journal that reads in this way."""

    class Reading(FileJournal):
        def _read(self) -> Scan:
            return reader(self._disk, self.path, self._remembered).read()

    return having(Reading)


class PromisesBeforeSync(FileJournal):
    def _sync(self) -> None:
        self._watermark.synced(Watermark(self._epoch, self._written))
        super()._sync()


class Marked(FileJournal):
    marks: type[WatermarkFile]

    def _lock_directory(self) -> int:
        self._watermark = self.marks(self._disk, self.path / WATERMARK)
        return super()._lock_directory()


class UnsyncedMarks(WatermarkFile):
    def _sync(self) -> None:
        """Not done."""


def marking(kind: type[WatermarkFile]) -> Callable[[SimulatedDisk], FileJournal]:
    """Opens a journal that keeps its watermark in this way."""

    class Marking(Marked):
        marks = kind

    return having(Marking)


class TrustsTheWatermark(FileJournal):
    def _repair(self, found: Scan) -> None:
        there = WATERMARK in self._disk.names(self.path)
        super()._repair(dataclasses.replace(found, relies_on_watermark=found.relies_on_watermark or there))


class RetriesSync(FileJournal):
    def _sync(self) -> None:
        try:
            super()._sync()
        except OSError:
            super()._sync()


class GoesOnAfterFailure(FileJournal):
    def _poison(self, doing: str, error: Exception) -> JournalFailure:
        failure = super()._poison(doing, error)
        self._failed = None
        return failure


class CutsTooFar(FileJournal):
    def _cut(self, file: int, found: Scan) -> None:
        if found.torn is not None:
            self._disk.truncate(file, SEGMENT.size)


class LeavesTheTail(FileJournal):
    def _cut(self, file: int, found: Scan) -> None:
        """Not done."""


class LeavesTheTailUnsynced(FileJournal):
    def _repair(self, found: Scan) -> None:
        disk, self._disk = self._disk, WithoutFirstSync(self._disk, skip=True)
        super()._repair(found)
        self._disk = disk


class TrustsTheCache(FileJournal):
    def _write_again(self, file: int, found: Scan) -> None:
        """Not done."""


class RemovesBeforeNamesAreSafe(FileJournal):
    def _repair(self, found: Scan) -> None:
        self._remove(found.stale)
        super()._repair(dataclasses.replace(found, stale=()))


class CommitsBeforeParts(FileJournal):
    def _absorb(self) -> list[Entry]:
        self._waiting.sort(key=lambda entry: entry[0] != Kind.COMMIT)
        return super()._absorb()


class PartsCountAlone(FileJournal):
    def append(self, kind: Kind, key: int, data: bytes = b"", transaction: int = 0) -> int:  # noqa: ARG002
        return super().append(kind, key, data)


class UnlinksBeforeSync(FileJournal):
    def _fill(self, *, base: bool) -> int:
        end = super()._fill(base=base)
        if base:
            self._remove(self._names)
        return end

    def _remove(self, names: Sequence[str]) -> None:
        super()._remove([name for name in names if name in self._disk.names(self.path)])


class RenamesBeforeSync(FileJournal):
    def _publish(self, half: Path, whole: Path) -> None:
        self._disk.rename(half, whole)
        self._disk.sync_directory(self.path)
        self._disk.sync(self._live_file())


class RenamesWithoutDirectorySync(FileJournal):
    def _publish(self, half: Path, whole: Path) -> None:
        self._disk.sync(self._live_file())
        self._disk.rename(half, whole)


class RotatesBeforeSync(FileJournal):
    def _begin(self, *, base: bool) -> None:
        disk, self._disk = self._disk, WithoutFirstSync(self._disk, skip=self._file is not None and not base)
        super()._begin(base=base)
        self._disk = disk


class WithoutFirstSync(Around):
    def __init__(self, disk: Any, *, skip: bool) -> None:
        super().__init__(disk)
        self._skip = skip

    def sync(self, file: int) -> None:
        if not self._skip:
            self._disk.sync(file)
        self._skip = False


class IgnoresShortWrites(FileJournal):
    def _put(self, file: int, offset: int, data: bytes) -> int:
        if data:
            self._disk.write(file, offset, data)
        return offset + len(data)


class SwallowsFullDisk(FileJournal):
    def _put(self, file: int, offset: int, data: bytes) -> int:
        try:
            return super()._put(file, offset, data)
        except OSError:
            return offset + len(data)


def nothing(entry: Entry, kind: Kind) -> Entry:
    """Something without effect in the place of an entry of this kind."""
    return (Kind.REMOVE, 0, b"", 0) if entry[0] == kind else entry


class RemembersInMemory(FileJournal):
    def _frames(self, position: int, entries: Sequence[Entry]) -> Iterator[bytes]:
        return super()._frames(position, [nothing(entry, Kind.REMEMBER) for entry in entries])


class MarksLater(FileJournal):
    _late: Entry | None = None

    def append(self, kind: Kind, key: int, data: bytes = b"", transaction: int = 0) -> int:
        if kind != Kind.MARK:
            return super().append(kind, key, data, transaction)
        self._late = (kind, key, data, transaction)
        return super().append(Kind.REMOVE, 0)

    def sync(self) -> int:
        below = super().sync()
        late, self._late = self._late, None
        if late is not None:
            super().append(Kind(late[0]), *late[1:])
        return below


class ForgetsOpenTransactions(FileJournal):
    def _fill(self, *, base: bool) -> int:
        self._replay.new_epoch()
        return super()._fill(base=base)


class ForgetsMarks(FileJournal):
    def _fill(self, *, base: bool) -> int:
        whole = self._replay
        self._replay = Replay(self._remembered)
        self._replay.next_key = whole.next_key
        self._replay.apply(0, (entry for entry in whole.snapshot() if entry[0] != Kind.MARK))
        end = super()._fill(base=base)
        self._replay = whole
        return end


class KeepsTransactionsOpen(_Reader):
    def _join(self, name: str, header: SegmentHeader) -> None:
        self.epoch = header.epoch
        super()._join(name, header)


class SameEpoch(FileJournal):
    def _begin(self, *, base: bool) -> None:
        self._epoch = 1
        super()._begin(base=base)


class VouchesTooEarly(FileJournal):
    def _frames(self, position: int, entries: Sequence[Entry]) -> Iterator[bytes]:
        if entries:
            yield encode(self._epoch, position, position, entries, self._salt)


class ForgetsPositions(FileJournal):
    def _open(self) -> None:
        super()._open()
        self.recovery = dataclasses.replace(self.recovery, next_position=0)
        self._written = self._synced = 0


class OrderLost(FileJournal):
    def _fill(self, *, base: bool) -> int:
        whole = self._replay
        self._replay = Replay(self._remembered)
        self._replay.next_key = whole.next_key
        self._replay.apply(0, reversed(list(whole.snapshot())))
        end = super()._fill(base=base)
        self._replay = whole
        return end


COMPACTS = "store 1, store 2, sync, remove 1, sync, compact, store 3, sync"

BUGS: Mapping[str, Bug] = {
    "confirm before sync": Bug(having(ConfirmsBeforeSync), "store 1, sync"),
    "directory never synced": Bug(lambda disk: opened(WithoutDirectorySync(disk)), "store 1, sync"),  # type: ignore[arg-type]
    "checksum without position": Bug(reading(PositionUnchecked), "store 1, sync, remove 1, sync, store 2, write"),
    "checksum without epoch": Bug(reading(EpochUnchecked), "store 1, write, crash, store 2, write"),
    "the same epoch again": Bug(having(SameEpoch), "store 1, write, crash, store 2, write"),
    "retry after a failed sync": Bug(having(RetriesSync), "store 1, failing, sync"),
    "goes on after a failed sync": Bug(having(GoesOnAfterFailure), "store 1, failing, sync, store 2, sync"),
    "tail cut too far": Bug(having(CutsTooFar), "store 1, sync, store 2, write"),
    "tail not cut before appending": Bug(having(LeavesTheTail), "store 1, write, store 2, write, tear, store 3, sync"),
    "tail cut without a sync": Bug(having(LeavesTheTailUnsynced), "store 1, write, kill"),
    "what a failed sync left in memory is trusted": Bug(
        having(TrustsTheCache), "store 1, store 2, store 3, failing, sync, reopen"
    ),
    "left-over files removed before names are safe": Bug(having(RemovesBeforeNamesAreSafe), COMPACTS),
    "commit before its parts": Bug(having(CommitsBeforeParts), "store 1 in 7, commit 7, sync"),
    "parts count without their commit": Bug(
        having(PartsCountAlone), "store 1 in 7, sync, store 2 in 7, commit 7, sync"
    ),
    "compaction unlinks before sync": Bug(having(UnlinksBeforeSync), COMPACTS),
    "rename before sync": Bug(having(RenamesBeforeSync), COMPACTS),
    "rename without directory sync": Bug(having(RenamesWithoutDirectorySync), COMPACTS),
    "next segment before the last is synced": Bug(
        having(RotatesBeforeSync),
        "store 1, store 2, store 3, store 4, store 5, store 6, store 7, write, store 8, write",
    ),
    "ignores a short write": Bug(having(IgnoresShortWrites), "short, store 1, sync"),
    "swallows a full disk": Bug(having(SwallowsFullDisk), "full, store 1, sync"),
    "remembers ids only in memory": Bug(having(RemembersInMemory), "remember 1, sync"),
    "mark written after the dispatch": Bug(having(MarksLater), "store 1, mark 1, sync"),
    "compaction forgets open transactions": Bug(
        having(ForgetsOpenTransactions), "store 1 in 7, compact, commit 7, sync"
    ),
    "compaction forgets marks": Bug(having(ForgetsMarks), "store 1, mark 1, sync, compact"),
    "compaction loses the order": Bug(having(OrderLost), "store 1, store 2, compact"),
    "a crash leaves transactions open": Bug(
        reading(KeepsTransactionsOpen),
        ", ".join(f"store {key}" for key in range(3, 13))
        + ", store 1 in 7, sync, reopen, store 2 in 7, commit 7, sync",
    ),
    "a torn end taken for damage": Bug(having(VouchesTooEarly), "store 1, write, store 2, write"),
    "watermark before the sync": Bug(having(PromisesBeforeSync), "store 1, sync"),
    "watermark not synced before a segment relies on it": Bug(marking(UnsyncedMarks), "store 1, sync"),
    "watermark that another process left is trusted": Bug(having(TrustsTheWatermark), "store 1, sync"),
    "positions begin again": Bug(having(ForgetsPositions), "store 1, sync, reopen, store 2, sync"),
}
"""Every seeded bug by name."""

DAMAGE_BUG = reading(NothingVouches)
"""Takes damage for a torn end: only damage shows it, no crash does."""
