"""Code and output in documents: found, and put in again where they come from files and commands.

``<!-- from FILE -->`` before a block says that it is that file, ``<!-- printed by ackfsm ... -->`` that it is what the
command prints, perhaps ``| head -N``.
``<!-- FILE is what ackfsm ... prints -->`` says it of a file, and ``writes`` where the command names that file.
``<!-- made from spec/recording.yaml ... -->`` stands before the table of the lines of a history.
``python -m model_tests.documents`` brings the documents up to date; the page of the modes that behave alike, which
takes minutes, only where the rows have changed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from ackfsm import cli, tables
from ackfsm.showing.views.index import lines_table
from ackfsm.showing.views.markdown import page_of
from ackfsm.showing.views.story import story_text
from model_tests.alike import alike_modes, alike_page, digest_line, rows_digest
from model_tests.support import described
from model_tests.support.places import DATA, PROJECT
from model_tests.support.tables import shipped
from model_tests.support.verify.stories import named_stories

__all__ = [
    "ALIKE",
    "EXPLAINING",
    "GUIDE",
    "HISTORY",
    "IMPORTING",
    "PLANNING",
    "README",
    "blocks",
    "current",
    "files",
    "screens",
]


README = PROJECT / "README.md"
GUIDE = PROJECT / "docs" / "testing-consumers.md"
EXPLAINING = PROJECT / "docs" / "explaining.md"
IMPORTING = PROJECT / "docs" / "importing.md"
PLANNING = PROJECT / "docs" / "planning.md"
ALIKE = PROJECT / "docs" / "modes.md"
HISTORY = PROJECT / "docs" / "history.md"

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TAKEN = re.compile(
    r"^<!-- (?P<what>from|printed by) (?P<file>[^\n]+) -->\n```(?P<language>\w+)\n.*?^```$",
    re.DOTALL | re.MULTILINE,
)
_WRITTEN = re.compile(r"^<!-- (?P<file>\S+) is what (?P<command>ackfsm [^\n]+) writes -->$", re.MULTILINE)
_FILE = re.compile(r"^<!-- (?P<file>\S+) is what (?P<command>ackfsm [^\n]+) prints -->$", re.MULTILINE)
_LINES = re.compile(r"(<!-- made from spec/recording\.yaml [^\n]+ -->\n\n)(?:\|[^\n]*\n)+")
_CUT = re.compile(r"(?P<command>.+) \| head -(?P<most>\d+)")


def blocks(document: Path) -> Iterator[tuple[int, str]]:
    """The Python in ``document``: the number of the line before each block, and its text."""
    text = document.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, found[1]


def current(document: Path) -> str:
    """``document`` as it is with what its files are and say now."""

    def taken(found: re.Match[str]) -> str:
        text = "\n".join(line.rstrip() for line in _MADE[found["what"]](found["file"]).splitlines())
        return f"<!-- {found['what']} {found['file']} -->\n```{found['language']}\n{text.rstrip()}\n```"

    text = _TAKEN.sub(taken, document.read_text(encoding="utf-8"))
    return _LINES.sub(lambda found: f"{found[1]}{page_of(lines_table(shipped()))}", text)


def files(document: Path) -> dict[Path, str]:
    """The files that ``document`` says a command prints or writes, with what it does now."""
    text = document.read_text(encoding="utf-8")
    printed = {PROJECT / found["file"]: _printed_by(found["command"]) for found in _FILE.finditer(text)}
    written = {
        PROJECT / found["file"]: _written_by(found["command"], found["file"]) for found in _WRITTEN.finditer(text)
    }
    return printed | written


def _written_by(command: str, file: str) -> str:
    """What the command line writes to ``file``, without touching that."""
    assert file in command, command
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder) / Path(file).name
        _printed_by(command.replace(file, str(there)))
        return there.read_text(encoding="utf-8")


_LOOKED_AT = {
    "loss after the crash": "m2",
    "a duplicate at a consumer whose link held while another's broke": "m1",
    "an unflagged redelivery although the mark is persisted": "m1",
    "three losses in AUTO with receive after one crash": "m2",
    "a torn transaction of a broker that commits message by message": "m1",
}
"""The screens of these messages of named histories were looked at, and are kept."""


def screens() -> dict[Path, str]:
    """The files in which the screens are kept, with what is told now; the file of a history is called by its name."""
    return {
        DATA / "explained" / f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}.txt": _screen(name, message)
        for name, message in _LOOKED_AT.items()
    }


def _screen(name: str, message: str) -> str:
    story = named_stories(name).of(message)
    return story_text(dataclasses.replace(story, history=name), shipped())


def _text_of(file: str) -> str:
    return (PROJECT / file).read_text(encoding="utf-8")


def _printed_by(line: str) -> str:
    """What the command line prints, which must not say a word on standard error."""
    cut = _CUT.fullmatch(line)
    command, *options = shlex.split(cut["command"] if cut else line)
    assert command == "ackfsm", line
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(PROJECT),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.dict(os.environ),
    ):
        os.environ.pop("COLUMNS", None)
        cli.main(options)
    assert not err.getvalue(), err.getvalue()
    return "\n".join(out.getvalue().splitlines()[: int(cut["most"])]) if cut else out.getvalue()


_MADE = {"from": _text_of, "printed by": _printed_by}


def _write_alike() -> None:
    specification = tables.load()
    digest = rows_digest(specification)
    if ALIKE.is_file() and ALIKE.read_text(encoding="utf-8").startswith(digest_line(digest)):
        return
    found = {}
    for profile in specification.profiles:
        sys.stderr.write(f"modes of {profile}\n")
        found[profile] = alike_modes(specification, profile)
    ALIKE.write_text(alike_page(specification, found, digest), encoding="utf-8")


if __name__ == "__main__":
    _write_alike()
    for path in (README, EXPLAINING, HISTORY, IMPORTING, PLANNING):
        for file, text in {path: current(path), **files(path)}.items():
            file.write_text(text, encoding="utf-8")
    for file, text in {**screens(), described.PAGE: described.page()}.items():
        file.write_text(text, encoding="utf-8")
