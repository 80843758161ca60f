"""Ample sets of one event: the partial-order reduction of ``spec/reductions.md``, as tables for the kernel."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum, auto
from itertools import accumulate

from ackfsm.checking.explore.reduction.columns import bits
from ackfsm.checking.explore.reduction.independence import (
    EventTables,
    PhaseCounter,
    SearchPhase,
    phase_counter,
    phases_of,
)
from ackfsm.checking.explore.search.encode import PackedNetwork
from ackfsm.checking.explore.search.kernel import HEAD, MASK_BITS
from ackfsm.checking.explore.search.kernel_ample import AmpleSets, future_words
from ackfsm.checking.explore.search.layout import LocalLayout, event_masks


class AmpleCondition(Enum):
    """What an event has to meet to be an ample set alone; numbered as in ``spec/reductions.md``."""

    MUST_HAPPEN = auto()
    INDEPENDENT = auto()
    INVISIBLE = auto()
    CYCLE_PROVISO = auto()


_ALL = frozenset(AmpleCondition)


def compute_ample_sets(packed: PackedNetwork, conditions: Collection[AmpleCondition] = _ALL) -> AmpleSets:
    """The ample sets of ``packed``.  With fewer ``conditions`` the reduction is not sound."""
    tables = EventTables(packed)
    counter = phase_counter(tables)
    phases = phases_of(tables, counter)
    events, masks = len(packed.free), max(1, -(-len(packed.free) // MASK_BITS))
    local = LocalLayout(packed)
    order = [machine for members in local.members for machine in members]
    dependent = (phase.dependent() if AmpleCondition.INDEPENDENT in conditions else [0] * events for phase in phases)
    return AmpleSets(
        phases=len(phases),
        masks=masks,
        bits=MASK_BITS,
        events=events,
        enabled=HEAD,
        future=HEAD + masks,
        width=future_words(len(phases), masks),
        counter=0 if counter is None else packed.component[counter.machine],
        members=[0, *accumulate(map(len, local.members))],
        word=[local.word[machine] for machine in order],
        shift=[local.shift[machine] for machine in order],
        mask=[local.mask[machine] for machine in order],
        first=[0, *accumulate(packed.size[machine] for machine in order)],
        futures=[word for machine in order for word in _future(machine, phases, counter, masks)],
        candidates=[word for phase in phases for word in _words(ample_candidates(phase, conditions), masks)],
        dependent=[word for phase in dependent for events_of in phase for word in _words(events_of, masks)],
    )


def _words(events: int, masks: int) -> list[int]:
    return event_masks(bits(events), masks)


def _future(machine: int, phases: Sequence[SearchPhase], counter: PhaseCounter | None, masks: int) -> Iterator[int]:
    """Yield for each state of the machine the events that it may still let happen, by phase, and its phase."""
    future = zip(*(phase.future_from(machine) for phase in phases), strict=True)
    for state, each in enumerate(future):
        for events in each:
            yield from _words(events, masks)
        yield int(counter is not None and counter.machine == machine and counter.ended >> state & 1)


def ample_candidates(phase: SearchPhase, conditions: Collection[AmpleCondition] = _ALL) -> int:
    """The events that are an ample set in ``phase`` wherever nothing that may still happen depends on them."""
    events = phase.alive
    if AmpleCondition.MUST_HAPPEN in conditions:
        events &= ~phase.tables.free
    if AmpleCondition.INVISIBLE in conditions:
        events &= ~_visible(phase)
    return _without_cycles(phase, events) if AmpleCondition.CYCLE_PROVISO in conditions else events


def _visible(phase: SearchPhase) -> int:
    """The events that may lead from a state that shows an anomaly to one that does not."""
    packed, found = phase.tables.packed, 0
    for machine, start in zip(packed.observers, packed.mark, strict=True):
        always = packed.always[start : start + packed.size[machine]]
        for column, events in phase.columns(machine):
            steps = _steps(column, phase.later[machine])
            if any(always[state] & ~always[after] for state, after in steps):
                found |= events
    return found


def _without_cycles(phase: SearchPhase, events: int) -> int:
    """As many of the ``events`` as cannot form a cycle by themselves: the last ones are left out."""
    while cyclic := _on_cycles(phase, events):
        events ^= 1 << (cyclic.bit_length() - 1)
    return events


def _on_cycles(phase: SearchPhase, events: int) -> int:
    """Return the ``events`` that stay after removing, again and again, events on no cycle of the rest.

    Such an event moves some machine to where the rest cannot bring it back from.
    """
    while events:
        left = events
        for machine, states in enumerate(phase.reached):
            columns = [(column, mine & left) for column, mine in phase.tables.columns[machine].items() if mine & left]
            for mine in _irreversible(columns, states):
                left &= ~mine
        if left == events:
            return events
        events = left
    return 0


def _irreversible(columns: Sequence[tuple[tuple[int, ...], int]], states: int) -> Iterator[int]:
    """The events of those columns all of whose steps no other steps lead back from."""
    steps = [list(_steps(column, states)) for column, _ in columns]
    back = _closure(step for some in steps for step in some)
    for some, (_, events) in zip(steps, columns, strict=True):
        if not any(state == after or back.get(after, 0) >> state & 1 for state, after in some):
            yield events


def _steps(column: Sequence[int], states: int) -> Iterator[tuple[int, int]]:
    return ((state, column[state]) for state in bits(states) if column[state] >= 0)


def _closure(steps: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Where the steps lead to from each state, in any number of them."""
    found: dict[int, int] = {}
    for state, after in steps:
        found[state] = found.get(state, 0) | 1 << after
    for between in list(found):
        for state, targets in found.items():
            if targets >> between & 1:
                found[state] = targets | found[between]
    return found
