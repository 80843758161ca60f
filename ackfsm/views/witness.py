"""The screen of one witness: numbered steps between lanes, what each changed, and why."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ackfsm.explore import Step, Witness
from ackfsm.tables import Lane, Specification
from ackfsm.views._lines import query_lines

__all__ = ["witness_screen", "witness_text"]

_WIDTH = 140


def witness_text(specification: Specification, witnesses: Sequence[Witness]) -> str:
    """The screens of ``witnesses`` one after the other as plain text, at most 140 characters wide."""
    console = Console(file=io.StringIO(), width=_WIDTH, highlight=False, color_system=None)
    with console.capture() as captured:
        for number, witness in enumerate(witnesses):
            console.print(*[""][: bool(number)], witness_screen(specification, witness), sep="\n")
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def witness_screen(specification: Specification, witness: Witness) -> RenderableType:
    """What the anomaly is, where it was found, a line for every change of every step, and the outcome."""
    heading = Text.assemble((witness.anomaly, "bold"), f": {specification.meaning(witness.anomaly)}")
    return Group(heading, query_lines(witness.network), "", _steps(specification, witness), "", _ending(witness))


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
