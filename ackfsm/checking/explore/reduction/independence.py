"""Which events of a packed network are independent, found from its tables alone (``spec/reductions.md``).

A search has one *phase*, or two: some machine (the budget of faults, where there is one) may come to an end, after
which some events never happen again.  What holds in a phase is found for the states that can be reached in it.
All sets of states and of events are bits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from ackfsm.checking.explore.reduction.columns import (
    ParticipantColumn,
    bits,
    columns_by_machine,
    over_approximate,
    participant_columns,
)
from ackfsm.checking.explore.search.encode import PackedNetwork

_Columns = Mapping[tuple[int, ...], int]
"""The columns of one machine, each with the events that have it there."""


class EventTables:
    """A packed network by its events and by its machines."""

    def __init__(self, packed: PackedNetwork) -> None:
        self.packed = packed
        self.parts = participant_columns(packed)
        self.columns: Sequence[_Columns] = columns_by_machine(self.parts, len(packed.size))
        self.initial = [1 << state for state in packed.initial]
        self.free = sum(1 << event for event, free in enumerate(packed.free) if free)


@dataclasses.dataclass(frozen=True, slots=True)
class PhaseCounter:
    """A machine that comes to an end: in the states ``ended`` (bits) no event moves it any more."""

    machine: int
    ended: int


@dataclasses.dataclass(frozen=True, slots=True)
class SearchPhase:
    """What can be from some point on: the states of each machine ``reached`` in this phase, and the events ``alive``.

    ``later`` has the states reached in this phase and all that follow, and ``future`` the events.
    """

    tables: EventTables
    reached: Sequence[int]
    alive: int
    later: Sequence[int]
    future: int

    def columns(self, machine: int) -> Iterator[tuple[tuple[int, ...], int]]:
        """Yield the columns of ``machine`` for the events still to come, each with its events as bits."""
        for column, events in self.tables.columns[machine].items():
            if events & self.future:
                yield column, events & self.future

    def dependent(self) -> Sequence[int]:
        """Return for each event the dependent events that may be enabled beside it, as bits.

        Two events are independent if some machine never enables both, or if in every state of every machine that has a
        row for both they :func:`commute`.
        """
        apart, disturbing = [0] * len(self.tables.parts), [0] * len(self.tables.parts)
        for machine, states in enumerate(self.later):
            columns = list(self.columns(machine))
            for one, events in columns:
                never, bad = _against(one, columns, states)
                for event in bits(events):
                    apart[event] |= never
                    disturbing[event] |= bad
        return [bad & ~never & ~(1 << event) for event, (bad, never) in enumerate(zip(disturbing, apart, strict=True))]

    def future_from(self, machine: int) -> list[int]:
        """For each state of ``machine`` the events that it may still let happen, at once or later."""
        columns = list(self.columns(machine))
        everything = (1 << len(self.tables.parts)) - 1
        futures = [_future(state, columns) for state in range(self.tables.packed.size[machine])]
        return [
            everything & ~sum(events for column, events in columns if all(column[state] < 0 for state in bits(future)))
            for future in futures
        ]


def _against(one: tuple[int, ...], columns: Sequence[tuple[tuple[int, ...], int]], states: int) -> tuple[int, int]:
    """Return the events that no state allows together with the column ``one``, and the ones that do not commute."""
    never = bad = 0
    for other, events in columns:
        both = [state for state in bits(states) if one[state] >= 0 and other[state] >= 0]
        if not both:
            never |= events
        elif not all(commute(one, other, state) for state in both):
            bad |= events
    return never, bad


def commute(one: Sequence[int], other: Sequence[int], state: int) -> bool:
    """Whether two columns, both with a row for ``state``, lead to the same state in either order."""
    after = one[other[state]]
    return after >= 0 and after == other[one[state]]


def _future(state: int, columns: Sequence[tuple[tuple[int, ...], int]]) -> int:
    found, waiting = 1 << state, [state]
    while waiting:
        here = waiting.pop()
        for column, _ in columns:
            if column[here] >= 0 and not found >> column[here] & 1:
                found |= 1 << column[here]
                waiting.append(column[here])
    return found


def phase_counter(tables: EventTables) -> PhaseCounter | None:
    """The machine at whose end most of the events are over that need not happen; ``None`` if there is none."""
    best, most = None, 0
    for machine, columns in enumerate(tables.columns):
        ended = _ended(columns, tables.packed.size[machine])
        over = sum(
            (events & tables.free).bit_count()
            for column, events in columns.items()
            if ended and all(column[state] < 0 for state in bits(ended))
        )
        if over > most and not ended & tables.initial[machine]:
            best, most = PhaseCounter(machine, ended), over
    return best


def _ended(columns: _Columns, size: int) -> int:
    return sum(1 << state for state in range(size) if all(column[state] in {-1, state} for column in columns))


def phases_of(tables: EventTables, counter: PhaseCounter | None) -> tuple[SearchPhase, ...]:
    """The phase before the ``counter`` ends and the one after, if it ever does; without a counter there is one."""
    everything = range(len(tables.parts))
    whole, events = over_approximate(tables.parts, tables.initial, everything)
    if counter is None:
        return (SearchPhase(tables, whole, events, whole, events),)
    open_parts = [[_without(part, counter) for part in parts] for parts in tables.parts]
    before, _ = over_approximate(open_parts, tables.initial, everything)
    alive = sum(1 << event for event, parts in enumerate(tables.parts) if _possible(parts, before))
    after, over = over_approximate(tables.parts, _ends(tables, counter, before), everything)
    return SearchPhase(tables, before, alive, whole, events), SearchPhase(tables, after, over, after, over)


def _possible(parts: Sequence[ParticipantColumn], states: Sequence[int]) -> bool:
    return all(states[part.instance] & part.enabled for part in parts)


def _without(part: ParticipantColumn, counter: PhaseCounter) -> ParticipantColumn:
    """The participant without the rows by which the counter ends."""
    if part.instance != counter.machine:
        return part
    return ParticipantColumn(
        part.instance, tuple(-1 if after >= 0 and counter.ended >> after & 1 else after for after in part.column)
    )


def _ends(tables: EventTables, counter: PhaseCounter, before: Sequence[int]) -> list[int]:
    """The states that the machines may be in when the counter has just ended."""
    start = [0] * len(before)
    for parts in tables.parts:
        after = {part.instance: part.image(before[part.instance]) for part in parts}
        if _possible(parts, before) and after.get(counter.machine, 0) & counter.ended:
            for machine, states in enumerate(before):
                start[machine] |= after.get(machine, states)
    start[counter.machine] &= counter.ended
    return start
