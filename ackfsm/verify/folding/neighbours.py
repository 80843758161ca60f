"""Pairs of messages left out by a chunk: their interleaving, and the pair that stands for equal ones.

Two lives that are plain alone may be no run of the model together (:mod:`ackfsm.verify.conformance.pairs`).  What
decides that is what each went through, its observation, and how their lines lie among each other.  Of all pairs of
which that is equal one is kept, to be held to the model with everything else that is kept.  If it is a run in the
order of its lines all of them are, since the times only make more orders possible; else all of them are kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ackfsm.history.arrays import Ints, mixed
from ackfsm.history.columns import Events
from ackfsm.history.format import Event
from ackfsm.history.joins import NONE
from ackfsm.verify.folding import kernel

Hashes = npt.NDArray[np.uint64]

_SENT, _DELIVERED, _ACKNOWLEDGED, _ANSWERED = 0, 1, 4, 5
"""Columns of the rows of a message, as :func:`ackfsm.verify.folding.kernel.follow_messages` has them."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """The observations of each message of a chunk, by code, as :func:`kernel.follow_messages` has them.

    Attributes:
        events: the chunk.
        seen: the observations.
        where: the rows that tell of a message.
        inside: the clean transactions in which it was sent and delivered.
    """

    events: Events
    seen: Hashes
    where: Ints
    inside: npt.NDArray[np.signedinteger[Any]]


def keep_neighbours(followed: Followed, plain: Any, kept: Collection[int]) -> tuple[Ints, Hashes]:
    """Keep of the ``plain`` messages (1 there) pairs that stand for others, and neighbours of kept messages.

    Returns the pairs that stand for others, one a row, and a number of each that equal ones share.  Pairs with numbers
    in ``kept`` are kept, all of them.
    """
    links = _Links(followed)
    border, families = links.found()
    beside = [border]
    undelivered = (plain == 0) & (followed.where[:, _DELIVERED] < 0)
    for ahead in (*families, links.by_delivery(), *([links.by_send()] if undelivered.any() else [])):
        first = np.flatnonzero(ahead >= 0)
        second = ahead[first]
        beside += [second[plain[first] == 0], first[plain[second] == 0]]
    near = np.concatenate(beside)
    plain[near[plain[near] != 0]] = kernel.STANDS
    alike = plain != 0
    pairs, numbers = list[Ints](), list[Hashes]()
    for ahead in families:
        first = np.flatnonzero((ahead >= 0) & alike)
        first = first[alike[ahead[first]]]
        number = links.numbers(ahead, first)
        if kept:
            bad = np.isin(number, np.array(sorted(kept), np.uint64))
            plain[first[bad]] = plain[ahead[first[bad]]] = 0
        codes = pa.array(number).dictionary_encode().indices.to_numpy()  # in the order in which each comes first
        chosen = np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1))
        pairs.append(np.column_stack([first[chosen], ahead[first[chosen]]]))
        numbers.append(number[chosen])
    stand = np.concatenate(pairs)
    plain[stand[plain[stand] != 0]] = kernel.STANDS
    return stand, np.concatenate(numbers)


class _Links:
    """Which message of a chunk comes after which."""

    def __init__(self, followed: Followed) -> None:
        self._followed = followed
        self._rows = self._other_rows()

    def found(self) -> tuple[Ints, list[Ints]]:
        """Messages with neighbours that are unknown, and for each way to be neighbours what comes next to each."""
        its = self._followed
        border, lanes = self._lanes()
        families = [lanes]
        for way in (_SENT, _DELIVERED):
            if (its.inside[:, way] >= 0).any():
                key = _key_of(its.inside[:, way].astype(np.uint64) + np.uint64(1), self._sender())
                families.append(self._linked(way, np.where(its.inside[:, way] >= 0, key, 0)))
        return border, families

    def by_delivery(self) -> Ints:
        """Return for each message the next first delivery in its session."""
        events, rows = self._followed.events, self._followed.where[:, _DELIVERED]
        key = _key_of(_column(events.session, rows), _column(events.process, rows))
        return self._linked(_DELIVERED, key)

    def by_send(self) -> Ints:
        """Return for each message the next send of its session to the same queue."""
        return self._linked(_SENT, self._sender())

    def _sender(self) -> Hashes:
        events, rows = self._followed.events, self._followed.where[:, _SENT]
        columns = (events.process, events.session, events.queue, events.delivery_mode)
        key = np.zeros(len(rows), np.uint64)
        for column in columns:
            key = _key_of(key, _column(column, rows))
        return key

    def _lanes(self) -> tuple[Ints, Ints]:
        its, count = self._followed, len(self._followed.seen)
        sent, delivered = (np.ascontiguousarray(its.where[:, way]) for way in (_SENT, _DELIVERED))
        sender, size = self._sender(), kernel.room_for(count)
        lane = _key_of(sender, _column(its.events.session, delivered))
        ahead, border = np.full(count, NONE, np.int64), np.zeros(count, np.uint8)
        tables = [np.zeros(size, np.uint64) for _ in range(2)]
        newest, settled, chain, last = (np.full(size, NONE, np.int64) for _ in range(4))
        columns = (its.events.message, sent, delivered, sender, lane)
        kernel.link_lanes(*columns, *tables, newest, settled, chain, last, np.zeros(size, np.uint8), ahead, border)
        return np.flatnonzero(border), ahead

    def _linked(self, way: int, key: Hashes) -> Ints:
        its, size = self._followed, kernel.room_for(len(self._followed.seen))
        rows, ahead = np.ascontiguousarray(its.where[:, way]), np.full(len(its.seen), NONE, np.int64)
        kernel.link(its.events.message, rows, key, np.zeros(size, np.uint64), np.full(size, NONE, np.int64), ahead)
        return ahead

    def numbers(self, ahead: Ints, first: Ints) -> Hashes:
        """For each pair of ``first`` and what comes next to it a number that pairs share which lie in the same way."""
        its, second = self._followed, ahead[first]
        after = np.full(len(ahead), NONE, np.int64)
        after[first] = second
        before = np.full(len(ahead), NONE, np.int64)
        before[second] = first
        order = np.ones(len(ahead), np.uint64)
        kernel.interleave(its.events.message, *self._rows, before, after, order)
        same = its.events.session[its.where[first, _SENT]] == its.events.session[its.where[second, _SENT]]
        number = _key_of(_key_of(its.seen[first], its.seen[second]), order[second], same.astype(np.uint64))
        for way in (_SENT, _DELIVERED):
            together = (its.inside[first, way] >= 0) & (its.inside[first, way] == its.inside[second, way])
            number = _key_of(number, together.astype(np.uint64))
        return number

    def _other_rows(self) -> tuple[Ints, Ints]:
        """Return rows about messages that they do not name, ascending, and the messages."""
        found = [*self._of_sessions(), *self._of_transactions()]
        rows, messages = (np.concatenate([np.empty(0, np.int64), *part]) for part in zip(*found, strict=True))
        order = np.argsort(rows, kind="stable")
        return rows[order], messages[order]

    def _of_sessions(self) -> Iterator[tuple[Ints, Ints]]:
        its = self._followed
        for column in (_ACKNOWLEDGED, _ANSWERED):
            messages = np.flatnonzero(its.where[:, column] >= 0)
            yield its.where[messages, column].astype(np.int64), messages

    def _of_transactions(self) -> Iterator[tuple[Ints, Ints]]:
        its = self._followed
        for event in (Event.COMMIT, Event.COMMITTED):
            row = np.full(its.events.count_of("transaction") + 1, NONE, np.int64)
            calls = its.events.places(event)
            row[its.events.transaction[calls]] = calls
            for way in (_SENT, _DELIVERED):
                messages = np.flatnonzero(its.inside[:, way] >= 0)
                yield row[its.inside[messages, way]], messages


def _column(column: npt.NDArray[Any], rows: Ints) -> Hashes:
    """The entries at ``rows`` as numbers from 1 on, 0 where there is no row."""
    return np.where(rows >= 0, column[rows].astype(np.int64) + 2, 0).astype(np.uint64)


def _key_of(*columns: Hashes) -> Hashes:
    """A number for each row of ``columns``, never 0."""
    found = np.full(len(columns[0]), 0x9E3779B97F4A7C15, np.uint64)
    for column in columns:
        found = mixed(found ^ column)
    return found | np.uint64(1)
