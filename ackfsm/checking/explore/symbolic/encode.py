"""A packed network as events by levels, for the kernel of symbolic search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from ackfsm.checking.explore.search.encode import PackedNetwork
from ackfsm.checking.explore.symbolic.kernel import IDENTITY, EventSystem
from ackfsm.terms import DefectError

_Columns = Mapping[int, tuple[int, ...]]
"""What an event does at each level or to each machine: where each local state goes, -1 where it is refused."""


_BITS = 31
"""Bits for the occurrences in a node: the machines of the system and some of the first message."""


def event_system(
    packed: PackedNetwork, order: Sequence[int], tests: Sequence[tuple[int, Sequence[bool]]]
) -> EventSystem:
    """``packed`` with machine ``order[k - 1]`` at level ``k``.

    After its events come ``tests``, each of one machine: those never fire, and are refused where the test holds.
    """
    size = [0, *(packed.size[machine] for machine in order)]
    level = {machine: k for k, machine in enumerate(order, start=1)}
    events = [
        {level[machine]: column for machine, column in columns_of(packed, event).items()}
        for event in range(len(packed.free))
    ]
    tested = [
        {level[machine]: tuple(-1 if holds else state for state, holds in enumerate(test))} for machine, test in tests
    ]
    base, column, table = _laid_out([*events, *tested], len(order))
    start = list(accumulate(size, initial=0))[:-1]
    firing, event, target = _firing(events, size)
    occurs = _occurrence_bits(size)
    needs, need, need_level = _needs([*events, *tested], occurs)
    return EventSystem(
        levels=len(order),
        widest=max(size),
        size=size,
        start=start,
        bottom=[min(columns, default=len(order) + 1) for columns in (*events, *tested)],
        top=[max(columns, default=0) for columns in (*events, *tested)],
        base=base,
        column=column,
        table=table,
        firing=firing,
        event=event,
        target=target,
        occurs=occurs,
        needs=needs,
        need=need,
        need_level=need_level,
    )


def columns_of(packed: PackedNetwork, event: int) -> _Columns:
    """Return the columns of an event, without machines that neither refuse it nor are ever moved by it."""
    parts = range(packed.first[event], packed.first[event + 1])
    if len({packed.instance[p] for p in parts}) < len(parts):
        raise DefectError(f"a machine takes part twice in event {event}")
    columns = {}
    for p in parts:
        machine = packed.instance[p]
        column = tuple(packed.table[packed.offset[p] : packed.offset[p] + packed.size[machine]])
        if column != tuple(range(len(column))):
            columns[machine] = column
    return columns


def moves(columns: Mapping[int, Sequence[int]]) -> bool:
    """Whether an event that does this ever moves a machine."""
    return any(after not in {-1, state} for column in columns.values() for state, after in enumerate(column))


def _laid_out(events: Sequence[_Columns], levels: int) -> tuple[list[int], list[int], list[int]]:
    """``base``, ``column`` and ``table`` of :class:`EventSystem`; every column is stored once."""
    base, column, table = list[int](), list[int](), list[int]()
    known: dict[tuple[int, ...], int] = {}
    for columns in events:
        bottom, top = min(columns, default=levels + 1), max(columns, default=0)
        base.append(len(column) - bottom)
        for level in range(bottom, top + 1):
            if level not in columns:
                column.append(IDENTITY)
                continue
            if columns[level] not in known:
                known[columns[level]] = len(table)
                table += columns[level]
            column.append(known[columns[level]])
    return base, column, table


def _firing(events: Sequence[_Columns], size: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Return the events that fire in each local state of each level, without events that never move anything."""
    by_level: list[list[int]] = [[] for _ in size]
    for event, columns in enumerate(events):
        if moves(columns):
            by_level[max(columns)].append(event)
    firing, fired, target = [0], list[int](), list[int]()
    for level, of_level in enumerate(by_level):
        for state in range(size[level]):
            enabled = [event for event in of_level if events[event][level][state] >= 0]
            fired += enabled
            target += [events[event][level][state] for event in enabled]
            firing.append(len(fired))
    return firing, fired, target


def _occurrence_bits(size: Sequence[int]) -> list[int]:
    """Where the bits of each level begin; -1 from the level on whose bits do not fit."""
    begin = list(accumulate(size, initial=0))
    return [first if first + states <= _BITS else -1 for first, states in zip(begin, size, strict=False)]


def _needs(events: Sequence[_Columns], occurs: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Return ``needs``, ``need`` and ``need_level`` of :class:`EventSystem`: the local states without a refusal."""
    needs, need, levels = [0], list[int](), list[int]()
    for columns in events:
        for level, column in columns.items():
            if occurs[level] >= 0 and min(column) < 0:
                need.append(sum(1 << occurs[level] + state for state, after in enumerate(column) if after >= 0))
                levels.append(level)
        needs.append(len(need))
    return needs, need, levels
