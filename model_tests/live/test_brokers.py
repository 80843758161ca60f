"""Are the brokers of others started, asked, killed and started again, and does none of them outlive us?"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import proton.utils
import pytest
import stomp

from ackfsm.driving.conform import Depth
from ackfsm.driving.live import java
from ackfsm.driving.live.brokers import BROKERS, DURABLE, SHARED, ActiveMq, Artemis, BrokerJ, LiveBroker, RabbitMq
from ackfsm.driving.live.processes import Group, free_ports, listens, until
from ackfsm.terms import HostError, InputError
from model_tests.support.brokers import running

Hold = Callable[[LiveBroker], contextlib.AbstractContextManager[Callable[[], object]]]
"""Sends a message to ``q``, and holds it; what is given acknowledges it."""


@contextlib.contextmanager
def by_pika(broker: LiveBroker) -> Iterator[Callable[[], object]]:
    parameters = pika.ConnectionParameters("127.0.0.1", broker.ports["amqp"])
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        if not broker.depth("q").ready:
            channel.confirm_delivery()
            channel.basic_publish("", "q", b"tea", pika.BasicProperties(delivery_mode=2), mandatory=True)
        until(lambda: broker.depth("q") == Depth(1, 0), "the message is there")
        method, _, _ = channel.basic_get("q")
        yield lambda: channel.basic_ack(method.delivery_tag)


@contextlib.contextmanager
def by_proton(broker: LiveBroker) -> Iterator[Callable[[], object]]:
    url = f"amqp://guest:guest@127.0.0.1:{broker.ports['amqp1']}"
    connection = proton.utils.BlockingConnection(url, 30, allowed_mechs="PLAIN")
    try:
        if not broker.depth("q").ready:
            connection.create_sender("q").send(proton.Message("tea", durable=True))
        receiver = connection.create_receiver("q", credit=1)
        receiver.receive(timeout=30)

        def acknowledge() -> None:
            receiver.accept()
            connection.create_sender("q", name="what was written before is read when this is answered")

        yield acknowledge
    finally:
        connection.close()


@contextlib.contextmanager
def by_stomp(broker: LiveBroker) -> Iterator[Callable[[], object]]:
    connection = stomp.Connection12([("127.0.0.1", broker.ports["stomp"])])
    taken = _Taken()
    connection.set_listener("", taken)
    connection.connect(wait=True)
    if not broker.depth("q").ready:
        connection.send("/queue/q", "tea", headers={"persistent": "true"})
    connection.subscribe("/queue/q", "1", ack="client-individual")
    assert taken.came.wait(30)
    yield lambda: connection.ack(taken.headers[0]["ack"])
    connection.disconnect()


class _Taken(stomp.ConnectionListener):  # type: ignore[misc]
    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []
        self.came = threading.Event()

    def on_message(self, frame: Any) -> None:
        self.headers.append(frame.headers)
        self.came.set()


@pytest.mark.parametrize(
    ("kind", "hold", "queue", "settings"),
    [
        (RabbitMq, by_pika, "quorum", {"x-delivery-limit": "5", "x-dead-letter-exchange": ""}),
        (ActiveMq, by_stomp, "", {"persistJMSRedelivered": "true", "journalDiskSyncStrategy": "never"}),
        (Artemis, by_proton, "", {"max-delivery-attempts": "5", "journal-sync-transactional": "false"}),
        (BrokerJ, by_proton, "", {"maximumDeliveryAttempts": "5"}),
    ],
    ids=["rabbitmq", "activemq", "artemis", "broker-j"],
)
def test_a_broker_keeps_a_message_that_it_is_killed_with(
    kind: type[LiveBroker], hold: Hold, queue: str, settings: dict[str, str]
) -> None:
    with running(kind, settings) as broker:
        assert re.fullmatch(r"\d+\.\d+\.\d+", broker.version)
        broker.declare("q", queue)
        assert broker.depth("q") == Depth(0, 0)
        with hold(broker):
            until(lambda: broker.depth("q") == Depth(0, 1), "the message is held")
        until(lambda: broker.depth("q") == Depth(1, 0), "the message is given back")
        broker.pause()
        assert all(map(listens, broker.ports.values()))
        broker.kill()
        assert not any(map(listens, broker.ports.values()))
        with pytest.raises(HostError, match=f"{broker.name} does not answer"):
            broker.depth("q")
        broker.start()
        until(lambda: broker.depth("q") == Depth(1, 0), "the message is there")
        with hold(broker) as acknowledge:
            acknowledge()
            until(lambda: broker.depth("q") == Depth(0, 0), "the message is acknowledged")
        broker.stop()
        assert not any(map(listens, broker.ports.values()))
        assert broker.settings(queue).keys() - {"profile"}


def test_a_group_does_not_outlive_who_started_it(tmp_path: Path) -> None:
    """Its parent is killed with no chance to do anything about it."""
    program = f"""
import os, pathlib, time
from ackfsm.driving.live.processes import Group
folder = pathlib.Path({str(tmp_path)!r})
Group(["/bin/sh", "-c", "sleep 300 & echo $! $$; exec sleep 300"], folder, folder / "output", os.environ)
time.sleep(300)
"""
    with subprocess.Popen([sys.executable, "-c", program], start_new_session=True) as parent:
        output = tmp_path / "output"
        until(lambda: output.exists() and len(output.read_text().split()) == 2, "the group runs")
        started = [int(each) for each in output.read_text().split()]
        assert all(map(_runs, started))
        os.killpg(parent.pid, signal.SIGKILL)
    until(lambda: not any(map(_runs, started)), "the group is killed", 10)


def _runs(process: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False


def test_what_does_not_end_in_time_is_killed_and_told(tmp_path: Path) -> None:
    group = Group(["/bin/sh", "-c", "trap '' TERM; echo begun; sleep 300"], tmp_path, tmp_path / "output", os.environ)
    until(lambda: "begun" in group.last_words, "it runs")
    with pytest.raises(HostError, match=r"did not end within 0 s and was killed; see .*output"):
        group.end(signal.SIGTERM, 0.2)
    assert not group.runs


def test_ports_are_no_clients_ports() -> None:
    ports = free_ports(50)
    assert len(set(ports)) == 50
    assert not any(map(listens, ports))
    first, _ = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="utf-8").split()
    assert max(ports) < int(first)


def test_what_cannot_be_had_says_how_it_is_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    lacking = {name: kind.lacks() for name, kind in BROKERS.items()}
    assert all(" install it with: apt-get install " in told for told in lacking.values())
    with pytest.raises(java.UnavailableError, match="there is no javac; install it with: apt-get install default-jdk"):
        Artemis(tmp_path)


def test_a_program_that_is_no_java_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if lack := java.lacks():
        pytest.skip(lack)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "Tea.java"
    source.write_text("class Tea { int cups = none; }", encoding="utf-8")
    with pytest.raises(HostError, match=r"(?s)Tea\.java cannot be compiled: .*cannot find symbol"):
        java.compiled([source])
    assert list((tmp_path / "cache" / "ackfsm" / "brokers").iterdir()) == []


@pytest.mark.parametrize("kind", BROKERS.values(), ids=BROKERS)
def test_what_a_broker_does_not_have_is_refused(kind: type[LiveBroker], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"^{kind.name} is not started with tea; set one of .*{kind.SETTINGS[-1]}$"):
        kind(tmp_path, {"tea": "true"})


def test_settings_of_the_vendor_are_those_of_the_profile(tmp_path: Path) -> None:
    told: dict[str, Any] = {}
    for kind, settings, queue in (
        (
            Artemis,
            {"journal-sync-non-transactional": "false", "max-delivery-attempts": "-1", "dead-letter-address": ""},
            "",
        ),
        (ActiveMq, {"journalDiskSyncStrategy": "periodic", "persistJMSRedelivered": "true"}, ""),
        (BrokerJ, {"maximumDeliveryAttempts": "5", "store": "DERBY"}, ""),
        (RabbitMq, {"x-delivery-limit": "4"}, "quorum"),
        (RabbitMq, {}, "classic-v2"),
        (RabbitMq, {}, SHARED),
        (ActiveMq, {}, DURABLE),
    ):
        if not kind.lacks():
            found = kind(tmp_path, settings).settings(queue, "amqp")
            told[f"{kind.name} {queue}"] = {key: str(value) for key, value in found.items() if key != "profile"}
    assert (
        told.items()
        <= {
            "artemis ": {
                "journal_sync_non_transactional": "False",
                "max_delivery_attempts": "0",
                "attempts_exhausted": "destroy",
            },
            "activemq ": {
                "journal_sync_non_transactional": "written",
                "journal_sync_transactional": "written",
                "redelivery_mark_persisted": "True",
            },
            "broker-j ": {
                "max_delivery_attempts": "5",
                "delivery_count_from": "dispatch",
                "ended_consumer_marks_redelivered": "False",
                "resend_in_doubt": "True",
            },
            "rabbitmq quorum": {
                "journal_sync_non_transactional": "True",
                "restart_marks_redelivered": "False",
                "max_delivery_attempts": "5",
            },
            "rabbitmq classic-v2": {"journal_sync_non_transactional": "written"},
            f"rabbitmq {SHARED}": {"destination": "durable_subscription"},
            f"activemq {DURABLE}": {"destination": "durable_subscription"},
        }.items()
    )
