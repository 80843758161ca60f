"""Every screen fits 60, 80 and 120 columns, and hides nothing: no line is longer, and nothing is cut to an ellipsis."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ackfsm.cli import main
from ackfsm.cli._groups import commands_of
from ackfsm.cli._output import console, piped_width
from ackfsm.cli._run import _make_parser
from ackfsm.engine.journal import FileJournal, Kind
from ackfsm.showing.views.page import page_screen
from ackfsm.tables.lookup import Lookup
from model_tests.support.places import DATA, PROJECT
from model_tests.support.tables import shipped
from model_tests.support.whole import few

WIDTHS = (60, 80, 120)
NIGHT = str(DATA / "last-night.jsonl")

CHEAP = (
    "",
    "help",
    "check --fault consumer_crash --progress",
    "check --profile artemis --fault broker_crash --max-states 10",
    "check --messages 2 --fault consumer_crash",
    "explain --fault consumer_crash --anomaly duplicate",
    "explain --set journal_sync_non_transactional=written --fault broker_crash --anomaly loss",
    "explain {night} --message m1",
    "explain {night} --message m2",
    "explain {night} --at 10:00:06",
    "verify {night}",
    "verify --all --never loss,unprocessed {night}",
    "verify --faults any {night}",
    "verify {synthetic}",
    "where redelivery_mark_persisted",
    "where confirm",
    "where DUPS_OK_ACKNOWLEDGE",
    "where record.written.confirm",
    "where loss",
    "where held to the model",
    *(PAGES := ("where", "claims --seeds", "draw", "draw delivery", "draw loss", "draw entry --profile rabbitmq")),
    "systems",
    "journal verify {journal}",
)

MATRIX = "matrix --jobs 1"
PLAIN = "--set ack_mode=NO_ACKNOWLEDGE --set delivery_mode=PERSISTENT --set send_mode=blocking"

DEAR = (
    f"{MATRIX} --no-pairs --profile rabbitmq {PLAIN}",
    f"{MATRIX} --profile solace --set delivery_mode=DIRECT --set consumption=receive --messages any --max-states 5",
    f"conform --runs 1 --messages 2 --fault broker_kill -- python {PROJECT / 'docs' / 'examples' / 'twenty_lines.py'}",
    "claims --id C31 --jobs 1",
)
"""These are run once, and shown in each width."""


@functools.cache
def lookup() -> Lookup:
    return Lookup(shipped())


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ackfsm.tables.lookup.Lookup", lambda _: lookup())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "night.jsonl").symlink_to(NIGHT)
    (tmp_path / "history.jsonl").symlink_to(DATA / "synthetic" / "resurrection.jsonl")
    journal = FileJournal(tmp_path / "journal")
    journal.append(Kind.STORE, key=1, data=b"tea")
    journal.close()


def _words(line: str) -> list[str]:
    filled = line.format(night="night.jsonl", synthetic="history.jsonl", journal="journal")
    command, _, rest = filled.partition(" ")
    return [command, rest] if command == "where" and rest else filled.split()


def _complaints(screen: str, width: int) -> Iterator[str]:
    for line in screen.splitlines():
        text = line.rstrip()
        if len(text) > width and not _cannot_be_broken(text, width):
            yield f"{len(text)} columns: {text}"
        if "…" in text and "more" not in text:
            yield f"cut: {text}"


def _cannot_be_broken(text: str, width: int) -> bool:
    """A command that can be copied, or a word that is longer than the line by itself."""
    return text.lstrip().startswith("ackfsm ") or max(map(len, text.split())) > width - 24


@pytest.mark.parametrize("line", few([*CHEAP], 8))
def test_a_screen_is_as_wide_as_it_may_be(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        with contextlib.nullcontext() if line else pytest.raises(SystemExit):
            main(_words(line))
        shown = capsys.readouterr().out
        assert shown
        assert list(_complaints(shown, width)) == []


class _Each:
    """A console that shows everything in each width."""

    is_terminal = False
    width = 80

    def __init__(self) -> None:
        self.screens: dict[int, str] = {}

    def print(self, *what: Any, **how: Any) -> None:
        """As rich has it."""
        for width in WIDTHS:
            made = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
            with made.capture() as captured:
                made.print(*what, **how)
            self.screens[width] = captured.get()


@pytest.mark.parametrize("line", DEAR, ids=range(len(DEAR)))
def test_a_screen_that_takes_its_time_is_as_wide_as_it_may_be(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    each = _Each()
    made = console
    monkeypatch.setattr("ackfsm.cli._output.console", lambda *, errors=False: made(errors=True) if errors else each)
    main(_words(line))
    assert set(each.screens) == set(WIDTHS)
    for width, shown in each.screens.items():
        assert shown
        assert list(_complaints(shown, width)) == []


_LEFT_OUT = frozenset({"drawing", "how"})
"""What is only a link, and the heading of a column that has nothing in it."""

_MARKS = re.compile(r"`|\]\(|<br>|<!--|&#|^ *(?:#|\||\* )", re.MULTILINE)
"""What only Markdown has."""


def _printed(text: str, width: int, *, terminal: bool = False) -> str:
    made = Console(
        file=io.StringIO(),
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        force_terminal=terminal,
        no_color=True,
    )
    with made.capture() as captured:
        made.print(page_screen(text))
    return captured.get()


def _missing(text: str, screen: str) -> list[str]:
    """The words of a page that its screen does not have."""
    said = set(re.findall(r"\w{3,}", re.sub(r"<!--.*?-->|\]\([^)]*\)|<br>|&#124;", " ", text, flags=re.DOTALL)))
    whole = re.sub(r"\s+", "", screen)
    return [word for word in said if word not in whole and word not in _LEFT_OUT]


@pytest.mark.parametrize(
    "page", few(sorted((PROJECT / "docs" / "systems").glob("*.md")), 4), ids=lambda page: page.stem
)
def test_a_page_of_a_system_is_as_wide_as_it_may_be_and_says_all(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for width in WIDTHS:
        screen = _printed(text, width)
        assert list(_complaints(screen, width)) == []
        assert _missing(text, screen) == []


@pytest.mark.parametrize("line", few(PAGES, 4))
def test_a_page_is_shown_as_a_screen_and_written_as_markdown(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 0
    screen = capsys.readouterr().out
    assert main([*line.split(), "--output", "page.md"]) == 0
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert _MARKS.findall(screen) == []
    assert _missing(page, screen) == []
    capsys.readouterr()
    for asked in (["--as", "table" if line.startswith("draw") else "markdown"], ["--output", "-"]):
        assert main([*line.split(), *asked]) == 0
        assert capsys.readouterr().out == page


def test_a_screen_is_as_wide_as_the_terminal() -> None:
    means = "the application calls send() outside any transaction of its own"
    page = f"| event | means |\n| --- | --- |\n| `send` | {means} |\n"
    assert _printed(page, 60).splitlines()[0].rstrip() == "event: send"
    assert _printed(page, 80).splitlines()[0].split() == ["event", "means"]


def test_what_is_bold_in_a_page_is_bold_on_a_terminal_and_marked_elsewhere() -> None:
    page = "| a | b |\n| --- | --- |\n| the **owner** decides | (*if also*) |\n\nOne **word**\nof two lines.\n"
    shown = _printed(page, 80)
    assert " ".join(shown.split()) == "a b the **owner** decides (if also) One **word** of two lines."
    shown = _printed(page, 80, terminal=True)
    assert "*" not in shown
    assert "\x1b[1mowner\x1b[0m" in shown
    assert "\x1b[1mword\x1b[0m" in shown


def test_a_link_to_a_line_names_its_file_once_in_a_part() -> None:
    page = "new [34](m/a.yaml#L34) [43](m/a.yaml#L43), old [9](m/b.yaml#L9)\n"
    page += "\n| a |\n| --- |\n| [5](a.md#L5)<br>[6](a.md#L6) |\n"
    assert _printed(page, 80).split("\n")[0] == "new m/a.yaml:34 43, old m/b.yaml:9"
    assert "a.md:5; a.md:6" in _printed(page, 80)


def test_a_table_of_contents_is_not_shown() -> None:
    page = "One.\n\n* [Two](#two)\n* [Three](#three)\n\n## Two\n"
    assert _printed(page, 80) == "One.\n\nTwo\n"


@pytest.mark.parametrize("name", [*commands_of(_make_parser()).choices, ""])
def test_help_is_as_wide_as_it_may_be(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        with pytest.raises(SystemExit):
            main([*name.split(), "--help"])
        assert list(_complaints(capsys.readouterr().out, width)) == []


@pytest.mark.parametrize(
    ("columns", "width"), [("100", 100), ("", 80), ("0", 40), ("-5", 80), ("wide", 80), ("99999", 80), ("٣", 80)]
)
def test_what_is_piped_is_as_wide_as_columns_says(columns: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert piped_width() == console().width == width
    monkeypatch.delenv("COLUMNS")
    assert piped_width() == 80
    assert "COLUMNS" not in os.environ


def test_a_line_that_is_too_long_or_cut_is_noticed() -> None:
    assert list(_complaints("a " * 31, 60)) == ["61 columns: " + " ".join(["a"] * 31)]
    assert list(_complaints("delivered_cle…", 60)) == ["cut: delivered_cle…"]
