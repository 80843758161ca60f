"""``small_bounds``: what happens where a window or a prefetch is full that few messages never fill as it is set."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ackfsm.checking.explore.questions.check import Answer, Finding, SearchFunction, check
from ackfsm.checking.explore.search.options import Reduction
from ackfsm.checking.network import Bounds, environments
from ackfsm.tables import BOUND_SETTINGS, IndexKind, Machine, RowKind, Specification
from ackfsm.terms import Configuration

_FILLED: Final = ("window", "prefetched", "threshold")
"""The bounds that messages fill; a limit of attempts is filled by faults."""


@dataclasses.dataclass(frozen=True, slots=True)
class SmallBound:
    """The findings of a search with a bound that its messages fill: evidence about the larger one, no verdict.

    Attributes:
        setting: what so few messages never fill: ``publish_window``, ``prefetch`` or ``confirm_threshold``.
        value: how much it is in the configuration as given.
        tried: the settings with which was searched instead: this one, and a threshold that must not be above a window.
        messages: with how many messages ``value`` would be as full as ``tried`` was here; that the same happens then
            is a conjecture.
        answer: the search, for what can depend on the bound and was not reached with ``value``.
    """

    setting: str
    value: int
    tried: Mapping[str, int]
    messages: int
    answer: Answer

    @property
    def reached(self) -> tuple[Finding, ...]:
        """What can happen with ``tried``."""
        return tuple(finding for finding in self.answer.findings.values() if finding.reachable)

    def as_json(self) -> dict[str, object]:
        """The search as the command contract has it (``docs/commands.md``)."""
        return {
            "setting": self.setting,
            "value": self.value,
            "tried": dict(self.tried),
            "complete": self.answer.exploration.complete,
            "states": self.answer.exploration.states,
            "conjectured_messages": self.messages,
            "anomalies": {
                name.value: {
                    "reachable": finding.reachable,
                    "promised_absent": finding.promise is not None,
                    "steps": [event.label for event in finding.steps],
                }
                for name, finding in self.answer.findings.items()
            },
        }


def small_bounds(  # noqa: PLR0913 - the options of a check
    specification: Specification,
    asked: Answer,
    *,
    max_states: int | None = None,
    max_memory: int | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
    search: SearchFunction | None = None,
    reductions: Sequence[Reduction] = (),
    although_incomplete: bool = False,
) -> tuple[SmallBound, ...]:
    """Search again with bounds that the messages of ``asked`` fill, for each that they never fill as it is set.

    The bounds are 1, 2 … up to one less than there are messages, each for what the ones before have left.  Looked for
    is only what ``asked`` did not meet and what the bound can make happen; so nothing is searched, and the result is
    empty, where all bounds are filled and where nothing depends on them.  Where ``asked`` was not complete it may have
    missed what happens with the bound as it is set, and the result is empty unless that does not matter.
    """
    if not (asked.exploration.complete or although_incomplete):
        return ()
    found: list[SmallBound] = []
    for name, value in _never_filled(specification, asked.configuration, asked.bounds):
        setting = BOUND_SETTINGS[name]
        left = [str(finding.anomaly) for finding in asked.findings.values() if not finding.reachable]
        for bound in range(1, asked.bounds.messages):
            tried = _with(asked.configuration, setting, bound)
            smaller = dataclasses.replace(asked.configuration, **tried)
            left = _may_happen(specification, asked, smaller, left)
            if not left:
                break
            answer = check(
                specification,
                smaller,
                asked.bounds,
                max_states=max_states,
                max_memory=max_memory,
                workers=workers,
                progress=progress,
                search=search,
                reductions=reductions,
                only=left,
            )
            places = _places(specification, name, asked.bounds)
            messages = asked.bounds.messages + (value - bound) * places
            found.append(SmallBound(setting, value, tried, messages, answer))
            left = [str(finding.anomaly) for finding in answer.findings.values() if finding.reachable is False]
    return tuple(found)


def _never_filled(
    specification: Specification, configuration: Configuration, bounds: Bounds
) -> Iterator[tuple[str, int]]:
    """The bounds, each with its value, that are set and that these messages never fill."""
    unlimited = specification.environment(configuration, copies=None)
    reached = environments(specification, configuration, bounds)[0]
    for name in _FILLED:
        if unlimited[name] is not None and reached[name] != unlimited[name]:
            yield name, unlimited[name]


def _with(configuration: Configuration, setting: str, bound: int) -> dict[str, Any]:
    """``setting`` at ``bound``; a threshold within the window stays within it, since above it nothing ever answers."""
    tried, window = {setting: bound}, configuration.publish_window
    threshold = configuration.confirm_threshold
    if setting == BOUND_SETTINGS["window"] and threshold is not None and window is not None and threshold <= window:
        tried[BOUND_SETTINGS["threshold"]] = min(threshold, bound)
    return tried


def _places(specification: Specification, name: str, bounds: Bounds) -> int:
    """How many counters with this bound are to be filled: one, or one for each consumer."""
    counters = [m for m in specification.machines.values() if m.counter is not None and m.counter.bound == name]
    return bounds.consumers if any(machine.per is IndexKind.CONSUMER for machine in counters) else 1


def _may_happen(
    specification: Specification, asked: Answer, smaller: Configuration, anomalies: Sequence[str]
) -> list[str]:
    """Return the ``anomalies`` that the bounds of ``smaller`` can bring about.

    A counter that does nothing but refuse at its bound takes runs away.  What is left is marked at rest alone, where
    it would have gone on, or by what counts to the same bound.  Where the bound does more, everything may happen.
    """
    before, after = (
        environments(specification, configuration, asked.bounds) for configuration in (asked.configuration, smaller)
    )
    changed = [machine for machine in specification.machines.values() if _differs(machine, before, after)]
    if not all(_only_refuses(machine, after) for machine in changed):
        return list(anomalies)
    monitors = [(str(prop.anomaly), one) for prop in specification.properties.values() for one in prop.monitors]
    sensitive = {name for name, one in monitors if one.marked_at_rest or _differs(one.machine, before, after)}
    return [anomaly for anomaly in anomalies if anomaly in sensitive]


_Environments: TypeAlias = Sequence[Mapping[str, object]]


def _differs(machine: Machine, before: _Environments, after: _Environments) -> bool:
    return any(machine.fsm(one) is not machine.fsm(other) for one, other in zip(before, after, strict=True))


def _only_refuses(machine: Machine, after: _Environments) -> bool:
    """Whether all that the bound of ``machine`` does is that the counter refuses to go on, or stays where it is."""
    return machine.counter is not None and not any(
        heading in {"full", "some"} and next(row for row in rows if row.when.holds(one)).kind is RowKind.TO
        for (heading, _), rows in machine.cells.items()
        for one in after
    )
