"""Ghosts: for each counter of the system, how much of it each message has counted up and not down again.

A view holds few of the messages, so it would not know that a window which is full is filled by somebody.  A ghost is
one more machine of each message.  It watches, and never refuses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ackfsm.tables import Counter, Machine, RowKind
from ackfsm.unbounded._tables import Column, Role, Table

__all__ = ["LOST", "MOST", "Moves", "ghost_of", "moves_of"]

MOST = 4
"""A ghost that counts further is *lost*, and nothing is concluded from it."""

LOST = MOST + 1


@dataclasses.dataclass(frozen=True, slots=True)
class Moves:
    """The events, by number, that count up, count down, and begin anew, in one configuration."""

    up: frozenset[int]
    down: frozenset[int]
    reset: frozenset[int]


def moves_of(machine: Machine, environment: Mapping[str, Any], events: Mapping[str, Sequence[int]]) -> Moves:
    """What moves the counter ``machine``; ``events`` are the numbers of the events of each name."""
    chosen = {
        event: (heading, next(row for row in rows if row.when.holds(environment)))
        for (heading, event), rows in machine.cells.items()
    }

    def under(heading: str) -> frozenset[int]:
        refs = [e for e, (at, row) in chosen.items() if at == heading and row.kind is RowKind.TO]
        return frozenset(number for ref in refs for number in events.get(ref.name, ()))

    return Moves(under("up"), under("down"), under("reset"))


def ghost_of(machine: Machine, moves: Moves, system_events: frozenset[int]) -> Table | None:
    """The ghost of a counter; ``None`` where no sum of what messages do tells its number.

    That is where the system itself counts, where the start is not empty, where steps are taken back, and where
    a counter that stays at its bound (so that not all that goes up is counted) goes down.
    """
    counter = machine.counter
    if counter is None:
        return None
    undone = any(heading in {"undo", "keep"} for heading, _ in machine.cells)
    stays = counter.at_bound == Counter.STAYS
    if counter.starts != "empty" or undone or (stays and moves.down) or system_events & (moves.up | moves.down):
        return None
    return Table(f"ghost of {machine.name}", (*map(str, range(MOST + 1)), "lost"), 0, _columns(moves, system_events))


def _columns(moves: Moves, system_events: frozenset[int]) -> dict[tuple[Role, int], tuple[Column, ...]]:
    up = (*range(1, LOST + 1), LOST)
    down = (0, *range(MOST), LOST)
    anew = (0,) * (LOST + 1)
    columns: dict[tuple[Role, int], tuple[Column, ...]] = {}
    columns |= {(Role.OWN, event): (up,) for event in moves.up}
    columns |= {(Role.OWN, event): (down,) for event in moves.down}
    for event in moves.reset:
        roles = (Role.SYSTEM,) if event in system_events else (Role.OWN, Role.EARLIER, Role.LATER)
        columns |= {(role, event): (anew,) for role in roles}
    return columns
