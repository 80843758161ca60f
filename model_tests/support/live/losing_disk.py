"""A disk that loses what was not synced: the second way to what a loss of power leaves.  It is mounted as root."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ackfsm.driving.live.faults.disk import lacks, run, unmount
from ackfsm.support.files import make_folder
from ackfsm.terms import InputError

__all__ = ["LosingDisk", "losing_disk"]

_SHUT_DOWN: Final = 0x8004587D
"""The request of ext4 and XFS that ends a file system at once."""
_WITHOUT_THE_LOG: Final = 2


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
        unmount(self._mounted)
        self._mount()

    def _mount(self) -> None:
        run("mount", "-t", "ext4", "-o", "loop,commit=600", str(self._image), str(self._mounted))


@contextlib.contextmanager
def losing_disk(place: Path, size: int = 900 * 2**20) -> Iterator[LosingDisk]:
    """A disk in the file ``place``.img, mounted at ``place``, as long as it is needed.

    Raises :class:`ackfsm.terms.InputError` without root, a loop device or ext4.
    """
    if shutil.which("mkfs.ext4") is None or lacks():
        raise InputError(lacks() or "there is no mkfs.ext4: apt-get install e2fsprogs")
    make_folder(place)
    image = place.with_name(f"{place.name}.img")
    with image.open("wb") as file:
        file.truncate(size)
    try:
        run("mkfs.ext4", "-q", "-F", str(image))
        disk = LosingDisk(image, place)
        yield disk
    finally:
        if place.is_mount():
            unmount(place)
        image.unlink()
