"""The sentences about verdicts, each in one place: reasons, screens, stories, reports and pages take them from here.

What is decided is decided elsewhere; nothing but words comes from here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ackfsm.terms import Anomaly, Verdict
from ackfsm.text import in_words, quoted, shown

if TYPE_CHECKING:
    from ackfsm.verify.findings.findings import Finding, Findings
    from ackfsm.verify.findings.recording import Early
    from ackfsm.verify.findings.verdict import Result

__all__ = [
    "NO_CONFIGURATION",
    "NO_MESSAGE",
    "UNCONFIGURED",
    "UNRECORDED",
    "answer",
    "cannot_show",
    "clauses",
    "decided",
    "early",
    "few",
    "judged",
    "never",
    "no_run",
    "not_checked",
    "not_conform",
    "not_seen_to_end",
    "nothing_explains",
    "number_of",
    "occurrence",
    "occurrence_to",
    "open_of",
    "queues_named",
    "quoted_few",
    "reprocessed",
    "span",
    "undrained",
    "unknown",
    "unnamed",
    "unnamed_kind",
    "unprocessed",
    "unread",
    "unread_may_explain",
    "violation",
]

_FEW: Final = 3
"""How many ids, or queues, a sentence names."""

_NAMED: Final = 64
"""How many characters of an id or a name a sentence has: too few for it to look like a sentence of its own."""

_SHOWN: Final = 4
"""At most so many things are named that a source cannot show."""

NO_CONFIGURATION: Final = "no configuration is known to judge it by; name one (--profile, --set) or add a header"
UNCONFIGURED: Final = "it depends on the configuration, and none is known"
NO_MESSAGE: Final = "no message was sent, so nothing was shown"

_CONFIGURATION: Final[Mapping[bool | None, str]] = MappingProxyType(
    {
        True: "the configuration allows",
        False: "the configuration does not allow",
        None: "the tables leave undecided",
    }
)
_SHORT: Final[Mapping[bool | None, str]] = MappingProxyType({False: "not allowed", None: "undecided", True: "allowed"})

_WHY_UNDECIDED: Final = MappingProxyType(
    {
        Anomaly.TORN_TRANSACTION: ", whose messages are judged by different configurations",
        Anomaly.MISSING_OUTCOME: ": an outcome may come until a `drained` follows the send",
    }
)

_OCCURRENCES: Mapping[Anomaly, str] = MappingProxyType(
    {
        Anomaly.LOSS: "lost",
        Anomaly.UNPROCESSED: "delivered and never processed",
        Anomaly.DUPLICATE: "delivered again, flagged as redelivered",
        Anomaly.UNFLAGGED_DUPLICATE: "delivered again with the flag clear",
        Anomaly.REPROCESSED: "processed more than once",
        Anomaly.RESURRECTION: "delivered again after an acknowledgement was confirmed",
        Anomaly.PHANTOM: "delivered with no send before",
        Anomaly.DIRTY_DELIVERY: "delivered out of a transaction that nobody had asked to commit",
        Anomaly.TORN_TRANSACTION: "carried out in part",
        Anomaly.REORDER: "overtaken",
        Anomaly.WINDOW_OVERRUN: "sent beyond the publish window",
        Anomaly.PREFETCH_OVERRUN: "delivered beyond the prefetch bound",
        Anomaly.DOUBLE_OUTCOME: "given two outcomes",
        Anomaly.MISSING_OUTCOME: "left without an outcome",
        Anomaly.EARLY_CONFIRM: "confirmed before the journal had synced",
        Anomaly.COUNT_REGRESSION: "delivered with counts that contradict each other",
        Anomaly.OVER_DELIVERED: "delivered too often or too late",
        Anomaly.GHOST: "rejected and delivered",
        Anomaly.STUCK: "stuck",
    }
)
"""What a message was that has an anomaly."""


# names and numbers


def few(names: Sequence[str], total: int | None = None, comma: str = ", ") -> str:
    """The first few of ``names``, with dots if they are not all, or not ``total``."""
    return comma.join([*names[:_FEW], *(["..."] if (len(names) if total is None else total) > _FEW else [])])


def quoted_few(names: Sequence[str], total: int | None = None) -> str:
    """As :func:`few`, each as a sentence names it."""
    return few([quoted(name, _NAMED) for name in names], total)


def queues_named(queues: Sequence[str]) -> str:
    """The first few of ``queues``; "" is no queue."""
    return few([quoted(queue, _NAMED) if queue else "a queue without a name" for queue in queues])


def number_of(count: int, kind: str = "message", several: str | None = None) -> str:
    """``1 message``, ``2,000 messages``."""
    return f"{count:,} {kind if count == 1 else several or f'{kind}s'}"


def clauses(told: Sequence[str]) -> str:
    """Clauses as one; a comma or an "and" inside of one is not taken for one between them."""
    if len(told) > 1 and any("," in each or " and " in each for each in told):
        return f"{', '.join(told[:-1])}, and {told[-1]}"
    return in_words(told)


def _kind(anomaly: Anomaly) -> str:
    return "transaction" if anomaly is Anomaly.TORN_TRANSACTION else "message"


def occurrence(anomaly: Anomaly, number: int | None) -> str:
    """``2 messages were lost``; ``no message was lost`` for 0, ``a message was lost`` for ``None``."""
    if number:
        return f"{number_of(number, _kind(anomaly))} {'was' if number == 1 else 'were'} {_OCCURRENCES[anomaly]}"
    return f"{'a' if number is None else 'no'} {_kind(anomaly)} was {_OCCURRENCES[anomaly]}"


def occurrence_to(anomaly: Anomaly, name: str) -> str:
    """``message 'm1' was lost``; of a torn transaction ``name`` is its own."""
    return f"{_kind(anomaly)} {quoted(name, _NAMED)} was {_OCCURRENCES[anomaly]}"


# why a verdict is as it is: the reasons


def undrained(queues: Sequence[str]) -> str:
    """Why an anomaly that shows at rest cannot be counted: ``queues`` were not drained (``""``: none was named)."""
    return f"no `drained` follows the last send to {queues_named(queues)}"


def cannot_show(names: Collection[str]) -> str:
    """Why something is unknown that needs what has these ``names``, at least one; a clause."""
    told = [f"`{name}`" for name in names]
    if len(told) > _SHOWN:
        told = [*told[: _SHOWN - 1], f"{len(told) - _SHOWN + 1} more"]
    return f"the source cannot show {in_words(told)}"


def not_seen_to_end(event: str) -> str:
    """Why nobody knows which fault explains what, where the source cannot show its repair."""
    return f"{cannot_show([event])}, so nobody knows when a fault ended, and what it explains"


def unread(findings: Findings) -> str:
    """How many lines could not be read."""
    total, number = findings.events + findings.parse_errors, findings.parse_errors
    first = f" ({few([str(each) for each in findings.unreadable], number, '; ')})" if findings.unreadable else ""
    return f"{number} of {total} lines could not be read{first}, so every count may lack something"


def not_checked(count: int, why: str) -> str:
    """That so many messages were not held to the model."""
    return f"{number_of(count)} could not be checked against the model: {why}"


def unknown(anomalies: Sequence[str], why: str) -> str:
    """That nobody knows how many have these anomalies."""
    return f"{in_words(anomalies)} {'is' if len(anomalies) == 1 else 'are'} unknown: {why}"


def unnamed_kind(findings: Findings) -> Iterator[tuple[int, str, str]]:
    """How many messages, and pairs, are no run of the model though no anomaly says so, what they are, and the first."""
    kinds = (("message", "messages"), ("pair of messages", "pairs of messages"))
    for each, kind in zip(findings.held, kinds, strict=False):
        if each.unnamed:
            first = next((str(one) for one in each.examples if not one.anomalies), "...")
            yield each.unnamed, kind[each.unnamed != 1], first


def not_conform(count: int, what: str) -> str:
    """That so many messages or pairs are no run of the model."""
    return f"{count:,} {what} {'does' if count == 1 else 'do'} not conform to the model"


def no_run(count: int, what: str) -> str:
    """As :func:`not_conform`, in a row that has the number."""
    return f"not allowed: {what} that {'is' if count == 1 else 'are'} no run of the model"


def unnamed(findings: Findings) -> Iterator[str]:
    """That some are no run of the model though no anomaly says so, unless lines are missing."""
    unless = " unless a line is missing" if findings.parse_errors else ""
    return (f"{not_conform(count, what)}{unless}: {told}" for count, what, told in unnamed_kind(findings))


def _seen(finding: Finding) -> str:
    number = f"{finding.found} {_kind(finding.anomaly)}{'' if finding.found == 1 else 's'}"
    return f"{finding.anomaly} of {number} ({quoted_few(finding.examples, finding.found)})"


def violation(findings: Findings, finding: Finding, limit: str = "") -> str:
    """That what was found is not allowed; ``limit`` says on what that rests, if it is not proved."""
    return f"{_seen(finding)}, which {_not_allowed(findings, finding)}{f' ({limit})' if limit else ''}"


def _not_allowed(findings: Findings, finding: Finding) -> str:
    if finding.unexplained is None or finding.of_its_kind:
        unrecorded = [f"unrecorded {fault}" for fault in findings.assumed if fault not in findings.faults]
        told = [*findings.faults, *unrecorded]
        return f"{_CONFIGURATION[False]}{f' under {in_words(told)}' if told else ' without a fault'}"
    its = [each for each in findings.contradicted if finding.anomaly.value in each.anomalies]
    some = "" if finding.unexplained == finding.found else f" in {number_of(finding.unexplained)}"
    return f"{nothing_explains(findings, ' before')}{some}{f' ({its[0]})' if its else ''}"


def nothing_explains(findings: Findings | None = None, before: str = "") -> str:
    """``nothing recorded explains``; where faults may be assumed, none of them either."""
    assumed = " and no unrecorded fault" if findings is not None and findings.assumed else ""
    return f"nothing recorded{before}{assumed} explains"


def unread_may_explain(finding: Finding) -> str:
    """That what was found is not allowed as far as lines were read."""
    return f"{_seen(finding)}, which is not allowed, but the lines that could not be read may explain it"


def open_of(finding: Finding, excuses: Sequence[str], limit: str = "") -> str:
    """Why it is open whether what was found is allowed: of ``excuses`` that the source cannot show, or a ``limit``."""
    if excuses and (finding.undecided or finding.of_its_kind):
        why = f"{cannot_show(excuses)}, which may explain {'it' if finding.found == 1 else 'them'}"
    elif finding.undecided:
        why = f"{finding.undecided} of them could not be decided{_WHY_UNDECIDED.get(finding.anomaly, '')}"
    else:
        why = f"the tables cannot tell whether the configuration allows it{f': {limit}' if limit else ''}"
    return f"{_seen(finding)}, and {why}"


# what may be of the recording

UNRECORDED: Final = "no `processed` is recorded; record one whenever a message is done with"
"""Why nobody can tell what was processed."""

_UNITS: Final = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))


def span(nanoseconds: int) -> str:
    """So many nanoseconds, or up to a hundredth more, as ``--skew`` takes it: ``100us``."""
    step = 10 ** max(0, len(str(nanoseconds)) - 3)
    rounded = -(-nanoseconds // step) * step
    size, unit = next((size, unit) for size, unit in _UNITS if rounded >= size)
    return f"{rounded // size}{f'.{rounded % size:0{len(str(size)) - 1}}'.rstrip('0') if rounded % size else ''}{unit}"


def early(early: Early, skew: int) -> str:
    """That messages were delivered before they were sent, where clocks may differ by ``skew``."""
    before = f"delivered up to {span(early.gap)} before" if early.gap else "delivered at the moment of"
    is_, their = ("is", "its") if early.count == 1 else ("are", "their")
    told = f"{early.count:,} of the phantoms {is_} {before} {their} send"
    if 0 < early.gap <= skew:
        return f"{told}, which no constant differences of the clocks within --skew {span(skew)} explain all together"
    names = quoted_few((early.consumer, early.producer)).replace(", ", " and ")
    return f"{told}: if the clocks of {names} may differ by that much, say --skew {span(max(early.gap, 1))}"


def unprocessed(count: int, silent: Sequence[str]) -> str:
    """That so many were delivered to the ``silent``, who do not tell what they have processed."""
    were = "was" if count == 1 else "were"
    return f"{count:,} of the unprocessed {were} delivered to {quoted_few(silent)}, of whom {UNRECORDED}"


def reprocessed(count: int, silent: Sequence[str]) -> str:
    """That so many came again, also to the ``silent``."""
    repeated = number_of(count, "repeated message")
    return f"{repeated} may be reprocessed: of {quoted_few(silent)} {UNRECORDED}"


# what a verdict says


def answer(result: Result) -> str:
    """The verdict and its reason: ``invalid: 1 message was lost, which nothing recorded explains``."""
    meaning = {Verdict.VALID: _passed, Verdict.INVALID: _wrong, Verdict.UNKNOWN: _left_open}[result.verdict]
    return f"{result.verdict}: {meaning(result)}"


def _left_open(result: Result) -> str:
    several = f"{len(result.reasons)} things are left open, so this is not a pass"
    return result.reasons[0] if len(result.reasons) == 1 else several


def _passed(result: Result) -> str:
    """A pass says what it passes."""
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
    told = [f"{clauses(unexplained)}, which {nothing_explains(findings)}"] if unexplained else []
    told += [f"{clauses(forbidden)}, which {_CONFIGURATION[False]}"] if forbidden else []
    if not findings.parse_errors:
        told += [not_conform(count, what) for count, what, _ in unnamed_kind(findings)][:1]
    return "; ".join(told)


def judged(result: Result, finding: Finding) -> str:
    """Whether what was found is allowed, and by what."""
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
        return f"{sentence}, which {_CONFIGURATION[allowed]}"
    return f"{sentence}: " + ", ".join(f"{apart[each]:,} {_SHORT[each]}" for each in _SHORT if each in apart)
