"""Logs, traces and tables of somebody else, with the mappings of tables: whole, damaged or odd."""

from __future__ import annotations

import contextlib
import copy
import csv
import gzip
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import yaml
from hypothesis import strategies as st

from ackfsm.history.format import Event
from ackfsm.history.importing import FORMATS
from model_tests.fuzz.files import Laboratory, damage, write_parquet
from model_tests.fuzz.words import JUNK, mostly
from model_tests.support.importing import SAMPLES
from model_tests.support.verify.random_histories import histories

__all__ = ["FORMS", "foreign", "mapping", "table"]

FORMS: Final = tuple(FORMATS)

_SAMPLES: Final = {
    "otlp": ("orders-otlp.jsonl",),
    "jepsen": ("jepsen-queue.edn",),
    "rabbitmq-firehose": ("orders-firehose.jsonl",),
    "rabbitmq-tracing": ("orders-tracing.log", "orders-tracing-json.log"),
    "artemis": ("artemis.log", "artemis-audit.log"),
    "activemq": ("activemq.log",),
}

_MOST: Final = 120
"""Lines of a sample that are kept."""

_COLUMNS: Final = (
    "t",
    "process",
    "event",
    "message",
    "queue",
    "session",
    "scope",
    "redelivered",
    "transaction",
    "fault",
)

_SAME: Final[dict[str, Any]] = {name: name for name in _COLUMNS if name not in {"t", "redelivered"}}

_MAPPINGS: Final[tuple[dict[str, Any], ...]] = (
    {"ackfsm_mapping": 1, **_SAME, "time": {"column": "t", "unit": "us"}, "redelivered": "redelivered"},
    {
        "ackfsm_mapping": 1,
        "input": "csv",
        "csv": {"delimiter": ",", "quote": '"', "encoding": "utf-8", "null": ["", "-"]},
        "config": {"profile": "rabbitmq", "ack_mode": "CLIENT_ACKNOWLEDGE"},
        "cannot_show": ["processed", "fault"],
        "time": {"column": "t", "format": "iso", "zone": "Europe/Berlin"},
        "event": {"column": "event", "values": {"send": "send", "delivered": "delivered", "commit": "ignore"}},
        "process": {"template": "{process}-{queue}"},
        "message": "message",
        "redelivered": {"column": "redelivered", "true": ["True", 1], "false": ["False"]},
        "scope": {"constant": "message"},
        "ignore": {"event": ["begin", "fault"]},
    },
    {
        "ackfsm_mapping": 1,
        "message": "message",
        "process": "process",
        "rows": [
            {"where": {"event": "send"}, "time": {"column": "t", "unit": "ns"}, "event": {"constant": "send"}},
            {
                "where": {"event": ["delivered", "failed"]},
                "time": {"column": "t", "unit": "ns"},
                "event": {"constant": ["delivered", "processed"]},
                "redelivered": {"constant": False},
            },
        ],
    },
    {
        "ackfsm_mapping": 1,
        "input": "lines",
        "lines": {
            "patterns": [r"^(?P<t>\d+),(?P<process>[^,]*),(?P<event>\w+),(?P<message>[^,]*)"],
            "others": "unread",
        },
        "time": {"column": "t", "unit": "ms"},
        "event": "event",
        "process": "process",
        "message": "message",
        "redelivered": {"column": "t", "above": 5},
        "delivery_count": {"column": "t", "add": 1},
        "scope": {"constant": "session"},
    },
)


def foreign(draw_: st.DrawFn, laboratory: Laboratory) -> tuple[str, str]:
    """The name of a format, and that of a file that is mostly of it."""
    form = draw_(st.sampled_from([*FORMS, *("table",) * (len(FORMS) - 2)]))
    if form == "table":
        return form, table(draw_, laboratory)
    name = draw_(st.sampled_from(_SAMPLES[form]))
    data = _spoilt(draw_, (SAMPLES / name).read_bytes())
    named = form if draw_(st.integers(0, 9)) else draw_(mostly(FORMS))
    return named, str(_stored(draw_, laboratory, data, Path(name).suffix))


def table(draw_: st.DrawFn, laboratory: Laboratory) -> str:
    """The name of a table of events: CSV, JSON lines, Parquet or lines of text."""
    rows = draw_(histories().filter(bool))
    ending = draw_(st.sampled_from([".csv", ".csv", ".tsv", ".jsonl", ".parquet", ".log", ".txt", ""]))
    if ending == ".parquet":
        file = laboratory.fresh(ending)
        write_parquet(file, rows)
        if not draw_(st.integers(0, 3)):
            damage(draw_, file)
        return str(file)
    text = "".join(f"{json.dumps(row)}\n" for row in rows) if ending == ".jsonl" else _as_csv(rows, ending)
    return str(_stored(draw_, laboratory, _spoilt(draw_, text.encode()), ending))


def _as_csv(rows: list[dict[str, Any]], ending: str) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, _COLUMNS, extrasaction="ignore", delimiter="\t" if ending == ".tsv" else ",")
    if ending != ".log":
        writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def mapping(draw_: st.DrawFn, laboratory: Laboratory) -> str:
    """The name of a mapping, now and then a wrong one."""
    document: Any = copy.deepcopy(draw_(st.sampled_from(_MAPPINGS)))
    for _ in range(draw_(st.sampled_from([0, 0, 1, 1, 3]))):
        _change(draw_, document)
    file = laboratory.fresh(".yaml")
    file.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8", errors="surrogatepass")
    if not draw_(st.integers(0, 7)):
        damage(draw_, file)
    return str(file)


_WORDS: Final = (
    *(
        "t",
        "event",
        "{t}",
        "{",
        "{x}",
        "{}",
        "no such column",
        "send",
        "ignore",
        "nanoseconds",
        "Mars/Base",
        "%Y",
        "%Q",
    ),
    *("(?P<t>.*)", "(", "(?P<t>a+)+$", "utf-16", "rot13", "base64", "\\", ",", "csv", "lines", "parquet"),
    *(event.value for event in Event),
)


def _change(draw_: st.DrawFn, document: Any) -> None:
    """Put another value at some place of a mapping, or take it out, or put a key in."""
    odd: st.SearchStrategy[Any] = st.one_of(
        st.sampled_from([*_WORDS, *JUNK]),
        st.sampled_from(
            [None, True, 0, -1, 10**30, 1.5, float("nan"), [], {}, [[]], ["x"], {"x": "y"}, {"column": "t"}]
        ),
        st.sampled_from([copy.deepcopy(value) for value in _MAPPINGS[1].values()]),
    )
    at = document
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return
        key = draw_(st.sampled_from(keys))
        if not isinstance(at[key], dict | list) or draw_(st.booleans()):
            break
        at = at[key]
    how = draw_(st.sampled_from(["put", "put", "put", "take", "add"]))
    if how == "take":
        del at[key]
    elif how == "add" and isinstance(at, dict):
        at[draw_(st.sampled_from([*_WORDS, *JUNK, *_MAPPINGS[1], 1, None]))] = draw_(odd)
    else:
        at[key] = draw_(odd)


# noise


def _spoilt(draw_: st.DrawFn, data: bytes) -> bytes:
    """A part of the lines, of which a few are changed."""
    lines = data.splitlines(keepends=True)
    first = draw_(st.sampled_from([*(0,) * 8, 1, len(lines) // 2]))
    lines = lines[first : first + draw_(st.sampled_from([*(_MOST,) * 6, 10, 1]))]
    for _ in range(draw_(st.sampled_from([0, 1, 1, 3]))):
        if lines:
            at = draw_(st.integers(0, len(lines) - 1))
            lines[at : at + 1] = draw_(st.sampled_from(_NOISES))(draw_, lines[at])
    return b"".join(lines)


def _other_word(draw_: st.DrawFn, line: bytes) -> list[bytes]:
    words = list(re.finditer(rb"[\w.:-]+", line))
    if not words:
        return [line]
    word = draw_(st.sampled_from(words))
    junk = draw_(st.sampled_from([*JUNK, "null", "[]", "0x1", "9" * 400, "1e400", '"', "#inst", "ID:"]))
    return [line[: word.start()] + junk.encode("utf-8", "surrogatepass") + line[word.end() :]]


def _other_value(draw_: st.DrawFn, line: bytes) -> list[bytes]:
    """Another value somewhere in a line of JSON."""
    with contextlib.suppress(ValueError):
        document = json.loads(line)
        if isinstance(document, dict | list):
            _change(draw_, document)
            return [json.dumps(document).encode() + b"\n"]
    return [line]


def _cut(draw_: st.DrawFn, line: bytes) -> list[bytes]:
    return [line[: draw_(st.integers(0, len(line)))]]


_NOISES: Final[tuple[Callable[[st.DrawFn, bytes], list[bytes]], ...]] = (
    _other_word,
    _other_word,
    _other_value,
    _other_value,
    _cut,
    lambda *_: [],
    lambda _, line: [line, line],
    lambda draw_, line: [line, draw_(st.sampled_from([b"\xff\xfe", b"\0", b"\r", b"{", b"\xef\xbb\xbf", b'"'])), line],
)


def _stored(draw_: st.DrawFn, laboratory: Laboratory, data: bytes, ending: str) -> Path:
    packed = not draw_(st.integers(0, 5))
    file = laboratory.fresh(f"{ending}.gz" if packed else ending)
    file.write_bytes(gzip.compress(data) if packed else data)
    if not draw_(st.integers(0, 7)):
        damage(draw_, file)
    return file
