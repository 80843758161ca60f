"""A network as flat lists of integers, from which reductions and the kernel work."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from ackfsm.checking.network import Instance, Network, NetworkEvent, Place


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
    instances = network.instances
    states = {number: instance.fsm.states for number, instance in enumerate(instances)}
    columns = (
        [(part.instance, instances[part.instance].fsm.column(part.event)) for part in event.participants]
        for event in network.events
    )
    return packed_as(network, states, network.events, columns)


def packed_as(
    network: Network,
    kept: Mapping[int, Sequence[str]],
    events: Sequence[NetworkEvent],
    columns: Iterable[Iterable[tuple[int, tuple[int, ...]]]],
) -> PackedNetwork:
    """The machines of ``network`` that are ``kept``, each with its states, under these ``events``.

    ``columns`` has for each event its participants, by their numbers in the network, with their columns over the states
    that are kept; each column is stored once.
    """
    instances = network.instances
    anomalies = tuple(dict.fromkeys(i.anomaly for i in instances if i.anomaly is not None))
    bit = {anomaly: 1 << number for number, anomaly in enumerate(anomalies)}
    index = {instance: number for number, instance in enumerate(kept)}
    packed = PackedNetwork(
        size=[len(states) for states in kept.values()],
        initial=[states.index(instances[i].fsm.initial) for i, states in kept.items()],
        component=components(instances[i] for i in kept),
        first=[0],
        free=[int(event.may_never_happen) for event in events],
        **{name: [] for name in ("instance", "offset", "table", "observers", "mark", "always", "at_rest")},
        anomalies=anomalies,
    )
    known: dict[tuple[int, ...], int] = {}
    for participants in columns:
        for i, column in participants:
            if column not in known:
                known[column] = len(packed.table)
                packed.table.extend(column)
            packed.instance.append(index[i])
            packed.offset.append(known[column])
        packed.first.append(len(packed.instance))
    for i, states in kept.items():
        if (anomaly := instances[i].anomaly) is not None:
            packed.observers.append(index[i])
            packed.mark.append(len(packed.always))
            packed.always.extend(bit[anomaly] * (state in instances[i].marked) for state in states)
            packed.at_rest.extend(bit[anomaly] * (state in instances[i].marked_at_rest) for state in states)
    return packed


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
