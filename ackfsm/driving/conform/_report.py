"""What came of a campaign: a cell for each mode and fault, and the verdict on all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from ackfsm.driving.conform._claims import Claims, Mode
from ackfsm.terms import AckfsmError, Anomaly, Fault, Verdict

NO_FAULT = "none"
"""How the cell without a fault is called."""


class Status(StrEnum):
    """The answer for one mode under one fault."""

    OK = "ok"
    VIOLATION = "violation"
    UNKNOWN = "unknown"
    NOT_CLAIMED = "not claimed"


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a campaign.

    Attributes:
        runs: of each cell.
        messages: of each run.
        seed: of the programs.
        timeout: seconds of each call.
        wait: seconds of each receive.
        seconds: of each cell, after which no further run begins, but up to four until something is seen, and of making
            a failing program smaller; ``None`` for no limit.
    """

    runs: int = 10
    messages: int = 6
    seed: int = 0
    timeout: float | None = None
    wait: float = 0.2
    seconds: float | None = None

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A violation: its run, the reason, and the smallest program that was found to show it too.

    ``history`` and ``small`` are the files with their histories, ``None`` where none are kept.
    """

    run: int
    reasons: tuple[str, ...]
    anomalies: tuple[Anomaly, ...]
    program: str
    small_program: str
    trials: int
    history: Path | None = None
    small: Path | None = None

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            **dataclasses.asdict(self),
            "reasons": list(self.reasons),
            "anomalies": [each.value for each in self.anomalies],
            "history": None if self.history is None else str(self.history),
            "small": None if self.small is None else str(self.small),
        }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One mode under one fault (``None``: under none).

    Attributes:
        runs: how many programs were run.
        struck: in how many of them a fault took effect while something was at stake.
        seen: how often each anomaly was, where the configuration allows it.
        why: the reason of what is ``unknown``.
        reached: whether the campaign came so far.
    """

    mode: Mode
    fault: Fault | None
    status: Status
    runs: int = 0
    struck: int = 0
    seen: Mapping[Anomaly, int] = dataclasses.field(default_factory=dict)
    why: str | None = None
    failure: Failure | None = None
    reached: bool = True

    @property
    def fault_name(self) -> str:
        """The fault, or ``none``."""
        return NO_FAULT if self.fault is None else self.fault.value

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "ack_mode": self.mode.ack_mode.value,
            "delivery_mode": self.mode.delivery_mode.value,
            "consumption": self.mode.consumption.value,
            "fault": self.fault_name,
            "status": self.status.value,
            "runs": self.runs,
            "struck": self.struck,
            "seen": {anomaly.value: count for anomaly, count in self.seen.items()},
            "why": self.why,
            "failure": None if self.failure is None else self.failure.as_json(),
        }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All cells, by mode and then by fault.

    ``stopped`` is what ended the campaign before its end, ``None`` if nothing did; the cells that it did not reach are
    ``unknown``.
    """

    claims: Claims
    limits: Limits
    cells: tuple[Cell, ...]
    stopped: AckfsmError | None = None

    @property
    def verdict(self) -> Verdict:
        """``invalid`` if a cell has a violation, ``unknown`` if one is unknown or none was judged, else ``valid``."""
        had = {cell.status for cell in self.cells}
        if Status.VIOLATION in had:
            return Verdict.INVALID
        return Verdict.UNKNOWN if Status.UNKNOWN in had or Status.OK not in had else Verdict.VALID

    def of(self, status: Status) -> Iterator[Cell]:
        """The cells of one status."""
        return (cell for cell in self.cells if cell.status is status)

    def counts(self) -> Mapping[Status, int]:
        """How many cells there are of each status."""
        return {status: sum(1 for _ in self.of(status)) for status in Status}

    def as_json(self) -> dict[str, Any]:
        """The answer of ``ackfsm conform --json``."""
        return {
            "name": self.claims.name,
            "profile": self.claims.profile,
            "settings": dict(self.claims.settings),
            "verdict": self.verdict.value,
            "limits": self.limits.as_json(),
            "counts": {status.value: count for status, count in self.counts().items()},
            "stopped": None if self.stopped is None else str(self.stopped),
            "cells": [cell.as_json() for cell in self.cells],
        }

    def __str__(self) -> str:
        """Return the verdict and the reasons against a pass, a line each, for a failing test."""
        lines = [f"{self.claims.name}: {self.verdict}", *([] if self.stopped is None else [str(self.stopped)])]
        for cell in (*self.of(Status.VIOLATION), *self.of(Status.UNKNOWN)):
            if not cell.reached:
                continue
            why = cell.failure.reasons[0] if cell.failure and cell.failure.reasons else cell.why
            lines.append(f"{cell.mode}; {cell.fault_name}: {cell.status}: {why}")
        missed = sum(not cell.reached for cell in self.cells)
        return "\n".join([*lines, *([f"{missed} not reached"] if missed else [])])
