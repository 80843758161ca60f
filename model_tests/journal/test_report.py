"""``ackfsm journal``: what it tells, its exit codes, and that looking changes nothing."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ackfsm import cli
from ackfsm.engine.journal import ATTEMPTS, FileJournal, Journal, Kind, SqliteJournal
from ackfsm.terms import InputError


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
    screen = " ".join(capsys.readouterr().out.split())
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


def test_a_torn_end_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "journal"
    journal = FileJournal(made)
    fill(journal)
    journal._close_resources()  # noqa: SLF001 - the death of the process
    (file,) = made.glob("*.journal")
    with file.open("ab") as end:
        end.write(b"x" * 33)
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


def foreign_database(path: Path, statements: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript(statements)


def in_use(path: Path) -> None:
    """A database in WAL mode whose user has died: of all that is in it only the log has anything."""
    script = (
        "import os, sqlite3, sys; database = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "database.executescript('PRAGMA journal_mode=WAL; CREATE TABLE account (id, sum)'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, path], check=True)
    assert Path(f"{path}-wal").stat().st_size


def home(path: Path) -> None:
    (path / ".ssh").mkdir(parents=True)
    (path / "diary.journal").write_text("monday")
    (path / "1.journal").write_text("tuesday")
    (path / "00000000000001.new").write_text("wednesday")


FOREIGN: dict[str, tuple[Callable[[Path], object], str]] = {
    "text": (lambda path: path.write_text("x"), "is neither the directory of a journal nor a file of SQLite"),
    "json": (lambda path: path.write_text("{}"), "is neither the directory of a journal nor a file of SQLite"),
    "empty": (lambda path: path.touch(), "is neither the directory of a journal nor a file of SQLite"),
    "missing": (lambda _: None, "cannot be read"),
    "missing/deep": (lambda _: None, "cannot be read"),
    "folder": (lambda path: path.mkdir(), "holds no journal"),
    "home": (home, "holds no journal"),
    "accounts": (
        lambda path: foreign_database(path, "CREATE TABLE account (id, sum); CREATE TABLE 'o\033[31m' (x)"),
        "is a database of something else (its tables: account, o\\x1b[31m)",
    ),
    "accounting": (
        lambda path: foreign_database(path, "CREATE TABLE journal (id, text); CREATE TABLE entry (id, sum)"),
        "is a database of something else (its tables: journal, entry)",
    ),
    "no tables": (lambda path: foreign_database(path, "PRAGMA user_version=7"), "something else (its tables: none)"),
    "dead user": (in_use, "is a database of something else (its tables: account)"),
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("action", ["inspect", "verify", "compact"])
def test_what_is_no_journal_is_refused_and_nothing_is_made_or_changed(
    name: str, action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, said = FOREIGN[name]
    make(tmp_path / name)
    before = sorted(tmp_path.rglob("*")), contents(tmp_path / "any")
    assert said in " ".join(refusal(capsys, action, tmp_path / name).split())
    assert (sorted(tmp_path.rglob("*")), contents(tmp_path / "any")) == before


@pytest.mark.parametrize("name", ["text", "json", "empty", "accounts", "accounting", "no tables", "dead user"])
def test_a_file_of_something_else_is_not_opened_as_a_journal(name: str, tmp_path: Path) -> None:
    FOREIGN[name][0](tmp_path / name)
    before = contents(tmp_path / "any")
    with pytest.raises(InputError):
        SqliteJournal(tmp_path / name)
    assert contents(tmp_path / "any") == before


def test_the_folder_of_a_database_is_not_made_and_that_of_segments_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="in a folder that exists"):
        SqliteJournal(tmp_path / "no" / "such" / "journal")
    assert not list(tmp_path.iterdir())
    FileJournal(tmp_path / "such" / "journal").close()
    assert (tmp_path / "such" / "journal").is_dir()


def test_no_other_action_is_known(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        run("burn", tmp_path)


def test_a_path_moves_no_cursor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "999")
    for number, journal in enumerate((FileJournal, SqliteJournal)):
        path = tmp_path / f"{number}\x1b[2J\nwhole"
        journal(path).close()
        for action in ("inspect", "verify", "compact"):
            assert run(action, path) == 0
            assert "\\x1b[2J\\nwhole" in capsys.readouterr().out.replace("\n", "")
        next(path.glob("*.journal"), path).write_bytes(b"x")
        for action in ("inspect", "verify", "compact"):
            assert run(action, path) in {1, 2}
            said = "".join(capsys.readouterr())
            assert "\x1b[2J" not in said
            assert "\nwhole" not in said
