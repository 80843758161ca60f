"""Which rows decide in a system, and who decides instead of those that do not.

A row *decides* if in some reachable state no other participant refuses its event.  Where others always refuse as well,
the row stands for totality: it says what the machine does with an event that cannot happen there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ackfsm.checking.explore import pack
from ackfsm.checking.explore.search.reached import state_table
from ackfsm.checking.explore.search.search import Search
from ackfsm.checking.network import Instance, Network, NetworkEvent, concerns
from ackfsm.tables import EventRef

RowOfEvent: TypeAlias = tuple[str, int, str]
"""Machine, line of the row, event as the table names it."""

Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]

NO_EVENT = "no such event"
"""Who decides instead where the configuration leaves nobody a row for the event, so that it does not exist."""


def deciding(network: Network) -> set[RowOfEvent]:
    """The rows that decide something in ``network``, all states of which are searched."""
    found: set[RowOfEvent] = set()
    columns, alphabets = _states(network), _alphabets(network)
    for event, refusals in _refusals(network, columns):
        total = np.sum(refusals, axis=0)
        for refused, part in zip(refusals, event.participants, strict=True):
            instance = network.instances[part.instance]
            for state in np.unique(columns[part.instance][total - refused == 0]):
                found.add(_row(instance, int(state), part.event))
        for number, called in _hearing(network, alphabets, event):
            for state in np.unique(columns[number][total == 0]):
                found.add(_row(network.instances[number], int(state), called))
    return found


def instead(network: Network, rows: Collection[RowOfEvent]) -> Mapping[RowOfEvent, frozenset[str]]:
    """For each of ``rows`` whose state is reached: the machines that refuse its event in all states in which it stands.

    There are none where several have to refuse in turn.
    """
    found: dict[RowOfEvent, frozenset[str]] = {}
    columns, alphabets = _states(network), _alphabets(network)
    for event, refusals in _refusals(network, columns):
        names = np.asarray([network.instances[part.instance].fsm.name for part in event.participants])
        places = {part.instance: number for number, part in enumerate(event.participants)}
        for number, called in _hearing(network, alphabets, event):
            for state in np.unique(columns[number]):
                row = _row(network.instances[number], int(state), called)
                if row in rows:
                    there = np.flatnonzero(refusals[:, columns[number] == state].all(axis=1))
                    also = frozenset(str(names[place]) for place in there if place != places.get(number))
                    found[row] = found.get(row, also) & also
    for row in _without_event(network, columns):
        if row in rows:
            found.setdefault(row, frozenset([NO_EVENT]))
    return found


def in_all(systems: Iterable[Mapping[RowOfEvent, frozenset[str]]]) -> Mapping[RowOfEvent, frozenset[str]]:
    """Who decides :func:`instead` in every one of these systems that has the event."""
    missing: dict[RowOfEvent, frozenset[str]] = {}
    found: dict[RowOfEvent, frozenset[str]] = {}
    for rows in systems:
        for row, others in rows.items():
            if NO_EVENT in others:
                missing[row] = others
            else:
                found[row] = found.get(row, others) & others
    return missing | found


_Alphabets: TypeAlias = Mapping[str, Sequence[tuple[int, EventRef]]]


def _alphabets(network: Network) -> _Alphabets:
    """By the name of an event the instances that have rows for it, and what these call it."""
    found: dict[str, list[tuple[int, EventRef]]] = defaultdict(list)
    for number, instance in enumerate(network.instances):
        for called in instance.fsm.alphabet:
            found[called.name].append((number, called))
    return found


def _hearing(network: Network, alphabets: _Alphabets, event: NetworkEvent) -> Iterator[tuple[int, EventRef]]:
    """The instances that have a row for ``event``: its participants, and those that let it pass in every state."""
    taking_part = {part.instance for part in event.participants}
    yield from ((part.instance, part.event) for part in event.participants)
    for number, called in alphabets.get(event.name, ()):
        if number not in taking_part and _hears(network, network.instances[number], called, event):
            yield number, called


def _states(network: Network) -> Sequence[Ints]:
    """For each instance its state in every state of the system."""
    with Search(pack(network)) as search:
        while search.has_work():
            search.expand_batch()
        return list(state_table(search).astype(np.int64).T)


def _refusals(network: Network, columns: Sequence[Ints]) -> Iterator[tuple[NetworkEvent, Bools]]:
    """For each event and each of its participants whether that refuses, in every state of the system."""
    packed = pack(network)
    table = np.asarray(packed.table, np.int64)
    for number, event in enumerate(network.events):
        places = range(packed.first[number], packed.first[number + 1])
        yield event, np.asarray([table[packed.offset[p] + columns[packed.instance[p]]] < 0 for p in places])


def _row(instance: Instance, state: int, event: EventRef) -> RowOfEvent:
    fsm = instance.fsm
    return fsm.name, fsm.rows[fsm.states[state], event].line, _named(event)


def _named(event: EventRef) -> str:
    """As the table names it, which tells no consumers apart."""
    return str(event._replace(consumer=0))


def _hears(network: Network, instance: Instance, called: EventRef, event: NetworkEvent) -> bool:
    of_it = called.name == event.name and called.consumer in {0, event.consumer}  # of nearly all it is not
    return of_it and concerns(called.relation, instance.place, event.place, one_session=network.bounds.one_session)


def _without_event(network: Network, columns: Sequence[Ints]) -> Iterator[RowOfEvent]:
    """The rows of events that the system does not have."""
    existing = defaultdict(list)
    for event in network.events:
        existing[event.name].append(event)
    for number, instance in enumerate(network.instances):
        for called in instance.fsm.alphabet:
            if not any(_hears(network, instance, called, event) for event in existing[called.name]):
                for state in np.unique(columns[number]):
                    yield _row(instance, int(state), called)
