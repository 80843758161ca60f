"""Diagrams and the overview as Mermaid text (``stateDiagram-v2`` and ``flowchart``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ackfsm.showing.draw._diagram import Diagram, Mark, Panel, State
from ackfsm.showing.draw._style import DIM, FILLS, edge_labels, identifier
from ackfsm.showing.draw._system import System

_CLASSES = {
    Mark.ANOMALY: ("anomaly", f"fill:{FILLS[Mark.ANOMALY]},stroke-width:3px"),
    Mark.AT_REST: ("atRest", f"fill:{FILLS[Mark.AT_REST]},stroke-dasharray:5"),
}
_UNREACHABLE = ("unreachable", f"color:{DIM},stroke:{DIM},fill:#ffffff")


def mermaid(diagram: Diagram) -> str:
    """``diagram`` as a Mermaid state diagram."""
    return _text(["stateDiagram-v2", *(f"    {line}" for line in _body(diagram))])


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _body(diagram: Diagram) -> Iterator[str]:
    for panel in diagram.panels:
        if len(diagram.panels) == 1:
            yield from _panel(panel)
        else:
            yield f'state "{panel.name}" as {identifier(panel.name, "machine")} {{'
            yield from (f"    {line}" for line in _panel(panel))
            yield "}"
    yield from _classes(diagram)


def _panel(panel: Panel) -> Iterator[str]:
    for state in panel.states:
        yield f'state "{_caption(state)}" as {identifier(panel.name, state.name)}'
    yield from (f"[*] --> {identifier(panel.name, state.name)}" for state in panel.states if state.initial)
    for edge in panel.edges:
        label = "<br/>".join(line.text for line in edge_labels(edge.labels))
        yield f"{identifier(panel.name, edge.source)} --> {identifier(panel.name, edge.target)}: {label}"


def _caption(state: State) -> str:
    return f"{state.name}<br/>({state.mark})" if state.mark else state.name


def _classes(diagram: Diagram) -> Iterator[str]:
    states = [(identifier(panel.name, state.name), state) for panel in diagram.panels for state in panel.states]
    for mark, (name, style) in _CLASSES.items():
        yield from _class(name, style, [name for name, state in states if state.mark is mark])
    yield from _class(*_UNREACHABLE, [name for name, state in states if not state.reachable])


def _class(name: str, style: str, members: list[str]) -> Iterator[str]:
    if members:
        yield f"classDef {name} {style}"
        yield f"class {','.join(members)} {name}"


def system_mermaid(system: System) -> str:
    """``system`` as a Mermaid flowchart."""
    lines = ["flowchart LR"]
    for lane, machines in system.lanes.items():
        lines.append(f'    subgraph {identifier("lane", lane)}["{lane}"]')
        lines += [f'        {identifier("machine", machine.name)}["{machine.name}"]' for machine in machines]
        lines.append("    end")
    for edge in system.sync_edges():
        if edge.moves:
            ends = identifier("machine", edge.owner), identifier("machine", edge.other)
            lines.append(f'    {ends[0]} -->|"{"<br/>".join(edge.moves)}"| {ends[1]}')
    return _text(lines)
