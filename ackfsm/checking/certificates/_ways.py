"""Does a run show what it is said to show?  Performed by machines of the ``transitions`` library."""

from __future__ import annotations

from typing import Any

from ackfsm.checking.certificates._format import Way
from ackfsm.checking.certificates._system import Question
from ackfsm.checking.certificates._views import ChecksError
from ackfsm.checking.machines import machine, trigger
from ackfsm.checking.network import Bounds, Network, NetworkEvent, compose

_MOST_MESSAGES = 1_000


class _Model:
    """One machine: ``transitions`` puts its state on it, and a method for each event."""

    state: str


def check_way(question: Question, way: Way) -> None:
    """Perform ``way``, and see that it ends in its anomaly, else raise :class:`ChecksError`."""
    if not 1 <= way.messages <= _MOST_MESSAGES:
        raise ChecksError(f"its way to {way.anomaly} has {way.messages:,} messages, which is not from 1 to 1,000")
    observers = [observer for observer in question.observers if observer[0] == way.anomaly]
    bounds = Bounds(
        messages=way.messages,
        faults=question.faults,
        max_faults=way.max_faults,
        actions=question.actions,
        without=question.without,
    )
    network = compose(question.specification, question.configuration, bounds, observers)
    models: list[Any] = [_Model() for _ in network.instances]
    for instance, model in zip(network.instances, models, strict=True):
        machine(instance.fsm, model)
    events = {event.label: event for event in network.events}
    for number, label in enumerate(way.steps, start=1):
        event = events.get(label)
        if event is None or not _may(event, models):
            raise ChecksError(f"step {number} of its way to {way.anomaly}, {label}, is refused")
        for part in event.participants:
            models[part.instance].trigger(trigger(part.event))
    if not _is_shown(network, models):
        raise ChecksError(f"its way to {way.anomaly} does not show it in the end")


def _may(event: NetworkEvent, models: list[Any]) -> bool:
    return all(getattr(models[part.instance], f"may_{trigger(part.event)}")() for part in event.participants)


def _is_shown(network: Network, models: list[Any]) -> bool:
    at_rest = all(event.may_never_happen or not _may(event, models) for event in network.events)
    return any(
        model.state in instance.marked or (at_rest and model.state in instance.marked_at_rest)
        for instance, model in zip(network.instances, models, strict=True)
    )
