"""Decide claims: ask every question once, in as many processes as there are processors, and judge the answers."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ackfsm.claims._evidence import Evidence, Status, conclude
from ackfsm.claims._questions import Answer, Question, answer
from ackfsm.claims._read import Check, Claim, Contradiction
from ackfsm.tables import Specification
from ackfsm.terms import InputError
from ackfsm.workers import workers

__all__ = ["MAX_STATES", "Contradicted", "Decided", "decide"]

MAX_STATES = 8_000_000
"""Where a search gives up, so that a claim ends as unknown and not for want of memory."""


@dataclasses.dataclass(frozen=True, slots=True)
class Contradicted:
    """What the tables say of a contradicting source."""

    says: str
    source: str
    status: Status
    evidence: tuple[Evidence, ...]

    def as_json(self) -> dict[str, Any]:
        """As it stands in the evidence of its claim."""
        checks = [one.as_json() for one in self.evidence]
        return {"says": self.says, "source": self.source, "status": self.status.value, "checks": checks}


@dataclasses.dataclass(frozen=True, slots=True)
class Decided:
    """A claim with its status and what shows it."""

    claim: Claim
    status: Status
    evidence: tuple[Evidence, ...]
    contradictions: tuple[Contradicted, ...]

    @property
    def sentence(self) -> str:
        """The evidence in words: of what refutes it, of what leaves it open, or of everything."""
        held = {Status.REFUTED: False, Status.UNKNOWN: None}
        told = [one for one in self.evidence if self.status is Status.PROVED or one.holds is held[self.status]]
        return "; ".join(one.sentence for one in told)

    def as_json(self) -> dict[str, Any]:
        """The claim as the command contract has it (``docs/commands.md``)."""
        evidence: dict[str, Any] = {
            "sentence": self.sentence,
            "checks": [one.as_json() for one in self.evidence],
        }
        if self.contradictions:
            evidence["contradiction"] = [one.as_json() for one in self.contradictions]
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
    progress: Callable[[int, int], None] | None = None,
) -> list[Decided]:
    """Decide each of ``claims`` on the tables in ``directory`` (those that ship with the package if ``None``).

    ``specification`` is what those tables say.  ``progress`` is called with the number of questions that
    are answered and the number of all.
    """
    questions = list(dict.fromkeys(question for claim in claims for question in _asked(specification, claim)))
    answers: dict[Question, Answer] = {}
    find = functools.partial(answer, directory=directory, max_states=max_states)
    jobs = min(jobs, len(questions))
    with contextlib.ExitStack() as stack:
        answering: Iterator[tuple[int, Answer]] = enumerate(map(find, questions))
        if jobs > 1:
            answering = stack.enter_context(workers(jobs)).map(find, questions)
        for place, found in answering:
            answers[questions[place]] = found
            if progress is not None:
                progress(len(answers), len(questions))
    return [_decided(specification, claim, answers) for claim in claims]


def _checks(claim: Claim) -> Iterator[Check]:
    yield from claim.checks
    for contradiction in claim.contradictions:
        yield from contradiction.checks


def _asked(specification: Specification, claim: Claim) -> Iterator[Question]:
    for check in _checks(claim):
        try:
            yield from check.questions(specification)
        except InputError:
            continue  # what cannot be asked is said by _evidence, which meets the same refusal


def _decided(specification: Specification, claim: Claim, answers: Mapping[Question, Answer]) -> Decided:
    evidence = _evidence(specification, claim.checks, answers)
    contradictions = tuple(_contradicted(specification, one, answers) for one in claim.contradictions)
    return Decided(claim, conclude(evidence), evidence, contradictions)


def _contradicted(
    specification: Specification, contradiction: Contradiction, answers: Mapping[Question, Answer]
) -> Contradicted:
    evidence = _evidence(specification, contradiction.checks, answers)
    return Contradicted(contradiction.says, contradiction.source, conclude(evidence), evidence)


def _evidence(
    specification: Specification, checks: Iterable[Check], answers: Mapping[Question, Answer]
) -> tuple[Evidence, ...]:
    return tuple(_one(specification, check, answers) for check in checks)


def _one(specification: Specification, check: Check, answers: Mapping[Question, Answer]) -> Evidence:
    try:
        return check.evidence(specification, answers)
    except InputError as error:
        return Evidence(check.kind, None, str(error))
