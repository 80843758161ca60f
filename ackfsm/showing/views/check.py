"""The screen of ``ackfsm check``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from rich.console import Group, RenderableType
from rich.text import Text

from ackfsm.checking.explore import Answer, SearchEngine, SmallBound
from ackfsm.showing.views._findings import (
    as_promised,
    beside_promises,
    can_happen,
    findings_table,
    promise,
    steps_line,
    ways,
)
from ackfsm.showing.views.lines import guarantee_lines, hanging, liveness_lines, query_lines
from ackfsm.tables import Specification


def check_screen(
    answer: Answer,
    specification: Specification,
    api: str | None = None,
    tried: Sequence[SmallBound] = (),
    confirmed: Mapping[str, bool | None] = MappingProxyType({}),
) -> RenderableType:
    """Configuration, extent of the search, a line for each anomaly, the witnesses, the guarantees, the conclusion.

    ``api`` is the programming interface through which the configuration was asked for, if one was named; ``tried`` are
    the searches with smaller bounds, ``confirmed`` tells which guarantees stand for what was reported as sent.
    """
    guarantees = guarantee_lines(specification.guarantees, answer.guarantees, confirmed)
    way = "ways there, not always the shortest" if answer.exploration.reductions else "shortest ways there"
    witnesses, liveness = ways([*answer.findings.values(), *answer.ends.values()], way), liveness_lines(answer.liveness)
    heading = _heading(answer) if api is None else Text.assemble(f"through {api}\n", _heading(answer))
    smaller = [*_smaller(answer, tried)]
    return Group(
        heading,
        "",
        _findings(answer, tried),
        "",
        *witnesses,
        guarantees,
        "",
        *smaller,
        *liveness,
        _conclusion(answer, tried),
        *beside_promises(answer.findings.values(), answer.promises_not_asked, answer.without_effect),
    )


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


def _findings(answer: Answer, tried: Sequence[SmallBound]) -> RenderableType:
    table = findings_table(["steps"])
    reached = (finding for finding in answer.ends.values() if finding.reachable)
    doubtful = {finding.anomaly for one in tried for finding in one.reached}
    for finding in (*answer.findings.values(), *reached):
        happens = can_happen(finding, no="no", unknown="unknown")
        if finding.anomaly in doubtful:
            happens = Text("no, but see below", style="yellow")
        table.add_row(finding.anomaly, happens, str(len(finding.steps) or ""), promise(finding))
    return table


def _smaller(answer: Answer, tried: Sequence[SmallBound]) -> Iterator[RenderableType]:
    """Which bounds were never full, and what happens where smaller ones are."""
    if not tried:
        return
    yield Text.assemble((f"never full with {answer.bounds.messages} messages", "bold"), ", so tried smaller:")
    for one in tried:
        if one.reached:
            found = ", ".join(f"{finding.anomaly} ({len(finding.steps)} steps)" for finding in one.reached)
            carried = f"with {one.value:,}, as a conjecture, from {one.messages:,} messages on"
            yield hanging(
                f"{one.setting}={one.value}: with {_smaller_bounds(one)} can happen {found}; {carried}", "yellow"
            )
    others: dict[str, list[str]] = {}
    for one in tried:
        if not one.reached:
            what = "nothing more can happen" if one.answer.exploration.complete else "stopped at its limit"
            others.setdefault(f"{one.setting}={one.value}: {what} with", []).append(_smaller_bounds(one))
    yield from (hanging(f"{head} {' or '.join(bounds)}", "") for head, bounds in others.items())
    for one in tried:
        for finding in one.reached:
            yield steps_line(f"{finding.anomaly} with {_smaller_bounds(one)}", finding.steps)
    yield Text("")


def _smaller_bounds(one: SmallBound) -> str:
    return " ".join(f"{setting}={bound}" for setting, bound in one.tried.items())


def _conclusion(answer: Answer, tried: Sequence[SmallBound]) -> Text:
    if not answer.keeps_promises:
        broken = [str(finding.anomaly) for finding in answer.violations]
        broken += [name for name, finding in answer.liveness.items() if finding.promised]
        names = ", ".join(dict.fromkeys(broken))
        return Text(f"Promise broken: {names}.", style="bold red")
    if not answer.exploration.complete:
        return Text(f"Undetermined: the search stopped at {limit_of(answer)}; raise it.", style="bold yellow")
    doubtful = dict.fromkeys(str(finding.anomaly) for one in tried for finding in one.reached if finding.promise)
    if doubtful:
        within = f"As promised with so few messages; a smaller bound that they fill breaks it: {', '.join(doubtful)}."
        return Text(within, style="bold yellow")
    return as_promised(answer.findings.values(), answer.promises_not_asked)
