"""AUTO_ACKNOWLEDGE: of a session that fails one message is in doubt, its last (JMS 6.2.11)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from ackfsm import verify
from ackfsm.terms import Anomaly, Profile, Verdict
from model_tests.support.tables import shipped
from model_tests.support.verify.notation import events_of, write

WAITS = {"jms", "ems"}
HAVE_AUTO = sorted(set(Profile) - {"rabbitmq"})
SENDS = {"qpid": {"send_mode": "blocking"}}
SECOND = 10**9


def judged(profile: str, count: int, again: Collection[int], folder: Path) -> tuple[Verdict, int]:
    """The verdict on one crash of a consumer that had ``count`` messages, and how many repetitions are not allowed."""
    lines = [f"p send m{i}; p confirmed m{i}" for i in range(count)]
    lines += [f"c delivered m{i} clear session=s1; c processed m{i} session=s1" for i in range(count)]
    lines += ["c fault fault=consumer_crash; c recovered fault=consumer_crash"] if again else []
    lines += [f"c delivered m{i} flagged session=s2; c processed m{i} session=s2" for i in again]
    events = [event | {"t": event["t"] * SECOND, "queue": "q"} for event in events_of(";".join([*lines, "n drained"]))]
    specification = shipped()
    settings = {"ack_mode": "AUTO_ACKNOWLEDGE", "consumption": "listener"} | SENDS.get(profile, {})
    recorded = verify.read(write(events, folder / "h.jsonl"))
    findings = verify.examine(recorded, specification, specification.configure(profile, settings))
    found = findings.anomalies[Anomaly.DUPLICATE]
    verdict = verify.verdict(findings, specification)
    return verdict.verdict, found.found or 0


@pytest.mark.parametrize("count", [2, 5, 200])
def test_the_last_message_alone_may_come_again(count: int, tmp_path: Path) -> None:
    assert judged("jms", count, [count - 1], tmp_path) == (Verdict.VALID, 1)
    assert judged("jms", count, [count - 2], tmp_path) == (Verdict.INVALID, 1)
    assert judged("jms", count, range(count), tmp_path) == (Verdict.INVALID, count)


def test_a_history_without_an_answer_to_an_acknowledgement_is_valid(tmp_path: Path) -> None:
    assert judged("jms", 3, [], tmp_path) == (Verdict.VALID, 0)


@pytest.mark.parametrize("profile", HAVE_AUTO)
def test_a_system_that_waits_for_no_answer_repeats_more_and_says_so(profile: str, tmp_path: Path) -> None:
    waits = profile in WAITS
    assert judged(profile, 3, range(3), tmp_path)[0] is (Verdict.INVALID if waits else Verdict.VALID)
    specification = shipped()
    configuration = specification.configure(profile, {"ack_mode": "AUTO_ACKNOWLEDGE", "consumption": "listener"})
    deviates = [
        row
        for row in specification.profiles[profile].deviates
        if "more than the session's last message" in row.what
        and row.when is not None
        and row.when.holds(specification.environment(configuration))
    ]
    assert bool(deviates) is not waits
