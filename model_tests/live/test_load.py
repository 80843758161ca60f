"""Load: clients work at once while faults strike, and what they recorded is one history with a verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ackfsm.cli import main
from ackfsm.driving.conform import Status
from ackfsm.driving.live.brokers import BROKERS, LiveBroker
from ackfsm.driving.live.clients.drivers import Driver, drivers
from ackfsm.terms import AckMode, Consumption, InputError
from model_tests.support.brokers import Lent, driven_by
from model_tests.support.recorder.judged import judged
from model_tests.support.tools import missing

_LOAD = ["rabbitmq", "--client", "pika", "--consumption", "receive", "--rate", "150", "--seconds", "4"]


def test_clients_that_work_at_once_are_judged_by_their_own_histories(
    tmp_path: Path, lent: Lent[LiveBroker], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    driven_by(monkeypatch, lent(BROKERS["rabbitmq"]))
    words = [*_LOAD, "--ack-mode", "SESSION_TRANSACTED", "--fault", "consumer_crash", "--output", str(tmp_path / "l")]
    assert main(["live", *words, "--json"]) == 0
    (client,) = json.loads(capsys.readouterr().out)["clients"]
    (cell,) = (each for each in client["cells"] if each["status"] != Status.NOT_CLAIMED)
    assert (cell["status"], cell["struck"], cell["left"], client["rows"]) == (Status.OK, 1, 0, None)
    assert cell["sent"] > 150
    folder = Path(cell["folder"])
    assert {each.stem for each in folder.iterdir()} >= {"nemesis", "drainer-1-1", "drainer-2-1", "producer-2-1"}
    found = judged(folder)
    assert (found.verdict, found.messages, found.unread) == ("valid", cell["sent"], 0)
    assert {name: count for name, count in found.counts.items() if count} == cell["seen"]


def _only(broker: str, client: str, settings: dict[str, str], *, asynchronous: bool = False) -> Driver:
    return next(each for each in drivers(broker, settings, asynchronous=asynchronous) if each.client == client)


def test_a_client_takes_the_settings_that_it_has() -> None:
    mode = AckMode.CLIENT_ACKNOWLEDGE, Consumption.RECEIVE
    artemis = _only("artemis", "artemis", {"confirmationWindowSize": "1048576", "confirms": "false"}, asynchronous=True)
    assert artemis.settings["confirmationWindowSize"] == "1048576"
    assert "confirms" not in artemis.settings
    told = artemis.configured(*mode)
    assert (told["send_mode"], told["publish_window"]) == ("asynchronous", 2147483647)
    pika = _only("rabbitmq", "pika", {"confirms": "false", "prefetch_count": "5"})
    assert pika.settings == {"confirms": False, "prefetch_count": 5}
    told = pika.configured(*mode)
    assert (told["send_mode"], told["prefetch"]) == ("unconfirmed", 5)
    with pytest.raises(InputError, match="pika has no confirms=maybe"):
        _only("rabbitmq", "pika", {"confirms": "maybe"}).configured(*mode)


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        (["--clients", "2"], "say its --rate as well"),
        (["--rate", "9", "--window", "2", "--client", "pika"], "pika waits for the outcome of each send"),
        (["--set", "prefetch_cuont=1"], "did you mean prefetch_count"),
        (["--client", "proton", "--set", "prefetch_count=1"], "have no setting"),
    ],
)
def test_what_no_load_or_client_has_is_refused_with_a_remedy(
    wrong: list[str], remedy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if why := BROKERS["rabbitmq"].lacks():
        missing(why)
    assert main(["live", "rabbitmq", *wrong, "--output", str(tmp_path / "live")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert remedy in told.err
