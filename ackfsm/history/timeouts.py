"""Which call failed where a history tells that the answer to an acknowledgement did not come in time."""

from __future__ import annotations

import numpy as np

from ackfsm.history.arrays import Ints
from ackfsm.history.columns import Events
from ackfsm.history.expand import calls_of
from ackfsm.history.joins import NONE, last_before
from ackfsm.history_format import ACKNOWLEDGE_TIMEOUT, TELLERS, VOCABULARY, Event

__all__ = ["timed_out"]


def timed_out(events: Events) -> tuple[Ints, Ints]:
    """The rows of time-outs, and for each the latest call of its session, or of its process, before it.

    One before which nobody called, or after whose answer, tells of nothing.
    """
    faults, calls = events.places(Event.FAULT), events.places(Event.ACKNOWLEDGE)
    rows = faults[events.fault[faults] == VOCABULARY["fault"].index(ACKNOWLEDGE_TIMEOUT)]
    tellers = [number for number, name in enumerate(events.names["process"].to_pylist()) if name in TELLERS]
    mine = np.where(np.isin(events.process[rows], tellers), NONE, events.process[rows])
    in_session = last_before(events.session[rows], rows, events.session[calls], calls)
    found = np.where(in_session == NONE, last_before(mine, rows, events.process[calls], calls), in_session)
    rows, its = rows[found != NONE], calls[found[found != NONE]]
    answers = events.places(Event.ACKNOWLEDGED)
    answered = np.full(len(events), len(events))
    answered[calls_of(events, answers)[::-1]] = answers[::-1]  # the last assignment wins
    open_ = answered[its] > rows
    return rows[open_], its[open_]
