"""The words of a verdict for screens, reports and pages: its answer, and the allowed anomalies."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ackfsm.terms import Anomaly, Verdict
from ackfsm.text import in_words, shown
from ackfsm.verify import Finding, Result
from ackfsm.verify.findings.reasons import unnamed_kind
from ackfsm.verify.words import ALLOWED, clauses, not_conform, nothing_explains, occurrence

_SHORT: Final[Mapping[bool | None, str]] = MappingProxyType({False: "not allowed", None: "undecided", True: "allowed"})


def answer(result: Result) -> str:
    """The verdict and its reason: ``invalid: 1 message was lost, which nothing recorded explains``."""
    meaning = {Verdict.VALID: _passed, Verdict.INVALID: _wrong, Verdict.UNKNOWN: _left_open}[result.verdict]
    return f"{result.verdict}: {meaning(result)}"


def _left_open(result: Result) -> str:
    several = f"{len(result.reasons)} things are left open, so this is not a pass"
    return result.reasons[0] if len(result.reasons) == 1 else several


def _passed(result: Result) -> str:
    """Return the sentence of a pass, with its scope."""
    findings = result.findings.anomalies.values()
    found = [f"{finding.found:,} {finding.anomaly}" for finding in findings if finding.found]
    unrecorded = [str(finding.anomaly) for finding in findings if finding.unrecorded]
    assumed = result.findings.unrecorded
    by = "the configuration of its queue" if result.findings.queues else "this configuration"
    if assumed is not None and assumed.assumed and assumed.timeline:
        by = f"{by} with faults that nobody recorded"
    sentences = [f"{in_words(found)}, all allowed by {by}"] if found else []
    if unrecorded:
        sentences.append(f"how much is {' or '.join(unrecorded)} is unknown, and allowed in any number")
    return "; ".join(sentences) or "no anomaly was found"


def _wrong(result: Result) -> str:
    """What makes the history invalid."""
    findings = result.findings
    violated = [findings.anomalies[anomaly] for anomaly in result.violated]
    unexplained = [occurrence(each.anomaly, each.unexplained) for each in violated if each.unexplained]
    forbidden = [occurrence(each.anomaly, each.certain) for each in violated if not each.unexplained]
    told = [f"{clauses(unexplained)}, which {nothing_explains(assumed=bool(findings.assumed))}"] if unexplained else []
    told += [f"{clauses(forbidden)}, which {ALLOWED[False]}"] if forbidden else []
    if not findings.parse_errors:
        told += [not_conform(count, what) for count, what, _ in unnamed_kind(findings)][:1]
    return "; ".join(told)


def judged(result: Result, finding: Finding) -> str:
    """Return whether a finding is allowed, and by which cause."""
    allowed = result.allowed[finding.anomaly]
    causes = [f"{cause} ({count:,})" for cause, count in finding.causes.items()]
    if allowed is None:
        return _SHORT[None]
    if allowed:
        kinds = [*result.findings.faults, *result.findings.assumed]
        under = f" under {in_words(list(dict.fromkeys(kinds)))}" if kinds else ""
        left = [f"this configuration{under} ({finding.by_kind:,})"] if finding.by_kind and causes else []
        return f"allowed by {in_words([*causes, *left] if causes else [f'this configuration{under}'])}"
    if not finding.unexplained:
        return "not allowed by this configuration"
    of = "it" if finding.found == 1 else "them" if finding.unexplained == finding.found else f"{finding.unexplained:,}"
    by = [f"; the others are allowed by {in_words(causes)}"] if causes and finding.unexplained < finding.found else []
    return f"not allowed: {nothing_explains()} {of}{''.join(by)}"


def never(result: Result, anomaly: Anomaly) -> str:
    """Whether what shall never be there is there, and whether it is allowed."""
    finding, found = result.findings.anomalies.get(anomaly), result.never[anomaly]
    asked = f"--never {anomaly}"
    if finding is None or found is None:
        why = "no `waiting` and no `depth` is recorded" if finding is None else _why_unknown(result, finding)
        return f"whether {occurrence(anomaly, None)} is unknown: {why} ({asked})"
    if not found:
        return f"{occurrence(anomaly, 0)} ({asked})"
    least = "" if finding.count == finding.certain else "at least "
    sentence = f"{least}{occurrence(anomaly, finding.certain)}"
    if result.findings.configuration is None:
        return f"{sentence}; {asked} forbids it"
    if result.allowed[anomaly] is False:
        return f"{sentence}, which neither this configuration nor {asked} allows"
    allowed = "which this configuration allows" if result.allowed[anomaly] else "and it is open whether that is allowed"
    return f"{sentence}, {allowed}; {asked} forbids it"


def _why_unknown(result: Result, finding: Finding) -> str:
    if not result.findings.messages:
        return "no message was sent"
    reasons = [why for why in (finding.unknown, finding.doubt) if why is not None]
    return "; ".join(reasons) or "lines could not be read"


def decided(finding: Finding, apart: Mapping[bool | None, int]) -> str:
    """How often it was found, and how many of those are allowed, as ``apart`` has them; why that is unknown."""
    if finding.count is None and not finding.found:
        return f"whether {occurrence(finding.anomaly, None)} is unknown: {shown(finding.unknown or '')}"
    least = "" if finding.count is not None else "at least "
    sentence = f"{least}{occurrence(finding.anomaly, finding.found)}"
    if not finding.found:
        return sentence
    if len(apart) == 1:
        (allowed,) = apart
        return f"{sentence}, which {ALLOWED[allowed]}"
    return f"{sentence}: " + ", ".join(f"{apart[each]:,} {_SHORT[each]}" for each in _SHORT if each in apart)


def no_run(count: int, what: str) -> str:
    """As :func:`not_conform`, in a row that has the number."""
    return f"not allowed: {what} that {'is' if count == 1 else 'are'} no run of the model"
