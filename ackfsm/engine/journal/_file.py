"""A journal in a directory of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path

from ackfsm.engine.journal._disk import Disk, OsDisk, machine_failed, write_all
from ackfsm.engine.journal._entry import Entry
from ackfsm.engine.journal._fail_stop import BufferedJournal
from ackfsm.engine.journal._frame import CLOSED, SEAL, SEGMENT, SegmentHeader, encode, mark
from ackfsm.engine.journal._protocol import REMEMBERED, Compaction
from ackfsm.engine.journal._recovery import Replay
from ackfsm.engine.journal._scan import WATERMARK, Scan, name_of, scan
from ackfsm.engine.journal._simulated import SimulatedDisk
from ackfsm.engine.journal._watermark import Watermark, WatermarkFile
from ackfsm.terms import InputError
from ackfsm.text import shown

_DATA = itemgetter(2)
_MANY = 8
"""From this number on the segments are merged when the journal is opened."""


class FileJournal(BufferedJournal):
    """A directory of segments, each a file of frames with checksums (:mod:`ackfsm.engine.journal._frame`).

    Everything appended since the last write goes out as one frame, and one sync covers all of it.  Opening cuts what
    a crash has torn at the end, and refuses damage (:class:`JournalDamaged`).  When a segment is full, and what is
    dead takes more room than what is live, the live entries move to a new segment and the old ones go.

    Args:
        path: the directory; it is made if it is missing.
        segment_bytes: the size from which a segment is full.
        group: the largest frame, in bytes; a longer write is several frames.
        remembered: how many duplicate-ids are kept, the newest.
        disk: the files; those of this machine by default.

    Raises :class:`JournalDamaged` (nothing is changed then), :class:`ackfsm.terms.InputError` if the directory is in
    use or cannot be read, :class:`JournalFailure` if the machine fails, or has no room.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        segment_bytes: int = 16 * 2**20,
        group: int = 2**20,
        remembered: int = REMEMBERED,
        disk: Disk | None = None,
    ) -> None:
        for name, number in (("segment_bytes", segment_bytes), ("group", group), ("remembered", remembered + 1)):
            if number < 1:
                raise InputError(f"{name} is {number}; it is a whole number from 1 (remembered: from 0)")
        self.path = Path(path)
        self._name = shown(str(path))
        self._segment_bytes, self._group, self._remembered = segment_bytes, group, remembered
        self._disk = OsDisk() if disk is None else disk
        self._file: int | None = None
        self._lock: int | None = None
        self._watermark = WatermarkFile(self._disk, self.path / WATERMARK)
        self._watch_forks()
        try:
            self._lock = self._lock_directory()
            self._open()
        except BaseException:
            self._close_resources()
            raise

    # opening

    def _lock_directory(self) -> int:
        try:
            self._disk.make(self.path)
            return self._disk.lock(self.path)
        except BlockingIOError:
            raise InputError(f"{self._name} is in use; close the journal that has it open") from None
        except OSError as error:
            if machine_failed(error):
                raise self._poison("opening", error) from error
            raise InputError(f"{self._name} cannot be a journal ({error.strerror}); name a directory") from None

    def _open(self) -> None:
        found = self._read()
        self._replay: Replay = found.replay
        self._replay.new_epoch()
        self._waiting = []
        self._written = self._synced = found.position
        self._epoch = found.segments[-1].header.epoch + 1 if found.segments else 1
        self._sequence = found.segments[-1].header.sequence if found.segments else 0
        self._names = [segment.name for segment in found.segments]
        self._older = found.size
        self._first = found.position - found.entries
        self._offset = 0
        with self._during("opening"):
            self._repair(found)
            many = len(found.segments) >= _MANY or self._compaction_pays()
            self._begin(base=many or not found.segments)
            self._watermark.opened(self._promised())
        self.recovery = found.recovery(self._epoch)

    def _read(self) -> Scan:
        try:
            return scan(self._disk, self.path, self._remembered)
        except OSError as error:
            if machine_failed(error):
                raise self._poison("reading", error) from error
            raise InputError(f"{self._name} cannot be read ({error.strerror}); mend that, then open it again") from None

    def _repair(self, found: Scan) -> None:
        """Cut the torn end, sync the rest, remove left-over files."""
        if found.segments:
            file = self._disk.open(self.path / found.segments[-1].name)
            try:
                self._cut(file, found)
                self._write_again(file, found)
                self._disk.sync(file)
            finally:
                self._disk.close(file)
        self._watermark.open(None if found.relies_on_watermark else Watermark(self._epoch - 1, self._written))
        self._disk.sync_directory(self.path)
        self._remove(found.stale)

    def _cut(self, file: int, found: Scan) -> None:
        if found.torn is not None:
            self._disk.truncate(file, found.torn.offset)

    def _write_again(self, file: int, found: Scan) -> None:
        """Rewrite what nothing proves to be synced: after a failed sync no later sync would write it."""
        self._put(file, found.segments[-1].end - len(found.unproven), found.unproven)

    # the protocol

    def compact(self) -> Compaction:
        """See :meth:`ackfsm.engine.journal.Journal.compact`; nothing else happens meanwhile."""
        with self._during("compacting"):
            return self._compact()

    def _end(self) -> None:
        """Write the mark of a clean end, which makes every later damage visible."""
        self._put(self._live_file(), self._offset, self._mark(CLOSED, self._synced))
        self._disk.sync(self._live_file())
        self._watermark.ended(self._promised(clean=True))

    # writing

    def _write_and_sync(self) -> None:
        if self._waiting:
            self._write()
        if self._synced < self._written:
            self._sync()

    def _write(self) -> None:
        entries = self._absorb()
        if self._offset >= self._segment_bytes:
            if self._compaction_pays():
                self._rebase()
                return
            self._begin(base=False)
        data = b"".join(self._frames(self._written, entries))
        self._offset = self._put(self._live_file(), self._offset, data)
        self._written, self._waiting = self._next, []

    def _absorb(self) -> list[Entry]:
        """Apply the waiting entries to the state, and return them."""
        entries = self._waiting
        if entries:
            self._replay.apply(self._written, entries)
        return entries

    def _frames(self, position: int, entries: Sequence[Entry]) -> Iterator[bytes]:
        """Yield the frames of ``entries``; the first one is at ``position``."""
        for part in _parts(entries, self._group) if entries else ():
            yield encode(self._epoch, position, self._synced, part, self._salt)
            position += len(part)

    def _put(self, file: int, offset: int, data: bytes) -> int:
        """Write all of ``data``; returns where it ends."""
        return write_all(self._disk, file, offset, data)

    def _sync(self) -> None:
        """Sync, then write a seal, which proves the bytes before it until the next frame overwrites it."""
        self._disk.sync(self._live_file())
        self._synced = self._written
        self._put(self._live_file(), self._offset, self._mark(SEAL, self._synced))
        self._watermark.synced(self._promised())

    def _promised(self, *, clean: bool = False) -> Watermark:
        """The end that the watermark may promise now."""
        return Watermark(self._epoch, self._synced, clean)

    # segments

    def _compaction_pays(self) -> bool:
        """Whether more is dead than live, so that compaction copies less than was appended before."""
        size = self._older + self._offset
        return size > SEGMENT.size and size >= 2 * self._replay.size + SEGMENT.size

    def _compact(self) -> Compaction:
        size, entries = self._older + self._offset, self._next - self._first
        self._absorb()
        self._rebase()
        return Compaction(entries, len(self._replay), size, self._offset)

    def _rebase(self) -> None:
        self._begin(base=True)
        self._watermark.synced(self._promised())

    def _begin(self, *, base: bool) -> None:
        """Start a new segment; a ``base`` begins with the state, so that no segment before it is needed."""
        if self._file is not None and not base:
            self._disk.sync(self._file)
            self._synced = self._written
        older = self._names
        previous, previous_end = self._file, self._offset
        self._sequence += 1
        self._salt = self._disk.salt()
        half, whole = self.path / f"{self._sequence:012}.new", self.path / name_of(self._sequence)
        self._file = self._disk.create(half)
        if previous is not None:
            self._disk.close(previous)
        self._offset = self._fill(base=base)
        self._publish(half, whole)
        if base:
            self._written, self._waiting = self._next, []
            self._synced = self._written
            self._older, self._names = 0, [whole.name]
            self._remove(older)
        else:
            self._older, self._names = self._older + previous_end, [*older, whole.name]

    def _publish(self, half: Path, whole: Path) -> None:
        """Publish a segment once all of it is on stable storage; returns when its name is, too."""
        self._disk.sync(self._live_file())
        self._disk.rename(half, whole)
        self._disk.sync_directory(self.path)

    def _fill(self, *, base: bool) -> int:
        """Write the header of a segment, for a base also the state and a permanent seal; returns where it ends."""
        entries = list(self._replay.snapshot()) if base else []
        first = self._next - len(entries) if base else self._written
        self._first = first if base else self._first
        header = SegmentHeader(base, self._epoch, self._sequence, first, self._replay.next_key, self._salt)
        data = header.encode()
        offset = 0
        for frame in (*self._frames(first, entries), *([self._mark(SEAL, self._next)] if entries else [])):
            if len(data) > self._group:
                offset = self._put(self._live_file(), offset, data)
                data = b""
            data += frame
        return self._put(self._live_file(), offset, data)

    def _mark(self, kind: int, position: int) -> bytes:
        return mark(kind, self._epoch, position, position, self._salt)

    def _remove(self, names: Sequence[str]) -> None:
        for name in names:
            self._disk.unlink(self.path / name)
        if names:
            self._disk.sync_directory(self.path)

    # faults

    def kill(self) -> FileJournal:
        """See :meth:`ackfsm.engine.journal.Crashable.kill`."""
        self._failed = "its process is dead"
        self._close_resources()
        if isinstance(self._disk, SimulatedDisk):
            self._disk.kill()
        return self._reopen()

    def crash(self, survivors: Callable[[int], bool]) -> FileJournal:
        """See :meth:`ackfsm.engine.journal.Crashable.crash`; only a :class:`SimulatedDisk` can lose its bytes."""
        self._failed = "its machine has lost power"
        self._close_resources()
        if isinstance(self._disk, SimulatedDisk):
            self._disk.lose_power(survivors)
        return self._reopen()

    def _reopen(self) -> FileJournal:
        return FileJournal(
            self.path,
            segment_bytes=self._segment_bytes,
            group=self._group,
            remembered=self._remembered,
            disk=self._disk,
        )

    # failure

    def _live_file(self) -> int:
        if self._file is None:
            raise OSError(0, "no segment is open")
        return self._file

    def _close_resources(self) -> None:
        self._close_files()
        if self._lock is not None:
            self._disk.unlock(self._lock)
            self._lock = None

    def _close_files(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            self._disk.close(file)
        self._watermark.close()

    def _forked(self) -> None:
        self._close_files()
        lock, self._lock = self._lock, None
        if lock is not None:
            self._disk.close(lock)


def _parts(entries: Sequence[Entry], group: int) -> Iterator[Sequence[Entry]]:
    """``entries`` in parts that are no longer than ``group`` bytes as frames, unless one entry is."""
    if sum(map(len, map(_DATA, entries))) + 21 * len(entries) <= group:
        yield entries
        return
    begin = size = 0
    for number, entry in enumerate(entries):
        size += len(entry[2]) + 21
        if size > group and number > begin:
            yield entries[begin:number]
            begin, size = number, len(entry[2]) + 21
    yield entries[begin:]
