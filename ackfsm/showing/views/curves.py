"""The parts of a picture of curves, and the form of its numbers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Final

_WIDE: Final = 20
"""An axis is in powers of ten from a largest number on that is so many times the smallest."""


@dataclasses.dataclass(frozen=True, slots=True)
class Axis:
    """What an axis has, in which unit (empty: a count), and whether it is in powers of ten."""

    name: str
    unit: str
    is_logarithmic: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Curve:
    """Points in their order; where only bounds of the second number are known, ``low`` is below ``high``."""

    name: str
    xs: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclasses.dataclass(frozen=True, slots=True)
class Curves:
    """A picture of curves.

    Attributes:
        x: the axis across.
        y: the axis up.
        curves: one colour each.
        dots: the points are not joined.
        guides: lines of points whose second number is so many times the first.
    """

    x: Axis
    y: Axis
    curves: Sequence[Curve]
    dots: bool = False
    guides: Sequence[float] = ()


def is_wide(numbers: Sequence[float]) -> bool:
    """Whether an axis of these is in powers of ten."""
    return min(numbers) > 0 and max(numbers) / min(numbers) >= _WIDE


_PREFIXES: Final = {4: "T", 3: "G", 2: "M", 1: "k", 0: "", -1: "m", -2: "µ", -3: "n"}


def label(number: float, unit: str = "") -> str:
    """A number with three digits, with a prefix of its unit: ``89.5 k``, ``100 µs``."""
    power = 0 if number == 0 else math.floor(math.log10(abs(number) * (1 + _ROUNDING)) / 3)
    power = min(max(power, min(_PREFIXES)), max(_PREFIXES))
    return f"{number / 1000.0**power:.3g} {_PREFIXES[power]}{unit}".rstrip()


_ROUNDING: Final = 1e-9
"""A power of ten that is a little too small is one."""
