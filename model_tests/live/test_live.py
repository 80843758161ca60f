"""``ackfsm live``: a real broker is led through programs, its rows are counted, and what it must not do is found."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import pytest

from ackfsm import verify
from ackfsm.cli import main
from ackfsm.driving.conform import SETTLES, Act, Delivery, Depth, Limits, Mode, Program, Status, _campaign, claimed
from ackfsm.driving.conform._acts import perform
from ackfsm.driving.conform._claims import Claimed
from ackfsm.driving.live.adapter import LiveAdapter
from ackfsm.driving.live.brokers import RabbitMq
from ackfsm.driving.live.campaign import LiveReport, claims_of, live
from ackfsm.driving.live.clients.drivers import drivers
from ackfsm.driving.live.led import led, undone
from ackfsm.driving.live.tour import STAGES, tour
from ackfsm.terms import AckMode, Consumption, Fault, Verdict
from ackfsm.verify.findings.performed import rows_performed
from model_tests.live_bench import pages, result_of
from model_tests.support.brokers import Lent, driven_by
from model_tests.support.tables import shipped
from model_tests.support.tools import missing


@pytest.fixture
def rabbitmq(lent: Lent[RabbitMq], monkeypatch: pytest.MonkeyPatch) -> RabbitMq:
    """That which is driven."""
    broker = lent(RabbitMq)
    driven_by(monkeypatch, broker)
    return broker


def driven(folder: Path) -> LiveReport:
    """A quick campaign on RabbitMQ."""
    return live(
        "rabbitmq",
        folder=folder / "live",
        settings={},
        clients=["pika"],
        ack_modes=[AckMode.INDIVIDUAL_ACKNOWLEDGE],
        consumptions=[Consumption.RECEIVE],
        faults=[Fault.CONSUMER_CRASH],
        limits=Limits(runs=1, seconds=10.0),
    )


@pytest.mark.usefixtures("rabbitmq")
def test_a_broker_is_led_through_the_tables(tmp_path: Path) -> None:
    report = driven(tmp_path)
    assert (report.verdict, report.counts()[Status.OK]) == (Verdict.VALID, 1), report.reports
    (covered,) = report.covered
    assert covered is not None
    certain, possible = covered.shares
    assert 0.2 < certain < possible < 1
    assert covered.certain.keys() <= covered.possible.keys()
    told = json.loads(json.dumps(report.as_json()))
    assert told["clients"][0]["rows"]["messages"] == covered.messages > 0
    kept = pickle.loads(pickle.dumps(result_of(report)))  # noqa: S301 - another process of the bench made it
    made = dict(pages([kept]))
    assert made.keys() == {"README.md", "coverage.md", "rabbitmq.csv"}
    assert "| rabbitmq | rabbitmq | INDIVIDUAL_ACKNOWLEDGE receive | consumer_crash |" in made["README.md"].replace(
        f" {report.version}", ""
    )
    rows = {row: counts for row, its in kept["rows"]["rabbitmq"].items() for counts in its.values()}
    cells = {row: str(certain) if certain or not possible else "?" for row, (certain, possible) in rows.items()}
    assert {f'"{row}",{cell}' for row, cell in cells.items()} == {*made["rabbitmq.csv"].splitlines()[1:]}
    assert {"?", "0"} < {*cells.values()}
    assert {row for row, cell in cells.items() if f"* {row}\n" in made["coverage.md"]} == {
        row for row, cell in cells.items() if cell == "0"
    }
    assert (
        "rabbitmq by amqp, aio_pika, proton, stomp; rabbitmq quorum by pika, amqp, aio_pika, proton, stomp; "
        "rabbitmq shared_durable_subscription by pika, amqp, aio_pika, proton, stomp." in made["README.md"]
    )


@pytest.mark.usefixtures("rabbitmq")
def test_a_broker_whose_client_clears_the_flag_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    receive = LiveAdapter.receive

    def cleared(self: LiveAdapter, client: str, queue: str, timeout: float) -> Delivery | None:
        found = receive(self, client, queue, timeout)
        return None if found is None else dataclasses.replace(found, redelivered=False)

    monkeypatch.setattr(LiveAdapter, "receive", cleared)
    monkeypatch.setattr(_campaign, "shrunk", lambda program, _: (program, 0))
    report = driven(tmp_path)
    assert report.verdict is Verdict.INVALID
    (cell,) = report.reports[0].of(Status.VIOLATION)
    assert cell.failure is not None
    assert "delivered" in cell.failure.reasons[0]
    assert "does not conform to the model" in cell.failure.reasons[0]


def test_programs_of_a_tour_are_led_by_the_fault_that_strikes_in_them() -> None:
    configuration = shipped().configure(None, {"profile": "rabbitmq", "consumption": "receive"})
    faults = [Fault.CONSUMER_CRASH, Fault.BROKER_KILL]
    programs = led(tour(shipped(), configuration, faults=faults, stages=STAGES[:1]).programs)
    assert set(programs) == {None, *faults}
    struck = [step for program in programs[Fault.BROKER_KILL] for step in program.steps if isinstance(step, Act)]
    assert {step.event for step in struck if step.during is Fault.BROKER_KILL} >= {"send"}
    assert all(rows for its in programs.values() for rows in its.values())


def test_an_application_does_not_send_again_what_its_library_does() -> None:
    configuration = shipped().configure("qpid", {"resend_in_doubt": True})
    found = tour(shipped(), configuration, faults=[Fault.PRODUCER_LINK_LOSS], stages=STAGES[:1])
    for resends in (True, False):
        programs = led(found.programs, resends=resends).values()
        acts = [step for its in programs for program in its for step in program.steps if isinstance(step, Act)]
        assert any(each.during is Fault.PRODUCER_LINK_LOSS for each in acts)
        assert ("resend" in {each.event for each in acts}) is not resends


@pytest.mark.parametrize(
    ("outcomes", "recovers", "cancels"), [((), True, False), (("released", "rejected"), False, True)]
)
def test_a_tour_has_what_the_client_can_bring_about_alone(
    outcomes: tuple[str, ...], *, recovers: bool, cancels: bool
) -> None:
    without = undone(shipped(), outcomes, recovers=recovers, cancels=cancels)
    configuration = shipped().configure("rabbitmq", {"ack_mode": "INDIVIDUAL_ACKNOWLEDGE"})
    programs = led(tour(shipped(), configuration, without=without, stages=STAGES[:1]).programs).values()
    acts = {step.event for its in programs for program in its for step in program.steps if isinstance(step, Act)}
    assert "lease_expired" in without
    assert acts.isdisjoint(without)
    assert {event for event, outcome in SETTLES.items() if outcome in outcomes} == acts & SETTLES.keys()
    assert ("recover" in acts) is recovers
    assert ("consumer_cancel" in acts) is cancels


@contextlib.contextmanager
def adapting(broker: RabbitMq, kind: type[LiveAdapter], folder: Path) -> Iterator[tuple[LiveAdapter, Claimed, Mode]]:
    """The broker with pika in one mode, which acknowledges each message by itself."""
    (driver,) = (each for each in drivers("rabbitmq") if each.client == "pika")
    if why := driver.lacks():
        missing(why)
    claims = claims_of(broker, driver, AckMode.INDIVIDUAL_ACKNOWLEDGE, Consumption.RECEIVE)
    adapter = kind(broker, driver, claims, folder)
    try:
        yield adapter, claimed(claims, shipped()), next(claims.modes())
    finally:
        adapter.end()


class _NeverEmpty(LiveAdapter):
    """Says of its queue that something is left, so that its run is not drained."""

    def depth(self, queue: str) -> Depth:
        """It is asked for no dead letters."""
        del queue
        return Depth(1)


@pytest.mark.parametrize(("settings", "kept"), [({"x-dead-letter-exchange": ""}, ["m1"]), ({}, [])])
def test_the_dead_letters_of_a_run_are_its_own(
    settings: dict[str, str], kept: list[str], rabbitmq: RabbitMq, tmp_path: Path
) -> None:
    rejects = Program((Act("send", "m1"), Act("delivered_clear", "m1"), Act("settle_rejected", "m1")))
    broker = copy.copy(rabbitmq)  # all that RabbitMQ is set to are arguments of the queues that are declared
    broker.vendor_settings = MappingProxyType(settings)
    broker.remove(broker.dead_letters)
    broker.declare(broker.dead_letters)
    with adapting(broker, _NeverEmpty, tmp_path / f"never-{len(kept)}") as (never, known, mode):
        perform(never, known, mode, rejects, 0.2)
        assert broker.depth(broker.dead_letters).ready == len(kept), "nobody has taken them"
    with adapting(broker, LiveAdapter, tmp_path / f"led-{len(kept)}") as (adapter, known, mode):
        for program, found in ((rejects, kept), (Program((Act("send", "m1"),)), [])):
            performed = perform(adapter, known, mode, program, 0.2)
            lines = performed.recorder.lines
            assert performed.open is None
            assert [line["message"] for line in lines if line["event"] == "dead_lettered"] == found
            assert b'"dead_lettered":"moved"' in performed.recorder.history(known.configurations[mode], "")
        assert broker.depth(broker.dead_letters).ready == 0


def test_a_consumer_is_closed_and_its_session_goes_on(rabbitmq: RabbitMq, tmp_path: Path) -> None:
    acts = [("send", "m1"), ("send", "m2"), ("delivered_clear", "m1"), ("consumer_cancel", "")]
    acts += [("delivered_flagged", "m2"), ("acknowledge", "m1"), ("acknowledge", "m2")]
    with adapting(rabbitmq, LiveAdapter, tmp_path / "clients") as (adapter, known, mode):
        performed = perform(adapter, known, mode, Program(tuple(Act(*each) for each in acts)), 1.0)
    path, configuration = tmp_path / "history.jsonl", known.configurations[mode]
    path.write_bytes(performed.recorder.history(configuration, ""))
    given = [line["message"] for line in performed.recorder.lines if line["event"] == "delivered"]
    assert (given, performed.open) == (["m1", "m2"], None), "m1 stays with the session, m2 goes back and comes again"
    taken = rows_performed(verify.read(path), shipped(), configuration)
    assert {"in_flight", "prefetched"} & {row.state for row in taken.possible if row.event == "consumer_cancel"}
    found = verify.examine(verify.read(path), shipped(), configuration)
    assert verify.verdict(found, shipped()).verdict is Verdict.VALID


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        (["rabbit"], "did you mean rabbitmq"),
        (["rabbitmq", "--client", "pica"], "did you mean pika"),
        (["rabbitmq", "--fault", "pauze"], "did you mean pause"),
        (["rabbitmq", "--set", "x"], "say KEY=VALUE"),
        (["rabbitmq", "--set", "x=1"], "set one of x-queue-type"),
    ],
)
def test_a_name_that_there_is_not_is_refused_with_a_remedy(
    wrong: list[str], remedy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["live", *wrong, "--output", str(tmp_path / "live")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert remedy in told.err
