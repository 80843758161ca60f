"""The kernel: breadth-first search over a packed network, in integers only.

All machines of one index (the system, a message, a copy) are one *component*.  Its local states are numbered as they
are met, and each has a row: as bits which events it does not refuse, and where they lead.  An event
can happen where the bits of all components agree, so a state is expanded by a few ANDs and one look-up for each
component that the event moves.  Machines are asked once about each local state, and only where
an event leads that does happen: whatever has a row is part of some state.

A state is the numbers of its local states, packed into words of 63 bits.  Its key is the exclusive or
of a random number for each row, so the key of a successor is that of the state with two numbers exchanged.
States belong to *shards* by their keys: what :func:`expand` finds of one shard it puts into a box for each shard, and
:func:`insert` takes the boxes of one shard.  No two of these calls for different shards write to the same place.

All functions are written so that they mean the same to Python, on lists, and to Numba, on arrays: every
number stays below 2**63, intermediate ones too (compiled code takes it that no product overflows).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ackfsm.explore._foresight import Foresight, foresee, preferred

__all__ = [
    "BASE",
    "EMPTY",
    "EXPANDED",
    "FOUND",
    "HEAD",
    "KEY",
    "MASK_BITS",
    "PLACED",
    "TRANSITIONS",
    "UNKNOWN",
    "WANTED",
    "WORD_BITS",
    "Boxes",
    "Layout",
    "Rows",
    "System",
    "crowded",
    "describe",
    "enter",
    "entered",
    "expand",
    "insert",
    "key_of",
    "laid",
    "mixed",
    "moved",
    "rehash",
    "resolve",
    "widened",
]

WORD_BITS = 63
"""Bits of a state in one word."""

MASK_BITS = 62
"""Events in one word of a mask: the lowest bit of a number is found by its remainder when divided by 67."""

EMPTY = -1

UNKNOWN, WANTED = -1, -2
"""In place of a row: nobody needed it yet, and somebody does."""

PLACED, KEY, BASE, HEAD = 0, 1, 2, 3
"""Places in the head of a row, and where its mask begins."""

EXPANDED, FOUND, TRANSITIONS = 0, 1, 2
"""Places in the tally of a shard: states expanded, states found, transitions."""


class System(NamedTuple):
    """A packed network by its components; nothing in it changes during a search.

    ``widest`` is the most events that move a component, ``head`` the length of the head of a row.

    Component ``c`` takes part in the events ``event[k]``, ``own[c] <= k < own[c + 1]``, with the participants
    ``first[k] <= p < first[k + 1]``: the machine in ``mask[p]`` from bit ``shift[p]`` of word ``word[p]`` of the local
    state goes from state ``s`` to ``table[where[p] + s]``, -1 if it refuses.  Event ``e`` moves the components
    ``mover[i]``, ``moves[e] <= i < moves[e + 1]``.  The machines that watch component ``c`` are ``watched[c] <= j <
    watched[c + 1]``, with marks (bits of anomalies) from ``mark[j]``.  ``everything`` is the mask of all events,
    ``must`` of those that a system at rest waits for.  ``position`` tells the lowest bit of a number below 2**62 by its
    remainder.  ``place[i]`` is that of the event among those that move ``mover[i]``, and ``own_of[i]`` its ``k``;
    component ``c`` has ``places[c]`` of them.  With ``foresight`` a single event is expanded where that is enough.
    """

    components: int
    events: int
    widest: int
    masks: int
    head: int
    local_words: int
    own: Any
    event: Any
    first: Any
    word: Any
    shift: Any
    mask: Any
    where: Any
    table: Any
    moves: Any
    mover: Any
    place: Any
    own_of: Any
    places: Any
    watched: Any
    watch_word: Any
    watch_shift: Any
    watch_mask: Any
    mark: Any
    always: Any
    at_rest: Any
    everything: Any
    must: Any
    position: Any
    foresight: Foresight


class Rows(NamedTuple):
    """What is known of local states, a row each.

    ``local`` has their machines, packed; ``number`` counts them in their component; ``row_of[c * most + number]``
    leads back. ``head`` has for each row ``HEAD`` numbers and the mask of the events that are not refused: the number
    in its place in a state, the key, and where the row begins in ``after``. ``after[base + place[i]]`` is the row
    after the event that moves ``mover[i]``. ``always`` and ``at_rest`` are the anomalies that the local state is.
    ``count`` holds the number of rows of each component, then of all, and last the places taken.
    """

    most: int
    component: Any
    number: Any
    local: Any
    row_of: Any
    head: Any
    after: Any
    always: Any
    at_rest: Any
    count: Any
    slots: Any


class Layout(NamedTuple):
    """Where in a state the number of each component stands.

    ``moves[e * words + w]`` is the first of the components that event ``e`` moves in word ``w``.
    """

    words: int
    word: Any
    shift: Any
    mask: Any
    moves: Any


class Boxes(NamedTuple):
    """Successors on their way from each of ``shards`` to each: room for ``capacity`` of them, ``fill`` are there."""

    shards: int
    capacity: int
    states: Any
    keys: Any
    parents: Any
    fill: Any


def mixed(key: int, number: int) -> int:
    """31 bits in which all of ``key`` (31 bits) and of ``number`` (63 bits) tell."""
    for part in (number & 0x7FFFFFFF, (number >> 31) & 0x7FFFFFFF, number >> 62):
        key = ((key ^ part) * 0x2C1B3C6D + 0x297A2D39) & 0x7FFFFFFF
        key = key ^ (key >> 15)
    return key


def resolve(system: System, layout: Layout, rows: Rows, wanted: Any, room: Any) -> bool:
    """Find where the events lead that are ``wanted``; a local state that is new gets a row.

    ``wanted`` has how many there are, then row and mover of each.  False, and what is left stays, where there may be no
    room for one more row.  ``room`` is for one local state.
    """
    words = system.local_words
    while wanted[0] > 0:
        row, i = wanted[2 * wanted[0] - 1], wanted[2 * wanted[0]]
        component = rows.component[row]
        if crowded(system, rows, component):
            return False
        wanted[0] -= 1
        k = system.own_of[i]
        for w in range(words):
            room[w] = rows.local[row * words + w]
        for p in range(system.first[k], system.first[k + 1]):
            here = (rows.local[row * words + system.word[p]] >> system.shift[p]) & system.mask[p]
            room[system.word[p]] += (system.table[system.where[p] + here] - here) << system.shift[p]
        new = entered(system, layout, rows, component, room)
        rows.after[rows.head[row * system.head + BASE] + system.place[i]] = new
    return True


def crowded(system: System, rows: Rows, component: int) -> bool:
    """Whether there may be no room for one more row of ``component``."""
    total, taken = system.components, system.components + 1
    full = rows.count[component] == rows.most or rows.count[total] == len(rows.component)
    return bool(full or rows.count[taken] + system.widest > len(rows.after))


def entered(system: System, layout: Layout, rows: Rows, component: int, room: Any) -> int:
    """The row of the local state in ``room``; one that is new gets it, if its component is not crowded, else -1."""
    words = system.local_words
    key = component
    for w in range(words):
        key = mixed(key, room[w])
    slot = key & (len(rows.slots) - 1)
    while rows.slots[slot] >= 0:
        other = rows.slots[slot]
        known = rows.component[other] == component
        for w in range(words):
            if rows.local[other * words + w] != room[w]:
                known = False
        if known:
            return int(other)
        slot = (slot + 1) & (len(rows.slots) - 1)
    if crowded(system, rows, component):
        return -1
    new = int(rows.count[system.components])
    rows.slots[slot] = new
    for w in range(words):
        rows.local[new * words + w] = room[w]
    rows.component[new] = component
    describe(system, layout, rows, new)
    return new


def describe(system: System, layout: Layout, rows: Rows, new: int) -> None:
    """Number the row after the last one, and find what its local state refuses and marks."""
    words, component = system.local_words, rows.component[new]
    number, base, head = rows.count[component], rows.count[system.components + 1], new * system.head
    rows.count[component] = number + 1
    rows.count[system.components] = new + 1
    rows.count[system.components + 1] = base + system.places[component]
    rows.number[new] = number
    rows.row_of[component * rows.most + number] = new
    rows.head[head + PLACED] = number << layout.shift[component]
    rows.head[head + KEY] = mixed(1, new) << 31 | mixed(2, new)
    rows.head[head + BASE] = base
    for j in range(system.watched[component], system.watched[component + 1]):
        state = (rows.local[new * words + system.watch_word[j]] >> system.watch_shift[j]) & system.watch_mask[j]
        rows.always[new] |= system.always[system.mark[j] + state]
        rows.at_rest[new] |= system.at_rest[system.mark[j] + state]
    for m in range(system.masks):
        rows.head[head + HEAD + m] = system.everything[m]
    for k in range(system.own[component], system.own[component + 1]):
        for p in range(system.first[k], system.first[k + 1]):
            state = (rows.local[new * words + system.word[p]] >> system.shift[p]) & system.mask[p]
            if system.table[system.where[p] + state] < 0:
                event = system.event[k]
                rows.head[head + HEAD + event // MASK_BITS] -= 1 << (event % MASK_BITS)
                break
    foresee(system.foresight, component, rows.local, new * words, rows.head, head)


def enter(system: System, rows: Rows) -> None:
    """Enter all rows into their empty table."""
    words = system.local_words
    for row in range(rows.count[system.components]):
        key = rows.component[row]
        for w in range(words):
            key = mixed(key, rows.local[row * words + w])
        slot = key & (len(rows.slots) - 1)
        while rows.slots[slot] >= 0:
            slot = (slot + 1) & (len(rows.slots) - 1)
        rows.slots[slot] = row


def expand(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917 - the hot loop, compiled as a whole
    system: System,
    layout: Layout,
    rows: Rows,
    boxes: Boxes,
    shard: int,
    states: Any,
    tally: Any,
    stop: int,
    resting: Any,
    wanted: Any,
    late: Any,
    here: Any,
    child: Any,
) -> None:
    """Put the successors of the states up to ``stop`` of a ``shard`` into its boxes, as far as they are known.

    A state of which a step is not known is left for later, and what is not known of it is ``wanted``: with one shard
    all after it are left too, so that states are found in order; with several it goes to the list ``late`` (how many,
    then which), which comes first the next time.  (Some of its successors may be in the boxes already: they come
    again.)

    ``resting[a]`` becomes the first state that is the anomaly ``a`` at rest, unless it is one already.  ``here`` and
    ``child`` are room for the heads of the rows of a state, and a successor.
    """
    words, components, events, masks = layout.words, system.components, system.events, system.masks
    head, transitions, missing, ordered = tally[0], 0, False, boxes.shards == 1
    waiting, taken, reducing = late[0], 0, system.foresight.phases > 0
    late[0] = 0
    while taken < waiting or head < stop:
        full = late[0] + 2 == len(late)
        for box in range(shard * boxes.shards, (shard + 1) * boxes.shards):
            full = full or boxes.fill[box] + events > boxes.capacity
        if full:
            break
        if taken < waiting:
            taken += 1
            state = late[taken]
        else:
            state = head
            head += 1
        missing = missing and ordered
        base, key, count = state * words, 0, 0
        for c in range(components):
            row = rows.row_of[c * rows.most + ((states[base + layout.word[c]] >> layout.shift[c]) & layout.mask[c])]
            here[c] = row * system.head
            key ^= rows.head[here[c] + KEY]
        quiet = True
        only = -1
        if reducing:
            only = preferred(system.foresight, rows.head, here, 0, components, system.position)
        for m in range(masks):
            able = rows.head[here[0] + HEAD + m]
            for c in range(1, components):
                able &= rows.head[here[c] + HEAD + m]
            if able & system.must[m]:
                quiet = False
            if only >= 0:
                able = 1 << (only % MASK_BITS) if only // MASK_BITS == m else 0
            while able > 0:
                low = able & -able
                able ^= low
                event = m * MASK_BITS + system.position[low % 67]
                after, known = key, 0
                for w in range(words):
                    word = states[base + w]
                    for i in range(layout.moves[event * words + w], layout.moves[event * words + w + 1]):
                        old = here[system.mover[i]]
                        row = rows.after[rows.head[old + BASE] + system.place[i]]
                        known |= row
                        new = max(row, 0) * system.head
                        word += rows.head[new + PLACED] - rows.head[old + PLACED]
                        after ^= rows.head[new + KEY] ^ rows.head[old + KEY]
                    child[w] = word
                if known < 0:
                    missing = True
                    for i in range(system.moves[event], system.moves[event + 1]):
                        old = here[system.mover[i]]
                        at = rows.head[old + BASE] + system.place[i]
                        if rows.after[at] == UNKNOWN and 2 * wanted[0] + 2 < len(wanted):
                            rows.after[at] = WANTED
                            wanted[0] += 1
                            wanted[2 * wanted[0] - 1] = old // system.head
                            wanted[2 * wanted[0]] = i
                if missing:
                    continue
                count += 1
                box = shard * boxes.shards + ((after >> 48) & (boxes.shards - 1))
                put = box * boxes.capacity + boxes.fill[box]
                for w in range(words):
                    boxes.states[put * words + w] = child[w]
                boxes.keys[put] = after
                boxes.parents[put] = state * boxes.shards + shard
                boxes.fill[box] += 1
        if missing:
            if not ordered:
                late[0] += 1
                late[late[0]] = state
            continue
        if ordered:
            tally[0] = head
        transitions += count
        if quiet:
            bits = 0
            for c in range(components):
                bits |= rows.at_rest[here[c] // system.head]
            a = 0
            while bits > 0:
                if bits & 1 and (resting[a] < 0 or state < resting[a]):
                    resting[a] = state
                bits >>= 1
                a += 1
    if not ordered:
        tally[0] = head
    while taken < waiting:
        taken += 1
        late[0] += 1
        late[late[0]] = late[taken]
    tally[2] += transitions


def insert(  # noqa: C901, PLR0912, PLR0913, PLR0917 - the hot loop, compiled as a whole
    system: System,
    layout: Layout,
    rows: Rows,
    boxes: Boxes,
    shard: int,
    states: Any,
    parent: Any,
    slots: Any,
    tally: Any,
    found: Any,
    ahead: int,
) -> int:
    """Take what is in the boxes for this ``shard``: a state that is not known becomes its next one.

    There must be room for all of it.  State ``k`` is ``states[k * words : (k + 1) * words]``; ``slots`` is an open
    hash table of their numbers.  ``found[a]`` becomes the first state that is anomaly ``a``, unless it is one already.
    So many states ``ahead`` are looked at before they are needed, for the memory is slower than the processor.
    """
    words, tail, most, touched = layout.words, tally[1], len(slots) - 1, 0
    for origin in range(boxes.shards):
        box = origin * boxes.shards + shard
        begin = box * boxes.capacity
        end = begin + boxes.fill[box]
        boxes.fill[box] = 0
        for place in range(begin, end):
            if ahead and (place - begin) % ahead == 0:
                for soon in range(place, min(place + ahead, end)):
                    touched ^= slots[boxes.keys[soon] & most]
                for soon in range(place, min(place + ahead, end)):
                    touched ^= states[max(slots[boxes.keys[soon] & most], 0) * words]
            slot = boxes.keys[place] & most
            known = False
            while slots[slot] >= 0:
                other = slots[slot] * words
                known = True
                for w in range(words):
                    if states[other + w] != boxes.states[place * words + w]:
                        known = False
                        break
                if known:
                    break
                slot = (slot + 1) & most
            if known:
                continue
            slots[slot] = tail
            parent[tail] = boxes.parents[place]
            for w in range(words):
                states[tail * words + w] = boxes.states[place * words + w]
            bits = 0
            for c in range(system.components):
                number = (states[tail * words + layout.word[c]] >> layout.shift[c]) & layout.mask[c]
                bits |= rows.always[rows.row_of[c * rows.most + number]]
            a = 0
            while bits > 0:
                if bits & 1 and found[a] < 0:
                    found[a] = tail
                bits >>= 1
                a += 1
            tail += 1
    tally[1] = tail
    return touched


def key_of(system: System, layout: Layout, rows: Rows, states: Any, state: int) -> int:
    """The key of a state."""
    key = 0
    for c in range(system.components):
        number = (states[state * layout.words + layout.word[c]] >> layout.shift[c]) & layout.mask[c]
        key ^= rows.head[rows.row_of[c * rows.most + number] * system.head + KEY]
    return key


def rehash(  # noqa: PLR0913, PLR0917 - as the others
    system: System, layout: Layout, rows: Rows, states: Any, count: int, slots: Any
) -> None:
    """Enter the first ``count`` states into the empty table ``slots``."""
    for state in range(count):
        key = key_of(system, layout, rows, states, state)
        slot = key & (len(slots) - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = state


def widened(  # noqa: PLR0913, PLR0917 - as the others
    components: int, old: Layout, states: Any, count: int, new: Layout, into: Any
) -> None:
    """Write the first ``count`` states, which are laid out as ``old`` says, ``into`` the layout ``new``."""
    for state in range(count):
        for c in range(components):
            number = (states[state * old.words + old.word[c]] >> old.shift[c]) & old.mask[c]
            into[state * new.words + new.word[c]] += number << new.shift[c]


def laid(system: System, layout: Layout, rows: Rows) -> None:
    """Place the numbers of all rows anew for ``layout``."""
    for row in range(rows.count[system.components]):
        rows.head[row * system.head + PLACED] = rows.number[row] << layout.shift[rows.component[row]]


def moved(  # noqa: PLR0913, PLR0917 - as the others
    system: System, layout: Layout, rows: Rows, states: Any, count: int, shards: int, where: Any
) -> None:
    """Tell for the first ``count`` states of the only shard which shard of several each belongs to."""
    for state in range(count):
        key = key_of(system, layout, rows, states, state)
        where[state] = (key >> 48) & (shards - 1)
