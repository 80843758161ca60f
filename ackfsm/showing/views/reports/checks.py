"""The checks of a verified history, which every form of a report tells: the verdict, each anomaly, each ``--never``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ackfsm.showing.views.verdict_words import decided
from ackfsm.tables import Specification
from ackfsm.terms import Anomaly, Verdict
from ackfsm.verify import Result
from ackfsm.verify.words import not_conform, occurrence, occurrence_to

VERDICT: Final = "verdict"
CONTRADICTION: Final = "contradiction"
"""The check that each message is a run of the model, of those that no anomaly tells of."""

_PLACES: Final = 100
"""Of each check at most so many messages are named."""


class Outcome(StrEnum):
    """What came of a check."""

    PASSED = "passed"
    FAILED = "failed"
    OPEN = "open"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A message that a check is about.

    Attributes:
        message: its id.
        line: the first line that tells of it, or the first impossible one; ``None`` if none does, or if the history was
            made of a log whose lines are other ones.
        told: what is wrong there, a sentence.
    """

    message: str
    line: int | None
    told: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question to a history, and its answer.

    Attributes:
        name: :data:`VERDICT`, :data:`CONTRADICTION`, the name of an anomaly, or ``never`` and that.
        meaning: what is asked, a clause.
        outcome: the answer.
        decides: whether the exit code hangs on it also where it is open: of the verdict and of ``--never``.
        told: the answer, a sentence.
        places: the first messages that it is about.
    """

    name: str
    meaning: str
    outcome: Outcome
    decides: bool
    told: str
    places: tuple[Place, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report on one history; ``result`` is ``None`` if it could not be read, and ``error`` says why.

    The exit code of ``verify`` is 0 if and only if every history was read and each of its checks passed, but for
    open ones that do not decide.
    """

    history: str
    checks: tuple[Check, ...] = ()
    result: Result | None = None
    error: str | None = None


def unread_report(history: str, error: str) -> Report:
    """The report of a history that could not be read."""
    return Report(history=history, error=error)


def report_of(history: str, result: Result, anomalies: pa.Table, specification: Specification) -> Report:
    """The report of a ``result``.

    Args:
        history: the path, as it was given.
        result: the verdict.
        anomalies: a row for each anomaly of each message, as in :data:`ackfsm.verify.TABLES`.
        specification: the tables, which say what an anomaly means.
    """
    asked = _Asked(result, anomalies, specification)
    checks = (asked.verdict(), *asked.contradiction(), *asked.anomalies(), *asked.never())
    return Report(history=history, checks=checks, result=result)


@dataclasses.dataclass(frozen=True, slots=True)
class _Asked:
    result: Result
    rows: pa.Table
    specification: Specification

    def verdict(self) -> Check:
        outcome = {
            Verdict.VALID: Outcome.PASSED,
            Verdict.INVALID: Outcome.FAILED,
            Verdict.UNKNOWN: Outcome.OPEN,
        }[self.result.verdict]
        why = "; ".join(self.result.reasons) or "whatever was found is allowed"
        return Check(
            name=VERDICT,
            meaning="whatever was found is allowed by the configuration",
            outcome=outcome,
            decides=True,
            told=f"{self.result.verdict}: {why}",
        )

    def contradiction(self) -> Iterator[Check]:
        """Whether messages that have no anomaly are runs of the model; of what lines are missing from nothing is."""
        findings = self.result.findings
        if findings.explanation is None:
            return
        unnamed = sum(each.unnamed for each in findings.held)
        unread = findings.parse_errors > 0
        yield Check(
            name=CONTRADICTION,
            meaning="every message without an anomaly is a run of the model",
            outcome=Outcome.PASSED if not unnamed else Outcome.OPEN if unread else Outcome.FAILED,
            decides=False,
            told=not_conform(unnamed, "message" if unnamed == 1 else "messages")
            + (" unless a line is missing" if unnamed and unread else ""),
            places=tuple(
                self._place(each.message, each.line, str(each)) for each in findings.contradicted if not each.anomalies
            )[:_PLACES],
        )

    def anomalies(self) -> Iterator[Check]:
        for anomaly, finding in self.result.findings.anomalies.items():
            violated = anomaly in self.result.violated
            allowed = self.result.allowed[anomaly]
            is_open = finding.count is None or (finding.found > 0 and not allowed)
            yield Check(
                name=anomaly.value,
                meaning=self.specification.meaning(anomaly),
                outcome=Outcome.FAILED if violated else Outcome.OPEN if is_open else Outcome.PASSED,
                decides=False,
                told=decided(finding, self.result.apart(anomaly)),
                places=self._places(anomaly, allowed=False if violated else None),
            )

    def never(self) -> Iterator[Check]:
        """Each anomaly of ``--never``, whether it is allowed or not."""
        for anomaly, found in self.result.never.items():
            finding = self.result.findings.anomalies.get(anomaly)
            yield Check(
                name=f"never {anomaly.value}",
                meaning=f"{occurrence(anomaly, 0)}, allowed or not",
                outcome={True: Outcome.FAILED, False: Outcome.PASSED, None: Outcome.OPEN}[found],
                decides=True,
                told=f"whether {occurrence(anomaly, None)} is unknown"
                if found is None
                else occurrence(anomaly, finding.certain if finding is not None and found else 0),
                places=self._places(anomaly, allowed=None) if found else (),
            )

    def _places(self, anomaly: Anomaly, *, allowed: bool | None) -> tuple[Place, ...]:
        """Return the first messages by line that have ``anomaly``, only the ``allowed`` or forbidden if asked."""
        mask = pc.equal(self.rows["anomaly"], anomaly.value)
        if allowed is not None:
            mask = pc.and_kleene(mask, pc.equal(self.rows["allowed"], allowed))
        its = self.rows.filter(mask).select(["message", "transaction", "first_line"])
        contradicted = {each.message: each for each in self.result.findings.contradicted}
        first = its.sort_by("first_line").slice(0, _PLACES).to_pylist()
        return tuple(self._place_of(anomaly, row, contradicted) for row in first)

    def _place_of(self, anomaly: Anomaly, row: Mapping[str, Any], contradicted: Mapping[str, Any]) -> Place:
        impossible = contradicted.get(row["message"])
        told = occurrence_to(anomaly, row["transaction"] or row["message"])
        if impossible is not None and impossible.line is not None:
            return self._place(row["message"], impossible.line, f"{told} ({impossible})")
        return self._place(row["message"], row["first_line"], told)

    def _place(self, message: str, line: int | None, told: str) -> Place:
        if self.result.findings.imported and line is not None:
            return Place(message=message, line=None, told=f"{told.replace(f'line {line}', f'event {line}')} (imported)")
        return Place(message=message, line=line, told=told)
