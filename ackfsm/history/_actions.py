"""What applications did of their own will that makes a broker deliver again."""

from __future__ import annotations

import numpy as np

from ackfsm.history._columns import Events
from ackfsm.history._format import Event
from ackfsm.history._joins import NONE, last_before

__all__ = ["RECOVER", "RECOVERING", "actions_of"]

RECOVER = "recover"
"""The optional event of ``spec/events.yaml``: the application recovers its session, rolls back, or closes it."""

RECOVERING = (Event.RECOVER, Event.ROLLBACK, Event.CLOSE)


def actions_of(events: Events) -> tuple[str, ...]:
    """The optional events that ``events`` show: ``recover``, if one explains that a message came again.

    It does if the session of a delivery was recovered, rolled back or closed before the next delivery of that message.
    """
    deliveries = events.places(Event.DELIVERED)
    order = np.argsort(events.message[deliveries], kind="stable")
    ordered = deliveries[order]
    again = events.message[ordered[1:]] == events.message[ordered[:-1]]
    before, after = ordered[:-1][again], ordered[1:][again]
    ends = events.places(*RECOVERING)
    found = last_before(events.session[before], after, events.session[ends], ends)
    explained = (found != NONE) & (ends[found] > before) if len(ends) else np.zeros(0, bool)
    return (RECOVER,) if explained.any() else ()
