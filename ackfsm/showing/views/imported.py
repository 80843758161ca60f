"""What came of an import, on a screen and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ackfsm.history.importing.write import Imported
from ackfsm.showing.views.typed import Command
from ackfsm.text import shown

_REASONS: Final = 5
"""So many reasons are shown."""


def imported_screen(imported: Imported, output: Path, following: Sequence[str]) -> RenderableType:
    """Return the number of events of each kind, the missing ones, and the command to type next."""
    return Group(*_parts(imported, output, following))


def _parts(imported: Imported, output: Path, following: Sequence[str]) -> Iterator[RenderableType]:
    total, width = sum(imported.events.values()), max(map(len, imported.events))
    yield Text(f"{shown(str(output))} written: {total:,} event{'' if total == 1 else 's'}", style="bold")
    for event, count in imported.events.items():
        yield Text(f"  {event:{width}}  {count:,}")
    if imported.unread:
        so = "it leaves" if imported.unread_count == 1 else "they leave"
        told = f"could not be read: {_records(imported.unread_count)}; {so} the verdict unknown"
        yield Text(told, style="bold")
        for unread in imported.unread[:_REASONS]:
            yield _below(f"{unread.count:,}: {unread}")
        if len(imported.unread) > _REASONS:
            yield _below(f"... for {len(imported.unread) - _REASONS:,} more reasons: --json")
    if imported.left_out:
        yield Text("left out on purpose:")
        for what, count in imported.left_out.items():
            yield _below(f"{count:,} {what}")
    if imported.cannot_show:
        yield Text("the source cannot show:")
        yield _below(f"{', '.join(imported.cannot_show)}; what needs one of them will be unknown (--json: why)")
    yield ""
    yield Command(following)


def _records(count: int) -> str:
    return f"{count:,} record{'' if count == 1 else 's'}"


def _below(text: str) -> Padding:
    return Padding(Text(text), (0, 0, 0, 2))


def imported_json(imported: Imported, output: Path, form: str, following: Sequence[str]) -> dict[str, Any]:
    """The same as plain JSON values."""
    return {
        "history": str(output),
        "format": form,
        "events": dict(imported.events),
        "unread": [
            {"reason": each.reason, "count": each.count, "places": list(each.places)} for each in imported.unread
        ],
        "left_out": dict(imported.left_out),
        "cannot_show": dict(imported.cannot_show),
        "next": list(following),
        "written": [str(output)],
    }
