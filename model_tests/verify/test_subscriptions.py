"""Histories of a subscription that is not durable: what is sent while nobody is subscribed is missed, not lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from ackfsm import verify
from ackfsm.terms import Verdict
from model_tests.support.tables import shipped
from model_tests.support.verify.notation import write

Line = Mapping[str, object]

SETTINGS = {"destination": "non_durable_subscription", "ack_mode": "AUTO_ACKNOWLEDGE", "consumption": "receive"}
DRAINED: Line = {"process": "broker", "event": "drained"}
LATER_SUBSCRIBER = "no line tells when a consumer subscribed, so that a later one may have shared the subscription"
AWAY_BEFORE = "what befell a consumer before a message was sent counts only where a message is no run without it"
THERE_FROM_THE_START = "a consumer that a line tells of counts as there from the start"
NOBODY_YET = "a life begins with its consumer there, also where no line tells of one before"


def sent(message: str) -> Iterator[Line]:
    for event in ("send", "confirmed"):
        yield {"process": "p", "event": event, "session": "p.1", "message": message, "delivery_mode": "PERSISTENT"}


def got(process: str, message: str, *, again: bool = False) -> Iterator[Line]:
    about = {"process": process, "session": f"{process}.1", "message": message}
    yield {**about, "event": "delivered", "redelivered": again, "delivery_count": 1 + again}
    yield {**about, "event": "processed"}
    for event in ("acknowledge", "acknowledged"):
        yield {**about, "event": event, "scope": "message"}


def closed(process: str) -> Iterator[Line]:
    yield {"process": process, "event": "close", "session": f"{process}.1"}


def fault(event: str) -> Iterator[Line]:
    yield {"process": "a", "event": event, "fault": "consumer_crash"}


def verdict_of(folder: Path, *parts: Iterable[Line]) -> Verdict:
    lines = [*(line for part in parts for line in part), DRAINED]
    told = [{"ackfsm_history": 1, "config": SETTINGS}, *({"t": t, "queue": "q", **x} for t, x in enumerate(lines, 1))]
    file = folder / "history.jsonl"
    write(told, file)
    findings = verify.examine(verify.read(file), shipped(), shipped().configure("jms", SETTINGS))
    return verify.verdict(findings, shipped()).verdict


@pytest.mark.xfail(reason=THERE_FROM_THE_START, strict=True)
def test_what_is_sent_after_the_last_subscriber_has_closed_is_missed(tmp_path: Path) -> None:
    one = (sent("m0"), got("a", "m0"), sent("m1"), closed("a"))
    assert verdict_of(tmp_path, *one, sent("m2"), sent("m3"), got("b", "m3")) is Verdict.VALID


def test_what_is_sent_to_a_subscriber_who_is_there_is_not_missed(tmp_path: Path) -> None:
    lost = sent("m1")
    assert verdict_of(tmp_path, sent("m0"), got("a", "m0"), lost, sent("m2"), got("a", "m2")) is Verdict.INVALID
    two = (sent("m0"), got("a", "m0"), sent("m1"), got("b", "m1"))
    assert verdict_of(tmp_path, *two, sent("m2"), closed("b"), sent("m3"), got("a", "m3")) is Verdict.INVALID


def test_what_the_only_subscriber_had_before_it_died_does_not_come_again(tmp_path: Path) -> None:
    had = [*got("a", "m1")][:1]
    away = (fault("fault"), fault("recovered"))
    parts = (sent("m0"), got("a", "m0"), sent("m1"), had, *away, got("a", "m1", again=True))
    assert verdict_of(tmp_path, *parts) is Verdict.INVALID


@pytest.mark.xfail(reason=AWAY_BEFORE, strict=True)
def test_what_is_sent_while_the_only_subscriber_is_away_does_not_come(tmp_path: Path) -> None:
    away = (fault("fault"), sent("m1"), fault("recovered"))
    assert verdict_of(tmp_path, sent("m0"), got("a", "m0"), *away, got("a", "m1")) is Verdict.INVALID


@pytest.mark.xfail(reason=LATER_SUBSCRIBER, strict=True)
def test_what_is_sent_before_a_subscriber_comes_does_not_come_to_it(tmp_path: Path) -> None:
    parts = (sent("m0"), got("a", "m0"), sent("m1"), closed("a"), sent("m2"), got("b", "m1"), got("b", "m2"))
    assert verdict_of(tmp_path, *parts) is Verdict.INVALID


@pytest.mark.xfail(reason=NOBODY_YET, strict=True)
def test_what_is_sent_before_anybody_subscribes_is_missed(tmp_path: Path) -> None:
    assert verdict_of(tmp_path, sent("m0"), sent("m1"), got("a", "m1")) is Verdict.VALID
