"""Stuck calls and messages: calls that had not returned at rest, and messages that a queue still held.

A call that waits although nothing else happens any more is ``stuck``, and so is a message that the broker holds for a
consumer that was done with it, or for one that waits for a message.  The applications themselves are not: a ``receive``
may wait, and who never acknowledges keeps its messages in flight.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Final

from ackfsm.history.format import Call, Event
from ackfsm.history.queues import Configurations
from ackfsm.history.read import History
from ackfsm.tables import Specification
from ackfsm.tables.names import Condition
from ackfsm.terms import Anomaly, Configuration, Consumption, ListenerException
from ackfsm.verify.counting.resting import Seen
from ackfsm.verify.findings.findings import EXAMPLES, Finding, Findings, Part
from ackfsm.verify.findings.parts import together
from ackfsm.verify.words import cannot_show

__all__ = ["stuck_of", "with_stuck"]

_NEEDED: Final = frozenset(
    {Event.DELIVERED, Event.PROCESSED, Event.FAILED, Event.ACKNOWLEDGE, Event.ACKNOWLEDGED, Event.RECOVER, Event.CLOSE}
    | {Event.FAULT, Event.RECOVERED}
)
"""Without these it is not known what an application still owes, or whether a fault lasts."""


@dataclasses.dataclass(frozen=True, slots=True)
class Stuck:
    """The count of stuck calls and messages, and the ids of the messages, as far as they are known."""

    finding: Finding
    messages: frozenset[str]


def with_stuck(findings: Findings, history: History, specification: Specification) -> Findings:
    """``findings`` with how much is ``stuck``, if ``history`` tells what rests.

    Its events are in the order of time as it was told.
    """
    found = stuck_of(findings, history, specification)
    if not found:
        return findings
    if not findings.queues:
        return _with(findings, found[0].finding)
    parts = [
        dataclasses.replace(part, findings=_with(part.findings, each.finding))
        for part, each in zip(findings.parts, found, strict=True)
    ]
    return together(parts, Configurations(findings.configuration, findings.queues))


def _with(findings: Findings, found: Finding) -> Findings:
    needed = [name for name in findings.unshown if name in _NEEDED]
    if needed:
        found = dataclasses.replace(found, found=0, examples=(), unknown=cannot_show(needed), unrecorded=True)
    whole = {**findings.anomalies, Anomaly.STUCK: found}
    return dataclasses.replace(
        findings, anomalies=MappingProxyType({anomaly: whole[anomaly] for anomaly in Anomaly if anomaly in whole})
    )


def stuck_of(findings: Findings, history: History, specification: Specification) -> tuple[Stuck, ...]:
    """Return the ``stuck`` findings of each of :attr:`Findings.each`; none if the history tells no rest."""
    if not history.remarks:
        return ()
    seen, parts = Seen(history.events, history.remarks), findings.parts
    if not findings.queues:
        return (_stuck(seen, findings, specification, lambda _: True),)
    return tuple(
        _stuck(seen, part.findings, specification, functools.partial(_concerns, parts, part)) for part in parts
    )


def _concerns(parts: Sequence[Part], part: Part, queue: str | None) -> bool:
    """Whether ``part`` is that of ``queue``; the first one has what no other has."""
    return part is next((each for each in parts if queue in each.queues), parts[0])


def _stuck(
    seen: Seen, findings: Findings, specification: Specification, concerns: Callable[[str | None], bool]
) -> Stuck:
    """Return the stuck calls and messages of the queues that ``concerns`` names."""
    configuration = findings.configuration
    by_library = configuration is not None and specification.recording.by_library.holds(
        specification.environment(configuration)
    )
    keeps_failed = configuration is not None and _keeps_what_failed(specification, configuration)
    waiting = [each for each in seen.remarks if each.event == Event.WAITING and not seen.returned(each)]
    calls = [(each, seen.call(each)) for each in waiting if each.error != Call.RECEIVE]
    known = frozenset[str]().union(*(part.messages for _, part in calls))
    receivers = [each for each in waiting if each.error == Call.RECEIVE]
    parts = [part for each, part in calls if concerns(each.queue or seen.queue_of(part.messages))]
    parts += [
        seen.depth(each, known, receivers, by_library=by_library, keeps_failed=keeps_failed)
        for each in seen.last_depths()
        if concerns(each.queue)
    ]
    messages = frozenset[str]().union(*(part.messages for part in parts))
    reasons = dict.fromkeys(part.unknown for part in parts if part.unknown is not None)
    finding = Finding(
        anomaly=Anomaly.STUCK,
        found=len(messages) + sum(part.others for part in parts),
        unknown="; ".join(reasons) or None,
        needs_every_line=specification.properties[Anomaly.STUCK].needs_every_line,
        examples=tuple(sorted(messages)[:EXAMPLES]),
    )
    return Stuck(finding, messages)


def _keeps_what_failed(specification: Specification, configuration: Configuration) -> bool:
    """Whether an application that failed with a message is the one to recover or close its session (JMS 8.7).

    What a library swallows is given back by nobody, which the search finds too.
    """
    if configuration.consumption is Consumption.LISTENER:
        return configuration.listener_exception is ListenerException.NEXT_MESSAGE
    environment = specification.environment(configuration)
    return not specification.conditions[Condition.OFFERS_FAILED_AND_REJECTED].holds(environment)
