"""Look into a queue without consuming (JMS 3.1, ``QueueBrowser``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ackfsm.engine.core.instances import Copy
from ackfsm.engine.core.links import Queue
from ackfsm.engine.core.message import Body, HeaderValue, Sent
from ackfsm.terms import DeliveryMode

if TYPE_CHECKING:
    from ackfsm.engine.broker import Broker
    from ackfsm.engine.session import Session

__all__ = ["UNSETTLED", "Browsed", "Browser", "copies_in"]

UNSETTLED = frozenset({"dispatched", "acked_in_transaction"})
"""A message in these states is with a consumer, or acknowledged in a transaction that is open."""

_THERE = frozenset({"ready"}) | UNSETTLED
"""A message in these states is in the queue: it is neither of an open transaction any more nor removed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Browsed:
    """A message as it stands in a queue.

    Attributes:
        id: its own id.
        body: the payload.
        headers: its headers.
        redelivered: whether the flag is set in the delivery that is out, or else will be in the next one.
        delivery_count: how often it has been sent to a consumer so far, from 0; see :class:`Message`.
        with_consumer: whether it has been sent to a consumer and may yet come back.
        timestamp: when it was sent, in nanoseconds of the broker's clock; see :class:`Sent`.
        reply_to: the name of the queue where an answer is wanted.
        correlation_id: what links it to another message.
        delivery_mode: how it was sent.
    """

    id: str
    body: Body
    headers: Mapping[str, HeaderValue]
    redelivered: bool
    delivery_count: int
    with_consumer: bool
    timestamp: int | None
    reply_to: str | None
    correlation_id: str | None
    delivery_mode: DeliveryMode


class Browser:
    """The messages of one queue, in the order in which they came.  ``Session.browser`` makes it.

    Each iteration goes through what is in the queue as it begins, with consumers or not; nothing is consumed, marked as
    delivered or told in the history.  What transactions that are open have sent is not there yet.
    """

    def __init__(self, session: Session, queue: Queue) -> None:
        self.session = session
        self.queue = queue

    def __iter__(self) -> Iterator[Browsed]:
        """The messages as they are now.

        Raises :class:`IllegalStateException` once the session is closed, :class:`BrokerStopped` if the broker is down
        and nobody starts it.
        """
        return iter(self.snapshot())

    def snapshot(self) -> tuple[Browsed, ...]:
        """The same as a tuple."""
        self.session.alive()
        self.session.broker.reach(f"a browser of queue {self.queue.name!r}")
        return tuple(map(_browsed, copies_in(self.session.broker, self.queue)))


def copies_in(broker: Broker, queue: Queue) -> Iterator[Copy]:
    """Those in ``queue``, oldest first."""
    for copy in broker.core.copies_of(broker.core.broker):
        if copy.message.queue is queue and copy.counted and copy.of("entry") in _THERE:
            yield copy


def _browsed(copy: Copy) -> Browsed:
    message: Sent = copy.message
    out = copy.of("entry") != "ready"
    return Browsed(
        id=message.id,
        body=message.body,
        headers=message.headers,
        redelivered=copy.of("redelivered_flag") == "flagged" if out else copy.of("redelivery") == "marked",
        delivery_count=copy.mark,
        with_consumer=out,
        timestamp=message.timestamp,
        reply_to=message.reply_to,
        correlation_id=message.correlation_id,
        delivery_mode=message.delivery_mode,
    )
