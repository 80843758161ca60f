"""A sweep of plans on a terminal, as JSON, and as a file of comma-separated values."""

from __future__ import annotations

import collections
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ackfsm.rates.timing import Grid, Interval, Row
from ackfsm.showing.views.plan import rate_text

_MOST_LINES: Final = 60
"""So many cells are shown; of more the extent, the best and what binds."""

_REASONS: Final = 5
"""So many reasons are shown why cells are illegal."""


def sweep_json(grid: Grid, rows: Sequence[Row], written: Sequence[str], *, in_file: bool) -> dict[str, Any]:
    """The sweep as plain values, and which files were ``written``; the rows are left out if they are ``in_file``."""
    document: dict[str, Any] = {
        "sweep": {dimension.name: list(dimension.values) for dimension in grid.dimensions},
        "cells": len(rows),
        "illegal": sum(row.illegal is not None for row in rows),
        "written": list(written),
    }
    return document if in_file else {**document, "rows": [row._asdict() for row in rows]}


def sweep_csv(grid: Grid, rows: Sequence[Row]) -> bytes:
    """A line for each cell; the values of the dimensions are as they are written."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    names = [dimension.name for dimension in grid.dimensions]
    lines.writerow([Row._fields[0], *names, *Row._fields[2:]])
    for row in rows:
        lines.writerow([row.cell, *(row.swept[name] for name in names), *map(_plain, row[2:])])
    return out.getvalue().encode()


def _plain(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def sweep_screen(grid: Grid, rows: Sequence[Row]) -> RenderableType:
    """Each cell if they are few, else what there is to say of all; then the cells that cannot be."""
    legal = [row for row in rows if row.illegal is None]
    few = len(legal) <= _MOST_LINES
    return Group(*([_table(grid, legal)] if few else _summary(rows, legal)), *_illegal(rows))


def _table(grid: Grid, rows: Sequence[Row]) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False)
    for dimension in grid.dimensions:
        table.add_column(dimension.name, justify="right", overflow="fold")
    for column in ("published/s", "delivered/s"):
        table.add_column(column, justify="right", no_wrap=True)
        table.add_column("bound by", overflow="fold")
    for row in rows:
        publish = rate_text(_interval(row.publish_at_least, row.publish_at_most))
        deliver = rate_text(_interval(row.deliver_at_least, row.deliver_at_most))
        table.add_row(*row.swept.values(), publish, row.publish_binds, deliver, row.deliver_binds)
    return table


def _interval(low: float | None, high: float | None) -> Interval:
    return Interval(*(None if bound is None else Fraction(bound) for bound in (low, high)))


def _summary(rows: Sequence[Row], legal: Sequence[Row]) -> Iterator[RenderableType]:
    yield Text(f"{len(rows):,} cells; --output FILE.csv or FILE.parquet has all of them.", style="bold")
    for what, low, high, binds in (
        ("published", "publish_at_least", "publish_at_most", "publish_binds"),
        ("delivered", "deliver_at_least", "deliver_at_most", "deliver_binds"),
    ):
        for word, found in (("fewest", min(legal, key=_by(high))), ("most", max(legal, key=_by(high)))):
            rate = rate_text(_interval(getattr(found, low), getattr(found, high)))
            yield Text(f"  {word} {what}: {rate}/s with {_values(found.swept)}")
        counted = collections.Counter(getattr(row, binds) or "nothing" for row in legal)
        bound = ", ".join(f"{name} {count:,}" for name, count in counted.most_common())
        yield Text(f"  bound by, in so many cells: {bound}")


def _by(name: str) -> Any:
    def key(row: Row) -> tuple[bool, float]:
        rate = getattr(row, name)
        return rate is None, rate or 0.0

    return key


def _values(swept: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in swept.items())


def _illegal(rows: Sequence[Row]) -> Iterator[Text]:
    """The cells that cannot be, by the reason."""
    reasons: dict[str, list[Row]] = {}
    for row in rows:
        if row.illegal is not None:
            reasons.setdefault(row.illegal, []).append(row)
    for reason, found in [*reasons.items()][:_REASONS]:
        count = f"{len(found):,} cells" if len(found) > 1 else "1 cell"
        yield Text(f"Skipped {count} ({_values(found[0].swept)}{', …' if len(found) > 1 else ''}): {reason}.")
    if len(reasons) > _REASONS:
        yield Text(f"Skipped more cells, for {len(reasons) - _REASONS:,} other reasons; --json has them.")
