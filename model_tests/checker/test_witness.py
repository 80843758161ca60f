"""A witness is performed before it is shown, and the command line shows those that are asked for."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from ackfsm import cli, tables
from ackfsm.checking import explore
from ackfsm.checking.explore import Answer, Exploration, Interpreter, NotReplayedError, Refused, replay
from ackfsm.checking.network import Bounds, Network
from ackfsm.cli import _output
from ackfsm.showing.views.witness import witness_screen, witness_text
from ackfsm.tables import Lane
from ackfsm.terms import AckMode, Anomaly, Fault, InputError, SpecError
from model_tests.support.checker.plain_search import anomalies_in
from model_tests.support.checker.witnesses import LOSS, drawn, known
from model_tests.support.places import SPEC
from model_tests.support.tables import copy_of_spec, replace, shipped
from model_tests.support.whole import WHOLE, in_turn

Command = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def ackfsm(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line in this process: exit code, standard output, standard error."""

    def run(line: str) -> tuple[int, str, str]:
        code = cli.main(shlex.split(line))
        return (code, *capsys.readouterr())

    return run


# replay


def test_every_witness_of_every_drawn_system_is_performed_and_ends_in_its_anomaly() -> None:
    """By the composition itself, which knows nothing of the ``transitions`` library."""
    for name, witness in drawn():
        network, state = witness.network, witness.network.initial
        events = {event.label: event for event in network.events}
        for step in witness.steps:
            after = network.step(state, events[step.event.label])
            assert after == step.after, name
            state = after
        enabled = [event for event in network.events if network.step(state, event) is not None]
        rest = all(event.may_never_happen for event in enabled)
        assert witness.anomaly in anomalies_in(network, state, at_rest=rest), name
        assert (witness.anomaly not in anomalies_in(network, state, at_rest=False)) == witness.at_rest, name


def test_the_draw_shows_many_anomalies_in_every_acknowledgement_mode() -> None:
    shown = {witness.anomaly for _, witness in drawn()}
    assert {"loss", "duplicate", "unflagged_duplicate", "reprocessed", "unprocessed", "stuck"} <= shown
    assert {witness.at_rest for _, witness in drawn()} == {True, False}
    assert {witness.network.configuration.ack_mode for _, witness in drawn()} == set(AckMode)
    assert len(drawn()) > (70 if WHOLE else 23)


def test_changes_are_what_the_tables_say() -> None:
    for name, witness in drawn():
        before = witness.network.initial
        for step in witness.steps:
            moved = {id(change.instance): change for change in step.changes if change.moves}
            for instance, old, new in zip(witness.network.instances, before, step.after, strict=True):
                change = moved.get(id(instance))
                assert (old, new) == (change.row.state, change.row.target) if change else old == new, name
            owner = step.changes[0].instance.fsm.name
            assert step.event.name in shipped().machines[owner].owns, name
            before = step.after


def test_a_way_that_lacks_a_step_is_no_witness() -> None:
    for anomaly in (Anomaly.LOSS, Anomaly.DUPLICATE):
        witness = known()[anomaly]
        labels = [step.event.label for step in witness.steps]
        for left_out in range(len(labels)):
            with pytest.raises(NotReplayedError, match=f"witness of {anomaly} cannot be performed"):
                replay(witness.network, anomaly, labels[:left_out] + labels[left_out + 1 :])


def test_an_anomaly_at_rest_is_none_as_long_as_something_can_happen() -> None:
    witness = known()[Anomaly.LOSS]
    assert witness.at_rest
    system = Interpreter(witness.network)
    for step in witness.steps:
        assert "loss" not in system.anomalies()
        system.fire(step.event.label)
    assert system.at_rest
    assert [instance.label for instance in system.anomalies()["loss"]] == ["owed_to_the_application(m1)"]
    assert not known()[Anomaly.DUPLICATE].at_rest


def test_those_that_break_a_promise_come_first() -> None:
    assert list(known()) == ["loss", "resurrection", "duplicate", "reprocessed"]
    assert [witness.promise is not None for witness in known().values()] == [True, True, False, False]


def test_an_event_that_a_system_does_not_have_is_one_sentence() -> None:
    system = Interpreter(known()[Anomaly.LOSS].network)
    with pytest.raises(InputError, match=r"^this system has no event 'send\(m9\)'; "):
        system.fire("send(m9)")


@pytest.mark.parametrize(
    ("harm", "line"),
    in_turn(
        [slice(1, None), slice(None, -1)],  # a step that cannot happen, no anomaly
        ["check", "check --json", "check --as mermaid", "explain", "explain --as itf"],
        1,
    ),
)
def test_what_cannot_be_performed_is_an_internal_error_and_never_shown(
    ackfsm: Command, monkeypatch: pytest.MonkeyPatch, line: str, harm: slice
) -> None:
    def harmed(network: Network, options: explore.SearchOptions) -> Exploration:
        found = explore.explore(network, options)
        return dataclasses.replace(found, witnesses={a: steps[harm] for a, steps in found.witnesses.items()})

    monkeypatch.setattr("ackfsm.checking.explore.symbolic.engine.explore", harmed)
    code, out, err = ackfsm(f"{line} {LOSS}")
    assert (code, out) == (70, "")
    assert re.fullmatch(r"ackfsm \w+: the search's witness of loss cannot be performed .*\n", err)


# what is shown


@pytest.mark.parametrize("command", ["check", "explain"])
@pytest.mark.parametrize(("options", "code"), [(LOSS, 1), ("--fault consumer_crash", 0), ("--max-states 400", 3)])
def test_the_exit_code_is_that_of_the_check(ackfsm: Command, command: str, options: str, code: int) -> None:
    assert ackfsm(f"check {options}")[0] == code
    assert ackfsm(f"{command} {options} --as mermaid")[0] == code


def test_explain_shows_steps_and_check_does_where_an_anomaly_is_named(ackfsm: Command) -> None:
    shown = ackfsm(f"explain {LOSS} --anomaly loss")[1]
    assert shown == ackfsm(f"check {LOSS} --anomaly loss")[1] == witness_text(shipped(), [known()[Anomaly.LOSS]])
    assert ackfsm(f"explain {LOSS}")[1] == witness_text(shipped(), list(known().values()))


def test_every_step_is_numbered_with_its_lanes_changes_and_reasons() -> None:
    witness = known()[Anomaly.LOSS]
    text = " ".join(witness_text(shipped(), [witness], width=140).split())
    at = 0
    for step in witness.steps:
        event = shipped().events[step.event.name]
        lanes = event.start if event.start is event.end else f"{event.start} → {event.end}"
        head = f"{step.number} {lanes} {step.event.label} {step.moved('loss')[0]} {step.because}"
        assert (at := text.find(head.partition(" it may")[0], at) + 1) > 0, head
    assert all(str(change).split(": ")[0] in text for step in witness.steps for change in step.moved("loss"))
    assert text.endswith(" ".join(witness.ending))
    assert "stuck" not in text, "machines that watch for other anomalies are not shown"


def test_there_are_colours_only_on_a_terminal(ackfsm: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    assert "\x1b" not in ackfsm(f"explain {LOSS}")[1]
    made, screen = _output.console, Console(force_terminal=True, color_system="standard", width=100)
    monkeypatch.setattr(_output, "console", lambda *, errors=False: made(errors=True) if errors else screen)
    assert "\x1b[1;31mbroker_crash" in ackfsm(f"explain {LOSS} --anomaly loss")[1]
    assert "\x1b" not in ackfsm(f"explain {LOSS} --anomaly loss --as mermaid")[1]


def test_a_narrow_terminal_shows_all_of_it() -> None:
    from rich.console import Console

    console = Console(width=80, file=io.StringIO())
    with console.capture() as said:
        console.print(witness_screen(shipped(), known()[Anomaly.LOSS]))
    lines = said.get().splitlines()
    assert max(map(len, lines)) <= 80
    assert all(any(step.event.label in line for line in lines) for step in known()[Anomaly.LOSS].steps)


@pytest.mark.parametrize("command", ["check", "explain"])
def test_json_has_the_answer_and_with_as_the_witnesses_beside_it(ackfsm: Command, command: str) -> None:
    plain = json.loads(ackfsm(f"check {LOSS} --api jms-2.0 --json")[1])
    assert {"api", "of_what_was_confirmed"} <= plain.keys()
    shown = json.loads(ackfsm(f"{command} {LOSS} --api jms-2.0 --json --as plantuml")[1])
    assert [key for key in shown if key not in plain] == ["as", "witnesses", "written"]
    assert shown["written"] == []
    assert shown["as"] == "plantuml"
    reached = [name for name, finding in plain["anomalies"].items() if finding["reachable"]]
    assert sorted(shown["witnesses"]) == sorted(reached)
    assert all(text.startswith("@startuml\n") for text in shown["witnesses"].values())
    assert {key: shown.get(key) for key in plain if key != "seconds"} == {
        key: value for key, value in plain.items() if key != "seconds"
    }


@pytest.mark.parametrize(
    ("ending", "form"),
    [("txt", "steps"), ("mmd", "mermaid"), ("puml", "plantuml"), ("svg", "svg"), ("py", "pytest"), ("itf.json", "itf")],
)
def test_the_ending_of_the_file_names_the_format(ackfsm: Command, tmp_path: Path, ending: str, form: str) -> None:
    file = tmp_path / f"way.{ending}"
    assert ackfsm(f"check {LOSS} --anomaly loss --output {file}") == (1, f"{file} written\n", "")
    printed = ackfsm(f"check {LOSS} --anomaly loss --as {form}")[1]
    assert file.read_text(encoding="utf-8") == printed != ""


@pytest.mark.parametrize("ending", ["mmd", "itf.json"])
def test_several_witnesses_are_in_files_of_their_own_where_one_holds_only_one(
    ackfsm: Command, tmp_path: Path, ending: str
) -> None:
    ackfsm(f"check {LOSS} --output {tmp_path / 'way'}.{ending}")
    names = {f"way-{anomaly}.{ending}" for anomaly in known()}
    assert {file.name for file in tmp_path.iterdir()} == names


def test_where_there_is_no_way_it_says_so(ackfsm: Command, tmp_path: Path) -> None:
    file = tmp_path / "way.svg"
    code, out, err = ackfsm(f"check --fault consumer_crash --anomaly phantom --output {file}")
    assert (code, out, file.exists()) == (0, "", False)
    assert re.fullmatch(r"ackfsm check: there is no way to phantom: all \d+ states are explored\n", err)
    assert "no way to any anomaly" in ackfsm("explain --max-faults 0")[2]
    assert ackfsm("explain --max-states 10 --anomaly loss")[2].endswith("; raise --max-states\n")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--as dot", "dot names no format; --as is one of steps, mermaid, "),
        ("--output way.xyz", "way.xyz names no format; --as is one of "),
        ("--anomaly lost", "there is no anomaly 'lost' (did you mean loss?); the anomalies are loss, "),
        ("--as svg --output /nowhere/way.svg", "/nowhere/way.svg: cannot be written "),
    ],
)
def test_bad_input_is_one_sentence(ackfsm: Command, options: str, sentence: str) -> None:
    code, out, err = ackfsm(f"check {LOSS} {options}")
    assert (code, out) == (2, "")
    assert err.startswith(f"ackfsm check: {sentence}")
    assert err.count("\n") == 1


# lanes


def test_the_lanes_of_the_tables_are_those_of_the_package() -> None:
    assert tables.read_form("events.yaml", "events").data.keys() == shipped().events.keys()
    schema = json.loads((SPEC / "schema.json").read_text(encoding="utf-8"))
    assert schema["$defs"]["lane"]["enum"] == [lane.value for lane in Lane]


def test_an_event_begins_or_ends_in_its_lane_and_faults_strike_another() -> None:
    for event in shipped().events.values():
        assert event.lane in {event.start, event.end}, event.name
        assert (event.lane is Lane.FAULT) == (event.name in set(Fault)), event.name
        if event.lane is Lane.FAULT:
            assert event.start is Lane.FAULT is not event.end, event.name


def test_an_event_between_three_lanes_is_refused(tmp_path: Path) -> None:
    spec = copy_of_spec(tmp_path)
    replace(
        spec,
        "events.yaml",
        (
            "lane: broker, from: producer link, means: the broker takes the copy",
            "«here»lane: broker, from: producer link, to: journal, means: the broker takes the copy",
        ),
    )
    with pytest.raises(
        SpecError, match=r"events\.yaml:\d+: accept goes from another lane to its own, .*keep from or to$"
    ):
        tables.load(spec)


def test_answers_carry_the_network_they_are_about() -> None:
    bounds = Bounds(faults=frozenset({Fault.REJECTION}))
    answer = explore.check(shipped(), shipped().configure("ems"), bounds)
    assert isinstance(answer, Answer)
    assert (answer.bounds, answer.configuration) == (bounds, shipped().configure("ems"))
    with pytest.raises(Refused):
        Interpreter(answer.network).fire("accept(m1)")
