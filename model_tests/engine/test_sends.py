"""The outcome of a send: rejections, confirmations of ranges, resends, duplicate ids."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence

import pytest

from ackfsm.engine import (
    AtOnce,
    Broker,
    MessageRejected,
    Outcome,
    OutcomeUnknown,
    Sent,
    Timed,
    TransactionRolledBackException,
)
from ackfsm.engine.core.scheduler import Scheduler
from ackfsm.terms import AckMode, DeliveryMode, InputError
from model_tests.support.engine.brokers import broker_of, fill, received, rest
from model_tests.support.engine.calls import assert_kept
from model_tests.support.tables import shipped

# the delivery mode, of a producer and of a message (C39)


def test_a_producer_has_a_default_delivery_mode_which_a_message_overrides() -> None:
    """What is PERSISTENT outlives a crash of the broker, whoever said so."""
    broker = broker_of("jms")
    session = broker.connect().session()
    persistent, volatile = session.producer("q"), session.producer("q", delivery_mode="NON_PERSISTENT")
    assert (persistent.delivery_mode, volatile.delivery_mode) == (DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT)
    sent = [
        persistent.send(message_id="as the producer has it"),
        persistent.send(message_id="lost by its own mode", delivery_mode="NON_PERSISTENT"),
        volatile.send(message_id="lost by the producer's mode"),
        volatile.send(message_id="kept by its own mode", delivery_mode="PERSISTENT"),
    ]
    persistent.delivery_mode, volatile.delivery_mode = "NON_PERSISTENT", "PERSISTENT"
    sent += [persistent.send(message_id="lost since"), volatile.send(message_id="kept since")]
    kept = [message.id for message in sent if message.delivery_mode is DeliveryMode.PERSISTENT]
    assert kept == ["as the producer has it", "kept by its own mode", "kept since"]
    broker.crash()
    broker.restart()
    receiver = broker.connect().session().consumer("q")
    assert [received(receiver).id for _ in kept] == kept
    assert receiver.receive(None) is None


@pytest.mark.parametrize("mode", ["RELIABLE", "DIRECT"])
def test_a_delivery_mode_that_the_system_does_not_have_is_refused_for_a_producer_and_for_a_message(mode: str) -> None:
    session = broker_of("artemis").connect().session()
    producer = session.producer("q")
    with pytest.raises(InputError, match="does not have delivery_mode"):
        session.producer("q", delivery_mode=mode)
    with pytest.raises(InputError, match="does not have delivery_mode"):
        producer.send(delivery_mode=mode)
    with pytest.raises(InputError, match="does not have delivery_mode"):
        producer.delivery_mode = mode
    assert producer.delivery_mode is DeliveryMode.PERSISTENT


@pytest.mark.parametrize("profile", ["jms", "ems", "artemis"])
def test_a_message_that_overrides_the_delivery_mode_is_sent_as_the_others_of_its_session(profile: str) -> None:
    """Its call waits as theirs do, and its history is right in the configuration that the history names."""
    broker = broker_of(profile)
    producer = broker.connect().session().producer("q")
    assert producer.send(delivery_mode="NON_PERSISTENT").outcome is Outcome.CONFIRMED
    rest(broker, "q")
    assert_kept(broker)


def test_the_mode_of_a_session_is_set_when_it_is_made() -> None:
    """C15: it is an argument of its maker, and nothing takes it afterwards."""
    session = broker_of("ems").connect().session("CLIENT_ACKNOWLEDGE")
    other = dataclasses.replace(session.configuration, ack_mode=AckMode.AUTO_ACKNOWLEDGE)
    with pytest.raises(AttributeError):
        session.configuration = other  # type: ignore[misc]
    with pytest.raises(AttributeError):
        session.configuration.ack_mode = AckMode.AUTO_ACKNOWLEDGE  # type: ignore[misc]
    with pytest.raises(AttributeError):
        session.transacted = True  # type: ignore[misc]
    assert (session.configuration.ack_mode, session.transacted) == (AckMode.CLIENT_ACKNOWLEDGE, False)


def test_waiting_for_all_outcomes_waits_for_messages_of_another_delivery_mode_too() -> None:
    broker = Broker("solace", pace=Timed(), specification=shipped(), send_mode="asynchronous")
    producer = broker.connect().session().producer("q")
    sent = [producer.send(), producer.send(delivery_mode="NON_PERSISTENT")]
    producer.wait()
    assert [message.outcome for message in sent] == [Outcome.CONFIRMED, Outcome.CONFIRMED]


# outcomes


def test_a_rejection_reaches_the_producer_over_a_slow_network() -> None:
    broker = Broker("jms", pace=Timed(), specification=shipped())
    producer = broker.connect().session().producer("q")
    broker.queue("q").refuse_next = 1
    with pytest.raises(MessageRejected):
        producer.send(b"x")


def test_a_queue_rejects_messages_beyond_its_max_length() -> None:
    broker = broker_of()
    producer = broker.connect().session().producer(broker.queue("q", max_length=2))
    for _ in range(2):
        producer.send()
    with pytest.raises(MessageRejected, match="takes no more"):
        producer.send()
    assert broker.queue("q").length == 2


@pytest.mark.parametrize(("mode", "heard"), [("PER_MESSAGE", [0, 1, 2, 3, 4, 5]), ("WINDOWED", [1, 3, 5])])
def test_a_handler_is_called_once_for_a_range_where_ack_events_are_windowed(mode: str, heard: Sequence[int]) -> None:
    """Two messages are a third of the window: the broker confirms them together."""
    broker = Broker(
        "solace", pace=Timed(), specification=shipped(), history=True, publish_window=6, ack_event_mode=mode
    )
    events: list[tuple[Sent, list[Outcome]]] = []
    sent: list[Sent] = []

    def hear(message: Sent) -> None:
        events.append((message, [each.outcome for each in sent]))

    producer = broker.connect().session().producer("q", on_outcome=hear)
    for _ in range(3):
        sent += [producer.send(b"x") for _ in range(2)]
        producer.wait()
    assert [sent.index(message) for message, _ in events] == heard
    for message, outcomes in events:
        assert set(outcomes[: sent.index(message) + 1]) == {Outcome.CONFIRMED}, "the message and all before it"
    assert_kept(broker)


@pytest.mark.parametrize("transacted", [False, True])
def test_a_message_sent_before_earlier_ones_are_resent_is_confirmed_with_them(transacted: bool) -> None:  # noqa: FBT001 - a case
    settings = {"send_mode": "asynchronous", "resend_in_doubt": True, "redelivery_mark_persisted": False}
    mode = "SESSION_TRANSACTED" if transacted else "AUTO_ACKNOWLEDGE"
    broker = broker_of("jms", pace=Timed(latency=(100_000, 100_000)), ack_mode=mode, **settings)
    client = broker.connect()
    session = client.session()
    producer = session.producer("q")
    sent = [producer.send(message_id=name) for name in ("m1", "m2")]
    if transacted:
        broker.loop.schedule(250_000, client.lose)  # the callbacks are called, and the commit is on its way
        with pytest.raises(OutcomeUnknown):
            session.commit()
    else:
        client.lose()
    sent.append(producer.send(message_id="m3"))
    for message in sent[:2]:
        producer.resend(message)
    if transacted:
        session.commit()
    else:
        producer.wait()
        assert {message.outcome for message in sent} == {Outcome.CONFIRMED}
    assert broker.queue("q").length == 3


# duplicate ids


@pytest.mark.parametrize("mode", ["AUTO_ACKNOWLEDGE", "SESSION_TRANSACTED"])
@pytest.mark.parametrize("detects", [True, False])
def test_a_message_under_a_known_duplicate_id_is_dropped_where_the_broker_detects_duplicates(
    mode: str,
    *,
    detects: bool,
) -> None:
    """It is sent, and in doubt; it is resent, with an outcome; and another message is sent under its duplicate id."""
    settings = {"ack_mode": mode, "resend_in_doubt": True, "duplicate_detection": detects}
    network = Timed(latency=(100_000, 100_000), disk=1_000_000)
    broker = broker_of("artemis", pace=network, **settings)
    heard: list[Sent] = []
    with broker.connect() as client:
        session = client.session()
        producer = session.producer("q", on_outcome=heard.append)
        broker.loop.schedule(250_000 if mode == "AUTO_ACKNOWLEDGE" else 150_000, client.lose)
        with contextlib.suppress(OutcomeUnknown):
            heard.append(producer.send(b"first", message_id="m", duplicate_id=b"m"))
            session.commit()
        ended = pytest.raises(TransactionRolledBackException) if detects else contextlib.nullcontext()
        producer.resend(heard[0])
        if session.transacted:
            with ended:
                session.commit()
        assert broker.queue("q").length == (1 if detects else 2)
        producer.send(b"second", duplicate_id=b"m")
        if session.transacted:
            with ended:
                session.commit()
    assert broker.queue("q").length == (1 if detects else 3)


@pytest.mark.parametrize("dooms", [True, False])
@pytest.mark.parametrize("pace", [AtOnce, Timed], ids=["at once", "timed"])
def test_a_duplicate_takes_its_transaction_with_it_or_is_dropped_by_itself(
    pace: Callable[[], Scheduler], *, dooms: bool
) -> None:
    settings = {"duplicate_detection": True, "duplicate_dooms_transaction": dooms}
    broker = broker_of("artemis", pace=pace(), ack_mode="SESSION_TRANSACTED", **settings)
    fill(broker, "i1")
    session = broker.connect().session()
    producer, consumer = session.producer("q"), session.consumer("in")
    producer.send(message_id="known", duplicate_id=b"d")
    session.commit()
    assert received(consumer).id == "i1"
    producer.send(message_id="beside")
    producer.send(message_id="again", duplicate_id=b"d")
    with pytest.raises(TransactionRolledBackException) if dooms else contextlib.nullcontext():
        session.commit()
    assert broker.queue("in").length == dooms, "what the transaction consumed is in its queue again"
    producer.send(message_id="next", duplicate_id=b"e")
    session.commit()
    session.close()
    assert rest(broker, "q") == ["known", *["beside"] * (not dooms), "next"]


def test_a_duplicate_id_is_known_once_its_message_is_stored() -> None:
    """The confirmation of the second copy promises the first, which was not synced until then."""
    broker = broker_of("artemis", duplicate_detection=True, delivery_mode="PERSISTENT")
    first = broker.connect().session(send_mode="unconfirmed").producer("q").send(duplicate_id=b"once")
    second = broker.connect().session().producer("q").send(duplicate_id=b"once")
    assert (first.outcome, second.outcome) == (Outcome.UNCONFIRMED, Outcome.CONFIRMED)
    broker.crash()
    broker.restart()
    assert broker.queue("q").length == 1


@pytest.mark.parametrize("mode", ["PERSISTENT", "NON_PERSISTENT"])
def test_the_duplicate_id_of_a_lost_message_is_not_known(mode: str) -> None:
    broker = broker_of("artemis", duplicate_detection=True, delivery_mode=mode)
    broker.connect().session(send_mode="unconfirmed").producer("q").send(duplicate_id=b"once")
    broker.crash()
    broker.restart()
    assert broker.queue("q").length == 0
    broker.connect().session().producer("q").send(duplicate_id=b"once")
    assert broker.queue("q").length == 1
