"""Are RabbitMQ's firehose and the log of its tracing plugin read as what the broker took and sent?"""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackfsm.history.importing.rabbitmq import _table, _time
from ackfsm.terms import InputError
from model_tests.support.importing import SAMPLES, events, imported

RECORDED = [
    json.loads(line) for line in (SAMPLES / "orders-history.jsonl").read_text(encoding="utf-8").splitlines()[1:]
]
LOGS = {
    "orders-firehose.jsonl": "rabbitmq-firehose",
    "orders-tracing.log": "rabbitmq-tracing",
    "orders-tracing-json.log": "rabbitmq-tracing",
}


@pytest.mark.parametrize("name", LOGS)
def test_the_broker_tells_what_its_clients_recorded_of_the_same_run(name: str) -> None:
    rows, problems = imported(LOGS[name], SAMPLES / name)
    fields = ("event", "message", "queue", "redelivered", "delivery_mode")
    both = [row for row in RECORDED if row["event"] in {"send", "delivered"}]
    assert collections.Counter(events(rows, *fields)) == collections.Counter(events(both, *fields))
    assert len({row["process"] for row in rows}) == len({row["process"] for row in both}) == 3
    assert not problems.count
    sent = {row["message"]: row["t"] for row in both if row["event"] == "send"}
    late = [row["t"] - sent[row["message"]] for row in rows if row["event"] == "send"]
    assert min(late) >= -1_000_000
    assert max(late) < 50_000_000


def firehose(tmp_path: Path, *records: Any) -> Any:
    path = tmp_path / "firehose.jsonl"
    path.write_text(
        "\n".join(each if isinstance(each, str) else json.dumps(each) for each in records), encoding="utf-8"
    )
    return imported("rabbitmq-firehose", path)


def record(
    key: str, exchange: str = "", t: int | None = 1, message: str | None = "m", **headers: Any
) -> dict[str, Any]:
    properties = {} if message is None else {"message_id": message}
    made = {"exchange_name": exchange, "properties": properties, "connection": "a:1 -> b:2", "channel": 3, **headers}
    return {"routing_key": key, "headers": made, **({} if t is None else {"t": t})}


def test_a_message_in_several_queues_is_one_in_each(tmp_path: Path) -> None:
    rows, problems = firehose(
        tmp_path,
        record("publish.logs", "logs", routed_queues=["q1", "q2"]),
        record("deliver.q1", "logs", t=2, redelivered=0),
        record("deliver.q2", "logs", t=3, redelivered=1),
        record("publish.logs", "logs", t=4, routed_queues=["q1"]),
        record("publish.logs", "logs", t=5, routed_queues=[]),
        record("deliver.q3", "logs", t=6, redelivered=0),
    )
    assert events(rows, "event", "message", "queue", "redelivered") == [
        ("send", "m@q1", "q1", None),
        ("send", "m@q2", "q2", None),
        ("delivered", "m@q1", "q1", False),
        ("delivered", "m@q2", "q2", True),
        ("resend", "m@q1", "q1", None),
        ("delivered", "m@q3", "q3", False),
    ]
    assert {row["process"] for row in rows} == {"a:1/3"}
    assert problems.all_left_out() == {"messages that were routed to no queue": 1}
    assert problems.all_not_shown()["send"].startswith("1 of the messages that were delivered")


def test_records_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    bad = [
        "{",
        "[]",
        {"t": 1, "routing_key": "publish."},
        record("ack.q"),
        record("deliver.q", t=None),
        record("deliver.q", t=-1),
        record("deliver.q", message=None),
        {**record("deliver.q", t=None), "timestamp": "soon"},
        {**record("publish.", routed_queues=[1])},
    ]
    rows, problems = firehose(tmp_path, record("deliver.q"), *bad)
    assert len(rows) == 1
    assert problems.count == len(bad)
    lines = sorted(int(place.split()[-1]) for each in problems.reasons() for place in each.places)
    assert lines == list(range(2, 2 + len(bad)))


@pytest.mark.parametrize("name", sorted({*LOGS.values()}))
@pytest.mark.parametrize("text", ["", "hello", "{}", "\n\n"])
def test_what_is_no_log_is_refused_in_one_sentence(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.log"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"trace\.log has no record that can be read") as refused:
        imported(name, path)
    assert "\n" not in str(refused.value)


def test_a_payload_that_looks_like_a_rule_is_a_payload(tmp_path: Path) -> None:
    """A record begins with a rule and a line with a time; a log that was cut tells so."""
    log = tmp_path / "tracing.log"
    text = (SAMPLES / "orders-tracing.log").read_text(encoding="utf-8")
    whole = imported("rabbitmq-tracing", SAMPLES / "orders-tracing.log")[0]
    log.write_text(text.replace("Payload: \n0\n", f"Payload: \n{'=' * 80}\nNode: x\n\nQueue: y\n{'=' * 80}\n"))
    assert imported("rabbitmq-tracing", log)[0] == whole
    cut = text[: text.rindex("Payload:")]
    log.write_text(cut, encoding="utf-8")
    rows, problems = imported("rabbitmq-tracing", log)
    assert rows == whole[:-1]
    assert [str(each).partition(" (")[0] for each in problems.reasons()] == ["a record that ends before its payload"]


@pytest.mark.parametrize(
    ("text", "t"),
    [
        ("1970-01-01T00:00:01.5+00:00", 1_500_000_000),
        ("1970-01-01T01:00:01.500+01:00", 1_500_000_000),
        ("1970-01-01 0:00:01:500", 1_500_000_000),
        ("1970-01-01 00:00:01", 1_000_000_000),
    ],
)
def test_times_of_all_versions_are_read(text: str, t: int) -> None:
    assert _time(text) == t


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=12))
def test_an_id_in_a_term_of_erlang_is_the_same(name: str) -> None:
    """As ``~tp`` prints it: in quotes, or as bytes; what is deeper in the term is not the message's own."""
    quotes = name.replace("\\", "\\\\").replace('"', '\\"')
    numbers = ",".join(map(str, name.encode()))
    for printed in (f'<<"{quotes}"/utf8>>', f"<<{numbers}>>"):
        deeper = '{<<"headers">>,table,\n [{<<"message_id">>,longstr,<<"x">>}]}'
        own = f'{{<<"message_id">>,longstr,\n  {printed}}},{{<<"delivery_mode">>,signedint,2}}'
        for term in (f"[{own},\n {deeper}]", f"[{deeper},\n {own}]"):
            assert _table(term) == {"message_id": name, "delivery_mode": 2}
