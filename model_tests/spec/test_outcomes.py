"""What an application says of one delivery: acknowledged, released, failed, undeliverable here, rejected."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from ackfsm import tables
from ackfsm.checking import explore
from ackfsm.checking.explore import Answer
from ackfsm.checking.network import Bounds
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Fault
from model_tests.support.tables import copy_of_spec, replace, shipped

SETTLES = frozenset({"settle_released", "settle_failed", "settle_undeliverable", "settle_rejected"})
AMQP = {"ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "resend_in_doubt": False}

KEPT = {"attempts_exhausted": "dead_letter", "release_counts": False}
"""As RabbitMQ since 4.3 with a dead-letter exchange."""


def asked(  # noqa: PLR0913 - what is asked about, each by name
    profile: str,
    settings: Mapping[str, object],
    *,
    actions: Collection[str] = SETTLES,
    faults: Collection[Fault] = (),
    max_faults: int | None = None,
    messages: int = 1,
    consumers: int = 1,
    spec: Specification | None = None,
) -> Answer:
    spec = spec or shipped()
    bounds = Bounds(
        messages=messages,
        consumers=consumers,
        faults=frozenset(faults),
        max_faults=max_faults,
        actions=frozenset(actions),
    )
    return explore.check(spec, spec.configure(profile, {**KEPT, **settings}), bounds)


OFFERED = {
    ("solace", "CLIENT_ACKNOWLEDGE"): {"settle_failed", "settle_rejected"},
    ("rabbitmq", "INDIVIDUAL_ACKNOWLEDGE"): {"settle_released", "settle_failed", "settle_rejected"},
    ("qpid-jms", "INDIVIDUAL_ACKNOWLEDGE"): SETTLES,
    ("jms", "CLIENT_ACKNOWLEDGE"): set(),
    ("artemis", "INDIVIDUAL_ACKNOWLEDGE"): set(),
    ("solace", "AUTO_ACKNOWLEDGE"): set(),
    ("rabbitmq", "CLIENT_ACKNOWLEDGE"): {"settle_released", "settle_failed", "settle_rejected"},
}


@pytest.mark.parametrize(("profile", "mode"), OFFERED)
def test_an_interface_offers_the_outcomes_that_its_profile_says(profile: str, mode: str) -> None:
    alone = asked(profile, {"ack_mode": mode, "publish_window": 1}, actions=()).exploration.states
    more = {
        action
        for action in SETTLES
        if asked(profile, {"ack_mode": mode, "publish_window": 1}, actions={action}).exploration.states > alone
    }
    assert more == OFFERED[profile, mode]


@pytest.mark.parametrize("profile", ["solace", "rabbitmq", "qpid-jms"])
def test_without_the_actions_nothing_of_it_is_there(profile: str) -> None:
    settings = {"ack_mode": "CLIENT_ACKNOWLEDGE", "client_ack_scope": "message"} if profile == "solace" else AMQP
    with_it = asked(profile, settings, actions=(), faults=(Fault.CONSUMER_CRASH,)).exploration
    without = asked(
        profile, {**settings, "outcomes": "accepted"}, actions=(), faults=(Fault.CONSUMER_CRASH,)
    ).exploration
    assert (with_it.states, with_it.transitions) == (without.states, without.transitions)


def test_a_message_that_failed_comes_again_flagged_and_one_that_is_rejected_does_not() -> None:
    failed = asked("rabbitmq", AMQP, actions={"settle_failed"}, messages=2)
    assert failed.findings[Anomaly.DUPLICATE].reachable
    assert not failed.findings[Anomaly.UNFLAGGED_DUPLICATE].reachable
    rejected = asked("rabbitmq", AMQP, actions={"settle_rejected"}, messages=2)
    assert not rejected.findings[Anomaly.DUPLICATE].reachable
    assert not rejected.findings[Anomaly.LOSS].reachable
    assert rejected.ends["dead_lettered_unprocessed"].reachable


def test_rabbitmq_flags_what_is_released_and_amqp_1_does_not() -> None:
    """`redelivered` of AMQP 0-9-1 says that it was sent before; the flag of Qpid JMS is made of the count."""
    for profile, unflagged in (("rabbitmq", False), ("qpid-jms", True)):
        answer = asked(profile, AMQP, actions={"settle_released"})
        assert answer.findings[Anomaly.UNFLAGGED_DUPLICATE].reachable is unflagged, profile
        assert answer.findings[Anomaly.DUPLICATE].reachable is not unflagged, profile


@pytest.mark.parametrize("action", ["settle_failed", "settle_released"])
def test_only_what_is_counted_uses_up_the_attempts(action: str) -> None:
    answer = asked("rabbitmq", {**AMQP, "max_delivery_attempts": 2}, actions={action}, messages=2)
    assert answer.ends["dead_lettered_unprocessed"].reachable is (action == "settle_failed")
    assert not answer.findings[Anomaly.OVER_DELIVERED].reachable


def test_an_outcome_is_lost_with_its_connection() -> None:
    lost = asked("solace", {"ack_mode": "CLIENT_ACKNOWLEDGE", "publish_window": 1}, actions={"settle_rejected"},
                 faults=(Fault.CONSUMER_LINK_LOSS,), max_faults=1)  # fmt: skip
    labels = [event.name for event in lost.findings[Anomaly.DUPLICATE].steps]
    assert labels.index("consumer_link_loss") < labels.index("dispatch_again")


def test_what_a_link_has_turned_away_waits_for_another_link() -> None:
    alone = asked("qpid-jms", AMQP, actions={"settle_undeliverable"})
    assert not alone.findings[Anomaly.DUPLICATE].reachable, "nobody else is there"
    assert alone.findings[Anomaly.UNPROCESSED].reachable, "it stays in its queue"
    reconnected = asked("qpid-jms", AMQP, actions={"settle_undeliverable"}, faults=(Fault.CONSUMER_LINK_LOSS,))
    assert reconnected.findings[Anomaly.DUPLICATE].reachable, "a new link has not turned it away"
    two = asked("qpid-jms", AMQP, actions={"settle_undeliverable"}, consumers=2)
    assert two.findings[Anomaly.DUPLICATE].reachable
    assert not two.findings[Anomaly.UNFLAGGED_DUPLICATE].reachable


def test_later_messages_go_on_to_a_consumer_that_has_turned_one_away() -> None:
    answer = asked("qpid-jms", AMQP, actions={"settle_undeliverable"}, messages=2)
    assert not answer.findings[Anomaly.LOSS].reachable
    assert not answer.findings[Anomaly.STUCK].reachable


def test_a_release_takes_back_its_own_delivery_alone(tmp_path: Path) -> None:
    """Before, it also took the mark that a delivery on a broken link had left."""
    faults = (Fault.LISTENER_EXCEPTION, Fault.CONSUMER_CRASH)
    settings = {"resend_in_doubt": False}

    def goes_back(spec: Specification) -> bool | None:
        answer = asked("qpid-jms", settings, actions=(), faults=faults, spec=spec)
        return answer.findings[Anomaly.COUNT_REGRESSION].reachable

    assert goes_back(shipped()) is False
    spec = copy_of_spec(tmp_path)
    old = "    marked:\n      dispatch_first: {refuse: it has been sent before"
    row = "      requeue: {to: clear, because: it is released, source: model}\n"
    replace(spec, "machines/broker.yaml", (old, old.replace("\n", "\n" + row, 1)))
    assert goes_back(tables.load(spec)) is True
