"""Diagrams and the overview as PlantUML text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ackfsm.showing.draw._diagram import Diagram, Edge, Kind, Mark, Panel, State
from ackfsm.showing.draw._style import (
    COLOURS,
    DIM,
    FILLS,
    KIND_MEANS,
    MARK_MEANS,
    EdgeLabel,
    edge_labels,
    identifier,
    wrapped,
)
from ackfsm.showing.draw._system import System

_TITLE_WIDTH = 90
_LABEL_WIDTH = 40
_STYLE = ("hide empty description", "skinparam defaultFontName sans-serif")


def plantuml(diagram: Diagram) -> str:
    """``diagram`` as a PlantUML state diagram."""
    lines = [*_title(diagram.name, diagram.means, diagram.settings or ()), *_STYLE]
    for panel in diagram.panels:
        if len(diagram.panels) == 1:
            lines += _panel(panel)
        else:
            lines.append(f'state "{panel.name}" as {identifier(panel.name, "machine")} {{')
            lines += [f"  {line}" for line in _panel(panel)]
            lines.append("}")
    return _document(diagram.name, [*lines, *_legend(diagram)])


def _document(name: str, lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in (f"@startuml {name}", *lines, "@enduml"))


def _title(name: str, means: str, settings: Iterable[str]) -> Iterator[str]:
    yield "title"
    yield f"<b>{name}</b>"
    yield from wrapped(means, _TITLE_WIDTH)
    yield from wrapped(", ".join(settings), _TITLE_WIDTH)
    yield "end title"


def _panel(panel: Panel) -> Iterator[str]:
    for state in panel.states:
        yield f'state "{_caption(state)}" as {identifier(panel.name, state.name)} {_look(state)}'
    yield from (f"[*] --> {identifier(panel.name, state.name)}" for state in panel.states if state.initial)
    for edge in panel.edges:
        ends = identifier(panel.name, edge.source), identifier(panel.name, edge.target)
        label = "\\n".join(line for part in edge_labels(edge.labels) for line in _coloured(part))
        yield f"{ends[0]} {_arrow(edge)} {ends[1]} : {label}"


def _caption(state: State) -> str:
    return f"{state.name}\\n({state.mark})" if state.mark else state.name


def _look(state: State) -> str:
    if not state.reachable:
        dim = DIM.removeprefix("#")
        return f"#white;line:{dim};text:{dim}"
    return FILLS[state.mark] + {Mark.ANOMALY: ";line.bold", Mark.AT_REST: ";line.dashed"}.get(state.mark, "")


def _arrow(edge: Edge) -> str:
    kinds = {label.kind for label in edge.labels if label.possible}
    if not kinds:
        return f"-[{DIM},dotted]->"
    return f"-[{COLOURS[Kind.FAULT]},dashed]->" if kinds == {Kind.FAULT} else "-->"


def _coloured(label: EdgeLabel) -> Iterator[str]:
    colour = COLOURS[Kind.FAULT] if label.fault else ""
    for line in wrapped(label.text, _LABEL_WIDTH):
        yield f"<color:{colour if label.possible else DIM}>{line}</color>" if colour or not label.possible else line


def _legend(diagram: Diagram) -> Iterator[str]:
    lines = [f"{mark}: {MARK_MEANS[mark]}" for mark in Mark if mark in diagram.marks()]
    if any(label.kind is Kind.FAULT for label in diagram.labels()):
        lines.append(f"<color:{COLOURS[Kind.FAULT]}>{Kind.FAULT}</color>: {KIND_MEANS[Kind.FAULT]}")
    if lines:
        yield from ("legend", *lines, "end legend")


def system_plantuml(system: System) -> str:
    """``system`` as a PlantUML component diagram."""
    lines = [*_title("ackfsm", system.means, system.settings), "left to right direction"]
    for lane, machines in system.lanes.items():
        lines.append(f'package "{lane}" {{')
        lines += [f'  component "{machine.name}" as {identifier("machine", machine.name)}' for machine in machines]
        lines.append("}")
    for edge in system.sync_edges():
        if edge.moves:
            ends = identifier("machine", edge.owner), identifier("machine", edge.other)
            label = "\\n".join(edge.moves)
            lines.append(f"{ends[0]} --> {ends[1]} : {label}")
    return _document("overview", lines)
