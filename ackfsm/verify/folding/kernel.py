"""Which rows of a chunk a summary has to keep: one pass over its columns for each question, compiled by Numba.

The functions are plain Python over arrays, so that they can be read and tested as such.  A *row* is a place in the
chunk's events in the order of time, a *message* a number from 0.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ackfsm.history.columns import event_code
from ackfsm.history.format import VOCABULARY, Event
from ackfsm.history.kernel import mix
from ackfsm.history.loops import compiled
from ackfsm.terms import AckScope

__all__ = [
    "HEARD",
    "KEPT",
    "LEFT",
    "PINNED",
    "STANDS",
    "follow_messages",
    "follow_transactions",
    "interleave",
    "link",
    "link_lanes",
    "mark_acts",
    "mark_bounds",
    "mark_neighbours",
    "mark_order",
    "mark_rows",
    "mark_transactions",
    "room_for",
    "steps_of_prefetch",
    "steps_of_windows",
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
_ACK_IN_DOUBT: Final = event_code(Event.ACK_IN_DOUBT)
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
_BEGIN: Final = event_code(Event.BEGIN)
_COMMIT: Final = event_code(Event.COMMIT)
_COMMITTED: Final = event_code(Event.COMMITTED)
_ROLLBACK: Final = event_code(Event.ROLLBACK)
_RECOVER: Final = event_code(Event.RECOVER)
_CLOSE: Final = event_code(Event.CLOSE)

_RESENT: Final = 2
STANDS: Final = 2
"""Of a plain message: it stands for others of its observation."""

_S62, _ONE = np.uint64(62), np.uint64(1)


@compiled
def mark_all(first: Any, other: Any, odd: Any) -> None:
    """Mark as odd the messages of a list: ``first``, and after each the one in ``other``."""
    while first >= 0:
        odd[first] = max(odd[first], 1)
        first = other[first]


@compiled
def called_in(session: Any, waiting: Any, other: Any) -> Any:
    """Return the list of deliveries that a call of ``session`` covers, which now waits for the answer.

    The columns of ``waiting`` are the lists of the delivered messages of each session that no call covers, that the
    last call covers, and that an earlier one covers that nobody answered.
    """
    its = waiting[session, 1]
    while its >= 0:
        following = other[its]
        other[its], waiting[session, 2] = waiting[session, 2], its
        its = following
    waiting[session, 1], waiting[session, 0] = waiting[session, 0], -1
    return waiting[session, 1]


@compiled
def answered_in(session: Any, waiting: Any, other: Any, odd: Any, strange: Any) -> Any:
    """An answer to the last call: the list of what that covers; a ``strange`` one is to an earlier call, or to none.

    What may be covered in another way than by the last call and its answer is odd.
    """
    its = waiting[session, 1]
    mark_all(waiting[session, 2], other, odd)
    waiting[session, 1] = waiting[session, 2] = -1
    if strange:
        mark_all(waiting[session, 0], other, odd)
        mark_all(its, other, odd)
        waiting[session, 0] = -1
        return -1
    return its


_OPEN: Final = 0
_CALLED: Final = 1
_DONE: Final = 2
"""How far a transaction is: nobody has called its commit, somebody has, and that was answered."""


@compiled
def goes_on(kind: Any, names: Any, stage: Any, members: Any) -> Any:
    """The stage of a clean transaction after a row of it, which may name a message; -1 if it is not clean."""
    if names:
        return _OPEN if stage == _OPEN and kind in (_SEND, _DELIVERED, _PROCESSED, _ACKNOWLEDGE) else -1
    if kind == _BEGIN:
        return _OPEN if stage == _OPEN and not members else -1
    if kind == _COMMIT:
        return _CALLED if stage == _OPEN else -1
    return _DONE if kind == _COMMITTED and stage == _CALLED else -1


@compiled
def follow_transactions(  # noqa: PLR0913, PLR0917 - the columns of a chunk
    event: Any,
    process: Any,
    session: Any,
    message: Any,
    transaction: Any,
    errs: Any,
    sessions: Any,
    clean: Any,
    of: Any,
) -> None:
    """Which transactions are *clean*: some messages in one session, a call of commit after them, and its answer.

    The first of a session in the chunk may go on from another chunk, and is not.  ``clean`` says beforehand which may
    be; ``of`` is set to the process of each.
    """
    stage = np.zeros(len(clean), np.int8)
    members = np.zeros(len(clean), np.uint8)
    where = np.full(len(clean), -1, np.int32)
    seen = np.zeros(sessions, np.uint8)
    for row in range(len(event)):
        its = transaction[row]
        if its < 0:
            continue
        if where[its] < 0:
            where[its], of[its] = session[row], process[row]
            clean[its] &= seen[session[row]]
            seen[session[row]] = 1
        following = goes_on(event[row], message[row] >= 0, stage[its], members[its])
        if following < 0 or errs[row] or where[its] != session[row]:
            clean[its] = 0
        else:
            stage[its] = following
        members[its] |= message[row] >= 0
    for each in range(len(clean)):
        clean[each] &= stage[each] == _DONE and members[each]


@compiled
def enters(  # noqa: PLR0913, PLR0917 - a row, and what is known of messages and transactions
    kind: Any, m: Any, its: Any, clean: Any, inside: Any, lists: Any, following: Any
) -> Any:
    """Return whether a row of ``m`` in the transaction ``its`` leaves it clean, and make ``m`` a member.

    A message is sent in one transaction at most and delivered in another.  The members of a transaction are a list from
    ``lists`` on: twice the message, plus 1 if it was delivered; the next one stands in ``following``.
    """
    way = 0 if kind == _SEND else 1
    if clean[its] and kind in (_PROCESSED, _ACKNOWLEDGE):
        clean[its] = inside[m, 1] == its
    elif clean[its]:
        clean[its] = inside[m, way] < 0 and inside[m, 0] != its
        if clean[its]:
            inside[m, way] = its
            following[2 * m + way], lists[its] = lists[its], 2 * m + way
    return clean[its]


@compiled
def commits(  # noqa: PLR0913, PLR0917 - a row, and what is known of messages
    kind: Any, row: Any, t: Any, its: Any, following: Any, seen: Any, where: Any, span: Any
) -> None:
    """Add a commit, or its answer, to the observations of the members of the list from ``its`` on."""
    while its >= 0:
        m = its >> 1
        where[m, 3] = row
        seen[m] = mix(seen[m] ^ np.uint64(kind + 128 * (1 + (its & 1)))) | np.uint64(1)
        span[m, 1] = max(span[m, 1], t)
        its = following[its]


@compiled
def follow_messages(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917 - the columns of a chunk, and of its messages
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
    judged_by: Any,
    strange_process: Any,
    strange_session: Any,
    clean: Any,
    seen: Any,
    odd: Any,
    where: Any,
    span: Any,
    inside: Any,
    continued: Any,
    times: Any,
) -> None:
    """What each message went through, as a number that equal ones share.

    The first arguments are the columns of the events, and the time of the next row of the process.  Besides:

    * ``judged_by``: for each queue the number of its configuration;
    * ``strange_process``, ``strange_session``: whose messages are kept; a session is added where an answer is to an
      earlier call than the last;
    * ``clean``: the transactions as :func:`follow_transactions` found them; those that have something else to do with a
      message than that it was first sent or first delivered in them are taken out;
    * ``seen``: for each message the number of its observation; 0 before its first row;
    * ``odd``: set to 1 for messages with rows of any but the common kinds, or of other processes than the first, and
      to 2 for those that were sent again;
    * ``where``: for each message the rows of its first send and first delivery, of its first and its last row, and of
      the acknowledgement of its session that covers it and the answer to that; -1 for none;
    * ``span``: for each message when its first row was written and when the last of them took effect, :data:`NEVER`
      where that is not known;
    * ``inside``: for each message the clean transactions in which it was first sent and first delivered; -1 for none;
    * ``continued``, ``times``: a table of observations that went on, of 2**k entries, 0 where empty, and how often.
    """
    mask = np.uint64(len(continued) - 1)
    sessions = len(strange_session)
    waiting = np.full((sessions, 3), -1, np.int32)
    tally = np.zeros((sessions, 2), np.int64)  # calls and answers
    named = np.full(sessions, -1, np.int32)
    other = np.full(len(seen), -1, np.int32)
    acknowledged = np.zeros(len(seen), np.uint8)
    lists = np.full(len(clean), -1, np.int32)
    following = np.full(2 * len(seen) if len(clean) else 0, -1, np.int32)
    for row in range(len(event)):
        m = message[row]
        kind = event[row]
        s = session[row]
        if scope[row] == _OF_SESSION and kind in (_ACKNOWLEDGE, _ACKNOWLEDGED) and not strange_session[s]:
            if transaction[row] >= 0:
                clean[transaction[row]] = 0
            if kind == _ACKNOWLEDGE:
                its = called_in(s, waiting, other)
                tally[s, 0] += 1
                named[s] = m
            else:
                tally[s, 1] += 1
                its = answered_in(s, waiting, other, odd, tally[s, 0] == 0 or named[s] != m)
                strange_session[s] = tally[s, 0] > 0 and named[s] != m
            while its >= 0:
                where[its, 3] = row
                where[its, 4 if kind == _ACKNOWLEDGE else 5] = row
                if process[row] != process[where[its, 1]] or errs[row]:
                    odd[its] = max(odd[its], 1)
                seen[its] = mix(seen[its] ^ np.uint64(kind + 64)) | np.uint64(1)
                span[its, 1] = max(span[its, 1], after[row] if kind == _ACKNOWLEDGE else t[row])
                its = other[its]
            if m >= 0 and queue[row] >= 0 and (where[m, 0] < 0 or queue[row] != queue[where[m, 0]]):
                odd[m] = max(odd[m], 1)
            continue
        if m < 0:
            if kind in (_COMMIT, _COMMITTED) and clean[transaction[row]]:
                commits(kind, row, t[row], lists[transaction[row]], following, seen, where, span)
            continue
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
        token = (
            np.uint64(kind) | np.uint64(redelivered[row] + 1) << np.uint64(8) | np.uint64(errs[row]) << np.uint64(10)
        )
        token |= np.uint64(mode[row] + 1) << np.uint64(16) | np.uint64(scope[row] + 1) << np.uint64(24)
        token ^= mix(np.uint64(delivery_count[row] + 2))
        if kind == _SEND:
            if where[m, 0] >= 0:
                odd[m] = max(odd[m], 1)
            else:
                where[m, 0] = row
        elif kind == _DELIVERED:
            if where[m, 1] >= 0:
                odd[m] = max(odd[m], 1)
            else:
                where[m, 1] = row
                other[m], waiting[s, 0] = waiting[s, 0], m
        elif kind == _RESEND:
            odd[m] = _RESENT
        first = where[m, 0]
        delivery = where[m, 1]
        outside = transaction[row] < 0
        if not outside and not enters(kind, m, transaction[row], clean, inside, lists, following):
            odd[m] = max(odd[m], 1)
        token |= np.uint64(outside) << np.uint64(35)
        if first < 0 or strange_process[process[row]] or strange_session[session[row]]:
            odd[m] = max(odd[m], 1)
        elif kind in (_SEND, _CONFIRMED):
            if process[row] != process[first] or session[row] != session[first]:
                odd[m] = max(odd[m], 1)
        elif kind in (_DELIVERED, _PROCESSED, _ACKNOWLEDGE, _ACKNOWLEDGED):
            if delivery < 0 or process[row] != process[delivery] or session[row] != session[delivery]:
                odd[m] = max(odd[m], 1)
            elif kind == _DELIVERED:
                token ^= np.uint64(process[row] == process[first]) << np.uint64(32)
                token ^= np.uint64(session[row] == session[first]) << np.uint64(33)
            elif kind >= _ACKNOWLEDGE and (scope[row] != _OF_MESSAGE or tally[s, 0] or tally[s, 1]):
                odd[m] = max(odd[m], 1)
            elif kind >= _ACKNOWLEDGE:
                acknowledged[m] = 1
        elif kind not in (_WRITTEN, _SYNCED):
            odd[m] = max(odd[m], 1)
        if queue[row] >= 0:
            token ^= np.uint64(judged_by[queue[row]] + 1) << np.uint64(34)
            if first >= 0 and queue[row] != queue[first]:
                odd[m] = max(odd[m], 1)
        seen[m] = mix(before ^ token) | np.uint64(1)
        happened = after[row] if kind in (_SEND, _ACKNOWLEDGE) else t[row]
        span[m, 0] = min(span[m, 0], t[row])
        span[m, 1] = max(span[m, 1], happened)
    for m in range(len(seen)):
        if where[m, 1] < 0:
            continue
        s = session[where[m, 1]]
        if acknowledged[m] and (tally[s, 0] or tally[s, 1]):
            odd[m] = max(odd[m], 1)  # by itself and with others
        elif (tally[s, 0] and where[m, 4] < 0) or (tally[s, 1] and where[m, 5] < 0):
            odd[m] = max(odd[m], 1)  # the next may cover it


def room_for(keys: int) -> int:
    """How many entries, a power of two, an open table has for so many keys."""
    return 1 << (keys + keys // 2).bit_length()


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
def lane_key(receiver: Any, process: Any, queue: Any, mode: Any) -> Any:
    """A number for a lane: who is delivered, who sent, where, how."""
    key = mix(np.uint64(receiver + 1) << np.uint64(32) | np.uint64(process + 1))
    return mix(key ^ (np.uint64(queue + 1) << np.uint64(8) | np.uint64(mode + 1))) | np.uint64(1)


@compiled
def mark_order(  # noqa: PLR0913, PLR0917 - the columns of a chunk, and of its messages
    event: Any,
    process: Any,
    receiver: Any,
    queue: Any,
    message: Any,
    mode: Any,
    redelivered: Any,
    odd: Any,
    where: Any,
    plain: Any,
    table: Any,
) -> None:
    """Take overtaken messages, and messages that show an overtaking, out of the ``plain`` ones.

    ``receiver`` has for each row a number of its session and consumer; ``table`` is an empty one with room for all
    messages.
    """
    best = np.full(len(table), -1, np.int64)  # the latest send in the lane of what was delivered, of all messages
    best_plain = np.full(len(table), -1, np.int64)
    holder = np.full(len(table), -1, np.int64)
    for row in range(len(event)):
        if event[row] != _DELIVERED:
            continue
        m = message[row]
        sent = where[m, 0]
        if where[m, 1] != row or sent < 0 or redelivered[row] != 0 or odd[m] == _RESENT:
            continue
        lane = lane_of(table, lane_key(receiver[row], process[sent], queue[sent], mode[sent]))
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
def link(  # noqa: PLR0913, PLR0917 - the messages of a chunk, and a table of their keys
    message: Any, at: Any, key: Any, table: Any, last: Any, ahead: Any
) -> None:
    """Of the messages with one ``key``, in the order of their rows ``at``, say in ``ahead`` which comes next.

    A message without a row (-1) or with the key 0 is passed over.  ``table`` is an empty one with room for all
    messages, ``last`` as long.
    """
    for row in range(len(message)):
        m = message[row]
        if m < 0 or at[m] != row or key[m] == 0:
            continue
        lane = lane_of(table, key[m])
        if last[lane] >= 0:
            ahead[last[lane]] = m
        last[lane] = m


@compiled
def link_lanes(  # noqa: PLR0913, PLR0917 - the messages of a chunk, and tables of their lanes
    message: Any,
    sent: Any,
    delivered: Any,
    sender: Any,
    lane_key: Any,
    senders: Any,
    lanes: Any,
    newest: Any,
    settled: Any,
    chain: Any,
    last: Any,
    open_: Any,
    ahead: Any,
    border: Any,
) -> None:
    """As :func:`link` for lanes in the order of sending, where some messages were delivered elsewhere, or nowhere.

    It is not known to which lane of its sender such a message belongs: the messages around it in each of them are its
    neighbours perhaps.  They are marked in ``border``, as the first and the last of each lane are.

    ``sender`` and ``lane_key`` are keys of each message.  ``senders`` is a table of senders: ``newest`` has the lane
    that was added last to each, after which ``chain`` has its others, and ``settled`` (-1 at first) whether it sent a
    message of a known lane since the last of an unknown one.  ``lanes`` is a table of lanes: ``last`` has the last
    message of each, and ``open_`` whether the next one is to be marked.
    """
    for row in range(len(message)):
        m = message[row]
        if m < 0 or sent[m] != row:
            continue
        its = lane_of(senders, sender[m])
        if delivered[m] < 0:
            came, settled[its] = settled[its] > 0, 0
            if came:
                lane = newest[its]
                while lane >= 0:
                    border[last[lane]] = 1
                    open_[lane] = 1
                    lane = chain[lane]
            continue
        settled[its] = 1
        lane = lane_of(lanes, lane_key[m])
        if last[lane] >= 0:
            ahead[last[lane]] = m
        else:
            chain[lane], newest[its] = newest[its], lane
            open_[lane] = 1
        if open_[lane]:
            border[m] = 1
            open_[lane] = 0
        last[lane] = m
    for lane in range(len(lanes)):
        if last[lane] >= 0:
            border[last[lane]] = 1


@compiled
def interleave(  # noqa: PLR0913, PLR0917 - the messages of a chunk, and further rows of them
    message: Any, rows: Any, others: Any, before: Any, ahead: Any, order: Any
) -> None:
    """Write to ``order`` how the rows of each message lie among the rows of the one ``before`` it, as a number.

    ``rows``, ascending, are rows that tell of the messages in ``others`` without naming them.
    """
    further = 0
    for row in range(len(message)):
        m = message[row]
        if m >= 0:
            if before[m] >= 0:
                order[m] = mix(order[m] ^ np.uint64(1)) if order[m] >> _S62 else order[m] << _ONE | _ONE
            following = ahead[m]
            if following >= 0:
                it = order[following]
                order[following] = mix(it) if it >> _S62 else it << _ONE
        while further < len(rows) and rows[further] == row:
            m = others[further]
            if before[m] >= 0:
                order[m] = mix(order[m] ^ np.uint64(3))
            if ahead[m] >= 0:
                order[ahead[m]] = mix(order[ahead[m]] ^ np.uint64(2))
            further += 1


@compiled
def mark_bounds(  # noqa: PLR0913, PLR0917 - the columns of a chunk, and of its messages
    process: Any,
    receiver: Any,
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

    ``first`` and ``last`` are as long as ``table``, an empty one with room for all messages.
    """
    for m in range(len(plain)):
        if not plain[m]:
            continue
        sent, row = where[m, 0], where[m, 1]
        key = lane_key(receiver[row], process[sent], queue[sent], mode[sent])
        key = mix(key ^ mix(np.uint64(receiver[sent] + 1) << np.uint64(32) | np.uint64(process[row] + 1)))
        lane = lane_of(table, mix(key ^ mix(seen[m] ^ np.uint64(queue[row] + 1))) | np.uint64(1))
        if first[lane] < 0 or row < where[first[lane], 1]:
            first[lane] = m
        if last[lane] < 0 or row > where[last[lane], 1]:
            last[lane] = m
    for lane in range(len(table)):
        if first[lane] >= 0:
            plain[first[lane]] = STANDS
            plain[last[lane]] = STANDS


@compiled
def mark_rows(message: Any, plain: Any, marks: Any) -> None:
    """The mark of each row: whether its message is ``plain`` (0: no, 2: it stands for others)."""
    for row in range(len(message)):
        m = message[row]
        marks[row] = KEPT if m < 0 or plain[m] == 0 else PINNED if plain[m] == STANDS else LEFT


@compiled
def mark_acts(  # noqa: C901, PLR0913, PLR0917 - the columns of a chunk
    event: Any, session: Any, message: Any, scope: Any, strange_session: Any, plain: Any, marks: Any
) -> Any:
    """Leave out the acknowledgements of sessions that cover nothing that is kept, with the answers to them.

    The first and the last of a session in the chunk are kept, which other chunks may have to do with, and of several
    without an answer all until one has one.  What one that is kept names has to be kept as well: returns of how many
    messages that was not so, which are no longer ``plain``; the marks are right once there are none.
    """
    sessions = len(strange_session)
    called = np.zeros(sessions, np.uint8)
    kept = np.zeros(sessions, np.uint8)
    answered = np.zeros(sessions, np.uint8)
    wanted = np.zeros(sessions, np.uint8)
    for row in range(len(event)):
        s, m = session[row], message[row]
        if strange_session[s]:
            if scope[row] == _OF_SESSION and _ACKNOWLEDGE <= event[row] <= _ACK_IN_DOUBT:
                marks[row] = KEPT
        elif event[row] == _DELIVERED and marks[row] >= PINNED:
            wanted[s] = 1
        elif event[row] == _ACKNOWLEDGE and scope[row] == _OF_SESSION:
            named = m >= 0 and plain[m] != 1
            kept[s] = not called[s] or wanted[s] or named or (kept[s] and not answered[s])
            called[s], wanted[s], answered[s] = 1, 0, 0
            marks[row] = KEPT if kept[s] else LEFT
        elif event[row] == _ACKNOWLEDGED and scope[row] == _OF_SESSION:
            answered[s] = 1
            marks[row] = KEPT if kept[s] or not called[s] else LEFT
    last = np.ones(sessions, np.uint8)
    for row in range(len(event) - 1, -1, -1):
        s = session[row]
        if last[s] and scope[row] == _OF_SESSION and event[row] in (_ACKNOWLEDGE, _ACKNOWLEDGED):
            marks[row] = KEPT
            last[s] = event[row] != _ACKNOWLEDGE
    found = 0
    for row in range(len(event)):
        m = message[row]
        if m >= 0 and marks[row] == KEPT and plain[m] == 1:
            plain[m] = 0
            found += 1
    return found


@compiled
def mark_transactions(  # noqa: PLR0913, PLR0917 - the columns of a chunk
    event: Any, session: Any, message: Any, transaction: Any, clean: Any, needed: Any, sessions: Any, marks: Any
) -> None:
    """Leave out begin, commit and answer of the ``clean`` transactions that no message that is kept has ``needed``.

    A call of commit also ends the deliveries of its session, as far as a prefetch bound counts them: the first after
    one that is kept stays, and the first of all, as another chunk may have kept one.
    """
    wanted = np.ones(sessions, np.uint8)
    for row in range(len(event)):
        its = transaction[row]
        if event[row] == _DELIVERED and marks[row] >= PINNED:
            wanted[session[row]] = 1
        elif event[row] == _COMMIT and (not clean[its] or needed[its] or wanted[session[row]]):
            wanted[session[row]] = 0
        elif its >= 0 and message[row] < 0 and clean[its] and not needed[its]:
            marks[row] = LEFT


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
        if kind in (_SEND, _RESEND) and transaction[row] < 0:
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
        elif kind in (_CONFIRMED, _REJECTED, _IN_DOUBT):
            depth[of[m]] -= still_open[m]
            still_open[m] = 0
    return found


@compiled
def steps_of_prefetch(  # noqa: C901, PLR0913, PLR0917 - the columns of a chunk
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
        its_end = kind in (_DELIVERED, _FAILED, _EXPIRED, _DEAD_LETTERED)
        its_end = its_end or (kind == _ACKNOWLEDGE and scope[row] == _OF_MESSAGE)
        if its_end and m >= 0 and still_open[m]:
            if begun[m] == era[of_session[m]]:
                depth[of[m]] -= 1
            still_open[m] = 0
        if kind in (_COMMIT, _ROLLBACK, _RECOVER, _CLOSE) or (kind == _ACKNOWLEDGE and scope[row] == _OF_SESSION):
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
