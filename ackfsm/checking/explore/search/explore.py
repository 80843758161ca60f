"""Search a whole state space, and return the states, transitions and witnesses."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ackfsm.checking.explore.reduction.slice import Origin, SlicedNetwork, Slicer
from ackfsm.checking.explore.search.encode import PackedNetwork, pack
from ackfsm.checking.explore.search.options import Reduction, SearchEngine, SearchOptions
from ackfsm.checking.explore.search.search import Search
from ackfsm.checking.explore.search.self_check import self_check
from ackfsm.checking.network import Network, NetworkEvent
from ackfsm.terms import HostError

_DEFAULT = SearchOptions()


@dataclasses.dataclass(frozen=True, slots=True)
class Exploration:
    """The result of a search.

    ``complete`` is false if it stopped at a limit, ``stopped_by`` (``max_states``, ``max_memory``, or ``memory`` where
    the machine had no more to give); what was not reached is then not known to be unreachable.  ``witnesses`` has a
    shortest sequence of events for each anomaly (or other thing that was observed) that was reached.  ``depth`` is
    the greatest distance of a state from the first one.  ``compiled`` tells whether compiled code took part, ``bytes``
    what the states took.  With ``reductions`` states are left out, and a witness is perhaps not a shortest one.

    With ``engine`` symbolic, ``depth`` is that of the states that were met one by one, ``at_rest`` how many states
    there are in which nothing is left to happen but what may never happen (``None``: not counted), and ``unreachable``
    has the anomalies that are known to be so, whether or not the search is complete.
    """

    states: int
    transitions: int
    complete: bool
    witnesses: dict[str, tuple[NetworkEvent, ...]]
    depth: int
    stopped_by: str | None
    compiled: bool
    bytes: int = dataclasses.field(compare=False)
    reductions: tuple[Reduction, ...] = ()
    engine: SearchEngine = SearchEngine.LOCAL
    at_rest: int | None = None
    unreachable: frozenset[str] = frozenset()


def explore(network: Network, options: SearchOptions = _DEFAULT) -> Exploration:
    """Search the whole state space of ``network`` breadth first.

    Before a search says that it has found everything, some of its states are compared with the tables
    (docs/decisions/search.md).

    Raises :class:`ackfsm.terms.DefectError` if the tables and the search differ, :class:`ackfsm.terms.InputError` if
    the network is too large, and :class:`ackfsm.terms.HostError` where memory ends and not even what was found can be
    reported.
    """
    search, events = finished_search(network, options)
    return exploration_of(search, events)


def explore_sliced(sliced: SlicedNetwork, options: SearchOptions = _DEFAULT) -> Exploration:
    """As :func:`explore`, over the slice of a network."""
    return exploration_of(_run(sliced.packed, options, sliced.origin), sliced.events)


def explore_packed(
    packed: PackedNetwork, events: Sequence[NetworkEvent], options: SearchOptions = _DEFAULT
) -> Exploration:
    """As :func:`explore`, over a packed network with these ``events``, and without the comparison with the tables."""
    return exploration_of(_run(packed, options), events)


def finished_search(network: Network, options: SearchOptions) -> tuple[Search, Sequence[NetworkEvent]]:
    """A search of ``network`` that has come to its end, and the events that it knows by number.

    Only with ``options.every_step`` the search knows all machines and events of ``network``, by their numbers there.
    """
    if options.every_step:
        packed, origin = pack(network), Origin.whole(network)
    else:
        sliced = Slicer(network).slice()
        packed, origin = sliced.packed, sliced.origin
    return _run(packed, options, origin), origin.events


def _run(packed: PackedNetwork, options: SearchOptions, origin: Origin | None = None) -> Search:
    with Search(packed, options) as search:
        while search.has_work() and not (options.only_witnesses and search.has_all_witnesses):
            _expand_batch(search)
            if options.progress is not None:
                options.progress(search.found_states)
        if origin is not None and search.complete:
            self_check(search, origin)
    return search


def _expand_batch(search: Search) -> None:
    try:
        search.expand_batch()
    except MemoryError:
        raise HostError(
            f"there is not enough memory to go on after {search.found_states:,} states in {search.depth} steps; "
            "to see what was found, stop before with --max-memory or --max-states, or ask about less"
        ) from None


def exploration_of(search: Search, events: Sequence[NetworkEvent]) -> Exploration:
    """Return the result of ``search``; ``events`` are the events of its network."""
    return Exploration(
        states=search.found_states,
        transitions=search.transitions,
        complete=search.complete,
        witnesses={
            anomaly: tuple(events[event] for event in search.path(violation))
            for anomaly, violation in zip(search.packed.anomalies, search.first_violations, strict=True)
            if violation is not None
        },
        depth=search.depth,
        stopped_by=search.stopped_by,
        compiled=search.arrays.is_compiled,
        bytes=search.bytes,
        reductions=tuple(dict.fromkeys(search.options.reductions)),
    )
