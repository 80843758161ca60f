"""What two screens say of an anomaly: whether it can happen, who promises that it does not, and the way there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from rich.table import Table
from rich.text import Text

from ackfsm.checking.explore import Finding
from ackfsm.checking.network import NetworkEvent


def findings_table(columns: Sequence[str]) -> Table:
    """An empty table with ``anomaly``, ``can happen``, the numbers in ``columns``, and who promises otherwise."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("anomaly", no_wrap=True)
    table.add_column("can happen", no_wrap=True)
    for column in columns:
        table.add_column(column, no_wrap=True, justify="right")
    table.add_column("promised never to", overflow="fold")
    return table


def can_happen(finding: Finding, *, no: str, unknown: str) -> Text:
    """``yes``, or in the words of the screen ``no`` or ``unknown``."""
    if finding.reachable is None:
        return Text(unknown, style="yellow")
    if not finding.reachable:
        return Text(no, style="green")
    return Text("yes", style="red" if finding.violated else "yellow")


def promise(finding: Finding) -> Text:
    """Return the source of the promise, red where it is broken; nothing without a promise."""
    if finding.promise is None:
        return Text("")
    return Text(f"{finding.promise.source}", style="red" if finding.violated else "")


def ways(findings: Iterable[Finding], title: str) -> Iterator[Text]:
    """The way to each finding that has one, below the title; nothing without any."""
    reached = [finding for finding in findings if finding.steps]
    if reached:
        yield Text.assemble((title, "bold"), " (ackfsm explain shows each step, with its reason)")
    for finding in reached:
        yield Text.assemble(steps_line(finding.anomaly, finding.steps), "\n")


def as_promised(findings: Iterable[Finding], not_asked: Collection[str], within: str = "") -> Text:
    """Return the sentence that no promise is broken, of all promises or of the ones looked at."""
    if not not_asked:
        return Text(f"As promised: nothing that is promised never to happen can happen{within}.", style="bold green")
    kept = [str(finding.anomaly) for finding in findings if finding.promise is not None]
    if kept:
        asked = f"As promised, as far as it was asked: {', '.join(kept)} cannot happen{within}."
        return Text(asked, style="bold green")
    return Text("Nothing of what was looked at is promised never to happen.", style="bold")


def beside_promises(
    findings: Iterable[Finding], not_asked: Collection[str], without_effect: Iterable[str]
) -> Iterator[Text]:
    """Yield the remarks beside the conclusion.

    What an application left undone, the promises that were not looked at, and what was asked and cannot happen.
    """
    for finding in findings:
        if finding.left_undone:
            without = ", ".join(f"--without {event}" for event in finding.left_undone)
            yield Text(f"{finding.anomaly}: the application left it undone ({without}), which breaks no promise.")
    if not_asked:
        yield Text(f"Promised too, and not looked at (--only): {', '.join(not_asked)}.", style="yellow")
    for name in without_effect:
        rows = f"ackfsm where {name} has the rows"
        yield Text(f"{name} cannot happen in this configuration ({rows}).", style="yellow")


def steps_line(name: str, steps: Iterable[NetworkEvent]) -> Text:
    """``loss: send(m1) → …``."""
    return Text.assemble((f"{name}: ", "bold"), " → ".join(event.label for event in steps))
