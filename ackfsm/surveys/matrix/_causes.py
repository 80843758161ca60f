"""What each single fault causes in a mode: a search in which any of them may happen once answers for all of them.

A way on which one fault happens is a way of that search.  So its states are walked again for each fault, without the
events of the others.  That finds what a search with this fault alone finds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from ackfsm.checking.explore import SlicedNetwork, Slicer, StateGraph, bits
from ackfsm.checking.network import Bounds, compose, environments, observers_of
from ackfsm.surveys.matrix._result import Outcome
from ackfsm.surveys.matrix._run import only_the_budget_reads_faults
from ackfsm.tables import Fsm, Specification
from ackfsm.tables.batch import Batch, chunks
from ackfsm.terms import Configuration, Fault

Causes: TypeAlias = Mapping[Fault | None, Outcome]
"""The outcome for no fault (``None``) and for each kind of fault, which may happen once."""

_MODES_A_TASK = 16
"""Of those of one task that are the same system one is searched."""
_ANY_FAULT = Bounds(faults=frozenset(Fault), max_faults=1)
_NO_FAULT = dataclasses.replace(_ANY_FAULT, max_faults=0)


def causes_in(work: Batch, specification: Specification, modes: Sequence[Configuration]) -> dict[Configuration, Causes]:
    """What each fault causes in each of ``modes``, for one message; of modes with the same rows one is searched."""
    rows = {mode: tuple(map(id, _rows(specification, mode, _ANY_FAULT))) for mode in modes}
    first: dict[tuple[int, ...], Configuration] = {}
    for mode, key in rows.items():
        first.setdefault(key, mode)
    found = work.run("searching", _causes_in_each, chunks([*first.values()], _MODES_A_TASK))
    causes = dict(zip(first, found, strict=True))
    return {mode: MappingProxyType(causes[key]) for mode, key in rows.items()}


def _rows(specification: Specification, mode: Configuration, bounds: Bounds) -> list[Fsm]:
    """What every machine is: the same object where the same rows decide."""
    machines = [*specification.machines.values(), *(monitor.machine for _, monitor in observers_of(specification))]
    return [machine.fsm(each) for each in environments(specification, mode, bounds) for machine in machines]


def _causes_in_each(specification: Specification, modes: Sequence[Configuration]) -> list[dict[Fault | None, Outcome]]:
    together = only_the_budget_reads_faults(specification)
    searched: dict[str, Causes] = {}
    return [dict(_causes(specification, mode, searched, together=together)) for mode in modes]


def _causes(
    specification: Specification, mode: Configuration, searched: dict[str, Causes], *, together: bool
) -> Iterator[tuple[Fault | None, Outcome]]:
    found: dict[Bounds, Causes] = {}
    without = _ANY_FAULT if _alike_until_a_fault(specification, mode) else _NO_FAULT
    for fault in (None, *Fault):
        bounds = _ANY_FAULT if fault else without
        if not together:
            bounds = Bounds(faults=frozenset({fault} if fault else ()), max_faults=1 if fault else 0)
        if bounds not in found:
            sliced = Slicer(compose(specification, mode, bounds)).slice()
            if sliced.key not in searched:
                searched[sliced.key] = _searched(sliced)
            found[bounds] = searched[sliced.key]
        yield fault, found[bounds][fault]


def _alike_until_a_fault(specification: Specification, mode: Configuration) -> bool:
    """Whether the systems with one fault and with none differ only in machines that hear nothing but faults."""
    pairs = zip(*(_rows(specification, mode, bounds) for bounds in (_ANY_FAULT, _NO_FAULT)), strict=True)
    heard = {name for pair in pairs if pair[0] is not pair[1] for fsm in pair for name in fsm.reactive_events}
    return heard <= set(Fault)


def _searched(sliced: SlicedNetwork) -> Causes:
    search, may_happen = _Search(sliced), {event.name for event in sliced.events}
    none = search.outcome(None)
    return {None: none, **{fault: search.outcome(fault) if fault in may_happen else none for fault in Fault}}


class _Search:
    """Every state of a system of one message, with the anomalies that it shows, as bits."""

    def __init__(self, sliced: SlicedNetwork) -> None:
        self._events, self._packed = sliced.events, sliced.packed
        self._graph = StateGraph(sliced.packed)
        self._first_observer = min(sliced.packed.observers, default=0)
        self._marks: dict[tuple[int, ...], tuple[int, int]] = {}
        self._shown: list[int] = []
        while len(self._shown) < len(self._graph.states):
            self._shown.append(self._shown_in(len(self._shown)))

    def _shown_in(self, state: int) -> int:
        machines = self._graph.states[state]
        observers = machines[self._first_observer :]
        if observers not in self._marks:
            self._marks[observers] = self._marked(machines)
        always, at_rest = self._marks[observers]
        return (
            always | at_rest if all(self._packed.free[event] for event, _ in self._graph.successors(state)) else always
        )

    def _marked(self, machines: Sequence[int]) -> tuple[int, int]:
        """What the states of the observers show always, and at rest."""
        always = at_rest = 0
        for machine, mark in zip(self._packed.observers, self._packed.mark, strict=True):
            always |= self._packed.always[mark + machines[machine]]
            at_rest |= self._packed.at_rest[mark + machines[machine]]
        return always, at_rest

    def outcome(self, fault: Fault | None) -> Outcome:
        """What is reached, breadth first, where no other fault than this one happens."""
        others = set(Fault) - {fault}
        admitted = [event.name not in others for event in self._events]
        ways, met, transitions = {0: (0, 0)}, [0], 0
        nearest: dict[int, int] = {}
        for state in met:
            for bit in bits(self._shown[state]):
                nearest.setdefault(bit, state)
            for event, after in self._graph.successors(state):
                if admitted[event]:
                    transitions += 1
                    if after not in ways:
                        ways[after] = state, event
                        met.append(after)
        witnesses = {self._packed.anomalies[bit]: tuple(self._labels(ways, nearest[bit])) for bit in sorted(nearest)}
        return Outcome(len(met), transitions, complete=True, witnesses=witnesses)

    def _labels(self, ways: Mapping[int, tuple[int, int]], state: int) -> list[str]:
        labels = []
        while state:
            state, event = ways[state]
            labels.append(self._events[event].label)
        return labels[::-1]
