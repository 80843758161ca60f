"""Ghosts: for each counter of the system, how much of it each message has counted up and not down again.

A view holds few of the messages, so it would not know that a window which is full is filled by somebody.  A ghost is
one more machine of each message.  It watches, and never refuses.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ackfsm.checking.unbounded._tables import Column, Role, Table
from ackfsm.tables import Counter, Machine, RowKind

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


class Delayed(NamedTuple):
    """A ghost that is emptied late, and beside it that of what watches.

    ``closed`` is whether the counter was emptied and does not count again yet; then ``kept`` is what the message had
    counted before.
    """

    closed: bool
    kept: int
    watching: int


WRONG = Delayed(closed=True, kept=LOST, watching=LOST)
"""The message has counted up although the counter was closed."""


def delayed_states() -> tuple[Delayed, ...]:
    """All states of a delayed ghost, in their order."""
    return tuple(itertools.starmap(Delayed, itertools.product((False, True), range(LOST + 1), range(LOST + 1))))


def delayed_ghost(guard: Moves, watching: Moves, closing: frozenset[int], system_events: frozenset[int]) -> Table:
    """The ghost of a counter that keeps what it has at the events ``closing``, which empty the counter.

    What empties the one that watches, and not the counter, opens and empties it: then the counter may count again.
    """
    states = delayed_states()
    columns: dict[tuple[Role, int], tuple[Column, ...]] = {}
    for event in guard.up | guard.down | guard.reset | watching.up | watching.down | watching.reset:
        roles = (Role.SYSTEM,) if event in system_events else (Role.OWN, Role.EARLIER, Role.LATER)
        for role in roles:
            after = (_after(state, event, role, guard, watching, closing) for state in states)
            columns[role, event] = (tuple(map(states.index, after)),)
    return Table("delayed ghost", tuple(map(str, states)), 0, columns)


def closing_table(guard: Moves, watching: Moves, event: int, system_events: frozenset[int]) -> Table:
    """Whether a message counts up between ``event``, which closes the counter, and what opens it: then it is wrong."""
    columns: dict[tuple[Role, int], tuple[Column, ...]] = {}
    for number in guard.up | watching.reset | {event}:
        roles = (Role.SYSTEM,) if number in system_events else (Role.OWN, Role.EARLIER, Role.LATER)
        for role in roles:
            if number in watching.reset - guard.reset:
                columns[role, number] = ((0, 0, 2),)
            elif number == event:
                columns[role, number] = ((1, 1, 2),)
            elif role is Role.OWN and number in guard.up:
                columns[role, number] = ((0, 2, 2),)
    return Table("closing", ("open", "closed", "wrong"), 0, columns)


def _after(  # noqa: PLR0913, PLR0917 - a state, an event, and what it does
    state: Delayed, event: int, role: Role, guard: Moves, watching: Moves, closing: frozenset[int]
) -> Delayed:
    if state == WRONG:
        return state
    watched = _counted(state.watching, event, role, watching)
    if event in watching.reset - guard.reset:
        return Delayed(closed=False, kept=0, watching=watched)
    if state.closed:
        counts_again = role is Role.OWN and event in guard.up
        return WRONG if counts_again else Delayed(closed=True, kept=state.kept, watching=watched)
    if event in closing:
        return Delayed(closed=True, kept=state.kept, watching=watched)
    return Delayed(closed=False, kept=_counted(state.kept, event, role, guard), watching=watched)


def _counted(number: int, event: int, role: Role, moves: Moves) -> int:
    """What a ghost that has counted ``number`` has after an event, as its columns say."""
    if event in moves.reset:
        return 0
    if role is not Role.OWN or number == LOST:
        return number
    return number + (event in moves.up) - (event in moves.down and number > 0)
