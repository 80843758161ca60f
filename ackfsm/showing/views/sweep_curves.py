"""What of a sweep is drawn: its rates against one dimension, a curve for each combination of the others."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from ackfsm.rates.timing import Dimension, Grid, Row
from ackfsm.showing.views.curves import Axis, Curve, Curves, is_wide
from ackfsm.terms import InputError
from ackfsm.text import parse_size

MOST_CURVES: Final = 8
"""So many curves can be told from each other."""

_UNITS: Final = {
    "bandwidth": "b/s",
    "bandwidth_back": "b/s",
    "message_size": "B",
    **dict.fromkeys(("rtt", "send_time", "broker_time", "sync_time", "processing_time", "timer"), "s"),
}

_WORDS: Final = {"rtt": "round trip", "per_commit": "messages of a transaction"}


def curves_of(grid: Grid, rows: Sequence[Row]) -> Curves:
    """The curves of a sweep.

    Against each other stand the dimension with most numbers, the first of equals, and the rate of the side of the
    broker that the sweep changes, that of the producers if it changes both.  Cells that cannot be, and those whose
    rate has no bound, are left out.

    Raises :class:`InputError` where no dimension has numbers, or the others have too many combinations.
    """
    side = "publish" if _changes(rows, "publish") or not _changes(rows, "deliver") else "deliver"
    across = max(grid.dimensions, key=lambda dimension: len(_numbers(dimension)))
    numbers = _numbers(across)
    if len(numbers) < _LEAST:
        raise InputError("a plot is against numbers, and no dimension of the sweep has two; sweep rtt=1ms,10ms")
    found: dict[str, list[tuple[float, float, float]]] = {}
    for row in rows:
        name = ", ".join(f"{key}={value}" for key, value in row.swept.items() if key != across.name)
        low, high = getattr(row, f"{side}_at_least"), getattr(row, f"{side}_at_most")
        if row.swept[across.name] in numbers and low is not None and high is not None:
            found.setdefault(name, []).append((numbers[row.swept[across.name]], low, high))
    if not found:
        raise InputError("nothing takes time in any cell of the sweep, so that there is no rate to draw; say what does")
    if len(found) > MOST_CURVES:
        raise InputError(
            f"a plot against {across.name} would have {len(found):,} curves, and {MOST_CURVES} can be told from each "
            "other; take fewer values of the others"
        )
    curves = [Curve(name or _SIDES[side], *zip(*sorted(points), strict=True)) for name, points in found.items()]
    return Curves(
        Axis(
            _WORDS.get(across.name, across.name.replace("_", " ")),
            _UNITS.get(across.name, ""),
            is_wide([x for curve in curves for x in curve.xs]),
        ),
        Axis(
            f"messages {_SIDES[side]} a second", "", is_wide([y for curve in curves for y in (*curve.low, *curve.high)])
        ),
        curves,
    )


_LEAST: Final = 2
_SIDES: Final = {"publish": "published", "deliver": "delivered"}


def _changes(rows: Sequence[Row], side: str) -> bool:
    return len({getattr(row, f"{side}_at_most") for row in rows if row.illegal is None}) > 1


def _numbers(dimension: Dimension) -> dict[str, float]:
    """Return the values that are numbers, by their written form."""
    if dimension.is_setting:
        known = ((value, parse_size(value)) for value in dimension.values)
        return {value: float(number) for value, number in known if number is not None}
    pairs = zip(dimension.values, dimension.numbers, strict=True)
    return {
        value: float(each) for value, each in pairs if isinstance(each, int | Fraction) and not isinstance(each, bool)
    }
