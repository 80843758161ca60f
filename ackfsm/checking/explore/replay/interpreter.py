"""All machines of a network, each run by the ``transitions`` library: the reference executor.

An event happens if every participant has a transition for it, and is refused otherwise, with the
reason that the table gives.  The integer kernel runs the same network; tests compare
the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ackfsm.checking.machines import machine, trigger
from ackfsm.checking.network import Instance, Network, NetworkEvent
from ackfsm.tables import Row
from ackfsm.terms import AckfsmError, InputError


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


class Interpreter:
    """All machines of a network, each run by ``transitions``."""

    def __init__(self, network: Network, hook: Hook | None = None) -> None:
        """Every machine in its first state; ``hook`` hears of every row that decides."""
        self.network = network
        self.models: Sequence[Any] = tuple(_Machine() for _ in network.instances)
        self._machines = [machine(i.fsm, model) for i, model in zip(network.instances, self.models, strict=True)]
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
        return [event for event in self.network.events if self._refusal(event) is None]

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
        for part, (instance, row) in zip(event.participants, self.network.rows(self.state, event), strict=True):
            if not getattr(self.models[part.instance], f"may_{trigger(part.event)}")():
                return Refused(event, instance, row)
        return None
