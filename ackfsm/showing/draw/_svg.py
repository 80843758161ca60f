"""Elements of SVG documents that are laid out without Graphviz: text of a known width, and the document."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Final

from ackfsm.showing.draw._style import FONT, INK
from ackfsm.text import printable

_GLYPHS: Final = {
    222: "ijl",
    278: " !,./:;I[\\]ft",
    333: "()-`r",
    500: "Jckvsxyz",
    611: "FTZ",
    667: "&ABEKPSVXY",
    722: "CDHNRUw",
    778: "GOQ",
    833: "Mm",
    944: "W",
}
_WIDTHS: Final = {glyph: width for width, glyphs in _GLYPHS.items() for glyph in glyphs}
"""Thousandths of the font size that a character of Helvetica takes; all others take 556."""

_BOLD: Final = 1.07


def width_of(words: str, size: int, *, bold: bool = False) -> float:
    """How wide ``words`` are in Helvetica of ``size`` pixels."""
    return sum(_WIDTHS.get(glyph, 556) for glyph in words) * size / 1000 * (_BOLD if bold else 1)


def lines_within(words: Iterable[str], room: float, size: int) -> Sequence[str]:
    """``words`` in lines no wider than ``room`` pixels; a word that is wider has a line of its own."""
    lines: list[str] = []
    for word in words:
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, size) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def text(  # noqa: PLR0913 - the attributes of SVG's own element
    x: float,
    y: float,
    words: str,
    room: float,
    *,
    size: int = 11,
    bold: bool = False,
    fill: str = INK,
    anchor: str = "start",
) -> str:
    """One line at a baseline, as wide in every font as it is in Helvetica, and no wider than ``room``."""
    length = min(width_of(words, size, bold=bold), room)
    look = ' font-weight="bold"' * bold + f' fill="{fill}"' * (fill != INK)
    look += f' text-anchor="{anchor}"' * (anchor != "start")
    fitted = f'textLength="{length:.0f}" lengthAdjust="spacingAndGlyphs"'
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" {fitted}{look}>{html.escape(printable(words))}</text>'


def titled(title: str, elements: Iterable[str], **attributes: str) -> str:
    """``elements`` as a group that shows ``title`` where the mouse rests on it."""
    named = "".join(f' {name}="{html.escape(value)}"' for name, value in attributes.items())
    return f"<g{named}><title>{html.escape(title)}</title>{''.join(elements)}</g>"


def document(width: int, height: int, elements: Iterable[str]) -> str:
    """The elements on a white ground."""
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    lines = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}, sans-serif" font-size="12" fill="{INK}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *elements,
        "</svg>",
    )
    return "".join(f"{line}\n" for line in lines)
