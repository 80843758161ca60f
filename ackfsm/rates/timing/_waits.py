"""What waits for what in a configuration, by ``spec/timing.yaml``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ackfsm.tables import Rule, Specification
from ackfsm.tables.names import Condition
from ackfsm.terms import Configuration


@dataclasses.dataclass(frozen=True, slots=True)
class Waits:
    """What waits for what; each text is a word of ``spec/timing.yaml``.

    Attributes:
        next_send_after: ``answer``, ``window``, ``commit`` or ``nothing``.
        window: so many sends may be open; ``None``: any number.
        threshold: the broker answers so many at a time; ``None``: each at once.
        has_timer: it answers fewer when its timer fires.
        completes_first: a commit waits until each send of its transaction is complete.
        send_after_sync: the answer to a send waits for a sync.
        commit_after_sync: that to a commit does.
        acknowledge_after_sync: that to an acknowledgement does.
        settled_by: ``message``, ``call``, ``batch``, ``commit`` or ``dispatch``.
        waits_for_acknowledged: who acknowledges waits for the answer of the broker.
        acknowledged_first: a message is acknowledged before the application has it.
        prefetch: so many deliveries may be out; ``None``: any number.
        is_journalled: messages and their acknowledgements are written to the journal, whoever waits for that.
        freed_on_delivery: a delivery counts until the application has it, not until it is settled.
    """

    next_send_after: str
    window: int | None
    threshold: int | None
    has_timer: bool
    completes_first: bool
    send_after_sync: bool
    commit_after_sync: bool
    acknowledge_after_sync: bool
    settled_by: str
    waits_for_acknowledged: bool
    acknowledged_first: bool
    prefetch: int | None
    freed_on_delivery: bool
    is_journalled: bool


def waits_of(specification: Specification, configuration: Configuration) -> Waits:
    """What waits for what in ``configuration``, by ``spec/timing.yaml``."""
    rows, environment = specification.timing, specification.environment(configuration)

    def holds(condition: str) -> bool:
        return specification.conditions[condition].holds(environment)

    after_sync = {name: condition.holds(environment) for name, condition in rows.after_sync.items()}
    next_send_after = _first(rows.next_send_after, environment)
    answered_at_threshold = _first(rows.answers, environment) == "threshold"
    return Waits(
        next_send_after=next_send_after,
        window=1 if next_send_after == "answer" else _window(configuration),
        threshold=configuration.confirm_threshold if answered_at_threshold else None,
        has_timer=configuration.confirm_timer,
        completes_first=holds(Condition.COMPLETES_TRANSACTED_SENDS),
        send_after_sync=after_sync["send"],
        commit_after_sync=after_sync["commit"],
        acknowledge_after_sync=after_sync["acknowledge"],
        settled_by=_first(rows.settled_by, environment),
        waits_for_acknowledged=holds(Condition.CONFIRMS_ACKS),
        acknowledged_first=holds(Condition.ACKS_BEFORE_DELIVERY),
        prefetch=configuration.prefetch or None,
        freed_on_delivery=holds(Condition.CREDIT_FREED_ON_DELIVERY),
        is_journalled=holds(Condition.JOURNALLED),
    )


def _window(configuration: Configuration) -> int | None:
    window = configuration.publish_window or None
    return None if window is not None and window >= _NEVER_FULL else window


_NEVER_FULL: Final = 2**31 - 1
"""So many open sends no process holds: it stands for a window in bytes that holds nobody up."""


def _first(rules: Sequence[Rule], environment: Mapping[str, Any]) -> str:
    """The word of the first of the ``rules`` that holds; the last one always does."""
    return next(rule.word for rule in rules if rule.when.holds(environment))
