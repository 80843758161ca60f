"""Read ``spec/claims.yaml``, each sentence with the checks that decide it, and ``spec/seeds.yaml``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from ackfsm.support import throughput
from ackfsm.surveys.claims._equivalence import Equal, SameEffect
from ackfsm.surveys.claims._evidence import Evidence
from ackfsm.surveys.claims._facts import HasConstant, HasDefault, RowIs, SettingSupported
from ackfsm.surveys.claims._questions import Answer, Question
from ackfsm.surveys.claims._rates import Rate
from ackfsm.surveys.claims._reachability import Never, Possible
from ackfsm.tables import Seed, Specification, check_sources, read_form, read_seeds
from ackfsm.terms import InputError
from ackfsm.text import in_words, meant, quoted


class Check(Protocol):
    """Something that can be decided on the tables."""

    @property
    def kind(self) -> str:
        """The name of its form in ``spec/claims.yaml``."""

    def questions(self, specification: Specification) -> list[Question]:
        """Return its questions to the checker; raises :class:`InputError` if it cannot be asked."""

    def evidence(self, specification: Specification, answers: Mapping[Question, Answer]) -> Evidence:
        """Return the evidence of the answers; ``answers`` has one for each of its questions."""

    @property
    def any_number(self) -> bool:
        """Return whether it is to hold for any number of messages, also without a request for that."""

    def any_number_questions(self, specification: Specification) -> list[Question]:
        """Return its questions for any number of messages; raises as :meth:`questions`."""

    def for_any_number(
        self, specification: Specification, evidence: Evidence, answers: Mapping[Question, Answer]
    ) -> Evidence:
        """Return its evidence for any number of messages; ``answers`` as of :meth:`any_number_questions`."""

    def few_messages(self, evidence: Evidence) -> int | None:
        """For how many messages its ``evidence`` is, which holds; ``None`` if for any number."""


@dataclasses.dataclass(frozen=True, slots=True)
class Contradiction:
    """What another source says instead, and the checks that hold where it is right."""

    says: str
    source: str
    checks: tuple[Check, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of a seed document or of a specification; ``seed`` is the document's file, or a source with its tag.

    ``kind`` is ``always`` (impossible to violate), ``possible`` (a witness exists), ``equal``, ``default``,
    ``refused`` or ``rate``.  The sentence holds if all of ``checks`` hold.
    """

    id: str
    seed: str
    kind: str
    statement: str
    checks: tuple[Check, ...]
    contradictions: tuple[Contradiction, ...]

    def all_checks(self) -> Iterator[Check]:
        """Yield its own checks, and the checks of its contradictions."""
        yield from self.checks
        for contradiction in self.contradictions:
            yield from contradiction.checks


_KINDS: Mapping[str, Callable[[Mapping[str, Any]], Check]] = MappingProxyType(
    {
        "never": Never.read,
        "possible": Possible.read,
        "equal": Equal.read,
        "differ": Equal.read,
        "same_effect": SameEffect.read,
        "default": HasDefault.read,
        "refused": SettingSupported.read,
        "accepted": SettingSupported.read,
        "constant": HasConstant.read,
        "row": RowIs.read,
        "rate": Rate.read,
    }
)


def read(specification: Specification, directory: Path | None = None) -> tuple[Claim, ...]:
    """Return the claims of the package, or of ``directory``.

    Raises :class:`ackfsm.terms.SpecError` naming file, line and remedy.
    """
    document = read_form("claims.yaml", "claims", directory)
    check_sources([document], specification.sources)
    claims = tuple(_claim(data) for data in document.data)
    for i, claim in enumerate(claims):
        if claim.id in {other.id for other in claims[:i]}:
            raise document.error((i, "id"), f"there are two claims {claim.id}; renumber one of them")
    return claims


_ALIKE = 0.9
"""Of numbers one is as near as another, so only capitals are told."""


def choose(claims: tuple[Claim, ...], ids: list[str]) -> tuple[Claim, ...]:
    """The claims with these ids, all of them if there are none.

    Raises :class:`InputError` for an id that does not exist.
    """
    known = [claim.id for claim in claims]
    for name in ids:
        if name not in known:
            hint = meant(name, known, cutoff=_ALIKE)
            raise InputError(f"there is no claim {quoted(name)}{hint}; the claims are {in_words(_runs(known))}")
    return tuple(claim for claim in claims if not ids or claim.id in ids)


def _runs(ids: list[str]) -> list[str]:
    """``ids`` with each run of following numbers as one phrase; numbers may be left out."""
    runs: list[list[str]] = []
    for name in ids:
        if runs and int(name[1:]) == int(runs[-1][-1][1:]) + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    return [run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]


def _claim(data: dict[str, Any]) -> Claim:
    contradictions = tuple(_contradiction(one) for one in data.get("contradiction", ()))
    checks = tuple(_check(one) for one in data["checks"])
    return Claim(data["id"], data["seed"], data["kind"], data["statement"], checks, contradictions)


def _contradiction(data: dict[str, Any]) -> Contradiction:
    return Contradiction(data["says"], data["source"], tuple(_check(one) for one in data["checks"]))


def _check(data: Mapping[str, Any]) -> Check:
    return next(read_kind(data) for kind, read_kind in _KINDS.items() if kind in data)


def seeds(directory: Path | None = None) -> tuple[Seed, ...]:
    """Return the seed documents with the sentences of the package, or of ``directory``.

    What they name in the tables has been checked as these were loaded.
    Raises :class:`ackfsm.terms.SpecError` for a computation that :mod:`ackfsm.support.throughput` does not have.
    """
    document = read_form("seeds.yaml", "seeds", directory)
    for i, seed in enumerate(document.data):
        for j, sentence in enumerate(seed["sentences"]):
            for k, name in enumerate(sentence.get("computes", ())):
                if name not in throughput.__all__:
                    path = (i, "sentences", j, "computes", k)
                    raise document.error(path, f"there is no computation {name!r} in ackfsm.support.throughput")
    return read_seeds(document)
