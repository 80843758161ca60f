"""Is what watches within the bound of a counter that is emptied before it?  By delayed ghosts (Lemma 5 of spec/any.md).

A broken connection empties the counter of what is out, and the library still hands over what it holds of it, until
there is a new connection.  So the ghost of the counter keeps what it had for so long.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from typing import NamedTuple

from ackfsm.checking.certificates._system import LOST, Ghost, Moves, Part, Role
from ackfsm.checking.certificates._views import numbers_in
from ackfsm.checking.certificates._watching import Products


class _State(NamedTuple):
    """``kept`` is what the ghost of the counter has, or had as it was ``closed``; ``watching`` is that of the other."""

    closed: bool
    kept: int
    watching: int


_STATES = tuple(itertools.starmap(_State, itertools.product((False, True), range(LOST + 1), range(LOST + 1))))
_NUMBERS = {state: number for number, state in enumerate(_STATES)}
_NOT_CLOSED = _State(closed=True, kept=LOST, watching=LOST)
"""The message has counted up while the counter was closed."""


def is_within_delayed(products: Products, count: Ghost, guard: Ghost, at: int) -> bool:
    """Whether ``count`` never has more than the delayed ghost of ``guard``, the ghost number ``at`` of a message."""
    opening = _emptying(count) - _emptying(guard)
    closing = {event for event in _emptying(guard) if _stays_closed(products, _delayed(count, guard, {event}))}
    return bool(opening) and all(
        _is_delayed(_STATES[number], products.views.ghosts_of(view[1 + slot])[at])
        for slot, reached in _reached(products, _delayed(count, guard, closing))
        for view, states in zip(products.views.views, reached, strict=True)
        for number in numbers_in(states)
    )


def _is_delayed(state: _State, counted: int) -> bool:
    """Whether nothing is lost, what watches has no more than is kept, and what is open is what the message counted."""
    known = LOST not in {state.kept, state.watching} and state.watching <= state.kept
    return known and (state.closed or state.kept == counted)


def _stays_closed(products: Products, delayed: Part) -> bool:
    """Whether no message counts up between where ``delayed`` is closed and where it is opened."""
    wrong = 1 << _NUMBERS[_NOT_CLOSED]
    return not any(states & wrong for _, reached in _reached(products, delayed) for states in reached)


def _reached(products: Products, part: Part) -> Iterator[tuple[int, list[int]]]:
    return ((slot, products.reached(part, slot)) for slot in range(products.views.level.messages))


def _emptying(ghost: Ghost) -> frozenset[int]:
    """The events that make the ghost of every message 0."""
    empty: Moves = ((0,),) * (LOST + 1)
    return frozenset(event for (_, event), moves in ghost.part.moves.items() if moves == empty)


def _delayed(count: Ghost, guard: Ghost, closing: Collection[int]) -> Part:
    """The ghosts of two counters as one machine; that of ``guard`` is closed by ``closing`` events."""
    opening = _emptying(count) - _emptying(guard)
    keys = guard.part.moves.keys() | count.part.moves.keys()

    def after(state: _State, role: Role, event: int) -> _State:
        counted, watching = guard.part.moves.get((role, event)), count.part.moves.get((role, event))
        watched = state.watching if watching is None else watching[state.watching][0]
        if state == _NOT_CLOSED:
            return state
        if event in opening:
            return _State(closed=False, kept=0, watching=watched)
        if state.closed and counted is not None and counted[0] == (1,):
            return _NOT_CLOSED
        if state.closed or event in closing:
            return _State(closed=True, kept=state.kept, watching=watched)
        return _State(closed=False, kept=state.kept if counted is None else counted[state.kept][0], watching=watched)

    moves = {(role, event): tuple((_NUMBERS[after(state, role, event)],) for state in _STATES) for role, event in keys}
    return Part(f"delayed {guard.part.name}", tuple(map(str, _STATES)), 0, moves)
