"""The result of a check of few messages, asked for any number of them and of faults (``spec/any.md``)."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ackfsm.surveys.claims._evidence import Evidence
from ackfsm.surveys.claims._questions import Answer, AnyNumber, AnyNumberResult, Question, Undecided
from ackfsm.surveys.claims._scope import Scope, configurations
from ackfsm.tables import Specification
from ackfsm.terms import Configuration


class NothingToAsk:
    """A check without a proof for any number of messages."""

    __slots__ = ()

    any_number: ClassVar[bool] = False

    def any_number_questions(self, specification: Specification) -> list[Question]:
        """None."""
        del specification
        return []


class StandsAsItIs(NothingToAsk):
    """A check that holds for every number of messages: a run shows that something is possible, a row is a row."""

    __slots__ = ()

    def for_any_number(
        self, specification: Specification, evidence: Evidence, answers: Mapping[Question, Answer]
    ) -> Evidence:
        """The evidence itself."""
        del specification, answers
        return evidence

    def few_messages(self, evidence: Evidence) -> int | None:
        """None: it stands for any number of them."""
        del evidence
        return None


def left_open(evidence: Evidence, why: str, also: str = "", **known: Any) -> Evidence:
    """Return ``evidence`` as of a check that holds for its own numbers and is not proved for any number.

    ``also`` is what else is to be said, a clause.
    """
    data = {**evidence.data, "any_number": {"proved": False, "configuration": {}, "undecided": why, **known}}
    sentence = f"{evidence.sentence}; not proved for any number of messages ({why}){also and f'; {also}'}"
    return Evidence(evidence.check, None, sentence, data)


@dataclasses.dataclass(frozen=True, slots=True)
class AnyNumberQuery:
    """One proof for each configuration of a scope: that none of ``names`` happens, with any number of messages.

    ``only_these_messages`` is why nothing is said of more messages than those of the scope; empty if it is.
    """

    scope: Scope
    names: tuple[str, ...]
    only_these_messages: str

    def questions(self, specification: Specification) -> list[Question]:
        """The proofs; none if there is nothing to prove, or no proof is of such systems."""
        if self._not_covered:
            return []
        return [self._proof(configuration) for configuration in configurations(specification, self.scope.groups)]

    def judged(self, specification: Specification, evidence: Evidence, answers: Mapping[Question, Answer]) -> Evidence:
        """The ``evidence`` of a check that holds for its own numbers; open if it is not proved for any number.

        It is refuted if more messages show what those of the check do not.
        """
        if self._not_covered:
            return left_open(evidence, self._not_covered)
        settings = configurations(specification, self.scope.groups)
        found = [(self._proof(configuration), its) for configuration, its in settings.items()]
        refuted = (_refuted(evidence, its, answers[proof]) for proof, its in found)
        left = (_left(evidence, its, answers[proof]) for proof, its in found)
        open_or_refuted = next(filter(None, itertools.chain(refuted, left)), None)
        return open_or_refuted or _proved(evidence, [answers[proof] for proof, _ in found])

    @property
    def _not_covered(self) -> str:
        """Why there is nothing to prove, or no proof is of such systems; empty if neither."""
        bounds = self.scope.bounds
        if bounds.consumers > 1 or bounds.subscriptions > 1:
            return "proofs are of one consumer and one subscription"
        return self.only_these_messages

    def _proof(self, configuration: Configuration) -> AnyNumber:
        bounds, names = self.scope.bounds, frozenset(self.names)
        return AnyNumber(configuration, bounds.faults, bounds.max_faults, bounds.actions, bounds.without, names)


def _refuted(evidence: Evidence, settings: Mapping[str, Any], answer: Answer) -> Evidence | None:
    """What more messages than those of the check show."""
    if not isinstance(answer, AnyNumberResult) or not answer.witnesses:
        return None
    name, (messages, steps) = min(answer.witnesses.items(), key=lambda way: len(way[1][1]))
    shown = {"proved": False, "configuration": dict(settings), "steps": list(steps)}
    sentence = f"with {messages} messages {name} can happen, by {' → '.join(steps)}"
    return Evidence(evidence.check, False, sentence, {**evidence.data, "any_number": shown})  # noqa: FBT003


def _left(evidence: Evidence, settings: Mapping[str, Any], answer: Answer) -> Evidence | None:
    """That something is not proved, and how far it was searched instead."""
    if not isinstance(answer, AnyNumberResult):
        return left_open(evidence, str(answer), configuration=dict(settings))
    if not answer.open:
        return None
    name, found = next(iter(answer.open.items()))
    extent = {name: value for name, value in dataclasses.asdict(found).items() if name != "why"}
    also = _searched(name, found)
    return left_open(evidence, f"{name}: {found.why}", also, configuration=dict(settings), searched=extent)


def _searched(name: str, found: Undecided) -> str:
    what = f"{found.messages} messages with at most {found.max_faults} faults"
    if found.complete:
        return f"{name} is in none of the {found.states:,} states of {what} either"
    return f"a search of {what} stopped at its limit after {found.states:,} states and has not met {name}"


def _proved(evidence: Evidence, proofs: Sequence[Answer]) -> Evidence:
    sentence = f"{evidence.sentence}; proved for any number of messages and faults"
    files = [each.certificate for each in proofs if isinstance(each, AnyNumberResult) and each.certificate]
    said = {"proved": True, **({"certificates": files} if files else {})}
    return dataclasses.replace(evidence, sentence=sentence, data={**evidence.data, "any_number": said})
