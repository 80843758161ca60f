"""Code and output in documents: found, and put in again where they come from files.

``<!-- from FILE -->`` before a block says that it is that file, ``<!-- output of FILE -->`` that it is what pytest says
of it.  ``python -m model_tests.documents`` brings ``docs/testing-consumers.md`` up to date.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

__all__ = ["GUIDE", "blocks", "current"]

ROOT = Path(__file__).resolve().parent.parent

GUIDE = ROOT / "docs" / "testing-consumers.md"

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TAKEN = re.compile(
    r"^<!-- (?P<what>from|output of) (?P<file>\S+) -->\n```(?P<language>\w+)\n.*?^```$", re.DOTALL | re.MULTILINE
)

# Where one of these is set pytest shows whole differences, which a reader at a terminal does not see.
_VERBOSE = ("CI", "BUILD_NUMBER")


def blocks(document: Path) -> Iterator[tuple[int, str]]:
    """The Python in ``document``: the number of the line before each block, and its text."""
    text = document.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, found[1]


def current(document: Path) -> str:
    """``document`` as it is with what its files are and say now."""

    def taken(found: re.Match[str]) -> str:
        file = ROOT / found["file"]
        text = file.read_text(encoding="utf-8") if found["what"] == "from" else _output_of(file)
        return f"<!-- {found['what']} {found['file']} -->\n```{found['language']}\n{text.rstrip()}\n```"

    return _TAKEN.sub(taken, document.read_text(encoding="utf-8"))


def _output_of(file: Path) -> str:
    """What a test that fails says, without the frame around it."""
    options = ("-p", "ackfsm.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:terminal", "-c", "/dev/null")
    heard = _Heard()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()),
        mock.patch.dict(os.environ),
    ):
        for variable in _VERBOSE:
            os.environ.pop(variable, None)
        copy = Path(folder) / f"test_{file.name}"
        copy.write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
        pytest.main([copy.name, "--rootdir", folder, "--import-mode=importlib", *options], plugins=[heard])
    return "\n".join(heard.said)


class _Heard:
    """Hears what is said of failures."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a failed report says."""
        if report.failed:
            lines = report.longreprtext.splitlines()
            said = [line.removeprefix("E   ").rstrip() for line in lines if line.startswith("E   ")] or lines
            self.said.append("\n".join(_without_indent(said)))


def _without_indent(lines: list[str]) -> list[str]:
    return [line.removeprefix("    ") for line in lines] if all(line[:4].isspace() for line in lines if line) else lines


if __name__ == "__main__":
    GUIDE.write_text(current(GUIDE), encoding="utf-8")
