"""A rate between two bounds: exact where they are the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from fractions import Fraction


@dataclasses.dataclass(frozen=True, slots=True)
class Interval:
    """Messages in a unit of time, at least ``low`` and at most ``high``; ``None`` where nothing takes any time."""

    low: Fraction | None
    high: Fraction | None

    @classmethod
    def exactly(cls, rate: Fraction | None) -> Interval:
        """Both bounds are ``rate``."""
        return cls(rate, rate)

    @classmethod
    def each(cls, messages: int, low: int | Fraction, high: int | Fraction | None = None) -> Interval:
        """So many messages in each ``low``, a time, or at best in each ``high``."""
        rate = _rate(messages, low)
        return cls(rate, rate if high is None or high == low else _rate(messages, high))

    @property
    def is_exact(self) -> bool:
        """Whether the rate is known, not only its bounds."""
        return self.low == self.high

    def times(self, count: int) -> Interval:
        """The same ``count`` times over, beside each other."""
        if count == 1:
            return self
        low = None if self.low is None else self.low * count
        if self.high is self.low:
            return Interval(low, low)
        return Interval(low, None if self.high is None else self.high * count)


UNBOUNDED = Interval(None, None)


def _rate(messages: int, time: int | Fraction) -> Fraction | None:
    return None if time == 0 else Fraction(messages, time)


def least(intervals: Iterable[Interval]) -> Interval:
    """Return the rate of a station that has to pass all of the ``intervals``."""
    known = [each for each in intervals if each is not UNBOUNDED]
    if len(known) == 1:
        return known[0]
    low = min((each.low for each in known if each.low is not None), default=None)
    if all(each.high is each.low for each in known):
        return Interval(low, low)
    return Interval(low, min((each.high for each in known if each.high is not None), default=None))
