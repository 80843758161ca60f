"""Lines that are read in one pass over their bytes come out as those that are parsed, whatever stands among them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest  # noqa: TC002 - fixtures are looked at while it runs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ackfsm.history import plain_lines
from ackfsm.history.columns import ABSENT
from ackfsm.history.format import FIELDS, VOCABULARY, Event, Kind
from ackfsm.history.gathered import Gathered, ReadLines, numbered_again
from ackfsm.history.lines import parse_block
from ackfsm.history.plain_lines import read_lines
from ackfsm.history.scan import Text

COMPLETE: dict[str, Any] = {
    "t": 1,
    "process": "p",
    "event": "delivered",
    "queue": "q",
    "message": "m",
    "session": "s",
    "redelivered": False,
}

_names = st.sampled_from(
    ["p", "q", "nemesis", "broker", "", "m1", "m2", "a-name-of-8", "01234567", "0123456789abcdef", "0123456789abcdeg"]
) | st.text(max_size=20)
_whole = st.integers(0, 9) | st.integers(-(2**65), 2**65) | st.sampled_from([2**63 - 1, 2**63, -1, -(2**63), 10**19])
_odd = st.sampled_from([None, True, 1.0, 1e300, "text", [], {}, [[1]], {"t": 1}])


def _values(name: str) -> st.SearchStrategy[Any]:
    if name in VOCABULARY:
        return st.sampled_from(VOCABULARY[name]) | st.sampled_from([None, "send ", "x"])
    kinds = {Kind.TEXT: _names, Kind.WHOLE: _whole, Kind.FLAG: st.booleans()}
    return st.one_of(kinds[FIELDS[name]], kinds[FIELDS[name]], _odd)


_members = st.lists(st.sampled_from([*FIELDS, "note", "ackfsm_history"]), max_size=8).flatmap(
    lambda names: st.tuples(*(st.tuples(st.just(name), _values(name) if name in FIELDS else _odd) for name in names))
)


@st.composite
def _objects(draw: st.DrawFn) -> bytes:
    """An object whose members have any order, blanks and values; some are left out, replaced, or there twice."""
    members = [*COMPLETE.items(), *draw(_members)] if draw(st.booleans()) else [*draw(_members)]
    if draw(st.booleans()):
        members = list(dict(members).items())
    if draw(st.booleans()):
        members = draw(st.permutations(members))
    ascii_, blank = draw(st.booleans()), st.sampled_from(["", "", " ", "\t", "\r"])
    texts = [f"{json.dumps(n)}{draw(blank)}:{draw(blank)}{json.dumps(v, ensure_ascii=ascii_)}" for n, v in members]
    text = f"{draw(blank)},{draw(blank)}".join(texts)
    return f"{draw(blank)}{{{text}}}{draw(blank)}".encode(errors="surrogatepass")


@st.composite
def _plain(draw: st.DrawFn) -> bytes:
    """One as most are."""
    event = draw(st.sampled_from([Event.SEND, Event.DELIVERED, Event.ACKNOWLEDGE, Event.COMMIT, Event.FAULT]))
    members = {**COMPLETE, "t": draw(st.integers(0, 2**63 - 1)), "event": event, "message": draw(_names)}
    members |= {"scope": "session"} if event == Event.ACKNOWLEDGE else {}
    members |= {"transaction": draw(_names)} if event == Event.COMMIT else {}
    members |= {"fault": "broker_kill", "process": "nemesis"} if event == Event.FAULT else {}
    for name in draw(st.sets(st.sampled_from(["queue", "session"]))):
        del members[name]
    return json.dumps(members, ensure_ascii=False).encode(errors="surrogatepass")


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    """One with some bytes lost, changed or added."""
    line = draw(_plain() | _objects())
    begin = draw(st.integers(0, len(line)))
    end = draw(st.integers(begin, min(len(line), begin + 4)))
    return (
        line[:begin]
        + draw(st.binary(max_size=2) | st.sampled_from([b"\\", b'"', b"\xff", b"\0", b"\n", b"0"]))
        + line[end:]
    )


_line = st.one_of(_plain(), _plain(), _objects(), _damaged(), st.sampled_from([b"", b" ", b"\r", b"null", b"{}"]))
_texts = st.tuples(st.lists(_line, max_size=12), st.sampled_from([b"\n", b"\r\n"]), st.booleans()).map(
    lambda its: its[1].join(its[0]) + its[1] * its[2]
)


def _shown(told: ReadLines) -> dict[str, Any]:
    """All that comes of some lines: types, numbers, names in their order, and what cannot be read."""
    gathered = Gathered()
    gathered.add(told, "a file")
    columns = gathered.columns[0] if gathered.columns else None
    shown: dict[str, Any] = {
        "unreadable": gathered.unreadable,
        "count": gathered.unreadable_count,
        "remarks": gathered.remarks,
        "victims": gathered.victims,
    }
    if columns is not None and len(columns):
        shown |= {name: (column.dtype, column.tolist()) for name, column in columns.numbers.items()}
        shown |= {f"names of {name}": (column.indices, column.dictionary) for name, column in columns.named.items()}
    return shown


def _parsed(data: bytes, first: int, part: str | None) -> ReadLines:
    parsed = parse_block(data, first, part)
    return ReadLines(None, (parsed,), data.count(b"\n"))


@settings(max_examples=400)
@given(data=_texts, first=st.integers(1, 5))
@example(data=b'{"t":1,"process":"p","event":"send","message":"\xc3\xa9"}\n{"t":\xff}', first=1)
@example(data=b'{"t":1,"process":"p","event":"send","message":"\xff"}', first=1)
@example(data=b'{"t":9223372036854775808,"process":"p","event":"close"}', first=1)
@example(data=b'{"t":9223372036854775807,"process":"p","event":"close"}', first=1)
@example(data=b'{"t":1,"process":"p","event":"close","position":9223372036854775808}', first=1)
@example(data=b'{"t":1,"process":"p","event":"close","t":2}', first=1)
@example(data=b'{"t":1,"process":"nemesis","event":"fault","fault":"acknowledge_timeout"}', first=1)
@example(data=b'{"t":-0,"process":"p","event":"close"}\n{"t":01,"process":"p","event":"close"}', first=1)
@example(data=b'{"t":1,"process":"p","event":"close","delivery_count":-1}\n', first=1)
@example(data=b'{"t":1,"process":"p","event":"close","position":1.5}\n', first=1)
@example(
    data=b'{"t":1,"process":"p","event":"close","redelivered":nullx}\n{"t":1,"process":"p","event":"close"}x', first=1
)
def test_what_is_scanned_is_what_is_parsed(data: bytes, first: int) -> None:
    assert _shown(read_lines(Text.of(data), first, "a part")) == _shown(_parsed(data, first, "a part"))


def test_ordinary_lines_are_not_parsed() -> None:
    """Else all would be right, and slow."""
    lines = [json.dumps({**COMPLETE, "t": t, "message": f"m{t // 2}"}) for t in range(3000)]
    told = read_lines(Text.of("\n".join(lines).encode()))
    assert told.parsed == ()
    assert told.plain is not None
    assert told.plain.numbers["t"].tolist() == list(range(3000))
    assert len(told.plain.named["message"].dictionary) == 1500


def test_only_lines_that_are_not_plain_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand where they stood, a block of some of them at a time."""
    monkeypatch.setattr(plain_lines, "LINES_PARSED_AT_ONCE", 200)
    lines = [
        json.dumps({**COMPLETE, "t": t, "message": f"{t}", **({"note": t} if t % 7 == 3 else {})}) for t in range(99)
    ]
    told = read_lines(Text.of("\n".join(lines).encode()), 5)
    assert [line for parsed in told.parsed for line in parsed.lines.tolist()] == [*range(5 + 3, 5 + 99, 7)]
    assert len(told.parsed) > 3
    gathered = Gathered()
    gathered.add(told, "a file")
    (rows,) = gathered.columns
    assert rows.numbers["line"].tolist() == list(range(5, 5 + 99))
    assert rows.named["message"].to_pylist() == [f"{t}" for t in range(99)]


def test_names_that_no_row_has_are_dropped() -> None:
    column = numbered_again(np.array([2, ABSENT, 0, 2], np.int32), pa.array(["a", "b", "c"]))
    assert column.to_pylist() == ["c", None, "a", "c"]
    assert column.dictionary.to_pylist() == ["c", "a"]
