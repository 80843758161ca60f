"""Witnesses: runs that a search found, replayed by the reference executor."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

from ackfsm.checking.explore.replay.interpreter import Interpreter, Refused
from ackfsm.checking.network import Instance, Network, NetworkEvent
from ackfsm.tables import Promise, Row
from ackfsm.terms import DefectError, InputError


class NotReplayedError(DefectError):
    """A witness of a search that is none: the two executors differ, which is an error of this package."""

    def __init__(self, anomaly: str, why: str) -> None:
        super().__init__(f"the search's witness of {anomaly} cannot be performed ({why})")


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """What one machine does at a step: the row of its table that decides."""

    instance: Instance
    row: Row

    @property
    def moves(self) -> bool:
        """Whether the machine's state is another one afterwards."""
        return self.row.target != self.row.state

    def __str__(self) -> str:
        """``entry(m1): ready → crashed``."""
        return f"{self.instance.label}: {self.row.state} → {self.row.target}"


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One event that has happened.

    Attributes:
        number: from 1.
        event: what happened.
        changes: what each participant did, the one that decides the event first.
        after: the state of each machine afterwards, in the order of the network's instances.
    """

    number: int
    event: NetworkEvent
    changes: tuple[Change, ...]
    after: tuple[str, ...]

    @property
    def because(self) -> str:
        """Why: the reason in the row of the machine that decides the event."""
        return self.changes[0].row.because

    def moved(self, anomaly: str | None = None) -> tuple[Change, ...]:
        """Return the machines of the system that have moved, and with an ``anomaly`` its observers."""
        return tuple(change for change in self.changes if change.moves and change.instance.anomaly in {None, anomaly})


@dataclasses.dataclass(frozen=True, slots=True)
class Witness:
    """A run from the first state to an anomaly, or to an end of a message, performed step by step.

    ``shown_by`` are the machines whose last states are the anomaly; ``at_rest`` tells whether it is one only because
    nothing else can happen any more but faults and actions that no application has to take.  ``promise`` is the
    sentence that it breaks.
    """

    network: Network
    anomaly: str
    promise: Promise | None
    steps: tuple[Step, ...]
    shown_by: tuple[Instance, ...]
    at_rest: bool

    @property
    def ending(self) -> tuple[str, ...]:
        """The result: a few sentences."""
        shown = ", ".join(f"{instance.label} is in the state {state}" for instance, state in self.end)
        rest = ["At rest: nothing but faults and optional actions can happen any more."] if self.at_rest else []
        promise = "Nobody promises that it never happens."
        if self.promise is not None:
            promise = f"Promise broken: {self.promise.because} ({self.promise.source})."
        return (f"{self.anomaly}: {shown}.", *rest, promise)

    @property
    def last(self) -> tuple[str, ...]:
        """The state of each machine at the end."""
        return self.steps[-1].after if self.steps else self.network.initial

    @property
    def end(self) -> tuple[tuple[Instance, str], ...]:
        """The machines that show the anomaly, each with the state that is one."""
        states = zip(self.network.instances, self.last, strict=True)
        return tuple((instance, state) for instance, state in states if instance in self.shown_by)


@dataclasses.dataclass(frozen=True, slots=True)
class CandidateWitness:
    """A witness as a search found it: labels of events to an anomaly, and the promise that excludes it."""

    anomaly: str
    labels: tuple[str, ...]
    promise: Promise | None


def replay(network: Network, anomaly: str, labels: Sequence[str], promise: Promise | None = None) -> Witness:
    """Perform the events with these labels on a new :class:`Interpreter`; the end must be the anomaly.

    ``promise`` says that it never happens.  Raises :class:`NotReplayedError` if an event cannot happen or if the end
    is no such anomaly.
    """
    (witness,) = replay_all(network, [CandidateWitness(anomaly, tuple(labels), promise)])
    return witness


def replay_all(network: Network, candidates: Iterable[CandidateWitness]) -> Iterator[Witness]:
    """As :func:`replay`, one candidate after the other from the first state; the machines are made once."""
    changes: list[Change] = []
    interpreter = Interpreter(network, lambda instance, row: changes.append(Change(instance, row)))
    for candidate in candidates:
        interpreter.reset()
        fire = functools.partial(_fire, interpreter, candidate.anomaly)
        steps = tuple(_performed(interpreter, changes, candidate.labels, fire))
        shown_by = interpreter.anomalies().get(candidate.anomaly)
        if shown_by is None:
            raise NotReplayedError(candidate.anomaly, f"its {len(steps)} steps end elsewhere")
        states = zip(network.instances, interpreter.state, strict=True)
        always = any(state in instance.marked for instance, state in states if instance in shown_by)
        yield Witness(network, candidate.anomaly, candidate.promise, steps, shown_by, at_rest=not always)


def steps_of(network: Network, labels: Sequence[str]) -> tuple[Step, ...]:
    """The run that these labels are, wherever it leads.

    Raises :class:`Refused` for an event that cannot happen then, :class:`InputError` for one that the network lacks.
    """
    changes: list[Change] = []
    interpreter = Interpreter(network, lambda instance, row: changes.append(Change(instance, row)))
    return tuple(_performed(interpreter, changes, labels, lambda _, label: interpreter.fire(label)))


def _fire(interpreter: Interpreter, name: str, number: int, label: str) -> NetworkEvent:
    try:
        return interpreter.fire(label)
    except (Refused, InputError) as error:
        raise NotReplayedError(name, f"step {number}: {error}") from None


def _performed(
    interpreter: Interpreter, changes: list[Change], labels: Iterable[str], fire: Callable[[int, str], NetworkEvent]
) -> Iterator[Step]:
    """The steps, each after ``fire`` has performed it; ``interpreter`` appends what machines do to ``changes``."""
    for number, label in enumerate(labels, start=1):
        changes.clear()
        event = fire(number, label)
        yield Step(number, event, tuple(changes), interpreter.state)
