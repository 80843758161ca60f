"""What of a network can move: the same system over fewer machines, states and events, with the same behaviour.

Each machine alone gives a bound on its states: those that are reached if an event happens as soon as every
participant has a row for it in *some* state reached so far.  What lies beyond that bound is
reached in no interleaving, so leaving it out changes no state, no transition and no verdict.
:mod:`ackfsm.explore` does the same to packed integers; here names are kept, for people read what is exported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ackfsm.network import Instance, Network, NetworkEvent, Participant
from ackfsm.tables import EventRef, Fsm, Move

__all__ = ["trim"]


def trim(network: Network) -> Network:
    """``network`` without the states that are never reached, the events that never happen, and who never matters.

    A machine matters if it moves, or if its only state is an anomaly; it takes part in an event if it may refuse it
    or is moved by it.
    """
    reached, alive = _reach(network)
    kept = [i for i, instance in enumerate(network.instances) if _matters(instance, reached[i])]
    place = {old: new for new, old in enumerate(kept)}
    events = tuple(_event(network, network.events[e], reached, place) for e in sorted(alive))
    heard: dict[int, dict[EventRef, None]] = {new: {} for new in place.values()}
    for event in events:
        for part in event.participants:
            heard[part.instance][part.event] = None
    instances = tuple(_instance(network.instances[old], reached[old], tuple(heard[new])) for old, new in place.items())
    return dataclasses.replace(network, instances=instances, events=events)


def _reach(network: Network) -> tuple[list[set[str]], set[int]]:
    """The states that each machine may reach, and the numbers of the events that may happen: a least fixed point."""
    reached = [{state} for state in network.initial]
    alive: set[int] = set()
    before = -1
    while before != (before := sum(map(len, reached))):
        for number, event in enumerate(network.events):
            after = [_image(network.instances[part.instance].fsm, part, reached) for part in event.participants]
            if all(after):
                alive.add(number)
                for part, states in zip(event.participants, after, strict=True):
                    reached[part.instance] |= states
    return reached, alive


def _image(fsm: Fsm, part: Participant, reached: Sequence[set[str]]) -> set[str]:
    """The states after the event, from those of ``reached`` that have a row for it."""
    rows = (fsm.rows[state, part.event] for state in reached[part.instance])
    return {row.target for row in rows if row.move is not Move.REFUSE}


def _matters(instance: Instance, reached: set[str]) -> bool:
    return len(reached) > 1 or not reached.isdisjoint(instance.marked | instance.at_rest)


def _event(
    network: Network, event: NetworkEvent, reached: Sequence[set[str]], place: Mapping[int, int]
) -> NetworkEvent:
    parts = tuple(
        Participant(place[part.instance], part.event)
        for part in event.participants
        if part.instance in place and _decides(network.instances[part.instance].fsm, part, reached)
    )
    return dataclasses.replace(event, participants=parts)


def _decides(fsm: Fsm, part: Participant, reached: Sequence[set[str]]) -> bool:
    rows = (fsm.rows[state, part.event] for state in reached[part.instance])
    return any(row.move is Move.REFUSE or row.target != row.state for row in rows)


def _instance(instance: Instance, reached: set[str], alphabet: tuple[EventRef, ...]) -> Instance:
    fsm = instance.fsm
    states = tuple(state for state in fsm.states if state in reached)
    rows = {(state, event): fsm.rows[state, event] for event in alphabet for state in states}
    return dataclasses.replace(
        instance,
        fsm=Fsm(fsm.name, states, fsm.initial, alphabet, rows),
        marked=instance.marked & reached,
        at_rest=instance.at_rest & reached,
    )
