"""Symbolic search against the search state by state, against a search of twenty lines, and against arithmetic."""

import dataclasses
import random
from typing import Any

import pytest
from hypothesis import given, settings

from ackfsm.checking.explore import (
    SearchOptions,
    SymbolicOptions,
    explore,
    explore_symbolically,
    pack,
)
from ackfsm.checking.explore.symbolic import kernel
from ackfsm.checking.explore.symbolic.encode import event_system
from ackfsm.checking.explore.symbolic.forest import Forest, ForestLimits
from ackfsm.checking.network import Bounds, Instance, Network, NetworkEvent, Participant, compose
from ackfsm.tables import EventRef, Fsm
from ackfsm.terms import DefectError, Fault, InputError
from model_tests.support.checker.plain_search import breadth_first, rests, shows
from model_tests.support.tables import bounds, composed, configurations, networks, row, shipped
from model_tests.support.whole import WHOLE, few
from model_tests.symbolic_matrix import benchmark_systems, cells, difference

PLAIN = SymbolicOptions(witnesses=True, compiled=False)
COMPILED = SymbolicOptions(witnesses=True)


def lengths(witnesses: Any) -> dict[str, int]:
    return {anomaly: len(steps) for anomaly, steps in witnesses.items()}


def agree_with_plain(network: Network, options: SymbolicOptions) -> None:
    """States, transitions, states at rest, verdicts and lengths of witnesses are those of :func:`breadth_first`."""
    expected, found = breadth_first(network), explore_symbolically(network, options)
    assert (found.states, found.transitions) == (len(expected.depth), expected.transitions)
    assert found.at_rest == sum(rests(network, state) for state in expected.depth)
    assert lengths(found.witnesses) == expected.anomalies
    assert {anomaly for anomaly, reached in found.reachable.items() if reached} == set(expected.anomalies)
    assert all(shows(network, steps, anomaly) for anomaly, steps in found.witnesses.items())


# against others


@settings(max_examples=100 if WHOLE else 33)
@given(networks())
def test_random_systems_in_plain_python(network: Network) -> None:
    agree_with_plain(network, PLAIN)


@settings(max_examples=15 if WHOLE else 5)
@given(networks())
def test_random_systems_compiled(network: Network) -> None:
    agree_with_plain(network, COMPILED)


@settings(max_examples=5)
@given(configurations(), bounds(messages=1, budgets=(0, 1)))
def test_random_configurations(configuration: Any, limits: Bounds) -> None:
    agree_with_plain(compose(shipped(), configuration, limits), COMPILED)


@pytest.mark.parametrize("profile", sorted(shipped().profiles))
def test_one_message_of_every_profile(profile: str) -> None:
    """All of the matrix: ``python -m model_tests.symbolic_matrix``."""
    drawing = random.Random(profile)
    for failing in drawing.sample(list(cells(1, [profile])), 3 if WHOLE else 1):
        cell = drawing.choice(failing)
        assert difference(compose(shipped(), *cell)) is None, str(cell)


@pytest.mark.parametrize(
    ("profile", "chosen", "limits"),
    [
        pytest.param("artemis", {}, {"faults": {Fault.BROKER_CRASH}}, id="a crash of the broker"),
        pytest.param("qpid", {"ack_mode": "SESSION_TRANSACTED"}, {"max_faults": 0}, id="transacted"),
        pytest.param("jms", {}, {"consumers": 2, "max_faults": 0}, id="two consumers"),
        pytest.param("rabbitmq", {}, {"messages": 1, "max_faults": None}, id="any number of faults"),
        pytest.param(
            "jms",
            {"destination": "durable_subscription"},
            {"messages": 1, "subscriptions": 2, "max_faults": 0},
            id="two subscriptions",
        ),
    ],
)
def test_larger_systems(profile: str, chosen: dict[str, Any], limits: dict[str, Any]) -> None:
    assert difference(composed(profile, chosen, **{"messages": 2, **limits})) is None


@pytest.mark.parametrize("name", few(("1 message", "2 messages", "a second copy, any faults"), 1))
def test_systems_of_the_benchmark(name: str) -> None:
    """Those whose witnesses are found in seconds."""
    assert difference(benchmark_systems()[name]) is None


def test_four_messages() -> None:
    network = composed(chosen={"block_on_acknowledge": False}, messages=4)
    found, expected = explore_symbolically(network), explore(network, SearchOptions(compiled=True))
    assert (found.states, found.transitions) == (expected.states, expected.transitions)
    assert {anomaly for anomaly, reached in found.reachable.items() if reached} == set(expected.witnesses)
    assert expected.states > 1_000_000


# against arithmetic


def toggles(count: int) -> Network:
    """So many machines of two states that know nothing of each other."""
    instances, events = [], []
    for n in range(count):
        go = EventRef(f"go_{n}")
        rows = {("a", go): row("a", go, "b"), ("b", go): row("b", go, "a")}
        instances.append(Instance(Fsm(f"toggle_{n}", ("a", "b"), "a", (go,), rows), ()))
        events.append(NetworkEvent(go.name, (), may_never_happen=n % 2 == 0, participants=(Participant(n, go),)))
    return Network(shipped().configure(), Bounds(), tuple(instances), tuple(events))


@pytest.mark.parametrize("count", [1, 61, 62, 63, 124, 150])
@pytest.mark.parametrize("options", [PLAIN, COMPILED], ids=["plain", "compiled"])
def test_numbers_have_no_bound(count: int, options: SymbolicOptions) -> None:
    found = explore_symbolically(toggles(count), options)
    assert (found.states, found.transitions) == (2**count, count * 2**count)
    assert found.at_rest == (2 if count == 1 else 0), "every other toggle goes on for ever"


def test_a_system_without_events_is_one_state() -> None:
    network = dataclasses.replace(composed(), events=())
    agree_with_plain(network, PLAIN)
    assert explore_symbolically(network).states == 1


# memory


def saturated(forest: Forest) -> int:
    return forest.saturated([0] * forest.events.levels)


def chain(levels: int) -> Any:
    """The system of so many toggles."""
    return event_system(pack(toggles(levels)), range(levels), [])


def test_the_pool_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    network = composed(messages=2, max_faults=0)
    large = explore_symbolically(network, PLAIN)
    monkeypatch.setattr("ackfsm.checking.explore.symbolic.forest._FIRST_SLOTS", 2)
    small = explore_symbolically(network, PLAIN)
    assert large.nodes > 1_024, "more than either began with"
    assert (small.states, small.transitions, small.reachable) == (large.states, large.transitions, large.reachable)
    assert lengths(small.witnesses) == lengths(large.witnesses)


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_no_node_is_made_twice(compiled: bool) -> None:  # noqa: FBT001 - a parameter of a test
    forest = Forest(chain(50), ForestLimits(), compiled=compiled)
    first = saturated(forest)
    made = forest.nodes
    assert saturated(forest) == first
    assert forest.nodes == made == 50, "one for each level: all states of the machines below"


def test_nothing_is_saturated_among_sets_that_are_not_closed() -> None:
    forest = Forest(chain(3), ForestLimits(), compiled=False)
    forest.preimage(0, saturated(forest), saturated(forest))
    with pytest.raises(DefectError, match="not closed"):
        saturated(forest)


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_a_search_that_may_make_no_more_nodes_says_so(compiled: bool) -> None:  # noqa: FBT001
    network = composed(messages=1)
    found = explore_symbolically(network, SymbolicOptions(max_nodes=100, compiled=compiled))
    assert (found.complete, found.stopped_by, found.nodes) == (False, "max_nodes", 100)
    assert (found.states, found.transitions, found.at_rest) == (None, None, None)
    assert set(found.reachable.values()) == {None}, "nothing is known to be unreachable"


def test_what_was_known_before_the_limit_is_told() -> None:
    network = composed(messages=1)
    whole = explore_symbolically(network, SymbolicOptions(compiled=False))
    cut = explore_symbolically(network, SymbolicOptions(compiled=False, max_nodes=whole.nodes - 1))
    assert (cut.stopped_by, cut.states, cut.transitions) == ("max_nodes", whole.states, whole.transitions)
    assert cut.at_rest is None
    assert False not in cut.reachable.values()
    assert True in cut.reachable.values()
    exact = explore_symbolically(network, SymbolicOptions(compiled=False, max_nodes=whole.nodes))
    assert exact.complete, "a limit that is just enough"


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_a_search_that_may_take_no_more_memory_says_so(compiled: bool) -> None:  # noqa: FBT001
    found = explore_symbolically(composed(messages=2), SymbolicOptions(max_memory=200_000, compiled=compiled))
    assert (found.stopped_by, found.states) == ("max_memory", None)
    assert found.bytes <= 200_000


def test_where_memory_ends_the_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Forest, "_enlarge", none)
    found = explore_symbolically(composed(messages=1), SymbolicOptions(compiled=False))
    assert (found.stopped_by, found.states) == ("memory", None)


def test_progress_is_told_and_limits_are_whole_numbers() -> None:
    told: list[int] = []
    found = explore_symbolically(toggles(3), SymbolicOptions(compiled=False, progress=told.append))
    assert told == sorted(told)
    assert told[-1] <= found.nodes
    with pytest.raises(InputError, match="max_nodes"):
        SymbolicOptions(max_nodes=0)


def test_the_cache_keeps_what_it_was_told_when_it_grows() -> None:
    small, large = [0] * kernel.CACHE_ENTRY * 4, [0] * kernel.CACHE_ENTRY * 64
    kernel.store_result(small, 7, 5, 6, 99)
    kernel.rehash_cache(small, large)
    at = large.index(8)
    assert large[at : at + 4] == [8, 5, 6, 99]
