"""Composition: the machines of a configuration, side by side, synchronised on the events that they share.

:func:`compose` makes every instance of every machine (once for the system, for each message,
for each copy of a message) and every event with its participants.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from ackfsm.tables import EventRef, Fsm, IndexKind, Machine, Monitor, Relation, Row, RowKind, Specification
from ackfsm.terms import Configuration, Fault, InputError, check_names, check_number
from ackfsm.text import quoted

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
    "observers_of",
]

Index = tuple[int, ...]
"""``()`` for the system, ``(message,)``, or ``(message, copy)``; both count from 1."""

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
    """What a check is bounded by.

    The messages, the faults that may happen, how many of them in all (``None``: any number),
    the ``actions``: those optional events of the application that are to be considered too, and
    the events that this check goes ``without``: a timer that never fires, an application that never acknowledges.
    Faults may be given by their names; any collection of them will do.

    Raises :class:`InputError` for a number out of range, a fault that does not exist, and whatever is no set of names.
    """

    messages: int = 1
    faults: frozenset[Fault] = frozenset()
    max_faults: int | None = 1
    actions: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        check_number("messages", self.messages, optional=False)
        check_number("max_faults", self.max_faults, 0)
        if self.max_faults is not None and self.max_faults > _MOST_FAULTS:
            raise InputError(
                f"a budget of {self.max_faults} faults is more than {_MOST_FAULTS}; leave it without limit (any)"
            )
        for name in ("faults", "actions", "without"):
            check_names(name, getattr(self, name))
            object.__setattr__(self, name, frozenset(getattr(self, name)))
        object.__setattr__(self, "faults", frozenset(map(_fault, self.faults)))


def _fault(name: str) -> Fault:
    try:
        return Fault(name)
    except ValueError:
        faults = ", ".join(Fault)
        raise InputError(f"there is no fault {quoted(name)}; the faults are {faults}") from None


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """One machine at one index; ``marked`` and ``marked_at_rest`` are states of one that observes ``anomaly``."""

    fsm: Fsm
    index: Index
    anomaly: str | None = None
    marked: frozenset[str] = frozenset()
    marked_at_rest: frozenset[str] = frozenset()

    @property
    def label(self) -> str:
        """``entry(m1)``, ``broker``."""
        return _label(self.fsm.name, self.index)


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

    @property
    def label(self) -> str:
        """``send(m1)``, ``accept(m1#2)`` (the second copy), ``broker_crash``."""
        return _label(self.name, self.index)


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
        after = list(state)
        for part in event.participants:
            row = self.instances[part.instance].fsm.rows[state[part.instance], part.event]
            if row.kind is RowKind.REFUSE:
                return None
            after[part.instance] = row.target
        return tuple(after)


def _label(name: str, index: Index) -> str:
    if not index:
        return name
    copy = f"#{index[1]}" if len(index) > 1 and index[1] > 1 else ""
    return f"{name}(m{index[0]}{copy})"


def observers_of(specification: Specification) -> tuple[Observer, ...]:
    """The property machines, each with its anomaly."""
    return tuple((prop.anomaly, monitor) for prop in specification.properties.values() for monitor in prop.monitors)


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
        raise InputError(f"there is no action {quoted(strange[0])}; the actions are {', '.join(sorted(known))}")
    if strange := sorted(bounds.without - specification.events.keys()):
        raise InputError(f"there is no event {quoted(strange[0])} to go without; spec/events.yaml lists the events")
    chosen = observers_of(specification) if observers is None else observers
    return _Composer(specification, configuration, bounds, chosen).network()


def environments(
    specification: Specification, configuration: Configuration, bounds: Bounds
) -> tuple[Mapping[str, object], ...]:
    """What the conditions of rows read, for the first copy of a message and, if there is one, the second."""
    copies = _copies(configuration)
    return tuple(
        specification.environment(
            configuration,
            faults=bounds.faults,
            max_faults=bounds.max_faults,
            messages=bounds.messages,
            copy=copy,
            copies=bounds.messages * copies,
            repeats=None if bounds.actions else bounds.max_faults,
        )
        for copy in range(1, copies + 1)
    )


def _copies(configuration: Configuration) -> int:
    return 2 if configuration.resend_in_doubt else 1


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
        self.copies = _copies(configuration)
        self.environments = environments(specification, configuration, bounds)
        self._composed: dict[tuple[str, str], dict[Index, Fsm]] = {}

    def network(self) -> Network:
        self._refuse_too_many()
        instances = (*self._system(), *self._monitors())
        return Network(self.configuration, self.bounds, instances, tuple(self._events(instances)))

    def _refuse_too_many(self) -> None:
        """Events that cannot be numbered, or machines that would take hours, before any of them is made."""
        of_message = [e for e in self.specification.events.values() if e.per is not IndexKind.SYSTEM]
        most = _MOST_EVENTS // max(1, len(of_message) * self.copies)
        machines = [m for m in self.specification.machines.values() if m.per is not IndexKind.SYSTEM]
        machines += [monitor.machine for _, monitor in self.observers if monitor.machine.per is not IndexKind.SYSTEM]
        heard = sum(event.relation is not Relation.OWN for machine in machines for event in machine.alphabet)
        most = min(most, math.isqrt(_MOST_PARTICIPANTS // max(1, heard * self.copies**2)))
        if self.bounds.messages > most:
            raise InputError(
                f"{self.bounds.messages:,} messages make a system too large to be composed; ask about {most:,} at most"
            )

    def _indices(self, per: IndexKind) -> list[Index]:
        messages = range(1, self.bounds.messages + 1)
        if per is IndexKind.SYSTEM:
            return [()]
        if per is IndexKind.MESSAGE:
            return [(m,) for m in messages]
        return [(m, c) for m in messages for c in range(1, self.copies + 1)]

    def _fsms(self, machine: Machine) -> dict[Index, Fsm]:
        place = (machine.file, machine.name)
        if place not in self._composed:
            by_copy = {copy: machine.fsm(environment) for copy, environment in enumerate(self.environments, start=1)}
            indices = self._indices(machine.per)
            self._composed[place] = {index: by_copy[index[1] if len(index) > 1 else 1] for index in indices}
        return self._composed[place]

    def _system(self) -> Iterator[Instance]:
        for machine in self.specification.machines.values():
            for index, fsm in self._fsms(machine).items():
                yield Instance(fsm, index)

    def _monitors(self) -> Iterator[Instance]:
        for name, monitor in self.observers:
            for index, fsm in self._fsms(monitor.machine).items():
                yield Instance(fsm, index, name, monitor.marked, monitor.marked_at_rest)

    def _events(self, instances: tuple[Instance, ...]) -> Iterator[NetworkEvent]:
        listeners = _listeners(instances)
        for machine in self.specification.machines.values():
            for name in machine.owns:
                declared = self.specification.events[name]
                if (declared.optional and name not in self.bounds.actions) or name in self.bounds.without:
                    continue
                for index in self._indices(declared.per):
                    if self._owner_has_a_row(machine, EventRef(name), index):
                        event = self._event(machine, name, index, instances, listeners[name])
                        if all(part.event in instances[part.instance].fsm.possible for part in event.participants):
                            yield event

    def _owner_has_a_row(self, machine: Machine, event: EventRef, index: Index) -> bool:
        fsms = self._fsms(machine)
        return fsms[index[: len(next(iter(fsms)))]].has_transition(event)

    def _event(
        self,
        owner: Machine,
        name: str,
        index: Index,
        instances: tuple[Instance, ...],
        listeners: _Listeners,
    ) -> NetworkEvent:
        parts = listeners.of(index)
        parts.sort(key=lambda part: instances[part.instance].fsm.name != owner.name)
        may_never_happen = name in set(Fault) or self.specification.events[name].optional
        return NetworkEvent(name, index, may_never_happen, tuple(parts))


class _Listeners:
    """Which machines hear the events of one name; those that hear only events of their own message, by that message."""

    def __init__(self) -> None:
        self._own: dict[Index, list[tuple[int, Index, Participant]]] = defaultdict(list)
        self._others: list[tuple[int, Index, Participant]] = []
        self._count = 0

    def add(self, index: Index, part: Participant) -> None:
        """Add a machine at ``index``."""
        among = self._own[index[:1]] if part.event.relation is Relation.OWN else self._others
        among.append((self._count, index, part))
        self._count += 1

    def of(self, its: Index) -> list[Participant]:
        """Which machines hear the event at the index ``its``, in the order in which they were added."""
        own = [*self._own[()], *self._own[its[:1]]] if its else [mine for group in self._own.values() for mine in group]
        found = sorted(
            (number, part) for number, index, part in (*own, *self._others) if concerns(part.event.relation, index, its)
        )
        return [part for _, part in found]


def _listeners(instances: tuple[Instance, ...]) -> Mapping[str, _Listeners]:
    """Which machines hear the events of each name."""
    found: dict[str, _Listeners] = defaultdict(_Listeners)
    for number, instance in enumerate(instances):
        for name, events in instance.fsm.reactive_events.items():
            for event in events:
                found[name].add(instance.index, Participant(number, event))
    return found


def concerns(relation: Relation, mine: Index, its: Index) -> bool:
    """Whether an event at index ``its`` stands to the machine at index ``mine`` in this relation."""
    common = min(len(mine), len(its))
    mine, its = mine[:common], its[:common]
    match relation:
        case Relation.OWN:
            return mine == its
        case Relation.OTHER:
            return mine != its
        case Relation.EARLIER:
            return its < mine
        case Relation.LATER:
            return its > mine
    raise AssertionError(relation)
