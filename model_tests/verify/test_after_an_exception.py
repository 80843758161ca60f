"""What follows an exception in a listener, and recover(): recorded runs of live brokers, and runs that no broker makes.

Three messages; ActiveMQ Artemis 2.56.0 and ActiveMQ Classic 5.18.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ackfsm.cli import main
from ackfsm.terms import Verdict
from model_tests.support.verify.notation import write
from model_tests.support.whole import in_turn

Line = dict[str, Any]
CLIENT, INDIVIDUAL, TRANSACTED = "CLIENT_ACKNOWLEDGE", "INDIVIDUAL_ACKNOWLEDGE", "SESSION_TRANSACTED"
MESSAGES = ("m1", "m2", "m3")
VERDICTS = {0: "valid", 1: "invalid", 3: "unknown"}


def judged(folder: Path, profile: str, mode: str, lines: Iterable[Line], **settings: str) -> str:
    """The verdict on ``lines``, after three messages were sent, and before the queue was seen drained."""
    head: Line = {"ackfsm_history": 1, "config": {"profile": profile, "ack_mode": mode, **settings}}
    sends = [
        {"process": "p", "event": event, "queue": "q", "session": "p", "message": message}
        for message in MESSAGES
        for event in ("send", "confirmed")
    ]
    if mode == TRANSACTED:
        sends = of_transaction("sent", [each for each in sends if each["event"] == "send"])
        sends += of_transaction(
            "sent", [{"process": "p", "event": end, "session": "p"} for end in ("commit", "committed")]
        )
    end = [line("close"), {"process": "n", "event": "drained", "queue": "q"}]
    rows = [{"t": number * 10**9, **row} for number, row in enumerate([*sends, *lines, *end], start=1)]
    file = folder / "run.jsonl"
    write([head, *rows], file)
    return VERDICTS[main(["verify", "--json", str(file)])]


def line(event: str, message: str | None = None, **fields: object) -> Line:
    of = {"queue": "q", "message": message} if message else {}
    return {"process": "c", "event": event, "session": "c", **of, **fields}


def delivered(message: str, count: int = 1) -> Line:
    return line("delivered", message, redelivered=count > 1, delivery_count=count)


def used(message: str) -> list[Line]:
    return [line("processed", message), line("acknowledge", message, scope="message")]


def first_seen(*messages: str) -> Iterator[Line]:
    for message in messages:
        yield from (delivered(message), line("processed", message))


def again(counts: dict[str, int]) -> Iterator[Line]:
    for message, count in counts.items():
        yield from (delivered(message, count), *used(message))


@pytest.mark.parametrize("profile", ["artemis", "activemq"])
def test_a_later_acknowledge_covers_the_message_that_failed(profile: str, tmp_path: Path) -> None:
    run = [delivered("m1"), line("failed", "m1"), *first_seen("m2", "m3"), line("acknowledge", "m3", scope="session")]
    assert judged(tmp_path, profile, CLIENT, run) == Verdict.VALID


THROWN = [
    ("artemis", {"m1": 2, "m2": 1, "m3": 2}, "valid"),
    ("artemis", {"m1": 2, "m2": 1, "m3": 1}, "invalid"),
    ("artemis", {"m3": 2}, "invalid"),
    ("activemq", {"m1": 2, "m2": 2, "m3": 2}, "valid"),
    ("activemq", {"m1": 2, "m2": 1, "m3": 2}, "invalid"),
    ("activemq", {"m1": 2, "m2": 2, "m3": 1}, "invalid"),
    ("activemq", {"m3": 2}, "invalid"),
    ("jms", {"m1": 2, "m2": 2, "m3": 2}, "invalid"),
]


@pytest.mark.parametrize(("profile", "counts", "verdict"), THROWN)
def test_all_that_the_session_holds_comes_again(
    profile: str, counts: dict[str, int], verdict: str, tmp_path: Path
) -> None:
    """The listener throws on the third message, with two in hand."""
    run = [*first_seen("m1", "m2"), delivered("m3"), line("failed", "m3"), *again(counts)]
    assert judged(tmp_path, profile, INDIVIDUAL, run) == verdict


@pytest.mark.parametrize("profile", ["artemis", "activemq"])
@pytest.mark.parametrize(("back", "verdict"), [(["m2", "m3"], "valid"), (["m1", "m2", "m3"], "invalid")])
def test_what_was_acknowledged_before_does_not_come_again(
    profile: str, back: list[str], verdict: str, tmp_path: Path
) -> None:
    run = [*first_seen("m1", "m2"), line("acknowledge", "m1", scope="message"), delivered("m3"), line("failed", "m3")]
    assert judged(tmp_path, profile, INDIVIDUAL, [*run, *again(dict.fromkeys(back, 2))]) == verdict


RECOVERED = [
    ("artemis", INDIVIDUAL, {"m1": 2, "m2": 1, "m3": 1}, "valid"),
    ("artemis", CLIENT, {"m1": 2, "m2": 2, "m3": 2}, "valid"),
    ("artemis", CLIENT, {"m1": 2, "m2": 1, "m3": 1}, "invalid"),
    ("activemq", INDIVIDUAL, {"m1": 2, "m2": 2, "m3": 2}, "valid"),
    ("activemq", INDIVIDUAL, {"m1": 2, "m2": 1, "m3": 1}, "invalid"),
]


@pytest.mark.parametrize(("profile", "mode", "counts", "verdict"), RECOVERED)
def test_recover_gives_back_what_is_held(
    profile: str, mode: str, counts: dict[str, int], verdict: str, tmp_path: Path
) -> None:
    run = [*first_seen(*MESSAGES), line("recover"), *again(counts)]
    assert judged(tmp_path, profile, mode, run, consumption="receive") == verdict


@pytest.mark.parametrize(("profile", "verdict"), [("artemis", "valid"), ("activemq", "invalid")])
def test_recover_gives_back_what_nobody_has_seen(profile: str, verdict: str, tmp_path: Path) -> None:
    """The first that was prefetched comes flagged, at first sight."""
    run = [delivered("m1"), line("recover"), delivered("m1", 2), line("processed", "m1"), delivered("m2", 2)]
    run += [
        line("processed", "m2"),
        delivered("m3"),
        line("processed", "m3"),
        line("acknowledge", "m3", scope="session"),
    ]
    assert judged(tmp_path, profile, CLIENT, run, consumption="receive") == verdict


@pytest.mark.parametrize("profile", ["artemis", "jms"])
def test_what_receive_returned_and_nobody_acknowledged_is_not_gone(profile: str, tmp_path: Path) -> None:
    run = [delivered("m1"), line("failed", "m1"), *again({"m2": 1, "m3": 1})]
    assert judged(tmp_path, profile, INDIVIDUAL, run, consumption="receive") == Verdict.INVALID


PROFILES = ("jms", "artemis", "activemq", "qpid-jms", "qpid", "ems")
ENDED = [
    (["commit", "committed"], {}, "valid"),
    (["commit", "committed"], {"m1": 2}, "invalid"),
    (["rollback", "rolled_back"], {"m1": 2, "m2": 2, "m3": 2}, "valid"),
    (["rollback", "rolled_back"], {"m2": 2, "m3": 2}, "invalid"),
]


@pytest.mark.parametrize(("profile", "ended"), in_turn(PROFILES, ENDED, 3))
def test_the_application_ends_the_transaction_in_which_its_listener_threw(
    profile: str, ended: tuple[list[str], dict[str, int], str], tmp_path: Path
) -> None:
    """A commit takes along the message on which the listener threw; a rollback gives back all."""
    end, counts, verdict = ended
    run = [line("begin"), delivered("m1"), line("failed", "m1"), *first_seen("m2", "m3"), *map(line, end)]
    after = [line("begin"), *(row for message, count in counts.items() for row in used_again(message, count))]
    after += [line("commit"), line("committed")]
    lines = [*of_transaction("t1", run), *(of_transaction("t2", after) if counts else [])]
    assert judged(tmp_path, profile, TRANSACTED, lines) == verdict


def used_again(message: str, count: int) -> list[Line]:
    return [delivered(message, count), line("processed", message)]


def of_transaction(name: str, lines: Iterable[Line]) -> list[Line]:
    return [{**row, "transaction": name} for row in lines]
