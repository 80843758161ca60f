"""The result tables: the same rows at once and folded, a row for every message, and what stands in them."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ackfsm import verify
from ackfsm.cli import main
from ackfsm.support import files
from ackfsm.terms import Anomaly, Configuration, Fault, HostError, InputError, Verdict
from ackfsm.verify import Examination, Result
from ackfsm.verify.folding import chunks
from ackfsm.verify.results.written import NO_QUEUE, escaped
from model_tests.support.places import DATA
from model_tests.support.tables import shipped
from model_tests.support.verify.named_histories import named_histories
from model_tests.support.verify.notation import write
from model_tests.support.verify.random_histories import histories
from model_tests.support.verify.result_rows import read_tables, rows_of
from model_tests.support.verify.traffic import traffic
from model_tests.support.whole import WHOLE, few
from model_tests.verify.test_fold_chunks import configuration_of, ordinary

SPEC = shipped()
SYNTHETIC = sorted((DATA / "synthetic").glob("*.jsonl"))
RECORDED = ("rabbitmq-b-confirm-manual-broker-kill", "activemq-e-transacted-broker-kill")


def _header_of(header: verify.Header | None) -> Configuration | None:
    return SPEC.configure(None, header.config) if header is not None and header.config else None


def _examined(path: Path, configure: Any = _header_of, **how: Any) -> tuple[Examination, Result]:
    found = verify.examination(path, SPEC, configure, **how)
    return found, verify.verdict(found.findings, SPEC)


def _rows(path: Path, configure: Any = _header_of, **how: Any) -> Mapping[str, list[Any]]:
    found, result = _examined(path, configure, **how)
    return rows_of(found.tables(result))


def _folded(monkeypatch: pytest.MonkeyPatch, size: int) -> dict[str, Any]:
    """What makes :func:`ackfsm.verify.examination` fold in chunks of so many bytes."""
    monkeypatch.setattr(chunks, "LINES_AT_ONCE", size)
    return {"folded_from": 0, "workers": 1}


def _check(rows: Mapping[str, list[Any]], result: Result) -> None:
    """What any tables have to be, given the verdict."""
    messages = {row["message"]: row for row in rows["messages"]}
    assert len(messages) == len(rows["messages"])
    verdicts = Counter(row["verdict"] for row in messages.values())
    pairs = result.findings.explanation.pairs if result.findings.explanation is not None else None
    if result.verdict is Verdict.VALID:
        assert set(verdicts) == {"valid"}
    named = result.findings.explanation is None or not (result.findings.anomalies[Anomaly.TORN_TRANSACTION].found)
    if named and pairs is not None and not pairs.unnamed and Anomaly.STUCK not in result.findings.anomalies:
        assert (verdicts["invalid"] > 0) == (result.verdict is Verdict.INVALID)
    of_anomaly: dict[str, set[Any]] = {}
    for row in rows["anomalies"]:
        of_anomaly.setdefault(row["anomaly"], set()).add((row["process"], row["transaction"] or row["message"]))
        if row["message"] in messages:
            assert row["anomaly"] in messages[row["message"]]["anomalies"]
            assert set(row["causes"]) <= set(messages[row["message"]]["causes"])
    for anomaly, finding in result.findings.anomalies.items():
        if anomaly is not Anomaly.STUCK:
            assert len(of_anomaly.get(anomaly.value, ())) == finding.found
        assert set(finding.examples) <= {name for _, name in of_anomaly.get(anomaly.value, ())}


@pytest.mark.parametrize("file", few(SYNTHETIC, 6), ids=lambda file: file.stem)
def test_folded_in_chunks_of_a_few_lines_the_rows_are_those_of_the_whole(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, result = _examined(file)
    rows = rows_of(found.tables(result))
    _check(rows, result)
    assert _rows(file, **_folded(monkeypatch, 300)) == rows


@pytest.mark.parametrize("name", RECORDED)
def test_of_recorded_histories_too(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tmp_path / "h.jsonl"
    plain.write_bytes(gzip.decompress((DATA / f"{name}.jsonl.gz").read_bytes()))
    found, result = _examined(plain)
    rows = rows_of(found.tables(result))
    _check(rows, result)
    assert len(rows["messages"]) >= result.findings.messages
    recorded = [row for row in rows["timeline"] if row["recorded"]]
    assert recorded
    again, folded = _examined(plain, **_folded(monkeypatch, 150_000))
    assert again.left() or name.startswith("activemq"), "something was left out, or the second pass is not tried"
    assert rows_of(again.tables(folded)) == rows


@pytest.mark.parametrize("name", ["jms", "client", "transacted", "window", "none", "queues"])
@settings(
    deadline=None,
    max_examples=6 if WHOLE else 3,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_of_random_histories_too(name: str, data: st.DataObject, tmp_path: Path) -> None:
    events = data.draw(st.one_of(traffic(), traffic(transacted=True), histories()))
    size = data.draw(st.sampled_from([300, 2_000, 8_000]))
    skew = data.draw(st.sampled_from([0, None]))
    path = tmp_path / "h.jsonl"
    write(events, path)
    found, result = _examined(path, lambda _: configuration_of(name), skew=skew)
    rows = rows_of(found.tables(result))
    _check(rows, result)
    with pytest.MonkeyPatch.context() as patch:
        again, folded = _examined(path, lambda _: configuration_of(name), skew=skew, **_folded(patch, size))
    assert rows_of(again.tables(folded)) == rows


def test_transactions_of_two_processes_that_share_a_name_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    lines = []
    for process in ("a", "b"):
        of = {"t": 0, "process": process, "transaction": "t1"}
        sent = {"queue": "q", "delivery_mode": "PERSISTENT"}
        lines += [{**of, "event": "begin"}]
        lines += [{**of, **sent, "event": "send", "message": f"{process}{number}"} for number in (1, 2)]
        lines += [{**of, "event": event} for event in ("commit", "committed")]
        of = {"t": 1, "process": "c", "session": "c.1", "message": f"{process}1", "queue": "q"}
        lines += [{**of, "event": "delivered", "redelivered": False}, {**of, "event": "processed"}]
        lines += [{**of, "event": "acknowledge"}, {**of, "event": "acknowledged"}]
    lines += [{"t": 2, "process": "nemesis", "event": "drained"}]
    write(lines, path)
    found, result = _examined(path, lambda _: configuration_of("client"))
    rows = rows_of(found.tables(result))
    _check(rows, result)
    torn = {(row["process"], row["message"]) for row in rows["anomalies"] if row["transaction"] == "t1"}
    assert torn == {("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")}


def test_a_torn_transaction_is_told_apart_from_an_earlier_one_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    lines = []
    for when, delivered in ((0, 2), (10, 1)):
        of = {"t": when, "process": "p", "transaction": "t1"}
        messages = [f"m{when + number}" for number in (1, 2)]
        lines += [{**of, "event": "send", "queue": "q", "message": message} for message in messages]
        lines += [{**of, "event": event} for event in ("commit", "committed")]
        of = {"t": when + 1, "process": "c", "queue": "q"}
        for message in messages[:delivered]:
            lines += [{**of, "event": "delivered", "message": message, "redelivered": False}]
            lines += [{**of, "event": "processed", "message": message}]
    lines += [{"t": 20, "process": "nemesis", "event": "drained"}]
    write(lines, path)
    found, result = _examined(path, lambda _: configuration_of("transacted"))
    rows = rows_of(found.tables(result))
    _check(rows, result)
    torn = {row["message"] for row in rows["anomalies"] if row["transaction"] == "t1"}
    assert torn == {"m11", "m12"}
    with pytest.MonkeyPatch.context() as patch:
        again, folded = _examined(path, lambda _: configuration_of("transacted"), **_folded(patch, 300))
    assert rows_of(again.tables(folded)) == rows


def test_pairs_that_are_no_runs_are_all_found_by_a_fold() -> None:
    """Their messages are plain by themselves, so that a fold would leave them out."""
    path = DATA / "pairs-that-are-no-runs.jsonl"
    found, result = _examined(path)
    with pytest.MonkeyPatch.context() as patch:
        again, folded = _examined(path, **_folded(patch, 8_000))
    assert _unnamed_pairs(folded) == _unnamed_pairs(result) > 0
    assert rows_of(again.tables(folded)) == rows_of(found.tables(result))


def _unnamed_pairs(result: Result) -> int:
    held = result.findings.explanation
    return 0 if held is None or held.pairs is None else held.pairs.unnamed


NAMED = named_histories()


@pytest.mark.parametrize("name", few([*NAMED], 40))
def test_named_histories_have_their_rows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    this = NAMED[name]
    path = this.write(tmp_path)
    judged_by, skew = this.configuration(SPEC), this.skew * 10**6
    found, result = _examined(path, lambda _: judged_by, skew=skew)
    rows = rows_of(found.tables(result))
    _check(rows, result)
    assert _rows(path, lambda _: judged_by, skew=skew, **_folded(monkeypatch, 300)) == rows
    invalid = {
        (row["anomaly"], row["transaction"] or row["message"]) for row in rows["anomalies"] if row["unexplained"]
    }
    assert invalid == {(anomaly, each) for anomaly, its in (this.invalid or {}).items() for each in its}
    if this.valid is not None and (found.findings.explanation is not None):
        for anomaly, cause in this.valid.items():
            finding = found.findings.anomalies[Anomaly(anomaly)]
            its = [row for row in rows["anomalies"] if row["anomaly"] == anomaly]
            assert not finding.causes or any(set(cause.split(" and ")) <= set(row["causes"]) for row in its)
    by_id = {row["message"]: row for row in rows["messages"]}
    accused = {row["message"] for row in rows["anomalies"] if row["unexplained"]}
    for message in (*this.run, *accused):
        assert by_id[message]["verdict"] == "invalid"
        assert by_id[message]["explanation"]
    for pair in this.pairs:
        (one,) = (by_id[message] for message in pair if by_id[message]["explanation"])
        assert one["verdict"] == "invalid"
        assert all(repr(message) in one["explanation"] for message in pair)


def _lines(path: Path, events: Sequence[Mapping[str, Any]], config: Mapping[str, Any]) -> Path:
    header = {"ackfsm_history": 1, "config": config}
    return write((header, *events), path)


def _duplicates(path: Path, count: int) -> Path:
    """So many messages that come a second time unflagged after they were acknowledged, and as many plain ones."""
    events = [{**event, "queue": "q"} for event in ordinary(2 * count)]
    again = [
        {"t": 10**6 + number, "process": "c", "event": "delivered", "redelivered": False, "message": f"m{number}"}
        for number in range(count)
    ]
    drained = {"t": 10**7, "process": "nemesis", "event": "drained"}
    return _lines(path, [*events, *again, drained], {"profile": "jms", "ack_mode": "AUTO_ACKNOWLEDGE"})


def test_every_message_has_its_row_and_reason_however_many_there_are(tmp_path: Path) -> None:
    """The screen and the JSON stop after a hundred."""
    found, result = _examined(_duplicates(tmp_path / "h.jsonl", 250))
    finding = result.findings.anomalies[Anomaly.UNFLAGGED_DUPLICATE]
    assert (finding.found, len(finding.examples)) == (250, 100)
    tables = found.tables(result)
    bad = {row["message"]: row for row in tables["messages"].to_pylist() if row["verdict"] == "invalid"}
    assert set(bad) == {f"m{number}" for number in range(250)}
    assert all("where the model allows" in row["explanation"] for row in bad.values())
    assert {(row["line"], row["t"]) for row in bad.values()} == {(2002 + n, 10**6 + n) for n in range(250)}
    rows = [row for row in tables["anomalies"].to_pylist() if row["anomaly"] == "unflagged_duplicate"]
    assert len(rows) == 250
    assert {row["allowed"] for row in rows} == {False}


def test_what_a_fault_explains_is_told_of_the_fault(tmp_path: Path) -> None:
    this = NAMED["loss in the crash that is allowed"]
    found, result = _examined(this.write(tmp_path), lambda _: this.configuration(SPEC))
    tables = found.tables(result)
    (crash,) = tables["timeline"].to_pylist()
    assert crash == {
        "history": str(tmp_path / "history.jsonl"),
        "fault": "broker_crash",
        "victim": None,
        "queue": "q",
        "since": 10 * 10**6,
        "until": 12_000 * 10**6,
        "recorded": True,
        "assumed": None,
        "messages": 1,
        "times": 1,
    }
    (lost,) = tables["messages"].to_pylist()
    assert (lost["verdict"], lost["causes"], lost["explanation"]) == ("valid", ["broker_crash"], None)


@pytest.mark.parametrize("assumed", [True, False])
def test_faults_that_nobody_recorded_are_inferred(tmp_path: Path, *, assumed: bool) -> None:
    this = NAMED["loss in the crash that is allowed"].without_faults()
    faults = frozenset({Fault.BROKER_CRASH}) if assumed else frozenset()
    found, result = _examined(this.write(tmp_path), lambda _: this.configuration(SPEC), assumed=faults)
    tables = found.tables(result)
    (told,) = tables["timeline"].to_pylist()
    (lost,) = tables["messages"].to_pylist()
    assert (told["fault"], told["recorded"], told["assumed"], told["messages"]) == ("broker_crash", False, assumed, 1)
    if assumed:
        assert (lost["verdict"], lost["causes"]) == ("valid", ["unrecorded broker_crash"])
    else:
        assert (lost["verdict"], lost["causes"]) == ("invalid", [])


def test_a_broken_connection_is_an_interval(tmp_path: Path) -> None:
    events = ordinary(3)
    broken = {"t": 10**6, "process": "c", "event": "close", "error": "reset by peer"}
    found, result = _examined(_lines(tmp_path / "h.jsonl", [*events, broken], {"profile": "jms"}))
    (told,) = found.tables(result)["timeline"].to_pylist()
    assert (told["fault"], told["victim"], told["recorded"], told["since"]) == ("consumer_link_loss", "c", False, 10**6)


def _open(path: Path, without: str) -> str:
    """The verdict on the message ``m1``, which was sent and confirmed, in a history without some lines."""
    events: list[Mapping[str, Any]] = [
        *ordinary(1),
        {"t": 20, "process": "p", "event": "send", "message": "m1", "queue": "q"},
        {"t": 21, "process": "p", "event": "confirmed", "message": "m1", "queue": "q"},
        {"t": 10**7, "process": "nemesis", "event": "drained"},
    ]
    _lines(path, [each for each in events if each["event"] != without], {"profile": "jms"})
    if without == "a line":
        path.write_text(path.read_text() + "no event\n")
    configure = (lambda _: None) if without == "configuration" else _header_of
    found, result = _examined(path, configure)
    rows = {row["message"]: row for row in found.tables(result)["messages"].to_pylist()}
    plain = "unknown" if without in {"configuration", "a line", "processed"} else "valid"
    assert rows["m0"]["verdict"] == plain
    return str(rows["m1"]["verdict"])


def test_what_is_open_of_a_message_is_no_pass(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    assert _open(path, "nothing") == "invalid"
    for without in ("drained", "configuration", "a line"):
        assert _open(path, without) == "unknown", without


def test_a_summary_can_be_put_beside_others(tmp_path: Path) -> None:
    found, result = _examined(_duplicates(tmp_path / "h.jsonl", 3))
    rows = found.tables(result)["summary"].to_pylist()
    assert {json.loads(row["configuration"])["ack_mode"] for row in rows} == {"AUTO_ACKNOWLEDGE"}
    assert {(row["verdict"], tuple(row["reasons"])) for row in rows} == {("invalid", result.reasons)}
    by_name = {(row["kind"], row["name"]): row for row in rows}
    document = result.as_json()
    for anomaly, its in document["anomalies"].items():
        row = by_name["anomaly", anomaly]
        assert (row["count"], row["allowed"]) == (its["count"], its["allowed"])
        assert row["unexplained"] == its.get("unexplained")
    stood = {name: row["stood"] for (kind, name), row in by_name.items() if kind == "guarantee"}
    assert stood == document["guarantees"]
    counters = {name: row["count"] for (kind, name), row in by_name.items() if kind == "counter"}
    assert counters.items() >= {**document["counters"], "messages": 6, "events": document["events"]}.items()


def test_rows_are_partitioned_by_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [{**event, "queue": f"q/{event['t'] // 10 % 3}"} for event in ordinary(300)]
    no_queue = [
        {**{name: value for name, value in event.items() if name != "queue"}, "t": 9_000 + n, "message": "none"}
        for n, event in enumerate(ordinary(1))
    ]
    path = _lines(tmp_path / "h.jsonl", [*events, *no_queue], {"profile": "jms"})
    found, result = _examined(path, **_folded(monkeypatch, 20_000))
    assert found.left()
    verify.write_tables(result, found, tmp_path / "found")
    there = {each.name for each in (tmp_path / "found" / "messages").iterdir()}
    assert there == {"queue=q%2F0", "queue=q%2F1", "queue=q%2F2", f"queue={NO_QUEUE}"}
    assert rows_of(read_tables(tmp_path / "found")) == rows_of(found.tables(result))
    empty = ds.dataset(tmp_path / "found" / "timeline").to_table()
    assert (len(empty), empty.schema) == (0, verify.TABLES["timeline"])


def test_what_a_folder_cannot_have_in_its_name_is_escaped() -> None:
    assert escaped("a/b=c%\x7f^") == "a%2Fb%3Dc%25%7F%5E"
    assert [escaped(name) for name in (None, "", NO_QUEUE)] == [NO_QUEUE, NO_QUEUE, "%5F" + NO_QUEUE[1:]]
    assert escaped("orders.größe 7") == "orders.größe 7"
    with pytest.raises(InputError, match="too long for a folder"):
        escaped("q" * 250)


def test_a_chunk_that_has_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _lines(tmp_path / "h.jsonl", ordinary(300), {"profile": "jms"})
    found, result = _examined(path, **_folded(monkeypatch, 20_000))
    path.write_text(path.read_text().replace('"m15"', '"x15"'))
    with pytest.raises(InputError, match="was changed while it was read; verify it when nothing writes to it"):
        verify.write_tables(result, found, tmp_path / "found")
    assert [each.name for each in tmp_path.iterdir()] == ["h.jsonl"]


def test_what_is_there_is_not_replaced_unasked(tmp_path: Path) -> None:
    found, result = _examined(_duplicates(tmp_path / "h.jsonl", 3))
    folder = tmp_path / "found"
    folder.mkdir()
    verify.write_tables(result, found, folder)
    with pytest.raises(InputError, match="is not empty; name another folder, or say --overwrite"):
        verify.write_tables(result, found, folder)
    stale = folder / "messages" / "queue=gone" / "part-00000.parquet"
    stale.parent.mkdir()
    stale.write_bytes(b"")
    verify.write_tables(result, found, folder, overwrite=True)
    assert not stale.exists()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"has notes\.txt, which was not written there by ackfsm"):
        verify.write_tables(result, found, folder, overwrite=True)
    with pytest.raises(InputError, match="is no folder"):
        verify.write_tables(result, found, folder / "notes.txt")


def test_a_folder_that_cannot_be_replaced_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    for folder in (".", str(here)):
        assert main(["verify", str(tmp_path / "none"), "--output", folder]) == 2
        assert (
            "has the folder that you are in, which cannot be replaced; name a folder in it" in capsys.readouterr().err
        )
    (here / "below").mkdir()
    monkeypatch.setattr(Path, "is_mount", lambda path: path.name == "below")
    assert main(["verify", str(tmp_path / "none"), "--output", "below"]) == 2
    assert "below is where a file system begins, which cannot be replaced" in capsys.readouterr().err


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_what_is_interrupted_leaves_nothing_and_keeps_what_was_there(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, result = _examined(_duplicates(tmp_path / "h.jsonl", 3))
    folder, written = tmp_path / "found", []
    verify.write_tables(result, found, folder)
    before = sorted(folder.rglob("*"))
    write = pq.write_table

    def failing(*arguments: Any, **how: Any) -> None:
        written.append(1)
        if len(written) == 3:
            raise error
        write(*arguments, **how)

    monkeypatch.setattr(pq, "write_table", failing)
    with pytest.raises((KeyboardInterrupt, HostError)):
        verify.write_tables(result, found, folder, overwrite=True)
    assert sorted(folder.rglob("*")) == before
    written.clear()
    with pytest.raises((KeyboardInterrupt, HostError)):
        verify.write_tables(result, found, tmp_path / "other")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["found", "h.jsonl"]


def test_an_interrupt_between_two_names_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, result = _examined(_duplicates(tmp_path / "h.jsonl", 3))
    folder, names = tmp_path / "found", []
    verify.write_tables(result, found, folder)
    rename = Path.rename

    def interrupted(this: Path, target: Path) -> Path:
        names.append(this)
        if len(names) == 2:
            raise KeyboardInterrupt
        return rename(this, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        verify.write_tables(result, found, folder, overwrite=True)
    assert rows_of(read_tables(folder)) == rows_of(found.tables(result))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["found", "h.jsonl"]


def test_several_histories_share_their_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = (
        _duplicates(tmp_path / "one.jsonl", 2),
        _lines(tmp_path / "other.jsonl", ordinary(4), {"profile": "jms"}),
    )
    folder = tmp_path / "found"
    line = ["verify", str(one), str(other), str(tmp_path / "none"), "--output", str(folder), "--json"]
    assert main(line) == 1
    answers = json.loads(capsys.readouterr().out)
    assert [answer["written"] for answer in answers] == [[str(folder)]] * 3
    rows = read_tables(folder)["messages"].to_pylist()
    assert Counter(row["history"] for row in rows) == {str(one): 4, str(other): 4}
    assert main(line) == 2
    assert "is not empty" in capsys.readouterr().err
    assert main([*line, "--overwrite"]) == 1
    capsys.readouterr()
    assert main(["verify", str(one), "--overwrite"]) == 2
    assert "--overwrite is for --output" in capsys.readouterr().err


def test_the_result_is_told_even_if_its_tables_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _duplicates(tmp_path / "h.jsonl", 2)

    def failing(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", failing)
    assert main(["verify", str(path), "--output", str(tmp_path / "found"), "--json"]) == 70
    told = capsys.readouterr()
    answer = json.loads(told.out)
    assert (answer["verdict"], answer["written"]) == ("invalid", [])
    assert "cannot be written" in told.err
    monkeypatch.undo()
    monkeypatch.setattr(files, "_take_place", failing)
    assert main(["verify", str(path), "--output", str(tmp_path / "found"), "--json"]) == 70
    assert json.loads(capsys.readouterr().out)["verdict"] == "invalid"
    assert [each.name for each in tmp_path.iterdir()] == ["h.jsonl"]


def test_what_conformance_costs_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The time only with --all: nothing else differs between two runs."""
    path = str(NAMED["loss in the crash that is allowed"].write(tmp_path))
    outputs = []
    for line in (["--json"], ["--json"], ["--json", "--all"], ["--all"], []):
        main(["verify", path, *line])
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    held, with_time = (json.loads(each)["conformance"] for each in outputs[1:3])
    assert (held["lives"], held["searches"]) == (3, 4), "in order, in any, to the end; without the crash"
    assert {name for name in with_time if name not in held} == {"seconds", "share_of_time"}
    assert 0 < with_time["share_of_time"] <= 1
    assert with_time["seconds"] > 0
    cost = next(each for each in outputs[3].splitlines() if each.startswith("cost"))
    assert f"{held['searches'] + held['pairs']['searches']} searches" in cost
    assert f"{held['states'] + held['pairs']['states']} states" in cost
    assert "% of the processor time" in cost
    assert not [each for each in outputs[4].splitlines() if each.startswith("cost")]
