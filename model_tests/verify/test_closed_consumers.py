"""The close of one consumer: what was handed over stays with its session, what was prefetched goes back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ackfsm.cli import main
from model_tests.support.verify.notation import write

VALID, INVALID = 0, 1
RABBITMQ = {"profile": "rabbitmq", "ack_mode": "INDIVIDUAL_ACKNOWLEDGE"}
SENT = [("p", "send", "m1"), ("p", "confirmed", "m1")]
USED = [("processed", "m1"), ("acknowledge", "m1")]


def judged(folder: Path, config: Mapping[str, str], *lines: tuple[str, ...]) -> int:
    """The exit code of ``verify``; a line is who, what, and of which message or consumer."""
    rows: list[Mapping[str, Any]] = [{"ackfsm_history": 1, "config": dict(config)}]
    for number, (process, event, *rest) in enumerate([*SENT, *lines, ("n", "drained")], start=1):
        row = {"t": number * 5 * 10**9, "process": process, "event": event, "session": process}
        if rest[:1] != ["session"]:
            row["queue"] = "q"
        if rest and rest[0].startswith("m"):
            row["message"] = rest[0]
        if event == "delivered":
            row["redelivered"] = "flagged" in rest
        if event == "failed" and len(rest) > 1:
            row["outcome"] = rest[1]
        if event == "acknowledge":
            row["scope"] = "message"
        rows.append(row)
    file = folder / "closed.jsonl"
    write(rows, file)
    return main(["verify", "--json", str(file)])


def by(process: str, *lines: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [(process, *line) for line in lines]


def test_what_was_handed_over_does_not_come_again(tmp_path: Path) -> None:
    lines = [*by("c1", ("delivered", "m1"), ("close", "consumer")), *by("c2", ("delivered", "m1", "flagged"), *USED)]
    assert judged(tmp_path, RABBITMQ, *lines) == INVALID


def test_it_comes_again_when_the_session_closes(tmp_path: Path) -> None:
    first = by("c1", ("delivered", "m1"), ("close", "consumer"), ("close", "session"))
    assert judged(tmp_path, RABBITMQ, *first, *by("c2", ("delivered", "m1", "flagged"), *USED)) == VALID


@pytest.mark.parametrize("profile", ["rabbitmq", "qpid-jms"])
@pytest.mark.parametrize(("outcome", "code"), [("rejected", VALID), ("released", INVALID)])
def test_what_was_rejected_may_be_gone_without_another_line(
    profile: str, outcome: str, code: int, tmp_path: Path
) -> None:
    config = {"profile": profile, "ack_mode": "INDIVIDUAL_ACKNOWLEDGE"}
    other = [("p", "send", "m2"), ("p", "confirmed", "m2")]
    used = ("delivered", "m2"), ("processed", "m2"), ("acknowledge", "m2")
    assert judged(tmp_path, config, *other, *by("c1", ("delivered", "m1"), ("failed", "m1", outcome), *used)) == code


def test_it_may_still_be_acknowledged(tmp_path: Path) -> None:
    lines = by("c1", ("delivered", "m1"), ("close", "consumer"), *USED, ("close", "session"))
    assert judged(tmp_path, RABBITMQ, *lines) == VALID


def test_a_message_that_is_set_aside_is_in_its_queue(tmp_path: Path) -> None:
    """Its application turned it away, as a consumer of Qpid JMS may; then the queue was seen drained."""
    config = {"profile": "qpid-jms", "ack_mode": "INDIVIDUAL_ACKNOWLEDGE"}
    other = [("p", "send", "m2"), ("p", "confirmed", "m2")]
    lines = by(
        "c1", ("delivered", "m1"), ("failed", "m1"), ("delivered", "m2"), ("processed", "m2"), ("acknowledge", "m2")
    )
    assert judged(tmp_path, config, *other, *lines) == INVALID
