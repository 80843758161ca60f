"""Does a client in a process of its own do what it is told, say what happened, and end with whoever started it?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pika
import pytest

from ackfsm import tables
from ackfsm.driving.live.brokers import RabbitMq
from ackfsm.driving.live.clients.client import (
    Answer,
    Client,
    ClientError,
    ClosedError,
    DownError,
    RefusedError,
    TimedOutError,
    python_worker,
)
from ackfsm.driving.live.clients.modes import all_driven, driven
from ackfsm.driving.live.clients.worker import LIBRARIES
from ackfsm.driving.live.processes import until
from ackfsm.recorder import Recorder
from ackfsm.terms import AckMode, Consumption, InputError
from model_tests.support.brokers import Lent
from model_tests.support.commands import environment
from model_tests.support.recorder.judged import Judged, events, judged, shape
from model_tests.support.whole import few

INDIVIDUAL, TRANSACTED = AckMode.INDIVIDUAL_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED


@pytest.fixture
def broker(lent: Lent[RabbitMq]) -> RabbitMq:
    return lent(RabbitMq)


class Run:
    """Clients of one kind in one mode, and their history."""

    def __init__(self, broker: RabbitMq, folder: Path, kind: str, mode: AckMode, consumption: Consumption) -> None:
        self.broker, self.kind, self.mode = broker, kind, mode
        self.pair = driven(kind, "rabbitmq")
        self.folder, self.log = folder / "clients", folder / "log"
        self.folder.mkdir()
        self.queue = f"{kind}-{folder.name}"
        self.config = self.pair.header(mode, consumption)
        self.nemesis = Recorder(self.folder / "nemesis.jsonl", "nemesis", config=self.config, monotonic=True)
        self._open = ExitStack()
        broker.declare(self.queue)  # by the broker itself, whose kill would else take the name of a queue with it
        self.declare()

    def declare(self) -> int:
        """Make the queue; return how many messages are in it."""
        with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.broker.ports["amqp"])) as connection:
            found = connection.channel().queue_declare(self.queue, durable=True)
            return int(found.method.message_count)

    def client(self, name: str, *sessions: str, **settings: object) -> Client:
        """A client with these sessions."""
        client = self._open.enter_context(Client(name, python_worker(self.kind), self.log))
        port = self.broker.ports[self.pair.protocol]
        history, settings = self.folder / f"{name}.jsonl", {**self.pair.open, **settings}
        opened = client.connect(port, history, self.config, settings, within=60)
        assert opened["library"].split()[1][0].isdigit()
        for session in sessions:
            client.call("session", session=session, ack_mode=self.mode)
        return client

    def send(self, client: Client, *messages: str, session: str = "s") -> list[str]:
        """Return the outcome of each send."""
        return [
            client.call("send", session=session, destination=self.queue, message=message)["outcome"]
            for message in messages
        ]

    def consume(self, client: Client, *, listener: bool = False, session: str = "s") -> None:
        """Open the consumer ``c``."""
        client.call("consumer", session=session, consumer="c", destination=self.queue, listener=listener)

    def crash(self, client: Client) -> None:
        """Kill a client, and write that down."""
        for process in client.processes:
            self.nemesis.fault("consumer_crash", victim=process)
        client.kill()
        for process in client.processes:
            self.nemesis.recovered("consumer_crash", victim=process)

    def stop(self) -> None:
        """End all clients."""
        self._open.close()
        self.nemesis.close()

    def verdict(self) -> Judged:
        """End all clients, see that the queue is empty, and judge the history."""
        self._open.close()
        until(lambda: self.declare() == 0, "the queue is empty", 10)
        self.nemesis.drained(self.queue)
        return judged(self.folder)

    def told(self, client: str, message: str) -> list[str]:
        """What a client's file tells of a message."""
        return shape(self.folder / f"{client}.jsonl", message)


Runs = Callable[..., Run]


@pytest.fixture
def begin(broker: RabbitMq, tmp_path: Path) -> Iterator[Runs]:
    """Begins a run, and ends its clients."""
    with ExitStack() as stack:

        def begun(kind: str, mode: AckMode = INDIVIDUAL, consumption: Consumption = Consumption.RECEIVE) -> Run:
            run = Run(broker, tmp_path, kind, mode, consumption)
            stack.callback(run.stop)
            return run

        yield begun


def _receive(client: Client, timeout: float = 5) -> Answer:
    return client.call("receive", session="s", consumer="c", timeout=timeout)


def _handed(message: str | None, *, redelivered: bool = False) -> dict[str, Any]:
    return {"message": message, "redelivered": redelivered, "delivery_count": None}


def _valid(found: Judged) -> dict[str, int | None]:
    """The anomalies that a valid history has."""
    assert (found.verdict, found.reasons, found.unread) == ("valid", (), 0)
    return found.counts


@pytest.mark.parametrize("kind", LIBRARIES)
def test_messages_are_sent_received_acknowledged_and_given_back(begin: Runs, kind: str) -> None:
    run = begin(kind)
    client = run.client("c1", "s")
    assert run.send(client, "m0", "m1", "m2") == ["confirmed"] * 3
    run.consume(client)
    assert [_receive(client), _receive(client)] == [_handed("m0"), _handed("m1")]
    assert client.call("acknowledge", session="s", message="m1") == {"outcome": "sent"}
    assert client.call("settle", session="s", message="m0", outcome="released") == {}
    rest = [_receive(client) for _ in range(2)]
    assert sorted(rest, key=lambda each: str(each["message"])) == [_handed("m0", redelivered=True), _handed("m2")]
    assert client.call("settle", session="s", message="m2", outcome="rejected") == {}
    assert client.call("acknowledge", session="s", message="m0") == {"outcome": "sent"}
    assert _receive(client, 0.2) == _handed(None)
    with pytest.raises(RefusedError, match="does not hold the message 'm0'"):
        client.call("acknowledge", session="s", message="m0")
    client.call("close", session="s")
    with pytest.raises(ClosedError):
        _receive(client)
    assert _valid(run.verdict()) == {"duplicate": 1, "reprocessed": 1}
    assert run.told("c1", "m1") == ["send", "confirmed", "delivered", "processed", "acknowledge message"]
    assert run.told("c1", "m2")[-2:] == ["failed", "dead_lettered"]


@pytest.mark.parametrize("kind", ["amqp", "pika", "stomp"])
def test_transactions_commit_and_roll_back(begin: Runs, kind: str) -> None:
    run = begin(kind, TRANSACTED)
    client = run.client("c1", "s", "r")
    assert run.send(client, "m0") == ["sent"]
    client.call("rollback", session="s")
    assert run.send(client, "m1", "m2") == ["sent", "sent"]
    assert client.call("commit", session="s") == {"outcome": "committed"}
    client.call("consumer", session="r", consumer="c", destination=run.queue)
    ask: dict[str, Any] = {"session": "r", "consumer": "c", "timeout": 5}
    assert client.call("receive", **ask) == _handed("m1")
    assert client.call("acknowledge", session="r", message="m1") == {"outcome": "sent"}
    client.call("rollback", session="r")
    client.call("close", session="r")
    client.call("session", session="r", ack_mode=run.mode)
    client.call("consumer", session="r", consumer="c", destination=run.queue)
    assert client.call("receive", **ask) == _handed("m1", redelivered=True)
    assert client.call("receive", **ask)["message"] == "m2"
    assert client.call("commit", session="r") == {"outcome": "committed"}
    client.call("close")
    _valid(run.verdict())
    assert run.told("c1", "m0") == ["send"]
    ends = [
        line["event"] for line in events(run.folder / "c1.jsonl") if "transaction" in line and "message" not in line
    ]
    assert ends.count("committed") == 2
    assert ends.count("rolled_back") == 2


@pytest.mark.parametrize("kind", ["pika", "amqp"])
def test_what_a_listener_failed_with_is_acknowledged_by_no_commit_after_a_rollback(begin: Runs, kind: str) -> None:
    run = begin(kind, TRANSACTED, Consumption.LISTENER)
    client = run.client("c", "s")
    run.send(client, "m1")
    client.call("commit", session="s")
    run.consume(client, listener=True)
    assert client.call("listened", session="s", consumer="c", timeout=10) == _handed("m1")
    client.call("done", session="s", consumer="c", message="m1", failed=True)
    client.call("rollback", session="s")
    client.call("commit", session="s")
    client.kill()
    until(lambda: run.declare() == 1, "the message is in the queue again", 10)


@pytest.mark.parametrize("kind", ["amqp", "pika", "stomp"])
def test_a_listener_holds_a_message_until_it_is_done(begin: Runs, kind: str) -> None:
    run = begin(kind, consumption=Consumption.LISTENER)
    client = run.client("c1", "s")
    run.send(client, "m0", "m1")
    run.consume(client, listener=True)
    ask: dict[str, Any] = {"session": "s", "consumer": "c", "timeout": 5}
    assert client.call("listened", **ask) == _handed("m0")
    assert client.call("acknowledge", session="s", message="m0") == {"outcome": "sent"}
    with pytest.raises(RefusedError, match="holds a message"):
        client.call("listened", **ask)
    with pytest.raises(RefusedError, match="holds a message"):
        client.call("close", session="s")
    assert client.call("done", session="s", consumer="c", message="m0") == {}
    assert client.call("listened", **ask) == _handed("m1")
    assert client.call("done", session="s", consumer="c", message="m1", failed=True) == {}
    with pytest.raises(RefusedError, match="no listener"):
        client.call("done", session="s", consumer="c", message="m1")
    if kind == "stomp":  # nobody gives back for it what it failed with
        assert client.call("listened", **ask | {"timeout": 0.2}) == _handed(None)
        client.call("settle", session="s", message="m1", outcome="released")
    assert client.call("listened", **ask) == _handed("m1", redelivered=True)
    client.call("acknowledge", session="s", message="m1")
    client.call("done", session="s", consumer="c", message="m1")
    client.call("close")
    assert _valid(run.verdict()) == {"duplicate": 1}
    assert run.told("c1", "m1")[2:4] == ["delivered", "failed"]


@pytest.mark.parametrize("kind", LIBRARIES)
def test_a_client_is_killed(begin: Runs, kind: str) -> None:
    run = begin(kind)
    client, other = run.client("c1", "s"), run.client("c2", "s")
    run.send(other, "m0")
    run.consume(client)
    assert _receive(client) == _handed("m0")
    waiting = client.ask("receive", session="s", consumer="c", timeout=60)
    time.sleep(0.3)
    run.crash(client)
    assert isinstance(waiting.exception(1), ClosedError)
    assert not client.alive
    with pytest.raises(ClosedError, match="has ended"):
        client.call("commit", session="s")
    run.consume(other)
    assert _receive(other) == _handed("m0", redelivered=True)
    other.call("acknowledge", session="s", message="m0")
    other.call("close")
    assert _valid(run.verdict()).keys() <= {"duplicate", "reprocessed"}
    assert run.told("c1", "m0")[0] == "delivered"


@pytest.mark.parametrize("kind", few([*LIBRARIES], 2))
def test_the_broker_dies(begin: Runs, broker: RabbitMq, kind: str) -> None:
    run = begin(kind)
    client = run.client("c1", "s", "r")
    assert run.send(client, "m0") == ["confirmed"]
    client.call("consumer", session="r", consumer="c", destination=run.queue)
    ask: dict[str, Any] = {"session": "r", "consumer": "c"}
    assert client.call("receive", **ask, timeout=5) == _handed("m0")
    waiting = client.ask("receive", **ask, timeout=60)
    run.nemesis.fault("broker_kill")
    broker.kill()
    try:
        assert isinstance(waiting.exception(20), ClosedError)
        if kind != "stomp":  # stomp.py reads at once that its connection is lost
            assert run.send(client, "m1") == ["in_doubt"]
        with pytest.raises(ClosedError):
            run.send(client, "m2")
        with pytest.raises(DownError):
            client.call("session", session="n", ack_mode=run.mode)
        with pytest.raises(DownError):
            client.call("reopen")
    finally:
        broker.start()
    until(lambda: broker.depth(run.queue).ready > 0, "the queue is served")
    run.nemesis.recovered("broker_kill")
    client.call("reopen")
    with pytest.raises(ClosedError, match="no session"):
        _receive(client)
    client.call("session", session="s", ack_mode=run.mode)
    run.consume(client)
    assert _receive(client) == _handed("m0", redelivered=True)
    client.call("acknowledge", session="s", message="m0")
    client.call("close")
    assert "loss" not in _valid(run.verdict())


def test_sessions_run_at_once_and_what_cannot_be_is_refused(begin: Runs) -> None:
    run = begin("pika")
    client = run.client("c1", "s", "r")
    run.consume(client)
    long = client.ask("receive", session="s", consumer="c", timeout=30)
    after = client.ask("send", session="s", destination=run.queue, message="later")
    assert run.send(client, "m0", session="r") == ["confirmed"]
    assert long.result(5)["message"] == "m0"
    assert after.result(5) == {"outcome": "confirmed"}
    for operation, fields in (
        ("fly", {}),
        ("send", {"session": "s", "destination": "no such queue", "message": "m1"}),
        ("send", {"session": "s", "destination": run.queue}),
        ("send", {"session": "s", "destination": run.queue, "message": "m1", "asynchronous": True}),
        ("session", {"session": "n", "ack_mode": "NO_SUCH_MODE"}),
    ):
        with pytest.raises(RefusedError):
            client.call(operation, **fields)
    with pytest.raises(RefusedError, match="no queue 'none'"):
        client.call("consumer", session="r", consumer="d", destination="none", listener=True)
    with pytest.raises(ClosedError):
        run.send(client, "m1", session="r")
    assert client.call("close", session="s", consumer="c") == {}
    closed = [line for line in events(run.folder / "c1.jsonl") if line["event"] == "close" and "consumer" in line]
    assert [(line["queue"], line["process"]) for line in closed] == [(run.queue, "c1.s")]


def test_sends_of_stomp_are_answered_later(begin: Runs) -> None:
    run = begin("stomp")
    client = run.client("c1", "s")
    asked = [
        client.ask("send", session="s", destination=run.queue, message=f"m{number}", asynchronous=True)
        for number in range(20)
    ]
    assert [each.result(5)["outcome"] for each in asked] == ["confirmed"] * 20


def test_acknowledgements_of_stomp_are_answered_if_that_is_asked_for(begin: Runs) -> None:
    run = begin("stomp")
    client = run.client("c1", "s", ack_receipts=True)
    run.send(client, "m0")
    run.consume(client)
    _receive(client)
    assert client.call("acknowledge", session="s", message="m0") == {"outcome": "acknowledged"}
    assert run.told("c1", "m0")[-2:] == ["acknowledge message", "acknowledged message"]


def test_a_setting_that_there_is_not_is_refused(begin: Runs) -> None:
    with pytest.raises(RefusedError, match="no setting prefetch; there are username"):
        begin("pika").client("c1", "s", prefetch=1)


def test_a_client_that_does_not_answer_in_time_may_answer_later(begin: Runs) -> None:
    run = begin("pika")
    client = run.client("c1", "s")
    client.signal(signal.SIGSTOP)
    sent = client.ask("send", session="s", destination=run.queue, message="m0")
    with pytest.raises(TimedOutError, match="did not answer send"):
        client.call("send", within=0.2, session="s", destination=run.queue, message="m1")
    client.signal(signal.SIGCONT)
    assert sent.result(5) == {"outcome": "confirmed"}


PARENT = """
import sys, time
from pathlib import Path
from ackfsm.driving.live.clients.client import Client, python_worker
client = Client("c1", python_worker("pika"), Path(sys.argv[1]))
try:
    client.call("open", within=60, host="127.0.0.1", port=1, process="c1", history=sys.argv[2])
except Exception as error:
    print(client.pid, type(error).__name__, flush=True)
time.sleep(600)
"""


def test_a_client_ends_with_its_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path / "log"), str(tmp_path / "c1.jsonl")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(), text=True) as parent:
        assert parent.stdout is not None
        pid, said = parent.stdout.readline().split()
        assert said == "DownError"
        os.kill(int(pid), 0)
        parent.send_signal(signal.SIGKILL)
    until(lambda: not Path(f"/proc/{pid}").exists(), "the client has ended", 10)


def test_what_is_no_answer_does_not_reach_the_driver(tmp_path: Path) -> None:
    echo = (
        "import sys, json; n = json.loads(sys.stdin.readline())['id']; print(json.dumps({'id': n, 'error': 'closed'})"
    )
    torn = f"{echo}); sys.stdout.write('{{\"id\": 2, '); sys.stdout.flush()"
    with Client("c1", (sys.executable, "-c", torn), tmp_path / "log") as client:
        with pytest.raises(ClientError):
            client.call("open")
        with pytest.raises(ClosedError, match="has ended"):
            client.call("open")


def test_what_a_client_drives_is_a_configuration_of_the_tables() -> None:
    specification = tables.load()
    made = 0
    for pair in all_driven():
        for mode in pair.modes:
            for consumption in pair.consumptions:
                config = dict(pair.header(AckMode(mode), Consumption(consumption)))
                specification.configure(str(config.pop("profile")), config)
                json.dumps(config)
                made += 1
    assert made == 47
    with pytest.raises(InputError, match="pika with artemis is not driven; there are pika with rabbitmq"):
        driven("pika", "artemis")
    pair = driven("pika", "rabbitmq")
    assert pair.header(INDIVIDUAL, Consumption.RECEIVE, {"confirms": False})["send_mode"] == "unconfirmed"
    assert "send_mode" not in pair.header(TRANSACTED, Consumption.RECEIVE)
    with pytest.raises(InputError, match="pika has no confirms=maybe"):
        pair.header(INDIVIDUAL, Consumption.RECEIVE, {"confirms": "maybe"})
    with pytest.raises(InputError, match="proton has no SESSION_TRANSACTED"):
        driven("proton", "rabbitmq").header(TRANSACTED, Consumption.RECEIVE)
