"""How latencies are distributed: percentiles, and a histogram whose bounds are round numbers."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Final

import numpy as np

PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9)
"""Of each a share of all messages is not slower."""

_MOST_BINS: Final = 12
_WIDE: Final = 8
"""Where the slowest takes so many times as long as the fastest, bounds grow by factors."""
_FINEST: Final = 50
"""No bin is narrower than such a part of the fastest."""
_PICOSECOND: Final = 1e-12


@dataclasses.dataclass(frozen=True, slots=True)
class Latencies:
    """Latencies of messages, in seconds.

    Attributes:
        count: of how many messages something was heard.
        percentiles: the latency that so many per cent of these do not exceed.
        most: the largest.
        histogram: for each bin its bounds, the upper one exclusive but in the last, and how many messages are in it.
    """

    count: int
    percentiles: tuple[tuple[float, float], ...]
    most: float
    histogram: tuple[tuple[float, float, int], ...]


def latencies(seconds: np.ndarray[Any, Any]) -> Latencies | None:
    """Return the distribution of ``seconds``, without ones below 0, which never came; ``None`` if none came."""
    heard = np.sort(seconds[seconds >= 0])
    if len(heard) == 0:
        return None
    ranks = [min(math.ceil(percent / 100 * len(heard)), len(heard)) - 1 for percent in PERCENTILES]
    edges = _edges(float(heard[0]), float(heard[-1]))
    counts, _ = np.histogram(heard, edges)
    return Latencies(
        count=len(heard),
        percentiles=tuple((percent, float(heard[rank])) for percent, rank in zip(PERCENTILES, ranks, strict=True)),
        most=float(heard[-1]),
        histogram=tuple(zip(edges, edges[1:], counts.tolist(), strict=False)),
    )


def _edges(least: float, most: float) -> list[float]:
    """Bounds around both, of round numbers: equally wide, or growing where that would leave most bins empty."""
    least = max(least, _PICOSECOND)
    if most < _WIDE * least:
        return _equal(least, max(most, least))
    edges = [_round_down(least)]
    while edges[-1] <= most:
        edges.append(_next(edges[-1]))
    return edges


def _equal(least: float, most: float) -> list[float]:
    width = _next(max((most - least) / _MOST_BINS, least / _FINEST))
    first = math.floor(least / width)
    return [number * width for number in range(first, math.floor(most / width) + 2)]


def _round_down(value: float) -> float:
    """The largest of 1, 2, 5, 10 … (and of their tenths) that is not above ``value``."""
    power = 10.0 ** math.floor(math.log10(value))
    return max((factor * power for factor in (1, 2, 5) if factor * power <= value), default=power / 2)


def _next(value: float) -> float:
    """The next of them above ``value``."""
    power = 10.0 ** math.floor(math.log10(value))
    found = (factor * power for factor in (1, 2, 5, 10) if factor * power > value * (1 + 1e-9))
    return next(found, 20 * power)
