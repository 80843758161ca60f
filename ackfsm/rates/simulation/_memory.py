"""The memory of the kernel, and in it the states of the machines, which are written as they are met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from ackfsm.engine.core.automaton import REFUSED, LazyProduct
from ackfsm.engine.core.model import Role
from ackfsm.rates.simulation import _layout as k
from ackfsm.tables.names import FRAMES, Agent
from ackfsm.terms import DefectError

_FIRST_WORDS: Final = 1 << 18

WAYS: Final[Mapping[str, int]] = MappingProxyType(
    {
        **dict.fromkeys(FRAMES, k.FRAME),
        Agent.LIBRARY: k.AT_ONCE,
        Agent.BROKER: k.AT_ONCE,
        Agent.DISK: k.AT_ONCE,  # what is written is; a sync takes its time
        Agent.QUEUE: k.DISPATCH,
        Agent.TIMER: k.TIMER,
    }
)
"""How the events of an agent are brought about; those of all others are not."""


class Memory:
    """The memory of the kernel, which grows at its end."""

    def __init__(self, *, compiled: bool) -> None:
        self.words: Any = np.zeros(_FIRST_WORDS, np.int64) if compiled else []
        self._compiled = compiled
        self._used = 0

    def room(self, words: int, of: int = 0) -> int:
        """The address of so many new words, each of them ``of``."""
        begin = self._used
        self._used += words
        if not self._compiled:
            self.words.extend([of] * words)
            return begin
        if self._used > len(self.words):
            self.words = np.concatenate([self.words, np.zeros(max(self._used, 2 * len(self.words)), np.int64)])
        self.words[begin : self._used] = of
        return begin

    def write(self, begin: int, words: Sequence[int] | np.ndarray[Any, Any]) -> None:
        """Write ``words`` from address ``begin`` on."""
        if isinstance(words, np.ndarray) and not self._compiled:
            words = words.tolist()
        self.words[begin : begin + len(words)] = words

    def read(self, begin: int, words: int) -> np.ndarray[Any, Any]:
        """So many words from address ``begin`` on."""
        return np.array(self.words[begin : begin + words], np.int64)


class Rows:
    """The states of all products of machines, as the kernel knows them: each gets its record when it is first met."""

    def __init__(
        self,
        memory: Memory,
        automata: Mapping[int, LazyProduct[Any]],
        events: Mapping[int, int],
        lists: Mapping[int, int],
    ) -> None:
        """``events`` and ``lists`` are the addresses of events and the numbers of lists, by their numbers."""
        self._memory, self._automata, self._events, self._lists = memory, automata, events, lists
        self._addresses: dict[tuple[int, int], int] = {}
        self._states: dict[int, tuple[int, int]] = {}

    def row(self, role: int, state: int) -> int:
        """The address of a state, which may be a new one."""
        found = self._addresses.get((role, state))
        if found is None:
            columns = self._automata[role].columns
            found = self._memory.room(k.SUCCESSOR + len(columns), k.UNKNOWN)
            self._addresses[role, state], self._states[found] = found, (role, state)
            self._memory.write(found, self._described(role, state))
            unmoved = [k.UNKNOWN if column is not None else found for column in columns]
            self._memory.write(found + k.SUCCESSOR, unmoved)
        return found

    def fill(self, row: int, signal: int) -> None:
        """Ask the tables for the row after ``row``."""
        role, state = self._states[row]
        target = self._automata[role].fill(signal, state)
        after = k.REFUSED if target == REFUSED else self.row(role, target)
        self._memory.words[row + k.SUCCESSOR + signal] = after

    def _described(self, role: int, state: int) -> list[int]:
        automaton = self._automata[role]
        facts = automaton.facts[state]
        words = [k.NOTHING] * k.SUCCESSOR
        words[k.INDEXED] = sum(1 << self._lists[b.number] for b in facts.indexed_under if b.number in self._lists)
        words[k.FINISHED] = role == Role.COPY and automaton.is_finished(state)
        words[k.ACKNOWLEDGEABLE] = facts.acknowledgeable
        words[k.AWAITS_ANSWER] = facts.ack_pending
        if facts.delivery_event is not None:
            words[k.DELIVERED_BY] = self._events[facts.delivery_event.number]
        enabled = [self._events[event.number] for event in facts.enabled if event.agent in WAYS]
        if len(enabled) >= k.EVENTS_OF_A_ROW:
            raise DefectError(f"a state allows {len(enabled)} events, more than the simulation has room for")
        words[k.ENABLED : k.ENABLED + len(enabled)] = enabled
        return words
