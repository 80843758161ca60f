"""What makes room within the prefetch bound: the tables, the engine and the judgement of histories say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from ackfsm import verify
from ackfsm.checking import explore
from ackfsm.checking.network import Bounds, compose
from ackfsm.engine import Broker, Consumer, Message, Session, Timed
from ackfsm.terms import Anomaly, Fault, Profile
from model_tests.support.engine.brokers import accepted, broker_of
from model_tests.support.tables import shipped
from model_tests.support.verify.notation import events_of, write
from model_tests.support.whole import few

EXPLICIT = {"CLIENT_ACKNOWLEDGE", "INDIVIDUAL_ACKNOWLEDGE", "SESSION_TRANSACTED"} | {
    "EXPLICIT_CLIENT_ACKNOWLEDGE",
    "EXPLICIT_CLIENT_DUPS_OK_ACKNOWLEDGE",
}
HELD = {
    "jms": "003 prefetch",
    "qpid": "Q0 JMS-Client-Understanding: CLIENT and TX messages occupy prefetch until they are acknowledged",
    "rabbitmq": "RMQ consumer-prefetch: unacknowledged messages count",
}
FREED = {
    "ems": "EMS-PREF: the client fetches again as the application takes",
    "artemis": "ART flow-control: the bytes in the client's buffer count, and go back as the application takes",
    "activemq": "AMQ:MessageAck: DELIVERED_ACK opens the window as messages are handed over",
    "qpid-jms": "QJ AmqpConsumer: what was delivered and not acknowledged consumes no credit",
    "solace": "SOL-DG JCSMP-API-Acknowledging-Messages: the transport's acknowledgements open the window",
    "solace-jms": "SOL-DG JCSMP-API-Acknowledging-Messages: the transport's acknowledgements open the window",
}
MODES = [
    (profile.value, mode)
    for profile in Profile
    for mode in shipped().supported_values(profile, "ack_mode")
    if mode in EXPLICIT
]
BY_THE_PRODUCER = {
    *("send", "send_in_transaction", "commit_called", "accept", "execute_commit", "confirm", "confirm_commit"),
    *("write_record", "sync_record", "write_commit", "sync_commit", "confirmed", "commit_returned", "send_returned"),
    *("threshold_reached", "timer_fires", "all_confirmed", "confirmed_by_range"),
}
TWO = """
p send m1 queue=q; p send m2 queue=q; c delivered m1 clear session=s queue=q; c processed m1
c delivered m2 clear session=s queue=q
"""


def test_what_a_vendor_does_is_known_of_every_profile() -> None:
    assert HELD.keys() | FREED.keys() == {profile.value for profile in Profile}
    assert not HELD.keys() & FREED.keys()


@pytest.mark.parametrize(("profile", "mode"), few([*MODES], 4))
def test_an_unacknowledged_delivery_counts_where_the_vendor_says_so(profile: str, mode: str, tmp_path: Path) -> None:
    """To a search, to the judgement of a history, and to the engine."""
    freed = profile in FREED
    assert _next_is_sent(profile, {"ack_mode": mode}) is freed
    configuration = shipped().configure(profile, {"ack_mode": mode, "prefetch": 1})
    found = verify.examine(verify.read(write(events_of(TWO), tmp_path / "h.jsonl")), shipped(), configuration)
    assert found.anomalies[Anomaly.PREFETCH_OVERRUN].count == (0 if freed else 1)
    assert _sent_by_the_engine(profile, mode) == (2 if freed else 1)


def _sent_by_the_engine(profile: str, mode: str) -> int:
    """How many of two messages an application receives that acknowledges and commits nothing."""
    broker = Broker(profile, specification=shipped(), ack_mode=mode, prefetch=1, consumption="receive")
    session = broker.connect().session()
    producer = session.producer("q")
    for _ in range(2):
        producer.send("")
    if mode == "SESSION_TRANSACTED":
        session.commit()
    consumer = broker.connect().session().consumer("q")
    return [consumer.receive(timeout=1) is not None for _ in range(2)].count(True)


@pytest.mark.parametrize("mode", ["AUTO_ACKNOWLEDGE", "DUPS_OK_ACKNOWLEDGE"])
def test_classic_makes_room_by_the_acknowledgement_where_it_acknowledges_each_message(mode: str) -> None:
    """``DELIVERED_ACK`` is sent where the acknowledgement comes later; here it is ``STANDARD_ACK`` (AMQ:MessageAck)."""
    assert not _next_is_sent("activemq", {"ack_mode": mode, "consumption": "listener"})
    assert _next_is_sent("ems", {"ack_mode": mode, "consumption": "listener"})


@pytest.mark.parametrize("profile", sorted({profile for profile, mode in MODES if mode == "SESSION_TRANSACTED"}))
def test_what_a_transaction_has_acknowledged_counts_until_it_commits(profile: str) -> None:
    system = _with_the_first_delivered(profile, {"ack_mode": "SESSION_TRANSACTED"})
    for event in ("processed(m1)", "acknowledge(m1)", "settle(m1)"):
        system.fire(event)
    assert ("dispatch_first(m2)" in _labels(system)) is (profile in FREED)
    for event in ("consumer_commit_called", "execute_consumer_commit"):
        system.fire(event)
    if profile in HELD:
        system.fire("credit_returned(m1)")
    assert "dispatch_first(m2)" in _labels(system)
    assert "credit_returned(m1)" not in _labels(system)


@pytest.mark.parametrize("profile", ["rabbitmq", "artemis"])
@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_session_that_ends_its_transactions_gets_everything(
    profile: str,
    timed: bool,  # noqa: FBT001 - a parameter of the test
    end: str,
    tmp_path: Path,
) -> None:
    """Transactions of two messages each within a bound of three: a place is given back once, and once only."""
    broker = broker_of(profile, ack_mode="SESSION_TRANSACTED", prefetch=3, **({"pace": Timed(seed=1)} if timed else {}))
    with broker.connect().session() as sender:
        producer = sender.producer("q")
        for number in range(6):
            producer.send(message_id=str(number))
        sender.commit()
    with broker.connect().session() as session:
        consumer, ends = session.consumer("q"), ["commit", end, *["commit"] * 3]
        seen = [name for how in ends for name in _received_in_a_transaction(session, consumer, how)]
    assert seen == [*"0123", *("23" if end == "rollback" else ""), *"45"]
    accepted(broker, tmp_path)


def _received_in_a_transaction(session: Session, consumer: Consumer, end: str) -> list[str]:
    messages = [consumer.receive(None) for _ in range(2)]
    session.commit() if end == "commit" else session.rollback()
    return [message.id for message in messages if message is not None]


def _next_is_sent(profile: str, chosen: dict[str, object]) -> bool:
    """Whether a second message is sent, within a bound of one, once the first is with its application."""
    return "dispatch_first(m2)" in _labels(_with_the_first_delivered(profile, chosen))


def _labels(system: explore.Interpreter) -> set[str]:
    return {event.label for event in system.enabled()}


def _with_the_first_delivered(profile: str, chosen: dict[str, object]) -> explore.Interpreter:
    configuration = shipped().configure(profile, chosen | {"prefetch": 1})
    system = explore.Interpreter(compose(shipped(), configuration, Bounds(messages=2)))
    while producing := [event for event in system.enabled() if event.name in BY_THE_PRODUCER]:
        system.fire(producing[0].label)
    for event in ("dispatch_first(m1)", "arrive(m1)", "delivered_clear(m1)"):
        system.fire(event)
    return system


THROWS = frozenset({Fault.LISTENER_EXCEPTION})
SWALLOWED = {"listener_exception": "swallow", "prefetch": 1}
SUPPORTED = [(profile, mode) for profile in Profile for mode in shipped().supported_values(profile, "ack_mode")]


@pytest.mark.parametrize(("profile", "mode"), SUPPORTED)
@pytest.mark.parametrize("consumption", ["listener", "receive"])
def test_swallowed_exceptions_fill_the_prefetch_where_the_condition_says_so(
    profile: str, mode: str, consumption: str
) -> None:
    """The message behind them is never sent: ``loss`` and nobody promises it absent; nothing else loses one."""
    configuration = shipped().configure(profile, SWALLOWED | {"ack_mode": mode, "consumption": consumption})
    fills = shipped().conditions["failures_fill_prefetch"].holds(shipped().environment(configuration))
    answer = explore.check(shipped(), configuration, Bounds(messages=2, faults=THROWS, max_faults=None))
    assert answer.findings[Anomaly.LOSS].reachable is fills
    assert [str(finding.anomaly) for finding in answer.violations] == []
    assert (Anomaly.LOSS in shipped().promised_absent(configuration)) <= (not fills)


def test_without_the_bound_or_with_transactions_no_message_is_left_behind_and_it_is_promised() -> None:
    for settings in ({"prefetch": 0}, {"consumption": "receive"}, {"listener_exception": "redeliver"}):
        chosen = {"send_mode": "blocking", "ack_mode": "CLIENT_ACKNOWLEDGE", **SWALLOWED} | settings
        configuration = shipped().configure("qpid", chosen)
        assert Anomaly.LOSS in shipped().promised_absent(configuration)
        answer = explore.check(shipped(), configuration, Bounds(messages=2, faults=THROWS, max_faults=None))
        assert answer.findings[Anomaly.LOSS].reachable is False
    transacted = shipped().configure("qpid", {"ack_mode": "SESSION_TRANSACTED"})
    assert Anomaly.LOSS in shipped().promised_absent(transacted)


def test_the_501st_message_of_the_engine_is_never_sent_behind_500_swallowed_exceptions() -> None:
    """With the bound that the client has: a listener that always throws is called as often as that, and no more."""
    broker = Broker("qpid", specification=shipped(), send_mode="blocking", consumption="listener")
    called = list[str]()

    def listener(message: Message) -> None:
        called.append(message.id)
        raise ValueError

    session = broker.connect().session()
    session.consumer("q", listener=listener)
    producer = broker.connect().session().producer("q")
    for number in range(501):
        producer.send("", message_id=str(number))
    assert called == [str(number) for number in range(500)]


# what counts against the bound, and what the bound is

ANSWERED = {"write_record", "sync_record", "confirm", "confirmed", "send_returned"}


@pytest.mark.parametrize(
    ("profile", "ignored"), [("rabbitmq", True), ("qpid", True), ("ems", False), ("qpid-jms", False), ("jms", False)]
)
def test_without_acknowledgements_amqp_0_9_1_ignores_the_prefetch_count(profile: str, *, ignored: bool) -> None:
    """Elsewhere what is on its way to the client counts, so that one crash loses less."""
    chosen = {"ack_mode": "NO_ACKNOWLEDGE", "prefetch": 1}
    system = explore.Interpreter(compose(shipped(), shipped().configure(profile, chosen), Bounds(messages=2)))
    for event in ("send(m1)", "accept(m1)", "dispatch_first(m1)"):
        system.fire(event)
    while "send(m2)" not in {event.label for event in system.enabled()}:
        system.fire(next(e.label for e in system.enabled() if e.name in ANSWERED))
    system.fire("send(m2)")
    system.fire("accept(m2)")
    assert ("dispatch_first(m2)" in {event.label for event in system.enabled()}) is ignored


@pytest.mark.parametrize(
    ("destination", "bound", "name"),
    [
        ("queue", 1000, "queuePrefetch"),
        ("durable_subscription", 100, "durableTopicPrefetch"),
        ("non_durable_subscription", 32767, "topicPrefetch"),
    ],
)
def test_activemq_prefetches_by_the_kind_of_the_destination(destination: str, bound: int, name: str) -> None:
    chosen: dict[str, object] = {"destination": destination}
    assert shipped().configure("activemq", chosen).prefetch == bound
    assert shipped().configure("activemq", {**chosen, name: 7}).prefetch == 7
    others = {"queuePrefetch", "durableTopicPrefetch", "topicPrefetch"} - {name}
    assert {shipped().configure("activemq", {**chosen, other: 7}).prefetch for other in others} == {bound}
