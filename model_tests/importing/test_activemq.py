"""Are the logs of ActiveMQ Artemis and Classic read as what the broker took, sent and forgot?"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from ackfsm.terms import InputError
from model_tests.support.importing import SAMPLES, events, imported

LOGS = {"artemis.log": "artemis", "artemis-audit.log": "artemis", "activemq.log": "activemq"}


@pytest.mark.parametrize("name", LOGS)
def test_the_broker_tells_what_its_clients_did(name: str) -> None:
    """Eight sends; all go to a consumer that acknowledges two and breaks; the others go to another, flagged."""
    rows, problems = imported(LOGS[name], SAMPLES / name)
    sent = [row["message"] for row in rows if row["event"] == "send"]
    assert len({*sent}) == len(sent) == 8
    delivered = events([row for row in rows if row["event"] == "delivered"], "message", "redelivered", "process")
    first, second = delivered[0][2], delivered[-1][2]
    assert delivered == [*((each, False, first) for each in sent), *((each, True, second) for each in sent[2:])]
    assert first != second
    acknowledged = events([row for row in rows if row["event"] == "acknowledge"], "message", "process", "scope")
    assert acknowledged == [(each, first if i < 2 else second, "message") for i, each in enumerate(sent)]
    assert {row["queue"] for row in rows if row["event"] == "delivered"} == {"orders"}
    assert not problems.count
    steps = [key for key, _ in itertools.groupby(event for (event,) in events(rows, "event"))]
    assert steps[:2] == ["send", "delivered"]


def test_what_each_log_tells_of_the_end_of_sessions() -> None:
    artemis, _ = imported("artemis", SAMPLES / "artemis.log")
    closes = events([row for row in artemis if row["event"] == "close"], "error")
    assert sorted(closes, key=str) == [("connection failed",), (None,), (None,)]
    classic, _ = imported("activemq", SAMPLES / "activemq.log")
    assert sorted(row["process"] for row in classic if row["event"] == "close") == [
        "consumer-1",
        "consumer-2",
        "producer-1",
    ]
    assert {row["process"] for row in classic} == {"consumer-1", "consumer-2", "producer-1"}


def told(name: str, tmp_path: Path, *lines: str) -> Any:
    path = tmp_path / "broker.log"
    path.write_text("".join(f"2026-01-01 00:00:00,{n:03} INFO [x] {line}\n" for n, line in enumerate(lines)))
    return imported(name, path)


SENT = "AMQ841009: sent message with ID: 5, result: OK, transaction: UNAVAILABLE"


def test_the_lines_of_artemis(tmp_path: Path) -> None:
    rows, problems = told(
        "artemis",
        tmp_path,
        SENT,
        "AMQ841009: sent message with ID: 6, result: DUPLICATED_ID, transaction: UNAVAILABLE",
        "AMQ841009: sent message with ID: 7, result: NO_BINDINGS, transaction: UNAVAILABLE",
        "AMQ841017: error sending message with ID: 8, session name: s1, session connectionID: c, exception: E: full",
        "AMQ841012: delivered message with message ID: 5, to consumer on address: a, queue: q, consumer sessionID: s2,"
        " consumerID: 3",
        "AMQ841013: expired message: Reference[5]:RELIABLE:CoreMessage[messageID=5], messageExpiryAddress: E",
        "AMQ601500: User u@1.2.3.4:5 sent a message CoreMessage[messageID=5], context: x, transaction: null",
        "AMQ841012: delivered message with message ID: 9, to consumer on address: a, queue: q, consumer sessionID: s2,"
        " consumerID: 3",
        "AMQ221007: Server is now live",
    )
    assert events(rows, "t", "process", "event", "message", "error") == [
        (1767225600_000_000_000, "a client", "send", "5", None),
        (1767225600_003_000_000, "s1", "send", "8", None),
        (1767225600_003_000_000, "s1", "in_doubt", "8", "E: full"),
        (1767225600_004_000_000, "s2", "delivered", "5", None),
        (1767225600_005_000_000, "broker", "expired", "5", None),
        (1767225600_007_000_000, "s2", "delivered", "9", None),
    ]
    assert not problems.count
    assert sum(problems.all_left_out().values()) == 4
    assert problems.all_not_shown()["send"].startswith("1 of the messages")


def test_lines_of_artemis_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    delivery = (
        "AMQ841012: delivered message with message ID: 5, to consumer on address: a, queue: {}, consumer sessionID: s2,"
        " consumerID: 3"
    )
    rows, problems = told(
        "artemis",
        tmp_path,
        SENT,
        delivery.format("q1"),
        delivery.format("q2"),
        "AMQ841009: sent something else",
        "AMQ841014: acknowledged message: Reference[0], with transaction: null",
        "AMQ841014: acknowledged message: Reference[7]:CoreMessage[messageID=7], with transaction: null",
    )
    assert events(rows, "event") == [("send",), ("delivered",)]
    assert sorted(int(place.split()[-1]) for each in problems.reasons() for place in each.places) == [3, 4, 5, 6]


def classic_message(name: str, **fields: str) -> str:
    given = {"messageId": name, "producerId": "ID:h-1-2-1:1:1:1", "destination": "queue://q", "transactionId": "null"}
    given |= {"persistent": "false", "redeliveryCounter": "0", **fields, "text": "a, messageId = x}"}
    return f"ActiveMQTextMessage {{{', '.join(f'{key} = {value}' for key, value in given.items())}}}"


def test_the_lines_of_classic(tmp_path: Path) -> None:
    message, again = "ID:h-1-2-1:1:1:1:1", classic_message("ID:h-1-2-1:1:1:1:1", transactionId="TX:ID:h-1-2-1:1:7")
    rows, problems = told(
        "activemq",
        tmp_path,
        "Beginning transaction: TX:ID:h-1-2-1:1:7",
        f"Sending message: {again} | c | t",
        "Committing transaction: TX:ID:h-1-2-1:1:7",
        "Rolling back Transaction: TX:ID:h-1-2-1:1:8",
        f"preProcessDispatch: MessageDispatch {{consumerId = ID:h-1-2-1:2:1:1, destination = queue://q,"
        f" message = {classic_message(message)}, redeliveryCounter = 2}}",
        "preProcessDispatch: MessageDispatch {consumerId = ID:h-1-2-1:2:1:1, message = null, redeliveryCounter = 0}",
        "Acknowledging message for client ID: c2",
        f"Message count: 3, First Message Id: {message}, Last Message Id: {message}",
        f"Sending message: {classic_message(message)}",
        f"Message has expired: {classic_message(message)}",
        f"Sending to DLQ: {classic_message(message)}",
        "Acknowledging message for client ID: c2",
        "Preparing transaction: XID:1",
        "Some other line",
    )
    fields = ("process", "event", "message", "transaction", "scope", "delivery_count", "delivery_mode")
    assert events(rows, *fields) == [
        ("ID:h-1-2-1:1", "begin", None, "TX:ID:h-1-2-1:1:7", None, None, None),
        ("ID:h-1-2-1:1", "send", message, "TX:ID:h-1-2-1:1:7", None, None, "NON_PERSISTENT"),
        ("ID:h-1-2-1:1", "commit", None, "TX:ID:h-1-2-1:1:7", None, None, None),
        ("ID:h-1-2-1:1", "rollback", None, "TX:ID:h-1-2-1:1:8", None, None, None),
        ("ID:h-1-2-1:2", "delivered", message, None, None, 3, None),
        ("c2", "acknowledge", message, None, "up_to", None, None),
        ("ID:h-1-2-1:1", "resend", message, None, None, None, "NON_PERSISTENT"),
        ("broker", "expired", message, None, None, None, None),
        ("broker", "dead_lettered", message, None, None, None, None),
    ]
    places = [place.split()[-1] for each in problems.reasons() for place in each.places]
    assert sorted(places) == ["12", "13"]
    assert problems.all_left_out() == {"other lines of the log": 1}


@pytest.mark.parametrize("name", ["artemis", "activemq"])
@pytest.mark.parametrize("text", ["", "hello\n", "2026-01-01 00:00:00,000 INFO started\n", "2026-13-41 99:00:00 x\n"])
def test_what_is_no_log_is_refused_in_one_sentence(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "broker.log"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"broker\.log has no line of messages; it has to have lines") as refused:
        imported(name, path)
    assert "\n" not in str(refused.value)
