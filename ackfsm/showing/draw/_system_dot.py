"""The overview in the DOT language."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ackfsm.showing.draw._canvas import canvas, coloured, left, legend, padded, small
from ackfsm.showing.draw._diagram import Kind, Mark
from ackfsm.showing.draw._style import COLOURS, FILLS, KIND_MEANS, wrapped
from ackfsm.showing.draw._system import System
from ackfsm.tables import Machine

if TYPE_CHECKING:
    import graphviz

_TITLE_WIDTH = 120
_BOX_WIDTH = 27
_FAULTS_WIDTH = 31
_SIDE_BY_SIDE = ({"link", "broker"}, {"link"})
"""Whose machines may stand in one column: the links and the broker are between the producer and the consumer.

Graphviz cannot rank some systems if it has to order the links among themselves ("trouble in init_rank").
"""


def system_dot(system: System) -> str:
    """``system`` as DOT source."""
    graph = canvas("overview", _title(system), rankdir="LR", nodesep="0.25", ranksep="0.35")
    with graph.subgraph(name="cluster_legend", graph_attr=legend(_explained())) as whole:
        for lane, machines in system.lanes.items():
            with whole.subgraph(name=f"cluster_{lane}", graph_attr=_lane(lane)) as frame:
                for machine in machines:
                    box = left(_box(system, machine))
                    frame.node(machine.name, label=box, fillcolor="white", tooltip=machine.means)
    _draw_sync_edges(graph, system)
    return str(graph.source)


def _draw_sync_edges(graph: graphviz.Digraph, system: System) -> None:
    order = [machine.name for lane in system.lanes.values() for machine in lane]
    lanes = {machine.name: lane for lane, machines in system.lanes.items() for machine in machines}
    kinds = {shared.event.name: shared.kind for shared in system.events}
    for edge in system.sync_edges():
        if edge.moves:
            label = padded([[coloured(event, COLOURS[kinds[event]]) for event in edge.moves]])
            constraint = "false" if {lanes[edge.owner], lanes[edge.other]} in _SIDE_BY_SIDE else "true"
            # Drawn from left to right in either case, so that the lanes stay in their order.
            if order.index(edge.owner) < order.index(edge.other):
                graph.edge(edge.owner, edge.other, label=label, constraint=constraint)
            else:
                graph.edge(edge.other, edge.owner, label=label, constraint=constraint, dir="back")


def _box(system: System, machine: Machine) -> Iterator[str]:
    needs, faults = ", ".join(system.needs(machine.name)), ", ".join(system.faults_of(machine.name))
    yield f"<b>{machine.name}</b>"
    yield from (small(html.escape(line)) for line in wrapped(machine.means, _BOX_WIDTH))
    yield from (small(f"<i>{line}</i>") for line in wrapped(f"needs {needs}", _BOX_WIDTH) if needs)
    for line in wrapped(faults, _FAULTS_WIDTH):
        yield f'<font point-size="8" color="{COLOURS[Kind.FAULT]}">{line}</font>'


def _title(system: System) -> Iterator[str]:
    yield '<font point-size="18"><b>ackfsm</b></font>'
    yield html.escape(system.means)
    yield from (small(html.escape(line)) for line in wrapped(", ".join(system.settings), _TITLE_WIDTH))


def _lane(lane: str) -> dict[str, str]:
    return {"label": lane, "labelloc": "t", "style": "rounded,filled", "color": FILLS[Mark.NONE], "fontsize": "15"}


def _explained() -> Iterator[str]:
    yield "<b>arrow</b>: the machine at its tail decides the event, and the event moves the machine at its head"
    for kind in (Kind.OBSERVABLE, Kind.INTERNAL):
        yield f"{coloured(kind, COLOURS[kind])}: {KIND_MEANS[kind]}"
    yield "<i>needs</i>: these stay as they are, but must permit some event that the machine decides"
    yield f"{coloured('faults', COLOURS[Kind.FAULT])}: those that move the machine"
