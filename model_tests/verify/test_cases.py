"""Stories of users and of live brokers are judged as the documents and the brokers have it.

``data/cases/*/expected.json`` says of each history which verdict is right (``refused``: exit code 2), which anomalies
have to be held against the system, each with messages that have to be among them, and which others may be.
``data/cases/not_yet.yaml`` names what is not judged so, and why.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ackfsm.cli import main
from model_tests.support.data import read_data
from model_tests.support.places import DATA

CASES = DATA / "cases"
KINDS = ("minimal", "public", "tickets", "live")
NOT_YET: dict[str, str] = read_data("cases/not_yet.yaml") or {}


def _expected(kind: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads((CASES / kind / "expected.json").read_text(encoding="utf-8"))
    return found


def _cases() -> list[Any]:
    return [
        pytest.param(
            CASES / kind / name,
            expected,
            id=name.removesuffix(".jsonl"),
            marks=[pytest.mark.xfail(reason=NOT_YET[name], strict=True)] if name in NOT_YET else [],
        )
        for kind in KINDS
        for name, expected in _expected(kind).items()
    ]


def _held_against(found: dict[str, Any]) -> dict[str, list[str]]:
    """The anomalies that make the history invalid, each with its messages that nothing explains."""
    held = {}
    for name, one in found["anomalies"].items():
        if one.get("unexplained", one["count"] if one["allowed"] is False else 0):
            held[name] = one.get("unexplained_messages", one["messages"])
    return held


@pytest.mark.parametrize(("path", "expected"), _cases())
def test_a_story_is_judged_as_it_should_be(
    path: Path, expected: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["verify", "--json", str(path)])
    printed = capsys.readouterr().out
    found = json.loads(printed) if code != 2 else {"verdict": "refused", "anomalies": {}}
    assert found["verdict"] in expected["verdict"]
    held = _held_against(found)
    if "not_allowed" in expected:
        assert expected["not_allowed"].keys() <= held.keys()
        assert held.keys() <= {*expected["not_allowed"], *expected["maybe_not_allowed"]}
    for name, messages in expected.get("not_allowed", {}).items():
        assert set(messages) <= set(held[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_every_history_is_expected_to_be_something(kind: str) -> None:
    assert {path.name for path in (CASES / kind).glob("*.jsonl")} == _expected(kind).keys()


@pytest.mark.parametrize(
    ("config", "later"),
    [
        ({"profile": "jms"}, "consumer-1"),
        ({"profile": "rabbitmq", "listener_exception": "next_message"}, "another consumer"),
    ],
)
def test_a_later_commit_excuses_nothing_that_was_given_back_or_is_with_another_session(
    config: dict[str, str], later: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header, *lines = (CASES / "live" / "rabbitmq-stomp-kept-through-a-rollback.jsonl").read_text("utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    by_another = {"process": later, "session": later}
    events = [each | (by_another if each.get("transaction") in {"t4", "t5"} else {}) for each in events]
    config = config | {"ack_mode": "SESSION_TRANSACTED", "consumption": "listener"}
    path = tmp_path / "h.jsonl"
    path.write_text("\n".join(map(json.dumps, [{**json.loads(header), "config": config}, *events])), encoding="utf-8")
    assert main(["verify", "--json", str(path)]) == 1
    assert set(json.loads(capsys.readouterr().out)["anomalies"]["unprocessed"]["messages"]) == {"m1"}


def test_what_is_not_judged_so_yet_is_a_case() -> None:
    assert NOT_YET.keys() <= {name for kind in KINDS for name in _expected(kind)}
