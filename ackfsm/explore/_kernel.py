"""The kernel: breadth-first search over a packed network, in integers only.

:func:`search` and :func:`rehash` are written so that they mean the same to Python, on lists,
and to Numba, on arrays of 64-bit integers: every number stays below 2**63.
"""

from __future__ import annotations

from typing import Any

__all__ = ["EMPTY", "HEAD", "TAIL", "TRANSITIONS", "rehash", "search"]

HEAD, TAIL, TRANSITIONS = 0, 1, 2
"""Places in ``progress``: the next state to expand, the number of states found, the number of transitions."""

EMPTY = -1


def search(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917 - one hot loop, compiled as a whole
    words: int,
    word: Any,
    shift: Any,
    mask: Any,
    first: Any,
    free: Any,
    who: Any,
    where: Any,
    table: Any,
    watchers: Any,
    mark: Any,
    always: Any,
    at_rest: Any,
    states: Any,
    parent: Any,
    via: Any,
    slots: Any,
    progress: Any,
    found: Any,
    until: int,
    here: Any,
    child: Any,
) -> None:
    """Expand states until ``until`` are found, the room is used up, or none is left to expand.

    State ``k`` is ``states[k * words : (k + 1) * words]``; it was reached from ``parent[k]`` by
    event ``via[k]``.  ``slots`` is an open hash table of state numbers, its length a power of two.
    ``found[a]`` becomes the number of the first state that is anomaly ``a``.  ``here`` and
    ``child`` are room for one unpacked and one packed state.
    """
    events = len(free)
    room = min(len(parent), len(slots) // 2, until + events)
    head, tail, transitions = progress[0], progress[1], progress[2]
    while head < tail and tail + events <= room:
        base = head * words
        for i in range(len(word)):
            here[i] = (states[base + word[i]] >> shift[i]) & mask[i]
        quiet = True
        for event in range(events):
            enabled = True
            for p in range(first[event], first[event + 1]):
                if table[where[p] + here[who[p]]] < 0:
                    enabled = False
                    break
            if not enabled:
                continue
            transitions += 1
            if free[event] == 0:
                quiet = False
            for w in range(words):
                child[w] = states[base + w]
            for p in range(first[event], first[event + 1]):
                i = who[p]
                child[word[i]] += (table[where[p] + here[i]] - here[i]) << shift[i]
            key = 0
            for w in range(words):
                key = ((key ^ child[w]) * 0x1E3779B97F4A7C15) & 0x7FFFFFFFFFFFFFFF
                key = key ^ (key >> 31)
            slot = key & (len(slots) - 1)
            known = False
            while slots[slot] >= 0:
                other = slots[slot] * words
                known = True
                for w in range(words):
                    if states[other + w] != child[w]:
                        known = False
                        break
                if known:
                    break
                slot = (slot + 1) & (len(slots) - 1)
            if known:
                continue
            slots[slot] = tail
            for w in range(words):
                states[tail * words + w] = child[w]
            parent[tail] = head
            via[tail] = event
            for j in range(len(watchers)):
                i = watchers[j]
                bits = always[mark[j] + ((child[word[i]] >> shift[i]) & mask[i])]
                a = 0
                while bits > 0:
                    if bits & 1 and found[a] < 0:
                        found[a] = tail
                    bits >>= 1
                    a += 1
            tail += 1
        if quiet:
            for j in range(len(watchers)):
                bits = at_rest[mark[j] + here[watchers[j]]]
                a = 0
                while bits > 0:
                    if bits & 1 and (found[a] < 0 or found[a] > head):
                        found[a] = head
                    bits >>= 1
                    a += 1
        head += 1
    progress[0], progress[1], progress[2] = head, tail, transitions


def rehash(words: int, states: Any, count: int, slots: Any) -> None:
    """Enter the first ``count`` states into the empty table ``slots``."""
    for state in range(count):
        key = 0
        for w in range(words):
            key = ((key ^ states[state * words + w]) * 0x1E3779B97F4A7C15) & 0x7FFFFFFFFFFFFFFF
            key = key ^ (key >> 31)
        slot = key & (len(slots) - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = state
