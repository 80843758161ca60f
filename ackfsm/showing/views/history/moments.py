"""What happened to one message, line by line: each line of a history as a moment of its life."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from ackfsm.history.arrays import Ints
from ackfsm.history.columns import ABSENT, Events
from ackfsm.history.format import EVENTS, TELLERS, VOCABULARY, Event
from ackfsm.history.victims import OF_THE_BROKER
from ackfsm.showing.views.history.lookup import Lookup
from ackfsm.showing.views.history.plain import fields_as_json
from ackfsm.terms import AckScope
from ackfsm.text import quoted

BROKER: Final = TELLERS[1]

_NAMED: Final = 40
"""Characters of a name in the words of a moment."""


class Side(StrEnum):
    """Between whom something goes on: where its arrow begins and ends in a sequence diagram."""

    TO_BROKER = "to the broker"
    FROM_BROKER = "from the broker"
    OWN = "in the process"
    AT_BROKER = "at the broker"
    FAULT = "fault"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One line of a history, as it concerns the messages of a story.

    Attributes:
        row: where it stands among the events, in the order in which they are judged.
        t, line: nanoseconds as recorded, and the number of the line in its file.
        process, session: who wrote it; the session is ``None`` if it has the name of the process.
        event: the event of history format 1.
        told: what happened, in a few words.
        side: between whom.
        of: the ids of those messages of the story that it is about; none if it is about more than them.
        victims: of a fault or repair, the processes that it names.
        impossible: whether the model has no run that goes on with it.
        explains: the anomalies that it explains.
    """

    row: int
    t: int
    line: int
    process: str
    session: str | None
    event: Event
    told: str
    side: Side
    of: tuple[str, ...] = ()
    victims: tuple[str, ...] = ()
    impossible: bool = False
    explains: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return fields_as_json(self, row=None, side=None, of="messages")


def message_rows(lookup: Lookup, message: int, life: Iterable[int]) -> Ints:
    """Return the rows that name ``message``, cover it, or stand in its ``life``, ascending."""
    events, named = lookup.events, lookup.named(message)
    within = np.unique(events.transaction[named])
    parts = [named, lookup.covering(message), lookup.ends(within[within != ABSENT]), np.array([*life], np.int64)]
    found = np.unique(np.concatenate(parts))
    found = found[found >= 0]
    return np.asarray(found[events.event[found] != ABSENT], np.int64)


def moments_of(
    lookup: Lookup,
    rows: Iterable[int],
    *,
    names: Mapping[int, str],
    impossible: int | None = None,
    explains: Mapping[int, Sequence[str]] = MappingProxyType({}),
) -> tuple[Moment, ...]:
    """The moments of ``rows``, in their order.

    Args:
        lookup: the history.
        rows: which lines, ascending.
        names: the messages of the story, by code.
        impossible: the row that no run of the model goes on with.
        explains: the anomalies that rows explain.
    """
    teller = _Teller(lookup, names)
    return tuple(
        teller.moment(row, impossible=row == impossible, explains=tuple(explains.get(row, ())))
        for row in dict.fromkeys(rows)
    )


@dataclasses.dataclass(slots=True)
class _Teller:
    """Puts rows into words."""

    lookup: Lookup
    names: Mapping[int, str]

    @property
    def events(self) -> Events:
        return self.lookup.events

    def moment(self, row: int, *, impossible: bool, explains: tuple[str, ...]) -> Moment:
        events = self.events
        event = EVENTS[events.event[row]]
        process, message = str(self._name("process", row)), int(events.message[row])
        session = self._name("session", row)
        return Moment(
            row=row,
            t=int(events.t[row]),
            line=int(events.line[row]),
            process=process,
            session=None if session == process else session,
            event=event,
            told=self._told(event, row),
            side=_TOLD[event][0],
            of=(self.names[message],) if message in self.names else (),
            victims=self.victims(row) if event in {Event.FAULT, Event.RECOVERED} else (),
            impossible=impossible,
            explains=explains,
        )

    def _name(self, column: str, row: int) -> str | None:
        code = int(getattr(self.events, column)[row])
        return None if code == ABSENT else str(self.events.names[column][code])

    def victims(self, row: int) -> tuple[str, ...]:
        return self.lookup.victims(row)

    def _told(self, event: Event, row: int) -> str:
        told = _TOLD[event][1]
        told = told if isinstance(told, str) else told(self, row)
        transaction = self._name("transaction", row)
        if transaction is None or event is Event.DELIVERED:
            return told
        return f"{told} {_IN_TRANSACTION.get(event, 'in')} {quoted(transaction, _NAMED)}"

    def delivered(self, row: int) -> str:
        again = " again" if self.lookup.events.first_delivery[self.events.message[row]] < row else ""
        if not self.lookup.tells_flags:
            return f"delivered{again}, flag not recorded" if again else "delivered"
        flag = ", flagged" if self.events.redelivered[row] == 1 else ", flag clear" if again else ""
        return f"delivered{again}{flag}"

    def acknowledge(self, row: int) -> str:
        scope = int(self.events.scope[row])
        kind = None if scope == ABSENT else VOCABULARY["scope"][scope]
        message = int(self.events.message[row])
        if kind == AckScope.SESSION:
            return "acknowledges its session"
        if kind == AckScope.UP_TO and message not in self.names:
            return f"acknowledges all up to {quoted(str(self._name('message', row)), _NAMED)}"
        return "acknowledged all so far" if kind == AckScope.UP_TO else "acknowledges"

    def close(self, row: int) -> str:
        return "connection found broken" if self.events.errs[row] == 1 else "closed"

    def fault(self, row: int) -> str:
        hit = self._hit(row)
        return f"{VOCABULARY['fault'][self.events.fault[row]]}{f' of {hit}' if hit else ''}"

    def recovered(self, row: int) -> str:
        hit = self._hit(row)
        return f"{VOCABULARY['fault'][self.events.fault[row]]}{f' of {hit}' if hit else ''} over"

    def _hit(self, row: int) -> str:
        """The victim, unless the line's own process is it."""
        if VOCABULARY["fault"][self.events.fault[row]] in set(map(str, OF_THE_BROKER)):
            return ""
        own = self._name("process", row)
        return ", ".join(quoted(name, _NAMED) for name in self.victims(row) if name != own)


_TOLD: Final[Mapping[Event, tuple[Side, str | Callable[[_Teller, int], str]]]] = MappingProxyType(
    {
        Event.SEND: (Side.TO_BROKER, "sent"),
        Event.RESEND: (Side.TO_BROKER, "sent again"),
        Event.CONFIRMED: (Side.FROM_BROKER, "confirmed"),
        Event.REJECTED: (Side.FROM_BROKER, "rejected by the broker"),
        Event.IN_DOUBT: (Side.OWN, "send in doubt"),
        Event.PROCESSED: (Side.OWN, "processed"),
        Event.FAILED: (Side.OWN, "processing failed"),
        Event.ACKNOWLEDGED: (Side.FROM_BROKER, "acknowledgement confirmed"),
        Event.ACK_IN_DOUBT: (Side.OWN, "acknowledgement in doubt"),
        Event.BEGIN: (Side.TO_BROKER, "transaction"),
        Event.COMMIT: (Side.TO_BROKER, "commit called"),
        Event.COMMITTED: (Side.FROM_BROKER, "committed"),
        Event.COMMIT_IN_DOUBT: (Side.OWN, "commit in doubt"),
        Event.ROLLBACK: (Side.TO_BROKER, "rollback called"),
        Event.ROLLED_BACK: (Side.FROM_BROKER, "rolled back"),
        Event.RECOVER: (Side.TO_BROKER, "session recovered"),
        Event.EXPIRED: (Side.AT_BROKER, "expired"),
        Event.DEAD_LETTERED: (Side.AT_BROKER, "dead-lettered"),
        Event.DRAINED: (Side.TO_BROKER, "queue seen empty"),
        Event.DEPTH: (Side.TO_BROKER, "queue seen with messages left"),
        Event.JOURNAL_WRITTEN: (Side.AT_BROKER, "written to the journal"),
        Event.JOURNAL_SYNCED: (Side.AT_BROKER, "journal synced"),
        Event.WAITING: (Side.OWN, "a call had not returned"),
        Event.DELIVERED: (Side.FROM_BROKER, _Teller.delivered),
        Event.ACKNOWLEDGE: (Side.TO_BROKER, _Teller.acknowledge),
        Event.CLOSE: (Side.TO_BROKER, _Teller.close),
        Event.FAULT: (Side.FAULT, _Teller.fault),
        Event.RECOVERED: (Side.FAULT, _Teller.recovered),
    }
)
"""Between whom each event goes on, and its words, or what finds them where they hang on more than the event."""

_ENDS: Final = (Event.COMMIT, Event.COMMITTED, Event.COMMIT_IN_DOUBT, Event.ROLLBACK, Event.ROLLED_BACK)
_IN_TRANSACTION: Final[Mapping[Event, str]] = MappingProxyType({Event.BEGIN: "begun:", **dict.fromkeys(_ENDS, "of")})
