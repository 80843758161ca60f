"""The screen of ``ackfsm conform``."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.text import Text

from ackfsm.driving.conform import Cell, Limits, Report, Status
from ackfsm.showing.views.lines import hanging, listed, titled
from ackfsm.terms import Verdict
from ackfsm.text import printable, shown

_WIDEST = 120
"""Sentences of longer lines are hard to read."""
STYLE: Final = {Verdict.VALID: "bold green", Verdict.INVALID: "bold red", Verdict.UNKNOWN: "bold yellow"}
"""Of an answer, by the verdict."""
_OF_STATUS = {Status.OK: "green", Status.VIOLATION: "bold red", Status.UNKNOWN: "yellow", Status.NOT_CLAIMED: "dim"}


def conform_screen(report: Report) -> RenderableType:
    """Return the answer, the target and its limits, each mode with its faults, and the first violation."""
    answer = answer_line(
        report.verdict,
        report.counts(),
        "mode and fault",
        invalid="broke a promise of the configuration",
        valid="and no promise was broken",
    )
    screen = Group(answer, "", _heading(report), *_modes(report), *_first(report))
    return Group(Constrain(screen, _WIDEST), *_next(report))


def answer_line(verdict: Verdict, counts: Mapping[Status, int], of: str, *, invalid: str, valid: str) -> RenderableType:
    """Return the answer: how many of the combinations ``of`` something are as bad as that, and what they did."""
    judged = sum(counts[status] for status in (Status.OK, Status.VIOLATION, Status.UNKNOWN))
    cells = f"{many(judged, 'combination')} of {of}"
    told = {
        Verdict.VALID: f"{cells}, {valid}",
        Verdict.INVALID: f"{counts[Status.VIOLATION]:,} of {cells} {invalid}",
        Verdict.UNKNOWN: f"{counts[Status.UNKNOWN]:,} of {cells} are open, so this is not a pass",
    }
    return hanging(f"{verdict}: {told[verdict]}", STYLE[verdict])


def _heading(report: Report) -> RenderableType:
    claims, rows = report.claims, [("implementation", f"{shown(report.claims.name)} ({shown(report.claims.profile)})")]
    if claims.settings:
        rows.append(("settings", ", ".join(f"{key}={value}" for key, value in claims.settings.items())))
    rows.append(("limits", _limits(report.limits)))
    if report.stopped is not None:
        rows.append(("stopped", "before its end; the last line says why"))
    return titled([(title, printable(text)) for title, text in rows])


def _limits(limits: Limits) -> str:
    calls = "" if limits.timeout is None else f"; {limits.timeout:g}s for a call"
    return (
        f"for each combination {many(limits.runs, 'run')} with {many(limits.messages, 'message')}; "
        f"seed {limits.seed}{calls}; "
        f"{limits.wait:g}s for a message to come"
    )


def many(number: int, what: str) -> str:
    """So many of a thing."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _modes(report: Report) -> Iterator[RenderableType]:
    cells = sorted(report.cells, key=lambda cell: str(cell.mode))
    order = {cell.mode: n for n, cell in reversed([*enumerate(report.cells)])}
    for mode, its in itertools.groupby(sorted(cells, key=lambda cell: order[cell.mode]), key=lambda cell: cell.mode):
        yield Text("")
        yield Text(str(mode), style="bold")
        yield from _faults([*its])


def _faults(cells: Sequence[Cell]) -> Iterator[RenderableType]:
    """A line for each status: its faults, and why they are violations or unknown."""
    for status in Status:
        its = [cell for cell in cells if cell.status is status]
        if not its:
            continue
        for text in _sentences(status, its):
            grid = titled([("", "")]).grid(padding=(0, 0))
            grid.add_column(width=14, no_wrap=True)
            grid.add_column(overflow="fold")
            grid.add_row(Text(f"  {status}", style=_OF_STATUS[status]), Text(text))
            yield grid


def _sentences(status: Status, cells: Sequence[Cell]) -> list[str]:
    """Return one sentence for each violation, one for each reason of an unknown, one for all others."""
    if status is Status.VIOLATION:
        return [_told(cell) for cell in cells]
    if status is not Status.UNKNOWN:
        return [", ".join(map(_told, cells))]
    whys = dict.fromkeys(cell.why or "" for cell in cells)
    return [f"{', '.join(_told(each) for each in cells if (each.why or '') == why)}: {printable(why)}" for why in whys]


def _told(cell: Cell) -> str:
    name = "no fault" if cell.fault is None else cell.fault.value
    match cell.status:
        case Status.OK:
            return name if cell.fault is None else f"{name} (struck in {cell.struck} of {cell.runs})"
        case Status.VIOLATION:
            return f"{name}, run {cell.failure.run}: {printable(_reason(cell))}" if cell.failure else name
        case _:
            return name


def _reason(cell: Cell) -> str:
    if cell.failure is None or not cell.failure.reasons:
        return "it does not conform to the model"
    return cell.failure.reasons[0]


def _first(report: Report) -> Iterator[RenderableType]:
    """Yield the first violation, as the smallest program that shows it, and the next command."""
    cell = next(report.of(Status.VIOLATION), None)
    if cell is None or cell.failure is None:
        return
    yield Text("")
    yield Text("the first violation", style="bold")
    yield listed([printable(step) for step in cell.failure.small_program.split("; ")] or ["the end"])


def _next(report: Report) -> Iterator[RenderableType]:
    """Yield the next command."""
    lines = [line for cell in itertools.islice(report.of(Status.VIOLATION), 1) for line in verify_line(report, cell, 2)]
    if lines:
        yield Text("explain it", style="bold")
    yield from lines


def verify_line(report: Report, cell: Cell, indent: int) -> Iterator[RenderableType]:
    """The command that tells more of a violation, if its history is kept: not broken, so that it can be copied."""
    if cell.failure is not None and cell.failure.small is not None:
        own = report.claims.profile if report.claims.profile.endswith((".yaml", ".yml")) else ""
        profile = f" --profile {shlex.quote(own)}" if own else ""
        line = f"{' ' * indent}ackfsm verify{profile} {shlex.quote(str(cell.failure.small))}"
        yield Text(line, no_wrap=True, overflow="ignore")
