"""``check`` and ``verify`` agree: a run of the tables, written as a history, is judged as what it is and as allowed."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from ackfsm import tables, verify
from ackfsm.checking import explore
from ackfsm.checking.explore import Interpreter
from ackfsm.checking.network import Bounds, compose
from ackfsm.history.format import Event
from ackfsm.terms import Anomaly, Fault
from model_tests.support.tables import copy_of_spec, replace, shipped
from model_tests.support.verify.model_runs import Run, judged, random_run, systems, witnesses
from model_tests.support.whole import few

SEEDS = range(8)
SYSTEMS, RUNS = 3, 3


def why_not_shown(run: Run) -> str | None:
    """Why a history of the run need not show its anomaly; ``None`` if it has to."""
    if run.anomaly not in set(verify.shown_anomalies(shipped())):
        return "no history shows it: which end a message came to leaves no line"
    if run.anomaly == Anomaly.COUNT_REGRESSION:
        return "the tables have a flag and no count, so that the lines have no delivery_count"
    if run.anomaly == Anomaly.LOSS and run.has("send_returned"):
        return "that a send() returned which nobody answers leaves no line"
    if run.anomaly == Anomaly.OVER_DELIVERED and run.has("resend"):
        return "each copy has attempts of its own, and a history does not tell the copies apart"
    return None


@functools.cache
def looked_for(seed: int) -> tuple[Run, ...]:
    """The runs with an anomaly that their histories have to show."""
    runs = (run for network in systems(seed, SYSTEMS) for run in witnesses(network))
    return tuple(run for run in runs if why_not_shown(run) is None)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_witness_is_judged_as_its_anomaly_and_as_allowed(seed: int, tmp_path: Path) -> None:
    assert looked_for(seed)
    for run in looked_for(seed):
        said = judged(run, tmp_path)
        assert run.anomaly in said.found, run
        assert not said.accused, run
        assert not said.contradicted, (run, said.contradicted)


@pytest.mark.parametrize("seed", few(SEEDS, 3))
def test_no_run_of_the_tables_is_accused(seed: int, tmp_path: Path) -> None:
    for network in systems(seed, SYSTEMS):
        for number in range(RUNS):
            run = random_run(network, number)
            said = judged(run, tmp_path)
            assert not said.accused, run
            assert not said.contradicted, (run, said.contradicted)


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("if: {redelivered: true}", "if: {redelivered: false}"),
        ("tells: [processed, processed_in_vain]", "also: [processed, processed_in_vain]"),
        ("    line: confirmed\n", "    line: rejected\n"),
    ],
    ids=["the flag is never set", "nothing is processed", "a confirmation is a rejection"],
)
def test_a_history_that_is_written_wrongly_is_noticed(line: str, instead: str, tmp_path: Path) -> None:
    folder = copy_of_spec(tmp_path)
    replace(folder, "recording.yaml", (line, instead))
    writer = tables.load(folder)
    assert any(is_judged_wrongly(run, tmp_path, writer) for seed in SEEDS for run in looked_for(seed))


def is_judged_wrongly(run: Run, folder: Path, writer: tables.Specification) -> bool:
    said = judged(run, folder, writer)
    return (
        run.anomaly not in said.found or bool(said.accused) or bool(said.contradicted) or said.findings.parse_errors > 0
    )


def test_every_line_of_the_tables_is_one_of_format_1(tmp_path: Path) -> None:
    faults = frozenset(Fault)
    network = compose(shipped(), shipped().configure("jms", {"time_to_live": True}), Bounds(messages=2, faults=faults))
    assert judged(random_run(network, 1), tmp_path).findings.parse_errors == 0
    recording = shipped().recording
    written = {row.line for row in recording.signs.values() if row.leaving and row.line != "fault"}
    assert written <= set(Event)
    of_no_event = {"begin", "prepare", "prepared", "drained", "fault", "waiting", "depth"}
    assert set(Event) - written == of_no_event, "these are no event of the tables"
    assert {fault for event in shipped().events for fault in recording.repaired_by(event)} <= set(Fault)


def test_a_run_can_be_performed_wherever_it_leads() -> None:
    network = compose(shipped(), shipped().configure("jms"), Bounds())
    steps = explore.steps_of(network, ["send(m1)", "accept(m1)"])
    executor = Interpreter(network)
    assert [executor.fire(step.event.label) for step in steps] == [step.event for step in steps]
    assert steps[-1].after == executor.state
    with pytest.raises(explore.Refused):
        explore.steps_of(network, ["accept(m1)"])
