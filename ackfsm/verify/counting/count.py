"""Anomalies that no machine of a single message can find: order, window, transactions, counts.

Each is counted to the letter of its definition, from the events in the order of time.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT
from ackfsm.history.format import VOCABULARY, Event, Outcome
from ackfsm.history.index import Index, Quiescence
from ackfsm.history.joins import NEVER, NONE, distinct_pairs, number_pairs
from ackfsm.terms import Fault
from ackfsm.verify.counting.observables import covering_acks

__all__ = [
    "Halved",
    "Prefetch",
    "count_regressions",
    "ends_of",
    "halved_transactions",
    "over_delivered",
    "prefetch_overruns",
    "reordered",
    "torn_transactions",
    "window_overruns",
]

_ENDS = (Event.EXPIRED, Event.DEAD_LETTERED)


_OF_ITS_MESSAGE = (Event.DELIVERED, Event.FAILED, Event.LEASE_EXPIRED, Event.EXPIRED, Event.DEAD_LETTERED)
_OF_ITS_TRANSACTION = (Event.COMMIT, Event.ROLLBACK)
_OF_ITS_SESSION = (Event.COMMIT, Event.ROLLBACK, Event.RECOVER, Event.CLOSE)
"""The events after which a delivery is no longer open, beside the acknowledgements that cover it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Prefetch:
    """What bounds the deliveries that are open.

    Attributes:
        bound: how many a consumer may have.
        interruptions: the faults after which nobody can say by which connection a delivery came: some messages were
            prefetched before, and the broker has begun to count anew.
    """

    bound: int
    interruptions: frozenset[Fault]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Halved:
    """Transactions with an effect on one side only, as columns: one message of each side.

    ``row`` is the delivery with which the consumed one came again although the sent one came; :data:`NONE` if neither.
    """

    consumed: Ints
    sent: Ints
    row: Ints


def reordered(events: Index, *, in_one_session: bool = False) -> Ints:
    """The messages that came after a later-sent one, neither a repetition.

    Of messages that were never resent and whose first delivery is unflagged: those that were first delivered to a
    consumer after a later-sent one of the same producer, queue, delivery mode and priority; with ``in_one_session``
    those of which one was sent in the same session, which alone has an order.
    """
    sent, delivered = events.first_send, events.first_delivery
    eligible = (sent != NONE) & (delivered != NONE) & (events.first(Event.RESEND) == NONE)
    eligible &= events.redelivered[delivered] == 0
    message = np.flatnonzero(eligible)
    message = message[np.argsort(delivered[message], kind="stable")]
    send, delivery = sent[message], delivered[message]
    lane = number_pairs(number_pairs(events.receivers(delivery), events.process[send]), events.kind_of[message])
    if in_one_session:
        lane = number_pairs(lane, events.session[send])
    order = np.argsort(lane, kind="stable")
    keys = lane[order] * len(events) + send[order]
    return np.unique(message[order[keys < np.maximum.accumulate(keys)]])


def window_overruns(events: Index, window: int, within: Mask) -> Ints:
    """The messages that were sent while ``window`` sends of their session were open, of messages ``within`` a window.

    A send is open until an outcome of its message, the close of its session or the crash that leaves it without.
    """
    sends = events.plain_sends
    within = within[events.message[sends.place]]
    place, end = sends.place[within], sends.end[within]
    return np.unique(events.message[place[opened(events.session[place], place, end) >= window]])


def opened(lane: Ints, begin: Ints, end: Ints) -> Ints:
    """Return for each span of rows how many of its lane were open when it began; an end of NEVER is for good."""
    until = np.maximum(end, begin + 1)  # what is over at once was open after those before it had begun
    width = np.int64(begin.max(initial=0) + 2)
    now = lane * width + begin
    before = np.searchsorted(np.sort(now), now)
    return np.asarray(before - np.searchsorted(np.sort(lane * width + np.minimum(until, width - 1)), now, "right"))


def prefetch_overruns(events: Index, prefetch: Prefetch, messages: Mask) -> Ints:
    """Return the ``messages`` that came while ``prefetch.bound`` deliveries of their session and queue were open.

    The bound is one of the broker's, of which a history sees only the far end, so whatever may have freed a place there
    is taken to have done so as early as it can (:func:`ends_of`).  What two queues send to one session is counted
    apart, as a session may have a consumer on each.  Only deliveries that came by one connection for certain are
    counted together: those of messages that were sent and delivered between the same two interruptions, or repairs of
    one.
    """
    delivered = events.deliveries
    era = _eras(events, delivered, prefetch)
    sent = np.maximum(events.first(Event.SEND), 0)  # the first row of all where that is not told
    counted = era == _eras(events, sent[events.message[delivered]], prefetch)
    counted &= messages[events.message[delivered]]
    place = delivered[counted]
    lane = number_pairs(events.receivers(place), events.queue[place])
    lane = number_pairs(lane, era[counted])
    return np.unique(events.message[place[opened(lane, place, ends_of(events)[counted]) >= prefetch.bound]])


def ends_of(events: Index) -> Ints:
    """The row from which each delivery is no longer open.

    That is a call that acknowledges, commits, rolls back, recovers or closes; an answer without a call; a failure of
    the message, its end, or another delivery of it.
    """
    ends = events.until(
        events.deliveries,
        message=events.places(*_OF_ITS_MESSAGE),
        transaction=events.places(*_OF_ITS_TRANSACTION),
        session=events.places(*_OF_ITS_SESSION),
    )
    return functools.reduce(np.minimum, (acts for _, acts in covering_acks(events)), ends)


def _eras(events: Index, places: Ints, prefetch: Prefetch) -> Ints:
    """How many interruptions, and repairs of one, there were before each row."""
    kinds = [VOCABULARY["fault"].index(fault) for fault in prefetch.interruptions]
    moments = events.places(Event.FAULT, Event.RECOVERED)
    eras: Ints = np.searchsorted(moments[np.isin(events.fault[moments], kinds)], places)
    return eras


def torn_transactions(events: Index, rest: Quiescence, messages: Mask) -> tuple[Ints, bool]:
    """Return the transactions with a partial effect, and whether each of ``messages`` could be judged.

    Of those at rest: some but not all of the sends were delivered (or expired, or were dead-lettered),
    or, the outcome being in doubt, some but not all of the consumed messages came again.  What was dead-lettered or
    expired was not consumed either, even if it was delivered later: from what a client had before its connection broke.
    A message that was sent again is left out of the consumed ones: that it came again may be its second copy.
    """
    ended = events.last(*_ENDS) != NONE
    came = events.last(Event.DELIVERED, *_ENDS)
    sends = events.inside(Event.SEND, Event.RESEND)
    transaction, message, _ = distinct_pairs(events.transaction[sends], events.message[sends])
    torn_sends = _partly(events, transaction, came[message] != NONE, rest.judged[message])
    doubt = _in_doubt(events)
    taken = events.inside(Event.DELIVERED)
    taken = taken[events.first(Event.RESEND)[events.message[taken]] == NONE]
    transaction, message, last = distinct_pairs(events.transaction[taken], events.message[taken])
    doubtful = doubt[transaction] != NONE
    transaction, message, delivery = transaction[doubtful], message[doubtful], taken[last[doubtful]]
    judged = rest.judged[message] & (rest.drained[message] > doubt[transaction])
    torn_acks = _partly(events, transaction, ended[message] | (came[message] > delivery), judged)
    complete = rest.judged[messages].all() and judged[messages[message]].all()
    return np.union1d(torn_sends, torn_acks), bool(complete)


def halved_transactions(events: Index, rest: Quiescence) -> Halved:
    """Return the transactions in doubt, with both sends and deliveries, of one side only.

    That is no ``torn_transaction`` to the letter, for which each side is looked at by itself.  Either what was consumed
    came again although what was sent came, or at rest neither did.  Messages that were sent again tell nothing.
    """
    doubt, resent = _in_doubt(events), events.first(Event.RESEND) != NONE
    came = events.last(Event.DELIVERED, *_ENDS)
    sides = []
    for kind in (Event.SEND, Event.DELIVERED):
        rows = events.inside(kind)
        transaction, message, last = distinct_pairs(events.transaction[rows], events.message[rows])
        sides.append((transaction, message, came[message] > rows[last]))
    doubt[events.transaction[events.places(Event.ROLLED_BACK)]] = NONE
    both = np.intersect1d(sides[0][0], sides[1][0])
    both = both[doubt[both] != NONE]
    (sending, sent, arrived), (taking, taken, again) = (
        tuple(column[np.isin(side[0], both)] for column in side) for side in sides
    )
    found = []
    for number in both.tolist():
        ours, theirs = sending == number, taking == number
        members = np.concatenate([sent[ours], taken[theirs]])
        if resent[members].any():
            continue
        consumed, other = taken[theirs & again], sent[ours & arrived]
        at_rest = rest.judged[members].all() and (rest.drained[members] > doubt[number]).all()
        if len(consumed) and len(other):
            found.append((consumed[0], other[0], came[consumed[0]]))
        elif at_rest and not len(consumed) and not len(other):
            found.append((taken[theirs][0], sent[ours][0], NONE))
    columns = np.array(found, np.int64).reshape(-1, 3).T
    return Halved(columns[0], columns[1], columns[2])


def count_regressions(events: Index, *, uncounted: bool = False) -> Ints:
    """The messages whose delivery count fell, or disagrees with the flag (above 1 but clear, or the reverse).

    Each copy has a count of its own, so that of a message that was sent again the count may fall.  With ``uncounted``
    what an application releases, or is lent for too long, is flagged and not counted.
    """
    counted = events.places(Event.DELIVERED)
    counted = counted[events.delivery_count[counted] != ABSENT]
    by_message = counted[np.argsort(events.message[counted], kind="stable")]
    message, count = events.message[by_message], events.delivery_count[by_message]
    fell = (message[1:] == message[:-1]) & (count[1:] < count[:-1])
    fell &= events.first(Event.RESEND)[message[1:]] == NONE
    disagrees = (count > 1) != (events.redelivered[by_message] == 1)
    if uncounted:
        disagrees &= (count > 1) | (_released(events)[message] > by_message)
    return np.unique(np.concatenate([message[1:][fell], message[disagrees]]).astype(np.int64))


def _released(events: Index) -> Ints:
    """For each message the first row that gives it back as if it had not been delivered; :data:`NEVER` without one."""
    failed, over = events.places(Event.FAILED), events.places(Event.LEASE_EXPIRED)
    rows = np.union1d(failed[events.outcome[failed] == VOCABULARY["outcome"].index(Outcome.RELEASED)], over)
    found = np.full(events.count_of("message"), NEVER, np.int64)
    np.minimum.at(found, events.message[rows], rows)
    return found


def over_delivered(events: Index, limit: int) -> Ints:
    """The messages that were delivered more than ``limit`` times (0: no limit), or after they had expired.

    Those that were sent again have several copies, each with attempts of its own, and are not counted by their number.
    """
    delivered = events.message[events.deliveries]
    often = np.bincount(delivered, minlength=events.count_of("message")) > (limit or len(events))
    often &= events.first(Event.RESEND) == NONE
    expired = events.first(Event.EXPIRED)
    late = (expired != NONE) & (events.last(Event.DELIVERED) > expired)
    return np.flatnonzero(often | late)


def _in_doubt(events: Index) -> Ints:
    """The row of each transaction's last ``commit_in_doubt``; :data:`NONE` without one, or if it was committed."""
    doubt = events.last_of(events.places(Event.COMMIT_IN_DOUBT), "transaction")
    doubt[events.transaction[events.places(Event.COMMITTED)]] = NONE
    return doubt


def _partly(events: Index, transaction: Ints, effective: Mask, judged: Mask) -> Ints:
    """The transactions, all of whose members are judged, with effective members and others."""
    count = events.count_of("transaction")
    members, happened, at_rest = (
        np.bincount(transaction[mask], minlength=count) for mask in (slice(None), effective, judged)
    )
    return np.flatnonzero((happened > 0) & (happened < members) & (at_rest == members))
