"""Is JSON as docs/commands.md says: one shape for each command, the files that were written, lines for histories?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ackfsm.cli import main
from model_tests.support.places import DATA

NIGHT = str(DATA / "last-night.jsonl")
OTHER = str(DATA / "synthetic" / "resurrection.jsonl")


SHAPES = {
    "check --max-faults 0": dict,
    "explain --max-faults 0": dict,
    f"explain {NIGHT}": dict,
    f"verify {NIGHT}": dict,
    f"verify {NIGHT} {OTHER}": list,
    "claims --id C31 --jobs 1": list,
    "where loss": dict,
    "draw entry": dict,
    "export --max-faults 0": dict,
    "systems": list,
    "help": dict,
    "help verify": dict,
}


@pytest.mark.parametrize("line", SHAPES)
def test_a_command_has_one_shape(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([*line.split(), "--json"])
    out = capsys.readouterr().out
    assert isinstance(json.loads(out), SHAPES[line])
    assert out.isascii()


@pytest.mark.parametrize("paths", [[NIGHT], [NIGHT, OTHER], [NIGHT, "none.jsonl", OTHER]])
def test_lines_are_the_same_for_one_and_for_many(paths: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["verify", "--json-lines", *paths])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert main(["verify", "--json", *paths]) == code == 1
    answer = json.loads(capsys.readouterr().out)
    assert lines == (answer if isinstance(answer, list) else [answer])
    assert [line["history"] for line in lines] == paths


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("draw entry", ["out.svg"]),
        ("export --max-faults 0", ["out.tla", "out.cfg"]),
        ("explain --fault consumer_crash --anomaly duplicate", ["out.svg"]),
        (f"explain {NIGHT}", ["out.svg"]),
        ("where", ["out.md"]),
    ],
)
def test_what_was_written_is_named(
    line: str, files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main([*line.split(), "--output", files[0], "--json"])
    assert json.loads(capsys.readouterr().out)["written"] == files
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)


def test_a_machine_gets_nothing_where_there_is_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--json-lines", "none.jsonl"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
