"""Is a history the same after it was written as somebody's table and imported by a mapping of that table?"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ackfsm import verify
from ackfsm.history.format import Event
from ackfsm.history.importing import Options, Problems, format_named
from ackfsm.history.importing.write import import_history

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8).filter(
    lambda text: text.strip() == text
)
WORDS = {"S": "send", "C": "confirmed", "D": "delivered", "P": "processed", "A": "acknowledge", "E": "expired"}
TIMES = st.integers(0, 4 * 10**18)

Row = Mapping[str, Any]


@st.composite
def events(draw: st.DrawFn) -> Row:
    event = draw(st.sampled_from(sorted(WORDS.values())))
    row: dict[str, Any] = {"t": draw(TIMES), "process": draw(TEXT), "event": event, "message": draw(TEXT)}
    if draw(st.booleans()):
        row["queue"] = draw(TEXT)
    if event == Event.DELIVERED:
        row |= {"redelivered": draw(st.booleans()), "delivery_count": draw(st.integers(0, 9))}
    if event == Event.ACKNOWLEDGE:
        row["scope"] = "message"
    return row


MAPPING = {
    "ackfsm_mapping": 1,
    "time": {"column": "when", "format": "iso"},
    "event": {"column": "what", "values": WORDS},
    "process": "who",
    "message": {"template": "{id}/{part}"},
    "queue": "where",
    "scope": {"constant": "message"},
    "redelivered": {"column": "again", "true": ["Y"], "false": ["N"]},
    "delivery_count": {"column": "tries", "add": -1},
}


def as_table(rows: Sequence[Row]) -> list[dict[str, str]]:
    """The inverse of the mapping."""
    words = {event: word for word, event in WORDS.items()}
    return [
        {
            "when": iso(row["t"]),
            "what": words[row["event"]],
            "who": row["process"],
            "id": row["message"][:1],
            "part": row["message"][2:],
            "where": row.get("queue", ""),
            "again": {True: "Y", False: "N", None: ""}[row.get("redelivered")],
            "tries": str(row["delivery_count"] + 1) if "delivery_count" in row else "",
        }
        for row in rows
    ]


def iso(t: int) -> str:
    seconds, rest = divmod(t, 10**9)
    return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}.{rest:09}Z"


def in_parts(row: Row) -> Row:
    """With an id that a template can make."""
    return {**row, "message": f"{row['message'][:1]}/{row['message']}"}


def written_csv(rows: Sequence[Mapping[str, str]], path: Path) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def written_jsonl(rows: Sequence[Mapping[str, str]], path: Path) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def written_parquet(rows: Sequence[Mapping[str, str]], path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([{name: value or None for name, value in row.items()} for row in rows]), path)


def imported(path: Path, mapping: Mapping[str, Any], folder: Path) -> tuple[list[Row], Problems]:
    place = folder / "mapping.yaml"
    place.write_text(yaml.safe_dump(dict(mapping)), encoding="utf-8")
    problems = Problems()
    found = format_named("table").importer(Options(mapping=place)).batches([path], problems)
    rows = [row for batch in found for row in batch.to_pylist()]
    return [{name: value for name, value in row.items() if value is not None} for row in rows], problems


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(events().map(in_parts), min_size=1, max_size=12), form=st.sampled_from(["csv", "csv.gz", "jsonl"]))
def test_a_table_that_was_made_of_events_gives_these_events(rows: list[Row], form: str, tmp_path: Path) -> None:
    path = tmp_path / f"table.{form}"
    (written_jsonl if form == "jsonl" else written_csv)(as_table(rows), path)
    found, problems = imported(path, MAPPING, tmp_path)
    assert found == rows
    assert problems.count == 0


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(events().map(in_parts), min_size=1, max_size=12))
def test_so_does_one_in_parquet(rows: list[Row], tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    written_parquet(as_table(rows), path)
    assert imported(path, MAPPING, tmp_path)[0] == rows


@pytest.mark.parametrize("form", ["history.parquet", "history.jsonl", "history.jsonl.gz"])
def test_what_is_written_is_read_again_with_its_header(form: str, tmp_path: Path) -> None:
    rows = [
        {"t": 5, "process": "p", "event": "send", "message": "a/1"},
        {"t": 7, "process": "c", "event": "delivered", "message": "a/1", "redelivered": True, "delivery_count": 3},
    ]
    written_csv(as_table(rows), tmp_path / "table.csv")
    (tmp_path / "m.yaml").write_text(yaml.safe_dump(MAPPING), encoding="utf-8")
    importer = format_named("table").importer(Options(mapping=tmp_path / "m.yaml"))
    found = import_history(importer, [tmp_path / "table.csv"], tmp_path / form, {"config": {"profile": "jms"}})
    history = verify.read(tmp_path / form)
    assert found.events == {"send": 1, "delivered": 1}
    assert history.events.t.tolist() == [5, 7]
    assert history.events.redelivered.tolist() == [-1, 1]
    assert history.unreadable_count == 0
    assert history.header is not None
    assert history.header.config == {"profile": "jms"}
    assert "drained" in history.header.cannot_show
    assert "delivered" not in history.header.cannot_show


def test_one_row_of_a_table_may_tell_several_events(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text(
        "id,sent,got,done,node\nm1,10,20,30,n1\nm2,11,,,n2\nm3,,,,n3\n", encoding="utf-8"
    )
    mapping = {
        "ackfsm_mapping": 1,
        "message": "id",
        "process": "node",
        "scope": {"constant": "message"},
        "rows": [
            {"time": {"column": "sent", "unit": "ms"}, "event": {"constant": "send"}},
            {"time": {"column": "got", "unit": "ms"}, "event": {"constant": "delivered"}},
            {"time": {"column": "done", "unit": "ms"}, "event": {"constant": ["acknowledge", "acknowledged"]}},
        ],
    }
    found, problems = imported(tmp_path / "orders.csv", mapping, tmp_path)
    assert [(row["message"], row["event"], row["t"]) for row in found] == [
        ("m1", "send", 10_000_000),
        ("m1", "delivered", 20_000_000),
        ("m1", "acknowledge", 30_000_000),
        ("m1", "acknowledged", 30_000_000),
        ("m2", "send", 11_000_000),
    ]
    assert [(each.count, each.places) for each in problems.reasons()] == [(1, (f"{tmp_path}/orders.csv row 3",))]


def test_lines_of_text_are_read_by_patterns(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text(
        "2026-03-01 10:00:00,250 [main] INFO sent id=a-1 to orders\n"
        "2026-03-01 10:00:01,000 [main] INFO got id=a-1 again=true\n"
        "Traceback (most recent call last):\n",
        encoding="utf-8",
    )
    mapping = {
        "ackfsm_mapping": 1,
        "lines": {
            "patterns": [
                r"^(?P<at>\S+ \S+) \[(?P<who>\w+)\] INFO sent id=(?P<id>\S+) to (?P<queue>\S+)$",
                r"^(?P<at>\S+ \S+) \[(?P<who>\w+)\] INFO got id=(?P<id>\S+) again=(?P<again>\w+)$",
            ]
        },
        "time": {"column": "at", "format": "iso", "zone": "Europe/Berlin"},
        "event": {"column": "pattern", "values": {"1": "send", "2": "delivered"}},
        "process": "who",
        "message": "id",
        "queue": "queue",
        "redelivered": "again",
    }
    found, problems = imported(tmp_path / "app.log", mapping, tmp_path)
    nine = 1_772_355_600 * 10**9
    assert found == [
        {"t": nine + 250_000_000, "process": "main", "event": "send", "message": "a-1", "queue": "orders"},
        {"t": nine + 10**9, "process": "main", "event": "delivered", "message": "a-1", "redelivered": True},
    ]
    assert [str(each) for each in problems.reasons()] == [
        f"no pattern of the mapping matches it ({tmp_path}/app.log line 3)"
    ]
    ignoring = {**mapping, "lines": {**mapping["lines"], "others": "ignore"}}  # type: ignore[dict-item] # a mapping
    again, others = imported(tmp_path / "app.log", ignoring, tmp_path)
    assert (again, others.count) == (found, 0)
    assert others.all_left_out() == {"lines that no pattern of the mapping matches": 1}
