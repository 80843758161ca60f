"""Ack Immediately on one message of a session whose other messages wait for the threshold or the timer."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from ackfsm import tables
from ackfsm.checking import explore
from ackfsm.checking.explore import Answer
from ackfsm.checking.network import Bounds
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Fault
from model_tests.support.tables import copy_of_spec, replace, shipped

ASKS = frozenset({"ask_at_once"})
NEITHER = frozenset({"timer_fires", "threshold_reached"})


def asked(  # noqa: PLR0913 - what is asked about, each by name
    *,
    events: str = "PER_MESSAGE",
    actions: Collection[str] = ASKS,
    without: Collection[str] = (),
    faults: Collection[Fault] = (),
    messages: int = 2,
    spec: Specification | None = None,
) -> Answer:
    spec = spec or shipped()
    bounds = Bounds(
        messages=messages,
        faults=frozenset(faults),
        max_faults=1,
        actions=frozenset(actions),
        without=frozenset(without) | {"dispatch_first"},
    )
    return explore.check(spec, spec.configure("solace", {"publish_window": 9, "ack_event_mode": events}), bounds)


def outcomes(answer: Answer) -> bool | None:
    return answer.findings[Anomaly.MISSING_OUTCOME].reachable


@pytest.mark.parametrize("events", ["PER_MESSAGE", "WINDOWED"])
def test_a_session_may_mix_messages_that_ask_and_that_do_not(events: str) -> None:
    answer = asked(events=events, messages=3)
    assert not outcomes(answer)
    assert not answer.findings[Anomaly.STUCK].reachable
    assert not answer.findings[Anomaly.WINDOW_OVERRUN].reachable


@pytest.mark.parametrize("fault", [Fault.PRODUCER_LINK_LOSS, Fault.PRODUCER_CRASH, Fault.BROKER_CRASH, Fault.REJECTION])
def test_also_where_something_fails(fault: Fault) -> None:
    answer = asked(faults={fault})
    assert not outcomes(answer)
    assert not answer.findings[Anomaly.STUCK].reachable
    assert not answer.findings[Anomaly.DOUBLE_OUTCOME].reachable


@pytest.mark.parametrize("fault", [None, Fault.BROKER_CRASH])
def test_nothing_is_lost_that_was_acknowledged_at_once(fault: Fault | None) -> None:
    answer = asked(faults={fault} - {None})  # type: ignore[arg-type]
    assert not answer.findings[Anomaly.EARLY_CONFIRM].reachable


def test_without_threshold_and_timer_those_before_it_are_answered_and_those_after_it_wait() -> None:
    """At rest each answered message asked itself or stands before one that did."""
    configuration = shipped().configure("solace", {"publish_window": 9})
    bounds = Bounds(messages=2, actions=ASKS, max_faults=0, without=NEITHER | {"dispatch_first"})
    answer = explore.check(shipped(), configuration, bounds)
    assert outcomes(answer), "a message after it waits"
    instances = {instance.label: number for number, instance in enumerate(answer.network.instances)}
    way = answer.findings[Anomaly.MISSING_OUTCOME].steps
    state = answer.network.initial
    for event in way:
        after = answer.network.step(state, event)
        assert after is not None
        state = after
    assert state[instances["ack_request(m2)"]] == "plain"


def test_nothing_of_it_is_there_unless_a_check_asks_for_it() -> None:
    plain = asked(actions=()).exploration
    assert (plain.states, plain.transitions) < (asked().exploration.states, asked().exploration.transitions)
    assert not asked(actions=(), without=NEITHER).findings[Anomaly.DOUBLE_OUTCOME].reachable
    assert outcomes(asked(actions=(), without=NEITHER))


def test_a_broker_that_reads_on_before_it_answers_is_noticed(tmp_path: Path) -> None:
    """Its states are more: a message was read behind one that is due."""
    spec = copy_of_spec(tmp_path)
    old = "      accept(other), discard_duplicate(other): {refuse: the broker answers first"
    replace(spec, "machines/producer.yaml", (old, old.replace("refuse", "ignore")))
    assert asked(spec=tables.load(spec)).exploration.states > asked().exploration.states
