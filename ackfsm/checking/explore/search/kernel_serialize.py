"""Serialisation of states for other processes, in integers only: as states of machines, not numbers of local states.

The number of a local state depends on when it is found, so it means nothing to another process.  A state is therefore
exchanged as the packed machines of each of its components (``LocalStates.machines`` of the kernel),
``components * local_words`` words: the same everywhere, and exact.

As in the kernel, all functions mean the same to Python and to Numba.
"""

from __future__ import annotations

from typing import Any

from ackfsm.checking.explore.search.kernel import EncodedSystem, Layout, LocalStates, hash_mix, intern, slot_of_number


def hash_states(states: Any, words: int, seed: int, into: Any) -> None:
    """Hash each of the ``states`` of so many ``words`` to 31 bits; another ``seed`` gives unrelated hashes."""
    for state in range(len(into)):
        key = seed
        for w in range(words):
            key = hash_mix(key, states[state * words + w])
        into[state] = key


def deserialize(  # noqa: PLR0913, PLR0917 - the arrays it works on
    system: EncodedSystem, layout: Layout, interned: LocalStates, states: Any, begin: int, into: Any, machines: Any
) -> int:
    """Write the ids of the local states of all ``states`` from ``begin``; new local states are interned.

    Returns the first state for which memory may not suffice, or their number.
    """
    words, components = system.local_words, system.components
    for state in range(begin, len(into) // components):
        for c in range(components):
            base = (state * components + c) * words
            for w in range(words):
                machines[w] = states[base + w]
            local_id = intern(system, layout, interned, c, machines)
            if local_id < 0:
                return state
            into[state * components + c] = local_id
    return len(into) // components


def serialize(  # noqa: PLR0913, PLR0917 - as above
    system: EncodedSystem, layout: Layout, interned: LocalStates, states: Any, count: int, into: Any
) -> None:
    """Write the machines of the first ``count`` of ``states`` ``into`` words."""
    words, components = system.local_words, system.components
    for state in range(count):
        for c in range(components):
            number = (states[state * layout.words + layout.word[c]] >> layout.shift[c]) & layout.mask[c]
            local_id = interned.id_of[c * interned.most + number]
            for w in range(words):
                into[(state * components + c) * words + w] = interned.machines[local_id * words + w]


def set_insert(  # noqa: PLR0913, PLR0917 - as above
    states: Any, new: int, words: int, known: Any, slots: Any, count: int
) -> int:
    """Append those of the first ``new`` states that are not among the ``known`` ones, ``count`` of them; how many then.

    ``slots`` is the hash table of their numbers; it and ``known`` have room for all.
    """
    for state in range(new):
        slot = slot_of_number(words, known, slots, states, state * words)
        if slots[slot] < 0:
            slots[slot] = count
            for w in range(words):
                known[count * words + w] = states[state * words + w]
            count += 1
    return count


def set_find(states: Any, words: int, known: Any, slots: Any, into: Any) -> None:
    """Write the number of each of ``states`` among the ``known`` ones, -1 if it is not there."""
    for state in range(len(into)):
        into[state] = slots[slot_of_number(words, known, slots, states, state * words)]
