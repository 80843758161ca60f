"""A page of Markdown as a screen: tables that are wider than the screen are told row by row, and nothing is cut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ackfsm.views._lines import hanging

__all__ = ["page_screen"]

_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)\s]*\)")
_ROW: Final = re.compile(r"^\| (.*) \|$")
_DRAWING: Final = re.compile(r"\[drawing\]\([^)]*\)")
"""Of such a cell nothing is left without its link."""

_ANY_WIDTH: Final = 10_000
_LINES: Final = 2
"""Of so many lines at most is a row whose cells stand one after the other."""


def page_screen(page: str) -> RenderableType:
    """The page without its links and comments; ``**`` stays, since its sentences speak of what is bold."""
    parts: list[RenderableType] = []
    rows: list[list[str]] = []
    for line in [*_COMMENT.sub("", page).strip().splitlines(), ""]:
        row = _ROW.match(line)
        if row:
            rows.append([_plain(cell) for cell in row[1].split(" | ")])
            continue
        if rows:
            headings, _, *others = rows
            parts.append(_Rows(headings, others))
            rows = []
        title = re.match(r"#+ ", line)
        parts.append(Text(_plain(line[title.end() :]), style="bold") if title else Text(_plain(line)))
    return Group(*parts[:-1])


def _plain(text: str) -> str:
    if _DRAWING.fullmatch(text.strip()):
        return ""
    text = _LINK.sub(r"\1", text).replace("`", "").replace("<br>", ", ").replace("&#124;", "|")
    return " ".join(text.split())


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
            table.add_row(*map(Text, row))
        wide = Measurement.get(console, options.update(max_width=_ANY_WIDTH), table).maximum
        yield from (table,) if wide <= options.max_width else self._paragraphs(options.max_width)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(40, options.max_width), options.max_width)

    def _paragraphs(self, width: int) -> Iterator[RenderableType]:
        for first, *others in self._rows:
            cells = zip(self._headings[1:], others, strict=False)
            told = [f"{heading}: {cell}" if heading else cell for heading, cell in cells if cell]
            together = "; ".join(told)
            heading = f"{self._headings[0]}: " if self._headings[0] else ""
            yield Text.assemble(heading, (first, "bold"), overflow="fold")
            for each in [together] if len(together) <= _LINES * width and told else told:
                yield Padding(hanging(each, ""), (0, 0, 0, 2))
