"""The workload: messages, producers, network and broker, as numbers that no table of ``spec/`` has."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final

from ackfsm.terms import InputError

_ZERO: Final = Fraction(0)


@dataclasses.dataclass(frozen=True, slots=True)
class Workload:
    """A workload, its network and the speeds of those who take part; times are seconds, exact.

    Attributes:
        rtt: the round trip of an empty frame between a client and the broker, half of it each way.
        bandwidth: bits a second of each connection towards the broker; ``None``: a frame takes no time of its own.
        bandwidth_back: the same from the broker to a client.
        message_size: bytes of a message on the wire.  Answers, acknowledgements and commits take no bandwidth.
        send_time: work of the producer for each message, before it is sent.
        broker_time: work of the broker for each message that it reads, one after the other.
        sync_time: how long a sync of the journal takes.
        group_commit: one sync takes all that is written; otherwise each message has one of its own.
        processing_time: work of the consumer for each message.
        timer: after how long the broker answers without having reached its threshold.
        producers: how many, each with its own connection, and with its own window.
        consumers: how many, each with its own connection and prefetch.
        messages_per_commit: messages of each transaction.
        messages_per_acknowledge: messages that the application takes before each call that acknowledges them all.
        lazy_batch: messages that a library acknowledges at a time where it does so lazily.
        credit: messages that a producer may send ahead of the broker's leave, which takes a round trip and waits for
            nothing; ``None``: it needs none.
        rate: messages a second that all producers together have to send; ``None``: as many as they can.
    """

    rtt: Fraction = _ZERO
    bandwidth: Fraction | None = None
    bandwidth_back: Fraction | None = None
    message_size: int = 1500
    send_time: Fraction = _ZERO
    broker_time: Fraction = _ZERO
    sync_time: Fraction = _ZERO
    group_commit: bool = True
    processing_time: Fraction = _ZERO
    timer: Fraction = Fraction(1)
    producers: int = 1
    consumers: int = 1
    messages_per_commit: int = 1
    messages_per_acknowledge: int = 1
    lazy_batch: int = 32
    credit: int | None = None
    rate: Fraction | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be.  Raises :class:`InputError` naming the field."""
        for name in _TIMES:
            if getattr(self, name) < 0:
                raise InputError(f"{name} is negative; a time is 0 or more")
        for name in _COUNTS:
            if (getattr(self, name) or 0) < 1 and not (name == "credit" and self.credit is None):
                raise InputError(f"{name} is {getattr(self, name)}; it is a whole number from 1")
        for name in ("bandwidth", "bandwidth_back", "rate"):
            if getattr(self, name) is not None and getattr(self, name) <= 0:
                raise InputError(f"{name} is not above 0; leave it out where nothing bounds it")

    @property
    def transmission(self) -> Fraction:
        """Seconds that a message occupies the connection to the broker."""
        return _transmission(self.message_size, self.bandwidth)

    @property
    def transmission_back(self) -> Fraction:
        """Seconds that a message occupies the connection to its consumer."""
        return _transmission(self.message_size, self.bandwidth_back)

    @property
    def interval(self) -> Fraction:
        """Seconds between two messages that one producer has to send."""
        return _ZERO if self.rate is None else self.producers / self.rate

    def without(self, resource: str) -> Workload:
        """The same where ``resource`` (of :data:`RESOURCES`) costs nothing."""
        return dataclasses.replace(self, **RESOURCES[resource])

    def only(self, resource: str) -> Workload:
        """The same where all of :data:`RESOURCES` but ``resource`` cost nothing."""
        free = {
            name: value
            for other in RESOURCES.values()
            if other is not RESOURCES[resource]
            for name, value in other.items()
        }
        return dataclasses.replace(self, **free)


def _transmission(size: int, bandwidth: Fraction | None) -> Fraction:
    return _ZERO if bandwidth is None else 8 * size / bandwidth


_TIMES: Final = ("rtt", "send_time", "broker_time", "sync_time", "processing_time", "timer")
_COUNTS: Final = (
    "message_size",
    "producers",
    "consumers",
    "messages_per_commit",
    "messages_per_acknowledge",
    "lazy_batch",
    "credit",
)

RESOURCES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "credit": {"credit": None},  # before what it waits for, which binds as much
        "round trip": {"rtt": _ZERO},
        "bandwidth up": {"bandwidth": None},
        "bandwidth down": {"bandwidth_back": None},
        "sync": {"sync_time": _ZERO},
        "timer": {"timer": _ZERO},
        "processing": {"processing_time": _ZERO},
        "sending": {"send_time": _ZERO},
        "broker": {"broker_time": _ZERO},
        "offered rate": {"rate": None},
    }
)
"""What may bind a rate, and what it is where that costs nothing."""


class Spread(enum.IntEnum):
    """How a time is distributed around its mean; uniform is from 0 to twice the mean."""

    CONSTANT = 0
    EXPONENTIAL = 1
    UNIFORM = 2


SPREAD_TIMES: Final = ("broker_time", "processing_time", "rtt", "send_time", "sync_time")
"""The times of a workload that may be distributed; each way of a round trip is drawn by itself."""
