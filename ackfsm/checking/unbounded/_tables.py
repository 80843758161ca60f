"""Tables in numbers: each machine that takes part in the abstraction, and how it moves by each kind of event.

A counter of the system whose bound is above :data:`EXACT` has the three states *none*, *some* and *full*.  Some of its
steps then have two outcomes (one less than *some* is *some* or *none*), so that an event has *alternatives*.  In each
of the three states an event is refused by all numbers or by none of them, so that what is enabled is exact.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence

from ackfsm.checking.unbounded._reasons import NotProvedError
from ackfsm.tables import Counter, EventRef, Fsm, IndexKind, Machine, RowKind

__all__ = ["EXACT", "Column", "Role", "Table", "columns_of", "count_limits", "counted", "numbered_states"]

EXACT = 4
"""A counter of this bound or less keeps its numbers."""

NONE, SOME, FULL = "none", "some", "full"

Column = tuple[int, ...]
"""The next state for each state; -1 where the event is refused."""


class Role(enum.IntEnum):
    """Whose an event is, to a message: the system's, its own, or one of an earlier or a later message."""

    SYSTEM = 0
    OWN = 1
    EARLIER = 2
    LATER = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """A machine in numbers.  ``columns`` has for an event in a role the alternatives; what it lacks changes nothing.

    ``limits`` are, for each state of a counter, the highest number that the state stands for (``None``: no highest).
    """

    name: str
    states: tuple[str, ...]
    initial: int
    columns: Mapping[tuple[Role, int], tuple[Column, ...]]
    limits: tuple[int | None, ...] = ()


def counted(machine: Machine, fsm: Fsm, bound: int | None) -> bool:
    """Whether ``machine`` counts up to a ``bound`` that is too high to be kept in numbers."""
    if machine.counter is None or machine.per.whole is not IndexKind.SYSTEM or bound is None or bound <= EXACT:
        return False
    if any(state.endswith(Counter.OPEN) for state in fsm.states[bound + 1 : bound + 3]):
        raise NotProvedError(f"{machine.name} counts to {bound} and takes steps back, which is not covered")
    return True


def numbered_states(fsm: Fsm, bound: int | None, *, abstract: bool) -> tuple[str, ...]:
    """The states of ``fsm``; of a counter that is abstracted none, some, full, and what is behind its bound."""
    if not abstract or bound is None:
        return tuple(fsm.states)
    return (NONE, SOME, FULL, *fsm.states[bound + 1 :])


def columns_of(fsm: Fsm, event: EventRef, bound: int | None, *, abstract: bool) -> tuple[Column, ...]:
    """How ``fsm`` moves by ``event``: one column, or several where a counter that is abstracted may go either way."""
    if not abstract or bound is None:
        return (fsm.column(event),)
    targets = [_outcomes(fsm, event, bound, state) for state in numbered_states(fsm, bound, abstract=True)]
    return tuple(tuple(each[min(n, len(each) - 1)] for each in targets) for n in range(max(map(len, targets))))


def _outcomes(fsm: Fsm, event: EventRef, bound: int, state: str) -> tuple[int, ...]:
    """The states after ``event`` in any number that ``state`` stands for.

    A counter moves by one, or back to its start, so the numbers at both ends of *some* tell what those between do.
    """
    among = {NONE: (0,), SOME: (1, 2, bound - 2, bound - 1), FULL: (bound,)}
    numbers = tuple(map(str, among[state])) if state in among else (state,)
    rows = [fsm.rows[number, event] for number in numbers]
    if len({row.kind is RowKind.REFUSE for row in rows}) > 1:
        raise NotProvedError(
            f"{fsm.name} refuses {event} in some of the numbers between its ends, which is not covered"
        )
    if rows[0].kind is RowKind.REFUSE:
        return (-1,)
    return tuple(dict.fromkeys(_stands_for(fsm, row.target, bound) for row in rows))


def _stands_for(fsm: Fsm, number: str, bound: int) -> int:
    if not number.isdecimal():
        return 3 + fsm.states[bound + 1 :].index(number)
    return 0 if number == "0" else 2 if int(number) == bound else 1


def count_limits(machine: Machine, states: Sequence[str], bound: int | None) -> tuple[int | None, ...]:
    """The highest number that each state of a counter stands for; empty for what is no counter with a bound."""
    if machine.counter is None or bound is None:
        return ()
    stays = machine.counter.at_bound == Counter.STAYS
    known = {NONE: 0, SOME: bound - 1, FULL: None if stays else bound, str(bound): None if stays else bound}
    return tuple(known[state] if state in known else int(state) if state.isdecimal() else None for state in states)
