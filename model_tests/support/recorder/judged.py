"""What ``ackfsm verify`` says of a history that was recorded."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
from pathlib import Path
from typing import Any

from ackfsm.cli import main


@dataclasses.dataclass(frozen=True)
class Judged:
    """The verdict, why, and the anomalies that were counted (``None``: unknown), all others being 0."""

    verdict: str
    reasons: tuple[str, ...]
    counts: dict[str, int | None]
    messages: int
    unread: int


def judged(path: Path, *options: str) -> Judged:
    """The verdict on the history at ``path`` with ``options``."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        main(["verify", str(path), "--json", *options])
    result = json.loads(out.getvalue())
    return Judged(
        verdict=result["verdict"],
        reasons=tuple(result["reasons"]),
        counts={name: found["count"] for name, found in result["anomalies"].items() if found["count"] != 0},
        messages=result["messages"],
        unread=result["parse_errors"],
    )


def events(path: Path) -> list[dict[str, Any]]:
    """The lines of a history after its header, by time, as JSON alone reads them."""
    read = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return sorted(read, key=lambda line: int(line["t"]))


def shape(path: Path, message: str) -> list[str]:
    """What is told of one message, in order: its events, with what is different from the usual."""
    return [_word(line) for line in events(path) if line.get("message") == message]


def _word(line: dict[str, Any]) -> str:
    more = [line["scope"]] if "scope" in line else []
    more += ["redelivered"] if line.get("redelivered") else []
    return " ".join([line["event"], *more])
