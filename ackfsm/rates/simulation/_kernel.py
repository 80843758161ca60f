"""The kernel of the simulation: the machines of many messages, put to a clock, in integers only.

All that it knows is its memory (:mod:`ackfsm.rates.simulation._layout`).  Where the tables have to be asked for a row,
:func:`run` returns :data:`FILL` and goes on where it was when it is called again: nothing has happened meanwhile, since
an event moves all that take part in it or nothing.

Events that take no time happen at once; a frame, a sync, a timer and the work of an application end at a time that is
kept in a heap.  What is refused is tried again when that has moved which refused it.

All functions mean the same to Python, on a list, and to Numba, on an array.
"""

from __future__ import annotations

from ackfsm.rates.simulation import _resources
from ackfsm.rates.simulation._layout import *
from ackfsm.rates.simulation._resources import (
    add_unsynced,
    add_work,
    drawn,
    drop_blocks,
    order_in,
    pop,
    push,
    scope_of,
    stand_in,
    wait_for_refuser,
    wake_those_that_wait_for_group,
    wake_those_that_wait_for_slot,
)

__all__ = ["FUNCTIONS", "run"]


# events


def add_move(m: Memory, role: int, subject: int, row: int, signal: int) -> int:
    """Note where one participant would go."""
    target = m[row + SUCCESSOR + signal]
    if target == row:
        return DONE
    if target == UNKNOWN:
        m[ASKED_ROW], m[ASKED_SIGNAL] = row, signal
        return ASK
    if target == REFUSED:
        m[REFUSER_ROLE], m[REFUSER] = role, subject
        return NO
    move = m[MOVES] + m[MOVED] * MOVE_SIZE
    m[move], m[move + M_SUBJECT], m[move + M_TARGET] = role, subject, target
    m[MOVED] += 1
    return DONE


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
        if answer != DONE:
            return answer
    return DONE


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
                    if answer != DONE:
                        return answer
                    other = m[other + here]
            else:
                other = m[ends + 1]
                while other != NOTHING and m[other + order] > mine:
                    answer = add_move(m, 0, other, m[other + ROW], signal)
                    if answer != DONE:
                        return answer
                    other = m[other + here + 1]
        broadcast += BROADCAST_SIZE
    return DONE


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
    """Perform one event of a message; return its outcome."""
    m[MOVED] = 0
    answer = ask_groups(m, event, slot)
    if answer == DONE:
        answer = ask_others(m, event, slot)
    if answer == DONE:
        carry_out(m, slot)
        notice(m, event, slot)
    return answer


def ask_groups_of_link(m: Memory, event: int, link: int) -> int:
    """Where the groups of a link and of the broker would go."""
    roles, signal = m[event + ROLES], m[event + SIGNAL]
    for role in range(1, ROLE_COUNT):
        if roles >> role & 1:
            of = m[BROKER] if role == BROKER_ROLE else link
            row = m[of + GROUPS + role]
            answer = DONE if row == NOTHING else add_move(m, role, of, row, signal)
            if answer != DONE:
                return answer
    return DONE


def ask_messages_of_link(m: Memory, event: int, link: int) -> int:
    """Where all messages of a link would go."""
    signal, at = m[event + SIGNAL], m[ALL_OF_PRODUCER] if m[link + IS_PRODUCER] else m[ALL_OF_CONSUMER]
    other = m[link + ENDS + PER_LIST * at]
    while other != NOTHING:
        answer = add_move(m, 0, other, m[other + ROW], signal)
        if answer == NO:
            m[link + REFUSED_EVENT], m[link + REFUSED_BY] = event, other
        if answer != DONE:
            return answer
        other = m[other + NEIGHBOURS + PER_LIST * at]
    return DONE


def still_refused(m: Memory, event: int, link: int) -> bool:
    """Whether the message of ``link`` that has refused its event before does so still."""
    slot = m[link + REFUSED_BY]
    if m[link + REFUSED_EVENT] != event or m[slot + ROW] == NOTHING:
        return False
    at, of = (ALL_OF_PRODUCER, PRODUCER) if m[link + IS_PRODUCER] else (ALL_OF_CONSUMER, CONSUMER)
    here = m[slot + of] == link and m[slot + LINKED] >> m[at] & 1
    return bool(here and m[m[slot + ROW] + SUCCESSOR + m[event + SIGNAL]] == REFUSED)


def perform_of_link(m: Memory, event: int, link: int) -> int:
    """One event of a link: its groups, the broker and all its messages take part."""
    if still_refused(m, event, link):
        return NO
    m[MOVED] = 0
    answer = ask_groups_of_link(m, event, link)
    if answer == DONE and m[event + ROLES] & 1:
        answer = ask_messages_of_link(m, event, link)
    if answer != DONE:
        return answer
    carry_out(m, NOTHING)
    m[link + WAITS] = m[link + HAS_TO_ACT] = 1
    if event == m[E_COMMIT_RETURNED]:
        return_from_call(m, link)
    elif event == m[E_CONSUMER_COMMIT_RETURNED]:
        m[link + ACTING] = IDLE
    return DONE


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
    begin, kind = m[NOW], FRAME_OF_SLOT
    if event == m[E_ACCEPT]:
        producer = m[slot + PRODUCER]
        m[producer + SOCKET_AT] = max(begin, m[producer + LINE_FREE])
        begin = m[producer + LINE_FREE] = m[producer + SOCKET_AT] + m[UP]
        if m[BROKER_TIME] > 0:
            kind = BROKER_READS
    elif event == m[E_ARRIVE]:
        consumer = m[slot + CONSUMER]
        begin = m[consumer + DOWN_FREE] = max(begin, m[consumer + DOWN_FREE]) + m[DOWN]
    push(m, begin + drawn(m, HALF_RTT), kind, slot, event)


# what follows


def look_at(m: Memory, slot: int) -> int:
    """Bring about all that ``slot`` allows now, and note the waits of the rest."""
    drop_blocks(m, slot)
    at = m[slot + ROW] + ENABLED
    while m[at] != NOTHING:
        event = m[at]
        at += 1
        if not is_due_now(m, event, slot):
            continue
        answer = perform(m, event, slot)
        if answer == ASK:
            return FILL
        if answer == NO:
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
            if answer == ASK:
                return FILL
            if answer == DONE:
                role = 1
                break
    return ENDED


def try_of_link(m: Memory, event: int, link: int) -> int:
    """Bring an event of ``link`` about, if its time has come."""
    way, bit = m[event + WAY], m[event + BIT]
    if way == DISPATCH or m[event + OF_LINK] == 0:
        return NO
    if way == TIMER:
        return run_timer(m, event, link)
    if way == FRAME:
        if m[link + FLYING] & bit == 0:
            m[link + FLYING] |= bit
            push(m, m[NOW] + drawn(m, HALF_RTT), FRAME_OF_LINK, link, event)
            return NO
        if m[link + ARRIVED] & bit == 0:
            return NO
    elif way == SYNC and m[link + SYNCED] & bit == 0:
        if m[link + QUEUED] == 0:
            add_unsynced(m, link)
        return NO
    answer = perform_of_link(m, event, link)
    if answer == DONE:
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
                return ASK
            if target == REFUSED:
                m[link + TIMER_AT] = 0
                return NO
    if m[link + TIMER_AT] == 0:
        m[link + TIMER_AT] = m[NOW] + m[TIMEOUT]
        push(m, m[link + TIMER_AT], TIMER_DONE, link, 0)
        return NO
    if m[NOW] < m[link + TIMER_AT]:
        return NO
    answer = perform_of_link(m, event, link)
    if answer == DONE:
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
        if answer == DONE:
            m[producer + IN_TRANSACTION], m[producer + IN_CALL] = 0, 1
        return FILL if answer == ASK else ENDED
    if not sends:
        return ENDED
    at = max(m[producer + READY_AT], m[producer + SOCKET_AT])
    if at <= m[NOW]:
        return send(m, producer)
    if m[producer + WAKES_AT] != at:
        m[producer + WAKES_AT] = at
        push(m, at, PRODUCER_WAKES, producer, 0)
    return ENDED


def send(m: Memory, producer: int) -> int:
    """The producer sends its next message, if nothing refuses that."""
    slot = m[FREE]
    m[slot + ROW], m[slot + KEY], m[slot + SENT_AT] = m[INITIAL], m[NEXT_KEY], m[NOW]
    m[slot + PRODUCER], m[slot + CONSUMER], m[slot + PLACE] = producer, NOTHING, NOTHING
    m[slot + ARRIVED] = m[slot + SYNCED] = 0
    answer = perform(m, m[E_SEND], slot)
    if answer != DONE:
        m[slot + ROW] = NOTHING
        return FILL if answer == ASK else ENDED
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
    """Take the next steps of a consumer, until it has to wait for something."""
    answer = DONE
    while answer == DONE:
        doing, slot = m[consumer + ACTING], m[consumer + CURRENT]
        answer = NO
        if doing == IDLE:
            answer = take_next(m, consumer)
        elif doing == BUSY:
            answer = finish(m, consumer, slot)
        elif doing == SETTLES:
            answer = settle(m, consumer, slot)
        elif doing == IN_ACKNOWLEDGE:
            if m[slot + ROW] == NOTHING or m[m[slot + ROW] + AWAITS_ANSWER] == 0:
                m[consumer + ACTING] = IDLE
                answer = DONE
        elif doing == COMMITS:
            answer = perform_of_link(m, m[E_CONSUMER_COMMIT], consumer)
            if answer == DONE:
                m[consumer + ACTING] = IN_COMMIT
    return FILL if answer == ASK else ENDED


def take_next(m: Memory, consumer: int) -> int:
    """Take the next message from the library, which may have to acknowledge it first."""
    slot = m[consumer + LIBRARY_FIRST]
    if slot == NOTHING:
        return NO
    row, answer = m[slot + ROW], NO
    event = m[row + DELIVERED_BY]
    if event != NOTHING:
        answer = perform(m, event, slot)
        if answer == DONE:
            hand_over(m, consumer, slot)
            return DONE
    if answer == NO and m[row + ACKNOWLEDGEABLE]:
        answer = perform(m, m[E_ACKNOWLEDGE], slot)
        if answer == DONE:
            add_work(m, slot)
    return answer


def hand_over(m: Memory, consumer: int, slot: int) -> None:
    """The application has the message, and is busy with it."""
    m[consumer + LIBRARY_FIRST] = m[slot + NEXT_IN_LIBRARY]
    m[consumer + CURRENT], m[consumer + ACTING], m[consumer + IS_DUE] = slot, BUSY, 0
    m[m[DELIVERY_LATENCY] + m[slot + KEY]] = m[NOW] - m[slot + SENT_AT]
    push(m, m[NOW] + drawn(m, PROCESSING_TIME), WORK_DONE, consumer, 0)
    if m[PREFETCH] > 0 and m[CREDIT_ON_DELIVERY]:
        push(m, m[NOW] + drawn(m, HALF_RTT), CREDIT, consumer, 0)
    add_work(m, slot)


def finish(m: Memory, consumer: int, slot: int) -> int:
    """The application is done with its message, if the time has come."""
    if m[consumer + IS_DUE] == 0:
        return NO
    answer = perform(m, m[E_PROCESSED], slot)
    if answer == DONE:
        m[m[PROCESSED_AT] + m[PROCESSED]] = m[NOW]
        m[PROCESSED] += 1
        m[consumer + CONSUMED] += 1
        m[consumer + UNSETTLED] += 1
        m[consumer + ACTING] = SETTLES
    return answer


def settle(m: Memory, consumer: int, slot: int) -> int:
    """Acknowledge the processed messages, if so many are together, or there are no more."""
    last, commits, row = m[PROCESSED] == m[MESSAGES], m[PER_COMMIT] > 0, m[slot + ROW]
    together = commits or m[consumer + UNSETTLED] >= m[SETTLED_AT]
    idle = m[SETTLES_WHEN_IDLE] and m[consumer + LIBRARY_FIRST] == NOTHING
    if m[row + ACKNOWLEDGEABLE] and (together or idle or last):
        answer = perform(m, m[E_ACKNOWLEDGE], slot)
        if answer != DONE:
            return answer
        if not commits:
            m[consumer + UNSETTLED] = 0
    if commits and (m[consumer + UNSETTLED] >= m[PER_COMMIT] or last):
        m[consumer + UNSETTLED] = 0
        m[consumer + ACTING] = COMMITS
    elif m[m[slot + ROW] + AWAITS_ANSWER]:
        m[consumer + ACTING] = IN_ACKNOWLEDGE
    else:
        m[consumer + ACTING] = IDLE
    add_work(m, slot)
    return DONE


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
        if answer != DONE:
            return FILL if answer == ASK else ENDED
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
            if answer == DONE:
                m[consumer + OUT] += 1
                m[NEXT_CONSUMER] = following
                add_work(m, slot)
                return DONE
            m[slot + CONSUMER] = NOTHING
            if answer == ASK:
                return ASK
        consumer = following
        if consumer == begin:
            return NO


# syncs


def start_sync(m: Memory) -> bool:
    """Sync the written records: all of them, or the first; return whether that took no time."""
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
    push(m, m[NOW] + drawn(m, SYNC_TIME), SYNC_DONE, 0, 0)
    return False


def bits_to_sync(m: Memory, subject: int) -> int:
    """Return the syncs for which a slot or a link waits, as bits: its written records."""
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
    """Mark the records of the sync as on stable storage."""
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
    """Let the earliest event in virtual time happen."""
    entry = m[HEAP]
    m[NOW] = m[entry]
    kind, subject, event = m[entry + KIND], m[entry + SUBJECT], m[entry + EVENT]
    pop(m)
    if kind == FRAME_OF_SLOT:
        if allows(m, m[subject + ROW], event):
            m[subject + ARRIVED] |= m[event + BIT]
        else:
            m[subject + FLYING] &= ~m[event + BIT]
        add_work(m, subject)
    elif kind == BROKER_READS:
        m[BROKER_FREE] = max(m[NOW], m[BROKER_FREE]) + drawn(m, BROKER_TIME)
        push(m, m[BROKER_FREE], FRAME_OF_SLOT, subject, event)
    elif kind == SYNC_DONE:
        end_sync(m)
    elif kind == CREDIT:
        m[subject + OUT] -= 1
        m[TO_DISPATCH] = 1
    elif kind == FRAME_OF_LINK:
        m[subject + ARRIVED] |= m[event + BIT]
        m[subject + WAITS] = 1
    elif kind == TIMER_DONE:
        m[subject + WAITS] = 1
    else:
        if kind == WORK_DONE:
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
    """Let each link take its steps; return :data:`GROW` if one had any, whose effects come first."""
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
    """Run until nothing is left to happen, or something is missing: which of that.

    What happens at one time, such as the parts of one call, is there before a sync begins that takes time.
    """
    while True:
        code = settle_down(m)
        if code != ENDED:
            return code
        if (m[SYNC_TIME] == 0 or m[TIMED] == 0 or m[m[HEAP]] > m[NOW]) and start_sync(m):
            continue
        if m[TIMED] == 0:
            return ENDED
        happen(m)
        m[UNTIL_PAUSE] -= 1
        if m[UNTIL_PAUSE] == 0:
            return PAUSE


FUNCTIONS = (
    *_resources.FUNCTIONS,
    *(add_move, ask_groups, ask_others, carry_out, return_from_call, notice, perform, still_refused),
    *(ask_groups_of_link, ask_messages_of_link, perform_of_link),
    *(send_frame, forget_bit, release, is_due_now, look_at, run_timer, try_of_link, look_at_link),
    *(send, produce, hand_over, take_next, finish, settle, consume, dispatch_to_one, dispatch),
    *(bits_of_row, bits_to_sync, end_sync, start_sync, allows, happen, visit_links, settle_down, run),
)
"""In the order in which they call each other, callees first."""
