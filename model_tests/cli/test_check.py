"""``ackfsm check`` as a user meets it: exit codes, JSON, sentences, and what it needs to be installed."""

import dataclasses
import functools
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ackfsm import __version__, cli
from ackfsm.checking import explore
from ackfsm.terms import Anomaly, Configuration, Fault
from model_tests.support.commands import AS_PROMISED, INTERRUPTED, UNDETERMINED, USAGE, VIOLATION, ended
from model_tests.support.places import SPEC
from model_tests.support.tables import shipped
from model_tests.support.whole import few, in_turn


@dataclasses.dataclass(frozen=True)
class _Run:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


class _Ackfsm:
    """The command line in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, line: str) -> _Run:
        try:
            code = cli.main(shlex.split(line))
        except SystemExit as end:
            code = int(end.code or 0)
        return _Run(code, *self.capsys.readouterr())


@pytest.fixture
def ackfsm(capsys: pytest.CaptureFixture[str]) -> _Ackfsm:
    """The command line."""
    return _Ackfsm(capsys)


# exit codes


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("check", AS_PROMISED),
        ("check --profile artemis --set ack_mode=PRE_ACKNOWLEDGE --fault broker_crash --max-faults 2", AS_PROMISED),
        ("check --set journal_sync_non_transactional=written --fault broker_kill", AS_PROMISED),
        ("check --set journal_sync_non_transactional=false --fault broker_kill", VIOLATION),
        ("check --set journal_sync_non_transactional=false --fault broker_crash", VIOLATION),
        ("check --set redelivery_mark_persisted=false", VIOLATION),
        ("check --profile artemis --set redelivery_mark_persisted=false", AS_PROMISED),
        ("check --max-states 10", UNDETERMINED),
        ("check --max-faults 0 --max-states 46", UNDETERMINED),
        ("check --max-faults 0 --max-states 57", AS_PROMISED),
        ("check --set journal_sync_non_transactional=false --fault broker_crash --max-states 400", VIOLATION),
        ("--version", AS_PROMISED),
        ("check --help", AS_PROMISED),
    ],
)
@pytest.mark.parametrize("form", ["", " --json"])
def test_the_exit_code_says_how_it_ended(ackfsm: _Ackfsm, line: str, code: int, form: str) -> None:
    run = ackfsm(line + (form if line.startswith("check") else ""))
    assert run.code == code
    assert run.out
    assert run.err == ""


def test_an_anomaly_that_nobody_promised_absent_is_no_violation(ackfsm: _Ackfsm) -> None:
    run = ackfsm("check --json --fault consumer_crash")
    assert run.code == AS_PROMISED
    assert run.json["anomalies"]["duplicate"]["reachable"] is True
    assert run.json["anomalies"]["duplicate"]["promised_absent"] is False


# JSON


def test_the_keys_of_the_json_are_those_of_the_contract(ackfsm: _Ackfsm) -> None:
    found = ackfsm("check --json").json
    assert list(found) == [
        "config", "messages", "faults", "max_faults", "engine", "complete", "states", "transitions", "seconds",
        "anomalies", "ends", "guarantees", "strongest",
    ]  # fmt: skip
    assert list(found["config"]) == [field.name for field in dataclasses.fields(Configuration)]
    assert set(found["anomalies"]) == {anomaly.value for anomaly in shipped().properties}
    assert {tuple(finding) for finding in found["anomalies"].values()} == {("reachable", "promised_absent", "steps")}


@pytest.mark.parametrize(
    "line",
    few(["", "--set journal_sync_non_transactional=false", "--set ack_mode=CLIENT_ACKNOWLEDGE --only unprocessed"], 1),
)
def test_the_symbolic_engine_answers_as_the_local_one_does(ackfsm: _Ackfsm, line: str) -> None:
    local, symbolic = (ackfsm(f"check --json {line} --engine {engine}") for engine in ("local", "symbolic"))
    assert symbolic.code == local.code
    found, expected = symbolic.json, local.json
    assert found.pop("at_rest") > 0
    assert (found.pop("engine"), expected.pop("engine")) == ("symbolic", "local")
    assert list(found) == list(expected)
    for kind in ("anomalies", "ends"):
        for finding in (*found[kind].values(), *expected[kind].values()):
            finding["steps"] = len(finding["steps"])
    assert {**found, "seconds": 0} == {**expected, "seconds": 0}


def test_without_an_engine_large_spaces_are_searched_symbolically(
    ackfsm: _Ackfsm, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ackfsm("check --json").json["engine"] == "local"
    monkeypatch.setattr(explore, "explore_by_size", functools.partial(explore.explore_by_size, few=500))
    run = ackfsm("check")
    assert (run.code, run.err) == (AS_PROMISED, "")
    assert "by decision diagrams, compiled)" in " ".join(run.out.split())
    assert "23 of the states at rest" in " ".join(run.out.split())
    for option in ("--engine local", "--max-states 2000", "--progress", "--reduce none", "--reduce partial-order"):
        assert ackfsm(f"check --json {option}").json["engine"] == "local", option


@pytest.mark.parametrize("option", ["--progress", "--forever broker_crash", "--jobs 1", "--reduce none"])
def test_what_looks_at_single_states_is_not_for_the_symbolic_engine(ackfsm: _Ackfsm, option: str) -> None:
    run = ackfsm(f"check --engine symbolic {option}")
    name = option.partition(" ")[0]
    assert (run.code, run.out) == (USAGE, "")
    assert run.err == (f"ackfsm check: {name} is for --engine local; leave it out, or leave --engine symbolic out\n")


def test_a_symbolic_search_that_is_stopped_says_at_what(ackfsm: _Ackfsm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ackfsm.checking.explore.symbolic.engine.NEAR_STATES", 100)
    for option in ("--max-states 300", "--max-memory 1MiB"):
        run = ackfsm(f"check --messages 2 --engine symbolic {option}")
        name = option.partition(" ")[0]
        assert run.code == UNDETERMINED
        assert f"the search stopped at {name}" in " ".join(run.out.split())
        assert run.out.rstrip().endswith(f"Undetermined: the search stopped at {name}; raise it.")


def test_the_json_says_what_was_checked(ackfsm: _Ackfsm) -> None:
    asked = "--profile ems --set prefetch=7 --fault rejection --fault broker_crash --max-faults any --messages 1"
    found = ackfsm(f"check --json {asked}").json
    assert found["config"] == shipped().configure("ems", {"prefetch": 7}).as_dict()
    assert (found["messages"], found["faults"], found["max_faults"]) == (1, ["broker_crash", "rejection"], None)


def test_all_faults_one_of_them_and_one_message_is_what_is_checked_if_nothing_is_said(ackfsm: _Ackfsm) -> None:
    found = ackfsm("check --json").json
    assert found["config"] == shipped().configure("jms").as_dict()
    assert (found["messages"], found["faults"], found["max_faults"]) == (1, [fault.value for fault in Fault], 1)
    assert (found["complete"], found["states"], found["transitions"]) == (True, 1525, 3593)
    assert 0 <= found["seconds"] < 60


def test_the_steps_of_the_json_are_a_witness(ackfsm: _Ackfsm) -> None:
    found = ackfsm("check --json --set journal_sync_non_transactional=written --fault broker_crash").json
    loss = found["anomalies"]["loss"]
    assert (loss["reachable"], loss["promised_absent"]) == (True, True)
    assert loss["steps"][0] == "send(m1)"
    assert {"confirmed(m1)", "broker_crash", "record_vanishes(m1)", "recover_lost(m1)"} <= set(loss["steps"])
    assert found["anomalies"]["phantom"] == {"reachable": False, "promised_absent": True, "steps": []}


def test_what_was_not_explored_is_null_in_the_json(ackfsm: _Ackfsm) -> None:
    run = ackfsm("check --json --max-states 1")
    assert run.code == UNDETERMINED
    assert run.json["complete"] is False
    assert {finding["reachable"] for finding in run.json["anomalies"].values()} == {None}


def test_an_optional_action_is_considered_where_it_is_asked_for(ackfsm: _Ackfsm) -> None:
    line = "check --json --set ack_mode=CLIENT_ACKNOWLEDGE --max-faults 0"
    without, asked = ackfsm(line).json, ackfsm(f"{line} --action recover").json
    assert without["anomalies"]["duplicate"]["reachable"] is False
    assert asked["anomalies"]["duplicate"]["reachable"] is True
    assert "recover" in asked["anomalies"]["duplicate"]["steps"]
    assert asked["actions"] == ["recover"]


# what a person reads


def test_the_screen_shows_extent_findings_witnesses_and_conclusion(ackfsm: _Ackfsm) -> None:
    out = ackfsm("check --set journal_sync_non_transactional=false --fault broker_crash").out
    assert "jms: PERSISTENT, blocking send, AUTO_ACKNOWLEDGE, listener" in out
    assert "1 message; broker_crash, at most 1 in all" in out
    assert re.search(r"[\d,]+ states and [\d,]+ transitions, all of them", out)
    assert all(anomaly.value in out for anomaly in shipped().properties)
    assert "loss: send(m1) → accept(m1) → " in " ".join(out.split())
    assert "Promise broken: loss, resurrection." in out
    assert "\x1b" not in out, "no colours where there is no terminal"


def test_the_screen_says_where_a_search_stopped(ackfsm: _Ackfsm) -> None:
    out = " ".join(ackfsm("check --max-states 10").out.split())
    assert "NOT all of them: the search stopped at --max-states" in out
    assert "unknown" in out
    assert "Undetermined: the search stopped at --max-states; raise it." in out
    assert "As promised" not in out


def test_the_screen_says_that_all_is_as_promised(ackfsm: _Ackfsm) -> None:
    assert "As promised: nothing that is promised never to happen can happen." in ackfsm("check").out


def test_what_a_check_goes_without_is_said(ackfsm: _Ackfsm) -> None:
    """A consumer that never acknowledges gets no more than its prefetch: the second message never comes."""
    line = "check --json --profile qpid --set ack_mode=CLIENT_ACKNOWLEDGE --messages 2 --max-faults 0"
    line += " --without acknowledge"
    one, two = (ackfsm(f"{line} --set prefetch={n}").json for n in (1, 2))
    assert one["without"] == ["acknowledge"]
    assert (one["anomalies"]["stuck"]["reachable"], one["anomalies"]["loss"]["reachable"]) == (True, True)
    assert (two["anomalies"]["stuck"]["reachable"], two["anomalies"]["loss"]["reachable"]) == (True, False)


BROKEN = "--set redelivery_mark_persisted=false --fault broker_crash"
"""On ``jms`` this breaks the promise that a redelivery is flagged."""


@pytest.mark.parametrize("messages", ["1", "any"])
def test_what_was_not_looked_at_is_not_said_to_be_as_promised(ackfsm: _Ackfsm, messages: str) -> None:
    line = f"check {BROKEN} --messages {messages}"
    assert ackfsm(f"{line} --only unflagged_duplicate").code == VIOLATION
    run = ackfsm(f"{line} --only duplicate")
    out = " ".join(run.out.split())
    assert run.code == AS_PROMISED, "nobody promises what was asked about"
    assert "As promised" not in out
    assert "Nothing of what was looked at is promised never to happen." in out
    assert re.search(r"Promised too, and not looked at \(--only\): loss, .*unflagged_duplicate, ", out)
    assert max(map(len, run.out.splitlines())) <= 80
    told = ackfsm(f"{line} --only duplicate --json").json
    assert "unflagged_duplicate" in told["promises_not_asked"]
    assert "duplicate" not in told["promises_not_asked"]


@pytest.mark.parametrize("messages", ["1", "any"])
def test_a_promise_that_was_looked_at_alone_is_named(ackfsm: _Ackfsm, messages: str) -> None:
    run = ackfsm(f"check {BROKEN} --messages {messages} --only phantom --only duplicate")
    out = " ".join(run.out.split())
    assert run.code == AS_PROMISED
    assert "As promised, as far as it was asked: phantom cannot happen" in out
    assert "nothing that is promised never to happen can happen" not in out
    assert "Promised too, and not looked at (--only): loss, " in out
    assert "promises_not_asked" not in ackfsm(f"check --json {BROKEN}").json


@pytest.mark.parametrize("messages", ["1", "any"])
def test_a_guarantee_that_nobody_asked_about_is_not_said_to_be_absent(ackfsm: _Ackfsm, messages: str) -> None:
    out = ackfsm(f"check --messages {messages} --fault broker_kill --only loss").out
    assert "delivery: left open" in out
    assert "transaction: left open" in out
    assert ": none" not in out
    out = ackfsm(f"check --messages {messages} --fault consumer_crash --only duplicate --only reprocessed").out
    assert "transaction: left open" in out


def test_bounds_for_any_number_of_messages_are_obeyed_or_refused(ackfsm: _Ackfsm) -> None:
    line = "check --messages any --fault consumer_crash --fault broker_crash --only unprocessed"
    for number in ("0", "1", "2"):
        run = ackfsm(f"{line} --max-faults {number}")
        assert (run.code, run.out) == (USAGE, "")
        assert "--max-faults is not for --messages any; leave it out, since a proof is for any number of" in run.err
    assert ackfsm(f"{line} --max-faults any").code == ackfsm(line).code == AS_PROMISED


def test_what_an_application_leaves_undone_is_not_held_against_its_provider(ackfsm: _Ackfsm) -> None:
    line = "check --profile jms --set ack_mode=CLIENT_ACKNOWLEDGE --messages 2 --max-faults 0"
    run = ackfsm(f"{line} --without acknowledge")
    out = " ".join(run.out.split())
    assert run.code == AS_PROMISED
    assert "Promise broken" not in out
    assert "without acknowledge" in out
    assert "stuck: the application left it undone (--without acknowledge), which breaks no promise" in out
    told = ackfsm(f"{line} --without acknowledge --json").json["anomalies"]["stuck"]
    assert (told["reachable"], told["promised_absent"], told["left_undone"]) == (True, False, ["acknowledge"])


@pytest.mark.parametrize(
    "line",
    [
        "--set ack_mode=CLIENT_ACKNOWLEDGE --without settle",
        "--set ack_mode=CLIENT_ACKNOWLEDGE --without settle --without producer_restart",
        "--set ack_mode=AUTO_ACKNOWLEDGE --without acknowledge",
        "--without confirm",
        "--fault broker_crash --set journal_sync_non_transactional=false --without processed",
    ],
)
def test_what_a_provider_leaves_undone_or_loses_still_counts(ackfsm: _Ackfsm, line: str) -> None:
    """Also where the application leaves something undone as well; in AUTO_ACKNOWLEDGE the library acknowledges."""
    faults = "" if "--fault" in line else "--max-faults 0"
    assert ackfsm(f"check --profile jms {faults} {line}").code == VIOLATION


@pytest.mark.parametrize(
    "left", few(["send", "processed", "acknowledge", "delivered_clear", "consumer_restart", "producer_restart"], 3)
)
def test_no_application_that_stops_anywhere_breaks_a_promise(ackfsm: _Ackfsm, left: str) -> None:
    line = f"check --set ack_mode=CLIENT_ACKNOWLEDGE --set consumption=receive --without {left}"
    assert ackfsm(f"{line} --fault consumer_crash --fault producer_crash").code == AS_PROMISED


@pytest.mark.parametrize("left", ["commit_called", "consumer_commit_called", "send_in_transaction"])
def test_no_application_that_never_commits_breaks_a_promise(ackfsm: _Ackfsm, left: str) -> None:
    assert ackfsm(f"check --set ack_mode=SESSION_TRANSACTED --max-faults 0 --without {left}").code == AS_PROMISED


VAIN = {
    "--profile qpid --action settle_rejected": "settle_rejected",
    "--action rollback --fault broker_kill": "rollback",
    "--set ack_mode=SESSION_TRANSACTED --action ask_at_once --action rollback --fault broker_kill": "ask_at_once",
    "--without delivered_clear --without delivered_flagged --fault listener_exception": "listener_exception",
}


@pytest.mark.parametrize(("messages", "asked"), in_turn(["1", "any"], [*VAIN], 1))
def test_a_fault_or_action_that_cannot_happen_is_named(ackfsm: _Ackfsm, asked: str, messages: str) -> None:
    """Else its asker reads of the whole check what is true only because nothing was asked."""
    name = VAIN[asked]
    line = f"check {asked} --only dirty_delivery --only count_regression --messages {messages}"
    assert ackfsm(f"{line} --json").json["without_effect"] == [name]
    out = " ".join(ackfsm(line).out.split())
    assert f"{name} cannot happen in this configuration (ackfsm where {name} has the rows)." in out


def test_what_can_happen_is_not_said_to_be_without_effect(ackfsm: _Ackfsm) -> None:
    for asked in ("--fault listener_exception", "--max-faults 0 --fault listener_exception", "--action recover"):
        assert "without_effect" not in ackfsm(f"check --json --set ack_mode=CLIENT_ACKNOWLEDGE {asked}").json, asked
    asked = "--set ack_mode=SESSION_TRANSACTED --action postpone --max-faults 0"
    assert "without_effect" not in ackfsm(f"check --json --messages 2 {asked}").json, "it takes a second message"


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        ("--profile rabbitmq --max-faults any", True),
        ("--profile rabbitmq --set max_delivery_attempts=2 --max-faults any", False),
        ("--profile rabbitmq --set ack_mode=NO_ACKNOWLEDGE --fault consumer_crash", False),
        ("--set journal_sync_non_transactional=false --fault broker_crash", False),
    ],
)
def test_what_holds_of_confirmed_messages_alone_is_told(ackfsm: _Ackfsm, asked: str, holds: bool) -> None:  # noqa: FBT001
    """A message whose send is in doubt may be delivered, vanish, and never be processed; whoever sent it knows."""
    found = ackfsm(f"check --json {asked}").json
    assert found["guarantees"]["at_least_once"] is False
    assert found["of_what_was_confirmed"] == {"at_least_once": holds}
    screen = ackfsm(f"check {asked}").out
    assert ("processing: at_least_once for what was confirmed" in screen) is holds


def test_what_stands_is_not_said_to_stand_for_some_messages(ackfsm: _Ackfsm) -> None:
    for asked in ("--max-faults 0", "--only unprocessed", "--max-states 10"):
        assert "of_what_was_confirmed" not in ackfsm(f"check --json {asked}").json, asked


def test_several_anomalies_may_stand_in_one_only(ackfsm: _Ackfsm) -> None:
    one = ackfsm("check --json --fault broker_kill --only loss,stuck").json
    two = ackfsm("check --json --fault broker_kill --only loss --only stuck").json
    assert list(one["anomalies"]) == ["loss", "stuck"]
    assert without_seconds(one) == without_seconds(two)
    assert list(ackfsm("check --json --messages any --only 'phantom, loss'").json["anomalies"]) == ["loss", "phantom"]


def test_no_fault_may_be_asked_for(ackfsm: _Ackfsm) -> None:
    found = ackfsm("check --json --fault none").json
    assert found["faults"] == []
    assert found["states"] == ackfsm("check --json --max-faults 0").json["states"]
    assert ackfsm("check --json --messages any --fault none --only phantom").json["faults"] == []


# bad input

BAD = {
    "check --profile kafka": "profile cannot be 'kafka'; it is one of jms, ems, solace, ",
    "check --set profile=kafka": "profile cannot be 'kafka'; it is one of jms, ems, solace, ",
    "check --set ackmode=AUTO_ACKNOWLEDGE": "there is no setting 'ackmode' (did you mean ack_mode?)",
    "check --set ack_mode=CLIENT": "ack_mode cannot be 'CLIENT' (did you mean CLIENT_ACKNOWLEDGE?); it is one of ",
    "check --set ack_mode=": "ack_mode cannot be ''; it is one of AUTO_ACKNOWLEDGE, ",
    "check --set queue_durable=yes": "queue_durable cannot be 'yes'; it is true or false",
    "check --set prefetch=-1": "prefetch cannot be '-1'; it is a whole number from 0",
    "check --set prefetch=none": "prefetch cannot be 'none'; it is a whole number from 0",
    "check --set ack_mode": "--set 'ack_mode' is not KEY=VALUE, for example --set ack_mode=CLIENT_ACKNOWLEDGE",
    "check --set ''": "--set '' is not KEY=VALUE",
    "check --fault power_cut": "there is no fault 'power_cut'; the faults are broker_crash, ",
    "check --fault broker_crash,rejection": "'broker_crash,rejection' (did you mean broker_crash?); the faults are ",
    "check --fault none --fault rejection": "--fault none is that nothing fails; leave it out, or the other",
    "check --only loss,stuk": "nothing watches for 'stuk' (did you mean stuck?); what can be is loss, ",
    "check --action recovery": "there is no action 'recovery' (did you mean recover?); the actions are ask_at_once, ",
    "check --one-session": "one consumer is in one session as it is; one_session is for several consumers",
    "check --messages 0": "argument --messages: '0' is not a whole number from 1",
    "check --messages few": "argument --messages: 'few' is not a whole number from 1, or any",
    "check --messages 1.5": "'1.5' is not a whole number",
    "check --max-faults -1": "'-1' is not a whole number from 0, or any",
    "check --max-states ٣": "is not a whole number from 1",
    f"check --max-states {'9' * 5_000}": "' (5,000 characters) is not a whole number from 1",
    "check --max-memory 0": "'0' is not a size, as 512MiB or 8GiB are",
    "check --jobs any": "'any' is not a whole number from 1;",
    "claims --max-states any": "'any' is not a whole number from 1;",
    "matrix --messages 0": "'0' is not a whole number from 1, or any",
    "systems --jobs 0": "'0' is not a whole number from 1;",
    "check --reduce foo": "invalid choice: 'foo' (choose from 'none', 'partial-order'",
    "check \x1b[2J": "unrecognized arguments: \\x1b[2J",
    "check --profile": "argument --profile: expected one argument; see ackfsm check --help",
    "check --quux": "unrecognized arguments: --quux; see ackfsm",
    "check everything": "unrecognized arguments: everything; see ackfsm",
    "frobnicate": "invalid choice: 'frobnicate'",
}


@pytest.mark.parametrize("line", BAD, ids=range(len(BAD)))
def test_bad_input_is_one_sentence_and_exit_code_2(ackfsm: _Ackfsm, line: str) -> None:
    run = ackfsm(line)
    assert (run.code, run.out) == (USAGE, "")
    assert re.fullmatch(r"ackfsm( [a-z]+)?: .{10,900}\n", run.err), "one line"
    assert BAD[line] in run.err


def test_damaged_tables_are_one_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ackfsm.tables._load.shipped_tables", lambda: tmp_path)
    run = _Ackfsm(capsys)("check")
    assert (run.code, run.out) == (USAGE, "")
    assert run.err.startswith(f"ackfsm check: {tmp_path}: no tables here")


def test_an_interrupted_check_ends_without_a_traceback(ackfsm: _Ackfsm, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ackfsm.checking.explore.check", interrupted)
    run = ackfsm("check")
    assert (run.out, run.err) == ("", "ackfsm check: interrupted\n")
    assert run.code == INTERRUPTED


# help


def commands(ackfsm: _Ackfsm) -> list[str]:
    found = re.findall(r"^    ([a-z]+) ", ackfsm("--help").out, flags=re.MULTILINE)
    assert "check" in found
    return found


def test_every_command_has_help_with_an_example_of_itself(ackfsm: _Ackfsm) -> None:
    for command in commands(ackfsm):
        run = ackfsm(f"{command} --help")
        assert run.code == 0
        assert re.search(rf"^example:\n  ackfsm {command} ", run.out, flags=re.MULTILINE), command
        assert "--json" in run.out, command


def test_the_examples_of_check_can_be_run(ackfsm: _Ackfsm) -> None:
    examples = ackfsm("check --help").out.split("example:\n")[1].strip().splitlines()
    assert len(examples) > 1
    for example in examples:
        assert ackfsm(example.strip().removeprefix("ackfsm ")).code == AS_PROMISED


def test_the_help_of_check_names_every_profile_fault_and_action(ackfsm: _Ackfsm) -> None:
    text = " ".join(ackfsm("check --help").out.replace("-\n", "-").split()).replace("- ", "-")
    names = [*shipped().profiles, *Fault]
    names += [event.name for event in shipped().events.values() if event.optional]
    assert [name for name in names if name not in text] == []


def test_the_version_is_the_packages(ackfsm: _Ackfsm) -> None:
    assert ackfsm("--version").out == f"ackfsm {__version__}\n"


# what it needs

WITHOUT = """
import sys
sys.modules.update(dict.fromkeys({missing!r}))
from ackfsm.cli import main
sys.exit(main({line!r}))
"""


def alone(line: str, *missing: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, in which some packages cannot be imported."""
    program = WITHOUT.format(missing=missing, line=shlex.split(line))
    environment = {**os.environ, "PYTHONPATH": str(SPEC.parent), "PYTHONWARNINGS": "error"}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)


HEAVY = ("numpy", "numba", "pyarrow", "pandas", "pyspark")


def test_a_check_needs_none_of_the_heavy_packages(ackfsm: _Ackfsm) -> None:
    done = alone("check --json", *HEAVY)
    assert (done.returncode, done.stderr) == (AS_PROMISED, "")
    assert without_seconds(json.loads(done.stdout)) == without_seconds(ackfsm("check --json").json)


def test_a_large_check_without_numba_only_takes_longer(ackfsm: _Ackfsm) -> None:
    line = "check --json --max-faults any"
    done = alone(line, *HEAVY)
    assert (done.returncode, done.stderr) == (AS_PROMISED, "")
    with_numba = ackfsm(line).json
    assert with_numba["states"] > 4_000, "so large that it is compiled where it can be"
    assert without_seconds(json.loads(done.stdout)) == without_seconds(with_numba)


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ackfsm.cli", "check", "--fault", "no"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SPEC.parent)},
    )
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert done.stderr.startswith("ackfsm check: there is no fault 'no'; the faults are ")
    assert "Traceback" not in done.stderr


def without_seconds(found: dict[str, Any]) -> dict[str, Any]:
    assert Anomaly.LOSS in found["anomalies"]
    return {key: value for key, value in found.items() if key != "seconds"}


def test_the_collector_of_cycles_works_and_does_so_seldom_and_not_at_the_end() -> None:
    program = """
import gc, sys
from ackfsm.cli import main
before = gc.get_threshold()
sys.argv = ["ackfsm", "check", "--profile", "jms", "--max-faults", "0"]
code = main()
print(code, gc.isenabled(), gc.get_threshold()[0] > before[0], gc.get_threshold()[1:] == before[1:])
print(gc.get_freeze_count() > len(gc.get_objects()))
"""
    done = ended(program=[sys.executable, "-c", program])
    assert done.out.splitlines()[-2:] == [b"0 True True True", b"True"], done.err
