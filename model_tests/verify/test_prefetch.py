"""Deliveries beyond the prefetch bound, case by case: what a client can explain is never held against a broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from ackfsm import verify
from ackfsm.terms import Anomaly
from ackfsm.verify import Finding
from model_tests.support.tables import shipped
from model_tests.support.verify.labeller import label
from model_tests.support.verify.notation import events_of, write

SPEC = shipped()
BOUND = 2
TWO = "c delivered m1 clear session=s queue=q; c delivered m2 clear session=s queue=q"
SENT = "p send m1; p send m2; p send m3"
THIRD = "c delivered m3 clear session=s queue=q"

CASES: dict[str, tuple[str, set[str]]] = {
    "one more than the bound": (f"{TWO}; {THIRD}", {"m3"}),
    "no more than the bound": (TWO, set()),
    "processed is not acknowledged": (f"{TWO}; c processed m1; {THIRD}", {"m3"}),
    "one is acknowledged": (f"{TWO}; c acknowledge m1 scope=message session=s; {THIRD}", set()),
    "the acknowledgement comes after it": (f"{TWO}; {THIRD}; c acknowledge m1 scope=message session=s", {"m3"}),
    "both are acknowledged": (f"{TWO}; c acknowledge m2 scope=up_to session=s; {THIRD}", set()),
    "the session is acknowledged": (f"{TWO}; c acknowledge scope=session session=s; {THIRD}", set()),
    "another session is acknowledged": (f"{TWO}; c acknowledge scope=session session=other; {THIRD}", {"m3"}),
    "an answer without its call": (f"{TWO}; c acknowledged m1 scope=message session=s; {THIRD}", set()),
    "a call that failed": (
        f"{TWO}; c acknowledge m1 scope=message session=s; c ack_in_doubt m1 scope=message session=s; {THIRD}",
        set(),
    ),
    "one failed": (f"{TWO}; c failed m1; {THIRD}", set()),
    "one expired": (f"{TWO}; b expired m1; {THIRD}", set()),
    "one was dead-lettered": (f"{TWO}; b dead_lettered m1; {THIRD}", set()),
    "one came again": (f"{TWO}; c delivered m2 flagged session=s queue=q", set()),
    "one went to another session": (f"{TWO}; d delivered m1 flagged session=o queue=q; {THIRD}", set()),
    "the session was recovered": (f"{TWO}; c recover session=s; {THIRD}", set()),
    "the session was closed": (f"{TWO}; c close session=s; {THIRD}", set()),
    "the session was rolled back": (f"{TWO}; c rollback transaction=t session=s; {THIRD}", set()),
    "the session called commit": (f"{TWO}; c commit transaction=t session=s; {THIRD}", set()),
    "another session called commit": (f"{TWO}; c commit transaction=t session=other; {THIRD}", {"m3"}),
    "the transaction called commit": (
        """
        c delivered m1 clear session=s transaction=t; c delivered m2 clear session=s; c commit transaction=t
        c delivered m3 clear session=s
        """,
        set(),
    ),
    "another queue": (f"{TWO}; c delivered m3 clear session=s queue=other", set()),
    "another session": (f"{TWO}; c delivered m3 clear session=other queue=q", set()),
    "another process": (
        "c delivered m1 clear; c delivered m2 clear; d delivered m3 clear; d delivered m4 clear",
        set(),
    ),
    "no session named": ("c delivered m1 clear; c delivered m2 clear; c delivered m3 clear", {"m3"}),
    "the broker was killed": (f"{TWO}; n fault fault=broker_kill; {THIRD}", set()),
    "what was sent before the broker was killed": (f"{SENT}; n fault fault=broker_kill; {TWO}; {THIRD}", set()),
    "what nobody saw sent, after the broker was killed": (f"n fault fault=broker_kill; {TWO}; {THIRD}", set()),
    "what was sent after the broker was killed": (f"n fault fault=broker_kill; {SENT}; {TWO}; {THIRD}", {"m3"}),
    "what was sent after it, and one from before": (
        f"p send m0; n fault fault=broker_kill; {SENT}; c delivered m0 clear session=s queue=q; {TWO}",
        set(),
    ),
    "what was sent and delivered after an earlier delivery": (
        f"c delivered m0 clear session=s queue=q; n fault fault=broker_kill; {SENT}; {TWO}; {THIRD}",
        {"m3"},
    ),
    "sent again after the broker was killed": (
        f"{SENT}; n fault fault=broker_kill; p resend m1; {TWO}; {THIRD}",
        set(),
    ),
    "the repair came between": (f"n fault fault=broker_kill; {TWO}; n recovered fault=broker_kill; {THIRD}", set()),
    "a consumer crashed": (f"{TWO}; n fault fault=consumer_crash; {THIRD}", set()),
    "a producer crashed": (f"{TWO}; n fault fault=producer_crash; {THIRD}", {"m3"}),
    "a listener threw": (f"{TWO}; n fault fault=listener_exception; {THIRD}", {"m3"}),
}


def _found(text: str, file: Path, **settings: object) -> Finding:
    recorded = verify.read(write(events_of(text), file))
    configuration = SPEC.configure(None, {"ack_mode": "CLIENT_ACKNOWLEDGE", "prefetch": BOUND} | settings)
    return verify.examine(recorded, SPEC, configuration).anomalies[Anomaly.PREFETCH_OVERRUN]


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_a_case_is_counted(text: str, expected: set[str], tmp_path: Path) -> None:
    """So the labeller of these tests counts it, too."""
    finding = _found(text, tmp_path / "h.jsonl")
    assert (finding.unknown, set(finding.examples)) == (None, expected)
    labels = label(events_of(text), send_mode="asynchronous", publish_window=None, prefetch=BOUND)
    assert labels.anomalies["prefetch_overrun"] == expected


@pytest.mark.parametrize(
    "settings",
    [
        {"prefetch": 0},
        {"prefetch": BOUND + 1},
        {"ack_mode": "AUTO_ACKNOWLEDGE"},
        {"ack_mode": "NO_ACKNOWLEDGE"},
        {"profile": "activemq"},
        {"profile": "artemis"},
        {"profile": "solace-jms"},
        {"profile": "qpid-jms"},
    ],
    ids=str,
)
def test_where_acknowledging_does_not_free_the_bound_nothing_is_overrun(
    settings: dict[str, object], tmp_path: Path
) -> None:
    finding = _found(f"{TWO}; {THIRD}", tmp_path / "h.jsonl", **settings)
    assert (finding.found, finding.unknown) == (0, None)


@pytest.mark.parametrize("profile", ["jms", "rabbitmq", "qpid"])
def test_where_it_does_one_more_is_an_overrun(profile: str, tmp_path: Path) -> None:
    assert _found(f"{TWO}; {THIRD}", tmp_path / "h.jsonl", profile=profile).found == 1


def test_messages_are_counted_not_deliveries(tmp_path: Path) -> None:
    again = "; c delivered m3 flagged session=s queue=q"
    assert _found(f"{TWO}; {THIRD}{again}{again}", tmp_path / "h.jsonl").found == 1
