"""The searches of a check with decision diagrams: what they find, when they are chosen, and what limits do to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from ackfsm.checking import explore
from ackfsm.checking.explore import (
    Exploration,
    SearchEngine,
    SearchOptions,
    SymbolicExploration,
    SymbolicOptions,
    explore_by_size,
    explore_symbolically,
    explore_with_diagrams,
)
from ackfsm.checking.explore.symbolic import engine, forest
from ackfsm.checking.network import Bounds, Network
from ackfsm.terms import Anomaly, DefectError, Fault
from model_tests.support.checker.plain_search import breadth_first, rests, shows
from model_tests.support.tables import composed, shipped
from model_tests.support.whole import before_a_release

CLIENT = {"ack_mode": "CLIENT_ACKNOWLEDGE"}


def told(found: Exploration) -> tuple[int, int, bool, dict[str, int]]:
    """What no engine changes."""
    lengths = {anomaly: len(steps) for anomaly, steps in found.witnesses.items()}
    return found.states, found.transitions, found.complete, lengths


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few states are near that the runs to most anomalies are found backward."""
    monkeypatch.setattr(engine, "NEAR_STATES", 60)


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize(
    ("profile", "chosen", "limits"),
    [
        pytest.param("jms", {}, {}, id="one message"),
        pytest.param("artemis", {"resend_in_doubt": True}, {}, id="a second copy"),
        pytest.param("jms", CLIENT, {"messages": 2}, id="two messages, CLIENT"),
        pytest.param("rabbitmq", {}, {"messages": 2, "faults": {Fault.CONSUMER_CRASH}}, id="rabbitmq, two messages"),
        pytest.param("jms", {"journal_sync_non_transactional": False}, {}, id="a broken promise"),
    ],
)
def test_both_engines_tell_the_same(profile: str, chosen: dict[str, Any], limits: dict[str, Any]) -> None:
    network = composed(profile, chosen, **limits)
    found = explore_with_diagrams(network)
    assert told(found) == told(explore.explore(network, SearchOptions(compiled=True)))
    assert found.engine is SearchEngine.SYMBOLIC
    assert found.unreachable == {instance.anomaly for instance in network.instances} - {None, *found.witnesses}
    assert all(shows(network, steps, anomaly) for anomaly, steps in found.witnesses.items())


def test_the_states_at_rest_are_counted() -> None:
    network = composed()
    assert explore_with_diagrams(network).at_rest == sum(rests(network, s) for s in breadth_first(network).depth)


@pytest.mark.parametrize("cut", [30, 500, 3_000])
def test_runs_from_a_search_that_was_cut_are_shortest(cut: int) -> None:
    """What ``explore_with_diagrams`` relies on for what is near."""
    network = composed("jms", CLIENT, messages=2)
    whole = told(explore.explore(network, SearchOptions(compiled=True)))[3]
    for options in (SearchOptions(max_states=cut), SearchOptions(max_states=cut, only_witnesses=True, compiled=True)):
        lengths = told(explore.explore(network, options))[3]
        assert lengths.items() <= whole.items()


# the choice


def test_a_small_space_is_searched_state_by_state_and_a_large_one_is_not() -> None:
    network = composed(messages=2)
    local = explore_by_size(network)
    assert (local.engine, local.at_rest) == (SearchEngine.LOCAL, None)
    for few, chosen in ((local.states, SearchEngine.LOCAL), (local.states - 1, SearchEngine.SYMBOLIC)):
        found = explore_by_size(network, few=few)
        assert found.engine is chosen
        assert told(found) == told(local)


def test_whoever_bounds_the_states_gets_no_more() -> None:
    found = explore_by_size(composed(messages=2), max_states=500, few=100)
    assert (found.engine, found.stopped_by) == (SearchEngine.LOCAL, "max_states")


def test_without_numba_large_spaces_are_searched_state_by_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_has_numba", lambda: False)
    assert explore_by_size(composed(), few=100).engine is SearchEngine.LOCAL


def test_where_diagrams_do_not_get_to_the_end_the_search_state_by_state_does(monkeypatch: pytest.MonkeyPatch) -> None:
    network = composed(messages=2)
    monkeypatch.setattr(forest, "_MOST_WORDS", 1 << 16)
    found = explore_by_size(network, few=100)
    assert (found.engine, found.complete, found.states) == (SearchEngine.LOCAL, True, explore.explore(network).states)
    assert explore_with_diagrams(network).complete, "all states were near"


@before_a_release
def test_a_space_that_is_too_large_for_single_states_is_decided() -> None:
    """A minute's work state by state."""
    network = composed(chosen={"block_on_acknowledge": False}, messages=6)
    found = explore_by_size(network, few=1 << 18)
    assert (found.engine, found.complete) == (SearchEngine.SYMBOLIC, True)
    assert found.states > 30_000_000
    assert {anomaly: len(steps) for anomaly, steps in found.witnesses.items()} == {"duplicate": 10, "reprocessed": 12}


# limits


def check(search: explore.SearchFunction, **limits: Any) -> explore.Answer:
    bounds = Bounds(faults=frozenset(Fault), messages=2)
    return explore.check(shipped(), shipped().configure("jms", CLIENT), bounds, search=search, **limits)


@pytest.mark.usefixtures("far")
def test_a_search_that_is_stopped_knows_nothing_absent() -> None:
    found = check(explore_with_diagrams, max_states=2_000)
    assert (found.exploration.complete, found.exploration.stopped_by) == (False, "max_states")
    assert 60 < found.exploration.states < 70, "those that were met"
    assert {finding.reachable for finding in found.findings.values()} == {None}
    assert found.as_json()["engine"] == "symbolic"


@pytest.mark.usefixtures("far")
def test_an_anomaly_whose_run_was_not_found_is_unknown_and_what_is_absent_is_known() -> None:
    network = composed("jms", CLIENT, messages=2)
    decided = explore_symbolically(network)
    assert decided.reachable[Anomaly.UNPROCESSED]
    found = check(explore_with_diagrams, max_states=decided.nodes + 1)
    assert found.exploration.states == decided.states, "counted before the limit"
    assert found.findings[Anomaly.UNPROCESSED].reachable is None, "no run shows it"
    assert found.findings[Anomaly.LOSS].reachable is False
    assert not found.exploration.complete


@pytest.mark.usefixtures("far")
def test_memory_is_bounded() -> None:
    found = explore_with_diagrams(composed(messages=2), max_memory=1 << 20)
    assert (found.complete, found.stopped_by, found.witnesses) == (False, "max_memory", {})
    assert found.bytes <= 1 << 20


# one against the other


def _changed(change: Callable[[SymbolicExploration], SymbolicExploration]) -> Any:
    def search(network: Network, options: SymbolicOptions) -> SymbolicExploration:
        return change(explore_symbolically(network, options))

    return search


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda found: dataclasses.replace(found, states=found.states - 1),
            r"count ([\d,]+) states, and [\d,]+ were met",
        ),
        (
            lambda found: dataclasses.replace(found, transitions=found.transitions + 1),
            r"count [\d,]+ transitions, and [\d,]+ were met",
        ),
        (lambda found: dataclasses.replace(found, reachable={**found.reachable, "duplicate": False}), "a run to dupl"),
        (lambda found: dataclasses.replace(found, reachable={**found.reachable, "loss": True}), "a run to loss"),
    ],
)
def test_where_the_two_differ_there_is_no_answer(
    change: Callable[[SymbolicExploration], SymbolicExploration], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "explore_symbolically", _changed(change))
    with pytest.raises(DefectError, match=said):
        explore_with_diagrams(composed())


def test_single_states_are_met_no_longer_than_something_is_looked_for() -> None:
    """They are then not all that there are, and not taken for it."""
    bounds = Bounds(faults=frozenset(Fault))
    single, found = (
        explore.check(shipped(), shipped().configure(), bounds, only=["duplicate"], search=search)
        for search in (None, explore_with_diagrams)
    )
    assert told(found.exploration) == told(single.exploration)
    assert found.exploration.depth < single.exploration.depth
