"""close() of a consuming session: what it waits for, what it gives back, and how a broken connection differs."""

from collections.abc import Collection, Mapping

import pytest

from ackfsm.checking import explore
from ackfsm.checking.explore import Answer
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.terms import AckMode, Anomaly, Fault, InputError, Profile
from model_tests.support.tables import shipped

CLOSE = frozenset({"consumer_close"})
BREAKS = frozenset({Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS})


def system(settings: Mapping[str, object], bounds: Bounds, monitor: str | None = None) -> Network:
    spec = shipped()
    observers = None if monitor is None else [(monitor, spec.monitors[monitor])]
    return compose(spec, spec.configure("jms", dict(settings)), bounds, observers)


def asked(settings: Mapping[str, object], bounds: Bounds, profile: str = "jms") -> Answer:
    """What ``check`` says; a search that ends at a limit is no answer."""
    answer = explore.check(shipped(), shipped().configure(profile, dict(settings)), bounds, max_states=1_000_000)
    assert answer.exploration.complete
    return answer


def reached(answer: Answer) -> set[Anomaly]:
    """The anomalies that can happen."""
    return {anomaly for anomaly, finding in answer.findings.items() if finding.reachable}


def watched(monitor: str, settings: Mapping[str, object], faults: Collection[Fault] = ()) -> bool:
    """Whether a monitor is reached with one message."""
    bounds = Bounds(faults=frozenset(faults), max_faults=1, actions=CLOSE)
    exploration = explore.explore(system(settings, bounds, monitor))
    assert exploration.complete
    return monitor in exploration.witnesses


def after(network: Network, *labels: str) -> dict[str, str] | None:
    """The states, by machine, after these events; ``None`` as soon as one is refused."""
    events, state = {event.label: event for event in network.events}, network.initial
    for label in labels:
        step = network.step(state, events[label])
        if step is None:
            return None
        state = step
    return dict(zip((instance.label for instance in network.instances), state, strict=True))


DELIVERED = ["send(m1)", "accept(m1)", "dispatch_first(m1)", "arrive(m1)", "delivered_clear(m1)"]


@pytest.mark.parametrize(
    "mode", ["AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "DUPS_OK_ACKNOWLEDGE", "SESSION_TRANSACTED"]
)
def test_close_waits_for_a_listener_and_not_for_an_application_that_received(mode: str) -> None:
    assert not watched("closed_under_its_listener", {"ack_mode": mode}, faults=[*BREAKS, Fault.LISTENER_EXCEPTION])
    assert watched("closed_under_its_listener", {"ack_mode": mode, "consumption": "receive"})


@pytest.mark.parametrize(
    ("waits", "rest"),
    [
        (False, ["settle"]),
        (True, ["settle", "write_ack_record", "sync_ack_record", "confirm_acknowledgement", "acknowledged"]),
    ],
)
def test_auto_acknowledge_settles_what_the_listener_completed_before_the_session_is_closed(
    rest: list[str], *, waits: bool
) -> None:
    """Where the library waits for the broker's answer, close() waits for that too."""
    settings = {"ack_mode": "AUTO_ACKNOWLEDGE", "block_on_acknowledge": waits}
    network = system(settings, Bounds(actions=CLOSE))
    assert after(network, *DELIVERED, "consumer_close") is None
    way = [*DELIVERED, "processed(m1)", "acknowledge(m1)"]
    assert after(network, *way[:-1], "consumer_close") is None
    for step in rest:
        assert after(network, *way, "consumer_close") is None
        way.append(f"{step}(m1)")
    assert after(network, *way, "consumer_close") is not None
    assert not watched("completed_and_closed", settings, faults=BREAKS)
    assert watched("completed_and_closed", {"ack_mode": "CLIENT_ACKNOWLEDGE"})


def test_what_is_closed_gives_back_its_messages_and_drops_what_it_had_prefetched() -> None:
    """After a broken connection the library may still deliver that; after close() it cannot."""
    bounds = Bounds(actions=CLOSE, faults=BREAKS)
    network = system({"ack_mode": "CLIENT_ACKNOWLEDGE"}, bounds)
    closed = after(network, *DELIVERED[:4], "consumer_close")
    assert closed is not None
    assert (closed["delivery(m1)"], closed["entry(m1)"], closed["consumer_link"]) == ("absent", "ready", "down")
    assert after(network, *DELIVERED[:4], "consumer_close", "delivered_clear(m1)") is None
    assert after(network, *DELIVERED[:4], "consumer_link_loss", "delivered_clear(m1)") is not None


def test_a_message_of_a_closed_session_cannot_be_acknowledged() -> None:
    network = system({"ack_mode": "CLIENT_ACKNOWLEDGE"}, Bounds(actions=CLOSE, faults=BREAKS))
    way = [*DELIVERED, "processed(m1)"]
    assert after(network, *way, "consumer_close", "acknowledge(m1)") is None
    lost = after(network, *way, "consumer_link_loss", "acknowledge(m1)")
    assert lost is not None, "the application may not know yet that the connection is gone"


def test_an_acknowledgement_on_its_way_is_settled_first() -> None:
    settings = {"ack_mode": "CLIENT_ACKNOWLEDGE", "block_on_acknowledge": False}
    network = system(settings, Bounds(actions=CLOSE, faults=BREAKS))
    way = [*DELIVERED, "processed(m1)", "acknowledge(m1)"]
    assert after(network, *way, "consumer_close") is None
    settled = after(network, *way, "settle(m1)", "consumer_close")
    assert settled is not None
    assert settled["entry(m1)"] == "removed"
    lost = after(network, *way, "consumer_link_loss")
    assert lost is not None
    assert lost["entry(m1)"] == "ready"


@pytest.mark.parametrize("consumption", ["listener", "receive"])
@pytest.mark.parametrize("mode", AckMode)
def test_close_alone_loses_nothing_and_repeats_nothing_unflagged(mode: AckMode, consumption: str) -> None:
    settings = {"ack_mode": mode, "consumption": consumption}
    answer = asked(settings, Bounds(messages=2, max_faults=0, actions=CLOSE))
    assert answer.keeps_promises
    lost = {Anomaly.LOSS} & reached(answer)
    assert lost == ({Anomaly.LOSS} if mode == AckMode.NO_ACKNOWLEDGE else set()), (
        "the broker has forgotten what it sent"
    )
    assert reached(answer) - lost <= {Anomaly.DUPLICATE, Anomaly.REPROCESSED}


def test_a_subscriber_that_is_not_durable_misses_what_is_sent_while_its_session_is_closed() -> None:
    def missed(destination: str) -> bool:
        network = system({"destination": destination}, Bounds(max_faults=0, actions=CLOSE), "missed_undelivered")
        return "missed_undelivered" in explore.explore(network).witnesses

    assert missed("non_durable_subscription")
    assert not missed("durable_subscription")


@pytest.mark.parametrize("profile", Profile)
def test_close_breaks_no_promise_of_any_system(profile: Profile) -> None:
    for settings in ({}, {"ack_mode": "CLIENT_ACKNOWLEDGE"}, {"ack_mode": "SESSION_TRANSACTED"}):
        try:
            answer = asked(settings, Bounds(max_faults=1, faults=BREAKS, actions=CLOSE), profile)
        except InputError:
            continue
        assert answer.keeps_promises, settings


def test_two_consumers_of_one_session_are_closed_together() -> None:
    network = system({"ack_mode": "CLIENT_ACKNOWLEDGE"}, Bounds(consumers=2, one_session=True, actions=CLOSE))
    assert [event.label for event in network.events if event.name == "consumer_close"] == ["consumer_close"]
    apart = system({"ack_mode": "CLIENT_ACKNOWLEDGE"}, Bounds(consumers=2, actions=CLOSE))
    labels = [event.label for event in apart.events if event.name == "consumer_close"]
    assert labels == ["consumer_close(c1)", "consumer_close(c2)"]
