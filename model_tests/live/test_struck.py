"""The faults that a live broker is struck with: what is left of it, and whether the tables and the broker agree."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pika
import proton.utils
import pytest
import stomp

from ackfsm.driving.conform import (
    Claims,
    Limits,
    Operation,
    Program,
    Report,
    SendOutcome,
    _campaign,
    conform,
)
from ackfsm.driving.conform._program import Inject, Receive, Send
from ackfsm.driving.live.adapter import LiveAdapter
from ackfsm.driving.live.brokers import ActiveMq, Artemis, LiveBroker, RabbitMq
from ackfsm.driving.live.campaign import live
from ackfsm.driving.live.clients.drivers import drivers
from ackfsm.driving.live.faults import power
from ackfsm.driving.live.faults.disk import small_disk
from ackfsm.terms import AckMode, Fault, HostError, InputError, Verdict
from model_tests.support.brokers import Lent, had, running
from model_tests.support.tools import missing
from model_tests.support.whole import few

_SENT = 5


@contextlib.contextmanager
def struck(kind: type[LiveBroker], folder: Path, settings: Mapping[str, str]) -> Iterator[LiveBroker]:
    """A broker that can lose power."""
    if why := power.lacks():
        missing(why)
    with had():
        broker = kind(folder / "broker", settings, notes=folder / "power")
    with broker:
        yield broker


def send_by_pika(broker: LiveBroker, queue: str) -> None:
    """Send messages that are confirmed."""
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.ports["amqp"])) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for _ in range(_SENT):
            channel.basic_publish("", queue, b"tea", pika.BasicProperties(delivery_mode=2), mandatory=True)


def send_by_proton(broker: LiveBroker, queue: str) -> None:
    """Send messages that are accepted."""
    url = f"amqp://guest:guest@127.0.0.1:{broker.ports['amqp1']}"
    connection = proton.utils.BlockingConnection(url, 30, allowed_mechs="PLAIN")
    sender = connection.create_sender(queue)
    for _ in range(_SENT):
        sender.send(proton.Message("tea", durable=True))
    connection.close()


def send_by_stomp(broker: LiveBroker, queue: str) -> None:
    """Send messages, and wait for the receipt of each."""
    connection = stomp.Connection12([("127.0.0.1", broker.ports["stomp"])])
    connection.connect(wait=True)
    for number in map(str, range(_SENT)):
        receipt = stomp.WaitingListener(number)
        connection.set_listener(number, receipt)
        connection.send(f"/queue/{queue}", "tea", headers={"persistent": "true", "receipt": number})
        receipt.wait_on_receipt()
    connection.disconnect()


SYNC = "journal-sync-non-transactional"
CASES = [
    (ActiveMq, {"journalDiskSyncStrategy": "always"}, send_by_stomp, {"": _SENT}),
    (ActiveMq, {"journalDiskSyncStrategy": "never"}, send_by_stomp, {"": 0}),
]
SLOW = [
    (RabbitMq, {}, send_by_pika, {"classic-v1": _SENT, "quorum": _SENT, "classic-v2": 0}),
    (Artemis, {SYNC: "true"}, send_by_proton, {"": _SENT}),
    (Artemis, {SYNC: "false"}, send_by_proton, {"": 0}),
]


@pytest.mark.parametrize(("kind", "settings", "send", "left"), [*CASES, *few(SLOW, 0)])
def test_a_loss_of_power_leaves_what_the_settings_say(
    kind: type[LiveBroker], settings: dict[str, str], send: Any, left: dict[str, int], tmp_path: Path
) -> None:
    with struck(kind, tmp_path, settings) as broker:
        for each in left:
            broker.declare(f"q{each}", each)
        broker.settle()
        for each in left:
            send(broker, f"q{each}")
        broker.lose_power()
        broker.start()
        assert {each: broker.depth(f"q{each}").ready for each in left} == left
        synced = {each: broker.settings(each).get("journal_sync_non_transactional", True) is True for each in left}
        assert synced == {each: bool(number) for each, number in left.items()}


def judged(
    broker: LiveBroker, folder: Path, fault: Fault | None, settings: Mapping[str, object], nemesis: str = ""
) -> tuple[Report, LiveAdapter]:
    """What a few programs show in which ActiveMQ is struck; ``settings`` are those that it is said to have."""
    mode = AckMode.CLIENT_ACKNOWLEDGE
    claims = Claims(
        name="activemq",
        profile="activemq",
        settings=settings,
        ack_modes=(mode,),
        faults=frozenset([] if fault is None else [fault]),
        operations=frozenset({Operation.ACKNOWLEDGE, Operation.CLOSE}),
    )
    (driver,) = (each for each in drivers("activemq") if each.client == "activemq")
    adapter = LiveAdapter(broker, driver.under(nemesis) if nemesis else driver, claims, folder)
    at = "send" if fault in {Fault.PRODUCER_LINK_LOSS, Fault.JOURNAL_FAILURE} else "idle"
    strikes = () if fault is None else (Inject(fault, at),)
    program = Program((Send(3), Receive(0, 1), *strikes))
    try:
        return conform(adapter, faults=[fault], limits=Limits(runs=1), led=lambda *_: [program]), adapter
    finally:
        adapter.end()


def test_a_broker_that_syncs_less_than_it_is_said_to_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_campaign, "shrunk", lambda program, _: (program, 0))
    with struck(ActiveMq, tmp_path, {"journalDiskSyncStrategy": "never"}) as broker:
        told, _ = judged(broker, tmp_path / "told", Fault.BROKER_CRASH, broker.settings())
        hidden, _ = judged(broker, tmp_path / "hidden", Fault.BROKER_CRASH, {})
    assert (told.verdict, told.cells[0].struck) == (Verdict.VALID, 2), told
    assert hidden.verdict is Verdict.INVALID


@pytest.mark.parametrize(
    ("nemesis", "fault"),
    [
        ("pause", None),
        ("blackhole", Fault.PRODUCER_LINK_LOSS),
        *few([("delay", None), ("restart", Fault.BROKER_KILL), ("blackhole", Fault.CONSUMER_LINK_LOSS)], 0),
    ],
)
def test_a_trouble_that_the_tables_have_no_word_for_is_judged_as_what_it_is(
    nemesis: str, fault: Fault | None, lent: Lent[ActiveMq], tmp_path: Path
) -> None:
    broker = lent(ActiveMq)
    report, adapter = judged(broker, tmp_path / f"{nemesis}-{fault}", fault, {}, nemesis)
    assert broker.depth(f"orders-{nemesis}-{fault}-1").ready == 0
    assert report.verdict is Verdict.VALID, report
    assert bool(adapter.paused) is (nemesis == "pause")
    assert report.cells[0].struck == (0 if fault is None else 2)


def test_a_broker_that_loses_an_answered_message_to_a_broken_connection_is_found_out(
    lent: Lent[ActiveMq], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call whose answer is held up is in doubt, and no more."""
    monkeypatch.setattr(_campaign, "shrunk", lambda program, _: (program, 0))
    send = LiveAdapter.send

    def confirmed(self: LiveAdapter, *given: Any) -> SendOutcome:
        send(self, *given)
        return SendOutcome.CONFIRMED

    monkeypatch.setattr(LiveAdapter, "send", confirmed)
    report, _ = judged(lent(ActiveMq), tmp_path / "loses", Fault.PRODUCER_LINK_LOSS, {}, "blackhole")
    assert report.verdict is Verdict.INVALID, report


def test_a_fault_that_this_machine_does_not_let_us_bring_about_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(ActiveMq, "lacks", classmethod(lambda _: ""))
    with pytest.raises(InputError, match=r"no compiler of C, which .* apt-get install gcc"):
        live("activemq", folder=tmp_path, settings={}, faults=[Fault.BROKER_CRASH], limits=Limits())


def test_a_broker_whose_disk_is_full_loses_nothing_that_it_has_answered(tmp_path: Path) -> None:
    try:
        with (
            had(),
            small_disk(tmp_path / "disk", 128 * 2**20) as disk,
            ActiveMq(disk.folder, disk=disk) as broker,
        ):
            report, _ = judged(broker, tmp_path / "clients", Fault.JOURNAL_FAILURE, {})
            told = (disk.folder / "output").read_text(encoding="utf-8")
    except InputError as error:
        missing(str(error))
    assert (report.verdict, report.cells[0].struck) == (Verdict.VALID, 2), report
    assert "No space left on device" in told


def test_a_broker_that_does_not_come_back_is_told_and_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, tears = ActiveMq.start, [False] * 10 + [True]

    def torn(broker: ActiveMq) -> None:
        if tears.pop():
            raise HostError("its files are torn")
        start(broker)

    with running(ActiveMq) as broker:
        monkeypatch.setattr(ActiveMq, "start", torn)
        report, _ = judged(broker, tmp_path / "clients", Fault.BROKER_KILL, {})
        assert broker.depth("orders-clients-2").ready == 0
    assert report.verdict is Verdict.UNKNOWN
    assert "did not come back over what the fault had left: its files are torn" in str(report.cells[0].why)
