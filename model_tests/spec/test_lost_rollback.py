"""rollback() and recover() are one step: if their frame is lost, the broker has what they would have left."""

from collections.abc import Iterator

import pytest

from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.terms import Fault, Profile
from model_tests.support.tables import shipped

OF_THE_BROKER = {"entry", "record", "ack_record", "redelivery", "output", "prefetch", "transaction_credit"}
"""What a rollback moves at the broker, but for `delivery_attempts`: a failure of the client counts as an attempt."""


def states(network: Network) -> Iterator[tuple[str, ...]]:
    """Every reachable state, found step by step in the tables."""
    found, waiting = {network.initial}, [network.initial]
    while waiting:
        state = waiting.pop()
        yield state
        for event in network.events:
            after = network.step(state, event)
            if after is not None and after not in found:
                found.add(after)
                waiting.append(after)


def compared(profile: Profile, call: str, mode: str) -> tuple[int, set[tuple[str, str, str]]]:
    """In how many states ``call`` is possible, and what a lost connection leaves otherwise: machine, states."""
    spec = shipped()
    actions = frozenset({"recover", "forward"}) if call == "recover" else frozenset({"forward"})
    faults = frozenset({Fault.CONSUMER_LINK_LOSS, Fault.LISTENER_EXCEPTION, Fault.BROKER_KILL})
    bounds = Bounds(faults=faults, max_faults=2 if call == "recover" else 3, actions=actions)
    chosen = {"ack_mode": mode}
    if mode == "SESSION_TRANSACTED":
        chosen["listener_exception"] = "next_message"
    network = compose(spec, spec.configure(profile, chosen), bounds, [])
    events = {event.name: event for event in network.events}
    calls, otherwise = 0, set()
    for state in states(network):
        called = network.step(state, events[call])
        lost = network.step(state, events["consumer_link_loss"])
        if called is None or lost is None:
            continue
        calls += 1
        for instance, left, gone in zip(network.instances, called, lost, strict=True):
            if instance.fsm.name in OF_THE_BROKER and left != gone:
                otherwise.add((instance.fsm.name, left, gone))
    return calls, otherwise


@pytest.mark.parametrize(
    ("call", "mode"),
    [
        ("consumer_rollback", "SESSION_TRANSACTED"),
        ("recover", "CLIENT_ACKNOWLEDGE"),
        ("recover", "AUTO_ACKNOWLEDGE"),
    ],
)
@pytest.mark.parametrize("profile", [Profile.JMS, Profile.ARTEMIS, Profile.EMS])
def test_what_a_lost_rollback_leaves_at_the_broker_is_what_a_rollback_leaves(
    profile: Profile, call: str, mode: str
) -> None:
    """So a frame of its own could commit nothing and lose nothing that a broken connection does not.

    Only the mark of what no application has had differs where it is made of the count of attempts: as that count, it is
    taken back by a rollback, and stays where the client failed.  A recovery counts the first of what it gives back, so
    that the tables leave open which it is.
    """
    calls, otherwise = compared(profile, call, mode)
    assert calls > 0
    left = "clear" if call == "consumer_rollback" else "counted_or_not"
    assert otherwise == ({("redelivery", left, "marked")} if profile is Profile.ARTEMIS else set())


def test_a_commit_is_not_what_a_broken_connection_is() -> None:
    """Which is why that one has a frame."""
    spec = shipped()
    bounds = Bounds(faults=frozenset({Fault.CONSUMER_LINK_LOSS}))
    network = compose(spec, spec.configure("jms", {"ack_mode": "SESSION_TRANSACTED"}), bounds, [])
    events = {event.name: event for event in network.events}
    entry = next(i for i, instance in enumerate(network.instances) if instance.fsm.name == "entry")
    ends = {
        (committed[entry], lost[entry])
        for state in states(network)
        if (committed := network.step(state, events["execute_consumer_commit"])) is not None
        and (lost := network.step(state, events["consumer_link_loss"])) is not None
    }
    assert ends == {("removed", "ready")}
