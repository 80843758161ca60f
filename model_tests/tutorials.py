"""The tutorials, followed word for word: their files are written and their commands run in an empty folder.

A block after ``<!-- file NAME -->`` is a file.  A block ``console`` has commands after ``$ `` and what each prints, on
standard output and then on standard error; ``echo $?`` prints the exit code of the one before.  Of ``| head -n 5`` and
``| tail -n 5`` that is 0, as in a shell.
``python -m model_tests.tutorials`` puts what the commands print now into the pages.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from unittest import mock

from ackfsm import cli
from model_tests.support.commands import environment
from model_tests.support.places import PROJECT

__all__ = ["PAGES", "commands", "files", "followed"]

PAGES: Final = tuple(sorted((PROJECT / "docs" / "tutorials").glob("*.md")))

_BLOCK: Final = re.compile(
    r"(?P<head>^<!-- file (?P<file>\S+) -->\n```\w*\n|^```console\n)(?P<body>.*?)(?P<tail>^```$)",
    re.DOTALL | re.MULTILINE,
)
_PART: Final = re.compile(r"(?P<command>.+) \| (?P<which>head|tail) -n (?P<lines>\d+)")


def commands(page: Path) -> list[str]:
    """The command lines of a page, in their order."""
    text = page.read_text(encoding="utf-8")
    return [line[2:] for found in _BLOCK.finditer(text) for line in _lines(found) if line.startswith("$ ")]


def files(page: Path) -> Iterator[re.Match[str]]:
    """The files of a page, each with ``file``, its name, and ``body``; the last of a name is the one that stays."""
    return (found for found in _BLOCK.finditer(page.read_text(encoding="utf-8")) if found["file"])


def _lines(found: re.Match[str]) -> list[str]:
    return [] if found["file"] else found["body"].splitlines()


def followed(page: Path, folder: Path) -> str:
    """``page`` with what its commands print now, each run after the other in ``folder``, which is empty."""
    last = 0

    def done(found: re.Match[str]) -> str:
        nonlocal last
        if found["file"]:
            file = folder / found["file"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(found["body"], encoding="utf-8")
            return found[0]
        told = []
        for command in _commands(found["body"]):
            if command == "echo $?":
                told.append(f"$ {command}\n{last}\n")
                continue
            last, printed = _run(" ".join(command.replace("\\\n", " ").split("\n")), folder)
            told.append(f"$ {command}\n{printed}")
        return f"{found['head']}{''.join(told)}{found['tail']}"

    with (
        contextlib.chdir(folder),
        _programs() as path,
        mock.patch.dict(os.environ, environment(NO_COLOR="1", PATH=path)),
    ):
        os.environ.pop("COLUMNS", None)
        return _BLOCK.sub(done, page.read_text(encoding="utf-8"))


@contextlib.contextmanager
def _programs() -> Iterator[str]:
    """A path on which ``python`` is that of the tests, for a command that starts another one."""
    with tempfile.TemporaryDirectory() as place:
        program = Path(place) / "python"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        yield f"{place}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def _commands(body: str) -> Iterator[str]:
    """The commands of a block; one that ends with a backslash goes on in the next line."""
    lines = iter(body.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\"):
                command += f"\n{next(lines)}"
            yield command


def _run(line: str, folder: Path) -> tuple[int, str]:
    """The exit code of a command, and what it prints, of which a part may be asked for."""
    part = _PART.fullmatch(line)
    program, *words = shlex.split(part["command"] if part else line)
    code, printed = _of_ackfsm(words) if program == "ackfsm" else _of_another(program, words, folder)
    printed = "".join(f"{text.rstrip()}\n" for text in printed.splitlines())
    if part:
        lines, most = printed.splitlines(keepends=True), int(part["lines"])
        return 0, "".join(lines[:most] if part["which"] == "head" else lines[-most:])
    return code, printed


def _of_ackfsm(words: list[str]) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(words)
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue() + err.getvalue()


def _of_another(program: str, words: list[str], folder: Path) -> tuple[int, str]:
    """In this process, as starting one anew takes longer than all that it does."""
    out = io.StringIO()
    known, path = {*sys.modules}, [*sys.path]
    sys.path.insert(0, str(folder))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = _pytest(words, folder) if program == "pytest" else _python(words)
    finally:
        sys.path[:] = path
        for name in {*sys.modules} - known:
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]  # the next command may find another file
    return code, out.getvalue()


def _pytest(words: list[str], folder: Path) -> int:
    import pytest

    quiet = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # ackfsm is imported already, which a reader's is not
    options = (
        "-p",
        "ackfsm.driving.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "--rootdir",
        str(folder),
        *quiet,
    )
    with mock.patch.dict(os.environ):
        for variable in ("CI", "BUILD_NUMBER", "PYTEST_ADDOPTS"):  # more of a difference may be shown
            os.environ.pop(variable, None)
        return int(pytest.main([*words, *options]))


def _python(words: list[str]) -> int:
    """``python FILE.py`` or ``python -c TEXT``, which ends as it should or with an error of its own."""
    if words[0] == "-c":
        exec(words[1], {"__name__": "__main__"})  # noqa: S102 - only text of the project
    else:
        runpy.run_path(words[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    for each in PAGES:
        with tempfile.TemporaryDirectory() as place:
            each.write_text(followed(each, Path(place)), encoding="utf-8")
