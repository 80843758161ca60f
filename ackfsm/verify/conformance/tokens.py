"""Tokens as columns: each is one sign of one message, or of a pair of messages."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.format import Event
from ackfsm.history.joins import NONE, members_of
from ackfsm.tables import Certainty, Of
from ackfsm.verify.context.signs import DELIVERED_SOMEHOW, Signs

OTHERS: Final = -2
"""Stands for all consumers that the message was never handed to: it may have been on its way to one of them."""

NOBODY: Final = -1

ANSWERS: Final = (Event.ACKNOWLEDGED, Event.ACK_IN_DOUBT)
"""The lines that answer an acknowledgement."""


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

    def distinct(self, signs: Signs) -> Tokens:
        """Return the tokens without repetitions: a call that covers two deliveries is one call.

        Of a message that was sent again they may be of two copies, each of which has the call's answer.
        """
        if not len(self.message):
            return self
        columns = (self.message, self.row, self.sign, self.process)
        new = np.append(True, np.any([each[1:] != each[:-1] for each in columns], axis=0))
        again = np.isin(self.message, self.message[self.sign == signs.code(Event.RESEND.value)])
        answers = again & np.isin(self.sign, [signs.code(each.value) for each in ANSWERS])
        least = np.where(new, self.certainty, np.maximum(self.certainty, int(Certainty.IF_POSSIBLE)))
        return dataclasses.replace(self, certainty=least).where(new | answers)

    @staticmethod
    def joined(parts: Sequence[Tokens]) -> Tokens:
        """All of ``parts``, one after the other."""
        fields = [field.name for field in dataclasses.fields(Tokens)]
        return Tokens(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))


def of_pairs(tokens: Tokens, first: Ints, second: Ints, signs: Signs) -> Tokens:
    """The tokens of both messages of each pair, with the pair for their message, and whose they are with their sign."""
    tokens = tokens.where(np.argsort(tokens.message, kind="stable"))
    parts = []
    for whose, its in enumerate((first, second), start=1):
        pair, place = members_of(tokens.message, its)
        part = tokens.where(place)
        parts.append(dataclasses.replace(part, message=pair, sign=part.sign + whose * len(signs)))
    joined = Tokens.joined(parts)
    of, sign = np.divmod(joined.sign, len(signs))
    deliveries = signs.those(lambda row: row.line == signs.rows[signs.code(DELIVERED_SOMEHOW)].line)
    sign = np.where(np.isin(sign, deliveries), signs.code(DELIVERED_SOMEHOW), sign)
    return dataclasses.replace(joined, sign=sign + of * len(signs))


def until_the_last(tokens: Tokens, count: int, signs: Signs) -> Tokens:
    """Without the ends of sessions after which nothing is told of either message."""
    ends = np.isin(tokens.sign % len(signs), signs.those(lambda row: row.gives_back and row.of is Of.SESSION))
    last = np.full(count, NONE, np.int64)
    np.maximum.at(last, tokens.message[~ends], tokens.row[~ends])
    return tokens.where(~ends | (tokens.row < last[tokens.message]))


_OF_ONE_MESSAGE: Final = frozenset({Of.NAMED, Of.HOLDER, Of.UNTOLD})


def merged(tokens: Tokens, signs: Signs) -> Tokens:
    """Return ``tokens`` in order, with one token for a line about both messages of a pair, or one and its circumstance.

    A call that covers both is as uncertain as it is of one of them; what ends a session or befalls it, as certain.
    """
    of, sign = np.divmod(tokens.sign, len(signs))
    if not of.any() or not len(sign):
        return tokens
    covering = np.isin(sign, signs.those(lambda row: row.of is Of.COVERED))
    shared = ~covering & ~np.isin(sign, signs.those(lambda row: row.of in _OF_ONE_MESSAGE))
    columns = (tokens.message, tokens.row, sign, tokens.process)
    new = np.append(True, np.any([each[1:] != each[:-1] for each in columns], axis=0))
    starts = np.flatnonzero(new | ~(shared | covering))
    least, most = (each.reduceat(tokens.certainty, starts) for each in (np.minimum, np.maximum))
    whose = np.bitwise_or.reduceat(of, starts)
    return dataclasses.replace(
        tokens.where(starts),
        sign=sign[starts] + whose * len(signs),
        certainty=np.where(shared[starts], least, most),
    )


def doubted(tokens: Tokens, signs: Signs) -> Tokens:
    """Return ``tokens`` with doubted signs made unsure: a call that failed may have had no effect."""
    certainty = tokens.certainty.copy()
    for code, row in enumerate(signs.rows):
        if row.doubts:
            having = np.isin(tokens.message, tokens.message[tokens.sign == code])
            certainty[having & np.isin(tokens.sign, [signs.code(name) for name in row.doubts])] = Certainty.PERHAPS
    return dataclasses.replace(tokens, certainty=certainty)
