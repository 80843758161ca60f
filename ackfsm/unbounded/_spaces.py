"""The states of the system's machines, and of one message's, as numbers: given out when a state is first met."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ackfsm.unbounded._tables import Column, Table

__all__ = ["REFUSED", "Ints", "Space"]

Ints = npt.NDArray[np.int64]

REFUSED = -1
"""In place of the number of a next state."""

_ROOM = 256


class Space:
    """Tuples of states of some machines, by number, and their next states by *steps*.

    A step has a column for some of the machines; it is refused where one of them refuses.  The first state is number 0.
    Only what :meth:`expand` is asked for has next states; those have numbers, but need not be met.
    """

    def __init__(self, tables: Sequence[Table], steps: Iterable[Mapping[int, Column]]) -> None:
        self._steps = [[(machine, np.array(column, np.int16)) for machine, column in step.items()] for step in steps]
        self._numbers: dict[bytes, int] = {}
        self._states = np.zeros((_ROOM, len(tables)), np.int16)
        self._after = np.full((len(self._steps), _ROOM), REFUSED, np.int64)
        self._expanded = np.zeros(_ROOM, np.bool_)
        self.tables = tuple(tables)
        self._number(np.array([table.initial for table in tables], np.int16))

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def states(self) -> npt.NDArray[np.int16]:
        """A row for each number: the states of the machines."""
        return self._states[: len(self)]

    @property
    def after(self) -> npt.NDArray[np.int64]:
        """For each step a row: the number of the next state for each number that has been expanded."""
        return self._after[:, : len(self)]

    def number(self, states: Sequence[int]) -> int | None:
        """The number of a state; ``None`` for one that was not met."""
        return self._numbers.get(np.array(states, np.int16).tobytes())

    def expand(self, numbers: Ints) -> None:
        """See to it that the next states of these are known."""
        new = np.unique(numbers[~self._expanded[numbers]])
        if not new.size:
            return
        self._expanded[new] = True
        for step, parts in enumerate(self._steps):
            self._take(step, parts, new)

    def _take(self, step: int, parts: Sequence[tuple[int, npt.NDArray[np.int16]]], new: Ints) -> None:
        before = self._states[new]
        after = before.copy()
        for machine, column in parts:
            after[:, machine] = column[before[:, machine]]
        enabled = (after >= 0).all(axis=1)
        moved = (after != before).any(axis=1)
        targets = np.where(enabled, new, REFUSED)
        for at in np.flatnonzero(enabled & moved):
            targets[at] = self._number(after[at])
        self._after[step, new] = targets

    def _number(self, state: npt.NDArray[np.int16]) -> int:
        key = state.tobytes()
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._numbers)
            if found == len(self._expanded):
                self._grow()
            self._states[found] = state
        return found

    def _grow(self) -> None:
        room = len(self._expanded)
        self._states = np.concatenate([self._states, np.zeros_like(self._states)])
        self._after = np.concatenate([self._after, np.full_like(self._after, REFUSED)], axis=1)
        self._expanded = np.concatenate([self._expanded, np.zeros(room, np.bool_)])
