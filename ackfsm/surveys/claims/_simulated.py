"""What simulations of the tables add to the arithmetic of a rate."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from ackfsm.surveys.claims._evidence import Evidence
from ackfsm.surveys.claims._questions import Answer, Question, Simulation, SimulationResult

_TOLERANCE: Final = 0.001
"""A simulated rate that differs by more is another rate."""

_WITHOUT_NUMPY: Final = "by arithmetic alone: to simulate it too, pip install 'ackfsm[explore]'"


@dataclasses.dataclass(frozen=True, slots=True)
class _Case:
    """One simulation: the size, the rate that it should have, the rate that it has."""

    size: int
    expected: Fraction
    question: Simulation
    simulated: float

    @property
    def agrees(self) -> bool:
        return abs(self.simulated / float(self.expected) - 1) <= _TOLERANCE

    @property
    def profile(self) -> str:
        return self.question.configuration.profile

    def as_json(self) -> dict[str, Any]:
        return {
            "size": self.size,
            "configuration": self.question.configuration.as_dict(),
            "messages": self.question.messages,
            "computed": float(self.expected),
            "simulated": self.simulated,
        }


def with_simulations(
    computed: Evidence, asked: Iterable[tuple[int, Fraction, Simulation]], answers: Mapping[Question, Answer]
) -> Evidence:
    """The evidence of the arithmetic together with that of simulations, each with its size and the rate computed.

    Where nothing could be simulated for want of NumPy it is that of the arithmetic, and says so.
    """
    cases = []
    for size, rate, question in asked:
        answer = answers[question]
        if not isinstance(answer, SimulationResult):
            return dataclasses.replace(computed, holds=None, sentence=str(answer))
        if answer.publish is None:
            return _not_simulated(computed)
        cases.append(_Case(size, rate, question, answer.publish))
    wrong = [case for case in cases if not case.agrees]
    data = {**computed.data, "tolerance": _TOLERANCE, "simulated": [case.as_json() for case in cases]}
    sentence = f"{computed.sentence}; simulated {_told(wrong or cases)}"
    return Evidence(computed.check, bool(computed.holds) and not wrong, sentence, data)


def _not_simulated(computed: Evidence) -> Evidence:
    data = {**computed.data, "simulated": None}
    return dataclasses.replace(computed, sentence=f"{computed.sentence}, {_WITHOUT_NUMPY}", data=data)


def _told(cases: Sequence[_Case]) -> str:
    """Return the rates of all sizes and profiles in words, equal ones together."""
    several = len({case.size for case in cases}) > 1
    found: dict[str, dict[str, None]] = {}
    for case in cases:
        rate = f"{case.simulated:,.1f}" + (f" with {case.size}" if several else "")
        found.setdefault(rate, {})[case.profile] = None
    profiles = dict.fromkeys(profile for each in found.values() for profile in each)
    if len(profiles) == 1:
        return f"{', '.join(found)} ({', '.join(profiles)})"
    return ", ".join(f"{rate} ({', '.join(each)})" for rate, each in found.items())
