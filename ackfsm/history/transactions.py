"""Transactions told apart: a name may be used again, and by two sessions of one process at once."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT, Events
from ackfsm.history.format import Event
from ackfsm.history.joins import number_pairs

_ENDS: Final = (Event.COMMIT, Event.COMMITTED, Event.COMMIT_IN_DOUBT, Event.ROLLBACK, Event.ROLLED_BACK)
"""After one of these a transaction takes nothing more."""

_BEGINS: Final = (Event.BEGIN, Event.SEND, Event.RESEND, Event.DELIVERED)
"""What a transaction begins with, or takes."""


def transactions_told_apart(events: Events) -> Events:
    """``events``, in order, with a number for each transaction, where they have one for each name of a process.

    A name that takes something after its end and ends again, or begins once more, is that of a new transaction.  Where
    several sessions of a process begin or end transactions of one name, each has its own, unless a line of that name
    tells of no session.  One that is prepared belongs to nobody, and anybody may end it.
    """
    rows = np.flatnonzero(events.transaction != ABSENT)
    if not len(rows):
        return events
    events, prepared = _of_nobody(events)
    session = events.session[rows] if len(events.names["session"]) > 1 else np.zeros(len(rows), np.int64)
    several = _of_sessions(events, rows) & ~prepared
    owner = np.where(several[events.transaction[rows]], session, ABSENT)
    named = number_pairs(events.transaction[rows], owner)
    order = np.argsort(named, kind="stable")
    rows, named = rows[order], named[order]
    key = number_pairs(named, np.cumsum(_begun(events, rows, named)))
    distinct, first, number = np.unique(key, return_index=True, return_inverse=True)
    if len(distinct) == len(np.unique(events.transaction[rows])):
        return events
    labels = events.names["transaction"].take(pa.array(events.transaction[rows[first]]))
    transaction = np.full_like(events.transaction, ABSENT)
    transaction[rows] = number
    names = MappingProxyType({**events.names, "transaction": labels})
    return dataclasses.replace(events, transaction=transaction, names=names)


def _of_nobody(events: Events) -> tuple[Events, Mask]:
    """Return ``events`` with one number for each prepared transaction, and a mask of these numbers."""
    prepared = np.zeros(events.count_of("transaction"), bool)
    rows = events.places(Event.PREPARE, Event.PREPARED)
    if not len(rows):
        return events, prepared
    name = np.asarray(events.names["transaction"].cast(pa.string()).dictionary_encode().indices)
    its = np.isin(name, name[events.transaction[rows]])
    _, first, inverse = np.unique(name, return_index=True, return_inverse=True)
    number = np.where(its, first[inverse], np.arange(len(name)))
    prepared[number[its]] = True
    transaction = np.append(number, ABSENT).astype(events.transaction.dtype)[events.transaction]
    return dataclasses.replace(events, transaction=transaction), prepared


def _begun(events: Events, rows: Ints, named: Ints) -> Mask:
    """Which of ``rows``, grouped by name and in order within each, begins another transaction of its name."""
    ends, begins = (np.isin(rows, events.places(*kinds)) for kinds in (_ENDS, _BEGINS))
    place = np.arange(len(rows))
    last_end = np.maximum.accumulate(np.where(ends, place, -1))
    last_begin = np.maximum.accumulate(np.where(begins, place, -1))
    before = np.append(-1, last_begin[:-1])
    start = np.maximum.accumulate(np.where(np.diff(named, prepend=-1) != 0, place, 0))
    final = np.full(named.max() + 1, -1)
    np.maximum.at(final, named[ends], place[ends])
    after_its_end = begins & (last_end >= start) & (last_end > before) & (final[named] > place)
    return np.asarray(after_its_end | (np.isin(rows, events.places(Event.BEGIN)) & (place > start)))


def _of_sessions(events: Events, rows: Ints) -> Mask:
    """For each transaction whether its sessions are told apart: several begin or end it, and each line tells of one."""
    count = events.count_of("transaction")
    ends = np.intersect1d(rows, events.places(Event.BEGIN, *_ENDS))
    pairs = np.unique(np.stack([events.transaction[ends], events.session[ends]]), axis=1)
    several = np.bincount(pairs[0], minlength=count) > 1
    if not several.any():
        return several
    places = pc.index_in(events.names["process"], events.names["session"]).fill_null(ABSENT)
    untold = np.asarray(places)[events.process[rows]] == events.session[rows]
    several[events.transaction[rows[untold]]] = False
    return np.asarray(several)
