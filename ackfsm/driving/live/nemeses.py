"""How a live broker is struck: by the faults of the tables, and by troubles for which the tables have no word."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from operator import methodcaller
from types import MappingProxyType
from typing import Final

from ackfsm.driving.live.brokers import LiveBroker
from ackfsm.terms import Fault

__all__ = ["FAULTS", "NEMESES", "Nemesis"]

_OF_BROKER: Final[Mapping[Fault, Callable[[LiveBroker], None]]] = MappingProxyType(
    {
        Fault.BROKER_KILL: methodcaller("kill"),
        Fault.BROKER_CRASH: methodcaller("lose_power"),
        Fault.JOURNAL_FAILURE: methodcaller("fail_journal"),
    }
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Nemesis:
    """Who strikes; what it does is data.

    Attributes:
        faults: those of the tables as which its strikes are judged, ``None`` among them for none: then nothing is to
            be seen but that calls take longer.
        broker: what each fault of the broker does.
        holds: seconds for which a connection carries nothing one way before it is cut.
        pauses: seconds for which the broker is stopped while a call is under way.
        rtt: the round trip of every connection, in seconds.
    """

    faults: Sequence[Fault | None]
    broker: Mapping[Fault, Callable[[LiveBroker], None]] = dataclasses.field(default_factory=lambda: _OF_BROKER)
    holds: float = 0.0
    pauses: float = 0.0
    rtt: float = 0.0


FAULTS: Final = Nemesis(faults=(None, *Fault))
"""Strikes by the faults of the tables."""
NEMESES: Final[Mapping[str, Nemesis]] = MappingProxyType(
    {
        "pause": Nemesis(faults=(None,), pauses=0.4),
        "delay": Nemesis(faults=(None,), rtt=0.05),
        "restart": Nemesis(
            faults=(Fault.BROKER_KILL,), broker=MappingProxyType({Fault.BROKER_KILL: methodcaller("stop")})
        ),
        "blackhole": Nemesis(faults=(Fault.PRODUCER_LINK_LOSS, Fault.CONSUMER_LINK_LOSS), holds=0.3),
    }
)
"""By name; a broker that is shut down keeps at least what one that is killed does."""
