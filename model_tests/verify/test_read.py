"""However a history is stored, cut and parsed, the same events come out."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ackfsm import verify
from ackfsm.history import lines as lines_
from ackfsm.history import open as open_
from ackfsm.history import parquet
from ackfsm.terms import InputError
from model_tests.support.tables import shipped
from model_tests.support.verify.random_histories import histories
from model_tests.support.whole import WHOLE

CONFIG = {"profile": "rabbitmq", "publish_window": 2}
HEADER = {"ackfsm_history": 1, "config": CONFIG, "note": "a note"}
SPEC = shipped()
TEXT = {name for name, field in zip(lines_.SCHEMA.names, lines_.SCHEMA, strict=True) if field.type == pa.string()}

GOOD = (
    b'{"t":1,"process":"p","event":"send","message":"m1","queue":"q"}',
    b'{"t":2,"process":"p","event":"confirmed","message":"m\\u0031"}',
    b'{"process":"c","t":3,"event":"delivered","message":"\xc3\xa9\xe2\x82\xac","redelivered":false,"delivery_count":null}',
    b'{"t":9223372036854775807,"process":"","event":"close","unknown":{"deep":[1,{"x":null}]}}',
    b'{"t":0,"process":"p","event":"close","unknown":NaN,"other":1e5,"other":2}',
    b'{"t":4,"process":"c","event":"acknowledge","scope":"session","position":-7,"error":"[{"}\r',
    b' \t{"t":5,"process":"nemesis","event":"drained"} ',
    b'{"t":6,"process":"p","event":"close","ackfsm_history":null,"nested":' + b"[" * 200 + b"]" * 200 + b"}",
)
BAD = (
    b"",
    b"   ",
    b"null",
    b"[]",
    b'{"t":1}{"t":2}',
    b'{"t":1,"process":"p","event":"close"} null',
    b'{"t":1,',
    b'"process":"p","event":"close"}',
    b'{"t":-1,"process":"p","event":"close"}',
    b'{"t":1,"t":1,"process":"p","event":"close"}',
    b'{"t":1e3,"process":"p","event":"close"}',
    b'{"t":1,"process":"\xff","event":"close"}',
    b'{"t":1,"process":"p","event":"close","unknown":"\xff"}',
    b'{"t":1,"process":"p","event":"close","ackfsm_history":1}',
    b'{"ackfsm_history":1}',
)
_raw_lines = st.lists(st.one_of(st.sampled_from(GOOD), st.sampled_from(GOOD + BAD)), max_size=12)


def _alone(lines: Sequence[bytes]) -> tuple[list[tuple[int, Any]], list[tuple[int, str]]]:
    """The events and the unreadable lines, each line parsed by itself."""
    events, unreadable = [], []
    for number, line in enumerate(lines, 1):
        parsed = lines_.parse_block(line, number)
        events += list(zip(parsed.lines.tolist(), parsed.events.to_pylist(), strict=True))
        unreadable += [(each.line, each.why) for each in parsed.unreadable]
    return events, unreadable


def _together(parsed: lines_.Parsed) -> tuple[list[tuple[int, Any]], list[tuple[int, str]]]:
    assert parsed.unreadable_count >= len(parsed.unreadable)
    events = list(zip(parsed.lines.tolist(), parsed.events.to_pylist(), strict=True))
    return events, [(each.line, each.why) for each in parsed.unreadable]


@given(_raw_lines)
def test_a_line_means_the_same_alone_and_among_others(lines: list[bytes]) -> None:
    """Good lines among bad ones are parsed one by one, and good blocks at once: both must agree."""
    events, unreadable = _alone(lines)
    parsed = lines_.parse_block(b"\n".join(lines))
    assert _together(parsed) == (events, unreadable[: lines_.REPORTED])
    assert parsed.unreadable_count == len(unreadable)
    assert parsed.events.schema == lines_.SCHEMA


@pytest.mark.parametrize("line", GOOD)
def test_the_good_lines_of_this_test_are_good(line: bytes) -> None:
    assert lines_.parse_block(line).unreadable_count == 0


@pytest.mark.parametrize("line", [line for line in BAD if line.strip()])
def test_the_bad_lines_of_this_test_are_bad(line: bytes) -> None:
    assert lines_.parse_block(line).unreadable_count == 1


@given(data=st.binary(max_size=80))
def test_no_bytes_at_all_upset_the_parser(data: bytes) -> None:
    parsed = lines_.parse_block(data)
    assert len(parsed.events) == 0
    assert parsed.unreadable_count == sum(bool(line.strip(b" \t\r")) for line in data.split(b"\n"))


def _shown(recorded: verify.History) -> tuple[Any, ...]:
    """All that can be seen of a history but its path."""
    assert recorded.header is not None
    found = verify.examine(recorded, SPEC, SPEC.configure(None, recorded.header.config))
    columns = [
        getattr(recorded.events, name).tolist() for name in ("t", "event", "scope", "redelivered", "delivery_count")
    ]
    named = [
        recorded.events.names[name].take(pa.array(codes, mask=codes < 0)).to_pylist()
        for name in recorded.events.names
        for codes in (np.asarray(getattr(recorded.events, name)),)
    ]
    return recorded.header, columns, named, found.anomalies, found.counters, found.messages, recorded.unreadable_count


def _write_jsonl(events: list[dict[str, Any]], folder: Path) -> Path:
    path = folder / "history.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [HEADER, *events]), encoding="utf-8")
    return path


def _write_gzip(events: list[dict[str, Any]], folder: Path) -> Path:
    path = folder / "history.jsonl.gz"
    path.write_bytes(gzip.compress(_write_jsonl(events, folder).read_bytes()))
    return path


def _table(events: list[dict[str, Any]]) -> pa.Table:
    present = [name for name in lines_.SCHEMA.names if any(name in event for event in events) or name == "message"]
    return pa.Table.from_pylist(events, pa.schema([lines_.SCHEMA.field(name) for name in present]))


def _write_parquet(events: list[dict[str, Any]], folder: Path) -> Path:
    """Columns that no event has are left out; the header stands in the metadata."""
    metadata = {"ackfsm_history": "1", "config": json.dumps(CONFIG), "note": HEADER["note"]}
    pq.write_table(_table(events).replace_schema_metadata(metadata), folder / "history.parquet")
    return folder / "history.parquet"


def _write_other_parquet(events: list[dict[str, Any]], folder: Path) -> Path:
    """Other types of the same meaning, a column of no meaning; the header stands beside the file."""
    table = _table(events).append_column("comment", pa.nulls(len(events)))
    for i, name in enumerate(table.schema.names):
        if name in TEXT:
            table = table.set_column(
                i, name, table[name].dictionary_encode() if i % 2 else table[name].cast(pa.large_string())
            )
        elif name == "delivery_count":
            table = table.set_column(i, name, table[name].cast(pa.int16()))
    path = folder / "other.parquet"
    pq.write_table(table, path, row_group_size=7)
    path.with_name("other.parquet.header.json").write_text(json.dumps(HEADER), encoding="utf-8")
    return path


def _write_parts(events: list[dict[str, Any]], folder: Path) -> Path:
    """A folder of parts, the first with the header; what is no part is let be."""
    parts = folder / "parts"
    parts.mkdir(exist_ok=True)
    (parts / "_SUCCESS").touch()
    metadata = {"ackfsm_history": "1", "config": json.dumps(CONFIG), "note": HEADER["note"]}
    third = len(events) // 3
    for i, rows in enumerate((events[:third], events[third : 2 * third], events[2 * third :])):
        table = _table(events).slice(0, 0) if not rows else pa.Table.from_pylist(rows, _table(events).schema)
        pq.write_table(table.replace_schema_metadata(metadata if i == 0 else None), parts / f"part-{i}.parquet")
    return parts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("histories")


@pytest.mark.parametrize("write", [_write_gzip, _write_parquet, _write_other_parquet, _write_parts])
@settings(max_examples=25 if WHOLE else 8)
@given(events=histories())
def test_the_kind_of_file_does_not_matter(
    write: Callable[[list[dict[str, Any]], Path], Path], folder: Path, events: list[dict[str, Any]]
) -> None:
    expected = _shown(verify.read(_write_jsonl(events, folder)))
    assert _shown(verify.read(write(events, folder))) == expected


@pytest.mark.parametrize("size", [1, 64, 500])
def test_the_size_of_a_block_does_not_matter(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [json.dumps(HEADER).encode(), *GOOD, *BAD, *GOOD]
    (tmp_path / "h.jsonl").write_bytes(b"\n".join(lines))
    whole = verify.read(tmp_path / "h.jsonl")
    monkeypatch.setattr(open_, "BLOCK", size)
    cut = verify.read(tmp_path / "h.jsonl")
    assert _shown(cut) == _shown(whole)
    assert cut.unreadable == whole.unreadable
    assert whole.unreadable_count == sum(bool(line.strip()) for line in BAD)


def test_the_number_of_rows_in_a_batch_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"t": t, "process": "p", "event": "send", "message": f"m{t % 5}"} for t in range(-2, 30)]
    path = _write_parquet(rows, tmp_path)
    whole = verify.read(path)
    monkeypatch.setattr(parquet, "ROWS", 4)
    assert _shown(verify.read(path)) == _shown(whole)
    assert [each.line for each in whole.unreadable] == [1, 2]


@pytest.mark.parametrize("before", [b"", b"{}\n"])
def test_a_line_without_an_end_is_given_up(before: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_, "BLOCK", 1 << 10)
    monkeypatch.setattr(open_, "LONGEST_LINE", 1 << 12)
    (tmp_path / "h.jsonl").write_bytes(before + b"x" * 10_000)
    with pytest.raises(InputError, match="has a line of more than 4096 bytes; a history has one event a line"):
        verify.read(tmp_path / "h.jsonl")


def test_the_header_is_read_without_the_events(tmp_path: Path) -> None:
    events = [{"t": 1, "process": "p", "event": "send", "message": "m"}]
    for write in (_write_jsonl, _write_gzip, _write_parquet, _write_other_parquet, _write_parts):
        header = verify.read_header(write(events, tmp_path))
        assert header is not None
        assert (header.config, header.note) == (CONFIG, "a note")


def test_a_history_without_header_says_nothing_of_itself(tmp_path: Path) -> None:
    (tmp_path / "h.jsonl").write_bytes(GOOD[0])
    recorded = verify.read(tmp_path / "h.jsonl")
    assert recorded.header is None
    assert len(recorded.events) == 1
