"""``ackfsm live`` on topics: a subscription is driven and judged as a queue is, and a forgotten one is found out."""

from __future__ import annotations

from pathlib import Path

import pytest

from ackfsm.cli import main
from ackfsm.driving.conform import Act, Limits, Program, SendOutcome, Strike, claimed
from ackfsm.driving.conform._acts import perform
from ackfsm.driving.conform._judge import Judge
from ackfsm.driving.live.adapter import LiveAdapter
from ackfsm.driving.live.brokers import DURABLE, SHARED, Artemis, RabbitMq
from ackfsm.driving.live.campaign import claims_of, live
from ackfsm.driving.live.clients.drivers import Driver, drivers
from ackfsm.terms import AckMode, Consumption, Destination, Fault, Verdict
from model_tests.support.brokers import Lent, driven_by
from model_tests.support.tables import shipped
from model_tests.support.tools import missing
from model_tests.support.whole import few

_CLIENT, _RECEIVE = AckMode.CLIENT_ACKNOWLEDGE, Consumption.RECEIVE


def _driver(broker: str, client: str, kind: str) -> Driver:
    driver = next(each for each in drivers(broker) if each.client == client).on(kind)
    if why := driver.lacks():
        missing(why)
    return driver


@pytest.mark.parametrize("fault", few([Fault.CONSUMER_CRASH, Fault.BROKER_KILL], 1))
def test_a_durable_subscription_is_led_through_the_tables(
    fault: Fault, lent: Lent[Artemis], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven_by(monkeypatch, lent(Artemis))
    _driver("artemis", "artemis", DURABLE)
    report = live(
        "artemis",
        folder=tmp_path,
        settings={},
        kind=DURABLE,
        clients=["artemis"],
        ack_modes=[_CLIENT],
        consumptions=[_RECEIVE],
        faults=[fault],
        limits=Limits(runs=1, seconds=1.0),
    )
    assert report.verdict is Verdict.VALID, report.reports
    claims = report.reports[0].claims
    assert (claims.settings["destination"], claims.consumers) == (Destination.DURABLE_SUBSCRIPTION, 1)


class _Forgets(LiveAdapter):
    """The broker forgets the subscription before each send."""

    def send(self, client: str, queue: str, message: str, during: Strike | None = None) -> SendOutcome:
        """What is sent to nobody is confirmed."""
        self._broker.remove(self._queue)
        return super().send(client, queue, message, during)


@pytest.mark.parametrize(
    ("adapter", "verdict"), [(LiveAdapter, Verdict.VALID), (_Forgets, Verdict.INVALID)], ids=["keeps", "forgets"]
)
def test_a_subscription_that_is_forgotten_is_found_out(
    adapter: type[LiveAdapter], verdict: Verdict, lent: Lent[Artemis], tmp_path: Path
) -> None:
    broker, driver = lent(Artemis), _driver("artemis", "artemis", SHARED)
    claims = claims_of(broker, driver, _CLIENT, _RECEIVE, kind=SHARED)
    (mode,), known = claims.modes(), claimed(claims, shipped())
    driven = adapter(broker, driver, claims, tmp_path / verdict, kind=SHARED)
    program = Program((Act("send", "m1"), Act("delivered_clear", "m1"), Act("acknowledge", "m1")))
    try:
        with Judge(known) as judge:
            assert judge.judge(perform(driven, known, mode, program, 1.0), mode, "").verdict is verdict
    finally:
        driven.end()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (["artemis", "--client", "stomp", "--queue", DURABLE], "stomp is not driven with a durable_subscription"),
        (["artemis", "--client", "artemis", "--queue", DURABLE, "--rate", "9"], "say --queue shared_durable"),
        (["rabbitmq", "--url", "amqp://host", "--client", "pika", "--queue", DURABLE], "pika is not driven with a"),
        (["artemis", "--url", "amqp://host", "--client", "proton", "--queue", SHARED], "artemis has no 'shared_"),
    ],
)
def test_what_has_no_such_subscription_is_refused(
    wrong: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if why := Artemis.lacks() or RabbitMq.lacks():
        missing(why)
    assert main(["live", *wrong, "--output", str(tmp_path / "live")]) == 2
    assert told in capsys.readouterr().err
