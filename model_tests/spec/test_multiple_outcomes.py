"""basic.nack with `multiple`: one frame gives back, or gives up, all that the channel was delivered up to its tag."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

import pytest

from ackfsm import tables
from ackfsm.checking import explore
from ackfsm.checking.explore import Interpreter, Refused
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Fault, InputError, Profile
from model_tests.support.spec.steps import can
from model_tests.support.tables import copy_of_spec, replace, shipped
from model_tests.support.whole import few

MULTIPLE = {"ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "outcome_scope": "up_to", "resend_in_doubt": False}
NACKS = frozenset({"settle_failed", "settle_released", "settle_rejected"})
TAKEN = {"settle_released": "taken_released", "settle_rejected": "rejected_to_dead_letters"}
WRONG = {Anomaly.LOSS, Anomaly.UNPROCESSED, Anomaly.STUCK, Anomaly.REORDER, Anomaly.GHOST, Anomaly.PREFETCH_OVERRUN}


def network(
    chosen: Mapping[str, object] = MULTIPLE, *faults: Fault, messages: int = 2, spec: Specification | None = None
) -> Network:
    spec = spec or shipped()
    bounds = Bounds(messages=messages, faults=frozenset(faults), max_faults=1 if faults else 0, actions=NACKS)
    return compose(spec, spec.configure("rabbitmq", {"attempts_exhausted": "dead_letter", **chosen}), bounds)


def all_delivered(system: Interpreter, *messages: str) -> None:
    """Each message is with the application, which has settled none."""
    for message in messages:
        for step in ("send", "accept", "dispatch_first", "arrive", "delivered_clear"):
            system.fire(f"{step}({message})")
        if message != messages[-1]:
            system.fire(f"processed({message})")


@pytest.mark.parametrize("mode", ["INDIVIDUAL_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE"])
@pytest.mark.parametrize(("nack", "taken"), TAKEN.items())
def test_it_covers_both_in_the_order_of_delivery(mode: str, nack: str, taken: str) -> None:
    system = Interpreter(network({**MULTIPLE, "ack_mode": mode}))
    all_delivered(system, "m1", "m2")
    system.fire(f"{nack}(m2)")
    with pytest.raises(Refused):
        system.fire("acknowledge(m1)")
    with pytest.raises(Refused, match="in the order in which it was delivered"):
        system.fire(f"{taken}(m2)")
    system.fire(f"{taken}(m1)")
    system.fire(f"{taken}(m2)")


def test_it_leaves_what_was_delivered_after_its_tag() -> None:
    system = Interpreter(network())
    all_delivered(system, "m1", "m2")
    system.fire("settle_released(m1)")
    with pytest.raises(Refused):
        system.fire("taken_released(m2)")
    system.fire("processed(m2)")
    system.fire("acknowledge(m2)")
    system.fire("taken_released(m1)")
    system.fire("settle(m2)")


def test_a_tag_counts_deliveries_and_not_messages() -> None:
    """The first message came again after the second one, so that its tag is the higher one."""
    system = Interpreter(network())
    all_delivered(system, "m1", "m2")
    for step in ("settle_failed(m1)", "processed(m2)", "taken_failed(m1)"):
        system.fire(step)
    for step in ("dispatch_again", "arrive", "delivered_flagged"):
        system.fire(f"{step}(m1)")
    system.fire("settle_released(m1)")
    for message in ("m1", "m2"):
        system.fire(f"taken_released({message})")


def test_three_messages_and_one_tag() -> None:
    system = Interpreter(network(messages=3))
    all_delivered(system, "m1", "m2", "m3")
    system.fire("settle_released(m2)")
    for message in ("m1", "m2"):
        system.fire(f"taken_released({message})")
    with pytest.raises(Refused):
        system.fire("taken_released(m3)")


@pytest.mark.parametrize("step", ["settle_failed", "acknowledge"])
def test_a_reject_and_an_ack_of_a_single_tag_leave_the_others(step: str) -> None:
    """basic.reject has no `multiple`; that of basic.ack is another flag (client_ack_scope)."""
    system = Interpreter(network())
    all_delivered(system, "m1", "m2")
    if step == "acknowledge":
        system.fire("processed(m2)")
    system.fire(f"{step}(m2)")
    system.fire("acknowledge(m1)")


@pytest.mark.parametrize(
    ("mode", "fault", "exception"),
    few(
        [
            *itertools.product(
                ["INDIVIDUAL_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE"],
                [Fault.CONSUMER_LINK_LOSS, Fault.LISTENER_EXCEPTION],
                ["redeliver", "next_message", "swallow"],
            )
        ],
        4,
    ),
)
def test_nothing_more_is_lost_or_left_than_without_it(mode: str, fault: Fault, exception: str) -> None:
    """Where the application goes on after an exception, what failed may stay or be acknowledged with another."""
    chosen = {**MULTIPLE, "ack_mode": mode, "listener_exception": exception}
    found, alone = (
        explore.explore(network({**chosen, "outcome_scope": scope}, fault)) for scope in ("up_to", "message")
    )
    assert found.complete
    assert alone.complete
    assert WRONG & found.witnesses.keys() == WRONG & alone.witnesses.keys()
    if exception == "redeliver" or fault is Fault.CONSUMER_LINK_LOSS:
        assert not WRONG & found.witnesses.keys()


@pytest.mark.parametrize("profile", sorted(set(Profile) - {Profile.JMS, Profile.RABBITMQ}))
def test_it_is_a_flag_of_amqp_0_9_1(profile: Profile) -> None:
    assert [value.value for value in shipped().supported_values(profile, "outcome_scope")] == ["message"]
    with pytest.raises(InputError, match="outcome_scope"):
        shipped().configure(profile, {"outcome_scope": "up_to"})


def test_without_it_every_outcome_is_of_one_message() -> None:
    assert not any(shipped().configure(profile).outcome_scope == "up_to" for profile in Profile)
    system = Interpreter(network({**MULTIPLE, "outcome_scope": "message"}))
    all_delivered(system, "m1", "m2")
    system.fire("settle_released(m2)")
    system.fire("acknowledge(m1)")


MUTANTS = {
    "a nack covers its own tag alone": (
        "conditions.yaml",
        "    outcome_scope == 'up_to' and outcomes in ('released', 'undeliverable')",
        "    outcome_scope == 'up_to' and outcomes == 'undeliverable'",
        ("settle_released(m2)", "acknowledge(m1)"),
    ),
    "the frame does not cover the first message": (
        "machines/consumer.yaml",
        "{to: released_with_later, when: outcomes_up_to, because: it gives back what was delivered before it",
        "{to: followed, when: outcomes_up_to, because: it gives back what was delivered before it",
        ("settle_released(m2)", "taken_released(m2)"),
    ),
    "the broker takes the later one first": (
        "machines/consumer.yaml",
        "taken_released(later): {refuse: what one frame gives back is taken in the order in which it was delivered",
        "taken_released(later): {ignore: what one frame gives back is taken in any order",
        ("settle_released(m2)", "taken_released(m2)"),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_table_that_says_otherwise_is_noticed(name: str, tmp_path: Path) -> None:
    """Each of these runs is refused by the tables as they are, and possible with the mutant."""
    file, old, new, steps = MUTANTS[name]

    def runs(spec: Specification) -> bool:
        system = Interpreter(network(spec=spec))
        all_delivered(system, "m1", "m2")
        return can(system, *steps)

    assert not runs(shipped())
    changed = copy_of_spec(tmp_path)
    replace(changed, file, (old, new))
    assert runs(tables.load(changed))
