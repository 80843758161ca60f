"""Does everything that cannot be imported end with one sentence and exit code 2, or as lines that cannot be read?"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from ackfsm import cli, verify
from model_tests.support.commands import AS_PROMISED, UNDETERMINED, USAGE

MAPPING = """
ackfsm_mapping: 1
time: {column: ts, unit: ms}
event: {column: what, values: {SENT: send, GOT: delivered, BEAT: ignore}}
process: who
message: id
redelivered: again
"""
ROWS = "ts,what,who,id,again\n1,SENT,p,m1,\n2,GOT,c,m1,false\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.yaml").write_text(MAPPING, encoding="utf-8")
    Path("t.csv").write_text(ROWS, encoding="utf-8")


def imported(*more: str, rows: str | None = None, mapping: str | None = None, output: str = "h.jsonl") -> int:
    if rows is not None:
        Path("t.csv").write_text(rows, encoding="utf-8")
    if mapping is not None:
        Path("m.yaml").write_text(mapping, encoding="utf-8")
    return cli.main(["import", "table", "--mapping", "m.yaml", "t.csv", "-o", output, *more])


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ("", "m.yaml:1: the table is empty"),
        ("- 1", "the mapping: [1] is not of type 'object'"),
        (MAPPING.replace("ackfsm_mapping: 1", "ackfsm_mapping: 2"), "m.yaml:2: `ackfsm_mapping` is 1"),
        (
            MAPPING + "tiem: ts\n",
            "m.yaml:8: the mapping has no key 'tiem' (did you mean time?); it is one of",
        ),
        (MAPPING.replace("unit: ms", "unit: hours"), "m.yaml:3: `time` is the name of a column, or"),
        (MAPPING.replace("unit: ms", "zone: Mars/Base"), "m.yaml:3: there is no time zone 'Mars/Base'"),
        (MAPPING.replace("SENT: send", "SENT: sendd"), "m.yaml:4: there is no event 'sendd'; it is ignore, or of send"),
        (MAPPING.replace("process: who", ""), "`process` is missing; every event has one"),
        (MAPPING.replace("message: id", "message: {template: id}"), "m.yaml:6: the template 'id' names no column"),
        (MAPPING + "scope: {constant: messages}\n", "m.yaml:8: there is no scope 'messages'; it is one of session"),
        (MAPPING + "cannot_show: [drains]\n", "m.yaml:8: 'drains' is no event or field"),
        (MAPPING + "cannot_show: [send]\n", "m.yaml:8: the mapping gives `send`; take it out of `cannot_show`"),
        (MAPPING + "input: lines\n", "`input: lines` and the key `lines` with `patterns` belong together"),
        (MAPPING + "lines: {patterns: ['(']}\n", "m.yaml:8: '(' is no regular expression"),
        (MAPPING + "lines: {patterns: ['(?=a)(?P<a>a)']}\n", "m.yaml:8: '(?=a)(?P<a>a)' is no regular expression"),
        (MAPPING + "lines: {patterns: ['a']}\n", "m.yaml:8: 'a' names no column"),
        (MAPPING + "config: {profile: jms, ack: no}\n", "no setting 'ack'"),
        (MAPPING + "config: {profile: nobody}\n", "nobody"),
        ("a: &a [*a]", "m.yaml:1: this contains itself"),
        ("a: {", "m.yaml:2: not YAML"),
        ("a: b\nc: \x12\n", "m.yaml:2: not YAML: control characters are not allowed; correct the line"),
        (MAPPING + "csv: {encoding: rot13}\n", "m.yaml:8: there is no encoding 'rot13'; write it as utf8 or latin1"),
        (
            MAPPING + "lines: {patterns: ['(?P<ts>.*)']}\ncsv: {encoding: utf9}\n",
            "m.yaml:9: there is no encoding 'utf9'",
        ),
    ],
)
def test_a_wrong_mapping_is_refused_with_its_line(mapping: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(mapping=mapping) == USAGE
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not Path("h.jsonl").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            ["import", "tabel", "t.csv", "-o", "h.parquet"],
            "there is no format 'tabel' (did you mean table?); it is one of table",
        ),
        (["import", "table", "t.csv", "-o", "h.parquet"], "table needs a mapping"),
        (["import", "table", "--mapping", "m.yaml", "t.csv"], "name the file that the history goes to"),
        (["import", "table", "--mapping", "m.yaml", "t.csv", "-o", "h.txt"], "h.txt names no form of a history"),
        (["import", "table", "--mapping", "m.yaml", "none.csv", "-o", "h.jsonl"], "there is no file none.csv"),
        (["import", "table", "--mapping", "none.yaml", "t.csv", "-o", "h.jsonl"], "none.yaml: cannot be read"),
        (["import", "table", "--mapping", "m.yaml", ".", "-o", "h.jsonl"], ". is a folder; name its files"),
        (["import", "table", "--mapping", "m.yaml", "m.yaml", "-o", "h.jsonl"], "its name does not tell what it is"),
        (["import", "--guess", "none.csv"], "there is no file none.csv; name another file"),
        (["verify", "--mapping", "m.yaml", "t.csv"], "--mapping is for --format table"),
        (["verify", "--format", "tables", "t.csv"], "there is no format 'tables' (did you mean table?)"),
        (["verify", "--format", "m.yaml", "t.csv"], "name the format table, and --mapping 'm.yaml'"),
        (["explain", "--format", "table", "t.csv"], "table needs a mapping"),
    ],
)
def test_a_wrong_command_is_refused(line: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(line) == USAGE
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_file_that_is_not_what_the_mapping_says_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for rows, said in [
        ("", "t.csv is empty"),
        (
            "ts,what,id,again\n1,SENT,m1,\n",
            "t.csv has no column 'who', which m.yaml names; it has 'ts', 'what', 'id', 'again': correct",
        ),
        ("ts,what,who,id,again\n", "there is no event in t.csv"),
        ("ts,what,who,id,again\nx,SENT,p,m1,\n", "of 1 records, none could be read: `ts` is no time"),
    ]:
        assert imported(rows=rows) == USAGE
        assert said in capsys.readouterr().err
    Path("t.csv").write_bytes(b"ts,what,who,id,again\n1,SENT,p,m\xff,\n")
    assert imported() == USAGE
    assert "t.csv cannot be read as CSV" in capsys.readouterr().err
    Path("t.csv.gz").write_bytes(gzip.compress(ROWS.encode() * 100)[:-30])
    assert cli.main(["import", "table", "--mapping", "m.yaml", "t.csv.gz", "-o", "h.jsonl"]) == USAGE
    assert "truncated gzip" in capsys.readouterr().err
    assert not Path("h.jsonl").exists()


UNREAD = """ts,what,who,id,again
1,SENT,p,m1,
2,GOT,c,m1,maybe
3,WHAT,c,m1,
4,BEAT,c,,
x,SENT,p,m2,
,SENT,p,m3,
5,,p,m4,
6,SENT,p,,
7,SENT,,m5,
8,SENT
"""


def test_a_row_that_cannot_be_read_becomes_a_line_that_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert imported("--json", rows=UNREAD) == UNDETERMINED
    told = json.loads(capsys.readouterr().out)
    assert told["events"] == {"send": 1}
    assert {each["reason"]: each["count"] for each in told["unread"]} == {
        "delivered needs `redelivered`": 1,
        "`what` is 'WHAT', which `values` of the mapping does not have": 1,
        "`ts` is no time of the form that the mapping says": 1,
        "`ts` is empty, and there is no other time": 1,
        "`what` is empty": 1,
        "send needs `message`": 1,
        "`process` is missing": 1,
        "it has 2 columns, and not 5": 1,
    }
    assert told["left_out"] == {"rows that are to be ignored by `what`, as the mapping says": 1}
    assert told["unread"][1]["places"] == ["t.csv row 3"]
    history = verify.read("h.jsonl")
    assert len(history.events) == 1
    assert history.unreadable_count == 8
    assert history.unreadable[0].why.startswith("an importer could not read it: '")


@pytest.mark.parametrize("output", ["h.parquet", "h.jsonl", "h.jsonl.gz"])
def test_what_could_not_be_read_makes_the_verdict_unknown(output: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ROWS + "3,WHAT,c,m1,\n"
    assert imported("--profile", "jms", rows=rows, output=output) == UNDETERMINED
    capsys.readouterr()
    assert cli.main(["verify", "--json", output]) == UNDETERMINED
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["parse_errors"]) == ("unknown", 1)
    assert "an importer could not read it: '`what` is \\'WHAT\\'" in told["reasons"][0]


def test_verify_reads_another_format_as_import_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert imported("--profile", "jms") == AS_PROMISED
    screen = capsys.readouterr().out
    assert "h.jsonl written: 2 events" in screen
    assert screen.rstrip().endswith("ackfsm verify h.jsonl")
    codes = [cli.main(["verify", "--json", "h.jsonl"])]
    whole = json.loads(capsys.readouterr().out)
    codes.append(
        cli.main(["verify", "--json", "--format", "table", "--mapping", "m.yaml", "--profile", "jms", "t.csv"])
    )
    directly = json.loads(capsys.readouterr().out)
    assert codes[0] == codes[1]
    assert directly.pop("history") == "t.csv"
    assert {**whole, "history": None} == {**directly, "history": None}
    assert cli.main(
        ["explain", "--format", "table", "--mapping", "m.yaml", "--profile", "jms", "t.csv", "--message", "m1"]
    )
    assert "delivered" in capsys.readouterr().out


def test_an_id_of_control_characters_is_never_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(rows=ROWS + "3,\x1b[31mRED,c,m1,\n") == UNDETERMINED
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err
    assert "RED" in captured.out
