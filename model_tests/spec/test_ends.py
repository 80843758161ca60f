"""What becomes of a message that is not delivered, or not processed: dead letter, destroyed, expired, rejected."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from ackfsm import cli, tables, verify
from ackfsm.checking import explore
from ackfsm.checking.explore import Answer
from ackfsm.checking.network import Bounds, compose
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Fault
from model_tests.support.tables import copy_of_spec, replace, shipped
from model_tests.support.verify.notation import events_of, write

UNSEEN = {"max_delivery_attempts": 1}
TWICE = {"max_delivery_attempts": 2}
"""The least that EMS has."""

CRASH = frozenset({Fault.CONSUMER_CRASH})


def asked(
    profile: str,
    settings: Mapping[str, object],
    faults: frozenset[Fault] = CRASH,
    messages: int = 1,
    specification: Specification | None = None,
) -> Answer:
    """What ``check`` says with faults without limit."""
    spec = specification or shipped()
    bounds = Bounds(faults=faults, max_faults=None, messages=messages)
    return explore.check(spec, spec.configure(profile, settings), bounds)


def reached(answer: Answer) -> set[str]:
    """The ends that can be reached."""
    return {name for name, end in answer.ends.items() if end.reachable}


@pytest.mark.parametrize("messages", [1, 2])
def test_a_dead_letter_that_nobody_saw_takes_what_is_said_of_processing(messages: int) -> None:
    """Before, `processed_exactly_once` stood although the message had ended in the dead-letter queue unseen."""
    answer = asked("artemis", UNSEEN, messages=messages)
    assert reached(answer) == {"dead_lettered_unprocessed"}
    stands = answer.guarantees
    assert (stands["processed_exactly_once"], stands["at_least_once"]) == (False, False)
    assert stands["delivered_at_least_once"] is True, "it is kept, and somebody can have it from there"


@pytest.mark.parametrize("messages", [1, 2])
def test_what_is_destroyed_unseen_was_not_delivered_either(messages: int) -> None:
    answer = asked("ems", TWICE, messages=messages)
    assert reached(answer) == {"destroyed_unprocessed", "destroyed_undelivered"}
    assert answer.guarantees["delivered_at_least_once"] is False
    assert "destroyed(m1)" in [event.label for event in answer.ends["destroyed_undelivered"].steps]


def test_what_expires_was_not_processed_and_is_no_loss() -> None:
    answer = asked("jms", {"time_to_live": True}, frozenset())
    assert reached(answer) == {"expired_unprocessed"}
    assert not answer.findings[Anomaly.LOSS].reachable
    assert answer.guarantees["delivered_at_least_once"] is True
    assert answer.guarantees["at_least_once"] is False


def test_without_a_limit_and_a_time_to_live_no_message_ends_so() -> None:
    assert reached(asked("jms", {}, frozenset(Fault))) == set()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        pytest.param(
            "monitors/ends.yaml", 'destroyed: {to: ended, because: "each attempt', 'destroyed: {ignore: "each attempt',
            id="an end that is not looked at",
        ),
        pytest.param(
            "guarantees.yaml",
            "      - monitor: destroyed_undelivered\n        because",
            "      - anomaly: reorder\n        because",
            id="a guarantee that the end does not exclude",
        ),
    ],
)  # fmt: skip
def test_a_table_that_says_otherwise_is_noticed(file: str, old: str, new: str, tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    if "ignore" in new:
        replace(spec, file, (old + ' ended before an application had it", source: EMS-MAXR}', new + ' ended"}'))
    else:
        replace(spec, file, (old, new))
    answer = asked("ems", TWICE, specification=tables.load(spec))
    assert answer.guarantees["delivered_at_least_once"] is True


def test_words_about_delivery_and_about_processing_are_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """Before, the screen said "strongest guarantee: exactly_once" under "reprocessed  yes"."""
    assert cli.main(["check", "--fault", "consumer_crash", "--max-faults", "any"]) == 0
    screen = capsys.readouterr().out
    assert re.search(r"reprocessed +yes", screen)
    assert "  delivery: once_and_only_once, ordered\n  processing: at_least_once\n" in screen
    assert "exactly_once\n" not in screen.partition("excluded")[0]


def test_a_message_may_be_delivered_after_it_expired_only_by_a_client_that_had_it() -> None:
    late = Anomaly.OVER_DELIVERED
    assert not asked("jms", {"time_to_live": True}, frozenset()).findings[late].reachable
    answer = asked("jms", {"time_to_live": True}, frozenset({Fault.CONSUMER_LINK_LOSS}))
    labels = [event.label for event in answer.findings[late].steps]
    assert labels.index("arrive(m1)") < labels.index("consumer_link_loss") < labels.index("expired(m1)")


@pytest.mark.parametrize(("profile", "may"), [("ems", True), ("jms", False), ("artemis", False)])
def test_what_an_application_has_expires_where_the_vendor_says_so_and_comes_to_nobody_again(
    profile: str, *, may: bool
) -> None:
    chosen = {"time_to_live": True, "ack_mode": "CLIENT_ACKNOWLEDGE", "consumption": "receive"}
    network = compose(shipped(), shipped().configure(profile, chosen), Bounds(max_faults=0))
    assert ("expired_in_hand" in {event.name for event in network.events}) is may
    answer = asked(profile, chosen, frozenset())
    assert not [name for name, finding in answer.findings.items() if finding.reachable]


SENT_LATE = "sent_after_it_expired"


@pytest.mark.parametrize("messages", [1, 2])
@pytest.mark.parametrize("mutant", [False, True])
def test_what_has_expired_has_expired_after_a_restart_too(messages: int, mutant: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """The broker may forget that it has destroyed the message; when it expires is stored with it (JMS 3.4.9)."""
    spec = copy_of_spec(tmp_path)
    if mutant:
        replace(spec, "machines/broker.yaml", ("recover_ready: {to: out_of_time,", "recover_ready: {to: ready,"))
    specification = tables.load(spec)
    bounds = Bounds(messages=messages, faults=frozenset({Fault.BROKER_KILL}), max_faults=None)
    configuration = specification.configure("jms", {"time_to_live": True})
    watchers = [(SENT_LATE, specification.monitors[SENT_LATE])]
    found = explore.explore(compose(specification, configuration, bounds, watchers))
    assert found.complete
    assert (SENT_LATE in found.witnesses) is mutant


def test_what_has_expired_is_destroyed_again_and_nothing_waits_for_it() -> None:
    answer = asked("jms", {"time_to_live": True}, frozenset({Fault.BROKER_KILL, Fault.BROKER_CRASH}))
    assert not answer.findings[Anomaly.STUCK].reachable
    assert not answer.findings[Anomaly.LOSS].reachable


@pytest.mark.parametrize(
    ("settings", "text", "expected"),
    [
        ({"max_delivery_attempts": 2}, "c delivered m1 clear; c delivered m1 flagged; c delivered m1 flagged", {"m1"}),
        ({"max_delivery_attempts": 3}, "c delivered m1 clear; c delivered m1 flagged; c delivered m1 flagged", set()),
        ({}, "c delivered m1 clear; c delivered m1 flagged; c delivered m1 flagged", set()),
        ({"max_delivery_attempts": 1}, "p resend m1; c delivered m1 clear; c delivered m1 clear", set()),
        ({}, "broker expired m1; c delivered m1 clear", {"m1"}),
        ({}, "c delivered m1 clear; broker expired m1", set()),
    ],
)
def test_what_is_delivered_too_often_or_too_late_is_counted(
    settings: Mapping[str, object], text: str, expected: set[str], tmp_path: Path
) -> None:
    recorded = verify.read(write(events_of(f"p send m1; p confirmed m1; {text}"), tmp_path / "h.jsonl"))
    found = verify.examine(recorded, shipped(), shipped().configure("jms", settings))
    assert set(found.anomalies[Anomaly.OVER_DELIVERED].examples) == expected


@pytest.mark.parametrize(("excluded", "expected"), [(True, {"m1"}), (False, set())])
def test_a_rejected_message_that_is_delivered_is_a_ghost_where_the_system_excludes_it(
    excluded: bool,  # noqa: FBT001
    expected: set[str],
    tmp_path: Path,
) -> None:
    recorded = verify.read(write(events_of("p send m1; p rejected m1; c delivered m1 clear"), tmp_path / "h.jsonl"))
    configuration = shipped().configure("jms", {"rejection_excludes_delivery": excluded})
    found = verify.examine(recorded, shipped(), configuration)
    assert set(found.anomalies[Anomaly.GHOST].examples) == expected


def test_the_ends_of_a_history_exclude_guarantees_too(tmp_path: Path) -> None:
    text = "p send m1; p confirmed m1; broker dead_lettered m1; n drained"
    recorded = verify.read(write(events_of(text), tmp_path / "h.jsonl"))
    found = verify.examine(recorded, shipped(), shipped().configure("artemis"))
    assert found.ends["dead_lettered_unprocessed"] == 1
    result = verify.judge(found, {}, guarantees=shipped().guarantees)
    assert (result.guarantees["delivered_at_least_once"], result.guarantees["at_least_once"]) == (True, False)


SUBSCRIPTION = {"destination": "non_durable_subscription"}


@pytest.mark.parametrize("messages", [1, 2])
@pytest.mark.parametrize("fault", [Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS])
def test_a_non_durable_subscriber_misses_what_is_sent_while_it_is_away_and_a_durable_one_never(
    fault: Fault, messages: int
) -> None:
    away = asked("jms", SUBSCRIPTION, frozenset({fault}), messages)
    assert reached(away) == {"missed_undelivered", "missed_unprocessed"}
    assert not away.findings[Anomaly.LOSS].reachable, "JMS permits it"
    assert away.guarantees["delivered_at_least_once"] is False
    kept = asked("jms", {"destination": "durable_subscription"}, frozenset({fault}), messages)
    assert reached(kept) == set()
    assert kept.guarantees["at_least_once"] is True


def test_a_non_durable_subscriber_that_is_there_misses_nothing() -> None:
    assert reached(asked("jms", SUBSCRIPTION, frozenset(), 2)) == set()
    assert reached(asked("jms", SUBSCRIPTION, frozenset({Fault.PRODUCER_LINK_LOSS}), 2)) == set()


def test_what_it_missed_does_not_come_when_it_is_back(tmp_path: Path) -> None:
    """Without its row a message would wait in a subscription that has ended."""
    way = [event.label for event in asked("jms", SUBSCRIPTION).ends["missed_undelivered"].steps]
    assert way.index("missed(m1)") < way.index("consumer_link_up")
    spec = copy_of_spec(tmp_path)
    old = "          when: destination == 'non_durable_subscription' and sessions == 1"
    replace(spec, "machines/broker.yaml", (old, old.replace("sessions == 1", "sessions == 7")))
    waits = asked("jms", SUBSCRIPTION, specification=tables.load(spec))
    known = asked("jms", SUBSCRIPTION)
    assert waits.exploration.states > known.exploration.states
    assert waits.findings[Anomaly.DUPLICATE].reachable
    assert not known.findings[Anomaly.DUPLICATE].reachable


def test_a_shared_subscription_is_there_as_long_as_one_of_its_consumers() -> None:
    bounds = Bounds(faults=CRASH, max_faults=1, consumers=2)
    one_left = explore.check(shipped(), shipped().configure("jms", SUBSCRIPTION), bounds)
    assert not any(end.reachable for end in one_left.ends.values())
    bounds = Bounds(faults=CRASH, max_faults=2, consumers=2)
    none_left = explore.check(shipped(), shipped().configure("jms", SUBSCRIPTION), bounds)
    assert none_left.ends["missed_undelivered"].reachable
