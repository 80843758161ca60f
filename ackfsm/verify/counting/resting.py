"""Stuck calls and messages of a history: calls that wait for ever, messages that a queue holds without a consumer."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from ackfsm.history.arrays import Ints
from ackfsm.history.columns import ABSENT, Events, event_code
from ackfsm.history.format import Call, Event
from ackfsm.history.gathered import SEEN_AT_REST, Remark
from ackfsm.history.index import Index
from ackfsm.history.joins import NEVER
from ackfsm.history.victims import FAULT_EVENTS
from ackfsm.terms import Fault
from ackfsm.verify.context.circumstances import OF_MESSAGES

_TELLING: Final = (*FAULT_EVENTS, *SEEN_AT_REST, Event.DRAINED)
_SENDS: Final = (Event.SEND, Event.RESEND)

_MADE_BY: Final[Mapping[Call, tuple[Event, ...]]] = MappingProxyType(
    {
        Call.SEND: _SENDS,
        Call.ACKNOWLEDGE: (Event.ACKNOWLEDGE,),
        Call.COMMIT: (Event.COMMIT,),
        Call.ROLLBACK: (Event.ROLLBACK,),
        Call.RECOVER: (Event.RECOVER,),
        Call.CLOSE: (),
    }
)
"""The lines that tell of each call that may be stuck."""

_UNREPAIRED: Final = "a fault was not repaired before the calls and queues were looked at, so that they may go on"
_NOT_SEEN: Final = "no `drained` or `depth` follows the last line before a call that waits"


@dataclasses.dataclass(frozen=True, slots=True)
class Resting:
    """Stuck messages: their known ids, and the number of the others; or the reason why they are undecided."""

    messages: frozenset[str] = frozenset()
    others: int = 0
    unknown: str | None = None


class Seen:
    """The history around the queues and calls seen at rest."""

    def __init__(self, events: Events, remarks: Sequence[Remark]) -> None:
        self._events, self.remarks = Index.of(events), remarks
        named = ((name, events.names[name].to_pylist()) for name in ("process", "session", "queue", "message"))
        self._codes = {name: {label: code for code, label in enumerate(labels)} for name, labels in named}
        self._acts = ~np.isin(events.event, [event_code(event) for event in _TELLING])
        self._rests = events.places(Event.DRAINED, Event.DEPTH)
        tables = set(Fault) - OF_MESSAGES
        self._outages = [
            (int(events.t[fault.moment[0]]), int(events.t[repair.moment[0]]) if repair else NEVER)
            for fault, repair in self._events.outages
            if fault.fault in tables
        ]

    def _of(self, remark: Remark) -> Ints:
        """Return the rows of the process of ``remark``."""
        process = self._codes["process"].get(remark.process, NEVER)
        mine = self._acts & (self._events.process == process)
        if remark.session is not None:
            mine &= self._events.session == self._codes["session"].get(remark.session, NEVER)
        return np.flatnonzero(mine)

    def returned(self, waiting: Remark) -> bool:
        """Whether its process went on, so that the call returned."""
        rows = self._of(waiting)
        return bool((self._events.t[rows] > waiting.t).any())

    def call(self, waiting: Remark) -> Resting:
        """The messages of a call that waits for ever."""
        rows = self._of(waiting)
        since = int(self._events.t[rows[-1]]) if len(rows) else -1
        why = self._why_not_at_rest(since, waiting.queue)
        if why is not None:
            return Resting(unknown=why)
        if waiting.message is not None:
            return Resting(frozenset({waiting.message}))
        made = _MADE_BY[Call(waiting.error or "")]
        calls = rows[np.isin(self._events.event[rows], [event_code(event) for event in made])][-1:]
        messages = self._messages_of(calls)
        return Resting(messages, others=int(not messages))

    def queue_of(self, messages: Collection[str]) -> str | None:
        """The queue of the first of them by code point; ``None`` where no line of it names one."""
        codes = sorted((name, self._codes["message"][name]) for name in messages if name in self._codes["message"])
        queue = int(self._events.queue_of[codes[0][1]]) if codes else ABSENT
        return None if queue == ABSENT else str(self._events.names["queue"][queue])

    def _messages_of(self, calls: Ints) -> frozenset[str]:
        events = self._events
        named = events.message[calls]
        inside = events.transaction[calls]
        if len(calls) and named[0] == ABSENT and inside[0] != ABSENT:
            named = events.message[events.transaction == inside[0]]
        return self._names(named[named != ABSENT].tolist())

    def _names(self, codes: Iterable[int]) -> frozenset[str]:
        return frozenset(str(self._events.names["message"][code].as_py()) for code in set(codes))

    def _why_not_at_rest(self, since: int, queue: str | None) -> str | None:
        """Why nothing was seen at rest after ``since``, of that queue or of any; ``None`` if something was."""
        events, rests = self._events, self._rests
        rests = rests[events.t[rests] > since]
        if queue is not None:
            rests = rests[np.isin(events.queue[rests], [ABSENT, self._codes["queue"].get(queue, NEVER)])]
        if not len(rests):
            return _NOT_SEEN
        times = events.t[rests].tolist()
        quiet = any(all(not begin <= t < end for begin, end in self._outages) for t in times)
        return None if quiet else _UNREPAIRED

    def last_depths(self) -> Iterator[Remark]:
        """Yield the last depth of each queue, if no line of its queue follows."""
        events = self._events
        for each in self.remarks:
            if each.event != Event.DEPTH or not (each.position or each.delivery_count):
                continue
            queue = self._codes["queue"].get(each.queue or "", ABSENT)
            later = events.t > each.t
            here = (events.queue == queue) if each.queue is not None else np.ones(len(events), bool)
            others = ~np.isin(events.event, [event_code(one) for one in (*FAULT_EVENTS, Event.WAITING)])
            if not (later & here & others).any():
                yield each

    def depth(
        self,
        depth: Remark,
        known: frozenset[str],
        receivers: Sequence[Remark],
        *,
        by_library: bool,
        keeps_failed: bool,
    ) -> Resting:
        """Return the stuck messages of a queue: in flight without a consumer, or ready although one waits."""
        if any(begin <= depth.t < end for begin, end in self._outages):
            return Resting(unknown=_UNREPAIRED)
        owed, candidates = self._held(depth, by_library=by_library, keeps_failed=keeps_failed)
        candidates -= known
        flying = max(0, (depth.delivery_count or 0) - len(owed) - len(known & self._in_queue(depth.queue)))
        ready = (depth.position or 0) if any(each.queue in {None, depth.queue} for each in receivers) else 0
        if flying + ready == len(candidates):
            return Resting(candidates)
        return Resting(others=flying + ready)

    def _in_queue(self, queue: str | None) -> frozenset[str]:
        named = self._events.message != ABSENT
        if queue is not None:
            named &= self._events.queue == self._codes["queue"].get(queue, NEVER)
        return self._names(self._events.message[named].tolist())

    def _held(self, depth: Remark, *, by_library: bool, keeps_failed: bool) -> tuple[frozenset[str], frozenset[str]]:
        """Return the unacknowledged messages of a queue, and others that the broker may hold."""
        events = self._events
        here = self._in_queue(depth.queue)
        deliveries = events.deliveries
        last = np.flatnonzero(events.last(Event.DELIVERED)[events.message[deliveries]] == deliveries)
        done = _first_done(events, keeps_failed=keeps_failed)[last] != NEVER
        answered = events.covered(events.places(Event.ACKNOWLEDGED))[last] != NEVER
        message = events.message[deliveries[last]]
        gone = self._names(events.message[events.places(Event.EXPIRED, Event.DEAD_LETTERED, Event.REJECTED)].tolist())
        owed = frozenset() if by_library else self._names(message[~done].tolist()) & here - gone
        return owed, here - gone - owed - self._names(message[answered].tolist())


def _first_done(events: Index, *, keeps_failed: bool) -> Ints:
    """For each delivery the first row after which its application owes nothing for it."""
    ends = events.until(
        events.deliveries,
        transaction=events.places(Event.COMMIT, Event.ROLLBACK),
        message=events.places(*([] if keeps_failed else [Event.FAILED])),
        session=events.gives_back,
    )
    return np.minimum(ends, events.covered(events.places(Event.ACKNOWLEDGE)))
