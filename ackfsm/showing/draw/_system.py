"""The overview of the whole system: its machines by lane, and the events on which they synchronise.

Every event has one owner, the machine that decides it; the others take part.  Of those, some are
moved by it, and some only have to permit it, such as a connection that must stand.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ackfsm.checking.network import Bounds, compose
from ackfsm.showing.draw._diagram import Kind, everything, kind_of, settings_shown
from ackfsm.showing.draw._plan import general
from ackfsm.tables import Event, Lane, Machine, Row, RowKind, Specification
from ackfsm.terms import Configuration

_LANES: Final = ("producer", "link", "broker", "journal", "consumer", "faults")


@dataclasses.dataclass(frozen=True, slots=True)
class Shared:
    """One event, the machine that decides it, the machines that it moves, and the ones that only permit it."""

    event: Event
    kind: Kind
    owner: str
    moves: tuple[str, ...]
    permits: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class SyncEdge:
    """The events that ``owner`` decides and that move ``other``, and the ones that ``other`` only permits."""

    owner: str
    other: str
    moves: tuple[str, ...]
    permits: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class System:
    """The machines by lane (the file that they stand in), and the events that exist, as ``events.yaml`` has them."""

    settings: tuple[str, ...]
    lanes: Mapping[str, tuple[Machine, ...]]
    events: tuple[Shared, ...]
    means: str = "the machines of a system, side by side, synchronised on the events that they share"

    def sync_edges(self) -> Iterator[SyncEdge]:
        """The edges between machines; faults are left out, since they touch nearly all."""
        kept = [shared for shared in self.events if shared.kind is not Kind.FAULT]
        names = [machine.name for lane in self.lanes.values() for machine in lane]
        for owner, other in itertools.permutations(names, 2):
            mine = [shared for shared in kept if shared.owner == owner]
            moves = tuple(shared.event.name for shared in mine if other in shared.moves)
            permits = tuple(shared.event.name for shared in mine if other in shared.permits)
            if moves or permits:
                yield SyncEdge(owner, other, moves, permits)

    def flows(self) -> Mapping[tuple[Lane, Lane], tuple[Shared, ...]]:
        """The events by the lanes where they start and end, which are the same for an event that stays in its lane."""
        found: dict[tuple[Lane, Lane], list[Shared]] = {}
        for shared in self.events:
            found.setdefault((shared.event.start, shared.event.end), []).append(shared)
        return {ends: tuple(events) for ends, events in found.items()}

    def by_lane(self) -> Mapping[Lane, tuple[Machine, ...]]:
        """The machines by lane: the one that they or their file are named after, else that of most of their events."""
        found: dict[Lane, list[Machine]] = {lane: [] for lane in Lane}
        for name, machines in self.lanes.items():
            for machine in machines:
                found[Lane(name) if name in set(Lane) else self._lane_of(machine)].append(machine)
        return {lane: tuple(machines) for lane, machines in found.items()}

    def _lane_of(self, machine: Machine) -> Lane:
        named = machine.name.replace("_", " ")
        if named in set(Lane):
            return Lane(named)
        decided = [shared.event.lane for shared in self.events if shared.owner == machine.name]
        return max(Lane, key=decided.count) if decided else Lane.FAULT

    def needs(self, machine: str) -> tuple[str, ...]:
        """The machines that no event of ``machine`` moves, but that must permit one."""
        return tuple(edge.other for edge in self.sync_edges() if edge.owner == machine and not edge.moves)

    def faults_of(self, machine: str) -> tuple[str, ...]:
        """The faults that move ``machine``."""
        return tuple(s.event.name for s in self.events if s.kind is Kind.FAULT and machine in s.moves)


def make_system(
    specification: Specification, configuration: Configuration | None = None, bounds: Bounds | None = None
) -> System:
    """The system of the tables, or what ``configuration`` leaves of it within ``bounds``.

    Raises :class:`ackfsm.terms.InputError` if the tables have no rows for a setting.
    """
    if configuration is None:
        rows = {name: [line.row for line in general(m).lines] for name, m in specification.machines.items()}
        return _system(specification, rows, specification.events.keys(), ())
    network = compose(specification, configuration, bounds or everything(specification))
    rows = {name: [] for name in specification.machines}
    for instance in network.instances:
        if instance.anomaly is None:
            rows[instance.fsm.name] += instance.fsm.rows.values()
    settings = settings_shown(configuration, specification.settings_read())
    return _system(specification, rows, {event.name for event in network.events}, tuple(settings))


def _system(
    specification: Specification, rows: Mapping[str, Sequence[Row]], events: Collection[str], settings: tuple[str, ...]
) -> System:
    lanes: dict[str, list[Machine]] = {}
    for machine in specification.machines.values():
        lanes.setdefault(Path(machine.file).stem, []).append(machine)
    owners = {event: name for name, machine in specification.machines.items() for event in machine.owns}
    moves, permits = _parts(rows)
    shared = [
        Shared(event, kind_of(specification, name), owners[name], moves.get(name, ()), permits.get(name, ()))
        for name, event in specification.events.items()
        if name in events and name in owners
    ]
    known = [*_LANES, *sorted(lanes.keys() - set(_LANES))]
    return System(settings, {lane: tuple(lanes[lane]) for lane in known if lane in lanes}, tuple(shared))


def _parts(rows: Mapping[str, Sequence[Row]]) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Return by event the machines that it moves, and the unmoved ones that may refuse it."""
    moves: dict[str, tuple[str, ...]] = {}
    permits: dict[str, tuple[str, ...]] = {}
    for name, mine in rows.items():
        moved = {row.event.name for row in mine if row.kind is RowKind.TO and row.target != row.state}
        takes_part = {row.event.name for row in mine if row.kind is not RowKind.IGNORE}
        for events, found in ((moved, moves), (takes_part - moved, permits)):
            for event in sorted(events):
                found[event] = (*found.get(event, ()), name)
    return moves, permits
