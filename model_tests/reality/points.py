"""The points of the comparison: which rates are measured, by which client, over which line.

Some are slower than settings say, because of what a library or a broker does of its own.  The first was seen in its
frames; the others fit what was measured, and were not traced:

* A transaction over AMQP 1.0 takes two round trips with Broker-J and one with Artemis.  Qpid JMS sends the end of one
  and the begin of the next together, but Broker-J gives the link to its coordinator a credit of 1.
* acknowledge() of Artemis' own client waits twice with blockOnAcknowledge: for the acknowledgement, and then for a
  commit of its session, in CLIENT_ACKNOWLEDGE and in INDIVIDUAL_ACKNOWLEDGE.
* Qpid JMS grants credit anew when at most half is left and at most 0.7 of the prefetch is granted or not yet taken: of
  a burst that it has received it gives back 0.6 or so before it runs dry, so a prefetch of 10 is as one of 6 or 7.
* A burst of sends is answered when all of it was read (Broker-J), or by several syncs (RabbitMQ): a window that is as
  long as the broker works in a round trip is slower than both bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from model_tests.reality.runs import Point

__all__ = ["SIDES", "Side", "points"]

_LARGE: Final = 16_384
_MEGABIT: Final = 1e6


class Side:
    """A broker, the protocol that its clients speak, and the profile of ``ackfsm`` that is closest to both."""

    def __init__(self, broker: str, protocol: str, profile: str) -> None:
        self.broker, self.protocol, self.profile = broker, protocol, profile

    def blocking(self, rtt_ms: float, delivery_mode: str = "PERSISTENT", **more: Any) -> Point:
        """Sends each of which waits for its outcome."""
        return self._point("blocking", {"delivery_mode": delivery_mode, "send_mode": "blocking"}, rtt_ms, more)

    def window(self, size: int, rtt_ms: float, **more: Any) -> Point:
        """Sends of which ``size`` are under way at a time."""
        config = {"delivery_mode": "PERSISTENT", "send_mode": "asynchronous", "publish_window": size}
        return self._point("window", config, rtt_ms, more)

    def transaction(self, batch: int, rtt_ms: float, **more: Any) -> Point:
        """Transactions of ``batch`` sends each."""
        config = {"delivery_mode": "PERSISTENT", "send_mode": "unconfirmed", "ack_mode": "SESSION_TRANSACTED"}
        return self._point("transaction", {**config, "batch": batch}, rtt_ms, more)

    def consume(self, prefetch: int, rtt_ms: float, ack_mode: str = "INDIVIDUAL_ACKNOWLEDGE", **more: Any) -> Point:
        """Messages that are taken from a full queue; what is acknowledged or committed at a time is ``batch``."""
        config = {"delivery_mode": "PERSISTENT", "ack_mode": ack_mode, "prefetch": prefetch}
        config["consumption"] = "listener" if self.profile == "rabbitmq" else "receive"
        for name in ("block_on_acknowledge", "batch"):
            if name in more:
                config[name] = more.pop(name)
        return self._point("consume", config, rtt_ms, more)

    def _point(self, what: Any, config: dict[str, Any], rtt_ms: float, more: dict[str, Any]) -> Point:
        settings = {"profile": self.profile, **config}
        return Point(broker=self.broker, protocol=self.protocol, what=what, config=settings, rtt_ms=rtt_ms, **more)


_RABBITMQ: Final = Side("rabbitmq", "amqp-0-9-1", "rabbitmq")
_ARTEMIS: Final = Side("artemis", "core", "artemis")
_ARTEMIS_AMQP: Final = Side("artemis", "amqp-1.0", "qpid-jms")
_BROKER_J: Final = Side("broker-j", "amqp-1.0", "qpid-jms")
SIDES: Final = (_RABBITMQ, _ARTEMIS, _ARTEMIS_AMQP, _BROKER_J)


def points(side: Side) -> list[Point]:
    """What is measured of one side."""
    if side is _ARTEMIS_AMQP:
        return list(_few(side))
    found = [*_sent(side), *_narrow(side)]
    return found + list(_core_consumed(side) if side is _ARTEMIS else _consumed(side))


def _sent(side: Side) -> Iterator[Point]:
    for rtt in (2, 5, 20):
        yield side.blocking(rtt)
    for size, rtt in ((1, 5), (4, 5), (16, 5), (64, 5), (16, 20), (64, 20), (256, 20)):
        yield side.window(size, rtt)
    for batch in (1, 10, 100):
        yield side.transaction(batch, 5)
    yield side.transaction(10, 10)


def _narrow(side: Side) -> Iterator[Point]:
    """Where the bandwidth binds, or the bandwidth and the round trip."""
    yield side.blocking(5, message_size=_LARGE, bandwidth=10 * _MEGABIT)
    yield side.window(16, 5, message_size=_LARGE, bandwidth=10 * _MEGABIT)
    yield side.window(4, 10, message_size=_LARGE, bandwidth=50 * _MEGABIT)
    yield side.window(64, 5, message_size=1500, bandwidth=20 * _MEGABIT)


def _consumed(side: Side) -> Iterator[Point]:
    for prefetch, rtt in ((1, 5), (10, 5), (10, 20), (100, 20)):
        yield side.consume(prefetch, rtt)
    yield side.consume(10, 10, message_size=_LARGE, bandwidth=20 * _MEGABIT)
    if side is _RABBITMQ:
        yield side.consume(0, 5, "NO_ACKNOWLEDGE", message_size=1500, bandwidth=10 * _MEGABIT)
    else:
        yield side.consume(100, 5, "SESSION_TRANSACTED", batch=10)


def _core_consumed(side: Side) -> Iterator[Point]:
    """Artemis' own protocol counts bytes ahead and not messages: nothing bounds them here but what is acknowledged."""
    for rtt in (5, 20):
        yield side.consume(0, rtt, block_on_acknowledge=True)
    yield side.consume(0, 5, "CLIENT_ACKNOWLEDGE", block_on_acknowledge=True, batch=10)
    yield side.consume(0, 10, "SESSION_TRANSACTED", batch=10)
    yield side.consume(0, 10, "AUTO_ACKNOWLEDGE", message_size=_LARGE, bandwidth=20 * _MEGABIT)


def _few(side: Side) -> Iterator[Point]:
    yield side.blocking(5)
    yield side.window(16, 5)
    yield side.window(64, 20)
    yield side.transaction(10, 5)
    for prefetch, rtt in ((1, 5), (10, 5), (100, 20)):
        yield side.consume(prefetch, rtt)
    yield side.consume(10, 10, message_size=_LARGE, bandwidth=20 * _MEGABIT)
