"""Pieces of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def page_of(lines: Iterable[str]) -> str:
    """The text of these lines."""
    return "".join(f"{line}\n" for line in lines)


def sentence(text: str) -> str:
    """``text`` as a sentence of its own."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def code(text: str) -> str:
    """``text`` as code."""
    return f"`{text}`"


def rows_of(names: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table with these column names."""
    cells = [names, ["---"] * len(names), *rows]
    return [f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in cells]
