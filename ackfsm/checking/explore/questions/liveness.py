"""Liveness: required events that happen in the end, or a run in which one never does.

The run ends in a deadlock, quiescent while a machine waits, or in a lasso: the shortest run to a fair cycle, then the
cycle.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

from ackfsm.checking.explore.questions.liveness_graph import LivenessGraph, LivenessViolation, WaitingMachine
from ackfsm.checking.explore.search.search import Search
from ackfsm.checking.network import Bounds, Instance, Network, NetworkEvent
from ackfsm.tables import LivenessProperty, Waiting, base_state
from ackfsm.terms import Fault, InputError, check_names


class LivenessFailure(StrEnum):
    """How liveness fails: the system is quiescent while a machine waits, or waits through a fair cycle."""

    DEADLOCK = "halts"
    LASSO = "lasso"


@dataclasses.dataclass(frozen=True, slots=True)
class LivenessFinding:
    """The finding on one liveness property.

    ``holds`` is ``None`` where the search stopped before it could tell.  Where it is false, ``waiting`` is the machine
    that waits for ever, ``steps`` lead to the deadlock, or to the ``cycle``.  ``promised`` is true
    if the configuration promises the anomaly absent to which that machine belongs, and faults have stopped.
    """

    definition: LivenessProperty
    holds: bool | None
    kind: LivenessFailure | None = None
    steps: tuple[NetworkEvent, ...] = ()
    cycle: tuple[NetworkEvent, ...] = ()
    waiting: Instance | None = None
    promised: bool = False

    def as_json(self) -> dict[str, object]:
        """The finding as the command contract has it (``docs/commands.md``)."""
        return {
            "holds": self.holds,
            "kind": self.kind,
            "steps": [event.label for event in self.steps],
            "cycle": [event.label for event in self.cycle],
            "waiting": self.waiting.label if self.waiting else None,
        }


def check_forever(bounds: Bounds, forever: Collection[str]) -> None:
    """Raise :class:`InputError` for an event that cannot go on for ever within ``bounds``."""
    check_names("forever", forever)
    known = {*bounds.faults, *bounds.actions}
    for name in sorted(forever):
        if name not in known:
            among = ", ".join(sorted(known)) or "none"
            raise InputError(
                f"{name} cannot go on for ever, as it is no fault or action of this check; they are: {among}"
            )
        if name in set(Fault) and bounds.max_faults is not None:
            raise InputError(
                f"{name} cannot go on for ever where {bounds.max_faults} faults are the limit; give --max-faults any"
            )


def find_liveness(
    search: Search,
    network: Network,
    properties: Mapping[str, LivenessProperty],
    *,
    forever: Collection[str] = (),
    promised: Collection[str] = (),
) -> dict[str, LivenessFinding]:
    """Return the findings on ``properties`` from the states that ``search`` has found in ``network``.

    Events with a name in ``forever`` may happen again and again, though they need not; of all others that
    may never happen there is an end.  ``promised`` are the anomalies that are promised absent.
    """
    graph = LivenessGraph(search, network, forever)
    machines = [_machines(network, definition.waiting) for definition in properties.values()]
    runs = [
        deadlock or graph.find_lasso(those)
        for deadlock, those in zip(graph.find_deadlocks(machines), machines, strict=True)
    ]
    return {
        name: _finding(definition, run, promised if not forever else (), complete=search.complete)
        for (name, definition), run in zip(properties.items(), runs, strict=True)
    }


def _finding(
    definition: LivenessProperty, run: LivenessViolation | None, promised: Collection[str], *, complete: bool
) -> LivenessFinding:
    if run is None:
        return LivenessFinding(definition, holds=True if complete else None)
    return LivenessFinding(
        definition,
        holds=False,
        kind=LivenessFailure.LASSO if run.cycle else LivenessFailure.DEADLOCK,
        steps=run.steps,
        cycle=run.cycle,
        waiting=run.waiting,
        promised=run.waiting.anomaly in promised,
    )


def _machines(network: Network, waiting: Sequence[Waiting]) -> list[WaitingMachine]:
    """The instances in ``network`` that wait, each with the states in which it does."""
    return [
        (number, frozenset(state for state in instance.fsm.states if base_state(state) in machine.pending))
        for machine in waiting
        for number, instance in enumerate(network.instances)
        if (instance.anomaly, instance.fsm.name) == (machine.anomaly, machine.machine)
    ]
