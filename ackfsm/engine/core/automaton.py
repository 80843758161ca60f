"""The product of machines that run together, whose states and transitions are made when they are needed.

A machine of ``spec/`` has a handful of states; the twelve machines of a copy have billions of combinations, of which a
run meets some hundreds.  So the product is never built: a state gets its number when it is first reached, and a
transition is looked up in the tables once and then cached.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from ackfsm.tables import EventRef, Fsm, Row, RowKind

REFUSED = -1
UNKNOWN = -2

Column = list[int]
"""For each state the next one; :data:`REFUSED`; or :data:`UNKNOWN` until :meth:`LazyProduct.fill`."""

_Facts = TypeVar("_Facts")


class LazyProduct(Generic[_Facts]):
    """The product of ``fsms``.

    ``columns[s]`` is the column of signal ``s``, ``None`` if no machine reacts to it.  ``local_states[n]`` are the
    states of the machines in state ``n``, in the order of ``fsms``.  ``facts[n]`` is what ``describe`` made of them
    when the state was first reached.
    """

    def __init__(
        self,
        fsms: Sequence[Fsm],
        signals: Sequence[Sequence[EventRef | None]],
        describe: Callable[[LazyProduct[_Facts], tuple[str, ...]], _Facts],
        observable: Sequence[int] = (),
        never: Sequence[int] = (),
    ) -> None:
        """``signals[s]`` has for each machine the name that it has for signal ``s``, ``None`` if it has none.

        ``observable`` are the signals that a client could notice, ``never`` those that nobody sends.
        """
        self.fsms = tuple(fsms)
        self._positions = {fsm.name: i for i, fsm in enumerate(fsms)}
        self.local_states: list[tuple[str, ...]] = []
        self.facts: list[_Facts] = []
        self._describe = describe
        self._finished: dict[int, bool] = {}
        self._interned: dict[tuple[str, ...], int] = {}
        self._participants = [self._participants_of(refs) for refs in signals]
        self._observable = sum(1 << signal for signal in observable if self._participants[signal])
        self._never = sum(1 << signal for signal in never)
        self._refused_and_moved: list[dict[str, tuple[int, int]]] = [{} for _ in fsms]
        self.columns: list[Column | None] = [[] if parts else None for parts in self._participants]
        self.initial = self.intern(tuple(fsm.initial for fsm in fsms))

    def _participants_of(self, refs: Sequence[EventRef | None]) -> tuple[tuple[int, EventRef], ...]:
        """The machines that have a row for the event, each with its name for it."""
        return tuple(
            (i, ref)
            for i, (fsm, ref) in enumerate(zip(self.fsms, refs, strict=True))
            if ref is not None and ref in fsm.reactive_events.get(ref.name, ())
        )

    def intern(self, states: tuple[str, ...]) -> int:
        """The number of a state, which may be a new one."""
        number = self._interned.get(states)
        if number is None:
            number = self._interned[states] = len(self.local_states)
            self.local_states.append(states)
            for column in self.columns:
                if column is not None:
                    column.append(UNKNOWN)
            self.facts.append(self._describe(self, states))
        return number

    def fill(self, signal: int, state: int) -> int:
        """The next state, or :data:`REFUSED`, from the tables; cached."""
        column = self.columns[signal]
        if column is None:
            return state
        names = list(self.local_states[state])
        for i, row in self.rows(signal, self.local_states[state]):
            if row.kind is RowKind.REFUSE:
                column[state] = REFUSED
                return REFUSED
            names[i] = row.target
        column[state] = target = self.intern(tuple(names))
        return target

    def rows(self, signal: int, names: tuple[str, ...]) -> Iterator[tuple[int, Row]]:
        """The row of each machine that takes part."""
        for i, ref in self._participants[signal]:
            yield i, self.fsms[i].rows[names[i], ref]

    def refused_and_moved(self, names: tuple[str, ...]) -> tuple[int, int]:
        """Return the signals that a machine refuses in these states, and the moving ones, as bits."""
        refused = moved = 0
        for i, (known, name) in enumerate(zip(self._refused_and_moved, names, strict=True)):
            answer = known.get(name)
            if answer is None:
                answer = known[name] = self._machine_answer(i, name)
            refused |= answer[0]
            moved |= answer[1]
        return refused, moved

    def _machine_answer(self, machine: int, name: str) -> tuple[int, int]:
        """The same for one machine."""
        refused = moved = 0
        for signal, parts in enumerate(self._participants):
            for i, ref in parts:
                if i == machine:
                    row = self.fsms[i].rows[name, ref]
                    refused |= (row.kind is RowKind.REFUSE) << signal
                    moved |= (row.kind is not RowKind.REFUSE and row.target != name) << signal
        return refused, moved

    def refusal(self, signal: int, state: int) -> Row | None:
        """The row that refuses, if one does."""
        rows = (row for _, row in self.rows(signal, self.local_states[state]))
        return next((row for row in rows if row.kind is RowKind.REFUSE), None)

    def fsm(self, name: str) -> Fsm:
        """One of the machines."""
        return next(fsm for fsm in self.fsms if fsm.name == name)

    def state_of(self, state: int, machine: str) -> str:
        """The state of one machine."""
        return self.local_states[state][self._positions[machine]]

    def with_states(self, state: int, **states: str) -> int:
        """Return ``state`` with other states of some machines, as a starting broker finds them."""
        pairs = zip(self.fsms, self.local_states[state], strict=True)
        return self.intern(tuple(states.get(fsm.name, name) for fsm, name in pairs))

    def is_finished(self, state: int) -> bool:
        """Whether no observable signal can come from ``state`` on, whatever happens to other copies."""
        known = self._finished.get(state)
        if known is None:
            known = self._finished[state] = not self._observable_reachable(state)
        return known

    def _observable_reachable(self, start: int) -> bool:
        """Whether an observable signal can come; breadth first, since states have to be made."""
        seen, waiting = {start}, deque([start])
        while waiting:
            state = waiting.popleft()
            refused, moved = self.refused_and_moved(self.local_states[state])
            possible = ~(refused | self._never)
            if self._observable & possible:
                return True
            for signal in _bits(moved & possible):
                target = self.fill(signal, state)
                if self._finished.get(target) is False:
                    return True
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
        self._finished.update(dict.fromkeys(seen, True))
        return False


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
