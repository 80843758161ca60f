"""What a history, a journal or a file name says is data: on a screen it is escaped and short, whatever it says."""

from __future__ import annotations

import json
import sqlite3
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from ackfsm.cli import main
from ackfsm.showing.draw import Arrow, SequenceDiagram, sequence_mermaid, sequence_plantuml, sequence_svg
from ackfsm.terms import InputError, parse_value
from ackfsm.text import printable, quoted
from model_tests.support.whole import few, in_turn

VERDICT = "valid: all that was found is allowed"
FORGED = frozenset({VERDICT, "valid: no anomaly was found", "valid: 1 loss, all allowed by this configuration"})
LONG = "m" * 300_000

HOSTILE = {
    "lines": f"m\n{VERDICT}\n\nx",
    "returns": f"m\r{VERDICT}\r\n",
    "a screen that is cleared": f"\x1b[2J\x1b[H\x1b[32m{VERDICT}\x1b[8m",
    "a title": "\x1b]0;owned\x07",
    "C1 controls": f"\x9b2J\x85{VERDICT}\x85\x90q\x9c",
    "NUL and others": "\x00\x08\x08\x7f\x0b\x0c",
    "another direction": "\u202egnihton \u2066dnuof\u2069 \u200f\u061c",
    "separators": f"a\u2028{VERDICT}\u2029b",
    "markup": "[bold green]valid[/] [link=file:///etc/passwd]x[/link] [/] :warning:",
    "a verdict": VERDICT,
    "a verdict that wraps": f"{'x' * 60} {VERDICT} {'y' * 170}",
    "tags and unassigned characters": "\U000e0041\U000e007f\ue000\uffff",
    "half a pair": "\ud800",
    "long": LONG,
    "long lines": f"\n{VERDICT}" * 10_000,
}


CONFIG = {"profile": "jms", "ack_mode": "AUTO_ACKNOWLEDGE", "consumption": "receive"}


def _history(config: object = None, **hostile: object) -> list[dict[str, Any]]:
    """A history in which much is amiss; ``hostile`` has fields that stand in all events that have them."""
    rows: list[dict[str, Any]] = [
        {"process": "p", "event": "send", "queue": "q", "message": "m1", "delivery_mode": "PERSISTENT"},
        {"process": "p", "event": "confirmed", "queue": "q", "message": "m1"},
        {"process": "p", "event": "begin", "transaction": "t1", "session": "s"},
        {"process": "p", "event": "send", "queue": "q", "message": "m2", "transaction": "t1"},
        {"process": "p", "event": "send", "queue": "q", "message": "m3", "transaction": "t1"},
        {"process": "p", "event": "commit", "transaction": "t1", "session": "s"},
        {"process": "p", "event": "committed", "transaction": "t1", "session": "s"},
        {"process": "c", "event": "delivered", "queue": "q", "message": "m3", "session": "c1", "redelivered": False},
        {"process": "c", "event": "delivered", "queue": "q", "message": "m4", "session": "c1", "redelivered": False},
        {"process": "p", "event": "send", "queue": "q", "message": "m4"},
        {"process": "c", "event": "acknowledge", "session": "c1", "message": "m4", "scope": "message"},
        {"process": "n", "event": "fault", "fault": "broker_kill"},
        {"process": "c", "event": "close", "session": "c1", "error": "the connection broke"},
        {"process": "n", "event": "drained"},
        {"process": "p", "event": "send", "queue": "undrained", "message": "m5", "session": "s"},
    ]
    named = {name: value for name, value in hostile.items() if name != "header"}
    events = [
        {"t": 1000 * t, **row, **{name: value for name, value in named.items() if name in row}}
        for t, row in enumerate(rows)
    ]
    return [
        {"ackfsm_history": 1, "config": config or CONFIG, **dict.fromkeys(hostile.keys() & {"note"}, LONG)},
        *events,
    ]


def _file(tmp_path: Path, lines: list[dict[str, Any]]) -> Path:
    file = tmp_path / "history.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="ascii")
    return file


def _assert_harmless(said: str) -> None:
    assert said
    assert all(character.isprintable() or character == "\n" for character in said)
    assert not FORGED.intersection(line.strip() for line in said.splitlines())
    assert len(said) < 20_000


def _verify(file: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """What the screen of ``verify`` says, and that its JSON says nothing else to a terminal."""
    code = main(["verify", str(file), *options])
    told = "".join(capsys.readouterr())
    assert main(["verify", str(file), "--json", *options]) == code
    out, err = capsys.readouterr()
    assert out.isascii()
    assert all(character.isprintable() or character == "\n" for character in out + err)
    if out:
        _assert_harmless("\n".join(json.loads(out)["reasons"]))
    else:
        _assert_harmless(err)
    assert code
    return told


FIELDS = ("message", "queue", "process", "session", "transaction", "error")


@pytest.mark.parametrize(("field", "name"), few(in_turn(FIELDS, list(HOSTILE), 2), 5))
def test_no_name_in_a_history_reaches_the_screen_raw(
    field: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither that of its verdict nor one that explains it."""
    file = _file(tmp_path, _history(**{field: HOSTILE[name]}))
    _assert_harmless(_verify(file, capsys))
    for options in ([], ["--at", "0.000005s"], ["--as", "mermaid"], ["--as", "svg"]):
        main(["explain", str(file), *options])
        said = "".join(capsys.readouterr())
        assert all(character.isprintable() or character == "\n" for character in said)
        assert not FORGED.intersection(line.strip() for line in said.splitlines())
        assert len(said) < 30_000


def test_an_id_of_ten_megabytes_is_shown_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _file(tmp_path, [line | {"message": "m" * 10_000_000} if "message" in line else line for line in _history()])
    main(["verify", str(file)])
    said = "".join(capsys.readouterr())
    _assert_harmless(said)
    assert "(10,000,000 characters)" in " ".join(said.split())


READABLE = {name: text for name, text in HOSTILE.items() if name != "half a pair"}
"""A line with half a surrogate pair is unreadable."""


@pytest.mark.parametrize("text", READABLE.values(), ids=READABLE)
def test_an_id_is_in_quotation_marks(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line | {"message": text} if line.get("message") == "m1" else line for line in _history()]
    said = _verify(_file(tmp_path, lines), capsys, "--all")
    _assert_harmless(said)
    assert "".join(quoted(text, 64).split()) in "".join(said.split())


def test_without_a_trick_an_id_looks_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = _verify(_file(tmp_path, [line for line in _history() if line.get("message") != "m4"]), capsys, "--all")
    assert "loss of 2 messages ('m1', 'm2')" in " ".join(said.split())


@pytest.mark.parametrize("kind", few([*HOSTILE], 6))
def test_no_name_of_a_process_whose_clock_differs_reaches_the_screen_raw(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = HOSTILE[kind]
    lines = [line | {"process": text} if line.get("process") == "c" else line for line in _history()]
    file = _file(tmp_path, lines)
    for options in ([], ["--skew", "10us", "--never", "loss,unprocessed,phantom"]):
        said = _verify(file, capsys, *options)
        _assert_harmless(said)
        assert text == HOSTILE["half a pair"] or "".join(quoted(text, 64).split()) in "".join(said.split())


WORDS = ("event", "fault", "scope", "delivery_mode")


@pytest.mark.parametrize(("field", "name"), few(in_turn(WORDS, list(HOSTILE), 1), 6))
def test_no_word_that_the_format_does_not_know_reaches_the_screen_raw(
    field: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header, *events = _history()
    unread = next(event for event in events if field in event)
    lines = [header, *(event | {field: HOSTILE[name]} if event is unread else event for event in events)]
    said = _verify(_file(tmp_path, lines), capsys)
    _assert_harmless(said)
    assert "could not be read" in said


@pytest.mark.parametrize("kind", few([*HOSTILE], 6))
def test_no_setting_of_a_header_reaches_the_screen_raw(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = HOSTILE[kind]
    for config in (
        {**CONFIG, text: 1},
        {**CONFIG, "ack_mode": text},
        {**CONFIG, "prefetch": text},
        {**CONFIG, "queue_durable": text},
        {**CONFIG, "prefetch": [text]},
        {"profile": text},
    ):
        said = _verify(_file(tmp_path, _history(config=config)), capsys)
        _assert_harmless(said)
        assert "correct the header" in said or "its header: profile cannot be" in said


@pytest.mark.parametrize("kind", few([*HOSTILE], 6))
def test_no_version_or_note_of_a_header_reaches_the_screen_raw(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = HOSTILE[kind]
    header, *events = _history()
    said = _verify(_file(tmp_path, [header | {"note": text}, *events]), capsys)
    _assert_harmless(said)
    said = _verify(_file(tmp_path, [header | {"ackfsm_history": text}, *events]), capsys)
    _assert_harmless(said)
    assert "this version of ackfsm reads format 1" in said


NAMES = {name: text for name, text in READABLE.items() if "\0" not in text and len(text) < 240} | {
    "no UTF-8": "\udcff\udc9b",
    "another forged line": "valid: no anomaly was found",
}


def _code(arguments: list[str]) -> object:
    try:
        return main(arguments)
    except SystemExit as stopped:
        return stopped.code


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_no_name_of_a_file_reaches_the_screen_raw(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = Path(name.replace("/", "-"))
    _file(tmp_path, _history()).rename(file)
    _assert_harmless(_verify(file, capsys))
    file.write_text("")
    _assert_harmless(_verify(file, capsys))
    file.unlink()
    _assert_harmless(_verify(file, capsys))
    for arguments in (["journal", "verify", str(file)], ["--x" + str(file)], ["verify", "--x" + str(file)]):
        assert _code(arguments) == 2
        _assert_harmless("".join(capsys.readouterr()))


def test_no_name_of_a_part_reaches_the_screen_raw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    events = [{**event, "redelivered": event.get("redelivered")} for event in _history()[1:]]
    events[3]["event"] = HOSTILE["lines"]
    names = sorted({name for event in events for name in event})
    table = pa.table({name: [event.get(name) for event in events] for name in names})
    folder = tmp_path / "parts"
    folder.mkdir()
    pq.write_table(table, folder / f"\x1b[2J\n{VERDICT}\n.parquet")
    said = _verify(folder, capsys, "--profile", "jms")
    _assert_harmless(said)
    assert "row 4" in said


@pytest.mark.parametrize("form", ["sqlite", "damaged"])
def test_nothing_in_a_journal_reaches_the_screen_raw(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "\x1b[2J[bold]x.db"
    with sqlite3.connect(file) as database:
        database.execute(f'CREATE TABLE "\x1b[2J\n{VERDICT}" (x)')
        database.execute('CREATE TABLE "entry" ("\x1b[2J")')
    database.close()
    if form == "damaged":
        data = file.read_bytes()
        file.write_bytes(data.replace(b"CREATE TABLE", b"CREATE \x1b[2J\n", 1))
    main(["journal", "verify", str(file)])
    _assert_harmless("".join(capsys.readouterr()))


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_value_that_no_setting_can_have_is_told_escaped_and_short(text: str) -> None:
    for key in ("ack_mode", "prefetch", "queue_durable", text):
        for value in (text, [text], {text: text}):
            with pytest.raises(InputError) as refused:
                parse_value(key, value)
            _assert_harmless(str(refused.value))


DIAGRAM = ["lines", "returns", "a screen that is cleared", "C1 controls", "another direction", "separators", "markup"]


@pytest.mark.parametrize(
    "text", [*(HOSTILE[name] for name in DIAGRAM), "<script>&amp;", "a; b # c\nc->>p: forged", "x"]
)
def test_a_diagram_holds_its_text_as_text(text: str) -> None:
    diagram = SequenceDiagram(text, ("p", "c"), (Arrow(1, "p", "c", text, because=text),), ("x",))
    for write in (sequence_mermaid, sequence_plantuml):
        written, plain = (
            write(diagram),
            write(SequenceDiagram("x", ("p", "c"), (Arrow(1, "p", "c", "x", "x"),), ("x",))),
        )
        assert all(character.isprintable() or character == "\n" for character in written)
        assert not [line for line in written.splitlines() if line.strip().startswith(("c->>p", "<script"))]
        assert len(written.splitlines()) == len(plain.splitlines())
    drawn = sequence_svg([diagram])
    words = [element.text for element in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314
    assert any(printable(text.split(maxsplit=1)[0])[:20] in (word or "") for word in words)
    assert "<script>" not in drawn


def test_what_is_printable_stays_as_it_is() -> None:
    told = "a sentence: C:\\x, 'é', “日本”, …"
    assert printable(told) == told
    assert printable("a\nb\x1b[2J\ud800\u202e") == "a\\nb\\x1b[2J\\ud800\\u202e"
    assert printable("m" * 5_000) == "m" * 2_000 + "… (5,000 characters)"
