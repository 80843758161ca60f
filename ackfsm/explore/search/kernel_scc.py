"""Fair cycles among the states that a search has found, in integers only.

The *live* events are those that go on when faults have stopped (and those that a check lets go on for ever); they
make a graph of the states.  A strongly connected set of it is *fair* if a run can go round in it for ever without
an event staying enabled that never happens: each event that must happen is taken inside the set, or is disabled in one
of its states.  Where that fails it fails for every part of the set, so that a set is judged once and never divided.

The sets are found by Pearce's form of Tarjan's algorithm, which keeps one number a state (``rank``), on
stacks of its own, which the caller makes longer.  As in the kernel, all functions mean the same to
Python, on lists, and to Numba, on arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ackfsm.explore.search.kernel import BASE, HEAD, KEY, MASK_BITS, Layout, Rows, System, key_of

__all__ = [
    "APART",
    "COMPONENT",
    "FRAME",
    "NEW",
    "Desk",
    "Space",
    "Walk",
    "begin",
    "chosen",
    "fair",
    "fair_sets",
    "finish",
    "index",
    "mark",
    "resting",
    "rows_of",
    "successors",
    "way",
]

NEW, APART = 0, 0x7FFFFFFF
"""Ranks: of a state that was not visited, and of one that is in no fair set; above the ranks of states
on the stacks are the numbers of fair sets."""

FRAME = 4
"""Numbers of a frame: a state, where its edges begin, whether it may be the first of its set, whether it leads to
itself."""

ROOT, DEPTH, EDGES, HELD, INDEX, COMPONENT = 0, 1, 2, 3, 4, 5
"""Places in the tally of a walk: the next root, the frames, edges and held states on the stacks, the last rank
given, the number of the next fair set."""


class Space(NamedTuple):
    """What a search has found, shard after shard.

    State ``number`` of a shard is ``offset[shard] + number`` here; the first ``expanded[shard]`` of a shard have
    successors.  Its hash table of the numbers of states is ``slots[table[shard] : table[shard + 1]]``.  ``live`` is the
    mask of the events of the graph.
    """

    shards: int
    offset: Any
    expanded: Any
    states: Any
    table: Any
    slots: Any
    live: Any


class Desk(NamedTuple):
    """Room for one state: its rows, a successor, and the events with where they lead.

    ``stay`` and ``taken`` are masks: what is enabled everywhere in a set, and what happens inside it.
    """

    here: Any
    child: Any
    events: Any
    after: Any
    stay: Any
    taken: Any


class Walk(NamedTuple):
    """The stacks of a walk, and its ``tally``."""

    frames: Any
    edges: Any
    held: Any
    tally: Any


def rows_of(  # noqa: PLR0913, PLR0917 - a compiled function is told everything
    system: System, layout: Layout, rows: Rows, space: Space, desk: Desk, state: int
) -> None:
    """Put the rows of ``state`` on the desk."""
    base = state * layout.words
    for c in range(system.components):
        number = (space.states[base + layout.word[c]] >> layout.shift[c]) & layout.mask[c]
        desk.here[c] = rows.row_of[c * rows.most + number]


def index(  # noqa: PLR0913, PLR0917 - as rows_of
    system: System, layout: Layout, rows: Rows, states: Any, count: int, slots: Any
) -> None:
    """Enter the numbers of the first ``count`` states into the empty table ``slots``."""
    for state in range(count):
        slot = key_of(system, layout, rows, states, state) & (len(slots) - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = state


def successors(  # noqa: C901, PLR0913, PLR0917 - the hot loop, compiled as a whole
    system: System, layout: Layout, rows: Rows, space: Space, desk: Desk, state: int
) -> int:
    """Put the live events of ``state`` on the desk, and the states that they lead to; how many there are.

    Of a search that was stopped, what was not found is left out.
    """
    words, masks, base = layout.words, system.masks, state * layout.words
    rows_of(system, layout, rows, space, desk, state)
    key, count = 0, 0
    for c in range(system.components):
        key ^= rows.head[desk.here[c] * system.head + KEY]
    for m in range(masks):
        able = space.live[m]
        for c in range(system.components):
            able &= rows.head[desk.here[c] * system.head + HEAD + m]
        while able > 0:
            low = able & -able
            able ^= low
            event = m * MASK_BITS + system.position[low % 67]
            after, known = key, 0
            for w in range(words):
                desk.child[w] = space.states[base + w]
            for i in range(system.moves[event], system.moves[event + 1]):
                row = desk.here[system.mover[i]]
                nth = rows.nth[row * system.widest + system.place[i]]
                step = (rows.head[row * system.head + BASE] + nth) * (words + 1)
                for w in range(words):
                    desk.child[w] += rows.step[1 + step + w]
                known |= rows.step[step]
                after ^= rows.step[step]
            if known < 0:
                continue
            shard = (after >> 48) & (space.shards - 1)
            first, most = space.table[shard], space.table[shard + 1] - space.table[shard] - 1
            slot = after & most
            while space.slots[first + slot] >= 0:
                there = space.offset[shard] + space.slots[first + slot]
                same = True
                for w in range(words):
                    if space.states[there * words + w] != desk.child[w]:
                        same = False
                        break
                if same:
                    desk.events[count] = event
                    desk.after[count] = there
                    count += 1
                    break
                slot = (slot + 1) & most
    return count


def mark(  # noqa: PLR0913, PLR0917 - where a machine stands
    system: System, rows: Rows, component: int, word: int, shift: int, mask: int, pending: Any, bit: int, marks: Any
) -> None:
    """Give ``bit`` to the rows in which a machine (its place in the local states of a component) is ``pending``."""
    for row in range(rows.count[system.components]):
        if rows.component[row] == component:
            here = (rows.local[row * system.local_words + word] >> shift) & mask
            marks[row] |= bit * pending[here]


def resting(  # noqa: PLR0913, PLR0917 - as the others
    system: System, layout: Layout, rows: Rows, space: Space, desk: Desk, shard: int, marks: Any, found: Any
) -> None:
    """``found[b]`` becomes the first state of ``shard`` that is at rest and has a row with bit ``b`` in its marks."""
    for number in range(space.expanded[shard]):
        rows_of(system, layout, rows, space, desk, space.offset[shard] + number)
        bits = 0
        for c in range(system.components):
            bits |= marks[desk.here[c]]
        for m in range(system.masks):
            able = system.must[m]
            for c in range(system.components):
                able &= rows.head[desk.here[c] * system.head + HEAD + m]
            if able:
                bits = 0
        b = 0
        while bits > 0:
            if bits & 1 and found[b] < 0:
                found[b] = number
            bits >>= 1
            b += 1


def chosen(  # noqa: PLR0913, PLR0917 - as the others
    system: System, layout: Layout, rows: Rows, space: Space, desk: Desk, marks: Any, rank: Any
) -> None:
    """Set apart what has no mark, and leave the rest of what is not yet apart to be visited anew."""
    for state in range(len(rank)):
        if rank[state] != APART:
            rows_of(system, layout, rows, space, desk, state)
            rank[state] = APART
            for c in range(system.components):
                if marks[desk.here[c]]:
                    rank[state] = NEW


def fair_sets(  # noqa: PLR0913, PLR0917 - as the others
    system: System, layout: Layout, rows: Rows, space: Space, desk: Desk, rank: Any, walk: Walk, nearest: Any
) -> bool:
    """Find the fair sets of the states that are ``NEW``: each gets a number for its rank, all else is ``APART``.

    ``nearest[shard]`` becomes the lowest number that a state of that shard in a fair set has.  False, and the call is
    to be repeated, where the stacks may have no room for one more frame.
    """
    tally = walk.tally
    while True:
        crowded = FRAME * tally[DEPTH] == len(walk.frames) or tally[HELD] == len(walk.held)
        if crowded or tally[EDGES] + system.events > len(walk.edges):
            return False
        if tally[DEPTH] == 0:
            while tally[ROOT] < len(rank) and rank[tally[ROOT]] != NEW:
                tally[ROOT] += 1
            if tally[ROOT] == len(rank):
                return True
            begin(system, layout, rows, space, desk, rank, walk, tally[ROOT])
            continue
        frame = FRAME * (tally[DEPTH] - 1)
        state = walk.frames[frame]
        if tally[EDGES] == walk.frames[frame + 1]:
            tally[DEPTH] -= 1
            walk.held[tally[HELD]] = state
            tally[HELD] += 1
            if walk.frames[frame + 2]:
                finish(system, layout, rows, space, desk, rank, walk, nearest)
            continue
        after = walk.edges[tally[EDGES] - 1]
        if rank[after] == NEW:
            begin(system, layout, rows, space, desk, rank, walk, after)
            continue
        tally[EDGES] -= 1
        if rank[after] < rank[state]:
            rank[state] = rank[after]
            walk.frames[frame + 2] = 0


def begin(  # noqa: PLR0913, PLR0917 - as the others
    system: System, layout: Layout, rows: Rows, space: Space, desk: Desk, rank: Any, walk: Walk, state: int
) -> None:
    """Put a frame for ``state`` on the stack."""
    tally, loop = walk.tally, 0
    frame, edges = FRAME * tally[DEPTH], tally[EDGES]
    for i in range(successors(system, layout, rows, space, desk, state)):
        if desk.after[i] == state:
            loop = 1
        elif rank[desk.after[i]] != APART:
            walk.edges[edges] = desk.after[i]
            edges += 1
    walk.frames[frame] = state
    walk.frames[frame + 1] = tally[EDGES]
    walk.frames[frame + 2] = 1
    walk.frames[frame + 3] = loop
    tally[EDGES] = edges
    tally[DEPTH] += 1
    tally[INDEX] += 1
    rank[state] = tally[INDEX]


def finish(  # noqa: PLR0913, PLR0917 - as the others
    system: System, layout: Layout, rows: Rows, space: Space, desk: Desk, rank: Any, walk: Walk, nearest: Any
) -> None:
    """Take the strongly connected set, whose first state was held last, from the stack, and judge it."""
    tally = walk.tally
    end = tally[HELD]
    first = walk.held[end - 1]
    low, lowest = end - 1, rank[first]
    while low > 0 and rank[walk.held[low - 1]] >= lowest:
        low -= 1
    for i in range(low, end):
        rank[walk.held[i]] = tally[COMPONENT]
    tally[INDEX] -= end - low
    tally[HELD] = low
    loop = walk.frames[FRAME * tally[DEPTH] + 3]
    goes_round = end - low > 1 or loop != 0
    if goes_round and fair(system, layout, rows, space, desk, rank, walk, low, end):
        tally[COMPONENT] -= 1
        for i in range(low, end):
            shard = 0
            while walk.held[i] >= space.offset[shard + 1]:
                shard += 1
            number = walk.held[i] - space.offset[shard]
            if nearest[shard] < 0 or number < nearest[shard]:
                nearest[shard] = number
    else:
        for i in range(low, end):
            rank[walk.held[i]] = APART


def fair(  # noqa: PLR0913, PLR0917 - as the others
    system: System, layout: Layout, rows: Rows, space: Space, desk: Desk, rank: Any, walk: Walk, low: int, end: int
) -> bool:
    """Whether no event that must happen is enabled in all states of a set and taken in none."""
    component = walk.tally[COMPONENT]
    for m in range(system.masks):
        desk.stay[m] = system.must[m]
        desk.taken[m] = 0
    for i in range(low, end):
        count = successors(system, layout, rows, space, desk, walk.held[i])
        for m in range(system.masks):
            for c in range(system.components):
                desk.stay[m] &= rows.head[desk.here[c] * system.head + HEAD + m]
        for k in range(count):
            if rank[desk.after[k]] == component:
                desk.taken[desk.events[k] // MASK_BITS] |= 1 << (desk.events[k] % MASK_BITS)
    is_fair = True
    for m in range(system.masks):
        if desk.stay[m] & ~desk.taken[m]:
            is_fair = False
    return is_fair


def way(  # noqa: PLR0913, PLR0917 - as the others
    system: System,
    layout: Layout,
    rows: Rows,
    space: Space,
    desk: Desk,
    rank: Any,
    origin: int,
    target: int,
    owed: Any,
    back: Any,
    queue: Any,
    end: Any,
) -> None:
    """Find a shortest way on from ``origin``, within its fair set.

    It goes to where an event of the mask ``owed`` is disabled or taken, or an event leads to ``target``.
    ``end`` becomes the last state of the way (-1: there is none), the event and the state after it (-1 if no event is
    added), and how many states were met.  Those are in ``queue``, and ``back``, which was -1, leads from each to the
    one before it.
    """
    back[origin] = origin
    queue[0] = origin
    head, tail = 0, 1
    while head < tail:
        state = queue[head]
        head += 1
        count = successors(system, layout, rows, space, desk, state)
        end[0], end[1], end[2] = state, -1, -1
        for m in range(system.masks):
            able = owed[m]
            for c in range(system.components):
                able &= rows.head[desk.here[c] * system.head + HEAD + m]
            if able != owed[m]:
                end[3] = tail
                return
        for i in range(count):
            event, after = desk.events[i], desk.after[i]
            if rank[after] != rank[origin]:
                continue
            if after == target or (owed[event // MASK_BITS] >> (event % MASK_BITS)) & 1:
                end[1], end[2], end[3] = event, after, tail
                return
            if back[after] < 0:
                back[after] = state
                queue[tail] = after
                tail += 1
    end[0] = -1
