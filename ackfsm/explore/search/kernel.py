"""The kernel: breadth-first search over a packed network, in integers only.

All machines of one index (the system, a message, a copy) are one *component*.  Its local states are numbered as they
are met, and each has a row: as bits which events it does not refuse, and where they lead.  An event
can happen where the bits of all components agree, so a state is expanded by a few ANDs and one look-up for each
component that the event moves.  Machines are asked once about each local state, and only where
an event leads that does happen: whatever has a row is part of some state.

A state is the numbers of its local states, packed into words of 63 bits.  Its key is the exclusive or
of a random number for each local state, so the key of a successor is that of the state with two numbers exchanged.
States belong to *shards* by their keys: what :func:`expand` finds of one shard it puts into a box for each shard, and
:func:`insert` takes the boxes of one shard.  No two of these calls for different shards write to the same place.

All functions are written so that they mean the same to Python, on lists, and to Numba, on arrays: every
number stays below 2**63, intermediate ones too (compiled code takes it that no product overflows).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ackfsm.explore.search.kernel_ample import Foresight, foresee, preferred

__all__ = [
    "ALWAYS",
    "BASE",
    "EMPTY",
    "EVENT_OF_PAIR",
    "EXPANDED",
    "FOUND",
    "HEAD",
    "KEY",
    "MASK_BITS",
    "SHARD_SHIFT",
    "TRANSITIONS",
    "UNKNOWN",
    "WANTED",
    "WORD_BITS",
    "Boxes",
    "Desk",
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
    "noted",
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

KEY, BASE, ALWAYS, HEAD = 0, 1, 2, 3
"""Places in the head of a row, and where its mask begins."""

SHARD_SHIFT = 48
"""From this bit on a key tells the shard."""

PAIR_BITS = 16
EVENT_OF_PAIR = (1 << PAIR_BITS) - 1
"""Bits for an event in a pair, and their mask."""

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
    ``must`` of those that a system at rest waits for; from ``worth[e * masks]`` that of those to take after event
    ``e``, last of those to take in the first state.  ``position`` tells the lowest bit of a number below 2**62 by its
    remainder.  ``place[i]`` is that of the event among those that move ``mover[i]``, and ``own_of[i]`` its ``k``;
    ``own_place[k]`` is that place again, ``EMPTY`` if the event never moves the component.  With ``foresight`` a single
    event is expanded where that is enough.
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
    own_place: Any
    watched: Any
    watch_word: Any
    watch_shift: Any
    watch_mask: Any
    mark: Any
    always: Any
    at_rest: Any
    everything: Any
    must: Any
    worth: Any
    position: Any
    foresight: Foresight


class Rows(NamedTuple):
    """What is known of local states, a row each.

    ``local`` has their machines, packed; ``number`` counts them in their component; ``row_of[c * most + number]``
    leads back, and ``placed`` has the number in its place in a state.  ``head`` has for each row ``HEAD`` numbers and
    the mask of the events that are not refused: the key, where the row begins in ``after``, and the anomalies that the
    local state is.  ``at_rest`` are those that it is at rest.  What is not refused and moves the component has a
    place: ``after[base + nth]`` with ``nth[row * widest + place[i]]`` is the row after the event that moves
    ``mover[i]``.  From ``(base + nth) * (words + 1)`` ``step`` has the exclusive or of both keys, ``UNKNOWN`` if that
    row is not known, and what the step adds to each word of the state.  ``count`` holds the number of rows of each
    component, then of all, and last the places taken.
    """

    most: int
    component: Any
    number: Any
    local: Any
    row_of: Any
    placed: Any
    head: Any
    nth: Any
    after: Any
    step: Any
    at_rest: Any
    count: Any
    slots: Any


class Layout(NamedTuple):
    """Where in a state the number of each component stands."""

    words: int
    word: Any
    shift: Any
    mask: Any


class Boxes(NamedTuple):
    """Successors on their way from each of ``shards`` to each: room for ``capacity`` of them, ``fill`` are there."""

    shards: int
    capacity: int
    states: Any
    keys: Any
    parents: Any
    by: Any
    fill: Any


class Desk(NamedTuple):
    """Room to expand a block of states in.

    Of each state: its number in ``state``, in ``row``, ``base`` and ``nth`` where the rows of its components begin in
    ``head``, ``step`` and ``nth``, its ``key``, in ``bits`` the anomalies that it is, in ``able`` the mask of what can
    happen in it, how many ``steps`` that is, and whether one of them is not known, so that it is ``late``.  ``pair``
    has the place of a state in the block and an event of it, ``after`` and ``child`` the key and the state that this
    leads to.  ``order`` has the pairs by how many components they move, ``fill`` the ends of those that move as many.
    ``local`` is room for one local state.
    """

    state: Any
    row: Any
    base: Any
    nth: Any
    key: Any
    bits: Any
    able: Any
    late: Any
    steps: Any
    pair: Any
    after: Any
    child: Any
    order: Any
    fill: Any
    local: Any


def mixed(key: int, number: int) -> int:
    """31 bits in which all of ``key`` (31 bits) and of ``number`` (63 bits) tell."""
    for part in (number & 0x7FFFFFFF, (number >> 31) & 0x7FFFFFFF, number >> 62):
        key = ((key ^ part) * 0x2C1B3C6D + 0x297A2D39) & 0x7FFFFFFF
        key = key ^ (key >> 15)
    return key


def resolve(system: System, layout: Layout, rows: Rows, wanted: Any, local: Any) -> bool:
    """Find where the events lead that are ``wanted``; a local state that is new gets a row.

    ``wanted`` has how many there are, then row and mover of each.  False, and what is left stays, where there may be no
    room for one more row.  ``local`` is room for one local state.
    """
    while wanted[0] > 0:
        if not resolved(system, layout, rows, wanted[2 * wanted[0] - 1], wanted[2 * wanted[0]], local):
            return False
        wanted[0] -= 1
    return True


def resolved(  # noqa: PLR0913, PLR0917 - a compiled function is told everything
    system: System, layout: Layout, rows: Rows, row: int, i: int, local: Any
) -> bool:
    """Find where an event that moves ``mover[i]`` leads from ``row``; false where there may be no room for one more."""
    component, k = rows.component[row], system.own_of[i]
    if crowded(system, layout, rows, component):
        return False
    for w in range(system.local_words):
        local[w] = rows.local[row * system.local_words + w]
    for p in range(system.first[k], system.first[k + 1]):
        here = (rows.local[row * system.local_words + system.word[p]] >> system.shift[p]) & system.mask[p]
        local[system.word[p]] += (system.table[system.where[p] + here] - here) << system.shift[p]
    at = rows.head[row * system.head + BASE] + rows.nth[row * system.widest + system.place[i]]
    rows.after[at] = entered(system, layout, rows, component, local)
    describe_step(system, layout, rows, row, at)
    return True


def describe_step(system: System, layout: Layout, rows: Rows, row: int, at: int) -> None:
    """Write what it adds to a state to go from ``row`` to the row at place ``at``."""
    new, step = rows.after[at], at * (layout.words + 1)
    rows.step[step] = rows.head[new * system.head + KEY] ^ rows.head[row * system.head + KEY]
    for w in range(layout.words):
        rows.step[1 + step + w] = 0
    rows.step[1 + step + layout.word[rows.component[row]]] = rows.placed[new] - rows.placed[row]


def crowded(system: System, layout: Layout, rows: Rows, component: int) -> bool:
    """Whether there may be no room for one more row of ``component``, or no bits for its number."""
    total, taken = system.components, system.components + 1
    full = rows.count[component] == rows.most or rows.count[total] == len(rows.component)
    full = full or rows.count[component] > layout.mask[component]
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
    if crowded(system, layout, rows, component):
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
    rows.number[new] = number
    rows.row_of[component * rows.most + number] = new
    rows.placed[new] = number << layout.shift[component]
    high, low = mixed(1, component), mixed(2, component)
    for w in range(words):
        high, low = mixed(high, rows.local[new * words + w]), mixed(low, rows.local[new * words + w])
    rows.head[head + KEY] = high << 31 | low
    rows.head[head + BASE] = base
    for j in range(system.watched[component], system.watched[component + 1]):
        state = (rows.local[new * words + system.watch_word[j]] >> system.watch_shift[j]) & system.watch_mask[j]
        rows.head[head + ALWAYS] |= system.always[system.mark[j] + state]
        rows.at_rest[new] |= system.at_rest[system.mark[j] + state]
    for m in range(system.masks):
        rows.head[head + HEAD + m] = system.everything[m]
    moves = 0
    for k in range(system.own[component], system.own[component + 1]):
        refused = False
        for p in range(system.first[k], system.first[k + 1]):
            state = (rows.local[new * words + system.word[p]] >> system.shift[p]) & system.mask[p]
            if system.table[system.where[p] + state] < 0:
                event = system.event[k]
                rows.head[head + HEAD + event // MASK_BITS] -= 1 << (event % MASK_BITS)
                refused = True
                break
        if not refused and system.own_place[k] >= 0:
            rows.nth[new * system.widest + system.own_place[k]] = moves
            moves += 1
    rows.count[system.components + 1] = base + moves
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


def expand(  # noqa: PLR0913, PLR0917 - a compiled function is told everything
    system: System,
    layout: Layout,
    rows: Rows,
    boxes: Boxes,
    desk: Desk,
    shard: int,
    states: Any,
    by: Any,
    tally: Any,
    stop: int,
    found: Any,
    wanted: Any,
    late: Any,
) -> None:
    """Put the successors of the states up to ``stop`` of a ``shard`` into its boxes, as far as there is room.

    A block of states at a time is looked up, its steps are listed, and taken in groups of one kind each, so
    that neither memory nor branches are waited for.  With one shard a step that is not known is found out at once;
    where there is no room for it, it is ``wanted``, and the block and all after it are left.  With several, which
    share their rows, every such step is wanted; the state goes to the list ``late`` (how many, then which), which
    comes first the next time.

    The last step to a state was the event ``by``; what is not ``worth`` it after that is counted, not taken.
    ``found[a]`` becomes the first state that is the anomaly ``a``, unless it is one already.
    """
    ordered = boxes.shards == 1
    head, waiting, taken = tally[EXPANDED], late[0], 0
    late[0] = 0
    full = False
    while not full and (taken < waiting or head < stop):
        most, room = len(desk.state), len(late) - 1 - late[0] - (waiting - taken)
        for box in range(shard * boxes.shards, (shard + 1) * boxes.shards):
            most = min(most, (boxes.capacity - boxes.fill[box]) // max(1, system.events))
        size = 0
        while size < most and taken < waiting:
            taken += 1
            desk.state[size] = late[taken]
            size += 1
        while size < most and head < stop and room > 0:
            desk.state[size] = head
            head += 1
            size += 1
            room -= 1
        look_up(system, layout, rows, desk, states, size)
        pairs = listed(system, rows, desk, by, size, found)
        complete = steps(system, layout, rows, desk, states, wanted, boxes.shards)
        full = size == 0 or (ordered and not complete)
        if ordered and not complete:
            head = desk.state[0]
        else:
            put_away(layout, boxes, desk, shard, pairs)
            for n in range(size):
                if desk.late[n]:
                    late[0] += 1
                    late[late[0]] = desk.state[n]
                else:
                    tally[TRANSITIONS] += desk.steps[n]
    tally[EXPANDED] = head
    while taken < waiting:
        taken += 1
        late[0] += 1
        late[late[0]] = late[taken]


def look_up(  # noqa: PLR0913, PLR0917 - as the others
    system: System, layout: Layout, rows: Rows, desk: Desk, states: Any, size: int
) -> None:
    """Look up the rows of the states of a block, and what they say together."""
    components, masks, stride = system.components, system.masks, layout.words + 1
    for n in range(size):
        base, key, bits, first = desk.state[n] * layout.words, 0, 0, n * components
        for m in range(masks):
            desk.able[n * masks + m] = system.everything[m]
        for c in range(components):
            number = (states[base + layout.word[c]] >> layout.shift[c]) & layout.mask[c]
            row = rows.row_of[c * rows.most + number]
            desk.nth[first + c] = row * system.widest
            row *= system.head
            desk.row[first + c] = row
            desk.base[first + c] = rows.head[row + BASE] * stride
            key ^= rows.head[row + KEY]
            bits |= rows.head[row + ALWAYS]
            for m in range(masks):
                desk.able[n * masks + m] &= rows.head[row + HEAD + m]
        desk.key[n] = key
        desk.bits[n] = bits


def listed(  # noqa: PLR0913, PLR0917 - as the others
    system: System, rows: Rows, desk: Desk, by: Any, size: int, found: Any
) -> int:
    """List the steps of a block that are to be taken, and note which anomalies its states are; how many steps."""
    components, masks, reducing = system.components, system.masks, system.foresight.phases > 0
    pairs, unseen = 0, unfound(found)
    for kind in range(components + 1):
        desk.fill[kind] = 0
    for n in range(size):
        desk.late[n], desk.steps[n] = 0, 0
        busy, bits, only, last = 0, desk.bits[n], -1, by[desk.state[n]] * masks
        if reducing:
            only = preferred(system.foresight, rows.head, desk.row, n * components, components, system.position)
        for m in range(masks):
            able = desk.able[n * masks + m]
            busy |= able & system.must[m]
            if only >= 0:
                able = 1 << (only % MASK_BITS) if only // MASK_BITS == m else 0
            desk.steps[n] += counted(able)
            able &= system.worth[last + m]
            while able > 0:
                low = able & -able
                able ^= low
                event = m * MASK_BITS + system.position[low % 67]
                desk.pair[pairs] = (n << PAIR_BITS) + event
                desk.fill[system.moves[event + 1] - system.moves[event]] += 1
                pairs += 1
        if busy == 0:
            for c in range(components):
                bits |= rows.at_rest[desk.row[n * components + c] // system.head]
        if bits & unseen:
            unseen ^= bits & unseen
            first_of(bits, desk.state[n], found)
    sort(system, desk, pairs)
    return pairs


def sort(system: System, desk: Desk, pairs: int) -> None:
    """Order the pairs by how many components they move; ``fill``, which has how many there are, tells the ends then."""
    begin = 0
    for kind in range(system.components + 1):
        count = desk.fill[kind]
        desk.fill[kind] = begin
        begin += count
    for q in range(pairs):
        event = desk.pair[q] & EVENT_OF_PAIR
        kind = system.moves[event + 1] - system.moves[event]
        desk.order[desk.fill[kind]] = q
        desk.fill[kind] += 1


def steps(  # noqa: PLR0913, PLR0917 - as the others
    system: System, layout: Layout, rows: Rows, desk: Desk, states: Any, wanted: Any, shards: int
) -> bool:
    """Take the steps of a block, kind by kind; whether all of them are known."""
    words, components, stride, complete = layout.words, system.components, layout.words + 1, True
    place = 0
    for size in range(components + 1):
        while place < desk.fill[size]:
            q = desk.order[place]
            n = desk.pair[q] >> PAIR_BITS
            begin = system.moves[desk.pair[q] & EVENT_OF_PAIR]
            first, after, known, word = n * components, desk.key[n], 0, states[desk.state[n] * words]
            for i in range(begin, begin + size):
                moving = first + system.mover[i]
                at = desk.base[moving] + rows.nth[desk.nth[moving] + system.place[i]] * stride
                after ^= rows.step[at]
                known |= rows.step[at]
                word += rows.step[at + 1]
            if known < 0:
                if shards == 1 and find_out(system, layout, rows, desk, first, begin, begin + size):
                    continue
                want(system, layout, rows, desk, first, begin, begin + size, wanted)
                desk.late[n] = 1
                complete = False
            place += 1
            desk.after[q] = after
            desk.child[q * words] = word
            for w in range(1, words):
                word = states[desk.state[n] * words + w]
                for i in range(begin, begin + size):
                    moving = first + system.mover[i]
                    at = desk.base[moving] + rows.nth[desk.nth[moving] + system.place[i]] * stride
                    word += rows.step[at + 1 + w]
                desk.child[q * words + w] = word
    return complete


def find_out(  # noqa: PLR0913, PLR0917 - as the others
    system: System, layout: Layout, rows: Rows, desk: Desk, first: int, begin: int, end: int
) -> bool:
    """Find out where an event leads the rows from ``first`` on the desk; false where there may be no room."""
    for i in range(begin, end):
        moving = first + system.mover[i]
        at = desk.base[moving] // (layout.words + 1) + rows.nth[desk.nth[moving] + system.place[i]]
        row = desk.row[moving] // system.head
        if rows.after[at] < 0 and not resolved(system, layout, rows, row, i, desk.local):
            return False
    return True


def want(  # noqa: PLR0913, PLR0917 - as the others
    system: System, layout: Layout, rows: Rows, desk: Desk, first: int, begin: int, end: int, wanted: Any
) -> None:
    """Want to know where an event leads the rows from ``first`` on the desk; what does not fit is asked again."""
    for i in range(begin, end):
        moving = first + system.mover[i]
        at = desk.base[moving] // (layout.words + 1) + rows.nth[desk.nth[moving] + system.place[i]]
        if rows.after[at] == UNKNOWN and 2 * wanted[0] + 2 < len(wanted):
            rows.after[at] = WANTED
            wanted[0] += 1
            wanted[2 * wanted[0] - 1] = desk.row[moving] // system.head
            wanted[2 * wanted[0]] = i


def put_away(layout: Layout, boxes: Boxes, desk: Desk, shard: int, pairs: int) -> None:
    """Put where the steps of a block lead into the boxes of ``shard``, but for states that are late."""
    words, shards = layout.words, boxes.shards
    for q in range(pairs):
        n = desk.pair[q] >> PAIR_BITS
        if desk.late[n]:
            continue
        box = shard * shards + ((desk.after[q] >> SHARD_SHIFT) & (shards - 1))
        put = box * boxes.capacity + boxes.fill[box]
        boxes.fill[box] += 1
        boxes.keys[put] = desk.after[q]
        boxes.parents[put] = desk.state[n] * shards + shard
        boxes.by[put] = desk.pair[q] & EVENT_OF_PAIR
        for w in range(words):
            boxes.states[put * words + w] = desk.child[q * words + w]


def counted(bits: int) -> int:
    """How many of 62 bits are set."""
    pairs = bits - ((bits >> 1) & 0x1555555555555555)
    fours = (pairs & 0x3333333333333333) + ((pairs >> 2) & 0x3333333333333333)
    eights = (fours + (fours >> 4)) & 0x0F0F0F0F0F0F0F0F
    eights += eights >> 8
    eights += eights >> 16
    return int((eights + (eights >> 32)) & 0x7F)


def unfound(found: Any) -> int:
    """The anomalies of which there is no state yet, as bits."""
    bits = 0
    for a in range(len(found)):
        if found[a] < 0:
            bits |= 1 << a
    return bits


def first_of(bits: int, state: int, found: Any) -> None:
    """``state`` is the first of the anomalies in ``bits`` that have none."""
    for a in range(len(found)):
        if (bits >> a) & 1 and found[a] < 0:
            found[a] = state


def noted(  # noqa: PLR0913, PLR0917 - as the others
    system: System, layout: Layout, rows: Rows, states: Any, begin: int, end: int, found: Any
) -> None:
    """Look for anomalies among the states from ``begin`` to ``end``, which nobody expanded."""
    for state in range(begin, end):
        bits = 0
        for c in range(system.components):
            number = (states[state * layout.words + layout.word[c]] >> layout.shift[c]) & layout.mask[c]
            bits |= rows.head[rows.row_of[c * rows.most + number] * system.head + ALWAYS]
        first_of(bits, state, found)


def insert(  # noqa: PLR0913, PLR0917 - the hot loop, compiled as a whole
    layout: Layout, boxes: Boxes, shard: int, states: Any, parent: Any, by: Any, slots: Any, tally: Any, ahead: int
) -> int:
    """Take what is in the boxes for this ``shard``: a state that is not known becomes its next one.

    There must be room for all of it.  State ``k`` is ``states[k * words : (k + 1) * words]``; ``slots`` is an open
    hash table of states, ``EMPTY`` where there is none.  So many places ``ahead`` are looked at before they
    are needed, for the memory is slower than the processor.
    """
    words, tail, most, touched = layout.words, tally[FOUND], len(slots) // layout.words - 1, 0
    for origin in range(boxes.shards):
        box = origin * boxes.shards + shard
        begin = box * boxes.capacity
        end = begin + boxes.fill[box]
        boxes.fill[box] = 0
        for place in range(begin, end):
            if ahead and (place - begin) % ahead == 0:
                for soon in range(place, min(place + ahead, end)):
                    touched ^= slots[(boxes.keys[soon] & most) * words]
            slot = boxes.keys[place] & most
            while slots[slot * words] >= 0:
                differs = 0
                for w in range(words):
                    differs |= slots[slot * words + w] ^ boxes.states[place * words + w]
                if differs == 0:
                    break
                slot = (slot + 1) & most
            if slots[slot * words] < 0:
                parent[tail] = boxes.parents[place]
                by[tail] = boxes.by[place]
                for w in range(words):
                    slots[slot * words + w] = boxes.states[place * words + w]
                    states[tail * words + w] = boxes.states[place * words + w]
                tail += 1
    tally[FOUND] = tail
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
    words, most = layout.words, len(slots) // layout.words - 1
    for state in range(count):
        slot = key_of(system, layout, rows, states, state) & most
        while slots[slot * words] >= 0:
            slot = (slot + 1) & most
        for w in range(words):
            slots[slot * words + w] = states[state * words + w]


def widened(  # noqa: PLR0913, PLR0917 - as the others
    components: int, old: Layout, states: Any, count: int, new: Layout, into: Any
) -> None:
    """Write the first ``count`` states, which are laid out as ``old`` says, ``into`` the layout ``new``."""
    for state in range(count):
        for c in range(components):
            number = (states[state * old.words + old.word[c]] >> old.shift[c]) & old.mask[c]
            into[state * new.words + new.word[c]] += number << new.shift[c]


def laid(system: System, layout: Layout, rows: Rows) -> None:
    """Place the numbers of all rows anew for ``layout``, and what leads from each to others."""
    for row in range(rows.count[system.components]):
        rows.placed[row] = rows.number[row] << layout.shift[rows.component[row]]
    for row in range(rows.count[system.components]):
        last = row + 1 == rows.count[system.components]
        end = rows.count[system.components + 1] if last else rows.head[(row + 1) * system.head + BASE]
        for at in range(rows.head[row * system.head + BASE], end):
            if rows.after[at] >= 0:
                describe_step(system, layout, rows, row, at)


def moved(  # noqa: PLR0913, PLR0917 - as the others
    system: System, layout: Layout, rows: Rows, states: Any, count: int, shards: int, where: Any
) -> None:
    """Tell for the first ``count`` states of the only shard which shard of several each belongs to."""
    for state in range(count):
        key = key_of(system, layout, rows, states, state)
        where[state] = (key >> SHARD_SHIFT) & (shards - 1)
