"""Many runs of one configuration as one history: one after the other or at the same time, each with clients of its own.

What is of a run has its number in its name, so that what is found can be traced to it: message ``m2/17`` is of run 17.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ackfsm.terms import Configuration, Fault

__all__ = ["Line", "kinds_of", "laid_out", "run_of", "write"]

Line = Mapping[str, Any]

_OWN: Final = ("process", "session", "transaction", "message", "queue")
_SHARED: Final = frozenset({"broker", "nemesis"})
_MILLISECOND: Final = 10**6
_BETWEEN_LINES: Final = (_MILLISECOND, 10_000 * _MILLISECOND)
"""Far less than the second that a fault takes to be seen, and far more."""

_BETWEEN_RUNS: Final = 60_000 * _MILLISECOND
_OF_MESSAGES: Final = frozenset({Fault.REJECTION, Fault.LISTENER_EXCEPTION})
_TOLD: Final = frozenset({"fault", "recovered"})


def kinds_of(lines: Sequence[Line]) -> frozenset[str]:
    """What happened in a run that may excuse the anomalies of another run in the same history."""
    return frozenset(
        str(line.get("fault") or line["event"])
        for line in lines
        if line["event"] in {*_TOLD, "recover", "rollback", "rolled_back", "close", "failed", "resend"}
    )


def laid_out(runs: Sequence[Sequence[Line]], draw: random.Random, *, strictly: bool = False) -> list[dict[str, Any]]:
    """The lines of all ``runs`` in the order of their times, with victims of their faults where runs overlap.

    ``strictly``: faults say whom they hit, and no time is so near to another that their order is open.
    """
    overlap = not strictly and draw.choice((False, True))
    by_name = strictly or overlap or draw.choice((False, True))
    gap = _BETWEEN_LINES[1] if strictly else draw.choice(_BETWEEN_LINES)
    found, now = list[dict[str, Any]](), _BETWEEN_RUNS
    for number, run in enumerate(runs):
        t = now + draw.randrange(_BETWEEN_RUNS) if overlap else now
        for line in run:
            t += gap
            found.append({"t": t, **_renamed(_told(line, by_name=by_name), number)})
        if not overlap or number % 20 == 0:
            now = max(t, now) + _BETWEEN_RUNS
    return sorted(found, key=lambda line: line["t"])


def _told(line: Line, *, by_name: bool) -> Line:
    """A fault that tells whom it hit, a broker's by the queue of the run; or one that names nobody."""
    if line["event"] not in _TOLD or line["fault"] in _OF_MESSAGES:
        return line
    if not by_name:
        return {**line, "process": "nemesis"}
    return {**line, "queue": "q"} if line["process"] == "nemesis" else line


def _renamed(line: Line, number: int) -> dict[str, Any]:
    return {key: f"{value}/{number}" if key in _OWN and value not in _SHARED else value for key, value in line.items()}


def run_of(name: str) -> int:
    """The number of the run that a message, process or queue is of."""
    return int(name.rpartition("/")[2])


def write(file: Path, configuration: Configuration, lines: Sequence[Line]) -> None:
    """Write a history in format 1."""
    header = {"ackfsm_history": 1, "config": configuration.as_dict()}
    file.write_text("".join(f"{json.dumps(line)}\n" for line in (header, *lines)), encoding="utf-8")
