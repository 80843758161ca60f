"""Which anomalies can be counted in a history whose source cannot show some events.

A machine is run twice over all that may have happened: once with the events that are shown, once with the others
between them as well.  Where every pair of states that is met so means the same, nothing is missing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from ackfsm.history.columns import ABSENT, Events
from ackfsm.history.format import EVENTS, VOCABULARY, Event
from ackfsm.tables import Specification
from ackfsm.tables.names import Condition
from ackfsm.terms import AckScope, Anomaly, Configuration
from ackfsm.verify.counting.machines import Machines
from ackfsm.verify.counting.observables import SHOWN_AS, Observable, observable_code
from ackfsm.verify.counting.watch import folded_properties, prefetch_of, window_of
from ackfsm.verify.words import cannot_show

OF_TRANSACTIONS: Final = frozenset(
    {Event.BEGIN, Event.COMMIT, Event.COMMITTED, Event.COMMIT_IN_DOUBT, Event.ROLLBACK, Event.ROLLED_BACK}
)

_ACKS: Final = frozenset({Event.ACKNOWLEDGE, Event.ACKNOWLEDGED, Event.ACK_IN_DOUBT})
_GIVE_BACK: Final = frozenset({Event.RECOVER, Event.CLOSE, Event.ROLLBACK, Event.ROLLED_BACK})

_OF_FIELDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "scope": _ACKS,
        "session": _ACKS | _GIVE_BACK,
        "transaction": OF_TRANSACTIONS,
        "queue": frozenset({Event.DRAINED, Event.DEPTH}),
        "position": frozenset({Event.DEPTH}),
        "error": frozenset({Event.CLOSE}),
    }
)
"""The events that say nothing certain without a field."""

_CUMULATIVE: Final = (Observable.ACKNOWLEDGE, Observable.ACKNOWLEDGED, Observable.ACK_IN_DOUBT)
"""What a call for a whole session is to messages that it would not cover if it were known that they were given back."""

_LOOKED_AT: Mapping[Anomaly, frozenset[str]] = MappingProxyType(
    {
        Anomaly.TORN_TRANSACTION: OF_TRANSACTIONS
        | {Event.SEND, Event.RESEND, Event.DELIVERED, Event.EXPIRED, Event.DEAD_LETTERED, Event.DRAINED},
        Anomaly.REORDER: frozenset({Event.SEND, Event.RESEND, Event.DELIVERED, "redelivered", "session", "queue"}),
        Anomaly.WINDOW_OVERRUN: OF_TRANSACTIONS
        | {Event.SEND, Event.CONFIRMED, Event.REJECTED, Event.IN_DOUBT, Event.CLOSE, Event.FAULT, "session"},
        Anomaly.PREFETCH_OVERRUN: OF_TRANSACTIONS
        | _ACKS
        | _GIVE_BACK
        | {Event.DELIVERED, Event.FAILED, Event.FAULT, "session"},
        Anomaly.COUNT_REGRESSION: frozenset({Event.DELIVERED, "delivery_count"}),
        Anomaly.OVER_DELIVERED: frozenset({Event.DELIVERED}),
    }
)
"""What the counts look at that no machine of one message makes."""

_SURE: Final = frozenset({Anomaly.COUNT_REGRESSION, Anomaly.OVER_DELIVERED})
"""Of these what is not shown can only add more."""


@dataclasses.dataclass(frozen=True, slots=True)
class Countable:
    """What can be said of one anomaly although its source cannot show everything.

    Attributes:
        why: what is missing, a clause.
        sure: whether what is found is there all the same, so that there may only be more.
    """

    why: str
    sure: bool


def missing_events(
    unshown: Collection[str], specification: Specification, configuration: Configuration | None
) -> frozenset[str]:
    """What cannot be shown, with the events that say nothing without a field that is not shown.

    A configuration without transactions has none that could be missing.
    """
    missing = frozenset(map(str, unshown)).union(*(_OF_FIELDS.get(name, frozenset()) for name in unshown))
    if configuration is not None:
        transacted = specification.conditions[Condition.TRANSACTED].holds(specification.environment(configuration))
        if not transacted:
            missing -= OF_TRANSACTIONS | {"transaction"}
    return missing


def countable(
    missing: frozenset[str],
    machines: Machines,
    events: Events,
    specification: Specification,
    configuration: Configuration | None,
) -> Mapping[Anomaly, Countable]:
    """Of every anomaly that something is ``missing`` for what can be said; the others are counted in full."""
    if not missing:
        return {}
    cumulative = (events.scope != ABSENT) & (events.scope != VOCABULARY["scope"].index(AckScope.MESSAGE))
    covers = bool(cumulative.any())
    found: dict[Anomaly, Countable] = {}
    for anomaly, definition in folded_properties(specification).items():
        if anomaly in _LOOKED_AT or anomaly not in machines.names:
            continue
        needed = [name for name in ordered(missing) if _differs(machines, anomaly, {name}, covers=covers)]
        if not needed and _differs(machines, anomaly, missing, covers=covers):
            needed = [name for name in ordered(missing) if name in SHOWN_AS]
        if definition.rest == "drained" and Event.DRAINED in missing:
            needed.append(Event.DRAINED.value)
        if needed:
            sure = not _differs(machines, anomaly, missing, covers=covers, only_less=True)
            found[anomaly] = Countable(cannot_show(needed), sure)
    return found | dict(_of_counts(missing, events, specification, configuration))


def _of_counts(
    missing: frozenset[str], events: Events, specification: Specification, configuration: Configuration | None
) -> Iterator[tuple[Anomaly, Countable]]:
    """Yield the anomalies that no machine counts, each with its certainty."""
    without = {
        Anomaly.WINDOW_OVERRUN: configuration is not None and window_of(specification, configuration) is None,
        Anomaly.PREFETCH_OVERRUN: configuration is not None and prefetch_of(specification, configuration) is None,
        Anomaly.TORN_TRANSACTION: configuration is not None
        and not bool((events.transaction != ABSENT).any())
        and not missing & OF_TRANSACTIONS,
        Anomaly.OVER_DELIVERED: configuration is not None and not configuration.max_delivery_attempts,
    }
    for anomaly, looked_at in _LOOKED_AT.items():
        needed = ordered(missing & {str(name) for name in looked_at})
        if needed and not without.get(anomaly):
            yield anomaly, Countable(cannot_show(needed), anomaly in _SURE)


def ordered(names: Collection[str]) -> tuple[str, ...]:
    """``names`` in the order of the format, faults first, fields after events."""
    known = [str(Event.FAULT), *map(str, EVENTS)]
    return tuple(sorted(map(str, names), key=lambda name: (known.index(name) if name in known else len(known), name)))


def _differs(
    machines: Machines, anomaly: Anomaly, missing: Collection[str], *, covers: bool, only_less: bool = False
) -> bool:
    """Return whether ``missing`` events may change the answer of a machine; ``only_less``: take it back."""
    hidden = [observable_code(each) for name in missing for each in SHOWN_AS.get(name, ())]
    spurious = [observable_code(each) for each in _CUMULATIVE] if covers and _GIVE_BACK & set(missing) else []
    unflagged = "redelivered" in missing
    for place, name in enumerate(machines.names):
        if name != anomaly:
            continue
        for one, other in _pairs(machines, int(machines.initial[place]), hidden, spurious, unflagged=unflagged):
            for marked in (machines.marked, machines.marked | machines.marked_at_rest):
                if marked[one] and not marked[other]:
                    return True
                if marked[other] and not marked[one] and not only_less:
                    return True
    return False


def _pairs(
    machines: Machines, initial: int, hidden: Collection[int], spurious: Collection[int], *, unflagged: bool
) -> Iterator[tuple[int, int]]:
    """Yield pairs of states of a machine: one after the shown events, one after all that happened."""
    following = machines.next
    clear, flagged = (observable_code(each) for each in (Observable.DELIVERED_CLEAR, Observable.DELIVERED_FLAGGED))
    seen, front = {(initial, initial)}, [(initial, initial)]
    while front:
        one, other = front.pop()
        yield one, other
        pairs = [(int(a), int(b)) for a, b in zip(following[one], following[other], strict=True)]
        pairs += [(one, int(following[other, each])) for each in hidden]
        pairs += [(int(following[one, each]), other) for each in spurious]
        if unflagged:
            pairs.append((int(following[one, clear]), int(following[other, flagged])))
        new = [pair for pair in dict.fromkeys(pairs) if pair not in seen]
        seen.update(new)
        front += new
