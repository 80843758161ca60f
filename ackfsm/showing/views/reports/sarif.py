"""SARIF 2.1.0, as code scanning reads it: a rule for each check, a result for each message that one is about."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any, Final
from urllib.parse import quote

from ackfsm.showing.views.reports.checks import Check, Outcome, Place, Report
from ackfsm.text import printable

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_log(reports: Sequence[Report]) -> str:
    """Return a log of one run: errors for failures, warnings for decisive open checks, the rest for information."""
    rules = {check.name: check.meaning for report in reports for check in report.checks}
    results = [result for report in reports for check in report.checks for result in _results(report, check)]
    unread = [_notification(report) for report in reports if report.error is not None]
    driver = {
        "name": "ackfsm",
        "version": metadata.version("ackfsm"),
        "rules": [{"id": name, "shortDescription": {"text": meaning}} for name, meaning in rules.items()],
    }
    invocation = {"executionSuccessful": not unread, "toolExecutionNotifications": unread}
    run = {"tool": {"driver": driver}, "invocations": [invocation], "results": results}
    return f"{json.dumps({'$schema': _SCHEMA, 'version': '2.1.0', 'runs': [run]}, indent=2)}\n"


def _results(report: Report, check: Check) -> Iterator[Mapping[str, Any]]:
    """One for each message of a check that failed; of the others one in all."""
    if check.outcome is Outcome.FAILED and check.places:
        yield from (_result(report, check, place) for place in check.places)
    elif check.outcome is not Outcome.PASSED or check.places:
        yield _result(report, check, check.places[0] if check.places else None)


def _result(report: Report, check: Check, place: Place | None) -> Mapping[str, Any]:
    failed = check.outcome is Outcome.FAILED
    sentence = check.told if place is None or not failed else f"{place.told} ({check.told})"
    region = {} if place is None or place.line is None else {"region": {"startLine": place.line}}
    level = "error" if failed else "warning" if check.decides else "none"
    kind = {} if failed or check.decides else {"kind": "open" if check.outcome is Outcome.OPEN else "informational"}
    named = {} if place is None else {"partialFingerprints": {"message/v1": place.message}}
    location = {"physicalLocation": {"artifactLocation": {"uri": quote(report.history)}, **region}}
    return {
        "ruleId": check.name,
        "level": level,
        **kind,
        "message": {"text": printable(sentence)},
        "locations": [location],
        **named,
    }


def _notification(report: Report) -> Mapping[str, Any]:
    where = {"physicalLocation": {"artifactLocation": {"uri": quote(report.history)}}}
    return {"level": "error", "message": {"text": printable(report.error or "")}, "locations": [where]}
