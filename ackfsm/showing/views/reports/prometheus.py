"""Numbers of verified histories in Prometheus' text format, for the node exporter's folder or a push gateway."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from ackfsm.showing.views.reports.checks import Report
from ackfsm.terms import Verdict

Sample: TypeAlias = "tuple[Mapping[str, str], int | None]"
"""Labels and a value; ``None`` if nobody knows it."""


def prometheus_text(reports: Sequence[Report]) -> str:
    """All numbers of all histories; a count that is unknown has a sample under ``ackfsm_unknown``."""
    lines = []
    for name, (meaning, samples) in _FAMILIES.items():
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge"]
        for report in reports:
            for labels, value in samples(report):
                told = "NaN" if value is None else str(value)
                lines.append(f"{name}{_labels({'history': report.history, **labels})} {told}")
    return "".join(f"{line}\n" for line in lines)


def _read(report: Report) -> Iterator[Sample]:
    yield {}, int(report.error is None)


def _verdicts(report: Report) -> Iterator[Sample]:
    if report.result is not None:
        yield from (({"verdict": each.value}, int(each is report.result.verdict)) for each in Verdict)


def _sizes(report: Report) -> Iterator[Sample]:
    if report.result is not None:
        found = report.result.findings
        yield {"of": "events"}, found.events
        yield {"of": "messages"}, found.messages
        yield {"of": "unread_lines"}, found.parse_errors


def _anomalies(report: Report) -> Iterator[Sample]:
    if report.result is not None:
        for anomaly in report.result.findings.anomalies:
            for allowed, count in report.result.apart(anomaly).items():
                yield {"anomaly": anomaly.value, "allowed": _WORDS[allowed]}, count


def _unknown(report: Report) -> Iterator[Sample]:
    if report.result is not None:
        for anomaly, finding in report.result.findings.anomalies.items():
            yield {"anomaly": anomaly.value}, int(finding.count is None)


def _never(report: Report) -> Iterator[Sample]:
    if report.result is not None:
        for anomaly, found in report.result.never.items():
            yield {"anomaly": anomaly.value}, None if found is None else int(found)


_WORDS: Final[Mapping[bool | None, str]] = {True: "yes", False: "no", None: "open"}

_FAMILIES: Final = {
    "ackfsm_read": ("1 if the history could be read, else 0", _read),
    "ackfsm_verdict": ("1 for the verdict on the history, 0 for the others", _verdicts),
    "ackfsm_size": ("How much was read, by what is counted", _sizes),
    "ackfsm_anomalies": ("How many messages certainly have the anomaly, and whether that is allowed", _anomalies),
    "ackfsm_unknown": ("1 if more messages may have the anomaly than were counted", _unknown),
    "ackfsm_never": ("1 if an anomaly of --never was found, NaN if that is unknown", _never),
}


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
