"""The screen of ``ackfsm check``."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ackfsm.explore import Answer, Finding, SearchEngine
from ackfsm.tables import Specification
from ackfsm.views._lines import guarantee_lines, liveness_lines, query_lines

__all__ = ["check_screen", "limit_of"]


def check_screen(answer: Answer, specification: Specification, api: str | None = None) -> RenderableType:
    """Configuration, extent of the search, a line for each anomaly, the witnesses, the guarantees, the conclusion.

    ``api`` is the programming interface through which the configuration was asked for, if one was named.
    """
    guarantees = guarantee_lines(specification.guarantees, answer.guarantees)
    witnesses, liveness = _witnesses(answer), liveness_lines(answer.liveness)
    heading = _heading(answer) if api is None else Text.assemble(f"through {api}\n", _heading(answer))
    return Group(heading, "", _findings(answer), "", *witnesses, guarantees, "", *liveness, _conclusion(answer))


_MANY = 4_000
"""With more states compiled code takes part, if it can."""


def _heading(answer: Answer) -> Text:
    found = answer.exploration
    every = f"all that {' and '.join(found.reductions)} leaves" if found.reductions else "all of them"
    extent = every if found.complete else f"NOT {every}: the search stopped at {limit_of(answer)}"
    code = "compiled" if found.compiled else "plain Python"
    if not found.compiled and found.states > _MANY:
        code += ", slowly, for want of Numba: pip install 'ackfsm[explore]'"
    if found.engine is SearchEngine.SYMBOLIC:
        code = f"by decision diagrams, {code}"
    states = f"{found.states:,} states and {found.transitions:,} transitions"
    rest = "" if found.at_rest is None else f", {found.at_rest:,} of the states at rest"
    return Text.assemble(query_lines(answer.network), f"\n{states}, {extent}{rest} ({answer.seconds:.2f} s, {code})")


def limit_of(answer: Answer) -> str:
    """The option at whose limit the search stopped."""
    if answer.exploration.stopped_by == "memory":
        return "the end of this machine's memory"
    return f"--{(answer.exploration.stopped_by or 'max_states').replace('_', '-')}"


def _findings(answer: Answer) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("anomaly", no_wrap=True)
    table.add_column("can happen", no_wrap=True)
    table.add_column("steps", no_wrap=True, justify="right")
    table.add_column("promised never to", overflow="fold")
    reached = (finding for finding in answer.ends.values() if finding.reachable)
    for finding in (*answer.findings.values(), *reached):
        table.add_row(finding.anomaly, _can_happen(finding), str(len(finding.steps) or ""), _promise(finding))
    return table


def _can_happen(finding: Finding) -> Text:
    if finding.reachable is None:
        return Text("unknown", style="yellow")
    if not finding.reachable:
        return Text("no", style="green")
    return Text("yes", style="red" if finding.violated else "yellow")


def _promise(finding: Finding) -> Text:
    if finding.promise is None:
        return Text("")
    return Text(f"{finding.promise.source}", style="red" if finding.violated else "")


def _witnesses(answer: Answer) -> Iterator[Text]:
    reached = [finding for finding in (*answer.findings.values(), *answer.ends.values()) if finding.steps]
    if reached:
        ways = "ways there, not always the shortest" if answer.exploration.reductions else "shortest ways there"
        yield Text.assemble((ways, "bold"), " (ackfsm explain shows each step, with its reason)")
    for finding in reached:
        steps = " → ".join(event.label for event in finding.steps)
        yield Text.assemble((f"{finding.anomaly}: ", "bold"), f"{steps}\n")


def _conclusion(answer: Answer) -> Text:
    if not answer.keeps_promises:
        broken = [str(finding.anomaly) for finding in answer.violations]
        broken += [name for name, finding in answer.liveness.items() if finding.promised]
        names = ", ".join(dict.fromkeys(broken))
        return Text(f"Promise broken: {names}.", style="bold red")
    if not answer.exploration.complete:
        return Text(f"Undetermined: the search stopped at {limit_of(answer)}; raise it.", style="bold yellow")
    return Text("As promised: nothing that is promised never to happen can happen.", style="bold green")
