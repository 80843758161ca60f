"""A simulated disk that can lose power: every state that it may then have, and faults that can be switched on.

It guarantees only what POSIX guarantees: a sync of a file makes its bytes and length durable, a sync of a
directory its names.  Later changes may be there or not, in any combination, and a write may be torn.
"""

from __future__ import annotations

import dataclasses
import errno
import functools
import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias, TypeVar

Image: TypeAlias = Mapping[str, bytes]
"""What a directory holds after a crash: names and bytes."""

_T = TypeVar("_T")

_OLD, _FRAMES = 4, 8
"""How many former contents and former writes of a file may show up where a write did not arrive."""


@dataclasses.dataclass(slots=True, kw_only=True)
class DiskFaults:
    """The faults of a :class:`SimulatedDisk`; each may be switched at any time.

    Attributes:
        sync_fails: so many of the next syncs of files fail; what they should have synced no later sync makes durable.
        sync_lies: every sync of a file succeeds and does nothing.
        short_writes: a write takes only half of what it is given (all of a single byte).
        capacity: bytes that the disk has in all; a write that needs more takes what there is room for, then fails.
    """

    sync_fails: int = 0
    sync_lies: bool = False
    short_writes: bool = False
    capacity: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class _Change:
    """A write at ``offset``, or without data a truncation to it, not durable; ``stuck`` if no sync makes it so."""

    offset: int
    data: bytes | None
    stuck: bool = False

    def apply(self, content: bytearray, data: bytes | None = None, begin: int = 0) -> None:
        data = self.data if data is None else data
        if data is None:
            del content[self.offset :]
            content.extend(bytes(self.offset - len(content)))
        else:
            at = self.offset + begin
            content.extend(bytes(max(0, at - len(content))))
            content[at : at + len(data)] = data


@dataclasses.dataclass(frozen=True, slots=True)
class _File:
    durable: bytes = b""
    current: bytes = b""
    pending: tuple[_Change, ...] = ()
    frames: tuple[bytes, ...] = ()

    def changed(self, change: _Change) -> _File:
        content = bytearray(self.current)
        change.apply(content)
        frames = (*self.frames, change.data)[-_FRAMES:] if change.data else self.frames
        return _File(self.durable, bytes(content), (*self.pending, change), frames)

    def synced(self) -> _File:
        content = bytearray(self.durable)
        stuck = tuple(change for change in self.pending if change.stuck)
        for change in self.pending:
            if not change.stuck:
                change.apply(content)
        return _File(bytes(content) if stuck else self.current, self.current, stuck, self.frames)

    def failed(self) -> _File:
        pending = tuple(dataclasses.replace(change, stuck=True) for change in self.pending)
        return _File(self.durable, self.current, pending, self.frames)


_Names: TypeAlias = Mapping[str, int | None]


@dataclasses.dataclass(frozen=True, slots=True)
class DiskState:
    """A disk at one moment: its durable and its pending writes."""

    files: Mapping[int, _File]
    names: Mapping[str, int]
    pending: tuple[_Names, ...]
    old: tuple[bytes, ...]

    def images(self, *, fine: bool = True) -> Iterator[Image]:
        """Every legal content after a power loss now, each perhaps more than once.

        Any subset of the changes of names and of the writes since the last sync; overlapping writes in either order;
        one write torn at any byte (``fine``) or in the middle; a file as long as it was with zeros or old bytes in it.
        """
        for names in self._names():
            coarse = [_coarse_contents(self.files[inode], self.old) for inode in names.values()]
            for contents in itertools.product(*coarse):
                yield dict(zip(names, contents, strict=True))
            if fine:
                yield from self._finely(names)

    def _finely(self, names: Mapping[str, int]) -> Iterator[Image]:
        """One write torn at every byte; of the other files all or none of the writes have arrived."""
        for others in ("durable", "current"):
            rest = {name: getattr(self.files[inode], others) for name, inode in names.items()}
            for name, inode in names.items():
                for content in dict.fromkeys(_contents(self.files[inode], self.old, fine=True)):
                    yield {**rest, name: content}

    def current(self) -> dict[str, int]:
        """The names as a process sees them, each with the number of its file."""
        return _renamed(self.names, self.pending)

    def torn(self) -> Image:
        """One of :meth:`images`: all names, and of each file only the last write, with zeros where the others were."""
        files = ((name, self.files[inode]) for name, inode in self.current().items())
        return {name: _applied(file.durable, file.pending[-1:]) for name, file in files}

    def killed(self) -> SimulatedDisk:
        """Return the disk after the death of the process: unsynced writes are still pending."""
        disk = SimulatedDisk(old=self.old)
        disk.load(self)
        return disk

    def disk(self, image: Image) -> SimulatedDisk:
        """The disk after a power loss that has left ``image``, one of :meth:`images`; its faults are gone."""
        contents = [file.current for file in self.files.values() if file.current]
        return SimulatedDisk(image, old=dict.fromkeys([*self.old, *contents]))

    def _names(self) -> Iterator[dict[str, int]]:
        found: set[tuple[tuple[str, int], ...]] = set()
        for chosen in _subsets(self.pending):
            present = _renamed(self.names, chosen)
            if tuple(present.items()) not in found:
                found.add(tuple(present.items()))
                yield present


def _contents(file: _File, old: tuple[bytes, ...], *, fine: bool) -> Iterator[bytes]:
    """Every legal content of a file after a power loss, each perhaps more than once."""
    for chosen in _subsets(file.pending):
        yield from _orders(file.durable, chosen)
        yield from _long(file, old, chosen)
    for number, change in enumerate(file.pending):
        others = file.pending[:number], file.pending[number + 1 :]
        for before, after in ((others[0], ()), others, ((), ())):
            yield from _torn(file.durable, before, change, after, fine=fine)


@functools.lru_cache(maxsize=1_000)
def _coarse_contents(file: _File, old: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The same, each once, with writes torn in the middle: a recovery changes few files of a disk."""
    return tuple(dict.fromkeys(_contents(file, old, fine=False))) if file.pending else (file.durable,)


def _long(file: _File, old: tuple[bytes, ...], chosen: tuple[_Change, ...]) -> Iterator[bytes]:
    """Contents of the full length, with zeros or old bytes where writes have not arrived."""
    missing = [change for change in file.pending if change not in chosen and change.data]
    if not missing:
        return
    for source in (b"", *old, *file.frames):
        content = bytearray(file.durable)
        for change in file.pending:
            if change in chosen or change.data is None:
                change.apply(content)
                continue
            end = change.offset + len(change.data)
            older = source[change.offset : end] if source in old else source[: len(change.data)]
            had = max(0, len(file.durable) - change.offset)
            change.apply(content, older.ljust(len(change.data), b"\0")[had:], had)
        yield bytes(content)


def _renamed(names: Mapping[str, int], changes: Iterable[_Names]) -> dict[str, int]:
    after: dict[str, int | None] = dict(names)
    for change in changes:
        after.update(change)
    return {name: inode for name, inode in sorted(after.items()) if inode is not None}


def _subsets(items: tuple[_T, ...]) -> Iterator[tuple[_T, ...]]:
    for size in range(len(items) + 1):
        yield from itertools.combinations(items, size)


def _applied(durable: bytes, changes: Iterable[_Change]) -> bytes:
    content = bytearray(durable)
    for change in changes:
        change.apply(content)
    return bytes(content)


def _orders(durable: bytes, chosen: tuple[_Change, ...]) -> Iterator[bytes]:
    """The writes in their order, and with each overlapping pair exchanged."""
    yield _applied(durable, chosen)
    for i, j in itertools.combinations(range(len(chosen)), 2):
        if _overlap(chosen[i], chosen[j]):
            order = list(chosen)
            order.insert(j, order.pop(i))
            yield _applied(durable, order)


def _overlap(one: _Change, other: _Change) -> bool:
    if one.data is None or other.data is None:
        return False
    return one.offset < other.offset + len(other.data) and other.offset < one.offset + len(one.data)


def _torn(
    durable: bytes, before: Iterable[_Change], change: _Change, after: Iterable[_Change], *, fine: bool
) -> Iterator[bytes]:
    """Only the beginning, or only the end, of one write has arrived."""
    if change.data is None:
        return
    size = len(change.data)
    for cut in range(1, size) if fine else sorted({size // 2} - {0}):
        for begin, part in ((0, change.data[:cut]), (cut, change.data[cut:])):
            content = bytearray(_applied(durable, before))
            change.apply(content, part, begin)
            yield _applied(bytes(content), after)


class SimulatedDisk:
    """One directory in memory (:class:`ackfsm.engine.journal.Disk`).

    Args:
        image: what it holds from the start, durably.
        old: former contents of files, which may show up where a write did not arrive.
        faults: what goes wrong.

    ``watch``, if set, is called before each operation that changes something or syncs, with its name.
    """

    def __init__(
        self, image: Image | None = None, *, old: Iterable[bytes] = (), faults: DiskFaults | None = None
    ) -> None:
        self.faults = faults or DiskFaults()
        self.watch: Callable[[str], None] | None = None
        self._files = {number: _File(data, data) for number, data in enumerate((image or {}).values())}
        self._names = dict(zip(image or {}, self._files, strict=True))
        self._durable = dict(self._names)
        self._pending: list[_Names] = []
        self._old = tuple(old)[-_OLD:]
        self._open: dict[int, int] = {}
        self._writes: list[tuple[int, int, int]] = []
        self._locked: int | None = None
        self._handles = itertools.count(3)
        self._salts = itertools.count()

    @property
    def state(self) -> DiskState:
        """All of it, at this moment."""
        return DiskState(dict(self._files), dict(self._durable), tuple(self._pending), self._old)

    def load(self, state: DiskState) -> None:
        """Take over ``state``, pending changes included."""
        self._files, self._names, self._durable = dict(state.files), state.current(), dict(state.names)
        self._pending = list(state.pending)

    @property
    def image(self) -> Image:
        """The contents as a process reads them now."""
        return {name: self._files[inode].current for name, inode in sorted(self._names.items())}

    def equal_sized_writes(self, name: str) -> Iterator[tuple[int, int, int]]:
        """Pairs of different writes of a file that have the same size: both offsets, and the size."""
        inode = self._names[name]
        data = self._files[inode].current
        places = sorted({(size, offset) for number, offset, size in self._writes if number == inode})
        for (size, one), (other_size, other) in itertools.combinations(places, 2):
            if size == other_size and one + size <= other and data[one : one + size] != data[other : other + size]:
                yield one, other, size

    def kill(self) -> None:
        """The process dies: files are closed, the lock is released, writes stay pending."""
        self._open.clear()
        self._locked = None

    def lose_power(self, survives: Callable[[int], bool]) -> None:
        """Power is lost and comes back: pending changes are kept if ``survives`` says so, by their number."""
        state, asked = self.state, itertools.count()
        names = _renamed(state.names, [change for change in state.pending if survives(next(asked))])
        image = {}
        for name, inode in names.items():
            file = state.files[inode]
            image[name] = _applied(file.durable, [change for change in file.pending if survives(next(asked))])
        self.load(state.disk(image).state)
        self.kill()

    def make(self, directory: Path) -> None:
        """See :meth:`ackfsm.engine.journal.Disk.make`; there is one directory, and it exists."""

    def lock(self, directory: Path) -> int:
        """See :meth:`ackfsm.engine.journal.Disk.lock`."""
        if self._locked is not None:
            raise BlockingIOError(errno.EAGAIN, f"{directory} is locked")
        self._locked = next(self._handles)
        return self._locked

    def unlock(self, lock: int) -> None:
        """See :meth:`ackfsm.engine.journal.Disk.unlock`."""
        if self._locked == lock:
            self._locked = None

    def names(self, directory: Path) -> list[str]:  # noqa: ARG002 - there is one
        """See :meth:`ackfsm.engine.journal.Disk.names`."""
        return sorted(self._names)

    def create(self, path: Path) -> int:
        """See :meth:`ackfsm.engine.journal.Disk.create`."""
        if path.name in self._names:
            raise FileExistsError(errno.EEXIST, "it exists", str(path))
        self._step(f"create {path.name}")
        inode = len(self._files)
        self._files[inode] = _File()
        self._rename({path.name: inode})
        return self._handle(inode)

    def open(self, path: Path) -> int:
        """See :meth:`ackfsm.engine.journal.Disk.open`."""
        return self._handle(self._inode(path))

    def close(self, file: int) -> None:
        """See :meth:`ackfsm.engine.journal.Disk.close`."""
        self._open.pop(file, None)

    def read(self, path: Path) -> bytes:
        """See :meth:`ackfsm.engine.journal.Disk.read`."""
        return self._files[self._inode(path)].current

    def write(self, file: int, offset: int, data: bytes) -> int:
        """See :meth:`ackfsm.engine.journal.Disk.write`."""
        self._step(f"write {len(data)} bytes at {offset}")
        taken = self._taken(self._open[file], offset, len(data))
        if taken:
            self._change(file, _Change(offset, data[:taken]))
        return taken

    def _taken(self, inode: int, offset: int, size: int) -> int:
        taken = max(1, size // 2) if self.faults.short_writes else size
        if self.faults.capacity is None:
            return taken
        others = sum(len(self._files[other].current) for other in set(self._names.values()) - {inode})
        room = self.faults.capacity - others - offset
        if room <= 0:
            raise OSError(errno.ENOSPC, "the disk is full")
        return min(taken, room)

    def sync(self, file: int) -> None:
        """See :meth:`ackfsm.engine.journal.Disk.sync`."""
        self._step("sync")
        inode = self._open[file]
        if self.faults.sync_fails:
            self.faults.sync_fails -= 1
            self._files[inode] = self._files[inode].failed()
            raise OSError(errno.EIO, "the disk has failed")
        if not self.faults.sync_lies:
            self._files[inode] = self._files[inode].synced()

    def sync_directory(self, directory: Path) -> None:
        """See :meth:`ackfsm.engine.journal.Disk.sync_directory`."""
        self._step(f"sync directory {directory.name}")
        self._durable, self._pending = dict(self._names), []

    def rename(self, old: Path, new: Path) -> None:
        """See :meth:`ackfsm.engine.journal.Disk.rename`."""
        inode = self._inode(old)
        self._step(f"rename {old.name} {new.name}")
        self._rename({old.name: None, new.name: inode})

    def unlink(self, path: Path) -> None:
        """See :meth:`ackfsm.engine.journal.Disk.unlink`."""
        gone = self._files[self._inode(path)].current
        self._step(f"unlink {path.name}")
        self._rename({path.name: None})
        self._old = (*self._old, gone)[-_OLD:]

    def truncate(self, file: int, length: int) -> None:
        """See :meth:`ackfsm.engine.journal.Disk.truncate`."""
        self._step(f"truncate to {length}")
        self._change(file, _Change(length, None))

    def salt(self) -> int:
        """See :meth:`ackfsm.engine.journal.Disk.salt`; the same in each run."""
        return zlib.crc32(b"salt %d" % next(self._salts)) >> 1

    def _step(self, what: str) -> None:
        if self.watch is not None:
            self.watch(what)

    def _inode(self, path: Path) -> int:
        if path.name not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        return self._names[path.name]

    def _handle(self, inode: int) -> int:
        handle = next(self._handles)
        self._open[handle] = inode
        return handle

    def _change(self, file: int, change: _Change) -> None:
        inode = self._open[file]
        self._files[inode] = self._files[inode].changed(change)
        if change.data is not None:
            self._writes.append((inode, change.offset, len(change.data)))

    def _rename(self, change: _Names) -> None:
        self._pending.append(change)
        for name, inode in change.items():
            if inode is None:
                self._names.pop(name, None)
            else:
                self._names[name] = inode
