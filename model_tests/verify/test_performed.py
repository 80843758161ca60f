"""Which rows of the tables does a recorded history perform, for certain or possibly?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ackfsm import tables, verify
from ackfsm.checking import explore, export
from ackfsm.checking.explore import Step
from ackfsm.engine import History
from ackfsm.tables import RowKind, Specification, base_state
from ackfsm.verify.findings import performed as rows
from ackfsm.verify.findings.performed import Performed, TableRow, rows_performed
from model_tests.support.engine.brokers import broker_of, fill, received
from model_tests.support.tables import copy_of_spec, replace, shipped
from model_tests.support.verify.model_runs import random_run, systems
from model_tests.support.verify.notation import write

PLAIN: Sequence[Mapping[str, Any]] = [
    {"process": "p", "event": "send", "message": "m1"},
    {"process": "p", "event": "confirmed", "message": "m1"},
    {"process": "c", "event": "delivered", "message": "m1", "redelivered": False},
    {"process": "c", "event": "processed", "message": "m1"},
    {"process": "c", "event": "acknowledge", "message": "m1", "scope": "message"},
    {"process": "c", "event": "acknowledged", "message": "m1", "scope": "message"},
    {"process": "p", "event": "drained"},
]
KILLED = [
    {"process": "n", "event": "fault", "fault": "broker_kill"},
    {"process": "n", "event": "recovered", "fault": "broker_kill"},
]
CONFIG = {"profile": "jms", "ack_mode": "CLIENT_ACKNOWLEDGE", "consumption": "receive"}
SETTLED = {
    ("publish_frame", "in_flight", "accept"),
    ("record", "written", "sync_record"),
    ("entry", "ready", "dispatch_first"),
    ("delivery", "prefetched", "delivered_clear"),
    ("ack_frame", "outstanding", "acknowledge"),
    ("entry", "dispatched", "settle"),
}


def history(folder: Path, lines: Sequence[Mapping[str, Any]]) -> Path:
    timed = [{"t": number * 10**6, "queue": "q", **line} for number, line in enumerate(lines)]
    file = folder / "history.jsonl"
    header = {"ackfsm_history": 1, "config": CONFIG}
    return write((header, *timed), file)


def performed(file: Path, specification: Specification | None = None) -> Performed:
    specification = specification or shipped()
    header = verify.read_header(file)
    assert header is not None
    return rows_performed(verify.read(file), specification, specification.configure(None, header.config))


def cells(found: Mapping[TableRow, int]) -> set[tuple[str, str, str]]:
    return {(row.machine, row.state, row.event) for row in found}


def test_a_message_that_was_acknowledged_performed_its_rows_for_certain(tmp_path: Path) -> None:
    found = performed(history(tmp_path, PLAIN))
    assert (found.messages, found.left_out) == (1, {})
    assert cells(found.certain) >= SETTLED
    assert {*found.certain} <= {*found.possible}


def test_what_a_broker_did_as_it_was_killed_is_certain_where_the_lines_leave_one_way(tmp_path: Path) -> None:
    again = {**PLAIN[2], "redelivered": True}
    found = performed(history(tmp_path, [*PLAIN[:3], *KILLED, again, *PLAIN[3:]]))
    assert cells(found.certain) >= {
        *SETTLED,
        ("entry", "dispatched", "broker_kill"),
        ("record", "durable", "recover_ready"),
        ("entry", "ready", "dispatch_again"),
    }


def test_what_may_have_been_either_way_is_possible_only(tmp_path: Path) -> None:
    found = performed(history(tmp_path, [PLAIN[0], *KILLED, {"process": "p", "event": "in_doubt", "message": "m1"}]))
    only = cells(found.possible) - cells(found.certain)
    assert {("publish_frame", "in_flight", "accept"), ("entry", "absent", "accept")} <= only


def of_run(steps: Sequence[Step]) -> Iterator[tuple[str, str, str, str]]:
    """The transitions that a run takes, of copies once they were sent, without counters, whose states are numbers."""
    sent = set[tuple[int, ...]]()
    for step in steps:
        name, index = step.event.name, step.event.index
        sent |= (
            {(*index, 1)} if name in {"send", "send_in_transaction"} else {(*index, 2)} if name == "resend" else set()
        )
        for change in step.changes:
            at, row = change.instance, change.row
            machine = shipped().machines.get(at.fsm.name) if at.anomaly is None else None
            if machine is None or machine.counter or row.kind is not RowKind.TO:
                continue
            if len(at.index) == 1 or not at.index or at.index in sent:
                event = str(row.event._replace(consumer=0))
                yield machine.name, base_state(row.state), event, row.place


def without_counters(found: Mapping[TableRow, int]) -> set[tuple[str, str, str, str]]:
    kept = (row for row in found if not shipped().machines[row.machine].counter)
    return {(row.machine, row.state, row.event, row.place) for row in kept}


@pytest.mark.parametrize("seed", range(6))
def test_what_a_run_of_the_model_took_lies_between_what_is_certain_and_what_is_possible(
    seed: int, tmp_path: Path
) -> None:
    for network in systems(seed, 3):
        run = random_run(network, seed) if network.bounds.messages == 1 else None
        if run is None:
            continue
        steps = explore.steps_of(network, run.labels)
        file = tmp_path / "history.jsonl"
        file.write_text(export.run_history(shipped(), network.configuration, steps, at_rest=True), encoding="utf-8")
        found = performed(file)
        if not found.messages:  # its send was never called
            continue
        assert found.left_out == {}
        taken = {*of_run(steps)}
        assert without_counters(found.certain) <= taken <= without_counters(found.possible), run.labels


def test_equal_lives_are_counted_and_histories_summed(tmp_path: Path) -> None:
    second = [{**line, **({"message": "m2"} if "message" in line else {})} for line in PLAIN[:-1]]
    one = performed(history(tmp_path, PLAIN))
    both = performed(history(tmp_path, [*PLAIN[:-1], *second, PLAIN[-1]]))
    assert both.messages == 2
    assert {count for row, count in both.certain.items() if not row.of_others} == {2}
    summed = one + one
    assert (summed.messages, summed.certain) == (2, dict.fromkeys(one.certain, 2))
    assert Performed() + one == one


def test_of_two_messages_there_are_rows_that_one_cannot_show(tmp_path: Path) -> None:
    sends = [{**line, "message": name} for name in ("m1", "m2") for line in PLAIN[:2]]
    rest = [{**line, "message": name} for name in ("m1", "m2") for line in PLAIN[2:6]]
    found = performed(history(tmp_path, [*sends, *rest, PLAIN[-1]]))
    assert any(row.of_others for row in found.possible)
    assert not any(row.of_others for row in performed(history(tmp_path, PLAIN)).possible)


def test_at_a_bound_nothing_is_certain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_MOST_NODES", 3)
    found = performed(history(tmp_path, PLAIN))
    assert (found.messages, found.certain, found.possible) == (0, {}, {})
    assert found.left_out == {"a message may be in too many states at all times (more than 3)": 1}


def test_a_message_that_is_no_run_of_the_model_performs_nothing(tmp_path: Path) -> None:
    found = performed(history(tmp_path, [*PLAIN[:-1], {**PLAIN[2], "redelivered": True}, PLAIN[-1]]))
    assert (found.messages, {*found.left_out.values()}) == (0, {1})


def test_the_engine_is_told_to_have_performed_what_it_did(tmp_path: Path) -> None:
    broker = broker_of("artemis", ack_mode="CLIENT_ACKNOWLEDGE")
    fill(broker, "m1")
    with broker.connect().session("CLIENT_ACKNOWLEDGE") as session:
        consumer = session.consumer("in")
        received(consumer)
        session.recover()
        received(consumer).acknowledge()
    broker.drained()
    assert isinstance(broker.history, History)
    broker.history.write(tmp_path / "history.jsonl")
    found = performed(tmp_path / "history.jsonl")
    assert found.left_out == {}
    assert cells(found.certain) >= {
        ("entry", "ready", "dispatch_first"),
        ("entry", "dispatched", "recover"),
        ("entry", "ready", "dispatch_again"),
        ("entry", "dispatched", "settle"),
    }


def test_tables_without_a_row_find_other_rows(tmp_path: Path) -> None:
    folder = copy_of_spec(tmp_path)
    row = "      sync_record: {to: durable, because: the broker syncs it, source: 004 non-transactional sends}\n"
    replace(folder, "machines/journal.yaml", (row, "      sync_record: {ignore: nobody syncs}\n"))
    changed = tables.load(folder)
    file = history(tmp_path, PLAIN)
    before, after = performed(file), performed(file, changed)
    gone = cells(before.possible) - cells(after.possible)
    assert ("record", "written", "sync_record") in gone
