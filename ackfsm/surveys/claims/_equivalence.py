"""Checks that compare behaviour: two configurations, or two events."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ackfsm.checking.explore import Comparison
from ackfsm.surveys.claims._any_number import NothingToAsk, left_open
from ackfsm.surveys.claims._evidence import Evidence
from ackfsm.surveys.claims._questions import (
    Answer,
    EffectEquivalence,
    Question,
    TraceEquivalence,
    observable,
)
from ackfsm.surveys.claims._scope import Scope, configurations, read_scope
from ackfsm.tables import Specification

__all__ = ["Equal", "SameEffect"]

DIFFER: Final = "differ"


class _Comparison(NothingToAsk):
    """A comparison of traces, which is made for few messages alone, since proofs are not of traces."""

    __slots__ = ()

    scope: Scope

    def for_any_number(
        self, specification: Specification, evidence: Evidence, answers: Mapping[Question, Answer]
    ) -> Evidence:
        """Open; that traces differ is shown by one of them."""
        del specification, answers
        if not evidence.holds or evidence.check == DIFFER:
            return evidence
        return left_open(evidence, "traces are compared for few messages only")

    def few_messages(self, evidence: Evidence) -> int | None:
        """Return the number of messages of the traces, unless one of them shows that they differ."""
        return None if evidence.check == DIFFER else self.scope.bounds.messages


@dataclasses.dataclass(frozen=True, slots=True)
class Equal(_Comparison):
    """``left`` and ``right`` (settings over each of the scope's) have the same traces; or they differ, everywhere.

    ``events`` are those that are seen, all that a history can show if there are none; faults always are.
    """

    left: Mapping[str, Any]
    right: Mapping[str, Any]
    events: tuple[str, ...]
    scope: Scope
    wanted: bool

    @property
    def kind(self) -> str:
        """``equal`` or ``differ``."""
        return "equal" if self.wanted else DIFFER

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Equal:
        """From its form in ``spec/claims.yaml``."""
        wanted = "equal" in data
        sides = data["equal" if wanted else "differ"]
        return cls(sides["left"], sides["right"], tuple(data.get("events", ())), read_scope(data), wanted)

    def questions(self, specification: Specification) -> list[Question]:
        """One comparison for each pair of configurations."""
        return [question for question, _ in self._pairs(specification)]

    def _pairs(self, specification: Specification) -> list[tuple[Question, dict[str, Any]]]:
        seen = _seen(specification, self.events)
        pairs: list[tuple[Question, dict[str, Any]]] = []
        for settings in configurations(specification, self.scope.groups).values():
            left = specification.configure(None, {**settings, **self.left})
            right = specification.configure(None, {**settings, **self.right})
            pairs.append((TraceEquivalence(left, right, self.scope.bounds, seen), settings))
        return pairs

    def evidence(self, specification: Specification, answers: Mapping[Question, Answer]) -> Evidence:
        """How much was compared, or the shortest trace that only one side has."""
        data = {"left": dict(self.left), "right": dict(self.right), **self.scope.describe()}
        pairs = [(answers[question], settings) for question, settings in self._pairs(specification)]
        return _judged(self.kind, pairs, data, wanted=self.wanted)


@dataclasses.dataclass(frozen=True, slots=True)
class SameEffect(_Comparison):
    """Wherever two events (labels) can both happen, what follows the one is what follows the other."""

    labels: tuple[str, str]
    events: tuple[str, ...]
    scope: Scope

    kind = "same_effect"

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> SameEffect:
        """From its form in ``spec/claims.yaml``."""
        first, second = data["same_effect"]
        return cls((first, second), tuple(data.get("events", ())), read_scope(data))

    def questions(self, specification: Specification) -> list[Question]:
        """One comparison for each configuration."""
        return [question for question, _ in self._cases(specification)]

    def _cases(self, specification: Specification) -> list[tuple[Question, dict[str, Any]]]:
        seen = _seen(specification, self.events)
        found = configurations(specification, self.scope.groups)
        return [
            (EffectEquivalence(config, self.scope.bounds, self.labels, seen), settings)
            for config, settings in found.items()
        ]

    def evidence(self, specification: Specification, answers: Mapping[Question, Answer]) -> Evidence:
        """How much was compared, or the shortest trace that follows only one of them."""
        data = {"same_effect": list(self.labels), **self.scope.describe()}
        cases = [(answers[question], settings) for question, settings in self._cases(specification)]
        return _judged(self.kind, cases, data, wanted=True)


def _seen(specification: Specification, events: Iterable[str]) -> frozenset[str]:
    return frozenset(events) or observable(specification)


def _judged(kind: str, pairs: list[tuple[Answer, dict[str, Any]]], data: dict[str, Any], *, wanted: bool) -> Evidence:
    compared = [(found, settings) for found, settings in pairs if isinstance(found, Comparison)]
    data |= {
        "comparisons": len(compared),
        "states": sum(sum(found.states) for found, _ in compared),
        "pairs": sum(found.pairs for found, _ in compared),
    }
    if (why := next((found for found, _ in pairs if isinstance(found, str)), None)) is not None:
        return Evidence(kind, None, why, data)
    extent = f"{data['states']:,} states were compared, in {data['pairs']:,} pairs of sets of states"
    different = [(found, settings) for found, settings in compared if found.equal is False]
    if different:
        found, settings = min(different, key=lambda one: len(one[0].trace))
        data |= {"configuration": settings, "trace": list(found.trace), "only": found.only}
    if any(found.equal is None for found, _ in compared) and not (wanted and different):
        return Evidence(kind, None, f"the comparison stopped at its limit; {extent}", data)
    if not data["pairs"] or any(found.pairs == 0 for found, _ in compared):
        return Evidence(kind, False, "there is nothing to compare: the two events are never both possible", data)  # noqa: FBT003
    if different:
        text = f"only {data['only']} can do {' → '.join(data['trace'])}"
        holds = not wanted and len(different) == len(compared)
        return Evidence(kind, holds, text if wanted or holds else f"{text}, but not in every configuration", data)
    return Evidence(kind, wanted, f"every trace of the one is a trace of the other; {extent}", data)
