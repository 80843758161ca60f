"""Inspect a journal without opening it (nothing is changed, and it may be in use), verify it, compact it."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from pathlib import Path
from typing import Literal

from ackfsm.engine.journal._disk import OsDisk
from ackfsm.engine.journal._entry import JournalDamaged
from ackfsm.engine.journal._file import FileJournal
from ackfsm.engine.journal._protocol import REMEMBERED, Compaction
from ackfsm.engine.journal._recovery import Recovery
from ackfsm.engine.journal._scan import WATERMARK, is_segment, name_of, scan
from ackfsm.engine.journal._sqlite import MAGIC, SqliteJournal, read_sqlite, sqlite_in_use
from ackfsm.terms import InputError
from ackfsm.text import shown

_ALL = 2**31
"""No duplicate id is dropped here; how many are kept is the broker's setting."""


class Integrity(StrEnum):
    """Whether a journal is whole.

    ``undetermined`` is a journal with something torn, or wrong, while another process writes to it.
    """

    WHOLE = "whole"
    DAMAGED = "damaged"
    UNDETERMINED = "undetermined"


@dataclasses.dataclass(frozen=True, slots=True)
class Inspection:
    """The findings in a journal.

    Attributes:
        path: of the journal.
        kind: ``file`` or ``sqlite``.
        recovery: what opening it would find; ``None`` if it is damaged.
        damage: what is wrong with it, and where.
        in_use: another process has it open, so that its end may have been read while it was written.
        compaction: what was done to it.
    """

    path: Path
    kind: str
    recovery: Recovery | None
    damage: str | None = None
    in_use: bool = False
    compaction: Compaction | None = None

    @property
    def integrity(self) -> Integrity:
        """The verdict."""
        if self.in_use and (self.damage is not None or (self.recovery is not None and self.recovery.torn is not None)):
            return Integrity.UNDETERMINED
        return Integrity.WHOLE if self.damage is None else Integrity.DAMAGED


def inspect_journal(path: Path) -> Inspection:
    """Return the findings in the journal at ``path``.

    Raises :class:`ackfsm.terms.InputError` if there is none, :class:`JournalDamaged` if it is damaged.
    """
    kind = kind_of(path)
    recovery, in_use = (inspect_sqlite if kind == "sqlite" else inspect_file)(path, remembered=_ALL)
    return Inspection(path, kind, recovery, in_use=in_use)


def verify_journal(path: Path) -> Inspection:
    """As :func:`inspect_journal`, with damage as an answer.

    Raises :class:`ackfsm.terms.InputError` if there is no journal.
    """
    try:
        return inspect_journal(path)
    except JournalDamaged as damaged:
        return Inspection(path, kind_of(path), None, str(damaged))


def compact_journal(path: Path) -> Inspection:
    """Drop what no recovery of the journal at ``path`` needs.

    Raises :class:`ackfsm.terms.InputError` if there is none or it is in use, :class:`JournalDamaged`,
    :class:`ackfsm.engine.journal.JournalFailure`.
    """
    kind = kind_of(path)
    journal = (SqliteJournal if kind == "sqlite" else FileJournal)(path, remembered=_ALL)
    done = journal.compact()
    journal.close()
    return Inspection(path, kind, journal.recovery, compaction=done)


def kind_of(path: Path) -> Literal["file", "sqlite"]:
    """Return the kind of the journal at ``path``, from its files.

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

    Raises :class:`ackfsm.engine.journal.JournalDamaged`, :class:`ackfsm.terms.InputError` if it cannot be read.
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

    Raises :class:`ackfsm.engine.journal.JournalDamaged`, :class:`ackfsm.terms.InputError` if it cannot be read.
    """
    try:
        return read_sqlite(path, remembered), sqlite_in_use(path)
    except OSError as error:
        raise InputError(f"{shown(str(path))} cannot be read ({error.strerror}); name a file of SQLite") from None
