"""What the recorded history says of faults, transactions and times."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackfsm.engine import Broker, IllegalStateException, MessageRejected, OutcomeUnknown, Session, Stuck
from ackfsm.terms import Anomaly, Verdict
from ackfsm.verify import Result
from model_tests.support.engine.brokers import broker_of, fill, lines, received, rest
from model_tests.support.engine.bugs import Bug, Change, Contagious
from model_tests.support.engine.calls import assert_kept
from model_tests.support.engine.laboratory import Laboratory, judged
from model_tests.support.engine.settings import effort
from model_tests.support.tables import shipped


@pytest.mark.parametrize(("call", "fault"), [("lose", "link_loss"), ("crash", "crash")])
@pytest.mark.parametrize("side", ["producer", "consumer"])
def test_the_history_names_the_side_that_a_fault_struck(side: str, call: str, fault: str) -> None:
    broker = broker_of()
    with broker.connect() as client:
        getattr(client.session(), side)("q")
        getattr(client, call)()
        assert [line["fault"] for line in lines(broker, "fault")] == [f"{side}_{fault}"]
    assert [line["fault"] for line in lines(broker, "fault")] == [f"{side}_{fault}"]


def test_the_history_records_a_listener_exception_as_a_fault() -> None:
    def throws(_: object) -> None:
        raise RuntimeError("the application fails")

    broker = Broker("jms", specification=shipped(), history=True, max_delivery_attempts=1)
    broker.connect().session().consumer("q", listener=throws)
    broker.connect().session().producer("q").send()
    assert {line["fault"] for line in lines(broker, "fault")} == {"listener_exception"}


def test_the_history_names_a_transaction_by_text() -> None:
    broker = broker_of(ack_mode="SESSION_TRANSACTED")
    with broker.connect() as client:
        session = client.session()
        session.producer("q").send(message_id="m")
        session.commit()
        assert_kept(broker)
    assert {type(line["transaction"]) for line in lines(broker) if "transaction" in line} == {str}


def test_no_two_events_of_the_history_have_the_same_time() -> None:
    broker = broker_of()
    with broker.connect().session("SESSION_TRANSACTED") as session:
        for _ in range(3):
            session.producer("q").send()
        session.commit()
    times = [line["t"] for line in lines(broker)]
    assert len(times) > 5
    assert all(a < b for a, b in itertools.pairwise(times))


# whom a fault hit


def told(broker: Broker) -> list[tuple[str, str, str]]:
    """Who tells of each fault and repair."""
    return [
        (line["process"], line["event"], line["fault"])
        for line in lines(broker)
        if line["event"] in {"fault", "recovered"}
    ]


def verdict(broker: Broker, *, anonymous: bool = False) -> Result:
    """What is said of the history; ``anonymous``: as if it did not say whom the faults hit."""
    history = broker.history
    assert history is not None
    kept = history.lines
    if anonymous:
        history.lines = [nameless(line) for line in kept]
    try:
        with tempfile.TemporaryDirectory() as folder:
            return judged(history, Path(folder))
    finally:
        history.lines = kept


def nameless(line: Mapping[str, Any]) -> Mapping[str, Any]:
    if line["event"] not in {"fault", "recovered"}:
        return line
    return {name: value for name, value in line.items() if name != "queue"} | {"process": "nemesis"}


@pytest.mark.parametrize("side", ["producer", "consumer"])
def test_a_broken_connection_names_its_client_until_it_is_back(side: str) -> None:
    broker = broker_of()
    broker.connect("beside").session().consumer("q")
    client = broker.connect("hit")
    getattr(client.session(), side)("q")
    client.lose()
    assert told(broker) == [("hit", "fault", f"{side}_link_loss")]
    while broker.loop.step():
        pass
    assert told(broker)[1:] == [("hit", "recovered", f"{side}_link_loss")]


def test_the_crash_of_a_client_is_over_when_its_sessions_are_gone() -> None:
    broker = broker_of()
    client = broker.connect("hit")
    client.session().producer("q")
    client.crash()
    assert told(broker) == [("hit", "fault", "producer_crash"), ("hit", "recovered", "producer_crash")]


def test_a_connection_that_breaks_names_its_client_with_all_its_sessions() -> None:
    broker = broker_of()
    client = broker.connect("hit")
    for _ in range(2):
        client.session().consumer("q")
    client.lose()
    assert [process for process, *_ in told(broker)] == ["hit", "hit"]
    while broker.loop.step():
        pass
    assert told(broker)[2:] == [("hit", "recovered", "consumer_link_loss")], "when the last of them is back"


def test_one_of_two_sessions_that_breaks_does_not_speak_for_the_client() -> None:
    broker = broker_of()
    client = broker.connect("client")
    first = client.session()
    for session in (first, client.session()):
        session.consumer("q")
    first.fault("link_loss")
    assert told(broker) == [("nemesis", "fault", "consumer_link_loss")], "messages of the other are not hit by it"


def test_faults_of_the_broker_are_of_everybody() -> None:
    broker = broker_of()
    broker.crash()
    broker.restart()
    assert told(broker) == [("nemesis", "fault", "broker_crash"), ("nemesis", "recovered", "broker_crash")]


def test_a_refusal_and_a_listener_that_throws_name_client_and_queue() -> None:
    def throws(_: object) -> None:
        raise RuntimeError("the application fails")

    broker = Broker("jms", specification=shipped(), history=True, max_delivery_attempts=1)
    broker.connect("reader").session().consumer("in", listener=throws)
    producer = broker.connect("writer").session().producer("in")
    broker.queue("in").refuse_next = 1
    with pytest.raises(MessageRejected):
        producer.send()
    producer.send()
    assert [(line["process"], line["queue"], line["fault"]) for line in lines(broker, "fault")] == [
        ("writer", "in", "rejection"),
        ("reader", "in", "listener_exception"),
    ]


def test_a_listener_that_throws_at_a_dead_letter_names_no_queue_of_which_nothing_else_is_told() -> None:
    def throws(_: object) -> None:
        raise RuntimeError("the application fails")

    broker = Broker("artemis", specification=shipped(), history=True, max_delivery_attempts=1)
    broker.connect().session().producer("q").send()
    for queue in ("q", "DLQ"):
        broker.connect().session().consumer(queue, listener=throws)
        for _ in range(3):  # the letter comes again and again
            broker.loop.step()
    faults = lines(broker, "fault")
    assert len(faults) > 1
    assert {line.get("queue") for line in faults} == {"q", None}
    assert verdict(broker).verdict is not Verdict.INVALID


def two_consumers(broker: Broker) -> None:
    """Each has a message when the connection of the first breaks, and gets its own again if it comes again."""
    fill(broker, "m1", "m2", queue="q")
    clients = [broker.connect(name) for name in ("hit", "beside")]
    consumers = [client.session("CLIENT_ACKNOWLEDGE").consumer("q") for client in clients]
    for consumer in consumers:
        received(consumer)
    clients[0].lose()
    while any(consumer.receive(None) is not None for consumer in consumers[::-1]):
        pass
    for client in clients:
        client.close()
    rest(broker, "q")
    broker.drained()


def test_the_link_of_one_consumer_does_not_explain_what_comes_again_at_another() -> None:
    broker = Laboratory(Bug(broker=Contagious)).broker("jms", ack_mode="CLIENT_ACKNOWLEDGE", prefetch=1)
    two_consumers(broker)
    assert verdict(broker).verdict is Verdict.INVALID
    assert verdict(broker, anonymous=True).verdict is not Verdict.INVALID, "it may have been the link of that one"


def test_without_the_bug_the_same_is_valid() -> None:
    broker = Laboratory(None).broker("jms", ack_mode="CLIENT_ACKNOWLEDGE", prefetch=1)
    two_consumers(broker)
    assert (verdict(broker).verdict, verdict(broker).reasons) == (Verdict.VALID, ())


_CALLS = st.sampled_from(["send", "receive", "acknowledge", "lose", "crash", "break one", "step", "kill"])


@given(
    profile=st.sampled_from(["jms", "artemis", "activemq", "ems", "qpid", "solace"]),
    mode=st.sampled_from(["CLIENT_ACKNOWLEDGE", "AUTO_ACKNOWLEDGE"]),
    calls=st.lists(st.tuples(_CALLS, st.integers(0, 2)), max_size=12),
)
@effort(25, 12)
def test_what_names_its_victims_is_never_held_against_a_sound_engine(
    profile: str, mode: str, calls: list[tuple[str, int]]
) -> None:
    """Clients of two sessions each, which break together or one by one."""
    broker = broker_of(profile, ack_mode=mode)
    people = [_Person(broker, number) for number in range(3)]
    for call, who in calls:
        people[who].do(call)
    for person in people:
        person.client.close()
    rest(broker, "q")
    broker.drained()
    assert verdict(broker).verdict is not Verdict.INVALID, "\n".join(map(str, lines(broker)))


class _Person:
    """A client with two sessions that send and consume."""

    def __init__(self, broker: Broker, number: int) -> None:
        self.broker, self.name, self.sent = broker, f"client {number}", 0
        self.open()

    def open(self) -> None:
        self.client = self.broker.connect(f"{self.name}.{len(self.broker.connections)}.{self.sent}")
        self.sessions: list[Session] = [self.client.session() for _ in range(2)]
        self.producers = [session.producer("q") for session in self.sessions]
        self.consumers = [session.consumer("q") for session in self.sessions]

    def do(self, call: str) -> None:
        self.sent += 1
        which = self.sent % 2
        match call:
            case "send":
                self.producers[which].send(message_id=f"{self.client.client_id}-{self.sent}")
            case "receive":
                self.consumers[which].receive(None)
            case "acknowledge":
                if (message := self.consumers[which].receive(None)) is not None:
                    with contextlib.suppress(OutcomeUnknown):  # the connection may be lost meanwhile
                        message.acknowledge()
            case "lose":
                self.client.lose()
            case "break one":
                self.sessions[which].fault("link_loss")
            case "kill":
                self.broker.kill() if self.broker.running else self.broker.restart()
            case "crash":
                self.client.crash()
                self.open()
            case _:
                self.broker.loop.step()


# what is seen at rest


def test_a_call_that_can_never_return_is_stuck() -> None:
    bug = Bug((Change("publisher_confirm", "none", "accept", "none"),))
    broker = Laboratory(bug).broker("jms", ack_mode="CLIENT_ACKNOWLEDGE")
    with pytest.raises(Stuck):
        broker.connect("sender").session().producer("q").send(message_id="m")
    assert [(line["process"], line["error"], line["message"]) for line in lines(broker, "waiting")] == [
        ("sender", "send", "m")
    ]
    assert rest(broker, "q") == ["m"]
    broker.drained()
    found = verdict(broker)
    assert found.findings.anomalies[Anomaly.STUCK].examples == ("m",)
    assert found.verdict is Verdict.INVALID


def test_nothing_is_at_rest_while_a_connection_is_broken() -> None:
    bug = Bug((Change("publisher_confirm", "none", "accept", "none"),))
    broker = Laboratory(bug).broker("jms", ack_mode="CLIENT_ACKNOWLEDGE", repairs=False)
    beside = broker.connect("beside")
    beside.session().consumer("other")
    producer = broker.connect("sender").session().producer("q")
    beside.lose()
    with pytest.raises(Stuck):
        producer.send(message_id="m")
    with pytest.raises(IllegalStateException):
        broker.drained()
    assert not lines(broker, "waiting")
    assert not lines(broker, "depth")


def test_a_queue_that_stays_as_it_is_has_a_depth_beside_those_that_are_drained() -> None:
    broker = broker_of(ack_mode="CLIENT_ACKNOWLEDGE")
    fill(broker, "m1", "m2", queue="full")
    fill(broker, "m3", queue="empty")
    rest(broker, "empty")
    with pytest.raises(IllegalStateException):
        broker.drained()
    assert [(line["queue"], line["position"], line["delivery_count"]) for line in lines(broker, "depth")] == [
        ("full", 2, 0)
    ]
    assert [line["queue"] for line in lines(broker, "drained")] == ["empty"]
    assert not verdict(broker).findings.anomalies[Anomaly.STUCK].found


@pytest.mark.parametrize("mode", ["AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE"])
def test_what_a_client_has_is_not_at_rest(mode: str) -> None:
    broker = broker_of(ack_mode=mode)
    fill(broker, "m1", "m2", queue="q")
    received(broker.connect().session(mode).consumer("q"))
    with pytest.raises(IllegalStateException):
        broker.drained()
    assert not lines(broker, "depth"), "an application may acknowledge it, and its library hand it over"


def test_a_history_that_is_drained_tells_nothing_else_of_rest() -> None:
    broker = broker_of(ack_mode="CLIENT_ACKNOWLEDGE")
    fill(broker, "m", queue="q")
    rest(broker, "q")
    broker.drained()
    assert not [line for line in lines(broker) if line["event"] in {"waiting", "depth"}], "which a fold keeps all for"
