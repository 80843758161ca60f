"""What was seen at rest: calls that had not returned, messages in flight or ready for ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ackfsm import verify
from ackfsm.checking.network import Bounds, compose
from ackfsm.terms import Anomaly, Fault
from model_tests.support.tables import shipped
from model_tests.support.verify.model_runs import judged, witnesses
from model_tests.support.verify.notation import events_of, write

SPEC = shipped()
SENT = "p send m1 queue=q; p confirmed m1 queue=q"
TAKEN = f"{SENT}; c delivered m1 clear queue=q"
DONE = f"{TAKEN}; c processed m1; c acknowledge m1 scope=message"
FLYING = "b depth queue=q position=0 delivery_count=1"
READY = "b depth queue=q position=1 delivery_count=0"
EMPTY = "b depth queue=q position=0 delivery_count=0"
NOT_SEEN = "no `drained` or `depth` follows the last line before a call that waits"
UNREPAIRED = "a fault was not repaired before the calls and queues were looked at, so that they may go on"

SENDING = "p send m1; p waiting error=send"

CASES: dict[str, tuple[str, int, tuple[str, ...], str | None]] = {
    "a send": ("p send m1 queue=q; p waiting error=send; n drained", 1, ("m1",), None),
    "a send of that message": ("p waiting m7 error=send; n drained", 1, ("m7",), None),
    "a send that nobody names": ("p waiting error=send; n drained", 1, (), None),
    "a send that returned": (f"p send m1; p waiting error=send; {SENT}; n drained", 0, (), None),
    "not at rest": ("p send m1; p waiting error=send", 0, (), NOT_SEEN),
    "at rest before the call": ("n drained; p send m1; p waiting error=send", 0, (), NOT_SEEN),
    "another queue at rest": (
        "p send m1; x send m2 queue=r; p waiting error=send queue=q; n drained queue=r",
        0,
        (),
        NOT_SEEN,
    ),
    "a fault": ("nemesis fault fault=broker_kill; p send m1; p waiting error=send; n drained", 0, (), UNREPAIRED),
    "a fault that was repaired": (
        f"nemesis fault fault=broker_kill; nemesis recovered fault=broker_kill; {SENDING}; n drained",
        1,
        ("m1",),
        None,
    ),
    "an acknowledgement": (f"{DONE}; c waiting error=acknowledge; n drained", 1, ("m1",), None),
    "a commit": (
        "p send m1 transaction=t; p send m2 transaction=t; p commit transaction=t; p waiting error=commit; n drained",
        2,
        ("m1", "m2"),
        None,
    ),
    "a receive": ("c delivered m1 clear; c waiting error=receive; n drained", 0, (), None),
    "in flight though acknowledged": (f"{DONE}; {FLYING}", 1, ("m1",), None),
    "in flight and the call waits": (f"{DONE}; c waiting error=acknowledge; {FLYING}", 1, ("m1",), None),
    "not acknowledged by the application": (f"{TAKEN}; {FLYING}", 0, (), None),
    "failed and kept by the application": (f"{TAKEN}; c failed m1; {FLYING}", 0, (), None),
    "failed and given back by a close": (f"{TAKEN}; c failed m1; c close; {FLYING}", 1, ("m1",), None),
    "in flight for a while": (f"{DONE}; {FLYING}; {EMPTY}", 0, (), None),
    "in flight, one of two": (f"{DONE}; p send m2 queue=q; {FLYING}", 1, (), None),
    "ready, and nobody waits": (f"{SENT}; {READY}", 0, (), None),
    "ready, and somebody waits": (f"{SENT}; c waiting error=receive queue=q; {READY}", 1, ("m1",), None),
    "ready, and somebody waits elsewhere": (f"{SENT}; c waiting error=receive queue=r; {READY}", 0, (), None),
    "nothing": (f"{DONE}; {EMPTY}", 0, (), None),
}


def _examined(text: str, file: Path, **settings: Any) -> verify.Findings:
    chosen = {"ack_mode": "CLIENT_ACKNOWLEDGE"} | settings
    return verify.examine(verify.read(write(events_of(text), file)), SPEC, SPEC.configure("jms", chosen))


@pytest.mark.parametrize(("text", "found", "messages", "unknown"), CASES.values(), ids=CASES)
def test_what_is_stuck(text: str, found: int, messages: tuple[str, ...], unknown: str | None, tmp_path: Path) -> None:
    finding = _examined(text, tmp_path / "h.jsonl").anomalies[Anomaly.STUCK]
    assert (finding.found, finding.examples, finding.unknown) == (found, messages, unknown)


def test_a_history_without_such_lines_says_nothing_of_it(tmp_path: Path) -> None:
    found = _examined(f"{DONE}; n drained", tmp_path / "h.jsonl")
    assert Anomaly.STUCK not in found.anomalies
    result = verify.verdict(found, SPEC, never=[Anomaly.STUCK])
    assert result.verdict == "valid"
    assert result.as_json()["never"] == {"stuck": {"count": None, "found": None, "messages": []}}


def test_a_library_that_acknowledges_owes_nothing(tmp_path: Path) -> None:
    for mode, found in (("AUTO_ACKNOWLEDGE", 1), ("CLIENT_ACKNOWLEDGE", 0)):
        assert (
            _examined(f"{TAKEN}; {FLYING}", tmp_path / "h.jsonl", ack_mode=mode).anomalies[Anomaly.STUCK].found == found
        )


def test_a_queue_of_which_nothing_is_left_is_drained(tmp_path: Path) -> None:
    assert _examined(f"{SENT}; {EMPTY}", tmp_path / "h.jsonl").anomalies[Anomaly.LOSS].examples == ("m1",)
    assert _examined(f"{SENT}; {READY}", tmp_path / "h.jsonl").anomalies[Anomaly.LOSS].count is None


def test_a_message_that_a_call_waits_for_is_none_that_was_sent(tmp_path: Path) -> None:
    found = _examined(f"{DONE}; {EMPTY}; p waiting m7 error=send; n drained", tmp_path / "h.jsonl")
    assert found.messages == 1
    assert found.anomalies[Anomaly.LOSS].count == 0


@pytest.mark.parametrize(
    ("settings", "verdict"),
    [
        ({"consumption": "listener", "listener_exception": "redeliver"}, "invalid"),
        ({"consumption": "listener", "listener_exception": "swallow"}, "unknown"),
    ],
)
def test_it_is_allowed_where_the_search_reaches_it(settings: dict[str, Any], verdict: str, tmp_path: Path) -> None:
    """What a listener swallows is acknowledged by nobody; unknown is then only what became of it, as it is left."""
    text = f"{TAKEN}; nemesis fault fault=listener_exception; c failed m1; {FLYING}"
    result = verify.verdict(_examined(text, tmp_path / "h.jsonl", **settings), SPEC)
    assert result.verdict == verdict
    assert result.allowed[Anomaly.STUCK] is (verdict != "invalid")


WITNESSED: dict[str, tuple[dict[str, object], list[Fault]]] = {
    "in flight": ({"consumption": "listener", "listener_exception": "swallow"}, [Fault.LISTENER_EXCEPTION]),
    "in flight, to be acknowledged by the application": (
        {"consumption": "listener", "listener_exception": "swallow", "ack_mode": "CLIENT_ACKNOWLEDGE"},
        [Fault.LISTENER_EXCEPTION],
    ),
    "never sent": ({"publish_window": 0}, []),
    "a send that waits": ({"publish_window": 9, "confirm_timer": False, "confirm_threshold": 3}, []),
}


@pytest.mark.parametrize(("settings", "faults"), WITNESSED.values(), ids=WITNESSED)
def test_check_and_verify_mean_the_same_by_it(settings: dict[str, object], faults: list[Fault], tmp_path: Path) -> None:
    network = compose(SPEC, SPEC.configure("jms", settings), Bounds(faults=frozenset(faults)))
    runs = [run for run in witnesses(network) if run.anomaly == Anomaly.STUCK]
    assert runs
    for run in runs:
        said = judged(run, tmp_path)
        assert Anomaly.STUCK in said.found
        assert not said.accused
        assert not said.contradicted
