"""Which events may be expanded alone, in which states: the partial order of ``spec/reductions.md``, as tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum, StrEnum, auto
from itertools import accumulate
from typing import cast

from ackfsm.explore.reduction.columns import bits
from ackfsm.explore.reduction.independence import Counter, Phase, Tables, counter_of, phases_of
from ackfsm.explore.search.kernel import HEAD, MASK_BITS
from ackfsm.explore.search.kernel_ample import Foresight, tail_of
from ackfsm.explore.search.layout import Locals, masks_of
from ackfsm.network import Packed
from ackfsm.terms import InputError, check_names
from ackfsm.text import quoted

__all__ = ["Condition", "Reduction", "check_reductions", "eligible", "foresight_of"]


class Reduction(StrEnum):
    """A way to search fewer states in which the same can happen."""

    PARTIAL_ORDER = "partial-order"
    """An event is expanded alone where nothing that may still come disturbs it."""


def check_reductions(reductions: object) -> None:
    """Raise :class:`ackfsm.terms.InputError` unless these are some reductions, or their names."""
    check_names("reductions", reductions)
    for name in cast("Collection[str]", reductions):
        if name not in set(Reduction):
            raise InputError(f"there is no reduction {quoted(name)}; they are {', '.join(Reduction)}")


class Condition(Enum):
    """What an event has to meet to be expanded alone; numbered as in ``spec/reductions.md``."""

    MUST_HAPPEN = auto()
    AT_PEACE = auto()
    KEEPS_MARKS = auto()
    NO_CIRCLE = auto()


_ALL = frozenset(Condition)


def foresight_of(packed: Packed, conditions: Collection[Condition] = _ALL) -> Foresight:
    """Which events of ``packed`` may be expanded alone.  With fewer ``conditions`` a search is not sound."""
    tables = Tables(packed)
    counter = counter_of(tables)
    phases = phases_of(tables, counter)
    events, masks = len(packed.free), max(1, -(-len(packed.free) // MASK_BITS))
    local = Locals(packed)
    order = [machine for members in local.members for machine in members]
    conflicts = (phase.conflicts() if Condition.AT_PEACE in conditions else [0] * events for phase in phases)
    return Foresight(
        phases=len(phases),
        masks=masks,
        bits=MASK_BITS,
        events=events,
        able=HEAD,
        tail=HEAD + masks,
        width=tail_of(len(phases), masks),
        counter=0 if counter is None else packed.component[counter.machine],
        members=[0, *accumulate(map(len, local.members))],
        word=[local.word[machine] for machine in order],
        shift=[local.shift[machine] for machine in order],
        mask=[local.mask[machine] for machine in order],
        first=[0, *accumulate(packed.size[machine] for machine in order)],
        says=[word for machine in order for word in _says(machine, phases, counter, masks)],
        eligible=[word for phase in phases for word in _words(eligible(phase, conditions), masks)],
        conflicts=[word for phase in conflicts for disturbing in phase for word in _words(disturbing, masks)],
    )


def _words(events: int, masks: int) -> list[int]:
    return masks_of(bits(events), masks)


def _says(machine: int, phases: Sequence[Phase], counter: Counter | None, masks: int) -> Iterator[int]:
    """For each state of the machine what it lets come, in each phase, and which phase it tells."""
    to_come = zip(*(phase.to_come_from(machine) for phase in phases), strict=True)
    for state, each in enumerate(to_come):
        for events in each:
            yield from _words(events, masks)
        yield int(counter is not None and counter.machine == machine and counter.ended >> state & 1)


def eligible(phase: Phase, conditions: Collection[Condition] = _ALL) -> int:
    """The events that may be expanded alone in ``phase`` as soon as nothing that may come disturbs them."""
    events = phase.alive
    if Condition.MUST_HAPPEN in conditions:
        events &= ~phase.tables.free
    if Condition.KEEPS_MARKS in conditions:
        events &= ~_unmarking(phase)
    return _in_no_circle(phase, events) if Condition.NO_CIRCLE in conditions else events


def _unmarking(phase: Phase) -> int:
    """The events that may lead from a state that is an anomaly to one that is not."""
    packed, found = phase.tables.packed, 0
    for machine, start in zip(packed.watchers, packed.mark, strict=True):
        always = packed.always[start : start + packed.size[machine]]
        for column, events in phase.columns(machine):
            steps = _steps(column, phase.later[machine])
            if any(always[state] & ~always[after] for state, after in steps):
                found |= events
    return found


def _in_no_circle(phase: Phase, events: int) -> int:
    """As many of the ``events`` as cannot lead round in a circle by themselves: the last ones are left out."""
    while circling := _circling(phase, events):
        events ^= 1 << (circling.bit_length() - 1)
    return events


def _circling(phase: Phase, events: int) -> int:
    """What is left of ``events`` when those are taken away, again and again, that are in no circle of the rest.

    Such an event moves some machine to where the rest cannot bring it back from.
    """
    while events:
        left = events
        for machine, states in enumerate(phase.reached):
            columns = [(column, mine & left) for column, mine in phase.tables.columns[machine].items() if mine & left]
            for mine in _one_way(columns, states):
                left &= ~mine
        if left == events:
            return events
        events = left
    return 0


def _one_way(columns: Sequence[tuple[tuple[int, ...], int]], states: int) -> Iterator[int]:
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
