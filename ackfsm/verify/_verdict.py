"""The findings of a history, and its verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ackfsm import explore
from ackfsm.tables import Guarantees, Specification
from ackfsm.terms import Anomaly, Configuration, Fault, Verdict
from ackfsm.text import in_words, quoted
from ackfsm.verify._explain import Contradicted, Explanation
from ackfsm.verify._lines import ParseError
from ackfsm.verify._timeline import Unrecorded

__all__ = [
    "EXAMPLES",
    "UNCONFIGURED",
    "Cost",
    "Finding",
    "Findings",
    "Part",
    "Result",
    "judge",
    "quoted_few",
    "undrained",
    "verdict",
]

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
        unrecorded: whether it is unknown for want of what nobody recorded: nothing hangs on it where it is allowed.
        doubted: how many of ``found`` may be of the recording and not of the system (clocks, what is not told).
        doubt: why, a sentence with the remedy; without any ``doubted``, why there may be more than were found.
        unexplained: how many of ``found`` nothing explains that happened to their message; ``None`` if no message was
            held to the model for it.
        unexplained_examples: the first :data:`EXAMPLES` of those, by code point.
        undecided: how many of ``found`` are of messages of which the model decided nothing.
        by_kind: how many of ``found`` are judged by what their kind is allowed, as no pair of messages tells of them.
        causes: what explains the others, each with how many it explains, by name of the fault or action.
    """

    anomaly: Anomaly
    found: int
    unknown: str | None
    needs_every_line: bool
    examples: tuple[str, ...]
    unrecorded: bool = False
    doubted: int = 0
    doubt: str | None = None
    unexplained: int | None = None
    undecided: int = 0
    by_kind: int = 0
    unexplained_examples: tuple[str, ...] = ()
    causes: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def certain(self) -> int:
        """How many nothing but the system explains."""
        return self.found - self.doubted

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
        of_calls: the kinds of faults of one call that were recorded; to the tables they are outcomes of it.
        broken: the faults that nobody recorded and clients saw: connections that broke; with a configuration alone.
        actions: what applications did of their own will that makes a broker deliver again (optional events).
        anomalies: every anomaly that a history can show, in the order of :class:`Anomaly`.
        ends: how many messages have each of the ends that exclude guarantees, by the name of its monitor.
        counters: what else a person may want to know, by name.
        skew: by how many nanoseconds the clocks of two processes may differ.
        offsets: nanoseconds that were added to the times of a process for that; of those that were shifted, by name.
        explanation: what came of holding each message to the model; ``None`` without a configuration.
        given_back_beside: whether a consumer may have given back what it had while another one of its queue went on.
        unrecorded: what faults that nobody recorded explain or would explain; ``None`` if that was not asked.
        queues: the configurations of the queues that have one of their own, by name.
        parts: if there are such queues, the findings of each configuration, of which the others are the sums.
        cost: what it took to find them.
    """

    history: str
    engine: str
    configuration: Configuration | None
    events: int
    messages: int
    parse_errors: int
    unreadable: tuple[ParseError, ...]
    faults: tuple[Fault, ...]
    actions: tuple[str, ...]
    anomalies: Mapping[Anomaly, Finding]
    counters: Mapping[str, int]
    ends: Mapping[str, int] = dataclasses.field(default_factory=dict)
    skew: int = 0
    offsets: Mapping[str, int] = dataclasses.field(default_factory=dict)
    explanation: Explanation | None = None
    broken: tuple[Fault, ...] = ()
    given_back_beside: bool = False
    of_calls: tuple[str, ...] = ()
    unrecorded: Unrecorded | None = None
    queues: Mapping[str, Configuration] = dataclasses.field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    cost: Cost = dataclasses.field(default_factory=lambda: Cost(), compare=False)  # noqa: PLW0108 - it is defined below

    @property
    def assumed(self) -> tuple[Fault, ...]:
        """The faults that may have happened although nobody recorded them."""
        return self.unrecorded.kinds if self.unrecorded is not None and self.unrecorded.assumed else ()

    @property
    def assumed_actions(self) -> tuple[str, ...]:
        """What these faults bring about."""
        return self.unrecorded.actions if self.unrecorded is not None and self.unrecorded.assumed else ()


@dataclasses.dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of the processors that this process used: to examine a history, and of these to hold it to the model."""

    whole: float = 0.0
    conformance: float = 0.0

    @property
    def share(self) -> float | None:
        """What part holding messages to the model took; ``None`` if nothing was measured."""
        return self.conformance / self.whole if self.whole else None


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """The findings of the messages of a history that are judged by one configuration.

    Attributes:
        queues: the queues that they are of, in the order of their names; "" is no queue.
        findings: what was found of them.
    """

    queues: tuple[str, ...]
    findings: Findings

    def __str__(self) -> str:
        if self.queues == ("",):
            return "without a queue"
        names = _few([_called(queue) for queue in self.queues], len(self.queues))
        return f"queue {names}" if len(self.queues) == 1 else f"queues {names}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The verdict on a history, the sentences that give its reasons, and what it stands on.

    ``allowed`` says of every anomaly whether the configuration allows it under the faults that were
    recorded; ``None`` where the tables cannot tell.  ``guarantees`` says of each whether it stood in this
    history, ``None`` where that is open; ``strongest`` are those with none above them that stood.
    ``never`` says of each anomaly that shall not be there, allowed or not, whether it is; ``None`` if nobody can tell.
    ``allowed_kinds`` says for each part of the findings (or for all, if there are none) what its configuration allows
    in any number, whatever befell a message.
    """

    findings: Findings
    allowed: Mapping[Anomaly, bool | None]
    verdict: Verdict
    reasons: tuple[str, ...]
    guarantees: Mapping[str, bool | None] = dataclasses.field(default_factory=dict)
    strongest: tuple[str, ...] = ()
    never: Mapping[Anomaly, bool | None] = dataclasses.field(default_factory=dict)
    allowed_kinds: tuple[Mapping[Anomaly, bool | None], ...] = ()

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


def undrained(queues: Sequence[str]) -> str:
    """Why an anomaly that shows at rest cannot be counted: ``queues`` were not drained (``""``: none was named)."""
    return f"no `drained` follows the last send to {_few([_called(queue) for queue in queues], len(queues))}"


def _called(queue: str) -> str:
    return quoted(queue, NAMED) if queue else "a queue without a name"


def verdict(
    findings: Findings,
    specification: Specification,
    *,
    never: Collection[Anomaly] = (),
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Judge ``findings`` by the tables.

    What no message or pair of messages of the history decides (windows, counts), and what was not found, is allowed
    if the exhaustive search reaches it under the faults and actions that the history has.  ``never`` are anomalies that
    shall not be there, allowed or not; ``progress`` is told how many states were found.
    """
    why = {anomaly: explore.why_undecided(specification, anomaly) for anomaly in Anomaly}
    judged = [_judged(part, _allowed(part, specification, progress), why) for part in _judged_apart(findings)]
    return _result(findings, judged, specification.guarantees, never)


def judge(
    findings: Findings,
    allowed: Mapping[Anomaly, bool | None],
    why_undecided: Mapping[Anomaly, str | None] = MappingProxyType({}),
    guarantees: Guarantees | None = None,
    never: Collection[Anomaly] = (),
) -> Result:
    """Judge ``findings`` by what all configurations of the history allow.

    An anomaly that was found and is not allowed makes the history invalid, unless unread lines could
    explain it.  Whatever could not be read, counted or decided leaves the verdict unknown.  Only
    what was read, counted and decided in full is valid.  An anomaly that ``allowed`` lacks is undecided;
    ``why_undecided`` may have a clause that says why.
    Of the ``guarantees``, if they are given, the result says which stood in this history, and of the anomalies that
    shall ``never`` be there whether they are, which changes nothing of the verdict.
    """
    judged = [_judged(part, allowed, why_undecided) for part in _judged_apart(findings)]
    return _result(findings, judged, guarantees, never)


@dataclasses.dataclass(frozen=True, slots=True)
class _Judged:
    """What is held against the messages of one configuration, and what is open of them."""

    findings: Findings
    kinds: Mapping[Anomaly, bool | None]
    decided: Mapping[Anomaly, bool | None]
    violations: tuple[str, ...]
    doubts: tuple[str, ...]


def _judged_apart(findings: Findings) -> Sequence[Findings]:
    return [part.findings for part in findings.parts] or [findings]


def _allowed(
    findings: Findings, specification: Specification, progress: Callable[[int], None] | None
) -> Mapping[Anomaly, bool | None]:
    if findings.configuration is None:
        return {}
    return explore.allowed(
        specification,
        findings.configuration,
        {*findings.faults, *findings.broken, *findings.assumed},
        actions=tuple(dict.fromkeys((*findings.actions, *findings.assumed_actions))),
        found=[anomaly for anomaly, finding in findings.anomalies.items() if _of_its_kind(finding)],
        given_back_beside=findings.given_back_beside,
        progress=progress,
    )


def _judged(
    findings: Findings, allowed: Mapping[Anomaly, bool | None], why_undecided: Mapping[Anomaly, str | None]
) -> _Judged:
    decided = {
        anomaly: _decided(finding, allowed=allowed.get(anomaly)) for anomaly, finding in findings.anomalies.items()
    }
    return _Judged(
        findings,
        allowed,
        decided,
        tuple(_violations(findings, decided)),
        tuple(_doubts(findings, decided, why_undecided, allowed)),
    )


def _result(
    findings: Findings, judged: Sequence[_Judged], guarantees: Guarantees | None, never: Collection[Anomaly]
) -> Result:
    """What comes of all that was ``judged``: a history is valid if every part of it is."""
    where = [f"{part}: " for part in findings.parts] or [""]
    violations = [f"{name}{why}" for name, each in zip(where, judged, strict=True) for why in each.violations]
    doubts = [f"{name}{why}" for name, each in zip(where, judged, strict=True) for why in each.doubts]
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
    )


def _all_decided(anomaly: Anomaly, judged: Sequence[_Judged]) -> bool | None:
    """Whether it is allowed wherever it was found; if it was not, whether it is everywhere."""
    there = [each for each in judged if anomaly in each.decided]
    found = [each for each in there if each.findings.anomalies[anomaly].found]
    answers = {each.decided[anomaly] for each in found or there}
    return False if False in answers else None if None in answers else True


def _of_its_kind(finding: Finding) -> bool:
    """Whether some that were found are judged by what their kind is allowed."""
    return finding.found > 0 and (finding.unexplained is None or (finding.by_kind > 0 and not finding.unexplained))


def _decided(finding: Finding, *, allowed: bool | None) -> bool | None:
    """Whether all that was found is explained by what happened to its message; else what its kind is allowed."""
    if _of_its_kind(finding) or not finding.found:
        return None if finding.undecided and allowed else allowed
    return False if finding.unexplained else None if finding.undecided else True


def _happened(findings: Findings) -> dict[str, bool | None]:
    """Which anomalies and ends the history certainly has, and certainly has not.

    That takes that every line was read and something was sent, and of the ends that it is known what was processed.
    """
    whole = findings.parse_errors == 0 and findings.messages > 0
    unprocessed = findings.anomalies.get(Anomaly.UNPROCESSED)
    told = whole and unprocessed is not None and unprocessed.unknown is None
    ends: dict[str, bool | None] = {name: count > 0 if told else None for name, count in findings.ends.items()}
    return ends | {
        finding.anomaly: True
        if finding.certain and not _may_be_unread(findings, finding)
        else (False if whole and finding.count == 0 and finding.doubt is None else None)
        for finding in findings.anomalies.values()
    }


def _violations(findings: Findings, allowed: Mapping[Anomaly, bool | None]) -> Iterator[str]:
    for finding in findings.anomalies.values():
        if finding.certain and allowed[finding.anomaly] is False and not _may_be_unread(findings, finding):
            yield f"{_seen(finding)}, which {_not_allowed(findings, finding)}"
    explanation = findings.explanation
    if explanation is not None and not findings.parse_errors:
        yield from (f"{each} can be no run of the model: {told}" for each, told in _unnamed(explanation))


def _doubts(
    findings: Findings,
    allowed: Mapping[Anomaly, bool | None],
    why_undecided: Mapping[Anomaly, str | None],
    allowed_kinds: Mapping[Anomaly, bool | None],
) -> Iterator[str]:
    """Why the verdict is open; what is of the recording hangs on whether the anomaly is allowed in any number."""
    if findings.configuration is None:
        yield "no configuration is known to judge it by; name one (--profile, --set) or add a header"
    if findings.explanation is not None:
        yield from _open_lives(findings, findings.explanation)
    for why, names in _grouped(findings, allowed_kinds):
        yield f"{in_words(names)} {'is' if len(names) == 1 else 'are'} unknown: {why}"
    for finding in findings.anomalies.values():
        if finding.doubt is not None and not allowed_kinds.get(finding.anomaly):
            yield finding.doubt
        if finding.certain and allowed[finding.anomaly] is None and findings.configuration is not None:
            yield f"{_seen(finding)}, {_open(finding, why_undecided.get(finding.anomaly))}"
        if finding.certain and allowed[finding.anomaly] is False and _may_be_unread(findings, finding):
            yield f"{_seen(finding)}, which is not allowed, but the lines that could not be read may explain it"


def _doubts_of_all(findings: Findings) -> Iterator[str]:
    """Why the verdict on a history is open, whatever it is judged by."""
    if findings.parse_errors:
        yield _unread(findings)
    if not findings.messages:
        yield "no message was sent, so nothing was shown"


def _open(finding: Finding, why: str | None) -> str:
    if finding.undecided:
        of_several = finding.anomaly is Anomaly.TORN_TRANSACTION
        because = ", whose messages are judged by different configurations" if of_several else ""
        return f"and nothing was decided of {finding.undecided} of them{because}"
    return f"and the tables cannot tell whether the configuration allows it{f': {why}' if why else ''}"


def _open_lives(findings: Findings, explanation: Explanation) -> Iterator[str]:
    for why, count in explanation.undecided.items():
        yield f"{_messages(count)} could not be held to the model: {why}"
    if findings.parse_errors:
        for each, told in _unnamed(explanation):
            yield f"{each} can be no run of the model unless a line is missing: {told}"


def _may_be_unread(findings: Findings, finding: Finding) -> bool:
    return finding.needs_every_line and findings.parse_errors > 0


def _unread(findings: Findings) -> str:
    total = findings.events + findings.parse_errors
    described = "; ".join([*map(str, findings.unreadable[:SHOWN]), *(["..."] if findings.parse_errors > SHOWN else [])])
    first = f" ({described})" if findings.unreadable else ""
    return f"{findings.parse_errors} of {total} lines could not be read{first}, so every count may lack something"


def _seen(finding: Finding) -> str:
    kind = "transaction" if finding.anomaly is Anomaly.TORN_TRANSACTION else "message"
    plural = "" if finding.found == 1 else "s"
    return f"{finding.anomaly} of {finding.found} {kind}{plural} ({quoted_few(finding.examples, finding.found)})"


def quoted_few(names: Sequence[str], total: int | None = None) -> str:
    """The first few of ``names`` as a sentence names them, with dots if they are not all, or not ``total``."""
    return _few([quoted(name, NAMED) for name in names[:SHOWN]], len(names) if total is None else total)


def _few(names: Sequence[str], total: int) -> str:
    """The first few of ``names``, with dots if they are not ``total``."""
    return ", ".join([*names[:SHOWN], *(["..."] if total > SHOWN else [])])


def _not_allowed(findings: Findings, finding: Finding) -> str:
    if finding.unexplained is None or _of_its_kind(finding):
        return f"the configuration does not allow{_under(findings.faults, findings.assumed)}"
    its = [each for each in _contradicted(findings) if finding.anomaly.value in each.anomalies]
    example = f" ({its[0]})" if its else ""
    nothing = f"nothing that happened before{' and no unrecorded fault' if findings.assumed else ''} explains"
    if finding.unexplained == finding.found:
        return f"{nothing}{example}"
    return f"{nothing} in {_messages(finding.unexplained)}{example}"


def _contradicted(findings: Findings) -> Sequence[Contradicted]:
    if findings.explanation is None:
        return ()
    pairs = findings.explanation.pairs
    return (*findings.explanation.examples, *(pairs.examples if pairs else ()))


def _first_unnamed(explanation: Explanation) -> str:
    return next((str(each) for each in explanation.examples if not each.anomalies), "...")


def _unnamed(explanation: Explanation) -> Iterator[tuple[str, str]]:
    """How many messages, and pairs, are no run of the model though no anomaly says so, and the first of them."""
    if explanation.unnamed:
        yield _messages(explanation.unnamed), _first_unnamed(explanation)
    pairs = explanation.pairs
    if pairs is not None and pairs.unnamed:
        number = f"{pairs.unnamed:,} pair{'' if pairs.unnamed == 1 else 's'} of messages"
        yield number, _first_unnamed(pairs)


def _messages(count: int) -> str:
    return f"{count:,} message{'' if count == 1 else 's'}"


def _under(faults: Sequence[Fault], assumed: Sequence[Fault]) -> str:
    told = [*faults, *(f"unrecorded {fault}" for fault in assumed if fault not in faults)]
    return f" under {in_words(told)}" if told else " without a fault"


def _grouped(findings: Findings, allowed: Mapping[Anomaly, bool | None]) -> Iterator[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for finding in findings.anomalies.values():
        if finding.unknown is not None and not (finding.unrecorded and allowed.get(finding.anomaly)):
            groups.setdefault(finding.unknown, []).append(finding.anomaly)
    yield from groups.items()
