"""Finished views, and whether they show an anomaly: by a mark, or by a word at rest."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ackfsm.checking.unbounded._causes import NOTHING, Causes
from ackfsm.checking.unbounded._columns import Ghost, System, Watcher
from ackfsm.checking.unbounded._ghosts import LOST, closing_table, delayed_ghost, delayed_states
from ackfsm.checking.unbounded._localize import Shown
from ackfsm.checking.unbounded._reasons import NotProvedError
from ackfsm.checking.unbounded._related import RelatedRest, RelatedViews
from ackfsm.checking.unbounded._rest import Rest
from ackfsm.checking.unbounded._spaces import Ints
from ackfsm.checking.unbounded._steps import Level
from ackfsm.checking.unbounded._tables import Table
from ackfsm.checking.unbounded._views import Views
from ackfsm.checking.unbounded._watching import Graph, Reached, graph_of, watched

_MOST_PRODUCT = 200_000_000
"""So many pairs of a view and a state of a delayed ghost, a byte each: Qpid in transactions has 45 million."""


class Examined:
    """Finished views; the steps between them and the letters that they have at rest are made when asked for."""

    def __init__(self, system: System, views: Views) -> None:
        self.system = system
        self.views = views

    @functools.cached_property
    def graph(self) -> Graph:
        """The steps between the views."""
        return graph_of(self.views)

    @functools.cached_property
    def causes_of_messages(self) -> Causes:
        """What messages of pairs wait for."""
        return Causes(self.graph, NOTHING)

    def causes(self, watcher: Watcher) -> Causes:
        """What messages of pairs wait for, and ``watcher`` if it watches one."""
        of_messages = self.causes_of_messages
        return Causes(self.graph, watcher.table, of_messages) if watcher.of_message else of_messages

    @functools.cached_property
    def rest(self) -> Rest:
        """Their letters."""
        return Rest(self.views)


class Related:
    """Finished views of one message that ask a relation, and the pairs of this."""

    def __init__(self, pairs: Examined, views: RelatedViews) -> None:
        self._pairs = pairs
        self.messages = Examined(views.spaces.system, views)
        self.views = views

    @functools.cached_property
    def _rest(self) -> RelatedRest:
        return RelatedRest(self.views)

    def shown(self, watcher: Watcher) -> str:
        """How ``watcher`` shows its anomaly, a clause; empty if it does not."""
        reached = watched(self.messages.graph, watcher.table, 0 if watcher.of_message else None)
        causes = self._pairs.causes(watcher)
        marked = [state for state in sorted(watcher.marked) if reached[:, state].any()]
        slots = _slots(watcher, self._pairs.views.level) if marked else ()
        in_pairs = [watched(self._pairs.graph, watcher.table, slot) for slot in slots]
        is_marked = any(_is_marked(in_pairs, causes, state) for state in marked)
        if is_marked and not any(_is_within_a_bound(each, watcher) for each in (self.messages, self._pairs)):
            return f"{watcher.table.name} is marked in a view at the level {Level.RELATED}"
        if not watcher.at_rest:
            return ""
        if self._rest.shows(reached, watcher.at_rest, causes, of_system=not watcher.of_message):
            return f"{watcher.table.name} is marked in a view that may be at rest, at the level {Level.RELATED}"
        return ""

    def stays(self, begun: Ints, table: Table) -> bool:
        """Whether a message may be at rest after one of the views ``begun`` with ``table`` still in its first state."""
        reached = watched(self.messages.graph, table, 0, begun)
        causes = self._pairs.causes_of_messages
        return self._rest.shows(reached, frozenset({table.initial}), causes, of_system=True)


def _slots(watcher: Watcher, level: Level) -> Sequence[int | None]:
    """Where in a view ``watcher`` may watch: each of its messages, or the system."""
    return range(level.slots) if watcher.of_message else (None,)


def shown_by(examined: Examined, watcher: Watcher) -> Shown | None:
    """How ``watcher`` shows its anomaly; ``None`` if it does not.  Of pairs it has no marks at rest."""
    level = examined.views.level
    slots = _slots(watcher, level)
    reached = [watched(examined.graph, watcher.table, slot) for slot in slots]
    causes = examined.causes(watcher) if level is Level.PAIRS else None
    for state in sorted(watcher.marked):
        if _is_marked(reached, causes, state) and not _is_within_a_bound(examined, watcher):
            views = [np.flatnonzero(of_slot[:, state]) for of_slot in reached]
            reason = f"{watcher.table.name} is marked in a view at the level {level}"
            return Shown(reason, watcher, slots, state, views, ())
    if watcher.at_rest:
        word = examined.rest.first_word(reached[0], watcher.at_rest, of_system=not watcher.of_message)
        if word is not None:
            reason = f"{watcher.table.name} is marked in a view that may be at rest, at the level {level}"
            return Shown(reason, watcher, slots, word.state, [word.views], word.beside, at_rest=True)
    return None


def _is_marked(reached: Sequence[Reached], causes: Causes | None, state: int) -> bool:
    """Whether a state of what watches is reached; one that others bring about, in a pair with its cause."""
    if not any(of_slot[:, state].any() for of_slot in reached):
        return False
    mine = None if causes is None or len(reached) == 1 else causes.of_mark(state)
    return causes is None or mine is None or causes.has(mine, state)


def _is_within_a_bound(examined: Examined, watcher: Watcher) -> bool:
    """Whether a counter of the system that refuses to go on at the same bound is never below what ``watcher`` counts.

    If each message has counted at most as much of the one as of the other, so have all of them together.
    """
    ghost = watcher.ghost
    guards = [
        guard for guard in examined.system.ghosts if guard.exact and guard.refuses and guard.bound == watcher.bound
    ]
    if ghost is None:
        return False
    return any(_is_at_most(examined, ghost, guard.ghost) for guard in guards) or any(
        _is_at_most_delayed(examined, watcher, guard) for guard in guards
    )


def _is_at_most(examined: Examined, watching: Table, guarding: int) -> bool:
    """Whether in every view the ghost ``watching`` has counted at most what the ghost ``guarding`` has."""
    views = examined.views
    for slot, messages in enumerate(views.slots):
        reached = watched(examined.graph, watching, slot)
        guards = views.spaces.message.states[messages, guarding]
        if any(
            (reached[:, count] & ((count == LOST) | (guards < count))).any() for count in range(len(watching.states))
        ):
            return False
    return True


def _is_at_most_delayed(examined: Examined, watcher: Watcher, guard: Ghost) -> bool:
    """Whether ``watcher`` has never counted more than the delayed ghost of ``guard``, whose sum stays at the bound.

    The ghost has to be that of the counter while it is open, and the counter must not count up while it is closed.
    Raises :class:`NotProvedError` where there are too many views to tell.
    """
    states, moves, graph = delayed_states(), watcher.moves, examined.graph
    if moves is None or not (moves.reset - guard.moves.reset):
        return False
    if len(examined.views) * len(states) > _MOST_PRODUCT:
        raise NotProvedError(f"there are more than {_MOST_PRODUCT:,} pairs of a view and a state of a delayed ghost")
    of_system = frozenset(i for i, event in enumerate(examined.system.events) if not event.of_message)
    slots = range(len(examined.views.slots))

    def closes(event: int) -> bool:
        """Whether no message counts up after the event, until the ghost is open again."""
        table = closing_table(guard.moves, moves, event, of_system)
        return not any(watched(graph, table, slot)[:, table.states.index("wrong")].any() for slot in slots)

    closing = frozenset(filter(closes, guard.moves.reset))
    delayed = delayed_ghost(guard.moves, moves, closing, of_system)
    views = examined.views
    for slot, messages in enumerate(views.slots):
        reached = watched(graph, delayed, slot)
        counts = views.spaces.message.states[messages, guard.ghost]
        for number, state in enumerate(states):
            strange = LOST in {state.kept, state.watching} or state.watching > state.kept
            if (reached[:, number] & (strange | (counts != state.kept if not state.closed else False))).any():
                return False
    return True
