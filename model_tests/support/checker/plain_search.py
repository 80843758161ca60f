"""A plain breadth-first search: what the explorer has to find, sharing nothing with it but the network.

It asks :meth:`ackfsm.checking.network.Network.step`, which reads the rows of the tables by the names of states, and
keeps every state, as its names, in a dictionary.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ackfsm.checking.network import Network, NetworkEvent

State = tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Searched:
    """What a plain search found: the depth of every state and of the nearest state of every anomaly."""

    depth: Mapping[State, int]
    transitions: int
    anomalies: Mapping[str, int]


class TooLargeError(Exception):
    """There are more states than were wanted."""


def breadth_first(network: Network, most: int | None = None) -> Searched:
    """Search ``network`` with nothing but :meth:`Network.step`, a queue and a dictionary.

    Raises :class:`TooLargeError` if there are more than ``most`` states.
    """
    depth, transitions, anomalies = {network.initial: 0}, 0, dict[str, int]()
    queue = deque([network.initial])
    while queue:
        state = queue.popleft()
        steps = [(event, after) for event in network.events if (after := network.step(state, event)) is not None]
        transitions += len(steps)
        for anomaly in anomalies_in(network, state, at_rest=all(event.may_never_happen for event, _ in steps)):
            anomalies.setdefault(anomaly, depth[state])
        for _, after in steps:
            if after not in depth:
                depth[after] = depth[state] + 1
                queue.append(after)
        if most is not None and len(depth) > most:
            raise TooLargeError(f"more than {most} states")
    return Searched(depth, transitions, anomalies)


def anomalies_in(network: Network, state: Sequence[str], *, at_rest: bool) -> Iterator[str]:
    """The anomalies that ``state`` is."""
    for instance, name in zip(network.instances, state, strict=True):
        if instance.anomaly is not None and (name in instance.marked or (at_rest and name in instance.marked_at_rest)):
            yield instance.anomaly


def rests(network: Network, state: State) -> bool:
    """Whether nothing can happen in ``state`` but what may never happen."""
    must = (event for event in network.events if not event.may_never_happen)
    return all(network.step(state, event) is None for event in must)


def gone(network: Network, steps: Iterable[NetworkEvent]) -> State | None:
    """The state to which the ``steps`` lead one after the other, ``None`` if one of them is refused."""
    state = network.initial
    for event in steps:
        after = network.step(state, event)
        if after is None:
            return None
        state = after
    return state


def shows(network: Network, steps: Iterable[NetworkEvent], anomaly: str) -> bool:
    """Whether the ``steps`` can be taken one after the other, and end in a state that is the ``anomaly``."""
    state = gone(network, steps)
    return state is not None and anomaly in anomalies_in(network, state, at_rest=rests(network, state))
