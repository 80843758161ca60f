"""Does the recording ConnectionFactory of the documents record what applications of a real JMS provider do?"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from ackfsm.driving.live import java
from ackfsm.driving.live.brokers import Artemis
from ackfsm.driving.live.brokers.artemis import JARS
from model_tests.support.brokers import had, running
from model_tests.support.places import PROJECT
from model_tests.support.recorder.judged import events, judged

FACTORY = PROJECT / "docs" / "java" / "RecordingConnectionFactory.java"
SCENARIOS = PROJECT / "model_tests" / "support" / "recorder" / "java" / "Scenarios.java"
QUEUES = ["client", "listener", "transacted", "individual", "forwarded", "completion", "broken"]


@pytest.fixture(scope="session")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the histories that the scenarios have written."""
    folder = tmp_path_factory.mktemp("jms")
    logging = folder / "log4j2.properties"
    logging.write_text("rootLogger.level = off\n", encoding="utf-8")
    with running(Artemis, {"journal-file-size": "1M"}) as broker, (folder / "errors").open("w+") as errors:
        with had():
            classes = java.compiled([FACTORY, SCENARIOS], f"{java.jars(JARS)}/*")
        for queue in QUEUES:
            broker.declare(queue)
        options = [*java.OPTIONS, f"-Dlog4j2.configurationFile={logging.as_uri()}", "-cp", classes]
        command = ["java", *options, "Scenarios", f"tcp://127.0.0.1:{broker.ports['core']}", str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as scenarios:
            assert scenarios.stdout is not None
            if scenarios.stdout.readline():
                broker.stop()
        errors.seek(0)
        assert scenarios.returncode == 0, errors.read()
    return folder


SENT = ["send", "confirmed"]
DONE = ["delivered", "processed"]
AGAIN = ["delivered redelivered", "processed"]
TOLD: dict[str, list[list[str]]] = {
    "client": [[*SENT, *DONE], [*SENT, *DONE, *AGAIN], [*SENT, *DONE], [*SENT, *DONE]],
    "listener": [
        [*SENT, *DONE, "acknowledge"],
        [*SENT, "delivered", "failed", *AGAIN, "acknowledge"],
        [*SENT, *DONE, "acknowledge"],
    ],
    "transacted": [["send", *DONE, *AGAIN], ["send", *DONE, *AGAIN], ["send"]],
    "individual": [[*SENT, *DONE, "acknowledge", "acknowledged"] for _ in range(4)],
    "completion": [[*SENT, *DONE], [*SENT, *DONE]],
    "broken": [SENT],
}
# The client refuses the send on a lost connection, or tries it: its ExceptionListener runs before its producers close.
IN_DOUBT = ["send", "in_doubt"]


@pytest.mark.parametrize("name", TOLD)
def test_each_message_is_told_as_it_went(histories: Path, name: str) -> None:
    told: dict[str, list[str]] = {}
    for line in events(histories / f"{name}.jsonl"):
        if "message" in line:
            told.setdefault(line["message"], []).append(_word(line))
    assert [lines for lines in told.values() if lines != IN_DOUBT] == TOLD[name]


def _word(line: dict[str, Any]) -> str:
    return f"{line['event']} redelivered" if line.get("redelivered") else line["event"]


COUNTS = {"client": {"duplicate": 1, "reprocessed": 1}, "listener": {"duplicate": 1}}
COUNTS |= {"transacted": {"duplicate": 2, "reprocessed": 2}, "individual": {}, "completion": {}}


@pytest.mark.parametrize("name", COUNTS)
def test_what_the_provider_did_is_valid(histories: Path, name: str) -> None:
    found = judged(histories / f"{name}.jsonl")
    assert (found.verdict, found.reasons, found.counts, found.unread) == ("valid", (), COUNTS[name], 0)


def test_sessions_tell_what_they_do(histories: Path) -> None:
    client = [line["event"] for line in events(histories / "client.jsonl") if "message" not in line]
    assert client == [
        *("close", "acknowledge", "acknowledged", "recover", "acknowledge", "acknowledged", "close", "drained"),
    ]
    transacted = [line for line in events(histories / "transacted.jsonl") if "transaction" in line]
    ends = [line["event"] for line in transacted if "message" not in line]
    assert ends == [
        *("begin", "commit", "committed", "begin", "rollback", "rolled_back"),
        *("begin", "rollback", "rolled_back", "begin", "commit", "committed"),
    ]
    assert [line["delivery_count"] for line in transacted if line["event"] == "delivered"] == [1, 1, 2, 2]


def test_a_connection_that_breaks_is_told(histories: Path) -> None:
    lines = [line for line in events(histories / "broken.jsonl") if line["process"] == "app"]
    assert [line["event"] for line in lines] in ([*SENT, "close"], [*SENT, "close", *IN_DOUBT])
    assert "error" in lines[2]
    assert lines[0]["t"] > 1_700_000_000 * 10**9
