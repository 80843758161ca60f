"""The lines of a screen that tell of progress."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rich.text import Text

from ackfsm.explore import LivenessFinding
from ackfsm.network import NetworkEvent

__all__ = ["progress_lines"]


def progress_lines(progress: Mapping[str, LivenessFinding]) -> Iterator[Text]:
    """A line for each property, with the way to where it fails and the cycle; nothing if progress was not asked for."""
    if progress:
        yield Text("in the end", style="bold")
    for name, finding in progress.items():
        yield Text.assemble((f"{name}: ", "bold"), *_told(finding))
    if progress:
        yield Text("")


def _told(finding: LivenessFinding) -> Iterator[tuple[str, str]]:
    if finding.holds is None:
        yield "unknown", "yellow"
    elif finding.holds:
        yield "yes", "green"
    else:
        yield "no", "red" if finding.promised else "yellow"
        end = ", for ever: " + _steps(finding.cycle) if finding.cycle else ", then nothing"
        yield f", {finding.waiting.label if finding.waiting else ''} waits: {_steps(finding.steps)}{end}", ""


def _steps(events: Iterable[NetworkEvent]) -> str:
    return " → ".join(event.label for event in events)
