"""States that processes exchange, in integers only: *spelled out* by their machines, not by numbers of local states.

Which number a local state gets depends on when it is met, so numbers mean nothing to another process.  A state
is therefore exchanged as the packed machines of each of its components (:attr:`ackfsm.explore.search.kernel.Rows.local`),
``components * local_words`` words: the same everywhere, and exact.

Written, as the kernel is, so that it means the same to Python and to Numba.
"""

from __future__ import annotations

from typing import Any

from ackfsm.explore.search.kernel import Layout, Rows, System, entered, mixed

__all__ = ["added", "recognised", "signed", "sought", "spelled"]


def signed(states: Any, words: int, seed: int, into: Any) -> None:
    """Write a key of 31 bits of each of the ``states`` of so many ``words``; another ``seed`` gives unrelated keys."""
    for state in range(len(into)):
        key = seed
        for w in range(words):
            key = mixed(key, states[state * words + w])
        into[state] = key


def recognised(  # noqa: PLR0913, PLR0917 - the arrays it works on
    system: System, layout: Layout, rows: Rows, states: Any, begin: int, into: Any, room: Any
) -> int:
    """Write the rows of the components of all ``states`` from ``begin``; local states that are new get one.

    Returns the first state for which there may be no room, or their number.
    """
    words, components = system.local_words, system.components
    for state in range(begin, len(into) // components):
        for c in range(components):
            base = (state * components + c) * words
            for w in range(words):
                room[w] = states[base + w]
            row = entered(system, layout, rows, c, room)
            if row < 0:
                return state
            into[state * components + c] = row
    return len(into) // components


def spelled(  # noqa: PLR0913, PLR0917 - as above
    system: System, layout: Layout, rows: Rows, states: Any, count: int, into: Any
) -> None:
    """Spell the first ``count`` of ``states`` out ``into`` words of machines."""
    words, components = system.local_words, system.components
    for state in range(count):
        for c in range(components):
            number = (states[state * layout.words + layout.word[c]] >> layout.shift[c]) & layout.mask[c]
            row = rows.row_of[c * rows.most + number]
            for w in range(words):
                into[(state * components + c) * words + w] = rows.local[row * words + w]


def added(  # noqa: PLR0913, PLR0917 - as above
    states: Any, keys: Any, words: int, known: Any, slots: Any, count: int
) -> int:
    """Append to the ``known`` states, ``count`` of them, those of ``states`` that are not among them; how many then.

    ``slots`` is an open hash table of their places; it and ``known`` have room for all.
    """
    most = len(slots) - 1
    for state in range(len(keys)):
        slot = keys[state] & most
        there = False
        while slots[slot] >= 0 and not there:
            there = True
            for w in range(words):
                if known[slots[slot] * words + w] != states[state * words + w]:
                    there = False
                    break
            if not there:
                slot = (slot + 1) & most
        if not there:
            slots[slot] = count
            for w in range(words):
                known[count * words + w] = states[state * words + w]
            count += 1
    return count


def sought(  # noqa: PLR0913, PLR0917 - as above
    states: Any, keys: Any, words: int, known: Any, slots: Any, into: Any
) -> None:
    """Write the place of each of ``states`` among the ``known`` ones, -1 if it is not there."""
    most = len(slots) - 1
    for state in range(len(keys)):
        slot = keys[state] & most
        into[state] = -1
        while slots[slot] >= 0 and into[state] < 0:
            into[state] = slots[slot]
            for w in range(words):
                if known[slots[slot] * words + w] != states[state * words + w]:
                    into[state] = -1
                    break
            slot = (slot + 1) & most
