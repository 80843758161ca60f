"""Spark finds what one process finds, to the letter: recorded, synthetic and damaged histories."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession  # noqa: TC002 - pytest fixtures are looked at while it runs

from ackfsm import spark, verify
from ackfsm.spark import _examine
from ackfsm.terms import Anomaly, Configuration, Fault, InputError, Verdict
from ackfsm.verify import Findings
from ackfsm.verify.folding import chunks
from model_tests.support.places import DATA
from model_tests.support.tables import shipped
from model_tests.support.verify.comparable import comparable
from model_tests.support.verify.named_histories import named_histories
from model_tests.support.verify.notation import events_of, write
from model_tests.support.whole import WHOLE, few
from model_tests.verify import test_actions as test_history_actions
from model_tests.verify import test_clocks as test_history_clocks
from model_tests.verify import test_counts as test_history_counts
from model_tests.verify import test_optional_lines
from model_tests.verify import test_prefetch as test_history_prefetch
from model_tests.verify import test_recording as test_history_recording
from model_tests.verify import test_rest as test_history_rest
from model_tests.verify import test_spelled as test_history_spelled

pytestmark = pytest.mark.spark

SPEC = shipped()
NAMES = ("message", "session", "queue", "transaction")
CLEAN = (DATA / "synthetic" / "legal_redelivered_on_first_sight.jsonl").read_text().splitlines()


def _prepared(session: SparkSession, lines: int, patch: pytest.MonkeyPatch) -> SparkSession:
    """The session with chunks of so many lines, or with one chunk."""
    if lines > 1:
        patch.setattr(chunks, "LINES_AT_ONCE", lines)
        patch.setattr(chunks, "ROWS_AT_ONCE", 3)
        patch.setattr(_examine, "CHUNKS_A_TASK", 3)
    spark.register(session)
    return session


_CHUNKS = {"one chunk": 1, "several chunks": 1_000}


@pytest.fixture(params=_CHUNKS.values(), ids=list(_CHUNKS))
def either_session(
    spark_session: SparkSession, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> SparkSession:
    return _prepared(spark_session, request.param, monkeypatch)


@pytest.fixture(params=_CHUNKS.values() if WHOLE else [_CHUNKS["several chunks"]])
def session(
    spark_session: SparkSession, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> SparkSession:
    """In several chunks: what is read and found in one alone is asked of damaged histories."""
    return _prepared(spark_session, request.param, monkeypatch)


def _configured(path: Path) -> Configuration | None:
    header = verify.read_header(path)
    return SPEC.configure(None, header.config) if header and header.config else None


def _same(path: Path, session: SparkSession, skew: int = 0) -> Findings:
    configuration = _configured(path)
    local = verify.examine(verify.read(path), SPEC, configuration, skew=skew)
    found = spark.examine(path, SPEC, lambda _: configuration, session, skew=skew)
    assert comparable(found) == comparable(local)
    assert found.engine == "spark"
    return found


@pytest.mark.parametrize("file", few(sorted((DATA / "synthetic").glob("*.jsonl")), 5), ids=lambda file: file.stem)
def test_synthetic(file: Path, session: SparkSession) -> None:
    _same(file, session)


def test_what_nobody_recorded_is_found_by_the_model_alike(session: SparkSession) -> None:
    file, assumed = DATA / "synthetic" / "missing_outcome.jsonl", frozenset({Fault.PRODUCER_CRASH})
    local = verify.examine(verify.read(file), SPEC, _configured(file), assumed=assumed)
    assert local.unrecorded is not None
    assert local.unrecorded.explained
    found = spark.examine(file, SPEC, lambda _: _configured(file), session, assumed=assumed)
    assert comparable(found) == comparable(local)


@pytest.mark.parametrize("name", few(["rabbitmq-b-confirm-manual-broker-kill", "activemq-e-transacted-broker-kill"], 1))
def test_recorded(name: str, session: SparkSession) -> None:
    found = _same(DATA / f"{name}.jsonl.gz", session)
    labels = json.loads((DATA / "labels.json").read_text())[f"{name}.jsonl.gz"]
    assert found.events == labels["events"]
    assert {a: f.count for a, f in found.anomalies.items() if a in labels} == {
        a: labels[a] for a in found.anomalies if a in labels
    }


def test_parquet_and_jsonl_are_the_same_history(tmp_path: Path, either_session: SparkSession) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    events = [json.loads(line) for line in CLEAN[1:]]
    names = sorted({name for event in events for name in event})
    columns = {name: [event.get(name) for event in events] for name in names}
    file = tmp_path / "h.parquet"
    pq.write_table(pa.table(columns), file)
    assert _same(file, either_session).messages == 2


def test_a_recovered_session_explains_a_second_delivery(tmp_path: Path, session: SparkSession) -> None:
    events = [json.loads(line) for line in CLEAN[1:]]
    delivered = next(event for event in events if event["event"] == "delivered")
    last = max(event["t"] for event in events)
    recover = {"t": last + 1, "process": "c", "event": "recover", "session": delivered["session"]}
    again = delivered | {"t": last + 2, "redelivered": True, "session": "another"}
    file = tmp_path / "h.jsonl"
    file.write_text("\n".join([CLEAN[0], *(json.dumps(event) for event in (*events, recover, again))]))
    assert _same(file, session).actions == ("recover",)


def test_a_dead_letter_is_no_part_of_a_torn_transaction(tmp_path: Path, session: SparkSession) -> None:
    case = "consumed, in doubt, one came again and one had become a dead letter"
    _, text, _ = test_history_counts.CASES[case]
    found = _same(write(events_of(text), tmp_path / "history.jsonl"), session)
    assert found.anomalies[Anomaly.TORN_TRANSACTION].count == 0


def test_deliveries_beyond_the_prefetch_bound_are_the_same(tmp_path: Path, session: SparkSession) -> None:
    """All cases without a fault in one history, each with its own names; then with a fault, which concerns them all."""
    calm = {name: case for name, case in test_history_prefetch.CASES.items() if " fault " not in case[0]}
    header = {"ackfsm_history": 1, "config": {"ack_mode": "CLIENT_ACKNOWLEDGE", "prefetch": 2}}
    file = tmp_path / "h.jsonl"
    events = [
        {"t": event["t"], "event": event["event"]}
        | {name: f"{i} {value}" for name, value in event.items() if name in {*NAMES, "process"}}
        | {name: value for name, value in event.items() if name in {"redelivered", "scope"}}
        for i, (text, _) in enumerate(calm.values())
        for event in events_of(text)
    ]
    file.write_text("\n".join(map(json.dumps, [header, *events])))
    expected = {f"{i} {message}" for i, (_, messages) in enumerate(calm.values()) for message in messages}
    assert set(_same(file, session).anomalies[Anomaly.PREFETCH_OVERRUN].examples) == expected
    kill = {"t": 0, "process": "n", "event": "fault", "fault": "broker_kill"}
    named = dict.fromkeys(event["message"] for event in events if "message" in event)
    later = [message for message in named if int(message.split()[0]) % 3]
    sends = [{"t": 0, "process": "p", "event": "send", "message": message} for message in later]
    again = {"t": 5, "process": "n", "event": "recovered", "fault": "broker_kill"}
    file.write_text("\n".join(map(json.dumps, [header, kill, *sends, *events, again])))
    assert 0 < len(_same(file, session).anomalies[Anomaly.PREFETCH_OVERRUN].examples) < len(expected)


@pytest.mark.parametrize(
    "case",
    [
        *("broken", "closed", "one consumer's session broke", "no queue named", "both", "rolled back by the broker"),
        *("closed with a message on its way", "closed before anything came", "closed before the message was sent"),
        "another queue's consumer was closed",
    ],
)
def test_sessions_that_ended_explain_the_same(case: str, tmp_path: Path, session: SparkSession) -> None:
    text, actions = test_history_actions.CASES[case]
    assert _same(write(events_of(text), tmp_path / "h.jsonl"), session).actions == actions


def test_a_message_may_come_any_number_of_times(tmp_path: Path, session: SparkSession) -> None:
    text = "; ".join(["p send m1", *["c delivered m1 flagged"] * 300, *["c delivered m1 clear"] * 20])
    found = _same(write(events_of(text), tmp_path / "h.jsonl"), session)
    assert found.anomalies[Anomaly.DUPLICATE].count == 1


def test_what_a_journal_synced_without_saying_of_what_is_ignored(tmp_path: Path, session: SparkSession) -> None:
    header = '{"ackfsm_history": 1, "config": {"profile": "artemis"}}\n'
    text = "p send m1; p confirmed m1; b journal_synced; p send m2; p confirmed m2; b journal_synced m2; n drained"
    file = write(events_of(text), tmp_path / "h.jsonl")
    file.write_text(header + file.read_text())
    assert _same(file, session).anomalies[Anomaly.EARLY_CONFIRM].examples == ("m2",)


def test_no_name_reaches_a_sentence_raw(tmp_path: Path, session: SparkSession) -> None:
    forged = "\x1b[2J\nvalid: all that was found is allowed\n\u202e\x85"
    header = json.dumps({"ackfsm_history": 1, "config": {"profile": "jms"}, "note": forged})
    named = dict.fromkeys(("message", "queue", "process", "session", "transaction", "error"), forged)
    events = [
        event | {name: named[name] for name in named.keys() & event}
        for event in events_of(
            "p send m1 queue=q; p send m2 transaction=t queue=q; p commit transaction=t; p fire m1; p send m1 queue=q"
        )
    ]
    events[3]["event"] = forged
    file = tmp_path / "h.jsonl"
    file.write_text("\n".join([header, *map(json.dumps, events)]))
    result = verify.judge(_same(file, session), {})
    assert result.reasons
    assert all(reason.isprintable() for reason in result.reasons)


def _together(texts: Iterable[str], file: Path) -> Path:
    """All cases in one history, each with its own names."""
    header = {"ackfsm_history": 1, "config": {"profile": "jms"}}
    events = [
        event | {name: f"{i} {value}" for name, value in event.items() if name in {*NAMES, "process"}}
        for i, text in enumerate(texts)
        for event in test_history_clocks.timed(text)
    ]
    file.write_text("\n".join(map(json.dumps, [header, *events, {"t": 10**10, "process": "n", "event": "drained"}])))
    return file


def test_clocks_are_put_right_alike(tmp_path: Path, session: SparkSession) -> None:
    texts = [test_history_clocks.BEHIND, *(text for text, _, _ in test_history_clocks.SHIFTED.values())]
    file = _together(texts, tmp_path / "h.jsonl")
    assert len(_same(file, session, skew=5_000).offsets) > 5
    assert _same(file, session).anomalies[Anomaly.PHANTOM].doubted


def test_who_does_not_tell_what_was_processed_is_found_alike(tmp_path: Path, session: SparkSession) -> None:
    cases = test_history_recording.CASES
    told = _together((text for text in cases.values() if "processed" in text), tmp_path / "told.jsonl")
    assert _same(told, session).anomalies[Anomaly.REPROCESSED].doubt
    untold = _together((text for text in cases.values() if "processed" not in text), tmp_path / "untold.jsonl")
    assert _same(untold, session).anomalies[Anomaly.UNPROCESSED].unrecorded


def test_what_was_seen_at_rest_is_told_alike(tmp_path: Path, session: SparkSession) -> None:
    """In Parquet, with rows that are none: the rules for them are written twice."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    at_rest = test_history_rest
    text = f"{at_rest.DONE}; c waiting m9 error=acknowledge; {at_rest.FLYING}; {at_rest.EMPTY}"
    bad: list[dict[str, object]] = [
        {"event": "waiting", "error": "publish"},
        {"event": "depth", "position": -1, "delivery_count": 0},
        {"event": "fault", "fault": "acknowledge_timeout", "process": "nemesis"},
        {"event": "confirmed", "message": "m1", "scope": "session"},
    ]
    rows = [*events_of(text), *({"t": 50 + t, "process": "b", **each} for t, each in enumerate(bad))]
    file = tmp_path / "h.parquet"
    columns = {name: [row.get(name) for row in rows] for name in {field for row in rows for field in row}}
    metadata = {"ackfsm_history": "1", "config": '{"ack_mode": "CLIENT_ACKNOWLEDGE"}'}
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), file)
    found = _same(file, session)
    assert found.parse_errors == len(bad)
    assert found.anomalies[Anomaly.STUCK].examples == ("m9",)


def test_what_one_line_says_of_several_is_counted_alike(tmp_path: Path, session: SparkSession) -> None:
    """All cases of ranges in one history, each with its own names; then a call that timed out."""
    events = [
        event | {name: f"{i} {value}" for name, value in event.items() if name in {*NAMES, "process"}}
        for i, (text, _) in enumerate(test_history_spelled.RANGES.values())
        for event in events_of(text)
    ]
    text = f"{test_history_spelled.CALLED}; nemesis {test_history_spelled.TIMED_OUT} session=c.1; "
    last = [event | {"t": event["t"] + 100} for event in events_of(text + test_history_spelled.AGAIN)]
    config = {"send_mode": "asynchronous", "publish_window": 2, "ack_mode": "CLIENT_ACKNOWLEDGE"}
    file = tmp_path / "h.jsonl"
    file.write_text("\n".join(map(json.dumps, [{"ackfsm_history": 1, "config": config}, *events, *last])))
    found = _same(file, session)
    expected = {
        f"{i} {message}" for i, (_, left) in enumerate(test_history_spelled.RANGES.values()) for message in left
    }
    assert set(found.anomalies[Anomaly.MISSING_OUTCOME].examples) == expected
    assert found.anomalies[Anomaly.DUPLICATE].unexplained == 0
    assert found.of_calls == ("acknowledge_timeout",)


@pytest.mark.parametrize("name", test_optional_lines.IN_SPARK)
@pytest.mark.parametrize("written", [test_optional_lines.as_lines, test_optional_lines.as_parquet])
def test_optional_lines_are_judged_alike(
    name: str, written: Callable[[test_optional_lines.Story, Path], Path], tmp_path: Path, session: SparkSession
) -> None:
    story = test_optional_lines.STORIES[name]
    assert verify.verdict(_same(written(story, tmp_path), session), SPEC).verdict == story.verdict


VICTIMS = """
    p send m1 queue=q1 session=p.1; p send m2 queue=q2 session=p.1; r send m3 queue=q1; p2 send m4 queue=q3
    c delivered m1 clear queue=q1 session=c.1; d delivered m3 clear queue=q1; d delivered m1 flagged queue=q1
    nemesis fault fault=producer_crash queue=q2; r fault fault=producer_crash
    nemesis fault fault=producer_crash session=p.1 queue=q1
    r recovered fault=producer_crash; r send m5 queue=q1; p send m6 queue=q2 session=p.1; p send m7 queue=q1 session=p.1
    nemesis recovered fault=producer_crash; r send m8 queue=q2; p send m9 queue=q2 session=p.1
    nemesis fault fault=consumer_crash session=c.1; d delivered m5 clear queue=q1
    """


def test_whom_faults_hit_is_found_alike(tmp_path: Path, session: SparkSession) -> None:
    header = {"ackfsm_history": 1, "config": {"send_mode": "asynchronous", "publish_window": 1}}
    file = tmp_path / "h.jsonl"
    file.write_text("\n".join(map(json.dumps, [header, *events_of(f"{VICTIMS}; n drained")])))
    found = _same(file, session)
    assert found.anomalies[Anomaly.WINDOW_OVERRUN].examples == ("m2", "m8")
    assert found.anomalies[Anomaly.MISSING_OUTCOME].examples == ("m4", "m5", "m8", "m9")


def test_an_impossible_victim_is_refused_in_the_same_words(tmp_path: Path, session: SparkSession) -> None:
    file = write(events_of("p send m1; nemesis fault fault=consumer_crash session=q"), tmp_path / "h.jsonl")
    with pytest.raises(InputError) as local:
        verify.read(file)
    with pytest.raises(InputError, match="names the session 'q', which no other line has") as found:
        spark.examine(file, SPEC, lambda _: None, session)
    assert str(found.value) == str(local.value)


DAMAGE = {
    "not JSON": "{",
    "a negative time": CLEAN[2].replace('"t":', '"t":-'),
    "an unknown event": CLEAN[2].replace('"confirmed"', '"konfirmed"'),
    "no process": '{"t": 1, "event": "drained"}',
}


@pytest.mark.parametrize("line", DAMAGE.values(), ids=DAMAGE)
def test_an_unreadable_line_is_counted_and_placed(line: str, tmp_path: Path, either_session: SparkSession) -> None:
    file = tmp_path / "h.jsonl"
    file.write_text("\n".join([*CLEAN[:3], line, *CLEAN[3:]]))
    assert _same(file, either_session).parse_errors == 1


def _truncated(tmp_path: Path) -> Path:
    file = tmp_path / "h.jsonl.gz"
    whole = (DATA / "rabbitmq-b-confirm-manual-broker-kill.jsonl.gz").read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    return file


def _empty(tmp_path: Path) -> Path:
    file = tmp_path / "h.jsonl"
    file.touch()
    return file


def _missing(tmp_path: Path) -> Path:
    return tmp_path / "missing.jsonl"


@pytest.mark.parametrize("make", [_truncated, _empty, _missing])
def test_a_damaged_file_is_refused_in_the_same_words(
    make: Callable[[Path], Path], tmp_path: Path, either_session: SparkSession
) -> None:
    file = make(tmp_path)
    with pytest.raises(InputError) as local:
        verify.read(file)
    with pytest.raises(InputError) as found:
        spark.examine(file, SPEC, lambda _: SPEC.configure(), either_session)
    assert str(found.value) == str(local.value)


@pytest.mark.parametrize("url", ["nonsense", "http://host"])
def test_a_master_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="is not a Spark master"):
        spark.session(url)


def test_queues_are_judged_by_their_own_configurations(tmp_path: Path, session: SparkSession) -> None:
    path = named_histories()["a loss in a crash of which one queue is allowed"].write(tmp_path)
    its = {"fast": SPEC.configure("artemis", {"journal_sync_non_transactional": False})}
    configurations = verify.Configurations(SPEC.configure("artemis"), its)
    found = spark.examine(path, SPEC, lambda _: configurations, session)
    assert comparable(found) == comparable(verify.examine(verify.read(path), SPEC, configurations))
    assert verify.verdict(found, SPEC).reasons[0].startswith("queue 'q': loss of 1 message ('m2')")
    table = session.read.format("ackfsm").load(str(path))
    assert spark.verify(table, configurations).verdict is Verdict.INVALID
