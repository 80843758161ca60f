"""Compile the tables to automata: the events, the participants of each, and where broadcasts look for copies.

Machines of one message see the events of others: "a later one is dispatched".  A queue may hold a million messages, too
many to ask each.  So each state of an automaton says to which of those *broadcasts* it would react (by refusing or by
moving), and a copy in such a state is indexed under the broadcast, in its connection, its queue or its session.  To
perform the event only those are asked.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ackfsm.engine.core.automaton import LazyProduct
from ackfsm.engine.core.table import ExecutionTable, read_execution
from ackfsm.tables import EventRef, Fsm, IndexKind, Machine, Relation, RowKind, Specification, names
from ackfsm.tables.names import Agent, Condition, Event
from ackfsm.terms import Configuration, Fault

__all__ = ["SCOPES", "BoundEvent", "Broadcast", "EngineModel", "IndexRelation", "Role", "StateFacts"]


class IndexRelation(enum.IntEnum):
    """How the index of an event stands to the index of an automaton."""

    OWN = 0
    EARLIER = 1
    LATER = 2
    OTHER_COPY = 3
    """The second copy of the message acts, and this is the first, which has the machines of the message."""


class Role(enum.IntEnum):
    """The machine groups that take part in an event of a copy, in the order of ``spec/execution.yaml``."""

    COPY = 0
    PRODUCER = 1
    WINDOW = 2
    UNCONFIRMED = 3
    CONSUMER = 4
    PREFETCH = 5
    BROKER = 6


SCOPES = ("producer", "queue", "consumer", "broker")
"""Where copies are indexed."""

_MANY = 3
"""More messages than two, and several sessions: rows that ask no more of the number."""

_DELIVERY_CALLS = (Event.DELIVERED_CLEAR, Event.DELIVERED_FLAGGED, Event.ACKNOWLEDGE)
"""The events of a delivery that a consumer brings about."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Broadcast:
    """Something that a copy may react to although it is not its own event: ``dispatch_first(later)``, ``broker_crash``.

    ``scope`` says where copies are indexed under it, ``relation`` which copies it is for.  Where ``by_message``, the
    copies of one message count as one; where ``by_delivery``, those that were handed over are in that order.
    """

    number: int
    scope: int
    relation: IndexRelation
    by_message: bool
    by_delivery: bool

    @property
    def key_shift(self) -> int:
        """How many bits of a key do not count."""
        return 2 if self.by_message else 0


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class BoundEvent:
    """One event of ``spec/events.yaml`` as an engine performs it.

    Attributes:
        roles: the machine groups that have a machine for it.
        signal: that to its own copy.
        earlier_signal: that to the second copy of the message, when the first has the event.
        other_copy_signal: that to the first copy, when the second has it.
        broadcasts: those to other copies, each with its signal.
        scope: the kind of link that it belongs to, if it is of a link or of the broker.
        frame: the scope of the link that it travels on, if it is a frame.
        record: what of the journal it writes or syncs.
        of_all_consumers: the sessions of all consumers of the queue take part in it.
    """

    name: str
    number: int
    per: IndexKind
    agent: str
    roles: tuple[Role, ...]
    signal: int
    earlier_signal: int
    other_copy_signal: int
    broadcasts: tuple[tuple[Broadcast, int], ...]
    scope: str
    frame: int | None
    record: str | None
    of_all_consumers: bool


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class StateFacts:
    """The facts of the tables about one state of an automaton.

    Attributes:
        indexed_under: the broadcasts to which it reacts.
        enabled: the automatic events of its own machines that it allows now, in the order of ``spec/execution.yaml``.
        agents: their agents.
        send_pending: the call that sent it has not returned (the next may not be sent).
        ack_pending: the call that acknowledges it has not (the session may not be recovered).
        delivery_event: the event by which it may be delivered.
        delivered_first: no later one is delivered before it, or before it is acknowledged.
        dispatch_event: the event by which it may be dispatched to a consumer.
        acknowledgeable: it may be acknowledged.
        unsynced: the journal records that are to be written or synced.
    """

    indexed_under: tuple[Broadcast, ...]
    enabled: tuple[BoundEvent, ...]
    agents: frozenset[str]
    send_pending: bool
    ack_pending: bool
    delivery_event: BoundEvent | None
    delivered_first: bool
    dispatch_event: BoundEvent | None
    acknowledgeable: bool
    unsynced: frozenset[str]


Automaton: TypeAlias = LazyProduct[StateFacts]
"""The product of machines that run together."""


class EngineModel:
    """All that an engine takes from the tables; automata are made once for each configuration that occurs."""

    def __init__(self, specification: Specification, table: ExecutionTable | None = None) -> None:
        """Read ``spec/execution.yaml`` unless it is given."""
        self.specification = specification
        self.table = table or read_execution(specification, roles=tuple(role.name.lower() for role in Role))
        self._broadcasts: dict[object, Broadcast] = {}
        self._automata: dict[tuple[object, ...], Automaton] = {}
        self._refs_of_machine: dict[str, tuple[EventRef | None, ...]] = {}
        records = self.table.journal_records.items()
        self._record_of = {event: name for name, record in records for event in (record.write, record.sync)}
        self._link_broadcasts = {
            scope: self._shared_broadcast(("all", scope), scope, IndexRelation.OWN) for scope in SCOPES
        }
        self.events = {name: self._event(name, number) for number, name in enumerate(self.table.agents)}
        self.broadcasts = tuple(self._broadcasts.values())
        self._automatic = [e for e in self.events.values() if self.table.agent_rows[e.agent].automatic]

    def _machines_of(self, group: str) -> list[Machine]:
        return [self.specification.machines[name] for name in self.table.groups[group]]

    def _event(self, name: str, number: int) -> BoundEvent:
        declared = self.specification.events[name]
        roles = tuple(
            role
            for role in Role
            if any(event.name == name for machine in self._machines_of(role.name.lower()) for event in machine.alphabet)
        )
        frame = self.table.agent_rows[self.table.agents[name]].frame
        return BoundEvent(
            name=name,
            number=number,
            per=declared.per.whole,
            agent=self.table.agents[name],
            roles=roles,
            signal=_signal(number, IndexRelation.OWN),
            earlier_signal=_signal(number, IndexRelation.EARLIER),
            other_copy_signal=_signal(number, IndexRelation.OTHER_COPY),
            broadcasts=tuple(self._broadcasts_of(name, number)),
            scope=self._scope(name) if declared.per.whole is IndexKind.SYSTEM else "",
            frame=None if frame is None else SCOPES.index(frame),
            record=self._record_of.get(name),
            of_all_consumers=name in self.table.of_all_consumers,
        )

    def _scope(self, name: str) -> str:
        """What an event of the system belongs to: the group of its owner; for faults, the widest that they touch."""
        owner = self.specification.owner(name)
        for group, machines in self.table.groups.items():
            if owner is not None and owner.name in machines:
                return self.table.belongs_to[group]
        touched = {
            self.table.belongs_to[group]
            for group in self.table.groups
            if any(event.name == name for machine in self._machines_of(group) for event in machine.alphabet)
        }
        return next(scope for scope in ("broker", "producer", "consumer") if scope in touched)

    def _broadcasts_of(self, name: str, number: int) -> Iterator[tuple[Broadcast, int]]:
        """The broadcasts of ``name`` to others of a connection, a queue or a session; equal rows share one.

        All machines of a scope share it too, so that a copy is indexed once, whichever of them reacts.
        """
        of_message = self.specification.events[name].per.whole is IndexKind.MESSAGE
        by_delivery = name in self.table.in_order_of_delivery
        groups: dict[tuple[str, IndexRelation, bool], list[object]] = {}
        for machine_name, scope in self.table.index_scope.items():
            machine = self.specification.machines[machine_name]
            for relation in (IndexRelation.EARLIER, IndexRelation.LATER):
                ref = _ref(machine, name, relation)
                if ref is not None:
                    by_message = of_message or machine.per.whole is IndexKind.MESSAGE
                    groups.setdefault((scope, relation, by_message), []).append(_reactions(machine, ref))
        for (scope, relation, by_message), reactions in groups.items():
            key = (scope, relation, by_message, by_delivery, *reactions)
            made = self._shared_broadcast(key, scope, relation, by_message=by_message, by_delivery=by_delivery)
            yield made, _signal(number, relation)

    def _shared_broadcast(
        self, key: object, scope: str, relation: IndexRelation, *, by_message: bool = False, by_delivery: bool = False
    ) -> Broadcast:
        if key not in self._broadcasts:
            number = len(self._broadcasts)
            self._broadcasts[key] = Broadcast(number, SCOPES.index(scope), relation, by_message, by_delivery)
        return self._broadcasts[key]

    def all_copies(self, scope: str) -> Broadcast:
        """The broadcast under which every copy is indexed that an event of a link or of the broker concerns."""
        return self._link_broadcasts[scope]

    def overtaken_by(self, event: str, scope: str) -> Broadcast:
        """The broadcast under which the copies are indexed that ``event`` of a later copy would overtake."""
        found = (each for each, _ in self.events[event].broadcasts if each.scope == SCOPES.index(scope))
        return next(each for each in found if each.relation is IndexRelation.LATER)

    @functools.cached_property
    def _subscriptions(self) -> tuple[tuple[Broadcast, int], ...]:
        """Every broadcast with every signal that it carries."""
        sent = [pair for event in self.events.values() for pair in event.broadcasts]
        system = [event for event in self.events.values() if event.per is IndexKind.SYSTEM]
        return (*sent, *((self.all_copies(event.scope), event.signal) for event in system))

    def environment(self, configuration: Configuration, copy: int = 1) -> dict[str, Any]:
        """Return the values that conditions read in an engine: all faults may happen, without bounds."""
        return self.specification.environment(
            configuration,
            faults=tuple(Fault),
            max_faults=None,
            messages=_MANY,
            copy=copy,
            copies=None,
            sessions=_MANY,
        )

    def is_direct(self, configuration: Configuration) -> bool:
        """Whether messages sent under ``configuration`` go to the consumers that are there, and none is kept."""
        return self.specification.conditions[Condition.DIRECT].holds(self.environment(configuration))

    def copy_automaton(self, send: Configuration, receive: Configuration, copy: int) -> Automaton:
        """Return the machines of a copy: the sending ones under ``send``, all others under ``receive``."""
        key = ("copy", send, receive, copy)
        if key not in self._automata:
            sending, receiving = self.environment(send, copy), self.environment(receive, copy)
            every = self._machines_of("copy")
            machines = [m for m in every if copy == 1 or m.per.whole is IndexKind.COPY]
            fsms = [m.fsm(sending if self.table.index_scope.get(m.name) == "producer" else receiving) for m in machines]
            # What the machines of the message decide happens to each copy: the second one has a duplicate id too.
            of_message = [m for m in every if copy != 1 and m.per.whole is not IndexKind.COPY]
            self._automata[key] = self._automaton(
                machines, fsms, self._owned_events(of_message, receiving, IndexKind.COPY)
            )
        return self._automata[key]

    def detached_automaton(self, receive: Configuration, copy: int) -> Automaton:
        """The machines of a delivery that a session still has, while the copy has gone to another session."""
        key = ("detached", receive, copy)
        if key not in self._automata:
            environment = self.environment(receive, copy)
            machines = [m for m in self._machines_of("copy") if m.name in self.table.stays_with_session]
            self._automata[key] = self._automaton(machines, [m.fsm(environment) for m in machines])
        return self._automata[key]

    def group_automaton(self, role: Role, configuration: Configuration) -> Automaton:
        """The machines of a group of a link or of the broker."""
        key = (role, configuration)
        if key not in self._automata:
            machines = self._machines_of(role.name.lower())
            environment = self.environment(configuration)
            self._automata[key] = self._automaton(machines, [m.fsm(environment) for m in machines])
        return self._automata[key]

    def _owned_events(
        self, machines: list[Machine], environment: Mapping[str, Any], per: IndexKind
    ) -> list[BoundEvent]:
        """The automatic events of that kind that ``machines`` own and have a row for."""
        pairs = [(machine, machine.fsm(environment)) for machine in machines]
        return [
            event
            for event in self._automatic
            if event.per is per and any(event.name in m.owns and EventRef(event.name) in f.moving for m, f in pairs)
        ]

    def _automaton(self, machines: list[Machine], fsms: list[Fsm], also: Sequence[BoundEvent] = ()) -> Automaton:
        signals = list(zip(*map(self._refs, machines), strict=True))
        owned = [e for e in self._automatic if any(e.name in machine.owns for machine in machines)]
        owned = [e for e in owned if any(EventRef(e.name) in f.moving for f in fsms if e.name in _owns(machines, f))]
        owned = [e for e in self._automatic if e in {*owned, *also}]

        def describe(automaton: Automaton, states: tuple[str, ...]) -> StateFacts:
            refused, moved = automaton.refused_and_moved(states)
            reacts = refused | moved
            indexed = dict.fromkeys(each for each, signal in self._subscriptions if reacts >> signal & 1)
            enabled = tuple(event for event in owned if not refused >> event.signal & 1)
            allowed = [event for event in calls if not refused >> event.signal & 1]
            return StateFacts(
                indexed_under=tuple(indexed),
                enabled=enabled,
                agents=frozenset(event.agent for event in enabled),
                send_pending=refuses(states, names.Machine.PUBLICATION, EventRef(Event.SEND, Relation.LATER)),
                ack_pending=any(
                    refuses(states, name, EventRef(Event.RECOVER))
                    for name in (names.Machine.DELIVERY, names.Machine.ACK_CALL)
                ),
                dispatch_event=next((event for event in enabled if event.agent == Agent.QUEUE), None),
                delivery_event=next((event for event in allowed if event.name != Event.ACKNOWLEDGE), None),
                delivered_first=bool(refused >> overtaking & 1),
                acknowledgeable=any(event.name == Event.ACKNOWLEDGE for event in allowed),
                unsynced=frozenset(event.record for event in enabled if event.record is not None),
            )

        at = {machine.name: i for i, machine in enumerate(machines)}
        overtaking = _signal(self.events[Event.DELIVERED_CLEAR].number, IndexRelation.LATER)
        calls = [self.events[name] for name in _DELIVERY_CALLS] if names.Machine.DELIVERY in at else []

        def refuses(states: tuple[str, ...], machine: str, ref: EventRef) -> bool:
            return machine in at and fsms[at[machine]].rows[states[at[machine]], ref].kind is RowKind.REFUSE

        observable = [event.signal for event in self.events.values() if self._is_observable(event)]
        return LazyProduct(fsms, signals, describe, observable, self._never)

    def _refs(self, machine: Machine) -> tuple[EventRef | None, ...]:
        """The name that ``machine`` has for each signal."""
        if machine.name not in self._refs_of_machine:
            self._refs_of_machine[machine.name] = tuple(
                _ref(machine, name, relation) for name in self.events for relation in IndexRelation
            )
        return self._refs_of_machine[machine.name]

    @functools.cached_property
    def _never(self) -> tuple[int, ...]:
        """The signals of events that no engine performs."""
        outside = [event for event in self.events.values() if event.agent == Agent.NOT_IN_ENGINE]
        return tuple(_signal(event.number, relation) for event in outside for relation in IndexRelation)

    def _is_observable(self, event: BoundEvent) -> bool:
        """Whether the event is one of a copy that a client could notice."""
        recorded = event.agent == Agent.BROKER and self.specification.events[event.name].recorded is not None
        return event.per is not IndexKind.SYSTEM and (recorded or self.table.agent_rows[event.agent].observable)


def _owns(machines: list[Machine], fsm: Fsm) -> tuple[str, ...]:
    return next(machine.owns for machine in machines if machine.name == fsm.name)


def _signal(event: int, relation: IndexRelation) -> int:
    return event * len(IndexRelation) + relation


def _reactions(machine: Machine, ref: EventRef) -> object:
    """Return the reaction of a machine to an event in each of its states, to be compared."""
    cells = ((state, machine.cells[state, ref]) for state in machine.states)
    return machine.name, tuple((s, tuple((r.kind, r.when.text, r.target == s) for r in cell)) for s, cell in cells)


def _ref(machine: Machine, name: str, relation: IndexRelation) -> EventRef | None:
    """The name that ``machine`` has for ``name`` seen so, if it has one."""
    candidates: tuple[EventRef, ...]
    if relation is IndexRelation.OWN or (
        relation is IndexRelation.OTHER_COPY and machine.per.whole is not IndexKind.COPY
    ):
        candidates = (EventRef(name),)
    else:
        index = Relation.EARLIER if relation is IndexRelation.EARLIER else Relation.LATER
        candidates = (EventRef(name, index), EventRef(name, Relation.OTHER))
        if relation is IndexRelation.LATER:
            candidates = (*candidates, EventRef(name, Relation.LATER_HERE))
    return next((ref for ref in candidates if ref in machine.alphabet), None)
