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
from collections.abc import Collection, Iterable, Iterator, Sequence

from ackfsm.checking.network import Network, NetworkEvent
from ackfsm.tables import EventRef, RowKind
from ackfsm.terms import Fault, InputError, check_names, check_number
from ackfsm.text import quoted

__all__ = ["AT_REST", "Comparison", "compare", "compare_after"]

AT_REST = "at rest"
"""What is observed when nothing can happen any more but faults and what an application may choose to do."""

_State = tuple[int, ...]
_Set = frozenset[int]
_Columns = Sequence[tuple[int, list[int]]]
_Event = tuple[str, bool, bool, _Columns]
"""An event's label, whether it is observed, whether it may never happen, and what it does to its participants."""


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
    """The states of a network, numbered as they are met, and where its events lead."""

    def __init__(self, network: Network, observable: Collection[str]) -> None:
        self.numbers = [
            {name: number for number, name in enumerate(instance.fsm.states)} for instance in network.instances
        ]
        seen = frozenset(observable) | frozenset(Fault)
        self.events: list[_Event] = [
            (event.label, event.name in seen, event.may_never_happen, self._columns(network, event))
            for event in network.events
        ]
        self._allowed = self._allowed_events(network)
        first = tuple(
            numbers[instance.fsm.initial] for numbers, instance in zip(self.numbers, network.instances, strict=True)
        )
        self.states: list[_State] = [first]
        self.known = {first: 0}
        self._hidden: dict[int, list[int]] = {}
        self._closures: dict[_Set, _Set] = {}
        self._seen: dict[int, list[tuple[str, int]]] = {}
        self._resting: dict[int, bool] = {}

    def _columns(self, network: Network, event: NetworkEvent) -> _Columns:
        """For each participant its place in a state and the state that follows each of its states, or -1."""
        return [(part.instance, self._column(network, part.instance, part.event)) for part in event.participants]

    def _column(self, network: Network, instance: int, event: EventRef) -> list[int]:
        fsm, numbers = network.instances[instance].fsm, self.numbers[instance]
        rows = [fsm.rows[name, event] for name in fsm.states]
        return [-1 if row.kind is RowKind.REFUSE else numbers[row.target] for row in rows]

    def _allowed_events(self, network: Network) -> list[list[int]]:
        """For each instance and each of its states the events that it does not refuse there, as a set of bits."""
        every = (1 << len(self.events)) - 1
        allowed = [[every] * len(instance.fsm.states) for instance in network.instances]
        for number, (_, _, _, columns) in enumerate(self.events):
            for place, column in columns:
                for state, after in enumerate(column):
                    if after < 0:
                        allowed[place][state] &= ~(1 << number)
        return allowed

    def _possible(self, here: _State) -> Iterator[_Event]:
        """The events that no participant refuses, in their order."""
        possible = (1 << len(self.events)) - 1
        for allowed, state in zip(self._allowed, here, strict=True):
            possible &= allowed[state]
        while possible:
            lowest = possible & -possible
            yield self.events[lowest.bit_length() - 1]
            possible ^= lowest

    def labelled(self, state: int) -> Iterator[tuple[str, int]]:
        """Every event that can happen in ``state``, by its label, with the state after it."""
        here = self.states[state]
        for label, _, _, columns in self._possible(here):
            yield label, self._number(_after(here, columns))

    def _expand(self, state: int) -> None:
        here, hidden, seen, resting = self.states[state], [], [], True
        for label, observable, free, columns in self._possible(here):
            resting = resting and free
            after = self._number(_after(here, columns))
            if observable:
                seen.append((label, after))
            else:
                hidden.append(after)
        self._hidden[state], self._seen[state], self._resting[state] = hidden, seen, resting

    def _number(self, state: _State) -> int:
        if state not in self.known:
            self.known[state] = len(self.states)
            self.states.append(state)
        return self.known[state]

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


def _after(state: _State, columns: _Columns) -> _State:
    after = list(state)
    for place, column in columns:
        after[place] = column[state[place]]
    return tuple(after)


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
