"""A duplicate that the broker finds in a transaction: the whole of it is ignored, or the duplicate alone is dropped."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from ackfsm.checking import explore
from ackfsm.checking.explore import Interpreter
from ackfsm.checking.network import Bounds, compose
from ackfsm.terms import Anomaly, Fault, Profile
from model_tests.support.tables import shipped

REPEATED: dict[str, object] = {
    "ack_mode": "SESSION_TRANSACTED",
    "duplicate_detection": True,
    "resend_in_doubt": True,
}
COMMIT = ("execute_commit", "write_commit", "sync_commit")
FIRST = ("send_in_transaction(m1)", "accept(m1)", "postpone(m2)", "commit_called", *COMMIT)
"""The first transaction has one message, and the broker has stored it."""

IN_DOUBT = ("producer_link_loss", "commit_failed", "producer_link_up")


def bounds(messages: int = 2, actions: Collection[str] = ("postpone",)) -> Bounds:
    return Bounds(
        messages=messages, faults=frozenset({Fault.PRODUCER_LINK_LOSS}), max_faults=None, actions=frozenset(actions)
    )


def perform(profile: str, steps: Collection[str]) -> Interpreter:
    """The system after these steps, each of which has to be possible."""
    runner = Interpreter(compose(shipped(), shipped().configure(profile, REPEATED), bounds()))
    for step in steps:
        runner.fire(step)
    return runner


def entry(runner: Interpreter, message: str) -> str:
    """Where the first copy of a message is at the broker."""
    labels = [instance.label for instance in runner.network.instances]
    return runner.state[labels.index(f"entry({message})")]


@pytest.mark.parametrize(
    "second",
    [
        ("resend(m1)", "discard_duplicate(m1#2)", "send_in_transaction(m2)", "accept(m2)", "commit_called"),
        ("send_in_transaction(m2)", "accept(m2)", "resend(m1)", "discard_duplicate(m1#2)", "commit_called"),
        ("send_in_transaction(m2)", "accept(m2)", "resend(m1)", "commit_called", "discard_duplicate(m1#2)"),
    ],
    ids=["before", "behind", "behind the commit"],
)
def test_a_message_beside_a_duplicate_is_dropped_with_it(second: tuple[str, ...]) -> None:
    runner = perform("artemis", (*FIRST, *IN_DOUBT, *second))
    assert "execute_commit" not in {event.label for event in runner.enabled()}
    for step in ("execute_rollback", "rollback_returned"):
        runner.fire(step)
    assert (entry(runner, "m1"), entry(runner, "m2")) == ("ready", "discarded")
    beside = perform("jms", (*FIRST, *IN_DOUBT, *second, *COMMIT))
    assert (entry(beside, "m1"), entry(beside, "m2")) == ("ready", "ready")


def test_a_duplicate_in_the_next_transaction_does_not_doom_the_one_after_it() -> None:
    second = ("resend(m1)", "discard_duplicate(m1#2)", "commit_called", "execute_rollback", "rollback_returned")
    third = ("send_in_transaction(m2)", "accept(m2)", "commit_called", *COMMIT)
    runner = perform("artemis", (*FIRST, *IN_DOUBT, *second, *third))
    assert entry(runner, "m2") == "ready"


@pytest.mark.parametrize("dooms", [False, True])
@pytest.mark.parametrize("messages", [1, 2])
def test_a_commit_in_doubt_that_is_repeated_makes_no_duplicate(messages: int, *, dooms: bool) -> None:
    settings = REPEATED | {"duplicate_dooms_transaction": dooms}
    configuration = shipped().configure("artemis", settings)
    answer = explore.check(shipped(), configuration, bounds(messages))
    assert answer.exploration.complete
    assert {anomaly for anomaly, finding in answer.findings.items() if finding.reachable} == set()
    answer = explore.check(
        shipped(), shipped().configure("artemis", settings | {"duplicate_detection": False}), bounds(messages)
    )
    assert answer.findings[Anomaly.UNFLAGGED_DUPLICATE].reachable


def test_outside_a_transaction_the_duplicate_alone_is_dropped_and_answered() -> None:
    plain = {"duplicate_detection": True, "resend_in_doubt": True}
    found = [
        explore.check(
            shipped(),
            shipped().configure("artemis", plain | {"duplicate_dooms_transaction": dooms}),
            bounds(2, ()),
        ).exploration
        for dooms in (False, True)
    ]
    assert (found[0].states, found[0].transitions) == (found[1].states, found[1].transitions)


@pytest.mark.parametrize("profile", Profile)
def test_it_is_what_artemis_does(profile: Profile) -> None:
    assert shipped().configure(profile).duplicate_dooms_transaction is (profile is Profile.ARTEMIS)
