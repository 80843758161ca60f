"""The screen of ``ackfsm check --messages any``."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ackfsm.tables import Specification
from ackfsm.unbounded import Decision, Finding
from ackfsm.views._lines import configuration_lines, faults_in_words, guarantee_lines, hanging

__all__ = ["decision_screen"]


def decision_screen(decision: Decision, specification: Specification, api: str | None = None) -> RenderableType:
    """Configuration, what was searched, a line for each anomaly, the witnesses, what is open, the conclusion.

    ``api`` is the programming interface through which the configuration was asked for, if one was named.
    """
    guarantees = guarantee_lines(specification.guarantees, decision.guarantees)
    heading = _heading(decision) if api is None else Text.assemble(f"through {api}\n", _heading(decision))
    told = [*_witnesses(decision), *_undecided(decision)]
    return Group(heading, "", _findings(decision), "", *told, guarantees, "", _conclusion(decision))


def _heading(decision: Decision) -> Text:
    what = f"any number of messages; {faults_in_words(decision.bounds)}"
    extent = f"{decision.views:,} views and {decision.states:,} states of few messages ({decision.seconds:.1f} s)"
    return Text.assemble(configuration_lines(decision.configuration, what), f"\n{extent}")


def _every(decision: Decision) -> Iterator[Finding]:
    """All anomalies, and those ends of a message that can be reached or are undecided."""
    yield from decision.findings.values()
    yield from (finding for finding in decision.ends.values() if finding.reachable is not False)


def _findings(decision: Decision) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("anomaly", no_wrap=True)
    table.add_column("can happen", no_wrap=True)
    table.add_column("messages", no_wrap=True, justify="right")
    table.add_column("steps", no_wrap=True, justify="right")
    table.add_column("promised never to", overflow="fold")
    for finding in _every(decision):
        promise = "" if finding.promise is None else str(finding.promise.source)
        messages = "any" if finding.reachable is False else str(finding.messages or "")
        table.add_row(
            finding.anomaly,
            _can_happen(finding),
            messages,
            str(len(finding.steps) or ""),
            Text(promise, style="red" if finding.violated else ""),
        )
    return table


def _can_happen(finding: Finding) -> Text:
    if finding.reachable is None:
        return Text("undecided", style="yellow")
    if not finding.reachable:
        return Text("never", style="green")
    return Text("yes", style="red" if finding.violated else "yellow")


def _witnesses(decision: Decision) -> Iterator[Text]:
    reached = [finding for finding in _every(decision) if finding.steps]
    if reached:
        yield Text.assemble(("ways there", "bold"), " (ackfsm explain shows each step, with its reason)")
    for finding in reached:
        steps = " → ".join(event.label for event in finding.steps)
        yield Text.assemble((f"{finding.anomaly}: ", "bold"), f"{steps}\n")


def _undecided(decision: Decision) -> Iterator[RenderableType]:
    """Why something is undecided, each reason once."""
    by_reason: dict[str, list[str]] = {}
    for finding in _every(decision):
        if finding.undecided:
            by_reason.setdefault(finding.undecided, []).append(finding.anomaly)
    if by_reason:
        yield Text("undecided", style="bold")
        yield from (hanging(f"{', '.join(names)}: {reason}", "") for reason, names in by_reason.items())
        yield Text("")


def _conclusion(decision: Decision) -> Text:
    if not decision.keeps_promises:
        broken = ", ".join(finding.anomaly for finding in decision.findings.values() if finding.violated)
        return Text(f"Promise broken: {broken}.", style="bold red")
    if not decision.complete:
        return Text(
            "Undetermined: what is undecided may be impossible, and no search of few messages shows it.",
            style="bold yellow",
        )
    return Text(
        "As promised: nothing that is promised never to happen can happen, with any number of messages.",
        style="bold green",
    )
