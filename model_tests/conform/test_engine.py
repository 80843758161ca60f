"""Does the engine pass, in every mode of JMS under every fault, and is the same seed the same campaign?"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from ackfsm.driving.conform import (
    NO_FAULT,
    AckOutcome,
    Act,
    Adapter,
    Claims,
    Delivery,
    Depth,
    Limits,
    Mode,
    Operation,
    Program,
    SendOutcome,
    Status,
    Strike,
    conform,
)
from ackfsm.driving.conform._acts import perform
from ackfsm.driving.conform._claims import claimed
from ackfsm.driving.conform._program import draw
from ackfsm.driving.conform.engine import EngineAdapter
from ackfsm.terms import AckMode, Consumption, DeliveryMode, Fault, InputError, Verdict
from model_tests.support.tables import shipped
from model_tests.support.whole import few

JMS = ("AUTO_ACKNOWLEDGE", "CLIENT_ACKNOWLEDGE", "DUPS_OK_ACKNOWLEDGE", "SESSION_TRANSACTED")


@pytest.mark.parametrize("mode", few([*JMS], 1))
def test_the_engine_keeps_what_it_promises_and_every_fault_takes_effect(mode: str) -> None:
    adapter = EngineAdapter(ack_modes=[AckMode(mode)], delivery_modes=[DeliveryMode.PERSISTENT])
    report = conform(adapter, limits=Limits(runs=8))
    assert report.verdict is Verdict.VALID, str(report)
    assert len(report.cells) == 10 + 9, "by listener and not; what a listener throws is by listener alone"
    assert all(cell.struck for cell in report.cells if cell.fault is not None)


def test_the_same_seed_is_the_same_campaign_to_the_byte_and_another_seed_is_another() -> None:
    def histories(seed: int) -> list[bytes]:
        adapter = EngineAdapter(ack_modes=[AckMode.CLIENT_ACKNOWLEDGE])
        known = claimed(adapter.claims(), shipped())
        mode = next(iter(known.configurations))
        written = []
        for run in range(10):
            program = draw(f"{seed} {run}", mode, Fault.BROKER_CRASH, known.claims, 6)
            performed = perform(adapter, known, mode, program, 0.0)
            written.append(performed.recorder.history(known.configurations[mode], ""))
        return written

    assert histories(1) == histories(1)
    assert histories(1) != histories(2)


def test_only_what_is_asked_for_is_driven_and_what_is_not_claimed_is_refused() -> None:
    adapter = EngineAdapter(consumptions=[Consumption.RECEIVE], delivery_modes=[DeliveryMode.PERSISTENT])
    report = conform(
        adapter, limits=Limits(runs=1), ack_modes=[AckMode.AUTO_ACKNOWLEDGE], faults=[None, Fault.CONSUMER_CRASH]
    )
    driven = [cell.fault_name for cell in report.cells if cell.status is not Status.NOT_CLAIMED]
    assert driven == [NO_FAULT, "consumer_crash"]
    with pytest.raises(InputError, match="the acknowledgement mode NO_ACKNOWLEDGE is not claimed; claimed are AUTO"):
        conform(adapter, ack_modes=[AckMode.NO_ACKNOWLEDGE])
    with pytest.raises(InputError, match="the fault listener_exception is not claimed"):
        conform(adapter, faults=[Fault.LISTENER_EXCEPTION])


def test_the_report_is_json_with_a_row_for_every_mode_and_fault() -> None:
    adapter = EngineAdapter(ack_modes=[AckMode.AUTO_ACKNOWLEDGE], consumptions=[Consumption.RECEIVE])
    found = json.loads(json.dumps(conform(adapter, limits=Limits(runs=1), faults=[None]).as_json()))
    cells = {(cell["delivery_mode"], cell["fault"]): cell["status"] for cell in found["cells"]}
    assert cells["PERSISTENT", "none"] == "ok"
    assert cells["NON_PERSISTENT", "listener_exception"] == "not claimed"
    assert found["counts"] == {"ok": 2, "violation": 0, "unknown": 0, "not claimed": 2}


class Silent(Adapter):
    """Takes every message and gives none."""

    def claims(self) -> Claims:
        """The least that there is."""
        return Claims(name="silent", ack_modes=(AckMode.AUTO_ACKNOWLEDGE,))

    def begin(self, mode: Mode, queue: str) -> None:
        """Nothing to do."""

    def send(self, client: str, queue: str, message: str, during: Strike | None = None) -> SendOutcome:
        """Confirmed."""
        del client, queue, message, during
        return SendOutcome.CONFIRMED

    def receive(self, client: str, queue: str, timeout: float) -> Delivery | None:
        """None ever comes."""

    def depth(self, queue: str) -> Depth:
        """It seems empty."""
        del queue
        return Depth(0)


def test_the_least_adapter_is_judged_and_a_broker_that_keeps_everything_loses_it(tmp_path: Path) -> None:
    report = conform(Silent(), limits=Limits(runs=2), output=tmp_path / "new" / "folder")
    (cell,) = report.of(Status.VIOLATION)
    assert cell.failure is not None
    assert cell.failure.small is not None
    assert cell.failure.small.exists()
    assert "loss of 1 message" in str(report)
    assert report.verdict is Verdict.INVALID


class OneAttempt(Silent):
    """Delivers each message once; what was not acknowledged then is kept as a dead letter, or not."""

    def __init__(self, *, keeps: bool, claims_to_keep: bool) -> None:
        self._keeps, self._exhausted = keeps, "dead_letter" if claims_to_keep else "destroy"

    def claims(self) -> Claims:
        """What becomes of it is claimed."""
        return Claims(
            name="one attempt",
            settings={"max_delivery_attempts": 1, "attempts_exhausted": self._exhausted},
            ack_modes=(AckMode.INDIVIDUAL_ACKNOWLEDGE,),
            delivery_modes=(DeliveryMode.PERSISTENT,),
            operations=frozenset({Operation.ACKNOWLEDGE, Operation.RECOVER, Operation.CLOSE}),
        )

    def begin(self, mode: Mode, queue: str) -> None:
        """Nothing is there."""
        del mode, queue
        self._ready, self._held = list[str](), dict[str, list[str]]()
        self._dead: list[str] = []

    def send(self, client: str, queue: str, message: str, during: Strike | None = None) -> SendOutcome:
        """It is in the queue."""
        self._ready.append(message)
        return super().send(client, queue, message, during)

    def receive(self, client: str, queue: str, timeout: float) -> Delivery | None:
        """The first one."""
        del queue, timeout
        if not self._ready:
            return None
        self._held.setdefault(client, []).append(self._ready.pop(0))
        return Delivery(self._held[client][-1])

    def acknowledge(self, client: str, message: str, during: Strike | None = None) -> AckOutcome:
        """It is gone."""
        del during
        self._held[client].remove(message)
        return AckOutcome.ACKNOWLEDGED

    def recover(self, client: str) -> None:
        """What it holds has had its attempt."""
        given_up = self._held.pop(client, [])
        self._dead += given_up if self._keeps else []

    close = recover

    def depth(self, queue: str) -> Depth:
        """With the dead letters."""
        del queue
        return Depth(len(self._ready), sum(map(len, self._held.values())), tuple(self._dead))


@pytest.mark.parametrize("keeps", [True, False])
def test_where_the_claims_destroy_what_is_kept_or_keep_what_is_not_is_a_violation(keeps: bool) -> None:  # noqa: FBT001 - a parameter
    as_claimed, otherwise = (
        conform(OneAttempt(keeps=keeps, claims_to_keep=claimed), limits=Limits(runs=8))
        for claimed in (keeps, not keeps)
    )
    assert as_claimed.verdict is Verdict.VALID, as_claimed
    (cell,) = otherwise.of(Status.VIOLATION)
    assert cell.failure is not None
    assert "dead_lettered" in cell.failure.reasons[0]


class Unconfirmed(Silent):
    """Answers no send."""

    def claims(self) -> Claims:
        """So it is claimed."""
        return dataclasses.replace(super().claims(), settings={"send_mode": "unconfirmed"})

    def send(self, client: str, queue: str, message: str, during: Strike | None = None) -> SendOutcome:
        """Taken, perhaps."""
        super().send(client, queue, message, during)
        return SendOutcome.SENT


@pytest.mark.parametrize(("adapter", "sends"), [(Silent(), ["send", "resend"]), (Unconfirmed(), ["send"])])
def test_what_nobody_answers_is_not_sent_again(adapter: Adapter, sends: list[str]) -> None:
    mode = next(adapter.claims().modes())
    program = Program((Act("send", "m1"), Act("resend", "m1")))
    performed = perform(adapter, claimed(adapter.claims(), shipped()), mode, program, 0.0)
    assert [line["event"] for line in performed.recorder.lines if line["event"] in {"send", "resend"}] == sends
