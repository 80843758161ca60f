"""The searches of a check that use decision diagrams.

Breadth first, state by state, the nearest anomalies are met first, each by a shortest run; diagrams count and decide
everything, and find backward what is far.  The two are held against each other: where they differ, there is no answer.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable
from typing import Final

from ackfsm.checking.explore.search.explore import Exploration, explore
from ackfsm.checking.explore.search.options import SearchEngine, SearchOptions
from ackfsm.checking.explore.symbolic.search import SymbolicExploration, SymbolicOptions, explore_symbolically
from ackfsm.checking.network import Network
from ackfsm.terms import DefectError

NEAR_STATES: Final = 1 << 20
"""So many states are met one by one, for the shortest runs to what is near, before there are diagrams."""

FEW_STATES: Final = 1 << 24
"""A space of so many states is searched state by state (docs/decisions/symbolic.md)."""

_NEAR_STATES_IN_PYTHON: Final = 1 << 13


def explore_with_diagrams(
    network: Network,
    /,
    *,
    max_states: int | None = None,
    max_memory: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Exploration:
    """Find what :func:`ackfsm.checking.explore.explore` finds without reductions, and how many states are at rest.

    No more than ``max_states`` states are met one by one, and no more nodes are made; neither takes more than
    ``max_memory`` bytes.  If the limits suffice for a search state by state alone, its result is returned.  Where a
    limit ends the search, an anomaly counts as reached only with a run to it; ``states`` and ``transitions`` are then
    those that were met one by one, unless all had been counted before.  ``progress`` is called with the states that
    are met one by one.

    Raises what :func:`ackfsm.checking.explore.explore` raises, and :class:`ackfsm.terms.DefectError` if the two ways of
    searching differ.
    """
    few = NEAR_STATES if _has_numba() else _NEAR_STATES_IN_PYTHON
    near = explore(
        network,
        SearchOptions(
            max_states=few if max_states is None else min(few, max_states),
            max_memory=max_memory,
            workers=1,
            only_witnesses=True,
            progress=progress,
        ),
    )
    return _after(near, network, SymbolicOptions(max_nodes=max_states, max_memory=max_memory))


def explore_by_size(  # noqa: PLR0913 - the limits of a search, and where it changes
    network: Network,
    /,
    *,
    max_states: int | None = None,
    max_memory: int | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
    few: int = FEW_STATES,
) -> Exploration:
    """Search state by state as long as there are few states, and with diagrams where there are more.

    Where diagrams do not get to the end either, the search state by state goes on after all, so no less is known than
    without them.  With ``max_states``, or without Numba, it is the only one.  The options are those of
    :class:`~ackfsm.checking.explore.SearchOptions`, and what is raised is what :func:`explore_with_diagrams` raises.
    """
    whole = SearchOptions(max_states=max_states, max_memory=max_memory, workers=workers, progress=progress)
    if max_states is not None or not _has_numba():
        return explore(network, whole)
    begun = explore(network, dataclasses.replace(whole, max_states=few))
    if begun.complete:
        return begun
    found = _after(begun, network, SymbolicOptions(max_memory=max_memory))
    if found.complete or begun.stopped_by != "max_states":
        return found
    slow = explore(network, whole)
    return slow if slow.complete else found


def _after(near: Exploration, network: Network, options: SymbolicOptions) -> Exploration:
    """What diagrams find, and the runs that are known already from the states that are ``near``."""
    found = explore_symbolically(network, dataclasses.replace(options, witnesses=True, known=tuple(near.witnesses)))
    _compare(near, found)
    if near.complete and not found.complete:
        return near
    runs = {**found.witnesses, **near.witnesses}
    return Exploration(
        states=near.states if found.states is None else found.states,
        transitions=near.transitions if found.transitions is None else found.transitions,
        complete=found.complete,
        witnesses={anomaly: runs[anomaly] for anomaly in found.reachable if anomaly in runs},
        depth=near.depth,
        stopped_by="max_states" if found.stopped_by == "max_nodes" else found.stopped_by,
        compiled=found.compiled,
        bytes=max(near.bytes, found.bytes),
        engine=SearchEngine.SYMBOLIC,
        at_rest=found.at_rest,
        unreachable=frozenset(anomaly for anomaly, reached in found.reachable.items() if reached is False),
    )


def _compare(near: Exploration, found: SymbolicExploration) -> None:
    """Raise :class:`DefectError` where the states that are near contradict the diagrams."""
    for what, met, counted in _counts(near, found):
        if counted is not None and (counted < met or (near.complete and counted != met)):
            raise DefectError(f"decision diagrams count {counted:,} {what}, and {met:,} were met one by one")
    for anomaly, reached in found.reachable.items():
        if reached is False and anomaly in near.witnesses:
            raise DefectError(f"there is a run to {anomaly}, and decision diagrams know of none")
        if reached and near.complete and anomaly not in near.witnesses:
            raise DefectError(f"decision diagrams know of a run to {anomaly}, and all states were met without it")


def _counts(near: Exploration, found: SymbolicExploration) -> tuple[tuple[str, int, int | None], ...]:
    return ("states", near.states, found.states), ("transitions", near.transitions, found.transitions)


def _has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None
