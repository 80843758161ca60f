"""A page of Markdown as a screen: tables that are wider than the screen are told row by row, and nothing is cut."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

_LEFT_OUT: Final = re.compile(r"<!--.*?-->|^(?:\* \[[^\]]*\]\(#[^)]*\)\n)+\n", re.DOTALL | re.MULTILINE)
"""Comments, and tables of contents: on a screen nothing leads from there to a section."""

_LINK: Final = re.compile(r"\[([^\]]*)\]\(([^)\s]*)\)")
_ROW: Final = re.compile(r"^\| (.*) \|$")
_TITLE: Final = re.compile(r"^#+ (.*)$")
_DRAWING: Final = re.compile(r"\[drawing\]\([^)]*\)")
"""Of such a cell nothing is left without its link."""

_STRONG: Final = re.compile(r"\*\*([^*]+)\*\*")
_EMPHASIS: Final = re.compile(r"(?<![\w*])\*([^\s*](?:[^*]*[^\s*])?)\*(?![\w*])")

_ANY_WIDTH: Final = 10_000
_LINES: Final = 2
"""Of so many lines at most is a row whose cells stand one after the other."""


def page_screen(page: str) -> RenderableType:
    """The page without its links, comments and table of contents.

    A link to a line of a file is shown as that.  ``**`` stays where nothing can be shown bold, since the sentences of a
    page speak of what is bold.
    """
    return Group(*_parts(_LEFT_OUT.sub("", page).strip().splitlines()))


def _parts(lines: Sequence[str]) -> Iterator[RenderableType]:
    for kind, some in itertools.groupby(lines, _kind):
        if kind is _ROW:
            headings, _, *others = ([_cell(cell) for cell in line[2:-2].split(" | ")] for line in some)
            yield _Rows(headings, others)
        elif kind is _TITLE:
            yield from (Text(_plain(_TITLE.sub(r"\1", line)), style="bold") for line in some)
        elif kind:
            yield _Said(_plain(" ".join(some)))
        else:
            yield from (Text("") for _ in some)


def _kind(line: str) -> object:
    """Return the kind of block that a line belongs to: a table, a title, a paragraph, or nothing."""
    return next((kind for kind in (_ROW, _TITLE) if kind.match(line)), bool(line))


def _cell(text: str) -> str:
    return "" if _DRAWING.fullmatch(text.strip()) else "; ".join(map(_plain, text.split("<br>")))


def _plain(text: str) -> str:
    """``text`` without links and code marks; of several lines of one file the first alone names it."""
    named = set[str]()

    def shown(link: re.Match[str]) -> str:
        file, _, line = link[2].rpartition("#L")
        if not line.isdecimal() or file in named:
            return link[1]
        named.add(file)
        return f"{file}:{link[1]}"

    text = _LINK.sub(shown, text).replace("`", "").replace("&#124;", "|")
    return " ".join(_EMPHASIS.sub(r"\1", text).split())


class _Said:
    """A text whose ``**bold**`` words are bold on a terminal, after a head beyond which its lines are indented."""

    def __init__(self, text: str, head: str = "", style: str = "") -> None:
        self._text = text
        self._head = head
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType | Segment]:
        text = _strong(self._text) if console.is_terminal else Text(self._text)
        text.stylize(self._style)
        if not self._head:
            yield text
            return
        indent = cell_len(self._head)
        width = max(1, min(options.max_width - indent, text.cell_len))
        for number, line in enumerate(text.wrap(console, width, justify="left", overflow="fold")):
            yield Segment(" " * indent if number else self._head)
            yield from line.render(console, "\n")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        text = _strong(self._text) if console.is_terminal else Text(self._text)
        return Measurement.get(console, options, text)


def _strong(text: str) -> Text:
    said = Text()
    for number, part in enumerate(_STRONG.split(text)):
        said.append(part, "bold" if number % 2 else None)
    return said


class _Rows:
    """A table if it fits, else a paragraph for each row."""

    def __init__(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self._headings = headings
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in self._headings:
            table.add_column(heading, overflow="fold")
        for row in self._rows:
            table.add_row(*map(_Said, row))
        wide = Measurement.get(console, options.update(max_width=_ANY_WIDTH), table).maximum
        yield from (table,) if wide <= options.max_width else self._paragraphs(options.max_width)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(40, options.max_width), options.max_width)

    def _paragraphs(self, width: int) -> Iterator[RenderableType]:
        for first, *others in self._rows:
            cells = zip(self._headings[1:], others, strict=False)
            told = [f"{heading}: {cell}" if heading else cell for heading, cell in cells if cell]
            together = "; ".join(told).replace(".; ", "; ")
            yield _Said(first, f"{self._headings[0]}: " if self._headings[0] else "", "bold")
            for each in [together] if told and len(together) <= _LINES * width else told:
                head, _, rest = each.partition(" ")
                yield Padding(_Said(rest, f"{head} "), (0, 0, 0, 2))
