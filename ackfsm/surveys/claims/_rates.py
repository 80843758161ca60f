"""Checks of throughput: exact arithmetic, held to a simulation of the tables."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from ackfsm.rates import timing
from ackfsm.support import throughput
from ackfsm.surveys.claims._any_number import StandsAsItIs
from ackfsm.surveys.claims._evidence import Evidence
from ackfsm.surveys.claims._questions import Answer, Question, Simulation
from ackfsm.surveys.claims._scope import configurations
from ackfsm.surveys.claims._simulated import with_simulations
from ackfsm.tables import Specification
from ackfsm.terms import InputError

_CYCLES: Final = 4
_FEWEST: Final = 1000
"""So many messages are simulated at least, and so many windows or transactions: rates are told of the second half."""


@dataclasses.dataclass(frozen=True, slots=True)
class Rate(StandsAsItIs):
    """How many messages a second a way of sending allows, by arithmetic and by the tables put to a clock.

    ``send`` is ``blocking`` (each send waits a round trip), ``unblocked`` (none waits), ``window`` (so many
    unanswered), ``transaction`` (so many to a commit, which waits) or ``closed_form`` (what ``ackfsm plan`` knows of
    the configuration); ``sizes`` are the windows or batches.  ``at_most`` is the bound, in whole messages; ``grows``
    says that the rate grows with the size.

    ``groups`` are the configurations that the way of sending stands for, each of which is simulated; ``size_is`` is the
    setting, or the number of the workload, that the sizes are of.
    """

    send: str
    rtt: str | None
    bandwidth: str | None
    size: int
    timer: str
    sizes: tuple[int, ...]
    at_most: int | None
    grows: bool
    groups: tuple[Mapping[str, Any], ...]
    size_is: str | None

    kind = "rate"

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Rate:
        """From its form in ``spec/claims.yaml``."""
        rate = data["rate"]
        groups = rate.get("in", [])
        return cls(
            rate["send"],
            rate.get("rtt"),
            rate.get("bandwidth"),
            rate.get("size", 1),
            rate.get("timer", "1 s"),
            tuple(rate.get("sizes", (1,))),
            rate.get("at_most"),
            rate.get("grows", False),
            tuple(groups if isinstance(groups, list) else [groups]),
            rate.get("size_is"),
        )

    def questions(self, specification: Specification) -> list[Question]:
        """A simulation of each configuration with each size."""
        return [each for size in self.sizes for each in self._simulations(specification, size)]

    def evidence(self, specification: Specification, answers: Mapping[Question, Answer]) -> Evidence:
        """The arithmetic, and what differs from it."""
        rates = [self._rate(specification, size) for size in self.sizes]
        asked = [
            (size, rate, question)
            for size, rate in zip(self.sizes, rates, strict=True)
            for question in self._simulations(specification, size)
        ]
        data = {
            "send": self.send,
            **{key: getattr(self, key) for key in self._read() if getattr(self, key) is not None},
            "rates": {str(size): str(rate) for size, rate in zip(self.sizes, rates, strict=True)},
            **({"at_most": self.at_most} if self.at_most is not None else {}),
        }
        text = f"{self._formula()} gives {self._listed([f'{math.floor(rate):,}' for rate in rates])} messages a second"
        computed = Evidence(self.kind, self._computed(rates), text, data)
        return with_simulations(computed, asked, answers) if asked else computed

    def _computed(self, rates: Sequence[Fraction]) -> bool:
        """Return whether the arithmetic agrees with the sentence."""
        holds = self.at_most is None or all(math.floor(rate) == self.at_most for rate in rates)
        if self.grows:
            holds = holds and all(one < other for one, other in itertools.pairwise(rates)) and len(rates) > 1
        return holds

    def _listed(self, rates: Sequence[str]) -> str:
        several = len(self.sizes) > 1
        return ", ".join(
            rate + (f" with {size}" if several else "") for size, rate in zip(self.sizes, rates, strict=True)
        )

    # the simulation

    def _simulations(self, specification: Specification, size: int) -> list[Simulation]:
        if not self.groups:
            return []
        messages = max(_FEWEST, _CYCLES * size)
        found = configurations(specification, self._groups(size))
        return [Simulation(configuration, self._work(size), messages) for configuration in found]

    def _groups(self, size: int) -> list[Mapping[str, Any]]:
        if self.size_is is None or self.size_is in _OF_THE_WORKLOAD:
            return [*self.groups]
        return [{**group, self.size_is: size} for group in self.groups]

    def _work(self, size: int) -> timing.Workload:
        bandwidth = self.bandwidth or (None if self.send in {"blocking", "closed_form"} else _USUAL)
        work = timing.Workload(
            rtt=Fraction(0) if self.rtt is None else throughput.parse_duration(self.rtt),
            bandwidth=None if bandwidth is None else throughput.parse_bandwidth(bandwidth),
            message_size=self.size,
            timer=throughput.parse_duration(self.timer),
        )
        changed: dict[str, Any] = {self.size_is: size} if self.size_is in _OF_THE_WORKLOAD else {}
        return dataclasses.replace(work, **changed)

    # the arithmetic

    def _read(self) -> tuple[str, ...]:
        return {
            "blocking": ("rtt",),
            "unblocked": ("rtt", "bandwidth", "size"),
            "closed_form": ("rtt", "bandwidth", "size", "timer"),
        }.get(self.send, ("rtt", "bandwidth", "size"))

    def _rate(self, specification: Specification, size: int) -> Fraction:
        rtt = throughput.parse_duration(self.rtt or _A_SECOND)
        bandwidth = throughput.parse_bandwidth(self.bandwidth or _USUAL)
        match self.send:
            case "blocking":
                return throughput.blocking_rate(rtt)
            case "unblocked":
                return throughput.bandwidth_bound(bandwidth, self.size)
            case "window":
                return throughput.window_rate(size, rtt, bandwidth, self.size)
            case "closed_form":
                return self._closed_form(specification, size)
            case _:
                return throughput.transaction_rate(size, rtt, bandwidth, self.size)

    def _closed_form(self, specification: Specification, size: int) -> Fraction:
        """Raises :class:`InputError` where the configurations differ, or only bounds are known."""
        found = {
            timing.plan(self._work(size), timing.waits_of(specification, configuration)).publish.rate
            for configuration in configurations(specification, self._groups(size))
        }
        exact = {rate.high for rate in found if rate.is_exact and rate.high is not None}
        if len(exact) != 1 or len(found) != 1:
            raise InputError("the closed form has no one rate for all configurations of this check")
        return exact.pop()

    def _formula(self) -> str:
        carried = f"{self.bandwidth or _USUAL} / (8 * {self.size} bytes)"
        match self.send:
            case "blocking":
                return f"1 / {self.rtt}"
            case "unblocked":
                return carried
            case "window":
                return f"the window / ({self.rtt} + 1 / ({carried})), at most {carried},"
            case "closed_form":
                return f"the closed form with a round trip of {self.rtt} and a timer of {self.timer}"
            case _:
                return f"the batch / (the batch / ({carried}) + {self.rtt})"


_A_SECOND: Final = "1 s"
_USUAL: Final = "1 Gib/s"
_OF_THE_WORKLOAD: Final = frozenset(field.name for field in dataclasses.fields(timing.Workload))
