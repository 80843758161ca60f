"""A broker that somebody else has started: driven at its address, left as it was, and never stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ackfsm.cli import main
from ackfsm.driving.live.brokers import BROKERS, RUNNING, Address, LiveBroker
from ackfsm.driving.live.clients.drivers import drivers
from ackfsm.terms import HostError, InputError
from model_tests.support.brokers import Lent
from model_tests.support.whole import before_a_release


@pytest.fixture(params=RUNNING)
def started(request: pytest.FixtureRequest, lent: Lent[LiveBroker]) -> LiveBroker:
    return lent(BROKERS[request.param])


def url(broker: LiveBroker, user: str = "guest:guest") -> str:
    return f"amqp://{user}@127.0.0.1:{broker.ports['amqp1']}"


def test_it_is_driven_where_it_is_and_its_queues_are_removed(
    started: LiveBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--client", "proton", "--ack-mode", "INDIVIDUAL_ACKNOWLEDGE", "--runs", "1", "--seconds", "1"]
    output = ["--fault", "consumer_link_loss", "--output", str(tmp_path / "o"), "--json"]
    code = main(["live", started.name, "--url", url(started), *words, *output])
    found = json.loads(capsys.readouterr().out)
    assert (code, found["verdict"], found["counts"]["ok"]) == (0, "valid", 1)
    assert found["version"].startswith(started.version)
    lines = "".join(path.read_text("utf-8") for path in (tmp_path / "o").rglob("client-*.jsonl")).splitlines()
    queues = {line["queue"] for line in map(json.loads, lines) if "queue" in line}
    assert len(queues) > 1
    assert all(queue.startswith("ackfsm-") for queue in queues)
    broker = RUNNING[started.name](Address.of(url(started)), {})
    for queue in queues:
        with pytest.raises(HostError, match=queue):
            broker.depth(queue)


@before_a_release
def test_a_load_is_driven_there_too(started: LiveBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--client", "proton", "--ack-mode", "INDIVIDUAL_ACKNOWLEDGE", "--fault", "none", "--rate", "50"]
    output = ["--seconds", "2", "--output", str(tmp_path / "o"), "--json"]
    assert main(["live", started.name, "--url", url(started), *words, *output]) == 0
    (client,) = json.loads(capsys.readouterr().out)["clients"]
    assert [cell["status"] for cell in client["cells"]] == ["ok"]


@pytest.mark.parametrize("trouble", ["broker_kill", "journal_failure", "pause", "restart"])
def test_nothing_stops_it(trouble: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["live", "rabbitmq", "--url", "amqp://host", "--fault", trouble, "--output", str(tmp_path / "o")]
    assert main(words) == 2
    said = "rabbitmq at host:5672 was started by somebody else, and is not stopped; leave out --fault"
    assert capsys.readouterr().err == f"ackfsm live: {said} {trouble}\n"


@pytest.mark.parametrize("broker", sorted({*BROKERS} - {*RUNNING}))
def test_of_others_one_is_told_that_they_are_started(
    broker: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["live", broker, "--url", "amqp://host", "--output", str(tmp_path / "o")]) == 2
    assert "leave out --url" in capsys.readouterr().err


@pytest.mark.parametrize("started", ["rabbitmq"], indirect=True)  # the Artemis that is started here lets in everybody
def test_who_may_not_connect_is_told_so_in_a_sentence(started: LiveBroker) -> None:
    with pytest.raises(HostError, match=r"^rabbitmq at 127\.0\.0\.1:\d+ does not do what it is asked: .*refused"):
        RUNNING[started.name](Address.of(url(started, "guest:wrong")), {}).declare("q")


@pytest.mark.parametrize("started", ["rabbitmq"], indirect=True)
def test_dead_letters_go_with_their_queue(started: LiveBroker) -> None:
    broker = RUNNING[started.name](Address.of(url(started)), {"x-dead-letter-exchange": ""})
    broker.declare("owned")
    assert broker.depth("owned-dead").ready == 0
    broker.over("owned")
    for queue in ("owned", "owned-dead"):
        with pytest.raises(HostError, match=queue):
            broker.depth(queue)


def test_where_nobody_listens_a_sentence_says_so() -> None:
    for kind in RUNNING.values():
        with pytest.raises(HostError, match=rf"^{kind.name} at 127\.0\.0\.1:1 does not do what it is asked: "):
            kind(Address.of("amqp://127.0.0.1:1"), {}).depth("q")


@pytest.mark.parametrize(
    ("told", "address"),
    [
        ("amqp://broker.example", ("broker.example", 5672, "guest", "guest", "/")),
        ("tcp://me:a%2Fb@10.0.0.7", ("10.0.0.7", 61616, "me", "a/b", "/")),
        ("amqp://u:p@[::1]:5673/%2Fown", ("::1", 5673, "u", "p", "/own")),
    ],
)
def test_an_address_is_read(told: str, address: tuple[object, ...]) -> None:
    assert Address.of(told) == Address(*address)  # type: ignore[arg-type]


def test_a_number_with_colons_is_told_from_its_port() -> None:
    assert str(Address.of("amqp://[::1]:5673")) == "[::1]:5673"


@pytest.mark.parametrize("told", ["host", "host:5672", "amqps://host", "amqp://", "amqp://host:port", "http://host"])
def test_another_url_is_refused(told: str) -> None:
    with pytest.raises(InputError, match=r"say amqp://USER:PASSWORD@HOST:PORT"):
        Address.of(told)


def test_each_client_is_told_who_it_is() -> None:
    address = Address("h", 1, "a b", "p&q", "/")
    logged_in = {each.client: each.at(address, RUNNING["artemis"].PORTS[0].split()) for each in drivers("artemis")}
    assert {name: [each.settings[key] for key in each.login[:2]] for name, each in logged_in.items()} == {
        "artemis": ["a%20b", "p%26q"],  # in a URL
        "qpid-jms": ["a%20b", "p%26q"],
        "proton": ["a b", "p&q"],
        "stomp": ["a b", "p&q"],
    }


def test_who_cannot_reach_it_is_left_out_with_the_reason() -> None:
    address = Address("h", 1, "u", "p", "/own")
    clients = {each.client: each.at(address, RUNNING["rabbitmq"].PORTS[0].split()) for each in drivers("rabbitmq")}
    assert clients["pika"].settings["virtual_host"] == "/own"
    assert clients["proton"].lacks() == "it reaches no virtual host but /"
    assert clients["stomp"].lacks() == "it speaks stomp, which is served at another port"
