"""A rate between two bounds: exact where they are the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from fractions import Fraction

__all__ = ["UNBOUNDED", "Interval", "least"]


@dataclasses.dataclass(frozen=True, slots=True)
class Interval:
    """Messages a second, at least ``low`` and at most ``high``; ``None`` where nothing takes any time."""

    low: Fraction | None
    high: Fraction | None

    @classmethod
    def exactly(cls, rate: Fraction | None) -> Interval:
        """Both bounds are ``rate``."""
        return cls(rate, rate)

    @classmethod
    def each(cls, messages: int, low: Fraction, high: Fraction | None = None) -> Interval:
        """So many messages in each ``low`` seconds, or at best in each ``high``."""
        return cls(_rate(messages, low), _rate(messages, low if high is None else high))

    @property
    def is_exact(self) -> bool:
        """Whether the rate is known, not only its bounds."""
        return self.low == self.high

    def times(self, count: int) -> Interval:
        """The same ``count`` times over, beside each other."""
        return Interval(*(None if bound is None else bound * count for bound in (self.low, self.high)))


UNBOUNDED = Interval(None, None)


def _rate(messages: int, seconds: Fraction) -> Fraction | None:
    return None if seconds == 0 else messages / seconds


def least(intervals: Iterable[Interval]) -> Interval:
    """The rate of what has to pass all of them."""
    known = list(intervals)
    lows = [each.low for each in known if each.low is not None]
    highs = [each.high for each in known if each.high is not None]
    return Interval(min(lows, default=None), min(highs, default=None))
