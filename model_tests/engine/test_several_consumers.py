"""A session of several consumers: what it acknowledges, commits, rolls back and gives back is that of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from ackfsm.engine import Broker, Consumer, IllegalStateException, Session
from model_tests.support.tables import shipped

QUEUES = ("q1", "q2", "q3")


def several(mode: str, messages: int = 2) -> tuple[Broker, Session, Sequence[Consumer]]:
    """A session that consumes from three queues, each of which has messages of its own."""
    broker = Broker("jms", specification=shipped(), consumption="receive", history=True)
    with broker.connect().session() as sender:
        for queue in QUEUES:
            for number in range(messages):
                sender.producer(queue).send(message_id=f"{queue}.{number}")
    session = broker.connect().session(mode)
    return broker, session, [session.consumer(queue) for queue in QUEUES]


def received(consumers: Sequence[Consumer]) -> list[tuple[str, bool]]:
    """All that each consumer is given, with the flag."""
    found = []
    for consumer in consumers:
        while (message := consumer.receive(None)) is not None:
            found.append((message.id, message.redelivered))
    return found


def lengths(broker: Broker) -> list[int]:
    return [broker.queue(queue).length for queue in QUEUES]


EVERY = [(f"{queue}.{number}", True) for queue in QUEUES for number in range(2)]


@pytest.mark.parametrize("which", range(3))
def test_an_acknowledgement_covers_what_every_consumer_of_the_session_has_had(which: int) -> None:
    broker, session, consumers = several("CLIENT_ACKNOWLEDGE")
    messages = [consumer.receive(None) for consumer in consumers]
    chosen = messages[which]
    assert chosen is not None
    chosen.acknowledge()
    session.close()
    broker.loop.wait(lambda: False)
    assert lengths(broker) == [1, 1, 1]


def test_a_commit_covers_what_every_consumer_of_the_session_has_had() -> None:
    broker, session, consumers = several("SESSION_TRANSACTED")
    received(consumers)
    session.commit()
    session.close()
    broker.drained()


@pytest.mark.parametrize(
    ("mode", "call"), [("SESSION_TRANSACTED", Session.rollback), ("CLIENT_ACKNOWLEDGE", Session.recover)]
)
def test_what_every_consumer_has_had_is_delivered_again_flagged(mode: str, call: Callable[[Session], None]) -> None:
    broker, session, consumers = several(mode)
    received(consumers)
    call(session)
    assert received(consumers) == EVERY
    assert lengths(broker) == [2, 2, 2]


@pytest.mark.parametrize("mode", ["SESSION_TRANSACTED", "CLIENT_ACKNOWLEDGE"])
def test_what_every_consumer_has_had_goes_to_the_next_session_flagged(mode: str) -> None:
    broker, session, consumers = several(mode)
    received(consumers)
    session.close()
    assert [queue for queue in QUEUES if broker.queue(queue).consumers] == []
    next_ = broker.connect().session(mode)
    assert received([next_.consumer(queue) for queue in QUEUES]) == EVERY


def test_a_connection_closes_all_its_sessions_and_makes_no_more() -> None:
    broker, session, _ = several("CLIENT_ACKNOWLEDGE")
    connection = broker.connect()
    sessions = [connection.session("CLIENT_ACKNOWLEDGE", prefetch=1) for _ in range(3)]
    session.close()
    taken = [each.consumer("q1").receive(None) for each in sessions]
    assert sum(message is not None for message in taken) == 2
    connection.close()
    assert all(each.closed for each in sessions)
    with pytest.raises(IllegalStateException, match="the connection is closed"):
        connection.session()
    assert len(received([broker.connect().session().consumer("q1")])) == 2


@pytest.mark.parametrize("end", ["close", "crash"])
def test_a_queue_keeps_nothing_of_clients_that_are_gone(end: str) -> None:
    broker, _, _ = several("CLIENT_ACKNOWLEDGE")
    for _ in range(5):
        client = broker.connect()
        client.session().consumer("other")
        getattr(client, end)()
    assert not broker.queue("other").consumers


def test_acknowledge_of_an_old_message_covers_what_the_session_has_had_since() -> None:
    broker, session, consumers = several("CLIENT_ACKNOWLEDGE")
    old = consumers[0].receive(None)
    assert old is not None
    old.acknowledge()
    for consumer in consumers:
        assert consumer.receive(None) is not None
    old.acknowledge()
    with pytest.raises(IllegalStateException, match="it is acknowledged already"):
        old.acknowledge()
    session.close()
    broker.loop.wait(lambda: False)
    assert lengths(broker) == [0, 1, 1]


def test_a_stopped_connection_hands_nothing_to_any_consumer_of_a_session() -> None:
    broker, session, consumers = several("CLIENT_ACKNOWLEDGE")
    connection = next(each for each in broker.connections if session in each.sessions)
    connection.stop()
    assert received(consumers) == []
    connection.start()
    assert received(consumers) == [(name, False) for name, _ in EVERY]


def test_one_lazy_acknowledgement_covers_all_that_came_before() -> None:
    broker, session, consumers = several("DUPS_OK_ACKNOWLEDGE", 5)
    assert len(received(consumers[:1])) == 5
    session.close()
    assert broker.history is not None
    told = [line["message"] for line in broker.history.lines if line["event"] == "acknowledge"]
    assert told == ["q1.4"]
    assert lengths(broker) == [0, 5, 5]
