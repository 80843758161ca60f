"""Runs by hand, and what a search has reached, as tests of the tables ask for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ackfsm.checking import explore
from ackfsm.checking.explore import Answer, Interpreter, Refused
from ackfsm.checking.network import Bounds
from ackfsm.terms import Anomaly, Fault
from model_tests.support.tables import shipped


def asked(  # noqa: PLR0913 - what a check is bounded by
    settings: Mapping[str, object],
    faults: Collection[Fault],
    *,
    profile: str = "artemis",
    messages: int = 1,
    max_faults: int | None = None,
    consumers: int = 1,
    actions: Collection[str] = (),
) -> Answer:
    """What ``check`` says; a search that ends at a limit is no answer."""
    bounds = Bounds(
        messages=messages,
        faults=frozenset(faults),
        max_faults=max_faults,
        consumers=consumers,
        actions=frozenset(actions),
    )
    answer = explore.check(shipped(), shipped().configure(profile, dict(settings)), bounds, max_states=1_000_000)
    assert answer.exploration.complete
    return answer


def can(system: Interpreter, *steps: str) -> bool:
    """Whether ``system`` performs these steps; it stays where the first that is refused leaves it."""
    try:
        for step in steps:
            system.fire(step)
    except Refused:
        return False
    return True


def reached(answer: Answer) -> set[Anomaly]:
    """The anomalies that a search has reached."""
    return {anomaly for anomaly, finding in answer.findings.items() if finding.reachable}
