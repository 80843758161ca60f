"""Disks that fail: one that is full, and one that loses what was not synced.  Both are mounted, which needs root."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ackfsm.support.files import make_folder
from ackfsm.terms import HostError, InputError

__all__ = ["LosingDisk", "SmallDisk", "lacks", "losing_disk", "small_disk"]

_SHUT_DOWN: Final = 0x8004587D
"""The request of ext4 and XFS that ends a file system at once."""
_WITHOUT_THE_LOG: Final = 2
_PATIENCE: Final = 20.0
_CHUNK: Final = 2**20


class SmallDisk:
    """A disk of few bytes, to be filled and emptied while a program uses :attr:`folder` on it."""

    def __init__(self, mounted: Path) -> None:
        self.folder = mounted / "data"
        self.folder.mkdir()
        self._ballast = mounted / "ballast"

    def fill(self, leave: int = 0) -> None:
        """Leave room for at most so many bytes, in whole pages."""
        file = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            while (room := shutil.disk_usage(self.folder).free - leave) > 0:
                os.write(file, bytes(min(room, _CHUNK)))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        finally:
            os.close(file)

    def empty(self) -> None:
        """Give back what :meth:`fill` took."""
        self._ballast.unlink(missing_ok=True)


class LosingDisk:
    """An ext4 file system that never writes back by itself, and that a loss of power takes back to its last syncs.

    The worst that is permitted, not the likely: a kernel writes back after 5 to 30 seconds.  What is not synced once
    when a broker was set up is lost too: call ``os.sync`` then.
    """

    def __init__(self, image: Path, mounted: Path) -> None:
        self._image, self._mounted = image, mounted
        self.folder = mounted / "data"
        self._mount()
        self.folder.mkdir()
        os.sync()

    def shut_down(self) -> None:
        """Let nothing more reach the disk.  Stop the programs that use it before, and kill them afterwards."""
        place = os.open(self._mounted, os.O_RDONLY)
        try:
            fcntl.ioctl(place, _SHUT_DOWN, struct.pack("I", _WITHOUT_THE_LOG))
        finally:
            os.close(place)

    def come_back(self) -> None:
        """Mount the disk again, which nobody may use any more."""
        _unmount(self._mounted)
        self._mount()

    def _mount(self) -> None:
        _run("mount", "-t", "ext4", "-o", "loop,commit=600", str(self._image), str(self._mounted))


@contextlib.contextmanager
def small_disk(place: Path, size: int) -> Iterator[SmallDisk]:
    """A disk in memory, mounted at ``place``, as long as it is needed.

    Raises :class:`ackfsm.terms.InputError` without root.
    """
    _check()
    make_folder(place)
    _run("mount", "-t", "tmpfs", "-o", f"size={size}", "ackfsm", str(place))
    try:
        yield SmallDisk(place)
    finally:
        _unmount(place)


@contextlib.contextmanager
def losing_disk(place: Path, size: int = 900 * 2**20) -> Iterator[LosingDisk]:
    """A disk in the file ``place``.img, mounted at ``place``, as long as it is needed.

    Raises :class:`ackfsm.terms.InputError` without root, a loop device or ext4.
    """
    _check("a file system that can be shut down", "mkfs.ext4")
    make_folder(place)
    image = place.with_name(f"{place.name}.img")
    with image.open("wb") as file:
        file.truncate(size)
    try:
        _run("mkfs.ext4", "-q", "-F", str(image))
        disk = LosingDisk(image, place)
        yield disk
    finally:
        if place.is_mount():
            _unmount(place)
        image.unlink()


def lacks(what: str = "a disk that can be filled", *tools: str) -> str:
    """What is missing on this machine for such a disk, and how that is had; empty if nothing is."""
    if os.geteuid():
        return f"{what} has to be mounted; run this as root, or leave the fault out"
    missing = [tool for tool in ("mount", "umount", *tools) if shutil.which(tool) is None]
    return f"there is no {missing[0]}, which {what} needs: apt-get install mount e2fsprogs" if missing else ""


def _check(*what: str) -> None:
    if why := lacks(*what):
        raise InputError(why)


def _unmount(place: Path) -> None:
    """Unmount; the kernel needs some time until killed programs have let go of it."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return _run("umount", str(place))
        except InputError:
            if time.monotonic() > end:
                raise HostError(f"{place} stays mounted: a program still uses it") from None
            time.sleep(0.1)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - as root, by intent
    if done.returncode:
        raise InputError(f"{' '.join(command)}: {done.stderr.strip()}; leave the fault out where this is not permitted")
