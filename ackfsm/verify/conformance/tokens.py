"""What the lines tell of messages, as columns: each token is one sign of one message, or of a pair of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.joins import NONE
from ackfsm.history_format import Event
from ackfsm.tables import Certainty
from ackfsm.terms import Fault
from ackfsm.verify.context.signs import (
    BROKEN,
    CONSUMER_BROKEN,
    DELIVERED_FLAGGED,
    DELIVERED_SOMEHOW,
    SIGNS,
    of_consumer,
)

__all__ = [
    "NOBODY",
    "OF_TRANSACTIONS",
    "OTHERS",
    "Tokens",
    "in_doubt",
    "members_of",
    "merged",
    "of_pairs",
    "until_the_last",
]

OTHERS: Final = -2
"""Stands for all consumers that the message was never handed to: it may have been on its way to one of them."""

NOBODY: Final = -1

OF_TRANSACTIONS: Final = (Event.COMMIT, Event.COMMITTED, Event.COMMIT_IN_DOUBT, Event.ROLLBACK, Event.ROLLED_BACK)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """One sign of one message each.

    ``row`` is the row of the events that tells it, ``process`` the consumer, :data:`NOBODY` or :data:`OTHERS`.
    """

    message: Ints
    row: Ints
    sign: Ints
    process: Ints
    certainty: Ints

    def where(self, chosen: Ints | Mask) -> Tokens:
        """Those tokens alone, or in that order."""
        return Tokens(*(getattr(self, field.name)[chosen] for field in dataclasses.fields(self)))

    def distinct(self) -> Tokens:
        """Without those that are the same as the one before: a call that covers two deliveries is one call."""
        if not len(self.message):
            return self
        columns = (self.message, self.row, self.sign, self.process)
        return self.where(np.append(True, np.any([each[1:] != each[:-1] for each in columns], axis=0)))

    @staticmethod
    def joined(parts: Sequence[Tokens]) -> Tokens:
        """All of ``parts``, one after the other."""
        fields = [field.name for field in dataclasses.fields(Tokens)]
        return Tokens(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))


def members_of(message: Ints, its: Ints) -> tuple[Ints, Ints]:
    """All places where ``message``, which is ascending, has one of ``its``: the number of that one, and the places."""
    begin, end = (np.searchsorted(message, its, side=side) for side in ("left", "right"))
    length = end - begin
    start = np.cumsum(length) - length
    return np.repeat(np.arange(len(its)), length), np.arange(length.sum()) + np.repeat(begin - start, length)


def of_pairs(tokens: Tokens, first: Ints, second: Ints) -> Tokens:
    """The tokens of both messages of each pair, with the pair for their message, and whose they are with their sign."""
    tokens = tokens.where(np.argsort(tokens.message, kind="stable"))
    parts = []
    for whose, its in enumerate((first, second), start=1):
        pair, place = members_of(tokens.message, its)
        part = tokens.where(place)
        parts.append(dataclasses.replace(part, message=pair, sign=part.sign + whose * len(SIGNS)))
    joined = Tokens.joined(parts)
    of, sign = np.divmod(joined.sign, len(SIGNS))
    sign = np.where(np.isin(sign, _DELIVERED), SIGNS.index(DELIVERED_SOMEHOW), sign)
    return dataclasses.replace(joined, sign=sign + of * len(SIGNS))


def until_the_last(tokens: Tokens, count: int) -> Tokens:
    """Without the ends of sessions after which nothing is told of either message."""
    ends = np.isin(tokens.sign % len(SIGNS), _ENDS)
    last = np.full(count, NONE, np.int64)
    np.maximum.at(last, tokens.message[~ends], tokens.row[~ends])
    return tokens.where(~ends | (tokens.row < last[tokens.message]))


_DELIVERED: Final = tuple(SIGNS.index(sign) for sign in (Event.DELIVERED.value, DELIVERED_FLAGGED))
_ENDS: Final = tuple(SIGNS.index(sign) for sign in (Event.RECOVER.value, of_consumer(Event.CLOSE)))


def merged(tokens: Tokens) -> Tokens:
    """``tokens`` in order, with one for what a line tells of both messages of a pair, or of one and what is around.

    A call that covers both is as uncertain as it is of one of them; what ends a session or befalls it, as certain.
    """
    of, sign = np.divmod(tokens.sign, len(SIGNS))
    shared = np.isin(sign, _SHARED)
    if not of.any() or not len(sign):
        return tokens
    columns = (tokens.message, tokens.row, sign, tokens.process)
    new = np.append(True, np.any([each[1:] != each[:-1] for each in columns], axis=0))
    starts = np.flatnonzero(new | ~(shared | np.isin(sign, _COVERING)))
    least, most = (each.reduceat(tokens.certainty, starts) for each in (np.minimum, np.maximum))
    whose = np.bitwise_or.reduceat(of, starts)
    return dataclasses.replace(
        tokens.where(starts),
        sign=sign[starts] + whose * len(SIGNS),
        certainty=np.where(shared[starts], least, most),
    )


_COVERING: Final = tuple(SIGNS.index(event.value) for event in (Event.ACKNOWLEDGE, Event.ACKNOWLEDGED))
_OF_SESSIONS_ALONE: Final = (*OF_TRANSACTIONS, Event.RECOVER)
_SHARED: Final = tuple(
    SIGNS.index(name)
    for name in (
        *(event.value for event in _OF_SESSIONS_ALONE),
        *(of_consumer(event) for event in (*OF_TRANSACTIONS, Event.CLOSE)),
        *(fault.value for fault in Fault if fault is not Fault.REJECTION),
        BROKEN,
        CONSUMER_BROKEN,
    )
)
"""Signs of a session, of a transaction or of all, which are heard once for both messages of a pair."""


def in_doubt(tokens: Tokens) -> Tokens:
    """A call that failed may have had no effect, and what failed it may have been seen by the library alone."""
    calls, doubts = (tokens.sign == SIGNS.index(event) for event in (Event.ACKNOWLEDGE, Event.ACK_IN_DOUBT))
    certainty = tokens.certainty.copy()
    certainty[calls & np.isin(tokens.message, tokens.message[doubts])] = Certainty.PERHAPS
    certainty[doubts] = Certainty.IF_POSSIBLE
    return dataclasses.replace(tokens, certainty=certainty)
