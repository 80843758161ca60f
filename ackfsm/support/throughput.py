"""The throughput of a producer, from round-trip time and bandwidth.

The arithmetic is exact (fractions); only what is shown is rounded down.  A gibibit is 2**30 bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

from ackfsm.terms import InputError
from ackfsm.text import quoted

__all__ = [
    "bandwidth_bound",
    "blocking_rate",
    "parse_bandwidth",
    "parse_duration",
    "parse_rate",
    "transaction_rate",
    "window_rate",
]

_SECONDS: Mapping[str, Fraction] = MappingProxyType(
    {"s": Fraction(1), "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9)}
)

_BITS: Mapping[str, int] = MappingProxyType(
    {
        **{f"{prefix}b": 10**power for prefix, power in (("", 0), ("k", 3), ("M", 6), ("G", 9))},
        **{f"{prefix}ib": 2**power for prefix, power in (("K", 10), ("M", 20), ("G", 30))},
    }
)

_QUANTITY = re.compile(r"\s*(?P<number>\d+(\.\d+)?)\s*(?P<unit>[A-Za-z]+)(/s)?\s*")


def parse_duration(text: str) -> Fraction:
    """Seconds, from ``0.25 ms`` or ``1s``.

    Raises :class:`InputError` that lists the units.
    """
    return _quantity(text, _SECONDS)


def parse_bandwidth(text: str) -> Fraction:
    """Bits a second, from ``1 Gib/s`` (2**30 bits) or ``100Mb`` (10**8 bits).

    Raises :class:`InputError` that lists the units.
    """
    return _quantity(text, _BITS)


def parse_rate(text: str) -> Fraction:
    """Messages a second, from ``4000``, ``2.5`` or ``1/3``.

    Raises :class:`InputError` for what is no number above 0.
    """
    try:
        rate = Fraction(text)
    except (ValueError, ZeroDivisionError):
        rate = Fraction(0)
    if rate <= 0:
        raise InputError(f"{quoted(text)} is no rate; write messages a second, a number above 0")
    return rate


def _quantity(text: str, units: Mapping[str, Fraction | int]) -> Fraction:
    match = _QUANTITY.fullmatch(text)
    if match is None or match["unit"] not in units or not Fraction(match["number"]):
        raise InputError(f"{text!r} is no quantity here; write a number above 0 and one of {', '.join(units)}")
    return Fraction(match["number"]) * units[match["unit"]]


def blocking_rate(rtt: Fraction) -> Fraction:
    """Messages a second if each send waits for its answer, ``rtt`` seconds after it at the earliest."""
    return 1 / rtt


def bandwidth_bound(bandwidth: Fraction, size: int) -> Fraction:
    """Messages of ``size`` bytes a second that ``bandwidth`` bits a second carry, whatever the round trip."""
    return bandwidth / (8 * size)


def window_rate(window: int, rtt: Fraction, bandwidth: Fraction, size: int) -> Fraction:
    """Messages a second with at most ``window`` unanswered, each answered at once.

    A window each round trip, which a message begins when it has been sent, or what the bandwidth carries.
    """
    carried = bandwidth_bound(bandwidth, size)
    return min(window / (1 / carried + rtt), carried)


def transaction_rate(batch: int, rtt: Fraction, bandwidth: Fraction, size: int) -> Fraction:
    """Messages a second if ``batch`` are sent without waiting and one commit then waits a round trip."""
    return batch / (batch / bandwidth_bound(bandwidth, size) + rtt)
