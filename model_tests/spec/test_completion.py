"""The callback of an asynchronous send: what closes or ends a transaction waits for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pytest

from ackfsm.checking import explore
from ackfsm.checking.explore.search.successors import Successors
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.terms import Anomaly, Fault, Profile
from model_tests.support.tables import shipped, unpacked
from model_tests.support.whole import WHOLE, few

TRANSACTED: dict[str, object] = {"ack_mode": "SESSION_TRANSACTED", "send_mode": "asynchronous"}
CALLBACKS = {"send_completed", "send_refused", "send_failed"}
FAULTS = (Fault.PRODUCER_LINK_LOSS, Fault.BROKER_KILL, Fault.REJECTION)


def network_of(  # noqa: PLR0913 - a system and its bounds
    settings: Mapping[str, object],
    *,
    profile: str = "jms",
    faults: Collection[Fault] = FAULTS,
    messages: int = 1,
    most: int = 2,
    actions: Collection[str] = ("producer_close", "rollback"),
) -> Network:
    """The system with these faults, twice at most, and nothing that watches it."""
    bounds = Bounds(messages=messages, faults=frozenset(faults), max_faults=most, actions=frozenset(actions))
    return compose(shipped(), shipped().configure(profile, dict(settings)), bounds, observers=())


def steps_of(network: Network) -> dict[tuple[str, ...], set[str]]:
    """The events that can happen in each state that is reached."""
    leads, every = Successors(explore.pack(network)), range(len(network.events))
    found: dict[tuple[str, ...], set[str]] = {}
    known, states = set[bytes](), leads.initial
    while len(states):
        for row, enabled in zip(states.tolist(), leads.enabled(states, every), strict=True):
            found[unpacked(network, row)] = {network.events[number].label for number in np.flatnonzero(enabled)}
        known |= {row.tobytes() for row in states}
        after = np.unique(np.concatenate([rows for _, rows in leads.of(states, every)]), axis=0)
        states = after[[row.tobytes() not in known for row in after]]
    return found


def states_of(network: Network, machine: str, state: tuple[str, ...]) -> set[str]:
    return {local for instance, local in zip(network.instances, state, strict=True) if instance.fsm.name == machine}


@pytest.mark.parametrize("resends", [False, True])
@pytest.mark.parametrize("mode", ["blocking", "asynchronous"])
def test_close_waits_for_what_was_sent(mode: str, *, resends: bool) -> None:
    settings = {"send_mode": mode, "publish_window": 2, "resend_in_doubt": resends}
    network = network_of(settings, most=1 if resends and not WHOLE else 2)
    closed = 0
    for state, events in steps_of(network).items():
        waits = states_of(network, "publication", state) & {"new", "awaiting_outcome", "resent"}
        if "producer_close" in events:
            closed += 1
            assert not waits
        if states_of(network, "producer", state) == {"closed"}:
            assert not events & {"send(m1)", "resend(m1)", "producer_link_up"}
    assert closed


def test_the_end_of_a_transaction_waits_for_its_callbacks() -> None:
    network = network_of(TRANSACTED)
    seen: set[str] = set()
    for state, events in steps_of(network).items():
        seen |= {event.split("(")[0] for event in events}
        if states_of(network, "completion", state) != {"none"}:
            assert not events & {"commit_called", "rollback", "producer_close", "transaction_lost", "producer_link_up"}
    assert {*CALLBACKS, "commit_called", "rollback", "producer_close", "transaction_lost"} <= seen


def test_callbacks_are_called_in_the_order_of_the_sends() -> None:
    network = network_of(TRANSACTED, faults=(), messages=2)
    for events in steps_of(network).values():
        assert not {"send_completed(m1)", "send_completed(m2)"} <= events


@pytest.mark.parametrize("profile", Profile)
def test_by_default_no_send_of_a_transaction_has_a_callback(profile: Profile) -> None:
    network = network_of({"ack_mode": "SESSION_TRANSACTED"}, profile=profile)
    assert not {event.split("(")[0] for events in steps_of(network).values() for event in events} & CALLBACKS


@pytest.mark.parametrize("profile", ["artemis", "solace", "rabbitmq"])
def test_nor_where_the_commit_alone_is_answered(profile: str) -> None:
    network = network_of(TRANSACTED | {"publish_window": 10}, profile=profile)
    assert not {event.split("(")[0] for events in steps_of(network).values() for event in events} & CALLBACKS


@pytest.mark.parametrize("profile", few(["jms", "ems", "qpid-jms"], 1))
def test_a_transaction_with_callbacks_has_the_anomalies_of_one_without(profile: str) -> None:
    """What an application hears of its sends changes nothing of what becomes of them."""
    found = []
    for send_mode in ("blocking", "asynchronous"):
        settings = {"ack_mode": "SESSION_TRANSACTED", "send_mode": send_mode}
        bounds = Bounds(messages=2, faults=frozenset(FAULTS), max_faults=1)
        answer = explore.check(shipped(), shipped().configure(profile, settings), bounds)
        assert answer.exploration.complete
        found.append({anomaly for anomaly, finding in answer.findings.items() if finding.reachable})
    assert found[0] == found[1]
    assert Anomaly.STUCK not in found[0]
