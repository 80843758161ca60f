"""The explorer against a plain search, over networks of every shape; and that bugs in it are noticed."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackfsm.checking import explore
from ackfsm.checking.explore.search.options import Tuning
from ackfsm.checking.explore.search.self_check import _SelfCheck
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.terms import DefectError, Fault, InputError
from model_tests.searches import ITSELF, Tally, Way, compared, fitting
from model_tests.support.checker.drawn_networks import Shape, drawn
from model_tests.support.checker.explorer_bugs import BUGS, Bug
from model_tests.support.checker.plain_search import breadth_first
from model_tests.support.tables import composed, shipped
from model_tests.support.whole import WHOLE, few

shapes = st.builds(
    Shape,
    components=st.integers(1, 60),
    small=st.integers(1, 20),
    rounds=st.lists(st.sampled_from([2, 3, 17, 40, 120]), max_size=30).map(tuple),
    heaps=st.lists(st.sampled_from([2, 17, 64]), max_size=30).map(tuple),
    shuffled=st.lists(st.integers(2, 100), max_size=3).map(tuple),
    events=st.integers(1, 140),
    fuel=st.sampled_from([None, 4, 2]),
    ticks=st.sampled_from([None, 20, 200]),
    watchers=st.integers(0, 9),
    free=st.integers(0, 10),
    copies=st.booleans(),
    seed=st.integers(0, 2**32),
)


@settings(max_examples=40 if WHOLE else 13)
@given(shapes)
def test_a_network_of_any_shape_is_searched_to_the_end_in_every_way(shape: Shape) -> None:
    one = compared(shape, 120, some=4)
    assert one.differences == ()


def test_drawn_networks_have_every_shape_and_are_searched_to_the_end_in_every_way() -> None:
    """By the thousand: ``make searches``."""
    tally, part = Tally(), 1 if WHOLE else 3
    for seed in range(90 // part):
        one = compared(drawn(seed), 120, some=4)
        assert one.differences == (), seed
        tally += one.tally
    least = {
        "fewer words": 5,
        "more words": 5,
        "several lanes": 30,
        "states that wait": 30,
        "lanes that are lost": 30,
        "stopped by max_states": 10,
        "stopped by max_memory": 10,
        "several words": 25,
        "several masks": 25,
        "local states of several words": 25,
        "plain, then compiled": 15,
        "searches as on Spark": 10,
        "networks of 16 components and more": 25,
        "networks with an anomaly": 40,
        "networks with several watchers": 40,
        "networks with hundreds of local states": 20,
    }
    assert {what: (tally[what], count) for what, count in least.items() if tally[what] < count // part} == {}


def _plain(way: Way) -> bool:
    return way.tuning.plain_states is None


def _divided(way: Way) -> bool:
    return way.compiled and way.workers > 1 and way.tuning.parallel_states < 100


@pytest.mark.parametrize("bug", few(BUGS, 8), ids=str)
def test_a_bug_in_the_explorer_is_noticed(bug: Bug) -> None:
    wanted = _divided if bug.divided else _plain
    assert compared(drawn(bug.seed), 300, only=wanted).differences == ()
    with bug.planted():
        assert _goes_wrong(bug)


def _goes_wrong(bug: Bug) -> bool:
    """Whether something differs, or the search breaks down: some bugs make it leave its lists."""
    try:
        wrong = compared(drawn(bug.seed), 300, only=_divided if bug.divided else _plain).differences
        return any(ITSELF not in difference for difference in wrong)
    except (IndexError, DefectError):
        return True


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.told is not None], ids=str)
def test_a_search_that_a_bug_misleads_says_so_and_gives_no_answer(bug: Bug) -> None:
    one, _ = fitting(drawn(bug.told or 0), 300)
    assert not _contradicts_itself(one, bug)
    with bug.planted():
        assert _contradicts_itself(one, bug)


def _contradicts_itself(one: Network, bug: Bug) -> bool:
    """Whether some way of searching does; and then with one sentence."""
    for first_bits in (4, 1):
        pace = Tuning(plain_states=None, first_bits=first_bits)
        if bug.divided:
            pace = Tuning(plain_states=1, parallel_states=1, chunk=16)
        for every_step in (True, False):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("ackfsm.checking.explore.search.search.DEFAULT_TUNING", pace)
                try:
                    explore.explore(one, explore.SearchOptions(max_states=1_000, every_step=every_step))
                except DefectError as error:
                    return "\n" not in str(error)
    return False


@pytest.mark.parametrize(("messages", "every_step"), [(17, True), (18, False), (28, False)])
@pytest.mark.parametrize("plain_states", [None, 1], ids=["plain", "compiled"])
def test_what_was_missed_once_would_be_noticed(
    messages: int,
    every_step: bool,  # noqa: FBT001
    plain_states: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A quarter to a half of the states were missing; "all of them" was said."""
    monkeypatch.setattr("ackfsm.checking.explore.search.search.DEFAULT_TUNING", Tuning(plain_states=plain_states))
    limits = Bounds(
        messages=messages, faults=frozenset({Fault.PRODUCER_LINK_LOSS}), max_faults=16, without=frozenset({"accept"})
    )
    network = compose(shipped(), shipped().configure("jms"), limits)
    with (
        BUGS[0].planted(),
        pytest.raises(DefectError, match=r"a search and the tables differ: after .*producer_link_loss"),
    ):
        explore.explore(network, explore.SearchOptions(every_step=every_step, max_states=5_000))


@pytest.mark.parametrize("reductions", [(), (explore.Reduction.PARTIAL_ORDER,)], ids=["all", "partial order"])
def test_every_state_of_a_search_passes_when_it_is_looked_at_again(
    reductions: tuple[explore.Reduction, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where not all events are expanded; a sample of all states is not chosen to be easy."""
    monkeypatch.setattr("ackfsm.checking.explore.search.self_check._MIN_SAMPLE", 10**6)
    looked = set[object]()
    check_state = _SelfCheck.check_state

    def counted(again: _SelfCheck, place: int) -> None:
        looked.add(place)
        check_state(again, place)

    monkeypatch.setattr(_SelfCheck, "check_state", counted)
    network = composed()
    found = explore.explore(network, explore.SearchOptions(reductions=reductions))
    assert len(looked) == found.states > 300


def test_a_search_that_was_stopped_claims_nothing_and_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ackfsm.checking.explore.search.explore.self_check", None)
    network = composed()
    assert not explore.explore(network, explore.SearchOptions(max_states=100)).complete
    with pytest.raises(TypeError):
        explore.explore(network)


# what was wrong once


@pytest.mark.parametrize(
    ("messages", "states", "transitions"), few([(14, 698, 816), (15, 708, 827), (19, 714, 833)], 1)
)
@pytest.mark.parametrize("plain_states", [None, 1], ids=["plain", "compiled"])
def test_a_search_of_many_components_finds_all_states(
    messages: int, states: int, transitions: int, plain_states: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 16 components a state has two words at first and fewer later: steps were looked up where they had stood."""
    monkeypatch.setattr("ackfsm.checking.explore.search.search.DEFAULT_TUNING", Tuning(plain_states=plain_states))
    limits = Bounds(
        messages=messages,
        faults=frozenset({Fault.PRODUCER_LINK_LOSS}),
        max_faults=16,
        without=frozenset({"accept"}),
    )
    network = compose(shipped(), shipped().configure("jms"), limits)
    expected = breadth_first(network)
    assert (len(expected.depth), expected.transitions) == (states, transitions)
    for every_step in (False, True):
        found = explore.explore(network, explore.SearchOptions(every_step=every_step, max_states=5_000))
        assert (found.states, found.transitions, found.complete) == (states, transitions, True)
        assert {anomaly: len(steps) for anomaly, steps in found.witnesses.items()} == expected.anomalies


@pytest.mark.parametrize(
    ("messages", "faults", "actions", "settings"),
    [
        pytest.param(5, frozenset(Fault), {"recover"}, {"resend_in_doubt": True}, id="two copies of five"),
        *(
            pytest.param(messages, frozenset({Fault.BROKER_CRASH}), set(), {}, id=f"{messages} messages")
            for messages in few([15, 18, 20, 27], 1)
        ),
    ],
)
def test_what_a_stopped_search_of_many_components_found_is_there(
    messages: int, faults: frozenset[Fault], actions: set[str], settings: dict[str, object]
) -> None:
    limits = Bounds(messages=messages, faults=faults, actions=frozenset(actions))
    answer = explore.check(shipped(), shipped().configure("jms", settings), limits, max_states=1_000)
    assert not answer.exploration.complete
    assert answer.witnesses(), "each is performed by the other executor"


def test_more_anomalies_than_a_mark_has_bits_are_refused() -> None:
    network = compose(shipped(), shipped().configure("jms"), Bounds())
    watching = next(instance for instance in network.instances if instance.anomaly is not None)
    many = tuple(dataclasses.replace(watching, anomaly=f"watch {n}") for n in range(63))
    watched = 63 + len({instance.anomaly for instance in network.instances} - {None})
    with pytest.raises(InputError, match=f"watches for 62 anomalies at most, not for {watched}"):
        explore.explore(dataclasses.replace(network, instances=(*network.instances, *many)))


def test_drawn_shapes_do_not_change_from_run_to_run() -> None:
    assert [drawn(seed) for seed in range(50)] == [drawn(seed) for seed in range(50)]
    assert len({dataclasses.replace(drawn(seed), seed=0) for seed in random.Random(1).sample(range(10**6), 50)}) > 45
