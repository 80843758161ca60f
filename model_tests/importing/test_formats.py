"""Are formats found by name, loaded only when they are asked for, and problems counted?"""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from ackfsm.history.format import EVENTS, FIELDS, SHOWABLE
from ackfsm.history.importing import FORMATS, Options, Problems, format_named
from ackfsm.history.importing.rows import BATCH, Rows
from ackfsm.history.importing.write import unread_rows
from ackfsm.history.lines import SCHEMA, drop_invalid
from ackfsm.terms import InputError


def test_the_list_of_formats_loads_no_reader() -> None:
    code = "import sys, ackfsm.history.importing; print(sorted({'pyarrow', 'numpy'} & set(sys.modules)), list(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.startswith("[] ")
    assert not any(f"'{each.module}'" in out for each in FORMATS.values())


def test_every_format_says_what_it_is_in_a_line_and_needs_a_mapping_or_none() -> None:
    for name, each in FORMATS.items():
        assert name == each.name
        assert 0 < len(each.description) < 80
        if each.mapped:
            with pytest.raises(InputError, match="needs a mapping"):
                each.importer(Options())
        else:
            assert set(each.importer(Options()).cannot_show) <= SHOWABLE


def test_a_name_that_there_is_not_gets_the_nearest() -> None:
    with pytest.raises(InputError, match=r"there is no format 'Table' \(did you mean table\?\)"):
        format_named("Table")


def test_what_may_be_missing_is_events_and_fields_that_not_every_line_has() -> None:
    assert {str(each) for each in EVENTS} | set(FIELDS) == SHOWABLE | {"t", "process", "event", "message"}


def test_rows_become_batches_of_the_format() -> None:
    rows, found = Rows(), list[pa.RecordBatch]()
    for number in range(BATCH + 5):
        rows.add(t=number, process="p", event="send", **({"queue": "q"} if number % 7 == 0 else {}))
        found += rows.full()
    found += rows.rest()
    assert [batch.num_rows for batch in found] == [BATCH, 5]
    assert all(batch.schema.equals(SCHEMA) for batch in found)
    queues = [queue for batch in found for queue in batch["queue"].to_pylist()]
    assert queues == ["q" if number % 7 == 0 else None for number in range(BATCH + 5)]
    with pytest.raises(KeyError):
        rows.add(tiem=1)


def test_problems_are_counted_by_reason_with_the_first_places() -> None:
    problems = Problems()
    for line in range(1, 6):
        problems.unread("no id", "a.log", line=line)
    problems.unread("no time", "b\x1b.log", row=7, count=10)
    problems.left_out("spans of other kinds", 4)
    assert problems.count == 15
    assert [str(each) for each in problems.reasons()] == [
        "no time (b\\x1b.log row 7, ...)",
        "no id (a.log line 1, a.log line 2, a.log line 3, ...)",
    ]
    assert problems.all_left_out() == {"spans of other kinds": 4}
    with pytest.raises(ValueError, match="no event or field"):
        problems.not_shown("nothing", "why")


def test_reasons_without_end_are_counted_as_one() -> None:
    problems = Problems()
    for number in range(1_000):
        problems.unread(f"reason {number}")
    assert problems.count == 1_000
    assert len(problems.reasons()) == 101
    assert problems.reasons()[0].reason == "other reasons"


def test_every_record_that_could_not_be_read_is_a_line_that_cannot_be_read() -> None:
    problems = Problems()
    problems.unread("no id", "a.log", line=3, count=BATCH + 2)
    problems.unread("no time", count=2)
    rows = [row for batch in unread_rows(problems.reasons()) for row in batch.to_pylist()]
    assert len(rows) == BATCH + 4
    assert rows[0]["error"] == "no id (a.log line 3)"
    assert rows[1]["error"] == rows[BATCH + 1]["error"] == "no id"
    for batch in unread_rows(problems.reasons()):
        parsed = drop_invalid(batch, pa.array(range(batch.num_rows)).to_numpy())
        assert parsed.unreadable_count == batch.num_rows
        assert parsed.unreadable[0].why.startswith("an importer could not read it: 'no ")
