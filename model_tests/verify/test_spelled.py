"""What one line says of several messages is counted as if each had a line; so is a call whose time-out is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from ackfsm import verify
from ackfsm.history.columns import assemble, encode
from ackfsm.history.format import EVENTS
from ackfsm.history.lines import SCHEMA
from ackfsm.history.spelled import spelled_out
from ackfsm.terms import Anomaly
from model_tests.support.tables import shipped
from model_tests.support.verify.labeller import in_order, spelt_out
from model_tests.support.verify.notation import events_of, write
from model_tests.support.verify.random_histories import histories

SPEC = shipped()

RANGES: dict[str, tuple[str, set[str]]] = {
    "up to a message": ("p send m1; p send m2; p send m3; p confirmed m2 scope=up_to", {"m3"}),
    "of no range": ("p send m1; p send m2; p send m3; p confirmed m2 scope=message", {"m1", "m3"}),
    "two ranges": ("p send m1; p send m2; p confirmed m1 scope=up_to; p send m3; p confirmed m3 scope=up_to", set()),
    "of its session alone": (
        "p send m1 session=s; q send m2; p send m3 session=r; p send m4 session=s; p confirmed m4 scope=up_to",
        {"m2", "m3"},
    ),
    "the session is that of the send": ("p send m1 session=s; p send m2 session=s; p confirmed m2 scope=up_to", set()),
    "not what was sent later": ("p send m1; p send m2; p confirmed m1 scope=up_to; p send m3", {"m2", "m3"}),
    "not before a close": ("p send m1; p close; p send m2; p confirmed m2 scope=up_to", {"m1"}),
    "up to what nobody sent": ("p send m1; p confirmed m9 scope=up_to", {"m1"}),
    "up to the latest send": ("p send m1; p send m2; p send m3; p resend m1; p confirmed m1 scope=up_to", set()),
}


def _examined(text: str, file: Path, **settings: Any) -> verify.Findings:
    chosen = {"send_mode": "asynchronous", "ack_mode": "CLIENT_ACKNOWLEDGE"} | settings
    return verify.examine(verify.read(write(events_of(text), file)), SPEC, SPEC.configure("jms", chosen))


@pytest.mark.parametrize(("text", "left"), RANGES.values(), ids=RANGES)
def test_a_range_confirms_the_open_sends_of_its_session_up_to_its_message(
    text: str, left: set[str], tmp_path: Path
) -> None:
    found = _examined(text, tmp_path / "h.jsonl")
    assert set(found.anomalies[Anomaly.MISSING_OUTCOME].examples) == left
    assert found.events == len(events_of(text)), "lines are counted as they were recorded"
    confirmed = {each["message"] for each in spelt_out(events_of(text)) if each["event"] == "confirmed"}
    assert found.counters["confirmed"] == len(confirmed)


def test_a_range_does_not_confirm_what_a_crash_left_open(tmp_path: Path) -> None:
    """It would be lost otherwise: the broker never said that it had it."""
    text = (
        "p send m1; p fault fault=producer_crash; p recovered fault=producer_crash; p send m2; "
        "p confirmed m2 scope=up_to; c delivered m2 clear; c processed m2; n drained"
    )
    found = _examined(text, tmp_path / "h.jsonl")
    assert found.anomalies[Anomaly.LOSS].count == 0
    assert found.explanation is not None
    assert found.explanation.contradicted == 0


def test_what_a_range_confirmed_is_lost_if_it_never_comes(tmp_path: Path) -> None:
    text = "p send m1; p send m2; p confirmed m2 scope=up_to; c delivered m2 clear; c processed m2; n drained"
    found = _examined(text, tmp_path / "h.jsonl").anomalies[Anomaly.LOSS]
    assert found.examples == ("m1",)
    assert found.unexplained_examples == ("m1",)


def test_a_range_makes_room_in_the_window(tmp_path: Path) -> None:
    text = "p send m1; p send m2; p confirmed m2 scope=up_to; p send m3; p send m4; p send m5"
    found = _examined(text, tmp_path / "h.jsonl", publish_window=2)
    assert found.anomalies[Anomaly.WINDOW_OVERRUN].examples == ("m5",)


HANDED_OVER = "p send m1; p confirmed m1; c delivered m1 clear session=c.1; c processed m1"
CALLED = f"{HANDED_OVER}; c acknowledge m1 scope=message session=c.1"
AGAIN = "c delivered m1 flagged session=c.2; c processed m1; c acknowledge m1 scope=message session=c.2; n drained"
TIMED_OUT = "fault fault=acknowledge_timeout"


@pytest.mark.parametrize("told", [f"c {TIMED_OUT}", f"nemesis {TIMED_OUT} session=c.1", f"c {TIMED_OUT} session=c.1"])
def test_what_was_in_doubt_may_come_again_or_not(told: str, tmp_path: Path) -> None:
    for rest in (AGAIN, "n drained"):
        found = _examined(f"{CALLED}; {told}; {rest}", tmp_path / "h.jsonl")
        assert found.explanation is not None
        assert found.explanation.contradicted == 0, found.explanation
        assert verify.verdict(found, SPEC).as_json()["faults"] == ["acknowledge_timeout"]
        duplicate = found.anomalies[Anomaly.DUPLICATE]
        assert (duplicate.found, duplicate.unexplained) == (int(rest is AGAIN), 0)
        assert verify.verdict(found, SPEC).verdict == "valid"


@pytest.mark.parametrize(
    "told", ["", f"; d {TIMED_OUT}", f"; c acknowledged m1 scope=message session=c.1; d {TIMED_OUT}"]
)
def test_it_may_not_come_again_after_the_time_out_of_another(told: str, tmp_path: Path) -> None:
    found = _examined(f"{CALLED}{told}; {AGAIN}", tmp_path / "h.jsonl")
    assert found.anomalies[Anomaly.DUPLICATE].unexplained == 1
    assert verify.verdict(found, SPEC).verdict == "invalid"


def test_the_session_may_go_on_after_a_time_out(tmp_path: Path) -> None:
    text = (
        "p send m2; p confirmed m2; c delivered m2 clear session=c.1; c processed m2; "
        f"{CALLED}; c {TIMED_OUT}; c acknowledge m2 scope=message session=c.1; "
        "c acknowledged m2 scope=message session=c.1; n drained"
    )
    slowly = [event | {"t": 2 * 10**9 * event["t"]} for event in events_of(text)]
    recorded = verify.read(write(slowly, tmp_path / "h.jsonl"))
    found = verify.examine(recorded, SPEC, SPEC.configure("jms", {"ack_mode": "CLIENT_ACKNOWLEDGE"}))
    assert verify.verdict(found, SPEC).verdict == "valid"


def _told(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    batch = pa.RecordBatch.from_pylist(events, SCHEMA)
    recorded = assemble([encode(batch, np.arange(len(batch)))])
    found = spelled_out(recorded, np.zeros(recorded.count_of("message"), bool))
    names = {name: [*found.names[name].to_pylist(), None] for name in ("message", "process")}
    columns = (found.t, found.event, found.process, found.message)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [(t, EVENTS[e].value, names["process"][p], names["message"][m]) for t, e, p, m in rows]


def _spelt(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    log = spelt_out(in_order(events))
    return [(each["t"], each["event"], each["process"], each.get("message")) for each in log]


@given(events=histories())
def test_a_random_history_is_spelt_out_as_by_the_labeller(events: list[dict[str, Any]]) -> None:
    assert sorted(_told(events), key=str) == sorted(_spelt(events), key=str)


@pytest.mark.parametrize("told", [f"c {TIMED_OUT}", f"nemesis {TIMED_OUT} session=c.1", f"d {TIMED_OUT}"])
def test_the_latest_call_of_the_session_or_process_is_in_doubt(told: str) -> None:
    events = events_of(f"{CALLED}; d acknowledge m2 scope=message session=d.1; {told}; c processed m3")
    assert _told(events) == _spelt(events)
    in_doubt = [(process, message) for _, event, process, message in _told(events) if event == "ack_in_doubt"]
    assert in_doubt == [("d", "m2") if told.startswith("d") else ("c", "m1")]


def test_a_message_that_is_in_doubt_was_not_certainly_acknowledged(tmp_path: Path) -> None:
    """It comes again after its call; to a confirmed acknowledgement that would be a resurrection."""
    answered = f"{CALLED}; c acknowledged m1 scope=message session=c.1; {AGAIN}"
    assert _examined(answered, tmp_path / "h.jsonl").anomalies[Anomaly.RESURRECTION].count == 1
    timed_out = f"{CALLED}; c {TIMED_OUT}; {AGAIN}"
    assert _examined(timed_out, tmp_path / "h.jsonl").anomalies[Anomaly.RESURRECTION].count == 0
