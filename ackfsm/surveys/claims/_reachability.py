"""Checks of reachability: events that never happen, and possible ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ackfsm.checking import explore
from ackfsm.surveys.claims._any_number import AnyNumberQuery, StandsAsItIs
from ackfsm.surveys.claims._evidence import Evidence
from ackfsm.surveys.claims._questions import Answer, Question, Search, SearchResult, network_of
from ackfsm.surveys.claims._scope import Scope, configurations, read_scope
from ackfsm.tables import Specification
from ackfsm.terms import Configuration
from ackfsm.text import in_words


@dataclasses.dataclass(frozen=True, slots=True)
class _Cases:
    """The configurations of a check with the answers to one question about each."""

    settings: Mapping[Configuration, Mapping[str, Any]]
    answers: Mapping[Configuration, Answer]

    @property
    def unanswered(self) -> str | None:
        """Why some question has no answer."""
        return next((found for found in self.answers.values() if isinstance(found, str)), None)

    def searched(self) -> dict[Configuration, SearchResult]:
        """The searches."""
        return {config: found for config, found in self.answers.items() if isinstance(found, SearchResult)}

    @property
    def complete(self) -> bool:
        """Whether every search came to its end."""
        return all(found.complete for found in self.searched().values())

    def extent(self) -> dict[str, Any]:
        """How much was searched."""
        found = self.searched().values()
        return {
            "configurations": len(self.settings),
            "states": sum(one.states for one in found),
            "transitions": sum(one.transitions for one in found),
            "complete": self.complete,
        }


@dataclasses.dataclass(frozen=True, slots=True)
class _ReachabilityQuery:
    """One search for each configuration of a scope."""

    scope: Scope
    watched: frozenset[str]

    def _search(self, configuration: Configuration) -> Search:
        return Search(configuration, self.scope.bounds, self.watched)

    def questions(self, specification: Specification) -> list[Question]:
        """The questions."""
        return [self._search(config) for config in configurations(specification, self.scope.groups)]

    def cases(self, specification: Specification, answers: Mapping[Question, Answer]) -> _Cases:
        """The answers to the questions."""
        settings = configurations(specification, self.scope.groups)
        return _Cases(settings, {config: answers[self._search(config)] for config in settings})

    def shortest(
        self, specification: Specification, cases: _Cases, names: Iterable[str]
    ) -> tuple[str, Configuration, tuple[str, ...]] | None:
        """A shortest run to one of ``names``: the name reached, the configuration and the steps.

        The other executor performs it, or raises :class:`ackfsm.checking.explore.NotReplayedError`.
        """
        reached = [
            (name, config, found.witnesses[name])
            for name in names
            for config, found in cases.searched().items()
            if name in found.witnesses
        ]
        if not reached:
            return None
        name, config, steps = min(reached, key=lambda way: len(way[2]))
        explore.replay(network_of(specification, self._search(config)), name, steps)
        return name, config, steps


def _extent(data: Mapping[str, Any]) -> str:
    several = "s" * (data["configurations"] > 1)
    return f"{data['states']:,} states of {data['configurations']} configuration{several}"


@dataclasses.dataclass(frozen=True, slots=True)
class Never:
    """None of ``names`` is reached in any configuration, although each of the events ``although`` happens in each.

    Without ``although`` a sentence could hold only because nothing of what it speaks of ever comes about.
    ``only_these_messages`` is why nothing is said of more messages than those of the scope; empty if it is.
    With ``any_number`` it is also to be proved for any number of messages and faults.
    """

    names: tuple[str, ...]
    although: tuple[str, ...]
    scope: Scope
    only_these_messages: str = ""
    any_number: bool = False

    kind = "never"

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Never:
        """From its form in ``spec/claims.yaml``."""
        names, although = _names(data["never"]), _names(data.get("although", ()))
        only_these = data.get("only_these_messages", "")
        return cls(names, although, read_scope(data), only_these, data.get("any_number", False))

    def questions(self, specification: Specification) -> list[Question]:
        """One search for each configuration, and one for the events of ``although``."""
        asked = self._query.questions(specification)
        return asked + (self._happenings.questions(specification) if self.although else [])

    def any_number_questions(self, specification: Specification) -> list[Question]:
        """One proof for each configuration."""
        return self._for_any_number.questions(specification)

    def for_any_number(
        self, specification: Specification, evidence: Evidence, answers: Mapping[Question, Answer]
    ) -> Evidence:
        """What never happens has to be proved."""
        return self._for_any_number.judged(specification, evidence, answers) if evidence.holds else evidence

    def few_messages(self, evidence: Evidence) -> int | None:
        """Return the number of messages of the searches, unless it was proved for any number."""
        return None if evidence.data.get("any_number", {}).get("proved") else self.scope.bounds.messages

    @property
    def _for_any_number(self) -> AnyNumberQuery:
        return AnyNumberQuery(self.scope, self.names, self.only_these_messages)

    @property
    def _query(self) -> _ReachabilityQuery:
        return _ReachabilityQuery(self.scope, frozenset(self.names))

    @property
    def _happenings(self) -> _ReachabilityQuery:
        return _ReachabilityQuery(self.scope, frozenset(map(_happens, self.although)))

    def evidence(self, specification: Specification, answers: Mapping[Question, Answer]) -> Evidence:
        """Not reached, or a shortest run there."""
        cases = self._query.cases(specification, answers)
        data = {"never": list(self.names), **self.scope.describe(), **cases.extent()}
        if reached := self._query.shortest(specification, cases, self.names):
            name, config, steps = reached
            data |= {"configuration": dict(cases.settings[config]), "steps": list(steps)}
            return Evidence(self.kind, False, f"{name} can happen, by {' → '.join(steps)}", data)  # noqa: FBT003
        if (why := cases.unanswered) is not None:
            return Evidence(self.kind, None, why, data)
        if not cases.complete:
            return Evidence(self.kind, None, f"the search stopped at its limit after {_extent(data)}", data)
        return self._not_vacuous(specification, answers, data)

    def _not_vacuous(
        self, specification: Specification, answers: Mapping[Question, Answer], data: dict[str, Any]
    ) -> Evidence:
        sentence = f"{in_words(self.names, 'or')} is in none of the {_extent(data)}, which are all"
        if not self.although:
            return Evidence(self.kind, True, sentence, data)  # noqa: FBT003
        cases = self._happenings.cases(specification, answers)
        happens = sorted(self._happenings.watched)
        data["although"] = list(self.although)
        if (why := cases.unanswered) is not None:
            return Evidence(self.kind, None, why, data)
        for config, found in cases.searched().items():
            if missing := [name for name in happens if name not in found.witnesses]:
                data["configuration"] = dict(cases.settings[config])
                hollow = f"{sentence}; but that says nothing, for {missing[0]} is in none of them either"
                return Evidence(self.kind, False if found.complete else None, hollow, data)
        text = f"{sentence}, although {in_words(self.although)} can happen"
        return Evidence(self.kind, True, text, data)  # noqa: FBT003


@dataclasses.dataclass(frozen=True, slots=True)
class Possible(StandsAsItIs):
    """Each of ``names`` is reached in every configuration.

    A shortest run there has the steps ``by`` in this order, if any are given; a step without
    an index stands for any index.
    """

    names: tuple[str, ...]
    by: tuple[str, ...]
    scope: Scope

    kind = "possible"

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Possible:
        """From its form in ``spec/claims.yaml``."""
        return cls(_names(data["possible"]), _names(data.get("by", ())), read_scope(data))

    def questions(self, specification: Specification) -> list[Question]:
        """One search for each configuration."""
        return self._query.questions(specification)

    @property
    def _query(self) -> _ReachabilityQuery:
        return _ReachabilityQuery(self.scope, frozenset(self.names))

    def evidence(self, specification: Specification, answers: Mapping[Question, Answer]) -> Evidence:
        """A shortest run, or the configuration that has none."""
        cases = self._query.cases(specification, answers)
        data = {"possible": list(self.names), **self.scope.describe(), **cases.extent()}
        if (why := cases.unanswered) is not None:
            return Evidence(self.kind, None, why, data)
        for config, found in cases.searched().items():
            if missing := [name for name in self.names if name not in found.witnesses]:
                data["configuration"] = dict(cases.settings[config])
                if not found.complete:
                    return Evidence(self.kind, None, f"{missing[0]} was not reached before the limit", data)
                return Evidence(self.kind, False, f"{missing[0]} is in none of all {found.states:,} states", data)  # noqa: FBT003
        return self._witnesses(specification, cases, data)

    def _witnesses(self, specification: Specification, cases: _Cases, data: dict[str, Any]) -> Evidence:
        ways = [self._query.shortest(specification, cases, (name,)) for name in self.names]
        data["witnesses"] = {
            name: {"configuration": dict(cases.settings[config]), "steps": list(steps)}
            for name, config, steps in filter(None, ways)
        }
        for name, _, steps in filter(None, ways):
            if self.by and not _goes_by(steps, self.by):
                sentence = f"{name} is possible, but its shortest way is not by {' → '.join(self.by)}"
                return Evidence(self.kind, False, sentence, data)  # noqa: FBT003
        text = "; ".join(f"{name} by {' → '.join(steps) or 'nothing at all'}" for name, _, steps in filter(None, ways))
        return Evidence(self.kind, True, text, data)  # noqa: FBT003


def _names(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _happens(name: str) -> str:
    return f"happens({name})"


def _goes_by(steps: Sequence[str], by: Sequence[str]) -> bool:
    """Whether ``by`` is part of ``steps``, in its order."""
    rest = iter(steps)
    return all(any(wanted in (step, step.partition("(")[0]) for step in rest) for wanted in by)
