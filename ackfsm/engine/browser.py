"""Browse a queue without consuming (JMS 3.1, ``QueueBrowser``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Protocol

from ackfsm.engine.context import BrokerContext
from ackfsm.engine.core.instances import Body, Copy, HeaderValue, Queue
from ackfsm.tables.names import Entry, Machine, Redelivered, Redelivery
from ackfsm.terms import DeliveryMode


class _Session(Protocol):
    """The session of a browser."""

    def ensure_open(self) -> None: ...


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
    delivered or recorded in the history.  What open transactions have sent is not there yet.
    """

    def __init__(self, session: _Session, broker: BrokerContext, queue: Queue) -> None:
        self.session = session
        self._broker = broker
        self.queue = queue

    def __iter__(self) -> Iterator[Browsed]:
        """The messages as they are now.

        Raises :class:`IllegalStateException` once the session is closed, :class:`BrokerStopped` if the broker is down
        and nobody starts it.
        """
        return iter(self.snapshot())

    def snapshot(self) -> tuple[Browsed, ...]:
        """The same as a tuple."""
        self.session.ensure_open()
        self._broker.wait_until_running(f"a browser of queue {self.queue.name!r}")
        return tuple(map(_browsed, self._broker.engine.copies_in(self.queue)))


def _browsed(copy: Copy) -> Browsed:
    message = copy.message
    out = copy.state_of(Machine.ENTRY) != Entry.READY
    flagged = copy.state_of(Machine.REDELIVERED_FLAG) == Redelivered.FLAGGED
    marked = copy.state_of(Machine.REDELIVERY) == Redelivery.MARKED
    return Browsed(
        id=message.id,
        body=message.body,
        headers=message.headers,
        redelivered=flagged if out else marked,
        delivery_count=copy.dispatch_count,
        with_consumer=out,
        timestamp=message.timestamp,
        reply_to=message.reply_to,
        correlation_id=message.correlation_id,
        delivery_mode=message.delivery_mode,
    )
