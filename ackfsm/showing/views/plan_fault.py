"""A run with a fault in its midst, on a terminal and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ackfsm.rates.simulation import FaultRun, Recovery
from ackfsm.rates.timing import Interval
from ackfsm.showing.views.plan import duration, rate_text


def fault_screen(run: FaultRun) -> RenderableType:
    """Return the fault with its time, the rates before and after, and its effect on messages."""
    return Group(Text(), _title(run), _rates(run), *(Text(f"  {line}") for line in _counts(run)))


def _title(run: FaultRun) -> Text:
    after = duration(Fraction(run.at).limit_denominator(10**12))
    repaired = duration(Fraction(run.recovery).limit_denominator(10**12))
    return Text.assemble(
        (f"{run.fault} after {after}", "bold"),
        f", repaired {repaired} later; {run.messages:,} messages, listeners, in {duration(Fraction(run.seconds))}",
    )


def _rates(run: FaultRun) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False)
    table.add_column("messages a second", no_wrap=True)
    for column in ("before", "after", "back after"):
        table.add_column(column, justify="right", no_wrap=True)
    for what, side in (("published", run.publish), ("delivered", run.deliver)):
        table.add_row(what, _rate(side.before), _rate(side.after), _back(side))
    return table


def _rate(rate: float) -> str:
    return rate_text(Interval.exactly(Fraction(rate)))


def _back(side: Recovery) -> str:
    return "not seen" if side.back is None else duration(Fraction(side.back))


def _counts(run: FaultRun) -> Iterator[str]:
    yield f"lost: {run.lost:,}, though their producer was not told of a failure"
    yield f"processed twice: {run.duplicated:,}; deliveries again without the mark: {run.unmarked:,}"
    yield f"redelivered with the mark: {run.redelivered:,}"
    yield f"sent again: {run.resent:,}; in doubt for ever: {run.in_doubt:,}; rolled back: {run.undone:,}"
    if run.waiting:
        yield f"still in the queue: {run.waiting:,}"


def fault_json(run: FaultRun) -> dict[str, Any]:
    """The run as plain values: rates in messages a second, times in seconds."""
    return dataclasses.asdict(run)
