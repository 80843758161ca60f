"""The kernel of the simulation: the machines of many messages, put to a clock, in integers only.

A *row* is a state of one product of machines (those of a copy, of a producer, of its window …), as the engine has them;
``successor[row, signal]`` is the row after it, :data:`REFUSED`, or :data:`UNKNOWN` until somebody asks the tables.  Then
:func:`run` returns :data:`FILL` and goes on where it was when it is called again: nothing has happened meanwhile, since
an event moves all that take part in it or nothing.

A message is in a *slot* as long as anything can become of it.  Events that take no time happen at once; a frame, a sync,
a timer and the work of an application end at a time that is kept in a heap.  What is refused is tried again when that
has moved which refused it.

All functions mean the same to Python and to Numba.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

__all__ = [
    "AT_ONCE",
    "ENDED",
    "FILL",
    "FUNCTIONS",
    "GROW",
    "REFUSED",
    "UNKNOWN",
    "World",
    "run",
]

REFUSED = -1
UNKNOWN = -2

# what run() returns
ENDED = 0
FILL = 1
GROW = 2

# what an event came to
_NO = 0
_DONE = 1
_ASK = 2

# how an event is brought about (World.way)
AT_ONCE = 0
FRAME = 1
SYNC = 2
DISPATCH = 3
TIMER = 4
NEVER = 5

# what happens at a time
_FRAME_OF_SLOT = 0
_FRAME_OF_LINK = 1
_BROKER_READS = 2
_PRODUCER = 3
_PROCESSED = 4
_SYNCED = 5
_TIMER = 6
_CREDIT = 7

# registers
NOW = 0
SERIAL = 1
TIMED = 2
FREE = 3
KEY = 4
ROW = 5
SIGNAL = 6
WORK_BEGIN = 7
WORK_COUNT = 8
TO_DISPATCH = 9
SYNCING = 10
UNSYNCED = 11
TAKEN = 12
NEXT_CONSUMER = 13
REFUSER_ROLE = 14
REFUSER = 15
MOVES = 16
ACCEPTED = 17
DELIVERED = 18
PROCESSED = 19
BROKER_FREE = 20
CHANCE = 21
EVENTS = 22
CONFIRMED = 23
REGISTERS = 24

# numbers of the simulation (World.number)
PRODUCERS = 0
CONSUMERS = 1
MESSAGES = 2
UP = 3
DOWN = 4
HALF_RTT = 5
SEND = 6
BROKER = 7
SYNC_TIME = 8
PROCESSING = 9
TIMEOUT = 10
GROUP_COMMIT = 11
PER_COMMIT = 12
SETTLED_AT = 13
INTERVAL = 14
PREFETCH = 15
CREDIT_ON_DELIVERY = 16
WAITS_IN_CALL = 17
IDLE_SETTLES = 18
NUMBERS = 19

# events that the actors bring about or notice (World.event)
E_SEND = 0
E_COMMIT = 1
E_PROCESSED = 2
E_ACKNOWLEDGE = 3
E_CONSUMER_COMMIT = 4
E_ACCEPT = 5
E_ARRIVE = 6
E_CONFIRMED = 7
E_BY_RANGE = 8
E_COMMIT_RETURNED = 9
E_CONSUMER_COMMIT_RETURNED = 10
E_TIMER = 11
NAMED_EVENTS = 12

# what a consumer does
_IDLE = 0
_BUSY = 1
_SETTLES = 2
_AWAITS_ANSWER = 3
_COMMITS = 4
_AWAITS_COMMIT = 5

BLOCKS = 4
"""So many of its events may wait for something at a time."""

NOTHING = -1


class World(NamedTuple):
    """All arrays; of 64-bit integers unless said otherwise.

    Attributes:
        successor: the row after a row at a signal (32 bits).
        enabled: the events that a row allows of its own, then :data:`NOTHING`.
        indexed: the broadcasts to which a row reacts, as bits.
        delivered_by: the event by which a row may be delivered, or :data:`NOTHING`.
        acknowledgeable: whether a row may be acknowledged.
        awaits_answer: whether a row waits for the answer to an acknowledgement.
        finished: whether nothing more can become of a row.
        way: how each event is brought about.
        roles: the groups that take part in an event, as bits.
        bit: the bit of an event among those that take time, 0 for all others.
        is_of_link: whether an event is of a link, not of a message.
        sent_up: whether a frame goes to the broker.
        broadcast_begin: where the broadcasts of an event begin in ``broadcast`` and ``broadcast_signal``.
        broadcast: their numbers.
        broadcast_signal: their signals.
        scope: of each broadcast: 0 producer, 1 queue, 2 consumer, 3 broker.
        relation: of each broadcast: 1 earlier, 2 later.
        initial: the row in which each group begins.
        number: the numbers of the simulation.
        event: the events that the actors name.
        spread: how the times of latency, sending, broker, sync and processing are distributed: 0 as they are, 1
            exponentially, 2 evenly up to twice the time.
        reg: the registers.
        state, key, producer, consumer, flying, arrived, synced, queued, sent_at: of each slot.
        linked: the broadcasts under which a slot is indexed.
        next_free: the next free slot.
        head, tail: of the list of a broadcast and an instance of its scope.
        after, before: in these lists, by broadcast and slot.
        group: the row of a group, by role and link.
        link_flying, link_arrived, link_synced, link_queued, link_waits: of each link.
        timer_at: when the timer of a link fires, 0 if it does not run.
        sent, in_transaction, ready_at, socket_at, wakes_at, in_call, line_free, quota: of each producer.
        acting, current, unsettled, consumed, down_free, out, is_due, inbox_head, inbox_tail: of each consumer.
        inbox: the next slot in the library of a consumer, by slot.
        sender_waits, consumer_waits: flags of producers and consumers that have something to try.
        block_head: the first block of each link, then of each slot.
        block_next, block_before, block_of, block_role, block_signal: of each block, :data:`BLOCKS` for a slot.
        work: a ring of slots to look at.
        in_work: whether a slot is in it.
        unsynced, taken: what is to be synced and what is being synced: slots, and links as negative numbers.
        times, payloads: the heap.
        moved, moved_role, moved_to: the moves of one event.
        accepted_at, processed_at: when the n-th message was.
        confirm_latency, delivery_latency: of each message, by its number.
    """

    successor: Any
    enabled: Any
    indexed: Any
    delivered_by: Any
    acknowledgeable: Any
    awaits_answer: Any
    finished: Any
    way: Any
    roles: Any
    bit: Any
    is_of_link: Any
    sent_up: Any
    broadcast_begin: Any
    broadcast: Any
    broadcast_signal: Any
    scope: Any
    relation: Any
    initial: Any
    number: Any
    event: Any
    spread: Any
    reg: Any
    state: Any
    key: Any
    producer: Any
    consumer: Any
    flying: Any
    arrived: Any
    synced: Any
    queued: Any
    sent_at: Any
    linked: Any
    next_free: Any
    head: Any
    tail: Any
    after: Any
    before: Any
    group: Any
    link_flying: Any
    link_arrived: Any
    link_synced: Any
    link_queued: Any
    link_waits: Any
    timer_at: Any
    sent: Any
    in_transaction: Any
    ready_at: Any
    socket_at: Any
    wakes_at: Any
    in_call: Any
    line_free: Any
    quota: Any
    acting: Any
    current: Any
    unsettled: Any
    consumed: Any
    down_free: Any
    out: Any
    is_due: Any
    inbox_head: Any
    inbox_tail: Any
    inbox: Any
    sender_waits: Any
    consumer_waits: Any
    block_head: Any
    block_next: Any
    block_before: Any
    block_of: Any
    block_role: Any
    block_signal: Any
    work: Any
    in_work: Any
    unsynced: Any
    taken: Any
    times: Any
    payloads: Any
    moved: Any
    moved_role: Any
    moved_to: Any
    accepted_at: Any
    processed_at: Any
    confirm_latency: Any
    delivery_latency: Any


# the heap


def push(w: World, time: int, kind: int, subject: int, event: int) -> None:
    """Something happens at ``time``; what happens at one time happens in the order in which it was pushed."""
    reg, times, payloads = w.reg, w.times, w.payloads
    serial = reg[SERIAL]
    reg[SERIAL] = serial + 1
    payload = kind | subject << 4 | event << 36
    at = reg[TIMED]
    reg[TIMED] = at + 1
    while at > 0:
        parent = (at - 1) >> 1
        if times[parent, 0] < time or (times[parent, 0] == time and times[parent, 1] < serial):
            break
        times[at, 0], times[at, 1], payloads[at] = times[parent, 0], times[parent, 1], payloads[parent]
        at = parent
    times[at, 0], times[at, 1], payloads[at] = time, serial, payload


def pop(w: World) -> int:
    """Take out the first of the heap, whose time it is now; its payload."""
    reg, times, payloads = w.reg, w.times, w.payloads
    found = payloads[0]
    reg[NOW] = times[0, 0]
    count = reg[TIMED] - 1
    reg[TIMED] = count
    time, serial, payload = times[count, 0], times[count, 1], payloads[count]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        other = child + 1
        if other < count and (
            times[other, 0] < times[child, 0] or (times[other, 0] == times[child, 0] and times[other, 1] < times[child, 1])
        ):
            child = other
        if time < times[child, 0] or (time == times[child, 0] and serial < times[child, 1]):
            break
        times[at, 0], times[at, 1], payloads[at] = times[child, 0], times[child, 1], payloads[child]
        at = child
    times[at, 0], times[at, 1], payloads[at] = time, serial, payload
    return found


def drawn(w: World, of: int, mean: int) -> int:
    """A time of the given mean, as it is distributed."""
    kind = w.spread[of]
    if kind == 0 or mean == 0:
        return mean
    state = w.reg[CHANCE]
    state ^= (state << 13) & 0x7FFFFFFFFFFFFFFF
    state ^= state >> 7
    state ^= (state << 17) & 0x7FFFFFFFFFFFFFFF
    w.reg[CHANCE] = state
    part = ((state >> 10) + 0.5) / 9007199254740992.0
    if kind == 1:
        return int(-math.log(part) * mean)
    return int(2.0 * part * mean)


# blocks, lists, work


def add_work(w: World, slot: int) -> None:
    """Look at ``slot`` soon."""
    if w.in_work[slot] == 0:
        w.in_work[slot] = 1
        reg = w.reg
        w.work[(reg[WORK_BEGIN] + reg[WORK_COUNT]) % w.work.shape[0]] = slot
        reg[WORK_COUNT] += 1


def drop_block(w: World, block: int) -> None:
    """The block waits no more."""
    place, after, before = w.block_of[block], w.block_next[block], w.block_before[block]
    if place == NOTHING:
        return
    if before == NOTHING:
        w.block_head[place] = after
    else:
        w.block_next[before] = after
    if after != NOTHING:
        w.block_before[after] = before
    w.block_of[block] = NOTHING


def drop_blocks(w: World, slot: int) -> None:
    """``slot`` waits for nothing."""
    for each in range(BLOCKS):
        drop_block(w, slot * BLOCKS + each)


def block(w: World, slot: int, signal: int) -> None:
    """``slot`` waits for what refused it last."""
    for each in range(BLOCKS):
        free = slot * BLOCKS + each
        if w.block_of[free] == NOTHING:
            role, refuser = w.reg[REFUSER_ROLE], w.reg[REFUSER]
            place = w.group.shape[1] + refuser if role == 0 else refuser
            first = w.block_head[place]
            w.block_of[free], w.block_role[free], w.block_signal[free] = place, role, signal
            w.block_next[free], w.block_before[free] = first, NOTHING
            if first != NOTHING:
                w.block_before[first] = free
            w.block_head[place] = free
            return


def wake_those_that_wait_for_slot(w: World, slot: int) -> None:
    """``slot`` has moved."""
    found = w.block_head[w.group.shape[1] + slot]
    while found != NOTHING:
        add_work(w, found // BLOCKS)
        after = w.block_next[found]
        drop_block(w, found)
        found = after


def wake_those_that_wait_for_link(w: World, link: int, role: int, row: int) -> None:
    """A group of ``link`` has moved to ``row``."""
    found = w.block_head[link]
    while found != NOTHING:
        after = w.block_next[found]
        if w.block_role[found] == role and w.successor[row, w.block_signal[found]] != REFUSED:
            add_work(w, found // BLOCKS)
            drop_block(w, found)
        found = after


def instance_of(w: World, broadcast: int, slot: int) -> int:
    """Which list of a broadcast a slot belongs to; :data:`NOTHING` for a consumer that it has not."""
    scope = w.scope[broadcast]
    if scope == 0:
        return w.producer[slot]
    if scope == 2:
        return w.consumer[slot]
    return 0


def index_slot(w: World, slot: int, wanted: int) -> None:
    """Index ``slot`` under the broadcasts ``wanted`` and no others."""
    changed = w.linked[slot] ^ wanted
    for b in range(w.scope.shape[0]):
        if changed >> b & 1:
            instance = instance_of(w, b, slot)
            if wanted >> b & 1:
                if instance == NOTHING:
                    wanted ^= 1 << b
                else:
                    link_in(w, b, instance, slot)
            else:
                link_out(w, b, instance, slot)
    w.linked[slot] = wanted


def link_in(w: World, b: int, instance: int, slot: int) -> None:
    """Into the list, behind all with smaller keys."""
    key, last = w.key[slot], w.tail[b, instance]
    while last != NOTHING and w.key[last] > key:
        last = w.before[b, last]
    if last == NOTHING:
        following = w.head[b, instance]
        w.head[b, instance] = slot
    else:
        following = w.after[b, last]
        w.after[b, last] = slot
    w.before[b, slot], w.after[b, slot] = last, following
    if following == NOTHING:
        w.tail[b, instance] = slot
    else:
        w.before[b, following] = slot


def link_out(w: World, b: int, instance: int, slot: int) -> None:
    """Out of the list."""
    before, after = w.before[b, slot], w.after[b, slot]
    if before == NOTHING:
        w.head[b, instance] = after
    else:
        w.after[b, before] = after
    if after == NOTHING:
        w.tail[b, instance] = before
    else:
        w.before[b, after] = before


# events


def add_move(w: World, role: int, subject: int, row: int, signal: int) -> int:
    """Note where one participant would go."""
    target = w.successor[row, signal]
    reg = w.reg
    if target == row:
        return _DONE
    if target == UNKNOWN:
        reg[ROW], reg[SIGNAL] = row, signal
        return _ASK
    if target == REFUSED:
        reg[REFUSER_ROLE], reg[REFUSER] = role, subject
        return _NO
    at = reg[MOVES]
    w.moved_role[at], w.moved[at], w.moved_to[at] = role, subject, target
    reg[MOVES] = at + 1
    return _DONE


def link_of(w: World, role: int, slot: int) -> int:
    """The link whose group takes part for ``slot``; :data:`NOTHING` for a consumer that it has not."""
    producers = w.number[PRODUCERS]
    if role <= 3:
        return w.producer[slot]
    if role <= 5:
        return producers + w.consumer[slot] if w.consumer[slot] != NOTHING else NOTHING
    return producers + w.number[CONSUMERS]


def ask_groups(w: World, event: int, slot: int) -> int:
    """Where the groups of an event of a message would go."""
    roles, signal = w.roles[event], event * 4
    for role in range(7):
        if roles >> role & 1:
            if role == 0:
                answer = add_move(w, 0, slot, w.state[slot], signal)
            else:
                link = link_of(w, role, slot)
                if link == NOTHING:
                    continue
                answer = add_move(w, role, link, w.group[role, link], signal)
            if answer != _DONE:
                return answer
    return _DONE


def ask_others(w: World, event: int, slot: int) -> int:
    """Where other messages would go."""
    key = w.key[slot]
    for each in range(w.broadcast_begin[event], w.broadcast_begin[event + 1]):
        b, signal = w.broadcast[each], w.broadcast_signal[each]
        instance = instance_of(w, b, slot)
        if instance == NOTHING:
            continue
        if w.relation[b] == 2:
            other = w.head[b, instance]
            while other != NOTHING and w.key[other] < key:
                answer = add_move(w, 0, other, w.state[other], signal)
                if answer != _DONE:
                    return answer
                other = w.after[b, other]
        else:
            other = w.tail[b, instance]
            while other != NOTHING and w.key[other] > key:
                answer = add_move(w, 0, other, w.state[other], signal)
                if answer != _DONE:
                    return answer
                other = w.before[b, other]
    return _DONE


def carry_out(w: World, slot: int) -> None:
    """All that take part move."""
    reg = w.reg
    reg[EVENTS] += 1
    for at in range(reg[MOVES]):
        role, subject, target = w.moved_role[at], w.moved[at], w.moved_to[at]
        if role == 0:
            w.state[subject] = target
            index_slot(w, subject, w.indexed[target])
            wake_those_that_wait_for_slot(w, subject)
            if subject != slot:
                add_work(w, subject)
            w.link_waits[w.producer[subject]] = 1
            if w.consumer[subject] != NOTHING:
                w.link_waits[w.number[PRODUCERS] + w.consumer[subject]] = 1
        else:
            w.group[role, subject] = target
            w.link_waits[subject] = 1
            wake_those_that_wait_for_link(w, subject, role, target)
            if role == 5:
                reg[TO_DISPATCH] = 1
            elif role <= 3:
                w.sender_waits[subject] = 1
            elif role == 4:
                w.consumer_waits[subject - w.number[PRODUCERS]] = 1


def perform(w: World, event: int, slot: int) -> int:
    """One event of a message; what it came to."""
    w.reg[MOVES] = 0
    answer = ask_groups(w, event, slot)
    if answer == _DONE:
        answer = ask_others(w, event, slot)
    if answer == _DONE:
        carry_out(w, slot)
        notice(w, event, slot)
    return answer


def perform_of_link(w: World, event: int, link: int) -> int:
    """One event of a link: its groups, the broker and all its messages take part."""
    w.reg[MOVES] = 0
    roles, signal, producers = w.roles[event], event * 4, w.number[PRODUCERS]
    for role in range(1, 7):
        if roles >> role & 1:
            of = producers + w.number[CONSUMERS] if role == 6 else link
            if w.group[role, of] != NOTHING:
                answer = add_move(w, role, of, w.group[role, of], signal)
                if answer != _DONE:
                    return answer
    b, instance = (0, link) if link < producers else (2, link - producers)
    if roles & 1:
        other = w.head[b, instance]
        while other != NOTHING:
            answer = add_move(w, 0, other, w.state[other], signal)
            if answer != _DONE:
                return answer
            other = w.after[b, other]
    carry_out(w, NOTHING)
    w.link_waits[link] = 1
    if link < producers:
        w.sender_waits[link] = 1
        if event == w.event[E_COMMIT_RETURNED]:
            returns(w, link)
    else:
        w.consumer_waits[link - producers] = 1
        if event == w.event[E_CONSUMER_COMMIT_RETURNED]:
            w.acting[link - producers] = _IDLE
    return _DONE


def returns(w: World, producer: int) -> None:
    """The call of a producer returns, and it works for its next message."""
    if w.in_call[producer] == 1:
        w.in_call[producer] = 0
        w.ready_at[producer] = max(w.ready_at[producer], w.reg[NOW] + drawn(w, 1, w.number[SEND]))


def notice(w: World, event: int, slot: int) -> None:
    """What the actors and the figures make of an event that happened to ``slot``."""
    named, reg = w.event, w.reg
    producer = w.producer[slot]
    if event == named[E_ACCEPT]:
        w.accepted_at[reg[ACCEPTED]] = reg[NOW]
        reg[ACCEPTED] += 1
    elif event == named[E_CONFIRMED] or event == named[E_BY_RANGE]:
        w.confirm_latency[w.key[slot]] = reg[NOW] - w.sent_at[slot]
        reg[CONFIRMED] += 1
        w.sender_waits[producer] = 1
        returns(w, producer)
    elif event == named[E_ARRIVE]:
        consumer = w.consumer[slot]
        w.inbox[slot] = NOTHING
        if w.inbox_head[consumer] == NOTHING:
            w.inbox_head[consumer] = slot
        else:
            w.inbox[w.inbox_tail[consumer]] = slot
        w.inbox_tail[consumer] = slot
        w.consumer_waits[consumer] = 1
    elif w.consumer[slot] != NOTHING:
        w.consumer_waits[w.consumer[slot]] = 1
    if w.way[event] == AT_ONCE:
        w.sender_waits[producer] = 1


# frames


def send_frame(w: World, event: int, slot: int) -> None:
    """A frame of a message goes out: only messages take bandwidth."""
    reg, number = w.reg, w.number
    if event == w.event[E_ACCEPT]:
        producer = w.producer[slot]
        begin = max(reg[NOW], w.line_free[producer])
        w.line_free[producer] = begin + number[UP]
        w.socket_at[producer] = begin
        arrives = begin + number[UP] + drawn(w, 0, number[HALF_RTT])
        kind = _BROKER_READS if number[BROKER] > 0 else _FRAME_OF_SLOT
    elif event == w.event[E_ARRIVE]:
        consumer = w.consumer[slot]
        begin = max(reg[NOW], w.down_free[consumer])
        w.down_free[consumer] = begin + number[DOWN]
        arrives, kind = begin + number[DOWN] + drawn(w, 0, number[HALF_RTT]), _FRAME_OF_SLOT
    else:
        arrives, kind = reg[NOW] + drawn(w, 0, number[HALF_RTT]), _FRAME_OF_SLOT
    push(w, arrives, kind, slot, event)


# what follows


def look_at(w: World, slot: int) -> int:
    """Bring about all that ``slot`` allows now; what it waits for is noted."""
    drop_blocks(w, slot)
    at = 0
    while True:
        event = w.enabled[w.state[slot], at]
        if event == NOTHING:
            break
        at += 1
        way, bit = w.way[event], w.bit[event]
        if way == DISPATCH:
            w.reg[TO_DISPATCH] = 1
            continue
        if way == NEVER or way == TIMER:
            continue
        if way == FRAME:
            if w.flying[slot] & bit == 0:
                w.flying[slot] |= bit
                send_frame(w, event, slot)
                continue
            if w.arrived[slot] & bit == 0:
                continue
        elif way == SYNC and w.synced[slot] & bit == 0:
            if w.queued[slot] == 0:
                w.queued[slot] = 1
                w.unsynced[w.reg[UNSYNCED]] = slot
                w.reg[UNSYNCED] += 1
            continue
        answer = perform(w, event, slot)
        if answer == _ASK:
            return FILL
        if answer == _DONE:
            w.flying[slot] &= ~bit
            w.arrived[slot] &= ~bit
            w.synced[slot] &= ~bit
            drop_blocks(w, slot)
            at = 0
        else:
            block(w, slot, event * 4 if w.reg[REFUSER_ROLE] else 0)
    if w.finished[w.state[slot]] and w.flying[slot] == 0 and w.queued[slot] == 0:
        release(w, slot)
    return ENDED


def release(w: World, slot: int) -> None:
    """Nothing more can become of the message in ``slot``."""
    index_slot(w, slot, 0)
    w.state[slot] = NOTHING
    w.next_free[slot] = w.reg[FREE]
    w.reg[FREE] = slot


def look_at_link(w: World, link: int) -> int:
    """Bring about all that the groups of ``link`` allow now."""
    begin, end = (1, 4) if link < w.number[PRODUCERS] else (4, 6)
    role, at = begin, 0
    while role < end:
        row = w.group[role, link]
        event = NOTHING if row == NOTHING else w.enabled[row, at]
        if event == NOTHING:
            role, at = role + 1, 0
            continue
        at += 1
        way, bit = w.way[event], w.bit[event]
        if way == NEVER or way == DISPATCH or w.is_of_link[event] == 0:
            continue
        if way == FRAME:
            if w.link_flying[link] & bit == 0:
                w.link_flying[link] |= bit
                push(w, w.reg[NOW] + drawn(w, 0, w.number[HALF_RTT]), _FRAME_OF_LINK, link, event)
                continue
            if w.link_arrived[link] & bit == 0:
                continue
        elif way == SYNC and w.link_synced[link] & bit == 0:
            if w.link_queued[link] == 0:
                w.link_queued[link] = 1
                w.unsynced[w.reg[UNSYNCED]] = -1 - link
                w.reg[UNSYNCED] += 1
            continue
        elif way == TIMER:
            answer = run_timer(w, event, link)
            if answer == _ASK:
                return FILL
            continue
        answer = perform_of_link(w, event, link)
        if answer == _ASK:
            return FILL
        if answer == _DONE:
            w.link_flying[link] &= ~bit
            w.link_arrived[link] &= ~bit
            w.link_synced[link] &= ~bit
            role, at = begin, 0
    return ENDED


def run_timer(w: World, event: int, link: int) -> int:
    """Start the timer of ``link`` as soon as it may fire, fire it when its time has come, stop it when it may not."""
    signal = event * 4
    may = True
    for role in range(1, 4):
        if w.roles[event] >> role & 1 and w.group[role, link] != NOTHING:
            target = w.successor[w.group[role, link], signal]
            if target == UNKNOWN:
                w.reg[ROW], w.reg[SIGNAL] = w.group[role, link], signal
                return _ASK
            may = may and target != REFUSED
    if not may:
        w.timer_at[link] = 0
        return _NO
    now = w.reg[NOW]
    if w.timer_at[link] == 0:
        w.timer_at[link] = now + max(w.number[TIMEOUT], 1)
        push(w, w.timer_at[link], _TIMER, link, 0)
        return _NO
    if now < w.timer_at[link]:
        return _NO
    answer = perform_of_link(w, event, link)
    if answer == _DONE:
        w.timer_at[link] = 0
    return answer


def send_next(w: World, producer: int) -> int:
    """The next call of a producer, if it may be made now."""
    reg, now = w.reg, w.reg[NOW]
    if w.in_call[producer]:
        return ENDED
    open_ = w.in_transaction[producer]
    done = w.sent[producer] >= w.quota[producer]
    commits = w.number[PER_COMMIT] > 0 and open_ > 0 and (open_ >= w.number[PER_COMMIT] or done)
    if done and not commits:
        return ENDED
    if commits:
        answer = perform_of_link(w, w.event[E_COMMIT], producer)
        if answer == _ASK:
            return FILL
        if answer == _DONE:
            w.in_transaction[producer], w.in_call[producer] = 0, 1
        return ENDED
    at = max(w.ready_at[producer], w.socket_at[producer])
    if at > now:
        if w.wakes_at[producer] != at:
            w.wakes_at[producer] = at
            push(w, at, _PRODUCER, producer, 0)
        return ENDED
    slot = reg[FREE]
    w.state[slot], w.key[slot], w.producer[slot], w.consumer[slot] = w.initial[0], reg[KEY], producer, NOTHING
    w.flying[slot] = w.arrived[slot] = w.synced[slot] = w.queued[slot] = w.linked[slot] = 0
    w.sent_at[slot] = now
    answer = perform(w, w.event[E_SEND], slot)
    if answer == _ASK:
        return FILL
    if answer == _NO:
        return ENDED
    reg[FREE] = w.next_free[slot]
    reg[KEY] += 1
    w.sent[producer] += 1
    w.in_transaction[producer] += 1
    w.in_call[producer] = w.number[WAITS_IN_CALL]
    work_time = 0 if w.number[WAITS_IN_CALL] else drawn(w, 1, w.number[SEND])
    w.ready_at[producer] = max(now + work_time, w.sent[producer] * w.number[INTERVAL])
    w.sender_waits[producer] = 1
    add_work(w, slot)
    return ENDED


def consume(w: World, consumer: int) -> int:
    """What a consumer does next, until it has to wait for something."""
    while True:
        doing = w.acting[consumer]
        if doing == _IDLE:
            answer = take_next(w, consumer)
        elif doing == _BUSY:
            answer = finish(w, consumer)
        elif doing == _SETTLES:
            answer = settle(w, consumer)
        elif doing == _AWAITS_ANSWER:
            answer = _NO
            if w.awaits_answer[w.state[w.current[consumer]]] == 0:
                w.acting[consumer] = _IDLE
                answer = _DONE
        elif doing == _COMMITS:
            answer = perform_of_link(w, w.event[E_CONSUMER_COMMIT], w.number[PRODUCERS] + consumer)
            if answer == _DONE:
                w.acting[consumer] = _AWAITS_COMMIT
        else:
            answer = _NO
        if answer == _ASK:
            return FILL
        if answer == _NO:
            return ENDED


def take_next(w: World, consumer: int) -> int:
    """Take the next message from the library, which may have to acknowledge it first."""
    slot = w.inbox_head[consumer]
    if slot == NOTHING:
        return _NO
    row, reg = w.state[slot], w.reg
    event = w.delivered_by[row]
    answer = _NO
    if event != NOTHING:
        answer = perform(w, event, slot)
        if answer == _DONE:
            w.inbox_head[consumer] = w.inbox[slot]
            w.current[consumer], w.acting[consumer], w.is_due[consumer] = slot, _BUSY, 0
            w.delivery_latency[w.key[slot]] = reg[NOW] - w.sent_at[slot]
            reg[DELIVERED] += 1
            add_work(w, slot)
            push(w, reg[NOW] + drawn(w, 4, w.number[PROCESSING]), _PROCESSED, consumer, 0)
            if w.number[PREFETCH] > 0 and w.number[CREDIT_ON_DELIVERY]:
                push(w, reg[NOW] + drawn(w, 0, w.number[HALF_RTT]), _CREDIT, consumer, 0)
            return _DONE
    if answer == _NO and w.acknowledgeable[row]:
        answer = perform(w, w.event[E_ACKNOWLEDGE], slot)
        if answer == _DONE:
            add_work(w, slot)
            return _DONE
    return answer


def finish(w: World, consumer: int) -> int:
    """The application is done with its message, if the time has come."""
    if w.is_due[consumer] == 0:
        return _NO
    slot, reg = w.current[consumer], w.reg
    answer = perform(w, w.event[E_PROCESSED], slot)
    if answer == _DONE:
        add_work(w, slot)
        w.processed_at[reg[PROCESSED]] = reg[NOW]
        reg[PROCESSED] += 1
        w.consumed[consumer] += 1
        w.unsettled[consumer] += 1
        w.acting[consumer] = _SETTLES
    return answer


def settle(w: World, consumer: int) -> int:
    """Acknowledge what the application has processed, if so many are together, or there are no more."""
    slot, reg, number = w.current[consumer], w.reg, w.number
    idle = number[IDLE_SETTLES] and w.inbox_head[consumer] == NOTHING
    last = reg[PROCESSED] == number[MESSAGES]
    commits = number[PER_COMMIT] > 0
    if w.acknowledgeable[w.state[slot]] and (commits or w.unsettled[consumer] >= number[SETTLED_AT] or idle or last):
        answer = perform(w, w.event[E_ACKNOWLEDGE], slot)
        if answer != _DONE:
            return answer
        add_work(w, slot)
        if not commits:
            w.unsettled[consumer] = 0
    w.acting[consumer] = _IDLE
    if commits and (w.unsettled[consumer] >= number[PER_COMMIT] or last):
        w.unsettled[consumer] = 0
        w.acting[consumer] = _COMMITS
    elif w.awaits_answer[w.state[slot]]:
        w.acting[consumer] = _AWAITS_ANSWER
    return _DONE


def dispatch(w: World, ready: int) -> int:
    """Send the first message of the queue to the next consumer with room, and so on."""
    consumers = w.number[CONSUMERS]
    while True:
        slot = w.head[ready, 0]
        if slot == NOTHING:
            return ENDED
        event = NOTHING
        at = 0
        while w.enabled[w.state[slot], at] != NOTHING:
            if w.way[w.enabled[w.state[slot], at]] == DISPATCH:
                event = w.enabled[w.state[slot], at]
                break
            at += 1
        if event == NOTHING:
            return ENDED
        answer = _NO
        for turn in range(consumers):
            consumer = (w.reg[NEXT_CONSUMER] + turn) % consumers
            most = w.number[PREFETCH]
            if most > 0 and w.number[CREDIT_ON_DELIVERY] and w.out[consumer] >= most:
                continue
            w.consumer[slot] = consumer
            answer = perform(w, event, slot)
            if answer == _DONE:
                w.out[consumer] += 1
                w.reg[NEXT_CONSUMER] = (consumer + 1) % consumers
                add_work(w, slot)
                break
            w.consumer[slot] = NOTHING
            if answer == _ASK:
                return FILL
        if answer != _DONE:
            return ENDED


def start_sync(w: World) -> None:
    """Sync what is written: all of it, or the first."""
    reg = w.reg
    if reg[SYNCING] or reg[UNSYNCED] == 0:
        return
    count = reg[UNSYNCED] if w.number[GROUP_COMMIT] else 1
    for at in range(count):
        w.taken[at] = w.unsynced[at]
    for at in range(count, reg[UNSYNCED]):
        w.unsynced[at - count] = w.unsynced[at]
    reg[UNSYNCED] -= count
    reg[TAKEN], reg[SYNCING] = count, 1
    for at in range(count):
        note_taken(w, w.taken[at])
    push(w, reg[NOW] + drawn(w, 3, w.number[SYNC_TIME]), _SYNCED, 0, 0)


def note_taken(w: World, subject: int) -> None:
    """What the sync takes of a slot or a link is what it has written by now."""
    if subject >= 0:
        w.queued[subject] = sync_bits(w, w.state[subject])
        return
    bits = 0
    for role in range(1, 6):
        row = w.group[role, -1 - subject]
        if row != NOTHING:
            bits |= sync_bits(w, row)
    w.link_queued[-1 - subject] = bits


def sync_bits(w: World, row: int) -> int:
    """The bits of the syncs that a row waits for."""
    bits, at = 0, 0
    while w.enabled[row, at] != NOTHING:
        if w.way[w.enabled[row, at]] == SYNC:
            bits |= w.bit[w.enabled[row, at]]
        at += 1
    return bits


def end_sync(w: World) -> None:
    """What the sync took is on stable storage."""
    reg = w.reg
    for at in range(reg[TAKEN]):
        subject = w.taken[at]
        if subject >= 0:
            w.synced[subject] |= w.queued[subject]
            w.queued[subject] = 0
            add_work(w, subject)
        else:
            w.link_synced[-1 - subject] |= w.link_queued[-1 - subject]
            w.link_queued[-1 - subject] = 0
            w.link_waits[-1 - subject] = 1
    reg[TAKEN] = reg[SYNCING] = 0


def happen(w: World, payload: int) -> None:
    """What was to happen now."""
    kind, subject, event = payload & 15, payload >> 4 & 0xFFFFFFFF, payload >> 36
    if kind == _FRAME_OF_SLOT:
        if is_enabled(w, w.state[subject], event):
            w.arrived[subject] |= w.bit[event]
        else:
            w.flying[subject] &= ~w.bit[event]
        add_work(w, subject)
    elif kind == _FRAME_OF_LINK:
        w.link_arrived[subject] |= w.bit[event]
        w.link_waits[subject] = 1
    elif kind == _BROKER_READS:
        done = max(w.reg[NOW], w.reg[BROKER_FREE]) + drawn(w, 2, w.number[BROKER])
        w.reg[BROKER_FREE] = done
        push(w, done, _FRAME_OF_SLOT, subject, event)
    elif kind == _PRODUCER:
        w.sender_waits[subject] = 1
    elif kind == _PROCESSED:
        w.is_due[subject] = 1
        w.consumer_waits[subject] = 1
    elif kind == _SYNCED:
        end_sync(w)
    elif kind == _TIMER:
        w.link_waits[subject] = 1
    else:
        w.out[subject] -= 1
        w.reg[TO_DISPATCH] = 1


def is_enabled(w: World, row: int, event: int) -> bool:
    """Whether a row allows an event of its own."""
    at = 0
    while w.enabled[row, at] != NOTHING:
        if w.enabled[row, at] == event:
            return True
        at += 1
    return False


def run(w: World, ready: int) -> int:
    """Run until nothing is left to happen; what is missing otherwise.  ``ready`` is the broadcast of the queue."""
    reg = w.reg
    links = w.group.shape[1]
    while True:
        if reg[FREE] == NOTHING or reg[TIMED] + w.state.shape[0] + 64 > w.payloads.shape[0]:
            return GROW
        code = ENDED
        if reg[WORK_COUNT] > 0:
            slot = w.work[reg[WORK_BEGIN]]
            w.in_work[slot] = 0
            if w.state[slot] != NOTHING:
                code = look_at(w, slot)
            if code == ENDED:
                reg[WORK_BEGIN] = (reg[WORK_BEGIN] + 1) % w.work.shape[0]
                reg[WORK_COUNT] -= 1
            else:
                w.in_work[slot] = 1
                return code
            continue
        busy = False
        for link in range(links - 1):
            if w.link_waits[link]:
                w.link_waits[link] = 0
                code = look_at_link(w, link)
                if code != ENDED:
                    w.link_waits[link] = 1
                    return code
                busy = True
        if reg[TO_DISPATCH] and reg[WORK_COUNT] == 0:
            reg[TO_DISPATCH] = 0
            code = dispatch(w, ready)
            if code != ENDED:
                reg[TO_DISPATCH] = 1
                return code
            busy = True
        for producer in range(w.number[PRODUCERS]):
            if w.sender_waits[producer] and reg[FREE] != NOTHING:
                w.sender_waits[producer] = 0
                code = send_next(w, producer)
                if code != ENDED:
                    w.sender_waits[producer] = 1
                    return code
                busy = True
        for consumer in range(w.number[CONSUMERS]):
            if w.consumer_waits[consumer]:
                w.consumer_waits[consumer] = 0
                code = consume(w, consumer)
                if code != ENDED:
                    w.consumer_waits[consumer] = 1
                    return code
                busy = True
        if busy:
            continue
        start_sync(w)
        if reg[TIMED] == 0:
            return ENDED
        happen(w, pop(w))


FUNCTIONS = (
    *(push, pop, drawn, add_work, drop_block, drop_blocks, block, wake_those_that_wait_for_slot),
    *(wake_those_that_wait_for_link, instance_of, link_in, link_out, index_slot, add_move, link_of, ask_groups),
    *(ask_others, carry_out, returns, notice, perform, perform_of_link, send_frame, release, look_at, run_timer),
    *(look_at_link, send_next, take_next, finish, settle, consume, dispatch, sync_bits, note_taken, start_sync),
    *(end_sync, is_enabled, happen, run),
)
"""In the order in which they call each other, callees first."""
