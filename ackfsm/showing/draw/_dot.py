"""Diagrams in the DOT language, made with the ``graphviz`` package.

``transitions`` can draw a machine too, but it knows neither who decides an event nor what is a
fault, a recorded event, a condition or a marked state, and to show that is what these drawings are for.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ackfsm.showing.draw._canvas import canvas, coloured, left, legend, padded, small
from ackfsm.showing.draw._diagram import Diagram, Edge, Kind, Label, Mark, Panel, State
from ackfsm.showing.draw._style import COLOURS, DIM, FILLS, INK, KIND_MEANS, MARK_MEANS, OWNED_MEANS, grouped, wrapped

if TYPE_CHECKING:
    import graphviz

_TITLE_WIDTH = 90
_FRAME_WIDTH = 60
_GUARD_WIDTH = 22
_ROW_WIDTH = 40
_MANY_EVENTS = 6
_SHORT = 3
_LONGEST_CHAIN = 4
_SIDE_BY_SIDE = 10
"""States of several machines that have room side by side."""


def dot(diagram: Diagram) -> str:
    """``diagram`` as DOT source."""
    across, notes = _across(diagram), _notes(diagram)
    direction, ranksep = ("LR", "0.2") if across else ("TB", "0.4")
    graph = canvas(diagram.name, _title(diagram), rankdir=direction, nodesep="0.1", ranksep=ranksep)
    with graph.subgraph(name="cluster_legend", graph_attr=legend(_explained(diagram, notes))) as body:
        # What stands first is drawn at the bottom where the drawing goes across.
        for panel in reversed(diagram.panels) if across else diagram.panels:
            _draw(body, diagram, panel, notes)
        if len(diagram.panels) > 1 and not across:
            _stack(body, diagram.panels)
    return str(graph.source)


def _across(diagram: Diagram) -> bool:
    """Whether to draw from left to right: a short chain, or several machines that are short, one below the other."""
    longest = max(len(panel.states) for panel in diagram.panels)
    if len(diagram.panels) > 1:
        return longest <= _SHORT
    (panel,) = diagram.panels
    order = _order(panel)
    chain = all(abs(order[edge.source] - order[edge.target]) <= 1 for edge in panel.edges)
    return chain and _SHORT <= longest <= _LONGEST_CHAIN


def _stack(graph: graphviz.Digraph, panels: Sequence[Panel]) -> None:
    """Machines that are together too wide for a page stand one below the other."""
    if sum(len(panel.states) for panel in panels) > _SIDE_BY_SIDE:
        for above, below in itertools.pairwise(panels):
            for state in above.states:
                if state.reachable:
                    graph.edge(f"{above.name}.{state.name}", f"{below.name}.initial", style="invis")


def _order(panel: Panel) -> Mapping[str, int]:
    return {state.name: number for number, state in enumerate(panel.states)}


def _draw(graph: graphviz.Digraph, diagram: Diagram, panel: Panel, notes: Mapping[str, int]) -> None:
    if len(diagram.panels) == 1:
        _draw_machine(graph, panel, "", notes)
        return
    means = panel.means if panel.means != diagram.means else ""
    title = left([f"<b>{html.escape(panel.name)}</b>", *map(html.escape, wrapped(means, _FRAME_WIDTH))])
    frame = {"label": title, "labelloc": "t", "fontsize": "11", "color": DIM}
    with graph.subgraph(name=f"cluster_{panel.name}", graph_attr=frame) as inner:
        _draw_machine(inner, panel, f"{panel.name}.", notes)


def _draw_machine(graph: graphviz.Digraph, panel: Panel, prefix: str, notes: Mapping[str, int]) -> None:
    start = f"{prefix}initial"
    graph.node(
        start, label="", shape="circle", style="filled", fillcolor=INK, width="0.14", tooltip="the initial state"
    )
    for state in panel.states:
        if state.reachable:
            graph.node(f"{prefix}{state.name}", **_state(state))
        if state.initial:
            graph.edge(start, f"{prefix}{state.name}")
    order = _order(panel)
    for edge in _shown(panel):
        onward = order[edge.source] < order[edge.target] and _kinds(edge) != {Kind.FAULT}
        # The way that a message normally goes is kept short and straight.
        weight = "3" if onward else "1"
        graph.edge(f"{prefix}{edge.source}", f"{prefix}{edge.target}", weight=weight, **_edge(edge, notes))


def _shown(panel: Panel) -> list[Edge]:
    """The edges between states that are reached."""
    reached = {state.name for state in panel.states if state.reachable}
    return [edge for edge in panel.edges if {edge.source, edge.target} <= reached]


def _state(state: State) -> dict[str, str]:
    mark = f"<br/>{small(state.mark)}" if state.mark else ""
    return {
        "label": f"<<b>{html.escape(state.name)}</b>{mark}>",
        "style": "rounded,filled,dashed" if state.mark is Mark.AT_REST else "rounded,filled",
        "fillcolor": FILLS[state.mark],
        "peripheries": "2" if state.mark is Mark.ANOMALY else "1",
        "tooltip": state.name,
    }


def _kinds(edge: Edge) -> set[Kind]:
    return {label.kind for label in edge.labels if label.possible}


def _edge(edge: Edge, notes: Mapping[str, int]) -> dict[str, str]:
    kinds = _kinds(edge)
    colour = INK if len(kinds) > 1 else COLOURS[min(kinds)] if kinds else DIM
    style = "dotted" if not kinds else "dashed" if kinds == {Kind.FAULT} else "solid"
    reasons = dict.fromkeys(f"{label.event}: {label.because}" for label in edge.labels)
    return {
        "label": padded(_labels(edge.labels, notes)),
        "color": colour,
        "style": style,
        "tooltip": "\n".join(reasons),
    }


def _labels_shown(diagram: Diagram) -> Iterator[Label]:
    return (label for panel in diagram.panels for edge in _shown(panel) for label in edge.labels)


def _notes(diagram: Diagram) -> dict[str, int]:
    """The guards that are too long for an edge, numbered in the order of the edges."""
    guards = (label.guard for label in _labels_shown(diagram))
    long = dict.fromkeys(guard for guard in guards if len(guard) > _GUARD_WIDTH)
    return {guard: number for number, guard in enumerate(long, 1)}


def _labels(labels: Iterable[Label], notes: Mapping[str, int]) -> Iterator[Iterator[str]]:
    """The events of an edge, those under the same guard together, with the guard or the number of its note below."""
    for guard, group in grouped(labels).items():
        shown = [small(f"<i>[{html.escape(str(notes.get(guard, guard)))}]</i>")] if guard else []
        yield itertools.chain(_events(group), shown)


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


def _explained(diagram: Diagram, notes: Mapping[str, int]) -> Iterator[str]:
    labels = list(_labels_shown(diagram))
    shown = {label.kind for label in labels if label.possible}
    yield from (f"{coloured(kind, COLOURS[kind])}: {KIND_MEANS[kind]}" for kind in Kind if kind in shown)
    if any(label.owned for label in labels):
        yield f"<b>bold</b>: {OWNED_MEANS}"
    if any(label.guard for label in labels):
        yield "<i>[condition]</i>: on the configuration; where it does not hold, there is no such move"
    for guard, number in notes.items():
        first, *more = wrapped(guard, _TITLE_WIDTH)
        yield f"<i>[{number}]</i>: {html.escape(first)}"
        yield from (f"&#160;&#160;&#160;&#160;&#160;{html.escape(line)}" for line in more)
    if not all(label.possible for label in labels):
        yield f"{coloured('grey', DIM)}: cannot happen in this configuration"
    for panel in diagram.panels:
        if missing := ", ".join(state.name for state in panel.states if not state.reachable):
            place = f" in {panel.name}" * (len(diagram.panels) > 1)
            yield from map(html.escape, wrapped(f"never reached in this configuration{place}: {missing}", _TITLE_WIDTH))
    yield from (f"{mark}: {MARK_MEANS[mark]}" for mark in Mark if mark in diagram.marks())
