"""The header of a history: wherever it stands, twice, contradicted, or with keys that nobody knows."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ackfsm import verify
from ackfsm.terms import InputError

ROW = {"t": 1, "process": "p", "event": "send", "queue": "q", "message": "m1"}
JMS = '{"ackfsm_history": 1, "config": {"profile": "jms"}, "note": "a note"}'
EMS = '{"ackfsm_history": 1, "config": {"profile": "ems"}}'
NOTE = '{"ackfsm_history": 1, "note": "another"}'

TWICE = {
    "config": ('{"ackfsm_history": 1, "config": {"profile": "jms"}, "config": {"profile": "ems"}}', "config"),
    "config, the same": ('{"ackfsm_history": 1, "config": {"profile": "jms"}, "config": {"profile": "jms"}}', "config"),
    "a setting": ('{"ackfsm_history": 1, "config": {"prefetch": 1, "prefetch": 2}}', "prefetch"),
    "the version": ('{"ackfsm_history": 2, "ackfsm_history": 1}', "ackfsm_history"),
    "deep in a key that nobody knows": ('{"ackfsm_history": 1, "x": [{"y": {"z": 1, "z": 2}}]}', "z"),
    "spelt differently": ('{"ackfsm_history": 1, "config": {}, "\\u0063onfig": {}}', "config"),
}


def _parquet(path: Path, metadata: Mapping[str, str] | Sequence[tuple[str, str]] | None = None) -> Path:
    schema = pa.Table.from_pylist([ROW]).schema
    if metadata is not None:
        schema = schema.with_metadata(pa.KeyValueMetadata(metadata))
    pq.write_table(pa.Table.from_pylist([ROW], schema), path)
    return path


def _lines(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in (*lines, json.dumps(ROW))))
    return path


def _refused(path: Path) -> str:
    said = set()
    for look in (verify.read, verify.read_header):
        with pytest.raises(InputError) as caught:
            look(path)
        said.add(str(caught.value))
    (sentence,) = said
    return sentence


def _config(path: Path) -> Mapping[str, object] | None:
    header, read = verify.read_header(path), verify.read(path).header
    assert header == read
    return header.config if header else None


@pytest.mark.parametrize(("header", "key"), TWICE.values(), ids=TWICE)
def test_a_key_that_stands_twice_in_a_header_is_refused(header: str, key: str, tmp_path: Path) -> None:
    why = f"{key!r} stands in the header twice; keep one of them"
    assert _refused(_lines(tmp_path / "h.jsonl", header)) == f"{tmp_path}/h.jsonl, line 1: {why}"
    path = _parquet(tmp_path / "h.parquet", {"ackfsm_history": header})
    assert _refused(path) == f"{path}, schema metadata: {why}"
    _parquet(path)
    (tmp_path / "h.parquet.header.json").write_text(header)
    assert _refused(path) == f"{path}.header.json: {why}"


def test_a_setting_that_stands_twice_in_metadata_is_refused(tmp_path: Path) -> None:
    metadata = {"ackfsm_history": "1", "config": '{"prefetch": 1, "prefetch": 2}'}
    path = _parquet(tmp_path / "h.parquet", metadata)
    assert _refused(path) == f"{path}, schema metadata: 'prefetch' stands in the header twice; keep one of them"


@pytest.mark.parametrize("key", ["ackfsm_history", "config", "note"])
def test_an_entry_that_stands_twice_in_metadata_is_refused(key: str, tmp_path: Path) -> None:
    entries = [("ackfsm_history", "1"), ("config", '{"profile": "jms"}'), ("note", "a")]
    path = _parquet(tmp_path / "h.parquet", [*entries, *(entry for entry in entries if entry[0] == key)])
    assert _refused(path) == f"{path}, schema metadata: an entry stands in it twice; write the file again"


def test_metadata_holds_the_whole_header_or_its_parts(tmp_path: Path) -> None:
    parts = {"ackfsm_history": "1", "config": '{"profile": "jms"}', "note": "a note"}
    for metadata in ({"ackfsm_history": JMS}, {"ackfsm_history": JMS, "note": "foreign"}, parts):
        header = verify.read_header(_parquet(tmp_path / "h.parquet", metadata))
        assert header == verify.Header({"profile": "jms"}, "a note")
    both = _parquet(tmp_path / "h.parquet", parts | {"ackfsm_history": JMS})
    assert _refused(both) == f"{both}, schema metadata: 'config' stands beside a whole header; keep one of them"
    none = _parquet(tmp_path / "h.parquet", {"ackfsm_history": '{"config": {}}'})
    assert "'ackfsm_history' is no header; it must be an object with 'ackfsm_history': 1" in _refused(none)


def test_a_header_beside_must_not_contradict_the_one_inside(tmp_path: Path) -> None:
    path, beside = _parquet(tmp_path / "h.parquet", {"ackfsm_history": JMS}), tmp_path / "h.parquet.header.json"
    beside.write_text(EMS)
    assert _refused(path) == f"{path} has another configuration than {beside}; correct one of them"
    beside.write_text(JMS)
    assert _config(path) == {"profile": "jms"}
    beside.write_text(NOTE)
    assert _config(path) == {"profile": "jms"}
    lines = _lines(tmp_path / "h.jsonl", JMS)
    (tmp_path / "h.jsonl.header.json").write_text(EMS)
    assert _refused(lines) == f"{lines} has another configuration than {lines}.header.json; correct one of them"


def test_a_name_to_which_nothing_can_be_added_has_no_header_beside(tmp_path: Path) -> None:
    assert _config(_lines(tmp_path / ("x" * 250), JMS)) == {"profile": "jms"}


def test_what_is_no_file_beside_is_no_header(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "h.jsonl.header.json")
    assert _config(_lines(tmp_path / "h.jsonl", JMS)) == {"profile": "jms"}


def test_spellings_of_one_configuration_do_not_contradict_each_other(tmp_path: Path) -> None:
    path = _parquet(tmp_path / "h.parquet", {"ackfsm_history": '{"ackfsm_history": 1, "config": {"prefetch": "7"}}'})
    (tmp_path / "h.parquet.header.json").write_text('{"ackfsm_history": 1, "config": {"prefetch": 7}}')
    assert verify.read(path).header is not None


@pytest.mark.parametrize("place", ["a.jsonl", "b.jsonl.header.json", "../parts.header.json"])
def test_all_headers_of_a_folder_are_one(place: str, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        _lines(folder / name)
    assert _config(folder) is None
    if place == "a.jsonl":
        _lines(folder / place, JMS)
    else:
        (folder / place).write_text(JMS)
    assert _config(folder) == {"profile": "jms"}
    _lines(folder / "b.jsonl", EMS)
    assert _refused(folder).startswith(f"{folder}/b.jsonl has another configuration than {tmp_path}/parts")


def test_a_second_header_is_a_line_that_is_no_event(tmp_path: Path) -> None:
    recorded = verify.read(_lines(tmp_path / "h.jsonl", JMS, EMS))
    assert recorded.header == verify.Header({"profile": "jms"}, "a note")
    assert [str(each) for each in recorded.unreadable] == ["line 2: it is a header, which may only be the first line"]


def test_what_a_header_says_of_a_line_is_read_wherever_it_stands(tmp_path: Path) -> None:
    header = '{"ackfsm_history": 1, "dead_lettered": "moved"}'
    beside = _lines(tmp_path / "b.jsonl", JMS)
    (tmp_path / "b.jsonl.header.json").write_text(header)
    parts = {"ackfsm_history": "1", "dead_lettered": "moved"}
    whole, apart = ({"ackfsm_history": header}, tmp_path / "w.parquet"), (parts, tmp_path / "p.parquet")
    for path in (_lines(tmp_path / "h.jsonl", header), beside, *(_parquet(file, of) for of, file in (whole, apart))):
        found = verify.read(path).header
        assert found is not None
        assert (found, found.words) == (verify.read_header(path), {"dead_lettered": "moved"})
    both = _parquet(tmp_path / "h.parquet", {"ackfsm_history": JMS, "dead_lettered": "moved"})
    assert _refused(both) == f"{both}, schema metadata: 'dead_lettered' stands beside a whole header; keep one of them"


@pytest.mark.parametrize(("word", "said"), [('"gone"', "'gone'"), ("7", "7"), ('["moved"]', '["moved"]')])
def test_a_word_that_no_line_has_is_refused(word: str, said: str, tmp_path: Path) -> None:
    path = _lines(tmp_path / "h.jsonl", f'{{"ackfsm_history": 1, "dead_lettered": {word}}}')
    assert _refused(path) == f"{path}, line 1: `dead_lettered` says {said}; say moved, or leave it out"


def test_other_keys_of_a_header_are_for_people(tmp_path: Path) -> None:
    path = _lines(tmp_path / "h.jsonl", '{"ackfsm_history": 1, "recorder": "mine", "config": {"profile": "jms"}}')
    assert _config(path) == {"profile": "jms"}


QUEUES = '{"ackfsm_history": 1, "queues": {"q": {"profile": "artemis", "prefetch": "7"}, "r": {}}}'
OTHER_QUEUES = '{"ackfsm_history": 1, "queues": {"q": {"profile": "artemis", "prefetch": 8}}}'


def test_a_header_has_settings_of_queues_wherever_it_stands(tmp_path: Path) -> None:
    of_queues = {"q": {"profile": "artemis", "prefetch": "7"}, "r": {}}
    lines = _lines(tmp_path / "h.jsonl", QUEUES)
    whole = _parquet(tmp_path / "h.parquet", {"ackfsm_history": QUEUES})
    parts = _parquet(tmp_path / "p.parquet", {"ackfsm_history": "1", "queues": json.dumps(of_queues)})
    beside = _lines(tmp_path / "b.jsonl", JMS)
    (tmp_path / "b.jsonl.header.json").write_text(QUEUES)
    for path in (lines, whole, parts, beside):
        header = verify.read(path).header
        assert header is not None
        assert (header, header.queues) == (verify.read_header(path), of_queues)
    assert header is not None
    assert header.config == {"profile": "jms"}
    assert (header.place, header.place_of_queues) == (f"{beside}, line 1", f"{beside}.header.json")


def test_headers_must_not_contradict_each_other_in_queues(tmp_path: Path) -> None:
    path, beside = _lines(tmp_path / "h.jsonl", QUEUES), tmp_path / "h.jsonl.header.json"
    for other in (OTHER_QUEUES, '{"ackfsm_history": 1, "queues": {}}'):
        beside.write_text(other)
        assert _refused(path) == f"{path} has another configuration of queues than {beside}; correct one of them"
    for same in (QUEUES.replace('"7"', "7"), JMS, NOTE):
        beside.write_text(same)
        assert verify.read(path).header is not None
    both = _parquet(tmp_path / "h.parquet", {"ackfsm_history": QUEUES, "queues": "{}"})
    assert _refused(both) == f"{both}, schema metadata: 'queues' stands beside a whole header; keep one of them"


@pytest.mark.parametrize(
    ("queues", "why"),
    [
        ('{"q": {"prefetsch": 1}}', ", queue 'q': there is no setting 'prefetsch'"),
        ('{"q": {"prefetch": "many"}}', ", queue 'q': prefetch"),
        ('{"q": {"ack_mode": "PERHAPS"}}', ", queue 'q': ack_mode"),
        ('{"q": {"profile": 7}}', ", queue 'q': profile"),
        ('{"q": 7}', ": `queues` must be an object that has an object of settings for each queue"),
        ("[]", ": `queues` must be an object that has an object of settings for each queue"),
        ('{"q": {}, "q": {}}', ": 'q' stands in the header twice; keep one of them"),
    ],
)
def test_settings_of_queues_are_checked_like_the_others(queues: str, why: str, tmp_path: Path) -> None:
    path = _lines(tmp_path / "h.jsonl", f'{{"ackfsm_history": 1, "queues": {queues}}}')
    said = _refused(path)
    assert said.startswith(f"{path}, line 1{why}")
    assert "correct" in said or "keep one" in said
