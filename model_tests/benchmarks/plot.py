"""Draw points in powers of ten, as SVG: how long something takes against its size, what was predicted and measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ackfsm.showing.views.curves import Axis, Curve, Curves
from ackfsm.showing.views.plot import plotted

__all__ = ["drawn", "scattered", "slope"]

Points: TypeAlias = "Sequence[tuple[float, float]]"
"""Two numbers each: a size and the seconds that it takes, for example."""


def slope(points: Points) -> float:
    """By what power of the size the time grows: the straight line of least squares in logarithms."""
    xs, ys = ([math.log10(value) for value in column] for column in zip(*points, strict=True))
    x0, y0 = sum(xs) / len(xs), sum(ys) / len(ys)
    moved = [(x - x0, y - y0) for x, y in zip(xs, ys, strict=True)]
    return sum(x * y for x, y in moved) / sum(x * x for x, _ in moved)


def drawn(sides: Mapping[str, Points], x_label: str, y_label: str) -> str:
    """A picture of the sides, with the slope of each beside its name."""
    curves = [_curve(f"{name} ({slope(points):.2f})", points) for name, points in sides.items()]
    return _svg(Curves(_axis(x_label), _axis(y_label), curves))


def scattered(sides: Mapping[str, Points], x_label: str, y_label: str, *, near: float) -> str:
    """A picture of points, with the lines on which both of their numbers are equal, and ``near`` to each other."""
    curves = [_curve(name, points) for name, points in sides.items()]
    return _svg(Curves(_axis(x_label), _axis(y_label), curves, dots=True, guides=(1 - near, 1, 1 + near)))


def _curve(name: str, points: Points) -> Curve:
    xs, ys = zip(*points, strict=True)
    return Curve(name, xs, ys, ys)


def _axis(label: str) -> Axis:
    return Axis(label, "", is_logarithmic=True)


def _svg(curves: Curves) -> str:
    return plotted(curves, "svg").decode()
