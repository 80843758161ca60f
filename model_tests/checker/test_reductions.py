"""A reduced search finds some of the states and all of the anomalies, and each condition of it is needed."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Collection, Mapping

import pytest
from hypothesis import given, settings

from ackfsm import cli
from ackfsm.checking import explore
from ackfsm.checking.explore import Reduction, Slicer, pack
from ackfsm.checking.explore.reduction.ample import AmpleCondition, ample_candidates, compute_ample_sets
from ackfsm.checking.explore.reduction.columns import bits
from ackfsm.checking.explore.reduction.independence import EventTables, SearchPhase, commute, phase_counter, phases_of
from ackfsm.checking.explore.reduction.sleep import absorbs, left_commutes
from ackfsm.checking.explore.search.kernel_ample import NO_POR, AmpleSets
from ackfsm.checking.explore.search.options import Tuning
from ackfsm.checking.explore.search.reached import state_table
from ackfsm.checking.explore.search.search import Search
from ackfsm.checking.network import Bounds, Instance, Network, NetworkEvent, Participant, compose
from ackfsm.tables import EventRef, Fsm
from ackfsm.terms import Anomaly, Fault, InputError
from model_tests.reductions import PARTIAL_ORDER, compared
from model_tests.support.checker.plain_search import breadth_first, rests
from model_tests.support.tables import composed, networks, row, shipped, unpacked
from model_tests.support.whole import WHOLE
from model_tests.symbolic_matrix import cells

TUNING = "ackfsm.checking.explore.search.search.DEFAULT_TUNING"
NUMBA = "ackfsm.checking.explore.search.search._numba_is_there"


@dataclasses.dataclass(frozen=True)
class _Machine:
    """Steps ``from event to``, the first state first; what watches for loss has ``marked`` or ``at_rest`` states."""

    steps: str
    marked: str = ""
    at_rest: str = ""

    def instance(self) -> Instance:
        triples = [step.split() for step in self.steps.split(", ")]
        states = tuple(dict.fromkeys(state for before, _, after in triples for state in (before, after)))
        events = tuple(dict.fromkeys(EventRef(event) for _, event, _ in triples))
        targets = {(before, event): after for before, event, after in triples}
        rows = {(s, e): row(s, e, targets.get((s, e.name))) for s in states for e in events}
        watching = Anomaly.LOSS if self.marked or self.at_rest else None
        fsm = Fsm("machine", states, states[0], events, rows)
        return Instance(fsm, (), watching, frozenset(self.marked), frozenset(self.at_rest))


def _system(events: str, *machines: _Machine, free: str = "") -> Network:
    instances = tuple(machine.instance() for machine in machines)
    return Network(
        shipped().configure(), Bounds(), instances, tuple(_event(name, instances, free) for name in events.split())
    )


def _event(name: str, instances: Collection[Instance], free: str) -> NetworkEvent:
    ref = EventRef(name)
    parts = (Participant(number, ref) for number, instance in enumerate(instances) if ref in instance.fsm.alphabet)
    return NetworkEvent(name, (), name in free.split(), tuple(parts))


def _searched(network: Network, ample: AmpleSets = NO_POR) -> tuple[set[str], set[tuple[str, ...]]]:
    """The anomalies and the states that are found."""
    packed = pack(network)
    with Search(packed, ample=ample) as search:
        while search.has_work():
            search.expand_batch()
        found = {
            name for name, found in zip(packed.anomalies, search.first_violations, strict=True) if found is not None
        }
        return found, {unpacked(network, numbers) for numbers in state_table(search).tolist()}


def _agree(network: Network) -> int:
    """How many states are spared, once the same anomalies were found in them."""
    (expected, states), (found, some) = _searched(network), _searched(network, compute_ample_sets(pack(network)))
    assert found == expected
    assert some <= states
    assert _resting(network, some) == _resting(network, states)
    return len(states) - len(some)


def _resting(network: Network, states: Collection[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Those of the ``states`` that are at rest: none of them may be left out."""
    return {state for state in states if rests(network, state)}


# random systems


@settings(max_examples=150 if WHOLE else 50)
@given(networks())
def test_random_systems_show_the_same_in_some_of_their_states(network: Network) -> None:
    _agree(network)


def test_systems_of_machines_that_share_few_events_show_the_same_in_fewer_states() -> None:
    spared = [_agree(_loose(random.Random(seed))) for seed in range(400)]
    assert sum(more > 0 for more in spared) > 30, "most have conflicts everywhere; these have not"


def _loose(draw: random.Random) -> Network:
    """Machines that mostly go forward, and often a counter of the events that need not happen."""
    names = [f"e{n}" for n in range(draw.randint(2, 7))]
    free = draw.sample(names, draw.choice([0, 0, 1, 2]) if len(names) > 2 else 0)
    machines = [_forward(draw, draw.sample(names, draw.randint(1, min(3, len(names))))) for _ in range(4)]
    if free:
        left = draw.randint(1, 2)
        machines.append(_Machine(", ".join(f"{n} {event} {n - 1}" for n in range(left, 0, -1) for event in free)))
    return _system(" ".join(names), *machines, free=" ".join(free))


def _forward(draw: random.Random, events: list[str]) -> _Machine:
    states = "abcd"[: draw.randint(1, 4)]
    steps = [(s, e, draw.choice(states[n:])) for n, s in enumerate(states) for e in events if draw.random() < 0.75]
    text = ", ".join(f"{before} {event} {after}" for before, event, after in [("a", events[0], states[-1]), *steps])
    return _Machine(text, *("".join(draw.sample(states[1:], len(states) // 3)) for _ in range(2)))


# each condition


_PAIR = _Machine("0 first 1"), _Machine("0 second 1")

_NEEDED: Mapping[AmpleCondition, Network] = {
    AmpleCondition.MUST_HAPPEN: _system(
        "first second",
        *_PAIR,
        _Machine("- first x, - second y, x second x, y first x", at_rest="y"),
        free="first",
    ),
    AmpleCondition.INDEPENDENT: _system(
        "first second", *_PAIR, _Machine("- first x, - second y, x second x, y first !", marked="!")
    ),
    AmpleCondition.INVISIBLE: _system(
        "first second", *_PAIR, _Machine("- first x, - second !, x second y, ! first y", marked="!")
    ),
    AmpleCondition.CYCLE_PROVISO: _system("first second", _Machine("0 first 0"), _Machine("- second !", marked="!")),
}


@pytest.mark.parametrize("condition", AmpleCondition)
def test_each_condition_is_needed(condition: AmpleCondition) -> None:
    network = _NEEDED[condition]
    assert breadth_first(network).anomalies.keys() == {Anomaly.LOSS}
    _agree(network)
    found, _ = _searched(network, compute_ample_sets(pack(network), set(AmpleCondition) - {condition}))
    assert found == set(), "it is missed without the condition"


def test_what_may_come_disturbs_and_not_only_what_can_happen_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """``second`` has to wait for ``before``, and still it comes before ``first``."""
    network = _system(
        "first before second",
        _Machine("0 first 1"),
        _Machine("0 before 1, 1 second 2"),
        _Machine("- first x, - second y, x second x, y first !", marked="!"),
    )
    assert breadth_first(network).anomalies.keys() == {Anomaly.LOSS}
    _agree(network)
    monkeypatch.setattr(SearchPhase, "future_from", _possible_now)
    assert _searched(network, compute_ample_sets(pack(network)))[0] == set()


def _possible_now(phase: SearchPhase, machine: int) -> list[int]:
    everything = (1 << len(phase.tables.parts)) - 1
    sizes = range(phase.tables.packed.size[machine])
    return [everything & ~sum(e for column, e in phase.columns(machine) if column[state] < 0) for state in sizes]


def test_a_chain_of_independent_steps_is_one_line() -> None:
    """Three machines of three steps each: 4 x 4 x 4 states, of which one order has 10."""
    machines = [_Machine(f"0 a{n} 1, 1 b{n} 2, 2 c{n} 3") for n in range(3)]
    network = _system(" ".join(f"{x}{n}" for x in "abc" for n in range(3)), *machines)
    assert len(_searched(network)[1]) == 64
    assert len(_searched(network, compute_ample_sets(pack(network)))[1]) == 10


def test_events_that_must_happen_and_go_round_are_not_put_off_for_ever() -> None:
    """Of the events of a circle all but the last may be expanded alone."""
    round_and_round = _Machine("0 there 1, 1 back 0")
    network = _system("there back other", round_and_round, _Machine("- other !", marked="!"))
    _agree(network)
    (phase,) = phases_of(EventTables(pack(network)), None)
    assert [network.events[event].name for event in bits(ample_candidates(phase))] == ["there", "other"]


def test_columns_commute_where_either_order_leads_to_the_same_state() -> None:
    up, down, stuck = (1, 2, 2), (0, 0, 1), (1, -1, 2)
    assert [commute(up, up, state) for state in range(3)] == [True] * 3
    assert [commute(up, down, state) for state in range(3)] == [False, True, False]
    assert not commute(stuck, stuck, 0), "the first takes what the second needs"


# phases


def test_the_budget_of_faults_is_what_ends() -> None:
    network = composed(max_faults=2)
    tables = EventTables(pack(network))
    counter = phase_counter(tables)
    assert counter is not None
    budget = network.instances[counter.machine]
    assert budget.fsm.name == "fault_budget"
    assert [n for n, _ in enumerate(budget.fsm.states) if counter.ended >> n & 1] == [budget.fsm.states.index("0")]
    before, after = phases_of(tables, counter)
    faults = sum(1 << n for n, event in enumerate(network.events) if event.name in set(Fault))
    assert before.alive & faults
    assert after.future & faults == 0
    assert after.future & ~before.future == 0


def test_where_nothing_can_fail_there_is_one_phase() -> None:
    network = composed(faults=frozenset(), max_faults=0)
    packed = Slicer(network).slice().packed
    assert compute_ample_sets(packed).phases == 1


# the tables


def test_a_sample_of_the_matrix_has_the_same_verdicts() -> None:
    """All of it: ``python -m model_tests.reductions``."""
    every = [cell for row in cells(1, ["jms"]) for cell in row]
    for cell in random.Random(3).sample(every, 60 if WHOLE else 20):
        network = compose(shipped(), *cell)
        assert compared(network, Slicer(network).slice(), compiled=True).difference is None, str(cell)


@pytest.mark.parametrize(
    ("chosen", "bounds"),
    [
        ({}, {}),
        ({"ack_mode": "PRE_ACKNOWLEDGE", "consumption": "receive"}, {"actions": frozenset({"recover"})}),
        ({"send_mode": "asynchronous"}, {"messages": 2, "max_faults": 0}),
    ],
)
def test_no_state_at_rest_is_left_out(chosen: Mapping[str, object], bounds: Mapping[str, object]) -> None:
    assert _agree(composed("jms", chosen, **bounds)) > 400, "many others are"


@pytest.mark.parametrize(
    ("chosen", "bounds", "times"),
    [
        ({}, {"messages": 2}, 2),
        ({"ack_mode": "CLIENT_ACKNOWLEDGE"}, {"messages": 2}, 4),
        ({"ack_mode": "SESSION_TRANSACTED"}, {"messages": 2}, 4),
        ({"resend_in_doubt": True}, {"messages": 1}, 1),
        ({}, {"max_faults": 2}, 1),
        ({"journal_sync_non_transactional": False}, {"faults": frozenset({Fault.BROKER_CRASH}), "messages": 2}, 1),
        ({}, {"faults": frozenset({Fault.BROKER_KILL, Fault.CONSUMER_CRASH}), "max_faults": None}, 1),
        ({}, {"actions": frozenset({"recover"})}, 1),
    ],
)
def test_larger_systems_have_the_same_verdicts(
    chosen: Mapping[str, object], bounds: Mapping[str, object], times: int
) -> None:
    network = composed("jms", chosen, **bounds)
    one = compared(network, Slicer(network).slice(), compiled=True)
    assert one.difference is None
    assert times * one.small.states <= one.full.states


def test_a_reduction_that_is_not_sound_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: if every two events were at peace, the tables would show less."""
    network = composed("jms", {"redelivery_mark_persisted": False, "journal_sync_non_transactional": False})
    small = Slicer(network).slice()
    assert compared(network, small).difference is None
    monkeypatch.setattr(SearchPhase, "dependent", lambda phase: [0] * len(phase.tables.parts))
    assert compared(network, small).difference is not None


def test_a_step_that_is_spared_wrongly_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If any event might come before any other, or absorbed it, states would be missed."""
    network = composed("jms", {})
    small = Slicer(network).slice()
    assert compared(network, small).difference is None
    for condition in ("left_commutes", "absorbs"):
        with monkeypatch.context() as patch:
            patch.setattr(f"ackfsm.checking.explore.reduction.sleep.{condition}", lambda *_: True)
            assert "against" in str(compared(network, small).difference), condition


@pytest.mark.parametrize(
    ("first", "then", "may"),
    [
        pytest.param((1, -1, 3, -1), (2, 3, -1, -1), True, id="both ways round a diamond"),
        pytest.param((-1, -1, 3, -1), (2, -1, -1, -1), False, id="it is enabled by the other"),
        pytest.param((1, -1, 3, -1), (2, -1, -1, -1), False, id="it disables the other"),
        pytest.param((1, -1, 3, -1), (2, 2, -1, -1), False, id="the other order leads elsewhere"),
        pytest.param((1, -1, -1, -1), (2, -1, -1, -1), True, id="never one after the other"),
    ],
)
def test_an_event_comes_before_another_only_where_both_orders_lead_to_the_same(
    first: tuple[int, ...],
    then: tuple[int, ...],
    may: bool,  # noqa: FBT001
) -> None:
    assert left_commutes(first, then) is may


def test_steps_that_lead_nowhere_new_are_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Independent counters: of the many ways into a state one is gone."""
    network, taken, steps = composed("jms", {"block_on_acknowledge": False}, messages=2), [], set()
    for every_step in (False, True):
        with monkeypatch.context() as patch:
            fills: list[int] = []
            patch.setattr(Search, "_make_room", _counting(Search._make_room, fills))  # noqa: SLF001
            found = explore.explore(network, explore.SearchOptions(every_step=every_step))
            taken.append(sum(fills))
            steps.add(found.transitions)
    (every,) = steps
    assert 2 * taken[0] < every <= taken[1]


def _counting(grow: Callable[[Search, int], bool], fills: list[int]) -> Callable[[Search, int], bool]:
    def counted(search: Search, lanes: int) -> bool:
        fills.append(sum(int(fill) for fill in search.buffers.fill))
        return grow(search, lanes)

    return counted


def test_compiled_and_plain_code_and_any_number_of_processors_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    network, found = composed("jms", {}, messages=2), []
    with monkeypatch.context() as without_numba:
        without_numba.setattr(NUMBA, lambda: False)
        found.append(explore.explore(network, explore.SearchOptions(reductions=PARTIAL_ORDER)))
    for workers in (1, 2, 5):
        monkeypatch.setattr(TUNING, Tuning(plain_states=1, parallel_states=10))
        found.append(explore.explore(network, explore.SearchOptions(reductions=PARTIAL_ORDER, workers=workers)))
    assert [one.compiled for one in found] == [False, True, True, True]
    assert all(dataclasses.replace(one, compiled=False, bytes=0) == found[0] for one in found)


# the answer


def test_a_check_that_reduces_says_so_and_answers_the_same() -> None:
    specification = shipped()
    configuration = specification.configure("jms", {"redelivery_mark_persisted": False})
    bounds = Bounds(faults=frozenset(Fault))
    full = explore.check(specification, configuration, bounds)
    small = explore.check(specification, configuration, bounds, reductions=PARTIAL_ORDER)
    assert small.as_json()["reductions"] == ["partial-order"]
    assert "reductions" not in full.as_json()
    assert small.exploration.states < full.exploration.states
    assert [v.anomaly for v in small.violations] == [v.anomaly for v in full.violations] != []
    assert (small.guarantees, small.strongest) == (full.guarantees, full.strongest)
    assert {w.anomaly for w in small.witnesses()} == {w.anomaly for w in full.witnesses()}


def test_what_is_left_out_cannot_be_looked_at() -> None:
    with pytest.raises(InputError, match="leave --reduce out"):
        explore.check(shipped(), shipped().configure("jms"), Bounds(), forever=(), reductions=[Reduction.PARTIAL_ORDER])


@pytest.mark.parametrize(
    "other", ["--progress", "--forever recover --action recover", "--engine spark", "--engine symbolic"]
)
def test_the_command_refuses_what_does_not_go_together(other: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(f"check --reduce partial-order {other}".split()) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert "--reduce" in told.err


def test_the_screen_says_what_was_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--reduce", "partial-order", "--fault", "consumer_crash"]) == 0
    screen = capsys.readouterr().out
    assert "all that partial-order leaves" in screen
    assert "ways there, not always the shortest" in screen
    assert cli.main(["check", "--fault", "consumer_crash"]) == 0
    screen = capsys.readouterr().out
    assert "partial-order" not in screen
    assert "shortest ways there" in screen


def test_an_event_absorbs_another_only_where_it_leads_to_the_same_without_it() -> None:
    reset, step = (0, 0, 0), (1, 2, -1)
    assert absorbs(reset, step)
    assert not absorbs(step, step), "two steps are more than one"
    assert not absorbs((0, 0, -1), (-1, -1, 0)), "it could not come without the other"


def test_nothing_is_spared_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    question = ["check", "--json", "--fault", "consumer_crash"]
    answers = []
    for more in ([], ["--reduce", "none"]):
        assert cli.main([*question, *more]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    spared, whole = ({k: v for k, v in answer.items() if k not in {"seconds", "anomalies"}} for answer in answers)
    assert spared == whole
    assert cli.main([*question, "--reduce", "none", "--reduce", "partial-order"]) == 2
    assert "reduces nothing" in capsys.readouterr().err


def test_another_search_does_not_reduce() -> None:
    with pytest.raises(InputError, match="only this process searches with partial-order"):
        explore.check(
            shipped(),
            shipped().configure("jms"),
            Bounds(),
            search=lambda network, **_: explore.explore(network),
            reductions=PARTIAL_ORDER,
        )
