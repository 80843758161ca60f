"""Subscriptions to a topic with several consumers: shared ones (JMS 2.0), which share their messages as queues do."""

import pytest

from ackfsm.checking import explore
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.terms import Fault
from model_tests.support.tables import shipped

BREAKS = frozenset({Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS})
SUBSCRIPTIONS = ["durable_subscription", "non_durable_subscription"]


def system(destination: str, bounds: Bounds, *monitors: str) -> Network:
    spec = shipped()
    observers = [(name, spec.monitors[name]) for name in monitors]
    return compose(spec, spec.configure("jms", {"destination": destination}), bounds, observers)


def reached(network: Network) -> set[str]:
    exploration = explore.explore(network)
    assert exploration.complete
    return set(exploration.witnesses)


@pytest.mark.parametrize("one_session", [False, True])
@pytest.mark.parametrize("destination", SUBSCRIPTIONS)
def test_each_message_of_a_shared_subscription_goes_to_one_of_its_consumers(
    destination: str, *, one_session: bool
) -> None:
    bounds = Bounds(messages=2, consumers=2, one_session=one_session, max_faults=0)
    assert reached(system(destination, bounds, "delivered_to_two", "completed_by_two")) == {"delivered_to_two"}
    broken = Bounds(consumers=2, one_session=one_session, faults=BREAKS, max_faults=1)
    ends = destination == "non_durable_subscription" and one_session
    assert reached(system(destination, broken, "completed_by_two")) == (set() if ends else {"completed_by_two"}), (
        "one crashed with it, and with the last session its subscription ends, if it is not durable"
    )


@pytest.mark.parametrize("consumers", [1, 2])
def test_a_durable_subscription_is_a_queue_of_as_many_consumers(consumers: int) -> None:
    bounds = Bounds(messages=2, consumers=consumers, faults=BREAKS)
    queue, subscription = (system(name, bounds) for name in ("queue", "durable_subscription"))
    assert subscription.events == queue.events
    assert [(one.label, one.fsm) for one in subscription.instances] == [(one.label, one.fsm) for one in queue.instances]
    assert [one.fsm for one in system("non_durable_subscription", bounds).instances] != [
        one.fsm for one in queue.instances
    ]


def test_a_shared_subscription_that_is_not_durable_misses_what_is_sent_while_all_its_consumers_are_away() -> None:
    network = system("non_durable_subscription", Bounds(consumers=2, faults=BREAKS, max_faults=2))
    events = {event.label: event for event in network.events}

    def misses(*away: str) -> bool:
        state = network.initial
        for label in [*away, "send(m1)", "accept(m1)"]:
            after = network.step(state, events[label])
            assert after is not None
            state = after
        return network.step(state, events["missed(m1)"]) is not None

    assert not misses()
    assert not misses("consumer_crash(c1)")
    assert misses("consumer_crash(c1)", "consumer_link_loss(c2)")
    assert not misses("consumer_link_loss(c1)", "consumer_link_loss(c2)", "consumer_link_up(c1)")


def test_only_a_subscription_that_is_not_durable_misses_anything() -> None:
    bounds = Bounds(consumers=2, faults=BREAKS, max_faults=2)
    assert reached(system("non_durable_subscription", bounds, "missed_undelivered")) == {"missed_undelivered"}
    assert reached(system("durable_subscription", bounds, "missed_undelivered")) == set()
