"""A disk that is full at times; it is mounted, which needs root."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ackfsm.support.files import make_folder
from ackfsm.terms import HostError, InputError

__all__ = ["SmallDisk", "lacks", "run", "small_disk", "unmount"]

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


@contextlib.contextmanager
def small_disk(place: Path, size: int) -> Iterator[SmallDisk]:
    """A disk in memory, mounted at ``place``, as long as it is needed.

    Raises :class:`ackfsm.terms.InputError` without root.
    """
    if why := lacks():
        raise InputError(why)
    make_folder(place)
    run("mount", "-t", "tmpfs", "-o", f"size={size}", "ackfsm", str(place))
    try:
        yield SmallDisk(place)
    finally:
        unmount(place)


def lacks() -> str:
    """What is missing on this machine for such a disk, and how that is had; empty if nothing is."""
    if os.geteuid():
        return "a disk that can be filled has to be mounted; run this as root, or leave the fault out"
    missing = [tool for tool in ("mount", "umount") if shutil.which(tool) is None]
    return f"there is no {missing[0]}, which a disk that can be filled needs: apt-get install mount" if missing else ""


def unmount(place: Path) -> None:
    """Unmount; the kernel needs some time until killed programs have let go of it."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return run("umount", str(place))
        except InputError:
            if time.monotonic() > end:
                raise HostError(f"{place} stays mounted: a program still uses it") from None
            time.sleep(0.1)


def run(*command: str) -> None:
    """Run a command as root; raises :class:`InputError` if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - as root, by intent
    if done.returncode:
        raise InputError(f"{' '.join(command)}: {done.stderr.strip()}; leave the fault out where this is not permitted")
