"""Common parts of all DOT pictures: a graph with title and legend, and labels of several lines.

Text on pictures is ASCII: not every Graphviz program knows the width of anything else.
"""

from __future__ import annotations

from collections.abc import Iterable

import graphviz

from ackfsm.showing.draw._style import FONT, INK


def canvas(name: str, title: Iterable[str], **attributes: str) -> graphviz.Digraph:
    """Return a sheet with a title at the top left; ``attributes`` are the graph's (``rankdir``, distances)."""
    text = {"fontname": FONT, "fontcolor": INK}
    return graphviz.Digraph(
        name,
        graph_attr={"label": left(title), "labelloc": "t", "labeljust": "l", "fontsize": "12", **text, **attributes},
        node_attr={"shape": "box", "style": "rounded,filled", "fontsize": "13", "color": INK, **text},
        edge_attr={"fontname": FONT, "fontsize": "10", "color": INK, "arrowsize": "0.7"},
    )


def legend(lines: Iterable[str]) -> dict[str, str]:
    """Attributes of a cluster around everything: its label is the legend below the drawing."""
    return {"label": left(lines), "labelloc": "b", "labeljust": "l", "peripheries": "0", "fontsize": "10"}


def left(lines: Iterable[str]) -> str:
    """Lines of HTML-like text as one label, each at the left."""
    return f"<{_lines(lines)}>"


def padded(groups: Iterable[Iterable[str]]) -> str:
    """Groups of lines as the label of an edge: each at the left, apart from each other and from the edge."""
    rows = "".join(f'<tr><td align="left">{_lines(group)}</td></tr>' for group in groups)
    return f'<<table border="0" cellpadding="2" cellspacing="1">{rows}</table>>'


def _lines(lines: Iterable[str]) -> str:
    """Lines of HTML-like text inside a label, each at the left."""
    return "".join(f'{line}<br align="left"/>' for line in lines)


def small(text: str) -> str:
    """HTML-like text in small type."""
    return f'<font point-size="10">{text}</font>'


def coloured(text: str, colour: str) -> str:
    """HTML-like text in a colour."""
    return f'<font color="{colour}">{text}</font>'
