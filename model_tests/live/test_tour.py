"""Do the programs of a configuration perform every row that some run of its model takes?"""

from __future__ import annotations

import functools
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ackfsm import tables
from ackfsm.checking.explore import Change, Interpreter
from ackfsm.checking.network import Bounds, Network, compose
from ackfsm.driving.live.tour import STAGES, Run, Stage, StepKind, Tour, tour
from ackfsm.tables import RowKind
from ackfsm.terms import Configuration, Fault
from ackfsm.verify.findings.performed import TableRow
from model_tests.support.tables import copy_of_spec, replace, shipped
from model_tests.support.whole import WHOLE

MODES = {
    "jms": ("jms", {}),
    "jms, listener": ("jms", {"consumption": "listener", "ack_mode": "CLIENT_ACKNOWLEDGE"}),
    "rabbitmq": ("rabbitmq", {"ack_mode": "CLIENT_ACKNOWLEDGE"}),
    "artemis": ("artemis", {"ack_mode": "SESSION_TRANSACTED"}),
}
TOURED = [*MODES] if WHOLE else ["jms", "artemis"]
STEPS, WALKS = 30, 10 if WHOLE else 5


def configuration(mode: str) -> Configuration:
    profile, settings = MODES[mode]
    return shipped().configure(profile, settings)


@functools.cache
def toured(mode: str) -> Tour:
    return tour(shipped(), configuration(mode))


class Replay:
    """Performs runs with the machines of the ``transitions`` library, and keeps what each step takes."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.taken: list[Change] = []
        self.executor = Interpreter(network, lambda instance, row: self.taken.append(Change(instance, row)))

    def places(self, labels: Sequence[str]) -> set[tuple[str, str, str]]:
        """Machine, event, and file and line of the transitions that a run takes."""
        self.begin()
        for label in labels:
            self.executor.fire(label)
        return {*self.transitions()}

    def begin(self) -> None:
        """Go back to the first state."""
        self.executor.reset()
        self.taken.clear()

    def transitions(self) -> Iterator[tuple[str, str, str]]:
        """Yield what was taken since."""
        for change in self.taken:
            if change.row.kind is RowKind.TO:
                yield change.instance.fsm.name, str(change.row.event._replace(consumer=0)), change.row.place


def place(row: TableRow) -> tuple[str, str, str]:
    return row.machine, row.event, row.place


@functools.cache
def replay(mode: str, bounds: Bounds) -> Replay:
    return Replay(compose(shipped(), configuration(mode), bounds, observers=()))


@pytest.mark.parametrize("mode", TOURED)
def test_each_program_takes_its_rows_when_its_runs_are_performed_again(mode: str) -> None:
    found = toured(mode)
    for program in found.programs:
        taken = set().union(*(replay(mode, run.bounds).places(run.labels) for run in program.runs))
        assert {*map(place, program.rows)} <= taken, program
    assert found.rows == {row for program in found.programs for row in program.rows}


def acts_in(run: Run, events: Sequence[str]) -> list[str]:
    return [name for name in (label.partition("(")[0] for label in run.labels) if name in {*events}]


@pytest.mark.parametrize("mode", TOURED)
def test_a_program_is_what_its_runs_look_like(mode: str) -> None:
    for program in toured(mode).programs:
        events = [step.event for step in program.steps]
        for run in program.runs:
            assert acts_in(run, events) == events, program
            assert (run.bounds.consumers, run.bounds.one_session) == (program.consumers, program.one_session)
    programs = [(each.consumers, each.one_session, each.steps) for each in toured(mode).programs]
    assert len({*programs}) == len(programs)


@pytest.mark.parametrize("mode", TOURED)
def test_no_program_could_be_left_out(mode: str) -> None:
    programs = toured(mode).programs
    count: dict[TableRow, int] = defaultdict(int)
    for program in programs:
        for row in program.rows:
            count[row] += 1
    assert all(any(count[row] == 1 for row in program.rows) for program in programs)


@pytest.mark.parametrize("mode", TOURED)
def test_whatever_a_walk_by_chance_takes_is_in_the_tour(mode: str) -> None:
    actions = frozenset(event.name for event in shipped().events.values() if event.optional)
    bounds = Bounds(faults=frozenset(Fault), max_faults=None, actions=actions)
    its, known = replay(mode, bounds), {*map(place, toured(mode).rows)}
    for seed in range(WALKS):
        draw, deviations = random.Random(seed), 2
        its.begin()
        sent = False
        for _ in range(STEPS):
            enabled = [event for event in its.executor.enabled() if deviations or not event.may_never_happen]
            if not enabled:
                break
            event = draw.choice(enabled)
            deviations -= event.may_never_happen
            its.executor.fire(event.label)
            sent |= event.name in {"send", "send_in_transaction"}
            of_copies = {at.fsm.name for at in its.network.instances if len(at.index) > 1}
            taken = {each for each in its.transitions() if sent or each[0] not in of_copies}
            unsent = {each for each in taken if each[0] in of_copies and not _of_first(its, each)}
            assert taken - unsent <= known, (seed, event.label, sorted(taken - unsent - known))
            its.taken.clear()


def _of_first(its: Replay, taken: tuple[str, str, str]) -> bool:
    """Whether the first copy takes it: the second may never have been sent."""
    rows = ((change.instance, change.row) for change in its.taken)
    return any(at.index == (1, 1) and (at.fsm.name, row.place) == taken[::2] for at, row in rows)


@pytest.mark.parametrize("mode", TOURED)
def test_of_every_row_that_is_not_reached_it_says_why(mode: str) -> None:
    found = toured(mode)
    assert not found.rows & {each.row for each in found.unreached}
    assert all(each.why or each.looked or each.cut_short for each in found.unreached)
    assert all(str(each.row) in str(each) and str(each)[-1] not in ": " for each in found.unreached)


def test_without_faults_nothing_strikes_and_without_actions_nothing_else_is_chosen() -> None:
    optional = {event.name for event in shipped().events.values() if event.optional}
    found = tour(shipped(), configuration("jms"), (), without=optional, stages=(Stage(),))
    steps = [step for program in found.programs for step in program.steps]
    assert {step.kind for step in steps} == {StepKind.ACT, StepKind.HEARD}
    assert not optional & {step.event for step in steps}
    assert found.rows < toured("jms").rows


def test_rows_that_let_events_pass_count_if_they_are_asked_for() -> None:
    plain, all_ = (tour(shipped(), configuration("jms"), passing=its, stages=STAGES[:1]) for its in (False, True))
    assert plain.rows < all_.rows
    assert {row.row.kind for row in all_.rows - plain.rows} == {RowKind.IGNORE}


def test_the_same_tour_is_found_again() -> None:
    stages = STAGES[:2]
    first, again = (tour(shipped(), configuration("jms"), stages=stages) for _ in range(2))
    assert first == again


def test_a_row_that_is_taken_away_makes_another_tour(tmp_path: Path) -> None:
    folder = copy_of_spec(tmp_path)
    row = "      processed: {to: idle, because: the application is done with it, source: 003 AUTO_ACKNOWLEDGE}\n"
    replace(folder, "machines/consumer.yaml", (row, "      processed: {refuse: nobody is ever done}\n"))
    changed = tables.load(folder)
    found = tour(changed, changed.configure("jms", {}), stages=STAGES[:1])
    assert any(_cell(row) == ("processing", "busy", "processed") for row in toured("jms").rows)
    assert not any(_cell(row) == ("processing", "busy", "processed") for row in found.rows)


def _cell(row: TableRow) -> tuple[str, str, str]:
    return row.machine, row.state, row.event
