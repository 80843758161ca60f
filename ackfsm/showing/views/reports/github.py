"""Annotations of a GitHub workflow: commands on standard output, shown beside the lines of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ackfsm.showing.views.reports.checks import Check, Outcome, Report
from ackfsm.text import printable


def github_annotations(reports: Sequence[Report]) -> str:
    """A line for each check that failed, and for each that is open and decides; for a history that passed a notice.

    GitHub shows ten of each level for a step, so of each check there is one, at its first message.
    """
    return "".join(f"{line}\n" for report in reports for line in _commands(report))


def _commands(report: Report) -> Iterator[str]:
    if report.error is not None:
        yield _command("error", report, "read", report.error, None)
    told = [check for check in report.checks if _level(check) is not None]
    for check in told:
        first = check.places[0] if check.places else None
        sentence = f"{check.told}. {first.told}" if first is not None else check.told
        yield _command(_level(check) or "", report, check.name, sentence, None if first is None else first.line)
    if report.error is None and not told:
        yield _command("notice", report, "verdict", report.checks[0].told, None)


def _level(check: Check) -> str | None:
    if check.outcome is Outcome.FAILED:
        return "error"
    return "warning" if check.outcome is Outcome.OPEN and check.decides else None


def _command(level: str, report: Report, title: str, sentence: str, line: int | None) -> str:
    properties = {"file": report.history, **({"line": str(line)} if line is not None else {}), "title": title}
    told = ",".join(f"{name}={_escaped(printable(value), property_=True)}" for name, value in properties.items())
    return f"::{level} {told}::{_escaped(printable(sentence))}"


def _escaped(text: str, *, property_: bool = False) -> str:
    """Return ``text`` as GitHub's own toolkit escapes it in a workflow command."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return escaped.replace(":", "%3A").replace(",", "%2C") if property_ else escaped
