"""The screen of ``ackfsm verify``."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Verdict
from ackfsm.text import in_words, quoted, shown
from ackfsm.verify import Finding, Findings, Result
from ackfsm.views._lines import guarantee_lines, hanging, listed, occurrence, titled
from ackfsm.views._unrecorded import assumed_answer, assumed_table, hint

__all__ = ["verify_screen"]

_STYLE = {Verdict.VALID: "bold green", Verdict.INVALID: "bold red", Verdict.UNKNOWN: "bold yellow"}

_MEANING = {
    Verdict.VALID: "no anomaly was found",
    Verdict.INVALID: "something was found that the configuration does not allow",
    Verdict.UNKNOWN: "something is left open, so this is not a pass",
}


_WIDTH = 80
_FIRST = 3
_NAMED = 24
"""How many messages a row names, and how many characters of each id."""


def verify_screen(result: Result, specification: Specification, *, everything: bool = False) -> RenderableType:
    """The answer, what was found and what explains it, what was read, and the guarantees, in 80 columns.

    ``everything`` shows the anomalies that were not found too, and what each means.
    """
    guarantees = guarantee_lines(specification.guarantees, result.guarantees)
    screen = Group(
        *_never(result),
        *assumed_answer(result.findings.unrecorded),
        *_verdict(result),
        *hint(result.findings.unrecorded),
        "",
        *(_meanings(result, specification) if everything else _found(result)),
        *_causes(result),
        *assumed_table(result.findings.unrecorded),
        _heading(result, everything=everything),
        "",
        guarantees,
        *([] if everything else _more()),
    )
    return Constrain(screen, _WIDTH)


def _more() -> Iterator[RenderableType]:
    yield ""
    yield Text("--all: every anomaly and what it means; --json: for machines", style="dim")


_FOUND_STYLE = {True: "bold red", False: "bold green", None: "bold yellow"}


def _never(result: Result) -> Iterator[RenderableType]:
    """A sentence for each anomaly of ``--never``."""
    for anomaly, found in result.never.items():
        yield hanging(_answer(result, anomaly, found=found), _FOUND_STYLE[found])
    if result.never:
        yield ""


def _answer(result: Result, anomaly: Anomaly, *, found: bool | None) -> str:
    finding = result.findings.anomalies.get(anomaly)
    if finding is None:
        why = "no `waiting` and no `depth` is recorded"
        return f"whether {occurrence(anomaly, None)} is unknown: {why} (--never {anomaly})"
    if found is None:
        return f"whether {occurrence(anomaly, None)} is unknown: {_why_unknown(result, finding)} (--never {anomaly})"
    if not found:
        return f"{occurrence(anomaly, 0)} (--never {anomaly})"
    least = "" if finding.count == finding.certain else "at least "
    sentence = f"{least}{occurrence(anomaly, finding.certain)}"
    if result.findings.configuration is None:
        return f"{sentence}; --never {anomaly} forbids it"
    if result.allowed[anomaly] is False:
        return f"{sentence}, which neither this configuration nor --never {anomaly} allows"
    allowed = "which this configuration allows" if result.allowed[anomaly] else "and it is open whether that is allowed"
    return f"{sentence}, {allowed}; --never {anomaly} forbids it"


def _why_unknown(result: Result, finding: Finding) -> str:
    if not result.findings.messages:
        return "no message was sent"
    reasons = [why for why in (finding.unknown, finding.doubt) if why is not None]
    return "; ".join(reasons) or "lines could not be read"


def _heading(result: Result, *, everything: bool) -> Table:
    found = result.findings
    config = found.configuration
    setting = "unknown"
    if config is not None:
        setting = f"{config.profile}: {config.delivery_mode}, {config.ack_mode}, {config.consumption}"
    faults = ", ".join([*found.faults, *found.of_calls]) or "none recorded"
    counts = ((found.events, "event"), (found.messages, "message"), (found.parse_errors, "line"))
    events, messages, lines = (f"{number:,} {kind}{'' if number == 1 else 's'}" for number, kind in counts)
    read = f"{events} of {messages}; {lines} unread"
    return titled(
        [
            ("history", shown(found.history)),
            ("configuration", setting),
            *_queues(found),
            ("read", f"{read} ({found.engine})"),
            ("faults", faults),
            *_clocks(found),
            *_model(found),
            *(_cost(found) if everything else ()),
        ]
    )


_QUEUES = 10
"""At most so many queues are shown with settings of their own."""


def _queues(found: Findings) -> Iterator[tuple[str, str]]:
    """The queues with a configuration of their own: what is another one in each."""
    general = {} if found.configuration is None else found.configuration.as_dict()
    for name, configuration in [*found.queues.items()][:_QUEUES]:
        its = {
            key: value for key, value in configuration.as_dict().items() if key not in general or general[key] != value
        }
        if found.configuration is None:
            its = {"profile": configuration.profile}
        told = ", ".join(f"{key}: {json.dumps(value)}".replace('"', "") for key, value in its.items())
        yield f"queue {quoted(name, _NAMED)}", told or "the same"
    if len(found.queues) > _QUEUES:
        yield "queues", f"{len(found.queues) - _QUEUES:,} more with settings of their own"


def _model(found: Findings) -> Iterator[tuple[str, str]]:
    """How many messages were held to the model, and how many are no run of it."""
    held = found.explanation
    if held is not None and held.messages:
        wrong = (
            f"; {held.contradicted:,} {'does' if held.contradicted == 1 else 'do'} not conform"
            if held.contradicted
            else ""
        )
        yield "model", f"{held.messages:,} messages checked, {held.lives:,} different courses of events{wrong}"


def _cost(found: Findings) -> Iterator[tuple[str, str]]:
    """What it took to hold messages, and pairs of them, to the model; the time is different each time."""
    held = found.explanation
    if held is not None and held.messages:
        each = [held, *([] if held.pairs is None else [held.pairs])]
        searches, states = sum(one.searches for one in each), sum(one.states for one in each)
        share = "" if found.cost.share is None else f", {found.cost.share:.0%} of the processor time"
        yield "cost", f"{searches:,} searches, {states:,} states{share}"


def _causes(result: Result) -> Iterator[RenderableType]:
    """What explains the anomalies that were found."""
    told = [
        f"{anomaly}: {', '.join(f'{cause} ({count:,})' for cause, count in finding.causes.items())}"
        for anomaly, finding in result.findings.anomalies.items()
        if finding.causes
    ]
    if told:
        yield Group(Text("explained by", style="bold"), listed(told), "")


_SHIFTS = 10
"""At most so many processes are named whose clocks were corrected."""


def _clocks(found: Findings) -> Iterator[tuple[str, str]]:
    """By how much each clock was corrected, the greatest correction first."""
    if not found.skew:
        return
    shifts = sorted(found.offsets.items(), key=lambda shift: (-shift[1], shift[0]))
    corrections = [
        f"{quoted(name, 64)} +{_exactly(offset)}{_drift(found.drifts.get(name))}" for name, offset in shifts[:_SHIFTS]
    ]
    corrections += [f"{len(shifts) - _SHIFTS:,} more"] * (len(shifts) > _SHIFTS)
    yield "clocks", f"may differ by {_exactly(found.skew)}; corrected: {', '.join(corrections) or 'none'}"


def _drift(parts: float | None) -> str:
    return "" if parts is None else f" {parts:+.3g} ppm"


def _exactly(nanoseconds: int) -> str:
    size, unit = (1_000, "us") if nanoseconds < 10**6 else (10**6, "ms")
    return f"{nanoseconds / size:.15g}{unit}"


def _meaning(result: Result) -> str:
    """What the verdict means; a pass says what it passes."""
    findings = result.findings.anomalies.values()
    found = [f"{finding.found:,} {finding.anomaly}" for finding in findings if finding.found]
    unrecorded = [str(finding.anomaly) for finding in findings if finding.unrecorded]
    if result.verdict is not Verdict.VALID or not (found or unrecorded):
        return _MEANING[result.verdict]
    assumed = result.findings.unrecorded
    rests_on_them = assumed is not None and assumed.assumed and assumed.timeline
    by = "the configuration of its queue" if result.findings.queues else "this configuration"
    if rests_on_them:
        by = f"{by} with faults that nobody recorded"
    sentences = [f"{in_words(found)}, all allowed by {by}"] if found else []
    if unrecorded:
        sentences.append(f"how much is {' or '.join(unrecorded)} is unknown, and allowed in any number")
    return "; ".join(sentences)


def _found(result: Result) -> Iterator[RenderableType]:
    """The anomalies that were found, each with its first messages."""
    found = [finding for finding in result.findings.anomalies.values() if finding.found]
    if not found:
        return
    table = _table("anomaly", "count", "allowed", "the first")
    for finding in found:
        first = ", ".join(quoted(name, _NAMED) for name in finding.examples[:_FIRST])
        more = ", ..." if finding.found > _FIRST else ""
        table.add_row(*_counted(result, finding), Text(f"{first}{more}"))
    yield from (table, "")


def _meanings(result: Result, specification: Specification) -> Iterator[RenderableType]:
    """Every anomaly that a history can show, and what it means."""
    table = _table("anomaly", "count", "allowed", "what it means")
    for anomaly, finding in result.findings.anomalies.items():
        table.add_row(*_counted(result, finding), specification.meaning(anomaly))
    yield from (table, "")


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    *narrow, wide = headings
    for heading in narrow:
        table.add_column(heading, no_wrap=True, justify="right" if heading == "count" else "left")
    table.add_column(wide, overflow="fold")
    return table


def _counted(result: Result, finding: Finding) -> tuple[str, str, Text]:
    return finding.anomaly, _count(finding), _allowed(finding, allowed=result.allowed[finding.anomaly])


def _count(finding: Finding) -> str:
    if finding.count is not None:
        return f"{finding.count:,}"
    return f"{finding.found:,} or more" if finding.found else "unknown"


def _allowed(finding: Finding, *, allowed: bool | None) -> Text:
    if allowed is None:
        return Text("undecided", style="yellow" if finding.found else "dim")
    return Text("yes") if allowed else Text("no", style="red" if finding.found else "")


def _verdict(result: Result) -> Iterator[RenderableType]:
    yield hanging(f"{result.verdict}: {_meaning(result)}", _STYLE[result.verdict])
    if result.reasons:
        yield listed(result.reasons)
