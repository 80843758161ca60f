"""The verdict on the findings of a history, and its reasons."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from ackfsm.history.format import Event
from ackfsm.tables import Guarantees, Specification
from ackfsm.terms import Anomaly, Verdict
from ackfsm.verify import words
from ackfsm.verify.context.allowed import allowed
from ackfsm.verify.findings import reasons
from ackfsm.verify.findings.findings import Finding, Findings


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The verdict on a history, the sentences that give its reasons, and its grounds.

    ``allowed`` says of every anomaly whether the configuration allows it under the faults that were
    recorded; ``None`` where the tables cannot tell.  ``guarantees`` says of each whether it stood in this
    history, ``None`` where that is open; ``strongest`` are those with none above them that stood.
    ``never`` says of each anomaly that shall not be there, allowed or not, whether it is; ``None`` if nobody can tell.
    ``allowed_kinds`` says for each part of the findings (or for all, if there are none) what its configuration allows
    in any number, whatever befell a message.
    ``violated`` are the anomalies that make the history invalid.
    """

    findings: Findings
    allowed: Mapping[Anomaly, bool | None]
    verdict: Verdict
    reasons: tuple[str, ...]
    guarantees: Mapping[str, bool | None] = dataclasses.field(default_factory=dict)
    strongest: tuple[str, ...] = ()
    never: Mapping[Anomaly, bool | None] = dataclasses.field(default_factory=dict)
    allowed_kinds: tuple[Mapping[Anomaly, bool | None], ...] = ()
    violated: tuple[Anomaly, ...] = ()

    def apart(self, anomaly: Anomaly) -> Mapping[bool | None, int]:
        """How many of those found with ``anomaly`` are allowed, not allowed, and (``None``) undecided.

        What something in the past of its message explains is allowed, though others with the anomaly are not.
        """
        finding, allowed = self.findings.anomalies[anomaly], self.allowed[anomaly]
        if finding.unexplained is None or finding.of_its_kind:
            return {allowed: finding.found}
        parts = {False: finding.unexplained, None: finding.undecided}
        parts[True] = finding.found - sum(parts.values())
        return {answer: count for answer, count in parts.items() if count} or {allowed: 0}

    def as_json(self) -> dict[str, Any]:
        """The result as plain JSON values, with the keys of ``ackfsm verify --json``."""
        found = self.findings
        return {
            "history": found.history,
            "config": None if found.configuration is None else found.configuration.as_dict(),
            **({"queues": {name: each.as_dict() for name, each in found.queues.items()}} if found.queues else {}),
            "engine": found.engine,
            "events": found.events,
            "messages": found.messages,
            "parse_errors": found.parse_errors,
            **({"ignored_fields": list(found.ignored)} if found.ignored else {}),
            **({"cannot_show": list(found.unshown)} if found.unshown else {}),
            "unreadable": [dataclasses.asdict(each) for each in found.unreadable],
            "faults": [*(fault.value for fault in found.faults), *found.of_calls],
            "actions": list(found.actions),
            "verdict": self.verdict.value,
            "reasons": list(self.reasons),
            "anomalies": {
                anomaly.value: {
                    "count": finding.count,
                    "allowed": self.allowed[anomaly],
                    "messages": list(finding.examples),
                    **_explanation(finding),
                }
                for anomaly, finding in found.anomalies.items()
            },
            "conformance": None if found.explanation is None else found.explanation.as_json(),
            **({} if found.unrecorded is None else {"unrecorded_faults": found.unrecorded.as_json()}),
            "ends": dict(found.ends),
            "counters": dict(found.counters),
            "guarantees": dict(self.guarantees),
            "strongest": list(self.strongest),
            **({"skew": found.skew, "offsets": dict(found.offsets)} if found.skew else {}),
            **({"drifts": dict(found.drifts)} if found.drifts else {}),
            **({"never": {anomaly.value: self._never(anomaly) for anomaly in self.never}} if self.never else {}),
        }

    def _never(self, anomaly: Anomaly) -> dict[str, Any]:
        finding = self.findings.anomalies.get(anomaly)
        if finding is None:
            return {"count": None, "found": None, "messages": []}
        return {"count": finding.count, "found": self.never[anomaly], "messages": list(finding.examples)}


def _explanation(finding: Finding) -> dict[str, Any]:
    if finding.unexplained is None:
        return {}
    return {
        "unexplained": finding.unexplained,
        "unexplained_messages": list(finding.unexplained_examples),
        "causes": dict(finding.causes),
        **({"by_kind": finding.by_kind} if finding.by_kind else {}),
    }


def verdict(
    findings: Findings,
    specification: Specification,
    *,
    never: Collection[Anomaly] = (),
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Judge ``findings`` by the tables.

    What no message or pair of messages of the history decides (windows, counts), and what was not found, is allowed
    if :func:`ackfsm.verify.allowed` says so of the faults and actions that the history has.  ``never`` are anomalies
    that shall not be there, allowed or not; ``progress`` is told how many states were found.
    """
    judged = [_Judged(each, *_allowed(each, specification, progress)) for each in findings.each]
    return _result(findings, judged, specification.guarantees, never)


def judge(
    findings: Findings,
    allowed: Mapping[Anomaly, bool | None],
    guarantees: Guarantees | None = None,
    never: Collection[Anomaly] = (),
) -> Result:
    """Judge ``findings`` by what all configurations of the history allow.

    An anomaly that was found and is not allowed makes the history invalid, unless unread lines could
    explain it.  Whatever could not be read, counted or decided leaves the verdict unknown.  Only
    what was read, counted and decided in full is valid.  An anomaly that ``allowed`` lacks is undecided.
    Of the ``guarantees``, if they are given, the result says which stood in this history, and of the anomalies that
    shall ``never`` be there whether they are, which changes nothing of the verdict.
    """
    judged = [_Judged(each, allowed) for each in findings.each]
    return _result(findings, judged, guarantees, never)


def _allowed(
    findings: Findings, specification: Specification, progress: Callable[[int], None] | None
) -> tuple[Mapping[Anomaly, bool | None], Mapping[Anomaly, str]]:
    """Return whether each anomaly is allowed by kind, and the limit of that answer, or why it is open."""
    if findings.configuration is None:
        return {}, {}
    answers = allowed(
        specification,
        findings.configuration,
        {*findings.faults, *findings.broken, *findings.assumed},
        actions=tuple(dict.fromkeys((*findings.actions, *findings.assumed_actions))),
        found=[anomaly for anomaly, finding in findings.anomalies.items() if finding.of_its_kind],
        given_back_beside=findings.given_back_beside,
        progress=progress,
    )
    return {name: each.answer for name, each in answers.items()}, {name: each.limit for name, each in answers.items()}


def _result(
    findings: Findings, judged: Sequence[_Judged], guarantees: Guarantees | None, never: Collection[Anomaly]
) -> Result:
    """What comes of all that was ``judged``: a history is valid if every part of it is."""
    where = [f"{part}: " for part in findings.parts] or [""]
    violations = [f"{name}{why}" for name, each in zip(where, judged, strict=True) for why in each.violations()]
    doubts = [f"{name}{why}" for name, each in zip(where, judged, strict=True) for why in each.doubts()]
    doubts = [*_doubts_of_all(findings), *doubts]
    happened = _happened(findings)
    evaluated = guarantees.evaluate(happened) if guarantees else {}
    return Result(
        findings=findings,
        allowed={anomaly: _all_decided(anomaly, judged) for anomaly in findings.anomalies},
        verdict=Verdict.INVALID if violations else Verdict.UNKNOWN if doubts else Verdict.VALID,
        reasons=(*violations, *doubts),
        guarantees=evaluated,
        strongest=guarantees.strongest(evaluated) if guarantees else (),
        never={anomaly: happened.get(anomaly) for anomaly in never},
        allowed_kinds=tuple(each.kinds for each in judged),
        violated=tuple(dict.fromkeys(each.anomaly for part in judged for each in part.violated())),
    )


def _all_decided(anomaly: Anomaly, judged: Sequence[_Judged]) -> bool | None:
    """Whether it is allowed wherever it was found; if it was not, whether it is everywhere."""
    there = [each for each in judged if anomaly in each.decided]
    found = [each for each in there if each.findings.anomalies[anomaly].found]
    answers = {each.decided[anomaly] for each in found or there}
    return False if False in answers else None if None in answers else True


_EXCUSES: Final = frozenset(
    {Event.FAULT, Event.CLOSE, Event.RECOVER, Event.ROLLBACK, Event.ROLLED_BACK, Event.FAILED, Event.RESEND}
    | {Event.EXPIRED, Event.DEAD_LETTERED, Event.IN_DOUBT, Event.ACK_IN_DOUBT, Event.COMMIT_IN_DOUBT, Event.REJECTED}
)
"""What allows more where it happened."""


def _happened(findings: Findings) -> dict[str, bool | None]:
    """Which anomalies and ends the history certainly has, and certainly has not.

    That takes that every line was read and something was sent, and of the ends that it is known what was processed.
    """
    whole = findings.parse_errors == 0 and findings.messages > 0
    unprocessed = findings.anomalies.get(Anomaly.UNPROCESSED)
    told = whole and unprocessed is not None and unprocessed.unknown is None
    ends: dict[str, bool | None] = {name: count > 0 if told else None for name, count in findings.ends.items()}
    if findings.unshown:
        ends = {name: there or None for name, there in ends.items()}
    return ends | {
        finding.anomaly: True
        if finding.certain and not _may_be_unread(findings, finding)
        else (False if whole and finding.count == 0 and finding.doubt is None else None)
        for finding in findings.anomalies.values()
    }


class _Judged:
    """The accusations against the messages of one configuration, and the open questions about them."""

    def __init__(
        self,
        findings: Findings,
        kinds: Mapping[Anomaly, bool | None],
        limits: Mapping[Anomaly, str] = MappingProxyType({}),
    ) -> None:
        """``kinds`` has the anomalies allowed by kind, ``limits`` the limit of each answer."""
        self.findings, self.kinds, self._limits = findings, kinds, limits
        self._excuses = [name for name in findings.unshown if name in _EXCUSES]
        self.decided = {anomaly: self._decided(finding) for anomaly, finding in findings.anomalies.items()}

    def _decided(self, finding: Finding) -> bool | None:
        """Whether all that was found is explained by what happened to its message; else what its kind is allowed.

        What is not allowed as far as was recorded may be allowed if excuses happened that the source cannot show.
        """
        allowed = self.kinds.get(finding.anomaly)
        if finding.found and finding.of_its_kind and self._excuses and not allowed:
            return None
        if finding.of_its_kind or not finding.found:
            return None if finding.undecided and allowed else allowed
        return False if finding.unexplained else None if finding.undecided else True

    def violated(self) -> Iterator[Finding]:
        """Yield the findings that are not allowed, whatever the unread lines say."""
        for finding in self.findings.anomalies.values():
            its = finding.certain and self.decided[finding.anomaly] is False
            if its and not _may_be_unread(self.findings, finding):
                yield finding

    def violations(self) -> Iterator[str]:
        """What makes the history invalid."""
        findings = self.findings
        yield from (reasons.violation(findings, each, self._limits.get(each.anomaly, "")) for each in self.violated())
        if not findings.parse_errors:
            yield from reasons.unnamed(findings)

    def doubts(self) -> Iterator[str]:
        """Yield the reasons for an open verdict; doubted anomalies count if they are not allowed by kind."""
        findings = self.findings
        if findings.configuration is None:
            yield words.NO_CONFIGURATION
        if findings.explanation is not None:
            yield from (words.not_checked(count, why) for why, count in findings.explanation.undecided.items())
        if findings.parse_errors:
            yield from reasons.unnamed(findings)
        yield from (words.unknown(names, why) for why, names in self._unknown().items())
        for finding in findings.anomalies.values():
            yield from self._doubts_of(finding)

    def _doubts_of(self, finding: Finding) -> Iterator[str]:
        allowed = self.decided[finding.anomaly]
        if finding.doubt is not None and not self.kinds.get(finding.anomaly):
            yield finding.doubt
        if finding.certain and allowed is None and self.findings.configuration is not None:
            yield reasons.open_of(finding, self._excuses, self._limits.get(finding.anomaly, ""))
        if finding.certain and allowed is False and _may_be_unread(self.findings, finding):
            yield reasons.unread_may_explain(finding)

    def _unknown(self) -> Mapping[str, list[str]]:
        """Return for each reason the anomalies with unknown counts."""
        groups: dict[str, list[str]] = {}
        for finding in self.findings.anomalies.values():
            if finding.unknown is not None and not (finding.unrecorded and self.kinds.get(finding.anomaly)):
                groups.setdefault(finding.unknown, []).append(finding.anomaly)
        return groups


def _doubts_of_all(findings: Findings) -> Iterator[str]:
    """Why the verdict on a history is open, whatever it is judged by."""
    if findings.parse_errors:
        yield reasons.unread(findings)
    if findings.faults and Event.RECOVERED in findings.unshown:
        yield words.not_seen_to_end(Event.RECOVERED)
    if not findings.messages:
        yield words.NO_MESSAGE


def _may_be_unread(findings: Findings, finding: Finding) -> bool:
    return finding.needs_every_line and findings.parse_errors > 0
