"""Empty a queue as an administrator.

The tables have no event that removes a message which nobody has received, but for the end of its last attempt.  So a
purge is a client like any other: it receives and acknowledges, and the history tells it as such.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ackfsm.engine.consumer import Consumer, Message
from ackfsm.engine.core.errors import OutcomeUnknown

if TYPE_CHECKING:
    from ackfsm.engine.broker import Broker
    from ackfsm.engine.core.links import Queue

__all__ = ["purge"]

_MODE = "CLIENT_ACKNOWLEDGE"
"""Every system has it."""

_BATCH = 1000
"""So many messages are acknowledged together, where an acknowledgement covers those before it."""


def purge(broker: Broker, queue: Queue, client: str) -> int:
    """See :meth:`Broker.purge`; ``client`` is its name in the history."""
    count = len(queue.ready.members)
    if not count:
        return 0
    with broker.connect(client) as connection, connection.session(_MODE, consumption="receive") as session:
        done = _consume(session.consumer(queue), count)
    broker.engine.flush_all()
    if not broker.running:
        raise OutcomeUnknown(f"the broker died before the purge of queue {queue.name!r} was stored; purge it again")
    return done


def _consume(consumer: Consumer, count: int) -> int:
    scope = consumer.session.broker.scope_of_acknowledgement(consumer.incoming.configuration)
    batch = 1 if scope == "message" else _BATCH
    done, taken = 0, list[Message]()
    while done + len(taken) < count:
        message = consumer.receive()
        if message is not None:
            taken.append(message)
        elif not taken:
            break  # others have had the rest
        if message is None or len(taken) >= batch:  # as many as the consumer may have, perhaps
            done += _acknowledged(taken)
    return done + _acknowledged(taken)


def _acknowledged(taken: list[Message]) -> int:
    """Acknowledge them by the last one; how many they were."""
    count = len(taken)
    if taken:
        taken[-1].acknowledge()
        taken.clear()
    return count
