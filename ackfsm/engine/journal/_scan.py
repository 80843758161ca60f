"""Read a directory of segments without changing it, and distinguish a torn end from damage."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path

from ackfsm.engine.journal._disk import Disk
from ackfsm.engine.journal._entry import NUMBERS, Entry, JournalDamaged, Kind, check, newer
from ackfsm.engine.journal._frame import CLOSED, KNOWN, MAGIC, SEGMENT, Frame, SegmentHeader, frame_at, newer_format
from ackfsm.engine.journal._recovery import Recovery, Replay, Torn
from ackfsm.engine.journal._watermark import Watermark, newest, shortfall
from ackfsm.terms import InputError
from ackfsm.text import shown

WATERMARK = "watermark"
"""The name of the file with the promised end of the segments (:mod:`ackfsm.engine.journal._watermark`)."""

_NAME = re.compile(r"(\d{12})\.journal")
_HALF = re.compile(r"\d{12}\.new")
_KIND = itemgetter(0)
_PLAIN_KINDS = frozenset({Kind.STORE, Kind.REMOVE})
"""Kinds of entries that need no further checks."""
_REMEDY = "nothing has been changed; restore the file from a copy, or move the directory away to begin an empty journal"


def name_of(sequence: int) -> str:
    """The name of the segment with this number."""
    return f"{sequence:012}.journal"


def is_segment(name: str) -> bool:
    """Whether a file of this name is a segment."""
    return _NAME.fullmatch(name) is not None


@dataclasses.dataclass(frozen=True, slots=True)
class Segment:
    """A file that was read: where its last good frame ends, in bytes."""

    name: str
    header: SegmentHeader
    end: int


@dataclasses.dataclass(frozen=True, slots=True)
class Scan:
    """The contents of a directory of segments.

    ``unproven`` is the good end of the last segment that no frame proves to have been synced; ``stale`` are left-over
    files; ``clean`` is true if the journal was closed, or is new; ``relies_on_watermark`` is true if its format must
    have a watermark.
    """

    replay: Replay
    segments: tuple[Segment, ...]
    unproven: bytes
    stale: tuple[str, ...]
    torn: Torn | None
    position: int
    entries: int
    size: int
    clean: bool
    relies_on_watermark: bool

    def recovery(self, epoch: int) -> Recovery:
        """Return the recovery, as of opening number ``epoch``."""
        return self.replay.recovery(
            epoch,
            self.position,
            self.entries,
            size=self.size,
            segments=len(self.segments),
            torn=self.torn,
            clean=self.clean,
            stale=self.stale,
        )


def scan(disk: Disk, directory: Path, remembered: int) -> Scan:
    """Read the journal in ``directory``.

    Raises :class:`JournalDamaged` with file, byte, position and remedy where something is missing or wrong that had
    been on stable storage.
    """
    return _Reader(disk, directory, remembered).read()


class _Reader:
    """One reading, segment by segment."""

    def __init__(self, disk: Disk, directory: Path, remembered: int) -> None:
        self.disk, self.directory = disk, directory
        self.replay = Replay(remembered)
        self.position = self.entries = self.size = self.epoch = 0
        self.closed = False
        self.unproven = b""
        self.torn: Torn | None = None
        self.segments: list[Segment] = []

    def read(self) -> Scan:
        names = self.disk.names(self.directory)
        watermark = self._watermark(names)  # first: a journal that is in use grows while it is read
        found = {int(match[1]): name for name in names if (match := _NAME.fullmatch(name))}
        wanted = self._wanted(found)
        for sequence in wanted:
            self._segment(sequence, found[sequence], last=sequence == wanted[-1])
        self._check_watermark(watermark, there=WATERMARK in names)
        used = {segment.name for segment in self.segments}
        stale = tuple(name for name in names if name not in used and (_NAME.fullmatch(name) or _HALF.fullmatch(name)))
        return Scan(
            self.replay,
            tuple(self.segments),
            self.unproven,
            stale,
            self.torn,
            self.position,
            self.entries,
            self.size,
            self.torn is None and (self.closed or not self.segments),
            self._relies_on_watermark(),
        )

    def _watermark(self, names: Sequence[str]) -> Watermark | None:
        return newest(self.disk.read(self.directory / WATERMARK)) if WATERMARK in names else None

    def _check_watermark(self, promised: Watermark | None, *, there: bool) -> None:
        """Refuse a log that ends before its promised end, or whose promised end is missing."""
        if promised is None:
            if self._relies_on_watermark():
                why = "no mark in it can be read" if there else "the file is missing"
                raise self._damaged(WATERMARK, 0, None, f"{why}, so nothing says how far the segments should go")
            return
        why = shortfall(promised, self.epoch, self.position)
        if not why and promised == (self.epoch, self.position, True) and not self.closed:
            why = "the journal had been closed, and the mark of that is missing"
        if why:
            name, end = (self.segments[-1].name, self.segments[-1].end) if self.segments else (name_of(1), 0)
            raise self._damaged(name, end, self.position, f"{why} (so says the file {WATERMARK})")

    def _relies_on_watermark(self) -> bool:
        return bool(self.segments) and self.segments[-1].header.format > 1

    def _wanted(self, found: dict[int, str]) -> list[int]:
        """The numbers of the segments from the last base on."""
        wanted: list[int] = []
        for sequence in sorted(found, reverse=True):
            wanted.insert(0, sequence)
            header = self._header(sequence, found[sequence], self.disk.read(self.directory / found[sequence]))
            if header.base:
                return wanted
            if sequence - 1 not in found:
                raise self._damaged(name_of(sequence - 1), 0, header.first, "the file is missing")
        return wanted

    def _header(self, sequence: int, name: str, data: bytes) -> SegmentHeader:
        header = SegmentHeader.decode(data)
        unknown = newer_format(data)
        if unknown is not None:
            raise newer(shown(str(self.directory / name)), unknown, KNOWN)
        if isinstance(header, str):
            raise self._damaged(name, 0, None, header)
        if header.sequence != sequence:
            raise self._damaged(
                name, 0, header.first, f"it is the segment {name_of(header.sequence)} under another name"
            )
        return header

    def _segment(self, sequence: int, name: str, *, last: bool) -> None:
        data = self.disk.read(self.directory / name)
        header = self._header(sequence, name, data)
        self._join(name, header)
        end = self._frames(name, header, data)
        if end < len(data):
            self._judge(name, header, data, end, last=last)
        self.segments.append(Segment(name, header, end))
        self.size += end

    def _join(self, name: str, header: SegmentHeader) -> None:
        """Check that a segment begins where the one before it ended."""
        if self.segments and header.first != self.position:
            why = f"it begins at position {header.first:,}, and the segment before it ends at {self.position:,}"
            raise self._damaged(name, 0, self.position, why)
        if header.epoch != self.epoch:
            self.replay.new_epoch()
        self.position, self.epoch, self.closed = header.first, header.epoch, False
        self.replay.next_key = max(self.replay.next_key, header.next_key)

    def _frames(self, name: str, header: SegmentHeader, data: bytes) -> int:
        """Take in all good frames; returns where the last of them ends."""
        at = SEGMENT.size
        frames: list[Frame] = []
        while at < len(data):
            frame = self._expected(header, frame_at(data, at, header.salt))
            if isinstance(frame, str):
                break
            entries = frame.entries()
            if isinstance(entries, str):
                raise self._damaged(name, at, frame.position, entries)
            if entries:
                beyond = max(max(key, transaction) for _, key, _, transaction in entries) + 1
                wrong = "" if beyond <= NUMBERS and _PLAIN_KINDS.issuperset(map(_KIND, entries)) else _error_in(entries)
                if wrong:
                    raise self._damaged(name, at, frame.position, wrong)
                self.replay.apply(frame.position, entries)
            self.position, self.entries, self.closed = (
                frame.position + frame.count,
                self.entries + frame.count,
                frame.kind == CLOSED,
            )
            at = frame.end
            frames.append(frame)
        self.unproven = data[_proven_end(frames, header.first) : at]
        return at

    def _expected(self, header: SegmentHeader, frame: Frame | str) -> Frame | str:
        if isinstance(frame, str):
            return frame
        if frame.epoch != header.epoch:
            return f"a frame of epoch {frame.epoch}, not {header.epoch}"
        if frame.position != self.position:
            return f"a frame of position {frame.position:,}, not {self.position:,}"
        return frame

    def _judge(self, name: str, header: SegmentHeader, data: bytes, end: int, *, last: bool) -> None:
        """Distinguish a torn end from damage: nothing at or behind it may be known to have been on stable storage."""
        why = self._expected(header, frame_at(data, end, header.salt))
        text = why if isinstance(why, str) else "no frame begins here"
        if not last:
            raise self._damaged(name, end, self.position, f"{text}, and there is a segment after it")
        at = data.find(MAGIC, end)
        while at >= 0:
            frame = frame_at(data, at, header.salt)
            if isinstance(frame, Frame) and frame.epoch == header.epoch and self._proves_synced(frame):
                reason = f"{text}, and the frame at byte {at:,} says that all below {frame.watermark:,} had been synced"
                raise self._damaged(name, end, self.position, reason)
            at = data.find(MAGIC, at + 1)
        self.torn = Torn(name, end, len(data) - end, self.position, text)

    def _proves_synced(self, frame: Frame) -> bool:
        """Whether a frame proves that the bytes before it had been on stable storage."""
        return frame.watermark > self.position or (frame.kind == CLOSED and frame.watermark == self.position)

    def _damaged(self, name: str, at: int, position: int | None, why: str) -> JournalDamaged:
        where = "" if position is None else f" (position {position:,})"
        return JournalDamaged(f"{shown(str(self.directory / name))}, byte {at:,}{where}: {why}; {_REMEDY}")


def _error_in(entries: Sequence[Entry]) -> str:
    """Return the defect of the entries of a good frame in words; empty if there is none."""
    for kind, key, data, transaction in entries:
        try:
            check(kind, key, data, transaction)
        except InputError as error:
            return f"{error}, or use the version of ackfsm that wrote it"
    return ""


def _proven_end(frames: Sequence[Frame], first: int) -> int:
    """The offset up to which the frames themselves prove that they had been synced, in bytes."""
    watermark = max((frame.watermark for frame in frames), default=first)
    safe = [frame.end for frame in frames if frame.position + frame.count <= watermark]
    return max(safe, default=SEGMENT.size)
