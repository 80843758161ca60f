"""The explorer against a search of twenty lines, its two kernels against each other, its limits, and its witnesses."""

import dataclasses
import json
import mmap
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackfsm import cli
from ackfsm.checking import explore
from ackfsm.checking.explore import pack
from ackfsm.checking.explore.search.kernel import SuccessorBuffers
from ackfsm.checking.explore.search.options import Tuning
from ackfsm.checking.explore.search.reached import state_table
from ackfsm.checking.explore.search.search import Search
from ackfsm.checking.explore.search.visited import Arrays, Visited, make_buffers, map_pages
from ackfsm.checking.network import Bounds, Instance, Network, NetworkEvent, Participant, compose
from ackfsm.tables import EventRef, Fsm
from ackfsm.terms import Anomaly, Configuration, Fault, HostError, InputError
from model_tests.support.checker.plain_search import breadth_first, shows
from model_tests.support.tables import (
    bounds,
    configurations,
    networks,
    row,
    shipped,
    unpacked,
)
from model_tests.support.whole import WHOLE, few

EVERY = frozenset(Fault)
TUNING = "ackfsm.checking.explore.search.search.DEFAULT_TUNING"
LOADED = "ackfsm.checking.explore.search.search._is_loaded"
NUMBA = "ackfsm.checking.explore.search.search._numba_is_there"


def system(
    messages: int = 1, max_faults: int | None = 1, faults: frozenset[Fault] = EVERY, **chosen: object
) -> Network:
    bounded = Bounds(messages=messages, faults=faults, max_faults=max_faults)
    return compose(shipped(), shipped().configure("jms", chosen), bounded)


def states_of(network: Network) -> list[tuple[str, ...]]:
    """Every state that the kernel has found, by the names of the tables."""
    with Search(pack(network)) as search:
        while search.has_work():
            search.expand_batch()
        return [unpacked(network, numbers) for numbers in state_table(search).tolist()]


def agree(network: Network) -> None:
    """The kernel found the states, the transitions, the anomalies and shortest ways that the plain search found."""
    expected, found = breadth_first(network), explore.explore(network)
    assert found.complete
    assert (found.states, found.transitions) == (len(expected.depth), expected.transitions)
    assert {anomaly: len(steps) for anomaly, steps in found.witnesses.items()} == expected.anomalies
    assert all(shows(network, steps, anomaly) for anomaly, steps in found.witnesses.items())
    states = states_of(network)
    assert len(states) == len(set(states)), "every state once"
    assert set(states) == set(expected.depth)


# against a plain search


@settings(max_examples=150 if WHOLE else 50)
@given(networks())
def test_random_systems_are_searched_to_the_end(network: Network) -> None:
    agree(network)


@settings(max_examples=12 if WHOLE else 4)
@given(configurations(), bounds(messages=1, budgets=(0, 1)))
def test_random_configurations_are_searched_to_the_end(configuration: Configuration, limits: Bounds) -> None:
    agree(compose(shipped(), configuration, limits))


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param({"max_faults": 2}, id="two faults of any kind"),
        pytest.param({"resend_in_doubt": True, "send_mode": "asynchronous"}, id="a second copy"),
        pytest.param({"messages": 2, "max_faults": 0}, id="two messages"),
        pytest.param({"messages": 2, "faults": frozenset({Fault.CONSUMER_CRASH})}, id="two messages and a crash"),
    ],
)
def test_larger_systems_are_searched_to_the_end(chosen: dict[str, Any]) -> None:
    agree(system(**chosen))


def test_an_anomaly_that_holds_from_the_start_needs_no_step() -> None:
    go = EventRef("go")
    watcher = Fsm("watcher", ("a", "b"), "a", (go,), {("a", go): row("a", go, "b"), ("b", go): row("b", go, None)})
    instance = Instance(watcher, (), Anomaly.LOSS, frozenset({"a"}), frozenset())
    event = NetworkEvent("go", (), may_never_happen=False, participants=(Participant(0, go),))
    network = Network(shipped().configure(), Bounds(), (instance,), (event,))
    assert breadth_first(network).anomalies == {Anomaly.LOSS: 0}
    assert explore.explore(network).witnesses == {Anomaly.LOSS: ()}


def test_a_system_without_events_is_one_state() -> None:
    network = dataclasses.replace(system(), events=())
    found = explore.explore(network)
    assert (found.states, found.transitions, found.complete, found.witnesses) == (1, 0, True, {Anomaly.STUCK: ()}), (
        "a message waits to be sent"
    )


def test_more_events_than_can_be_numbered_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ackfsm.checking.explore.search.search.EVENT_OF_PAIR", 10)
    with pytest.raises(InputError, match=r"events are more than a search can number \(9\); ask about fewer messages"):
        explore.explore(system())


# the two kernels


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param({}, id="one message"),
        pytest.param({"max_faults": None}, id="any number of faults"),
        pytest.param({"messages": 2}, id="two messages"),
        pytest.param({"ack_mode": "PRE_ACKNOWLEDGE", "resend_in_doubt": True}, id="two copies"),
    ],
)
def test_compiled_and_plain_code_find_the_same(chosen: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    network, found = system(**chosen), {}
    monkeypatch.setattr(LOADED, lambda: False)
    for limit in (10**9, 1, 100):
        monkeypatch.setattr(TUNING, Tuning(plain_states=limit))
        found[limit] = explore.explore(network)
    assert [found[limit].compiled for limit in (10**9, 1, 100)] == [False, True, True]
    assert dataclasses.replace(found[1], compiled=False) == found[10**9]
    assert found[100] == found[1], "where plain code hands over makes no difference"


def test_a_large_space_is_compiled_and_a_small_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TUNING, Tuning())
    monkeypatch.setattr(LOADED, lambda: False)
    assert not explore.explore(system()).compiled
    assert explore.explore(system(messages=2)).compiled
    monkeypatch.undo()
    assert explore.explore(system()).compiled, "it is loaded by now"


@settings(max_examples=30 if WHOLE else 10)
@given(networks())
def test_compiled_code_searches_random_systems_to_the_end(network: Network) -> None:
    expected = breadth_first(network)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TUNING, Tuning(plain_states=1))
        found = explore.explore(network)
    assert found.complete
    assert (found.states, found.transitions) == (len(expected.depth), expected.transitions)
    assert {anomaly: len(steps) for anomaly, steps in found.witnesses.items()} == expected.anomalies


def test_a_system_that_nobody_watches_is_compiled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    network = without_properties(system())
    expected = breadth_first(network)
    monkeypatch.setattr(TUNING, Tuning(plain_states=1))
    found = explore.explore(network)
    assert found.compiled
    assert (found.states, found.transitions, found.witnesses) == (len(expected.depth), expected.transitions, {})


def without_properties(network: Network) -> Network:
    """The machines alone; property machines stand after them and only watch."""
    kept = tuple(instance for instance in network.instances if instance.anomaly is None)
    events = tuple(
        dataclasses.replace(event, participants=tuple(p for p in event.participants if p.instance < len(kept)))
        for event in network.events
    )
    return dataclasses.replace(network, instances=kept, events=events)


# room, limits, progress


@pytest.mark.parametrize("limit", [10**9, 1], ids=["plain", "compiled"])
def test_the_room_grows_with_the_space(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    network = system()
    expected = breadth_first(network)
    monkeypatch.setattr(TUNING, Tuning(plain_states=limit, plain_chunk=1, chunk=1))
    progress: list[int] = []
    found = explore.explore(network, explore.SearchOptions(progress=progress.append))
    assert (found.states, found.transitions) == (len(expected.depth), expected.transitions)
    assert len(progress) > 2, "the room was too small more than once"
    assert progress == sorted(progress)
    assert progress[-1] == found.states


@settings(max_examples=25 if WHOLE else 8)
@given(st.integers(1, 1200))
def test_a_search_that_is_stopped_does_not_claim_what_it_has_not_seen(limit: int) -> None:
    network = system(ack_mode="PRE_ACKNOWLEDGE", block_on_acknowledge=False)
    whole, stopped = explore.explore(network), explore.explore(network, explore.SearchOptions(max_states=limit))
    assert stopped.complete == (limit >= whole.states)
    assert stopped.states <= whole.states
    assert stopped.states >= min(limit, whole.states)
    assert stopped.states < limit + len(network.events)
    assert stopped.witnesses.keys() <= whole.witnesses.keys()
    if stopped.complete:
        assert stopped == whole


@pytest.mark.parametrize("limit", few([1, 3000, 5000, 9000], 2))
@pytest.mark.parametrize("compiled", [False, True])
def test_a_limit_stops_plain_and_compiled_code(limit: int, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    network = system(messages=2)
    monkeypatch.setattr(TUNING, Tuning(plain_states=1 if compiled else 10**9))
    stopped = explore.explore(network, explore.SearchOptions(max_states=limit))
    assert not stopped.complete
    assert limit <= stopped.states < limit + len(network.events)


def test_a_limit_of_exactly_the_space_is_enough() -> None:
    for network in (system(), system(messages=2)):
        whole = explore.explore(network)
        assert explore.explore(network, explore.SearchOptions(max_states=whole.states)) == whole
        assert (
            not explore.explore(network, explore.SearchOptions(max_states=whole.states - 1)).complete
            or whole.states - 1 < 1
        )


@pytest.mark.parametrize("compiled", [False, True])
def test_a_limit_of_memory_stops_a_search_before_its_states_take_more(
    compiled: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = system(messages=2)
    monkeypatch.setattr(TUNING, Tuning(plain_states=1 if compiled else 10**9))
    whole = explore.explore(network)
    stopped = explore.explore(network, explore.SearchOptions(max_memory=whole.bytes // 3))
    assert (stopped.complete, stopped.stopped_by) == (False, "max_memory")
    assert 0 < stopped.bytes <= whole.bytes // 3
    assert 0 < stopped.states < whole.states
    assert explore.explore(network, explore.SearchOptions(max_memory=whole.bytes)) == whole


def test_what_a_stopped_check_has_not_reached_is_unknown_and_what_it_has_reached_is_known() -> None:
    configuration = shipped().configure("jms")
    limits = Bounds(faults=EVERY)
    whole = explore.check(shipped(), configuration, limits)
    half = explore.check(shipped(), configuration, limits, max_states=whole.exploration.states // 2)
    none = explore.check(shipped(), configuration, limits, max_states=1)
    assert {finding.reachable for finding in whole.findings.values()} == {True, False}
    assert {finding.reachable for finding in none.findings.values()} == {None}
    for anomaly, finding in half.findings.items():
        assert finding.reachable in {True, None}
        assert finding.reachable is None or whole.findings[anomaly].reachable
    assert half.as_json()["complete"] is False


# witnesses


VIOLENT: dict[str, dict[str, Any]] = {
    "PRE": {"ack_mode": "PRE_ACKNOWLEDGE", "block_on_acknowledge": False},
    "NO": {"ack_mode": "NO_ACKNOWLEDGE", "redelivery_mark_persisted": False},
    "swallowed": {"listener_exception": "swallow", "send_mode": "unconfirmed"},
    "unsynced": {"journal_sync_non_transactional": False, "block_on_acknowledge": True, "send_mode": "asynchronous"},
    "sent again": {"resend_in_doubt": True},
    "limited": {"max_delivery_attempts": 1, "delivery_count_persisted": False},
    "rejected": {"resend_in_doubt": True, "rejection_excludes_delivery": True, "max_faults": 2},
}
"""Systems that together reach every anomaly that one message can have."""


def test_the_witnesses_cover_every_anomaly_that_one_message_can_have() -> None:
    found = {anomaly for chosen in VIOLENT.values() for anomaly in explore.explore(system(**chosen)).witnesses}
    never = {Anomaly.PHANTOM, Anomaly.DOUBLE_OUTCOME, Anomaly.MISSING_OUTCOME, Anomaly.DIRTY_DELIVERY}
    never |= {Anomaly.EARLY_CONFIRM, Anomaly.WINDOW_OVERRUN, Anomaly.PREFETCH_OVERRUN}
    never |= {Anomaly.REORDER, Anomaly.TORN_TRANSACTION}
    assert found - set(shipped().guarantees.monitors) == set(shipped().properties) - never


def test_an_action_that_does_not_exist_is_answered_with_those_that_do() -> None:
    actions = ", ".join(sorted(event.name for event in shipped().events.values() if event.optional))
    with pytest.raises(
        InputError, match=rf"^there is no action 'recovery' \(did you mean recover\?\); the actions are {actions}$"
    ):
        compose(shipped(), shipped().configure(), Bounds(actions=frozenset({"recovery"})))


# what a search is told

STRANGE: list[tuple[dict[str, Any], str]] = [
    ({"max_states": 0}, "max_states cannot be 0; it is a whole number from 1, or None for no limit"),
    ({"max_states": -5}, "max_states cannot be -5; it is a whole number from 1, or None for no limit"),
    ({"max_states": "any"}, "max_states cannot be 'any'; it is a whole number from 1, or None for no limit"),
    ({"max_states": 1e6}, "max_states cannot be 1000000.0; it is a whole number from 1, or None for no limit"),
    ({"max_memory": 0}, "max_memory cannot be 0; it is a whole number from 1, or None for no limit"),
    ({"workers": 0}, "workers cannot be 0; it is a whole number from 1, or None for no limit"),
    ({"workers": True}, "workers cannot be True; it is a whole number from 1, or None for no limit"),
    ({"reductions": "partial-order"}, "reductions cannot be 'partial-order'; it is a set of names, in Python {'name'}"),
    ({"reductions": ["symmetry"]}, "there is no reduction 'symmetry'; they are partial-order"),
    ({"reductions": [None]}, "reductions cannot have None; all that is in it are names"),
]


@pytest.mark.parametrize(("chosen", "sentence"), STRANGE, ids=[repr(chosen) for chosen, _ in STRANGE])
def test_what_a_search_does_not_know_is_refused(chosen: dict[str, Any], sentence: str) -> None:
    network = system()
    for search in (
        lambda: explore.explore(network, explore.SearchOptions(**chosen)),
        lambda: explore.explore_packed(pack(network), network.events, explore.SearchOptions(**chosen)),
        lambda: explore.check(shipped(), shipped().configure("jms"), Bounds(), **chosen),
    ):
        with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
            search()


def test_a_comparison_of_what_does_not_exist_is_refused() -> None:
    """Nothing was compared, and so nothing differed."""
    network = system(messages=2, max_faults=0)
    with pytest.raises(InputError, match=r"^this system has no event 'acknowledge\(m3\)' to compare"):
        explore.compare_after(network, ("acknowledge(m1)", "acknowledge(m3)"), ["send"])
    with pytest.raises(InputError, match=r"^observable cannot be 'send'"):
        explore.compare(network, network, "send")
    with pytest.raises(InputError, match=r"^max_states cannot be 0"):
        explore.compare(network, network, ["send"], max_states=0)


def test_reductions_may_be_given_by_their_names() -> None:
    named: Any = ["partial-order"]
    assert explore.explore(system(), explore.SearchOptions(reductions=named)) == explore.explore(
        system(), explore.SearchOptions(reductions=[explore.Reduction.PARTIAL_ORDER])
    )


# memory

_UNTIL_MEMORY_ENDS = """
import json, resource, sys
from pathlib import Path
from ackfsm import cli, tables
from ackfsm.checking import explore
from ackfsm.checking.explore.search import compiled
from ackfsm.checking.network import Bounds, compose
from ackfsm.terms import Fault
from numba.core.caching import NullCache

specification = tables.load()
configuration = specification.configure("jms", {"resend_in_doubt": True})
small = Bounds(faults=frozenset(Fault))
large = Bounds(messages=2, faults=frozenset(Fault), max_faults=None, actions=frozenset({"recover"}))
network = compose(specification, configuration, small)
sliced = explore.Slicer(network).slice()
assert explore.explore_packed(sliced.packed, sliced.events, explore.SearchOptions(compiled=True)).complete
later = [function for function in vars(compiled._FUNCTIONS).values() if not function.signatures]
assert later
for function in later:  # what is called last is compiled then, whatever is kept
    function._cache = NullCache()
taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (160 << 20), taken + (160 << 20)))
answer = explore.check(specification, configuration, large, workers=int(sys.argv[1]), max_states=10_000_000)
witnesses = answer.witnesses()
found = answer.exploration
reachable = {finding.reachable for finding in answer.findings.values()}
told = [found.complete, found.stopped_by, found.states, len(witnesses), None in reachable, False in reachable]
print(json.dumps(told))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads what this process takes from /proc")
@pytest.mark.parametrize("workers", few([1, 2], 1))
def test_a_search_that_memory_stops_tells_what_it_found(workers: int) -> None:
    """Also where nothing of what it calls last was ever compiled: LLVM aborts a process without memory."""
    done = subprocess.run(
        [sys.executable, "-c", _UNTIL_MEMORY_ENDS, str(workers)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    complete, stopped_by, states, witnesses, unknown, absent = json.loads(done.stdout)
    assert (complete, stopped_by, unknown, absent) == (False, "memory", True, False)
    assert states > 100_000
    assert witnesses > 3


def test_memory_is_kept_until_a_search_that_memory_stops_looks_at_the_states_for_the_last_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """How much is needed depends on LLVM; so it is looked at that as much as was measured is kept, and given back."""
    kept: list[mmap.mmap] = []
    given_back: list[bool] = []
    record = Search._record_violations  # noqa: SLF001 - memory is given back between two calls of it

    def keep(size: int) -> mmap.mmap:
        kept.append(map_pages(size))
        return kept[-1]

    def full(*_: object) -> None:
        assert [len(pages) for pages in kept if not pages.closed] == [64 << 20]
        raise MemoryError

    def look(search: Search, depth: int) -> None:
        if search.stopped_by is not None:
            given_back.append(all(pages.closed for pages in kept))
        record(search, depth)

    monkeypatch.setattr("ackfsm.checking.explore.search.search.map_pages", keep)
    monkeypatch.setattr(Visited, "larger_table", full)
    monkeypatch.setattr(Search, "_record_violations", look)
    network = system()
    found = explore.explore_packed(pack(network), network.events, explore.SearchOptions(compiled=True))
    assert found.stopped_by == "memory"
    assert given_back
    assert all(given_back)


@pytest.mark.parametrize("allowed", [0, 1], ids=["one processor alone", "lanes as small as they are"])
def test_without_memory_for_more_a_search_goes_on_with_what_it_has(
    allowed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def buffers(arrays: Arrays, lanes: int, *sizes: int) -> SuccessorBuffers:
        if lanes > 1:
            asked.append(lanes)
            if len(asked) > allowed:
                raise MemoryError
        return make_buffers(arrays, lanes, *sizes)

    network = system(messages=2)
    packed = pack(network)
    whole = explore.explore_packed(packed, network.events, explore.SearchOptions(workers=1))
    monkeypatch.setattr("ackfsm.checking.explore.search.search.make_buffers", buffers)
    monkeypatch.setattr("ackfsm.checking.explore.search.search._SUCCESSORS_EACH", 1)
    pace = Tuning(plain_states=1, parallel_states=100, chunk=1_000)
    found = explore.explore_packed(packed, network.events, explore.SearchOptions(workers=2, tuning=pace))
    assert len(asked) > allowed
    assert dataclasses.replace(found, bytes=0) == dataclasses.replace(whole, bytes=0)


def test_where_memory_ends_in_the_midst_it_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_left(_: Search) -> None:
        raise MemoryError

    monkeypatch.setattr(Search, "_grow_local_states", nothing_left)
    with pytest.raises(HostError, match=r"^there is not enough memory to go on after [\d,]+ states in \d+ steps; to"):
        explore.explore(system())


def test_the_screen_says_that_memory_ended(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Visited, "larger_table", full)
    assert cli.main(["check", "--engine", "local"]) == 3
    assert "the search stopped at the end of this machine's memory" in capsys.readouterr().out
