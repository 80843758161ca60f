"""What a line of a history says of one message, and which events of the tables it may be.

A *sign* is what the observer of a message hears.  Which events of the network leave it is a row of
``spec/recording.yaml``; how sure it is that the event happened to the message is said by whoever makes the sign.
"""

from __future__ import annotations

import dataclasses

from ackfsm.history_format import Event, Outcome
from ackfsm.tables import Certainty
from ackfsm.terms import Fault

__all__ = [
    "ACKNOWLEDGING",
    "AT_REST",
    "BOTH",
    "BROKEN",
    "CALLS",
    "CIRCUMSTANCES",
    "CONSUMER_BROKEN",
    "CONSUMER_CLOSED",
    "DELIVERED_FLAGGED",
    "DELIVERED_SOMEHOW",
    "FAILED_WITH",
    "FAULTS",
    "SIGNS",
    "Certainty",
    "Sign",
    "of_consumer",
]


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Sign:
    """One thing that the observer hears.

    Attributes:
        name: one of :data:`SIGNS`.
        consumer: the number of the consumer, from 1 on in the order in which the message met them; 0: of no consumer.
        certainty: how sure it is that it happened to the message.
        of: the messages of a pair that it is of, as bits (1, 2, :data:`BOTH`); 0: of none more than of another.
    """

    name: str
    consumer: int = 0
    certainty: Certainty = Certainty.CERTAIN
    of: int = 0

    def __str__(self) -> str:
        at = f"({self.consumer})" if self.consumer else ""
        return f"{self.name}{at}{'?' if self.certainty is Certainty.PERHAPS else ''}"


BOTH = 3
"""Of the first message of a pair and of the second."""


CALLS = frozenset({Event.SEND, Event.RESEND, Event.ACKNOWLEDGE, Event.COMMIT, Event.ROLLBACK, Event.RECOVER})
"""What is written before it takes effect; every other line is written after what it tells of."""

ACKNOWLEDGING = frozenset({Event.ACKNOWLEDGE.value, Event.ACKNOWLEDGED.value, Event.ACK_IN_DOUBT.value})
"""A call that acknowledges, and the answers to it."""

FAULTS = tuple(fault.value for fault in Fault)

AT_REST = "at rest"
"""Nothing more happened to the message: its queue was seen drained after its last send."""

DELIVERED_FLAGGED = "delivered, flagged"

DELIVERED_SOMEHOW = "delivered, flagged or not"
"""A delivery of one of two messages: its flag is a matter of that message alone."""

BROKEN = "broken connection"
"""``close`` with an ``error``: a connection was found broken."""

FAILED_WITH = {outcome: f"failed, {outcome}" for outcome in Outcome}
"""``failed`` with an ``outcome``, which tells of one event alone."""

_TOLD_BY_BOTH = frozenset(
    {Event.COMMIT, Event.COMMITTED, Event.COMMIT_IN_DOUBT, Event.ROLLBACK, Event.ROLLED_BACK, Event.CLOSE}
)
"""Lines of producers and of consumers alike, which are different events of the tables."""

_NO_SIGNS = frozenset({Event.FAULT, Event.RECOVERED, Event.DRAINED, Event.BEGIN, Event.WAITING, Event.DEPTH})
_NO_SIGNS |= {Event.PREPARE, Event.PREPARED}


def of_consumer(line: str) -> str:
    """The sign of a ``line`` that both sides write, as a consumer's."""
    return f"consumer's {line}"


CONSUMER_BROKEN = of_consumer(BROKEN)

CONSUMER_CLOSED = "close of a consumer"
"""``close`` of one consumer, whose session goes on."""

SIGNS = (
    *(event.value for event in Event if event not in _NO_SIGNS),
    DELIVERED_FLAGGED,
    DELIVERED_SOMEHOW,
    *FAILED_WITH.values(),
    *(of_consumer(event.value) for event in Event if event in _TOLD_BY_BOTH),
    BROKEN,
    CONSUMER_BROKEN,
    CONSUMER_CLOSED,
    *FAULTS,
    AT_REST,
)
"""The names of all signs; the place of a name is its code."""

CIRCUMSTANCES = frozenset({*FAULTS, BROKEN, CONSUMER_BROKEN, CONSUMER_CLOSED}) | frozenset(
    {Event.RECOVER.value, *(of_consumer(event) for event in (Event.ROLLBACK, Event.ROLLED_BACK, Event.CLOSE))}
)
"""What happens around a message and may explain what became of it: faults, and sessions that end or start over."""
