"""The programs of a tour as programs that an adapter is led through."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from ackfsm.driving import conform
from ackfsm.driving.conform import ACTS, BROKER_FAULTS, SETTLES, Act
from ackfsm.driving.live.tour import Program, Step, StepKind
from ackfsm.tables import Specification
from ackfsm.tables.names import Event
from ackfsm.terms import Fault
from ackfsm.verify.findings.performed import TableRow

__all__ = ["led", "undone"]

_STRUCK: Final[Mapping[str, Collection[Fault]]] = MappingProxyType(
    {
        **dict.fromkeys(
            (Event.SEND, Event.SEND_IN_TRANSACTION, Event.RESEND, Event.COMMIT_CALLED),
            (Fault.PRODUCER_CRASH, Fault.PRODUCER_LINK_LOSS, *BROKER_FAULTS),
        ),
        **dict.fromkeys(
            (Event.ACKNOWLEDGE, Event.CONSUMER_COMMIT_CALLED),
            (Fault.CONSUMER_CRASH, Fault.CONSUMER_LINK_LOSS, *BROKER_FAULTS),
        ),
    }
)
"""The faults that may strike a call while that is under way."""
_UNPERFORMED: Final = frozenset({Event.SEND_TIMED_OUT, Event.OUTCOME_FORGOTTEN})
"""Decisions of the application that nobody sees: the call that follows tells of them."""


_SENDS: Final = frozenset({Event.SEND, Event.SEND_IN_TRANSACTION})
"""Without any of these there is nothing to see."""
_UNCAUSED: Final = frozenset({Event.LEASE_EXPIRED, Event.EXPIRED})
"""What time brings about."""


def undone(specification: Specification, outcomes: Collection[str], *, recovers: bool, cancels: bool) -> frozenset[str]:
    """Return the events that need not happen, and that no adapter brings about with such a client."""
    optional = {event.name for event in specification.events.values() if event.optional}
    unstated: set[str] = {event for event, outcome in SETTLES.items() if outcome not in outcomes}
    unstated |= set() if recovers else {Event.RECOVER}
    unstated |= set() if cancels else {Event.CONSUMER_CANCEL}
    return frozenset(optional - ACTS.keys() - _UNPERFORMED | unstated)


def led(
    programs: Iterable[Program], *, resends: bool = False
) -> Mapping[Fault | None, Mapping[conform.Program, frozenset[TableRow]]]:
    """Return the ``programs`` of a tour by the fault that strikes in them, each with the rows that it is for.

    Left out are those in which more than one kind of fault strikes, or something happens that no application or nemesis
    brings about (a lease that ends).  Where the library itself ``resends`` what is in doubt the application does not:
    the model has two copies of a message, and that would be a third.
    """
    unperformed = _UNPERFORMED | {Event.RESEND} if resends else _UNPERFORMED
    found: dict[Fault | None, dict[conform.Program, frozenset[TableRow]]] = {}
    for program in programs:
        struck = {Fault(step.event) for step in program.steps if step.event in set(Fault)}
        acts = tuple(_acts(program, unperformed)) if len(struck) <= 1 else ()
        if None not in acts and any(act is not None and act.event in _SENDS for act in acts):
            whole = conform.Program(tuple(act for act in acts if act is not None))
            rows = found.setdefault(next(iter(struck), None), {})
            rows[whole] = rows.get(whole, frozenset()) | program.rows
    return found


def _acts(program: Program, unperformed: Collection[str]) -> Iterator[Act | None]:
    """Yield the acts of a program, ``None`` for one that there is not."""
    last: Act | None = None
    for number, step in enumerate(program.steps):
        act = None if step.event in unperformed else _act(step)
        if act is None:
            if step.event not in unperformed and _matters(step):
                yield None
            elif step.kind is StepKind.HEARD:  # the call that is answered is over
                if last is not None:
                    yield last
                last = None
            continue
        fault = Fault(act.event) if step.kind is StepKind.FAULT else None
        if fault is not None and last is not None and fault in _STRUCK.get(last.event, ()):
            yield Act(last.event, last.message, last.who, fault, 1 + number % 12)
            last = None
            continue
        if last is not None:
            yield last
        last = act
    if last is not None:
        yield last


def _act(step: Step) -> Act | None:
    if step.kind is StepKind.FAULT or (step.event in ACTS and _is_done(step)):
        return Act(step.event, f"m{step.message}" if step.message else "", max(step.consumer - 1, 0))
    return None


def _is_done(step: Step) -> bool:
    """Whether the application does it: a delivery is waited for, an acknowledgement of the library is not its own."""
    return step.kind is StepKind.ACT or step.event in {Event.DELIVERED_CLEAR, Event.DELIVERED_FLAGGED}


def _matters(step: Step) -> bool:
    """Whether a step without an act of ours changes what the run is."""
    heard = step.kind is StepKind.HEARD and (not step.line or step.event in _UNCAUSED)
    return heard or step.kind is StepKind.ACT
