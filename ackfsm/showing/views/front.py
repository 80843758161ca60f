"""The front of an advice: a table of needs met, rates and times, curves, and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ackfsm.showing.views.advise import candidate_json, changes_text, proved_for
from ackfsm.showing.views.curves import Axis, Curve, Curves, is_wide
from ackfsm.showing.views.plan import duration, rate_text
from ackfsm.showing.views.sweep_curves import MOST_CURVES
from ackfsm.surveys.advice import Front, Point
from ackfsm.terms import InputError


def front_screen(front: Front) -> RenderableType:
    """The points, the fastest first; those with the same needs stand in the same words."""
    needs = len(front.request.needs)
    systems = front.request.profiles[0] if len(front.request.profiles) == 1 else "all systems"
    heading = f"{systems}: {len(front.points)} of {front.candidates:,} configurations are on the front of {needs} needs"
    return Group(Text(heading, style="bold"), Text(), _table(front), *_notes(front))


def _table(front: Front) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("a second", justify="right", no_wrap=True)
    table.add_column("each", justify="right", no_wrap=True)
    table.add_column("gives", overflow="fold", ratio=1)
    table.add_column("with", overflow="fold", ratio=1)
    for point in front.points:
        candidate = point.candidate
        who = f"{candidate.configuration.profile}: " if len(front.request.profiles) > 1 else ""
        what = who + (changes_text(candidate) or "the defaults")
        table.add_row(rate_text(candidate.rate), duration(candidate.seconds), _gives(front, point), what)
    return table


def _gives(front: Front, point: Point) -> str:
    """The needs in the order in which they were asked for."""
    return ", ".join(need.name for need in front.request.needs if need in point.gives) or "none of them"


def _notes(front: Front) -> Iterator[Text]:
    yield Text()
    if front.undecided:
        yield Text(
            f"{front.undecided} searches met their bound, and what they leave open is not told as given; "
            "raise --max-states.",
            style="yellow",
        )
    yield Text(proved_for(front.request), style="dim")


def curves_of_front(front: Front) -> Curves:
    """The rate against the time, a curve for each set of needs."""
    found: dict[str, list[tuple[float, float]]] = {}
    for point in front.points:
        rate = point.candidate.rate.low
        if rate is not None:
            found.setdefault(_gives(front, point), []).append((float(point.candidate.seconds), float(rate)))
    curves = []
    for name, points in found.items():
        xs, ys = zip(*sorted(points), strict=True)
        curves.append(Curve(name, xs, ys, ys))
    every = [point for points in found.values() for point in points]
    if not every:
        raise InputError("nothing of this front takes time, so there is nothing to draw; say --rtt or --bandwidth")
    x, y = (is_wide([point[axis] for point in every]) for axis in (0, 1))
    return Curves(Axis("time of a message", "s", x), Axis("messages a second", "", y), curves[:MOST_CURVES])


def front_json(front: Front) -> dict[str, Any]:
    """The front as plain values: rates in messages a second, times in seconds."""
    return {
        "needs": [need.name for need in front.request.needs],
        "bounds": front.request.bounds.as_dict(),
        "candidates": front.candidates,
        "undecided": front.undecided,
        "points": [_point_json(point) for point in front.points],
    }


def _point_json(point: Point) -> dict[str, Any]:
    return {**candidate_json(point.candidate), "gives": sorted(need.name for need in point.gives)}
