"""Symbolic search of a network: how many states and transitions, which anomalies, and by how short a run."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from ackfsm.checking.explore.reduction.slice import Slicer
from ackfsm.checking.explore.search.encode import PackedNetwork
from ackfsm.checking.explore.symbolic.counting import count_states, count_transitions, local_states
from ackfsm.checking.explore.symbolic.encode import columns_of, event_system, moves
from ackfsm.checking.explore.symbolic.forest import Forest, ForestLimits, LimitReached
from ackfsm.checking.explore.symbolic.order import level_order
from ackfsm.checking.network import Network, NetworkEvent
from ackfsm.terms import DefectError, check_number


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SymbolicOptions:
    """How a state space is searched with decision diagrams.

    Attributes:
        max_nodes: the search ends with what it knows before it makes more nodes; ``None``: no limit.
        max_memory: it ends before the diagrams take more bytes, those included that are copied as they grow.
        witnesses: a shortest run is looked for to each anomaly that is reached.
        known: but to none of these, of which one is known.
        progress: called now and then with the number of nodes made so far.
        compiled: compiled code is used if Numba is there; without it plain Python does the same, slowly.

    Raises :class:`ackfsm.terms.InputError` for limits that are no whole numbers from 1.
    """

    max_nodes: int | None = None
    max_memory: int | None = None
    witnesses: bool = False
    known: Collection[str] = ()
    progress: Callable[[int], None] | None = None
    compiled: bool = True

    def __post_init__(self) -> None:
        for name in ("max_nodes", "max_memory"):
            check_number(name, getattr(self, name))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SymbolicExploration:
    """The result of a symbolic search; ``None`` where it stopped before it knew.

    ``states`` and ``transitions`` are those of a search state by state (:class:`ackfsm.checking.explore.Exploration`),
    and ``at_rest`` counts the states in which nothing is left to happen but what may never happen.  ``reachable`` has
    each anomaly, ``witnesses`` a shortest run to each that is reached, if these were asked for.  ``stopped_by`` is
    ``max_nodes``, ``max_memory``, or ``memory`` where the machine had no more to give or no more nodes can be numbered.
    ``nodes`` were made in all, ``diagram`` of them are the states; ``bytes`` is what all of them took.
    """

    states: int | None
    transitions: int | None
    at_rest: int | None
    reachable: Mapping[str, bool | None]
    witnesses: Mapping[str, tuple[NetworkEvent, ...]]
    stopped_by: str | None
    compiled: bool
    nodes: int
    bytes: int = dataclasses.field(compare=False)

    @property
    def complete(self) -> bool:
        """Whether all that was asked for is known."""
        return self.stopped_by is None


_DEFAULT = SymbolicOptions()


def explore_symbolically(network: Network, options: SymbolicOptions = _DEFAULT) -> SymbolicExploration:
    """Find all states of ``network`` at once, as a decision diagram.

    The states are those of the slice that :func:`ackfsm.checking.explore.explore` searches without reductions.
    """
    sliced = Slicer(network).slice()
    instances = [network.instances[number] for number, _ in sliced.origin.numbers]
    search = _Search(sliced.packed, level_order(sliced.packed, instances), options)
    search.run()
    return search.result(sliced.events)


class _Search:
    """One search in progress; its results stay if a limit ends it."""

    def __init__(self, packed: PackedNetwork, order: Sequence[int], options: SymbolicOptions) -> None:
        self.packed = packed
        self.order = order
        self.options = options
        self.level = {machine: level for level, machine in enumerate(order)}
        self.marks = list(_marks(packed))
        tests = [(mark.machine, mark.states) for mark in self.marks]
        self.events = len(packed.free)
        self.forest = Forest(
            event_system(packed, order, tests),
            ForestLimits(max_nodes=options.max_nodes, max_memory=options.max_memory),
            compiled=options.compiled and importlib.util.find_spec("numba") is not None,
            progress=options.progress,
        )
        self.initial = [packed.initial[machine] for machine in order]
        self.states: int | None = None
        self.transitions: int | None = None
        self.at_rest: int | None = None
        self.reachable: dict[str, bool | None] = dict.fromkeys(packed.anomalies)
        self.runs: dict[str, list[int]] = {}
        self.stopped_by: str | None = None

    def run(self) -> None:
        """Find everything, or as much as the limits allow."""
        try:
            self._run()
        except LimitReached as limit:
            self.stopped_by = str(limit)

    def result(self, events: Sequence[NetworkEvent]) -> SymbolicExploration:
        """Return the result, by the ``events`` of the network."""
        return SymbolicExploration(
            states=self.states,
            transitions=self.transitions,
            at_rest=self.at_rest,
            reachable=self.reachable,
            witnesses={anomaly: tuple(events[event] for event in run) for anomaly, run in self.runs.items()},
            stopped_by=self.stopped_by,
            compiled=self.forest.compiled,
            nodes=self.forest.nodes,
            bytes=self.forest.bytes,
        )

    def _run(self) -> None:
        forest = self.forest
        reached = forest.saturated(self.initial)
        self.states = count_states(forest, reached)
        self.transitions = count_transitions(forest, reached, self.events)
        self._judge(reached, at_rest=False)
        rest = self._quiescent(reached)
        self.at_rest = count_states(forest, rest)
        self._judge(rest, at_rest=True)
        self.reachable = {anomaly: bool(known) for anomaly, known in self.reachable.items()}
        if self.options.witnesses:
            for anomaly, known in self.reachable.items():
                if known and anomaly not in self.options.known:
                    self.runs[anomaly] = self._shortest_run(reached, self._showing(anomaly, reached, rest))

    def _quiescent(self, reached: int) -> int:
        """The states in which every event is refused that does not wait for ever at rest.

        The events of the last message come first: what they leave has few nodes at the highest levels.
        """
        must = [event for event in range(self.events) if not self.packed.free[event]]
        for event in sorted(must, key=lambda event: -self.forest.events.top[event]):
            reached = self.forest.prune(event, reached)
        return reached

    def _judge(self, states: int, *, at_rest: bool) -> None:
        """Note the anomalies that some of the states show: all states of a level occur in some of them."""
        occurring = local_states(self.forest, states)
        for mark in self.marks:
            if mark.at_rest is at_rest and any(mark.states[state] for state in occurring[self.level[mark.machine]]):
                self.reachable[mark.anomaly] = True

    def _showing(self, anomaly: str, reached: int, rest: int) -> int:
        """The states that show an anomaly."""
        found = 0
        for number, mark in enumerate(self.marks):
            if mark.anomaly == anomaly:
                states = self.forest.prune(self.events + number, rest if mark.at_rest else reached)
                found = self.forest.union(found, states)
        return found

    def _shortest_run(self, reached: int, targets: int) -> list[int]:
        """Return the events of a shortest run into ``targets``, some of them reached.

        Backward layer by layer: the states from which so many steps may lead there, until the first one is among them.
        """
        layers = [targets]
        while not self.forest.contains(layers[-1], self.initial):
            layers.append(self._before(layers[-1], reached))
            if not layers[-1]:
                raise DefectError("no run leads to a state that was reached")
        run, state = list[int](), self.initial
        for layer in reversed(layers[:-1]):
            event, state = self._step_into(layer, state)
            run.append(event)
        return run

    def _before(self, layer: int, reached: int) -> int:
        """The states of ``reached`` from which an event leads into the layer."""
        found = 0
        for event in self._moving:
            found = self.forest.union(found, self.forest.preimage(event, layer, reached))
        return found

    def _step_into(self, layer: int, state: Sequence[int]) -> tuple[int, list[int]]:
        """An event that leads from the state into the layer, and where."""
        for event, columns in self._moving.items():
            after = list(state)
            for level, column in columns.items():
                after[level] = column[state[level]]
            if min(after) >= 0 and self.forest.contains(layer, after):
                return event, after
        raise DefectError("no event leads into a layer that was found backward")

    @functools.cached_property
    def _moving(self) -> Mapping[int, Mapping[int, tuple[int, ...]]]:
        """The events that move something, with their columns by level from 0."""
        every = {event: columns_of(self.packed, event) for event in range(self.events)}
        return {
            event: {self.level[machine]: column for machine, column in columns.items()}
            for event, columns in every.items()
            if moves(columns)
        }


class _Mark(NamedTuple):
    """Those states of a machine that show an anomaly."""

    machine: int
    anomaly: str
    at_rest: bool
    states: tuple[bool, ...]


def _marks(packed: PackedNetwork) -> Iterator[_Mark]:
    for machine, first in zip(packed.observers, packed.mark, strict=True):
        for at_rest, shown in ((False, packed.always), (True, packed.at_rest)):
            bits = shown[first : first + packed.size[machine]]
            for number, anomaly in enumerate(packed.anomalies):
                states = tuple(bool(bit >> number & 1) for bit in bits)
                if any(states):
                    yield _Mark(machine, anomaly, at_rest, states)
