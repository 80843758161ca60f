"""``check``: which anomalies a configuration can reach, and which of them it promised never to."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from ackfsm.explore._search import Exploration, explore
from ackfsm.network import Bounds, Network, NetworkEvent, compose
from ackfsm.tables import Promise, Specification
from ackfsm.terms import Anomaly, Configuration, Fault

__all__ = ["Answer", "Finding", "SearchFunction", "check"]


class SearchFunction(Protocol):
    """Searches a whole state space, as :func:`ackfsm.explore.explore` does in one process."""

    def __call__(
        self, network: Network, /, *, max_states: int | None, progress: Callable[[int], None] | None
    ) -> Exploration:
        """What is found in ``network``; the limit and the progress are those of :func:`ackfsm.explore.explore`."""


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """What is known of one anomaly.

    ``reachable`` is ``None`` where the search stopped before it could tell.  ``steps`` is a
    shortest witness, empty without one; ``promise`` is the sentence that promises it absent.
    """

    anomaly: Anomaly
    reachable: bool | None
    promise: Promise | None
    steps: tuple[NetworkEvent, ...]

    @property
    def violated(self) -> bool:
        """Promised absent, and yet there is a witness."""
        return self.reachable is True and self.promise is not None


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """What a check says of one configuration.

    ``guarantees`` says of each whether it stands, ``None`` where the search or the tables leave that
    open; ``strongest`` are those that stand and have none above them that stands.
    """

    configuration: Configuration
    bounds: Bounds
    exploration: Exploration
    seconds: float
    findings: Mapping[Anomaly, Finding]
    guarantees: Mapping[str, bool | None]
    strongest: tuple[str, ...]

    @property
    def violations(self) -> tuple[Finding, ...]:
        """The findings that break a promise."""
        return tuple(finding for finding in self.findings.values() if finding.violated)

    def as_json(self) -> dict[str, object]:
        """The answer as the command contract has it (``docs/commands.md``)."""
        return {
            "config": self.configuration.as_dict(),
            "messages": self.bounds.messages,
            "faults": [fault.value for fault in Fault if fault in self.bounds.faults],
            "max_faults": self.bounds.max_faults,
            **({"actions": sorted(self.bounds.actions)} if self.bounds.actions else {}),
            **({"without": sorted(self.bounds.without)} if self.bounds.without else {}),
            "complete": self.exploration.complete,
            "states": self.exploration.states,
            "transitions": self.exploration.transitions,
            "seconds": round(self.seconds, 3),
            "anomalies": {
                anomaly.value: {
                    "reachable": finding.reachable,
                    "promised_absent": finding.promise is not None,
                    "steps": [event.label for event in finding.steps],
                }
                for anomaly, finding in self.findings.items()
            },
            "guarantees": dict(self.guarantees),
            "strongest": list(self.strongest),
        }


def check(  # noqa: PLR0913 - what a check can be told
    specification: Specification,
    configuration: Configuration,
    bounds: Bounds,
    *,
    max_states: int | None = None,
    progress: Callable[[int], None] | None = None,
    search: SearchFunction = explore,
) -> Answer:
    """Explore everything that ``configuration`` can do within ``bounds``, by ``search``.

    Raises :class:`ackfsm.terms.InputError` for settings that the tables do not cover.
    """
    network = compose(specification, configuration, bounds)
    begun = time.perf_counter()
    exploration = search(network, max_states=max_states, progress=progress)
    seconds = time.perf_counter() - begun
    promises = specification.promised_absent(configuration)
    findings = {
        anomaly: Finding(
            anomaly,
            True if anomaly in exploration.witnesses else (False if exploration.complete else None),
            promises.get(anomaly),
            exploration.witnesses.get(anomaly, ()),
        )
        for anomaly in specification.properties
    }
    lattice = specification.guarantees
    standing = lattice.standing({anomaly: finding.reachable for anomaly, finding in findings.items()})
    return Answer(configuration, bounds, exploration, seconds, findings, standing, lattice.strongest(standing))
