"""The states of the system's machines, and of one message's, as numbers: given out when a state is first met."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ackfsm.checking.unbounded import _compiled
from ackfsm.checking.unbounded._kernel import Edges, PartArrays, PossibleSteps, ViewArrays
from ackfsm.checking.unbounded._tables import Column, Table

Ints = npt.NDArray[np.int64]

_Arrays = TypeVar("_Arrays", Edges, PartArrays, PossibleSteps, ViewArrays)

_ROOM = 256


class Space:
    """Tuples of states of some machines, by number, and their next states by *steps*.

    A step has a column for some of the machines; it is refused where one of them refuses.  The first state is number 0.
    Only what :meth:`expand` is asked for has next states; those have numbers, but need not be met.
    """

    def __init__(self, tables: Sequence[Table], steps: Iterable[Mapping[int, Column]]) -> None:
        self.tables = tuple(tables)
        parts = [sorted(step.items()) for step in steps]
        columns = [column for step in parts for _, column in step]
        self.arrays = PartArrays(
            states=np.zeros((_ROOM, len(tables)), np.int16),
            hashes=np.zeros(_ROOM, np.int64),
            after=np.empty((_ROOM, len(parts)), np.int32),
            expanded=np.zeros(_ROOM, np.bool_),
            table=empty_lookup(_ROOM),
            used=np.zeros(1, np.int64),
            first=np.array([0, *itertools.accumulate(map(len, parts))], np.int64),
            machine=np.array([machine for step in parts for machine, _ in step], np.int64),
            column=np.array([0, *itertools.accumulate(map(len, columns))], np.int64)[:-1],
            columns=np.array([state for column in columns for state in column], np.int16),
        )
        self.representatives: Ints | None = None
        """For each number that of the state which stands for all bisimilar ones, once these have been merged."""
        _compiled.begin(self.arrays, np.array([table.initial for table in tables], np.int16))

    def __len__(self) -> int:
        return int(self.arrays.used[0])

    @property
    def states(self) -> npt.NDArray[np.int16]:
        """A row for each number: the states of the machines."""
        return cast("npt.NDArray[np.int16]", self.arrays.states[: len(self)])

    @property
    def after(self) -> npt.NDArray[np.int32]:
        """A row for each number: the next state by each step, less than 0 if refused; of those expanded only."""
        return cast("npt.NDArray[np.int32]", self.arrays.after[: len(self)])

    def add(self, states: npt.NDArray[np.int16]) -> Ints:
        """The numbers of these states, a row for each; new ones for those that were not met."""
        numbers, position = np.zeros(len(states), np.int64), 0
        while position < len(states):
            self.make_room(len(states) - position)
            position = _compiled.add_states(self.arrays, states, numbers, position)
        return numbers

    def numbers_of(self, states: npt.NDArray[np.int16]) -> Ints:
        """The numbers of the representatives of these states, a row for each; -1 for those that were not met."""
        distinct, of_row = distinct_rows(states)
        numbers = np.array([_compiled.number_of(self.arrays, row) for row in distinct], np.int64)
        return self.representatives_of(numbers)[of_row]

    def representatives_of(self, numbers: Ints) -> Ints:
        """For each of these numbers, or -1, that of its representative."""
        return (
            numbers if self.representatives is None else np.where(numbers < 0, numbers, self.representatives[numbers])
        )

    def merge(self, keys: Ints, unheard: Sequence[int] = ()) -> None:
        """Merge the bisimilar states: they have the same of ``keys`` (a row for each), and so have their next states.

        The first of them is the representative of all, and every step to one of them leads to it.  What a step leads to
        that has no number yet is not told apart: it must not be met.  A state that refuses one of the ``unheard`` steps
        is taken to stay as it is by it: merged states may refuse it or not, and all of them do only if each one does.
        """
        met = len(keys)
        position = 0
        while position < met:
            self.make_room()
            position = _compiled.expand_all(self.arrays, position, met)
        refused = {step: np.flatnonzero(self.after[:met, step] < 0) for step in unheard}
        for step, states in refused.items():
            self.after[states, step] = states
        blocks, finer, count = distinct_rows(keys)[1], np.zeros(met, np.int64), 0
        while (found := _compiled.refine(self.after, blocks, finer, empty_lookup(met))) > count:
            blocks, finer, count = finer, blocks, found
        _compiled.redirect(self.after, blocks)
        for step, states in refused.items():
            by_none = np.bincount(blocks, minlength=met) == np.bincount(blocks[states], minlength=met)
            self.after[:met, step][by_none[blocks]] = -1
        kept = np.arange(len(self))
        kept[:met] = blocks
        self.representatives = kept

    def make_room(self, states: int = 0) -> None:
        """See to it that so many ``states`` can be added, and that one more can be expanded."""
        arrays = self.arrays
        room, needed = len(arrays.hashes), len(self) + states + arrays.after.shape[1]
        if needed <= room:
            return
        more = max(room, needed - room)
        arrays = enlarged(arrays, more, "states", "hashes", "after", "expanded")
        self.arrays = arrays._replace(table=empty_lookup(room + more))
        _compiled.look_up_states(self.arrays)


def distinct_rows(rows: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Ints]:
    """The distinct rows of whole numbers in their order, and for each row which of them it is.

    As :func:`numpy.unique` along an axis; but each row is made one number, and numbers are sorted many times faster.
    """
    keys, size = np.zeros(len(rows), np.int64), 1
    for column in rows.T if len(rows) else ():
        values, ranks = _ranks(column)
        if size * values > _MOST_KEYS:
            size, keys = _ranks(keys)
        keys, size = keys * values + ranks, size * values
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], which


def _ranks(column: npt.NDArray[Any]) -> tuple[int, Ints]:
    """Numbers from 0 on in the same order, and how many there are."""
    least, most = int(column.min()), int(column.max())
    if most - least < _FEW_VALUES:
        return most - least + 1, column.astype(np.int64) - least
    values, ranks = np.unique(column, return_inverse=True)
    return len(values), ranks


_MOST_KEYS = 1 << 62
_FEW_VALUES = 1 << 12


def enlarged(arrays: _Arrays, more: int, *names: str, axis: int = 0) -> _Arrays:
    """``arrays``, of which those of these names have room for ``more`` along an axis, which is all 0."""
    return arrays._replace(**{name: _with_room(getattr(arrays, name), more, axis) for name in names})


def _with_room(array: Any, more: int, axis: int) -> Any:
    shape = list(array.shape)
    shape[axis] += more
    found = np.zeros(shape, array.dtype)
    found[(*[slice(None)] * axis, slice(array.shape[axis]))] = array
    return found


def empty_lookup(room: int) -> npt.NDArray[np.int32]:
    """A table that finds ``room`` numbers by what they hash to."""
    return np.full(2 * (1 << (room - 1).bit_length()), -1, np.int32)
