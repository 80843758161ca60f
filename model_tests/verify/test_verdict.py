"""The verdict: what makes a history invalid, and everything that keeps it from being valid."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from rich.console import Console

from ackfsm import verify
from ackfsm.checking import explore
from ackfsm.cli import main
from ackfsm.showing.views.verify import verify_screen
from ackfsm.terms import Anomaly, Configuration, Fault, Verdict
from ackfsm.verify import Finding, Findings, ParseError, judge
from ackfsm.verify.context.allowed import Allowed
from ackfsm.verify.words import occurrence
from model_tests.support.tables import shipped
from model_tests.support.verify.notation import events_of, write

SPEC = shipped()
NOT_ALLOWED = "which the configuration does not allow under broker_kill and consumer_crash"
NOT_DRAINED = "no `drained` follows the last send to 'q'"
UNCONFIGURED = "it depends on the configuration, and none is known"


def _finding(anomaly: Anomaly, **changes: Any) -> Finding:
    fields: dict[str, Any] = {"found": 0, "unknown": None, "needs_every_line": True, "examples": ()}
    return Finding(anomaly=anomaly, **fields | changes)


CLEAN = Findings(
    history="h.jsonl",
    engine="local",
    configuration=SPEC.configure("jms"),
    events=9,
    messages=2,
    parse_errors=0,
    unreadable=(),
    faults=(Fault.BROKER_KILL, Fault.CONSUMER_CRASH),
    actions=(),
    anomalies=MappingProxyType({anomaly: _finding(anomaly) for anomaly in (Anomaly.LOSS, Anomaly.DUPLICATE)}),
    counters=MappingProxyType({"confirmed": 2}),
)
PROMISED: dict[Anomaly, bool | None] = {Anomaly.LOSS: False, Anomaly.DUPLICATE: True}
LOST = _finding(Anomaly.LOSS, found=1, examples=("m2",))
REPEATED = _finding(Anomaly.DUPLICATE, found=4, examples=("m1", "m2", "m3", "m4"), needs_every_line=False)
TORN_LINE = {"parse_errors": 1, "unreadable": (ParseError(7, "it is torn"),)}
UNREAD = "1 of 10 lines could not be read (line 7: it is torn), so every count may lack something"


def _with(*findings: Finding, **changes: Any) -> Findings:
    anomalies = {**CLEAN.anomalies, **{finding.anomaly: finding for finding in findings}}
    return dataclasses.replace(CLEAN, anomalies=anomalies, **changes)


CASES: dict[str, tuple[Findings, dict[Anomaly, bool | None], Verdict, tuple[str, ...]]] = {
    "clean": (CLEAN, PROMISED, Verdict.VALID, ()),
    "what is allowed happened": (_with(REPEATED), PROMISED, Verdict.VALID, ()),
    "what is not allowed happened": (
        _with(LOST),
        PROMISED,
        Verdict.INVALID,
        (f"loss of 1 message ('m2'), {NOT_ALLOWED}",),
    ),
    "without a fault": (
        _with(REPEATED, faults=()),
        {Anomaly.DUPLICATE: False},
        Verdict.INVALID,
        ("duplicate of 4 messages ('m1', 'm2', 'm3', ...), which the configuration does not allow without a fault",),
    ),
    "nobody can tell whether it is allowed": (
        _with(REPEATED),
        PROMISED | {Anomaly.DUPLICATE: None},
        Verdict.UNKNOWN,
        (
            (
                "duplicate of 4 messages ('m1', 'm2', 'm3', ...), and the tables cannot tell whether the configuration"
                " allows it"
            ),
        ),
    ),
    "its kind is allowed, and nothing explains these": (
        _with(dataclasses.replace(REPEATED, unexplained=1, unexplained_examples=("m3",))),
        PROMISED,
        Verdict.INVALID,
        ("duplicate of 4 messages ('m1', 'm2', 'm3', ...), which nothing recorded before explains in 1 message",),
    ),
    "its kind is allowed, and the model decided nothing of some": (
        _with(dataclasses.replace(REPEATED, unexplained=0, undecided=2)),
        PROMISED,
        Verdict.UNKNOWN,
        ("duplicate of 4 messages ('m1', 'm2', 'm3', ...), and 2 of them could not be decided",),
    ),
    "its kind is not allowed, and something explains each": (
        _with(dataclasses.replace(LOST, unexplained=0)),
        PROMISED,
        Verdict.VALID,
        (),
    ),
    "nobody says whether it is allowed": (
        _with(LOST),
        {},
        Verdict.UNKNOWN,
        ("loss of 1 message ('m2'), and the tables cannot tell whether the configuration allows it",),
    ),
    "nobody can tell, but it did not happen": (CLEAN, {}, Verdict.VALID, ()),
    "a line is unread": (_with(**TORN_LINE), PROMISED, Verdict.UNKNOWN, (UNREAD,)),
    "an unread line may explain it": (
        _with(LOST, **TORN_LINE),
        PROMISED,
        Verdict.UNKNOWN,
        (
            UNREAD,
            "loss of 1 message ('m2'), which is not allowed, but the lines that could not be read may explain it",
        ),
    ),
    "no unread line can explain it": (
        _with(REPEATED, **TORN_LINE),
        {Anomaly.DUPLICATE: False, Anomaly.LOSS: False},
        Verdict.INVALID,
        (f"duplicate of 4 messages ('m1', 'm2', 'm3', ...), {NOT_ALLOWED}", UNREAD),
    ),
    "not drained": (
        _with(_finding(Anomaly.LOSS, unknown=NOT_DRAINED)),
        PROMISED,
        Verdict.UNKNOWN,
        (f"loss is unknown: {NOT_DRAINED}",),
    ),
    "lost from the queue that was drained": (
        _with(dataclasses.replace(LOST, unknown=NOT_DRAINED)),
        PROMISED,
        Verdict.INVALID,
        (
            f"loss of 1 message ('m2'), {NOT_ALLOWED}",
            f"loss is unknown: {NOT_DRAINED}",
        ),
    ),
    "no configuration": (
        _with(LOST, configuration=None),
        {},
        Verdict.UNKNOWN,
        ("no configuration is known to judge it by; name one (--profile, --set) or add a header",),
    ),
    "nothing was sent": (
        _with(messages=0),
        PROMISED,
        Verdict.UNKNOWN,
        ("no message was sent, so nothing was shown",),
    ),
}


@pytest.mark.parametrize(("findings", "allowed", "verdict", "reasons"), CASES.values(), ids=CASES)
def test_the_verdict_and_its_reasons(
    findings: Findings, allowed: dict[Anomaly, bool | None], verdict: Verdict, reasons: tuple[str, ...]
) -> None:
    result = judge(findings, allowed)
    assert (result.verdict, result.reasons) == (verdict, reasons)


def test_the_json_has_the_keys_of_the_contract() -> None:
    unknown = _finding(Anomaly.LOSS, unknown=NOT_DRAINED, found=1, examples=("m2",))
    shown = json.loads(json.dumps(judge(_with(unknown, REPEATED), PROMISED).as_json()))
    assert shown == {
        "history": "h.jsonl",
        "config": CLEAN.configuration and CLEAN.configuration.as_dict(),
        "engine": "local",
        "events": 9,
        "messages": 2,
        "parse_errors": 0,
        "unreadable": [],
        "faults": ["broker_kill", "consumer_crash"],
        "actions": [],
        "verdict": "invalid",
        "reasons": [
            f"loss of 1 message ('m2'), {NOT_ALLOWED}",
            f"loss is unknown: {NOT_DRAINED}",
        ],
        "anomalies": {
            "loss": {"count": None, "allowed": False, "messages": ["m2"]},
            "duplicate": {"count": 4, "allowed": True, "messages": ["m1", "m2", "m3", "m4"]},
        },
        "conformance": None,
        "ends": {},
        "counters": {"confirmed": 2},
        "guarantees": {},
        "strongest": [],
    }


def test_a_wrong_no_of_a_search_accuses_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What one message does not show is asked again, of any number of messages."""
    check = explore.check

    def says_no(*asked: Any, **how: Any) -> explore.Answer:
        answer = check(*asked, **how)
        found = {name: dataclasses.replace(one, reachable=False) for name, one in answer.findings.items()}
        return dataclasses.replace(answer, findings=found)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("ackfsm.verify.context.allowed.check", says_no)
    result = verify.verdict(_with(REPEATED), SPEC)
    assert (result.verdict, result.reasons) == (Verdict.VALID, ())
    assert result.allowed == {Anomaly.LOSS: False, Anomaly.DUPLICATE: True}


@pytest.mark.parametrize(
    ("answer", "told", "limit"),
    [
        (Allowed(answer=False, limit="of few"), Verdict.INVALID, f"{NOT_ALLOWED} (of few)"),
        (
            Allowed(answer=None, limit="no end"),
            Verdict.UNKNOWN,
            "and the tables cannot tell whether the configuration allows it: no end",
        ),
    ],
)
def test_a_reason_says_on_what_the_answer_rests(
    answer: Allowed, told: Verdict, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ackfsm.verify.findings.verdict.allowed", lambda *_, **__: {Anomaly.LOSS: answer})
    result = verify.verdict(_with(LOST), SPEC)
    assert (result.verdict, result.reasons) == (told, (f"loss of 1 message ('m2'), {limit}",))


def _examined(text: str, file: Path, configuration: Configuration | None) -> Findings:
    return verify.examine(verify.read(write(events_of(text), file)), SPEC, configuration)


def test_without_a_configuration_what_depends_on_one_is_unknown(tmp_path: Path) -> None:
    text = "p send m1; c delivered m1 clear; c delivered m1 clear; c processed m1; n drained"
    found = _examined(text, tmp_path / "h.jsonl", None)
    unknown = {anomaly for anomaly, finding in found.anomalies.items() if finding.count is None}
    assert unknown == {
        Anomaly.MISSING_OUTCOME,
        Anomaly.WINDOW_OVERRUN,
        Anomaly.PREFETCH_OVERRUN,
        Anomaly.EARLY_CONFIRM,
        Anomaly.OVER_DELIVERED,
        Anomaly.GHOST,
    }
    assert found.anomalies[Anomaly.UNFLAGGED_DUPLICATE].examples == ("m1",)
    result = judge(found, {})
    assert result.verdict is Verdict.UNKNOWN
    assert result.reasons == (
        "no configuration is known to judge it by; name one (--profile, --set) or add a header",
        "window_overrun, prefetch_overrun, missing_outcome, early_confirm, over_delivered and ghost are unknown: "
        + UNCONFIGURED,
    )


def test_at_most_a_hundred_ids_are_given_and_all_are_counted(tmp_path: Path) -> None:
    text = "\n".join(f"c delivered m{999 - i} clear" for i in range(300))
    found = _examined(text, tmp_path / "h.jsonl", SPEC.configure("jms"))
    phantom = found.anomalies[Anomaly.PHANTOM]
    assert (phantom.count, phantom.examples) == (300, tuple(f"m{i}" for i in range(700, 800)))
    assert found.messages == 0


def test_a_send_that_is_open_at_the_end_of_a_history_may_still_be_answered(tmp_path: Path) -> None:
    open_, blocked = "p send m1", "p send m1; p send m2; p confirmed m2"
    said = {text: _result(text, tmp_path) for text in (open_, blocked, f"{open_}; n drained")}
    assert [each.verdict for each in said.values()] == [Verdict.UNKNOWN, Verdict.UNKNOWN, Verdict.INVALID]
    want = "and 1 of them could not be decided: an outcome may come until a `drained` follows the send"
    assert f"missing_outcome of 1 message ('m1'), {want}" in said[open_].reasons


def test_a_commit_that_is_told_to_be_rolled_back_may_be_done_if_its_connection_broke(tmp_path: Path) -> None:
    told = (
        "p send m1 transaction=t; p commit transaction=t; {}p rolled_back transaction=t;"
        "c delivered m1 clear transaction=u; c processed m1 transaction=u; c commit transaction=u;"
        "c committed transaction=u; n drained"
    )
    broken = _result(told.format("p close error=reset;"), tmp_path)
    assert broken.verdict is Verdict.UNKNOWN
    assert "write commit_in_doubt where nobody knows" in "".join(broken.reasons)
    assert _result(told.format(""), tmp_path).verdict is Verdict.INVALID


def _result(text: str, folder: Path) -> verify.Result:
    return verify.verdict(_examined(text, folder / "h.jsonl", SPEC.configure("ems")), SPEC)


def test_queues_that_were_not_drained_are_named(tmp_path: Path) -> None:
    sends = ";".join(f"p send m{i} queue=q{i}" for i in range(5))
    found = _examined(f"{sends}; n drained queue=q3; p send m9", tmp_path / "h.jsonl", SPEC.configure("jms"))
    assert found.anomalies[Anomaly.LOSS].unknown == (
        "no `drained` follows the last send to a queue without a name, 'q0', 'q1', ..."
    )


RECOVERED = [
    {"t": 1, "process": "p", "event": "send", "queue": "q", "message": "m1"},
    {"t": 2, "process": "p", "event": "confirmed", "queue": "q", "message": "m1"},
    {
        "t": 3,
        "process": "c",
        "event": "delivered",
        "queue": "q",
        "message": "m1",
        "session": "c1",
        "redelivered": False,
    },
    {"t": 5, "process": "c", "event": "delivered", "queue": "q", "message": "m1", "session": "c2", "redelivered": True},
    {"t": 6, "process": "c", "event": "processed", "queue": "q", "message": "m1", "session": "c2"},
    {"t": 9, "process": "n", "event": "drained", "queue": "q"},
]


@pytest.mark.parametrize("event", ["recover", "rollback", "close"])
@pytest.mark.parametrize(
    ("session", "t", "actions"), [("c1", 4, ("recover",)), ("c1", 7, ()), ("c2", 4, ()), ("c1", 2, ())]
)
def test_a_session_that_was_given_up_between_two_deliveries_explains_the_second(
    tmp_path: Path, event: str, session: str, t: int, actions: tuple[str, ...]
) -> None:
    lines = [*RECOVERED, {"t": t, "process": "c", "event": event, "session": session, "transaction": "x"}]
    file = tmp_path / "h.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines))
    findings = verify.examine(verify.read(file), SPEC, SPEC.configure("jms"))
    assert findings.actions == actions
    assert findings.anomalies[Anomaly.DUPLICATE].count == 1


# what shall never be


NEVER_CASES: dict[str, tuple[Findings, dict[Anomaly, bool | None], bool | None, int | None, str]] = {
    "allowed": (
        _with(dataclasses.replace(LOST, found=2)),
        {Anomaly.LOSS: True},
        True,
        2,
        "2 messages were lost, which this configuration allows; --never loss forbids it",
    ),
    "not allowed": (
        _with(LOST),
        PROMISED,
        True,
        1,
        "1 message was lost, which neither this configuration nor --never loss allows",
    ),
    "undecided": (
        _with(LOST),
        {},
        True,
        1,
        "1 message was lost, and it is open whether that is allowed; --never loss forbids it",
    ),
    "no configuration": (
        _with(LOST, configuration=None),
        {},
        True,
        1,
        "1 message was lost; --never loss forbids it",
    ),
    "none": (CLEAN, PROMISED, False, 0, "no message was lost (--never loss)"),
    "none, without a configuration": (
        _with(configuration=None),
        {},
        False,
        0,
        "no message was lost (--never loss)",
    ),
    "unknown": (
        _with(_finding(Anomaly.LOSS, unknown=NOT_DRAINED)),
        PROMISED,
        None,
        None,
        f"whether a message was lost is unknown: {NOT_DRAINED} (--never loss)",
    ),
    "some, and perhaps more": (
        _with(dataclasses.replace(LOST, unknown=NOT_DRAINED)),
        PROMISED | {Anomaly.LOSS: True},
        True,
        None,
        "at least 1 message was lost, which this configuration allows; --never loss forbids it",
    ),
    "unread lines may hold it": (
        _with(**TORN_LINE),
        PROMISED,
        None,
        0,
        "whether a message was lost is unknown: lines could not be read (--never loss)",
    ),
    "unread lines may explain it": (
        _with(LOST, **TORN_LINE),
        PROMISED,
        None,
        1,
        "whether a message was lost is unknown: lines could not be read (--never loss)",
    ),
    "nothing was sent": (
        _with(messages=0),
        PROMISED,
        None,
        0,
        "whether a message was lost is unknown: no message was sent (--never loss)",
    ),
    "all of it is doubted": (
        _with(dataclasses.replace(LOST, doubted=1, doubt="clocks differ")),
        PROMISED,
        None,
        1,
        "whether a message was lost is unknown: clocks differ (--never loss)",
    ),
    "a part of it is doubted": (
        _with(dataclasses.replace(LOST, found=3, doubted=2, doubt="clocks differ")),
        PROMISED | {Anomaly.LOSS: True},
        True,
        3,
        "at least 1 message was lost, which this configuration allows; --never loss forbids it",
    ),
}


@pytest.mark.parametrize(("findings", "allowed", "found", "count", "sentence"), NEVER_CASES.values(), ids=NEVER_CASES)
def test_what_shall_never_be_is_answered_beside_the_verdict(
    findings: Findings,
    allowed: dict[Anomaly, bool | None],
    found: bool | None,  # noqa: FBT001 - a column of the cases
    count: int | None,
    sentence: str,
) -> None:
    result = judge(findings, allowed, never=[Anomaly.LOSS])
    assert (result.verdict, result.reasons) == (judge(findings, allowed).verdict, judge(findings, allowed).reasons)
    ids = list(findings.anomalies[Anomaly.LOSS].examples)
    assert result.as_json()["never"] == {"loss": {"count": count, "found": found, "messages": ids}}
    first, *_ = _screen(result)
    assert first == sentence


def _screen(result: verify.Result, *, everything: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), width=160, highlight=False, markup=False)
    with console.capture() as said:
        console.print(verify_screen(result, SPEC, everything=everything))
    assert all(len(line) <= 80 for line in said.get().splitlines())
    return _sentences(said.get())


def _sentences(screen: str) -> list[str]:
    """The lines of a screen, each with those that continue it, which are indented."""
    lines = (line.rstrip() for line in screen.splitlines())
    return re.sub(r"\n +(?=[^ -])", " ", "\n".join(lines)).split("\n")


def test_every_anomaly_of_a_history_has_its_words() -> None:
    for anomaly in verify.shown_anomalies(SPEC):
        told = [occurrence(anomaly, number) for number in (None, 0, 1, 2, 3_000)]
        assert len(set(told)) == 5
        assert told[3].startswith("2 transactions were " if anomaly is Anomaly.TORN_TRANSACTION else "2 messages were ")
        assert told[4].startswith("3,000 ")


PASSES = {
    "valid: no anomaly was found": CLEAN,
    "valid: 4 duplicate, all allowed by this configuration": _with(REPEATED),
    "valid: 1 loss and 4 duplicate, all allowed by this configuration": _with(LOST, REPEATED),
    "valid: how much is unprocessed is unknown, and allowed in any number": _with(
        _finding(Anomaly.UNPROCESSED, unknown="nobody told", unrecorded=True)
    ),
}


@pytest.mark.parametrize(("sentence", "findings"), PASSES.items(), ids=PASSES)
def test_a_pass_says_what_it_passes(sentence: str, findings: Findings) -> None:
    assert sentence in _screen(judge(findings, dict.fromkeys(Anomaly, True)))


def test_the_screen_has_what_was_found_and_with_all_of_it_what_each_anomaly_means() -> None:
    result = judge(_with(LOST, REPEATED), PROMISED)
    said = {everything: _screen(result, everything=everything) for everything in (False, True)}
    for lines in said.values():
        assert lines[0] == "invalid: 1 message was lost, which the configuration does not allow"
        assert "loss       1  not allowed by this configuration" in lines
        assert any(line.startswith("duplicate  4  allowed by this configuration") for line in lines)
    assert not any("permitted cause" in line for line in said[False])
    assert any("permitted cause" in line for line in said[True])
    none = _screen(judge(CLEAN, PROMISED))
    assert not any(line.startswith("loss ") for line in none)
    assert any(line.startswith("loss") for line in _screen(judge(CLEAN, PROMISED), everything=True))


LOSING = [
    '{"ackfsm_history": 1, "config": {"profile": "jms", "delivery_mode": "NON_PERSISTENT"}}',
    '{"t": 1, "process": "p", "event": "send", "message": "m1"}',
    '{"t": 2, "process": "p", "event": "confirmed", "message": "m1"}',
    '{"t": 3, "process": "n", "event": "fault", "fault": "broker_kill"}',
]
EMPTY = '{"t": 9, "process": "n", "event": "drained"}'


@pytest.mark.parametrize(
    ("lines", "options", "code", "found"),
    [
        ([*LOSING, EMPTY], [], 0, None),
        ([*LOSING, EMPTY], ["--never", "loss"], 1, {"loss": True}),
        ([*LOSING, EMPTY], ["--never", "unprocessed"], 0, {"unprocessed": False}),
        ([*LOSING, EMPTY], ["--never", "unprocessed, loss"], 1, {"unprocessed": False, "loss": True}),
        ([*LOSING, EMPTY], ["--never=duplicate", "--never=loss,duplicate"], 1, {"duplicate": False, "loss": True}),
        (LOSING, ["--never", "duplicate"], 3, {"duplicate": False}),
        (LOSING, ["--never", "loss"], 3, {"loss": None}),
        ([*LOSING[1:], EMPTY], ["--never", "loss"], 1, {"loss": True}),
        ([*LOSING[1:], EMPTY], ["--never", "unprocessed"], 3, {"unprocessed": False}),
        ([*LOSING[1:], EMPTY], ["--never", "early_confirm"], 3, {"early_confirm": None}),
        ([*LOSING, EMPTY, "{"], ["--never", "loss"], 3, {"loss": None}),
        ([*LOSING[:3], EMPTY], ["--never", "duplicate"], 1, {"duplicate": False}),
    ],
)
def test_the_exit_code_answers_both_questions(  # noqa: PLR0913, PLR0917 - the columns of the cases
    lines: list[str],
    options: list[str],
    code: int,
    found: dict[str, bool | None] | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "h.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    assert main(["verify", str(file), *options]) == code
    screen = capsys.readouterr().out
    assert main(["verify", str(file), "--json", *options]) == code
    told = json.loads(capsys.readouterr().out)
    if found is None:
        assert "never" not in told
        assert screen.startswith("valid: 1 loss, all allowed by this configuration\n")
    else:
        assert {name: answer["found"] for name, answer in told["never"].items()} == found
        assert all(f"--never {name}" in line for name, line in zip(found, _sentences(screen), strict=False))


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("lost", "there is no anomaly 'lost' (did you mean loss?)"),
        ("", "there is no anomaly ''"),
        ("loss,", "there is no anomaly ''"),
        ("Loss", "there is no anomaly 'Loss' (did you mean loss?)"),
        ("loss,\x1b[2J", "there is no anomaly '\\x1b[2J'"),
    ],
)
def test_a_name_that_is_no_anomaly_of_a_history_is_refused(
    names: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(tmp_path / "missing.jsonl"), "--never", names]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"ackfsm verify: --never: {why}; it is one of loss, unprocessed, duplicate, ")
    assert told.count("\n") == 1
