"""Faults that strike inside a call, between two events: whatever was under way, the engine comes to rest again."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable

from ackfsm.engine import Broker, JMSException
from ackfsm.engine._core import Session
from ackfsm.engine._parts import Copy
from ackfsm.engine._wiring import Event
from model_tests._tables import shipped
from model_tests.engine_calls import assert_kept, shared_wiring

__all__ = ["shared_wiring"]


@dataclasses.dataclass
class Strike:
    """Does something once, after event ``number``, or after the first one of that name."""

    action: Callable[[], None]
    after: int | str
    seen: int = 0
    done: bool = False

    def __call__(self, event: Event, _: Copy | Session) -> None:
        """Hear of an event."""
        self.seen += 1
        if not self.done and self.after in {self.seen, event.name}:
            self.done = True
            self.action()


def _consume(broker: Broker) -> None:
    with broker.connect("consumer") as client:
        consumer = client.session("CLIENT_ACKNOWLEDGE", consumption="receive").consumer("q")
        while (message := consumer.receive(None)) is not None:
            with contextlib.suppress(JMSException):
                message.acknowledge()


def _with_two_messages() -> Broker:
    broker = Broker("artemis", specification=shipped(), history=True)
    with broker.connect("producer") as client:
        producer = client.session().producer("q")
        producer.send(b"1")
        producer.send(b"2")
    return broker


def test_a_broker_that_dies_as_it_writes_is_started_again() -> None:
    broker = _with_two_messages()
    strike = Strike(broker.kill, "write_removal")
    broker.observe(strike)
    _consume(broker)
    broker.drained()
    assert strike.done
    assert_kept(broker)
