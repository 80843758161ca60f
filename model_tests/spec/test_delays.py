"""A message that waits for its delivery time, and one that waits before it is delivered again; there is no clock."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from ackfsm import engine, tables
from ackfsm.checking import explore
from ackfsm.checking.explore import Answer
from ackfsm.checking.network import Bounds
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Fault
from model_tests.support.tables import copy_of_spec, replace, shipped

DELIVERY, REDELIVERY = {"delivery_delay": True}, {"redelivery_delay": True}
CRASH = (Fault.CONSUMER_CRASH,)


def asked(  # noqa: PLR0913 - what is asked about, each by name
    profile: str,
    settings: Mapping[str, object],
    *,
    faults: Collection[Fault] = (),
    max_faults: int | None = 1,
    messages: int = 2,
    without: Collection[str] = (),
    spec: Specification | None = None,
) -> Answer:
    spec = spec or shipped()
    bounds = Bounds(messages=messages, faults=frozenset(faults), max_faults=max_faults, without=frozenset(without))
    return explore.check(spec, spec.configure(profile, settings), bounds)


def way(answer: Answer, anomaly: Anomaly) -> list[str]:
    return [event.label for event in answer.findings[anomaly].steps]


@pytest.mark.parametrize("mode", ["AUTO_ACKNOWLEDGE", "SESSION_TRANSACTED"])
def test_a_message_is_not_delivered_before_its_time_and_a_later_one_may_come_first(mode: str) -> None:
    delayed = asked("jms", {**DELIVERY, "ack_mode": mode})
    steps = way(delayed, Anomaly.REORDER)
    assert "delay_over(m2)" in steps[: steps.index("dispatch_first(m2)")]
    assert not delayed.findings[Anomaly.REORDER].promise, "JMS 6.2.9 excepts messages with a delay"
    assert not asked("jms", {"ack_mode": mode}).findings[Anomaly.REORDER].reachable
    early = asked("jms", {**DELIVERY, "ack_mode": mode}, without={"delay_over"})
    assert early.findings[Anomaly.LOSS].reachable, "as its time never comes"
    assert early.exploration.states < delayed.exploration.states


@pytest.mark.parametrize("fault", [Fault.BROKER_CRASH, Fault.BROKER_KILL, Fault.CONSUMER_CRASH, Fault.JOURNAL_FAILURE])
@pytest.mark.parametrize("settings", [DELIVERY, REDELIVERY, {**DELIVERY, **REDELIVERY}])
def test_nothing_is_lost_that_waits(settings: Mapping[str, object], fault: Fault) -> None:
    answer = asked("jms", settings, faults=(fault,))
    wrong = (Anomaly.LOSS, Anomaly.STUCK, Anomaly.RESURRECTION, Anomaly.UNFLAGGED_DUPLICATE)
    assert not [anomaly for anomaly in wrong if answer.findings[anomaly].reachable]


def test_a_later_message_overtakes_one_that_waits_to_be_redelivered() -> None:
    """It comes flagged, so that it is no reordering."""
    settings = {"ack_mode": "CLIENT_ACKNOWLEDGE", "client_ack_scope": "message", "prefetch": 1}
    for delay, overtakes in ((REDELIVERY, True), ({}, False)):
        spec = shipped()
        bounds = Bounds(messages=2, faults=frozenset(CRASH), max_faults=1, without=frozenset({"delay_over"}))
        answer = explore.check(spec, spec.configure("jms", {**settings, **delay}), bounds)
        assert answer.findings[Anomaly.UNPROCESSED].reachable is overtakes, (
            "m1 waits for ever where its time never comes"
        )
        assert not answer.findings[Anomaly.REORDER].reachable


@pytest.mark.parametrize(
    ("mode", "fault"),
    [
        ("AUTO_ACKNOWLEDGE", Fault.LISTENER_EXCEPTION),
        ("CLIENT_ACKNOWLEDGE", Fault.LISTENER_EXCEPTION),
        ("SESSION_TRANSACTED", Fault.LISTENER_EXCEPTION),
        ("AUTO_ACKNOWLEDGE", Fault.CONSUMER_LINK_LOSS),
        ("AUTO_ACKNOWLEDGE", Fault.CONSUMER_CRASH),
    ],
)
def test_whatever_gives_it_back_it_waits_before_it_comes_again(mode: str, fault: Fault) -> None:
    answer = asked("artemis", {**REDELIVERY, "ack_mode": mode}, faults=(fault,), messages=1)
    duplicate = Anomaly.DUPLICATE if answer.findings[Anomaly.DUPLICATE].reachable else Anomaly.UNFLAGGED_DUPLICATE
    steps = way(answer, duplicate)
    assert steps.index("delay_over(m1)") < steps.index("dispatch_again(m1)")
    never = asked("artemis", {**REDELIVERY, "ack_mode": mode}, faults=(fault,), messages=1, without={"delay_over"})
    assert not never.findings[Anomaly.DUPLICATE].reachable


@pytest.mark.parametrize("messages", [1, 2])
def test_what_is_not_switched_on_is_not_there(messages: int) -> None:
    answer = asked("jms", {}, faults=CRASH, messages=messages)
    assert not any(event.name == "delay_over" for event in answer.network.events)


MUTANTS = {
    "a message may be sent before its time": (
        DELIVERY,
        "turned_away_at_limit, expired, missed, taken_elsewhere:\n      {refuse",
        "turned_away_at_limit, expired, missed, taken_elsewhere:\n      {ignore",
        (True, True),
    ),
    "a message that waits holds up the later ones": (
        DELIVERY,
        '{ignore: "it may be overtaken, whose time is not come"',
        '{refuse: "it may be overtaken, whose time is not come"',
        (False, False),
    ),
    "a broker that starts again has forgotten the delay": (
        DELIVERY,
        "        - {to: delayed, when: delivery_delay, because: its delivery time is stored with it",
        "        - {to: ready, when: delivery_delay, because: its delivery time is stored with it",
        (True, True),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_table_that_says_otherwise_is_noticed(name: str, tmp_path: Path) -> None:
    settings, old, new, seen = MUTANTS[name]
    spec = copy_of_spec(tmp_path)
    replace(spec, "machines/broker.yaml", (old, new))
    changed = tables.load(spec)
    overtakes = asked("jms", settings, spec=changed).findings[Anomaly.REORDER].reachable
    faults = (Fault.BROKER_KILL, Fault.CONSUMER_CRASH)

    def early(messages: int, spec: Specification) -> bool | None:
        found = asked(
            "jms", settings, faults=faults, max_faults=2, without={"delay_over"}, messages=messages, spec=spec
        )
        return found.findings[Anomaly.DUPLICATE].reachable

    messages = 1 if seen[0] else 2  # what one message shows, two show also, among millions of states
    assert (early(messages, changed), overtakes) == seen
    assert not early(2, shipped())


@pytest.mark.parametrize("mode", ["CLIENT_ACKNOWLEDGE", "SESSION_TRANSACTED"])
def test_an_engine_lets_the_time_pass_at_once(mode: str) -> None:
    broker = engine.Broker(
        "jms",
        specification=shipped(),
        ack_mode=mode,
        consumption="receive",
        delivery_delay=True,
        redelivery_delay=True,
    )
    with broker.connect().session(mode) as session:
        session.producer("q").send("one", {"n": 1}, message_id="m1")
        if mode == "SESSION_TRANSACTED":
            session.commit()
        consumer = session.consumer("q")
        first = consumer.receive(None)
        assert first is not None
        if mode == "SESSION_TRANSACTED":
            session.rollback()
        else:
            session.recover()
        again = consumer.receive(None)
        assert again is not None
        assert again.redelivered
