"""From the tables to automata: the events, who takes part in each, and where other copies are looked for.

Machines of one message see the events of others: "a later one is dispatched".  A queue may hold
a million messages, so nobody asks them all.  Each state of an automaton says to which of those
*calls* it would react (by refusing or by moving), and a copy in such a state is filed under the
call, in its connection, its queue or its session.  Who performs the event looks only there.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ackfsm.engine.core.automaton import Automaton
from ackfsm.engine.core.table import EngineTable, read_engine
from ackfsm.tables import EventRef, Fsm, Machine, Move, Per, Relation, Specification
from ackfsm.terms import Configuration, Fault

__all__ = ["SCOPES", "Call", "Event", "Role", "State", "View", "Wiring"]


class View(enum.IntEnum):
    """How the index of an event stands to the index of an automaton."""

    OWN = 0
    EARLIER = 1
    LATER = 2
    TWIN = 3
    """The second copy of the message acts, and this is the first, which has the machines of the message."""


class Role(enum.IntEnum):
    """The parts that take part in an event of a copy, in the order of ``spec/execution.yaml``."""

    COPY = 0
    PRODUCER = 1
    WINDOW = 2
    UNANSWERED = 3
    CONSUMER = 4
    PREFETCH = 5
    BROKER = 6


SCOPES = ("producer", "queue", "consumer", "broker")
"""Where copies are filed."""

_NO_LIMIT = 10**9


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Call:
    """Something that a copy may react to although it is not its own event: ``dispatch_first(later)``, ``broker_crash``.

    ``scope`` says where copies are filed under it, ``signal`` what they hear, ``view`` which copies it is for.
    Where ``by_message``, the copies of one message are not told apart.
    """

    number: int
    scope: int
    view: View
    by_message: bool

    @property
    def shift(self) -> int:
        """How many bits of a key do not count."""
        return 2 if self.by_message else 0


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One event of ``spec/events.yaml`` as an engine performs it.

    ``own`` and ``twin`` are signals, ``roles`` those that have a machine for it, ``calls`` what it says to other
    copies, each with the signal that they hear.  ``scope`` is for events of a session or a broker.
    """

    name: str
    number: int
    per: Per
    agent: str
    roles: tuple[Role, ...]
    own: int
    twin: int
    calls: tuple[tuple[Call, int], ...]
    scope: str


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class State:
    """What the tables say of one state of an automaton.

    Attributes:
        filed: the calls to which it reacts.
        todo: the events of its own machines that it would allow now and that nobody has to ask for, in the order of
            ``spec/execution.yaml``.
        by: their agents.
        sending: the call that sent it has not returned (the next may not be sent).
        acknowledging: the call that acknowledges it has not (the session may not be recovered).
        hands: the event by which it may be handed over.
        goes: the event by which it may be sent to a consumer.
        claimable: it may be acknowledged.
    """

    filed: tuple[Call, ...]
    todo: tuple[Event, ...]
    by: frozenset[str]
    sending: bool
    acknowledging: bool
    hands: Event | None
    goes: Event | None
    claimable: bool


class Wiring:
    """All that an engine takes from the tables; automata are made once for each configuration that occurs."""

    def __init__(self, specification: Specification, table: EngineTable | None = None) -> None:
        """Read ``spec/execution.yaml`` unless it is given."""
        self.specification = specification
        self.table = table or read_engine(specification)
        self._calls: dict[object, Call] = {}
        self._made: dict[tuple[object, ...], Automaton] = {}
        self._called: dict[str, tuple[EventRef | None, ...]] = {}
        self._broadcast = {scope: self._call(("all", scope), scope, View.OWN, by_message=False) for scope in SCOPES}
        self.events = {name: self._event(name, number) for number, name in enumerate(self.table.agents)}
        self.calls = tuple(self._calls.values())
        self._automatic = [e for e in self.events.values() if e.agent in _AUTOMATIC]

    def _machines(self, part: str) -> list[Machine]:
        return [self.specification.machines[name] for name in self.table.parts[part]]

    def _event(self, name: str, number: int) -> Event:
        declared = self.specification.events[name]
        roles = tuple(
            role
            for role in Role
            if any(event.name == name for machine in self._machines(role.name.lower()) for event in machine.alphabet)
        )
        return Event(
            name=name,
            number=number,
            per=declared.per,
            agent=self.table.agents[name],
            roles=roles,
            own=_signal(number, View.OWN),
            twin=_signal(number, View.TWIN),
            calls=tuple(self._calls_of(name, number)),
            scope=self._scope(name) if declared.per is Per.SYSTEM else "",
        )

    def _scope(self, name: str) -> str:
        """What an event of the system belongs to: the part of its owner; for faults, the widest that they touch."""
        owner = self.specification.owner(name)
        for part, machines in self.table.parts.items():
            if owner is not None and owner.name in machines:
                return self.table.belongs_to[part]
        touched = {
            self.table.belongs_to[part]
            for part in self.table.parts
            if any(event.name == name for machine in self._machines(part) for event in machine.alphabet)
        }
        return next(scope for scope in ("broker", "producer", "consumer") if scope in touched)

    def _calls_of(self, name: str, number: int) -> Iterator[tuple[Call, int]]:
        """The calls by which others of a connection, a queue or a session hear of ``name``; alike ones are one."""
        for machine_name, scope in self.table.among.items():
            machine = self.specification.machines[machine_name]
            for view in (View.EARLIER, View.LATER):
                ref = _ref(machine, name, view)
                if ref is None:
                    continue
                by_message = Per.MESSAGE in (machine.per, self.specification.events[name].per)
                rows = tuple((state, machine.cells[state, ref]) for state in machine.states)
                alike = tuple((s, tuple((r.move, r.when.text, r.target == s) for r in cell)) for s, cell in rows)
                yield (
                    self._call((machine_name, view, by_message, alike), scope, view, by_message=by_message),
                    _signal(number, view),
                )

    def _call(self, key: object, scope: str, view: View, *, by_message: bool) -> Call:
        if key not in self._calls:
            self._calls[key] = Call(len(self._calls), SCOPES.index(scope), view, by_message)
        return self._calls[key]

    def broadcast(self, scope: str) -> Call:
        """The call under which everybody is filed whom an event of a session or of the broker concerns."""
        return self._broadcast[scope]

    def overtaken(self, event: str, scope: str) -> Call:
        """The call under which those are filed whom ``event`` of a later copy would overtake."""
        calls = (call for call, _ in self.events[event].calls if call.scope == SCOPES.index(scope))
        return next(call for call in calls if call.view is View.LATER)

    @functools.cached_property
    def _hearing(self) -> tuple[tuple[Call, int], ...]:
        """Every call with every signal that is said under it."""
        said = [pair for event in self.events.values() for pair in event.calls]
        system = [event for event in self.events.values() if event.per is Per.SYSTEM]
        return (*said, *((self.broadcast(event.scope), event.own) for event in system))

    def environment(self, configuration: Configuration, copy: int = 1) -> dict[str, Any]:
        """What conditions read in an engine: all faults may happen, and nothing bounds what it runs."""
        return self.specification.environment(
            configuration, faults=tuple(Fault), max_faults=None, copy=copy, copies=None, repeats=_NO_LIMIT
        )

    def is_direct(self, configuration: Configuration) -> bool:
        """Whether messages sent under ``configuration`` are passed on to who is there, and nothing is kept of them."""
        return self.specification.conditions["direct"].holds(self.environment(configuration))

    def copy(self, sent: Configuration, kept: Configuration, copy: int) -> Automaton:
        """The machines of a copy: those that send under ``sent``, all others under ``kept``."""
        key = ("copy", sent, kept, copy)
        if key not in self._made:
            sending, keeping = self.environment(sent, copy), self.environment(kept, copy)
            every = self._machines("copy")
            machines = [m for m in every if copy == 1 or m.per is Per.COPY]
            fsms = [m.fsm(sending if self.table.among.get(m.name) == "producer" else keeping) for m in machines]
            # What the machines of the message decide happens to each copy: the second one has a known id too.
            of_message = [m for m in every if copy != 1 and m.per is not Per.COPY]
            self._made[key] = self._automaton(machines, fsms, self._owned(of_message, keeping, Per.COPY))
        return self._made[key]

    def handed(self, kept: Configuration, copy: int) -> Automaton:
        """The machines of a delivery that a session still has, while the copy has gone to another session."""
        key = ("handed", kept, copy)
        if key not in self._made:
            environment = self.environment(kept, copy)
            machines = [m for m in self._machines("copy") if m.name in self.table.handed]
            self._made[key] = self._automaton(machines, [m.fsm(environment) for m in machines])
        return self._made[key]

    def part(self, role: Role, configuration: Configuration) -> Automaton:
        """The machines of a part of a session or of the broker."""
        key = (role, configuration)
        if key not in self._made:
            machines = self._machines(role.name.lower())
            environment = self.environment(configuration)
            self._made[key] = self._automaton(machines, [m.fsm(environment) for m in machines])
        return self._made[key]

    def _owned(self, machines: list[Machine], environment: Mapping[str, Any], per: Per) -> list[Event]:
        """The automatic events of that kind that ``machines`` own and have a row for."""
        pairs = [(machine, machine.fsm(environment)) for machine in machines]
        return [
            event
            for event in self._automatic
            if event.per is per and any(event.name in m.owns and f.moves(EventRef(event.name)) for m, f in pairs)
        ]

    def _automaton(self, machines: list[Machine], fsms: list[Fsm], also: Sequence[Event] = ()) -> Automaton:
        signals = list(zip(*map(self._refs, machines), strict=True))
        owned = [e for e in self._automatic if any(e.name in machine.owns for machine in machines)]
        owned = [e for e in owned if any(f.moves(EventRef(e.name)) for f in fsms if e.name in _owns(machines, f))]
        owned = [e for e in self._automatic if e in {*owned, *also}]

        def describe(automaton: Automaton, names: tuple[str, ...]) -> State:
            refused, moved = automaton.answers(names)
            heard = refused | moved
            filed = dict.fromkeys(call for call, signal in self._hearing if heard >> signal & 1)
            todo = tuple(event for event in owned if not refused >> event.own & 1)
            handed = [self.events[name] for name in _HANDED] if "delivery" in at else []
            may = [event for event in handed if not refused >> event.own & 1]
            return State(
                filed=tuple(filed),
                todo=todo,
                by=frozenset(event.agent for event in todo),
                sending=refuses(names, "publication", sent),
                acknowledging=refuses(names, "delivery", EventRef("recover")),
                goes=next((event for event in todo if event.agent == "queue"), None),
                hands=next((event for event in may if event.name != "acknowledge"), None),
                claimable=any(event.name == "acknowledge" for event in may),
            )

        sent = EventRef("send", Relation.LATER)
        at = {machine.name: i for i, machine in enumerate(machines)}

        def refuses(names: tuple[str, ...], machine: str, ref: EventRef) -> bool:
            return machine in at and fsms[at[machine]].rows[names[at[machine]], ref].move is Move.REFUSE

        seen = [event.own for event in self.events.values() if self._visible(event)]
        return Automaton(fsms, signals, describe, seen)

    def _refs(self, machine: Machine) -> tuple[EventRef | None, ...]:
        """The name that ``machine`` has for each signal."""
        if machine.name not in self._called:
            self._called[machine.name] = tuple(_ref(machine, name, view) for name in self.events for view in View)
        return self._called[machine.name]

    def _visible(self, event: Event) -> bool:
        """Whether the event is one of a copy that a client could notice."""
        recorded = event.agent == "broker" and self.specification.events[event.name].recorded is not None
        return event.per is not Per.SYSTEM and (recorded or event.agent in _NOTICED)


_AUTOMATIC = frozenset(
    {
        "library",
        "producer_to_broker",
        "broker_to_producer",
        "consumer_to_broker",
        "broker_to_consumer",
        "broker",
        "queue",
        "disk",
        "timer",
        "recovery",
    }
)


_HANDED = ("delivered_clear", "delivered_flagged", "acknowledge")

_NOTICED = frozenset({"application", "listener", "library", "broker_to_producer", "broker_to_consumer", "queue"})


def _owns(machines: list[Machine], fsm: Fsm) -> tuple[str, ...]:
    return next(machine.owns for machine in machines if machine.name == fsm.name)


def _signal(event: int, view: View) -> int:
    return event * len(View) + view


def _ref(machine: Machine, name: str, view: View) -> EventRef | None:
    """The name that ``machine`` has for ``name`` seen so, if it has one."""
    candidates: tuple[EventRef, ...]
    if view is View.OWN or (view is View.TWIN and machine.per is not Per.COPY):
        candidates = (EventRef(name),)
    else:
        relation = Relation.EARLIER if view is View.EARLIER else Relation.LATER
        candidates = (EventRef(name, relation), EventRef(name, Relation.OTHER))
    return next((ref for ref in candidates if ref in machine.alphabet), None)
