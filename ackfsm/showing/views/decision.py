"""The screen of ``ackfsm check --messages any``."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from ackfsm.checking.unbounded import Decision, Finding
from ackfsm.showing.views._findings import (
    as_promised,
    beside_promises,
    can_happen,
    findings_table,
    promise,
    steps_line,
    ways,
)
from ackfsm.showing.views.lines import configuration_lines, faults_in_words, guarantee_lines, hanging
from ackfsm.tables import Specification


def decision_screen(decision: Decision, specification: Specification, api: str | None = None) -> RenderableType:
    """Return the configuration, the searches, a line for each anomaly, witnesses, open ones, the conclusion.

    ``api`` is the programming interface through which the configuration was asked for, if one was named.
    """
    guarantees = guarantee_lines(specification.guarantees, decision.guarantees)
    heading = _heading(decision) if api is None else Text.assemble(f"through {api}\n", _heading(decision))
    told = [*_witnesses(decision), *_undecided(decision)]
    told_beside = decision.promises_not_asked, decision.without_effect
    beside = beside_promises(decision.findings.values(), *told_beside)
    return Group(heading, "", _findings(decision), "", *told, guarantees, "", _conclusion(decision), *beside)


def _heading(decision: Decision) -> Text:
    what = f"any number of messages; {faults_in_words(decision.bounds)}"
    extent = f"{decision.views:,} views and {decision.states:,} states of few messages ({decision.seconds:.1f} s)"
    return Text.assemble(configuration_lines(decision.configuration, what), f"\n{extent}")


def _every(decision: Decision) -> Iterator[Finding]:
    """All anomalies, and those ends of a message that can be reached or are undecided."""
    yield from decision.findings.values()
    yield from (finding for finding in decision.ends.values() if finding.reachable is not False)


def _findings(decision: Decision) -> RenderableType:
    table = findings_table(["messages", "steps"])
    for finding in _every(decision):
        messages = "any" if finding.reachable is False else f"{finding.messages:,}" if finding.messages else ""
        steps = f"{len(finding.steps):,}" if finding.steps else ""
        table.add_row(
            finding.anomaly, can_happen(finding, no="never", unknown="undecided"), messages, steps, promise(finding)
        )
    return table


def _witnesses(decision: Decision) -> Iterator[Text]:
    """The ways of few messages, and how those are made that fill a bound."""
    every = [finding for finding in _every(decision) if finding.steps]
    yield from ways([finding for finding in every if finding.filled is None], "ways there")
    for finding in every:
        if (run := finding.filled) is not None:
            tried = " ".join(f"{setting}={bound}" for setting, bound in run.tried)
            how = f"{run.times:,} messages take the steps of m{run.repeated} of this way, which is one with {tried}"
            yield Text.assemble((f"{finding.anomaly} with {run.messages:,} messages", "bold"), f": {how}")
            yield Text.assemble(steps_line(finding.anomaly, run.few), "\n")


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
    return as_promised(decision.findings.values(), decision.promises_not_asked, ", with any number of messages")
