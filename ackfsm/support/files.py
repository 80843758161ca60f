"""Files that are written whole or not at all.

What is written goes to a file of another name in the same folder first, and takes its place when all of it is
there: a full disk, a crash or an interrupt leaves what was there before.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import IO

from ackfsm.terms import HostError, InputError
from ackfsm.text import shown

_BEGINNING = 200
"""Bytes of a page in which it says what made it."""

_HOST = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors that no other name would avoid."""


def is_of_the_machine(error: OSError) -> bool:
    """Whether the machine has failed, so that no other name of a file would mend it."""
    return error.errno in _HOST


def cannot_write(path: Path, error: OSError, kind: str = "file") -> InputError | HostError:
    """The error that says that ``path``, a ``kind`` of place, could not be written: the user's, or the machine's."""
    reason = error.strerror or str(error)
    if is_of_the_machine(error):
        return HostError(f"{shown(str(path))}: cannot be written ({reason}); nothing there was changed")
    return InputError(f"{shown(str(path))}: cannot be written ({reason}); name another {kind}")


def check_place(path: Path) -> None:
    """See whether ``path`` can be written, before long work that would be in vain; nothing there is changed.

    Raises as :func:`write_file`.
    """
    with _told(path):
        if not leads_out(path):
            with _half_of(path):
                return
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def make_folder(folder: Path) -> None:
    """Make ``folder`` unless it is there, and see whether files can be made in it.

    Raises :class:`ackfsm.terms.InputError` if not, and :class:`ackfsm.terms.HostError` where the machine fails.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise cannot_write(folder, error, "folder") from None


def cannot_read(name: str, error: OSError, wanted: str = "another file") -> InputError | HostError:
    """Return the error for a file, shown as ``name``, that cannot be read: the user's, or the machine's.

    The user may name what is ``wanted`` instead.
    """
    reason = error.strerror or str(error)
    if isinstance(error, FileNotFoundError):
        return InputError(f"there is no file {name}; name {wanted}")
    if is_of_the_machine(error):
        return HostError(
            f"{name} cannot be read ({reason}); the machine is at fault, not the file: try again when it is mended"
        )
    remedy = "make it readable" if isinstance(error, PermissionError) else f"name {wanted}"
    return InputError(f"{name} cannot be read ({reason}); {remedy}")


def write_file(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path``, whole or not at all.

    Raises :class:`ackfsm.terms.InputError` for a place where nothing can be written, and
    :class:`ackfsm.terms.HostError` where the machine fails: its disk is full.
    """
    write_files({path: data})


def write_files(files: Mapping[Path, bytes]) -> None:
    """Write several files: none takes its place before all are there.

    Raises as :func:`write_file`.
    """
    with contextlib.ExitStack() as stack:
        staged: list[tuple[Path, Path]] = []
        for path, data in files.items():
            with _told(path):
                if leads_out(path):
                    path.write_bytes(data)
                    continue
                half = stack.enter_context(_half_of(path))
                half.write(data)
                half.flush()
                os.fsync(half.fileno())
                half.close()
                staged.append((Path(half.name), path))
        for half_path, path in staged:
            with _told(path):
                half_path.replace(path.resolve())


@contextlib.contextmanager
def staged_file(path: Path) -> Iterator[IO[bytes]]:
    """A stream for what does not fit into memory; it takes the place of ``path`` at the end, unless something fails.

    Raises as :func:`write_file`.
    """
    with _told(path):
        if leads_out(path):
            with path.open("wb") as out:
                yield out
            return
        with _half_of(path) as half:
            yield half
            half.flush()
            os.fsync(half.fileno())
            half.close()
            Path(half.name).replace(path.resolve())


@contextlib.contextmanager
def _told(path: Path, kind: str = "file") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error, kind) from None


def leads_out(path: Path) -> bool:
    """Return whether it is a device or a pipe: no file can take its place, and its reader waits.

    So are the names of what this process has open already, even if that is a file.  Raises :class:`OSError` for a name
    that there cannot be.
    """
    if str(path.absolute()).startswith(("/dev/std", "/dev/fd/", "/proc/self/fd/", f"/proc/{os.getpid()}/fd/")):
        return True
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextlib.contextmanager
def _half_of(path: Path) -> Iterator[IO[bytes]]:
    """A new file beside ``path``, with its mode, gone at the end unless it has taken another name."""
    place = path.resolve()
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    half = tempfile.NamedTemporaryFile(dir=place.parent, prefix=".ackfsm-", delete=False)  # noqa: SIM115 - closed below
    try:
        os.fchmod(half.fileno(), _mode_for(place))
        yield half
    finally:
        with contextlib.suppress(OSError):  # what is good has been synced; of the rest the first error tells enough
            half.close()
        Path(half.name).unlink(missing_ok=True)


def _mode_for(place: Path) -> int:
    """Return the mode of the replaced file; for a new file the usual one."""
    try:
        return stat.S_IMODE(place.stat().st_mode)
    except FileNotFoundError:
        return 0o666 & ~_umask()


def write_folder(directory: Path, texts: Mapping[str, str], made: str) -> tuple[Path, ...]:
    """Write ``texts`` (by file name) into ``directory``, all or none; return the written files, sorted.

    Then the pages and pictures below it are removed that say ``made`` of themselves near their beginning, so that an
    earlier call has made them, and that are not among ``texts``; others are left alone.

    Raises :class:`ackfsm.terms.InputError` if ``directory`` cannot be written, and :class:`ackfsm.terms.HostError`
    where the machine fails.
    """
    make_folder(directory)
    paths = {directory / name: text.encode() for name, text in texts.items()}
    for folder in {path.parent for path in paths} - {directory}:
        make_folder(folder)
    write_files(paths)
    for path in sorted(directory.rglob("*.*")):
        if path not in paths and path.suffix in {".md", ".svg"} and path.is_file():
            _remove_if_made(path, made.encode())
    return tuple(sorted(paths))


def _remove_if_made(path: Path, made: bytes) -> None:
    try:
        with path.open("rb") as file:
            stale = made in file.read(_BEGINNING)
        if stale:
            path.unlink()
    except OSError as error:
        raise cannot_write(path, error) from None


@contextlib.contextmanager
def staged_folder(folder: Path, own: Collection[str], *, overwrite: bool = False) -> Iterator[Path]:
    """A new folder beside ``folder`` whose content takes its place at the end, unless something fails.

    Args:
        folder: is made, or is empty; with ``overwrite`` it may have something in it.
        own: the names that an earlier call can have written into it; with any other it is not overwritten.
        overwrite: whether what is there may be replaced.

    Raises:
        InputError: ``folder`` is not empty, cannot be written, or cannot be replaced: a file system begins there, or
            this process is in it, and who started it would be left in a folder that is gone.
        HostError: the machine fails: its disk is full.
    """
    with _told(folder, "folder"):
        place = folder.resolve()
        _refuse_full(folder, place, own, overwrite=overwrite)
        place.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(dir=place.parent, prefix=".ackfsm-"))
    try:
        stage.chmod(0o777 & ~_umask())
        yield stage
        with _told(folder, "folder"):
            _sync(stage)
            _refuse_full(folder, place, own, overwrite=overwrite)
            _take_place(stage, place)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _refuse_full(folder: Path, place: Path, own: Collection[str], *, overwrite: bool) -> None:
    """Raise :class:`InputError` if something is at ``place`` that must not be replaced."""
    name = shown(str(folder))
    if not place.exists():
        return
    if not place.is_dir():
        raise InputError(f"{name} is no folder; name a folder that is empty, or that is not there")
    if place.is_mount():
        raise InputError(f"{name} is where a file system begins, which cannot be replaced; name a folder in it")
    if Path.cwd().is_relative_to(place):
        raise InputError(f"{name} has the folder that you are in, which cannot be replaced; name a folder in it")
    there = sorted(each.name for each in place.iterdir())
    if there and not overwrite:
        raise InputError(f"{name} is not empty; name another folder, or say --overwrite to replace what is there")
    foreign = [each for each in there if each not in own]
    if foreign:
        raise InputError(f"{name} has {shown(foreign[0])}, which was not written there by ackfsm; name another folder")


def _take_place(stage: Path, place: Path) -> None:
    """Rename ``stage`` to ``place``; the old file or folder is gone when the new one is there."""
    old, had = Path(tempfile.mkdtemp(dir=place.parent, prefix=".ackfsm-")), place.exists()
    try:
        if had:
            place.rename(old)
        stage.rename(place)
    except BaseException:
        if had and not place.exists():
            old.rename(place)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _sync(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
