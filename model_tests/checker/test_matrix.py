"""``ackfsm matrix``: small slices of it, each cell as it is when checked on its own, and what is written of them."""

from __future__ import annotations

import contextlib
import functools
import html.parser
import io
import itertools
import json
import os
import random
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from ackfsm import cli, tables
from ackfsm.checking import explore
from ackfsm.checking.network import Bounds
from ackfsm.showing.views import matrix_files
from ackfsm.showing.views.matrix import check_command
from ackfsm.surveys import matrix
from ackfsm.surveys.matrix import Matrix, Reachability, Scenario
from ackfsm.terms import Anomaly, Fault, HostError, InputError, Profile, SpecError
from model_tests.support.commands import nobody_is_left
from model_tests.support.tables import HERE, copy_of_spec, replace, shipped
from model_tests.support.whole import WHOLE, few, in_turn

AS_PROMISED, VIOLATION, USAGE, UNDETERMINED, INTERRUPTED = 0, 1, 2, 3, 130

SMALL: dict[str, object] = {
    "ack_mode": "AUTO_ACKNOWLEDGE",
    "resend_in_doubt": False,
    "send_mode": "blocking",
    "redelivery_mark_persisted": True,
}
TINY = SMALL | {"delivery_mode": "PERSISTENT", "block_on_acknowledge": False}
KEPT = "--set journal_sync_non_transactional=true --set redelivery_mark_persisted=true"


def _line(settings: Mapping[str, object]) -> str:
    return " ".join(
        f"--set {key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in settings.items()
    )


@functools.cache
def _small() -> Matrix:
    return matrix.run(matrix.make_plan(shipped(), "jms", SMALL, pairs=False), shipped())


@functools.cache
def _tiny(max_states: int | None = None) -> tuple[Matrix, list[tuple[str, int, int]]]:
    """A smaller one, by one process, and what it told of its progress."""
    told: list[tuple[str, int, int]] = []
    plan = matrix.make_plan(shipped(), "jms", TINY, pairs=False, max_states=max_states)
    return matrix.run(plan, shipped(), jobs=1, progress_bar=lambda *part: told.append(part)), told


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the table and the page of the small matrix."""
    folder = tmp_path_factory.mktemp("written")
    matrix_files.write(_small(), matrix.summarise(_small()), folder)
    return folder


def _run(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    try:
        code = cli.main(["matrix", "--jobs", "1", *shlex.split(line)])
    except SystemExit as end:
        code = int(end.code or 0)
    return code, *capsys.readouterr()


# the plan


def test_a_plan_spans_every_value_of_every_switch_that_matters() -> None:
    plan = matrix.make_plan(shipped(), "jms", SMALL)
    assert plan.varied == ("delivery_mode", "consumption", "block_on_acknowledge", "journal_sync_non_transactional")
    found = {tuple(str(getattr(c, key)) for key in plan.varied) for c in plan.configurations}
    both = ["True", "False"]
    ways = ["receive", "listener"]
    stored = set(itertools.product(["PERSISTENT"], ways, both, both))
    unstored = set(itertools.product(["NON_PERSISTENT"], ways, both, ["True"]))
    assert found >= stored | unstored, "a switch that does not matter stays what the profile sets"
    assert len(found) == len(plan.configurations)


def test_a_fixed_setting_stays_fixed_and_the_profile_sets_the_rest() -> None:
    plan = matrix.make_plan(shipped(), "artemis", {**SMALL, "prefetch": 7})
    assert {c.prefetch for c in plan.configurations} == {7}
    assert {c.max_delivery_attempts for c in plan.configurations} == {10}
    assert {c.profile for c in plan.configurations} == {"artemis"}


def test_every_pair_is_two_kinds_or_one_kind_twice() -> None:
    scenarios = matrix.make_plan(shipped(), "jms", TINY).scenarios
    count = len(Fault)
    assert len(scenarios) == 1 + count + count + count * (count - 1) // 2
    assert [len(s.faults) for s in scenarios if s.max_faults == 0] == [0]
    assert {s.faults for s in scenarios if s.max_faults == 1} == {(fault,) for fault in Fault}
    assert sum(len(s.faults) == 1 for s in scenarios if s.max_faults == 2) == count
    assert len({str(s) for s in scenarios}) == len(scenarios)
    assert str(Scenario((Fault.REJECTION,), 2)) == "rejection twice"
    assert len(matrix.make_plan(shipped(), "jms", TINY, pairs=False).scenarios) == 1 + count


def test_what_the_system_refuses_is_left_out_and_counted_with_the_reason() -> None:
    specification = shipped()
    plan = matrix.make_plan(specification, "artemis", {k: v for k, v in SMALL.items() if k != "ack_mode"})
    reasons = {refusal.because for refusal in specification.profiles[Profile.ARTEMIS].unsupported}
    assert plan.left_out
    for left in plan.left_out:
        assert left.count > 0
        assert left.because.partition(": ")[2] in reasons
    for configuration in plan.configurations:
        assert specification.configure(None, configuration.as_dict()) == configuration, "nothing refused is planned"


def test_sending_again_is_explored_with_one_message_and_left_out_and_counted_with_two() -> None:
    specification, chosen = shipped(), {k: v for k, v in SMALL.items() if k != "resend_in_doubt"}
    for profile in ("jms", "qpid-jms"):
        one = matrix.make_plan(specification, profile, chosen)
        two = matrix.make_plan(specification, profile, chosen, messages=2)
        assert {c.resend_in_doubt for c in one.configurations} == {True, False}, "whatever the profile sets"
        kept = [c for c in one.configurations if not c.resend_in_doubt]
        assert [*two.configurations] == kept
        (left,) = [left for left in two.left_out if left.because.startswith("resend_in_doubt=true: ")]
        assert left.count == len(one.configurations) - len(kept)


def test_what_is_left_out_with_two_messages_is_explored_if_it_is_asked_for() -> None:
    plan = matrix.make_plan(shipped(), "jms", {**SMALL, "resend_in_doubt": True}, messages=2)
    assert {c.resend_in_doubt for c in plan.configurations} == {True}
    assert not [left for left in plan.left_out if "resend_in_doubt" in left.because]


def test_if_everything_is_left_out_the_reason_is_said() -> None:
    with pytest.raises(
        InputError, match="no configuration is left to be explored: delivery_mode: it belongs to TIBCO EMS"
    ):
        matrix.make_plan(shipped(), "artemis", {"delivery_mode": "RELIABLE"})


def test_a_switch_matters_only_where_its_condition_says_so() -> None:
    """Elsewhere changing it changes no answer: that is what leaving it alone rests on."""
    draw, drawn = random.Random(5), 0
    switches = {switch.key: switch for switch in shipped().factors}
    plan = matrix.make_plan(shipped(), "jms", {})
    for configuration in draw.sample(plan.configurations, 60 if WHOLE else 24):
        key = draw.choice(
            [key for key in switches if key not in {"ack_mode", "delivery_mode", "consumption", "send_mode"}]
        )
        if switches[key].when.holds(shipped().environment(configuration)):
            continue
        drawn += 1
        answers = []
        for value in switches[key].values:
            other = shipped().configure(None, {**configuration.as_dict(), key: value})
            bounds = Bounds(faults=frozenset(draw.sample(list(Fault), 1)), max_faults=1)
            answers.append((bounds, explore.check(shipped(), other, bounds)))
        for bounds, answer in answers:
            again = explore.check(shipped(), configuration, bounds)
            assert {a: f.reachable for a, f in answer.findings.items()} == {
                a: f.reachable for a, f in again.findings.items()
            }, (key, configuration)
    assert drawn > (5 if WHOLE else 2)


# the cells


def test_each_cell_is_what_a_check_of_its_own_finds() -> None:
    """States, transitions and witnesses, also of cells that were merged with another configuration's."""
    found = _small()
    cells = [cell for row in found.rows() for cell in row]
    for cell in few(cells, 20):
        answer = explore.check(shipped(), cell.configuration, found.plan.bounds(cell.scenario))
        assert (cell.outcome.states, cell.outcome.transitions) == (
            answer.exploration.states,
            answer.exploration.transitions,
        )
        assert cell.outcome.witnesses == {
            anomaly: tuple(event.label for event in finding.steps)
            for anomaly, finding in answer.findings.items()
            if finding.reachable
        }
        assert list(cell.broken) == [f.anomaly for f in answer.findings.values() if f.violated] or (
            set(cell.broken) == {f.anomaly for f in answer.violations}
        )
        assert cell.strongest == answer.strongest


def test_drawn_cells_of_pairs_are_what_a_check_of_their_own_finds() -> None:
    plan = matrix.make_plan(shipped(), "artemis", {**TINY, "consumption": "listener"})
    found = matrix.run(plan, shipped())
    cells = [cell for row in found.rows() for cell in row if cell.scenario.max_faults == 2]
    for cell in random.Random(3).sample(cells, 12 if WHOLE else 5):
        answer = explore.check(shipped(), cell.configuration, plan.bounds(cell.scenario))
        assert (cell.outcome.states, cell.outcome.transitions) == (
            answer.exploration.states,
            answer.exploration.transitions,
        )
        assert cell.outcome.witnesses == {
            anomaly: tuple(event.label for event in steps) for anomaly, steps in answer.exploration.witnesses.items()
        }


def test_more_faults_never_make_an_anomaly_unreachable() -> None:
    plan = matrix.make_plan(shipped(), "jms", TINY if WHOLE else {**TINY, "consumption": "receive"})
    for row in matrix.run(plan, shipped()).rows():
        for one, other in itertools.permutations(row, 2):
            fewer = set(one.scenario.faults) <= set(other.scenario.faults)
            most, of_other = one.scenario.max_faults, other.scenario.max_faults
            assert most is not None, "faults without limit are another matrix"
            assert of_other is not None
            if fewer and most <= of_other:
                assert one.outcome.witnesses.keys() <= other.outcome.witnesses.keys()


def test_configurations_that_are_alike_are_explored_once() -> None:
    found = _small()
    assert len(found.outcomes) < found.cells
    assert {key for row in found.keys for key in row} == found.outcomes.keys()


def test_the_number_of_processes_changes_nothing() -> None:
    here, _ = _tiny()
    there = matrix.run(here.plan, shipped(), jobs=2)
    assert [list(row) for row in there.keys] == [list(row) for row in here.keys]
    assert there.outcomes == here.outcomes
    assert matrix.summarise(there) == matrix.summarise(here)


def test_processes_that_would_load_other_tables_say_so(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    replace(spec, "sweep.yaml", ("it decides what the producer knows", "it decides something"))
    plan = matrix.make_plan(shipped(), "jms", TINY, pairs=False)
    with pytest.raises(SpecError, match="changed while"):
        matrix.run(plan, shipped(), jobs=2, directory=spec)


LONG = """
import signal, sys
from ackfsm import cli
from ackfsm.surveys import matrix
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what runs in the background with it ignored
run = matrix.run
matrix.run = lambda *given, **named: run(*given, **named | {"progress_bar": lambda *part: print(*part, flush=True)})
sys.exit(cli.main(["matrix", "--messages", "2", "--jobs", "2"]))
"""
"""A long matrix that prints a line as soon as its processes work."""


@contextlib.contextmanager
def _at_work() -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    line = [sys.executable, "-c", LONG]
    with subprocess.Popen(line, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline()
        yield run


def test_an_interrupt_ends_every_process_with_one_sentence() -> None:
    with _at_work() as run:
        os.killpg(run.pid, signal.SIGINT)
        _, err = run.communicate(timeout=60)
    assert (run.returncode, err) == (INTERRUPTED, "ackfsm matrix: interrupted\n")
    assert nobody_is_left(run.pid)


def test_processes_do_not_outlive_the_first_one() -> None:
    with _at_work() as run:
        run.kill()
    assert nobody_is_left(run.pid)


def test_a_process_that_is_killed_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = matrix.make_plan(shipped(), "jms", TINY, pairs=False)
    monkeypatch.setattr("ackfsm.surveys.matrix._run._canonical_keys", _die)
    with pytest.raises(HostError, match="killed, probably for want of memory; use fewer with --jobs"):
        matrix.run(plan, shipped(), jobs=2)


def _die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_tables_that_read_faults_elsewhere_are_composed_for_each_scenario(tmp_path: Path) -> None:
    """A consumer that gives nothing back where it may crash: nonsense, but the matrix must not hide it."""
    spec = copy_of_spec(tmp_path)
    replace(
        spec,
        "machines/broker.yaml",
        (
            '        - {to: ready, because: "redelivered, marked", source: JMS 8.7; RMQ confirms}',
            """\
        - {to: removed, when: "'consumer_crash' in faults", because: nonsense, source: model}
        - {to: ready, because: "redelivered, marked", source: JMS 8.7; RMQ confirms}""",
        ),
    )
    changed = tables.load(spec)
    chosen = {**TINY, "consumption": "listener", "journal_sync_non_transactional": True}
    plan = matrix.make_plan(changed, "jms", chosen, pairs=False)
    for row in matrix.run(plan, changed).rows():
        for cell in row:
            if set(cell.scenario.faults) <= {Fault.CONSUMER_CRASH, Fault.LISTENER_EXCEPTION}:
                answer = explore.check(changed, cell.configuration, plan.bounds(cell.scenario))
                assert cell.outcome.states == answer.exploration.states
                assert set(cell.outcome.witnesses) == set(answer.exploration.witnesses)


def test_progress_is_told_to_its_end() -> None:
    last = {what: (done, of) for what, done, of in _tiny()[1]}
    assert len(last) == 2
    assert all(done == of for done, of in last.values())


# the implications of spec/guarantees.yaml, over a whole matrix


def test_whatever_implies_an_anomaly_is_reachable_only_where_that_is() -> None:
    chosen = {"ack_mode": "CLIENT_ACKNOWLEDGE", "send_mode": "blocking", "resend_in_doubt": True}
    plan = matrix.make_plan(shipped(), "artemis", chosen, pairs=False)
    outcomes = matrix.run(plan, shipped()).outcomes.values()
    for implication in shipped().guarantees.implications:
        implying = [outcome for outcome in outcomes if implication.anomaly in outcome.witnesses]
        assert all(implication.implies & outcome.witnesses.keys() for outcome in implying)
        assert implying


# the summary


def test_a_line_sums_up_its_configurations() -> None:
    found = _small()
    for line in matrix.summarise(found).lines:
        rows = [row for row in found.rows() if _of(line, row[0].configuration)]
        assert line.configurations == len(rows)
        for anomaly, entry in line.overall.items():
            reached = [any(anomaly in cell.outcome.witnesses for cell in row) for row in rows]
            assert entry.happens == ("always" if all(reached) else "depends" if any(reached) else "never")
            lengths = [
                (cell.scenario.max_faults, len(cell.outcome.witnesses[anomaly]))
                for row in rows
                for cell in row
                if anomaly in cell.outcome.witnesses
            ]
            assert (entry.scenario is None) == (not lengths)
            if entry.scenario is not None:
                assert (entry.scenario.max_faults, len(entry.steps)) == min(lengths)


def _of(line: matrix.Line, configuration: Any) -> bool:
    return all(
        getattr(line, key) == getattr(configuration, key) for key in ("ack_mode", "delivery_mode", "consumption")
    )


def test_what_decides_is_named() -> None:
    """PERSISTENT with a listener loses a message if and only if the confirmation does not wait for the disk."""
    lines = {(line.delivery_mode, line.consumption): line for line in matrix.summarise(_small()).lines}
    loss = lines["PERSISTENT", "listener"].overall[Anomaly.LOSS]  # type: ignore[index]
    assert (loss.happens, loss.decided_by) == (Reachability.DEPENDS, ("journal_sync_non_transactional",))
    assert loss.broken
    assert lines["NON_PERSISTENT", "listener"].overall[Anomaly.LOSS].happens is Reachability.ALWAYS  # type: ignore[index]


def test_a_guarantee_of_a_line_stands_in_each_of_its_configurations() -> None:
    found = _small()
    for line in matrix.summarise(found).lines:
        rows = [row for row in found.rows() if _of(line, row[0].configuration)]
        for place, guarantees in enumerate(line.guarantees):
            for row in rows:
                names = (*found.anomalies, *shipped().guarantees.monitors)
                standing = shipped().guarantees.evaluate({name: row[place].outcome.reachable(name) for name in names})
                assert all(standing[name] is True for name in guarantees)


def test_a_broken_promise_says_what_its_configurations_have_in_common() -> None:
    broken = {b.promise.absent: b for b in _small().broken}
    assert broken[Anomaly.LOSS].settings["delivery_mode"] == "PERSISTENT"
    assert broken[Anomaly.LOSS].cell.configuration.journal_sync_non_transactional is not True
    for one in broken.values():
        assert one.promise.absent in one.cell.outcome.witnesses
        assert one.promise.absent in one.cell.promised


def test_the_command_of_a_witness_finds_it(capsys: pytest.CaptureFixture[str]) -> None:
    specification = shipped()
    plan = matrix.make_plan(specification, "artemis", {**TINY, "prefetch": 7}, pairs=False)
    found = matrix.run(plan, specification)
    for line in matrix.summarise(found).lines:
        for anomaly, entry in line.overall.items():
            if entry.configuration is not None and entry.scenario is not None:
                command = shlex.split(check_command(found, entry.configuration, entry.scenario))
                assert command.pop(0) == "ackfsm"
                cli.main([*command, "--json"])
                answer = json.loads(capsys.readouterr().out)
                assert answer["config"] == entry.configuration.as_dict()
                assert answer["anomalies"][anomaly]["steps"] == list(entry.steps)


def test_a_search_that_stopped_is_unknown_unless_it_had_found_something() -> None:
    found, _ = _tiny(50)
    assert not found.complete
    entries = [entry for line in matrix.summarise(found).lines for entry in line.overall.values()]
    assert {entry.happens for entry in entries} <= {Reachability.UNKNOWN, Reachability.ALWAYS}
    assert Reachability.UNKNOWN in {entry.happens for entry in entries}


# Parquet


def test_parquet_reads_back_with_every_cell(written: Path) -> None:
    found = _small()
    table = pq.read_table(written / "matrix.parquet")
    assert table.num_rows == found.cells * len(found.anomalies)
    assert str(table.schema.field("witness").type) == "list<element: string not null>"
    assert str(table.schema.field("reachable").type) == "bool"
    rows = iter(table.to_pylist())
    for row in found.rows():
        for cell in row:
            for anomaly in found.anomalies:
                read = next(rows)
                expected = cell.configuration.as_dict()
                expected |= {
                    key: tables.format_value(expected[key])
                    for key in expected
                    if key.startswith("journal_sync_") or key == "restart_marks_redelivered"
                }
                assert {key: read[key] for key in expected} == expected
                assert (read["faults"], read["max_faults"]) == (list(cell.scenario.faults), cell.scenario.max_faults)
                assert (read["states"], read["complete"]) == (cell.outcome.states, True)
                assert read["anomaly"] == anomaly
                assert read["reachable"] is (anomaly in cell.outcome.witnesses)
                assert read["promised_absent"] is (anomaly in cell.promised)
                witness = cell.outcome.witnesses.get(anomaly)
                assert read["witness"] == (None if witness is None else list(witness))
                assert read["length"] == (None if witness is None else len(witness))
                assert tuple(read["strongest"]) == cell.strongest


def test_parquet_leaves_open_what_a_stopped_search_left_open(tmp_path: Path) -> None:
    found, _ = _tiny(50)
    matrix_files.write(found, matrix.summarise(found), tmp_path)
    table = pq.read_table(tmp_path / "matrix.parquet", columns=["reachable", "complete"])
    assert None in table["reachable"].to_pylist()
    assert False in table["complete"].to_pylist()


# HTML


class _Reader(html.parser.HTMLParser):
    """What a page refers to, and the rows that it shows."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"meta", "br", "input"}:
            self.open.append(tag)
        for name, value in attrs:
            if name == "data-row":
                self.rows.append(value or "")
            if name in {"href", "src", "action", "srcset"}:
                self.links.append(value or "")
            if name == "id":
                self.ids.add(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_has_every_row_and_needs_nothing_else(written: Path) -> None:
    found = _small()
    summary = matrix.summarise(found)
    text = (written / "matrix.html").read_text(encoding="utf-8")
    page = _Reader()
    page.feed(text)
    assert page.open == []
    names = [f"{line.ack_mode} {line.delivery_mode} {line.consumption}" for line in summary.lines]
    assert page.rows == [*names, *(f"{name} {scenario}" for name in names for scenario in found.plan.scenarios)]
    assert page.links
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert "http" not in text
    assert "url(" not in text
    assert "@import" not in text


def test_the_page_has_every_witness_and_every_extent(written: Path) -> None:
    text = (written / "matrix.html").read_text(encoding="utf-8")
    for line in matrix.summarise(_small()).lines:
        for entries in (line.overall, *line.scenarios):
            for entry in entries.values():
                if entry.happens is Reachability.NEVER:
                    assert f"never<small>{entry.searched:,}</small>" in text
                else:
                    assert " → ".join(entry.steps) in text


# the command


@pytest.mark.parametrize(
    ("form", "asked"),
    in_turn(
        ["", "--json"],
        [
            (f"--no-pairs {_line(TINY)} --set journal_sync_non_transactional=true", AS_PROMISED),
            (f"--no-pairs {_line(TINY)}", VIOLATION),
            (f"--no-pairs {_line(TINY)} --set journal_sync_non_transactional=true --max-states 40", UNDETERMINED),
            ("--set ack_mode=NONE", USAGE),
            ("--messages 0", USAGE),
            ("--help", AS_PROMISED),
        ],
        1,
    ),
)
def test_the_exit_code_says_how_it_ended(form: str, asked: tuple[str, int], capsys: pytest.CaptureFixture[str]) -> None:
    line, code = asked
    ended, out, err = _run(f"{line} {form}", capsys)
    assert ended == code
    assert bool(out) == (code != USAGE)
    assert (err.count("\n") == 1) == (code == USAGE)


def test_the_json_says_what_was_searched_and_found(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = _run(f"--no-pairs {_line(TINY)} --output {tmp_path} --json", capsys)
    found, (expected, _) = json.loads(out), _tiny()
    assert code == VIOLATION
    assert (found["cells"], found["explored"]) == (expected.cells, len(expected.outcomes))
    assert (found["states"], found["transitions"]) == (expected.states, expected.transitions)
    assert found["complete"] is True
    assert [Path(file).name for file in found["written"]] == ["matrix.parquet", "matrix.html"]
    lines = matrix.summarise(expected).lines
    assert len(found["lines"]) == len(lines)
    for told, line in zip(found["lines"], lines, strict=True):
        assert told["ack_mode"] == line.ack_mode
        assert {name: entry["happens"] for name, entry in told["anomalies"].items()} == {
            anomaly.value: entry.happens.value for anomaly, entry in line.overall.items()
        }
    assert {broken["anomaly"] for broken in found["broken"]} == {b.promise.absent.value for b in expected.broken}


def test_the_screen_has_a_line_for_each_line_and_says_what_decides(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _small()
    monkeypatch.setattr(matrix, "run", lambda *_, **__: found)  # the command finds it in the test of its JSON
    monkeypatch.setenv("COLUMNS", "200")
    _, out, _ = _run(f"--no-pairs {_line(SMALL)}", capsys)
    assert "\x1b" not in out, "coloured only on a terminal"
    words = [line.split() for line in out.splitlines()]
    assert ["AUTO", "PERSISTENT", "receive"] in [line[:3] for line in words]
    assert ["NON_PERSISTENT", "receive"] in [line[:2] for line in words]
    assert f"never anywhere: {', '.join(matrix.summarise(_small()).nowhere)}" in " ".join(out.split())
    assert "Promise broken: loss" in out
    assert "journal_sync_non_transactional=false" in out


def test_on_a_terminal_a_bar_shows_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.StringIO()
    consoles = {True: Console(file=shown, force_terminal=True, width=100), False: Console()}
    monkeypatch.setattr("ackfsm.cli._output.console", lambda *, errors=False: consoles[errors])
    _run(f"--no-pairs {_line(TINY)} --max-states 50 --json", capsys)
    assert "searching" in shown.getvalue()
    assert "composing configurations" in shown.getvalue()
    assert "100%" in shown.getvalue()


def test_a_folder_that_cannot_be_written_is_refused_before_the_search(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setattr(matrix, "run", lambda *_, **__: pytest.fail("it searched first"))
    code, _, err = _run(f"{_line(TINY)} --output {tmp_path / 'file'}", capsys)
    assert code == USAGE
    assert "name another folder" in err


# what is refused at load


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("- key: send_mode", f"{HERE}- key: consumption", "consumption stands twice; keep one"),
        ("- key: send_mode", f"{HERE}- key: sendmode", "there is no setting 'sendmode'"),
        ("- key: send_mode", f"{HERE}- key: prefetch", "prefetch is a number; say which values"),
        ("- key: send_mode", f"{HERE}- key: send_mode\n  values: [later]", "send_mode cannot be 'later'"),
        ("  when: confirms_sends", f"{HERE}  when: max_faults != 1", "max_faults is no setting"),
        ("  when: confirms_sends", f"{HERE}  when: block_on_acknowledge", "move block_on_acknowledge above it"),
        ("  when: confirms_sends", f"{HERE}  when: awaits_nothing", "'awaits_nothing'"),
        ("    when: messages > 1", f"{HERE}    when: max_faults != 1", "max_faults does not say how many messages"),
        ("    value: true", f"{HERE}    value: 7", "resend_in_doubt"),
    ],
)
def test_a_damaged_table_is_refused(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    spec = copy_of_spec(tmp_path)
    line = replace(spec, "sweep.yaml", (old, new))
    with pytest.raises(SpecError) as refused:
        tables.load(spec)
    assert sentence in str(refused.value)
    assert f"sweep.yaml:{line}:" in str(refused.value)
