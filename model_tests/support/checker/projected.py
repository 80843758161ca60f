"""Concrete runs of a system of a few messages, seen as views: what the abstraction for any number has to contain."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ackfsm.checking.network import Index, Network, NetworkEvent
from ackfsm.checking.unbounded import _compiled
from ackfsm.checking.unbounded._columns import System
from ackfsm.checking.unbounded._kernel import BITS
from ackfsm.checking.unbounded._spaces import Space
from ackfsm.checking.unbounded._tables import FULL, NONE, SOME, Role
from ackfsm.checking.unbounded._views import Views
from ackfsm.tables import EventRef, Relation, Row, Specification
from model_tests.support.tables import row as table_row

Concrete = tuple[str, ...]
Local = tuple[int, ...]


class Projection:
    """Maps the states and events of a composed network to those of the abstraction; ghosts are counted along a run."""

    def __init__(self, network: Network, system: System) -> None:
        self.network = network
        self.system = system
        self.messages = network.bounds.messages
        self._at = {instance.label: number for number, instance in enumerate(network.instances)}
        self._ghosts = [ghost.ghost for ghost in system.ghosts]
        self._events = {(event.name, event.copy): number for number, event in enumerate(system.events)}

    def event(self, event: NetworkEvent) -> int:
        """The number that the event has for every message."""
        copies = len(event.index) > 1
        return self._events[event.name, event.index[1] if copies else 0]

    def machines(self, state: Concrete) -> Local:
        """The system's machines."""
        return tuple(
            _number(table.states, state[self._at[table.name]], table.limits[2] if table.limits[2:] else None)
            for table in self.system.machines
        )

    def message(self, state: Concrete, message: int, ghosts: Mapping[int, int]) -> Local:
        """The machines of one message; ``ghosts`` has the states of its ghosts."""
        return tuple(
            ghosts[number]
            if number in ghosts
            else _number(table.states, state[self._at[_label(table.name, message)]], None)
            for number, table in enumerate(self.system.message)
        )

    def number_of(self, state: Concrete, counter: int) -> int:
        """The number of a counter of the system."""
        return int(state[self._at[self.system.machines[counter].name]])

    def no_ghosts(self) -> dict[int, dict[int, int]]:
        """The ghosts of each message at the start."""
        return {message: dict.fromkeys(self._ghosts, 0) for message in range(1, self.messages + 1)}

    def count(self, ghosts: dict[int, dict[int, int]], event: NetworkEvent) -> None:
        """Let every ghost hear ``event``."""
        for message, counts in ghosts.items():
            role = _role(event.index, message)
            for number in counts:
                columns = self.system.message[number].columns.get((role, self.event(event)))
                if columns is not None:
                    counts[number] = columns[0][counts[number]]

    def missing(self, views: Views, state: Concrete, ghosts: Mapping[int, Mapping[int, int]]) -> list[tuple[int, ...]]:
        """The messages, or pairs of them in their order, that ``views`` do not have in this state."""
        machines = number_in(views.spaces.machines, self.machines(state))
        local = {m: number_in(views.spaces.message, self.message(state, m, ghosts[m])) for m in ghosts}
        every = itertools.combinations(local, views.level.slots)
        return [some for some in every if not has_view(views, machines, [local[m] for m in some])]


def number_in(space: Space, states: Local) -> int:
    """The number of a state, or of that which is kept of the states that are one with it; -1 for a strange one."""
    number = int(_compiled.number_of(space.arrays, np.array(states, np.int16)))
    return number if number < 0 or space.representatives is None else int(space.representatives[number])


def has_view(views: Views, machines: int, messages: Sequence[int]) -> bool:
    """Whether a state of the system and those of messages, by number, are a view."""
    packed = machines
    for message in messages:
        packed = packed << BITS | message
    is_met = min(machines, *messages) >= 0
    return is_met and bool(_compiled.index_of(views.arrays.packed, views.arrays.table, packed) >= 0)


def _label(name: str, message: int) -> str:
    machine, _, copy = name.partition("#")
    return f"{machine}(m{message}#{copy})" if copy else f"{machine}(m{message})"


def _number(states: tuple[str, ...], state: str, bound: int | None) -> int:
    if state in states:
        return states.index(state)
    return states.index(NONE if state == "0" else FULL if int(state) == bound else SOME)


def _role(index: Index, message: int) -> Role:
    if not index:
        return Role.SYSTEM
    return Role.OWN if index[0] == message else Role.EARLIER if index[0] < message else Role.LATER


def random_run(network: Network, seed: int, steps: int) -> Iterator[tuple[NetworkEvent | None, Concrete]]:
    """States of a random run; where nothing is left to happen it begins anew, which has no event.

    Faults, and events that change nothing, are rare: else a run loses its few messages, and is of faults from there on.
    """
    drawn = random.Random(seed)
    state = network.initial
    yield None, state
    for _ in range(steps):
        events = list(network.events)
        drawn.shuffle(events)
        for event in events:
            after = network.step(state, event)
            if after is not None and (drawn.random() < 0.1 or not (after == state or event.may_never_happen)):
                state = after
                yield event, state
                break
        else:
            state = network.initial
            yield None, state


def fading(specification: Specification, after: int) -> Specification:
    """The tables with a defect: a redelivery mark fades when ``after`` later messages are sent for the first time.

    So it takes that many messages and one more until the mark is missed.
    """
    machine = specification.machines["redelivery"]
    heard = EventRef("dispatch_first", Relation.LATER)
    steps = ["marked", *(f"faded_{n}" for n in range(1, after)), "clear"]
    cells = dict(machine.cells)
    for state in steps[1:-1]:
        for (of, event), rows in machine.cells.items():
            if of == "marked":
                cells[state, event] = tuple(_moved(row, state, "marked") for row in rows)
    for state in (*machine.states, *steps[1:-1]):
        target = steps[steps.index(state) + 1] if state in steps[:-1] else state
        cells[state, heard] = (table_row(state, heard, target),)
    changed = dataclasses.replace(
        machine,
        states=(*machine.states, *steps[1:-1]),
        alphabet=(*machine.alphabet, heard),
        cells=cells,
    )
    return dataclasses.replace(specification, machines={**specification.machines, "redelivery": changed})


def wary(specification: Specification, after: int) -> Specification:
    """The tables with a defect: an application that has seen ``after`` earlier sends in doubt never sends again.

    So it takes that many messages and one more until one is never sent.
    """
    machine = specification.machines["publication"]
    heard = EventRef("in_doubt", Relation.EARLIER)
    steps = [machine.initial, *(f"wary_{n}" for n in range(1, after + 1))]
    cells = dict(machine.cells)
    for state in steps[1:]:
        for (of, event), rows in machine.cells.items():
            if of == machine.initial:
                cells[state, event] = tuple(_moved(row, state, machine.initial) for row in rows)
    for event in machine.alphabet:
        if event.name.startswith("send") and event.relation is Relation.OWN:
            cells[steps[-1], event] = (table_row(steps[-1], event, None),)
    for state in (*machine.states, *steps[1:]):
        cells[state, heard] = (table_row(state, heard, dict(itertools.pairwise(steps)).get(state, state)),)
    changed = dataclasses.replace(
        machine, states=(*machine.states, *steps[1:]), alphabet=(*machine.alphabet, heard), cells=cells
    )
    return dataclasses.replace(specification, machines={**specification.machines, "publication": changed})


def _moved(row: Row, state: str, like: str) -> Row:
    """What the state ``like`` does, in one in which it has begun to turn into another."""
    return row._replace(state=state, target=state if row.target == like else row.target)
