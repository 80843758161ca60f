"""commit(), rollback() and close() wait until every asynchronous send is complete and its callback has returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ackfsm.engine import (
    AtOnce,
    Broker,
    JMSException,
    Outcome,
    OutcomeUnknown,
    Sent,
    Shuffled,
    Timed,
    TransactionRolledBackException,
)
from ackfsm.engine.core.scheduler import Scheduler
from model_tests.support.engine.brokers import rest
from model_tests.support.engine.calls import assert_kept
from model_tests.support.tables import shipped

ENDS = ["session", "connection", "producer"]
SENT = [f"m{number}" for number in range(5)]
PACES: list[Callable[[], Scheduler]] = [AtOnce, lambda: Timed(latency=(100_000, 300_000)), lambda: Shuffled(3)]


def a_broker(pace: Callable[[], Scheduler] = PACES[1], profile: str = "jms", **settings: Any) -> Broker:
    """Sends are asynchronous; frames take their time, unless ``pace`` says otherwise."""
    chosen: dict[str, Any] = {"send_mode": "asynchronous", "publish_window": 10} | settings
    return Broker(profile, pace=pace(), specification=shipped(), history=True, **chosen)


@pytest.mark.parametrize("pace", PACES, ids=["at once", "timed", "shuffled"])
@pytest.mark.parametrize("end", ENDS)
def test_close_waits_for_the_callbacks(end: str, pace: Callable[[], Scheduler]) -> None:
    broker = a_broker(pace)
    heard: list[tuple[str, Outcome]] = []
    connection = broker.connect()
    session = connection.session()
    producer = session.producer("q", on_outcome=lambda message: heard.append((message.id, message.outcome)))
    for ident in SENT:
        producer.send(message_id=ident)
    {"session": session, "connection": connection, "producer": producer}[end].close()
    assert sorted(heard) == [(ident, Outcome.CONFIRMED) for ident in SENT]
    assert rest(broker, "q") == SENT
    assert_kept(broker)


@pytest.mark.parametrize("reattaches", [False, True])
@pytest.mark.parametrize("end", ENDS)
def test_close_waits_for_the_callbacks_of_a_broken_connection(end: str, *, reattaches: bool) -> None:
    broker = a_broker(profile="artemis", session_reattachment=reattaches)
    heard: list[Outcome] = []
    connection = broker.connect()
    session = connection.session()
    producer = session.producer("q", on_outcome=lambda message: heard.append(message.outcome))
    for ident in SENT:
        producer.send(message_id=ident)
    connection.lose()
    {"session": session, "connection": connection, "producer": producer}[end].close()
    assert heard == [Outcome.CONFIRMED if reattaches else Outcome.IN_DOUBT] * len(SENT)
    assert rest(broker, "q") == SENT * reattaches


@pytest.mark.parametrize("pace", PACES, ids=["at once", "timed", "shuffled"])
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_the_end_of_a_transaction_waits_for_the_callbacks(end: str, pace: Callable[[], Scheduler]) -> None:
    broker = a_broker(pace)
    heard: list[str] = []

    def completed(message: Sent) -> None:
        assert message.outcome is Outcome.IN_TRANSACTION
        heard.append(message.id)

    session = broker.connect().session("SESSION_TRANSACTED")
    producer = session.producer("q", on_outcome=completed)
    called_at: list[int] = []
    broker.observe(
        lambda event, _: called_at.append(len(heard)) if event.name in {"commit_called", "rollback"} else None
    )
    for ident in SENT:
        producer.send(message_id=ident)
    getattr(session, end)()
    assert heard == SENT
    assert called_at == [len(SENT)]
    assert rest(broker, "q") == (SENT if end == "commit" else [])
    assert_kept(broker)


def test_a_send_in_a_transaction_is_open_until_the_broker_has_answered() -> None:
    broker = a_broker()
    session = broker.connect().session("SESSION_TRANSACTED")
    sent = session.producer("q").send(message_id="m")
    outcomes = [sent.outcome]
    session.commit()
    outcomes.append(sent.outcome)
    assert outcomes == [Outcome.OPEN, Outcome.IN_TRANSACTION]


@pytest.mark.parametrize("profile", ["artemis", "rabbitmq"])
def test_where_the_commit_alone_is_answered_it_is_not(profile: str) -> None:
    session = a_broker(profile=profile).connect().session("SESSION_TRANSACTED")
    sent = session.producer("q").send(message_id="m")
    assert sent.outcome is Outcome.IN_TRANSACTION
    session.commit()


def test_closing_a_session_in_a_transaction_waits_for_the_callbacks_and_rolls_back() -> None:
    broker = a_broker()
    heard: list[str] = []
    session = broker.connect().session("SESSION_TRANSACTED")
    producer = session.producer("q", on_outcome=lambda message: heard.append(message.id))
    for ident in SENT:
        producer.send(message_id=ident)
    session.close()
    assert heard == SENT
    assert rest(broker, "q") == []
    assert_kept(broker)


def test_a_rejection_reaches_the_callback_and_the_commit() -> None:
    broker = a_broker()
    heard: list[tuple[str, Outcome]] = []
    session = broker.connect().session("SESSION_TRANSACTED")
    producer = session.producer("q", on_outcome=lambda message: heard.append((message.id, message.outcome)))
    producer.send(message_id="taken")
    broker.queue("q").refuse_next = 1
    producer.send(message_id="refused")
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    assert heard == [("taken", Outcome.IN_TRANSACTION), ("refused", Outcome.REJECTED)]
    assert rest(broker, "q") == []
    assert_kept(broker)


def test_wherever_a_connection_breaks_every_callback_is_called_once_and_the_transaction_is_whole() -> None:
    ends = set()
    for start in range(0, 3_000, 75):
        broker = a_broker(lambda seed=start: Timed(latency=(100_000, 300_000), seed=seed))  # type: ignore[misc]
        connection = broker.connect()
        heard: list[str] = []
        session = connection.session("SESSION_TRANSACTED")
        producer = session.producer("q", on_outcome=lambda message, heard=heard: heard.append(message.id))  # type: ignore[misc]
        broker.loop.schedule(broker.now + 1_000 * start, connection.lose)
        for ident in SENT:
            producer.send(message_id=ident)
        try:
            session.commit()
            ends.add("committed")
            assert rest(broker, "q") == SENT, start
        except TransactionRolledBackException:
            ends.add("rolled back")
            assert rest(broker, "q") == [], start
        except OutcomeUnknown:
            ends.add("in doubt")
            assert rest(broker, "q") in ([], SENT), start
        assert sorted(heard) == SENT, start
        assert_kept(broker)
    assert ends == {"committed", "rolled back", "in doubt"}


def test_a_commit_for_which_nobody_makes_the_connection_again_fails() -> None:
    broker = Broker("jms", pace=Timed(), specification=shipped(), repairs=False, send_mode="asynchronous")
    connection = broker.connect()
    session = connection.session("SESSION_TRANSACTED")
    sent = session.producer("q").send(message_id="m")
    connection.lose()
    with pytest.raises(JMSException):
        session.commit()
    assert sent.outcome is Outcome.IN_DOUBT
