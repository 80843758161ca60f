"""Does the proposed mapping load, import the same file, and say what it could not find?"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml

from ackfsm import cli, verify
from ackfsm.history.importing.guess import guess
from model_tests.support.commands import AS_PROMISED, UNDETERMINED, USAGE
from model_tests.support.places import DATA

ONE_EVENT_A_ROW = """timestamp,status,order_id,service,destination,redelivered
2026-03-01T10:00:00.000Z,SENT,o-1,shop,orders,
2026-03-01T10:00:00.100Z,PUBLISHED,o-2,shop,orders,
2026-03-01T10:00:01.000Z,RECEIVED,o-1,billing,orders,false
2026-03-01T10:00:01.500Z,ACKED,o-1,billing,orders,
2026-03-01T10:00:02.000Z,RECEIVED,o-2,billing,orders,true
"""
SEVERAL = """id;sent_at;received_at;acked_at;host
m-1;1772359200000;1772359200500;1772359201000;a
m-2;1772359201000;1772359201500;;b
"""


def round_trip(path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, int, dict[str, int]]:
    """The exit codes of the guess and of the import by it, and the events that were imported."""
    mapping, history = folder / "guessed.yaml", folder / "h.parquet"
    guessed = cli.main(["import", "--guess", str(path), "-o", str(mapping)])
    capsys.readouterr()
    code = cli.main(["import", "table", "--mapping", str(mapping), str(path), "-o", str(history), "--json"])
    out, error = capsys.readouterr()
    assert code in {AS_PROMISED, UNDETERMINED}, error
    assert len(verify.read(history).events) > 0
    return guessed, code, json.loads(out)["events"]


EVENTS = {"send": 2, "delivered": 2, "acknowledge": 1}


@pytest.mark.parametrize("form", ["csv", "csv.gz", "tsv", "jsonl", "parquet"])
def test_the_mapping_of_a_log_imports_it(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"log.{form}"
    table = pyarrow.csv.read_csv(pa.BufferReader(ONE_EVENT_A_ROW.encode()))
    match form:
        case "parquet":
            pq.write_table(table, path)
        case "jsonl":
            rows = [line.split(",") for line in ONE_EVENT_A_ROW.splitlines()]
            path.write_text(
                "".join(json.dumps({"log": dict(zip(rows[0], row, strict=True))}) + "\n" for row in rows[1:]), "utf-8"
            )
        case "tsv":
            path.write_text(ONE_EVENT_A_ROW.replace(",", "\t"), encoding="utf-8")
        case _:
            data = ONE_EVENT_A_ROW.encode()
            path.write_bytes(gzip.compress(data) if form.endswith("gz") else data)
    assert round_trip(path, tmp_path, capsys) == (AS_PROMISED, AS_PROMISED, EVENTS)
    history = verify.read(tmp_path / "h.parquet")
    assert sorted(history.events.names["message"].to_pylist()) == ["o-1", "o-2"]
    assert sorted(history.events.names["process"].to_pylist()) == ["billing", "shop"]
    assert history.events.names["queue"].to_pylist() == ["orders"]
    assert history.events.redelivered.tolist() == [-1, -1, 0, -1, 1]


def test_columns_of_times_become_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "orders.csv").write_text(SEVERAL, encoding="utf-8")
    found = round_trip(tmp_path / "orders.csv", tmp_path, capsys)
    assert found == (UNDETERMINED, AS_PROMISED, EVENTS)
    mapping = yaml.safe_load((tmp_path / "guessed.yaml").read_text(encoding="utf-8"))
    assert mapping["csv"] == {"delimiter": ";"}
    assert [row["time"]["column"] for row in mapping["rows"]] == ["sent_at", "received_at", "acked_at"]
    assert {row["time"]["unit"] for row in mapping["rows"]} == {"ms"}


@pytest.mark.parametrize(
    ("text", "unit"),
    [("1772359200", "s"), ("1772359200123", "ms"), ("1772359200123456", "us"), ("1772359200123456789", "ns")],
)
def test_the_unit_of_numbers_is_that_of_this_century(text: str, unit: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"time,event,id,host\n{text},sent,m1,a\n{text},got,m1,b\n", encoding="utf-8")
    assert yaml.safe_load(guess(tmp_path / "t.csv").text)["time"] == {"column": "time", "unit": unit}


WORDS = {
    "those of the format itself": {"in_doubt": "in_doubt", "depth": "depth"},
    "more beside the name of an event": {
        "basic.publish": "send",
        "publish_ok": "confirmed",
        "MessageReceived": "delivered",
        "onMsgDone": "processed",
    },
    "a call and its answer": {"acknowledge": "acknowledge", "acknowledged": "acknowledged"},
}


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS.keys())
def test_words_of_events_are_known(words: dict[str, str], tmp_path: Path) -> None:
    rows = "".join(f"{1772359200 + place},{word},m1\n" for place, word in enumerate(words))
    (tmp_path / "t.csv").write_text(f"ts,event,message\n{rows}", encoding="utf-8")
    assert yaml.safe_load(guess(tmp_path / "t.csv").text)["event"]["values"] == words


def test_columns_may_have_short_names(tmp_path: Path) -> None:
    rows = "1772359200,sent,m1,a,c1,\n1772359201,got,m1,b,c2,false\n"
    (tmp_path / "t.csv").write_text(f"ts,what,msg_id,host,conn,redeliv\n{rows}", encoding="utf-8")
    found = yaml.safe_load(guess(tmp_path / "t.csv").text)
    assert {key: found[key] for key in ("process", "session", "redelivered")} == {
        "process": "host",
        "session": "conn",
        "redelivered": "redeliv",
    }


def test_what_is_not_found_is_said_and_makes_another_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "x,y\n" * 20, encoding="utf-8")
    assert cli.main(["import", "--guess", str(path)]) == UNDETERMINED
    text = capsys.readouterr().out
    for what in (
        "no column of times",
        "no column of events",
        "no column of message ids",
        "no column says which client",
    ):
        assert f"# Not found: {what}" in text
    assert "# Columns that are not used: a, b" in text
    assert cli.main(["import", "--guess", str(path), "--json"]) == UNDETERMINED
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["not_found"]) == 5
    assert cli.main(["import", "--guess", str(path), "--json", "-o", str(tmp_path / "m.yaml")]) == UNDETERMINED
    written = json.loads(capsys.readouterr().out)
    assert written == {"not_found": answer["not_found"], "written": [str(tmp_path / "m.yaml")]}


def test_what_is_no_csv_is_refused_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"ts,event,id\n1,send," + b"x" * 140_000 + b"\n" + b"2,send,m\n" * 1_500)
    assert cli.main(["import", "--guess", str(path)]) == USAGE
    error = capsys.readouterr().err
    assert f"{path}:2: it cannot be read as CSV (field larger than field limit (131072)); correct the line" in error


def test_lines_may_end_as_they_like(tmp_path: Path) -> None:
    for end in ("\n", "\r\n", "\r"):
        (tmp_path / "t.csv").write_bytes(ONE_EVENT_A_ROW.replace("\n", end).encode())
        assert guess(tmp_path / "t.csv").not_found == ()


def test_a_word_that_is_not_known_is_left_unread_and_not_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(ONE_EVENT_A_ROW + "2026-03-01T10:00:03Z,FROBBED,o-1,billing,orders,\n", encoding="utf-8")
    assert round_trip(path, tmp_path, capsys) == (UNDETERMINED, UNDETERMINED, EVENTS)
    assert 'what "FROBBED" in the column "status" means' in (tmp_path / "guessed.yaml").read_text(encoding="utf-8")


def test_a_proposal_cannot_be_made_to_say_more_by_names_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('"x\nack: y",ts,status,id,host\n1,1772359200,sent,m1,a\n', encoding="utf-8")
    assert set(yaml.safe_load(guess(path).text)) == {"ackfsm_mapping", "input", "time", "event", "message", "process"}


@pytest.mark.parametrize("word", ["ACKED", "basic_ack", "acknowledged", "Settled"])
def test_an_acknowledgement_of_an_application_is_the_call_alone(word: str, tmp_path: Path) -> None:
    """An application that says so has called; whether a broker has answered only a call that waits can tell."""
    path = tmp_path / "log.csv"
    path.write_text(ONE_EVENT_A_ROW.replace("ACKED", word), encoding="utf-8")
    text = guess(path).text
    assert yaml.safe_load(text)["event"]["values"][word] == "acknowledge"
    assert "write [acknowledge, acknowledged]" in text


SAMPLES = {
    "activemq.log": "activemq",
    "artemis-audit.log": "artemis",
    "artemis.log": "artemis",
    "jepsen-queue.edn": "jepsen",
    "orders-firehose.jsonl": "rabbitmq-firehose",
    "orders-otlp.jsonl": "otlp",
    "orders-tracing-json.log": "rabbitmq-tracing",
    "orders-tracing.log": "rabbitmq-tracing",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_format_that_is_known_is_named(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress((DATA / "imports" / name).read_bytes()))
    for path in (DATA / "imports" / name, packed):
        assert cli.main(["import", "--guess", str(path)]) == USAGE
        told = capsys.readouterr().err
        assert f"is {SAMPLES[name]} and needs no mapping; ackfsm import {SAMPLES[name]} FILE -o HISTORY" in told


TEXT, ARRAY = (
    "is text and no table; write a mapping with `input: lines`",
    "is one JSON array; write one object a line: jq",
)
NO_TABLES = {
    "[2026-03-01 10:00:00] INFO published o-1\n[2026-03-01 10:00:01] INFO received o-1\n": TEXT,
    "[0x55d0:0] <- @transfer(20) [handle=0, delivery-id=0]\n[0x55d0:0] -> @disposition(21) [role=true]\n": TEXT,
    "{thread-1} published o-1\n{thread-2} received o-1\n": TEXT,
    "[INFO] one\n": TEXT,
    '[{"a": 1}, {"a": 2}]': ARRAY,
    '[\n  {\n    "a": 1\n  }\n]\n': ARRAY,
    "[]": ARRAY,
    '{"ackfsm_history": 1}\n': "is a history as it is; ackfsm verify FILE",
}


@pytest.mark.parametrize(("text", "said"), NO_TABLES.items(), ids=range(len(NO_TABLES)))
def test_what_is_no_table_is_said_to_be_what_it_is(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "app.log"
    path.write_text(text, encoding="utf-8")
    assert cli.main(["import", "--guess", str(path)]) == USAGE
    told = capsys.readouterr().err
    assert said in told
    assert ("jq" in told) is (said is ARRAY)


LEVELS = """time,log.level,svc,action,order_id,rk
2026-03-01T09:00:00Z,INFO,shop,{}PUBLISHED,o1,orders
2026-03-01T09:00:01Z,INFO,billing,{}RECEIVED,o1,orders
2026-03-01T09:00:02Z,{},billing,{}DONE,o1,orders
"""


@pytest.mark.parametrize("last", ["INFO", "ERROR", "WARN"])
def test_a_level_of_a_log_is_no_event(last: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "app.csv"
    path.write_text(LEVELS.format("", "", last, ""), encoding="utf-8")
    found = yaml.safe_load(guess(path).text)
    assert found["event"]["column"] == "action"
    assert (found["process"], found["queue"]) == ("svc", "rk")
    path.write_text(LEVELS.format("W", "X", last, "Y"), encoding="utf-8")
    assert "no column of events: say which one, and what its words mean" in guess(path).not_found
    assert cli.main(["import", "--guess", str(path)]) == UNDETERMINED
    capsys.readouterr()


def test_a_column_of_which_most_is_ignored_is_taken_where_it_has_events(tmp_path: Path) -> None:
    path = tmp_path / "app.csv"
    path.write_text(ONE_EVENT_A_ROW + "2026-03-01T10:00:03Z,HEARTBEAT,,,,\n" * 40, encoding="utf-8")
    values = yaml.safe_load(guess(path).text)["event"]["values"]
    assert (values["HEARTBEAT"], values["SENT"]) == ("ignore", "send")


def test_a_mapping_that_ignores_every_row_is_said_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, mapping = tmp_path / "app.csv", tmp_path / "m.yaml"
    path.write_text(LEVELS.format("", "", "INFO", ""), encoding="utf-8")
    mapping.write_text(
        "ackfsm_mapping: 1\ntime: {column: time, format: iso}\nprocess: svc\nmessage: order_id\n"
        "event: {column: log.level, values: {INFO: ignore}}\n",
        encoding="utf-8",
    )
    code = cli.main(["import", "table", "--mapping", str(mapping), str(path), "-o", str(tmp_path / "h.parquet")])
    assert code == USAGE
    assert "there is no event in " in (told := capsys.readouterr().err)
    assert "3 records were left out" in told
