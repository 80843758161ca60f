"""Composition: the machines of a configuration, side by side, synchronised on the events that they share.

:func:`compose` makes every instance of every machine (once for the system, for each message,
for each copy of a message) and every event with its participants.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ackfsm.tables import (
    ALWAYS,
    EventRef,
    Fsm,
    IndexKind,
    Lane,
    Machine,
    Monitor,
    Relation,
    Row,
    RowKind,
    Specification,
    base_state,
    hold,
)
from ackfsm.terms import Anomaly, Configuration, Destination, Fault, InputError, check_names, check_number
from ackfsm.text import meant, quoted, shown

__all__ = [
    "Bounds",
    "Index",
    "Instance",
    "Network",
    "NetworkEvent",
    "Observer",
    "Participant",
    "compose",
    "concerns",
    "environments",
    "observers_named",
    "observers_of",
    "routes",
]

Index = tuple[int, ...]
"""``()`` for the system, ``(message,)``, or ``(message, copy)``; both count from 1."""


class Place(NamedTuple):
    """The place of an instance: its index, and the numbers of a consumer and of a subscription from 1.

    They are 0 where there is one of it for all of them, or one of them.  The consumers of each subscription are counted
    from 1; where each has a session of its own, the session has the number of its consumer.
    """

    of: Index
    consumer: int = 0
    subscription: int = 0


Observer = tuple[str, Monitor]
"""An anomaly, or a name of one's own, and the machine that observes it."""

_MOST_FAULTS = 1000
"""A budget is a machine with one state for each fault left; more are as good as no limit."""


_MOST_EVENTS = 60_000
"""What a search can number, with some to spare."""

_MOST_PARTICIPANTS = 12_000_000
"""Machines that may hear an event of another message, summed over events; a configuration leaves about a third of them.
Composing and packing these takes about a minute of processor time."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of a check.

    The messages, the ``subscriptions`` to each of which every message goes (or the queues that it is routed to), how
    many of them, the last ones, are ``non_durable`` whatever the others are, the ``consumers`` of each (each with a
    session and a connection of its own, or all of them in ``one_session``), the faults that may happen, how many of
    them in all (``None``: any number), the ``actions``: those optional events of the application that are to be
    considered too, and the events that this check goes ``without``: a timer that never fires, an application that
    never acknowledges.  Faults may be given by their names; any collection of them will do.

    With ``strikes_while`` (``processing.busy``) faults happen only while that machine of the first message, or of the
    system, is in that state; those of another message by itself may happen at any time.

    Raises :class:`InputError` for a number out of range, a fault that does not exist, and whatever is no set of names.
    """

    messages: int = 1
    faults: frozenset[Fault] = frozenset()
    max_faults: int | None = 1
    actions: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    consumers: int = 1
    one_session: bool = False
    subscriptions: int = 1
    non_durable: int = 0
    strikes_while: str = ""

    def __post_init__(self) -> None:
        check_number("messages", self.messages, optional=False)
        check_number("consumers", self.consumers, optional=False)
        check_number("subscriptions", self.subscriptions, optional=False)
        check_number("non_durable", self.non_durable, 0, optional=False)
        if self.non_durable and self.non_durable >= self.subscriptions:
            raise InputError("non_durable is how many of several subscriptions are; for all of them set destination")
        check_number("max_faults", self.max_faults, 0)
        if self.max_faults is not None and self.max_faults > _MOST_FAULTS:
            raise InputError(
                f"a budget of {self.max_faults} faults is more than {_MOST_FAULTS}; leave it without limit (any)"
            )
        for name in ("faults", "actions", "without"):
            check_names(name, getattr(self, name))
            object.__setattr__(self, name, frozenset(getattr(self, name)))
        if not isinstance(self.one_session, bool):
            raise InputError(f"one_session cannot be {shown(repr(self.one_session))}; it is true or false")
        if self.one_session and self.consumers == 1:
            raise InputError("one consumer is in one session as it is; one_session is for several consumers")
        object.__setattr__(self, "faults", frozenset(map(_fault, self.faults)))

    @property
    def sessions(self) -> int:
        """How many sessions the consumers of a subscription have."""
        return 1 if self.one_session else self.consumers

    def as_dict(self) -> dict[str, Any]:
        """Return the bounds as plain JSON values; absent ones are one of them, a session for each, and no event."""
        return {
            "messages": self.messages,
            **({"consumers": self.consumers} if self.consumers > 1 else {}),
            **({"one_session": True} if self.one_session else {}),
            **({"subscriptions": self.subscriptions} if self.subscriptions > 1 else {}),
            **({"non_durable": self.non_durable} if self.non_durable else {}),
            "faults": [fault.value for fault in Fault if fault in self.faults],
            "max_faults": self.max_faults,
            **({"actions": sorted(self.actions)} if self.actions else {}),
            **({"without": sorted(self.without)} if self.without else {}),
            **({"strikes_while": self.strikes_while} if self.strikes_while else {}),
        }


def _fault(name: str) -> Fault:
    try:
        return Fault(name)
    except ValueError:
        faults = ", ".join(Fault)
        raise InputError(f"there is no fault {quoted(name)}{meant(name, Fault)}; the faults are {faults}") from None


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """One machine at one index; ``marked`` and ``marked_at_rest`` are states of one that observes ``anomaly``."""

    fsm: Fsm
    index: Index
    anomaly: str | None = None
    marked: frozenset[str] = frozenset()
    marked_at_rest: frozenset[str] = frozenset()
    consumer: int = 0
    subscription: int = 0

    @property
    def place(self) -> Place:
        """Where it is."""
        return Place(self.index, self.consumer, self.subscription)

    @property
    def label(self) -> str:
        """``entry(m1)``, ``broker``, ``delivery(m1,c2)`` at the second consumer, ``entry(m1,s2)`` in a subscription."""
        return _label(self.fsm.name, self.place)


@dataclasses.dataclass(frozen=True, slots=True)
class Participant:
    """An instance (by number) that takes part in an event, and the name that its table has for the event."""

    instance: int
    event: EventRef


@dataclasses.dataclass(frozen=True, slots=True)
class NetworkEvent:
    """One event at one index.  It can happen when every participant has a row for it.

    One that ``may_never_happen`` (a fault, an action of the application) is nothing that a system at rest waits for.
    """

    name: str
    index: Index
    may_never_happen: bool
    participants: tuple[Participant, ...]
    consumer: int = 0
    subscription: int = 0

    @property
    def place(self) -> Place:
        """Where it happens."""
        return Place(self.index, self.consumer, self.subscription)

    @property
    def label(self) -> str:
        """``send(m1)``, ``accept(m1#2)`` (the second copy), ``arrive(m1,c2)`` (at a consumer), ``broker_crash``.

        ``expired(m1,s2)`` is in the second subscription, ``arrive(m1,s2,c1)`` at the first consumer of that.
        """
        return _label(self.name, self.place)


@dataclasses.dataclass(frozen=True, slots=True)
class Network:
    """A system: instances and events.  A state is one state name for each instance, in their order."""

    configuration: Configuration
    bounds: Bounds
    instances: tuple[Instance, ...]
    events: tuple[NetworkEvent, ...]

    @property
    def initial(self) -> tuple[str, ...]:
        """Every machine in its first state."""
        return tuple(instance.fsm.initial for instance in self.instances)

    def rows(self, state: Sequence[str], event: NetworkEvent) -> Iterator[tuple[Instance, Row]]:
        """What each participant's table says of ``event`` in ``state``."""
        for part in event.participants:
            instance = self.instances[part.instance]
            yield instance, instance.fsm.rows[state[part.instance], part.event]

    def step(self, state: Sequence[str], event: NetworkEvent) -> tuple[str, ...] | None:
        """The state after ``event``, or ``None`` if some participant refuses it."""
        moves: dict[int, str] = {}
        for part in event.participants:
            row = self.instances[part.instance].fsm.rows[state[part.instance], part.event]
            if row.kind is RowKind.REFUSE:
                return None
            moves[part.instance] = row.target
        after = list(state)  # only now: most events are refused
        for instance, target in moves.items():
            after[instance] = target
        return tuple(after)


def _label(name: str, place: Place) -> str:
    index, consumer, subscription = place
    copy = f"#{index[1]}" if len(index) > 1 and index[1] > 1 else ""
    parts = [f"m{index[0]}{copy}" if index else "", f"s{subscription}" if subscription else ""]
    parts = [part for part in (*parts, f"c{consumer}" if consumer else "") if part]
    return f"{name}({','.join(parts)})" if parts else name


def observers_of(specification: Specification, only: Collection[str] | None = None) -> tuple[Observer, ...]:
    """The property machines, each with its anomaly, and the monitors that exclude guarantees; of ``only`` these names.

    Raises :class:`InputError` for a name that is neither.
    """
    properties = ((prop.anomaly, monitor) for prop in specification.properties.values() for monitor in prop.monitors)
    ends = ((name, specification.monitors[name]) for name in specification.guarantees.monitors)
    every = (*properties, *ends)
    if only is None:
        return every
    known = list(dict.fromkeys(str(name) for name, _ in every))
    for name in only:
        if name not in known:
            raise InputError(
                f"nothing watches for {quoted(name)}{meant(name, known)}; what can be is {', '.join(known)}"
            )
    return tuple(observer for observer in every if observer[0] in set(only))


_HAPPENS = re.compile(r"happens\((?P<event>[a-z_]+)\)")


def observers_named(specification: Specification, names: Iterable[str]) -> tuple[Observer, ...]:
    """What watches for each of ``names``: an anomaly, any monitor of the tables, or that an event ``happens(send)``.

    Raises :class:`InputError` for a name that is none of them.
    """
    return tuple(observer for name in sorted(names) for observer in _watching_for(specification, name))


def _watching_for(specification: Specification, name: str) -> list[Observer]:
    if name in specification.monitors:
        return [(name, specification.monitors[name])]
    if match := _HAPPENS.fullmatch(name):
        return [(name, _happening(specification, match["event"]))]
    if name not in set(Anomaly):
        raise InputError(f"there is nothing called {name!r} to watch for: no anomaly, no monitor, no happens(event)")
    if (prop := specification.properties.get(Anomaly(name))) is None:
        raise InputError(f"no property defines {name} yet, so whether it can happen is not decided")
    return [(name, monitor) for monitor in prop.monitors]


def _happening(specification: Specification, name: str) -> Monitor:
    """A machine that waits for one event."""
    if specification.owner(name) is None:
        raise InputError(f"no machine of the tables decides {name!r}, so whether it happens cannot be told")
    event = EventRef(name)
    cells = {
        (state, event): (Row(state, event, RowKind.TO, "happened", "it happens", None, None, ALWAYS, "", 0),)
        for state in ("not_yet", "happened")
    }
    per = specification.events[name].per
    means = f"whether {name} has happened"
    machine = Machine(f"happens_{name}", per, means, (), ("not_yet", "happened"), (event,), cells, None, (), "", 0)
    return Monitor(machine, frozenset({"happened"}), frozenset())


def compose(
    specification: Specification,
    configuration: Configuration,
    bounds: Bounds,
    observers: Collection[Observer] | None = None,
) -> Network:
    """The system that ``configuration`` leaves of the tables, with ``observers`` beside it: by default all properties.

    Raises :class:`InputError` if the tables have no event of a name in ``bounds``.
    """
    known = {event.name for event in specification.events.values() if event.optional}
    if strange := sorted(bounds.actions - known):
        hint = meant(strange[0], known)
        raise InputError(f"there is no action {quoted(strange[0])}{hint}; the actions are {', '.join(sorted(known))}")
    if strange := sorted(bounds.without - specification.events.keys()):
        hint = meant(strange[0], specification.events)
        raise InputError(
            f"there is no event {quoted(strange[0])} to go without{hint}; spec/events.yaml lists the events"
        )
    if bounds.strikes_while:
        _check_state(specification, bounds.strikes_while)
    chosen = observers_of(specification) if observers is None else observers
    return _Composer(specification, configuration, bounds, chosen).network()


def _check_state(specification: Specification, name: str) -> None:
    """Raise :class:`InputError` unless ``name`` is a machine of the tables with one of its states."""
    machine, dot, state = name.partition(".")
    if not dot:
        raise InputError(f"{quoted(name)} is not a machine and a state of it, as processing.busy is")
    if machine not in specification.machines:
        raise InputError(f"there is no machine {quoted(machine)}{meant(machine, specification.machines)}")
    found = specification.machines[machine]
    if found.counter is not None:
        raise InputError(f"{machine} counts, and has no states to name; name another machine")
    if state not in found.states:
        known = ", ".join(found.states)
        raise InputError(f"{machine} has no state {quoted(state)}{meant(state, found.states)}; its states are {known}")


def environments(
    specification: Specification, configuration: Configuration, bounds: Bounds, subscription: int = 1
) -> tuple[Mapping[str, object], ...]:
    """Return the values that conditions of rows read, for the first copy and, if there is one, the second.

    What there is one of for all subscriptions reads the first, which is durable if any of them is.
    """
    copies = specification.copies(configuration, bounds.actions)
    every = routes(configuration, bounds)
    beside = [one.destination for number, one in enumerate(every, start=1) if number != subscription]
    return tuple(
        specification.environment(
            every[subscription - 1],
            faults=bounds.faults,
            max_faults=bounds.max_faults,
            messages=bounds.messages,
            consumers=bounds.consumers,
            sessions=bounds.sessions,
            durable_beside=any(one is not Destination.NON_DURABLE_SUBSCRIPTION for one in beside),
            copy=copy,
            copies=bounds.messages * copies,
            repeats=_repeats(bounds),
        )
        for copy in range(1, copies + 1)
    )


def _repeats(bounds: Bounds) -> int | None:
    """How often a delivery is repeated at most, as far as limits of attempts are concerned; ``None``: any number."""
    return None if bounds.actions else bounds.max_faults


_FAULTS = frozenset(Fault)


def routes(configuration: Configuration, bounds: Bounds) -> tuple[Configuration, ...]:
    """``configuration`` as it is for each subscription, in their order."""
    last = dataclasses.replace(configuration, destination=Destination.NON_DURABLE_SUBSCRIPTION)
    return (configuration,) * (bounds.subscriptions - bounds.non_durable) + (last,) * bounds.non_durable


class _Composer:
    def __init__(
        self,
        specification: Specification,
        configuration: Configuration,
        bounds: Bounds,
        observers: Collection[Observer],
    ) -> None:
        self.specification = specification
        self.configuration = configuration
        self.bounds = bounds
        self.observers = observers
        self.copies = specification.copies(configuration, bounds.actions)
        self.environments = {
            (copy, s): environment
            for s in self._subscriptions
            for copy, environment in enumerate(environments(specification, configuration, bounds, s or 1), start=1)
        }
        self.kinds = {name: event.per for name, event in specification.events.items()}
        at_consumers = (Lane.CONSUMER, Lane.CONSUMER)
        self.local = {name for name, event in specification.events.items() if (event.start, event.end) == at_consumers}
        self._composed: dict[tuple[str, str], dict[Place, Fsm]] = {}
        self._placed: dict[IndexKind, list[Place]] = {}

    def network(self) -> Network:
        self._refuse_too_many()
        instances = (*map(self._restrained, self._system()), *self._monitors())
        return Network(self.configuration, self.bounds, instances, tuple(self._events(instances)))

    def _refuse_too_many(self) -> None:
        """Events that cannot be numbered, or machines that would take hours, before any of them is made."""
        of_message = [e for e in self.specification.events.values() if e.per.whole is not IndexKind.SYSTEM]
        copies = self.copies * self.bounds.consumers * self.bounds.subscriptions
        most = _MOST_EVENTS // max(1, len(of_message) * copies)
        machines = [*self.specification.machines.values(), *(monitor.machine for _, monitor in self.observers)]
        machines = [machine for machine in machines if machine.per.whole is not IndexKind.SYSTEM]
        heard = sum(event.relation is not Relation.OWN for machine in machines for event in machine.alphabet)
        most = min(most, math.isqrt(_MOST_PARTICIPANTS // max(1, heard * copies**2)))
        if self.bounds.messages > most:
            raise InputError(
                f"{self.bounds.messages:,} messages make a system too large to be composed; ask about {most:,} at most"
            )

    def _places(self, per: IndexKind) -> list[Place]:
        found = self._placed.get(per)
        if found is None:
            found = self._placed[per] = self._all_places(per)
        return found

    def _all_places(self, per: IndexKind) -> list[Place]:
        several = per.of_consumer and (self.bounds.sessions if per is IndexKind.SESSION else self.bounds.consumers) > 1
        consumers = range(1, self.bounds.consumers + 1) if several else (0,)
        indices, subscriptions = self._indices(per.whole), self._subscriptions if per.of_subscription else (0,)
        return [Place(index, consumer, s) for index in indices for s in subscriptions for consumer in consumers]

    @property
    def _subscriptions(self) -> Sequence[int]:
        return range(1, self.bounds.subscriptions + 1) if self.bounds.subscriptions > 1 else (0,)

    def _indices(self, per: IndexKind) -> list[Index]:
        messages = range(1, self.bounds.messages + 1)
        if per is IndexKind.SYSTEM:
            return [()]
        if per is IndexKind.MESSAGE:
            return [(m,) for m in messages]
        return [(m, c) for m in messages for c in range(1, self.copies + 1)]

    def _fsms(self, machine: Machine) -> dict[Place, Fsm]:
        name = (machine.file, machine.name)
        if name not in self._composed:
            fsms = {key: self._fsm(machine, environment) for key, environment in self.environments.items()}
            self._composed[name] = {place: fsms[self._read_by(place)] for place in self._places(machine.per)}
        return self._composed[name]

    def _fsm(self, machine: Machine, environment: Mapping[str, object]) -> Fsm:
        fsm = machine.fsm(environment)
        bounds = self.bounds
        return hold(machine, fsm, bounds.consumers, self.kinds, local=self.local, one_session=bounds.one_session)

    def _read_by(self, place: Place) -> tuple[int, int]:
        """Return the copy and the subscription that the machine at ``place`` reads."""
        copy = place.of[1] if len(place.of) > 1 else 1
        return copy, place.subscription or self._subscriptions[0]

    def _system(self) -> Iterator[Instance]:
        for machine in self.specification.machines.values():
            for (index, consumer, subscription), fsm in self._fsms(machine).items():
                yield Instance(fsm, index, consumer=consumer, subscription=subscription)

    def _restrained(self, instance: Instance) -> Instance:
        """The machine; where faults wait for it, refusing each in all states but that in which they strike."""
        machine, _, strikes = self.bounds.strikes_while.partition(".")
        fsm = instance.fsm
        if fsm.name != machine or not set(instance.index) <= {1} or instance.subscription > 1:
            return instance
        rows = dict(fsm.rows)
        faults = [EventRef(fault.value) for fault in Fault if fault in self.bounds.faults]
        for state, fault in itertools.product(fsm.states, faults):
            kind = RowKind.IGNORE if base_state(state) == strikes else RowKind.REFUSE
            if kind is RowKind.REFUSE or (state, fault) not in rows:
                because = f"faults strike while it is {strikes}"
                rows[state, fault] = Row(state, fault, kind, state, because, None, None, ALWAYS, "", 0)
        alphabet = tuple(dict.fromkeys((*fsm.alphabet, *faults)))
        return dataclasses.replace(instance, fsm=dataclasses.replace(fsm, alphabet=alphabet, rows=rows))

    def _monitors(self) -> Iterator[Instance]:
        for name, monitor in self.observers:
            for (index, consumer, subscription), fsm in self._fsms(monitor.machine).items():
                marked, at_rest = (
                    frozenset(state for state in fsm.states if base_state(state) in states)
                    for states in (monitor.marked, monitor.marked_at_rest)
                )
                yield Instance(fsm, index, name, marked, at_rest, consumer, subscription)

    def _events(self, instances: tuple[Instance, ...]) -> Iterator[NetworkEvent]:
        happening = list(self._happening())
        heard = {name for _, name, _ in happening}
        listeners = _listeners(instances, heard, one_session=self.bounds.one_session)
        for machine, name, place in happening:
            event = self._event(machine, name, place, instances, listeners[name])
            if all(part.event in instances[part.instance].fsm.possible for part in event.participants):
                yield event

    def _happening(self) -> Iterator[tuple[Machine, str, Place]]:
        """Yield the events that are not left out and that their owners have rows for, each with its owner."""
        for machine in self.specification.machines.values():
            for name in machine.owns:
                declared = self.specification.events[name]
                if (declared.optional and name not in self.bounds.actions) or name in self.bounds.without:
                    continue
                for place in self._places(declared.per):
                    if self._owner_has_a_row(machine, name, place):
                        yield machine, name, place

    def _owner_has_a_row(self, machine: Machine, name: str, place: Place) -> bool:
        fsms = self._fsms(machine)
        first = next(iter(fsms))
        index, consumer = place.of[: len(first.of)], place.consumer if first.consumer else 0
        subscriptions = (place.subscription,) if place.subscription and first.subscription else self._subscriptions
        owners = [fsms[Place(index, consumer, s)] for s in (subscriptions if first.subscription else (0,))]
        own = {EventRef(name), EventRef(name, consumer=place.consumer)}
        return any(event in fsm.moving for fsm in owners for event in own)

    def _event(
        self,
        owner: Machine,
        name: str,
        place: Place,
        instances: tuple[Instance, ...],
        listeners: _Listeners,
    ) -> NetworkEvent:
        parts = listeners.of(place)
        parts.sort(key=lambda part: instances[part.instance].fsm.name != owner.name)
        may_never_happen = name in _FAULTS or self.specification.events[name].optional
        return NetworkEvent(name, place.of, may_never_happen, tuple(parts), place.consumer, place.subscription)


class _Listeners:
    """The machines that hear the events of one name; the ones that hear only their own message's, by that message."""

    def __init__(self, *, one_session: bool) -> None:
        self._one_session = one_session
        self._own: dict[Index, list[tuple[int, Place, Participant]]] = defaultdict(list)
        self._others: list[tuple[int, Place, Participant]] = []
        self._count = 0

    def add(self, place: Place, part: Participant) -> None:
        """Add a machine at ``place``."""
        among = self._own[place.of[:1]] if part.event.relation is Relation.OWN else self._others
        among.append((self._count, place, part))
        self._count += 1

    def of(self, its: Place) -> list[Participant]:
        """Which machines hear the event at the place ``its``, in the order in which they were added."""
        message = its.of[:1]
        own = [*self._own[()], *self._own[message]] if message else [mine for of in self._own.values() for mine in of]
        consumers = {0, its.consumer}
        found = sorted(
            (number, part)
            for number, mine, part in (*own, *self._others)
            if part.event.consumer in consumers
            and concerns(part.event.relation, mine, its, one_session=self._one_session)
        )
        return [part for _, part in found]


def _listeners(
    instances: tuple[Instance, ...], heard: Collection[str], *, one_session: bool
) -> Mapping[str, _Listeners]:
    """Which machines hear the events of each name that is ``heard``."""
    found: dict[str, _Listeners] = defaultdict(functools.partial(_Listeners, one_session=one_session))
    for number, instance in enumerate(instances):
        place = instance.place
        for name, events in instance.fsm.reactive_events.items():
            if name in heard:
                among = found[name]
                for event in events:
                    among.add(place, Participant(number, event))
    return found


def concerns(relation: Relation, mine: Place, its: Place, *, one_session: bool = False) -> bool:
    """Whether an event at the place ``its`` stands to the machine at the place ``mine`` in this relation.

    Different consumers have different sessions, or those of a subscription are all in ``one_session``.
    """
    common = min(len(mine.of), len(its.of))
    here, there = mine.of[:common], its.of[:common]
    if mine.subscription and its.subscription and mine.subscription != its.subscription:
        return relation is Relation.OTHER_SUBSCRIPTION and here == there
    elsewhere = bool(mine.consumer and its.consumer and mine.consumer != its.consumer)
    if relation is Relation.OWN:  # nearly all are
        return here == there and not elsewhere
    in_session = one_session or not elsewhere
    match relation:
        case Relation.OTHER:
            holds = here != there and in_session
        case Relation.EARLIER:
            holds = there < here and in_session
        case Relation.LATER:
            holds = there > here and in_session
        case Relation.LATER_HERE:
            holds = there > here and not elsewhere
        case Relation.LATER_BESIDE:
            holds = there > here and elsewhere and in_session
        case Relation.ELSEWHERE:
            holds = here == there and elsewhere
        case Relation.OTHER_ELSEWHERE:
            holds = here != there and elsewhere
        case _:
            holds = False
    return holds
