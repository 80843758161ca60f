"""What nobody records accuses nobody: without any `processed` nothing is said of what was processed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ackfsm import verify
from ackfsm.cli import main
from ackfsm.terms import Anomaly, Verdict
from ackfsm.verify import Findings, judge
from model_tests.support.tables import shipped
from model_tests.support.verify.counting import as_counted
from model_tests.support.verify.notation import events_of, write

SPEC = shipped()
NEVER: dict[Anomaly, bool | None] = dict.fromkeys(Anomaly, False)
WANT = "no `processed` is recorded; record one whenever a message is done with"

CASES = {
    "acknowledgements alone": "p send m1; p confirmed m1; c delivered m1 clear; c acknowledge scope=session; n drained",
    "and one came again": "p send m1; p confirmed m1; c delivered m1 clear; d delivered m1 flagged; n drained",
    "and nobody saw the queue empty": "p send m1; p confirmed m1; c delivered m1 clear",
    "nothing was delivered": "p send m1; p rejected m1; n drained",
    "all came to another end": "p send m1; p confirmed m1; c delivered m1 clear; b dead_lettered m1; n drained",
    "some failed": "p send m1; p confirmed m1; c delivered m1 clear; c failed m1; n drained",
    "one consumer does not tell": (
        "p send m1; p confirmed m1; p send m2; p confirmed m2; p send m3; p confirmed m3; c delivered m1 clear; "
        "c processed m1; d delivered m2 clear; d delivered m3 clear; n drained"
    ),
    "and another lost one": (
        "p send m1; p confirmed m1; p send m2; p confirmed m2; p send m3; p confirmed m3; p send m4; p confirmed m4; "
        "c delivered m1 clear; c processed m1; c delivered m4 clear; d delivered m2 clear; d delivered m3 clear; "
        "n drained"
    ),
    "died with its only message": (
        "p send m1; p confirmed m1; p send m2; p confirmed m2; c delivered m1 clear; c processed m1; "
        "d delivered m2 clear; d delivered m2 flagged; n drained"
    ),
    "a worker tells for the consumer": (
        "p send m1; p confirmed m1; p send m2; p confirmed m2; c delivered m1 clear; w processed m1; "
        "c delivered m2 clear; n drained"
    ),
    "another consumer does not tell for it": (
        "p send m1; p confirmed m1; p send m2; p confirmed m2; d delivered m1 clear; d delivered m2 clear; "
        "c delivered m1 flagged; c processed m1; n drained"
    ),
}


def _examined(text: str, tmp_path: Path) -> Findings:
    return verify.examine(verify.read(write(events_of(text), tmp_path / "h.jsonl")), SPEC, SPEC.configure("jms"))


@pytest.mark.parametrize(
    ("case", "unprocessed", "why"),
    [
        ("acknowledgements alone", None, WANT),
        ("and one came again", None, WANT),
        (
            "and nobody saw the queue empty",
            None,
            "no `drained` follows the last send to a queue without a name",
        ),
        ("nothing was delivered", 0, None),
        ("all came to another end", 0, None),
        ("some failed", None, WANT),
    ],
)
def test_without_any_processed_nobody_knows_what_was(
    case: str, unprocessed: int | None, why: str | None, tmp_path: Path
) -> None:
    finding = _examined(CASES[case], tmp_path).anomalies[Anomaly.UNPROCESSED]
    assert (finding.count, finding.unknown, finding.found, finding.examples) == (unprocessed, why, 0, ())


def test_what_was_not_drained_either_is_said_in_the_same_sentence(tmp_path: Path) -> None:
    text = "p send m1 queue=q; c delivered m1 clear queue=q; n drained queue=q; p send m2 queue=r; c delivered m2 clear"
    finding = _examined(text, tmp_path).anomalies[Anomaly.UNPROCESSED]
    assert finding.unknown == f"no `drained` follows the last send to 'r', and {WANT}"


def test_what_came_again_may_have_been_processed_again(tmp_path: Path) -> None:
    assert _examined(CASES["acknowledgements alone"], tmp_path).anomalies[Anomaly.REPROCESSED].count == 0
    again = _examined(CASES["and one came again"], tmp_path).anomalies[Anomaly.REPROCESSED]
    assert (again.count, again.unknown) == (None, WANT)


def test_the_verdict_is_open_unless_it_is_allowed_anyway(tmp_path: Path) -> None:
    found = as_counted(_examined(CASES["and one came again"], tmp_path))
    allowed = NEVER | {Anomaly.DUPLICATE: True}
    result = judge(found, allowed)
    assert result.verdict is Verdict.UNKNOWN
    assert result.reasons == (f"unprocessed and reprocessed are unknown: {WANT}",)
    partly = judge(found, allowed | {Anomaly.REPROCESSED: True})
    assert partly.reasons == (f"unprocessed is unknown: {WANT}",)
    wholly = judge(found, allowed | {Anomaly.REPROCESSED: True, Anomaly.UNPROCESSED: True})
    assert (wholly.verdict, wholly.reasons) == (Verdict.VALID, ())


def test_whoever_knows_that_all_was_recorded_can_say_so(tmp_path: Path) -> None:
    file = write(events_of(CASES["acknowledgements alone"]), tmp_path / "h.jsonl")
    found = verify.examine(verify.read(file), SPEC, SPEC.configure(), tells_processed=True)
    assert found.anomalies[Anomaly.UNPROCESSED].examples == ("m1",)


@pytest.mark.parametrize(
    ("case", "count", "doubted"),
    [
        ("one consumer does not tell", 2, 2),
        ("and another lost one", 3, 2),
        ("died with its only message", 1, 0),
        ("a worker tells for the consumer", 1, 0),
        ("another consumer does not tell for it", 1, 1),
    ],
)
def test_beside_others_that_tell_the_count_is_to_the_letter_and_is_doubted(
    case: str, count: int, doubted: int, tmp_path: Path
) -> None:
    found = as_counted(_examined(CASES[case], tmp_path))
    finding = found.anomalies[Anomaly.UNPROCESSED]
    assert (finding.count, finding.doubted) == (count, doubted)
    result = judge(found, {**dict.fromkeys(Anomaly, True), Anomaly.UNPROCESSED: False}, never=[Anomaly.UNPROCESSED])
    assert result.verdict is (Verdict.INVALID if count > doubted else Verdict.UNKNOWN)
    assert result.never[Anomaly.UNPROCESSED] is (True if count > doubted else None)
    if doubted:
        told = "was" if doubted == 1 else "were"
        assert result.reasons[-1] == (
            f"{doubted} of the unprocessed {told} delivered to 'd', of whom no `processed` is recorded; record one"
            " whenever a message is done with"
        )


def test_what_also_came_to_one_that_does_not_tell_may_be_reprocessed(tmp_path: Path) -> None:
    found = as_counted(_examined(CASES["another consumer does not tell for it"], tmp_path))
    finding = found.anomalies[Anomaly.REPROCESSED]
    assert (finding.count, finding.doubted) == (0, 0)
    result = judge(found, {**dict.fromkeys(Anomaly, True), Anomaly.REPROCESSED: False}, never=[Anomaly.REPROCESSED])
    assert result.verdict is Verdict.UNKNOWN
    assert result.never[Anomaly.REPROCESSED] is None
    assert result.reasons == (
        (
            "1 repeated message may be reprocessed: of 'd' no `processed` is recorded; record one whenever a message is"
            " done with"
        ),
    )


def test_what_is_counted_as_reprocessed_is_not_doubted_too(tmp_path: Path) -> None:
    twice = "c delivered m1 clear; c processed m1; c delivered m1 flagged; c processed m1"
    silent = "d delivered m1 flagged; p send m2; d delivered m2 clear; c delivered m3 clear"
    finding = _examined(f"p send m1; p send m3; {twice}; {silent}", tmp_path).anomalies[Anomaly.REPROCESSED]
    assert (finding.examples, finding.doubt) == (("m1",), None)


def test_the_command_names_the_want(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(events_of(CASES["acknowledgements alone"]), tmp_path / "h.jsonl")
    assert main(["verify", str(file), "--profile", "jms", "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "unknown"
    assert told["anomalies"]["unprocessed"] == {
        "count": None,
        "allowed": False,
        "messages": [],
        "unexplained": 0,
        "unexplained_messages": [],
        "causes": {},
    }
    assert told["reasons"] == [f"unprocessed is unknown: {WANT}"]


def test_a_pass_says_what_nobody_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{CASES['acknowledgements alone'].removesuffix('; n drained')}; n fault fault=consumer_crash; n drained"
    file = write(events_of(text), tmp_path / "h.jsonl")
    assert main(["verify", str(file), "--set", "consumption=receive"]) == 0
    assert "valid: how much is unprocessed is unknown, and allowed in any number\n" in capsys.readouterr().out
