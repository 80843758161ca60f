"""The cells of the tables with their place in the files: the rows for each state and event."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from ackfsm.tables import ALWAYS, BOUND_SETTINGS, Condition, Document, Machine, Row, RowKind, parse_condition
from ackfsm.tables.lookup._seen import RowKey

CALLS: Final = "decided_by"
"""Where the cells of ``spec/execution.yaml`` belong that say whose call an event is."""

_COUNTS: Final[Mapping[str, str]] = {
    "up": "counts up",
    "down": "counts down",
    "reset": "starts again",
    "full": "at the bound only",
    "some": "above 0 only",
    "undo": "takes the last count back",
    "keep": "keeps the count",
}
"""What a row of a counter does, by the heading that it stands under."""

_NAMED: Final = 2
"""So many states of a cell are named one by one."""


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclasses.dataclass(frozen=True, slots=True)
class TableRow:
    """One row of a cell: its effect (``to marked``, ``refused``), its condition, its reason, its place.

    ``seen`` are the brokers that performed it, for one of the cell's states and events at least.
    """

    outcome: str
    when: Condition
    because: str
    source: str | None
    place: Place
    seen: tuple[str, ...] = ()

    @property
    def condition(self) -> str | None:
        """The text of the condition; ``None`` for the last row of a cell, which has none."""
        return None if self.when is ALWAYS else self.when.text


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    """The rows of a table for these states and events, which are written together; the first that holds counts.

    ``table`` is a machine, or :data:`CALLS`, which has no states.
    """

    table: str
    states: tuple[str, ...]
    events: tuple[str, ...]
    rows: tuple[TableRow, ...]

    @property
    def state(self) -> str:
        """The state, or both of two that share the cell, or ``otherwise`` where more do."""
        return " and ".join(self.states) if len(self.states) <= _NAMED else "otherwise"

    @property
    def name(self) -> str:
        """``machine.state``."""
        return f"{self.table}.{self.state}" if self.states else self.table

    @property
    def place(self) -> Place:
        """The line of the first row."""
        return self.rows[0].place

    def settings(self) -> frozenset[str]:
        """The settings that decide between the rows, also through named conditions and the bounds of a check."""
        return frozenset(BOUND_SETTINGS.get(name, name) for row in self.rows for name in row.when.settings())

    def names(self) -> frozenset[str]:
        """Every name that stands in a condition of a row."""
        return frozenset(name for row in self.rows for name in row.when.names())

    def decide(self, environment: Mapping[str, Any]) -> TableRow:
        """The row that counts for these settings."""
        return next(row for row in self.rows if row.when.holds(environment))


def cells_of(machine: Machine, seen: Mapping[RowKey, Sequence[str]] = MappingProxyType({})) -> Iterator[Cell]:
    """The cells of a machine in the order of its file, states and events together that are written together.

    ``seen`` are the brokers that performed a row.
    """
    written: dict[tuple[object, ...], dict[str, list[str]]] = {}
    rows: dict[tuple[object, ...], tuple[Row, ...]] = {}
    for (state, event), cell in machine.cells.items():
        key = tuple((row.line, row.kind, row.because, row.when.text) for row in cell)
        rows.setdefault(key, cell)
        written.setdefault(key, {}).setdefault(str(event), []).append(state)
    cells = [
        Cell(machine.name, states, tuple(events), tuple(_row(machine, row, states, events, seen) for row in rows[key]))
        for key, by_event in written.items()
        for states, events in _alike(by_event).items()
    ]
    yield from sorted(cells, key=lambda cell: cell.place)


def _alike(states: Mapping[str, list[str]]) -> dict[tuple[str, ...], list[str]]:
    """The events by the states in which the cell decides them: a state may decide one of the events otherwise."""
    events: dict[tuple[str, ...], list[str]] = {}
    for event, where in states.items():
        events.setdefault(tuple(where), []).append(event)
    return events


def _row(
    machine: Machine,
    row: Row,
    states: Sequence[str],
    events: Sequence[str],
    seen: Mapping[RowKey, Sequence[str]],
) -> TableRow:
    keys = (RowKey.of(machine.name, state, event, row) for state in states for event in events) if seen else ()
    brokers = sorted({broker for key in keys for broker in seen.get(key, ())})
    place = Place(row.file, row.line)
    return TableRow(_outcome(machine, row), row.when, row.because, row.source, place, tuple(brokers))


def _outcome(machine: Machine, row: Row) -> str:
    if row.kind is RowKind.IGNORE:
        return "ignored"
    if row.kind is RowKind.REFUSE:
        return f"refused ({row.error})" if row.error else "refused"
    if machine.counter is not None:
        return _COUNTS[row.state]
    return "stays" if row.target == row.state else f"to {row.target}"


def calls_of(document: Document, conditions: Mapping[str, Condition]) -> Iterator[Cell]:
    """The cells of ``spec/execution.yaml`` that say whose call an event is."""
    for event, cell in document.data["decided_by"].items():
        rows = (
            TableRow(
                f"called by the {row['by']}" if row["by"] != "library_lazily" else "called lazily",
                parse_condition(row["when"], conditions) if "when" in row else ALWAYS,
                row["because"],
                row["source"],
                Place(document.name, document.line(("decided_by", event, i))),
            )
            for i, row in enumerate(cell)
        )
        yield Cell(CALLS, (), (event,), tuple(rows))
