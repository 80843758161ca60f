"""An outcome in a transaction: it counts when the transaction commits, and a rollback forgets it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
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

TRANSACTED = {"ack_mode": "SESSION_TRANSACTED", "resend_in_doubt": False}
AMQP_1 = {**TRANSACTED, "outcomes": "undeliverable", "transacted_outcomes": True, "rollback_requeues": False}
SETTLES = frozenset({"settle_released", "settle_failed", "settle_undeliverable", "settle_rejected"})
TAKEN = {
    "settle_released": "taken_released",
    "settle_failed": "taken_failed",
    "settle_undeliverable": "taken_undeliverable",
    "settle_rejected": "rejected_to_dead_letters",
}
WRONG = {Anomaly.LOSS, Anomaly.STUCK, Anomaly.REORDER, Anomaly.GHOST, Anomaly.PREFETCH_OVERRUN, Anomaly.OVER_DELIVERED}

KEPT = {"attempts_exhausted": "dead_letter", "release_counts": False}
"""As RabbitMQ since 4.3 with a dead-letter exchange."""


def network(
    profile: str,
    chosen: Mapping[str, object],
    *faults: Fault,
    messages: int = 2,
    actions: Collection[str] = SETTLES,
    spec: Specification | None = None,
) -> Network:
    spec = spec or shipped()
    bounds = Bounds(
        messages=messages, faults=frozenset(faults), max_faults=1 if faults else 0, actions=frozenset(actions)
    )
    return compose(spec, spec.configure(profile, {**KEPT, **chosen}), bounds)


def delivered(system: Interpreter, *messages: str) -> None:
    """All are sent and committed, and are delivered one after another; the last one is being processed."""
    for message in messages:
        system.fire(f"send_in_transaction({message})")
        system.fire(f"accept({message})")
    for step in ("commit_called", "execute_commit"):
        system.fire(step)
    for name in ("write_commit", "sync_commit"):
        if name in {event.label for event in system.enabled()}:
            system.fire(name)
    for message in messages:
        for step in ("dispatch_first", "arrive", "delivered_clear"):
            system.fire(f"{step}({message})")
        if message != messages[-1]:
            system.fire(f"processed({message})")


@pytest.mark.parametrize(
    ("profile", "settles"),
    [("jms", settles) for settles in TAKEN]
    + [("rabbitmq", f"settle_{each}") for each in ("released", "failed", "rejected")],
)
def test_it_takes_effect_when_the_transaction_commits(profile: str, settles: str) -> None:
    taken = TAKEN[settles]
    system = Interpreter(network(profile, AMQP_1 if profile == "jms" else TRANSACTED))
    delivered(system, "m1", "m2")
    system.fire("acknowledge(m1)")
    system.fire(f"{settles}(m2)")
    system.fire("settle(m1)")
    with pytest.raises(Refused, match="takes effect as that commits"):
        system.fire(f"{taken}(m2)")
    system.fire("consumer_commit_called")
    with pytest.raises(Refused, match="the outcome is before the commit"):
        system.fire("execute_consumer_commit")
    system.fire("enlist_outcome(m2)")
    with pytest.raises(Refused):
        system.fire(f"{taken}(m2)")
    system.fire("execute_consumer_commit")
    with pytest.raises(Refused, match="applies the outcomes of its transaction first"):
        system.fire("confirm_consumer_commit")
    system.fire(f"{taken}(m2)")


@pytest.mark.parametrize("requeues", [False, True])
@pytest.mark.parametrize("profile", ["rabbitmq", "jms"])
def test_a_rollback_forgets_it(profile: str, *, requeues: bool) -> None:
    """AMQP 1.0 and tx.rollback leave the message with the consumer, where the broker does not requeue it."""
    chosen = {**(AMQP_1 if profile == "jms" else TRANSACTED), "rollback_requeues": requeues}
    chosen["listener_exception"] = "next_message"
    system = Interpreter(network(profile, chosen, Fault.LISTENER_EXCEPTION))
    delivered(system, "m1", "m2")
    for step in ("settle_rejected(m1)", "enlist_outcome(m1)", "listener_exception(m2)", "consumer_rollback"):
        system.fire(step)
    with pytest.raises(Refused):
        system.fire("rejected_to_dead_letters(m1)")
    if not requeues:
        with pytest.raises(Refused):
            system.fire("dispatch_again(m1)")
        system.fire("consumer_recover")
    system.fire("dispatch_again(m1)")


def test_it_is_lost_with_its_channel() -> None:
    system = Interpreter(network("rabbitmq", TRANSACTED, Fault.CONSUMER_LINK_LOSS, messages=1))
    delivered(system, "m1")
    for step in ("settle_rejected(m1)", "enlist_outcome(m1)", "consumer_link_loss", "consumer_link_up"):
        system.fire(step)
    system.fire("dispatch_again(m1)")


def test_a_commit_and_its_outcomes_are_one_step() -> None:
    system = Interpreter(network("rabbitmq", TRANSACTED, Fault.CONSUMER_LINK_LOSS, messages=1))
    delivered(system, "m1")
    for step in ("settle_rejected(m1)", "enlist_outcome(m1)", "consumer_commit_called", "execute_consumer_commit"):
        system.fire(step)
    with pytest.raises(Refused, match="executes a commit in one step"):
        system.fire("consumer_link_loss")


@pytest.mark.parametrize("action", sorted(SETTLES))
def test_nothing_goes_wrong_that_did_not_without_it(action: str) -> None:
    for profile, chosen in (("rabbitmq", TRANSACTED), ("jms", AMQP_1)):
        limited = {**chosen, "prefetch": 1, "max_delivery_attempts": 2}
        faults = (Fault.CONSUMER_LINK_LOSS, Fault.LISTENER_EXCEPTION)
        found = explore.explore(network(profile, limited, *faults, messages=1, actions={action}))
        assert found.complete
        assert not WRONG & found.witnesses.keys()


def test_the_attempts_are_those_of_the_outcome_that_was_committed() -> None:
    """A release that is rolled back counts no attempt less."""
    limited = {**TRANSACTED, "max_delivery_attempts": 2}
    for action, uses_up in (("settle_released", False), ("settle_failed", True)):
        found = explore.explore(network("rabbitmq", limited, messages=1, actions={action}))
        assert ("dead_lettered_unprocessed" in found.witnesses) is uses_up
        rolled_back = explore.explore(
            network("rabbitmq", limited, Fault.LISTENER_EXCEPTION, messages=1, actions={action})
        )
        assert Anomaly.OVER_DELIVERED not in rolled_back.witnesses


@pytest.mark.parametrize("profile", sorted(set(Profile) - {Profile.JMS, Profile.RABBITMQ}))
def test_other_systems_have_none(profile: Profile) -> None:
    assert shipped().supported_values(profile, "transacted_outcomes") == (False,)
    with pytest.raises(InputError, match="transacted_outcomes"):
        shipped().configure(profile, {"transacted_outcomes": True})


def test_solace_ignores_on_a_transacted_session_which_outcomes_a_flow_asks_for() -> None:
    with pytest.raises(InputError, match="a flow of a transacted session ignores which outcomes it asks for"):
        shipped().configure("solace", {**TRANSACTED, "transacted_outcomes": True})
    alone = explore.explore(network("solace", {**TRANSACTED, "publish_window": 1}, messages=1, actions=())).states
    asked = explore.explore(network("solace", {**TRANSACTED, "publish_window": 1}, messages=1)).states
    assert asked == alone


_IN_FLIGHT = (
    '      execute_consumer_commit: {refuse: "frames of one connection arrive in their order, and the '
    'outcome is before the commit"}\n'
    "      consumer_link_loss:\n"
    "        - {ignore: the session at the broker goes on, when: consumer_reattachment, "
    "source: ART client-reconnection}\n"
    "        - {to: disconnected, because: the frame is lost with its connection, source: model}\n"
    "      consumer_session_lost, consumer_crash, broker_crash, broker_kill, journal_failure:\n"
    "        {to: disconnected, because: the frame is lost with its connection, source: model}\n"
    "    released_in_transaction:"
)
_READ = (
    "      rejected_to_dead_letters, rejected_and_destroyed:\n"
    "        - refuse: it is part of a transaction and takes effect as that commits\n"
    "          when: settles_in_transaction\n"
)

MUTANTS = {
    "the broker rejects as it reads": (
        "machines/consumer.yaml",
        _READ,
        _READ.replace("settles_in_transaction", "settles_in_transaction and outcomes == 'rejected'"),
        ("settle_rejected(m1)", "rejected_to_dead_letters(m1)"),
    ),
    "a commit overtakes an outcome of its transaction": (
        "machines/consumer.yaml",
        _IN_FLIGHT,
        _IN_FLIGHT.replace("refuse", "ignore"),
        ("settle_rejected(m1)", "consumer_commit_called", "execute_consumer_commit"),
    ),
    "the link breaks between a commit and its outcomes": (
        "machines/consumer.yaml",
        "        {refuse: the broker executes a commit in one step}\n    settlement_due:",
        "        {to: disconnected, because: the link is gone, source: model}\n    settlement_due:",
        (
            "settle_rejected(m1)",
            "enlist_outcome(m1)",
            "consumer_commit_called",
            "execute_consumer_commit",
            "consumer_link_loss",
        ),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_table_that_says_otherwise_is_noticed(name: str, tmp_path: Path) -> None:
    """Each of these runs is refused by the tables as they are, and possible with the mutant."""
    file, old, new, steps = MUTANTS[name]

    def runs(spec: Specification) -> bool:
        system = Interpreter(network("rabbitmq", TRANSACTED, Fault.CONSUMER_LINK_LOSS, spec=spec, messages=1))
        delivered(system, "m1")
        return can(system, *steps)

    assert not runs(shipped())
    changed = copy_of_spec(tmp_path)
    replace(changed, file, (old, new))
    assert runs(tables.load(changed))
