"""A followed message: the one that is watched is chosen before all else, and what comes after its mark is left out.

What watches a message may come to a state from which it is never marked: when any message is sent a second time, say.
Beside finished views that is of no use.  So here it is one of the system's machines, and takes no step from such a
state, nor from one that is marked at rest.  What comes after that mark is asked of views of one message: does somebody
who would take it back have to act (lemma 10 of spec/any.md)?
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from ackfsm.checking.unbounded._columns import Event, Ghost, System, Watcher
from ackfsm.checking.unbounded._examined import Examined, Related, shown_by
from ackfsm.checking.unbounded._ghosts import Moves
from ackfsm.checking.unbounded._kernel import BITS
from ackfsm.checking.unbounded._spaces import Ints
from ackfsm.checking.unbounded._tables import Column, Role, Table
from ackfsm.checking.unbounded._watching import watched

__all__ = ["Followed", "can_be_followed", "followed"]

CHOOSE: Final = "follow"
"""The event by which a message becomes the followed one."""

_ROLES: Final = (Role.OWN, Role.EARLIER, Role.LATER)
"""What an event of a message can be to the followed one."""

_SYSTEM: Final = (Role.SYSTEM,)
_UNKNOWN, _OVER = "unknown", "over"

_ADDED: Final = 2
"""So many states what watches a message has more: it knows nothing of a choice, or that another one was chosen."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """An event of the system in which a message is followed: one of the whole, that is to it in one of some ``roles``.

    What watches it moves by the event in the same way in all of these.
    """

    event: int
    roles: tuple[Role, ...]


def can_be_followed(watcher: Watcher) -> bool:
    """Whether it marks a message at rest, and never again once that mark is taken back."""
    columns = [column for columns in watcher.table.columns.values() for column in columns]
    after = {(state, column[state]) for column in columns for state in watcher.at_rest}
    alive = _may_be_marked(watcher)
    return watcher.of_message and bool(watcher.at_rest) and not any(b != a and b in alive for a, b in after)


def followed(system: System, watcher: Watcher) -> tuple[System, Watcher]:
    """The system in which the message of ``watcher`` is chosen first, and what watches that one alone."""
    places = _places(watcher.table)
    parts = tuple(_parts(system, watcher.table, places))
    numbers: dict[int, list[int]] = {}
    for number, part in enumerate(parts, start=1):
        numbers.setdefault(part.event, []).append(number)
    whole = System(
        family=system.family,
        events=(
            Event(CHOOSE, of_message=True, copy=0, may_never_happen=True),
            *(system.events[p.event] for p in parts),
        ),
        machines=(*(_renumbered(table, numbers) for table in system.machines), _following(watcher, parts)),
        message=(*(_renumbered(table, numbers) for table in system.message), _place(places, parts)),
        ghosts=tuple(_of_parts(ghost, numbers) for ghost in system.ghosts),
    )
    return whole, dataclasses.replace(
        watcher,
        table=_watching(watcher.table, parts),
        marked=frozenset(state + _ADDED for state in watcher.marked),
        at_rest=frozenset(state + _ADDED for state in watcher.at_rest),
    )


def _may_be_marked(watcher: Watcher) -> frozenset[int]:
    """The states from which what watches may still be marked."""
    found = {*watcher.marked, *watcher.at_rest}
    columns = [column for columns in watcher.table.columns.values() for column in columns]
    while more := {before for column in columns for before, after in enumerate(column) if after in found} - found:
        found |= more
    return frozenset(found)


def _places(table: Table) -> tuple[tuple[Role, ...], ...]:
    """What a message can be to the followed one: that one, an earlier or a later one, or another if nothing tells."""
    told_apart = any(
        table.columns.get((Role.EARLIER, event)) != table.columns.get((Role.LATER, event)) for _, event in table.columns
    )
    return ((Role.OWN,), (Role.EARLIER,), (Role.LATER,)) if told_apart else ((Role.OWN,), (Role.EARLIER, Role.LATER))


def _parts(system: System, table: Table, places: Sequence[tuple[Role, ...]]) -> Iterator[_Part]:
    for number, event in enumerate(system.events):
        if not event.of_message:
            yield _Part(number, _SYSTEM)
            continue
        by_columns: dict[tuple[Column, ...], list[Role]] = {}
        for roles in places:
            by_columns.setdefault(table.columns.get((roles[0], number), ()), []).extend(roles)
        yield from (_Part(number, tuple(roles)) for roles in by_columns.values())


def _following(watcher: Watcher, parts: Sequence[_Part]) -> Table:
    """What watches, as a machine of the system: it waits for the choice, and ends in a mark at rest or without hope."""
    table, alive = watcher.table, sorted(_may_be_marked(watcher))
    states = (_UNKNOWN, *(table.states[state] for state in alive), _OVER)
    number = {
        state: alive.index(state) + 1 if state in alive else len(states) - 1 for state in range(len(table.states))
    }
    columns: dict[tuple[Role, int], tuple[Column, ...]] = {
        (Role.OWN, 0): ((number[table.initial], *(-1 for _ in states[1:])),)
    }
    stays = tuple(range(len(table.states)))
    for event, part in enumerate(parts, start=1):
        columns[Role.SYSTEM if part.roles == _SYSTEM else Role.OWN, event] = tuple(
            (-1, *(-1 if state in watcher.at_rest else number[column[state]] for state in alive), -1)
            for column in table.columns.get((part.roles[0], part.event), (stays,))
        )
    return Table(f"following by {table.name}", states, 0, columns)


def _place(places: Sequence[tuple[Role, ...]], parts: Sequence[_Part]) -> Table:
    """The machine of a message that knows what it is to the followed one, and has its events so."""
    states = (_UNKNOWN, *(" or ".join(role.name.lower() for role in roles) for roles in places))
    number = {role: at for at, roles in enumerate(places, start=1) for role in roles}
    # A message hears of an earlier one that it is followed: so it is a later one to that.
    told = {Role.OWN: Role.OWN, Role.EARLIER: Role.LATER, Role.LATER: Role.EARLIER}
    columns: dict[tuple[Role, int], tuple[Column, ...]] = {
        (role, 0): ((number[told[role]], *(-1 for _ in places)),) for role in _ROLES
    }
    for event, part in enumerate(parts, start=1):
        if part.roles != _SYSTEM:
            here = {number[role] for role in part.roles}
            columns[Role.OWN, event] = (tuple(at if at in here else -1 for at in range(len(states))),)
    return Table("place", states, 0, columns)


def _renumbered(table: Table, numbers: Mapping[int, Sequence[int]]) -> Table:
    columns = {(role, new): column for (role, event), column in table.columns.items() for new in numbers[event]}
    return dataclasses.replace(table, columns=columns)


def _of_parts(ghost: Ghost, numbers: Mapping[int, Sequence[int]]) -> Ghost:
    up, down, reset = (
        frozenset(itertools.chain.from_iterable(numbers[event] for event in events))
        for events in (ghost.moves.up, ghost.moves.down, ghost.moves.reset)
    )
    return dataclasses.replace(ghost, moves=Moves(up, down, reset))


def _watching(table: Table, parts: Sequence[_Part]) -> Table:
    """What watches a message, if that is the one that is followed."""
    states = (_UNKNOWN, "another is followed", *table.states)
    rest = range(1, len(states))
    columns: dict[tuple[Role, int], tuple[Column, ...]] = {
        (role, 0): ((table.initial + _ADDED if role is Role.OWN else 1, *rest),) for role in _ROLES
    }
    for event, part in enumerate(parts, start=1):
        columns |= {
            (role, event): tuple((0, 1, *(state + _ADDED for state in column)) for column in heard)
            for role in (_SYSTEM if part.roles == _SYSTEM else _ROLES)
            if (heard := table.columns.get((role, part.event)))
        }
    return dataclasses.replace(table, states=states, initial=0, columns=columns)


@dataclasses.dataclass(frozen=True, slots=True)
class _Met:
    """States of the system, each with one of a message that a view had it met with."""

    machines: Ints
    messages: Ints


class Followed:
    """Finished pairs of a system in which a message is followed, and what watches it there and in the whole."""

    def __init__(self, pairs: Examined, following: Watcher, watcher: Watcher) -> None:
        self._pairs = pairs
        self._following = following
        self._watcher = watcher

    def shown(self, related: Related) -> str:
        """How the watcher shows its anomaly, a clause; empty if it does not.

        ``related`` are views of the system that follows nothing.
        """
        shown = shown_by(self._pairs, dataclasses.replace(self._following, at_rest=frozenset()))
        if shown is not None:
            return shown.reason
        if any(self._may_rest(related, state) for state in sorted(self._watcher.at_rest)):
            return f"nothing is seen to take {self._watcher.table.name} back from its mark, at the level followed"
        return ""

    def _may_rest(self, related: Related, state: int) -> bool:
        """Whether neither who brought a mark about has to take it back before all is at rest, nor the message has."""
        by_cause, own = self._met(state + _ADDED)
        return all(
            len(met.machines) and self._stays(related, met, state, roles)
            for met, roles in ((by_cause, (Role.EARLIER, Role.LATER)), (own, (Role.OWN,)))
            if met is not None
        )

    def _stays(self, related: Related, met: _Met, state: int, roles: tuple[Role, ...]) -> bool:
        """Whether a message may be at rest after it was ``met`` and has taken no mark back since."""
        views = self._pairs.views
        machines, messages = views.spaces.machines, views.spaces.message
        begun = related.views.having(machines, messages, *views.of_all_states(met.machines, met.messages))
        return related.stays(begun, _taking_back(self._watcher, state, roles))

    def _met(self, state: int) -> tuple[_Met | None, _Met]:
        """The cause of a mark, if it has one, and the message, as they are where it is reached (with its cause)."""
        views, causes = self._pairs.views, self._pairs.causes(self._following)
        waiting = causes.of_mark(state)
        found = [
            watched(self._pairs.graph, self._following.table, slot)[:, state]
            if waiting is None
            else causes.in_slot(waiting, slot)[:, state]
            for slot in (0, 1)
        ]
        other, own = (
            _distinct(
                [(views.machines[here], views.slots[slot][here]) for slot, here in zip(slots, found, strict=True)]
            )
            for slots in ((1, 0), (0, 1))
        )
        return None if waiting is None else other, own


def _distinct(parts: Sequence[tuple[Ints, Ints]]) -> _Met:
    packed = np.unique(np.concatenate([(machines << BITS) | messages for machines, messages in parts]))
    return _Met(packed >> BITS, packed & ((1 << BITS) - 1))


def _taking_back(watcher: Watcher, state: int, roles: tuple[Role, ...]) -> Table:
    """What watches whether a message does, in each of ``roles`` to the marked one, what takes back the mark."""
    columns = watcher.table.columns
    taking = [
        event
        for event in sorted({event for _, event in columns})
        if all(
            (role, event) in columns and state not in {column[state] for column in columns[role, event]}
            for role in roles
        )
    ]
    return Table("taken back", ("no", "yes"), 0, {(Role.OWN, event): ((1, 1),) for event in taking})
