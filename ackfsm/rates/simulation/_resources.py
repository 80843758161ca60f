"""The clocks, queues and lists of the kernel: what happens when, who waits for what, and who reacts to whom.

All functions mean the same to Python, on a list, and to Numba, on an array.
"""

from __future__ import annotations

import math

from ackfsm.rates.simulation._layout import *

# the heap


def push(m: Memory, time: int, kind: int, subject: int, event: int) -> None:
    """Something happens at ``time``; what happens at one time happens in the order in which it was pushed."""
    order = m[SERIAL]
    m[SERIAL] = order + 1
    count = m[TIMED]
    m[TIMED] = count + 1
    base = m[HEAP]
    while count > 0:
        parent = (count - 1) >> 1
        of = base + parent * ENTRY_SIZE
        if m[of] < time or (m[of] == time and m[of + ORDER] < order):
            break
        put(m, base + count * ENTRY_SIZE, m[of], m[of + ORDER], m[of + KIND], m[of + SUBJECT], m[of + EVENT])
        count = parent
    put(m, base + count * ENTRY_SIZE, time, order, kind, subject, event)


def put(m: Memory, entry: int, time: int, order: int, kind: int, subject: int, event: int) -> None:  # noqa: PLR0913, PLR0917 - a record
    """Write an entry of the heap."""
    m[entry] = time
    m[entry + ORDER] = order
    m[entry + KIND] = kind
    m[entry + SUBJECT] = subject
    m[entry + EVENT] = event


def pop(m: Memory) -> None:
    """Take the first entry out of the heap."""
    base, count = m[HEAP], m[TIMED] - 1
    m[TIMED] = count
    last = base + count * ENTRY_SIZE
    time, order = m[last], m[last + ORDER]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        of = base + child * ENTRY_SIZE
        other = of + ENTRY_SIZE
        if child + 1 < count and (m[other] < m[of] or (m[other] == m[of] and m[other + ORDER] < m[of + ORDER])):
            child, of = child + 1, other
        if time < m[of] or (time == m[of] and order < m[of + ORDER]):
            break
        put(m, base + at * ENTRY_SIZE, m[of], m[of + ORDER], m[of + KIND], m[of + SUBJECT], m[of + EVENT])
        at = child
    put(m, base + at * ENTRY_SIZE, time, order, m[last + KIND], m[last + SUBJECT], m[last + EVENT])


def drawn(m: Memory, time: int) -> int:
    """A time by its distribution; ``time`` is the register of its mean."""
    mean, spread = m[time], m[time + 1]
    if spread == 0 or mean == 0:
        return mean
    state = m[CHANCE]
    state ^= (state << 13) & 0xFFFFFFFF
    state ^= state >> 17
    state ^= (state << 5) & 0xFFFFFFFF
    m[CHANCE] = state
    part = (state + 0.5) / 4294967296.0
    return int(-math.log(part) * mean) if spread == 1 else int(2.0 * part * mean)


# who waits for what


def add_work(m: Memory, slot: int) -> None:
    """Look at ``slot`` soon."""
    if m[slot + IN_WORK] == 0:
        m[slot + IN_WORK] = 1
        m[slot + NEXT_WORK] = NOTHING
        if m[WORK_FIRST] == NOTHING:
            m[WORK_FIRST] = slot
        else:
            m[m[WORK_LAST] + NEXT_WORK] = slot
        m[WORK_LAST] = slot


def add_unsynced(m: Memory, subject: int) -> None:
    """A slot or a link has something for the next sync."""
    m[subject + QUEUED] = 1
    m[subject + NEXT_UNSYNCED] = NOTHING
    if m[UNSYNCED_FIRST] == NOTHING:
        m[UNSYNCED_FIRST] = subject
    else:
        m[m[UNSYNCED_LAST] + NEXT_UNSYNCED] = subject
    m[UNSYNCED_LAST] = subject


def drop_block(m: Memory, block: int) -> None:
    """The block waits no more."""
    place, after, before = m[block + BLOCK_PLACE], m[block + BLOCK_NEXT], m[block + BLOCK_BEFORE]
    if before == NOTHING:
        m[place + FIRST_BLOCK] = after
    else:
        m[before + BLOCK_NEXT] = after
    if after != NOTHING:
        m[after + BLOCK_BEFORE] = before
    m[block + BLOCK_PLACE] = NOTHING


def drop_blocks(m: Memory, slot: int) -> None:
    """``slot`` waits for nothing."""
    for each in range(BLOCKS_OF_A_SLOT):
        block = slot + BLOCKS + each * BLOCK_SIZE
        if m[block + BLOCK_PLACE] != NOTHING:
            drop_block(m, block)


def wait_for_refuser(m: Memory, slot: int, signal: int) -> None:
    """``slot`` waits for what refused it last to move."""
    place = m[REFUSER]
    if m[place + IS_LINK]:
        place = kind_of(m, place, m[REFUSER_ROLE], signal)
    for each in range(BLOCKS_OF_A_SLOT):
        block = slot + BLOCKS + each * BLOCK_SIZE
        if place != NOTHING and m[block + BLOCK_PLACE] == NOTHING:
            first = m[place + FIRST_BLOCK]
            m[block + BLOCK_PLACE], m[block + BLOCK_NUMBER] = place, m[NEXT_NUMBER]
            m[NEXT_NUMBER] += 1
            m[block + BLOCK_NEXT], m[block + BLOCK_BEFORE] = first, NOTHING
            if first != NOTHING:
                m[first + BLOCK_BEFORE] = block
            m[place + FIRST_BLOCK] = block
            return
    m[OVERFLOWN] = 1


def kind_of(m: Memory, link: int, role: int, signal: int) -> int:
    """Return the kind of waiters for this group to allow ``signal``; :data:`NOTHING` if there are too many kinds."""
    count, kind = m[link + KIND_COUNT], link + KINDS
    for _ in range(count):
        if m[kind + KIND_ROLE] == role and m[kind + KIND_SIGNAL] == signal:
            return kind
        kind += KIND_SIZE
    if count == KINDS_OF_A_LINK:
        return NOTHING
    m[link + KIND_COUNT] = count + 1
    m[kind + KIND_ROLE], m[kind + KIND_SIGNAL], m[kind + FIRST_BLOCK] = role, signal, NOTHING
    return kind


def wake_those_that_wait_for_slot(m: Memory, slot: int) -> None:
    """``slot`` has moved."""
    block = m[slot + FIRST_BLOCK]
    while block != NOTHING:
        after = m[block + BLOCK_NEXT]
        add_work(m, m[block + BLOCK_SLOT])
        drop_block(m, block)
        block = after


def wake_those_that_wait_for_group(m: Memory, link: int, role: int, row: int) -> None:
    """A group of ``link`` has moved to ``row``: who waits for what that allows is woken, whoever came last first."""
    end, some = link + KINDS + KIND_SIZE * m[link + KIND_COUNT], False
    for kind in range(link + KINDS, end, KIND_SIZE):
        wakes = m[kind + KIND_ROLE] == role and m[kind + FIRST_BLOCK] != NOTHING
        wakes = wakes and m[row + SUCCESSOR + m[kind + KIND_SIGNAL]] != REFUSED
        m[kind + KIND_WAKES] = wakes
        some = some or wakes
    while some:
        last = NOTHING
        for kind in range(link + KINDS, end, KIND_SIZE):
            block = m[kind + FIRST_BLOCK]
            waits = m[kind + KIND_WAKES] and block != NOTHING
            if waits and (last == NOTHING or m[block + BLOCK_NUMBER] > m[last + BLOCK_NUMBER]):
                last = block
        if last == NOTHING:
            return
        add_work(m, m[last + BLOCK_SLOT])
        drop_block(m, last)


# the lists in which messages stand that react to others


def scope_of(m: Memory, at: int, slot: int) -> int:
    """To which producer, queue or consumer the list number ``at`` of a slot belongs; :data:`NOTHING` if to none yet."""
    scope = m[m[SCOPES_AT] + at]
    if scope == 0:
        return m[slot + PRODUCER]
    if scope == 1:
        return m[QUEUE]
    return m[slot + CONSUMER]


def order_in(m: Memory, at: int) -> int:
    """The field by which the list number ``at`` is ordered: among the messages of a producer it is that of sending."""
    return KEY if m[m[SCOPES_AT] + at] == 0 else PLACE


def stand_in(m: Memory, slot: int, wanted: int) -> None:
    """``slot`` is to stand in the lists ``wanted``, and no others."""
    changed = m[slot + LINKED] ^ wanted
    at = 0
    while changed >> at:
        if changed >> at & 1:
            scope = scope_of(m, at, slot)
            if not wanted >> at & 1:
                link_out(m, at, scope, slot)
            elif scope == NOTHING:
                wanted ^= 1 << at
            else:
                link_in(m, at, scope, slot)
        at += 1
    m[slot + LINKED] = wanted


def link_in(m: Memory, at: int, scope: int, slot: int) -> None:
    """Into the list, behind all that come before it."""
    if at == m[READY] and m[slot + PLACE] == NOTHING:
        m[slot + PLACE] = m[NEXT_PLACE]
        m[NEXT_PLACE] += 1
    ends, here, order = scope + ENDS + PER_LIST * at, NEIGHBOURS + PER_LIST * at, order_in(m, at)
    mine, last = m[slot + order], m[ends + 1]
    while last != NOTHING and m[last + order] > mine:
        last = m[last + here + 1]
    if last == NOTHING:
        following = m[ends]
        m[ends] = slot
    else:
        following = m[last + here]
        m[last + here] = slot
    m[slot + here], m[slot + here + 1] = following, last
    if following == NOTHING:
        m[ends + 1] = slot
    else:
        m[following + here + 1] = slot


def link_out(m: Memory, at: int, scope: int, slot: int) -> None:
    """Out of the list."""
    ends, here = scope + ENDS + PER_LIST * at, NEIGHBOURS + PER_LIST * at
    after, before = m[slot + here], m[slot + here + 1]
    if before == NOTHING:
        m[ends] = after
    else:
        m[before + here] = after
    if after == NOTHING:
        m[ends + 1] = before
    else:
        m[after + here + 1] = before
