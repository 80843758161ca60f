"""Reading a journal without opening it: nothing is changed or made, and it may be in use."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ackfsm.journal._disk import OsDisk
from ackfsm.journal._protocol import REMEMBERED
from ackfsm.journal._recovery import Recovery
from ackfsm.journal._scan import WATERMARK, is_segment, name_of, scan
from ackfsm.journal._sqlite import MAGIC, read_sqlite, sqlite_in_use
from ackfsm.terms import InputError
from ackfsm.text import shown

__all__ = ["inspect_file", "inspect_sqlite", "kind_of"]


def kind_of(path: Path) -> Literal["file", "sqlite"]:
    """What kind of journal there is at ``path``, by what is there already.

    Raises :class:`ackfsm.terms.InputError` if there is none.
    """
    name = shown(str(path))
    try:
        if path.is_dir():
            if any(is_segment(each.name) or each.name == WATERMARK for each in path.iterdir()):
                return "file"
            raise InputError(
                f"{name} holds no journal (no file such as {name_of(1)}); name its directory or its SQLite file"
            )
        with path.open("rb") as file:
            if file.read(len(MAGIC)) == MAGIC:
                return "sqlite"
    except OSError as error:
        raise InputError(f"{name} cannot be read ({error.strerror}); name the directory of a journal") from None
    raise InputError(f"{name} is neither the directory of a journal nor a file of SQLite; name one of these")


def inspect_file(path: Path, *, remembered: int = REMEMBERED) -> tuple[Recovery, bool]:
    """What opening the journal in the directory ``path`` would find, and whether it is in use.

    Raises :class:`ackfsm.journal.JournalDamaged`, :class:`ackfsm.terms.InputError` if it cannot be read.
    """
    disk = OsDisk()
    try:
        in_use = _in_use(disk, path)
        found = scan(disk, path, remembered)
    except OSError as error:
        raise InputError(
            f"{shown(str(path))} cannot be read ({error.strerror}); name the directory of a journal"
        ) from None
    found.replay.new_epoch()
    return found.recovery(found.segments[-1].header.epoch if found.segments else 0), in_use


def _in_use(disk: OsDisk, path: Path) -> bool:
    try:
        disk.unlock(disk.lock(path))
    except BlockingIOError:
        return True
    return False


def inspect_sqlite(path: Path, *, remembered: int = REMEMBERED) -> tuple[Recovery, bool]:
    """What opening the journal in the file ``path`` of SQLite would find, and whether it is in use.

    Raises :class:`ackfsm.journal.JournalDamaged`, :class:`ackfsm.terms.InputError` if it cannot be read.
    """
    try:
        return read_sqlite(path, remembered), sqlite_in_use(path)
    except OSError as error:
        raise InputError(f"{shown(str(path))} cannot be read ({error.strerror}); name a file of SQLite") from None
