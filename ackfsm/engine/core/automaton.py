"""Machines that act together as one automaton, whose states and moves are made as they are needed.

A machine of ``spec/`` has a handful of states; the twelve machines of a copy have billions of
combinations, of which a run meets some hundreds.  So the product is never laid out: a state gets
its number when it is first reached, and a move is looked up in the tables once and then kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ackfsm.tables import EventRef, Fsm, Move, Row

__all__ = ["REFUSED", "UNKNOWN", "Automaton", "Column"]

REFUSED = -1
UNKNOWN = -2

Column = list[int]
"""For each state the next one; :data:`REFUSED`; or :data:`UNKNOWN` until somebody asks :meth:`Automaton.fill`."""


class Automaton:
    """The product of ``fsms``.

    ``columns[s]`` is the column of signal ``s``, ``None`` if no machine reacts to it.  ``names[n]`` are the
    states that state ``n`` stands for, in the order of ``fsms``.  ``told[n]`` is what ``describe`` made of them
    when the state was met.
    """

    def __init__(
        self,
        fsms: Sequence[Fsm],
        signals: Sequence[Sequence[EventRef | None]],
        describe: Callable[[Automaton, tuple[str, ...]], Any],
        visible: Sequence[int] = (),
    ) -> None:
        """``signals[s]`` has for each machine the name that it has for signal ``s``, ``None`` if it has none.

        ``visible`` are the signals that somebody outside could notice.
        """
        self.fsms = tuple(fsms)
        self._places = {fsm.name: i for i, fsm in enumerate(fsms)}
        self.names: list[tuple[str, ...]] = []
        self.told: list[Any] = []
        self._describe = describe
        self._spent: dict[int, bool] = {}
        self._numbers: dict[tuple[str, ...], int] = {}
        self._parts = [self._reacting(refs) for refs in signals]
        self._visible = sum(1 << signal for signal in visible if self._parts[signal])
        self._answers: list[dict[str, tuple[int, int]]] = [{} for _ in fsms]
        self.columns: list[Column | None] = [[] if parts else None for parts in self._parts]
        self.initial = self.number(tuple(fsm.initial for fsm in fsms))

    def _reacting(self, refs: Sequence[EventRef | None]) -> tuple[tuple[int, EventRef], ...]:
        """The machines that some row of theirs makes take part, each with its name for the event."""
        return tuple(
            (i, ref)
            for i, (fsm, ref) in enumerate(zip(self.fsms, refs, strict=True))
            if ref is not None and ref in fsm.heard.get(ref.name, ())
        )

    def number(self, names: tuple[str, ...]) -> int:
        """The number of a state, met before or not."""
        number = self._numbers.get(names)
        if number is None:
            number = self._numbers[names] = len(self.names)
            self.names.append(names)
            for column in self.columns:
                if column is not None:
                    column.append(UNKNOWN)
            self.told.append(self._describe(self, names))
        return number

    def fill(self, signal: int, state: int) -> int:
        """The next state, or :data:`REFUSED`, from the tables; kept for the next time."""
        column = self.columns[signal]
        if column is None:
            return state
        names = list(self.names[state])
        for i, row in self.rows(signal, self.names[state]):
            if row.move is Move.REFUSE:
                column[state] = REFUSED
                return REFUSED
            names[i] = row.target
        column[state] = target = self.number(tuple(names))
        return target

    def rows(self, signal: int, names: tuple[str, ...]) -> Iterator[tuple[int, Row]]:
        """What each machine that takes part says."""
        for i, ref in self._parts[signal]:
            yield i, self.fsms[i].rows[names[i], ref]

    def answers(self, names: tuple[str, ...]) -> tuple[int, int]:
        """The signals that some machine refuses in these states, and those that move one, as sets of bits."""
        refused = moved = 0
        for i, (known, name) in enumerate(zip(self._answers, names, strict=True)):
            answer = known.get(name)
            if answer is None:
                answer = known[name] = self._answer(i, name)
            refused |= answer[0]
            moved |= answer[1]
        return refused, moved

    def _answer(self, machine: int, name: str) -> tuple[int, int]:
        """The same for one machine."""
        refused = moved = 0
        for signal, parts in enumerate(self._parts):
            for i, ref in parts:
                if i == machine:
                    row = self.fsms[i].rows[name, ref]
                    refused |= (row.move is Move.REFUSE) << signal
                    moved |= (row.move is not Move.REFUSE and row.target != name) << signal
        return refused, moved

    def refusal(self, signal: int, state: int) -> Row | None:
        """The row that refuses, if one does."""
        rows = (row for _, row in self.rows(signal, self.names[state]))
        return next((row for row in rows if row.move is Move.REFUSE), None)

    def machine(self, name: str) -> Fsm:
        """One of the machines."""
        return next(fsm for fsm in self.fsms if fsm.name == name)

    def of(self, state: int, machine: str) -> str:
        """The state of one machine."""
        return self.names[state][self._places[machine]]

    def put(self, state: int, **states: str) -> int:
        """``state`` with some machines elsewhere: for what a broker finds when it starts, which no event tells."""
        pairs = zip(self.fsms, self.names[state], strict=True)
        return self.number(tuple(states.get(fsm.name, name) for fsm, name in pairs))

    def spent(self, state: int) -> bool:
        """Whether no visible signal can come from ``state`` on, whatever happens elsewhere."""
        known = self._spent.get(state)
        if known is None:
            known = self._spent[state] = not self._comes_to_light(state)
        return known

    def _comes_to_light(self, start: int) -> bool:
        """Whether a visible signal can come; the nearest states first, for each has to be made."""
        seen, waiting = {start}, deque([start])
        while waiting:
            state = waiting.popleft()
            refused, moved = self.answers(self.names[state])
            if self._visible & ~refused:
                return True
            for signal in _bits(moved & ~refused):
                target = self.fill(signal, state)
                if self._spent.get(target) is False:
                    return True
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
        self._spent.update(dict.fromkeys(seen, True))
        return False


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
