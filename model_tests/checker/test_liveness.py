"""Progress against an independent definition of it, its scenarios, its witnesses, and what it is told from tables."""

import dataclasses
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackfsm import cli, tables
from ackfsm.checking import explore
from ackfsm.checking.explore import Interpreter, LivenessFailure, LivenessFinding, pack
from ackfsm.checking.explore.questions.liveness import find_liveness
from ackfsm.checking.explore.questions.liveness_graph import LivenessGraph
from ackfsm.checking.explore.search.options import SearchOptions, Tuning
from ackfsm.checking.explore.search.reached import state_table
from ackfsm.checking.explore.search.search import Search
from ackfsm.checking.network import Bounds, Instance, Network, NetworkEvent, Participant, compose
from ackfsm.tables import EventRef, Fsm, LivenessProperty, Waiting
from ackfsm.terms import Anomaly, Configuration, Fault, InputError, SpecError
from model_tests.support.checker.plain_search import breadth_first
from model_tests.support.tables import (
    HERE,
    bounds,
    configurations,
    copy_of_spec,
    networks,
    replace,
    row,
    shipped,
    unpacked,
)
from model_tests.support.whole import WHOLE, few

EVERY = frozenset(Fault)
TUNING = "ackfsm.checking.explore.search.search.DEFAULT_TUNING"
LISTENER: dict[str, Any] = {"consumption": "listener", "listener_exception": "redeliver"}

State = tuple[str, ...]
Edge = tuple[str, int]


# an independent definition: a greatest fixed point over states, with no word of components


class Plain:
    """All states of a network with their live edges, by :meth:`Network.step` alone.

    A state is its place in the order in which a search in breadth finds it, so that of two the nearer is the smaller.
    """

    def __init__(self, network: Network, forever: Collection[str] = ()) -> None:
        self.network = network
        self.states: list[State] = [network.initial]
        self.depth = [0]
        self.enabled: list[set[str]] = []
        self.live: list[list[Edge]] = []
        self.into: list[set[int]] = [set()]
        self.numbers = {network.initial: 0}
        events = [(event, event.label, not event.may_never_happen) for event in network.events]
        for number, state in enumerate(self.states):  # which grows meanwhile
            steps = [(known, after) for known in events if (after := network.step(state, known[0])) is not None]
            self.enabled.append({label for (_, label, must), _ in steps if must})
            self.live.append([])
            for (event, label, must), after in steps:
                place = self.place(after, self.depth[number] + 1)
                if must or event.name in forever:
                    self.live[number].append((label, place))
                    self.into[place].add(number)

    def place(self, state: State, depth: int) -> int:
        """Where ``state`` is, which is at the end if it was not known."""
        if (place := self.numbers.setdefault(state, len(self.states))) == len(self.states):
            self.states.append(state)
            self.depth.append(depth)
            self.into.append(set())
        return place

    def waiting(self, progress: LivenessProperty) -> Iterable[set[int]]:
        """For each instance that the property speaks of the states in which it waits."""
        for waiting in progress.waiting:
            for i, instance in enumerate(self.network.instances):
                if (instance.anomaly, instance.fsm.name) == (waiting.anomaly, waiting.machine):
                    yield {number for number, state in enumerate(self.states) if state[i] in waiting.pending}

    def halts(self, progress: LivenessProperty) -> int | None:
        """The distance of the nearest state that is at rest while something waits."""
        found = [self.depth[s] for states in self.waiting(progress) for s in states if not self.enabled[s]]
        return min(found, default=None)

    def goes_round(self, progress: LivenessProperty) -> int | None:
        """The distance of the nearest state on a fair cycle in which one instance waits all the time."""
        found = [self.depth[s] for states in self.waiting(progress) if (s := self.nearest_round(states)) is not None]
        return min(found, default=None)

    def nearest_round(self, states: set[int]) -> int | None:
        """The nearest state on a fair cycle inside ``states``."""
        left = self.fair(states)
        while left:
            state = min(left)
            inside = self.reach({state}, states) & self.reach({state}, states, back=True)
            if self.is_fair(inside):
                return state
            left -= inside  # from each of them each is reached, so it is the same for all
        return None

    def is_fair(self, inside: set[int]) -> bool:
        """Whether a run can visit these states, each from each, for ever and fairly."""
        labels = {label for state in inside for label, after in self.live[state] if after in inside}
        always = set.intersection(*(self.enabled[state] for state in inside))
        return bool(labels) and always <= labels

    def fair(self, states: set[int]) -> set[int]:
        """Emerson and Lei: the states from which a fair run stays in ``states`` for ever."""
        left, before = set(states), None
        while left != before:
            before = set(left)
            left = {state for state in left if any(after in left for _, after in self.live[state])}
            for label in sorted({label for state in left for label in self.enabled[state]}):
                goals = {
                    state
                    for state in left
                    if label not in self.enabled[state]
                    or any(name == label and after in left for name, after in self.live[state])
                }
                left = self.reach(goals, left, back=True)
        return left

    def reach(self, origin: set[int], inside: set[int], *, back: bool = False) -> set[int]:
        """What is reached from ``origin``, or what reaches it, by live events that stay ``inside``."""
        reached, queue = set(origin), list(origin)
        while queue:
            state = queue.pop()
            beside = self.into[state] if back else {after for _, after in self.live[state]}
            new = (beside & inside) - reached
            reached |= new
            queue.extend(new)
        return reached


def found_in(
    network: Network,
    properties: Mapping[str, LivenessProperty],
    forever: Collection[str] = (),
    max_states: int | None = None,
) -> dict[str, LivenessFinding]:
    with Search(pack(network), SearchOptions(max_states=max_states, every_step=True)) as search:
        while search.has_work():
            search.expand_batch()
        return find_liveness(search, network, properties, forever=forever)


def replayed(network: Network, finding: LivenessFinding) -> None:
    """Perform a witness on the other executor, its cycle twice, and hold it to the definition."""
    executor = Interpreter(network)
    for event in finding.steps:
        executor.fire(event.label)
    start = executor.state
    assert finding.waiting is not None
    number = network.instances.index(finding.waiting)
    pending = next(w.pending for w in finding.definition.waiting if w.machine == finding.waiting.fsm.name)
    enabled = [labels(executor)]
    for event in (*finding.cycle, *finding.cycle):
        assert executor.state[number] in pending
        executor.fire(event.label)
        enabled.append(labels(executor))
    assert executor.state == start
    assert executor.state[number] in pending
    if finding.kind is LivenessFailure.DEADLOCK:
        assert not finding.cycle
        assert not enabled[0]
    else:
        assert finding.cycle
        assert set.intersection(*enabled) <= {event.label for event in finding.cycle}, "fair"


def labels(executor: Interpreter) -> set[str]:
    return {event.label for event in executor.enabled() if not event.may_never_happen}


def agree(
    network: Network, properties: Mapping[str, LivenessProperty], forever: Collection[str]
) -> set[LivenessFailure | None]:
    plain, found = Plain(network, forever), found_in(network, properties, forever)
    assert found.keys() == properties.keys()
    for name, finding in found.items():
        halts = plain.halts(properties[name])
        round_ = plain.goes_round(properties[name]) if halts is None else None
        assert finding.kind == (
            LivenessFailure.DEADLOCK if halts is not None else LivenessFailure.LASSO if round_ is not None else None
        )
        assert finding.holds is (finding.kind is None)
        if finding.kind is not None:
            assert len(finding.steps) == (halts if halts is not None else round_)
            replayed(network, finding)
    return {finding.kind for finding in found.values()}


def watching(network: Network) -> dict[str, LivenessProperty]:
    """A property of every machine with rows: it waits at rest, or in its last state; and one that always waits."""
    told = {}
    idle = [number for number, instance in enumerate(network.instances) if not instance.fsm.rows]
    for number, instance in enumerate(network.instances):
        if number in idle[1:]:
            continue
        pending = instance.marked_at_rest or frozenset(instance.fsm.states[-1:])
        waiting = (Waiting(instance.anomaly, instance.fsm.name, pending),)  # type: ignore[arg-type] # any name will do
        told[f"p{number}"] = LivenessProperty(f"p{number}", "means", "because", "model", waiting)
    return told


def as_composed(network: Network) -> Network:
    """The same network with a name of its own for every machine, and without events that never happen."""
    instances = tuple(
        dataclasses.replace(instance, fsm=dataclasses.replace(instance.fsm, name=f"busy_{number}"))
        for number, instance in enumerate(network.instances)
    )
    events = tuple(
        event
        for event in network.events
        if all(part.event in instances[part.instance].fsm.possible for part in event.participants)
    )
    return dataclasses.replace(network, instances=instances, events=events)


# against the definition


@settings(max_examples=100 if WHOLE else 34)
@given(networks(), st.sets(st.sampled_from([f"event_{n}" for n in range(5)])))
def test_random_systems_make_the_progress_that_the_definition_says(network: Network, forever: set[str]) -> None:
    network = as_composed(network)
    agree(network, watching(network), forever)


@pytest.mark.parametrize("compiled", [False, True])
def test_random_systems_show_every_outcome(*, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither search is compared on systems that always rest, or never go round."""
    monkeypatch.setattr(TUNING, Tuning(plain_states=1 if compiled else 10**9))
    seen: dict[LivenessFailure | None, int] = dict.fromkeys([*LivenessFailure, None], 0)

    @settings(max_examples=50, derandomize=True, database=None)
    @given(networks())
    def collect(network: Network) -> None:
        network = as_composed(network)
        for kind in agree(network, watching(network), ()):
            seen[kind] += 1

    collect()
    assert min(seen.values()) > 5, seen


@pytest.mark.parametrize(
    ("may_never_happen", "forever", "kind"),
    [
        pytest.param(True, ["leave"], LivenessFailure.LASSO, id="it may go on for ever but need not happen"),
        pytest.param(True, [], LivenessFailure.LASSO, id="it has stopped"),
        pytest.param(False, [], None, id="it is always enabled and so it happens"),
    ],
)
def test_who_waits_in_a_cycle_is_saved_only_by_what_must_happen(
    may_never_happen: bool,  # noqa: FBT001
    forever: list[str],
    kind: LivenessFailure | None,
) -> None:
    tick, leave = EventRef("tick"), EventRef("leave")
    rows = {("in", tick): "in", ("in", leave): "out", ("out", tick): None, ("out", leave): None}
    fsm = Fsm("waits", ("in", "out"), "in", (tick, leave), {(s, e): row(s, e, to) for (s, e), to in rows.items()})
    events = (
        NetworkEvent("tick", (), may_never_happen=False, participants=(Participant(0, tick),)),
        NetworkEvent("leave", (), may_never_happen=may_never_happen, participants=(Participant(0, leave),)),
    )
    network = Network(shipped().configure(), Bounds(), (Instance(fsm, ()),), events)
    told = {"left": LivenessProperty("left", "means", "because", "model", (Waiting(None, "waits", frozenset({"in"})),))}
    assert agree(network, told, forever) == {kind}


@settings(max_examples=8)
@given(configurations(), bounds(messages=1, budgets=(0, 1)))
def test_random_configurations_make_the_progress_that_the_definition_says(
    configuration: Configuration, limits: Bounds
) -> None:
    agree(compose(shipped(), configuration, limits), shipped().liveness, limits.actions)


@settings(max_examples=8)
@given(configurations(), st.sets(st.sampled_from([Fault.LISTENER_EXCEPTION, Fault.CONSUMER_LINK_LOSS]), min_size=1))
def test_what_goes_on_for_ever_does_what_the_definition_says(configuration: Configuration, faults: set[Fault]) -> None:
    limits = Bounds(faults=frozenset(faults), max_faults=None)
    agree(compose(shipped(), configuration, limits), shipped().liveness, faults)


# scenarios


def answered(
    forever: Collection[str] = (), *, profile: str = "jms", limits: Bounds | None = None, **chosen: object
) -> tuple[Network, Mapping[str, LivenessFinding]]:
    """What a check tells; every witness is performed."""
    limits = limits or Bounds(faults=frozenset(map(Fault, forever)), max_faults=None)
    configuration = shipped().configure(profile, chosen)
    answer = explore.check(shipped(), configuration, limits, forever=forever)
    network = compose(shipped(), configuration, limits)
    for finding in answer.liveness.values():
        if finding.kind is not None:
            replayed(network, finding)
    return network, answer.liveness


def kinds(progress: Mapping[str, LivenessFinding]) -> dict[str, str | None]:
    return {name: finding.kind and finding.kind.value for name, finding in progress.items()}


MAKES_PROGRESS = {"call_returns": None, "delivered": None, "processed": None, "settled": None}


def test_a_listener_that_always_throws_gets_its_message_for_ever() -> None:
    _, progress = answered(["listener_exception"], **LISTENER, max_delivery_attempts=0)
    assert kinds(progress) == MAKES_PROGRESS | {"processed": "lasso", "settled": "lasso"}
    cycle = [event.name for event in progress["processed"].cycle]
    assert sorted(cycle) == ["arrive", "delivered_flagged", "dispatch_again", "listener_exception", "requeue"]


@pytest.mark.parametrize("attempts", [1, 2, 10])
def test_with_a_limit_of_attempts_it_ends_in_the_dead_letter_queue(attempts: int) -> None:
    network, progress = answered(["listener_exception"], **LISTENER, max_delivery_attempts=attempts)
    assert kinds(progress) == MAKES_PROGRESS
    assert "dead_lettered" in {event.name for event in network.events}


def test_a_listener_that_stops_throwing_gets_its_message_processed() -> None:
    limits = Bounds(faults=frozenset({Fault.LISTENER_EXCEPTION}), max_faults=None)
    _, progress = answered([], limits=limits, **LISTENER, max_delivery_attempts=0)
    assert kinds(progress) == MAKES_PROGRESS


@pytest.mark.parametrize("profile", ["jms", "rabbitmq", "artemis"])
def test_a_message_that_kills_its_consumer_ends_where_attempts_have_a_limit(profile: str) -> None:
    """The consumer dies whenever it is busy with the message, and at no other time."""
    crash = Bounds(faults=frozenset({Fault.CONSUMER_CRASH}), max_faults=None)
    busy = dataclasses.replace(crash, strikes_while="processing.busy")
    for limits, attempts, kind in ((busy, 0, "lasso"), (busy, 3, None), (crash, 3, "lasso")):
        network, progress = answered(["consumer_crash"], profile=profile, limits=limits, max_delivery_attempts=attempts)
        assert (kinds(progress)["settled"], network.bounds.strikes_while) == (kind, limits.strikes_while)
    dead = {"dead_lettered", "destroyed"} & {event.name for event in network.events}
    assert dead, "that is how it ends"


def test_a_fault_strikes_while_the_first_message_is_in_hand_and_not_the_second() -> None:
    limits = Bounds(messages=2, faults=frozenset({Fault.CONSUMER_CRASH}), max_faults=1, strikes_while="processing.busy")
    network = compose(shipped(), shipped().configure("jms"), limits)
    crashes = [
        dict(zip((instance.label for instance in network.instances), state, strict=True))
        for state in breadth_first(network).depth
        for event in network.events
        if event.name == "consumer_crash" and network.step(state, event)
    ]
    assert {state["processing(m1)"] for state in crashes} == {"busy"}
    assert {state["processing(m2)"] for state in crashes} == {"idle"}


def test_an_application_that_recovers_for_ever_settles_nothing() -> None:
    limits = Bounds(actions=frozenset({"recover"}))
    chosen: dict[str, Any] = {"ack_mode": "CLIENT_ACKNOWLEDGE", "max_delivery_attempts": 0}
    _, progress = answered(["recover"], limits=limits, **chosen)
    assert progress["settled"].kind is LivenessFailure.LASSO
    assert "recover" in [event.name for event in progress["settled"].cycle]
    _, progress = answered([], limits=limits, **chosen)
    assert kinds(progress) == MAKES_PROGRESS, "and one that does so as often as it likes, but not for ever, settles all"


def test_a_threshold_without_a_timer_leaves_the_call_blocked() -> None:
    chosen: dict[str, Any] = {
        "publish_window": 3,
        "confirm_threshold": 2,
        "confirm_timer": False,
        "ack_event_mode": "WINDOWED",
    }
    _, progress = answered([], limits=Bounds(), **chosen)
    assert kinds(progress) == MAKES_PROGRESS | {"call_returns": "halts"}
    assert progress["call_returns"].waiting is not None
    assert progress["call_returns"].waiting.label == "blocked_send(m1)"
    _, progress = answered([], limits=Bounds(), **chosen | {"confirm_timer": True})
    assert kinds(progress) == MAKES_PROGRESS


def test_an_application_that_never_acknowledges_settles_nothing() -> None:
    limits = Bounds(without=frozenset({"acknowledge"}))
    _, progress = answered([], limits=limits, ack_mode="CLIENT_ACKNOWLEDGE")
    assert kinds(progress) == MAKES_PROGRESS | {"settled": "halts"}


def test_a_message_behind_one_that_comes_again_for_ever_is_not_owed_a_turn() -> None:
    limits = Bounds(messages=2, faults=frozenset({Fault.LISTENER_EXCEPTION}), max_faults=None)
    _, progress = answered(["listener_exception"], limits=limits, **LISTENER, max_delivery_attempts=0)
    assert progress["delivered"].kind is LivenessFailure.LASSO
    assert progress["delivered"].waiting is not None
    assert progress["delivered"].waiting.label == "owed_to_the_application(m2)"


def test_once_faults_stop_nothing_goes_round() -> None:
    """Every fault, as often as it likes: what then is left to happen has an end in every mode."""
    for mode in ("AUTO_ACKNOWLEDGE", "SESSION_TRANSACTED"):
        configuration = shipped().configure("jms", {"ack_mode": mode, "consumption": "listener"})
        limits = Bounds(faults=EVERY, max_faults=1)
        answer = explore.check(shipped(), configuration, limits, forever=())
        assert LivenessFailure.LASSO not in {finding.kind for finding in answer.liveness.values()}


# a livelock that somebody has put into the tables


ARRIVES = "      arrive: {to: prefetched, because: the library prefetches, source: EMS-PREF; RMQ confirms}\n"


@pytest.fixture
def livelock(tmp_path: Path) -> Path:
    """The broker takes back what it has sent whenever it likes, so that no consumer ever sees it."""
    spec = copy_of_spec(tmp_path)
    replace(
        spec,
        "machines/consumer.yaml",
        (
            ARRIVES,
            ARRIVES + "      requeue: {to: absent, because: a row that somebody has put in, source: model}\n",
        ),
        (
            "    arrive(earlier): {ignore: no",
            "    requeue: {refuse: it is not in flight}\n    arrive(earlier): {ignore: no",
        ),
        (
            "      dispatch_first, dispatch_again: {ignore: nothing of the copy",
            "      requeue: {ignore: in flight}\n      dispatch_first, dispatch_again: {ignore: nothing of the copy",
        ),
    )
    return spec


def test_a_livelock_in_the_tables_is_caught(livelock: Path) -> None:
    specification = tables.load(livelock)
    configuration = specification.configure("jms")
    answer = explore.check(specification, configuration, Bounds(), forever=())
    network = compose(specification, configuration, Bounds())
    finding = answer.liveness["delivered"]
    assert finding.kind is LivenessFailure.LASSO
    assert sorted(event.name for event in finding.cycle) == ["dispatch_again", "requeue"]
    replayed(network, finding)
    assert finding.promised, "loss is promised never to happen, and the message never comes"
    assert not answer.violations, "it is no anomaly, as the system never comes to rest"
    assert not answer.keeps_promises


# limits


@given(st.integers(1, 400))
@settings(max_examples=25 if WHOLE else 9)
def test_a_search_that_is_stopped_does_not_claim_what_it_has_not_seen(limit: int) -> None:
    configuration = shipped().configure("jms", LISTENER | {"max_delivery_attempts": 0})
    limits = Bounds(faults=frozenset({Fault.LISTENER_EXCEPTION}), max_faults=None)
    network = compose(shipped(), configuration, limits)
    whole = found_in(network, shipped().liveness, ["listener_exception"])
    stopped = found_in(network, shipped().liveness, ["listener_exception"], max_states=limit)
    complete = explore.explore(network, explore.SearchOptions(max_states=limit)).complete
    for name, finding in stopped.items():
        assert (finding.holds is None) == (not complete and finding.kind is None)
        if finding.kind is not None:
            assert whole[name].kind is finding.kind
            replayed(network, finding)


def test_a_search_by_several_processors_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = shipped().configure("jms", LISTENER | {"max_delivery_attempts": 0})
    limits = Bounds(faults=frozenset({Fault.LISTENER_EXCEPTION, Fault.CONSUMER_CRASH}), max_faults=None)
    network = compose(shipped(), configuration, limits)
    one = found_in(network, shipped().liveness, ["listener_exception"])
    monkeypatch.setattr("ackfsm.checking.explore.questions.liveness_graph._FIRST_CAPACITY", 1)
    with Search(
        pack(network), SearchOptions(every_step=True, workers=3, tuning=Tuning(plain_states=1, parallel_states=1))
    ) as search:
        while search.has_work():
            search.expand_batch()
        assert len(search.visited.tables) == 4
        several = find_liveness(search, network, shipped().liveness, forever=["listener_exception"])
    assert several == one
    for finding in several.values():
        if finding.kind is not None:
            replayed(network, finding)


@pytest.mark.parametrize("limit", [60, 150, 400, 3000, None])
def test_a_search_by_several_processors_knows_only_steps_that_there_are(limit: int | None) -> None:
    """Where a search is stopped there are states of which not every step is known."""
    network = compose(shipped(), shipped().configure("jms", LISTENER), Bounds(faults=EVERY, max_faults=1))
    options = SearchOptions(
        max_states=limit, every_step=True, workers=2, tuning=Tuning(plain_states=1, parallel_states=1)
    )
    with Search(pack(network), options) as search:
        while search.has_work():
            search.expand_batch()
        graph = LivenessGraph(search, network, EVERY)
        states = [unpacked(network, numbers) for numbers in state_table(search).tolist()]
        for number, state in enumerate(states):
            steps = {(event.label, after) for event in network.events if (after := network.step(state, event))}
            known = {(network.events[event].label, states[after]) for event, after in graph.successors(number)}
            assert known <= steps
            assert known == steps or limit is not None


@pytest.mark.parametrize(
    ("limits", "forever", "says"),
    [
        (Bounds(), "recover", "forever cannot be 'recover'; it is a set of names, in Python {'name'}"),
        (Bounds(), [3], "forever cannot have 3; all that is in it are names"),
        (
            Bounds(faults=frozenset({Fault.REJECTION}), max_faults=None),
            ["consumer_crash"],
            "consumer_crash cannot go on for ever, as it is no fault or action of this check; they are: rejection",
        ),
        (
            Bounds(),
            ["recovery"],
            "recovery cannot go on for ever, as it is no fault or action of this check; they are: none",
        ),
        (
            Bounds(faults=EVERY, max_faults=2),
            ["consumer_crash"],
            "consumer_crash cannot go on for ever where 2 faults are the limit; give --max-faults any",
        ),
    ],
)
def test_what_cannot_go_on_for_ever_is_refused(limits: Bounds, forever: Any, says: str) -> None:
    with pytest.raises(InputError) as refused:
        explore.check(shipped(), shipped().configure(), limits, forever=forever)
    assert str(refused.value) == says


@pytest.mark.parametrize(
    ("strikes_while", "says"),
    [
        ("processing", "'processing' is not a machine and a state of it, as processing.busy is"),
        ("procesing.busy", "there is no machine 'procesing' (did you mean processing?)"),
        ("processing.bussy", "processing has no state 'bussy' (did you mean busy?); its states are idle, busy"),
        ("prefetch.0", "prefetch counts, and has no states to name; name another machine"),
    ],
)
def test_a_state_that_there_is_not_is_refused(strikes_while: str, says: str) -> None:
    with pytest.raises(InputError) as refused:
        compose(shipped(), shipped().configure(), Bounds(faults=EVERY, strikes_while=strikes_while))
    assert str(refused.value).startswith(says)


# the command


def test_the_command_says_while_what_faults_strike(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["check", "--fault", "consumer_crash", "--max-faults", "any", "--forever", "consumer_crash"]
    asked += ["--while", "processing.busy", "--set", "max_delivery_attempts=3"]
    assert cli.main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["strikes_while"] == "processing.busy"
    assert {finding["holds"] for finding in told["progress"].values()} == {True}
    assert cli.main(asked) == 0
    assert "consumer_crash while processing.busy(m1), any number of times" in " ".join(capsys.readouterr().out.split())
    assert cli.main(["check", "--messages", "any", "--while", "processing.busy"]) == 2
    assert "--while is not for --messages any" in capsys.readouterr().err


COMMAND = ["check", "--set", "consumption=listener", "--fault", "listener_exception", "--max-faults", "any"]


def test_the_command_tells_of_progress_where_it_is_asked_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*COMMAND, "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert cli.main([*COMMAND, "--json", "--progress"]) == 0
    asked = json.loads(capsys.readouterr().out)
    assert list(asked) == [*plain, "progress"], "no other key changes"
    nothing: dict[str, Any] = {"holds": True, "kind": None, "steps": [], "cycle": [], "waiting": None}
    assert asked["progress"] == dict.fromkeys(MAKES_PROGRESS, nothing)


def test_the_command_shows_what_goes_on_for_ever(capsys: pytest.CaptureFixture[str]) -> None:
    forever = [*COMMAND, "--set", "max_delivery_attempts=0", "--forever", "listener_exception"]
    assert cli.main([*forever, "--json"]) == 0, "nobody promises progress against faults that do not stop"
    told = json.loads(capsys.readouterr().out)["progress"]["processed"]
    assert (told["holds"], told["kind"], told["waiting"]) == (False, "lasso", "unfinished(m1)")
    assert cli.main(forever) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert (
        f"processed: no, unfinished(m1) waits: {' → '.join(told['steps'])}, for ever: {' → '.join(told['cycle'])}"
        in screen
    )
    assert "delivered: yes" in screen


def test_the_command_says_what_halts_and_what_it_cannot_tell(capsys: pytest.CaptureFixture[str]) -> None:
    window = ["--set", "publish_window=3", "--set", "confirm_threshold=2", "--set", "confirm_timer=false"]
    window += ["--set", "ack_event_mode=WINDOWED", "--max-faults", "0"]
    assert cli.main(["check", *window, "--progress"]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert "call_returns: no, blocked_send(m1) waits: send(m1)" in screen
    assert ", then nothing " in screen
    assert cli.main(["check", "--max-states", "10", "--progress"]) == 3
    assert "settled: unknown" in capsys.readouterr().out


def test_the_command_refuses_what_cannot_go_on_for_ever(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--forever", "listener_exception"]) == 2
    assert "give --max-faults any" in capsys.readouterr().err


CRASH = ["check", "--fault", "consumer_crash", "--max-faults", "any"]
IDLE = ["check", "--max-faults", "0", "--messages", "2", "--without", "acknowledge"]


@pytest.mark.parametrize("only", few(["duplicate", "loss", "dead_lettered_unprocessed"], 1))
@pytest.mark.parametrize(
    "asked",
    [
        [*COMMAND, "--set", "max_delivery_attempts=0", "--forever", "listener_exception"],
        [*CRASH, "--profile", "rabbitmq", "--set", "max_delivery_attempts=0", "--forever", "consumer_crash"],
        [*IDLE, "--profile", "qpid", "--set", "ack_mode=CLIENT_ACKNOWLEDGE", "--set", "prefetch=1", "--progress"],
    ],
    ids=["listener", "crash", "prefetch"],
)
def test_what_goes_on_for_ever_does_not_depend_on_which_anomaly_is_looked_for(
    asked: list[str], only: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No machine is taken away that a property of progress waits for; without it the property would hold of nothing."""
    cli.main([*asked, "--json"])
    whole = json.loads(capsys.readouterr().out)["progress"]
    assert False in {finding["holds"] for finding in whole.values()}
    cli.main([*asked, "--json", "--only", only])
    told = json.loads(capsys.readouterr().out)
    assert {name: (one["holds"], one["waiting"]) for name, one in told["progress"].items()} == {
        name: (one["holds"], one["waiting"]) for name, one in whole.items()
    }
    assert [*told["anomalies"], *told["ends"]] == [only], "and nothing else is told of"


# the table


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("stuck.never_sent", f"{HERE}stuck.never_heard", "no machine 'stuck.never_heard' can wait"),
        ("machine: stuck.never_sent", f"machine: {HERE}delivery_attempts", "no machine 'delivery_attempts' can wait"),
        ("pending: [staged,", f"pending: {HERE}[stage,", "entry is pending in 'stage', which is no state of it"),
        (
            (
                "      pending: [staged, committing, delayed, ready, set_aside, dispatched, acked_in_transaction, "
                "with_other_consumer, crashed]\n"
            ),
            "",
            "it is not said where entry is pending",
        ),
        (
            "    - machine: stuck.blocked_acknowledge\n",
            f"    - machine: stuck.blocked_acknowledge\n      pending: {HERE}[blocked]\n",
            "stuck.blocked_acknowledge is pending where it is stuck at rest; delete this list",
        ),
        ("stuck.open_transaction", f"{HERE}reorder.overtaking", "no machine 'reorder.overtaking' can wait"),
    ],
)
def test_damage_to_the_table_is_named_with_its_line(old: str, new: str, says: str, tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    line = replace(spec, "liveness.yaml", (old, new))
    with pytest.raises(SpecError) as refused:
        tables.load(spec)
    assert says in str(refused.value)
    assert f"liveness.yaml:{line}:" in str(refused.value) or not line


def test_a_machine_that_is_no_anomaly_at_rest_waits_for_nothing(tmp_path: Path) -> None:
    name = next(
        f"{anomaly}.{monitor.machine.name}"
        for anomaly, definition in shipped().properties.items()
        for monitor in definition.monitors
        if not monitor.marked_at_rest
    )
    spec = copy_of_spec(tmp_path)
    replace(spec, "liveness.yaml", ("stuck.never_sent", name))
    with pytest.raises(SpecError, match="is no anomaly at rest, so it waits for nothing"):
        tables.load(spec)


def test_every_machine_that_is_stuck_at_rest_is_waited_for() -> None:
    """What the anomaly ``stuck`` knows, progress knows too: a message in flight as one that is not settled."""
    stuck = {monitor.machine.name for monitor in shipped().properties[Anomaly.STUCK].monitors}
    waiting = {w.machine for definition in shipped().liveness.values() for w in definition.waiting}
    assert stuck - waiting == {"in_flight"}
