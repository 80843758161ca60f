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
    "OCCURRING",
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
    "find",
    "finish",
    "flat",
    "hash_of",
    "hash_of_children",
    "is_refused",
    "known_result",
    "make",
    "next_changed",
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
"""The number of a node is where it begins in the pool: its level, the next node of its bucket, its occurrences (bits
for the local states of the lowest levels that occur in its states), its children."""
OCCURRING = 2
NODE = 3
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

    The bits of the local states of level ``k`` begin at bit ``occurs[k]``, -1 if it has none.  Event ``e`` needs one of
    the bits ``need[n]``, of level ``need_level[n]``, for each ``n`` from ``needs[e]`` up to the next one's.
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
    occurs: Any
    needs: Any
    need: Any
    need_level: Any


LEVELS, WIDEST, SIZE, START, BOTTOM, TOP, BASE, COLUMN = range(8)
TABLE, FIRING, EVENT, TARGET, OCCURS, NEEDS, NEED, NEED_LEVEL = range(8, 16)
"""The fields of :class:`EventSystem` in one array: where each begins, or a number itself, then all of them.

A function that gets one array is called three times as fast as one that gets a tuple of them.
"""


def flat(events: EventSystem) -> list[int]:
    """``events`` as one list."""
    head, body = list[int](), list[int]()
    for field in events:
        head.append(field if isinstance(field, int) else len(events) + len(body))
        body += [] if isinstance(field, int) else field
    return head + body


def run(  # noqa: PLR0913, PLR0917 - a compiled function gets all arrays
    system: Any, pool: Any, slots: Any, cache: Any, stack: Any, registers: Any, steps: int
) -> None:
    """Work until the stack is empty, so many ``steps`` are done, or memory may not suffice for one more node."""
    most = len(pool) - NODE - system[WIDEST]
    while registers[DEPTH] >= 0 and steps > 0 and registers[USED] <= most and registers[NODES] < registers[MOST_NODES]:
        steps -= 1
        step(system, pool, slots, cache, stack, registers)


def step(  # noqa: PLR0913, PLR0917
    system: Any, pool: Any, slots: Any, cache: Any, stack: Any, registers: Any
) -> None:
    """Take one result to the frame on top of the stack, and let it ask for the next one."""
    stride = FRAME + 2 * system[WIDEST]
    at = registers[DEPTH] * stride
    call = _NO_CALL
    if registers[RESULT] >= 0:
        call = deliver(stack, at, registers[RESULT], system[WIDEST])
        registers[RESULT] = NO_RESULT
    if call == _NO_CALL:
        if stack[at + _KIND] == SATURATE:
            call = next_firing(system, pool, cache, stack, at)
        else:
            call = next_child(system, pool, cache, stack, at)
    if call == _FINISHED:
        finish(system, pool, slots, cache, stack, at, registers)
    elif call >= 0:
        event, a, b = stack[at + _CALL_EVENT], stack[at + _CALL_A], stack[at + _CALL_B]
        if call == PREIMAGE and pool[a] < system[system[BOTTOM] + event]:
            call, event = MEET, 0
        if call <= MEET and a > b:
            a, b = b, a
        registers[RESULT] = known_result(system, pool, cache, call, event, a, b)
        if registers[RESULT] < 0:
            registers[DEPTH] += 1
            begin(system, stack, at + stride, call, pool[a], event, a, b)


def begin(  # noqa: PLR0913, PLR0917
    system: Any, stack: Any, at: int, kind: int, level: int, event: int, a: int, b: int
) -> None:
    """Write a frame without children."""
    stack[at + _KIND], stack[at + _LEVEL], stack[at + _EVENT] = kind, level, event
    stack[at + _A], stack[at + _B] = a, b
    stack[at + _I], stack[at + _J], stack[at + _NEXT], stack[at + _MERGING] = 0, 0, 0, 0
    for child in range(at + FRAME, at + FRAME + system[system[SIZE] + level]):
        stack[child], stack[child + system[WIDEST]] = 0, 0


def seed(system: Any, stack: Any, at: int, local: int, child: int) -> None:
    """Make a frame without children one to be saturated that has a child in one local state."""
    first, size = system[system[START] + stack[at + _LEVEL]], system[system[SIZE] + stack[at + _LEVEL]]
    stack[at + _I], stack[at + _NEXT] = size - 1, system[system[FIRING] + first + size]
    stack[at + FRAME + local] = child
    stack[at + FRAME + system[WIDEST] + local] = 1


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


def next_firing(system: Any, pool: Any, cache: Any, stack: Any, at: int) -> int:
    """Fire the next event in a local state whose child has changed, until there is none; known results are taken."""
    level = stack[at + _LEVEL]
    first, size, children = system[system[START] + level], system[system[SIZE] + level], at + FRAME
    changed, i, f = children + system[WIDEST], stack[at + _I], stack[at + _NEXT]
    while True:
        if f == system[system[FIRING] + first + i + 1]:
            i = next_changed(system, stack, changed, i, level)
            if i == size:
                return _FINISHED
            stack[changed + i] = 0
            f = system[system[FIRING] + first + i]
        event, j = system[system[EVENT] + f], system[system[TARGET] + f]
        f += 1
        result = known_result(system, pool, cache, FIRE, event, stack[children + i], 0)
        here = stack[children + j]
        if result > 0 and here == 0:
            stack[children + j] = result
            stack[changed + j] = 1
        elif result and result != here:
            stack[at + _I], stack[at + _J], stack[at + _NEXT] = i, j, f
            stack[at + _CALL_EVENT], stack[at + _CALL_A], stack[at + _CALL_B] = event, stack[children + i], 0
            return FIRE


def next_changed(system: Any, stack: Any, changed: int, i: int, level: int) -> int:
    """The next local state from ``i`` on, and round, that has changed and events; how many there are if none has."""
    first, size = system[system[START] + level], system[system[SIZE] + level]
    for _ in range(size):
        if stack[changed + i] > 0 and system[system[FIRING] + first + i] < system[system[FIRING] + first + i + 1]:
            return i
        i = i + 1 if i + 1 < size else 0
    return int(size)


def next_child(  # noqa: C901 - one case for each operation
    system: Any, pool: Any, cache: Any, stack: Any, at: int
) -> int:
    """Ask for the next child to be computed; known children are written."""
    kind, level, event = stack[at + _KIND], stack[at + _LEVEL], stack[at + _EVENT]
    looks = kind >= FIRE and level <= system[system[TOP] + event]
    column = system[system[COLUMN] + system[system[BASE] + event] + level] if looks else IDENTITY
    for i in range(stack[at + _I], system[system[SIZE] + level]):
        j = i if column < 0 else system[system[TABLE] + column + i]
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
            result = known_result(system, pool, cache, kind, event, a, b)
            here = stack[at + FRAME + j]
            if result > 0 and here == 0:
                stack[at + FRAME + j] = result
                stack[at + FRAME + system[WIDEST] + j] = 1
            elif result and result != here:
                stack[at + _I], stack[at + _J] = i + 1, j
                stack[at + _CALL_EVENT], stack[at + _CALL_A], stack[at + _CALL_B] = event, a, b
                return int(kind)
    return _FINISHED


def finish(  # noqa: PLR0913, PLR0917
    system: Any, pool: Any, slots: Any, cache: Any, stack: Any, at: int, registers: Any
) -> None:
    """Make the node of a frame that has all children; one after an event is saturated first."""
    kind, level = stack[at + _KIND], stack[at + _LEVEL]
    first, size = system[system[START] + level], system[system[SIZE] + level]
    key = hash_of_children(stack, at + FRAME, level, size)
    result = find(pool, slots, stack, at + FRAME, level, size, key)
    if result < 0:
        if (
            kind == FIRE and system[system[FIRING] + first] < system[system[FIRING] + first + size]
        ):  # else it is saturated already
            stack[at + _KIND] = SATURATE
            stack[at + _I], stack[at + _NEXT] = size - 1, system[system[FIRING] + first + size]
            return  # every child that there is counts as changed
        result = make(system, pool, slots, stack, at + FRAME, level, size, key, registers)
    if stack[at + _A] > 0:
        code = stack[at + _EVENT] * _OPERATIONS + (FIRE if kind == SATURATE else kind)
        store_result(cache, code, stack[at + _A], stack[at + _B], result)
    registers[RESULT] = result
    registers[DEPTH] -= 1


def known_result(  # noqa: PLR0913, PLR0917
    system: Any, pool: Any, cache: Any, call: int, event: int, a: int, b: int
) -> int:
    """What an operation comes to if that is plain or in the cache, else ``NO_RESULT``."""
    code = event * _OPERATIONS + call
    if call >= FIRE and pool[a] < system[system[BOTTOM] + event]:  # all that the event looks at is above
        if call == FIRE:
            return a
        if call == PRUNE:
            return 0
        code = MEET
    elif FIRE <= call <= PRUNE and is_refused(system, event, pool[a], pool[a + OCCURRING]):
        return 0 if call == FIRE else a
    if code <= MEET:
        if a == b:
            return a
        if a > b:
            a, b = b, a
    slot = hash_of(hash_of(code, a), b) & (len(cache) // CACHE_ENTRY - 1)
    at = slot * CACHE_ENTRY
    if cache[at] == code + 1 and cache[at + 1] == a and cache[at + 2] == b:
        return int(cache[at + 3])
    return NO_RESULT


def is_refused(system: Any, event: int, level: int, occurring: int) -> bool:
    """Whether one of the lowest machines refuses the event in all states of a node, as its occurrences tell."""
    for n in range(system[system[NEEDS] + event], system[system[NEEDS] + event + 1]):
        if system[system[NEED_LEVEL] + n] <= level and system[system[NEED] + n] & occurring == 0:
            return True
    return False


def store_result(cache: Any, code: int, a: int, b: int, result: int) -> None:
    """Remember what an operation came to, in place of another one that has the same slot."""
    at = (hash_of(hash_of(code, a), b) & (len(cache) // CACHE_ENTRY - 1)) * CACHE_ENTRY
    cache[at], cache[at + 1], cache[at + 2], cache[at + 3] = code + 1, a, b, result


def hash_of(key: int, number: int) -> int:
    """Mix a ``number`` into ``key``; both have 31 bits, and the result too."""
    mixed = ((key ^ number) * 0x2C1B3C6D + 0x297A2D39) & 0x7FFFFFFF
    return mixed ^ (mixed >> 15)


def hash_of_children(stack: Any, children: int, level: int, size: int) -> int:
    """The key of a node; -1 if it has no children."""
    key, some = level, 0
    for i in range(size):
        key = hash_of(key, stack[children + i])
        some |= stack[children + i]
    return key if some > 0 else -1


def find(  # noqa: PLR0913, PLR0917
    pool: Any, slots: Any, stack: Any, children: int, level: int, size: int, key: int
) -> int:
    """The node with the children that begin at ``children`` of ``stack``, ``NO_RESULT`` if there is none yet."""
    if key < 0:
        return 0
    node = slots[key & (len(slots) - 1)]
    while node > 0:
        if pool[node] == level:
            i = 0
            while i < size and pool[node + NODE + i] == stack[children + i]:
                i += 1
            if i == size:
                return int(node)
        node = pool[node + 1]
    return NO_RESULT


def make(  # noqa: PLR0913, PLR0917
    system: Any,
    pool: Any,
    slots: Any,
    stack: Any,
    children: int,
    level: int,
    size: int,
    key: int,
    registers: Any,
) -> int:
    """A new node."""
    slot, made = key & (len(slots) - 1), int(registers[USED])
    pool[made], pool[made + 1] = level, slots[slot]
    occurring, first = 0, system[system[OCCURS] + level]
    for i in range(size):
        child = stack[children + i]
        pool[made + NODE + i] = child
        if child > 0:
            occurring |= pool[child + OCCURRING]
            if first >= 0:
                occurring |= 1 << (first + i)
    pool[made + OCCURRING] = occurring
    slots[slot] = made
    registers[USED] = made + NODE + size
    registers[NODES] += 1
    return made


def rehash_nodes(system: Any, pool: Any, slots: Any, used: int) -> None:
    """Put all nodes into the empty ``slots``."""
    node = FIRST_NODE
    while node < used:
        size, key = system[system[SIZE] + pool[node]], int(pool[node])
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
