"""Draw how long something takes against its size, both in powers of ten, as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

__all__ = ["drawn", "slope"]

Points: TypeAlias = "Sequence[tuple[float, float]]"
"""A size and the seconds that it takes, each."""

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 400, 70, 190, 20, 50
_COLOURS: Final = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")
_UNITS: Final = {9: " G", 6: " M", 3: " k"}


def slope(points: Points) -> float:
    """By what power of the size the time grows: the straight line of least squares in logarithms."""
    xs, ys = ([math.log10(value) for value in column] for column in zip(*points, strict=True))
    x0, y0 = sum(xs) / len(xs), sum(ys) / len(ys)
    moved = [(x - x0, y - y0) for x, y in zip(xs, ys, strict=True)]
    return sum(x * y for x, y in moved) / sum(x * x for x, _ in moved)


def drawn(sides: Mapping[str, Points], x_label: str, y_label: str) -> str:
    """A picture of the sides, with the slope of each beside its name."""
    xs, ys = ([math.log10(p[axis]) for points in sides.values() for p in points] for axis in (0, 1))
    (left, right), (low, high) = ((math.floor(min(its)), math.ceil(max(its))) for its in (xs, ys))

    def at(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + (x - left) / max(1, right - left) * (_WIDTH - _LEFT - _RIGHT)
        return across, _HEIGHT - _BOTTOM - (y - low) / max(1, high - low) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [_line(at(x, low), at(x, high)) + _text(at(x, low), _power(x), 0, 18) for x in range(left, right + 1)]
    parts += [_line(at(left, y), at(right, y)) + _text(at(left, y), _power(y), -24, 4) for y in range(low, high + 1)]
    parts.append(_text(((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT), x_label, 0, -10))
    parts.append(f'<g transform="translate(14 {_HEIGHT / 2}) rotate(-90)">{_text((0, 0), y_label)}</g>')
    for colour, (name, points) in zip(_COLOURS, sides.items(), strict=False):
        places = [at(math.log10(x), math.log10(y)) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        ends_early = places[-1][0] < _WIDTH - _RIGHT  # then other lines go on to the right of it
        right, down, anchor = (-6, -8, "end") if ends_early else (8, 4, "start")
        label = f"{name} ({slope(points):.2f})"
        parts.append(_text(places[-1], label, right, down, f'fill="{colour}" text-anchor="{anchor}"'))
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>", ""])


def _line(begin: tuple[float, float], end: tuple[float, float]) -> str:
    return f'<path d="M{begin[0]:.1f} {begin[1]:.1f}L{end[0]:.1f} {end[1]:.1f}" stroke="#ccc"/>'


def _text(
    place: tuple[float, float], text: str, right: float = 0, down: float = 0, more: str = 'text-anchor="middle"'
) -> str:
    return f'<text x="{place[0] + right:.1f}" y="{place[1] + down:.1f}" {more}>{text}</text>'


def _power(exponent: int) -> str:
    unit = max((each for each in _UNITS if each <= exponent), default=0)
    return f"{10 ** (exponent - unit)}{_UNITS.get(unit, '')}" if exponent >= 0 else f"{10.0**exponent:g}"
