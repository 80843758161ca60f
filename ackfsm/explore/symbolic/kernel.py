"""The kernel of symbolic search: operations on multi-valued decision diagrams (MDD), in integers only.

A node of level ``k`` has one child for each local state of the machine of that level, a node of level ``k - 1``; 0 is
the empty set, ``TRUE`` (of level 0) the set of the one empty state.  Nodes are kept once (*unique table*), so equal
sets are equal numbers.  An event is a product of partial functions, one for each machine that takes part in it
(Kronecker), so no relation of states is ever built.

:func:`run` is a machine with a stack of its own and no recursion: a frame is a node in the making.  It returns whenever
memory may not suffice for one more node, and goes on where it was once it is called with more.

All functions mean the same to Python, on lists, and to Numba, on arrays: every number stays below 2**63.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = [
    "CACHE_ENTRY",
    "DEPTH",
    "DONE",
    "FIRE",
    "FIRST_NODE",
    "FRAME",
    "IDENTITY",
    "MEET",
    "MOST_NODES",
    "NODE",
    "NODES",
    "NO_RESULT",
    "PREIMAGE",
    "PRUNE",
    "REGISTERS",
    "RESULT",
    "SATURATE",
    "TRUE",
    "UNION",
    "USED",
    "EventSystem",
    "begin",
    "deliver",
    "find_or_make",
    "finish",
    "hash_of",
    "known_result",
    "next_child",
    "next_firing",
    "rehash_cache",
    "rehash_nodes",
    "run",
    "seed",
    "step",
    "store_result",
]

TRUE = 1
FIRST_NODE = 4
"""The number of a node is where it begins in the pool: its level, the next node of its bucket, its children."""
NODE = 2
"""Where the children of a node begin."""

IDENTITY = -1
"""In place of a column: the event does not look at the machine of this level."""

UNION, MEET, FIRE, PRUNE, PREIMAGE, SATURATE = 0, 1, 2, 3, 4, 5
"""Operations.  ``FIRE``: the states after an event, saturated.  ``PRUNE``: the states in which an event is not enabled.
``PREIMAGE``: those states of a second set from which an event leads into the first.  ``SATURATE``: a node in the making
is closed under all events whose highest machine is that of its level."""
_OPERATIONS = 8

DEPTH, RESULT, USED, NODES, MOST_NODES = 0, 1, 2, 3, 4
REGISTERS = 5
"""Registers: the frame on top of the stack, what the last one came to, the used length of the pool, its nodes, and how
many of them there may be."""
NO_RESULT = -1
DONE = -1
"""The depth of an empty stack."""

_KIND, _LEVEL, _EVENT, _A, _B, _I, _J, _NEXT, _MERGING, _CALL_EVENT, _CALL_A, _CALL_B = range(12)
FRAME = 12
"""A frame: its operation, level, event and operands; the local state at which it is, and that which gets the result;
the next event to fire; whether a union with that result was asked for; event and operands of what it asks for.
Then come its children, and which of them have changed."""

_NO_CALL, _FINISHED = -1, -2

CACHE_ENTRY = 4


class EventSystem(NamedTuple):
    """The events by levels; constant during a search.

    Level ``k`` (from 1) has ``size[k]`` local states, and ``start[k]`` is the number of the first of them.  Event ``e``
    looks at machines of the levels ``bottom[e]`` to ``top[e]``; local state ``s`` of level ``k`` goes to
    ``table[column[base[e] + k] + s]``, -1 where the event is refused.  The events whose top is level ``k`` and that are
    not refused by its local state ``s`` are ``event[f]``, leading to ``target[f]``, for ``f`` from
    ``firing[start[k] + s]`` up to the next one's.
    """

    levels: int
    widest: int
    size: Any
    start: Any
    bottom: Any
    top: Any
    base: Any
    column: Any
    table: Any
    firing: Any
    event: Any
    target: Any


def run(  # noqa: PLR0913, PLR0917 - a compiled function gets all arrays
    system: EventSystem, pool: Any, slots: Any, cache: Any, stack: Any, registers: Any, steps: int
) -> None:
    """Work until the stack is empty, so many ``steps`` are done, or memory may not suffice for one more node."""
    most = len(pool) - NODE - system.widest
    while registers[DEPTH] >= 0 and steps > 0 and registers[USED] <= most and registers[NODES] < registers[MOST_NODES]:
        steps -= 1
        step(system, pool, slots, cache, stack, registers)


def step(  # noqa: PLR0913, PLR0917
    system: EventSystem, pool: Any, slots: Any, cache: Any, stack: Any, registers: Any
) -> None:
    """Take one result to the frame on top of the stack, and let it ask for the next one."""
    stride = FRAME + 2 * system.widest
    at = registers[DEPTH] * stride
    call = _NO_CALL
    if registers[RESULT] >= 0:
        call = deliver(stack, at, registers[RESULT], system.widest)
        registers[RESULT] = NO_RESULT
    if call == _NO_CALL:
        call = next_firing(system, stack, at) if stack[at + _KIND] == SATURATE else next_child(system, pool, stack, at)
    if call == _FINISHED:
        finish(system, pool, slots, cache, stack, at, registers)
    elif call >= 0:
        event, a, b = stack[at + _CALL_EVENT], stack[at + _CALL_A], stack[at + _CALL_B]
        if call == PREIMAGE and pool[a] < system.bottom[event]:
            call, event = MEET, 0
        if call <= MEET and a > b:
            a, b = b, a
        registers[RESULT] = known_result(system, pool, cache, call, event, a, b)
        if registers[RESULT] < 0:
            registers[DEPTH] += 1
            begin(system, stack, at + stride, call, pool[a], event, a, b)


def begin(  # noqa: PLR0913, PLR0917
    system: EventSystem, stack: Any, at: int, kind: int, level: int, event: int, a: int, b: int
) -> None:
    """Write a frame without children."""
    stack[at + _KIND], stack[at + _LEVEL], stack[at + _EVENT] = kind, level, event
    stack[at + _A], stack[at + _B] = a, b
    stack[at + _I], stack[at + _J], stack[at + _NEXT], stack[at + _MERGING] = 0, 0, 0, 0
    for child in range(at + FRAME, at + FRAME + system.size[level]):
        stack[child], stack[child + system.widest] = 0, 0


def seed(system: EventSystem, stack: Any, at: int, local: int, child: int) -> None:
    """Make a frame without children one to be saturated that has a child in one local state."""
    first, size = system.start[stack[at + _LEVEL]], system.size[stack[at + _LEVEL]]
    stack[at + _I], stack[at + _NEXT] = size - 1, system.firing[first + size]
    stack[at + FRAME + local] = child
    stack[at + FRAME + system.widest + local] = 1


def deliver(stack: Any, at: int, result: int, widest: int) -> int:
    """Make ``result`` part of the child that waits for it; the union of both is asked for first if there is one."""
    child = at + FRAME + stack[at + _J]
    here = stack[child]
    if stack[at + _MERGING] == 0 and here > 0 and result > 0 and here != result:
        stack[at + _MERGING] = 1
        stack[at + _CALL_EVENT], stack[at + _CALL_A], stack[at + _CALL_B] = 0, here, result
        return UNION
    if result > 0 and here != result:
        stack[child] = result
        stack[child + widest] = 1
    stack[at + _MERGING] = 0
    return _NO_CALL


def next_firing(system: EventSystem, stack: Any, at: int) -> int:
    """Fire the next event in a local state whose child has changed, until there is none."""
    level = stack[at + _LEVEL]
    first, size, changed = system.start[level], system.size[level], at + FRAME + system.widest
    i = stack[at + _I]
    if stack[at + _NEXT] == system.firing[first + i + 1]:
        tried = 0
        while tried < size and (stack[changed + i] == 0 or system.firing[first + i] == system.firing[first + i + 1]):
            i = i + 1 if i + 1 < size else 0
            tried += 1
        if tried == size:
            return _FINISHED
        stack[changed + i] = 0
        stack[at + _I], stack[at + _NEXT] = i, system.firing[first + i]
    f = stack[at + _NEXT]
    stack[at + _NEXT] = f + 1
    stack[at + _J] = system.target[f]
    stack[at + _CALL_EVENT], stack[at + _CALL_A], stack[at + _CALL_B] = system.event[f], stack[at + FRAME + i], 0
    return FIRE


def next_child(system: EventSystem, pool: Any, stack: Any, at: int) -> int:
    """Ask for the next child that has to be computed; those that need not be are written."""
    kind, level, event = stack[at + _KIND], stack[at + _LEVEL], stack[at + _EVENT]
    looks = kind >= FIRE and level <= system.top[event]
    column = system.column[system.base[event] + level] if looks else IDENTITY
    for i in range(stack[at + _I], system.size[level]):
        j = i if column < 0 else system.table[column + i]
        a = pool[stack[at + _A] + NODE + i]
        b = pool[stack[at + _B] + NODE + i] if kind <= MEET or kind == PREIMAGE else 0
        asked = j >= 0
        if kind == PREIMAGE and asked:
            a, j = pool[stack[at + _A] + NODE + j], i
            asked = a > 0 and b > 0
        elif kind == MEET:
            asked = a > 0 and b > 0
        elif kind == UNION:
            asked = a > 0 and b > 0 and a != b
            if not asked:
                stack[at + FRAME + i] = a if a > 0 else b
        elif kind == PRUNE:
            if not asked:
                stack[at + FRAME + i] = a
            asked, j = asked and a > 0, i
        else:
            asked = asked and a > 0
        if asked:
            stack[at + _I], stack[at + _J] = i + 1, j
            stack[at + _CALL_EVENT], stack[at + _CALL_A], stack[at + _CALL_B] = event, a, b
            return int(kind)
    return _FINISHED


def finish(  # noqa: PLR0913, PLR0917
    system: EventSystem, pool: Any, slots: Any, cache: Any, stack: Any, at: int, registers: Any
) -> None:
    """Make the node of a frame that has all children; one after an event is saturated first."""
    kind, level = stack[at + _KIND], stack[at + _LEVEL]
    first, size = system.start[level], system.size[level]
    if kind == FIRE and system.firing[first] < system.firing[first + size]:
        stack[at + _KIND] = SATURATE
        stack[at + _I], stack[at + _NEXT] = size - 1, system.firing[first + size]
        return  # every child that there is counts as changed
    result = find_or_make(pool, slots, stack, at + FRAME, level, size, registers)
    if stack[at + _A] > 0:
        code = stack[at + _EVENT] * _OPERATIONS + (FIRE if kind == SATURATE else kind)
        store_result(cache, code, stack[at + _A], stack[at + _B], result)
    registers[RESULT] = result
    registers[DEPTH] -= 1


def known_result(  # noqa: PLR0913, PLR0917
    system: EventSystem, pool: Any, cache: Any, call: int, event: int, a: int, b: int
) -> int:
    """What an operation comes to if that is plain or in the cache, else ``NO_RESULT``."""
    code = event * _OPERATIONS + call
    if call >= FIRE and pool[a] < system.bottom[event]:  # all that the event looks at is above
        if call == FIRE:
            return a
        if call == PRUNE:
            return 0
    if code <= MEET and a == b:
        return a
    slot = hash_of(hash_of(code, a), b) & (len(cache) // CACHE_ENTRY - 1)
    at = slot * CACHE_ENTRY
    if cache[at] == code + 1 and cache[at + 1] == a and cache[at + 2] == b:
        return int(cache[at + 3])
    return NO_RESULT


def store_result(cache: Any, code: int, a: int, b: int, result: int) -> None:
    """Remember what an operation came to, in place of another one that has the same slot."""
    at = (hash_of(hash_of(code, a), b) & (len(cache) // CACHE_ENTRY - 1)) * CACHE_ENTRY
    cache[at], cache[at + 1], cache[at + 2], cache[at + 3] = code + 1, a, b, result


def hash_of(key: int, number: int) -> int:
    """Mix a ``number`` into ``key``; both have 31 bits, and the result too."""
    mixed = ((key ^ number) * 0x2C1B3C6D + 0x297A2D39) & 0x7FFFFFFF
    return mixed ^ (mixed >> 15)


def find_or_make(  # noqa: PLR0913, PLR0917
    pool: Any, slots: Any, stack: Any, children: int, level: int, size: int, registers: Any
) -> int:
    """The node with the children that begin at ``children`` of ``stack``; 0 if it has none."""
    key, some = level, 0
    for i in range(size):
        key = hash_of(key, stack[children + i])
        some |= stack[children + i]
    if some == 0:
        return 0
    slot = key & (len(slots) - 1)
    node = slots[slot]
    while node > 0:
        i = 0
        if pool[node] == level:
            while i < size and pool[node + NODE + i] == stack[children + i]:
                i += 1
            if i == size:
                return int(node)
        node = pool[node + 1]
    made = int(registers[USED])
    pool[made], pool[made + 1] = level, slots[slot]
    for i in range(size):
        pool[made + NODE + i] = stack[children + i]
    slots[slot] = made
    registers[USED] = made + NODE + size
    registers[NODES] += 1
    return made


def rehash_nodes(system: EventSystem, pool: Any, slots: Any, used: int) -> None:
    """Put all nodes into the empty ``slots``."""
    node = FIRST_NODE
    while node < used:
        size, key = system.size[pool[node]], int(pool[node])
        for i in range(size):
            key = hash_of(key, int(pool[node + NODE + i]))
        slot = key & (len(slots) - 1)
        pool[node + 1] = slots[slot]
        slots[slot] = node
        node += NODE + size


def rehash_cache(before: Any, cache: Any) -> None:
    """Put all results of a cache into a larger one."""
    for at in range(0, len(before), CACHE_ENTRY):
        if before[at] > 0:
            store_result(cache, before[at] - 1, int(before[at + 1]), int(before[at + 2]), before[at + 3])
