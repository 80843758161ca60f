"""Draw points in powers of ten, as SVG: how long something takes against its size, what was predicted and measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

__all__ = ["drawn", "scattered", "slope"]

Points: TypeAlias = "Sequence[tuple[float, float]]"
"""Two numbers each: a size and the seconds that it takes, for example."""

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 400, 70, 190, 20, 50
_COLOURS: Final = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")
_UNITS: Final = {9: " G", 6: " M", 3: " k"}


def slope(points: Points) -> float:
    """By what power of the size the time grows: the straight line of least squares in logarithms."""
    xs, ys = ([math.log10(value) for value in column] for column in zip(*points, strict=True))
    x0, y0 = sum(xs) / len(xs), sum(ys) / len(ys)
    moved = [(x - x0, y - y0) for x, y in zip(xs, ys, strict=True)]
    return sum(x * y for x, y in moved) / sum(x * x for x, _ in moved)


class _Frame:
    """The axes of a picture in powers of ten, and where a point is in it."""

    def __init__(self, points: Points) -> None:
        xs, ys = ([math.log10(value) for value in column] for column in zip(*points, strict=True))
        (self.left, self.right), (self.low, self.high) = (
            (math.floor(min(its)), math.ceil(max(its))) for its in (xs, ys)
        )

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of a point whose logarithms these are."""
        across = (x - self.left) / max(1, self.right - self.left) * (_WIDTH - _LEFT - _RIGHT)
        return _LEFT + across, _HEIGHT - _BOTTOM - (y - self.low) / max(1, self.high - self.low) * (
            _HEIGHT - _TOP - _BOTTOM
        )

    def of(self, x: float, y: float) -> tuple[float, float]:
        """The place of a point."""
        return self.at(math.log10(x), math.log10(y))

    def grid(self, x_label: str, y_label: str) -> list[str]:
        """The lines of the powers of ten, with their names and those of the axes."""
        left, right, low, high, at = self.left, self.right, self.low, self.high, self.at
        parts = [_line(at(x, low), at(x, high)) + _text(at(x, low), _power(x), 0, 18) for x in range(left, right + 1)]
        parts += [
            _line(at(left, y), at(right, y)) + _text(at(left, y), _power(y), -24, 4) for y in range(low, high + 1)
        ]
        parts.append(_text(((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT), x_label, 0, -10))
        parts.append(f'<g transform="translate(14 {_HEIGHT / 2}) rotate(-90)">{_text((0, 0), y_label)}</g>')
        return parts


def drawn(sides: Mapping[str, Points], x_label: str, y_label: str) -> str:
    """A picture of the sides, with the slope of each beside its name."""
    frame = _Frame([point for points in sides.values() for point in points])
    parts = frame.grid(x_label, y_label)
    for colour, (name, points) in zip(_COLOURS, sides.items(), strict=False):
        places = [frame.of(x, y) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        ends_early = places[-1][0] < _WIDTH - _RIGHT  # then other lines go on to the right of it
        right, down, anchor = (-6, -8, "end") if ends_early else (8, 4, "start")
        label = f"{name} ({slope(points):.2f})"
        parts.append(_text(places[-1], label, right, down, f'fill="{colour}" text-anchor="{anchor}"'))
    return _picture(parts)


def scattered(sides: Mapping[str, Points], x_label: str, y_label: str, *, near: float) -> str:
    """A picture of points, with the lines on which both of their numbers are equal, and ``near`` to each other."""
    frame = _Frame([point for points in sides.values() for point in points])
    parts = frame.grid(x_label, y_label)
    least, most = 10.0 ** max(frame.left, frame.low), 10.0 ** min(frame.right, frame.high)
    for part in (1 - near, 1.0, 1 + near):
        begin, end = least / min(part, 1.0), most / max(part, 1.0)
        parts.append(_line(frame.of(begin, begin * part), frame.of(end, end * part), "#555" if part == 1 else "#aaa"))
    for nth, (colour, (name, points)) in enumerate(zip(_COLOURS, sides.items(), strict=False)):
        places = [frame.of(x, y) for x, y in points]
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}" fill-opacity="0.7"/>' for x, y in places]
        legend = _WIDTH - _RIGHT + 16, _TOP + 20 * (nth + 1)
        parts.append(f'<circle cx="{legend[0]}" cy="{legend[1] - 4}" r="4" fill="{colour}"/>')
        parts.append(_text(legend, name, 12, 0, f'fill="{colour}" text-anchor="start"'))
    return _picture(parts)


def _picture(parts: Sequence[str]) -> str:
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>", ""])


def _line(begin: tuple[float, float], end: tuple[float, float], colour: str = "#ccc") -> str:
    return f'<path d="M{begin[0]:.1f} {begin[1]:.1f}L{end[0]:.1f} {end[1]:.1f}" stroke="{colour}"/>'


def _text(
    place: tuple[float, float], text: str, right: float = 0, down: float = 0, more: str = 'text-anchor="middle"'
) -> str:
    return f'<text x="{place[0] + right:.1f}" y="{place[1] + down:.1f}" {more}>{text}</text>'


def _power(exponent: int) -> str:
    unit = max((each for each in _UNITS if each <= exponent), default=0)
    return f"{10 ** (exponent - unit)}{_UNITS.get(unit, '')}" if exponent >= 0 else f"{10.0**exponent:g}"
