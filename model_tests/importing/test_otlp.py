"""Are messaging spans imported as what their clients did, and is what they do not tell unknown?"""

from __future__ import annotations

import base64
import collections
import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from ackfsm import cli
from ackfsm.history.importing import Problems
from ackfsm.history.importing.otlp import Otlp
from ackfsm.terms import InputError
from model_tests.support.importing import SAMPLES, events, imported
from model_tests.support.whole import WHOLE

TRACE = SAMPLES / "orders-otlp.jsonl"
HISTORY = SAMPLES / "orders-history.jsonl"
TOLD = ("process", "event", "queue", "message", "redelivered", "scope")
_FIELDS = ("links", "parentSpanId", "traceState", "status")
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


def span(number: int, operation: str | None, start: int, end: int, kind: int = 1, **given: Any) -> dict[str, Any]:
    """A span as OTLP JSON has it; ``given`` are its fields, and attributes by names without ``messaging.``."""
    fields: dict[str, Any] = {key: given.pop(key) for key in _FIELDS if key in given}
    attributes: dict[str, Any] = {
        "messaging.system": "test",
        "messaging.operation.type": operation,
        "messaging.destination.name": "q",
    }
    attributes |= {name.replace("__", "."): value for name, value in given.items()}
    return {
        "traceId": TRACE_ID,
        "spanId": f"{number:016x}",
        "kind": kind,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(end),
        "attributes": [
            {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
            for key, value in attributes.items()
            if value is not None
        ],
        **fields,
    }


def message(name: str) -> dict[str, Any]:
    return {"messaging__message__id": name}


def link(number: int, **fields: Any) -> dict[str, Any]:
    return {"traceId": TRACE_ID, "spanId": f"{number:016x}", **fields}


def document(*spans: dict[str, Any]) -> dict[str, Any]:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}


@pytest.fixture
def told(tmp_path: Path) -> Any:
    """Imports spans that are in one document, and gives their events and what could not be read."""

    def of(*spans: dict[str, Any]) -> Any:
        path = tmp_path / "trace.json"
        path.write_text(json.dumps(document(*spans)), encoding="utf-8")
        return imported("otlp", path)

    return of


def test_a_trace_of_a_real_broker_tells_what_its_clients_recorded() -> None:
    rows, problems = imported("otlp", TRACE)
    recorded = [json.loads(line) for line in HISTORY.read_text(encoding="utf-8").splitlines()[1:]]
    both = [row for row in recorded if row["event"] not in {"drained", "close"}]
    assert len(recorded) == len(both) + 2
    assert collections.Counter(events(rows, *TOLD)) == collections.Counter(events(both, *TOLD))
    times = {(row["process"], row["event"], row["message"]): row["t"] for row in both}
    late = [abs(row["t"] - times[row["process"], row["event"], row["message"]]) for row in rows]
    assert max(late) < 5_000_000
    assert not problems.count


@pytest.mark.parametrize(("never", "code"), [((), 3), (("--never", "duplicate"), 1)])
def test_the_trace_and_the_history_of_the_same_run_give_the_same_verdict(
    never: tuple[str, ...], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The history without what no trace shows: that the connection broke, and that the queue was empty."""
    made = tmp_path / "trace.jsonl"
    assert cli.main(["import", "otlp", str(TRACE), "-o", str(made), "--json"]) == 0
    capsys.readouterr()
    first, *lines = HISTORY.read_text(encoding="utf-8").splitlines()
    head = {
        **json.loads(first),
        "cannot_show": json.loads(made.read_text(encoding="utf-8").splitlines()[0])["cannot_show"],
    }
    kept = [line for line in lines if json.loads(line)["event"] not in {"drained", "close"}]
    blind = tmp_path / "blind.jsonl"
    blind.write_text("\n".join([json.dumps(head), *kept]), encoding="utf-8")
    answers = []
    for path, options in ((made, ("--profile", "rabbitmq")), (blind, ())):
        assert cli.main(["verify", "--json", *options, *never, str(path)]) == code
        answers.append(json.loads(capsys.readouterr().out))
    trace, history = answers
    assert trace["verdict"] == history["verdict"]
    assert trace["anomalies"] == history["anomalies"]
    assert trace["anomalies"]["duplicate"]["count"] == 1


def test_what_each_operation_tells(told: Any) -> None:
    rows, problems = told(
        span(1, "send", 10, 20, 4, **message("a"), messaging__client__id="c1"),
        span(2, "send", 30, 40, 4, **message("b"), error__type="timeout", thread__id=7),
        span(3, "send", 50, 60, 4, **message("c"), error__type="nack"),
        span(4, "receive", 70, 80, 5, **message("a")),
        span(5, "process", 81, 90, 5, **message("a"), parentSpanId=f"{4:016x}"),
        span(6, "settle", 91, 92, 3, **message("a"), messaging__operation__name="ack"),
        span(7, "process", 100, 110, 5, **message("b"), status={"code": 2}),
        span(8, "settle", 111, 112, 3, **message("b"), messaging__operation__name="nack"),
        span(9, "process", 120, 130, 5, **message("b"), status={"code": "STATUS_CODE_OK"}),
        span(10, "settle", 131, 132, 3, **message("b"), messaging__operation__name="ack", error__type="closed"),
        span(11, "create", 133, 134, 4, **message("d")),
        {**span(12, None, 135, 136), "attributes": []},
    )
    assert events(rows, "t", "process", "event", "message", "redelivered", "error") == [
        (10, "shop/c1", "send", "a", None, None),
        (20, "shop/c1", "confirmed", "a", None, None),
        (30, "shop#7", "send", "b", None, None),
        (40, "shop#7", "in_doubt", "b", None, "timeout"),
        (50, "shop", "send", "c", None, None),
        (60, "shop", "rejected", "c", None, "nack"),
        (80, "shop", "delivered", "a", False, None),
        (90, "shop", "processed", "a", None, None),
        (91, "shop", "acknowledge", "a", None, None),
        (100, "shop", "delivered", "b", False, None),
        (110, "shop", "failed", "b", None, None),
        (111, "shop", "failed", "b", None, None),
        (120, "shop", "delivered", "b", True, None),
        (130, "shop", "processed", "b", None, None),
        (131, "shop", "acknowledge", "b", None, None),
        (132, "shop", "ack_in_doubt", "b", None, "closed"),
    ]
    assert not problems.count
    assert problems.all_left_out() == {"spans that are not of messaging": 1}
    assert "redelivered" in problems.all_not_shown()


def test_messages_without_ids_are_named_by_their_contexts(told: Any) -> None:
    """A consumer links to the send, has it as parent, or settles what its parent has processed."""
    rows, problems = told(
        span(1, "send", 10, 20, 4),
        span(2, "process", 30, 40, 5, links=[link(1)]),
        span(3, "settle", 41, 42, 3, parentSpanId=f"{2:016x}"),
        span(4, "send", 50, 60, 4),
        span(5, "process", 61, 70, 5, parentSpanId=f"{4:016x}"),
    )
    first, second = (f"{TRACE_ID}-{number:016x}" for number in (1, 4))
    assert events(rows, "event", "message") == [
        ("send", first),
        ("confirmed", first),
        ("delivered", first),
        ("processed", first),
        ("acknowledge", first),
        ("send", second),
        ("confirmed", second),
        ("delivered", second),
        ("processed", second),
    ]
    assert not problems.count


def test_a_second_send_of_a_message_is_a_resend_by_time_and_not_by_place(told: Any) -> None:
    """So is the delivery that was the second: spans are written when they end, and exported in any order."""
    rows, _ = told(
        span(1, "process", 300, 310, 5, **message("a")),
        span(2, "send", 100, 110, 4, **message("a")),
        span(3, "process", 200, 210, 5, **message("a")),
        span(4, "send", 10, 20, 4, **message("a"), status={"code": 2}),
        span(5, "send", 30, 40, 4, **message("b")),
    )
    assert sorted(events(rows, "t", "event", "message")) == [
        (10, "send", "a"),
        *((20, row["event"], "a") for row in rows if row["t"] == 20),
        (30, "send", "b"),
        (40, "confirmed", "b"),
        (100, "resend", "a"),
        (110, "confirmed", "a"),
        *(
            (t, event, "a")
            for t, event in ((200, "delivered"), (210, "processed"), (300, "delivered"), (310, "processed"))
        ),
    ]
    assert {row["t"]: row["redelivered"] for row in rows if row["event"] == "delivered"} == {200: False, 300: True}


def test_an_id_that_one_side_knows_names_the_message_of_the_other(told: Any) -> None:
    rows, problems = told(
        span(1, "send", 10, 20, 4),
        span(2, "process", 30, 40, 5, **message("a"), links=[link(1)]),
        span(3, "send", 50, 60, 4, **message("b")),
        span(4, "process", 61, 70, 5, links=[link(3)]),
    )
    assert {row["message"] for row in rows} == {"a", "b"}
    assert not problems.count
    assert "send" not in problems.all_not_shown()


def test_a_batch_tells_of_each_message_that_it_links_to(told: Any) -> None:
    attributes = [{"key": "messaging.message.id", "value": {"stringValue": "c"}}]
    rows, problems = told(
        span(1, "create", 1, 2, 4, **message("a")),
        span(2, "create", 3, 4, 4, **message("b")),
        span(3, "send", 10, 20, 3, links=[link(1), link(2)], messaging__batch__message_count=2),
        span(4, "receive", 30, 40, 5, links=[link(1), link(2), link(9, attributes=attributes)]),
        span(5, "receive", 50, 60, 5, messaging__batch__message_count=0),
        span(6, "receive", 70, 80, 5, messaging__batch__message_count=3, links=[link(1)]),
    )
    assert collections.Counter(events(rows, "event", "message")) == {
        **dict.fromkeys([("send", "a"), ("send", "b"), ("confirmed", "a"), ("confirmed", "b")], 1),
        ("delivered", "a"): 2,
        ("delivered", "b"): 1,
        ("delivered", "c"): 1,
    }
    (unread,) = problems.reasons()
    assert unread.count == problems.count == 2  # of three messages, one is linked to
    assert unread.reason.startswith("a message without a name")


def test_the_older_conventions_are_read(told: Any) -> None:
    old = {"messaging__operation__type": None, "messaging__destination__name": None, "messaging__destination": "q"}
    rows, _ = told(
        span(1, None, 10, 20, 4, **old, messaging__message_id="a"),
        span(2, None, 30, 40, 5, **old, messaging__message_id="a", messaging__operation="process"),
    )
    assert events(rows, "event", "message", "queue") == [
        ("send", "a", "q"),
        ("confirmed", "a", "q"),
        ("delivered", "a", "q"),
        ("processed", "a", "q"),
    ]


@pytest.mark.parametrize(
    ("destination", "key", "operation", "queue"),
    [
        ("amq.default:orders", "orders", "send", "orders"),
        ("", "orders", "send", "orders"),
        ("orders", "orders", "send", "orders"),
        ("logs:info", "info", "send", None),
        ("logs:info:archive", "info", "process", "archive"),
        ("archive", None, "process", "archive"),
    ],
)
def test_the_queue_of_rabbitmq_is_told_from_its_destination(
    destination: str, key: str | None, operation: str, queue: str | None, told: Any
) -> None:
    rabbit = {"messaging__system": "rabbitmq", "messaging__rabbitmq__destination__routing_key": key}
    rows, _ = told(span(1, operation, 10, 20, 5, **message("a"), **rabbit, messaging__destination__name=destination))
    assert {row.get("queue") for row in rows} == {queue}


def test_what_a_trace_lacks_is_said(told: Any) -> None:
    _, sampled = told(span(1, "send", 10, 20, 4, **message("a"), traceState="x=1,ot=th:c;rv:1"))
    assert set(sampled.all_not_shown()) == {"send", "confirmed", "delivered", "processed", "acknowledge"}
    _, whole = told(span(1, "send", 10, 20, 4, **message("a"), traceState="ot=th:0"))
    assert not whole.all_not_shown()
    _, strange = told(span(1, "process", 10, 20, 5, **message("a")))
    assert strange.all_not_shown()["send"].startswith("1 of the messages that were received have no span of their send")


def test_what_cannot_be_read_is_counted_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    good = json.dumps(document(span(1, "send", 10, 20, 4, **message("a"))))
    bad = document(
        span(2, "send", 10, 20, 4, **message("b")), {**span(3, "send", 1, 2, 4), "endTimeUnixNano": "soon"}, {"x": 1}
    )
    strange = document(span(4, "browse", 1, 2), span(5, None, 1, 2, 5))
    lines = ['{"a": 1}', good, json.dumps(bad), json.dumps(strange), '{"resourceLogs": []}', good[:80], "7"]
    path.write_text("\n".join(lines), encoding="utf-8")
    rows, problems = imported("otlp", path)
    assert {row["message"] for row in rows} == {"a", "b"}
    places = [place for each in problems.reasons() for place in each.places]
    assert sorted(places) == [f"{path} line {line}" for line in (1, 3, 3, 4, 4, 6, 7)]
    assert problems.all_left_out() == {"documents of logs or metrics": 1}


@pytest.mark.parametrize("text", ["", "hello", '{"a": 1}', "[]", '{"resourceSpans": 7}', "[" * 10_000])
def test_what_is_no_trace_is_refused_in_one_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"trace\.json is (no OTLP JSON|empty)") as refused:
        imported("otlp", path)
    assert "\n" not in str(refused.value)


def test_one_document_on_many_lines_and_gzip_are_read_too(tmp_path: Path) -> None:
    whole = document(*(each for line in TRACE.read_text().splitlines() for each in [json.loads(line)]))
    groups = [each for part in whole["resourceSpans"][0]["scopeSpans"][0]["spans"] for each in part["resourceSpans"]]
    pretty, packed = tmp_path / "trace.json", tmp_path / "trace.jsonl.gz"
    pretty.write_text(json.dumps({"resourceSpans": groups}, indent=2), encoding="utf-8")
    packed.write_bytes(gzip.compress(TRACE.read_bytes()))
    expected = collections.Counter(events(imported("otlp", TRACE)[0], "t", *TOLD))
    assert collections.Counter(events(imported("otlp", pretty)[0], "t", *TOLD)) == expected
    assert collections.Counter(events(imported("otlp", packed)[0], "t", *TOLD)) == expected


def read_by(importer: Otlp, *paths: Path) -> Any:
    """The rows in their order, and all that was told of what is not in them."""
    problems = Problems()
    rows = [row for batch in importer.batches(paths, problems) for row in batch.to_pylist()]
    return rows, problems.reasons(), problems.all_left_out(), problems.all_not_shown()


def various(number: int) -> str:
    """A line of a file in which spans of many sorts, and lines that cannot be read, are mixed."""
    operation = ("send", "process", "settle", "receive", "create", "browse", None)[number % 7]
    given: dict[str, Any] = {} if number % 5 == 0 else message(f"m{number % 50}")
    if number % 3 == 0:
        given |= {"error__type": "nack", "messaging__batch__message_count": number % 4}
    if number % 4 == 1:
        given["links"] = [link(number - back) for back in range(1, 1 + number % 3)]
    if number % 6 == 2:
        given |= {"parentSpanId": f"{number + 3:016x}", "messaging__message__delivery_count": number % 3}
    spans = [span(number, operation, number, number + 5, 5, **given), {**span(number, None, 1, 2), "attributes": []}]
    return {11: "", 12: "{", 13: '{"resourceLogs": []}'}.get(
        number % 20, json.dumps(document(*spans[: 1 + number % 2]))
    )


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mixed") / "trace.jsonl"
    path.write_text("\n".join(map(various, range(1, 450))), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def told_of_mixed(mixed: Path) -> Any:
    return read_by(Otlp(), mixed)


@settings(max_examples=15 if WHOLE else 5, deadline=None)
@given(block=st.integers(1, 400_000))
def test_in_whatever_blocks_a_file_is_read_its_rows_and_problems_are_the_same(
    mixed: Path, told_of_mixed: Any, block: int
) -> None:
    assert read_by(Otlp(block=block), mixed) == told_of_mixed


def test_files_read_by_several_processes_are_as_files_read_by_one(mixed: Path, tmp_path: Path) -> None:
    packed, pretty = tmp_path / "packed.jsonl.gz", tmp_path / "pretty.json"
    packed.write_bytes(gzip.compress(mixed.read_bytes()))
    pretty.write_text(json.dumps(document(span(1, "send", 1, 2, 4, **message("a"))), indent=2), encoding="utf-8")
    several = Otlp(jobs=2, block=20_000, share=1)
    assert read_by(several, mixed, packed, pretty) == read_by(Otlp(), mixed, packed, pretty)


def test_a_file_that_is_no_trace_is_refused_with_its_first_line_whatever_the_blocks(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("\n" * 3 + "hello\n" * 2_000, encoding="utf-8")
    with pytest.raises(InputError, match=r"is no OTLP JSON \(line 4: it is not JSON\)"):
        read_by(Otlp(block=2_000), path)


def test_attributes_in_another_order_or_twice_tell_the_same(told: Any) -> None:
    """Of what is there twice the last counts, and spans with different attributes keep their order."""
    first, second, third = (span(number, "send", number, number + 5, 4, **message("a")) for number in (10, 20, 30))
    second["attributes"].reverse()
    third["attributes"] += span(0, None, 0, 0, **message("b"))["attributes"]
    rows, problems = told(first, {**span(1, None, 1, 2), "attributes": []}, second, third)
    sends = [row for row in rows if row["event"] in {"send", "resend"}]
    assert sorted((row["t"], row["message"], row["queue"]) for row in sends) == [
        (10, "a", "q"),
        (20, "a", "q"),
        (30, "b", "q"),
    ]
    assert not problems.count


# Drawn histories, written as spans by the classes of the protocol, say the same when they are read again.


@st.composite
def lives(draw: st.DrawFn) -> list[dict[str, Any]]:
    """What becomes of some messages: lines of a history, in pairs that a span has (its start, its end)."""
    told: list[dict[str, Any]] = []
    clock = 0
    for name in draw(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6, unique=True)):
        steps: list[tuple[str, str | None]] = [("send", draw(st.sampled_from(["confirmed", "in_doubt", "rejected"])))]
        for _ in range(draw(st.integers(0, 3))):
            steps.append(("delivered", draw(st.sampled_from(["processed", "failed"]))))
            steps += [("acknowledge", None)] * draw(st.integers(0, 1))
        for first, second in steps:
            clock += draw(st.integers(1, 10**9))
            fields = {"message": name, "process": f"p{draw(st.integers(0, 2))}", "queue": "q"}
            told.append({"t": clock, "event": first, **fields})
            if first == "delivered":
                told[-1]["redelivered"] = draw(st.booleans())
            if second is not None:
                clock += draw(st.integers(1, 10**9))
                told.append({"t": clock, "event": second, **fields})
    return told


_OPERATION = {"send": ("send", 4), "delivered": ("process", 5), "acknowledge": ("settle", 3)}
_ENDS = ("confirmed", "in_doubt", "rejected", "processed", "failed")


def as_spans(lines: list[dict[str, Any]], *, named: bool) -> list[bytes]:
    """The lines as documents of OTLP JSON, one for each span; without names consumers link to the sends."""
    contexts: dict[str, bytes] = {}
    documents = []
    for number, line in enumerate(lines):
        if line["event"] in _ENDS:
            continue
        end = lines[number + 1] if number + 1 < len(lines) and lines[number + 1]["event"] in _ENDS else line
        data = TracesData()
        group = data.resource_spans.add()
        name = group.resource.attributes.add()
        name.key, name.value.string_value = "service.instance.id", line["process"]
        written = group.scope_spans.add().spans.add()
        operation, written.kind = _OPERATION[line["event"]]
        written.trace_id, written.span_id = bytes(15) + b"\1", (number + 1).to_bytes(8, "big")
        written.start_time_unix_nano, written.end_time_unix_nano = line["t"], end["t"]
        texts = {"messaging.operation.type": operation, "messaging.destination.name": "q"}
        if named:
            texts["messaging.message.id"] = line["message"]
        if end["event"] == "rejected":
            texts["error.type"] = "nack"
        for key, value in texts.items():
            attribute = written.attributes.add()
            attribute.key, attribute.value.string_value = key, value
        if "redelivered" in line:
            attribute = written.attributes.add()
            attribute.key, attribute.value.bool_value = "messaging.message.redelivered", line["redelivered"]
        if end["event"] in {"in_doubt", "failed"}:
            written.status.code = 2
        if line["event"] == "send":
            contexts[line["message"]] = written.span_id
        else:
            linked = written.links.add()
            linked.trace_id, linked.span_id = written.trace_id, contexts[line["message"]]
        documents.append(json.dumps(_hexed(MessageToDict(data, use_integers_for_enums=True))).encode())
    return documents


def _hexed(value: Any) -> Any:
    """OTLP JSON has ids in hexadecimal digits, other than JSON of Protocol Buffers."""
    if isinstance(value, dict):
        ids = {"traceId", "spanId", "parentSpanId"}
        return {key: base64.b64decode(each).hex() if key in ids else _hexed(each) for key, each in value.items()}
    return list(map(_hexed, value)) if isinstance(value, list) else value


@settings(max_examples=60, deadline=None)
@given(lines=lives(), named=st.booleans(), backwards=st.booleans())
def test_a_drawn_history_comes_back_from_its_spans(lines: list[dict[str, Any]], named: bool, backwards: bool) -> None:  # noqa: FBT001
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        documents = as_spans(lines, named=named)
        path.write_bytes(b"\n".join(documents[::-1] if backwards else documents))
        rows, problems = imported("otlp", path)
    assert not problems.count
    if not named:
        sends = {row["t"]: row["message"] for row in rows if row["event"] == "send"}
        names = {sends[line["t"]]: line["message"] for line in lines if line["event"] == "send"}
        rows = [{**row, "message": names[row["message"]]} for row in rows]
    fields = ("t", "process", "event", "queue", "message", "redelivered")
    assert collections.Counter(events(rows, *fields)) == collections.Counter(events(lines, *fields))
