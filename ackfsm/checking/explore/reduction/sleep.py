"""Sleep sets: which events need not be taken after which, since another order, or fewer events, lead to the same state.

After an event ``b`` an earlier event ``a`` (by their numbers) sleeps if it could as well have come before ``b``: the
state after both is reached by ``a`` first.  So does any event that leads to the same state without ``b``.  Why no state
is missed, nor found later than it might be, is shown in ``spec/reductions.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ackfsm.checking.explore.reduction.columns import bits, columns_by_machine, participant_columns
from ackfsm.checking.explore.search.encode import PackedNetwork


def awake_events(packed: PackedNetwork) -> list[int]:
    """Return for each event, as bits, the events outside the sleep set after it; last, for the first state: all."""
    events = len(packed.free)
    everything = (1 << events) - 1
    after, needing = [0] * events, [0] * events  # what cannot come before the event, what does not absorb it
    for machine in columns_by_machine(participant_columns(packed), len(packed.size)):
        outside = everything & ~sum(machine.values())
        for then, its_events in machine.items():
            not_before = sum(others for first, others in machine.items() if not left_commutes(first, then))
            not_absorbing = sum(others for second, others in machine.items() if not absorbs(second, then))
            if any(state not in {-1, there} for there, state in enumerate(then)):
                not_absorbing |= outside
            for event in bits(its_events):
                after[event] |= not_before
                needing[event] |= not_absorbing
    later = (everything & ~((1 << event) - 1) for event in range(events))
    return [(a | b) & c for a, b, c in zip(after, later, needing, strict=True)] + [everything]


def left_commutes(first: Sequence[int], then: Sequence[int]) -> bool:
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
