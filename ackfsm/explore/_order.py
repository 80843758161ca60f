"""Which steps of a search lead nowhere new, because another order of the same events leads there too.

After an event ``b`` a search need not take an earlier event ``a`` (by their numbers) that could as well have come
before ``b``: the state after both is reached by ``a`` first.  Why no state is missed, nor found
later than it might be, is shown in ``spec/reductions.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ackfsm.explore._columns import bits, parts_of
from ackfsm.network import Packed

__all__ = ["comes_before", "worth_taking"]


def worth_taking(packed: Packed) -> list[int]:
    """For each event, as bits, the events that are to be taken after it; last, those of the first state: all."""
    everything = (1 << len(packed.free)) - 1
    columns: list[dict[tuple[int, ...], int]] = [{} for _ in packed.size]
    for event, parts in enumerate(parts_of(packed)):
        for part in parts:
            columns[part.who][part.column] = columns[part.who].get(part.column, 0) | 1 << event
    in_order = [0] * len(packed.free)
    for machine in columns:
        for then, its_events in machine.items():
            bound = sum(events for first, events in machine.items() if not comes_before(first, then))
            for event in bits(its_events):
                in_order[event] |= bound
    earlier = ((1 << event) - 1 for event in range(len(packed.free)))
    return [everything & (bound | ~before) for bound, before in zip(in_order, earlier, strict=True)] + [everything]


def comes_before(first: Sequence[int], then: Sequence[int]) -> bool:
    """Whether a machine can go by ``first`` and ``then`` (columns) wherever it can go by ``then`` and ``first``."""
    for state, after in enumerate(then):
        if after >= 0 and first[after] >= 0:
            other = first[state]
            if other < 0 or then[other] != first[after]:
                return False
    return True
