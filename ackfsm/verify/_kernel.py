"""Which rows of a chunk a summary has to keep: one pass over its columns for each question, compiled by Numba.

The functions are plain Python over arrays, so that they can be read and tested as such.  A *row* is a place in the
chunk's events in the order of time, a *message* a number from 0.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ackfsm.explore.search.distributed import compiled_function as compiled
from ackfsm.terms import AckScope
from ackfsm.verify._format import VOCABULARY, Event, event_code

__all__ = [
    "HEARD",
    "KEPT",
    "LEFT",
    "PINNED",
    "follow_messages",
    "hash_names",
    "mark_bounds",
    "mark_neighbours",
    "mark_order",
    "mark_rows",
    "number_by_appearance",
    "steps_of_prefetch",
    "steps_of_windows",
    "times_after",
]

LEFT: Final = 0
"""A row that is not kept."""
HEARD: Final = 1
"""A row of which only time, process and session are kept: it stands beside one that is kept, or at a bound."""
PINNED: Final = 2
"""A row of a message that stands for those of its observation that are not kept."""
KEPT: Final = 3

_SEND: Final = event_code(Event.SEND)
_CONFIRMED: Final = event_code(Event.CONFIRMED)
_DELIVERED: Final = event_code(Event.DELIVERED)
_PROCESSED: Final = event_code(Event.PROCESSED)
_ACKNOWLEDGE: Final = event_code(Event.ACKNOWLEDGE)
_ACKNOWLEDGED: Final = event_code(Event.ACKNOWLEDGED)
_WRITTEN: Final = event_code(Event.JOURNAL_WRITTEN)
_SYNCED: Final = event_code(Event.JOURNAL_SYNCED)
_REJECTED: Final = event_code(Event.REJECTED)
_IN_DOUBT: Final = event_code(Event.IN_DOUBT)
_RESEND: Final = event_code(Event.RESEND)
_OF_MESSAGE: Final = VOCABULARY["scope"].index(AckScope.MESSAGE)
_OF_SESSION: Final = VOCABULARY["scope"].index(AckScope.SESSION)
_FAILED: Final = event_code(Event.FAILED)
_EXPIRED: Final = event_code(Event.EXPIRED)
_DEAD_LETTERED: Final = event_code(Event.DEAD_LETTERED)
_COMMIT: Final = event_code(Event.COMMIT)
_ROLLBACK: Final = event_code(Event.ROLLBACK)
_RECOVER: Final = event_code(Event.RECOVER)
_CLOSE: Final = event_code(Event.CLOSE)

NEVER: Final = np.iinfo(np.int64).max

_M1: Final = np.uint64(0xBF58476D1CE4E5B9)
_M2: Final = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@compiled
def mix(number: Any) -> Any:
    """The finaliser of splitmix64."""
    number = (number ^ (number >> _S30)) * _M1
    number = (number ^ (number >> _S27)) * _M2
    return number ^ (number >> _S31)


@compiled
def hash_names(offsets: Any, data: Any, hashes: Any) -> None:
    """A number of 64 bits for each name, whose bytes are ``data[offsets[i]:offsets[i + 1]]``."""
    for name in range(len(hashes)):
        begin, end = offsets[name], offsets[name + 1]
        found = mix(np.uint64(end - begin) + np.uint64(0x9E3779B97F4A7C15))
        word, filled = np.uint64(0), 0
        for place in range(begin, end):
            word |= np.uint64(data[place]) << np.uint64(8 * filled)
            filled += 1
            if filled == 8:
                found = mix(found ^ word)
                word, filled = np.uint64(0), 0
        hashes[name] = mix(found ^ word)


@compiled
def number_by_appearance(codes: Any, order: Any, into: Any) -> Any:
    """``codes`` (-1 for none) numbered as they come first, ``into``; returns how many, the old ones in ``order``."""
    number = np.full(len(order), -1, np.int32)
    count = 0
    for row in range(len(codes)):
        code = codes[row]
        if code >= 0 and number[code] < 0:
            number[code] = count
            order[count] = code
            count += 1
        into[row] = number[code] if code >= 0 else -1
    return count


@compiled
def times_after(t: Any, process: Any, processes: Any, after: Any) -> None:
    """For each row the time of the next one of its process, :data:`NEVER` without one."""
    following = np.full(processes, NEVER, np.int64)
    for row in range(len(t) - 1, -1, -1):
        after[row] = following[process[row]]
        following[process[row]] = t[row]


@compiled
def follow_messages(  # noqa: C901, PLR0912, PLR0913, PLR0917 - the columns of a chunk, and of its messages
    event: Any,
    process: Any,
    session: Any,
    queue: Any,
    message: Any,
    transaction: Any,
    mode: Any,
    scope: Any,
    redelivered: Any,
    delivery_count: Any,
    errs: Any,
    t: Any,
    after: Any,
    strange_process: Any,
    strange_session: Any,
    seen: Any,
    odd: Any,
    where: Any,
    end: Any,
    continued: Any,
    times: Any,
) -> None:
    """What each message went through, as a number that equal ones share.

    Args:
        event ... after: the columns of the events, and the time of the next row of the process.
        strange_process, strange_session: whose messages are kept.
        seen: for each message the number of its observation; 0 before its first row.
        odd: set to 1 for messages with rows of any but the common kinds, or of other processes than the first.
        where: for each message the rows of its first send and first delivery, of its first and its last row; -1 for none.
        end: for each message when the last of its own rows took effect, :data:`NEVER` where that is not known.
        continued, times: a table of observations that went on, of 2**k entries, 0 where empty, and how often they did.
    """
    mask = np.uint64(len(continued) - 1)
    for row in range(len(event)):
        m = message[row]
        if m < 0:
            continue
        kind = event[row]
        before = seen[m]
        if before == 0:
            where[m, 2] = row
            before = np.uint64(0x9E3779B97F4A7C15)
        elif not odd[m]:
            place = mix(before) & mask
            for _ in range(64):
                if continued[place] == 0:
                    continued[place] = before
                if continued[place] == before:
                    times[place] += 1
                    break
                place = (place + np.uint64(1)) & mask
        where[m, 3] = row
        token = np.uint64(kind) | np.uint64(redelivered[row] + 1) << np.uint64(8) | np.uint64(errs[row]) << np.uint64(10)
        token |= np.uint64(mode[row] + 1) << np.uint64(16) | np.uint64(scope[row] + 1) << np.uint64(24)
        token ^= mix(np.uint64(delivery_count[row] + 2))
        if kind == _SEND:
            if where[m, 0] >= 0:
                odd[m] = 1
            else:
                where[m, 0] = row
        elif kind == _DELIVERED:
            if where[m, 1] >= 0:
                odd[m] = 1
            else:
                where[m, 1] = row
        elif kind == _RESEND:
            odd[m] = 2
        first = where[m, 0]
        delivery = where[m, 1]
        if transaction[row] >= 0 or first < 0 or strange_process[process[row]] or strange_session[session[row]]:
            odd[m] = max(odd[m], 1)
        elif kind == _SEND or kind == _CONFIRMED:
            if process[row] != process[first] or session[row] != session[first]:
                odd[m] = max(odd[m], 1)
        elif kind == _DELIVERED or kind == _PROCESSED or kind == _ACKNOWLEDGE or kind == _ACKNOWLEDGED:
            if delivery < 0 or process[row] != process[delivery] or session[row] != session[delivery]:
                odd[m] = max(odd[m], 1)
            elif kind == _DELIVERED:
                token |= np.uint64(process[row] == process[first]) << np.uint64(32)
                token |= np.uint64(session[row] == session[first]) << np.uint64(33)
            elif kind >= _ACKNOWLEDGE and scope[row] != _OF_MESSAGE:
                odd[m] = max(odd[m], 1)
        elif kind != _WRITTEN and kind != _SYNCED:
            odd[m] = max(odd[m], 1)
        if queue[row] >= 0:
            token |= np.uint64(1) << np.uint64(34)
            if first >= 0 and queue[row] != queue[first]:
                odd[m] = max(odd[m], 1)
        seen[m] = mix(before ^ token) | np.uint64(1)
        happened = after[row] if kind == _SEND or kind == _ACKNOWLEDGE else t[row]
        end[m] = max(end[m], happened)


@compiled
def lane_of(table: Any, key: Any) -> Any:
    """The place of ``key``, which is not 0, in an open table of 2**k entries with free ones; it is added."""
    mask = np.uint64(len(table) - 1)
    place = mix(key) & mask
    while table[place] != 0 and table[place] != key:
        place = (place + np.uint64(1)) & mask
    table[place] = key
    return place


@compiled
def lane_key(session: Any, process: Any, queue: Any, mode: Any) -> Any:
    """A number for a lane: who is delivered, who sent, where, how."""
    key = mix(np.uint64(session + 1) << np.uint64(32) | np.uint64(process + 1))
    return mix(key ^ (np.uint64(queue + 1) << np.uint64(8) | np.uint64(mode + 1))) | np.uint64(1)


@compiled
def mark_order(  # noqa: PLR0913, PLR0917 - the columns of a chunk, and of its messages
    event: Any,
    process: Any,
    session: Any,
    queue: Any,
    message: Any,
    mode: Any,
    redelivered: Any,
    odd: Any,
    where: Any,
    plain: Any,
    table: Any,
) -> None:
    """Take out of the ``plain`` messages those that were overtaken, and those that show of others that they were.

    ``table`` is an empty one of 2**k entries, more than there are lanes.
    """
    best = np.full(len(table), -1, np.int64)  # the latest send in the lane of what was delivered, of all messages
    best_plain = np.full(len(table), -1, np.int64)
    holder = np.full(len(table), -1, np.int64)
    for row in range(len(event)):
        if event[row] != _DELIVERED:
            continue
        m = message[row]
        sent = where[m, 0]
        if where[m, 1] != row or sent < 0 or redelivered[row] != 0 or odd[m] == 2:
            continue
        lane = lane_of(table, lane_key(session[row], process[sent], queue[sent], mode[sent]))
        if best_plain[lane] > sent:
            plain[holder[lane]] = 0
        if best[lane] > sent:
            plain[m] = 0
        else:
            best[lane] = sent
        if plain[m] and sent > best_plain[lane]:
            best_plain[lane] = sent
            holder[lane] = m


@compiled
def mark_bounds(  # noqa: PLR0913, PLR0917 - the columns of a chunk, and of its messages
    process: Any,
    session: Any,
    queue: Any,
    mode: Any,
    where: Any,
    seen: Any,
    plain: Any,
    first: Any,
    last: Any,
    table: Any,
) -> None:
    """Of the ``plain`` messages of each lane and observation, mark with 2 the first and the last to be delivered.

    ``first`` and ``last`` are as long as ``table``, which is empty and has more entries than there are lanes.
    """
    for m in range(len(plain)):
        if not plain[m]:
            continue
        sent, row = where[m, 0], where[m, 1]
        key = lane_key(session[row], process[sent], queue[sent], mode[sent])
        key = mix(key ^ mix(np.uint64(session[sent] + 1) << np.uint64(32) | np.uint64(process[row] + 1)))
        lane = lane_of(table, mix(key ^ mix(seen[m] ^ np.uint64(queue[row] + 1))) | np.uint64(1))
        if first[lane] < 0 or row < where[first[lane], 1]:
            first[lane] = m
        if last[lane] < 0 or row > where[last[lane], 1]:
            last[lane] = m
    for lane in range(len(table)):
        if first[lane] >= 0:
            plain[first[lane]] = 2
            plain[last[lane]] = 2


@compiled
def mark_rows(message: Any, plain: Any, marks: Any) -> None:
    """The mark of each row: whether its message is ``plain`` (0: no, 2: it stands for others)."""
    for row in range(len(message)):
        m = message[row]
        marks[row] = KEPT if m < 0 or plain[m] == 0 else PINNED if plain[m] == 2 else LEFT


@compiled
def mark_neighbours(process: Any, session: Any, processes: Any, sessions: Any, marks: Any) -> None:
    """Mark the rows that are not kept but stand in their process beside one that is, or where its session changes.

    So are the first and last rows of processes and sessions.
    """
    last = np.full(processes, -1, np.int64)
    of_session = np.full(sessions, -1, np.int64)
    for row in range(len(process)):
        before = last[process[row]]
        if before < 0:
            marks[row] = max(marks[row], HEARD)
        elif marks[before] >= PINNED or marks[row] >= PINNED or session[before] != session[row]:
            marks[row] = max(marks[row], HEARD)
            marks[before] = max(marks[before], HEARD)
        if of_session[session[row]] < 0:
            marks[row] = max(marks[row], HEARD)
        last[process[row]] = row
        of_session[session[row]] = row
    for each in range(processes):
        if last[each] >= 0:
            marks[last[each]] = max(marks[last[each]], HEARD)
    for each in range(sessions):
        if of_session[each] >= 0:
            marks[of_session[each]] = max(marks[of_session[each]], HEARD)


@compiled
def steps_of_windows(  # noqa: PLR0913, PLR0917 - the columns of a chunk
    event: Any,
    session: Any,
    message: Any,
    transaction: Any,
    t: Any,
    sessions: Any,
    window: Any,
    still_open: Any,
    steps: Any,
) -> Any:
    """How many sends of a session were open before one, each time that this was more than before.

    Only an outcome ends a send here, so that it is never too few.  Writes session, time and number into ``steps`` up to
    the number ``window``, and returns how many there are; ``still_open`` tells of each message whether a send is.
    """
    depth = np.zeros(sessions, np.int64)
    most = np.full(sessions, -1, np.int64)
    of = np.full(len(still_open), -1, np.int64)
    found = 0
    for row in range(len(event)):
        kind, m = event[row], message[row]
        if (kind == _SEND or kind == _RESEND) and transaction[row] < 0:
            s = session[row]
            if depth[s] > most[s]:
                most[s] = depth[s]
                if depth[s] <= window:
                    steps[found, 0], steps[found, 1], steps[found, 2] = s, t[row], depth[s]
                    found += 1
            depth[s] += 1
            if of[m] != s:
                still_open[m] = 0  # those of the other session are never ended
            of[m] = s
            still_open[m] += 1
        elif kind == _CONFIRMED or kind == _REJECTED or kind == _IN_DOUBT:
            depth[of[m]] -= still_open[m]
            still_open[m] = 0
    return found


@compiled
def steps_of_prefetch(  # noqa: C901, PLR0912, PLR0913, PLR0917 - the columns of a chunk
    event: Any,
    session: Any,
    queue: Any,
    message: Any,
    scope: Any,
    t: Any,
    sessions: Any,
    bound: Any,
    still_open: Any,
    steps: Any,
) -> Any:
    """How many deliveries of a session and queue were open before one, each time that this was more than before.

    What ends a delivery for certain ends it here, so that it is never too few.  As :func:`steps_of_windows` otherwise.
    """
    depth = np.zeros(1 << 10, np.int64)
    lanes = np.zeros(1 << 10, np.uint64)
    since = np.zeros(1 << 10, np.int64)
    era = np.zeros(sessions, np.int64)
    most = np.full(sessions, -1, np.int64)
    of = np.full(len(still_open), -1, np.int64)
    begun = np.zeros(len(still_open), np.int64)
    of_session = np.full(len(still_open), -1, np.int64)
    found, used = 0, 0
    for row in range(len(event)):
        kind, m, s = event[row], message[row], session[row]
        its_end = kind == _DELIVERED or kind == _FAILED or kind == _EXPIRED or kind == _DEAD_LETTERED
        its_end = its_end or (kind == _ACKNOWLEDGE and scope[row] == _OF_MESSAGE)
        if its_end and m >= 0 and still_open[m]:
            if begun[m] == era[of_session[m]]:
                depth[of[m]] -= 1
            still_open[m] = 0
        if kind == _COMMIT or kind == _ROLLBACK or kind == _RECOVER or kind == _CLOSE:
            era[s] += 1
        elif kind == _ACKNOWLEDGE and scope[row] == _OF_SESSION:
            era[s] += 1
        if kind != _DELIVERED:
            continue
        if 2 * used >= len(lanes):
            return -1
        key = mix(np.uint64(s + 1) << np.uint64(32) | np.uint64(queue[row] + 1)) | np.uint64(1)
        lane = lane_of(lanes, key)
        if since[lane] != era[s] + 1:
            used += since[lane] == 0
            since[lane] = era[s] + 1
            depth[lane] = 0
        if depth[lane] > most[s]:
            most[s] = depth[lane]
            if depth[lane] <= bound:
                steps[found, 0], steps[found, 1], steps[found, 2] = s, t[row], depth[lane]
                found += 1
        depth[lane] += 1
        of[m], begun[m], of_session[m], still_open[m] = lane, era[s], s, 1
    for m in range(len(still_open)):
        if still_open[m] and begun[m] != era[of_session[m]]:
            still_open[m] = 0
    return found
