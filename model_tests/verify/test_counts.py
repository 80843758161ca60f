"""The anomalies that show only in all events together, case by case, in the notation of ``notation.py``."""

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
WINDOW = 2

CASES: dict[str, tuple[Anomaly, str, set[str] | None]] = {
    "overtaken in one session": (
        Anomaly.REORDER,
        """
        p send m1; p send m2
        c delivered m2 clear; c delivered m1 clear
        """,
        {"m1"},
    ),
    "overtaken in another session": (
        Anomaly.REORDER,
        """
        p send m1; p send m2
        c delivered m2 clear session=s1; c delivered m1 clear session=s2
        """,
        set(),
    ),
    "taken from another consumer of the session": (
        Anomaly.REORDER,
        """
        p send m1; p send m2
        c delivered m2 clear session=s consumer=c2; c delivered m1 clear session=s consumer=c1
        """,
        set(),
    ),
    "overtaken by another producer's": (
        Anomaly.REORDER,
        """
        p1 send m1; p2 send m2
        c delivered m2 clear; c delivered m1 clear
        """,
        set(),
    ),
    "overtaken by another delivery mode": (
        Anomaly.REORDER,
        """
        p send m1 delivery_mode=PERSISTENT; p send m2 delivery_mode=NON_PERSISTENT
        c delivered m2 clear; c delivered m1 clear
        """,
        set(),
    ),
    "overtaken by what comes flagged": (
        Anomaly.REORDER,
        """
        p send m1; p send m2
        c delivered m2 flagged; c delivered m1 clear
        """,
        set(),
    ),
    "overtaken after a first delivery elsewhere": (
        Anomaly.REORDER,
        """
        p send m1; p send m2
        c delivered m1 clear session=s1
        c delivered m2 clear session=s2; c delivered m1 clear session=s2
        """,
        set(),
    ),
    "overtaken, but sent again": (
        Anomaly.REORDER,
        """
        p send m1; p send m2; p resend m1
        c delivered m2 clear; c delivered m1 clear
        """,
        set(),
    ),
    "as many open as the window": (
        Anomaly.WINDOW_OVERRUN,
        "p send m1; p send m2; p confirmed m1; p send m3; p confirmed m2; p send m4",
        set(),
    ),
    "one more open than the window": (
        Anomaly.WINDOW_OVERRUN,
        "p send m1; p send m2; p send m3; p confirmed m1; p confirmed m2; p confirmed m3; p send m4",
        {"m3"},
    ),
    "each session has its own window": (
        Anomaly.WINDOW_OVERRUN,
        "p send m1 session=s1; p send m2 session=s1; p send m3 session=s2; p send m4 session=s1",
        {"m4"},
    ),
    "a close gives the window back": (
        Anomaly.WINDOW_OVERRUN,
        "p send m1; p send m2; p close; p send m3; p send m4; p send m5",
        {"m5"},
    ),
    "the crash of another producer does not give the window back": (
        Anomaly.WINDOW_OVERRUN,
        """
        r send m9; p send m1; p send m2; r fault fault=producer_crash; p send m3
        r recovered fault=producer_crash; p send m4
        """,
        {"m3", "m4"},
    ),
    "a crash of the session that it names gives the window back": (
        Anomaly.WINDOW_OVERRUN,
        """
        r send m9; p send m1 session=p.1; p send m2 session=p.1
        nemesis fault fault=producer_crash session=p.1; nemesis recovered fault=producer_crash; p send m3 session=p.1
        """,
        set(),
    ),
    "the crash of another producer leaves no send open": (
        Anomaly.MISSING_OUTCOME,
        "p send m1; r send m2; nemesis fault fault=producer_crash session=r; n drained",
        {"m1"},
    ),
    "a crash that concerns another queue leaves no send open": (
        Anomaly.MISSING_OUTCOME,
        "p send m1 queue=q1; p send m2 queue=q2; nemesis fault fault=producer_crash queue=q2; n drained",
        {"m1"},
    ),
    "the repair of another producer ends no crash": (
        Anomaly.MISSING_OUTCOME,
        """
        p send m1; p confirmed m1; r send m2; r confirmed m2; p fault fault=producer_crash
        r fault fault=producer_crash; r recovered fault=producer_crash; p send m3; r send m4; n drained
        """,
        {"m4"},
    ),
    "its own repair ends a crash, not a later one of nobody by name": (
        Anomaly.MISSING_OUTCOME,
        """
        p send m1; p confirmed m1; p fault fault=producer_crash; p recovered fault=producer_crash; p send m2
        nemesis recovered fault=producer_crash; n drained
        """,
        {"m2"},
    ),
    "the repair of the last one ends a crash of nobody by name": (
        Anomaly.MISSING_OUTCOME,
        """
        p send m1; p confirmed m1; r send m2; r confirmed m2; nemesis fault fault=producer_crash
        r recovered fault=producer_crash; p send m3; p recovered fault=producer_crash; r send m4; n drained
        """,
        {"m4"},
    ),
    "a crash of a consumer that is not named leaves no send open": (
        Anomaly.MISSING_OUTCOME,
        "p send m1; nemesis fault fault=consumer_crash; n drained",
        {"m1"},
    ),
    "the repair of one crash of a process ends no other crash of it": (
        Anomaly.MISSING_OUTCOME,
        """
        p send m1; p confirmed m1; p fault fault=producer_crash
        p fault fault=consumer_crash; p recovered fault=consumer_crash; p send m2; n drained
        """,
        set(),
    ),
    "a crash gives the window back": (
        Anomaly.WINDOW_OVERRUN,
        "p send m1; p send m2; n fault fault=producer_crash; n recovered fault=producer_crash; p send m3; p send m4",
        set(),
    ),
    "a transaction needs no window": (
        Anomaly.WINDOW_OVERRUN,
        "p begin transaction=t; p send m1 transaction=t; p send m2 transaction=t; p send m3 transaction=t",
        set(),
    ),
    "a transaction of which one message came": (
        Anomaly.TORN_TRANSACTION,
        """
        p begin transaction=t; p send m1 transaction=t; p send m2 transaction=t; p commit transaction=t
        c delivered m1 clear; n drained
        """,
        {"t"},
    ),
    "the same, not drained": (
        Anomaly.TORN_TRANSACTION,
        """
        p begin transaction=t; p send m1 transaction=t; p send m2 transaction=t; p commit transaction=t
        c delivered m1 clear
        """,
        None,
    ),
    "a transaction of which one message came and one expired": (
        Anomaly.TORN_TRANSACTION,
        """
        p begin transaction=t; p send m1 transaction=t; p send m2 transaction=t; p commit transaction=t
        c delivered m1 clear; b expired m2; n drained
        """,
        set(),
    ),
    "two processes with a transaction of the same name": (
        Anomaly.TORN_TRANSACTION,
        """
        p1 send m1 transaction=t; p1 commit transaction=t; p2 send m2 transaction=t; p2 rollback transaction=t
        c delivered m1 clear; n drained
        """,
        set(),
    ),
    "consumed, in doubt, none came again": (
        Anomaly.TORN_TRANSACTION,
        """
        p send m1; p send m2; c delivered m1 clear transaction=t; c delivered m2 clear transaction=t
        c commit transaction=t; c commit_in_doubt transaction=t; n drained
        """,
        set(),
    ),
    "consumed, in doubt, one came again": (
        Anomaly.TORN_TRANSACTION,
        """
        p send m1; p send m2; c delivered m1 clear transaction=t; c delivered m2 clear transaction=t
        c commit transaction=t; c commit_in_doubt transaction=t; c delivered m2 flagged; n drained
        """,
        {"t"},
    ),
    "consumed, in doubt, committed after all, one came again": (
        Anomaly.TORN_TRANSACTION,
        """
        p send m1; p send m2; c delivered m1 clear transaction=t; c delivered m2 clear transaction=t
        c commit transaction=t; c commit_in_doubt transaction=t; c committed transaction=t
        c delivered m2 flagged; n drained
        """,
        set(),
    ),
    "consumed, in doubt, the second copy of one came": (
        Anomaly.TORN_TRANSACTION,
        """
        p send m1; p send m2; p resend m2; c delivered m1 clear transaction=t; c delivered m2 clear transaction=t
        c commit transaction=t; c commit_in_doubt transaction=t; c delivered m2 clear; n drained
        """,
        set(),
    ),
    "consumed, in doubt, the second copy of one came and another came again alone": (
        Anomaly.TORN_TRANSACTION,
        """
        p send m1; p send m2; p send m3; p resend m2
        c delivered m1 clear transaction=t; c delivered m2 clear transaction=t; c delivered m3 clear transaction=t
        c commit transaction=t; c commit_in_doubt transaction=t; c delivered m2 clear; c delivered m3 flagged; n drained
        """,
        {"t"},
    ),
    "consumed, in doubt, one came again before the doubt was written": (
        Anomaly.TORN_TRANSACTION,
        """
        p send m1; p send m2; c delivered m1 clear transaction=t; c delivered m2 clear transaction=t
        c commit transaction=t; d delivered m1 flagged; c commit_in_doubt transaction=t; n drained
        """,
        {"t"},
    ),
    "consumed, in doubt, one came again and one had become a dead letter": (
        Anomaly.TORN_TRANSACTION,
        """
        p send m1; p send m2; b dead_lettered m1
        c delivered m1 flagged transaction=t; c delivered m2 clear transaction=t
        c commit transaction=t; c commit_in_doubt transaction=t; c delivered m2 flagged; n drained
        """,
        set(),
    ),
    "consumed, in doubt, one became a dead letter and one did not come again": (
        Anomaly.TORN_TRANSACTION,
        """
        p send m1; p send m2; c delivered m1 flagged transaction=t; c delivered m2 clear transaction=t
        c commit transaction=t; c commit_in_doubt transaction=t; b dead_lettered m1; n drained
        """,
        {"t"},
    ),
    "consumed twice inside, in doubt, none came again": (
        Anomaly.TORN_TRANSACTION,
        """
        p send m1; p send m2; c delivered m1 clear transaction=t; c delivered m2 clear transaction=t
        c delivered m1 flagged transaction=t; c commit transaction=t; c commit_in_doubt transaction=t; n drained
        """,
        set(),
    ),
    "consumed, committed, one came again": (
        Anomaly.TORN_TRANSACTION,
        """
        p send m1; p send m2; c delivered m1 clear transaction=t; c delivered m2 clear transaction=t
        c commit transaction=t; c committed transaction=t; c delivered m2 flagged; n drained
        """,
        set(),
    ),
    "consumed, in doubt, drained only before the doubt": (
        Anomaly.TORN_TRANSACTION,
        """
        p send m1; p send m2; c delivered m1 clear transaction=t; c delivered m2 clear transaction=t; n drained
        c commit transaction=t; c commit_in_doubt transaction=t; c delivered m2 flagged
        """,
        None,
    ),
    "the count falls": (
        Anomaly.COUNT_REGRESSION,
        """
        p send m1; c delivered m1 flagged delivery_count=3; c delivered m1 flagged
        c delivered m1 flagged delivery_count=2
        """,
        {"m1"},
    ),
    "the count falls, of a message that was sent again": (
        Anomaly.COUNT_REGRESSION,
        """
        p send m1; p in_doubt m1; p resend m1; c delivered m1 clear delivery_count=1
        c delivered m1 flagged delivery_count=2; c delivered m1 clear delivery_count=1
        """,
        set(),
    ),
    "a flag without a count, of a message that was sent again": (
        Anomaly.COUNT_REGRESSION,
        "p send m1; p in_doubt m1; p resend m1; c delivered m1 flagged delivery_count=1",
        {"m1"},
    ),
    "the count stays": (
        Anomaly.COUNT_REGRESSION,
        "p send m1; c delivered m1 flagged delivery_count=2; c delivered m1 flagged delivery_count=2",
        set(),
    ),
    "a first delivery that is flagged": (
        Anomaly.COUNT_REGRESSION,
        "p send m1; c delivered m1 flagged delivery_count=1",
        {"m1"},
    ),
    "a second delivery that is not flagged": (
        Anomaly.COUNT_REGRESSION,
        "p send m1; c delivered m1 clear delivery_count=2",
        {"m1"},
    ),
}


def _found(anomaly: Anomaly, text: str, file: Path) -> Finding:
    recorded = verify.read(write(events_of(text), file))
    settings = {"send_mode": "asynchronous", "publish_window": WINDOW}
    return verify.examine(recorded, SPEC, SPEC.configure("jms", settings)).anomalies[anomaly]


@pytest.mark.parametrize(("anomaly", "text", "expected"), CASES.values(), ids=CASES)
def test_a_case_is_counted(anomaly: Anomaly, text: str, expected: set[str] | None, tmp_path: Path) -> None:
    """So the labeller of these tests counts it, too."""
    finding = _found(anomaly, text, tmp_path / "history.jsonl")
    assert (None if finding.count is None else set(finding.examples)) == expected
    labels = label(events_of(text), send_mode="asynchronous", publish_window=WINDOW)
    assert labels.anomalies[anomaly.value] == expected


def test_a_window_that_is_not_set_is_never_overrun(tmp_path: Path) -> None:
    recorded = verify.read(write(events_of("p send m1; p send m2; p send m3"), tmp_path / "history.jsonl"))
    for settings in ({"publish_window": None}, {"publish_window": 1, "send_mode": "unconfirmed"}):
        finding = verify.examine(recorded, SPEC, SPEC.configure("jms", settings)).anomalies[Anomaly.WINDOW_OVERRUN]
        assert finding.count == 0


def test_a_queue_that_was_drained_before_the_resend_says_nothing_of_it(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    assert _found(Anomaly.LOSS, "p send m1; p confirmed m1; n drained; p resend m1", file).count is None
    assert _found(Anomaly.LOSS, "p send m1; p confirmed m1; p resend m1; n drained", file).count == 1


def test_what_is_lost_from_a_drained_queue_is_found_though_another_queue_was_not_drained(tmp_path: Path) -> None:
    text = "p send m1 queue=q1; p confirmed m1; p send m2 queue=q2; p confirmed m2; n drained queue=q1"
    finding = _found(Anomaly.LOSS, text, tmp_path / "history.jsonl")
    assert (finding.count, finding.found, finding.examples) == (None, 1, ("m1",))
    assert finding.unknown == "no `drained` follows the last send to 'q2'"
