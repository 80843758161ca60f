"""The screen of ``ackfsm verify``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from ackfsm.showing.views import verdict_words as words
from ackfsm.showing.views._unrecorded import assumed_answer, assumed_table, hint
from ackfsm.showing.views.lines import guarantee_lines, hanging, listed, titled
from ackfsm.showing.views.typed import Command, can_be_typed
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Verdict
from ackfsm.text import in_words, moment, quoted, shown
from ackfsm.verify import Finding, Findings, FirstMessage, Result
from ackfsm.verify.findings.reasons import unnamed_kind, unread

_STYLE = {Verdict.VALID: "bold green", Verdict.INVALID: "bold red", Verdict.UNKNOWN: "bold yellow"}

_WIDTH = 80
_NAMED = 24
"""How many characters of an id a row has."""


def verify_screen(  # noqa: PLR0913 - what is shown, and how
    result: Result,
    specification: Specification,
    *,
    everything: bool = False,
    first: Mapping[Anomaly, FirstMessage] = MappingProxyType({}),
    command: Sequence[str] = (),
    width: int | None = _WIDTH,
) -> RenderableType:
    """Return the answer, the findings with their causes, and the next commands.

    Args:
        result: the verdict.
        specification: the tables, which say what anomalies mean.
        everything: whether to show the reasons in full, the anomalies that were not found, what each means, what was
            read and the guarantees.
        first: the first message of each anomaly.
        command: the words of the command that explains a message of this history, but for the message; none if there
            is no such command.
        width: columns; ``None`` for those of the terminal.
    """
    screen = Group(
        *_never(result),
        *assumed_answer(result.findings),
        *_verdict(result, everything=everything),
        *hint(result.findings.unrecorded),
        *_rows(result, first, command),
        *assumed_table(result.findings.unrecorded),
        *(_all(result, specification) if everything else _rest(result)),
    )
    return screen if width is None else Constrain(screen, width)


def judged_rows(result: Result) -> Iterator[tuple[str, str, str]]:
    """Each anomaly that was found, how many have it, and whether it is allowed and by what."""
    for finding in result.findings.anomalies.values():
        if finding.found:
            yield str(finding.anomaly), _count(finding), words.judged(result, finding)
    for name, count, told, _ in _contradicted(result.findings):
        yield name, count, told.plain


def _all(result: Result, specification: Specification) -> Iterator[RenderableType]:
    yield ""
    yield from _meanings(result, specification)
    yield _heading(result, everything=True)
    yield ""
    yield guarantee_lines(specification.guarantees, result.guarantees)


def _rest(result: Result) -> Iterator[RenderableType]:
    """Yield the amount read, and the way to see the rest."""
    found = result.findings
    yield ""
    faults = in_words([*found.faults, *found.of_calls]) if found.faults or found.of_calls else "none recorded"
    read = [("history", shown(found.history)), ("read", _read(found)), *_ignored(found), ("faults", faults)]
    yield titled([*read, *_clocks(found)])
    yield Text("--all: reasons in full, settings, clocks, guarantees; --json: for machines", style="dim")


_FOUND_STYLE = {True: "bold red", False: "bold green", None: "bold yellow"}


def _never(result: Result) -> Iterator[RenderableType]:
    """A sentence for each anomaly of ``--never``."""
    for anomaly, found in result.never.items():
        yield hanging(words.never(result, anomaly), _FOUND_STYLE[found])
    if result.never:
        yield ""


def _heading(result: Result, *, everything: bool) -> Table:
    found = result.findings
    config = found.configuration
    setting = "unknown"
    if config is not None:
        setting = f"{config.profile}: {config.delivery_mode}, {config.ack_mode}, {config.consumption}"
    faults = ", ".join([*found.faults, *found.of_calls]) or "none recorded"
    return titled(
        [
            ("history", shown(found.history)),
            ("configuration", setting),
            *_queues(found),
            ("read", f"{_read(found)} ({found.engine})"),
            *_ignored(found),
            ("faults", faults),
            *_clocks(found),
            *_model(found),
            *(_cost(found) if everything else ()),
        ]
    )


def _read(found: Findings) -> str:
    counts = ((found.events, "event"), (found.messages, "message"), (found.parse_errors, "line"))
    events, messages, lines = (f"{number:,} {kind}{'' if number == 1 else 's'}" for number, kind in counts)
    return f"{events} of {messages}; {lines} unread"


def _ignored(found: Findings) -> Iterator[tuple[str, str]]:
    """The fields that were in the history and not read."""
    if found.ignored:
        names = in_words([quoted(name, _NAMED) for name in found.ignored[:_QUEUES]])
        more = len(found.ignored) - _QUEUES
        yield "ignored", f"fields that format 1 does not have: {names}{f' and {more:,} more' if more > 0 else ''}"


_QUEUES = 10
"""At most so many queues are shown with settings of their own."""


def _queues(found: Findings) -> Iterator[tuple[str, str]]:
    """Yield the queues with a configuration of their own, and its differences."""
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
    """Yield the cost of holding messages, and pairs of them, to the model; the time varies."""
    held = found.explanation
    if held is not None and held.messages:
        searches, states = (sum(getattr(each, name) for each in found.held) for name in ("searches", "states"))
        share = "" if found.cost.share is None else f", {found.cost.share:.0%} of the processor time"
        yield "cost", f"{searches:,} searches, {states:,} states{share}"


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


_CONTRADICTION: Final = "contradiction"
"""What a row is called of messages that are no run of the model, though no anomaly says so."""


def _rows(result: Result, first: Mapping[Anomaly, FirstMessage], command: Sequence[str]) -> Iterator[RenderableType]:
    """Yield for each anomaly found its count, whether and why it is allowed, the first message, the next command."""
    found = [finding for finding in result.findings.anomalies.values() if finding.found]
    rows = [(str(each.anomaly), _count(each), _told(result, each), first.get(each.anomaly)) for each in found]
    rows += _contradicted(result.findings)
    widths = [max(map(len, column), default=0) for column in ([row[0] for row in rows], [row[1] for row in rows])]
    for nth, (name, count, told, message) in enumerate(rows):
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(width=widths[0], no_wrap=True)
        table.add_column(width=widths[1], no_wrap=True, justify="right")
        table.add_column(overflow="fold")
        table.add_row(Text(name, style="bold"), count, told)
        if message is not None:
            table.add_row("", "", Text(_first(message)))
        yield from ("", table) if not nth or command else (table,)
        if message is not None and command:
            yield Command([*command, *_message(name, message)], indent=2, style="dim")


def _first(message: FirstMessage) -> str:
    at = "" if message.line is None or message.t is None else f", line {message.line:,}, {moment(message.t)}"
    return f"first {quoted(message.message, _NAMED)}{at}"


def _message(anomaly: str, message: FirstMessage) -> tuple[str, str] | tuple[()]:
    """Return the option that names the message; its anomaly, if the message cannot be typed."""
    if can_be_typed(message.message):
        return "--message", message.message
    return () if anomaly == _CONTRADICTION else ("--anomaly", anomaly)


def _told(result: Result, finding: Finding) -> Text:
    """Return whether a finding is allowed, and by which cause."""
    return Text(words.judged(result, finding), style=_STYLE_OF[result.allowed[finding.anomaly]])


_STYLE_OF: Final[Mapping[bool | None, str]] = MappingProxyType({True: "", False: "red", None: "yellow"})


def _contradicted(findings: Findings) -> list[tuple[str, str, Text, FirstMessage | None]]:
    """Return the row of messages that are no run of the model and have no unexplained anomaly."""
    each = next((each for each in findings.contradicted if not each.anomalies), None)
    message = None if each is None else FirstMessage(message=each.message, line=each.line, t=each.t)
    return [
        (_CONTRADICTION, f"{count:,}", Text(words.no_run(count, what), style="red"), message)
        for count, what, _ in unnamed_kind(findings)
    ][:1]


def _meanings(result: Result, specification: Specification) -> Iterator[RenderableType]:
    """Yield every anomaly that a history can show, and its meaning."""
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


def _verdict(result: Result, *, everything: bool) -> Iterator[RenderableType]:
    """Yield the verdict with its reason; open anomalies in a list, and every reason in full if asked for."""
    yield hanging(words.answer(result), _STYLE[result.verdict])
    several = result.verdict is Verdict.UNKNOWN and len(result.reasons) > 1
    if result.reasons and (everything or several):
        yield listed(result.reasons)
    elif result.verdict is Verdict.INVALID and result.findings.parse_errors:
        yield listed([unread(result.findings)])
