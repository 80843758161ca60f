"""The machines to fold over each message of a history: the properties of the tables, and the counters."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from ackfsm.tables import IndexKind, Monitor, Property, Relation, RowKind, Specification
from ackfsm.tables.names import Condition
from ackfsm.terms import Anomaly, Configuration, Fault, SpecError
from ackfsm.verify.counting.count import Prefetch
from ackfsm.verify.counting.machines import Machines, Watcher, compile_watchers
from ackfsm.verify.counting.observables import OBSERVABLES, Observable

_DELIVERED = (Observable.DELIVERED_CLEAR, Observable.DELIVERED_FLAGGED)


MESSAGES: Final = "messages"
"""The counter of the messages of the history: everything that was sent."""

_CLEAR, _FLAGGED = _DELIVERED
_RESENT = (Observable.RESEND,)
_CALLED = (Observable.SEND, Observable.RESEND)
_SENT = (*_CALLED, Observable.SEND_IN_TRANSACTION)
_CONFIRMED = (Observable.CONFIRMED, Observable.COMMITTED)
_DOUBTED = (Observable.IN_DOUBT, Observable.COMMIT_IN_DOUBT)
_ANSWERED = (Observable.CONFIRMED, Observable.REJECTED, Observable.IN_DOUBT, Observable.SEND_IN_TRANSACTION)
_ENDED = (Observable.EXPIRED, Observable.DEAD_LETTERED, Observable.REJECTED, Observable.ROLLED_BACK)
_ACCOUNTED_FOR = (*_DELIVERED, *_CONFIRMED, *_ENDED)


_Row: TypeAlias = tuple[str, Sequence[Observable], str]


@dataclasses.dataclass(frozen=True, slots=True)
class _Counter:
    """A machine that lists only what moves it: from a state, by any of these, to another one."""

    rows: Sequence[_Row]
    initial: str = "no"

    @property
    def states(self) -> Sequence[str]:
        return tuple(dict.fromkeys(state for row in self.rows for state in (row[0], row[2])))

    def step(self, state: str, event: str, /) -> str:
        return next((after for before, moved_by, after in self.rows if before == state and event in moved_by), state)


def _never(observables: Sequence[Observable], *states: str) -> Iterator[_Row]:
    """What one of ``observables`` leaves uncounted for good, in any of these states."""
    return ((state, observables, "never") for state in states)


_COUNTERS: Final[Mapping[str, Sequence[_Row]]] = {
    MESSAGES: [("no", _SENT, "yes")],
    "confirmed": [("no", _CONFIRMED, "yes")],
    "rejected": [("no", (Observable.REJECTED,), "yes")],
    "in_doubt": [("no", _DOUBTED, "yes"), *_never(_CONFIRMED, "no", "yes")],
    "no_outcome": [("no", _CALLED, "yes"), *_never(_ANSWERED, "no", "yes")],
    "resent": [("no", _RESENT, "yes")],
    "delivered": [("no", _DELIVERED, "yes")],
    "processed": [("no", (Observable.PROCESSED,), "yes")],
    "flag_first_sight": [("no", (_FLAGGED,), "yes"), *_never((_CLEAR,), "no")],
    "unflagged_duplicate_not_resent": [
        ("no", _DELIVERED, "once"),
        ("once", (_CLEAR,), "yes"),
        *_never(_RESENT, "no", "once", "yes"),
    ],
    "undelivered_unconfirmed": [("no", _SENT, "yes"), *_never(_ACCOUNTED_FOR, "no", "yes")],
    "expired": [("no", (Observable.EXPIRED,), "yes")],
    "dead_lettered": [("no", (Observable.DEAD_LETTERED,), "yes")],
}

COUNTERS: Final = tuple(Watcher(name, _Counter(rows), frozenset({"yes"})) for name, rows in _COUNTERS.items())
"""One watcher for each counter, so that one fold gives them with the anomalies; each counts the messages that end in
``yes``, and not deliveries."""


def folded_properties(specification: Specification) -> Mapping[Anomaly, Property]:
    """The properties that a fold decides, each with its machines over the observables of one message."""
    found = {
        anomaly: dataclasses.replace(definition, monitors=tuple(m for m in definition.monitors if not m.model_only))
        for anomaly, definition in specification.properties.items()
    }
    return {anomaly: definition for anomaly, definition in found.items() if definition.monitors}


def needs_configuration(definition: Property) -> bool:
    """Whether a machine of the property has rows that depend on a setting."""
    return any(row.when.settings() for monitor in definition.monitors for row in monitor.machine.rows())


def machines_of(specification: Specification, configuration: Configuration | None) -> Machines:
    """Compile the machines to fold: the properties, named after the anomaly, the ends, and the counters.

    Without a configuration the properties that depend on one are left out.  Raises
    :class:`SpecError` for a property machine that observables of one message cannot drive.
    """
    settings = {} if configuration is None else specification.environment(configuration)
    ends = (
        Watcher(name, monitor.machine.fsm(settings), monitor.marked, monitor.marked_at_rest)
        for name, monitor in ((name, specification.monitors[name]) for name in specification.guarantees.monitors)
    )
    return compile_watchers([*_property_watchers(specification, configuration), *ends, *COUNTERS])


def window_of(specification: Specification, configuration: Configuration) -> int | None:
    """The bound of unanswered sends of a session; ``None`` if there is none, or if plain sends are not confirmed."""
    answered = specification.conditions[Condition.CONFIRMS_PLAIN_SENDS]
    return configuration.publish_window if answered.holds(specification.environment(configuration)) else None


def prefetch_of(specification: Specification, configuration: Configuration) -> Prefetch | None:
    """The bound of unacknowledged deliveries; ``None`` if there is none, or if acknowledging does not make room.

    It is read from the machine of ``prefetch_overrun``: its bound, and whether it counts deliveries in this
    configuration.  The faults that it reacts to are those that interrupt a session.
    """
    environment = specification.environment(configuration)
    for monitor in specification.properties[Anomaly.PREFETCH_OVERRUN].monitors:
        machine = monitor.machine
        deciding = next(row for row in machine.rows() if row.event.name in _DELIVERED and row.when.holds(environment))
        bound = environment[machine.counter.bound] if machine.counter else None
        if bound is not None and deciding.kind is not RowKind.IGNORE:
            faults = {event.name for event in machine.alphabet} & set(Fault)
            return Prefetch(bound, frozenset(map(Fault, faults)))
    return None


def _property_watchers(specification: Specification, configuration: Configuration | None) -> Iterator[Watcher]:
    settings = {} if configuration is None else specification.environment(configuration)
    for anomaly, definition in folded_properties(specification).items():
        if configuration is None and needs_configuration(definition):
            continue
        for monitor in definition.monitors:
            _check_observable(monitor, specification)
            yield Watcher(anomaly, monitor.machine.fsm(settings), monitor.marked, monitor.marked_at_rest)


_OF_A_MESSAGE = (IndexKind.MESSAGE, IndexKind.ROUTED_MESSAGE)
"""A history is one of one subscription, so that these are the same."""


def _check_observable(monitor: Monitor, specification: Specification) -> None:
    """Refuse a monitor of a recorded event that is no observable of one message, as it would never see it."""
    machine = monitor.machine
    watched = {event.name for event in machine.alphabet}
    for event in machine.alphabet:
        shown_as = specification.events[event.name].recorded
        in_vain = shown_as is not None and event.name not in OBSERVABLES and shown_as not in watched
        if in_vain or machine.per not in _OF_A_MESSAGE or event.relation is not Relation.OWN:
            raise SpecError(
                f"{machine.file}:{machine.line}: {machine.name} reacts to {event}, "
                "which is no observable of one message of a history; use one that is"
            )
