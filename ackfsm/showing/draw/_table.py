"""Diagrams and the overview as Markdown tables, with every row.

A diagram has no room for what is ignored and refused.  The table of a state has every event of
the alphabet, with the reason; events with the same outcome share a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ackfsm.showing.draw._diagram import Diagram, Panel, State, Watched
from ackfsm.showing.draw._plan import Line
from ackfsm.showing.draw._system import System
from ackfsm.showing.views.markdown import code, page_of, rows_of, sentence
from ackfsm.tables import Row, RowKind

_ORDER = (RowKind.TO, RowKind.REFUSE, RowKind.IGNORE)


def head(diagram: Diagram) -> str:
    """Title, meaning, and the settings that the tables were made for."""
    lines = [f"# {diagram.name}", "", f"{sentence(diagram.means)} (`spec/{diagram.file}`)"]
    if diagram.settings is not None:
        settings = ", ".join(map(code, diagram.settings)) or "any configuration: no row reads a setting"
        lines += ["", f"For {settings}."]
    return page_of(lines)


def body(diagram: Diagram) -> str:
    """Return every state with every event, then the meanings of the conditions and events."""
    lines = list[str]()
    for panel in diagram.panels:
        if len(diagram.panels) > 1:
            lines += ["", f"## {panel.name}", "", sentence(panel.means)]
        lines += _panel(panel, depth=2 if len(diagram.panels) == 1 else 3)
    if diagram.conditions:
        rows = [(code(name), code(text)) for name, text in diagram.conditions.items()]
        lines += ["", "## Conditions", "", *rows_of(("condition", "stands for"), rows)]
    return page_of([*lines, "", "## Events", "", *_events(diagram)])


def _panel(panel: Panel, depth: int) -> Iterator[str]:
    for state in panel.states:
        lines = [line for line in panel.lines if line.row.state == state.name]
        conditional = any(line.when for line in lines)
        names = ("event", "outcome", *(["when"] * conditional), "because", "source")
        yield from ("", f"{'#' * depth} State {code(state.name)}{_remark(state)}", "")
        yield from rows_of(names, _state(lines, conditional=conditional))


def _remark(state: State) -> str:
    remarks = ["initial"] * state.initial + [state.mark] * bool(state.mark)
    remarks += ["never reached in this configuration"] * (not state.reachable)
    return f" ({', '.join(remarks)})" if remarks else ""


def _state(lines: Iterable[Line], *, conditional: bool) -> Iterator[tuple[str, ...]]:
    """The rows of one state: for each set of events with the same outcomes, the alternatives in their order."""
    cells: dict[str, list[Line]] = {}
    for line in lines:
        cells.setdefault(code(str(line.row.event)), []).append(line)
    same: dict[tuple[tuple[object, ...], ...], list[str]] = {}
    for event, cell in cells.items():
        same.setdefault(tuple(map(_alternative, cell)), []).append(event)
    for events in sorted(same.values(), key=lambda events: _rank(cells[events[0]])):
        for line in cells[events[0]]:
            when = (_when(line),) if conditional else ()
            yield (", ".join(events), _outcome(line.row), *when, line.row.because, line.row.source or "")


def _alternative(line: Line) -> tuple[object, ...]:
    row = line.row
    return line.number, line.when, row.kind, row.target, row.because, row.source, row.error


def _rank(lines: Iterable[Line]) -> int:
    return min(_ORDER.index(line.row.kind) for line in lines)


def _outcome(row: Row) -> str:
    if row.kind is RowKind.IGNORE:
        return "ignored"
    if row.kind is RowKind.REFUSE:
        return f"refused ({code(row.error)})" if row.error else "refused"
    return "stays" if row.target == row.state else f"to {code(row.target)}"


def _when(line: Line) -> str:
    words = ["else"] * bool(line.number) + [code(line.when)] * bool(line.when)
    return " ".join(words) or "always"


def _events(diagram: Diagram) -> list[str]:
    rows = [
        (code(watched.event.name), _kind(watched), _decider(watched.owner, diagram.name), sentence(watched.event.means))
        for watched in diagram.events
    ]
    lines = rows_of(("event", "kind", "decided by", "means"), rows)
    if gone := [code(watched.event.name) for watched in diagram.events if not watched.possible]:
        lines += ["", f"In this configuration the model has no {', '.join(gone)}."]
    return lines


def _kind(watched: Watched) -> str:
    return f"{watched.kind}, optional" if watched.event.optional else watched.kind


def _decider(owner: str, name: str) -> str:
    if not owner:
        return "nothing in the model: only histories have it"
    return f"**{owner}**" if owner == name else owner


def system_head(system: System) -> str:
    """Title and meaning of the overview."""
    lines = ["# The machines", "", sentence(system.means)]
    if system.settings:
        lines += ["", f"For {', '.join(map(code, system.settings))}."]
    return page_of(lines)


def system_body(system: System) -> str:
    """The machines by lane, then every event with who decides it and who takes part."""
    machines = [
        (lane, code(machine.name), machine.per, sentence(machine.means))
        for lane, group in system.lanes.items()
        for machine in group
    ]
    events = [
        (
            code(shared.event.name),
            shared.kind,
            code(shared.owner),
            *map(_names, (shared.moves, shared.permits)),
            shared.event.means,
        )
        for shared in system.events
    ]
    lines = ["", "## Machines", "", *rows_of(("lane", "machine", "one for each", "means"), machines)]
    lines += ["", "## Events", ""]
    lines += rows_of(("event", "kind", "decided by", "moves", "permitted by", "means"), events)
    return page_of(lines)


def _names(machines: Iterable[str]) -> str:
    return ", ".join(map(code, machines))
