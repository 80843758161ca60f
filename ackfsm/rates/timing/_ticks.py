"""A workload in whole ticks, so that all that the closed form does with times is done with whole numbers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

from ackfsm.rates.timing._workload import RESOURCES, Workload


@dataclasses.dataclass(frozen=True, slots=True)
class Ticks:
    """The numbers of a workload, with times in ticks, ``a_second`` of them, and ``rate`` in messages a tick.

    The fields are those of :class:`ackfsm.rates.timing.Workload`, with its properties.
    """

    a_second: int
    rtt: int
    transmission: int
    transmission_back: int
    send_time: int
    broker_time: int
    sync_time: int
    group_commit: bool
    processing_time: int
    timer: int
    producers: int
    consumers: int
    messages_per_commit: int
    messages_per_acknowledge: int
    lazy_batch: int
    credit: int | None
    rate: Fraction | None
    interval: int

    def costs(self, resource: str) -> bool:
        """Whether ``resource`` (of :data:`ackfsm.rates.timing.RESOURCES`) takes time, or bounds anything, as it is."""
        return any(getattr(self, name) != value for name, value in _FREE[resource].items())

    def without(self, resource: str) -> Ticks:
        """The same where ``resource`` costs nothing."""
        return dataclasses.replace(self, **_FREE[resource])


_INSTEAD: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "bandwidth up": {"transmission": 0},
        "bandwidth down": {"transmission_back": 0},
        "offered rate": {"rate": None, "interval": 0},
    }
)

_FREE: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType({**RESOURCES, **_INSTEAD})
"""What may bind a rate, and what it is in ticks where that costs nothing."""

_TIMES: Final = (
    "rtt",
    "transmission",
    "transmission_back",
    "send_time",
    "broker_time",
    "sync_time",
    "processing_time",
    "timer",
    "interval",
)
_OTHERS: Final = (
    "group_commit",
    "producers",
    "consumers",
    "messages_per_commit",
    "messages_per_acknowledge",
    "lazy_batch",
    "credit",
)


def ticks_of(work: Workload) -> Ticks:
    """The workload in the longest ticks that all its times are multiples of."""
    times: dict[str, Fraction] = {name: getattr(work, name) for name in _TIMES}
    a_second = math.lcm(*(time.denominator for time in times.values()))
    return Ticks(
        a_second=a_second,
        **{name: time.numerator * (a_second // time.denominator) for name, time in times.items()},  # type: ignore[arg-type] # by name
        **{name: getattr(work, name) for name in _OTHERS},
        rate=None if work.rate is None else work.rate / a_second,
    )
