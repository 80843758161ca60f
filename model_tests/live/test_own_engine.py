"""The embedded broker is led through the tables as the other brokers are, and a broken one is found out."""

from __future__ import annotations

from pathlib import Path

import pytest

from ackfsm.driving.conform import Limits
from ackfsm.driving.live.driven import Driven, engine_driven
from ackfsm.driving.live.led import undone
from ackfsm.terms import AckMode, Consumption, Fault, Verdict
from model_tests.support.conform.broken import BROKEN, Broken
from model_tests.support.tables import shipped
from model_tests.support.whole import few

LIMITS = Limits(runs=1, seconds=1.0)


def _nobody(_: str) -> None:
    """Hears of no progress."""


def test_it_does_what_the_tables_say_and_performs_their_rows(tmp_path: Path) -> None:
    driven = engine_driven("jms", AckMode.CLIENT_ACKNOWLEDGE, Consumption.RECEIVE, tmp_path)
    report = driven.report([None, Fault.BROKER_KILL], LIMITS, _nobody)
    assert report.verdict is Verdict.VALID, str(report)
    assert len({*driven.covered().certain} & driven.covered().reachable) > 60
    assert len([*tmp_path.glob("histories/*.jsonl")]) == sum(cell.runs for cell in report.cells)


@pytest.mark.parametrize("bug", few(BROKEN, 2, "led"), ids=str)
def test_a_broken_one_is_found_out(bug: Broken, tmp_path: Path) -> None:
    without = undone(shipped(), (), recovers=True, cancels=False)
    driven = Driven(bug.make(bug.ack_mode), tmp_path, set(), without=without)
    assert driven.report([bug.fault], Limits(runs=20), _nobody).verdict is Verdict.INVALID
