"""Sequence diagrams as SVG, laid out here without Graphviz."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final

from ackfsm.showing.draw._diagram import Kind, Mark
from ackfsm.showing.draw._sequence import Arrow, SequenceDiagram
from ackfsm.showing.draw._style import COLOURS, DIM, FILLS, INK, wrapped
from ackfsm.showing.draw._svg import document, width_of
from ackfsm.text import printable

_WIDTH: Final = 860
"""That of a page, so that the text is as large there as it is here."""

_WIDEST_COLUMN: Final = 130
_BOX: Final = 110
_LEFT: Final = 62
_LINE: Final = 15
_SIZE: Final = 12
_WIDER: Final = 1.15
"""How much wider than Helvetica a font may be that a browser puts in its place."""

_WORDS: Final = 56
_TITLE_WORDS: Final = 100
_HEAD: Final = 26
_LOOP: Final = 24

_MARKERS: Final = (
    '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
    f'orient="auto-start-reverse"><path d="M0,0L10,5L0,10z" fill="{INK}"/></marker>'
    '<marker id="strike" viewBox="0 0 10 10" refX="5" refY="5" markerWidth="9" markerHeight="9" orient="auto">'
    f'<path d="M1,1L9,9M9,1L1,9" stroke="{COLOURS[Kind.FAULT]}" stroke-width="2"/></marker></defs>'
)


def sequence_svg(diagrams: Sequence[SequenceDiagram]) -> str:
    """``diagrams``, one below the other, as one SVG document."""
    sheets = [_Sheet(diagram) for diagram in diagrams]
    drawn = [(sheet, list(sheet.elements())) for sheet in sheets]
    height = sum(sheet.y for sheet in sheets)
    elements, top = [_MARKERS], 0
    for sheet, drawn_elements in drawn:
        elements += [f'<g transform="translate(0,{top})">', *drawn_elements, "</g>"]
        top += sheet.y
    return document(_WIDTH, height, elements)


@dataclasses.dataclass
class _Sheet:
    """One diagram being drawn from top to bottom; ``y`` is how far it has come."""

    diagram: SequenceDiagram
    y: int = 0

    def elements(self) -> Iterator[str]:
        """Heading, lanes, arrows, ending."""
        yield from self._words(wrapped(self.diagram.title, _TITLE_WORDS), 10, weight="bold")
        self.y += 10
        yield from map(self._head, self.diagram.lanes)
        top = self.y + _HEAD
        self.y = top + 8
        arrows = [element for arrow in self.diagram.arrows for element in self._arrow(arrow)]
        yield from (self._life(lane, top) for lane in self.diagram.lanes)
        yield from arrows
        yield from self._ending()
        self.y += 20

    def _x(self, lane: str) -> int:
        return _LEFT + self._column * self.diagram.lanes.index(lane)

    @property
    def _column(self) -> int:
        between = max(len(self.diagram.lanes) - 1, 1)
        return min(_WIDEST_COLUMN, (_WIDTH - 2 * _LEFT) // between)

    def _head(self, lane: str) -> str:
        x, fill, width = self._x(lane), FILLS[Mark.NONE], min(_BOX, self._column - 6)
        size = f'width="{width}" height="{_HEAD}"'
        box = f'<rect x="{x - width // 2}" y="{self.y}" {size} rx="4" fill="{fill}" stroke="{INK}"/>'
        return f'{box}<text x="{x}" y="{self.y + 17}" text-anchor="middle">{html.escape(printable(lane))}</text>'

    def _life(self, lane: str, top: int) -> str:
        x = self._x(lane)
        return f'<line x1="{x}" y1="{top}" x2="{x}" y2="{self.y}" stroke="{DIM}" stroke-dasharray="4,4"/>'

    def _arrow(self, arrow: Arrow) -> Iterator[str]:
        start, end = self._x(arrow.start), self._x(arrow.end)
        x = min(start, end) + (_LOOP + 8 if start == end else 8)
        colour = COLOURS[Kind.FAULT] if arrow.fault or arrow.wrong else INK
        yield from self._words([arrow.numbered], x, weight="bold", fill=colour)
        yield from self._words(wrapped(arrow.because, _WORDS), x, size=11)
        self.y += 7
        head = "strike" if arrow.fault else "head"
        path = f"M{start},{self.y}H{end}" if start != end else f"M{start},{self.y - 14}h{_LOOP}v14h-{_LOOP}"
        yield f'<path d="{path}" fill="none" stroke="{colour}" marker-end="url(#{head})"/>'
        self.y += 6

    def _ending(self) -> Iterator[str]:
        lines = [line for sentence in self.diagram.ending for line in wrapped(sentence, _TITLE_WORDS)]
        if not lines:
            return
        self.y += 8
        height = _LINE * len(lines) + 12
        size = f'width="{_WIDTH - 20}" height="{height}"'
        fill = FILLS[Mark.ANOMALY if self.diagram.wrong else Mark.NONE]
        yield f'<rect x="10" y="{self.y}" {size} rx="4" fill="{fill}" stroke="{INK}"/>'
        yield from self._words(lines, 20)
        self.y += 12

    def _words(self, lines: Sequence[str], x: int, **look: str | int) -> Iterator[str]:
        """Lines of text on a white ground, so that they can be read across a lane, all of them inside the picture."""
        attributes = "".join(f' {_ATTRIBUTES[name]}="{value}"' for name, value in look.items())
        halo = "" if not look else ' stroke="white" stroke-width="3" paint-order="stroke"'
        longest = max((_WIDER * width_of(line, _SIZE, bold=True) for line in lines), default=0)
        x = max(min(x, _WIDTH - 8 - ceil(longest)), 8)
        for line in lines:
            self.y += _LINE
            yield f'<text x="{x}" y="{self.y}"{attributes}{halo}>{html.escape(printable(line))}</text>'


_ATTRIBUTES: Final = {"weight": "font-weight", "fill": "fill", "size": "font-size"}
