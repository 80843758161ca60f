"""The screen and the JSON document of ``ackfsm journal``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ackfsm.engine.journal import Inspection, Integrity, Recovery
from ackfsm.showing.views.lines import titled
from ackfsm.text import printable, shown

_MAX_ROWS = 10
"""At most so many live copies are listed on the screen."""

_STYLE = {
    Integrity.WHOLE: "bold green",
    Integrity.DAMAGED: "bold red",
    Integrity.UNDETERMINED: "bold yellow",
}


def journal_json(inspection: Inspection) -> dict[str, Any]:
    """The answer as plain JSON values."""
    answer: dict[str, Any] = {
        "path": str(inspection.path),
        "kind": inspection.kind,
        "verdict": inspection.integrity.value,
        "damage": inspection.damage,
        "in_use": inspection.in_use,
        "clean": None if inspection.recovery is None else inspection.recovery.clean,
        "compaction": None if inspection.compaction is None else dataclasses.asdict(inspection.compaction),
    }
    found = inspection.recovery
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


def journal_screen(inspection: Inspection) -> RenderableType:
    """Return one screen: the files read, the live copies, the damage."""
    return Group(titled([("journal", f"{shown(str(inspection.path))} ({inspection.kind})")]), *_lines(inspection))


def _lines(inspection: Inspection) -> Iterator[RenderableType]:
    found = inspection.recovery
    if found is not None:
        yield Text(str(found))
        closed = ", closed cleanly" if found.clean else ""
        yield Text(
            f"opened {found.epoch:,} times{closed}; next position {found.next_position:,}, next key {found.next_key:,}"
        )
        if found.live:
            yield from ("", _live(found))
    if inspection.compaction is not None:
        yield Text(str(inspection.compaction))
    if inspection.in_use:
        yield Text("another process has it open; what it is writing is perhaps half read", style="yellow")
    yield Text("")
    damage = "" if inspection.damage is None else f": {printable(inspection.damage)}"
    yield Text(f"{inspection.integrity}{damage}", style=_STYLE[inspection.integrity])


def _live(found: Recovery) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("key", "bytes", "attempts"):
        table.add_column(heading, justify="right", no_wrap=True)
    for key, live in list(found.live.items())[:_MAX_ROWS]:
        table.add_row(f"{key}", f"{len(live.data):,}", f"{live.attempts:,}" if live.marked else "not sent yet")
    if len(found.live) > _MAX_ROWS:
        table.add_row("…", f"{len(found.live) - _MAX_ROWS:,} more", "")
    return table
