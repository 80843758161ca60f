"""``ackfsm journal``: what it tells, its exit codes, and that looking changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ackfsm import cli
from ackfsm.journal import ATTEMPTS, FileJournal, Journal, Kind, SqliteJournal


def run(*arguments: object) -> int:
    return cli.main(["journal", *map(str, arguments)])


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What is said where the input is at fault."""
    assert run(*arguments) == 2
    return capsys.readouterr().err


def answer(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    code = run(*arguments, "--json")
    return code, json.loads(capsys.readouterr().out)


def fill(journal: Journal) -> None:
    for key in range(1, 13):
        journal.append(Kind.STORE, key, b"x" * key)
    journal.append(Kind.REMOVE, 2)
    journal.append(Kind.MARK, 1, ATTEMPTS.pack(3))
    journal.append(Kind.REMEMBER, 1, b"\x01\xff")
    journal.sync()


@pytest.fixture(params=["file", "sqlite"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "journal"
    journal = FileJournal(path) if request.param == "file" else SqliteJournal(path)
    fill(journal)
    journal.close()
    return path


def contents(path: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(path.parent.rglob("*")) if file.is_file()}


@pytest.mark.parametrize("action", ["inspect", "verify"])
def test_a_whole_journal_is_told_and_not_changed(made: Path, action: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(made)
    code, found = answer(capsys, action, made)
    assert (code, found["verdict"], found["damage"], found["in_use"]) == (0, "whole", None, False)
    assert (found["entries"], found["removed"], found["next_position"], found["next_key"]) == (15, 1, 15, 13)
    assert found["live"][0] == {"key": 1, "bytes": 1, "attempts": 3, "marked": True}
    assert found["remembered"] == ["01ff"]
    assert run(action, made) == 0
    screen = capsys.readouterr().out
    assert "11 copies live, 1 removed, 1 duplicate-ids known" in screen
    assert "1 more" in screen
    assert screen.rstrip().endswith("whole")
    assert contents(made) == before


def test_compaction_keeps_what_is_live(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = answer(capsys, "compact", made)
    assert (code, found["compaction"]["entries_before"], found["compaction"]["entries_after"]) == (0, 15, 13)
    _, after = answer(capsys, "inspect", made)
    assert (after["entries"], after["live"], after["remembered"]) == (13, found["live"], ["01ff"])
    assert after["next_position"] == 15


def test_damage_is_an_answer_of_verify_and_an_error_of_the_others(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = next(made.glob("*.journal")) if made.is_dir() else made
    data = bytearray(file.read_bytes())
    at = data.rindex(b"x" * 12) + 3
    data[at] ^= 1
    file.write_bytes(data)
    code, found = answer(capsys, "verify", made)
    assert (code, found["verdict"]) == (1, "damaged")
    assert "position" in found["damage"]
    assert run("verify", made) == 1
    assert "damaged: " in capsys.readouterr().out
    for action in ("inspect", "compact"):
        assert "the checksum does not fit" in refusal(capsys, action, made)
    assert file.read_bytes() == bytes(data)


def test_a_torn_end_is_told(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not made.is_dir():
        return
    file = max(made.glob("*.journal"))
    file.write_bytes(file.read_bytes()[:-3])
    code, found = answer(capsys, "inspect", made)
    assert (code, found["torn"]["size"], found["torn"]["file"]) == (0, 33, file.name)


def test_a_journal_in_use_can_be_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, journal in (("file", FileJournal(tmp_path / "file")), ("sqlite", SqliteJournal(tmp_path / "sqlite"))):
        fill(journal)
        code, found = answer(capsys, "inspect", tmp_path / name)
        assert (code, found["in_use"], len(found["live"])) == (0, True, 11)
        assert "in use" in refusal(capsys, "compact", tmp_path / name)
        if name == "file":
            file = next((tmp_path / name).iterdir())
            file.write_bytes(file.read_bytes()[:-3])
            assert answer(capsys, "verify", tmp_path / name)[0] == 3
            assert run("verify", tmp_path / name) == 3
            assert "another process has it open" in capsys.readouterr().out
            continue
        journal.close()


def test_what_is_no_journal_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("x")
    (tmp_path / "folder").mkdir()
    for name, said in (("text", "neither"), ("folder", "holds no journal"), ("missing", "cannot be read")):
        assert said in refusal(capsys, "inspect", tmp_path / name)
    with pytest.raises(SystemExit):
        run("burn", tmp_path)
