"""Diagrams in the DOT language, made with the ``graphviz`` package.

``transitions`` can draw a machine too, but it knows neither who decides an event nor what is a
fault, a recorded event, a condition or a marked state, and to show that is what these drawings are for.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ackfsm.draw._canvas import canvas, coloured, left, legend, padded, small
from ackfsm.draw._diagram import Diagram, Edge, Kind, Label, Mark, Panel, State
from ackfsm.draw._style import COLOURS, DIM, FILLS, INK, KIND_MEANS, MARK_MEANS, OWNED_MEANS, grouped, wrapped

if TYPE_CHECKING:
    import graphviz

__all__ = ["dot"]

_TITLE_WIDTH = 90
_FRAME_WIDTH = 60
_GUARD_WIDTH = 34
_ROW_WIDTH = 44
_MANY_EVENTS = 6
_SMALLEST_CHAIN = 3


def dot(diagram: Diagram) -> str:
    """``diagram`` as DOT source."""
    across = _across(diagram)
    direction = "LR" if across else "TB"
    graph = canvas(diagram.name, _title(diagram), rankdir=direction, nodesep="0.5", ranksep="0.45")
    with graph.subgraph(name="cluster_legend", graph_attr=legend(_explained(diagram))) as body:
        # What stands first is drawn at the bottom where the drawing goes across.
        for panel in reversed(diagram.panels) if across else diagram.panels:
            _draw(body, diagram, panel)
    return str(graph.source)


def _across(diagram: Diagram) -> bool:
    """Whether to draw from left to right: a chain, or several machines one below the other."""
    if len(diagram.panels) > 1:
        return True
    (panel,) = diagram.panels
    order = _order(panel)
    chain = all(abs(order[edge.source] - order[edge.target]) <= 1 for edge in panel.edges)
    return chain and len(panel.states) >= _SMALLEST_CHAIN


def _order(panel: Panel) -> Mapping[str, int]:
    return {state.name: number for number, state in enumerate(panel.states)}


def _draw(graph: graphviz.Digraph, diagram: Diagram, panel: Panel) -> None:
    if len(diagram.panels) == 1:
        _draw_machine(graph, panel, "")
        return
    means = panel.means if panel.means != diagram.means else ""
    title = left([f"<b>{html.escape(panel.name)}</b>", *map(html.escape, wrapped(means, _FRAME_WIDTH))])
    frame = {"label": title, "labelloc": "t", "fontsize": "11", "color": DIM}
    with graph.subgraph(name=f"cluster_{panel.name}", graph_attr=frame) as inner:
        _draw_machine(inner, panel, f"{panel.name}.")


def _draw_machine(graph: graphviz.Digraph, panel: Panel, prefix: str) -> None:
    start = f"{prefix}initial"
    graph.node(
        start, label="", shape="circle", style="filled", fillcolor=INK, width="0.14", tooltip="the initial state"
    )
    for state in panel.states:
        graph.node(f"{prefix}{state.name}", **_state(state))
        if state.initial:
            graph.edge(start, f"{prefix}{state.name}")
    _set_aside(graph, [f"{prefix}{state.name}" for state in panel.states if not state.reachable])
    order = _order(panel)
    for edge in panel.edges:
        onward = order[edge.source] < order[edge.target] and _kinds(edge) != {Kind.FAULT}
        # The way that a message normally goes is kept short and straight.
        weight = "3" if onward else "1"
        graph.edge(f"{prefix}{edge.source}", f"{prefix}{edge.target}", weight=weight, **_edge(edge))


def _set_aside(graph: graphviz.Digraph, names: list[str]) -> None:
    """What is never reached stands in the last row, out of the way."""
    if names:
        with graph.subgraph(graph_attr={"rank": "max"}) as last:
            for name in names:
                last.node(name)


def _state(state: State) -> dict[str, str]:
    mark = f"<br/>{small(state.mark)}" if state.mark else ""
    shown = {
        "label": f"<<b>{html.escape(state.name)}</b>{mark}>",
        "style": "rounded,filled,dashed" if state.mark is Mark.AT_REST else "rounded,filled",
        "fillcolor": FILLS[state.mark],
        "peripheries": "2" if state.mark is Mark.ANOMALY else "1",
        "tooltip": state.name,
    }
    dimmed = {"color": DIM, "fontcolor": DIM, "fillcolor": "white"}
    return shown if state.reachable else shown | dimmed


def _kinds(edge: Edge) -> set[Kind]:
    return {label.kind for label in edge.labels if label.possible}


def _edge(edge: Edge) -> dict[str, str]:
    kinds = _kinds(edge)
    colour = INK if len(kinds) > 1 else COLOURS[min(kinds)] if kinds else DIM
    style = "dotted" if not kinds else "dashed" if kinds == {Kind.FAULT} else "solid"
    reasons = dict.fromkeys(f"{label.event}: {label.because}" for label in edge.labels)
    return {"label": padded(_labels(edge.labels)), "color": colour, "style": style, "tooltip": "\n".join(reasons)}


def _labels(labels: Iterable[Label]) -> Iterator[Iterator[str]]:
    """The events of an edge, those under the same guard together, with the guard below them."""
    for guard, group in grouped(labels).items():
        guards = wrapped(f"[{guard}]", _GUARD_WIDTH) if guard else ()
        yield itertools.chain(_events(group), (small(f"<i>{html.escape(line)}</i>") for line in guards))


def _events(labels: list[Label]) -> Iterator[str]:
    """One event a line; of many, as many a line as fit."""
    room = _ROW_WIDTH if len(labels) > _MANY_EVENTS else 0
    line, used = list[str](), 0
    for label in labels:
        length = len(f"{label.event}, ")
        if line and used + length > room:
            yield ", ".join(line)
            line, used = [], 0
        line.append(_event(label))
        used += length
    yield ", ".join(line)


def _event(label: Label) -> str:
    name = html.escape(str(label.event))
    return coloured(f"<b>{name}</b>" if label.owned else name, COLOURS[label.kind] if label.possible else DIM)


def _title(diagram: Diagram) -> Iterator[str]:
    yield f'<font point-size="18"><b>{html.escape(diagram.name)}</b></font>'
    yield from map(html.escape, wrapped(diagram.means, _TITLE_WIDTH))
    yield from (small(html.escape(line)) for line in wrapped(", ".join(diagram.settings or ()), _TITLE_WIDTH))


def _explained(diagram: Diagram) -> Iterator[str]:
    labels = list(diagram.labels())
    shown = {label.kind for label in labels if label.possible}
    yield from (f"{coloured(kind, COLOURS[kind])}: {KIND_MEANS[kind]}" for kind in Kind if kind in shown)
    if any(label.owned for label in labels):
        yield f"<b>bold</b>: {OWNED_MEANS}"
    if any(label.guard for label in labels):
        yield "<i>[condition]</i>: on the configuration; where it does not hold, there is no such move"
    if not all(label.possible for label in labels):
        yield f"{coloured('grey', DIM)}: cannot happen in this configuration"
    yield from (f"{mark}: {MARK_MEANS[mark]}" for mark in Mark if mark in diagram.marks())
