"""A tiny notation for histories: events separated by semicolons or line ends, in the order of time.

``c delivered m1 flagged session=s1``: the process, the event, then the message, if one is named without
``=``, the flag of a delivery (``clear`` or ``flagged``), and other fields with ``=``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FLAGS = {"clear": False, "flagged": True}


def events_of(text: str) -> list[dict[str, Any]]:
    """The events of ``text``, one nanosecond apart."""
    lines = [line for line in re.split(r"[;\n]", text) if line.strip()]
    return [_event(t, *line.split()) for t, line in enumerate(lines)]


def write(events: Iterable[Mapping[str, Any]], file: Path) -> Path:
    """Write ``events`` as a history to ``file``, and give it back."""
    file.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return file


def _event(t: int, process: str, event: str, *rest: str) -> dict[str, Any]:
    row: dict[str, Any] = {"t": t, "process": process, "event": event}
    for word in rest:
        name, equals, value = word.partition("=")
        if equals:
            row[name] = int(value) if value.isdecimal() else value
        elif word in FLAGS:
            row["redelivered"] = FLAGS[word]
        else:
            row["message"] = word
    return row
