"""All machines of a network, each run by the ``transitions`` library: the reference executor.

An event happens if every participant has a transition for it, and is refused otherwise, with the
reason that the table gives.  The integer kernel runs the same network; tests compare
the two.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ackfsm.checking.machines import machine, trigger
from ackfsm.checking.network import Instance, Network, NetworkEvent, Participant
from ackfsm.tables import Fsm, Row
from ackfsm.terms import AckfsmError, InputError

if TYPE_CHECKING:
    import transitions


class Hook(Protocol):
    """Called after a machine has taken part in an event that moved it or kept it where it is."""

    def __call__(self, instance: Instance, row: Row, /) -> None:
        """``row`` is the row of the table that decided."""


class Refused(AckfsmError):  # noqa: N818 - the word of process algebra, as the tables use it
    """An event that cannot happen now: which instance forbids it, and by which row."""

    def __init__(self, event: NetworkEvent, instance: Instance, row: Row) -> None:
        """``row`` is the row of ``instance``'s table that refuses ``event``."""
        error = f" ({row.error})" if row.error else ""
        super().__init__(
            f"{event.label} is refused by {instance.label} in state {row.state}: {row.because}{error}, {row.place}"
        )
        self.event = event
        self.instance = instance
        self.row = row


class _Machine:
    """The model of one instance: ``transitions`` puts ``state`` and the events on it."""

    state: str


class _Itself:
    """A machine under a configuration, to be looked up as the object that it is."""

    def __init__(self, fsm: Fsm) -> None:
        self.fsm = fsm

    def __hash__(self) -> int:
        return id(self.fsm)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.fsm is other.fsm


@functools.lru_cache(maxsize=256)
def _shared(itself: _Itself) -> transitions.Machine:
    """Its machine of the library, without a model: configurations share most tables, and messages all of theirs."""
    return machine(itself.fsm, [])


class Interpreter:
    """All machines of a network, each run by ``transitions``."""

    def __init__(self, network: Network, hook: Hook | None = None) -> None:
        """Every machine in its first state; ``hook`` hears of every row that decides."""
        self.network = network
        self.models: Sequence[Any] = tuple(_Machine() for _ in network.instances)
        self._machines = [_shared(_Itself(instance.fsm)) for instance in network.instances]
        for made, model in zip(self._machines, self.models, strict=True):
            made.add_model(model)
            made.models.clear()  # it serves other executors too, and is not to keep their models
        self._events = {event.label: event for event in network.events}
        self._hook = hook

    @property
    def state(self) -> tuple[str, ...]:
        """The state of each machine, in the order of the network's instances."""
        return tuple(model.state for model in self.models)

    def reset(self) -> None:
        """Put every machine back into its first state."""
        for made, instance, model in zip(self._machines, self.network.instances, self.models, strict=True):
            made.set_state(instance.fsm.initial, model)

    def enabled(self) -> list[NetworkEvent]:
        """The events that can happen now."""
        return [event for event in self.network.events if all(map(self._may, event.participants))]

    @property
    def at_rest(self) -> bool:
        """Whether nothing can happen now but what may never happen: faults, and actions of applications."""
        return all(event.may_never_happen for event in self.enabled())

    def anomalies(self) -> Mapping[str, tuple[Instance, ...]]:
        """Return the anomalies of the present state by name, each with the machines that show it."""
        found: dict[str, tuple[Instance, ...]] = {}
        rest = self.at_rest
        for instance, state in zip(self.network.instances, self.state, strict=True):
            if instance.anomaly is not None and (
                state in instance.marked or (rest and state in instance.marked_at_rest)
            ):
                found[instance.anomaly] = (*found.get(instance.anomaly, ()), instance)
        return found

    def fire(self, label: str) -> NetworkEvent:
        """Let the event with this label happen, in every participant at once, and return it.

        Raises :class:`Refused`, and changes nothing, if a participant has no transition for it, and
        :class:`ackfsm.terms.InputError` if the system has no such event.
        """
        event = self._events.get(label)
        if event is None:
            raise InputError(f"this system has no event {label!r}; Network.events lists what can ever happen in it")
        if (refused := self._refusal(event)) is not None:
            raise refused
        for part, (instance, row) in zip(event.participants, list(self.network.rows(self.state, event)), strict=True):
            self.models[part.instance].trigger(trigger(part.event))
            if self._hook is not None:
                self._hook(instance, row)
        return event

    def _refusal(self, event: NetworkEvent) -> Refused | None:
        for number, part in enumerate(event.participants):
            if not self._may(part):
                instance, row = list(self.network.rows(self.state, event))[number]
                return Refused(event, instance, row)
        return None

    def _may(self, part: Participant) -> bool:
        """Whether the machine has a transition for the event; none of them has a condition."""
        known = self._machines[part.instance].events.get(trigger(part.event))
        return known is not None and self.models[part.instance].state in known.transitions
