"""What comes again after an exception, recover(), rollback, the close of a consumer or of a session, by the tables.

Of three messages a listener has had two, and the library holds the third.  The session has acknowledged what it
acknowledges by itself, the application nothing.  Then the action is performed, and what the library and the broker do
about it without being asked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from ackfsm.checking.network import Bounds, Network, NetworkEvent, compose
from ackfsm.tables import EventRef, Relation, RowKind, Specification
from ackfsm.tables.names import Condition, Entry, Event, Machine
from ackfsm.terms import Configuration, Consumption, Fault, InputError

_MESSAGES: Final = (1, 2, 3)
_FAILED: Final = 2


class Action(StrEnum):
    """What befalls the session, or is done to it."""

    EXCEPTION = "exception in the listener"
    RECOVER = "recover()"
    ROLLBACK = "rollback"
    CANCEL = "close of the consumer"
    CLOSE = "close of the session"


_STEPS: Final = {
    Action.EXCEPTION: (Event.LISTENER_EXCEPTION,),
    Action.RECOVER: (Event.RECOVER,),
    Action.ROLLBACK: (Event.LISTENER_EXCEPTION, Event.CONSUMER_ROLLBACK),
    Action.CANCEL: (Event.CONSUMER_CANCEL,),
    Action.CLOSE: (Event.CONSUMER_CLOSE,),
}
_THROWS: Final = frozenset({Action.EXCEPTION, Action.ROLLBACK})
_OPTIONAL: Final = frozenset({Event.RECOVER, Event.CONSUMER_CANCEL, Event.CONSUMER_CLOSE})

_SENDS: Final = frozenset({Event.SEND, Event.SEND_IN_TRANSACTION})
_DISPATCHES: Final = (Event.DISPATCH_FIRST, Event.DISPATCH_AGAIN)
_ASKED_FOR: Final = _SENDS | {
    Event.COMMIT_CALLED,
    Event.DELIVERED_CLEAR,
    Event.DELIVERED_FLAGGED,
    Event.PROCESSED,
    Event.ACKNOWLEDGE,
    Event.CONSUMER_COMMIT_CALLED,
    Event.CONSUMER_RECOVER,
    Event.CONSUMER_ROLLBACK,
    Event.CONSUMER_LINK_UP,
}
"""What an application decides, and when there is a new connection."""

_DECIDING: Final = frozenset(
    {Machine.ENTRY, Machine.REDELIVERY, Machine.ACK_CALL, Machine.RECOVERY, Machine.CONSUMER_TRANSACTION}
)
"""The machines whose rows decide what becomes of a message."""


class Fate(StrEnum):
    """What becomes of a message."""

    FLAGGED = "again, flagged"
    CLEAR = "again, not flagged"
    EITHER = "again, flagged or not"
    KEPT = "stays with the session"
    GONE = "acknowledged"


@dataclasses.dataclass(frozen=True, slots=True)
class GivenBack:
    """What an action does in a mode: to each of the messages in their order, and who says so."""

    ack_mode: str
    action: Action
    fates: tuple[Fate, ...]
    sources: tuple[str, ...]


def given_back(specification: Specification, profile: str) -> Iterator[GivenBack]:
    """What each action does in each acknowledgement mode of the profile, all else at its defaults."""
    for mode in specification.supported_values(profile, "ack_mode"):
        try:
            chosen = specification.configure(profile, {"ack_mode": mode, "consumption": Consumption.LISTENER})
        except InputError:
            continue
        run = _Run(specification, chosen)
        for action in Action:
            if (found := run.perform(action)) is not None:
                yield found


class _Run:
    """The machines, and the events since the action was begun."""

    def __init__(self, specification: Specification, configuration: Configuration) -> None:
        self._configuration = configuration
        self._defaults = specification.profiles[configuration.profile].defaults
        self._environment = specification.environment(configuration)
        holds = {name: each.holds(self._environment) for name, each in specification.conditions.items()}
        self._transacted = holds[Condition.TRANSACTED]
        self._by_library = (
            self._transacted or holds[Condition.ACKS_AUTOMATICALLY] or holds[Condition.ACKS_BEFORE_DELIVERY]
        )
        bounds = Bounds(
            messages=len(_MESSAGES), faults=frozenset({Fault.LISTENER_EXCEPTION}), max_faults=1, actions=_OPTIONAL
        )
        self._network: Network = compose(specification, configuration, bounds, observers=())

    def perform(self, action: Action) -> GivenBack | None:
        """What ``action`` does, ``None`` if this mode has no such thing."""
        self._state = self._network.initial
        self._sources: dict[str, None] = {}
        self._settled_by = ""
        if self._transacted is not (action is Action.ROLLBACK) and action in {Action.RECOVER, Action.ROLLBACK}:
            return None
        for number in _MESSAGES:
            self._try(_SENDS, number)
            if not self._transacted:
                self._go_on(dispatches=True)
        self._try({Event.COMMIT_CALLED}, 1)
        self._go_on(dispatches=True)
        for number in range(1, _FAILED + 1):
            self._use(number, throws=action in _THROWS and number == _FAILED)
        self._sources.clear()
        if not all(self._try({step}, _FAILED) for step in _STEPS[action]) and not self._rolled_back(action):
            return None
        self._go_on(dispatches=False)
        if action in _THROWS:
            self._says(self._of_default("listener_exception"))
        if self._settled_by:
            self._sources.clear()
            self._says(self._settled_by)
        fates = tuple(map(self._fate, _MESSAGES))
        return GivenBack(str(self._configuration.ack_mode), action, fates, tuple(self._sources))

    def _rolled_back(self, action: Action) -> bool:
        """A library that swallows an exception leaves it to the application to roll back of its own will."""
        return action is Action.ROLLBACK and self._try({Event.RECOVER}, _FAILED)

    def _use(self, number: int, *, throws: bool) -> None:
        if self._by_library:
            self._try({Event.ACKNOWLEDGE}, number)
            self._go_on(dispatches=True)
        self._try({Event.DELIVERED_CLEAR}, number)
        if not throws:
            self._try({Event.PROCESSED}, number)
            if self._by_library:
                self._try({Event.ACKNOWLEDGE}, number)
        self._go_on(dispatches=True)

    def _go_on(self, *, dispatches: bool) -> None:
        """What happens by itself, until nothing more does."""
        left_out = _ASKED_FOR if dispatches else _ASKED_FOR | {*_DISPATCHES}
        its = [event for event in self._network.events if event.name not in left_out and not event.may_never_happen]
        while sum(map(self._fire, its)):
            pass

    def _try(self, names: set[str] | frozenset[str], number: int) -> bool:
        """Whether one of these events, of that message or of none, happened."""
        events = (each for each in self._network.events if each.name in names and each.index[:1] in {(), (number,)})
        return any(map(self._fire, events))

    def _fire(self, event: NetworkEvent) -> bool:
        after = self._network.step(self._state, event)
        if after is None:
            return False
        for instance, row in self._network.rows(self._state, event):
            if instance.fsm.name == Machine.ENTRY and row.target == Entry.REMOVED and event.name in _DISPATCHES:
                self._settled_by = str(row.source)
            if instance.fsm.name in _DECIDING and row.kind is RowKind.TO and row.source not in {None, "model"}:
                self._says(str(row.source))
        self._state = after
        return True

    def _says(self, source: str) -> None:
        self._sources |= dict.fromkeys(source.split("; "))

    def _of_default(self, key: str) -> str:
        rows = (row for row in self._defaults if row.key == key)
        return next(row.source for row in rows if row.when is None or row.when.holds(self._environment))

    def _fate(self, number: int) -> Fate:
        state = {
            instance.fsm.name: (instance.fsm, now)
            for instance, now in zip(self._network.instances, self._state, strict=True)
            if instance.index[:2] == (number, 1)
        }
        entry = state[Machine.ENTRY][1]
        if entry == Entry.REMOVED:
            return Fate.GONE
        if entry not in {Entry.READY, Entry.DELAYED, Entry.SET_ASIDE, Entry.FOR_OTHERS}:
            return Fate.KEPT
        fsm, now = state[Machine.REDELIVERY]
        can = [fsm.rows[now, EventRef(name, Relation.OWN)].kind is not RowKind.REFUSE for name in _DISPATCHES]
        return Fate.EITHER if all(can) else Fate.CLEAR if can[0] else Fate.FLAGGED
