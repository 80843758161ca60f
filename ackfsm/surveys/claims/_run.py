"""Decide claims: answer every question once, in several processes, and judge the answers."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ackfsm.surveys.claims._evidence import Evidence, Status, conclude
from ackfsm.surveys.claims._questions import Answer, AnyNumber, Question, answer
from ackfsm.surveys.claims._read import Check, Claim, Contradiction
from ackfsm.tables import Specification
from ackfsm.tables.batch import ProgressBar, batch
from ackfsm.terms import InputError

MAX_STATES = 12_000_000
"""Where a search gives up, so that a claim is unknown instead of the process out of memory."""


@dataclasses.dataclass(frozen=True, slots=True)
class ContradictionResult:
    """The status of a contradicting source's statement."""

    says: str
    source: str
    status: Status
    evidence: tuple[Evidence, ...]

    def as_json(self) -> dict[str, Any]:
        """As it stands in the evidence of its claim."""
        checks = [one.as_json() for one in self.evidence]
        return {"says": self.says, "source": self.source, "status": self.status.value, "checks": checks}


@dataclasses.dataclass(frozen=True, slots=True)
class ClaimResult:
    """A claim with its status and the evidence."""

    claim: Claim
    status: Status
    evidence: tuple[Evidence, ...]
    contradictions: tuple[ContradictionResult, ...]

    @property
    def sentence(self) -> str:
        """The evidence in words: what refutes the claim, what leaves it undecided, or everything that proves it."""
        holds = {Status.REFUTED: False, Status.UNKNOWN: None}
        some = [one for one in self.evidence if self.status is Status.PROVED or one.holds is holds[self.status]]
        return "; ".join(one.sentence for one in some)

    @property
    def shown_for(self) -> list[int | str]:
        """The numbers of messages that its checks are shown for, ``any`` alone if all of them are for any number."""
        few = sorted({one.few_messages for one in self.evidence if one.few_messages is not None})
        return [*few] or ["any"]

    def as_json(self) -> dict[str, Any]:
        """The claim as the command contract has it (``docs/commands.md``)."""
        evidence: dict[str, Any] = {
            "sentence": self.sentence,
            "checks": [one.as_json() for one in self.evidence],
        }
        if self.contradictions:
            evidence["contradiction"] = [one.as_json() for one in self.contradictions]
        if self.status is Status.PROVED:
            evidence["shown_for"] = self.shown_for
        return {
            "id": self.claim.id,
            "seed": self.claim.seed,
            "statement": self.claim.statement,
            "status": self.status.value,
            "evidence": evidence,
        }


def decide(  # noqa: PLR0913 - all but the first two have defaults that fit
    specification: Specification,
    claims: Sequence[Claim],
    *,
    directory: Path | None = None,
    jobs: int = 1,
    max_states: int = MAX_STATES,
    progress_bar: ProgressBar | None = None,
    any_number: bool = False,
    certificates: Path | None = None,
) -> list[ClaimResult]:
    """Decide each of ``claims`` on ``specification``, in ``jobs`` processes (1: this one).

    ``directory`` is where the tables were loaded from, so that other processes load the same (those that ship with
    the package if ``None``).  With ``any_number`` a claim is proved only if it is for any number of messages and of
    faults: what a check shows for its own numbers is open otherwise; each of these proofs is written into the folder
    ``certificates``, if that is given.

    Raises :class:`ackfsm.terms.HostError` if a process is killed, :class:`ackfsm.terms.SpecError` if the tables
    there are not ``specification``, and as :func:`ackfsm.checking.certificates.write_certificate`.
    """
    asked = (each for claim in claims for each in _questions(specification, claim, any_number=any_number))
    questions = list(dict.fromkeys(asked))
    places = {} if certificates is None else _places(specification, claims, certificates)
    work_of_each = [[(question, places.get(question))] for question in questions]
    jobs = min(jobs, len(questions))
    with batch(specification, jobs, directory=directory, progress_bar=progress_bar) as work:
        found = work.run("questions", functools.partial(answer, max_states=max_states), work_of_each)
    answers = dict(zip(questions, found, strict=True))
    return [_result(specification, claim, answers, any_number=any_number) for claim in claims]


def _questions(specification: Specification, claim: Claim, *, any_number: bool) -> Iterator[Question]:
    for check in claim.all_checks():
        try:
            yield from check.questions(specification)
            if any_number or check.any_number:
                yield from check.any_number_questions(specification)
        except InputError:
            continue  # _evidence meets the same error and reports it


def _places(specification: Specification, claims: Sequence[Claim], folder: Path) -> Mapping[Question, Path]:
    """Where the certificate of each proof is written: by the first claim that asks for it, and a number."""
    places: dict[Question, Path] = {}
    for claim in claims:
        asked = dict.fromkeys(_questions(specification, claim, any_number=True))
        proofs = [question for question in asked if isinstance(question, AnyNumber) and question not in places]
        places |= {proof: folder / f"{claim.id}-{number}.certificate" for number, proof in enumerate(proofs, start=1)}
    return places


def _result(
    specification: Specification, claim: Claim, answers: Mapping[Question, Answer], *, any_number: bool
) -> ClaimResult:
    judge = functools.partial(_evidence, specification, answers=answers, any_number=any_number)
    evidence = judge(claim.checks)
    contradictions = tuple(_contradicted(one, judge(one.checks)) for one in claim.contradictions)
    return ClaimResult(claim, conclude(evidence), evidence, contradictions)


def _contradicted(contradiction: Contradiction, evidence: tuple[Evidence, ...]) -> ContradictionResult:
    return ContradictionResult(contradiction.says, contradiction.source, conclude(evidence), evidence)


def _evidence(
    specification: Specification, checks: Iterable[Check], answers: Mapping[Question, Answer], *, any_number: bool
) -> tuple[Evidence, ...]:
    return tuple(_one(specification, check, answers, any_number=any_number) for check in checks)


def _one(
    specification: Specification, check: Check, answers: Mapping[Question, Answer], *, any_number: bool
) -> Evidence:
    try:
        evidence = check.evidence(specification, answers)
        if any_number or check.any_number:
            evidence = check.for_any_number(specification, evidence, answers)
        return dataclasses.replace(evidence, few_messages=check.few_messages(evidence))
    except InputError as error:
        return Evidence(check.kind, None, str(error))
