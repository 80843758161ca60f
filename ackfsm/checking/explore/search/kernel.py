"""The kernel: breadth-first search over an encoded network, in integers only.

All machines of one index (the system, a message, a copy) are one *component*.  Its local states are interned: numbered
in the order in which they are found (Spin: COLLAPSE compression).  Each has a mask of the events that it does not
refuse, and their successors.  An event is enabled where the masks of all components agree, so a state is expanded by a
few ANDs and one look-up for each component that the event moves.  The tables are asked once for each local state and
event, and only for events that do happen, so every interned local state is part of some reachable state.

A state is the numbers of its local states, packed into words of 63 bits.  The states stand in one queue, in the order
of a search with one processor, however many there are: :func:`expand` puts the successors of one part of the queue
into the buffer of a *lane*; :func:`insert_visited` looks up those of one *shard* of the hash table, by their hashes, in
the order of lanes; :func:`append_new` appends the new ones of one lane.  Calls for different lanes and for different
shards write to different memory.

All functions mean the same to Python, on lists, and to Numba, on arrays: every number stays below 2**63, intermediate
ones too (compiled code assumes that no product overflows).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ackfsm.checking.explore.search.kernel_ample import AmpleSets, ample_event, write_future_mask

__all__ = [
    "ALWAYS",
    "BASE",
    "EMPTY",
    "EVENT_OF_PAIR",
    "HEAD",
    "LINE",
    "MASK_BITS",
    "SHARD_SHIFT",
    "UNKNOWN",
    "WORD_BITS",
    "EncodedSystem",
    "Layout",
    "LocalStates",
    "Scratch",
    "SuccessorBuffers",
    "add_local_state",
    "append_new",
    "count_in_shards",
    "expand",
    "expand_waiting",
    "hash_mix",
    "hash_of_state",
    "insert_visited",
    "intern",
    "is_full",
    "rehash_local_states",
    "rehash_visited",
    "relayout_deltas",
    "repack",
    "scan_unexpanded",
    "slot_of_number",
]

WORD_BITS = 63
"""Bits of a state in one word."""

MASK_BITS = 62
"""Events in one word of a mask: the lowest bit of a number is found by its remainder when divided by 67."""

EMPTY = -1

UNKNOWN = -1
"""In place of a successor that was not needed yet."""

BASE, ALWAYS, HEAD = 0, 1, 2
"""Offsets in the head of a local state, and where its mask begins."""

SHARD_SHIFT = 48
"""The shard of a state is in the bits of its hash from this one on."""

PAIR_BITS = 16
EVENT_OF_PAIR = (1 << PAIR_BITS) - 1
"""Bits for an event in a pair, and their mask."""


LINE = 16
"""So many numbers a lane has for one: processors that write to one line of the cache wait for each other."""


class EncodedSystem(NamedTuple):
    """An encoded network by its components; constant during a search.

    ``widest`` is the most events that move a component, ``head`` the length of the head of a local state.

    Component ``c`` takes part in the events ``event[k]``, ``own[c] <= k < own[c + 1]``, with the participants
    ``first[k] <= p < first[k + 1]``: the machine in ``mask[p]`` from bit ``shift[p]`` of word ``word[p]`` of the local
    state goes from state ``s`` to ``table[offset[p] + s]``, -1 if it refuses.  Event ``e`` moves the components
    ``mover[i]``, ``moves[e] <= i < moves[e + 1]``.  ``ordinal[i]`` is the position of the event among those that move
    ``mover[i]``, ``own_of[i]`` its ``k``, and ``own_ordinal[k]`` again that position, ``EMPTY`` if the event never
    moves the component.  The observers in component ``c`` are ``observed[c] <= j < observed[c + 1]``; the anomalies
    that their states show, as bits, begin at ``mark[j]`` of ``always`` and ``at_rest``.

    ``everything`` is the mask of all events, ``must`` of those that are never enabled in a quiescent state.  The words
    from ``awake[e * masks]`` are the mask of the events outside the sleep set after event ``e``, the last ones those of
    the first state.  ``lowest_bit`` gives the lowest bit of a number below 2**62 by its remainder.  ``ample`` has the
    ample sets of a search with partial-order reduction.
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
    offset: Any
    table: Any
    moves: Any
    mover: Any
    ordinal: Any
    own_of: Any
    own_ordinal: Any
    observed: Any
    observer_word: Any
    observer_shift: Any
    observer_mask: Any
    mark: Any
    always: Any
    at_rest: Any
    everything: Any
    must: Any
    awake: Any
    lowest_bit: Any
    ample: AmpleSets


class LocalStates(NamedTuple):
    """The interned local states, by their ids.

    ``machines`` has the states of their machines, packed; ``number`` counts them within their component, and
    ``id_of[c * most + number]`` leads back; ``shifted`` is the number where it stands in a state.  The head of a local
    state is its ``BASE``, the anomalies that it always shows, and from ``HEAD`` on the mask of the events that it does
    not refuse.  ``at_rest`` are the anomalies that it shows if the state is quiescent.

    For an event that moves ``mover[i]``, ``after[base + nth]`` is the id of the successor; that ``nth`` is
    ``nth[id * widest + ordinal[i]]``.  From ``(base + nth) * (words + 1)`` on ``delta`` has ``UNKNOWN``
    if there is no successor yet, else 0, and what is added to each word of the state.  ``count`` has the
    number of local states of each component, then of all, and last the used length of ``after``.  ``slots`` is the
    hash table of ids.
    """

    most: int
    component: Any
    number: Any
    machines: Any
    id_of: Any
    shifted: Any
    head: Any
    nth: Any
    after: Any
    delta: Any
    at_rest: Any
    count: Any
    slots: Any


class Layout(NamedTuple):
    """The bits of a state that hold the number of each component's local state."""

    words: int
    word: Any
    shift: Any
    mask: Any


class SuccessorBuffers(NamedTuple):
    """Successors found in each lane: ``capacity`` for a lane, ``fill[lane * LINE]`` of it used.

    Of each successor: its ``states`` words, its ``hashes``, its ``parents`` state and ``parent_event``, and whether it
    is ``fresh``, that is new.  They stand in the order of a search with one processor in the pieces
    ``first[k] <= entry < end[k]``, ``lane * pieces <= k < lane * pieces + count[lane * LINE]``; ``degree[k]`` has the
    transitions from the states of a piece.  A piece with a state ``waiting[k] >= 0`` is that of a state with a
    successor that is not known yet; ``late[lane * LINE]`` of them wait.  For shard ``s`` of the hash table,
    ``of_shard[lane * LINE + s]`` has the number of successors, ``new[lane * shards + s]`` that of new ones.
    """

    shards: int
    capacity: int
    pieces: int
    states: Any
    hashes: Any
    parents: Any
    parent_event: Any
    fresh: Any
    fill: Any
    first: Any
    end: Any
    degree: Any
    waiting: Any
    count: Any
    late: Any
    of_shard: Any
    new: Any


class Scratch(NamedTuple):
    """Memory to expand a block of states in.

    Of each state: its number in ``state``; in ``head``, ``base`` and ``nth`` where its local states begin in ``head``,
    ``delta`` and ``nth`` of :class:`LocalStates`; in ``bits`` the anomalies that it shows; in ``enabled`` the mask of
    enabled events, ``degree`` how many; whether it is ``deferred`` since a successor is missing; and the ``piece`` in
    which it waits.  ``pair`` has a state's position in the block and an event, ``child`` the state to which that leads.
    ``order`` has the pairs by how many components they move, ``fill`` where those that move as many end.  ``machines``
    has one local state.
    """

    state: Any
    head: Any
    base: Any
    nth: Any
    bits: Any
    enabled: Any
    deferred: Any
    degree: Any
    piece: Any
    pair: Any
    child: Any
    order: Any
    fill: Any
    machines: Any


def hash_mix(key: int, number: int) -> int:
    """Mix all of ``key`` (31 bits) and of ``number`` (63 bits) into 31 bits."""
    for part in (number & 0x7FFFFFFF, (number >> 31) & 0x7FFFFFFF, number >> 62):
        key = ((key ^ part) * 0x2C1B3C6D + 0x297A2D39) & 0x7FFFFFFF
        key = key ^ (key >> 15)
    return key


def local_successor(  # noqa: PLR0913, PLR0917 - a compiled function gets all arrays
    system: EncodedSystem, layout: Layout, interned: LocalStates, local_id: int, i: int, machines: Any
) -> bool:
    """Compute where an event that moves ``mover[i]`` leads from a local state; false if memory may not suffice."""
    component, k = interned.component[local_id], system.own_of[i]
    if is_full(system, layout, interned, component):
        return False
    for w in range(system.local_words):
        machines[w] = interned.machines[local_id * system.local_words + w]
    for p in range(system.first[k], system.first[k + 1]):
        here = (interned.machines[local_id * system.local_words + system.word[p]] >> system.shift[p]) & system.mask[p]
        machines[system.word[p]] += (system.table[system.offset[p] + here] - here) << system.shift[p]
    at = interned.head[local_id * system.head + BASE] + interned.nth[local_id * system.widest + system.ordinal[i]]
    interned.after[at] = intern(system, layout, interned, component, machines)
    write_delta(layout, interned, local_id, at)
    return True


def write_delta(layout: Layout, interned: LocalStates, local_id: int, at: int) -> None:
    """Write the numbers that are added to a state for the step from ``local_id`` to the successor ``after[at]``."""
    new, delta = interned.after[at], at * (layout.words + 1)
    interned.delta[delta] = 0
    for w in range(layout.words):
        interned.delta[1 + delta + w] = 0
    interned.delta[1 + delta + layout.word[interned.component[local_id]]] = (
        interned.shifted[new] - interned.shifted[local_id]
    )


def is_full(system: EncodedSystem, layout: Layout, interned: LocalStates, component: int) -> bool:
    """Whether there may be no memory for one more local state of ``component``, or no bits for its number."""
    total, taken = system.components, system.components + 1
    full = interned.count[component] == interned.most or interned.count[total] == len(interned.component)
    full = full or interned.count[component] > layout.mask[component]
    return bool(full or interned.count[taken] + system.widest > len(interned.after))


def intern(system: EncodedSystem, layout: Layout, interned: LocalStates, component: int, machines: Any) -> int:
    """The id of the local state ``machines``, a new one if it is not known; -1 if its component is full."""
    words = system.local_words
    key = component
    for w in range(words):
        key = hash_mix(key, machines[w])
    slot = key & (len(interned.slots) - 1)
    while interned.slots[slot] >= 0:
        other = interned.slots[slot]
        known = interned.component[other] == component
        for w in range(words):
            if interned.machines[other * words + w] != machines[w]:
                known = False
        if known:
            return int(other)
        slot = (slot + 1) & (len(interned.slots) - 1)
    if is_full(system, layout, interned, component):
        return -1
    new = int(interned.count[system.components])
    interned.slots[slot] = new
    for w in range(words):
        interned.machines[new * words + w] = machines[w]
    interned.component[new] = component
    add_local_state(system, layout, interned, new)
    return new


def add_local_state(system: EncodedSystem, layout: Layout, interned: LocalStates, new: int) -> None:
    """Number the local state ``new``, the last one, and write the events that it refuses and its anomalies."""
    words, component = system.local_words, interned.component[new]
    number, base, head = interned.count[component], interned.count[system.components + 1], new * system.head
    interned.count[component] = number + 1
    interned.count[system.components] = new + 1
    interned.number[new] = number
    interned.id_of[component * interned.most + number] = new
    interned.shifted[new] = number << layout.shift[component]
    interned.head[head + BASE] = base
    for j in range(system.observed[component], system.observed[component + 1]):
        word = interned.machines[new * words + system.observer_word[j]]
        state = (word >> system.observer_shift[j]) & system.observer_mask[j]
        interned.head[head + ALWAYS] |= system.always[system.mark[j] + state]
        interned.at_rest[new] |= system.at_rest[system.mark[j] + state]
    for m in range(system.masks):
        interned.head[head + HEAD + m] = system.everything[m]
    moves = 0
    for k in range(system.own[component], system.own[component + 1]):
        refused = False
        for p in range(system.first[k], system.first[k + 1]):
            state = (interned.machines[new * words + system.word[p]] >> system.shift[p]) & system.mask[p]
            if system.table[system.offset[p] + state] < 0:
                event = system.event[k]
                interned.head[head + HEAD + event // MASK_BITS] -= 1 << (event % MASK_BITS)
                refused = True
                break
        if not refused and system.own_ordinal[k] >= 0:
            interned.nth[new * system.widest + system.own_ordinal[k]] = moves
            moves += 1
    interned.count[system.components + 1] = base + moves
    write_future_mask(system.ample, component, interned.machines, new * words, interned.head, head)


def rehash_local_states(system: EncodedSystem, interned: LocalStates) -> None:
    """Insert all local states into their empty hash table."""
    words = system.local_words
    for local_id in range(interned.count[system.components]):
        key = interned.component[local_id]
        for w in range(words):
            key = hash_mix(key, interned.machines[local_id * words + w])
        slot = key & (len(interned.slots) - 1)
        while interned.slots[slot] >= 0:
            slot = (slot + 1) & (len(interned.slots) - 1)
        interned.slots[slot] = local_id


def expand(  # noqa: PLR0913, PLR0917 - a compiled function gets all arrays
    system: EncodedSystem,
    layout: Layout,
    interned: LocalStates,
    buffers: SuccessorBuffers,
    scratch: Scratch,
    lane: int,
    states: Any,
    parent_event: Any,
    begin: int,
    stop: int,
    alone: bool,  # noqa: FBT001 - as all else
    violations: Any,
) -> int:
    """Put the successors of the states from ``begin`` to ``stop`` into a lane; the first state that had no room.

    A block of states at a time is looked up, its enabled events are listed, and successors are computed in groups of
    one kind each, so that neither memory nor branches are waited for.  If no other lane is at work, the lane being
    ``alone``, a missing successor is computed at once; if memory may not suffice for it, the block and all after it are
    left.  Else the lanes share their local states, and the state waits for :func:`expand_waiting`.

    ``parent_event`` has the event by which each state was found; events in the sleep set after it are counted, not
    taken.  ``violations[a]`` becomes the first state that shows the anomaly ``a``, unless it has one already.
    """
    buffers.fill[lane * LINE], buffers.count[lane * LINE], buffers.late[lane * LINE] = 0, 0, 0
    for shard in range(buffers.shards):
        buffers.of_shard[lane * LINE + shard] = 0
    while begin < stop:
        room = buffers.capacity - buffers.fill[lane * LINE] - buffers.late[lane * LINE] * system.events
        size = min(len(scratch.state), stop - begin, room // max(1, system.events))
        if size <= 0:
            break
        for n in range(size):
            scratch.state[n] = begin + n
        look_up_block(system, layout, interned, scratch, states, size)
        pairs = enumerate_enabled(system, interned, scratch, parent_event, size, violations)
        complete = compute_successors(system, layout, interned, scratch, states, alone)
        if alone and not complete:
            break
        pair = 0
        for n in range(size):
            entry = buffers.fill[lane * LINE]
            if scratch.deferred[n]:
                add_piece(buffers, lane, entry, entry, scratch.state[n])
                buffers.late[lane * LINE] += 1
                while pair < pairs and scratch.pair[pair] >> PAIR_BITS == n:
                    pair += 1
            else:
                pair = emit(layout, buffers, scratch, lane, n, pair, pairs)
                last = lane * buffers.pieces + buffers.count[lane * LINE] - 1
                if buffers.count[lane * LINE] == 0 or buffers.waiting[last] >= 0:
                    last = add_piece(buffers, lane, entry, entry, EMPTY)
                buffers.end[last] = buffers.fill[lane * LINE]
                buffers.degree[last] += scratch.degree[n]
        begin += size
    return begin


def add_piece(buffers: SuccessorBuffers, lane: int, first: int, end: int, waiting: int) -> int:
    """Append a piece to those of a lane; where it is."""
    piece = lane * buffers.pieces + buffers.count[lane * LINE]
    buffers.count[lane * LINE] += 1
    buffers.first[piece], buffers.end[piece] = first, end
    buffers.degree[piece], buffers.waiting[piece] = 0, waiting
    return int(piece)


def expand_waiting(  # noqa: PLR0913, PLR0917 - as expand
    system: EncodedSystem,
    layout: Layout,
    interned: LocalStates,
    buffers: SuccessorBuffers,
    scratch: Scratch,
    lane: int,
    states: Any,
    parent_event: Any,
    violations: Any,
) -> int:
    """Put the successors of the states that wait in a lane into their pieces, with no other lane at work.

    If memory may not suffice for a successor, the lane ends before the state that needs it, which is returned; else
    ``EMPTY``.
    """
    piece, end = lane * buffers.pieces, lane * buffers.pieces + buffers.count[lane * LINE]
    while buffers.late[lane * LINE] > 0:
        size = 0
        while piece < end and size < len(scratch.state):
            if buffers.waiting[piece] >= 0:
                scratch.state[size], scratch.piece[size] = buffers.waiting[piece], piece
                size += 1
            piece += 1
        look_up_block(system, layout, interned, scratch, states, size)
        pairs = enumerate_enabled(system, interned, scratch, parent_event, size, violations)
        if not compute_successors(system, layout, interned, scratch, states, True):  # noqa: FBT003 - alone
            buffers.count[lane * LINE] = scratch.piece[0] - lane * buffers.pieces
            return int(scratch.state[0])
        pair = 0
        for n in range(size):
            here = scratch.piece[n]
            buffers.first[here] = buffers.fill[lane * LINE]
            pair = emit(layout, buffers, scratch, lane, n, pair, pairs)
            buffers.end[here], buffers.degree[here] = buffers.fill[lane * LINE], scratch.degree[n]
            buffers.waiting[here] = EMPTY
        buffers.late[lane * LINE] -= size
    return EMPTY


def look_up_block(  # noqa: PLR0913, PLR0917 - as the others
    system: EncodedSystem, layout: Layout, interned: LocalStates, scratch: Scratch, states: Any, size: int
) -> None:
    """Look up the local states of the states of a block, and combine their masks and anomalies."""
    components, masks, stride = system.components, system.masks, layout.words + 1
    for n in range(size):
        base, bits, first = scratch.state[n] * layout.words, 0, n * components
        for m in range(masks):
            scratch.enabled[n * masks + m] = system.everything[m]
        for c in range(components):
            number = (states[base + layout.word[c]] >> layout.shift[c]) & layout.mask[c]
            local_id = interned.id_of[c * interned.most + number]
            scratch.nth[first + c] = local_id * system.widest
            head = local_id * system.head
            scratch.head[first + c] = head
            scratch.base[first + c] = interned.head[head + BASE] * stride
            bits |= interned.head[head + ALWAYS]
            for m in range(masks):
                scratch.enabled[n * masks + m] &= interned.head[head + HEAD + m]
        scratch.bits[n] = bits


def enumerate_enabled(  # noqa: PLR0913, PLR0917 - as the others
    system: EncodedSystem, interned: LocalStates, scratch: Scratch, parent_event: Any, size: int, violations: Any
) -> int:
    """List the events of a block that are to be taken, and record the anomalies of its states; how many events."""
    components, masks, reducing = system.components, system.masks, system.ample.phases > 0
    pairs, unseen = 0, unwitnessed_mask(violations)
    for kind in range(components + 1):
        scratch.fill[kind] = 0
    for n in range(size):
        scratch.deferred[n], scratch.degree[n] = 0, 0
        busy, bits, only, last = 0, scratch.bits[n], -1, parent_event[scratch.state[n]] * masks
        if reducing:
            only = ample_event(system.ample, interned.head, scratch.head, n * components, components, system.lowest_bit)
        for m in range(masks):
            enabled = scratch.enabled[n * masks + m]
            busy |= enabled & system.must[m]
            if only >= 0:
                enabled = 1 << (only % MASK_BITS) if only // MASK_BITS == m else 0
            scratch.degree[n] += popcount(enabled)
            enabled &= system.awake[last + m]
            while enabled > 0:
                low = enabled & -enabled
                enabled ^= low
                event = m * MASK_BITS + system.lowest_bit[low % 67]
                scratch.pair[pairs] = (n << PAIR_BITS) + event
                scratch.fill[system.moves[event + 1] - system.moves[event]] += 1
                pairs += 1
        if busy == 0:
            for c in range(components):
                bits |= interned.at_rest[scratch.head[n * components + c] // system.head]
        if bits & unseen:
            unseen ^= bits & unseen
            first_of(bits, scratch.state[n], violations)
    sort_by_movers(system, scratch, pairs)
    return pairs


def sort_by_movers(system: EncodedSystem, scratch: Scratch, pairs: int) -> None:
    """Order the pairs by how many components they move; ``fill``, at first their numbers, becomes where they end."""
    begin = 0
    for kind in range(system.components + 1):
        count = scratch.fill[kind]
        scratch.fill[kind] = begin
        begin += count
    for q in range(pairs):
        event = scratch.pair[q] & EVENT_OF_PAIR
        kind = system.moves[event + 1] - system.moves[event]
        scratch.order[scratch.fill[kind]] = q
        scratch.fill[kind] += 1


def compute_successors(  # noqa: PLR0913, PLR0917 - as the others
    system: EncodedSystem,
    layout: Layout,
    interned: LocalStates,
    scratch: Scratch,
    states: Any,
    alone: bool,  # noqa: FBT001 - as the others
) -> bool:
    """Compute the successors of a block, kind by kind; whether all of them are known."""
    words, components, stride, complete = layout.words, system.components, layout.words + 1, True
    rank = 0
    for size in range(components + 1):
        while rank < scratch.fill[size]:
            q = scratch.order[rank]
            n = scratch.pair[q] >> PAIR_BITS
            begin = system.moves[scratch.pair[q] & EVENT_OF_PAIR]
            first, known, word = n * components, 0, states[scratch.state[n] * words]
            for i in range(begin, begin + size):
                moving = first + system.mover[i]
                at = scratch.base[moving] + interned.nth[scratch.nth[moving] + system.ordinal[i]] * stride
                known |= interned.delta[at]
                word += interned.delta[at + 1]
            if known < 0:
                if alone and resolve_inline(system, layout, interned, scratch, first, begin, begin + size):
                    continue
                scratch.deferred[n] = 1
                complete = False
            rank += 1
            scratch.child[q * words] = word
            for w in range(1, words):
                word = states[scratch.state[n] * words + w]
                for i in range(begin, begin + size):
                    moving = first + system.mover[i]
                    at = scratch.base[moving] + interned.nth[scratch.nth[moving] + system.ordinal[i]] * stride
                    word += interned.delta[at + 1 + w]
                scratch.child[q * words + w] = word
    return complete


def resolve_inline(  # noqa: PLR0913, PLR0917 - as the others
    system: EncodedSystem, layout: Layout, interned: LocalStates, scratch: Scratch, first: int, begin: int, end: int
) -> bool:
    """Compute where an event leads the local states from ``first`` in the scratch; false if memory may not suffice."""
    for i in range(begin, end):
        moving = first + system.mover[i]
        at = scratch.base[moving] // (layout.words + 1) + interned.nth[scratch.nth[moving] + system.ordinal[i]]
        local_id = scratch.head[moving] // system.head
        if interned.after[at] < 0 and not local_successor(system, layout, interned, local_id, i, scratch.machines):
            return False
    return True


def emit(  # noqa: PLR0913, PLR0917 - as the others
    layout: Layout, buffers: SuccessorBuffers, scratch: Scratch, lane: int, n: int, pair: int, pairs: int
) -> int:
    """Append the successors of the state ``n`` of a block to a lane; the first of the ``pairs`` after its own."""
    words, shards = layout.words, buffers.shards
    entry, state = buffers.fill[lane * LINE], scratch.state[n]
    put = lane * buffers.capacity + entry
    while pair < pairs and scratch.pair[pair] >> PAIR_BITS == n:
        mixed = hash_of_state(scratch.child, pair * words, words)
        buffers.of_shard[lane * LINE + ((mixed >> SHARD_SHIFT) & (shards - 1))] += 1
        buffers.hashes[put] = mixed
        buffers.parents[put] = state
        buffers.parent_event[put] = scratch.pair[pair] & EVENT_OF_PAIR
        for w in range(words):
            buffers.states[put * words + w] = scratch.child[pair * words + w]
        put += 1
        pair += 1
    buffers.fill[lane * LINE] = put - lane * buffers.capacity
    return pair


def popcount(bits: int) -> int:
    """How many of 62 bits are set."""
    pairs = bits - ((bits >> 1) & 0x1555555555555555)
    fours = (pairs & 0x3333333333333333) + ((pairs >> 2) & 0x3333333333333333)
    eights = (fours + (fours >> 4)) & 0x0F0F0F0F0F0F0F0F
    eights += eights >> 8
    eights += eights >> 16
    return int((eights + (eights >> 32)) & 0x7F)


def unwitnessed_mask(violations: Any) -> int:
    """The anomalies that no state shows yet, as bits."""
    bits = 0
    for a in range(len(violations)):
        if violations[a] < 0:
            bits |= 1 << a
    return bits


def first_of(bits: int, state: int, violations: Any) -> None:
    """Record ``state`` for the anomalies in ``bits`` that have no state yet."""
    for a in range(len(violations)):
        if (bits >> a) & 1 and violations[a] < 0:
            violations[a] = state


def scan_unexpanded(  # noqa: PLR0913, PLR0917 - as the others
    system: EncodedSystem, layout: Layout, interned: LocalStates, states: Any, begin: int, end: int, violations: Any
) -> None:
    """Look for anomalies among the states from ``begin`` to ``end``, which were not expanded."""
    for state in range(begin, end):
        bits = 0
        for c in range(system.components):
            number = (states[state * layout.words + layout.word[c]] >> layout.shift[c]) & layout.mask[c]
            bits |= interned.head[interned.id_of[c * interned.most + number] * system.head + ALWAYS]
        first_of(bits, state, violations)


def insert_visited(  # noqa: C901, PLR0913, PLR0917 - the hot loop, compiled as a whole
    words: int, buffers: SuccessorBuffers, lanes: int, shard: int, slots: Any, mine: Any
) -> int:
    """Insert the successors of one shard into its hash table, and note which of them are new.

    ``slots`` is an open hash table of states, ``EMPTY`` where there is none, with room for all.  As many of its slots
    as ``mine`` is long are read before they are needed, since memory is slower than the processor.
    """
    others, most, touched = buffers.shards - 1, len(slots) // words - 1, 0
    for lane in range(lanes):
        new, offset = 0, lane * buffers.capacity
        for piece in range(lane * buffers.pieces, lane * buffers.pieces + buffers.count[lane * LINE]):
            begin, end = offset + buffers.first[piece], offset + buffers.end[piece]
            while begin < end:
                size, stop = 0, min(begin + len(mine), end)
                for place in range(begin, stop):
                    mine[size] = place
                    size += 1 if (buffers.hashes[place] >> SHARD_SHIFT) & others == shard else 0
                for n in range(size):
                    touched ^= slots[(buffers.hashes[mine[n]] & most) * words]
                for n in range(size):
                    place = mine[n]
                    slot = buffers.hashes[place] & most
                    while slots[slot * words] >= 0:
                        differs = 0
                        for w in range(words):
                            differs |= slots[slot * words + w] ^ buffers.states[place * words + w]
                        if differs == 0:
                            break
                        slot = (slot + 1) & most
                    buffers.fresh[place] = 0
                    if slots[slot * words] < 0:
                        buffers.fresh[place] = 1
                        new += 1
                        for w in range(words):
                            slots[slot * words + w] = buffers.states[place * words + w]
                begin = stop
        buffers.new[lane * buffers.shards + shard] = new
    return touched


def append_new(  # noqa: PLR0913, PLR0917 - as the others
    words: int, buffers: SuccessorBuffers, lane: int, tail: int, states: Any, parent: Any, parent_event: Any
) -> int:
    """Append the new successors of a lane to the states, which are so many before; the transitions of the lane.

    There must be memory for all of them.  State ``k`` is ``states[k * words : (k + 1) * words]``.
    """
    offset, transitions = lane * buffers.capacity, 0
    for piece in range(lane * buffers.pieces, lane * buffers.pieces + buffers.count[lane * LINE]):
        transitions += buffers.degree[piece]
        for place in range(offset + buffers.first[piece], offset + buffers.end[piece]):
            if buffers.fresh[place]:
                parent[tail] = buffers.parents[place]
                parent_event[tail] = buffers.parent_event[place]
                for w in range(words):
                    states[tail * words + w] = buffers.states[place * words + w]
                tail += 1
    return int(transitions)


def hash_of_state(states: Any, at: int, words: int) -> int:
    """The place of a state, the ``words`` from ``at`` on, in a hash table, by its lowest bits."""
    mixed = 0
    for w in range(at, at + words):
        word = states[w] ^ mixed
        mixed = ((word & 0x7FFFFFFF) * 0x5BD1E995) ^ ((word >> 31) * 0x2C1B3C6D)
        mixed ^= mixed >> 32
    return mixed


def slot_of_number(words: int, known: Any, slots: Any, states: Any, at: int) -> int:
    """Where the number of a state, the ``words`` from ``at`` on, stands in a hash table of numbers, or would stand.

    ``slots`` has the numbers of ``known`` states, ``EMPTY`` where there is none.
    """
    slot = hash_of_state(states, at, words) & (len(slots) - 1)
    while slots[slot] >= 0:
        differs = 0
        for w in range(words):
            differs |= known[slots[slot] * words + w] ^ states[at + w]
        if differs == 0:
            break
        slot = (slot + 1) & (len(slots) - 1)
    return int(slot)


def count_in_shards(words: int, states: Any, count: int, shards: int, into: Any) -> None:
    """Add to ``into`` how many of the first ``count`` of ``states`` are of each shard."""
    for state in range(count):
        into[(hash_of_state(states, state * words, words) >> SHARD_SHIFT) & (shards - 1)] += 1


def rehash_visited(  # noqa: PLR0913, PLR0917 - as the others
    words: int, states: Any, count: int, shards: int, shard: int, slots: Any
) -> None:
    """Insert those of the first ``count`` of ``states`` that are of one shard into its empty hash table.

    Some of the states may be ``EMPTY``.
    """
    most = len(slots) // words - 1
    for state in range(count):
        if states[state * words] < 0:
            continue
        mixed = hash_of_state(states, state * words, words)
        if (mixed >> SHARD_SHIFT) & (shards - 1) != shard:
            continue
        slot = mixed & most
        while slots[slot * words] >= 0:
            slot = (slot + 1) & most
        for w in range(words):
            slots[slot * words + w] = states[state * words + w]


def repack(  # noqa: PLR0913, PLR0917 - as the others
    components: int, old: Layout, states: Any, count: int, new: Layout, into: Any
) -> None:
    """Write the first ``count`` states, packed in the layout ``old``, ``into`` the layout ``new``."""
    for state in range(count):
        for c in range(components):
            number = (states[state * old.words + old.word[c]] >> old.shift[c]) & old.mask[c]
            into[state * new.words + new.word[c]] += number << new.shift[c]


def relayout_deltas(system: EncodedSystem, layout: Layout, interned: LocalStates) -> None:
    """Compute where the numbers of all local states stand in ``layout``, and the deltas of all successors."""
    for local_id in range(interned.count[system.components]):
        interned.shifted[local_id] = interned.number[local_id] << layout.shift[interned.component[local_id]]
    for local_id in range(interned.count[system.components]):
        last = local_id + 1 == interned.count[system.components]
        end = interned.count[system.components + 1] if last else interned.head[(local_id + 1) * system.head + BASE]
        for at in range(interned.head[local_id * system.head + BASE], end):
            if interned.after[at] >= 0:
                write_delta(layout, interned, local_id, at)
