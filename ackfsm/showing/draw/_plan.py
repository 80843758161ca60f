"""Which rows a panel draws, and with which labels: the step from a table to a diagram.

Two things differ from the table.  The alternatives of a cell, which the table has in order, get
their condition in words, so that each can stand on an edge of its own.  And of a counter with many
numbers only the ends are drawn: ``0``, ``1``, ``...`` and the bound.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ackfsm.tables import Counter, EventRef, Fsm, Machine, Row, RowKind

_ELIDED = "..."
_MANY = 5
_SHORT_BOUND = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """One alternative of one cell of the table.

    ``number`` counts the alternatives of the cell from 0, and ``when`` is the condition of this
    one, empty if it has none.  ``guard`` is the condition for an edge, which stands alone: it
    also names the alternatives before this one where no edge shows them.
    """

    row: Row
    number: int = 0
    when: str = ""
    guard: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """The states of a panel, the first of them to be entered, and its lines, in the order of the table."""

    states: tuple[str, ...]
    initial: str
    lines: tuple[Line, ...]


def general(machine: Machine) -> Plan:
    """Every alternative of every cell, whatever the configuration."""
    lines = [(place, line) for place, cell in machine.cells.items() for line in _alternatives(cell)]
    if machine.counter is None:
        return Plan(machine.states, machine.initial, tuple(line for _, line in lines))
    names: Mapping[str, str] = {}
    counted: list[Line] = []
    for place, line in lines:
        fsm = _counting_alone(machine, machine.counter, place, line.row)
        names, initial = {**names, **_short_names(fsm, machine.counter.bound)}, fsm.initial
        counted += [_renamed(dataclasses.replace(line, row=row), names) for row in fsm.rows.values()]
    return Plan(tuple(names.values()), names[initial], tuple(counted))


def configured(machine: Machine, fsm: Fsm, environment: Mapping[str, Any]) -> Plan:
    """The rows of ``fsm``, which is what ``environment`` leaves of ``machine``."""
    names = {state: state for state in fsm.states}
    if machine.counter is not None and len(fsm.states) > _MANY:
        bound = machine.counter.bound
        fsm = machine.fsm({**environment, bound: _SHORT_BOUND})
        names = _short_names(fsm, str(environment[bound]))
    lines = tuple(_renamed(Line(row), names) for row in fsm.rows.values())
    return Plan(tuple(names.values()), names[fsm.initial], lines)


def _alternatives(cell: Sequence[Row]) -> Iterator[Line]:
    for number, row in enumerate(cell):
        when = row.when.text if number < len(cell) - 1 else ""
        yield Line(row, number, when, _guard(when, cell[:number]))


def _guard(when: str, before: Sequence[Row]) -> str:
    """Return the condition of a row that stands behind the rows ``before``; only moves are drawn."""
    drawn = any(row.kind is RowKind.TO for row in before)
    unless = [f"unless {row.when.text}" for row in before if row.kind is not RowKind.TO]
    first = " ".join(["else"] * drawn + [when] * bool(when))
    return ", ".join([first] * bool(first) + unless)


def _counting_alone(machine: Machine, counter: Counter, place: tuple[str, EventRef], row: Row) -> Fsm:
    """The numbers that one alternative of a counter makes, as if it were the only row of its cell and held always."""
    always = row._replace(when=machine.cells[place][-1].when)
    undone = {
        at: (cell[0]._replace(when=cell[-1].when),)
        for at, cell in machine.cells.items()
        if at[0] == "undo" and at != place
    }
    shown = (place[1], *(event for _, event in undone))
    alone = dataclasses.replace(machine, alphabet=shown, cells={**undone, place: (always,)})
    fsm = alone.fsm({counter.bound: _SHORT_BOUND})
    rows = {at: row for at, row in fsm.rows.items() if at[1] == place[1]}
    return dataclasses.replace(fsm, alphabet=(place[1],), rows=rows)


def _short_names(fsm: Fsm, bound: str) -> dict[str, str]:
    shown = {str(_SHORT_BOUND - 1): _ELIDED, str(_SHORT_BOUND): bound}
    numbers = {state: state.removesuffix(Counter.OPEN) for state in fsm.states}
    return {
        state: shown.get(number, number) + (", may be undone" if number != state else "")
        for state, number in numbers.items()
    }


def _renamed(line: Line, names: Mapping[str, str]) -> Line:
    row = line.row._replace(state=names[line.row.state], target=names[line.row.target])
    return dataclasses.replace(line, row=row)
