"""Which steps of a search lead nowhere new, because fewer of the same events lead there, or another order of them.

After an event ``b`` a search need not take an earlier event ``a`` (by their numbers) that could as well have come
before ``b``, for the state after both is reached by ``a`` first; nor any event that leads to the same without ``b``.
Why no state is missed, nor found later than it might be, is shown in ``spec/reductions.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ackfsm.explore.reduction.columns import bits, columns_of, parts_of
from ackfsm.network import Packed

__all__ = ["absorbs", "comes_before", "worth_taking"]


def worth_taking(packed: Packed) -> list[int]:
    """For each event, as bits, the events that are to be taken after it; last, those of the first state: all."""
    events = len(packed.free)
    everything = (1 << events) - 1
    after, needing = [0] * events, [0] * events  # what cannot come before the event, what does not absorb it
    for machine in columns_of(parts_of(packed), len(packed.size)):
        outside = everything & ~sum(machine.values())
        for then, its_events in machine.items():
            not_before = sum(others for first, others in machine.items() if not comes_before(first, then))
            not_absorbing = sum(others for second, others in machine.items() if not absorbs(second, then))
            if any(state not in {-1, there} for there, state in enumerate(then)):
                not_absorbing |= outside
            for event in bits(its_events):
                after[event] |= not_before
                needing[event] |= not_absorbing
    later = (everything & ~((1 << event) - 1) for event in range(events))
    return [(a | b) & c for a, b, c in zip(after, later, needing, strict=True)] + [everything]


def comes_before(first: Sequence[int], then: Sequence[int]) -> bool:
    """Whether a machine can go by ``first`` and ``then`` (columns) wherever it can go by ``then`` and ``first``."""
    for state, after in enumerate(then):
        if after >= 0 and first[after] >= 0:
            other = first[state]
            if other < 0 or then[other] != first[after]:
                return False
    return True


def absorbs(second: Sequence[int], first: Sequence[int]) -> bool:
    """Whether a machine can go by ``second`` alone (a column) wherever it can go by ``first`` and ``second``."""
    return all(after < 0 or second[after] < 0 or second[state] == second[after] for state, after in enumerate(first))
