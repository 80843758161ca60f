"""A broker is used by one thread, and a session does one thing at a time (JMS 3.1, 6.2.5)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from ackfsm.engine import Broker, IllegalStateException, Message, Shuffled
from model_tests.support.engine.brokers import broker_of, fill, rest
from model_tests.support.tables import shipped


def test_a_call_from_another_thread_is_refused() -> None:
    broker = broker_of("jms")
    connection = broker.connect()
    session = connection.session()
    producer, consumer = session.producer("q"), session.consumer("q")
    producer.send()
    calls: list[Callable[[], object]] = [
        *(producer.send, consumer.receive, consumer.poll, session.close, session.recover, connection.session),
        *(broker.connect, broker.crash, broker.restart, broker.drained, broker.close, lambda: broker.queue("r")),
    ]
    with ThreadPoolExecutor(1) as other:
        for call in calls:
            with pytest.raises(IllegalStateException, match="used by one thread"):
                other.submit(call).result()
        other.submit(broker.use_in_this_thread).result()
        assert other.submit(consumer.receive).result() is not None
        other.submit(broker.close).result()
    with pytest.raises(IllegalStateException, match="the broker is closed"):
        producer.send()


@pytest.mark.parametrize("call", ["commit", "rollback"])
@pytest.mark.parametrize("profile", ["jms", "artemis", "qpid"])
def test_no_listener_is_called_inside_a_call_of_its_session(profile: str, call: str) -> None:
    """A session has one thread of control (JMS 3.1, 6.2.5): a redelivery belongs to the next transaction."""
    broker = broker_of(profile)
    session = broker.connect().session("SESSION_TRANSACTED")
    producer, calling, had = session.producer("out"), False, list[str]()

    def hear(message: Message) -> None:
        assert not calling, "a listener is called inside a call of its session"
        had.append(message.id)
        producer.send(message_id=f"{message.id} heard {len(had)}")

    session.consumer("in", listener=hear)
    session.consumer("other", listener=hear)
    fill(broker, "m1", "m2")
    fill(broker, "m3", queue="other")
    broker.loop.wait(lambda: False)
    for _ in range(2):
        calling = True
        getattr(session, call)()
        calling = False
        broker.loop.wait(lambda: False)
    session.commit()
    assert had[:3] in (["m1", "m2", "m3"], ["m1", "m3", "m2"], ["m3", "m1", "m2"])
    assert len(had) == (3 if call == "commit" else 9)
    session.close()
    assert (rest(broker, "in"), rest(broker, "other")) == ([], [])
    assert len(rest(broker, "out")) == 3


@pytest.mark.parametrize("seed", range(8))
def test_a_message_that_arrives_during_a_commit_is_delivered_afterwards(seed: int) -> None:
    broker = Broker("ems", specification=shipped(), pace=Shuffled(seed), ack_mode="SESSION_TRANSACTED", prefetch=2)
    received: list[str] = []
    session = broker.connect().session()
    session.consumer("q", listener=lambda message: received.append(message.id))
    sender = broker.connect().session()
    producer = sender.producer("q")
    for _ in range(4):
        producer.send()
        sender.commit()
        session.commit()
    while broker.loop.step():
        session.commit()
    assert len(received) == 4
