"""Find the cheapest configurations that meet the needs, and the failures of cheaper ones.

Candidates are tried in the order of what they cost.  A search with one message and at most two faults refutes most of
those that will not do; what is left is proved with as many messages and faults as were asked for.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from ackfsm.checking.network import Bounds
from ackfsm.surveys.advice._answers import Answer, AnswerCache, Question, Searches
from ackfsm.surveys.advice._candidates import Candidate, all_candidates
from ackfsm.surveys.advice._needs import Need
from ackfsm.surveys.advice._request import Request
from ackfsm.tables import Specification
from ackfsm.tables.batch import ProgressBar, batch, chunks
from ackfsm.terms import DeliveryMode

_AT_ONCE: Final = 16
"""Candidates that are tried together, so that several processors have work."""

_NEAREST: Final = 3
"""Failures that are told."""

_LEAST_WORK_FIRST: Final = (
    DeliveryMode.DIRECT,
    DeliveryMode.RELIABLE,
    DeliveryMode.NON_PERSISTENT,
    DeliveryMode.PERSISTENT,
)
"""What the broker neither keeps nor answers, what it does not answer, what it does not store, and what it stores."""

RATE: Final = "rate"
"""What a candidate fails that is not fast enough."""


@dataclasses.dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate that gives all that is needed; the last search met so many ``states``, none of them an anomaly."""

    candidate: Candidate
    states: int


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """Why a candidate that would cost less is none.

    Attributes:
        candidate: the configuration and its cost.
        need: the need that it fails by ``anomaly``; ``None``: its rate is too low.
        anomaly: what can happen, an anomaly or the end of a message that is none.
        bounds: what was searched.
        witness: the labels of a run to it; empty where the rate is too low, or where the search decided nothing.
        states: how many states that search met; the search is undecided where there is no witness.
    """

    candidate: Candidate
    need: Need | None
    anomaly: str
    bounds: Bounds
    witness: tuple[str, ...]
    states: int


@dataclasses.dataclass(frozen=True, slots=True)
class GivenUp:
    """The fewest needs (or the rate) without which a configuration is left, which is then the ``proposal``."""

    needs: tuple[str, ...]
    proposal: Proposal


@dataclasses.dataclass(frozen=True, slots=True)
class Advice:
    """The answer.

    Attributes:
        request: what was asked.
        candidates: how many legal configurations there are.
        tried: of how many the needs were looked at; the others cost more than what is proposed.
        proposals: those that give what is needed, the cheapest first.
        failures: the nearest of those that do not: cheaper, and one need short.
        undecided: those of which a search met its bound.
        given_up: where there is no proposal and nothing is undecided, what would have to be given up.
    """

    request: Request
    candidates: int
    tried: int
    proposals: tuple[Proposal, ...]
    failures: tuple[Failure, ...]
    undecided: tuple[Failure, ...]
    given_up: tuple[GivenUp, ...]


def advise(  # noqa: PLR0913 - where and how to do it
    specification: Specification,
    request: Request,
    *,
    cache: AnswerCache,
    jobs: int = 1,
    directory: Path | None = None,
    progress_bar: ProgressBar | None = None,
) -> Advice:
    """Return the advice for ``request``; searches run in ``jobs`` processes (1: this one), unless in the ``cache``.

    Raises :class:`InputError` for settings or an interface that do not exist, and where no configuration is legal.
    """
    with batch(specification, jobs, directory=directory, progress_bar=progress_bar) as work:
        every = all_candidates(specification, request, directory)
        return _Advisor(specification, request, Searches(work, cache)).advice(every)


class _Advisor:
    def __init__(self, specification: Specification, request: Request, searches: Searches) -> None:
        self._specification = specification
        self._request = request
        self._searches = searches
        self._levels = request.levels()
        self._watched = frozenset[str]().union(*(need.excluded_by for need in request.needs))
        self._found: dict[Candidate, tuple[Failure, ...] | Proposal] = {}

    def advice(self, candidates: Sequence[Candidate]) -> Advice:
        every = sorted(candidates, key=self._cost)
        fast = self._fit(every)
        proposals = self._proposals(fast)
        failed = [(each, found) for each, found in self._found.items() if not isinstance(found, Proposal)]
        refuted = [only for _, found in failed if (only := _only_failure(found)) is not None]
        undecided = [failure for _, found in failed for failure in found if _is_undecided(failure)]
        given_up = () if proposals or undecided else tuple(self._given_up(every))
        return Advice(
            request=self._request,
            candidates=len(every),
            tried=len(self._found),
            proposals=tuple(proposals),
            failures=tuple(self._nearest(every, refuted)),
            undecided=tuple(undecided),
            given_up=given_up,
        )

    def _fit(self, every: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates that are fast enough and have the subjects of the needs, such as transactions."""
        return [each for each in every if each.gives(self._request.work.rate) and self._applies(each)]

    def _applies(self, candidate: Candidate) -> bool:
        return all(need.applies_to(candidate.configuration, self._specification) for need in self._request.needs)

    def _cost(self, candidate: Candidate) -> tuple[Any, ...]:
        """The time, then the rate, then how much is changed; the rate comes first where there is none to carry.

        Of two that cost the same the one comes first whose messages are the least work for the broker.
        """
        rate = candidate.rate.low
        slow = (rate is not None, -(rate or 0))
        asked = self._request.work.rate is not None
        waits = (candidate.seconds, *slow) if asked else (*slow, candidate.seconds)
        work = _LEAST_WORK_FIRST.index(candidate.configuration.delivery_mode)
        return (*waits, len(candidate.changes), work)

    def _proposals(self, fast: Sequence[Candidate]) -> list[Proposal]:
        """The first that give all that is needed; what changes more than one of them, and costs no less, is none."""
        found: list[Proposal] = []
        for group in chunks(fast, _AT_ONCE):
            some = [each for each in group if not any(_covers(one.candidate, each) for one in found)]
            self._try(some)
            for each in some:
                result = self._found[each]
                if isinstance(result, Proposal) and not any(_covers(one.candidate, each) for one in found):
                    found.append(result)
                if len(found) == self._request.most:
                    return found
        return found

    def _try(self, some: Sequence[Candidate]) -> None:
        """Decide each of ``some``, at one level after the other until it fails."""
        new = [each for each in some if each not in self._found]
        failures: dict[Candidate, list[Failure]] = {each: [] for each in new}
        states = dict.fromkeys(new, 0)
        for bounds in self._levels:
            left = [each for each in new if not failures[each]]
            found = self._searches.answers([self._question(each, bounds) for each in left])
            for each, answered in zip(left, found, strict=True):
                failures[each] += self._failures(each, bounds, answered)
                states[each] = answered.states
        for each in new:
            self._found[each] = tuple(failures[each]) or Proposal(each, states[each])

    def _question(self, candidate: Candidate, bounds: Bounds) -> Question:
        return Question(candidate.configuration, bounds, self._watched, self._request.max_states)

    def _failures(self, candidate: Candidate, bounds: Bounds, found: Answer) -> Iterator[Failure]:
        last = bounds == self._levels[-1]
        for need in self._request.needs:
            yield from self._of_need(candidate, bounds, need, found, last=last)

    @staticmethod
    def _of_need(candidate: Candidate, bounds: Bounds, need: Need, found: Answer, *, last: bool) -> Iterator[Failure]:
        """How ``candidate`` fails ``need``, by the shortest witness; undecided only where nothing else is to come."""
        reached = {name: found.witnesses[name] for name in sorted(need.excluded_by & found.witnesses.keys())}
        if reached:
            anomaly = min(reached, key=lambda name: len(reached[name]))
            yield Failure(candidate, need, anomaly, bounds, reached[anomaly], found.states)
        elif last and not found.complete:
            yield Failure(candidate, need, "", bounds, (), found.states)

    def _nearest(self, every: Sequence[Candidate], refuted: Sequence[Failure]) -> Iterator[Failure]:
        """Yield the cheapest failure of each need, and the fastest candidate that meets all but the rate."""
        by_need: dict[str, Failure] = {}
        for failure in sorted(refuted, key=lambda each: self._cost(each.candidate)):
            if failure.need is not None:
                by_need.setdefault(failure.need.name, failure)
        yield from itertools.islice(by_need.values(), _NEAREST)
        slow = [each for each in every if not each.gives(self._request.work.rate) and self._applies(each)]
        if slow:
            fastest = max(slow, key=lambda each: (each.rate.low or Fraction(0), -len(each.changes)))
            yield Failure(fastest, None, RATE, self._request.bounds, (), 0)

    def _given_up(self, every: Sequence[Candidate]) -> Iterator[GivenUp]:
        """The fewest needs without which something is left, each such choice with its cheapest configuration."""
        names = [need.name for need in self._request.needs]
        all_of = [*names, *([RATE] if self._request.work.rate is not None else [])]
        for count in range(1, len(all_of) + 1):
            found = [one for chosen in itertools.combinations(all_of, count) if (one := self._without(every, chosen))]
            if found:
                yield from sorted(found, key=lambda one: self._cost(one.proposal.candidate))
                return

    def _without(self, every: Sequence[Candidate], chosen: Sequence[str]) -> GivenUp | None:
        request = self._request
        needs = tuple(need for need in request.needs if need.name not in chosen)
        work = dataclasses.replace(request.work, rate=None) if RATE in chosen else request.work
        less = dataclasses.replace(request, needs=needs, work=work, most=1)
        advisor = _Advisor(self._specification, less, self._searches)
        fast = advisor._fit(every)
        if not needs:
            return GivenUp(tuple(chosen), Proposal(fast[0], 0)) if fast else None
        found = advisor._proposals(fast)
        return GivenUp(tuple(chosen), found[0]) if found else None


def _covers(one: Candidate, other: Candidate) -> bool:
    """Whether ``other`` changes all that ``one`` changes, and more."""
    same = one.configuration.profile == other.configuration.profile
    return same and one.changes.items() <= other.changes.items()


def _only_failure(failures: Sequence[Failure]) -> Failure | None:
    """The one need that a candidate fails, if that was shown by a witness."""
    return failures[0] if len(failures) == 1 and failures[0].witness else None


def _is_undecided(failure: Failure) -> bool:
    return failure.need is not None and not failure.witness
