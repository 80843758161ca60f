"""The slice of a network that a search can depend on: its cone of influence, over-approximated machine by machine.

Each machine alone gives a bound on its states: those that are reached if an event happens as soon as every
participant has, in *some* state reached so far, a row for it.  What lies beyond the bound is reached in no
interleaving, so leaving it out changes no state, no transition and no witness of the whole system.
Configurations that differ only beyond the bound become the same network and need one search.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from ackfsm.checking.explore.reduction.columns import ParticipantColumn, bits, over_approximate
from ackfsm.checking.explore.search.encode import PackedNetwork, packed_as
from ackfsm.checking.network import Instance, Network, NetworkEvent, Participant
from ackfsm.tables import EventRef, Fsm


class Origin:
    """The origin of a search: a network, the machines of it that are searched, and its events.

    ``kept`` has for each such machine, in their order, the number of its instance and those of its states.
    """

    def __init__(self, network: Network, kept: Mapping[int, Sequence[int]], events: Sequence[NetworkEvent]) -> None:
        self.network = network
        self.events = events
        self._kept = kept

    @classmethod
    def whole(cls, network: Network) -> Origin:
        """The network as it is."""
        kept = {i: range(len(instance.fsm.states)) for i, instance in enumerate(network.instances)}
        return cls(network, kept, network.events)

    @functools.cached_property
    def numbers(self) -> Sequence[tuple[int, Mapping[str, int]]]:
        """For each machine of the search its instance, and the numbers that its states have there, by their names."""
        instances = self.network.instances
        return [
            (i, {instances[i].fsm.states[state]: number for number, state in enumerate(states)})
            for i, states in self._kept.items()
        ]


@dataclasses.dataclass(frozen=True, slots=True)
class SlicedNetwork:
    """A packed network without immovable machines; ``events`` are the remaining ones, in their order.

    ``origin`` tells which machines and states of the network remain.
    """

    packed: PackedNetwork
    events: tuple[NetworkEvent, ...]
    origin: Origin = dataclasses.field(compare=False, repr=False)

    @property
    def key(self) -> str:
        """The same for two networks exactly if they are the same but for the names of machines and states."""
        values = [getattr(self.packed, field.name) for field in dataclasses.fields(self.packed)]
        return hashlib.sha256(repr(([event.label for event in self.events], values)).encode()).hexdigest()


class Slicer:
    """A network with the columns of all participants, to be sliced once or for several sets of events."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.initial = [instance.fsm.states.index(instance.fsm.initial) for instance in network.instances]
        self._known: dict[Participant, ParticipantColumn] = {}
        self.columns = [list(map(self._column, event.participants)) for event in network.events]

    def _column(self, part: Participant) -> ParticipantColumn:
        if part not in self._known:
            column = self.network.instances[part.instance].fsm.column(part.event)
            self._known[part] = ParticipantColumn(part.instance, column)
        return self._known[part]

    def slice(self, admits: Callable[[NetworkEvent], bool] | None = None) -> SlicedNetwork:
        """The slice of the network if only events that ``admits`` accepts happen, by default all."""
        return self.parts(admits).packed()

    def parts(self, admits: Callable[[NetworkEvent], bool] | None = None) -> _Slice:
        """Which machines, states and events remain."""
        events = self.network.events
        candidates = [e for e, event in enumerate(events) if admits is None or admits(event)]
        start = (1 << state for state in self.initial)
        reached, alive = over_approximate(self.columns, start, candidates)
        kept = {i: list(bits(states)) for i, states in enumerate(reached) if self._matters(i, states)}
        return _Slice(self, list(bits(alive)), kept)

    def _matters(self, instance: int, reached: int) -> bool:
        """Whether the machine ever moves or shows an anomaly; one that stays in its state never refuses an event."""
        if reached & (reached - 1):
            return True
        machine = self.network.instances[instance]
        return any(machine.fsm.states[state] in machine.marked | machine.marked_at_rest for state in bits(reached))


def slice_network(network: Network) -> Network:
    """The slice of ``network``, with the names of machines and states.

    Without the states that are never reached, the events that never happen, the machines that neither move nor show an
    anomaly, and from each event the participants that neither move by it nor may refuse it.
    """
    return Slicer(network).parts().network()


class _Slice:
    """The events ``alive`` and the machines ``kept``, each with the numbers of the states that it may reach."""

    def __init__(self, slicer: Slicer, alive: Sequence[int], kept: dict[int, list[int]]) -> None:
        self.slicer = slicer
        self.alive = alive
        self.kept = kept
        self._index = {instance: index for index, instance in enumerate(kept)}
        self._number = {i: {state: n for n, state in enumerate(states)} for i, states in kept.items()}
        self._sliced: dict[ParticipantColumn, tuple[int, ...] | None] = {}

    def packed(self) -> SlicedNetwork:
        """In integers."""
        network = self.slicer.network
        events = tuple(network.events[event] for event in self.alive)
        states = {i: self._states(i) for i in self.kept}
        columns = (
            [
                (part.instance, column)
                for part in self.slicer.columns[event]
                if (column := self._column(part)) is not None
            ]
            for event in self.alive
        )
        return SlicedNetwork(packed_as(network, states, events, columns), events, Origin(network, self.kept, events))

    def _column(self, part: ParticipantColumn) -> tuple[int, ...] | None:
        """A column over the kept states; ``None`` if the machine is not kept, or neither moves nor refuses."""
        if part.instance not in self.kept:
            return None
        if part not in self._sliced:
            number, kept = self._number[part.instance], self.kept[part.instance]
            column = tuple(number.get(part.column[state], -1) for state in kept)
            self._sliced[part] = None if column == tuple(range(len(kept))) else column
        return self._sliced[part]

    def _states(self, instance: int) -> list[str]:
        states = self.slicer.network.instances[instance].fsm.states
        return [states[state] for state in self.kept[instance]]

    def network(self) -> Network:
        """With the names."""
        network = self.slicer.network
        events = tuple(map(self._event, self.alive))
        alphabets: dict[int, dict[EventRef, None]] = {i: {} for i in self._index.values()}
        for event in events:
            for part in event.participants:
                alphabets[part.instance][part.event] = None
        instances = tuple(self._instance(i, tuple(alphabets[index])) for i, index in self._index.items())
        return dataclasses.replace(network, instances=instances, events=events)

    def _event(self, number: int) -> NetworkEvent:
        event = self.slicer.network.events[number]
        return dataclasses.replace(event, participants=tuple(self._participants(event, number)))

    def _participants(self, event: NetworkEvent, number: int) -> Iterator[Participant]:
        for part, column in zip(event.participants, self.slicer.columns[number], strict=True):
            if self._column(column) is not None:
                yield Participant(self._index[part.instance], part.event)

    def _instance(self, number: int, alphabet: tuple[EventRef, ...]) -> Instance:
        instance, states = self.slicer.network.instances[number], tuple(self._states(number))
        fsm = instance.fsm
        rows = {(state, event): fsm.rows[state, event] for event in alphabet for state in states}
        return dataclasses.replace(
            instance,
            fsm=Fsm(fsm.name, states, fsm.initial, alphabet, rows),
            marked=instance.marked & frozenset(states),
            marked_at_rest=instance.marked_at_rest & frozenset(states),
        )
