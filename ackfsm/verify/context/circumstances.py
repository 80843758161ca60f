"""What happened around a message while it lived: faults, connections that broke, sessions that were closed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

import numpy as np

from ackfsm.history.arrays import Ints
from ackfsm.history.columns import ABSENT
from ackfsm.history.index import Index
from ackfsm.history.joins import distinct_pairs
from ackfsm.history.victims import fault_lines, repaired_at
from ackfsm.history_format import ACKNOWLEDGE_TIMEOUT, EVENTS, Event
from ackfsm.terms import Fault
from ackfsm.verify.context.signs import BROKEN, CONSUMER_CLOSED

__all__ = ["EFFECT", "Circumstance", "circumstances"]

EFFECT: Final = 10**9
"""Nanoseconds.  So long after its line a fault may have its effect on what clients read, and longer until it is
repaired: what had arrived is read although the peer is dead.  So long before its line a connection was closed or broke.
"""

OF_MESSAGES: Final = frozenset({Fault.REJECTION, Fault.LISTENER_EXCEPTION})
"""Faults of one message, whose own lines tell of them."""

OF_CONSUMERS: Final = frozenset({Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS})
OF_PRODUCERS: Final = frozenset({Fault.PRODUCER_CRASH, Fault.PRODUCER_LINK_LOSS})

_DIES_WITH: Final = MappingProxyType(
    {Fault.CONSUMER_CRASH: Fault.PRODUCER_CRASH, Fault.PRODUCER_CRASH: Fault.CONSUMER_CRASH}
)
"""A process that consumes and sends dies whole."""

GIVING_BACK: Final = (Event.CLOSE, Event.RECOVER, Event.ROLLBACK, Event.ROLLED_BACK)
KINDS_GIVING_BACK: Final = frozenset({*GIVING_BACK, CONSUMER_CLOSED})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Circumstance:
    """Something that befell a process, or the broker.

    Attributes:
        row: the row of the events that tells it.
        kind: a fault, :data:`BROKEN`, or one of :data:`KINDS_GIVING_BACK`.
        low, high: it happened in this time.
        hit: the processes that it certainly hit; none if it is the broker's.
        suspected: the processes that it may have hit.
        queue: the only queue that it concerns, :data:`ABSENT` if it is any.
        unheard: whether it may have hit a consumer of whom no line tells.
    """

    row: int
    kind: str
    low: int
    high: int
    hit: frozenset[int] = frozenset()
    suspected: frozenset[int] = frozenset()
    queue: int = ABSENT
    unheard: bool = False


def circumstances(events: Index, low: Ints, high: Ints) -> tuple[Circumstance, ...]:
    """All that ``events`` tell, in the order of their rows; ``low`` and ``high`` say when a row happened."""
    return tuple(sorted((*_faults(events), *_ends(events, low, high)), key=lambda each: each.row))


def _ends(events: Index, low: Ints, high: Ints) -> Iterator[Circumstance]:
    """What gives back the messages of a session that its application has not seen."""
    sessions = frozenset(events.closes_of_sessions().tolist())
    for row in events.places(*GIVING_BACK).tolist():
        event = EVENTS[events.event[row]]
        broken, of_session = event is Event.CLOSE and events.errs[row] == 1, event is not Event.CLOSE or row in sessions
        yield Circumstance(
            row=row,
            kind=BROKEN if broken else event.value if of_session else CONSUMER_CLOSED,
            low=int(low[row]),
            high=int(high[row]),
            hit=frozenset({int(events.process[row])}),
            queue=ABSENT if of_session else int(events.queue[row]),
        )


def _faults(events: Index) -> Iterator[Circumstance]:
    """What faults befell; an answer that did not come may have gone with its connection."""
    lines = fault_lines(events, events.places(Event.FAULT, Event.RECOVERED))
    repairs = repaired_at(lines)
    clients = _Clients(events) if lines else None
    failed = frozenset(events.timeouts[0].tolist())
    for each in lines:
        of_a_call = each.fault == ACKNOWLEDGE_TIMEOUT
        fault = Fault.CONSUMER_LINK_LOSS if of_a_call else Fault(each.fault)
        row = each.moment[0]
        if each.repairs or fault in OF_MESSAGES or clients is None or (of_a_call and row not in failed):
            continue
        low = int(events.t[row])
        repaired = int(events.t[repairs[each].moment[0]]) if each in repairs else low + EFFECT
        of_clients = fault in OF_CONSUMERS | OF_PRODUCERS
        other_side = None if of_a_call else _DIES_WITH.get(fault)
        certain = each.victims if of_clients and not of_a_call else frozenset()
        suspected = (
            each.victims or clients.suspected(fault, low, repaired) if of_clients and not certain else frozenset()
        )
        found = Circumstance(
            row=row,
            kind=fault.value,
            low=low,
            high=max(repaired, low + EFFECT),
            hit=certain,
            suspected=suspected,
            queue=each.queue,
            unheard=fault in OF_CONSUMERS and not each.victims and not clients.lost(fault, low, repaired),
        )
        yield found
        if other_side is not None:
            yield from clients.on_the_side_of(other_side, found)


class _Clients:
    """Who may have been hit by a fault of clients that does not say whom it hit."""

    def __init__(self, events: Index) -> None:
        self._events = events
        order = np.argsort(events.process, kind="stable")
        sends, deliveries = events.places(Event.SEND, Event.RESEND), events.places(Event.DELIVERED)
        self._producers = frozenset(np.unique(events.process[sends]).tolist())
        self._consumers = frozenset(np.unique(events.process[deliveries]).tolist())
        self._changed = self._changes(order)
        self._silent = self._last_rows(order)

    def suspected(self, fault: Fault, low: int, high: int) -> frozenset[int]:
        """The clients that a fault may have hit.

        If some of them lost a session meanwhile, it hit those, or such as were never heard of again.
        """
        everybody, lost = self._everybody(fault), self.lost(fault, low, high)
        gone = {process for process, t in self._silent.items() if t <= high} & everybody
        return frozenset(lost | gone) if lost else everybody

    def lost(self, fault: Fault, low: int, high: int) -> frozenset[int]:
        """Those of the clients whom such a fault hits that lost a session meanwhile."""
        lost = {process for process, begin, end in self._changed if begin <= high and end >= low}
        return self._everybody(fault) & lost

    def on_the_side_of(self, fault: Fault, found: Circumstance) -> Iterator[Circumstance]:
        """What dies there of the processes that consume and send."""
        there = self._everybody(fault)
        hit, suspected = found.hit & there, found.suspected & there
        if hit or suspected:
            yield dataclasses.replace(
                found, kind=fault.value, hit=hit, suspected=suspected, queue=ABSENT, unheard=False
            )

    def _everybody(self, fault: Fault) -> frozenset[int]:
        return self._consumers if fault in OF_CONSUMERS else self._producers

    def _changes(self, order: Ints) -> tuple[tuple[int, int, int], ...]:
        """Processes that lost a session, each with the time between which it did: it broke, or was another one after.

        A session that was closed in good order was not lost.
        """
        events = self._events
        closes = events.places(Event.CLOSE)
        broken = closes[events.errs[closes] == 1]
        found = [(int(events.process[row]), int(events.t[row]) - EFFECT, int(events.t[row])) for row in broken.tolist()]
        _, _, last = distinct_pairs(events.process, events.session)
        position = np.empty(len(events), np.int64)
        position[order] = np.arange(len(events))
        for row in np.setdiff1d(last, closes).tolist():
            following = position[row] + 1
            if following < len(order) and events.process[order[following]] == events.process[row]:
                found.append((int(events.process[row]), int(events.t[row]), int(events.t[order[following]])))
        return tuple(found)

    def _last_rows(self, order: Ints) -> dict[int, int]:
        """The time of the last row of each process that did not end with closing its session in good order."""
        events = self._events
        closed = np.zeros(len(events), bool)
        closes = events.places(Event.CLOSE)
        closed[closes[events.errs[closes] != 1]] = True
        last = dict(zip(events.process[order].tolist(), order.tolist(), strict=True))
        return {process: int(events.t[row]) for process, row in last.items() if not closed[row]}
