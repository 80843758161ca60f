"""The screen of one witness: numbered steps between lanes, what each changed, and why."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ackfsm.checking.explore import Step, Witness
from ackfsm.showing.views.lines import hanging, query_lines
from ackfsm.tables import Lane, Specification

_WIDTH: Final = 80
_OF_A_TABLE: Final = 120
"""Columns that a table takes whose sentences are not broken into single words."""


def witness_text(specification: Specification, witnesses: Sequence[Witness], width: int = _WIDTH) -> str:
    """The screens of ``witnesses`` one after the other as plain text, at most ``width`` characters wide."""
    console = Console(file=io.StringIO(), width=width, highlight=False, color_system=None)
    with console.capture() as captured:
        for number, witness in enumerate(witnesses):
            console.print(*[""][: bool(number)], witness_screen(specification, witness), sep="\n")
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def witness_screen(specification: Specification, witness: Witness) -> RenderableType:
    """Return the anomaly, its place, a line for every change of every step, and the outcome."""
    heading = Text.assemble((witness.anomaly, "bold"), f": {specification.meaning(witness.anomaly)}")
    return Group(heading, query_lines(witness.network), "", _Steps(specification, witness), "", _ending(witness))


class _Steps:
    """A table with a row for each change, if there is room for one; else each change and its reason below the event."""

    def __init__(self, specification: Specification, witness: Witness) -> None:
        self._specification = specification
        self._witness = witness

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        if options.max_width >= _OF_A_TABLE:
            yield _steps(self._specification, self._witness)
        else:
            yield from _listed(self._specification, self._witness)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(_WIDTH // 2, options.max_width)


def _listed(specification: Specification, witness: Witness) -> Iterator[RenderableType]:
    digits = len(str(len(witness.steps)))
    for step in witness.steps:
        rows = list(_rows(specification, witness, step))
        number, lanes, event, *_ = rows[0]
        yield Text.assemble(f"{number!s:>{digits}}  ", event, f"  ({lanes})")
        for because, changes in itertools.groupby(rows, key=lambda row: str(row[4])):
            told = ", ".join(str(row[3]) for row in changes if row[3])
            yield Padding(hanging(f"- {told}: {because}" if told else f"- {because}", ""), (0, 0, 0, digits + 2))


def _steps(specification: Specification, witness: Witness) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("where", no_wrap=True)
    table.add_column("event", no_wrap=True)
    table.add_column("what changes")
    table.add_column("because")
    for step in witness.steps:
        for row in _rows(specification, witness, step):
            table.add_row(*row)
    return table


def _rows(specification: Specification, witness: Witness, step: Step) -> Iterator[tuple[str | Text, ...]]:
    event = specification.events[step.event.name]
    style = "bold red" if event.lane is Lane.FAULT else "bold"
    lanes = " → ".join(dict.fromkeys((event.start, event.end)))
    head: tuple[str | Text, ...] = (f"{step.number}", lanes, Text(step.event.label, style=style))
    moved = [(str(change), change.row.because) for change in step.moved(witness.anomaly)] or [("", step.because)]
    for change in moved:
        yield (*head, *change)
        head = ("", "", "")


def _ending(witness: Witness) -> Text:
    style = "bold red" if witness.promise is not None else "bold yellow"
    return Text("\n".join(witness.ending), style=style)
