"""Curves as text, for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rich.text import Text

from ackfsm.showing.views.curves import Axis, Curves, label

_MARKS: Final = "ox+*#@%&"
_LEFT: Final = 10
_HEIGHT: Final = 14
_LEAST_WIDTH: Final = 30


def text_plot(curves: Curves, width: int = 80) -> Text:
    """The curves in so many columns, with the numbers of both axes, and below them a line for each curve.

    Where only bounds of a rate are known, the upper one is drawn.
    """
    plot = _Plot(curves, max(width, _LEAST_WIDTH) - _LEFT - 2)
    return Text("\n".join(plot.lines()), no_wrap=True, overflow="ignore")


class _Plot:
    def __init__(self, curves: Curves, width: int) -> None:
        self.curves = curves
        self.width = width
        xs = [x for curve in curves.curves for x in curve.xs]
        ys = [y for curve in curves.curves for y in curve.high]
        low = min(ys) if curves.y.is_logarithmic else 0.0
        self.x = _Scale(curves.x, min(xs), max(xs), width)
        self.y = _Scale(curves.y, low, max(ys), _HEIGHT)

    def lines(self) -> Iterator[str]:
        yield self.curves.y.name
        grid = [[" "] * self.width for _ in range(_HEIGHT)]
        for mark, curve in zip(_MARKS, self.curves.curves, strict=False):
            for column, row in self._cells(curve.xs, curve.high):
                grid[_HEIGHT - 1 - row][column] = mark
        for number, cells in enumerate(grid):
            row = _HEIGHT - 1 - number
            told = label(self.y.number(row)) if row in {0, _HEIGHT // 2, _HEIGHT - 1} else ""
            yield f"{told:>{_LEFT}} |{''.join(cells)}".rstrip()
        yield f"{'':{_LEFT}} +{'-' * self.width}"
        yield self._below()
        yield f"{self.curves.x.name:>{_LEFT + 2 + self.width}}"
        if len(self.curves.curves) > 1:
            yield from (f"  {mark} {curve.name}" for mark, curve in zip(_MARKS, self.curves.curves, strict=False))

    def _cells(self, xs: Sequence[float], ys: Sequence[float]) -> Iterator[tuple[int, int]]:
        """The places of a curve, one in each column between its ends, straight from point to point."""
        places = [(self.x.place(x), self.y.place(y)) for x, y in zip(xs, ys, strict=True)]
        for (left, low), (right, high) in zip(places, places[1:] or places, strict=False):
            for column in range(round(left), round(right) + 1):
                part = 0.0 if right == left else min(max((column - left) / (right - left), 0.0), 1.0)
                yield column, round(low + part * (high - low))

    def _below(self) -> str:
        """The numbers at both ends and in the middle."""
        unit, last = self.curves.x.unit, self.width - 1
        begin, middle, end = (label(self.x.number(at), unit) for at in (0, last // 2, last))
        half = self.width // 2
        return f"{'':{_LEFT + 2}}{begin:<{half}}{middle}".ljust(_LEFT + 2 + self.width - len(end)) + end


class _Scale:
    """Numbers as places from 0, each a character, and back."""

    def __init__(self, axis: Axis, low: float, high: float, size: int) -> None:
        self.to: Callable[[float], float] = math.log10 if axis.is_logarithmic else float
        self.back: Callable[[float], float] = (lambda place: 10.0**place) if axis.is_logarithmic else float
        self.low, self.high = self.to(low), self.to(high)
        self.last = size - 1

    def place(self, number: float) -> float:
        if self.high == self.low:
            return 0.0
        return (self.to(number) - self.low) / (self.high - self.low) * self.last

    def number(self, place: float) -> float:
        return self.back(self.low + (self.high - self.low) * place / self.last)
