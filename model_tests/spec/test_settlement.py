"""The settling modes of an AMQP 1.0 receiver: who forgets a delivery first, and what a broken link leaves in doubt."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from ackfsm import tables
from ackfsm.checking import explore
from ackfsm.checking.explore import Answer, Interpreter, Refused
from ackfsm.checking.network import Bounds, compose
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Fault, InputError, Profile
from model_tests.support.spec.steps import can, reached
from model_tests.support.tables import copy_of_spec, replace, shipped

SETTLES = frozenset({"settle_released", "settle_failed", "settle_undeliverable", "settle_rejected"})
SECOND: dict[str, object] = {
    "ack_mode": "INDIVIDUAL_ACKNOWLEDGE",
    "outcomes": "undeliverable",
    "receiver_settles": "second",
    "block_on_acknowledge": False,
}
RESUMED = SECOND | {"consumer_reattachment": True}
FIRST = SECOND | {"receiver_settles": "first"}
SENT = ("send", "accept", "write_record", "sync_record", "confirm", "confirmed")
LOSS = Fault.CONSUMER_LINK_LOSS
TAKEN = {
    "settle_released": "taken_released",
    "settle_failed": "taken_failed",
    "settle_undeliverable": "taken_undeliverable",
    "settle_rejected": "rejected_to_dead_letters",
}


def running(
    chosen: Mapping[str, object] = SECOND, *, messages: int = 1, spec: Specification | None = None
) -> Interpreter:
    """Every message is with the application, which has processed all but the last one; one link may break."""
    spec = spec or shipped()
    bounds = Bounds(messages=messages, faults=frozenset({LOSS}), max_faults=1, actions=SETTLES)
    system = Interpreter(compose(spec, spec.configure("jms", chosen), bounds))
    for number in range(1, messages + 1):
        for step in (*SENT, "dispatch_first", "arrive", "delivered_clear"):
            system.fire(f"{step}(m{number})")
        if number < messages:
            system.fire(f"processed(m{number})")
    return system


def asked(
    chosen: Mapping[str, object],
    faults: Collection[Fault] = (LOSS,),
    *,
    messages: int = 1,
    actions: Collection[str] = (),
) -> Answer:
    bounds = Bounds(
        messages=messages,
        faults=frozenset(faults),
        max_faults=1 if messages > 1 else None,
        actions=frozenset(actions),
    )
    answer = explore.check(shipped(), shipped().configure("jms", chosen), bounds)
    assert answer.exploration.complete
    return answer


def test_the_receiver_forgets_when_the_sender_has_settled() -> None:
    system = running()
    system.fire("processed(m1)")
    system.fire("acknowledge(m1)")
    for step in ("settle", "write_ack_record", "sync_ack_record", "confirm_acknowledgement", "acknowledged"):
        system.fire(f"{step}(m1)")
    first = running(FIRST)
    assert can(first, "processed(m1)", "acknowledge(m1)", "settle(m1)")
    assert not can(first, "write_ack_record(m1)", "sync_ack_record(m1)", "confirm_acknowledgement(m1)")


@pytest.mark.parametrize(("settles", "taken"), TAKEN.items())
def test_every_outcome_is_settled_by_the_sender(settles: str, taken: str) -> None:
    system = running()
    for step in (settles, taken):
        system.fire(f"{step}(m1)")
    if settles == "settle_rejected":
        for waits_for, step in (("write", "write_ack_record"), ("sync", "sync_ack_record")):
            with pytest.raises(Refused, match=f"the response waits for the {waits_for}"):
                system.fire("confirm_outcome(m1)")
            system.fire(f"{step}(m1)")
    else:
        with pytest.raises(Refused):
            system.fire("dispatch_again(m1)")
    system.fire("confirm_outcome(m1)")
    system.fire("outcome_confirmed(m1)")
    assert not can(running(FIRST), f"{settles}(m1)", f"{taken}(m1)", "confirm_outcome(m1)")


def test_the_application_goes_on_while_a_delivery_is_unsettled() -> None:
    """Other than with an acknowledgement that blocks."""
    blocking = SECOND | {"block_on_acknowledge": True}
    for chosen, goes_on in ((SECOND, True), (blocking, False)):
        bounds = Bounds(messages=2, faults=frozenset())
        system = Interpreter(compose(shipped(), shipped().configure("jms", chosen), bounds))
        for message in ("m1", "m2"):
            for step in (*SENT, "dispatch_first", "arrive"):
                system.fire(f"{step}({message})")
        for step in ("delivered_clear(m1)", "processed(m1)", "acknowledge(m1)"):
            system.fire(step)
        assert can(system, "delivered_clear(m2)") is goes_on


@pytest.mark.parametrize("arrived", [False, True])
def test_whether_it_comes_again_is_decided_by_whether_the_outcome_arrived(*, arrived: bool) -> None:
    """To the receiver both are in doubt."""
    system = running()
    system.fire("processed(m1)")
    system.fire("acknowledge(m1)")
    if arrived:
        system.fire("settle(m1)")
    system.fire("consumer_link_loss")
    with pytest.raises(Refused, match="first tells what is in doubt"):
        system.fire("consumer_link_up")
    system.fire("ack_in_doubt(m1)")
    system.fire("consumer_link_up")
    assert can(system, "dispatch_again(m1)") is not arrived


@pytest.mark.parametrize("lost", ["acknowledge", "settle", "confirm_acknowledgement"])
def test_a_link_that_is_resumed_loses_none_of_the_three_frames(lost: str) -> None:
    system = running(RESUMED)
    system.fire("processed(m1)")
    steps = ["acknowledge", "settle", "write_ack_record", "sync_ack_record", "confirm_acknowledgement", "acknowledged"]
    for step in steps:
        system.fire(f"{step}(m1)")
        if step == lost:
            system.fire("consumer_link_loss")
            with pytest.raises(Refused, match="waits for the session to be re-attached"):
                system.fire("ack_in_doubt(m1)")
            system.fire("consumer_reattached")


def test_what_comes_of_it() -> None:
    assert reached(asked(SECOND)) == {Anomaly.DUPLICATE, Anomaly.REPROCESSED}
    assert reached(asked(FIRST)) == {Anomaly.DUPLICATE, Anomaly.REPROCESSED}
    assert reached(asked(RESUMED)) == set()
    assert reached(asked(RESUMED, messages=2)) == set()


def test_it_is_a_blocking_acknowledgement_for_who_waits() -> None:
    """The same states, since the call returns when the sender has settled."""
    blocking = {"block_on_acknowledge": True}
    second, first = (asked(mode | blocking, tuple(Fault)).exploration for mode in (SECOND, FIRST))
    assert (second.states, second.transitions) == (first.states, first.transitions)


@pytest.mark.parametrize("mode", ["SESSION_TRANSACTED", "PRE_ACKNOWLEDGE", "NO_ACKNOWLEDGE", "DUPS_OK_ACKNOWLEDGE"])
def test_modes_that_state_no_outcome_by_themselves_are_as_before(mode: str) -> None:
    second, first = (asked({**each, "ack_mode": mode}, tuple(Fault)).exploration for each in (SECOND, FIRST))
    assert (second.states, second.transitions) == (first.states, first.transitions)


@pytest.mark.parametrize("profile", sorted(set(Profile) - {Profile.JMS}))
def test_no_client_here_attaches_a_receiver_so(profile: Profile) -> None:
    assert [value.value for value in shipped().supported_values(profile, "receiver_settles")] == ["first"]
    with pytest.raises(InputError, match="receiver_settles"):
        shipped().configure(profile, {"receiver_settles": "second"})


ACKNOWLEDGED = ("processed(m1)", "acknowledge(m1)")
UNSETTLED = (
    "    dispatch_first, dispatch_again: {refuse: the session has still to do with an earlier delivery of this copy}\n"
    "    delivered_clear, delivered_flagged: {refuse: the application has it already}"
)
NOT_WRITTEN = (
    "      confirm_acknowledgement, confirm_outcome:\n        - to: unwritten\n          when: answer_waits_for_nothing"
)
MUTANTS = {
    "the sender settles what it has not stored": (
        "machines/journal.yaml",
        NOT_WRITTEN,
        f"{NOT_WRITTEN} or receiver_settles == 'second'",
        (*ACKNOWLEDGED, "settle(m1)", "confirm_acknowledgement(m1)"),
    ),
    "the receiver forgets what is in doubt without a word": (
        "machines/consumer.yaml",
        "      consumer_link_up: {refuse: the library first tells what is in doubt on the broken connection}",
        "      consumer_link_up: {to: none, because: a new session begins, source: model}",
        (*ACKNOWLEDGED, "consumer_link_loss", "consumer_link_up"),
    ),
    "the receiver is sent again what the sender has not settled yet": (
        "machines/consumer.yaml",
        UNSETTLED,
        UNSETTLED.replace("refuse", "ignore", 1),
        ("settle_failed(m1)", "taken_failed(m1)", "dispatch_again(m1)"),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_table_that_says_otherwise_is_noticed(name: str, tmp_path: Path) -> None:
    """Each of these runs is refused by the tables as they are, and possible with the mutant."""
    file, old, new, steps = MUTANTS[name]
    assert not can(running(), *steps)
    changed = copy_of_spec(tmp_path)
    replace(changed, file, (old, new))
    assert can(running(spec=tables.load(changed)), *steps)
