"""The screen of ``ackfsm verify``."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ackfsm.history import Finding, Result
from ackfsm.report._guarantees import guarantees_line
from ackfsm.report._layout import listed, titled
from ackfsm.tables import Specification
from ackfsm.terms import Verdict
from ackfsm.text import shown

__all__ = ["verify_screen"]

_STYLE = {Verdict.VALID: "bold green", Verdict.INVALID: "bold red", Verdict.UNKNOWN: "bold yellow"}

_MEANING = {
    Verdict.VALID: "all that was found is allowed",
    Verdict.INVALID: "something was found that the configuration does not allow",
    Verdict.UNKNOWN: "something is left open, so this is not a pass",
}


def verify_screen(result: Result, specification: Specification) -> RenderableType:
    """What was read, a line for each anomaly with its meaning, what stood, the verdict and the reasons."""
    guarantees = guarantees_line(result.guarantees, result.strongest)
    return Group(_heading(result), "", _anomalies(result, specification), "", guarantees, "", *_verdict(result))


def _heading(result: Result) -> Table:
    found = result.findings
    config = found.configuration
    setting = "unknown"
    if config is not None:
        setting = f"{config.profile}: {config.delivery_mode}, {config.ack_mode}, {config.consumption}"
    faults = ", ".join(found.faults) or "none recorded"
    read = f"{found.events:,} events of {found.messages:,} messages; {found.parse_errors:,} lines unread"
    return titled(
        [
            ("history", shown(found.history)),
            ("configuration", setting),
            ("read", f"{read} ({found.engine})"),
            ("faults", faults),
        ]
    )


def _anomalies(result: Result, specification: Specification) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("anomaly", no_wrap=True)
    table.add_column("count", justify="right", no_wrap=True)
    table.add_column("allowed here", no_wrap=True)
    table.add_column("what it means")
    for anomaly, finding in result.findings.anomalies.items():
        allowed = _allowed(finding, allowed=result.allowed[anomaly])
        table.add_row(anomaly, _count(finding), allowed, specification.meaning(anomaly))
    return table


def _count(finding: Finding) -> str:
    if finding.count is not None:
        return f"{finding.count:,}"
    return f"{finding.found:,} or more" if finding.found else "unknown"


def _allowed(finding: Finding, *, allowed: bool | None) -> Text:
    if allowed is None:
        return Text("undecided", style="yellow" if finding.found else "dim")
    return Text("yes") if allowed else Text("no", style="red" if finding.found else "")


def _verdict(result: Result) -> Iterator[RenderableType]:
    yield Text(f"{result.verdict}: {_MEANING[result.verdict]}", style=_STYLE[result.verdict])
    if result.reasons:
        yield listed(result.reasons)
