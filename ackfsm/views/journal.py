"""``ackfsm journal inspect|verify|compact PATH``: what a journal holds, whether it is whole, and making it small."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ackfsm.journal import (
    Compaction,
    FileJournal,
    JournalDamaged,
    Recovery,
    SqliteJournal,
    inspect_file,
    inspect_sqlite,
    kind_of,
)
from ackfsm.report._layout import titled
from ackfsm.text import printable, shown

__all__ = ["Checked", "checked_json", "compact", "inspect", "journal_screen", "verify"]

_GOOD, _DAMAGED, _UNDETERMINED = 0, 1, 3
_SHOWN = 10
"""So many live copies are listed on the screen."""

_ALL = 2**31
"""No duplicate-id is dropped here; how many are kept is for the broker to say."""


@dataclasses.dataclass(frozen=True, slots=True)
class Checked:
    """What was found out about a journal.

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
    def exit_code(self) -> int:
        """0 whole, 1 damaged, 3 undetermined: something is torn, or wrong, while another process writes."""
        if self.in_use and (self.damage is not None or (self.recovery is not None and self.recovery.torn is not None)):
            return _UNDETERMINED
        return _DAMAGED if self.damage is not None else _GOOD

    @property
    def verdict(self) -> str:
        """In a word."""
        return {_GOOD: "whole", _DAMAGED: "damaged", _UNDETERMINED: "undetermined"}[self.exit_code]


def inspect(path: Path) -> Checked:
    """What the journal at ``path`` holds.

    Raises :class:`ackfsm.terms.InputError` if there is none, :class:`JournalDamaged` if it is damaged.
    """
    kind = kind_of(path)
    recovery, in_use = (inspect_sqlite if kind == "sqlite" else inspect_file)(path, remembered=_ALL)
    return Checked(path, kind, recovery, in_use=in_use)


def verify(path: Path) -> Checked:
    """The same, with damage as an answer.

    Raises :class:`ackfsm.terms.InputError` if there is no journal.
    """
    try:
        return inspect(path)
    except JournalDamaged as damaged:
        return Checked(path, kind_of(path), None, str(damaged))


def compact(path: Path) -> Checked:
    """Drop what no recovery of the journal at ``path`` needs.

    Raises :class:`ackfsm.terms.InputError` if there is none or it is in use, :class:`JournalDamaged`,
    :class:`ackfsm.journal.JournalFailure`.
    """
    kind = kind_of(path)
    journal = (SqliteJournal if kind == "sqlite" else FileJournal)(path, remembered=_ALL)
    done = journal.compact()
    journal.close()
    return Checked(path, kind, journal.recovery, compaction=done)


def checked_json(checked: Checked) -> dict[str, Any]:
    """The answer as plain JSON values."""
    answer: dict[str, Any] = {
        "path": str(checked.path),
        "kind": checked.kind,
        "verdict": checked.verdict,
        "damage": checked.damage,
        "in_use": checked.in_use,
        "clean": None if checked.recovery is None else checked.recovery.clean,
        "compaction": None if checked.compaction is None else dataclasses.asdict(checked.compaction),
    }
    found = checked.recovery
    if found is not None:
        numbers = ("entries", "size", "segments", "epoch", "next_position", "next_key", "removed", "dropped")
        answer |= {name: getattr(found, name) for name in numbers}
        answer["torn"] = None if found.torn is None else dataclasses.asdict(found.torn)
        answer["stale"] = list(found.stale)
        answer["remembered"] = [name.hex() for name in found.remembered]
        answer["live"] = [
            {"key": key, "bytes": len(live.data), "attempts": live.attempts, "marked": live.marked}
            for key, live in found.live.items()
        ]
    return answer


def journal_screen(checked: Checked) -> RenderableType:
    """One screen: what was read, what is live, what is wrong."""
    return Group(titled([("journal", f"{shown(str(checked.path))} ({checked.kind})")]), *_lines(checked))


def _lines(checked: Checked) -> Iterator[RenderableType]:
    found = checked.recovery
    if found is not None:
        yield Text(str(found))
        closed = ", closed cleanly" if found.clean else ""
        yield Text(
            f"opened {found.epoch:,} times{closed}; next position {found.next_position:,}, next key {found.next_key:,}"
        )
        if found.live:
            yield from ("", _live(found))
    if checked.compaction is not None:
        yield Text(str(checked.compaction))
    if checked.in_use:
        yield Text("another process has it open; what it is writing is perhaps half read", style="yellow")
    yield Text("")
    style = {_GOOD: "bold green", _DAMAGED: "bold red", _UNDETERMINED: "bold yellow"}[checked.exit_code]
    yield Text(
        checked.verdict if checked.damage is None else f"{checked.verdict}: {printable(checked.damage)}", style=style
    )


def _live(found: Recovery) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("key", "bytes", "attempts"):
        table.add_column(heading, justify="right", no_wrap=True)
    for key, live in list(found.live.items())[:_SHOWN]:
        table.add_row(f"{key}", f"{len(live.data):,}", f"{live.attempts:,}" if live.marked else "not sent yet")
    if len(found.live) > _SHOWN:
        table.add_row("…", f"{len(found.live) - _SHOWN:,} more", "")
    return table
