"""Whether two systems have the same traces over some of their events.

A trace is a sequence of observable events, all other events being hidden.  That a system may become quiescent counts as
an observable event, so of two equal systems neither can end where the other one cannot.

Both systems are determinised on the fly: after a trace a system may be in any of a *set*
of states.  Pairs of such sets are visited breadth first, so that the first difference is found by a
shortest trace; if every pair that can be reached allows the same events, there is none.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Collection, Iterable, Iterator

from ackfsm.checking.explore.search.encode import pack
from ackfsm.checking.explore.search.graph import StateGraph
from ackfsm.checking.network import Network
from ackfsm.terms import Fault, InputError, check_names, check_number
from ackfsm.text import quoted

AT_REST = "at rest"
"""What is observed when nothing can happen any more but faults and what an application may choose to do."""

_Set = frozenset[int]


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison.

    ``equal`` is ``None`` if it stopped at its limit.  ``pairs`` counts the pairs of sets of states that
    were compared, ``states`` the states of each system.  Where they differ, ``trace`` is a shortest
    sequence of observable events that both can do up to its last, and only the system ``only``
    (``left`` or ``right``) can do to the end.
    """

    equal: bool | None
    pairs: int
    states: tuple[int, int]
    trace: tuple[str, ...] = ()
    only: str | None = None


def compare(left: Network, right: Network, observable: Collection[str], *, max_states: int | None = None) -> Comparison:
    """Compare all traces of ``left`` and ``right`` over the events named in ``observable``, and all faults.

    Raises :class:`ackfsm.terms.InputError` unless ``observable`` are names and ``max_states`` a whole number from 1.
    """
    check_names("observable", observable)
    check_number("max_states", max_states)
    graphs = (_ObservableGraph(left, observable), _ObservableGraph(right, observable))
    return _DeterminizedProduct(graphs, max_states).run([(graphs[0].closed([0]), graphs[1].closed([0]))])


def compare_after(
    network: Network, events: tuple[str, str], observable: Collection[str], *, max_states: int | None = None
) -> Comparison:
    """Compare what follows one event with what follows another, in every state in which both can happen.

    ``events`` are two labels, ``acknowledge(m1)`` and ``acknowledge(m2)``.  The two ways begin in
    the same state, so the comparison is of what the events do and not of how they came to be possible.

    Raises :class:`ackfsm.terms.InputError` as :func:`compare`, and for a label that no event of the network has: where
    nothing can be compared nothing differs.
    """
    check_names("observable", observable)
    check_number("max_states", max_states)
    if strange := sorted(set(events) - {event.label for event in network.events}):
        raise InputError(f"this system has no event {quoted(strange[0])} to compare what follows it")
    graph = _ObservableGraph(network, observable)
    found = graph.all_states(max_states)
    if not found:
        return Comparison(None, 0, (len(graph.states),) * 2)
    starts = [
        (graph.closed([after[events[0]]]), graph.closed([after[events[1]]]))
        for state in range(len(graph.states))
        for after in [dict(graph.labelled(state))]
        if set(events) <= after.keys()
    ]
    return _DeterminizedProduct((graph, graph), max_states).run(starts)


class _ObservableGraph:
    """The states of a network, and what can be seen of its events."""

    def __init__(self, network: Network, observable: Collection[str]) -> None:
        seen = frozenset(observable) | frozenset(Fault)
        self.events = [(event.label, event.name in seen, event.may_never_happen) for event in network.events]
        self._graph = StateGraph(pack(network))
        self.states = self._graph.states
        self._hidden: dict[int, list[int]] = {}
        self._closures: dict[_Set, _Set] = {}
        self._seen: dict[int, list[tuple[str, int]]] = {}
        self._resting: dict[int, bool] = {}

    def labelled(self, state: int) -> Iterator[tuple[str, int]]:
        """Every event that can happen in ``state``, by its label, with the state after it."""
        for event, after in self._graph.successors(state):
            yield self.events[event][0], after

    def _expand(self, state: int) -> None:
        hidden, seen, resting = [], [], True
        for event, after in self._graph.successors(state):
            label, observable, free = self.events[event]
            resting = resting and free
            if observable:
                seen.append((label, after))
            else:
                hidden.append(after)
        self._hidden[state], self._seen[state], self._resting[state] = hidden, seen, resting

    def closed(self, states: Iterable[int]) -> _Set:
        """``states`` and all that hidden events lead to from them."""
        given = frozenset(states)
        if given not in self._closures:
            alone = len(given) == 1
            closures = (self.closed((state,)) for state in given)
            self._closures[given] = self._closed(given) if alone else frozenset().union(*closures)
        return self._closures[given]

    def _closed(self, states: _Set) -> _Set:
        found = set(states)
        waiting = list(found)
        while waiting:
            state = waiting.pop()
            if state not in self._hidden:
                self._expand(state)
            waiting += (new := [after for after in self._hidden[state] if after not in found])
            found.update(new)
        return frozenset(found)

    def moves(self, states: _Set) -> dict[str, _Set]:
        """What can be observed from a closed set of states, and the closed set after it."""
        after: dict[str, set[int]] = {}
        for state in states:
            for label, follower in self._seen[state]:
                after.setdefault(label, set()).add(follower)
            if self._resting[state]:
                after.setdefault(AT_REST, set()).add(state)
        return {label: self.closed(followers) for label, followers in after.items()}

    def all_states(self, max_states: int | None) -> bool:
        """Meet every state; false if there are more than ``max_states``."""
        state = 0
        while state < len(self.states):
            if max_states is not None and len(self.states) > max_states:
                return False
            for _ in self.labelled(state):
                pass
            state += 1
        return True


class _DeterminizedProduct:
    """The product of two determinised graphs, explored breadth first."""

    def __init__(self, graphs: tuple[_ObservableGraph, _ObservableGraph], max_states: int | None) -> None:
        self.left, self.right = graphs
        self.max_states = max_states
        self.reached: dict[tuple[_Set, _Set], tuple[tuple[_Set, _Set], str] | None] = {}

    def run(self, starts: Iterable[tuple[_Set, _Set]]) -> Comparison:
        for first, second in starts:
            self.reached.setdefault((first, second), None)
        waiting = deque(self.reached)
        while waiting:
            if self.max_states is not None and max(self._states()) > self.max_states:
                return Comparison(None, len(self.reached), self._states())
            pair = waiting.popleft()
            left, right = self.left.moves(pair[0]), self.right.moves(pair[1])
            if different := sorted(left.keys() ^ right.keys()):
                return self._differ(pair, different[0], "left" if different[0] in left else "right")
            for label in left:
                after = (left[label], right[label])
                if after not in self.reached:
                    self.reached[after] = (pair, label)
                    waiting.append(after)
        return Comparison(True, len(self.reached), self._states())  # noqa: FBT003 - the field is named by its place

    def _states(self) -> tuple[int, int]:
        return len(self.left.states), len(self.right.states)

    def _differ(self, pair: tuple[_Set, _Set], last: str, only: str) -> Comparison:
        trace, step = [last], self.reached[pair]
        while step is not None:
            trace.append(step[1])
            step = self.reached[step[0]]
        return Comparison(False, len(self.reached), self._states(), tuple(reversed(trace)), only)  # noqa: FBT003
