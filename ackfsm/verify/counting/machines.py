"""Property machines as one integer table, folded over the observables of all messages at once.

The k-th observables of all messages are stepped together, every machine at the same time, so the
work in Python grows with the longest message, not with their number.  A fold can begin in any
states and gives the states that it ends in: so it can go on over batches that split a message.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ackfsm.history.arrays import Ints, Mask, States
from ackfsm.terms import SpecError
from ackfsm.verify.counting.observables import OBSERVABLES


class StateMachine(Protocol):
    """The interface of a machine for the fold; :class:`ackfsm.tables.Fsm` has it."""

    @property
    def states(self) -> Sequence[str]:
        """Their names, in the order of the table."""

    @property
    def initial(self) -> str:
        """The first one."""

    def step(self, state: str, event: str, /) -> str | None:
        """The state after ``event``; ``None`` if it is refused."""


@dataclasses.dataclass(frozen=True, slots=True)
class Watcher:
    """A machine to fold, with the states that mean ``name``: always, or only at rest."""

    name: str
    machine: StateMachine
    marked: frozenset[str]
    marked_at_rest: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Machines:
    """Watchers compiled to arrays; the states of all of them are numbered through.

    Attributes:
        names: the name of each watcher (several may share one).
        initial: the initial state of each.
        next: the next state, by state and observable.
        marked, marked_at_rest: whether a state is an anomaly, always or at rest.
    """

    names: tuple[str, ...]
    initial: States
    next: States
    marked: Mask
    marked_at_rest: Mask

    def means(self, name: str, states: States, rested: Mask) -> Mask:
        """For each row of ``states`` whether a watcher called ``name`` is in a marked state.

        Marks that hold at rest only count where ``rested`` (one entry a row) is true.
        """
        mine = states[:, [i for i, each in enumerate(self.names) if each == name]]
        anomalous: Mask = self.marked[mine] | self.marked_at_rest[mine] & rested[:, None]
        return np.asarray(anomalous.any(axis=1))


def compile_watchers(watchers: Sequence[Watcher]) -> Machines:
    """Make one integer table of all ``watchers``.

    Raises :class:`SpecError` if a machine refuses an observable: a watcher only watches.
    """
    tables, initial, marked, at_rest, first = [], [], [], [], 0
    for watcher in watchers:
        states = watcher.machine.states
        tables.append(first + _table(watcher))
        initial.append(first + states.index(watcher.machine.initial))
        marked += [state in watcher.marked for state in states]
        at_rest += [state in watcher.marked_at_rest for state in states]
        first += len(states)
    return Machines(
        tuple(watcher.name for watcher in watchers),
        np.array(initial, np.int32),
        np.concatenate([np.empty((0, len(OBSERVABLES)), np.int32), *tables]),
        np.array(marked, bool),
        np.array(at_rest, bool),
    )


def _table(watcher: Watcher) -> States:
    numbers = {state: i for i, state in enumerate(watcher.machine.states)}
    table = [[watcher.machine.step(state, event) for event in OBSERVABLES] for state in numbers]
    if any(target is None for row in table for target in row):
        raise SpecError(f"{watcher.name}: its machine refuses an observable; a property only watches, write ignore")
    return np.array([[numbers[target] for target in row if target is not None] for row in table], np.int32)


def fold(
    machines: Machines,
    starts: Ints,
    observable: npt.NDArray[np.uint8],
    states: States | None = None,
) -> States:
    """Step every machine over the observables of every message.

    Args:
        machines: what to step.
        starts: where the observables of each message begin, ascending; those of the last end with the array.
        observable: the observables of one message after the other.
        states: the states to begin in, one row a message and one column a machine; initial if not given.

    Returns:
        the states in the end, of the same shape.
    """
    lengths = np.diff(starts, append=len(observable))
    longest_first = np.argsort(-lengths, kind="stable")
    begin, lengths = starts[longest_first], lengths[longest_first]
    current = np.tile(machines.initial, (len(starts), 1)) if states is None else states[longest_first]
    flat, width = machines.next.ravel(), machines.next.shape[1]
    for k in range(int(lengths.max(initial=0))):
        active = int(np.searchsorted(-lengths, -k, side="left"))
        now = observable[begin[:active] + k]
        current[:active] = flat[current[:active] * width + now[:, None]]
    result = np.empty_like(current)
    result[longest_first] = current
    return result
