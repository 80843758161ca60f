"""Fair strongly connected components of the states that a search has found, in integers only.

The *live* events are those that go on when faults have stopped (and those that a check lets go on for ever); they
are the edges of a graph of the states.  A strongly connected component is *fair* if a run can stay in it for ever
without an event staying enabled that never happens: each event that must happen is taken inside the component, or is
disabled in one of its states.  Where that fails it fails for every subset, so a component is judged once, undivided.

The components are found by Pearce's form of Tarjan's algorithm, which keeps one number a state (``lowlink``), on
stacks of its own, which the caller makes longer.  As in the kernel, all functions mean the same to Python, on lists,
and to Numba, on arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ackfsm.checking.explore.search.kernel import (
    BASE,
    HEAD,
    MASK_BITS,
    EncodedSystem,
    Layout,
    LocalStates,
    slot_of_number,
)

__all__ = [
    "COMPONENT",
    "EXCLUDED",
    "FRAME",
    "NEW",
    "SccStacks",
    "StateSpace",
    "close_component",
    "enabled_here",
    "find_fair_components",
    "find_quiescent",
    "index_states",
    "is_fair",
    "live_successors",
    "look_up_state",
    "mark_waiting",
    "path_in_scc",
    "push_frame",
    "restrict",
]

NEW, EXCLUDED = 0, 0x7FFFFFFF
"""Lowlinks: of a state that was not visited, and of one that is in no fair component; the numbers of fair components
are above the lowlinks of states on the stacks."""

FRAME = 4
"""Numbers of a frame: a state, where its edges begin, whether it may be the root of its component, whether it has a
loop."""

ROOT, DEPTH, EDGES, STACKED, INDEX, COMPONENT = 0, 1, 2, 3, 4, 5
"""Offsets in the tally of the stacks: the next root, the frames, edges and states on the stacks, the last index given,
the number of the next fair component."""


class StateSpace(NamedTuple):
    """The ``states`` that a search has found, of which the first ``expanded`` have successors, and memory for one.

    ``slots`` is the hash table of their numbers, ``live`` the mask of the events of the graph.  Of one state there are
    the local states that it has ``here``, a successor (``child``), the live ``events``, and what comes ``after`` each.
    ``always_enabled`` and ``taken`` are masks: the events enabled in all states of a component, and those taken inside.
    """

    system: EncodedSystem
    layout: Layout
    interned: LocalStates
    expanded: int
    states: Any
    slots: Any
    live: Any
    here: Any
    child: Any
    events: Any
    after: Any
    always_enabled: Any
    taken: Any


class SccStacks(NamedTuple):
    """The stacks of the algorithm, and their ``tally``."""

    frames: Any
    edges: Any
    component_stack: Any
    tally: Any


def look_up_state(space: StateSpace, state: int) -> None:
    """Put the ids of the local states of ``state`` into ``space.here``."""
    system, layout, interned = space.system, space.layout, space.interned
    base = state * layout.words
    for c in range(system.components):
        number = (space.states[base + layout.word[c]] >> layout.shift[c]) & layout.mask[c]
        space.here[c] = interned.id_of[c * interned.most + number]


def index_states(words: int, states: Any, count: int, slots: Any) -> None:
    """Insert the numbers of the first ``count`` states, all different, into the empty hash table ``slots``."""
    for state in range(count):
        slots[slot_of_number(words, states, slots, states, state * words)] = state


def enabled_here(space: StateSpace, m: int, events: int) -> int:
    """Those of the ``events``, the word ``m`` of a mask, that no local state refuses that was looked up."""
    for c in range(space.system.components):
        events &= space.interned.head[space.here[c] * space.system.head + HEAD + m]
    return events


def live_successors(space: StateSpace, state: int) -> int:
    """Put the live events of ``state`` and where they lead into the space; how many there are.

    What a search that was stopped did not find is left out.
    """
    system, interned, words = space.system, space.interned, space.layout.words
    base = state * words
    look_up_state(space, state)
    count = 0
    for m in range(system.masks):
        enabled = enabled_here(space, m, space.live[m])
        while enabled > 0:
            low = enabled & -enabled
            enabled ^= low
            event = m * MASK_BITS + system.lowest_bit[low % 67]
            known = 0
            for w in range(words):
                space.child[w] = space.states[base + w]
            for i in range(system.moves[event], system.moves[event + 1]):
                local_id = space.here[system.mover[i]]
                nth = interned.nth[local_id * system.widest + system.ordinal[i]]
                step = (interned.head[local_id * system.head + BASE] + nth) * (words + 1)
                for w in range(words):
                    space.child[w] += interned.delta[1 + step + w]
                known |= interned.delta[step]
            if known < 0:
                continue
            there = space.slots[slot_of_number(words, space.states, space.slots, space.child, 0)]
            if there >= 0:
                space.events[count] = event
                space.after[count] = there
                count += 1
    return count


def mark_waiting(  # noqa: PLR0913, PLR0917 - the bits of a machine
    space: StateSpace, component: int, word: int, shift: int, mask: int, pending: Any, bit: int, waiting: Any
) -> None:
    """Give ``bit`` to the local states in which a machine (its bits in the component's states) is ``pending``."""
    system, interned = space.system, space.interned
    for local_id in range(interned.count[system.components]):
        if interned.component[local_id] == component:
            here = (interned.machines[local_id * system.local_words + word] >> shift) & mask
            waiting[local_id] |= bit * pending[here]


def find_quiescent(space: StateSpace, waiting: Any, first_quiescent: Any) -> None:
    """``first_quiescent[b]`` becomes the first quiescent state with bit ``b`` in its ``waiting`` bits."""
    for number in range(space.expanded):
        look_up_state(space, number)
        bits = 0
        for c in range(space.system.components):
            bits |= waiting[space.here[c]]
        for m in range(space.system.masks):
            if enabled_here(space, m, space.system.must[m]):
                bits = 0
        b = 0
        while bits > 0:
            if bits & 1 and first_quiescent[b] < 0:
                first_quiescent[b] = number
            bits >>= 1
            b += 1


def restrict(space: StateSpace, waiting: Any, lowlink: Any) -> None:
    """Exclude the states in which nothing is ``waiting``; the rest of those not excluded is to be visited again."""
    for state in range(len(lowlink)):
        if lowlink[state] != EXCLUDED:
            look_up_state(space, state)
            lowlink[state] = EXCLUDED
            for c in range(space.system.components):
                if waiting[space.here[c]]:
                    lowlink[state] = NEW


def find_fair_components(space: StateSpace, lowlink: Any, stacks: SccStacks, nearest: Any) -> bool:
    """Find the fair components of the states that are ``NEW``: each gets a number, all else is ``EXCLUDED``.

    ``nearest[0]`` becomes the lowest number of a state in a fair component.  False, and the call is to be repeated,
    where the stacks may have no room for one more frame.
    """
    tally = stacks.tally
    while True:
        is_full = FRAME * tally[DEPTH] == len(stacks.frames) or tally[STACKED] == len(stacks.component_stack)
        if is_full or tally[EDGES] + space.system.events > len(stacks.edges):
            return False
        if tally[DEPTH] == 0:
            while tally[ROOT] < len(lowlink) and lowlink[tally[ROOT]] != NEW:
                tally[ROOT] += 1
            if tally[ROOT] == len(lowlink):
                return True
            push_frame(space, lowlink, stacks, tally[ROOT])
            continue
        frame = FRAME * (tally[DEPTH] - 1)
        state = stacks.frames[frame]
        if tally[EDGES] == stacks.frames[frame + 1]:
            tally[DEPTH] -= 1
            stacks.component_stack[tally[STACKED]] = state
            tally[STACKED] += 1
            if stacks.frames[frame + 2]:
                close_component(space, lowlink, stacks, nearest)
            continue
        after = stacks.edges[tally[EDGES] - 1]
        if lowlink[after] == NEW:
            push_frame(space, lowlink, stacks, after)
            continue
        tally[EDGES] -= 1
        if lowlink[after] < lowlink[state]:
            lowlink[state] = lowlink[after]
            stacks.frames[frame + 2] = 0


def push_frame(space: StateSpace, lowlink: Any, stacks: SccStacks, state: int) -> None:
    """Push a frame for ``state``."""
    tally, loop = stacks.tally, 0
    frame, edges = FRAME * tally[DEPTH], tally[EDGES]
    for i in range(live_successors(space, state)):
        if space.after[i] == state:
            loop = 1
        elif lowlink[space.after[i]] != EXCLUDED:
            stacks.edges[edges] = space.after[i]
            edges += 1
    stacks.frames[frame] = state
    stacks.frames[frame + 1] = tally[EDGES]
    stacks.frames[frame + 2] = 1
    stacks.frames[frame + 3] = loop
    tally[EDGES] = edges
    tally[DEPTH] += 1
    tally[INDEX] += 1
    lowlink[state] = tally[INDEX]


def close_component(space: StateSpace, lowlink: Any, stacks: SccStacks, nearest: Any) -> None:
    """Pop the component whose root was pushed last, and judge it."""
    tally = stacks.tally
    end = tally[STACKED]
    first = stacks.component_stack[end - 1]
    low, lowest = end - 1, lowlink[first]
    while low > 0 and lowlink[stacks.component_stack[low - 1]] >= lowest:
        low -= 1
    for i in range(low, end):
        lowlink[stacks.component_stack[i]] = tally[COMPONENT]
    tally[INDEX] -= end - low
    tally[STACKED] = low
    loop = stacks.frames[FRAME * tally[DEPTH] + 3]
    goes_round = end - low > 1 or loop != 0
    if goes_round and is_fair(space, lowlink, stacks, low, end):
        tally[COMPONENT] -= 1
        for i in range(low, end):
            if nearest[0] < 0 or stacks.component_stack[i] < nearest[0]:
                nearest[0] = stacks.component_stack[i]
    else:
        for i in range(low, end):
            lowlink[stacks.component_stack[i]] = EXCLUDED


def is_fair(space: StateSpace, lowlink: Any, stacks: SccStacks, low: int, end: int) -> bool:
    """Whether no event that must happen is enabled in all states of a component and taken in none."""
    component, masks = stacks.tally[COMPONENT], space.system.masks
    for m in range(masks):
        space.always_enabled[m] = space.system.must[m]
        space.taken[m] = 0
    for i in range(low, end):
        count = live_successors(space, stacks.component_stack[i])
        for m in range(masks):
            space.always_enabled[m] = enabled_here(space, m, space.always_enabled[m])
        for k in range(count):
            if lowlink[space.after[k]] == component:
                space.taken[space.events[k] // MASK_BITS] |= 1 << (space.events[k] % MASK_BITS)
    found_fair = True
    for m in range(masks):
        if space.always_enabled[m] & ~space.taken[m]:
            found_fair = False
    return found_fair


def path_in_scc(  # noqa: PLR0913, PLR0917 - as the others
    space: StateSpace, lowlink: Any, origin: int, target: int, owed: Any, parents: Any, queue: Any, end: Any
) -> None:
    """Find a shortest path from ``origin`` within its component.

    It goes to where an event of the mask ``owed`` is disabled or taken, or an event leads to ``target``.  ``end``
    becomes the last state of the path (-1: there is none), the event and the state after it (-1 if no event is added),
    and how many states were met.  Those are in ``queue``, and ``parents``, which was -1, leads from each to the one
    before it.
    """
    parents[origin] = origin
    queue[0] = origin
    head, tail = 0, 1
    while head < tail:
        state = queue[head]
        head += 1
        count = live_successors(space, state)
        end[0], end[1], end[2] = state, -1, -1
        for m in range(space.system.masks):
            if enabled_here(space, m, owed[m]) != owed[m]:
                end[3] = tail
                return
        for i in range(count):
            event, after = space.events[i], space.after[i]
            if lowlink[after] != lowlink[origin]:
                continue
            if after == target or (owed[event // MASK_BITS] >> (event % MASK_BITS)) & 1:
                end[1], end[2], end[3] = event, after, tail
                return
            if parents[after] < 0:
                parents[after] = state
                queue[tail] = after
                tail += 1
    end[0] = -1
