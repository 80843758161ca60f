"""Why a verdict is as it is: the sentences about findings that JSON, tables, reports and screens have as reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Final

from ackfsm.terms import Anomaly
from ackfsm.text import in_words
from ackfsm.verify.findings.findings import Finding, Findings
from ackfsm.verify.words import ALLOWED, cannot_show, few, kind_of, not_conform, nothing_explains, number_of, quoted_few

_WHY_UNDECIDED: Final = MappingProxyType(
    {
        Anomaly.TORN_TRANSACTION: ", whose messages are judged by different configurations",
        Anomaly.MISSING_OUTCOME: ": an outcome may come until a `drained` follows the send",
    }
)


def unread(findings: Findings) -> str:
    """How many lines could not be read."""
    total, number = findings.events + findings.parse_errors, findings.parse_errors
    first = f" ({few([str(each) for each in findings.unreadable], number, '; ')})" if findings.unreadable else ""
    return f"{number} of {total} lines could not be read{first}, so every count may lack something"


def unnamed_kind(findings: Findings) -> Iterator[tuple[int, str, str]]:
    """How many messages, and pairs, are no run of the model though no anomaly says so, what they are, and the first."""
    kinds = (("message", "messages"), ("pair of messages", "pairs of messages"))
    for each, kind in zip(findings.held, kinds, strict=False):
        if each.unnamed:
            first = next((str(one) for one in each.examples if not one.anomalies), "...")
            yield each.unnamed, kind[each.unnamed != 1], first


def unnamed(findings: Findings) -> Iterator[str]:
    """That some are no run of the model though no anomaly says so, unless lines are missing."""
    unless = " unless a line is missing" if findings.parse_errors else ""
    return (f"{not_conform(count, what)}{unless}: {told}" for count, what, told in unnamed_kind(findings))


def _seen(finding: Finding) -> str:
    number = f"{finding.found} {kind_of(finding.anomaly)}{'' if finding.found == 1 else 's'}"
    return f"{finding.anomaly} of {number} ({quoted_few(finding.examples, finding.found)})"


def violation(findings: Findings, finding: Finding, limit: str = "") -> str:
    """Return the reason that a finding is not allowed; ``limit`` says on what that rests, if it is not proved."""
    return f"{_seen(finding)}, which {_not_allowed(findings, finding)}{f' ({limit})' if limit else ''}"


def _not_allowed(findings: Findings, finding: Finding) -> str:
    if finding.unexplained is None or finding.of_its_kind:
        unrecorded = [f"unrecorded {fault}" for fault in findings.assumed if fault not in findings.faults]
        told = [*findings.faults, *unrecorded]
        return f"{ALLOWED[False]}{f' under {in_words(told)}' if told else ' without a fault'}"
    its = [each for each in findings.contradicted if finding.anomaly.value in each.anomalies]
    some = "" if finding.unexplained == finding.found else f" in {number_of(finding.unexplained)}"
    return f"{nothing_explains(assumed=bool(findings.assumed), before=True)}{some}{f' ({its[0]})' if its else ''}"


def unread_may_explain(finding: Finding) -> str:
    """Return the reason that a finding is not allowed as far as lines were read."""
    return f"{_seen(finding)}, which is not allowed, but the lines that could not be read may explain it"


def open_of(finding: Finding, excuses: Sequence[str], limit: str = "") -> str:
    """Return why it is open whether a finding is allowed: ``excuses`` that the source hides, or a ``limit``."""
    if excuses and (finding.undecided or finding.of_its_kind):
        why = f"{cannot_show(excuses)}, which may explain {'it' if finding.found == 1 else 'them'}"
    elif finding.undecided:
        why = f"{finding.undecided} of them could not be decided{_WHY_UNDECIDED.get(finding.anomaly, '')}"
    else:
        why = f"the tables cannot tell whether the configuration allows it{f': {limit}' if limit else ''}"
    return f"{_seen(finding)}, and {why}"
