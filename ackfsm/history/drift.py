"""Clocks at different rates: the demands of the events over time, and the straight corrections that meet them.

A demand is a point ``(t, late)``: an effect was recorded at ``t``, and its cause ``late`` nanoseconds after it.  If the
corrections of both clocks are straight lines over time, they meet all demands of a pair of processes as soon as they
meet those on the upper convex hull of its points.  So a hull is all that a chunk of a history has to tell, and the
hull of several hulls is that of all their points.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from ackfsm.history.arrays import Codes, Ints
from ackfsm.history.joins import number_pairs

FAR: Final = 10**10
"""Nanoseconds.  A cause and an effect that are further apart say nothing about clocks."""

FASTEST: Final = 2e-4
"""Nanoseconds for each nanosecond: two clocks of quartz drift apart by a hundred parts in a million at most."""

_ROUNDED: Final = 3
"""Nanoseconds that make up for rounding the correction of a cause, and of its effect, and order equal times."""

_FEW: Final = 64
"""With so few points the exact hull is taken at once."""

Hull: TypeAlias = Sequence[tuple[int, int]]
"""The corners ``(t, late)`` of an upper convex hull, ``t`` ascending; nanoseconds."""

Hulls: TypeAlias = Mapping[tuple[str, str], Hull]
"""For each pair of processes, of the cause and of the effect, the hull of its demands."""

Line: TypeAlias = tuple[float, float]
"""A correction: nanoseconds at the beginning, and nanoseconds more for each nanosecond after it."""


def hulls_of(names: Sequence[str], before: Codes, after: Codes, t: Ints, late: Ints) -> Hulls:
    """The hulls of demands.

    Args:
        names: of the processes.
        before: the process of each cause, by code.
        after: the process of its effect.
        t: when the effect was recorded.
        late: how long after it the cause was recorded; negative if it was before.
    """
    if not len(t):
        return {}
    pair = number_pairs(before, after)
    order = np.lexsort((late, t, pair))
    ends = np.flatnonzero(np.append(np.diff(pair[order]) != 0, True)) + 1
    return {
        (names[before[its[0]]], names[after[its[0]]]): _hull(t[its], late[its]) for its in np.split(order, ends[:-1])
    }


def united(hulls: Iterable[Hulls]) -> Hulls:
    """The hulls of all demands of all ``hulls``."""
    points = defaultdict[tuple[str, str], list[tuple[int, int]]](list)
    for each in hulls:
        for pair, hull in each.items():
            points[pair] += hull
    return {pair: _exact_hull(sorted(some)) for pair, some in points.items()}


def _hull(t: Ints, late: Ints) -> Hull:
    """The upper convex hull of points in ascending order."""
    highest = np.append(np.diff(t) != 0, True)  # of equal ``t`` the last is the greatest
    t, late = t[highest], late[highest]
    while len(t) > _FEW:
        x, y = (t - t[0]).astype(np.float64), late.astype(np.float64)
        left, right = (y[1:-1] - y[:-2]) * (x[2:] - x[1:-1]), (y[2:] - y[1:-1]) * (x[1:-1] - x[:-2])
        doubt = 1e-12 * (np.abs(left) + np.abs(right))  # what floats may get wrong is left to the exact hull
        stays = np.concatenate([[True], left > right - doubt, [True]])
        if stays.all():
            break
        t, late = t[stays], late[stays]
    return _exact_hull(list(zip(t.tolist(), late.tolist(), strict=True)))


def _exact_hull(points: Iterable[tuple[int, int]]) -> Hull:
    """Andrew's monotone chain over points in ascending order, in whole numbers of any size."""
    hull = list[tuple[int, int]]()
    for t, late in points:
        if hull and hull[-1][0] == t:
            hull.pop()
        while len(hull) > 1 and not _turns_down(hull[-2], hull[-1], (t, late)):
            hull.pop()
        hull.append((t, late))
    return tuple(hull)


def _turns_down(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[1] - a[1]) * (c[0] - b[0]) > (c[1] - b[1]) * (b[0] - a[0])


def lines_of(hulls: Hulls, since: int, until: int, most: int) -> Mapping[str, Line] | None:
    """Corrections, by process, that bring every cause before its effect; ``None`` if straight ones cannot.

    Each is the lowest line in the middle of the time that meets the demands on its process and is nowhere below 0.  It
    begins or ends within ``most`` nanoseconds and does not run faster than :data:`FASTEST`.

    Args:
        hulls: what is demanded.
        since: the beginning of the time that the corrections are for, in nanoseconds.
        until: the end of it.
        most: what two clocks may differ by that have not drifted apart.
    """
    demands = defaultdict[str, list[tuple[str, Hull]]](list)
    for (before, after), hull in sorted(hulls.items()):
        demands[after].append((before, hull))
    lines = dict[str, Line]()
    for _ in range(len({process for pair in hulls for process in pair}) + 1):
        raised = {process: _lowest(_wanted(asked, lines, since), until - since) for process, asked in demands.items()}
        raised = {process: line for process, line in raised.items() if line != (0.0, 0.0)}
        if raised == lines:
            allowed = (
                abs(rate) <= FASTEST and min(start, start + rate * (until - since)) <= most
                for start, rate in lines.values()
            )
            return lines if all(allowed) else None
        lines = raised
    return None


def _wanted(asked: Sequence[tuple[str, Hull]], lines: Mapping[str, Line], since: int) -> list[tuple[int, float]]:
    """What one process is asked for by all others: points, time from the beginning, that its line has to pass above."""
    points = list[tuple[int, float]]()
    for before, hull in asked:
        start, rate = lines.get(before, (0.0, 0.0))
        points += [(t - since, late + start + rate * (t + late - since) + _ROUNDED) for t, late in hull]
    return points


def _lowest(points: Sequence[tuple[int, float]], length: int) -> Line:
    """The line above ``points``, and above 0 from the beginning to ``length``, that is lowest in the middle."""
    hull = list[tuple[float, float]]()
    for point in sorted([*points, (0, 0.0), (length, 0.0)]):
        while len(hull) > 1 and not _turns_down(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    right = next(place for place, (t, _) in enumerate(hull) if 2 * t >= length)
    (x, y), (to_x, to_y) = hull[right - 1], hull[right]
    rate = (to_y - y) / (to_x - x)
    return y - rate * x, rate
