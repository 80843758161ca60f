"""The front: configurations that no other one beats in needs, rate and time together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

from ackfsm.checking.network import Bounds
from ackfsm.surveys.advice._answers import Answer, AnswerCache, Question, Searches
from ackfsm.surveys.advice._candidates import Candidate, all_candidates
from ackfsm.surveys.advice._needs import Need
from ackfsm.surveys.advice._request import Request
from ackfsm.tables import Specification
from ackfsm.tables.batch import ProgressBar, batch


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    """A candidate of the front, with the needs that were proved of it."""

    candidate: Candidate
    gives: frozenset[Need]


@dataclasses.dataclass(frozen=True, slots=True)
class Front:
    """The answer.

    Attributes:
        request: what was asked; its ``needs`` are those that are compared.
        candidates: how many legal configurations there are.
        points: the front, the fastest first.
        undecided: of how many searches, of one candidate and one need, a bound was met; none of these counts as given.
    """

    request: Request
    candidates: int
    points: tuple[Point, ...]
    undecided: int


def front(  # noqa: PLR0913 - where and how to do it
    specification: Specification,
    request: Request,
    *,
    cache: AnswerCache,
    jobs: int = 1,
    directory: Path | None = None,
    progress_bar: ProgressBar | None = None,
) -> Front:
    """Return the configurations that no other one beats in needs, rate and time together.

    Raises as :func:`ackfsm.surveys.advice.advise`.
    """
    with batch(specification, jobs, directory=directory, progress_bar=progress_bar) as work:
        every = all_candidates(specification, request, directory)
        return _Front(specification, request, Searches(work, cache)).of(every)


class _Front:
    def __init__(self, specification: Specification, request: Request, searches: Searches) -> None:
        self._specification = specification
        self._request = request
        self._searches = searches
        self._undecided = 0

    def of(self, every: Sequence[Candidate]) -> Front:
        """From the fastest to the slowest: what comes later is on the front if it gives more, or is sooner."""
        possible = self._possible(every)
        points: list[Point] = []
        for candidate in sorted(every, key=lambda each: (*_slowness(each), -len(possible[each]), len(each.changes))):
            if not _is_covered(points, candidate, possible[candidate]):
                given = self._proved(candidate, possible[candidate])
                if not _is_covered(points, candidate, given):
                    points.append(Point(candidate, given))
        return Front(self._request, len(every), tuple(points), self._undecided)

    def _possible(self, every: Sequence[Candidate]) -> dict[Candidate, frozenset[Need]]:
        """The needs of each that the first search, of all of them, does not refute."""
        first, watched = self._request.levels()[0], _watched(self._request.needs)
        found = self._searches.answers([self._question(each, first, watched) for each in every])
        return {each: _not_refuted(self._applicable(each), answer) for each, answer in zip(every, found, strict=True)}

    def _applicable(self, candidate: Candidate) -> tuple[Need, ...]:
        needs, configuration = self._request.needs, candidate.configuration
        return tuple(need for need in needs if need.applies_to(configuration, self._specification))

    def _proved(self, candidate: Candidate, possible: frozenset[Need]) -> frozenset[Need]:
        """Return the ``possible`` needs that are proved: all at once, or each by a search of its own."""
        left = possible
        for bounds in self._request.levels()[1:]:
            (together,) = self._searches.answers([self._question(candidate, bounds, _watched(left))])
            left = _not_refuted(left, together)
            if bounds == self._request.levels()[-1] and not together.complete:
                return self._proved_apart(candidate, left)
        return left

    def _proved_apart(self, candidate: Candidate, possible: frozenset[Need]) -> frozenset[Need]:
        needs, last = sorted(possible), self._request.levels()[-1]
        found = self._searches.answers([self._question(candidate, last, need.excluded_by) for need in needs])
        self._undecided += sum(not answer.complete and not answer.witnesses for answer in found)
        pairs = zip(needs, found, strict=True)
        return frozenset(need for need, answer in pairs if answer.complete and not answer.witnesses)

    def _question(self, candidate: Candidate, bounds: Bounds, watched: frozenset[str]) -> Question:
        return Question(candidate.configuration, bounds, watched, self._request.max_states)


def _slowness(candidate: Candidate) -> tuple[bool, Fraction, Fraction]:
    rate = candidate.rate.low
    return rate is not None, -(rate or Fraction(0)), candidate.seconds


def _watched(needs: Iterable[Need]) -> frozenset[str]:
    return frozenset[str]().union(*(need.excluded_by for need in needs))


def _not_refuted(needs: Iterable[Need], answer: Answer) -> frozenset[Need]:
    return frozenset(need for need in needs if not need.excluded_by & answer.witnesses.keys())


def _is_covered(points: Sequence[Point], candidate: Candidate, gives: frozenset[Need]) -> bool:
    """Whether one of ``points``, which are no slower, gives as much and is as soon."""
    return any(gives <= point.gives and point.candidate.seconds <= candidate.seconds for point in points)
