"""Lines whose continuations are indented: what somebody else wrote never begins a line of a screen."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

__all__ = ["hanging", "listed", "titled"]


def titled(rows: Iterable[tuple[str, str]]) -> Table:
    """A line for each pair of a title and what belongs to it."""
    return _indented((Text(f"{title}  ", style="bold"), Text(text)) for title, text in rows)


def listed(sentences: Iterable[str]) -> Table:
    """A line for each sentence, after a dash."""
    return _indented((Text("  - "), Text(sentence)) for sentence in sentences)


def hanging(sentence: str, style: str) -> Table:
    """One sentence that begins its line."""
    head, _, rest = sentence.partition(" ")
    return _indented([(Text(f"{head} ", style=style), Text(rest, style=style))])


def _indented(rows: Iterable[tuple[Text, Text]]) -> Table:
    table = Table.grid()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
