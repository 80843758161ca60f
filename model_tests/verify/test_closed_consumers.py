"""The close of one consumer: what was prefetched goes back, and where the tables say so also what was handed over."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ackfsm import verify
from ackfsm.cli import main
from ackfsm.terms import Verdict
from ackfsm.verify import Header
from model_tests.support.places import DATA
from model_tests.support.tables import shipped
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


def _recorded(folder: str) -> list[Path]:
    return sorted(DATA.glob(f"{folder}/*.jsonl"))


def _verdict(path: Path, **settings: object) -> Verdict:
    def configure(header: Header | None) -> verify.Configurations:
        assert header is not None
        assert header.config is not None
        return verify.Configurations(shipped().configure(None, {**header.config, **settings}))

    found = verify.examination(path, shipped(), configure, tells_processed=True).findings
    return verify.verdict(found, shipped()).verdict


@pytest.mark.parametrize("path", _recorded("closed_consumers"), ids=lambda path: path.stem)
def test_a_broker_does_what_the_tables_say_of_closed_consumers(path: Path) -> None:
    """What was given back refutes that it is kept; a line of a close tells of no message that it was given back."""
    given_back, header = path.stem.endswith("given-back"), verify.read_header(path)
    assert header is not None
    assert header.config is not None
    taken_for_default = {**header.config}
    del taken_for_default["closed_consumer_gives_back"]
    assert shipped().configure(None, taken_for_default).closed_consumer_gives_back is given_back
    assert _verdict(path, closed_consumer_gives_back=given_back) is Verdict.VALID
    kept = Verdict.INVALID if given_back else Verdict.VALID
    assert _verdict(path, closed_consumer_gives_back=False) is kept


@pytest.mark.xfail(strict=True, reason="the profile names it among what is not in the tables")
@pytest.mark.parametrize("path", _recorded("unmodelled"), ids=lambda path: path.stem)
def test_what_a_broker_was_seen_to_do_is_allowed(path: Path) -> None:
    assert _verdict(path) is Verdict.VALID


@pytest.mark.parametrize(
    ("profile", "mode"),
    [("artemis", "INDIVIDUAL_ACKNOWLEDGE"), ("activemq", "INDIVIDUAL_ACKNOWLEDGE"), ("activemq", "CLIENT_ACKNOWLEDGE")],
)
def test_whatever_fails_a_consumer_that_gives_back_breaks_no_promise(profile: str, mode: str) -> None:
    """A consumer that was closed between an exception and the recovery by its library left a message stuck."""
    settings = ["--set", f"ack_mode={mode}", "--set", "max_delivery_attempts=2"]
    assert main(["check", "--profile", profile, *settings, "--action", "consumer_cancel", "--max-faults", "any"]) == 0
