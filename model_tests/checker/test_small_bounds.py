"""What can happen where a window or a prefetch is full that few messages never fill as it is set?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ackfsm import cli, tables
from ackfsm.checking import explore
from ackfsm.checking.explore import Answer
from ackfsm.checking.network import Bounds
from ackfsm.tables import Specification, load
from ackfsm.terms import Anomaly, Fault
from model_tests.support.tables import copy_of_spec, replace, shipped

THROWS = frozenset({Fault.LISTENER_EXCEPTION})
SWALLOWS: dict[str, object] = {"send_mode": "blocking", "consumption": "listener"}
"""With these qpid confirms a send, and a listener that throws fills its prefetch of 500."""


def asked(settings: Mapping[str, object], profile: str = "qpid", messages: int = 2, **limits: Any) -> Answer:
    bounds = Bounds(messages=messages, faults=THROWS)
    return explore.check(shipped(), shipped().configure(profile, settings), bounds, **limits)


def test_what_fills_the_prefetch_is_found_where_it_is_small() -> None:
    answer = asked(SWALLOWS)
    assert answer.findings[Anomaly.LOSS].reachable is False
    (small,) = explore.small_bounds(shipped(), answer)
    assert (small.setting, small.value, small.tried, small.messages) == ("prefetch", 500, {"prefetch": 1}, 501)
    assert [str(finding.anomaly) for finding in small.reached] == ["loss"]
    assert {witness.anomaly for witness in small.answer.witnesses()} == {"loss"}


def test_with_more_messages_more_bounds_are_tried_until_everything_is_found() -> None:
    found = explore.small_bounds(shipped(), asked(SWALLOWS, messages=3))
    assert [one.tried for one in found] == [{"prefetch": 1}, {"prefetch": 2}]
    assert Anomaly.LOSS not in found[1].answer.findings, "it is known already"
    assert [one.messages for one in found] == [502, 501]


@pytest.mark.parametrize("settings", [{"prefetch": 0}, {"prefetch": 1}])
def test_nothing_is_tried_where_there_is_no_bound_or_it_is_filled(settings: dict[str, object]) -> None:
    assert explore.small_bounds(shipped(), asked(SWALLOWS | settings)) == ()


def test_nothing_is_tried_with_one_message_or_after_a_search_that_stopped() -> None:
    assert explore.small_bounds(shipped(), asked(SWALLOWS, messages=1)) == ()
    assert explore.small_bounds(shipped(), asked(SWALLOWS, max_states=20)) == ()


def test_each_of_two_consumers_has_a_prefetch_to_be_filled() -> None:
    bounds = Bounds(messages=2, consumers=2)
    answer = explore.check(shipped(), shipped().configure("qpid", SWALLOWS), bounds, only=["loss"])
    assert [one.messages for one in explore.small_bounds(shipped(), answer)] == [2 + 2 * 499]


def test_a_threshold_stays_within_a_window_that_is_tried() -> None:
    """With a window below its threshold nothing would ever be answered, as in no real system of both."""
    window = {"publish_window": 50, "confirm_threshold": 17, "send_mode": "asynchronous", "confirm_timer": True}
    found = explore.small_bounds(shipped(), asked(window, "jms"))
    assert [one.tried for one in found] == [{"publish_window": 1, "confirm_threshold": 1}, {"confirm_threshold": 1}]
    assert not any(one.reached for one in found)
    above = explore.small_bounds(shipped(), asked(window | {"confirm_threshold": 60}, "jms"))
    assert [one.tried for one in above] == [{"publish_window": 1}, {"confirm_threshold": 1}]


CASES: Mapping[str, tuple[str, dict[str, object], dict[str, object]]] = {
    "swallowed": ("qpid", SWALLOWS, {"prefetch": 1}),
    "client": ("qpid", SWALLOWS | {"ack_mode": "CLIENT_ACKNOWLEDGE"}, {"prefetch": 1}),
    "transacted": ("qpid", {"ack_mode": "SESSION_TRANSACTED"}, {"prefetch": 1}),
    "freed": ("ems", {"ack_mode": "CLIENT_ACKNOWLEDGE"}, {"prefetch": 1}),
    "window": ("solace", {"prefetch": 0}, {"publish_window": 1, "confirm_threshold": 1}),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_looked_for_does_not_depend_on_the_bound(case: str) -> None:
    """The whole search with the small bound reaches nothing but what was reached with the large one, or found."""
    profile, settings, small = CASES[case]
    bounds = Bounds(messages=2, faults=frozenset({Fault.LISTENER_EXCEPTION, Fault.CONSUMER_LINK_LOSS}))
    answer = explore.check(shipped(), shipped().configure(profile, settings), bounds)
    found = [one for one in explore.small_bounds(shipped(), answer) if one.tried == small]
    assert len(found) == 1
    whole = explore.check(shipped(), shipped().configure(profile, settings | small), bounds)
    reached = {finding.anomaly for finding in whole.findings.values() if finding.reachable}
    known = {finding.anomaly for finding in answer.findings.values() if finding.reachable}
    assert reached - known == {finding.anomaly for finding in found[0].reached}


WORDS = (
    "check --profile qpid --set send_mode=blocking --set consumption=listener --fault listener_exception --messages 2"
)
COMMAND = tuple(WORDS.split())


def test_the_command_says_so_and_what_it_says_of_the_configuration_stays(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*COMMAND, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (small,) = told.pop("small_bounds")
    assert told.pop("of_what_was_confirmed") == {"at_least_once": False}
    assert told == asked(SWALLOWS).as_json() | {"seconds": told["seconds"]}
    assert (small["setting"], small["value"], small["tried"]) == ("prefetch", 500, {"prefetch": 1})
    assert (small["conjectured_messages"], small["anomalies"]["loss"]["reachable"]) == (501, True)
    assert cli.main(COMMAND) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "no, but see below" in said
    assert "with prefetch=1 can happen loss (16 steps); with 500, as a conjecture, from 501 messages on" in said
    assert "loss with prefetch=1: send(m1)" in said


def _without_the_exception(folder: Path) -> Specification:
    """The tables as if nobody had thought of what fills the prefetch: ``loss`` is promised absent there."""
    spec = copy_of_spec(folder)
    before = "and not acks_before_delivery and not settled_on_dispatch and not failures_fill_prefetch"
    replace(spec, "promises.yaml", (before, before.removesuffix(" and not failures_fill_prefetch")))
    return load(spec)


def test_a_promise_that_only_a_smaller_bound_breaks_is_told_and_does_not_fail_the_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = _without_the_exception(tmp_path)
    monkeypatch.setattr(tables, "load", lambda: changed)
    assert cli.main(COMMAND) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "As promised with so few messages; a smaller bound that they fill breaks it: loss." in said
    assert cli.main([*COMMAND, "--set", "prefetch=1"]) == 1
