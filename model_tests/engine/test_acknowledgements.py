"""What acknowledge() brings about, and what the history says of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ackfsm.engine import (
    AtOnce,
    Broker,
    Consumer,
    IllegalStateException,
    Message,
    OutcomeUnknown,
    Shuffled,
    Timed,
)
from ackfsm.engine.core.scheduler import Scheduler
from ackfsm.terms import AckScope
from model_tests.support.engine.brokers import broker_of, fill, lines, received, rest
from model_tests.support.tables import shipped


def recorded(broker: Broker, event: str) -> list[Any]:
    """The messages that the history names with an event."""
    return [line["message"] for line in lines(broker, event)]


def test_an_acknowledgement_in_doubt_is_raised_and_recorded() -> None:
    broker = broker_of(pace=Timed(latency=(100_000, 100_000)))
    broker.connect().session().producer("q").send(message_id="m")
    client = broker.connect()
    message = received(client.session("CLIENT_ACKNOWLEDGE").consumer("q"))
    broker.loop.schedule(broker.now + 50_000, client.lose)
    with pytest.raises(OutcomeUnknown, match="m may come again"):
        message.acknowledge()
    assert (recorded(broker, "ack_in_doubt"), recorded(broker, "acknowledged")) == (["m"], [])


def test_a_confirmed_acknowledgement_is_recorded() -> None:
    broker = broker_of()
    broker.connect().session().producer("q").send(message_id="m")
    received(broker.connect().session("CLIENT_ACKNOWLEDGE").consumer("q")).acknowledge()
    assert (recorded(broker, "ack_in_doubt"), recorded(broker, "acknowledged")) == ([], ["m"])


def test_a_dups_ok_session_acknowledges_when_nothing_else_is_left_to_do() -> None:
    broker = broker_of()
    broker.connect().session().producer("q").send()
    consumer = broker.connect().session("DUPS_OK_ACKNOWLEDGE").consumer("q")
    received(consumer)
    assert consumer.receive(None) is None
    broker.drained()


def delivered_again(mode: str) -> tuple[Broker, Consumer, Message, Message]:
    """One session requeues a message and another has it: the other's consumer, the old delivery, the new one."""
    broker = Broker("jms", specification=shipped(), history=True)
    with broker.connect().session() as sender:
        sender.producer("q").send(message_id="m1")
    first, second = (broker.connect().session(mode) for _ in range(2))
    old = received(first.consumer("q"))
    other = second.consumer("q")
    first.consumers[0].close()
    first.recover()
    new = received(other)
    assert (old.id, new.redelivered) == (new.id, True)
    assert other.receive(None) is None  # so that the message is processed
    return broker, other, old, new


@pytest.mark.parametrize("mode", ["CLIENT_ACKNOWLEDGE", "INDIVIDUAL_ACKNOWLEDGE"])
def test_a_requeued_message_is_not_acknowledged_for_the_session_that_has_it_now(mode: str) -> None:
    broker, other, old, new = delivered_again(mode)
    with pytest.raises(IllegalStateException, match="given back and delivered again"):
        old.acknowledge()
    other.session.close()
    assert broker.queue("q").length == 1
    with pytest.raises(IllegalStateException):
        new.acknowledge()


@pytest.mark.parametrize("queues", [("q", "q"), ("q", "r")], ids=["of one consumer", "of two consumers of a session"])
@pytest.mark.parametrize(
    "pace", [Shuffled, lambda seed: Timed(seed=seed, latency=(0, 1_000_000))], ids=["shuffled", "timed"]
)
def test_acknowledgements_of_a_session_are_read_in_the_order_in_which_they_were_sent(
    pace: Callable[[int], Scheduler], queues: tuple[str, str]
) -> None:
    for seed in range(20):
        broker = broker_of(pace=pace(seed), client_ack_scope="message", block_on_acknowledge=False)
        for name, queue in zip("ab", queues, strict=True):
            fill(broker, name, queue=queue)
        session = broker.connect().session("CLIENT_ACKNOWLEDGE")
        consumers = {queue: session.consumer(queue) for queue in dict.fromkeys(queues)}
        first, second = (received(consumers[queue]) for queue in queues)
        read: list[str] = []
        broker.stepper.observer = lambda event, copy, read=read: (
            read.append(copy.message.id) if event.name == "settle" else None
        )
        second.acknowledge()
        first.acknowledge()
        while broker.loop.step():
            pass
        assert read == ["b", "a"], seed


class _Throwing:
    """A listener that throws at the first delivery of the first message."""

    def __init__(self) -> None:
        self.got: dict[str, Message] = {}
        self.order: list[str] = []

    def __call__(self, message: Message) -> None:
        self.order.append(message.id)
        self.got[message.id] = message
        if message.id == "a" and not message.redelivered:
            raise ValueError(message.id)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("called_on", "left"), [("b", ["a", "c"]), ("c", ["a"]), ("a", []), ("d", [])], ids=["b", "c", "a", "d"]
)
def test_up_to_a_message_covers_what_was_delivered_before_it(called_on: str, left: list[str], seed: int) -> None:
    """The first message comes again behind the others, and a fourth one was sent since."""
    settings = {"client_ack_scope": "up_to", "consumption": "listener", "listener_exception": "redeliver"}
    broker = broker_of(pace=Timed(seed=seed, latency=(1_000, 1_000)), **settings)
    fill(broker, "a", "b", "c", queue="q")
    listener = _Throwing()
    session = broker.connect().session("CLIENT_ACKNOWLEDGE")
    session.consumer("q", listener=listener)
    broker.wait(lambda: listener.order == ["a", "b", "c", "a"], "the first one again")
    if called_on == "d":
        fill(broker, "d", queue="q")
        broker.wait(lambda: "d" in listener.got, "the fourth one")
    listener.got[called_on].acknowledge()
    session.close()
    assert sorted(rest(broker, "q")) == left


@pytest.mark.parametrize("scope", AckScope)
def test_an_application_may_hold_several_messages(scope: AckScope) -> None:
    broker = broker_of(client_ack_scope=scope)
    fill(broker, "a", "b", "c", queue="q")
    consumer = broker.connect().session("CLIENT_ACKNOWLEDGE").consumer("q")
    assert [received(consumer).id for _ in range(3)] == ["a", "b", "c"]


@pytest.mark.parametrize("pace", [AtOnce, Timed, Shuffled])
@pytest.mark.parametrize("called_on", range(3))
def test_what_one_call_acknowledges_is_settled_in_the_order_of_delivery(
    called_on: int, pace: Callable[[], Scheduler]
) -> None:
    """On whichever message it is called, all are settled and none is left waiting for another (C30)."""
    broker = broker_of(pace=pace())
    fill(broker, "a", "b", "c", queue="q")
    session = broker.connect().session("CLIENT_ACKNOWLEDGE")
    consumer = session.consumer("q")
    got = [received(consumer) for _ in range(3)]
    got[called_on].acknowledge()
    session.close()
    assert rest(broker, "q") == []
