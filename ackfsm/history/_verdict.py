"""What was found in a history, and the verdict on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ackfsm.history._lines import Unreadable
from ackfsm.tables import Guarantees
from ackfsm.terms import Anomaly, Configuration, Fault, Verdict
from ackfsm.text import quoted

__all__ = ["EXAMPLES", "UNCONFIGURED", "Finding", "Findings", "Result", "judge", "undrained"]

SHOWN = 3
"""How many ids, or queues, a sentence names."""

NAMED = 64
"""How many characters of an id or a name a sentence has: too few for it to look like a sentence of its own."""

EXAMPLES = 100
"""How many ids an anomaly is reported with."""

UNCONFIGURED = "it depends on the configuration, and none is known"
"""Why an anomaly cannot be counted without a configuration."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """How often one anomaly is in a history.

    Attributes:
        anomaly: which.
        found: how many messages (of ``torn_transaction``: transactions) certainly have it.
        unknown: why there may be more, a clause; ``None`` if ``found`` is all.
        needs_every_line: whether it is concluded from the absence of an event, so that an unread line may refute it.
        examples: the first :data:`EXAMPLES` ids, by code point.
    """

    anomaly: Anomaly
    found: int
    unknown: str | None
    needs_every_line: bool
    examples: tuple[str, ...]

    @property
    def count(self) -> int | None:
        """How often it is there; ``None`` where that is unknown."""
        return self.found if self.unknown is None else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was counted in a history, not yet judged.

    Attributes:
        history: where it was read from.
        engine: what counted: ``local`` or ``spark``.
        configuration: what it was counted for; ``None`` if no configuration is known.
        events, messages: readable events; distinct messages that were sent.
        parse_errors, unreadable: the lines that are no events: how many, and the first few.
        faults: the kinds that were recorded, in the order of :class:`Fault`.
        actions: what applications did of their own will that makes a broker deliver again (optional events).
        anomalies: every anomaly that a history can show, in the order of :class:`Anomaly`.
        counters: what else a person may want to know, by name.
    """

    history: str
    engine: str
    configuration: Configuration | None
    events: int
    messages: int
    parse_errors: int
    unreadable: tuple[Unreadable, ...]
    faults: tuple[Fault, ...]
    actions: tuple[str, ...]
    anomalies: Mapping[Anomaly, Finding]
    counters: Mapping[str, int]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The verdict on a history, the sentences that give its reasons, and what it stands on.

    ``allowed`` says of every anomaly whether the configuration allows it under the faults that were
    recorded; ``None`` where the tables cannot tell.  ``guarantees`` says of each whether it stood in this
    history, ``None`` where that is open; ``strongest`` are those with none above them that stood.
    """

    findings: Findings
    allowed: Mapping[Anomaly, bool | None]
    verdict: Verdict
    reasons: tuple[str, ...]
    guarantees: Mapping[str, bool | None] = dataclasses.field(default_factory=dict)
    strongest: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The result as plain JSON values, with the keys of ``ackfsm verify --json``."""
        found = self.findings
        return {
            "history": found.history,
            "config": None if found.configuration is None else found.configuration.as_dict(),
            "engine": found.engine,
            "events": found.events,
            "messages": found.messages,
            "parse_errors": found.parse_errors,
            "faults": [fault.value for fault in found.faults],
            "actions": list(found.actions),
            "verdict": self.verdict.value,
            "reasons": list(self.reasons),
            "anomalies": {
                anomaly.value: {
                    "count": finding.count,
                    "allowed": self.allowed[anomaly],
                    "messages": list(finding.examples),
                }
                for anomaly, finding in found.anomalies.items()
            },
            "counters": dict(found.counters),
            "guarantees": dict(self.guarantees),
            "strongest": list(self.strongest),
        }


def undrained(queues: Sequence[str]) -> str:
    """Why an anomaly that shows at rest cannot be counted: ``queues`` were not drained (``""``: none was named)."""
    names = [quoted(queue, NAMED) if queue else "a queue without a name" for queue in queues]
    return f"no `drained` follows the last send to {_few(names, len(names))}"


def judge(
    findings: Findings,
    allowed: Mapping[Anomaly, bool | None],
    why_undecided: Mapping[Anomaly, str | None] = MappingProxyType({}),
    guarantees: Guarantees | None = None,
) -> Result:
    """Judge ``findings``.

    An anomaly that was found and is not allowed makes the history invalid, unless unread lines could
    explain it.  Whatever could not be read, counted or decided leaves the verdict unknown.  Only
    what was read, counted and decided in full is valid.  An anomaly that ``allowed`` lacks is undecided;
    ``why_undecided`` may have a clause that says why.
    Of the ``guarantees``, if they are given, the result says which stood in this history.
    """
    decided = {anomaly: allowed.get(anomaly) for anomaly in findings.anomalies}
    violations = list(_violations(findings, decided))
    doubts = list(_doubts(findings, decided, why_undecided))
    verdict = Verdict.INVALID if violations else Verdict.UNKNOWN if doubts else Verdict.VALID
    standing = guarantees.standing(_happened(findings)) if guarantees else {}
    strongest = guarantees.strongest(standing) if guarantees else ()
    return Result(
        findings=findings,
        allowed=decided,
        verdict=verdict,
        reasons=(*violations, *doubts),
        guarantees=standing,
        strongest=strongest,
    )


def _happened(findings: Findings) -> dict[Anomaly, bool | None]:
    """Which anomalies the history certainly has, and certainly has not: every line was read, and something was sent."""
    whole = findings.parse_errors == 0 and findings.messages > 0
    return {
        finding.anomaly: True
        if finding.found and not _may_be_unread(findings, finding)
        else (False if whole and finding.count == 0 else None)
        for finding in findings.anomalies.values()
    }


def _violations(findings: Findings, allowed: Mapping[Anomaly, bool | None]) -> Iterator[str]:
    for finding in findings.anomalies.values():
        if finding.found and allowed[finding.anomaly] is False and not _may_be_unread(findings, finding):
            yield f"{_seen(finding)}, which the configuration does not allow{_under(findings.faults)}"


def _doubts(
    findings: Findings, allowed: Mapping[Anomaly, bool | None], why_undecided: Mapping[Anomaly, str | None]
) -> Iterator[str]:
    if findings.configuration is None:
        yield "no configuration is known to judge it by; name one (--profile, --set) or add a header"
    if findings.parse_errors:
        yield _unread(findings)
    if not findings.messages:
        yield "no message was sent, so nothing was shown"
    for why, names in _grouped(findings):
        yield f"{_listed(names)} {'is' if len(names) == 1 else 'are'} unknown: {why}"
    for finding in findings.anomalies.values():
        if finding.found and allowed[finding.anomaly] is None and findings.configuration is not None:
            clause = why_undecided.get(finding.anomaly)
            reason = f": {clause}" if clause else ""
            yield f"{_seen(finding)}, and the tables cannot tell whether the configuration allows it{reason}"
        if finding.found and allowed[finding.anomaly] is False and _may_be_unread(findings, finding):
            yield f"{_seen(finding)}, which is not allowed, but the lines that could not be read may explain it"


def _may_be_unread(findings: Findings, finding: Finding) -> bool:
    return finding.needs_every_line and findings.parse_errors > 0


def _unread(findings: Findings) -> str:
    total = findings.events + findings.parse_errors
    first = f" ({findings.unreadable[0]})" if findings.unreadable else ""
    return f"{findings.parse_errors} of {total} lines could not be read{first}, so every count may lack something"


def _seen(finding: Finding) -> str:
    kind = "transaction" if finding.anomaly is Anomaly.TORN_TRANSACTION else "message"
    plural = "" if finding.found == 1 else "s"
    return f"{finding.anomaly} of {finding.found} {kind}{plural} ({_ids(finding.examples, finding.found)})"


def _ids(names: Sequence[str], total: int) -> str:
    return _few([quoted(name, NAMED) for name in names[:SHOWN]], total)


def _few(names: Sequence[str], total: int) -> str:
    """The first few of ``names``, with dots if they are not ``total``."""
    return ", ".join([*names[:SHOWN], *(["..."] if total > SHOWN else [])])


def _under(faults: Sequence[Fault]) -> str:
    return f" under {_listed(faults)}" if faults else " without a fault"


def _grouped(findings: Findings) -> Iterator[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for finding in findings.anomalies.values():
        if finding.unknown is not None:
            groups.setdefault(finding.unknown, []).append(finding.anomaly)
    yield from groups.items()


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
