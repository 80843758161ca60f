"""One line for one thing: a line about several messages, or about an unnamed call, becomes lines of their own.

Everything that is counted, folded or held to the model is taken from the result, so that none of it knows of ranges.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import pyarrow.compute as pc

from ackfsm.history.arrays import Ints, Mask
from ackfsm.history.columns import ABSENT, Events, event_code
from ackfsm.history.format import BROKER, RANGED, VOCABULARY, Event
from ackfsm.history.index import Index
from ackfsm.history.joins import NEVER, NONE, at, first_covering, last_before
from ackfsm.terms import AckScope


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Added:
    """Rows to be added: the row before each, and the row that it copies but for the named columns."""

    after: Ints
    like: Ints
    message: Ints
    event: Event


def spelled_out(events: Events, up_to: Mask) -> Index:
    """``events`` with a line for each message that a range answers for or gives back, and for each call timed out.

    ``up_to`` says of which messages a ``failed`` without a scope gives back what its session had before as well.  What
    a broker tells to have had when its history began is left out where another line sends it.
    """
    index = Index.of(_told_once(events))
    each: list[Callable[[Index], _Added]] = [functools.partial(_ranges, outcome=outcome) for outcome in RANGED]
    each += [_timeouts, functools.partial(_given_back, up_to=up_to)]
    for spelled in each:
        added = spelled(index)
        if len(added.after):
            index = Index.of(_with(index, added))
    return index


def _told_once(events: Events) -> Events:
    """``events`` without the sends by the broker of messages that somebody else sends, and without their outcomes."""
    by_broker = np.isin(events.process, np.flatnonzero(pc.equal(events.names["process"], BROKER)))
    sends = events.places(Event.SEND, Event.RESEND)
    told = np.zeros(len(events), bool)
    told[events.places(Event.SEND, Event.CONFIRMED)] = True
    again = told & by_broker & np.isin(events.message, events.message[sends[~by_broker[sends]]])
    return events.take(np.flatnonzero(~again)) if again.any() else events


def _with(events: Events, added: _Added) -> Events:
    count = len(events)
    order = np.argsort(np.concatenate([2 * np.arange(count), 2 * added.after + 1]), kind="stable")
    source = np.concatenate([np.arange(count), added.like])[order]
    new = np.flatnonzero(order >= count)
    its = order[new] - count
    made = events.take(source)
    made.message[new] = added.message[its]
    made.event[new] = event_code(added.event)
    for told in ("t", "line"):
        getattr(made, told)[new] = getattr(events, told)[added.after[its]]
    return made


def _ranges(events: Index, outcome: Event) -> _Added:
    """Each open send up to the one that a range of this ``outcome`` names, in the session of that one, in their order.

    A send is open until an outcome of its message, the close of its session or the crash that leaves it without.
    """
    told = events.places(outcome)
    ranges = told[events.scope[told] == VOCABULARY["scope"].index(AckScope.UP_TO)]
    if not len(ranges):
        return _Added(ranges, ranges, ranges, outcome)
    sends = events.plain_sends
    place, session = sends.place, events.session[sends.place]
    last = last_before(events.message[ranges], ranges, events.message[place], place)
    ranges, last = ranges[last != NONE], last[last != NONE]
    cover = at(ranges, first_covering(session, place, session[last], place[last] + 1), NONE)
    covered = (cover != NONE) & (events.message[cover] != events.message[place]) & (sends.end > cover)
    pairs = np.unique(np.stack([cover[covered], events.message[place[covered]]]), axis=1)
    return _Added(pairs[0], pairs[0], pairs[1], outcome)


def _given_back(events: Index, up_to: Mask) -> _Added:
    """Each message that the session of a ``failed`` with a scope had still, as far as the scope goes.

    It had those that were delivered before and neither acknowledged nor given back since.
    """
    failed, deliveries = events.places(Event.FAILED), events.deliveries
    scope = events.scope.copy()
    untold = failed[(scope[failed] == ABSENT) & up_to[events.message[failed]]]
    scope[untold] = VOCABULARY["scope"].index(AckScope.UP_TO)
    wide = failed[~np.isin(scope[failed], [ABSENT, VOCABULARY["scope"].index(AckScope.MESSAGE)])]
    if not len(wide):
        return _Added(wide, wide, wide, Event.FAILED)
    cover = events.covered(wide, scope)
    done = np.minimum(events.covered(events.places(Event.ACKNOWLEDGE)), events.until(deliveries, own_message=failed))
    open_ = (cover != NEVER) & (cover < done)
    pairs = np.unique(np.stack([cover[open_], events.message[deliveries[open_]]]), axis=1)
    return _Added(pairs[0], pairs[0], pairs[1], Event.FAILED)


def _timeouts(events: Index) -> _Added:
    """The calls whose time-out is told."""
    rows, calls = events.timeouts
    return _Added(rows, calls, events.message[calls].astype(np.int64), Event.ACK_IN_DOUBT)
