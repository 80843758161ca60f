"""The plan of a configuration: its rates, what binds each of them and what would bind next, and its latencies."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Final

from ackfsm.rates.timing._closed_form import delivering, passing, publishing
from ackfsm.rates.timing._interval import Interval
from ackfsm.rates.timing._ticks import Ticks, ticks_of
from ackfsm.rates.timing._waits import Waits
from ackfsm.rates.timing._workload import RESOURCES, Workload

_MOST: Final = 2**40
"""No window is searched beyond so many messages."""


@dataclasses.dataclass(frozen=True, slots=True)
class Side:
    """One side of the broker.

    Attributes:
        rate: messages a second.
        binds: the resource that bounds it: without it the rate would be highest; empty if nothing does.
        next_rate: the rate if that cost nothing.
        next_binds: what would bind then.
    """

    rate: Interval
    binds: str
    next_rate: Interval
    next_binds: str


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The rates and times that a configuration allows.

    Attributes:
        publish: what the producers get to the broker.
        deliver: what the consumers take from a queue that is never empty.
        rate: what passes from end to end.
        confirmation: seconds until a producer knows the outcome of a send (or commit), at least and at most, as nothing
            else is on its way; ``None`` if it never does, or where it may wait for ever.
        delivery: seconds until the application has a message, at least.
        fills: the smallest publish window that leaves nothing to a larger one, ``None`` if there is none.
    """

    publish: Side
    deliver: Side
    rate: Interval
    confirmation: tuple[Fraction, Fraction | None] | None
    delivery: Fraction
    fills: int | None


def plan(work: Workload, waits: Waits) -> Plan:
    """Return the plan of a configuration; ``waits`` says what waits for what."""
    return planned(work, waits, publish_side, deliver_side, window_that_fills)


def planned(
    work: Workload,
    waits: Waits,
    publish: Callable[[Workload, Waits], Side],
    deliver: Callable[[Workload, Waits], Side],
    fills: Callable[[Workload, Waits], int | None],
) -> Plan:
    """A plan whose sides and window are found by these functions."""
    return Plan(
        publish=publish(work, waits),
        deliver=deliver(work, waits),
        rate=_a_second(passing, work, waits),
        confirmation=_confirmation(work, waits),
        delivery=_delivery(work, waits),
        fills=fills(work, waits),
    )


def publish_rate(work: Workload, waits: Waits) -> Interval:
    """Return the rate of the producers to the broker, in messages a second."""
    return _a_second(publishing, work, waits)


def _a_second(rate: Callable[[Ticks, Waits], Interval], work: Workload, waits: Waits) -> Interval:
    ticks = ticks_of(work)
    return rate(ticks, waits).times(ticks.a_second)


def publish_side(work: Workload, waits: Waits) -> Side:
    """Return the side of the producers: their rate to the broker."""
    return _side(_PUBLISHING, work, waits)


def deliver_side(work: Workload, waits: Waits) -> Side:
    """Return the side of the consumers: their rate from a queue that is never empty."""
    return _side(_DELIVERING, work, waits)


@dataclasses.dataclass(frozen=True, slots=True)
class _Rate:
    """The rate of one side, and what may bind it: nothing else changes it."""

    of: Callable[[Ticks, Waits], Interval]
    bounds: frozenset[str]


_THRESHOLD, _WINDOW, _PREFETCH = "threshold or timer", "window", "prefetch"

_PUBLISHING: Final = _Rate(
    publishing,
    frozenset(
        {
            _THRESHOLD,
            _WINDOW,
            "round trip",
            "bandwidth up",
            "sync",
            "timer",
            "sending",
            "broker",
            "offered rate",
            "credit",
        }
    ),
)
_DELIVERING: Final = _Rate(delivering, frozenset({_PREFETCH, "round trip", "bandwidth down", "sync", "processing"}))


@dataclasses.dataclass(frozen=True, slots=True)
class _Case:
    """A workload and its waits, without the named bounds."""

    without: str
    work: Ticks
    waits: Waits

    def relaxed(self, bounds: frozenset[str]) -> Iterator[_Case]:
        """Yield the case without each of ``bounds`` that it has, the configuration's first."""
        work, waits = self.work, self.waits
        if _THRESHOLD in bounds and waits.threshold is not None:
            yield _Case(_THRESHOLD, work, dataclasses.replace(waits, threshold=None))
        if _WINDOW in bounds and waits.next_send_after == "window" and waits.window is not None:
            yield _Case(_WINDOW, work, dataclasses.replace(waits, window=None, threshold=None))
        if _PREFETCH in bounds and waits.prefetch is not None:
            yield _Case(_PREFETCH, work, dataclasses.replace(waits, prefetch=None))
        for resource in RESOURCES:
            if resource in bounds and work.costs(resource):
                yield _Case(resource, work.without(resource), waits)


def _side(rate: _Rate, work: Workload, waits: Waits) -> Side:
    case = _Case("", ticks_of(work), waits)
    found = _binding(rate, case)
    now = rate.of(case.work, waits).times(case.work.a_second)
    if found is None:
        return Side(now, "", now, "")
    after = _binding(rate, found)
    later = rate.of(found.work, found.waits).times(case.work.a_second)
    return Side(now, found.without, later, after.without if after else "")


def _binding(rate: _Rate, case: _Case) -> _Case | None:
    """What raises the rate most where it costs nothing, the first of equals; two things, if each binds as much.

    ``None`` if nothing binds.
    """
    now, alone = _order(rate.of(case.work, case.waits)), [*case.relaxed(rate.bounds)]
    pairs = (
        dataclasses.replace(other, without=f"{one.without} and {other.without}")
        for one in alone
        for other in one.relaxed(rate.bounds)
    )
    for found in (alone, pairs):
        best, most = None, now
        for each in found:
            gained = _order(rate.of(each.work, each.waits))
            if gained > most:
                best, most = each, gained
        if best is not None:
            return best
    return None


def _order(rate: Interval) -> tuple[bool, Fraction]:
    """Rates in their order; the highest is the one without a bound."""
    return rate.high is None, rate.high or Fraction(0)


def _confirmation(work: Workload, waits: Waits) -> tuple[Fraction, Fraction | None] | None:
    if waits.next_send_after == "nothing":
        return None
    if waits.next_send_after == "commit":
        answers = work.rtt * (2 if waits.completes_first else 1)
        least_ = answers + (work.sync_time if waits.commit_after_sync else 0)
        return least_, least_
    least_ = work.transmission + work.broker_time + work.rtt + (work.sync_time if waits.send_after_sync else 0)
    if waits.threshold is None or waits.threshold == 1:
        return least_, least_
    return least_, least_ + work.timer if waits.has_timer else None


def _delivery(work: Workload, waits: Waits) -> Fraction:
    way = work.transmission + work.broker_time + work.rtt + work.transmission_back
    if waits.next_send_after == "commit" and waits.commit_after_sync:
        way += work.sync_time
    if waits.acknowledged_first and waits.waits_for_acknowledged:
        way += work.rtt + (work.sync_time if waits.acknowledge_after_sync else 0)
    return way


def window_that_fills(work: Workload, waits: Waits) -> int | None:
    """The smallest publish window beside which a larger one gains nothing; ``None`` if there is no such bound.

    A threshold that is a third of the window, as it is by default, goes with it.
    """
    if waits.next_send_after != "window":
        return None
    third, ticks = has_default_threshold(waits), ticks_of(work)

    def high(window: int | None) -> tuple[bool, Fraction]:
        threshold = _third(window) if third and window is not None else waits.threshold
        of = dataclasses.replace(waits, window=window, threshold=None if window is None else threshold)
        return _order(publishing(ticks, of))

    unbounded, most = high(None), 1
    while most < _MOST and high(most) < unbounded:
        most *= 2
    return None if most >= _MOST else bisect.bisect_left(range(1, most + 1), unbounded, key=high) + 1


def has_default_threshold(waits: Waits) -> bool:
    """Whether the threshold is a third of the window, as it is by default."""
    return waits.threshold is not None and waits.window is not None and waits.threshold == _third(waits.window)


def _third(window: int) -> int:
    return -(-window // 3)
