"""A network as flat lists of integers, from which reductions and the kernel work."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Sequence

from ackfsm.checking.network import Instance, Network, Place


@dataclasses.dataclass(frozen=True, slots=True)
class PackedNetwork:
    """A network as flat lists of integers.

    Instance ``i`` has ``size[i]`` states, begins in ``initial[i]``, and belongs to ``component[i]``.
    Event ``e`` has the participants ``first[e]`` to ``first[e+1]``; participant ``p`` is ``instance[p]``,
    and its next state from state ``s`` is ``table[offset[p] + s]``, -1 if it refuses.
    ``free[e]`` is 1 for an event that may be enabled in a quiescent state.
    ``always[mark[i] + s]`` and ``at_rest[mark[i] + s]`` are the anomalies, as bits in the order of
    ``anomalies``, that state ``s`` of instance ``i`` of ``observers`` shows.
    """

    size: list[int]
    initial: list[int]
    component: list[int]
    first: list[int]
    free: list[int]
    instance: list[int]
    offset: list[int]
    table: list[int]
    observers: list[int]
    mark: list[int]
    always: list[int]
    at_rest: list[int]
    anomalies: tuple[str, ...]


def pack(network: Network) -> PackedNetwork:
    """Encode ``network``."""
    columns = ColumnTable()
    for event in network.events:
        for part in event.participants:
            fsm = network.instances[part.instance].fsm
            key = (id(fsm), part.event)
            if key not in columns.known:
                columns.store(key, fsm.column(part.event))
            columns.add(part.instance, key)
        columns.end_event()
    observers = [number for number, instance in enumerate(network.instances) if instance.anomaly is not None]
    observing = [network.instances[number] for number in observers]
    anomalies = anomalies_of(network)
    mark, always, at_rest = anomaly_marks(((instance, instance.fsm.states) for instance in observing), anomalies)
    return PackedNetwork(
        size=[len(instance.fsm.states) for instance in network.instances],
        initial=[instance.fsm.states.index(instance.fsm.initial) for instance in network.instances],
        component=components(network.instances),
        first=columns.first,
        free=[int(event.may_never_happen) for event in network.events],
        instance=columns.instance,
        offset=columns.offset,
        table=columns.table,
        observers=observers,
        mark=mark,
        always=always,
        at_rest=at_rest,
        anomalies=anomalies,
    )


def anomalies_of(network: Network) -> tuple[str, ...]:
    """The anomalies that machines of ``network`` observe, each once."""
    return tuple(dict.fromkeys(i.anomaly for i in network.instances if i.anomaly is not None))


class ColumnTable:
    """The participants of events, one after the other, with their columns; each column is stored once."""

    def __init__(self) -> None:
        self.first = [0]
        self.instance: list[int] = []
        self.offset: list[int] = []
        self.table: list[int] = []
        self.known: dict[Hashable, int] = {}

    def store(self, key: Hashable, column: Iterable[int]) -> None:
        """Store a column that is not ``known`` yet."""
        self.known[key] = len(self.table)
        self.table += column

    def add(self, instance: int, key: Hashable) -> None:
        """Add a participant of the present event, with the column that was stored as ``key``."""
        self.instance.append(instance)
        self.offset.append(self.known[key])

    def end_event(self) -> None:
        """All participants of the present event are added."""
        self.first.append(len(self.instance))


def anomaly_marks(
    observers: Iterable[tuple[Instance, Sequence[str]]], anomalies: Sequence[str]
) -> tuple[list[int], list[int], list[int]]:
    """``mark``, ``always`` and ``at_rest`` of the ``observers``, each with its states, in the bits of ``anomalies``."""
    bit: dict[str | None, int] = {anomaly: 1 << i for i, anomaly in enumerate(anomalies)}
    mark: list[int] = []
    always: list[int] = []
    at_rest: list[int] = []
    for instance, states in observers:
        mark.append(len(always))
        always += [bit[instance.anomaly] * (state in instance.marked) for state in states]
        at_rest += [bit[instance.anomaly] * (state in instance.marked_at_rest) for state in states]
    return mark, always, at_rest


def components(instances: Iterable[Instance]) -> list[int]:
    """For each instance the number of its component: the system, or a message with its copy; a consumer with its part.

    The two copies of a message are components of their own, and so is a copy of the only one: together they are in
    about as many states as the system.
    """
    places = [instance.place for instance in instances]
    given = [place.of for place in places]
    copies = {index for index in given if len(index) > 1}
    messages = {index[:1] for index in given if index}
    apart = len(copies) > len(messages) or len(messages) == 1
    numbers: dict[Place, int] = {}
    messages_of = [place if apart else place._replace(of=place.of[:1]) for place in places]
    return [numbers.setdefault(place, len(numbers)) for place in messages_of]
