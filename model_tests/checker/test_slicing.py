"""Reducing a network changes nothing that a search can see, and networks have one name only if they are alike."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackfsm.checking.explore import Exploration, SearchOptions, SlicedNetwork, Slicer, explore_packed
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.terms import Configuration, Fault
from model_tests.support.tables import composed, configurations, networks, shipped
from model_tests.support.whole import WHOLE


def _whole(network: Network) -> SlicedNetwork:
    return Slicer(network).slice()


def _searched(network: SlicedNetwork, *, compiled: bool = False) -> Exploration:
    found = explore_packed(network.packed, network.events, SearchOptions(compiled=compiled, max_states=20_000))
    return dataclasses.replace(found, compiled=False)


def test_compiled_code_from_the_first_state_finds_the_same() -> None:
    network = _whole(composed())
    assert explore_packed(network.packed, network.events, SearchOptions(compiled=True)).compiled
    assert _searched(network, compiled=True) == _searched(network)


def test_without_numba_a_search_that_wants_compiled_code_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    network = _whole(composed())
    expected = _searched(network)
    monkeypatch.setattr("ackfsm.checking.explore.search.search._numba_is_there", lambda: False)
    found = explore_packed(network.packed, network.events, SearchOptions(compiled=True))
    assert not found.compiled
    assert found == expected


@settings(max_examples=25 if WHOLE else 8)
@given(configurations(), st.frozensets(st.sampled_from(Fault), max_size=2), st.sampled_from([1, 2]))
def test_faults_taken_away_are_faults_that_were_never_there(
    configuration: Configuration, faults: frozenset[Fault], budget: int
) -> None:
    everything = compose(shipped(), configuration, Bounds(faults=frozenset(Fault), max_faults=budget))
    some = compose(shipped(), configuration, Bounds(faults=faults, max_faults=budget))
    assert (
        Slicer(everything).slice(lambda event: event.name not in set(Fault) or event.name in faults).key
        == _whole(some).key
    )


@settings(max_examples=40 if WHOLE else 13)
@given(networks(), st.randoms(use_true_random=False))
def test_names_of_machines_and_states_do_not_matter(network: Network, draw: random.Random) -> None:
    renamed = dataclasses.replace(network, instances=tuple(_renamed(i, draw) for i in network.instances))
    assert _whole(renamed).key == _whole(network).key


def _renamed(instance, draw: random.Random):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    fsm = instance.fsm
    new = {state: f"{state}_{draw.random()}" for state in fsm.states}
    rows = {
        (new[state], event): row._replace(state=new[state], target=new[row.target])
        for (state, event), row in fsm.rows.items()
    }
    states = tuple(new[state] for state in fsm.states)
    other = dataclasses.replace(fsm, name="other", states=states, initial=new[fsm.initial], rows=rows)
    return dataclasses.replace(
        instance,
        fsm=other,
        marked=frozenset(new[s] for s in instance.marked),
        marked_at_rest=frozenset(new[s] for s in instance.marked_at_rest),
    )


@pytest.mark.parametrize(
    ("usual", "other", "fault"),
    [
        ({"consumption": "receive"}, {"listener_exception": "swallow"}, Fault.LISTENER_EXCEPTION),
        ({}, {"redelivery_mark_persisted": False}, Fault.CONSUMER_CRASH),
        ({}, {"resend_in_doubt": True}, Fault.REJECTION),
    ],
    ids=["no listener that could throw", "no crash that could take the mark", "no doubt, so no second copy"],
)
def test_what_can_never_move_does_not_matter(usual: dict[str, object], other: dict[str, object], fault: Fault) -> None:
    everything = Bounds(faults=frozenset(Fault), max_faults=1)
    one = Slicer(compose(shipped(), shipped().configure("jms", usual), everything))
    two = Slicer(compose(shipped(), shipped().configure("jms", usual | other), everything))
    assert one.slice(lambda event: event.name not in set(Fault) - {fault}).key == (
        two.slice(lambda event: event.name not in set(Fault) - {fault}).key
    )
    assert {one.slice().key == two.slice().key} == {fault is Fault.LISTENER_EXCEPTION}


@pytest.mark.parametrize(
    "setting",
    [("journal_sync_non_transactional", False), ("ack_mode", "CLIENT_ACKNOWLEDGE"), ("send_mode", "asynchronous")],
)
def test_what_can_move_matters(setting: tuple[str, object]) -> None:
    bound = Bounds(messages=2, faults=frozenset({Fault.BROKER_CRASH}))
    usual, other = shipped().configure("jms"), shipped().configure("jms", dict([setting]))
    assert _whole(compose(shipped(), usual, bound)).key != _whole(compose(shipped(), other, bound)).key


def test_the_budget_matters_where_faults_can_happen_and_not_elsewhere() -> None:
    usual = shipped().configure("jms", {"consumption": "receive"})

    def key(fault: Fault, budget: int) -> str:
        return _whole(compose(shipped(), usual, Bounds(faults=frozenset({fault}), max_faults=budget))).key

    assert key(Fault.BROKER_KILL, 1) != key(Fault.BROKER_KILL, 2)
    assert key(Fault.LISTENER_EXCEPTION, 1) == key(Fault.LISTENER_EXCEPTION, 2), "there is no listener"
