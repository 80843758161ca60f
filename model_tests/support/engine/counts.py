"""Whether the figures of a broker are what its history tells, counted there line by line."""

from __future__ import annotations

from collections import Counter

from ackfsm.engine import Broker


def assert_counted(broker: Broker) -> None:
    """Of the queues in which the history tells everything: all but the dead-letter queue."""
    assert broker.history is not None
    told = Counter((line["event"], line.get("queue"), line.get("redelivered")) for line in broker.history.lines)
    figures = broker.metrics()
    browsing = broker.connect("browser").session()
    for name, queue in figures.queues.items():
        if name == "DLQ":
            continue
        found = browsing.browser(name).snapshot()
        assert queue.redelivered == told["delivered", name, True]
        assert queue.delivered == queue.redelivered + told["delivered", name, False]
        assert queue.dead_lettered == told["dead_lettered", name, None]
        assert queue.rejected >= told["rejected", name, None]  # who is not connected hears nothing
        assert told["confirmed", name, None] <= queue.enqueued + queue.restored
        assert queue.enqueued <= told["send", name, None] + told["resend", name, None]
        assert (queue.in_flight, queue.ready) == (
            sum(message.with_consumer for message in found),
            sum(not message.with_consumer for message in found),
        )
        assert queue.depth >= queue.in_flight + queue.ready
