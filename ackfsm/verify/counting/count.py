"""Anomalies that no machine of a single message can find: order, window, transactions, counts.

Each is counted to the letter of its definition, from the events in the order of time.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT, Events
from ackfsm.history.joins import NONE, at, distinct_pairs, first_covering, number_pairs
from ackfsm.history.quiescence import Quiescence
from ackfsm.history.sends import Sends
from ackfsm.history_format import Event

__all__ = [
    "Halved",
    "count_regressions",
    "halved_transactions",
    "over_delivered",
    "reordered",
    "torn_transactions",
    "window_overruns",
]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Halved:
    """Transactions of which one side took effect, and not the other: one message of each side.

    ``row`` is the delivery with which the consumed one came again although the sent one came; :data:`NONE` if neither.
    """

    consumed: Ints
    sent: Ints
    row: Ints


def reordered(events: Events, *, in_one_session: bool = False) -> Ints:
    """The messages that came after a later-sent one, neither a repetition.

    Of messages that were never resent and whose first delivery is unflagged: those that were first delivered in a
    session after a later-sent one of the same producer, queue, delivery mode and priority; with ``in_one_session``
    those of which one was sent in the same session, which alone has an order.
    """
    count = events.count_of("message")
    sent = _first(events, count, Event.SEND, Event.RESEND)
    delivered = _first(events, count, Event.DELIVERED)
    eligible = (sent != NONE) & (delivered != NONE) & (_first(events, count, Event.RESEND) == NONE)
    eligible &= events.redelivered[delivered] == 0
    message = np.flatnonzero(eligible)
    message = message[np.argsort(delivered[message], kind="stable")]
    send, delivery = sent[message], delivered[message]
    lane = number_pairs(events.session[delivery], events.process[send])
    if in_one_session:
        lane = number_pairs(lane, events.session[send])
    for column in (events.queue, events.delivery_mode, events.priority):
        lane = number_pairs(lane, column[send])
    order = np.argsort(lane, kind="stable")
    keys = lane[order] * len(events) + send[order]
    return np.unique(message[order[keys < np.maximum.accumulate(keys)]])


def window_overruns(events: Events, sends: Sends, window: int, within: Mask) -> Ints:
    """The messages that were sent while ``window`` sends of their session were open, of messages ``within`` a window.

    A send is open until an outcome of its message, the close of its session or the crash that leaves it without.
    """
    sends = sends.of(within[events.message[sends.place]])
    closes = events.places(Event.CLOSE)
    session = events.session[sends.place]
    closed = at(closes, first_covering(session, sends.place, events.session[closes], closes), NONE)
    never = len(events)
    end = np.min([np.where(each == NONE, never, each) for each in (sends.outcome, sends.crash, closed)], axis=0)
    width = np.int64(never + 1)
    now = session * width + sends.place
    opened = np.searchsorted(np.sort(now), now)
    gone = np.searchsorted(np.sort(session * width + end), now)
    return np.unique(events.message[sends.place[opened - gone >= window]])


def torn_transactions(events: Events, rest: Quiescence, messages: Mask) -> tuple[Ints, bool]:
    """The transactions of which a part took effect, and whether every one of ``messages`` could be judged.

    Of those at rest: some but not all of the sends were delivered (or expired, or were dead-lettered),
    or, the outcome being in doubt, some but not all of the consumed messages came again.  What was dead-lettered or
    expired was not consumed either, even if it was delivered later: from what a client had before its connection broke.
    A message that was sent again is left out of the consumed ones: that it came again may be its second copy.
    """
    count = events.count_of("message")
    ended = _last(events, count, Event.EXPIRED, Event.DEAD_LETTERED) != NONE
    came = _last(events, count, Event.DELIVERED, Event.EXPIRED, Event.DEAD_LETTERED)
    sends = _inside(events, Event.SEND, Event.RESEND)
    transaction, message, _ = distinct_pairs(events.transaction[sends], events.message[sends])
    torn_sends = _partly(events, transaction, came[message] != NONE, rest.judged[message])
    doubt = _in_doubt(events)
    resent = np.zeros(count, np.bool_)
    resent[events.message[events.places(Event.RESEND)]] = True
    taken = _inside(events, Event.DELIVERED)
    taken = taken[~resent[events.message[taken]]]
    transaction, message, last = distinct_pairs(events.transaction[taken], events.message[taken])
    doubtful = doubt[transaction] != NONE
    transaction, message, delivery = transaction[doubtful], message[doubtful], taken[last[doubtful]]
    judged = rest.judged[message] & (rest.drained[message] > doubt[transaction])
    torn_acks = _partly(events, transaction, ended[message] | (came[message] > delivery), judged)
    complete = rest.judged[messages].all() and judged[messages[message]].all()
    return np.union1d(torn_sends, torn_acks), bool(complete)


def halved_transactions(events: Events, rest: Quiescence) -> Halved:
    """The transactions in doubt that both sent and consumed, of which one side took effect and the other did not.

    That is no ``torn_transaction`` to the letter, for which each side is looked at by itself.  Either what was consumed
    came again although what was sent came, or at rest neither did.  Messages that were sent again tell nothing.
    """
    count, doubt = events.count_of("message"), _in_doubt(events)
    resent = np.zeros(count, np.bool_)
    resent[events.message[events.places(Event.RESEND)]] = True
    came = _last(events, count, Event.DELIVERED, Event.EXPIRED, Event.DEAD_LETTERED)
    sides = []
    for kind in (Event.SEND, Event.DELIVERED):
        rows = _inside(events, kind)
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


def count_regressions(events: Events) -> Ints:
    """The messages whose delivery count fell, or disagrees with the flag (above 1 but clear, or the reverse)."""
    counted = events.places(Event.DELIVERED)
    counted = counted[events.delivery_count[counted] != ABSENT]
    by_message = counted[np.argsort(events.message[counted], kind="stable")]
    message, count = events.message[by_message], events.delivery_count[by_message]
    fell = (message[1:] == message[:-1]) & (count[1:] < count[:-1])
    disagrees = (count > 1) != (events.redelivered[by_message] == 1)
    return np.unique(np.concatenate([message[1:][fell], message[disagrees]]).astype(np.int64))


def over_delivered(events: Events, limit: int) -> Ints:
    """The messages that were delivered more than ``limit`` times (0: no limit), or after they had expired.

    Those that were sent again have several copies, each with attempts of its own, and are not counted by their number.
    """
    count = events.count_of("message")
    delivered = events.message[events.places(Event.DELIVERED)]
    often = np.bincount(delivered, minlength=count) > (limit or len(events))
    often &= _first(events, count, Event.RESEND) == NONE
    expired = _first(events, count, Event.EXPIRED)
    late = (expired != NONE) & (_last(events, count, Event.DELIVERED) > expired)
    return np.flatnonzero(often | late)


def _first(events: Events, count: int, *kinds: Event) -> Ints:
    """The row of the first such event of each message, :data:`NONE` where there is none."""
    first = np.full(count, NONE, np.int64)
    places = events.places(*kinds)[::-1]
    first[events.message[places]] = places  # the last assignment wins
    return first


def _last(events: Events, count: int, *kinds: Event) -> Ints:
    last = np.full(count, NONE, np.int64)
    places = events.places(*kinds)
    last[events.message[places]] = places
    return last


def _inside(events: Events, *kinds: Event) -> Ints:
    places = events.places(*kinds)
    inside: Ints = places[events.transaction[places] != ABSENT]
    return inside


def _in_doubt(events: Events) -> Ints:
    """The row of each transaction's last ``commit_in_doubt``; :data:`NONE` without one, or if it was committed."""
    doubt = np.full(events.count_of("transaction"), NONE, np.int64)
    places = events.places(Event.COMMIT_IN_DOUBT)
    doubt[events.transaction[places]] = places
    doubt[events.transaction[events.places(Event.COMMITTED)]] = NONE
    return doubt


def _partly(events: Events, transaction: Ints, effective: Mask, judged: Mask) -> Ints:
    """The transactions, all of whose members are judged, with effective members and others."""
    count = events.count_of("transaction")
    members, happened, at_rest = (
        np.bincount(transaction[mask], minlength=count) for mask in (slice(None), effective, judged)
    )
    return np.flatnonzero((happened > 0) & (happened < members) & (at_rest == members))
