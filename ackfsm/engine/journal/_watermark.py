"""The watermark of a log: the end that it had on stable storage, kept outside of it, so that a lost end is noticed.

A file of three marks, each as a seal is in a segment (:mod:`ackfsm.engine.journal._frame`): of the last opening, of the
last sync, and of the last clean end.  The first and the last are synced, one at a time, so that a power loss can tear
only one of them; the mark of a sync is written after it and not synced itself.  A mark is written when what it promises
is on stable storage, hence none ever runs ahead.  The newest that can be read counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ackfsm.engine.journal._disk import Disk, write_all
from ackfsm.engine.journal._frame import CLOSED, SEAL, Frame, frame_at, mark

_OPENED, _SYNCED, _ENDED = range(3)
_SIZE = len(mark(SEAL, 0, 0, 0))


class Watermark(NamedTuple):
    """In this epoch all below ``position`` was on stable storage; ``clean``: then the journal was closed."""

    epoch: int
    position: int
    clean: bool = False

    def encode(self) -> bytes:
        """Its bytes."""
        return mark(CLOSED if self.clean else SEAL, self.epoch, self.position, self.position)


def newest(data: bytes) -> Watermark | None:
    """The newest mark in a file of them; ``None`` if none can be read."""
    found = (_decoded(data[at : at + _SIZE]) for at in range(0, 3 * _SIZE, _SIZE))
    return max((each for each in found if each is not None), default=None)


def _decoded(data: bytes) -> Watermark | None:
    frame = frame_at(data, 0)
    if isinstance(frame, Frame) and frame.kind in {SEAL, CLOSED} and frame.end == _SIZE:
        return Watermark(frame.epoch, frame.position, frame.kind == CLOSED)
    return None


def shortfall(promised: Watermark, epoch: int, position: int) -> str:
    """Return the lack of a log that ends in this epoch, at this position, against ``promised``; empty if none."""
    if promised.position > position:
        count = promised.position - position
        what = "one entry is" if count == 1 else f"{count:,} entries are"
        return f"{what} missing at the end, for all below position {promised.position:,} had been synced"
    if promised.epoch > epoch:
        return (
            f"it had been opened {promised.epoch:,} times, and what is there says {epoch:,}; what came later is missing"
        )
    return ""


class WatermarkFile:
    """The file, open for writing.  Every method may raise :class:`OSError`."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk, self._path = disk, path
        self._file: int | None = None

    def open(self, start: Watermark | None) -> None:
        """Open the file; with ``start`` make that its content, durably.

        Without ``start`` the file is known to be on stable storage, and the log relies on it.  The caller syncs the
        directory before the log is used.
        """
        there = self._path.name in self._disk.names(self._path.parent)
        self._file = self._disk.open(self._path) if there or start is None else self._disk.create(self._path)
        if start is not None:
            self._put(_OPENED, 3 * start.encode())
            self._sync()

    def opened(self, promised: Watermark) -> None:
        """Record durably that a new epoch has begun."""
        self._put(_OPENED, promised.encode())
        self._sync()

    def synced(self, promised: Watermark) -> None:
        """Record that a sync is done, without another sync."""
        self._put(_SYNCED, promised.encode())

    def ended(self, promised: Watermark) -> None:
        """Record durably that the log was closed cleanly."""
        self._put(_ENDED, promised.encode())
        self._sync()

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            self._disk.close(file)

    def _put(self, slot: int, data: bytes) -> None:
        write_all(self._disk, self._live(), slot * _SIZE, data)

    def _sync(self) -> None:
        self._disk.sync(self._live())

    def _live(self) -> int:
        if self._file is None:
            raise OSError(0, "the watermark is not open")
        return self._file
