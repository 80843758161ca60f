"""Whatever is wrong with a history is said in one sentence: with the file, the line, and what to do."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ackfsm import verify
from ackfsm.history.format import NEEDS
from ackfsm.terms import Anomaly, InputError, Verdict
from model_tests.support.places import PROJECT
from model_tests.support.tables import shipped

HEADER = '{"ackfsm_history": 1, "config": {"profile": "jms"}}'
SEND = '{"t":1,"process":"p","event":"send","queue":"q","message":"m1"}'
FAULT = '{"t":3,"process":"nemesis","event":"fault","fault":"consumer_link_loss"}'
OF_ANOTHER = {"event": "fault", "fault": "consumer_crash", "session": "c.1"}
NAME_ONE = "name one of them, or let 'nemesis' tell of it"
UNKNOWN = "which no other line has; correct it or leave it out"
DRAINED = '{"t":9,"process":"nemesis","event":"drained"}'
ROW: dict[str, Any] = {"t": 1, "process": "p", "event": "send", "message": "m1", "queue": "q"}


def _event(**fields: Any) -> str:
    return json.dumps({"t": 2, "process": "p"} | fields)


def _without(field: str) -> str:
    return json.dumps({key: value for key, value in ROW.items() if key != field})


EVENT_NAMES = (
    "send, resend, confirmed, rejected, in_doubt, delivered, processed, failed, acknowledge, acknowledged, "
    "ack_in_doubt, begin, commit, committed, commit_in_doubt, rollback, rolled_back, recover, close, fault, "
    "recovered, expired, dead_lettered, drained, journal_written, journal_synced, waiting, depth, "
    "returned, lease_expired, prepare, prepared"
)
FAULT_NAMES = (
    "broker_crash, broker_kill, producer_link_loss, consumer_link_loss, producer_crash, consumer_crash, "
    "listener_exception, journal_failure, rejection, acknowledge_timeout"
)

UNREADABLE_LINES: dict[str, tuple[str | bytes, str]] = {
    "torn": ('{"t":2,"process":"p', "it is not JSON (Unterminated string starting at, column 18)"),
    "not JSON": ("hello", "it is not JSON (Expecting value, column 1)"),
    "two objects": (SEND + SEND, f"it is not JSON (Extra data, column {len(SEND) + 1})"),
    "a bare null": ("null", "it is JSON but not an object"),
    "an array": ("[1, 2]", "it is JSON but not an object"),
    "empty object": ("{}", "`t` is missing"),
    "no t": (_without("t"), "`t` is missing"),
    "no process": (_without("process"), "`process` is missing"),
    "no event": (_without("event"), "`event` is missing"),
    "null t": (_event(t=None, event="close"), "`t` is missing"),
    "negative t": (_event(t=-5, event="close"), "`t` is negative (-5)"),
    "t with a fraction": (_event(t=1.5, event="close"), "`t` is not a whole number of 64 bits"),
    "t as text": (_event(t="7", event="close"), "`t` is not a whole number of 64 bits"),
    "t as a flag": (_event(t=True, event="close"), "`t` is not a whole number of 64 bits"),
    "t beyond 64 bits": (_event(t=2**63, event="close"), "`t` is not a whole number of 64 bits"),
    "unknown event": (_event(event="sent"), f"there is no event 'sent'; it is one of {EVENT_NAMES}"),
    "event of a wrong type": (_event(event=5), "`event` is not text"),
    "message of a wrong type": (_event(event="send", message=7), "`message` is not text"),
    "half a surrogate pair": (_event(event="send", message="\ud800"), "`message` is not text"),
    "flag as text": (_event(event="delivered", message="m", redelivered="no"), "`redelivered` is not true or false"),
    "flag as a number": (_event(event="delivered", message="m", redelivered=0), "`redelivered` is not true or false"),
    "negative count": (
        _event(event="delivered", message="m", redelivered=True, delivery_count=-1),
        "`delivery_count` is negative (-1)",
    ),
    "send of nothing": (_event(event="send", queue="q"), "send needs `message`"),
    "delivered without flag": (_event(event="delivered", message="m"), "delivered needs `redelivered`"),
    "fault of no kind": (_event(event="fault"), "fault needs `fault`"),
    "recovered from no kind": (_event(event="recovered"), "recovered needs `fault`"),
    "commit of nothing": (_event(event="commit"), "commit needs `transaction`"),
    "acknowledge without scope": (_event(event="acknowledge", message="m"), "acknowledge needs `scope`"),
    "up to nothing": (_event(event="acknowledge", scope="up_to"), "the scope up_to needs `message`"),
    "unknown scope": (
        _event(event="acknowledge", message="m", scope="all"),
        "there is no scope 'all'; it is one of session, up_to, message",
    ),
    "a whole session confirmed": (
        _event(event="confirmed", message="m", scope="session"),
        "confirmed has the scope message or up_to",
    ),
    "a time-out of nobody": (
        _event(event="fault", fault="acknowledge_timeout", process="nemesis"),
        "acknowledge_timeout needs the `session` that called",
    ),
    "a call that nobody knows waits": (
        _event(event="waiting", error="publish"),
        "there is no call 'publish'; it is one of send, acknowledge, commit, rollback, recover, close, receive",
    ),
    "nobody says which call waits": (_event(event="waiting"), "waiting needs `error`"),
    "half a depth": (_event(event="depth", position=1), "depth needs `delivery_count`"),
    "less than nothing ready": (_event(event="depth", position=-1, delivery_count=0), "`position` is negative (-1)"),
    "unknown fault": (_event(event="fault", fault="fire"), f"there is no fault 'fire'; it is one of {FAULT_NAMES}"),
    "unknown mode": (
        _event(event="send", message="m", delivery_mode="persistent"),
        "there is no delivery_mode 'persistent'; it is one of PERSISTENT, NON_PERSISTENT, RELIABLE, DIRECT",
    ),
    "a field twice": ('{"t":2,"t":3,"process":"p","event":"close"}', "`t` stands in it twice"),
    "a second header": (HEADER, "it is a header, which may only be the first line"),
    "not UTF-8": (b'{"t":2,"process":"\xe9","event":"close"}', "it is not UTF-8 (byte 19)"),
    "NUL bytes": (b"\0" * 16, "it is not JSON (Expecting value, column 1)"),
    "nested deeply": (
        '{"t":2,"process":"p","event":"close","x":' + "[" * 100_000 + "]" * 100_000 + "}",
        "it is nested too deeply",
    ),
    "an endless number": ('{"t":' + "9" * 5000 + "}", "it is not JSON that can be read"),
}


@pytest.mark.parametrize(("line", "why"), UNREADABLE_LINES.values(), ids=UNREADABLE_LINES)
def test_an_unreadable_line_is_counted_described_and_never_a_pass(line: str | bytes, why: str, tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    raw = line if isinstance(line, bytes) else line.encode()
    file.write_bytes(b"\n".join([HEADER.encode(), SEND.encode(), raw, DRAINED.encode(), b""]))
    recorded = verify.read(file)
    assert [(each.line, each.why[: len(why)]) for each in recorded.unreadable] == [(3, why)]
    assert recorded.unreadable_count == 1
    assert len(recorded.events) == 2
    spec = shipped()
    found = verify.examine(recorded, spec, spec.configure("jms"))
    result = verify.judge(found, dict.fromkeys(Anomaly, True))
    assert result.verdict is Verdict.UNKNOWN
    assert any(reason.startswith(f"1 of 3 lines could not be read (line 3: {why}") for reason in result.reasons)


def test_the_first_ten_unreadable_lines_are_described_and_all_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    file.write_text("\n".join([SEND, *["x", '{"t":1}'] * 30]), encoding="utf-8")
    recorded = verify.read(file)
    assert recorded.unreadable_count == 60
    assert [each.line for each in recorded.unreadable] == list(range(2, 12))
    assert str(recorded.unreadable[1]) == "line 3: `process` is missing"


def _jsonl(*lines: str | bytes) -> Callable[[Path], Path]:
    data = b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines)
    return lambda folder: _file(folder / "history.jsonl", data)


def _file(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _gzipped(change: Callable[[bytes], bytes], name: str = "history.jsonl.gz") -> Callable[[Path], Path]:
    return lambda folder: _file(folder / name, change(gzip.compress(f"{SEND}\n{DRAINED}\n".encode() * 500)))


def _parquet(**columns: pa.Array | None) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        given: dict[str, pa.Array | None] = {key: pa.array([value]) for key, value in ROW.items()} | columns
        table = pa.table({name: column for name, column in given.items() if column is not None})
        pq.write_table(table, folder / "history.parquet")
        return folder / "history.parquet"

    return write


def _with_metadata(**metadata: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        pq.write_table(pa.Table.from_pylist([ROW]).replace_schema_metadata(metadata), folder / "history.parquet")
        return folder / "history.parquet"

    return write


def _with_header_beside(text: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        _file(folder / "history.parquet.header.json", text.encode())
        return _parquet()(folder)

    return write


def _two_parts(folder: Path) -> Path:
    for name, profile in (("a", "jms"), ("b", "ems")):
        metadata = {"ackfsm_history": "1", "config": json.dumps({"profile": profile})}
        pq.write_table(pa.Table.from_pylist([ROW]).replace_schema_metadata(metadata), folder / f"{name}.parquet")
    return folder


def _cut_short(folder: Path) -> Path:
    path = _parquet()(folder)
    return _file(path, path.read_bytes()[:-20])


ONE_A_LINE = "a history has one a line (history format 1), and `ackfsm import` reads other logs"
BAD_FILES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "missing": (lambda folder: folder / "none.jsonl", "there is no file {}; name a history"),
    "missing gzip": (lambda folder: folder / "none.jsonl.gz", "there is no file {}; name a history"),
    "missing Parquet": (lambda folder: folder / "none.parquet", "there is no file {}; name a history"),
    "empty": (lambda folder: _file(folder / "h.jsonl", b""), "{} is empty; record the history again"),
    "empty gzip": (
        lambda folder: _file(folder / "h.jsonl.gz", gzip.compress(b"")),
        "{} is empty; record the history again",
    ),
    "empty Parquet": (lambda folder: _file(folder / "h.parquet", b""), "{} is empty; record the history again"),
    "no events": (_jsonl(HEADER), "{} has no event; " + ONE_A_LINE),
    "blank lines": (_jsonl("", " ", ""), "{} has no event; " + ONE_A_LINE),
    "no rows": (
        _parquet(**{name: pa.array([], pa.array([ROW[name]]).type) for name in ROW}),
        "{} has no event; " + ONE_A_LINE,
    ),
    "no readable line": (
        _jsonl("some text", "more text"),
        "{} has no event that can be read (line 1: it is not JSON (Expecting value, column 1)); " + ONE_A_LINE,
    ),
    "Latin-1": (
        _jsonl('{"t":1,"process":"é"}'.encode("latin-1")),
        "{} has no event that can be read (line 1: it is not UTF-8 (byte 19)); " + ONE_A_LINE,
    ),
    "UTF-16": (
        _jsonl(SEND.encode("utf-16")),
        "{} is UTF-16; save it as UTF-8",
    ),
    "byte order mark": (
        _jsonl(b"\xef\xbb\xbf" + HEADER.encode(), SEND),
        "{} begins with a byte order mark; save it as UTF-8 without one",
    ),
    **{
        what: (_jsonl(magic + b"rest"), f"{{}} is {sentence}")
        for what, magic, sentence in (
            ("zstd", b"\x28\xb5\x2f\xfd", "packed with zstd; unpack it, or pack it with gzip"),
            ("bzip2", bz2.compress(b"x")[:9], "packed with bzip2; unpack it, or pack it with gzip"),
            ("xz", lzma.compress(b"x")[:9], "packed with xz; unpack it, or pack it with gzip"),
            ("zip", b"PK\x03\x04", "a zip archive; unpack it, or pack it with gzip"),
            ("Avro", b"Obj\x01", "Avro; write it as JSONL or Parquet"),
        )
    },
    "bzip2 by the name of gzip": (
        lambda folder: _file(folder / "h.jsonl.gz", bz2.compress(SEND.encode())),
        "{} is packed with bzip2; unpack it, or pack it with gzip",
    ),
    "gzip in gzip": (_gzipped(gzip.compress), "{} is gzipped twice; unpack it once"),
    "Parquet in gzip": (
        lambda folder: _file(folder / "h.parquet.gz", gzip.compress(_parquet()(folder).read_bytes())),
        "{} is Parquet inside gzip; unpack it",
    ),
    "truncated gzip": (
        _gzipped(lambda data: data[:-12]),
        "{} is a truncated gzip file; copy it again, or unpack what is left of it",
    ),
    "corrupt gzip": (
        _gzipped(lambda data: data[:40] + b"\xff" * 8 + data[48:]),
        "{} is not a whole gzip file (*); copy it again",
    ),
    "not gzip": (
        lambda folder: _file(folder / "h.jsonl.gz", SEND.encode()),
        "{} is not a whole gzip file (*); copy it again",
    ),
    "Parquet by the name of lines among parts": (
        lambda folder: _parquet()(folder).rename(folder / "history.jsonl").parent,
        "{}/history.jsonl is Parquet; name it .parquet",
    ),
    "not Parquet": (
        lambda folder: _file(folder / "h.parquet", SEND.encode()),
        "{} cannot be read as Parquet (*); write or copy it again",
    ),
    "truncated Parquet": (_cut_short, "{} cannot be read as Parquet (*); write or copy it again"),
    "Parquet without t": (_parquet(t=None), "{} has no column 't'; every history has t, process, event, message"),
    "Parquet without event": (
        _parquet(event=None),
        "{} has no column 'event'; every history has t, process, event, message",
    ),
    "Parquet without message": (
        _parquet(message=None),
        "{} has no column 'message'; every history has t, process, event, message",
    ),
    "t as text": (
        _parquet(t=pa.array(["1"])),
        "{}: the column 't' is string; write it as int64 (a whole number of 64 bits)",
    ),
    "t as timestamp": (
        _parquet(t=pa.array([1], pa.timestamp("ns"))),
        "{}: the column 't' is timestamp[ns]; write it as int64 (a whole number of 64 bits)",
    ),
    "t beyond 64 bits": (
        _parquet(t=pa.array([2**63], pa.uint64())),
        "{} cannot be read as Parquet (*); write or copy it again",
    ),
    "message as number": (
        _parquet(message=pa.array([1])),
        "{}: the column 'message' is int64; write it as string (text)",
    ),
    "flag as number": (
        _parquet(redelivered=pa.array([0])),
        "{}: the column 'redelivered' is int64; write it as bool (true or false)",
    ),
    "text that is not UTF-8": (
        _parquet(message=pa.array([b"\xff"]).view(pa.string())),
        "{} cannot be read as Parquet (*); write or copy it again",
    ),
    "a folder without parts": (
        lambda folder: folder,
        "{} is a folder without parts; name a history, or write parts (*.parquet, or *.jsonl and *.jsonl.gz) to it",
    ),
    "parts of two histories": (
        _two_parts,
        "{}/b.parquet has another configuration than {}/a.parquet; correct one of them",
    ),
    "unknown version": (
        _jsonl('{"ackfsm_history": 2}', SEND),
        "{}, line 1: history format 2 is not known; this version of ackfsm reads format 1",
    ),
    "version as a flag": (
        _jsonl('{"ackfsm_history": true}', SEND),
        "{}, line 1: history format true is not known; this version of ackfsm reads format 1",
    ),
    "unknown setting": (
        _jsonl('{"ackfsm_history": 1, "config": {"ackmode": "AUTO"}}', SEND),
        "{}, line 1: there is no setting 'ackmode' (did you mean ack_mode?); correct the header",
    ),
    "unknown mode": (
        _jsonl('{"ackfsm_history": 1, "config": {"send_mode": "fast"}}', SEND),
        "{}, line 1: send_mode cannot be 'fast'; it is one of blocking, asynchronous, unconfirmed; correct the header",
    ),
    "a profile that is no name": (
        _jsonl('{"ackfsm_history": 1, "config": {"profile": 3}}', SEND),
        "{}, line 1: profile cannot be 3; it is one of jms, *; correct the header",
    ),
    "a setting of a wrong type": (
        _jsonl('{"ackfsm_history": 1, "config": {"prefetch": [1]}}', SEND),
        "{}, line 1: prefetch cannot be [1]; it is a whole number from 0; correct the header",
    ),
    "config is no object": (
        _jsonl('{"ackfsm_history": 1, "config": "jms"}', SEND),
        "{}, line 1: `config` must be an object of settings",
    ),
    "note is no text": (_jsonl('{"ackfsm_history": 1, "note": 5}', SEND), "{}, line 1: `note` must be text"),
    "a fault of a session that nobody has": (
        _jsonl(HEADER, SEND, FAULT.replace("}", ',"session":"c.9"}')),
        "{}, line 3: consumer_link_loss names the session 'c.9', which no other line has; correct it or leave it out",
    ),
    "a repair of a queue that nobody has": (
        _jsonl(SEND, FAULT.replace('"event":"fault"', '"event":"recovered","queue":"Q"')),
        "{}, line 2: consumer_link_loss names the queue 'Q', which no other line has; correct it or leave it out",
    ),
    "a broker's fault of a session": (
        _jsonl(SEND, FAULT.replace("consumer_link_loss", "broker_kill").replace("}", ',"session":"p"}')),
        "{}, line 2: broker_kill hits the broker and not the session 'p'; leave `session` out",
    ),
    "a fault of another's session": (
        _jsonl(SEND, _event(event="close", process="c", session="c.1"), _event(**OF_ANOTHER)),
        "{}, line 3: consumer_crash names 'p', whose session 'c.1' is not; " + NAME_ONE,
    ),
    "an impossible victim in a folder": (
        lambda folder: _jsonl(SEND, FAULT.replace("}", ',"queue":"Q"}'))(folder).parent,
        "{}/history.jsonl, line 2: consumer_link_loss names the queue 'Q', " + UNKNOWN,
    ),
    "unknown version in Parquet": (
        _with_metadata(ackfsm_history="3"),
        "{}, schema metadata: history format 3 is not known; this version of ackfsm reads format 1",
    ),
    "broken metadata": (
        _with_metadata(ackfsm_history="1", config="{"),
        "{}, schema metadata: 'config' is not JSON; write the file again",
    ),
    "broken header beside": (
        _with_header_beside("{"),
        "{}.header.json is not JSON (*); write the header again or remove the file",
    ),
    "no header beside": (
        _with_header_beside("{}"),
        "{}.header.json is no header; it must be an object with 'ackfsm_history': 1",
    ),
}


@pytest.mark.parametrize(("make", "sentence"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_that_is_at_fault_is_refused_in_one_sentence(
    make: Callable[[Path], Path], sentence: str, tmp_path: Path
) -> None:
    path = make(tmp_path)
    with pytest.raises(InputError) as caught:
        verify.read(path)
    expected = re.escape(sentence.replace("{}", str(path)))
    for gap in (r"\(\*\)", r"\ \*;"):
        expected = expected.replace(gap, gap.replace(r"\*", ".+"))
    assert re.fullmatch(expected, str(caught.value)), str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bad_row_of_parquet_is_counted_with_its_number_and_part(tmp_path: Path) -> None:
    bad = {"t": -1, "event": "sent", "process": None}
    for part, rows in (
        ("a", [ROW, ROW]),
        ("b", [ROW, ROW | {"t": -1}, ROW | {"event": "sent"}, ROW | {"process": None}]),
    ):
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / f"{part}.parquet")
    recorded = verify.read(tmp_path)
    assert len(recorded.events) == 3
    assert recorded.unreadable_count == len(bad)
    assert [str(each) for each in recorded.unreadable] == [
        "b.parquet, row 2: `t` is negative (-1)",
        f"b.parquet, row 3: there is no event 'sent'; it is one of {EVENT_NAMES}",
        "b.parquet, row 4: `process` is missing",
    ]


def test_the_first_unreadable_lines_are_in_the_answer(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    file.write_text("\n".join([HEADER, SEND, *['{"t":1}'] * 4, "x", DRAINED]), encoding="utf-8")
    spec = shipped()
    result = verify.judge(verify.examine(verify.read(file), spec, spec.configure("jms")), {})
    missing = [f"line {line}: `process` is missing" for line in (3, 4, 5)]
    assert any(f"5 of 7 lines could not be read ({'; '.join(missing)}; ...)" in reason for reason in result.reasons)
    assert result.as_json()["unreadable"] == [
        *({"line": line, "why": "`process` is missing", "part": None} for line in (3, 4, 5, 6)),
        {"line": 7, "why": "it is not JSON (Expecting value, column 1)", "part": None},
    ]


def test_the_documentation_tells_what_each_event_needs() -> None:
    page = (PROJECT / "docs" / "history.md").read_text(encoding="utf-8")
    for field, events in NEEDS.items():
        (row,) = re.findall(rf"^\| `{field}` \| (`.+`).* \|$", page.partition("| needed by |")[2], re.MULTILINE)
        assert re.findall("`([a-z_]+)`", row.partition(";")[0]) == [event.value for event in events]
