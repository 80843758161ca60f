"""The cells of a matrix for any number of messages and of faults: each distinct system is decided once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ackfsm.checking.unbounded import network_keys
from ackfsm.surveys.matrix._plan import Plan, Scenario
from ackfsm.surveys.matrix._result import AnyNumber, Outcome, Repeated
from ackfsm.tables import Specification
from ackfsm.terms import Configuration

if TYPE_CHECKING:
    from ackfsm.checking.unbounded import Decision, Finding


def keys_for_any_number(
    plan: Plan, specification: Specification, configurations: Sequence[Configuration]
) -> list[tuple[str, ...]]:
    """For each configuration the key of what decides in it, in every scenario."""
    keys = [network_keys(specification, configurations, plan.bounds(scenario)) for scenario in plan.scenarios]
    return list(zip(*keys, strict=True))


def decided(plan: Plan, specification: Specification, cells: Sequence[tuple[Configuration, Scenario]]) -> list[Outcome]:
    """Return the decision on each cell, in this process alone."""
    from ackfsm.checking.unbounded import decide

    decisions = (
        decide(specification, configuration, plan.bounds(scenario), max_states=plan.max_states, workers=1)
        for configuration, scenario in cells
    )
    return [_outcome(decision) for decision in decisions]


def _outcome(decision: Decision) -> AnyNumber:
    every = {str(name): finding for found in (decision.findings, decision.ends) for name, finding in found.items()}
    return AnyNumber(
        states=decision.states,
        transitions=sum(answer.exploration.transitions for answer in decision.searches),
        complete=decision.complete,
        witnesses={name: _labels(finding) for name, finding in every.items() if finding.reachable},
        views=decision.views,
        messages={name: finding.messages for name, finding in every.items() if finding.reachable},
        repeated={name: one for name, finding in every.items() for one in _repeated(finding)},
        proved={name: finding.level for name, finding in every.items() if finding.level is not None},
        undecided={name: finding.undecided for name, finding in every.items() if finding.reachable is None},
        searched={name: _searched(decision, name) for name, one in every.items() if one.reachable is None},
    )


def _labels(finding: Finding) -> tuple[str, ...]:
    steps = finding.steps if finding.filled is None else finding.filled.few
    return tuple(event.label for event in steps)


def _repeated(finding: Finding) -> Iterator[Repeated]:
    if (run := finding.filled) is not None:
        yield Repeated(run.repeated, run.times, dict(run.tried))


def _searched(decision: Decision, name: str) -> int:
    """Return the most messages with a complete search of any number of faults."""
    whole = (
        answer.bounds.messages
        for answer in decision.searches
        if answer.configuration == decision.configuration
        and answer.exploration.complete
        and answer.bounds.max_faults is None
        and name in {str(one.anomaly) for one in (*answer.findings.values(), *answer.ends.values())}
    )
    return max(whole, default=0)
