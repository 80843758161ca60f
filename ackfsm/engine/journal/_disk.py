"""The file operations that a journal needs of the operating system, as a protocol and its implementation."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from pathlib import Path
from typing import Protocol

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_OF_THE_MACHINE = {*_NO_ROOM, errno.EIO, errno.ENXIO, errno.ENODEV, errno.ENOMEM, errno.EMFILE, errno.ENFILE}


def no_room(error: BaseException) -> bool:
    """Whether a call to the operating system failed because there is no room left."""
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def machine_failed(error: BaseException) -> bool:
    """Whether a call failed because the machine is out of room or broken, not because of its arguments."""
    return isinstance(error, OSError) and error.errno in _OF_THE_MACHINE


class Disk(Protocol):
    """Files.  Every method may raise :class:`OSError`; a file is a number from :meth:`create` or :meth:`open`."""

    def make(self, directory: Path) -> None:
        """Make ``directory`` if it is missing, so that its own name is on stable storage."""

    def lock(self, directory: Path) -> int:
        """Take the advisory lock of ``directory``; raises :class:`BlockingIOError` if another has it."""

    def unlock(self, lock: int) -> None:
        """Release a lock; idempotent."""

    def names(self, directory: Path) -> list[str]:
        """The names in ``directory``, sorted."""

    def create(self, path: Path) -> int:
        """Make a file that must not exist."""

    def open(self, path: Path) -> int:
        """Open a file that exists, to write to it."""

    def close(self, file: int) -> None:
        """Close a file without a sync, or in a fork its copy of a lock, which the parent keeps."""

    def read(self, path: Path) -> bytes:
        """All bytes of a file."""

    def write(self, file: int, offset: int, data: bytes) -> int:
        """Write at ``offset`` and return how many bytes were taken: perhaps not all."""

    def sync(self, file: int) -> None:
        """Wait until the bytes of ``file``, and its length, are on stable storage."""

    def sync_directory(self, directory: Path) -> None:
        """Wait until the names in ``directory`` are on stable storage."""

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, at once."""

    def unlink(self, path: Path) -> None:
        """Remove a name."""

    def truncate(self, file: int, length: int) -> None:
        """Cut a file to ``length`` bytes."""

    def salt(self) -> int:
        """A random number below 2**31, unpredictable for the authors of the data that are stored."""


def write_all(disk: Disk, file: int, offset: int, data: bytes) -> int:
    """Write all of ``data``, in several writes if need be; returns the offset of its end.

    Raises :class:`OSError`, also if a write takes nothing.
    """
    taken = disk.write(file, offset, data) if data else 0
    while taken < len(data):
        more = disk.write(file, offset + taken, data[taken:])
        if more <= 0:
            raise OSError(0, "the disk takes no more")
        taken += more
    return offset + len(data)


class _Lock(int):
    """A lock file that is closed with this object, so that no exception can leave it locked."""

    closed = False

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the file: it stays locked as long as another process has it too."""
        if not self.closed:
            self.closed = True
            os.close(self)


class OsDisk:
    """The files of this machine."""

    def make(self, directory: Path) -> None:
        """See :meth:`Disk.make`."""
        missing = [folder for folder in (directory, *directory.parents) if not folder.exists()]
        directory.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            self.sync_directory(folder.parent)

    def lock(self, directory: Path) -> int:
        """See :meth:`Disk.lock`; the lock is on the directory itself, so that it leaves no file."""
        lock = _Lock(os.open(directory, os.O_RDONLY))
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock

    def unlock(self, lock: int) -> None:
        """See :meth:`Disk.unlock`: also for the processes that have forked from this one, and have it open."""
        if isinstance(lock, _Lock) and not lock.closed:
            fcntl.flock(lock, fcntl.LOCK_UN)
            lock.close()

    def names(self, directory: Path) -> list[str]:
        """See :meth:`Disk.names`."""
        return sorted(entry.name for entry in directory.iterdir())

    def create(self, path: Path) -> int:
        """See :meth:`Disk.create`."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)

    def open(self, path: Path) -> int:
        """See :meth:`Disk.open`."""
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def close(self, file: int) -> None:
        """See :meth:`Disk.close`."""
        if isinstance(file, _Lock):
            file.close()
        else:
            os.close(file)

    def read(self, path: Path) -> bytes:
        """See :meth:`Disk.read`."""
        return path.read_bytes()

    def write(self, file: int, offset: int, data: bytes) -> int:
        """See :meth:`Disk.write`."""
        return os.pwrite(file, data, offset)

    def sync(self, file: int) -> None:
        """See :meth:`Disk.sync`."""
        if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync leaves the data in the drive's cache
            fcntl.fcntl(file, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(file)

    def sync_directory(self, directory: Path) -> None:
        """See :meth:`Disk.sync_directory`."""
        folder = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def rename(self, old: Path, new: Path) -> None:
        """See :meth:`Disk.rename`."""
        old.rename(new)

    def unlink(self, path: Path) -> None:
        """See :meth:`Disk.unlink`."""
        path.unlink()

    def truncate(self, file: int, length: int) -> None:
        """See :meth:`Disk.truncate`."""
        os.ftruncate(file, length)

    def salt(self) -> int:
        """See :meth:`Disk.salt`."""
        return secrets.randbits(31)
