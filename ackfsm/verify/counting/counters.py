"""Counters of messages, as machines, so that one fold gives them with the anomalies.

Each is a table ``state -> observable -> state``; what a state does not list leaves it as it is.
They are counted as the histories' labels are: by message, not by delivery.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

from ackfsm.verify.counting.machines import Watcher
from ackfsm.verify.counting.observables import Observable

__all__ = ["COUNTERS", "MESSAGES"]

MESSAGES = "messages"
"""The counter of the messages of the history: everything that was sent."""

_FLAGGED, _CLEAR = Observable.DELIVERED_FLAGGED, Observable.DELIVERED_CLEAR
_DELIVERED = (_CLEAR, _FLAGGED)
_RESENT = (Observable.RESEND,)
_SENT = (Observable.SEND, Observable.RESEND, Observable.SEND_IN_TRANSACTION)
_CONFIRMED = (Observable.CONFIRMED, Observable.COMMITTED)
_DOUBTED = (Observable.IN_DOUBT, Observable.COMMIT_IN_DOUBT)
_ANSWERED = (Observable.CONFIRMED, Observable.REJECTED, Observable.IN_DOUBT, Observable.SEND_IN_TRANSACTION)
_ENDED = (Observable.EXPIRED, Observable.DEAD_LETTERED, Observable.REJECTED, Observable.ROLLED_BACK)
_ACCOUNTED_FOR = (*_DELIVERED, *_CONFIRMED, *_ENDED)


@dataclasses.dataclass(frozen=True, slots=True)
class _Table:
    """A machine that lists only what moves it; its first state is the initial one."""

    rows: Mapping[str, Mapping[str, str]]

    @property
    def states(self) -> tuple[str, ...]:
        return tuple(self.rows)

    @property
    def initial(self) -> str:
        return self.states[0]

    def step(self, state: str, event: str, /) -> str:
        return self.rows[state].get(event, state)


def _go(**targets: tuple[Observable, ...]) -> Mapping[str, str]:
    return {observable: target for target, observables in targets.items() for observable in observables}


_TABLES: Mapping[str, Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        MESSAGES: {"no": _go(yes=_SENT), "yes": {}},
        "confirmed": {"no": _go(yes=_CONFIRMED), "yes": {}},
        "rejected": {"no": _go(yes=(Observable.REJECTED,)), "yes": {}},
        "in_doubt": {"no": _go(yes=_DOUBTED, never=_CONFIRMED), "yes": _go(never=_CONFIRMED), "never": {}},
        "no_outcome": {
            "no": _go(yes=(Observable.SEND, Observable.RESEND), never=_ANSWERED),
            "yes": _go(never=_ANSWERED),
            "never": {},
        },
        "resent": {"no": _go(yes=_RESENT), "yes": {}},
        "delivered": {"no": _go(yes=_DELIVERED), "yes": {}},
        "processed": {"no": _go(yes=(Observable.PROCESSED,)), "yes": {}},
        "flag_first_sight": {"no": _go(yes=(_FLAGGED,), never=(_CLEAR,)), "yes": {}, "never": {}},
        "unflagged_duplicate_not_resent": {
            "no": _go(once=_DELIVERED, never=_RESENT),
            "once": _go(yes=(_CLEAR,), never=_RESENT),
            "yes": _go(never=_RESENT),
            "never": {},
        },
        "undelivered_unconfirmed": {
            "no": _go(yes=_SENT, never=_ACCOUNTED_FOR),
            "yes": _go(never=_ACCOUNTED_FOR),
            "never": {},
        },
        "expired": {"no": _go(yes=(Observable.EXPIRED,)), "yes": {}},
        "dead_lettered": {"no": _go(yes=(Observable.DEAD_LETTERED,)), "yes": {}},
    }
)

COUNTERS: tuple[Watcher, ...] = tuple(Watcher(name, _Table(rows), frozenset({"yes"})) for name, rows in _TABLES.items())
"""One watcher for each counter; it counts the messages that end in ``yes``."""
