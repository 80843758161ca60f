"""The screen of ``ackfsm live``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from ackfsm.driving.conform import Cell, Report, Status
from ackfsm.driving.conform.screen import STYLE, answer_line, many, verify_line
from ackfsm.driving.live.campaign import LiveReport
from ackfsm.driving.live.load import LoadedCell
from ackfsm.showing.views.lines import hanging, titled
from ackfsm.terms import Anomaly
from ackfsm.text import printable

__all__ = ["live_screen"]


def live_screen(report: LiveReport) -> RenderableType:
    """Return the answer, the broker, a line for each client and mode, and what is not as promised."""
    return Group(
        answer_line(
            report.verdict,
            report.counts(),
            "client, mode and fault",
            invalid="showed what the tables exclude",
            valid="and the broker did nothing that the tables exclude",
        ),
        "",
        titled(
            [
                ("broker", f"{report.broker} {report.version}"),
                ("limits", _limits(report)),
                ("kept in", printable(str(report.folder))),
            ]
        ),
        *_clients(report),
        *_told(report, Status.VIOLATION),
        *_told(report, Status.UNKNOWN),
        *(hanging(f"stopped: {each.stopped}", "yellow") for each in report.reports if each.stopped is not None),
        *(hanging(f"{name} was not driven: {why}", "yellow") for name, why in report.lacking.items()),
    )


def _limits(report: LiveReport) -> str:
    limits = report.reports[0].limits
    if report.load is not None:
        return f"{report.load} (seed {limits.seed})"
    end = "" if limits.seconds is None else f", begun within {limits.seconds:g} s"
    drawn = f"{many(limits.runs, 'drawn program')} of {many(limits.messages, 'message')}"
    return f"the tour, and {drawn} (seed {limits.seed}){end}"


def _clients(report: LiveReport) -> Iterator[RenderableType]:
    last = ""
    for each, covered in zip(report.reports, report.covered, strict=True):
        if each.claims.name != last:
            last = each.claims.name
            yield Text("")
            yield Text(f"{last} (profile {each.claims.profile})", style="bold")
        counts = each.counts()
        told = ", ".join(
            f"{counts[status]} {status}" for status in Status if counts[status] and status is not Status.NOT_CLAIMED
        )
        mode = next(each.claims.modes())
        rows = "" if covered is None else "rows {:.0%} to {:.0%}  ".format(*covered.shares)
        yield Text(
            f"  {mode.ack_mode} {mode.consumption}".ljust(40) + f"{rows}{told}",
            style=STYLE[each.verdict].split()[1],
        )
        seen = sum((Counter(cell.seen) for cell in each.cells), Counter[Anomaly]())
        if seen:
            yield hanging(f"    allowed, and seen: {_counted(seen)}", "")
        for cell in each.cells:
            if isinstance(cell, LoadedCell):
                told = f"{cell.sent:,} messages, {cell.struck:,} faults; {_counted(cell.seen) or 'no anomaly'}"
                yield hanging(f"    {cell.fault_name}: {told}", "")


def _counted(seen: Mapping[Anomaly, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in seen.items())


def _told(report: LiveReport, status: Status) -> Iterator[RenderableType]:
    cells = [(each, cell) for each in report.reports for cell in each.of(status)]
    if cells:
        yield Text("")
        yield Text(status.value, style="bold")
    for each, cell in cells:
        yield hanging(f"  {_named(each, cell)}: {printable(_why(cell))}", "")
        yield from verify_line(each, cell, 4)


def _named(report: Report, cell: Cell) -> str:
    return f"{report.claims.name}, {cell.mode}, {cell.fault_name}"


def _why(cell: Cell) -> str:
    if cell.failure is None:
        return cell.why or ""
    return f"run {cell.failure.run}: {next(iter(cell.failure.reasons), 'it does not conform to the model')}"
