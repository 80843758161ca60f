"""The kernel of the simulation: the machines of many messages, put to a clock, in integers only.

All that it knows is one array of integers, the *memory*.  Its first words are *registers*, with fixed addresses;
behind them are records: an event, a row, a message and a link are known by the addresses of their records, and
``m[slot + KEY]`` is a field of one.

A *row* is a state of one product of machines (those of a copy, of a producer, of its window …), as the engine has them;
``m[row + SUCCESSOR + signal]`` is the row after it, :data:`REFUSED`, or :data:`UNKNOWN` until somebody asks the
tables.  Then :func:`run` returns :data:`FILL` and goes on where it was when it is called again: nothing has happened
meanwhile, since an event moves all that take part in it or nothing.

A message is in a *slot* as long as anything can become of it.  Events that take no time happen at once; a frame, a
sync, a timer and the work of an application end at a time that is kept in a heap.  What is refused is tried again when
that has moved which refused it.

All functions mean the same to Python, on a list, and to Numba, on an array.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

__all__ = ["ENDED", "FILL", "FUNCTIONS", "GROW", "NOTHING", "PAUSE", "REFUSED", "UNKNOWN", "run"]

Memory: TypeAlias = list[int]
"""A list, or an array, of integers."""

# what run() returns
ENDED: Final = 0
FILL: Final = 1
GROW: Final = 2
PAUSE: Final = 3

# what an event came to
_NO: Final = 0
_DONE: Final = 1
_ASK: Final = 2

# what happens at a time
_FRAME_OF_SLOT: Final = 0
_FRAME_OF_LINK: Final = 1
_BROKER_READS: Final = 2
_PRODUCER_WAKES: Final = 3
_PROCESSED: Final = 4
_SYNCED: Final = 5
_TIMER: Final = 6
_CREDIT: Final = 7

# what a consumer does
_IDLE: Final = 0
_BUSY: Final = 1
_SETTLES: Final = 2
_AWAITS_ANSWER: Final = 3
_COMMITS: Final = 4
_AWAITS_COMMIT: Final = 5

NOTHING: Final = -1
REFUSED: Final = -1
UNKNOWN: Final = -2

# registers: the state of the run
NOW: Final = 0
SERIAL: Final = 1
CHANCE: Final = 2
FREE: Final = 3  # the first free slot
NEXT_KEY: Final = 4
NEXT_PLACE: Final = 62
WORK_FIRST: Final = 5  # slots to look at
WORK_LAST: Final = 6
TO_DISPATCH: Final = 7
UNSYNCED_FIRST: Final = 8  # slots and links that a sync has to take
UNSYNCED_LAST: Final = 9
TAKEN: Final = 10  # those that it is taking
SYNCING: Final = 11
NEXT_CONSUMER: Final = 12
BROKER_FREE: Final = 13
TIMED: Final = 14  # entries of the heap
MOVED: Final = 15  # moves of the event that is asked about
REFUSER: Final = 16
REFUSER_ROLE: Final = 17
ASKED_ROW: Final = 18
ASKED_SIGNAL: Final = 19
HELD: Final = 23  # nothing is dispatched yet
UNTIL_PAUSE: Final = 38  # so many times something is taken out of the heap
OVERFLOWN: Final = 63  # more events of a message waited for something than there was room for

# figures
HAPPENED: Final = 20
ACCEPTED: Final = 21
PROCESSED: Final = 22

# registers: where things are, and how many there is room for
HEAP: Final = 24
HEAP_ROOM: Final = 25
MOVES: Final = 26
SLOTS: Final = 27
FIRST_PRODUCER: Final = 28
FIRST_CONSUMER: Final = 29
QUEUE: Final = 30
BROKER: Final = 31
ACCEPTED_AT: Final = 32
PROCESSED_AT: Final = 33
CONFIRM_LATENCY: Final = 34
DELIVERY_LATENCY: Final = 35
INITIAL: Final = 36  # the row of a message that is not sent yet
READY: Final = 37  # the list of the queue that holds what may be dispatched
SCOPES_AT: Final = 39  # the scope of each: 0 producer, 1 queue, 2 consumer

# registers: the workload, in ticks and messages
MESSAGES: Final = 40
UP: Final = 41
DOWN: Final = 42
GROUP_COMMIT: Final = 43
PER_COMMIT: Final = 44  # 0 without transactions
SETTLED_AT: Final = 45
INTERVAL: Final = 46
PREFETCH: Final = 47  # 0 without a bound
CREDIT_ON_DELIVERY: Final = 48
WAITS_IN_CALL: Final = 49
SETTLES_WHEN_IDLE: Final = 50
TIMEOUT: Final = 51
HALF_RTT: Final = 52  # a time with its distribution: 0 constant, 1 exponential, 2 uniform up to twice the mean
SEND_TIME: Final = 54
BROKER_TIME: Final = 56
SYNC_TIME: Final = 58
PROCESSING_TIME: Final = 60

# registers: events that those who act bring about or notice
E_SEND: Final = 64
E_COMMIT: Final = 65
E_PROCESSED: Final = 66
E_ACKNOWLEDGE: Final = 67
E_CONSUMER_COMMIT: Final = 68
E_ACCEPT: Final = 69
E_ARRIVE: Final = 70
E_CONFIRMED: Final = 71
E_BY_RANGE: Final = 72
E_COMMIT_RETURNED: Final = 73
E_CONSUMER_COMMIT_RETURNED: Final = 74

# registers: the lists of all messages of a link that take part in its events
ALL_OF_PRODUCER: Final = 76
ALL_OF_CONSUMER: Final = 77

REGISTERS: Final = 80

# an event
WAY: Final = 0
ROLES: Final = 1  # the groups that take part, as bits
SIGNAL: Final = 2  # that to its own message
BIT: Final = 3  # of those that take time; 0 for all others
OF_LINK: Final = 4
BROADCASTS: Final = 5  # how many follow, each in three words
TO_OTHERS: Final = 6

# a broadcast of an event
B_LIST: Final = 0
B_SIGNAL: Final = 1
B_LATER: Final = 2  # 1: earlier messages hear of a later one, 0: later ones of an earlier one
BROADCAST_SIZE: Final = 3

# how an event is brought about
AT_ONCE: Final = 0
FRAME: Final = 1
SYNC: Final = 2
DISPATCH: Final = 3
TIMER: Final = 4

# a row
INDEXED: Final = 0  # the lists in which a message with this row stands, as bits
FINISHED: Final = 1
ACKNOWLEDGEABLE: Final = 2
AWAITS_ANSWER: Final = 3
DELIVERED_BY: Final = 4
ENABLED: Final = 5  # events of its own, then NOTHING
EVENTS_OF_A_ROW: Final = 24
SUCCESSOR: Final = ENABLED + EVENTS_OF_A_ROW

# the roles of groups of machines, in the order of spec/execution.yaml
LAST_OF_PRODUCER: Final = 3
PREFETCH_ROLE: Final = 5
BROKER_ROLE: Final = 6

# what slots and links have in common
NEXT_UNSYNCED: Final = 0
FLYING: Final = 1  # frames that are on their way, as bits
ARRIVED: Final = 2  # of them those that have come
QUEUED: Final = 3  # 0, or what the next sync takes
SYNCED: Final = 4
FIRST_BLOCK: Final = 5  # who waits for this to move
IS_LINK: Final = 6

# a slot
ROW: Final = 7
KEY: Final = 8
PRODUCER: Final = 9
CONSUMER: Final = 10
SENT_AT: Final = 11
LINKED: Final = 12  # the lists in which it stands
NEXT_FREE: Final = 13
NEXT_WORK: Final = 14
IN_WORK: Final = 15
NEXT_IN_LIBRARY: Final = 16
PLACE: Final = 17  # in the queue: producers may get their messages there in another order than that of sending
BLOCKS: Final = 18

# a block: that an event of a slot waits for something to move
BLOCK_NEXT: Final = 0
BLOCK_BEFORE: Final = 1
BLOCK_PLACE: Final = 2
BLOCK_ROLE: Final = 3
BLOCK_SIGNAL: Final = 4
BLOCK_SLOT: Final = 5
BLOCK_SIZE: Final = 6
BLOCKS_OF_A_SLOT: Final = 4

NEIGHBOURS: Final = BLOCKS + BLOCK_SIZE * BLOCKS_OF_A_SLOT  # in each list: behind, and before
PER_LIST: Final = 2

# a link, and the queue and the broker, which have its lists and groups
NEXT_LINK: Final = 7
GROUPS: Final = 8  # the row of each role
ROLE_COUNT: Final = 7
WAITS: Final = 15
TIMER_AT: Final = 16
IS_PRODUCER: Final = 17
HAS_TO_ACT: Final = 18

# a producer
SENT: Final = 19
IN_TRANSACTION: Final = 20
READY_AT: Final = 21
SOCKET_AT: Final = 22
WAKES_AT: Final = 23
IN_CALL: Final = 24
LINE_FREE: Final = 25
QUOTA: Final = 26

# a consumer
ACTING: Final = 19
CURRENT: Final = 20
UNSETTLED: Final = 21
CONSUMED: Final = 22
OUT: Final = 23
IS_DUE: Final = 24
DOWN_FREE: Final = 25
LIBRARY_FIRST: Final = 26
LIBRARY_LAST: Final = 27

ENDS: Final = 28  # of each list: its first, and its last

# an entry of the heap
AT: Final = 0
ORDER: Final = 1
KIND: Final = 2
SUBJECT: Final = 3
EVENT: Final = 4
ENTRY_SIZE: Final = 5

# a move
M_ROLE: Final = 0
M_SUBJECT: Final = 1
M_TARGET: Final = 2
MOVE_SIZE: Final = 3


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
    for each in range(BLOCKS_OF_A_SLOT):
        block = slot + BLOCKS + each * BLOCK_SIZE
        if m[block + BLOCK_PLACE] == NOTHING:
            place = m[REFUSER]
            first = m[place + FIRST_BLOCK]
            m[block + BLOCK_PLACE], m[block + BLOCK_ROLE], m[block + BLOCK_SIGNAL] = place, m[REFUSER_ROLE], signal
            m[block + BLOCK_NEXT], m[block + BLOCK_BEFORE] = first, NOTHING
            if first != NOTHING:
                m[first + BLOCK_BEFORE] = block
            m[place + FIRST_BLOCK] = block
            return
    m[OVERFLOWN] = 1


def wake_those_that_wait_for_slot(m: Memory, slot: int) -> None:
    """``slot`` has moved."""
    block = m[slot + FIRST_BLOCK]
    while block != NOTHING:
        after = m[block + BLOCK_NEXT]
        add_work(m, m[block + BLOCK_SLOT])
        drop_block(m, block)
        block = after


def wake_those_that_wait_for_group(m: Memory, link: int, role: int, row: int) -> None:
    """A group of ``link`` has moved to ``row``."""
    block = m[link + FIRST_BLOCK]
    while block != NOTHING:
        after = m[block + BLOCK_NEXT]
        if m[block + BLOCK_ROLE] == role and m[row + SUCCESSOR + m[block + BLOCK_SIGNAL]] != REFUSED:
            add_work(m, m[block + BLOCK_SLOT])
            drop_block(m, block)
        block = after


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


# events


def add_move(m: Memory, role: int, subject: int, row: int, signal: int) -> int:
    """Note where one participant would go."""
    target = m[row + SUCCESSOR + signal]
    if target == row:
        return _DONE
    if target == UNKNOWN:
        m[ASKED_ROW], m[ASKED_SIGNAL] = row, signal
        return _ASK
    if target == REFUSED:
        m[REFUSER_ROLE], m[REFUSER] = role, subject
        return _NO
    move = m[MOVES] + m[MOVED] * MOVE_SIZE
    m[move], m[move + M_SUBJECT], m[move + M_TARGET] = role, subject, target
    m[MOVED] += 1
    return _DONE


def ask_groups(m: Memory, event: int, slot: int) -> int:
    """Where the message and the groups that take part in its event would go."""
    roles, signal = m[event + ROLES], m[event + SIGNAL]
    for role in range(ROLE_COUNT):
        if roles >> role & 1 == 0:
            continue
        if role == 0:
            answer = add_move(m, 0, slot, m[slot + ROW], signal)
        else:
            link = m[BROKER] if role == BROKER_ROLE else m[slot + (CONSUMER if role > LAST_OF_PRODUCER else PRODUCER)]
            if link == NOTHING:
                continue
            answer = add_move(m, role, link, m[link + GROUPS + role], signal)
        if answer != _DONE:
            return answer
    return _DONE


def ask_others(m: Memory, event: int, slot: int) -> int:
    """Where other messages would go."""
    broadcast = event + TO_OTHERS
    for _ in range(m[event + BROADCASTS]):
        at, signal = m[broadcast], m[broadcast + B_SIGNAL]
        scope = scope_of(m, at, slot)
        if scope != NOTHING:
            ends, here, order = scope + ENDS + PER_LIST * at, NEIGHBOURS + PER_LIST * at, order_in(m, at)
            mine = m[slot + order]
            if m[broadcast + B_LATER]:
                other = m[ends]
                while other != NOTHING and m[other + order] < mine:
                    answer = add_move(m, 0, other, m[other + ROW], signal)
                    if answer != _DONE:
                        return answer
                    other = m[other + here]
            else:
                other = m[ends + 1]
                while other != NOTHING and m[other + order] > mine:
                    answer = add_move(m, 0, other, m[other + ROW], signal)
                    if answer != _DONE:
                        return answer
                    other = m[other + here + 1]
        broadcast += BROADCAST_SIZE
    return _DONE


def carry_out(m: Memory, slot: int) -> None:
    """All that take part move; ``slot`` is looked at anyway."""
    m[HAPPENED] += 1
    for each in range(m[MOVED]):
        move = m[MOVES] + each * MOVE_SIZE
        role, subject, target = m[move], m[move + M_SUBJECT], m[move + M_TARGET]
        if role == 0:
            m[subject + ROW] = target
            stand_in(m, subject, m[target + INDEXED])
            wake_those_that_wait_for_slot(m, subject)
            if subject != slot:
                add_work(m, subject)
            m[m[subject + PRODUCER] + WAITS] = 1
            if m[subject + CONSUMER] != NOTHING:
                m[m[subject + CONSUMER] + WAITS] = 1
        else:
            m[subject + GROUPS + role] = target
            m[subject + WAITS] = 1
            wake_those_that_wait_for_group(m, subject, role, target)
            if role == PREFETCH_ROLE:
                m[TO_DISPATCH] = 1
            else:
                m[subject + HAS_TO_ACT] = 1


def perform(m: Memory, event: int, slot: int) -> int:
    """One event of a message; what it came to."""
    m[MOVED] = 0
    answer = ask_groups(m, event, slot)
    if answer == _DONE:
        answer = ask_others(m, event, slot)
    if answer == _DONE:
        carry_out(m, slot)
        notice(m, event, slot)
    return answer


def perform_of_link(m: Memory, event: int, link: int) -> int:
    """One event of a link: its groups, the broker and all its messages take part."""
    m[MOVED] = 0
    roles, signal = m[event + ROLES], m[event + SIGNAL]
    for role in range(1, ROLE_COUNT):
        if roles >> role & 1:
            of = m[BROKER] if role == BROKER_ROLE else link
            row = m[of + GROUPS + role]
            answer = _DONE if row == NOTHING else add_move(m, role, of, row, signal)
            if answer != _DONE:
                return answer
    if roles & 1:
        at = m[ALL_OF_PRODUCER] if m[link + IS_PRODUCER] else m[ALL_OF_CONSUMER]
        other = m[link + ENDS + PER_LIST * at]
        while other != NOTHING:
            answer = add_move(m, 0, other, m[other + ROW], signal)
            if answer != _DONE:
                return answer
            other = m[other + NEIGHBOURS + PER_LIST * at]
    carry_out(m, NOTHING)
    m[link + WAITS] = m[link + HAS_TO_ACT] = 1
    if event == m[E_COMMIT_RETURNED]:
        return_from_call(m, link)
    elif event == m[E_CONSUMER_COMMIT_RETURNED]:
        m[link + ACTING] = _IDLE
    return _DONE


def return_from_call(m: Memory, producer: int) -> None:
    """The call of a producer returns, and it works for its next message."""
    if m[producer + IN_CALL]:
        m[producer + IN_CALL] = 0
        m[producer + READY_AT] = max(m[producer + READY_AT], m[NOW] + drawn(m, SEND_TIME))


def notice(m: Memory, event: int, slot: int) -> None:
    """What those who act, and the figures, make of an event that happened to ``slot``."""
    producer, consumer = m[slot + PRODUCER], m[slot + CONSUMER]
    if event == m[E_ACCEPT]:
        m[m[ACCEPTED_AT] + m[ACCEPTED]] = m[NOW]
        m[ACCEPTED] += 1
    elif event == m[E_CONFIRMED] or event == m[E_BY_RANGE]:
        m[m[CONFIRM_LATENCY] + m[slot + KEY]] = m[NOW] - m[slot + SENT_AT]
        return_from_call(m, producer)
    elif event == m[E_ARRIVE]:
        m[slot + NEXT_IN_LIBRARY] = NOTHING
        if m[consumer + LIBRARY_FIRST] == NOTHING:
            m[consumer + LIBRARY_FIRST] = slot
        else:
            m[m[consumer + LIBRARY_LAST] + NEXT_IN_LIBRARY] = slot
        m[consumer + LIBRARY_LAST] = slot
    m[producer + HAS_TO_ACT] = 1
    if consumer != NOTHING:
        m[consumer + HAS_TO_ACT] = 1


# frames


def send_frame(m: Memory, event: int, slot: int) -> None:
    """A frame of a message goes out: only messages take bandwidth."""
    begin, kind = m[NOW], _FRAME_OF_SLOT
    if event == m[E_ACCEPT]:
        producer = m[slot + PRODUCER]
        m[producer + SOCKET_AT] = max(begin, m[producer + LINE_FREE])
        begin = m[producer + LINE_FREE] = m[producer + SOCKET_AT] + m[UP]
        if m[BROKER_TIME] > 0:
            kind = _BROKER_READS
    elif event == m[E_ARRIVE]:
        consumer = m[slot + CONSUMER]
        begin = m[consumer + DOWN_FREE] = max(begin, m[consumer + DOWN_FREE]) + m[DOWN]
    push(m, begin + drawn(m, HALF_RTT), kind, slot, event)


# what follows


def look_at(m: Memory, slot: int) -> int:
    """Bring about all that ``slot`` allows now, and note what the rest waits for."""
    drop_blocks(m, slot)
    at = m[slot + ROW] + ENABLED
    while m[at] != NOTHING:
        event = m[at]
        at += 1
        if not is_due_now(m, event, slot):
            continue
        answer = perform(m, event, slot)
        if answer == _ASK:
            return FILL
        if answer == _NO:
            wait_for_refuser(m, slot, m[event + SIGNAL])
            continue
        forget_bit(m, slot, m[event + BIT])
        drop_blocks(m, slot)
        at = m[slot + ROW] + ENABLED
    if m[m[slot + ROW] + FINISHED] and m[slot + FLYING] == 0 and m[slot + QUEUED] == 0:
        release(m, slot)
    return ENDED


def is_due_now(m: Memory, event: int, slot: int) -> bool:
    """Whether an event that ``slot`` allows is brought about now; if not, that it begins to come about."""
    way, bit = m[event + WAY], m[event + BIT]
    if way == AT_ONCE:
        return True
    if way == FRAME:
        if m[slot + FLYING] & bit == 0:
            m[slot + FLYING] |= bit
            send_frame(m, event, slot)
            return False
        return m[slot + ARRIVED] & bit != 0
    if way == SYNC:
        if m[slot + SYNCED] & bit:
            return True
        if m[slot + QUEUED] == 0:
            add_unsynced(m, slot)
    elif way == DISPATCH:
        m[TO_DISPATCH] = 1
    return False


def forget_bit(m: Memory, subject: int, bit: int) -> None:
    """What took time has happened."""
    m[subject + FLYING] &= ~bit
    m[subject + ARRIVED] &= ~bit
    m[subject + SYNCED] &= ~bit


def release(m: Memory, slot: int) -> None:
    """Nothing more can become of the message in ``slot``."""
    drop_blocks(m, slot)
    stand_in(m, slot, 0)
    m[slot + ROW] = NOTHING
    m[slot + NEXT_FREE] = m[FREE]
    m[FREE] = slot


def look_at_link(m: Memory, link: int) -> int:
    """Bring about all that the groups of ``link`` allow now."""
    role = 1
    while role < ROLE_COUNT:
        at = m[link + GROUPS + role] + ENABLED
        role += 1
        while at >= ENABLED and m[at] != NOTHING:
            answer = try_of_link(m, m[at], link)
            at += 1
            if answer == _ASK:
                return FILL
            if answer == _DONE:
                role = 1
                break
    return ENDED


def try_of_link(m: Memory, event: int, link: int) -> int:
    """Bring an event of ``link`` about, if its time has come."""
    way, bit = m[event + WAY], m[event + BIT]
    if way == DISPATCH or m[event + OF_LINK] == 0:
        return _NO
    if way == TIMER:
        return run_timer(m, event, link)
    if way == FRAME:
        if m[link + FLYING] & bit == 0:
            m[link + FLYING] |= bit
            push(m, m[NOW] + drawn(m, HALF_RTT), _FRAME_OF_LINK, link, event)
            return _NO
        if m[link + ARRIVED] & bit == 0:
            return _NO
    elif way == SYNC and m[link + SYNCED] & bit == 0:
        if m[link + QUEUED] == 0:
            add_unsynced(m, link)
        return _NO
    answer = perform_of_link(m, event, link)
    if answer == _DONE:
        forget_bit(m, link, bit)
    return answer


def run_timer(m: Memory, event: int, link: int) -> int:
    """Start the timer of ``link`` as soon as it may fire, fire it when its time has come, stop it when it may not."""
    signal = m[event + SIGNAL]
    for role in range(1, ROLE_COUNT):
        row = m[link + GROUPS + role]
        if m[event + ROLES] >> role & 1 and row != NOTHING:
            target = m[row + SUCCESSOR + signal]
            if target == UNKNOWN:
                m[ASKED_ROW], m[ASKED_SIGNAL] = row, signal
                return _ASK
            if target == REFUSED:
                m[link + TIMER_AT] = 0
                return _NO
    if m[link + TIMER_AT] == 0:
        m[link + TIMER_AT] = m[NOW] + m[TIMEOUT]
        push(m, m[link + TIMER_AT], _TIMER, link, 0)
        return _NO
    if m[NOW] < m[link + TIMER_AT]:
        return _NO
    answer = perform_of_link(m, event, link)
    if answer == _DONE:
        m[link + TIMER_AT] = 0
    return answer


def produce(m: Memory, producer: int) -> int:
    """The next call of a producer, if it may be made now."""
    if m[producer + IN_CALL]:
        return ENDED
    sends = m[producer + SENT] < m[producer + QUOTA]
    together = m[producer + IN_TRANSACTION]
    if m[PER_COMMIT] > 0 and together > 0 and (together >= m[PER_COMMIT] or not sends):
        answer = perform_of_link(m, m[E_COMMIT], producer)
        if answer == _DONE:
            m[producer + IN_TRANSACTION], m[producer + IN_CALL] = 0, 1
        return FILL if answer == _ASK else ENDED
    if not sends:
        return ENDED
    at = max(m[producer + READY_AT], m[producer + SOCKET_AT])
    if at <= m[NOW]:
        return send(m, producer)
    if m[producer + WAKES_AT] != at:
        m[producer + WAKES_AT] = at
        push(m, at, _PRODUCER_WAKES, producer, 0)
    return ENDED


def send(m: Memory, producer: int) -> int:
    """The producer sends its next message, if nothing refuses that."""
    slot = m[FREE]
    m[slot + ROW], m[slot + KEY], m[slot + SENT_AT] = m[INITIAL], m[NEXT_KEY], m[NOW]
    m[slot + PRODUCER], m[slot + CONSUMER], m[slot + PLACE] = producer, NOTHING, NOTHING
    m[slot + ARRIVED] = m[slot + SYNCED] = 0
    answer = perform(m, m[E_SEND], slot)
    if answer != _DONE:
        m[slot + ROW] = NOTHING
        return FILL if answer == _ASK else ENDED
    m[FREE] = m[slot + NEXT_FREE]
    m[NEXT_KEY] += 1
    m[producer + SENT] += 1
    m[producer + IN_TRANSACTION] += 1
    m[producer + IN_CALL] = m[WAITS_IN_CALL]
    worked = m[NOW] if m[WAITS_IN_CALL] else m[NOW] + drawn(m, SEND_TIME)
    m[producer + READY_AT] = max(worked, m[producer + SENT] * m[INTERVAL])
    m[producer + HAS_TO_ACT] = 1
    add_work(m, slot)
    return ENDED


def consume(m: Memory, consumer: int) -> int:
    """What a consumer does next, until it has to wait for something."""
    answer = _DONE
    while answer == _DONE:
        doing, slot = m[consumer + ACTING], m[consumer + CURRENT]
        answer = _NO
        if doing == _IDLE:
            answer = take_next(m, consumer)
        elif doing == _BUSY:
            answer = finish(m, consumer, slot)
        elif doing == _SETTLES:
            answer = settle(m, consumer, slot)
        elif doing == _AWAITS_ANSWER:
            if m[slot + ROW] == NOTHING or m[m[slot + ROW] + AWAITS_ANSWER] == 0:
                m[consumer + ACTING] = _IDLE
                answer = _DONE
        elif doing == _COMMITS:
            answer = perform_of_link(m, m[E_CONSUMER_COMMIT], consumer)
            if answer == _DONE:
                m[consumer + ACTING] = _AWAITS_COMMIT
    return FILL if answer == _ASK else ENDED


def take_next(m: Memory, consumer: int) -> int:
    """Take the next message from the library, which may have to acknowledge it first."""
    slot = m[consumer + LIBRARY_FIRST]
    if slot == NOTHING:
        return _NO
    row, answer = m[slot + ROW], _NO
    event = m[row + DELIVERED_BY]
    if event != NOTHING:
        answer = perform(m, event, slot)
        if answer == _DONE:
            hand_over(m, consumer, slot)
            return _DONE
    if answer == _NO and m[row + ACKNOWLEDGEABLE]:
        answer = perform(m, m[E_ACKNOWLEDGE], slot)
        if answer == _DONE:
            add_work(m, slot)
    return answer


def hand_over(m: Memory, consumer: int, slot: int) -> None:
    """The application has the message, and is busy with it."""
    m[consumer + LIBRARY_FIRST] = m[slot + NEXT_IN_LIBRARY]
    m[consumer + CURRENT], m[consumer + ACTING], m[consumer + IS_DUE] = slot, _BUSY, 0
    m[m[DELIVERY_LATENCY] + m[slot + KEY]] = m[NOW] - m[slot + SENT_AT]
    push(m, m[NOW] + drawn(m, PROCESSING_TIME), _PROCESSED, consumer, 0)
    if m[PREFETCH] > 0 and m[CREDIT_ON_DELIVERY]:
        push(m, m[NOW] + drawn(m, HALF_RTT), _CREDIT, consumer, 0)
    add_work(m, slot)


def finish(m: Memory, consumer: int, slot: int) -> int:
    """The application is done with its message, if the time has come."""
    if m[consumer + IS_DUE] == 0:
        return _NO
    answer = perform(m, m[E_PROCESSED], slot)
    if answer == _DONE:
        m[m[PROCESSED_AT] + m[PROCESSED]] = m[NOW]
        m[PROCESSED] += 1
        m[consumer + CONSUMED] += 1
        m[consumer + UNSETTLED] += 1
        m[consumer + ACTING] = _SETTLES
    return answer


def settle(m: Memory, consumer: int, slot: int) -> int:
    """Acknowledge what the application has processed, if so many are together, or there are no more."""
    last, commits, row = m[PROCESSED] == m[MESSAGES], m[PER_COMMIT] > 0, m[slot + ROW]
    together = commits or m[consumer + UNSETTLED] >= m[SETTLED_AT]
    idle = m[SETTLES_WHEN_IDLE] and m[consumer + LIBRARY_FIRST] == NOTHING
    if m[row + ACKNOWLEDGEABLE] and (together or idle or last):
        answer = perform(m, m[E_ACKNOWLEDGE], slot)
        if answer != _DONE:
            return answer
        if not commits:
            m[consumer + UNSETTLED] = 0
    if commits and (m[consumer + UNSETTLED] >= m[PER_COMMIT] or last):
        m[consumer + UNSETTLED] = 0
        m[consumer + ACTING] = _COMMITS
    elif m[m[slot + ROW] + AWAITS_ANSWER]:
        m[consumer + ACTING] = _AWAITS_ANSWER
    else:
        m[consumer + ACTING] = _IDLE
    add_work(m, slot)
    return _DONE


def dispatch(m: Memory) -> int:
    """Send the first message of the queue to the next consumer with room, and so on."""
    first = m[QUEUE] + ENDS + PER_LIST * m[READY]
    while m[first] != NOTHING:
        slot = m[first]
        at = m[slot + ROW] + ENABLED
        while m[at] != NOTHING and m[m[at] + WAY] != DISPATCH:
            at += 1
        if m[at] == NOTHING:
            return ENDED
        answer = dispatch_to_one(m, m[at], slot)
        if answer != _DONE:
            return FILL if answer == _ASK else ENDED
    return ENDED


def dispatch_to_one(m: Memory, event: int, slot: int) -> int:
    """Send a message to the next consumer with room."""
    begin = consumer = m[NEXT_CONSUMER]
    while True:
        following = m[consumer + NEXT_LINK]
        if following == NOTHING:
            following = m[FIRST_CONSUMER]
        if not m[CREDIT_ON_DELIVERY] or m[PREFETCH] == 0 or m[consumer + OUT] < m[PREFETCH]:
            m[slot + CONSUMER] = consumer
            answer = perform(m, event, slot)
            if answer == _DONE:
                m[consumer + OUT] += 1
                m[NEXT_CONSUMER] = following
                add_work(m, slot)
                return _DONE
            m[slot + CONSUMER] = NOTHING
            if answer == _ASK:
                return _ASK
        consumer = following
        if consumer == begin:
            return _NO


# syncs


def start_sync(m: Memory) -> bool:
    """Sync what is written: all of it, or the first; whether that took no time."""
    if m[SYNCING] or m[UNSYNCED_FIRST] == NOTHING:
        return False
    subject = m[TAKEN] = m[UNSYNCED_FIRST]
    m[UNSYNCED_FIRST] = NOTHING
    while subject != NOTHING:
        m[subject + QUEUED] = bits_to_sync(m, subject)
        after = m[subject + NEXT_UNSYNCED]
        if not m[GROUP_COMMIT]:
            m[UNSYNCED_FIRST] = after
            m[subject + NEXT_UNSYNCED] = after = NOTHING
        subject = after
    if m[SYNC_TIME] == 0:
        end_sync(m)
        return True
    m[SYNCING] = 1
    push(m, m[NOW] + drawn(m, SYNC_TIME), _SYNCED, 0, 0)
    return False


def bits_to_sync(m: Memory, subject: int) -> int:
    """The syncs for which a slot or a link waits, as bits: what it has written by now."""
    if not m[subject + IS_LINK]:
        return bits_of_row(m, m[subject + ROW])
    bits = 0
    for role in range(1, ROLE_COUNT):
        row = m[subject + GROUPS + role]
        if row != NOTHING:
            bits |= bits_of_row(m, row)
    return bits


def bits_of_row(m: Memory, row: int) -> int:
    """The syncs for which a row waits."""
    bits, at = 0, row + ENABLED
    while m[at] != NOTHING:
        if m[m[at] + WAY] == SYNC:
            bits |= m[m[at] + BIT]
        at += 1
    return bits


def end_sync(m: Memory) -> None:
    """What the sync took is on stable storage."""
    subject = m[TAKEN]
    while subject != NOTHING:
        after = m[subject + NEXT_UNSYNCED]
        m[subject + SYNCED] |= m[subject + QUEUED]
        m[subject + QUEUED] = 0
        if m[subject + IS_LINK]:
            m[subject + WAITS] = 1
        else:
            add_work(m, subject)
        subject = after
    m[SYNCING] = 0


# time


def happen(m: Memory) -> None:
    """What is the first to happen happens."""
    entry = m[HEAP]
    m[NOW] = m[entry]
    kind, subject, event = m[entry + KIND], m[entry + SUBJECT], m[entry + EVENT]
    pop(m)
    if kind == _FRAME_OF_SLOT:
        if allows(m, m[subject + ROW], event):
            m[subject + ARRIVED] |= m[event + BIT]
        else:
            m[subject + FLYING] &= ~m[event + BIT]
        add_work(m, subject)
    elif kind == _BROKER_READS:
        m[BROKER_FREE] = max(m[NOW], m[BROKER_FREE]) + drawn(m, BROKER_TIME)
        push(m, m[BROKER_FREE], _FRAME_OF_SLOT, subject, event)
    elif kind == _SYNCED:
        end_sync(m)
    elif kind == _CREDIT:
        m[subject + OUT] -= 1
        m[TO_DISPATCH] = 1
    elif kind == _FRAME_OF_LINK:
        m[subject + ARRIVED] |= m[event + BIT]
        m[subject + WAITS] = 1
    elif kind == _TIMER:
        m[subject + WAITS] = 1
    else:
        if kind == _PROCESSED:
            m[subject + IS_DUE] = 1
        m[subject + HAS_TO_ACT] = 1


def allows(m: Memory, row: int, event: int) -> bool:
    """Whether a row allows an event of its own."""
    at = row + ENABLED
    while m[at] != NOTHING:
        if m[at] == event:
            return True
        at += 1
    return False


def settle_down(m: Memory) -> int:
    """Do all that takes no time; :data:`ENDED` when nothing is left of that."""
    while True:
        if m[FREE] == NOTHING or m[TIMED] + m[SLOTS] + 64 > m[HEAP_ROOM]:
            return GROW
        slot = m[WORK_FIRST]
        if slot != NOTHING:
            if m[slot + ROW] != NOTHING and look_at(m, slot) == FILL:
                return FILL
            m[WORK_FIRST] = m[slot + NEXT_WORK]
            m[slot + IN_WORK] = 0
            continue
        if m[TO_DISPATCH] and not m[HELD]:
            if dispatch(m) == FILL:
                return FILL
            m[TO_DISPATCH] = 0
            continue
        code = visit_links(m)
        if code != GROW:
            return code


def visit_links(m: Memory) -> int:
    """Let each link do what it has to; :data:`GROW` if one had, and what follows comes first."""
    link = m[FIRST_PRODUCER]
    while link != NOTHING:
        if m[link + WAITS]:
            m[link + WAITS] = 0
            if look_at_link(m, link) == FILL:
                m[link + WAITS] = 1
                return FILL
            return GROW
        if m[link + HAS_TO_ACT]:
            m[link + HAS_TO_ACT] = 0
            code = produce(m, link) if m[link + IS_PRODUCER] else consume(m, link)
            if code == FILL:
                m[link + HAS_TO_ACT] = 1
                return FILL
            return GROW
        link = m[link + NEXT_LINK]
    return ENDED


def run(m: Memory) -> int:
    """Run until nothing is left to happen, or something is missing: which of that."""
    while True:
        code = settle_down(m)
        if code != ENDED:
            return code
        if start_sync(m):
            continue
        if m[TIMED] == 0:
            return ENDED
        happen(m)
        m[UNTIL_PAUSE] -= 1
        if m[UNTIL_PAUSE] == 0:
            return PAUSE


FUNCTIONS = (
    *(put, push, pop, drawn, add_work, add_unsynced, drop_block, drop_blocks, wait_for_refuser),
    *(
        wake_those_that_wait_for_slot,
        wake_those_that_wait_for_group,
        scope_of,
        order_in,
        link_in,
        link_out,
        stand_in,
        add_move,
    ),
    *(ask_groups, ask_others, carry_out, return_from_call, notice, perform, perform_of_link, send_frame, forget_bit),
    *(
        release,
        is_due_now,
        look_at,
        run_timer,
        try_of_link,
        look_at_link,
        send,
        produce,
        hand_over,
        take_next,
        finish,
        settle,
    ),
    *(consume, dispatch_to_one, dispatch, bits_of_row, bits_to_sync, end_sync, start_sync, allows, happen),
    *(visit_links, settle_down, run),
)
"""In the order in which they call each other, callees first."""
