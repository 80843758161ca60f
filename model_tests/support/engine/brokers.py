"""A broker that records its history, and what a test's clients do with its queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ackfsm.engine import Broker, Consumer, History, Message
from ackfsm.terms import Verdict
from model_tests.support.engine.laboratory import judged
from model_tests.support.tables import shipped


def broker_of(profile: str = "jms", **settings: Any) -> Broker:
    """A broker whose consumers call ``receive()``, and whose history is recorded."""
    return Broker(profile, specification=shipped(), **{"consumption": "receive", "history": True, **settings})


def fill(broker: Broker, *names: str, queue: str = "in") -> None:
    """Send a message for each name, which is its id and its body."""
    with broker.connect().session("AUTO_ACKNOWLEDGE") as session:
        producer = session.producer(queue)
        for name in names:
            producer.send(name.encode(), message_id=name)


def received(consumer: Consumer, timeout: float | None = None) -> Message:
    """The next message, which must be there."""
    message = consumer.receive(timeout)
    assert message is not None
    return message


def rest(broker: Broker, queue: str = "in") -> list[str]:
    """The ids of all messages that a new client receives, and acknowledges."""
    with broker.connect().session("CLIENT_ACKNOWLEDGE") as session:
        consumer, found = session.consumer(queue), list[str]()
        while (message := consumer.receive(None)) is not None:
            found.append(message.id)
            message.acknowledge()
        return found


def lines(broker: Broker, event: str | None = None) -> Sequence[Mapping[str, Any]]:
    """The lines of the history, or those of one event."""
    assert isinstance(broker.history, History)
    return [line for line in broker.history.lines if event is None or line["event"] == event]


def accepted(broker: Broker, folder: Path) -> None:
    """Assert that the broker is drained and that its history is valid."""
    broker.drained()
    assert isinstance(broker.history, History)
    result = judged(broker.history, folder)
    assert (result.verdict, result.reasons) == (Verdict.VALID, ())
