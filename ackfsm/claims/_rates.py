"""Checks of throughput, in exact arithmetic."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from ackfsm import throughput
from ackfsm.claims._evidence import Evidence
from ackfsm.claims._questions import Answer, Question
from ackfsm.tables import Specification

__all__ = ["Rate"]


@dataclasses.dataclass(frozen=True, slots=True)
class Rate:
    """How many messages a second a way of sending allows.

    ``send`` is ``blocking`` (each send waits a round trip), ``unblocked`` (none waits), ``window`` (so many
    unanswered) or ``transaction`` (so many to a commit, which waits); ``sizes`` are the windows or batches.
    ``at_most`` is the bound, in whole messages; ``grows`` says that the rate grows with the size.
    """

    send: str
    rtt: str
    bandwidth: str
    size: int
    sizes: tuple[int, ...]
    at_most: int | None
    grows: bool

    kind = "rate"

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Rate:
        """From its form in ``spec/claims.yaml``."""
        rate = data["rate"]
        return cls(
            rate["send"],
            rate.get("rtt", "1 s"),
            rate.get("bandwidth", "1 Gib/s"),
            rate.get("size", 1),
            tuple(rate.get("sizes", (1,))),
            rate.get("at_most"),
            rate.get("grows", False),
        )

    def questions(self, specification: Specification) -> list[Question]:
        """None: time does not exist in the tables."""
        del specification
        return []

    def evidence(self, specification: Specification, answers: Mapping[Question, Answer]) -> Evidence:
        """The arithmetic."""
        del specification, answers
        rates = [self._rate(size) for size in self.sizes]
        data = {
            "send": self.send,
            **{key: getattr(self, key) for key in self._read()},
            "rates": {str(size): str(rate) for size, rate in zip(self.sizes, rates, strict=True)},
            **({"at_most": self.at_most} if self.at_most is not None else {}),
        }
        holds = self.at_most is None or all(math.floor(rate) == self.at_most for rate in rates)
        if self.grows:
            holds = holds and all(one < other for one, other in itertools.pairwise(rates)) and len(rates) > 1
        text = ", ".join(
            f"{math.floor(rate):,}" + (f" with {size}" if len(self.sizes) > 1 else "")
            for size, rate in zip(self.sizes, rates, strict=True)
        )
        return Evidence(self.kind, holds, f"{self._formula()} gives {text} messages a second", data)

    def _read(self) -> tuple[str, ...]:
        return {"blocking": ("rtt",), "unblocked": ("bandwidth", "size")}.get(self.send, ("rtt", "bandwidth", "size"))

    def _rate(self, size: int) -> Fraction:
        rtt, bandwidth = throughput.parse_duration(self.rtt), throughput.parse_bandwidth(self.bandwidth)
        match self.send:
            case "blocking":
                return throughput.blocking_rate(rtt)
            case "unblocked":
                return throughput.bandwidth_bound(bandwidth, self.size)
            case "window":
                return throughput.window_rate(size, rtt, bandwidth, self.size)
            case _:
                return throughput.transaction_rate(size, rtt, bandwidth, self.size)

    def _formula(self) -> str:
        carried = f"{self.bandwidth} / (8 * {self.size} bytes)"
        match self.send:
            case "blocking":
                return f"1 / {self.rtt}"
            case "unblocked":
                return carried
            case "window":
                return f"the window / {self.rtt}, at most {carried},"
            case _:
                return f"the batch / (the batch / ({carried}) + {self.rtt})"
