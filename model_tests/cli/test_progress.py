"""On a terminal everything that takes longer than two seconds says that it goes on."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ackfsm.cli import _output, main
from ackfsm.engine.journal import FileJournal
from model_tests.support.places import DATA

NIGHT = str(DATA / "last-night.jsonl")

SLOW: dict[str, tuple[str, str]] = {
    f"verify {NIGHT}": ("ackfsm.verify.examination", "reading"),
    f"explain {NIGHT}": ("ackfsm.verify.examination", "reading"),
    "check": ("ackfsm.checking.explore.check", "states found"),
    "explain --anomaly duplicate --fault consumer_crash": ("ackfsm.checking.explore.check", "states found"),
    "export": ("ackfsm.checking.export.files", "exporting"),
    "draw entry": ("ackfsm.showing.draw.draw", "drawing"),
    "draw": ("ackfsm.showing.draw.overview", "drawing"),
    "journal verify journal": ("ackfsm.engine.journal.verify_journal", "reading"),
    "journal compact journal": ("ackfsm.engine.journal.compact_journal", "reading"),
    "claims --id C31 --jobs 1": ("ackfsm.surveys.claims.decide", "claims"),
    "matrix --jobs 1": ("ackfsm.surveys.matrix.run", "searching"),
    "plan --simulate 5": ("ackfsm.rates.simulation.simulate", "simulating"),
    "systems ems --jobs 1": ("ackfsm.surveys.matrix.mode_sweep", "searching"),
}
"""What takes the time in each command, and what its line says."""

BARS = ("claims", "matrix", "systems")
"""Commands with bars, which are shown by what they call; they are given what to show them with."""


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a terminal shows on standard error, where lines are there after a hundredth of a second."""
    shown = io.StringIO()
    made = _output.console

    def console(*, errors: bool = False) -> Console:
        return Console(file=shown, force_terminal=True, width=100) if errors else made()

    monkeypatch.setattr(_output, "console", console)
    monkeypatch.setattr(_output, "_DELAY", 0.01)
    return shown


class _EnoughError(Exception):
    """The work would begin here."""


def _slow(seen: list[dict[str, Any]]) -> Callable[..., None]:
    def work(*_: object, **named: Any) -> None:
        seen.append(named)
        time.sleep(0.3)
        raise _EnoughError

    return work


@pytest.mark.parametrize("line", SLOW)
def test_a_command_says_that_it_goes_on(
    line: str, terminal: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    FileJournal("journal").close()
    function, what = SLOW[line]
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(function, _slow(seen))
    assert main(line.split()) == 70, "the work ends with an error of ours"
    (named,) = seen
    if line.split(maxsplit=1)[0] in BARS:
        assert callable(named["progress_bar"])
    else:
        assert what in terminal.getvalue()
        assert "0:00:00" in terminal.getvalue(), "how long it has taken"


def test_what_is_done_at_once_says_nothing(terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_output, "_DELAY", 2.0)
    with _output.progress_line("reading") as progress:
        progress(5)
    assert "reading" not in terminal.getvalue()


@pytest.mark.parametrize("delay", [0.01, 2.0])
def test_a_bar_of_what_may_be_done_at_once_comes_later(
    terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch, delay: float
) -> None:
    monkeypatch.setattr(_output, "_DELAY", delay)
    with _output.progress_bars(later=True) as bar:
        bar("planning", 1, 4)
        time.sleep(0.3)
        bar("planning", 2, 4)
    assert ("planning" in terminal.getvalue()) == (delay < 1)


def test_a_bar_shows_the_time_before_anything_is_done(terminal: io.StringIO) -> None:
    with _output.progress_bars() as bar:
        bar("questions", 0, 3)
        time.sleep(0.3)
    assert "0/3" in terminal.getvalue()
    assert "0:00:00" in terminal.getvalue()


def test_a_line_says_how_far_it_is(terminal: io.StringIO) -> None:
    with _output.progress_line("states found") as progress:
        time.sleep(0.2)
        progress(12_345)
        time.sleep(0.3)
    assert "states found: 12,345" in terminal.getvalue()


def test_nothing_is_shown_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with _output.progress_line("reading") as progress:
        progress(1)
    assert capsys.readouterr() == ("", "")
