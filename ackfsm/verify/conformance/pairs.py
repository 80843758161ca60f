"""Which pairs of messages of a history are held to the network of two messages.

A pair is of two messages that one session of a producer sent to one queue, one after the other, and that have something
to do with each other: both were first delivered in one session, both belong to one transaction, one overtook the
other, or one of them was lost.  Where one came again, the next delivery of its session makes a pair with it, whoever
sent that one.  What the network of two messages is not exact for makes no pair (docs/decisions/pairs.md).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from enum import IntFlag
from typing import Final

import numpy as np

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT
from ackfsm.history.format import Event
from ackfsm.history.index import OUTCOMES, Index
from ackfsm.history.joins import NONE, at, number_pairs
from ackfsm.terms import Anomaly, Configuration, SendMode
from ackfsm.verify.conformance.lives import Facts
from ackfsm.verify.conformance.messages import Conformance
from ackfsm.verify.counting.count import ends_of

_MOST_PLAIN: Final = 200_000
"""Neighbours that are held, of those that nothing else makes a pair: so many fit into memory beside the messages."""

_OF_EACH_KIND: Final = 1_000
"""Of neighbours with the same two lives so many are taken before others."""


class Why(IntFlag):
    """What makes two messages a pair."""

    NEIGHBOURS = 1
    """One was sent after the other, and both were first delivered in one session."""
    REPEATED = 2
    """The same, of those messages that were delivered more than once."""
    OVERTAKEN = 4
    """The second was delivered before the first."""
    TRANSACTION = 8
    """They are members of one transaction, one after the other."""
    FOLLOWED = 16
    """The first came again, and the second was first delivered right after it in its session, whoever sent it."""
    LOST = 32
    """One was sent after the other, and one of them was lost."""
    HELD_BESIDE = 64
    """The queue is exclusive, and one consumer was handed one while another one had the other still."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of messages, each once; the ``first`` was sent before the ``second``.

    Those that may tell of an anomaly come first, mere neighbours last.

    Attributes:
        first, second: the messages, by code.
        why: the bits of :class:`Why`.
        member, transaction: the places of pairs that are members of one transaction, and that transaction.
        urgent: how many may tell of an anomaly; they come first.
        beside: how many neighbours there are that were not taken.
        unheld: of how many that two consumers of an exclusive queue had at once the network of two messages is none.
    """

    first: Ints
    second: Ints
    why: Ints
    member: Ints
    transaction: Ints
    urgent: int
    beside: int
    unheld: int

    def __len__(self) -> int:
        return len(self.first)

    def having(self, why: Why) -> Ints:
        """Return the places of the pairs that were formed because of ``why``."""
        found: Ints = np.flatnonzero(self.why & int(why))
        return found


def pairs_of(
    events: Index,
    conformance: Conformance,
    configuration: Configuration,
    anomalies: Mapping[Anomaly, Ints],
    doubted: Ints,
) -> Pairs:
    """Return the pairs of ``events`` whose messages are runs of the model alone, without ``doubted`` ones.

    ``anomalies`` has the messages that were overtaken, those that were lost, and the transactions that were torn.
    """
    return _Pairing(events, conformance, configuration, anomalies, doubted).pairs(anomalies[Anomaly.TORN_TRANSACTION])


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Pairs that ``why`` makes, each with its transaction if it is one of members."""

    why: Why
    first: Ints
    second: Ints
    transaction: Ints | int = ABSENT


class _Pairing:
    def __init__(
        self,
        events: Index,
        conformance: Conformance,
        configuration: Configuration,
        anomalies: Mapping[Anomaly, Ints],
        doubted: Ints,
    ) -> None:
        count = events.count_of("message")
        self._events, self._conformance = events, conformance
        self._overtaken, self._lost = anomalies[Anomaly.REORDER], anomalies[Anomaly.LOSS]
        self._blocking = configuration.send_mode is SendMode.BLOCKING
        self._exclusive, self._unheld = configuration.exclusive_consumer, 0
        self._facts = conformance.recorded.facts
        self._sent, self._delivered = events.first(Event.SEND), events.first_delivery
        self._outcome, self._confirmed = events.first(*OUTCOMES), events.first(Event.CONFIRMED)
        self._resent = events.first(Event.RESEND) != NONE
        self._times = np.bincount(events.message[events.deliveries], minlength=count)
        self._usable = np.bincount(events.message[events.places(Event.SEND)], minlength=count) == 1
        self._usable &= conformance.held
        acting = np.concatenate([events.sends, events.deliveries])
        mixed = events.message[acting[np.isin(events.process[acting], _with_several(events, acting))]]
        for messages in (conformance.contradicted(), doubted, *conformance.undecided().values(), mixed):
            self._usable[messages] = False
        self._kind, last = events.kind_of, events.last_send
        process = at(events.process, last, ABSENT)
        self._struck = np.isin(process, events.process[events.places(Event.FAULT)])
        sender = number_pairs(process, at(events.session, last, ABSENT))
        self._lane = number_pairs(sender, self._kind)

    def pairs(self, torn: Ints) -> Pairs:
        """Return the pairs for the network of two messages, each once, the members of ``torn`` transactions early."""
        return self._chosen([self._ordered(each) for each in self._candidates()], torn)

    def _ordered(self, found: _Candidates) -> _Candidates:
        """Return the candidates with two messages that are alike, the one sent first first."""
        swapped = self._sent[found.first] > self._sent[found.second]
        first, second = np.where(swapped, found.second, found.first), np.where(swapped, found.first, found.second)
        kept = self._usable[first] & self._usable[second] & (first != second)
        kept[kept] = self._exact(first[kept], second[kept])
        if found.why is Why.HELD_BESIDE:
            theirs = self._conformance.held[first] & self._conformance.held[second]
            self._unheld = int((theirs & ~kept).sum())
        return _Candidates(found.why, first[kept], second[kept], np.broadcast_to(found.transaction, kept.shape)[kept])

    def _candidates(self) -> Iterator[_Candidates]:
        once = np.flatnonzero(self._usable & ~self._resent & (self._delivered != NONE))
        again = once[self._times[once] > 1]
        yield _Candidates(Why.NEIGHBOURS, *self._neighbours(once))
        yield _Candidates(Why.REPEATED, *self._neighbours(again))
        yield _Candidates(Why.OVERTAKEN, *self._overtaking(once))
        yield _Candidates(Why.FOLLOWED, *self._followed(once))
        yield _Candidates(Why.LOST, *self._beside_lost())
        yield _Candidates(Why.HELD_BESIDE, *self._held_beside())
        yield from self._members()

    def _neighbours(self, messages: Ints) -> tuple[Ints, Ints]:
        """Messages sent one after the other in one lane, of those first delivered in one session."""
        lane = number_pairs(self._lane[messages], self._events.session[self._delivered[messages]])
        return _adjacent(messages, lane, self._sent[messages])

    def _followed(self, messages: Ints) -> tuple[Ints, Ints]:
        """Each message that came again, with the next first delivery of its session, if another session sent that."""
        delivered = self._delivered[messages]
        session = number_pairs(self._events.process[delivered], self._events.session[delivered])
        first, second = _adjacent(messages, session, delivered)
        chosen = (self._times[first] > 1) & (self._lane[first] != self._lane[second])
        return first[chosen], second[chosen]

    def _beside_lost(self) -> tuple[Ints, Ints]:
        """Return the messages sent right before and after each lost message in its lane, as pairs."""
        sent = np.flatnonzero(self._sent != NONE)
        first, second = _adjacent(sent, self._lane[sent], self._sent[sent])
        beside = np.isin(first, self._lost) | np.isin(second, self._lost)
        beside &= ~self._resent[first] & ~self._resent[second]
        return first[beside], second[beside]

    def _held_beside(self) -> tuple[Ints, Ints]:
        """Each message that a consumer was handed while another one of its exclusive queue held one, with that."""
        events, handed = self._events, self._events.deliveries
        if not self._exclusive:
            return handed[:0], handed[:0]
        consumer = number_pairs(number_pairs(events.process[handed], events.session[handed]), events.consumer[handed])
        order = np.argsort(events.queue[handed], kind="stable")
        row, consumer, queue = handed[order], consumer[order], events.queue[handed][order]
        end = ends_of(events)[order]
        key = queue.astype(np.int64) * (len(events) + 1) + np.minimum(end, len(events))
        latest = np.maximum.accumulate(np.where(np.maximum.accumulate(key) == key, np.arange(len(key)), 0))
        found = []
        for before in (np.arange(len(row)) - 1, np.append(-1, latest[:-1])[: len(row)]):
            both = (
                (before >= 0)
                & (queue != ABSENT)
                & (queue[before] == queue)
                & (consumer[before] != consumer)
                & (end[before] > row)
            )
            found.append((events.message[row[before[both]]], events.message[row[both]]))
        first, second = (np.concatenate(each).astype(np.int64) for each in zip(*found, strict=True))
        return first, second

    def _overtaking(self, messages: Ints) -> tuple[Ints, Ints]:
        """Each overtaken message with the latest sent that overtook it, and with the one just before if that did."""
        messages = messages[self._events.redelivered[self._delivered[messages]] == 0]
        delivered = self._delivered[messages]
        lane = number_pairs(self._lane[messages], self._events.session[delivered])
        order = np.lexsort((delivered, lane))
        message, lane = messages[order], lane[order]
        key = lane * len(self._events) + self._sent[message]
        latest = np.maximum.accumulate(key)
        holder = np.maximum.accumulate(np.where(key == latest, np.arange(len(key)), 0))
        late = np.flatnonzero((key < latest) & np.isin(message, self._overtaken))
        near = late[key[late - 1] > key[late]]
        places = np.concatenate([late, near])
        others = np.concatenate([holder[late], near - 1])
        return message[places], message[others]

    def _members(self) -> Iterator[_Candidates]:
        """Yield the members of each transaction in one lane: its sends, in order, and its deliveries."""
        events = self._events
        for kinds in ((Event.SEND, Event.RESEND), (Event.DELIVERED,)):
            inside = events.inside(*kinds)
            message, transaction = events.message[inside].astype(np.int64), events.transaction[inside].astype(np.int64)
            place = np.arange(len(inside))
            before, after = _adjacent(place, number_pairs(transaction, self._lane[message]), inside)
            yield _Candidates(Why.TRANSACTION, message[before], message[after], transaction[before])

    def _exact(self, first: Ints, second: Ints) -> Mask:
        """Whether the network of two messages may be held to each pair."""
        one_lane = self._lane[first] == self._lane[second]
        return np.where(one_lane, self._one_lane(first, second), self._apart(first, second))

    def _apart(self, first: Ints, second: Ints) -> Mask:
        """Whether one may be taken for sent after the other by one producer, for which the network has a place.

        The first was confirmed before the second was sent, and delivered before it, and no transaction is told of.
        What befell one producer befell no other: a send without an outcome may have been cut short.
        """
        facts, sent = self._facts, Facts.SENT_IN_TRANSACTION | Facts.CONSUMED_IN_TRANSACTION
        plain = (facts[first] | facts[second]) & int(sent) == 0
        outcome, delivered = self._outcome, self._delivered
        confirmed = (outcome[first] == NONE) == (outcome[second] == NONE)
        for each in (first, second):
            confirmed &= (self._confirmed[each] == outcome[each]) & ((outcome[each] != NONE) | ~self._struck[each])
        in_turn = (outcome[first] < self._sent[second]) & (delivered[first] < delivered[second])
        return np.asarray((self._kind[first] == self._kind[second]) & plain & confirmed & in_turn)

    def _one_lane(self, first: Ints, second: Ints) -> Mask:
        """The same of messages that one session sent to one queue in one mode."""
        facts = self._facts
        either = facts[first] | facts[second]
        transacted = either & int(Facts.SENT_IN_TRANSACTION | Facts.CONSUMED_IN_TRANSACTION) != 0
        same = _alike(facts, first, second, Facts.SENT, Facts.SENT_IN_TRANSACTION)
        same &= _alike(facts, first, second, Facts.HANDED_OVER, Facts.CONSUMED_IN_TRANSACTION)
        plainly_consumed = (either & int(Facts.HANDED_OVER) != 0) & (either & int(Facts.CONSUMED_IN_TRANSACTION) == 0)
        plainly_sent = either & int(Facts.SENT_IN_TRANSACTION) == 0
        returned = (self._outcome[first] == NONE) | (self._outcome[first] < self._sent[second])
        waits = plainly_sent & (transacted | self._blocking)
        return np.asarray(same & ~(transacted & plainly_consumed) & (returned | ~waits))

    def _chosen(self, found: Sequence[_Candidates], torn: Ints) -> Pairs:
        """Each pair once; of mere neighbours no more than are affordable, the rare ones first."""
        first, second, transaction = (
            np.concatenate([getattr(each, name) for each in found]) for name in ("first", "second", "transaction")
        )
        bits = np.repeat([int(each.why) for each in found], [len(each.first) for each in found])
        width = np.int64(len(self._usable) + 1)
        keys, number = np.unique(first * width + second, return_inverse=True)
        why = np.zeros(len(keys), np.int64)
        np.bitwise_or.at(why, number, bits)
        first, second = np.divmod(keys, width)
        plain = np.flatnonzero(why == int(Why.NEIGHBOURS))
        plain = plain[self._rare_first(first[plain], second[plain])[:_MOST_PLAIN]]
        member = bits == int(Why.TRANSACTION)
        early = np.zeros(len(keys), bool)
        early[number[member][np.isin(transaction[member], torn)]] = True
        early |= why & int(Why.OVERTAKEN) != 0
        again = why & int(Why.REPEATED | Why.FOLLOWED | Why.LOST | Why.HELD_BESIDE) != 0
        order = np.concatenate([np.flatnonzero(why != int(Why.NEIGHBOURS)), np.sort(plain)])
        order = order[np.lexsort((~again[order], ~early[order]))]
        place = np.full(len(keys), NONE)
        place[order] = np.arange(len(order))
        return Pairs(
            first=first[order],
            second=second[order],
            why=why[order],
            member=place[number[member]],
            transaction=transaction[member],
            urgent=int((early | again).sum()),
            beside=len(keys) - len(order),
            unheld=self._unheld,
        )

    def _rare_first(self, first: Ints, second: Ints) -> Ints:
        """The places of pairs, with the first so many of each two lives before the others."""
        number = self._conformance.numbers
        kind = number_pairs(number[first], number[second])
        order = np.argsort(kind, kind="stable")
        starts = np.flatnonzero(np.diff(kind[order], prepend=NONE))
        rank = np.arange(len(kind)) - np.repeat(starts, np.diff(starts, append=len(kind)))
        return np.concatenate([np.sort(order[rank < _OF_EACH_KIND]), np.sort(order[rank >= _OF_EACH_KIND])])


def _adjacent(messages: Ints, lane: Ints, moment: Ints) -> tuple[Ints, Ints]:
    """Return the pairs of ``messages`` that follow each other in one lane, by their moments."""
    order = np.lexsort((moment, lane))
    same = lane[order][1:] == lane[order][:-1]
    return messages[order][:-1][same].astype(np.int64), messages[order][1:][same].astype(np.int64)


def _alike(facts: Ints, first: Ints, second: Ints, fact: Facts, how: Facts) -> Mask:
    """Return a mask of the pairs that lack ``fact`` in one message, or have it in the same way in both."""
    both = facts[first] & facts[second] & int(fact) != 0
    return np.asarray(~both | ((facts[first] ^ facts[second]) & int(how) == 0))


def _with_several(events: Index, acting: Ints) -> Ints:
    """The processes that act in several sessions at once, or with several consumers of one; the network has one."""
    process, handed = events.process[acting].astype(np.int64), events.deliveries
    mixed = _overlapping(process, number_pairs(process, events.session[acting]), acting, acting)
    session = number_pairs(events.process[handed], events.session[handed])
    receiver = number_pairs(session, events.consumer[handed])
    ends = np.minimum(ends_of(events), len(events))
    shared = handed[np.isin(session, _overlapping(session, receiver, handed, ends))]
    return np.union1d(mixed, events.process[shared])


def _overlapping(within: Ints, whose: Ints, begin: Ints, end: Ints) -> Ints:
    """The entries of ``within`` in which somebody began before another one, who began earlier, had ended.

    Each place of the arguments is an act of ``whose``, from row ``begin`` to row ``end``.
    """
    width = np.int64(max(begin.max(initial=0), end.max(initial=0)) + 1)
    first, last, where = (np.full(whose.max(initial=NONE) + 1, value) for value in (width, NONE, NONE))
    np.minimum.at(first, whose, begin)
    np.maximum.at(last, whose, end)
    where[whose] = within
    order = np.lexsort((first, where))
    key = where[order] * width
    overlaps = np.maximum.accumulate(key + last[order])[:-1] > (key + first[order])[1:]
    overlaps &= where[order][1:] == where[order][:-1]
    return np.unique(where[order][1:][overlaps])
