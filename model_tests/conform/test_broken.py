"""Is each broken implementation caught, by what it did, and is nothing a pass that was not seen?"""

from __future__ import annotations

import io
import itertools
import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from ackfsm import cli
from ackfsm.driving.conform import Act, Depth, Limits, Mode, Program, Report, Status, conform
from ackfsm.driving.conform.engine import EngineAdapter
from ackfsm.driving.conform.screen import conform_screen
from ackfsm.terms import AckMode, Consumption, Fault, HostError, InputError, Verdict
from model_tests.support.conform.broken import BROKEN, Broken, Hoards, Holds, Immortal, Stays, made
from model_tests.support.whole import few


def run(bug: Broken, output: Path | None = None) -> Report:
    return conform(bug.make(bug.ack_mode), limits=Limits(runs=20), faults=[bug.fault], output=output)


@pytest.mark.parametrize("bug", few(BROKEN, 3), ids=str)
def test_a_broken_implementation_is_caught(bug: Broken, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = run(bug, tmp_path)
    assert report.verdict is Verdict.INVALID
    (cell,) = report.of(Status.VIOLATION)
    failure = cell.failure
    assert failure is not None
    assert {*failure.anomalies} & bug.anomalies
    assert len(failure.small_program) <= len(failure.program)
    for path in (failure.history, failure.small):
        assert cli.main(["verify", "--json", str(path)]) == 1, "the file shows it by itself"
        found = json.loads(capsys.readouterr().out)
        assert any(
            found["anomalies"][each.value]["count"] for each in bug.anomalies if each.value in found["anomalies"]
        )


def test_the_same_seed_finds_the_same_violation() -> None:
    one, other = (run(BROKEN[1]).as_json() for _ in range(2))
    assert one == other


def open_cell(make: type[Immortal | Hoards], fault: Fault | None) -> str:
    report = conform(made(make)(AckMode.CLIENT_ACKNOWLEDGE), limits=Limits(runs=3), faults=[fault])
    assert report.verdict is Verdict.UNKNOWN, "never a pass"
    (cell,) = report.of(Status.UNKNOWN)
    assert cell.why is not None
    return cell.why


@pytest.mark.parametrize(
    "fault", ["broker_kill", "broker_crash", "journal_failure", "consumer_crash", "producer_crash"]
)
def test_a_fault_that_was_to_strike_and_did_not_is_no_pass(fault: str) -> None:
    assert "answered" in open_cell(Immortal, Fault(fault))
    assert "was to be d" in open_cell(Immortal, Fault(fault))


def test_a_rejection_that_does_not_happen_is_no_pass() -> None:
    assert open_cell(Immortal, Fault.REJECTION) == "rejection: the broker was to refuse a message, and did not"


def test_a_lost_connection_that_nothing_shows_is_no_pass() -> None:
    assert open_cell(Immortal, Fault.PRODUCER_LINK_LOSS) == (
        "producer_link_loss never took effect while something was at stake"
    )


@pytest.mark.parametrize(("kind", "runs"), [(EngineAdapter, 1), (Immortal, 4)])
def test_when_time_is_over_a_few_more_programs_run_until_something_was_seen(
    kind: type[EngineAdapter], runs: int
) -> None:
    limits = Limits(runs=20, seconds=0.0)
    report = conform(made(kind)(AckMode.CLIENT_ACKNOWLEDGE), limits=limits, faults=[Fault.PRODUCER_LINK_LOSS])
    assert [cell.runs for cell in report.cells if cell.fault is Fault.PRODUCER_LINK_LOSS] == [runs]


def test_when_time_is_over_programs_are_drawn_though_many_that_lead_were_not_struck(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(monotonic=partial(next, itertools.count(step=0.05)))
    monkeypatch.setattr("ackfsm.driving.conform._campaign.time", clock)
    limits, unstruck = Limits(runs=3, seconds=0.5), itertools.repeat(Program((Act("send", "m1"),)))
    adapter = made(EngineAdapter)(AckMode.CLIENT_ACKNOWLEDGE)
    report = conform(adapter, limits=limits, faults=[Fault.PRODUCER_LINK_LOSS], led=lambda _mode, _fault: unstruck)
    (cell,) = report.of(Status.OK)
    assert cell.runs > 4, "or nothing was led"


def test_a_queue_that_does_not_drain_is_no_pass() -> None:
    why = open_cell(Hoards, None)
    assert why.startswith("run 1: the queue did not drain: it holds 1 ready and 0 unacknowledged messages")
    assert Depth(0, 0).empty
    assert not Depth(0, 1).empty


def test_a_mode_that_the_profile_does_not_have_is_open_and_alone_it_is_refused() -> None:
    both = made(profile="rabbitmq")(AckMode.INDIVIDUAL_ACKNOWLEDGE)
    both.ack_modes = (AckMode.INDIVIDUAL_ACKNOWLEDGE, AckMode.AUTO_ACKNOWLEDGE)
    report = conform(both, limits=Limits(runs=2), faults=[None])
    assert [cell.status for cell in report.cells if cell.fault is None and cell.status is not Status.NOT_CLAIMED] == [
        Status.UNKNOWN,
        Status.OK,
    ]
    assert "no library acknowledges after the callback" in str(report)
    with pytest.raises(InputError, match="claims no mode that its profile has"):
        conform(made(profile="rabbitmq")(AckMode.AUTO_ACKNOWLEDGE))


def test_a_listener_that_is_in_a_call_has_returned_before_its_session_closes() -> None:
    make = made(Holds, consumption=Consumption.LISTENER)
    faults = [None, Fault.CONSUMER_LINK_LOSS, Fault.CONSUMER_CRASH]
    report = conform(make(AckMode.AUTO_ACKNOWLEDGE), limits=Limits(runs=20), faults=faults)
    assert report.verdict is Verdict.VALID, str(report)


def test_a_listener_that_never_returns_is_no_pass_and_no_end_of_waiting() -> None:
    make = made(Stays, consumption=Consumption.LISTENER)
    report = conform(make(AckMode.AUTO_ACKNOWLEDGE), limits=Limits(runs=3), faults=[None])
    (cell,) = report.of(Status.UNKNOWN)
    assert "the listener of consumer-1 holds a message that was not asked for" in str(cell.why)


class Falls(EngineAdapter):
    """Its machine fails as the third combination begins."""

    begun = 0

    def begin(self, mode: Mode, queue: str) -> None:
        """Count."""
        self.begun += 1
        if self.begun > 4:
            raise HostError("the disk is full")
        super().begin(mode, queue)


def test_what_ends_a_campaign_early_is_told_and_what_it_did_not_reach_is_open() -> None:
    report = conform(made(Falls)(AckMode.CLIENT_ACKNOWLEDGE), limits=Limits(runs=2))
    assert isinstance(report.stopped, HostError)
    assert "the disk is full (in CLIENT_ACKNOWLEDGE, PERSISTENT, receive; broker_kill; run 1)" in str(report)
    assert [cell.reached for cell in report.cells].count(True) == 2 + 1, "and what is not claimed"
    assert report.verdict is Verdict.UNKNOWN
    screen = io.StringIO()
    Console(file=screen, width=80).print(conform_screen(report))
    assert "stopped         before its end" in screen.getvalue()
    assert "not reached: the campaign ended before" in " ".join(screen.getvalue().split())
