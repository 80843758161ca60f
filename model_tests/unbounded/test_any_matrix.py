"""``matrix --messages any``: each configuration is decided as ``check --messages any`` decides it, alike ones once."""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import random
import shlex
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest  # noqa: TC002 - its CaptureFixture is part of what tests take
from rich.console import Console

from ackfsm import cli, tables
from ackfsm.checking import explore
from ackfsm.checking.network import Bounds
from ackfsm.checking.unbounded import decide, network_keys
from ackfsm.showing.views import matrix_files
from ackfsm.showing.views.matrix import matrix_json, matrix_screen
from ackfsm.surveys import matrix
from ackfsm.surveys.matrix import AnyNumber, Matrix, Repeated
from ackfsm.tables import Promise, Specification
from ackfsm.tables._conditions import ALWAYS
from ackfsm.terms import Anomaly, Fault
from model_tests.support.checker.projected import fading
from model_tests.support.tables import shipped
from model_tests.support.whole import WHOLE

AS_PROMISED, VIOLATION, USAGE, UNDETERMINED = 0, 1, 2, 3
ANY = Bounds(faults=frozenset(Fault), max_faults=None)
SOME: Mapping[str, object] = {
    "ack_mode": "SESSION_TRANSACTED",
    "delivery_mode": "PERSISTENT",
    "send_mode": "asynchronous",
    "resend_in_doubt": False,
    "journal_sync_non_transactional": True,
}
"""Of RabbitMQ: with ``receive`` and with a listener, and a switch that does not matter there."""

FEW = 10_000


def _decided(specification: Specification, *, max_states: int | None = FEW) -> Matrix:
    plan = matrix.make_plan(specification, "rabbitmq", SOME, messages=None, max_states=max_states)
    return matrix.run(plan, specification)


@functools.cache
def small() -> Matrix:
    return _decided(shipped())


def _outcomes(found: Matrix) -> dict[object, AnyNumber]:
    outcomes = {row[0].configuration: row[0].outcome for row in found.rows()}
    return {key: one for key, one in outcomes.items() if isinstance(one, AnyNumber)}


def test_each_configuration_is_decided_as_a_check_decides_it() -> None:
    found = small()
    assert found.plan.scenarios == (matrix.ANY_FAULTS,)
    assert len(_outcomes(found)) == len(found.plan.configurations) > len(found.outcomes) > 1
    first = {keys[0]: number for number, keys in reversed([*enumerate(found.keys)])}
    others = [number for number in range(len(found.keys)) if number not in first.values()]
    for number in (*others, *first.values())[:3]:
        configuration = found.plan.configurations[number]
        outcome, alone = _outcomes(found)[configuration], decide(shipped(), configuration, ANY, max_states=FEW)
        every = {str(name): one for all_ in (alone.findings, alone.ends) for name, one in all_.items()}
        assert {name: outcome.reachable(name) for name in every} == {name: one.reachable for name, one in every.items()}
        assert outcome.proved == {name: one.level for name, one in every.items() if one.level is not None}
        assert outcome.undecided == {name: one.undecided for name, one in every.items() if one.undecided}
        for name, steps in outcome.witnesses.items():
            assert steps == tuple(event.label for event in every[name].steps)
            assert outcome.messages[name] == every[name].messages


def test_nothing_that_two_messages_show_is_impossible_for_any_number() -> None:
    plan = matrix.make_plan(shipped(), "rabbitmq", SOME, messages=2, max_states=None if WHOLE else 2 * FEW)
    searched = matrix.run(plan, shipped())
    decided, reached = _outcomes(small()), 0
    for row in searched.rows():
        for cell in row:
            for name in cell.outcome.witnesses:
                reached += 1
                assert decided[cell.configuration].reachable(name) is not False, (cell, name)
    assert reached > len(decided)


def test_what_only_three_messages_show_is_not_impossible() -> None:
    """A mark that fades after two messages: no matrix of two sees it."""
    settings = {**shipped().configure("jms").as_dict(), "profile": "jms"}
    del settings["profile"]
    changed = fading(shipped(), 2)
    plan = matrix.make_plan(changed, "jms", settings, messages=None, max_states=FEW)
    (outcome,) = _outcomes(matrix.run(plan, changed)).values()
    (before,) = _outcomes(matrix.run(plan, shipped())).values()
    assert before.reachable(Anomaly.UNFLAGGED_DUPLICATE) is False
    assert outcome.reachable(Anomaly.UNFLAGGED_DUPLICATE) is not False


def test_alike_configurations_behave_alike_and_only_they_are() -> None:
    """The key is of the tables of any number of messages; a search of one message knows nothing of it."""
    draw, shared = random.Random(7), 0
    for profile in ("ems", "artemis", "jms"):
        plan = matrix.make_plan(shipped(), profile, {"delivery_mode": "PERSISTENT"}, messages=None)
        groups: dict[str, list[object]] = {}
        drawn = draw.sample(plan.configurations, 40 if WHOLE else 16)
        for key, configuration in zip(network_keys(shipped(), drawn, ANY), drawn, strict=True):
            groups.setdefault(key, []).append(configuration)
        for group in (group for group in groups.values() if len(group) > 1):
            answers = [explore.check(shipped(), one, ANY, max_states=200_000) for one in group[:3]]  # type: ignore[arg-type]
            ways = [{name: len(one.steps) for name, one in answer.findings.items()} for answer in answers]
            assert ways.count(ways[0]) == len(ways), group
            shared += 1
    assert shared > 1


def test_a_bound_that_few_messages_never_fill_keeps_configurations_apart() -> None:
    keys = network_keys(shipped(), [shipped().configure("qpid", {"prefetch": n}) for n in (1, 500, 501)], ANY)
    assert len(set(keys)) == 3


def test_a_table_that_is_changed_where_it_matters_has_another_key() -> None:
    mode = [shipped().configure("jms")]
    assert network_keys(fading(shipped(), 2), mode, ANY) != network_keys(shipped(), mode, ANY)
    fewer = dataclasses.replace(ANY, faults=ANY.faults - {Fault.BROKER_KILL})
    assert network_keys(shipped(), mode, fewer) != network_keys(shipped(), mode, ANY)


def test_a_key_does_not_depend_on_what_else_is_asked() -> None:
    """What is made of the rows of one configuration serves those with the same rows, and no others."""
    every = [mode for profile in ("jms", "rabbitmq") for mode in matrix.modes(shipped(), profile)]
    drawn = random.Random(3).sample(every, 40 if WHOLE else 12)
    assert network_keys(shipped(), drawn, ANY) == [key for one in drawn for key in network_keys(shipped(), [one], ANY)]


def test_all_pairs_are_counted() -> None:
    found = small()
    pairs = [one.reachable(anomaly) for one in _outcomes(found).values() for anomaly in found.anomalies]
    assert found.pairs == {reachable: pairs.count(reachable) for reachable in (True, False, None)}
    assert sum(found.pairs.values()) == len(found.plan.configurations) * len(Anomaly)


def test_a_promise_that_a_witness_breaks_is_told_first() -> None:
    found = dataclasses.replace(small(), specification=_never_a_duplicate())
    assert [broken.promise.absent for broken in found.broken] == [Anomaly.DUPLICATE]
    said = _screen(found)
    assert "1 promises broken by a witness" in said
    assert said.index("Promise broken: duplicate") < said.index("SESSION_TRANSACTED, PERSISTENT")
    assert "--messages any" in said


def test_a_way_that_fills_a_bound_is_not_told_as_one_of_few_messages(tmp_path: Path) -> None:
    """Its steps are those with a smaller bound: how they become one with the bound as it is set stands beside them."""
    filling = Repeated(2, 500, {"prefetch": 1})
    outcomes = {
        key: dataclasses.replace(one, messages={**one.messages, "duplicate": 501}, repeated={"duplicate": filling})
        for key, one in small().outcomes.items()
        if isinstance(one, AnyNumber)
    }
    found = dataclasses.replace(small(), specification=_never_a_duplicate(), outcomes=outcomes)
    how = "500 messages take the steps of m2 of this way, which is one with prefetch=1"
    told = matrix_json(found, matrix.summarise(found))
    assert how in " ".join(_screen(found).split())
    for one in (told["broken"][0], told["lines"][0]["anomalies"]["duplicate"]):  # type: ignore[index]
        assert (one["repeated"], one["times"], one["tried"]) == ("m2", 500, {"prefetch": 1})
    assert told["lines"][0]["anomalies"]["duplicate"]["messages"] == 501  # type: ignore[index]
    matrix_files.write(found, matrix.summarise(found), tmp_path)
    page = (tmp_path / "matrix.html").read_text(encoding="utf-8")
    assert page.count(how) == 1
    assert "below it: that it is proved for any number" in page


def _never_a_duplicate() -> Specification:
    never = Promise("never", Anomaly.DUPLICATE, ALWAYS, "a test", "model")
    table = dataclasses.replace(shipped().profiles["rabbitmq"], promises=frozenset({"never"}))
    return dataclasses.replace(shipped(), promises={"never": never}, profiles={**shipped().profiles, "rabbitmq": table})


def _screen(found: Matrix) -> str:
    console = Console(width=80, file=io.StringIO())
    console.print(matrix_screen(found, matrix.summarise(found)))
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    assert max(map(len, said.splitlines())) <= 80
    return said


def test_the_answer_comes_first() -> None:
    said = _screen(small())
    head = said.split("SESSION_TRANSACTED, PERSISTENT")[0]
    for reachable, what in ((False, "impossible for any number of messages"), (True, "possible: a witness")):
        assert f"{small().pairs[reachable]:,} {what}" in head
    assert "undecided (" in head
    assert "any number of messages and of faults" in head


def test_what_a_limit_stops_is_undecided_by_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = " ".join(
        f"--set {key}={str(value).lower() if value in {True, False} else value}" for key, value in SOME.items()
    )
    words = f"--profile rabbitmq {line} --set consumption=listener --messages any --jobs 1 --max-states 5"
    assert _run(f"{words} --json --output {tmp_path}") == UNDETERMINED
    told = json.loads(capsys.readouterr().out)
    assert (told["messages"], told["complete"], told["scenarios"]) == ("any", False, ["any faults"])
    undecided = {name: count for one in told["undecided"] for name, count in one["names"].items()}
    assert told["pairs"]["undecided"] == sum(undecided[name] for name in undecided if name in set(Anomaly))
    assert all("--messages any" in one["command"] for one in told["undecided"])
    assert any("more than 5 views" in one["because"] for one in told["undecided"])
    rows = pq.read_table(tmp_path / "matrix.parquet").to_pylist()
    assert len(rows) == told["configurations"] * len(Anomaly)
    assert {row["messages"] for row in rows} == {row["max_faults"] for row in rows} == {None}
    assert {row["anomaly"] for row in rows if row["reachable"] is None} == {
        name for name in undecided if name in set(Anomaly)
    }
    assert all((row["undecided"] is None) == (row["reachable"] is not None) for row in rows)
    assert "proved impossible for any number" in (tmp_path / "matrix.html").read_text(encoding="utf-8")
    assert _run(words) == UNDETERMINED
    said = capsys.readouterr().out
    assert "Undetermined: " in said
    assert "more than 5 views" in " ".join(said.split())


def _run(line: str) -> int:
    try:
        return cli.main(["matrix", *shlex.split(line)])
    except SystemExit as end:
        return int(end.code or 0)


def test_the_json_has_the_numbers_of_messages() -> None:
    told = matrix_json(small(), matrix.summarise(small()))
    assert told["pairs"] == {
        "impossible": small().pairs[False],
        "possible": small().pairs[True],
        "undecided": small().pairs[None],
    }
    lines = told["lines"]
    assert isinstance(lines, list)
    for entry in lines[0]["anomalies"].values():
        assert (entry["steps"] != []) == ("messages" in entry)


def test_two_faults_are_no_question_of_any_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--messages any --no-pairs") == USAGE
    assert "--no-pairs is not for --messages any" in " ".join(capsys.readouterr().err.split())


def test_processes_decide_what_one_decides() -> None:
    specification = tables.load()
    plan = matrix.make_plan(specification, "rabbitmq", SOME, messages=None, max_states=5)
    two = matrix.run(plan, specification, jobs=2)
    one = matrix.run(plan, specification)
    assert two.outcomes == one.outcomes
